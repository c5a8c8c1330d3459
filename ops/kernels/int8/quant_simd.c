/* The loops of ops/kernels/int8/quant_simd.h for one instruction set (PRN_SIMD names it).
 *
 * The product multiplies pairs of 16-bit numbers and adds each pair's two products, which every x86 does in one
 * instruction; operands of 8 bits less a zero point of 8 bits fit. Invariant: none of the loops depends on where an
 * array begins. */
#include "ops/kernels/int8/quant_simd.h"
#include "ops/kernels/vector/vec_math.h"
#include "ops/kernels/int8/int16_pairs.h"

enum { ROWS = PAIR_LANES == 16 ? 12 : 6, COLUMNS = 2 * PAIR_LANES };

static inline __attribute__((always_inline)) void quant_simd_tile_of(const int16_t *a, int64_t rs_a, const int rows,
                                                                     const int16_t *b, int64_t pairs, int32_t *c,
                                                                     int64_t rs_c, bool add)
{
    pair_tile(a, rs_a, rows, b, 2 * COLUMNS, pairs, c, rs_c, add);
}

static void quant_simd_tile(const int16_t *a, int64_t rs_a, int64_t rows, const int16_t *b, int64_t pairs, int32_t *c,
                            int64_t rs_c, bool add)
{
    for (; rows >= ROWS; rows -= ROWS, a += ROWS * rs_a, c += ROWS * rs_c) {
        quant_simd_tile_of(a, rs_a, ROWS, b, pairs, c, rs_c, add);
    }
    for (; rows >= 4; rows -= 4, a += 4 * rs_a, c += 4 * rs_c) quant_simd_tile_of(a, rs_a, 4, b, pairs, c, rs_c, add);
    for (; rows >= 2; rows -= 2, a += 2 * rs_a, c += 2 * rs_c) quant_simd_tile_of(a, rs_a, 2, b, pairs, c, rs_c, add);
    if (rows > 0) quant_simd_tile_of(a, rs_a, 1, b, pairs, c, rs_c, add);
}

#define WIDEN(name, type)                                                                                              \
    static void widen_##name(int16_t *to, const type *from, int64_t step, int64_t n, int32_t zero)                     \
    {                                                                                                                  \
        const int16_t z = (int16_t)zero;                                                                               \
        if (step == 1) {                                                                                               \
            for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(from[i] - z);                                            \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(from[i * step] - z);                                     \
        }                                                                                                              \
    }
WIDEN(u8, uint8_t)
WIDEN(i8, int8_t)

static void interleave(int16_t *restrict to, const int16_t *restrict even, const int16_t *restrict odd, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[2 * i] = even[i];
        to[2 * i + 1] = odd[i];
    }
}

static void quant_simd_add_scaled(int32_t *restrict y, const int16_t *restrict x, int64_t step, int32_t w, int64_t n)
{
    uint32_t *sums = (uint32_t *)y;
    if (step == 1) {
        for (int64_t i = 0; i < n; i++) sums[i] += (uint32_t)(w * x[i]);
    } else {
        for (int64_t i = 0; i < n; i++) sums[i] += (uint32_t)(w * x[i * step]);
    }
}

/* Beyond this every result is at an end of the range, zero points included; adding 1.5 * 2^23 to anything within rounds
 * it, half to even. */
#define FAR 1048576.0f
#define ROUNDING 12582912.0f

VEC_INLINE vf kept_within(vf x, float low, float high)
{
    x = v_select(x > low, x, v_splat(low)); /* NaN is low */
    return v_select(x < high, x, v_splat(high));
}

VEC_INLINE vf quant_simd_rounded(vf x)
{
    return (kept_within(x, -FAR, FAR) + ROUNDING) - ROUNDING;
}

enum { CODES = 64 };

#define QUANTIZE(name, type, low, high)                                                                                \
    static void quantize_##name(type *restrict y, const float *restrict x, const float *restrict zero, int64_t n)      \
    {                                                                                                                  \
        int32_t codes[CODES + VEC_LANES];                                                                              \
        for (int64_t first = 0; first < n; first += CODES) {                                                           \
            const int64_t count = n - first < CODES ? n - first : CODES;                                               \
            for (int64_t i = 0; i < count; i += VEC_LANES) {                                                           \
                const int64_t left = count - i;                                                                        \
                const vf v = quant_simd_rounded(v_load_part(x + first + i, left, 0.0f)) +                              \
                             v_load_part(zero + first + i, left, 0.0f);                                                \
                const vi code = __builtin_convertvector(kept_within(v, low, high), vi);                                \
                memcpy(codes + i, &code, sizeof code);                                                                 \
            }                                                                                                          \
            for (int64_t i = 0; i < count; i++) y[first + i] = (type)codes[i];                                         \
        }                                                                                                              \
    }
QUANTIZE(u8, uint8_t, 0.0f, 255.0f)
QUANTIZE(i8, int8_t, -128.0f, 127.0f)

#define DEQUANTIZE(name, type)                                                                                         \
    static void dequantize_##name(float *restrict y, const type *restrict x, const float *restrict zero,               \
                                  const float *restrict scale, int64_t n)                                              \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero[i]) * scale[i];                                     \
    }
DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(i8, int8_t)

#define DEQUANTIZE_FLAT(name, type)                                                                                    \
    static void dequantize_flat_##name(float *restrict y, const type *restrict x, float zero, float scale, int64_t n)  \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero) * scale;                                           \
    }
DEQUANTIZE_FLAT(u8, uint8_t)
DEQUANTIZE_FLAT(i8, int8_t)

static void scale_i32(float *restrict y, const int32_t *restrict x, const float *restrict scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)x[i] * scale[i];
}

const prn_quant_simd PRN_SIMD_TABLE(prn_quant_simd_) = {.name = PRN_SIMD_NAME,
                                                        .rows = ROWS,
                                                        .columns = COLUMNS,
                                                        .tile = quant_simd_tile,
                                                        .widen_u8 = widen_u8,
                                                        .widen_i8 = widen_i8,
                                                        .interleave = interleave,
                                                        .add_scaled = quant_simd_add_scaled,
                                                        .quantize_u8 = quantize_u8,
                                                        .quantize_i8 = quantize_i8,
                                                        .dequantize_u8 = dequantize_u8,
                                                        .dequantize_i8 = dequantize_i8,
                                                        .dequantize_flat_u8 = dequantize_flat_u8,
                                                        .dequantize_flat_i8 = dequantize_flat_i8,
                                                        .scale_i32 = scale_i32};
