/* QuantizeLinear, DequantizeLinear (ai.onnx and com.microsoft) and DynamicQuantizeLinear.
 *
 *   quantize     y = saturate(round(x / scale) + zero point), half to even; float codes are not rounded first
 *   dequantize   y = (x - zero point) scale
 *   dynamic      scale = (max(x, 0) - min(x, 0)) / 255, zero point = round(-min / scale), then as quantize
 *
 * Elements are independent and ranges are cut at multiples of 64 elements, so packed codes of two threads share no
 * byte. Invariant: the native kernels give the reference's codes to the bit. */
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "ops/kernels/int8/quantized.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl_quantize.h"

typedef struct quantize_params {
    int64_t axis, saturate, block_size, output_dtype, precision;
} quantize_params;

static const prn_param quantize_attributes[] = {
    PRN_INT(quantize_params, axis, 1),       PRN_INT(quantize_params, saturate, 1),
    PRN_INT(quantize_params, block_size, 0), PRN_INT(quantize_params, output_dtype, 0),
    PRN_INT(quantize_params, precision, 0),  {0}};

enum { X, SCALE, ZERO };

#define CODE_TYPES                                                                                                     \
    (PRN_TYPES_8_BIT | PRN_TYPE(PRONY_INT16) | PRN_TYPE(PRONY_UINT16) | PRN_TYPES_NARROW_INTEGER | PRN_TYPES_FLOAT8 |  \
     PRN_TYPE(PRONY_FLOAT4E2M1))
#define DEQUANTIZE_TYPES (CODE_TYPES | PRN_TYPE(PRONY_INT32))
#define QUANTIZE_TYPES (PRN_TYPES_SCALE | PRN_TYPE(PRONY_INT32))
#define SCALE_TYPES (PRN_TYPES_SCALE | PRN_TYPE(PRONY_FLOAT8E8M0))

static prony_status quantize_op_check(const prony_context *context)
{
    const quantize_params *params = context->params;
    if (params->block_size < 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "block_size is %lld; it must not be negative",
                          (long long)params->block_size);
    return PRONY_OK;
}

static prony_status read_quant(const prony_context *context, prn_quant *out)
{
    const quantize_params *params = context->params;
    PRN_TRY(prn_check_type(context, SCALE, SCALE_TYPES));
    return prn_quant_read(context, &context->inputs[X]->shape, SCALE, ZERO, params->axis, params->block_size, out);
}

/* An attribute that names an element type: one of `types`, or 0. */
static prony_status quantize_op_check_dtype(const prony_context *context, const char *name, int64_t dtype,
                                            uint32_t types)
{
    if (dtype == 0 || (dtype > 0 && dtype < PRONY_DTYPE_COUNT && (types >> dtype & 1))) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute '%s' is %lld, which is not an allowed type", name,
                      (long long)dtype);
}

/* ---- QuantizeLinear */

static prony_status quantize_infer(const prony_context *context)
{
    const quantize_params *params = context->params;
    const prony_value *zero = prn_input(context, ZERO);
    prn_quant quant;
    PRN_TRY(prn_check_type(context, X, QUANTIZE_TYPES));
    PRN_TRY(prn_check_type(context, ZERO, CODE_TYPES));
    PRN_TRY(quantize_op_check_dtype(context, "output_dtype", params->output_dtype, CODE_TYPES));
    PRN_TRY(quantize_op_check_dtype(context, "precision", params->precision, PRN_TYPES_SCALE));
    PRN_TRY(read_quant(context, &quant));
    prony_dtype type = params->output_dtype ? (prony_dtype)params->output_dtype : zero ? zero->dtype : PRONY_UINT8;
    if (zero && zero->dtype != type) {
        return prony_fail(context, PRONY_INVALID_MODEL, "output_dtype is %s, the zero point is %s",
                          prony_dtype_name(type), prony_dtype_name(zero->dtype));
    }
    prn_set_output(context, 0, type, &context->inputs[X]->shape);
    return PRONY_OK;
}

static prony_status quantize_cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t n = (uint64_t)prony_shape_numel(&context->inputs[X]->shape);
    return prn_cost_elementwise(context, cost, n, prn_input(context, ZERO) ? 5 : 4, 1);
}

/* The type that x / scale is rounded to. */
static prony_dtype quotient_type(const prony_context *context)
{
    const quantize_params *params = context->params;
    if (params->precision) return (prony_dtype)params->precision;
    const prony_dtype scale = context->inputs[SCALE]->dtype;
    return scale == PRONY_FLOAT8E8M0 ? PRONY_FLOAT32 : scale;
}

typedef struct quantize_job {
    const prony_context *context;
    prn_quant quant;
    prn_cast_rule rule;
    prony_dtype quotient; /* float32: no rounding */
} quantize_job;

static prony_status quantize_op_prepare(const prony_context *context, prn_prepared *out)
{
    prn_quant quant;
    PRN_TRY(read_quant(context, &quant));
    return prn_prepared_keep(context, &quant, sizeof quant, out);
}

static quantize_job quantize_job_make(const prony_context *context)
{
    quantize_job job = {.context = context, .quant = *(const prn_quant *)context->state, .quotient = PRONY_FLOAT32};
    job.quant.scale = context->inputs[SCALE];
    job.quant.zero = prn_input(context, ZERO);
    job.rule.saturate = ((const quantize_params *)context->params)->saturate != 0;
    return job;
}

/* Quantises elements [begin, end) chunk by chunk; scale and zero point are read again only where they change. Types
 * narrower than float32 round the quotient first. */
static void quantize_range(void *argument, int64_t begin, int64_t end)
{
    const quantize_job *job = argument;
    const prony_value *x = job->context->inputs[X], *y = job->context->outputs[0];
    float values[PRN_QUANT_CHUNK], scale[PRN_QUANT_CHUNK], zero[PRN_QUANT_CHUNK];
    uint16_t rounded[PRN_QUANT_CHUNK];
    int64_t held = begin; /* up to where scale and zero hold */
    bool flat = false;    /* one of each for the whole chunk */
    for (int64_t at = begin; at < end; at += PRN_QUANT_CHUNK) {
        const int64_t n = end - at < PRN_QUANT_CHUNK ? end - at : PRN_QUANT_CHUNK;
        const float *source = values;
        if (at + n > held) {
            held = at + prn_quant_run(&job->quant, at, end - at, scale, zero);
            flat = held >= at + n;
            for (int64_t i = 1; i < PRN_QUANT_CHUNK && flat; i++) zero[i] = zero[0];
            if (!flat) prn_quant_fill(&job->quant, at, n, scale, zero);
            if (!flat) held = at + n;
        }
        if (x->dtype == PRONY_FLOAT32) {
            source = (const float *)x->data + at;
        } else {
            prn_cast(values, PRONY_FLOAT32, 0, x->data, x->dtype, at, n, &job->rule);
        }
        if (flat)
            prn_vec()->vs[PRN_BINARY_DIV](values, source, scale[0], n);
        else
            prn_vec()->vv[PRN_BINARY_DIV](values, source, scale, n);
        if (job->quotient != PRONY_FLOAT32) {
            prn_convert(rounded, job->quotient, values, PRONY_FLOAT32, n);
            prn_convert(values, PRONY_FLOAT32, rounded, job->quotient, n);
        }
        prn_quantize_run(y->data, y->dtype, at, values, zero, n, &job->rule);
    }
}

static prony_status quantize_native(const prony_context *context)
{
    quantize_job job = quantize_job_make(context);
    job.quant.no_zero = -0.0f;
    job.quotient = quotient_type(context);
    prn_parallel_range(context->threads, prony_shape_numel(&context->inputs[X]->shape), PRN_QUANT_GRAIN, quantize_range,
                       &job);
    return PRONY_OK;
}

static prony_status quantize_reference(const prony_context *context)
{
    const prony_value *x = context->inputs[X], *y = context->outputs[0];
    const prony_dtype quotient = quotient_type(context);
    quantize_job job = quantize_job_make(context);
    job.quant.no_zero = -0.0f;
    for (int64_t i = 0; i < prony_shape_numel(&x->shape) && !prn_cancelled_at(i); i++) {
        float scale, zero;
        uint32_t rounded;
        prn_quant_fill(&job.quant, i, 1, &scale, &zero);
        float value = prn_quant_get(x, i) / scale;
        prn_convert(&rounded, quotient, &value, PRONY_FLOAT32, 1);
        prn_convert(&value, PRONY_FLOAT32, &rounded, quotient, 1);
        prn_quantize_one(y->data, y->dtype, i, value, zero, &job.rule);
    }
    return PRONY_OK;
}

/* ---- DequantizeLinear */

static prony_status dequantize_infer(const prony_context *context)
{
    const quantize_params *params = context->params;
    prn_quant quant;
    PRN_TRY(prn_check_type(context, X, DEQUANTIZE_TYPES));
    PRN_TRY(prn_check_type(context, ZERO, PRN_TYPE(context->inputs[X]->dtype)));
    PRN_TRY(quantize_op_check_dtype(context, "output_dtype", params->output_dtype, PRN_TYPES_SCALE));
    PRN_TRY(read_quant(context, &quant));
    prony_dtype type = quant.scale->dtype;
    if (params->output_dtype) type = (prony_dtype)params->output_dtype;
    if (type == PRONY_FLOAT8E8M0) {
        return prony_fail(context, PRONY_INVALID_MODEL, "a scale of %s needs output_dtype", prony_dtype_name(type));
    }
    prn_set_output(context, 0, type, &context->inputs[X]->shape);
    return PRONY_OK;
}

static prony_status dequantize_cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t n = (uint64_t)prony_shape_numel(&context->inputs[X]->shape);
    return prn_cost_elementwise(context, cost, n, prn_input(context, ZERO) ? 2 : 1, 0);
}

/* Stretches with one scale and zero point are as long as this at least, or not worth a loop of their own. */
enum { FLAT_RUN = 32 };

static void dequantize_range(void *argument, int64_t begin, int64_t end)
{
    const quantize_job *job = argument;
    const prony_value *x = job->context->inputs[X], *y = job->context->outputs[0];
    float values[PRN_QUANT_CHUNK], scale[PRN_QUANT_CHUNK], zero[PRN_QUANT_CHUNK];
    for (int64_t at = begin, n; at < end; at += n) {
        const bool direct = y->dtype == PRONY_FLOAT32;
        float *to = direct ? (float *)y->data + at : values;
        n = direct || end - at < PRN_QUANT_CHUNK ? end - at : PRN_QUANT_CHUNK;
        const int64_t run = prn_quant_run(&job->quant, at, n, scale, zero);
        if (run >= FLAT_RUN) {
            n = run;
            prn_dequantize_flat(to, x->data, x->dtype, at, zero[0], scale[0], n);
        } else {
            n = n < PRN_QUANT_CHUNK ? n : PRN_QUANT_CHUNK;
            prn_quant_fill(&job->quant, at, n, scale, zero);
            prn_dequantize_run(to, x->data, x->dtype, at, zero, scale, n);
        }
        if (!direct) prn_convert((uint16_t *)y->data + at, y->dtype, values, PRONY_FLOAT32, n);
    }
}

static prony_status dequantize_native(const prony_context *context)
{
    quantize_job job = quantize_job_make(context);
    prn_parallel_range(context->threads, prony_shape_numel(&context->inputs[X]->shape), PRN_QUANT_GRAIN,
                       dequantize_range, &job);
    return PRONY_OK;
}

static prony_status dequantize_reference(const prony_context *context)
{
    const prony_value *x = context->inputs[X], *y = context->outputs[0];
    quantize_job job = quantize_job_make(context);
    for (int64_t i = 0; i < prony_shape_numel(&x->shape) && !prn_cancelled_at(i); i++) {
        float scale, zero;
        prn_quant_fill(&job.quant, i, 1, &scale, &zero);
        const float value = prn_dequantize_one(x->data, x->dtype, i, zero, scale);
        prn_cast(y->data, y->dtype, i, &value, PRONY_FLOAT32, 0, 1, &job.rule);
    }
    return PRONY_OK;
}

/* ---- DynamicQuantizeLinear */

enum { MOST_PIECES = 64, LEAST_PIECE = 16384 };

typedef struct extent_job {
    const float *x;
    int64_t count, piece;
    float low[MOST_PIECES], high[MOST_PIECES];
} extent_job;

/* NaN is passed over. */
static void widen_extent(const float *x, int64_t n, float *low, float *high)
{
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < *low) *low = x[i];
        if (x[i] > *high) *high = x[i];
    }
}

static void extent_task(void *argument, int64_t task)
{
    extent_job *job = argument;
    const int64_t begin = task * job->piece, rest = job->count - begin;
    const int64_t n = rest < job->piece ? rest : job->piece;
    float low = prn_vec()->min(job->x + begin, n), high = prn_vec()->max(job->x + begin, n);
    if (isnan(low)) {
        low = high = 0.0f;
        widen_extent(job->x + begin, n, &low, &high);
    }
    job->low[task] = low;
    job->high[task] = high;
}

static prn_quant_scalar quantize_op_range_of(float low, float high)
{
    low = low < 0.0f ? low : 0.0f;
    high = high > 0.0f ? high : 0.0f;
    const float scale = low == high ? 1.0f : (high - low) / 255.0f;
    float zero = rintf(-low / scale);
    zero = zero > 0.0f ? zero : 0.0f;
    return (prn_quant_scalar){scale, zero < 255.0f ? zero : 255.0f};
}

prn_quant_scalar prn_quantize_dynamic_parameters(int threads, const float *x, int64_t count)
{
    extent_job job = {.x = x, .count = count, .piece = count / MOST_PIECES + 1};
    float low = 0.0f, high = 0.0f;
    if (job.piece < LEAST_PIECE) job.piece = LEAST_PIECE;
    const int64_t tasks = prn_ceil_div(count, job.piece);
    prn_parallel_tasks(threads, tasks, extent_task, &job);
    for (int64_t t = 0; t < tasks; t++) {
        if (job.low[t] < low) low = job.low[t];
        if (job.high[t] > high) high = job.high[t];
    }
    return quantize_op_range_of(low, high);
}

typedef struct dynamic_job {
    const float *x;
    uint8_t *y;
    prn_quant_scalar quant;
} dynamic_job;

static void dynamic_range(void *argument, int64_t begin, int64_t end)
{
    const dynamic_job *job = argument;
    float values[PRN_QUANT_CHUNK], zero[PRN_QUANT_CHUNK];
    for (int64_t i = 0; i < PRN_QUANT_CHUNK; i++) zero[i] = job->quant.zero;
    for (int64_t at = begin; at < end; at += PRN_QUANT_CHUNK) {
        const int64_t n = end - at < PRN_QUANT_CHUNK ? end - at : PRN_QUANT_CHUNK;
        prn_vec()->vs[PRN_BINARY_DIV](values, job->x + at, job->quant.scale, n);
        prn_quant_simd_table()->quantize_u8(job->y + at, values, zero, n);
    }
}

void prn_quantize_dynamic_codes(int threads, const float *x, int64_t count, prn_quant_scalar quant, uint8_t *y)
{
    dynamic_job job = {x, y, quant};
    prn_parallel_range(threads, count, PRN_QUANT_GRAIN, dynamic_range, &job);
}

static prony_status dynamic_infer(const prony_context *context)
{
    const prony_shape scalar = prn_shape_scalar();
    PRN_TRY(prn_check_type(context, X, PRN_TYPE_F32));
    prn_set_output(context, 0, PRONY_UINT8, &context->inputs[X]->shape);
    prn_set_output(context, 1, PRONY_FLOAT32, &scalar);
    prn_set_output(context, 2, PRONY_UINT8, &scalar);
    return PRONY_OK;
}

static prony_status dynamic_cost(const prony_context *context, prony_cost *cost)
{
    return prn_cost_elementwise(context, cost, (uint64_t)prony_shape_numel(&context->inputs[X]->shape), 7, 1);
}

static void dynamic_outputs(const prony_context *context, prn_quant_scalar quant)
{
    if (prn_output(context, 1)) *(float *)context->outputs[1]->data = quant.scale;
    if (prn_output(context, 2)) *(uint8_t *)context->outputs[2]->data = (uint8_t)quant.zero;
}

static prony_status dynamic_native(const prony_context *context)
{
    const prony_value *x = context->inputs[X];
    const int64_t count = prony_shape_numel(&x->shape);
    const prn_quant_scalar quant = prn_quantize_dynamic_parameters(context->threads, x->data, count);
    if (prn_output(context, 0)) {
        prn_quantize_dynamic_codes(context->threads, x->data, count, quant, context->outputs[0]->data);
    }
    dynamic_outputs(context, quant);
    return PRONY_OK;
}

static prony_status dynamic_reference(const prony_context *context)
{
    const float *x = context->inputs[X]->data;
    const int64_t count = prony_shape_numel(&context->inputs[X]->shape);
    const prn_cast_rule rule = {.saturate = true};
    float low = 0.0f, high = 0.0f;
    widen_extent(x, count, &low, &high);
    const prn_quant_scalar quant = quantize_op_range_of(low, high);
    for (int64_t i = 0; prn_output(context, 0) && i < count && !prn_cancelled_at(i); i++) {
        prn_quantize_one(context->outputs[0]->data, PRONY_UINT8, i, x[i] / quant.scale, quant.zero, &rule);
    }
    dynamic_outputs(context, quant);
    return PRONY_OK;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static bool is_code(const prony_value *value)
{
    return !value || (PRN_TYPES_8_BIT >> value->dtype & 1);
}

/* float32 numbers and scales, 8-bit codes. */
static bool quantize_op_opencl_takes(const prony_context *context, const prony_value *codes, const prony_value *numbers)
{
    return is_code(codes) && is_code(prn_input(context, ZERO)) && numbers->dtype == PRONY_FLOAT32 &&
           context->inputs[SCALE]->dtype == PRONY_FLOAT32 && prn_opencl_quantized_supported(context, 7);
}

static bool quantize_opencl_supported(const prony_context *context)
{
    return quotient_type(context) == PRONY_FLOAT32 &&
           quantize_op_opencl_takes(context, context->outputs[0], context->inputs[X]);
}

static bool dequantize_opencl_supported(const prony_context *context)
{
    return quantize_op_opencl_takes(context, context->inputs[X], context->outputs[0]);
}

static prony_status quantize_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_quant quant;
    PRN_TRY(read_quant(context, &quant));
    return prn_opencl_quantize_prepare(context, &quant, context->outputs[0]->dtype == PRONY_FLOAT32, out);
}

static bool dynamic_opencl_supported(const prony_context *context)
{
    return prn_output(context, 0) && prn_output(context, 1) && prn_output(context, 2) &&
           prn_opencl_quantized_supported(context, 1);
}
#endif

/* ---- rows */

// clang-format off
static const prn_kernel quantize_kernels[] = {
    PRN_OPENCL_ROW("quantize_linear_opencl", PRN_TYPE_F32, quantize_opencl_supported, quantize_opencl_prepare)
    {.name = "quantize_linear_native", .backend = "native", .prepare = quantize_op_prepare, .run = quantize_native, .release = prn_free},
    {.name = "quantize_linear_reference", .backend = "reference", .prepare = quantize_op_prepare, .run = quantize_reference, .release = prn_free},
    {0}};
static const prn_kernel dequantize_kernels[] = {
    PRN_OPENCL_ROW("dequantize_linear_opencl", PRN_TYPES_8_BIT, dequantize_opencl_supported, quantize_opencl_prepare)
    {.name = "dequantize_linear_native", .backend = "native", .prepare = quantize_op_prepare, .run = dequantize_native, .release = prn_free},
    {.name = "dequantize_linear_reference", .backend = "reference", .prepare = quantize_op_prepare, .run = dequantize_reference, .release = prn_free},
    {0}};
static const prn_kernel dynamic_kernels[] = {
    PRN_OPENCL_ROW("dynamic_linear_opencl", PRN_TYPE_F32, dynamic_opencl_supported, prn_opencl_quantize_dynamic_prepare)
    {.name = "dynamic_linear_native", .backend = "native", .run = dynamic_native},
    {.name = "dynamic_linear_reference", .backend = "reference", .run = dynamic_reference},
    {0}};

const prn_op prn_ops_quantize[] = {
    {.name = "QuantizeLinear", .since_opset = 10, .inputs = {2, 3}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 6,
     .params = quantize_attributes, .params_bytes = sizeof(quantize_params), .check = quantize_op_check,
     .infer = quantize_infer, .cost = quantize_cost,
     .cost_text = "4n (division, rounding, both ends), + n with zero point; special n", .kernels = quantize_kernels},
    {.name = "DequantizeLinear", .since_opset = 10, .inputs = {2, 3}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 6,
     .params = quantize_attributes, .params_bytes = sizeof(quantize_params), .check = quantize_op_check,
     .infer = dequantize_infer, .cost = dequantize_cost, .cost_text = "n, + n with zero point",
     .kernels = dequantize_kernels},
    {.name = "QuantizeLinear", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 3},
     .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 6,
     .params = quantize_attributes, .params_bytes = sizeof(quantize_params), .check = quantize_op_check,
     .infer = quantize_infer, .cost = quantize_cost,
     .cost_text = "4n (division, rounding, both ends), + n with zero point; special n", .kernels = quantize_kernels},
    {.name = "DequantizeLinear", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 3},
     .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 6,
     .params = quantize_attributes, .params_bytes = sizeof(quantize_params), .check = quantize_op_check,
     .infer = dequantize_infer, .cost = dequantize_cost, .cost_text = "n, + n with zero point",
     .kernels = dequantize_kernels},
    {.name = "DynamicQuantizeLinear", .since_opset = 11, .inputs = {1, 1}, .outputs = {1, 3},
     .infer = dynamic_infer, .cost = dynamic_cost, .cost_text = "7n (extremes, then as QuantizeLinear); special n",
     .kernels = dynamic_kernels},
    {0}};
// clang-format on
