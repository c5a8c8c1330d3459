/* The plain-C meaning of post-operations, for kernels that finish a tile of float32 results and have nothing better.
 * Invariant: each element is computed from itself and, for an addition, the element of the same index alone. */
#include "ops/op.h"

#include <math.h>

static float post_ops_clamp_unit(float x)
{
    return x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x);
}

static float post_ops_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

#define EACH(expression)                                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        float x = data[i];                                                                                             \
        data[i] = (expression);                                                                                        \
    }

static void post_ops_apply_one(const prony_context *context, const prn_post_op *op, float *data, int64_t first,
                               int64_t count)
{
    const float a = op->a, b = op->b;
    switch (op->kind) {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    case PRN_POST_##SYMBOL:                                                                                            \
        EACH(in_float)                                                                                                 \
        break;
#include "ops/activations.inc"
    case PRN_POST_AFFINE:
        EACH(a * x + b)
        break;
    case PRN_POST_ADD: {
        const float *added = (const float *)context->inputs[op->input]->data + first;
        EACH(x + added[i])
        break;
    }
    }
}

void prn_post_ops_apply_f32(const prony_context *context, float *data, int64_t first, int64_t count)
{
    const prn_post_ops *post_ops = context->post_ops;
    if (!post_ops) return;
    for (size_t k = 0; k < post_ops->count; k++) post_ops_apply_one(context, &post_ops->op[k], data, first, count);
}

bool prn_post_op_keeps_zero(const prn_post_op *op)
{
    switch (op->kind) {
    case PRN_POST_CLIP:
        return op->a <= 0.0f && op->b >= 0.0f;
    case PRN_POST_SIGMOID:
        return false;
    case PRN_POST_HARD_SIGMOID:
        return op->b <= 0.0f;
    case PRN_POST_AFFINE:
        return op->b == 0.0f;
    default:
        return true;
    }
}

bool prn_post_ops_keep_zero(const prn_post_ops *post_ops)
{
    for (size_t i = 0; post_ops && i < post_ops->count; i++)
        if (!prn_post_op_keeps_zero(&post_ops->op[i])) return false;
    return true;
}

void prn_post_ops_ask_layout(const prn_post_ops *post_ops, prn_layout layout, prn_layout *in)
{
    for (size_t i = 0; post_ops && i < post_ops->count; i++)
        if (post_ops->op[i].kind == PRN_POST_ADD) in[post_ops->op[i].input] = layout;
}
