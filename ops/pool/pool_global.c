/* GlobalAveragePool, GlobalMaxPool and GlobalLpPool: each channel of each image to one element.
 *
 * In plain and blocked layouts a plane is one run of [spatial][lanes], lanes 1, 4, 8 or 16, so that element i of the
 * run belongs to lane i mod lanes; it is combined into one of 32 partial results, i mod 32, which are combined in order
 * at the end. NHWC keeps one result per channel. Invariant: the order in which a result is combined depends on shape
 * and layout alone. */
#include "ops/pool/pool.h"
#include "ops/pool/pool_simd.h"
#include "base/integers.h"

#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"
#include "ops/vendor/opencl/opencl_rows.h"

#include <math.h>

enum { PARTIALS = PRN_POOL_PARTIALS };

PRN_SIMD_PICK(prn_pool_simd, prn_pool_simd_, static const prn_pool_simd *pool_global_loops)

/* ---- shapes and cost */

static prony_status pool_global_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 3, PRONY_MAX_RANK));
    prony_shape shape = context->inputs[0]->shape;
    for (int i = 2; i < shape.rank; i++) {
        if (shape.dim[i] == 0)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "spatial axis %d has no elements", i - 2);
        shape.dim[i] = 1;
    }
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

typedef struct lp_params {
    int64_t p;
} lp_params;

static prony_status pool_global_check_lp(const prony_context *context)
{
    return prn_pool_check_p(context, ((const lp_params *)context->params)->p);
}

static prony_status pool_global_cost(const prony_context *context, prony_cost *cost)
{
    const int64_t in = prony_shape_numel(&context->inputs[0]->shape);
    const int64_t out = prony_shape_numel(&context->outputs[0]->shape);
    prn_cost_fact(cost, "input_elements", in);
    prn_cost_fact(cost, "output_elements", out);
    switch (prn_pool_kind_of(context)) {
    case PRN_POOL_MAX:
        return prn_cost_elementwise(context, cost, (uint64_t)(in - out), 1, 0);
    case PRN_POOL_AVERAGE:
        PRN_TRY(prn_cost_elementwise(context, cost, (uint64_t)in, 1, 0));
        return prn_cost_elementwise(context, cost, (uint64_t)out, 0, 1);
    case PRN_POOL_LP:
        break;
    }
    return prn_pool_cost_lp(context, cost, out > 0 ? (uint64_t)(in / out) : 0, ((const lp_params *)context->params)->p);
}

/* ---- native */

typedef struct job {
    const float *x;
    float *y;
    int64_t planes, spatial, lanes, planes_per_task;
    bool average, nhwc;
} job;

static inline float pool_global_combine(float a, float b, bool average)
{
    return average ? a + b : (b > a || b != b ? b : a);
}

/* In blocks a channel has two sums, for every size of blocks. */
static int64_t partials_of(const job *job)
{
    return job->lanes == 1 ? PARTIALS : 2 * job->lanes;
}

static void pool_global_finish_plane(const job *job, int64_t plane, const float partial[PARTIALS])
{
    const int64_t partials = partials_of(job);
    for (int64_t l = 0; l < job->lanes; l++) {
        float result = partial[l];
        for (int64_t j = l + job->lanes; j < partials; j += job->lanes)
            result = pool_global_combine(result, partial[j], job->average);
        job->y[plane * job->lanes + l] = job->average ? result / (float)job->spatial : result;
    }
}

/* Two of them side by side: the results of one are too few to hide how long an addition takes. */
static void pool_runs(const job *job, int64_t plane, int64_t planes)
{
    float partial[2][PARTIALS];
    const int64_t count = job->spatial * job->lanes;
    const prn_pool_runs runs = {
        .x = job->x + plane * count, .planes = planes, .count = count, .sums = partials_of(job), .partial = partial};
    for (int64_t p = 0; p < planes; p++)
        for (int j = 0; j < PARTIALS; j++) partial[p][j] = job->average ? 0.0f : -INFINITY;
    (job->average ? pool_global_loops()->sum_runs : pool_global_loops()->max_runs)(&runs);
    for (int64_t p = 0; p < planes; p++) pool_global_finish_plane(job, plane + p, partial[p]);
}

/* NHWC: a plane is an image, its lanes are all channels. */
static void pool_image(const job *job, int64_t image)
{
    const float *x = job->x + image * job->spatial * job->lanes;
    float *y = job->y + image * job->lanes;
    for (int64_t l = 0; l < job->lanes; l++) y[l] = x[l];
    for (int64_t p = 1; p < job->spatial && !(job->lanes < 256 ? prn_cancelled_at(p) : prn_cancelled()); p++) {
        for (int64_t l = 0; l < job->lanes; l++) y[l] = pool_global_combine(y[l], x[p * job->lanes + l], job->average);
    }
    for (int64_t l = 0; l < job->lanes && job->average; l++) y[l] /= (float)job->spatial;
}

static void pool_global_task(void *argument, int64_t task)
{
    const job *job = argument;
    const int64_t end = prn_least((task + 1) * job->planes_per_task, job->planes);
    int64_t plane = task * job->planes_per_task;
    if (!job->nhwc) {
        for (; plane < end && !prn_cancelled(); plane += 2) pool_runs(job, plane, prn_least(end - plane, 2));
    } else {
        for (; plane < end && !prn_cancelled(); plane++) pool_image(job, plane);
    }
}

static prony_status pool_global_run_native(const prony_context *context)
{
    enum { TASK_ELEMENTS = 32768 };
    const prony_value *x = context->inputs[0];
    prn_layout layout = (prn_layout)x->layout;
    int64_t block = prn_layout_block(layout);
    job job = {.x = x->data,
               .y = context->outputs[0]->data,
               .average = prn_pool_kind_of(context) == PRN_POOL_AVERAGE,
               .nhwc = layout == PRN_NHWC};
    job.spatial = prn_shape_count(&x->shape, 2, x->shape.rank);
    job.lanes = job.nhwc ? x->shape.dim[1] : block ? block : 1;
    job.planes = prn_layout_elements(&x->shape, layout) / (job.spatial * job.lanes);
    job.planes_per_task = TASK_ELEMENTS / (job.spatial * job.lanes) + 1;
    job.planes_per_task += job.planes_per_task % 2;
    prn_parallel_tasks(context->threads, prn_ceil_div(job.planes, job.planes_per_task), pool_global_task, &job);
    return PRONY_OK;
}

static bool pool_global_native_supported(const prony_context *context)
{
    return prony_shape_numel(&context->inputs[0]->shape) > 0;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static prony_status pool_global_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    const prn_opencl_fold fold =
        prn_pool_kind_of(context) == PRN_POOL_AVERAGE ? PRN_OPENCL_FOLD_MEAN : PRN_OPENCL_FOLD_MAX;
    prn_chain chain = {0};
    prn_chain_add(&chain, prn_shape_count(shape, 0, 2), false);
    prn_chain_add(&chain, prn_shape_count(shape, 2, shape->rank), true);
    return prn_opencl_reduce_prepare(context, out, &fold, &chain);
}
#endif

/* ---- reference */

typedef struct plain_job {
    const prony_value *x;
    prony_value *y;
    int64_t spatial, p;
    prn_pool_kind kind;
} plain_job;

static void pool_global_planes(void *argument, int64_t begin, int64_t end)
{
    const plain_job *job = argument;
    for (int64_t plane = begin; plane < end; plane++) {
        double result = job->kind == PRN_POOL_MAX ? -(double)INFINITY : 0.0;
        for (int64_t i = plane * job->spatial; i < (plane + 1) * job->spatial && !prn_cancelled_at(i); i++) {
            const double x = prn_get_f64(job->x->data, job->x->dtype, i);
            if (job->kind == PRN_POOL_MAX)
                result = x > result || x != x ? x : result;
            else
                result += job->kind == PRN_POOL_AVERAGE ? x : prn_pool_power(x, job->p);
        }
        if (job->kind == PRN_POOL_AVERAGE) result /= (double)job->spatial;
        if (job->kind == PRN_POOL_LP) result = prn_pool_root(result, job->p);
        prn_put_f64(job->y->data, job->y->dtype, plane, result);
    }
}

static prony_status pool_global_run_reference(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    plain_job job = {.x = x, .y = context->outputs[0], .kind = prn_pool_kind_of(context)};
    if (job.kind == PRN_POOL_LP) job.p = ((const lp_params *)context->params)->p;
    job.spatial = prn_shape_count(&x->shape, 2, x->shape.rank);
    prn_parallel_items(context->threads, x->shape.dim[0] * x->shape.dim[1], (int64_t)prn_value_bytes(x),
                       pool_global_planes, &job);
    return PRONY_OK;
}

/* ---- descriptors */

static const prn_kernel globalaveragepool_f32 = {.supported = pool_global_native_supported,
                                                 .run = pool_global_run_native};
PRN_WIDENED(globalaveragepool_half, &globalaveragepool_f32)

// clang-format off
static const prn_kernel average_kernels[] = {
    PRN_OPENCL_ROW("globalaveragepool_f32_opencl", PRN_TYPE_F32, prn_opencl_reduce_supported, pool_global_opencl_prepare)
    {.name = "globalaveragepool_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = pool_global_native_supported,
     .layouts = prn_same_layout, .run = pool_global_run_native},
    PRN_WIDENED_PLAIN_ROW(globalaveragepool_half, "globalaveragepool_half_native"),
    {.name = "globalaveragepool_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = pool_global_run_reference},
    {0}};
// clang-format on

static const prn_kernel globalmaxpool_f32 = {.supported = pool_global_native_supported, .run = pool_global_run_native};
PRN_WIDENED(globalmaxpool_half, &globalmaxpool_f32)

// clang-format off
static const prn_kernel max_kernels[] = {
    PRN_OPENCL_ROW("globalmaxpool_f32_opencl", PRN_TYPE_F32, prn_opencl_reduce_supported, pool_global_opencl_prepare)
    {.name = "globalmaxpool_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = pool_global_native_supported,
     .layouts = prn_same_layout, .run = pool_global_run_native},
    PRN_WIDENED_PLAIN_ROW(globalmaxpool_half, "globalmaxpool_half_native"),
    {.name = "globalmaxpool_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = pool_global_run_reference},
    {0}};
// clang-format on

static const prn_param lp_attributes[] = {PRN_INT(lp_params, p, 2), {0}};
static const prn_kernel lp_kernels[] = {
    {.name = "globallppool_ref", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = pool_global_run_reference},
    {0}};

// clang-format off
const prn_op prn_ops_pool_global[] = {
    {.name = "GlobalAveragePool", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const prn_pool_kind){PRN_POOL_AVERAGE}, .infer = pool_global_infer, .cost = pool_global_cost, .kernels = average_kernels,
     .cost_text = "input elements, n of them divisions"},
    {.name = "GlobalMaxPool", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const prn_pool_kind){PRN_POOL_MAX}, .infer = pool_global_infer, .cost = pool_global_cost, .kernels = max_kernels,
     .cost_text = "input elements - n"},
    {.name = "GlobalLpPool", .since_opset = 1, .inputs = {1, 1},
     .params = lp_attributes, .params_bytes = sizeof(lp_params), .variant = &(const prn_pool_kind){PRN_POOL_LP},
     .check = pool_global_check_lp, .infer = pool_global_infer, .cost = pool_global_cost, .cost_text = PRN_POOL_LP_COST_TEXT, .kernels = lp_kernels},
    {0}};
// clang-format on
