/* Elements are widened to double (exact for every type but 64-bit integers, which are compared as bytes). */
#include "bench/value_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 0) {
        float v = (float)fraction * 0x1p-24f;
        return sign ? -v : v;
    }
    uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static bool is_approximate(prony_dtype dtype)
{
    return dtype == PRONY_FLOAT32 || dtype == PRONY_FLOAT64 || dtype == PRONY_FLOAT16 || dtype == PRONY_BFLOAT16;
}

static double element(const prony_value *value, int64_t i)
{
    uint32_t bits;
    float f;
    switch (value->dtype) {
    case PRONY_FLOAT32:
        return ((const float *)value->data)[i];
    case PRONY_FLOAT64:
        return ((const double *)value->data)[i];
    case PRONY_FLOAT16:
        return half_to_float(((const uint16_t *)value->data)[i]);
    default: /* bfloat16 */
        bits = (uint32_t)((const uint16_t *)value->data)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
}

static bool near(double got, double want, double rtol)
{
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return got == want;
    return fabs(got - want) <= 1e-7 + rtol * fabs(want);
}

static bool floats_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    int64_t count = prony_shape_numel(&want->shape), wrong = 0, worst = 0;
    double rtol = prony_dtype_bytes(want->dtype, 1) == 2 ? 1e-2 : 1e-3, most = -1;
    for (int64_t i = 0; i < count; i++) {
        double g = element(got, i), w = element(want, i);
        if (near(g, w, rtol)) continue;
        double error = fabs(g - w);
        if (isnan(error)) error = INFINITY;
        wrong++;
        if (error > most) {
            most = error;
            worst = i;
        }
    }
    if (wrong)
        snprintf(difference, size, "%lld of %lld elements differ; worst at %lld: got %.9g, want %.9g", (long long)wrong,
                 (long long)count, (long long)worst, element(got, worst), element(want, worst));
    return wrong == 0;
}

static bool strings_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    const prony_string *g = got->data, *w = want->data;
    for (int64_t i = 0; i < prony_shape_numel(&want->shape); i++) {
        if (g[i].size == w[i].size && memcmp(g[i].data, w[i].data, w[i].size) == 0) continue;
        snprintf(difference, size, "string %lld differs: got '%.*s', want '%.*s'", (long long)i, (int)g[i].size,
                 g[i].data, (int)w[i].size, w[i].data);
        return false;
    }
    return true;
}

static bool bytes_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    int64_t count = prony_shape_numel(&want->shape), wrong = 0, first = -1;
    size_t width = prony_dtype_bytes(want->dtype, 1);
    const char *g = got->data, *w = want->data;
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(g + (size_t)i * width, w + (size_t)i * width, width) == 0) continue;
        if (wrong++ == 0) first = i;
    }
    if (!wrong) return true;
    int64_t a = 0, b = 0;
    memcpy(&a, g + (size_t)first * width, width < 8 ? width : 8);
    memcpy(&b, w + (size_t)first * width, width < 8 ? width : 8);
    snprintf(difference, size, "%lld of %lld elements differ; first at %lld: got 0x%llx, want 0x%llx", (long long)wrong,
             (long long)count, (long long)first, (unsigned long long)a, (unsigned long long)b);
    return false;
}

static size_t describe(const prony_value *value, char *text, size_t size)
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

/* Item by item; where they stand is put before what differs. */
static bool items_match(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    if (got->kind != want->kind || got->count != want->count) {
        snprintf(difference, size, "got %s of %zu, want %s of %zu", kind_name(got->kind), got->count,
                 kind_name(want->kind), want->count);
        return false;
    }
    for (size_t i = 0; i < want->count; i++) {
        char inner[256];
        if (value_matches(&got->items[i], &want->items[i], inner, sizeof inner)) continue;
        snprintf(difference, size, "item %zu: %s", i, inner);
        return false;
    }
    return true;
}

bool value_matches(const prony_value *got, const prony_value *want, char *difference, size_t size)
{
    if (got->kind != PRONY_TENSOR || want->kind != PRONY_TENSOR) return items_match(got, want, difference, size);
    bool same = got->dtype == want->dtype && got->shape.rank == want->shape.rank;
    for (int d = 0; same && d < want->shape.rank; d++) same = got->shape.dim[d] == want->shape.dim[d];
    if (!same) {
        char g[200], w[200];
        describe(got, g, sizeof g);
        describe(want, w, sizeof w);
        snprintf(difference, size, "got %s, want %s", g, w);
        return false;
    }
    if (prony_shape_numel(&want->shape) == 0) return true;
    if (!got->data || !want->data) {
        snprintf(difference, size, "has no data");
        return false;
    }
    if (want->dtype == PRONY_STRING) return strings_match(got, want, difference, size);
    if (is_approximate(want->dtype)) return floats_match(got, want, difference, size);
    return bytes_match(got, want, difference, size);
}
