/* The inner loop of prony::Reorder, compiled once per instruction set. */
#ifndef PRN_OPS_TENSOR_REORDER_SIMD_H
#define PRN_OPS_TENSOR_REORDER_SIMD_H

#include <stdint.h>

enum { PRN_REORDER_GROUP = 8 };

typedef struct prn_reorder_simd {
    /* Copies `count` positions of 8 channels of four-byte elements; steps are in elements, and at least one of the
     * channel steps is 1. */
    void (*move_group)(const float *x, int64_t x_position, int64_t x_channel, float *y, int64_t y_position,
                       int64_t y_channel, int64_t count);
} prn_reorder_simd;


#endif
