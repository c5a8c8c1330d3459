/* Depthwise convolutions of codes, channels last, for one instruction set; for ops/kernels/int8/int8_dot_simd.c
 * alone. */
#ifndef PRN_OPS_KERNELS_INT8_INT8_DEPTHWISE_H
#define PRN_OPS_KERNELS_INT8_INT8_DEPTHWISE_H

#include "base/integers.h"
#include "ops/kernels/int8/int8_epilogue.h"

enum { CHANNELS = PRN_QINT8_CHANNELS };

#if WIDE

enum { WEIGHT_BYTES = 1 };

/* sum[i] += the four products of unsigned bytes x and signed bytes w in lane i */
static inline __m512i add_fours(__m512i sum, __m512i x, __m512i w)
{
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(sum, x, w);
#else
    const __m512i even_x = _mm512_and_si512(x, _mm512_set1_epi16(0xff)), odd_x = _mm512_srli_epi16(x, 8);
    const __m512i even_w = _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8), odd_w = _mm512_srai_epi16(w, 8);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(even_x, even_w));
    return _mm512_add_epi32(sum, _mm512_madd_epi16(odd_x, odd_w));
#endif
}

/* Bytes of four taps are interleaved within lanes of 16 channels, so a vector has four channels of each lane, with four
 * taps each: block of 64 channels, four taps, vector, lane, channel, tap. Packing codes undoes the order. If the
 * last block has no more than 32 or 16 channels, lanes take several positions, and its weights stand there as often. */
static int64_t width_of(int64_t left)
{
    return left > 32 ? 64 : left > 16 ? 32 : 16;
}

/* Channel of number `i` of a block: vectors, then lanes, then four. */
static int64_t int8_depthwise_channel_of(int64_t i, int64_t width)
{
    return 16 * (i / 4 % 4) % width + 4 * (i / 16) + i % 4;
}

static void depthwise_pack(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps)
{
    for (int64_t block_at = 0; block_at < channels; block_at += CHANNELS) {
        const int64_t width = width_of(channels - block_at);
        for (int64_t t = 0; t < padded_taps; t += 4) {
            for (int64_t i = 0; i < 4 * CHANNELS; i++) {
                const int64_t c = block_at + int8_depthwise_channel_of(i / 4, width), tap = t + i % 4;
                *to++ = c < channels && tap < taps ? w[c * taps + tap] : 0;
            }
        }
    }
}

static void depthwise_order(void *to, const void *from, int64_t channels)
{
    const char *numbers = from;
    char *ordered = to;
    for (int64_t block_at = 0; block_at < channels; block_at += CHANNELS) {
        for (int64_t i = 0; i < CHANNELS; i++, ordered += 4) {
            const int64_t c = block_at + int8_depthwise_channel_of(i, width_of(channels - block_at));
            if (c < channels)
                memcpy(ordered, numbers + 4 * c, 4);
            else
                memset(ordered, 0, 4);
        }
    }
}

/* The residual's codes of vector `vector`, widened. */
static inline __m512i residual_part(__m512i codes, int vector, bool is_signed)
{
    /* Bring the four bytes of each lane to its front, then widen lane by lane. */
    const __m512i from = _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12),
                                          _mm512_set1_epi32(vector));
    return widened(_mm512_castsi512_si128(_mm512_permutexvar_epi32(from, codes)), is_signed);
}

/* The places of a vector's bytes: 64 / width positions (`apart` bytes from each other; missing ones
 * point to the first) of `width` channels, of which `mask` says which there are. */
typedef struct spread {
    int64_t at[4];
    __mmask64 mask;
} spread;

static inline __attribute__((always_inline)) __m512i gathered(const uint8_t *p, const spread *s, const int64_t width)
{
    if (width == 64) return _mm512_maskz_loadu_epi8(s->mask, p + s->at[0]);
    if (width == 32) {
        const __mmask32 mask = (__mmask32)s->mask;
        const __m256i low = _mm256_maskz_loadu_epi8(mask, p + s->at[0]),
                      high = _mm256_maskz_loadu_epi8(mask, p + s->at[1]);
        return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    }
    const __mmask16 mask = (__mmask16)s->mask;
    __m512i v = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, p + s->at[0]));
    v = _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(mask, p + s->at[1]), 1);
    v = _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(mask, p + s->at[2]), 2);
    return _mm512_inserti32x4(v, _mm_maskz_loadu_epi8(mask, p + s->at[3]), 3);
}

static inline __attribute__((always_inline)) void
int8_depthwise_scatter(uint8_t *p, const spread *s, const int64_t width, int64_t positions, __m512i bytes)
{
    if (width == 64) {
        _mm512_mask_storeu_epi8(p + s->at[0], s->mask, bytes);
    } else if (width == 32) {
        const __mmask32 mask = (__mmask32)s->mask;
        _mm256_mask_storeu_epi8(p + s->at[0], mask, _mm512_castsi512_si256(bytes));
        if (positions > 1) _mm256_mask_storeu_epi8(p + s->at[1], mask, _mm512_extracti64x4_epi64(bytes, 1));
    } else {
        const __mmask16 mask = (__mmask16)s->mask;
        _mm_mask_storeu_epi8(p + s->at[0], mask, _mm512_castsi512_si128(bytes));
        if (positions > 1) _mm_mask_storeu_epi8(p + s->at[1], mask, _mm512_extracti32x4_epi32(bytes, 1));
        if (positions > 2) _mm_mask_storeu_epi8(p + s->at[2], mask, _mm512_extracti32x4_epi32(bytes, 2));
        if (positions > 3) _mm_mask_storeu_epi8(p + s->at[3], mask, _mm512_extracti32x4_epi32(bytes, 3));
    }
}

/* Adds the taps of a block of channels, four at a time. Constants after inlining: taps, or d->taps; width. */
static inline __attribute__((always_inline)) void depthwise_sums(const int8_t *w, const uint8_t *const *tap,
                                                                 const int64_t taps, const spread *s,
                                                                 const int64_t width, __m512i sign, __m512i sum[4])
{
    for (int64_t t = 0; t < taps; t += 4, w += 4 * CHANNELS) {
        const __m512i x0 = _mm512_xor_si512(gathered(tap[t], s, width), sign);
        const __m512i x1 = _mm512_xor_si512(gathered(tap[t + 1], s, width), sign);
        const __m512i x2 = _mm512_xor_si512(gathered(tap[t + 2], s, width), sign);
        const __m512i x3 = _mm512_xor_si512(gathered(tap[t + 3], s, width), sign);
        const __m512i low01 = _mm512_unpacklo_epi8(x0, x1), high01 = _mm512_unpackhi_epi8(x0, x1);
        const __m512i low23 = _mm512_unpacklo_epi8(x2, x3), high23 = _mm512_unpackhi_epi8(x2, x3);
        sum[0] = add_fours(sum[0], _mm512_unpacklo_epi16(low01, low23), _mm512_loadu_si512(w));
        sum[1] = add_fours(sum[1], _mm512_unpackhi_epi16(low01, low23), _mm512_loadu_si512(w + 64));
        sum[2] = add_fours(sum[2], _mm512_unpacklo_epi16(high01, high23), _mm512_loadu_si512(w + 128));
        sum[3] = add_fours(sum[3], _mm512_unpackhi_epi16(high01, high23), _mm512_loadu_si512(w + 192));
    }
}

/* The block of channels from number c on, at `count` positions. */
static inline __attribute__((always_inline)) void
depthwise_block(const prn_qint8_depthwise *d, const limits *l, const uint8_t *const *tap, int64_t c, const int64_t taps,
                const int64_t width, int64_t step, int64_t count, uint8_t flip, uint8_t *y, const uint8_t *residual)
{
    const prn_qint8_epilogue *f = &d->finish;
    const __m512i sign = _mm512_set1_epi8((char)flip);
    const int64_t left = d->channels - c, together = CHANNELS / width;
    const __mmask64 mask = left >= CHANNELS ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
    for (int64_t p = 0; p < count; p += together) {
        const int64_t positions = count - p < together ? count - p : together;
        spread in = {.mask = mask}, out = {.mask = mask};
        PRN_UNROLL
        for (int64_t i = 0; i < together; i++) {
            const int64_t at = i < positions ? p + i : p;
            in.at[i] = at * step + c;
            out.at[i] = at * d->channels + c;
        }
        __m512i sum[4], step_of[4];
        PRN_UNROLL
        for (int v = 0; v < 4; v++) sum[v] = _mm512_loadu_si512(f->bias + c + 16 * v);
        depthwise_sums(d->weights + c * taps, tap, taps, &in, width, sign, sum);
        const __m512i other = residual ? gathered(residual, &out, width) : sign;
        PRN_UNROLL
        for (int v = 0; v < 4; v++) {
            const __m512 scale = _mm512_loadu_ps(f->scale + c + 16 * v);
            step_of[v] = residual ? int8_epilogue_steps_of(f, l, sum[v], scale, true,
                                                           residual_part(other, v, f->residual_signed))
                                  : int8_epilogue_steps_of(f, l, sum[v], scale, false, sum[v]);
        }
        int8_depthwise_scatter(y, &out, width, positions, int8_epilogue_packed(f, l, step_of));
    }
}

static inline __attribute__((always_inline)) void depthwise_of(const prn_qint8_depthwise *d, const uint8_t *const *tap,
                                                               const int64_t taps, int64_t step, int64_t count,
                                                               uint8_t flip, uint8_t *y, const uint8_t *residual)
{
    const limits l = int8_epilogue_limits_of(&d->finish);
    for (int64_t c = 0; c < d->channels; c += CHANNELS) {
        const int64_t width = width_of(d->channels - c);
        if (width == 64)
            depthwise_block(d, &l, tap, c, taps, 64, step, count, flip, y, residual);
        else if (width == 32)
            depthwise_block(d, &l, tap, c, taps, 32, step, count, flip, y, residual);
        else
            depthwise_block(d, &l, tap, c, taps, 16, step, count, flip, y, residual);
    }
}

static void depthwise(const prn_qint8_depthwise *d, const uint8_t *const *tap, int64_t step, int64_t count,
                      uint8_t flip, uint8_t *y, const uint8_t *residual)
{
    if (d->taps == 12)
        depthwise_of(d, tap, 12, step, count, flip, y, residual);
    else
        depthwise_of(d, tap, d->taps, step, count, flip, y, residual);
}

#else

#ifdef __AVX2__

/* Two taps are interleaved and widened within lanes of 16 channels, so a vector has four channels of each of two lanes,
 * with two taps each: block of two lanes, two taps, vector, lane, channel, tap; weights have 16 bits. Packing codes
 * undoes the order. The last lanes begin where 16 channels are left, so that some channels are computed twice; of 16
 * channels alone, the second lane is the next position. Fewer are computed one by one. */
enum { LANE = 16, PAIR_WEIGHTS = 64, WEIGHT_BYTES = 2 };

static int64_t lane_start(int64_t lane, int64_t channels)
{
    return LANE * lane < channels - LANE ? LANE * lane : channels - LANE;
}

/* Channel of number `i` of a block: vectors, then lanes, then four. */
static int64_t int8_depthwise_channel_of(int64_t block_at, int64_t i, int64_t channels)
{
    return lane_start(2 * block_at + i / 4 % 2, channels) + 4 * (i / 8) + i % 4;
}

static int64_t blocks_of(int64_t channels)
{
    return (channels + 2 * LANE - 1) / (2 * LANE);
}

static void depthwise_pack(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps)
{
    int16_t *words = (int16_t *)(void *)to;
    memset(to, 0, (size_t)(blocks_of(channels) * 2 * LANE * padded_taps * WEIGHT_BYTES));
    for (int64_t k = 0; k < blocks_of(channels); k++) {
        for (int64_t t = 0; t < padded_taps; t += 2, words += PAIR_WEIGHTS) {
            for (int64_t i = 0; i < PAIR_WEIGHTS; i++) {
                const int64_t tap = t + i % 2,
                              c = channels < LANE ? i / 2 : int8_depthwise_channel_of(k, i / 2, channels);
                if (c < channels && tap < taps) words[i] = w[c * taps + tap];
            }
        }
    }
}

static void depthwise_order(void *to, const void *from, int64_t channels)
{
    const int64_t padded = prn_ceil_div(channels, CHANNELS) * CHANNELS;
    memset(to, 0, (size_t)padded * 4);
    for (int64_t i = 0; i < blocks_of(channels) * 2 * LANE; i++) {
        const int64_t c = channels < LANE ? i : int8_depthwise_channel_of(i / (2 * LANE), i % (2 * LANE), channels);
        if (c < channels) memcpy((char *)to + 4 * i, (const char *)from + 4 * c, 4);
    }
}

/* The places of a vector's two lanes. */
typedef struct spread {
    int64_t at[2];
} spread;

static inline __m256i gathered(const uint8_t *p, const spread *s)
{
    const __m128i low = _mm_loadu_si128((const void *)(p + s->at[0])),
                  high = _mm_loadu_si128((const void *)(p + s->at[1]));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* `flips` is a constant after inlining. */
static inline __attribute__((always_inline)) void depthwise_sums(const int16_t *w, const uint8_t *const *tap,
                                                                 int64_t taps, const spread *s, const bool flips,
                                                                 __m256i sum[4])
{
    const __m256i zero = _mm256_setzero_si256(), sign = _mm256_set1_epi8(-128);
    for (int64_t t = 0; t < taps; t += 2, w += PAIR_WEIGHTS) {
        __m256i x0 = gathered(tap[t], s), x1 = gathered(tap[t + 1], s);
        if (flips) {
            x0 = _mm256_xor_si256(x0, sign);
            x1 = _mm256_xor_si256(x1, sign);
        }
        const __m256i low = _mm256_unpacklo_epi8(x0, x1), high = _mm256_unpackhi_epi8(x0, x1);
        const __m256i words[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                                  _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
        PRN_UNROLL
        for (int v = 0; v < 4; v++) sum[v] = _mm256_add_epi32(sum[v], _mm256_madd_epi16(words[v], load_8(w + 16 * v)));
    }
}

/* The residual's codes of vector `vector`, widened, four at the front of each dword of 16 bits twice. */
static inline __m256i residual_part(__m256i codes, int vector, bool is_signed)
{
    const __m256i twice = vector < 2 ? _mm256_unpacklo_epi8(codes, codes) : _mm256_unpackhi_epi8(codes, codes);
    const __m256i four = vector % 2 ? _mm256_unpackhi_epi16(twice, twice) : _mm256_unpacklo_epi16(twice, twice);
    return is_signed ? _mm256_srai_epi32(four, 24) : _mm256_srli_epi32(four, 24);
}

/* The block of lanes 2 k and 2 k + 1, at `count` positions. */
static inline __attribute__((always_inline)) void depthwise_block(const prn_qint8_depthwise *d, const limits *l,
                                                                  const uint8_t *const *tap, int64_t k, int64_t step,
                                                                  int64_t count, const bool flips, uint8_t *y,
                                                                  const uint8_t *residual)
{
    const prn_qint8_epilogue *f = &d->finish;
    const int16_t *w = (const int16_t *)(const void *)d->weights + k * 2 * LANE * d->taps;
    const int64_t first = lane_start(2 * k, d->channels), second = lane_start(2 * k + 1, d->channels);
    const int64_t together = d->channels == LANE ? 2 : 1;
    for (int64_t p = 0; p < count; p += together) {
        const int64_t next = together == 2 && p + 1 < count ? p + 1 : p;
        const spread in = {{p * step + first, next * step + second}};
        const spread out = {{p * d->channels + first, next * d->channels + second}};
        __m256i sum[4], step_of[4];
        PRN_UNROLL
        for (int v = 0; v < 4; v++) sum[v] = load_8(f->bias + 2 * LANE * k + 8 * v);
        depthwise_sums(w, tap, d->used, &in, flips, sum);
        const __m256i other = residual ? gathered(residual, &out) : sum[0];
        PRN_UNROLL
        for (int v = 0; v < 4; v++) {
            const __m256 scale = _mm256_loadu_ps(f->scale + 2 * LANE * k + 8 * v);
            step_of[v] = residual ? int8_epilogue_steps_of(f, l, sum[v], scale, true,
                                                           residual_part(other, v, f->residual_signed))
                                  : int8_epilogue_steps_of(f, l, sum[v], scale, false, other);
        }
        const __m256i codes = int8_epilogue_packed(f, l, step_of);
        _mm_storeu_si128((void *)(y + out.at[0]), _mm256_castsi256_si128(codes));
        _mm_storeu_si128((void *)(y + out.at[1]), _mm256_extracti128_si256(codes, 1));
    }
}

/* Fewer channels than a lane has. */
static void depthwise_few(const prn_qint8_depthwise *d, const uint8_t *const *tap, int64_t at, uint8_t flip, uint8_t *y,
                          const uint8_t *residual)
{
    const int16_t *w = (const int16_t *)(const void *)d->weights;
    int32_t sums[COLUMNS] = {0}; /* all of a row is finished, what lies behind the channels too */
    for (int64_t c = 0; c < d->channels; c++) {
        uint32_t sum = 0;
        for (int64_t t = 0; t < d->used; t++)
            sum += (uint32_t)((tap[t][at + c] ^ flip) * w[t / 2 * PAIR_WEIGHTS + 2 * c + t % 2]);
        sums[c] = (int32_t)sum;
    }
    int8_epilogue_finish(&d->finish, sums, 1, 0, d->channels, y, 0, residual, 0);
}

static void depthwise(const prn_qint8_depthwise *d, const uint8_t *const *tap, int64_t step, int64_t count,
                      uint8_t flip, uint8_t *y, const uint8_t *residual)
{
    const limits l = int8_epilogue_limits_of(&d->finish);
    for (int64_t p = 0; p < count && d->channels < LANE; p++)
        depthwise_few(d, tap, p * step, flip, y + p * d->channels, residual ? residual + p * d->channels : NULL);
    for (int64_t k = 0; k < blocks_of(d->channels) && d->channels >= LANE; k++) {
        if (flip)
            depthwise_block(d, &l, tap, k, step, count, true, y, residual);
        else
            depthwise_block(d, &l, tap, k, step, count, false, y, residual);
    }
}

#else

enum { WEIGHT_BYTES = 1 };

/* Tap by tap, channels side by side. */
static void depthwise_pack(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps)
{
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        for (int64_t i = 0; i < padded_taps * CHANNELS; i++) {
            const int64_t tap = i / CHANNELS, channel = c + i % CHANNELS;
            *to++ = channel < channels && tap < taps ? w[channel * taps + tap] : 0;
        }
    }
}

static void depthwise_block(const uint8_t *const *tap, int64_t at, int64_t taps, const int8_t *w, int64_t count,
                            uint8_t flip, int32_t *sums)
{
    memset(sums, 0, CHANNELS * sizeof *sums);
    for (int64_t t = 0; t < taps; t++, w += CHANNELS) {
        const uint8_t *x = tap[t] + at;
        for (int64_t i = 0; i < count; i++) sums[i] += (x[i] ^ flip) * w[i];
    }
}

static void depthwise_order(void *to, const void *from, int64_t channels)
{
    const int64_t padded = prn_ceil_div(channels, CHANNELS) * CHANNELS;
    memcpy(to, from, (size_t)channels * 4);
    memset((char *)to + channels * 4, 0, (size_t)(padded - channels) * 4);
}

static void depthwise_position(const prn_qint8_depthwise *d, const uint8_t *const *tap, int64_t at, uint8_t flip,
                               uint8_t *y, const uint8_t *residual)
{
    for (int64_t c = 0; c < d->channels; c += CHANNELS) {
        const int64_t count = d->channels - c < CHANNELS ? d->channels - c : CHANNELS;
        int32_t sums[CHANNELS];
        depthwise_block(tap, at + c, d->taps, d->weights + c * d->taps, count, flip, sums);
        for (int64_t i = 0; i < count; i += COLUMNS) {
            const int64_t n = count - i < COLUMNS ? count - i : COLUMNS;
            int8_epilogue_finish(&d->finish, sums + i, 1, c + i, n, y + c + i, 0, residual ? residual + c + i : NULL,
                                 0);
        }
    }
}

static void depthwise(const prn_qint8_depthwise *d, const uint8_t *const *tap, int64_t step, int64_t count,
                      uint8_t flip, uint8_t *y, const uint8_t *residual)
{
    for (int64_t p = 0; p < count; p++) {
        depthwise_position(d, tap, p * step, flip, y + p * d->channels, residual ? residual + p * d->channels : NULL);
    }
}

#endif

#endif

#endif
