/* Products of bfloat16 parts: the parts themselves, and how near the sums are to the exact ones. */
#include "failure_trace.h"
#include "base/cpu/isa.h"
#include "ops/kernels/gemm/bf16x3_product.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 32, MOST_DEPTH = 4608, PARTS = 3 };

static _Alignas(64) uint16_t a_parts[PARTS][PRN_BF16X3_STEPS][ROWS * PRN_BF16X3_DEPTH];
static _Alignas(64) uint16_t b_parts[PRN_BF16X3_PANEL];
static _Alignas(64) float a[ROWS * MOST_DEPTH], b[MOST_DEPTH * PRN_BF16X3_COLUMNS], c[ROWS * PRN_BF16X3_COLUMNS];

static uint64_t state = 1;

static double fraction(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2.0 * log(1.0 - fraction())) * cos(6.283185307179586 * fraction());
}

static float value(uint16_t part)
{
    const uint32_t bits = (uint32_t)part << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void skip_without_products(void)
{
    if (prn_isa_has(PRN_HAS_AMX)) assert_true(prn_bf16x3_there(PARTS)); /* else every test here would skip itself */
    if (!prn_bf16x3_there(1)) skip();
}

/* C = A B over `depth`, which need not be whole steps. */
static bool multiply(int64_t depth, int64_t rows, bool wide, int parts)
{
    prn_bf16x3_tiles tiles = {.a_part = PRN_BF16X3_STEPS * ROWS * PRN_BF16X3_DEPTH,
                              .b = b_parts,
                              .parts = parts,
                              .rows = rows,
                              .c = c,
                              .rs_c = PRN_BF16X3_COLUMNS,
                              .sums_row = PRN_BF16X3_COLUMNS,
                              .wide = wide};
    const int64_t most = PRN_BF16X3_STEPS * PRN_BF16X3_DEPTH;
    bool finite = true;
    prn_bf16x3_begin();
    for (int64_t k = 0; k < depth; k += most) {
        const int64_t count = depth - k < most ? depth - k : most;
        tiles.steps = 0;
        for (int64_t at = 0; at < count; at += PRN_BF16X3_DEPTH, tiles.steps++) {
            const int left = (int)(count - at < 16 ? count - at : 16), both = (int)(count - at < 32 ? count - at : 32);
            tiles.a[tiles.steps] = a_parts[0][tiles.steps];
            finite = prn_bf16x3_rows(a + k + at, left, both > 16 ? a + k + at + 16 : NULL, both - left, depth, rows,
                                     parts, a_parts[0][tiles.steps], tiles.a_part) &&
                     finite;
        }
        finite = prn_bf16x3_panel(b + k * PRN_BF16X3_COLUMNS, count, parts, b_parts) && finite;
        tiles.sums = k > 0 ? c : NULL;
        finite = prn_bf16x3_multiply(&tiles) && finite;
    }
    prn_bf16x3_end();
    return finite;
}

/* Three parts are the number, whatever its size; they are ordered by size. */
static void parts_add_up(void **unused)
{
    (void)unused;
    skip_without_products();
    for (int round = 0; round < 200; round++) {
        SCENARIO(round);
        float x[32];
        for (int i = 0; i < 32; i++) x[i] = (float)ldexp(normal(), (int)(fraction() * 160) - 60);
        assert_true(
            prn_bf16x3_rows(x, 16, x + 16, 16, 0, 1, PARTS, a_parts[0][0], PRN_BF16X3_STEPS * ROWS * PRN_BF16X3_DEPTH));
        for (int i = 0; i < 32; i++) {
            const int at = i < 16 ? 2 * i : 2 * (i - 16) + 1;
            const float one = value(a_parts[0][0][at]), two = value(a_parts[1][0][at]),
                        three = value(a_parts[2][0][at]);
            assert_true((double)one + (double)two + (double)three == (double)x[i]);
            assert_true(fabsf(two) <= fabsf(one) * 0x1p-7f && fabsf(three) <= fabsf(one) * 0x1p-15f);
        }
    }
}

/* Numbers above a center are split as if they were alone. */
static void parts_around_a_center(void **unused)
{
    enum { SOME = 7, STEP = 40, APART = 16 * PRN_BF16X3_DEPTH };
    static _Alignas(64) uint16_t got[2 * APART], want[2 * APART];
    const float center = 1.5f;
    float x[SOME * STEP], above[SOME * STEP];
    (void)unused;
    skip_without_products();
    for (int i = 0; i < SOME * STEP; i++) {
        x[i] = (float)(3.0 * normal());
        above[i] = x[i] - center;
    }
    for (int right = 0; right < 2; right++) {
        SCENARIO(right);
        assert_true(prn_bf16x3_rows_around(center, x, right ? x + 20 : NULL, STEP, SOME, got, APART));
        assert_true(prn_bf16x3_rows(above, 16, right ? above + 20 : NULL, right ? 16 : 0, STEP, SOME, 2, want, APART));
        for (int p = 0; p < 2; p++) {
            for (int i = 0; i < SOME * PRN_BF16X3_DEPTH; i++) { /* a missing right side has no known bound */
                if (right || i % 2 == 0) assert_int_equal(got[p * APART + i], want[p * APART + i]);
            }
        }
    }
    x[3 * STEP + 5] = -INFINITY;
    assert_false(prn_bf16x3_rows_around(center, x, x + 20, STEP, SOME, got, APART));
}

/* Small integers: every product and sum is exact, so any slip of an index shows. */
static void shapes_are_exact(void **unused)
{
    static const int64_t depths[] = {1, 15, 16, 17, 31, 32, 33, 100, 128, 129, 300};
    (void)unused;
    skip_without_products();
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
        SCENARIO(d);
        const int64_t depth = depths[d];
        for (int parts = 1; parts <= PARTS; parts++) {
            for (int64_t rows = 16; rows <= ROWS; rows += 16) {
                const bool wide = (d + (size_t)parts) % 2;
                for (int64_t i = 0; i < rows * depth; i++) a[i] = (float)((int)(fraction() * 17) - 8);
                for (int64_t i = 0; i < depth * PRN_BF16X3_COLUMNS; i++) b[i] = (float)((int)(fraction() * 17) - 8);
                assert_true(multiply(depth, rows, wide, parts));
                for (int64_t i = 0; i < rows; i++) {
                    for (int64_t j = 0; j < (wide ? 32 : 16); j++) {
                        double sum = 0;
                        for (int64_t k = 0; k < depth; k++)
                            sum += (double)a[i * depth + k] * (double)b[k * PRN_BF16X3_COLUMNS + j];
                        assert_true((double)c[i * PRN_BF16X3_COLUMNS + j] == sum);
                    }
                }
            }
        }
    }
}

enum { NORMAL, POSITIVE, CANCELLING, WIDE, KINDS };

static float draw(int kind, int64_t k)
{
    switch (kind) {
    case POSITIVE:
        return (float)fraction();
    case CANCELLING: /* pairs that leave little of each other */
        return (float)((k % 2 ? -1.0 : 1.0) * (1.0 + 1e-4 * normal()));
    case WIDE:
        return (float)ldexp(normal(), (int)(fraction() * 40) - 20);
    default:
        return (float)normal();
    }
}

typedef struct errors {
    double square, largest;
} errors;

static void add_error(errors *e, double difference)
{
    e->square += difference * difference;
    if (fabs(difference) > e->largest) e->largest = fabs(difference);
}

/* The contract of docs/internals/accuracy_contract.md: no larger an error than that of plain sums in float32, against
 * float64. Errors are in parts of the sum of the products' sizes, so that few large sums do not decide. */
static void errors_are_below_plain_sums(void **unused)
{
    static const int64_t depths[] = {32, 64, 147, 576, MOST_DEPTH};
    (void)unused;
    if (!prn_bf16x3_there(PARTS))
        skip(); /* on vectors each product rounds, and the test requires the first split term only */
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
        SCENARIO(d);
        for (int kind = 0; kind < KINDS; kind++) {
            errors ours = {0, 0}, plain = {0, 0};
            const int64_t depth = depths[d];
            for (int round = 0; round < 20; round++) {
                for (int64_t i = 0; i < ROWS * depth; i++) a[i] = draw(kind, i % depth);
                for (int64_t i = 0; i < depth * PRN_BF16X3_COLUMNS; i++)
                    b[i] = draw(kind == CANCELLING ? POSITIVE : kind, i / PRN_BF16X3_COLUMNS);
                assert_true(multiply(depth, ROWS, true, PARTS));
                for (int64_t i = 0; i < ROWS * PRN_BF16X3_COLUMNS; i++) {
                    double sum = 0, size = 0;
                    float rounded = 0;
                    for (int64_t k = 0; k < depth; k++) {
                        const float x = a[i / PRN_BF16X3_COLUMNS * depth + k],
                                    y = b[k * PRN_BF16X3_COLUMNS + i % PRN_BF16X3_COLUMNS];
                        sum += (double)x * (double)y;
                        size += fabs((double)x * (double)y);
                        rounded += x * y;
                    }
                    add_error(&ours, ((double)c[i] - sum) / size);
                    add_error(&plain, ((double)rounded - sum) / size);
                }
            }
            print_message("depth %lld, kind %d: rms %.2f, largest %.2f of plain sums'\n", (long long)depth, kind,
                          sqrt(ours.square / plain.square), ours.largest / plain.largest);
            assert_true(ours.square <= plain.square);
            assert_true(ours.largest <= plain.largest);
        }
    }
}

static void what_has_no_parts_is_told(void **unused)
{
    static const float wrong[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX};
    (void)unused;
    skip_without_products();
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        SCENARIO(w);
        for (int parts = 1; parts <= PARTS; parts++) {
            for (int64_t i = 0; i < 16 * 64; i++) a[i] = 1;
            for (int64_t i = 0; i < 64 * PRN_BF16X3_COLUMNS; i++) b[i] = 1;
            a[15 * 64 + 63] = wrong[w];
            assert_false(multiply(64, 16, true, parts));
            a[15 * 64 + 63] = 1;
            b[63 * PRN_BF16X3_COLUMNS + 31] = wrong[w];
            assert_false(multiply(64, 16, true, parts));
            b[63 * PRN_BF16X3_COLUMNS + 31] = -1;
            assert_true(multiply(64, 16, true, parts));
        }
    }
}

static void sums_are_stored(void **unused)
{
    float bias[16], added[3 * 16], y[3 * 16];
    (void)unused;
    skip_without_products();
    for (int i = 0; i < 3 * PRN_BF16X3_COLUMNS; i++) c[i] = (float)i;
    for (int i = 0; i < 16; i++) bias[i] = (float)(1000 * i);
    for (int i = 0; i < 3 * 16; i++) added[i] = (float)(-i);
    for (int with = 0; with < 2; with++) {
        SCENARIO(with);
        for (int bounded = 0; bounded < 2; bounded++) {
            prn_bf16x3_store(c, 3, bias, with ? added : NULL, bounded ? 500.0f : -INFINITY,
                             bounded ? 9000.0f : INFINITY, y);
            for (int i = 0; i < 3 * 16; i++) {
                const float sum = (float)(i / 16 * PRN_BF16X3_COLUMNS + i % 16 + 1000 * (i % 16) - (with ? i : 0));
                assert_true(y[i] == (!bounded ? sum : sum < 500 ? 500 : sum > 9000 ? 9000 : sum));
            }
        }
    }
    c[0] = NAN;
    prn_bf16x3_store(c, 1, bias, NULL, 0.0f, 6.0f, y);
    assert_true(isnan(y[0]) && y[1] == 6.0f);
    c[0] = -1;
    prn_bf16x3_store(c, 1, bias, NULL, 9.0f, 6.0f, y); /* bounds the wrong way round: the upper one is the last */
    assert_true(y[0] == 6.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_add_up),
                                       cmocka_unit_test(parts_around_a_center),
                                       cmocka_unit_test(shapes_are_exact),
                                       cmocka_unit_test(errors_are_below_plain_sums),
                                       cmocka_unit_test(what_has_no_parts_is_told),
                                       cmocka_unit_test(sums_are_stored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
