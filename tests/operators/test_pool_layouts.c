/* The maxima of random windows at every instruction set: the same bits with and without channel lanes, and as a plain
 * loop gives that goes along the columns of a window. Zeros of both signs, NaNs that differ, infinities. */
#include "failure_trace.h"
#include "base/cpu/simd.h"
#include "ops/pool/pool_simd.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WINDOWS = 3000, LANES = 16, MOST = 40 };

PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, prn_pool_simd, prn_pool_simd_)
#define ADD(variant, needs, name)                                                                                      \
    if (prn_isa_has(needs)) out[count++] = &name##variant;

static int tables(const prn_pool_simd *out[3])
{
    int count = 0;
    PRN_SIMD_VARIANTS(ADD, prn_pool_simd_)
    return count;
}

static uint64_t random_state = 1;

static int64_t below(int64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

/* Often equal, so that the order of a maximum shows. */
static float element(void)
{
    static const uint32_t bits[] = {0x00000000, 0x80000000, 0x7fc00001, 0xffc00002, 0xff800000, 0x3f800000, 0xbf800000};
    const int64_t which = below(40);
    const uint32_t chosen = bits[which < 34 ? which % 2 : which - 33];
    float value;
    memcpy(&value, &chosen, sizeof value);
    return value;
}

/* A plane [depth][height][in] whose rows are those of one row of windows. */
static prn_bump_row random_row(void)
{
    prn_bump_row row = {.depth = 1 + below(2), .height = 1 + below(4), .rows = 1, .taps = 1 + below(4)};
    row.stride = 1 + below(3);
    row.dilation = 1 + (below(4) == 0);
    const int64_t reach = (row.taps - 1) * row.dilation + 1;
    row.in = reach + below(MOST - reach);
    row.pad = below(reach < row.in ? reach : row.in);
    row.out = (row.in + row.pad - reach) / row.stride + 1;
    if (row.out > 1 && below(2)) row.out++; /* a window beyond the end, as ceil_mode has it */
    while ((row.out - 1) * row.stride - row.pad >= row.in) row.out--;
    return row;
}

static float pool_layouts_want(const prn_bump_row *row, int64_t i, int64_t lane)
{
    float best = -INFINITY;
    for (int64_t t = 0; t < row->taps; t++) {
        const int64_t column = i * row->stride - row->pad + t * row->dilation;
        for (int64_t z = 0; z < row->depth && column >= 0 && column < row->in; z++)
            for (int64_t j = 0; j < row->height; j++) {
                const float v = row->x[z * row->depth_step + j * row->height_step + column * row->lanes +
                                       (row->lanes > 1 ? lane : 0)];
                if (v > best || v != v) best = v;
            }
    }
    return best;
}

/* True if all taps of a window lie in the padding, which no pool has. */
static bool has_empty_window(const prn_bump_row *row)
{
    for (int64_t i = 0; i < row->out; i++) {
        bool met = false;
        for (int64_t t = 0; t < row->taps; t++) {
            const int64_t column = i * row->stride - row->pad + t * row->dilation;
            met |= column >= 0 && column < row->in;
        }
        if (!met) return true;
    }
    return false;
}

static void each_layout(void **state)
{
    (void)state;
    static float x[2 * 4 * MOST * LANES], plain[2 * 4 * MOST], y[MOST * LANES], one[MOST];
    const prn_pool_simd *all[3];
    const int count = tables(all);
    int tried = 0;
    for (int n = 0; n < WINDOWS; n++) {
        SCENARIO(n);
        prn_bump_row row = random_row();
        if (has_empty_window(&row)) continue;
        tried++;
        row.height_step = row.in * LANES;
        row.depth_step = row.height * row.height_step;
        for (int64_t i = 0; i < row.depth * row.depth_step; i++) x[i] = element();
        for (int a = 0; a < count; a++) {
            row.x = x, row.lanes = LANES;
            row.height_step = row.in * LANES, row.depth_step = row.height * row.height_step;
            all[a]->max(y, &row);
            for (int64_t i = 0; i < row.out * LANES; i++) {
                const float want = pool_layouts_want(&row, i / LANES, i % LANES);
                if (memcmp(&want, &y[i], sizeof want) != 0)
                    fail_msg("lanes, table %d: output %d is %g, wanted %g", a, (int)i, (double)y[i], (double)want);
            }
            const int64_t lane = below(LANES);
            for (int64_t i = 0; i < row.depth * row.height * row.in; i++) plain[i] = x[i * LANES + lane];
            row.x = plain, row.lanes = 1;
            row.height_step = row.in, row.depth_step = row.height * row.in;
            all[a]->max(one, &row);
            for (int64_t i = 0; i < row.out; i++)
                if (memcmp(&one[i], &y[i * LANES + lane], sizeof *one) != 0)
                    fail_msg("plain, table %d: output %d is %g, wanted %g", a, (int)i, (double)one[i],
                             (double)y[i * LANES + lane]);
        }
    }
    assert_true(tried > WINDOWS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_layout)};
    return cmocka_run_group_tests_name("pool_layouts", tests, NULL, NULL);
}
