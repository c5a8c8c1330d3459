/* Convolutions that end with two activations, every pair of them and the same one with two parameters, against the
 * model as written: libraries have mixed up the parameters of post-operations of one kind. */
#include "failure_trace.h"
#include "base/cpu/isa.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *op, *attributes;
} activations[] = {{"Relu", ""},
                   {"LeakyRelu", "alpha=0.2"},
                   {"LeakyRelu", "alpha=0.7"},
                   {"Sigmoid", ""},
                   {"Tanh", ""},
                   {"HardSigmoid", "alpha=0.2 beta=0.5"},
                   {"HardSigmoid", "alpha=0.9 beta=0.1"},
                   {"HardSwish", ""},
                   {"Elu", "alpha=0.5"},
                   {"Elu", "alpha=1.5"}};
#define ACTIVATIONS (sizeof activations / sizeof *activations)

enum { IN = 23, OUT = 24, H = 4, W = 4, ELEMENTS = 2 * OUT * H * W };
static float x[2 * IN * H * W], w[OUT * IN * 3 * 3], b[OUT];

static void fill(float *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static void run(size_t first, size_t second, const char *kernel, const char *pads, bool no_rewrites, float *y)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "2,23,4,4");
    mb_initializer(m, "w", PRONY_FLOAT32, kernel, w);
    mb_initializer(m, "b", PRONY_FLOAT32, "24", b);
    mb_node(m, "Conv", "x w b", "c", pads);
    mb_node(m, activations[first].op, "c", "d", activations[first].attributes);
    mb_node(m, activations[second].op, "d", "y", activations[second].attributes);
    mb_output(m, "y", PRONY_FLOAT32, "2,24,4,4");
    model_run r = {.options = {.no_rewrites = no_rewrites}};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2,23,4,4", x);
    const float *got = mr_run(&r, 0)->data;
    for (size_t i = 0; i < ELEMENTS; i++) y[i] = got[i];
    mr_close(&r);
}

static void every_pair(const char *kernel, const char *pads)
{
    static float fused[ELEMENTS], written[ELEMENTS];
    fill(x, sizeof x / sizeof *x, 1);
    fill(w, sizeof w / sizeof *w, 2);
    fill(b, sizeof b / sizeof *b, 3);
    for (size_t i = 0; i < ACTIVATIONS * ACTIVATIONS; i++) {
        size_t first = i / ACTIVATIONS, second = i % ACTIVATIONS;
        run(first, second, kernel, pads, false, fused);
        run(first, second, kernel, pads, true, written);
        for (size_t k = 0; k < ELEMENTS; k++)
            if (!(fabsf(fused[k] - written[k]) <= 1e-5f * fmaxf(1, fabsf(written[k]))))
                fail_msg("%s(%s) behind %s(%s), weights %s: element %zu is %g, wanted %g", activations[second].op,
                         activations[second].attributes, activations[first].op, activations[first].attributes, kernel,
                         k, (double)fused[k], (double)written[k]);
    }
}

static void one_tap(void **state)
{
    (void)state;
    every_pair("24,23,1,1", "");
}

static void nine_taps(void **state)
{
    (void)state;
    every_pair("24,23,3,3", "pads=[1,1,1,1]");
}

/* ---- numbers that are not finite, and -0 */

/* One problem for each kernel of contractions, with each activation behind it. */
static const struct {
    const char *op, *x, *w, *attributes, *y;
    bool spreads; /* Winograd's tiles make NaN of all their outputs */
} problems[] = {
    {"Conv", "1,24,7,7", "24,24,1,1", "", "1,24,7,7", false},
    {"Conv", "1,32,9,9", "48,32,1,1", "strides=[2,2]", "1,48,5,5", false},
    {"Conv", "1,3,16,16", "32,3,3,3", "strides=[2,2] pads=[1,1,1,1]", "1,32,8,8", false},
    {"Conv", "1,24,7,7", "24,24,3,3", "pads=[1,1,1,1] strides=[2,2]", "1,24,4,4", false},
    {"Conv", "1,64,8,8", "64,64,3,3", "pads=[1,1,1,1]", "1,64,8,8", true},
    {"Conv", "1,32,9,9", "32,1,3,3", "group=32 pads=[1,1,1,1]", "1,32,9,9", false},
    {"Conv", "1,24,9,9", "24,1,5,5", "group=24 pads=[2,2,2,2] strides=[2,2]", "1,24,5,5", false},
    {"Conv", "1,64,6,6", "64,16,3,3", "group=4 pads=[1,1,1,1]", "1,64,6,6", false},
    {"Conv", "1,24,6,6", "36,6,3,3", "group=4 pads=[1,1,1,1]", "1,36,6,6", false},
    {"Conv", "1,16,30,30", "4,16,5,5", "pads=[2,2,2,2]", "1,4,30,30", false},
    {"ConvTranspose", "1,24,5,5", "24,24,3,3", "strides=[2,2]", "1,24,11,11", false},
    {"ConvTranspose", "1,16,5,5", "16,1,3,3", "group=16 strides=[2,2]", "1,16,11,11", false},
    {"MatMul", "40,64", "64,48", "", "40,48", false},
    {"Gemm", "3,64", "64,48", "", "3,48", false},
};
static const struct {
    const char *op, *attributes;
} rectifiers[] = {{"Relu", ""},
                  {"Clip", "min=-0.25 max=0.5"},
                  {"LeakyRelu", "alpha=0.0"},
                  {"LeakyRelu", "alpha=0.2"},
                  {"Sigmoid", ""},
                  {"Tanh", ""},
                  {"HardSigmoid", "alpha=0.2 beta=0.5"},
                  {"HardSwish", ""},
                  {"Elu", "alpha=0.5"}};

static size_t elements(const char *dims)
{
    const prony_shape shape = mr_shape(dims);
    size_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= (size_t)shape.dim[i];
    return count;
}

static float *run_special(size_t problem, size_t rectifier, const float *from, const float *weights, bool bare)
{
    const bool clip = rectifiers[rectifier].op[0] == 'C';
    model_builder *m = mb_begin(clip ? 10 : 17); /* bounds of Clip were attributes then */
    mb_input(m, "x", PRONY_FLOAT32, problems[problem].x);
    mb_initializer(m, "w", PRONY_FLOAT32, problems[problem].w, weights);
    mb_node(m, problems[problem].op, "x w", "c", problems[problem].attributes);
    mb_node(m, rectifiers[rectifier].op, "c", "y", rectifiers[rectifier].attributes);
    mb_output(m, "y", PRONY_FLOAT32, problems[problem].y);
    model_run r = {.options = {.no_rewrites = bare}};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, problems[problem].x, from);
    const size_t count = elements(problems[problem].y);
    float *copy = malloc(count * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, mr_run(&r, 0)->data, count * sizeof *copy);
    mr_close(&r);
    return copy;
}

/* The same as for a separate activation operator: NaN stays, infinities become the activation's value. */
static void not_finite(void **state)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY, 3e38f, -0.0f};
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        SCENARIO_NAMED(i, problems[i].op);
        const size_t x_count = elements(problems[i].x), w_count = elements(problems[i].w),
                     y_count = elements(problems[i].y);
        float *from = malloc(x_count * sizeof *from), *weights = malloc(w_count * sizeof *weights);
        assert_true(from && weights);
        fill(weights, w_count, 2);
        for (size_t k = 0; k < (sizeof rectifiers / sizeof *rectifiers) * 5; k++) {
            fill(from, x_count, 1);
            from[x_count / 2] = specials[k % 5];
            float *fused = run_special(i, k / 5, from, weights, false),
                  *written = run_special(i, k / 5, from, weights, true);
            for (size_t e = 0; e < y_count; e++) {
                const bool same =
                    isnan(written[e])
                        ? isnan(fused[e])
                        : fabsf(fused[e] - written[e]) <= 1e-5f * fmaxf(1, fabsf(written[e])) || fused[e] == written[e];
                if (!same && !(problems[i].spreads && isnan(fused[e])))
                    fail_msg("%s of %s (%s), %s(%s), %g in x: element %zu is %g, wanted %g", problems[i].op,
                             problems[i].w, problems[i].attributes, rectifiers[k / 5].op, rectifiers[k / 5].attributes,
                             (double)specials[k % 5], e, (double)fused[e], (double)written[e]);
            }
            free(fused);
            free(written);
        }
        free(from);
        free(weights);
    }
}

/* A grouped convolution with an activation, at fp32-strict: `y` gets 4 x 8 elements. */
static void run_grouped(const char *activation, const float *x, const float *w, bool no_rewrites, float *y)
{
    model_builder *m = mb_begin(20);
    mb_input(m, "x", PRONY_FLOAT32, "1,24,7");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,12,3", w);
    mb_node(m, "Conv", "x w", "c", "group=2 pads=[2,1]");
    mb_node(m, activation, "c", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1,4,8");
    model_run r = {.options = {.no_rewrites = no_rewrites, .precision = "fp32-strict"}};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,24,7", x);
    memcpy(y, mr_run(&r, 0)->data, 32 * sizeof *y);
    mr_close(&r);
}

/* The C library's functions differ between its versions, so no kernel of fp32-strict may end with them. */
static void strict_activations_are_those_of_operators(void **state)
{
    (void)state;
    if (!prn_isa_has(PRN_HAS_FMA)) skip(); /* fp32-strict is refused there, which test_precision tests */
    static const char *const activations[] = {"Relu",        "LeakyRelu", "Sigmoid", "Tanh",
                                              "HardSigmoid", "HardSwish", "Gelu"};
    float x[24 * 7], w[4 * 12 * 3], fused[32], written[32];
    fill(x, 24 * 7, 1);
    fill(w, 4 * 12 * 3, 2);
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        SCENARIO(i);
        run_grouped(activations[i], x, w, false, fused);
        run_grouped(activations[i], x, w, true, written);
        if (memcmp(fused, written, sizeof fused) != 0) fail_msg("%s: other bits behind a convolution", activations[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_tap), cmocka_unit_test(nine_taps),
                                       cmocka_unit_test(not_finite),
                                       cmocka_unit_test(strict_activations_are_those_of_operators)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
