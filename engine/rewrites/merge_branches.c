/*   x ─┬─ Conv(V, b) ──┐                             x ── Conv(V + W, b + c) ── y
 *      └─ Conv(W, c) ─ Add ── y               ──>
 *
 *   x ─┬─ Conv(V, b) ────────────────┐               x ── Conv(V + diag(s), b + t) ── y
 *      └─ BatchNormalization(s, t) ─ Add ── y
 *
 * where each of W's taps is one of V's. Networks trained with several branches per block have this form (RepVGG,
 * MobileOne). A whole tree of additions is merged at its root, so weights are made once. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <math.h>
#include <string.h>

enum { MOST_AXES = PRONY_MAX_RANK - 2, MOST_BRANCHES = 12 };

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

static bool merge_branches_read_conv(const prn_rewriter *r, uint32_t value, conv *out)
{
    prn_node_def *node = prn_rewrite_inner(r, value, "Conv");
    if (!node || !prn_contraction_read(r, node, &out->contraction)) return false;
    if (out->contraction.bias && out->contraction.bias_step == 0) return false;
    const prony_shape *weights = out->contraction.weight_shape;
    out->axes = (size_t)weights->rank - 2;
    out->groups = prn_node_int(node, "group", 1);
    memcpy(out->kernel, weights->dim + 2, out->axes * sizeof *out->kernel);
    return read_steps(node, "strides", out->axes, out->stride) &&
           read_steps(node, "dilations", out->axes, out->dilation) && prn_node_pads(node, 2 * out->axes, out->pads);
}

/* Window extent minus 1 minus the padding: the elements that an axis loses. */
static int64_t merge_branches_excess(const conv *c, size_t axis)
{
    return (c->kernel[axis] - 1) * c->dilation[axis] - c->pads[axis] - c->pads[c->axes + axis];
}

/* Finds the offset of the small window in the large one, per axis, in taps. `small` NULL: a window of one tap without
 * padding. */
static bool find_offset(const conv *large, const conv *small, int64_t *offset)
{
    for (size_t i = 0; i < large->axes; i++) {
        const int64_t kernel = small ? small->kernel[i] : 1, shift = large->pads[i] - (small ? small->pads[i] : 0);
        if (large->stride[i] != (small ? small->stride[i] : 1)) return false;
        if (merge_branches_excess(large, i) != (small ? merge_branches_excess(small, i) : 0))
            return false; /* extents agree only by chance */
        if (kernel > 1 && small->dilation[i] != large->dilation[i]) return false;
        offset[i] = large->kernel[i] > 1 ? shift / large->dilation[i] : 0;
        if (shift < 0 || offset[i] * large->dilation[i] != shift || offset[i] + kernel > large->kernel[i]) return false;
    }
    return true;
}

/* Index in the larger kernel of tap `t` of a kernel, counted row by row. */
static int64_t shifted_tap(const conv *large, const int64_t *kernel, const int64_t *offset, int64_t t)
{
    int64_t tap = 0, step = 1;
    for (size_t i = large->axes; i-- > 0;) {
        tap += (t % kernel[i] + offset[i]) * step;
        t /= kernel[i];
        step *= large->kernel[i];
    }
    return tap;
}

static void add_weights(const conv *large, const conv *small, const int64_t *offset, float *to)
{
    const prony_shape *a = large->contraction.weight_shape, *b = small->contraction.weight_shape;
    const int64_t taps = prn_shape_count(a, 2, a->rank), small_taps = prn_shape_count(b, 2, b->rank),
                  pairs = b->dim[0] * b->dim[1];
    for (int64_t t = 0; t < small_taps; t++) {
        const int64_t tap = shifted_tap(large, small->kernel, offset, t);
        for (int64_t i = 0; i < pairs; i++) to[i * taps + tap] += small->contraction.weights[i * small_taps + t];
    }
}

static void add_diagonal(const conv *large, const double *scale, const int64_t *offset, float *to)
{
    static const int64_t one[MOST_AXES] = {1, 1, 1, 1, 1, 1};
    const prony_shape *a = large->contraction.weight_shape;
    const int64_t taps = prn_shape_count(a, 2, a->rank), tap = shifted_tap(large, one, offset, 0);
    for (int64_t c = 0; c < a->dim[0]; c++) {
        float *weight = to + (c * a->dim[1] + c % a->dim[1]) * taps + tap;
        *weight = (float)((double)*weight + scale[c]);
    }
}

static bool merge_branches_all_finite(const float *data, int64_t count)
{
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= isfinite(data[i]) != 0;
    return finite;
}

/* A convolution, or a scale and a shift for each channel. */
typedef struct branch {
    prn_node_def *node;
    bool is_conv;
    conv conv;
    int64_t offset[MOST_AXES];
} branch;

typedef struct tree {
    size_t count, adds, large; /* the branch whose taps include all others' */
    branch branch[MOST_BRANCHES];
    prn_node_def *add[MOST_BRANCHES]; /* those below the root */
} tree;

static bool is_add(const prn_rewriter *r, const prn_node_def *node)
{
    return (prn_node_is(node, "Add") || prn_node_is(node, "Sum")) && node->input_count == 2 &&
           node->inputs[0] != node->inputs[1] && prn_rewrite_same_shape(r, node->inputs[0], node->inputs[1]);
}

static bool merge_branches_collect(const prn_rewriter *r, uint32_t value, tree *tree)
{
    prn_node_def *node = prn_rewrite_producer(r, value);
    if (!node || !prn_rewrite_used_once(r, value) || tree->count == MOST_BRANCHES) return false;
    if (is_add(r, node)) {
        if (tree->adds == MOST_BRANCHES) return false;
        tree->add[tree->adds++] = node;
        return merge_branches_collect(r, node->inputs[0], tree) && merge_branches_collect(r, node->inputs[1], tree);
    }
    branch *branch = &tree->branch[tree->count++];
    branch->node = node;
    branch->is_conv = merge_branches_read_conv(r, value, &branch->conv);
    return branch->is_conv || prn_node_is(node, "BatchNormalization");
}

static bool merge_branches_may_take(const prn_rewriter *r, const conv *large, branch *branch)
{
    if (branch->node->inputs[0] != large->contraction.node->inputs[0]) return false;
    if (!branch->is_conv) {
        const prn_contraction *c = &large->contraction;
        return large->groups > 0 && c->weight_shape->dim[1] * large->groups == c->channels &&
               find_offset(large, NULL, branch->offset) && prn_batch_norm_affine(r, branch->node, c->channels, NULL);
    }
    return branch->conv.groups == large->groups && find_offset(large, &branch->conv, branch->offset);
}

/* Reads the tree with this root. false: it is not one convolution as a whole. */
static bool find_tree(const prn_rewriter *r, const prn_node_def *root, tree *tree)
{
    tree->count = tree->adds = 0;
    if (!is_add(r, root) || !merge_branches_collect(r, root->inputs[0], tree) ||
        !merge_branches_collect(r, root->inputs[1], tree))
        return false;
    for (tree->large = 0; tree->large < tree->count; tree->large++) {
        const branch *large = &tree->branch[tree->large];
        bool all = large->is_conv;
        for (size_t k = 0; k < tree->count && all; k++)
            all = k == tree->large || merge_branches_may_take(r, &large->conv, &tree->branch[k]);
        if (all) return true;
    }
    return false;
}

static prony_status merge_branches_hold(prn_rewriter *r, const prn_node_def *node)
{
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != PRN_NO_VALUE) PRN_TRY(prn_program_hold(r->program, node->inputs[i], r->error));
    return PRONY_OK;
}

static prony_status add_branch(prn_rewriter *r, const conv *large, const branch *branch, float *weights, double *bias)
{
    const prn_contraction *c = &branch->conv.contraction;
    PRN_TRY(merge_branches_hold(r, branch->node));
    if (branch->is_conv) {
        if (&branch->conv != large) add_weights(large, &branch->conv, branch->offset, weights);
        for (int64_t k = 0; k < c->channels && c->bias; k++) bias[k] += (double)c->bias[k];
        return PRONY_OK;
    }
    const int64_t channels = large->contraction.channels;
    double *scale = prn_calloc((size_t)channels, 2 * sizeof *scale);
    if (!scale) return prn_no_memory(r->error);
    (void)prn_batch_norm_affine(r, branch->node, channels, scale);
    add_diagonal(large, scale, branch->offset, weights);
    for (int64_t k = 0; k < channels; k++) bias[k] += scale[channels + k];
    prn_free(scale);
    return PRONY_OK;
}

/* *fits: they are finite. */
static prony_status make_sums(prn_rewriter *r, const tree *tree, float *weights, float *bias, bool *fits)
{
    const conv *large = &tree->branch[tree->large].conv;
    const int64_t count = prony_shape_numel(large->contraction.weight_shape), channels = large->contraction.channels;
    double *sums = prn_calloc((size_t)channels, sizeof *sums);
    if (!sums) return prn_no_memory(r->error);
    prony_status status = merge_branches_hold(r, large->contraction.node);
    if (status == PRONY_OK) memcpy(weights, large->contraction.weights, (size_t)count * sizeof *weights);
    for (size_t k = 0; k < tree->count && status == PRONY_OK; k++)
        status = add_branch(r, large, &tree->branch[k], weights, sums);
    for (int64_t k = 0; k < channels; k++) bias[k] = (float)sums[k];
    prn_free(sums);
    *fits =
        status == PRONY_OK && merge_branches_all_finite(weights, count) && merge_branches_all_finite(bias, channels);
    return status;
}

/* Sums weights and biases of all branches into the largest one's convolution, which then takes the place of the
 * root. */
static prony_status merge_branches_merge(prn_rewriter *r, uint32_t n, const tree *tree)
{
    prn_program *p = r->program;
    const prn_contraction *c = &tree->branch[tree->large].conv.contraction;
    prn_node_def *keep = c->node;
    const prony_value weight_info = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = *c->weight_shape};
    const prony_value bias_info = {
        .kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = {.rank = 1, .dim = {c->channels}}};
    const size_t held = p->refs.held_count;
    float *weights = prn_alloc_aligned(64, (size_t)prony_shape_numel(c->weight_shape) * sizeof *weights);
    float *bias = prn_alloc_aligned(64, (size_t)c->channels * sizeof *bias);
    bool fits = false;
    prony_status status = weights && bias ? make_sums(r, tree, weights, bias, &fits) : prn_no_memory(r->error);
    prn_weight_cache_unpin(p->model->shared, &p->refs, held);
    if (status != PRONY_OK || !fits) {
        prn_free_aligned(weights);
        prn_free_aligned(bias);
        return status;
    }
    uint32_t inputs[3] = {keep->inputs[0]};
    const char *weight_name = p->values[keep->inputs[1]]->name,
               *bias_name = p->values[keep->inputs[c->bias ? 2 : 1]]->name;
    status = prn_rewrite_add_constant(r, weight_name, &weight_info, weights, &inputs[1]);
    if (status != PRONY_OK) {
        prn_free_aligned(bias);
        return status;
    }
    PRN_TRY(prn_rewrite_add_constant(r, bias_name, &bias_info, bias, &inputs[2]));
    PRN_TRY(prn_rewrite_set_inputs(r, keep, inputs, 3));
    for (size_t k = 0; k < tree->count; k++) {
        if (k == tree->large) continue;
        prn_rewrite_mark_removed(r, tree->branch[k].node);
        PRN_TRY(prn_rewrite_absorb(r, keep, tree->branch[k].node));
    }
    for (size_t k = 0; k < tree->adds; k++) {
        prn_rewrite_mark_removed(r, tree->add[k]);
        PRN_TRY(prn_rewrite_absorb(r, keep, tree->add[k]));
    }
    prn_rewrite_mark_removed(r, p->nodes[n]);
    return prn_rewrite_take_over(r, keep, n);
}

/* true: an addition further down is the root of a larger tree. */
static bool goes_on(const prn_rewriter *r, const prn_node_def *node, tree *tree)
{
    const prn_use *use = r->program->values[node->outputs[0]]->places;
    while (use && (!use->node || use->node->dead || use->child != PRN_NO_CHILD)) use = use->next;
    return prn_rewrite_used_once(r, node->outputs[0]) && use && !use->node->dynamic && find_tree(r, use->node, tree);
}

prony_status prn_rewrite_merge_branches(prn_rewriter *r, uint32_t n)
{
    const prn_node_def *node = r->program->nodes[n];
    tree tree;
    if (!find_tree(r, node, &tree) || goes_on(r, node, &tree)) return PRONY_OK;
    return find_tree(r, node, &tree) ? merge_branches_merge(r, n, &tree) : PRONY_OK;
}
