/* What Resize and Upsample ask for, in one form for every opset: per axis, the extents, the scale, and which input
 * positions an output position is made of. */
#ifndef PRN_OPS_RESIZE_H
#define PRN_OPS_RESIZE_H

#include "ops/op.h"

typedef enum prn_resize_mode { PRN_RESIZE_NEAREST, PRN_RESIZE_LINEAR, PRN_RESIZE_CUBIC } prn_resize_mode;

/* Where an output position lies in the input (coordinate_transformation_mode). */
typedef enum prn_resize_coordinate {
    PRN_RESIZE_HALF_PIXEL,
    PRN_RESIZE_HALF_PIXEL_SYMMETRIC,
    PRN_RESIZE_PYTORCH_HALF_PIXEL,
    PRN_RESIZE_ALIGN_CORNERS,
    PRN_RESIZE_ASYMMETRIC,
    PRN_RESIZE_TF_HALF_PIXEL_FOR_NN,
    PRN_RESIZE_TF_CROP_AND_RESIZE
} prn_resize_coordinate;

typedef enum prn_resize_rounding {
    PRN_RESIZE_ROUND_PREFER_FLOOR,
    PRN_RESIZE_ROUND_PREFER_CEIL,
    PRN_RESIZE_FLOOR,
    PRN_RESIZE_CEIL,
    PRN_RESIZE_SIMPLE /* before opset 11: cut off, or up where the axis shrinks */
} prn_resize_rounding;

typedef struct prn_resize_axis {
    int64_t in, out;
    float scale, start, end; /* start and end of the region, as fractions of the axis */
    bool same;               /* every position is its own source */
} prn_resize_axis;

typedef struct prn_resize {
    prn_resize_mode mode;
    prn_resize_coordinate coordinate;
    prn_resize_rounding rounding;
    float cubic_a, extrapolation;
    bool exclude_outside;
    int rank;
    prn_resize_axis axis[PRONY_MAX_RANK];
} prn_resize;

/* Reads attributes and inputs. *known is false while the output's shape is not given by what is there. */
prony_status prn_resize_read(const prony_context *context, prn_resize *resize, bool *known);

/* Input positions, clamped to the axis, and their weights. `outside`: the extrapolation value goes there instead. */
typedef struct prn_resize_taps {
    int count;
    bool outside;
    int64_t index[4];
    float weight[4];
} prn_resize_taps;

prn_resize_taps prn_resize_taps_at(const prn_resize *resize, int axis, int64_t position);

/* Fast kernels (resize_native.c): nearest for every type and layout, linear on float32 over the last two axes. */
bool prn_resize_nearest_usable(const prony_context *context);
bool prn_resize_linear_usable(const prony_context *context);
void prn_resize_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_resize_nearest_native(const prony_context *context);
prony_status prn_resize_linear_native(const prony_context *context);

#endif
