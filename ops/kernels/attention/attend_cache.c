/* Rows of caches in fewer bits. */
#include "ops/kernels/attention/attend_cache.h"

#include "ops/kernels/vector/number.h"

#include <math.h>
#include <string.h>

#define MOST_HALF 65504.0f

static float *cache_scales(const void *block, int64_t rows, int64_t size)
{
    return (float *)((uintptr_t)block + ((size_t)rows * (size_t)size + 3) / 4 * 4);
}

static void cache_store_halves(uint16_t *to, const float *from, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const float x = from[k];
        to[k] = prn_f32_to_f16(x > MOST_HALF ? MOST_HALF : x < -MOST_HALF ? -MOST_HALF : x);
    }
}

/* Codes of a row. A row with an element that is NaN or infinite has no scale: its scale is NaN, and so is every
 * element. */
static float cache_store_codes(int8_t *to, const float *from, int64_t size)
{
    float most = 0.0f;
    bool finite = true;
    for (int64_t k = 0; k < size; k++) {
        const float magnitude = fabsf(from[k]);
        finite = finite && isfinite(magnitude);
        if (magnitude > most) most = magnitude;
    }
    memset(to, 0, (size_t)size);
    if (!finite) return NAN;
    const float scale = most / 127.0f;
    if (scale == 0.0f || !isfinite(1.0f / scale)) return 0.0f;
    for (int64_t k = 0; k < size; k++) to[k] = (int8_t)lrintf(from[k] / scale);
    return scale;
}

void prn_cache_store(prn_cache_type type, void *block, int64_t rows, int64_t size, int64_t first, int64_t count,
                     const float *from)
{
    if (count <= 0 || size <= 0) return;
    if (type == PRN_CACHE_FLOAT32)
        memcpy((float *)block + first * size, from, (size_t)(count * size) * sizeof *from);
    else if (type == PRN_CACHE_FLOAT16)
        cache_store_halves((uint16_t *)block + first * size, from, count * size);
    for (int64_t r = 0; r < count && type == PRN_CACHE_INT8; r++)
        cache_scales(block, rows, size)[first + r] =
            cache_store_codes((int8_t *)block + (first + r) * size, from + r * size, size);
}

void prn_cache_load(prn_cache_type type, const void *block, int64_t rows, int64_t size, int64_t first, int64_t count,
                    float *to)
{
    if (count <= 0 || size <= 0) return;
    if (type == PRN_CACHE_FLOAT32)
        memcpy(to, (const float *)block + first * size, (size_t)(count * size) * sizeof *to);
    else if (type == PRN_CACHE_FLOAT16)
        prn_convert(to, PRONY_FLOAT32, (const uint16_t *)block + first * size, PRONY_FLOAT16, count * size);
    for (int64_t r = 0; r < count && type == PRN_CACHE_INT8; r++) {
        const int8_t *codes = (const int8_t *)block + (first + r) * size;
        const float scale = cache_scales(block, rows, size)[first + r];
        for (int64_t k = 0; k < size; k++) to[r * size + k] = (float)codes[k] * scale;
    }
}
