/* convtranspose_f32_direct: one convolution for each remainder of the output's positions by the strides.
 *
 *     o = r + s q,  o + pad - k dilation = s i    =>    i = q + (r + pad - k dilation) / s
 *
 * for the taps k that leave no remainder.
 *
 * Outputs of one remainder r thus meet the same taps, at the same distances from q: a part of conv_f32_direct, whose
 * results lie s apart. No product is computed that no output takes, and none is stored. */
#include "ops/conv/conv_kernels.h"
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "ops/conv/conv_direct_plan.h"

#include <stdio.h>

enum {
    MOST_PARTS = 64,
    MOST_FILL = 2, /* multiply-adds with channels filled up to blocks, for each that counts */
};

/* The taps of one remainder along one axis: `first` and every `step`-th behind it. */
typedef struct axis_taps {
    int64_t first, step, count;
} axis_taps;

static axis_taps find_axis_taps(const prn_window *window, int axis, int64_t remainder)
{
    axis_taps taps = {.step = 1};
    for (int64_t k = 0; k < window->kernel[axis]; k++) {
        if ((remainder + window->pad_begin[axis] - k * window->dilation[axis]) % window->stride[axis]) continue;
        if (taps.count == 0) taps.first = k;
        if (taps.count == 1) taps.step = k - taps.first;
        taps.count++;
    }
    return taps;
}

/* Remainders that outputs have along an axis. */
static int64_t remainders(const prn_window *window, int axis)
{
    return prn_least(window->stride[axis], window->out[axis]);
}

static int64_t conv_transpose_direct_part_count(const prn_window *window)
{
    int64_t count = 1;
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++)
        if (__builtin_mul_overflow(count, remainders(window, axis), &count)) return INT64_MAX;
    return count;
}

bool prn_conv_transpose_direct_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_transpose_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    const int64_t most = INT32_MAX / prn_direct_tiles()->lanes, parts = conv_transpose_direct_part_count(&conv.window);
    if (!prn_direct_takes_groups(&conv) || conv.batch < 1 || conv.in_channels < 1 || conv.out_channels < 1)
        return false;
    if (conv.kernel_volume > PRN_DIRECT_MOST_TAPS || conv.in_spatial < 1 || conv.in_spatial > most ||
        conv.out_spatial > most)
        return false;
    return parts >= 1 && parts <= MOST_PARTS && prn_direct_can_fuse(context, conv.out_channels);
}

/* Tiles compute whole blocks of channels: where few of a block are there, products of the taps there are cost less. */
bool prn_conv_transpose_direct_profitable(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_transpose_read(context, &conv) != PRONY_OK) return false;
    const int64_t lanes = prn_direct_tiles()->lanes, in = prn_ceil_div(conv.group_in, lanes) * lanes,
                  out = prn_ceil_div(conv.group_out, lanes) * lanes;
    return in * out <= MOST_FILL * conv.group_in * conv.group_out;
}

/* One remainder along each axis. */
typedef struct remainder_taps {
    const prn_window *window;
    int64_t remainder[PRN_WINDOW_AXES];
    axis_taps axis[PRN_WINDOW_AXES];
} remainder_taps;

static void conv_transpose_direct_tell_tap(const void *argument, int64_t index, prn_direct_tap *tap)
{
    const remainder_taps *taps = argument;
    const prn_window *window = taps->window;
    int64_t number = 0, k[PRN_WINDOW_AXES];
    for (int axis = PRN_WINDOW_AXES - 1; axis >= 0; axis--) {
        const axis_taps *along = &taps->axis[axis];
        k[axis] = along->first + index % along->count * along->step;
        index /= along->count;
        tap->at[axis] =
            (taps->remainder[axis] + window->pad_begin[axis] - k[axis] * window->dilation[axis]) / window->stride[axis];
    }
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++) number = number * window->kernel[axis] + k[axis];
    tap->number = number;
}

static prony_status conv_transpose_direct_add_part(const prony_context *context, prn_direct_state *state,
                                                   const prn_conv *conv, int64_t number)
{
    const prn_window *window = &conv->window;
    remainder_taps taps = {.window = window};
    prn_direct_part part;
    int64_t count = 1;
    for (int axis = PRN_WINDOW_AXES - 1; axis >= 0; axis--) {
        const int64_t r = number % remainders(window, axis);
        number /= remainders(window, axis);
        taps.remainder[axis] = r;
        taps.axis[axis] = find_axis_taps(window, axis, r);
        count *= taps.axis[axis].count;
        part.positions[axis] = prn_ceil_div(window->out[axis] - r, window->stride[axis]);
        part.origin[axis] = 0;
        part.stride[axis] = 1;
        part.out_first[axis] = r;
        part.out_step[axis] = window->stride[axis];
    }
    return prn_direct_add_part(context, state, conv, &part, count, conv_transpose_direct_tell_tap, &taps, NULL);
}

prony_status prn_conv_transpose_direct_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv whole;
    PRN_TRY(prn_conv_transpose_read(context, &whole));
    const prn_conv conv = prn_direct_of_groups(&whole);
    const int64_t parts = conv_transpose_direct_part_count(&conv.window);
    prn_direct_state *state = prn_direct_state_make((size_t)parts, whole.groups);
    prony_status status = state ? PRONY_OK : prn_no_memory(context->error);
    if (state) {
        state->k_step = conv.kernel_volume;
        state->c_step = conv.out_channels * state->k_step;
        state->set_step = conv.in_channels * state->c_step;
    }
    for (int64_t i = 0; i < parts && status == PRONY_OK; i++)
        status = conv_transpose_direct_add_part(context, state, &conv, i);
    if (status == PRONY_OK) status = prn_direct_pack(context, state, &conv.window);
    if (status != PRONY_OK) {
        prn_conv_direct_release(state);
        return status;
    }
    out->state = state;
    return PRONY_OK;
}

void prn_conv_transpose_direct_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    if (prn_conv_transpose_read(context, &conv) != PRONY_OK) return;
    const int64_t parts = conv_transpose_direct_part_count(&conv.window);
    if (parts < 1) return;
    prn_direct_facts(conv.group_out, prn_ceil_div(conv.out_spatial, parts),
                     conv.group_in * prn_ceil_div(conv.kernel_volume, parts), facts);
}
