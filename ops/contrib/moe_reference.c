/* com.microsoft MoE and QMoE token by token, in double. */
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/contrib/moe.h"
#include "ops/kernels/vector/number.h"

#include <math.h>

enum { MOST_TASKS = 64, LINE_BYTES = 64 };

typedef struct moe_reference {
    const prony_context *context;
    prn_moe m;
    char *space;
    size_t token_bytes;
    int64_t per_task;
} moe_reference;

static double moe_reference_weight_at(const prn_moe *m, int layer, int64_t expert, int64_t n, int64_t k,
                                      const prn_nbit_weights *codes)
{
    const prn_moe_layer *l = &m->layer[layer];
    if (!m->bits) return prn_get_f64(l->weight->data, l->weight->dtype, (expert * l->n + n) * l->k + k);
    const int64_t block = k / codes->block;
    return ((double)prn_nbit_code(codes, n, k) - prn_nbit_zero(codes, n, block)) * prn_nbit_scale(codes, n, block);
}

/* y = W x + b */
static void apply_layer(const prn_moe *m, int layer, int64_t expert, const double *x, double *y)
{
    const prn_moe_layer *l = &m->layer[layer];
    const prn_nbit_weights codes = m->bits ? prn_moe_codes(m, layer, expert) : (prn_nbit_weights){0};
    for (int64_t n = 0; n < l->n && !prn_cancelled(); n++) {
        double sum = l->bias ? prn_get_f64(l->bias->data, l->bias->dtype, expert * l->n + n) : 0.0;
        for (int64_t k = 0; k < l->k && !prn_cancelled_at(k); k++)
            sum += moe_reference_weight_at(m, layer, expert, n, k, &codes) * x[k];
        y[n] = sum;
    }
}

static double activated(prn_moe_activation activation, double x)
{
    switch (activation) {
    case PRN_MOE_RELU:
        return x < 0.0 ? 0.0 : x;
    case PRN_MOE_GELU:
        return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case PRN_MOE_SILU:
        return x / (1.0 + exp(-x));
    default:
        return x;
    }
}

static double swiglu(const prn_moe_params *p, double gate, double value)
{
    const double limit = (double)p->swiglu_limit;
    gate = gate > limit ? limit : gate;
    value = value > limit ? limit : value < -limit ? -limit : value;
    return gate / (1.0 + exp(-(double)p->activation_alpha * gate)) * (value + (double)p->activation_beta);
}

/* From what the first layer (and the third) made, in place. */
static void activate(const prn_moe *m, double *h, const double *third)
{
    for (int64_t i = 0; i < m->inner; i++) {
        if (m->activation != PRN_MOE_SWIGLU)
            h[i] = activated(m->activation, h[i]) * (third ? third[i] : 1.0);
        else if (m->interleaved && m->joined)
            h[i] = swiglu(m->params, h[2 * i], h[2 * i + 1]);
        else
            h[i] = swiglu(m->params, h[i], third ? third[i] : h[m->inner + i]);
    }
}

static void reference_tokens(void *argument, int64_t task)
{
    const moe_reference *job = argument;
    const prn_moe *m = &job->m;
    double *x = (double *)(void *)(job->space + (size_t)task * job->token_bytes), *h = x + m->width,
           *third = h + m->layer[PRN_MOE_FC1].n;
    double *y = third + m->inner, *sum = y + m->width;
    float *weight = (float *)(sum + m->width);
    int32_t *expert = (int32_t *)(weight + m->top);
    const prony_value *out = job->context->outputs[0];
    for (int64_t t = task * job->per_task; t < m->tokens && t < (task + 1) * job->per_task && !prn_cancelled(); t++) {
        prn_load_f64(x, m->x->data, m->x->dtype, t * m->width, m->width);
        prn_moe_route(m, t, expert, weight);
        for (int64_t c = 0; c < m->width; c++) sum[c] = 0.0;
        for (int64_t k = 0; k < m->top; k++) {
            apply_layer(m, PRN_MOE_FC1, expert[k], x, h);
            if (m->layer[PRN_MOE_FC3].weight) apply_layer(m, PRN_MOE_FC3, expert[k], x, third);
            activate(m, h, m->layer[PRN_MOE_FC3].weight ? third : NULL);
            apply_layer(m, PRN_MOE_FC2, expert[k], h, y);
            for (int64_t c = 0; c < m->width; c++) sum[c] += (double)weight[k] * y[c];
        }
        prn_store_f64(out->data, out->dtype, t * m->width, sum, m->width);
    }
}

static prony_status moe_reference_of(const prony_context *context, moe_reference *job, int64_t *tasks)
{
    *job = (moe_reference){.context = context};
    PRN_TRY(prn_moe_read(context, &job->m));
    const prn_moe *m = &job->m;
    const uint64_t doubles = 3 * (uint64_t)m->width + (uint64_t)m->layer[PRN_MOE_FC1].n + (uint64_t)m->inner;
    if (doubles > SIZE_MAX / 64 - (uint64_t)m->top || (uint64_t)m->top > SIZE_MAX / 1024)
        return prony_fail(context, PRONY_LIMIT, "the experts do not fit in memory");
    job->token_bytes =
        ((size_t)doubles * sizeof(double) + (size_t)m->top * (sizeof(float) + sizeof(int32_t)) + LINE_BYTES - 1) /
        LINE_BYTES * LINE_BYTES;
    job->per_task = m->tokens / MOST_TASKS + 1;
    *tasks = prn_ceil_div(m->tokens, job->per_task);
    return PRONY_OK;
}

prony_status prn_moe_reference_prepare(const prony_context *context, prn_prepared *out)
{
    moe_reference job;
    int64_t tasks = 0;
    PRN_TRY(moe_reference_of(context, &job, &tasks));
    if (__builtin_mul_overflow(job.token_bytes, (size_t)tasks, &out->scratch_bytes))
        return prony_fail(context, PRONY_LIMIT, "the experts do not fit in memory");
    return prn_prepared_keep(context, &job, sizeof job, out);
}

prony_status prn_moe_reference_run(const prony_context *context)
{
    moe_reference job = *(const moe_reference *)context->state;
    const int64_t tasks = prn_ceil_div(job.m.tokens, job.per_task);
    job.context = context;
    job.m = prn_moe_with_operands(context, &job.m);
    job.space = context->scratch;
    if (tasks > 0) prn_parallel_tasks(context->threads, tasks, reference_tokens, &job);
    return PRONY_OK;
}
