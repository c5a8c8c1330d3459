/* Layers that carry a state from step to step instead of a cache that grows: LinearAttention, whose state is a matrix
 * per head, and CausalConvWithState, whose state is the last inputs of a depthwise convolution.
 *
 * A head of LinearAttention is one task, which keeps its state in scratch as doubles; a channel of the convolution is
 * one item. Invariant: the steps of a sequence run in order. */
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"

#include <string.h>

/* ---- LinearAttention: node */

enum { QUERY, KEY, VALUE, PAST_STATE, DECAY, BETA, ERASE };
enum { OUTPUT, PRESENT_STATE };

typedef struct linear_params {
    int64_t q_num_heads, kv_num_heads, chunk_size;
    float scale;
    const char *update_rule;
} linear_params;

typedef struct linear {
    const prony_context *context;
    int64_t batch, steps, q_heads, kv_heads, depth, width; /* B, T, Hq, Hk, D, E */
    bool gated, delta;
    double scale;
    double *space; /* per (batch, head of K and V): state [D, E], then a row of E */
    int64_t space_elements;
} linear;

static prony_status linear_attention_mismatch(const prony_context *context, size_t input)
{
    char text[PRN_SHAPE_TEXT_BYTES], first[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not fit %s", input,
                      prn_value_text(context->inputs[input], text), prn_value_text(context->inputs[0], first));
}

static prony_status check_linear(const prony_context *context)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    const linear_params *params = context->params;
    bool known = false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        known = known || strcmp(params->update_rule, rules[i]) == 0;
    if (!known)
        return prony_fail(context, PRONY_UNSUPPORTED, "update_rule '%.40s' is not supported", params->update_rule);
    if (params->kv_num_heads > 0 && params->q_num_heads > 0 && params->q_num_heads % params->kv_num_heads == 0)
        return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "q_num_heads %lld is not a multiple of kv_num_heads %lld",
                      (long long)params->q_num_heads, (long long)params->kv_num_heads);
}

/* An input [B, T, …] of which one step has `one` or `other` elements. */
static prony_status check_steps(const prony_context *context, const linear *at, size_t input, int64_t one,
                                int64_t other)
{
    const prony_value *value = prn_input(context, input);
    if (!value) return PRONY_OK;
    const prony_shape *shape = &value->shape;
    if (shape->rank == 3 && shape->dim[0] == at->batch && shape->dim[1] == at->steps &&
        (shape->dim[2] == one || shape->dim[2] == other))
        return PRONY_OK;
    return linear_attention_mismatch(context, input);
}

static prony_status check_presence(const prony_context *context, size_t input, bool wanted, bool allowed)
{
    const bool there = prn_input(context, input) != NULL;
    if (there ? allowed : !wanted) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "update_rule '%s' %s input %zu",
                      ((const linear_params *)context->params)->update_rule, there ? "does not allow" : "needs", input);
}

/* Sizes and update rule of LinearAttention; each operand is there if its rule needs it, with one step per row. */
static prony_status read_linear(const prony_context *context, linear *at)
{
    const linear_params *params = context->params;
    const prony_shape *q = &context->inputs[QUERY]->shape, *v = &context->inputs[VALUE]->shape;
    *at = (linear){.context = context,
                   .batch = q->dim[0],
                   .steps = q->dim[1],
                   .q_heads = params->q_num_heads,
                   .kv_heads = params->kv_num_heads,
                   .gated = strncmp(params->update_rule, "gated", 5) == 0,
                   .delta = strstr(params->update_rule, "delta") != NULL};
    if (q->dim[2] % at->q_heads != 0) return linear_attention_mismatch(context, QUERY);
    if (v->dim[2] % at->kv_heads != 0) return linear_attention_mismatch(context, VALUE);
    at->depth = q->dim[2] / at->q_heads;
    at->width = v->dim[2] / at->kv_heads;
    const int64_t keys = at->kv_heads * at->depth;
    PRN_TRY(check_presence(context, DECAY, at->gated, at->gated));
    PRN_TRY(check_presence(context, BETA, at->delta, at->delta));
    PRN_TRY(check_presence(context, ERASE, false, at->delta));
    PRN_TRY(check_steps(context, at, KEY, keys, keys));
    PRN_TRY(check_steps(context, at, VALUE, v->dim[2], v->dim[2]));
    PRN_TRY(check_steps(context, at, DECAY, at->kv_heads, keys));
    PRN_TRY(check_steps(context, at, BETA, at->kv_heads, 1));
    PRN_TRY(check_steps(context, at, ERASE, keys, keys));
    const prony_value *past = prn_input(context, PAST_STATE);
    const prony_shape state = {4, {at->batch, at->kv_heads, at->depth, at->width}};
    if (past && !prn_shape_equal(&past->shape, &state)) return linear_attention_mismatch(context, PAST_STATE);
    at->scale = params->scale != 0.0f ? (double)params->scale : at->depth ? 1.0 / sqrt((double)at->depth) : 1.0;
    at->space_elements = at->depth * at->width + at->width;
    return PRONY_OK;
}

/* The output has a row per step with all query heads; the state keeps the type of the past state, or of the query. */
static prony_status infer_linear(const prony_context *context)
{
    linear at;
    PRN_TRY(prn_check_type(context, QUERY, PRN_TYPES_FLOAT));
    for (size_t i = QUERY; i <= ERASE; i++) {
        const prony_value *in = prn_input(context, i);
        if (i == PAST_STATE) {
            PRN_TRY(prn_check_type(context, i, PRN_TYPES_FLOAT));
            continue;
        }
        PRN_TRY(prn_check_type(context, i, PRN_TYPE(context->inputs[QUERY]->dtype)));
        if (in) PRN_TRY(prn_check_rank(context, i, 3, 3));
    }
    PRN_TRY(read_linear(context, &at));
    const prony_value *past = prn_input(context, PAST_STATE);
    int64_t packed;
    if (__builtin_mul_overflow(at.q_heads, at.width, &packed))
        return prony_fail(context, PRONY_LIMIT, "the output is too large");
    const prony_shape y = {3, {at.batch, at.steps, packed}};
    const prony_shape state = {4, {at.batch, at.kv_heads, at.depth, at.width}};
    if (prony_shape_numel(&y) < 0 || prony_shape_numel(&state) < 0)
        return prony_fail(context, PRONY_LIMIT, "an output is too large");
    prn_set_output(context, OUTPUT, context->inputs[QUERY]->dtype, &y);
    prn_set_output(context, PRESENT_STATE, (past ? past : context->inputs[QUERY])->dtype, &state);
    return PRONY_OK;
}

/* Per step: the state is read once per query head and written once per key head; decay scales it, the delta rule reads
 * it once more. */
static prony_status cost_linear(const prony_context *context, prony_cost *cost)
{
    linear at;
    PRN_TRY(read_linear(context, &at));
    const uint64_t steps = (uint64_t)(at.batch * at.steps), state = (uint64_t)at.depth * (uint64_t)at.width;
    const uint64_t heads = (uint64_t)at.q_heads + (uint64_t)at.kv_heads * (1 + (uint64_t)at.delta);
    uint64_t macs, scaled;
    if (!prn_mul_u64(&macs, steps, state) || !prn_mul_u64(&scaled, macs, at.gated ? (uint64_t)at.kv_heads : 0) ||
        !prn_mul_u64(&macs, macs, heads))
        return prony_fail(context, PRONY_LIMIT, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    PRN_TRY(prn_cost_elementwise(context, cost, scaled, 1, 0));
    const prony_value *decay = prn_input(context, DECAY);
    if (decay) PRN_TRY(prn_cost_elementwise(context, cost, (uint64_t)prony_shape_numel(&decay->shape), 1, 1));
    const uint64_t values = steps * (uint64_t)(at.kv_heads * at.width);
    PRN_TRY(prn_cost_elementwise(context, cost, at.delta ? values : 0, 2, 0));
    return prn_cost_elementwise(context, cost, prn_output_elements(context), 1, 0);
}

/* ---- LinearAttention: kernel */

static double linear_attention_entry(const prony_value *value, int64_t at)
{
    return prn_get_f64(value->data, value->dtype, at);
}

static void decay_state(const linear *at, double *state, int64_t step, int64_t head)
{
    const prony_value *decay = at->context->inputs[DECAY];
    const int64_t columns = decay->shape.dim[2];
    for (int64_t d = 0; d < at->depth; d++) {
        const int64_t place = columns == at->kv_heads ? head : head * at->depth + d;
        const double factor = exp(linear_attention_entry(decay, step * columns + place));
        for (int64_t e = 0; e < at->width; e++) state[d * at->width + e] *= factor;
    }
}

/* The value that is written: with the delta rule, beta times what the state does not hold yet. */
static void written_value(const linear *at, const double *state, double *value, int64_t step, int64_t head)
{
    const prony_context *context = at->context;
    const prony_value *erase = prn_input(context, ERASE), *beta = prn_input(context, BETA);
    const int64_t key = (step * at->kv_heads + head) * at->depth;
    for (int64_t e = 0; e < at->width; e++)
        value[e] = linear_attention_entry(context->inputs[VALUE], (step * at->kv_heads + head) * at->width + e);
    if (!at->delta) return;
    for (int64_t d = 0; d < at->depth; d++) {
        const double k = linear_attention_entry(context->inputs[KEY], key + d) *
                         (erase ? linear_attention_entry(erase, key + d) : 1.0);
        for (int64_t e = 0; e < at->width; e++) value[e] -= k * state[d * at->width + e];
    }
    const int64_t columns = beta->shape.dim[2];
    const double factor = linear_attention_entry(beta, step * columns + (columns == 1 ? 0 : head));
    for (int64_t e = 0; e < at->width; e++) value[e] *= factor;
}

/* One task: all steps of one key head of one batch entry, in float64. The state belongs to the task, and steps follow
 * one another. */
static void run_head(void *argument, int64_t task)
{
    const linear *at = argument;
    const prony_context *context = at->context;
    const int64_t b = task / at->kv_heads, head = task % at->kv_heads, group = at->q_heads / at->kv_heads;
    const int64_t cells = at->depth * at->width;
    double *state = at->space + task * at->space_elements, *value = state + cells;
    const prony_value *past = prn_input(context, PAST_STATE), *key = context->inputs[KEY],
                      *query = context->inputs[QUERY];
    prony_value *y = prn_output(context, OUTPUT), *present = prn_output(context, PRESENT_STATE);
    for (int64_t i = 0; i < cells; i++) state[i] = past ? linear_attention_entry(past, task * cells + i) : 0.0;
    for (int64_t step = b * at->steps; step < (b + 1) * at->steps && !prn_cancelled(); step++) {
        if (at->gated) decay_state(at, state, step, head);
        written_value(at, state, value, step, head);
        for (int64_t d = 0; d < at->depth; d++) {
            const double k = linear_attention_entry(key, (step * at->kv_heads + head) * at->depth + d);
            for (int64_t e = 0; e < at->width; e++) state[d * at->width + e] += k * value[e];
        }
        for (int64_t h = head * group; h < (head + 1) * group && y; h++) {
            memset(value, 0, (size_t)at->width * sizeof *value);
            for (int64_t d = 0; d < at->depth; d++) {
                const double q = linear_attention_entry(query, (step * at->q_heads + h) * at->depth + d);
                for (int64_t e = 0; e < at->width; e++) value[e] += q * state[d * at->width + e];
            }
            for (int64_t e = 0; e < at->width; e++)
                prn_put_f64(y->data, y->dtype, (step * at->q_heads + h) * at->width + e, at->scale * value[e]);
        }
    }
    for (int64_t i = 0; i < cells && present; i++)
        prn_put_f64(present->data, present->dtype, task * cells + i, state[i]);
}

static prony_status prepare_linear(const prony_context *context, prn_prepared *out)
{
    linear at;
    uint64_t elements;
    PRN_TRY(read_linear(context, &at));
    if (!prn_mul_u64(&elements, (uint64_t)(at.batch * at.kv_heads), (uint64_t)at.space_elements) ||
        elements > SIZE_MAX / 16)
        return prony_fail(context, PRONY_LIMIT, "the state does not fit in memory");
    out->scratch_bytes = (size_t)elements * sizeof(double);
    return prn_prepared_keep(context, &at, sizeof at, out);
}

static prony_status run_linear(const prony_context *context)
{
    linear at = *(const linear *)context->state;
    at.context = context;
    at.space = context->scratch;
    if (at.space) prn_parallel_tasks(context->threads, at.batch * at.kv_heads, run_head, &at);
    return PRONY_OK;
}

/* ---- CausalConvWithState */

enum { SIGNAL, WEIGHT, BIAS, PAST_SIGNAL };
enum { FILTERED, PRESENT_SIGNAL };

typedef struct causal_params {
    const char *activation;
} causal_params;

typedef struct causal {
    const prony_value *signal, *weight, *bias, *past;
    prony_value *out, *present;
    int64_t channels, length, taps;
    bool silu;
} causal;

static prony_status check_causal(const prony_context *context)
{
    const char *name = ((const causal_params *)context->params)->activation;
    if (strcmp(name, "none") == 0 || strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "activation '%.40s' is not supported", name);
}

static prony_status infer_causal(const prony_context *context)
{
    const prony_shape *signal = &context->inputs[SIGNAL]->shape, *weight = &context->inputs[WEIGHT]->shape;
    const prony_value *bias = prn_input(context, BIAS), *past = prn_input(context, PAST_SIGNAL);
    PRN_TRY(prn_check_type(context, SIGNAL, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, SIGNAL, 3, 3));
    PRN_TRY(prn_check_rank(context, WEIGHT, 3, 3));
    for (size_t i = WEIGHT; i <= PAST_SIGNAL; i++)
        PRN_TRY(prn_check_type(context, i, PRN_TYPE(context->inputs[SIGNAL]->dtype)));
    if (weight->dim[0] != signal->dim[1] || weight->dim[1] != 1 || weight->dim[2] < 1)
        return linear_attention_mismatch(context, WEIGHT);
    const prony_shape state = {3, {signal->dim[0], signal->dim[1], weight->dim[2] - 1}};
    if (past && !prn_shape_equal(&past->shape, &state)) return linear_attention_mismatch(context, PAST_SIGNAL);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != signal->dim[1]))
        return linear_attention_mismatch(context, BIAS);
    if (prony_shape_numel(&state) < 0) return prony_fail(context, PRONY_LIMIT, "the state is too large");
    prn_set_output(context, FILTERED, context->inputs[SIGNAL]->dtype, signal);
    prn_set_output(context, PRESENT_SIGNAL, context->inputs[SIGNAL]->dtype, &state);
    return PRONY_OK;
}

static causal causal_of(const prony_context *context)
{
    return (causal){.signal = context->inputs[SIGNAL],
                    .weight = context->inputs[WEIGHT],
                    .bias = prn_input(context, BIAS),
                    .past = prn_input(context, PAST_SIGNAL),
                    .out = prn_output(context, FILTERED),
                    .present = prn_output(context, PRESENT_SIGNAL),
                    .channels = context->inputs[SIGNAL]->shape.dim[1],
                    .length = context->inputs[SIGNAL]->shape.dim[2],
                    .taps = context->inputs[WEIGHT]->shape.dim[2],
                    .silu = strcmp(((const causal_params *)context->params)->activation, "none") != 0};
}

static prony_status cost_causal(const prony_context *context, prony_cost *cost)
{
    const causal job = causal_of(context);
    const uint64_t n = (uint64_t)prony_shape_numel(&job.signal->shape);
    uint64_t macs;
    if (!prn_mul_u64(&macs, n, (uint64_t)job.taps))
        return prony_fail(context, PRONY_LIMIT, "the number of MACs does not fit 64 bits");
    prn_cost_fact(cost, "kernel_volume", job.taps);
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    return prn_cost_elementwise(context, cost, n, (job.bias ? 1u : 0u) + (job.silu ? 5u : 0u), job.silu ? 2 : 0);
}

/* Element `at` of the signal with the state before it. */
static double padded(const causal *job, int64_t row, int64_t at)
{
    const int64_t before = job->taps - 1;
    if (at >= before) return linear_attention_entry(job->signal, row * job->length + at - before);
    return job->past ? linear_attention_entry(job->past, row * before + at) : 0.0;
}

static void filter_rows(void *argument, int64_t begin, int64_t end)
{
    const causal *job = argument;
    for (int64_t row = begin; row < end; row++) {
        const int64_t channel = row % job->channels;
        for (int64_t i = 0; i < job->length && job->out; i++) {
            double sum = job->bias ? linear_attention_entry(job->bias, channel) : 0.0;
            for (int64_t k = 0; k < job->taps; k++)
                sum += linear_attention_entry(job->weight, channel * job->taps + k) * padded(job, row, i + k);
            prn_put_f64(job->out->data, job->out->dtype, row * job->length + i, sum);
            if (!job->silu) continue;
            sum = linear_attention_entry(job->out, row * job->length + i); /* as the output's type holds it */
            prn_put_f64(job->out->data, job->out->dtype, row * job->length + i, sum / (1.0 + exp(-sum)));
        }
        for (int64_t k = 0; k < job->taps - 1 && job->present; k++)
            prn_put_f64(job->present->data, job->present->dtype, row * (job->taps - 1) + k,
                        padded(job, row, job->length + k));
    }
}

static prony_status run_causal(const prony_context *context)
{
    causal job = causal_of(context);
    const int64_t rows = job.signal->shape.dim[0] * job.channels;
    prn_parallel_items(context->threads, rows, 8 * rows * job.length * job.taps, filter_rows, &job);
    return PRONY_OK;
}

/* ---- descriptors */

static const prn_param linear_attributes[] = {PRN_INT_REQUIRED(linear_params, q_num_heads),
                                              PRN_INT_REQUIRED(linear_params, kv_num_heads),
                                              PRN_INT(linear_params, chunk_size, 64),
                                              PRN_FLOAT(linear_params, scale, 0.0f),
                                              PRN_STRING(linear_params, update_rule, "gated_delta"),
                                              {0}};
static const prn_param causal_attributes[] = {PRN_STRING(causal_params, activation, "none"), {0}};

static const prn_kernel linear_kernels[] = {{.name = "linear_attention_reference",
                                             .backend = "reference",
                                             .prepare = prepare_linear,
                                             .run = run_linear,
                                             .release = prn_free},
                                            {0}};
static const prn_kernel causal_kernels[] = {
    {.name = "causal_conv_reference", .backend = "reference", .run = run_causal}, {0}};

// clang-format off
const prn_op prn_ops_linear_attention[] = {
    {.name = "LinearAttention", .since_opset = 27, .inputs = {3, 7}, .outputs = {1, 2}, .non_weight_inputs = 0x8,
     .params = linear_attributes, .params_bytes = sizeof(linear_params), .check = check_linear,
     .infer = infer_linear, .cost = cost_linear, .kernels = linear_kernels,
     .cost_text = "s steps, state of c cells: MACs M = s c (Hq + Hk), + s c Hk by the delta rule; FLOPs 2M + n, "
                  "with decay s c Hk + its elements, by the delta rule 2 per value; special the elements of decay"},
    {.name = "CausalConvWithState", .since_opset = 27, .inputs = {2, 4}, .outputs = {1, 2}, .non_weight_inputs = 0x8,
     .params = causal_attributes, .params_bytes = sizeof(causal_params), .check = check_causal,
     .infer = infer_causal, .cost = cost_causal, .kernels = causal_kernels,
     .cost_text = "MACs M = n K; FLOPs 2M, + n with bias, + 5 n with SiLU; special 2 n with SiLU"},
    {0}};
// clang-format on
