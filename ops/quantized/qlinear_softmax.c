/* com.microsoft QLinearSoftmax: dequantize, softmax, quantize on 8-bit codes.
 *
 * The tensor is seen as [outer, length, inner], normalised along `length`: for opset (an attribute: Softmax's) below 13
 * everything from `axis` on is one row, from 13 on it is the one axis. A row depends on the distances of its codes from
 * the highest alone, and there are 256 of them: their exponentials are a table. Invariant: a row is one task. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/int8/quantized.h"

#include <math.h>

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };
enum { DISTANCES = 256, LOOK_UP = 1 << 14 /* elements between two looks at whether to go on */ };

typedef struct qsoftmax_params {
    int64_t axis, opset;
} qsoftmax_params;

static const prn_param attributes[] = {
    PRN_INT(qsoftmax_params, axis, PRN_ABSENT), PRN_INT_REQUIRED(qsoftmax_params, opset), {0}};
static const prn_cast_rule saturating = {.saturate = true};

typedef struct qsoftmax_job {
    const prony_value *x;
    prony_value *y;
    prn_quant_scalar to;
    double scale; /* of x */
    int64_t length, inner;
    double table[DISTANCES]; /* exp(-scale d) */
} qsoftmax_job;

static bool qlinear_softmax_axis_of(const prony_context *context, int64_t *axis)
{
    const qsoftmax_params *params = context->params;
    const int rank = context->inputs[X]->shape.rank;
    *axis = params->axis != PRN_ABSENT ? params->axis : params->opset < 13 && rank > 1 ? 1 : -1;
    return prn_axis_normalize(axis, rank);
}

static prony_status qlinear_softmax_infer(const prony_context *context)
{
    int64_t axis;
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_8_BIT));
    const uint32_t type = PRN_TYPE(context->inputs[X]->dtype);
    PRN_TRY(prn_check_rank(context, X, 1, PRONY_MAX_RANK));
    PRN_TRY(prn_quant_scalar_check(context, X_SCALE, X_ZERO, type));
    PRN_TRY(prn_quant_scalar_check(context, Y_SCALE, Y_ZERO, type));
    if (!qlinear_softmax_axis_of(context, &axis))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          context->inputs[X]->shape.rank);
    return prn_infer_same(context);
}

/* A subtraction, exponential, sum and quotient per element, and two conversions. */
static prony_status qlinear_softmax_cost(const prony_context *context, prony_cost *cost)
{
    uint64_t operations;
    if (!prn_mul_u64(&operations, (uint64_t)prony_shape_numel(&context->outputs[0]->shape), 11) ||
        !prn_add_u64(&cost->int_ops, cost->int_ops, operations))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    return PRONY_OK;
}

static int64_t qlinear_softmax_first_of(const qsoftmax_job *job, int64_t row)
{
    return row / job->inner * job->length * job->inner + row % job->inner;
}

/* ---- native: codes as bytes whose order is that of unsigned ones; `flip` turns signed ones into them */

/* Elements [at, at + count) of a row, and how far apart they are. */
typedef struct stretch {
    const uint8_t *x;
    int64_t step, count;
    uint8_t flip;
} stretch;

static stretch stretch_of(const qsoftmax_job *job, int64_t first, int64_t at)
{
    const int64_t left = job->length - at;
    return (stretch){(const uint8_t *)job->x->data + first + at * job->inner, job->inner,
                     left < LOOK_UP ? left : LOOK_UP, job->x->dtype == PRONY_INT8 ? 0x80 : 0};
}

static uint8_t highest_byte(const stretch *s)
{
    uint8_t top = 0;
    if (s->step == 1) {
        for (int64_t i = 0; i < s->count; i++) top = (s->x[i] ^ s->flip) > top ? (uint8_t)(s->x[i] ^ s->flip) : top;
    } else {
        for (int64_t i = 0; i < s->count; i++)
            top = (s->x[i * s->step] ^ s->flip) > top ? (uint8_t)(s->x[i * s->step] ^ s->flip) : top;
    }
    return top;
}

static inline uint8_t qlinear_softmax_distance(const stretch *s, uint8_t top, int64_t i)
{
    return (uint8_t)(top - (s->x[i * s->step] ^ s->flip));
}

static double exponentials(const stretch *s, uint8_t top, const double *table)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= s->count; i += 4) {
        for (int64_t k = 0; k < 4; k++) sum[k] += table[qlinear_softmax_distance(s, top, i + k)];
    }
    for (; i < s->count; i++) sum[0] += table[qlinear_softmax_distance(s, top, i)];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Codes of n parts of the sum; a part is divided by the scale in float, as everywhere. */
static void quantize_parts(const qsoftmax_job *job, float *parts, int64_t n, uint8_t *codes)
{
    float zero[DISTANCES];
    for (int64_t i = 0; i < n; i++) zero[i] = job->to.zero;
    for (int64_t i = 0; i < n; i++) parts[i] /= job->to.scale;
    prn_quantize_run(codes, job->y->dtype, 0, parts, zero, n, &saturating);
}

/* Softmax by table: exp depends on the distance to the largest code alone, so there are at most 256 results a row.
 * Sums are in float64. */
static void qlinear_softmax_native_rows(void *argument, int64_t begin, int64_t end)
{
    const qsoftmax_job *job = argument;
    float parts[DISTANCES];
    uint8_t codes[DISTANCES];
    for (int64_t row = begin; row < end && !prn_cancelled(); row++) {
        const int64_t first = qlinear_softmax_first_of(job, row);
        uint8_t *y = (uint8_t *)job->y->data + first, top = 0;
        double sum = 0.0;
        for (int64_t at = 0; at < job->length && !prn_cancelled(); at += LOOK_UP) {
            const stretch s = stretch_of(job, first, at);
            const uint8_t highest = highest_byte(&s);
            top = highest > top ? highest : top;
        }
        for (int64_t at = 0; at < job->length && !prn_cancelled(); at += LOOK_UP) {
            const stretch s = stretch_of(job, first, at);
            sum += exponentials(&s, top, job->table);
        }
        if (job->length < DISTANCES) {
            const stretch s = stretch_of(job, first, 0);
            for (int64_t i = 0; i < job->length; i++)
                parts[i] = (float)(job->table[qlinear_softmax_distance(&s, top, i)] / sum);
            quantize_parts(job, parts, job->length, codes);
            for (int64_t i = 0; i < job->length; i++) y[i * job->inner] = codes[i];
            continue;
        }
        for (int d = 0; d < DISTANCES; d++) parts[d] = (float)(job->table[d] / sum);
        quantize_parts(job, parts, DISTANCES, codes);
        for (int64_t at = 0; at < job->length && !prn_cancelled(); at += LOOK_UP) {
            const stretch s = stretch_of(job, first, at);
            for (int64_t i = 0; i < s.count; i++)
                y[(at + i) * job->inner] = codes[qlinear_softmax_distance(&s, top, i)];
        }
    }
}

/* ---- reference */

static int32_t qlinear_softmax_code_at(const qsoftmax_job *job, int64_t at)
{
    return job->x->dtype == PRONY_INT8 ? ((const int8_t *)job->x->data)[at] : ((const uint8_t *)job->x->data)[at];
}

static void qlinear_softmax_reference_rows(void *argument, int64_t begin, int64_t end)
{
    const qsoftmax_job *job = argument;
    for (int64_t row = begin; row < end && !prn_cancelled(); row++) {
        const int64_t first = qlinear_softmax_first_of(job, row);
        int32_t top = qlinear_softmax_code_at(job, first);
        double sum = 0.0;
        for (int64_t i = 1; i < job->length && !prn_cancelled_at(i); i++) {
            const int32_t code = qlinear_softmax_code_at(job, first + i * job->inner);
            top = code > top ? code : top;
        }
        for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++)
            sum += exp(job->scale * (double)(qlinear_softmax_code_at(job, first + i * job->inner) - top));
        for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
            const int64_t at = first + i * job->inner;
            const float part = (float)(exp(job->scale * (double)(qlinear_softmax_code_at(job, at) - top)) / sum);
            prn_quantize_one(job->y->data, job->y->dtype, at, part / job->to.scale, job->to.zero, &saturating);
        }
    }
}

static prony_status qlinear_softmax_run_rows(const prony_context *context,
                                             void (*fn)(void *argument, int64_t begin, int64_t end))
{
    qsoftmax_job job = {
        .x = context->inputs[X], .y = context->outputs[0], .to = prn_quant_scalar_get(context, Y_SCALE, Y_ZERO)};
    const prony_shape *shape = &job.x->shape;
    const int64_t count = prony_shape_numel(shape);
    int64_t axis;
    if (count == 0) return PRONY_OK;
    qlinear_softmax_axis_of(context, &axis);
    const int last = ((const qsoftmax_params *)context->params)->opset < 13 ? shape->rank : (int)axis + 1;
    job.length = prn_shape_count(shape, (int)axis, last);
    job.inner = prn_shape_count(shape, last, shape->rank);
    job.scale = (double)prn_quant_scalar_get(context, X_SCALE, X_ZERO).scale;
    for (int d = 0; d < DISTANCES; d++) job.table[d] = exp(-job.scale * (double)d);
    prn_parallel_items(context->threads, count / job.length, 16 * count, fn, &job);
    return PRONY_OK;
}

static prony_status qlinear_softmax_run_native(const prony_context *context)
{
    return qlinear_softmax_run_rows(context, qlinear_softmax_native_rows);
}

static prony_status qlinear_softmax_run_reference(const prony_context *context)
{
    return qlinear_softmax_run_rows(context, qlinear_softmax_reference_rows);
}

static const prn_kernel kernels[] = {
    {.name = "qlinear_softmax_native", .backend = "native", .run = qlinear_softmax_run_native},
    {.name = "qlinear_softmax_reference", .backend = "reference", .run = qlinear_softmax_run_reference},
    {0}};

// clang-format off
const prn_op prn_ops_qlinear_softmax[] = {
    {.name = "QLinearSoftmax", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 5}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0x1e, .params = attributes, .params_bytes = sizeof(qsoftmax_params), .infer = qlinear_softmax_infer, .cost = qlinear_softmax_cost,
     .cost_text = "int_ops 11n (dequantization 2, softmax 4, quantization 5)", .kernels = kernels},
    {0}};
// clang-format on
