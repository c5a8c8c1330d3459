/* Reductions and functions made of them: the gradient of a sum goes to all its terms. */
#include "engine/gradient/rules.h"

#define X prn_grad_in(g, 0)
#define Y prn_grad_out(g, 0)
#define DY prn_grad_of(g, 0)

/* The axes, as input or as attribute; PRN_NO_VALUE: not given. */
static uint32_t rules_reduce_axes_of(prn_gradient *g)
{
    size_t count;
    const int64_t *said = prn_grad_ints(g, "axes", &count);
    if (prn_grad_in(g, 1) != PRN_NO_VALUE) return prn_grad_in(g, 1);
    return said && count ? prn_grad_indices(g, said, count) : PRN_NO_VALUE;
}

/* Reshapes a value of the output's shape to have the reduced axes as ones, so that it broadcasts with the input. */
static uint32_t rules_reduce_kept(prn_gradient *g, uint32_t value)
{
    const uint32_t axes = rules_reduce_axes_of(g);
    if (prn_grad_int(g, "keepdims", 1) || axes == PRN_NO_VALUE) return value; /* a scalar broadcasts with any shape */
    int64_t few[PRONY_MAX_RANK];
    size_t count;
    if (prn_grad_constant_ints(g, axes, few, PRONY_MAX_RANK, &count) && count == 0) return value;
    return prn_grad_2(g, "Unsqueeze", value, axes);
}

static void rules_reduce_give(prn_gradient *g, uint32_t gradient)
{
    prn_grad_give(g, 0, prn_grad_expand_like(g, gradient, X));
}

static uint32_t rules_reduce_number(prn_gradient *g, double value)
{
    return prn_grad_number(g, X, value);
}

/* Reduces over the same axes by another operator, keeping the axes as ones. */
static uint32_t again(prn_gradient *g, const char *op, uint32_t value)
{
    const uint32_t axes = rules_reduce_axes_of(g);
    const prn_attr attrs[] = {prn_grad_attr_int("keepdims", 1),
                              prn_grad_attr_int("noop_with_empty_axes", prn_grad_int(g, "noop_with_empty_axes", 0))};
    return prn_grad_op(g, op, attrs, 2, (const uint32_t[]){value, axes}, axes == PRN_NO_VALUE ? 1 : 2);
}

PRN_GRADIENT_RULE(reduce_sum)
{
    rules_reduce_give(g, rules_reduce_kept(g, DY));
}

PRN_GRADIENT_RULE(reduce_mean)
{
    const uint32_t all = prn_grad_cast_like(g, prn_grad_1(g, "Size", X), X),
                   made = prn_grad_cast_like(g, prn_grad_1(g, "Size", Y), X);
    rules_reduce_give(g, prn_grad_mul(g, rules_reduce_kept(g, DY), prn_grad_div(g, made, all)));
}

/* Equal extremes share the gradient evenly. */
PRN_GRADIENT_RULE(reduce_extreme)
{
    const uint32_t is = prn_grad_cast_like(g, prn_grad_2(g, "Equal", X, rules_reduce_kept(g, Y)), X);
    rules_reduce_give(g, prn_grad_mul(g, prn_grad_div(g, rules_reduce_kept(g, DY), again(g, "ReduceSum", is)), is));
}

/* The product of the other elements: with one 0 among them, only the 0's own derivative is not 0. */
PRN_GRADIENT_RULE(reduce_prod)
{
    const uint32_t zero = rules_reduce_number(g, 0), one = rules_reduce_number(g, 1),
                   none = prn_grad_2(g, "Equal", X, zero);
    const uint32_t safe = prn_grad_3(g, "Where", none, one, X), product = again(g, "ReduceProd", safe);
    const uint32_t zeros = again(g, "ReduceSum", prn_grad_cast_like(g, none, X));
    const uint32_t if_zero = prn_grad_3(g, "Where", prn_grad_2(g, "Equal", zeros, one), product, zero);
    const uint32_t if_not =
        prn_grad_3(g, "Where", prn_grad_2(g, "Equal", zeros, zero), prn_grad_div(g, product, safe), zero);
    rules_reduce_give(g, prn_grad_mul(g, rules_reduce_kept(g, DY), prn_grad_3(g, "Where", none, if_zero, if_not)));
}

PRN_GRADIENT_RULE(reduce_l1)
{
    rules_reduce_give(g, prn_grad_mul(g, rules_reduce_kept(g, DY), prn_grad_1(g, "Sign", X)));
}

/* x / y, and 0 where all are 0 */
PRN_GRADIENT_RULE(reduce_l2)
{
    const uint32_t y = rules_reduce_kept(g, Y), none = prn_grad_2(g, "Equal", y, rules_reduce_number(g, 0));
    const uint32_t safe = prn_grad_3(g, "Where", none, rules_reduce_number(g, 1), y);
    rules_reduce_give(g, prn_grad_mul(g, prn_grad_div(g, rules_reduce_kept(g, DY), safe), X));
}

PRN_GRADIENT_RULE(reduce_log_sum)
{
    rules_reduce_give(g, prn_grad_div(g, rules_reduce_kept(g, DY), prn_grad_1(g, "Exp", rules_reduce_kept(g, Y))));
}

PRN_GRADIENT_RULE(reduce_log_sum_exp)
{
    rules_reduce_give(g, prn_grad_mul(g, rules_reduce_kept(g, DY),
                                      prn_grad_1(g, "Exp", prn_grad_sub(g, X, rules_reduce_kept(g, Y)))));
}

PRN_GRADIENT_RULE(reduce_sum_square)
{
    rules_reduce_give(g, prn_grad_mul(g, rules_reduce_kept(g, DY), prn_grad_mul(g, X, rules_reduce_number(g, 2))));
}

/* ---- softmax ---- */

/* Before opset 13 softmax works on rows: all elements from the axis on. */
static uint32_t rules_reduce_rows(prn_gradient *g, uint32_t value)
{
    if (g->node->info.opset >= 13) return value;
    const prn_attr axis = prn_grad_attr_int("axis", prn_grad_int(g, "axis", 1));
    return prn_grad_op(g, "Flatten", &axis, 1, &value, 1);
}

static uint32_t rules_reduce_sum_of(prn_gradient *g, uint32_t value)
{
    const int64_t axis = g->node->info.opset >= 13 ? prn_grad_int(g, "axis", -1) : 1;
    return prn_grad_reduce(g, "ReduceSum", value, prn_grad_indices(g, &axis, 1), true);
}

static void give_rows(prn_gradient *g, uint32_t gradient)
{
    prn_grad_give(g, 0, g->node->info.opset >= 13 ? gradient : prn_grad_reshape_like(g, gradient, X));
}

/* y (dy - sum(y dy)) */
PRN_GRADIENT_RULE(softmax)
{
    const uint32_t y = rules_reduce_rows(g, Y), dy = rules_reduce_rows(g, DY);
    give_rows(g, prn_grad_mul(g, y, prn_grad_sub(g, dy, rules_reduce_sum_of(g, prn_grad_mul(g, y, dy)))));
}

/* dy - exp(y) sum(dy) */
PRN_GRADIENT_RULE(log_softmax)
{
    const uint32_t y = rules_reduce_rows(g, Y), dy = rules_reduce_rows(g, DY);
    give_rows(g, prn_grad_sub(g, dy, prn_grad_mul(g, prn_grad_1(g, "Exp", y), rules_reduce_sum_of(g, dy))));
}
