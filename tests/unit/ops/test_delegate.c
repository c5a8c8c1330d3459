/* Operators that delegate to other operators: they take the kernel that the other operator would choose alone, the
 * report names it, and results agree with the nodes that the fused operator replaces. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include "ops/delegate.h"
#include "prony_report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fused_case {
    const char *x, *w, *y, *attributes;
    bool constant, added;                            /* weights; Z */
    const char *activation, *node, *node_attributes; /* FusedConv's, and the node of its own */
    const char *before;                              /* weights of a Conv in front, which makes a layout; NULL: none */
    bool selected;                                   /* the first extent is known only at run time */
} fused_case;

static const fused_case cases[] = {
    {"1,16,12,12", "32,16,3,3", "1,32,12,12", "kernel_shape=[3,3] pads=[1,1,1,1]", false, false, "activation='Relu'",
     "Relu", "", NULL, false},
    {"1,16,12,12", "32,16,3,3", "1,32,12,12", "kernel_shape=[3,3] pads=[1,1,1,1]", false, true, "", NULL, "", NULL,
     false},
    {"1,16,12,12", "32,16,3,3", "1,32,12,12", "kernel_shape=[3,3] pads=[1,1,1,1]", true, true, "activation='Relu'",
     "Relu", "", NULL, false},
    {"2,12,9,7", "6,4,3,3", "2,6,9,7", "kernel_shape=[3,3] pads=[1,1,1,1] group=3", true, true,
     "activation='LeakyRelu' activation_params=[0.2]", "LeakyRelu", "alpha=0.2", NULL, false},
    {"2,12,9,7", "6,4,3,3", "2,6,9,7", "kernel_shape=[3,3] pads=[1,1,1,1] group=3", false, false, "activation='Tanh'",
     "Tanh", "", NULL, false},
    {"1,32,10,10", "32,1,3,3", "1,32,10,10", "kernel_shape=[3,3] pads=[1,1,1,1] group=32", true, false,
     "activation='HardSigmoid' activation_params=[0.3,0.4]", "HardSigmoid", "alpha=0.3 beta=0.4", NULL, false},
    {"1,3,64,64", "32,3,3,3", "1,32,64,64", "kernel_shape=[3,3] pads=[1,1,1,1]", true, false, "activation='Relu'",
     "Relu", "", NULL, false},
    {"1,16,14,14", "32,32,3,3", "1,32,14,14", "kernel_shape=[3,3] pads=[1,1,1,1]", true, true, "activation='Relu'",
     "Relu", "", "32,16,1,1", false},
    {"1,16,14,14", "32,32,1,1", "1,32,14,14", "kernel_shape=[1,1]", true, true, "activation='Relu'", "Relu", "",
     "32,16,1,1", false},
    {"1,16,14,14", "32,8,3,3", "1,32,14,14", "kernel_shape=[3,3] pads=[1,1,1,1] group=4", true, true, "", NULL, "",
     "32,16,3,3", false},
    {"1,16,14,14", "32,32,3,3", "1,32,14,14", "kernel_shape=[3,3] pads=[1,1,1,1]", false, true, "activation='Relu'",
     "Relu", "", "32,16,1,1", false},
    {"1,32,19,19", "32,32,3,3", "1,32,19,19", "kernel_shape=[3,3] pads=[1,1,1,1]", true, true, "activation='Relu'",
     "Relu", "", NULL, false}, /* enough work for the direct kernel, where there is one */
    {"1,16,19,19", "32,32,3,3", "1,32,19,19", "kernel_shape=[3,3] pads=[1,1,1,1]", true, true, "activation='Relu'",
     "Relu", "", "32,16,1,1", false},
    {"4,8,9,9", "16,8,3,3", "2,16,9,9", "kernel_shape=[3,3] pads=[1,1,1,1]", true, false, "activation='Relu'", "Relu",
     "", NULL, true},
};

/* Elements between -1 and 1, the same for the same seed. */
static const float *numbers(const char *dims, unsigned seed, float scale)
{
    static float room[8][1 << 15];
    static size_t next;
    const prony_shape shape = mr_shape(dims);
    float *to = room[next++ % 8];
    const int64_t count = prony_shape_numel(&shape);
    assert_in_range(count, 1, 1 << 15);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = scale * ((float)(seed >> 8) / 8388608.0f - 1.0f);
    }
    return to;
}

static const char *const channels = "32"; /* as many as any case has */

static model_builder *build(const fused_case *c, bool fused)
{
    char attributes[256], first[16];
    model_builder *m = mb_begin(13);
    mb_opset(m, "com.microsoft", 1);
    mb_input(m, "x", PRONY_FLOAT32, c->x);
    const char *x = "x";
    if (c->selected) {
        mb_input(m, "keep", PRONY_BOOL, "4");
        mb_node(m, "Compress", "x keep", "kept", "axis=0");
        x = "kept";
    }
    if (c->before) {
        mb_initializer(m, "before", PRONY_FLOAT32, c->before, numbers(c->before, 5, 0.2f));
        mb_node(m, "Conv", "x before", "front", strstr(c->before, "3,3") ? "pads=[1,1,1,1]" : "");
        x = "front";
    }
    if (c->constant)
        mb_initializer(m, "w", PRONY_FLOAT32, c->w, numbers(c->w, 7, 0.1f));
    else
        mb_input(m, "w", PRONY_FLOAT32, c->w);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(c->w, ","), c->w);
    mb_initializer(m, "b", PRONY_FLOAT32, first, numbers(channels, 11, 1.0f));
    if (c->added) mb_input(m, "z", PRONY_FLOAT32, c->y);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s w b%s", x, fused && c->added ? " z" : "");
    if (fused) {
        snprintf(attributes, sizeof attributes, "%s %s", c->attributes, c->activation);
        mb_node(m, "com.microsoft::FusedConv", inputs, "y", attributes);
    } else {
        const char *last = c->added ? "sum" : "conv";
        mb_node(m, "Conv", inputs, c->added || c->node ? "conv" : "y", c->attributes);
        if (c->added) mb_node(m, "Add", "conv z", c->node ? "sum" : "y", "");
        if (c->node) mb_node(m, c->node, last, "y", c->node_attributes);
    }
    mb_node_name(m, "last");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    return m;
}

static void feed(model_run *r, const fused_case *c)
{
    static const uint8_t keep[] = {0, 1, 0, 1};
    mr_set(r, "x", PRONY_FLOAT32, c->x, numbers(c->x, 3, 1.0f));
    if (!c->constant) mr_set(r, "w", PRONY_FLOAT32, c->w, numbers(c->w, 7, 0.1f));
    if (c->added) mr_set(r, "z", PRONY_FLOAT32, c->y, numbers(c->y, 13, 1.0f));
    if (c->selected) mr_set(r, "keep", PRONY_BOOL, "4", keep);
}

/* The kernel that the last operator of this kind took. */
static void kernel_name(model_run *r, const char *op, char *name, size_t size)
{
    prony_report *report = mr_profile(r);
    size_t count = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    *name = '\0';
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].op, op) == 0) snprintf(name, size, "%s", rows[i].kernel);
    prony_report_release(report);
    if (!*name) fail_msg("no operator %s", op);
}

static void test_fused_conv_takes_the_kernel_of_conv(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        SCENARIO_NAMED(k, cases[k].x);
        const fused_case *c = &cases[k];
        model_run fused = {0}, apart = {0};
        char taken[64], wanted[64];
        mr_open(&fused, build(c, true));
        mr_open(&apart, build(c, false));
        feed(&fused, c);
        feed(&apart, c);
        const prony_value *got = mr_run(&fused, 0), *right = mr_run(&apart, 0);
        const int64_t n = prony_shape_numel(&right->shape);
        assert_int_equal(prony_shape_numel(&got->shape), n);
        assert_true(n > 0);
        for (int64_t i = 0; i < n; i++) {
            const float a = ((const float *)got->data)[i], b = ((const float *)right->data)[i];
            if (!(fabsf(a - b) <= 1e-5f * fmaxf(1.0f, fabsf(b))))
                fail_msg("case %zu, element %lld: %g, %g", k, (long long)i, (double)a, (double)b);
        }
        kernel_name(&fused, "FusedConv", taken, sizeof taken);
        kernel_name(&apart, "Conv", wanted, sizeof wanted);
        if (strncmp(taken, "fused", 5) != 0 || strcmp(taken + 5, wanted) != 0 || strstr(taken, "ref"))
            fail_msg("case %zu: FusedConv takes %s where Conv takes %s", k, taken, wanted);
        mr_close(&fused);
        mr_close(&apart);
    }
}

/* Opset 6 adds by a loop of opset 7's. */
static void test_early_add_takes_a_vector_kernel(void **state)
{
    (void)state;
    static const float wanted[] = {11, 12, 23, 24};
    char taken[64];
    model_builder *m = mb_begin(6);
    mb_input(m, "a", PRONY_FLOAT32, "2,2");
    mb_input(m, "b", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "a b", "y", "broadcast=1 axis=0");
    mb_output(m, "y", PRONY_FLOAT32, "2,2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "a", PRONY_FLOAT32, "2,2", (const float[]){1, 2, 3, 4});
    mr_set(&r, "b", PRONY_FLOAT32, "2", (const float[]){10, 20});
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2,2", wanted);
    kernel_name(&r, "Add", taken, sizeof taken);
    assert_string_equal(taken, "add_1_native");
    mr_close(&r);
}

/* ---- the choice itself, on a row made for it */

static bool never(const prony_context *context)
{
    (void)context;
    return false;
}

static void blocked(const prony_context *context, prn_layout *in, prn_layout *out)
{
    (void)context;
    in[0] = out[0] = PRN_BLOCKED8;
}

static void test_choice(void **state)
{
    (void)state;
    static const prn_kernel kernels[] = {
        {.name = "halves", .backend = "native", .types = PRN_TYPE(PRONY_FLOAT16)},
        {.name = "unusable", .backend = "native", .types = PRN_TYPE_F32, .supported = never},
        {.name = "own", .backend = "native", .types = PRN_TYPE_F32, .own_layout = true},
        {.name = "blocked", .backend = "dnnl", .types = PRN_TYPE_F32, .layouts = blocked},
        {.name = "plain", .backend = "native", .types = PRN_TYPE_F32, .post_ops = true},
        {.name = "reference", .backend = "reference", .post_ops = true},
        {0}};
    static const prn_op op = {.name = "Chosen", .kernels = kernels};
    static const prn_kernel native = {.backend = "native"}, dnnl = {.backend = "dnnl"},
                            reference = {.backend = "reference"}, own = {.backend = "native", .own_layout = true},
                            blas = {.backend = "openblas"};
    const prony_value x = {.dtype = PRONY_FLOAT32, .shape = {4, {1, 8, 2, 2}}};
    prony_value y = x;
    const prony_value *inputs[] = {&x};
    prony_value *outputs[] = {&y};
    const prn_post_ops post_ops = {.count = 1};
    prony_context context = {.inputs = inputs, .outputs = outputs, .input_count = 1, .output_count = 1};
    assert_string_equal(prn_op_kernel(&op, &context, false, NULL)->name, "own");
    assert_string_equal(prn_op_kernel(&op, &context, true, NULL)->name, "plain");
    assert_string_equal(prn_op_kernel(&op, &context, false, &native)->name, "plain");
    assert_string_equal(prn_op_kernel(&op, &context, false, &own)->name, "own");
    assert_string_equal(prn_op_kernel(&op, &context, false, &dnnl)->name, "blocked");
    assert_string_equal(prn_op_kernel(&op, &context, false, &reference)->name, "reference");
    assert_null(prn_op_kernel(&op, &context, true, &dnnl));
    assert_null(prn_op_kernel(&op, &context, false, &blas));
    context.post_ops = &post_ops;
    assert_string_equal(prn_op_kernel(&op, &context, false, NULL)->name, "plain");
    assert_null(prn_op_kernel(&op, &context, false, &own));
}

static double in_cycles(const prony_context *context)
{
    return context->inputs[0]->shape.dim[1] == 8 ? 30 : 10;
}

static double in_twenty(const prony_context *context)
{
    (void)context;
    return 20;
}

static double never_first(const prony_context *context)
{
    (void)context;
    return INFINITY;
}

/* The fewest predicted cycles win among successive rows that predict, of those that can; a tie is the first one's. */
static void test_choice_by_prediction(void **state)
{
    (void)state;
    static const prn_kernel kernels[] = {
        {.name = "cannot", .backend = "native", .supported = never, .predict = in_twenty},
        {.name = "varies", .backend = "native", .predict = in_cycles},
        {.name = "twenty", .backend = "native", .predict = in_twenty},
        {.name = "again", .backend = "native", .predict = in_twenty},
        {.name = "worst", .backend = "native", .predict = never_first},
        {.name = "last", .backend = "native"},
        {.name = "behind", .backend = "native", .predict = in_cycles},
        {0}};
    static const prn_op op = {.name = "Predicted", .kernels = kernels}, rest = {.name = "Rest", .kernels = kernels + 4};
    static const prn_kernel worst = {.name = "worst", .backend = "native"};
    prony_value x = {.dtype = PRONY_FLOAT32, .shape = {4, {1, 8, 2, 2}}}, y = x;
    const prony_value *inputs[] = {&x};
    prony_value *outputs[] = {&y};
    const prony_context context = {.inputs = inputs, .outputs = outputs, .input_count = 1, .output_count = 1};
    double cycles, next;
    assert_string_equal(prn_op_kernel(&op, &context, false, NULL)->name, "twenty");
    assert_string_equal(prn_op_next_kernel(&op, &context, &kernels[2], &cycles, &next)->name, "again");
    assert_true(cycles == 20 && next == 20);
    assert_string_equal(prn_op_kernel(&op, &context, false, &worst)->name, "worst");
    assert_string_equal(prn_op_kernel(&rest, &context, false, NULL)->name, "last");
    assert_null(prn_op_next_kernel(&rest, &context, &kernels[5], &cycles, &next));
    x.shape.dim[1] = 4;
    assert_string_equal(prn_op_kernel(&op, &context, false, NULL)->name, "varies");
    assert_string_equal(prn_op_next_kernel(&op, &context, &kernels[1], &cycles, &next)->name, "twenty");
    assert_true(cycles == 10 && next == 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_conv_takes_the_kernel_of_conv),
        cmocka_unit_test(test_early_add_takes_a_vector_kernel),
        cmocka_unit_test(test_choice_by_prediction),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
