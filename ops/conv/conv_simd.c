/* Inner loops of the native convolution, written with vector extensions and compiled once per instruction set (PRN_SIMD
 * names the variant). Invariant: each element of a result is summed in order of depth. */
#include "ops/conv/conv_simd.h"
#include "base/cpu/simd.h"

enum { LANES = PRN_SIMD_BYTES / 4, ROWS = LANES == 16 ? 12 : 6 };

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* Two vectors per row; rows are unrolled, so that the sums stay in registers. */
static void conv_simd_tile(const float *a, const float *b, int64_t depth, const float *start, float *c, int64_t stride)
{
    vec left[ROWS], right[ROWS];
    PRN_UNROLL
    for (int r = 0; r < ROWS; r++) {
        if (start) {
            left[r] = right[r] = (vec){0} + start[r];
        } else {
            left[r] = *(const vec *)(c + r * stride);
            right[r] = *(const vec *)(c + r * stride + LANES);
        }
    }
    for (int64_t d = 0; d < depth; d++, a += ROWS, b += 2 * LANES) {
        vec b0 = *(const vec *)b, b1 = *(const vec *)(b + LANES);
        PRN_UNROLL
        for (int r = 0; r < ROWS; r++) {
            left[r] += a[r] * b0;
            right[r] += a[r] * b1;
        }
    }
    PRN_UNROLL
    for (int r = 0; r < ROWS; r++) {
        *(vec *)(c + r * stride) = left[r];
        *(vec *)(c + r * stride + LANES) = right[r];
    }
}

static void conv_simd_add_scaled(float *y, const float *x, int64_t step, float w, int64_t count)
{
    if (step == 1) {
        for (int64_t i = 0; i < count; i++) y[i] += w * x[i];
    } else if (step == 2) {
        for (int64_t i = 0; i < count; i++) y[i] += w * x[2 * i];
    } else {
        for (int64_t i = 0; i < count; i++) y[i] += w * x[step * i];
    }
}

const prn_conv_simd PRN_SIMD_TABLE(prn_conv_simd_) = {
    .rows = ROWS, .columns = 2 * LANES, .tile = conv_simd_tile, .add_scaled = conv_simd_add_scaled};
