/* The element types that no operator computes in: 8-bit and 4-bit floats, 4-bit and 2-bit integers. The meaning of each
 * code, and conversion between them and everything else, defined for every bit pattern.
 *
 * A format has one sign bit (none for E8M0), then exponent and mantissa. FN has no infinity and one NaN per sign; FNUZ
 * has neither infinity nor -0, its NaN is the code that -0 would have.
 */
#ifndef PRN_OPS_KERNELS_LOWBIT_NARROW_TYPES_H
#define PRN_OPS_KERNELS_LOWBIT_NARROW_TYPES_H

#include "ops/kernels/vector/number.h"

typedef struct prn_float_format {
    uint8_t bits, mantissa, bias;
    uint8_t max;      /* code of the largest finite value */
    uint8_t overflow; /* code of what lies above it, before the sign */
    uint8_t nan;      /* code that NaN is stored as, before the sign */
    bool unsigned_zero;
} prn_float_format;

/* X(DTYPE, name, bits, mantissa, bias, max, overflow, nan, unsigned zero) */
#define PRN_NARROW_FLOATS(X)                                                                                           \
    X(FLOAT8E4M3FN, f8e4m3fn, 8, 3, 7, 0x7e, 0x7f, 0x7f, false)                                                        \
    X(FLOAT8E4M3FNUZ, f8e4m3fnuz, 8, 3, 8, 0x7f, 0x80, 0x80, true)                                                     \
    X(FLOAT8E5M2, f8e5m2, 8, 2, 15, 0x7b, 0x7c, 0x7e, false)                                                           \
    X(FLOAT8E5M2FNUZ, f8e5m2fnuz, 8, 2, 16, 0x7f, 0x80, 0x80, true)                                                    \
    X(FLOAT4E2M1, f4e2m1, 4, 1, 1, 0x7, 0x7, 0x8, false)

#define PRN_TYPES_FLOAT8                                                                                               \
    (PRN_TYPE(PRONY_FLOAT8E4M3FN) | PRN_TYPE(PRONY_FLOAT8E4M3FNUZ) | PRN_TYPE(PRONY_FLOAT8E5M2) |                      \
     PRN_TYPE(PRONY_FLOAT8E5M2FNUZ))
#define PRN_TYPES_NARROW_INTEGER                                                                                       \
    (PRN_TYPE(PRONY_INT4) | PRN_TYPE(PRONY_UINT4) | PRN_TYPE(PRONY_INT2) | PRN_TYPE(PRONY_UINT2))
#define PRN_TYPES_NARROW                                                                                               \
    (PRN_TYPES_FLOAT8 | PRN_TYPES_NARROW_INTEGER | PRN_TYPE(PRONY_FLOAT4E2M1) | PRN_TYPE(PRONY_FLOAT8E8M0))

/* The rule by which a value without an exact code is stored. */
typedef enum prn_e8m0_rounding { PRN_E8M0_UP, PRN_E8M0_DOWN, PRN_E8M0_NEAREST } prn_e8m0_rounding;
typedef struct prn_cast_rule {
    bool saturate;              /* 8-bit floats: beyond the range gives the largest value, not infinity or NaN */
    prn_e8m0_rounding rounding; /* powers of two only; everything else rounds half to even */
} prn_cast_rule;

static inline float prn_narrow_decode(const prn_float_format *format, uint8_t code)
{
    const uint32_t sign_bit = UINT32_C(1) << (format->bits - 1), size = code & (sign_bit - 1);
    const uint32_t sign = code & sign_bit ? UINT32_C(0x80000000) : 0;
    if (format->unsigned_zero && code == sign_bit) return NAN;
    if (size > format->max) {
        const bool infinite = size == format->overflow && format->overflow != format->nan;
        return prn_f32_from_bits(sign | (infinite ? UINT32_C(0x7f800000) : UINT32_C(0x7fc00000)));
    }
    if (size >> format->mantissa == 0) { /* multiples of the smallest value */
        const float unit = prn_f32_from_bits((uint32_t)(128 - format->bias - format->mantissa) << 23);
        const float value = (float)size * unit;
        return sign ? -value : value;
    }
    return prn_f32_from_bits(sign | ((size << (23 - format->mantissa)) + ((uint32_t)(127 - format->bias) << 23)));
}

/* Rounds x to the format, ties to even, subnormals included. Overflow saturates, or becomes what the format has for
 * it; NaN stays NaN. */
static inline uint8_t prn_narrow_encode(const prn_float_format *format, float x, bool saturate)
{
    const uint32_t bits = prn_f32_bits(x), size = bits & 0x7fffffffu, shift = 23u - format->mantissa;
    const uint8_t sign = (uint8_t)(bits >> 31 << (format->bits - 1));
    if (size > 0x7f800000u) return format->unsigned_zero ? format->nan : format->nan ^ sign;
    uint32_t code;
    if (size >= (uint32_t)(128 - format->bias) << 23) {
        const uint32_t rebased = size - ((uint32_t)(127 - format->bias) << 23);
        code = (rebased + (UINT32_C(1) << (shift - 1)) - 1 + (rebased >> shift & 1)) >> shift;
    } else { /* the last place of `unit` is the smallest value */
        const uint32_t unit = (uint32_t)(151 - format->bias - format->mantissa) << 23;
        code = prn_f32_bits(prn_f32_from_bits(size) + prn_f32_from_bits(unit)) - unit;
    }
    if (code > format->max) {
        if (saturate || format->overflow == format->max) {
            code = format->max;
        } else if (format->unsigned_zero) {
            return format->nan;
        } else {
            code = format->overflow;
        }
    }
    if (code == 0 && format->unsigned_zero) return 0;
    return (uint8_t)(code | sign);
}

/* Element i of an array of `bits`-wide codes, the first of them in the low bits of a byte. */
static inline uint8_t prn_qint8_get(const uint8_t *data, unsigned bits, int64_t i)
{
    if (bits == 8) return data[i];
    const unsigned per_byte = 8 / bits, at = (unsigned)(i % per_byte) * bits;
    return (uint8_t)((unsigned)data[i / per_byte] >> at & ((1u << bits) - 1));
}

/* In ascending order: the first of a byte clears those behind it. */
static inline void prn_qint8_put(uint8_t *data, unsigned bits, int64_t i, uint8_t code)
{
    if (bits == 8) {
        data[i] = code;
        return;
    }
    const unsigned per_byte = 8 / bits, at = (unsigned)(i % per_byte) * bits, mask = (1u << bits) - 1;
    const unsigned kept = at ? data[i / per_byte] : 0;
    data[i / per_byte] = (uint8_t)((kept & ~(mask << at)) | (code & mask) << at);
}

/* Powers of two from 2^-127 to 2^127 and NaN; signs and zero have no code of their own. */
static inline float prn_e8m0_decode(uint8_t code)
{
    if (code == 0xff) return NAN;
    return code ? prn_f32_from_bits((uint32_t)code << 23) : 0x1p-127f;
}

bool prn_dtype_is_narrow(prony_dtype dtype);

/* True if prn_cast knows the type: numbers, bool and the types above. */
bool prn_dtype_is_castable(prony_dtype dtype);

/* Converts n elements, from index `from_first` of one array to index `to_first` of another: numbers by the rules of
 * prn_convert, 4-bit and 2-bit integers keep the low bits. A packed array starts at a whole byte and, where another
 * thread writes what follows, ends at one. The arrays may be the same if the elements are equally wide. */
void prn_cast(void *to, prony_dtype to_type, int64_t to_first, const void *from, prony_dtype from_type,
              int64_t from_first, int64_t n, const prn_cast_rule *rule);

#endif
