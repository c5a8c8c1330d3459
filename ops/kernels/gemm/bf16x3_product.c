/* Products of bfloat16, by what the processor has. */
#include "ops/kernels/gemm/bf16x3_product.h"

#include "base/cpu/simd.h"

PRN_SIMD_PICK_DOT(prn_bf16x3_simd, prn_bf16x3_simd_, static const prn_bf16x3_simd *simd)

bool prn_bf16x3_there(int parts)
{
    return parts <= simd()->most_parts;
}

void prn_bf16x3_begin(void)
{
    simd()->begin();
}

void prn_bf16x3_end(void)
{
    simd()->end();
}

bool prn_bf16x3_rows(const float *left, int left_count, const float *right, int right_count, int64_t step, int64_t rows,
                     int parts, uint16_t *to, int64_t part_step)
{
    return simd()->rows(left, left_count, right, right_count, step, rows, parts, to, part_step);
}

bool prn_bf16x3_rows_around(float center, const float *left, const float *right, int64_t step, int64_t rows,
                            uint16_t *to, int64_t part_step)
{
    return simd()->rows_around(center, left, right, step, rows, to, part_step);
}

bool prn_bf16x3_panel(const float *panel, int64_t depths, int parts, uint16_t *to)
{
    return simd()->panel(panel, depths, parts, to);
}

bool prn_bf16x3_multiply(const prn_bf16x3_tiles *tiles)
{
    return simd()->multiply(tiles);
}

void prn_bf16x3_store(const float *c, int64_t rows, const float *bias, const float *added, float low, float high,
                      float *y)
{
    simd()->store(c, rows, bias, added, low, high, y);
}
