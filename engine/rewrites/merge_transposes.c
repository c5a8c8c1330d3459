/*   x ── Transpose(p) ── Transpose(q) ── y          x ── Transpose(p∘q) ── y
 */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

prony_status prn_rewrite_merge_transposes(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!prn_node_is(node, "Transpose")) return PRONY_OK;
    prn_node_def *before = prn_rewrite_inner(r, node->inputs[0], "Transpose");
    if (!before) return PRONY_OK;
    int rank = r->program->values[node->inputs[0]]->info.shape.rank;
    int64_t first[PRONY_MAX_RANK], second[PRONY_MAX_RANK];
    prn_rewrite_permutation(r, before, first);
    prn_rewrite_permutation(r, node, second);
    int64_t *perm = prn_bump_alloc(&r->program->pool, (size_t)rank + 1, sizeof *perm);
    if (!perm) return prn_no_memory(r->error);
    for (int i = 0; i < rank; i++) perm[i] = first[second[i]];
    const prn_attr attribute = {.name = "perm", .type = PRN_ATTR_INTS, .ints = perm, .count = (size_t)rank};
    uint32_t input = before->inputs[0];
    prn_pattern pattern = {{before}, 1};
    return prn_rewrite_restate(r, node, &attribute, 1, &input, 1, &pattern);
}
