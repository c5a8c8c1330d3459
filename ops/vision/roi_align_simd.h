/* Cells of regions of float32 planes (RoiAlign), compiled once per instruction set. */
#ifndef PRN_OPS_VISION_ROI_ALIGN_SIMD_H
#define PRN_OPS_VISION_ROI_ALIGN_SIMD_H

#include <stdint.h>

enum {
    PRN_ROI_CELLS = 128, /* of a region along an axis */
    PRN_ROI_TAPS = 1024, /* most taps of a region along an axis */
    PRN_ROI_SPAN = 2048  /* pixels from the first to the last one of its columns */
};

/* Along one axis: cell c is the weighted sum of the pixels of taps [begin[c], begin[c + 1]), in their order. */
typedef struct prn_roi_taps {
    int32_t begin[PRN_ROI_CELLS + 1];
    int32_t index[PRN_ROI_TAPS];
    float weight[PRN_ROI_TAPS];
    int64_t cells;
    int64_t low, high; /* the first pixel and the one behind the last; low == high: no cell has taps */
} prn_roi_taps;

typedef struct prn_roi_align_simd {
    /* One channel: x is a plane of rows of `width` pixels; `to` takes [rows->cells][columns->cells] sums, divided by
     * `samples`. */
    void (*cells)(const prn_roi_taps *rows, const prn_roi_taps *columns, const float *x, int64_t width, float samples,
                  float *to);
} prn_roi_align_simd;

#endif
