/* Convolution problems in oneDNN's terms; shared by the dnnl*.c files alone. */
#ifndef PRN_OPS_VENDOR_DNNL_PROBLEM_H
#define PRN_OPS_VENDOR_DNNL_PROBLEM_H

#include "ops/kernels/window/conv_problem.h"
#include "ops/vendor/dnnl_tiles.h"
#include "ops/vendor/dnnl_versions.h"

/* The process's engine; NULL: oneDNN is not usable. */
dnnl_engine_t prn_dnnl_engine(void);
prony_status prn_dnnl_failed(const prony_context *context, dnnl_status_t status, const char *what);

/* The work of one primitive: images, groups, and output channels in each of these groups. */
typedef struct prn_dnnl_piece {
    int64_t batch, groups, out;
} prn_dnnl_piece;

typedef struct prn_dnnl_problem {
    prn_conv conv;                       /* `thinned`: the one on the thinned input */
    bool thinned;                        /* only every stride-th position of the input is read at all */
    prn_window thick;                    /* before it was thinned */
    int64_t groups, group_in, group_out; /* in whole channel blocks */
    prn_layout in, out;
    prn_dnnl_piece piece;
    prn_dnnl_piece last;     /* where `piece` does not divide the groups or a group's channels; .batch 0: it does */
    prn_dnnl_tiling tiling;  /* of every piece */
    prn_post_ops head, tail; /* post-operations that oneDNN applies, and those behind them, which Prony applies to each
                                piece */
} prn_dnnl_problem;

/* The problem of a Conv with constant weights, and the descriptors of `piece` and `last` (or NULL), which the caller
 * destroys; those of the tiles of shape 0 if there are tiles. false: none that oneDNN may do here. */
bool prn_dnnl_problem_find(const prony_context *context, prn_dnnl_problem *problem, dnnl_primitive_desc_t desc[2]);
void prn_dnnl_problem_drop(dnnl_primitive_desc_t desc[2]);
/* The descriptor of a piece of the image that `window` sees; NULL: none that may be used. */
dnnl_primitive_desc_t prn_dnnl_piece_desc(const prn_dnnl_problem *problem, const prn_dnnl_piece *piece,
                                          const prn_window *window);

/* The start of a piece, in whole problem's images, groups and channels of a group. */
typedef struct prn_dnnl_place {
    int64_t image, group, out;
    bool last; /* it is a problem->last */
} prn_dnnl_place;

/* Pieces that differ in channels, and so in weights. */
int64_t prn_dnnl_channel_pieces(const prn_dnnl_problem *problem);
/* Piece `index` of all; those of an image follow each other, channel piece by channel piece. */
prn_dnnl_place prn_dnnl_piece_place(const prn_dnnl_problem *problem, int64_t index);

/* Axes of a piece's weights, padded: [groups,] out, in, spatial …; returns their number. */
int prn_dnnl_weight_dims(const prn_dnnl_problem *problem, const prn_dnnl_piece *piece, dnnl_dims_t dims);

/* The first residual is read from the output itself if nothing comes before it. The choice between that and a buffer
 * of its own must not depend on where the plan puts buffers: the rounding differs. */
bool prn_dnnl_summed_in_place(const prn_post_ops *post_ops, size_t index);
/* Applies a problem's tail to consecutive outputs. */
void prn_dnnl_apply_tail(const prn_post_ops *tail, float *y, int64_t count);
/* Post-operations that oneDNN makes of this one. */
int prn_dnnl_post_op_count(const prn_post_op *op);

#endif
