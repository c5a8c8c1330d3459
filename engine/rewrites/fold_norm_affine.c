/*   x ── LayerNormalization(1) ── Mul(γ) ── y          x ── LayerNormalization(γ) ── y
 *   x ── LayerNormalization(γ) ── Add(β) ── y          x ── LayerNormalization(γ, β) ── y
 *
 * γ and β are constants with one element per position of the last axis. For InstanceNormalization and
 * GroupNormalization it is the channel axis; their shift already exists and is zero. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <string.h>

/* true: the input is omitted, or a constant with all elements `wanted`. */
static bool input_is(const prn_rewriter *r, const prn_node_def *norm, uint32_t i, float wanted)
{
    return prn_node_input(norm, i) == PRN_NO_VALUE || prn_rewrite_is_all(r, norm->inputs[i], wanted);
}

/* All of the constant's elements lie along `axis` of x. */
static bool covers_axis(const prony_shape *constant, const prony_shape *x, int axis)
{
    const int at = axis - (x->rank - constant->rank);
    return at >= 0 && constant->rank <= x->rank && constant->dim[at] == x->dim[axis] &&
           prony_shape_numel(constant) == x->dim[axis];
}

/* The constant as a vector. */
static prony_status as_vector(prn_rewriter *r, uint32_t value, uint32_t *out)
{
    const prn_value_def *def = r->program->values[value];
    *out = value;
    if (def->info.shape.rank == 1) return PRONY_OK;
    PRN_TRY(prn_program_hold(r->program, value, r->error));
    size_t bytes = prn_value_bytes(&def->info);
    void *data = prn_alloc_aligned(64, bytes ? bytes : 1);
    if (!data) return prn_no_memory(r->error);
    memcpy(data, def->info.data, bytes);
    prony_value info = def->info;
    info.shape = (prony_shape){.rank = 1, .dim = {prony_shape_numel(&def->info.shape)}};
    return prn_rewrite_add_constant(r, def->name, &info, data, out);
}

/* LayerNormalization over the last axis alone. */
static bool is_of_rows(const prn_node_def *norm, const prony_shape *x)
{
    const int64_t axis = prn_node_int(norm, "axis", -1);
    return axis == -1 || axis == x->rank - 1;
}

/* true: scale and shift are per channel; GroupNormalization's first version has them per group. */
static bool is_of_channels(const prn_rewriter *r, const prn_node_def *norm, const prony_shape *x)
{
    return prony_shape_numel(&r->program->values[norm->inputs[1]]->info.shape) == x->dim[1];
}

/* The normalisation that makes `value` and can take one more, and the axis that its scale and shift are of; NULL:
 * none. */
static prn_node_def *fold_norm_affine_norm_of(const prn_rewriter *r, uint32_t value, bool of_rows, int *axis)
{
    prn_node_def *norm = prn_rewrite_inner(r, value, of_rows ? "LayerNormalization" : "InstanceNormalization");
    if (!norm && !of_rows) norm = prn_rewrite_inner(r, value, "GroupNormalization");
    if (!norm || norm->output_count != 1 || norm->post_ops) return NULL;
    const prony_shape *x = &r->program->values[norm->inputs[0]]->info.shape;
    *axis = of_rows ? x->rank - 1 : 1;
    return (of_rows ? is_of_rows(norm, x) : is_of_channels(r, norm, x)) ? norm : NULL;
}

static prony_status fold_norm_affine_fold(prn_rewriter *r, uint32_t n, bool of_rows)
{
    prn_node_def *node = r->program->nodes[n];
    bool is_mul = prn_node_is(node, "Mul");
    if ((!is_mul && !prn_node_is(node, "Add")) || node->input_count != 2) return PRONY_OK;
    const float *data;
    const prony_shape *shape;
    int axis, constant = prn_rewrite_constant(r, node->inputs[1], &data, &shape) ? 1 : 0;
    if (constant == 0 && !prn_rewrite_constant(r, node->inputs[0], &data, &shape)) return PRONY_OK;
    prn_node_def *norm = fold_norm_affine_norm_of(r, node->inputs[1 - constant], of_rows, &axis);
    if (!norm || !prn_rewrite_same_shape(r, norm->inputs[0], node->outputs[0]) ||
        !covers_axis(shape, &r->program->values[norm->inputs[0]]->info.shape, axis))
        return PRONY_OK;
    for (uint32_t i = 1; i <= 2; i++)
        if (prn_node_input(norm, i) != PRN_NO_VALUE && prn_rewrite_constant(r, norm->inputs[i], &data, &shape))
            PRN_TRY(prn_program_hold(r->program, norm->inputs[i], r->error));
    if (!input_is(r, norm, 2, 0.0f) || (is_mul && !input_is(r, norm, 1, 1.0f))) return PRONY_OK;
    uint32_t inputs[] = {norm->inputs[0], norm->inputs[1], prn_node_input(norm, 2)};
    PRN_TRY(as_vector(r, node->inputs[constant], &inputs[is_mul ? 1 : 2]));
    PRN_TRY(prn_rewrite_set_inputs(r, norm, inputs, inputs[2] == PRN_NO_VALUE ? 2 : 3));
    return prn_rewrite_take_over(r, norm, n);
}

prony_status prn_rewrite_fold_layer_norm_affine(prn_rewriter *r, uint32_t n)
{
    return fold_norm_affine_fold(r, n, true);
}

prony_status prn_rewrite_fold_channel_norm_affine(prn_rewriter *r, uint32_t n)
{
    return fold_norm_affine_fold(r, n, false);
}
