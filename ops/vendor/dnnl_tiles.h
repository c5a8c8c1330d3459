/* Tiles: what pieces of a convolution are cut into where no run of channels makes them short; shared by the dnnl*.c
 * files alone. */
#ifndef PRN_OPS_VENDOR_DNNL_TILES_H
#define PRN_OPS_VENDOR_DNNL_TILES_H

#include "ops/kernels/window/conv_problem.h"

enum { PRN_DNNL_MOST_SPANS = 16, PRN_DNNL_MOST_SHAPES = 64 };

/* A run of output positions along one axis, and what of the input it sees. Tiles of the same extents and pads are
 * computed by the same primitive. */
typedef struct prn_dnnl_span {
    int64_t out, in, pad_begin, pad_end;
} prn_dnnl_span;

typedef struct prn_dnnl_tiling {
    int64_t total;                   /* tiles of a piece; 0: pieces stay whole */
    int64_t extent[PRN_WINDOW_AXES]; /* of a tile in the output; the last one along an axis may have
                                                           less */
    int64_t count[PRN_WINDOW_AXES];  /* tiles along each axis */
    int spans[PRN_WINDOW_AXES];      /* different ones among these */
    prn_dnnl_span span[PRN_WINDOW_AXES][PRN_DNNL_MOST_SPANS];
} prn_dnnl_tiling;

/* A tile: where it begins in output and input, and which of the shapes [0, prn_dnnl_tile_shapes) it has. */
typedef struct prn_dnnl_tile {
    int64_t out_at[PRN_WINDOW_AXES], in_at[PRN_WINDOW_AXES];
    int shape;
} prn_dnnl_tile;

/* One piece that is computed by one call. */
typedef struct prn_dnnl_piece_size {
    double seconds; /* of its products, at a low rate */
    int64_t x_channels, y_channels, x_block, y_block;
} prn_dnnl_piece_size;

/* Tiles for a piece that takes long; none where it does not. false: the window cannot be cut so. */
bool prn_dnnl_tiles_cut(const prn_window *window, const prn_dnnl_piece_size *piece, prn_dnnl_tiling *out);
int prn_dnnl_tile_shapes(const prn_dnnl_tiling *tiling);
prn_dnnl_tile prn_dnnl_tile_at(const prn_window *window, const prn_dnnl_tiling *tiling, int64_t index);
/* The window of the tiles of a shape. */
prn_window prn_dnnl_tile_window(const prn_window *window, const prn_dnnl_tiling *tiling, int shape);

/* True if a box of these extents is one run of memory inside of an image of those. */
bool prn_dnnl_box_is_run(const int64_t box[PRN_WINDOW_AXES], const int64_t image[PRN_WINDOW_AXES]);

#endif
