/* Softmax, LogSoftmax, Hardmax.
 * The tensor is seen as [outer, length, inner], normalised along `length`: below opset 13 everything from `axis` on is
 * one row (inner 1), from 13 on it is the one axis. Invariant: a row, or a fixed strip of columns, is one task, so
 * sums have one order. */
#include "base/threads/cancel.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"
#include "ops/vendor/opencl/opencl_rows.h"

typedef struct softmax_params {
    int64_t axis;
} softmax_params;

static const prn_param attributes[] = {PRN_INT(softmax_params, axis, PRN_ABSENT), {0}};

typedef enum softmax_kind { SOFTMAX, LOG_SOFTMAX, HARDMAX } softmax_kind;

typedef struct softmax_job {
    softmax_kind kind;
    const prony_value *x, *y;
    int64_t outer, length, inner;
    int64_t strips; /* of columns, per outer index */
    const prn_vec_table *vec;
} softmax_job;

static bool softmax_axis_of(const prony_context *context, int64_t *axis)
{
    const int rank = context->inputs[0]->shape.rank;
    *axis = ((const softmax_params *)context->params)->axis;
    if (*axis == PRN_ABSENT) *axis = context->node->opset < 13 && rank > 1 ? 1 : (rank ? -1 : 0);
    if (rank == 0) return *axis == 0 || *axis == -1;
    if (context->node->opset < 13 && *axis == rank) return true;
    return prn_axis_normalize(axis, rank);
}

static softmax_job softmax_job_of(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    softmax_job job = {.kind = *(const softmax_kind *)prn_variant(context),
                       .x = context->inputs[0],
                       .y = context->outputs[0],
                       .outer = 1,
                       .length = 1,
                       .inner = 1};
    int64_t axis;
    softmax_axis_of(context, &axis);
    if (shape->rank == 0) return job;
    const int first = (int)axis, last = context->node->opset < 13 ? shape->rank : first + 1;
    job.outer = prn_shape_count(shape, 0, first);
    job.length = prn_shape_count(shape, first, last);
    job.inner = prn_shape_count(shape, last, shape->rank);
    return job;
}

/* ---- reference: one row at a time, in double */

static void softmax_reference_row(const softmax_job *job, int64_t first)
{
    const prony_dtype dtype = job->x->dtype;
    int64_t best = 0;
    double top = prn_get_f64(job->x->data, dtype, first), sum = 0.0;
    for (int64_t i = 1; i < job->length && !prn_cancelled_at(i); i++) {
        const double x = prn_get_f64(job->x->data, dtype, first + i * job->inner);
        if (x > top || (x != x && top == top)) {
            top = x;
            best = i;
        }
    }
    for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
        sum += exp(prn_get_f64(job->x->data, dtype, first + i * job->inner) - top);
    }
    for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
        const int64_t at = first + i * job->inner;
        const double shifted = prn_get_f64(job->x->data, dtype, at) - top;
        const double soft = job->kind == SOFTMAX ? exp(shifted) / sum : shifted - log(sum);
        prn_put_f64(job->y->data, dtype, at, job->kind == HARDMAX ? (double)(i == best) : soft);
    }
}

static void softmax_reference_rows(void *argument, int64_t begin, int64_t end)
{
    const softmax_job *job = argument;
    for (int64_t row = begin; row < end; row++) {
        softmax_reference_row(job, row / job->inner * job->length * job->inner + row % job->inner);
    }
}

static prony_status softmax_run_reference(const prony_context *context)
{
    softmax_job job = softmax_job_of(context);
    if (job.length == 0) return PRONY_OK;
    prn_parallel_items(context->threads, job.outer * job.inner, 2 * (int64_t)prn_value_bytes(job.x),
                       softmax_reference_rows, &job);
    return PRONY_OK;
}

/* ---- float32 */

enum { STRIP = 256 };

static void softmax_native_rows(void *argument, int64_t begin, int64_t end)
{
    const softmax_job *job = argument;
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)job->x->data + row * job->length;
        float *y = (float *)job->y->data + row * job->length;
        if (job->kind == SOFTMAX) {
            job->vec->softmax(y, x, job->length);
        } else {
            job->vec->log_softmax(y, x, job->length);
        }
    }
}

/* Columns [c, c + n) of one outer index: maxima, then exponentials and their sums, row by row. */
static void native_strip(const softmax_job *job, const float *x, float *y, int64_t n)
{
    const prn_vec_table *vec = job->vec;
    float top[STRIP], sum[STRIP], part[STRIP];
    vec->map[PRN_MAP_COPY](top, x, n, 0.0f, 0.0f);
    for (int64_t i = 1; i < job->length && !prn_cancelled_at(i); i++)
        vec->vv[PRN_BINARY_MAX](top, x + i * job->inner, top, n);
    for (int64_t i = 0; i < n; i++) sum[i] = 0.0f;
    for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
        float *to = job->kind == SOFTMAX ? y + i * job->inner : part;
        vec->vv[PRN_BINARY_SUB](to, x + i * job->inner, top, n);
        vec->map[PRN_MAP_EXP](to, to, n, 0.0f, 0.0f);
        vec->vv[PRN_BINARY_ADD](sum, sum, to, n);
    }
    if (job->kind == SOFTMAX) {
        for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++)
            vec->vv[PRN_BINARY_DIV](y + i * job->inner, y + i * job->inner, sum, n);
        return;
    }
    vec->map[PRN_MAP_LOG](sum, sum, n, 0.0f, 0.0f);
    for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
        vec->vv[PRN_BINARY_SUB](y + i * job->inner, x + i * job->inner, top, n);
        vec->vv[PRN_BINARY_SUB](y + i * job->inner, y + i * job->inner, sum, n);
    }
}

static void native_strips(void *argument, int64_t begin, int64_t end)
{
    const softmax_job *job = argument;
    for (int64_t item = begin; item < end; item++) {
        const int64_t column = item % job->strips * STRIP;
        const int64_t first = item / job->strips * job->length * job->inner + column;
        const int64_t n = job->inner - column < STRIP ? job->inner - column : STRIP;
        native_strip(job, (const float *)job->x->data + first, (float *)job->y->data + first, n);
    }
}

static prony_status softmax_run_native(const prony_context *context)
{
    softmax_job job = softmax_job_of(context);
    job.vec = prn_vec();
    if (job.length == 0) return PRONY_OK;
    job.strips = prn_ceil_div(job.inner, STRIP);
    /* Exponentials weigh several times their bytes. */
    const int64_t work = 8 * (int64_t)prn_value_bytes(job.x);
    if (job.inner == 1) {
        prn_parallel_items(context->threads, job.outer, work, softmax_native_rows, &job);
    } else {
        prn_parallel_items(context->threads, job.outer * job.strips, work, native_strips, &job);
    }
    return PRONY_OK;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static prony_status softmax_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const softmax_job job = softmax_job_of(context);
    return prn_opencl_softmax_prepare(context, out, job.kind == LOG_SOFTMAX, job.length, job.inner);
}
#endif

/* ---- inference and cost */

static prony_status softmax_infer(const prony_context *context)
{
    int64_t axis;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    if (!softmax_axis_of(context, &axis)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          context->inputs[0]->shape.rank);
    }
    return prn_infer_same(context);
}

static prony_status softmax_cost(const prony_context *context, prony_cost *cost)
{
    const softmax_job job = softmax_job_of(context);
    const uint64_t n = prn_output_elements(context), rows = n ? n / (uint64_t)job.length : 0;
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    prn_cost_fact(cost, "rows", (int64_t)rows);
    prn_cost_fact(cost, "axis_length", job.length);
    switch (job.kind) {
    case SOFTMAX: /* max, sub, exp, sum, div */
        PRN_TRY(prn_cost_elementwise(context, cost, n - rows, 2, 0));
        return prn_cost_elementwise(context, cost, n, 3, 2);
    case LOG_SOFTMAX: /* max, sub, exp, sum, log, sub */
        PRN_TRY(prn_cost_elementwise(context, cost, n - rows, 2, 0));
        PRN_TRY(prn_cost_elementwise(context, cost, n, 3, 1));
        return prn_cost_elementwise(context, cost, rows, 1, 1);
    case HARDMAX:
        break;
    }
    return prn_cost_elementwise(context, cost, n - rows, 1, 0);
}

static const prn_kernel softmax_f32 = {.run = softmax_run_native};
PRN_WIDENED(softmax_half, &softmax_f32)

// clang-format off
static const prn_kernel softmax_kernels[] = {
    PRN_OPENCL_ROW("softmax_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, softmax_opencl_prepare)
    {.name = "softmax_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = softmax_run_native, .inplace = 1},
    PRN_WIDENED_PLAIN_ROW(softmax_half, "softmax_half_native"),
    {.name = "softmax_reference", .backend = "reference", .run = softmax_run_reference},
    {0}};
// clang-format on
static const prn_kernel log_softmax_f32 = {.run = softmax_run_native};
PRN_WIDENED(log_softmax_half, &log_softmax_f32)

// clang-format off
static const prn_kernel log_softmax_kernels[] = {
    PRN_OPENCL_ROW("log_softmax_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, softmax_opencl_prepare)
    {.name = "log_softmax_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = softmax_run_native, .inplace = 1},
    PRN_WIDENED_PLAIN_ROW(log_softmax_half, "log_softmax_half_native"),
    {.name = "log_softmax_reference", .backend = "reference", .run = softmax_run_reference},
    {0}};
// clang-format on
static const prn_kernel hardmax_kernels[] = {
    {.name = "hardmax_reference", .backend = "reference", .run = softmax_run_reference}, {0}};

// clang-format off
const prn_op prn_ops_softmax[] = {
    {.name = "Softmax", .since_opset = 1, .inputs = {1, 1},
     .params = attributes, .params_bytes = sizeof(softmax_params), .variant = &(const softmax_kind){SOFTMAX},
     .infer = softmax_infer, .cost = softmax_cost, .cost_text = "r (5 d - 2); special 2 n", .kernels = softmax_kernels},
    {.name = "LogSoftmax", .since_opset = 1, .inputs = {1, 1},
     .params = attributes, .params_bytes = sizeof(softmax_params), .variant = &(const softmax_kind){LOG_SOFTMAX},
     .infer = softmax_infer, .cost = softmax_cost, .cost_text = "r (5 d - 1); special n + r", .kernels = log_softmax_kernels},
    {.name = "Hardmax", .since_opset = 1, .inputs = {1, 1},
     .params = attributes, .params_bytes = sizeof(softmax_params), .variant = &(const softmax_kind){HARDMAX},
     .infer = softmax_infer, .cost = softmax_cost, .cost_text = "r (d - 1)", .kernels = hardmax_kernels},
    {0}};
// clang-format on
