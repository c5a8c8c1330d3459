/* Generated inputs: SplitMix64 over (seed, input name), so every input has its own stream, independent of the
 * others. */
#include "base/threads/cancel.h"
#include "engine/session/session.h"

#include <string.h>

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double prn_random_fraction(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* Uniform in [-0.5, 0.5), 24 bits. */
static float next_float(uint64_t *state)
{
    return (float)(random_next(state) >> 40) * 0x1p-24f - 0.5f;
}

/* A multiple of 2^-8 in [-0.5, 0.5) as IEEE half: exact, so no rounding rule is involved. */
static uint16_t next_half(uint64_t *state)
{
    int v = (int)(random_next(state) >> 56) - 128;
    if (v == 0) return 0;
    unsigned magnitude = (unsigned)(v < 0 ? -v : v);
    int exponent = 31 - __builtin_clz(magnitude);
    unsigned fraction = (magnitude << (10 - exponent)) & 0x3ff;
    return (uint16_t)((v < 0 ? 0x8000u : 0u) | (unsigned)(exponent - 8 + 15) << 10 | fraction);
}

static uint16_t next_bfloat16(uint64_t *state)
{
    float v = (float)((int)(random_next(state) >> 57) - 64) * 0x1p-7f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* The stream depends on seed and name alone; each element takes one number, in the elements' order. */
void prn_random_fill(prony_value *value, uint64_t seed, const char *stream)
{
    uint64_t state = seed;
    for (; *stream; stream++) state = (state ^ (uint8_t)*stream) * UINT64_C(0x100000001b3) + 1;
    int64_t count = prony_shape_numel(&value->shape);
    size_t width = prony_dtype_bytes(value->dtype, 1);
    uint8_t *data = value->data;
    if (prn_dtype_bits(value->dtype) < 8) { /* packed types: every nibble in {0, 1} */
        size_t bytes = prn_value_bytes(value);
        for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)(random_next(&state) >> 32 & 0x11);
        return;
    }
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++, data += width) {
        switch (value->dtype) {
        case PRONY_FLOAT32:
            memcpy(data, &(float){next_float(&state)}, 4);
            break;
        case PRONY_FLOAT64:
            memcpy(data, &(double){prn_random_fraction(&state) - 0.5}, 8);
            break;
        case PRONY_FLOAT16:
            memcpy(data, &(uint16_t){next_half(&state)}, 2);
            break;
        case PRONY_BFLOAT16:
            memcpy(data, &(uint16_t){next_bfloat16(&state)}, 2);
            break;
        default: { /* little-endian integers and bools: 0 or 1 */
            memset(data, 0, width);
            data[0] = (uint8_t)(random_next(&state) >> 63);
        }
        }
    }
}
