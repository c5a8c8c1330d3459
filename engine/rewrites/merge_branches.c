/*   x ─┬─ Conv(V, b) ──┐                             x ── Conv(V + W, b + c) ── y
 *      └─ Conv(W, c) ─ Add ── y               ──>
 *
 *   x ─┬─ Conv(V, b) ────────────────┐               x ── Conv(V + diag(s), b + t) ── y
 *      └─ BatchNormalization(s, t) ─ Add ── y
 *
 * where each of W's taps is one of V's: as networks are left by training whose blocks have several branches (RepVGG, MobileOne). */
#include "engine/rewrites/rewrites.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

enum { MOST_AXES = PRONY_MAX_RANK - 2 };

typedef struct conv {
    prn_contraction contraction;
    size_t axes;
    int64_t groups, kernel[MOST_AXES], stride[MOST_AXES], dilation[MOST_AXES], pads[2 * MOST_AXES];
} conv;

/* An attribute of one integer to an axis, 1 where it is not there. */
static bool read_steps(const prn_node_def *node, const char *name, size_t axes, int64_t *out)
{
    const prn_attr *attr = prn_attr_find(node->info.attributes, name);
    for (size_t i = 0; i < axes; i++) out[i] = 1;
    if (!attr) return true;
    if (attr->type != PRN_ATTR_INTS || attr->count != axes) return false;
    memcpy(out, attr->ints, axes * sizeof *out);
    return true;
}

static bool read_conv(const prn_rewriter *r, uint32_t value, conv *out)
{
    prn_node_def *node = prn_rewrite_inner(r, value, "Conv");
    if (!node || !prn_contraction_read(r, node, &out->contraction)) return false;
    if (out->contraction.bias && out->contraction.bias_step == 0) return false;
    const prony_shape *weights = out->contraction.weight_shape;
    out->axes = (size_t)weights->rank - 2;
    out->groups = prn_node_int(node, "group", 1);
    memcpy(out->kernel, weights->dim + 2, out->axes * sizeof *out->kernel);
    return read_steps(node, "strides", out->axes, out->stride) && read_steps(node, "dilations", out->axes, out->dilation) &&
           prn_node_pads(node, 2 * out->axes, out->pads);
}

/* Where the window of the other begins in this one's: per axis, in taps. A window of one tap without padding is `small` NULL. */
static bool find_place(const conv *large, const conv *small, int64_t *place)
{
    for (size_t i = 0; i < large->axes; i++) {
        const int64_t kernel = small ? small->kernel[i] : 1, shift = large->pads[i] - (small ? small->pads[i] : 0);
        if (large->stride[i] != (small ? small->stride[i] : 1)) return false;
        if (kernel > 1 && small->dilation[i] != large->dilation[i]) return false;
        place[i] = large->kernel[i] > 1 ? shift / large->dilation[i] : 0;
        if (shift < 0 || place[i] * large->dilation[i] != shift || place[i] + kernel > large->kernel[i]) return false;
    }
    return true;
}

/* Tap `t` of a kernel, counted row by row, as one of the larger kernel it lies in. */
static int64_t placed_tap(const conv *large, const int64_t *kernel, const int64_t *place, int64_t t)
{
    int64_t tap = 0, step = 1;
    for (size_t i = large->axes; i-- > 0;) {
        tap += (t % kernel[i] + place[i]) * step;
        t /= kernel[i];
        step *= large->kernel[i];
    }
    return tap;
}

static void add_weights(const conv *large, const conv *small, const int64_t *place, float *to)
{
    const prony_shape *a = large->contraction.weight_shape, *b = small->contraction.weight_shape;
    const int64_t taps = prn_shape_count(a, 2, a->rank), small_taps = prn_shape_count(b, 2, b->rank), pairs = b->dim[0] * b->dim[1];
    for (int64_t t = 0; t < small_taps; t++) {
        const int64_t tap = placed_tap(large, small->kernel, place, t);
        for (int64_t i = 0; i < pairs; i++) to[i * taps + tap] += small->contraction.weights[i * small_taps + t];
    }
}

static void add_diagonal(const conv *large, const double *scale, const int64_t *place, float *to)
{
    static const int64_t one[MOST_AXES] = {1, 1, 1, 1, 1, 1};
    const prony_shape *a = large->contraction.weight_shape;
    const int64_t taps = prn_shape_count(a, 2, a->rank), tap = placed_tap(large, one, place, 0);
    for (int64_t c = 0; c < a->dim[0]; c++) {
        float *weight = to + (c * a->dim[1] + c % a->dim[1]) * taps + tap;
        *weight = (float)((double)*weight + scale[c]);
    }
}

static bool all_finite(const float *data, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= isfinite(data[i]) != 0;
    return finite;
}

/* What is added to `large`: a convolution, or a scale and a shift for each channel. */
typedef struct branch {
    prn_node_def *node;
    const conv *conv; /* NULL: */
    const double *scale, *shift;
    int64_t place[MOST_AXES];
} branch;

static double shift_of(const branch *branch, int64_t channel)
{
    if (!branch->conv) return branch->shift[channel];
    const prn_contraction *c = &branch->conv->contraction;
    return c->bias ? (double)c->bias[channel] : 0.0;
}

static prony_status hold(prn_rewriter *r, const prn_node_def *node)
{
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE) PRN_TRY(prn_program_hold(r->program, node->inputs[i], r->error));
    return PRONY_OK;
}

/* Both operands of `large` as they are with the branch; *fits: they are finite. */
static prony_status make_sums(prn_rewriter *r, const conv *large, const branch *branch, float *weights, float *bias, bool *fits)
{
    const prn_contraction *c = &large->contraction;
    const int64_t count = prony_shape_numel(c->weight_shape);
    PRN_TRY(hold(r, c->node));
    PRN_TRY(hold(r, branch->node));
    memcpy(weights, c->weights, (size_t)count * sizeof *weights);
    if (branch->conv)
        add_weights(large, branch->conv, branch->place, weights);
    else
        add_diagonal(large, branch->scale, branch->place, weights);
    for (int64_t k = 0; k < c->channels; k++) bias[k] = (float)((c->bias ? (double)c->bias[k] : 0.0) + shift_of(branch, k));
    *fits = all_finite(weights, count) && all_finite(bias, c->channels);
    return PRONY_OK;
}

static prony_status merge(prn_rewriter *r, uint32_t n, const conv *large, const branch *branch)
{
    prn_program *p = r->program;
    const prn_contraction *c = &large->contraction;
    prn_node_def *keep = c->node;
    const prony_value weight_info = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = *c->weight_shape};
    const prony_value bias_info = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = {.rank = 1, .dim = {c->channels}}};
    const size_t held = p->refs.held_count;
    float *weights = prn_alloc_aligned(64, (size_t)prony_shape_numel(c->weight_shape) * sizeof *weights);
    float *bias = prn_alloc_aligned(64, (size_t)c->channels * sizeof *bias);
    bool fits = false;
    prony_status status = weights && bias ? make_sums(r, large, branch, weights, bias, &fits) : prn_no_memory(r->error);
    prn_shared_let_go(p->model->shared, &p->refs, held);
    if (status != PRONY_OK || !fits) {
        prn_free_aligned(weights);
        prn_free_aligned(bias);
        return status;
    }
    uint32_t inputs[3] = {keep->inputs[0]};
    const char *weight_name = p->values[keep->inputs[1]]->name, *bias_name = p->values[keep->inputs[c->bias ? 2 : 1]]->name;
    status = prn_rewrite_add_constant(r, weight_name, &weight_info, weights, &inputs[1]);
    if (status != PRONY_OK) {
        prn_free_aligned(bias);
        return status;
    }
    PRN_TRY(prn_rewrite_add_constant(r, bias_name, &bias_info, bias, &inputs[2]));
    PRN_TRY(prn_rewrite_set_inputs(r, keep, inputs, 3));
    prn_rewrite_mark_removed(r, branch->node);
    prn_rewrite_mark_removed(r, p->nodes[n]);
    PRN_TRY(prn_rewrite_absorb(r, keep, branch->node));
    return prn_rewrite_take_over(r, keep, n);
}

/* A convolution and what a BatchNormalization makes of the same values. */
static prony_status merge_norm(prn_rewriter *r, uint32_t n, const conv *large, prn_node_def *norm)
{
    const prn_contraction *c = &large->contraction;
    branch branch = {.node = norm};
    double *scale;
    if (norm->inputs[0] != c->node->inputs[0] || large->groups < 1 || c->weight_shape->dim[1] * large->groups != c->channels) return PRONY_OK;
    if (!find_place(large, NULL, branch.place)) return PRONY_OK;
    PRN_TRY(prn_batch_norm_affine(r, norm, c->channels, &scale));
    if (!scale) return PRONY_OK;
    branch.scale = scale;
    branch.shift = scale + c->channels;
    const prony_status status = merge(r, n, large, &branch);
    prn_free(scale);
    return status;
}

prony_status prn_rewrite_merge_branches(prn_rewriter *r, uint32_t n)
{
    const prn_node_def *add = r->program->nodes[n];
    conv conv[2];
    if (!(prn_node_is(add, "Add") || prn_node_is(add, "Sum")) || add->input_count != 2) return PRONY_OK;
    if (!prn_rewrite_same_shape(r, add->inputs[0], add->inputs[1]) || add->inputs[0] == add->inputs[1]) return PRONY_OK;
    const bool is[] = {read_conv(r, add->inputs[0], &conv[0]), read_conv(r, add->inputs[1], &conv[1])};
    for (int k = 0; k < 2; k++) {
        if (!is[k]) continue;
        prn_node_def *norm = is[1 - k] ? NULL : prn_rewrite_inner(r, add->inputs[1 - k], "BatchNormalization");
        if (norm) return merge_norm(r, n, &conv[k], norm);
        const prn_contraction *a = &conv[k].contraction, *b = &conv[1 - k].contraction;
        branch branch = {.node = b->node, .conv = &conv[1 - k]};
        if (!is[1 - k] || a->node->inputs[0] != b->node->inputs[0] || conv[0].groups != conv[1].groups) return PRONY_OK;
        if (find_place(&conv[k], &conv[1 - k], branch.place)) return merge(r, n, &conv[k], &branch);
    }
    return PRONY_OK;
}
