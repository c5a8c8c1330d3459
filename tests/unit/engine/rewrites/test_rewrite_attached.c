/* Rewrites that attach activations, numbers and residuals to contractions: each fires where it should and nowhere
 * else. */
#include "failure_trace.h"
#include "base/shape.h"
#include "engine/rewrites/rewrite.h"
#include "rewrite_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- attaching ---- */

static void attach_activations(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs, *attributes, *wanted;
    } cases[] = {
        {"Relu", "c", "", "Conv[relu]"},
        {"Clip", "c zero six", "", "Conv[clip]"},
        {"Clip", "c zero", "", "Conv[relu]"},
        {"Clip", "c ? six", "", "Conv[clip]"},
        {"Clip", "c zero infinity", "", "Conv[relu]"},
        {"Clip", "c zero minus_infinity", "", "Conv[clip]"}, /* every element is the maximum */
        {"LeakyRelu", "c", "alpha=0.2", "Conv[leaky]"},
        {"PRelu", "c half", "", "Conv[leaky]"},
        {"PRelu", "c slopes", "", "Conv PRelu"},
        {"Sigmoid", "c", "", "Conv[sigmoid]"},
        {"Tanh", "c", "", "Conv[tanh]"},
        {"HardSigmoid", "c", "alpha=0.25 beta=0.4", "Conv[hardsigmoid]"},
        {"HardSwish", "c", "", "Conv[hardswish]"},
        {"Exp", "c", "", "Conv Exp"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        model_builder *m = rc_begin();
        rc_weights_in(m, "small", "4,4,3,3", -0.1f, 0.1f);
        rc_scalar(m, "zero", 0.0f);
        rc_scalar(m, "half", 0.5f);
        rc_scalar(m, "six", 6.0f);
        rc_scalar(m, "infinity", INFINITY);
        rc_scalar(m, "minus_infinity", -INFINITY);
        rc_weights(m, "slopes", "4,1,1");
        rc_conv(m, "x small", "c");
        mb_node(m, cases[k].op, cases[k].inputs, "y", cases[k].attributes);
        rc_output(m, "y");
        rc_expect(m, cases[k].wanted);
    }
}

/* Constants after an activation are attached; directly after a contraction they go into the weights. */
static void attach_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs, *then, *more, *wanted;
    } cases[] = {
        {"Mul", "r half", "Add", "s six", "Conv[sigmoid,affine]"},
        {"Mul", "half r", "Sub", "six s", "Conv[sigmoid,affine,affine]"},
        {"Add", "r six", "Mul", "s half", "Conv[sigmoid,affine,affine]"},
        {"Sub", "r half", "Tanh", "s", "Conv[sigmoid,affine,tanh]"},
        {"Div", "r half", "Add", "s six", "Conv[sigmoid,affine]"},
        {"Div", "r six", "Tanh", "s", "Conv[sigmoid] Div Tanh"},  /* its reciprocal is rounded */
        {"Div", "half r", "Tanh", "s", "Conv[sigmoid] Div Tanh"}, /* not linear */
        {"Mul", "r huge", "Tanh", "s", "Conv[sigmoid,affine,tanh]"},
        {"Mul", "r slopes", "Tanh", "s", "Conv[sigmoid] Mul Tanh"},
        {"Mul", "r grows", "Tanh", "s", "Conv[sigmoid] Mul Tanh"}, /* the result has another rank */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        model_builder *m = rc_begin();
        rc_weights_in(m, "small", "4,4,3,3", -0.1f, 0.1f);
        rc_scalar(m, "half", 0.5f);
        rc_scalar(m, "six", 6.0f);
        rc_scalar(m, "huge", 1e30f);
        rc_weights(m, "slopes", "4,1,1");
        rc_weights(m, "grows", "1,1,1,1,1");
        rc_conv(m, "x small", "c");
        mb_node(m, "Sigmoid", "c", "r", "");
        mb_node(m, cases[k].op, cases[k].inputs, "s", "");
        mb_node(m, cases[k].then, cases[k].more, "y", "");
        rc_output(m, "y");
        rc_expect(m, cases[k].wanted);
    }
}

/* Before opset 11 the bounds are attributes, and inputs of that name say nothing. */
static void read_bounds_of_the_opset(void **state)
{
    (void)state;
    for (int64_t opset = 6; opset <= 11; opset += 5) {
        SCENARIO(opset);
        rc_seed(1);
        model_builder *m = mb_begin(opset);
        mb_input(m, "x", PRONY_FLOAT32, "2,4,5,5");
        rc_weights(m, "w", "4,4,3,3");
        rc_scalar(m, "low", -0.1f);
        rc_scalar(m, "high", 0.1f);
        rc_conv(m, "x w", "c");
        mb_node(m, "Clip", "c low high", "y", opset < 11 ? "min=-1.0" : "min=1.0");
        rc_output(m, "y");
        rc_expect(m, "Conv[clip]");

        m = mb_begin(opset);
        mb_input(m, "x", PRONY_FLOAT32, "2,4,5,5");
        rc_scalar(m, "low", -0.1f);
        mb_node(m, "Exp", "x", "e", "");
        mb_node(m, "Clip", opset < 11 ? "e low" : "e", "y", opset < 11 ? "" : "max=0.5");
        rc_output(m, "y");
        rc_expect(m, "Exp");
    }
}

static void keep_activations(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    rc_conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Mul", "r c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Relu Mul");

    m = rc_begin();
    rc_conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "y", "");
    rc_output(m, "c");
    rc_output(m, "y");
    rc_expect(m, "Conv Relu");

    m = rc_begin(); /* a bound that comes at run time */
    mb_input(m, "high", PRONY_FLOAT32, "");
    rc_conv(m, "x w b", "c");
    mb_node(m, "Clip", "c ? high", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Clip");

    m = rc_begin(); /* no room for a fifth */
    rc_conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r1", "");
    mb_node(m, "Tanh", "r1", "r2", "");
    mb_node(m, "Sigmoid", "r2", "r3", "");
    mb_node(m, "LeakyRelu", "r3", "r4", "");
    mb_node(m, "Relu", "r4", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[relu,tanh,sigmoid,leaky] Relu");

    m = rc_begin(); /* numbers per channel after an activation cannot go into the weights */
    rc_weights(m, "half", "4,1,1");
    rc_conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Mul", "r half", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[relu] Mul");
}

static void attach_residuals(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    rc_conv(m, "x w b", "c");
    mb_node(m, "Add", "c x", "s", "");
    mb_node(m, "Relu", "s", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[add,relu]");

    m = rc_begin(); /* the later of two takes it */
    mb_node(m, "Relu", "x", "r", "");
    rc_conv(m, "x w b", "c1");
    rc_conv(m, "r w", "c2");
    mb_node(m, "Add", "c1 c2", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu Conv Conv[add]");

    m = rc_begin(); /* the convolution waits for its residual */
    rc_conv(m, "x w b", "c");
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "Add", "c e", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Exp Conv[add]");

    m = rc_begin(); /* the residual is the convolution's own input */
    rc_weights(m, "point", "4,4,1,1");
    mb_node(m, "Relu", "x", "r", "");
    mb_node(m, "Conv", "r point", "c", "");
    mb_node(m, "Add", "r c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu Conv[add]");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    rc_weights(m, "w", "4,4");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "x p", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul[add]");
}

static void keep_residuals(void **state)
{
    (void)state;
    model_builder *m = rc_begin(); /* broadcast */
    mb_input(m, "s", PRONY_FLOAT32, "1,4,1,1");
    rc_conv(m, "x w b", "c");
    mb_node(m, "Add", "c s", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Add");

    m = rc_begin(); /* twice the same */
    rc_conv(m, "x w b", "c");
    mb_node(m, "Add", "c c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Add");

    m = rc_begin(); /* another node also reads an operand of the sum */
    rc_conv(m, "x w b", "c");
    mb_node(m, "Add", "c x", "s", "");
    mb_node(m, "Mul", "s c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Add Mul");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attach_numbers),           cmocka_unit_test(attach_activations),
        cmocka_unit_test(read_bounds_of_the_opset), cmocka_unit_test(keep_activations),
        cmocka_unit_test(attach_residuals),         cmocka_unit_test(keep_residuals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
