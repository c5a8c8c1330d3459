/*       ┌── Sub ── a ──                    ┌── a ──
 *   x ──┤                          x ── Sub ──┤
 *       └── Sub ── b ──                    └── b ──
 *
 * Two nodes of the same operator, attributes and inputs make the same values: the first makes them for both and absorbs
 * the second. The model's arithmetic stays counted. Nodes with shapes known at run time only are counted when they run,
 * once; so these are shared only without arithmetic (NonZero, Transpose and similar). */
#include "engine/rewrites/pass.h"

#include "base/hash/keyed_hash.h"
#include "base/threads/cancel.h"
#include "engine/bind/congruent_nodes.h"

#include <string.h>

/* true: the operator, with shapes known at run time only, has no arithmetic. */
static bool is_moving_only(const prn_node_def *node)
{
    const prn_op *op = node->binding.op;
    return node->binding.cost == prn_cost_none && !(op->flags & (PRN_OP_OPEN | PRN_OP_OTHER_FORM)) &&
           op == prn_op_find(node->info.domain, node->info.op_type, node->info.opset);
}

static bool is_pure(const prn_rewriter *r, const prn_node_def *node)
{
    if (node->dead || !node->binding.op || node->child_count || node->post_ops ||
        (node->binding.op->flags & PRN_OP_ONCE_PER_RUN) ||
        !(node->dynamic ? is_moving_only(node) : prn_node_is(node, node->info.op_type)))
        return false;
    for (uint32_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE && r->program->values[node->outputs[k]]->output) return false;
    return true;
}

/* Hashes what prn_attributes_equal compares. */
static void add_attribute(prn_keyed_hash *hash, const prn_attr *a)
{
    prn_keyed_hash_word(hash, (uint64_t)a->type);
    prn_keyed_hash_text(hash, a->name);
    switch (a->type) {
    case PRN_ATTR_INT:
        prn_keyed_hash_word(hash, (uint64_t)a->i);
        break;
    case PRN_ATTR_FLOAT:
        prn_keyed_hash_bytes(hash, &a->f, sizeof a->f);
        break;
    case PRN_ATTR_STRING:
        prn_keyed_hash_bytes(hash, a->s.data, a->s.size);
        break;
    case PRN_ATTR_INTS:
        prn_keyed_hash_bytes(hash, a->ints, a->count * sizeof *a->ints);
        break;
    case PRN_ATTR_FLOATS:
        prn_keyed_hash_bytes(hash, a->floats, a->count * sizeof *a->floats);
        break;
    default:
        prn_keyed_hash_word(hash, (uint64_t)(uintptr_t)a);
    }
}

/* Hashes what same_node compares. */
static uint64_t share_subexpressions_hash_of(const prn_node_def *node)
{
    prn_keyed_hash hash;
    prn_keyed_hash_init(&hash);
    prn_keyed_hash_word(&hash, (uint64_t)(uintptr_t)node->binding.op);
    prn_keyed_hash_word(&hash, (uint64_t)node->info.opset);
    prn_keyed_hash_word(&hash, (uint64_t)node->input_count << 32 | node->output_count);
    for (uint32_t i = 0; i < node->input_count; i++) prn_keyed_hash_word(&hash, node->inputs[i]);
    for (uint32_t k = 0; k < node->output_count; k++) prn_keyed_hash_word(&hash, node->outputs[k] == PRN_NO_VALUE);
    for (size_t a = 0; a < node->info.attributes->count; a++) add_attribute(&hash, &node->info.attributes->items[a]);
    return prn_keyed_hash_end(&hash);
}

static bool same_list(const void *a, const void *b, size_t count, size_t size)
{
    return a == b || count == 0 || (a && b && memcmp(a, b, count * size) == 0);
}

static bool same_node(const prn_node_def *a, const prn_node_def *b)
{
    const prn_attr_list *left = a->info.attributes, *right = b->info.attributes;
    if (a->binding.op != b->binding.op || a->info.opset != b->info.opset || a->input_count != b->input_count ||
        a->output_count != b->output_count || !same_list(a->inputs, b->inputs, a->input_count, sizeof *a->inputs))
        return false;
    for (uint32_t k = 0; k < a->output_count; k++)
        if ((a->outputs[k] == PRN_NO_VALUE) != (b->outputs[k] == PRN_NO_VALUE)) return false;
    return prn_attributes_equal(left, right);
}

static prony_status share_subexpressions_share(prn_rewriter *r, prn_node_def *first, prn_node_def *second)
{
    PRN_TRY(prn_rewrite_absorb(r, first, second));
    for (uint32_t k = 0; k < first->output_count; k++)
        if (first->outputs[k] != PRN_NO_VALUE) prn_rewrite_replace_uses(r, second->outputs[k], first->outputs[k]);
    return PRONY_OK;
}

prony_status prn_rewrite_share_subexpressions(prn_rewriter *r)
{
    const prn_program *p = r->program;
    size_t slots = 16;
    while (slots < 2 * p->node_count) slots *= 2;
    uint32_t *table = prn_calloc(slots, sizeof *table); /* node index + 1 */
    if (!table) return prn_no_memory(r->error);
    prony_status status = PRONY_OK;
    for (uint32_t n = 0; n < p->node_count && status == PRONY_OK; n++) {
        status = prn_cancel_check(r->error);
        if (!is_pure(r, p->nodes[n])) continue;
        size_t slot = (size_t)share_subexpressions_hash_of(p->nodes[n]) & (slots - 1);
        while (table[slot] && !same_node(p->nodes[table[slot] - 1], p->nodes[n])) slot = (slot + 1) & (slots - 1);
        if (table[slot])
            status = share_subexpressions_share(r, p->nodes[table[slot] - 1], p->nodes[n]);
        else
            table[slot] = n + 1;
    }
    prn_free(table);
    return status;
}
