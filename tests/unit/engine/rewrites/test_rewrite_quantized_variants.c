/* Quantized graphs as other exporters write them: biases of each kind beside a residual, a QuantizeLinear and a
 * DequantizeLinear with different parameters, unknown attributes, operators of com.microsoft. Scales are powers of
 * two, so the float graph and the quantized one must give the same numbers. */
#include "failure_trace.h"
#include "coded_graph.h"
#include "model_run.h"
#include "report_counts.h"
#include "rewrite_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define X_STEP 0.03125f
#define W_STEP 0.0078125f

/* Input x [2, 4, 4, 4], stored as "xd"; weights w [4, 4, 3, 3], and w2 of two groups. */
static model_builder *begin(void)
{
    cg_seed(1);
    rc_seed(1);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,4,4,4");
    cg_pair(m, "x", "xd", PRONY_UINT8, X_STEP, 128);
    cg_codes(m, "w", PRONY_INT8, "4,4,3,3", 144, 4, W_STEP);
    cg_codes(m, "w2", PRONY_INT8, "4,2,3,3", 72, 4, W_STEP);
    return m;
}

static void expect(model_builder *m, const char *output, const char *wanted)
{
    char text[256];
    rc_output(m, output);
    snprintf(text, sizeof text, "QuantizeLinear %s DequantizeLinear", wanted);
    rc_expect(m, text);
}

/* A convolution that is added to before it is stored has a bias of floats, of codes in its steps or in others, or none.
 */
static void residuals_with_each_bias(void **unused)
{
    (void)unused;
    static const char *const inputs[] = {"xd w", "xd w floats", "xd w codes", "xd w others"};
    const float floats[] = {0.5f, -0.25f, 1.0f, 0.0f};
    for (size_t k = 0; k < 2 * sizeof inputs / sizeof *inputs; k++) {
        SCENARIO(k);
        model_builder *m = begin();
        mb_initializer(m, "floats", PRONY_FLOAT32, "4", floats);
        cg_codes(m, "codes", PRONY_INT32, "4", 4, 4, X_STEP * W_STEP);
        cg_codes(m, "others", PRONY_INT32, "4", 4, 1, 4 * X_STEP * W_STEP);
        mb_node(m, "Conv", inputs[k / 2], "c", "pads=[1,1,1,1]");
        mb_node(m, "Add", k % 2 ? "xd c" : "c xd", "s", "");
        mb_node(m, "Relu", "s", "r", "");
        cg_pair(m, "r", "y", PRONY_UINT8, 0.125f, 3);
        expect(m, "y", "QConv");
    }
}

/* A convolution's result that is broadcast to what it is added to takes no residual. */
static void residual_of_a_larger_shape(void **unused)
{
    (void)unused;
    model_builder *m = begin();
    cg_codes(m, "narrow", PRONY_INT8, "4,4,4,4", 256, 1, W_STEP);
    mb_node(m, "Conv", "xd narrow", "c", ""); /* [2, 4, 1, 1] */
    mb_node(m, "Add", "c xd", "s", "");
    cg_pair(m, "s", "y", PRONY_UINT8, 0.125f, 60);
    expect(m, "y", "DequantizeLinear Conv Add QuantizeLinear");
}

/* The sum reads the convolution's quantized values with other parameters than their QuantizeLinear has. */
static void other_parameters_behind(void **unused)
{
    (void)unused;
    static const struct {
        float step;
        int point;
        const char *clamp, *wanted;
    } cases[] = {
        {0.125f, 120, NULL, "QConv"},           {0.125f, 120, "Relu", "QConv"},
        {0.25f, 120, NULL, "QLinearConv QAdd"}, {0.125f, 56, NULL, "QLinearConv QAdd"},
        {0.25f, 56, "Relu", "QConv QAdd"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        model_builder *m = begin();
        rc_scalar(m, "q_step", 0.125f);
        rc_scalar(m, "d_step", cases[k].step);
        cg_zero(m, "q_point", PRONY_UINT8, 120);
        cg_zero(m, "d_point", PRONY_UINT8, cases[k].point);
        mb_node(m, "Conv", "xd w", "c", "pads=[1,1,1,1]");
        if (cases[k].clamp) mb_node(m, cases[k].clamp, "c", "r", "");
        mb_node(m, "QuantizeLinear", cases[k].clamp ? "r q_step q_point" : "c q_step q_point", "q", "");
        mb_node(m, "DequantizeLinear", "q d_step d_point", "d", "");
        mb_node(m, "Add", "d xd", "s", "");
        cg_pair(m, "s", "y", PRONY_UINT8, 0.25f, 60);
        expect(m, "y", cases[k].wanted);
    }
}

#define TEN "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=10 "

/* Unknown attributes displace no known one, and do not reach the fused operator. */
static void unknown_attributes(void **unused)
{
    (void)unused;
    static const struct {
        const char *op, *inputs, *attributes, *wanted;
    } cases[] = {
        {"Conv", "xd w2", TEN "group=2 pads=[1,1,1,1]", "QLinearConv"},
        {"Conv", "xd w2", "group=2 pads=[1,1,1,1] " TEN, "QLinearConv"},
        {"ConvTranspose", "xd v", TEN "strides=[2,2]", "QConvTranspose"},
        {"AveragePool", "xd", TEN "kernel_shape=[2,2] strides=[2,2] channels_last=1", "QLinearAveragePool"},
        {"GlobalAveragePool", "xd", TEN "channels_last=1", "QLinearGlobalAveragePool"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        model_builder *m = begin();
        cg_codes_along(m, "axis=1", "v", PRONY_INT8, "4,3,2,2", 48, 3, W_STEP);
        mb_node(m, cases[k].op, cases[k].inputs, "c", cases[k].attributes);
        cg_pair(m, "c", "y", PRONY_UINT8, 0.125f, 100);
        expect(m, "y", cases[k].wanted);
    }
    for (int k = 0; k < 2; k++) { /* and with a residual, attached at once or later */
        model_builder *m = begin();
        mb_node(m, "Conv", "xd w2", "c", TEN "low=127 high=127 middle_low=127 middle_high=127 group=2 pads=[1,1,1,1]");
        if (k) cg_pair(m, "c", "cd", PRONY_UINT8, 0.125f, 100);
        mb_node(m, "Add", k ? "cd xd" : "c xd", "s", "");
        cg_pair(m, "s", "y", PRONY_UINT8, 0.25f, 60);
        expect(m, "y", "QConv");
    }
}

/* An operator that a rewrite makes has its own domain and opset, not those of the nodes that it replaces. */
static void operators_of_com_microsoft(void **unused)
{
    (void)unused;
    static const struct {
        const char *op, *inputs, *attributes, *clamp, *wanted;
    } cases[] = {
        {"Conv", "xd w", "", NULL, "QLinearConv"},
        {"Conv", "xd w", "", "Relu", "QConv"},
        {"ConvTranspose", "xd v", "strides=[2,2]", NULL, "QConvTranspose"},
        {"MatMul", "xd u", "", NULL, "QLinearMatMul"},
        {"MatMul", "xd u", "", "Relu", "QGemm"},
        {"Add", "xd xd", "", NULL, "QAdd"},
        {"Sigmoid", "xd", "", NULL, "QMap"},
        {"AveragePool", "xd", "kernel_shape=[2,2]", NULL, "QLinearAveragePool"},
        {"GlobalAveragePool", "xd", "", NULL, "QLinearGlobalAveragePool"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].op);
        cg_seed(1);
        rc_seed(1);
        model_builder *m = mb_begin(17);
        mb_opset(m, "com.microsoft", 1);
        mb_input(m, "x", PRONY_FLOAT32, "2,4,4,4");
        cg_pair_of(m, "com.microsoft::", "x", "xd", PRONY_UINT8, X_STEP, 128);
        cg_codes(m, "w", PRONY_INT8, "4,4,3,3", 144, 4, W_STEP);
        cg_codes_along(m, "axis=1", "v", PRONY_INT8, "4,3,2,2", 48, 3, W_STEP);
        cg_codes(m, "u", PRONY_INT8, "4,5", 20, 1, W_STEP);
        mb_node(m, cases[k].op, cases[k].inputs, "c", cases[k].attributes);
        if (cases[k].clamp) mb_node(m, cases[k].clamp, "c", "r", "");
        cg_pair_of(m, "com.microsoft::", cases[k].clamp ? "r" : "c", "y", PRONY_UINT8, 0.125f, 60);
        expect(m, "y", cases[k].wanted);
    }
}

/* Scales whose products leave the range of float32: the float graph has infinities then, the quantized one has none. */
static void scales_beyond_float32(void **unused)
{
    (void)unused;
    static const struct {
        float w, y;
        const char *wanted;
    } cases[] = {
        {0x1p60f, 0x1p62f, "QLinearConv"},
        {0x1p100f, 0.125f, "DequantizeLinear Conv QuantizeLinear"},
        {0x1p103f, 0x1p100f, "DequantizeLinear Conv QuantizeLinear"},
        {W_STEP, 0x1p-110f, "DequantizeLinear Conv QuantizeLinear"},
        {0x1p-125f, 0x1p-120f, "DequantizeLinear Conv QuantizeLinear"},
        {0x1p-125f, 0.125f, "QLinearConv"}, /* nothing is left of the products in either */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        model_builder *m = begin();
        cg_codes(m, "far", PRONY_INT8, "4,4,3,3", 144, 1, cases[k].w / 2);
        mb_node(m, "Conv", "xd far", "c", "pads=[1,1,1,1]");
        cg_pair(m, "c", "y", PRONY_INT8, cases[k].y, 1);
        mb_node(m, "DequantizeLinear", "y_q unit", "z", "");
        rc_scalar(m, "unit", 1.0f);
        rc_output(m, "z");
        char text[128];
        snprintf(text, sizeof text, "QuantizeLinear %s DequantizeLinear", cases[k].wanted);
        rc_expect(m, text);
    }
}

/* The same in a quantized model: 0 stays the zero point, every other value saturates or is scaled. */
static void factors_beyond_float32(void **unused)
{
    (void)unused;
    static const struct {
        float x, w, y;
        uint8_t wanted[4];
    } cases[] = {
        {0x1p100f, 0x1p100f, 0x1p100f, {5, 255, 0, 255}},
        {0x1p100f, 0x1p100f, 0x1p-100f, {5, 255, 0, 255}},
        {0x1p100f, 0x1p100f, 0x1p126f, {5, 255, 0, 255}},
        {0x1p-75f, 0x1p-75f, 0x1p-141f, {5, 5, 5, 25}}, /* 100 codes of 100 steps of 2^-9 */
        {0x1p-75f, 0x1p-75f, 1.0f, {5, 5, 5, 5}},
    };
    const uint8_t x[4] = {7, 8, 6, 107}, x_zero = 7, zero = 5;
    const int8_t w = 100, w_zero = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        model_run run = {0};
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_UINT8, "1,1,1,4");
        rc_scalar(m, "xs", cases[k].x);
        rc_scalar(m, "ws", cases[k].w);
        rc_scalar(m, "ys", cases[k].y);
        mb_initializer(m, "xz", PRONY_UINT8, "", &x_zero);
        mb_initializer(m, "wz", PRONY_INT8, "", &w_zero);
        mb_initializer(m, "yz", PRONY_UINT8, "", &zero);
        mb_initializer(m, "w", PRONY_INT8, "1,1,1,1", &w);
        mb_initializer(m, "v", PRONY_INT8, "1,1", &w);
        mb_node(m, "QLinearConv", "x xs xz w ws wz ys yz", "y", "");
        mb_node(m, "Transpose", "x", "t", "perm=[0,1,3,2]");
        mb_node(m, "QLinearMatMul", "t xs xz v ws wz ys yz", "z", "");
        mb_output(m, "y", PRONY_UINT8, NULL);
        mb_output(m, "z", PRONY_UINT8, NULL);
        mr_open(&run, m);
        mr_set(&run, "x", PRONY_UINT8, "1,1,1,4", x);
        mr_expect(mr_run(&run, 0), PRONY_UINT8, "1,1,1,4", cases[k].wanted);
        mr_expect(mr_output(&run, 1), PRONY_UINT8, "1,1,4,1", cases[k].wanted);
        mr_close(&run);
    }
}

/* The plan has no step for a Concat whose inputs are written in place, nor for a view: their cost stays with other
 * operators. */
static void counts_of_joined_codes(void **unused)
{
    (void)unused;
    static const struct {
        const char *op, *inputs, *attributes;
    } cases[] = {
        {"Concat", "xd yd", "axis=0"},     {"Concat", "ad bd", "axis=0"},         {"Concat", "xd bd", "axis=0"},
        {"Concat", "xd xd", "axis=0"},     {"Reshape", "xd shape", ""},           {"Reshape", "ad shape", ""},
        {"Concat", "joined ad", "axis=0"}, {"Transpose", "turned", "perm=[1,0]"},
    };
    const float data[6] = {-1.0f, 0.5f, 2.0f, 0.25f, -0.5f, 1.5f};
    const int8_t codes[6] = {-7, 99, 3, 0, -128, 127};
    const int64_t shape = 6;
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        SCENARIO(k);
        char text[256];
        model_run run = {0};
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, "2,3");
        mb_input(m, "y", PRONY_FLOAT32, "2,3");
        mb_input(m, "a", PRONY_INT8, "2,3"); /* no node makes these codes */
        mb_input(m, "b", PRONY_INT8, "2,3");
        rc_ints(m, "shape", "1", &shape);
        rc_scalar(m, "step", X_STEP);
        rc_scalar(m, "high", 4.0f);
        cg_zero(m, "point", PRONY_INT8, 3);
        mb_node(m, "DequantizeLinear", "a step point", "ad", "");
        mb_node(m, "DequantizeLinear", "b step point", "bd", "");
        cg_pair(m, "x", "xd", PRONY_INT8, X_STEP, 3);
        cg_pair(m, "y", "yd", PRONY_INT8, X_STEP, 3);
        mb_node(m, "Concat", "ad bd", "j", "axis=0");
        cg_pair(m, "j", "joined", PRONY_INT8, X_STEP, 3);
        mb_node(m, "Transpose", "xd", "t", "perm=[1,0]");
        cg_pair(m, "t", "turned", PRONY_INT8, X_STEP, 3);
        mb_node(m, cases[k / 2].op, cases[k / 2].inputs, "c", cases[k / 2].attributes);
        if (k % 2) mb_node(m, "Clip", "c ? high", "r", ""); /* a bound of no code */
        cg_pair(m, k % 2 ? "r" : "c", "z", PRONY_INT8, X_STEP, 3);
        mb_node(m, "Neg", "z", "n", "");
        mb_output(m, "n", PRONY_FLOAT32, NULL);
        mr_open(&run, m);
        mr_set(&run, "x", PRONY_FLOAT32, "2,3", data);
        mr_set(&run, "y", PRONY_FLOAT32, "2,3", data);
        mr_set(&run, "a", PRONY_INT8, "2,3", codes);
        mr_set(&run, "b", PRONY_INT8, "2,3", codes);
        prony_report *report = mr_profile(&run);
        if (!report_counts_agree(report, text, sizeof text))
            fail_msg("%s(%s): %s", cases[k / 2].op, cases[k / 2].inputs, text);
        prony_report_release(report);
        mr_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residuals_with_each_bias),   cmocka_unit_test(residual_of_a_larger_shape),
        cmocka_unit_test(other_parameters_behind),    cmocka_unit_test(unknown_attributes),
        cmocka_unit_test(operators_of_com_microsoft), cmocka_unit_test(scales_beyond_float32),
        cmocka_unit_test(factors_beyond_float32),     cmocka_unit_test(counts_of_joined_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
