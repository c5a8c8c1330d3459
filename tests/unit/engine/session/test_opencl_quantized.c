/* Quantized graphs on an OpenCL device have the processor's bits: convolutions of all kinds, conversions, a network that
 * makes no copy between its ends, the dot-product built-ins of drivers, calls and memory that fail. Skipped without OpenCL. */
#include "failure_trace.h"
#include "engine/session/session.h"
#include "ops/device.h"
#include "profiler/statistics/statistics.h"
#include "tests/support/device_here.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_device.h"

enum { NUMBERS = 1 << 16 };
static uint8_t bytes[2][NUMBERS];
static float numbers[NUMBERS], scales[NUMBERS];
static int32_t biases[NUMBERS];

static int fill(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (size_t i = 0; i < NUMBERS; i++) {
        numbers[i] = (float)prn_random_normal(&seed);
        for (int k = 0; k < 2; k++) bytes[k][i] = (uint8_t)(int)(128.0 + 60.0 * prn_random_normal(&seed));
        biases[i] = (int32_t)(2000.0 * prn_random_normal(&seed));
        scales[i] = 0.002f + 0.01f * (float)fabs(prn_random_normal(&seed));
    }
    return 0;
}

static const char *text_of(char text[96], const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *text_of(char text[96], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, 96, format, arguments);
    va_end(arguments);
    return text;
}

static size_t steps_with(const model_run *r, const char *kernel)
{
    const prn_plan *plan = r->session->current->plan;
    size_t count = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        count += plan->steps[i]->kernel && strcmp(plan->steps[i]->kernel->name, kernel) == 0;
    return count;
}

static void expect_same_bits(model_run *host, model_run *device)
{
    const prony_value *want = mr_run(host, 0), *got = mr_run(device, 0);
    assert_true(prn_shape_equal(&want->shape, &got->shape));
    assert_int_equal(want->dtype, got->dtype);
    assert_memory_equal(got->data, want->data, prony_dtype_bytes(want->dtype, prony_shape_numel(&want->shape)));
}

/* ---- convolutions ---- */

typedef struct conv_case {
    const char *x, *w, *attributes;
    prony_dtype x_type, w_type, y_type; /* y INT32: ConvInteger */
    bool per_channel, w_zero, bias;
} conv_case;

#define I8 PRONY_INT8
#define U8 PRONY_UINT8
#define I32 PRONY_INT32
static const conv_case convs[] = {
    {"1,3,7,9", "5,3,3,3", "pads=[1,1,1,1]", U8, I8, U8, true, false, true},
    {"2,3,35,33", "40,3,3,3", "strides=[2,2]", U8, I8, I8, true, false, true},
    {"1,37,6,6", "33,37,1,1", "", I8, I8, I8, false, true, false},
    {"2,6,9,8", "6,1,3,3", "group=6 pads=[1,0,2,1]", U8, U8, U8, true, true, true},
    {"1,4,9,8", "8,1,3,2", "group=4 dilations=[2,3] pads=[2,3,2,3]", I8, U8, U8, true, false, true},
    {"1,8,5,5", "36,2,3,3", "group=4 pads=[1,1,1,1]", U8, I8, U8, true, true, true},
    {"2,5,19", "9,5,4", "strides=[3] pads=[3,2]", U8, I8, I8, false, true, true},
    {"1,3,4,5,6", "10,3,2,3,2", "strides=[1,2,1] pads=[1,1,0,1,1,1]", I8, I8, U8, true, true, false},
    {"1,2,4,5,6", "2,1,3,3,3", "group=2 pads=[1,1,1,1,1,1]", U8, I8, U8, true, true, true},
    {"1,1,1,1", "1,1,1,1", "", U8, I8, U8, false, false, false},
    {"1,1,2,2", "12,1,5,5", "pads=[4,4,4,4]", U8, I8, U8, true, true, true}, /* windows in the padding alone */
    {"1,3,8,8", "11,3,3,3", "auto_pad='SAME_UPPER' strides=[2,2]", U8, U8, I32, false, true, false},
    {"2,6,5,5", "4,3,3,3", "group=2", I8, I8, I32, true, true, false},
    {"1,2,9,9", "3,2,1,3", "dilations=[1073741824,1] pads=[0,1,0,1]", U8, I8, I32, false, false, false},
};

static const char *channels_of(char text[96], const conv_case *c)
{
    const prony_shape shape = mr_shape(c->w);
    return c->per_channel ? text_of(text, "%lld", (long long)shape.dim[0]) : "";
}

static model_builder *conv_model(const conv_case *c)
{
    char channels[96], outputs[96];
    const prony_shape w = mr_shape(c->w);
    const bool integer = c->y_type == I32;
    const float x_scale = 0.021f, y_scale = 0.37f;
    model_builder *m = mb_begin(13);
    channels_of(channels, c);
    mb_input(m, "x", c->x_type, c->x);
    mb_initializer(m, "w", c->w_type, c->w, bytes[1]);
    mb_initializer(m, "xz", c->x_type, "", c->x_type == I8 ? "\xfb" : "\x83");
    mb_initializer(m, "wz", c->w_type, c->per_channel ? channels : "", c->w_zero ? bytes[0] : (const uint8_t[64]){0});
    mb_initializer(m, "xs", PRONY_FLOAT32, "", &x_scale);
    mb_initializer(m, "ws", PRONY_FLOAT32, c->per_channel ? channels : "", scales);
    mb_initializer(m, "ys", PRONY_FLOAT32, "", &y_scale);
    if (!integer) mb_initializer(m, "yz", c->y_type, "", "\x07");
    mb_initializer(m, "b", PRONY_INT32, text_of(outputs, "%lld", (long long)w.dim[0]), biases);
    if (integer)
        mb_node(m, "ConvInteger", "x w xz wz", "y", c->attributes);
    else
        mb_node(m, "QLinearConv", c->bias ? "x xs xz w ws wz ys yz b" : "x xs xz w ws wz ys yz", "y", c->attributes);
    mb_output(m, "y", PRONY_UNDEFINED, NULL);
    return m;
}

static void open_conv(model_run *r, const conv_case *c, const char *device)
{
    r->options.device = device;
    mr_open(r, conv_model(c));
    mr_set(r, "x", c->x_type, c->x, bytes[0]);
}

static void convolutions_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        model_run host = {0}, device = {0};
        SCENARIO(i);
        open_conv(&host, &convs[i], NULL);
        open_conv(&device, &convs[i], "opencl");
        expect_same_bits(&host, &device);
        const bool far = strstr(convs[i].attributes, "1073741824"); /* beyond an int of the device: the host's */
        assert_int_equal(steps_with(&device, convs[i].y_type == I32 ? "conv_integer_opencl" : "qlinear_conv_opencl"),
                         !far);
        mr_close(&host);
        mr_close(&device);
    }
}

/* ---- the driver's dot products, which PoCL does not have ---- */

/* The built-ins as OpenCL defines them, or (wrong) with another result. */
#define DOT_BUILT_INS(result)                                                                                          \
    "#undef cl_khr_integer_dot_product\n#define cl_khr_integer_dot_product 1\n"                                        \
    "#undef __opencl_c_integer_dot_product_input_4x8bit_packed\n"                                                      \
    "#define __opencl_c_integer_dot_product_input_4x8bit_packed 1\n"                                                   \
    "#define OWN(name, A, B, OUT) OUT name(uint a, uint b) { OUT s = 0; "                                              \
    "for (int i = 0; i < 4; i++) s += (OUT)(int)(A)(a >> 8 * i & 255u) * (OUT)(int)(B)(b >> 8 * i & 255u); "           \
    "return " result "; }\n"                                                                                           \
    "OWN(own_ss, char, char, int)\nOWN(own_su, char, uchar, int)\nOWN(own_us, uchar, char, int)\n"                     \
    "OWN(own_uu, uchar, uchar, uint)\n"                                                                                \
    "#define dot_4x8packed_ss_int own_ss\n#define dot_4x8packed_su_int own_su\n"                                       \
    "#define dot_4x8packed_us_int own_us\n#define dot_4x8packed_uu_uint own_uu\n"

static const char right_built_ins[] = DOT_BUILT_INS("s"), wrong_built_ins[] = DOT_BUILT_INS("s + 1");

/* Builds the programs of a source once more behind other lines, which begin with OTHER_LINES. Steps that are prepared from
 * now on get them: each new program changes places with the one that the steps look for. */
#define OTHER_LINES "#undef cl_khr"
static void replace_programs(prn_device *device, const prn_opencl_source *source, const char *name, const char *lines)
{
    for (opencl_program *p = device->programs; p; p = p->next) {
        static char defines[8192];
        prony_error error = {0};
        cl_kernel kernel;
        if (p->source != source || strstr(p->defines, OTHER_LINES)) continue;
        snprintf(defines, sizeof defines, "%s%s", lines, p->defines);
        if (prn_opencl_kernel(device, source, defines, name, &kernel, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        prn_opencl_kernel_release(device, kernel);
        opencl_program *made = device->programs;
        while (made->source != source || strcmp(made->defines, defines) != 0) made = made->next;
        const cl_program program = p->program;
        p->program = made->program;
        made->program = program;
    }
}

static model_builder *matmul_model(const conv_case *c)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", c->x_type, c->x);
    mb_initializer(m, "w", c->w_type, c->w, bytes[1]);
    mb_initializer(m, "xz", c->x_type, "", "\x05");
    mb_initializer(m, "wz", c->w_type, "", "\x03");
    mb_node(m, "MatMulInteger", "x w xz wz", "y", "");
    mb_output(m, "y", PRONY_UNDEFINED, NULL);
    return m;
}

static void open_product(model_run *r, const conv_case *c, bool conv, const char *device)
{
    if (conv) {
        open_conv(r, c, device);
        return;
    }
    r->options.device = device;
    mr_open(r, matmul_model(c));
    mr_set(r, "x", c->x_type, c->x, bytes[0]);
}

/* All pairs of types, depths that are and are not multiples of four, products and convolutions: the right built-ins give the
 * same bits, and wrong ones do not, which shows that they are called. */
static void dot_products_agree(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        const bool conv = i & 1;
        const prony_dtype types[] = {I8, U8};
        const conv_case of = {.x = conv    ? "1,3,9,7"
                                   : i & 8 ? "37,64"
                                           : "37,67",
                              .w = conv    ? i & 8 ? "34,3,3,3" : "9,3,2,2"
                                   : i & 8 ? "64,35"
                                           : "67,35",
                              .attributes = conv ? "pads=[1,1,1,1]" : "",
                              .x_type = types[i >> 1 & 1],
                              .w_type = types[i >> 2 & 1],
                              .y_type = I32,
                              .w_zero = true};
        SCENARIO(i);
        model_run host = {0}, own = {0}, right = {0}, wrong = {0};
        open_product(&host, &of, conv, NULL);
        open_product(&own, &of, conv, "opencl");
        expect_same_bits(&host, &own);
        prn_device *device = own.session->device;
        replace_programs(device, &prn_opencl_codes, "multiply_codes", right_built_ins);
        open_product(&right, &of, conv, "opencl");
        expect_same_bits(&host, &right);
        replace_programs(device, &prn_opencl_codes, "multiply_codes", wrong_built_ins);
        open_product(&wrong, &of, conv, "opencl");
        const prony_value *want = mr_run(&host, 0), *got = mr_run(&wrong, 0);
        assert_memory_not_equal(got->data, want->data, (size_t)prony_shape_numel(&want->shape) * sizeof(int32_t));
        mr_close(&wrong);
        mr_close(&right);
        mr_close(&own);
        mr_close(&host);
    }
}

/* ---- conversions ---- */

typedef struct quantize_case {
    const char *x, *scale, *attributes;
    bool is_signed, zero;
} quantize_case;

static model_builder *quantize_model(const quantize_case *c)
{
    const prony_dtype type = c->is_signed ? I8 : U8;
    model_builder *m = mb_begin(21);
    mb_input(m, "x", PRONY_FLOAT32, c->x);
    mb_input(m, "s", PRONY_FLOAT32, c->scale);
    if (c->zero) mb_input(m, "z", type, c->scale);
    mb_node(m, "QuantizeLinear", c->zero ? "x s z" : "x s", "q", c->attributes);
    mb_node(m, "Transpose", "q", "t", "");
    mb_node(m, "Transpose", "t", "u", ""); /* both stay: the codes are an output */
    mb_node(m, "DequantizeLinear", c->zero ? "q s z" : "q s", "d", c->attributes);
    mb_output(m, "d", PRONY_UNDEFINED, NULL);
    mb_output(m, "t", PRONY_UNDEFINED, NULL);
    return m;
}

/* Ties, numbers beyond every code, infinities, NaN, scales of 0 and below. */
static void conversions_agree(void **state)
{
    static const quantize_case cases[] = {{"7,33,5", "", "", false, true},
                                          {"7,33,5", "33", "axis=1", true, true},
                                          {"7,33,5", "5", "axis=-1", false, false},
                                          {"7,33,5", "7,5,5", "axis=1 block_size=8", true, true},
                                          {"40000", "", "", true, true},
                                          {"6,10", "6,4", "axis=1 block_size=3", false, true},
                                          {"1,1", "1", "axis=0", true, false}};
    static const float odd[] = {0.5f, 1.5f, 2.5f, -0.5f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e-42f};
    static float x[NUMBERS], s[NUMBERS];
    (void)state;
    for (size_t i = 0; i < NUMBERS; i++) {
        x[i] = numbers[i] * (i % 3 ? 20.0f : 0.9f);
        s[i] = i % 11 == 5 ? 0.0f : i % 7 == 3 ? -0.25f : i % 5 == 2 ? 0.5f : 7.0f * scales[i];
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) x[3 * i] = odd[i];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_run runs[3] = {
            {.options = {.device = NULL}}, {.options = {.device = "opencl"}}, {.options = {.device = "opencl"}}};
        SCENARIO(i);
        for (int d = 0; d < 3; d++) {
            if (d == 2) /* as on a device without doubles, whose quotients a remainder corrects */
                replace_programs(runs[1].session->device, &prn_opencl_quantize, "quantize", OTHER_LINES "_fp64\n");
            mr_open(&runs[d], quantize_model(&cases[i]));
            mr_set(&runs[d], "x", PRONY_FLOAT32, cases[i].x, x);
            mr_set(&runs[d], "s", PRONY_FLOAT32, cases[i].scale, s);
            if (cases[i].zero) mr_set(&runs[d], "z", cases[i].is_signed ? I8 : U8, cases[i].scale, bytes[0]);
        }
        expect_same_bits(&runs[0], &runs[2]);
        expect_same_bits(&runs[0], &runs[1]);
        const prony_value *want = mr_output(&runs[0], 1), *got = mr_output(&runs[1], 1);
        assert_memory_equal(got->data, want->data, (size_t)prony_shape_numel(&want->shape));
        assert_int_equal(steps_with(&runs[1], "quantize_linear_opencl"), 1);
        assert_int_equal(steps_with(&runs[1], "dequantize_linear_opencl"), 1);
        for (int d = 0; d < 3; d++) mr_close(&runs[d]);
    }
}

/* Numbers of one group and of several, NaN among them, all of one sign, all 0. */
static void dynamic_parameters_agree(void **state)
{
    static const int64_t counts[] = {1, 63, 64, 65, 16383, 16384, 50001};
    static float x[NUMBERS];
    (void)state;
    for (size_t i = 0; i < 3 * sizeof counts / sizeof *counts; i++) {
        char dims[96];
        const int64_t count = counts[i / 3];
        SCENARIO(i);
        for (int64_t e = 0; e < count; e++)
            x[e] = i % 3 == 0 ? numbers[e] : i % 3 == 1 ? -fabsf(numbers[e]) - 1.0f : e % 5 ? 0.0f : NAN;
        text_of(dims, "%lld", (long long)count);
        model_run runs[2] = {{.options = {.device = NULL}}, {.options = {.device = "opencl"}}};
        for (int d = 0; d < 2; d++) {
            model_builder *m = mb_begin(13);
            mb_input(m, "x", PRONY_FLOAT32, dims);
            mb_node(m, "DynamicQuantizeLinear", "x", "q s z", "");
            mb_output(m, "q", PRONY_UNDEFINED, NULL);
            mb_output(m, "s", PRONY_UNDEFINED, NULL);
            mb_output(m, "z", PRONY_UNDEFINED, NULL);
            mr_open(&runs[d], m);
            mr_set(&runs[d], "x", PRONY_FLOAT32, dims, x);
        }
        expect_same_bits(&runs[0], &runs[1]);
        assert_int_equal(steps_with(&runs[1], "dynamic_linear_opencl"), 1);
        assert_memory_equal(mr_output(&runs[1], 1)->data, mr_output(&runs[0], 1)->data, sizeof(float));
        assert_memory_equal(mr_output(&runs[1], 2)->data, mr_output(&runs[0], 2)->data, 1);
        for (int d = 0; d < 2; d++) mr_close(&runs[d]);
    }
}

/* ---- a network ---- */

/* Codes of `from` and their values, which are `to`. */
static void add_codes(model_builder *m, const char *from, const char *to, float scale, int zero)
{
    char s[96], z[96], q[96], in[300];
    const uint8_t code = (uint8_t)zero;
    mb_initializer(m, text_of(s, "%s_s", to), PRONY_FLOAT32, "", &scale);
    mb_initializer(m, text_of(z, "%s_z", to), U8, "", &code);
    text_of(q, "%s_q", to);
    snprintf(in, sizeof in, "%s %s %s", from, s, z);
    mb_node(m, "QuantizeLinear", in, q, "");
    snprintf(in, sizeof in, "%s %s %s", q, s, z);
    mb_node(m, "DequantizeLinear", in, to, "");
}

/* A quantized convolution with weights of one scale a channel. */
static void add_conv(model_builder *m, const char *from, const char *to, const char *dims, const char *attributes,
                     float x_scale)
{
    char name[96], channels[96], weights[96], in[300];
    const prony_shape w = mr_shape(dims);
    static float bias_scales[NUMBERS];
    for (int64_t i = 0; i < w.dim[0]; i++) bias_scales[i] = x_scale * scales[i];
    text_of(channels, "%lld", (long long)w.dim[0]);
    static const struct {
        const char *stem, *parts;
    } of[] = {{"w", "axis=0"}, {"b", "axis=0"}};
    for (int k = 0; k < 2; k++) {
        snprintf(in, sizeof in, "%s_%sq %s_%ss", to, of[k].stem, to, of[k].stem);
        mb_initializer(m, text_of(name, "%s_%sq", to, of[k].stem), k ? I32 : I8, k ? channels : dims,
                       k ? (const void *)biases : bytes[0]);
        mb_initializer(m, text_of(name, "%s_%ss", to, of[k].stem), PRONY_FLOAT32, channels, k ? bias_scales : scales);
        mb_node(m, "DequantizeLinear", in, text_of(weights, "%s_%s", to, of[k].stem), of[k].parts);
    }
    snprintf(in, sizeof in, "%s %s_w %s_b", from, to, to);
    mb_node(m, "Conv", in, to, attributes);
}

/* Phases of unlike lengths, groups, channels with scales of their own, one to three axes. */
static void transposed_convolutions_agree(void **state)
{
    static const struct {
        const char *x, *w, *channels, *attributes;
    } of[] = {{"1,3,5,4", "3,7,3,3", "7", "strides=[2,2] pads=[1,0,1,1] output_padding=[1,1]"},
              {"2,6,5,4", "6,8,2,3", "", "group=2 strides=[1,2] dilations=[2,1]"},
              {"1,4,9", "4,9,4", "", "strides=[3] pads=[1,2]"},
              {"1,2,3,2,3", "2,9,2,2,2", "9", "strides=[2,2,2]"},
              {"1,1,1,1", "1,1,1,1", "", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        model_run runs[2] = {{.options = {.device = NULL}}, {.options = {.device = "opencl"}}};
        SCENARIO(i);
        for (int d = 0; d < 2; d++) {
            model_builder *m = mb_begin(13);
            mb_input(m, "x", PRONY_FLOAT32, of[i].x);
            add_codes(m, "x", "x1", 0.03f, 119);
            mb_initializer(m, "wq", I8, of[i].w, bytes[1]);
            mb_initializer(m, "ws", PRONY_FLOAT32, of[i].channels, scales);
            mb_node(m, "DequantizeLinear", "wq ws", "w", "axis=1");
            mb_node(m, "ConvTranspose", "x1 w", "c", of[i].attributes);
            mb_node(m, "Relu", "c", "r", "");
            add_codes(m, "r", "y", 0.05f, 3);
            mb_output(m, "y", PRONY_UNDEFINED, NULL);
            mr_open(&runs[d], m);
            mr_set(&runs[d], "x", PRONY_FLOAT32, of[i].x, numbers);
        }
        expect_same_bits(&runs[0], &runs[1]);
        assert_int_equal(steps_with(&runs[1], "qconvtranspose_opencl"), 1);
        for (int d = 0; d < 2; d++) mr_close(&runs[d]);
    }
}

/* Convolutions, a depthwise one, a residual sum, another sum and a product, pools, a table, a join, a product with a
 * matrix. */
static model_builder *network(void)
{
    const float dense_scale = 0.01f;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,3,17,15");
    add_codes(m, "x", "x1", 0.03f, 127);
    add_conv(m, "x1", "c1", "8,3,3,3", "pads=[1,1,1,1]", 0.03f);
    mb_node(m, "Relu", "c1", "r1", "");
    add_codes(m, "r1", "x2", 0.05f, 0);
    add_conv(m, "x2", "c2", "8,1,3,3", "group=8 pads=[1,1,1,1]", 0.05f);
    add_codes(m, "c2", "x3", 0.07f, 120);
    add_conv(m, "x3", "c3", "8,8,1,1", "", 0.07f);
    add_codes(m, "c3", "x4", 0.08f, 131);
    mb_node(m, "Add", "x4 x2", "a1", "");
    add_codes(m, "a1", "x5", 0.11f, 100);
    mb_node(m, "MaxPool", "x5", "p1", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]");
    add_codes(m, "p1", "x6", 0.11f, 100);
    mb_node(m, "Sigmoid", "x6", "g1", "");
    add_codes(m, "g1", "x7", 1.0f / 255.0f, 0);
    mb_node(m, "Mul", "x6 x7", "m1", "");
    add_codes(m, "m1", "x8", 0.09f, 40);
    mb_node(m, "Concat", "x8 x6", "j1", "axis=1");
    add_codes(m, "j1", "x9", 0.09f, 44);
    mb_node(m, "AveragePool", "x9", "p2", "kernel_shape=[2,2] pads=[0,1,0,1] count_include_pad=1");
    add_codes(m, "p2", "xa", 0.08f, 50);
    mb_node(m, "GlobalAveragePool", "xa", "p3", "");
    add_codes(m, "p3", "xb", 0.04f, 30);
    mb_node(m, "Flatten", "xb", "f1", "");
    add_codes(m, "f1", "xc", 0.04f, 30);
    mb_initializer(m, "dq", I8, "16,5", bytes[1]);
    mb_initializer(m, "ds", PRONY_FLOAT32, "", &dense_scale);
    mb_node(m, "DequantizeLinear", "dq ds", "d", "");
    mb_node(m, "MatMul", "xc d", "l1", "");
    add_codes(m, "l1", "y", 0.05f, 128);
    mb_output(m, "y", PRONY_UNDEFINED, NULL);
    return m;
}

static void open_network(model_run *r, const char *device)
{
    r->options.device = device;
    mr_open(r, network());
    mr_set(r, "x", PRONY_FLOAT32, "1,3,17,15", numbers);
}

static void networks_copy_their_ends_alone(void **state)
{
    (void)state;
    model_run host = {0}, device = {0};
    open_network(&host, NULL);
    open_network(&device, "opencl");
    for (int run = 0; run < 2; run++) expect_same_bits(&host, &device);
    const prn_plan *plan = device.session->current->plan;
    size_t elsewhere = 0;
    for (size_t s = 0; s < plan->step_count; s++)
        if (plan->steps[s]->kernel && !plan->steps[s]->kernel->memory_space) {
            elsewhere++;
            assert_true(strncmp(plan->steps[s]->kernel->name, "copy_", 5) == 0);
        }
    assert_int_equal(elsewhere, 2);
    assert_true(steps_with(&device, "qconv_opencl") + steps_with(&device, "qlinear_conv_opencl") == 3);
    assert_int_equal(steps_with(&device, "qmul_opencl"), 1);
    assert_true(steps_with(&device, "qmap_opencl") >= 1);
    assert_int_equal(steps_with(&device, "maxpool_int8_opencl"), 1);
    assert_int_equal(steps_with(&device, "qlinear_average_pool_opencl"), 1);
    assert_int_equal(steps_with(&device, "qlinear_global_average_pool_opencl"), 1);
    mr_close(&host);
    mr_close(&device);
}

/* ---- failures ---- */

/* Every call of OpenCL fails once: a status, nothing left behind, and the session works again. */
static void calls_that_fail(void **state)
{
    (void)state;
    model_run keeper = {0};
    open_network(&keeper, "opencl");
    mr_run(&keeper, 0);
    const prn_device_use before = prn_device_usage(keeper.session->device);
    size_t failures = 0;
    for (uint64_t n = 1;; n++) {
        prony_session *session = NULL;
        prony_error error = {0};
        prony_session_options o = PRONY_SESSION_OPTIONS_INIT;
        const prony_value x = {.dtype = PRONY_FLOAT32, .shape = mr_shape("1,3,17,15"), .data = numbers};
        SCENARIO(n);
        o.device = "opencl";
        prn_opencl_fail_at(n);
        prony_status status = prony_session_create(&session, keeper.model, &o, &error);
        if (status == PRONY_OK) status = prony_session_set_input(session, "x", &x, &error);
        if (status == PRONY_OK) status = prony_session_run(session, &error);
        const bool failed = prn_opencl_failed();
        prn_opencl_fail_at(0);
        failures += failed && status != PRONY_OK;
        if (failed && session && prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
        prony_session_release(session);
        const prn_device_use after = prn_device_usage(keeper.session->device);
        assert_int_equal(after.buffers, before.buffers);
        assert_int_equal(after.bytes, before.bytes);
        assert_int_equal(after.kernels, before.kernels);
        if (!failed) break;
    }
    assert_true(failures > 50);
    mr_close(&keeper);
}

static void memory_that_fails(void **state)
{
    (void)state;
    model_run keeper = {0}, r = {0};
    open_network(&keeper, "opencl");
    open_conv(&r, &convs[0], "opencl");
    mr_run(&r, 0);
    mr_survives_faults(&r);
    mr_close(&r);
    mr_close(&keeper);
}

int main(void)
{
    enum { SKIPPED = 77 };
    const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions_agree),
                                       cmocka_unit_test(dot_products_agree),
                                       cmocka_unit_test(conversions_agree),
                                       cmocka_unit_test(dynamic_parameters_agree),
                                       cmocka_unit_test(transposed_convolutions_agree),
                                       cmocka_unit_test(networks_copy_their_ends_alone),
                                       cmocka_unit_test(calls_that_fail),
                                       cmocka_unit_test(memory_that_fails)};
    if (!device_here()) return SKIPPED;
    return cmocka_run_group_tests(tests, fill, NULL);
}
#else
int main(void)
{
    enum { SKIPPED = 77 };
    puts("no OpenCL in this build");
    return SKIPPED;
}
#endif
