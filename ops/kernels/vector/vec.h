/* Vector kernels on float32 arrays, compiled once per instruction set.
 *
 * Every function takes any alignment and any n >= 0. An element's result depends on its operands alone, never on its
 * position, so that a row may be cut anywhere; sums and dot products have one order per length. Reductions and what
 * follows from them look at whether to go on (base/threads/cancel.h) in long rows; maps and binary operators do not:
 * their callers cut. `y` may be the same array as an operand, but may not overlap one otherwise. NaN goes through every
 * map and through max and min. No state, thread-safe. */
#ifndef PRN_OPS_KERNELS_VECTOR_VEC_H
#define PRN_OPS_KERNELS_VECTOR_VEC_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

/* X(SYMBOL, name): y = f(x; a, b). Parameters that a map does not use are ignored.
 * exp, log, erf, tanh, sqrt and reciprocal are within 2 ulp, trigonometric functions and powers within 1; what is built
 * on them within a few. */
#define PRN_MAP_LIST(X)                                                                                                \
    X(COPY, copy)                         /* x */                                                                      \
    X(AFFINE, affine)                     /* a x + b */                                                                \
    X(RELU, relu)                         /* max(x, 0) */                                                              \
    X(CLIP, clip)                         /* min(max(x, a), b) */                                                      \
    X(LEAKY_RELU, leaky_relu)             /* x < 0 ? a x : x */                                                        \
    X(THRESHOLDED_RELU, thresholded_relu) /* x > a ? x : 0 */                                                          \
    X(SIGMOID, sigmoid)                   /* 1 / (1 + exp(-x)) */                                                      \
    X(TANH, tanh)                                                                                                      \
    X(EXP, exp)                                                                                                        \
    X(LOG, log)                                                                                                        \
    X(ERF, erf)                                                                                                        \
    X(GELU_ERF, gelu_erf)         /* x/2 (1 + erf(x / sqrt 2)) */                                                      \
    X(GELU_TANH, gelu_tanh)       /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */                                  \
    X(SILU, silu)                 /* x sigmoid(a x) */                                                                 \
    X(HARD_SIGMOID, hard_sigmoid) /* max(0, min(1, a x + b)) */                                                        \
    X(HARD_SWISH, hard_swish)     /* x max(0, min(1, x / 6 + 1/2)) */                                                  \
    X(ELU, elu)                   /* x > 0 ? x : a (exp(x) - 1) */                                                     \
    X(SELU, selu)                 /* b (x > 0 ? x : a (exp(x) - 1)) */                                                 \
    X(CELU, celu)                 /* x > 0 ? x : a (exp(x / a) - 1) */                                                 \
    X(SOFTPLUS, softplus)         /* log(1 + exp(x)) */                                                                \
    X(SOFTSIGN, softsign)         /* x / (1 + |x|) */                                                                  \
    X(MISH, mish)                 /* x tanh(softplus(x)) */                                                            \
    X(SQRT, sqrt)                                                                                                      \
    X(POW_HALF, pow_half) /* x^0.5: sqrt(x), but +infinity for -infinity and +0 for -0 */                              \
    X(RECIPROCAL, reciprocal)                                                                                          \
    X(SQUARE, square)                                                                                                  \
    X(CUBE, cube)                                                                                                      \
    X(ABS, abs)                                                                                                        \
    X(NEG, neg)                                                                                                        \
    X(FLOOR, floor)                                                                                                    \
    X(CEIL, ceil)                                                                                                      \
    X(ROUND, round)   /* half to even */                                                                               \
    X(SIGN, sign)     /* -1, 0 or 1 */                                                                                 \
    X(SHRINK, shrink) /* x < -a ? x + b : x > a ? x - b : 0 */                                                         \
    X(SIN, sin)                                                                                                        \
    X(COS, cos)                                                                                                        \
    X(TAN, tan)                                                                                                        \
    X(ASIN, asin)                                                                                                      \
    X(ACOS, acos)                                                                                                      \
    X(ATAN, atan)

typedef enum prn_map {
#define PRN_MAP_ENUM(symbol, name) PRN_MAP_##symbol,
    PRN_MAP_LIST(PRN_MAP_ENUM)
#undef PRN_MAP_ENUM
        PRN_MAP_COUNT
} prn_map_id;

/* X(SYMBOL, name): y = a op b. */
#define PRN_BINARY_LIST(X)                                                                                             \
    X(ADD, add)                                                                                                        \
    X(SUB, sub)                                                                                                        \
    X(MUL, mul)                                                                                                        \
    X(DIV, div)                                                                                                        \
    X(MIN, min)                                                                                                        \
    X(MAX, max)                                                                                                        \
    X(PRELU, prelu) /* a < 0 ? a b : a */                                                                              \
    X(POW, pow)

typedef enum prn_binary_id {
#define PRN_BINARY_ENUM(symbol, name) PRN_BINARY_##symbol,
    PRN_BINARY_LIST(PRN_BINARY_ENUM)
#undef PRN_BINARY_ENUM
        PRN_BINARY_COUNT
} prn_binary_id;

typedef void (*prn_map_fn)(float *y, const float *x, int64_t n, float a, float b);

typedef struct prn_vec_table {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */

    prn_map_fn map[PRN_MAP_COUNT];

    /* vector op vector, vector op scalar, scalar op vector */
    void (*vv[PRN_BINARY_COUNT])(float *y, const float *a, const float *b, int64_t n);
    void (*vs[PRN_BINARY_COUNT])(float *y, const float *a, float b, int64_t n);
    void (*sv[PRN_BINARY_COUNT])(float *y, float a, const float *b, int64_t n);
    /* One operand repeats every `period` elements; its index at i is (phase + i) mod period. vr: b repeats, rv: a does.
     */
    void (*vr[PRN_BINARY_COUNT])(float *y, const float *a, const float *b, int64_t n, int64_t period, int64_t phase);
    void (*rv[PRN_BINARY_COUNT])(float *y, const float *a, const float *b, int64_t n, int64_t period, int64_t phase);

    /* y[i] = x[i] scale[i] + shift[i] */
    void (*scale_shift)(float *y, const float *x, const float *scale, const float *shift, int64_t n);
    /* y[r][i] = x[r][i] scale[i] + shift[i], rows of `width` elements */
    void (*scale_shift_rows)(float *y, const float *x, const float *scale, const float *shift, int64_t rows,
                             int64_t width);
    /* y[i] = fill where choice[i], a truth value, is `wanted` */
    void (*fill_where)(float *y, const uint8_t *choice, bool wanted, float fill, int64_t n);
    /* y[i] += a x[i] */
    void (*add_scaled)(float *y, const float *x, float a, int64_t n);
    /* y[i] += (x[0][i] + x[1][i]) + (x[2][i] + x[3][i]) */
    void (*add_four)(float *y, const float *const x[4], int64_t n);

    /* Sums are built in blocks of 4096 elements and added up in double. Empty: 0. */
    double (*sum)(const float *x, int64_t n);
    double (*sum_squares)(const float *x, int64_t n);
    double (*sum_abs)(const float *x, int64_t n);
    double (*dot)(const float *a, const float *b, int64_t n);
    float (*max)(const float *x, int64_t n); /* empty: -infinity */
    float (*min)(const float *x, int64_t n); /* empty: +infinity */
    /* The same of `rows` rows of n elements one behind the other: y[r]. Sums are divided by `divisor` before they are
     * rounded. */
    void (*sum_rows)(float *y, const float *x, int64_t n, int64_t rows, double divisor);
    void (*max_rows)(float *y, const float *x, int64_t n, int64_t rows);
    void (*min_rows)(float *y, const float *x, int64_t n, int64_t rows);
    /* Mean and population variance by two passes; n > 0. */
    void (*mean_variance)(double *mean, double *variance, const float *x, int64_t n);

    /* y = exp(x - shift), 0 where that is subnormal; returns the sum of y. No x is above shift. */
    double (*exp_sum)(float *y, const float *x, int64_t n, float shift);
    void (*softmax)(float *y, const float *x, int64_t n);
    /* In place, for each row: x = exp(scale x + mask - the largest of these), 0 where that is subnormal; x times the
     * row's factor is softmax(scale x + mask). mask may be NULL. */
    void (*softmax_unscaled)(float *x, int64_t x_row, const float *mask, int64_t mask_row, float scale, int64_t n,
                             int64_t rows, float *factors);
    /* x *= factor; whether all of them are finite. */
    bool (*scale_finite)(float *x, float factor, int64_t n);
    void (*log_softmax)(float *y, const float *x, int64_t n); /* y and x may be the same array */
    /* y = (x - mean) / sqrt(variance + epsilon) scale + shift; scale, shift, and the two results may be NULL; n > 0. */
    void (*layer_norm)(float *y, const float *x, const float *scale, const float *shift, int64_t n, float epsilon,
                       float *mean, float *inverse_deviation);
    /* y = x / sqrt(mean(x^2) + epsilon) scale; scale may be NULL; n > 0. */
    void (*rms_norm)(float *y, const float *x, const float *scale, int64_t n, float epsilon);
} prn_vec_table;

/* The table for this processor, within the cap on its instruction set. */
const prn_vec_table *prn_vec(void);

/* map, vv and vs for rows that may be of any length: they are left early once the work is cancelled. */
void prn_long_map(prn_map_id map, float *y, const float *x, int64_t n, float a, float b);
void prn_long_vv(prn_binary_id op, float *y, const float *a, const float *b, int64_t n);
void prn_long_vs(prn_binary_id op, float *y, const float *a, float b, int64_t n);

#endif
