/* Rows of elementwise operators: picks the loops for this processor, and widens the half precisions for them. */
#include "ops/kernels/vector/element_rows.h"

#include "base/cpu/simd.h"
#include "ops/kernels/vector/number.h"

PRN_SIMD_PICK(prn_element_rows, prn_element_rows_, const prn_element_rows *prn_element_rows_table)

static bool is_comparison(prn_row_op op)
{
    return op >= PRN_ROW_EQUAL && op <= PRN_ROW_LESS_OR_EQUAL;
}

static void half_row(prn_row_op op, prony_dtype dtype, void *y, const void *a, const void *b, int64_t n, int64_t a_step,
                     int64_t b_step)
{
    const prn_row_fn fn = prn_element_rows_table()->row[op][PRONY_FLOAT32];
    float left[PRN_BLOCK], right[PRN_BLOCK];
    for (int64_t first = 0, count; first < n; first += count) {
        count = n - first < PRN_BLOCK ? n - first : PRN_BLOCK;
        if (a_step || first == 0)
            prn_convert(left, PRONY_FLOAT32, prn_block_at(a, dtype, first), dtype, a_step ? count : 1);
        if (b_step || first == 0)
            prn_convert(right, PRONY_FLOAT32, prn_block_at(b, dtype, first), dtype, b_step ? count : 1);
        if (is_comparison(op)) {
            fn((uint8_t *)y + first, left, right, count, a_step, b_step);
        } else {
            float *result = a_step ? left : right;
            fn(result, left, right, count, a_step, b_step);
            prn_convert((uint16_t *)y + first, dtype, result, PRONY_FLOAT32, count);
        }
    }
}

void prn_element_row(prn_row_op op, prony_dtype dtype, void *y, const void *a, const void *b, int64_t n, int64_t a_step,
                     int64_t b_step)
{
    if (dtype == PRONY_FLOAT16 || dtype == PRONY_BFLOAT16) {
        half_row(op, dtype, y, a, b, n, a_step, b_step);
    } else {
        prn_element_rows_table()->row[op][dtype](y, a, b, n, a_step, b_step);
    }
}
