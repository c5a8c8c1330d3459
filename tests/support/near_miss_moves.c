/* Patterns of the rewrites that simplify graphs: nodes without effect, and nodes that only move elements. */
#include "tests/support/near_miss_maker.h"

#include <stdio.h>

/* ---- nodes that do nothing ---- */

static int one_part(nm_maker *m, int x)
{
    if (m->k.g->opset < 13) return NM_NODE(m, "Split", "axis=1", x);
    return NM_NODE(m, "Split", m->k.g->opset < 18 ? "axis=1" : "axis=1 num_outputs=1", x);
}

static int pad_of(nm_maker *m, int x, const int64_t *pads, int rank)
{
    const int list = rg_ints(&m->k, pads, 2 * (size_t)rank);
    return nm_either(m) ? NM_NODE(m, "Pad", "", x, list) : NM_NODE(m, "Pad", "", x, list, nm_number(m, 0));
}

static int same(nm_maker *m, int x, const prony_shape *s)
{
    static const char *const of_one[] = {"Concat", "Sum", "Max", "Min", "Mean"};
    const int64_t zeros[2 * PRONY_MAX_RANK] = {0};
    switch (rg_below(&m->k, 16)) {
    case 0:
        return NM_NODE(m, "Identity", "", x);
    case 1:
        return NM_NODE(m, "Dropout", "", x);
    case 2:
        return NM_NODE(m, "Cast", "to=1", x);
    case 3:
        return NM_NODE(m, "Reshape", "", x, rg_ints(&m->k, s->dim, (size_t)s->rank));
    case 4:
        return NM_NODE(m, "Expand", "", x, rg_ints(&m->k, s->dim, (size_t)s->rank));
    case 5:
        return NM_NODE(m, "Slice", "", x, NM_LIST(m, 0), NM_LIST(m, 1000), NM_LIST(m, 1));
    case 6:
        return pad_of(m, x, zeros, s->rank);
    case 7:
        return NM_NODE(m, "Transpose", "perm=[0,1,2]", x);
    case 8: {
        const int64_t k = rg_below(&m->k, 5);
        return NM_NODE(m, of_one[k], k ? "" : "axis=1", x);
    }
    case 9:
        return one_part(m, x);
    case 10:
        return nm_clip(m, x, NULL, NULL);
    case 11:
        return nm_pair(m, "Mul", x, nm_number(m, 1));
    case 12:
        return NM_NODE(m, "Div", "", x, nm_number(m, 1));
    case 13:
        return NM_NODE(m, "Pow", "", x, nm_number(m, 1));
    case 14:
        return NM_NODE(m, "Sub", "", x, nm_number(m, 0));
    default:
        return NM_NODE(m, "Tile", "", x, NM_LIST(m, 1, 1, 1));
    }
}

static int drop_identity(nm_maker *m)
{
    const prony_shape shape = NM_SHAPE(nm_extent(m), nm_extent(m), nm_extent(m));
    int x = nm_before(m, shape);
    for (int64_t i = rg_below(&m->k, 3); i >= 0; i--) {
        x = same(m, x, &shape);
        if (nm_either(m)) x = nm_pair(m, "Mul", x, nm_constant(m, NM_SHAPE(shape.dim[2]), 0.5, 2));
    }
    return x;
}

static int drop_expand(nm_maker *m)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Min", "Max"};
    const int64_t a = nm_extent(m), b = nm_extent(m), c = nm_extent(m);
    const int z = nm_before(m, NM_SHAPE(a, b, c));
    const prony_shape small[] = {NM_SHAPE(a, 1, c), NM_SHAPE(1, b, 1), NM_SHAPE(c), NM_SHAPE(b, 1), {0}};
    const int x = nm_before(m, small[rg_below(&m->k, 5)]);
    const int64_t all[3] = {a, b, c}, some[3] = {1, b, 1};
    const int whole = NM_NODE(m, "Expand", "", x, rg_ints(&m->k, nm_either(m) ? all : some, 3));
    return nm_pair(m, ops[rg_below(&m->k, 6)], whole, z);
}

/* ---- moves ---- */

static int transposed(nm_maker *m, int x, int rank)
{
    int perm[PRONY_MAX_RANK];
    char text[64] = "perm=[";
    size_t used = 6;
    for (int d = 0; d < rank; d++) perm[d] = d;
    for (int d = rank - 1; d > 0; d--) {
        const int64_t e = rg_below(&m->k, d + 1);
        const int kept = perm[d];
        perm[d] = perm[e];
        perm[e] = kept;
    }
    for (int d = 0; d < rank; d++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", d ? "," : "", perm[d]);
    (void)snprintf(text + used, sizeof text - used, "]");
    return NM_NODE(m, "Transpose", rg_chance(&m->k, 15) ? "" : text, x);
}

static int merge_transposes(nm_maker *m)
{
    const int rank = 2 + (int)rg_below(&m->k, 4);
    prony_shape shape = {rank, {0}};
    for (int d = 0; d < rank; d++) shape.dim[d] = nm_extent(m);
    return transposed(m, transposed(m, nm_before(m, shape), rank), rank);
}

static int transpose_as_reshape(nm_maker *m)
{
    const int64_t a = nm_extent(m), b = nm_extent(m);
    static const char *const perms[] = {"perm=[1,0,2,3]", "perm=[0,2,1,3]", "perm=[0,3,1,2]", "perm=[1,2,0,3]"};
    const prony_shape shapes[] = {NM_SHAPE(1, a, 1, b), NM_SHAPE(a, 1, b, 1), NM_SHAPE(a, b, 1, 1),
                                  NM_SHAPE(1, 1, a, b)};
    const int64_t which = rg_below(&m->k, 4);
    return NM_NODE(m, "Transpose", perms[which == 3 ? which : rg_below(&m->k, 3)], nm_before(m, shapes[which]));
}

static int unsqueezed(nm_maker *m, int x, int axis, bool back)
{
    const char *op = back ? "Squeeze" : "Unsqueeze";
    char text[32];
    snprintf(text, sizeof text, "axes=[%d]", axis);
    return m->k.g->opset < 13 ? NM_NODE(m, op, text, x) : NM_NODE(m, op, "", x, NM_LIST(m, axis));
}

static int merge_reshapes(nm_maker *m)
{
    const int64_t a = nm_extent(m), b = nm_extent(m), c = nm_extent(m);
    int x = nm_before(m, NM_SHAPE(a, b, c));
    for (int i = 0; i < 2; i++) {
        const int64_t what = rg_below(&m->k, 4);
        if (what == 0)
            x = NM_NODE(m, "Reshape", "", x, NM_LIST(m, b, -1, a));
        else if (what == 1)
            x = NM_NODE(m, "Flatten", nm_either(m) ? "axis=0" : "", x);
        else
            x = unsqueezed(m, x, 0, false);
        if (what == 3) x = unsqueezed(m, x, 0, true);
    }
    return x;
}

static int channels_last(nm_maker *m)
{
    const int64_t n = 1 + rg_below(&m->k, 2), c = nm_extent(m), h = nm_extent(m), w = nm_extent(m);
    if (nm_either(m)) {
        const int tokens = nm_before(m, NM_SHAPE(n, h * w, c));
        return NM_NODE(m, "Reshape", "", NM_NODE(m, "Transpose", "perm=[0,2,1]", tokens), NM_LIST(m, n, c, h, w));
    }
    const int image = nm_before(m, NM_SHAPE(n, c, h, w));
    return NM_NODE(m, "Transpose", "perm=[0,2,1]", NM_NODE(m, "Reshape", "", image, NM_LIST(m, n, c, h * w)));
}

static int merge_constant_sums(nm_maker *m)
{
    const int64_t a = nm_extent(m), b = nm_extent(m), c = nm_extent(m);
    const prony_shape shapes[] = {NM_SHAPE(a, b, c), NM_SHAPE(b, c), NM_SHAPE(c), NM_SHAPE(a, 1, c), NM_SHAPE(b, 1)};
    int x = nm_before(m, NM_SHAPE(a, b, c));
    x = nm_pair(m, "Add", x, nm_constant(m, shapes[rg_below(&m->k, 5)], -1, 1));
    if (nm_either(m)) return nm_pair(m, "Add", x, nm_constant(m, shapes[rg_below(&m->k, 5)], -1, 1));
    x = NM_NODE(m, "Reshape", "", x, NM_LIST(m, a * b, c));
    return nm_pair(m, "Add", x, nm_constant(m, nm_either(m) ? NM_SHAPE(a * b, c) : NM_SHAPE(c), -1, 1));
}

static int fold_pad(nm_maker *m)
{
    const int64_t c = 1 + rg_below(&m->k, 3), h = nm_extent(m) + 2, w = nm_extent(m) + 2;
    int64_t pads[8] = {0};
    for (int i = 0; i < 4; i++) pads[i / 2 * 4 + 2 + i % 2] = rg_below(&m->k, 3);
    const int x = pad_of(m, nm_before(m, NM_SHAPE(1, c, h, w)), pads, 4);
    if (nm_either(m))
        return NM_NODE(m, "AveragePool",
                       nm_either(m) ? "kernel_shape=[3,3]" : "kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1",
                       x);
    const int weights = nm_constant(m, NM_SHAPE(2, c, 3, 3), -0.6, 0.6);
    const char *attributes = nm_either(m) ? "" : "pads=[1,0,1,2] strides=[1,2]";
    return nm_either(m) ? NM_NODE(m, "Conv", attributes, x, weights)
                        : NM_NODE(m, "Conv", attributes, x, weights, nm_constant(m, NM_SHAPE(2), -1, 1));
}

/* Two nodes of the same kind on the same operands, read in different places. */
static int share_subexpressions(nm_maker *m)
{
    static const char *const ops[] = {"Exp", "Softmax", "LeakyRelu", "Transpose"};
    static const char *const attributes[] = {"", "axis=1", "alpha=0.3", "perm=[1,0]"};
    const int64_t a = nm_extent(m), which = rg_below(&m->k, 5);
    const int x = nm_before(m, NM_SHAPE(a, a)), c = nm_constant(m, NM_SHAPE(a, a), -1, 1);
    int twin[2];
    for (int i = 0; i < 2; i++)
        twin[i] = which == 4 ? NM_NODE(m, "MatMul", "", x, c) : NM_NODE(m, ops[which], attributes[which], x);
    return nm_pair(m, "Add", NM_NODE(m, "Tanh", "", twin[0]), NM_NODE(m, "Sigmoid", "", twin[1]));
}

const nm_pattern nm_move_patterns[] = {{"drop_identity", drop_identity},
                                       {"drop_expand", drop_expand},
                                       {"merge_transposes", merge_transposes},
                                       {"transpose_as_reshape", transpose_as_reshape},
                                       {"merge_reshapes", merge_reshapes},
                                       {"channels_last", channels_last},
                                       {"merge_constant_sums", merge_constant_sums},
                                       {"fold_pad", fold_pad},
                                       {"share_subexpressions", share_subexpressions},
                                       {NULL, NULL}};
