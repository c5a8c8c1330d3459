/* The walk over the bound nodes, and the classes of equal extents. */
#include "engine/bind/dynamic_dims.h"

#include "base/threads/cancel.h"
#include "engine/bind/bind_pass.h"

#include <string.h>

#define MOST_CLASSES 4096 /* searched linearly, while the program is opened; chosen without measurement */

typedef struct walked {
    prn_node_def node; /* as it was bound */
    uint32_t layer;
    prony_shape *shapes; /* of its outputs at the first extents; while the program is opened */
    uint32_t *forms;     /* type and rank of each output, and the classes of its extents behind them */
} walked;

/* Extents that are always equal to one another. */
typedef struct extent_class {
    int64_t first, second; /* at the extents that it was opened with */
    int64_t now;           /* -1: not met yet */
} extent_class;

/* Elements of a constant that changes. */
typedef struct own_data {
    uint32_t value;
    uint32_t shape_of; /* the elements are the extents of this value; PRN_NO_VALUE: a walked node makes them */
    void *data;
} own_data;

struct prn_dynamic_dims {
    prn_program *program;
    walked *nodes;
    size_t count, capacity;
    extent_class *classes;
    size_t class_count, class_capacity;
    own_data *own;
    size_t own_count, own_capacity, next_own;
    uint32_t *input_forms; /* as `forms`, of all inputs */
    size_t bound_values;   /* values of the program before it was rewritten */
    bool settled;          /* the last walk finished: nodes whose inputs have not moved since keep their results */
};

static uint32_t form_head(const prony_value *value)
{
    return (uint32_t)value->dtype << 16 | (uint32_t)(value->kind & 0xff) << 8 | (uint8_t)(value->shape.rank + 1);
}

static bool dynamic_dims_reached(const prn_program *p, uint32_t value)
{
    return value != PRN_NO_VALUE && prn_dynamic_dims_affect(p->values[value]->extents);
}

void prn_dynamic_dims_release(prn_dynamic_dims *x)
{
    if (!x) return;
    for (size_t i = 0; i < x->count; i++) prn_free(x->nodes[i].shapes);
    for (size_t i = 0; i < x->own_count; i++) prn_free_aligned(x->own[i].data);
    prn_free(x->nodes);
    prn_free(x->classes);
    prn_free(x->own);
    prn_free(x);
}

/* ---- the walked nodes ---- */

/* Copies a node with its layer's wiring, because rewrites edit the node itself. */
static prony_status copy_node(prn_program *p, const prn_node_def *node, walked *out, prony_error *error)
{
    const prn_layer *layer = &p->layers[node->layers[0]];
    *out = (walked){.node = *node, .layer = node->layers[0]};
    prn_node_def *copy = &out->node;
    const prony_value **in = prn_bump_alloc(&p->pool, layer->input_count + 1, sizeof *in);
    prony_value **made = prn_bump_alloc(&p->pool, layer->output_count + 1, sizeof *made);
    if (!in || !made) return prn_no_memory(error);
    uint32_t count = layer->input_count;
    for (uint32_t i = 0; i < count; i++)
        in[i] = layer->inputs[i] == PRN_NO_VALUE ? NULL : &p->values[layer->inputs[i]]->info;
    for (uint32_t k = 0; k < layer->output_count; k++)
        made[k] = layer->outputs[k] == PRN_NO_VALUE ? NULL : &p->values[layer->outputs[k]]->info;
    copy->inputs = (uint32_t *)(uintptr_t)layer->inputs;
    copy->outputs = (uint32_t *)(uintptr_t)layer->outputs;
    copy->input_values = in;
    copy->output_values = made;
    copy->input_count = count;
    copy->output_count = layer->output_count;
    return PRONY_OK;
}

static bool node_reached(const prn_program *p, const prn_node_def *node)
{
    bool found = false;
    for (uint32_t i = 0; i < node->input_count; i++) found |= dynamic_dims_reached(p, node->inputs[i]);
    for (uint32_t c = 0; c < node->child_count; c++)
        for (uint32_t k = 0; k < node->children[c].captured_count; k++)
            found |= dynamic_dims_reached(p, node->children[c].captured[k]);
    return found;
}

/* true: a branch replaced the node, so nothing was inferred for it. */
static bool is_replaced(const prn_node_def *node)
{
    return node->dead && node->child_count == 0 && !*node->info.domain && strcmp(node->info.op_type, "If") == 0;
}

/* Collects all nodes, also unread ones, because their shapes may be used. *fits false: a subgraph was bound for these
 * extents. */
static prony_status dynamic_dims_collect(prn_dynamic_dims *x, prn_program *p, bool *fits, prony_error *error)
{
    *fits = true;
    for (size_t n = 0; n < p->node_count; n++) {
        const prn_node_def *node = p->nodes[n];
        if (is_replaced(node) || !node_reached(p, node)) continue;
        if (node->child_count > 0) {
            *fits = false;
            return PRONY_OK;
        }
        if (!PRN_GROW(x->nodes, x->capacity, x->count + 1)) return prn_no_memory(error);
        PRN_TRY(copy_node(p, node, &x->nodes[x->count], error));
        walked *w = &x->nodes[x->count++];
        w->shapes = prn_calloc(w->node.output_count + 1, sizeof *w->shapes);
        if (!w->shapes) return prn_no_memory(error);
        for (uint32_t k = 0; k < w->node.output_count; k++)
            if (w->node.output_values[k]) w->shapes[k] = w->node.output_values[k]->shape;
    }
    return PRONY_OK;
}

/* ---- classes ---- */

/* The class of an extent that was `first` and then `second`; false: an equal extent became another number. */
static bool dynamic_dims_class_of(prn_dynamic_dims *x, int64_t first, int64_t second, uint32_t *out,
                                  prony_status *status, prony_error *error)
{
    for (size_t i = 0; i < x->class_count; i++) {
        if (x->classes[i].first != first) continue;
        *out = (uint32_t)i;
        return x->classes[i].second == second;
    }
    if (x->class_count == MOST_CLASSES) return false;
    if (!PRN_GROW(x->classes, x->class_capacity, x->class_count + 1)) {
        *status = prn_no_memory(error);
        return false;
    }
    x->classes[x->class_count] = (extent_class){first, second, -1};
    *out = (uint32_t)x->class_count++;
    return true;
}

static size_t known_rank(const prony_shape *shape)
{
    return prn_shape_known(shape) ? (size_t)shape->rank : 0;
}

/* Adds a value's form to `*forms`. */
static bool note_form(prn_dynamic_dims *x, uint32_t **forms, const prony_shape *first, const prony_value *second,
                      prony_status *status, prony_error *error)
{
    if (first->rank != second->shape.rank || prn_shape_known(first) != prn_shape_known(&second->shape)) return false;
    *(*forms)++ = form_head(second);
    for (size_t d = 0; d < known_rank(first); d++)
        if (!dynamic_dims_class_of(x, first->dim[d], second->shape.dim[d], (*forms)++, status, error)) return false;
    return true;
}

/* Notes extents of unchanging values, and 0 and 1, which have a meaning of their own. */
static bool note_fixed(prn_dynamic_dims *x, const prn_program *p, prony_status *status, prony_error *error)
{
    uint32_t ignored;
    if (!dynamic_dims_class_of(x, 0, 0, &ignored, status, error) ||
        !dynamic_dims_class_of(x, 1, 1, &ignored, status, error))
        return false;
    for (size_t v = 0; v < p->value_count; v++) {
        const prony_shape *shape = &p->values[v]->info.shape;
        if (p->values[v]->extents & PRN_DYNAMIC_DIMS_AFFECT) continue;
        for (size_t d = 0; d < known_rank(shape); d++)
            if (!dynamic_dims_class_of(x, shape->dim[d], shape->dim[d], &ignored, status, error)) return false;
    }
    return true;
}

static prony_status note_forms(prn_dynamic_dims *x, prn_program *p, const prony_shape *inputs, bool *fits,
                               prony_error *error)
{
    prony_status status = PRONY_OK;
    size_t words = 0;
    *fits = note_fixed(x, p, &status, error);
    for (size_t i = 0; i < p->input_count; i++) words += 1 + known_rank(&inputs[i]);
    uint32_t *at = x->input_forms = prn_bump_alloc(&p->pool, words + 1, sizeof *at);
    if (!at) return prn_no_memory(error);
    for (size_t i = 0; i < p->input_count && *fits; i++)
        *fits = note_form(x, &at, &inputs[i], &p->values[p->inputs[i]]->info, &status, error);
    for (size_t n = 0; n < x->count && *fits; n++) {
        walked *w = &x->nodes[n];
        words = 0;
        for (uint32_t k = 0; k < w->node.output_count; k++) words += 1 + known_rank(&w->shapes[k]);
        at = w->forms = prn_bump_alloc(&p->pool, words + 1, sizeof *at);
        if (!at) return prn_no_memory(error);
        for (uint32_t k = 0; k < w->node.output_count && *fits; k++)
            if (w->node.output_values[k])
                *fits = note_form(x, &at, &w->shapes[k], w->node.output_values[k], &status, error);
    }
    return status;
}

/* true: the value has its noted form, with the classes' current extents. */
static bool dynamic_dims_keeps_form(prn_dynamic_dims *x, const uint32_t **forms, const prony_value *value)
{
    if (*(*forms)++ != form_head(value)) return false;
    for (size_t d = 0; d < known_rank(&value->shape); d++) {
        extent_class *c = &x->classes[*(*forms)++];
        const int64_t extent = value->shape.dim[d];
        if (c->now < 0 && (extent > 0 || c->first == 0)) c->now = extent;
        if (c->now != extent) return false;
    }
    return true;
}

static void forget_extents(prn_dynamic_dims *x)
{
    for (size_t i = 0; i < x->class_count; i++)
        x->classes[i].now = x->classes[i].first == x->classes[i].second ? x->classes[i].first : -1;
}

/* ---- the walk ---- */

/* Found by a cursor, because values are requested in the order in which they were added. */
static own_data *own_of(prn_dynamic_dims *x, uint32_t value)
{
    for (size_t i = 0; i < x->own_count; i++, x->next_own++) {
        if (x->next_own >= x->own_count) x->next_own = 0;
        if (x->own[x->next_own].value == value) return &x->own[x->next_own++];
    }
    return NULL;
}

static prony_status dynamic_dims_add_own(prn_dynamic_dims *x, prn_program *p, uint32_t value, uint32_t shape_of,
                                         prony_error *error)
{
    if (!PRN_GROW(x->own, x->own_capacity, x->own_count + 1)) return prn_no_memory(error);
    x->own[x->own_count++] = (own_data){value, shape_of, NULL};
    p->values[value]->info.data = NULL;
    p->values[value]->shared = NULL;
    return PRONY_OK;
}

static void set_own(prn_program *p, own_data *own, void *data)
{
    prn_free_aligned(own->data);
    own->data = data;
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
        prony_status status = dynamic_dims_add_own(x, p, id, PRN_NO_VALUE, error);
        if (status != PRONY_OK) prn_free_aligned(data);
        PRN_TRY(status);
    }
    set_own(p, own_of(x, id), data);
    return PRONY_OK;
}

static prony_status walk_folded(prn_dynamic_dims *x, prn_bind_pass *b, walked *w, bool learning, bool *fits)
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

/* Marks the outputs that differ from `before`; constants that were evaluated again differ by their address at least. */
static void walk_mark(prn_program *p, const walked *w, const prony_value *before, bool all)
{
    for (uint32_t k = 0; k < w->node.output_count; k++) {
        if (!w->node.output_values[k]) continue;
        prn_value_def *value = p->values[w->node.outputs[k]];
        const bool changes = (value->extents & PRN_DYNAMIC_DIMS_CHANGE) != 0;
        if (all || changes || value->info.dtype != before[k].dtype || value->info.kind != before[k].kind ||
            !prn_shape_equal(&value->info.shape, &before[k].shape))
            value->moved_at = p->moves;
    }
}

static prony_status walk_node(prn_dynamic_dims *x, prn_program *p, walked *w, bool learning, bool *fits,
                              prony_error *error)
{
    prn_bind_pass b = {.program = p, .frame = w->node.frame, .error = error};
    prn_node_def node = w->node;
    const uint32_t *forms = w->forms;
    node.dynamic = false;
    PRN_TRY(prn_bind_infer(&b, &node));
    *fits &= node.dynamic == w->node.dynamic;
    for (uint32_t k = 0; forms && k < node.output_count && *fits; k++)
        if (node.output_values[k]) *fits = dynamic_dims_keeps_form(x, &forms, node.output_values[k]);
    if (!*fits || node.dynamic) return PRONY_OK;
    if (node.folded) return walk_folded(x, &b, w, learning, fits);
    if (learning || node.dead) return PRONY_OK;
    prn_layer *layer = &p->layers[w->layer];
    prony_cost cost = {0};
    PRN_TRY(prn_bind_cost(&b, &node, &cost));
    cost.parameters = layer->cost.parameters;
    return prn_layer_keep_cost(p, layer, &cost) ? PRONY_OK : prn_no_memory(error);
}

/* A node of the walk after the program was opened. Nodes whose inputs have not moved keep shapes, constants and costs;
 * their forms are checked like all others. */
static prony_status walk_again(prn_dynamic_dims *x, prn_program *p, walked *w, bool *fits, prony_error *error)
{
    enum { FEW = 4 };
    const uint32_t *forms = w->forms, count = w->node.output_count;
    if (x->settled && !w->node.dynamic && !walk_moved(p, &w->node)) {
        for (uint32_t k = 0; forms && k < count && *fits; k++)
            if (w->node.output_values[k]) *fits = dynamic_dims_keeps_form(x, &forms, w->node.output_values[k]);
        return PRONY_OK;
    }
    prony_value few[FEW];
    const bool known = x->settled && !w->node.dynamic && count <= FEW;
    for (uint32_t k = 0; known && k < count; k++)
        if (w->node.output_values[k]) few[k] = *w->node.output_values[k];
    p->layers[w->layer].moved_at = p->moves;
    PRN_TRY(walk_node(x, p, w, false, fits, error));
    walk_mark(p, w, few, !known);
    return PRONY_OK;
}

static prony_status dynamic_dims_walk(prn_dynamic_dims *x, prn_program *p, const prony_value *inputs, bool learning,
                                      bool *fits, prony_error *error)
{
    const uint32_t *forms = x->input_forms;
    *fits = true;
    if (!learning) p->moves++;
    for (size_t i = 0; i < p->input_count; i++) {
        prn_value_def *value = p->values[p->inputs[i]];
        if (!learning && !(x->settled && prn_shape_equal(&value->info.shape, &inputs[i].shape)))
            value->moved_at = p->moves;
        value->info.shape = inputs[i].shape;
    }
    for (size_t i = 0; i < p->input_count && forms && *fits; i++)
        *fits = dynamic_dims_keeps_form(x, &forms, &p->values[p->inputs[i]]->info);
    for (size_t n = 0; n < x->count && *fits; n++) {
        prony_status status = prn_cancel_check(error);
        if (status != PRONY_OK) {
            x->settled = false;
            return status;
        }
        status =
            learning ? walk_node(x, p, &x->nodes[n], true, fits, error) : walk_again(x, p, &x->nodes[n], fits, error);
        if (status != PRONY_OK) {
            x->settled = false;
            return prn_error_blame(error, status, &x->nodes[n].node.info);
        }
    }
    x->settled = !learning && *fits;
    return PRONY_OK;
}

/* ---- */

/* Walks the nodes at the second extents to learn what changes, then restores the first extents, which rewrites must
 * see. */
prony_status prn_dynamic_dims_open(prn_dynamic_dims **out, prn_program *p, const prony_value *second, bool *fits,
                                   prony_error *error)
{
    *fits = false;
    prn_dynamic_dims *x = *out = prn_calloc(1, sizeof *x);
    prony_shape *first = prn_calloc(p->input_count + 1, sizeof *first);
    if (!x || !first) {
        prn_free(first);
        return prn_no_memory(error);
    }
    x->program = p;
    x->bound_values = p->value_count;
    for (size_t i = 0; i < p->input_count; i++) first[i] = p->values[p->inputs[i]]->info.shape;
    prony_status status = dynamic_dims_collect(x, p, fits, error);
    if (status == PRONY_OK && *fits) status = dynamic_dims_walk(x, p, second, true, fits, error);
    if (status == PRONY_OK && *fits) status = note_forms(x, p, first, fits, error);
    for (size_t i = 0; i < x->own_count; i++) set_own(p, &x->own[i], NULL);
    for (size_t n = 0; n < x->count; n++) { /* rewrites see the first extents, which occur nowhere else */
        walked *w = &x->nodes[n];
        for (uint32_t k = 0; w->shapes && k < w->node.output_count; k++)
            if (w->node.output_values[k]) w->node.output_values[k]->shape = w->shapes[k];
        prn_free(w->shapes);
        w->shapes = NULL;
    }
    for (size_t i = 0; i < p->input_count; i++) p->values[p->inputs[i]]->info.shape = first[i];
    prn_free(first);
    return status;
}

void prn_dynamic_dims_fixed(const prn_dynamic_dims *x, bool *fixed, bool *any)
{
    const prn_program *p = x->program;
    *any = false;
    for (size_t n = 0; n < x->count; n++) {
        const prn_node_def *node = &x->nodes[n].node;
        for (uint32_t k = 0; node->folded && k < node->output_count; k++) {
            if (node->outputs[k] == PRN_NO_VALUE || (p->values[node->outputs[k]]->extents & PRN_DYNAMIC_DIMS_CHANGE))
                continue;
            fixed[node->outputs[k]] = *any = true;
        }
    }
}

/* true: a rewrite made this constant from changing extents. */
static bool made_of_extents(const prn_dynamic_dims *x, const prony_shape *shape)
{
    for (int d = 0; d < shape->rank; d++)
        for (size_t i = 0; i < x->class_count; i++)
            if (x->classes[i].first == shape->dim[d] && x->classes[i].second != x->classes[i].first) return true;
    return false;
}

/* Counts the reads by walked nodes. */
static void count_uses(const prn_dynamic_dims *x, uint32_t *uses)
{
    for (size_t i = 0; i < x->count; i++) {
        const prn_node_def *node = &x->nodes[i].node;
        for (uint32_t k = 0; k < node->input_count; k++)
            if (node->inputs[k] != PRN_NO_VALUE) uses[node->inputs[k]]++;
        for (uint32_t k = 0; node->folded && k < node->output_count; k++) /* kept to compare with their new values */
            if (node->outputs[k] != PRN_NO_VALUE) uses[node->outputs[k]]++;
    }
}

prony_status prn_dynamic_dims_rewritten(prn_dynamic_dims *x, bool *fits, prony_error *error)
{
    prn_program *p = x->program;
    *fits = true;
    for (size_t v = x->bound_values; v < p->value_count; v++) *fits &= !made_of_extents(x, &p->values[v]->info.shape);
    for (size_t n = 0; n < p->node_count; n++) {
        const prn_node_def *node = p->nodes[n];
        if (node->dead || strcmp(node->info.op_type, "Reshape") != 0 || node->input_count < 2 ||
            node->inputs[1] < x->bound_values || node->inputs[1] == PRN_NO_VALUE ||
            !dynamic_dims_reached(p, node->outputs[0]))
            continue;
        PRN_TRY(dynamic_dims_add_own(x, p, node->inputs[1], node->outputs[0], error));
    }
    uint32_t *uses = prn_calloc(p->value_count + 1, sizeof *uses);
    if (!uses) return prn_no_memory(error);
    count_uses(x, uses);
    const bool trimmed = prn_program_trim(p, uses);
    prn_free(uses);
    return trimmed ? PRONY_OK : prn_no_memory(error);
}

static prony_status set_shapes(prn_dynamic_dims *x, prn_program *p, prony_error *error)
{
    for (size_t i = 0; i < x->own_count; i++) {
        own_data *own = &x->own[i];
        if (own->shape_of == PRN_NO_VALUE) continue;
        const prony_shape *shape = &p->values[own->shape_of]->info.shape;
        const size_t bytes = (size_t)shape->rank * sizeof(int64_t);
        if (!own->data) set_own(p, own, prn_alloc_aligned(64, bytes ? bytes : 1));
        if (!own->data) return prn_no_memory(error);
        memcpy(own->data, shape->dim, bytes);
    }
    return PRONY_OK;
}

prony_status prn_dynamic_dims_set(prn_dynamic_dims *x, const prony_value *inputs, bool *fits, prony_error *error)
{
    prn_program *p = x->program;
    forget_extents(x);
    PRN_TRY(dynamic_dims_walk(x, p, inputs, false, fits, error));
    return *fits ? set_shapes(x, p, error) : PRONY_OK;
}
