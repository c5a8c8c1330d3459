/* Conversion to and from the narrow types, a chunk at a time: what is read is first brought into a type that number.c
 * knows, what is written comes from one. Invariant: a chunk is loaded whole before any of it is stored, so equally wide
 * arrays may be the same. */
#include "ops/kernels/lowbit/narrow_types.h"

#include "ops/op.h"

enum { CHUNK = 256 };

/* ---- floats */

#define DEFINE_FORMAT(DTYPE, name, bits, mantissa, bias, max, overflow, nan, unsigned_zero)                            \
    static const prn_float_format format_##name = {bits, mantissa, bias, max, overflow, nan, unsigned_zero};
PRN_NARROW_FLOATS(DEFINE_FORMAT)

#define DEFINE_FLOAT_LOOPS(DTYPE, name, bits, mantissa, bias, max, overflow, nan, unsigned_zero)                       \
    static void load_##name(float *to, const uint8_t *from, int64_t first, int64_t n)                                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = prn_narrow_decode(&format_##name, prn_qint8_get(from, bits, first + i));                           \
    }                                                                                                                  \
    static void store_##name(uint8_t *to, const float *from, int64_t first, int64_t n, const prn_cast_rule *rule)      \
    {                                                                                                                  \
        const bool saturate = rule->saturate;                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                                \
            prn_qint8_put(to, bits, first + i, prn_narrow_encode(&format_##name, from[i], saturate));                  \
    }
PRN_NARROW_FLOATS(DEFINE_FLOAT_LOOPS)

static uint8_t e8m0_encode(float x, const prn_cast_rule *rule)
{
    const uint32_t bits = prn_f32_bits(x), exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffffu;
    if (exponent == 0xff) return 0xff;
    bool up = false;
    if (rule->rounding == PRN_E8M0_UP) up = fraction != 0;
    /* Half way goes up, apart from below the smallest normal number, where it is not the middle. */
    if (rule->rounding == PRN_E8M0_NEAREST) up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
    if (exponent == 0xfe && rule->saturate) up = false;
    return (uint8_t)(exponent + up);
}

static void load_e8m0(float *to, const uint8_t *from, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = prn_e8m0_decode(from[first + i]);
}

static void store_e8m0(uint8_t *to, const float *from, int64_t first, int64_t n, const prn_cast_rule *rule)
{
    for (int64_t i = 0; i < n; i++) to[first + i] = e8m0_encode(from[i], rule);
}

/* ---- integers */

static void load_integers(int8_t *to, const uint8_t *from, unsigned bits, bool is_signed, int64_t first, int64_t n)
{
    const int flip = is_signed ? 1 << (bits - 1) : 0;
    for (int64_t i = 0; i < n; i++) to[i] = (int8_t)((prn_qint8_get(from, bits, first + i) ^ flip) - flip);
}

static void store_integers(uint8_t *to, const int64_t *from, unsigned bits, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++) prn_qint8_put(to, bits, first + i, (uint8_t)from[i]);
}

/* ---- the table */

typedef struct narrow_type {
    void (*load)(float *to, const uint8_t *from, int64_t first, int64_t n);
    void (*store)(uint8_t *to, const float *from, int64_t first, int64_t n, const prn_cast_rule *rule);
    uint8_t integer_bits; /* 0: a float */
    bool is_signed;
} narrow_type;

static const narrow_type narrow_types[PRONY_DTYPE_COUNT] = {
#define FLOAT_ROW(DTYPE, name, bits, mantissa, bias, max, overflow, nan, unsigned_zero)                                \
    [PRONY_##DTYPE] = {load_##name, store_##name, 0, true},
    PRN_NARROW_FLOATS(FLOAT_ROW)[PRONY_FLOAT8E8M0] = {load_e8m0, store_e8m0, 0, false},
    [PRONY_INT4] = {NULL, NULL, 4, true}, [PRONY_UINT4] = {NULL, NULL, 4, false}, [PRONY_INT2] = {NULL, NULL, 2, true},
    [PRONY_UINT2] = {NULL, NULL, 2, false}};

bool prn_dtype_is_narrow(prony_dtype dtype)
{
    return (unsigned)dtype < PRONY_DTYPE_COUNT && (PRN_TYPES_NARROW >> dtype & 1);
}

bool prn_dtype_is_castable(prony_dtype dtype)
{
    return prn_dtype_is_number(dtype) || prn_dtype_is_narrow(dtype);
}

/* ---- a chunk */

typedef union chunk {
    float floats[CHUNK];
    double doubles[CHUNK];
    int64_t integers[CHUNK];
    int8_t bytes[CHUNK];
} chunk;

/* Elements [first, first + n) as a type that prn_convert takes: where they lie, or unpacked into `room`. */
static const void *narrow_types_widen(const void *from, prony_dtype type, int64_t first, int64_t n, chunk *room,
                                      prony_dtype *out_type)
{
    *out_type = type;
    if (!prn_dtype_is_narrow(type)) return (const char *)from + prony_dtype_bytes(type, first);
    const narrow_type *narrow = &narrow_types[type];
    if (narrow->integer_bits) {
        load_integers(room->bytes, from, narrow->integer_bits, narrow->is_signed, first, n);
        *out_type = narrow->is_signed ? PRONY_INT8 : PRONY_UINT8;
        return room->bytes;
    }
    narrow->load(room->floats, from, first, n);
    *out_type = PRONY_FLOAT32;
    return room->floats;
}

/* Rounding once more to a narrow float must not be seen. */
static void narrow_types_to_floats(float *to, const void *from, prony_dtype type, int64_t n)
{
    if (type != PRONY_FLOAT64) {
        prn_convert(to, PRONY_FLOAT32, from, type, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) to[i] = prn_f64_to_f32_odd(((const double *)from)[i]);
}

static void narrow_down(void *to, prony_dtype type, const void *from, prony_dtype from_type, int64_t first, int64_t n,
                        const prn_cast_rule *rule)
{
    const narrow_type *narrow = &narrow_types[type];
    chunk room;
    if (narrow->integer_bits) {
        prn_convert(room.integers, PRONY_INT64, from, from_type, n);
        store_integers(to, room.integers, narrow->integer_bits, first, n);
    } else {
        narrow_types_to_floats(room.floats, from, from_type, n);
        narrow->store(to, room.floats, first, n, rule);
    }
}

void prn_cast(void *to, prony_dtype to_type, int64_t to_first, const void *from, prony_dtype from_type,
              int64_t from_first, int64_t n, const prn_cast_rule *rule)
{
    if (!prn_dtype_is_narrow(to_type) && !prn_dtype_is_narrow(from_type)) {
        prn_convert((char *)to + prony_dtype_bytes(to_type, to_first), to_type,
                    (const char *)from + prony_dtype_bytes(from_type, from_first), from_type, n);
        return;
    }
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t count = n - done < CHUNK ? n - done : CHUNK, at = to_first + done;
        chunk room;
        prony_dtype type;
        const void *wide = narrow_types_widen(from, from_type, from_first + done, count, &room, &type);
        if (prn_dtype_is_narrow(to_type)) {
            narrow_down(to, to_type, wide, type, at, count, rule);
        } else {
            prn_convert((char *)to + prony_dtype_bytes(to_type, at), to_type, wide, type, count);
        }
    }
}
