/* The choice of tiles, batches and tasks. Times are those of a model with a few measured constants: products and
 * transforms by the vector instruction, filters that no cache holds by the line. Invariant: nothing but the problem and
 * the kind of processor (its vectors, its memory) decides. */
#include "ops/conv/conv_winograd_tiling.h"

#include "base/integers.h"
#include "base/cpu/isa.h"
#include "ops/conv/conv_direct_simd.h"

/* WEIGHTY_...: filters made in each run, where that costs 0 to 5 % of the time and saves memory (SSD300 holds 241 MiB
 * instead of 336). The other sizes follow from caches; TASK_WORK, FEW_TASKS and MANY_TASKS have no recorded
 * measurement. */
enum {
    LINE = 16,                 /* floats of a cache line */
    NEAR_FILTERS = 1 << 18,    /* floats that stay in the second-level cache from batch to batch */
    SMALL_FILTERS = 1 << 15,   /* of the smallest tiles: of networks so small that they stay there from run to run */
    LARGE_FILTERS = 1 << 23,   /* floats that show in the process's memory */
    WEIGHTY_MODEL = 5 << 20,   /* floats of a model's weights, and */
    WEIGHTY_FILTERS = 1 << 17, /* those that a layer adds, which are worth time */
    NEAR_BATCH = 200000,       /* floats of a batch that leave room for them */
    FAR_BATCH = 3 << 18,       /* of one that makes up for reading filters from memory each time */
    FAR_APART = 6,             /* taps: positions of a tile of the direct kernel */
    TASK_WORK = 1 << 20,       /* multiply-adds that are worth a task */
    FEW_TASKS = 4,
    MANY_TASKS = 8
};

/* Cycles, measured on Sapphire Rapids with AVX-512; AVX2 has about the same proportions. */
static const double per_product = 0.63, per_line = 17.0, short_runs = 1.08;
/* The factor for a product that runs in halves. Memory runs at the same speed. */
static const double halves = 5.0 / 3.0;
/* Cycles of a line where memory is quick, measured on Zen 5. */
static const double per_quick_line = 9.0;
/* By how much larger filters have to be faster than smaller ones. */
static const double memory_gain = 1.08, large_memory_gain = 1.2;
/* The share that kept filters take of the cycles that the model gives them, as their memory is read ahead; and the
 * part of a layer's time that is worth a part of the model's weights in memory. (Measured on Zen 4, with either
 * vectors.) */
static const double read_ahead = 0.91, memory_gain_weight = 2.5;

const struct prn_winograd_tile prn_winograd_tiles[PRN_WINOGRAD_KINDS] = {
    [PRN_WINOGRAD_2X2] = {2, 2, 16, 64, 110, 60, 45, 32, 24},
    [PRN_WINOGRAD_2X4] = {2, 4, 64, 128, 190, 140, 50, 120, 80},
    [PRN_WINOGRAD_4X4] = {4, 4, 256, 512, 380, 270, 68, 288, 160}};

/* Two things at the same time take the longer of the two, and some of the other. */
static double overlapped(double a, double b)
{
    return a > b ? a + b / 4 : b + a / 4;
}

/* Weights of one tap, in whole blocks of channels. */
static double channel_pairs(const prn_conv *conv, const prn_winograd_simd *simd)
{
    const double in_blocks = (double)prn_ceil_div(conv->in_channels, simd->lanes),
                 blocks = (double)prn_ceil_div(conv->out_channels, simd->lanes);
    return in_blocks * blocks * (double)(simd->lanes * simd->lanes);
}

/* A plane of an image is one. */
static int64_t images_of(const prn_conv *conv)
{
    return conv->batch * conv->window.out[0];
}

/* Cycles that reading so many floats of filters takes, `times` times, in the unit of those of products. */
static double read_cycles(const prn_conv *conv, const prn_winograd_simd *simd, double filters, double times)
{
    const bool in_halves = simd->lanes == 16 && prn_isa_has(PRN_HALVES_AVX512);
    const double line = prn_isa_has(PRN_QUICK_MEMORY) ? per_quick_line : in_halves ? per_line / halves : per_line;
    const double smallest = 16.0 * channel_pairs(conv, simd);
    return smallest > SMALL_FILTERS ? times * filters / LINE * line : 0.0;
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

/* The tiling for tiles of `kind`, and its estimated cycles, by which kinds and kernels are compared. It follows from
 * shape and processor alone, never from the thread count. */
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
    const double filters = (double)cut.points * channel_pairs(conv, simd);
    cut.far = filters > NEAR_FILTERS;
    const int64_t tile_floats = cut.points * (cut.in_blocks + widest) * lanes;
    cut_batches(&cut, lanes, (cut.far ? FAR_BATCH : NEAR_BATCH) / tile_floats);
    cut.run = (conv->in_channels < tile->long_channels ? 16 : 32) / lanes;
    if (cut.run < 1) cut.run = 1;
    cut.v_point = odd_lines(cut.in_blocks * cut.batch_tiles * lanes);
    cut.m_point = odd_lines(widest * cut.batch_tiles * lanes);
    cut.u_point = in_run && cut.far ? odd_lines(PRN_WINOGRAD_FILTER_UNITS * PRN_DIRECT_UNIT * widest * lanes) : 0;

    const double tiles = (double)(cut.rows_in_all * cut.tile_columns);
    const double products = tiles * (double)(cut.points * cut.in_blocks * lanes) * (double)cut.blocks * per_product *
                            (conv->in_channels < tile->long_channels ? short_runs : 1.0);
    const double batches = (double)(cut.batches_down * cut.batches_across);
    const double read = cut.u_point ? (double)conv->kernel_volume * channel_pairs(conv, simd) : filters;
    cut.cycles = overlapped(products, read_cycles(conv, simd, read, cut.far ? batches : 1.0)) +
                 (cut.u_point ? batches * channel_pairs(conv, simd) / (double)lanes * tile->filters : 0.0) +
                 tiles * ((double)cut.in_blocks * tile->forward + (double)cut.blocks * tile->inverse);
    *out = cut;
}

static double filter_floats(const prn_conv *conv, const prn_winograd_simd *simd, const prn_winograd_tiling *cut)
{
    return (double)cut->points * channel_pairs(conv, simd);
}

static bool find_fastest(const prn_conv *conv, const prn_winograd_simd *simd, bool in_run, prn_winograd_tiling *out)
{
    bool found = false;
    for (int kind = 0; kind < PRN_WINOGRAD_KINDS; kind++) {
        prn_winograd_tiling cut;
        if (conv->in_channels < prn_winograd_tiles[kind].least_channels) continue;
        prn_winograd_tiling_as(conv, simd, (prn_winograd_kind)kind, in_run, &cut);
        const double threshold = cut.u_point                                       ? 1.0
                                 : filter_floats(conv, simd, &cut) > LARGE_FILTERS ? large_memory_gain
                                                                                   : memory_gain;
        if (found && cut.cycles * threshold > out->cycles) continue;
        *out = cut;
        found = true;
    }
    return found;
}

/* By how much they are larger than the weights. */
static double added_floats(const prn_conv *conv, const prn_winograd_simd *simd, const prn_winograd_tiling *cut)
{
    return filter_floats(conv, simd, cut) - (double)conv->kernel_volume * channel_pairs(conv, simd);
}

/* `share`: of what keeping adds in all weights. */
static bool is_cheap_in_run(const prn_winograd_tiling *in_run, const prn_winograd_tiling *kept, double share)
{
    return in_run->u_point && in_run->cycles < kept->cycles * (read_ahead + memory_gain_weight * share);
}

bool prn_winograd_tiling_best(const prn_conv *conv, const prn_winograd_simd *simd, prn_winograd_filters filters,
                              double weights, prn_winograd_tiling *out)
{
    prn_winograd_tiling in_run;
    if (!find_fastest(conv, simd, filters == PRN_WINOGRAD_IN_RUN, out)) return false;
    const double added = added_floats(conv, simd, out);
    if (filters == PRN_WINOGRAD_EITHER && weights > WEIGHTY_MODEL && added > WEIGHTY_FILTERS &&
        find_fastest(conv, simd, true, &in_run) && is_cheap_in_run(&in_run, out, added / weights))
        *out = in_run;
    return true;
}

/* The share of an axis' taps that are not padding, if they lie so far apart that whole tiles of the direct kernel
 * leave the others out. */
static double taps_inside(const prn_window *window, int axis)
{
    int64_t inside = 0;
    if (window->dilation[axis] < FAR_APART) return 1.0;
    for (int64_t tap = 0; tap < PRN_WINOGRAD_TAPS; tap++) {
        const int64_t first = tap * window->dilation[axis] - window->pad_begin[axis]; /* what the first output reads */
        const int64_t begin = first < 0 ? -first : 0, end = prn_least(window->out[axis], window->in[axis] - first);
        inside += end > begin ? end - begin : 0;
    }
    return (double)inside / (double)(PRN_WINOGRAD_TAPS * window->out[axis]);
}

double prn_winograd_direct_cycles(const prn_conv *conv, const prn_winograd_simd *simd)
{
    const double filters = (double)conv->kernel_volume * channel_pairs(conv, simd);
    const double outputs =
        (double)conv->batch * (double)conv->out_spatial * taps_inside(&conv->window, 1) * taps_inside(&conv->window, 2);
    return overlapped(outputs * filters / (double)simd->lanes * per_product, read_cycles(conv, simd, filters, 1.0));
}

int64_t prn_winograd_flops(const prn_conv *conv, const prn_winograd_tiling *cut)
{
    const struct prn_winograd_tile *tile = &prn_winograd_tiles[cut->kind];
    const int64_t tiles = cut->rows_in_all * cut->tile_columns;
    return tiles * (2 * cut->points * conv->in_channels * conv->out_channels + conv->in_channels * tile->forward_flops +
                    conv->out_channels * tile->inverse_flops);
}

prn_winograd_place prn_winograd_place_of(const prn_window *window, const prn_winograd_tiling *cut, int64_t row)
{
    if (cut->phases == 1) {
        return (prn_winograd_place){.top = row * cut->rows,
                                    .in = {window->in[1], window->in[2]},
                                    .out = {window->out[1], window->out[2]},
                                    .pad = {window->pad_begin[1], window->pad_begin[2]}};
    }
    const int64_t phase = row / cut->phase_rows;
    const int64_t begin[2] = {phase / window->dilation[2], phase % window->dilation[2]};
    prn_winograd_place place = {.top = row % cut->phase_rows * cut->rows};
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
