/* Products of bfloat16, by what the processor has. */
#include "ops/kernels/gemm/bf16x3_product.h"

#include "base/cpu/simd.h"

PRN_SIMD_PICK_DOT(prn_bf16x3_simd, prn_bf16x3_simd_, static const prn_bf16x3_simd *bf16x3_product_simd_table)

bool prn_bf16x3_there(int parts)
{
    return parts <= bf16x3_product_simd_table()->most_parts;
}

void prn_bf16x3_begin(void)
{
    bf16x3_product_simd_table()->begin();
}

void prn_bf16x3_end(void)
{
    bf16x3_product_simd_table()->end();
}

bool prn_bf16x3_rows(const float *left, int left_count, const float *right, int right_count, int64_t step, int64_t rows,
                     int parts, uint16_t *to, int64_t part_step)
{
    return bf16x3_product_simd_table()->rows(left, left_count, right, right_count, step, rows, parts, to, part_step);
}

bool prn_bf16x3_rows_around(float center, const float *left, const float *right, int64_t step, int64_t rows,
                            uint16_t *to, int64_t part_step)
{
    return bf16x3_product_simd_table()->rows_around(center, left, right, step, rows, to, part_step);
}

bool prn_bf16x3_panel(const float *panel, int64_t depths, int parts, uint16_t *to)
{
    return bf16x3_product_simd_table()->panel(panel, depths, parts, to);
}

bool prn_bf16x3_multiply(const prn_bf16x3_tiles *tiles)
{
    return bf16x3_product_simd_table()->multiply(tiles);
}

void prn_bf16x3_store(const float *c, int64_t rows, const float *bias, const float *added, float low, float high,
                      float *y)
{
    bf16x3_product_simd_table()->store(c, rows, bias, added, low, high, y);
}
