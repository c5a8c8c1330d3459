/* Reading com.microsoft MoE and QMoE nodes, and a token's way to its experts. */
#include "ops/contrib/moe.h"
#include "ops/kernels/vector/number.h"

#include "base/integers.h"

#include <math.h>
#include <string.h>

#define TYPES (PRN_TYPE_F32 | PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16))

static const char *const activations[] = {"relu", "gelu", "silu", "identity", "swiglu"};

static bool activation_of(const prn_moe_params *params, prn_moe_activation *out)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (strcmp(params->activation_type, activations[i]) != 0) continue;
        *out = (prn_moe_activation)i;
        return true;
    }
    return false;
}

static prony_status moe_read_unsupported(const prony_context *context, const char *name, int64_t value)
{
    return prony_fail(context, PRONY_UNSUPPORTED, "%s is %lld, which is not supported", name, (long long)value);
}

static prony_status moe_read_check_codes(const prony_context *context)
{
    const prn_moe_params *p = context->params;
    if (strcmp(p->quant_type, "int") != 0)
        return prony_fail(context, PRONY_UNSUPPORTED, "quant_type is '%s': only int is supported", p->quant_type);
    if (p->weights_prepacked > 0) return moe_read_unsupported(context, "weights_prepacked", p->weights_prepacked);
    if (p->expert_weight_bits != 2 && p->expert_weight_bits != 4 && p->expert_weight_bits != 8)
        return prony_fail(context, PRONY_UNSUPPORTED, "expert_weight_bits is %lld, wanted 2, 4 or 8",
                          (long long)p->expert_weight_bits);
    if (p->block_size == 0 ||
        (p->block_size >= 16 && p->block_size <= 1 << 20 && (p->block_size & (p->block_size - 1)) == 0))
        return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "block_size is %lld, wanted a power of two from 16 to 1048576",
                      (long long)p->block_size);
}

prony_status prn_moe_check(const prony_context *context)
{
    const prn_moe_params *p = context->params;
    prn_moe_activation activation;
    if (!activation_of(p, &activation))
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "activation_type is '%s', wanted relu, gelu, silu, identity or swiglu", p->activation_type);
    if (p->k < 1 || p->k > INT32_MAX) return prony_fail(context, PRONY_INVALID_MODEL, "k is %lld", (long long)p->k);
    if (p->use_sparse_mixer) return moe_read_unsupported(context, "use_sparse_mixer", p->use_sparse_mixer);
    if (p->swiglu_fusion < 0 || p->swiglu_fusion > 2)
        return prony_fail(context, PRONY_INVALID_MODEL, "swiglu_fusion is %lld, wanted 0 to 2",
                          (long long)p->swiglu_fusion);
    return ((const prn_moe_inputs *)prn_variant(context))->coded ? moe_read_check_codes(context) : PRONY_OK;
}

/* The input, if there is one, has the shape [a, b, c][:rank]; dims beyond the rank are ignored. */
static prony_status moe_check_shape(const prony_context *context, size_t input, int rank, int64_t a, int64_t b,
                                    int64_t c)
{
    char text[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    const prony_value *value = prn_input(context, input);
    const prony_shape wanted = {rank, {a, b, c}};
    if (!value || prn_shape_equal(&value->shape, &wanted)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %s", input, prn_value_text(value, text),
                      prn_shape_text(&wanted, right));
}

static const prony_value *optional(const prony_context *context, size_t input)
{
    return input ? prn_input(context, input) : NULL;
}

static void moe_read_take_operands(const prony_context *context, prn_moe *m)
{
    const prn_moe_inputs *in = prn_variant(context);
    m->params = context->params;
    m->x = context->inputs[0];
    m->router = context->inputs[1];
    m->mix = optional(context, in->mix);
    for (int l = 0; l < PRN_MOE_LAYERS; l++) {
        m->layer[l].weight = optional(context, in->weights[l]);
        m->layer[l].scale = optional(context, in->scales[l]);
        m->layer[l].zero = optional(context, in->zeros[l]);
        m->layer[l].bias = optional(context, in->biases[l]);
    }
}

prn_moe prn_moe_with_operands(const prony_context *context, const prn_moe *read)
{
    prn_moe m = *read;
    moe_read_take_operands(context, &m);
    return m;
}

/* A layer [E, n, k] and what belongs to it. */
static prony_status read_layer(const prony_context *context, prn_moe *m, int index, int64_t n, int64_t k)
{
    const prn_moe_inputs *in = prn_variant(context);
    const int64_t pack = in->coded ? 8 / m->bits : 1, blocks = m->block ? k / m->block : 1;
    prn_moe_layer *layer = &m->layer[index];
    const uint32_t type = PRN_TYPE(m->x->dtype);
    layer->n = n;
    layer->k = k;
    if (!layer->weight) {
        if (index == 2 && !layer->scale && !layer->bias && !layer->zero) return PRONY_OK;
        return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (weights of fc%d) is missing", in->weights[index],
                          index + 1);
    }
    PRN_TRY(prn_check_type(context, in->weights[index], in->coded ? PRN_TYPE(PRONY_UINT8) : type));
    if (k % pack != 0 || (m->block && k % m->block != 0))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "fc%d has %lld inputs, which do not fill bytes and blocks",
                          index + 1, (long long)k);
    PRN_TRY(moe_check_shape(context, in->weights[index], 3, m->experts, n, k / pack));
    if (layer->bias) PRN_TRY(prn_check_type(context, in->biases[index], type));
    if (layer->bias) PRN_TRY(moe_check_shape(context, in->biases[index], 2, m->experts, n, 0));
    if (!in->coded) return PRONY_OK;
    if (!layer->scale)
        return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (scales of fc%d) is missing", in->scales[index],
                          index + 1);
    PRN_TRY(prn_check_type(context, in->scales[index], TYPES));
    PRN_TRY(moe_check_shape(context, in->scales[index], m->block ? 3 : 2, m->experts, n, m->block ? blocks : 0));
    if (!layer->zero) return PRONY_OK;
    PRN_TRY(prn_check_type(context, in->zeros[index], PRN_TYPE(PRONY_UINT8)));
    return moe_check_shape(context, in->zeros[index], m->block ? 3 : 2, m->experts,
                           m->block ? n : prn_ceil_div(n, pack), m->block ? prn_ceil_div(blocks, pack) : 0);
}

static prony_status read_tokens(const prony_context *context, prn_moe *m)
{
    const prn_moe_inputs *in = prn_variant(context);
    PRN_TRY(prn_check_type(context, 0, TYPES));
    const uint32_t type = PRN_TYPE(context->inputs[0]->dtype);
    PRN_TRY(prn_check_rank(context, 0, 2, 3));
    PRN_TRY(prn_check_type(context, 1, type));
    PRN_TRY(prn_check_rank(context, 1, 2, 2));
    const prony_shape *x = &context->inputs[0]->shape;
    m->width = x->dim[x->rank - 1];
    m->tokens = prn_shape_count(x, 0, x->rank - 1);
    m->experts = m->router->shape.dim[1];
    PRN_TRY(moe_check_shape(context, 1, 2, m->tokens, m->experts, 0));
    m->top = m->params->k;
    if (m->top > m->experts || m->experts > INT32_MAX)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "k is %lld, of %lld experts", (long long)m->top,
                          (long long)m->experts);
    if (!m->mix) return PRONY_OK;
    PRN_TRY(prn_check_type(context, in->mix, type));
    return moe_check_shape(context, in->mix, 2, m->tokens, m->experts, 0);
}

/* Sizes, activation and the three layers of the experts; SwiGLU has its gate in fc1 (joined) or in fc3, never in
 * both. */
prony_status prn_moe_read(const prony_context *context, prn_moe *out)
{
    const prn_moe_inputs *in = prn_variant(context);
    const prn_moe_params *p = context->params;
    *out = (prn_moe){.bits = in->coded ? p->expert_weight_bits : 0, .block = in->coded ? p->block_size : 0};
    moe_read_take_operands(context, out);
    activation_of(p, &out->activation);
    for (size_t i = in->unsupported; i < context->input_count; i++) {
        if (context->inputs[i]) return prony_fail(context, PRONY_UNSUPPORTED, "input %zu is not supported", i);
    }
    PRN_TRY(read_tokens(context, out));
    const prony_value *second = prn_input(context, in->weights[1]), *third = optional(context, in->weights[2]);
    if (!second)
        return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (weights of fc2) is missing", in->weights[1]);
    PRN_TRY(prn_check_rank(context, in->weights[1], 3, 3));
    if (__builtin_mul_overflow(second->shape.dim[2], in->coded ? 8 / out->bits : 1, &out->inner) ||
        out->inner > INT64_MAX / 2)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the experts are too large");
    out->joined = out->activation == PRN_MOE_SWIGLU && p->swiglu_fusion > 0;
    out->interleaved = p->swiglu_fusion == 1;
    if (out->activation == PRN_MOE_SWIGLU && out->joined == (third != NULL))
        return prony_fail(context, PRONY_INVALID_MODEL, "swiglu with swiglu_fusion %lld, %s fc3",
                          (long long)p->swiglu_fusion, third ? "but with" : "but without");
    PRN_TRY(read_layer(context, out, 0, out->joined ? 2 * out->inner : out->inner, out->width));
    PRN_TRY(read_layer(context, out, 1, out->width, out->inner));
    return read_layer(context, out, 2, out->inner, out->width);
}

/* A layer's weights are [E, n, k / pack], its zero points [E, n, blocks / pack] or, of one block, [E, n / pack],
 * rounded up. */
prn_packed_qint8 prn_moe_packed_codes(const prony_context *context, size_t input)
{
    const prn_moe_inputs *in = prn_variant(context);
    const prn_moe_params *p = context->params;
    for (int l = 0; l < PRN_MOE_LAYERS; l++) {
        const prony_value *weight = prn_input(context, in->weights[l]);
        if ((input != in->weights[l] && input != in->zeros[l]) || !weight || weight->shape.rank != 3) continue;
        const uint64_t n = (uint64_t)prn_shape_count(&weight->shape, 0, 2), pack = 8 / (uint64_t)p->expert_weight_bits;
        const uint64_t k = (uint64_t)weight->shape.dim[2] * pack,
                       blocks = p->block_size ? k / (uint64_t)p->block_size : 1;
        return (prn_packed_qint8){input == in->weights[l] ? n * k : n * blocks, (unsigned)p->expert_weight_bits};
    }
    return (prn_packed_qint8){0};
}

prn_nbit_weights prn_moe_codes(const prn_moe *m, int layer, int64_t expert)
{
    const prn_moe_layer *l = &m->layer[layer];
    const int64_t pack = 8 / m->bits, blocks = m->block ? l->k / m->block : 1, row = l->k / pack;
    const int64_t zeros = m->block ? l->n * prn_ceil_div(blocks, pack) : prn_ceil_div(l->n, pack);
    return (prn_nbit_weights){.k = l->k,
                              .n = l->n,
                              .bits = m->bits,
                              .block = m->block ? m->block : l->k,
                              .blocks = blocks,
                              .codes = (const uint8_t *)l->weight->data + expert * l->n * row,
                              .row_bytes = row,
                              .scales = (const char *)l->scale->data +
                                        prony_dtype_bytes(l->scale->dtype, expert * l->n * blocks),
                              .scale_type = l->scale->dtype,
                              .zeros = l->zero ? (const uint8_t *)l->zero->data + expert * zeros : NULL,
                              .zero_type = PRONY_UINT8,
                              .zero_bytes = m->block ? prn_ceil_div(blocks, pack) : 0};
}

/* The `top` experts of a token, largest logit first, and their weights: of the softmax over all experts, or of
 * `mix`. */
void prn_moe_route(const prn_moe *m, int64_t token, int32_t *expert, float *weight)
{
    const prony_dtype type = m->router->dtype;
    const int64_t first = token * m->experts;
    double top = -(double)INFINITY, all = 0.0, chosen = 0.0;
    for (int64_t k = 0; k < m->top; k++) {
        double best = 0.0;
        int64_t at = -1;
        for (int64_t e = 0; e < m->experts; e++) {
            const double logit = prn_get_f64(m->router->data, type, first + e);
            bool taken = false;
            for (int64_t j = 0; j < k && !taken; j++) taken = expert[j] == e;
            if (taken || (at >= 0 && !(logit >= best))) continue;
            best = logit;
            at = e;
        }
        expert[k] = (int32_t)at;
        top = k == 0 ? best : top;
    }
    for (int64_t e = 0; e < m->experts; e++) all += exp(prn_get_f64(m->router->data, type, first + e) - top);
    for (int64_t k = 0; k < m->top; k++) {
        const int64_t at = first + expert[k];
        const double part =
            m->mix ? prn_get_f64(m->mix->data, type, at) : exp(prn_get_f64(m->router->data, type, at) - top) / all;
        weight[k] = (float)part;
        chosen += part;
    }
    for (int64_t k = 0; k < m->top && m->params->normalize_routing_weights; k++)
        weight[k] = (float)((double)weight[k] / chosen);
}
