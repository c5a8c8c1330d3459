/*   x ── Expand ── Mul(., z) ── y          x ── Mul(., z) ── y
 *
 * Drops an Expand before an operator that broadcasts its operands itself, if the result keeps its shape. Exports of
 * x.expand_as(z) have this pattern. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

static bool broadcasts(const prn_node_def *node)
{
    static const char *const names[] = {"Add",         "Sub",   "Mul",   "Div",     "Pow",  "Min",
                                        "Max",         "Where", "Equal", "Greater", "Less", "GreaterOrEqual",
                                        "LessOrEqual", "And",   "Or",    "Xor",     NULL};
    return prn_node_is_any(node, names);
}

/* true: the result's shape is the same with value `instead` as input `input`. */
static bool keeps_shape(const prn_rewriter *r, const prn_node_def *node, uint32_t input, uint32_t instead)
{
    prn_value_def *const *values = r->program->values;
    prony_shape all = values[instead]->info.shape;
    if (!prn_shape_known(&all)) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i == input) continue;
        if (node->inputs[i] == PRN_NO_VALUE || !prn_shape_known(&values[node->inputs[i]]->info.shape)) return false;
        const prony_shape before = all;
        if (!prn_shape_broadcast(&all, &before, &values[node->inputs[i]]->info.shape)) return false;
    }
    return prn_shape_equal(&all, &values[node->outputs[0]]->info.shape);
}

prony_status prn_rewrite_drop_expand(prn_rewriter *r, uint32_t n)
{
    prn_program *p = r->program;
    prn_node_def *node = p->nodes[n];
    if (!broadcasts(node) || prn_dynamic_dims_affect(p->values[node->outputs[0]]->extents))
        return PRONY_OK; /* shapes may agree by chance */
    for (uint32_t i = 0; i < node->input_count; i++) {
        prn_node_def *expand = prn_rewrite_inner(r, node->inputs[i], "Expand");
        if (!expand || !keeps_shape(r, node, i, expand->inputs[0])) continue;
        uint32_t *inputs = prn_bump_alloc(&p->pool, node->input_count, sizeof *inputs);
        if (!inputs) return prn_no_memory(r->error);
        for (uint32_t k = 0; k < node->input_count; k++) inputs[k] = k == i ? expand->inputs[0] : node->inputs[k];
        prn_rewrite_mark_removed(r, expand);
        PRN_TRY(prn_rewrite_set_inputs(r, node, inputs, node->input_count));
        PRN_TRY(prn_rewrite_absorb(r, node, expand));
    }
    return PRONY_OK;
}
