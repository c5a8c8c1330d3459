/* Queries of rules about the node that they differentiate. */
#include "engine/gradient/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool prn_grad_is_float(const prn_gradient *g, uint32_t value)
{
    const prony_value *info = prn_grad_info(g, value);
    const prony_dtype t = info->dtype;
    return info->kind == PRONY_TENSOR && (t == PRONY_FLOAT32 || t == PRONY_FLOAT64 || t == PRONY_FLOAT16 ||
                                          t == PRONY_BFLOAT16 || t == PRONY_UNDEFINED);
}

/* ---- the node ---- */

uint32_t prn_grad_in(const prn_gradient *g, uint32_t i)
{
    return i < g->node->input_count ? g->node->inputs[i] : PRN_NO_VALUE;
}

uint32_t prn_grad_out(const prn_gradient *g, uint32_t k)
{
    return k < g->node->output_count ? g->node->outputs[k] : PRN_NO_VALUE;
}

uint32_t prn_grad_of(const prn_gradient *g, uint32_t k)
{
    const uint32_t id = k < g->node->output_count ? g->node->outputs[k] : PRN_NO_VALUE;
    return id != PRN_NO_VALUE && id < g->mark_count ? g->marks[id].gradient : PRN_NO_VALUE;
}

uint32_t prn_grad_or_zeros(prn_gradient *g, uint32_t k)
{
    const uint32_t there = prn_grad_of(g, k);
    if (there != PRN_NO_VALUE) return there;
    return prn_grad_filled(g, prn_grad_out(g, k), 0);
}

bool prn_grad_wants(const prn_gradient *g, uint32_t i)
{
    if (i >= g->node->input_count || g->node->inputs[i] == PRN_NO_VALUE) return false;
    const uint32_t id = g->node->inputs[i];
    return id < g->mark_count && g->marks[id].depends;
}

static bool grow_marks(prn_gradient *g, size_t need)
{
    if (need <= g->mark_count) return true;
    const size_t count = need > g->mark_count * 2 ? need : g->mark_count * 2;
    prn_gradient_mark *larger = prn_calloc(count, sizeof *larger);
    if (!larger) return false;
    if (g->mark_count) memcpy(larger, g->marks, g->mark_count * sizeof *larger);
    for (size_t i = g->mark_count; i < count; i++) larger[i].gradient = PRN_NO_VALUE;
    prn_free(g->marks);
    g->marks = larger;
    g->mark_count = count;
    return true;
}

prn_gradient_mark *prn_grad_mark(prn_gradient *g, uint32_t value)
{
    if (!grow_marks(g, (size_t)value + 1)) {
        if (!prn_grad_failed(g)) g->status = prn_no_memory(g->error);
        return NULL;
    }
    return &g->marks[value];
}

void prn_grad_add_to(prn_gradient *g, uint32_t value, uint32_t gradient)
{
    prn_gradient_mark *mark =
        prn_grad_failed(g) || value == PRN_NO_VALUE || gradient == PRN_NO_VALUE ? NULL : prn_grad_mark(g, value);
    if (!mark) return;
    const uint32_t before = mark->gradient;
    const uint32_t sum = before == PRN_NO_VALUE ? gradient : prn_grad_add(g, before, gradient);
    mark = prn_grad_failed(g) ? NULL : prn_grad_mark(g, value);
    if (mark) mark->gradient = sum;
}

void prn_grad_give(prn_gradient *g, uint32_t i, uint32_t gradient)
{
    if (prn_grad_wants(g, i)) prn_grad_add_to(g, g->node->inputs[i], gradient);
}

void prn_grad_give_summed(prn_gradient *g, uint32_t i, uint32_t gradient)
{
    if (prn_grad_wants(g, i)) prn_grad_give(g, i, prn_grad_unbroadcast(g, gradient, prn_grad_in(g, i)));
}

void prn_grad_through(prn_gradient *g, uint32_t k, uint32_t value)
{
    const uint32_t gradient = prn_grad_of(g, k);
    if (gradient == PRN_NO_VALUE) return;
    g->seeded = true;
    prn_grad_add_to(g, value, gradient);
}

/* ---- attributes ---- */

int64_t prn_grad_int(const prn_gradient *g, const char *attribute, int64_t otherwise)
{
    const prn_attr *a = prn_attr_find(g->node->info.attributes, attribute);
    return a ? a->i : otherwise;
}

double prn_grad_float(const prn_gradient *g, const char *attribute, double otherwise)
{
    const prn_attr *a = prn_attr_find(g->node->info.attributes, attribute);
    return a ? (double)a->f : otherwise;
}

const char *prn_grad_text(const prn_gradient *g, const char *attribute, const char *otherwise)
{
    const prn_attr *a = prn_attr_find(g->node->info.attributes, attribute);
    return a && a->type == PRN_ATTR_STRING && a->s.data ? a->s.data : otherwise;
}

const int64_t *prn_grad_ints(const prn_gradient *g, const char *attribute, size_t *count)
{
    const prn_attr *a = prn_attr_find(g->node->info.attributes, attribute);
    const bool there = a && a->type == PRN_ATTR_INTS && a->ints;
    *count = there ? a->count : 0;
    return there ? a->ints : NULL;
}

/* ---- failures ---- */

void prn_grad_refuse(prn_gradient *g, const char *format, ...)
{
    char why[256];
    va_list args;
    if (prn_grad_failed(g)) return;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    const prn_node_def *node = g->node;
    const char *tensor =
        node->output_count && node->outputs[0] != PRN_NO_VALUE ? g->program->values[node->outputs[0]]->name : "";
    g->status = prn_fail(g->error, PRONY_UNSUPPORTED, "node '%s' (Gradient): tensor '%s' of node '%s' (%s%s%s): %s",
                         g->job->name, tensor, node->info.name, node->info.domain, *node->info.domain ? "::" : "",
                         node->info.op_type, why);
}

/* ---- shapes and constants ---- */

int prn_grad_rank(prn_gradient *g, uint32_t value)
{
    if (prn_grad_failed(g) || value == PRN_NO_VALUE) return -1;
    const int rank = prn_grad_info(g, value)->shape.rank;
    if (rank < 0)
        prn_grad_refuse(g, "its gradient needs the rank of '%s', which is known only at run time",
                        g->program->values[value]->name);
    return rank;
}

const prony_shape *prn_grad_shape(prn_gradient *g, uint32_t value)
{
    if (prn_grad_failed(g) || value == PRN_NO_VALUE) return NULL;
    const prony_shape *shape = &prn_grad_info(g, value)->shape;
    if (!prn_shape_known(shape)) {
        prn_grad_refuse(g, "its gradient needs the shape of '%s', which is known only at run time",
                        g->program->values[value]->name);
        return NULL;
    }
    if (prn_dynamic_dims_affect(g->program->values[value]->extents)) {
        const uint32_t said = prn_grad_shape_of(g, value);
        if (prn_grad_failed(g)) return NULL;
        g->program->values[said]->extents |= PRN_DYNAMIC_DIMS_DECIDE;
    }
    return shape;
}

bool prn_grad_constant(prn_gradient *g, uint32_t value, void *out, size_t bytes)
{
    prn_program *p = g->program;
    if (prn_grad_failed(g) || value == PRN_NO_VALUE) return false;
    const prn_value_def *def = p->values[value];
    if (!def->constant || !def->info.data || prn_dynamic_dims_affect(def->extents) ||
        prn_value_bytes(&def->info) > bytes)
        return false;
    const size_t held = p->refs.held_count;
    g->status = prn_program_hold(p, value, g->error);
    if (!prn_grad_failed(g)) memcpy(out, def->info.data, prn_value_bytes(&def->info));
    prn_weight_cache_unpin(p->model->shared, &p->refs, held);
    return !prn_grad_failed(g);
}

bool prn_grad_constant_ints(prn_gradient *g, uint32_t value, int64_t *out, size_t most, size_t *count)
{
    int32_t narrow[PRONY_MAX_RANK];
    if (prn_grad_failed(g) || value == PRN_NO_VALUE) return false;
    const prony_value *info = prn_grad_info(g, value);
    const int64_t elements = prony_shape_numel(&info->shape);
    if (elements < 0 || (uint64_t)elements > most || most > PRONY_MAX_RANK) return false;
    *count = (size_t)elements;
    if (info->dtype == PRONY_INT64) return prn_grad_constant(g, value, out, most * sizeof *out);
    if (info->dtype != PRONY_INT32 || !prn_grad_constant(g, value, narrow, sizeof narrow)) return false;
    for (size_t i = 0; i < *count; i++) out[i] = narrow[i];
    return true;
}

bool prn_grad_constant_float(prn_gradient *g, uint32_t value, double *out)
{
    float narrow = 0;
    if (prn_grad_failed(g) || value == PRN_NO_VALUE) return false;
    const prony_value *info = prn_grad_info(g, value);
    if (prony_shape_numel(&info->shape) != 1) return false;
    if (info->dtype == PRONY_FLOAT64) return prn_grad_constant(g, value, out, sizeof *out);
    if (info->dtype != PRONY_FLOAT32 || !prn_grad_constant(g, value, &narrow, sizeof narrow)) return false;
    *out = (double)narrow;
    return true;
}
