/* Rows of the depthwise convolution (compiled once per PRN_SIMD). Some successive outputs stay in registers while the
 * taps pass. Invariant: each output is summed in one order, whatever the lanes: taps by row and column; then the bias,
 * then a residual. */
#include "ops/conv/conv_depthwise_simd.h"
#include "base/cpu/fma_lane.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec_math.h"

#include <limits.h>

#ifdef PRN_PINNED
#define POSITIONS 16 /* a Neoverse V1 starts four multiply-adds a cycle, and each takes four cycles */
#elif VEC_LANES == 16 || defined(PRN_NEON)
#define POSITIONS 12
#else
#define POSITIONS 6
#endif
/* Tiles that begin or end with the row: widths that halves of 224 and of 320 have are whole numbers of them. */
#define WIDE_EDGE 14
#define EDGE 8
#define NARROW_EDGE 4

typedef struct taps {
    int64_t first, end; /* rows of the window inside the image */
} taps;

static inline taps rows_inside(const prn_depthwise_row *row)
{
    taps rows = {0, row->kernel[0]};
    while (rows.first < rows.end && row->top + rows.first * row->dilation[0] < 0) rows.first++;
    while (rows.first < rows.end && row->top + (rows.end - 1) * row->dilation[0] >= row->height) rows.end--;
    return rows;
}

VEC_INLINE void conv_depthwise_simd_finish(const prn_depthwise_row *row, int64_t at, const vf *sum, const int positions)
{
    const vf bias = v_load(row->bias), low = v_splat(row->low), high = v_splat(row->high);
    PRN_UNROLL
    for (int p = 0; p < positions; p++) {
        vf value = sum[p] + bias;
        if (row->added) value += v_load(row->added + (at + p) * VEC_LANES);
        if (row->clamped) value = v_clamp(value, low, high);
        v_store(row->y + (at + p) * VEC_LANES, value);
    }
}

VEC_INLINE void conv_depthwise_simd_tap(vf *sum, const float *x, const float *weights, int64_t step,
                                        const int positions)
{
    const vf weight = v_load(weights);
    PRN_UNROLL
    for (int p = 0; p < positions; p++) sum[p] += v_load(x + p * step * VEC_LANES) * weight;
}

#ifdef PRN_PINNED
/* A tile of AArch64: its sums are pinned to registers, so that gcc leaves no copies in their chains, and a row of taps is
 * a macro, as no function takes such a variable. An output's taps come in the order of conv_depthwise_simd_tap. */
#define BEGIN_SUMS PRN_PINNED_SUMS(PRN_PINNED_SUM)
#define TAKE_SUM(i, number)                                                                                            \
    if (i < positions) sum[i] = (vf)sum_##i;
#define END_SUMS PRN_PINNED_SUMS(TAKE_SUM)
#define ADD_ANY(i, number)                                                                                             \
    if (i < positions) PRN_FMA_VECTOR(sum_##i, v_load(tap + i * row->stride * VEC_LANES), weight);
#define ADD_KNOWN(i, number)                                                                                           \
    if (i < positions && i * stride + kx >= first && i * stride + kx < end)                                            \
        PRN_FMA_VECTOR(sum_##i, v_load(x + (i * stride + kx) * VEC_LANES), weight);

/* Outputs [at, at + positions) of windows of any kernel and stride. No column is padding. */
VEC_INLINE void pinned_tile_of_any(const prn_depthwise_row *row, const taps *rows, int64_t at, const int positions)
{
    vf sum[POSITIONS];
    BEGIN_SUMS
    for (int64_t ky = rows->first; ky < rows->end; ky++) {
        const float *tap =
            row->x + ((row->top + ky * row->dilation[0]) * row->width + row->left + at * row->stride) * VEC_LANES;
        const float *weights = row->weights + ky * row->kernel[1] * VEC_LANES;
        for (int64_t kx = 0; kx < row->kernel[1]; kx++, tap += row->dilation[1] * VEC_LANES) {
            const vf weight = v_load(weights + kx * VEC_LANES);
            PRN_PINNED_SUMS(ADD_ANY)
        }
    }
    END_SUMS
    conv_depthwise_simd_finish(row, at, sum, positions);
}

/* The same where stride and kernel are constants, as are the columns [first, end) that are not padding, counted from
 * the first window's. */
VEC_INLINE void pinned_tile(const prn_depthwise_row *row, const taps *rows, int64_t at, const int positions,
                            const int stride, const int kernel, const int first, const int end)
{
    vf sum[POSITIONS];
    BEGIN_SUMS
    for (int64_t ky = rows->first; ky < rows->end; ky++) {
        const float *x =
            row->x + ((row->top + ky * row->dilation[0]) * row->width + row->left + at * stride) * VEC_LANES;
        const float *weights = row->weights + ky * kernel * VEC_LANES;
        PRN_UNROLL
        for (int kx = 0; kx < kernel; kx++) {
            const vf weight = v_load(weights + kx * VEC_LANES);
            PRN_PINNED_SUMS(ADD_KNOWN)
        }
    }
    END_SUMS
    conv_depthwise_simd_finish(row, at, sum, positions);
}
#endif

/* Outputs [at, at + positions), none of whose columns is padding; positions, stride and kernel columns (0: any) are
 * constants after inlining. */
VEC_INLINE void conv_depthwise_simd_tile(const prn_depthwise_row *row, const taps *rows, int64_t at,
                                         const int positions, const int64_t stride, const int64_t kernel)
{
#ifdef PRN_PINNED
    if (kernel)
        pinned_tile(row, rows, at, positions, (int)stride, (int)kernel, 0, INT_MAX);
    else
        pinned_tile_of_any(row, rows, at, positions);
#else
    vf sum[POSITIONS];
    const int64_t step = stride ? stride : row->stride;
    PRN_UNROLL
    for (int p = 0; p < positions; p++) sum[p] = (vf){0};
    for (int64_t ky = rows->first; ky < rows->end; ky++) {
        const float *x =
            row->x + ((row->top + ky * row->dilation[0]) * row->width + row->left + at * row->stride) * VEC_LANES;
        const float *weights = row->weights + ky * row->kernel[1] * VEC_LANES;
        if (kernel) {
            PRN_UNROLL
            for (int64_t kx = 0; kx < kernel; kx++)
                conv_depthwise_simd_tap(sum, x + kx * VEC_LANES, weights + kx * VEC_LANES, step, positions);
        } else {
            for (int64_t kx = 0; kx < row->kernel[1]; kx++)
                conv_depthwise_simd_tap(sum, x + kx * row->dilation[1] * VEC_LANES, weights + kx * VEC_LANES, step,
                                        positions);
        }
    }
    conv_depthwise_simd_finish(row, at, sum, positions);
#endif
}

/* Zeros that are read as padding. */
static const float padding[VEC_LANES];

/* Outputs some of whose columns may be padding. */
VEC_INLINE void conv_depthwise_simd_edge(const prn_depthwise_row *row, const taps *rows, int64_t at,
                                         const int positions)
{
    vf sum[POSITIONS];
    PRN_UNROLL
    for (int p = 0; p < positions; p++) sum[p] = (vf){0};
    for (int64_t ky = rows->first; ky < rows->end; ky++) {
        const float *x = row->x + (row->top + ky * row->dilation[0]) * row->width * VEC_LANES;
        const float *weights = row->weights + ky * row->kernel[1] * VEC_LANES;
        int64_t column = row->left + at * row->stride;
        for (int64_t kx = 0; kx < row->kernel[1]; kx++, column += row->dilation[1]) {
            const vf weight = v_load(weights + kx * VEC_LANES);
            PRN_UNROLL
            for (int p = 0; p < positions; p++) {
                const int64_t place = column + p * row->stride;
                sum[p] += v_load((uint64_t)place < (uint64_t)row->width ? x + place * VEC_LANES : padding) * weight;
            }
        }
    }
    conv_depthwise_simd_finish(row, at, sum, positions);
}

static void edges(const prn_depthwise_row *row, const taps *rows, int64_t at, int64_t end)
{
    for (; at + 4 <= end; at += 4) conv_depthwise_simd_edge(row, rows, at, 4);
    if (end - at == 3) conv_depthwise_simd_edge(row, rows, at, 3);
    if (end - at == 2) conv_depthwise_simd_edge(row, rows, at, 2);
    if (end - at == 1) conv_depthwise_simd_edge(row, rows, at, 1);
}

VEC_INLINE void conv_depthwise_simd_inside(const prn_depthwise_row *row, const taps *rows, int64_t at, int64_t last,
                                           const int64_t stride, const int64_t kernel)
{
    for (; at + POSITIONS <= last; at += POSITIONS) conv_depthwise_simd_tile(row, rows, at, POSITIONS, stride, kernel);
    for (; POSITIONS > 12 && at + 12 <= last; at += 12) conv_depthwise_simd_tile(row, rows, at, 12, stride, kernel);
    for (; POSITIONS > 12 && at + 8 <= last; at += 8) conv_depthwise_simd_tile(row, rows, at, 8, stride, kernel);
    for (; POSITIONS > 6 && at + 6 <= last; at += 6) conv_depthwise_simd_tile(row, rows, at, 6, stride, kernel);
    for (; at + 4 <= last; at += 4) conv_depthwise_simd_tile(row, rows, at, 4, stride, kernel);
    if (at + 2 <= last) {
        conv_depthwise_simd_tile(row, rows, at, 2, stride, kernel);
        at += 2;
    }
    if (at < last) conv_depthwise_simd_tile(row, rows, at, 1, stride, kernel);
}

/* The same where a row is padded by half the kernel on the left, and its inputs are `stride` to an output but for
 * `missing` at its end: which columns of a tile are padding is known ahead, and they are left out. left, right: the
 * tile begins, or ends, with the row. All but row, rows and at are constants after inlining. */
VEC_INLINE void conv_depthwise_simd_edge_tile(const prn_depthwise_row *row, const taps *rows, int64_t at,
                                              const int positions, const int stride, const int kernel,
                                              const int missing, const bool left, const bool right)
{
    const int half = kernel / 2;
#ifdef PRN_PINNED
    pinned_tile(row, rows, at, positions, stride, kernel, left ? half : 0,
                right ? stride * positions - missing + half : INT_MAX);
#else
    vf sum[WIDE_EDGE];
    PRN_UNROLL
    for (int p = 0; p < positions; p++) sum[p] = (vf){0};
    for (int64_t ky = rows->first; ky < rows->end; ky++) {
        const float *x = row->x + ((row->top + ky * row->dilation[0]) * row->width + at * stride) * VEC_LANES;
        const float *weights = row->weights + ky * kernel * VEC_LANES;
        PRN_UNROLL
        for (int kx = 0; kx < kernel; kx++) {
            const vf weight = v_load(weights + kx * VEC_LANES);
            PRN_UNROLL
            for (int p = 0; p < positions; p++) {
                const int column = p * stride + kx - half;
                if (left && column < 0) continue;
                if (right && kx - half >= stride * (positions - p) - missing) continue;
                sum[p] += v_load(x + column * VEC_LANES) * weight;
            }
        }
    }
    conv_depthwise_simd_finish(row, at, sum, positions);
#endif
}

/* True if the row was one that conv_depthwise_simd_edge_tile can begin and end, and is done. */
VEC_INLINE bool padded_evenly(const prn_depthwise_row *row, const taps *rows, const int stride, const int kernel,
                              const int missing)
{
    const int64_t columns = row->columns;
    if (row->left != -(kernel / 2) || row->width != columns * stride - missing) return false;
#define WHOLE_ROW(count)                                                                                               \
    case count:                                                                                                        \
        conv_depthwise_simd_edge_tile(row, rows, 0, count, stride, kernel, missing, true, true);                       \
        return true;
    switch (columns) {
        WHOLE_ROW(3) WHOLE_ROW(4) WHOLE_ROW(5) WHOLE_ROW(6) WHOLE_ROW(7) WHOLE_ROW(8) WHOLE_ROW(10) WHOLE_ROW(WIDE_EDGE)
    }
    if (columns % WIDE_EDGE == 0) {
        conv_depthwise_simd_edge_tile(row, rows, 0, WIDE_EDGE, stride, kernel, missing, true, false);
        for (int64_t at = WIDE_EDGE; at < columns - WIDE_EDGE; at += WIDE_EDGE)
            conv_depthwise_simd_edge_tile(row, rows, at, WIDE_EDGE, stride, kernel, missing, false, false);
        conv_depthwise_simd_edge_tile(row, rows, columns - WIDE_EDGE, WIDE_EDGE, stride, kernel, missing, false, true);
    } else if (columns >= 2 * EDGE) {
        conv_depthwise_simd_edge_tile(row, rows, 0, EDGE, stride, kernel, missing, true, false);
        conv_depthwise_simd_inside(row, rows, EDGE, columns - EDGE, stride, kernel);
        conv_depthwise_simd_edge_tile(row, rows, columns - EDGE, EDGE, stride, kernel, missing, false, true);
    } else if (columns >= 2 * NARROW_EDGE) {
        conv_depthwise_simd_edge_tile(row, rows, 0, NARROW_EDGE, stride, kernel, missing, true, false);
        conv_depthwise_simd_inside(row, rows, NARROW_EDGE, columns - NARROW_EDGE, stride, kernel);
        conv_depthwise_simd_edge_tile(row, rows, columns - NARROW_EDGE, NARROW_EDGE, stride, kernel, missing, false,
                                      true);
    } else {
        return false;
    }
    return true;
}

static bool run_padded_evenly(const prn_depthwise_row *row, const taps *rows)
{
    if (row->dilation[1] != 1) return false;
    if (row->kernel[1] == 3 && row->stride == 1) return padded_evenly(row, rows, 1, 3, 0);
    if (row->kernel[1] == 3 && row->stride == 2)
        return padded_evenly(row, rows, 2, 3, 0) || padded_evenly(row, rows, 2, 3, 1);
    if (row->kernel[1] == 5 && row->stride == 1) return padded_evenly(row, rows, 1, 5, 0);
    if (row->kernel[1] == 5 && row->stride == 2)
        return padded_evenly(row, rows, 2, 5, 0) || padded_evenly(row, rows, 2, 5, 1);
    if (row->kernel[1] == 7 && row->stride == 1) return padded_evenly(row, rows, 1, 7, 0);
    return false;
}

static void conv_depthwise_simd_run_row(const prn_depthwise_row *row)
{
    const taps rows = rows_inside(row);
    if (run_padded_evenly(row, &rows)) return;
    edges(row, &rows, 0, row->first);
    const int64_t kernel = row->dilation[1] == 1 ? row->kernel[1] : 0;
    if (kernel == 3 && row->stride == 1)
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 1, 3);
    else if (kernel == 3 && row->stride == 2)
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 2, 3);
    else if (kernel == 5 && row->stride == 1)
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 1, 5);
    else if (kernel == 5 && row->stride == 2)
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 2, 5);
    else if (kernel == 7 && row->stride == 1)
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 1, 7);
    else if (kernel == 1 && row->stride == 1)
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 1, 1);
    else
        conv_depthwise_simd_inside(row, &rows, row->first, row->last, 0, 0);
    edges(row, &rows, row->last, row->columns);
}

const prn_depthwise_simd PRN_SIMD_TABLE(prn_depthwise_simd_) = {VEC_LANES, POSITIONS, conv_depthwise_simd_run_row};
