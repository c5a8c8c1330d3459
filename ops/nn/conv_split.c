/* conv_fast_amx, conv_bf16_amx: convolution on layouts in blocks of 16 channels, by products of parts (ops/loops/split_product.h).
 *
 *     task = one image, a strip of output rows, a range of 32 output channels each
 *
 * A task first splits what its strip reads into parts, padding included, positions in a line:
 *
 *        | . . . . . . . |        a row of the grid has `pitch` positions: zeros on its right are those on the next row's left
 *      0 | x x x x x x x | 0
 *      0 | x x x x x x x | 0      output position o of the line meets tap t at position o + shift(t), also where rows end: the
 *        | . . . . . . . |        few sums in between are computed and dropped
 *
 * With strides there is a grid for every remainder of the taps' places, in which steps are of one position. So each tap is
 * a matrix of consecutive rows in every case. Weights are in the order [32 output channels][32 input channels][tap], and stored as one
 * or two parts, as tiles read them; of three they would take more memory than float32 does, which each task splits step by step
 * then. Each thread has working space of its own.
 *
 * Invariant: tasks depend on the problem alone; each output is summed in one order. A task that meets an infinity or NaN
 * computes by plain sums. */
#include "ops/nn/conv_split.h"

#include "base/alloc.h"
#include "base/integers.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "ops/loops/conv_problem.h"
#include "ops/loops/number.h"
#include "ops/loops/post_ops_vec.h"
#include "ops/loops/split_product.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    LANES = 16,             /* channels of a block of the layout */
    MOST_TAPS = 256,
    MOST_REACH = 4096, /* of the kernel along an axis */
    MOST_EXTENT = 1 << 24,
    STRIP_BYTES = 640 << 10,   /* of parts: they stay in the second-level cache */
    LARGE_STRIP_BYTES = 3 << 19, /* where those would be few rows, for each of which all weights are split */
    MOST_STRIP_BYTES = 4 << 20,
    STRIP_ROWS = 1024,      /* of tiles: their sums stay there, too */
    WANTED_TASKS = 8,
    TASK_WORK = 6000000,    /* multiply-adds */
    LEAST_WORK = 1000000,
    LEAST_ROWS = 96,        /* of tiles in a strip that is cut for threads: weights are split for each */
    LEAST_COLUMNS = 128     /* products for each part of the input: the strip is split for each */
};

typedef struct tap {
    int64_t grid, shift; /* which grid; positions from an output's own */
} tap;

/* The remainders of the taps' places along one axis. */
typedef struct grids {
    int64_t count, remainder[MOST_TAPS];
    int64_t reach; /* steps from the first to the last place in a grid */
} grids;

typedef struct conv_state {
    prn_conv conv;
    const float *weights;   /* packed; NULL: halves */
    const uint16_t *halves; /* the same as prn_split_panel makes it, of one or two parts */
    int64_t parts;
    int64_t steps, blocks;  /* of 32 input channels */
    grids rows, places;
    int64_t pitch, positions; /* of a row; of a grid of a whole strip */
    int64_t strip_rows, strips, group_columns, groups; /* output rows; 32 output channels each */
    int64_t slots;
    size_t part_bytes, panel_bytes, sums_bytes, slot_bytes;
    float *bias; /* of every output channel; behind the taps */
    int64_t tap_count;
    tap taps[];
} conv_state;

/* ---- geometry */

static void fill_grids(const prn_window *window, int axis, grids *out)
{
    out->count = out->reach = 0;
    for (int64_t k = 0; k < window->kernel[axis]; k++) {
        int64_t place = k * window->dilation[axis], i = 0;
        while (i < out->count && out->remainder[i] != place % window->stride[axis]) i++;
        if (i == out->count) out->remainder[out->count++] = place % window->stride[axis];
        if (place / window->stride[axis] > out->reach) out->reach = place / window->stride[axis];
    }
}

/* Positions of a row of the grids, as few as the padding between two rows allows. */
static int64_t find_pitch(const prn_window *window, const grids *places)
{
    const int64_t stride = window->stride[2], left = window->pad_begin[2];
    int64_t lowest = places->remainder[0], highest = lowest;
    for (int64_t i = 1; i < places->count; i++) {
        if (places->remainder[i] < lowest) lowest = places->remainder[i];
        if (places->remainder[i] > highest) highest = places->remainder[i];
    }
    for (int64_t shared = places->reach; shared > 0; shared--) {
        const int64_t pitch = window->out[2] + places->reach - shared;
        if ((shared - 1) * stride + highest - left < 0 && pitch * stride + lowest - left >= window->in[2]) return pitch;
    }
    return window->out[2] + places->reach;
}

/* Rows of tiles for so many rows of output. */
static int64_t tile_rows(const conv_state *s, int64_t rows)
{
    return prn_ceil_div((rows - 1) * s->pitch + s->conv.window.out[2], PRN_SPLIT_ROWS) * PRN_SPLIT_ROWS;
}

static int64_t grid_positions(const conv_state *s, int64_t rows)
{
    return tile_rows(s, rows) + s->rows.reach * s->pitch + s->places.reach;
}

static double strip_bytes(const conv_state *s, int64_t rows)
{
    return (double)grid_positions(s, rows) * (double)(s->rows.count * s->places.count * s->blocks * s->parts) * PRN_SPLIT_DEPTH *
           sizeof(uint16_t);
}

static bool strip_fits(const conv_state *s, int64_t rows)
{
    const int64_t of_tiles = tile_rows(s, rows);
    return strip_bytes(s, rows) <= (of_tiles <= LEAST_ROWS ? LARGE_STRIP_BYTES : STRIP_BYTES) && of_tiles <= STRIP_ROWS;
}

/* The most rows, of `most`, of a strip that fits; 1 if none does. */
static int64_t rows_that_fit(const conv_state *s, int64_t most)
{
    int64_t fitting = 1;
    while (fitting < most) {
        const int64_t middle = fitting + (most - fitting + 1) / 2;
        if (strip_fits(s, middle))
            fitting = middle;
        else
            most = middle - 1;
    }
    return fitting;
}

/* Strips of as many rows as fit, then of fewer, then ranges of channels, until there are tasks enough. */
static void cut(conv_state *s)
{
    const prn_conv *conv = &s->conv;
    const int64_t height = conv->window.out[1], columns = prn_ceil_div(conv->out_channels, PRN_SPLIT_COLUMNS);
    int64_t rows = rows_that_fit(s, height);
    const double work = prn_conv_image_work(conv) / TASK_WORK;
    const int64_t wanted = prn_ceil_div(work < WANTED_TASKS ? (int64_t)work + 1 : WANTED_TASKS, conv->batch);
    for (; rows > 1 && prn_ceil_div(height, rows) < wanted && tile_rows(s, rows - 1) >= LEAST_ROWS; rows--) {
    }
    s->strips = prn_ceil_div(height, rows);
    s->strip_rows = prn_ceil_div(height, s->strips);
    s->strips = prn_ceil_div(height, s->strip_rows);
    int64_t groups = prn_ceil_div(wanted, s->strips);
    const int64_t fewest = prn_ceil_div(LEAST_COLUMNS, PRN_SPLIT_COLUMNS * conv->kernel_volume);
    if (groups > columns / fewest) groups = columns / fewest;
    s->group_columns = prn_ceil_div(columns, groups < 1 ? 1 : groups);
    s->groups = prn_ceil_div(columns, s->group_columns);
    s->positions = grid_positions(s, s->strip_rows);
}

static void fill_taps(conv_state *s)
{
    const prn_window *window = &s->conv.window;
    tap *to = s->taps;
    for (int64_t ky = 0; ky < window->kernel[1]; ky++) {
        for (int64_t kx = 0; kx < window->kernel[2]; kx++, to++) {
            const int64_t y = ky * window->dilation[1], x = kx * window->dilation[2];
            int64_t row = 0, place = 0;
            while (s->rows.remainder[row] != y % window->stride[1]) row++;
            while (s->places.remainder[place] != x % window->stride[2]) place++;
            to->grid = row * s->places.count + place;
            to->shift = y / window->stride[1] * s->pitch + x / window->stride[2];
        }
    }
}

/* Working space of a thread. */
static void size_strip(conv_state *s)
{
    s->part_bytes = (size_t)(s->rows.count * s->places.count * s->blocks * s->positions) * PRN_SPLIT_DEPTH * sizeof(uint16_t);
    s->panel_bytes = 2 * (size_t)PRN_SPLIT_PANEL * sizeof(uint16_t);
    s->sums_bytes = (size_t)tile_rows(s, s->strip_rows) * PRN_SPLIT_COLUMNS * sizeof(float);
    s->slot_bytes = (size_t)s->parts * s->part_bytes + s->panel_bytes + s->sums_bytes;
}

/* All of the state but weights and taps. */
static void fill_state(conv_state *s, const prn_conv *conv, int parts, int threads)
{
    s->conv = *conv;
    s->parts = parts;
    s->blocks = prn_ceil_div(conv->in_channels, PRN_SPLIT_DEPTH);
    s->steps = s->blocks * conv->kernel_volume;
    s->tap_count = conv->kernel_volume;
    fill_grids(&conv->window, 1, &s->rows);
    fill_grids(&conv->window, 2, &s->places);
    s->pitch = find_pitch(&conv->window, &s->places);
    cut(s);
    s->slots = threads > 0 ? threads : 1;
    size_strip(s);
}

/* ---- what it can do */

static bool fits(const prony_context *context, const prn_conv *conv)
{
    const prn_window *window = &conv->window;
    if (!conv->weights->data || (conv->bias && !conv->bias->data)) return false;
    if (conv->groups != 1 || conv->in_channels % LANES || conv->out_channels % LANES) return false;
    if (!prn_conv_in_plane(conv) || conv->kernel_volume > MOST_TAPS) return false;
    if (conv->batch < 1 || conv->in_channels < 1 || conv->out_channels < 1 || conv->in_spatial < 1 || conv->out_spatial < 1)
        return false;
    for (int a = 1; a < PRN_WINDOW_AXES; a++)
        if (prn_window_reach(window, a) > MOST_REACH || window->in[a] > MOST_EXTENT || window->out[a] > MOST_EXTENT) return false;
    for (size_t i = 1; context->post_ops && i < context->post_ops->count; i++) {
        if (context->post_ops->op[i].kind == PRN_POST_ADD) return false;
    }
    return true;
}

bool prn_conv_split_usable(const prony_context *context)
{
    prn_conv conv;
    conv_state s;
    if (!prn_split_there() || prn_conv_read(context, &conv) != PRONY_OK || !fits(context, &conv)) return false;
    fill_state(&s, &conv, prn_split_parts(context->precision), 1);
    return strip_bytes(&s, s.strip_rows) <= MOST_STRIP_BYTES;
}

bool prn_conv_split_worth(const prony_context *context)
{
    prn_conv conv;
    return prn_conv_read(context, &conv) == PRONY_OK && prn_conv_image_work(&conv) * (double)conv.batch >= LEAST_WORK;
}

void prn_conv_split_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prn_post_ops *post_ops = context->post_ops;
    in[0] = out[0] = PRN_BLOCKED16;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD) in[post_ops->op[0].input] = PRN_BLOCKED16;
}

void prn_conv_split_facts(const prony_context *context, prony_cost *facts)
{
    const conv_state *s = context->state;
    prn_cost_fact(facts, "product_rows", s->conv.out_spatial);
    prn_cost_fact(facts, "product_columns", s->conv.out_channels);
    prn_cost_fact(facts, "product_depth", s->conv.in_channels * s->conv.kernel_volume);
    prn_cost_fact(facts, "tile_rows", PRN_SPLIT_ROWS);
    prn_cost_fact(facts, "tile_columns", PRN_SPLIT_COLUMNS);
    prn_cost_fact(facts, "bf16_products", prn_split_products((int)s->parts));
    if (s->halves) prn_cost_fact(facts, "weight_bits", 16 * s->parts);
    if (s->parts == PRN_SPLIT_PARTS && context->precision != PRONY_PRECISION_FP32) prn_cost_fact(facts, "stays_in_fp32", PRN_STAYS_RANGE);
}

/* ---- preparing */

static int64_t panel_elements(const conv_state *s)
{
    return s->steps * PRN_SPLIT_DEPTH * PRN_SPLIT_COLUMNS;
}

/* Weights of 32 channels by 32 channels of input, for one tap. */
static void fill_step(const prn_conv *conv, int64_t column, int64_t channel, int64_t tap, float *to)
{
    const float *weights = conv->weights->data;
    for (int64_t c = channel; c < channel + PRN_SPLIT_DEPTH; c++) {
        for (int64_t k = column; k < column + PRN_SPLIT_COLUMNS; k++)
            *to++ = c < conv->in_channels && k < conv->out_channels ? weights[(k * conv->in_channels + c) * conv->kernel_volume + tap]
                                                                    : 0.0f;
    }
}

typedef struct build_job {
    const conv_state *state;
    char *to;
    atomic_bool beyond; /* a weight has no parts */
} build_job;

enum { STEP_ELEMENTS = PRN_SPLIT_DEPTH * PRN_SPLIT_COLUMNS, HEADER_BYTES = 64 /* of halves: whether all weights have parts */ };

static void build_column(void *argument, int64_t column)
{
    build_job *job = argument;
    const conv_state *s = job->state;
    const bool halves = s->parts < PRN_SPLIT_PARTS;
    _Alignas(64) float floats[STEP_ELEMENTS];
    bool parts = true;
    for (int64_t step = 0; step < s->steps && !prn_stopped(); step++) {
        const int64_t at = (column * s->steps + step) * STEP_ELEMENTS, channel = step / s->tap_count * PRN_SPLIT_DEPTH;
        float *to = halves ? floats : (float *)(void *)job->to + at;
        fill_step(&s->conv, column * PRN_SPLIT_COLUMNS, channel, step % s->tap_count, to);
        if (halves) parts = prn_split_panel(floats, PRN_SPLIT_DEPTH, (int)s->parts, (uint16_t *)(void *)job->to + at * s->parts) && parts;
    }
    if (!parts) atomic_store_explicit(&job->beyond, true, memory_order_relaxed);
}

static prony_status build_weights(const prony_context *context, void *argument, void *packed)
{
    const conv_state *s = argument;
    const bool halves = s->parts < PRN_SPLIT_PARTS;
    build_job job = {.state = s, .to = (char *)packed + (halves ? HEADER_BYTES : 0)};
    atomic_init(&job.beyond, false);
    if (halves) memset(packed, 0, HEADER_BYTES);
    prn_parallel_tasks(context->threads, prn_ceil_div(s->conv.out_channels, PRN_SPLIT_COLUMNS), build_column, &job);
    if (halves) *(char *)packed = !atomic_load_explicit(&job.beyond, memory_order_relaxed);
    return PRONY_OK;
}

static prony_status pack_weights(const prony_context *context, conv_state *s)
{
    char tag[96];
    const void *packed = NULL;
    const prn_conv *conv = &s->conv;
    const bool halves = s->parts < PRN_SPLIT_PARTS;
    const int64_t elements = prn_ceil_div(conv->out_channels, PRN_SPLIT_COLUMNS) * panel_elements(s);
    const size_t bytes = halves ? HEADER_BYTES + 2 * (size_t)(elements * s->parts) : prony_dtype_bytes(PRONY_FLOAT32, elements);
    snprintf(tag, sizeof tag, "conv split %d: %lld x %lld x %lld", (int)s->parts, (long long)conv->out_channels,
             (long long)conv->in_channels, (long long)conv->kernel_volume);
    PRN_TRY(context->host->packed(context, conv->weights->data, tag, bytes, build_weights, s, &packed));
    if (!halves) {
        s->weights = packed;
        return PRONY_OK;
    }
    if (*(const char *)packed) {
        s->halves = (const uint16_t *)(const void *)((const char *)packed + HEADER_BYTES);
        return PRONY_OK;
    }
    s->parts = PRN_SPLIT_PARTS; /* stays float32 */
    size_strip(s);
    return pack_weights(context, s);
}

prony_status prn_conv_split_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    const size_t channels = (size_t)conv.out_channels;
    conv_state *s = prn_calloc(1, sizeof *s + (size_t)conv.kernel_volume * sizeof *s->taps + channels * sizeof *s->bias);
    if (!s) return prn_no_memory(context->error);
    fill_state(s, &conv, prn_split_parts(context->precision), context->threads);
    fill_taps(s);
    s->bias = (float *)(s->taps + s->tap_count);
    if (conv.bias) memcpy(s->bias, conv.bias->data, channels * sizeof *s->bias);
    prony_status status = pack_weights(context, s);
    if (status != PRONY_OK) {
        prn_free(s);
        return status;
    }
    out->state = s;
    out->scratch_bytes = (size_t)s->slots * s->slot_bytes;
    return PRONY_OK;
}

void prn_conv_split_release(void *state)
{
    prn_free(state);
}

/* ---- run */

typedef struct job {
    const conv_state *state;
    prony_context rest; /* for the post-operations that are not part of the sum */
    prn_post_ops rest_ops;
    const float *x, *bias, *added; /* bias: zeros where there is none */
    float low, high;               /* that sums are kept within */
    float *y;
    char *slots;
    atomic_llong next; /* task */
} job;

/* What one task works on. */
typedef struct strip {
    int64_t image, first_row, end_row, first_column, end_column;
    int64_t rows;              /* of tiles */
    uint16_t *parts, *panel;   /* working space */
    float *sums;
} strip;

static void clear(const conv_state *s, uint16_t *to, int64_t positions)
{
    for (int64_t p = 0; p < s->parts && positions > 0; p++)
        memset(to + p * (int64_t)(s->part_bytes / sizeof *to), 0, (size_t)positions * PRN_SPLIT_DEPTH * sizeof *to);
}

/* One row of one grid: padding, what the input has, padding. */
static bool split_row(const job *job, const strip *strip, int64_t block, int64_t y, int64_t remainder, uint16_t *to)
{
    const conv_state *s = job->state;
    const prn_conv *conv = &s->conv;
    const prn_window *window = &conv->window;
    const int64_t stride = window->stride[2], start = window->pad_begin[2] - remainder;
    int64_t first = start > 0 ? prn_ceil_div(start, stride) : 0, end = prn_ceil_div(window->in[2] + start, stride);
    if (end > s->pitch) end = s->pitch;
    if (y < 0 || y >= window->in[1] || end <= first) {
        clear(s, to, s->pitch);
        return true;
    }
    const int64_t blocks = conv->in_channels / LANES, plane = conv->in_spatial * LANES;
    const float *from = job->x + (strip->image * blocks + 2 * block) * plane;
    from += (y * window->in[2] + first * stride - start) * LANES;
    clear(s, to, first);
    clear(s, to + end * PRN_SPLIT_DEPTH, s->pitch - end);
    const bool pair = 2 * block + 1 < blocks;
    return prn_split_rows(from, LANES, pair ? from + plane : NULL, pair ? LANES : 0, stride * LANES, end - first, (int)s->parts,
                          to + first * PRN_SPLIT_DEPTH, (int64_t)(s->part_bytes / sizeof *to));
}

/* All that the strip reads. */
static bool split_strip(const job *job, const strip *strip)
{
    const conv_state *s = job->state;
    const prn_window *window = &s->conv.window;
    const int64_t rows = strip->end_row - strip->first_row + s->rows.reach;
    uint16_t *to = strip->parts;
    bool finite = true;
    for (int64_t grid = 0; grid < s->rows.count * s->places.count; grid++) {
        const int64_t top = s->rows.remainder[grid / s->places.count] - window->pad_begin[1];
        for (int64_t b = 0; b < s->blocks && !prn_stopped(); b++, to += s->positions * PRN_SPLIT_DEPTH) {
            for (int64_t r = 0; r < rows; r++)
                finite = split_row(job, strip, b, (strip->first_row + r) * window->stride[1] + top,
                                   s->places.remainder[grid % s->places.count], to + r * s->pitch * PRN_SPLIT_DEPTH) &&
                         finite;
            clear(s, to + rows * s->pitch * PRN_SPLIT_DEPTH, s->positions - rows * s->pitch);
        }
    }
    return finite;
}

/* Sums of 32 output channels, from the parts; weights are split a few steps ahead. false: weights
 * have no parts. */
static bool multiply(const conv_state *s, const strip *strip, int64_t column)
{
    const int64_t most = s->halves ? PRN_SPLIT_MOST_STEPS / s->parts : PRN_SPLIT_STEPS;
    const float *weights = s->halves ? NULL : s->weights + column * panel_elements(s);
    const uint16_t *halves = s->halves ? s->halves + column * panel_elements(s) * s->parts : NULL;
    prn_split_tiles tiles = {.a_part = (int64_t)(s->part_bytes / sizeof(uint16_t)),
                             .parts = (int)s->parts,
                             .rows = strip->rows,
                             .c = strip->sums,
                             .c_row = PRN_SPLIT_COLUMNS,
                             .wide = s->conv.out_channels - column * PRN_SPLIT_COLUMNS > LANES};
    int64_t block = 0, at = 0, steps = prn_least(s->steps, most), half = 0;
    if (weights && !prn_split_panel(weights, steps * PRN_SPLIT_DEPTH, (int)s->parts, strip->panel)) return false;
    for (int64_t step = 0; step < s->steps && !prn_stopped(); step += tiles.steps, half = !half) {
        tiles.steps = (int)steps;
        for (int i = 0; i < tiles.steps; i++) {
            const tap *tap = &s->taps[at];
            tiles.a[i] = strip->parts + ((tap->grid * s->blocks + block) * s->positions + tap->shift) * PRN_SPLIT_DEPTH;
            if (++at < s->tap_count) continue;
            at = 0;
            block++;
        }
        steps = prn_least(s->steps - step - tiles.steps, most);
        tiles.add = step > 0;
        if (halves) {
            tiles.b = halves;
            halves += tiles.steps * STEP_ELEMENTS * s->parts;
            tiles.ahead = (const char *)halves; /* behind the last column nothing is fetched that is read */
            tiles.ahead_bytes = (steps > 0 ? steps : prn_least(s->steps, most)) * s->parts * STEP_ELEMENTS * (int64_t)sizeof *halves;
        } else {
            weights += tiles.steps * STEP_ELEMENTS;
            tiles.b = strip->panel + half * PRN_SPLIT_PANEL;
            tiles.next = steps > 0 ? weights : NULL;
            tiles.next_depths = steps * PRN_SPLIT_DEPTH;
            tiles.next_b = strip->panel + !half * PRN_SPLIT_PANEL;
        }
        if (!prn_split_multiply(&tiles)) return false;
    }
    return true;
}

/* Channel i of the input, k of the output, in the step whose weights begin at element `from`. */
static float weight_at(const conv_state *s, int64_t from, int64_t i, int64_t k)
{
    if (!s->halves) return s->weights[from + i * PRN_SPLIT_COLUMNS + k];
    const uint16_t *part = s->halves + from * s->parts + k / 16 * (STEP_ELEMENTS / 2) + i % 16 * 32 + k % 16 * 2 + i / 16;
    return prn_bf16_to_f32(part[0]) + (s->parts > 1 ? prn_bf16_to_f32(part[STEP_ELEMENTS]) : 0.0f);
}

/* The same without parts: sums at one output position. */
static void plain_sums(const job *job, const strip *strip, int64_t column, int64_t row, int64_t place, float *sums)
{
    const conv_state *s = job->state;
    const prn_window *window = &s->conv.window;
    int64_t weights = column * panel_elements(s);
    for (int k = 0; k < PRN_SPLIT_COLUMNS; k++) sums[k] = 0.0f;
    for (int64_t c = 0; c < s->blocks * PRN_SPLIT_DEPTH; c += PRN_SPLIT_DEPTH) {
        for (int64_t t = 0; t < s->tap_count; t++, weights += STEP_ELEMENTS) {
            const int64_t y = row * window->stride[1] - window->pad_begin[1] + t / window->kernel[2] * window->dilation[1];
            const int64_t x = place * window->stride[2] - window->pad_begin[2] + t % window->kernel[2] * window->dilation[2];
            if (y < 0 || y >= window->in[1] || x < 0 || x >= window->in[2]) continue;
            for (int64_t i = 0; i < PRN_SPLIT_DEPTH && c + i < s->conv.in_channels; i++) {
                const int64_t block = strip->image * (s->conv.in_channels / LANES) + (c + i) / LANES;
                const float value =
                    job->x[(block * s->conv.in_spatial + y * window->in[2] + x) * LANES + (c + i) % LANES];
                for (int k = 0; k < PRN_SPLIT_COLUMNS; k++) sums[k] += value * weight_at(s, weights, i, k);
            }
        }
    }
}

static void plain(const job *job, const strip *strip, int64_t column)
{
    const conv_state *s = job->state;
    const int64_t width = s->conv.window.out[2];
    for (int64_t row = strip->first_row; row < strip->end_row; row++) {
        for (int64_t place = 0; place < width && !prn_stopped(); place++)
            plain_sums(job, strip, column, row, place,
                       strip->sums + ((row - strip->first_row) * s->pitch + place) * PRN_SPLIT_COLUMNS);
    }
}

/* Sums to the output, what is added to them, and the post-operations. */
static void store(const job *job, const strip *strip, int64_t column)
{
    const conv_state *s = job->state;
    const prn_conv *conv = &s->conv;
    const int64_t blocks = conv->out_channels / LANES, width = conv->window.out[2];
    for (int64_t b = 2 * column; b < blocks && b < 2 * column + 2; b++) {
        const int64_t plane = (strip->image * blocks + b) * conv->out_spatial;
        const float *sums = strip->sums + b % 2 * LANES;
        for (int64_t row = strip->first_row; row < strip->end_row; row++, sums += s->pitch * PRN_SPLIT_COLUMNS) {
            const int64_t at = (plane + row * width) * LANES;
            prn_split_store(sums, width, job->bias + b * LANES, job->added ? job->added + at : NULL, job->low, job->high, job->y + at);
        }
        const int64_t first = (plane + strip->first_row * width) * LANES;
        if (job->rest_ops.count)
            prn_post_ops_apply_vec(&job->rest, job->y + first, first, (strip->end_row - strip->first_row) * width * LANES);
    }
}

static void run_task(const job *job, int64_t task, char *bytes)
{
    const conv_state *s = job->state;
    const int64_t group = task % s->groups, index = task / s->groups % s->strips;
    strip strip = {.image = task / s->groups / s->strips,
                   .first_row = index * s->strip_rows,
                   .end_row = (index + 1) * s->strip_rows,
                   .first_column = group * s->group_columns,
                   .end_column = (group + 1) * s->group_columns};
    const int64_t columns = prn_ceil_div(s->conv.out_channels, PRN_SPLIT_COLUMNS);
    if (strip.end_row > s->conv.window.out[1]) strip.end_row = s->conv.window.out[1];
    if (strip.end_column > columns) strip.end_column = columns;
    strip.rows = tile_rows(s, strip.end_row - strip.first_row);
    strip.sums = (float *)bytes;
    strip.panel = (uint16_t *)(bytes + s->sums_bytes);
    strip.parts = (uint16_t *)(bytes + s->sums_bytes + s->panel_bytes);
    const bool finite = split_strip(job, &strip);
    prn_split_begin();
    for (int64_t column = strip.first_column; column < strip.end_column && !prn_stopped(); column++) {
        if (!finite || !multiply(s, &strip, column)) plain(job, &strip, column);
        store(job, &strip, column);
    }
    prn_split_end();
}

/* Whoever has working space takes tasks as long as there are any. */
static void run_slot(void *argument, int64_t slot)
{
    job *job = argument;
    const conv_state *s = job->state;
    const int64_t tasks = s->conv.batch * s->strips * s->groups;
    int64_t task;
    while ((task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < tasks && !prn_stopped())
        run_task(job, task, job->slots + slot * (int64_t)s->slot_bytes);
}

/* A residual that is added first becomes part of the sum, and a clamp behind that its end; what is left are maps. */
static void sort_post_ops(const prony_context *context, job *job)
{
    const prn_post_ops *post_ops = context->post_ops;
    job->rest = *context;
    job->rest.post_ops = &job->rest_ops;
    size_t i = 0, count = post_ops ? post_ops->count : 0;
    job->low = -INFINITY;
    job->high = INFINITY;
    if (i < count && post_ops->op[i].kind == PRN_POST_ADD) job->added = context->inputs[post_ops->op[i++].input]->data;
    if (i < count && post_ops->op[i].kind == PRN_POST_RELU) {
        job->low = 0.0f;
        i++;
    } else if (i < count && post_ops->op[i].kind == PRN_POST_CLIP) {
        job->low = post_ops->op[i].a;
        job->high = post_ops->op[i++].b;
    }
    while (i < count) job->rest_ops.op[job->rest_ops.count++] = post_ops->op[i++];
}

prony_status prn_conv_split_run(const prony_context *context)
{
    const conv_state *s = context->state;
    job job = {.state = s, .x = context->inputs[0]->data, .y = context->outputs[0]->data, .slots = context->scratch};
    job.bias = s->bias;
    sort_post_ops(context, &job);
    atomic_init(&job.next, 0);
    prn_parallel_tasks(context->threads, s->slots, run_slot, &job);
    return PRONY_OK;
}
