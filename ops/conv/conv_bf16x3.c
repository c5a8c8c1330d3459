/* conv_fast_amx, conv_bf16_dot, conv_f32_amx: convolution on layouts in blocks of 16 channels, by products of parts
 * (ops/kernels/gemm/bf16x3_product.h).
 *
 *     task = one image, a strip of output rows, a range of 32 output channels each
 *
 * A task first splits what its strip reads into parts, padding included, positions in a line:
 *
 *        | . . . . . . . |        a row of the grid has `pitch` positions: zeros on its right are those on the next
 *      0 | x x x x x x x | 0      row's left
 *      0 | x x x x x x x | 0      output position o of the line meets tap t at position o + shift(t), also where rows
 *        | . . . . . . . |        end: the few sums in between are computed and dropped
 *
 * With strides there is a grid for every remainder of the taps' places, in which steps are of one position. So each tap
 * is a matrix of consecutive rows in every case. A strip that several tasks share, for ranges of channels, is
 * split before they start. Weights are in the order [32 output channels][32 input channels][tap], and stored as their
 * parts, as tiles read them; if one of them has no parts as float32, which each task splits step by step. Each thread
 * has working space of its own.
 *
 * Invariant: tasks depend on the problem alone; each output is summed in one order. A task that meets an infinity or
 * NaN computes by plain sums. */
#include "ops/conv/conv_kernels.h"

#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/conv/conv_bf16x3_plan.h"
#include "ops/conv/conv_cost_model.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Strips and tasks (STRIP_BYTES to PIECES) came with the kernel for AMX and follow from cache sizes; no measurement
 * of single values is recorded. */
enum {
    MOST_REACH = 4096, /* of the kernel along an axis */
    MOST_EXTENT = 1 << 24,
    STRIP_BYTES = 640 << 10,     /* of parts: they stay in the second-level cache */
    LARGE_STRIP_BYTES = 3 << 19, /* where those would be few rows, for each of which all weights are split */
    MOST_STRIP_BYTES = 4 << 20,
    STRIP_ROWS = 1024, /* of tiles: their sums stay there, too */
    WANTED_TASKS = 8,
    TASK_WORK = 6000000, /* multiply-adds */
    POINTWISE_TASK_WORK = 2500000,
    POINTWISE_LEAST_COLUMNS = 64, /* of a task, where the strip is split ahead of it */
    LEAST_ROWS = 96,              /* of tiles in a strip that is cut for threads: weights are split for each */
    LEAST_COLUMNS = 128,          /* products for each part of the input: each reads the strip */
    MOST_SHARED_BYTES = 16 << 20,
    PIECES = 8
};

/* ---- geometry */

static void fill_grids(const prn_window *window, int axis, prn_bf16x3_grids *out)
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
static int64_t find_pitch(const prn_window *window, const prn_bf16x3_grids *places)
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

static int64_t grid_positions(const prn_conv_bf16x3_plan *s, int64_t rows)
{
    return prn_conv_bf16x3_tile_rows(s, rows) + s->rows.reach * s->pitch + s->places.reach;
}

static double strip_bytes(const prn_conv_bf16x3_plan *s, int64_t rows)
{
    return (double)grid_positions(s, rows) * (double)(s->rows.count * s->places.count * s->blocks * s->parts) *
           PRN_BF16X3_DEPTH * sizeof(uint16_t);
}

static bool strip_fits(const prn_conv_bf16x3_plan *s, int64_t rows)
{
    const int64_t of_tiles = prn_conv_bf16x3_tile_rows(s, rows);
    return strip_bytes(s, rows) <= (of_tiles <= LEAST_ROWS ? LARGE_STRIP_BYTES : STRIP_BYTES) && of_tiles <= STRIP_ROWS;
}

/* The most rows, of `most`, of a strip that fits; 1 if none does. */
static int64_t rows_that_fit(const prn_conv_bf16x3_plan *s, int64_t most)
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
static void conv_bf16x3_choose_tiling(prn_conv_bf16x3_plan *s)
{
    const prn_conv *conv = &s->conv;
    const int64_t height = conv->window.out[1], columns = prn_ceil_div(conv->out_channels, PRN_BF16X3_COLUMNS);
    int64_t rows = rows_that_fit(s, height);
    const bool pointwise = s->parts == PRN_BF16X3_PARTS && conv->kernel_volume == 1;
    const double work = prn_conv_image_work(conv) / (pointwise ? POINTWISE_TASK_WORK : TASK_WORK);
    const int64_t wanted = prn_ceil_div(work < WANTED_TASKS ? (int64_t)work + 1 : WANTED_TASKS, conv->batch);
    const int64_t fewest =
        prn_ceil_div(pointwise ? POINTWISE_LEAST_COLUMNS : LEAST_COLUMNS, PRN_BF16X3_COLUMNS * conv->kernel_volume);
    const bool by_channels = pointwise && columns >= 2 * fewest;
    for (; rows > 1 && !by_channels && prn_ceil_div(height, rows) < wanted &&
           prn_conv_bf16x3_tile_rows(s, rows - 1) >= LEAST_ROWS;
         rows--) {
    }
    s->strips = prn_ceil_div(height, rows);
    s->strip_rows = prn_ceil_div(height, s->strips);
    s->strips = prn_ceil_div(height, s->strip_rows);
    int64_t groups = prn_ceil_div(wanted, s->strips);
    if (groups > columns / fewest) groups = columns / fewest;
    s->group_columns = prn_ceil_div(columns, groups < 1 ? 1 : groups);
    s->groups = prn_ceil_div(columns, s->group_columns);
    s->positions = grid_positions(s, s->strip_rows);
}

static void conv_bf16x3_fill_taps(prn_conv_bf16x3_plan *s)
{
    const prn_window *window = &s->conv.window;
    prn_bf16x3_tap *to = s->taps;
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
static void size_strip(prn_conv_bf16x3_plan *s)
{
    s->part_bytes =
        (size_t)(s->rows.count * s->places.count * s->blocks * s->positions) * PRN_BF16X3_DEPTH * sizeof(uint16_t);
    s->panel_bytes = 2 * (size_t)PRN_CONV_BF16X3_PANEL * sizeof(uint16_t);
    s->sums_bytes = (size_t)prn_conv_bf16x3_tile_rows(s, s->strip_rows) * PRN_BF16X3_COLUMNS * sizeof(float);
    s->slot_bytes = s->panel_bytes + s->sums_bytes;
    const double shared = (double)s->part_bytes * (double)(s->parts * s->conv.batch * s->strips);
    const int64_t units = s->rows.count * s->places.count * s->blocks;
    s->pieces = s->groups > 1 && shared <= MOST_SHARED_BYTES ? prn_least(units, PIECES) : 0;
    s->shared_bytes = s->pieces ? prn_conv_bf16x3_flag_bytes(s) + (size_t)shared : 0;
    if (!s->pieces) s->slot_bytes += (size_t)s->parts * s->part_bytes;
}

/* All of the state but weights and taps. */
static void conv_bf16x3_fill_state(prn_conv_bf16x3_plan *s, const prn_conv *conv, int parts, int threads)
{
    s->conv = *conv;
    s->parts = parts;
    s->blocks = prn_ceil_div(conv->in_channels, PRN_BF16X3_DEPTH);
    s->steps = s->blocks * conv->kernel_volume;
    s->tap_count = conv->kernel_volume;
    fill_grids(&conv->window, 1, &s->rows);
    fill_grids(&conv->window, 2, &s->places);
    s->pitch = find_pitch(&conv->window, &s->places);
    conv_bf16x3_choose_tiling(s);
    s->slots = threads > 0 ? threads : 1;
    size_strip(s);
}

/* ---- what it can do */

/* Whole blocks; as float32 any, as far as lanes beyond the last output channel stay zero. */
static bool channels_fit(const prony_context *context, const prn_conv *conv)
{
    if (context->precision != PRONY_PRECISION_FP32)
        return conv->in_channels % PRN_CONV_BF16X3_LANES == 0 && conv->out_channels % PRN_CONV_BF16X3_LANES == 0;
    return conv->out_channels % PRN_CONV_BF16X3_LANES == 0 || prn_post_ops_keep_zero(context->post_ops);
}

static bool conv_bf16x3_fits(const prony_context *context, const prn_conv *conv)
{
    const prn_window *window = &conv->window;
    if (!conv->weights->data || (conv->bias && !conv->bias->data)) return false;
    if (conv->groups != 1 || !channels_fit(context, conv)) return false;
    if (!prn_conv_in_plane(conv) || conv->kernel_volume > PRN_CONV_BF16X3_MOST_TAPS) return false;
    if (conv->batch < 1 || conv->in_channels < 1 || conv->out_channels < 1 || conv->in_spatial < 1 ||
        conv->out_spatial < 1)
        return false;
    for (int a = 1; a < PRN_WINDOW_AXES; a++)
        if (prn_window_reach(window, a) > MOST_REACH || window->in[a] > MOST_EXTENT || window->out[a] > MOST_EXTENT)
            return false;
    for (size_t i = 1; context->post_ops && i < context->post_ops->count; i++) {
        if (context->post_ops->op[i].kind == PRN_POST_ADD) return false;
    }
    return true;
}

bool prn_conv_bf16x3_supported(const prony_context *context)
{
    prn_conv conv;
    prn_conv_bf16x3_plan s;
    if (!prn_bf16x3_there(prn_bf16x3_parts(context->precision)) || prn_conv_read(context, &conv) != PRONY_OK ||
        !conv_bf16x3_fits(context, &conv))
        return false;
    conv_bf16x3_fill_state(&s, &conv, prn_bf16x3_parts(context->precision), 1);
    return strip_bytes(&s, s.strip_rows) <= MOST_STRIP_BYTES;
}

double prn_conv_bf16x3_predict(const prony_context *context)
{
    prn_conv conv;
    prn_conv_bf16x3_plan s;
    const int parts = prn_bf16x3_parts(context->precision);
    if (!prn_bf16x3_there(parts) || prn_conv_read(context, &conv) != PRONY_OK || !conv_bf16x3_fits(context, &conv))
        return INFINITY;
    conv_bf16x3_fill_state(&s, &conv, parts, 1);
    return prn_conv_bf16x3_cycles(context, &conv, s.group_columns);
}

void prn_conv_bf16x3_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prn_post_ops *post_ops = context->post_ops;
    in[0] = out[0] = PRN_BLOCKED16;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD) in[post_ops->op[0].input] = PRN_BLOCKED16;
}

void prn_conv_bf16x3_facts(const prony_context *context, prony_cost *facts)
{
    const prn_conv_bf16x3_plan *s = context->state;
    prn_conv_tile_facts(facts, s->conv.out_spatial, s->conv.out_channels, s->conv.in_channels * s->conv.kernel_volume,
                        PRN_BF16X3_ROWS, PRN_BF16X3_COLUMNS);
    prn_cost_fact(facts, "bf16_products", prn_bf16x3_products((int)s->parts));
    if (s->halves) prn_cost_fact(facts, "weight_bits", 16 * s->parts);
    if (s->beyond) prn_cost_fact(facts, "stays_in_fp32", PRN_STAYS_RANGE);
}

/* ---- preparing */

/* Weights of 32 channels by 32 channels of input, for one tap. */
static void fill_step(const prn_conv *conv, int64_t column, int64_t channel, int64_t tap, float *to)
{
    const float *weights = conv->weights->data;
    for (int64_t c = channel; c < channel + PRN_BF16X3_DEPTH; c++) {
        for (int64_t k = column; k < column + PRN_BF16X3_COLUMNS; k++)
            *to++ = c < conv->in_channels && k < conv->out_channels
                        ? weights[(k * conv->in_channels + c) * conv->kernel_volume + tap]
                        : 0.0f;
    }
}

typedef struct build_job {
    const prn_conv_bf16x3_plan *state;
    char *to;
    float *sums;
    atomic_bool beyond; /* a weight has no parts */
    atomic_bool coarse; /* two parts are too few */
} build_job;

enum {
    HEADER_BYTES =
        64 /* of halves: whether all weights have parts, and want three; sums of all output channels' weights follow */
};

static size_t sums_bytes(const prn_conv_bf16x3_plan *s)
{
    return (size_t)prn_ceil_div(s->conv.out_channels, PRN_BF16X3_COLUMNS) * PRN_BF16X3_COLUMNS * sizeof(float);
}

/* Packs one column of 32 output channels, as bf16 terms or as float32, and notes whether two terms represent every
 * weight. Tasks write disjoint columns; the flags only ever turn true. */
static void build_column(void *argument, int64_t column)
{
    build_job *job = argument;
    const prn_conv_bf16x3_plan *s = job->state;
    const bool halves = !s->beyond;
    _Alignas(64) float floats[PRN_CONV_BF16X3_STEP];
    double sums[PRN_BF16X3_COLUMNS] = {0};
    prn_bf16x3_digits digits = {0};
    bool parts = true;
    for (int64_t step = 0; step < s->steps && !prn_cancelled(); step++) {
        const int64_t at = (column * s->steps + step) * PRN_CONV_BF16X3_STEP,
                      channel = step / s->tap_count * PRN_BF16X3_DEPTH;
        float *to = halves ? floats : (float *)(void *)job->to + at;
        fill_step(&s->conv, column * PRN_BF16X3_COLUMNS, channel, step % s->tap_count, to);
        for (int64_t i = 0; i < PRN_CONV_BF16X3_STEP; i++) {
            sums[i % PRN_BF16X3_COLUMNS] += (double)to[i];
            prn_bf16x3_note(&digits, to[i], to[i] - prn_bf16_to_f32(prn_f32_to_bf16(to[i])));
        }
        if (halves)
            parts = prn_bf16x3_panel(floats, PRN_BF16X3_DEPTH, (int)s->parts,
                                     (uint16_t *)(void *)job->to + at * s->parts) &&
                    parts;
    }
    for (int64_t k = 0; k < PRN_BF16X3_COLUMNS && halves; k++)
        job->sums[column * PRN_BF16X3_COLUMNS + k] = (float)sums[k];
    if (!prn_bf16x3_two_will_do(&digits)) atomic_store_explicit(&job->coarse, true, memory_order_relaxed);
    if (!parts) atomic_store_explicit(&job->beyond, true, memory_order_relaxed);
}

static prony_status conv_bf16x3_build_weights(const prony_context *context, void *argument, void *packed)
{
    const prn_conv_bf16x3_plan *s = argument;
    const bool halves = !s->beyond;
    build_job job = {.state = s, .to = packed};
    if (halves) {
        job.sums = (float *)(void *)(job.to + HEADER_BYTES);
        job.to += HEADER_BYTES + sums_bytes(s);
    }
    atomic_init(&job.beyond, false);
    atomic_init(&job.coarse, false);
    if (halves) memset(packed, 0, HEADER_BYTES);
    prn_parallel_tasks(context->threads, prn_ceil_div(s->conv.out_channels, PRN_BF16X3_COLUMNS), build_column, &job);
    if (halves) {
        ((char *)packed)[0] = !atomic_load_explicit(&job.beyond, memory_order_relaxed);
        ((char *)packed)[1] = s->parts == 2 && atomic_load_explicit(&job.coarse, memory_order_relaxed);
    }
    return PRONY_OK;
}

/* Finds the packed weights with the fewest terms that are exact enough: two, else three, else float32. Calls itself at
 * most twice, each time with a form that is more exact. */
static prony_status conv_bf16x3_pack_weights(const prony_context *context, prn_conv_bf16x3_plan *s)
{
    const void *packed = NULL;
    const prn_conv *conv = &s->conv;
    const bool halves = !s->beyond;
    const int64_t elements = prn_ceil_div(conv->out_channels, PRN_BF16X3_COLUMNS) * prn_conv_bf16x3_panel(s);
    const size_t bytes = halves ? HEADER_BYTES + sums_bytes(s) + 2 * (size_t)(elements * s->parts)
                                : prony_dtype_bytes(PRONY_FLOAT32, elements);
    const prn_pack_key key = {
        .build = conv_bf16x3_build_weights,
        .size = {halves ? s->parts : 0, conv->out_channels, conv->in_channels, conv->kernel_volume}};
    PRN_TRY(context->services->packed(context, conv->weights->data, &key, bytes, s, &packed));
    if (!halves) {
        s->weights = packed;
        return PRONY_OK;
    }
    if (((const char *)packed)[1]) { /* exact, at twice the products */
        s->parts = PRN_BF16X3_PARTS;
        size_strip(s);
        return conv_bf16x3_pack_weights(context, s);
    }
    if (((const char *)packed)[0]) {
        s->weight_sums = (const float *)(const void *)((const char *)packed + HEADER_BYTES);
        s->halves = (const uint16_t *)(const void *)((const char *)packed + HEADER_BYTES + sums_bytes(s));
        return PRONY_OK;
    }
    s->beyond = true;
    s->parts = PRN_BF16X3_PARTS;
    size_strip(s);
    return conv_bf16x3_pack_weights(context, s);
}

prony_status prn_conv_bf16x3_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    const size_t channels = (size_t)conv.out_channels,
                 lanes = (size_t)prn_conv_bf16x3_blocks(conv.out_channels) * PRN_CONV_BF16X3_LANES;
    prn_conv_bf16x3_plan *s =
        prn_calloc(1, sizeof *s + (size_t)conv.kernel_volume * sizeof *s->taps + lanes * sizeof *s->bias);
    if (!s) return prn_no_memory(context->error);
    conv_bf16x3_fill_state(s, &conv, prn_bf16x3_parts(context->precision), context->threads);
    conv_bf16x3_fill_taps(s);
    s->bias = (float *)(s->taps + s->tap_count);
    if (conv.bias) memcpy(s->bias, conv.bias->data, channels * sizeof *s->bias);
    prony_status status = conv_bf16x3_pack_weights(context, s);
    if (status != PRONY_OK) {
        prn_free(s);
        return status;
    }
    out->state = s;
    out->scratch_bytes = s->shared_bytes + (size_t)s->slots * s->slot_bytes;
    return PRONY_OK;
}
