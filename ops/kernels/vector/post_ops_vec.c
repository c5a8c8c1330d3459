/* Post-operations by the vector table. Invariant: an element's result depends on itself and, for an addition, on the
 * element of the same index alone, so runs may be cut anywhere. */
#include "ops/kernels/vector/post_ops_vec.h"

#include "ops/kernels/vector/vec.h"

static const prn_map_id maps[] = {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    [PRN_POST_##SYMBOL] = PRN_MAP_##SYMBOL,
#include "ops/activations.inc"
    [PRN_POST_AFFINE] = PRN_MAP_AFFINE};

void prn_post_ops_apply_vec(const prony_context *context, float *data, int64_t first, int64_t count)
{
    const prn_post_ops *post_ops = context->post_ops;
    if (!post_ops) return;
    const prn_vec_table *vec = prn_vec();
    for (size_t i = 0; i < post_ops->count; i++) {
        const prn_post_op *op = &post_ops->op[i];
        if (op->kind == PRN_POST_ADD) {
            const float *added = (const float *)context->inputs[op->input]->data + first;
            vec->vv[PRN_BINARY_ADD](data, data, added, count);
        } else {
            /* SiLU's map takes a slope: x sigmoid(a x). */
            vec->map[maps[op->kind]](data, data, count, op->kind == PRN_POST_SILU ? 1.0f : op->a, op->b);
        }
    }
}
