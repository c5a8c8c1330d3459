/* Variants of operators that are easily overlooked, against values written out: opset 1, reductions over no axis,
 * elements below a byte, half precisions, text. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One node from input "x" (and constants, if any) to "y". */
typedef struct form {
    const char *op, *attributes;
    int64_t opset;
    prony_dtype in;
    const char *in_dims;
    const void *x;
    prony_dtype out;
    const char *out_dims;
    const void *wanted;
    const char *axes; /* dims of a constant int64 input, or NULL */
    const int64_t *axes_data;
} form;

static void check(const form *f)
{
    model_run r = {0};
    model_builder *m = mb_begin(f->opset);
    if (strncmp(f->op, "ai.onnx.ml::", 12) == 0) mb_opset(m, "ai.onnx.ml", 1);
    mb_input(m, "x", f->in, f->in_dims);
    if (f->axes) mb_initializer(m, "c", PRONY_INT64, f->axes, f->axes_data);
    mb_node(m, f->op, f->axes ? "x c" : "x", "y", f->attributes);
    mb_output(m, "y", f->out, f->out_dims);
    mr_open(&r, m);
    mr_set(&r, "x", f->in, f->in_dims, f->x);
    mr_expect(mr_run(&r, 0), f->out, f->out_dims, f->wanted);
    mr_close(&r);
}

#define F(...) ((const float[]){__VA_ARGS__})
#define I64(...) ((const int64_t[]){__VA_ARGS__})
#define U8(...) ((const uint8_t[]){__VA_ARGS__})
#define F32_FORM(op, attributes, opset, in_dims, x, out_dims, wanted)                                                  \
    {op, attributes, opset, PRONY_FLOAT32, in_dims, x, PRONY_FLOAT32, out_dims, wanted, NULL, NULL}

static void opset_one(void **state)
{
    (void)state;
    const float *x = F(-2, 1, 3, 4);
    const form forms[] = {
        F32_FORM("Affine", "alpha=2.0 beta=-0.5", 1, "1,2,2,1", x, "1,2,2,1", F(-4.5f, 1.5f, 5.5f, 7.5f)),
        F32_FORM("Scale", "scale=-0.5", 1, "4", x, "4", F(1, -0.5f, -1.5f, -2)),
        F32_FORM("ScaledTanh", "alpha=3.0 beta=100.0", 1, "4", x, "4", F(-3, 3, 3, 3)),
        F32_FORM("ParametricSoftplus", "alpha=0.5 beta=1000.0", 1, "4", x, "4", F(0, 500, 1500, 2000)),
        F32_FORM("ImageScaler", "scale=0.5 bias=[10.0,20.0]", 1, "1,2,2,1", x, "1,2,2,1", F(9, 10.5f, 21.5f, 22)),
        F32_FORM("Crop", "border=[0,1,0,0]", 1, "1,2,2,1", x, "1,2,1,1", F(1, 4)),
        F32_FORM("Crop", "border=[0,0,0,0] scale=[1,1]", 1, "1,2,2,1", x, "1,2,1,1", F(-2, 3)),
        F32_FORM("Upsample", "height_scale=1.0 width_scale=3.0", 1, "1,2,2,1", x, "1,2,2,3",
                 F(-2, -2, -2, 1, 1, 1, 3, 3, 3, 4, 4, 4)),
        F32_FORM("ThresholdedRelu", "alpha=1.0", 1, "4", x, "4", F(0, 0, 3, 4)),
        F32_FORM("MeanVarianceNormalization", "normalize_variance=0", 1, "1,2,2,1", x, "1,2,2,1",
                 F(-1.5f, 1.5f, -0.5f, 0.5f)),
        F32_FORM("MeanVarianceNormalization", "normalize_variance=0 across_channels=1", 1, "1,2,2,1", x, "1,2,2,1",
                 F(-3.5f, -0.5f, 1.5f, 2.5f)),
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check(&forms[i]);
}

static void opset_one_split(void **state)
{
    (void)state;
    model_run r = {0};
    model_builder *m = mb_begin(1);
    mb_input(m, "x", PRONY_FLOAT32, "1,3");
    mb_node(m, "Split", "x", "y z", "axis=1 split=[1,2]");
    mb_output(m, "z", PRONY_FLOAT32, "1,2");
    mb_output(m, "y", PRONY_FLOAT32, "1,1");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,3", F(1, 2, 3));
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,2", F(2, 3));
    mr_close(&r);
}

/* A reduction over no axis sums nothing, but still applies its functions before and after the sum. */
static void reductions_over_no_axis(void **state)
{
    (void)state;
    const float *x = F(-2, 4);
    const struct {
        const char *op;
        const float *wanted;
    } rows[] = {{"ReduceSum", x},      {"ReduceMax", x},      {"ReduceProd", x}, {"ReduceLogSumExp", x},
                {"ReduceL1", F(2, 4)}, {"ReduceL2", F(2, 4)}, {"ReduceMean", x}, {"ReduceSumSquare", F(4, 16)}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO_NAMED(i, rows[i].op);
        check(&(form){rows[i].op, "noop_with_empty_axes=1", 18, PRONY_FLOAT32, "2", x, PRONY_FLOAT32, "2",
                      rows[i].wanted, NULL, NULL});
    }
    check(&(form){"ReduceLogSum", "noop_with_empty_axes=1", 18, PRONY_FLOAT32, "1", F(1), PRONY_FLOAT32, "1", F(0),
                  NULL, NULL});
}

static void extremes_of_no_booleans(void **state)
{
    (void)state;
    check(&(form){"ReduceMax", "keepdims=0", 20, PRONY_BOOL, "2,0", U8(0), PRONY_BOOL, "2", U8(0, 0), "1", I64(1)});
    check(&(form){"ReduceMin", "keepdims=0", 20, PRONY_BOOL, "2,0", U8(0), PRONY_BOOL, "2", U8(1, 1), "1", I64(1)});
}

/* Codes 1 to 6, low bits first. */
static void less_than_a_byte(void **state)
{
    (void)state;
    const uint8_t *x = U8(0x21, 0x43, 0x65);
    const form forms[] = {
        {"Transpose", "", 25, PRONY_UINT4, "2,3", x, PRONY_UINT4, "3,2", U8(0x41, 0x52, 0x63), NULL, NULL},
        {"Reshape", "", 25, PRONY_UINT4, "2,3", x, PRONY_UINT4, "6", x, "1", I64(-1)},
        {"Pad", "", 25, PRONY_INT4, "2,3", x, PRONY_INT4, "2,4", U8(0x10, 0x32, 0x40, 0x65), "4", I64(0, 1, 0, 0)},
        {"Pad", "mode='wrap'", 25, PRONY_UINT2, "3", U8(0x39), PRONY_UINT2, "4", U8(0xe7), "2", I64(1, 0)},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check(&forms[i]);
}

/* Without a zero point the kernel adds nothing, and a zero keeps its sign. */
static void quantized_zeros_keep_their_sign(void **state)
{
    (void)state;
    static const float scale = 2;
    const struct {
        prony_dtype type;
        int64_t number;
        const uint8_t *wanted;
    } rows[] = {{PRONY_FLOAT4E2M1, 23, U8(0x80, 0x09)}, {PRONY_FLOAT8E4M3FN, 17, U8(0, 0x80, 0xb0)}};
    for (size_t i = 0; i < 2; i++) {
        SCENARIO(i);
        char attributes[40];
        snprintf(attributes, sizeof attributes, "output_dtype=%lld", (long long)rows[i].number);
        model_run r = {0};
        model_builder *m = mb_begin(23);
        mb_input(m, "x", PRONY_FLOAT32, "3");
        mb_initializer(m, "s", PRONY_FLOAT32, "", &scale);
        mb_node(m, "QuantizeLinear", "x s", "y", attributes);
        mb_output(m, "y", rows[i].type, "3");
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "3", F(0, -0.0f, -1));
        mr_expect(mr_run(&r, 0), rows[i].type, "3", rows[i].wanted);
        mr_close(&r);
    }
}

/* A start before the first index is the first index, whichever way the steps go. */
static void backwards_from_before_the_beginning(void **state)
{
    (void)state;
    static const int64_t start[1] = {-6}, end[1] = {INT64_MIN}, axis[1] = {0}, step[1] = {-1};
    for (int empty = 0; empty < 2; empty++) {
        SCENARIO(empty);
        model_run r = {0};
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, empty ? "0" : "3");
        mb_initializer(m, "s", PRONY_INT64, "1", start);
        mb_initializer(m, "e", PRONY_INT64, "1", end);
        mb_initializer(m, "a", PRONY_INT64, "1", axis);
        mb_initializer(m, "d", PRONY_INT64, "1", step);
        mb_node(m, "Slice", "x s e a d", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "?");
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, empty ? "0" : "3", F(1, 2, 3));
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, empty ? "0" : "1", F(1));
        mr_close(&r);
    }
}

/* Half a pixel before the first: the taps -2, -1, 0 and 1 weigh -3/32, 19/32, 19/32 and -3/32, three of them on it. */
static void cubic_taps_meet_the_border(void **state)
{
    (void)state;
    model_run r = {0};
    model_builder *m = mb_begin(20);
    mb_input(m, "x", PRONY_FLOAT32, "1,1,1,2");
    mb_input(m, "g", PRONY_FLOAT32, "1,1,2,2");
    mb_node(m, "GridSample", "x g", "y", "mode='cubic' padding_mode='border' align_corners=1");
    mb_output(m, "y", PRONY_FLOAT32, "1,1,1,2");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,1,1,2", F(0, 32));
    mr_set(&r, "g", PRONY_FLOAT32, "1,1,2,2", F(-2, 0, 1e30f, 0));
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,1,1,2", F(-3, 32));
    mr_close(&r);
}

static void half_range(void **state)
{
    (void)state;
    static const struct {
        prony_dtype type;
        uint16_t one, five, two, three;
    } rows[] = {{PRONY_FLOAT16, 0x3c00, 0x4500, 0x4000, 0x4200}, {PRONY_BFLOAT16, 0x3f80, 0x40a0, 0x4000, 0x4040}};
    for (size_t i = 0; i < 2; i++) {
        SCENARIO(i);
        model_run r = {0};
        model_builder *m = mb_begin(27);
        mb_input(m, "x", rows[i].type, "");
        mb_initializer(m, "limit", rows[i].type, "", &rows[i].five);
        mb_initializer(m, "delta", rows[i].type, "", &rows[i].two);
        mb_node(m, "Range", "x limit delta", "y", "");
        mb_output(m, "y", rows[i].type, "?");
        mr_open(&r, m);
        mr_set(&r, "x", rows[i].type, "", &rows[i].one);
        mr_expect(mr_run(&r, 0), rows[i].type, "2", (const uint16_t[]){rows[i].one, rows[i].three});
        mr_close(&r);
    }
}

static void padded_text(void **state)
{
    (void)state;
    static const int64_t pads[2] = {1, 2};
    const prony_string words[2] = {{"ab", 2}, {"c", 1}}, fill = {"-", 1};
    model_run r = {0};
    model_builder *m = mb_begin(25);
    mb_input(m, "x", PRONY_STRING, "2");
    mb_input(m, "v", PRONY_STRING, "");
    mb_initializer(m, "p", PRONY_INT64, "2", pads);
    mb_node(m, "Pad", "x p v", "y", "");
    mb_node(m, "Pad", "x p", "z", "mode='edge'");
    mb_output(m, "y", PRONY_STRING, "5");
    mb_output(m, "z", PRONY_STRING, "5");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_STRING, "2", words);
    mr_set(&r, "v", PRONY_STRING, "", &fill);
    mr_expect_text(mr_run(&r, 0), "5", "-|ab|c|-|-");
    mr_expect_text(mr_output(&r, 1), "5", "ab|ab|c|c|c");
    mr_close(&r);
}

static void a_map_as_a_row(void **state)
{
    (void)state;
    const float *x = F(1.5f, -2, 40);
    model_run r = {0};
    model_builder *m = mb_begin(17);
    mb_opset(m, "ai.onnx.ml", 1);
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_node(m, "ai.onnx.ml::CastMap", "x", "y", "cast_to='TO_STRING'");
    mb_output(m, "y", PRONY_STRING, "1,3");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    mr_expect_text(mr_run(&r, 0), "1,3", "1.5|-2.0|40.0");
    mr_close(&r);
    check(&(form){"ai.onnx.ml::CastMap", "cast_to='TO_INT64' map_form='SPARSE' max_map=4", 17, PRONY_FLOAT32, "3", x,
                  PRONY_INT64, "1,4", I64(1, -2, 40, 0), NULL, NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opset_one),
        cmocka_unit_test(opset_one_split),
        cmocka_unit_test(reductions_over_no_axis),
        cmocka_unit_test(extremes_of_no_booleans),
        cmocka_unit_test(less_than_a_byte),
        cmocka_unit_test(quantized_zeros_keep_their_sign),
        cmocka_unit_test(backwards_from_before_the_beginning),
        cmocka_unit_test(cubic_taps_meet_the_border),
        cmocka_unit_test(half_range),
        cmocka_unit_test(padded_text),
        cmocka_unit_test(a_map_as_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
