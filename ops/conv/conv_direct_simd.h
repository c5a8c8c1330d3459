/* The register tiles of the blocked direct convolution, compiled once per instruction set. */
#ifndef PRN_OPS_CONV_CONV_DIRECT_SIMD_H
#define PRN_OPS_CONV_CONV_DIRECT_SIMD_H

#include <stdbool.h>
#include <stdint.h>

/* The offset of a tap that falls into the padding; no other offset is negative. */
#define PRN_DIRECT_PADDING (-1)

/* One tile: some successive output positions, some channel blocks of `lanes` channels. Distances are in floats. */
typedef struct prn_direct_tile {
    const float *x;         /* the first input block's first position; without offsets: of the tile */
    int64_t x_block;        /* between input blocks */
    const int32_t *offsets; /* [tap][position]: from the start of an input block, or PRN_DIRECT_PADDING; NULL: one tap,
                               and positions that follow each other */
    const int16_t *numbers; /* with offsets: which of the filter's taps each of them is */
    const int32_t *ahead;   /* offsets of the next tile, as many taps as this one has or more */
    const int16_t *fresh;   /* those of its taps that are to be fetched, with one of this tile's taps each */
    int64_t fresh_count;
    const float *weights; /* [unit of input channels][tap of the filter][channel][output block][output lane] */
    int64_t w_block;      /* between input blocks; units are filled up with zeros */
    int64_t in_blocks, taps;
    bool ends_half; /* the second half of the last input block's channels is zeros */
    /* NULL: as above. Else the input is plain: x is the tile's first window, that of each position begins `stride`
     * floats (1, 2 or 4) behind the last one's, its `taps` elements stand at these distances from its beginning, and
     * weights are [tap][output block][output lane]; there is one input block. */
    const int32_t *steps;
    int64_t stride;
    float *y;
    int64_t y_block;
    const int32_t *places; /* of each position, from y; NULL: they follow each other */
    const float *start;    /* what the sums are added to: a bias for each channel; NULL: y itself */
    const float *added;    /* with `start`: a residual that is added as well, lying as y does; NULL: none */
    const float *next; /* weights that are needed soon; `next_lines` cache lines of them are fetched with each tap */
    int64_t next_lines;
    bool clamped;
    float low, high;
    int64_t used_lanes; /* channels in the last of the tile's blocks, whose other lanes are stored as 0, though an
                           infinite input makes NaN of their sums; 0: all lanes are channels */
} prn_direct_tile;

/* Input channels that are summed tap by tap, one block after the other, so that sums are the same for every number of
 * lanes. */
enum { PRN_DIRECT_UNIT = 16 };

enum { PRN_DIRECT_MOST_BLOCKS = 4, PRN_DIRECT_MOST_POSITIONS = 12, PRN_DIRECT_LINE_FLOATS = 16 };

typedef struct prn_direct_simd {
    int64_t lanes; /* channels of a block */
    /* Most of a tile with so many output blocks: with an offset per position, and without offsets. */
    int64_t positions[PRN_DIRECT_MOST_BLOCKS + 1], row_positions[PRN_DIRECT_MOST_BLOCKS + 1];
    /* tile[blocks][positions], both at least 1 */
    void (*tile[PRN_DIRECT_MOST_BLOCKS + 1][PRN_DIRECT_MOST_POSITIONS + 1])(const prn_direct_tile *tile);
} prn_direct_simd;

#endif
