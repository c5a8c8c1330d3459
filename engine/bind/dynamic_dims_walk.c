/* The walk over the bound nodes. */
#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "engine/bind/dynamic_dims_parts.h"

#include <string.h>

/* Found by a cursor while the program is opened, because values are requested in the order in which they were added. */
static prn_own_data *own_of(prn_dynamic_dims *x, uint32_t value)
{
    if (x->own_at) return &x->own[x->own_at[value]];
    for (size_t i = 0; i < x->own_count; i++, x->next_own++) {
        if (x->next_own >= x->own_count) x->next_own = 0;
        if (x->own[x->next_own].value == value) return &x->own[x->next_own++];
    }
    return NULL;
}

prony_status prn_dynamic_dims_add_own(prn_dynamic_dims *x, prn_program *p, uint32_t value, uint32_t shape_of,
                                      prony_error *error)
{
    if (!PRN_GROW(x->own, x->own_capacity, x->own_count + 1)) return prn_no_memory(error);
    x->own[x->own_count++] = (prn_own_data){.value = value, .shape_of = shape_of};
    p->values[value]->info.data = NULL;
    p->values[value]->shared = NULL;
    return PRONY_OK;
}

void prn_dynamic_dims_set_own(prn_program *p, prn_own_data *own, void *data)
{
    prn_free_aligned(own->data);
    own->data = data;
    own->bytes = 0;
    p->values[own->value]->info.data = data;
}

/* true: elements of this constant may change. Packed forms are found by address, so weights may not change: only
 * integers and bools may. */
static bool may_change(const prn_value_def *value)
{
    const prony_dtype dtype = value->info.dtype;
    return !(value->extents & PRN_DYNAMIC_DIMS_DECIDE) &&
           (dtype == PRONY_INT64 || dtype == PRONY_INT32 || dtype == PRONY_BOOL);
}

/* Takes over or frees made->data. `learning`: at the second extents; constants that differ are marked as changing. */
static prony_status take_constant(prn_dynamic_dims *x, prn_program *p, uint32_t id, prony_value *made, bool learning,
                                  bool *fits, prony_error *error)
{
    prn_value_def *value = p->values[id];
    const size_t bytes = prn_value_bytes(made);
    void *data = made->data;
    made->data = NULL;
    if (!(value->extents & PRN_DYNAMIC_DIMS_CHANGE)) {
        const bool same =
            value->info.data && prn_value_bytes(&value->info) == bytes && memcmp(value->info.data, data, bytes) == 0;
        if (same || !learning || !may_change(value)) {
            prn_free_aligned(data);
            *fits &= same;
            return PRONY_OK;
        }
        value->extents |= PRN_DYNAMIC_DIMS_CHANGE;
        prony_status status = prn_dynamic_dims_add_own(x, p, id, PRN_NO_VALUE, error);
        if (status != PRONY_OK) prn_free_aligned(data);
        PRN_TRY(status);
    }
    prn_dynamic_dims_set_own(p, own_of(x, id), data);
    return PRONY_OK;
}

static prony_status walk_folded(prn_dynamic_dims *x, prn_bind_pass *b, prn_walked *w, bool learning, bool *fits)
{
    prony_value one = {0}, *made = w->node.output_count > 1 ? prn_calloc(w->node.output_count, sizeof *made) : &one;
    if (!made) return prn_no_memory(b->error);
    for (uint32_t k = 0; learning && k < w->node.output_count; k++) { /* another shape means other bytes */
        prn_value_def *value = w->node.output_values[k] ? b->program->values[w->node.outputs[k]] : NULL;
        if (value && !prn_shape_equal(&value->info.shape, &w->shapes[k])) value->info.data = NULL;
    }
    prony_status status = prn_bind_evaluate(b, &w->node, made);
    for (uint32_t k = 0; k < w->node.output_count; k++) {
        if (status == PRONY_OK && made[k].data)
            status = take_constant(x, b->program, w->node.outputs[k], &made[k], learning, fits, b->error);
        prn_free_aligned(made[k].data);
    }
    if (made != &one) prn_free(made);
    return status;
}

/* true: an input has another type, shape or constant elements than in the walk before. */
static bool walk_moved(const prn_program *p, const prn_node_def *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE && p->values[node->inputs[i]]->moved_at == p->moves) return true;
    return false;
}

/* Marks the outputs that differ from `before`; constants that were evaluated again have another address. The result is
 * the node's pattern. */
static uint64_t walk_mark(prn_program *p, const prn_walked *w, const prony_value *before, bool all)
{
    uint64_t pattern = UINT64_C(1) << PRN_PATTERN_VISITED;
    for (uint32_t k = 0; k < w->node.output_count; k++) {
        if (!w->node.output_values[k]) continue;
        prn_value_def *value = p->values[w->node.outputs[k]];
        const bool changes = (value->extents & PRN_DYNAMIC_DIMS_CHANGE) != 0;
        if (!all && !changes && value->info.dtype == before[k].dtype && value->info.kind == before[k].kind &&
            prn_shape_equal(&value->info.shape, &before[k].shape))
            continue;
        value->moved_at = p->moves;
        pattern |= UINT64_C(1) << (k < PRN_PATTERN_VISITED ? k : PRN_PATTERN_VISITED);
    }
    return pattern;
}

static prony_status walk_node(prn_dynamic_dims *x, prn_program *p, prn_walked *w, bool learning, bool *fits,
                              prony_error *error)
{
    prn_bind_pass b = {.program = p, .frame = w->node.frame, .error = error};
    prn_node_def node = w->node;
    const uint32_t *forms = w->forms;
    node.dynamic = false;
    PRN_TRY(prn_bind_infer(&b, &node));
    *fits &= node.dynamic == w->node.dynamic;
    for (uint32_t k = 0; forms && k < node.output_count && *fits; k++)
        if (node.output_values[k]) *fits = prn_dim_classes_keep_form(x, &forms, node.output_values[k], w->members);
    if (!*fits || node.dynamic) return PRONY_OK;
    if (node.folded) return walk_folded(x, &b, w, learning, fits);
    if (learning || node.dead) return PRONY_OK;
    prn_layer *layer = &p->layers[w->layer];
    prony_cost cost = {0};
    PRN_TRY(prn_bind_cost(&b, &node, &cost));
    cost.parameters = layer->cost.parameters;
    return prn_layer_keep_cost(p, layer, &cost) ? PRONY_OK : prn_no_memory(error);
}

static void copy_shape(prony_shape *to, const prony_shape *from)
{
    to->rank = from->rank;
    for (int d = 0; d < from->rank; d++) to->dim[d] = from->dim[d];
}

/* Gives a constant the elements of the one that a congruent node made. */
static bool follow_constant(prn_program *p, prn_own_data *own, const prony_value *from)
{
    const size_t bytes = prn_value_bytes(from);
    if (!own->data || own->bytes != bytes || bytes == 0) {
        void *data = prn_alloc_aligned(64, bytes ? bytes : 1);
        if (!data) return false;
        prn_dynamic_dims_set_own(p, own, data);
        own->bytes = bytes;
    }
    if (bytes) memcpy(own->data, from->data, bytes);
    return true;
}

/* Gives a congruent node the results of the one that leads it. */
static bool walk_follow(prn_dynamic_dims *x, prn_program *p, const prn_walked *leader, const prn_walked *w)
{
    for (uint32_t k = 0; k < w->node.output_count; k++) {
        if (!w->node.output_values[k]) continue;
        const prn_value_def *from = p->values[leader->node.outputs[k]];
        prn_value_def *to = p->values[w->node.outputs[k]];
        to->info.kind = from->info.kind;
        to->info.dtype = from->info.dtype;
        to->moved_at = from->moved_at;
        copy_shape(&to->info.shape, &from->info.shape);
        if ((to->extents & PRN_DYNAMIC_DIMS_CHANGE) && !follow_constant(p, own_of(x, w->node.outputs[k]), &from->info))
            return false;
    }
    prn_layer *layer = &p->layers[w->layer];
    layer->moved_at = p->moves;
    return w->node.folded || w->node.dead || prn_layer_share_cost(p, layer, &p->layers[leader->layer]);
}

/* A node of the walk after the program was opened, and the nodes that it leads. Nodes whose inputs have not moved keep
 * shapes, constants and costs. */
static prony_status walk_again(prn_dynamic_dims *x, prn_program *p, prn_walked *w, bool *fits, prony_error *error)
{
    enum { FEW = 4 };
    const uint32_t count = w->node.output_count;
    w->pattern = 0;
    if (x->settled && !w->node.dynamic && !walk_moved(p, &w->node)) return PRONY_OK;
    prony_value few[FEW];
    const bool known = x->settled && !w->node.dynamic && count <= FEW;
    for (uint32_t k = 0; known && k < count; k++) {
        if (!w->node.output_values[k]) continue;
        few[k].kind = w->node.output_values[k]->kind;
        few[k].dtype = w->node.output_values[k]->dtype;
        copy_shape(&few[k].shape, &w->node.output_values[k]->shape);
    }
    p->layers[w->layer].moved_at = p->moves;
    PRN_TRY(walk_node(x, p, w, false, fits, error));
    w->pattern = walk_mark(p, w, few, !known);
    for (uint32_t n = w->next; n != PRN_NO_NODE && *fits; n = x->nodes[n].next)
        if (!walk_follow(x, p, w, &x->nodes[n])) return prn_no_memory(error);
    return PRONY_OK;
}

/* ---- nodes that the moved inputs reach ---- */

static bool is_reached(const prn_program *p, const prn_node_def *node)
{
    bool found = node->dynamic; /* inferred in every walk */
    for (uint32_t i = 0; i < node->input_count; i++)
        found |= node->inputs[i] != PRN_NO_VALUE && p->values[node->inputs[i]]->reached;
    return found;
}

/* Lists the nodes that the inputs in x->moved reach, all of which the next walk visits. Steps of a decoder move the
 * same inputs again and again. */
static prony_status list_reached(prn_dynamic_dims *x, prn_program *p, prony_error *error)
{
    const size_t inputs = p->input_count * sizeof *x->moved;
    if (x->reached && memcmp(x->reaching, x->moved, inputs) == 0) return PRONY_OK;
    if (!x->reached) x->reached = prn_calloc(x->count + 1, sizeof *x->reached);
    if (!x->active) x->active = prn_calloc(x->count + 1, sizeof *x->active);
    if (!x->reached || !x->active) return prn_no_memory(error);
    for (size_t v = 0; v < p->value_count; v++) p->values[v]->reached = false;
    for (size_t i = 0; i < p->input_count; i++) p->values[p->inputs[i]]->reached = x->moved[i];
    x->reached_count = 0;
    for (uint32_t n = 0; n < x->count; n++) {
        const prn_node_def *node = &x->nodes[n].node;
        if (!is_reached(p, node)) continue;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (node->output_values[k]) p->values[node->outputs[k]]->reached = true;
        if (!x->nodes[n].follows) x->reached[x->reached_count++] = n;
    }
    memcpy(x->reaching, x->moved, inputs);
    x->active_count = 0;
    p->reaches++;
    return PRONY_OK;
}

/* Notes what this walk moved, as long as the next walks move the same. */
static void note_moved(prn_dynamic_dims *x, prn_program *p)
{
    x->active_count = 0;
    for (size_t k = 0; k < x->reached_count; k++)
        if (x->nodes[x->reached[k]].pattern) x->active[x->active_count++] = x->reached[k];
    for (size_t v = 0; v < p->value_count; v++) p->values[v]->reached = p->values[v]->moved_at == p->moves;
    for (size_t l = 0; l < p->layer_count; l++) p->layers[l].reached = p->layers[l].moved_at == p->moves;
    p->reaches++;
}

static prony_status walk_visit(prn_dynamic_dims *x, prn_program *p, prn_walked *w, bool learning, bool *fits,
                               prony_error *error)
{
    if (w->follows && !learning) return PRONY_OK;
    PRN_TRY(prn_cancel_check(error));
    const prony_status status = learning ? walk_node(x, p, w, true, fits, error) : walk_again(x, p, w, fits, error);
    return status == PRONY_OK ? PRONY_OK : prn_error_blame(error, status, &w->node.info);
}

/* Visits the nodes that the moved inputs reach. While each node moves the outputs that it moved in the last walk, nodes
 * that it did not have to infer need no look: their inputs stay. */
static prony_status walk_reached(prn_dynamic_dims *x, prn_program *p, bool *fits, prony_error *error)
{
    bool same = x->active_count > 0;
    size_t rest = 0;
    for (size_t k = 0; k < x->active_count && same && *fits; k++) {
        prn_walked *w = &x->nodes[x->active[k]];
        const uint64_t before = w->pattern;
        PRN_TRY(walk_visit(x, p, w, false, fits, error));
        same = w->pattern == before && w->node.output_count <= PRN_PATTERN_VISITED;
        while (!same && rest < x->reached_count && x->reached[rest] <= x->active[k]) rest++;
    }
    if (same) return PRONY_OK;
    for (; rest < x->reached_count && *fits; rest++)
        PRN_TRY(walk_visit(x, p, &x->nodes[x->reached[rest]], false, fits, error));
    note_moved(x, p);
    return PRONY_OK;
}

/* ---- */

static prony_status walk_inputs(prn_dynamic_dims *x, prn_program *p, const prony_value *inputs, bool learning,
                                bool *fits, prony_error *error)
{
    const uint32_t *forms = x->input_forms;
    for (size_t i = 0; i < p->input_count; i++) {
        prn_value_def *value = p->values[p->inputs[i]];
        const bool moved = !(x->settled && prn_shape_equal(&value->info.shape, &inputs[i].shape));
        if (x->moved) x->moved[i] = moved;
        if (!learning && moved) value->moved_at = p->moves;
        if (moved) copy_shape(&value->info.shape, &inputs[i].shape);
        if (forms && *fits) *fits = prn_dim_classes_keep_form(x, &forms, &value->info, 1);
    }
    return x->settled && *fits ? list_reached(x, p, error) : PRONY_OK;
}

/* Visits all nodes, or, where the last walk left all values as they are now, those that the moved inputs reach. */
prony_status prn_dynamic_dims_walk(prn_dynamic_dims *x, prn_program *p, const prony_value *inputs, bool learning,
                                   bool *fits, prony_error *error)
{
    *fits = true;
    if (!learning) p->moves++;
    x->walks++;
    x->changed_count = 0;
    prony_status status = walk_inputs(x, p, inputs, learning, fits, error);
    p->reached_only = x->settled;
    if (x->settled && status == PRONY_OK && *fits) {
        status = walk_reached(x, p, fits, error);
        if (status == PRONY_OK && *fits) *fits = prn_dim_classes_complete(x);
    } else {
        x->active_count = 0;
        for (size_t n = 0; n < x->count && *fits && status == PRONY_OK; n++)
            status = walk_visit(x, p, &x->nodes[n], learning, fits, error);
    }
    x->settled = !learning && *fits && status == PRONY_OK;
    return status;
}
