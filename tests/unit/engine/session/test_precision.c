/* Bounds on a precision's results: their distance from float32's. */
#include "base/cpu/isa.h"
#include "ops/op.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { CHANNELS = 64, EXTENT = 64, UNITS = 96 };

static float x[CHANNELS * EXTENT * EXTENT], w[CHANNELS * CHANNELS * 9], product[EXTENT * UNITS];
static float out[3][CHANNELS * EXTENT * UNITS];

static void fill(float *data, int count, uint32_t seed)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static model_builder *build(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,64,64,64");
    mb_initializer(m, "w", PRONY_FLOAT32, "64,64,3,3", w);
    mb_initializer(m, "b", PRONY_FLOAT32, "64,96", product);
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "MatMul", "r b", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,64,64,96");
    return m;
}

static void run(const char *precision, float *to)
{
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.precision = precision;
    mr_open(&r, build());
    mr_set(&r, "x", PRONY_FLOAT32, "1,64,64,64", x);
    memcpy(to, mr_run(&r, 0)->data, sizeof out[0]);
    mr_close(&r);
}

/* The largest difference, in parts of the range of the first. */
static double distance(const float *a, const float *b)
{
    double largest = 0, low = (double)a[0], high = low;
    for (size_t i = 0; i < sizeof out[0] / sizeof *a; i++) {
        largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
        low = fmin(low, (double)a[i]);
        high = fmax(high, (double)a[i]);
    }
    return largest / (high - low);
}

static void results_are_as_near_as_was_said(void **state)
{
    (void)state;
    fill(x, CHANNELS * EXTENT * EXTENT, 1);
    fill(w, CHANNELS * CHANNELS * 9, 2);
    fill(product, EXTENT * UNITS, 3);
    run(NULL, out[0]);
    run("fast", out[1]);
    run("bf16", out[2]);
    const double fast = distance(out[0], out[1]), coarse = distance(out[0], out[2]);
    print_message("of the range: fast %.2g, bf16 %.2g\n", fast, coarse);
    assert_true(fast <= 2e-5); /* two operators, 1e-5 each */
    assert_true(coarse <= 1e-2);
}

/* The kernels of fp32-strict sum in one order; it is refused without fused multiply-add. */
static void strict_has_one_order(void **state)
{
    (void)state;
    static float strict[CHANNELS * EXTENT * UNITS];
    if (!prn_isa_has(PRN_HAS_FMA)) {
        model_run r = {0};
        r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
        r.options.precision = "fp32-strict";
        assert_int_equal(mr_try_open(&r, build()), PRONY_UNSUPPORTED);
        assert_non_null(strstr(r.error.message, "fused multiply-add"));
        mr_close(&r);
        return;
    }
    run("fp32-strict", strict);
    assert_true(distance(out[0], strict) <= 2e-6);
    for (const prn_kernel *k = prn_op_find("", "Conv", 13)->kernels; k->name; k++) {
        const bool admitted = !k->precisions || (k->precisions >> PRONY_PRECISION_FP32_STRICT & 1);
        if (strcmp(k->backend, "dnnl") == 0 || strstr(k->name, "winograd") || strstr(k->name, "amx"))
            assert_false(admitted);
        if (strstr(k->name, "direct") || strstr(k->name, "stem") || strstr(k->name, "depthwise")) assert_true(admitted);
    }
}

static void others_are_refused_by_name(void **state)
{
    (void)state;
    model_run r = {0};
    r.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    r.options.precision = "int3";
    assert_int_equal(mr_try_open(&r, build()), PRONY_UNSUPPORTED);
    assert_non_null(strstr(r.error.message, "'int3'"));
    assert_non_null(
        strstr(r.error.message,
               "fp32, fast, bf16, fp16, int8-weights, int4-weights, fp32-strict and int8; this processor accelerates"));
    mr_close(&r);
    r.options.precision = "int8"; /* of a model of floats */
    assert_int_equal(mr_try_open(&r, build()), PRONY_UNSUPPORTED);
    assert_non_null(strstr(r.error.message, "needs a quantized model"));
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_are_as_near_as_was_said),
                                       cmocka_unit_test(strict_has_one_order),
                                       cmocka_unit_test(others_are_refused_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
