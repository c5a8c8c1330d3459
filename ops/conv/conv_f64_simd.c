/* The register tile of the float64 convolution. */
#include "ops/conv/conv_f64.h"
#include "base/cpu/simd.h"

#include <stddef.h>

enum {
    LANES = PRN_SIMD_BYTES / (int)sizeof(double),
    ROWS = PRN_SIMD_BYTES == 64 ? 8 : 4,
    COLUMNS = PRN_CONV_F64_COLUMNS
};

typedef double vec __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));

/* C tile = start (NULL: C itself) + A panel, `rows` by two vectors, over `depth` terms in order: the order does not
 * depend on the instruction set. */
static inline __attribute__((always_inline)) void conv_f64_simd_tile_of(const double *a, int64_t rs_a, const int rows,
                                                                        const double *b, int64_t depth,
                                                                        const double *start, double *c, int64_t rs_c)
{
    vec left[ROWS], right[ROWS];
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        if (start) {
            left[r] = right[r] = (vec){0} + start[r];
        } else {
            left[r] = *(const vec *)(c + r * rs_c);
            right[r] = *(const vec *)(c + r * rs_c + LANES);
        }
    }
    for (int64_t d = 0; d < depth; d++, b += 2 * LANES) {
        const vec b0 = *(const vec *)b, b1 = *(const vec *)(b + LANES);
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            left[r] += a[r * rs_a + d] * b0;
            right[r] += a[r * rs_a + d] * b1;
        }
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        *(vec *)(c + r * rs_c) = left[r];
        *(vec *)(c + r * rs_c + LANES) = right[r];
    }
}

static void conv_f64_simd_tile(const double *a, int64_t rs_a, int64_t count, const double *b, int64_t depth,
                               const double *start, double *c, int64_t rs_c)
{
    for (int64_t j = 0; j < COLUMNS; j += 2 * LANES) {
        if (count == ROWS) {
            conv_f64_simd_tile_of(a, rs_a, ROWS, b + j * depth, depth, start, c + j, rs_c);
        } else {
            for (int64_t r = 0; r < count; r++)
                conv_f64_simd_tile_of(a + r * rs_a, rs_a, 1, b + j * depth, depth, start ? start + r : NULL,
                                      c + r * rs_c + j, rs_c);
        }
    }
}

const prn_conv_f64_simd PRN_SIMD_TABLE(prn_conv_f64_simd_) = {ROWS, 2 * LANES, conv_f64_simd_tile};
