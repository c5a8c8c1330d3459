/* Rows of a binary elementwise operator for every number type but the half precisions (which are computed in float32),
 * compiled once per instruction set. Integer results wrap; division and remainder by zero give 0; shifts by the width
 * of the type or more give 0; no operand value is undefined behaviour. No state, thread-safe.
 */
#ifndef PRN_OPS_KERNELS_VECTOR_ELEMENT_ROWS_H
#define PRN_OPS_KERNELS_VECTOR_ELEMENT_ROWS_H

#include "prony.h"

typedef enum prn_row_op {
    PRN_ROW_ADD,
    PRN_ROW_SUB,
    PRN_ROW_MUL,
    PRN_ROW_DIV,
    PRN_ROW_MIN, /* NaN stays */
    PRN_ROW_MAX,
    PRN_ROW_PRELU,
    PRN_ROW_MOD,  /* integers: the sign of the divisor */
    PRN_ROW_FMOD, /* the sign of the dividend */
    PRN_ROW_EQUAL,
    PRN_ROW_GREATER,
    PRN_ROW_LESS,
    PRN_ROW_GREATER_OR_EQUAL,
    PRN_ROW_LESS_OR_EQUAL,
    PRN_ROW_BITWISE_AND,
    PRN_ROW_BITWISE_OR,
    PRN_ROW_BITWISE_XOR,
    PRN_ROW_SHIFT_LEFT,
    PRN_ROW_SHIFT_RIGHT,
    PRN_ROW_AND,
    PRN_ROW_OR,
    PRN_ROW_XOR,
    PRN_ROW_COUNT
} prn_row_op;

/* y[i] = a[i a_step] op b[i b_step], steps of 0 or 1; y may be an operand that is stepped through. Comparisons write
 * bool. */
typedef void (*prn_row_fn)(void *y, const void *a, const void *b, int64_t n, int64_t a_step, int64_t b_step);

/* to[i] = c[i c_step] ? x[i x_step] : y[i y_step], steps of 0 or 1; c and to are apart. */
typedef void (*prn_pick_fn)(void *to, const uint8_t *c, const void *x, const void *y, int64_t n, int64_t c_step,
                            int64_t x_step, int64_t y_step);

typedef struct prn_element_rows {
    prn_row_fn row[PRN_ROW_COUNT][PRONY_DTYPE_COUNT]; /* NULL: not defined on that type */
    prn_pick_fn pick[4];                              /* of elements of 1, 2, 4 and 8 bytes */
} prn_element_rows;

/* The table for this processor, within the cap on its instruction set. */
const prn_element_rows *prn_element_rows_table(void);

/* A row of any number type or bool: the half precisions are computed in float32, in blocks. `op` is defined on the
 * type; n is 1 where both steps are 0. */
void prn_element_row(prn_row_op op, prony_dtype dtype, void *y, const void *a, const void *b, int64_t n, int64_t a_step,
                     int64_t b_step);

#endif
