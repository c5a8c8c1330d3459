/* Operators that move elements: the gradient moves back. If an element goes to several positions, their gradients are
 * summed. */
#include "engine/gradient/rules.h"

#include <string.h>

#define X(i) prn_grad_in(g, i)
#define Y prn_grad_out(g, 0)
#define DY prn_grad_of(g, 0)

static uint32_t index_list(prn_gradient *g, int64_t number)
{
    return prn_grad_indices(g, &number, 1);
}

static uint32_t flat(prn_gradient *g, uint32_t value)
{
    return prn_grad_2(g, "Reshape", value, index_list(g, -1));
}

/* An axis of `value` as 0 or more. -1: refused. */
static int64_t rules_shape_axis_of(prn_gradient *g, uint32_t value, int64_t axis)
{
    const int rank = prn_grad_rank(g, value);
    const int64_t from_front = axis < 0 ? axis + rank : axis;
    if (rank >= 0 && (from_front < 0 || from_front >= rank))
        prn_grad_refuse(g, "axis %lld is out of range for rank %d", (long long)axis, rank);
    return prn_grad_failed(g) ? -1 : from_front;
}

/* The index of each element of input i, as int64 of its shape. */
static uint32_t rules_shape_places_of(prn_gradient *g, uint32_t value)
{
    const uint32_t all =
        prn_grad_3(g, "Range", prn_grad_index(g, 0), prn_grad_1(g, "Size", value), prn_grad_index(g, 1));
    return prn_grad_reshape_like(g, all, value);
}

static uint32_t scatter_elements(prn_gradient *g, uint32_t onto, uint32_t at, uint32_t values, int64_t axis,
                                 const char *reduction)
{
    const prn_attr attrs[] = {prn_grad_attr_int("axis", axis), prn_grad_attr_text("reduction", reduction)};
    return prn_grad_op(g, "ScatterElements", attrs, 2, (const uint32_t[]){onto, at, values}, 3);
}

static uint32_t scatter_nd(prn_gradient *g, uint32_t onto, uint32_t at, uint32_t values, const char *reduction)
{
    const prn_attr attr = prn_grad_attr_text("reduction", reduction);
    return prn_grad_op(g, "ScatterND", &attr, 1, (const uint32_t[]){onto, at, values}, 3);
}

/* Scatters the gradient back by `from`, the indices of x's elements moved in the same way; -1: no element. */
static void give_back_to(prn_gradient *g, uint32_t from)
{
    const uint32_t zeros = flat(g, prn_grad_filled(g, X(0), 0));
    const uint32_t sums = scatter_elements(g, zeros, flat(g, from), flat(g, DY), 0, "add");
    prn_grad_give(g, 0, prn_grad_reshape_like(g, sums, X(0)));
}

/* Applies the node itself to the indices of its elements, with the other inputs unchanged. */
static void give_moved_back(prn_gradient *g)
{
    uint32_t inputs[8] = {0}, from = PRN_NO_VALUE;
    const uint32_t count = g->node->input_count;
    if (!prn_grad_wants(g, 0)) return;
    if (count > 8) {
        prn_grad_refuse(g, "no gradient rule exists for so many inputs");
        return;
    }
    for (uint32_t i = 1; i < count; i++) inputs[i] = X(i);
    inputs[0] = rules_shape_places_of(g, X(0));
    prn_gradient_node node = {.name = g->node->info.name,
                              .op_type = g->node->info.op_type,
                              .domain = g->node->info.domain,
                              .opset = g->node->info.opset,
                              .attributes = *g->node->info.attributes,
                              .inputs = inputs,
                              .input_count = count,
                              .outputs = &from,
                              .output_count = 1};
    from = 0;
    if (!prn_grad_failed(g)) g->status = g->job->make(g->job->user, &node);
    give_back_to(g, from);
}

/* ---- the same elements in the same order ---- */

PRN_GRADIENT_RULE(reshape)
{
    prn_grad_give(g, 0, prn_grad_reshape_like(g, DY, X(0)));
}

PRN_GRADIENT_RULE(transpose)
{
    size_t count;
    int64_t back[PRONY_MAX_RANK];
    const int64_t *perm = prn_grad_ints(g, "perm", &count);
    for (size_t d = 0; perm && d < count; d++) {
        if (count > PRONY_MAX_RANK || perm[d] < 0 || (size_t)perm[d] >= count) { /* invalid: the run fails */
            prn_grad_refuse(g, "its perm is not a permutation");
            return;
        }
        back[perm[d]] = (int64_t)d;
    }
    prn_grad_give(g, 0, perm ? prn_grad_transpose(g, DY, back, count) : prn_grad_1(g, "Transpose", DY));
}

/* ---- concatenation and slices ---- */

PRN_GRADIENT_RULE(concat)
{
    const uint32_t count = g->node->input_count;
    const int64_t axis = rules_shape_axis_of(g, Y, prn_grad_int(g, "axis", 1));
    if (axis < 0) return;
    uint32_t *parts = prn_bump_alloc(&g->program->pool, count + 1, sizeof *parts);
    if (!parts) {
        g->status = prn_no_memory(g->error);
        return;
    }
    for (uint32_t i = 0; i < count; i++) parts[i] = prn_grad_extent(g, X(i), axis);
    const prn_attr on_axis = prn_grad_attr_int("axis", axis), first = prn_grad_attr_int("axis", 0);
    const uint32_t inputs[] = {DY, prn_grad_op(g, "Concat", &first, 1, parts, count)};
    prn_grad_node(g, "Split", &on_axis, 1, inputs, 2, parts, count);
    for (uint32_t i = 0; i < count; i++) prn_grad_give(g, i, parts[i]);
}

PRN_GRADIENT_RULE(split)
{
    const uint32_t count = g->node->output_count;
    uint32_t *parts = prn_bump_alloc(&g->program->pool, count + 1, sizeof *parts);
    if (!parts) {
        g->status = prn_no_memory(g->error);
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (prn_grad_out(g, k) == PRN_NO_VALUE) {
            prn_grad_refuse(g, "output %u has no name, so its shape is unknown", k);
            return;
        }
        parts[k] = prn_grad_or_zeros(g, k);
    }
    const prn_attr axis = prn_grad_attr_int("axis", prn_grad_int(g, "axis", 0));
    prn_grad_give(g, 0, prn_grad_op(g, "Concat", &axis, 1, parts, count));
}

/* Starts and axes of a Slice of constants, with steps of 1; false: not that. */
static bool plain_slice(prn_gradient *g, int64_t *starts, int64_t *axes, size_t *count)
{
    int64_t steps[PRONY_MAX_RANK];
    size_t axis_count = 0, step_count = 0;
    if (g->node->info.opset < 10) {
        const int64_t *said = prn_grad_ints(g, "starts", count), *along = prn_grad_ints(g, "axes", &axis_count);
        for (size_t i = 0; said && i < *count && i < PRONY_MAX_RANK; i++) {
            starts[i] = said[i];
            axes[i] = along ? along[i] : (int64_t)i;
        }
        return said && *count <= PRONY_MAX_RANK;
    }
    if (!prn_grad_constant_ints(g, X(1), starts, PRONY_MAX_RANK, count)) return false;
    for (size_t i = 0; i < *count; i++) axes[i] = (int64_t)i;
    if (X(3) != PRN_NO_VALUE && !prn_grad_constant_ints(g, X(3), axes, PRONY_MAX_RANK, &axis_count)) return false;
    if (X(4) != PRN_NO_VALUE && !prn_grad_constant_ints(g, X(4), steps, PRONY_MAX_RANK, &step_count)) return false;
    for (size_t i = 0; i < step_count; i++)
        if (steps[i] != 1) return false;
    return true;
}

/* The gradient of a plain slice is a Pad. */
PRN_GRADIENT_RULE(slice)
{
    int64_t starts[PRONY_MAX_RANK], axes[PRONY_MAX_RANK], pads[2 * PRONY_MAX_RANK] = {0};
    size_t count = 0;
    const prony_value *x = prn_grad_info(g, X(0)), *y = prn_grad_info(g, Y);
    if (!prn_shape_known(&x->shape) || !prn_shape_known(&y->shape) || !plain_slice(g, starts, axes, &count)) {
        give_moved_back(g);
        return;
    }
    const int rank = x->shape.rank;
    if (!prn_grad_shape(g, X(0)) || !prn_grad_shape(g, Y)) return;
    const prony_shape in = prn_grad_info(g, X(0))->shape, out = prn_grad_info(g, Y)->shape;
    for (size_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i], extent = in.dim[axis];
        int64_t start = starts[i] < 0 ? starts[i] + extent : starts[i];
        start = start < 0 ? 0 : start > extent ? extent : start;
        pads[axis] = start;
        pads[rank + axis] = extent - start - out.dim[axis];
    }
    prn_grad_give(g, 0, prn_grad_2(g, "Pad", DY, prn_grad_indices(g, pads, 2 * (size_t)rank)));
}

/* Constant padding is cut off again; padding that repeats the input adds to it. */
PRN_GRADIENT_RULE(pad)
{
    uint32_t pads = X(1);
    if (strcmp(prn_grad_text(g, "mode", "constant"), "constant") != 0) {
        give_moved_back(g);
        return;
    }
    if (g->node->info.opset < 11) {
        size_t count;
        const int64_t *said = prn_grad_ints(g, "pads", &count);
        if (!said) said = prn_grad_ints(g, "paddings", &count);
        pads = prn_grad_indices(g, said, count);
    }
    const uint32_t inputs[] = {DY, prn_grad_neg(g, pads), PRN_NO_VALUE, X(3)};
    const uint32_t cut = prn_grad_op(g, "Pad", PRN_GRAD_NO_ATTRS, inputs, X(3) == PRN_NO_VALUE ? 2 : 4);
    prn_grad_give(g, 0, cut);
    if (!prn_grad_wants(g, 2)) return;
    const uint32_t all = prn_grad_reduce(g, "ReduceSum", DY, PRN_NO_VALUE, false);
    const uint32_t inner = prn_grad_reduce(g, "ReduceSum", cut, PRN_NO_VALUE, false);
    prn_grad_give(g, 2, prn_grad_reshape_like(g, prn_grad_sub(g, all, inner), X(2)));
}

/* ---- repeated ---- */

PRN_GRADIENT_RULE(expand)
{
    prn_grad_give_summed(g, 0, DY);
}

/* Each axis as (times, extent), summed over the times. */
PRN_GRADIENT_RULE(tile)
{
    int64_t axes[PRONY_MAX_RANK];
    const int rank = prn_grad_rank(g, X(0));
    if (rank < 0) return;
    if (g->node->info.opset < 6) {
        give_moved_back(g);
        return;
    }
    for (int d = 0; d < rank; d++) axes[d] = 2 * d;
    const uint32_t one = index_list(g, 1);
    const uint32_t pairs[] = {prn_grad_2(g, "Unsqueeze", X(1), one),
                              prn_grad_2(g, "Unsqueeze", prn_grad_shape_of(g, X(0)), one)};
    const prn_attr axis = prn_grad_attr_int("axis", 1);
    if (2 * rank > PRONY_MAX_RANK) {
        give_moved_back(g);
        return;
    }
    const uint32_t apart = prn_grad_reshape(g, DY, flat(g, prn_grad_op(g, "Concat", &axis, 1, pairs, 2)));
    if (rank == 0)
        prn_grad_give(g, 0, DY);
    else
        prn_grad_give(g, 0, prn_grad_reduce(g, "ReduceSum", apart, prn_grad_indices(g, axes, (size_t)rank), false));
}

/* ---- gathered ---- */

/* Moves axis `axis` of `count` axes to the front, and back; the axes from `axis` on count as `width`. */
static uint32_t to_front(prn_gradient *g, uint32_t value, int64_t axis, int64_t width, bool back)
{
    int64_t perm[PRONY_MAX_RANK], inverse[PRONY_MAX_RANK];
    const int rank = prn_grad_rank(g, value);
    if (rank < 0 || axis == 0) return value;
    if (axis + width > rank) {
        prn_grad_refuse(g, "%lld axes from axis %lld do not fit rank %d", (long long)width, (long long)axis, rank);
        return PRN_NO_VALUE;
    }
    int64_t at = 0;
    for (int64_t d = 0; d < width; d++) perm[at++] = axis + d;
    for (int64_t d = 0; d < rank; d++)
        if (d < axis || d >= axis + width) perm[at++] = d;
    for (int d = 0; d < rank; d++) inverse[perm[d]] = d;
    return prn_grad_transpose(g, value, back ? inverse : perm, (size_t)rank);
}

/* Adds rows at the positions from which they were gathered. */
PRN_GRADIENT_RULE(gather)
{
    const int64_t axis = rules_shape_axis_of(g, X(0), prn_grad_int(g, "axis", 0));
    const int width = prn_grad_rank(g, X(1));
    if (axis < 0 || width < 0) return;
    const uint32_t onto = to_front(g, prn_grad_filled(g, X(0), 0), axis, 1, false);
    const uint32_t at = prn_grad_2(g, "Unsqueeze", X(1), index_list(g, -1));
    const uint32_t sums = scatter_nd(g, onto, at, to_front(g, DY, axis, width, false), "add");
    prn_grad_give(g, 0, to_front(g, sums, axis, 1, true));
}

PRN_GRADIENT_RULE(gather_elements)
{
    prn_grad_give(g, 0, scatter_elements(g, prn_grad_filled(g, X(0), 0), X(1), DY, prn_grad_int(g, "axis", 0), "add"));
}

PRN_GRADIENT_RULE(gather_nd)
{
    if (prn_grad_int(g, "batch_dims", 0) != 0)
        give_moved_back(g);
    else
        prn_grad_give(g, 0, scatter_nd(g, prn_grad_filled(g, X(0), 0), X(1), DY, "add"));
}

PRN_GRADIENT_RULE(moved)
{
    give_moved_back(g);
}

PRN_GRADIENT_RULE(top_k)
{
    if (prn_grad_of(g, 0) == PRN_NO_VALUE) return;
    if (prn_grad_out(g, 1) == PRN_NO_VALUE) {
        prn_grad_refuse(g, "its gradient needs its output Indices, which has no name");
        return;
    }
    const uint32_t zeros = prn_grad_filled(g, X(0), 0);
    prn_grad_give(g, 0, scatter_elements(g, zeros, prn_grad_out(g, 1), DY, prn_grad_int(g, "axis", -1), "add"));
}

/* ---- scattered ---- */

/* true: scattered elements replace the old ones; false: they are added. */
static bool replaces(prn_gradient *g)
{
    const char *reduction = prn_grad_text(g, "reduction", "none");
    if (strcmp(reduction, "none") != 0 && strcmp(reduction, "add") != 0)
        prn_grad_refuse(g, "no gradient rule exists for the reduction '%s'", reduction);
    return strcmp(reduction, "none") == 0;
}

PRN_GRADIENT_RULE(scatter_nd)
{
    const bool none = replaces(g);
    if (prn_grad_wants(g, 0))
        prn_grad_give(g, 0, none ? scatter_nd(g, DY, X(1), prn_grad_filled(g, X(2), 0), "none") : DY);
    if (prn_grad_wants(g, 2)) prn_grad_give(g, 2, prn_grad_2(g, "GatherND", DY, X(1)));
}

PRN_GRADIENT_RULE(scatter_elements)
{
    const bool none = replaces(g);
    const prn_attr axis = prn_grad_attr_int("axis", prn_grad_int(g, "axis", 0));
    if (prn_grad_wants(g, 0))
        prn_grad_give(g, 0, none ? scatter_elements(g, DY, X(1), prn_grad_filled(g, X(2), 0), axis.i, "none") : DY);
    if (prn_grad_wants(g, 2))
        prn_grad_give(g, 2, prn_grad_op(g, "GatherElements", &axis, 1, (const uint32_t[]){DY, X(1)}, 2));
}

/* ---- blocks, runs, masks ---- */

static uint32_t with_block(prn_gradient *g, const char *op)
{
    const prn_attr attr = prn_grad_attr_int("blocksize", prn_grad_int(g, "blocksize", 1));
    const uint32_t dy = DY;
    return prn_grad_op(g, op, &attr, 1, &dy, 1);
}

PRN_GRADIENT_RULE(depth_to_space)
{
    if (strcmp(prn_grad_text(g, "mode", "DCR"), "DCR") != 0)
        give_moved_back(g);
    else
        prn_grad_give(g, 0, with_block(g, "SpaceToDepth"));
}

PRN_GRADIENT_RULE(space_to_depth)
{
    prn_grad_give(g, 0, with_block(g, "DepthToSpace"));
}

PRN_GRADIENT_RULE(cumsum)
{
    const prn_attr attrs[] = {prn_grad_attr_int("exclusive", prn_grad_int(g, "exclusive", 0)),
                              prn_grad_attr_int("reverse", !prn_grad_int(g, "reverse", 0))};
    prn_grad_give(g, 0, prn_grad_op(g, "CumSum", attrs, 2, (const uint32_t[]){DY, X(1)}, 2));
}

PRN_GRADIENT_RULE(trilu)
{
    const prn_attr attr = prn_grad_attr_int("upper", prn_grad_int(g, "upper", 1));
    prn_grad_give(g, 0, prn_grad_op(g, "Trilu", &attr, 1, (const uint32_t[]){DY, X(1)}, X(1) == PRN_NO_VALUE ? 1 : 2));
}
