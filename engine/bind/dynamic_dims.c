/* Opens a program for other extents, and takes it to them. */
#include "engine/bind/dynamic_dims.h"

#include "base/memory/alloc.h"
#include "engine/bind/dynamic_dims_parts.h"

#include <string.h>

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
    prn_free(x->own_at);
    prn_free(x->changed);
    prn_free(x->moved);
    prn_free(x->reached);
    prn_free(x->active);
    prn_free(x);
}

/* ---- the walked nodes ---- */

/* Copies a node with its layer's wiring, because rewrites edit the node itself. */
static prony_status copy_node(prn_program *p, const prn_node_def *node, prn_walked *out, prony_error *error)
{
    const prn_layer *layer = &p->layers[node->layers[0]];
    *out = (prn_walked){.node = *node, .layer = node->layers[0], .next = PRN_NO_NODE, .members = 1};
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
        prn_walked *w = &x->nodes[x->count++];
        w->shapes = prn_calloc(w->node.output_count + 1, sizeof *w->shapes);
        if (!w->shapes) return prn_no_memory(error);
        for (uint32_t k = 0; k < w->node.output_count; k++)
            if (w->node.output_values[k]) w->shapes[k] = w->node.output_values[k]->shape;
    }
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
    if (status == PRONY_OK && *fits) status = prn_dynamic_dims_walk(x, p, second, true, fits, error);
    if (status == PRONY_OK && *fits) status = prn_dim_classes_note(x, p, first, fits, error);
    if (status == PRONY_OK && *fits) status = prn_dim_classes_link(x, p, error);
    for (size_t i = 0; i < x->own_count; i++) prn_dynamic_dims_set_own(p, &x->own[i], NULL);
    for (size_t n = 0; n < x->count; n++) { /* rewrites see the first extents, which occur nowhere else */
        prn_walked *w = &x->nodes[n];
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
        PRN_TRY(prn_dynamic_dims_add_own(x, p, node->inputs[1], node->outputs[0], error));
    }
    x->moved = prn_calloc(2 * p->input_count + 1, sizeof *x->moved);
    x->own_at = prn_calloc(p->value_count + 1, sizeof *x->own_at);
    if (!x->moved || !x->own_at || !PRN_GROW(x->changed, x->changed_capacity, x->class_count + 1))
        return prn_no_memory(error);
    x->reaching = x->moved + p->input_count;
    for (size_t i = 0; i < x->own_count; i++) x->own_at[x->own[i].value] = (uint32_t)i;
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
        prn_own_data *own = &x->own[i];
        if (own->shape_of == PRN_NO_VALUE) continue;
        const prony_shape *shape = &p->values[own->shape_of]->info.shape;
        const size_t bytes = (size_t)shape->rank * sizeof(int64_t);
        if (!own->data) prn_dynamic_dims_set_own(p, own, prn_alloc_aligned(64, bytes ? bytes : 1));
        if (!own->data) return prn_no_memory(error);
        memcpy(own->data, shape->dim, bytes);
    }
    return PRONY_OK;
}

prony_status prn_dynamic_dims_set(prn_dynamic_dims *x, const prony_value *inputs, bool *fits, prony_error *error)
{
    prn_program *p = x->program;
    PRN_TRY(prn_dynamic_dims_walk(x, p, inputs, false, fits, error));
    return *fits ? set_shapes(x, p, error) : PRONY_OK;
}
