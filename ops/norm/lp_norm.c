/* Normalisation along one axis without a mean: LpNormalization, and RMSNormalization over trailing axes.
 * The reference sees [outer, length, inner] and works in double. Invariant: a row is one task. */
#include "base/threads/cancel.h"
#include "ops/kernels/vector/affine.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

typedef struct lp_params {
    int64_t axis, p, stash_type;
    float epsilon;
} lp_params;

typedef enum lp_kind { LP_NORM, RMS_NORM } lp_kind;

typedef struct lp_job {
    const prony_value *x, *y, *scale;
    int64_t outer, length, inner;
    int64_t p; /* 0: root of the mean square */
    float epsilon;
    prn_affine wide_scale;
} lp_job;

static int64_t lp_norm_axis_of(const prony_context *context)
{
    int64_t axis = ((const lp_params *)context->params)->axis;
    return prn_axis_normalize(&axis, context->inputs[0]->shape.rank) ? axis : -1;
}

static lp_job lp_norm_job_of(const prony_context *context)
{
    const bool rms = *(const lp_kind *)prn_variant(context) == RMS_NORM;
    const lp_params *params = context->params;
    const prony_shape *shape = &context->inputs[0]->shape;
    const int first = (int)lp_norm_axis_of(context), last = rms ? shape->rank : first + 1;
    lp_job job = {.x = context->inputs[0],
                  .y = context->outputs[0],
                  .scale = rms ? prn_input(context, 1) : NULL,
                  .outer = prn_shape_count(shape, 0, first),
                  .length = prn_shape_count(shape, first, last),
                  .inner = prn_shape_count(shape, last, shape->rank),
                  .p = rms ? 0 : params->p,
                  .epsilon = params->epsilon};
    if (rms && prn_affine_make(context, 1, first, &job.wide_scale) != PRONY_OK) job.scale = NULL;
    return job;
}

static void lp_norm_reference_row(const lp_job *job, int64_t first)
{
    const prony_dtype dtype = job->x->dtype;
    double sum = 0.0;
    for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
        const double x = prn_get_f64(job->x->data, dtype, first + i * job->inner);
        sum += job->p == 1 ? fabs(x) : x * x;
    }
    if (job->p == 0) sum = sqrt(sum / (double)job->length + (double)job->epsilon);
    if (job->p == 2) sum = sqrt(sum);
    for (int64_t i = 0; i < job->length && !prn_cancelled_at(i); i++) {
        const int64_t at = first + i * job->inner;
        double value = sum == 0.0 ? 0.0 : prn_get_f64(job->x->data, dtype, at) / sum;
        if (job->scale) value *= prn_affine_get(&job->wide_scale, at);
        prn_put_f64(job->y->data, dtype, at, value);
    }
}

static void lp_norm_reference_rows(void *argument, int64_t begin, int64_t end)
{
    const lp_job *job = argument;
    for (int64_t row = begin; row < end; row++) {
        lp_norm_reference_row(job, row / job->inner * job->length * job->inner + row % job->inner);
    }
}

static void native_rms_rows(void *argument, int64_t begin, int64_t end)
{
    const lp_job *job = argument;
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)job->x->data + row * job->length;
        prn_vec()->rms_norm((float *)job->y->data + row * job->length, x, job->scale ? job->scale->data : NULL,
                            job->length, job->epsilon);
    }
}

/* Rows of neighbours, divided by their norm; nothing where that is 0. */
static void native_lp_rows(void *argument, int64_t begin, int64_t end)
{
    const lp_job *job = argument;
    const prn_vec_table *vec = prn_vec();
    for (int64_t row = begin; row < end; row++) {
        const float *x = (const float *)job->x->data + row * job->length;
        float *y = (float *)job->y->data + row * job->length;
        const double sum = job->p == 1 ? vec->sum_abs(x, job->length) : sqrt(vec->sum_squares(x, job->length));
        if (sum == 0.0)
            prn_long_map(PRN_MAP_AFFINE, y, x, job->length, 0.0f, 0.0f);
        else
            prn_long_vs(PRN_BINARY_DIV, y, x, (float)sum, job->length);
    }
}

static prony_status run_job(const prony_context *context, lp_job job,
                            void (*rows)(void *argument, int64_t begin, int64_t end))
{
    if (job.length == 0) return PRONY_OK;
    prn_parallel_items(context->threads, job.outer * job.inner, 2 * (int64_t)prn_value_bytes(job.x), rows, &job);
    return PRONY_OK;
}

static prony_status lp_norm_run_reference(const prony_context *context)
{
    return run_job(context, lp_norm_job_of(context), lp_norm_reference_rows);
}

static prony_status lp_norm_run_native(const prony_context *context)
{
    const lp_job job = lp_norm_job_of(context);
    return run_job(context, job, job.p == 0 ? native_rms_rows : native_lp_rows);
}

static bool has_rows(const prony_context *context)
{
    return lp_norm_job_of(context).inner == 1;
}

static bool scale_in_rows(const prony_context *context)
{
    return !prn_input(context, 1) || lp_norm_job_of(context).wide_scale.vector;
}

#ifdef PRN_HAVE_OPENCL
static bool lp_norm_opencl_supported(const prony_context *context)
{
    return scale_in_rows(context) && prn_opencl_rows_supported(context);
}

static prony_status lp_norm_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const lp_job job = lp_norm_job_of(context);
    if (job.p != 0) return prn_opencl_lp_norm_prepare(context, out, job.p, job.length, job.inner);
    return prn_opencl_norm_prepare(context, out,
                                   &(prn_opencl_norm){.length = job.length,
                                                      .run = 1,
                                                      .period = job.length,
                                                      .epsilon = job.epsilon,
                                                      .rms = true,
                                                      .skip = PRN_OPENCL_NONE,
                                                      .added = PRN_OPENCL_NONE,
                                                      .scale = job.scale ? 1 : PRN_OPENCL_NONE,
                                                      .bias = PRN_OPENCL_NONE,
                                                      .mean_output = PRN_OPENCL_NONE,
                                                      .inverse_output = PRN_OPENCL_NONE,
                                                      .sum_output = PRN_OPENCL_NONE});
}
#endif

static prony_status infer_axis(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    if (lp_norm_axis_of(context) >= 0) return prn_infer_same(context);
    return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d",
                      (long long)((const lp_params *)context->params)->axis, context->inputs[0]->shape.rank);
}

static prony_status lp_norm_check_lp(const prony_context *context)
{
    const int64_t p = ((const lp_params *)context->params)->p;
    if (p == 1 || p == 2) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "p is %lld, wanted 1 or 2", (long long)p);
}

static prony_status infer_rms(const prony_context *context)
{
    PRN_TRY(infer_axis(context));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPES_FLOAT));
    prn_affine scale;
    return prn_affine_make(context, 1, (int)lp_norm_axis_of(context), &scale);
}

static uint64_t row_facts(const prony_context *context, prony_cost *cost, const lp_job *job)
{
    const uint64_t n = prn_output_elements(context), rows = n ? n / (uint64_t)job->length : 0;
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    prn_cost_fact(cost, "rows", (int64_t)rows);
    prn_cost_fact(cost, "axis_length", job->length);
    return rows;
}

static prony_status cost_lp(const prony_context *context, prony_cost *cost)
{
    const lp_job job = lp_norm_job_of(context);
    const uint64_t n = prn_output_elements(context), rows = row_facts(context, cost, &job);
    PRN_TRY(prn_cost_elementwise(context, cost, n - rows, 1, 0)); /* the sum */
    PRN_TRY(prn_cost_elementwise(context, cost, n, 2, 1));        /* abs or square, div */
    return prn_cost_elementwise(context, cost, job.p == 2 ? rows : 0, 1, 1);
}

static prony_status cost_rms(const prony_context *context, prony_cost *cost)
{
    const lp_job job = lp_norm_job_of(context);
    const uint64_t n = prn_output_elements(context), rows = row_facts(context, cost, &job);
    prn_cost_fact(cost, "affine", job.scale != NULL);
    PRN_TRY(prn_cost_elementwise(context, cost, n, job.scale ? 4 : 3, 1));
    return prn_cost_elementwise(context, cost, rows, 2, 2);
}

static const prn_param lp_attributes[] = {PRN_INT(lp_params, axis, -1), PRN_INT(lp_params, p, 2), {0}};
static const prn_param rms_attributes[] = {
    PRN_INT(lp_params, axis, -1), PRN_INT(lp_params, stash_type, 1), PRN_FLOAT(lp_params, epsilon, 1e-5f), {0}};

// clang-format off
static const prn_kernel lp_kernels[] = {
    PRN_OPENCL_ROW("lp_norm_f32_opencl", PRN_TYPE_F32, lp_norm_opencl_supported, lp_norm_opencl_prepare)
    {.name = "lp_norm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = has_rows, .run = lp_norm_run_native},
    {.name = "lp_norm_reference", .backend = "reference", .run = lp_norm_run_reference},
    {0}};
static const prn_kernel rms_kernels[] = {
    PRN_OPENCL_ROW("rms_norm_f32_opencl", PRN_TYPE_F32, lp_norm_opencl_supported, lp_norm_opencl_prepare)
    {.name = "rms_norm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .float_types = PRN_TYPE_F32, .supported = scale_in_rows, .run = lp_norm_run_native,
     .inplace = 1},
    {.name = "rms_norm_reference", .backend = "reference", .run = lp_norm_run_reference},
    {0}};

const prn_op prn_ops_lp_norm[] = {
    {.name = "LpNormalization", .since_opset = 1, .inputs = {1, 1},
     .params = lp_attributes, .params_bytes = sizeof(lp_params), .variant = &(const lp_kind){LP_NORM},
     .check = lp_norm_check_lp, .infer = infer_axis, .cost = cost_lp, .kernels = lp_kernels,
     .cost_text = "3 n - r (p = 1) or 3 n (p = 2); special n, + r (p = 2)"},
    {.name = "RMSNormalization", .since_opset = 23, .inputs = {2, 2},
     .params = rms_attributes, .params_bytes = sizeof(lp_params), .variant = &(const lp_kind){RMS_NORM},
     .infer = infer_rms, .cost = cost_rms, .kernels = rms_kernels,
     .cost_text = "3 n + 2 r, + n with scale; special n + 2 r"},
    {0}};
// clang-format on
