/*   x ──┬── Sigmoid ──┐
 *       │             Mul ── y          x ── SiLU ── y
 *       └─────────────┘
 */
#include "engine/rewrites/pass.h"

prony_status prn_rewrite_match_silu(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!prn_node_is(node, "Mul") || node->input_count != 2 || !prn_rewrite_has("SiLU")) return PRONY_OK;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t x = node->inputs[i];
        prn_node_def *sigmoid = prn_rewrite_inner(r, node->inputs[1 - i], "Sigmoid");
        if (!sigmoid || sigmoid->inputs[0] != x || !prn_rewrite_is_f32(r, x)) continue;
        prn_pattern pattern = {{sigmoid}, 1};
        return prn_rewrite_become(r, node, "SiLU", NULL, 0, &x, 1, &pattern);
    }
    return PRONY_OK;
}
