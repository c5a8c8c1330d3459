/*   x ── Conv ──┐                     x ── Conv[+ s] ── y
 *               Add ── y      ──>            │
 *   s ──────────┘                     s ─────┘
 *
 * For every operator that takes post-operations. If both operands could be the Conv, takes the later one, because the
 * other's result exists by then. */
#include "engine/rewrites/pass.h"

static bool can_take(const prn_rewriter *r, const prn_node_def *add, uint32_t operand)
{
    uint32_t value = add->inputs[operand];
    const prn_node_def *node = prn_rewrite_producer(r, value);
    return node && prn_rewrite_used_once(r, value) && prn_node_takes_post_op(node);
}

/* The residual comes after the contraction's own operands, which are at most three. */
static prony_status append_input(prn_rewriter *r, prn_node_def *node, uint32_t value, uint32_t *index)
{
    uint32_t inputs[3 + PRN_MAX_POST_OPS] = {PRN_NO_VALUE, PRN_NO_VALUE, PRN_NO_VALUE};
    uint32_t count = node->input_count < 3 ? 3 : node->input_count;
    for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = node->inputs[i];
    inputs[count] = value;
    *index = count;
    return prn_rewrite_set_inputs(r, node, inputs, count + 1);
}

prony_status prn_rewrite_attach_residual(prn_rewriter *r, uint32_t n)
{
    const prn_node_def *add = r->program->nodes[n];
    if (!(prn_node_is(add, "Add") || prn_node_is(add, "Sum")) || add->input_count != 2) return PRONY_OK;
    for (uint32_t i = 0; i < 2; i++)
        if (!prn_rewrite_is_f32(r, add->inputs[i]) || r->program->values[add->inputs[i]]->constant ||
            !prn_rewrite_same_shape(r, add->inputs[i], add->outputs[0]))
            return PRONY_OK;
    bool can[] = {can_take(r, add, 0), can_take(r, add, 1)};
    if (!can[0] && !can[1]) return PRONY_OK;
    uint32_t taker = can[1] ? 1 : 0;
    if (can[0] && can[1] && r->program->values[add->inputs[0]]->producer > r->program->values[add->inputs[1]]->producer)
        taker = 0;
    prn_node_def *node = prn_rewrite_producer(r, add->inputs[taker]);
    uint32_t index;
    PRN_TRY(append_input(r, node, add->inputs[1 - taker], &index));
    const prn_post_op op = {.kind = PRN_POST_ADD, .input = index};
    if (!prn_node_add_post_op(r->program, node, &op)) return prn_no_memory(r->error);
    return prn_rewrite_take_over(r, node, n);
}
