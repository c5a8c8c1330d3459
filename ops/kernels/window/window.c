/* Geometry of convolutions and pools: attribute checks, automatic padding, output extents.
 * Invariant: every quantity of a window that was begun is below 2^31, input extents included, so that sums and products
 * of two of them cannot overflow. */
#include "ops/kernels/window/window.h"

#include "base/shape.h"

#include <string.h>

#define LIMIT INT32_MAX

static prony_status window_check_list(const prony_context *context, const char *name, const prn_ints *list,
                                      int64_t least)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->v[i] < least || list->v[i] > LIMIT)
            return prony_fail(context, PRONY_INVALID_MODEL, "%s[%zu] is %lld; it must be at least %lld and below 2^31",
                              name, i, (long long)list->v[i], (long long)least);
    }
    return PRONY_OK;
}

static prony_status window_check_count(const prony_context *context, const char *name, const prn_ints *list,
                                       size_t wanted)
{
    if (!list->present || list->count == wanted) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "%s has %zu entries, wanted %zu", name, list->count, wanted);
}

/* Exporters write an empty text for NOTSET. */
static bool is_auto(const prn_window_params *params, const char *mode)
{
    return strcmp(*params->auto_pad ? params->auto_pad : "NOTSET", mode) == 0;
}

prony_status prn_window_check(const prony_context *context, const prn_window_params *params)
{
    PRN_TRY(window_check_list(context, "kernel_shape", &params->kernel_shape, 1));
    PRN_TRY(window_check_list(context, "strides", &params->strides, 1));
    PRN_TRY(window_check_list(context, "dilations", &params->dilations, 1));
    PRN_TRY(window_check_list(context, "pads", &params->pads, 0));
    if (!is_auto(params, "NOTSET") && !is_auto(params, "VALID") && !is_auto(params, "SAME_UPPER") &&
        !is_auto(params, "SAME_LOWER"))
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "auto_pad is '%.40s'; wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER", params->auto_pad);
    return PRONY_OK;
}

/* Products of extents stay far inside 63 bits even where an empty batch hides them from the check of whole tensors. */
static prony_status check_volume(const prony_context *context, const char *what, const int64_t extent[PRN_WINDOW_AXES])
{
    int64_t volume;
    if (!__builtin_mul_overflow(extent[0], extent[1], &volume) && !__builtin_mul_overflow(volume, extent[2], &volume) &&
        volume < INT64_C(1) << 47)
        return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "the %s of %lld x %lld x %lld elements is too large", what,
                      (long long)extent[0], (long long)extent[1], (long long)extent[2]);
}

/* Reads extents, kernel, strides, dilations and explicit pads into the last axes of `window`; unused axes are 1.
 * Refuses extents and volumes beyond LIMIT, so that later sums fit 64 bits. */
prony_status prn_window_begin(const prony_context *context, const prn_window_params *params, const int64_t *kernel,
                              prn_window *window)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    size_t axes = (size_t)(shape->rank - 2);
    PRN_TRY(window_check_count(context, "kernel_shape", &params->kernel_shape, axes));
    PRN_TRY(window_check_count(context, "strides", &params->strides, axes));
    PRN_TRY(window_check_count(context, "dilations", &params->dilations, axes));
    PRN_TRY(window_check_count(context, "pads", &params->pads, 2 * axes));
    window->axes = (int)axes;
    bool explicit_pads = is_auto(params, "NOTSET") && params->pads.present;
    for (int slot = 0; slot < PRN_WINDOW_AXES; slot++) {
        int axis = slot - (PRN_WINDOW_AXES - (int)axes);
        bool real = axis >= 0;
        window->in[slot] = real ? shape->dim[axis + 2] : 1;
        window->out[slot] = 1;
        window->kernel[slot] = real ? kernel[axis] : 1;
        window->stride[slot] = real && params->strides.present ? params->strides.v[axis] : 1;
        window->dilation[slot] = real && params->dilations.present ? params->dilations.v[axis] : 1;
        window->pad_begin[slot] = real && explicit_pads ? params->pads.v[axis] : 0;
        window->pad_end[slot] = real && explicit_pads ? params->pads.v[axis + (int)axes] : 0;
        if (window->in[slot] > LIMIT || window->kernel[slot] > LIMIT || prn_window_reach(window, slot) > LIMIT)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "spatial axis %d: extent %lld with kernel %lld is too large",
                              axis, (long long)window->in[slot], (long long)window->kernel[slot]);
    }
    PRN_TRY(check_volume(context, "input", window->in));
    return check_volume(context, "kernel", window->kernel);
}

/* Pads that make the output ceil(in / stride) long. */
static void pad_same(const prn_window_params *params, prn_window *window, int slot)
{
    int64_t out = (window->in[slot] + window->stride[slot] - 1) / window->stride[slot];
    int64_t total = (out - 1) * window->stride[slot] + prn_window_reach(window, slot) - window->in[slot];
    if (total < 0) total = 0;
    window->pad_begin[slot] = is_auto(params, "SAME_UPPER") ? total / 2 : total - total / 2;
    window->pad_end[slot] = total - window->pad_begin[slot];
}

prony_status prn_window_forward(const prony_context *context, const prn_window_params *params, prn_window *window)
{
    bool same = is_auto(params, "SAME_UPPER") || is_auto(params, "SAME_LOWER");
    for (int slot = PRN_WINDOW_AXES - window->axes; slot < PRN_WINDOW_AXES; slot++) {
        if (same) pad_same(params, window, slot);
        int64_t stride = window->stride[slot];
        int64_t padded = window->in[slot] + window->pad_begin[slot] + window->pad_end[slot];
        int64_t room = padded - prn_window_reach(window, slot);
        /* With ceil_mode one window may reach over the end of an input that is smaller than it. */
        const bool reaches_over = params->ceil_mode && !same && room < 0 && room > -stride;
        if (room < 0 && !reaches_over)
            return prony_fail(context, PRONY_SHAPE_MISMATCH,
                              "spatial axis %d: the kernel spans %lld elements, but the padded input has %lld",
                              slot - (PRN_WINDOW_AXES - window->axes), (long long)prn_window_reach(window, slot),
                              (long long)padded);
        int64_t out = room / stride + 1;
        /* A window that would start behind the input sees nothing and is left out. */
        if (params->ceil_mode && !same && room > 0 && room % stride &&
            out * stride < window->in[slot] + window->pad_begin[slot])
            out++;
        window->out[slot] = out;
    }
    return check_volume(context, "output", window->out);
}

/* Output extents of a transposed window, and the pads that output_shape or SAME ask for, split between both ends. */
prony_status prn_window_transposed(const prony_context *context, const prn_window_params *params,
                                   const prn_ints *output_padding, const prn_ints *output_shape, prn_window *window)
{
    bool upper = is_auto(params, "SAME_UPPER"), same = upper || is_auto(params, "SAME_LOWER");
    PRN_TRY(window_check_count(context, "output_padding", output_padding, (size_t)window->axes));
    /* Some exporters write batch and channels as well. */
    size_t skip = output_shape->present && output_shape->count == (size_t)window->axes + 2 ? 2 : 0;
    PRN_TRY(window_check_count(context, "output_shape", output_shape, (size_t)window->axes + skip));
    for (int slot = PRN_WINDOW_AXES - window->axes; slot < PRN_WINDOW_AXES; slot++) {
        size_t axis = (size_t)(slot - (PRN_WINDOW_AXES - window->axes));
        int64_t extra = output_padding->present ? output_padding->v[axis] : 0;
        int64_t full = window->stride[slot] * (window->in[slot] - 1) + extra + prn_window_reach(window, slot);
        int64_t out = full - window->pad_begin[slot] - window->pad_end[slot];
        if (output_shape->present || same) {
            out = output_shape->present ? output_shape->v[axis + skip] : window->in[slot] * window->stride[slot];
            int64_t total = full > out ? full - out : 0;
            window->pad_begin[slot] = upper ? total / 2 : total - total / 2;
            window->pad_end[slot] = total - window->pad_begin[slot];
        }
        if (out < 1 || out > LIMIT)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "spatial axis %zu: the output would have %lld elements",
                              axis, (long long)out);
        window->out[slot] = out;
    }
    return check_volume(context, "output", window->out);
}

prony_shape prn_window_output_shape(const prn_window *window, int64_t batch, int64_t channels)
{
    prony_shape shape = {.rank = window->axes + 2, .dim = {batch, channels}};
    for (int i = 0; i < window->axes; i++) shape.dim[2 + i] = window->out[PRN_WINDOW_AXES - window->axes + i];
    return shape;
}
