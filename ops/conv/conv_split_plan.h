/* What a plan step of the convolution by parts knows of its problem; shared by its files alone. */
#ifndef PRN_OPS_NN_CONV_SPLIT_PLAN_H
#define PRN_OPS_NN_CONV_SPLIT_PLAN_H

#include "base/integers.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/gemm/split_product.h"

enum {
    PRN_CONV_SPLIT_LANES = 16, /* channels of a block of the layout */
    PRN_CONV_SPLIT_MOST_TAPS = 256,
    PRN_CONV_SPLIT_STEP = PRN_SPLIT_DEPTH * PRN_SPLIT_COLUMNS, /* weights of a step */
    PRN_CONV_SPLIT_STEPS = 8, /* that are multiplied at once, where weights are split on the way */
    PRN_CONV_SPLIT_PANEL = PRN_CONV_SPLIT_STEPS * PRN_SPLIT_PARTS * PRN_CONV_SPLIT_STEP /* parts of such a panel */
};

typedef struct prn_split_tap {
    int64_t grid, shift; /* which grid; positions from an output's own */
} prn_split_tap;

/* The remainders of the taps' places along one axis. */
typedef struct prn_split_grids {
    int64_t count, remainder[PRN_CONV_SPLIT_MOST_TAPS];
    int64_t reach; /* steps from the first to the last place in a grid */
} prn_split_grids;

typedef struct prn_conv_split_plan {
    prn_conv conv;
    const float *weights;     /* packed; NULL: halves */
    const uint16_t *halves;   /* the same as prn_split_panel makes it */
    const float *weight_sums; /* of each output channel, beside halves */
    int64_t parts;
    bool beyond;           /* a weight has no parts: all of them stay float32 */
    int64_t steps, blocks; /* of 32 input channels */
    prn_split_grids rows, places;
    int64_t pitch, positions;                          /* of a row; of a grid of a whole strip */
    int64_t strip_rows, strips, group_columns, groups; /* output rows; 32 output channels each */
    int64_t slots;
    size_t part_bytes, panel_bytes, sums_bytes, slot_bytes;
    /* Where several tasks read one strip, it is split ahead of them, into memory that they share, by so many tasks; 0:
     * each task splits. */
    int64_t pieces;
    size_t shared_bytes; /* flags of pieces, then parts */
    float *bias;         /* of every output channel, zeros for the rest of the last block; behind the taps */
    int64_t tap_count;
    prn_split_tap taps[];
} prn_conv_split_plan;

/* Blocks of the layout. */
static inline int64_t prn_conv_split_blocks(int64_t channels)
{
    return prn_ceil_div(channels, PRN_CONV_SPLIT_LANES);
}

/* Rows of tiles for so many rows of output. */
static inline int64_t prn_conv_split_tile_rows(const prn_conv_split_plan *s, int64_t rows)
{
    return prn_ceil_div((rows - 1) * s->pitch + s->conv.window.out[2], PRN_SPLIT_ROWS) * PRN_SPLIT_ROWS;
}

/* In front of the parts of strips that are split ahead: a byte for each piece. */
static inline size_t prn_conv_split_flag_bytes(const prn_conv_split_plan *s)
{
    return ((size_t)(s->conv.batch * s->strips * s->pieces) + 63) / 64 * 64;
}

/* Weights of 32 output channels. */
static inline int64_t prn_conv_split_panel(const prn_conv_split_plan *s)
{
    return s->steps * PRN_SPLIT_DEPTH * PRN_SPLIT_COLUMNS;
}

#endif
