/* The vector kernels of every instruction set of this processor, against libm in double: each map over a sweep of
 * all binades with subnormals, infinities and NaN; the same bits for an element at any position of a row; sums and
 * rows. */
#include "failure_trace.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, prn_vec_table, prn_vec_)
#define ADD(variant, needs, name)                                                                                      \
    if (prn_isa_has(needs)) out[count++] = &name##variant;

static int tables(const prn_vec_table *out[3])
{
    int count = 0;
    PRN_SIMD_VARIANTS(ADD, prn_vec_)
    return count;
}

/* ---- maps */

static double clamp(double x, double low, double high)
{
    return x < low ? low : (x > high ? high : x);
}

#define WANT(name, expression)                                                                                         \
    static double want_##name(double x, double a, double b)                                                            \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        (void)b;                                                                                                       \
        return expression;                                                                                             \
    }

WANT(copy, x)
WANT(affine, a *x + b)
WANT(relu, x < 0 ? 0 : x)
WANT(clip, clamp(x, a, b))
WANT(leaky, x < 0 ? a * x : x)
WANT(thresholded, x <= a ? 0 : x)
WANT(sigmoid, 1 / (1 + exp(-x)))
WANT(tanh, tanh(x))
WANT(exp, exp(x))
WANT(log, log(x))
WANT(erf, erf(x))
WANT(gelu_erf, x / 2 * (1 + erf(x * M_SQRT1_2)))
WANT(gelu_tanh, x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))))
WANT(silu, x / (1 + exp(-a * x)))
WANT(hard_sigmoid, clamp(a *x + b, 0, 1))
WANT(hard_swish, x *clamp(x / 6 + 0.5, 0, 1))
WANT(elu, x > 0 ? x : a * expm1(x))
WANT(selu, b *(x > 0 ? x : a * expm1(x)))
WANT(celu, x > 0 ? x : a * expm1(x / a))
WANT(softplus, isnan(x) ? x : fmax(x, 0) + log1p(exp(-fabs(x))))
WANT(softsign, x / (1 + fabs(x)))
WANT(mish, x *tanh(want_softplus(x, a, b)))
WANT(sqrt, sqrt(x))
WANT(pow_half, pow(x, 0.5))
WANT(reciprocal, 1 / x)
WANT(square, x *x)
WANT(cube, x *x *x)
WANT(abs, fabs(x))
WANT(neg, -x)
WANT(floor, floor(x))
WANT(ceil, ceil(x))
WANT(round, nearbyint(x))
WANT(sign, isnan(x) ? x : (double)((x > 0) - (x < 0)))

WANT(shrink, isnan(x) ? x : (x < -a ? x + b : (x > a ? x - b : 0)))
WANT(sin, sin(x))
WANT(cos, cos(x))
WANT(tan, tan(x))
WANT(asin, asin(x))
WANT(acos, acos(x))
WANT(atan, atan(x))

/* Error allowed: `ulp` units in the last place of the true value, plus `floor_per_x` |x|, where a map's own definition
 * cancels, plus `floor`, where float32 has no exponent left. */
typedef struct map_case {
    prn_map_id map;
    double (*want)(double x, double a, double b);
    float a, b;
    double ulp, floor_per_x, floor;
} map_case;

static const map_case map_cases[] = {
    {PRN_MAP_COPY, want_copy, 0, 0, 0, 0, 0},
    {PRN_MAP_AFFINE, want_affine, 0.75f, -2, 1, 1e-7, 0},
    {PRN_MAP_RELU, want_relu, 0, 0, 0, 0, 0},
    {PRN_MAP_CLIP, want_clip, -1.5f, 6, 0, 0, 0},
    {PRN_MAP_LEAKY_RELU, want_leaky, 0.01f, 0, 0.5, 0, 0},
    {PRN_MAP_THRESHOLDED_RELU, want_thresholded, 1.5f, 0, 0, 0, 0},
    {PRN_MAP_SIGMOID, want_sigmoid, 0, 0, 3, 0, 3e-38},
    {PRN_MAP_TANH, want_tanh, 0, 0, 2, 0, 0},
    {PRN_MAP_EXP, want_exp, 0, 0, 1.5, 0, 0},
    {PRN_MAP_LOG, want_log, 0, 0, 1.5, 0, 0},
    {PRN_MAP_ERF, want_erf, 0, 0, 2, 0, 0},
    {PRN_MAP_GELU_ERF, want_gelu_erf, 0, 0, 2, 1e-7, 0},
    {PRN_MAP_GELU_TANH, want_gelu_tanh, 0, 0, 2, 2e-7, 0},
    {PRN_MAP_SILU, want_silu, 1, 0, 3, 0, 3e-36},
    {PRN_MAP_SILU, want_silu, 2, 0, 3, 0, 3e-36},
    {PRN_MAP_HARD_SIGMOID, want_hard_sigmoid, 0.2f, 0.5f, 1, 0, 1e-7},
    {PRN_MAP_HARD_SWISH, want_hard_swish, 0, 0, 2, 1e-7, 0},
    {PRN_MAP_ELU, want_elu, 1.25f, 0, 2, 0, 0},
    {PRN_MAP_SELU, want_selu, 1.67326319f, 1.05070102f, 3, 0, 0},
    {PRN_MAP_CELU, want_celu, 2.5f, 0, 3, 0, 0},
    {PRN_MAP_SOFTPLUS, want_softplus, 0, 0, 2, 0, 0},
    {PRN_MAP_SOFTSIGN, want_softsign, 0, 0, 1.5, 0, 0},
    {PRN_MAP_MISH, want_mish, 0, 0, 4, 0, 1e-42},
    {PRN_MAP_SQRT, want_sqrt, 0, 0, 0.5, 0, 0},
    {PRN_MAP_POW_HALF, want_pow_half, 0, 0, 0.5, 0, 0},
    {PRN_MAP_RECIPROCAL, want_reciprocal, 0, 0, 0.5, 0, 0},
    {PRN_MAP_SQUARE, want_square, 0, 0, 0.5, 0, 0},
    {PRN_MAP_CUBE, want_cube, 0, 0, 1.5, 1e-38, 0},
    {PRN_MAP_ABS, want_abs, 0, 0, 0, 0, 0},
    {PRN_MAP_NEG, want_neg, 0, 0, 0, 0, 0},
    {PRN_MAP_FLOOR, want_floor, 0, 0, 0, 0, 0},
    {PRN_MAP_CEIL, want_ceil, 0, 0, 0, 0, 0},
    {PRN_MAP_ROUND, want_round, 0, 0, 0, 0, 0},
    {PRN_MAP_SIGN, want_sign, 0, 0, 0, 0, 0},
    {PRN_MAP_SHRINK, want_shrink, 0.5f, 0.25f, 0.5, 0, 0},
    {PRN_MAP_SIN, want_sin, 0, 0, 0.51, 0, 0},
    {PRN_MAP_COS, want_cos, 0, 0, 0.51, 0, 0},
    {PRN_MAP_TAN, want_tan, 0, 0, 0.51, 0, 0},
    {PRN_MAP_ASIN, want_asin, 0, 0, 0.51, 0, 0},
    {PRN_MAP_ACOS, want_acos, 0, 0, 0.51, 0, 0},
    {PRN_MAP_ATAN, want_atan, 0, 0, 0.51, 0, 0},
};

static double ulp_of(double x)
{
    int exponent;
    if (x == 0.0) return ldexp(1, -149);
    frexp(x, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static bool close_enough(const map_case *test, float x, float got)
{
    const double want = test->want((double)x, (double)test->a, (double)test->b);
    const float rounded = (float)want;
    if (isnan(want)) return isnan(got);
    if (isinf(rounded) || isinf(got)) return got == rounded;
    const double size = isinf(x) ? 0.0 : fabs((double)x);
    return fabs((double)got - want) <= (test->ulp + 1e-9) * ulp_of(want) + test->floor_per_x * size + test->floor;
}

enum { SWEEP_STEP = 12289, SWEEP = (int)(UINT32_MAX / SWEEP_STEP), FINE = 1 << 17, SPECIAL = 20 };

/* Every binade of both signs, a fine grid over [-16, 16), and the values where something happens. */
static float *sweep(int64_t *count)
{
    static const float special[SPECIAL] = {0.0f,    -0.0f,    INFINITY,   -INFINITY,   NAN,        FLT_MIN, -FLT_MIN,
                                           FLT_MAX, -FLT_MAX, 1e-45f,     -1e-45f,     0.5f,       -0.5f,   1.5f,
                                           -1.5f,   2.5f,     8388608.0f, -8388609.0f, 4194304.5f, 1.0f};
    float *x = malloc((SWEEP + FINE + SPECIAL) * sizeof *x);
    assert_non_null(x);
    int64_t n = 0;
    for (uint32_t i = 0; i < SWEEP; i++) {
        const uint32_t bits = i * SWEEP_STEP;
        memcpy(&x[n++], &bits, sizeof bits);
    }
    for (int i = 0; i < FINE; i++) x[n++] = (float)(i - FINE / 2) * (32.0f / FINE) + 1e-4f;
    for (int i = 0; i < SPECIAL; i++) x[n++] = special[i];
    *count = n;
    return x;
}

static void maps_are_accurate(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    int64_t n;
    float *x = sweep(&n), *y = malloc((size_t)n * sizeof *y);
    assert_non_null(y);
    bool covered[PRN_MAP_COUNT] = {false};
    for (size_t c = 0; c < sizeof map_cases / sizeof *map_cases; c++) {
        SCENARIO(c);
        const map_case *test = &map_cases[c];
        covered[test->map] = true;
        for (int t = 0; t < table_count; t++) {
            table[t]->map[test->map](y, x, n, test->a, test->b);
            for (int64_t i = 0; i < n; i++) {
                if (close_enough(test, x[i], y[i])) continue;
                fail_msg("map %d (%s) at %a: got %a, wanted %a", test->map, table[t]->name, (double)x[i], (double)y[i],
                         test->want((double)x[i], (double)test->a, (double)test->b));
            }
        }
    }
    for (int m = 0; m < PRN_MAP_COUNT; m++) assert_true(covered[m]);
    free(x);
    free(y);
}

enum { ROW = 100 };

/* Values around the branches of the polynomials, not the same in any two lanes. */
static void fill(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((float)(seed >> 8) / 16777216.0f - 0.5f) * 12.0f;
    }
}

static void position_does_not_matter(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    float x[ROW], whole[ROW], part[ROW];
    fill(x, ROW, 1);
    for (int t = 0; t < table_count; t++) {
        SCENARIO(t);
        for (size_t c = 0; c < sizeof map_cases / sizeof *map_cases; c++) {
            SCENARIO(c);
            const map_case *test = &map_cases[c];
            table[t]->map[test->map](whole, x, ROW, test->a, test->b);
            for (int begin = 0; begin < ROW; begin += 7) {
                for (int n = 0; n <= 37 && begin + n < ROW; n++) {
                    part[n] = -77.0f;
                    table[t]->map[test->map](part, x + begin, n, test->a, test->b);
                    assert_memory_equal(part, whole + begin, (size_t)n * sizeof *part);
                    assert_true(part[n] == -77.0f);
                }
            }
        }
    }
}

/* ---- binary operators */

static float want_binary(prn_binary_id op, float a, float b)
{
    switch (op) {
    case PRN_BINARY_ADD:
        return a + b;
    case PRN_BINARY_SUB:
        return a - b;
    case PRN_BINARY_MUL:
        return a * b;
    case PRN_BINARY_DIV:
        return a / b;
    case PRN_BINARY_MIN:
        return isnan(a) || a < b ? a : b;
    case PRN_BINARY_MAX:
        return isnan(a) || a > b ? a : b;
    case PRN_BINARY_PRELU:
        return a < 0.0f ? a * b : a;
    case PRN_BINARY_POW:
        return (float)pow((double)a, (double)b);
    case PRN_BINARY_COUNT:
        break;
    }
    return NAN;
}

static void expect_binary(prn_binary_id op, float got, float a, float b)
{
    const float want = want_binary(op, a, b);
    if (isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want)) return;
    if (op == PRN_BINARY_POW && fabs((double)got - (double)want) <= ulp_of((double)want)) return;
    fail_msg("operator %d on %a and %a: got %a, wanted %a", op, (double)a, (double)b, (double)got, (double)want);
}

static void binaries_are_exact(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    float a[ROW], b[ROW], y[ROW];
    fill(a, ROW, 2);
    fill(b, ROW, 3);
    a[3] = NAN;
    b[9] = NAN;
    a[17] = INFINITY;
    b[17] = INFINITY;
    b[21] = 0.0f;
    for (int t = 0; t < table_count; t++) {
        SCENARIO(t);
        for (int k = 0; k < PRN_BINARY_COUNT; k++) {
            const prn_binary_id op = (prn_binary_id)k;
            const prn_vec_table *vec = table[t];
            for (int n = 0; n <= ROW; n += 3) {
                vec->vv[op](y, a, b, n);
                for (int i = 0; i < n; i++) expect_binary(op, y[i], a[i], b[i]);
                vec->vs[op](y, a, b[5], n);
                for (int i = 0; i < n; i++) expect_binary(op, y[i], a[i], b[5]);
                vec->sv[op](y, a[5], b, n);
                for (int i = 0; i < n; i++) expect_binary(op, y[i], a[5], b[i]);
                for (int period = 1; period < 20; period += 3) {
                    const int phase = n % period;
                    vec->vr[op](y, a, b, n, period, phase);
                    for (int i = 0; i < n; i++) expect_binary(op, y[i], a[i], b[(phase + i) % period]);
                    vec->rv[op](y, a, b, n, period, phase);
                    for (int i = 0; i < n; i++) expect_binary(op, y[i], a[(phase + i) % period], b[i]);
                }
            }
        }
    }
}

/* Every pair of the numbers that powers treat specially. */
static void powers_agree(void **state)
{
    (void)state;
    static const float numbers[] = {0.0f,   1.0f,   2.0f,        3.0f,        0.5f,        2.5f,    1.0f / 3.0f,
                                    1e-45f, 1e-38f, 16777215.0f, 16777216.0f, 33554434.0f, FLT_MAX, FLT_MIN,
                                    127.0f, 128.5f, 149.0f,      INFINITY,    NAN};
    enum { COUNT = 2 * sizeof numbers / sizeof *numbers };
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    float a[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) a[i] = i % 2 ? -numbers[i / 2] : numbers[i / 2];
    for (int t = 0; t < table_count; t++) {
        SCENARIO(t);
        for (int k = 0; k < COUNT; k++) {
            table[t]->vs[PRN_BINARY_POW](y, a, a[k], COUNT);
            for (int i = 0; i < COUNT; i++) expect_binary(PRN_BINARY_POW, y[i], a[i], a[k]);
        }
    }
}

/* ---- sums and rows */

static void expect_near(double got, double want, double tolerance)
{
    if (fabs(got - want) <= tolerance) return;
    fail_msg("got %.9g, wanted %.9g within %g", got, want, tolerance);
}

enum { LONG_ROW = 9001 };

static void sums_agree(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    static float a[LONG_ROW], b[LONG_ROW];
    static const int lengths[] = {0, 1, 3, 8, 17, 64, 100, 4096, 4097, LONG_ROW};
    fill(a, LONG_ROW, 4);
    fill(b, LONG_ROW, 5);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        SCENARIO(l);
        const int n = lengths[l];
        double sum = 0, squares = 0, absolutes = 0, dot = 0, high = -INFINITY, low = INFINITY;
        for (int i = 0; i < n; i++) {
            const double x = (double)a[i];
            sum += x;
            squares += x * x;
            absolutes += fabs(x);
            dot += x * (double)b[i];
            high = fmax(high, x);
            low = fmin(low, x);
        }
        for (int t = 0; t < table_count; t++) {
            const prn_vec_table *vec = table[t];
            expect_near(vec->sum(a, n), sum, 1e-6 * absolutes);
            expect_near(vec->sum_squares(a, n), squares, 1e-6 * squares);
            expect_near(vec->sum_abs(a, n), absolutes, 1e-6 * absolutes);
            expect_near(vec->dot(a, b, n), dot, 1e-6 * 6 * absolutes);
            assert_true((double)vec->max(a, n) == high && (double)vec->min(a, n) == low);
            if (n == 0) continue;
            double mean, variance;
            vec->mean_variance(&mean, &variance, a, n);
            expect_near(mean, sum / n, 1e-6 * absolutes / n);
            expect_near(variance, squares / n - sum / n * (sum / n), 2e-6 * squares / n);
        }
    }
}

static void extremes_keep_nan(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    float x[ROW];
    for (int at = 0; at < ROW; at += 9) {
        SCENARIO(at);
        fill(x, ROW, 6);
        x[at] = NAN;
        for (int t = 0; t < table_count; t++) {
            assert_true(isnan(table[t]->max(x, ROW)));
            assert_true(isnan(table[t]->min(x, ROW)));
        }
    }
}

static void softmax_rows_agree(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    static float x[LONG_ROW], y[LONG_ROW];
    static const int lengths[] = {1, 2, 7, 10, 33, 128, 1000, LONG_ROW};
    fill(x, LONG_ROW, 7);
    x[1] = 3000.0f;
    for (int pass = 0; pass < 2; pass++, x[1] = 0.5f) {
        SCENARIO(pass);
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            SCENARIO(l);
            const int n = lengths[l];
            double top = -INFINITY, sum = 0;
            for (int i = 0; i < n; i++) top = fmax(top, (double)x[i]);
            for (int i = 0; i < n; i++) sum += exp((double)x[i] - top);
            for (int t = 0; t < table_count; t++) {
                table[t]->softmax(y, x, n);
                for (int i = 0; i < n; i++) {
                    const double want = exp((double)x[i] - top) / sum;
                    expect_near((double)y[i], want, 1e-6 * want + 1e-44);
                }
                table[t]->log_softmax(y, x, n);
                for (int i = 0; i < n; i++) {
                    const double want = (double)x[i] - top - log(sum);
                    expect_near((double)y[i], want, 1e-6 * (fabs((double)x[i] - top) + 1));
                }
            }
        }
    }
}

/* Scaled and masked in the same pass; a row that is masked throughout, or holds NaN, is NaN. */
static void masked_softmax_rows_agree(void **state)
{
    (void)state;
    enum { ROWS = 3, APART = ROW + 5 };
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    static float x[ROWS * APART], mask[ROW + ROWS], y[ROWS * APART];
    float factors[ROWS];
    fill(x, ROWS * APART, 11);
    for (int i = 0; i < ROW + ROWS; i++) mask[i] = i % 5 == 3 ? -INFINITY : (float)(i % 3) - 1.0f;
    for (int n = 1; n <= ROW; n += n < 40 ? 1 : 17) {
        SCENARIO(n);
        for (int kind = 0; kind < 6; kind++) {
            const float scales[] = {1.0f, 0.125f, -0.5f}, scale = scales[kind / 2], *added = kind & 1 ? mask : NULL;
            for (int t = 0; t < table_count; t++) {
                memcpy(y, x, sizeof y);
                table[t]->softmax_unscaled(y, APART, added, 1, scale, n, ROWS, factors);
                for (int r = 0; r < ROWS; r++) {
                    double want[ROW], top = -INFINITY, sum = 0;
                    for (int i = 0; i < n; i++)
                        top = fmax(top, want[i] = (double)x[r * APART + i] * (double)scale +
                                                  (double)(added ? added[r + i] : 0));
                    for (int i = 0; i < n; i++) sum += want[i] = exp(want[i] - top);
                    if (isnan(sum)) continue; /* masked throughout */
                    for (int i = 0; i < n; i++)
                        expect_near((double)y[r * APART + i] * (double)factors[r], want[i] / sum,
                                    2e-6 * want[i] / sum + 1e-44);
                    for (int i = n; i < APART; i++) assert_true(y[r * APART + i] == x[r * APART + i]);
                }
            }
        }
        for (int t = 0; t < table_count; t++) {
            float holed[ROW];
            for (int i = 0; i < n; i++) holed[i] = -INFINITY;
            memcpy(y, x, sizeof y);
            table[t]->softmax_unscaled(y, 0, holed, 0, 1.0f, n, 1, factors);
            for (int i = 0; i < n; i++) assert_true(isnan(y[i] * factors[0]));
            memcpy(y, x, sizeof y);
            y[n / 2] = NAN;
            table[t]->softmax_unscaled(y, 0, NULL, 0, 0.5f, n, 1, factors);
            assert_true(isnan(factors[0]));
        }
    }
}

/* The largest of a row weighs 1 however large the scores are. */
static void huge_scores_are_weighed(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    for (int t = 0; t < table_count; t++) {
        SCENARIO(t);
        for (float size = 1e6f; size < 1e30f; size *= 7.3f) {
            float x[37], factor;
            for (int i = 0; i < 37; i++) x[i] = size * (float)(i % 5 + 1) / 5.0f;
            table[t]->softmax_unscaled(x, 0, NULL, 0, 0.3f, 37, 1, &factor);
            for (int i = 0; i < 37; i++) assert_true(x[i] == (i % 5 == 4 ? 1.0f : 0.0f));
            assert_true(factor == 1.0f / 7.0f);
        }
    }
}

static void scaled_rows_tell_whether_they_are_finite(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    static const float others[] = {INFINITY, -INFINITY, NAN, 3e38f};
    for (int t = 0; t < table_count; t++) {
        SCENARIO(t);
        for (int n = 1; n < 70; n++) {
            float x[70];
            for (int i = 0; i < 70; i++) x[i] = (float)i;
            assert_true(table[t]->scale_finite(x, 2.0f, n));
            for (int i = 0; i < 70; i++) assert_true(x[i] == (float)(i < n ? 2 * i : i));
            for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
                SCENARIO(k);
                x[n / 2] = others[k];
                assert_false(table[t]->scale_finite(x, 2.0f, n));
                x[n / 2] = 0.0f;
                for (int i = 0; i < n; i++) x[i] = 1.0f;
            }
        }
    }
}

static void normalised_rows_agree(void **state)
{
    (void)state;
    const prn_vec_table *table[3];
    const int table_count = tables(table);
    float x[ROW], scale[ROW], shift[ROW], y[ROW];
    fill(x, ROW, 8);
    fill(scale, ROW, 9);
    fill(shift, ROW, 10);
    for (int n = 1; n <= ROW; n += 9) {
        SCENARIO(n);
        double sum = 0, squares = 0, variance = 0;
        for (int i = 0; i < n; i++) sum += (double)x[i], squares += (double)x[i] * (double)x[i];
        for (int i = 0; i < n; i++) variance += ((double)x[i] - sum / n) * ((double)x[i] - sum / n);
        const double inverse = 1 / sqrt(variance / n + 1e-3), rms = 1 / sqrt(squares / n + 1e-3);
        for (int t = 0; t < table_count; t++) {
            float mean, deviation;
            table[t]->layer_norm(y, x, scale, shift, n, 1e-3f, &mean, &deviation);
            expect_near((double)mean, sum / n, 1e-6);
            expect_near((double)deviation, inverse, 2e-6 * inverse);
            for (int i = 0; i < n; i++) {
                const double want = ((double)x[i] - sum / n) * inverse * (double)scale[i] + (double)shift[i];
                expect_near((double)y[i], want, 2e-5);
            }
            table[t]->layer_norm(y, x, NULL, NULL, n, 1e-3f, NULL, NULL);
            for (int i = 0; i < n; i++) expect_near((double)y[i], ((double)x[i] - sum / n) * inverse, 2e-5);
            table[t]->rms_norm(y, x, scale, n, 1e-3f);
            for (int i = 0; i < n; i++) expect_near((double)y[i], (double)x[i] * rms * (double)scale[i], 2e-5);
            table[t]->scale_shift_rows(y, x, scale, shift, n / 4, 4);
            for (int i = 0; i < n / 4 * 4; i++) {
                expect_near((double)y[i], (double)x[i] * (double)scale[i % 4] + (double)shift[i % 4], 1e-5);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_are_accurate),
        cmocka_unit_test(position_does_not_matter),
        cmocka_unit_test(binaries_are_exact),
        cmocka_unit_test(powers_agree),
        cmocka_unit_test(sums_agree),
        cmocka_unit_test(extremes_keep_nan),
        cmocka_unit_test(softmax_rows_agree),
        cmocka_unit_test(masked_softmax_rows_agree),
        cmocka_unit_test(huge_scores_are_weighed),
        cmocka_unit_test(scaled_rows_tell_whether_they_are_finite),
        cmocka_unit_test(normalised_rows_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
