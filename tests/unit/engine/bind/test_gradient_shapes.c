/* Gradient for shapes beyond one binding: sessions with changing sizes, and shapes that only a run knows. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

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

/* As many rows as x has positive numbers, which a run counts, times a bias. The run determines how to reverse the
 * broadcast. */
static void shapes_that_only_a_run_knows(void **state)
{
    (void)state;
    static const float x[5] = {1, -2, 3, -4, 5}, b[2] = {10, 20};
    static const double dx[5] = {30, 0, 30, 0, 30}, db[2] = {9, 9};
    model_builder *m = begin();
    static const float zero = 0;
    static const int64_t column[2] = {-1, 1};
    mb_input(m, "x", PRONY_FLOAT32, "5");
    mb_input(m, "b", PRONY_FLOAT32, "2");
    mb_initializer(m, "zero", PRONY_FLOAT32, "", &zero);
    mb_initializer(m, "column", PRONY_INT64, "2", column);
    mb_node(m, "Greater", "x zero", "p", "");
    mb_node(m, "Compress", "x p", "c", "axis=0");
    mb_node(m, "Reshape", "c column", "r", "");
    mb_node(m, "Mul", "r b", "y", "");
    mb_node(m, GRADIENT, "x b", "dx db", "xs=['x','b'] y='y'");
    mb_output(m, "dx", PRONY_FLOAT32, "5");
    mb_output(m, "db", PRONY_FLOAT32, "2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "5", x);
    mr_set(&r, "b", PRONY_FLOAT32, "2", b);
    mr_expect_near(mr_run(&r, 0), "5", dx);
    mr_expect_near(mr_output(&r, 1), "2", db);
    mr_close(&r);
}

static void extents_that_change(void **state)
{
    (void)state;
    static const float w[6] = {1, 2, 3, 4, 5, 6}, b[2] = {1, -1};
    static const prony_dim largest = {"N", 5};
    float x[15];
    model_builder *m = begin();
    mb_input(m, "x", PRONY_FLOAT32, "N,3");
    mb_input(m, "w", PRONY_FLOAT32, "3,2");
    mb_input(m, "b", PRONY_FLOAT32, "2");
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node(m, "Add", "p b", "q", "");
    mb_node(m, "ReduceMean", "q", "y", "keepdims=0");
    mb_node(m, GRADIENT, "x w b", "dx dw db", "xs=['x','w','b'] y='y'");
    mb_output(m, "dx", PRONY_FLOAT32, "N,3");
    mb_output(m, "dw", PRONY_FLOAT32, "3,2");
    mb_output(m, "db", PRONY_FLOAT32, "2");
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.max_dims = &largest;
    r.options.max_dim_count = 1;
    mr_open(&r, m);
    for (int i = 0; i < 15; i++) x[i] = (float)(i % 7) - 2;
    for (int n = 1; n <= 5; n += 2) {
        SCENARIO(n);
        char dims[16];
        double dx[15], dw[6] = {0}, db[2] = {0.5, 0.5};
        snprintf(dims, sizeof dims, "%d,3", n);
        for (int i = 0; i < n * 3; i++) {
            dx[i] = (double)(w[i % 3 * 2] + w[i % 3 * 2 + 1]) / (2 * n);
            dw[i % 3 * 2] = dw[i % 3 * 2 + 1] += (double)x[i] / (2 * n);
        }
        mr_set(&r, "x", PRONY_FLOAT32, dims, x);
        mr_set(&r, "w", PRONY_FLOAT32, "3,2", w);
        mr_set(&r, "b", PRONY_FLOAT32, "2", b);
        mr_expect_near(mr_run(&r, 0), dims, dx);
        mr_expect_near(mr_output(&r, 1), "3,2", dw);
        mr_expect_near(mr_output(&r, 2), "2", db);
    }
    mr_close(&r);
}

/* The rule of a convolution reads shapes, which determine its nodes: each size is bound separately. */
static void extents_that_decide(void **state)
{
    (void)state;
    static const float w[2] = {2, 3};
    static const prony_dim largest = {"N", 4};
    float x[12];
    model_builder *m = begin();
    mb_input(m, "x", PRONY_FLOAT32, "N,1,3");
    mb_input(m, "w", PRONY_FLOAT32, "2,1,1");
    mb_node(m, "Conv", "x w", "c", "");
    mb_node(m, "AveragePool", "c", "y", "kernel_shape=[3]");
    mb_node(m, GRADIENT, "x w", "dx dw", "xs=['x','w'] y='y'");
    mb_output(m, "dx", PRONY_FLOAT32, "N,1,3");
    mb_output(m, "dw", PRONY_FLOAT32, "2,1,1");
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.max_dims = &largest;
    r.options.max_dim_count = 1;
    mr_open(&r, m);
    for (int i = 0; i < 12; i++) x[i] = (float)(i % 5) - 1;
    for (int n = 1; n <= 4; n++) {
        SCENARIO(n);
        char dims[16];
        double dx[12], dw[2] = {0};
        snprintf(dims, sizeof dims, "%d,1,3", n);
        for (int i = 0; i < 3 * n; i++) {
            dx[i] = 5.0 / 3;
            dw[0] = dw[1] += (double)x[i] / 3;
        }
        mr_set(&r, "x", PRONY_FLOAT32, dims, x);
        mr_set(&r, "w", PRONY_FLOAT32, "2,1,1", w);
        mr_expect_near(mr_run(&r, 0), dims, dx);
        mr_expect_near(mr_output(&r, 1), "2,1,1", dw);
    }
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_that_only_a_run_knows),
        cmocka_unit_test(extents_that_change),
        cmocka_unit_test(extents_that_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
