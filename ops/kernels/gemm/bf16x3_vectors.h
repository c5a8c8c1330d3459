/* The functions of ops/kernels/gemm/bf16x3_product.h on vectors of 512 bits that multiply pairs of bfloat16
 * (AVX512_BF16): a pair of depths of one row, in every lane, by the same depths of 16 columns. For
 * ops/kernels/gemm/bf16x3_product_dot_simd.c alone. */
#ifndef PRN_OPS_KERNELS_GEMM_BF16X3_VECTORS_H
#define PRN_OPS_KERNELS_GEMM_BF16X3_VECTORS_H

#include "base/cpu/simd.h"
#include "ops/kernels/gemm/bf16x3_left.h"
#include "ops/kernels/gemm/bf16x3_terms.h"

#include <string.h>

enum { TALL_ROWS = 12, SOME_ROWS = 8, FEW_ROWS = 4, PAIRS = PRN_BF16X3_DEPTH / 2 };

static void bf16x3_split_begin(void)
{
}

static void bf16x3_split_end(void)
{
}

/* Bytes that are fetched while rows are multiplied, so many lines with each step. */
typedef struct fetched {
    const char *at;
    int64_t lines;
} fetched;

static inline __attribute__((always_inline)) __m512bh pair_of(const uint16_t *a)
{
    int32_t pair;
    memcpy(&pair, a, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* One part of some rows by one part of the columns, for 32 depths. `rows` and `wide` are constants after inlining. */
static inline __attribute__((always_inline)) void bf16x3_vectors_add_step(const uint16_t *a, const uint16_t *b,
                                                                          const uint16_t *then,
                                                                          __m512 sums[TALL_ROWS][2], const int rows,
                                                                          const bool wide)
{
    for (int i = 0; i < PAIRS; i++, a += 2, b += PRN_BF16X3_DEPTH) {
        if (i < rows) _mm_prefetch((const char *)(then + i * PRN_BF16X3_DEPTH), _MM_HINT_T0);
        const __m512bh left = (__m512bh)_mm512_loadu_si512(b),
                       right = wide ? (__m512bh)_mm512_loadu_si512(b + TILE) : left;
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m512bh pair = pair_of(a + r * PRN_BF16X3_DEPTH);
            sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pair, left);
            if (wide) sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pair, right);
        }
    }
}

/* In the order of the tiles: small products first. */
static inline __attribute__((always_inline)) void bf16x3_vectors_add_products(const prn_bf16x3_tiles *t, int step,
                                                                              int64_t row, __m512 sums[TALL_ROWS][2],
                                                                              const int rows, const bool wide)
{
    static const int order[PRN_BF16X3_PARTS][6][2] = {
        {{0, 0}}, {{0, 1}, {0, 0}, {1, 0}}, {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}}};
    const uint16_t *const a = t->a[step] + row * PRN_BF16X3_DEPTH, *const b =
                                                                       t->b + (int64_t)step * t->parts * 2 * TILE;
    const uint16_t *const then =
        step + 1 < t->steps ? t->a[step + 1] + row * PRN_BF16X3_DEPTH : t->a[0] + (row + rows) * PRN_BF16X3_DEPTH;
    for (int p = 0; p < prn_bf16x3_products(t->parts); p++)
        bf16x3_vectors_add_step(a + order[t->parts - 1][p][0] * t->a_part, b + order[t->parts - 1][p][1] * 2 * TILE,
                                then, sums, rows, wide);
}

static inline __attribute__((always_inline)) void
bf16x3_vectors_multiply_rows(const prn_bf16x3_tiles *t, int64_t row, fetched *ahead, const int rows, const bool wide)
{
    __m512 sums[TALL_ROWS][2];
    float *const c = t->c + row * t->rs_c;
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        const float *const before = t->sums ? t->sums + (row + r) * t->sums_row : NULL;
        sums[r][0] = before ? _mm512_loadu_ps(before) : _mm512_setzero_ps();
        sums[r][1] = before && wide ? _mm512_loadu_ps(before + 16) : _mm512_setzero_ps();
    }
    for (int s = 0; s < t->steps; s++) {
        for (int64_t i = 0; i < ahead->lines; i++, ahead->at += 64) _mm_prefetch(ahead->at, _MM_HINT_T1);
        bf16x3_vectors_add_products(t, s, row, sums, rows, wide);
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_ps(c + r * t->rs_c, sums[r][0]);
        if (wide) _mm512_storeu_ps(c + r * t->rs_c + 16, sums[r][1]);
    }
}

/* Rows are a multiple of 16: twelve at a time, and eight where four would be left. */
static inline __attribute__((always_inline)) void multiply_all(const prn_bf16x3_tiles *t, const bool wide)
{
    const int64_t groups = t->rows / TALL_ROWS + 2, products = groups * t->steps;
    fetched ahead = {t->ahead, t->ahead && products ? (t->ahead_bytes / 64 + products - 1) / products : 0};
    int64_t row = 0;
    while (t->rows - row >= TALL_ROWS && t->rows - row != SOME_ROWS + SOME_ROWS) {
        bf16x3_vectors_multiply_rows(t, row, &ahead, TALL_ROWS, wide);
        row += TALL_ROWS;
    }
    for (; t->rows - row >= SOME_ROWS; row += SOME_ROWS) bf16x3_vectors_multiply_rows(t, row, &ahead, SOME_ROWS, wide);
    for (; row < t->rows; row += FEW_ROWS) bf16x3_vectors_multiply_rows(t, row, &ahead, FEW_ROWS, wide);
}

static bool bf16x3_split_multiply(const prn_bf16x3_tiles *t)
{
    if (t->wide)
        multiply_all(t, true);
    else
        multiply_all(t, false);
    const bool panel = !t->next || bf16x3_split_panel(t->next, t->next_depths, t->parts, t->next_b);
    return (!t->left || split_left(t->left, t->parts)) && panel;
}

#endif
