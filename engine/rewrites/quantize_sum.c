/*   a codes ── DequantizeLinear ──┐                                        a codes ──┐
 *                                 Add ── Relu ── QuantizeLinear ── y codes           QAdd[low, high] ── y codes
 *   b codes ── DequantizeLinear ──┘                                        b codes ──┘
 *
 *   x codes ── QConv ── a codes ──┐                                        x codes ── QConv[+ b] ── y codes
 *                                 QAdd ── y codes                                       │
 *   b codes ──────────────────────┘                                        b codes ─────┘
 *
 * The same for Mul, which becomes QMul; operands are broadcast. The convolution rounds to a's codes before it adds, so
 * the second rewrite, for operands of one shape, changes no code. */
#include "engine/rewrites/quantized_value.h"

#include <string.h>

enum { A = 0, B = 3, Y_SCALE = 6, Y_ZERO = 7, ADD_INPUTS = 8, RESIDUAL = 9, CONV_INPUTS = 14 };

/* The stored sum or product of two operands; NULL: another operator, or one with other readers. */
static prn_node_def *binary_of(const prn_rewriter *r, uint32_t value)
{
    prn_node_def *node = prn_rewrite_inner(r, value, "Add");
    if (!node) node = prn_rewrite_inner(r, value, "Mul");
    return node && node->input_count == 2 ? node : NULL;
}

prony_status prn_rewrite_quantize_sum(prn_rewriter *r, uint32_t n)
{
    prn_lowbit stored;
    prn_quantized_value coded[2];
    if (!prn_rewrite_stored(r, r->program->nodes[n], &stored)) return PRONY_OK;
    prn_node_def *node = binary_of(r, stored.value);
    if (!node) return PRONY_OK;
    uint32_t inputs[ADD_INPUTS];
    for (uint32_t k = 0; k < 2; k++)
        if (!prn_rewrite_read_quantized_evenly(r, node->inputs[k], &coded[k])) return PRONY_OK;
    const bool adds = prn_node_is(node, "Add");
    if (!prn_rewrite_scales_fit(r, coded[0].scale, adds ? PRN_NO_VALUE : coded[1].scale, stored.scale)) return PRONY_OK;
    if (adds && !prn_rewrite_scales_fit(r, coded[1].scale, PRN_NO_VALUE, stored.scale)) return PRONY_OK;
    for (uint32_t k = 0; k < 2; k++) {
        inputs[k * B] = coded[k].codes;
        inputs[k * B + 1] = coded[k].scale;
        PRN_TRY(prn_quantized_zero(r, coded[k].zero, coded[k].type, &inputs[k * B + 2]));
    }
    inputs[Y_SCALE] = stored.scale;
    PRN_TRY(prn_quantized_zero(r, stored.zero, stored.type, &inputs[Y_ZERO]));
    const prn_attr bounds[] = {{.name = "low", .type = PRN_ATTR_INT, .i = stored.low},
                               {.name = "high", .type = PRN_ATTR_INT, .i = stored.high}};
    return prn_rewrite_is_quantized(r, node, adds ? "QAdd" : "QMul", bounds, 2, inputs, ADD_INPUTS, &stored, coded, 2);
}

/* ---- the second rewrite ---- */

static bool is_conv(const prn_node_def *node)
{
    return (prn_node_is(node, "QLinearConv") || prn_node_is(node, "QConv")) && node->input_count <= RESIDUAL;
}

/* A convolution without a residual, read by this operand alone, with the same scale and zero point. */
static prn_node_def *quantize_sum_conv_of(const prn_rewriter *r, const prn_node_def *add, uint32_t operand)
{
    const uint32_t value = add->inputs[operand];
    prn_node_def *node = prn_rewrite_producer(r, value);
    if (!node || !prn_rewrite_used_once(r, value) || !is_conv(node)) return NULL;
    return prn_rewrite_same_quantization(r, prn_node_input(node, Y_SCALE), prn_node_input(node, Y_ZERO),
                                         add->inputs[operand + 1], add->inputs[operand + 2])
               ? node
               : NULL;
}

/* QConv's bounds come first and now bound the intermediate value; QLinearConv has none. */
static const char *const conv_attributes[] = {"low",          "high", "auto_pad", "dilations", "group",
                                              "kernel_shape", "pads", "strides",  NULL};
enum { CONV_ATTRIBUTES = sizeof conv_attributes / sizeof *conv_attributes, BOUNDS = 2 };

static prony_status quantize_sum_join(prn_rewriter *r, prn_node_def *conv, const prn_node_def *add, uint32_t taken,
                                      uint32_t n)
{
    const uint32_t other = taken == A ? B : A;
    uint32_t inputs[CONV_INPUTS];
    static const char *const bounds[] = {"low", "high", NULL};
    prn_attr attributes[CONV_ATTRIBUTES + BOUNDS];
    const bool bounded = prn_node_is(conv, "QConv");
    size_t count = prn_node_pick_attributes(conv, conv_attributes + (bounded ? 0 : BOUNDS), attributes);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(attributes[i].name, "low") == 0) attributes[i].name = "middle_low";
        if (strcmp(attributes[i].name, "high") == 0) attributes[i].name = "middle_high";
    }
    count += prn_node_pick_attributes(add, bounds, attributes + count);
    for (uint32_t i = 0; i < RESIDUAL; i++) inputs[i] = prn_node_input(conv, i);
    for (uint32_t i = 0; i < 3; i++) inputs[RESIDUAL + i] = add->inputs[other + i];
    inputs[12] = inputs[6]; /* the former output scale is now the intermediate scale */
    inputs[13] = inputs[7];
    inputs[6] = add->inputs[Y_SCALE];
    inputs[7] = add->inputs[Y_ZERO];
    PRN_TRY(prn_rewrite_become(r, conv, "QConv", attributes, count, inputs, CONV_INPUTS, NULL));
    return prn_rewrite_take_over(r, conv, n);
}

prony_status prn_rewrite_attach_quantized_residual(prn_rewriter *r, uint32_t n)
{
    const prn_node_def *add = r->program->nodes[n];
    if (!prn_node_is(add, "QAdd") || !prn_rewrite_same_shape(r, add->inputs[A], add->inputs[B])) return PRONY_OK;
    prn_node_def *a = quantize_sum_conv_of(r, add, A), *b = quantize_sum_conv_of(r, add, B);
    if (add->inputs[A] == add->inputs[B] || (!a && !b)) return PRONY_OK;
    bool second = b != NULL;
    if (a && b) second = r->program->values[add->inputs[B]]->producer > r->program->values[add->inputs[A]]->producer;
    return quantize_sum_join(r, second ? b : a, add, second ? B : A, n);
}
