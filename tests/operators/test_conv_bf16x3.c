/* Convolutions whose input has numbers without split terms (ops/kernels/gemm/bf16x3_product.h): infinities, NaN, the
 * largest numbers. */
#include "failure_trace.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "tests/support/model_run.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { HEIGHT = 20, WIDTH = 19, MOST_IN = 72, MOST_WEIGHTS = 64 * 48 * 25 };

typedef struct problem {
    const char *precision, *input, *weights, *output, *pads;
    int in, out, kernel, parts;
} problem;

static const problem problems[] = {
    {"fast", "1,48,20,19", "64,48,3,3", "1,64,20,19", "pads=[1,1,1,1]", 48, 64, 3, 2},
    /* as float32 products of several taps are Winograd's, and others need full tiles */
    {"fp32", "1,64,20,19", "160,64,1,1", "1,160,20,19", "pads=[0,0,0,0]", 64, 160, 1, 3},
    /* channels that end within a block */
    {"fp32", "1,72,20,19", "100,72,1,1", "1,100,20,19", "pads=[0,0,0,0]", 72, 100, 1, 3},
    {"bf16", "1,64,20,19", "160,64,1,1", "1,160,20,19", "pads=[0,0,0,0]", 64, 160, 1, 1},
    {"bf16", "1,48,20,19", "64,48,5,5", "1,64,20,19", "pads=[2,2,2,2]", 48, 64, 5, 1},
};

static float x[MOST_IN][HEIGHT][WIDTH], w[MOST_WEIGHTS];

static float *weight_at(const problem *p, int k, int c, int tap)
{
    return &w[(k * p->in + c) * p->kernel * p->kernel + tap];
}

static double expected(const problem *p, int k, int row, int place)
{
    double sum = 0;
    for (int c = 0; c < p->in; c++) {
        for (int t = 0; t < p->kernel * p->kernel; t++) {
            const int y = row - p->kernel / 2 + t / p->kernel, at = place - p->kernel / 2 + t % p->kernel;
            if (y >= 0 && y < HEIGHT && at >= 0 && at < WIDTH)
                sum += (double)x[c][y][at] * (double)*weight_at(p, k, c, t);
        }
    }
    return sum;
}

/* Multiples of a step that one split term represents exactly. */
static void fill_with(float *to, size_t count, uint32_t seed, float steps)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = floorf((float)(seed >> 8) / 16777216.0f * steps) / steps - 0.5f;
    }
}

static void check(const problem *p)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, p->input);
    mb_initializer(m, "w", PRONY_FLOAT32, p->weights, w);
    mb_node(m, "Conv", "x w", "y", p->pads);
    mb_output(m, "y", PRONY_FLOAT32, p->output);
    model_run run = {0};
    run.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    run.options.precision = p->precision;
    mr_open(&run, m);
    mr_set(&run, "x", PRONY_FLOAT32, p->input, x);
    const float *y = mr_run(&run, 0)->data;
    for (int i = 0; i < p->out * HEIGHT * WIDTH; i++) {
        const double want = expected(p, i / (HEIGHT * WIDTH), i / WIDTH % HEIGHT, i % WIDTH);
        if (isnan(want))
            assert_true(isnan(y[i]));
        else if (fabs(want) > (double)FLT_MAX)
            assert_true(isinf(y[i]) && (y[i] > 0) == (want > 0));
        else
            assert_true(fabs((double)y[i] - want) <= (p->parts > 1 ? 1e-4 : 0x1p-9) * (1.0 + fabs(want)));
    }
    mr_close(&run);
}

static void what_has_no_parts_is_summed_plainly(void **state)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f};
    (void)state;
    if (!prn_bf16x3_there(1)) skip();
    for (const problem *p = problems; p < problems + sizeof problems / sizeof *problems; p++) {
        const float steps = p->parts > 1 ? 16777216.0f : 128.0f;
        if (!prn_bf16x3_there(p->parts)) continue; /* other kernels may spread an infinity over their tile */
        fill_with(&x[0][0][0], sizeof x / sizeof(float), 7, steps);
        fill_with(w, sizeof w / sizeof *w, 8, steps);
        check(p);
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            SCENARIO(i);
            float *value = &x[p->in - 1][HEIGHT / 2][WIDTH - 1], former = *value;
            *value = odd[i];
            check(p);
            *value = former;
            float *weight = weight_at(p, p->out - 1, 3, p->kernel * p->kernel / 2);
            former = *weight;
            *weight = odd[i];
            check(p);
            *weight = former;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_no_parts_is_summed_plainly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
