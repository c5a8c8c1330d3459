/* Gradient of ai.onnx.preview.training: differentiated outputs, the inputs to differentiate by, and refusals. The
 * rules of operators have a test of their own (test_gradient_rules.c). */
#include "failure_trace.h"
#include "ops/kernels/vector/number.h"
#include "profiler/report/report.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GRADIENT "ai.onnx.preview.training::Gradient"

static model_builder *begin(void)
{
    model_builder *m = mb_begin(17);
    mb_opset(m, "ai.onnx.preview.training", 1);
    return m;
}

/* A model with input x; `nodes` make outputs of the same length. */
static model_builder *begin_with(const char *dims)
{
    model_builder *m = begin();
    mb_input(m, "x", PRONY_FLOAT32, dims);
    return m;
}

static void gradient(model_builder *m, const char *inputs, const char *outputs, const char *attributes)
{
    mb_node(m, GRADIENT, inputs, outputs, attributes);
    mb_node_name(m, "g");
}

static const float x4[4] = {-1.5f, 0.5f, 2, 3};

/* y = x x + exp(x) + x: several consumers, of which one is the node that the gradient shares. */
static void several_consumers_add_up_and_values_are_shared(void **state)
{
    (void)state;
    double wanted[4];
    for (int i = 0; i < 4; i++) wanted[i] = 2 * (double)x4[i] + exp((double)x4[i]) + 1;
    model_builder *m = begin_with("4");
    mb_node(m, "Mul", "x x", "s", "");
    mb_node(m, "Exp", "x", "e", "");
    mb_node(m, "Sum", "s e x", "y", "");
    gradient(m, "x", "dx", "xs=['x'] y='y'");
    mb_output(m, "dx", PRONY_FLOAT32, "4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_expect_near(mr_run(&r, 0), "4", wanted);
    prony_report *report = NULL;
    size_t count, exponentials = 0, made = 0;
    assert_int_equal(prony_inspect(&report, r.model, NULL, &r.error), PRONY_OK);
    const prony_layer_row *layers = prony_report_layers(report, &count);
    for (size_t l = 0; l < count; l++) {
        SCENARIO(l);
        exponentials += strcmp(layers[l].op, "Exp") == 0;
        made += strncmp(layers[l].name, "g/grad/", 7) == 0;
        assert_string_not_equal(layers[l].op, "Gradient");
    }
    assert_int_equal(exponentials, 1);
    assert_true(made >= 3);
    prony_report_release(report);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* The gradient covers every element of y, for any shape; with nothing in between it is 1. */
static void the_gradient_is_that_of_the_sum(void **state)
{
    (void)state;
    static const float b[2] = {3, 4}, x[3] = {5, 6, 7};
    static const double dx[3] = {7, 7, 7}, db[2] = {18, 18}, ones[3] = {1, 1, 1};
    model_builder *m = begin_with("3");
    mb_input(m, "b", PRONY_FLOAT32, "2,1");
    mb_node(m, "Mul", "x b", "y", "");
    gradient(m, "x b", "dx db", "xs=['x','b'] y='y'");
    mb_node(m, GRADIENT, "x", "one", "xs=['x'] y='x'");
    mb_output(m, "dx", PRONY_FLOAT32, "3");
    mb_output(m, "db", PRONY_FLOAT32, "2,1");
    mb_output(m, "one", PRONY_FLOAT32, "3");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    mr_set(&r, "b", PRONY_FLOAT32, "2,1", b);
    mr_expect_near(mr_run(&r, 0), "3", dx);
    mr_expect_near(mr_output(&r, 1), "2,1", db);
    mr_expect_near(mr_output(&r, 2), "3", ones);
    mr_close(&r);
}

/* z = 2 x, y = x z: held fixed, z is a number; otherwise it follows from x. A hidden tensor counts as an x; nodes
 * before it do not. */
static void zs_are_held_and_xs_are_where_it_ends(void **state)
{
    (void)state;
    double held[4], free_[4], hidden[4];
    for (int i = 0; i < 4; i++) held[i] = 2 * (double)x4[i], free_[i] = 4 * (double)x4[i], hidden[i] = (double)x4[i];
    model_builder *m = begin_with("4");
    mb_node(m, "Add", "x x", "z", "");
    mb_node(m, "Mul", "x z", "y", "");
    mb_node(m, GRADIENT, "x z", "a", "xs=['x'] zs=['z'] y='y'");
    mb_node(m, GRADIENT, "x", "b", "xs=['x'] y='y'");
    mb_node(m, GRADIENT, "x z", "c d", "xs=['x','z'] y='y'");
    for (const char *name = "abcd"; *name; name++) mb_output(m, (const char[]){*name, 0}, PRONY_FLOAT32, "4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_expect_near(mr_run(&r, 0), "4", held);
    mr_expect_near(mr_output(&r, 1), "4", free_);
    mr_expect_near(mr_output(&r, 2), "4", held);
    mr_expect_near(mr_output(&r, 3), "4", hidden);
    mr_close(&r);
}

/* Inputs other than the named tensors: the same subgraph on those inputs. Two may be the same one. */
static void inputs_take_the_place_of_what_xs_and_zs_name(void **state)
{
    (void)state;
    static const float u[4] = {1, 2, 3, 4}, v[4] = {5, 6, 7, 8};
    double du[4], dxx[4], dz[4];
    for (int i = 0; i < 4; i++) {
        du[i] = 2 * (double)u[i] * (double)v[i] * cos((double)(u[i] * u[i] * v[i]));
        dxx[i] = 2 * (double)(u[i] * u[i]) * cos((double)(u[i] * u[i] * u[i]));
        dz[i] = dxx[i] / 2;
    }
    model_builder *m = begin_with("4");
    mb_input(m, "z", PRONY_FLOAT32, "4");
    mb_input(m, "u", PRONY_FLOAT32, "4");
    mb_input(m, "v", PRONY_FLOAT32, "4");
    mb_node(m, "Mul", "x x", "s", "");
    mb_node(m, "Mul", "s z", "t", "");
    mb_node(m, "Sin", "t", "y", "");
    gradient(m, "u v", "du", "xs=['x'] zs=['z'] y='y'");
    mb_node(m, GRADIENT, "u u", "dxx dz", "xs=['x','z'] y='y'");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    mb_output(m, "du", PRONY_FLOAT32, "4");
    mb_output(m, "dxx", PRONY_FLOAT32, "4");
    mb_output(m, "dz", PRONY_FLOAT32, "4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_set(&r, "z", PRONY_FLOAT32, "4", x4);
    mr_set(&r, "u", PRONY_FLOAT32, "4", u);
    mr_set(&r, "v", PRONY_FLOAT32, "4", v);
    mr_run(&r, 0);
    for (int k = 0; k < 3; k++) { /* sin of large arguments: float32 keeps fewer places there */
        const double *wanted = k == 0 ? du : k == 1 ? dxx : dz;
        const float *is = mr_output(&r, (size_t)k + 1)->data;
        for (int i = 0; i < 4; i++) assert_true(fabs((double)is[i] - wanted[i]) <= 2e-5 * (1 + fabs(wanted[i])));
    }
    mr_survives_faults(&r);
    mr_close(&r);
}

/* Values that do not influence y, or only through step functions, get zeros; gradients end at integers. */
static void without_a_way_it_is_zero(void **state)
{
    (void)state;
    static const double zeros[4] = {0};
    model_builder *m = begin_with("4");
    mb_input(m, "w", PRONY_FLOAT32, "2,2");
    mb_node(m, "Floor", "x", "f", "");
    mb_node(m, "Shape", "x", "s", "");
    mb_node(m, "Cast", "s", "c", "to=1");
    mb_node(m, "Cast", "x", "i", "to=7");
    mb_node(m, "Cast", "i", "j", "to=1");
    mb_node(m, "Sum", "f c j", "y", "");
    gradient(m, "x w", "dx dw", "xs=['x','w'] y='y'");
    mb_output(m, "dx", PRONY_FLOAT32, "4");
    mb_output(m, "dw", PRONY_FLOAT32, "2,2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_set(&r, "w", PRONY_FLOAT32, "2,2", x4);
    mr_expect_near(mr_run(&r, 0), "4", zeros);
    mr_expect_near(mr_output(&r, 1), "2,2", zeros);
    mr_close(&r);
}

/* x^4, its derivatives, and those of Gradients in any order of the file. */
static void gradients_of_gradients(void **state)
{
    (void)state;
    double first[4], second[4], third[4];
    for (int i = 0; i < 4; i++) {
        const double x = (double)x4[i];
        first[i] = 4 * x * x * x, second[i] = 12 * x * x, third[i] = 24 * x;
    }
    model_builder *m = begin_with("4");
    mb_node(m, GRADIENT, "x", "c", "xs=['x'] y='b'");
    mb_node(m, GRADIENT, "x", "b", "xs=['x'] y='a'");
    mb_node(m, GRADIENT, "x", "a", "xs=['x'] y='y'");
    mb_node(m, "Mul", "s s", "y", "");
    mb_node(m, "Mul", "x x", "s", "");
    for (const char *name = "abc"; *name; name++) mb_output(m, (const char[]){*name, 0}, PRONY_FLOAT32, "4");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_expect_near(mr_run(&r, 0), "4", first);
    mr_expect_near(mr_output(&r, 1), "4", second);
    mr_expect_near(mr_output(&r, 2), "4", third);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* Weights of the file: the path includes values evaluated when shapes were bound. */
static void weights_of_the_file(void **state)
{
    (void)state;
    static const float w[6] = {1, 2, 3, 4, 5, 6}, x[3] = {7, 8, 9};
    static const double dw[6] = {7, 8, 9, 7, 8, 9};
    model_builder *m = begin_with("1,3");
    mb_initializer(m, "w", PRONY_FLOAT32, "2,3", w);
    mb_node(m, "Transpose", "w", "t", "");
    mb_node(m, "MatMul", "x t", "y", "");
    gradient(m, "w", "dw", "xs=['w'] y='y'");
    mb_output(m, "dw", PRONY_FLOAT32, "2,3");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,3", x);
    mr_expect_near(mr_run(&r, 0), "2,3", dw);
    mr_close(&r);
}

/* Half-width types keep their type, and are widened where the operator widens them; a Cast goes back to what it came
 * from. */
static void narrow_types(void **state)
{
    (void)state;
    static const prony_dtype types[] = {PRONY_FLOAT16, PRONY_BFLOAT16};
    for (int t = 0; t < 2; t++) {
        SCENARIO(t);
        double wanted[4];
        for (int i = 0; i < 4; i++) wanted[i] = 2 * (double)x4[i] + (1 - pow(tanh((double)x4[i]), 2));
        model_builder *m = begin_with("4");
        static const float half = 0.5f;
        mb_initializer(m, "half", PRONY_FLOAT32, "", &half);
        mb_node(m, "Cast", "x", "n", t == 0 ? "to=10" : "to=16");
        mb_node(m, "Cast", "half", "h", t == 0 ? "to=10" : "to=16");
        mb_node(m, "Mul", "n n", "s", "");
        mb_node(m, "Tanh", "n", "u", "");
        mb_node(m, "Add", "s u", "y", "");
        mb_node(m, "LayerNormalization", "y h", "z", "");
        gradient(m, "x", "dx", "xs=['x'] y='y'");
        mb_node(m, GRADIENT, "n", "dn", "xs=['n'] y='y'");
        mb_node(m, GRADIENT, "n", "dz", "xs=['n'] y='z'");
        mb_output(m, "dx", PRONY_FLOAT32, "4");
        mb_output(m, "dn", types[t], "4");
        mb_output(m, "dz", types[t], "4");
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
        const float *dx = mr_run(&r, 0)->data;
        for (int i = 0; i < 4; i++)
            assert_true(fabs((double)dx[i] - wanted[i]) <= (t ? 0.05 : 0.01) * (1 + fabs(wanted[i])));
        assert_int_equal(mr_output(&r, 0)->dtype, PRONY_FLOAT32);
        assert_int_equal(mr_output(&r, 1)->dtype, types[t]);
        assert_int_equal(mr_output(&r, 2)->dtype, types[t]);
        for (int i = 0; i < 4; i++) { /* the sum of what is normalized does not move */
            const double is = prn_get_f64(mr_output(&r, 2)->data, types[t], i);
            assert_true(fabs(is) < 0.05);
        }
        mr_close(&r);
    }
}

/* ---- functions and subgraphs ---- */

static void in_and_through_a_function(void **state)
{
    (void)state;
    double wanted[4];
    for (int i = 0; i < 4; i++) wanted[i] = 3 * (double)(x4[i] * x4[i]);
    model_builder *m = begin_with("4");
    mb_opset(m, "own", 1);
    mb_node(m, "own::Cube", "x", "y", "");
    gradient(m, "x", "dx", "xs=['x'] y='y'");
    mb_node(m, "own::Slope", "x", "slope", "");
    mb_output(m, "dx", PRONY_FLOAT32, "4");
    mb_output(m, "slope", PRONY_FLOAT32, "4");
    mb_function_begin(m, "own::Cube", "a", "c", "", "", 17);
    mb_node(m, "Mul", "a a", "b", "");
    mb_node(m, "Mul", "a b", "c", "");
    mb_function_end(m);
    mb_function_begin(m, "own::Slope", "a", "d", "", "", 17);
    mb_node(m, "Mul", "a a", "b", "");
    mb_node(m, "Mul", "a b", "c", "");
    mb_node(m, GRADIENT, "a", "d", "xs=['a'] y='c'");
    mb_function_end(m);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_expect_near(mr_run(&r, 0), "4", wanted);
    mr_expect_near(mr_output(&r, 1), "4", wanted);
    mr_close(&r);
}

/* `inner`: y belongs to the branch; otherwise to the outer graph. */
static model_builder *in_a_branch(bool inner)
{
    model_builder *m = begin_with("4");
    mb_input(m, "turn", PRONY_BOOL, "");
    mb_node(m, "Mul", "x x", "square", "");
    mb_node(m, "If", "turn", "d", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Mul", "x x", "s", "");
    mb_node(m, GRADIENT, "x", "e", inner ? "xs=['x'] y='s'" : "xs=['x'] y='square'");
    mb_node_name(m, "inner");
    mb_output(m, "e", PRONY_FLOAT32, "4");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Neg", "x", "n", "");
    mb_output(m, "n", PRONY_FLOAT32, "4");
    mb_graph_end(m);
    mb_output(m, "d", PRONY_FLOAT32, "4");
    mb_output(m, "square", PRONY_FLOAT32, "4");
    return m;
}

static void in_a_subgraph_it_knows_that_one(void **state)
{
    (void)state;
    static const uint8_t yes = 1;
    double wanted[4];
    for (int i = 0; i < 4; i++) wanted[i] = 2 * (double)x4[i];
    model_run r = {0};
    mr_open(&r, in_a_branch(true));
    mr_set(&r, "x", PRONY_FLOAT32, "4", x4);
    mr_set(&r, "turn", PRONY_BOOL, "", &yes);
    mr_expect_near(mr_run(&r, 0), "4", wanted);
    mr_close(&r);
}

/* ---- training ---- */

/* A network of a convolution, a normalization and a classifier, its loss, and its weights after Momentum. */
static model_builder *training(void)
{
    model_builder *m = begin();
    static const float rate = 0.2f;
    static const int64_t zero = 0;
    mb_input(m, "x", PRONY_FLOAT32, "4,1,4,4");
    mb_input(m, "labels", PRONY_INT64, "4");
    mb_input(m, "w", PRONY_FLOAT32, "2,1,3,3");
    mb_input(m, "s", PRONY_FLOAT32, "2");
    mb_input(m, "o", PRONY_FLOAT32, "2");
    mb_input(m, "v", PRONY_FLOAT32, "3,8");
    mb_input(m, "c", PRONY_FLOAT32, "3");
    mb_initializer(m, "rate", PRONY_FLOAT32, "", &rate);
    mb_initializer(m, "zero", PRONY_INT64, "", &zero);
    mb_node(m, "Conv", "x w", "h1", "pads=[1,1,1,1]");
    mb_node(m, "InstanceNormalization", "h1 s o", "h2", "");
    mb_node_name(m, "norm");
    mb_node(m, "Relu", "h2", "h3", "");
    mb_node(m, "MaxPool", "h3", "h4", "kernel_shape=[2,2] strides=[2,2]");
    mb_node(m, "Flatten", "h4", "h5", "");
    mb_node(m, "Gemm", "h5 v c", "scores", "transB=1");
    mb_node(m, "SoftmaxCrossEntropyLoss", "scores labels", "loss", "");
    gradient(m, "w s o v c", "dw ds do dv dc", "xs=['w','s','o','v','c'] y='loss'");
    mb_node(m, "ai.onnx.preview.training::Momentum", "rate zero w s o v c dw ds do dv dc dw ds do dv dc",
            "w2 s2 o2 v2 c2 m1 m2 m3 m4 m5", "alpha=0.0 beta=1.0 norm_coefficient=0.0 mode='standard'");
    mb_output(m, "loss", PRONY_FLOAT32, "");
    mb_output(m, "w2", PRONY_FLOAT32, "2,1,3,3");
    mb_output(m, "s2", PRONY_FLOAT32, "2");
    mb_output(m, "o2", PRONY_FLOAT32, "2");
    mb_output(m, "v2", PRONY_FLOAT32, "3,8");
    mb_output(m, "c2", PRONY_FLOAT32, "3");
    return m;
}

static void a_network_learns(void **state)
{
    (void)state;
    static const char *const names[] = {"w", "s", "o", "v", "c"}, *const dims[] = {"2,1,3,3", "2", "2", "3,8", "3"};
    static const int64_t labels[4] = {0, 1, 2, 1};
    static float x[64], w[18], s[2] = {1, 1}, o[2], v[24], c[3];
    float *const weights[] = {w, s, o, v, c};
    for (int i = 0; i < 64; i++) x[i] = (float)(i * 37 % 17) / 8 - 1;
    for (int i = 0; i < 18; i++) w[i] = (float)(i * 13 % 11) / 10 - 0.5f;
    for (int i = 0; i < 24; i++) v[i] = (float)(i * 7 % 13) / 12 - 0.5f;
    model_run r = {0};
    mr_open(&r, training());
    mr_set(&r, "x", PRONY_FLOAT32, "4,1,4,4", x);
    mr_set(&r, "labels", PRONY_INT64, "4", labels);
    for (int k = 0; k < 5; k++) mr_set(&r, names[k], PRONY_FLOAT32, dims[k], weights[k]);
    mr_survives_faults(&r);
    float first = 0, loss = 0;
    for (int step = 0; step < 60; step++) {
        SCENARIO(step);
        loss = *(const float *)mr_run(&r, 0)->data;
        if (step == 0) first = loss;
        for (size_t k = 0; k < 5; k++) {
            const prony_value *after = mr_output(&r, k + 1);
            memcpy(weights[k], after->data, (size_t)prony_shape_numel(&after->shape) * sizeof(float));
            mr_set(&r, names[k], PRONY_FLOAT32, dims[k], weights[k]);
        }
    }
    if (!(loss < first / 10)) fail_msg("the loss went from %g to %g", (double)first, (double)loss);
    prony_report *report = NULL;
    assert_int_equal(prony_inspect(&report, r.model, NULL, &r.error), PRONY_OK);
    assert_true(report->conserved);
    size_t count, inner = 0;
    const prony_layer_row *layers = prony_report_layers(report, &count);
    for (size_t l = 0; l < count; l++) {
        SCENARIO(l);
        assert_null(strstr(layers[l].name, "/grad/g/"));
        inner += strncmp(layers[l].name, "g/grad/norm/", 12) == 0; /* the inputs of the recomputation, and its result */
    }
    assert_true(inner > 10);
    prony_report_release(report);
    mr_close(&r);
}

/* ---- what is refused ---- */

static void refuse(model_builder *m, prony_status status, const char *const *texts)
{
    model_run r = {0};
    prony_report *report = NULL;
    prony_status is = mr_try_open(&r, m);
    if (is == PRONY_OK) is = prony_inspect(&report, r.model, NULL, &r.error);
    prony_report_release(report);
    if (is != status) fail_msg("status %d, wanted %d: %s", (int)is, (int)status, r.error.message);
    for (; *texts; texts++)
        if (!strstr(r.error.message, *texts)) fail_msg("'%s' says nothing of '%s'", r.error.message, *texts);
    mr_close(&r);
}
#define REFUSED(m, status, ...) refuse(m, status, (const char *const[]){__VA_ARGS__, NULL})

static model_builder *square_with(const char *inputs, const char *outputs, const char *attributes)
{
    model_builder *m = begin_with("4");
    mb_input(m, "n", PRONY_INT64, "4");
    mb_node(m, "Mul", "x x", "y", "");
    mb_node(m, "Add", "n n", "k", "");
    gradient(m, inputs, outputs, attributes);
    mb_output(m, "dx", PRONY_FLOAT32, NULL);
    return m;
}

static void wrong_nodes_are_refused(void **state)
{
    (void)state;
    const prony_status invalid = PRONY_INVALID_MODEL;
    REFUSED(square_with("x", "dx", "xs=['x'] y='nowhere'"), invalid, "'g'", "Gradient", "'nowhere'", "'y'");
    REFUSED(square_with("x", "dx", "xs=['nowhere'] y='y'"), invalid, "'g'", "'nowhere'", "'xs'");
    REFUSED(square_with("x x", "dx", "xs=['x'] zs=['nowhere'] y='y'"), invalid, "'g'", "'nowhere'", "'zs'");
    REFUSED(square_with("n", "dx", "xs=['n'] y='y'"), invalid, "'g'", "'n'", "int64[4]", "floats");
    REFUSED(square_with("x", "dx", "xs=['x'] y='k'"), invalid, "'g'", "'k'", "int64[4]");
    REFUSED(square_with("n", "dx", "xs=['x'] y='y'"), invalid, "'g'", "'n'", "int64[4]", "float32[4]");
    REFUSED(square_with("x", "dx", "y='y'"), invalid, "'g'", "'xs'", "missing");
    REFUSED(square_with("x", "dx", "xs=['x']"), invalid, "'g'", "'y'", "missing");
    REFUSED(square_with("x", "dx", "xs=1 y='y'"), invalid, "'g'", "'xs'");
    REFUSED(square_with("x", "dx", "xs=['x'] y=['y']"), invalid, "'g'", "'y'");
    REFUSED(square_with("x x", "dx", "xs=['x'] y='y'"), invalid, "'g'", "2 inputs", "1 tensors");
    REFUSED(square_with("x", "dx", "xs=['x'] zs=['y'] y='y'"), invalid, "'g'", "1 inputs");
    REFUSED(square_with("x", "dx dw", "xs=['x'] y='y'"), invalid, "'g'", "2 outputs");
    REFUSED(square_with("x", "dx", "xs=['x'] y='dx'"), invalid, "'g'", "cycle");
    REFUSED(in_a_branch(false), invalid, "'inner'", "'square'", "subgraph");
}

static void an_operator_without_a_rule_is_named(void **state)
{
    (void)state;
    model_builder *m = begin_with("2,2");
    mb_node(m, "Mul", "x x", "s", "");
    mb_node(m, "Det", "s", "d", "");
    mb_node_name(m, "the_det");
    mb_node(m, "Exp", "d", "y", "");
    gradient(m, "x", "dx", "xs=['x'] y='y'");
    mb_output(m, "dx", PRONY_FLOAT32, "2,2");
    REFUSED(m, PRONY_UNSUPPORTED, "'g' (Gradient)", "'the_det' (Det)", "'d'", "no gradient rule");
}

/* The expansion of each Gradient is a few times as long as the differentiated part. */
static void how_far_gradients_unfold_is_bounded(void **state)
{
    (void)state;
    model_builder *m = begin_with("4");
    mb_node(m, "Tanh", "x", "y0", "");
    for (int i = 0; i < 40; i++) {
        char y[32], attributes[64];
        snprintf(y, sizeof y, "y%d", i + 1);
        snprintf(attributes, sizeof attributes, "xs=['x'] y='y%d'", i);
        mb_node(m, GRADIENT, "x", y, attributes);
    }
    mb_output(m, "y40", PRONY_FLOAT32, "4");
    REFUSED(m, PRONY_LIMIT, "Gradient", "unfold to more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_consumers_add_up_and_values_are_shared),
        cmocka_unit_test(the_gradient_is_that_of_the_sum),
        cmocka_unit_test(zs_are_held_and_xs_are_where_it_ends),
        cmocka_unit_test(inputs_take_the_place_of_what_xs_and_zs_name),
        cmocka_unit_test(without_a_way_it_is_zero),
        cmocka_unit_test(gradients_of_gradients),
        cmocka_unit_test(weights_of_the_file),
        cmocka_unit_test(narrow_types),
        cmocka_unit_test(in_and_through_a_function),
        cmocka_unit_test(in_a_subgraph_it_knows_that_one),
        cmocka_unit_test(a_network_learns),
        cmocka_unit_test(wrong_nodes_are_refused),
        cmocka_unit_test(an_operator_without_a_rule_is_named),
        cmocka_unit_test(how_far_gradients_unfold_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
