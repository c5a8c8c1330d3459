/* Functions of one number: dy times the derivative, in terms of the input or, if cheaper, of the output. */
#include "engine/gradient/rules.h"

#include <math.h>
#include <string.h>

#define X prn_grad_in(g, 0)
#define Y prn_grad_out(g, 0)
#define DY prn_grad_of(g, 0)

static uint32_t rules_functions_number(prn_gradient *g, double value)
{
    return prn_grad_number(g, X, value);
}

static uint32_t square(prn_gradient *g, uint32_t a)
{
    return prn_grad_mul(g, a, a);
}

static void times(prn_gradient *g, uint32_t slope)
{
    prn_grad_give(g, 0, prn_grad_mul(g, DY, slope));
}

static void rules_functions_over(prn_gradient *g, uint32_t slope)
{
    prn_grad_give(g, 0, prn_grad_div(g, DY, slope));
}

/* dy where x > bound, `otherwise` elsewhere. */
static void above(prn_gradient *g, double bound, uint32_t otherwise)
{
    prn_grad_give(g, 0,
                  prn_grad_3(g, "Where", prn_grad_2(g, "Greater", X, rules_functions_number(g, bound)), DY, otherwise));
}

PRN_GRADIENT_RULE(neg)
{
    prn_grad_give(g, 0, prn_grad_neg(g, DY));
}
PRN_GRADIENT_RULE(abs)
{
    times(g, prn_grad_1(g, "Sign", X));
}
PRN_GRADIENT_RULE(sqrt)
{
    rules_functions_over(g, prn_grad_add(g, Y, Y));
}
PRN_GRADIENT_RULE(exp)
{
    times(g, Y);
}
PRN_GRADIENT_RULE(log)
{
    rules_functions_over(g, X);
}
PRN_GRADIENT_RULE(reciprocal)
{
    times(g, prn_grad_neg(g, square(g, Y)));
}
PRN_GRADIENT_RULE(relu)
{
    above(g, 0, rules_functions_number(g, 0));
}
PRN_GRADIENT_RULE(sigmoid)
{
    times(g, prn_grad_mul(g, Y, prn_grad_sub(g, rules_functions_number(g, 1), Y)));
}
PRN_GRADIENT_RULE(tanh)
{
    times(g, prn_grad_sub(g, rules_functions_number(g, 1), square(g, Y)));
}

PRN_GRADIENT_RULE(leaky_relu)
{
    above(g, 0, prn_grad_mul(g, DY, rules_functions_number(g, prn_grad_float(g, "alpha", 0.01f))));
}

PRN_GRADIENT_RULE(thresholded_relu)
{
    above(g, prn_grad_float(g, "alpha", 1), rules_functions_number(g, 0));
}

PRN_GRADIENT_RULE(shrink)
{
    const uint32_t outside =
        prn_grad_2(g, "Greater", prn_grad_1(g, "Abs", X), rules_functions_number(g, prn_grad_float(g, "lambd", 0.5)));
    prn_grad_give(g, 0, prn_grad_3(g, "Where", outside, DY, rules_functions_number(g, 0)));
}

/* alpha (exp x - 1) below 0 */
PRN_GRADIENT_RULE(elu)
{
    above(g, 0, prn_grad_mul(g, DY, prn_grad_add(g, Y, rules_functions_number(g, prn_grad_float(g, "alpha", 1)))));
}

PRN_GRADIENT_RULE(selu)
{
    const double alpha = prn_grad_float(g, "alpha", 1.67326319217681884765625),
                 gamma = prn_grad_float(g, "gamma", 1.05070102214813232421875);
    const uint32_t below = prn_grad_add(g, Y, rules_functions_number(g, alpha * gamma));
    times(g, prn_grad_3(g, "Where", prn_grad_2(g, "Greater", X, rules_functions_number(g, 0)),
                        rules_functions_number(g, gamma), below));
}

/* alpha (exp(x / alpha) - 1) below 0 */
PRN_GRADIENT_RULE(celu)
{
    const double alpha = prn_grad_float(g, "alpha", 1);
    const uint32_t slope =
        prn_grad_add(g, prn_grad_div(g, Y, rules_functions_number(g, alpha)), rules_functions_number(g, 1));
    above(g, 0, prn_grad_mul(g, DY, slope));
}

PRN_GRADIENT_RULE(softplus)
{
    times(g, prn_grad_1(g, "Sigmoid", X));
}

PRN_GRADIENT_RULE(softsign)
{
    rules_functions_over(g, square(g, prn_grad_add(g, prn_grad_1(g, "Abs", X), rules_functions_number(g, 1))));
}

PRN_GRADIENT_RULE(hard_sigmoid)
{
    const uint32_t zero = rules_functions_number(g, 0);
    const uint32_t inside =
        prn_grad_2(g, "And", prn_grad_2(g, "Greater", Y, zero), prn_grad_2(g, "Less", Y, rules_functions_number(g, 1)));
    const uint32_t slope = prn_grad_mul(g, DY, rules_functions_number(g, prn_grad_float(g, "alpha", 0.2f)));
    prn_grad_give(g, 0, prn_grad_3(g, "Where", inside, slope, zero));
}

/* x min(max(x/6 + 1/2, 0), 1): 0 up to -3, 1 from 3 on, x/3 + 1/2 between. */
PRN_GRADIENT_RULE(hard_swish)
{
    const uint32_t slope =
        prn_grad_add(g, prn_grad_div(g, X, rules_functions_number(g, 3)), rules_functions_number(g, 0.5));
    const uint32_t low = prn_grad_3(g, "Where", prn_grad_2(g, "Less", X, rules_functions_number(g, -3)),
                                    rules_functions_number(g, 0), slope);
    times(g, prn_grad_3(g, "Where", prn_grad_2(g, "Greater", X, rules_functions_number(g, 3)),
                        rules_functions_number(g, 1), low));
}

/* x P(x), P the normal distribution: P(x) + x p(x) */
static uint32_t gelu_slope(prn_gradient *g)
{
    const uint32_t half = rules_functions_number(g, 0.5),
                   erf = prn_grad_1(g, "Erf", prn_grad_mul(g, X, rules_functions_number(g, sqrt(0.5))));
    const uint32_t p = prn_grad_mul(g, half, prn_grad_add(g, rules_functions_number(g, 1), erf));
    const uint32_t bell = prn_grad_1(g, "Exp", prn_grad_mul(g, square(g, X), rules_functions_number(g, -0.5)));
    return prn_grad_add(g, p,
                        prn_grad_mul(g, prn_grad_mul(g, X, bell), rules_functions_number(g, 1 / sqrt(2 * acos(-1)))));
}

/* x (1 + tanh u) / 2, u = sqrt(2/pi) (x + 0.044715 x^3) */
static uint32_t gelu_tanh_slope(prn_gradient *g)
{
    const double scale = sqrt(2 / acos(-1));
    const uint32_t one = rules_functions_number(g, 1), half = rules_functions_number(g, 0.5), s = square(g, X),
                   bend = rules_functions_number(g, 0.044715);
    const uint32_t u = prn_grad_mul(g, prn_grad_mul(g, X, rules_functions_number(g, scale)),
                                    prn_grad_add(g, one, prn_grad_mul(g, s, bend)));
    const uint32_t t = prn_grad_1(g, "Tanh", u);
    const uint32_t slope =
        prn_grad_mul(g, prn_grad_add(g, one, prn_grad_mul(g, s, rules_functions_number(g, 3 * 0.044715))),
                     rules_functions_number(g, scale));
    const uint32_t rest = prn_grad_mul(g, prn_grad_mul(g, X, slope), prn_grad_sub(g, one, square(g, t)));
    return prn_grad_mul(g, half, prn_grad_add(g, prn_grad_add(g, one, t), rest));
}

PRN_GRADIENT_RULE(gelu)
{
    times(g, strcmp(prn_grad_text(g, "approximate", "none"), "tanh") == 0 ? gelu_tanh_slope(g) : gelu_slope(g));
}

/* x t, t = tanh softplus x */
PRN_GRADIENT_RULE(mish)
{
    const uint32_t t = prn_grad_1(g, "Tanh", prn_grad_1(g, "Softplus", X));
    const uint32_t rest =
        prn_grad_mul(g, prn_grad_1(g, "Sigmoid", X), prn_grad_sub(g, rules_functions_number(g, 1), square(g, t)));
    times(g, prn_grad_add(g, t, prn_grad_mul(g, X, rest)));
}

/* a s, s = sigmoid(alpha a): s + alpha a s (1 - s) */
static uint32_t swish_slope(prn_gradient *g, uint32_t s, double alpha)
{
    const uint32_t rest = prn_grad_mul(g, prn_grad_mul(g, X, rules_functions_number(g, alpha)),
                                       prn_grad_sub(g, rules_functions_number(g, 1), s));
    return prn_grad_mul(g, s, prn_grad_add(g, rules_functions_number(g, 1), rest));
}

PRN_GRADIENT_RULE(swish)
{
    const double alpha = prn_grad_float(g, "alpha", 1);
    times(g, swish_slope(g, prn_grad_1(g, "Sigmoid", prn_grad_mul(g, X, rules_functions_number(g, alpha))), alpha));
}

/* a sigmoid(alpha a) b */
PRN_GRADIENT_RULE(swiglu)
{
    const double alpha = prn_grad_float(g, "alpha", 1);
    const uint32_t s = prn_grad_1(g, "Sigmoid", prn_grad_mul(g, X, rules_functions_number(g, alpha)));
    if (prn_grad_wants(g, 0)) times(g, prn_grad_mul(g, prn_grad_in(g, 1), swish_slope(g, s, alpha)));
    if (prn_grad_wants(g, 1)) prn_grad_give(g, 1, prn_grad_mul(g, DY, prn_grad_mul(g, X, s)));
}

PRN_GRADIENT_RULE(erf)
{
    times(g, prn_grad_mul(g, prn_grad_1(g, "Exp", prn_grad_neg(g, square(g, X))),
                          rules_functions_number(g, 2 / sqrt(acos(-1)))));
}

PRN_GRADIENT_RULE(sin)
{
    times(g, prn_grad_1(g, "Cos", X));
}
PRN_GRADIENT_RULE(cos)
{
    times(g, prn_grad_neg(g, prn_grad_1(g, "Sin", X)));
}
PRN_GRADIENT_RULE(tan)
{
    times(g, prn_grad_add(g, rules_functions_number(g, 1), square(g, Y)));
}
PRN_GRADIENT_RULE(asin)
{
    rules_functions_over(g, prn_grad_1(g, "Sqrt", prn_grad_sub(g, rules_functions_number(g, 1), square(g, X))));
}

PRN_GRADIENT_RULE(acos)
{
    rules_functions_over(
        g, prn_grad_neg(g, prn_grad_1(g, "Sqrt", prn_grad_sub(g, rules_functions_number(g, 1), square(g, X)))));
}

PRN_GRADIENT_RULE(atan)
{
    rules_functions_over(g, prn_grad_add(g, rules_functions_number(g, 1), square(g, X)));
}
PRN_GRADIENT_RULE(sinh)
{
    times(g, prn_grad_1(g, "Cosh", X));
}
PRN_GRADIENT_RULE(cosh)
{
    times(g, prn_grad_1(g, "Sinh", X));
}
PRN_GRADIENT_RULE(asinh)
{
    rules_functions_over(g, prn_grad_1(g, "Sqrt", prn_grad_add(g, square(g, X), rules_functions_number(g, 1))));
}
PRN_GRADIENT_RULE(acosh)
{
    rules_functions_over(g, prn_grad_1(g, "Sqrt", prn_grad_sub(g, square(g, X), rules_functions_number(g, 1))));
}
PRN_GRADIENT_RULE(atanh)
{
    rules_functions_over(g, prn_grad_sub(g, rules_functions_number(g, 1), square(g, X)));
}
