/* Sizes make a Resize's coordinates rational: every neighbour that is taken is the one of exact arithmetic. */
#include "failure_trace.h"
#include "ops/vision/resize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 24 };

/* floor(a / b) for b > 0. */
static int64_t floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/* The nearest neighbour of numerator / denominator. */
static int64_t nearest(prn_resize_rounding rounding, int64_t numerator, int64_t denominator)
{
    const int64_t below = floor_of(numerator, denominator), twice = 2 * (numerator - below * denominator);
    switch (rounding) {
    case PRN_RESIZE_FLOOR:
        return below;
    case PRN_RESIZE_CEIL:
        return twice ? below + 1 : below;
    case PRN_RESIZE_ROUND_PREFER_CEIL:
        return twice >= denominator ? below + 1 : below;
    default:
        return twice > denominator ? below + 1 : below;
    }
}

static void neighbours_are_exact(void **state)
{
    static const prn_resize_rounding roundings[] = {PRN_RESIZE_ROUND_PREFER_FLOOR, PRN_RESIZE_ROUND_PREFER_CEIL,
                                                    PRN_RESIZE_FLOOR, PRN_RESIZE_CEIL};
    static const prn_resize_coordinate coordinates[] = {PRN_RESIZE_HALF_PIXEL, PRN_RESIZE_PYTORCH_HALF_PIXEL,
                                                        PRN_RESIZE_ASYMMETRIC, PRN_RESIZE_ALIGN_CORNERS,
                                                        PRN_RESIZE_TF_HALF_PIXEL_FOR_NN};
    (void)state;
    for (size_t i = 0; i < MOST * MOST * 20; i++) {
        SCENARIO(i);
        const int64_t in = (int64_t)(i % MOST) + 1, out = (int64_t)(i / MOST % MOST) + 1;
        prn_resize resize = {.mode = PRN_RESIZE_NEAREST,
                             .coordinate = coordinates[i / (MOST * MOST) % 5],
                             .rounding = roundings[i / (MOST * MOST * 5)],
                             .rank = 1};
        resize.axis[0] = (prn_resize_axis){.in = in,
                                           .out = out,
                                           .scale = (float)out / (float)in,
                                           .length = (float)out,
                                           .end = 1,
                                           .rational = true,
                                           .same = in == out};
        for (int64_t x = 0; x < out; x++) {
            int64_t numerator = (2 * x + 1) * in - out, denominator = 2 * out;
            if (resize.coordinate == PRN_RESIZE_PYTORCH_HALF_PIXEL && out == 1) numerator = 0;
            if (resize.coordinate == PRN_RESIZE_ASYMMETRIC) numerator = 2 * x * in;
            if (resize.coordinate == PRN_RESIZE_TF_HALF_PIXEL_FOR_NN) numerator = (2 * x + 1) * in;
            if (resize.coordinate == PRN_RESIZE_ALIGN_CORNERS) {
                numerator = x * (in - 1);
                denominator = out > 1 ? out - 1 : 1;
            }
            int64_t wanted = nearest(resize.rounding, numerator, denominator);
            if (wanted < 0) wanted = 0;
            if (wanted >= in) wanted = in - 1;
            if (in == out) wanted = x; /* nothing is resized */
            assert_int_equal(prn_resize_taps_at(&resize, 0, x, NULL).index[0], wanted);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_are_exact)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
