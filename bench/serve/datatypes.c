#include "bench/serve/datatypes.h"

#include <math.h>
#include <string.h>

static const char *const names[PRONY_DTYPE_COUNT] = {
    [PRONY_FLOAT32] = "FP32",
    [PRONY_UINT8] = "UINT8",
    [PRONY_INT8] = "INT8",
    [PRONY_UINT16] = "UINT16",
    [PRONY_INT16] = "INT16",
    [PRONY_INT32] = "INT32",
    [PRONY_INT64] = "INT64",
    [PRONY_STRING] = "BYTES",
    [PRONY_BOOL] = "BOOL",
    [PRONY_FLOAT16] = "FP16",
    [PRONY_FLOAT64] = "FP64",
    [PRONY_UINT32] = "UINT32",
    [PRONY_UINT64] = "UINT64",
    [PRONY_COMPLEX64] = "COMPLEX64",
    [PRONY_COMPLEX128] = "COMPLEX128",
    [PRONY_BFLOAT16] = "BF16",
    [PRONY_FLOAT8E4M3FN] = "FP8E4M3FN",
    [PRONY_FLOAT8E4M3FNUZ] = "FP8E4M3FNUZ",
    [PRONY_FLOAT8E5M2] = "FP8E5M2",
    [PRONY_FLOAT8E5M2FNUZ] = "FP8E5M2FNUZ",
    [PRONY_UINT4] = "UINT4",
    [PRONY_INT4] = "INT4",
    [PRONY_FLOAT4E2M1] = "FP4E2M1",
    [PRONY_FLOAT8E8M0] = "FP8E8M0",
    [PRONY_UINT2] = "UINT2",
    [PRONY_INT2] = "INT2",
};

const char *datatype_name(prony_dtype dtype)
{
    return (unsigned)dtype < PRONY_DTYPE_COUNT ? names[dtype] : NULL;
}

prony_dtype datatype_find(const char *name, size_t length)
{
    for (unsigned i = 0; i < PRONY_DTYPE_COUNT; i++)
        if (names[i] && strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return (prony_dtype)i;
    return PRONY_UNDEFINED;
}

bool datatype_integer(prony_dtype dtype, int64_t *least, uint64_t *most)
{
    switch (dtype) {
    case PRONY_UINT8:
        return *least = 0, *most = UINT8_MAX, true;
    case PRONY_INT8:
        return *least = INT8_MIN, *most = INT8_MAX, true;
    case PRONY_UINT16:
        return *least = 0, *most = UINT16_MAX, true;
    case PRONY_INT16:
        return *least = INT16_MIN, *most = INT16_MAX, true;
    case PRONY_UINT32:
        return *least = 0, *most = UINT32_MAX, true;
    case PRONY_INT32:
        return *least = INT32_MIN, *most = INT32_MAX, true;
    case PRONY_UINT64:
        return *least = 0, *most = UINT64_MAX, true;
    case PRONY_INT64:
        return *least = INT64_MIN, *most = INT64_MAX, true;
    default:
        return false;
    }
}

/* ---- narrow floats ---- */

typedef struct narrow_float {
    int exponent_bits, mantissa_bits, bias;
    bool infinities; /* as IEEE 754: the largest exponent holds infinities and NaNs */
    bool one_nan;    /* FN: all ones is NaN; FNUZ: minus zero is NaN, see `no_minus_zero` */
    bool no_minus_zero;
} narrow_float;

static double narrow_value(unsigned bits, narrow_float f)
{
    unsigned mantissa = bits & ((1U << f.mantissa_bits) - 1);
    unsigned exponent = bits >> f.mantissa_bits & ((1U << f.exponent_bits) - 1), all = (1U << f.exponent_bits) - 1;
    bool minus = bits >> (f.mantissa_bits + f.exponent_bits) & 1;
    if (f.no_minus_zero && minus && exponent == 0 && mantissa == 0) return NAN;
    if (f.infinities && exponent == all) return mantissa ? NAN : minus ? -INFINITY : INFINITY;
    if (f.one_nan && exponent == all && mantissa == (1U << f.mantissa_bits) - 1) return NAN;
    double value = exponent ? ldexp(1 + ldexp(mantissa, -f.mantissa_bits), (int)exponent - f.bias)
                            : ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
    return minus ? -value : value;
}

/* The layout of a type; exponent_bits 0: another kind of type. */
static narrow_float narrow_layout(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_FLOAT16:
        return (narrow_float){5, 10, 15, .infinities = true};
    case PRONY_BFLOAT16:
        return (narrow_float){8, 7, 127, .infinities = true};
    case PRONY_FLOAT8E4M3FN:
        return (narrow_float){4, 3, 7, .one_nan = true};
    case PRONY_FLOAT8E4M3FNUZ:
        return (narrow_float){4, 3, 8, .no_minus_zero = true};
    case PRONY_FLOAT8E5M2:
        return (narrow_float){5, 2, 15, .infinities = true};
    case PRONY_FLOAT8E5M2FNUZ:
        return (narrow_float){5, 2, 16, .no_minus_zero = true};
    case PRONY_FLOAT4E2M1:
        return (narrow_float){2, 1, 1, false, false, false};
    default:
        return (narrow_float){0};
    }
}

static double narrow_element(prony_dtype dtype, const void *data, size_t index)
{
    const uint8_t *bytes = data;
    if (dtype == PRONY_FLOAT8E8M0) return bytes[index] == UINT8_MAX ? NAN : ldexp(1, bytes[index] - 127);
    unsigned bits = dtype == PRONY_FLOAT16 || dtype == PRONY_BFLOAT16 ? ((const uint16_t *)data)[index]
                    : dtype == PRONY_FLOAT4E2M1                       ? bytes[index / 2] >> (index % 2 * 4) & 15U
                                                                      : bytes[index];
    return narrow_value(bits, narrow_layout(dtype));
}

/* The code of the magnitude. Codes of magnitudes ascend without gaps: a step of the code is a step of the mantissa,
 * also from the subnormal numbers to the normal ones and from one exponent to the next. */
static bool narrow_code(double magnitude, narrow_float f, unsigned *code)
{
    int exponent, least = 1 - f.bias;
    unsigned most = f.infinities ? (((1U << f.exponent_bits) - 1) << f.mantissa_bits) - 1
                                 : (1U << (f.exponent_bits + f.mantissa_bits)) - 1 - f.one_nan;
    frexp(magnitude, &exponent);
    exponent = magnitude > 0 && exponent - 1 > least ? exponent - 1 : least;
    double steps = nearbyint(ldexp(magnitude, f.mantissa_bits - exponent));
    if (exponent > 1 << f.exponent_bits) return false;
    *code = ((unsigned)(exponent - least) << f.mantissa_bits) + (unsigned)steps;
    return *code <= most;
}

bool datatype_set_float(prony_dtype dtype, void *data, size_t index, double value)
{
    uint8_t *bytes = data;
    unsigned code;
    int exponent;
    if (dtype == PRONY_FLOAT8E8M0) { /* powers of two alone */
        bool power = value > 0 && frexp(value, &exponent) == 0.5 && exponent >= -126 && exponent <= 128;
        if (power) bytes[index] = (uint8_t)(exponent + 126);
        return power;
    }
    const narrow_float f = narrow_layout(dtype);
    if (!isfinite(value) || !narrow_code(fabs(value), f, &code)) return false;
    if (signbit(value) && !(f.no_minus_zero && code == 0)) code |= 1U << (f.exponent_bits + f.mantissa_bits);
    if (dtype == PRONY_FLOAT16 || dtype == PRONY_BFLOAT16)
        ((uint16_t *)data)[index] = (uint16_t)code;
    else if (dtype == PRONY_FLOAT4E2M1)
        bytes[index / 2] = (uint8_t)(bytes[index / 2] | code << (index % 2 * 4));
    else
        bytes[index] = (uint8_t)code;
    return true;
}

bool datatype_is_packed(prony_dtype dtype)
{
    return dtype == PRONY_INT4 || dtype == PRONY_UINT4 || dtype == PRONY_INT2 || dtype == PRONY_UINT2;
}

bool datatype_set_packed(prony_dtype dtype, void *data, size_t index, int64_t value)
{
    bool is_signed = dtype == PRONY_INT4 || dtype == PRONY_INT2;
    unsigned bits = dtype == PRONY_INT4 || dtype == PRONY_UINT4 ? 4 : 2, each = 8 / bits;
    int64_t least = is_signed ? -(INT64_C(1) << (bits - 1)) : 0, most = (INT64_C(1) << (bits - is_signed)) - 1;
    if (value < least || value > most) return false;
    uint8_t *byte = (uint8_t *)data + index / each;
    *byte = (uint8_t)(*byte | ((uint64_t)value & ((1U << bits) - 1)) << (index % each * bits));
    return true;
}

/* Packed integers: low bits first. */
static int packed_element(prony_dtype dtype, const uint8_t *data, size_t index)
{
    bool is_signed = dtype == PRONY_INT4 || dtype == PRONY_INT2;
    unsigned bits = dtype == PRONY_INT4 || dtype == PRONY_UINT4 ? 4 : 2, each = 8 / bits;
    int value = data[index / each] >> (index % each * bits) & ((1 << bits) - 1);
    return is_signed && value >> (bits - 1) ? value - (1 << bits) : value;
}

/* ---- JSON ---- */

/* Nine digits give the same float32 back. */
static void put_float32(text_buffer *to, float value)
{
    if (value == floorf(value) && fabsf(value) < 1e7f)
        buffer_format(to, "%.0f", (double)value);
    else if (isfinite(value))
        buffer_format(to, "%.9g", (double)value);
    else
        buffer_text(to, "null");
}

static void put_float64(text_buffer *to, double value)
{
    if (isfinite(value))
        buffer_format(to, "%.17g", value);
    else
        buffer_text(to, "null");
}

/* An integer as JSON. The default are types of 4 and 2 bits, whose elements share bytes. */
static void put_integer(text_buffer *to, prony_dtype dtype, const void *data, size_t index)
{
    switch (dtype) {
    case PRONY_UINT8:
        buffer_format(to, "%u", ((const uint8_t *)data)[index]);
        break;
    case PRONY_INT8:
        buffer_format(to, "%d", ((const int8_t *)data)[index]);
        break;
    case PRONY_UINT16:
        buffer_format(to, "%u", ((const uint16_t *)data)[index]);
        break;
    case PRONY_INT16:
        buffer_format(to, "%d", ((const int16_t *)data)[index]);
        break;
    case PRONY_UINT32:
        buffer_format(to, "%u", ((const uint32_t *)data)[index]);
        break;
    case PRONY_INT32:
        buffer_format(to, "%d", ((const int32_t *)data)[index]);
        break;
    case PRONY_UINT64:
        buffer_format(to, "%llu", (unsigned long long)((const uint64_t *)data)[index]);
        break;
    case PRONY_INT64:
        buffer_format(to, "%lld", (long long)((const int64_t *)data)[index]);
        break;
    default:
        buffer_format(to, "%d", packed_element(dtype, data, index));
    }
}

/* Element `index` of a tensor as JSON. A float of less than 32 bits becomes the double of its value, and a complex
 * number [re, im]. NaN and infinity become null, since JSON lacks them. */
void datatype_put(text_buffer *to, prony_dtype dtype, const void *data, size_t index)
{
    const prony_string *text = data;
    switch (dtype) {
    case PRONY_FLOAT32:
        put_float32(to, ((const float *)data)[index]);
        break;
    case PRONY_FLOAT64:
        put_float64(to, ((const double *)data)[index]);
        break;
    case PRONY_BOOL:
        buffer_text(to, ((const uint8_t *)data)[index] ? "true" : "false");
        break;
    case PRONY_STRING:
        buffer_json(to, text[index].size ? text[index].data : "", text[index].size);
        break;
    case PRONY_COMPLEX64:
        buffer_text(to, "[");
        put_float32(to, ((const float *)data)[2 * index]);
        buffer_text(to, ",");
        put_float32(to, ((const float *)data)[2 * index + 1]);
        buffer_text(to, "]");
        break;
    case PRONY_COMPLEX128:
        buffer_text(to, "[");
        put_float64(to, ((const double *)data)[2 * index]);
        buffer_text(to, ",");
        put_float64(to, ((const double *)data)[2 * index + 1]);
        buffer_text(to, "]");
        break;
    case PRONY_FLOAT16:
    case PRONY_BFLOAT16:
    case PRONY_FLOAT8E4M3FN:
    case PRONY_FLOAT8E4M3FNUZ:
    case PRONY_FLOAT8E5M2:
    case PRONY_FLOAT8E5M2FNUZ:
    case PRONY_FLOAT8E8M0:
    case PRONY_FLOAT4E2M1:
        put_float64(to, narrow_element(dtype, data, index));
        break;
    default:
        put_integer(to, dtype, data, index);
    }
}
