/* Float values described by their 8-bit codes. Invariant: accepted scales are finite and above 0, and codes times
 * scales are finite, so a larger value never has a smaller code. */
#include "engine/rewrites/quantized_value.h"

#include "base/shape.h"
#include "ops/kernels/int8/quantized.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define TYPES_8_BIT (PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8))

/* ---- constants ---- */

static const prony_value *known(const prn_rewriter *r, uint32_t value)
{
    if (value == PRN_NO_VALUE) return NULL;
    const prn_value_def *def = r->program->values[value];
    const bool supported =
        def->constant && def->info.kind == PRONY_TENSOR && def->info.data && prn_shape_known(&def->info.shape);
    return supported ? &def->info : NULL;
}

/* A code times a larger scale may be infinite. */
static const float most_scale = 0x1p119f;

static bool scales_are_sound(const prony_value *scale)
{
    if (!scale || scale->dtype != PRONY_FLOAT32) return false;
    for (int64_t i = 0; i < prony_shape_numel(&scale->shape); i++) {
        const float s = ((const float *)scale->data)[i];
        if (!(s > 0.0f) || !(s <= most_scale)) return false;
    }
    return prony_shape_numel(&scale->shape) > 0;
}

/* Upper bound of sums of products of codes and a bias. */
static const double most_sum = 0x1p32;

bool prn_rewrite_scales_fit(const prn_rewriter *r, uint32_t a, uint32_t b, uint32_t y)
{
    const prony_value *others = b == PRN_NO_VALUE ? NULL : known(r, b);
    const double stored = (double)*(const float *)known(r, y)->data, scale = (double)*(const float *)known(r, a)->data;
    for (int64_t i = 0; i < (others ? prony_shape_numel(&others->shape) : 1); i++) {
        const double step = others ? scale * (double)((const float *)others->data)[i] : scale;
        if (step * most_sum > (double)FLT_MAX || step / stored * most_sum > (double)FLT_MAX) return false;
        const bool counts = step / stored * most_sum > 0x1p-10; /* a thousandth of a code */
        if (others && step < (double)FLT_MIN && counts) return false;
    }
    return true;
}

static int32_t zero_of(const prn_rewriter *r, uint32_t zero)
{
    const prony_value *value = known(r, zero);
    if (!value) return 0;
    return value->dtype == PRONY_UINT8 ? *(const uint8_t *)value->data : *(const int8_t *)value->data;
}

static float scale_of(const prn_rewriter *r, uint32_t scale)
{
    return *(const float *)known(r, scale)->data;
}

static prony_dtype quantized_value_type_of(const prn_rewriter *r, uint32_t value)
{
    return r->program->values[value]->info.dtype;
}

bool prn_rewrite_same_quantization(const prn_rewriter *r, uint32_t scale_a, uint32_t zero_a, uint32_t scale_b,
                                   uint32_t zero_b)
{
    const uint32_t parameters[] = {scale_a, scale_b, zero_a, zero_b};
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        const prony_value *value = known(r, parameters[i]);
        if (parameters[i] == PRN_NO_VALUE && i >= 2) continue;
        if (!value || prony_shape_numel(&value->shape) != 1 || (i < 2 && !scales_are_sound(value))) return false;
    }
    return scale_of(r, scale_a) == scale_of(r, scale_b) && zero_of(r, zero_a) == zero_of(r, zero_b);
}

prony_status prn_quantized_zero(prn_rewriter *r, uint32_t zero, prony_dtype type, uint32_t *out)
{
    *out = zero;
    if (zero != PRN_NO_VALUE) return PRONY_OK;
    void *data = prn_alloc_aligned(64, 4);
    if (!data) return prn_no_memory(r->error);
    memset(data, 0, 4);
    const prony_value info = {.kind = PRONY_TENSOR, .dtype = type, .shape = prn_shape_scalar()};
    return prn_rewrite_add_constant(r, "zero point", &info, data, out);
}

/* ---- dequantized values ---- */

/* The node that makes the value, or made it at bind time. */
static prn_node_def *maker(const prn_rewriter *r, uint32_t value)
{
    if (value == PRN_NO_VALUE) return NULL;
    const prn_value_def *def = r->program->values[value];
    return def->folded_from != PRN_NO_NODE ? r->program->nodes[def->folded_from] : prn_rewrite_producer(r, value);
}

/* true: a plain one, without blocks or scales of other types. */
static bool is_linear(const prn_node_def *node, const char *name)
{
    return node && !node->dynamic && node->binding.op && strcmp(node->info.op_type, name) == 0 &&
           node->binding.op == prn_op_find(node->info.domain, name, node->info.opset) && node->output_count == 1 &&
           prn_node_int(node, "block_size", 0) == 0 && prn_node_int(node, "precision", 0) == 0;
}

bool prn_rewrite_read_quantized(prn_rewriter *r, uint32_t value, uint32_t types, prn_quantized_value *out)
{
    prn_node_def *node = maker(r, value);
    if (!prn_rewrite_is_f32(r, value) || !is_linear(node, "DequantizeLinear")) return false;
    *out = (prn_quantized_value){.node = node,
                                 .codes = node->inputs[0],
                                 .scale = prn_node_input(node, 1),
                                 .zero = prn_node_input(node, 2),
                                 .axis = -1};
    if (out->codes == PRN_NO_VALUE) return false;
    const prony_value *scale = known(r, out->scale), *codes = &r->program->values[out->codes]->info;
    out->type = codes->dtype;
    if (!(types & PRN_TYPE(out->type)) || !scales_are_sound(scale)) return false;
    if (out->zero != PRN_NO_VALUE && !known(r, out->zero)) return false;
    if (prony_shape_numel(&scale->shape) == 1) return true;
    out->axis = prn_node_int(node, "axis", 1);
    return prn_axis_normalize(&out->axis, codes->shape.rank) && scale->shape.rank == 1;
}

bool prn_rewrite_read_quantized_evenly(prn_rewriter *r, uint32_t value, prn_quantized_value *out)
{
    return prn_rewrite_read_quantized(r, value, TYPES_8_BIT, out) && out->axis < 0 &&
           !r->program->values[value]->constant;
}

/* ---- stored values ---- */

/* The code of a bound, as QuantizeLinear makes it. */
static int64_t quantized_value_code_of(float bound, float scale, int32_t zero, int64_t low, int64_t high)
{
    const double code = (double)rintf(bound / scale) + zero;
    return code > (double)low ? (code < (double)high ? (int64_t)code : high) : low;
}

static void bound(const prn_rewriter *r, prn_lowbit *out, float low, float high)
{
    const float scale = scale_of(r, out->scale);
    const int32_t zero = zero_of(r, out->zero);
    const int64_t least = out->low, most = out->high;
    out->low = quantized_value_code_of(low, scale, zero, least, most);
    out->high = quantized_value_code_of(high, scale, zero, least, most);
    out->bounded = out->low != least || out->high != most;
}

bool prn_rewrite_stored(prn_rewriter *r, prn_node_def *node, prn_lowbit *out)
{
    if (node->dead || !is_linear(node, "QuantizeLinear")) return false;
    *out = (prn_lowbit){.node = node,
                        .value = node->inputs[0],
                        .scale = prn_node_input(node, 1),
                        .zero = prn_node_input(node, 2),
                        .type = quantized_value_type_of(r, node->outputs[0])};
    const prony_value *scale = known(r, out->scale);
    if (!(TYPES_8_BIT & PRN_TYPE(out->type)) || !prn_rewrite_is_f32(r, out->value) || !scales_are_sound(scale) ||
        prony_shape_numel(&scale->shape) != 1 || (out->zero != PRN_NO_VALUE && !known(r, out->zero)))
        return false;
    out->low = out->type == PRONY_INT8 ? -128 : 0;
    out->high = out->type == PRONY_INT8 ? 127 : 255;
    prn_node_def *clip = prn_rewrite_inner(r, out->value, "Relu");
    float low = 0.0f, high = INFINITY;
    if (!clip) {
        clip = prn_rewrite_inner(r, out->value, "Clip");
        if (!clip || !prn_rewrite_clip_bounds(r, clip, &low, &high) || !(low <= high)) return true;
    }
    out->value = clip->inputs[0];
    bound(r, out, low, high);
    return prn_pattern_add(&out->pattern, clip);
}

/* ---- all codes ---- */

enum { CODES = 256 };

void prn_rewrite_decode_all(const prn_rewriter *r, const prn_quantized_value *coded, float values[256])
{
    uint8_t codes[CODES];
    float scale[CODES], zero[CODES];
    for (int i = 0; i < CODES; i++) {
        codes[i] = (uint8_t)i;
        scale[i] = scale_of(r, coded->scale);
        zero[i] = (float)zero_of(r, coded->zero);
    }
    prn_dequantize_run(values, codes, coded->type, 0, zero, scale, CODES);
}

void prn_rewrite_encode_all(const prn_rewriter *r, const prn_lowbit *stored, const float values[256],
                            uint8_t codes[256])
{
    static const prn_cast_rule rule = {.saturate = true};
    float steps[CODES], zero[CODES];
    for (int i = 0; i < CODES; i++) {
        steps[i] = values[i] / scale_of(r, stored->scale);
        zero[i] = (float)zero_of(r, stored->zero);
    }
    prn_quantize_run(codes, stored->type, 0, steps, zero, CODES, &rule);
}

/* ---- editing ---- */

size_t prn_node_pick_attributes(const prn_node_def *node, const char *const *names, prn_attr *to)
{
    size_t count = 0;
    for (; *names; names++) {
        const prn_attr *attr = prn_attr_find(node->info.attributes, *names);
        if (attr) to[count++] = *attr;
    }
    return count;
}

prony_status prn_rewrite_absorb_unread(prn_rewriter *r, prn_node_def *keep, const prn_quantized_value *coded)
{
    if (coded->node->dead || r->uses[coded->node->outputs[0]] > 0) return PRONY_OK;
    prn_rewrite_mark_removed(r, coded->node);
    return prn_rewrite_absorb(r, keep, coded->node);
}

prony_status prn_rewrite_is_quantized(prn_rewriter *r, prn_node_def *keep, const char *op, const prn_attr *attributes,
                                      size_t attribute_count, const uint32_t *inputs, uint32_t input_count,
                                      const prn_lowbit *stored, const prn_quantized_value *coded, size_t coded_count)
{
    const uint32_t last = r->program->values[stored->node->outputs[0]]->producer;
    if (op) {
        PRN_TRY(prn_rewrite_become(r, keep, op, attributes, attribute_count, inputs, input_count, &stored->pattern));
    } else {
        PRN_TRY(prn_rewrite_set_inputs(r, keep, inputs, input_count));
        for (size_t k = 0; k < stored->pattern.node_count; k++)
            PRN_TRY(prn_rewrite_absorb(r, keep, stored->pattern.nodes[k]));
    }
    PRN_TRY(prn_rewrite_take_over(r, keep, last));
    for (size_t k = 0; k < coded_count; k++) PRN_TRY(prn_rewrite_absorb_unread(r, keep, &coded[k]));
    return PRONY_OK;
}
