/* Operators on several inputs that are broadcast: a gradient is summed over broadcast axes. */
#include "engine/gradient/rules.h"

#include <string.h>

#define X(i) prn_grad_in(g, i)
#define Y prn_grad_out(g, 0)
#define DY prn_grad_of(g, 0)

/* Before opset 7 an attribute `axis` aligns the shapes. */
static bool old_broadcast(prn_gradient *g)
{
    if (g->node->info.opset >= 7 || prn_grad_int(g, "broadcast", 0) == 0) return false;
    prn_grad_refuse(g, "no gradient rule exists for the broadcasting of opset %lld", (long long)g->node->info.opset);
    return true;
}

PRN_GRADIENT_RULE(add)
{
    if (old_broadcast(g)) return;
    prn_grad_give_summed(g, 0, DY);
    prn_grad_give_summed(g, 1, DY);
}

PRN_GRADIENT_RULE(sub)
{
    if (old_broadcast(g)) return;
    prn_grad_give_summed(g, 0, DY);
    if (prn_grad_wants(g, 1)) prn_grad_give_summed(g, 1, prn_grad_neg(g, DY));
}

PRN_GRADIENT_RULE(mul)
{
    if (old_broadcast(g)) return;
    if (prn_grad_wants(g, 0)) prn_grad_give_summed(g, 0, prn_grad_mul(g, DY, X(1)));
    if (prn_grad_wants(g, 1)) prn_grad_give_summed(g, 1, prn_grad_mul(g, DY, X(0)));
}

PRN_GRADIENT_RULE(div)
{
    if (old_broadcast(g)) return;
    const uint32_t part = prn_grad_div(g, DY, X(1));
    prn_grad_give_summed(g, 0, part);
    if (prn_grad_wants(g, 1)) prn_grad_give_summed(g, 1, prn_grad_neg(g, prn_grad_mul(g, part, Y)));
}

/* b x^(b-1), and 0 where b is 0, whatever x; x^b log x, and 0 where x is not positive. */
PRN_GRADIENT_RULE(pow)
{
    if (old_broadcast(g)) return;
    const uint32_t x = X(0), b = prn_grad_cast_like(g, X(1), x);
    double power = 0;
    if (prn_grad_wants(g, 0) && prn_grad_constant_float(g, b, &power) && power == 2.0) {
        prn_grad_give_summed(g, 0, prn_grad_mul(g, DY, prn_grad_mul(g, x, prn_grad_number(g, x, 2))));
    } else if (prn_grad_wants(g, 0)) {
        const uint32_t zero = prn_grad_number(g, x, 0), one = prn_grad_number(g, x, 1);
        const uint32_t slope = prn_grad_mul(g, b, prn_grad_2(g, "Pow", x, prn_grad_sub(g, b, one)));
        const uint32_t none = prn_grad_2(g, "Equal", b, zero);
        prn_grad_give_summed(g, 0, prn_grad_mul(g, DY, prn_grad_3(g, "Where", none, zero, slope)));
    }
    if (!prn_grad_wants(g, 1)) return;
    const uint32_t zero = prn_grad_number(g, x, 0), positive = prn_grad_2(g, "Greater", x, zero);
    const uint32_t safe = prn_grad_3(g, "Where", positive, x, prn_grad_number(g, x, 1));
    const uint32_t grown = prn_grad_mul(g, Y, prn_grad_1(g, "Log", safe));
    const uint32_t part = prn_grad_mul(g, DY, prn_grad_3(g, "Where", positive, grown, zero));
    prn_grad_give_summed(g, 1, prn_grad_cast_like(g, part, X(1)));
}

/* x - b trunc(x / b) */
PRN_GRADIENT_RULE(mod)
{
    prn_grad_give_summed(g, 0, DY);
    if (!prn_grad_wants(g, 1)) return;
    const uint32_t times = prn_grad_div(g, prn_grad_sub(g, Y, X(0)), X(1));
    prn_grad_give_summed(g, 1, prn_grad_mul(g, DY, times));
}

PRN_GRADIENT_RULE(sum)
{
    for (uint32_t i = 0; i < g->node->input_count; i++) prn_grad_give_summed(g, i, DY);
}

PRN_GRADIENT_RULE(mean)
{
    const uint32_t part = prn_grad_div(g, DY, prn_grad_number(g, Y, g->node->input_count));
    for (uint32_t i = 0; i < g->node->input_count; i++) prn_grad_give_summed(g, i, part);
}

/* Equal extremes share the gradient evenly. */
PRN_GRADIENT_RULE(extreme)
{
    const uint32_t count = g->node->input_count;
    uint32_t *is = prn_bump_alloc(&g->program->pool, count + 1, sizeof *is);
    if (!is) {
        g->status = prn_no_memory(g->error);
        return;
    }
    for (uint32_t i = 0; i < count; i++) is[i] = prn_grad_cast_like(g, prn_grad_2(g, "Equal", X(i), Y), Y);
    const uint32_t share = prn_grad_div(g, DY, prn_grad_op(g, "Sum", PRN_GRAD_NO_ATTRS, is, count));
    for (uint32_t i = 0; i < count; i++)
        if (prn_grad_wants(g, i)) prn_grad_give_summed(g, i, prn_grad_mul(g, share, is[i]));
}

PRN_GRADIENT_RULE(where)
{
    const uint32_t zero = prn_grad_number(g, Y, 0);
    if (prn_grad_wants(g, 1)) prn_grad_give_summed(g, 1, prn_grad_3(g, "Where", X(0), DY, zero));
    if (prn_grad_wants(g, 2)) prn_grad_give_summed(g, 2, prn_grad_3(g, "Where", X(0), zero, DY));
}

PRN_GRADIENT_RULE(prelu)
{
    const uint32_t zero = prn_grad_number(g, Y, 0), below = prn_grad_2(g, "Less", X(0), zero);
    if (prn_grad_wants(g, 0)) prn_grad_give(g, 0, prn_grad_3(g, "Where", below, prn_grad_mul(g, DY, X(1)), DY));
    if (prn_grad_wants(g, 1))
        prn_grad_give_summed(g, 1, prn_grad_3(g, "Where", below, prn_grad_mul(g, DY, X(0)), zero));
}

/* The gradient passes where output and input are equal, because nothing was clipped. */
PRN_GRADIENT_RULE(clip)
{
    const uint32_t zero = prn_grad_number(g, Y, 0);
    if (prn_grad_wants(g, 0)) prn_grad_give(g, 0, prn_grad_3(g, "Where", prn_grad_2(g, "Equal", X(0), Y), DY, zero));
    if (prn_grad_wants(g, 1))
        prn_grad_give_summed(g, 1, prn_grad_3(g, "Where", prn_grad_2(g, "Less", X(0), Y), DY, zero));
    if (prn_grad_wants(g, 2))
        prn_grad_give_summed(g, 2, prn_grad_3(g, "Where", prn_grad_2(g, "Greater", X(0), Y), DY, zero));
}

PRN_GRADIENT_RULE(cast)
{
    prn_grad_give(g, 0, prn_grad_cast_like(g, DY, X(0)));
}

PRN_GRADIENT_RULE(identity)
{
    prn_grad_give(g, 0, DY);
}
