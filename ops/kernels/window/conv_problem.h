/* A convolution's problem, as all its kernels see it. */
#ifndef PRN_OPS_KERNELS_WINDOW_CONV_PROBLEM_H
#define PRN_OPS_KERNELS_WINDOW_CONV_PROBLEM_H

#include "ops/kernels/window/window.h"

typedef struct prn_conv_params {
    prn_window_params window;
    int64_t group;
    prn_ints output_padding, output_shape; /* ConvTranspose only */
} prn_conv_params;

typedef struct prn_conv {
    prn_window window;
    int64_t batch, groups, in_channels, out_channels;
    int64_t group_in, group_out; /* channels per group */
    int64_t in_spatial, out_spatial, kernel_volume;
    const prony_value *x, *weights;
    const prony_value *bias; /* NULL: none */
    const prony_value *y;
} prn_conv;

/* Multiply-adds of one image, of a convolution without groups. */
static inline double prn_conv_image_work(const prn_conv *conv)
{
    return (double)conv->out_spatial * (double)conv->kernel_volume * (double)conv->in_channels *
           (double)conv->out_channels;
}

/* Input and output of an image stay in the cache while they are reordered. */
static inline bool prn_conv_is_small(const prn_conv *conv)
{
    return (double)conv->in_channels * (double)conv->in_spatial +
               (double)conv->out_channels * (double)conv->out_spatial <=
           32768;
}

/* Two spatial axes at most, or a third that the window neither moves along nor leaves: an image, a window, an output of
 * one plane, none of it in front of the image. */
static inline bool prn_conv_in_plane(const prn_conv *conv)
{
    const prn_window *window = &conv->window;
    return window->kernel[0] == 1 && window->in[0] == 1 && window->out[0] == 1 && window->pad_begin[0] == 0;
}

/* As many planes as the image has, each of which is an image of its own: the window neither moves along a third axis
 * nor leaves it. */
static inline bool prn_conv_plane_by_plane(const prn_conv *conv)
{
    const prn_window *window = &conv->window;
    return window->kernel[0] == 1 && window->stride[0] == 1 && window->pad_begin[0] == 0 &&
           window->in[0] == window->out[0];
}

/* The problem of a Conv or ConvTranspose node; checks everything that infer has to check. */
prony_status prn_conv_read(const prony_context *context, prn_conv *conv);
prony_status prn_conv_transpose_read(const prony_context *context, prn_conv *conv);

/* For kernels that need nothing but the problem, or have it first in their state: prepare keeps a Conv's (prn_free
 * releases it), and a run gets it with the operands that the context has then. */
prony_status prn_conv_keep(const prony_context *context, prn_prepared *out);
prn_conv prn_conv_kept(const prony_context *context);

/* Shared by both operators: attribute ranges, shape inference and cost of a problem that was read. */
prony_status prn_conv_check(const prony_context *context);
prony_status prn_conv_infer(const prony_context *context, const prn_conv *conv);
prony_status prn_conv_cost(const prony_context *context, const prn_conv *conv, int64_t per_mac_elements,
                           int64_t per_element, prony_cost *cost);

/* Every output element by `sum`, which stores it; then post-operations, which only float32 has. */
typedef void (*prn_conv_sum_fn)(const prn_conv *conv, int64_t n, int64_t k, const int64_t at[PRN_WINDOW_AXES],
                                int64_t place);
void prn_conv_reference(const prony_context *context, const prn_conv *conv, prn_conv_sum_fn sum);

#endif
