/* Convolutions that end with two activations, every pair of them and the same one with two parameters, against the model as
 * it is written: libraries have mixed up the parameters of steps of one kind. */
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
                         activations[second].attributes, activations[first].op, activations[first].attributes, kernel, k,
                         (double)fused[k], (double)written[k]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_tap), cmocka_unit_test(nine_taps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
