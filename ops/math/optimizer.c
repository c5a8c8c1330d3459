/* ai.onnx.preview.training Adagrad, Adam and Momentum: one step of a gradient method on n tensors at once.
 *
 *   inputs   R, T, X_1 … X_n, G_1 … G_n, then the n tensors of each state
 *   outputs  X_1' … X_n', then the n tensors of each state, new
 *
 * R is the learning rate, T counts the steps made. The gradient is G + norm_coefficient X everywhere:
 *
 *   Adagrad   H' = H + G^2                X' = X - R / (1 + T decay_factor) G / (sqrt(H') + epsilon)
 *   Adam      V' = alpha V + (1 - alpha) G            H' = beta H + (1 - beta) G^2
 *             X' = (1 - norm_coefficient_post) (X - r V' / (sqrt(H') + epsilon)),
 *             r = R sqrt(1 - beta^T) / (1 - alpha^T), R for T = 0
 *   Momentum  V' = alpha V + b G, b = beta, 1 for T = 0
 *             X' = X - R V', or with mode nesterov X - R (G + alpha V') */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

enum { RATE, COUNT, FIRST, MOST_STATES = 2 };

typedef struct optimizer_params {
    float alpha, beta, decay_factor, epsilon, norm_coefficient, norm_coefficient_post;
    const char *mode;
} optimizer_params;

/* The inputs of one step beside the tensors. */
typedef struct step {
    double rate, alpha, beta, epsilon, norm, kept; /* kept: 1 - norm_coefficient_post */
    double gain;                                   /* Momentum: of the gradient */
    bool nesterov;
} step;

typedef struct optimizer_kind {
    size_t states;
    uint64_t flops, special; /* per element */
    step (*prepare)(const optimizer_params *params, double rate, int64_t count);
    void (*update)(const step *step, double *x, const double *g, double *const state[MOST_STATES], int64_t n);
} optimizer_kind;

static const optimizer_kind *optimizer_kind_of(const prony_context *context)
{
    return prn_variant(context);
}

/* ---- the three methods */

static step common(const optimizer_params *params, double rate)
{
    return (step){.rate = rate,
                  .alpha = (double)params->alpha,
                  .beta = (double)params->beta,
                  .epsilon = (double)params->epsilon,
                  .norm = (double)params->norm_coefficient,
                  .kept = 1.0 - (double)params->norm_coefficient_post,
                  .nesterov = params->mode && strcmp(params->mode, "nesterov") == 0};
}

static step adagrad_prepare(const optimizer_params *params, double rate, int64_t count)
{
    return common(params, rate / (1.0 + (double)count * (double)params->decay_factor));
}

static void adagrad_update(const step *s, double *x, const double *g, double *const state[MOST_STATES], int64_t n)
{
    double *h = state[0];
    for (int64_t i = 0; i < n; i++) {
        const double gradient = s->norm * x[i] + g[i];
        h[i] += gradient * gradient;
        x[i] -= s->rate * gradient / (sqrt(h[i]) + s->epsilon);
    }
}

static step adam_prepare(const optimizer_params *params, double rate, int64_t count)
{
    const double alpha = (double)params->alpha, beta = (double)params->beta, t = (double)count;
    return common(params, count > 0 ? rate * sqrt(1.0 - pow(beta, t)) / (1.0 - pow(alpha, t)) : rate);
}

static void adam_update(const step *s, double *x, const double *g, double *const state[MOST_STATES], int64_t n)
{
    double *v = state[0], *h = state[1];
    for (int64_t i = 0; i < n; i++) {
        const double gradient = s->norm * x[i] + g[i];
        v[i] = s->alpha * v[i] + (1.0 - s->alpha) * gradient;
        h[i] = s->beta * h[i] + (1.0 - s->beta) * gradient * gradient;
        x[i] = s->kept * (x[i] - s->rate * v[i] / (sqrt(h[i]) + s->epsilon));
    }
}

static step momentum_prepare(const optimizer_params *params, double rate, int64_t count)
{
    step made = common(params, rate);
    made.gain = count > 0 ? made.beta : 1.0;
    return made;
}

static void momentum_update(const step *s, double *x, const double *g, double *const state[MOST_STATES], int64_t n)
{
    double *v = state[0];
    for (int64_t i = 0; i < n; i++) {
        const double gradient = s->norm * x[i] + g[i];
        v[i] = s->alpha * v[i] + s->gain * gradient;
        x[i] -= s->rate * (s->nesterov ? gradient + s->alpha * v[i] : v[i]);
    }
}

/* ---- shapes and cost */

static prony_status check_momentum(const prony_context *context)
{
    const char *mode = ((const optimizer_params *)context->params)->mode;
    if (strcmp(mode, "standard") == 0 || strcmp(mode, "nesterov") == 0) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'mode' is '%s', wanted standard or nesterov", mode);
}

/* Tensors optimized. */
static size_t optimizer_tensors_of(const prony_context *context)
{
    return (context->input_count - FIRST) / (2 + optimizer_kind_of(context)->states);
}

/* Inputs are R, T, then n tensors each of values, gradients and states; every output has its tensor's shape and
 * type. */
static prony_status optimizer_infer(const prony_context *context)
{
    const size_t each = 2 + optimizer_kind_of(context)->states, n = optimizer_tensors_of(context);
    if (n == 0 || context->input_count != FIRST + n * each || context->output_count > n * (each - 1))
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "%zu inputs and %zu outputs, wanted 2 and then %zu per tensor, and %zu per tensor",
                          context->input_count, context->output_count, each, each - 1);
    for (size_t i = 0; i < context->input_count; i++) {
        const prony_value *value = context->inputs[i], *x = i < FIRST ? NULL : context->inputs[FIRST + (i - FIRST) % n];
        char text[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
        if (!value) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
        PRN_TRY(
            prn_check_type(context, i, i == COUNT ? PRN_TYPE(PRONY_INT64) : PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT64)));
        if (!x && prony_shape_numel(&value->shape) != 1)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted one element", i,
                              prn_value_text(value, text));
        if (x && (!prn_shape_equal(&x->shape, &value->shape) || x->dtype != value->dtype))
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %s as what is optimized", i,
                              prn_value_text(value, text), prn_value_text(x, wanted));
    }
    for (size_t i = 0; i < context->output_count; i++) {
        const prony_value *x = context->inputs[FIRST + i % n];
        prn_set_output(context, i, x->dtype, &x->shape);
    }
    return PRONY_OK;
}

static prony_status optimizer_cost(const prony_context *context, prony_cost *out)
{
    const optimizer_kind *kind = optimizer_kind_of(context);
    uint64_t count = 0;
    for (size_t i = 0; i < optimizer_tensors_of(context); i++) {
        if (!prn_add_u64(&count, count, (uint64_t)prony_shape_numel(&context->inputs[FIRST + i]->shape)))
            return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    }
    return prn_cost_elementwise(context, out, count, kind->flops, kind->special);
}

/* ---- kernel */

typedef struct tensor_job {
    const optimizer_kind *kind;
    step step;
    prony_dtype dtype;
    const void *x, *g, *state[MOST_STATES];
    void *new_x, *new_state[MOST_STATES]; /* NULL: not wanted */
} tensor_job;

static void update_range(void *argument, int64_t begin, int64_t end)
{
    const tensor_job *job = argument;
    double x[PRN_BLOCK], g[PRN_BLOCK], states[MOST_STATES][PRN_BLOCK];
    double *const state[MOST_STATES] = {states[0], states[1]};
    for (int64_t first = begin, n; first < end && !prn_cancelled(); first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        prn_load_f64(x, job->x, job->dtype, first, n);
        prn_load_f64(g, job->g, job->dtype, first, n);
        for (size_t k = 0; k < job->kind->states; k++) prn_load_f64(state[k], job->state[k], job->dtype, first, n);
        job->kind->update(&job->step, x, g, state, n);
        if (job->new_x) prn_store_f64(job->new_x, job->dtype, first, x, n);
        for (size_t k = 0; k < job->kind->states; k++) {
            if (job->new_state[k]) prn_store_f64(job->new_state[k], job->dtype, first, state[k], n);
        }
    }
}

static void *data_of(const prony_value *value)
{
    return value ? value->data : NULL;
}

static prony_status optimizer_run(const prony_context *context)
{
    const optimizer_kind *kind = optimizer_kind_of(context);
    const size_t n = optimizer_tensors_of(context);
    const double rate = prn_get_f64(context->inputs[RATE]->data, context->inputs[RATE]->dtype, 0);
    const int64_t count = ((const int64_t *)context->inputs[COUNT]->data)[0];
    for (size_t i = 0; i < n; i++) {
        const prony_value *x = context->inputs[FIRST + i];
        tensor_job job = {
            .kind = kind, .step = kind->prepare(context->params, rate, count), .dtype = x->dtype, .x = x->data};
        job.g = context->inputs[FIRST + n + i]->data;
        job.new_x = data_of(prn_output(context, i));
        for (size_t k = 0; k < kind->states; k++) {
            job.state[k] = context->inputs[FIRST + (2 + k) * n + i]->data;
            job.new_state[k] = data_of(prn_output(context, (1 + k) * n + i));
        }
        prn_parallel_items(context->threads, prony_shape_numel(&x->shape), 8 * (int64_t)prn_value_bytes(x),
                           update_range, &job);
    }
    return PRONY_OK;
}

/* ---- rows */

static const prn_param adagrad_rows[] = {PRN_FLOAT(optimizer_params, decay_factor, 0.0f),
                                         PRN_FLOAT(optimizer_params, epsilon, 1e-6f),
                                         PRN_FLOAT(optimizer_params, norm_coefficient, 0.0f),
                                         {0}};
static const prn_param adam_rows[] = {PRN_FLOAT(optimizer_params, alpha, 0.9f),
                                      PRN_FLOAT(optimizer_params, beta, 0.999f),
                                      PRN_FLOAT(optimizer_params, epsilon, 1e-6f),
                                      PRN_FLOAT(optimizer_params, norm_coefficient, 0.0f),
                                      PRN_FLOAT(optimizer_params, norm_coefficient_post, 0.0f),
                                      {0}};
#define REQUIRED_FLOAT(field) {#field, PRN_PARAM_FLOAT, offsetof(optimizer_params, field), true, 0, 0, NULL}
static const prn_param momentum_rows[] = {
    REQUIRED_FLOAT(alpha),
    REQUIRED_FLOAT(beta),
    REQUIRED_FLOAT(norm_coefficient),
    {"mode", PRN_PARAM_STRING, offsetof(optimizer_params, mode), true, 0, 0, NULL},
    {0}};

#define DOMAIN "ai.onnx.preview.training"
static const prn_kernel adagrad_kernels[] = {
    {.name = "adagrad_reference", .backend = "reference", .run = optimizer_run}, {0}};
static const prn_kernel adam_kernels[] = {{.name = "adam_reference", .backend = "reference", .run = optimizer_run},
                                          {0}};
static const prn_kernel momentum_kernels[] = {
    {.name = "momentum_reference", .backend = "reference", .run = optimizer_run}, {0}};

// clang-format off
const prn_op prn_ops_optimizer[] = {
    {.name = "Adagrad", .domain = DOMAIN, .since_opset = 1, .inputs = {5, -1}, .outputs = {1, -1}, .non_weight_inputs = 3,
     .params = adagrad_rows, .params_bytes = sizeof(optimizer_params),
     .variant = &(const optimizer_kind){1, 9, 2, adagrad_prepare, adagrad_update},
     .infer = optimizer_infer, .cost = optimizer_cost, .cost_text = "9 per element optimized; special 2", .kernels = adagrad_kernels},
    {.name = "Adam", .domain = DOMAIN, .since_opset = 1, .inputs = {6, -1}, .outputs = {1, -1}, .non_weight_inputs = 3,
     .params = adam_rows, .params_bytes = sizeof(optimizer_params),
     .variant = &(const optimizer_kind){2, 15, 2, adam_prepare, adam_update},
     .infer = optimizer_infer, .cost = optimizer_cost, .cost_text = "15 per element optimized; special 2", .kernels = adam_kernels},
    {.name = "Momentum", .domain = DOMAIN, .since_opset = 1, .inputs = {5, -1}, .outputs = {1, -1}, .non_weight_inputs = 3,
     .params = momentum_rows, .params_bytes = sizeof(optimizer_params), .check = check_momentum,
     .variant = &(const optimizer_kind){1, 7, 0, momentum_prepare, momentum_update},
     .infer = optimizer_infer, .cost = optimizer_cost, .cost_text = "7 per element optimized", .kernels = momentum_kernels},
    {0}};
// clang-format on
