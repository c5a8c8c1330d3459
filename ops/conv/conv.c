/* Conv: the plain C reference and the descriptor.
 *
 *   y[n, k, o] = bias[k] + sum over c, t of x[n, g(k) C/g + c, o stride - pad + t dilation] w[k, c, t], then
 *   post_ops */
#include "ops/kernels/window/conv_problem.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/conv_cost_model.h"
#include "ops/conv/conv_f64.h"
#include "ops/vendor/dnnl.h"
#include "ops/vendor/opencl/opencl_gemm.h"

/* ---- shapes and cost */

static prony_status conv_op_infer(const prony_context *context)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    return prn_conv_infer(context, &conv);
}

static prony_status conv_op_cost(const prony_context *context, prony_cost *cost)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    return prn_conv_cost(context, &conv, prony_shape_numel(&conv.y->shape), conv.group_in, cost);
}

/* ---- reference */

enum { LONG_ROW = 1 << 16 }; /* taps between two looks at whether to go on */

/* Stores the sum for output channel k of image n at output position `at` as element `place`. */
#define DEFINE_SUM(P, DTYPE, name, storage, work, load, store)                                                         \
    static void conv_op_sum_##name(const prn_conv *conv, int64_t n, int64_t k, const int64_t at[PRN_WINDOW_AXES],      \
                                   int64_t place)                                                                      \
    {                                                                                                                  \
        const prn_window *window = &conv->window;                                                                      \
        const storage *weights = (const storage *)conv->weights->data + k * conv->group_in * conv->kernel_volume;      \
        int64_t channel = n * conv->in_channels + k / conv->group_out * conv->group_in;                                \
        const storage *x = (const storage *)conv->x->data + channel * conv->in_spatial;                                \
        int64_t start[PRN_WINDOW_AXES], first[PRN_WINDOW_AXES], last[PRN_WINDOW_AXES];                                 \
        for (int a = 0; a < PRN_WINDOW_AXES; a++) {                                                                    \
            start[a] = at[a] * window->stride[a] - window->pad_begin[a];                                               \
            prn_window_clip(window, a, start[a], &first[a], &last[a]);                                                 \
        }                                                                                                              \
        const int64_t gap = window->dilation[2];                                                                       \
        const bool long_rows = (last[2] - first[2]) * (last[1] - first[1]) > LONG_ROW;                                 \
        work sum = conv->bias ? load(((const storage *)conv->bias->data)[k]) : 0;                                      \
        for (int64_t c = 0; c < conv->group_in; c++, x += conv->in_spatial, weights += conv->kernel_volume) {          \
            if (prn_cancelled_at(c)) return;                                                                           \
            for (int64_t i = first[0]; i < last[0]; i++) {                                                             \
                for (int64_t j = first[1]; j < last[1] && !(long_rows && prn_cancelled()); j++) {                      \
                    int64_t row =                                                                                      \
                        (start[0] + i * window->dilation[0]) * window->in[1] + start[1] + j * window->dilation[1];     \
                    const storage *taps = weights + (i * window->kernel[1] + j) * window->kernel[2];                   \
                    for (int64_t from = first[2]; from < last[2] && !(long_rows && prn_cancelled());                   \
                         from += LONG_ROW) {                                                                           \
                        const int64_t to = last[2] - from < LONG_ROW ? last[2] : from + LONG_ROW;                      \
                        const storage *line = x + row * window->in[2] + start[2] + from * gap, *tap = taps + from;     \
                        for (int64_t t = 0; t < to - from; t++) sum += load(line[t * gap]) * load(tap[t]);             \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        ((storage *)conv->y->data)[place] = store(sum);                                                                \
    }
PRN_FLOAT_TYPES(DEFINE_SUM, )

void prn_conv_reference(const prony_context *context, const prn_conv *conv, prn_conv_sum_fn sum)
{
    const int64_t *out = conv->window.out;
    const bool long_sums = conv->group_in > 256 || conv->kernel_volume > 256;
    for (int64_t plane = 0; plane < conv->batch * conv->out_channels; plane++) {
        for (int64_t p = 0; p < conv->out_spatial; p++) {
            if (long_sums ? prn_cancelled() : prn_cancelled_at(p)) return;
            const int64_t at[PRN_WINDOW_AXES] = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
            sum(conv, plane / conv->out_channels, plane % conv->out_channels, at, plane * conv->out_spatial + p);
        }
        if (!context->post_ops) continue;
        prn_post_ops_apply_f32(context, (float *)conv->y->data + plane * conv->out_spatial, plane * conv->out_spatial,
                               conv->out_spatial);
    }
}

static prony_status conv_op_run_reference(const prony_context *context)
{
    static const prn_conv_sum_fn sums[PRONY_DTYPE_COUNT] = {
#define SUM_ROW(P, DTYPE, name, storage, work, load, store) [PRONY_##DTYPE] = conv_op_sum_##name,
        PRN_FLOAT_TYPES(SUM_ROW, )};
    const prn_conv conv = prn_conv_kept(context);
    prn_conv_reference(context, &conv, sums[conv.x->dtype]);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static bool conv_op_opencl_supported(const prony_context *context)
{
    return prn_opencl_conv_supported(context, prn_conv_read);
}

static prony_status conv_op_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    return prn_opencl_conv_prepare(context, &conv, out);
}
#endif

/* ---- descriptor */

static const prn_param params[] = {PRN_WINDOW_PARAMS(prn_conv_params), PRN_INT(prn_conv_params, group, 1), {0}};

static const prn_kernel widened = {.supported = prn_conv_native_supported,
                                   .prepare = prn_conv_native_prepare,
                                   .run = prn_conv_native_run,
                                   .release = prn_free,
                                   .packs = 2};
PRN_WIDENED(conv_op_half, &widened)

/* The same kernel, by as many parts as the session's precision wants. */
#define CONV_SPLIT                                                                                                     \
    .backend = "native", .types = PRN_TYPE_F32, .supported = prn_conv_bf16x3_supported,                                \
    .predict = prn_conv_bf16x3_predict, .layouts = prn_conv_bf16x3_layouts, .facts = prn_conv_bf16x3_facts,            \
    .prepare = prn_conv_bf16x3_prepare, .run = prn_conv_bf16x3_run, .release = prn_free, .inplace = ~UINT32_C(7),      \
    .post_ops = true, .own_layout = true, .packs = 2

#define CONV_DIRECT                                                                                                    \
    .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_conv_blocked_layouts, .facts = prn_conv_direct_facts,   \
    .prepare = prn_conv_direct_prepare, .run = prn_conv_direct_run, .release = prn_conv_direct_release,                \
    .inplace = ~UINT32_C(7), .post_ops = true, .post_add_after_store = true, .own_layout = true, .packs = 2

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("conv_f32_opencl", PRN_TYPE_F32, conv_op_opencl_supported, conv_op_opencl_prepare, .post_ops = true)
    {.name = "conv_fast_amx", .precisions = PRN_PRECISION(FAST), CONV_SPLIT},
    {.name = "conv_bf16_dot", .precisions = PRN_PRECISION(BF16), CONV_SPLIT},
    {.name = "conv_f32_amx", .precisions = PRN_PRECISION(FP32), CONV_SPLIT},
    {.name = "conv_f32_winograd", .backend = "native", .types = PRN_TYPE_F32, .precisions = ~PRN_PRECISION(FP32_STRICT), .supported = prn_conv_winograd_supported,
     .predict = prn_conv_winograd_predict, .layouts = prn_conv_blocked_layouts, .facts = prn_conv_winograd_facts,
     .prepare = prn_conv_winograd_prepare, .run = prn_conv_winograd_run, .release = prn_free, .inplace = ~UINT32_C(7), .post_ops = true,
     .own_layout = true, .packs = 2},
    {.name = "conv_f32_flat", .backend = "native", .types = PRN_TYPE_F32, .precisions = ~PRN_PRECISION(FP32_STRICT), .supported = prn_conv_row_direct_supported,
     .predict = prn_conv_row_direct_predict, .facts = prn_conv_row_direct_facts, .prepare = prn_conv_row_direct_prepare, .run = prn_conv_row_direct_run,
     .release = prn_free, .post_ops = true, .packs = 2},
    {.name = "conv_f32_stem", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_conv_first_layer_supported,
     .predict = prn_conv_first_layer_predict, .layouts = prn_conv_first_layer_layouts, .facts = prn_conv_first_layer_facts, .prepare = prn_conv_first_layer_prepare,
     .run = prn_conv_direct_run, .release = prn_conv_direct_release, .inplace = ~UINT32_C(7), .post_ops = true, .post_add_after_store = true, .own_layout = true, .packs = 2},
    {.name = "conv_f32_direct", .supported = prn_conv_direct_supported, .predict = prn_conv_direct_predict, CONV_DIRECT},
    {.name = "conv_f32_depthwise", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_conv_depthwise_supported,
     .predict = prn_conv_depthwise_predict, .layouts = prn_conv_blocked_layouts, .facts = prn_conv_depthwise_facts,
     .prepare = prn_conv_depthwise_prepare, .run = prn_conv_depthwise_run, .release = prn_free, .inplace = ~UINT32_C(7), .post_ops = true, .post_add_after_store = true,
     .own_layout = true, .packs = 2},
#ifdef PRN_HAVE_DNNL
    {.name = "conv_f32_dnnl", .backend = "dnnl", .types = PRN_TYPE_F32, .precisions = ~PRN_PRECISION(FP32_STRICT), .supported = prn_dnnl_conv_supported, .predict = prn_conv_dnnl_cycles,
     .layouts = prn_dnnl_conv_layouts, .prepare = prn_dnnl_conv_prepare, .run = prn_dnnl_conv_run,
     .release = prn_dnnl_conv_release,
     .inplace = ~UINT32_C(7), /* the residual may be overwritten; operands of the sum itself may not */
     .post_ops = true, .own_layout = true, .packs = 2},
#endif
    {.name = "conv_f32_direct_groups", .supported = prn_conv_direct_groups_supported, .predict = prn_conv_direct_predict, CONV_DIRECT},
    {.name = "conv_f32_direct_variable", .supported = prn_conv_direct_variable_supported, .predict = prn_conv_direct_predict, CONV_DIRECT},
    {.name = "conv_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_conv_native_supported,
     .prepare = prn_conv_native_prepare, .run = prn_conv_native_run, .release = prn_free, .post_ops = true, .packs = 2},
    PRN_WIDENED_ROW(conv_op_half, "conv_half_native"),
    {.name = "conv_f64_native", .backend = "native", .types = PRN_TYPE(PRONY_FLOAT64), .supported = prn_conv_f64_supported,
     .prepare = prn_conv_keep, .run = prn_conv_f64_run, .release = prn_free, .post_ops = true},
    {.name = "conv_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .prepare = prn_conv_keep, .run = conv_op_run_reference,
     .release = prn_free, .post_ops = true},
    {0}};

const prn_op prn_ops_conv[] = {
    {.name = "Conv", .since_opset = 1, .inputs = {2, 3}, .flags = PRN_OP_POST_OPS,
     .params = params, .params_bytes = sizeof(prn_conv_params), .check = prn_conv_check,
     .infer = conv_op_infer, .cost = conv_op_cost, .cost_text = "MACs M = n (Cin/g) K; FLOPs 2M, + n with bias", .kernels = kernels},
    {0}};
// clang-format on
