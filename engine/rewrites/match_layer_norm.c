/*   x ──┬── ReduceMean ──┐
 *       │                Sub ──┬── Pow(2) ── ReduceMean ── Add(ε) ── Sqrt ──┐
 *       └────────────────┘     │                                            Div ── y
 *                              └────────────────────────────────────────────┘
 *
 *   x ── LayerNormalization(1) ── y
 *
 * Over the last axis; also with Mul by itself for the square. fold_norm_affine.c adds scale and bias. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

/* The ReduceMean over the last axis that makes `value`, which has one reader. */
static prn_node_def *match_layer_norm_mean_of(const prn_rewriter *r, uint32_t value, prn_pattern *pattern)
{
    prn_node_def *mean = prn_rewrite_inner(r, value, "ReduceMean");
    int64_t axis;
    size_t count;
    if (!mean || prn_node_int(mean, "keepdims", 1) == 0 ||
        !prn_rewrite_int_list(r, mean, "axes", 1, &axis, 1, &count) || count != 1)
        return NULL;
    int rank = r->program->values[mean->inputs[0]]->info.shape.rank;
    return (axis == -1 || axis == rank - 1) && prn_pattern_add(pattern, mean) ? mean : NULL;
}

/* value = deviation², with one reader. */
static bool is_square(const prn_rewriter *r, uint32_t value, uint32_t deviation, prn_pattern *pattern)
{
    prn_node_def *pow = prn_rewrite_inner(r, value, "Pow"), *mul = prn_rewrite_inner(r, value, "Mul");
    if (pow && pow->inputs[0] == deviation && prn_rewrite_scalar_is(r, pow->inputs[1], 2.0) &&
        prn_rewrite_same_shape(r, deviation, value))
        return r->uses[deviation] == 2 && prn_pattern_add(pattern, pow);
    if (mul && mul->input_count == 2 && mul->inputs[0] == deviation && mul->inputs[1] == deviation)
        return r->uses[deviation] == 3 && prn_pattern_add(pattern, mul);
    return false;
}

/* value = √(mean(deviation²) + ε) */
static bool is_spread(const prn_rewriter *r, uint32_t value, uint32_t deviation, double *epsilon, prn_pattern *pattern)
{
    prn_node_def *root = prn_rewrite_inner(r, value, "Sqrt");
    prn_node_def *add = root ? prn_rewrite_inner(r, root->inputs[0], "Add") : NULL;
    int constant = add ? prn_rewrite_scalar_operand(r, add, epsilon) : -1;
    if (constant < 0 || *epsilon < 0.0 || !prn_pattern_add(pattern, root) || !prn_pattern_add(pattern, add))
        return false;
    prn_node_def *variance = match_layer_norm_mean_of(r, add->inputs[1 - constant], pattern);
    return variance && prn_rewrite_same_shape(r, variance->outputs[0], value) &&
           is_square(r, variance->inputs[0], deviation, pattern);
}

prony_status prn_rewrite_match_layer_norm(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    if (!prn_node_is(node, "Div") || node->input_count != 2 || !prn_rewrite_is_f32(r, node->inputs[0]) ||
        !prn_rewrite_has("LayerNormalization"))
        return PRONY_OK;
    prn_pattern pattern = {.node_count = 0};
    double epsilon = 0;
    prn_node_def *sub = prn_rewrite_producer(r, node->inputs[0]);
    if (!sub || !prn_node_is(sub, "Sub") || !prn_pattern_add(&pattern, sub) ||
        !is_spread(r, node->inputs[1], node->inputs[0], &epsilon, &pattern))
        return PRONY_OK;
    uint32_t inputs[] = {sub->inputs[0], PRN_NO_VALUE};
    prn_node_def *mean = match_layer_norm_mean_of(r, sub->inputs[1], &pattern);
    if (!mean || mean->inputs[0] != inputs[0] || !prn_rewrite_same_shape(r, inputs[0], node->outputs[0]))
        return PRONY_OK;
    const prony_shape *shape = &r->program->values[inputs[0]]->info.shape;
    PRN_TRY(prn_rewrite_add_vector(r, node->info.name, shape->dim[shape->rank - 1], 1.0f, &inputs[1]));
    const prn_attr attributes[] = {{.name = "axis", .type = PRN_ATTR_INT, .i = -1},
                                   {.name = "epsilon", .type = PRN_ATTR_FLOAT, .f = (float)epsilon}};
    return prn_rewrite_become(r, node, "LayerNormalization", attributes, 2, inputs, 2, &pattern);
}
