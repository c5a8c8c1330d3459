/* QLinearAveragePool and QLinearGlobalAveragePool (com.microsoft): averages of 8-bit codes, quantized again.
 *
 *   y = quantized(x_scale (sum of codes - taps zero point) / divisor / y_scale)
 *
 * Codes lie channels first ([N, C, spatial …]) or last ([N, spatial …, C]). A run is a stretch of outputs that are
 * summed side by side: positions of a row, or channels of a position. Invariant: sums are exact, so they do not depend
 * on how outputs are cut into runs. */
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "ops/kernels/int8/quantized.h"
#include "ops/kernels/window/window.h"
#include "ops/vendor/opencl/opencl_gemm.h"
#include "ops/vendor/opencl/opencl_quantize.h"

#include <string.h>

typedef struct pool_params {
    prn_window_params window;
    int64_t count_include_pad, channels_last;
} pool_params;

static const prn_param window_attributes[] = {PRN_WINDOW_PARAMS(pool_params),
                                              PRN_WINDOW_ROW(pool_params, ceil_mode, PRN_PARAM_INT, NULL),
                                              PRN_INT(pool_params, count_include_pad, 0),
                                              PRN_INT(pool_params, channels_last, 0),
                                              {0}};
static const prn_param global_attributes[] = {PRN_INT(pool_params, channels_last, 0), {0}};

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };
enum { RUN = 256, TASK_TAPS = 1 << 16 };

/* A row's variant. */
typedef enum pool_extent { WINDOW, GLOBAL } pool_extent;

typedef struct pool {
    prn_window window;
    int64_t batch, channels;
    bool last, stored_last; /* channels last in the shape; in memory though they are second in the shape */
    bool padding;           /* counts in the divisor */
    prony_dtype type;
    const void *x;
    void *y;
    prn_quant_scalar from, to;
    int64_t rows, rows_per_task; /* rows of output positions, of all images and, channels first, channels */
} pool;

/* ---- shapes and cost */

/* The shape as [N, C, spatial …]. */
static prony_shape channels_first(const prony_shape *shape, bool last)
{
    prony_shape out = *shape;
    if (!last) return out;
    out.dim[1] = shape->dim[shape->rank - 1];
    for (int d = 2; d < shape->rank; d++) out.dim[d] = shape->dim[d - 1];
    return out;
}

/* The pooling problem, with channels last seen as channels first; a global pool's window is the whole plane. */
static prony_status qlinear_pool_read(const prony_context *context, pool *out)
{
    const bool global = *(const pool_extent *)prn_variant(context) == GLOBAL;
    const pool_params *params = context->params;
    const prony_value *x = context->inputs[X];
    *out = (pool){.last = params->channels_last != 0,
                  .stored_last = x->layout == PRN_NHWC,
                  .padding = params->count_include_pad != 0,
                  .type = x->dtype};
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_rank(context, X, 3, 2 + PRN_WINDOW_AXES));
    PRN_TRY(prn_quant_scalar_check(context, X_SCALE, X_ZERO, PRN_TYPE(x->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, Y_SCALE, Y_ZERO, PRN_TYPE(x->dtype)));
    prony_value seen = *x;
    seen.shape = channels_first(&x->shape, out->last);
    const prony_value *inputs[] = {&seen};
    prony_context shadow = *context;
    shadow.inputs = inputs;
    shadow.input_count = 1;
    out->batch = seen.shape.dim[0];
    out->channels = seen.shape.dim[1];
    const size_t axes = (size_t)seen.shape.rank - 2;
    prn_window_params whole = {.auto_pad = "NOTSET"};
    const prn_window_params *window = global ? &whole : &params->window;
    if (!global && window->kernel_shape.count != axes)
        return prony_fail(context, PRONY_INVALID_MODEL, "kernel_shape has %zu entries, wanted %zu",
                          window->kernel_shape.count, axes);
    for (size_t d = 0; global && d < axes; d++) {
        if (seen.shape.dim[d + 2] < 1)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "spatial axis %zu has no elements", d);
    }
    PRN_TRY(prn_window_begin(&shadow, window, global ? seen.shape.dim + 2 : window->kernel_shape.v, &out->window));
    return prn_window_forward(&shadow, window, &out->window);
}

static prony_status qlinear_pool_infer(const prony_context *context)
{
    pool p;
    PRN_TRY(qlinear_pool_read(context, &p));
    prony_shape shape = prn_window_output_shape(&p.window, p.batch, p.channels);
    if (p.last) {
        for (int d = 1; d < shape.rank - 1; d++) shape.dim[d] = shape.dim[d + 1];
        shape.dim[shape.rank - 1] = p.channels;
    }
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, p.type, &shape);
    return PRONY_OK;
}

static prony_status qlinear_pool_cost(const prony_context *context, prony_cost *out)
{
    pool p;
    PRN_TRY(qlinear_pool_read(context, &p));
    const int64_t volume = prn_window_volume(p.window.kernel), outputs = prony_shape_numel(&context->outputs[0]->shape);
    prn_cost_fact(out, "kernel_volume", volume);
    prn_cost_fact(out, "input_elements", prony_shape_numel(&context->inputs[X]->shape));
    prn_cost_fact(out, "output_elements", outputs);
    return prn_cost_elementwise(context, out, (uint64_t)outputs, (uint64_t)volume + 7, 0);
}

/* ---- native */

/* sums[i] += x[at + i step] */
static void qlinear_pool_add_codes(const pool *p, int32_t *sums, int64_t at, int64_t step, int64_t n)
{
    if (p->type == PRONY_UINT8) {
        const uint8_t *x = (const uint8_t *)p->x + at;
        for (int64_t i = 0; i < n; i++) sums[i] += x[i * step];
    } else {
        const int8_t *x = (const int8_t *)p->x + at;
        for (int64_t i = 0; i < n; i++) sums[i] += x[i * step];
    }
}

/* The sum of `count` codes that follow each other. */
static int32_t sum_codes(const pool *p, int64_t at, int64_t count)
{
    enum { WIDTH = 16 };
    int32_t sums[WIDTH] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + WIDTH <= count && !prn_cancelled_at(i / WIDTH); i += WIDTH)
        qlinear_pool_add_codes(p, sums, at + i, 1, WIDTH);
    if (count - i > WIDTH) return 0; /* cancelled */
    qlinear_pool_add_codes(p, sums, at + i, 1, count - i);
    for (int k = 0; k < WIDTH; k++) sum += sums[k];
    return sum;
}

/* Quantizes n sums over `taps` codes each, for outputs from `at` on. */
static void qlinear_pool_finish(const pool *p, const int32_t *sums, const int64_t *taps, const int64_t *divisor,
                                int64_t at, int64_t n)
{
    static const prn_cast_rule rule = {.saturate = true};
    float values[RUN], zero[RUN];
    for (int64_t i = 0; i < n; i++) {
        const float sum = (float)((double)sums[i] - (double)taps[i] * (double)p->from.zero);
        values[i] = sum * p->from.scale / (float)divisor[i] / p->to.scale;
        zero[i] = p->to.zero;
    }
    prn_quantize_run(p->y, p->type, at, values, zero, n, &rule);
}

/* The elements that a run of outputs meets in the input: n of them from position `column` (and channel `first_lane`)
 * of row `row` on. */
typedef struct run {
    int64_t base, row, column, n;
    int64_t from[PRN_WINDOW_AXES], to[PRN_WINDOW_AXES]; /* taps that meet the input somewhere */
} run;

/* Adds one row of every window, which starts at element `start` of the input's positions. */
static void add_tap_row(const pool *p, const run *r, int64_t start, int32_t *sums)
{
    const prn_window *w = &p->window;
    for (int64_t kx = r->from[2]; kx < r->to[2] && !prn_cancelled_at(kx); kx++) {
        const int64_t shift = kx * w->dilation[2] - w->pad_begin[2];
        int64_t first, last;
        prn_window_outputs(w, kx, &first, &last);
        if (p->last) {
            const int64_t x = r->column * w->stride[2] + shift;
            if (r->column >= first && r->column < last)
                qlinear_pool_add_codes(p, sums, r->base + (start + x) * p->channels, 1, r->n);
            continue;
        }
        if (first < r->column) first = r->column;
        if (last > r->column + r->n) last = r->column + r->n;
        if (first < last) {
            qlinear_pool_add_codes(p, sums + (first - r->column), r->base + start + first * w->stride[2] + shift,
                                   w->stride[2], last - first);
        }
    }
}

/* Adds to the sums of n outputs, from position `column` (and channel `first_lane`) of a row on, what their windows
 * hold.
 */
static void add_window_rows(const pool *p, int64_t plane, int64_t row, int64_t column, int64_t first_lane, int64_t n,
                            int32_t *sums)
{
    const prn_window *w = &p->window;
    const int64_t lanes = p->last ? p->channels : 1;
    run r = {plane * prn_window_volume(w->in) * lanes + first_lane, row, column, n, {0}, {0}};
    const bool whole_row =
        !p->last && w->out[2] == 1 && w->kernel[2] == w->in[2] && w->pad_begin[2] == 0 && w->dilation[2] == 1;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) prn_window_useful(w, a, &r.from[a], &r.to[a]);
    for (int64_t kz = r.from[0]; kz < r.to[0]; kz++) {
        for (int64_t ky = r.from[1]; ky < r.to[1]; ky++) {
            const int64_t start = prn_window_row(w, row, kz, ky);
            if (w->in[2] > 1024 ? prn_cancelled() : prn_cancelled_at(ky)) return;
            if (start < 0) continue;
            if (whole_row)
                sums[0] += sum_codes(p, r.base + start, w->in[2]);
            else
                add_tap_row(p, &r, start, sums);
        }
    }
}

/* One row of output positions: runs of positions, or of channels at each position. */
static void qlinear_pool_row(const pool *p, int64_t index)
{
    const prn_window *w = &p->window;
    const int64_t lanes = p->last ? p->channels : 1, width = w->out[2];
    const int64_t plane = index / (w->out[0] * w->out[1]), row = index % (w->out[0] * w->out[1]);
    const int64_t z = row / w->out[1], y = row % w->out[1];
    const int64_t high_taps = prn_window_taps(w, 0, z, false) * prn_window_taps(w, 1, y, false);
    const int64_t high_divisor = prn_window_taps(w, 0, z, p->padding) * prn_window_taps(w, 1, y, p->padding);
    int32_t sums[RUN];
    int64_t taps[RUN], divisor[RUN];
    for (int64_t at = 0; at < width * lanes;) {
        const int64_t column = at / lanes, lane = at % lanes;
        const int64_t rest = p->last ? lanes - lane : width - column, n = rest < RUN ? rest : RUN;
        memset(sums, 0, sizeof sums);
        add_window_rows(p, plane, row, column, lane, n, sums);
        for (int64_t i = 0; i < n; i++) {
            const int64_t x = p->last ? column : column + i;
            taps[i] = high_taps * prn_window_taps(w, 2, x, false);
            divisor[i] = high_divisor * prn_window_taps(w, 2, x, p->padding);
        }
        qlinear_pool_finish(p, sums, taps, divisor, index * width * lanes + at, n);
        at += n;
    }
}

static void qlinear_pool_task(void *argument, int64_t task)
{
    const pool *p = argument;
    const int64_t end = (task + 1) * p->rows_per_task;
    for (int64_t row = task * p->rows_per_task; row < end && row < p->rows && !prn_cancelled(); row++)
        qlinear_pool_row(p, row);
}

static prony_status qlinear_pool_prepare(const prony_context *context, prn_prepared *out)
{
    pool p;
    PRN_TRY(qlinear_pool_read(context, &p));
    return prn_prepared_keep(context, &p, sizeof p, out);
}

static pool open_pool(const prony_context *context)
{
    pool p = *(const pool *)context->state;
    p.x = context->inputs[X]->data;
    p.y = context->outputs[0]->data;
    p.from = prn_quant_scalar_get(context, X_SCALE, X_ZERO);
    p.to = prn_quant_scalar_get(context, Y_SCALE, Y_ZERO);
    p.last = p.last || p.stored_last;
    return p;
}

/* Stays where the producer has it. */
static void qlinear_pool_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const pool_params *params = context->params;
    if (params->channels_last == 0 && context->inputs[X]->layout == PRN_NHWC) in[X] = out[0] = PRN_NHWC;
}

static prony_status qlinear_pool_run_native(const prony_context *context)
{
    pool p = open_pool(context);
    if (prony_shape_numel(&context->outputs[0]->shape) == 0) return PRONY_OK;
    const int64_t lanes = p.last ? p.channels : 1;
    p.rows = (p.last ? p.batch : p.batch * p.channels) * p.window.out[0] * p.window.out[1];
    int64_t taps; /* a window may reach far into padding */
    if (__builtin_mul_overflow(p.window.out[2] * lanes, prn_window_volume(p.window.kernel), &taps)) taps = INT64_MAX;
    p.rows_per_task = TASK_TAPS / taps + 1;
    prn_parallel_tasks(context->threads, prn_ceil_div(p.rows, p.rows_per_task), qlinear_pool_task, &p);
    return PRONY_OK;
}

/* ---- reference */

static double reference_average(const pool *p, int64_t image, int64_t channel, const int64_t at[PRN_WINDOW_AXES])
{
    const prn_window *w = &p->window;
    const int64_t volume = prn_window_volume(w->in);
    int64_t start[PRN_WINDOW_AXES], first[PRN_WINDOW_AXES], last[PRN_WINDOW_AXES], divisor = 1;
    double sum = 0;
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        start[a] = at[a] * w->stride[a] - w->pad_begin[a];
        prn_window_clip(w, a, start[a], &first[a], &last[a]);
        divisor *= prn_window_taps(w, a, at[a], p->padding);
    }
    for (int64_t kz = first[0]; kz < last[0]; kz++) {
        for (int64_t ky = first[1]; ky < last[1]; ky++) {
            for (int64_t kx = first[2]; kx < last[2]; kx++) {
                const int64_t z = start[0] + kz * w->dilation[0], y = start[1] + ky * w->dilation[1];
                const int64_t place = (z * w->in[1] + y) * w->in[2] + start[2] + kx * w->dilation[2];
                const int64_t index = p->last ? (image * volume + place) * p->channels + channel
                                              : (image * p->channels + channel) * volume + place;
                sum += (double)prn_dequantize_one(p->x, p->type, index, p->from.zero, 1.0f);
            }
        }
    }
    return (double)((float)sum * p->from.scale / (float)divisor);
}

static prony_status qlinear_pool_run_reference(const prony_context *context)
{
    const prn_cast_rule rule = {.saturate = true};
    const pool p = open_pool(context);
    const int64_t *out = p.window.out, volume = prn_window_volume(out);
    for (int64_t i = 0; i < p.batch * p.channels * volume && !prn_cancelled(); i++) {
        const int64_t plane = i / volume, place = i % volume;
        const int64_t at[] = {place / (out[1] * out[2]), place / out[2] % out[1], place % out[2]};
        const int64_t image = plane / p.channels, channel = plane % p.channels;
        const float average = (float)reference_average(&p, image, channel, at);
        prn_quantize_one(p.y, p.type, p.last ? (image * volume + place) * p.channels + channel : i,
                         average / p.to.scale, p.to.zero, &rule);
    }
    return PRONY_OK;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static bool qlinear_pool_opencl_supported(const prony_context *context)
{
    pool p;
    return prn_opencl_quantized_supported(context, 1) && qlinear_pool_read(context, &p) == PRONY_OK && !p.last &&
           prn_opencl_window_fits(&p.window);
}

static prony_status qlinear_pool_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    pool p;
    PRN_TRY(qlinear_pool_read(context, &p));
    return prn_opencl_code_average_prepare(context, &p.window, p.padding,
                                           prn_quant_scalar_get(context, X_SCALE, X_ZERO),
                                           prn_quant_scalar_get(context, Y_SCALE, Y_ZERO), out);
}
#endif

/* ---- rows */

static prony_status check_window(const prony_context *context)
{
    return prn_window_check(context, &((const pool_params *)context->params)->window);
}

// clang-format off
static const prn_kernel average_pool_kernels[] = {
    PRN_OPENCL_ROW("qlinear_average_pool_opencl", PRN_TYPES_8_BIT, qlinear_pool_opencl_supported, qlinear_pool_opencl_prepare, .host_inputs = 0x1e)
    {.name = "qlinear_average_pool_native", .backend = "native", .layouts = qlinear_pool_layouts, .prepare = qlinear_pool_prepare,
     .run = qlinear_pool_run_native, .release = prn_free},
    {.name = "qlinear_average_pool_reference", .backend = "reference", .prepare = qlinear_pool_prepare, .run = qlinear_pool_run_reference,
     .release = prn_free},
    {0}};
static const prn_kernel global_average_pool_kernels[] = {
    PRN_OPENCL_ROW("qlinear_global_average_pool_opencl", PRN_TYPES_8_BIT, qlinear_pool_opencl_supported, qlinear_pool_opencl_prepare, .host_inputs = 0x1e)
    {.name = "qlinear_global_average_pool_native", .backend = "native", .layouts = qlinear_pool_layouts, .prepare = qlinear_pool_prepare,
     .run = qlinear_pool_run_native, .release = prn_free},
    {.name = "qlinear_global_average_pool_reference", .backend = "reference", .prepare = qlinear_pool_prepare, .run = qlinear_pool_run_reference,
     .release = prn_free},
    {0}};

const prn_op prn_ops_qlinear_pool[] = {
    {.name = "QLinearAveragePool", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 5},
     .non_weight_inputs = 0x1e,
     .params = window_attributes, .params_bytes = sizeof(pool_params), .check = check_window,
     .variant = &(const pool_extent){WINDOW},
     .infer = qlinear_pool_infer, .cost = qlinear_pool_cost, .cost_text = "int_ops n K + 7n (average, dequantization, quantization)",
     .kernels = average_pool_kernels},
    {.name = "QLinearGlobalAveragePool", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 5},
     .non_weight_inputs = 0x1e,
     .params = global_attributes, .params_bytes = sizeof(pool_params), .variant = &(const pool_extent){GLOBAL},
     .infer = qlinear_pool_infer, .cost = qlinear_pool_cost, .cost_text = "int_ops n K + 7n (average, dequantization, quantization)",
     .kernels = global_average_pool_kernels},
    {0}};
// clang-format on
