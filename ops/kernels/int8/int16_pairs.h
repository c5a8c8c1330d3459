/* Products of pairs of signed 16-bit numbers, added in 32 bits: one instruction on every x86. For *_simd.c
 * and their headers; compiled once per instruction set. Sums wrap around, so that they are the same in any
 * order. */
#ifndef PRN_OPS_KERNELS_INT8_INT16_PAIRS_H
#define PRN_OPS_KERNELS_INT8_INT16_PAIRS_H

#include "base/cpu/simd.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__AVX512BW__) || defined(PRN_EMULATED_AVX512)
enum { PAIR_LANES = 16 };
#elif defined(__AVX2__)
enum { PAIR_LANES = 8 };
#else
enum { PAIR_LANES = 4 };
#endif
enum { PAIR_ROWS = 12 }; /* of a tile, at most */

typedef uint32_t pair_vec __attribute__((vector_size(PAIR_LANES * 4)));
typedef uint32_t pair_vec_unaligned __attribute__((vector_size(PAIR_LANES * 4), aligned(2), may_alias));

static inline pair_vec load_pairs(const void *p)
{
    return *(const pair_vec_unaligned *)p;
}

static inline void store_pairs(void *p, pair_vec x)
{
    *(pair_vec_unaligned *)p = x;
}

/* The sum of the two products of each lane. */
static inline pair_vec multiply_pairs(pair_vec a, pair_vec b)
{
#if defined(__AVX512BW__)
    return (pair_vec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (pair_vec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && !defined(__AVX2__)
    return (pair_vec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    typedef int32_t signed_vec __attribute__((vector_size(PAIR_LANES * 4)));
    const pair_vec low = (pair_vec)((signed_vec)(a << 16) >> 16) * (pair_vec)((signed_vec)(b << 16) >> 16);
    return low + (pair_vec)((signed_vec)a >> 16) * (pair_vec)((signed_vec)b >> 16);
#endif
}

/* The pair that starts at p, in every lane. */
static inline pair_vec splat_pair(const int16_t *p)
{
    uint32_t pair;
    memcpy(&pair, p, sizeof pair);
    return pair - (pair_vec){0};
}

/* c[r][j] (+)= sum over p < pairs of a[r][2 p] b[p][j][0] + a[r][2 p + 1] b[p][j][1], for r < rows and two vectors of
 * columns j. Rows are a_row, b_row and c_row elements apart. `rows` is a constant after inlining. */
static inline __attribute__((always_inline)) void pair_tile(const int16_t *a, int64_t rs_a, const int rows,
                                                            const int16_t *b, int64_t rs_b, int64_t pairs, int32_t *c,
                                                            int64_t rs_c, bool add)
{
    pair_vec left[PAIR_ROWS], right[PAIR_ROWS];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        left[r] = add ? load_pairs(c + r * rs_c) : (pair_vec){0};
        right[r] = add ? load_pairs(c + r * rs_c + PAIR_LANES) : (pair_vec){0};
    }
    for (int64_t p = 0; p < pairs; p++, a += 2, b += rs_b) {
        const pair_vec b0 = load_pairs(b), b1 = load_pairs(b + 2 * PAIR_LANES);
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const pair_vec pair = splat_pair(a + r * rs_a);
            left[r] += multiply_pairs(pair, b0);
            right[r] += multiply_pairs(pair, b1);
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        store_pairs(c + r * rs_c, left[r]);
        store_pairs(c + r * rs_c + PAIR_LANES, right[r]);
    }
}

#endif
