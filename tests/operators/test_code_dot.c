/* The loops of ops/loops/code_dot.h at every level that the processor has, against sums written out here: the same
 * bits, for every number of rows, for extremes of codes and weights, and for values on both sides of every bound. */
#include "base/isa.h"
#include "base/simd.h"
#include "ops/loops/code_dot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DECLARE(variant, needs, unused) extern const prn_code_dot prn_code_dot_##variant;
PRN_SIMD_DOT_VARIANTS(DECLARE, 0)

static const struct {
    const prn_code_dot *table;
    unsigned needs;
} levels[] = {
#define LEVEL(variant, needs, unused) {&prn_code_dot_##variant, needs},
    PRN_SIMD_DOT_VARIANTS(LEVEL, 0)};

enum { LEVELS = sizeof levels / sizeof levels[0], ROWS = PRN_CODE_ROWS, COLUMNS = PRN_CODE_COLUMNS };

static uint32_t seed = 1;

static uint8_t next_byte(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint8_t)(seed >> 24);
}

/* Extremes are as likely as all others together. */
static uint8_t next_code(void)
{
    static const uint8_t extremes[] = {0, 255, 127, 128};
    const uint8_t byte = next_byte();
    return byte & 1 ? extremes[byte / 2 % 4] : next_byte();
}

static void blocks_are_exact(void **state)
{
    (void)state;
    enum { DEPTH = 320, ROW = DEPTH + 64 };
    _Alignas(64) static uint8_t a[ROWS * ROW];
    _Alignas(64) static int8_t b[DEPTH * COLUMNS];
    _Alignas(64) int32_t sums[ROWS * COLUMNS], wanted[ROWS * COLUMNS];
    for (size_t level = 0; level < LEVELS; level++) {
        if (!prn_isa_has(levels[level].needs)) continue;
        const prn_code_dot *dot = levels[level].table;
        for (int64_t trial = 0; trial < 4 * ROWS; trial++) {
            const bool narrow = trial >= 3 * ROWS; /* then neighbours' sums are at most 128 */
            const int64_t rows = trial % ROWS + 1, depth = trial % 4 ? trial % 5 * 64 + 64 : 4 + trial % 77 * 4;
            const bool add = trial >= 2 * ROWS, all = trial < ROWS;
            for (size_t i = 0; i < sizeof a; i++) a[i] = all ? 255 : next_code();
            for (size_t i = 0; i < sizeof b; i++) b[i] = all ? -128 : (int8_t)next_code();
            for (size_t i = 0; i < sizeof b && narrow; i += 2) {
                b[i] = (int8_t)(trial % 2 ? next_byte() % 129 - 64 : -128);
                b[i + 1] = (int8_t)(trial % 2 ? next_byte() % 129 - 64 : next_byte() % 128);
            }
            for (int64_t k = depth; k < (depth + 63) / 64 * 64; k++) {
                for (int64_t j = 0; j < COLUMNS; j++) b[k / 4 * 4 * COLUMNS + 4 * j + k % 4] = 0;
            }
            for (int64_t r = 0; r < ROWS; r++) {
                for (int64_t j = 0; j < COLUMNS; j++) {
                    uint32_t sum = add ? 0x7fffff00u : 0;
                    sums[r * COLUMNS + j] = (int32_t)sum;
                    for (int64_t k = 0; k < depth; k++)
                        sum += (uint32_t)(a[r * ROW + k] * b[k / 4 * 4 * COLUMNS + 4 * j + k % 4]);
                    wanted[r * COLUMNS + j] = (int32_t)sum;
                }
            }
            dot->begin();
            dot->block(a, ROW, rows, b, depth, sums, add, narrow);
            dot->end();
            assert_memory_equal(sums, wanted, (size_t)(rows * COLUMNS) * sizeof *sums);
        }
    }
}

static float rounded(float v, float low, float high)
{
    return rintf(v > low ? (v < high ? v : high) : low); /* NaN is low */
}

static uint8_t code_of(const prn_code_finish *f, int32_t sum, float scale, bool has_residual, uint8_t residual)
{
    volatile float v = (float)sum * scale, other = 0.0f;
    if (has_residual) {
        if (f->rounds) v = rounded(v, f->middle_low, f->middle_high);
        v = v * f->middle_factor;
        other = (float)((f->residual_signed ? (int8_t)residual : residual) - f->residual_zero) * f->residual_factor;
        v = v + other;
    }
    return (uint8_t)((int32_t)rounded(v, f->low, f->high) + f->zero);
}

/* Bounds and zero points of both kinds of codes. */
static void next_finish(prn_code_finish *f, int trial)
{
    f->y_signed = trial % 2;
    f->residual_signed = trial / 2 % 2;
    f->rounds = trial / 4 % 2;
    f->zero = f->y_signed ? (int8_t)next_code() : next_code();
    const int32_t low = f->y_signed ? -128 : 0, inset = trial / 8 % 2 ? next_byte() % 100 : 0;
    f->low = (float)(low + inset - f->zero);
    f->high = (float)(low + 255 - inset - f->zero);
    f->middle_low = (float)-(next_byte() % 128);
    f->middle_high = (float)(next_byte() % 128);
    f->middle_factor = (float)(1 + next_byte()) / 100.0f;
    f->residual_factor = (float)(1 + next_byte()) / 77.0f;
    f->residual_zero = f->residual_signed ? (int8_t)next_code() : next_code();
}

static void finishing_is_exact(void **state)
{
    (void)state;
    enum { WIDTH = 80 };
    int32_t sums[ROWS * COLUMNS], bias[WIDTH];
    float scale[WIDTH];
    uint8_t y[ROWS * WIDTH], residual[ROWS * WIDTH];
    for (int trial = 0; trial < 200; trial++) {
        prn_code_finish f = {.bias = bias, .scale = scale};
        const int64_t rows = trial % ROWS + 1, columns = trial % 3 ? trial % COLUMNS + 1 : COLUMNS, column = trial % 40;
        next_finish(&f, trial);
        for (int i = 0; i < WIDTH; i++) {
            bias[i] = next_code() - 100;
            scale[i] = trial % 17 == 0 ? INFINITY : trial % 5 ? 0.5f : (float)(1 + next_byte()) / 91.0f;
        }
        for (int i = 0; i < ROWS * COLUMNS; i++) sums[i] = next_byte() % 8 ? next_code() - 99 : (int32_t)0x7fffff00;
        for (int i = 0; i < ROWS * WIDTH; i++) residual[i] = next_code();
        for (size_t level = 0; level < LEVELS; level++) {
            if (!prn_isa_has(levels[level].needs)) continue;
            for (int with = 0; with < 2; with++) {
                memset(y, 7, sizeof y);
                levels[level].table->finish(&f, sums, rows, column, columns, y, WIDTH, with ? residual : NULL, WIDTH);
                for (int64_t r = 0; r < ROWS; r++) {
                    for (int64_t j = 0; j < WIDTH; j++) {
                        uint8_t wanted = 7;
                        if (r < rows && j < columns)
                            wanted =
                                code_of(&f, (int32_t)((uint32_t)sums[r * COLUMNS + j] + (uint32_t)bias[column + j]),
                                        scale[column + j], with, residual[r * WIDTH + j]);
                        assert_int_equal(y[r * WIDTH + j], wanted);
                    }
                }
            }
        }
    }
}

static void depthwise_is_exact(void **state)
{
    (void)state;
    enum { MOST = 200, TAPS = 24, POSITIONS = 3, STEP = 208 };
    static uint8_t x[TAPS][POSITIONS * STEP], y[POSITIONS * MOST + 1], residual[POSITIONS * MOST];
    static int8_t w[MOST * TAPS], packed[256 * TAPS];
    int32_t bias[MOST], ordered_bias[256];
    float scale[MOST], ordered_scale[256];
    const uint8_t *tap[TAPS];
    for (int trial = 0; trial < 60; trial++) {
        const int64_t channels = trial % 2 ? 1 + next_byte() % MOST : 64 * (1 + trial % 3);
        const int64_t taps = trial % 3 ? 9 : 1 + next_byte() % TAPS, padded = (taps + 3) / 4 * 4;
        const uint8_t flip = trial % 4 ? 0 : 128;
        for (int t = 0; t < TAPS; t++) {
            for (int i = 0; i < POSITIONS * STEP; i++) x[t][i] = next_code();
            tap[t] = x[t];
        }
        for (int i = 0; i < MOST * TAPS; i++) w[i] = (int8_t)next_code();
        for (int i = 0; i < MOST; i++) {
            bias[i] = next_code() - 100;
            scale[i] = (float)(1 + next_byte()) / 9100.0f;
        }
        for (int i = 0; i < POSITIONS * MOST; i++) residual[i] = next_code();
        for (size_t level = 0; level < LEVELS; level++) {
            if (!prn_isa_has(levels[level].needs)) continue;
            const prn_code_dot *dot = levels[level].table;
            prn_code_depthwise d = {.channels = channels, .taps = padded, .weights = packed};
            next_finish(&d.finish, trial);
            d.finish.bias = ordered_bias;
            d.finish.scale = ordered_scale;
            dot->depthwise_pack(packed, w, channels, taps, padded);
            dot->depthwise_order(ordered_bias, bias, channels);
            dot->depthwise_order(ordered_scale, scale, channels);
            memset(y, 7, sizeof y);
            dot->depthwise(&d, tap, STEP, POSITIONS, flip, y, trial % 5 ? NULL : residual);
            for (int64_t at = 0; at < POSITIONS * channels; at++) {
                const int64_t p = at / channels, c = at % channels;
                int32_t sum = bias[c];
                for (int64_t t = 0; t < taps; t++) sum += (x[t][p * STEP + c] ^ flip) * w[c * taps + t];
                assert_int_equal(y[at], code_of(&d.finish, sum, scale[c], trial % 5 == 0, residual[at]));
            }
            assert_int_equal(y[POSITIONS * channels], 7);
        }
    }
}

static void sums_copies_and_maxima_are_exact(void **state)
{
    (void)state;
    enum { MOST = 300 };
    uint8_t a[MOST], b[MOST], y[MOST + 1], rows[4][MOST];
    const uint8_t *tap[4] = {rows[0], rows[1], rows[2], rows[3]};
    for (int trial = 0; trial < 200; trial++) {
        const int64_t n = trial % MOST + 1;
        const int32_t bias = next_code() - 128;
        const float scale = (float)(1 + next_byte()) / 50.0f;
        const bool is_signed = trial % 2;
        prn_code_finish f = {.bias = &bias, .scale = &scale};
        next_finish(&f, trial);
        f.rounds = false;
        for (int i = 0; i < MOST; i++) {
            a[i] = next_code();
            b[i] = next_code();
            for (int t = 0; t < 4; t++) rows[t][i] = next_code();
        }
        for (size_t level = 0; level < LEVELS; level++) {
            if (!prn_isa_has(levels[level].needs)) continue;
            const prn_code_dot *dot = levels[level].table;
            memset(y, 7, sizeof y);
            dot->add(&f, is_signed, a, b, y, n);
            for (int64_t i = 0; i < n; i++) {
                const int32_t code = is_signed ? (int8_t)a[i] : a[i];
                assert_int_equal(y[i], code_of(&f, code + bias, scale, true, b[i]));
            }
            dot->copy(y, 0, a, 0, 1, n, 128);
            for (int64_t i = 0; i < n; i++) assert_int_equal(y[i], a[i] ^ 128);
            dot->largest(tap, 4, n, is_signed, y);
            for (int64_t i = 0; i < n; i++) {
                int best = -1000;
                for (int t = 0; t < 4; t++) {
                    const int code = is_signed ? (int8_t)rows[t][i] : rows[t][i];
                    best = code > best ? code : best;
                }
                assert_int_equal(y[i], (uint8_t)best);
            }
            assert_int_equal(y[n], 7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_exact),
        cmocka_unit_test(finishing_is_exact),
        cmocka_unit_test(depthwise_is_exact),
        cmocka_unit_test(sums_copies_and_maxima_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
