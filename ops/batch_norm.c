/* BatchNormalization in inference: y = x a + b with a = scale / sqrt(var + epsilon) and b = bias - mean a, per channel.
 * a and b are worked out anew for each run, in scratch; padding lanes get a = b = 0 and so stay zero. */
#include "ops/broadcast.h"
#include "ops/copy_nd.h"
#include "ops/elementwise.h"
#include "ops/number.h"

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
static int64_t run_length(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    if (per_element(context)) return 1;
    return shape->rank < 2 ? prony_shape_numel(shape) : prn_shape_count(shape, 2, shape->rank);
}

static void coefficients(const prony_context *context, int64_t i, double *a, double *b)
{
    double value[5];
    for (size_t k = 1; k < 5; k++) value[k] = prn_get_f64(context->inputs[k]->data, context->inputs[k]->dtype, i);
    *a = value[1] / sqrt(value[4] + (double)((const batch_norm_params *)context->params)->epsilon);
    *b = value[2] - value[3] * *a;
}

/* ---- reference */

static void reference_runs(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    const int64_t count = statistics(context), length = run_length(context);
    for (int64_t run = begin; run < end; run++) {
        double a, b;
        coefficients(context, run % count, &a, &b);
        for (int64_t i = run * length; i < (run + 1) * length; i++) {
            prn_put_f64(y->data, y->dtype, i, prn_get_f64(x->data, x->dtype, i) * a + b);
        }
    }
}

static prony_status run_reference(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    const int64_t length = run_length(context);
    if (length == 0) return PRONY_OK;
    prn_parallel_items(context->threads, prony_shape_numel(&x->shape) / length, 2 * (int64_t)prn_value_bytes(x),
                       reference_runs, (void *)context);
    return PRONY_OK;
}

/* ---- float32 */

typedef struct native_job {
    const prn_vec_table *vec;
    const float *x, *a, *b;
    float *y;
    int64_t groups;        /* of channels per sample: blocks, single channels, or one */
    int64_t length, width; /* an item is `length` rows of `width` channels, or `length` elements of one channel */
} native_job;

static void native_items(void *argument, int64_t begin, int64_t end)
{
    const native_job *job = argument;
    for (int64_t item = begin; item < end; item++) {
        const int64_t size = job->length * job->width, group = item % job->groups * job->width;
        const float *x = job->x + item * size;
        float *y = job->y + item * size;
        if (job->width == 1) {
            job->vec->map[PRN_MAP_AFFINE](y, x, size, job->a[group], job->b[group]);
        } else {
            job->vec->scale_shift_rows(y, x, job->a + group, job->b + group, job->length, job->width);
        }
    }
}

static int64_t padded_channels(int64_t channels)
{
    return (channels + 15) / 16 * 16;
}

static prony_status prepare_native(const prony_context *context, prn_prepared *out)
{
    out->scratch_bytes = (size_t)padded_channels(context->inputs[0]->shape.dim[1]) * 2 * sizeof(float);
    return PRONY_OK;
}

static prony_status run_native(const prony_context *context)
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
        job.groups = (channels + block - 1) / block;
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

static bool usable_native(const prony_context *context)
{
    return context->inputs[0]->shape.rank >= 2 && !per_element(context);
}

/* ---- inference and cost */

static prony_status check(const prony_context *context)
{
    if (!((const batch_norm_params *)context->params)->training_mode) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "training_mode 1");
}

static prony_status infer(const prony_context *context)
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
        if (prn_output(context, k)) {
            return prony_fail(context, PRONY_UNSUPPORTED, "output %zu, which only training has", k);
        }
    }
    return prn_infer_same(context);
}

static prony_status cost(const prony_context *context, prony_cost *cost)
{
    const int64_t channels = statistics(context), n = (int64_t)prn_output_elements(context);
    prn_cost_fact(cost, "channels", channels);
    prn_cost_fact(cost, "batch_spatial", channels ? n / channels : 0);
    prn_cost_fact(cost, "affine", 1);
    return prn_cost_map(context, cost, 2, 0, 1);
}

static const prn_kernel kernels[] = {
    {.name = "batch_norm_f32_native",
     .backend = "native",
     .types = PRN_TYPE_F32,
     .usable = usable_native,
     .layouts = prn_same_layout,
     .prepare = prepare_native,
     .run = run_native,
     .inplace = 1},
    {.name = "batch_norm_reference", .backend = "reference", .run = run_reference, .inplace = 1},
    {0}};

const prn_op prn_op_batch_norm = {
    .name = "BatchNormalization",
    .domain = "",
    .since_opset = 7,
    .min_inputs = 5,
    .max_inputs = 5,
    .min_outputs = 1,
    .max_outputs = 5,
    .non_weight_inputs = 8 | 16,
    .params = attributes,
    .params_bytes = sizeof(batch_norm_params),
    .check = check,
    .infer = infer,
    .cost = cost,
    .cost_text = "2 n; madds n",
    .kernels = kernels,
};
