/*   x ── Unsqueeze ── Reshape ── y          x ── Reshape ── y
 *
 * For any two of Reshape, Flatten, Squeeze and Unsqueeze. */
#include "engine/rewrites/pass.h"

static bool is_reshape(const prn_node_def *node)
{
    return prn_node_is(node, "Reshape") || prn_node_is(node, "Flatten") || prn_node_is(node, "Squeeze") ||
           prn_node_is(node, "Unsqueeze");
}

prony_status prn_rewrite_merge_reshapes(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!is_reshape(node) || !prn_rewrite_has("Reshape")) return PRONY_OK;
    prn_node_def *before = prn_rewrite_producer(r, node->inputs[0]);
    if (!before || !is_reshape(before) || !prn_rewrite_used_once(r, node->inputs[0])) return PRONY_OK;
    prn_pattern pattern = {{before}, 1};
    return prn_rewrite_become_reshape(r, node, before->inputs[0], &pattern);
}
