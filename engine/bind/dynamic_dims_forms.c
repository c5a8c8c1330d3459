/* The classes of equal extents, the forms of values, and nodes that are congruent because of them. */
#include "base/memory/alloc.h"
#include "engine/bind/congruent_nodes.h"
#include "engine/bind/dynamic_dims_parts.h"

#include <string.h>

#define MOST_CLASSES 4096 /* searched linearly, while the program is opened; chosen without measurement */

static uint32_t form_head(const prony_value *value)
{
    return (uint32_t)value->dtype << 16 | (uint32_t)(value->kind & 0xff) << 8 | (uint8_t)(value->shape.rank + 1);
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
    x->classes[x->class_count] = (prn_extent_class){.first = first, .second = second};
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
    for (size_t d = 0; d < known_rank(first); d++, (*forms)++) {
        if (!dynamic_dims_class_of(x, first->dim[d], second->shape.dim[d], *forms, status, error)) return false;
        x->classes[**forms].members++;
    }
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

prony_status prn_dim_classes_note(prn_dynamic_dims *x, prn_program *p, const prony_shape *inputs, bool *fits,
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
        prn_walked *w = &x->nodes[n];
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

/* true: the extent is one that the class may have, and that its extents met so far in this walk have. */
static bool class_takes(prn_dynamic_dims *x, uint32_t class, int64_t extent, size_t members)
{
    prn_extent_class *c = &x->classes[class];
    if (c->first == c->second) return extent == c->first;
    if (c->walk == x->walks && c->now != extent) return false;
    if (extent <= 0) return false;
    if (c->walk != x->walks) {
        c->before = x->settled ? c->now : extent;
        c->walk = x->walks;
        c->met = 0;
        c->now = extent;
        if (c->before != extent) x->changed[x->changed_count++] = class;
    }
    c->met += members;
    return true;
}

bool prn_dim_classes_keep_form(prn_dynamic_dims *x, const uint32_t **forms, const prony_value *value, size_t members)
{
    if (*(*forms)++ != form_head(value)) return false;
    for (size_t d = 0, rank = known_rank(&value->shape); d < rank; d++)
        if (!class_takes(x, *(*forms)++, value->shape.dim[d], members)) return false;
    return true;
}

bool prn_dim_classes_complete(const prn_dynamic_dims *x)
{
    for (size_t k = 0; k < x->changed_count; k++)
        if (x->classes[x->changed[k]].met != x->classes[x->changed[k]].members) return false;
    return true;
}

/* ---- congruent nodes ---- */

/* Writes a value's type and extents behind *words: extents that change as classes. */
static void write_signature(const prn_dynamic_dims *x, const prony_value *value, const uint32_t *classes,
                            int64_t **words, prn_value_signature *out)
{
    out->words = *words;
    *(*words)++ = form_head(value);
    for (size_t d = 0; d < known_rank(&value->shape); d++) {
        const prn_extent_class *c = classes ? &x->classes[classes[d]] : NULL;
        *(*words)++ = c && c->first != c->second ? -1 - (int64_t)classes[d] : value->shape.dim[d];
    }
    out->count = (size_t)(*words - out->words);
}

static void write_signatures(const prn_dynamic_dims *x, const prn_program *p, int64_t *words, prn_value_signature *out)
{
    for (uint32_t v = 0; v < p->value_count; v++)
        if (!prn_dynamic_dims_affect(p->values[v]->extents) && prn_shape_known(&p->values[v]->info.shape))
            write_signature(x, &p->values[v]->info, NULL, &words, &out[v]);
    const uint32_t *forms = x->input_forms;
    for (size_t i = 0; i < p->input_count; i++) {
        const prony_value *value = &p->values[p->inputs[i]]->info;
        write_signature(x, value, forms + 1, &words, &out[p->inputs[i]]);
        forms += 1 + known_rank(&value->shape);
    }
    for (size_t n = 0; n < x->count; n++) {
        const prn_node_def *node = &x->nodes[n].node;
        forms = x->nodes[n].forms;
        for (uint32_t k = 0; k < node->output_count; k++) {
            const prony_value *value = node->output_values[k];
            if (!value) continue;
            if (prn_shape_known(&value->shape)) write_signature(x, value, forms + 1, &words, &out[node->outputs[k]]);
            forms += 1 + known_rank(&value->shape);
        }
    }
}

/* Congruent nodes form a list: the first one leads, counts `members`, and `next` goes on in graph order. Layers hold
 * the leader's layer plus 1, since 0 means none. `last` shares the allocation of `leader`: the last member so far of
 * the list that a node leads. */
prony_status prn_dim_classes_link(prn_dynamic_dims *x, prn_program *p, prony_error *error)
{
    const size_t words = (p->value_count + p->input_count) * (PRONY_MAX_RANK + 1);
    int64_t *room = prn_calloc(words + 1, sizeof *room);
    prn_value_signature *signatures = prn_calloc(p->value_count + 1, sizeof *signatures);
    const prn_node_def **nodes = prn_calloc(x->count + 1, sizeof *nodes);
    uint32_t *leader = prn_calloc(2 * x->count + 1, sizeof *leader), *last = leader ? leader + x->count : NULL;
    prony_status status = PRONY_OK;
    if (!room || !signatures || !nodes || !leader) status = prn_no_memory(error);
    if (status == PRONY_OK) {
        write_signatures(x, p, room, signatures);
        for (size_t n = 0; n < x->count; n++) nodes[n] = &x->nodes[n].node;
        status = prn_congruent_nodes(p, nodes, x->count, signatures, leader, error);
    }
    for (uint32_t n = 0; status == PRONY_OK && n < x->count; n++) {
        last[n] = n;
        if (leader[n] == n) continue;
        x->nodes[n].follows = true;
        p->layers[x->nodes[n].layer].leader = x->nodes[leader[n]].layer + 1;
        x->nodes[leader[n]].members++;
        x->nodes[last[leader[n]]].next = n;
        last[leader[n]] = n;
    }
    prn_free(room);
    prn_free(signatures);
    prn_free(nodes);
    prn_free(leader);
    return status;
}
