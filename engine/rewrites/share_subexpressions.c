/*       ┌── Sub ── a ──                    ┌── a ──
 *   x ──┤                          x ── Sub ──┤
 *       └── Sub ── b ──                    └── b ──
 *
 * Two nodes of the same operator, attributes and inputs make the same values: the first makes them for both and absorbs
 * the second. The model's arithmetic stays counted as the model has it; what a node costs whose shapes a run knows only is
 * counted when it runs, once, so those are shared where there is no arithmetic (NonZero, Transpose and their like). */
#include "engine/rewrites/rewrites.h"

#include <string.h>

/* Of a node whose shapes only a run knows. */
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

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
}

static uint64_t hash_of_bytes(const void *data, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i++) hash = mix(hash, ((const uint8_t *)data)[i]);
    return hash;
}

/* As same_attribute compares. */
static uint64_t hash_of_attribute(const prn_attr *a)
{
    switch (a->type) {
    case PRN_ATTR_INT:
        return (uint64_t)a->i;
    case PRN_ATTR_FLOAT:
        return hash_of_bytes(&a->f, sizeof a->f);
    case PRN_ATTR_STRING:
        return hash_of_bytes(a->s.data, a->s.size);
    case PRN_ATTR_INTS:
        return hash_of_bytes(a->ints, a->count * sizeof *a->ints);
    case PRN_ATTR_FLOATS:
        return hash_of_bytes(a->floats, a->count * sizeof *a->floats);
    default:
        return (uint64_t)(uintptr_t)a;
    }
}

static uint64_t hash_of(const prn_node_def *node)
{
    uint64_t hash = (uint64_t)(uintptr_t)node->binding.op;
    for (uint32_t i = 0; i < node->input_count; i++) hash = mix(hash, node->inputs[i]);
    for (size_t a = 0; a < node->info.attributes->count; a++) hash = mix(hash, hash_of_attribute(&node->info.attributes->items[a]));
    return mix(hash, node->output_count);
}

static bool same_list(const void *a, const void *b, size_t count, size_t size)
{
    return a == b || count == 0 || (a && b && memcmp(a, b, count * size) == 0);
}

/* Attributes that hold more than numbers and a string are the same only if they are one. */
static bool same_attribute(const prn_attr *a, const prn_attr *b)
{
    if (a->type != b->type || strcmp(a->name, b->name) != 0) return false;
    switch (a->type) {
    case PRN_ATTR_INT:
        return a->i == b->i;
    case PRN_ATTR_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case PRN_ATTR_STRING:
        return a->s.size == b->s.size && same_list(a->s.data, b->s.data, a->s.size, 1);
    case PRN_ATTR_INTS:
        return a->count == b->count && same_list(a->ints, b->ints, a->count, sizeof *a->ints);
    case PRN_ATTR_FLOATS:
        return a->count == b->count && same_list(a->floats, b->floats, a->count, sizeof *a->floats);
    default:
        return a == b;
    }
}

static bool same_node(const prn_node_def *a, const prn_node_def *b)
{
    const prn_attr_list *left = a->info.attributes, *right = b->info.attributes;
    if (a->binding.op != b->binding.op || a->info.opset != b->info.opset || a->input_count != b->input_count ||
        a->output_count != b->output_count || left->count != right->count ||
        !same_list(a->inputs, b->inputs, a->input_count, sizeof *a->inputs))
        return false;
    for (uint32_t k = 0; k < a->output_count; k++)
        if ((a->outputs[k] == PRN_NO_VALUE) != (b->outputs[k] == PRN_NO_VALUE)) return false;
    for (size_t i = 0; i < left->count; i++)
        if (!same_attribute(&left->items[i], &right->items[i])) return false;
    return true;
}

static prony_status share(prn_rewriter *r, prn_node_def *first, prn_node_def *second)
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
        if (!is_pure(r, p->nodes[n])) continue;
        size_t slot = (size_t)hash_of(p->nodes[n]) & (slots - 1);
        while (table[slot] && !same_node(p->nodes[table[slot] - 1], p->nodes[n])) slot = (slot + 1) & (slots - 1);
        if (table[slot])
            status = share(r, p->nodes[table[slot] - 1], p->nodes[n]);
        else
            table[slot] = n + 1;
    }
    prn_free(table);
    return status;
}
