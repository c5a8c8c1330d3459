/* The loops of ops/loops/code_dot.h for one instruction set (PRN_SIMD names it): products, finishing and depthwise
 * convolutions stand in headers of their own.
 *
 * Sums are whole numbers and wrap around, so tiles, vectors and plain loops give the same bits. */
#include "ops/loops/code_depthwise.h"

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

static void largest_u8(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)
{
    largest_of(tap, taps, channels, false, y);
}

static void largest_i8(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)
{
    largest_of(tap, taps, channels, true, y);
}

#else

#define LARGEST(name, type)                                                                                            \
    static void largest_##name(const uint8_t *const *tap, int64_t taps, int64_t channels, uint8_t *y)                  \
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

static void largest(const uint8_t *const *tap, int64_t taps, int64_t channels, bool is_signed, uint8_t *y)
{
    if (is_signed)
        largest_i8(tap, taps, channels, y);
    else
        largest_u8(tap, taps, channels, y);
}

const prn_code_dot PRN_SIMD_TABLE(prn_code_dot_) = {.name = PRN_SIMD_NAME,
#if defined(__AVX2__) && !WIDE
                                                    .splits = true,
                                                    .turn = turn,
                                                    .excess = excess,
#endif
                                                    .begin = begin,
                                                    .end = end,
                                                    .block = block,
                                                    .finish = finish,
                                                    .copy = copy,
                                                    .depthwise_pack = depthwise_pack,
                                                    .depthwise_order = depthwise_order,
                                                    .depthwise = depthwise,
                                                    .add = add,
                                                    .largest = largest};
