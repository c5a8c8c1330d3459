/*   x codes ── DequantizeLinear ── MaxPool ── QuantizeLinear ── y codes        x codes ── MaxPool ── y codes
 *
 * For operators that only move elements or take the largest, if scale and zero point are the same before and after, for
 * every operand of a Concat. Averages over windows become QLinearAveragePool and QLinearGlobalAveragePool, whose scales
 * may differ. */
#include "engine/rewrites/quantized_value.h"

#include <string.h>

enum { MOST_OPERANDS = 32 };

/* true: the operator accepts codes. MaxPool of 8-bit values exists from opset 12 on. */
static bool moves(const prn_node_def *node)
{
    static const char *const movers[] = {"Reshape", "Flatten", "Transpose", "Squeeze",  "Unsqueeze",
                                         "Slice",   "Concat",  "Expand",    "Identity", NULL};
    if (prn_node_is(node, "MaxPool")) return node->output_count == 1 && node->info.opset >= 12;
    return node->output_count == 1 && prn_node_is_any(node, movers);
}

/* A view is not a step, so the layers of its DequantizeLinear and QuantizeLinear go to the node that makes its
 * codes. */
static prn_node_def *quantize_moves_heir_of(const prn_rewriter *r, uint32_t codes)
{
    prn_node_def *node = prn_rewrite_producer(r, codes);
    while (node && (node->binding.op->flags & PRN_OP_VIEW)) node = prn_rewrite_producer(r, node->inputs[0]);
    return node;
}

static prony_status move_view(prn_rewriter *r, prn_node_def *node, const uint32_t *inputs, const prn_lowbit *stored,
                              const prn_quantized_value *coded)
{
    const uint32_t last = r->program->values[stored->node->outputs[0]]->producer;
    prn_node_def *heir = quantize_moves_heir_of(r, coded->codes);
    if (!heir) return PRONY_OK;
    PRN_TRY(prn_rewrite_set_inputs(r, node, inputs, node->input_count));
    prn_rewrite_mark_removed(r, stored->node);
    PRN_TRY(prn_rewrite_absorb(r, heir, stored->node));
    for (size_t k = 0; k < stored->pattern.node_count; k++) { /* a bound that has no effect */
        prn_rewrite_mark_removed(r, stored->pattern.nodes[k]);
        PRN_TRY(prn_rewrite_absorb(r, heir, stored->pattern.nodes[k]));
    }
    PRN_TRY(prn_rewrite_take_place(r, node, last));
    return prn_rewrite_absorb_unread(r, heir, coded);
}

static prony_status move_codes(prn_rewriter *r, prn_node_def *node, const prn_lowbit *stored)
{
    const uint32_t parts = prn_node_is(node, "Concat") ? node->input_count : 1;
    prn_quantized_value coded[MOST_OPERANDS];
    uint32_t inputs[MOST_OPERANDS];
    if (node->input_count > MOST_OPERANDS || node->input_count < 1 || stored->bounded) return PRONY_OK;
    for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = node->inputs[i];
    for (uint32_t i = 0; i < parts; i++) {
        if (!prn_rewrite_read_quantized_evenly(r, inputs[i], &coded[i]) || coded[i].type != stored->type ||
            !prn_rewrite_same_quantization(r, coded[i].scale, coded[i].zero, stored->scale, stored->zero))
            return PRONY_OK;
        inputs[i] = coded[i].codes;
    }
    if (node->binding.op->flags & PRN_OP_VIEW) return move_view(r, node, inputs, stored, coded);
    return prn_rewrite_is_quantized(r, node, NULL, NULL, 0, inputs, node->input_count, stored, coded, parts);
}

/* QLinearAveragePool has the attributes of AveragePool up to opset 11; dilations came later. */
static const char *const pool_attributes[] = {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads",
                                              "strides",  NULL};

static prony_status average_codes(prn_rewriter *r, prn_node_def *node, const prn_lowbit *stored)
{
    const bool global = prn_node_is(node, "GlobalAveragePool");
    const int rank = r->program->values[node->inputs[0]]->info.shape.rank;
    prn_quantized_value coded;
    prn_attr attributes[sizeof pool_attributes / sizeof *pool_attributes];
    if (!global && !prn_node_is(node, "AveragePool")) return PRONY_OK;
    if (stored->bounded || rank < 3 || rank > 5) return PRONY_OK;
    if (!prn_rewrite_read_quantized_evenly(r, node->inputs[0], &coded) || coded.type != stored->type) return PRONY_OK;
    if (!prn_rewrite_scales_fit(r, coded.scale, PRN_NO_VALUE, stored->scale)) return PRONY_OK;
    if (!global && prn_attr_find(node->info.attributes, "dilations")) return PRONY_OK;
    const size_t count = global ? 0 : prn_node_pick_attributes(node, pool_attributes, attributes);
    uint32_t inputs[5] = {coded.codes, coded.scale, 0, stored->scale, 0};
    PRN_TRY(prn_quantized_zero(r, coded.zero, coded.type, &inputs[2]));
    PRN_TRY(prn_quantized_zero(r, stored->zero, stored->type, &inputs[4]));
    return prn_rewrite_is_quantized(r, node, global ? "QLinearGlobalAveragePool" : "QLinearAveragePool", attributes,
                                    count, inputs, 5, stored, &coded, 1);
}

prony_status prn_rewrite_quantize_moves(prn_rewriter *r, uint32_t n)
{
    prn_lowbit stored;
    if (!prn_rewrite_stored(r, r->program->nodes[n], &stored) || !prn_rewrite_used_once(r, stored.value))
        return PRONY_OK;
    prn_node_def *node = prn_rewrite_producer(r, stored.value);
    if (!node || node->dynamic || node->output_count != 1) return PRONY_OK;
    return moves(node) ? move_codes(r, node, &stored) : average_codes(r, node, &stored);
}
