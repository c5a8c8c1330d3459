/* The number types that operators compute with: how each is stored, what it is computed in, and conversion among them.
 * No bit pattern is undefined behaviour.
 */
#ifndef PRN_OPS_KERNELS_VECTOR_NUMBER_H
#define PRN_OPS_KERNELS_VECTOR_NUMBER_H

#include "prony.h"

#include <math.h>
#include <string.h>

/* X(P, DTYPE, name, storage, work, load, store): `load` maps storage to work, `store` maps work to storage; P is handed
 * through. */
#define PRN_FLOAT_TYPES(X, P)                                                                                          \
    X(P, FLOAT32, f32, float, float, prn_as_is, prn_as_is)                                                             \
    X(P, FLOAT64, f64, double, double, prn_as_is, prn_as_is)                                                           \
    X(P, FLOAT16, f16, uint16_t, float, prn_f16_to_f32, prn_f32_to_f16)                                                \
    X(P, BFLOAT16, bf16, uint16_t, float, prn_bf16_to_f32, prn_f32_to_bf16)
#define PRN_SIGNED_TYPES(X, P)                                                                                         \
    X(P, INT8, i8, int8_t, int64_t, prn_as_is, (int8_t))                                                               \
    X(P, INT16, i16, int16_t, int64_t, prn_as_is, (int16_t))                                                           \
    X(P, INT32, i32, int32_t, int64_t, prn_as_is, (int32_t))                                                           \
    X(P, INT64, i64, int64_t, int64_t, prn_as_is, prn_as_is)
#define PRN_UNSIGNED_TYPES(X, P)                                                                                       \
    X(P, UINT8, u8, uint8_t, uint64_t, prn_as_is, (uint8_t))                                                           \
    X(P, UINT16, u16, uint16_t, uint64_t, prn_as_is, (uint16_t))                                                       \
    X(P, UINT32, u32, uint32_t, uint64_t, prn_as_is, (uint32_t))                                                       \
    X(P, UINT64, u64, uint64_t, uint64_t, prn_as_is, prn_as_is)
#define PRN_BOOL_TYPES(X, P) X(P, BOOL, b8, uint8_t, uint64_t, prn_as_is, (uint8_t))
#define PRN_INTEGER_TYPES(X, P) PRN_SIGNED_TYPES(X, P) PRN_UNSIGNED_TYPES(X, P)
#define PRN_NUMBER_TYPES(X, P) PRN_FLOAT_TYPES(X, P) PRN_INTEGER_TYPES(X, P)
#define PRN_NUMBER_BOOL_TYPES(X, P) PRN_NUMBER_TYPES(X, P) PRN_BOOL_TYPES(X, P)
#define prn_as_is(x) (x)

#define PRN_TYPES_FLOAT                                                                                                \
    (PRN_TYPE(PRONY_FLOAT32) | PRN_TYPE(PRONY_FLOAT64) | PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16))
#define PRN_TYPES_SIGNED (PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_INT16) | PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64))
#define PRN_TYPES_UNSIGNED                                                                                             \
    (PRN_TYPE(PRONY_UINT8) | PRN_TYPE(PRONY_UINT16) | PRN_TYPE(PRONY_UINT32) | PRN_TYPE(PRONY_UINT64))
#define PRN_TYPES_INTEGER (PRN_TYPES_SIGNED | PRN_TYPES_UNSIGNED)
#define PRN_TYPES_NUMBER (PRN_TYPES_FLOAT | PRN_TYPES_INTEGER)
#define PRN_TYPES_NUMBER_BOOL (PRN_TYPES_NUMBER | PRN_TYPE(PRONY_BOOL))

static inline uint32_t prn_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float prn_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Rounds half to even; overflow gives infinity. */
static inline uint16_t prn_f32_to_f16(float x)
{
    const uint32_t bits = prn_f32_bits(x), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint32_t half;
    if (size > 0x7f800000u) {
        half = 0x7e00u;
    } else if (size >= 0x477ff000u) { /* 65520 */
        half = 0x7c00u;
    } else if (size >= 0x38800000u) { /* 2^-14 */
        half = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    } else { /* multiples of 2^-24, which is the last place of 1/2 */
        half = prn_f32_bits(prn_f32_from_bits(size) + 0.5f) - 0x3f000000u;
    }
    return (uint16_t)(sign | half);
}

/* Free of branches: moved into place, the exponent is too small by 112, whatever it is. */
static inline float prn_f16_to_f32(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, size = (uint32_t)(half & 0x7fffu) << 13;
    const uint32_t finite = prn_f32_bits(prn_f32_from_bits(size) * 0x1p112f), special = size | 0x7f800000u;
    return prn_f32_from_bits(sign | (size >= 0x0f800000u ? special : finite));
}

static inline uint16_t prn_f32_to_bf16(float x)
{
    const uint32_t bits = prn_f32_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float prn_bf16_to_f32(uint16_t bits)
{
    return prn_f32_from_bits((uint32_t)bits << 16);
}

/* To odd, so that a later rounding to a shorter type is as if there had been only one. */
static inline float prn_f64_to_f32_odd(double x)
{
    const float nearest = (float)x;
    if ((double)nearest == x || isnan(x)) return nearest;
    uint32_t bits = prn_f32_bits(nearest);
    if (fabs((double)nearest) > fabs(x)) bits--;
    return prn_f32_from_bits(bits | 1u);
}

/* Toward zero; out of range gives the nearest end, NaN gives 0. */
static inline int64_t prn_f64_to_i64(double x)
{
    if (x >= 0x1p63) return INT64_MAX;
    if (x <= -0x1p63) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

static inline uint64_t prn_f64_to_u64(double x)
{
    if (x >= 0x1p64) return UINT64_MAX;
    return x > 0.0 ? (uint64_t)x : 0;
}

/* True if prn_convert and the element functions know the type: floats to 64 bits, 8 to 64 bit integers, bool. */
bool prn_dtype_is_number(prony_dtype dtype);

/* Converts n elements: floats round half to even, float to integer cuts off and saturates (NaN: 0), integers wrap, and
 * anything but 0 is true. Both types are numbers. The arrays are the same or apart; the same only if the elements are
 * equally large. */
void prn_convert(void *to, prony_dtype to_type, const void *from, prony_dtype from_type, int64_t n);

/* Elements [first, first + n) of a tensor as doubles or in 64 bits (unsigned ones keep their bits), and back by the
 * rules of prn_convert. Operators that have no loop for each type compute in blocks of PRN_BLOCK elements. */
enum { PRN_BLOCK = 256 };
static inline const void *prn_block_at(const void *data, prony_dtype dtype, int64_t first)
{
    return (const char *)data + prony_dtype_bytes(dtype, first);
}
static inline void prn_load_f64(double *to, const void *data, prony_dtype dtype, int64_t first, int64_t n)
{
    prn_convert(to, PRONY_FLOAT64, prn_block_at(data, dtype, first), dtype, n);
}
static inline void prn_store_f64(void *data, prony_dtype dtype, int64_t first, const double *from, int64_t n)
{
    prn_convert((char *)data + prony_dtype_bytes(dtype, first), dtype, from, PRONY_FLOAT64, n);
}
static inline void prn_load_i64(int64_t *to, const void *data, prony_dtype dtype, int64_t first, int64_t n)
{
    prn_convert(to, PRONY_INT64, prn_block_at(data, dtype, first), dtype, n);
}
static inline void prn_store_i64(void *data, prony_dtype dtype, int64_t first, const int64_t *from, int64_t n)
{
    prn_convert((char *)data + prony_dtype_bytes(dtype, first), dtype, from, PRONY_INT64, n);
}

/* One element as a double (64-bit integers may round), or put from a double by the rules of prn_convert. */
double prn_get_f64(const void *data, prony_dtype dtype, int64_t index);
void prn_put_f64(void *data, prony_dtype dtype, int64_t index, double x);
/* One element of an integer type or bool in 64 bits, and back; unsigned 64-bit values keep their bits. */
int64_t prn_get_i64(const void *data, prony_dtype dtype, int64_t index);
void prn_put_i64(void *data, prony_dtype dtype, int64_t index, int64_t x);

#endif
