/* Cells of regions (compiled once per PRN_SIMD): the rows of a cell are summed by vectors, for all columns of the
 * region, then of these sums the columns of each cell. A sum's order follows from its taps alone, for every instruction
 * set. */
#include "ops/vision/roi_align_simd.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec_math.h"

/* The taps' rows of `count` pixels from x on. */
static void roi_align_simd_sum_rows(const prn_roi_taps *rows, int64_t cell, const float *x, int64_t width,
                                    int64_t count, float *line)
{
    const int32_t begin = rows->begin[cell], end = rows->begin[cell + 1];
    for (int64_t i = 0; i < count; i += VEC_LANES) {
        vf sum = {0};
        for (int32_t tap = begin; tap < end; tap++)
            sum += v_splat(rows->weight[tap]) * v_load_part(x + rows->index[tap] * width + i, count - i, 0.0f);
        v_store_part(line + i, sum, count - i);
    }
}

/* a b + sum, in one rounding wherever the instruction set has one: a compiler that vectorises the products alone would
 * round twice. */
static inline float multiply_add(float a, float b, float sum)
{
#if defined(__FMA__) || defined(PRN_NEON)
    return __builtin_fmaf(a, b, sum);
#else
    return a * b + sum;
#endif
}

static void sum_columns(const prn_roi_taps *columns, const float *line, float samples, float *to)
{
    for (int64_t cell = 0; cell < columns->cells; cell++) {
        float sum = 0.0f;
        for (int32_t tap = columns->begin[cell]; tap < columns->begin[cell + 1]; tap++)
            sum = multiply_add(columns->weight[tap], line[columns->index[tap] - columns->low], sum);
        to[cell] = sum / samples;
    }
}

static void cells(const prn_roi_taps *rows, const prn_roi_taps *columns, const float *x, int64_t width, float samples,
                  float *to)
{
    float line[PRN_ROI_SPAN];
    for (int64_t cell = 0; cell < rows->cells; cell++, to += columns->cells) {
        roi_align_simd_sum_rows(rows, cell, x + columns->low, width, columns->high - columns->low, line);
        sum_columns(columns, line, samples, to);
    }
}

const prn_roi_align_simd PRN_SIMD_TABLE(prn_roi_align_simd_) = {cells};
