/* MeanVarianceNormalization: y = (x - mean) / (standard deviation + 1e-9), both taken over a set of axes, [0, 2, 3]
 * unless the node says otherwise; before opset 9, the channels with them or not, and the division or not.
 * Invariant: the elements that share a mean are one task's. */
#include "base/threads/cancel.h"
#include "ops/kernels/vector/chain.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

typedef struct mvn_params {
    prn_ints axes;
    int64_t across_channels, normalize_variance; /* before opset 9 */
} mvn_params;

static const prn_param attributes[] = {PRN_INTS(mvn_params, axes),
                                       PRN_INT(mvn_params, across_channels, 0),
                                       PRN_INT(mvn_params, normalize_variance, 1),
                                       {0}};

typedef struct mvn_job {
    const prony_value *x, *y;
    prn_chain chain;
    int64_t groups, count;
    bool divided;
} mvn_job;

/* The normalised axes and how many elements and groups they make; opsets before 9 have fixed axes. false: an axis is
 * outside of the rank. */
static bool mvn_job_of(const prony_context *context, mvn_job *job)
{
    static const int64_t usual[] = {0, 2, 3, 1};
    const mvn_params *params = context->params;
    const bool early = context->node->opset < 9, listed = params->axes.present && !early;
    const int64_t *axes = listed ? params->axes.v : usual;
    const size_t axis_count = listed ? params->axes.count : early && params->across_channels ? 4 : 3;
    const prony_shape *shape = &context->inputs[0]->shape;
    bool reduced[PRONY_MAX_RANK] = {false};
    for (size_t i = 0; i < axis_count; i++) {
        int64_t axis = axes[i];
        if (!prn_axis_normalize(&axis, shape->rank)) return false;
        reduced[axis] = true;
    }
    *job = (mvn_job){.x = context->inputs[0],
                     .y = context->outputs[0],
                     .groups = 1,
                     .count = 1,
                     .divided = !early || params->normalize_variance};
    for (int d = 0; d < shape->rank; d++) {
        prn_chain_add(&job->chain, shape->dim[d], reduced[d]);
        *(reduced[d] ? &job->count : &job->groups) *= shape->dim[d];
    }
    return true;
}

static void normalise_group(const mvn_job *job, int64_t group)
{
    const prony_dtype dtype = job->x->dtype;
    const double count = (double)job->count;
    double sum = 0.0, squares = 0.0;
    prn_cursor cursor;
    prn_cursor_start(&cursor, &job->chain, group);
    for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
        sum += prn_get_f64(job->x->data, dtype, cursor.offset);
    }
    for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
        const double deviation = prn_get_f64(job->x->data, dtype, cursor.offset) - sum / count;
        squares += deviation * deviation;
    }
    const double divisor = job->divided ? sqrt(squares / count) + 1e-9 : 1.0;
    for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
        const double x = prn_get_f64(job->x->data, dtype, cursor.offset);
        prn_put_f64(job->y->data, dtype, cursor.offset, (x - sum / count) / divisor);
    }
}

/* float32 whose last axis is reduced: squares of deviations row by row, each from the row's own mean first. */
static void normalise_rows(const mvn_job *job, int64_t group)
{
    const prn_vec_table *vec = prn_vec();
    const double count = (double)job->count;
    prn_chain outer = job->chain;
    const int64_t row = outer.dim[--outer.rank], rows = job->count / row;
    double sum = 0.0, squares = 0.0;
    prn_cursor cursor;
    prn_cursor_start(&cursor, &outer, group);
    for (int64_t r = 0; r < rows && !prn_cancelled(); r++, prn_cursor_next(&cursor, &outer)) {
        sum += vec->sum((const float *)job->x->data + cursor.offset * row, row);
    }
    for (int64_t r = 0; r < rows && !prn_cancelled(); r++, prn_cursor_next(&cursor, &outer)) {
        double mean, variance;
        vec->mean_variance(&mean, &variance, (const float *)job->x->data + cursor.offset * row, row);
        squares += (variance + (mean - sum / count) * (mean - sum / count)) * (double)row;
    }
    const double divisor = job->divided ? sqrt(squares / count) + 1e-9 : 1.0;
    for (int64_t r = 0; r < rows && !prn_cancelled(); r++, prn_cursor_next(&cursor, &outer)) {
        float *y = (float *)job->y->data + cursor.offset * row;
        vec->vs[PRN_BINARY_SUB](y, (const float *)job->x->data + cursor.offset * row, (float)(sum / count), row);
        vec->vs[PRN_BINARY_DIV](y, y, (float)divisor, row);
    }
}

static void normalise_groups_in_rows(void *argument, int64_t begin, int64_t end)
{
    for (int64_t group = begin; group < end; group++) normalise_rows(argument, group);
}

static void normalise_groups(void *argument, int64_t begin, int64_t end)
{
    for (int64_t group = begin; group < end; group++) normalise_group(argument, group);
}

static prony_status mvn_run(const prony_context *context)
{
    mvn_job job;
    mvn_job_of(context, &job);
    prn_parallel_items(context->threads, job.groups, 8 * (int64_t)prn_value_bytes(job.x), normalise_groups, &job);
    return PRONY_OK;
}

static prony_status run_in_rows(const prony_context *context)
{
    mvn_job job;
    mvn_job_of(context, &job);
    prn_parallel_items(context->threads, job.groups, 3 * (int64_t)prn_value_bytes(job.x), normalise_groups_in_rows,
                       &job);
    return PRONY_OK;
}

static bool ends_reduced(const prony_context *context)
{
    mvn_job job;
    return mvn_job_of(context, &job) && job.chain.rank > 0 && job.chain.reduced[job.chain.rank - 1] && job.count > 0;
}

static prony_status mvn_infer(const prony_context *context)
{
    mvn_job job;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    if (mvn_job_of(context, &job)) return prn_infer_same(context);
    return prony_fail(context, PRONY_INVALID_MODEL, "axes are outside of rank %d", context->inputs[0]->shape.rank);
}

static prony_status mvn_cost(const prony_context *context, prony_cost *cost)
{
    mvn_job job;
    mvn_job_of(context, &job);
    const uint64_t n = prn_output_elements(context);
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    prn_cost_fact(cost, "rows", job.groups);
    PRN_TRY(prn_cost_elementwise(context, cost, n, 5, 1));
    return prn_cost_elementwise(context, cost, n ? (uint64_t)job.groups : 0, 2, 3);
}

#ifdef PRN_HAVE_OPENCL
static prony_status mvn_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    mvn_job job;
    mvn_job_of(context, &job);
    return prn_opencl_mvn_prepare(context, out, &job.chain, job.divided);
}
#endif

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("mvn_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, mvn_opencl_prepare)
    {.name = "mvn_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = ends_reduced, .run = run_in_rows, .inplace = 1},
    {.name = "mvn_reference", .backend = "reference", .run = mvn_run, .inplace = 1},
    {0}};

const prn_op prn_ops_mvn[] = {
    {.name = "MeanVarianceNormalization", .since_opset = 1, .inputs = {1, 1},
     .params = attributes, .params_bytes = sizeof(mvn_params),
     .infer = mvn_infer, .cost = mvn_cost, .cost_text = "5 n + 2 r; special n + 3 r", .kernels = kernels},
    {0}};
// clang-format on
