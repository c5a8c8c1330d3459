/* conv_f32_direct's run: tasks, passes, tiles (conv_direct.c has the drawing). */
#include "base/integers.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "ops/nn/conv_direct.h"
#include "ops/nn/conv_direct_plan.h"

typedef struct job {
    const prn_direct_plan *plan;
    const prony_context *context;
    const float *x;
    const float *added; /* NULL: no residual that the sums are added to */
    float *y;
} job;

/* What one task works on. */
typedef struct piece {
    int64_t image, group, begin, end; /* output positions */
    int64_t first_block, blocks;
    int64_t most; /* positions of a tile */
    int64_t tiles;
    bool group_ends; /* the next task takes the next group's weights */
} piece;

/* ---- what tiles read */

/* One position's column of [tap][position], `stride` apart. This runs in every task, so it divides nothing. */
static void find_position(const prn_direct_plan *plan, int64_t row, int64_t place, int64_t stride, int32_t *column)
{
    const prn_window *window = &plan->conv.window;
    int64_t top = row * window->stride[1] - window->pad_begin[1];
    int64_t left = place * window->stride[2] - window->pad_begin[2];
    if (top >= 0 && top <= plan->last_inside[0] && left >= 0 && left <= plan->last_inside[1]) {
        int32_t from = (int32_t)((top * window->in[2] + left) * plan->simd->lanes);
        for (int64_t k = 0; k < plan->conv.kernel_volume; k++) column[k * stride] = from + plan->steps[k];
        return;
    }
    for (int64_t ky = 0; ky < window->kernel[1]; ky++) {
        int64_t y = top + ky * window->dilation[1];
        for (int64_t kx = 0; kx < window->kernel[2]; kx++, column += stride) {
            int64_t x = left + kx * window->dilation[2];
            bool inside = y >= 0 && y < window->in[1] && x >= 0 && x < window->in[2];
            *column = inside ? (int32_t)((y * window->in[2] + x) * plan->simd->lanes) : PRN_DIRECT_PADDING;
        }
    }
}

/* What a piece's tiles read: where each tap of each position is, and the taps of each tile outside which all is
 * padding. */
typedef struct reads {
    int32_t offsets[PRN_DIRECT_MOST_OFFSETS];
    int16_t first[PRN_DIRECT_MOST_OFFSETS], end[PRN_DIRECT_MOST_OFFSETS];
} reads;

static bool all_padding(const int32_t *offsets, int64_t count)
{
    for (int64_t p = 0; p < count; p++)
        if (offsets[p] != PRN_DIRECT_PADDING) return false;
    return true;
}

static int64_t tile_positions(const piece *piece, int64_t at)
{
    return piece->end - at < piece->most ? piece->end - at : piece->most;
}

static void find_reads(const prn_direct_plan *plan, const piece *piece, reads *reads)
{
    int64_t taps = plan->conv.kernel_volume, width = plan->conv.window.out[2], tile = 0;
    int64_t row = piece->begin / width, place = piece->begin % width;
    int32_t *offsets = reads->offsets;
    for (int64_t at = piece->begin, count; at < piece->end; at += count, tile++, offsets += count * taps) {
        int64_t first = 0, last = taps;
        count = tile_positions(piece, at);
        for (int64_t p = 0; p < count; p++) {
            find_position(plan, row, place, count, offsets + p);
            if (++place < width) continue;
            place = 0;
            row++;
        }
        while (first < last && all_padding(offsets + first * count, count)) first++;
        while (first < last && all_padding(offsets + (last - 1) * count, count)) last--;
        reads->first[tile] = (int16_t)first;
        reads->end[tile] = (int16_t)last;
    }
}

/* ---- tiles */

/* All tiles of a piece over the input blocks and with the weights that `tile` has, while `lines` lines of those that
 * follow are fetched. reads NULL: positions are in a row. */
static void run_pass(const job *job, const piece *piece, prn_direct_tile *tile, const reads *reads, int64_t lines)
{
    const prn_direct_plan *plan = job->plan;
    int64_t lanes = plan->simd->lanes, y = (piece->image * plan->blocks + piece->first_block) * tile->y_block;
    int64_t taps = plan->conv.kernel_volume, index = 0, fetched = 0;
    const int32_t *offsets = reads ? reads->offsets : NULL;
    const float *weights = tile->weights, *x = tile->x, *next = tile->next;
    tile->taps = 1;
    for (int64_t at = piece->begin, count; at < piece->end; at += count, index++) {
        count = tile_positions(piece, at);
        if (reads) {
            int64_t first = reads->first[index];
            tile->taps = reads->end[index] - first;
            tile->offsets = offsets + first * count;
            tile->weights = weights + first * PRN_DIRECT_UNIT * piece->blocks * lanes;
            offsets += count * taps;
            tile->ahead = taps == 1 && piece->end - at >= count + piece->most ? offsets : NULL;
        } else {
            tile->x = x + at * lanes;
        }
        tile->next = next + fetched * PRN_DIRECT_LINE_FLOATS;
        const int64_t until = lines * (index + 1) / piece->tiles, steps = tile->taps * tile->in_blocks;
        tile->next_lines = steps ? (until - fetched + steps - 1) / steps : 0;
        fetched += tile->next_lines * steps;
        tile->y = job->y + y + at * lanes;
        tile->added = job->added ? job->added + y + at * lanes : NULL;
        plan->simd->tile[piece->blocks][count](tile);
    }
}

/* How many lines of the weights behind those of the pass are needed next: those of the next pass, or of the next
 * group's first. */
static int64_t lines_to_fetch(const prn_direct_plan *plan, const piece *piece, int64_t in_blocks_left,
                              int64_t per_block)
{
    int64_t blocks = in_blocks_left;
    if (!blocks && piece->group_ends) blocks = plan->in_blocks;
    if (blocks > plan->per_pass) blocks = plan->per_pass;
    return blocks * per_block / PRN_DIRECT_LINE_FLOATS;
}

static void run_passes(const job *job, const piece *piece, const reads *reads)
{
    const prn_direct_plan *plan = job->plan;
    const prn_conv *conv = &plan->conv;
    int64_t lanes = plan->simd->lanes, width = piece->blocks * lanes, per_block = conv->kernel_volume * lanes * width;
    const float *packed = plan->packed + piece->first_block * lanes * plan->units_in * PRN_DIRECT_UNIT * conv->kernel_volume;
    float bias[PRN_DIRECT_MOST_BLOCKS * 16];
    prn_direct_copy_bias(conv, piece->first_block * lanes, width, bias);
    prn_direct_tile tile = {.w_block = per_block,
                            .x_block = conv->in_spatial * lanes,
                            .y_block = conv->out_spatial * lanes,
                            .low = plan->end.low,
                            .high = plan->end.high};
    for (int64_t from = 0; from < plan->in_blocks && !prn_stopped(); from += tile.in_blocks) {
        int64_t left = plan->in_blocks - from;
        tile.in_blocks = left < plan->per_pass ? left : plan->per_pass;
        left -= tile.in_blocks;
        tile.x = job->x + (piece->image * plan->in_blocks + from) * tile.x_block;
        tile.weights = packed + from * per_block;
        tile.start = from ? NULL : bias;
        tile.clamped = plan->end.clamped && !left;
        tile.next = tile.weights + tile.in_blocks * per_block;
        run_pass(job, piece, &tile, reads, lines_to_fetch(plan, piece, left, per_block));
    }
}

/* ---- tasks */

static void run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const prn_direct_plan *plan = job->plan;
    int64_t of_image = task % (plan->groups * plan->pieces);
    piece piece = {.image = task / (plan->groups * plan->pieces)};
    int64_t number = plan->groups_inside ? of_image / plan->groups : of_image % plan->pieces;
    piece.group = plan->groups_inside ? of_image % plan->groups : of_image / plan->pieces;
    piece.begin = plan->units * number / plan->pieces * plan->unit;
    piece.end = plan->units * (number + 1) / plan->pieces * plan->unit;
    if (piece.end > plan->conv.out_spatial) piece.end = plan->conv.out_spatial;
    piece.first_block = prn_direct_first_block(plan->blocks, piece.group);
    piece.blocks = prn_direct_first_block(plan->blocks, piece.group + 1) - piece.first_block;
    piece.most = prn_direct_most(plan, piece.blocks);
    piece.tiles = prn_ceil_div(piece.end - piece.begin, piece.most);
    piece.group_ends = piece.group + 1 < plan->groups && (plan->groups_inside || number + 1 == plan->pieces);
    reads reads;
    if (!plan->in_a_row) find_reads(plan, &piece, &reads);
    run_passes(job, &piece, plan->in_a_row ? NULL : &reads);
    prn_direct_finish(job->context, &plan->end, job->y, piece.image * plan->blocks + piece.first_block, piece.blocks,
                      plan->conv.out_spatial, piece.begin, piece.end);
}

prony_status prn_conv_direct_run(const prony_context *context)
{
    const prn_direct_plan *plan = context->state;
    job job = {plan, context, context->inputs[0]->data, NULL, context->outputs[0]->data};
    if (plan->end.added) job.added = context->inputs[plan->end.added]->data;
    prn_parallel_tasks(context->threads, plan->conv.batch * plan->groups * plan->pieces, run_task, &job);
    return PRONY_OK;
}
