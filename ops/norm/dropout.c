/* Dropout. Up to opset 11 it only runs as at inference (whatever is_test says, which opset 7 took out), where the
 * result is the input: a view. From opset 12 on an input can ask for training: elements are dropped with probability
 * `ratio`, the others scaled up. A seeded node draws in order what the reference implementation draws (mersenne.h), any
 * other by index (random.h). The rewrites take the operator out where it drops nothing. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/random/mersenne.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/random/random.h"

#include <string.h>

typedef struct dropout_params {
    float ratio;
    int64_t seed;
} dropout_params;

enum { GRAIN = 4096 };

static prony_status keep_all(const prony_context *context)
{
    const prony_value *x = context->inputs[0], *y = prn_output(context, 0), *mask = prn_output(context, 1);
    const int64_t count = mask ? prony_shape_numel(&mask->shape) : 0;
    if (y) prn_copy_bytes(context->threads, x->data, y->data, prn_layout_bytes(x));
    for (int64_t i = 0; i < count; i++) prn_put_f64(mask->data, mask->dtype, i, 1.0);
    return PRONY_OK;
}

/* ---- up to opset 11 */

static prony_status infer_1(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    prn_set_output(context, 0, x->dtype, &x->shape);
    prn_set_output(context, 1, context->node->opset < 10 ? x->dtype : PRONY_BOOL, &x->shape);
    return PRONY_OK;
}

static bool no_mask(const prony_context *context)
{
    return !prn_output(context, 1);
}

/* ---- from opset 12 on */

static prony_status infer_12(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_type(context, 2, PRN_TYPE(PRONY_BOOL)));
    for (size_t i = 1; i < 3; i++) {
        const prony_value *scalar = prn_input(context, i);
        if (scalar && prony_shape_numel(&scalar->shape) != 1)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is not a scalar", i);
    }
    prn_set_output(context, 0, x->dtype, &x->shape);
    prn_set_output(context, 1, PRONY_BOOL, &x->shape);
    return PRONY_OK;
}

static bool dropout_is_training(const prony_context *context)
{
    const prony_value *training = prn_input(context, 2);
    return training && training->data && *(const uint8_t *)training->data;
}

static double ratio_of(const prony_context *context)
{
    const prony_value *ratio = prn_input(context, 1);
    return ratio && ratio->data ? prn_get_f64(ratio->data, ratio->dtype, 0) : 0.5;
}

typedef struct drop_job {
    const prony_value *x, *y, *mask;
    double ratio;
    prn_mersenne *stream; /* NULL: by key and index */
    uint64_t key;
} drop_job;

static void drop_range(void *argument, int64_t begin, int64_t end)
{
    const drop_job *job = argument;
    for (int64_t i = begin; i < end && !prn_cancelled_at(i); i++) {
        const double drawn =
            job->stream ? prn_mersenne_uniform(job->stream) : prn_random_uniform(job->key, (uint64_t)i, 53);
        const bool kept = drawn >= job->ratio;
        const double x = prn_get_f64(job->x->data, job->x->dtype, i);
        if (job->y) prn_put_f64(job->y->data, job->y->dtype, i, kept ? x / (1.0 - job->ratio) : 0.0);
        if (job->mask) ((uint8_t *)job->mask->data)[i] = kept;
    }
}

static prony_status run_12(const prony_context *context)
{
    const int64_t seed = ((const dropout_params *)context->params)->seed;
    const double ratio = ratio_of(context);
    if (!dropout_is_training(context) || ratio == 0.0) return keep_all(context);
    if (!(ratio > 0.0 && ratio < 1.0))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "ratio is %g, wanted 0 or more and less than 1", ratio);
    drop_job job = {.x = context->inputs[0],
                    .y = prn_output(context, 0),
                    .mask = prn_output(context, 1),
                    .ratio = ratio,
                    .key = prn_random_key(context, false, 0)};
    const int64_t count = prony_shape_numel(&job.x->shape);
    prn_mersenne stream;
    if (seed == PRN_ABSENT) {
        prn_parallel_range(context->threads, count, GRAIN, drop_range, &job);
        return PRONY_OK;
    }
    prn_mersenne_seed(&stream, (uint32_t)seed);
    job.stream = &stream;
    drop_range(&job, 0, count);
    return PRONY_OK;
}

static prony_status cost_12(const prony_context *context, prony_cost *cost)
{
    if (!dropout_is_training(context) || ratio_of(context) == 0.0) return prn_cost_none(context, cost);
    return prn_cost_elementwise(context, cost, (uint64_t)prony_shape_numel(&context->inputs[0]->shape), 2, 1);
}

/* ---- descriptors */

static const prn_param attributes_1[] = {PRN_FLOAT(dropout_params, ratio, 0.5f), {0}};
static const prn_param attributes_12[] = {PRN_INT(dropout_params, seed, PRN_ABSENT), {0}};

// clang-format off
static const prn_kernel kernels_1[] = {
    {.name = "dropout_view", .backend = "native", .supported = no_mask, .layouts = prn_same_layout, .run = keep_all,
     .inplace = 1},
    {.name = "dropout_reference", .backend = "reference", .run = keep_all, .inplace = 1},
    {0}};
// clang-format on
static const prn_kernel kernels_12[] = {
    {.name = "dropout_12_reference", .backend = "reference", .run = run_12, .inplace = 1}, {0}};

// clang-format off
const prn_op prn_ops_dropout[] = {
    {.name = "Dropout", .since_opset = 1, .inputs = {1, 1}, .outputs = {1, 2}, .flags = PRN_OP_VIEW,
     .params = attributes_1, .params_bytes = sizeof(dropout_params),
     .infer = infer_1, .cost = prn_cost_none, .cost_text = "0 (inference)", .kernels = kernels_1},
    {.name = "Dropout", .since_opset = 12, .inputs = {1, 3}, .outputs = {1, 2}, .flags = PRN_OP_ONCE_PER_RUN | PRN_OP_BY_VALUE,
     .non_weight_inputs = 6, .params = attributes_12, .params_bytes = sizeof(dropout_params),
     .infer = infer_12, .cost = cost_12, .kernels = kernels_12,
     .cost_text = "0 (inference); 2 n (mul, div) when training; special n"},
    {0}};
// clang-format on
