/* Convolutions whose input holds what has no parts (ops/loops/split_product.h): infinities, NaN, the largest numbers. */
#include "ops/loops/split_product.h"
#include "tests/support/model_run.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { IN = 48, OUT = 64, HEIGHT = 20, WIDTH = 19, KERNEL = 3 };

static float x[IN][HEIGHT][WIDTH], w[OUT][IN][KERNEL][KERNEL];

static double expected(int k, int row, int place)
{
    double sum = 0;
    for (int c = 0; c < IN; c++) {
        for (int t = 0; t < KERNEL * KERNEL; t++) {
            const int y = row - 1 + t / KERNEL, at = place - 1 + t % KERNEL;
            if (y >= 0 && y < HEIGHT && at >= 0 && at < WIDTH) sum += (double)x[c][y][at] * (double)w[k][c][t / KERNEL][t % KERNEL];
        }
    }
    return sum;
}

static void fill(void)
{
    uint32_t seed = 7;
    for (int i = 0; i < IN * HEIGHT * WIDTH + OUT * IN * KERNEL * KERNEL; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float value = (float)(seed >> 8) / 16777216.0f - 0.5f;
        if (i < IN * HEIGHT * WIDTH)
            (&x[0][0][0])[i] = value;
        else
            (&w[0][0][0][0])[i - IN * HEIGHT * WIDTH] = value;
    }
}

static void check(void)
{
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,48,20,19");
    mb_initializer(m, "w", PRONY_FLOAT32, "64,48,3,3", w);
    mb_node(m, "Conv", "x w", "y", "pads=[1,1,1,1]");
    mb_output(m, "y", PRONY_FLOAT32, "1,64,20,19");
    model_run run = {0};
    run.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    run.options.precision = "fast"; /* as float32 other kernels are faster */
    mr_open(&run, m);
    mr_set(&run, "x", PRONY_FLOAT32, "1,48,20,19", x);
    const float *y = mr_run(&run, 0)->data;
    for (int i = 0; i < OUT * HEIGHT * WIDTH; i++) {
        const double want = expected(i / (HEIGHT * WIDTH), i / WIDTH % HEIGHT, i % WIDTH);
        if (isnan(want))
            assert_true(isnan(y[i]));
        else if (fabs(want) > (double)FLT_MAX)
            assert_true(isinf(y[i]) && (y[i] > 0) == (want > 0));
        else
            assert_true(fabs((double)y[i] - want) <= 1e-4 * (1.0 + fabs(want)));
    }
    mr_close(&run);
}

static void what_has_no_parts_is_summed_plainly(void **state)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f};
    (void)state;
    if (!prn_split_there()) skip(); /* the kernels in its place may spread an infinity over their tile */
    fill();
    check();
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const float former = x[IN - 1][HEIGHT / 2][WIDTH - 1];
        x[IN - 1][HEIGHT / 2][WIDTH - 1] = odd[i];
        check();
        x[IN - 1][HEIGHT / 2][WIDTH - 1] = former;
        const float weight = w[OUT - 1][3][1][2];
        w[OUT - 1][3][1][2] = odd[i];
        check();
        w[OUT - 1][3][1][2] = weight;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_no_parts_is_summed_plainly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
