/* Parts of bfloat16 on vectors of 512 bits, and sums that go to a blocked layout: what products on tiles and products
 * on vectors have in common. For files that are compiled once per instruction set alone. */
#ifndef PRN_OPS_KERNELS_GEMM_BF16X3_TERMS_H
#define PRN_OPS_KERNELS_GEMM_BF16X3_TERMS_H

#include "ops/kernels/gemm/bf16x3_product.h"

#include <immintrin.h>

enum { HIGH = (int)0xffff0000 };

/* x rounded to nearest, to what its high half holds; the low half is of no meaning. */
static inline __attribute__((always_inline)) __m512i bf16x3_terms_part_of(__m512 x)
{
    return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}

static inline __attribute__((always_inline)) __m512 rest_of(__m512 x, __m512i part)
{
    return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(part, _mm512_set1_epi32(HIGH))));
}

/* The parts of 16 pairs: first ones in the low halves. */
static inline __attribute__((always_inline)) void store_parts(__m512 first, __m512 second, const int parts,
                                                              uint16_t *to, int64_t part_step)
{
    const __m512i high = _mm512_set1_epi32(HIGH);
    for (int p = 0; p < parts; p++) {
        const __m512i a = bf16x3_terms_part_of(first), b = bf16x3_terms_part_of(second);
        /* high ? b : a >> 16 */
        const __m512i both = _mm512_ternarylogic_epi32(high, b, _mm512_srli_epi32(a, 16), 0xca);
        _mm512_store_si512(to + p * part_step, both);
        if (p + 1 == parts) break;
        first = rest_of(first, a);
        second = rest_of(second, b);
    }
}

/* The largest of some numbers: twice their bits, without the sign. */
static inline __attribute__((always_inline)) __m512i bf16x3_terms_larger(__m512i largest, __m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    return _mm512_max_epu32(largest, _mm512_add_epi32(bits, bits));
}

/* True if all of them have parts: what rounds to an infinity has none, either. */
static inline bool all_have_parts(__m512i largest)
{
    return _mm512_cmpge_epu32_mask(largest, _mm512_set1_epi32((int)(2 * UINT32_C(0x7f7f8000)))) == 0;
}

static inline __mmask16 first_lanes(int count)
{
    return count >= 16 ? 0xffff : (__mmask16)((1u << count) - 1);
}

/* Rows lie too far apart for the processor to see what comes next; another core may have them. */
enum { ROWS_AHEAD = 12 };

static inline __attribute__((always_inline)) bool bf16x3_terms_rows_of(const float *left, __mmask16 left_mask,
                                                                       const float *right, __mmask16 right_mask,
                                                                       int64_t step, int64_t rows, const int parts,
                                                                       uint16_t *to, int64_t part_step)
{
    __m512i largest = _mm512_setzero_si512();
    for (int64_t r = 0; r < rows; r++, to += PRN_BF16X3_DEPTH) {
        const int64_t later = r + ROWS_AHEAD < rows ? r + ROWS_AHEAD : r;
        _mm_prefetch((const char *)(left + later * step), _MM_HINT_T0);
        _mm_prefetch((const char *)(right + later * step), _MM_HINT_T0);
        const __m512 first = _mm512_maskz_loadu_ps(left_mask, left + r * step);
        const __m512 second = _mm512_maskz_loadu_ps(right_mask, right + r * step);
        largest = bf16x3_terms_larger(bf16x3_terms_larger(largest, first), second);
        store_parts(first, second, parts, to, part_step);
    }
    return all_have_parts(largest);
}

static bool bf16x3_split_rows(const float *left, int left_count, const float *right, int right_count, int64_t step,
                              int64_t rows, int parts, uint16_t *to, int64_t part_step)
{
    const __mmask16 left_mask = first_lanes(left_count), right_mask = first_lanes(right_count);
    if (!right) right = left; /* nothing of it is read */
    if (parts == 3) return bf16x3_terms_rows_of(left, left_mask, right, right_mask, step, rows, 3, to, part_step);
    if (parts == 2) return bf16x3_terms_rows_of(left, left_mask, right, right_mask, step, rows, 2, to, part_step);
    return bf16x3_terms_rows_of(left, left_mask, right, right_mask, step, rows, 1, to, part_step);
}

static bool bf16x3_split_rows_around(float center, const float *left, const float *right, int64_t step, int64_t rows,
                                     uint16_t *to, int64_t part_step)
{
    const __m512 all = _mm512_set1_ps(center);
    __m512i largest = _mm512_setzero_si512();
    if (!right) right = left;
    for (int64_t r = 0; r < rows; r++, to += PRN_BF16X3_DEPTH) {
        const __m512 first = _mm512_sub_ps(_mm512_loadu_ps(left + r * step), all);
        const __m512 second = _mm512_sub_ps(_mm512_loadu_ps(right + r * step), all);
        largest = bf16x3_terms_larger(bf16x3_terms_larger(largest, first), second);
        store_parts(first, second, 2, to, part_step);
    }
    return all_have_parts(largest);
}

enum { TILE = PRN_BF16X3_DEPTH * PRN_BF16X3_ROWS /* elements */ };

/* Rows `pair` and `pair` + 16 of a step of a panel; those beyond `depths` are zeros. */
static inline __attribute__((always_inline)) __m512i split_pair(const float *from, int64_t pair, int64_t depths,
                                                                const int parts, uint16_t *to)
{
    const __mmask16 has = pair < depths ? 0xffff : 0, has_more = pair + 16 < depths ? 0xffff : 0;
    __m512i largest = _mm512_setzero_si512();
    from += pair * PRN_BF16X3_COLUMNS;
    for (int64_t t = 0; t < 2; t++) {
        const __m512 first = _mm512_maskz_loadu_ps(has, from + t * 16),
                     second = _mm512_maskz_loadu_ps(has_more, from + t * 16 + 16 * PRN_BF16X3_COLUMNS);
        largest = bf16x3_terms_larger(bf16x3_terms_larger(largest, first), second);
        store_parts(first, second, parts, to + t * TILE + pair * 32, 2 * TILE);
    }
    return largest;
}

static inline __attribute__((always_inline)) __m512i split_steps(const float *from, int64_t depths, const int parts,
                                                                 uint16_t *to)
{
    __m512i largest = _mm512_setzero_si512();
    for (; depths > 0;
         depths -= PRN_BF16X3_DEPTH, from += PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS, to += 2 * TILE * parts)
        for (int64_t pair = 0; pair < 16; pair++)
            largest = _mm512_max_epu32(largest, split_pair(from, pair, depths, parts, to));
    return largest;
}

static bool bf16x3_split_panel(const float *from, int64_t depths, int parts, uint16_t *to)
{
    return all_have_parts(parts == 3   ? split_steps(from, depths, 3, to)
                          : parts == 2 ? split_steps(from, depths, 2, to)
                                       : split_steps(from, depths, 1, to));
}

static void bf16x3_split_store(const float *c, int64_t rows, const float *bias, const float *added, float low,
                               float high, float *y)
{
    const __m512 start = _mm512_loadu_ps(bias), least = _mm512_set1_ps(low), most = _mm512_set1_ps(high);
    for (int64_t r = 0; r < rows; r++, c += PRN_BF16X3_COLUMNS, y += 16) {
        __m512 sum = _mm512_add_ps(_mm512_loadu_ps(c), start);
        if (added) sum = _mm512_add_ps(sum, _mm512_loadu_ps(added + r * 16));
        _mm512_storeu_ps(y, _mm512_min_ps(most, _mm512_max_ps(least, sum))); /* of NaN and a number the second is
                                                                                taken */
    }
}

#endif
