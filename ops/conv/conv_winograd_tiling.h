/* Which tiles a Winograd convolution is computed in, and how it is cut into tasks. */
#ifndef PRN_OPS_CONV_CONV_WINOGRAD_TILING_H
#define PRN_OPS_CONV_CONV_WINOGRAD_TILING_H

#include "ops/kernels/window/conv_problem.h"
#include "ops/conv/conv_winograd_simd.h"

/* From the problem's shape and the kind of processor alone. */
typedef struct prn_winograd_tiling {
    prn_winograd_kind kind;
    int64_t rows, columns, points;        /* outputs of a tile; its products */
    int64_t phases, phase_rows;           /* outputs a dilation apart are an image of their own; its rows of tiles */
    int64_t tile_rows, tile_columns;      /* of an image: those of all phases, one phase below the other */
    int64_t rows_in_all;                  /* of tiles: one image below the other */
    int64_t batches_down, batches_across; /* of all images: tiles that are transformed together */
    int64_t batch_tiles;                  /* of the largest batch */
    int64_t in_blocks, blocks, groups;    /* of channels, the last of which may not be full; output blocks are
                                              multiplied group by group */
    int64_t tasks_of_batch, tasks;        /* the groups of a batch are dealt to so many tasks; in all */
    int64_t run;                          /* input blocks whose products are one running sum */
    int64_t v_point, m_point;             /* floats from point to point of transformed inputs, and of products */
    int64_t u_point;                      /* of the filters that a run transforms together; 0: they are kept
                                              transformed */
    bool far;                             /* filters come from memory for each batch */
    double cycles;                        /* predicted, of one core (conv_cost_model.h); 0: not yet */
} prn_winograd_tiling;

/* Units of input channels (of the direct kernel's weights) whose filters a run transforms together: they stay in the
 * second-level cache. */
enum { PRN_WINOGRAD_FILTER_UNITS = 2 };

/* The tiles of a batch: [row, row_end) x [column, column_end), rows counted through all images. */
typedef struct prn_winograd_batch {
    int64_t row, row_end, column, column_end, tiles;
} prn_winograd_batch;

/* A row of tiles in its phase, along rows and columns. A later phase may have fewer outputs than there are tiles. */
typedef struct prn_winograd_tile_offset {
    int64_t top;                   /* the first output row */
    int64_t in[2], out[2], pad[2]; /* of the phase */
    int64_t x_first, y_first;      /* where it begins, in positions of the input and of the output */
} prn_winograd_tile_offset;

extern const struct prn_winograd_tile {
    int64_t rows, columns;
    /* Summed over: of fewer it is less exact than a plain sum (docs/internals/accuracy_contract.md). */
    int64_t least_channels;
    int64_t long_channels;                /* from so many on running sums may be long */
    int64_t forward_flops, inverse_flops; /* of a tile of one channel */
} prn_winograd_tiles[PRN_WINOGRAD_KINDS];

/* With tiles of `kind`. `in_run`: filters that the second-level cache does not hold are transformed in each run. */
void prn_winograd_tiling_as(const prn_conv *conv, const prn_winograd_simd *simd, prn_winograd_kind kind, bool in_run,
                            prn_winograd_tiling *out);
/* Operations of products and transforms. */
int64_t prn_winograd_flops(const prn_conv *conv, const prn_winograd_tiling *cut);

/* `row` is that of an image. */
prn_winograd_tile_offset prn_winograd_place_of(const prn_window *window, const prn_winograd_tiling *cut, int64_t row);
prn_winograd_batch prn_winograd_batch_at(const prn_winograd_tiling *cut, int64_t index);
/* The first output block of a group: blocks are dealt to as few groups as there can be, evenly. */
static inline int64_t prn_winograd_first_block(const prn_winograd_tiling *cut, int64_t group)
{
    return group * cut->blocks / cut->groups;
}

#endif
