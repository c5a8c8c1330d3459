/* Rows of the depthwise convolution, compiled once per instruction set. */
#ifndef PRN_OPS_CONV_CONV_DEPTHWISE_SIMD_H
#define PRN_OPS_CONV_CONV_DEPTHWISE_SIMD_H

#include <stdbool.h>
#include <stdint.h>

/* One output row of one channel block; a position is `lanes` floats. */
typedef struct prn_depthwise_row {
    const float *x; /* the block's first position; taps outside of [0, height) x [0, width) are padding */
    int64_t height, width;
    int64_t top, left; /* where the first output's window begins, which may lie in the padding */
    int64_t kernel[2], dilation[2], stride;
    int64_t first, last;  /* outputs from `first` to before `last` have no column in the padding */
    const float *weights; /* [tap][lane] */
    const float *bias;    /* `lanes`, added to the sums */
    const float *added;   /* NULL: no residual that is added as well, lying as y does */
    float *y;
    int64_t columns; /* outputs */
    bool clamped;
    float low, high;
} prn_depthwise_row;

typedef struct prn_depthwise_simd {
    int64_t lanes;
    int64_t positions; /* of a tile */
    void (*row)(const prn_depthwise_row *row);
} prn_depthwise_simd;

/* Those of the running processor. */
const prn_depthwise_simd *prn_depthwise_rows(void);

#endif
