/*   x ── Add(a) ── Reshape ── Add(b) ── y          x ── Add(a + b) ── Reshape ── y
 *
 * For constants of more than one element, with or without the Reshape. Attention scores with a bias and then a mask per
 * window have this form. */
#include "engine/rewrites/pass.h"

#include "base/shape.h"

#include <math.h>

/* Of the sum, which is as large as x with a Reshape. Chosen without measurement. */
#define MOST_BYTES ((int64_t)16 << 20)

typedef struct constant_sum {
    prn_node_def *node;
    uint32_t x, constant;
} constant_sum;

static bool read_sum(const prn_rewriter *r, prn_node_def *node, constant_sum *out)
{
    const float *data;
    const prony_shape *shape;
    if (!node || !prn_node_is(node, "Add") || node->input_count != 2 || node->info.opset < 7 || node->post_ops)
        return false;
    for (int i = 1; i >= 0; i--) {
        if (!prn_rewrite_constant(r, node->inputs[i], &data, &shape) || prony_shape_numel(shape) < 2) continue;
        *out = (constant_sum){node, node->inputs[1 - i], node->inputs[i]};
        return prn_rewrite_is_f32(r, out->x) && prn_rewrite_same_shape(r, out->x, node->outputs[0]);
    }
    return false;
}

static const prony_value *merge_constant_sums_value_of(const prn_rewriter *r, uint32_t value)
{
    return &r->program->values[value]->info;
}

/* Adds the constant, broadcast to this shape. */
static void add_broadcast(float *to, const prony_value *constant, const prony_shape *shape)
{
    int64_t stride[PRONY_MAX_RANK], at[PRONY_MAX_RANK] = {0}, offset = 0;
    const int64_t count = prony_shape_numel(shape);
    const float *from = constant->data;
    prn_shape_broadcast_strides(&constant->shape, shape, stride);
    for (int64_t e = 0; e < count; e++) {
        to[e] += from[offset];
        for (int d = shape->rank - 1; d >= 0; d--) {
            offset += stride[d];
            if (++at[d] < shape->dim[d]) break;
            at[d] = 0;
            offset -= stride[d] * shape->dim[d];
        }
    }
}

/* *out: a + b; PRN_NO_VALUE if a sum leaves the range of float32, because x + a + b might not. */
static prony_status add_constants(prn_rewriter *r, const constant_sum *first, const constant_sum *second,
                                  const prony_shape *between, const prony_shape *behind, uint32_t *out)
{
    const int64_t count = prony_shape_numel(between);
    float *data = prn_alloc_aligned(64, (size_t)count * sizeof *data);
    if (!data) return prn_no_memory(r->error);
    for (int64_t e = 0; e < count; e++) data[e] = -0.0f; /* -0 + -0 stays -0 */
    add_broadcast(data, merge_constant_sums_value_of(r, first->constant), between);
    add_broadcast(data, merge_constant_sums_value_of(r, second->constant), behind);
    *out = PRN_NO_VALUE;
    for (int64_t e = 0; e < count; e++) {
        if (isfinite(data[e])) continue;
        prn_free_aligned(data);
        return PRONY_OK;
    }
    prony_value info = *merge_constant_sums_value_of(r, first->constant);
    info.shape = *between;
    return prn_rewrite_add_constant(r, r->program->values[first->constant]->name, &info, data, out);
}

/* The first Add takes the sum of both constants, broadcast to the common shape, and the second Add disappears. */
prony_status prn_rewrite_merge_constant_sums(prn_rewriter *r, uint32_t n)
{
    prn_node_def *node = r->program->nodes[n];
    constant_sum first, second;
    if (!read_sum(r, node, &second) || !prn_rewrite_used_once(r, second.x)) return PRONY_OK;
    prn_node_def *reshape = prn_rewrite_producer(r, second.x), *last = reshape;
    if (reshape && !prn_node_is(reshape, "Reshape")) reshape = NULL;
    if (reshape && !prn_rewrite_used_once(r, reshape->inputs[0])) return PRONY_OK;
    if (!read_sum(r, reshape ? prn_rewrite_producer(r, reshape->inputs[0]) : last, &first)) return PRONY_OK;
    prony_shape between = merge_constant_sums_value_of(r, first.x)->shape,
                behind = merge_constant_sums_value_of(r, second.x)->shape;
    if (!reshape) {
        if (!prn_shape_broadcast(&between, &merge_constant_sums_value_of(r, first.constant)->shape,
                                 &merge_constant_sums_value_of(r, second.constant)->shape))
            return PRONY_OK;
        behind = between;
    }
    if (prony_shape_numel(&between) * (int64_t)sizeof(float) > MOST_BYTES) return PRONY_OK;
    PRN_TRY(prn_program_hold(r->program, first.constant, r->error));
    PRN_TRY(prn_program_hold(r->program, second.constant, r->error));
    uint32_t inputs[] = {first.x, PRN_NO_VALUE};
    PRN_TRY(add_constants(r, &first, &second, &between, &behind, &inputs[1]));
    if (inputs[1] == PRN_NO_VALUE) return PRONY_OK;
    PRN_TRY(prn_rewrite_set_inputs(r, first.node, inputs, 2));
    prn_rewrite_mark_removed(r, node);
    PRN_TRY(prn_rewrite_absorb(r, first.node, node));
    return prn_rewrite_take_place(r, last, n);
}
