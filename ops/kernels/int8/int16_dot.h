/* Blocks of sums for processors whose byte products meet in 16 bits (AVX2), and what weights have apart from a split
 * panel (ops/kernels/int8/int8_outliers.h); for ops/kernels/int8/int8_dot_simd.c alone.
 *
 *   four bytes of A, in every lane     two products added in 16 bits       `steps` of these, then pairs in 32 bits
 *   by four weights of 8 columns  ->   16 lanes, none saturates        ->  8 lanes, one for each column
 */
#ifndef PRN_OPS_KERNELS_INT8_INT16_DOT_H
#define PRN_OPS_KERNELS_INT8_INT16_DOT_H

#include "ops/kernels/int8/int8_blocks.h"

#if defined(__AVX2__) && !WIDE

enum { VECTORS = COLUMNS / 8, MOST_TILE = 3, TURNED_ROWS = 16, TURNED_DEPTH = 32 };

static inline __m256i load_8(const void *p)
{
    return _mm256_loadu_si256(p);
}

static inline __m256i int16_dot_four_of(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

/* `rows` and `steps` are constants after inlining. */
static inline __attribute__((always_inline)) void words_rows(const uint8_t *a, int64_t rs_a, const int rows,
                                                             const int8_t *b, int64_t depth, int32_t *sums, bool add,
                                                             const int steps)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[MOST_TILE][VECTORS];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        PRN_UNROLL
        for (int v = 0; v < VECTORS; v++) sum[r][v] = add ? load_8(sums + r * COLUMNS + 8 * v) : _mm256_setzero_si256();
    }
    for (int64_t k = 0; k < depth; k += 4 * steps, b += 4 * COLUMNS * steps) {
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            __m256i x[4];
            PRN_UNROLL
            for (int s = 0; s < steps; s++) x[s] = int16_dot_four_of(a + r * rs_a + k + 4 * s);
            PRN_UNROLL
            for (int v = 0; v < VECTORS; v++) {
                __m256i pairs = _mm256_maddubs_epi16(x[0], load_8(b + 32 * v));
                PRN_UNROLL
                for (int s = 1; s < steps; s++)
                    pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(x[s], load_8(b + 4 * COLUMNS * s + 32 * v)));
                sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        PRN_UNROLL
        for (int v = 0; v < VECTORS; v++) _mm256_storeu_si256((void *)(sums + r * COLUMNS + 8 * v), sum[r][v]);
    }
}

/* As many rows at a time as leave registers for the codes. */
static void int16_dot_block(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums,
                            bool add, int steps)
{
    const int64_t most = steps == 4 ? 2 : 3;
    for (int64_t n; rows > 0; rows -= n, a += n * rs_a, sums += n * COLUMNS) {
        n = rows < most ? rows : most;
        if (steps == 4 && n == 2)
            words_rows(a, rs_a, 2, b, depth, sums, add, 4);
        else if (steps == 4)
            words_rows(a, rs_a, 1, b, depth, sums, add, 4);
        else if (steps == 2 && n == 3)
            words_rows(a, rs_a, 3, b, depth, sums, add, 2);
        else if (steps == 2 && n == 2)
            words_rows(a, rs_a, 2, b, depth, sums, add, 2);
        else if (steps == 2)
            words_rows(a, rs_a, 1, b, depth, sums, add, 2);
        else if (n == 3)
            words_rows(a, rs_a, 3, b, depth, sums, add, 1);
        else if (n == 2)
            words_rows(a, rs_a, 2, b, depth, sums, add, 1);
        else
            words_rows(a, rs_a, 1, b, depth, sums, add, 1);
    }
}

/* ---- excesses */

/* One stage of turning 16 vectors over within lanes: neighbours that are 8 apart meet. */
#define TURN_STAGE(to, from, bits)                                                                                     \
    PRN_UNROLL                                                                                                         \
    for (int i = 0; i < 8; i++) {                                                                                      \
        to[2 * i] = _mm256_unpacklo_epi##bits(from[i], from[i + 8]);                                                   \
        to[2 * i + 1] = _mm256_unpackhi_epi##bits(from[i], from[i + 8]);                                               \
    }

static void int16_dot_transpose(const uint8_t *a, int64_t rs_a, int64_t rows, int64_t depth, uint8_t *to)
{
    for (int64_t k = 0; k < depth; k += TURNED_DEPTH, to += TURNED_DEPTH * ROWS) {
        __m256i x[TURNED_ROWS], y[TURNED_ROWS];
        PRN_UNROLL
        for (int r = 0; r < TURNED_ROWS; r++) x[r] = load_8(a + (r < rows ? r : 0) * rs_a + k);
        TURN_STAGE(y, x, 8)
        TURN_STAGE(x, y, 8)
        TURN_STAGE(y, x, 8)
        TURN_STAGE(x, y, 8)
        PRN_UNROLL
        for (int i = 0; i < TURNED_ROWS; i++) {
            _mm_storeu_si128((void *)(to + i * ROWS), _mm256_castsi256_si128(x[i]));
            _mm_storeu_si128((void *)(to + (i + 16) * ROWS), _mm256_extracti128_si256(x[i], 1));
        }
    }
}

/* Sums of a column are four vectors: number q has rows 4 q to 4 q + 3 and 16 + 4 q to 16 + 4 q + 3. */
static inline void int16_dot_add_group(const uint8_t *turned, const prn_qint8_outliers *group, __m256i *column)
{
    const __m256i ones = _mm256_set1_epi16(1), weights = int16_dot_four_of((const uint8_t *)group->weight);
    const __m256i x0 = load_8(turned + (int64_t)group->depth[0] * ROWS);
    const __m256i x1 = load_8(turned + (int64_t)group->depth[1] * ROWS);
    const __m256i x2 = load_8(turned + (int64_t)group->depth[2] * ROWS);
    const __m256i x3 = load_8(turned + (int64_t)group->depth[3] * ROWS);
    const __m256i low01 = _mm256_unpacklo_epi8(x0, x1), high01 = _mm256_unpackhi_epi8(x0, x1);
    const __m256i low23 = _mm256_unpacklo_epi8(x2, x3), high23 = _mm256_unpackhi_epi8(x2, x3);
    const __m256i fours[4] = {_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
                              _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
    PRN_UNROLL
    for (int q = 0; q < 4; q++)
        column[q] = _mm256_add_epi32(column[q], _mm256_madd_epi16(_mm256_maddubs_epi16(fours[q], weights), ones));
}

/* Adds vector q of 8 columns to their rows. */
static inline void int16_dot_add_columns(__m256i (*column)[4], int q, int32_t *sums)
{
    __m256i half[2][4]; /* of rows 4 q + i in the low lane, 16 + 4 q + i in the high one: four columns */
    PRN_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i low01 = _mm256_unpacklo_epi32(column[4 * h][q], column[4 * h + 1][q]);
        const __m256i high01 = _mm256_unpackhi_epi32(column[4 * h][q], column[4 * h + 1][q]);
        const __m256i low23 = _mm256_unpacklo_epi32(column[4 * h + 2][q], column[4 * h + 3][q]);
        const __m256i high23 = _mm256_unpackhi_epi32(column[4 * h + 2][q], column[4 * h + 3][q]);
        half[h][0] = _mm256_unpacklo_epi64(low01, low23);
        half[h][1] = _mm256_unpackhi_epi64(low01, low23);
        half[h][2] = _mm256_unpacklo_epi64(high01, high23);
        half[h][3] = _mm256_unpackhi_epi64(high01, high23);
    }
    PRN_UNROLL
    for (int i = 0; i < 4; i++) {
        int32_t *upper = sums + (4 * q + i) * COLUMNS, *lower = upper + 16 * COLUMNS;
        const __m256i first = _mm256_permute2x128_si256(half[0][i], half[1][i], 0x20);
        const __m256i second = _mm256_permute2x128_si256(half[0][i], half[1][i], 0x31);
        _mm256_storeu_si256((void *)upper, _mm256_add_epi32(load_8(upper), first));
        _mm256_storeu_si256((void *)lower, _mm256_add_epi32(load_8(lower), second));
    }
}

/* One loop over all columns: how long each one's list is, no branch predictor would know. */
static void int16_dot_excess(const uint8_t *turned, const prn_qint8_outliers *from, const prn_qint8_outliers *to,
                             int32_t *sums)
{
    __m256i column[COLUMNS][4];
    memset(column, 0, sizeof column);
    for (const prn_qint8_outliers *group = from; group < to; group++)
        int16_dot_add_group(turned, group, column[group->column]);
    for (int j = 0; j < COLUMNS; j += 8)
        for (int q = 0; q < 4; q++) int16_dot_add_columns(column + j, q, sums + j);
}

#endif

#endif
