/* Makes a failing graph smaller. Every attempt works on a copy of the lists (in the graph's pool); a graph that
 * still fails replaces the former one. Invariant: between attempts the graph fails. */
#include "tests/support/random_graph.h"

#include "base/shape.h"

#include <stdlib.h>
#include <string.h>

typedef struct reducer {
    random_graph *g;
    bool (*fails)(const random_graph *g, void *argument);
    void *argument;
    bool better; /* something went in this round */
} reducer;

static rg_graph copy_graph(random_graph *g, const rg_graph *from)
{
    rg_graph copy = *from;
    copy.nodes = prn_bump_alloc(&g->pool, from->node_count + 1, sizeof *copy.nodes);
    if (!copy.nodes) abort();
    if (from->node_count) memcpy(copy.nodes, from->nodes, from->node_count * sizeof *copy.nodes);
    copy.node_capacity = from->node_count;
    copy.inputs = rg_copy_ids(g, from->inputs, from->input_count);
    copy.outputs = rg_copy_ids(g, from->outputs, from->output_count);
    for (size_t n = 0; n < copy.node_count; n++) {
        rg_node *node = &copy.nodes[n];
        node->in = rg_copy_ids(g, node->in, node->in_count);
        for (size_t b = 0; b < RG_MOST_BODIES; b++) {
            if (!node->body[b]) continue;
            rg_graph *body = prn_bump_alloc(&g->pool, 1, sizeof *body);
            if (!body) abort();
            *body = copy_graph(g, node->body[b]);
            node->body[b] = body;
        }
    }
    return copy;
}

/* Replaces every use of `from` by `to`; returns their number. */
static size_t substitute(rg_graph *graph, int from, int to)
{
    size_t uses = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        int *in = (int *)(uintptr_t)graph->nodes[n].in; /* a copy of this attempt's own */
        for (size_t i = 0; i < graph->nodes[n].in_count; i++)
            if (in[i] == from) in[i] = to, uses++;
        for (size_t b = 0; b < RG_MOST_BODIES; b++)
            if (graph->nodes[n].body[b]) uses += substitute(graph->nodes[n].body[b], from, to);
    }
    for (size_t k = 0; k < graph->output_count; k++)
        if (graph->outputs[k] == from) graph->outputs[k] = to, uses++;
    return uses;
}

static bool used(const rg_graph *graph, int id)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        for (size_t i = 0; i < graph->nodes[n].in_count; i++)
            if (graph->nodes[n].in[i] == id) return true;
        for (size_t b = 0; b < RG_MOST_BODIES; b++)
            if (graph->nodes[n].body[b] && used(graph->nodes[n].body[b], id)) return true;
    }
    for (size_t k = 0; k < graph->output_count; k++)
        if (graph->outputs[k] == id) return true;
    return false;
}

/* Restores `before` if the present graph does not fail. */
static bool keep(reducer *r, const rg_graph *before)
{
    if (r->g->main.output_count > 0 && r->fails(r->g, r->argument)) return r->better = true;
    r->g->main = *before;
    return false;
}

static void remove_id(int *ids, size_t *count, size_t at)
{
    memmove(ids + at, ids + at + 1, (*count - at - 1) * sizeof *ids);
    --*count;
}

static void drop_outputs(reducer *r)
{
    for (size_t step = r->g->main.output_count / 2; step > 0; step /= 2) {
        for (size_t at = 0; at + step <= r->g->main.output_count;) {
            rg_graph before = r->g->main;
            r->g->main = copy_graph(r->g, &before);
            for (size_t i = 0; i < step; i++) remove_id(r->g->main.outputs, &r->g->main.output_count, at);
            if (!keep(r, &before)) at += step;
        }
    }
}

/* ---- nodes ---- */

static rg_graph *graph_at(random_graph *g, size_t outer, size_t body)
{
    return outer == SIZE_MAX ? &g->main : g->main.nodes[outer].body[body];
}

/* An operand that may replace a result of the node, because it has the same type and shape. */
static int replacement(const random_graph *g, const rg_node *node, int id)
{
    const rg_value *value = &g->values[id];
    for (size_t i = 0; i < node->in_count; i++) {
        const rg_value *operand = node->in[i] < 0 ? NULL : &g->values[node->in[i]];
        if (operand && !operand->constant && operand->dtype == value->dtype &&
            prn_shape_equal(&operand->shape, &value->shape))
            return node->in[i];
    }
    return -1;
}

/* Removes a node: an operand replaces its results, or (in the main graph) they become graph inputs. */
static bool drop_node(reducer *r, size_t outer, size_t body, size_t n, bool as_inputs)
{
    random_graph *g = r->g;
    rg_graph before = g->main;
    const rg_node node = graph_at(g, outer, body)->nodes[n];
    int inputs[RG_MOST_RESULTS];
    size_t input_count = 0;
    for (size_t k = 0; k < node.out_count; k++) {
        if (!used(graph_at(g, outer, body), node.out[k])) continue;
        if (as_inputs ? outer != SIZE_MAX || !rg_known(&g->values[node.out[k]])
                      : replacement(g, &node, node.out[k]) < 0)
            return false;
        inputs[input_count++] = node.out[k];
    }
    if (as_inputs && !input_count) return false;
    g->main = copy_graph(g, &before);
    rg_graph *graph = graph_at(g, outer, body);
    memmove(&graph->nodes[n], &graph->nodes[n + 1], (graph->node_count - n - 1) * sizeof *graph->nodes);
    graph->node_count--;
    for (size_t i = 0; i < input_count; i++) {
        if (!as_inputs) {
            substitute(graph, inputs[i], replacement(g, &node, inputs[i]));
            continue;
        }
        int *longer = prn_bump_alloc(&g->pool, graph->input_count + 2, sizeof *longer);
        if (!longer) abort();
        if (graph->input_count) memcpy(longer, graph->inputs, graph->input_count * sizeof *longer);
        longer[graph->input_count++] = inputs[i];
        graph->inputs = longer;
        g->values[inputs[i]].input = true;
        const prony_dtype dtype = g->values[inputs[i]].dtype;
        bool half = dtype == PRONY_BOOL || dtype == PRONY_UINT8 || dtype == PRONY_UINT16;
        g->values[inputs[i]].low = half ? 0 : -1;
        g->values[inputs[i]].high = 1;
    }
    if (keep(r, &before)) return true;
    for (size_t i = 0; as_inputs && i < input_count; i++) g->values[inputs[i]].input = false;
    return false;
}

static void drop_nodes(reducer *r, size_t outer, size_t body)
{
    for (size_t n = graph_at(r->g, outer, body)->node_count; n-- > 0;) {
        if (drop_node(r, outer, body, n, false) || drop_node(r, outer, body, n, true)) continue;
        for (size_t b = 0; outer == SIZE_MAX && b < RG_MOST_BODIES; b++)
            if (r->g->main.nodes[n].body[b]) drop_nodes(r, n, b);
    }
}

/* ---- operands and inputs ---- */

static bool takes_any_number(const char *op)
{
    return strcmp(op, "Sum") == 0 || strcmp(op, "Mean") == 0 || strcmp(op, "Max") == 0 || strcmp(op, "Min") == 0;
}

static void drop_operands(reducer *r)
{
    for (size_t n = 0; n < r->g->main.node_count; n++) {
        if (!takes_any_number(r->g->main.nodes[n].op)) continue;
        for (size_t i = r->g->main.nodes[n].in_count; i-- > 0 && r->g->main.nodes[n].in_count > 1;) {
            rg_graph before = r->g->main;
            r->g->main = copy_graph(r->g, &before);
            rg_node *node = &r->g->main.nodes[n];
            remove_id((int *)(uintptr_t)node->in, &node->in_count, i);
            (void)keep(r, &before);
        }
    }
}

static void drop_inputs(reducer *r)
{
    for (size_t i = r->g->main.input_count; i-- > 0;) {
        if (used(&r->g->main, r->g->main.inputs[i])) continue;
        rg_graph before = r->g->main;
        r->g->main = copy_graph(r->g, &before);
        remove_id(r->g->main.inputs, &r->g->main.input_count, i);
        (void)keep(r, &before);
    }
}

void random_graph_reduce(random_graph *g, bool (*fails)(const random_graph *g, void *argument), void *argument)
{
    reducer r = {.g = g, .fails = fails, .argument = argument, .better = true};
    for (int round = 0; round < 8 && r.better; round++) {
        r.better = false;
        drop_outputs(&r);
        drop_nodes(&r, SIZE_MAX, 0);
        drop_operands(&r);
        drop_inputs(&r);
    }
}
