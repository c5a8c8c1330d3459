/* The conversion loops behind prn_convert, compiled once per instruction set: every number type is loaded into the type
 * that it is computed in (its work form) and stored from there. For ops/kernels/vector/number.c and ops/kernels/vector/number_simd.c
 * alone. No state, thread-safe. */
#ifndef PRN_OPS_KERNELS_VECTOR_NUMBER_SIMD_H
#define PRN_OPS_KERNELS_VECTOR_NUMBER_SIMD_H

#include "ops/kernels/vector/number.h"

typedef enum prn_work {
    PRN_WORK_float,
    PRN_WORK_double,
    PRN_WORK_int32_t,
    PRN_WORK_int64_t,
    PRN_WORK_uint64_t,
    PRN_WORK_COUNT
} prn_work;

/* W(DTYPE, name, storage, work form, load): integers that fit are converted by way of 32 bits. */
#define PRN_HALF_WORK_FORM(W) W(FLOAT16, f16, uint16_t, float, prn_f16_to_f32)
#define PRN_OTHER_WORK_FORMS(W)                                                                                        \
    W(FLOAT32, f32, float, float, prn_as_is)                                                                           \
    W(FLOAT64, f64, double, double, prn_as_is)                                                                         \
    W(BFLOAT16, bf16, uint16_t, float, prn_bf16_to_f32)                                                                \
    W(INT8, i8, int8_t, int32_t, prn_as_is)                                                                            \
    W(INT16, i16, int16_t, int32_t, prn_as_is)                                                                         \
    W(INT32, i32, int32_t, int32_t, prn_as_is)                                                                         \
    W(INT64, i64, int64_t, int64_t, prn_as_is)                                                                         \
    W(UINT8, u8, uint8_t, int32_t, prn_as_is)                                                                          \
    W(UINT16, u16, uint16_t, int32_t, prn_as_is)                                                                       \
    W(UINT32, u32, uint32_t, int64_t, prn_as_is)                                                                       \
    W(UINT64, u64, uint64_t, uint64_t, prn_as_is)                                                                      \
    W(BOOL, b8, uint8_t, int32_t, prn_as_is)

static inline uint16_t prn_f64_to_f16(double x)
{
    return prn_f32_to_f16(prn_f64_to_f32_odd(x));
}

static inline uint16_t prn_f64_to_bf16(double x)
{
    return prn_f32_to_bf16(prn_f64_to_f32_odd(x));
}

/* Cut off, kept between low and high, which are whole; NaN gives 0. */
static inline int32_t prn_cut_f32(float x, float low, float high)
{
    x = x == x ? x : 0.0f;
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (int32_t)x;
}

static inline int32_t prn_cut_f64(double x, double low, double high)
{
    x = x == x ? x : 0.0;
    x = x > low ? x : low;
    x = x < high ? x : high;
    return (int32_t)x;
}

static inline int32_t prn_f32_to_i32(float x)
{
    const int32_t within = prn_cut_f32(x, -0x1p31f, 0x1.fffffep30f);
    return x >= 0x1p31f ? INT32_MAX : within;
}

static inline uint32_t prn_f64_to_u32(double x)
{
    const uint64_t value = prn_f64_to_u64(x);
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Y(DTYPE, name, storage, from float, from double, from an integer) */
#define PRN_HALF_TARGET(Y) Y(FLOAT16, f16, uint16_t, prn_f32_to_f16(x), prn_f64_to_f16(x), prn_f64_to_f16((double)x))
#define PRN_OTHER_TARGETS(Y)                                                                                           \
    Y(FLOAT32, f32, float, x, (float)x, (float)x)                                                                      \
    Y(FLOAT64, f64, double, (double)x, x, (double)x)                                                                   \
    Y(BFLOAT16, bf16, uint16_t, prn_f32_to_bf16(x), prn_f64_to_bf16(x), prn_f64_to_bf16((double)x))                    \
    Y(INT8, i8, int8_t, (int8_t)prn_cut_f32(x, -128.0f, 127.0f), (int8_t)prn_cut_f64(x, -128.0, 127.0), (int8_t)x)     \
    Y(INT16, i16, int16_t, (int16_t)prn_cut_f32(x, -32768.0f, 32767.0f), (int16_t)prn_cut_f64(x, -32768.0, 32767.0),   \
      (int16_t)x)                                                                                                      \
    Y(INT32, i32, int32_t, prn_f32_to_i32(x), prn_cut_f64(x, -0x1p31, 0x1p31 - 1.0), (int32_t)x)                       \
    Y(INT64, i64, int64_t, prn_f64_to_i64((double)x), prn_f64_to_i64(x), (int64_t)x)                                   \
    Y(UINT8, u8, uint8_t, (uint8_t)prn_cut_f32(x, 0.0f, 255.0f), (uint8_t)prn_cut_f64(x, 0.0, 255.0), (uint8_t)x)      \
    Y(UINT16, u16, uint16_t, (uint16_t)prn_cut_f32(x, 0.0f, 65535.0f), (uint16_t)prn_cut_f64(x, 0.0, 65535.0),         \
      (uint16_t)x)                                                                                                     \
    Y(UINT32, u32, uint32_t, prn_f64_to_u32((double)x), prn_f64_to_u32(x), (uint32_t)x)                                \
    Y(UINT64, u64, uint64_t, prn_f64_to_u64((double)x), prn_f64_to_u64(x), (uint64_t)x)                                \
    Y(BOOL, b8, uint8_t, x != 0.0f, x != 0.0, x != 0)

typedef void (*prn_number_fn)(void *to, const void *from, int64_t n);

typedef struct prn_number_simd {
    prn_number_fn load[PRONY_DTYPE_COUNT]; /* into the work form; to and from are apart */
    prn_number_fn store[PRONY_DTYPE_COUNT][PRN_WORK_COUNT];
} prn_number_simd;

#endif
