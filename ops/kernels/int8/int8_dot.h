/* The inner loops of products of 8-bit codes, compiled once per instruction set, those that multiply bytes included
 * (VNNI, AMX). Unsigned bytes times signed ones, summed in 32 bits that wrap around: exact, and the same bits at every
 * level.
 *
 *   A    rows of unsigned bytes, depths side by side
 *   B    panels of 32 columns: panel[depth / d][column][depth % d], depths padded with zeros to a multiple of 64; d is
 *        4, or 8 where matrices of 2 by 8 bytes are multiplied (I8MM of AArch64)
 *
 * No state but that of tiles between begin and end; thread-safe.
 */
#ifndef PRN_OPS_KERNELS_INT8_INT8_DOT_H
#define PRN_OPS_KERNELS_INT8_INT8_DOT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PRN_QINT8_ROWS = 32,    /* of a block of sums */
    PRN_QINT8_COLUMNS = 32, /* of a panel */
    PRN_QINT8_DEPTH = 64,   /* depths are padded to a multiple of it */
    PRN_QINT8_CHANNELS = 64 /* of a block of a depthwise convolution's channels */
};

/* From sums to codes, column by column:
 *
 *   v = (sum + bias) scale
 *   v = rounded(v) kept within [middle_low, middle_high], times middle_factor,
 *       + (residual code - residual_zero) residual_factor
 *   y = rounded(v) kept within [low, high] + zero
 *
 * The second line applies with a residual alone; it neither rounds nor bounds if `rounds` is false. Rounding is half to
 * even; NaN gives the lowest code. The bounds are codes less the zero point. */
typedef struct prn_qint8_epilogue {
    const int32_t *bias;
    const float *scale;
    float low, high;
    int32_t zero;
    bool y_signed;
    bool rounds, residual_signed;
    float middle_low, middle_high, middle_factor, residual_factor;
    int32_t residual_zero;
} prn_qint8_epilogue;

/* Output positions of a depthwise convolution: y[c] = finish(sum over taps of tap[t][c] w[t][c]). */
typedef struct prn_qint8_depthwise {
    int64_t channels;
    int64_t taps; /* a multiple of 4: behind the `used` ones, weights are 0 and taps anywhere that is readable */
    int64_t used;
    const int8_t *weights;     /* as `depthwise_pack` made them */
    prn_qint8_epilogue finish; /* bias and scale as `depthwise_order` made them */
} prn_qint8_depthwise;

/* Weights apart from a panel (int8_outliers.h): entries of one column. Unused ones are 0 at depth 0. */
typedef struct prn_qint8_outliers {
    uint32_t depth[4];
    int8_t weight[4]; /* within -64 and 64 */
    uint32_t column;
} prn_qint8_outliers;

typedef struct prn_qint8_dot {
    const char *name;
    int64_t panel_depths; /* d above */
    /* Products of bytes are added in 16 bits first: panels are split as int8_outliers.h says, and `turn` and `excess`
     * are there. */
    bool splits;
    /* Around all that a task does with `block`. */
    void (*begin)(void);
    void (*end)(void);
    /* sums[r][j] (+)= sum over k < depth of a[r][k] b[k][j] for r < rows <= 32 and 32 columns; depth a multiple of 4.
     * Rows of `a` are a_row apart, those of sums 32. As many rows as the next multiple of 16, and of each as many
     * depths as the next multiple of 64, must be readable; b has 0 there. Sums of unused rows of the 32 may be
     * overwritten. `steps`: of a split panel; else unused. */
    void (*block)(const uint8_t *a, int64_t rs_a, int64_t rows, const int8_t *b, int64_t depth, int32_t *sums, bool add,
                  int steps);
    /* to[k][r] = a[r][k] for rows r < rows <= 16 of 32, depths up to a multiple of 32; rows behind the last are any. */
    void (*turn)(const uint8_t *a, int64_t rs_a, int64_t rows, int64_t depth, uint8_t *to);
    /* sums[r][j] += products of 32 rows' codes, turned, and a panel's list, groups [from, to). */
    void (*excess)(const uint8_t *turned, const prn_qint8_outliers *from, const prn_qint8_outliers *to, int32_t *sums);
    /* Codes of `columns` columns, from number `column` on, of `rows` rows of sums. `residual` NULL: no residual. */
    void (*finish)(const prn_qint8_epilogue *f, const int32_t *sums, int64_t rows, int64_t column, int64_t columns,
                   uint8_t *y, int64_t y_row, const uint8_t *residual, int64_t residual_row);
    /* to[r][i] = from[r][i] ^ flip for r < rows, i < n */
    void (*copy)(uint8_t *to, int64_t to_row, const uint8_t *from, int64_t from_row, int64_t rows, int64_t n,
                 uint8_t flip);
    /* Weights w[channel][taps] in this level's order; bytes: channels up to a multiple of 64, times padded_taps, times
     * depthwise_bytes. */
    int64_t depthwise_bytes; /* of a weight */
    void (*depthwise_pack)(int8_t *to, const int8_t *w, int64_t channels, int64_t taps, int64_t padded_taps);
    /* Numbers of four bytes, one for each channel, in this level's order; as many as channels up to a multiple of 64.
     */
    void (*depthwise_order)(void *to, const void *from, int64_t channels);
    /* `count` positions; each tap of the next is `step` bytes further. y and residual are as dense as channels are. */
    void (*depthwise)(const prn_qint8_depthwise *d, const uint8_t *const *tap, int64_t step, int64_t count,
                      uint8_t flip, uint8_t *y, const uint8_t *residual);
    /* y[i] = rounded((a[i] - a_zero) a_factor + (b[i] - b_zero) b_factor) kept within [low, high] + zero: `f` has a as
     * the sum and b as the residual, scale[0] = a_factor, bias[0] = -a_zero; `a_signed` says of a what residual_signed
     * says of b. */
    void (*add)(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b, uint8_t *y, int64_t n);
    /* y[i] = rounded((a[i] - a_zero) (b[i] - b_zero) factor) kept within [low, high] + zero: `f` as for `add`, scale[0]
     * = factor. */
    void (*multiply)(const prn_qint8_epilogue *f, bool a_signed, const uint8_t *a, const uint8_t *b, uint8_t *y,
                     int64_t n);
    /* y[i] = table[x[i]] */
    void (*look_up)(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n);
    /* y[c] = the largest of tap[t][c], t < taps */
    void (*largest)(const uint8_t *const *tap, int64_t taps, int64_t channels, bool is_signed, uint8_t *y);
} prn_qint8_dot;

/* The table for this processor, within the cap on its instruction set. */
const prn_qint8_dot *prn_qint8_dot_table(void);

#endif
