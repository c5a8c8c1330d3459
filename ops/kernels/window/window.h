/* Sliding windows over the spatial axes of [N, C, spatial …]: the geometry that convolutions and pools share.
 *
 * A window has up to three spatial axes, kept as D, H, W with the model's axes at the end: a missing leading axis has
 * extent 1, kernel 1, stride 1, dilation 1 and no padding, so that every loop can be written for three axes.
 */
#ifndef PRN_OPS_KERNELS_WINDOW_WINDOW_H
#define PRN_OPS_KERNELS_WINDOW_WINDOW_H

#include "base/integers.h"
#include "ops/op.h"

enum { PRN_WINDOW_AXES = 3 };

/* The attributes; first member of the operators' params. */
typedef struct prn_window_params {
    const char *auto_pad;
    prn_ints kernel_shape, strides, pads, dilations;
    int64_t ceil_mode;
} prn_window_params;

/* Attribute rows of a params struct whose first member `window` is a prn_window_params. */
#define PRN_WINDOW_ROW(params, field, type, text)                                                                      \
    {#field, type, offsetof(params, window) + offsetof(prn_window_params, field), false, 0, 0, text}
#define PRN_WINDOW_PARAMS(params)                                                                                      \
    PRN_WINDOW_ROW(params, auto_pad, PRN_PARAM_STRING, "NOTSET"),                                                      \
        PRN_WINDOW_ROW(params, kernel_shape, PRN_PARAM_INTS, NULL),                                                    \
        PRN_WINDOW_ROW(params, strides, PRN_PARAM_INTS, NULL), PRN_WINDOW_ROW(params, pads, PRN_PARAM_INTS, NULL),     \
        PRN_WINDOW_ROW(params, dilations, PRN_PARAM_INTS, NULL)

typedef struct prn_window {
    int axes; /* spatial axes of the model, 1..3 */
    int64_t in[PRN_WINDOW_AXES], out[PRN_WINDOW_AXES];
    int64_t kernel[PRN_WINDOW_AXES], stride[PRN_WINDOW_AXES], dilation[PRN_WINDOW_AXES];
    int64_t pad_begin[PRN_WINDOW_AXES], pad_end[PRN_WINDOW_AXES];
} prn_window;

/* Attribute ranges: everything but pads at least 1, pads at least 0, below 2^31; equal counts; a known auto_pad. */
prony_status prn_window_check(const prony_context *context, const prn_window_params *params);

/* Extents of input 0 (rank 3 to 5), kernel extents from `kernel` (as many as spatial axes), strides, dilations and
 * explicit pads with their defaults. `out` is left to the two functions below. */
prony_status prn_window_begin(const prony_context *context, const prn_window_params *params, const int64_t *kernel,
                              prn_window *window);
/* Settles pads by auto_pad, and the output extents of a convolution or pool. */
prony_status prn_window_forward(const prony_context *context, const prn_window_params *params, prn_window *window);
/* As above for a transposed convolution; either list may be absent. */
prony_status prn_window_transposed(const prony_context *context, const prn_window_params *params,
                                   const prn_ints *output_padding, const prn_ints *output_shape, prn_window *window);

/* [batch, channels, output extents …] */
prony_shape prn_window_output_shape(const prn_window *window, int64_t batch, int64_t channels);

/* Extent of a kernel with its dilation. */
static inline int64_t prn_window_reach(const prn_window *window, int axis)
{
    return (window->kernel[axis] - 1) * window->dilation[axis] + 1;
}
static inline int64_t prn_window_volume(const int64_t extent[PRN_WINDOW_AXES])
{
    return extent[0] * extent[1] * extent[2];
}

/* Kernel positions [first, last) that fall inside the input along one axis, for a window that starts at `start`. */
static inline void prn_window_clip(const prn_window *window, int axis, int64_t start, int64_t *first, int64_t *last)
{
    int64_t dilation = window->dilation[axis], kernel = window->kernel[axis];
    int64_t room = window->in[axis] - start;
    *first = start < 0 ? prn_ceil_div(-start, dilation) : 0;
    *last = room <= 0 ? 0 : prn_ceil_div(room, dilation);
    if (*last > kernel) *last = kernel;
    if (*first > *last) *first = *last;
}

/* Kernel positions [first, last) along one axis that fall inside the input at any output position: a kernel may reach
 * far into the padding, which nothing should walk through. */
static inline void prn_window_useful(const prn_window *window, int axis, int64_t *first, int64_t *last)
{
    int64_t none;
    prn_window_clip(window, axis, (window->out[axis] - 1) * window->stride[axis] - window->pad_begin[axis], first,
                    &none);
    prn_window_clip(window, axis, -window->pad_begin[axis], &none, last);
}

/* Taps along one axis of the window at output position `at`: those inside the input, or inside the padded input. */
static inline int64_t prn_window_taps(const prn_window *window, int axis, int64_t at, bool padding)
{
    const int64_t start = at * window->stride[axis] - window->pad_begin[axis], dilation = window->dilation[axis];
    int64_t first, last;
    if (!padding) {
        prn_window_clip(window, axis, start, &first, &last);
        return last - first;
    }
    last = (window->in[axis] + window->pad_end[axis] - start + dilation - 1) / dilation;
    return last < window->kernel[axis] ? last : window->kernel[axis];
}

/* Output positions [first, last) of a row (the last axis) whose tap `tap` falls inside the input. */
static inline void prn_window_outputs(const prn_window *window, int64_t tap, int64_t *first, int64_t *last)
{
    int64_t shift = window->pad_begin[2] - tap * window->dilation[2], stride = window->stride[2];
    int64_t end = window->in[2] + shift;
    *first = shift > 0 ? prn_ceil_div(shift, stride) : 0;
    *last = end > 0 ? prn_ceil_div(end, stride) : 0;
    if (*last > window->out[2]) *last = window->out[2];
    if (*first > *last) *first = *last;
}

/* Offset of the input row that output row `row` (of D x H) meets at tap (kz, ky), or -1 if that is padding. */
static inline int64_t prn_window_row(const prn_window *window, int64_t row, int64_t kz, int64_t ky)
{
    int64_t z = row / window->out[1] * window->stride[0] - window->pad_begin[0] + kz * window->dilation[0];
    int64_t y = row % window->out[1] * window->stride[1] - window->pad_begin[1] + ky * window->dilation[1];
    if (z < 0 || z >= window->in[0] || y < 0 || y >= window->in[1]) return -1;
    return (z * window->in[1] + y) * window->in[2];
}

#endif
