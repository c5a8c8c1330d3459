/* Patterns of the rewrites that find an operator written out in others. */
#include "tests/support/near_miss_maker.h"

static prony_shape any_shape(nm_maker *m)
{
    prony_shape shape = {1 + (int)rg_below(&m->k, 4), {0}};
    for (int d = 0; d < shape.rank; d++) shape.dim[d] = nm_extent(m);
    return shape;
}

/* ---- activations ---- */

static int match_silu(nm_maker *m)
{
    const int x = nm_before(m, any_shape(m));
    return nm_pair(m, "Mul", x, NM_NODE(m, "Sigmoid", "", x));
}

static int shifted_clip(nm_maker *m, int x, double shift, double top)
{
    const double zero = 0;
    return nm_clip(m, nm_pair(m, "Add", x, nm_number(m, shift)), &zero, &top);
}

static int match_hard_sigmoid(nm_maker *m)
{
    static const double tops[] = {6, 6, 2, 1, 5};
    const double top = tops[rg_below(&m->k, 5)], shift = nm_either(m) ? 3 : 0.25 * (double)(rg_below(&m->k, 17) - 8);
    return nm_times(m, shifted_clip(m, nm_before(m, any_shape(m)), shift, top), 1 / top);
}

static int match_hard_swish(nm_maker *m)
{
    const int x = nm_before(m, any_shape(m));
    if (nm_either(m)) return nm_pair(m, "Mul", x, NM_NODE(m, "HardSigmoid", "alpha=0.16666667 beta=0.5", x));
    const int gate = shifted_clip(m, x, 3, 6);
    if (nm_either(m)) return nm_pair(m, "Mul", x, nm_times(m, gate, 1.0 / 6));
    return nm_times(m, nm_pair(m, "Mul", x, gate), 1.0 / 6);
}

/* x^power, by Pow or by products. */
static int power(nm_maker *m, int x, int exponent)
{
    if (nm_either(m)) return NM_NODE(m, "Pow", "", x, nm_number(m, exponent));
    int y = nm_pair(m, "Mul", x, x);
    for (int i = 2; i < exponent; i++) y = nm_pair(m, "Mul", y, x);
    return y;
}

static int gelu_argument(nm_maker *m, int x)
{
    if (nm_either(m)) {
        const int sum = nm_pair(m, "Add", x, nm_times(m, power(m, x, 3), 0.044715));
        return nm_times(m, sum, 0.7978845608);
    }
    const int sum = nm_pair(m, "Add", nm_number(m, 1), nm_times(m, power(m, x, 2), 0.044715));
    return nm_pair(m, "Mul", nm_times(m, x, 0.7978845608), sum);
}

static int match_gelu(nm_maker *m)
{
    const int x = nm_before(m, any_shape(m));
    const int curve =
        nm_either(m) ? NM_NODE(m, "Erf", "", nm_times(m, x, 0.70710678)) : NM_NODE(m, "Tanh", "", gelu_argument(m, x));
    const int gate = nm_pair(m, "Add", curve, nm_number(m, 1));
    if (nm_either(m)) return nm_times(m, nm_pair(m, "Mul", x, gate), 0.5);
    if (nm_either(m)) return nm_pair(m, "Mul", nm_times(m, x, 0.5), gate);
    return nm_pair(m, "Mul", x, nm_times(m, gate, 0.5));
}

/* ---- normalisations ---- */

static int layer_norm_of(nm_maker *m, int x, int rank)
{
    const int axis = nm_either(m) ? -1 : rank - 1;
    const int deviation = NM_NODE(m, "Sub", "", x, nm_mean(m, x, axis));
    const int variance = nm_mean(m, power(m, deviation, 2), axis);
    const int spread = NM_NODE(m, "Sqrt", "", nm_pair(m, "Add", variance, nm_number(m, 1e-3)));
    return NM_NODE(m, "Div", "", deviation, spread);
}

static int match_layer_norm(nm_maker *m)
{
    const prony_shape shape = any_shape(m);
    return layer_norm_of(m, nm_before(m, shape), shape.rank);
}

static int vector_of(nm_maker *m, int64_t extent, double value)
{
    return nm_constant(m, NM_SHAPE(extent), value, value);
}

static int match_group_norm(nm_maker *m)
{
    const int64_t n = 1 + rg_below(&m->k, 2), groups = 1 + rg_below(&m->k, 3), each = 1 + rg_below(&m->k, 3),
                  h = nm_extent(m), w = nm_extent(m);
    const int x = nm_before(m, NM_SHAPE(n, groups * each, h, w));
    const int grouped = NM_NODE(m, "Reshape", "", x, NM_LIST(m, n, groups, nm_either(m) ? -1 : each * h * w));
    const int norm =
        NM_NODE(m, "InstanceNormalization", "epsilon=0.01", grouped, vector_of(m, groups, 1), vector_of(m, groups, 0));
    return NM_NODE(m, "Reshape", "", norm, NM_LIST(m, n, groups * each, h, w));
}

/* Scale, shift or both behind a normalisation. */
static int affine(nm_maker *m, int y, int rank, int axis, int64_t extent)
{
    const int64_t what = rg_below(&m->k, 3);
    if (what != 1) y = nm_pair(m, "Mul", y, nm_along(m, rank, axis, extent, 0.5, 2));
    if (what != 0) y = nm_pair(m, "Add", y, nm_along(m, rank, axis, extent, -1, 1));
    return y;
}

static int fold_layer_norm_affine(nm_maker *m)
{
    const prony_shape shape = any_shape(m);
    const int64_t extent = shape.dim[shape.rank - 1];
    const int x = nm_before(m, shape);
    int y;
    if (nm_either(m)) {
        y = layer_norm_of(m, x, shape.rank);
    } else {
        if (m->k.g->opset < 17) m->k.g->opset = 17;
        y = NM_NODE(m, "LayerNormalization", "axis=-1", x, vector_of(m, extent, 1));
    }
    return affine(m, y, shape.rank, shape.rank - 1, extent);
}

static int fold_channel_norm_affine(nm_maker *m)
{
    if (nm_either(m)) {
        const int64_t c = nm_extent(m);
        const int x = nm_before(m, NM_SHAPE(1 + rg_below(&m->k, 2), c, nm_extent(m), nm_extent(m)));
        const int y = NM_NODE(m, "InstanceNormalization", "epsilon=0.01", x, vector_of(m, c, 1), vector_of(m, c, 0));
        return affine(m, y, 4, 1, c);
    }
    const int64_t groups = 2, c = groups * (1 + rg_below(&m->k, 3)), h = nm_extent(m);
    const int x = nm_before(m, NM_SHAPE(1, c, h, h));
    if (nm_either(m)) {
        m->k.g->opset = 21;
        const int y =
            NM_NODE(m, "GroupNormalization", "num_groups=2 epsilon=0.01", x, vector_of(m, c, 1), vector_of(m, c, 0));
        return affine(m, y, 4, 1, c);
    }
    const int grouped = NM_NODE(m, "Reshape", "", x, NM_LIST(m, 1, groups, -1));
    const int norm =
        NM_NODE(m, "InstanceNormalization", "epsilon=0.01", grouped, vector_of(m, groups, 1), vector_of(m, groups, 0));
    return affine(m, NM_NODE(m, "Reshape", "", norm, NM_LIST(m, 1, c, h, h)), 4, 1, c);
}

/* ---- attention ---- */

typedef struct heads {
    int rank;
    int64_t n, h, s, t, d, e; /* batch, heads, queries, keys, depth, columns of v */
} heads;

static prony_shape stacked(const heads *a, int64_t rows, int64_t columns)
{
    return a->rank == 3 ? NM_SHAPE(a->h, rows, columns) : NM_SHAPE(a->n, a->h, rows, columns);
}

/* With a mask to add or to choose by, a scale, or neither. */
static int scores_of(nm_maker *m, const heads *a, int q, int k)
{
    int scores = NM_NODE(m, "MatMul", "", q, k);
    if (nm_either(m)) scores = nm_times(m, scores, 0.35);
    const prony_shape shapes[] = {stacked(a, a->s, a->t), NM_SHAPE(a->s, a->t), NM_SHAPE(a->t)};
    const prony_shape shape = shapes[rg_below(&m->k, 3)];
    const int64_t what = rg_below(&m->k, 3);
    if (what == 0) return scores;
    const int mask = nm_either(m) ? nm_constant(m, shape, -3, 3) : nm_input(m, shape);
    if (what == 1) return nm_pair(m, "Add", scores, mask);
    const int kept = NM_NODE(m, "Greater", "", mask, nm_number(m, -1)), fill = nm_number(m, -50);
    m->k.g->values[kept].dtype = PRONY_BOOL;
    return nm_either(m) ? NM_NODE(m, "Where", "", kept, scores, fill) : NM_NODE(m, "Where", "", kept, fill, scores);
}

static heads any_heads(nm_maker *m)
{
    return (heads){.rank = 3 + (int)rg_below(&m->k, 2),
                   .n = 1 + rg_below(&m->k, 2),
                   .h = 1 + rg_below(&m->k, 3),
                   .s = nm_extent(m),
                   .t = nm_extent(m),
                   .d = nm_extent(m),
                   .e = nm_extent(m)};
}

static int weighted(nm_maker *m, int scores, int rank, int v)
{
    const bool last = m->k.g->opset >= 13 && nm_either(m);
    return NM_NODE(m, "MatMul", "", NM_NODE(m, "Softmax", last ? "" : rank == 3 ? "axis=2" : "axis=3", scores), v);
}

static int match_attention(nm_maker *m)
{
    const heads a = any_heads(m);
    const int q = nm_before(m, stacked(&a, a.s, a.d)), k = nm_before(m, stacked(&a, a.d, a.t)),
              v = nm_before(m, stacked(&a, a.t, a.e));
    return weighted(m, scores_of(m, &a, q, k), a.rank, v);
}

/* Operands and result as heads are cut from rows: [n, rows, heads, columns], each transposed; or scaled. */
static int widen_attention(nm_maker *m)
{
    heads a = any_heads(m);
    a.rank = 4;
    int q = nm_before(m, NM_SHAPE(a.n, a.s, a.h, a.d)), k = nm_before(m, NM_SHAPE(a.n, a.t, a.h, a.d)),
        v = nm_before(m, NM_SHAPE(a.n, a.t, a.h, a.e));
    q = NM_NODE(m, "Transpose", "perm=[0,2,1,3]", q);
    k = NM_NODE(m, "Transpose", "perm=[0,2,3,1]", k);
    v = NM_NODE(m, "Transpose", "perm=[0,2,1,3]", v);
    if (nm_either(m)) q = nm_times(m, q, 0.6);
    if (nm_either(m)) k = nm_times(m, k, 0.6);
    const int y = weighted(m, scores_of(m, &a, q, k), 4, v);
    return nm_either(m) ? NM_NODE(m, "Transpose", "perm=[0,2,1,3]", y) : y;
}

const nm_pattern nm_match_patterns[] = {{"match_silu", match_silu},
                                        {"match_hard_sigmoid", match_hard_sigmoid},
                                        {"match_hard_swish", match_hard_swish},
                                        {"match_gelu", match_gelu},
                                        {"match_layer_norm", match_layer_norm},
                                        {"match_group_norm", match_group_norm},
                                        {"fold_layer_norm_affine", fold_layer_norm_affine},
                                        {"fold_channel_norm_affine", fold_channel_norm_affine},
                                        {"match_attention", match_attention},
                                        {"widen_attention", widen_attention},
                                        {NULL, NULL}};
