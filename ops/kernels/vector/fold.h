/* Folding blocks of doubles or 64-bit integers into running results: the loops of reductions, arguments of extremes and
 * cumulative sums, compiled once per instruction set. Elements of other types come here in blocks (number.h). Integers
 * wrap; NaN stays in extremes. A fold of one row has one order per length. No state, thread-safe.
 */
#ifndef PRN_OPS_KERNELS_VECTOR_FOLD_H
#define PRN_OPS_KERNELS_VECTOR_FOLD_H

#include "prony.h"

typedef enum prn_fold {
    PRN_FOLD_ADD,
    PRN_FOLD_MUL,
    PRN_FOLD_MAX,
    PRN_FOLD_MIN,
    PRN_FOLD_ABS,
    PRN_FOLD_SQUARE,
    PRN_FOLD_COUNT
} prn_fold;

typedef struct prn_fold_table {
    /* `start` combined with f(x[0]), …, f(x[n - 1]), f the absolute value or the square where the fold says so */
    double (*row_f64[PRN_FOLD_COUNT])(double start, const double *x, int64_t n);
    int64_t (*row_i64[PRN_FOLD_COUNT])(int64_t start, const int64_t *x, int64_t n);
    /* *sum combined with x[0], …, x[n - 1], all of an integer type: additions, products, extremes; NULL for others */
    void (*row_narrow[PRN_FOLD_COUNT][PRONY_DTYPE_COUNT])(void *sum, const void *x, int64_t n);
    /* sum[i] = sum[i] combined with f(x[i]) */
    void (*columns_f64[PRN_FOLD_COUNT])(double *sum, const double *x, int64_t n);
    void (*columns_i64[PRN_FOLD_COUNT])(int64_t *sum, const int64_t *x, int64_t n);

    /* If x[i] is ahead of best[i], or (last) is not behind it, it takes its place and at[i] becomes `place`. NaN is
     * ahead of everything. */
    void (*ahead_f64)(double *best, int64_t *at, const double *x, int64_t n, int64_t place, bool smallest, bool last);
    void (*ahead_i64)(int64_t *best, int64_t *at, const int64_t *x, int64_t n, int64_t place, bool smallest, bool last);
    /* Index of the first (or last) x[i] that equals `value`, NaN included, or -1. */
    int64_t (*find_f64)(const double *x, int64_t n, double value, bool last);
    int64_t (*find_i64)(const int64_t *x, int64_t n, int64_t value, bool last);
    int64_t (*find_f32)(const float *x, int64_t n, float value, bool last);

    /* Running sums of neighbouring lines: sum[i] += x[i]; y[i] is sum[i] behind that, or (exclusive) before it. y may
     * be x. */
    void (*cumulate_f32)(double *sum, const float *x, float *y, int64_t n, bool exclusive);
} prn_fold_table;

/* The table for this processor, within the cap on its instruction set. */
const prn_fold_table *prn_fold_loops(void);

#endif
