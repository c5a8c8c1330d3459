/*   x ── Add(b) ── Clip(0, m) ── Div(m) ── y          x ── HardSigmoid(1/m, b/m) ── y
 *
 * Also with Mul by 1/m at the end. */
#include "engine/rewrites/pass.h"

#include <math.h>

bool prn_rewrite_shifted_clip(const prn_rewriter *r, uint32_t value, prn_shifted_clip *out, prn_pattern *pattern)
{
    float low;
    prn_node_def *clip = prn_rewrite_inner(r, value, "Clip");
    if (!clip || !prn_rewrite_clip_bounds(r, clip, &low, &out->top) || low != 0.0f || !(out->top > 0.0f) ||
        isinf(out->top))
        return false;
    prn_node_def *add = prn_rewrite_inner(r, clip->inputs[0], "Add");
    if (!add) return false;
    int constant = prn_rewrite_scalar_operand(r, add, &out->shift);
    if (constant < 0) return false;
    out->x = add->inputs[1 - constant];
    return prn_rewrite_is_f32(r, out->x) && prn_rewrite_same_shape(r, out->x, value) &&
           prn_pattern_add(pattern, clip) && prn_pattern_add(pattern, add);
}

prony_status prn_rewrite_match_hard_sigmoid(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    bool is_div = prn_node_is(node, "Div");
    double factor;
    if ((!is_div && !prn_node_is(node, "Mul")) || !prn_rewrite_has("HardSigmoid")) return PRONY_OK;
    int constant = prn_rewrite_scalar_operand(r, node, &factor);
    if (constant < 0 || (is_div && constant != 1)) return PRONY_OK;
    prn_shifted_clip clip;
    prn_pattern pattern = {.node_count = 0};
    if (!prn_rewrite_shifted_clip(r, node->inputs[1 - constant], &clip, &pattern)) return PRONY_OK;
    if (!prn_rewrite_near(is_div ? factor : 1.0 / factor, (double)clip.top) ||
        !prn_rewrite_same_shape(r, clip.x, node->outputs[0]))
        return PRONY_OK;
    const prn_attr attributes[] = {
        {.name = "alpha", .type = PRN_ATTR_FLOAT, .f = (float)(1.0 / (double)clip.top)},
        {.name = "beta", .type = PRN_ATTR_FLOAT, .f = (float)(clip.shift / (double)clip.top)}};
    return prn_rewrite_become(r, node, "HardSigmoid", attributes, 2, &clip.x, 1, &pattern);
}
