/* Graphs of 8-bit codes as other exporters write them: biases of each kind beside a residual, a QuantizeLinear and a
 * DequantizeLinear that differ, attributes that the operator does not know, operators of com.microsoft. Scales are powers
 * of two, so that the float graph and the one on codes must give the same numbers. */
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

/* A convolution that is added to before it is stored has a bias of floats, of codes in its steps or in others, or none. */
static void residuals_with_each_bias(void **unused)
{
    (void)unused;
    static const char *const inputs[] = {"xd w", "xd w floats", "xd w codes", "xd w others"};
    const float floats[] = {0.5f, -0.25f, 1.0f, 0.0f};
    for (size_t k = 0; k < 2 * sizeof inputs / sizeof *inputs; k++) {
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

/* The convolution's codes mean something else to the sum than to the QuantizeLinear that makes them. */
static void other_parameters_behind(void **unused)
{
    (void)unused;
    static const struct {
        float step;
        int point;
        const char *clamp, *wanted;
    } cases[] = {
        {0.125f, 120, NULL, "QConv"},
        {0.125f, 120, "Relu", "QConv"},
        {0.25f, 120, NULL, "QLinearConv QAdd"},
        {0.125f, 56, NULL, "QLinearConv QAdd"},
        {0.25f, 56, "Relu", "QConv QAdd"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
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

/* Attributes that the operator does not know crowd out none that it knows, and mean nothing to what it becomes. */
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

/* `to` is `from` through com.microsoft's operators. */
static void contrib_pair(model_builder *m, const char *from, const char *to, float step, int point)
{
    char names[3][32], inputs[128];
    snprintf(names[0], sizeof names[0], "%s_step", to);
    snprintf(names[1], sizeof names[1], "%s_point", to);
    snprintf(names[2], sizeof names[2], "%s_codes", to);
    rc_scalar(m, names[0], step);
    cg_zero(m, names[1], PRONY_UINT8, point);
    snprintf(inputs, sizeof inputs, "%s %s %s", from, names[0], names[1]);
    mb_node(m, "com.microsoft::QuantizeLinear", inputs, names[2], "");
    snprintf(inputs, sizeof inputs, "%s %s %s", names[2], names[0], names[1]);
    mb_node(m, "com.microsoft::DequantizeLinear", inputs, to, "");
}

/* What a rewrite makes has the domain and opset of that operator, whatever those of the nodes that it saw. */
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
        cg_seed(1);
        rc_seed(1);
        model_builder *m = mb_begin(17);
        mb_opset(m, "com.microsoft", 1);
        mb_input(m, "x", PRONY_FLOAT32, "2,4,4,4");
        contrib_pair(m, "x", "xd", X_STEP, 128);
        cg_codes(m, "w", PRONY_INT8, "4,4,3,3", 144, 4, W_STEP);
        cg_codes_along(m, "axis=1", "v", PRONY_INT8, "4,3,2,2", 48, 3, W_STEP);
        cg_codes(m, "u", PRONY_INT8, "4,5", 20, 1, W_STEP);
        mb_node(m, cases[k].op, cases[k].inputs, "c", cases[k].attributes);
        if (cases[k].clamp) mb_node(m, cases[k].clamp, "c", "r", "");
        contrib_pair(m, cases[k].clamp ? "r" : "c", "y", 0.125f, 60);
        expect(m, "y", cases[k].wanted);
    }
}

/* The plan has no step for a Concat whose inputs are written in place, nor for a view: what they cost stays with others. */
static void counts_of_joined_codes(void **unused)
{
    (void)unused;
    static const struct {
        const char *op, *inputs, *attributes;
    } cases[] = {
        {"Concat", "xd yd", "axis=0"},     {"Concat", "ad bd", "axis=0"}, {"Concat", "xd bd", "axis=0"},
        {"Concat", "xd xd", "axis=0"},     {"Reshape", "xd shape", ""},   {"Reshape", "ad shape", ""},
        {"Concat", "joined ad", "axis=0"},
    };
    const float data[6] = {-1.0f, 0.5f, 2.0f, 0.25f, -0.5f, 1.5f};
    const int8_t codes[6] = {-7, 99, 3, 0, -128, 127};
    const int64_t shape = 6;
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        char text[256];
        model_run run = {0};
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, "2,3");
        mb_input(m, "y", PRONY_FLOAT32, "2,3");
        mb_input(m, "a", PRONY_INT8, "2,3"); /* no node makes these codes */
        mb_input(m, "b", PRONY_INT8, "2,3");
        rc_ints(m, "shape", "1", &shape);
        rc_scalar(m, "step", X_STEP);
        cg_zero(m, "point", PRONY_INT8, 3);
        mb_node(m, "DequantizeLinear", "a step point", "ad", "");
        mb_node(m, "DequantizeLinear", "b step point", "bd", "");
        cg_pair(m, "x", "xd", PRONY_INT8, X_STEP, 3);
        cg_pair(m, "y", "yd", PRONY_INT8, X_STEP, 3);
        mb_node(m, "Concat", "ad bd", "j", "axis=0");
        cg_pair(m, "j", "joined", PRONY_INT8, X_STEP, 3);
        mb_node(m, cases[k / 2].op, cases[k / 2].inputs, "c", cases[k / 2].attributes);
        cg_pair(m, "c", "z", PRONY_INT8, X_STEP, 3);
        if (k % 2) mb_node(m, "Neg", "z", "n", "");
        mb_output(m, k % 2 ? "n" : "z", PRONY_FLOAT32, NULL);
        mr_open(&run, m);
        mr_set(&run, "x", PRONY_FLOAT32, "2,3", data);
        mr_set(&run, "y", PRONY_FLOAT32, "2,3", data);
        mr_set(&run, "a", PRONY_INT8, "2,3", codes);
        mr_set(&run, "b", PRONY_INT8, "2,3", codes);
        prony_report *report = mr_profile(&run);
        if (!report_counts_agree(report, text, sizeof text)) fail_msg("%s(%s): %s", cases[k / 2].op, cases[k / 2].inputs, text);
        prony_report_release(report);
        mr_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residuals_with_each_bias),   cmocka_unit_test(other_parameters_behind),
        cmocka_unit_test(unknown_attributes),         cmocka_unit_test(operators_of_com_microsoft),
        cmocka_unit_test(counts_of_joined_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
