/* Patterns of the rewrites that fold into a contraction's weights, or attach to a contraction. */
#include "tests/support/near_miss_maker.h"

static int fold_batch_norm(nm_maker *m)
{
    nm_contraction c = nm_contract(m);
    while (c.axis != 1) c = nm_contract(m);
    return nm_batch_norm(m, c.y, c.channels);
}

static int fold_scale_shift(nm_maker *m)
{
    static const char *const ops[] = {"Mul", "Add", "Div", "Sub", "Sub"};
    nm_contraction c = nm_contract(m);
    int y = c.y, axis = c.axis;
    if (c.rank == 3 && rg_chance(&m->k, 30)) {
        y = NM_NODE(m, "Transpose", "perm=[0,2,1]", y);
        axis = 3 - axis;
    }
    for (int64_t i = rg_below(&m->k, 2); i >= 0; i--) {
        const int64_t what = rg_below(&m->k, 5);
        const int constant = rg_chance(&m->k, 25) ? nm_number(m, 0.7) : nm_along(m, c.rank, axis, c.channels, 0.5, 2);
        const bool turned = what < 2 ? nm_either(m) : what == 4;
        y = NM_NODE(m, ops[what], "", turned ? constant : y, turned ? y : constant);
    }
    return y;
}

/* Convolutions of one input that are added: equal windows, a window inside another, a normalisation of the input. */
static int merge_branches(nm_maker *m)
{
    const int64_t c = 1 + rg_below(&m->k, 4), out = nm_either(m) ? c : 1 + rg_below(&m->k, 4);
    const int rank = 3 + (int)rg_below(&m->k, 2);
    prony_shape shape = {rank, {1, c, nm_extent(m), nm_extent(m)}};
    const int x = nm_before(m, shape);
    int y = nm_same_conv(m, x, rank, c, out, 3).y;
    for (int64_t i = rg_below(&m->k, 3); i >= 0; i--) {
        const int64_t what = rg_below(&m->k, 4);
        int other;
        if (what == 0 && c == out) {
            other = nm_batch_norm(m, x, c);
        } else {
            other = nm_same_conv(m, x, rank, c, out, what == 1 ? 3 : 1).y;
            if (what == 3) other = nm_batch_norm(m, other, out);
        }
        y = nm_pair(m, nm_either(m) ? "Add" : "Sum", y, other);
    }
    return y;
}

static int pointwise_conv(nm_maker *m)
{
    const int64_t in = nm_extent(m), out = nm_extent(m);
    const bool deep = rg_chance(&m->k, 30);
    int x = nm_before(m, deep ? NM_SHAPE(1, in, 3, 2, 4) : NM_SHAPE(2, in, nm_extent(m), nm_extent(m)));
    x = NM_NODE(m, "Transpose", deep ? "perm=[0,2,3,4,1]" : "perm=[0,2,3,1]", x);
    x = NM_NODE(m, "MatMul", "", x, nm_constant(m, NM_SHAPE(in, out), -0.6, 0.6));
    if (nm_either(m)) x = nm_pair(m, "Add", x, nm_constant(m, NM_SHAPE(out), -1, 1));
    return NM_NODE(m, "Transpose", deep ? "perm=[0,4,1,2,3]" : "perm=[0,3,1,2]", x);
}

static int activation(nm_maker *m, int y)
{
    static const double low = -0.5, zero = 0, high = 6;
    static const char *const ops[] = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid"};
    static const char *const attributes[] = {"", "alpha=0.2", "", "", "alpha=0.25 beta=0.4"};
    const int64_t what = rg_below(&m->k, 12);
    if (what < 5) return NM_NODE(m, ops[what], attributes[what], y);
    if (what == 5) return NM_NODE(m, "PRelu", "", y, nm_number(m, 0.3));
    if (what == 6) return nm_pair(m, "Mul", y, NM_NODE(m, "Sigmoid", "", y));
    if (what == 7) return NM_NODE(m, "HardSigmoid", "", y);
    if (what == 8 && m->k.g->opset >= 14) return NM_NODE(m, "HardSwish", "", y);
    if (what == 9 && m->k.g->opset >= 20) return NM_NODE(m, "Gelu", "", y);
    if (what == 10) return nm_clip(m, y, &low, NULL);
    return nm_clip(m, y, nm_either(m) ? &low : &zero, &high);
}

static int attach_activation(nm_maker *m)
{
    static const char *const ops[] = {"Mul", "Add", "Sub", "Div", "Sub"};
    int y = activation(m, nm_contract(m).y);
    for (int64_t i = rg_below(&m->k, 4); i > 0; i--) {
        const int64_t what = rg_below(&m->k, 5);
        const int number = nm_number(m, what == 3 ? 4 : 1.5);
        const bool turned = what == 4 || (what < 2 && nm_either(m));
        y = NM_NODE(m, ops[what], "", turned ? number : y, turned ? y : number);
    }
    return rg_chance(&m->k, 40) ? activation(m, y) : y;
}

static int attach_residual(nm_maker *m)
{
    const int64_t c = 1 + rg_below(&m->k, 4);
    int x, y, other;
    if (rg_chance(&m->k, 30)) {
        x = nm_before(m, NM_SHAPE(nm_extent(m), c));
        y = NM_NODE(m, "MatMul", "", x, nm_constant(m, NM_SHAPE(c, c), -0.6, 0.6));
        other = nm_either(m) ? x : NM_NODE(m, "Exp", "", x);
    } else {
        const int rank = 3 + (int)rg_below(&m->k, 2);
        const prony_shape shape = {rank, {1, c, nm_extent(m), nm_extent(m)}};
        x = nm_before(m, shape);
        y = nm_same_conv(m, x, rank, c, c, nm_either(m) ? 1 : 3).y;
        const int64_t what = rg_below(&m->k, 4);
        other = what == 0   ? x
                : what == 1 ? nm_before(m, shape)
                : what == 2 ? NM_NODE(m, "Exp", "", x)
                            : nm_same_conv(m, nm_before(m, shape), rank, c, c, 3).y;
    }
    if (rg_chance(&m->k, 30)) y = activation(m, y);
    const int sum = nm_pair(m, nm_either(m) ? "Add" : "Sum", y, other);
    return nm_either(m) ? sum : activation(m, sum);
}

const nm_pattern nm_fold_patterns[] = {{"fold_batch_norm", fold_batch_norm},
                                       {"fold_scale_shift", fold_scale_shift},
                                       {"merge_branches", merge_branches},
                                       {"pointwise_conv", pointwise_conv},
                                       {"attach_activation", attach_activation},
                                       {"attach_residual", attach_residual},
                                       {NULL, NULL}};
