/*   x ──┬── HardSigmoid(1/6, 1/2) ──┐
 *       │                           Mul ── y                      x ── HardSwish ── y
 *       └───────────────────────────┘
 *
 *   x ──┬── Add(3) ── Clip(0, 6) ──┐
 *       │                          Mul ── Div(6) ── y             x ── HardSwish ── y
 *       └──────────────────────────┘
 *
 * Also with Mul by 1/6 for the division, and with the factors in any order. */
#include "engine/rewrites/pass.h"

/* true: `factor` is the factor that multiplies x: HardSigmoid, or six times it. */
static bool match_hard_swish_is_gate(const prn_rewriter *r, uint32_t factor, uint32_t x, double constant,
                                     prn_pattern *pattern)
{
    prn_node_def *sigmoid = prn_rewrite_inner(r, factor, "HardSigmoid");
    if (sigmoid)
        return sigmoid->inputs[0] == x && prn_rewrite_near(constant, 1.0) &&
               prn_rewrite_near(prn_node_float(sigmoid, "alpha", (double)0.2f), 1.0 / 6.0) &&
               prn_rewrite_near(prn_node_float(sigmoid, "beta", (double)0.5f), 0.5) &&
               prn_pattern_add(pattern, sigmoid);
    prn_shifted_clip clip;
    return prn_rewrite_near(constant, 1.0 / 6.0) && prn_rewrite_shifted_clip(r, factor, &clip, pattern) &&
           clip.x == x && prn_rewrite_near(clip.shift, 3.0) && prn_rewrite_near((double)clip.top, 6.0);
}

prony_status prn_rewrite_match_hard_swish(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if ((!prn_node_is(node, "Mul") && !prn_node_is(node, "Div")) || !prn_rewrite_has("HardSwish")) return PRONY_OK;
    for (uint32_t i = 0; i < 2; i++) {
        prn_factor_product product = {.constant = 1.0};
        prn_pattern pattern = {.node_count = 0};
        if (!prn_rewrite_product_of_node(r, node, &product, &pattern) || product.count != 2) return PRONY_OK;
        uint32_t x = product.factors[i];
        if (prn_rewrite_is_f32(r, x) && prn_rewrite_same_shape(r, x, node->outputs[0]) &&
            match_hard_swish_is_gate(r, product.factors[1 - i], x, product.constant, &pattern))
            return prn_rewrite_become(r, node, "HardSwish", NULL, 0, &x, 1, &pattern);
    }
    return PRONY_OK;
}
