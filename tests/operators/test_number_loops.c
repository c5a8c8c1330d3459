/* The loops that are compiled once per instruction set and serve every number type, against arithmetic on single
 * elements: conversions (number_simd.h), binary rows and selection (element_rows.h), folds (fold.h). The test tries
 * every table that this processor can run, at every length up to a few vectors. */
#include "failure_trace.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/kernels/vector/fold.h"
#include "ops/kernels/vector/number_simd.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, prn_element_rows, prn_element_rows_)
PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, prn_fold_table, prn_fold_)
PRN_SIMD_VARIANTS(PRN_SIMD_DECLARE_, prn_number_simd, prn_number_simd_)

#define ADD(variant, needs, name)                                                                                      \
    if (prn_isa_has(needs)) tables[table_count++] = &name##_##variant;
#define TABLES(name, type)                                                                                             \
    const type *tables[3];                                                                                             \
    int table_count = 0;                                                                                               \
    PRN_SIMD_VARIANTS(ADD, name)

enum { ROW = 150 };

static uint64_t state_bits = 1;
static uint64_t random_bits(void)
{
    state_bits ^= state_bits << 13;
    state_bits ^= state_bits >> 7;
    state_bits ^= state_bits << 17;
    return state_bits;
}

static const double edges[] = {0.0,     -0.0,    1.0,          -1.0,          0.5,          -0.5,  1.5,   2.5,
                               127.0,   128.0,   -128.0,       -129.0,        255.0,        256.0, 1e-8,  6e-5,
                               65504.0, 65520.0, 2147483647.0, -2147483648.0, 4294967295.0, 1e10,  -1e10, 1e19,
                               -1e19,   1e300,   INFINITY,     -INFINITY,     NAN,          3e38};
enum { EDGES = sizeof edges / sizeof *edges };

/* Numbers of every size, and special ones. 64-bit integers stay below 2^53 if `exact`. */
static void fill(void *data, prony_dtype dtype, int n, bool exact)
{
    for (int i = 0; i < n; i++) {
        const uint64_t bits = random_bits();
        if (prn_dtype_is_number(dtype) && i % 3 == 0) {
            prn_put_f64(data, dtype, i, edges[bits % EDGES]);
        } else if (dtype == PRONY_FLOAT32 || dtype == PRONY_FLOAT64 || dtype == PRONY_FLOAT16 ||
                   dtype == PRONY_BFLOAT16) {
            prn_put_f64(data, dtype, i, ldexp((double)(int32_t)bits, (int)(bits >> 40) % 80 - 70));
        } else {
            prn_put_i64(data, dtype, i, (int64_t)bits >> (bits >> 32) % 64);
        }
        if (exact && (dtype == PRONY_INT64 || dtype == PRONY_UINT64)) ((int64_t *)data)[i] >>= 12;
    }
}

static bool is_real(prony_dtype dtype)
{
    return dtype == PRONY_FLOAT32 || dtype == PRONY_FLOAT64 || dtype == PRONY_FLOAT16 || dtype == PRONY_BFLOAT16;
}

/* ---- conversions */

static void expect_converted(prony_dtype to_type, const void *to, prony_dtype from_type, const void *from, int i,
                             int table)
{
    uint64_t want = 0, got = 0;
    const size_t size = prony_dtype_bytes(to_type, 1);
    memcpy(&got, (const char *)to + (size_t)i * size, size);
    if (is_real(from_type) || is_real(to_type)) {
        prn_put_f64(&want, to_type, 0, prn_get_f64(from, from_type, i));
    } else {
        prn_put_i64(&want, to_type, 0, prn_get_i64(from, from_type, i));
    }
    if (memcmp(&want, &got, size) == 0) return;
    if (is_real(to_type) && isnan(prn_get_f64(&want, to_type, 0)) && isnan(prn_get_f64(&got, to_type, 0))) return;
    fail_msg("table %d, %s to %s: %.17g gave %llx, wanted %llx", table, prony_dtype_name(from_type),
             prony_dtype_name(to_type), prn_get_f64(from, from_type, i), (unsigned long long)got,
             (unsigned long long)want);
}

static void conversions_agree(void **state)
{
    (void)state;
    static uint64_t from[ROW], to[ROW + 1], work[ROW];
    static const prn_work works[PRONY_DTYPE_COUNT] = {
#define WORK(DTYPE, name, storage, form, load) [PRONY_##DTYPE] = PRN_WORK_##form,
        PRN_OTHER_WORK_FORMS(WORK) PRN_HALF_WORK_FORM(WORK)};
    TABLES(prn_number_simd, prn_number_simd)
    for (int f = 0; f < PRONY_DTYPE_COUNT; f++) {
        SCENARIO(f);
        for (int t = 0; t < PRONY_DTYPE_COUNT; t++) {
            const prony_dtype from_type = (prony_dtype)f, to_type = (prony_dtype)t;
            if (!prn_dtype_is_number(from_type) || !prn_dtype_is_number(to_type)) continue;
            fill(from, from_type, ROW, true);
            for (int k = 0; k < table_count; k++) {
                for (int n = 0; n <= ROW; n += 1 + n / 40) {
                    memset(to, 0x5a, sizeof to);
                    tables[k]->load[from_type](work, from, n);
                    tables[k]->store[to_type][works[from_type]](to, work, n);
                    for (int i = 0; i < n; i++) expect_converted(to_type, to, from_type, from, i, k);
                    assert_int_equal(((const uint8_t *)to)[prony_dtype_bytes(to_type, n)], 0x5a);
                }
            }
            prn_convert(to, to_type, from, from_type, ROW);
            for (int i = 0; i < ROW; i++) expect_converted(to_type, to, from_type, from, i, -1);
        }
    }
}

/* ---- rows */

static double real_row(prn_row_op op, double x, double y)
{
    switch (op) {
    case PRN_ROW_ADD:
        return x + y;
    case PRN_ROW_SUB:
        return x - y;
    case PRN_ROW_MUL:
        return x * y;
    case PRN_ROW_DIV:
        return x / y;
    case PRN_ROW_MIN:
        return isnan(x) || x < y ? x : y;
    case PRN_ROW_MAX:
        return isnan(x) || x > y ? x : y;
    case PRN_ROW_PRELU:
        return x < 0 ? x * y : x;
    case PRN_ROW_MOD:
    case PRN_ROW_FMOD:
        return fmod(x, y);
    case PRN_ROW_EQUAL:
        return x == y;
    case PRN_ROW_GREATER:
        return x > y;
    case PRN_ROW_LESS:
        return x < y;
    case PRN_ROW_GREATER_OR_EQUAL:
        return x >= y;
    case PRN_ROW_LESS_OR_EQUAL:
        return x <= y;
    default:
        return NAN;
    }
}

/* In 128 bits, which no operation on 64 bits overflows. */
static __int128 whole_row(prn_row_op op, __int128 x, __int128 y, unsigned bits)
{
    const __int128 rest = y == 0 ? 0 : x % y;
    switch (op) {
    case PRN_ROW_ADD:
        return x + y;
    case PRN_ROW_SUB:
        return x - y;
    case PRN_ROW_MUL:
        return (__int128)((unsigned __int128)x * (unsigned __int128)y);
    case PRN_ROW_DIV:
        return y == 0 ? 0 : x / y;
    case PRN_ROW_MIN:
        return x < y ? x : y;
    case PRN_ROW_MAX:
        return x > y ? x : y;
    case PRN_ROW_PRELU:
        return x < 0 ? (__int128)((unsigned __int128)x * (unsigned __int128)y) : x;
    case PRN_ROW_MOD:
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    case PRN_ROW_FMOD:
        return rest;
    case PRN_ROW_BITWISE_AND:
        return x & y;
    case PRN_ROW_BITWISE_OR:
        return x | y;
    case PRN_ROW_BITWISE_XOR:
        return x ^ y;
    case PRN_ROW_SHIFT_LEFT:
        return y < bits ? x << y : 0;
    case PRN_ROW_SHIFT_RIGHT:
        return y < bits ? x >> y : 0;
    case PRN_ROW_AND:
        return x && y;
    case PRN_ROW_OR:
        return x || y;
    case PRN_ROW_XOR:
        return !x != !y;
    default:
        return op == PRN_ROW_EQUAL              ? x == y
               : op == PRN_ROW_GREATER          ? x > y
               : op == PRN_ROW_LESS             ? x < y
               : op == PRN_ROW_GREATER_OR_EQUAL ? x >= y
                                                : x <= y;
    }
}

static __int128 whole_at(prony_dtype dtype, const void *data, int i)
{
    const int64_t x = prn_get_i64(data, dtype, i);
    return dtype == PRONY_UINT64 ? (__int128)(uint64_t)x : x;
}

static void expect_row(prn_row_op op, prony_dtype dtype, const void *y, int i, const void *a, int ia, const void *b,
                       int ib)
{
    const bool test = op >= PRN_ROW_EQUAL && op <= PRN_ROW_LESS_OR_EQUAL;
    const prony_dtype out = test ? PRONY_BOOL : dtype;
    uint64_t want = 0, got = 0;
    const size_t size = prony_dtype_bytes(out, 1);
    memcpy(&got, (const char *)y + (size_t)i * size, size);
    if (is_real(dtype)) {
        prn_put_f64(&want, out, 0, real_row(op, prn_get_f64(a, dtype, ia), prn_get_f64(b, dtype, ib)));
    } else {
        const unsigned bits = (unsigned)(8 * prony_dtype_bytes(dtype, 1));
        prn_put_i64(&want, out, 0, (int64_t)whole_row(op, whole_at(dtype, a, ia), whole_at(dtype, b, ib), bits));
    }
    if (memcmp(&want, &got, size) == 0) return;
    if (is_real(out) && isnan(prn_get_f64(&want, out, 0)) && isnan(prn_get_f64(&got, out, 0))) return;
    fail_msg("operator %d on %s: %.17g and %.17g gave %llx, wanted %llx", (int)op, prony_dtype_name(dtype),
             prn_get_f64(a, dtype, ia), prn_get_f64(b, dtype, ib), (unsigned long long)got, (unsigned long long)want);
}

static void rows_agree(void **state)
{
    (void)state;
    static uint64_t a[ROW], b[ROW], y[ROW];
    TABLES(prn_element_rows, prn_element_rows)
    for (int d = 0; d < PRONY_DTYPE_COUNT; d++) {
        SCENARIO(d);
        const prony_dtype dtype = (prony_dtype)d;
        for (int o = 0; o < PRN_ROW_COUNT; o++) {
            const prn_row_op op = (prn_row_op)o;
            for (int k = 0; k < table_count; k++) {
                const prn_row_fn fn = tables[k]->row[op][dtype];
                assert_int_equal(fn == NULL, tables[0]->row[op][dtype] == NULL);
                if (!fn) continue;
                fill(a, dtype, ROW, false);
                fill(b, dtype, ROW, false);
                for (int n = 0; n <= ROW; n += 1 + n / 20) {
                    const int pick = n * 7 % ROW;
                    const char *one = prn_block_at(b, dtype, pick);
                    fn(y, a, b, n, 1, 1);
                    for (int i = 0; i < n; i++) expect_row(op, dtype, y, i, a, i, b, i);
                    fn(y, a, one, n, 1, 0);
                    for (int i = 0; i < n; i++) expect_row(op, dtype, y, i, a, i, b, pick);
                    fn(y, one, a, n, 0, 1);
                    for (int i = 0; i < n; i++) expect_row(op, dtype, y, i, b, pick, a, i);
                }
                if (op >= PRN_ROW_EQUAL && op <= PRN_ROW_LESS_OR_EQUAL) continue;
                memcpy(y, a, sizeof y);
                fn(y, y, b, ROW, 1, 1);
                for (int i = 0; i < ROW; i++) expect_row(op, dtype, y, i, a, i, b, i);
            }
        }
    }
}

/* Products and quotients of float32 rounded once more are those of the half precisions. */
static void half_rows_agree(void **state)
{
    (void)state;
    static uint16_t a[600], b[600], y[600];
    static const prony_dtype types[] = {PRONY_FLOAT16, PRONY_BFLOAT16};
    for (int t = 0; t < 2; t++) {
        SCENARIO(t);
        fill(a, types[t], 600, false);
        fill(b, types[t], 600, false);
        for (int o = 0; o <= PRN_ROW_LESS_OR_EQUAL; o++) {
            if (o == PRN_ROW_MOD || o == PRN_ROW_FMOD) continue;
            const prn_row_op op = (prn_row_op)o;
            prn_element_row(op, types[t], y, a, b, 600, 1, 1);
            for (int i = 0; i < 600; i++) expect_row(op, types[t], y, i, a, i, b, i);
            prn_element_row(op, types[t], y, a, b + 3, 600, 1, 0);
            for (int i = 0; i < 600; i++) expect_row(op, types[t], y, i, a, i, b, 3);
            prn_element_row(op, types[t], y, a + 3, b, 600, 0, 1);
            for (int i = 0; i < 600; i++) expect_row(op, types[t], y, i, a, 3, b, i);
        }
    }
}

static void picks_agree(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 2, 4, 8};
    uint8_t c[ROW], x[8 * ROW], y[8 * ROW], to[8 * ROW];
    TABLES(prn_element_rows, prn_element_rows)
    for (int i = 0; i < ROW; i++) c[i] = random_bits() % 2;
    for (int i = 0; i < 8 * ROW; i++) {
        x[i] = (uint8_t)random_bits();
        y[i] = (uint8_t)random_bits();
    }
    for (int k = 0; k < table_count; k++) {
        SCENARIO(k);
        for (int w = 0; w < 4; w++) {
            for (int steps = 0; steps < 8; steps++) {
                const int c_step = steps & 1, x_step = steps >> 1 & 1, y_step = steps >> 2;
                for (int n = 1; n <= ROW; n += 1 + n / 10) {
                    tables[k]->pick[w](to, c + 1, x, y, n - 1, c_step, x_step, y_step);
                    for (int i = 0; i < n - 1; i++) {
                        const uint8_t *from = c[1 + i * c_step] ? x + widths[w] * (size_t)(i * x_step)
                                                                : y + widths[w] * (size_t)(i * y_step);
                        assert_memory_equal(to + widths[w] * (size_t)i, from, widths[w]);
                    }
                }
            }
        }
    }
}

/* ---- folds */

static double folded(prn_fold fold, double a, double x)
{
    switch (fold) {
    case PRN_FOLD_MUL:
        return a * x;
    case PRN_FOLD_MAX:
        return isnan(a) || a > x ? a : x;
    case PRN_FOLD_MIN:
        return isnan(a) || a < x ? a : x;
    case PRN_FOLD_ABS:
        return a + fabs(x);
    case PRN_FOLD_SQUARE:
        return a + x * x;
    default:
        return a + x;
    }
}

/* On small whole numbers, so that doubles are exact in any order. */
static void folds_agree(void **state)
{
    (void)state;
    double real[ROW], sums[ROW];
    int64_t whole[ROW], whole_sums[ROW];
    TABLES(prn_fold, prn_fold_table)
    for (int i = 0; i < ROW; i++) {
        whole[i] = (int64_t)(random_bits() % 7) - 3;
        if (whole[i] == 0) whole[i] = 1;
        real[i] = (double)whole[i];
    }
    for (int k = 0; k < table_count; k++) {
        SCENARIO(k);
        for (int f = 0; f < PRN_FOLD_COUNT; f++) {
            for (int n = 0; n <= (f == PRN_FOLD_MUL ? 30 : ROW); n++) {
                double want = 2.0;
                for (int i = 0; i < n; i++) want = folded((prn_fold)f, want, real[i]);
                assert_true(tables[k]->row_f64[f](2.0, real, n) == want);
                assert_true(tables[k]->row_i64[f](2, whole, n) == (int64_t)want);
                for (int i = 0; i < n; i++) whole_sums[i] = (int64_t)(sums[i] = i);
                tables[k]->columns_f64[f](sums, real, n);
                tables[k]->columns_i64[f](whole_sums, whole, n);
                for (int i = 0; i < n; i++) {
                    assert_true(sums[i] == folded((prn_fold)f, i, real[i]));
                    assert_true(whole_sums[i] == (int64_t)sums[i]);
                }
            }
        }
        for (int at = 0; at < ROW; at += 11) {
            double row[ROW];
            memcpy(row, real, sizeof row);
            row[at] = NAN;
            assert_true(isnan(tables[k]->row_f64[PRN_FOLD_MAX](0.0, row, ROW)));
            assert_true(isnan(tables[k]->row_f64[PRN_FOLD_MIN](0.0, row, ROW)));
            assert_int_equal(tables[k]->find_f64(row, ROW, NAN, false), at);
            assert_int_equal(tables[k]->find_f64(row, ROW, NAN, true), at);
        }
    }
}

static void narrow_folds_agree(void **state)
{
    (void)state;
    static const prn_row_op ops[PRN_FOLD_COUNT] = {[PRN_FOLD_ADD] = PRN_ROW_ADD,
                                                   [PRN_FOLD_MUL] = PRN_ROW_MUL,
                                                   [PRN_FOLD_MAX] = PRN_ROW_MAX,
                                                   [PRN_FOLD_MIN] = PRN_ROW_MIN};
    static uint64_t x[ROW];
    TABLES(prn_fold, prn_fold_table)
    for (int d = 0; d < PRONY_DTYPE_COUNT; d++) {
        SCENARIO(d);
        const prony_dtype dtype = (prony_dtype)d;
        if (!prn_dtype_is_number(dtype) || is_real(dtype) || dtype == PRONY_BOOL) continue;
        fill(x, dtype, ROW, false);
        for (int f = PRN_FOLD_ADD; f <= PRN_FOLD_MIN; f++) {
            for (int k = 0; k < table_count; k++) {
                for (int n = 1; n <= ROW; n++) {
                    uint64_t got = x[0], want = x[0];
                    tables[k]->row_narrow[f][dtype](&got, prn_block_at(x, dtype, 1), n - 1);
                    for (int i = 1; i < n; i++) {
                        const __int128 a = whole_at(dtype, &want, 0), b = whole_at(dtype, x, i);
                        prn_put_i64(&want, dtype, 0, (int64_t)whole_row(ops[f], a, b, 64));
                    }
                    assert_memory_equal(&got, &want, prony_dtype_bytes(dtype, 1));
                }
            }
        }
    }
}

/* Of equals the first counts, or the last; NaN is ahead of everything. */
static void extremes_are_found(void **state)
{
    (void)state;
    static const double given[] = {1, 5, NAN, 5, -2, 7, 7, NAN, -9, -9};
    enum { COUNT = sizeof given / sizeof *given };
    TABLES(prn_fold, prn_fold_table)
    for (int k = 0; k < table_count; k++) {
        SCENARIO(k);
        for (int form = 0; form < 4; form++) {
            const bool smallest = form & 1, last = form & 2;
            for (int n = 1; n <= COUNT; n++) {
                double best[3] = {given[0], given[0], given[0]};
                int64_t at[3] = {0}, whole[3] = {1, 1, 1}, whole_at[3] = {0};
                int want = 0, want_whole = 0;
                for (int i = 1; i < n; i++) {
                    const double a = given[i], b = given[want];
                    const bool nan = isnan(a) && (!isnan(b) || last);
                    if (nan || (!isnan(b) && (smallest ? a < b : a > b)) || (last && a == b)) want = i;
                    const double c = isnan(a) ? 0 : a, e = isnan(given[want_whole]) ? 0 : given[want_whole];
                    if ((smallest ? c < e : c > e) || (last && c == e)) want_whole = i;
                    const double column[3] = {a, a, a};
                    const int64_t whole_column[3] = {(int64_t)c, (int64_t)c, (int64_t)c};
                    tables[k]->ahead_f64(best, at, column, 3, i, smallest, last);
                    tables[k]->ahead_i64(whole, whole_at, whole_column, 3, i, smallest, last);
                }
                for (int i = 0; i < 3; i++) {
                    assert_int_equal(at[i], want);
                    assert_int_equal(whole_at[i], want_whole);
                }
            }
        }
        float row[ROW];
        int64_t whole[ROW];
        for (int i = 0; i < ROW; i++) whole[i] = (int64_t)(row[i] = (float)(i % 50));
        assert_int_equal(tables[k]->find_f32(row, ROW, 49.0f, false), 49);
        assert_int_equal(tables[k]->find_f32(row, ROW, 49.0f, true), 149);
        assert_int_equal(tables[k]->find_i64(whole, ROW, 3, false), 3);
        assert_int_equal(tables[k]->find_i64(whole, ROW, 3, true), 103);
        assert_int_equal(tables[k]->find_i64(whole, ROW, 50, false), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions_agree),  cmocka_unit_test(rows_agree),  cmocka_unit_test(half_rows_agree),
        cmocka_unit_test(picks_agree),        cmocka_unit_test(folds_agree), cmocka_unit_test(extremes_are_found),
        cmocka_unit_test(narrow_folds_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
