/* The run of conv_f32_direct, convtranspose_f32_direct and conv_f32_stem: tasks, passes, tiles (conv_direct.c has the
 * drawing). */
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/conv_direct_plan.h"

#include <string.h>

enum { STREAMED_POSITIONS = 1 };

typedef struct job {
    const prn_direct_state *state;
    const prony_context *context;
    const float *x;
    const float *added; /* NULL: no residual that the sums are added to */
    float *y;
    const float *packed; /* the weights of the only part, packed in this run; NULL: by the model */
    const prony_value *bias;
} job;

/* The work of one task. */
typedef struct piece {
    int64_t image, group, begin, end; /* output positions */
    int64_t first_block, blocks;
    int64_t most; /* positions of a tile */
    int64_t tiles;
    bool group_ends; /* the next task takes the next group's weights */
} piece;

/* ---- what tiles read */

/* An output position, and where its window begins. */
typedef struct spot {
    int64_t position[PRN_WINDOW_AXES], at[PRN_WINDOW_AXES];
    int64_t row;     /* of the input, where the window's first tap would read */
    bool row_inside; /* no tap of this row of positions meets padding in another axis than the last */
} spot;

static void enter_row(const prn_direct_plan *plan, spot *spot)
{
    const prn_direct_part *part = &plan->part;
    spot->row_inside = true;
    for (int axis = 0; axis < PRN_WINDOW_AXES; axis++) {
        const int64_t at = spot->at[axis] = part->origin[axis] + spot->position[axis] * part->stride[axis];
        if (axis < PRN_WINDOW_AXES - 1)
            spot->row_inside &= at >= plan->first_inside[axis] && at <= plan->last_inside[axis];
    }
    spot->row = spot->at[0] * plan->conv.window.in[1] + spot->at[1];
}

static void step_on(const prn_direct_plan *plan, spot *spot)
{
    spot->at[2] += plan->part.stride[2];
    if (++spot->position[2] < plan->part.positions[2]) return;
    spot->position[2] = 0;
    if (++spot->position[1] == plan->part.positions[1]) {
        spot->position[1] = 0;
        spot->position[0]++;
    }
    enter_row(plan, spot);
}

/* One position's column of [tap][position], `stride` apart. This runs in every task, so it divides nothing. */
static void find_position(const prn_direct_plan *plan, const spot *spot, int64_t stride, int32_t *column)
{
    const prn_window *window = &plan->conv.window;
    const int64_t lanes = plan->simd->lanes, *at = spot->at;
    if (spot->row_inside && at[2] >= plan->first_inside[2] && at[2] <= plan->last_inside[2]) {
        const int32_t from = (int32_t)((spot->row * window->in[2] + at[2]) * lanes), *step = plan->steps;
        for (int64_t k = 0; k < plan->taps; k++) column[k * stride] = from + step[k];
        return;
    }
    for (int64_t k = 0; k < plan->taps; k++, column += stride) {
        const int64_t *tap = plan->tap[k].at, z = at[0] + tap[0], y = at[1] + tap[1], x = at[2] + tap[2];
        const bool inside = z >= 0 && z < window->in[0] && y >= 0 && y < window->in[1] && x >= 0 && x < window->in[2];
        *column = inside ? (int32_t)(((z * window->in[1] + y) * window->in[2] + x) * lanes) : PRN_DIRECT_PADDING;
    }
}

/* The place of its results, in floats of a block of the output. */
static int32_t conv_direct_run_place_of(const prn_direct_plan *plan, const int64_t position[])
{
    const int64_t *out = plan->conv.window.out, *first = plan->part.out_first, *step = plan->part.out_step;
    const int64_t plane = first[0] + position[0] * step[0], row = first[1] + position[1] * step[1];
    return (int32_t)(((plane * out[1] + row) * out[2] + first[2] + position[2] * step[2]) * plan->simd->lanes);
}

/* The reads of a piece's tiles: of each tile the taps that are not all padding, and where each position has them.
 * For a part whose positions are spread over the output: the place of each. */
typedef struct reads {
    int32_t offsets[PRN_DIRECT_MOST_OFFSETS], places[PRN_DIRECT_MOST_OFFSETS];
    int16_t numbers[PRN_DIRECT_MOST_OFFSETS], taps[PRN_DIRECT_MOST_OFFSETS]; /* of the filter's taps; how many, of each
                                                                                tile */
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

/* Leaves out the taps of a tile that are all padding: how many are left. */
static int16_t leave_out_padding(int64_t taps, int64_t count, int32_t *offsets, int16_t *numbers)
{
    int16_t left = 0;
    for (int64_t k = 0; k < taps; k++) {
        if (all_padding(offsets + k * count, count)) continue;
        if (left < k) memcpy(offsets + left * count, offsets + k * count, (size_t)count * sizeof *offsets);
        numbers[left++] = (int16_t)k;
    }
    return left;
}

static void find_reads(const prn_direct_plan *plan, const piece *piece, reads *reads)
{
    const int64_t *extents = plan->part.positions;
    spot spot = {.position = {piece->begin / extents[2] / extents[1], piece->begin / extents[2] % extents[1],
                              piece->begin % extents[2]}};
    enter_row(plan, &spot);
    int32_t *offsets = reads->offsets, *place = reads->places;
    int16_t *numbers = reads->numbers;
    for (int64_t at = piece->begin, count, tile = 0; at < piece->end; at += count, tile++) {
        count = tile_positions(piece, at);
        for (int64_t p = 0; p < count; p++) {
            find_position(plan, &spot, count, offsets + p);
            if (plan->spread) *place++ = conv_direct_run_place_of(plan, spot.position);
            step_on(plan, &spot);
        }
        reads->taps[tile] = leave_out_padding(plan->taps, count, offsets, numbers);
        offsets += count * reads->taps[tile];
        numbers += reads->taps[tile];
    }
}

/* ---- tiles */

/* All tiles of a piece over the input blocks and with the weights that `tile` has, while `lines` lines of those that
 * follow are fetched. reads NULL: positions are in a row. */
static void run_pass(const job *job, const prn_direct_plan *plan, const piece *piece, prn_direct_tile *tile,
                     const reads *reads, int64_t lines)
{
    int64_t lanes = plan->simd->lanes, y = (piece->image * plan->blocks + piece->first_block) * tile->y_block;
    int64_t index = 0, fetched = 0;
    const int32_t *offsets = reads ? reads->offsets : NULL;
    const float *x = tile->x, *next = tile->next;
    tile->numbers = reads ? reads->numbers : NULL;
    tile->taps = reads ? 0 : 1;
    tile->fresh = plan->fresh;
    for (int64_t at = piece->begin, count; at < piece->end; at += count, index++) {
        count = tile_positions(piece, at);
        if (reads) {
            tile->numbers += tile->taps;
            tile->taps = reads->taps[index];
            tile->offsets = offsets;
            offsets += count * tile->taps;
            const bool next_is_whole = piece->end - at >= count + piece->most;
            tile->ahead = offsets;
            tile->fresh_count = next_is_whole && reads->taps[index + 1] == plan->taps ? plan->fresh_count : 0;
        } else {
            tile->x = x + at * lanes;
        }
        tile->next = next + fetched * PRN_DIRECT_LINE_FLOATS;
        const int64_t until = lines * (index + 1) / piece->tiles, steps = tile->taps * tile->in_blocks;
        tile->next_lines = steps ? (until - fetched + steps - 1) / steps : 0;
        fetched += tile->next_lines * steps;
        tile->places = plan->spread ? reads->places + (at - piece->begin) : NULL;
        tile->y = job->y + y + (plan->spread ? 0 : at * lanes);
        tile->added = job->added ? job->added + (tile->y - job->y) : NULL;
        plan->simd->tile[piece->blocks][count](tile);
    }
}

/* Lines of the weights behind those of the pass that are needed next: those of the next pass, or of the next
 * group's first. None for so few positions that weights are little but read: processors fetch ahead in such a stream by
 * themselves, and fetches of ours only take up what is waited for. */
static int64_t lines_to_fetch(const prn_direct_plan *plan, const piece *piece, int64_t in_blocks_left,
                              int64_t per_block)
{
    int64_t blocks = in_blocks_left;
    if (piece->end - piece->begin <= STREAMED_POSITIONS) return 0;
    if (!blocks && piece->group_ends) blocks = plan->in_blocks;
    if (blocks > plan->per_pass) blocks = plan->per_pass;
    return blocks * per_block / PRN_DIRECT_LINE_FLOATS;
}

/* The parts of a tile that all tiles of a piece share, with the bias of its channels. */
static prn_direct_tile first_tile(const job *job, const prn_direct_plan *plan, const piece *piece, float *bias)
{
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes, set = piece->image % job->state->sets;
    prn_direct_copy_bias(job->bias, conv->out_channels, set, piece->first_block * lanes, piece->blocks * lanes, bias);
    return (prn_direct_tile){.weights = (job->packed ? job->packed : plan->packed) +
                                        set * prn_direct_packed_count(plan) +
                                        piece->first_block * lanes * plan->units_in * plan->unit_depth * plan->taps,
                             .y_block = conv->out_spatial * lanes,
                             .low = plan->end.low,
                             .high = plan->end.high};
}

static int64_t lanes_used_last(const prn_direct_plan *plan, const piece *piece)
{
    return piece->first_block + piece->blocks == plan->blocks ? plan->conv.out_channels % plan->simd->lanes : 0;
}

/* Rows of plain windows. */
static void run_windows(const job *job, const prn_direct_plan *plan, const piece *piece)
{
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes, width = plan->part.positions[2];
    float bias[PRN_DIRECT_MOST_BLOCKS * 16];
    prn_direct_tile tile = first_tile(job, plan, piece, bias);
    tile.taps = plan->taps;
    tile.stride = conv->window.stride[2];
    tile.start = bias;
    tile.clamped = plan->end.clamped;
    tile.used_lanes = lanes_used_last(plan, piece);
    const int64_t from =
        ((piece->image * plan->blocks + piece->first_block) * conv->out_spatial + piece->begin) * lanes;
    tile.y = job->y + from;
    tile.added = job->added ? job->added + from : NULL;
    const float *image = job->x + piece->image * conv->in_channels * conv->in_spatial;
    for (int64_t at = piece->begin; at < piece->end && !prn_cancelled(); at += width)
        prn_direct_run_row(plan, image, at / width, piece->most, piece->blocks, &tile);
}

/* Sums one piece over all input channels, as many blocks a pass as the caches hold; the first pass starts from the
 * bias, the last one clamps. */
static void run_passes(const job *job, const prn_direct_plan *plan, const piece *piece, const reads *reads)
{
    const prn_conv *conv = &plan->conv;
    int64_t lanes = plan->simd->lanes, per_block = plan->taps * lanes * piece->blocks * lanes;
    float bias[PRN_DIRECT_MOST_BLOCKS * 16];
    prn_direct_tile tile = first_tile(job, plan, piece, bias);
    const float *packed = tile.weights;
    tile.w_block = per_block;
    tile.x_block = conv->in_spatial * lanes;
    for (int64_t from = 0; from < plan->in_blocks && !prn_cancelled(); from += tile.in_blocks) {
        int64_t left = plan->in_blocks - from;
        tile.in_blocks = left < plan->per_pass ? left : plan->per_pass;
        left -= tile.in_blocks;
        tile.ends_half = !left && plan->in_blocks * lanes - conv->in_channels >= lanes / 2;
        tile.x = job->x + (piece->image * plan->in_blocks + from) * tile.x_block;
        tile.weights = packed + from * per_block;
        tile.start = from ? NULL : bias;
        tile.clamped = plan->end.clamped && !left;
        tile.used_lanes = left ? 0 : lanes_used_last(plan, piece);
        tile.next = tile.weights + tile.in_blocks * per_block;
        run_pass(job, plan, piece, &tile, reads, lines_to_fetch(plan, piece, left, per_block));
    }
}

/* ---- tasks */

/* One task: a piece of output pixels for one group of channel blocks of one image. Tasks write disjoint pixels and
 * blocks. */
static void conv_direct_run_task(void *argument, int64_t task)
{
    const job *job = argument;
    size_t part = 0;
    while (part + 1 < job->state->count && task >= job->state->plans[part + 1]->first_task) part++;
    const prn_direct_plan *plan = job->state->plans[part];
    task -= plan->first_task;
    int64_t of_image = task % (plan->groups * plan->pieces);
    piece piece = {.image = task / (plan->groups * plan->pieces)};
    int64_t number = plan->groups_inside ? of_image / plan->groups : of_image % plan->pieces;
    piece.group = plan->groups_inside ? of_image % plan->groups : of_image / plan->pieces;
    piece.begin = plan->units * number / plan->pieces * plan->unit;
    piece.end = plan->units * (number + 1) / plan->pieces * plan->unit;
    if (piece.end > plan->spots) piece.end = plan->spots;
    piece.first_block = prn_direct_first_block(plan->blocks, piece.group);
    piece.blocks = prn_direct_first_block(plan->blocks, piece.group + 1) - piece.first_block;
    piece.most = prn_direct_most(plan, piece.blocks);
    piece.tiles = prn_ceil_div(piece.end - piece.begin, piece.most);
    piece.group_ends = piece.group + 1 < plan->groups && (plan->groups_inside || number + 1 == plan->pieces);
    reads reads;
    if (plan->windows) {
        run_windows(job, plan, &piece);
    } else {
        if (!plan->in_a_row) find_reads(plan, &piece, &reads);
        run_passes(job, plan, &piece, plan->in_a_row ? NULL : &reads);
    }
    if (!plan->spread)
        prn_direct_apply_epilogue(job->context, &plan->end, job->y, piece.image * plan->blocks + piece.first_block,
                                  piece.blocks, plan->conv.out_spatial, piece.begin, piece.end);
}

/* Of parts that lie among each other. */
static void conv_direct_run_finish_plane(void *argument, int64_t plane)
{
    const job *job = argument;
    const prn_direct_plan *plan = job->state->plans[0];
    prn_direct_apply_epilogue(job->context, &plan->end, job->y, plane, 1, plan->conv.out_spatial, 0,
                              plan->conv.out_spatial);
}

prony_status prn_conv_direct_run(const prony_context *context)
{
    const prn_direct_state *state = context->state;
    const prn_direct_plan *plan = state->plans[0];
    job job = {.state = state, .context = context, .x = context->inputs[0]->data, .y = context->outputs[0]->data};
    if (plan->conv.bias) job.bias = context->inputs[2];
    if (state->variable) {
        job.packed = context->scratch;
        prn_direct_pack_here(context->threads, state, context->inputs[1]->data, context->scratch);
    }
    if (plan->windows && plan->windows->padded) {
        prn_direct_pad_image(context, plan);
        job.x = context->scratch;
    }
    if (plan->end.added) job.added = context->inputs[plan->end.added]->data;
    prn_parallel_tasks(context->threads, state->tasks, conv_direct_run_task, &job);
    if (plan->spread && prn_direct_has_rest(&plan->end))
        prn_parallel_tasks(context->threads, plan->conv.batch * plan->blocks, conv_direct_run_finish_plane, &job);
    return PRONY_OK;
}
