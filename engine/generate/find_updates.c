/*   past ── Gather ── Concat(., new) ── Unsqueeze ── Concat ── present
 *
 * Follows inputs that may be fed back: views of an input, then the operator that joins new rows to it or computes the
 * next state of a recurrence, then views of the result. An output at the end of this way is an update of the input,
 * whatever the names. Operators that mix values (products, norms) end it. */
#include "base/memory/alloc.h"
#include "engine/generate/find.h"

#include <limits.h>
#include <string.h>

/* Operators that make a present output of a past input. */
typedef struct update_operator {
    const char *domain, *name;
    size_t past, present; /* positions among inputs and outputs */
} update_operator;

static const update_operator update_operators[] = {{"com.microsoft", "GroupQueryAttention", 3, 1},
                                                   {"com.microsoft", "GroupQueryAttention", 4, 2},
                                                   {"com.microsoft", "Attention", 4, 1},
                                                   {"com.microsoft", "MultiHeadAttention", 6, 1},
                                                   {"com.microsoft", "MultiHeadAttention", 7, 2},
                                                   {"", "Attention", 4, 1},
                                                   {"", "Attention", 5, 2},
                                                   {"", "LSTM", 5, 1},
                                                   {"", "LSTM", 6, 2},
                                                   {"", "GRU", 5, 1},
                                                   {"", "RNN", 5, 1}};

static bool update_is_any(const prn_model_node *node, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(node->op_type, *names) == 0) return *node->domain == '\0';
    return false;
}

static bool update_put(find_updates *u, const char *name, find_update item)
{
    if (!*name) return true;
    if (!PRN_GROW(u->items, u->capacity, u->count + 1)) return false;
    u->items[u->count] = item;
    return prn_names_put(&u->ids, name, (uint32_t)u->count++);
}

static const find_update *update_get(const find_updates *u, const char *name)
{
    uint32_t index;
    return *name && prn_names_get(&u->ids, name, &index) ? &u->items[index] : NULL;
}

/* The one item among a node's inputs; NULL: none, or items of several inputs. */
static const find_update *update_only(const find_updates *u, const prn_model_node *node, size_t *count)
{
    const find_update *only = NULL;
    *count = 0;
    for (size_t i = 0; i < node->input_count; i++) {
        const find_update *item = update_get(u, node->inputs[i]);
        if (!item) continue;
        if (only && only->input != item->input) return NULL;
        only = item;
        ++*count;
    }
    return only;
}

static bool update_view(find_updates *u, const prn_model_node *node, const find_update *of)
{
    static const char *const same[] = {"Identity", "Cast", "QuantizeLinear", "DequantizeLinear", NULL};
    find_update item = *of;
    item.moved = item.moved || !update_is_any(node, same);
    bool ok = true;
    for (size_t k = 0; k < node->output_count && ok; k++) ok = update_put(u, node->outputs[k], item);
    return ok;
}

/* Carries items from a node's inputs to its outputs; false: out of memory. Nodes are visited in execution order, so
 * each input has its item already. A node without an item among its inputs ends here, and so does one that reads items
 * of two inputs: its output updates neither. */
static bool update_node(find_updates *u, const prn_model_node *node, bool has_positions)
{
    static const char *const views[] = {"Identity",  "Cast",      "QuantizeLinear", "DequantizeLinear",
                                        "Slice",     "Gather",    "Split",          "Squeeze",
                                        "Unsqueeze", "Transpose", "Reshape",        "Expand",
                                        "Flatten",   NULL},
                             *const scatters[] = {"ScatterND", "ScatterElements", "Scatter", "TensorScatter", NULL},
                             *const sums[] = {"Add", "Sub", "Mul", "Div", "Where", NULL};
    if (!node->input_count || !node->output_count) return true;
    const find_update *first = update_get(u, node->inputs[0]);
    if (update_is_any(node, views)) return !first || update_view(u, node, first);
    find_update item = {.updated = true, .axis = INT_MIN};
    for (size_t k = 0; k < sizeof update_operators / sizeof *update_operators; k++) {
        const update_operator *op = &update_operators[k];
        if (strcmp(node->op_type, op->name) != 0 || strcmp(node->domain, op->domain) != 0 ||
            op->past >= node->input_count || op->present >= node->output_count)
            continue;
        const find_update *past = update_get(u, node->inputs[op->past]);
        if (!past || past->updated) continue;
        item.input = past->input;
        item.moved = past->moved;
        item.in_place = strcmp(op->name, "GroupQueryAttention") == 0;
        if (!update_put(u, node->outputs[op->present], item)) return false;
    }
    size_t count;
    const find_update *only = update_only(u, node, &count);
    if (!only) return true;
    const prn_attr *axis = prn_attr_find(&node->attributes, "axis");
    item.input = only->input;
    item.moved = only->moved;
    item.scattered = only->scattered;
    item.in_place = false;
    if (strcmp(node->op_type, "Concat") == 0 && !*node->domain) {
        if (axis && !only->updated) item.axis = (int)axis->i;
        if (only->updated && count < node->input_count) return true; /* it joins something else than rows */
        item.scattered = item.scattered || (count > 1 && count < node->input_count); /* before, new, behind */
        item.moved = item.moved || only->updated;
        return update_put(u, node->outputs[0], item);
    }
    if (update_is_any(node, scatters) && first) {
        item.scattered = true;
        item.axis = axis ? (int)axis->i : strcmp(node->op_type, "TensorScatter") == 0 ? -2 : INT_MIN;
        return update_put(u, node->outputs[0], item);
    }
    /* A recurrence: the state times a factor, and what is new. */
    if (strcmp(node->op_type, "Where") == 0) item.scattered = has_positions; /* rows chosen by position */
    if (update_is_any(node, sums) && count == 1) return update_put(u, node->outputs[0], item);
    return true;
}

prony_status prn_find_updates(find_updates *out, const find_roles *f, prony_error *error)
{
    const prn_graph *graph = f->g->graph;
    bool ok = true;
    for (size_t i = 0; i < graph->input_count && ok; i++)
        if (f->g->roles[i] == PRN_ROLE_OTHER && graph->inputs[i].shape.rank >= 2)
            ok = update_put(out, graph->inputs[i].name, (find_update){.input = (uint32_t)i, .axis = INT_MIN});
    for (size_t n = 0; n < graph->node_count && ok; n++)
        ok = update_node(out, &graph->nodes[n], prn_find_has_positions(f->g));
    return ok ? PRONY_OK : prn_no_memory(error);
}

const find_update *prn_find_update(const find_updates *updates, const char *output)
{
    const find_update *item = update_get(updates, output);
    return item && item->updated ? item : NULL;
}

void prn_find_updates_free(find_updates *updates)
{
    prn_names_free(&updates->ids);
    prn_free(updates->items);
    *updates = (find_updates){0};
}
