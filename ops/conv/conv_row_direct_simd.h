/* The register tiles of the flat convolution, compiled once per instruction set. */
#ifndef PRN_OPS_CONV_CONV_ROW_DIRECT_SIMD_H
#define PRN_OPS_CONV_CONV_ROW_DIRECT_SIMD_H

#include <stdbool.h>
#include <stdint.h>

enum { PRN_ROW_DIRECT_MOST_CHANNELS = 8, PRN_ROW_DIRECT_MOST_VECTORS = 8 };

/* One vector of positions: what of it is an output. */
typedef struct prn_row_direct_part {
    int32_t at;       /* outputs of a plane in front of it */
    int32_t count;    /* of its outputs */
    uint8_t lane[16]; /* where they are; the rest are lanes too */
} prn_row_direct_part;

/* One tile: some output channels at some vectors of successive positions. Distances are in floats. */
typedef struct prn_row_direct_tile {
    const float *x;       /* what the first position meets at the first tap */
    const int32_t *steps; /* from there to what it meets at each tap, of all input channels */
    int64_t taps;
    const float *weights; /* [tap][channel] */
    const float *bias;    /* [channel] */
    const prn_row_direct_part *parts;
    float *y; /* the first channel's plane of outputs */
    int64_t y_plane;
    bool clamped;
    float low, high;
} prn_row_direct_tile;

/* `rows` rows of `pitch` elements: element (r, j) is that of the image at row top + r stride[0], column left + j
 * stride[1]; 0 outside. */
typedef struct prn_row_direct_fill {
    const float *image;
    int64_t height, width, top, left, stride[2], rows, pitch;
} prn_row_direct_fill;

typedef struct prn_row_direct_simd {
    int64_t lanes, channels; /* of a vector; most output channels of a tile */
    /* Most of a tile with so many channels; never more with one channel more. */
    int64_t vectors[PRN_ROW_DIRECT_MOST_CHANNELS + 1];
    /* tile[channels][vectors], both at least 1 */
    void (*tile[PRN_ROW_DIRECT_MOST_CHANNELS + 1][PRN_ROW_DIRECT_MOST_VECTORS + 1])(const prn_row_direct_tile *tile);
    void (*fill)(float *to, const prn_row_direct_fill *fill);
} prn_row_direct_simd;

/* Those of the running processor. */
const prn_row_direct_simd *prn_row_direct_rows(void);

#endif
