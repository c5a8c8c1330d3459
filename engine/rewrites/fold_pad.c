/*   x ── Pad(zeros, spatial) ── Conv(pads) ── y                x ── Conv(pads + the Pad's) ── y
 *
 *   x ── Pad(zeros, spatial) ── AveragePool ── y               x ── AveragePool(the Pad's, count_include_pad) ── y
 *
 * The pool must count its own padding, or have none. */
#include "engine/rewrites/pass.h"

#include <string.h>

enum { MOST_PADS = 2 * PRONY_MAX_RANK };

/* Reads the pads of a Pad of zeros, along axes after the second and never negative, into `pads` in Conv's order. */
static bool read_pad(const prn_rewriter *r, const prn_node_def *pad, int64_t *pads)
{
    const int rank = r->program->values[pad->inputs[0]]->info.shape.rank;
    int64_t all[MOST_PADS];
    size_t count;
    double value = prn_node_float(pad, "value", 0.0);
    const uint32_t filler = prn_node_input(pad, 2);
    if (!prn_node_string_is(pad, "mode", "constant", true) || prn_node_input(pad, 3) != PRN_NO_VALUE || rank < 3)
        return false;
    if (filler != PRN_NO_VALUE && !prn_rewrite_scalar(r, filler, &value)) return false;
    if (value != 0.0 ||
        !prn_rewrite_int_list(r, pad, pad->info.opset < 2 ? "paddings" : "pads", 1, all, MOST_PADS, &count))
        return false;
    if (count != 2 * (size_t)rank) return false;
    for (int i = 0; i < 2 * rank; i++) {
        const int axis = i % rank;
        if (all[i] < 0 || all[i] > INT32_MAX || (axis < 2 && all[i] != 0)) return false;
        if (axis >= 2) pads[i / rank * (rank - 2) + axis - 2] = all[i];
    }
    return true;
}

/* true: the pool counts its own padding as it would count the Pad's. */
static bool counts_padding(const prn_node_def *pool, const int64_t *own, size_t count)
{
    if (pool->info.opset < 7 || prn_node_int(pool, "ceil_mode", 0) != 0) return false;
    for (size_t i = 0; i < count; i++)
        if (own[i] != 0 && !prn_node_int(pool, "count_include_pad", 0)) return false;
    return true;
}

/* true: the padding is smaller than the kernel, so every window covers input elements. */
static bool less_than_kernel(const prn_node_def *pool, const int64_t *pads, size_t axes)
{
    const prn_attr *kernel = prn_attr_find(pool->info.attributes, "kernel_shape");
    if (!kernel || kernel->type != PRN_ATTR_INTS || kernel->count != axes) return false;
    for (size_t i = 0; i < 2 * axes; i++)
        if (pads[i] >= kernel->ints[i % axes]) return false;
    return true;
}

static prony_status fold_pad_become(prn_rewriter *r, prn_node_def *node, prn_node_def *pad, const int64_t *pads,
                                    size_t count, bool pool)
{
    const prn_attr_list *old = node->info.attributes;
    const size_t had = old ? old->count : 0;
    prn_attr *attributes = prn_bump_alloc(&r->program->pool, had + 2, sizeof *attributes);
    int64_t *list = prn_bump_alloc(&r->program->pool, count, sizeof *list);
    uint32_t *inputs = prn_bump_alloc(&r->program->pool, node->input_count, sizeof *inputs);
    if (!attributes || !list || !inputs) return prn_no_memory(r->error);
    memcpy(list, pads, count * sizeof *list);
    memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
    inputs[0] = pad->inputs[0];
    size_t kept = 0;
    for (size_t i = 0; i < had; i++) {
        const char *name = old->items[i].name;
        if (strcmp(name, "pads") && strcmp(name, "auto_pad") && strcmp(name, "count_include_pad"))
            attributes[kept++] = old->items[i];
    }
    attributes[kept++] = (prn_attr){.name = "pads", .type = PRN_ATTR_INTS, .ints = list, .count = count};
    if (pool) attributes[kept++] = (prn_attr){.name = "count_include_pad", .type = PRN_ATTR_INT, .i = 1};
    prn_rewrite_mark_removed(r, pad);
    const prn_pattern pattern = {{pad}, 1};
    return prn_rewrite_restate(r, node, attributes, kept, inputs, node->input_count, &pattern);
}

prony_status prn_rewrite_fold_pad(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    const bool pool = prn_node_is(node, "AveragePool");
    if ((!pool && !prn_node_is(node, "Conv")) || node->post_ops) return PRONY_OK;
    prn_node_def *pad = prn_rewrite_inner(r, node->inputs[0], "Pad");
    int64_t pads[MOST_PADS], own[MOST_PADS];
    if (!pad || !read_pad(r, pad, pads)) return PRONY_OK;
    const size_t axes = (size_t)r->program->values[pad->inputs[0]]->info.shape.rank - 2;
    if (!prn_node_pads(node, 2 * axes, own)) return PRONY_OK;
    for (size_t i = 0; i < 2 * axes; i++)
        if (__builtin_add_overflow(pads[i], own[i], &pads[i]) || pads[i] > INT32_MAX) return PRONY_OK;
    if (pool && (!counts_padding(node, own, 2 * axes) || !less_than_kernel(node, pads, axes))) return PRONY_OK;
    return fold_pad_become(r, node, pad, pads, 2 * axes, pool);
}
