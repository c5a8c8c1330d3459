/*   past ── Concat(., new) ─┬─ Attention ── y             past ── Attention(., new; cache_rows) ── y
 *                           └─ (output)                   new ─┴─ (output)
 *
 * The cache of a generator has room for `cache_rows` rows in each block, so new rows need no copy of the old ones:
 * Attention writes them behind the rows of `past`, in its bytes. The output is then the new rows alone. Keys and values
 * of grouped queries may come repeated for each query head (Unsqueeze, Expand, Reshape, in any form that keeps the
 * order); Attention reads each once. Keys and values are rewritten together, or not at all. */
#include "engine/rewrites/pass.h"

#include <string.h>

enum { APPEND_Q, APPEND_K, APPEND_V, APPEND_MASK, APPEND_INPUTS = 6 };

typedef struct appended {
    uint32_t past, fresh, joined; /* values: the graph's input, the new rows, both */
} appended;

/* value [B, H, T, D] = x [B, Hk, T, D] with every head repeated H / Hk times; x is `value` where nothing is
 * repeated. */
static bool append_read_repeated(const prn_rewriter *r, uint32_t value, uint32_t *x, prn_pattern *pattern)
{
    *x = value;
    prn_node_def *last = prn_rewrite_inner(r, value, "Reshape");
    prn_node_def *expand = last ? prn_rewrite_inner(r, last->inputs[0], "Expand") : NULL;
    if (!expand) return true;
    prn_node_def *first = prn_rewrite_inner(r, expand->inputs[0], "Unsqueeze");
    if (!first) first = prn_rewrite_inner(r, expand->inputs[0], "Reshape");
    if (!first) return false;
    const prony_shape *out = &r->program->values[value]->info.shape,
                      *wide = &r->program->values[last->inputs[0]]->info.shape,
                      *thin = &r->program->values[expand->inputs[0]]->info.shape,
                      *in = &r->program->values[first->inputs[0]]->info.shape;
    const bool ranks = out->rank == 4 && wide->rank == 5 && thin->rank == 5 && in->rank == 4;
    if (!ranks || thin->dim[2] != 1 || wide->dim[1] != in->dim[1] || out->dim[1] != wide->dim[1] * wide->dim[2])
        return false;
    for (int d = 0; d < 4; d++) {
        const int at = d < 2 ? d : d + 1; /* among those of rank 5 */
        if (thin->dim[at] != in->dim[d] || wide->dim[at] != in->dim[d] || (d != 1 && out->dim[d] != in->dim[d]))
            return false;
    }
    *x = first->inputs[0];
    return prn_pattern_add(pattern, last) && prn_pattern_add(pattern, expand) && prn_pattern_add(pattern, first);
}

/* value = Concat(past, new) over the rows, read by this pattern and as one output of the graph. */
static bool append_read_joined(const prn_rewriter *r, uint32_t value, appended *out, prn_pattern *pattern)
{
    const prn_program *program = r->program;
    if (!append_read_repeated(r, value, &out->joined, pattern)) return false;
    prn_node_def *concat = prn_rewrite_producer(r, out->joined);
    if (!concat || !prn_node_is(concat, "Concat") || concat->input_count != 2) return false;
    const int64_t axis = prn_node_int(concat, "axis", 0);
    out->past = concat->inputs[0];
    out->fresh = concat->inputs[1];
    const prn_value_def *past = program->values[out->past];
    return past->cache && past->input && past->info.dtype == PRONY_FLOAT32 && past->info.shape.rank == 4 &&
           (axis == 2 || axis == -2) && program->values[out->joined]->output && r->uses[out->joined] == 2 &&
           r->uses[out->past] == 1 && !program->values[out->fresh]->constant && prn_pattern_add(pattern, concat);
}

static bool append_perm_is_plain(const prn_node_def *node, const char *name)
{
    const prn_attr *perm = prn_attr_find(node->info.attributes, name);
    for (size_t d = 0; perm && d < perm->count; d++)
        if (perm->ints[d] != (int64_t)d) return false;
    return perm && perm->count == 4;
}

prony_status prn_rewrite_append_cache(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    prn_pattern pattern = {.node_count = 0};
    appended k, v;
    if (!r->program->cache_rows || !prn_node_is(node, "Attention") || strcmp(node->info.domain, "prony") != 0 ||
        node->input_count > APPEND_MASK + 1 || !append_perm_is_plain(node, "k_perm") ||
        !append_perm_is_plain(node, "v_perm") || !append_read_joined(r, node->inputs[APPEND_K], &k, &pattern) ||
        !append_read_joined(r, node->inputs[APPEND_V], &v, &pattern) || k.past == v.past)
        return PRONY_OK;
    prn_attr attributes[9] = {{.name = "cache_rows", .type = PRN_ATTR_INT, .i = r->program->cache_rows},
                              {.name = "cache_type", .type = PRN_ATTR_INT, .i = r->program->cache_type}};
    static const char *const kept[] = {"scale", "fill", "kept", "q_perm", "k_perm", "v_perm", "y_perm"};
    for (size_t a = 0; a < 7; a++) attributes[a + 2] = *prn_attr_find(node->info.attributes, kept[a]);
    const uint32_t inputs[APPEND_INPUTS] = {
        node->inputs[APPEND_Q], k.past, v.past, prn_node_input(node, APPEND_MASK), k.fresh, v.fresh};
    PRN_TRY(prn_rewrite_become(r, node, "Attention", attributes, 9, inputs, APPEND_INPUTS, &pattern));
    prn_rewrite_replace_uses(r, k.joined, k.fresh);
    prn_rewrite_replace_uses(r, v.joined, v.fresh);
    r->program->values[k.past]->appended = r->program->values[v.past]->appended = true;
    return PRONY_OK;
}
