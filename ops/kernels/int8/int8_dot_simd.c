/* The loops of ops/kernels/int8/int8_dot.h for one instruction set (PRN_SIMD names it): products, finishing and
 * depthwise convolutions stand in headers of their own.
 *
 * Sums are whole numbers and wrap around, so tiles, vectors and plain loops give the same bits. */
#include "ops/kernels/int8/int8_depthwise.h"

/* ---- windows */

#if WIDE

static inline __attribute__((always_inline)) void largest_of(const uint8_t *const *tap, int64_t taps, int64_t channels,
                                                             const bool is_signed, uint8_t *y)
{
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        const __mmask64 mask = channels - c >= CHANNELS ? ~UINT64_C(0) : (UINT64_C(1) << (channels - c)) - 1;
        __m512i best = _mm512_maskz_loadu_epi8(mask, tap[0] + c);
        for (int64_t t = 1; t < taps; t++) {
            const __m512i x = _mm512_maskz_loadu_epi8(mask, tap[t] + c);
            best = is_signed ? _mm512_max_epi8(best, x) : _mm512_max_epu8(best, x);
        }
        _mm512_mask_storeu_epi8(y + c, mask, best);
    }
}

static void int8_dot_simd_largest_u8(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)
{
    largest_of(tap, taps, channels, false, y);
}

static void int8_dot_simd_largest_i8(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)
{
    largest_of(tap, taps, channels, true, y);
}

#else

#define LARGEST(name, type)                                                                                            \
    static void int8_dot_simd_largest_##name(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)    \
    {                                                                                                                  \
        for (int64_t c = 0; c < channels; c += CHANNELS) {                                                             \
            const int64_t count = channels - c < CHANNELS ? channels - c : CHANNELS;                                   \
            type best[CHANNELS];                                                                                       \
            memcpy(best, tap[0] + c, (size_t)count);                                                                   \
            for (int64_t t = 1; t < taps; t++) {                                                                       \
                const type *x = (const type *)(tap[t] + c);                                                            \
                if (count == CHANNELS) {                                                                               \
                    for (int i = 0; i < CHANNELS; i++) best[i] = best[i] < x[i] ? x[i] : best[i];                      \
                } else {                                                                                               \
                    for (int64_t i = 0; i < count; i++) best[i] = best[i] < x[i] ? x[i] : best[i];                     \
                }                                                                                                      \
            }                                                                                                          \
            memcpy(y + c, best, (size_t)count);                                                                        \
        }                                                                                                              \
    }
LARGEST(u8, uint8_t)
LARGEST(i8, int8_t)

#endif

static void int8_dot_simd_largest(const uint8_t *const *tap, int64_t taps, int64_t channels, bool is_signed, uint8_t *y)
{
    if (is_signed)
        int8_dot_simd_largest_i8(tap, taps, channels, y);
    else
        int8_dot_simd_largest_u8(tap, taps, channels, y);
}

/* ---- tables */

#if WIDE

/* Entries of the codes in the low bytes of words: `table` as 128 words, of which two pairs of vectors are looked up
 * in. */
static inline __m512i int8_dot_simd_entries_of(const __m512i table[4], __m512i codes)
{
    const __m512i word = _mm512_srli_epi16(codes, 1), odd = _mm512_and_si512(codes, _mm512_set1_epi16(1));
    const __m512i low = _mm512_permutex2var_epi16(table[0], word, table[1]);
    const __m512i high = _mm512_permutex2var_epi16(table[2], word, table[3]);
    const __mmask32 upper = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x80));
    return _mm512_srlv_epi16(_mm512_mask_blend_epi16(upper, low, high), _mm512_slli_epi16(odd, 3));
}

static void int8_dot_simd_look_up(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n)
{
    const __m512i low_byte = _mm512_set1_epi16(0xff);
    __m512i words[4];
    for (int i = 0; i < 4; i++) words[i] = _mm512_loadu_si512(table + 64 * i);
    for (int64_t i = 0; i < n; i += 64) {
        const __mmask64 mask = n - i >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n - i)) - 1;
        const __m512i codes = _mm512_maskz_loadu_epi8(mask, x + i);
        const __m512i even =
            _mm512_and_si512(int8_dot_simd_entries_of(words, _mm512_and_si512(codes, low_byte)), low_byte);
        const __m512i odd = _mm512_slli_epi16(int8_dot_simd_entries_of(words, _mm512_srli_epi16(codes, 8)), 8);
        _mm512_mask_storeu_epi8(y + i, mask, _mm512_or_si512(even, odd));
    }
}

#else

#ifdef __AVX2__

/* The differences of neighbouring sixteenths of each half of the table: a code finds the entries of its own sixteenth
 * and of those before it in the half, whose exclusive or is its own entry; a negative index finds 0. */
static inline __m256i half_of(const __m256i differences[8], __m256i index)
{
    __m256i found = _mm256_shuffle_epi8(differences[0], index);
    PRN_UNROLL
    for (int i = 1; i < 8; i++) {
        index = _mm256_subs_epi8(index, _mm256_set1_epi8(16));
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(differences[i], index));
    }
    return found;
}

static int64_t look_up_by_32(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n)
{
    __m256i differences[2][8];
    int64_t i = 0;
    for (int s = 0; s < 16; s++) {
        __m128i part = _mm_loadu_si128((const void *)(table + 16 * s));
        if (s % 8) part = _mm_xor_si128(part, _mm_loadu_si128((const void *)(table + 16 * s - 16)));
        differences[s / 8][s % 8] = _mm256_broadcastsi128_si256(part);
    }
    for (; i + 32 <= n; i += 32) {
        const __m256i codes = load_8(x + i), other = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
        const __m256i found = _mm256_xor_si256(half_of(differences[0], codes), half_of(differences[1], other));
        _mm256_storeu_si256((void *)(y + i), found);
    }
    return i;
}

#else

static int64_t look_up_by_32(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n)
{
    (void)table, (void)x, (void)y, (void)n;
    return 0;
}

#endif

static void int8_dot_simd_look_up(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n)
{
    for (int64_t i = look_up_by_32(table, x, y, n); i < n; i++) y[i] = table[x[i]];
}

#endif

const prn_qint8_dot PRN_SIMD_TABLE(prn_qint8_dot_) = {.name = PRN_SIMD_NAME,
                                                      .panel_depths = PANEL_DEPTHS,
#if defined(__AVX2__) && !WIDE
                                                      .splits = true,
                                                      .turn = int16_dot_transpose,
                                                      .excess = int16_dot_excess,
                                                      .block = int16_dot_block,
#else
                                                      .block = int8_blocks_block,
#endif
                                                      .begin = int8_blocks_begin,
                                                      .end = end,
                                                      .finish = int8_epilogue_finish,
                                                      .copy = int8_epilogue_copy,
                                                      .depthwise_bytes = WEIGHT_BYTES,
                                                      .depthwise_pack = depthwise_pack,
                                                      .depthwise_order = depthwise_order,
                                                      .depthwise = depthwise,
                                                      .add = int8_epilogue_add,
                                                      .multiply = int8_epilogue_multiply,
                                                      .look_up = int8_dot_simd_look_up,
                                                      .largest = int8_dot_simd_largest};
