/* RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial. Each element is drawn by its index
 * (random.h), so any cut among threads gives the same result. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/random/random.h"

#include <float.h>

typedef struct random_params {
    float low, high, mean, scale, seed; /* seed NaN: none */
    int64_t dtype, sample_size;
    prn_ints shape;
} random_params;

enum { GRAIN = 4096 };

static uint64_t random_ops_key_of(const prony_context *context)
{
    const float seed = ((const random_params *)context->params)->seed;
    return prn_random_key(context, !isnan(seed), prn_f32_bits(seed));
}

static prony_status random_ops_check_dtype(const prony_context *context, uint32_t types)
{
    const int64_t dtype = ((const random_params *)context->params)->dtype;
    if (dtype == PRN_ABSENT || (dtype > 0 && dtype < PRONY_DTYPE_COUNT && (types & PRN_TYPE(dtype)))) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'dtype' is %lld, which this operator does not support",
                      (long long)dtype);
}

/* ---- uniform and normal */

static prony_status check_float(const prony_context *context)
{
    return random_ops_check_dtype(context, PRN_TYPES_FLOAT);
}

static prony_status infer_shape(const prony_context *context)
{
    const random_params *params = context->params;
    prony_shape shape = {.rank = (int32_t)params->shape.count};
    if (params->shape.count > PRONY_MAX_RANK)
        return prony_fail(context, PRONY_LIMIT, "rank %zu is too large", params->shape.count);
    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = params->shape.v[i];
        if (shape.dim[i] < 0)
            return prony_fail(context, PRONY_INVALID_MODEL, "shape[%d] is %lld", i, (long long)shape.dim[i]);
    }
    prn_set_output(context, 0, params->dtype == PRN_ABSENT ? PRONY_FLOAT32 : (prony_dtype)params->dtype, &shape);
    return PRONY_OK;
}

static prony_status infer_like(const prony_context *context)
{
    const random_params *params = context->params;
    const prony_value *like = context->inputs[0];
    if (params->dtype == PRN_ABSENT) PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    prn_set_output(context, 0, params->dtype == PRN_ABSENT ? like->dtype : (prony_dtype)params->dtype, &like->shape);
    return PRONY_OK;
}

typedef struct draw_job {
    const prony_value *x, *y;
    uint64_t key;
    double a, b; /* low and width, or mean and scale */
    int bits;
} draw_job;

/* No more bits than the type holds, so that rounding never reaches 1. */
static int mantissa_bits(prony_dtype dtype)
{
    return dtype == PRONY_FLOAT64 ? 53 : dtype == PRONY_FLOAT32 ? 24 : dtype == PRONY_FLOAT16 ? 11 : 8;
}

static void draw_uniform(void *argument, int64_t begin, int64_t end)
{
    const draw_job *job = argument;
    for (int64_t i = begin; i < end; i++) {
        const double u = prn_random_uniform(job->key, (uint64_t)i, job->bits);
        prn_put_f64(job->y->data, job->y->dtype, i, job->a + job->b * u);
    }
}

/* Box and Muller: elements 2 k and 2 k + 1 are one point's coordinates. */
static void draw_normal(void *argument, int64_t begin, int64_t end)
{
    const draw_job *job = argument;
    for (int64_t i = begin; i < end; i++) {
        const uint64_t pair = (uint64_t)i & ~UINT64_C(1);
        const double radius = sqrt(-2.0 * log(1.0 - prn_random_uniform(job->key, pair, 53)));
        const double angle = 2.0 * M_PI * prn_random_uniform(job->key, pair + 1, 53);
        prn_put_f64(job->y->data, job->y->dtype, i, job->a + job->b * radius * (i % 2 ? sin(angle) : cos(angle)));
    }
}

static prony_status run_uniform(const prony_context *context)
{
    const random_params *params = context->params;
    draw_job job = {.y = context->outputs[0],
                    .key = random_ops_key_of(context),
                    .a = (double)params->low,
                    .b = (double)params->high - (double)params->low,
                    .bits = mantissa_bits(context->outputs[0]->dtype)};
    prn_parallel_range(context->threads, prony_shape_numel(&job.y->shape), GRAIN, draw_uniform, &job);
    return PRONY_OK;
}

static prony_status run_normal(const prony_context *context)
{
    const random_params *params = context->params;
    draw_job job = {.y = context->outputs[0],
                    .key = random_ops_key_of(context),
                    .a = (double)params->mean,
                    .b = (double)params->scale};
    prn_parallel_range(context->threads, prony_shape_numel(&job.y->shape), GRAIN, draw_normal, &job);
    return PRONY_OK;
}

static prony_status cost_draw(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 2, 0, 0);
}

/* ---- Bernoulli */

static prony_status check_bernoulli(const prony_context *context)
{
    return random_ops_check_dtype(context, PRN_TYPES_NUMBER_BOOL);
}

static prony_status infer_bernoulli(const prony_context *context)
{
    const random_params *params = context->params;
    const prony_value *x = context->inputs[0];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    prn_set_output(context, 0, params->dtype == PRN_ABSENT ? x->dtype : (prony_dtype)params->dtype, &x->shape);
    return PRONY_OK;
}

static void draw_bernoulli(void *argument, int64_t begin, int64_t end)
{
    const draw_job *job = argument;
    for (int64_t i = begin; i < end; i++) {
        const double p = prn_get_f64(job->x->data, job->x->dtype, i);
        prn_put_f64(job->y->data, job->y->dtype, i, prn_random_uniform(job->key, (uint64_t)i, 53) < p ? 1.0 : 0.0);
    }
}

static prony_status run_bernoulli(const prony_context *context)
{
    draw_job job = {.x = context->inputs[0], .y = context->outputs[0], .key = random_ops_key_of(context)};
    prn_parallel_range(context->threads, prony_shape_numel(&job.y->shape), GRAIN, draw_bernoulli, &job);
    return PRONY_OK;
}

static prony_status cost_bernoulli(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 1, 0, 0);
}

/* ---- Multinomial: unnormalised log-probabilities [batch, classes] to [batch, sample_size] class numbers */

static prony_status check_multinomial(const prony_context *context)
{
    const int64_t samples = ((const random_params *)context->params)->sample_size;
    if (samples < 0)
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'sample_size' is %lld", (long long)samples);
    return random_ops_check_dtype(context, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64));
}

static prony_status infer_multinomial(const prony_context *context)
{
    const random_params *params = context->params;
    const prony_value *x = context->inputs[0];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 2, 2));
    if (x->shape.dim[1] == 0) return prony_fail(context, PRONY_SHAPE_MISMATCH, "there are 0 classes to choose from");
    const prony_shape shape = prn_shape_make(2, (const int64_t[]){x->shape.dim[0], params->sample_size});
    prn_set_output(context, 0, params->dtype == PRN_ABSENT ? PRONY_INT32 : (prony_dtype)params->dtype, &shape);
    return PRONY_OK;
}

/* The first class whose cumulated probability exceeds the draw; the last possible one where rounding leaves none. */
static int64_t random_ops_choose(const draw_job *job, int64_t row, int64_t classes, double most, double drawn)
{
    double sum = 0.0;
    int64_t chosen = 0;
    for (int64_t c = 0; c < classes && !prn_cancelled_at(c); c++) {
        const double weight = exp(prn_get_f64(job->x->data, job->x->dtype, row * classes + c) - most);
        if (weight > 0.0) chosen = c;
        sum += weight;
        if (sum > drawn) break;
    }
    return chosen;
}

static void draw_rows(void *argument, int64_t begin, int64_t end)
{
    const draw_job *job = argument;
    const int64_t classes = job->x->shape.dim[1], samples = job->y->shape.dim[1];
    for (int64_t row = begin; row < end; row++) {
        double most = -INFINITY, total = 0.0;
        for (int64_t c = 0; c < classes && !prn_cancelled_at(c); c++)
            most = fmax(most, prn_get_f64(job->x->data, job->x->dtype, row * classes + c));
        most = fmax(most, -DBL_MAX);
        for (int64_t c = 0; c < classes && !prn_cancelled_at(c); c++)
            total += exp(prn_get_f64(job->x->data, job->x->dtype, row * classes + c) - most);
        for (int64_t i = row * samples; i < (row + 1) * samples; i++) {
            if (classes > 64 ? prn_cancelled() : prn_cancelled_at(i)) return;
            const double drawn = total * prn_random_uniform(job->key, (uint64_t)i, 53);
            prn_put_i64(job->y->data, job->y->dtype, i, random_ops_choose(job, row, classes, most, drawn));
        }
    }
}

static prony_status run_multinomial(const prony_context *context)
{
    draw_job job = {.x = context->inputs[0], .y = context->outputs[0], .key = random_ops_key_of(context)};
    prn_parallel_range(context->threads, job.x->shape.dim[0], 1, draw_rows, &job);
    return PRONY_OK;
}

static prony_status cost_multinomial(const prony_context *context, prony_cost *cost)
{
    const prony_value *x = context->inputs[0];
    const uint64_t inputs = (uint64_t)prony_shape_numel(&x->shape), samples = prn_output_elements(context);
    prn_cost_fact(cost, "input_elements", (int64_t)inputs);
    prn_cost_fact(cost, "output_elements", (int64_t)samples);
    prn_cost_fact(cost, "axis_length", x->shape.dim[1]);
    PRN_TRY(prn_cost_elementwise(context, cost, inputs, 4, 1));
    return prn_cost_elementwise(context, cost, samples, 2 * (uint64_t)x->shape.dim[1], 0);
}

#define SEED PRN_FLOAT(random_params, seed, NAN)
#define DTYPE PRN_INT(random_params, dtype, PRN_ABSENT)
#define UNIFORM PRN_FLOAT(random_params, low, 0.0f), PRN_FLOAT(random_params, high, 1.0f)
#define NORMAL PRN_FLOAT(random_params, mean, 0.0f), PRN_FLOAT(random_params, scale, 1.0f)

static const prn_param uniform_attributes[] = {UNIFORM, SEED, DTYPE, PRN_INTS_REQUIRED(random_params, shape), {0}};
static const prn_param normal_attributes[] = {NORMAL, SEED, DTYPE, PRN_INTS_REQUIRED(random_params, shape), {0}};
static const prn_param uniform_like_attributes[] = {UNIFORM, SEED, DTYPE, {0}};
static const prn_param normal_like_attributes[] = {NORMAL, SEED, DTYPE, {0}};
static const prn_param bernoulli_attributes[] = {SEED, DTYPE, {0}};
static const prn_param multinomial_attributes[] = {SEED, DTYPE, PRN_INT(random_params, sample_size, 1), {0}};

static const prn_kernel random_uniform_kernels[] = {
    {.name = "random_uniform_reference", .backend = "reference", .run = run_uniform}, {0}};
static const prn_kernel random_normal_kernels[] = {
    {.name = "random_normal_reference", .backend = "reference", .run = run_normal}, {0}};
static const prn_kernel random_uniform_like_kernels[] = {
    {.name = "random_uniform_like_reference", .backend = "reference", .run = run_uniform}, {0}};
static const prn_kernel random_normal_like_kernels[] = {
    {.name = "random_normal_like_reference", .backend = "reference", .run = run_normal}, {0}};
static const prn_kernel bernoulli_kernels[] = {
    {.name = "bernoulli_reference", .backend = "reference", .run = run_bernoulli}, {0}};
static const prn_kernel multinomial_kernels[] = {
    {.name = "multinomial_reference", .backend = "reference", .run = run_multinomial}, {0}};

#define DRAW_TEXT "2 n (scale and shift; the drawing itself counts nothing)"

// clang-format off
const prn_op prn_ops_random_ops[] = {
    {.name = "RandomUniform", .since_opset = 1, .flags = PRN_OP_ONCE_PER_RUN, .non_weight_inputs = 1,
     .params = uniform_attributes, .params_bytes = sizeof(random_params), .check = check_float,
     .infer = infer_shape, .cost = cost_draw, .cost_text = DRAW_TEXT, .kernels = random_uniform_kernels},
    {.name = "RandomNormal", .since_opset = 1, .flags = PRN_OP_ONCE_PER_RUN, .non_weight_inputs = 1,
     .params = normal_attributes, .params_bytes = sizeof(random_params), .check = check_float,
     .infer = infer_shape, .cost = cost_draw, .cost_text = DRAW_TEXT, .kernels = random_normal_kernels},
    {.name = "RandomUniformLike", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_ONCE_PER_RUN | PRN_OP_SHAPE_ONLY,
     .non_weight_inputs = 1,
     .params = uniform_like_attributes, .params_bytes = sizeof(random_params), .check = check_float,
     .infer = infer_like, .cost = cost_draw, .cost_text = DRAW_TEXT, .kernels = random_uniform_like_kernels},
    {.name = "RandomNormalLike", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_ONCE_PER_RUN | PRN_OP_SHAPE_ONLY,
     .non_weight_inputs = 1,
     .params = normal_like_attributes, .params_bytes = sizeof(random_params), .check = check_float,
     .infer = infer_like, .cost = cost_draw, .cost_text = DRAW_TEXT, .kernels = random_normal_like_kernels},
    {.name = "Bernoulli", .since_opset = 15, .inputs = {1, 1}, .flags = PRN_OP_ONCE_PER_RUN, .non_weight_inputs = 1,
     .params = bernoulli_attributes, .params_bytes = sizeof(random_params), .check = check_bernoulli,
     .infer = infer_bernoulli, .cost = cost_bernoulli,
     .cost_text = "n (compare; the drawing itself counts nothing)", .kernels = bernoulli_kernels},
    {.name = "Multinomial", .since_opset = 7, .inputs = {1, 1}, .flags = PRN_OP_ONCE_PER_RUN, .non_weight_inputs = 1,
     .params = multinomial_attributes, .params_bytes = sizeof(random_params), .check = check_multinomial,
     .infer = infer_multinomial, .cost = cost_multinomial,
     .cost_text = "4 N (max, sub, exp, sum over the input's N elements), + 2 C per sample; special N",
     .kernels = multinomial_kernels},
    {0}};
// clang-format on
