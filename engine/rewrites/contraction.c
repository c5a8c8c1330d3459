/* Conv, ConvTranspose, Gemm and MatMul with constant weights, seen as output channels: the weights and bias of a
 * channel, and folding a scale and a shift per channel into them.
 *
 * Invariant: new weights are computed in double from the old ones and rounded once, so they depend on the model
 * alone. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"
#include "base/threads/cancel.h"

#include <math.h>
#include <string.h>

static void contraction_read_conv(prn_contraction *c)
{
    const prony_shape *w = c->weight_shape;
    c->axis = 1;
    c->channels = c->modulus = w->dim[0];
    c->inner = prn_shape_count(w, 1, w->rank);
    c->block = prony_shape_numel(w);
}

/* Weights are [in, out / group, spatial …]; a block of them is one group's input channels. */
static bool read_conv_transpose(prn_contraction *c)
{
    const prony_shape *w = c->weight_shape;
    int64_t groups = prn_node_int(c->node, "group", 1);
    if (groups < 1 || w->rank < 2 || w->dim[0] % groups) return false;
    c->axis = 1;
    c->modulus = w->dim[1];
    c->channels = w->dim[1] * groups;
    c->inner = prn_shape_count(w, 2, w->rank);
    c->block = w->dim[0] / groups * prn_shape_count(w, 1, w->rank);
    return true;
}

static bool read_matrix(const prn_rewriter *r, prn_contraction *c, bool transposed)
{
    const prony_shape *w = c->weight_shape;
    const prony_shape *y = &r->program->values[c->node->outputs[0]]->info.shape;
    if (w->rank != 2 || y->rank < 2) return false;
    c->axis = y->rank - 1;
    c->channels = c->modulus = w->dim[transposed ? 0 : 1];
    c->inner = transposed ? w->dim[1] : 1;
    c->block = prony_shape_numel(w);
    /* A vector times a matrix has no row axis, so its last output axis need not be the channels. */
    return r->program->values[c->node->inputs[0]]->info.shape.rank >= 2;
}

static bool contraction_read_bias(const prn_rewriter *r, prn_contraction *c)
{
    const prony_shape *shape;
    c->bias = NULL;
    uint32_t bias = prn_node_input(c->node, 2);
    if (prn_node_is(c->node, "Gemm") && prn_node_float(c->node, "beta", 1.0) != 1.0) return false;
    if (bias == PRN_NO_VALUE) return true;
    if (!prn_rewrite_constant(r, bias, &c->bias, &shape)) return false;
    int64_t elements = prony_shape_numel(shape);
    bool last = shape->rank == 0 || shape->dim[shape->rank - 1] == elements;
    c->bias_step = elements == 1 ? 0 : 1;
    return last && (elements == 1 || elements == c->channels);
}

bool prn_contraction_read(const prn_rewriter *r, prn_node_def *node, prn_contraction *out)
{
    *out = (prn_contraction){.node = node};
    if (node->post_ops || node->input_count < 2 || node->input_count > 3 || !prn_rewrite_is_f32(r, node->inputs[0]) ||
        !prn_rewrite_is_f32(r, node->outputs[0]) ||
        !prn_rewrite_constant(r, node->inputs[1], &out->weights, &out->weight_shape) ||
        prony_shape_numel(out->weight_shape) <= 0)
        return false;
    bool known = true;
    if (prn_node_is(node, "Conv"))
        contraction_read_conv(out);
    else if (prn_node_is(node, "ConvTranspose"))
        known = read_conv_transpose(out);
    else if (prn_node_is(node, "MatMul"))
        known = read_matrix(r, out, false);
    else if (prn_node_is(node, "Gemm"))
        known = read_matrix(r, out, prn_node_int(node, "transB", 0) != 0);
    else
        known = false;
    return known && contraction_read_bias(r, out);
}

static bool contraction_scale_run(const float *from, double scale, float *to, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count; i++) {
        to[i] = (float)((double)from[i] * scale);
        finite &= isfinite(to[i]) != 0;
    }
    return finite;
}

static bool scaled_weights(const prn_contraction *c, const double *scale, float *out)
{
    int64_t count = prony_shape_numel(c->weight_shape), channel = 0;
    bool finite = true;
    for (int64_t e = 0; e < count; e += c->inner) {
        if (e % (c->modulus * c->inner) == 0) channel = e / c->block * c->modulus;
        finite &= contraction_scale_run(c->weights + e, scale[channel++], out + e, c->inner);
    }
    return finite;
}

static bool shifted_bias(const prn_contraction *c, const double *scale, const double *shift, float *out)
{
    for (int64_t k = 0; k < c->channels; k++) {
        double bias = c->bias ? (double)c->bias[k * c->bias_step] : 0.0;
        out[k] = (float)(bias * (scale ? scale[k] : 1.0) + (shift ? shift[k] : 0.0));
        if (!isfinite(out[k])) return false;
    }
    return true;
}

static prony_value floats_of(const prony_shape *shape)
{
    return (prony_value){.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = *shape};
}

static float *new_floats(int64_t count)
{
    return prn_alloc_aligned(64, (size_t)count * sizeof(float));
}

/* true: the channel's bias is so large that lost digits of the weights do not show: a sum of inputs below 2^104 times
 * subnormal weights moves it by less than half a unit in its last place. Decayed batch normalisations are of this
 * kind. */
static bool bias_dominates(const float *bias, int64_t channel)
{
    return bias && fabsf(bias[channel]) >= 0x1p-20f;
}

/* The largest weight of each channel, as a magnitude. */
static void largest_weights(const prn_contraction *c, float *out)
{
    int64_t count = prony_shape_numel(c->weight_shape), channel = 0;
    for (int64_t k = 0; k < c->channels; k++) out[k] = 0.0f;
    for (int64_t e = 0; e < count; e += c->inner) {
        if (e % (c->modulus * c->inner) == 0) channel = e / c->block * c->modulus;
        for (int64_t i = 0; i < c->inner; i++) out[channel] = fmaxf(out[channel], fabsf(c->weights[e + i]));
        channel++;
    }
}

/* *keeps: scaled weights keep their digits. A scale below 2^-100 makes usual weights subnormal or 0, though a large
 * input times the scale may be an ordinary number. A scale below 2^-20 does so to small weights, and only then the
 * weights are read: the largest one of a channel must stay above 2^-120, or have been below 2^-100 already. */
static prony_status scale_keeps_digits(prn_rewriter *r, const prn_contraction *c, const double *scale,
                                       const float *bias, bool *keeps)
{
    prn_program *p = r->program;
    bool reads = false;
    *keeps = true;
    for (int64_t k = 0; k < c->channels; k++) {
        if (scale[k] == 0.0 || !(fabs(scale[k]) < 0x1p-20) || bias_dominates(bias, k)) continue;
        *keeps = *keeps && fabs(scale[k]) >= 0x1p-100;
        reads = true;
    }
    if (!reads || !*keeps) return PRONY_OK;
    const size_t held = p->refs.held_count;
    float *largest = new_floats(c->channels);
    if (!largest) return prn_no_memory(r->error);
    prony_status status = prn_program_hold(p, c->node->inputs[1], r->error);
    if (status == PRONY_OK) {
        largest_weights(c, largest);
        for (int64_t k = 0; k < c->channels; k++) {
            const double after = (double)largest[k] * fabs(scale[k]);
            const bool loses = largest[k] >= 0x1p-100f && after > 0.0 && after < 0x1p-120;
            if (loses && !bias_dominates(bias, k)) *keeps = false;
        }
    }
    prn_weight_cache_unpin(p->model->shared, &p->refs, held);
    prn_free_aligned(largest);
    PRN_TRY(status);
    return prn_cancel_check(r->error);
}

/* ---- scaled weights ---- */

/* Small ones are made at once. */
static prony_status contraction_add_scaled(prn_rewriter *r, const prn_contraction *c, const double *scale,
                                           uint32_t *out, bool *fits)
{
    const prony_value info = floats_of(c->weight_shape);
    float *weights = new_floats(prony_shape_numel(c->weight_shape));
    if (!weights) return prn_no_memory(r->error);
    *fits = scaled_weights(c, scale, weights);
    if (!*fits) {
        prn_free_aligned(weights);
        return PRONY_OK;
    }
    return prn_rewrite_add_constant(r, r->program->values[*out]->name, &info, weights, out);
}

/* Large scaled weights are made when they are packed, and are assumed finite until then: almost all are, and reading
 * them twice takes long. If one is not finite, the session plans again and tests first. */
static prony_status add_deferred(prn_rewriter *r, const prn_contraction *c, const double *scale, uint32_t *out,
                                 bool *fits)
{
    prn_program *p = r->program;
    const prony_value info = floats_of(c->weight_shape);
    prn_lazy_constant recipe = {.kind = PRN_LAZY_SCALE,
                                .width = sizeof(float),
                                .count = prony_shape_numel(c->weight_shape),
                                .source = c->weights,
                                .file = p->model->file,
                                .inner = c->inner,
                                .modulus = c->modulus,
                                .block = c->block,
                                .channels = c->channels,
                                .scale = (double *)(uintptr_t)scale};
    if (prn_weight_cache_looks_first(p->model->shared)) {
        const size_t held = p->refs.held_count;
        if (prn_weight_cache_source(p->values[*out]->shared, &recipe)) PRN_TRY(prn_program_hold(p, *out, r->error));
        *fits = prn_lazy_constant_finite(&recipe);
        prn_weight_cache_unpin(p->model->shared, &p->refs, held);
        PRN_TRY(prn_cancel_check(r->error));
    }
    return *fits ? prn_rewrite_add_deferred(r, &info, &recipe, *out, out) : PRONY_OK;
}

prony_status prn_contraction_fold(prn_rewriter *r, const prn_contraction *c, const double *scale, const double *shift,
                                  bool *done)
{
    const prn_program *p = r->program;
    *done = false;
    prony_shape channels = {.rank = 1, .dim = {c->channels}};
    const prony_value weight_info = floats_of(c->weight_shape), bias_info = floats_of(&channels);
    bool has_bias = c->bias || shift, fits = true;
    if (c->bias) PRN_TRY(prn_program_hold(r->program, c->node->inputs[2], r->error));
    float *bias = has_bias ? new_floats(c->channels) : NULL;
    if (has_bias && !bias) return prn_no_memory(r->error);
    fits = !has_bias || shifted_bias(c, scale, shift, bias);
    uint32_t inputs[] = {c->node->inputs[0], c->node->inputs[1], PRN_NO_VALUE};
    prony_status status = PRONY_OK;
    if (fits && scale) status = scale_keeps_digits(r, c, scale, bias, &fits);
    if (status == PRONY_OK && fits && scale)
        status = (prn_lazy_constant_profitable(&weight_info) ? add_deferred
                                                             : contraction_add_scaled)(r, c, scale, &inputs[1], &fits);
    if (status != PRONY_OK || !fits) {
        prn_free_aligned(bias);
        return status;
    }
    const char *name = p->values[c->node->inputs[c->bias ? 2 : 1]]->name;
    if (bias) PRN_TRY(prn_rewrite_add_constant(r, name, &bias_info, bias, &inputs[2]));
    *done = true;
    return prn_rewrite_set_inputs(r, c->node, inputs, has_bias ? 3 : 2);
}
