/* BatchNormalization: y = x a + b with a = scale / sqrt(var + epsilon) and b = bias - mean a, per channel.
 * a and b are worked out anew for each run, in scratch; padding lanes get a = b = 0 and so stay zero. When training,
 * mean and variance are the batch's own, and the running ones follow them; only the reference does that. */
#include "base/threads/cancel.h"
#include "base/integers.h"
#include "ops/kernels/copy/broadcast.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

#include <string.h>

typedef struct batch_norm_params {
    float epsilon, momentum;
    int64_t training_mode, spatial;
} batch_norm_params;

static const prn_param attributes[] = {PRN_FLOAT(batch_norm_params, epsilon, 1e-5f),
                                       PRN_FLOAT(batch_norm_params, momentum, 0.9f),
                                       PRN_INT(batch_norm_params, training_mode, 0),
                                       PRN_INT(batch_norm_params, spatial, 1),
                                       {0}};

/* Statistics per channel, or per element of a sample (spatial = 0, opset 7 and 8). */
static bool per_element(const prony_context *context)
{
    return context->node->opset < 9 && ((const batch_norm_params *)context->params)->spatial == 0;
}

static int64_t statistics(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    if (per_element(context)) return prn_shape_count(shape, 1, shape->rank);
    return shape->rank < 2 ? 1 : shape->dim[1];
}

/* Consecutive elements of a plain tensor that share statistics. */
static int64_t batch_norm_run_length(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    if (per_element(context)) return 1;
    return shape->rank < 2 ? prony_shape_numel(shape) : prn_shape_count(shape, 2, shape->rank);
}

/* Said by an attribute; before opset 14, by asking for the statistics. */
static bool batch_norm_is_training(const prony_context *context)
{
    if (context->node->opset >= 14) return ((const batch_norm_params *)context->params)->training_mode != 0;
    for (size_t k = 1; k < 5; k++) {
        if (prn_output(context, k)) return true;
    }
    return false;
}

static double statistic(const prony_context *context, size_t input, int64_t i)
{
    return prn_get_f64(context->inputs[input]->data, context->inputs[input]->dtype, i);
}

static void coefficients_for(const prony_context *context, int64_t i, double mean, double variance, double *a,
                             double *b)
{
    *a = statistic(context, 1, i) / sqrt(variance + (double)((const batch_norm_params *)context->params)->epsilon);
    *b = statistic(context, 2, i) - mean * *a;
}

static void coefficients(const prony_context *context, int64_t i, double *a, double *b)
{
    coefficients_for(context, i, statistic(context, 3, i), statistic(context, 4, i), a, b);
}

/* ---- reference */

static void batch_norm_scale_run(const prony_context *context, int64_t run, double a, double b)
{
    const prony_value *x = context->inputs[0], *y = prn_output(context, 0);
    const int64_t length = batch_norm_run_length(context);
    for (int64_t i = run * length; y && i < (run + 1) * length && !prn_cancelled_at(i); i++)
        prn_put_f64(y->data, y->dtype, i, prn_get_f64(x->data, x->dtype, i) * a + b);
}

static void reference_runs(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const int64_t count = statistics(context);
    for (int64_t run = begin; run < end; run++) {
        double a, b;
        coefficients(context, run % count, &a, &b);
        batch_norm_scale_run(context, run, a, b);
    }
}

/* Mean and population variance of one channel over the batch, by two passes. */
static void batch_norm_measure(const prony_context *context, int64_t channel, int64_t runs, double *mean,
                               double *variance)
{
    const prony_value *x = context->inputs[0];
    const int64_t count = statistics(context), length = batch_norm_run_length(context);
    const double elements = (double)(runs / count * length);
    double sum = 0.0, squares = 0.0;
    for (int64_t run = channel; run < runs; run += count) {
        for (int64_t i = run * length; i < (run + 1) * length && !prn_cancelled_at(i); i++)
            sum += prn_get_f64(x->data, x->dtype, i);
    }
    *mean = sum / elements;
    for (int64_t run = channel; run < runs; run += count) {
        for (int64_t i = run * length; i < (run + 1) * length && !prn_cancelled_at(i); i++) {
            const double deviation = prn_get_f64(x->data, x->dtype, i) - *mean;
            squares += deviation * deviation;
        }
    }
    *variance = squares / elements;
}

static void put_statistic(const prony_context *context, size_t output, int64_t i, double value)
{
    const prony_value *out = prn_output(context, output);
    if (out) prn_put_f64(out->data, out->dtype, i, value);
}

/* Kernels of a training step: the statistics of a channel, then its scaling. */
typedef struct training {
    const prony_context *context;
    void (*measure)(const prony_context *context, int64_t channel, int64_t runs, double *mean, double *variance);
    void (*scale)(const prony_context *context, int64_t run, double a, double b);
} training;

static void training_channels(void *argument, int64_t begin, int64_t end)
{
    const training *way = argument;
    const prony_context *context = way->context;
    const double momentum = (double)((const batch_norm_params *)context->params)->momentum;
    const int64_t count = statistics(context), length = batch_norm_run_length(context);
    const int64_t runs = length ? prony_shape_numel(&context->inputs[0]->shape) / length : 0;
    for (int64_t channel = begin; channel < end; channel++) {
        double mean, variance, a, b;
        way->measure(context, channel, runs, &mean, &variance);
        coefficients_for(context, channel, mean, variance, &a, &b);
        for (int64_t run = channel; run < runs; run += count) way->scale(context, run, a, b);
        put_statistic(context, 1, channel, statistic(context, 3, channel) * momentum + mean * (1.0 - momentum));
        put_statistic(context, 2, channel, statistic(context, 4, channel) * momentum + variance * (1.0 - momentum));
        put_statistic(context, 3, channel, mean);
        put_statistic(context, 4, channel, variance);
    }
}

static void train(training way)
{
    const int64_t bytes = 4 * (int64_t)prn_value_bytes(way.context->inputs[0]);
    prn_parallel_items(way.context->threads, statistics(way.context), bytes, training_channels, &way);
}

static prony_status batch_norm_run_reference(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    const int64_t length = batch_norm_run_length(context), bytes = 2 * (int64_t)prn_value_bytes(x);
    if (batch_norm_is_training(context)) {
        train((training){context, batch_norm_measure, batch_norm_scale_run});
    } else if (length > 0) {
        prn_parallel_items(context->threads, prony_shape_numel(&x->shape) / length, bytes, reference_runs,
                           (void *)context);
    }
    return PRONY_OK;
}

/* ---- float32 */

enum { LOOK_UP = 1 << 18 }; /* elements between two looks at whether to go on */

typedef struct native_job {
    const prn_vec_table *vec;
    const float *x, *a, *b;
    float *y;
    int64_t groups;        /* of channels per sample: blocks, single channels, or one */
    int64_t length, width; /* an item is `length` rows of `width` channels, or `length` elements of one channel */
} native_job;

static void batch_norm_scale_shift_rows(const native_job *job, float *y, const float *x, int64_t group)
{
    const int64_t run = LOOK_UP / job->width + 1;
    for (int64_t row = 0; row < job->length && (row == 0 || !prn_cancelled()); row += run) {
        const int64_t rows = job->length - row < run ? job->length - row : run, at = row * job->width;
        job->vec->scale_shift_rows(y + at, x + at, job->a + group, job->b + group, rows, job->width);
    }
}

static void native_items(void *argument, int64_t begin, int64_t end)
{
    const native_job *job = argument;
    for (int64_t item = begin; item < end; item++) {
        const int64_t size = job->length * job->width, group = item % job->groups * job->width;
        const float *x = job->x + item * size;
        float *y = job->y + item * size;
        if (job->width == 1) {
            prn_long_map(PRN_MAP_AFFINE, y, x, size, job->a[group], job->b[group]);
        } else {
            batch_norm_scale_shift_rows(job, y, x, group);
        }
    }
}

static int64_t padded_channels(int64_t channels)
{
    return (channels + 15) / 16 * 16;
}

static prony_status batch_norm_prepare_native(const prony_context *context, prn_prepared *out)
{
    out->scratch_bytes = (size_t)padded_channels(context->inputs[0]->shape.dim[1]) * 2 * sizeof(float);
    return PRONY_OK;
}

/* y = a x + b with one a and b per channel, in every layout: blocks, channels last, or planes. Lanes beyond the
 * channels have a = b = 0 and stay 0. */
static prony_status batch_norm_run_native(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    const prn_layout layout = (prn_layout)x->layout;
    const int64_t channels = x->shape.dim[1], padded = padded_channels(channels), block = prn_layout_block(layout);
    const int64_t pixels = prn_shape_count(&x->shape, 2, x->shape.rank),
                  elements = prn_layout_elements(&x->shape, layout);
    if (elements == 0) return PRONY_OK;
    float *a = context->scratch, *b = a + padded;
    memset(a, 0, (size_t)padded * 2 * sizeof(float));
    for (int64_t c = 0; c < channels; c++) {
        double scale, shift;
        coefficients(context, c, &scale, &shift);
        a[c] = (float)scale;
        b[c] = (float)shift;
    }
    native_job job = {.vec = prn_vec(), .x = x->data, .a = a, .b = b, .y = context->outputs[0]->data};
    if (block) {
        job.groups = prn_ceil_div(channels, block);
        job.length = pixels;
        job.width = block;
    } else if (layout == PRN_NHWC || pixels == 1) {
        job.groups = 1;
        job.length = 1;
        job.width = channels;
    } else {
        job.groups = channels;
        job.length = pixels;
        job.width = 1;
    }
    prn_parallel_items(context->threads, elements / (job.length * job.width), 8 * elements, native_items, &job);
    return PRONY_OK;
}

/* ---- float32, training: channels whose elements lie side by side */

enum { LEAST_RUN = 16 };

static bool supported_training(const prony_context *context)
{
    return batch_norm_is_training(context) && batch_norm_run_length(context) >= LEAST_RUN;
}

/* The sum of (x - center)^power, power 1 or 2, in double, by sums that do not wait for one another. */
static inline __attribute__((always_inline)) double sum_powers(const float *x, int64_t n, double center,
                                                               const int power)
{
    double sum[8] = {0.0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; k++) {
            const double off = (double)x[i + k] - center;
            sum[k] += power == 1 ? off : off * off;
        }
    }
    for (; i < n; i++) sum[0] += power == 1 ? (double)x[i] - center : ((double)x[i] - center) * ((double)x[i] - center);
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static void measure_f32(const prony_context *context, int64_t channel, int64_t runs, double *mean, double *variance)
{
    const float *x = context->inputs[0]->data;
    const int64_t count = statistics(context), length = batch_norm_run_length(context);
    const double elements = (double)(runs / count * length);
    double sum = 0.0, squares = 0.0;
    for (int64_t run = channel; run < runs && !prn_cancelled(); run += count)
        sum += sum_powers(x + run * length, length, 0.0, 1);
    *mean = sum / elements;
    for (int64_t run = channel; run < runs && !prn_cancelled(); run += count)
        squares += sum_powers(x + run * length, length, *mean, 2);
    *variance = squares / elements;
}

static void scale_run_f32(const prony_context *context, int64_t run, double a, double b)
{
    const prony_value *x = context->inputs[0], *out = prn_output(context, 0);
    const int64_t length = batch_norm_run_length(context);
    if (!out) return;
    const float *from = (const float *)x->data + run * length;
    float *to = (float *)out->data + run * length;
    for (int64_t i = 0; i < length && !prn_cancelled_at(i); i++) to[i] = (float)((double)from[i] * a + b);
}

static prony_status run_training(const prony_context *context)
{
    train((training){context, measure_f32, scale_run_f32});
    return PRONY_OK;
}

static bool batch_norm_supported_native(const prony_context *context)
{
    return context->inputs[0]->shape.rank >= 2 && !per_element(context) && !batch_norm_is_training(context);
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static bool batch_norm_opencl_supported(const prony_context *context)
{
    return !batch_norm_is_training(context) && prn_opencl_rows_supported(context);
}

static prony_status batch_norm_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_batch_norm_prepare(context, out, batch_norm_run_length(context), statistics(context),
                                         ((const batch_norm_params *)context->params)->epsilon);
}
#endif

/* ---- inference and cost */

static prony_status batch_norm_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 1, PRONY_MAX_RANK));
    for (size_t k = 1; k < 5; k++) {
        const prony_value *value = context->inputs[k];
        char text[PRN_SHAPE_TEXT_BYTES];
        PRN_TRY(prn_check_type(context, k, PRN_TYPES_FLOAT));
        if (prony_shape_numel(&value->shape) == statistics(context)) continue;
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %lld elements", k,
                          prn_value_text(value, text), (long long)statistics(context));
    }
    for (size_t k = 1; k < context->output_count; k++) {
        if (prn_output(context, k) && (!batch_norm_is_training(context) || (k > 2 && context->node->opset >= 14)))
            return prony_fail(context, PRONY_INVALID_MODEL, "output %zu is used, but this form does not have it", k);
        prn_set_output(context, k, context->inputs[3]->dtype, &context->inputs[3]->shape);
    }
    return prn_infer_same(context);
}

static prony_status batch_norm_cost(const prony_context *context, prony_cost *cost)
{
    const int64_t channels = statistics(context), n = (int64_t)prn_output_elements(context);
    prn_cost_fact(cost, "channels", channels);
    prn_cost_fact(cost, "batch_spatial", channels ? n / channels : 0);
    prn_cost_fact(cost, "affine", 1);
    if (batch_norm_is_training(context)) {
        PRN_TRY(prn_cost_elementwise(context, cost, (uint64_t)n, 4, 0));        /* sum; sub, square, sum */
        PRN_TRY(prn_cost_elementwise(context, cost, (uint64_t)channels, 8, 2)); /* 2 divisions, 2 running statistics */
    }
    return prn_cost_map(context, cost, 2, 0, 1);
}

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("batch_norm_f32_opencl", PRN_TYPE_F32, batch_norm_opencl_supported, batch_norm_opencl_prepare)
    {.name = "batch_norm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = batch_norm_supported_native,
     .layouts = prn_same_layout, .layout_invariant = true, .prepare = batch_norm_prepare_native, .run = batch_norm_run_native, .inplace = 1},
    {.name = "batch_norm_f32_training", .backend = "native", .types = PRN_TYPE_F32, .supported = supported_training, .run = run_training, .inplace = 1},
    {.name = "batch_norm_reference", .backend = "reference", .run = batch_norm_run_reference, .inplace = 1},
    {0}};

const prn_op prn_ops_batch_norm[] = {
    {.name = "BatchNormalization", .since_opset = 1, .inputs = {5, 5}, .outputs = {1, 5}, .non_weight_inputs = 8 | 16,
     .params = attributes, .params_bytes = sizeof(batch_norm_params),
     .infer = batch_norm_infer, .cost = batch_norm_cost, .cost_text = "2 n; madds n; training + 4 n + 8 C, special 2 C", .kernels = kernels},
    {0}};
// clang-format on
