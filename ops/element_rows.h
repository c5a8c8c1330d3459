/* Rows of a binary elementwise operator for every number type but the half precisions (which are computed in float32),
 * compiled once per instruction set. Integer results wrap; division and remainder by zero give 0; shifts by the width
 * of the type or more give 0; no operand value is undefined behaviour. No state, thread-safe.
 */
#ifndef PRN_OPS_ELEMENT_ROWS_H
#define PRN_OPS_ELEMENT_ROWS_H

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

typedef struct prn_element_rows {
    prn_row_fn row[PRN_ROW_COUNT][PRONY_DTYPE_COUNT]; /* NULL: not defined on that type */
} prn_element_rows;

/* The table for the processor (and cap) that prn_isa_level reports. */
const prn_element_rows *prn_element_rows_table(void);

#endif
