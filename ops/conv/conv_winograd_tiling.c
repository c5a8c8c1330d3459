/* Cuts tiles of a kind into batches and tasks (conv_cost_model.c chooses the kind). Invariant: nothing but the
 * problem and the kind of processor (its vectors) decides. */
#include "ops/conv/conv_winograd_tiling.h"

#include "base/integers.h"
#include "base/cpu/isa.h"
#include "ops/conv/conv_direct_simd.h"

/* The sizes follow from caches; TASK_WORK, FEW_TASKS and MANY_TASKS have no recorded measurement. */
enum {
    LINE = 16,              /* floats of a cache line */
    NEAR_FILTERS = 1 << 18, /* floats that stay in the second-level cache from batch to batch */
    NEAR_BATCH = 200000,    /* floats of a batch that leave room for them */
    FAR_BATCH = 3 << 18,    /* of one that makes up for reading filters from memory each time */
    TASK_WORK = 1 << 20,    /* multiply-adds that are worth a task */
    FEW_TASKS = 4,
    MANY_TASKS = 8
};

const struct prn_winograd_tile prn_winograd_tiles[PRN_WINOGRAD_KINDS] = {
    [PRN_WINOGRAD_2X2] = {2, 2, 16, 64, 32, 24},
    [PRN_WINOGRAD_2X4] = {2, 4, 64, 128, 120, 80},
    [PRN_WINOGRAD_4X4] = {4, 4, 256, 512, 288, 160}};

/* A plane of an image is one. */
static int64_t images_of(const prn_conv *conv)
{
    return conv->batch * conv->window.out[0];
}

/* Of an odd number of lines, so that the points of a tile do not all meet in one set of a cache. */
static int64_t odd_lines(int64_t floats)
{
    return (prn_ceil_div(floats, LINE) | 1) * LINE;
}

/* Batches of at most `most` tiles, whole rows of them where a row fits; several small images may make one. */
static void cut_batches(prn_winograd_tiling *cut, int64_t lanes, int64_t most)
{
    if (most < 1) most = 1;
    cut->batches_across = prn_ceil_div(cut->tile_columns, most);
    const int64_t columns = prn_ceil_div(cut->tile_columns, cut->batches_across);
    const int64_t rows = most / columns > 1 ? most / columns : 1;
    const int64_t all = cut->rows_in_all, images = all / cut->tile_rows, across = cut->batches_across;
    const int64_t step = rows < cut->tile_rows ? images : 1;
    int64_t down = step == 1 ? prn_ceil_div(all, rows) : images * prn_ceil_div(cut->tile_rows, rows);
    const double work = (double)cut->points * (double)(all * cut->tile_columns) * (double)(cut->in_blocks * lanes) *
                        (double)(cut->blocks * lanes);
    const int64_t useful = work / TASK_WORK > FEW_TASKS ? FEW_TASKS : (int64_t)(work / TASK_WORK);
    while (down * across * cut->groups < useful && down + step <= all) down += step;
    while (down * across > FEW_TASKS && down * across % FEW_TASKS && down + step <= all) down += step;
    cut->batches_down = down;
    cut->batch_tiles = prn_ceil_div(all, down) * columns;
    const int64_t batches = down * across, wanted = useful > 1 ? prn_ceil_div(MANY_TASKS, batches) : 1;
    int64_t tasks = wanted < cut->groups ? wanted : cut->groups;
    while (tasks > 1 && batches * tasks % FEW_TASKS && tasks < cut->groups) tasks++;
    cut->tasks_of_batch = tasks;
    cut->tasks = batches * tasks;
}

/* The tiling for tiles of `kind`. It follows from shape and processor alone, never from the thread count. */
void prn_winograd_tiling_as(const prn_conv *conv, const prn_winograd_simd *simd, prn_winograd_kind kind, bool in_run,
                            prn_winograd_tiling *out)
{
    const struct prn_winograd_tile *tile = &prn_winograd_tiles[kind];
    const int64_t lanes = simd->lanes;
    prn_winograd_tiling cut = {.kind = kind, .rows = tile->rows, .columns = tile->columns};
    cut.in_blocks = prn_ceil_div(conv->in_channels, lanes);
    cut.blocks = prn_ceil_div(conv->out_channels, lanes);
    cut.groups = prn_ceil_div(cut.blocks, PRN_WINOGRAD_MOST_BLOCKS);
    cut.points = (cut.rows + PRN_WINOGRAD_TAPS - 1) * (cut.columns + PRN_WINOGRAD_TAPS - 1);
    const prn_window *window = &conv->window;
    cut.phases = window->dilation[1] * window->dilation[2];
    cut.phase_rows = prn_ceil_div(prn_ceil_div(window->out[1], window->dilation[1]), cut.rows);
    cut.tile_rows = cut.phases * cut.phase_rows;
    cut.rows_in_all = images_of(conv) * cut.tile_rows;
    cut.tile_columns = prn_ceil_div(prn_ceil_div(window->out[2], window->dilation[2]), cut.columns);
    const int64_t widest = prn_ceil_div(cut.blocks, cut.groups);
    cut.far = (double)cut.points * (double)(cut.in_blocks * lanes) * (double)(cut.blocks * lanes) > NEAR_FILTERS;
    const int64_t tile_floats = cut.points * (cut.in_blocks + widest) * lanes;
    cut_batches(&cut, lanes, (cut.far ? FAR_BATCH : NEAR_BATCH) / tile_floats);
    cut.run = (conv->in_channels < tile->long_channels ? 16 : 32) / lanes;
    if (cut.run < 1) cut.run = 1;
    cut.v_point = odd_lines(cut.in_blocks * cut.batch_tiles * lanes);
    cut.m_point = odd_lines(widest * cut.batch_tiles * lanes);
    cut.u_point = in_run && cut.far ? odd_lines(PRN_WINOGRAD_FILTER_UNITS * PRN_DIRECT_UNIT * widest * lanes) : 0;
    *out = cut;
}

int64_t prn_winograd_flops(const prn_conv *conv, const prn_winograd_tiling *cut)
{
    const struct prn_winograd_tile *tile = &prn_winograd_tiles[cut->kind];
    const int64_t tiles = cut->rows_in_all * cut->tile_columns;
    return tiles * (2 * cut->points * conv->in_channels * conv->out_channels + conv->in_channels * tile->forward_flops +
                    conv->out_channels * tile->inverse_flops);
}

prn_winograd_tile_offset prn_winograd_place_of(const prn_window *window, const prn_winograd_tiling *cut, int64_t row)
{
    if (cut->phases == 1) {
        return (prn_winograd_tile_offset){.top = row * cut->rows,
                                          .in = {window->in[1], window->in[2]},
                                          .out = {window->out[1], window->out[2]},
                                          .pad = {window->pad_begin[1], window->pad_begin[2]}};
    }
    const int64_t phase = row / cut->phase_rows;
    const int64_t begin[2] = {phase / window->dilation[2], phase % window->dilation[2]};
    prn_winograd_tile_offset place = {.top = row % cut->phase_rows * cut->rows};
    for (int i = 0; i < 2; i++) {
        const int64_t step = window->dilation[i + 1], in = window->in[i + 1], out = window->out[i + 1];
        /* The first window begins at begin - pad, which is `pad` steps before `first`. */
        place.pad[i] =
            begin[i] < window->pad_begin[i + 1] ? prn_ceil_div(window->pad_begin[i + 1] - begin[i], step) : 0;
        const int64_t first = begin[i] - window->pad_begin[i + 1] + place.pad[i] * step;
        place.in[i] = first < in ? prn_ceil_div(in - first, step) : 0;
        place.out[i] = begin[i] < out ? prn_ceil_div(out - begin[i], step) : 0;
        place.x_first = place.x_first * window->in[2] + first;
        place.y_first = place.y_first * window->out[2] + begin[i];
    }
    return place;
}

prn_winograd_batch prn_winograd_batch_at(const prn_winograd_tiling *cut, int64_t index)
{
    prn_winograd_batch b;
    const int64_t down = index / cut->batches_across, across = index % cut->batches_across;
    b.row = down * cut->rows_in_all / cut->batches_down;
    b.row_end = (down + 1) * cut->rows_in_all / cut->batches_down;
    b.column = across * cut->tile_columns / cut->batches_across;
    b.column_end = (across + 1) * cut->tile_columns / cut->batches_across;
    b.tiles = (b.row_end - b.row) * (b.column_end - b.column);
    return b;
}
