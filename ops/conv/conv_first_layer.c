/* conv_f32_stem: few channels of a plain image into channel blocks.
 *
 * A small image is copied with its padding into the scratch and read there. Of others:
 *
 *     task = one image, some rows of the output, a group of up to four output channel blocks
 *     tile = a few successive positions of a row, all blocks of the group, sums in registers; what their windows see is
 * read where it lies, or, where some of it is padding, from a copy of those rows and columns
 *
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
    MOST_COPIED = 8192, /* floats that the windows of a tile see */
    TASK_WORK = 1500000,
    MOST_PIECES = 64,
    NARROW = 64,          /* outputs of a row: the tiles that see padding are a good part of it */
    MOST_PADDED = 1 << 16 /* floats of an image with its padding */
};

typedef struct stem_plan {
    const prn_direct_simd *simd;
    prn_conv conv;
    const float *packed;
    bool padded;                 /* the image is copied; `conv` is then the problem on the copy, without
                                            padding */
    int64_t image[2], before[2]; /* its rows and columns, the padding in front of them */
    int64_t blocks, groups;
    int64_t taps, rows, pieces; /* rows of a task; pieces of an image */
    int64_t span;               /* columns of a copy */
    prn_direct_epilogue end;
    int32_t *steps, *copied_steps; /* from a window's first element to each, in the image and in a copy */
    int32_t both[];
} stem_plan;

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
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_conv_read(context, &conv) != PRONY_OK) return false;
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
    return prn_conv_read(context, &conv) == PRONY_OK && conv.in_channels <= MOST_CHANNELS
               ? prn_conv_first_layer_cycles(context, &conv)
               : INFINITY;
}

void prn_conv_first_layer_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    out[0] = prn_direct_tiles()->lanes == 16 ? PRN_BLOCKED16 : PRN_BLOCKED8;
    prn_post_ops_ask_layout(context->post_ops, out[0], in);
}

/* ---- prepared */

static prony_status conv_first_layer_build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const stem_plan *plan = argument;
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes;
    const float *weights = conv->weights->data;
    float *to = packed;
    for (int64_t g = 0; g < plan->groups; g++) {
        const int64_t begin = prn_direct_first_block(plan->blocks, g) * lanes;
        const int64_t end = prn_direct_first_block(plan->blocks, g + 1) * lanes;
        for (int64_t t = 0; t < plan->taps && !prn_cancelled(); t++) {
            for (int64_t k = begin; k < end; k++) *to++ = k < conv->out_channels ? weights[k * plan->taps + t] : 0.0f;
        }
    }
    return PRONY_OK;
}

static void conv_first_layer_find_steps(stem_plan *plan)
{
    const prn_window *window = &plan->conv.window;
    int64_t k = 0;
    plan->steps = plan->both;
    plan->copied_steps = plan->both + plan->taps;
    for (int64_t c = 0; c < plan->conv.in_channels; c++) {
        for (int64_t ky = 0; ky < window->kernel[1]; ky++) {
            for (int64_t kx = 0; kx < window->kernel[2]; kx++, k++) {
                const int64_t row = c * window->in[1] + ky * window->dilation[1], column = kx * window->dilation[2];
                plan->steps[k] = (int32_t)(row * window->in[2] + column);
                plan->copied_steps[k] = (int32_t)((c * window->kernel[1] + ky) * plan->span + column);
            }
        }
    }
}

/* Decides if the image is copied, and what the problem becomes. */
static void pad(stem_plan *plan)
{
    prn_conv *conv = &plan->conv;
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
    plan->padded = true;
    for (int a = 0; a < 2; a++) {
        plan->image[a] = window->in[a + 1];
        plan->before[a] = window->pad_begin[a + 1];
        window->in[a + 1] = in[a];
        window->pad_begin[a + 1] = window->pad_end[a + 1] = 0;
    }
    conv->in_spatial = in[0] * in[1];
}

static void conv_first_layer_choose_tiling(stem_plan *plan)
{
    const prn_conv *conv = &plan->conv;
    const double work = prn_conv_image_work(conv) / (double)plan->groups;
    const int64_t rows = conv->window.out[1],
                  wanted = work < (double)MOST_PIECES * TASK_WORK ? (int64_t)(work / TASK_WORK) + 1 : MOST_PIECES;
    plan->rows = prn_ceil_div(rows, wanted + (wanted > 1 && wanted % 2));
    plan->pieces = prn_ceil_div(rows, plan->rows);
}

/* Makes the plan (padding, steps, tiling) and finds the packed weights. A padded image lies in scratch. */
prony_status prn_conv_first_layer_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    const void *packed;
    PRN_TRY(prn_conv_read(context, &conv));
    const int64_t taps = conv.in_channels * conv.kernel_volume;
    stem_plan *plan = prn_calloc(1, sizeof *plan + 2 * (size_t)taps * sizeof plan->both[0]);
    if (!plan) return prn_no_memory(context->error);
    plan->simd = prn_direct_tiles();
    plan->conv = conv;
    plan->taps = taps;
    plan->blocks = prn_ceil_div(conv.out_channels, plan->simd->lanes);
    plan->groups = prn_ceil_div(plan->blocks, PRN_DIRECT_MOST_BLOCKS);
    plan->span = conv_first_layer_span_of(&conv);
    plan->end = prn_direct_find_epilogue(context->post_ops, plan->conv.out_channels);
    pad(plan);
    conv_first_layer_find_steps(plan);
    conv_first_layer_choose_tiling(plan);
    if (plan->padded)
        out->scratch_bytes = prony_dtype_bytes(PRONY_FLOAT32, conv.batch * conv.in_channels * plan->conv.in_spatial);
    const prn_pack_key key = {.build = conv_first_layer_build_weights,
                              .size = {plan->simd->lanes, conv.out_channels, taps}};
    size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, plan->blocks * plan->simd->lanes * taps);
    prony_status status = context->services->packed(context, conv.weights->data, &key, bytes, plan, &packed);
    if (status != PRONY_OK) {
        prn_free(plan);
        return status;
    }
    plan->packed = packed;
    out->state = plan;
    return PRONY_OK;
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

typedef struct job {
    const stem_plan *plan;
    const prony_context *context;
    const float *x, *added;
    float *y;
} job;

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
static void copy_windows(const stem_plan *plan, const float *image, int64_t top, int64_t left, float *to)
{
    const prn_window *window = &plan->conv.window;
    const int64_t height = window->in[1], width = window->in[2];
    for (int64_t c = 0; c < plan->conv.in_channels; c++, image += height * width) {
        for (int64_t ky = 0; ky < window->kernel[1]; ky++, to += plan->span) {
            const int64_t y = top + ky * window->dilation[1];
            copy_row(y >= 0 && y < height ? image + y * width : NULL, left, width, plan->span, to);
        }
    }
}

static void conv_first_layer_run_row(const stem_plan *plan, const float *image, int64_t row, int64_t most,
                                     prn_direct_tile *tile, int64_t blocks)
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
            tile->steps = plan->steps;
        } else {
            copy_windows(plan, image, top, left, copy);
            tile->x = copy;
            tile->steps = plan->copied_steps;
        }
        plan->simd->tile[blocks][count](tile);
        tile->y += count * lanes;
        if (tile->added) tile->added += count * lanes;
    }
}

/* One task: some output rows of one image for one group of channel blocks, then their epilogue. */
static void conv_first_layer_run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const stem_plan *plan = job->plan;
    const prn_conv *conv = &plan->conv;
    const int64_t group = task % plan->groups, piece = task / plan->groups % plan->pieces;
    const int64_t image = task / plan->groups / plan->pieces, lanes = plan->simd->lanes, width = conv->window.out[2];
    const int64_t first = prn_direct_first_block(plan->blocks, group);
    const int64_t blocks = prn_direct_first_block(plan->blocks, group + 1) - first;
    const int64_t begin = piece * plan->rows, left = conv->window.out[1] - begin;
    const int64_t end = begin + (left < plan->rows ? left : plan->rows), plane = image * plan->blocks + first;
    float bias[PRN_DIRECT_MOST_BLOCKS * 16];
    prn_direct_copy_bias(conv->bias, conv->out_channels, 0, first * lanes, blocks * lanes, bias);
    prn_direct_tile tile = {.weights = plan->packed + first * lanes * plan->taps,
                            .taps = plan->taps,
                            .stride = conv->window.stride[2],
                            .y_block = conv->out_spatial * lanes,
                            .start = bias,
                            .clamped = plan->end.clamped,
                            .used_lanes = first + blocks == plan->blocks ? conv->out_channels % lanes : 0,
                            .low = plan->end.low,
                            .high = plan->end.high};
    const int64_t from = (plane * conv->out_spatial + begin * width) * lanes;
    tile.y = job->y + from;
    tile.added = job->added ? job->added + from : NULL;
    const int64_t most = prn_ceil_div(width, prn_ceil_div(width, plan->simd->row_positions[blocks])); /* evenly */
    for (int64_t row = begin; row < end && !prn_cancelled(); row++)
        conv_first_layer_run_row(plan, job->x + image * conv->in_channels * conv->in_spatial, row, most, &tile, blocks);
    prn_direct_apply_epilogue(job->context, &plan->end, job->y, plane, blocks, conv->out_spatial, begin * width,
                              end * width);
}

/* One channel of one image with its padding. */
static void pad_plane(void *argument, int64_t plane)
{
    const job *job = argument;
    const stem_plan *plan = job->plan;
    const prn_window *window = &plan->conv.window;
    const prn_row_direct_fill rows = {.image = (const float *)job->context->inputs[0]->data +
                                               plane * plan->image[0] * plan->image[1],
                                      .height = plan->image[0],
                                      .width = plan->image[1],
                                      .top = -plan->before[0],
                                      .left = -plan->before[1],
                                      .stride = {1, 1},
                                      .rows = window->in[1],
                                      .pitch = window->in[2]};
    prn_row_direct_rows()->fill((float *)job->context->scratch + plane * plan->conv.in_spatial, &rows);
}

prony_status prn_conv_first_layer_run(const prony_context *context)
{
    const stem_plan *plan = context->state;
    job job = {plan, context, context->inputs[0]->data, NULL, context->outputs[0]->data};
    if (plan->padded) {
        job.x = context->scratch;
        prn_parallel_tasks(1, plan->conv.batch * plan->conv.in_channels, pad_plane, &job);
    }
    if (plan->end.added) job.added = context->inputs[plan->end.added]->data;
    prn_parallel_tasks(context->threads, plan->conv.batch * plan->groups * plan->pieces, conv_first_layer_run_task,
                       &job);
    return PRONY_OK;
}
