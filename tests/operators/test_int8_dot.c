/* The loops of ops/kernels/int8/int8_dot.h at every level of this processor, against sums written out here: the same
 * bits, for every number of rows, for extreme inputs and weights, and for values on both sides of every bound. */
#include "failure_trace.h"
#include "base/cpu/isa.h"
#include "base/cpu/simd.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/int8/int8_outliers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DECLARE(variant, needs, unused) extern const prn_qint8_dot prn_qint8_dot_##variant;
PRN_SIMD_DOT_VARIANTS(DECLARE, 0)

static const struct {
    const prn_qint8_dot *table;
    unsigned needs;
} levels[] = {
#define LEVEL(variant, needs, unused) {&prn_qint8_dot_##variant, needs},
    PRN_SIMD_DOT_VARIANTS(LEVEL, 0)};

enum { LEVELS = sizeof levels / sizeof levels[0], ROWS = PRN_QINT8_ROWS, COLUMNS = PRN_QINT8_COLUMNS };

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

enum { DEPTH = 320, ROW = DEPTH + 64, KINDS = 12, GROUPS = DEPTH * 2 * COLUMNS / 4 + COLUMNS };

_Alignas(64) static uint8_t a[ROWS * ROW];
_Alignas(64) static int8_t b[DEPTH * COLUMNS], rest[DEPTH * COLUMNS];
static prn_qint8_outliers list[GROUPS];
static uint32_t groups; /* of it */

static int64_t place_in(int64_t k, int64_t j, int64_t depths)
{
    return k / depths * depths * COLUMNS + depths * j + k % depths;
}

static int64_t place_of(int64_t k, int64_t j)
{
    return place_in(k, j, 4);
}

/* b in the level's order. */
static const int8_t *panel_of(const prn_qint8_dot *dot, int64_t depth)
{
    _Alignas(64) static int8_t panel[DEPTH * COLUMNS];
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < COLUMNS; j++) panel[place_in(k, j, dot->panel_depths)] = b[place_of(k, j)];
    return panel;
}

/* A weight of depth k in column j: both ends of the range, alternating signs, a lone pair that is too large at any
 * position, small ones, and bell-shaped ones. */
static int8_t weight_of(int kind, int64_t k, int64_t j, int64_t depth)
{
    const int bell = next_byte() % 64 + next_byte() % 64 + next_byte() % 64 + next_byte() % 64 - 126;
    switch (kind) {
    case 0:
        return -128;
    case 1:
        return 127;
    case 2:
        return k % 2 ? 127 : -128;
    case 3:
        return k / 2 % 2 ? 127 : -128;
    case 4:
        return (k + j) % 3 ? 127 : 0;
    case 5:
        return k / 2 == (37 * j + 11) % (depth / 2) ? 127 : 0;
    case 6:
        return k == (37 * j + 11) % depth || k == (37 * j + 14) % depth ? -128 : (int8_t)(j % 3 - 1);
    case 7:
        return (int8_t)(next_byte() % 129 - 64);
    case 8:
        return (int8_t)(bell * 127 / 126);
    case 9:
        return (int8_t)(bell / 3);
    case 10:
        return j == 5 ? 127 : 0;
    default:
        return (int8_t)next_code();
    }
}

/* The expected sums, added to `first`. */
static void wanted_sums(int64_t depth, uint32_t first, int32_t *wanted)
{
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t j = 0; j < COLUMNS; j++) {
            uint32_t sum = first;
            for (int64_t k = 0; k < depth; k++) sum += (uint32_t)(a[r * ROW + k] * b[place_of(k, j)]);
            wanted[r * COLUMNS + j] = (int32_t)sum;
        }
    }
}

/* Splits b into a remainder and a list as packing does, and checks that no pair of products exceeds 16 bits. */
static int split_panel(int64_t depth)
{
    memcpy(rest, b, sizeof rest);
    const int steps = prn_qint8_outliers_split(rest, depth, &groups);
    assert_in_range(groups, 0, GROUPS);
    assert_int_equal(prn_qint8_outliers_list(b, rest, depth, list), groups);
    for (int64_t k = 0; k < depth; k += 4 * steps) {
        for (int lane = 0; lane < 2 * COLUMNS; lane++) {
            int positive = 0, negative = 0;
            for (int i = 0; i < 2 * steps; i++) {
                const int w = rest[place_of(k + i / 2 * 4 + lane % 2 * 2 + i % 2, lane / 2)];
                positive += w > 0 ? w : 0;
                negative += w < 0 ? w : 0;
            }
            assert_in_range(positive, 0, 128);
            assert_in_range(-negative, 0, 128);
        }
    }
    return steps;
}

/* The block as the product computes it: on levels that split, with the list by turned rows or row by row. */
static void block_of(const prn_qint8_dot *dot, int64_t rows, int64_t depth, int64_t used, int32_t *sums, bool add,
                     bool by_rows)
{
    static uint8_t turned[DEPTH * ROWS];
    const int steps = dot->splits ? split_panel(depth) : 0;
    dot->begin();
    dot->block(a, ROW, rows, dot->splits ? rest : panel_of(dot, depth), used, sums, add, steps);
    dot->end();
    if (!dot->splits) return;
    if (by_rows) {
        prn_qint8_outliers_rows(a, ROW, rows, list, list + groups, sums);
        return;
    }
    for (int64_t r = 0; r < rows; r += 16) dot->turn(a + r * ROW, ROW, rows - r < 16 ? rows - r : 16, used, turned + r);
    dot->excess(turned, list, list + groups, sums);
}

static void blocks_are_exact(void **state)
{
    (void)state;
    _Alignas(64) int32_t sums[ROWS * COLUMNS], wanted[ROWS * COLUMNS];
    for (size_t level = 0; level < LEVELS; level++) {
        SCENARIO(level);
        if (!prn_isa_has(levels[level].needs)) continue;
        for (int trial = 0; trial < 4 * KINDS * ROWS; trial++) {
            const int64_t rows = trial % ROWS + 1;
            const int64_t used = trial % 4 ? trial % 5 * 64 + 64 : 4 + trial % 77 * 4, depth = (used + 63) / 64 * 64;
            const bool add = trial & 8, all = trial & 64;
            for (size_t i = 0; i < sizeof a; i++) a[i] = all ? 255 : next_code();
            for (int64_t k = 0; k < depth; k++)
                for (int64_t j = 0; j < COLUMNS; j++)
                    b[place_of(k, j)] = k < used - trial % 4 ? weight_of(trial / ROWS % KINDS, k, j, used) : 0;
            wanted_sums(used, add ? 0x7fffff00u : 0, wanted);
            for (int i = 0; i < ROWS * COLUMNS; i++) sums[i] = 0x7fffff00;
            block_of(levels[level].table, rows, depth, used, sums, add, trial % 3 == 0);
            assert_memory_equal(sums, wanted, (size_t)(rows * COLUMNS) * sizeof *sums);
        }
    }
}

/* Small weights allow more products per 16-bit sum. Packing extracts few of the bell-shaped weights and half of the
 * extreme ones. */
static void steps_follow_the_weights(void **state)
{
    static const struct {
        int kind, steps;
        uint32_t least, most;
    } cases[] = {{9, 4, 0, GROUPS / 20}, {8, 2, 1, GROUPS / 10}, {0, 1, DEPTH * COLUMNS / 4, DEPTH * COLUMNS / 4}};
    (void)state;
    memset(b, 1, sizeof b);
    assert_int_equal(split_panel(DEPTH), 4);
    assert_int_equal(groups, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCENARIO(i);
        for (int64_t k = 0; k < DEPTH; k++)
            for (int64_t j = 0; j < COLUMNS; j++) b[place_of(k, j)] = weight_of(cases[i].kind, k, j, DEPTH);
        assert_int_equal(split_panel(DEPTH), cases[i].steps);
        assert_in_range(groups, cases[i].least, cases[i].most);
    }
}

static float rounded(float v, float low, float high)
{
    return rintf(v > low ? (v < high ? v : high) : low); /* NaN is low */
}

static uint8_t code_of(const prn_qint8_epilogue *f, int32_t sum, float scale, bool has_residual, uint8_t residual)
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
static void next_finish(prn_qint8_epilogue *f, int trial)
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
        SCENARIO(trial);
        prn_qint8_epilogue f = {.bias = bias, .scale = scale};
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
    static int8_t w[MOST * TAPS];
    _Alignas(64) static int8_t packed[2 * 256 * TAPS];
    int32_t bias[MOST], ordered_bias[256];
    float scale[MOST], ordered_scale[256];
    const uint8_t *tap[TAPS];
    for (int trial = 0; trial < 60; trial++) {
        SCENARIO(trial);
        const int64_t channels = trial % 2 ? 1 + next_byte() % MOST : trial % 8 ? 64 * (1 + trial % 3) : 8 + trial % 32;
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
            const prn_qint8_dot *dot = levels[level].table;
            prn_qint8_depthwise d = {.channels = channels, .taps = padded, .used = taps, .weights = packed};
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

static void elementwise_loops_are_exact(void **state)
{
    (void)state;
    enum { MOST = 300 };
    uint8_t a[MOST], b[MOST], y[MOST + 1], rows[4][MOST], table[256];
    const uint8_t *tap[4] = {rows[0], rows[1], rows[2], rows[3]};
    for (int trial = 0; trial < 200; trial++) {
        SCENARIO(trial);
        const int64_t n = trial % MOST + 1;
        const int32_t bias = next_code() - 128;
        const float scale = (float)(1 + next_byte()) / 50.0f;
        const bool is_signed = trial % 2;
        prn_qint8_epilogue f = {.bias = &bias, .scale = &scale};
        next_finish(&f, trial);
        f.rounds = false;
        const float small = scale / 64.0f;
        for (int i = 0; i < 256; i++) table[i] = next_byte();
        for (int i = 0; i < MOST; i++) {
            a[i] = next_code();
            b[i] = next_code();
            for (int t = 0; t < 4; t++) rows[t][i] = next_code();
        }
        for (size_t level = 0; level < LEVELS; level++) {
            if (!prn_isa_has(levels[level].needs)) continue;
            const prn_qint8_dot *dot = levels[level].table;
            memset(y, 7, sizeof y);
            f.scale = &scale;
            dot->add(&f, is_signed, a, b, y, n);
            for (int64_t i = 0; i < n; i++) {
                const int32_t code = is_signed ? (int8_t)a[i] : a[i];
                assert_int_equal(y[i], code_of(&f, code + bias, scale, true, b[i]));
            }
            f.scale = &small;
            dot->multiply(&f, is_signed, a, b, y, n);
            for (int64_t i = 0; i < n; i++) {
                const int32_t left = (is_signed ? (int8_t)a[i] : a[i]) + bias;
                const int32_t right = (f.residual_signed ? (int8_t)b[i] : b[i]) - f.residual_zero;
                assert_int_equal(y[i], code_of(&f, left * right, scale / 64.0f, false, 0));
            }
            dot->look_up(table, a, y, n);
            for (int64_t i = 0; i < n; i++) assert_int_equal(y[i], table[a[i]]);
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
        cmocka_unit_test(steps_follow_the_weights),
        cmocka_unit_test(finishing_is_exact),
        cmocka_unit_test(depthwise_is_exact),
        cmocka_unit_test(elementwise_loops_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
