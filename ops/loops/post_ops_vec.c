/* Post-operations by the vector table. Invariant: an element's result depends on itself and, for an addition, on the
 * element of the same index alone, so runs may be cut anywhere. */
#include "ops/loops/post_ops_vec.h"

#include "ops/loops/vec.h"

static prn_map_id map_of(prn_post_kind kind)
{
    switch (kind) {
    case PRN_POST_RELU:
        return PRN_MAP_RELU;
    case PRN_POST_CLIP:
        return PRN_MAP_CLIP;
    case PRN_POST_LEAKY_RELU:
        return PRN_MAP_LEAKY_RELU;
    case PRN_POST_SIGMOID:
        return PRN_MAP_SIGMOID;
    case PRN_POST_TANH:
        return PRN_MAP_TANH;
    case PRN_POST_HARD_SIGMOID:
        return PRN_MAP_HARD_SIGMOID;
    case PRN_POST_HARD_SWISH:
        return PRN_MAP_HARD_SWISH;
    case PRN_POST_SILU:
        return PRN_MAP_SILU;
    case PRN_POST_GELU_ERF:
        return PRN_MAP_GELU_ERF;
    case PRN_POST_ADD:
        break;
    }
    return PRN_MAP_COPY;
}

void prn_post_ops_apply_vec(const prony_context *context, float *data, int64_t first, int64_t count)
{
    const prn_post_ops *post_ops = context->post_ops;
    const prn_vec_table *vec = prn_vec();
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        const prn_post_op *op = &post_ops->op[i];
        if (op->kind == PRN_POST_ADD) {
            const float *added = (const float *)context->inputs[op->input]->data + first;
            vec->vv[PRN_BINARY_ADD](data, data, added, count);
        } else {
            /* SiLU's map takes a slope: x sigmoid(a x). */
            vec->map[map_of(op->kind)](data, data, count, op->kind == PRN_POST_SILU ? 1.0f : op->a, op->b);
        }
    }
}
