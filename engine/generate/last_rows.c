/*   x ── MatMul ── Add ── logits      becomes      x ── Gather(., [-1]; axis 1) ── MatMul ── Add ── logits
 *
 * A prompt needs the logits of its last position alone, so the graph's last product need not compute the others. The
 * walk goes back from the logits through nodes that compute each row by itself and whose results have no other reader;
 * rows are dropped in front of the first product on this way. A derived graph shares all of the model's but its list of
 * nodes. */
#include "engine/generate/generator.h"

#include <string.h>

/* The graph's values by name: what makes them, and how many read them. */
typedef struct last_rows {
    const prn_graph *graph;
    prn_names ids; /* to an index of `items` */
    struct last_rows_item {
        const prn_model_node *node; /* NULL: an input or initializer */
        const prony_value *constant;
        size_t uses;
    } *items;
    size_t count, capacity;
} last_rows;

static bool last_rows_add(last_rows *l, const char *name, const prn_model_node *node, const prony_value *constant)
{
    if (!*name) return true;
    if (!PRN_GROW(l->items, l->capacity, l->count + 1)) return false;
    l->items[l->count] = (struct last_rows_item){.node = node, .constant = constant};
    return prn_names_put(&l->ids, name, (uint32_t)l->count++);
}

static struct last_rows_item *last_rows_find(const last_rows *l, const char *name)
{
    uint32_t id;
    return prn_names_get(&l->ids, name, &id) ? &l->items[id] : NULL;
}

static void last_rows_note(const last_rows *l, const char *name)
{
    struct last_rows_item *item = last_rows_find(l, name);
    if (item) item->uses++;
}

static bool last_rows_list(last_rows *l)
{
    const prn_graph *g = l->graph;
    bool ok = true;
    for (size_t k = 0; k < g->initializer_count && ok; k++)
        ok = last_rows_add(l, g->initializers[k].name, NULL, &g->initializers[k].value);
    for (size_t k = 0; k < g->input_count + g->optional_count && ok; k++)
        ok = last_rows_add(l, g->inputs[k].name, NULL, NULL);
    for (size_t n = 0; n < g->node_count && ok; n++) {
        const prn_attr *value = prn_attr_find(&g->nodes[n].attributes, "value");
        const bool constant = strcmp(g->nodes[n].op_type, "Constant") == 0 && value;
        for (size_t k = 0; k < g->nodes[n].output_count && ok; k++)
            ok = last_rows_add(l, g->nodes[n].outputs[k], &g->nodes[n], constant ? value->tensor : NULL);
    }
    return ok;
}

static void last_rows_count(const last_rows *l)
{
    const prn_graph *g = l->graph;
    for (size_t n = 0; n < g->node_count; n++) {
        const prn_attr_list *list = &g->nodes[n].attributes;
        for (size_t i = 0; i < g->nodes[n].input_count; i++) last_rows_note(l, g->nodes[n].inputs[i]);
        for (size_t a = 0; a < list->count; a++) {
            const prn_attr *attr = &list->items[a];
            const size_t graphs = attr->type == PRN_ATTR_GRAPH ? 1 : attr->type == PRN_ATTR_GRAPHS ? attr->count : 0;
            for (size_t i = 0; i < graphs && attr->graph; i++)
                for (size_t k = 0; k < attr->graph[i].captured_count; k++)
                    last_rows_note(l, attr->graph[i].captured[k]);
        }
    }
    for (size_t k = 0; k < g->output_count; k++) last_rows_note(l, g->outputs[k].name);
}

/* ---- nodes that compute each row by itself ---- */

typedef enum last_rows_kind {
    LAST_ROWS_OTHER,
    LAST_ROWS_PRODUCT,
    LAST_ROWS_STORED, /* it belongs to the product: rows are dropped in front of it */
    LAST_ROWS_ELEMENTS
} last_rows_kind;

static bool last_rows_is_any(const prn_model_node *node, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(node->op_type, *names) == 0) return true;
    return false;
}

/* The rank of a constant matrix behind an operand, through nodes that keep it; -1: another value. */
static int last_rows_rank(const last_rows *l, const char *name)
{
    static const char *const keepers[] = {"Transpose", "Cast", "Identity", "DequantizeLinear", NULL};
    enum { MOST_PASSES = 8 };
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        const struct last_rows_item *item = last_rows_find(l, name);
        if (item && item->constant) return item->constant->shape.rank;
        if (!item || !item->node || !item->node->input_count || !last_rows_is_any(item->node, keepers)) return -1;
        name = item->node->inputs[0];
    }
    return -1;
}

/* true: a constant that is the same for every row: of one element, or one for each column. */
static bool last_rows_is_vector(const last_rows *l, const char *name)
{
    const struct last_rows_item *item = last_rows_find(l, name);
    if (!item || !item->constant || item->constant->shape.rank > 3) return false;
    const prony_shape *shape = &item->constant->shape;
    for (int d = 0; d + 1 < shape->rank; d++)
        if (shape->dim[d] != 1) return false;
    return true;
}

static bool last_rows_is_scalar(const last_rows *l, const char *name)
{
    const struct last_rows_item *item = last_rows_find(l, name);
    return !*name || (item && item->constant && prony_shape_numel(&item->constant->shape) == 1);
}

/* The kind of a node, and its operand of rows. */
static last_rows_kind last_rows_kind_of(const last_rows *l, const prn_model_node *node, size_t *operand)
{
    static const char *const unary[] = {"Cast", "Identity", "Tanh", NULL},
                             *const binary[] = {"Add", "Sub", "Mul", "Div", NULL},
                             *const stored[] = {"QuantizeLinear", "DequantizeLinear", NULL},
                             *const norms[] = {"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization",
                                               NULL};
    const bool contrib = strcmp(node->domain, "com.microsoft") == 0;
    *operand = 0;
    if (node->output_count != 1 || !node->input_count || (*node->domain && !contrib)) return LAST_ROWS_OTHER;
    if (contrib) return strcmp(node->op_type, "MatMulNBits") == 0 ? LAST_ROWS_PRODUCT : LAST_ROWS_OTHER;
    if (strcmp(node->op_type, "MatMul") == 0 && last_rows_rank(l, node->inputs[1]) == 2) return LAST_ROWS_PRODUCT;
    if (last_rows_is_any(node, stored) && node->input_count > 1 && last_rows_is_scalar(l, node->inputs[1]))
        return LAST_ROWS_STORED;
    if (last_rows_is_any(node, norms)) {
        const prn_attr *axis = prn_attr_find(&node->attributes, "axis");
        return !axis || axis->i == -1 || axis->i == 2 ? LAST_ROWS_STORED : LAST_ROWS_OTHER;
    }
    if (last_rows_is_any(node, unary)) return LAST_ROWS_ELEMENTS;
    if (!last_rows_is_any(node, binary) || node->input_count != 2) return LAST_ROWS_OTHER;
    *operand = last_rows_is_vector(l, node->inputs[0]);
    return last_rows_is_vector(l, node->inputs[!*operand]) ? LAST_ROWS_ELEMENTS : LAST_ROWS_OTHER;
}

/* The node in front of which rows are dropped, and its operand of rows; NULL: no product is found. */
static const prn_model_node *last_rows_walk(const last_rows *l, const char *logits, size_t *operand)
{
    const prn_model_node *first = NULL;
    for (const char *name = logits;;) {
        const struct last_rows_item *item = last_rows_find(l, name);
        size_t at;
        if (!item || !item->node || item->uses != 1) return first;
        const last_rows_kind kind = last_rows_kind_of(l, item->node, &at);
        if (kind == LAST_ROWS_OTHER) return first;
        const bool behind = first && first->inputs[*operand] == name;
        if (kind == LAST_ROWS_PRODUCT || (kind == LAST_ROWS_STORED && behind)) {
            first = item->node;
            *operand = at;
        }
        name = item->node->inputs[at];
    }
}

/* ---- the derived graph ---- */

static const char last_rows_index_name[] = "prony/last_position", last_rows_value_name[] = "prony/last_row";
static const int64_t last_rows_index = -1;

/* All of it lies in the session's pool: plans of the graph outlive the generator. */
static prn_graph *last_rows_derive(const last_rows *l, const prn_model_node *first, size_t operand, size_t logits,
                                   prn_bump *pool)
{
    const prn_graph *g = l->graph;
    prn_graph *out = prn_bump_alloc(pool, 1, sizeof *out);
    prn_model_node *nodes = prn_bump_alloc(pool, g->node_count + 1, sizeof *nodes);
    prn_initializer *initializers = prn_bump_alloc(pool, g->initializer_count + 1, sizeof *initializers);
    prn_port *outputs = prn_bump_alloc(pool, g->output_count, sizeof *outputs);
    prn_attr *axis = prn_bump_alloc(pool, 1, sizeof *axis);
    const char **gathered = prn_bump_alloc(pool, 3, sizeof *gathered),
               **changed = prn_bump_alloc(pool, first->input_count, sizeof *changed);
    if (!out || !nodes || !initializers || !outputs || !axis || !gathered || !changed) return NULL;
    *axis = (prn_attr){.name = "axis", .type = PRN_ATTR_INT, .i = 1};
    gathered[0] = first->inputs[operand];
    gathered[1] = last_rows_index_name;
    gathered[2] = last_rows_value_name;
    const size_t at = (size_t)(first - g->nodes);
    memcpy(nodes, g->nodes, at * sizeof *nodes);
    nodes[at] = (prn_model_node){.name = last_rows_value_name,
                                 .op_type = "Gather",
                                 .domain = "",
                                 .overload = "",
                                 .inputs = gathered,
                                 .input_count = 2,
                                 .outputs = gathered + 2,
                                 .output_count = 1,
                                 .attributes = {axis, 1},
                                 .file_index = first->file_index};
    memcpy(nodes + at + 1, g->nodes + at, (g->node_count - at) * sizeof *nodes);
    memcpy(changed, first->inputs, first->input_count * sizeof *changed);
    changed[operand] = last_rows_value_name;
    nodes[at + 1].inputs = changed;
    if (g->initializer_count) memcpy(initializers, g->initializers, g->initializer_count * sizeof *initializers);
    initializers[g->initializer_count] = (prn_initializer){
        .name = last_rows_index_name,
        .value = {.dtype = PRONY_INT64, .shape = {1, {1}}, .data = (void *)(uintptr_t)&last_rows_index},
        .bytes = sizeof last_rows_index,
        .aligned = true};
    memcpy(outputs, g->outputs, g->output_count * sizeof *outputs);
    outputs[logits].shape.dim[1] = 1;
    *out = *g;
    out->nodes = nodes;
    out->node_count++;
    out->initializers = initializers;
    out->initializer_count++;
    out->outputs = outputs;
    return out;
}

/* Sets *out to the derived graph, or leaves it NULL where the model has no such product. */
static prony_status last_rows_make(const prony_generator *g, const prn_graph *graph, const prn_graph **out,
                                   prony_error *error)
{
    last_rows l = {.graph = graph};
    size_t operand = 0;
    prony_status status = PRONY_OK;
    if (last_rows_list(&l)) {
        last_rows_count(&l);
        const prn_model_node *first = last_rows_walk(&l, graph->outputs[g->logits].name, &operand);
        const bool taken = last_rows_find(&l, last_rows_index_name) || last_rows_find(&l, last_rows_value_name);
        if (first && !taken) {
            *out = last_rows_derive(&l, first, operand, g->logits, &g->session->pool);
            if (!*out) status = prn_no_memory(error);
        }
    } else {
        status = prn_no_memory(error);
    }
    prn_names_free(&l.ids);
    prn_free(l.items);
    return status;
}

prony_status prn_generator_derive_last_rows(prony_generator *generator, prony_error *error)
{
    prony_generator *g = generator;
    prony_session *session = g->session;
    const prn_graph **kept = g->stored ? &session->stored.last_rows : &session->last_rows;
    size_t *output = g->stored ? &session->stored.last_rows_output : &session->last_rows_output;
    if (!*kept || *output != g->logits) {
        *kept = NULL;
        *output = g->logits;
        if (g->graph->outputs[g->logits].shape.rank == 3)
            PRN_TRY(last_rows_make(g, g->stored ? g->stored : g->graph, kept, error));
    }
    g->last_rows = *kept;
    return PRONY_OK;
}
