/* com.microsoft MoE and QMoE: the tokens of one expert after the other go through its layers as matrix products.
 *
 * Constant weights are packed once: numbers for the product core, codes as stored weights
 * (ops/kernels/gemm/lowbit_weights.h). Invariant: a token's result is summed in the order of the experts, on any
 * thread. */
#include "ops/contrib/moe.h"

#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/op.h"
#include "ops/kernels/gemm/gemm_kernel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/vec.h"
#include "ops/kernels/vector/widen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 64 };

/* Operations and special ones of each activation, per element. */
static const struct {
    uint64_t flops, special;
} work_of[] = {{1, 0}, {9, 1}, {5, 2}, {0, 0}, {6, 2}};

/* ---- shapes and cost */

static prony_status moe_infer(const prony_context *context)
{
    prn_moe m;
    PRN_TRY(prn_moe_read(context, &m));
    return prn_infer_same(context);
}

/* Products of the chosen experts only, gates and biases of their rows, and a softmax over all experts per token. */
static prony_status moe_cost(const prony_context *context, prony_cost *out)
{
    prn_moe m;
    uint64_t rows, weights = 0, macs, biased = 0;
    PRN_TRY(prn_moe_read(context, &m));
    bool fits = prn_mul_u64(&rows, (uint64_t)m.tokens, (uint64_t)m.top);
    for (int l = 0; l < PRN_MOE_LAYERS; l++) {
        uint64_t own = 0;
        if (!m.layer[l].weight) continue;
        fits = fits && prn_mul_u64(&own, (uint64_t)m.layer[l].n, (uint64_t)m.layer[l].k) &&
               prn_add_u64(&weights, weights, own);
        if (m.layer[l].bias) biased += (uint64_t)m.layer[l].n;
    }
    if (!fits || !prn_mul_u64(&macs, rows, weights))
        return prony_fail(context, PRONY_LIMIT, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, out, macs, false));
    prn_cost_fact(out, "experts", m.experts);
    prn_cost_fact(out, "experts_per_token", m.top);
    prn_cost_fact(out, "rows", (int64_t)rows);
    const uint64_t each = (uint64_t)m.inner, gated = m.layer[PRN_MOE_FC3].weight && m.activation != PRN_MOE_SWIGLU;
    PRN_TRY(prn_cost_elementwise(context, out, rows * each, work_of[m.activation].flops + gated,
                                 work_of[m.activation].special));
    PRN_TRY(prn_cost_elementwise(context, out, rows, biased + 2 * (uint64_t)m.width, 0));
    return prn_cost_elementwise(context, out, (uint64_t)(m.tokens * m.experts), 4, 2);
}

/* ---- native */

/* Of each layer: one packed form after the other, `step` bytes apart; NULL: as the input has them. */
typedef struct moe_state {
    prn_moe problem;
    const char *packed[PRN_MOE_LAYERS];
    size_t step[PRN_MOE_LAYERS];
    prn_lowbit stored[PRN_MOE_LAYERS]; /* of codes */
} moe_state;

/* Places in scratch, in bytes. */
typedef struct moe_space {
    size_t expert, weight, first, route, x, h, g, y, end;
} moe_space;

typedef struct moe_job {
    const prony_context *context;
    prn_moe m;
    const moe_state *state;
    int32_t *expert;        /* [T k] */
    float *weight;          /* of these */
    int64_t *first, *route; /* an expert's routes are route[first[e]] to route[first[e + 1] - 1] */
    float *x, *h, *g, *y;   /* rows of one expert's tokens */
    int64_t at, count;      /* routes of the expert at hand: the first, and how many */
} moe_job;

static bool moe_reserve(size_t *end, size_t *at, int64_t rows, int64_t columns, size_t each)
{
    size_t bytes;
    *at = *end;
    if (__builtin_mul_overflow((size_t)rows, (size_t)columns, &bytes) || __builtin_mul_overflow(bytes, each, &bytes) ||
        bytes > SIZE_MAX / 32)
        return false;
    *end += (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return *end < SIZE_MAX / 2;
}

/* An expert has no more rows than there are tokens. */
static bool space_of(const prn_moe *m, moe_space *s)
{
    *s = (moe_space){0};
    const bool apart = m->joined || m->layer[PRN_MOE_FC3].weight;
    return moe_reserve(&s->end, &s->expert, m->tokens, m->top, sizeof(int32_t)) &&
           moe_reserve(&s->end, &s->weight, m->tokens, m->top, sizeof(float)) &&
           moe_reserve(&s->end, &s->first, m->experts + 1, 1, sizeof(int64_t)) &&
           moe_reserve(&s->end, &s->route, m->tokens, m->top, sizeof(int64_t)) &&
           moe_reserve(&s->end, &s->x, m->tokens, m->width, sizeof(float)) &&
           moe_reserve(&s->end, &s->h, m->tokens, m->layer[PRN_MOE_FC1].n, sizeof(float)) &&
           moe_reserve(&s->end, &s->g, apart ? m->tokens : 0, m->inner, sizeof(float)) &&
           moe_reserve(&s->end, &s->y, m->tokens, m->width, sizeof(float));
}

/* The product of `rows` rows with a layer of the expert: x W^T + b. */
static prn_gemm moe_layer_of(const prn_moe *m, const moe_state *state, prn_lowbit *stored, int layer, int64_t expert,
                             int64_t rows)
{
    const prn_moe_layer *l = &m->layer[layer];
    prn_gemm gemm = {.m = rows,
                     .n = l->n,
                     .k = l->k,
                     .rs_a = l->k,
                     .cs_a = 1,
                     .rs_b = 1,
                     .cs_b = l->k,
                     .rs_c = l->n,
                     .alpha = 1.0f,
                     .beta = 1.0f,
                     .bias_col = 1};
    if (!m->bits && l->weight->data) gemm.b = (const float *)l->weight->data + expert * l->n * l->k;
    if (l->bias && l->bias->data) gemm.bias = (const float *)l->bias->data + expert * l->n;
    if (m->bits && state) {
        *stored = state->stored[layer];
        stored->panels += (size_t)expert * state->step[layer];
        gemm.stored = stored;
    } else if (state && state->packed[layer]) {
        gemm.packed = (const float *)(const void *)(state->packed[layer] + (size_t)expert * state->step[layer]);
    }
    return gemm;
}

typedef struct pack_call {
    const prn_moe *m;
    int layer;
    size_t step;
} pack_call;

static prony_status moe_build(const prony_context *context, void *argument, void *packed)
{
    const pack_call *call = argument;
    for (int64_t e = 0; e < call->m->experts && !prn_cancelled(); e++) {
        const prn_gemm gemm = moe_layer_of(call->m, NULL, NULL, call->layer, e, 1);
        prn_gemm_pack(context->threads, &gemm, (float *)(void *)((char *)packed + (size_t)e * call->step));
    }
    return PRONY_OK;
}

/* One row at a time reads plain weights as fast, if they are large. */
static prony_status pack_numbers(const prony_context *context, const prn_moe *m, int layer, moe_state *state)
{
    const void *packed = NULL;
    const prn_gemm gemm = moe_layer_of(m, NULL, NULL, layer, 0, 1);
    size_t bytes;
    if (!gemm.b || (m->tokens == 1 && prn_gemm_plain_is_best(&gemm))) return PRONY_OK;
    pack_call call = {m, layer,
                      prony_dtype_bytes(PRONY_FLOAT32, (prn_gemm_packed_count(gemm.k, gemm.n) + 15) / 16 * 16)};
    if (__builtin_mul_overflow(call.step, (size_t)m->experts, &bytes))
        return prony_fail(context, PRONY_LIMIT, "the packed weights do not fit in memory");
    const prn_pack_key key = {
        .build = moe_build, .table = prn_gemm_isa(), .size = {m->experts, gemm.k, gemm.n, gemm.rs_b, gemm.cs_b, layer}};
    PRN_TRY(context->services->packed(context, gemm.b, &key, bytes, &call, &packed));
    state->packed[layer] = packed;
    state->step[layer] = call.step;
    return PRONY_OK;
}

static prony_status pack_layers(const prony_context *context, const prn_moe *m, moe_state *state)
{
    for (int l = 0; l < PRN_MOE_LAYERS; l++) {
        const prn_moe_layer *layer = &m->layer[l];
        if (!layer->weight || m->experts == 0 || layer->n == 0 || layer->k == 0) continue;
        if (!m->bits) {
            PRN_TRY(pack_numbers(context, m, l, state));
            continue;
        }
        const prn_nbit_weights codes = prn_moe_codes(m, l, 0), next = prn_moe_codes(m, l, 1);
        const int64_t zero_step = codes.zeros ? (const char *)next.zeros - (const char *)codes.zeros : 0;
        PRN_TRY(prn_nbit_pack_shared(context, &codes, m->experts, zero_step, &state->stored[l]));
        state->step[l] = prn_nbit_item_bytes(&state->stored[l]);
    }
    return PRONY_OK;
}

static prony_status moe_native_prepare(const prony_context *context, prn_prepared *out)
{
    moe_state state = {0};
    moe_space space;
    PRN_TRY(prn_moe_read(context, &state.problem));
    if (!space_of(&state.problem, &space)) return prony_fail(context, PRONY_LIMIT, "the experts do not fit in memory");
    PRN_TRY(pack_layers(context, &state.problem, &state));
    out->scratch_bytes = space.end;
    return prn_prepared_keep(context, &state, sizeof state, out);
}

static void route_tokens(void *argument, int64_t begin, int64_t end)
{
    const moe_job *job = argument;
    for (int64_t t = begin; t < end && !prn_cancelled(); t++)
        prn_moe_route(&job->m, t, job->expert + t * job->m.top, job->weight + t * job->m.top);
}

/* Routes by expert, each expert's in the order of tokens. */
static void sort_routes(moe_job *job)
{
    const int64_t count = job->m.tokens * job->m.top;
    memset(job->first, 0, (size_t)(job->m.experts + 1) * sizeof *job->first);
    for (int64_t i = 0; i < count; i++) job->first[job->expert[i] + 1]++;
    for (int64_t e = 0; e < job->m.experts; e++) job->first[e + 1] += job->first[e];
    for (int64_t i = 0; i < count; i++) job->route[job->first[job->expert[i]]++] = i;
    for (int64_t e = job->m.experts; e > 0; e--) job->first[e] = job->first[e - 1];
    job->first[0] = 0;
}

static int64_t token_of(const moe_job *job, int64_t row)
{
    return job->route[job->at + row] / job->m.top;
}

static void gather_rows(void *argument, int64_t begin, int64_t end)
{
    const moe_job *job = argument;
    const int64_t width = job->m.width;
    for (int64_t r = begin; r < end; r++)
        memcpy(job->x + r * width, (const float *)job->m.x->data + token_of(job, r) * width,
               (size_t)width * sizeof(float));
}

static void swiglu_row(const prn_moe_params *p, float *gate, float *value, float *y, int64_t n)
{
    const prn_vec_table *vec = prn_vec();
    vec->map[PRN_MAP_CLIP](gate, gate, n, -INFINITY, p->swiglu_limit);
    vec->map[PRN_MAP_CLIP](value, value, n, -p->swiglu_limit, p->swiglu_limit);
    vec->map[PRN_MAP_SILU](gate, gate, n, p->activation_alpha, 0.0f);
    vec->map[PRN_MAP_AFFINE](value, value, n, 1.0f, p->activation_beta);
    vec->vv[PRN_BINARY_MUL](y, gate, value, n);
}

/* One row of what the first layer made, to where the second reads it. */
static void activate_row(const moe_job *job, int64_t row)
{
    static const prn_map_id maps[] = {PRN_MAP_RELU, PRN_MAP_GELU_TANH, PRN_MAP_SILU, PRN_MAP_COPY};
    const prn_moe *m = &job->m;
    const int64_t n = m->inner;
    float *h = job->h + row * m->layer[PRN_MOE_FC1].n, *g = job->g + row * n;
    if (m->activation != PRN_MOE_SWIGLU) {
        prn_vec()->map[maps[m->activation]](h, h, n, 1.0f, 0.0f);
        if (m->layer[PRN_MOE_FC3].weight) prn_vec()->vv[PRN_BINARY_MUL](h, h, g, n);
    } else if (!m->joined) {
        swiglu_row(m->params, h, g, h, n);
    } else if (!m->interleaved) {
        swiglu_row(m->params, h, h + n, g, n);
    } else {
        float gate[PRN_BLOCK], value[PRN_BLOCK];
        for (int64_t first = 0, count; first < n; first += count) {
            count = n - first < PRN_BLOCK ? n - first : PRN_BLOCK;
            for (int64_t i = 0; i < count; i++) gate[i] = h[2 * (first + i)];
            for (int64_t i = 0; i < count; i++) value[i] = h[2 * (first + i) + 1];
            swiglu_row(m->params, gate, value, g + first, count);
        }
    }
}

static void activate_rows(void *argument, int64_t begin, int64_t end)
{
    for (int64_t r = begin; r < end && !prn_cancelled(); r++) activate_row(argument, r);
}

static void add_rows(void *argument, int64_t begin, int64_t end)
{
    const moe_job *job = argument;
    const int64_t width = job->m.width;
    for (int64_t r = begin; r < end; r++) {
        float *sum = (float *)job->context->outputs[0]->data + token_of(job, r) * width;
        prn_vec()->add_scaled(sum, job->y + r * width, job->weight[job->route[job->at + r]], width);
    }
}

static void run_layer(const moe_job *job, int layer, int64_t expert, const float *from, float *to)
{
    prn_lowbit stored;
    prn_gemm gemm = moe_layer_of(&job->m, job->state, &stored, layer, expert, job->count);
    gemm.a = from;
    gemm.c = to;
    prn_gemm_run(job->context->threads, &gemm, NULL, NULL);
}

static void run_expert(moe_job *job, int64_t expert)
{
    const prn_moe *m = &job->m;
    const int threads = job->context->threads;
    job->at = job->first[expert];
    job->count = job->first[expert + 1] - job->at;
    if (job->count == 0) return;
    prn_parallel_items(threads, job->count, 8 * job->count * m->width, gather_rows, job);
    run_layer(job, PRN_MOE_FC1, expert, job->x, job->h);
    if (m->layer[PRN_MOE_FC3].weight) run_layer(job, PRN_MOE_FC3, expert, job->x, job->g);
    prn_parallel_items(threads, job->count, 40 * job->count * m->inner, activate_rows, job);
    run_layer(job, PRN_MOE_FC2, expert, m->joined ? job->g : job->h, job->y);
    prn_parallel_items(threads, job->count, 12 * job->count * m->width, add_rows, job);
}

/* Routes tokens, sorts routes by expert, then runs expert by expert: each adds its weighted rows, in an order that
 * threads do not change. */
static prony_status moe_native_run(const prony_context *context)
{
    moe_job job = {.context = context, .state = context->state};
    moe_space space;
    job.m = prn_moe_with_operands(context, &job.state->problem);
    const prn_moe *m = &job.m;
    if (!space_of(m, &space) || space.end > context->scratch_bytes)
        return prony_fail(context, PRONY_INTERNAL, "the working space is too small");
    if (m->tokens == 0 || m->width == 0) return PRONY_OK;
    char *scratch = context->scratch;
    job.expert = (int32_t *)(void *)(scratch + space.expert);
    job.weight = (float *)(void *)(scratch + space.weight);
    job.first = (int64_t *)(void *)(scratch + space.first);
    job.route = (int64_t *)(void *)(scratch + space.route);
    job.x = (float *)(void *)(scratch + space.x);
    job.h = (float *)(void *)(scratch + space.h);
    job.g = (float *)(void *)(scratch + space.g);
    job.y = (float *)(void *)(scratch + space.y);
    prn_parallel_items(context->threads, m->tokens, 64 * m->tokens * m->experts, route_tokens, &job);
    if (prn_cancelled()) return PRONY_OK; /* entries not computed are not valid indices */
    sort_routes(&job);
    memset(context->outputs[0]->data, 0, prn_value_bytes(context->outputs[0]));
    for (int64_t e = 0; e < m->experts && !prn_cancelled(); e++) run_expert(&job, e);
    return PRONY_OK;
}

/* ---- kernels and rows */

static bool coded_supported(const prony_context *context)
{
    prn_moe m;
    if (prn_moe_read(context, &m) != PRONY_OK || m.experts == 0 || m.width == 0 || m.inner == 0) return false;
    for (int l = 0; l < PRN_MOE_LAYERS; l++) {
        const prn_moe_layer *layer = &m.layer[l];
        if (layer->weight && (!layer->weight->data || !layer->scale->data || (layer->zero && !layer->zero->data)))
            return false;
    }
    return true;
}

static bool moe_native_supported(const prony_context *context)
{
    prn_moe m;
    return prn_moe_read(context, &m) == PRONY_OK && m.experts > 0 && m.width > 0 && m.inner > 0;
}

static const prn_param moe_params[] = {PRN_INT(prn_moe_params, k, 1),
                                       PRN_INT(prn_moe_params, normalize_routing_weights, 0),
                                       PRN_INT(prn_moe_params, use_sparse_mixer, 0),
                                       PRN_INT(prn_moe_params, swiglu_fusion, 0),
                                       PRN_FLOAT(prn_moe_params, activation_alpha, 1.0f),
                                       PRN_FLOAT(prn_moe_params, activation_beta, 0.0f),
                                       PRN_FLOAT(prn_moe_params, swiglu_limit, INFINITY),
                                       PRN_STRING(prn_moe_params, activation_type, "relu"),
                                       {0}};
static const prn_param qmoe_params[] = {PRN_INT(prn_moe_params, k, 1),
                                        PRN_INT(prn_moe_params, normalize_routing_weights, 0),
                                        PRN_INT(prn_moe_params, use_sparse_mixer, 0),
                                        PRN_INT(prn_moe_params, swiglu_fusion, 0),
                                        PRN_INT(prn_moe_params, expert_weight_bits, 4),
                                        PRN_INT(prn_moe_params, block_size, 0),
                                        PRN_INT(prn_moe_params, accuracy_level, 0),
                                        PRN_INT(prn_moe_params, weights_prepacked, -1),
                                        PRN_FLOAT(prn_moe_params, activation_alpha, 1.0f),
                                        PRN_FLOAT(prn_moe_params, activation_beta, 0.0f),
                                        PRN_FLOAT(prn_moe_params, swiglu_limit, INFINITY),
                                        PRN_STRING(prn_moe_params, activation_type, "relu"),
                                        PRN_STRING(prn_moe_params, quant_type, "int"),
                                        {0}};

#define REFERENCE(kernel_name)                                                                                         \
    {.name = kernel_name,                                                                                              \
     .backend = "reference",                                                                                           \
     .prepare = prn_moe_reference_prepare,                                                                             \
     .run = prn_moe_reference_run,                                                                                     \
     .release = prn_free}
// clang-format off
static const prn_kernel moe_kernels[] = {
    {.name = "moe_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = moe_native_supported, .prepare = moe_native_prepare, .run = moe_native_run,
     .release = prn_free, .packs = 1 << 2 | 1 << 4 | 1 << 6},
    REFERENCE("moe_reference"),
    {0}};
static const prn_kernel qmoe_kernels[] = {
    {.name = "qmoe_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = coded_supported, .prepare = moe_native_prepare, .run = moe_native_run,
     .release = prn_free, .packs = 1 << 2 | 1 << 5 | 1 << 8},
    REFERENCE("qmoe_reference"),
    {0}};
// clang-format on

#define COST_TEXT                                                                                                      \
    "MACs M = T k weights of an expert (T tokens, k experts each); FLOPs 2M, + biases, activation per inner element "  \
    "(relu 1, gelu 9, silu "                                                                                           \
    "5, swiglu 6; + 1 with fc3), 2 per element added up, 4 per logit; special 1, 2, 2 of gelu, silu, swiglu, 2 per "   \
    "logit"

// clang-format off
const prn_op prn_ops_moe[] = {
    {.name = "MoE", .domain = "com.microsoft", .since_opset = 1, .inputs = {3, 8},
     .params = moe_params, .params_bytes = sizeof(prn_moe_params), .check = prn_moe_check,
     .variant = &(const prn_moe_inputs){.weights = {2, 4, 6}, .biases = {3, 5, 7}, .unsupported = 8},
     .infer = moe_infer, .cost = moe_cost, .cost_text = COST_TEXT, .kernels = moe_kernels},
    {.name = "QMoE", .domain = "com.microsoft", .since_opset = 1, .inputs = {3, 21}, .flags = PRN_OP_INT_WEIGHTS,
     .params = qmoe_params, .params_bytes = sizeof(prn_moe_params), .check = prn_moe_check,
     .variant = &(const prn_moe_inputs){.weights = {2, 5, 8}, .scales = {3, 6, 9}, .biases = {4, 7, 10}, .zeros = {11, 12, 13}, .mix = 14,
                                        .unsupported = 15, .coded = true},
     .infer = moe_infer, .cost = moe_cost, .cost_text = COST_TEXT, .kernels = qmoe_kernels, .packed_codes = prn_moe_packed_codes},
    {0}};
// clang-format on
