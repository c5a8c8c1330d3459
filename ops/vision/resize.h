/* The problem of Resize and Upsample, in one form for every opset: per axis, the extents, the scale, and which input
 * positions an output position is made of. */
#ifndef PRN_OPS_VISION_RESIZE_H
#define PRN_OPS_VISION_RESIZE_H

#include "ops/kernels/window/taps.h"

typedef enum prn_resize_kind { PRN_RESIZE, PRN_UPSAMPLE } prn_resize_kind; /* a row's variant */

typedef struct prn_resize_params {
    const char *mode, *coordinate_transformation_mode, *nearest_mode, *keep_aspect_ratio_policy;
    float cubic_coeff_a, extrapolation_value;
    int64_t exclude_outside, antialias;
    prn_ints axes;
    prn_floats scales;
    float height_scale, width_scale; /* Upsample of opset 1 */
} prn_resize_params;

typedef enum prn_resize_mode { PRN_RESIZE_NEAREST, PRN_RESIZE_LINEAR, PRN_RESIZE_CUBIC } prn_resize_mode;

/* The place of an output position in the input (coordinate_transformation_mode). */
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
    float length;            /* of the scaled axis, not rounded */
    bool same;               /* every position is its own source */
    bool rational;           /* the scale is out / in, exactly: sizes were given, and not an aspect ratio */
} prn_resize_axis;

typedef struct prn_resize {
    prn_resize_mode mode;
    prn_resize_coordinate coordinate;
    prn_resize_rounding rounding;
    float cubic_a, extrapolation;
    bool exclude_outside, antialias;
    int rank;
    prn_resize_axis axis[PRONY_MAX_RANK];
} prn_resize;

/* Refuses attributes that no form of the operator has. */
prony_status prn_resize_check(const prony_context *context);

/* Reads attributes and inputs. *known is false while the output's shape is not given by what is there. */
prony_status prn_resize_read(const prony_context *context, prn_resize *resize, bool *known);

/* The place of output position `position` in the input, along one axis. Exact, rounded once, where the scale is
 * rational. */
double prn_resize_source(const prn_resize *resize, int axis, int64_t position);
/* Input positions, clamped to the axis, and their weights. *outside (may be NULL): the extrapolation value goes there
 * instead. */
prn_taps prn_resize_taps_at(const prn_resize *resize, int axis, int64_t position, bool *outside);
bool prn_resize_is_outside(const prn_resize *resize, int axis, double source);

/* Linear and cubic with a kernel that is as wide as the axis shrinks (resize_antialias.c); working space in doubles. */
prony_status prn_resize_antialias_space(const prony_context *context, const prn_resize *resize, int64_t *doubles);
void prn_resize_antialias(const prony_context *context, const prn_resize *resize, double *space);

/* True if inputs and attributes tell everything at once, and none of it is cut out of the input. */
bool prn_resize_known(const prony_context *context, prn_resize *resize);

/* Fast kernels (resize_native.c): nearest for every type and layout, linear on float32 over the last two axes; and
 * (resize_passes.c) linear and cubic on float32 over any axes. */
bool prn_resize_nearest_supported(const prony_context *context);
bool prn_resize_linear_supported(const prony_context *context);
prony_status prn_resize_rows_prepare(const prony_context *context, prn_prepared *out);  /* of nearest, linear and
                                                                                          bytes */
void prn_resize_layouts(const prony_context *context, prn_layout *in, prn_layout *out); /* of nearest and passes */
void prn_resize_linear_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_resize_nearest_native(const prony_context *context);
prony_status prn_resize_linear_native(const prony_context *context);
prony_status prn_resize_linear_bytes(const prony_context *context); /* int8 and uint8 */
bool prn_resize_passes_supported(const prony_context *context);
prony_status prn_resize_passes_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_resize_passes_native(const prony_context *context);

#endif
