/* Conversion among the number types, by way of the types that are computed in (number_simd.h), and single elements.
 * Invariant: every conversion is defined for every value (see number.h). */
#include "ops/kernels/vector/number_simd.h"

#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/op.h"

enum { CHUNK = 256, LOOK_UP = 1 << 20 };

/* The type that a type is computed in. */
static const struct {
    bool known;
    prn_work work;
} forms[PRONY_DTYPE_COUNT] = {
#define FORM_ROW(DTYPE, name, storage, work, load) [PRONY_##DTYPE] = {true, PRN_WORK_##work},
    PRN_OTHER_WORK_FORMS(FORM_ROW) PRN_HALF_WORK_FORM(FORM_ROW)};

/* The types that are their own work form. */
static const prony_dtype work_dtypes[PRN_WORK_COUNT] = {[PRN_WORK_float] = PRONY_FLOAT32,
                                                        [PRN_WORK_double] = PRONY_FLOAT64,
                                                        [PRN_WORK_int32_t] = PRONY_INT32,
                                                        [PRN_WORK_int64_t] = PRONY_INT64,
                                                        [PRN_WORK_uint64_t] = PRONY_UINT64};

PRN_SIMD_PICK(prn_number_simd, prn_number_simd_, static const prn_number_simd *number_table)

bool prn_dtype_is_number(prony_dtype dtype)
{
    return (unsigned)dtype < PRONY_DTYPE_COUNT && forms[dtype].known;
}

/* Converts n elements between any two number types, through the work type of the source. `to` may be `from` if the
 * width does not grow; long runs stop when cancelled. */
void prn_convert(void *to, prony_dtype to_type, const void *from, prony_dtype from_type, int64_t n)
{
    const size_t to_size = prony_dtype_bytes(to_type, 1), from_size = prony_dtype_bytes(from_type, 1);
    for (; n > LOOK_UP && to != from; n -= LOOK_UP) {
        if (prn_cancelled()) return;
        prn_convert(to, to_type, from, from_type, LOOK_UP);
        to = (char *)to + LOOK_UP * to_size;
        from = (const char *)from + LOOK_UP * from_size;
    }
    if (to_type == from_type) {
        if (to != from && n > 0) memcpy(to, from, (size_t)n * to_size);
        return;
    }
    const prn_work work = forms[from_type].work;
    const prn_number_fn load = number_table()->load[from_type], store = number_table()->store[to_type][work];
    if (to != from && work_dtypes[work] == from_type) {
        store(to, from, n);
        return;
    }
    if (to != from && work_dtypes[work] == to_type) {
        load(to, from, n);
        return;
    }
    uint64_t chunk[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t count = n - i < CHUNK ? n - i : CHUNK;
        load(chunk, (const char *)from + (size_t)i * from_size, count);
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
        PRN_OTHER_TARGETS(PUT_F64)
        PRN_HALF_TARGET(PUT_F64)
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
