/* ConvTranspose: shapes, the native kernel of products, the plain C reference and the descriptor;
 * conv_transpose_direct.c has the one of tiles.
 *
 *   y[n, k, i stride - pad + t dilation] += x[n, c, i] w[c, k, t] over all c of k's group, i and t; plus bias[k]
 *
 * The native kernel computes, image by image, the products of every tap as one matrix product per group, [out channels,
 * K, input positions] in scratch, and gathers each output from them; where no two taps meet, it lays them side by side.
 * Invariant: an output's terms are added tap by tap, in row-major order of the taps. */
#include "base/integers.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/gemm/gemm_kernel.h"
#include "ops/vendor/opencl/opencl_gemm.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/kernels/vector/widen.h"
#include "ops/conv/conv_kernels.h"

/* ---- shapes and cost */

static prony_status conv_transpose_infer(const prony_context *context)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return prn_conv_infer(context, &conv);
}

static prony_status conv_transpose_cost(const prony_context *context, prony_cost *cost)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return prn_conv_cost(context, &conv, prony_shape_numel(&conv.x->shape), conv.group_out, cost);
}

/* ---- native */

static size_t products_bytes(const prn_conv *conv)
{
    int64_t rows, count;
    if (__builtin_mul_overflow(conv->out_channels, conv->kernel_volume, &rows) ||
        __builtin_mul_overflow(rows, conv->in_spatial, &count))
        return SIZE_MAX;
    return prony_dtype_bytes(PRONY_FLOAT32, count);
}

static bool conv_transpose_native_supported(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_transpose_read(context, &conv) != PRONY_OK) return false;
    return conv.batch > 0 && conv.in_spatial > 0 && conv.group_in > 0 && conv.group_out > 0 &&
           products_bytes(&conv) < SIZE_MAX / 2;
}

static prony_status conv_transpose_prepare_native(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    out->scratch_bytes = products_bytes(&conv);
    return prn_prepared_keep(context, &conv, sizeof conv, out);
}

static void group_offsets(const void *argument, int64_t group, int64_t *a, int64_t *b, int64_t *c)
{
    const prn_conv *conv = argument;
    const int64_t rows = conv->group_out * conv->kernel_volume;
    *a = group * conv->group_in * rows;
    *b = group * conv->group_in * conv->in_spatial;
    *c = group * rows * conv->in_spatial;
}

/* [out channel, tap, input position] of one image: the weights' columns by the image. */
static void conv_transpose_multiply(const prony_context *context, const prn_conv *conv, const float *x, float *products)
{
    const prn_gemm gemm = {.m = conv->group_out * conv->kernel_volume,
                           .n = conv->in_spatial,
                           .k = conv->group_in,
                           .a = conv->weights->data,
                           .rs_a = 1,
                           .cs_a = conv->group_out * conv->kernel_volume,
                           .b = x,
                           .rs_b = conv->in_spatial,
                           .cs_b = 1,
                           .c = products,
                           .rs_c = conv->in_spatial,
                           .alpha = 1.0f,
                           .beta = 1.0f,
                           .parts = prn_bf16x3_parts(context->precision)};
    const prn_gemm_batch groups = {.items = conv->groups, .offsets = group_offsets, .argument = conv};
    prn_gemm_run(context->threads, &gemm, &groups, NULL);
}

enum {
    LOOK_UP = 1 << 16, /* elements between two looks at whether to go on */
    SUMS = 1024,       /* of a row, formed at a time */
    TASK_TERMS = 1 << 14,
};

typedef struct job {
    const prony_context *context;
    const prn_conv *conv;
    const float *products, *output;
    float *y;
    int64_t row_tasks; /* of one channel */
} job;

/* Every output is met by one tap of one input. */
static bool conv_transpose_is_apart(const prn_window *window)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        if (window->kernel[a] != window->stride[a] || window->pad_begin[a] != 0) return false;
        if (window->kernel[a] > 1 && window->dilation[a] != 1) return false;
        if (window->out[a] != window->in[a] * window->stride[a]) return false;
    }
    return true;
}

/* y[i taps + t] = start + products[t step + i] for i < n */
static void lay_row(float *restrict y, const float *restrict products, int64_t step, int64_t taps, int64_t n,
                    float start)
{
    if (taps == 2) {
        const float *restrict second = products + step;
        for (int64_t i = 0; i < n; i++) {
            y[2 * i] = start + products[i];
            y[2 * i + 1] = start + second[i];
        }
        return;
    }
    for (int64_t t = 0; t < taps; t++) {
        for (int64_t i = 0; i < n; i++) y[i * taps + t] = start + products[t * step + i];
    }
}

/* The taps of one output channel where each has outputs of its own. */
static void lay_taps(void *argument, int64_t k)
{
    const job *job = argument;
    const prn_conv *conv = job->conv;
    const prn_window *window = &conv->window;
    const int64_t *kernel = window->kernel, width = window->in[2], taps = kernel[2],
                  rows = window->out[0] * window->out[1];
    const float *products = job->products + k * conv->kernel_volume * conv->in_spatial;
    const float start = conv->bias ? ((const float *)conv->bias->data)[k] : 0.0f;
    float *y = job->y + k * conv->out_spatial;
    for (int64_t row = 0; row < rows && !prn_cancelled_at(row); row++) {
        const int64_t z = row / window->out[1], at = row % window->out[1];
        const int64_t tap = (z % kernel[0] * kernel[1] + at % kernel[1]) * taps;
        const float *from =
            products + tap * conv->in_spatial + (z / kernel[0] * window->in[1] + at / kernel[1]) * width;
        for (int64_t x = 0, n; x < width && (x == 0 || !prn_cancelled()); x += n) {
            n = prn_least(width - x, LOOK_UP);
            lay_row(y + (row * width + x) * taps, from + x, conv->in_spatial, taps, n, start);
        }
        prn_post_ops_apply_vec(job->context, y + row * width * taps, y + row * width * taps - job->output,
                               width * taps);
    }
}

/* sums[i] += terms[i] */
static void add_terms(float *restrict sums, const float *restrict terms, int64_t n)
{
    for (int64_t i = 0; i < n; i++) sums[i] += terms[i];
}

/* Adds to the sums of output places first, first + stride, ... what the taps of a row have for them; `products`: of its
 * first tap, for the input row that it meets. */
static void conv_transpose_add_row(const job *job, const float *products, int64_t first, int64_t count, float *sums)
{
    const prn_window *window = &job->conv->window;
    const int64_t stride = window->stride[2], dilation = window->dilation[2], width = window->in[2];
    for (int64_t kx = 0; kx < window->kernel[2]; kx++, products += job->conv->in_spatial) {
        const int64_t from = first + window->pad_begin[2] - kx * dilation; /* stride times the input place of sum 0 */
        if (from % stride) continue;
        const int64_t place = from / stride, skip = place < 0 ? -place : 0, end = prn_least(count, width - place);
        if (end > skip) add_terms(sums + skip, products + place + skip, end - skip);
    }
}

/* The sums of every stride-th place of an output row from `first` on. */
static void sum_places(const job *job, const float *products, int64_t row, int64_t first, int64_t count, float *sums)
{
    const prn_conv *conv = job->conv;
    const prn_window *window = &conv->window;
    for (int64_t t = 0; t < window->kernel[0] * window->kernel[1] && !prn_cancelled(); t++) {
        const int64_t kz = t / window->kernel[1], ky = t % window->kernel[1];
        const int64_t z = row / window->out[1] + window->pad_begin[0] - kz * window->dilation[0];
        const int64_t y = row % window->out[1] + window->pad_begin[1] - ky * window->dilation[1];
        if (z % window->stride[0] || y % window->stride[1]) continue;
        const int64_t plane = z / window->stride[0], at = y / window->stride[1];
        if (plane < 0 || plane >= window->in[0] || at < 0 || at >= window->in[1]) continue;
        conv_transpose_add_row(
            job, products + t * window->kernel[2] * conv->in_spatial + (plane * window->in[1] + at) * window->in[2],
            first, count, sums);
    }
}

/* Gathers the taps of some output rows of one channel: row by row, places of one remainder by the stride at a time,
 * whose terms follow each other. */
static void add_taps(void *argument, int64_t task)
{
    const job *job = argument;
    const prn_conv *conv = job->conv;
    const prn_window *window = &conv->window;
    const int64_t rows = window->out[0] * window->out[1], width = window->out[2], stride = window->stride[2],
                  k = task / job->row_tasks;
    const float *products = job->products + k * conv->kernel_volume * conv->in_spatial;
    const float start = conv->bias ? ((const float *)conv->bias->data)[k] : 0.0f;
    const int64_t begin = rows * (task % job->row_tasks) / job->row_tasks,
                  end = rows * (task % job->row_tasks + 1) / job->row_tasks;
    float sums[SUMS];
    for (int64_t row = begin; row < end && !prn_cancelled_at(row); row++) {
        float *y = job->y + k * conv->out_spatial + row * width;
        for (int64_t remainder = 0; remainder < prn_least(stride, width); remainder++) {
            for (int64_t first = remainder, count; first < width; first += count * stride) {
                count = prn_least(prn_ceil_div(width - first, stride), SUMS);
                for (int64_t i = 0; i < count; i++) sums[i] = start;
                sum_places(job, products, row, first, count, sums);
                for (int64_t i = 0; i < count; i++) y[first + i * stride] = sums[i];
            }
        }
        prn_post_ops_apply_vec(job->context, y, y - job->output, width);
    }
}

static int64_t row_tasks(const prn_conv *conv)
{
    const double terms = (double)conv->in_spatial * (double)conv->kernel_volume;
    const int64_t rows = conv->window.out[0] * conv->window.out[1];
    return terms < TASK_TERMS ? 1 : prn_least(rows, (int64_t)(terms / TASK_TERMS) + 1);
}

static prony_status conv_transpose_run_native(const prony_context *context)
{
    const prn_conv conv = prn_conv_kept(context);
    float *products = context->scratch;
    const bool apart = conv_transpose_is_apart(&conv.window);
    job job = {.context = context,
               .conv = &conv,
               .products = products,
               .output = context->outputs[0]->data,
               .row_tasks = apart ? 1 : row_tasks(&conv)};
    for (int64_t n = 0; n < conv.batch && !prn_cancelled(); n++) {
        const float *x = (const float *)conv.x->data + n * conv.in_channels * conv.in_spatial;
        job.y = (float *)context->outputs[0]->data + n * conv.out_channels * conv.out_spatial;
        conv_transpose_multiply(context, &conv, x, products);
        prn_parallel_tasks(context->threads, conv.out_channels * job.row_tasks, apart ? lay_taps : add_taps, &job);
    }
    return PRONY_OK;
}

/* ---- reference */

/* Input positions along one axis that a tap may join with an output position; the last of them by its first tap. */
typedef struct inputs_met {
    int64_t first, last;
} inputs_met;

static inputs_met meets(const prn_window *window, int axis, int64_t at)
{
    const int64_t from = at + window->pad_begin[axis], stride = window->stride[axis];
    const int64_t far = from - (window->kernel[axis] - 1) * window->dilation[axis];
    if (from < 0) return (inputs_met){0, -1}; /* in front of all */
    return (inputs_met){far > 0 ? prn_ceil_div(far, stride) : 0, prn_least(from / stride, window->in[axis] - 1)};
}

/* The tap that joins them, or -1. */
static int64_t tap(const prn_window *window, int axis, int64_t at, int64_t input)
{
    const int64_t distance = at + window->pad_begin[axis] - input * window->stride[axis];
    return distance % window->dilation[axis] ? -1 : distance / window->dilation[axis];
}

/* Stores the sum for output channel k of image n at output position `at` as element `place`. */
#define DEFINE_SUM(P, DTYPE, name, storage, work, load, store)                                                         \
    static void conv_transpose_sum_##name(const prn_conv *conv, int64_t n, int64_t k,                                  \
                                          const int64_t at[PRN_WINDOW_AXES], int64_t place)                            \
    {                                                                                                                  \
        const prn_window *window = &conv->window;                                                                      \
        const storage *inputs = conv->x->data, *weights = conv->weights->data;                                         \
        int64_t group = k / conv->group_out;                                                                           \
        work sum = conv->bias ? load(((const storage *)conv->bias->data)[k]) : 0;                                      \
        const inputs_met zs = meets(window, 0, at[0]), ys = meets(window, 1, at[1]), xs = meets(window, 2, at[2]);     \
        for (int64_t z = zs.last; z >= zs.first; z--) {                                                                \
            const int64_t kz = tap(window, 0, at[0], z);                                                               \
            for (int64_t y = ys.last; kz >= 0 && y >= ys.first && !prn_cancelled(); y--) {                             \
                const int64_t ky = tap(window, 1, at[1], y);                                                           \
                for (int64_t x = xs.last; ky >= 0 && x >= xs.first; x--) {                                             \
                    const int64_t kx = tap(window, 2, at[2], x);                                                       \
                    if (kx < 0) continue;                                                                              \
                    const int64_t t = (kz * window->kernel[1] + ky) * window->kernel[2] + kx;                          \
                    const int64_t position = (z * window->in[1] + y) * window->in[2] + x;                              \
                    for (int64_t c = group * conv->group_in; c < (group + 1) * conv->group_in; c++) {                  \
                        int64_t input = (n * conv->in_channels + c) * conv->in_spatial + position;                     \
                        int64_t weight = (c * conv->group_out + k % conv->group_out) * conv->kernel_volume + t;        \
                        sum += load(inputs[input]) * load(weights[weight]);                                            \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        ((storage *)conv->y->data)[place] = store(sum);                                                                \
    }
PRN_FLOAT_TYPES(DEFINE_SUM, )

static prony_status conv_transpose_run_reference(const prony_context *context)
{
    static const prn_conv_sum_fn sums[PRONY_DTYPE_COUNT] = {
#define SUM_ROW(P, DTYPE, name, storage, work, load, store) [PRONY_##DTYPE] = conv_transpose_sum_##name,
        PRN_FLOAT_TYPES(SUM_ROW, )};
    const prn_conv conv = prn_conv_kept(context);
    prn_conv_reference(context, &conv, sums[conv.x->dtype]);
    return PRONY_OK;
}

static prony_status conv_transpose_prepare_reference(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return prn_prepared_keep(context, &conv, sizeof conv, out);
}

/* ---- descriptor */

static const prn_param params[] = {PRN_WINDOW_PARAMS(prn_conv_params),
                                   PRN_INT(prn_conv_params, group, 1),
                                   PRN_INTS(prn_conv_params, output_padding),
                                   PRN_INTS(prn_conv_params, output_shape),
                                   {0}};

static const prn_kernel widened = {.supported = conv_transpose_native_supported,
                                   .prepare = conv_transpose_prepare_native,
                                   .run = conv_transpose_run_native,
                                   .release = prn_free};
PRN_WIDENED(conv_transpose_half, &widened)

#ifdef PRN_HAVE_OPENCL
static bool conv_transpose_opencl_supported(const prony_context *context)
{
    return prn_opencl_conv_supported(context, prn_conv_transpose_read);
}

static prony_status conv_transpose_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return prn_opencl_conv_transpose_prepare(context, &conv, out);
}
#endif

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("convtranspose_f32_opencl", PRN_TYPE_F32, conv_transpose_opencl_supported, conv_transpose_opencl_prepare, .post_ops = true)
    {.name = "convtranspose_f32_direct", .backend = "native", .types = PRN_TYPE_F32, .precisions = ~PRN_PRECISION(FP32_STRICT),
     .supported = prn_conv_transpose_direct_supported, .profitable = prn_conv_transpose_direct_profitable, .layouts = prn_conv_blocked_layouts,
     .facts = prn_conv_transpose_direct_facts, .prepare = prn_conv_transpose_direct_prepare, .run = prn_conv_direct_run,
     .release = prn_conv_direct_release, .inplace = ~UINT32_C(7), .post_ops = true, .post_add_after_store = true, .own_layout = true, .packs = 2},
    {.name = "convtranspose_f32_depthwise", .backend = "native", .types = PRN_TYPE_F32, .precisions = ~PRN_PRECISION(FP32_STRICT),
     .supported = prn_conv_transpose_depthwise_supported, .layouts = prn_conv_blocked_layouts,
     .facts = prn_conv_depthwise_facts, .prepare = prn_conv_transpose_depthwise_prepare, .run = prn_conv_depthwise_run,
     .release = prn_free, .post_ops = true, .own_layout = true, .packs = 2},
    {.name = "convtranspose_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = conv_transpose_native_supported,
     .prepare = conv_transpose_prepare_native, .run = conv_transpose_run_native, .release = prn_free, .post_ops = true},
    PRN_WIDENED_ROW(conv_transpose_half, "convtranspose_half_native"),
    {.name = "convtranspose_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .prepare = conv_transpose_prepare_reference,
     .run = conv_transpose_run_reference, .release = prn_free, .post_ops = true},
    {0}};

const prn_op prn_ops_conv_transpose[] = {
    {.name = "ConvTranspose", .since_opset = 1, .inputs = {2, 3}, .flags = PRN_OP_POST_OPS,
     .params = params, .params_bytes = sizeof(prn_conv_params), .check = prn_conv_check,
     .infer = conv_transpose_infer, .cost = conv_transpose_cost, .kernels = kernels,
     .cost_text = "MACs M = input elements (Cout/g) K; FLOPs 2M, + n with bias"},
    {0}};
// clang-format on
