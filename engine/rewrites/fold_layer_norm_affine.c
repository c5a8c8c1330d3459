/*   x ── LayerNormalization(1) ── Mul(γ) ── y          x ── LayerNormalization(γ) ── y
 *   x ── LayerNormalization(γ) ── Add(β) ── y          x ── LayerNormalization(γ, β) ── y
 *
 * γ and β are constants with one element per position of the last axis. */
#include "engine/rewrites/rewrites.h"

#include "base/shape.h"

#include <string.h>

static bool is_ones(const float *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (data[i] != 1.0f) return false;
    return true;
}

static bool covers_last_axis(const prony_shape *constant, const prony_shape *x)
{
    return constant->rank >= 1 && constant->rank <= x->rank &&
           constant->dim[constant->rank - 1] == x->dim[x->rank - 1] &&
           prony_shape_numel(constant) == x->dim[x->rank - 1];
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

prony_status prn_rewrite_fold_layer_norm_affine(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    bool is_mul = prn_node_is(node, "Mul");
    if ((!is_mul && !prn_node_is(node, "Add")) || node->input_count != 2) return PRONY_OK;
    const float *data, *scale;
    const prony_shape *shape, *scale_shape;
    int constant = prn_rewrite_constant(r, node->inputs[1], &data, &shape) ? 1 : 0;
    if (constant == 0 && !prn_rewrite_constant(r, node->inputs[0], &data, &shape)) return PRONY_OK;
    prn_node_def *norm = prn_rewrite_inner(r, node->inputs[1 - constant], "LayerNormalization");
    if (!norm || norm->output_count != 1 || prn_node_input(norm, 2) != PRN_NO_VALUE) return PRONY_OK;
    const prony_shape *x = &r->program->values[norm->inputs[0]]->info.shape;
    int64_t axis = prn_node_int(norm, "axis", -1);
    if (!prn_rewrite_same_shape(r, norm->inputs[0], node->outputs[0]) || (axis != -1 && axis != x->rank - 1) ||
        !covers_last_axis(shape, x) || !prn_rewrite_constant(r, norm->inputs[1], &scale, &scale_shape))
        return PRONY_OK;
    if (is_mul) PRN_TRY(prn_program_hold(r->program, norm->inputs[1], r->error));
    if (is_mul && !is_ones(scale, prony_shape_numel(scale_shape))) return PRONY_OK;
    uint32_t inputs[] = {norm->inputs[0], norm->inputs[1], PRN_NO_VALUE};
    PRN_TRY(as_vector(r, node->inputs[constant], &inputs[is_mul ? 1 : 2]));
    PRN_TRY(prn_rewrite_set_inputs(r, norm, inputs, is_mul ? 2 : 3));
    return prn_rewrite_take_over(r, norm, n);
}
