/* The inner loop of prony::Reorder, compiled once per instruction set. */
#ifndef PRN_OPS_TENSOR_REORDER_SIMD_H
#define PRN_OPS_TENSOR_REORDER_SIMD_H

#include <stdint.h>

/* Channels that are moved together: of the smallest block of the processor's kernels. */
#if defined(__x86_64__)
enum { PRN_REORDER_GROUP = 8 };
#else
enum { PRN_REORDER_GROUP = 4 };
#endif

typedef struct prn_reorder_simd {
    /* Copies `count` positions of 8 channels of four-byte elements; steps are in elements, and at least one of the
     * channel steps is 1. */
    void (*move_group)(const float *x, int64_t x_position, int64_t x_channel, float *y, int64_t y_position,
                       int64_t y_channel, int64_t count);
    /* `count` positions of `blocks` blocks of `block` channels (8 or 16) that are neighbours on both sides, position by
     * position. */
    void (*move_blocks)(const float *x, int64_t x_position, int64_t x_block, float *y, int64_t y_position,
                        int64_t y_block, int64_t count, int64_t blocks, int64_t block);
    /* y[3 p + c] = x[p + c plane] for the bytes of 3 channels: a picture's planes become its pixels. */
    void (*join_3)(const uint8_t *x, int64_t plane, uint8_t *y, int64_t count);
} prn_reorder_simd;

#endif
