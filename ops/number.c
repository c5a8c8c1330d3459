/* Conversion among the number types, by way of the four types that are computed in: float, double, int64_t and
 * uint64_t. Invariant: every conversion is defined for every value (see number.h). */
#include "ops/number.h"

#include "ops/op.h"

/* ---- one element */

static uint16_t f64_to_f16(double x)
{
    return prn_f32_to_f16(prn_f64_to_f32_odd(x));
}

static uint16_t f64_to_bf16(double x)
{
    return prn_f32_to_bf16(prn_f64_to_f32_odd(x));
}

static int64_t saturate(double x, int64_t low, int64_t high)
{
    const int64_t value = prn_f64_to_i64(x);
    return value < low ? low : (value > high ? high : value);
}

static uint64_t saturate_unsigned(double x, uint64_t high)
{
    const uint64_t value = prn_f64_to_u64(x);
    return value > high ? high : value;
}

/* Y(DTYPE, name, storage, from float, from double, from an integer) */
#define TARGETS(Y)                                                                                                     \
    Y(FLOAT32, f32, float, x, (float)x, (float)x)                                                                      \
    Y(FLOAT64, f64, double, (double)x, x, (double)x)                                                                   \
    Y(FLOAT16, f16, uint16_t, prn_f32_to_f16(x), f64_to_f16(x), f64_to_f16((double)x))                                 \
    Y(BFLOAT16, bf16, uint16_t, prn_f32_to_bf16(x), f64_to_bf16(x), f64_to_bf16((double)x))                            \
    Y(INT8, i8, int8_t, (int8_t)saturate((double)x, INT8_MIN, INT8_MAX), (int8_t)saturate(x, INT8_MIN, INT8_MAX),      \
      (int8_t)x)                                                                                                       \
    Y(INT16, i16, int16_t, (int16_t)saturate((double)x, INT16_MIN, INT16_MAX),                                         \
      (int16_t)saturate(x, INT16_MIN, INT16_MAX), (int16_t)x)                                                          \
    Y(INT32, i32, int32_t, (int32_t)saturate((double)x, INT32_MIN, INT32_MAX),                                         \
      (int32_t)saturate(x, INT32_MIN, INT32_MAX), (int32_t)x)                                                          \
    Y(INT64, i64, int64_t, prn_f64_to_i64((double)x), prn_f64_to_i64(x), (int64_t)x)                                   \
    Y(UINT8, u8, uint8_t, (uint8_t)saturate_unsigned((double)x, UINT8_MAX), (uint8_t)saturate_unsigned(x, UINT8_MAX),  \
      (uint8_t)x)                                                                                                      \
    Y(UINT16, u16, uint16_t, (uint16_t)saturate_unsigned((double)x, UINT16_MAX),                                       \
      (uint16_t)saturate_unsigned(x, UINT16_MAX), (uint16_t)x)                                                         \
    Y(UINT32, u32, uint32_t, (uint32_t)saturate_unsigned((double)x, UINT32_MAX),                                       \
      (uint32_t)saturate_unsigned(x, UINT32_MAX), (uint32_t)x)                                                         \
    Y(UINT64, u64, uint64_t, prn_f64_to_u64((double)x), prn_f64_to_u64(x), (uint64_t)x)                                \
    Y(BOOL, b8, uint8_t, x != 0.0f, x != 0.0, x != 0)

/* ---- arrays: load into a chunk of the work type, store from it */

enum { CHUNK = 256 };

typedef void (*load_fn)(void *work, const void *from, int64_t n);
typedef void (*store_fn)(void *to, const void *work, int64_t n);

typedef enum work_kind { WORK_float, WORK_double, WORK_int64_t, WORK_uint64_t, WORK_KINDS } work_kind;

#define DEFINE_LOAD(P, DTYPE, name, storage, work, load, store)                                                        \
    static void load_##name(void *to_, const void *from_, int64_t n)                                                   \
    {                                                                                                                  \
        work *to = to_;                                                                                                \
        const storage *from = from_;                                                                                   \
        for (int64_t i = 0; i < n; i++) to[i] = load(from[i]);                                                         \
    }
PRN_NUMBER_BOOL_TYPES(DEFINE_LOAD, )

#define DEFINE_STORE(suffix, storage, work, expression)                                                                \
    static void store_##suffix(void *to_, const void *from_, int64_t n)                                                \
    {                                                                                                                  \
        storage *to = to_;                                                                                             \
        const work *from = from_;                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const work x = from[i];                                                                                    \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }
#define DEFINE_STORES(DTYPE, name, storage, from_float, from_double, from_integer)                                     \
    DEFINE_STORE(name##_float, storage, float, from_float)                                                             \
    DEFINE_STORE(name##_double, storage, double, from_double)                                                          \
    DEFINE_STORE(name##_int64, storage, int64_t, from_integer)                                                         \
    DEFINE_STORE(name##_uint64, storage, uint64_t, from_integer)
TARGETS(DEFINE_STORES)

static const struct {
    load_fn load;
    work_kind kind;
} loads[PRONY_DTYPE_COUNT] = {
#define LOAD_ROW(P, DTYPE, name, storage, work, load, store) [PRONY_##DTYPE] = {load_##name, WORK_##work},
    PRN_NUMBER_BOOL_TYPES(LOAD_ROW, )};

static const store_fn stores[PRONY_DTYPE_COUNT][WORK_KINDS] = {
#define STORE_ROW(DTYPE, name, storage, from_float, from_double, from_integer)                                         \
    [PRONY_##DTYPE] = {store_##name##_float, store_##name##_double, store_##name##_int64, store_##name##_uint64},
    TARGETS(STORE_ROW)};

bool prn_dtype_is_number(prony_dtype dtype)
{
    return (unsigned)dtype < PRONY_DTYPE_COUNT && loads[dtype].load;
}

void prn_convert(void *to, prony_dtype to_type, const void *from, prony_dtype from_type, int64_t n)
{
    const size_t to_size = prony_dtype_bytes(to_type, 1), from_size = prony_dtype_bytes(from_type, 1);
    if (to_type == from_type) {
        if (to != from && n > 0) memcpy(to, from, (size_t)n * to_size);
        return;
    }
    const store_fn store = stores[to_type][loads[from_type].kind];
    uint64_t chunk[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t count = n - i < CHUNK ? n - i : CHUNK;
        loads[from_type].load(chunk, (const char *)from + (size_t)i * from_size, count);
        store((char *)to + (size_t)i * to_size, chunk, count);
    }
}

double prn_get_f64(const void *data, prony_dtype dtype, int64_t index)
{
    switch (dtype) {
#define GET_F64(P, DTYPE, name, storage, work, load, store)                                                            \
    case PRONY_##DTYPE:                                                                                                \
        return (double)load(((const storage *)data)[index]);
        PRN_NUMBER_BOOL_TYPES(GET_F64, )
    default:
        return NAN;
    }
}

void prn_put_f64(void *data, prony_dtype dtype, int64_t index, double x)
{
    switch (dtype) {
#define PUT_F64(DTYPE, name, storage, from_float, from_double, from_integer)                                           \
    case PRONY_##DTYPE:                                                                                                \
        ((storage *)data)[index] = from_double;                                                                        \
        return;
        TARGETS(PUT_F64)
    default:
        return;
    }
}

int64_t prn_get_i64(const void *data, prony_dtype dtype, int64_t index)
{
    switch (dtype) {
#define GET_I64(P, DTYPE, name, storage, work, load, store)                                                            \
    case PRONY_##DTYPE:                                                                                                \
        return (int64_t)load(((const storage *)data)[index]);
        PRN_SIGNED_TYPES(GET_I64, )
        PRN_UNSIGNED_TYPES(GET_I64, )
    case PRONY_BOOL:
        return ((const uint8_t *)data)[index] != 0;
    default:
        return 0;
    }
}

void prn_put_i64(void *data, prony_dtype dtype, int64_t index, int64_t x)
{
    switch (dtype) {
#define PUT_I64(P, DTYPE, name, storage, work, load, store)                                                            \
    case PRONY_##DTYPE:                                                                                                \
        ((storage *)data)[index] = (storage)x;                                                                         \
        return;
        PRN_SIGNED_TYPES(PUT_I64, )
        PRN_UNSIGNED_TYPES(PUT_I64, )
    case PRONY_BOOL:
        ((uint8_t *)data)[index] = x != 0;
        return;
    default:
        return;
    }
}
