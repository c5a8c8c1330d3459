/* Rewrites from dequantized floats to 8-bit values: each fires where it should and nowhere else. All scales are
 * powers of two, so the float graph and the quantized one must give the same numbers. */
#include "failure_trace.h"
#include "engine/rewrites/rewrite.h"
#include "coded_graph.h"
#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define X_STEP 0.03125f
#define W_STEP 0.0078125f

/* Input x [2, 4, 4, 4], stored as "xd"; weights w [4, 4, 3, 3] and a bias b. */
static model_builder *begin(prony_dtype type)
{
    cg_seed(1);
    rc_seed(1);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,4,4,4");
    cg_pair(m, "x", "xd", type, X_STEP, type == PRONY_UINT8 ? 128 : -3);
    cg_codes(m, "w", PRONY_INT8, "4,4,3,3", 144, 4, W_STEP);
    cg_codes(m, "b", PRONY_INT32, "4", 4, 4, X_STEP * W_STEP);
    return m;
}

static void conv(model_builder *m, const char *x, const char *y)
{
    char inputs[80];
    snprintf(inputs, sizeof inputs, "%s w b", x);
    mb_node(m, "Conv", inputs, y, "pads=[1,1,1,1]");
}

static void expect(model_builder *m, const char *output, const char *wanted)
{
    char text[256];
    rc_output(m, output);
    snprintf(text, sizeof text, "QuantizeLinear %s DequantizeLinear", wanted);
    rc_expect(m, text);
}

/* ---- contractions ---- */

static void convolutions(void **unused)
{
    (void)unused;
    static const struct {
        prony_dtype x, y;
        int point;
        const char *clamp, *bounds, *wanted;
    } cases[] = {
        {PRONY_UINT8, PRONY_UINT8, 128, NULL, "", "QLinearConv"},
        {PRONY_INT8, PRONY_INT8, 5, NULL, "", "QLinearConv"},
        {PRONY_UINT8, PRONY_INT8, 5, NULL, "", "QLinearConv"},
        {PRONY_UINT8, PRONY_UINT8, 0, "Relu", "", "QLinearConv"},
        {PRONY_UINT8, PRONY_UINT8, 9, "Relu", "", "QConv"},
        {PRONY_INT8, PRONY_INT8, 0, "Relu", "", "QConv"},
        {PRONY_INT8, PRONY_INT8, -7, "Clip", " low high", "QConv"},
        {PRONY_UINT8, PRONY_UINT8, 40, "Clip", " low", "QConv"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        char inputs[48];
        model_builder *m = begin(cases[k].x);
        rc_scalar(m, "low", -1.0f);
        rc_scalar(m, "high", 3.0f);
        conv(m, "xd", "c");
        snprintf(inputs, sizeof inputs, "c%s", cases[k].bounds);
        if (cases[k].clamp) mb_node(m, cases[k].clamp, inputs, "r", "");
        cg_pair(m, cases[k].clamp ? "r" : "c", "y", cases[k].y, 0.125f, cases[k].point);
        expect(m, "y", cases[k].wanted);
    }
}

static void biases(void **unused)
{
    (void)unused;
    static const struct {
        float bias[4], step;
        const char *wanted;
    } cases[] = {
        {{0.5f, -0.25f, 1.0f, 0.0f}, 0.125f, "QLinearConv"},                            /* whole steps */
        {{0.5f, -0.25f, 1.0f, 0.0f}, 0x1p-11f, "DequantizeLinear Conv QuantizeLinear"}, /* steps are too coarse */
        {{0x1p20f, 0.0f, 0.0f, 0.0f}, 0.125f, "DequantizeLinear Conv QuantizeLinear"},  /* does not fit */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        model_builder *m = begin(PRONY_UINT8);
        mb_initializer(m, "float_bias", PRONY_FLOAT32, "4", cases[k].bias);
        mb_node(m, "Conv", "xd w float_bias", "c", "pads=[1,1,1,1]");
        cg_pair(m, "c", "y", PRONY_UINT8, cases[k].step, 100);
        expect(m, "y", cases[k].wanted);
    }
    model_builder *m = begin(PRONY_UINT8); /* none */
    mb_node(m, "Conv", "xd w", "c", "group=1");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 100);
    expect(m, "y", "QLinearConv");
}

/* Weights that are quantized in the graph are constants all the same. */
static void weights_quantized_in_the_graph(void **unused)
{
    (void)unused;
    model_builder *m = begin(PRONY_UINT8);
    rc_weights(m, "fw", "4,4,1,1");
    cg_pair(m, "fw", "wd", PRONY_INT8, W_STEP, 0);
    mb_node(m, "Conv", "xd wd b", "c", "");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 100);
    expect(m, "y", "QLinearConv");
}

static void transposed_convolutions(void **unused)
{
    (void)unused;
    static const char stays[] = "DequantizeLinear ConvTranspose QuantizeLinear";
    static const struct {
        const char *axis, *dims, *attributes, *clamp, *wanted;
        int count, scales;
    } cases[] = {
        {"axis=1", "4,3,2,2", "strides=[2,2]", NULL, "QConvTranspose", 48, 3},
        {"axis=1", "4,3,3,3", "strides=[2,2] pads=[1,1,1,1] output_padding=[1,0]", "Relu", "QConvTranspose", 108, 3},
        {"axis=1", "4,16,4,4", "strides=[2,2] pads=[1,1,1,1] group=2", "Clip", "QConvTranspose", 1024, 1},
        {"axis=1", "4,3,2,2", "strides=[12,20]", NULL, "QConvTranspose", 48, 1},
        {"axis=0", "4,3,2,2", "strides=[2,2]", NULL, stays, 48, 4},          /* scales of inputs */
        {"axis=1", "4,3,2,2", "strides=[2,2] group=2", NULL, stays, 48, 1},  /* groups of few outputs */
        {"axis=1", "4,8,2,2", "strides=[2,2] group=2", NULL, stays, 128, 8}, /* groups and scales */
        {"axis=1", "4,3,2,2", "strides=[65,1]", NULL, stays, 48, 1},         /* many phases */
        {"axis=1", "4,3,2,2", "strides=[9,9] dilations=[2,2]", NULL, stays, 48, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        char inputs[48];
        model_builder *m = begin(k % 2 ? PRONY_INT8 : PRONY_UINT8);
        rc_scalar(m, "low", -1.0f);
        rc_scalar(m, "high", 3.0f);
        cg_codes_along(m, cases[k].axis, "v", PRONY_INT8, cases[k].dims, cases[k].count, cases[k].scales, W_STEP);
        mb_node(m, "ConvTranspose", "xd v", "c", cases[k].attributes);
        snprintf(inputs, sizeof inputs, "c%s", cases[k].clamp && *cases[k].clamp == 'C' ? " low high" : "");
        if (cases[k].clamp) mb_node(m, cases[k].clamp, inputs, "r", "");
        cg_pair(m, cases[k].clamp ? "r" : "c", "y", k % 2 ? PRONY_UINT8 : PRONY_INT8, 0.125f, 5);
        expect(m, "y", cases[k].wanted);
    }
    model_builder *m = begin(PRONY_UINT8); /* a bias */
    cg_codes_along(m, "axis=1", "v", PRONY_INT8, "4,5,2,2", 80, 5, W_STEP);
    cg_codes(m, "d", PRONY_INT32, "5", 5, 5, X_STEP * W_STEP);
    mb_node(m, "ConvTranspose", "xd v d", "c", "strides=[2,2]");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 100);
    expect(m, "y", "QConvTranspose");

    m = begin(PRONY_UINT8); /* weights with a zero point */
    cg_codes(m, "v", PRONY_INT8, "4,5,2,2", 80, 1, W_STEP);
    cg_zero(m, "seven", PRONY_INT8, 7);
    rc_scalar(m, "step", W_STEP);
    mb_node(m, "DequantizeLinear", "v_codes step seven", "shifted", "");
    mb_node(m, "ConvTranspose", "xd shifted", "c", "strides=[2,2]");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 100);
    expect(m, "y", stays);
}

static void products(void **unused)
{
    (void)unused;
    model_builder *m = begin(PRONY_UINT8); /* Flatten is a view of codes */
    cg_codes(m, "v", PRONY_INT8, "7,64", 448, 7, W_STEP);
    cg_codes(m, "c", PRONY_INT32, "7", 7, 7, X_STEP * W_STEP);
    conv(m, "xd", "h");
    cg_pair(m, "h", "hd", PRONY_UINT8, 0.125f, 128);
    mb_node(m, "Flatten", "hd", "f", "");
    cg_pair(m, "f", "fd", PRONY_UINT8, 0.125f, 128);
    mb_node(m, "Gemm", "fd v", "g", "transB=1");
    mb_node(m, "Relu", "g", "r", "");
    cg_pair(m, "r", "y", PRONY_INT8, 0.25f, 0);
    expect(m, "y", "QLinearConv Flatten QGemm");

    m = mb_begin(17); /* a step of the bias is the product of those of input and weights */
    cg_seed(3);
    mb_input(m, "x", PRONY_FLOAT32, "5,16");
    cg_pair(m, "x", "xd", PRONY_INT8, X_STEP, 0);
    cg_codes(m, "v", PRONY_INT8, "9,16", 144, 9, W_STEP);
    cg_codes(m, "c", PRONY_INT32, "9", 9, 9, X_STEP * W_STEP);
    mb_node(m, "Gemm", "xd v c", "g", "transB=1");
    cg_pair(m, "g", "y", PRONY_UINT8, 0.125f, 30);
    expect(m, "y", "QGemm");

    m = mb_begin(17);
    cg_seed(5);
    mb_input(m, "x", PRONY_FLOAT32, "5,16");
    cg_pair(m, "x", "xd", PRONY_INT8, X_STEP, 0);
    cg_codes(m, "v", PRONY_INT8, "16,9", 144, 1, W_STEP);
    mb_node(m, "MatMul", "xd v", "g", "");
    cg_pair(m, "g", "y", PRONY_INT8, 0.125f, 0);
    expect(m, "y", "QGemm");

    m = mb_begin(17); /* a stack of matrices */
    cg_seed(7);
    mb_input(m, "x", PRONY_FLOAT32, "2,5,16");
    cg_pair(m, "x", "xd", PRONY_UINT8, X_STEP, 100);
    cg_codes(m, "v", PRONY_INT8, "16,9", 144, 1, W_STEP);
    mb_node(m, "MatMul", "xd v", "g", "");
    cg_pair(m, "g", "y", PRONY_INT8, 0.125f, 0);
    expect(m, "y", "QLinearMatMul");

    static const struct {
        const char *add, *clamp, *wanted;
    } cases[] = {
        {"g c", NULL, "QGemm"}, /* with a bias, or bounds, it is a QGemm too */
        {"c g", "Relu", "QGemm"},
        {"g one", NULL, "QGemm"},
        {NULL, "Relu", "QGemm"},
        {"g rows", NULL, "DequantizeLinear MatMul Add QuantizeLinear"}, /* not the same for every row */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        const float one = 0.5f, rows[5] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
        m = mb_begin(17);
        cg_seed(9 + (uint32_t)k);
        mb_input(m, "x", PRONY_FLOAT32, "2,5,16");
        cg_pair(m, "x", "xd", PRONY_INT8, X_STEP, -3);
        cg_codes(m, "v", PRONY_INT8, "16,9", 144, 1, W_STEP);
        cg_codes(m, "c", PRONY_INT32, "9", 9, 1, X_STEP * W_STEP);
        rc_scalar(m, "one", one);
        mb_initializer(m, "rows", PRONY_FLOAT32, "5,1", rows);
        mb_node(m, "MatMul", "xd v", "g", "");
        if (cases[k].add) mb_node(m, "Add", cases[k].add, "a", "");
        if (cases[k].clamp) mb_node(m, cases[k].clamp, cases[k].add ? "a" : "g", "r", "");
        cg_pair(m, cases[k].clamp ? "r" : "a", "y", PRONY_UINT8, 0.125f, 60);
        expect(m, "y", cases[k].wanted);
    }
}

/* ---- sums ---- */

static void residuals(void **unused)
{
    (void)unused;
    model_builder *m = begin(PRONY_UINT8); /* rounded before it is added */
    conv(m, "xd", "c");
    cg_pair(m, "c", "cd", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "Add", "cd xd", "s", "");
    mb_node(m, "Relu", "s", "r", "");
    cg_pair(m, "r", "y", PRONY_UINT8, 0.25f, 3);
    expect(m, "y", "QConv");

    m = begin(PRONY_INT8); /* and not */
    conv(m, "xd", "c");
    mb_node(m, "Add", "xd c", "s", "");
    cg_pair(m, "s", "y", PRONY_UINT8, 0.25f, 60);
    expect(m, "y", "QConv");

    m = begin(PRONY_UINT8); /* with a bound of its own in between */
    conv(m, "xd", "c");
    mb_node(m, "Relu", "c", "cr", "");
    cg_pair(m, "cr", "cd", PRONY_INT8, 0.125f, 0);
    mb_node(m, "Add", "xd cd", "s", "");
    cg_pair(m, "s", "y", PRONY_INT8, 0.25f, 0);
    expect(m, "y", "QConv");

    m = begin(PRONY_UINT8); /* of two, the later one takes the other's */
    conv(m, "xd", "c");
    cg_pair(m, "c", "cd", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "Conv", "xd w", "e", "pads=[1,1,1,1]");
    cg_pair(m, "e", "ed", PRONY_INT8, 0.125f, 0);
    mb_node(m, "Add", "cd ed", "s", "");
    cg_pair(m, "s", "y", PRONY_UINT8, 0.25f, 60);
    expect(m, "y", "QLinearConv QConv");

    m = begin(PRONY_UINT8); /* the convolution's codes have another reader */
    conv(m, "xd", "c");
    cg_pair(m, "c", "cd", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "Add", "cd xd", "s", "");
    cg_pair(m, "s", "sd", PRONY_UINT8, 0.25f, 60);
    mb_node(m, "Add", "sd cd", "t", "");
    cg_pair(m, "t", "y", PRONY_UINT8, 0.25f, 60);
    expect(m, "y", "QLinearConv QAdd QAdd");

    m = begin(PRONY_UINT8); /* twice the same */
    conv(m, "xd", "c");
    cg_pair(m, "c", "cd", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "Add", "cd cd", "s", "");
    cg_pair(m, "s", "y", PRONY_UINT8, 0.25f, 60);
    expect(m, "y", "QLinearConv QAdd");
}

/* ---- moves and pools ---- */

static void moves(void **unused)
{
    (void)unused;
    static const struct {
        const char *op, *inputs, *attributes;
        float step;
        const char *wanted;
    } cases[] = {
        {"MaxPool", "xd", "kernel_shape=[2,2] strides=[2,2]", X_STEP, "MaxPool"},
        {"MaxPool", "xd", "kernel_shape=[2,2]", 2 * X_STEP, "DequantizeLinear MaxPool QuantizeLinear"},
        {"Transpose", "xd", "perm=[0,2,3,1]", X_STEP, "Transpose"},
        {"Concat", "xd xd", "axis=1", X_STEP, "Concat"},
        {"Concat", "xd x", "axis=1", X_STEP, "DequantizeLinear Concat QuantizeLinear"},
        {"GlobalAveragePool", "xd", "", 0.0625f, "QLinearGlobalAveragePool"},
        {"AveragePool", "xd", "kernel_shape=[2,2] strides=[2,2]", 0.0625f, "QLinearAveragePool"},
        {"Softmax", "xd", "", 0.0078125f, "DequantizeLinear Softmax QuantizeLinear"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        model_builder *m = begin(PRONY_UINT8);
        mb_node(m, cases[k].op, cases[k].inputs, "c", cases[k].attributes);
        cg_pair(m, "c", "y", PRONY_UINT8, cases[k].step, 128);
        expect(m, "y", cases[k].wanted);
    }
}

/* ---- functions of each element, sums and products ---- */

typedef struct step {
    const char *op, *inputs, *output, *attributes;
} step;

/* Nodes between "xd" and "y", and the expected result. */
typedef struct chain {
    step steps[6];
    const char *wanted;
} chain;

static void functions(void **unused)
{
    (void)unused;
    static const chain cases[] = {
        {{{"Sigmoid", "xd", "c", ""}}, "QMap"},
        {{{"Tanh", "xd", "c", ""}}, "QMap"},
        {{{"HardSwish", "xd", "c", ""}}, "QMap"},
        {{{"HardSigmoid", "xd", "c", "alpha=0.17"}}, "QMap"},
        {{{"Relu", "xd", "c", ""}}, "QMap"},
        {{{"Clip", "xd low high", "c", ""}}, "QMap"},
        {{{"Sigmoid", "xd", "s", ""}, {"Mul", "s xd", "c", ""}}, "QMap"},
        {{{"Mul", "xd half", "s", ""}, {"Elu", "s", "t", ""}, {"Sub", "high t", "u", ""}, {"Clip", "u low", "c", ""}},
         "QMap"},
        {{{"Div", "xd root", "s", ""},
          {"Erf", "s", "t", ""},
          {"Add", "t one", "u", ""},
          {"Mul", "xd u", "v", ""},
          {"Mul", "v half", "c", ""}},
         "QMap"},
        {{{"Tanh", "xd", "s", ""}, {"Mul", "s xd", "c", ""}}, "DequantizeLinear Tanh Mul QuantizeLinear"},
        {{{"Tanh", "xd", "s", ""}, {"Mul", "s row", "c", ""}}, "DequantizeLinear Tanh Mul QuantizeLinear"},
        {{{"Max", "xd x", "c", ""}}, "DequantizeLinear Max QuantizeLinear"},
    };
    const float one = 1.0f, half = 0.5f, root = 1.41421356f, row[] = {0.5f, 1.0f, 2.0f, 4.0f};
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        const chain *c = &cases[k / 2];
        model_builder *m = begin(k % 2 ? PRONY_INT8 : PRONY_UINT8);
        rc_scalar(m, "low", -0.25f);
        rc_scalar(m, "high", 1.5f);
        rc_scalar(m, "one", one);
        rc_scalar(m, "half", half);
        rc_scalar(m, "root", root);
        mb_initializer(m, "row", PRONY_FLOAT32, "4,1,1", row);
        for (size_t i = 0; i < 6 && c->steps[i].op; i++)
            mb_node(m, c->steps[i].op, c->steps[i].inputs, c->steps[i].output, c->steps[i].attributes);
        cg_pair(m, "c", "y", k % 2 ? PRONY_UINT8 : PRONY_INT8, 0.0078125f, k % 2 ? 100 : -9);
        expect(m, "y", c->wanted);
    }
    model_builder *m = begin(PRONY_UINT8); /* the float result is an output */
    mb_node(m, "Sigmoid", "xd", "c", "");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.0078125f, 0);
    rc_output(m, "c");
    expect(m, "y", "DequantizeLinear Sigmoid QuantizeLinear");
}

static void products_of_values(void **unused)
{
    (void)unused;
    static const struct {
        const char *op, *left, *right, *clamp, *wanted;
    } cases[] = {
        {"Mul", "xd", "gd", NULL, "QLinearGlobalAveragePool QMul"}, /* a gate for each channel */
        {"Mul", "gd", "xd", "Relu", "QLinearGlobalAveragePool QMul"},
        {"Add", "xd", "gd", NULL, "QLinearGlobalAveragePool QAdd"},
        {"Mul", "xd", "xd", NULL, "QMul"},
        {"Mul", "xd", "x", NULL, "DequantizeLinear Mul QuantizeLinear"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        char inputs[32];
        model_builder *m = begin(PRONY_UINT8);
        if (strstr(cases[k].wanted, "Pool")) {
            mb_node(m, "GlobalAveragePool", "xd", "g", "");
            cg_pair(m, "g", "gd", PRONY_UINT8, 0.015625f, 128);
        }
        snprintf(inputs, sizeof inputs, "%s %s", cases[k].left, cases[k].right);
        mb_node(m, cases[k].op, inputs, "c", "");
        if (cases[k].clamp) mb_node(m, cases[k].clamp, "c", "r", "");
        cg_pair(m, cases[k].clamp ? "r" : "c", "y", PRONY_INT8, 0.0625f, -20);
        expect(m, "y", cases[k].wanted);
    }
    model_builder *m = begin(PRONY_UINT8); /* a convolution takes no residual of another shape */
    conv(m, "xd", "c");
    cg_pair(m, "c", "cd", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "GlobalAveragePool", "cd", "g", "");
    cg_pair(m, "g", "gd", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "Conv", "xd w", "e", "pads=[1,1,1,1]");
    cg_pair(m, "e", "ed", PRONY_UINT8, 0.125f, 120);
    mb_node(m, "Add", "ed gd", "s", "");
    cg_pair(m, "s", "y", PRONY_UINT8, 0.25f, 60);
    expect(m, "y", "QLinearConv QLinearGlobalAveragePool QLinearConv QAdd");
}

/* ---- what must stay ---- */

static void keep(void **unused)
{
    (void)unused;
    model_builder *m = begin(PRONY_UINT8); /* the float result is an output */
    conv(m, "xd", "c");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 120);
    rc_output(m, "c");
    expect(m, "y", "DequantizeLinear Conv QuantizeLinear");

    m = begin(PRONY_UINT8); /* the dequantized input is one: it stays, and the convolution reads codes */
    conv(m, "xd", "c");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 120);
    rc_output(m, "xd");
    rc_output(m, "y");
    rc_expect(m, "QuantizeLinear DequantizeLinear QLinearConv DequantizeLinear");

    m = begin(PRONY_UINT8); /* not stored */
    conv(m, "xd", "y");
    rc_output(m, "y");
    rc_expect(m, "QuantizeLinear DequantizeLinear Conv");

    m = begin(PRONY_UINT8); /* a scale that only a run knows */
    mb_input(m, "step", PRONY_FLOAT32, "");
    cg_zero(m, "point", PRONY_UINT8, 120);
    mb_node(m, "Abs", "step", "positive", "");
    conv(m, "xd", "c");
    mb_node(m, "QuantizeLinear", "c positive point", "q", "");
    mb_node(m, "DequantizeLinear", "q positive point", "y", "");
    rc_output(m, "y");
    rc_expect(m, "QuantizeLinear DequantizeLinear Abs Conv QuantizeLinear DequantizeLinear");

    m = begin(PRONY_UINT8); /* a scale for each channel of the input */
    const float steps[] = {0.125f, 0.25f, 0.125f, 0.25f};
    const int8_t points[4] = {0};
    mb_initializer(m, "steps", PRONY_FLOAT32, "4", steps);
    mb_initializer(m, "points", PRONY_INT8, "4", points);
    mb_node(m, "QuantizeLinear", "xd steps points", "q", "axis=1");
    mb_node(m, "DequantizeLinear", "q steps points", "d", "axis=1");
    conv(m, "d", "c");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 120);
    expect(m, "y", "DequantizeLinear QuantizeLinear DequantizeLinear Conv QuantizeLinear");

    m = begin(PRONY_UINT8); /* the sum of other shapes */
    const float one[] = {1.0f, 0.5f, 0.25f, 2.0f};
    mb_initializer(m, "row", PRONY_FLOAT32, "4,1,1", one);
    mb_node(m, "Add", "xd row", "c", "");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 120);
    expect(m, "y", "DequantizeLinear Add QuantizeLinear");
}

/* A scale of 0 or of infinity is invalid. */
static void keep_unsound_scales(void **unused)
{
    (void)unused;
    const float scales[] = {0.0f, -0.125f, (float)1e39};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        SCENARIO(k);
        model_builder *m = begin(PRONY_UINT8);
        rc_model l;
        prn_program *program;
        char text[512];
        conv(m, "xd", "c");
        cg_pair(m, "c", "y", PRONY_UINT8, scales[k], 120);
        rc_output(m, "y");
        rc_load(&l, m, NULL);
        assert_int_equal(rc_bind(&l, &program), PRONY_OK);
        assert_int_equal(prn_program_rewrite(program, &l.error), PRONY_OK);
        rc_describe(program, text, sizeof text);
        assert_string_equal(text, "QuantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear");
        prn_program_release(program);
        rc_unload(&l);
        mb_free(m);
    }
}

/* ---- why a node stays ---- */

static prn_stays_in_float reason_of(model_builder *m, const char *op)
{
    rc_model l;
    prn_program *program;
    prn_stays_in_float found = PRN_FLOAT_NOTHING_SAID;
    rc_load(&l, m, NULL);
    assert_int_equal(rc_bind(&l, &program), PRONY_OK);
    assert_int_equal(prn_program_rewrite(program, &l.error), PRONY_OK);
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        if (!node->dead && strcmp(node->info.op_type, op) == 0) found = (prn_stays_in_float)node->stays_in_float;
    }
    prn_program_release(program);
    rc_unload(&l);
    mb_free(m);
    return found;
}

static void reasons(void **unused)
{
    (void)unused;
    model_builder *m = begin(PRONY_UINT8);
    mb_node(m, "Softmax", "xd", "c", "");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.0078125f, 0);
    rc_output(m, "y");
    assert_int_equal(reason_of(m, "Softmax"), PRN_FLOAT_NO_FORM);

    m = begin(PRONY_UINT8);
    mb_node(m, "Sigmoid", "xd", "y", "");
    rc_output(m, "y");
    assert_int_equal(reason_of(m, "Sigmoid"), PRN_FLOAT_NOT_STORED);

    m = begin(PRONY_UINT8);
    conv(m, "xd", "y");
    rc_output(m, "y");
    assert_int_equal(reason_of(m, "Conv"), PRN_FLOAT_NOT_STORED);

    m = begin(PRONY_UINT8);
    mb_node(m, "Add", "xd x", "c", "");
    cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 0);
    rc_output(m, "y");
    assert_int_equal(reason_of(m, "Add"), PRN_FLOAT_OPERAND);

    m = begin(PRONY_UINT8);
    const float bias[] = {0.5f, -0.25f, 1.0f, 0.0f};
    mb_initializer(m, "float_bias", PRONY_FLOAT32, "4", bias);
    mb_node(m, "Conv", "xd w float_bias", "c", "pads=[1,1,1,1]");
    cg_pair(m, "c", "y", PRONY_UINT8, 0x1p-11f, 100);
    rc_output(m, "y");
    assert_int_equal(reason_of(m, "Conv"), PRN_FLOAT_PARAMETERS);

    m = begin(PRONY_UINT8); /* nothing is dequantized for it */
    mb_node(m, "Sigmoid", "x", "y", "");
    rc_output(m, "y");
    assert_int_equal(reason_of(m, "Sigmoid"), PRN_FLOAT_NOTHING_SAID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),
        cmocka_unit_test(biases),
        cmocka_unit_test(weights_quantized_in_the_graph),
        cmocka_unit_test(transposed_convolutions),
        cmocka_unit_test(products),
        cmocka_unit_test(residuals),
        cmocka_unit_test(moves),
        cmocka_unit_test(functions),
        cmocka_unit_test(products_of_values),
        cmocka_unit_test(keep),
        cmocka_unit_test(keep_unsound_scales),
        cmocka_unit_test(reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
