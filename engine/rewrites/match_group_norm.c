/*   x ── Reshape([N, G, …]) ── InstanceNormalization(1, 0) ── Reshape(as x) ── y
 *
 *   x ── GroupNormalization(G groups, 1, 0) ── y
 *
 * fold_norm_affine.c adds scale and shift of each channel. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

/* true: input i is a constant vector with known data and all elements `wanted`. */
static bool vector_is(const prn_rewriter *r, const prn_node_def *norm, uint32_t i, float wanted)
{
    return r->program->values[norm->inputs[i]]->info.shape.rank == 1 && prn_rewrite_is_all(r, norm->inputs[i], wanted);
}

/* true: the channels of `grouped` are groups of x's channels, and images are not mixed. */
static bool are_groups(const prony_shape *x, const prony_shape *grouped)
{
    return x->rank >= 3 && grouped->rank >= 3 && grouped->dim[0] == x->dim[0] && grouped->dim[1] > 0 &&
           x->dim[1] % grouped->dim[1] == 0 && prony_shape_numel(x) > 0;
}

prony_status prn_rewrite_match_group_norm(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!prn_node_is(node, "Reshape") || !prn_rewrite_is_f32(r, node->inputs[0]) ||
        !prn_rewrite_has("GroupNormalization"))
        return PRONY_OK;
    prn_pattern pattern = {.node_count = 0};
    prn_node_def *norm = prn_rewrite_inner(r, node->inputs[0], "InstanceNormalization");
    prn_node_def *grouping = norm && !norm->post_ops ? prn_rewrite_inner(r, norm->inputs[0], "Reshape") : NULL;
    if (!grouping || !prn_rewrite_same_shape(r, grouping->inputs[0], node->outputs[0]) ||
        !prn_pattern_add(&pattern, norm) || !prn_pattern_add(&pattern, grouping))
        return PRONY_OK;
    const prony_shape *x = &r->program->values[grouping->inputs[0]]->info.shape;
    const prony_shape *grouped = &r->program->values[norm->inputs[0]]->info.shape;
    if (!are_groups(x, grouped) || !vector_is(r, norm, 1, 1.0f) || !vector_is(r, norm, 2, 0.0f)) return PRONY_OK;
    const prn_attr attributes[] = {
        {.name = "num_groups", .type = PRN_ATTR_INT, .i = grouped->dim[1]},
        {.name = "epsilon", .type = PRN_ATTR_FLOAT, .f = (float)prn_node_float(norm, "epsilon", 1e-5)}};
    uint32_t inputs[] = {grouping->inputs[0], PRN_NO_VALUE, PRN_NO_VALUE};
    PRN_TRY(prn_rewrite_add_vector(r, node->info.name, x->dim[1], 1.0f, &inputs[1]));
    PRN_TRY(prn_rewrite_add_vector(r, node->info.name, x->dim[1], 0.0f, &inputs[2]));
    return prn_rewrite_become(r, node, "GroupNormalization", attributes, 2, inputs, 3, &pattern);
}
