/*   x codes ── DequantizeLinear ── Sigmoid ── QuantizeLinear ── y codes          x codes ── QMap[table] ── y codes
 *
 * For chains of elementwise operators of one operand, or of one operand and constants of one element. The table holds
 * their results for all 256 codes, computed here by the same kernels. So the codes are the same as without the
 * rewrite. */
#include "engine/rewrites/quantized_value.h"

#include "engine/bind/node.h"

enum { CODES = 256, MOST_INPUTS = 3 };

bool prn_rewrite_is_elementwise(const prn_node_def *node)
{
    static const char *const names[] = {"Relu",     "Clip",   "LeakyRelu",   "ThresholdedRelu",
                                        "Sigmoid",  "Tanh",   "HardSigmoid", "HardSwish",
                                        "SiLU",     "Swish",  "Gelu",        "QuickGelu",
                                        "Elu",      "Selu",   "Celu",        "Softplus",
                                        "Softsign", "Mish",   "Erf",         "Exp",
                                        "Log",      "Sqrt",   "Reciprocal",  "Abs",
                                        "Neg",      "Sign",   "Floor",       "Ceil",
                                        "Round",    "Shrink", "Sin",         "Cos",
                                        "Tan",      "Asin",   "Acos",        "Atan",
                                        "Sinh",     "Cosh",   "Asinh",       "Acosh",
                                        "Atanh",    "Add",    "Sub",         "Mul",
                                        "Div",      "Pow",    "Min",         "Max",
                                        "PRelu",    NULL};
    return prn_node_is_any(node, names) && node->output_count == 1 && node->input_count <= MOST_INPUTS &&
           !node->post_ops;
}

/* The one operand that is not a constant of one element; PRN_NO_VALUE: none, or several. */
static uint32_t quantize_maps_operand_of(const prn_rewriter *r, const prn_node_def *node)
{
    uint32_t found = PRN_NO_VALUE;
    for (uint32_t i = 0; i < node->input_count; i++) {
        double unused;
        const uint32_t value = node->inputs[i];
        if (value == PRN_NO_VALUE || prn_rewrite_scalar(r, value, &unused)) continue;
        if (found != PRN_NO_VALUE) return PRN_NO_VALUE;
        found = value;
    }
    return found != PRN_NO_VALUE && prn_rewrite_same_shape(r, found, node->outputs[0]) ? found : PRN_NO_VALUE;
}

/* Finds the nodes between a dequantized value and the stored one, the last one first. */
static bool find_chain(prn_rewriter *r, uint32_t value, prn_pattern *chain, prn_quantized_value *coded)
{
    chain->node_count = 0;
    while (!prn_rewrite_read_quantized_evenly(r, value, coded)) {
        prn_node_def *node = prn_rewrite_producer(r, value);
        if (!node || !prn_rewrite_is_elementwise(node) || !prn_rewrite_used_once(r, value) ||
            !prn_rewrite_is_f32(r, value))
            return false;
        value = quantize_maps_operand_of(r, node);
        if (value == PRN_NO_VALUE || !prn_pattern_add(chain, node)) return false;
    }
    return chain->node_count > 0;
}

/* Applies `node` to the floats in `from`, with the rank of its output, by its kernel for plain layouts. */
static prony_status quantize_maps_apply(const prn_rewriter *r, const prn_node_def *node, float *from, float *to)
{
    prony_context context = prn_node_context(r->program, node, r->error);
    const prony_value *inputs[MOST_INPUTS];
    prony_value x = {.kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32}, y;
    const uint32_t operand = quantize_maps_operand_of(r, node);
    x.shape.rank = node->output_values[0]->shape.rank > 0 ? node->output_values[0]->shape.rank : 1;
    for (int d = 0; d < x.shape.rank; d++) x.shape.dim[d] = 1;
    x.shape.dim[x.shape.rank - 1] = CODES;
    y = x;
    x.data = from;
    y.data = to;
    prony_value *outputs[] = {&y};
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_operand = node->inputs[i] == operand && operand != PRN_NO_VALUE;
        inputs[i] = is_operand ? &x : node->input_values[i];
    }
    context.inputs = inputs;
    context.outputs = outputs;
    return prn_node_run_once(node, &context, NULL);
}

/* Codes to floats, the chain, and floats to codes again. */
static prony_status fill_table(prn_rewriter *r, const prn_pattern *chain, const prn_quantized_value *coded,
                               const prn_lowbit *stored, uint8_t *table)
{
    _Alignas(64) float values[2][CODES];
    prn_rewrite_decode_all(r, coded, values[0]);
    for (size_t i = 0; i < chain->node_count; i++)
        PRN_TRY(quantize_maps_apply(r, chain->nodes[chain->node_count - 1 - i], values[i % 2], values[(i + 1) % 2]));
    prn_rewrite_encode_all(r, stored, values[chain->node_count % 2], table);
    return PRONY_OK;
}

prony_status prn_rewrite_quantize_maps(prn_rewriter *r, uint32_t n)
{
    prn_lowbit stored;
    prn_quantized_value coded;
    prn_pattern chain;
    if (!prn_rewrite_stored(r, r->program->nodes[n], &stored)) return PRONY_OK;
    if (!find_chain(r, stored.node->inputs[0], &chain, &coded)) return PRONY_OK;
    uint8_t *table = prn_alloc_aligned(64, CODES);
    if (!table) return prn_no_memory(r->error);
    const prony_status status = fill_table(r, &chain, &coded, &stored, table);
    if (status != PRONY_OK) {
        prn_free_aligned(table);
        return status;
    }
    const prony_value info = {.kind = PRONY_TENSOR, .dtype = stored.type, .shape = {.rank = 1, .dim = {CODES}}};
    uint32_t inputs[] = {coded.codes, PRN_NO_VALUE};
    PRN_TRY(prn_rewrite_add_constant(r, "table of codes", &info, table, &inputs[1]));
    prn_node_def *keep = chain.nodes[0];
    stored.pattern.node_count = 0;
    for (size_t i = 1; i < chain.node_count; i++)
        if (!prn_pattern_add(&stored.pattern, chain.nodes[i])) return PRONY_OK;
    return prn_rewrite_is_quantized(r, keep, "QMap", NULL, 0, inputs, 2, &stored, &coded, 1);
}
