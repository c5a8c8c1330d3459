/* Elements are widened to long double, which is exact for every type, also for 64-bit integers. */
#include "bench/session/value_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef long double number;

/* Bits of a small floating-point type: sign, exponent, mantissa. `top`: number of highest codes that are not finite;
 * `fnuz`: the code of -0 is NaN. */
typedef struct float_code {
    int bits, mantissa, bias;
    unsigned top;
    bool infinity, fnuz;
} float_code;

static float_code value_compare_code_of(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_FLOAT16:
        return (float_code){16, 10, 15, 1024, true, false};
    case PRONY_BFLOAT16:
        return (float_code){16, 7, 127, 128, true, false};
    case PRONY_FLOAT8E4M3FN:
        return (float_code){8, 3, 7, 1, false, false};
    case PRONY_FLOAT8E4M3FNUZ:
        return (float_code){8, 3, 8, 0, false, true};
    case PRONY_FLOAT8E5M2:
        return (float_code){8, 2, 15, 4, true, false};
    case PRONY_FLOAT8E5M2FNUZ:
        return (float_code){8, 2, 16, 0, false, true};
    default: /* float4e2m1 */
        return (float_code){4, 1, 1, 0, false, false};
    }
}

static number value_compare_decode(float_code code, unsigned bits)
{
    unsigned sign = 1u << (code.bits - 1), size = bits & (sign - 1), fraction = size & ((1u << code.mantissa) - 1);
    int exponent = (int)(size >> code.mantissa);
    number value = exponent ? ldexpl((number)(fraction + (1u << code.mantissa)), exponent - code.bias - code.mantissa)
                            : ldexpl((number)fraction, 1 - code.bias - code.mantissa);
    if (code.fnuz && bits == sign) return NAN;
    if (size >= sign - code.top) value = code.infinity && fraction == 0 ? INFINITY : NAN;
    return bits & sign ? -value : value;
}

/* Element i of a type of 1, 2 or 4 bits, low bits first. */
static unsigned value_compare_packed(const prony_value *value, int64_t i, unsigned width)
{
    unsigned per_byte = 8 / width, byte = ((const uint8_t *)value->data)[i / per_byte];
    return byte >> (unsigned)(i % per_byte) * width & ((1u << width) - 1);
}

static number sign_extend(unsigned bits, unsigned width)
{
    return bits >> (width - 1) ? (number)bits - (number)(1u << width) : (number)bits;
}

/* Element i; complex types have real and imaginary parts as two elements. */
static number value_compare_element(const prony_value *value, int64_t i)
{
    switch (value->dtype) {
#define PLAIN(dtype, type)                                                                                             \
    case dtype:                                                                                                        \
        return ((const type *)value->data)[i];
        PLAIN(PRONY_FLOAT32, float)
        PLAIN(PRONY_COMPLEX64, float)
        PLAIN(PRONY_FLOAT64, double)
        PLAIN(PRONY_COMPLEX128, double)
        PLAIN(PRONY_BOOL, uint8_t)
        PLAIN(PRONY_UINT8, uint8_t)
        PLAIN(PRONY_INT8, int8_t)
        PLAIN(PRONY_UINT16, uint16_t)
        PLAIN(PRONY_INT16, int16_t)
        PLAIN(PRONY_UINT32, uint32_t)
        PLAIN(PRONY_INT32, int32_t)
        PLAIN(PRONY_UINT64, uint64_t)
        PLAIN(PRONY_INT64, int64_t)
#undef PLAIN
    case PRONY_UINT4:
        return value_compare_packed(value, i, 4);
    case PRONY_INT4:
        return sign_extend(value_compare_packed(value, i, 4), 4);
    case PRONY_UINT2:
        return value_compare_packed(value, i, 2);
    case PRONY_INT2:
        return sign_extend(value_compare_packed(value, i, 2), 2);
    case PRONY_FLOAT4E2M1:
        return value_compare_decode(value_compare_code_of(PRONY_FLOAT4E2M1), value_compare_packed(value, i, 4));
    case PRONY_FLOAT16:
    case PRONY_BFLOAT16:
        return value_compare_decode(value_compare_code_of(value->dtype), ((const uint16_t *)value->data)[i]);
    case PRONY_FLOAT8E8M0:
        return ((const uint8_t *)value->data)[i] == 255 ? NAN : ldexpl(1, ((const uint8_t *)value->data)[i] - 127);
    default:
        return value_compare_decode(value_compare_code_of(value->dtype), ((const uint8_t *)value->data)[i]);
    }
}

static bool is_integer(prony_dtype dtype)
{
    switch (dtype) {
    case PRONY_BOOL:
    case PRONY_UINT8:
    case PRONY_INT8:
    case PRONY_UINT16:
    case PRONY_INT16:
    case PRONY_UINT32:
    case PRONY_INT32:
    case PRONY_UINT64:
    case PRONY_INT64:
    case PRONY_UINT4:
    case PRONY_INT4:
    case PRONY_UINT2:
    case PRONY_INT2:
        return true;
    default:
        return false;
    }
}

static int value_compare_parts_of(prony_dtype dtype)
{
    return dtype == PRONY_COMPLEX64 || dtype == PRONY_COMPLEX128 ? 2 : 1;
}

static bool near(number got, number want, number atol, number rtol)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return got == want;
    return fabsl(got - want) <= atol + rtol * fabsl(want);
}

static bool numbers_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    int parts = value_compare_parts_of(want->dtype);
    int64_t count = prony_shape_numel(&want->shape) * parts, wrong = 0, worst = 0;
    bool exact = is_integer(want->dtype);
    number atol = exact ? 0 : 1e-7L, rtol = exact ? 0 : want->dtype == PRONY_BFLOAT16 ? 1e-2L : 1e-3L, most = -1;
    for (int64_t i = 0; i < count; i++) {
        number g = value_compare_element(got, i), w = value_compare_element(want, i);
        if (near(g, w, atol, rtol)) continue;
        number error = fabsl(g - w);
        if (isnan(error)) error = INFINITY;
        wrong++;
        if (error > most) {
            most = error;
            worst = i;
        }
    }
    if (wrong)
        snprintf(difference, size, "%lld of %lld elements differ; worst at %lld%s: got %.*Lg, want %.*Lg",
                 (long long)wrong, (long long)count, (long long)(worst / parts),
                 parts == 1  ? ""
                 : worst % 2 ? " (imaginary part)"
                             : " (real part)",
                 exact ? 20 : 9, value_compare_element(got, worst), exact ? 20 : 9, value_compare_element(want, worst));
    return wrong == 0;
}

static int value_compare_shown(const prony_string *text)
{
    return text->size < 80 ? (int)text->size : 80;
}

static bool strings_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    const prony_string *g = got->data, *w = want->data;
    int64_t count = prony_shape_numel(&want->shape), wrong = 0, first = -1;
    for (int64_t i = 0; i < count; i++) {
        if (g[i].size == w[i].size && (g[i].size == 0 || memcmp(g[i].data, w[i].data, w[i].size) == 0)) continue;
        if (wrong++ == 0) first = i;
    }
    if (wrong)
        snprintf(difference, size, "%lld of %lld strings differ; first at %lld: got '%.*s', want '%.*s'",
                 (long long)wrong, (long long)count, (long long)first, value_compare_shown(&g[first]), g[first].data,
                 value_compare_shown(&w[first]), w[first].data);
    return wrong == 0;
}

static size_t value_compare_describe(const prony_value *value, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s[", prony_dtype_name(value->dtype));
    for (int d = 0; d < value->shape.rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", d ? ", " : "", (long long)value->shape.dim[d]);
    if (used < size) used += (size_t)snprintf(text + used, size - used, "]");
    return used;
}

static const char *kind_name(prony_kind kind)
{
    return kind == PRONY_SEQUENCE ? "a sequence" : kind == PRONY_OPTIONAL ? "an optional" : "a tensor";
}

/* true: kind, number of items, type and shape agree, and both have data. */
static bool forms_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    if (got->kind != want->kind || (want->kind != PRONY_TENSOR && got->count != want->count)) {
        snprintf(difference, size, "got %s of %zu, want %s of %zu", kind_name(got->kind),
                 got->kind == PRONY_TENSOR ? 1 : got->count, kind_name(want->kind),
                 want->kind == PRONY_TENSOR ? 1 : want->count);
        return false;
    }
    if (want->kind != PRONY_TENSOR) return true;
    bool same = got->dtype == want->dtype && got->shape.rank == want->shape.rank;
    for (int d = 0; same && d < want->shape.rank; d++) same = got->shape.dim[d] == want->shape.dim[d];
    if (!same) {
        char g[200], w[200];
        value_compare_describe(got, g, sizeof g);
        value_compare_describe(want, w, sizeof w);
        snprintf(difference, size, "got %s, want %s", g, w);
        return false;
    }
    if (prony_shape_numel(&want->shape) != 0 && (!got->data || !want->data)) {
        snprintf(difference, size, "has no data");
        return false;
    }
    return true;
}

static bool is_drawn(const prony_value *got, const prony_random_range *range, char *difference, size_t size)
{
    int64_t count = prony_shape_numel(&got->shape) * value_compare_parts_of(got->dtype);
    for (int64_t i = 0; i < count && got->dtype != PRONY_STRING; i++) {
        number g = value_compare_element(got, i);
        if (g >= range->low && g <= range->high && (!range->whole || g == rintl(g))) continue;
        snprintf(difference, size, "element %lld is %.9Lg, wanted %s from %g to %g",
                 (long long)(i / value_compare_parts_of(got->dtype)), g, range->whole ? "a whole number" : "a number",
                 range->low, range->high);
        return false;
    }
    return true;
}

/* `range` NULL: by value. Containers are compared item by item; the item's position precedes the difference. */
static bool value_compare_compare(const prony_value *got, const prony_value *want, const prony_random_range *range,
                                  char *difference, size_t size)
{
    if (!forms_match(got, want, difference, size)) return false;
    if (want->kind != PRONY_TENSOR) {
        for (size_t i = 0; i < want->count; i++) {
            char inner[400];
            if (value_compare_compare(&got->items[i], &want->items[i], range, inner, sizeof inner)) continue;
            snprintf(difference, size, "item %zu: %s", i, inner);
            return false;
        }
        return true;
    }
    if (range) return is_drawn(got, range, difference, size);
    if (want->dtype == PRONY_STRING) return strings_match(got, want, difference, size);
    return numbers_match(got, want, difference, size);
}

bool value_matches(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    return value_compare_compare(got, want, NULL, difference, size);
}

bool value_is_drawn(const prony_value *got, const prony_value *want, const prony_random_range *range, char *difference,
                    size_t size)
{
    return value_compare_compare(got, want, range, difference, size);
}

bool value_distance(const prony_value *got, const prony_value *want, double *distance)
{
    char unused[600];
    number largest = 0, range = 0;
    if (want->kind != PRONY_TENSOR || !forms_match(got, want, unused, sizeof unused) || want->dtype == PRONY_STRING)
        return false;
    int64_t count = prony_shape_numel(&want->shape) * value_compare_parts_of(want->dtype);
    for (int64_t i = 0; i < count; i++) {
        const number g = value_compare_element(got, i), w = value_compare_element(want, i);
        const bool finite = isfinite(g) && isfinite(w), same = g == w || (isnan(g) && isnan(w));
        const number apart = finite ? fabsl(g - w) : same ? 0 : INFINITY;
        if (apart > largest) largest = apart;
        if (isfinite(w) && fabsl(w) > range) range = fabsl(w);
    }
    *distance = (double)(range > 0 && !is_integer(want->dtype) ? largest / range : largest);
    return true;
}
