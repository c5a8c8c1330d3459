/* Det: determinants of square matrices, by Gaussian elimination with row pivots in double. Each task works in a matrix
 * of scratch of its own. Invariant: a matrix is one task's. */
#include "base/threads/parallel.h"
#include "base/integers.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"

enum { MOST_TASKS = 64 };

typedef struct det_job {
    const prony_value *in;
    prony_value *out;
    double *work;
    int64_t size, matrices, per_task;
} det_job;

static det_job det_job_of(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    det_job job = {.in = in, .out = context->outputs[0], .work = context->scratch};
    job.size = in->shape.dim[in->shape.rank - 1];
    job.matrices = prn_shape_count(&in->shape, 0, in->shape.rank - 2);
    job.per_task = job.matrices / MOST_TASKS + 1;
    return job;
}

static int64_t task_count(const det_job *job)
{
    return prn_ceil_div(job->matrices, job->per_task);
}

static prony_status det_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    prony_shape shape = context->inputs[0]->shape;
    if (shape.dim[shape.rank - 1] != shape.dim[shape.rank - 2]) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "matrices in %s are not square", prn_shape_text(&shape, text));
    }
    shape.rank -= 2;
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "there are too many matrices");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

/* The elimination of a size x size matrix: size - 1 divisions per column below the diagonal, a multiplication and a
 * subtraction per element right of it, and the product of the diagonal. */
static prony_status det_cost(const prony_context *context, prony_cost *cost)
{
    const det_job job = det_job_of(context);
    const uint64_t m = (uint64_t)job.size, matrices = prn_output_elements(context);
    uint64_t cube;
    if (m == 0) return PRONY_OK;
    if (!prn_mul_u64(&cube, m * (m - 1), 2 * m - 1))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    const uint64_t divisions = m * (m - 1) / 2, pairs = cube / 6;
    return prn_cost_elementwise(context, cost, matrices, 2 * pairs + divisions + m - 1, divisions);
}

/* The product of the pivots of Gaussian elimination with row exchanges; `a` is overwritten. */
static double determinant(double *a, int64_t n)
{
    double result = 1.0;
    for (int64_t k = 0; k < n && !prn_cancelled(); k++) {
        int64_t pivot = k;
        for (int64_t row = k + 1; row < n; row++) {
            if (fabs(a[row * n + k]) > fabs(a[pivot * n + k])) pivot = row;
        }
        if (pivot != k) {
            result = -result;
            for (int64_t j = k; j < n; j++) {
                const double swapped = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = swapped;
            }
        }
        result *= a[k * n + k];
        if (a[k * n + k] == 0.0) return result;
        for (int64_t row = k + 1; row < n && !(n > 1024 && prn_cancelled()); row++) {
            const double factor = a[row * n + k] / a[k * n + k];
            for (int64_t j = k + 1; j < n; j++) a[row * n + j] -= factor * a[k * n + j];
        }
    }
    return result;
}

static void eliminate(void *argument, int64_t task)
{
    const det_job *job = argument;
    const int64_t elements = job->size * job->size;
    double *work = elements ? job->work + task * elements : NULL;
    for (int64_t i = 0; i < job->per_task && task * job->per_task + i < job->matrices; i++) {
        const int64_t matrix = task * job->per_task + i;
        for (int64_t k = 0; k < elements && !prn_cancelled_at(k); k++)
            work[k] = prn_get_f64(job->in->data, job->in->dtype, matrix * elements + k);
        prn_put_f64(job->out->data, job->out->dtype, matrix, determinant(work, job->size));
    }
}

static prony_status det_prepare(const prony_context *context, prn_prepared *out)
{
    const det_job job = det_job_of(context);
    uint64_t doubles;
    if (!prn_mul_u64(&doubles, (uint64_t)job.size, (uint64_t)job.size) ||
        !prn_mul_u64(&doubles, doubles, (uint64_t)task_count(&job)) || doubles > SIZE_MAX / 16)
        return prony_fail(context, PRONY_LIMIT, "the matrices do not fit in memory");
    out->scratch_bytes = (size_t)doubles * sizeof(double);
    return PRONY_OK;
}

static prony_status det_run(const prony_context *context)
{
    det_job job = det_job_of(context);
    prn_parallel_tasks(context->threads, task_count(&job), eliminate, &job);
    return PRONY_OK;
}

static const prn_kernel kernels[] = {
    {.name = "det_reference", .backend = "reference", .prepare = det_prepare, .run = det_run}, {0}};

const prn_op prn_ops_det[] = {
    {.name = "Det",
     .since_opset = 11,
     .inputs = {1, 1},
     .infer = det_infer,
     .cost = det_cost,
     .cost_text = "per matrix of size m: m (m-1) (2m-1) / 3 + m (m-1) / 2 + m - 1; special m (m-1) / 2",
     .kernels = kernels},
    {0}};
