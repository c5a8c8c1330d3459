/* Rewrites that fold into weights, attach to contractions and merge moves; and nodes that no rewrite may change.
 * Each fires where it should and nowhere else. */
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

static void conv(model_builder *m, const char *inputs, const char *output)
{
    mb_node(m, "Conv", inputs, output, "pads=[1,1,1,1]");
}

/* ---- folding into weights ---- */

static void fold_batch_norm(void **state)
{
    (void)state;
    static const struct {
        const char *op, *x, *w, *b, *attributes, *channels;
    } cases[] = {
        {"Conv", "2,4,5,5", "6,2,3,3", NULL, "group=2 strides=[2,2]", "6"},
        {"Conv", "2,4,9", "4,1,3", "4", "group=4", "4"},
        {"Conv", "1,2,4,4,4", "3,2,2,2,2", "3", "", "3"},
        {"ConvTranspose", "1,4,5,5", "4,3,2,2", "6", "group=2 strides=[2,2]", "6"},
        {"ConvTranspose", "1,4,5,5", "4,3,3,3", NULL, "", "3"},
        {"Gemm", "5,4", "6,4", "1,6", "transB=1 alpha=0.5", "6"},
        {"Gemm", "5,4", "4,6", "", "", "6"},
        {"MatMul", "5,4", "4,6", NULL, "", "6"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        rc_seed((uint32_t)k);
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, cases[k].x);
        rc_weights(m, "w", cases[k].w);
        if (cases[k].b) rc_weights(m, "b", cases[k].b);
        mb_node(m, cases[k].op, cases[k].b ? "x w b" : "x w", "c", cases[k].attributes);
        rc_batch_norm(m, "c", "y", cases[k].channels);
        rc_output(m, "y");
        rc_expect(m, cases[k].op);
    }
}

static void keep_batch_norm(void **state)
{
    (void)state;
    model_builder *m = rc_begin(); /* the convolution has another reader */
    conv(m, "x w b", "c");
    rc_batch_norm(m, "c", "n", "4");
    mb_node(m, "Mul", "n c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization Mul");

    m = rc_begin(); /* the convolution is an output of the graph */
    conv(m, "x w b", "c");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "c");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization");

    m = rc_begin(); /* weights come at run time */
    mb_input(m, "w2", PRONY_FLOAT32, "4,4,3,3");
    conv(m, "x w2 b", "c");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization");

    m = rc_begin(); /* so do statistics */
    mb_input(m, "shift", PRONY_FLOAT32, "4");
    rc_weights_in(m, "v", "4", 0.5f, 1.5f);
    conv(m, "x w b", "c");
    mb_node(m, "BatchNormalization", "c v shift b v", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv BatchNormalization");

    m = rc_begin(); /* before the convolution, padding would see the shift */
    rc_batch_norm(m, "x", "n", "4");
    conv(m, "n w b", "y");
    rc_output(m, "y");
    rc_expect(m, "BatchNormalization Conv");

    m = mb_begin(17); /* channels are not the columns of the product */
    mb_input(m, "x", PRONY_FLOAT32, "2,4,4");
    rc_weights(m, "w", "4,4");
    mb_node(m, "MatMul", "x w", "c", "");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "y");
    rc_expect(m, "MatMul BatchNormalization");

    m = mb_begin(17); /* C is scaled by beta, so nothing can be added to it */
    mb_input(m, "x", PRONY_FLOAT32, "5,4");
    rc_weights(m, "w", "4,4");
    rc_weights(m, "b", "4");
    mb_node(m, "Gemm", "x w b", "c", "beta=0.5");
    rc_batch_norm(m, "c", "y", "4");
    rc_output(m, "y");
    rc_expect(m, "Gemm BatchNormalization");
}

static void fold_scale_and_shift(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    rc_weights(m, "scale", "4,1,1");
    rc_weights(m, "shift", "1,4,1,1");
    rc_weights_in(m, "divisor", "1,4,1,1", 1.0f, 2.0f);
    rc_scalar(m, "half", 0.5f);
    conv(m, "x w", "c0");
    mb_node(m, "Mul", "scale c0", "c1", "");
    mb_node(m, "Add", "c1 shift", "c2", "");
    mb_node(m, "Div", "c2 divisor", "c3", "");
    mb_node(m, "Sub", "c3 half", "c4", "");
    mb_node(m, "Sub", "shift c4", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,3,4");
    rc_weights(m, "w", "4,5");
    rc_weights(m, "b", "5");
    rc_weights(m, "g", "1,1,5");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "b p", "q", "");
    mb_node(m, "Mul", "q g", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul");

    m = mb_begin(17); /* the channels went elsewhere in between */
    mb_input(m, "x", PRONY_FLOAT32, "2,3,4");
    rc_weights(m, "w", "4,5");
    rc_weights(m, "g", "5,1");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Transpose", "p", "t", "perm=[0,2,1]");
    mb_node(m, "Mul", "t g", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul Transpose");
}

static void keep_scale_and_shift(void **state)
{
    (void)state;
    static const struct {
        const char *dims, *op, *inputs, *wanted;
    } cases[] = {
        {"5", "Mul", "c k", "Conv Mul"},         /* along an axis other than the channels */
        {"4,1,5", "Add", "c k", "Conv Add"},     /* along two axes */
        {"3,1,1,1,1", "Add", "c k", "Conv Add"}, /* makes the output larger */
        {"4,1,1", "Div", "k c", "Conv Div"},     /* not linear */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCENARIO_NAMED(i, cases[i].op);
        model_builder *m = rc_begin();
        rc_weights(m, "k", cases[i].dims);
        conv(m, "x w b", "c");
        mb_node(m, cases[i].op, cases[i].inputs, "y", "");
        rc_output(m, "y");
        rc_expect(m, cases[i].wanted);
    }
    model_builder *m = rc_begin(); /* would leave float32's range */
    rc_weights_in(m, "large", "4,4,3,3", 1e20f, 2e20f);
    rc_scalar(m, "huge", 1e30f);
    rc_scalar(m, "tiny", 1e-30f);
    mb_node(m, "Mul", "x tiny", "s", "");
    conv(m, "s large", "c");
    mb_node(m, "Mul", "c huge", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Mul Conv Mul");

    m = rc_begin(); /* would make the weights subnormal */
    rc_scalar(m, "faint", 1e-40f);
    conv(m, "x w b", "c");
    mb_node(m, "Mul", "c faint", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Mul");

    static const struct {
        float weight, scale;
        const char *wanted;
    } small[] = {{1e-25f, 1e-20f, "Conv Mul"}, /* the product would be subnormal */
                 {1e-25f, 1e-7f, "Conv"},      /* it stays an ordinary number */
                 {1e-25f, 1e20f, "Conv"},
                 {1e-31f, 1e-7f, "Conv"}}; /* weights of decayed channels, which are nearly 0 already */
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        SCENARIO(i);
        m = rc_begin();
        rc_weights_in(m, "small", "4,4,3,3", small[i].weight, 2.0f * small[i].weight);
        rc_scalar(m, "scale", small[i].scale);
        conv(m, "x small", "c");
        mb_node(m, "Mul", "c scale", "y", "");
        rc_output(m, "y");
        rc_expect(m, small[i].wanted);
    }

    m = rc_begin(); /* the same, next to an ordinary bias */
    rc_weights_in(m, "scale", "4", 1e-36f, 2e-36f);
    rc_weights_in(m, "shift", "4", 0.5f, 1.0f);
    rc_weights_in(m, "mean", "4", 0.5f, 1.0f);
    rc_weights_in(m, "variance", "4", 0.5f, 1.0f);
    conv(m, "x w b", "c");
    mb_node(m, "BatchNormalization", "c scale shift mean variance", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv");

    m = mb_begin(17); /* both factors come at run time */
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    mb_input(m, "w", PRONY_FLOAT32, "4,5");
    rc_weights(m, "b", "5");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "y", "");
    rc_output(m, "y");
    rc_expect(m, "MatMul Add");

    m = mb_begin(17); /* another type */
    double doubles[20] = {0.5, 1, 1.5, 2};
    mb_input(m, "x", PRONY_FLOAT64, "3,4");
    mb_initializer(m, "w", PRONY_FLOAT64, "4,5", doubles);
    mb_initializer(m, "b", PRONY_FLOAT64, "5", doubles);
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "y", "");
    mb_output(m, "y", PRONY_FLOAT64, NULL);
    rc_expect(m, "MatMul Add");
}

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
        conv(m, "x small", "c");
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
        conv(m, "x small", "c");
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
        conv(m, "x w", "c");
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
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Mul", "r c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Relu Mul");

    m = rc_begin();
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "y", "");
    rc_output(m, "c");
    rc_output(m, "y");
    rc_expect(m, "Conv Relu");

    m = rc_begin(); /* a bound that comes at run time */
    mb_input(m, "high", PRONY_FLOAT32, "");
    conv(m, "x w b", "c");
    mb_node(m, "Clip", "c ? high", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Clip");

    m = rc_begin(); /* no room for a fifth */
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r1", "");
    mb_node(m, "Tanh", "r1", "r2", "");
    mb_node(m, "Sigmoid", "r2", "r3", "");
    mb_node(m, "LeakyRelu", "r3", "r4", "");
    mb_node(m, "Relu", "r4", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[relu,tanh,sigmoid,leaky] Relu");

    m = rc_begin(); /* numbers per channel after an activation cannot go into the weights */
    rc_weights(m, "half", "4,1,1");
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Mul", "r half", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[relu] Mul");
}

static void attach_residuals(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c x", "s", "");
    mb_node(m, "Relu", "s", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv[add,relu]");

    m = rc_begin(); /* the later of two takes it */
    mb_node(m, "Relu", "x", "r", "");
    conv(m, "x w b", "c1");
    conv(m, "r w", "c2");
    mb_node(m, "Add", "c1 c2", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu Conv Conv[add]");

    m = rc_begin(); /* the convolution waits for its residual */
    conv(m, "x w b", "c");
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
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c s", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Add");

    m = rc_begin(); /* twice the same */
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Add");

    m = rc_begin(); /* another node also reads an operand of the sum */
    conv(m, "x w b", "c");
    mb_node(m, "Add", "c x", "s", "");
    mb_node(m, "Mul", "s c", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Conv Add Mul");
}

/* ---- padding ---- */

/* Pads x by `pads` (in front and behind: all eight numbers), of `value` unless it is NULL, into p. */
static model_builder *padded(const int64_t *pads, const float *value, const char *attributes)
{
    model_builder *m = rc_begin();
    rc_ints(m, "pads", "8", pads);
    if (value) rc_scalar(m, "value", *value);
    mb_node(m, "Pad", value ? "x pads value" : "x pads", "p", attributes);
    return m;
}

static void expect_pad(model_builder *m, const char *op, const char *inputs, const char *attributes, const char *wanted)
{
    mb_node(m, op, inputs, "y", attributes);
    rc_output(m, "y");
    rc_expect(m, wanted);
}

static void fold_pads(void **state)
{
    (void)state;
    static const int64_t uneven[] = {0, 0, 1, 2, 0, 0, 0, 3}, even[] = {0, 0, 1, 1, 0, 0, 1, 1};
    static const float zero = 0.0f;
    expect_pad(padded(uneven, NULL, ""), "Conv", "p w b", "", "Conv");
    expect_pad(padded(uneven, &zero, ""), "Conv", "p w b", "pads=[0,1,2,0] strides=[2,1]", "Conv");
    expect_pad(padded(uneven, NULL, ""), "Conv", "p w b", "auto_pad='VALID' kernel_shape=[3,3]", "Conv");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p", "kernel_shape=[3,3]", "AveragePool");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p",
               "kernel_shape=[3,3] pads=[1,0,0,1] count_include_pad=1 strides=[2,2]", "AveragePool");
}

static void keep_pads(void **state)
{
    (void)state;
    static const int64_t even[] = {0, 0, 1, 1, 0, 0, 1, 1}, channels[] = {0, 0, 1, 1, 0, 1, 1, 1},
                         less[] = {0, 0, -1, 0, 0, 0, 0, 1}, wide[] = {0, 0, 3, 0, 0, 0, 0, 0};
    static const float one = 1.0f;
    expect_pad(padded(even, &one, ""), "Conv", "p w b", "", "Pad Conv");
    expect_pad(padded(even, NULL, "mode='edge'"), "Conv", "p w b", "", "Pad Conv");
    expect_pad(padded(less, NULL, ""), "Conv", "p w b", "", "Pad Conv");
    expect_pad(padded(even, NULL, ""), "Conv", "p w b", "auto_pad='SAME_UPPER' strides=[2,2]", "Pad Conv");
    expect_pad(padded(channels, NULL, ""), "AveragePool", "p", "kernel_shape=[3,3]", "Pad AveragePool");
    expect_pad(padded(wide, NULL, ""), "AveragePool", "p", "kernel_shape=[3,3]", "Pad AveragePool");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p", "kernel_shape=[2,2] pads=[1,0,0,0]", "Pad AveragePool");
    expect_pad(padded(even, NULL, ""), "AveragePool", "p", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1",
               "Pad AveragePool");
    expect_pad(padded(even, NULL, ""), "MaxPool", "p", "kernel_shape=[2,2]", "Pad MaxPool");
    model_builder *m = padded(even, NULL, ""); /* the padded value has another reader */
    rc_output(m, "p");
    expect_pad(m, "Conv", "p w b", "", "Pad Conv");
}

/* ---- less to look at ---- */

static void merge_moves(void **state)
{
    (void)state;
    static const int64_t flat[] = {2, -1}, front[] = {0};
    model_builder *m = rc_begin();
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[1,0,3,2]");
    mb_node(m, "Relu", "u", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Transpose Relu");

    m = rc_begin(); /* and back again */
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[0,3,1,2]");
    mb_node(m, "Relu", "u", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Relu");

    m = rc_begin();
    mb_node(m, "Transpose", "x", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[1,0,3,2]");
    mb_node(m, "Relu", "t", "r", "");
    rc_output(m, "u");
    rc_output(m, "r");
    rc_expect(m, "Transpose Transpose Relu");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,4,1,6");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0,3,2]");
    rc_output(m, "y");
    rc_expect(m, "Reshape");

    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,4,2,6");
    mb_node(m, "Transpose", "x", "y", "perm=[1,0,3,2]");
    rc_output(m, "y");
    rc_expect(m, "Transpose");

    m = rc_begin();
    rc_ints(m, "flat", "2", flat);
    rc_ints(m, "front", "1", front);
    mb_node(m, "Reshape", "x flat", "f", "");
    mb_node(m, "Unsqueeze", "f front", "g", "");
    mb_node(m, "Flatten", "g", "h", "axis=0");
    mb_node(m, "Relu", "h", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Reshape Relu");
}

/* ---- what is around ---- */

static prony_status double_it(const prony_context *context)
{
    const float *x = context->inputs[0]->data;
    float *y = context->outputs[0]->data;
    for (int64_t i = 0; i < prony_shape_numel(&context->inputs[0]->shape); i++) y[i] = 2.0f * x[i];
    return PRONY_OK;
}

static prony_status no_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    (void)cost;
    return PRONY_OK;
}

/* A user's operator called Relu is not Relu. */
static void leave_custom_operators(void **state)
{
    (void)state;
    prony_registry *registry;
    assert_int_equal(prony_registry_create(&registry, NULL), PRONY_OK);
    prony_operator relu = PRONY_OPERATOR_INIT;
    relu.name = "Relu";
    relu.infer = prn_infer_same;
    relu.cost = no_cost;
    relu.run = double_it;
    assert_int_equal(prony_registry_add(registry, &relu, NULL), PRONY_OK);
    model_builder *m = rc_begin();
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Relu", "c", "s", "");
    mb_node(m, "Add", "r s", "y", "");
    rc_output(m, "y");
    rc_expect_with(registry, m, "Conv Relu Relu Add");
    prony_registry_release(registry);
}

/* The shape of the convolution's input is known at run time only. */
static void leave_dynamic_nodes(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    mb_input(m, "keep", PRONY_BOOL, "2");
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "NonZero", "keep", "rows", "");
    static const int64_t flat[] = {-1};
    rc_ints(m, "flat", "1", flat);
    mb_node(m, "Reshape", "rows flat", "index", "");
    mb_node(m, "Gather", "e index", "g", "axis=0");
    conv(m, "g w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "Identity", "r", "y", "");
    rc_output(m, "y");
    rc_expect(m, "Exp NonZero Reshape Gather Conv Relu Identity");
}

/* A subgraph is rewritten as well; what it captures has a reader. */
static void rewrite_subgraphs(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    mb_input(m, "cond", PRONY_BOOL, "");
    conv(m, "x w b", "c");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "If", "cond", "z", "");
    mb_graph_begin(m, "then_branch");
    conv(m, "c w", "t");
    mb_node(m, "Relu", "t", "u", "");
    rc_output(m, "u");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Exp", "c", "v", "");
    rc_output(m, "v");
    mb_graph_end(m);
    mb_node(m, "Add", "r z", "y", "");
    rc_output(m, "y");

    rc_model l;
    rc_load(&l, m, NULL);
    prn_program *before, *after;
    assert_int_equal(rc_bind(&l, &before), PRONY_OK);
    assert_int_equal(rc_bind(&l, &after), PRONY_OK);
    assert_int_equal(prn_program_rewrite(after, &l.error), PRONY_OK);
    char text[256];
    rc_describe(after, text, sizeof text);
    assert_string_equal(text, "Conv Relu If Add");
    const prn_node_def *branch = after->nodes[2];
    assert_int_equal(branch->child_count, 2);
    rc_describe(branch->children[0].program, text, sizeof text);
    assert_string_equal(text, "Conv[relu]");
    rc_check_well_formed(after);
    rc_check_conserved(before, after);
    rc_check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    rc_unload(&l);
    mb_free(m);
}

/* Whichever allocation fails, the error says so and everything is released. */
static void survive_no_memory(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    conv(m, "x w", "c");
    rc_batch_norm(m, "c", "n", "4");
    mb_node(m, "Sigmoid", "n", "s", "");
    mb_node(m, "Mul", "n s", "p", "");
    mb_node(m, "Add", "p x", "q", "");
    mb_node(m, "Transpose", "q", "t", "perm=[0,2,3,1]");
    mb_node(m, "Transpose", "t", "u", "perm=[0,2,1,3]");
    rc_output(m, "u");
    rc_model l;
    rc_load(&l, m, NULL);
    uint64_t failures = 0;
    for (bool failed = true; failed;) {
        prn_program *program;
        assert_int_equal(rc_bind(&l, &program), PRONY_OK);
        prn_alloc_fail_at(failures + 1);
        prony_status status = prn_program_rewrite(program, &l.error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        failures += failed;
        prn_program_release(program);
    }
    assert_true(failures >= 4);
    rc_unload(&l);
    mb_free(m);
}

/* Statistics and a scale after one convolution: the first folding's constants have no reader. */
static void trim_what_is_folded(void **state)
{
    (void)state;
    model_builder *m = rc_begin();
    conv(m, "x w b", "c");
    rc_batch_norm(m, "c", "n", "4");
    rc_weights(m, "s", "4,1,1");
    mb_node(m, "Mul", "n s", "y", "");
    rc_output(m, "y");
    rc_model l;
    rc_load(&l, m, NULL);
    prn_program *before, *after;
    assert_int_equal(rc_bind(&l, &before), PRONY_OK);
    assert_int_equal(rc_bind(&l, &after), PRONY_OK);
    uint64_t bound = prn_weight_cache_bytes(l.model.shared);
    assert_int_equal(prn_program_rewrite(after, &l.error), PRONY_OK);
    uint64_t weights = 4 * (4 * 4 * 3 * 3 + 4);
    assert_int_equal(prn_weight_cache_bytes(l.model.shared), bound + 2 * weights);
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        bool done = prn_program_trim(after, NULL), failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(done, !failed);
        if (done) break;
        assert_int_equal(prn_weight_cache_bytes(l.model.shared), bound + 2 * weights);
    }
    assert_int_equal(prn_weight_cache_bytes(l.model.shared), bound + weights);
    rc_check_runs(before, after);
    prn_program_release(before);
    prn_program_release(after);
    assert_int_equal(prn_weight_cache_bytes(l.model.shared), 0);
    rc_unload(&l);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_batch_norm),
        cmocka_unit_test(keep_batch_norm),
        cmocka_unit_test(fold_scale_and_shift),
        cmocka_unit_test(keep_scale_and_shift),
        cmocka_unit_test(attach_numbers),
        cmocka_unit_test(attach_activations),
        cmocka_unit_test(read_bounds_of_the_opset),
        cmocka_unit_test(keep_activations),
        cmocka_unit_test(attach_residuals),
        cmocka_unit_test(keep_residuals),
        cmocka_unit_test(fold_pads),
        cmocka_unit_test(keep_pads),
        cmocka_unit_test(merge_moves),
        cmocka_unit_test(leave_custom_operators),
        cmocka_unit_test(leave_dynamic_nodes),
        cmocka_unit_test(rewrite_subgraphs),
        cmocka_unit_test(survive_no_memory),
        cmocka_unit_test(trim_what_is_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
