/* ConvTranspose: shapes, the native kernel, the plain C reference and the descriptor.
 *
 *   y[n, k, i stride - pad + t dilation] += x[n, c, i] w[c, k, t] over all c of k's group, i and t; plus bias[k]
 *
 * The native kernel computes, image by image, the products of every tap as a 1x1 convolution with K outputs per
 * channel, [out channels, K, input positions] in scratch, and adds each tap's row into the output; where no two taps
 * meet, it lays them side by side. The state is the problem and the packed weights. Invariant: an output's terms are
 * added tap by tap, in row-major order of the taps. */
#include "base/integers.h"
#include "ops/loops/conv_problem.h"

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "base/stop.h"
#include "ops/loops/number.h"
#include "ops/loops/widen.h"
#include "ops/nn/conv_native.h"

/* ---- shapes and cost */

static prony_status infer(const prony_context *context)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return prn_conv_infer(context, &conv);
}

static prony_status cost(const prony_context *context, prony_cost *cost)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    return prn_conv_cost(context, &conv, prony_shape_numel(&conv.x->shape), conv.group_out, cost);
}

/* ---- native */

/* The problem of all taps' products for one image. */
static prn_conv tap_products(const prn_conv *conv)
{
    prn_conv products = *conv;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        products.window.out[a] = conv->window.in[a];
        products.window.kernel[a] = products.window.stride[a] = products.window.dilation[a] = 1;
        products.window.pad_begin[a] = products.window.pad_end[a] = 0;
    }
    products.batch = 1;
    products.out_channels = conv->out_channels * conv->kernel_volume;
    products.group_out = conv->group_out * conv->kernel_volume;
    products.kernel_volume = 1;
    products.out_spatial = conv->in_spatial;
    products.bias = NULL;
    return products;
}

static prn_conv_matrix weight_matrix(const prn_conv *conv)
{
    int64_t rows = conv->group_out * conv->kernel_volume;
    return (prn_conv_matrix){.data = conv->weights->data,
                             .groups = conv->groups,
                             .rows = rows,
                             .depth = conv->group_in,
                             .group_step = conv->group_in * rows,
                             .row_step = 1,
                             .depth_step = rows};
}

static size_t products_bytes(const prn_conv *conv)
{
    int64_t rows, count;
    if (__builtin_mul_overflow(conv->out_channels, conv->kernel_volume, &rows) ||
        __builtin_mul_overflow(rows, conv->in_spatial, &count))
        return SIZE_MAX;
    return prony_dtype_bytes(PRONY_FLOAT32, count);
}

static bool native_usable(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_transpose_read(context, &conv) != PRONY_OK) return false;
    return conv.batch > 0 && conv.in_spatial > 0 && conv.group_in > 0 && conv.group_out > 0 &&
           products_bytes(&conv) < SIZE_MAX / 2;
}

static prony_status prepare_native(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_transpose_read(context, &conv));
    prn_conv_matrix matrix = weight_matrix(&conv);
    const size_t bytes = products_bytes(&conv);
    PRN_TRY(prn_conv_matrix_prepare(context, &conv, &matrix, out));
    if (out->scratch_bytes > SIZE_MAX - bytes) {
        prn_free(out->state);
        return prn_no_memory(context->error);
    }
    out->scratch_bytes += bytes;
    return PRONY_OK;
}

enum { LOOK_UP = 1 << 16 }; /* elements between two looks at whether to go on */

typedef struct job {
    const prn_conv *conv;
    prn_window mirror; /* from the output to the input: what a forward convolution would see */
    const float *products;
    float *y;
} job;

/* Every output is met by one tap of one input. */
static bool is_apart(const prn_window *window)
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
    for (int64_t row = 0; row < rows && !prn_stopped_at(row); row++) {
        const int64_t z = row / window->out[1], at = row % window->out[1];
        const int64_t tap = (z % kernel[0] * kernel[1] + at % kernel[1]) * taps;
        const float *from =
            products + tap * conv->in_spatial + (z / kernel[0] * window->in[1] + at / kernel[1]) * width;
        for (int64_t x = 0, n; x < width && (x == 0 || !prn_stopped()); x += n) {
            n = prn_least(width - x, LOOK_UP);
            lay_row(y + (row * width + x) * taps, from + x, conv->in_spatial, taps, n, start);
        }
    }
}

/* Gathers the taps of one output channel. */
static void add_taps(void *argument, int64_t k)
{
    const job *job = argument;
    const prn_conv *conv = job->conv;
    const prn_window *mirror = &job->mirror;
    const float *products = job->products + k * conv->kernel_volume * conv->in_spatial;
    float *y = job->y + k * conv->out_spatial, start = conv->bias ? ((const float *)conv->bias->data)[k] : 0.0f;
    int64_t stride = mirror->stride[2], width = mirror->out[2];
    for (int64_t from = 0; from < conv->out_spatial && (from == 0 || !prn_stopped()); from += LOOK_UP) {
        const int64_t to = conv->out_spatial - from < LOOK_UP ? conv->out_spatial : from + LOOK_UP;
        for (int64_t i = from; i < to; i++) y[i] = start;
    }
    for (int64_t t = 0; t < conv->kernel_volume && !prn_stopped(); t++, products += conv->in_spatial) {
        int64_t kx = t % mirror->kernel[2], ky = t / mirror->kernel[2] % mirror->kernel[1];
        int64_t kz = t / (mirror->kernel[2] * mirror->kernel[1]), first, last;
        int64_t shift = kx * mirror->dilation[2] - mirror->pad_begin[2];
        prn_window_outputs(mirror, kx, &first, &last);
        for (int64_t row = 0; row < mirror->out[0] * mirror->out[1] && !prn_stopped_at(row); row++) {
            int64_t to = prn_window_row(mirror, row, kz, ky);
            if (to < 0) continue;
            for (int64_t from = first, end; from < last && (from == first || !prn_stopped()); from = end) {
                end = last - from < LOOK_UP ? last : from + LOOK_UP;
                for (int64_t i = from; i < end; i++) y[to + i * stride + shift] += products[row * width + i];
            }
        }
    }
}

static prony_status run_native(const prony_context *context)
{
    const prn_conv conv = prn_conv_kept(context);
    prn_conv products = tap_products(&conv);
    prn_conv_matrix matrix = weight_matrix(&conv);
    const float *packed = prn_conv_matrix_packed(context, &matrix);
    float *space = (float *)((char *)context->scratch + (context->scratch_bytes - products_bytes(&conv)));
    job job = {.conv = &conv, .mirror = conv.window, .products = space};
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        job.mirror.in[a] = conv.window.out[a];
        job.mirror.out[a] = conv.window.in[a];
    }
    for (int64_t n = 0; n < conv.batch && !prn_stopped(); n++) {
        const float *x = (const float *)conv.x->data + n * conv.in_channels * conv.in_spatial;
        job.y = (float *)context->outputs[0]->data + n * conv.out_channels * conv.out_spatial;
        prn_conv_product(context, &products, packed, x, space, false);
        prn_parallel_tasks(context->threads, conv.out_channels, is_apart(&conv.window) ? lay_taps : add_taps, &job);
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
    static void sum_##name(const prn_conv *conv, int64_t n, int64_t k, const int64_t at[PRN_WINDOW_AXES],              \
                           int64_t place)                                                                              \
    {                                                                                                                  \
        const prn_window *window = &conv->window;                                                                      \
        const storage *inputs = conv->x->data, *weights = conv->weights->data;                                         \
        int64_t group = k / conv->group_out;                                                                           \
        work sum = conv->bias ? load(((const storage *)conv->bias->data)[k]) : 0;                                      \
        const inputs_met zs = meets(window, 0, at[0]), ys = meets(window, 1, at[1]), xs = meets(window, 2, at[2]);     \
        for (int64_t z = zs.last; z >= zs.first; z--) {                                                                \
            const int64_t kz = tap(window, 0, at[0], z);                                                               \
            for (int64_t y = ys.last; kz >= 0 && y >= ys.first && !prn_stopped(); y--) {                               \
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

static prony_status run_reference(const prony_context *context)
{
    static const prn_conv_sum_fn sums[PRONY_DTYPE_COUNT] = {
#define SUM_ROW(P, DTYPE, name, storage, work, load, store) [PRONY_##DTYPE] = sum_##name,
        PRN_FLOAT_TYPES(SUM_ROW, )};
    const prn_conv conv = prn_conv_kept(context);
    prn_conv_reference(context, &conv, sums[conv.x->dtype]);
    return PRONY_OK;
}

static prony_status prepare_reference(const prony_context *context, prn_prepared *out)
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

static const prn_kernel widened = {
    .usable = native_usable, .prepare = prepare_native, .run = run_native, .release = prn_free};
PRN_WIDENED(half, &widened)

static const prn_kernel kernels[] = {
    {.name = "convtranspose_f32_native", .backend = "native", .types = PRN_TYPE_F32, .usable = native_usable,
     .prepare = prepare_native, .run = run_native, .release = prn_free, .packs = 2},
    PRN_WIDENED_ROW(half, "convtranspose_half_native"),
    {.name = "convtranspose_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .prepare = prepare_reference,
     .run = run_reference, .release = prn_free},
    {0}};

const prn_op prn_ops_conv_transpose[] = {
    {.name = "ConvTranspose", .since_opset = 1, .inputs = {2, 3},
     .params = params, .params_bytes = sizeof(prn_conv_params), .check = prn_conv_check,
     .infer = infer, .cost = cost, .kernels = kernels,
     .cost_text = "MACs M = input elements (Cout/g) K; FLOPs 2M, + n with bias"},
    {0}};
