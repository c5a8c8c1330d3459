/* The rows of A that a product makes on the way, all at once, by the bf16x3_split_rows of the file that includes
 * this. */
#ifndef PRN_OPS_KERNELS_GEMM_BF16X3_LEFT_H
#define PRN_OPS_KERNELS_GEMM_BF16X3_LEFT_H

#include "ops/kernels/gemm/bf16x3_product.h"

static bool bf16x3_split_rows(const float *left, int left_count, const float *right, int right_count, int64_t step,
                              int64_t rows, int parts, uint16_t *to, int64_t part_step);

/* false: something in them has no parts. */
static bool split_left(const prn_bf16x3_left *left, int parts)
{
    bool finite = true;
    int64_t step = left->step, row = left->row;
    for (int64_t i = 0; i < left->count; i++) {
        const float *from = left->from + row * left->from_row + step * PRN_BF16X3_DEPTH;
        const int64_t depths = left->depths - step * PRN_BF16X3_DEPTH;
        const int first = depths < 16 ? (int)depths : 16, second = depths < 16   ? 0
                                                                   : depths < 32 ? (int)depths - 16
                                                                                 : 16;
        finite = bf16x3_split_rows(from, first, second ? from + 16 : NULL, second, 0, 1, parts,
                                   left->to + step * left->to_step + row * PRN_BF16X3_DEPTH, left->to_part) &&
                 finite;
        if (++row < left->rows) continue;
        row = 0;
        step++;
    }
    return finite;
}

#endif
