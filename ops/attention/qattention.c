/* QAttention (com.microsoft): self-attention whose input and weights are 8-bit codes.
 *
 *   [Q K V] = (input - zero point) (weight - zero point) input_scale weight_scale + bias      [B, S, 3H]
 *   present = past and this call's K and V                                                    [2, B, N, T, D]
 *   output  = softmax(scale Q K^T + mask) V                                                   [B, S, H]
 *
 * The projection is the integer product; what follows is prony::Attention on floats, run on values of our own. The
 * state holds what both prepared; scratch is cut into Q, present (if the node has no such output), mask and the
 * attention's own. */
#include "base/memory/alloc.h"
#include "base/attr.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/delegate.h"
#include "ops/kernels/int8/int_gemm.h"

#include <float.h>
#include <string.h>

enum { INPUT, WEIGHT, BIAS, INPUT_SCALE, WEIGHT_SCALE, MASK, INPUT_ZERO, WEIGHT_ZERO, PAST };
enum { INNER_ATTRIBUTES = 2 };

typedef struct qattention_params {
    int64_t num_heads, unidirectional, do_rotary, past_present_share_buffer;
    float mask_filter_value, scale;
} qattention_params;

static const prn_param attributes[] = {PRN_INT_REQUIRED(qattention_params, num_heads),
                                       PRN_INT(qattention_params, unidirectional, 0),
                                       PRN_INT(qattention_params, do_rotary, 0),
                                       PRN_INT(qattention_params, past_present_share_buffer, 0),
                                       PRN_FLOAT(qattention_params, mask_filter_value, -10000.0f),
                                       PRN_FLOAT(qattention_params, scale, 0.0f),
                                       {0}};

typedef struct qattention {
    prn_int_gemm product;
    prn_quant_lines weight_scale;
    float input_scale;
    const float *bias;
    int64_t batch, heads, rows, past, keys, depth; /* B, N, S, P, T = P + S, D */
    bool masked;
    float *q, *kv, *mask; /* [B, N, S, D], [2, B, N, T, D], [B, 1, S, T] */
} qattention;

/* Prepared: the weight's panels, and the attention on floats. */
typedef struct qattention_state {
    const int16_t *panels;
    prn_delegate attention;
    bool reference;
} qattention_state;

/* ---- description */

static prony_status qattention_refuse(const prony_context *context, size_t input, const char *what)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, %s", input,
                      prn_value_text(context->inputs[input], text), what);
}

/* The mask's shape tells its kind: lengths, starts and ends, per key, per query and key, or a square to crop. Only the
 * shape is checked here. */
static prony_status qattention_read_mask(const prony_context *context, qattention *out)
{
    const prony_value *mask = prn_input(context, MASK);
    out->masked = mask || ((const qattention_params *)context->params)->unidirectional != 0;
    if (!mask) return PRONY_OK;
    const int64_t *dim = mask->shape.dim, b = out->batch, s = out->rows, t = out->keys;
    PRN_TRY(prn_check_type(context, MASK, PRN_TYPE(PRONY_INT32)));
    switch (mask->shape.rank) {
    case 1:
        if (dim[0] == b || dim[0] == 2 * b) return PRONY_OK;
        break;
    case 2:
        if (dim[0] == b && dim[1] == t) return PRONY_OK;
        break;
    case 3:
        if (dim[0] == b && dim[1] == s && dim[2] == t) return PRONY_OK;
        break;
    case 4:
        if (dim[0] == b && dim[1] == 1 && dim[2] >= t && dim[3] >= t) return PRONY_OK;
        break;
    default:
        break;
    }
    return qattention_refuse(context, MASK, "which is not a mask for this input");
}

static prony_status qattention_read_past(const prony_context *context, qattention *out)
{
    const prony_value *past = prn_input(context, PAST);
    out->keys = out->rows;
    if (!past) return PRONY_OK;
    PRN_TRY(prn_check_type(context, PAST, PRN_TYPE_F32));
    PRN_TRY(prn_check_rank(context, PAST, 5, 5));
    const int64_t *dim = past->shape.dim;
    if (dim[0] != 2 || dim[1] != out->batch || dim[2] != out->heads || dim[4] != out->depth)
        return qattention_refuse(context, PAST, "wanted [2, batch, heads, past length, head size]");
    out->past = dim[3];
    if (__builtin_add_overflow(out->past, out->rows, &out->keys))
        return qattention_refuse(context, PAST, "which is too long");
    return PRONY_OK;
}

static void store_projection(const void *argument, int64_t item, int64_t row, int64_t column, int64_t n, int32_t *sums);

/* The node's int8 projection and sizes; every operand is checked for type, rank and count before anything reads it. */
static prony_status qattention_describe(const prony_context *context, qattention *out)
{
    const qattention_params *params = context->params;
    const prony_value *x = context->inputs[INPUT], *weight = context->inputs[WEIGHT];
    prony_shape y;
    *out = (qattention){.heads = params->num_heads};
    for (size_t i = INPUT; i <= WEIGHT_SCALE; i++) {
        if (!context->inputs[i]) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
    }
    PRN_TRY(prn_check_type(context, INPUT, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_type(context, WEIGHT, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_type(context, BIAS, PRN_TYPE_F32));
    PRN_TRY(prn_check_rank(context, INPUT, 3, 3));
    PRN_TRY(prn_check_rank(context, WEIGHT, 2, 2));
    PRN_TRY(prn_int_gemm_matmul(context, x, weight, &out->product, &y));
    const int64_t width = weight->shape.dim[1];
    if (width % 3 != 0 || width / 3 % out->heads != 0)
        return qattention_refuse(context, WEIGHT, "which does not have the columns of Q, K and V of that many heads");
    const prony_shape *bias = &context->inputs[BIAS]->shape;
    if (bias->rank != 1 || bias->dim[0] != width)
        return qattention_refuse(context, BIAS, "wanted one entry per column");
    out->batch = x->shape.dim[0];
    out->rows = x->shape.dim[1];
    out->depth = width / 3 / out->heads;
    PRN_TRY(prn_quant_scalar_check(context, INPUT_SCALE, INPUT_ZERO, PRN_TYPE(x->dtype)));
    PRN_TRY(prn_quant_lines_read(context, WEIGHT_SCALE, PRN_TYPE_F32, &weight->shape, 1, &out->weight_scale));
    PRN_TRY(prn_quant_lines_read(context, INPUT_ZERO, PRN_TYPE(x->dtype), &x->shape, 1, &out->product.a_zero));
    PRN_TRY(
        prn_quant_lines_read(context, WEIGHT_ZERO, PRN_TYPE(weight->dtype), &weight->shape, 1, &out->product.b_zero));
    PRN_TRY(qattention_read_past(context, out));
    PRN_TRY(qattention_read_mask(context, out));
    out->bias = context->inputs[BIAS]->data;
    if (context->inputs[INPUT_SCALE]->data) out->input_scale = prn_quant_get(context->inputs[INPUT_SCALE], 0);
    prn_matmul_fold(&out->product.shape);
    out->product.store = store_projection;
    out->product.argument = out;
    return PRONY_OK;
}

static prony_shape present_shape(const qattention *at)
{
    return prn_shape_make(5, (const int64_t[]){2, at->batch, at->heads, at->keys, at->depth});
}

static prony_status qattention_infer(const prony_context *context)
{
    qattention at;
    PRN_TRY(qattention_describe(context, &at));
    const prony_shape present = present_shape(&at);
    const prony_shape y = prn_shape_make(3, (const int64_t[]){at.batch, at.rows, at.heads * at.depth});
    if (prony_shape_numel(&present) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the output is too large");
    prn_set_output(context, 0, PRONY_FLOAT32, &y);
    prn_set_output(context, 1, PRONY_FLOAT32, &present);
    return PRONY_OK;
}

static prony_status qattention_check(const prony_context *context)
{
    const qattention_params *params = context->params;
    if (params->num_heads < 1 || params->num_heads > INT32_MAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "num_heads is %lld; it must be at least 1 and below 2^31",
                          (long long)params->num_heads);
    if (params->do_rotary) return prony_fail(context, PRONY_UNSUPPORTED, "do_rotary is not supported");
    if (params->past_present_share_buffer)
        return prony_fail(context, PRONY_UNSUPPORTED, "past_present_share_buffer is not supported");
    return PRONY_OK;
}

/* ---- the attention on floats */

/* A node of prony::Attention with values of its own. */
typedef struct inner {
    prn_attr attribute[INNER_ATTRIBUTES];
    prn_attr_list list;
    prony_node node;
    prony_value values[4], y;
    const prony_value *inputs[4];
    prony_value *outputs[1];
    prony_context context;
} inner;

/* Fills the float attention node that works on the projected Q, K and V. `out` owns what its context points at, so it
 * may not move. */
static void open_inner(const prony_context *context, const qattention *at, inner *out)
{
    static const int64_t heads_behind[] = {0, 2, 1, 3};
    const qattention_params *params = context->params;
    const float scale = params->scale != 0.0f ? params->scale : 1.0f / sqrtf((float)at->depth);
    const prony_shape q = prn_shape_make(4, (const int64_t[]){at->batch, at->heads, at->rows, at->depth});
    const prony_shape k = prn_shape_make(4, (const int64_t[]){at->batch, at->heads, at->keys, at->depth});
    const prony_shape mask = prn_shape_make(4, (const int64_t[]){at->batch, 1, at->rows, at->keys});
    const prony_shape y = prn_shape_make(4, (const int64_t[]){at->batch, at->rows, at->heads, at->depth});
    const int64_t count = prony_shape_numel(&k);
    memset(out, 0, sizeof *out);
    out->attribute[0] = (prn_attr){.name = "scale", .type = PRN_ATTR_FLOAT, .f = scale};
    out->attribute[1] = (prn_attr){.name = "y_perm", .type = PRN_ATTR_INTS, .ints = heads_behind, .count = 4};
    out->list = (prn_attr_list){out->attribute, INNER_ATTRIBUTES};
    out->node = (prony_node){context->node->name, "Attention", "prony", 1, &out->list, context->node->within};
    out->values[0] = (prony_value){.dtype = PRONY_FLOAT32, .shape = q, .data = at->q};
    out->values[1] = (prony_value){.dtype = PRONY_FLOAT32, .shape = k, .data = at->kv};
    out->values[2] = (prony_value){.dtype = PRONY_FLOAT32, .shape = k, .data = at->kv ? at->kv + count : NULL};
    out->values[3] = (prony_value){.dtype = PRONY_FLOAT32, .shape = mask, .data = at->mask};
    out->y = (prony_value){.dtype = PRONY_FLOAT32, .shape = y};
    if (prn_output(context, 0)) out->y.data = context->outputs[0]->data;
    for (size_t i = 0; i < 4; i++) out->inputs[i] = &out->values[i];
    out->outputs[0] = &out->y;
    out->context = *context;
    out->context.node = &out->node;
    out->context.inputs = out->inputs;
    out->context.input_count = at->masked ? 4 : 3;
    out->context.outputs = out->outputs;
    out->context.output_count = 1;
}

static prony_status qattention_cost(const prony_context *context, prony_cost *out)
{
    qattention at;
    inner in;
    prn_delegate to;
    PRN_TRY(qattention_describe(context, &at));
    prony_cost projection = {0};
    PRN_TRY(prn_int_gemm_cost(context, &at.product.shape, true, &projection));
    open_inner(context, &at, &in);
    PRN_TRY(prn_delegate_open(&to, &in.context, "prony", "Attention", 1));
    PRN_TRY(to.op->cost(&in.context, out));
    const uint64_t elements = (uint64_t)(at.product.shape.items * at.product.shape.m * at.product.shape.n);
    if (!prn_add_u64(&out->macs, out->macs, projection.macs) ||
        !prn_add_u64(&out->madds, out->madds, projection.madds) || !prn_add_u64(&out->flops, out->flops, 2 * elements))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    out->int_ops += projection.int_ops;
    return PRONY_OK;
}

/* ---- projection and mask */

/* The destination of element (b, s) of head h: Q, or its place behind the past in K or V. */
static float *qattention_place(const qattention *at, int64_t part, int64_t b, int64_t s, int64_t h)
{
    if (part == 0) return at->q + ((b * at->heads + h) * at->rows + s) * at->depth;
    return at->kv + ((((part - 1) * at->batch + b) * at->heads + h) * at->keys + at->past + s) * at->depth;
}

static void store_projection(const void *argument, int64_t item, int64_t row, int64_t column, int64_t n, int32_t *sums)
{
    const qattention *at = argument;
    const prn_matmul_desc *shape = &at->product.shape;
    const int64_t hidden = at->heads * at->depth, line = item * shape->m + row;
    for (int64_t j = 0; j < n; j++) {
        const int64_t c = column + j, h = c % hidden / at->depth;
        const float scale = at->input_scale * prn_quant_lines_at(&at->weight_scale, 0, c);
        qattention_place(at, c / hidden, line / at->rows, line % at->rows, h)[c % at->depth] =
            (float)sums[j] * scale + at->bias[c];
    }
}

static void copy_past(const prony_context *context, const qattention *at)
{
    const prony_value *past = prn_input(context, PAST);
    const int64_t block = at->past * at->depth;
    for (int64_t i = 0; past && i < 2 * at->batch * at->heads; i++) {
        memcpy(at->kv + i * at->keys * at->depth, (const float *)past->data + i * block, (size_t)block * sizeof(float));
    }
}

/* True if query s may look at key t. */
static bool is_open(const prony_value *mask, const qattention *at, int64_t b, int64_t s, int64_t t)
{
    const int32_t *data = mask->data;
    const int64_t *dim = mask->shape.dim;
    switch (mask->shape.rank) {
    case 1: /* ends, then beginnings if they are given */
        return t < data[b] && (dim[0] == at->batch || t >= data[at->batch + b]);
    case 2:
        return data[b * dim[1] + t] > 0;
    case 3:
        return data[(b * dim[1] + s) * dim[2] + t] > 0;
    default:
        return data[(b * dim[2] + at->past + s) * dim[3] + t] > 0;
    }
}

static void make_mask(const prony_context *context, const qattention *at)
{
    const qattention_params *params = context->params;
    const prony_value *mask = prn_input(context, MASK);
    float *to = at->mask;
    for (int64_t b = 0; at->masked && b < at->batch; b++) {
        for (int64_t s = 0; s < at->rows && !prn_cancelled(); s++) {
            for (int64_t t = 0; t < at->keys; t++) {
                const bool later = params->unidirectional && t > at->past + s;
                const bool shut = mask && !is_open(mask, at, b, s, t);
                *to++ = later ? -FLT_MAX : shut ? params->mask_filter_value : 0.0f;
            }
        }
    }
}

/* ---- kernels */

/* Bytes of scratch before the attention's own; sets the pointers if there is any scratch. */
static prony_status cut_scratch(const prony_context *context, qattention *at, size_t *bytes)
{
    enum { LINE = 64 };
    const prony_shape present = present_shape(at);
    const bool own = !prn_output(context, 1);
    const uint64_t line = (uint64_t)at->batch * (uint64_t)at->rows;
    uint64_t mask = 0, q = 0;
    bool fits = prn_mul_u64(&q, line, (uint64_t)(at->heads * at->depth)) && q < INT64_MAX / 8;
    fits = fits && prn_mul_u64(&mask, line, at->masked ? (uint64_t)at->keys : 0) && mask < INT64_MAX / 8;
    if (!fits) return prony_fail(context, PRONY_LIMIT, "the scores do not fit in memory");
    const size_t sizes[] = {(size_t)q * sizeof(float), own ? (size_t)prony_shape_numel(&present) * sizeof(float) : 0,
                            (size_t)mask * sizeof(float)};
    float **const pointers[] = {&at->q, &at->kv, &at->mask};
    *bytes = 0;
    for (int i = 0; i < 3; i++) {
        if (context->scratch) *pointers[i] = (float *)(void *)((char *)context->scratch + *bytes);
        *bytes += (sizes[i] + LINE - 1) / LINE * LINE;
    }
    if (!own) at->kv = context->outputs[1]->data;
    return PRONY_OK;
}

static void qattention_release(void *argument)
{
    qattention_state *state = argument;
    if (state) prn_delegate_release(&state->attention);
    prn_free(state);
}

static prony_status prepare_attention(const prony_context *context, const qattention *at, qattention_state *state)
{
    inner in;
    open_inner(context, at, &in);
    for (size_t i = 0; i < 4; i++) in.values[i].data = NULL;
    PRN_TRY(prn_delegate_open(&state->attention, &in.context, "prony", "Attention", 1));
    prn_delegate_kernel(&state->attention, &in.context, true, state->reference ? &prn_like_reference : NULL);
    return prn_delegate_prepare(&state->attention, &in.context);
}

static prony_status qattention_prepare_with(const prony_context *context, bool reference, prn_prepared *out)
{
    qattention at;
    size_t bytes;
    PRN_TRY(qattention_describe(context, &at));
    qattention_state *state = prn_calloc(1, sizeof *state);
    if (!state) return prn_no_memory(context->error);
    state->reference = reference;
    prony_status status = cut_scratch(context, &at, &bytes);
    if (status == PRONY_OK) status = prepare_attention(context, &at, state);
    if (status == PRONY_OK && !reference) status = prn_int_pack_panels(context, &at.product, &state->panels);
    if (status == PRONY_OK)
        *out = (prn_prepared){state, bytes + state->attention.prepared.scratch_bytes};
    else
        qattention_release(state);
    return status;
}

static prony_status qattention_run(const prony_context *context)
{
    const qattention_state *state = context->state;
    qattention at;
    inner in;
    size_t bytes;
    PRN_TRY(qattention_describe(context, &at));
    PRN_TRY(cut_scratch(context, &at, &bytes));
    copy_past(context, &at);
    make_mask(context, &at);
    at.product.b_panels = state->panels;
    if (state->reference) {
        prn_int_gemm_reference(&at.product);
    } else {
        prn_int_gemm_run(context->threads, &at.product);
    }
    if (!prn_output(context, 0)) return PRONY_OK;
    open_inner(context, &at, &in);
    return prn_delegate_run(&state->attention, &in.context, (char *)context->scratch + bytes);
}

/* Of the projection, which is most of the work. */
static void qattention_facts(const prony_context *context, prony_cost *out)
{
    const qattention_state *state = context->state;
    qattention at;
    if (qattention_describe(context, &at) == PRONY_OK)
        prn_int_gemm_facts(&at.product.shape, state->panels != NULL, out);
}

static prony_status qattention_prepare_native(const prony_context *context, prn_prepared *out)
{
    return qattention_prepare_with(context, false, out);
}

static prony_status qattention_prepare_reference(const prony_context *context, prn_prepared *out)
{
    return qattention_prepare_with(context, true, out);
}

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "qattention_native", .backend = "native", .prepare = qattention_prepare_native, .run = qattention_run, .facts = qattention_facts,
     .release = qattention_release},
    {.name = "qattention_reference", .backend = "reference", .prepare = qattention_prepare_reference, .run = qattention_run,
     .release = qattention_release},
    {0}};

const prn_op prn_ops_qattention[] = {
    {.name = "QAttention", .domain = "com.microsoft", .since_opset = 1, .inputs = {5, 9}, .outputs = {1, 2},
     .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 0xf8,
     .params = attributes, .params_bytes = sizeof(qattention_params), .check = qattention_check,
     .infer = qattention_infer, .cost = qattention_cost, .kernels = kernels,
     .cost_text = "projection to p = B S 3H elements: MACs p I; int_ops 2 p I; FLOPs 2p; then as prony::Attention"},
    {0}};
// clang-format on
