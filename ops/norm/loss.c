/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
 *
 *   scores [N, C, d1, …], target [N, d1, …], weight [C]; a position is one target
 *   loss = -weight[target] p[target], p the scores themselves or their log-softmax over C;
 *          0 where the target is ignored
 *
 *   scratch: loss of every position | weight of every position
 *
 * Invariant: positions are worked out independently and reduced in order by one thread. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

typedef struct loss_params {
    const char *reduction;
    int64_t ignore_index;
} loss_params;

typedef enum loss_kind { LOSS_LIKELIHOOD, LOSS_ENTROPY } loss_kind;

typedef enum reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN, REDUCTIONS } reduction;
static const char *const reduction_names[REDUCTIONS] = {"none", "sum", "mean"};

/* REDUCTIONS if the node names none of them. */
static reduction loss_reduction_of(const prony_context *context)
{
    const char *name = ((const loss_params *)context->params)->reduction;
    int i = 0;
    while (i < REDUCTIONS && strcmp(name, reduction_names[i]) != 0) i++;
    return (reduction)i;
}

typedef struct loss_job {
    const prony_value *x, *target, *weight, *log_prob; /* NULL: none given, or none wanted */
    bool softmax;
    int64_t classes, inner; /* C, d1 d2 … */
    int64_t positions;
    int64_t ignored; /* PRN_ABSENT: none is */
    double *loss, *share;
} loss_job;

static loss_job loss_describe(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    const bool softmax = *(const loss_kind *)prn_variant(context) == LOSS_ENTROPY;
    return (loss_job){.x = context->inputs[0],
                      .target = context->inputs[1],
                      .weight = prn_input(context, 2),
                      .log_prob = softmax ? prn_output(context, 1) : NULL,
                      .softmax = softmax,
                      .classes = shape->dim[1],
                      .inner = prn_shape_count(shape, 2, shape->rank),
                      .positions = prony_shape_numel(&context->inputs[1]->shape),
                      .ignored = ((const loss_params *)context->params)->ignore_index};
}

static bool is_ignored(const loss_job *job, int64_t target)
{
    return job->ignored != PRN_ABSENT && target == job->ignored;
}

static prony_status check_targets(const prony_context *context, const loss_job *job)
{
    for (int64_t i = 0; i < job->positions && !prn_cancelled_at(i); i++) {
        const int64_t target = prn_get_i64(job->target->data, job->target->dtype, i);
        if (is_ignored(job, target) || (target >= 0 && target < job->classes)) continue;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "target %lld is outside of %lld classes", (long long)target,
                          (long long)job->classes);
    }
    return PRONY_OK;
}

/* The amount to subtract from a position's scores to make them log-probabilities. */
static double log_sum(const loss_job *job, int64_t first)
{
    double most = -INFINITY, sum = 0.0;
    for (int64_t c = 0; c < job->classes && !prn_cancelled_at(c); c++)
        most = fmax(most, prn_get_f64(job->x->data, job->x->dtype, first + c * job->inner));
    for (int64_t c = 0; c < job->classes && !prn_cancelled_at(c); c++)
        sum += exp(prn_get_f64(job->x->data, job->x->dtype, first + c * job->inner) - most);
    return most + log(sum);
}

static void run_positions(void *argument, int64_t begin, int64_t end)
{
    const loss_job *job = argument;
    const prony_dtype dtype = job->x->dtype;
    for (int64_t position = begin; position < end; position++) {
        const int64_t first = position / job->inner * job->classes * job->inner + position % job->inner;
        const int64_t target = prn_get_i64(job->target->data, job->target->dtype, position);
        const double shift = job->softmax ? log_sum(job, first) : 0.0;
        for (int64_t c = 0; c < job->classes && job->log_prob && !prn_cancelled_at(c); c++) {
            const int64_t at = first + c * job->inner;
            prn_put_f64(job->log_prob->data, dtype, at, prn_get_f64(job->x->data, dtype, at) - shift);
        }
        job->loss[position] = job->share[position] = 0.0;
        if (is_ignored(job, target)) continue;
        job->share[position] = job->weight ? prn_get_f64(job->weight->data, job->weight->dtype, target) : 1.0;
        job->loss[position] =
            job->share[position] * (shift - prn_get_f64(job->x->data, dtype, first + target * job->inner));
    }
}

static prony_status loss_prepare(const prony_context *context, prn_prepared *out)
{
    out->scratch_bytes = (size_t)prony_shape_numel(&context->inputs[1]->shape) * 2 * sizeof(double);
    return PRONY_OK;
}

/* Losses and weights of all positions in parallel, then their sums in order: the result does not depend on the thread
 * count. */
static prony_status loss_run(const prony_context *context)
{
    loss_job job = loss_describe(context);
    double loss = 0.0, share = 0.0;
    PRN_TRY(check_targets(context, &job));
    job.loss = context->scratch;
    job.share = job.loss ? job.loss + job.positions : NULL; /* nothing at all in an empty batch */
    prn_parallel_items(context->threads, job.positions, 8 * (int64_t)prn_value_bytes(job.x), run_positions, &job);
    const prony_value *y = prn_output(context, 0);
    if (!y) return PRONY_OK;
    for (int64_t i = 0; i < job.positions && !prn_cancelled_at(i); i++) {
        loss += job.loss[i];
        share += job.share[i];
    }
    switch (loss_reduction_of(context)) {
    case REDUCE_NONE:
        prn_convert(y->data, y->dtype, job.loss, PRONY_FLOAT64, job.positions);
        break;
    case REDUCE_SUM:
        prn_put_f64(y->data, y->dtype, 0, loss);
        break;
    default:
        prn_put_f64(y->data, y->dtype, 0, loss / share);
        break;
    }
    return PRONY_OK;
}

/* ---- inference and cost */

static prony_status loss_check(const prony_context *context)
{
    if (loss_reduction_of(context) != REDUCTIONS) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'reduction' is '%s', wanted none, sum or mean",
                      ((const loss_params *)context->params)->reduction);
}

static prony_status loss_infer(const prony_context *context)
{
    const prony_value *x = context->inputs[0], *target = context->inputs[1], *weight = prn_input(context, 2);
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_type(context, 2, PRN_TYPE(x->dtype)));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    prony_shape wanted = x->shape;
    wanted.rank--;
    for (int d = 1; d < wanted.rank; d++) wanted.dim[d] = x->shape.dim[d + 1];
    if (!prn_shape_equal(&wanted, &target->shape)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "target is %s, wanted %s", prn_value_text(target, left),
                          prn_shape_text(&wanted, right));
    }
    const prony_shape per_class = prn_shape_make(1, &x->shape.dim[1]), scalar = prn_shape_scalar();
    if (weight && !prn_shape_equal(&per_class, &weight->shape)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "weight is %s, wanted %s", prn_value_text(weight, left),
                          prn_shape_text(&per_class, right));
    }
    prn_set_output(context, 0, x->dtype, loss_reduction_of(context) == REDUCE_NONE ? &target->shape : &scalar);
    prn_set_output(context, 1, x->dtype, &x->shape);
    return PRONY_OK;
}

/* Per target: neg, the weight, the sum, the sum of weights; before it the log-softmax. */
static prony_status loss_cost(const prony_context *context, prony_cost *cost)
{
    const loss_job job = loss_describe(context);
    const bool weighted = job.weight || job.ignored != PRN_ABSENT;
    const reduction reduction = loss_reduction_of(context);
    const uint64_t each =
        1U + weighted + (reduction != REDUCE_NONE ? 1U : 0U) + (reduction == REDUCE_MEAN && weighted ? 1U : 0U);
    prn_cost_fact(cost, "rows", job.positions);
    prn_cost_fact(cost, "axis_length", job.classes);
    PRN_TRY(prn_cost_elementwise(context, cost, (uint64_t)job.positions, each, 0));
    PRN_TRY(prn_cost_elementwise(context, cost, reduction == REDUCE_MEAN ? 1 : 0, 1, 1));
    if (!job.softmax) return PRONY_OK;
    const uint64_t n = (uint64_t)prony_shape_numel(&job.x->shape), rows = n ? n / (uint64_t)job.classes : 0;
    PRN_TRY(prn_cost_elementwise(context, cost, n - rows, 2, 0));
    PRN_TRY(prn_cost_elementwise(context, cost, n, 3, 1));
    return prn_cost_elementwise(context, cost, rows, 1, 1);
}

static const prn_param attributes[] = {
    PRN_STRING(loss_params, reduction, "mean"), PRN_INT(loss_params, ignore_index, PRN_ABSENT), {0}};

static const prn_kernel likelihood_kernels[] = {
    {.name = "negative_log_likelihood_reference", .backend = "reference", .prepare = loss_prepare, .run = loss_run},
    {0}};
static const prn_kernel entropy_kernels[] = {
    {.name = "softmax_cross_entropy_reference", .backend = "reference", .prepare = loss_prepare, .run = loss_run}, {0}};

/* clang-format off */
#define LIKELIHOOD_TEXT \
    "r targets: r (neg), + r with weight or ignore_index, + r unless reduction is none, + r for the mean of " \
    "weighted, + 1 for a mean; special 1 for a mean"
/* clang-format on */

// clang-format off
const prn_op prn_ops_loss[] = {
    {.name = "NegativeLogLikelihoodLoss", .since_opset = 12, .inputs = {2, 3},
     .params = attributes, .params_bytes = sizeof(loss_params), .variant = &(const loss_kind){LOSS_LIKELIHOOD},
     .check = loss_check, .infer = loss_infer, .cost = loss_cost, .cost_text = LIKELIHOOD_TEXT, .kernels = likelihood_kernels},
    {.name = "SoftmaxCrossEntropyLoss", .since_opset = 12, .inputs = {2, 3}, .outputs = {1, 2},
     .params = attributes, .params_bytes = sizeof(loss_params), .variant = &(const loss_kind){LOSS_ENTROPY},
     .check = loss_check, .infer = loss_infer, .cost = loss_cost, .kernels = entropy_kernels,
     .cost_text = "r (5 d - 1) for the log-softmax; special r (d + 1); + " LIKELIHOOD_TEXT},
    {0}};
// clang-format on
