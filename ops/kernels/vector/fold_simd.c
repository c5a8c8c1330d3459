/* The loops of ops/kernels/vector/fold.h for one instruction set (PRN_SIMD names it). A row is folded into LANES partial
 * results, element i into number i mod LANES, which are combined in order at its end. */
#include "ops/kernels/vector/fold.h"
#include "base/integers.h"
#include "base/cpu/simd.h"

#include <math.h>

enum { LANES = 16, FIND_LANES = 32 };

/* X(FOLD, name, start, term of x, a combined with t): in `type`, where `whole` wraps. */
#define FOLDS(X, type, whole, lowest, highest)                                                                         \
    X(ADD, add, type, 0, x, (type)((whole)a + (whole)t))                                                               \
    X(MUL, mul, type, 1, x, (type)((whole)a * (whole)t))                                                               \
    X(MAX, max, type, lowest, x, ((t > a) | (t != t)) ? t : a)                                                         \
    X(MIN, min, type, highest, x, ((t < a) | (t != t)) ? t : a)                                                        \
    X(ABS, abs, type, 0, (x < 0 ? (type)(0 - (whole)x) : x), (type)((whole)a + (whole)t))                              \
    X(SQUARE, square, type, 0, (type)((whole)x * (whole)x), (type)((whole)a + (whole)t))
#define FOLDS_F64(X) FOLDS(X, double, double, -(double)INFINITY, (double)INFINITY)
#define FOLDS_I64(X) FOLDS(X, int64_t, uint64_t, INT64_MIN, INT64_MAX)

#define DEFINE_FOLD(FOLD, name, type, start_, term, combined)                                                          \
    static inline type name##_##type(type a, type t)                                                                   \
    {                                                                                                                  \
        return combined;                                                                                               \
    }                                                                                                                  \
    static type row_##name##_##type(type start, const type *data, int64_t n)                                           \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        if (n >= LANES) {                                                                                              \
            type part[LANES];                                                                                          \
            for (int k = 0; k < LANES; k++) part[k] = start_;                                                          \
            for (; i + LANES <= n; i += LANES) {                                                                       \
                for (int k = 0; k < LANES; k++) {                                                                      \
                    const type x = data[i + k];                                                                        \
                    part[k] = name##_##type(part[k], term);                                                            \
                }                                                                                                      \
            }                                                                                                          \
            for (int k = 0; k < LANES; k++) start = name##_##type(start, part[k]);                                     \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            const type x = data[i];                                                                                    \
            start = name##_##type(start, term);                                                                        \
        }                                                                                                              \
        return start;                                                                                                  \
    }                                                                                                                  \
    static void columns_##name##_##type(type *restrict sum, const type *restrict data, int64_t n)                      \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const type x = data[i];                                                                                    \
            sum[i] = name##_##type(sum[i], term);                                                                      \
        }                                                                                                              \
    }
FOLDS_F64(DEFINE_FOLD)
FOLDS_I64(DEFINE_FOLD)

/* Integers may be folded in any order. */
#define NARROW_UNSIGNED(X)                                                                                             \
    X(UINT8, u8, uint8_t, uint32_t)                                                                                    \
    X(UINT16, u16, uint16_t, uint32_t)                                                                                 \
    X(UINT32, u32, uint32_t, uint32_t)                                                                                 \
    X(UINT64, u64, uint64_t, uint64_t)
#define NARROW_SIGNED(X)                                                                                               \
    X(INT8, i8, int8_t, uint32_t)                                                                                      \
    X(INT16, i16, int16_t, uint32_t) X(INT32, i32, int32_t, uint32_t) X(INT64, i64, int64_t, uint64_t)
#define DEFINE_NARROW(op, name, type, expression)                                                                      \
    static void narrow_##op##_##name(void *sum, const void *data, int64_t n)                                           \
    {                                                                                                                  \
        const type *x = data;                                                                                          \
        type a = *(type *)sum;                                                                                         \
        for (int64_t i = 0; i < n; i++) a = expression;                                                                \
        *(type *)sum = a;                                                                                              \
    }
#define DEFINE_EXTREMES(DTYPE, name, type, wide)                                                                       \
    DEFINE_NARROW(max, name, type, a > x[i] ? a : x[i])                                                                \
    DEFINE_NARROW(min, name, type, a < x[i] ? a : x[i])
#define DEFINE_WRAPPING(DTYPE, name, type, wide)                                                                       \
    DEFINE_NARROW(add, name, type, (type)((wide)a + (wide)x[i]))                                                       \
    DEFINE_NARROW(mul, name, type, (type)((wide)a * (wide)x[i]))
NARROW_UNSIGNED(DEFINE_EXTREMES)
NARROW_SIGNED(DEFINE_EXTREMES)
NARROW_UNSIGNED(DEFINE_WRAPPING)

#define AHEAD(type, condition)                                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const type a = data[i], b = best[i];                                                                           \
        const bool takes = condition;                                                                                  \
        best[i] = takes ? a : b;                                                                                       \
        at[i] = takes ? place : at[i];                                                                                 \
    }
#define DEFINE_AHEAD(name, type)                                                                                       \
    static void ahead_##name(type *restrict best, int64_t *restrict at, const type *restrict data, int64_t n,          \
                             int64_t place, bool smallest, bool last)                                                  \
    {                                                                                                                  \
        if (smallest && last) {                                                                                        \
            AHEAD(type, (b == b && a <= b) || a != a)                                                                  \
        } else if (smallest) {                                                                                         \
            AHEAD(type, b == b && (a < b || a != a))                                                                   \
        } else if (last) {                                                                                             \
            AHEAD(type, (b == b && a >= b) || a != a)                                                                  \
        } else {                                                                                                       \
            AHEAD(type, b == b && (a > b || a != a))                                                                   \
        }                                                                                                              \
    }
DEFINE_AHEAD(f64, double)
DEFINE_AHEAD(i64, int64_t)

/* Blocks without a match are passed over. */
#define DEFINE_FIND(name, type)                                                                                        \
    static inline bool same_##name(type a, type b)                                                                     \
    {                                                                                                                  \
        return a == b || (a != a && b != b);                                                                           \
    }                                                                                                                  \
    static int64_t find_##name(const type *x, int64_t n, type value, bool last)                                        \
    {                                                                                                                  \
        const int64_t blocks = prn_ceil_div(n, FIND_LANES);                                                            \
        for (int64_t block = 0; block < blocks; block++) {                                                             \
            const int64_t first = (last ? blocks - 1 - block : block) * FIND_LANES;                                    \
            const int64_t count = n - first < FIND_LANES ? n - first : FIND_LANES;                                     \
            int found = 0;                                                                                             \
            if (count == FIND_LANES) {                                                                                 \
                for (int k = 0; k < FIND_LANES; k++) found |= same_##name(x[first + k], value);                        \
                if (!found) continue;                                                                                  \
            }                                                                                                          \
            for (int64_t k = 0; k < count; k++) {                                                                      \
                const int64_t i = first + (last ? count - 1 - k : k);                                                  \
                if (same_##name(x[i], value)) return i;                                                                \
            }                                                                                                          \
        }                                                                                                              \
        return -1;                                                                                                     \
    }
DEFINE_FIND(f64, double)
DEFINE_FIND(i64, int64_t)
DEFINE_FIND(f32, float)

static void cumulate_f32(double *restrict sum, const float *x, float *y, int64_t n, bool exclusive)
{
    enum { PART = 16 }; /* read whole before it is written: y may be x */
    int64_t i = 0;
    for (; i + PART <= n; i += PART) {
        double before[PART], after[PART];
        for (int k = 0; k < PART; k++) before[k] = sum[i + k];
        for (int k = 0; k < PART; k++) after[k] = before[k] + (double)x[i + k];
        for (int k = 0; k < PART; k++) sum[i + k] = after[k];
        for (int k = 0; k < PART; k++) y[i + k] = (float)(exclusive ? before[k] : after[k]);
    }
    for (; i < n; i++) {
        const double before = sum[i], after = before + (double)x[i];
        sum[i] = after;
        y[i] = (float)(exclusive ? before : after);
    }
}

const prn_fold_table PRN_SIMD_TABLE(prn_fold_) = {
#define ROW_ENTRY(FOLD, name, type, start, term, combined) [PRN_FOLD_##FOLD] = row_##name##_##type,
#define COLUMNS_ENTRY(FOLD, name, type, start, term, combined) [PRN_FOLD_##FOLD] = columns_##name##_##type,
    .row_f64 = {FOLDS_F64(ROW_ENTRY)},
    .row_i64 = {FOLDS_I64(ROW_ENTRY)},
#define MAX_ENTRY(DTYPE, name, type, wide) [PRONY_##DTYPE] = narrow_max_##name,
#define MIN_ENTRY(DTYPE, name, type, wide) [PRONY_##DTYPE] = narrow_min_##name,
#define WRAPPING(op)                                                                                                   \
    {[PRONY_UINT8] = narrow_##op##_u8,   [PRONY_INT8] = narrow_##op##_u8,    [PRONY_UINT16] = narrow_##op##_u16,       \
     [PRONY_INT16] = narrow_##op##_u16,  [PRONY_UINT32] = narrow_##op##_u32, [PRONY_INT32] = narrow_##op##_u32,        \
     [PRONY_UINT64] = narrow_##op##_u64, [PRONY_INT64] = narrow_##op##_u64}
    .row_narrow = {[PRN_FOLD_ADD] = WRAPPING(add),
                   [PRN_FOLD_MUL] = WRAPPING(mul),
                   [PRN_FOLD_MAX] = {NARROW_UNSIGNED(MAX_ENTRY) NARROW_SIGNED(MAX_ENTRY)},
                   [PRN_FOLD_MIN] = {NARROW_UNSIGNED(MIN_ENTRY) NARROW_SIGNED(MIN_ENTRY)}},
    .columns_f64 = {FOLDS_F64(COLUMNS_ENTRY)},
    .columns_i64 = {FOLDS_I64(COLUMNS_ENTRY)},
    .ahead_f64 = ahead_f64,
    .ahead_i64 = ahead_i64,
    .find_f64 = find_f64,
    .find_i64 = find_i64,
    .find_f32 = find_f32,
    .cumulate_f32 = cumulate_f32,
};
