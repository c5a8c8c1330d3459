/*   x ──┬── Div(√2) ── Erf ── Add(1) ──┐
 *       │                              Mul ── Mul(1/2) ── y           x ── Gelu ── y
 *       └──────────────────────────────┘
 *
 *   x ──┬── x + 0.044715 x³ ── Mul(√(2/π)) ── Tanh ── Add(1) ──┐
 *       │                                                      Mul ── Mul(1/2) ── y
 *       └──────────────────────────────────────────────────────┘
 *
 *   x ── Gelu(tanh) ── y
 *
 * In any order of factors and summands, with Div or Mul by constants, and cubes by Pow or by products. */
#include "engine/rewrites/pass.h"

#include <math.h>

static const double sqrt_half = 0.70710678118654752440;
static const double sqrt_2_over_pi = 0.79788456080286535588;

/* value = constant * x^power, through nodes that only this pattern reads. */
static bool match_gelu_is_power(const prn_rewriter *r, uint32_t value, uint32_t x, double constant, int power,
                                prn_pattern *pattern)
{
    prn_factor_product product = {.constant = 1.0};
    if (!prn_rewrite_product_of_value(r, value, &product, pattern) || !prn_rewrite_near(product.constant, constant))
        return false;
    int found = 0;
    for (size_t k = 0; k < product.count; k++) {
        prn_node_def *pow = prn_rewrite_inner(r, product.factors[k], "Pow");
        double exponent;
        if (product.factors[k] == x) {
            found++;
        } else if (pow && pow->inputs[0] == x && prn_rewrite_scalar(r, pow->inputs[1], &exponent) &&
                   (exponent == 2.0 || exponent == 3.0) && prn_pattern_add(pattern, pow)) {
            found += (int)exponent;
        } else {
            return false;
        }
    }
    return found == power;
}

/* value = √(2/π) (x + 0.044715 x³), or √(2/π) x (1 + 0.044715 x²). */
static bool is_tanh_argument(const prn_rewriter *r, uint32_t value, uint32_t x, prn_pattern *pattern)
{
    prn_factor_product product = {.constant = 1.0};
    if (!prn_rewrite_product_of_value(r, value, &product, pattern) || product.count < 1 || product.count > 2 ||
        !prn_rewrite_near(product.constant, sqrt_2_over_pi))
        return false;
    bool factored = product.count == 2;
    uint32_t sum = product.factors[0];
    if (factored && product.factors[0] == x) sum = product.factors[1];
    if (factored && product.factors[0] != x && product.factors[1] != x) return false;
    prn_node_def *add = prn_rewrite_inner(r, sum, "Add");
    if (!add || add->input_count != 2 || !prn_pattern_add(pattern, add)) return false;
    for (uint32_t i = 0; i < 2; i++) {
        bool first = factored ? prn_rewrite_scalar_is(r, add->inputs[i], 1.0) : add->inputs[i] == x;
        if (first) return match_gelu_is_power(r, add->inputs[1 - i], x, 0.044715, factored ? 2 : 3, pattern);
    }
    return false;
}

/* value = 1 + erf(x / √2), or 1 + tanh(…). */
static bool match_gelu_is_gate(const prn_rewriter *r, uint32_t value, uint32_t x, bool *tanh_form, prn_pattern *pattern)
{
    double one;
    prn_node_def *add = prn_rewrite_inner(r, value, "Add");
    int constant = add ? prn_rewrite_scalar_operand(r, add, &one) : -1;
    if (constant < 0 || one != 1.0) return false;
    uint32_t inner = add->inputs[1 - constant];
    prn_node_def *erf = prn_rewrite_inner(r, inner, "Erf"), *tanh = prn_rewrite_inner(r, inner, "Tanh");
    if ((!erf && !tanh) || !prn_pattern_add(pattern, add) || !prn_pattern_add(pattern, erf ? erf : tanh)) return false;
    *tanh_form = tanh != NULL;
    return tanh ? is_tanh_argument(r, tanh->inputs[0], x, pattern)
                : match_gelu_is_power(r, erf->inputs[0], x, sqrt_half, 1, pattern);
}

prony_status prn_rewrite_match_gelu(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if ((!prn_node_is(node, "Mul") && !prn_node_is(node, "Div")) || !prn_rewrite_has("Gelu")) return PRONY_OK;
    for (uint32_t i = 0; i < 2; i++) {
        prn_factor_product product = {.constant = 1.0};
        prn_pattern pattern = {.node_count = 0};
        if (!prn_rewrite_product_of_node(r, node, &product, &pattern) || product.count != 2 ||
            !prn_rewrite_near(product.constant, 0.5))
            return PRONY_OK;
        uint32_t x = product.factors[i];
        bool tanh_form;
        if (!prn_rewrite_is_f32(r, x) || !prn_rewrite_same_shape(r, x, node->outputs[0]) ||
            !match_gelu_is_gate(r, product.factors[1 - i], x, &tanh_form, &pattern))
            continue;
        const prn_attr approximate = {.name = "approximate", .type = PRN_ATTR_STRING, .s = {"tanh", 4}};
        return prn_rewrite_become(r, node, "Gelu", &approximate, tanh_form ? 1 : 0, &x, 1, &pattern);
    }
    return PRONY_OK;
}
