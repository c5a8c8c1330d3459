/* The loops of ops/kernels/vector/element_rows.h for one instruction set (PRN_SIMD names it).
 *
 * An operator is an expression in x and y of the storage type; `wide` is an unsigned type that wraps as it does and is
 * not promoted, `real` one whose quotients of two such numbers are never rounded to the next whole number, so that
 * cutting them off is an integer division. Functions that do not depend on the sign are compiled for the unsigned
 * types alone. Invariant: an element's result does not depend on its place or on the steps. */
#include "ops/kernels/vector/element_rows.h"
#include "base/cpu/simd.h"

#include <math.h>
#include <string.h>

/* y is an operand or apart from both. */
#ifdef __clang__
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* X(op, E, DTYPE, name, type, wide, real): op and E are handed through. */
#define REALS(X, op, E) X(op, E, FLOAT32, f32, float, float, float) X(op, E, FLOAT64, f64, double, double, double)
#define SHORT_UNSIGNED(X, op, E)                                                                                       \
    X(op, E, UINT8, u8, uint8_t, uint32_t, float)                                                                      \
    X(op, E, UINT16, u16, uint16_t, uint32_t, float)                                                                   \
    X(op, E, UINT32, u32, uint32_t, uint32_t, double)
#define SHORT_SIGNED(X, op, E)                                                                                         \
    X(op, E, INT8, i8, int8_t, uint32_t, float)                                                                        \
    X(op, E, INT16, i16, int16_t, uint32_t, float)                                                                     \
    X(op, E, INT32, i32, int32_t, uint32_t, double)
#define LONG_UNSIGNED(X, op, E) X(op, E, UINT64, u64, uint64_t, uint64_t, double)
#define LONG_SIGNED(X, op, E) X(op, E, INT64, i64, int64_t, uint64_t, double)
#define UNSIGNED(X, op, E) SHORT_UNSIGNED(X, op, E) LONG_UNSIGNED(X, op, E)
#define SIGNED(X, op, E) SHORT_SIGNED(X, op, E) LONG_SIGNED(X, op, E)
#define BOOLS(X, op, E) X(op, E, BOOL, b8, uint8_t, uint32_t, float)

/* ---- the loops: a row may be written over an operand */

#define DEFINE(op, name, type_, wide_, real_, result, expression)                                                      \
    static inline result op##_one_##name(type_ x, type_ y)                                                             \
    {                                                                                                                  \
        typedef type_ type;                                                                                            \
        typedef wide_ wide __attribute__((unused));                                                                    \
        typedef real_ real __attribute__((unused));                                                                    \
        (void)(type)0;                                                                                                 \
        return (result)(expression);                                                                                   \
    }                                                                                                                  \
    static void op##_##name(void *to_, const void *a_, const void *b_, int64_t n, int64_t a_step, int64_t b_step)      \
    {                                                                                                                  \
        typedef type_ __attribute__((may_alias)) element;                                                              \
        typedef result __attribute__((may_alias)) outcome;                                                             \
        outcome *to = to_;                                                                                             \
        const element *a = a_, *b = b_;                                                                                \
        if (a_step && b_step) {                                                                                        \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++) to[i] = op##_one_##name(a[i], b[i]);                                       \
        } else if (a_step) {                                                                                           \
            const type_ right = *b;                                                                                    \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++) to[i] = op##_one_##name(a[i], right);                                      \
        } else {                                                                                                       \
            const type_ left = *a;                                                                                     \
            INDEPENDENT                                                                                                \
            for (int64_t i = 0; i < n; i++) to[i] = op##_one_##name(left, b[i]);                                       \
        }                                                                                                              \
    }
#define ROW(op, E, DTYPE, name, type, wide, real) DEFINE(op, name, type, wide, real, type, E)
#define TEST(op, E, DTYPE, name, type, wide, real) DEFINE(op, name, type, wide, real, uint8_t, E)

/* ---- the operators */

#define WRAPPED(operation) (wide) x operation(wide) y
/* A divisor that neither fails nor overflows. */
#define SAFE_UNSIGNED (y == 0 ? (type)1 : y)
#define SAFE_SIGNED (y == 0 || y == -1 ? (type)1 : y)
#define NEGATED (type)(0 - (wide)x)
#define SHORT_QUOTIENT(divisor) (type)((real)x / (real)(divisor))
#define QUOTIENT(divisor) (type)(x / (divisor))
#define DIVIDED_UNSIGNED(quotient) y == 0 ? (type)0 : quotient(SAFE_UNSIGNED)
#define DIVIDED_SIGNED(quotient) y == 0 ? (type)0 : (y == -1 ? NEGATED : quotient(SAFE_SIGNED))
#define REST_OF(quotient, divisor) (type)((wide)x - (wide)quotient(divisor) * (wide)(divisor))
#define REST_UNSIGNED(quotient) y == 0 ? (type)0 : REST_OF(quotient, SAFE_UNSIGNED)
#define REST_SIGNED(quotient) y == 0 ? (type)0 : REST_OF(quotient, SAFE_SIGNED)
#define AS_DIVISOR(rest) (rest) != 0 && (x < 0) != (y < 0) ? (type)((wide)(rest) + (wide)y) : (rest)

REALS(ROW, add, x + y)
REALS(ROW, sub, x - y)
REALS(ROW, mul, x *y)
REALS(ROW, div, x / y)
REALS(ROW, min, x != x || x < y ? x : y)
REALS(ROW, max, x != x || x > y ? x : y)
REALS(ROW, prelu, x < 0 ? x * y : x)
ROW(fmod, fmodf(x, y), FLOAT32, f32, float, float, float)
ROW(fmod, fmod(x, y), FLOAT64, f64, double, double, double)

UNSIGNED(ROW, add, WRAPPED(+))
UNSIGNED(ROW, sub, WRAPPED(-))
UNSIGNED(ROW, mul, WRAPPED(*))
UNSIGNED(ROW, bitwise_and, x &y)
UNSIGNED(ROW, bitwise_or, x | y)
UNSIGNED(ROW, bitwise_xor, x ^ y)
UNSIGNED(ROW, shift_left, y < 8 * sizeof(type) ? (wide)x << (y % (8 * sizeof(wide))) : 0)
UNSIGNED(ROW, shift_right, y < 8 * sizeof(type) ? (wide)x >> (y % (8 * sizeof(wide))) : 0)
UNSIGNED(ROW, min, x < y ? x : y)
UNSIGNED(ROW, max, x > y ? x : y)
SIGNED(ROW, min, x < y ? x : y)
SIGNED(ROW, max, x > y ? x : y)
SIGNED(ROW, prelu, x < 0 ? (type)(WRAPPED(*)) : x)
UNSIGNED(ROW, prelu, ((void)y, x))
SHORT_UNSIGNED(ROW, div, DIVIDED_UNSIGNED(SHORT_QUOTIENT))
LONG_UNSIGNED(ROW, div, DIVIDED_UNSIGNED(QUOTIENT))
SHORT_SIGNED(ROW, div, DIVIDED_SIGNED(SHORT_QUOTIENT))
LONG_SIGNED(ROW, div, DIVIDED_SIGNED(QUOTIENT))
SHORT_UNSIGNED(ROW, fmod, REST_UNSIGNED(SHORT_QUOTIENT))
LONG_UNSIGNED(ROW, fmod, REST_UNSIGNED(QUOTIENT))
SHORT_SIGNED(ROW, fmod, REST_SIGNED(SHORT_QUOTIENT))
LONG_SIGNED(ROW, fmod, REST_SIGNED(QUOTIENT))
SHORT_SIGNED(ROW, mod, AS_DIVISOR(REST_SIGNED(SHORT_QUOTIENT)))
LONG_SIGNED(ROW, mod, AS_DIVISOR(REST_SIGNED(QUOTIENT)))
BOOLS(ROW, and, (x != 0) & (y != 0))
BOOLS(ROW, or, (x != 0) | (y != 0))
BOOLS(ROW, xor, (x != 0) ^ (y != 0))

#define ORDERED(X, op, E) REALS(X, op, E) UNSIGNED(X, op, E) SIGNED(X, op, E)
REALS(TEST, equal, x == y)
UNSIGNED(TEST, equal, x == y)
ORDERED(TEST, greater, x > y)
ORDERED(TEST, less, x < y)
ORDERED(TEST, greater_or_equal, x >= y)
ORDERED(TEST, less_or_equal, x <= y)

/* ---- picking: both operands are read, since what a condition will be cannot be foreseen */

#define PICK_LOOP(a, b)                                                                                                \
    do {                                                                                                               \
        INDEPENDENT                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const pick_type yes = a, no = b;                                                                           \
            to[i] = c[i] ? yes : no;                                                                                   \
        }                                                                                                              \
    } while (0)
#define DEFINE_PICK(bits, type)                                                                                        \
    static void pick_##bits(void *to_, const uint8_t *c, const void *x_, const void *y_, int64_t n, int64_t c_step,    \
                            int64_t x_step, int64_t y_step)                                                            \
    {                                                                                                                  \
        typedef type __attribute__((may_alias)) pick_type;                                                             \
        pick_type *to = to_;                                                                                           \
        const pick_type *x = x_, *y = y_;                                                                              \
        if (c_step == 0) {                                                                                             \
            const pick_type *from = *c ? x : y;                                                                        \
            const int64_t step = *c ? x_step : y_step;                                                                 \
            const type first = *from;                                                                                  \
            if (step && from != to) memcpy(to, from, (size_t)n * sizeof *to);                                          \
            for (int64_t i = 0; i < n && !step; i++) to[i] = first;                                                    \
        } else if (x_step && y_step) {                                                                                 \
            PICK_LOOP(x[i], y[i]);                                                                                     \
        } else if (x_step) {                                                                                           \
            const type other = *y;                                                                                     \
            PICK_LOOP(x[i], other);                                                                                    \
        } else if (y_step) {                                                                                           \
            const type other = *x;                                                                                     \
            PICK_LOOP(other, y[i]);                                                                                    \
        } else {                                                                                                       \
            const type one = *x, other = *y;                                                                           \
            PICK_LOOP(one, other);                                                                                     \
        }                                                                                                              \
    }
DEFINE_PICK(8, uint8_t)
DEFINE_PICK(16, uint16_t)
DEFINE_PICK(32, uint32_t)
DEFINE_PICK(64, uint64_t)

/* ---- the table */

#define ENTRY(op, E, DTYPE, name, type, wide, real) [PRONY_##DTYPE] = op##_##name,
#define SIGNED_AS_UNSIGNED(op)                                                                                         \
    [PRONY_INT8] = op##_u8, [PRONY_INT16] = op##_u16, [PRONY_INT32] = op##_u32, [PRONY_INT64] = op##_u64,
#define ALL(op) {ORDERED(ENTRY, op, )}
#define INTEGERS(op) {UNSIGNED(ENTRY, op, ) SIGNED_AS_UNSIGNED(op)}
#define NUMBERS(op) {REALS(ENTRY, op, ) UNSIGNED(ENTRY, op, ) SIGNED_AS_UNSIGNED(op)}

const prn_element_rows
    PRN_SIMD_TABLE(prn_element_rows_) =
        {
            .row =
                {
                    [PRN_ROW_ADD] = NUMBERS(add),
                    [PRN_ROW_SUB] = NUMBERS(sub),
                    [PRN_ROW_MUL] = NUMBERS(mul),
                    [PRN_ROW_DIV] = ALL(div),
                    [PRN_ROW_MIN] = ALL(min),
                    [PRN_ROW_MAX] = ALL(max),
                    [PRN_ROW_PRELU] = ALL(prelu),
                    [PRN_ROW_MOD] = {REALS(ENTRY, fmod, ) UNSIGNED(ENTRY, fmod, ) SIGNED(ENTRY, mod, )},
                    [PRN_ROW_FMOD] = ALL(fmod),
                    [PRN_ROW_EQUAL] = {REALS(ENTRY, equal, ) UNSIGNED(ENTRY, equal, )
                                           SIGNED_AS_UNSIGNED(equal)[PRONY_BOOL] = equal_u8},
                    [PRN_ROW_GREATER] = ALL(greater),
                    [PRN_ROW_LESS] = ALL(less),
                    [PRN_ROW_GREATER_OR_EQUAL] = ALL(greater_or_equal),
                    [PRN_ROW_LESS_OR_EQUAL] = ALL(less_or_equal),
                    [PRN_ROW_BITWISE_AND] = INTEGERS(bitwise_and),
                    [PRN_ROW_BITWISE_OR] = INTEGERS(bitwise_or),
                    [PRN_ROW_BITWISE_XOR] = INTEGERS(bitwise_xor),
                    [PRN_ROW_SHIFT_LEFT] = {UNSIGNED(ENTRY, shift_left, )},
                    [PRN_ROW_SHIFT_RIGHT] = {UNSIGNED(ENTRY, shift_right, )},
                    [PRN_ROW_AND] = {BOOLS(ENTRY, and, )},
                    [PRN_ROW_OR] = {BOOLS(ENTRY, or, )},
                    [PRN_ROW_XOR] = {BOOLS(ENTRY, xor, )},
                },
            .pick = {pick_8, pick_16, pick_32, pick_64},
};
