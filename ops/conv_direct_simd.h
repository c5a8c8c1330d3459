/* The register tiles of the blocked direct convolution, compiled once per instruction set. */
#ifndef PRN_OPS_CONV_DIRECT_SIMD_H
#define PRN_OPS_CONV_DIRECT_SIMD_H

#include <stdint.h>

/* One tile: some neighbouring output positions of a row, some channel blocks of `lanes` channels. All distances are in
 * floats. The taps named here are those that fall inside the input. */
typedef struct prn_direct_tile {
    const float *x;       /* the input position under the first tap of the first output position */
    int64_t x_step;       /* between the inputs of neighbouring output positions */
    int64_t x_tap, x_row; /* between taps of a row, between rows of taps */
    int64_t x_block;      /* between input channel blocks */
    const float *weights; /* of the first tap; [input block][tap row][tap][input lane][output block][output lane] */
    int64_t w_tap, w_row, w_block;
    int64_t in_blocks, rows, taps;
    float *y;
    int64_t y_block;
    const float *start; /* what the sums begin with: a bias for each channel; NULL: y itself */
    const float *added; /* with `start`: a residual that they begin with as well, lying as y does; NULL: none */
} prn_direct_tile;

enum { PRN_DIRECT_MOST_BLOCKS = 4, PRN_DIRECT_MOST_POSITIONS = 8 };

typedef struct prn_direct_simd {
    int64_t lanes;                                 /* channels of a block */
    int64_t positions[PRN_DIRECT_MOST_BLOCKS + 1]; /* most of a tile with so many output blocks */
    /* tile[blocks][positions], both at least 1 */
    void (*tile[PRN_DIRECT_MOST_BLOCKS + 1][PRN_DIRECT_MOST_POSITIONS + 1])(const prn_direct_tile *tile);
} prn_direct_simd;

extern const prn_direct_simd prn_direct_simd_scalar, prn_direct_simd_avx2, prn_direct_simd_avx512;

#endif
