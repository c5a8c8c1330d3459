/* The inner loops of normalisation on blocks of channels, compiled once per instruction set. No state, thread-safe. */
#ifndef PRN_OPS_NORM_NORM_BLOCKS_SIMD_H
#define PRN_OPS_NORM_NORM_BLOCKS_SIMD_H

#include <stdint.h>

/* A block's [pixels][lanes], and of each lane what is subtracted, what the difference is multiplied by, then multiplied
 * by and added. */
typedef struct prn_norm_block {
    const float *x;
    float *y;
    int64_t pixels, lanes; /* whole vectors */
    const float *center, *inverse, *scale, *shift;
} prn_norm_block;

typedef struct prn_norm_blocks_simd {
    int64_t lanes; /* of a vector */
    /* to[lane] = the sum of the lane's elements; of the squares of their differences from the center. */
    void (*sums)(const prn_norm_block *block, double *to);
    void (*deviations)(const prn_norm_block *block, double *to);
    void (*normalise)(const prn_norm_block *block);
} prn_norm_blocks_simd;

#endif
