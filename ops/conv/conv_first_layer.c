/* conv_f32_stem: few channels of a plain image into channel blocks.
 *
 * A small image is copied with its padding into the scratch and read there. Of others:
 *
 *     task = one image, some rows of the output, a group of up to four output channel blocks
 *     tile = a few successive positions of a row, all blocks of the group, sums in registers
 *
 * Windows read the image in place; windows that touch padding read a copy of those rows and columns.
 * Packed weights belong to the model: [group][channel, row and column of the window][block of the group][output lane].
 * Invariant: pieces depend on the problem alone; each output is summed in one order. */
#include "ops/conv/conv_kernels.h"
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/conv/conv_cost_model.h"
#include "ops/conv/conv_direct_plan.h"
#include "ops/conv/conv_row_direct_simd.h"

#include <math.h>
#include <stdio.h>

/* MOST_COPIED and NARROW have no recorded measurement. */
enum {
    MOST_CHANNELS = 15, /* more come in channel blocks */
    MOST_TAPS = 1024,
    MOST_COPIED = 8192,   /* floats that the windows of a tile see */
    NARROW = 64,          /* outputs of a row: the tiles that see padding are a good part of it */
    MOST_PADDED = 1 << 16 /* floats of an image with its padding */
};

static int64_t positions_of(const prn_direct_simd *simd, int64_t out_channels)
{
    const int64_t blocks = prn_ceil_div(out_channels, simd->lanes),
                  groups = prn_ceil_div(blocks, PRN_DIRECT_MOST_BLOCKS);
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t wide = prn_direct_first_block(blocks, g + 1) - prn_direct_first_block(blocks, g);
        if (simd->row_positions[wide] > most) most = simd->row_positions[wide];
    }
    return most;
}

static int64_t conv_first_layer_span_of(const prn_conv *conv)
{
    const int64_t last = (positions_of(prn_direct_tiles(), conv->out_channels) - 1) * conv->window.stride[2];
    return prn_ceil_div(last + prn_window_reach(&conv->window, 2), 4) * 4;
}

bool prn_conv_first_layer_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    const prn_window *window = &conv.window;
    if (conv.groups != 1 || conv.batch < 1 || conv.in_channels < 1 || conv.out_channels < 1) return false;
    if (conv.in_channels > MOST_CHANNELS || conv.in_spatial > INT32_MAX / MOST_CHANNELS) return false;
    if (!prn_conv_in_plane(&conv)) return false;
    if (window->stride[2] != 1 && window->stride[2] != 2 && window->stride[2] != 4) return false;
    if (conv.kernel_volume > MOST_TAPS / conv.in_channels || prn_window_reach(window, 2) > MOST_COPIED) return false;
    if (conv.in_channels * window->kernel[1] * conv_first_layer_span_of(&conv) > MOST_COPIED) return false;
    return prn_direct_can_fuse(context, conv.out_channels);
}

double prn_conv_first_layer_predict(const prony_context *context)
{
    prn_conv conv;
    return prn_conv_read(context, &conv) == PRONY_OK && conv.groups == 1 && conv.in_channels <= MOST_CHANNELS
               ? prn_conv_first_layer_cycles(context, &conv)
               : INFINITY;
}

void prn_conv_first_layer_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    out[0] = prn_layout_blocked();
    prn_post_ops_ask_layout(context->post_ops, out[0], in);
}

/* ---- prepared */

static void conv_first_layer_find_steps(prn_direct_windows *windows, const prn_conv *conv)
{
    const prn_window *window = &conv->window;
    int64_t k = 0;
    windows->steps = windows->both;
    windows->copied_steps = windows->both + conv->in_channels * conv->kernel_volume;
    for (int64_t c = 0; c < conv->in_channels; c++) {
        for (int64_t ky = 0; ky < window->kernel[1]; ky++) {
            for (int64_t kx = 0; kx < window->kernel[2]; kx++, k++) {
                const int64_t row = c * window->in[1] + ky * window->dilation[1], column = kx * window->dilation[2];
                windows->steps[k] = (int32_t)(row * window->in[2] + column);
                windows->copied_steps[k] = (int32_t)((c * window->kernel[1] + ky) * windows->span + column);
            }
        }
    }
}

/* Decides if the image is copied, and what the problem becomes. */
static void pad(prn_direct_windows *windows, prn_conv *conv)
{
    prn_window *window = &conv->window;
    int64_t in[2], size = conv->in_channels;
    bool padded = false;
    for (int a = 0; a < 2; a++) {
        in[a] =
            (window->out[a + 1] - 1) * window->stride[a + 1] + prn_window_reach(window, a + 1); /* what windows see */
        padded |= window->pad_begin[a + 1] > 0 || in[a] > window->in[a + 1];
        size = size > MOST_PADDED || in[a] > MOST_PADDED ? INT64_MAX / MOST_PADDED : size * in[a];
    }
    if (!padded || window->out[2] >= NARROW || size > MOST_PADDED) return;
    windows->padded = true;
    for (int a = 0; a < 2; a++) {
        windows->image[a] = window->in[a + 1];
        windows->before[a] = window->pad_begin[a + 1];
        window->in[a + 1] = in[a];
        window->pad_begin[a + 1] = window->pad_end[a + 1] = 0;
    }
    conv->in_spatial = in[0] * in[1];
}

static void conv_first_layer_tell_tap(const void *argument, int64_t index, prn_direct_tap *tap)
{
    (void)argument;
    tap->number = index;
}

/* Plans the windows (padding, steps) as the source of the direct kernel's tiles. A padded image lies in scratch. */
prony_status prn_conv_first_layer_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    const int64_t taps = conv.in_channels * conv.kernel_volume;
    prn_direct_state *state = prn_direct_state_make(1, 1);
    prn_direct_windows *windows = prn_calloc(1, sizeof *windows + 2 * (size_t)taps * sizeof windows->both[0]);
    if (!state || !windows) {
        prn_free(windows);
        prn_free(state);
        return prn_no_memory(context->error);
    }
    windows->span = conv_first_layer_span_of(&conv);
    pad(windows, &conv);
    conv_first_layer_find_steps(windows, &conv);
    if (windows->padded)
        out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT32, conv.batch * conv.in_channels * conv.in_spatial);
    state->c_step = conv.kernel_volume;
    state->k_step = taps;
    const int64_t *positions = conv.window.out;
    const prn_direct_part part = {.positions = {positions[0], positions[1], positions[2]}};
    prony_status status =
        prn_direct_add_part(context, state, &conv, &part, taps, conv_first_layer_tell_tap, NULL, windows);
    if (status == PRONY_OK) status = prn_direct_pack(context, state, NULL);
    if (status == PRONY_OK)
        out->state = state;
    else
        prn_conv_direct_release(state);
    return status;
}

void prn_conv_first_layer_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return;
    const prn_direct_simd *simd = prn_direct_tiles();
    const int64_t blocks = prn_ceil_div(conv.out_channels, simd->lanes);
    const int64_t wide = blocks < PRN_DIRECT_MOST_BLOCKS ? blocks : PRN_DIRECT_MOST_BLOCKS;
    prn_conv_tile_facts(facts, conv.window.out[2], conv.out_channels, conv.in_channels * conv.kernel_volume,
                        simd->row_positions[wide], simd->lanes * wide);
}

/* ---- run */

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Some columns of a row of the image (NULL: of what lies around it) from `left` on. They are few: no call. */
static void copy_row(const float *row, int64_t left, int64_t width, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i += 4) {
        const int64_t at = left + i;
        quad four = {0};
        if (row && at >= 0 && at + 4 <= width) {
            four = *(const quad *)(row + at);
        } else if (row && at > -4 && at < width) {
            for (int j = 0; j < 4; j++)
                if (at + j >= 0 && at + j < width) four[j] = row[at + j];
        }
        *(quad *)(to + i) = four;
    }
}

/* The input seen by the windows of a tile that begins at (top, left). */
static void copy_windows(const prn_direct_plan *plan, const float *image, int64_t top, int64_t left, float *to)
{
    const prn_window *window = &plan->conv.window;
    const int64_t height = window->in[1], width = window->in[2];
    for (int64_t c = 0; c < plan->conv.in_channels; c++, image += height * width) {
        for (int64_t ky = 0; ky < window->kernel[1]; ky++, to += plan->windows->span) {
            const int64_t y = top + ky * window->dilation[1];
            copy_row(y >= 0 && y < height ? image + y * width : NULL, left, width, plan->windows->span, to);
        }
    }
}

void prn_direct_run_row(const prn_direct_plan *plan, const float *image, int64_t row, int64_t most, int64_t blocks,
                        prn_direct_tile *tile)
{
    const prn_window *window = &plan->conv.window;
    const int64_t top = row * window->stride[1] - window->pad_begin[1], lanes = plan->simd->lanes;
    const bool rows_inside = top >= 0 && top + prn_window_reach(window, 1) <= window->in[1];
    float copy[MOST_COPIED];
    for (int64_t at = 0, count; at < window->out[2]; at += count) {
        count = window->out[2] - at < most ? window->out[2] - at : most;
        const int64_t left = at * window->stride[2] - window->pad_begin[2];
        const int64_t end = left + (count - 1) * window->stride[2] + prn_window_reach(window, 2);
        if (rows_inside && left >= 0 && end <= window->in[2]) {
            tile->x = image + top * window->in[2] + left;
            tile->steps = plan->windows->steps;
        } else {
            copy_windows(plan, image, top, left, copy);
            tile->x = copy;
            tile->steps = plan->windows->copied_steps;
        }
        plan->simd->tile[blocks][count](tile);
        tile->y += count * lanes;
        if (tile->added) tile->added += count * lanes;
    }
}

/* One channel of one image with its padding. */
static void pad_plane(void *argument, int64_t plane)
{
    const prony_context *context = argument;
    const prn_direct_plan *plan = ((const prn_direct_state *)context->state)->plans[0];
    const prn_direct_windows *windows = plan->windows;
    const prn_window *window = &plan->conv.window;
    const prn_row_direct_fill rows = {.image = (const float *)context->inputs[0]->data +
                                               plane * windows->image[0] * windows->image[1],
                                      .height = windows->image[0],
                                      .width = windows->image[1],
                                      .top = -windows->before[0],
                                      .left = -windows->before[1],
                                      .stride = {1, 1},
                                      .rows = window->in[1],
                                      .pitch = window->in[2]};
    prn_row_direct_rows()->fill((float *)context->scratch + plane * plan->conv.in_spatial, &rows);
}

void prn_direct_pad_image(const prony_context *context, const prn_direct_plan *plan)
{
    prn_parallel_tasks(1, plan->conv.batch * plan->conv.in_channels, pad_plane, (void *)(uintptr_t)context);
}
