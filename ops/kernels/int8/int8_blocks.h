/* Blocks of sums of products of bytes, for one instruction set; for ops/kernels/int8/int8_dot_simd.c alone.
 *
 *   AMX        two tiles of 16 rows by two of 16 columns, 64 depths a step
 *   VNNI       up to 12 rows by two vectors of 16 columns, 4 depths a step
 *   AVX2       up to 3 rows by four vectors of 8 columns, products added in 16 bits first
 *              (ops/kernels/int8/int16_dot.h)
 *   DOTPROD    up to 8 rows by two vectors of 4 columns, 16 depths a step
 *   I8MM       up to 4 pairs of rows by pairs of columns, 16 sums in all, 8 depths a step
 *   otherwise  both operands are widened to 16 bits, pairs of products summed in 32 */
#ifndef PRN_OPS_KERNELS_INT8_INT8_BLOCKS_H
#define PRN_OPS_KERNELS_INT8_INT8_BLOCKS_H

#include "base/cpu/simd.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/int8/int16_pairs.h"

#include <string.h>

#if defined(__AVX512BW__)
#define WIDE 1 /* 512 bits */
#else
#define WIDE 0
#endif

enum { ROWS = PRN_QINT8_ROWS, COLUMNS = PRN_QINT8_COLUMNS };
#define PANEL_DEPTHS 4 /* of a column side by side in a panel */

#if defined(PRN_TILES_INT8)

typedef struct tile_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Tiles 0 to 3 are sums, 4 and 5 rows of A, 6 and 7 columns of B. Static: compilers are not told that all of it is
 * read. */
static const tile_config config = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static void int8_blocks_begin(void)
{
    _tile_loadconfig(&config);
}

static void end(void)
{
    _tile_release();
}

#else

static void int8_blocks_begin(void)
{
}

static void end(void)
{
}

#endif

#if defined(__AVX512VNNI__)

static inline __m512i int8_blocks_four_of(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

/* `rows` is a constant after inlining. */
static inline __attribute__((always_inline)) void int8_blocks_rows_of(const uint8_t *a, int64_t rs_a, const int rows,
                                                                      const int8_t *b, int64_t depth, int32_t *sums,
                                                                      bool add)
{
    enum { MOST = 12 };
    __m512i left[MOST], right[MOST];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        left[r] = add ? _mm512_loadu_si512(sums + r * COLUMNS) : _mm512_setzero_si512();
        right[r] = add ? _mm512_loadu_si512(sums + r * COLUMNS + 16) : _mm512_setzero_si512();
    }
    for (int64_t k = 0; k < depth; k += 4, b += 4 * COLUMNS) {
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m512i x = int8_blocks_four_of(a + r * rs_a + k);
            left[r] = _mm512_dpbusd_epi32(left[r], x, b0);
            right[r] = _mm512_dpbusd_epi32(right[r], x, b1);
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_si512(sums + r * COLUMNS, left[r]);
        _mm512_storeu_si512(sums + r * COLUMNS + 16, right[r]);
    }
}

static void vector_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                         bool add)
{
    for (; rows >= 12; rows -= 12, a += 12 * rs_a, sums += 12 * COLUMNS)
        int8_blocks_rows_of(a, rs_a, 12, b, depth, sums, add);
    for (; rows >= 8; rows -= 8, a += 8 * rs_a, sums += 8 * COLUMNS)
        int8_blocks_rows_of(a, rs_a, 8, b, depth, sums, add);
    for (; rows >= 4; rows -= 4, a += 4 * rs_a, sums += 4 * COLUMNS)
        int8_blocks_rows_of(a, rs_a, 4, b, depth, sums, add);
    for (; rows >= 2; rows -= 2, a += 2 * rs_a, sums += 2 * COLUMNS)
        int8_blocks_rows_of(a, rs_a, 2, b, depth, sums, add);
    if (rows > 0) int8_blocks_rows_of(a, rs_a, 1, b, depth, sums, add);
}

#endif

#if defined(PRN_TILES_INT8)

/* Up to which vectors do less work than tiles of 16 rows. */
enum { FEW_ROWS = 4 };

static void tiles_16(const uint8_t *a, int64_t rs_a, const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    if (add) {
        _tile_loadd(0, sums, 4 * COLUMNS);
        _tile_loadd(1, sums + 16, 4 * COLUMNS);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (int64_t k = 0; k < depth; k += 64, b += 64 * COLUMNS) {
        _tile_loadd(4, a + k, (long)rs_a);
        _tile_loadd(6, b, 4 * COLUMNS);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, b + 64, 4 * COLUMNS);
        _tile_dpbusd(1, 4, 7);
    }
    _tile_stored(0, sums, 4 * COLUMNS);
    _tile_stored(1, sums + 16, 4 * COLUMNS);
}

/* 32 rows by 32 columns in four tiles of sums, two of A and two of B. `depth` is padded to whole tiles. */
static void tiles_32(const uint8_t *a, int64_t rs_a, const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    int32_t *lower = sums + 16 * COLUMNS;
    if (add) {
        _tile_loadd(0, sums, 4 * COLUMNS);
        _tile_loadd(1, sums + 16, 4 * COLUMNS);
        _tile_loadd(2, lower, 4 * COLUMNS);
        _tile_loadd(3, lower + 16, 4 * COLUMNS);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < depth; k += 64, b += 64 * COLUMNS) {
        _tile_loadd(4, a + k, (long)rs_a);
        _tile_loadd(6, b, 4 * COLUMNS);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, b + 64, 4 * COLUMNS);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(5, a + 16 * rs_a + k, (long)rs_a);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, sums, 4 * COLUMNS);
    _tile_stored(1, sums + 16, 4 * COLUMNS);
    _tile_stored(2, lower, 4 * COLUMNS);
    _tile_stored(3, lower + 16, 4 * COLUMNS);
}

static void int8_blocks_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth,
                              int32_t *sums, bool add, int steps)
{
    (void)steps;
    if (rows <= FEW_ROWS) {
        vector_block(a, rs_a, rows, b, depth, sums, add);
    } else if (rows <= 16) {
        tiles_16(a, rs_a, b, depth, sums, add);
    } else {
        tiles_32(a, rs_a, b, depth, sums, add);
    }
}

#elif defined(__AVX512VNNI__)

static void int8_blocks_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth,
                              int32_t *sums, bool add, int steps)
{
    (void)steps;
    vector_block(a, rs_a, rows, b, depth, sums, add);
}

#elif defined(PRN_NEON) && defined(__ARM_FEATURE_MATMUL_INT8)

#include <arm_neon.h>

#undef PANEL_DEPTHS
#define PANEL_DEPTHS 8

enum { STEP_DEPTHS = PANEL_DEPTHS, PAIRED_DEPTHS = 512, MOST_PAIRS = 4, PAIR_SUMS = 16 };

/* USMMLA multiplies 2 rows of 8 unsigned codes by 8 signed weights of 2 columns. A panel has these columns side by
 * side; rows are paired here, a piece of the depth at a time: to[depth / 8][pair][row of the pair][depth % 8]. It costs
 * two instructions for each 16 of the product, once for all columns of the panel. */
static inline __attribute__((always_inline)) void int8_blocks_pair_rows(const uint8_t *a, int64_t rs_a, const int pairs,
                                                                        int64_t depth, uint8_t *to)
{
    for (int64_t k = 0; k < depth; k += 2 * STEP_DEPTHS, to += 32 * pairs) {
        PRN_UNROLL
        for (int p = 0; p < pairs; p++) {
            const uint64x2_t x = vreinterpretq_u64_u8(vld1q_u8(a + 2 * p * rs_a + k));
            const uint64x2_t y = vreinterpretq_u64_u8(vld1q_u8(a + (2 * p + 1) * rs_a + k));
            vst1q_u8(to + 16 * p, vreinterpretq_u8_u64(vzip1q_u64(x, y)));
            vst1q_u8(to + 16 * (pairs + p), vreinterpretq_u8_u64(vzip2q_u64(x, y)));
        }
    }
}

/* `to` = the low or high halves of two vectors. */
static inline int32x4_t int8_blocks_low(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

static inline int32x4_t int8_blocks_high(int32x4_t a, int32x4_t b)
{
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

/* Paired rows by 2 * 16 / pairs columns: a sum is of two rows and two columns, row by row. */
static inline __attribute__((always_inline)) void
int8_blocks_tile_of(const uint8_t *a, const int pairs, const int8_t *b, int64_t depth, int32_t *sums, bool add)
{
    const int across = PAIR_SUMS / pairs; /* pairs of columns */
    int32x4_t sum[MOST_PAIRS][PAIR_SUMS];
    PRN_UNROLL
    for (int p = 0; p < pairs; p++) {
        const int32_t *upper = sums + 2 * p * COLUMNS, *lower = upper + COLUMNS;
        PRN_UNROLL
        for (int j = 0; j < across; j += 2) {
            const int32x4_t x = add ? vld1q_s32(upper + 2 * j) : vdupq_n_s32(0);
            const int32x4_t y = add ? vld1q_s32(lower + 2 * j) : vdupq_n_s32(0);
            sum[p][j] = int8_blocks_low(x, y);
            sum[p][j + 1] = int8_blocks_high(x, y);
        }
    }
    for (int64_t k = 0; k < depth; k += STEP_DEPTHS, a += 16 * pairs, b += STEP_DEPTHS * COLUMNS) {
        uint8x16_t codes[MOST_PAIRS];
        PRN_UNROLL
        for (int p = 0; p < pairs; p++) codes[p] = vld1q_u8(a + 16 * p);
        PRN_UNROLL
        for (int j = 0; j < across; j++) {
            const int8x16_t weights = vld1q_s8(b + 16 * j);
            PRN_UNROLL
            for (int p = 0; p < pairs; p++) sum[p][j] = vusmmlaq_s32(sum[p][j], codes[p], weights);
        }
    }
    PRN_UNROLL
    for (int p = 0; p < pairs; p++) {
        int32_t *upper = sums + 2 * p * COLUMNS, *lower = upper + COLUMNS;
        PRN_UNROLL
        for (int j = 0; j < across; j += 2) {
            vst1q_s32(upper + 2 * j, int8_blocks_low(sum[p][j], sum[p][j + 1]));
            vst1q_s32(lower + 2 * j, int8_blocks_high(sum[p][j], sum[p][j + 1]));
        }
    }
}

#define INT8_PAIRS(pairs)                                                                                              \
    static __attribute__((noinline)) void int8_blocks_tile_##pairs(const uint8_t *a, const int8_t *b, int64_t depth,   \
                                                                   int32_t *sums, bool add)                            \
    {                                                                                                                  \
        int8_blocks_tile_of(a, pairs, b, depth, sums, add);                                                            \
    }                                                                                                                  \
    static void int8_blocks_pairs_##pairs(const uint8_t *a, int64_t rs_a, const int8_t *b, int64_t depth,              \
                                          int32_t *sums, bool add)                                                     \
    {                                                                                                                  \
        uint8_t paired[2 * pairs * PAIRED_DEPTHS];                                                                     \
        for (int64_t k = 0; k < depth; k += PAIRED_DEPTHS) {                                                           \
            const int64_t piece = depth - k < PAIRED_DEPTHS ? depth - k : PAIRED_DEPTHS;                               \
            int8_blocks_pair_rows(a + k, rs_a, pairs, piece, paired);                                                  \
            for (int j = 0; j < COLUMNS; j += 2 * PAIR_SUMS / pairs)                                                   \
                int8_blocks_tile_##pairs(paired, b + k * COLUMNS + STEP_DEPTHS * j, piece, sums + j, add || k > 0);    \
        }                                                                                                              \
    }
INT8_PAIRS(1)
INT8_PAIRS(2)
INT8_PAIRS(4)

/* A last row without a neighbour is paired with the next one, which is readable, and whose sums are unused. */
static void int8_blocks_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth,
                              int32_t *sums, bool add, int steps)
{
    (void)steps;
    for (; rows > 6; rows -= 8, a += 8 * rs_a, sums += 8 * COLUMNS) int8_blocks_pairs_4(a, rs_a, b, depth, sums, add);
    for (; rows > 2; rows -= 4, a += 4 * rs_a, sums += 4 * COLUMNS) int8_blocks_pairs_2(a, rs_a, b, depth, sums, add);
    if (rows > 0) int8_blocks_pairs_1(a, rs_a, b, depth, sums, add);
}

#elif defined(PRN_NEON) && defined(__ARM_FEATURE_DOTPROD)

#include <arm_neon.h>

/* sum + the four products of bytes of each lane: b by four bytes of x, those of `lane`, which is a constant after
 * inlining. The reason for the instruction is that of base/cpu/fma_lane.h. */
static inline __attribute__((always_inline)) int32x4_t int8_blocks_dot(int32x4_t sum, int8x16_t b, uint8x16_t x,
                                                                       const int lane)
{
#if defined(__GNUC__) && !defined(__clang__)
#define INT8_DOT_LANE(n) __asm__("sdot %0.4s, %1.16b, %2.4b[" #n "]" : "+w"(sum) : "w"(b), "w"(x))
    switch (lane) {
    case 0:
        INT8_DOT_LANE(0);
        break;
    case 1:
        INT8_DOT_LANE(1);
        break;
    case 2:
        INT8_DOT_LANE(2);
        break;
    default:
        INT8_DOT_LANE(3);
        break;
    }
    return sum;
#undef INT8_DOT_LANE
#else
    const int8x16_t y = vreinterpretq_s8_u8(x);
    return lane == 0   ? vdotq_laneq_s32(sum, b, y, 0)
           : lane == 1 ? vdotq_laneq_s32(sum, b, y, 1)
           : lane == 2 ? vdotq_laneq_s32(sum, b, y, 2)
                       : vdotq_laneq_s32(sum, b, y, 3);
#endif
}

/* `rows` rows and all columns, eight columns at a time; depths are counted in steps of 16, as b has zeros behind its
 * last. SDOT takes signed bytes alone: a row's code less 128 is one, and 128 times the sum of a column's weights is
 * added at the end. Sums wrap around, so the result is exact. */
static inline __attribute__((always_inline)) void int8_blocks_rows_of(const uint8_t *a, int64_t rs_a, const int rows,
                                                                      const int8_t *b, int64_t depth, int32_t *sums,
                                                                      bool add)
{
    enum { MOST = 8 };
    for (int64_t j = 0; j < COLUMNS; j += 8) {
        const int8_t *weights = b + 4 * j;
        const uint8_t *x = a;
        int32x4_t left[MOST], right[MOST];
        int32x4_t left_weights = vdupq_n_s32(0), right_weights = vdupq_n_s32(0);
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            left[r] = add ? vld1q_s32(sums + r * COLUMNS + j) : vdupq_n_s32(0);
            right[r] = add ? vld1q_s32(sums + r * COLUMNS + j + 4) : vdupq_n_s32(0);
        }
        for (int64_t k = 0; k < depth; k += 16, x += 16) {
            uint8x16_t codes[MOST];
            PRN_UNROLL
            for (int r = 0; r < rows; r++) {
                codes[r] = vld1q_u8(x + r * rs_a);
                codes[r] = veorq_u8(codes[r], vdupq_n_u8(0x80));
            }
            PRN_UNROLL
            for (int four = 0; four < 4; four++, weights += 4 * COLUMNS) {
                const int8x16_t b0 = vld1q_s8(weights), b1 = vld1q_s8(weights + 16);
                left_weights = vdotq_s32(left_weights, b0, vdupq_n_s8(1));
                right_weights = vdotq_s32(right_weights, b1, vdupq_n_s8(1));
                PRN_UNROLL
                for (int r = 0; r < rows; r++) {
                    left[r] = int8_blocks_dot(left[r], b0, codes[r], four);
                    right[r] = int8_blocks_dot(right[r], b1, codes[r], four);
                }
            }
        }
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            left[r] = vaddq_s32(left[r], vshlq_n_s32(left_weights, 7));
            right[r] = vaddq_s32(right[r], vshlq_n_s32(right_weights, 7));
            vst1q_s32(sums + r * COLUMNS + j, left[r]);
            vst1q_s32(sums + r * COLUMNS + j + 4, right[r]);
        }
    }
}

#define INT8_ROWS(rows)                                                                                                \
    static __attribute__((noinline)) void int8_blocks_rows_##rows(const uint8_t *a, int64_t rs_a, const int8_t *b,     \
                                                                  int64_t depth, int32_t *sums, bool add)              \
    {                                                                                                                  \
        int8_blocks_rows_of(a, rs_a, rows, b, depth, sums, add);                                                       \
    }
INT8_ROWS(1)
INT8_ROWS(2)
INT8_ROWS(4)
INT8_ROWS(8)

static void int8_blocks_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth,
                              int32_t *sums, bool add, int steps)
{
    (void)steps;
    for (; rows >= 8; rows -= 8, a += 8 * rs_a, sums += 8 * COLUMNS) int8_blocks_rows_8(a, rs_a, b, depth, sums, add);
    for (; rows >= 4; rows -= 4, a += 4 * rs_a, sums += 4 * COLUMNS) int8_blocks_rows_4(a, rs_a, b, depth, sums, add);
    for (; rows >= 2; rows -= 2, a += 2 * rs_a, sums += 2 * COLUMNS) int8_blocks_rows_2(a, rs_a, b, depth, sums, add);
    if (rows > 0) int8_blocks_rows_1(a, rs_a, b, depth, sums, add);
}

#elif !defined(__AVX2__) || WIDE

/* Both operands are widened to 16 bits, a piece of the depth at a time: then pairs of products fit every sum. */

enum { TILE_ROWS = PAIR_LANES == 16 ? 12 : 4, PIECE = 128, PAIR_ROW = 2 * COLUMNS };

/* `rows` rows and two vectors' columns. */
static inline __attribute__((always_inline)) void int8_blocks_tile(const int16_t *a, const int rows, const int16_t *b,
                                                                   int64_t pairs, int32_t *sums, bool add)
{
    pair_tile(a, PIECE, rows, b, PAIR_ROW, pairs, sums, COLUMNS, add);
}

static void widen_rows(const uint8_t *a, int64_t rs_a, int64_t rows, int64_t depth, int16_t *to)
{
    for (int64_t r = 0; r < rows; r++) {
        const uint8_t *from = a + r * rs_a;
        for (int64_t k = 0; k < depth; k++) to[r * PIECE + k] = from[k];
    }
}

/* Four depths of a column are one word of a panel; pairs of them go to two rows. */
static void widen_panel(const int8_t *b, int64_t depth, int16_t *to)
{
    for (int64_t k = 0; k < depth; k += 4, b += 4 * COLUMNS, to += 2 * PAIR_ROW) {
        int32_t words[COLUMNS], pairs[2][COLUMNS];
        memcpy(words, b, sizeof words);
        for (int c = 0; c < COLUMNS; c++) {
            const uint32_t w = (uint32_t)words[c];
            const int32_t b0 = (int32_t)(w << 24) >> 24, b1 = (int32_t)(w << 16) >> 24, b2 = (int32_t)(w << 8) >> 24;
            pairs[0][c] = (int32_t)(((uint32_t)b0 & 0xffff) | (uint32_t)b1 << 16);
            pairs[1][c] = (int32_t)(((uint32_t)b2 & 0xffff) | ((uint32_t)((int32_t)w >> 24) << 16));
        }
        memcpy(to, pairs, sizeof pairs);
    }
}

static void int8_blocks_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth,
                              int32_t *sums, bool add, int steps)
{
    (void)steps;
    int16_t wide_a[ROWS * PIECE], wide_b[PIECE * COLUMNS];
    for (int64_t k = 0, n; k < depth; k += n) {
        n = depth - k < PIECE ? depth - k : PIECE;
        const bool more = add || k > 0;
        widen_rows(a + k, rs_a, rows, n, wide_a);
        widen_panel(b + k * COLUMNS, n, wide_b);
        for (int64_t j = 0; j < COLUMNS; j += 2 * PAIR_LANES) {
            int64_t r = 0;
            for (; r + TILE_ROWS <= rows; r += TILE_ROWS)
                int8_blocks_tile(wide_a + r * PIECE, TILE_ROWS, wide_b + 2 * j, n / 2, sums + r * COLUMNS + j, more);
            for (; r + 2 <= rows; r += 2)
                int8_blocks_tile(wide_a + r * PIECE, 2, wide_b + 2 * j, n / 2, sums + r * COLUMNS + j, more);
            if (r < rows) int8_blocks_tile(wide_a + r * PIECE, 1, wide_b + 2 * j, n / 2, sums + r * COLUMNS + j, more);
        }
    }
}

#endif

#endif
