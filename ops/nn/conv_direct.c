/* conv_f32_direct: convolution on blocked layouts, for windows of more than one tap.
 *
 *     task  = one image, a run of output positions, a group of up to four output channel blocks
 *     pass  = input blocks by the piece whose weights stay in the first-level cache
 *     tile  = a few successive positions (rows are not told apart: each tap of each has its own offset, so that a small
 *             image's edges cost no more than its middle), all blocks of the group, sums in registers
 *
 * The state is the packed weights, which the model owns: [group][input block][tap][input lane][block of the
 * group][output lane]. A residual that comes first is what the sums begin with, so it may lie in the output. Invariant:
 * pieces depend on the problem alone; each output is summed in one order. */
#include "ops/nn/conv_direct.h"
#include "base/ceil_div.h"

#include "base/simd.h"
#include "base/parallel.h"
#include "ops/loops/conv_problem.h"
#include "ops/loops/post_ops_vec.h"
#include "ops/nn/conv_direct_simd.h"

#include <stdio.h>
#include <string.h>

enum {
    LEAST_WORK = 3000000, /* multiply-adds */
    TASK_WORK = 8000000,  /* a task of a small image reads all its group's weights: fewer tasks, less traffic */
    MOST_OFFSETS = 4096,  /* on the stack */
    MOST_TAPS = MOST_OFFSETS / PRN_DIRECT_MOST_POSITIONS,
    CACHED_WEIGHTS = 5120,  /* floats that leave room for the input in the first-level cache */
    NEAR_WEIGHTS = 1 << 16, /* floats that stay in the second-level cache */
    MOST_WIDE_BLOCKS = 8,   /* with AVX-512, where wider problems were not measured against oneDNN's kernels */
    CACHE_LINE_BYTES = 64
};

PRN_SIMD_PICK(prn_direct_simd, prn_direct_simd_, static const prn_direct_simd *simd)

static double image_work(const prn_conv *conv)
{
    return (double)conv->out_spatial * (double)conv->kernel_volume * (double)conv->in_channels *
           (double)conv->out_channels;
}

bool prn_conv_direct_usable(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_AVX2) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    const prn_window *window = &conv.window;
    int64_t lanes = simd()->lanes;
    if (conv.groups != 1 || conv.in_channels % lanes || conv.out_channels % lanes) return false;
    if (window->kernel[0] != 1 || window->in[0] != 1 || window->out[0] != 1) return false;
    if (conv.kernel_volume > MOST_TAPS || conv.in_spatial > INT32_MAX / lanes) return false;
    if (conv.batch < 1 || conv.in_channels < 1 || conv.out_channels < 1) return false;
    for (size_t i = 1; context->post_ops && i < context->post_ops->count; i++) {
        if (context->post_ops->op[i].kind == PRN_POST_ADD) return false;
    }
    return true;
}

bool prn_conv_direct_worth(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (conv.kernel_volume == 1) return false; /* short sums cost tiles much */
    if (simd()->lanes == 16 && conv.out_channels / simd()->lanes > MOST_WIDE_BLOCKS) return false;
    return image_work(&conv) >= LEAST_WORK;
}

void prn_conv_direct_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_layout layout = simd()->lanes == 16 ? PRN_BLOCKED16 : PRN_BLOCKED8;
    const prn_post_ops *post_ops = context->post_ops;
    in[0] = out[0] = layout;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD) in[post_ops->op[0].input] = layout;
}

/* ---- weights */

/* Output blocks are dealt to as few groups as there can be, evenly: the first block of group `group`. */
static int64_t first_block(int64_t blocks, int64_t group)
{
    return group * blocks / prn_ceil_div(blocks, PRN_DIRECT_MOST_BLOCKS);
}

static prony_status build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const prn_conv *conv = argument;
    int64_t lanes = simd()->lanes, blocks = conv->out_channels / lanes, volume = conv->kernel_volume;
    const float *weights = conv->weights->data;
    float *to = packed;
    for (int64_t g = 0; g < prn_ceil_div(blocks, PRN_DIRECT_MOST_BLOCKS); g++) {
        int64_t begin = first_block(blocks, g) * lanes, end = first_block(blocks, g + 1) * lanes;
        for (int64_t c = 0; c < conv->in_channels; c += lanes) {
            for (int64_t t = 0; t < volume * lanes; t++) {
                for (int64_t k = begin; k < end; k++)
                    *to++ = weights[(k * conv->in_channels + c + t % lanes) * volume + t / lanes];
            }
        }
    }
    return PRONY_OK;
}

prony_status prn_conv_direct_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    char tag[96];
    const void *packed;
    PRN_TRY(prn_conv_read(context, &conv));
    snprintf(tag, sizeof tag, "conv direct %lld lanes: %lld x %lld x %lld", (long long)simd()->lanes,
             (long long)conv.out_channels, (long long)conv.in_channels, (long long)conv.kernel_volume);
    size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, conv.out_channels * conv.in_channels * conv.kernel_volume);
    PRN_TRY(context->host->packed(context, conv.weights->data, tag, bytes, build_weights, &conv, &packed));
    out->state = (void *)(uintptr_t)packed;
    return PRONY_OK;
}

/* ---- run */

typedef struct job {
    const prn_direct_simd *simd;
    const prn_conv *conv;
    prony_context rest; /* for the post-operations that are not part of the sum */
    prn_post_ops rest_ops;
    const float *packed, *x;
    const float *added; /* NULL: no residual that the sums are added to */
    float *y;
    int64_t in_blocks, blocks, groups;
    int64_t positions, pieces; /* of a task; of an image */
    bool groups_inside;        /* successive tasks share a piece, not a group */
    int64_t last_inside[2];    /* rows and places of the input where a window can begin and meet no padding */
    int32_t steps[MOST_TAPS];  /* from the first tap to each, where none is padding */
} job;

/* What one task works on. */
typedef struct piece {
    int64_t image, group, begin, end; /* output positions */
    int64_t first_block, blocks;
    int64_t most; /* positions of a tile */
} piece;

/* One position's column of [tap][position], `stride` apart. This runs in every task, so it divides nothing. */
static void fill_position(const job *job, int64_t row, int64_t place, int64_t stride, int32_t *column)
{
    const prn_window *window = &job->conv->window;
    int64_t top = row * window->stride[1] - window->pad_begin[1];
    int64_t left = place * window->stride[2] - window->pad_begin[2];
    if (top >= 0 && top <= job->last_inside[0] && left >= 0 && left <= job->last_inside[1]) {
        int32_t from = (int32_t)((top * window->in[2] + left) * job->simd->lanes);
        for (int64_t k = 0; k < job->conv->kernel_volume; k++) column[k * stride] = from + job->steps[k];
        return;
    }
    for (int64_t ky = 0; ky < window->kernel[1]; ky++) {
        int64_t y = top + ky * window->dilation[1];
        for (int64_t kx = 0; kx < window->kernel[2]; kx++, column += stride) {
            int64_t x = left + kx * window->dilation[2];
            bool inside = y >= 0 && y < window->in[1] && x >= 0 && x < window->in[2];
            *column = inside ? (int32_t)((y * window->in[2] + x) * job->simd->lanes) : PRN_DIRECT_PADDING;
        }
    }
}

static int64_t tile_positions(const piece *piece, int64_t at)
{
    return piece->end - at < piece->most ? piece->end - at : piece->most;
}

/* What a piece's tiles read: where each tap of each position is, and the taps of each tile outside which all is
 * padding. */
typedef struct reads {
    int32_t offsets[MOST_OFFSETS];
    int16_t first[MOST_OFFSETS], end[MOST_OFFSETS];
} reads;

static bool all_padding(const int32_t *offsets, int64_t count)
{
    for (int64_t p = 0; p < count; p++)
        if (offsets[p] != PRN_DIRECT_PADDING) return false;
    return true;
}

static void fill_reads(const job *job, const piece *piece, reads *reads)
{
    int64_t taps = job->conv->kernel_volume, width = job->conv->window.out[2], tile = 0;
    int64_t row = piece->begin / width, place = piece->begin % width;
    int32_t *offsets = reads->offsets;
    for (int64_t at = piece->begin, count; at < piece->end; at += count, tile++, offsets += count * taps) {
        int64_t first = 0, end = taps;
        count = tile_positions(piece, at);
        for (int64_t p = 0; p < count; p++) {
            fill_position(job, row, place, count, offsets + p);
            if (++place < width) continue;
            place = 0;
            row++;
        }
        while (first < end && all_padding(offsets + first * count, count)) first++;
        while (first < end && all_padding(offsets + (end - 1) * count, count)) end--;
        reads->first[tile] = (int16_t)first;
        reads->end[tile] = (int16_t)end;
    }
}

/* All tiles of a piece over input blocks [from, from + tile->in_blocks), whose weights begin at `weights`. */
static void run_pass(const job *job, const piece *piece, prn_direct_tile *tile, const float *weights,
                     const reads *reads)
{
    int64_t lanes = job->simd->lanes, y = (piece->image * job->blocks + piece->first_block) * tile->y_block;
    int64_t taps = job->conv->kernel_volume, index = 0;
    const int32_t *offsets = reads->offsets;
    for (int64_t at = piece->begin, count; at < piece->end; at += count, index++, offsets += count * taps) {
        int64_t first = reads->first[index];
        count = tile_positions(piece, at);
        tile->taps = reads->end[index] - first;
        tile->offsets = offsets + first * count;
        tile->weights = weights + first * lanes * piece->blocks * lanes;
        tile->y = job->y + y + at * lanes;
        tile->added = job->added ? job->added + y + at * lanes : NULL;
        job->simd->tile[piece->blocks][count](tile);
        tile->next += tile->next_lines * (CACHE_LINE_BYTES / (int64_t)sizeof(float));
    }
}

static void run_passes(const job *job, const piece *piece)
{
    const prn_conv *conv = job->conv;
    int64_t lanes = job->simd->lanes, width = piece->blocks * lanes, per_block = conv->kernel_volume * lanes * width;
    const float *packed = job->packed + piece->first_block * lanes * conv->in_channels * conv->kernel_volume;
    float bias[PRN_DIRECT_MOST_BLOCKS * 16] = {0};
    reads reads;
    if (conv->bias)
        memcpy(bias, (const float *)conv->bias->data + piece->first_block * lanes, (size_t)width * sizeof *bias);
    fill_reads(job, piece, &reads);
    prn_direct_tile tile = {
        .w_block = per_block, .x_block = conv->in_spatial * lanes, .y_block = conv->out_spatial * lanes};
    int64_t tiles = prn_ceil_div(piece->end - piece->begin, piece->most);
    int64_t step = CACHED_WEIGHTS / per_block > 1 ? CACHED_WEIGHTS / per_block : 1;
    for (int64_t from = 0; from < job->in_blocks; from += tile.in_blocks) {
        tile.in_blocks = job->in_blocks - from < step ? job->in_blocks - from : step;
        tile.x = job->x + (piece->image * job->in_blocks + from) * tile.x_block;
        const float *weights = packed + from * per_block;
        tile.start = from ? NULL : bias;
        tile.next = weights + tile.in_blocks * per_block;
        int64_t rest = job->in_blocks - from - tile.in_blocks < step ? job->in_blocks - from - tile.in_blocks : step;
        tile.next_lines = prn_ceil_div(rest * per_block * (int64_t)sizeof(float), tiles * CACHE_LINE_BYTES);
        run_pass(job, piece, &tile, weights, &reads);
    }
}

static void run_task(void *argument, int64_t task)
{
    const job *job = argument;
    int64_t lanes = job->simd->lanes, of_image = task % (job->groups * job->pieces);
    piece piece = {.image = task / (job->groups * job->pieces)};
    piece.group = job->groups_inside ? of_image % job->groups : of_image / job->pieces;
    piece.begin = (job->groups_inside ? of_image / job->groups : of_image % job->pieces) * job->positions;
    piece.end = piece.begin + job->positions;
    if (piece.end > job->conv->out_spatial) piece.end = job->conv->out_spatial;
    piece.first_block = first_block(job->blocks, piece.group);
    piece.blocks = first_block(job->blocks, piece.group + 1) - piece.first_block;
    piece.most = job->simd->positions[piece.blocks];
    run_passes(job, &piece);
    for (int64_t b = 0; b < piece.blocks && job->rest_ops.count; b++) {
        int64_t plane = piece.image * job->blocks + piece.first_block + b;
        int64_t first = (plane * job->conv->out_spatial + piece.begin) * lanes;
        prn_post_ops_apply_vec(&job->rest, job->y + first, first, (piece.end - piece.begin) * lanes);
    }
}

static void fill_steps(job *job)
{
    const prn_window *window = &job->conv->window;
    int32_t *step = job->steps;
    for (int axis = 0; axis < 2; axis++)
        job->last_inside[axis] = window->in[axis + 1] - prn_window_reach(window, axis + 1);
    for (int64_t ky = 0; ky < window->kernel[1] && job->last_inside[0] >= 0 && job->last_inside[1] >= 0; ky++) {
        for (int64_t kx = 0; kx < window->kernel[2]; kx++) {
            int64_t place = ky * window->dilation[1] * window->in[2] + kx * window->dilation[2];
            *step++ = (int32_t)(place * job->simd->lanes);
        }
    }
}

/* A residual that is added first becomes part of the sum; what is left are maps. */
static void split_post_ops(const prony_context *context, job *job)
{
    const prn_post_ops *post_ops = context->post_ops;
    job->rest = *context;
    job->rest.post_ops = &job->rest_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD)
            job->added = context->inputs[post_ops->op[i].input]->data;
        else
            job->rest_ops.op[job->rest_ops.count++] = post_ops->op[i];
    }
}

/* Pieces as even as whole tiles allow, of about TASK_WORK. */
static void cut(job *job)
{
    const prn_conv *conv = job->conv;
    int64_t most = job->simd->positions[job->blocks < PRN_DIRECT_MOST_BLOCKS ? job->blocks : PRN_DIRECT_MOST_BLOCKS];
    int64_t limit = MOST_OFFSETS / conv->kernel_volume / most * most;
    double work = image_work(conv) / (double)job->groups / TASK_WORK;
    int64_t pieces = work < (double)conv->out_spatial ? (int64_t)work + 1 : conv->out_spatial;
    job->positions = prn_ceil_div(prn_ceil_div(conv->out_spatial, pieces), most) * most;
    if (job->positions > limit) job->positions = limit;
    job->pieces = prn_ceil_div(conv->out_spatial, job->positions);
    job->groups_inside = conv->in_channels * conv->out_channels * conv->kernel_volume <= NEAR_WEIGHTS;
}

void prn_conv_direct_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return;
    int64_t lanes = simd()->lanes, blocks = conv.out_channels / lanes;
    int64_t wide = blocks < PRN_DIRECT_MOST_BLOCKS ? blocks : PRN_DIRECT_MOST_BLOCKS;
    prn_cost_fact(facts, "product_rows", conv.out_spatial);
    prn_cost_fact(facts, "product_columns", conv.out_channels);
    prn_cost_fact(facts, "product_depth", conv.in_channels * conv.kernel_volume);
    prn_cost_fact(facts, "tile_rows", simd()->positions[wide]);
    prn_cost_fact(facts, "tile_columns", lanes * wide);
}

prony_status prn_conv_direct_run(const prony_context *context)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    job job = {.simd = simd(), .conv = &conv, .packed = context->state, .x = conv.x->data};
    job.y = context->outputs[0]->data;
    job.in_blocks = conv.in_channels / job.simd->lanes;
    job.blocks = conv.out_channels / job.simd->lanes;
    job.groups = prn_ceil_div(job.blocks, PRN_DIRECT_MOST_BLOCKS);
    cut(&job);
    fill_steps(&job);
    split_post_ops(context, &job);
    prn_parallel_tasks(context->threads, conv.batch * job.groups * job.pieces, run_task, &job);
    return PRONY_OK;
}
