/*   x [1, C, H] ── Transpose(1, 0, 2) ── y [C, 1, H]          x ── Reshape([C, 1, H]) ── y
 *
 * If only axes of extent 1 move, no element moves. */
#include "engine/rewrites/pass.h"

prony_status prn_rewrite_transpose_as_reshape(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!prn_node_is(node, "Transpose") || !prn_rewrite_has("Reshape")) return PRONY_OK;
    const prony_shape *shape = &r->program->values[node->inputs[0]]->info.shape;
    int64_t perm[PRONY_MAX_RANK], last = -1;
    prn_rewrite_permutation(r, node, perm);
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[perm[i]] == 1) continue;
        if (perm[i] < last) return PRONY_OK;
        last = perm[i];
    }
    return prn_rewrite_become_reshape(r, node, node->inputs[0], NULL);
}
