/* Depthwise convolutions against sums in double, for rows of every width up to a few tiles. Tiles that begin or end
 * with a row leave out its columns of padding. */
#include "failure_trace.h"
#include "base/cpu/isa.h"
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { CHANNELS = 20, HEIGHT = 6, MOST_WIDTH = 90, MOST_KERNEL = 7 };

static float x[CHANNELS][HEIGHT][MOST_WIDTH], w[CHANNELS][MOST_KERNEL * MOST_KERNEL],
    line[CHANNELS * HEIGHT * MOST_WIDTH];

typedef struct problem {
    int width, kernel, stride;
    const char *precision;
} problem;

static double expected(const problem *p, int channel, int row, int place)
{
    double sum = 0;
    for (int t = 0; t < p->kernel * p->kernel; t++) {
        const int y = row * p->stride - p->kernel / 2 + t / p->kernel,
                  at = place * p->stride - p->kernel / 2 + t % p->kernel;
        if (y >= 0 && y < HEIGHT && at >= 0 && at < p->width) sum += (double)x[channel][y][at] * (double)w[channel][t];
    }
    return sum;
}

static void check(const problem *p)
{
    char dims[64], weights[64], outputs[64], attributes[128];
    const int columns = (p->width - 1) / p->stride + 1, rows = (HEIGHT - 1) / p->stride + 1, pad = p->kernel / 2;
    static float packed[CHANNELS * MOST_KERNEL * MOST_KERNEL];
    for (int c = 0; c < CHANNELS; c++) {
        for (int i = 0; i < HEIGHT * p->width; i++) line[c * HEIGHT * p->width + i] = x[c][i / p->width][i % p->width];
        for (int t = 0; t < p->kernel * p->kernel; t++) packed[c * p->kernel * p->kernel + t] = w[c][t];
    }
    snprintf(dims, sizeof dims, "1,%d,%d,%d", CHANNELS, HEIGHT, p->width);
    snprintf(weights, sizeof weights, "%d,1,%d,%d", CHANNELS, p->kernel, p->kernel);
    snprintf(outputs, sizeof outputs, "1,%d,%d,%d", CHANNELS, rows, columns);
    snprintf(attributes, sizeof attributes, "group=%d pads=[%d,%d,%d,%d] strides=[%d,%d]", CHANNELS, pad, pad, pad, pad,
             p->stride, p->stride);
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, dims);
    mb_initializer(m, "w", PRONY_FLOAT32, weights, packed);
    mb_node(m, "Conv", "x w", "y", attributes);
    mb_output(m, "y", PRONY_FLOAT32, outputs);
    model_run run = {0};
    run.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    run.options.precision = p->precision;
    mr_open(&run, m);
    mr_set(&run, "x", PRONY_FLOAT32, dims, line);
    const float *y = mr_run(&run, 0)->data;
    for (int i = 0; i < CHANNELS * rows * columns; i++) {
        const double want = expected(p, i / (rows * columns), i / columns % rows, i % columns);
        if (!(fabs((double)y[i] - want) <= 1e-5))
            fail_msg("width %d, kernel %d, stride %d, %s: element %d is %g, not %g", p->width, p->kernel, p->stride,
                     p->precision, i, (double)y[i], want);
    }
    mr_close(&run);
}

static void fill_with(float *to, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

static void rows_of_every_width_end_right(void **state)
{
    (void)state;
    fill_with(&x[0][0][0], sizeof x / sizeof(float), 5);
    fill_with(&w[0][0], sizeof w / sizeof(float), 6);
    for (int kernel = 3; kernel <= MOST_KERNEL; kernel += 2) {
        SCENARIO(kernel);
        for (int stride = 1; stride <= 2; stride++) {
            for (int width = 1; width <= MOST_WIDTH; width += width < 44 ? 1 : 7) {
                check(&(problem){width, kernel, stride, "fp32"});
                if (!prn_isa_has(PRN_HAS_FMA)) continue; /* fp32-strict is refused without fused multiply-add */
                check(&(problem){width, kernel, stride, "fp32-strict"});
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_every_width_end_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
