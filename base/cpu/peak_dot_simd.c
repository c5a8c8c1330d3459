/* The rate of products of bfloat16 on tiles, or on vectors, for one instruction set (PRN_SIMD names it). */
#include "base/cpu/peak.h"
#include "base/cpu/simd.h"

#if defined(PRN_TILES_BF16)

#include <immintrin.h>

enum { ELEMENTS = 512 }; /* of a tile: 16 rows of 32 */

/* Four 16 x 16 sums, of two tiles by two. Operands are not zero, because processors save power on zeros and run
 * faster. */
static double products(int64_t rounds, double *flops)
{
    static const struct {
        uint8_t palette, start_row, none[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _Alignas(64) uint16_t operands[4][ELEMENTS];
    _Alignas(64) float sums[4][ELEMENTS / 2];
    uint32_t random = 1;
    for (int i = 0; i < 4 * ELEMENTS; i++) {
        random = random * 1664525u + 1013904223u;
        operands[i / ELEMENTS][i % ELEMENTS] = (uint16_t)((random >> 16 & 0x807f) | 0x3f00); /* +-0.5 to 1 */
    }
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(&shapes);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, operands[0], 64);
    _tile_loadd(5, operands[1], 64);
    _tile_loadd(6, operands[2], 64);
    _tile_loadd(7, operands[3], 64);
    for (int64_t r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums[0], 64);
    _tile_stored(1, sums[1], 64);
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
    _tile_release();
    __asm__ volatile("" ::: "memory");
    *flops = (double)rounds * 4 * 2 * 16 * 16 * 32;
    double total = 0;
    for (int i = 0; i < 4; i++) total += (double)sums[i][0];
    return total;
}

#elif defined(__AVX512BF16__)

#include <immintrin.h>

enum { SUMS = 16 };

/* Enough vectors of sums that none waits for its last product. Operands are not zero, as above. */
static double products(int64_t rounds, double *flops)
{
    __m512 sums[SUMS];
    uint32_t random[16];
    for (int i = 0; i < 16; i++) random[i] = (uint32_t)(i + 1) * 2654435761u;
    /* +-0.5 to 1 */
    const __m512i bits = _mm512_and_si512(_mm512_loadu_si512(random), _mm512_set1_epi32((int)0x807f807f));
    const __m512bh left = (__m512bh)_mm512_or_si512(bits, _mm512_set1_epi32(0x3f003f00));
    const __m512bh right = (__m512bh)_mm512_or_si512(_mm512_ror_epi32(bits, 16), _mm512_set1_epi32(0x3f003f00));
    PRN_UNROLL
    for (int i = 0; i < SUMS; i++) sums[i] = _mm512_set1_ps((float)i); /* the compiler would merge equal sums */
    for (int64_t r = 0; r < rounds; r++) {
        PRN_UNROLL
        for (int i = 0; i < SUMS; i++) sums[i] = _mm512_dpbf16_ps(sums[i], left, right);
    }
    *flops = (double)rounds * SUMS * 2 * 32;
    double total = 0;
    for (int i = 0; i < SUMS; i++) total += (double)_mm512_reduce_add_ps(sums[i]);
    return total;
}

#else
#define products NULL
#endif

const prn_peak_tiles PRN_SIMD_TABLE(prn_peak_tiles_) = {.bf16 = products};
