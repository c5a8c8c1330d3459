/* The plain-C meaning of post-operations, for kernels that finish a tile of float32 results and have nothing better.
 * Invariant: each element is computed from itself and, for an addition, the element of the same index alone. */
#include "ops/op.h"

#include <math.h>

static float clamp_unit(float x)
{
    return x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x);
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

#define EACH(expression)                                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        float x = data[i];                                                                                             \
        data[i] = (expression);                                                                                        \
    }

static void apply_one(const prony_context *context, const prn_post_op *op, float *data, int64_t first, int64_t count)
{
    const float a = op->a, b = op->b;
    switch (op->kind) {
    case PRN_POST_RELU:
        EACH(x < 0.0f ? 0.0f : x)
        break;
    case PRN_POST_CLIP:
        EACH((x = x < a ? a : x) > b ? b : x)
        break;
    case PRN_POST_LEAKY_RELU:
        EACH(x < 0.0f ? a * x : x)
        break;
    case PRN_POST_SIGMOID:
        EACH(sigmoid(x))
        break;
    case PRN_POST_TANH:
        EACH(tanhf(x))
        break;
    case PRN_POST_HARD_SIGMOID:
        EACH(clamp_unit(a * x + b))
        break;
    case PRN_POST_HARD_SWISH:
        EACH(x * clamp_unit(x * (1.0f / 6.0f) + 0.5f))
        break;
    case PRN_POST_SILU:
        EACH(x * sigmoid(x))
        break;
    case PRN_POST_GELU_ERF:
        EACH(0.5f * x * (1.0f + erff(x * 0.70710678118654752f)))
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
    for (size_t k = 0; k < post_ops->count; k++) apply_one(context, &post_ops->op[k], data, first, count);
}
