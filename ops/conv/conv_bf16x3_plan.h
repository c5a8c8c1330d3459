/* The prepared problem of a plan step of the convolution by parts; shared by its files alone. */
#ifndef PRN_OPS_CONV_CONV_BF16X3_PLAN_H
#define PRN_OPS_CONV_CONV_BF16X3_PLAN_H

#include "base/integers.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/gemm/bf16x3_product.h"

enum {
    PRN_CONV_BF16X3_LANES = 16, /* channels of a block of the layout */
    PRN_CONV_BF16X3_MOST_TAPS = 256,
    PRN_CONV_BF16X3_STEP = PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS, /* weights of a step */
    PRN_CONV_BF16X3_STEPS = 8, /* that are multiplied at once, where weights are split on the way */
    PRN_CONV_BF16X3_PANEL = PRN_CONV_BF16X3_STEPS * PRN_BF16X3_PARTS * PRN_CONV_BF16X3_STEP /* parts of such a panel */
};

typedef struct prn_bf16x3_tap {
    int64_t grid, shift; /* which grid; positions from an output's own */
} prn_bf16x3_tap;

/* The remainders of the taps' places along one axis. */
typedef struct prn_bf16x3_grids {
    int64_t count, remainder[PRN_CONV_BF16X3_MOST_TAPS];
    int64_t reach; /* steps from the first to the last place in a grid */
} prn_bf16x3_grids;

typedef struct prn_conv_bf16x3_plan {
    prn_conv conv;
    const float *weights;     /* packed; NULL: halves */
    const uint16_t *halves;   /* the same as prn_bf16x3_panel makes it */
    const float *weight_sums; /* of each output channel, beside halves */
    int64_t parts;
    bool beyond;           /* a weight has no parts: all of them stay float32 */
    int64_t steps, blocks; /* of 32 input channels */
    prn_bf16x3_grids rows, places;
    int64_t pitch, positions;                          /* of a row; of a grid of a whole strip */
    int64_t strip_rows, strips, group_columns, groups; /* output rows; 32 output channels each */
    int64_t slots;
    size_t part_bytes, panel_bytes, sums_bytes, slot_bytes;
    /* If several tasks read one strip, it is split ahead of them, into memory that they share, by so many tasks; 0:
     * each task splits. */
    int64_t pieces;
    size_t shared_bytes; /* flags of pieces, then parts */
    float *bias;         /* of every output channel, zeros for the rest of the last block; behind the taps */
    int64_t tap_count;
    prn_bf16x3_tap taps[];
} prn_conv_bf16x3_plan;

/* Blocks of the layout. */
static inline int64_t prn_conv_bf16x3_blocks(int64_t channels)
{
    return prn_ceil_div(channels, PRN_CONV_BF16X3_LANES);
}

/* Rows of tiles for so many rows of output. */
static inline int64_t prn_conv_bf16x3_tile_rows(const prn_conv_bf16x3_plan *s, int64_t rows)
{
    return prn_ceil_div((rows - 1) * s->pitch + s->conv.window.out[2], PRN_BF16X3_ROWS) * PRN_BF16X3_ROWS;
}

/* In front of the parts of strips that are split ahead: a byte for each piece. */
static inline size_t prn_conv_bf16x3_flag_bytes(const prn_conv_bf16x3_plan *s)
{
    return ((size_t)(s->conv.batch * s->strips * s->pieces) + 63) / 64 * 64;
}

/* Weights of 32 output channels. */
static inline int64_t prn_conv_bf16x3_panel(const prn_conv_bf16x3_plan *s)
{
    return s->steps * PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS;
}

#endif
