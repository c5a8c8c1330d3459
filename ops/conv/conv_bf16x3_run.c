/* The run of the convolution by parts: tasks, strips, products (conv_bf16x3.c has the drawing). */
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/broadcast.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/conv/conv_kernels.h"
#include "ops/conv/conv_bf16x3_plan.h"

#include <math.h>
#include <string.h>

/* An input that is far enough from zero is split near its mean: with that, the largest operator error against float64
 * fell from 1.4e-5 to 8e-6 (resnet50). No measurement of the limits themselves is recorded. */
#define MOST_CENTER 1e30
#define LEAST_OFFSET (1.0 / 16.0) /* of the square of the mean to the mean square */

enum {
    MANY_ROWS = 160, /* whose sums do not stay in the first-level cache */
    SOME_LINES = 32
};

typedef struct job {
    const prn_conv_bf16x3_plan *state;
    prony_context rest; /* for the post-operations that are not part of the sum */
    prn_post_ops rest_ops;
    const float *x, *bias, *added; /* bias: zeros if the node has none */
    float low, high;               /* that sums are kept within */
    float *y;
    char *shared, *slots;
} job;

/* The work of one task. */
typedef struct strip {
    int64_t image, first_row, end_row, first_column, end_column;
    int64_t rows;            /* of tiles */
    float center;            /* that the input's elements are taken from, a bfloat16 */
    bool centered;           /* sums are those of the rest */
    uint16_t *parts, *panel; /* working space */
    float *sums;
    int64_t ready; /* the column whose first panel is in the half of `panel` that comes next; -1: none */
    int half;
} strip;

/* Zeros, as far as the center is above them. */
static void clear(const prn_conv_bf16x3_plan *s, const strip *strip, uint16_t *to, int64_t positions)
{
    const uint16_t zero = prn_f32_to_bf16(0.0f - strip->center);
    for (int64_t i = 0; i < positions * PRN_BF16X3_DEPTH; i++) to[i] = zero;
    for (int64_t p = 1; p < s->parts && positions > 0; p++)
        memset(to + p * (int64_t)(s->part_bytes / sizeof *to), 0, (size_t)positions * PRN_BF16X3_DEPTH * sizeof *to);
}

/* One row of one grid: padding, what the input has, padding. */
static bool split_row(const job *job, const strip *strip, int64_t block, int64_t y, int64_t remainder, uint16_t *to)
{
    const prn_conv_bf16x3_plan *s = job->state;
    const prn_conv *conv = &s->conv;
    const prn_window *window = &conv->window;
    const int64_t stride = window->stride[2], start = window->pad_begin[2] - remainder;
    int64_t first = start > 0 ? prn_ceil_div(start, stride) : 0, end = prn_ceil_div(window->in[2] + start, stride);
    if (end > s->pitch) end = s->pitch;
    if (y < 0 || y >= window->in[1] || end <= first) {
        clear(s, strip, to, s->pitch);
        return true;
    }
    const int64_t blocks = prn_conv_bf16x3_blocks(conv->in_channels), plane = conv->in_spatial * PRN_CONV_BF16X3_LANES;
    const float *from = job->x + (strip->image * blocks + 2 * block) * plane;
    from += (y * window->in[2] + first * stride - start) * PRN_CONV_BF16X3_LANES;
    clear(s, strip, to, first);
    clear(s, strip, to + end * PRN_BF16X3_DEPTH, s->pitch - end);
    const bool pair = 2 * block + 1 < blocks;
    if (s->parts == 2)
        return prn_bf16x3_rows_around(strip->center, from, pair ? from + plane : NULL, stride * PRN_CONV_BF16X3_LANES,
                                      end - first, to + first * PRN_BF16X3_DEPTH,
                                      (int64_t)(s->part_bytes / sizeof *to));
    return prn_bf16x3_rows(from, PRN_CONV_BF16X3_LANES, pair ? from + plane : NULL, pair ? PRN_CONV_BF16X3_LANES : 0,
                           stride * PRN_CONV_BF16X3_LANES, end - first, (int)s->parts, to + first * PRN_BF16X3_DEPTH,
                           (int64_t)(s->part_bytes / sizeof *to));
}

/* Of what the strip reads, 32 channels of one grid each: [unit, end). */
static bool split_units(const job *job, const strip *strip, int64_t unit, int64_t end)
{
    const prn_conv_bf16x3_plan *s = job->state;
    const prn_window *window = &s->conv.window;
    const int64_t rows = strip->end_row - strip->first_row + s->rows.reach;
    uint16_t *to = strip->parts + unit * s->positions * PRN_BF16X3_DEPTH;
    bool finite = true;
    for (; unit < end && !prn_cancelled(); unit++, to += s->positions * PRN_BF16X3_DEPTH) {
        const int64_t grid = unit / s->blocks, top = s->rows.remainder[grid / s->places.count] - window->pad_begin[1];
        for (int64_t r = 0; r < rows; r++)
            finite = split_row(job, strip, unit % s->blocks, (strip->first_row + r) * window->stride[1] + top,
                               s->places.remainder[grid % s->places.count], to + r * s->pitch * PRN_BF16X3_DEPTH) &&
                     finite;
        clear(s, strip, to + rows * s->pitch * PRN_BF16X3_DEPTH, s->positions - rows * s->pitch);
    }
    return finite;
}

/* Sums of 32 output channels, from the parts; weights are split a few steps ahead, also those of the next column.
 * false: weights have no parts. */
static bool conv_bf16x3_run_multiply(const prn_conv_bf16x3_plan *s, strip *strip, int64_t column)
{
    const int64_t steps_of_halves = strip->rows > MANY_ROWS ? PRN_BF16X3_MOST_STEPS : PRN_BF16X3_SOME_STEPS;
    const int64_t most = s->halves ? steps_of_halves / s->parts : PRN_CONV_BF16X3_STEPS;
    const float *weights = s->halves ? NULL : s->weights + column * prn_conv_bf16x3_panel(s);
    const uint16_t *halves = s->halves ? s->halves + column * prn_conv_bf16x3_panel(s) * s->parts : NULL;
    const bool last_column = column + 1 >= strip->end_column;
    prn_bf16x3_tiles tiles = {.a_part = (int64_t)(s->part_bytes / sizeof(uint16_t)),
                              .parts = (int)s->parts,
                              .rows = strip->rows,
                              .c = strip->sums,
                              .rs_c = PRN_BF16X3_COLUMNS,
                              .sums_row = PRN_BF16X3_COLUMNS,
                              .wide = s->conv.out_channels - column * PRN_BF16X3_COLUMNS > PRN_CONV_BF16X3_LANES};
    int64_t block = 0, at = 0, steps = prn_least(s->steps, most);
    if (weights && strip->ready != column &&
        !prn_bf16x3_panel(weights, steps * PRN_BF16X3_DEPTH, (int)s->parts,
                          strip->panel + strip->half * PRN_CONV_BF16X3_PANEL))
        return false;
    strip->ready = -1;
    for (int64_t step = 0; step < s->steps && !prn_cancelled(); step += tiles.steps) {
        tiles.steps = (int)steps;
        for (int i = 0; i < tiles.steps; i++) {
            const prn_bf16x3_tap *tap = &s->taps[at];
            tiles.a[i] =
                strip->parts + ((tap->grid * s->blocks + block) * s->positions + tap->shift) * PRN_BF16X3_DEPTH;
            if (++at < s->tap_count) continue;
            at = 0;
            block++;
        }
        steps = prn_least(s->steps - step - tiles.steps, most);
        tiles.sums = step > 0 ? strip->sums : NULL;
        if (halves) {
            tiles.b = halves;
            halves += tiles.steps * PRN_CONV_BF16X3_STEP * s->parts;
            tiles.ahead = (const char *)halves; /* behind the last column nothing is fetched that is read */
            tiles.ahead_bytes = (steps > 0 ? steps : prn_least(s->steps, most)) * s->parts * PRN_CONV_BF16X3_STEP *
                                (int64_t)sizeof *halves;
        } else {
            const int64_t ahead = steps > 0 ? steps : last_column ? 0 : prn_least(s->steps, most);
            weights += tiles.steps * PRN_CONV_BF16X3_STEP; /* columns lie one behind the other */
            tiles.b = strip->panel + strip->half * PRN_CONV_BF16X3_PANEL;
            strip->half = !strip->half;
            tiles.next = ahead > 0 ? weights : NULL;
            tiles.next_depths = ahead * PRN_BF16X3_DEPTH;
            tiles.next_b = strip->panel + strip->half * PRN_CONV_BF16X3_PANEL;
        }
        if (!prn_bf16x3_multiply(&tiles)) return false;
    }
    strip->ready = last_column ? -1 : column + 1;
    return true;
}

/* Channel i of the input, k of the output, in the step whose weights begin at element `from`. */
static float conv_bf16x3_run_weight_at(const prn_conv_bf16x3_plan *s, int64_t from, int64_t i, int64_t k)
{
    if (!s->halves) return s->weights[from + i * PRN_BF16X3_COLUMNS + k];
    const uint16_t *part =
        s->halves + from * s->parts + k / 16 * (PRN_CONV_BF16X3_STEP / 2) + i % 16 * 32 + k % 16 * 2 + i / 16;
    float weight = 0.0f;
    for (int64_t p = s->parts - 1; p >= 0; p--) weight += prn_bf16_to_f32(part[p * PRN_CONV_BF16X3_STEP]);
    return weight;
}

/* The same without parts: sums at one output position. */
static void plain_sums(const job *job, const strip *strip, int64_t column, int64_t row, int64_t place, float *sums)
{
    const prn_conv_bf16x3_plan *s = job->state;
    const prn_window *window = &s->conv.window;
    int64_t weights = column * prn_conv_bf16x3_panel(s);
    for (int k = 0; k < PRN_BF16X3_COLUMNS; k++) sums[k] = 0.0f;
    for (int64_t c = 0; c < s->blocks * PRN_BF16X3_DEPTH; c += PRN_BF16X3_DEPTH) {
        for (int64_t t = 0; t < s->tap_count; t++, weights += PRN_CONV_BF16X3_STEP) {
            const int64_t y =
                row * window->stride[1] - window->pad_begin[1] + t / window->kernel[2] * window->dilation[1];
            const int64_t x =
                place * window->stride[2] - window->pad_begin[2] + t % window->kernel[2] * window->dilation[2];
            if (y < 0 || y >= window->in[1] || x < 0 || x >= window->in[2]) continue;
            for (int64_t i = 0; i < PRN_BF16X3_DEPTH && c + i < s->conv.in_channels; i++) {
                const int64_t block =
                    strip->image * prn_conv_bf16x3_blocks(s->conv.in_channels) + (c + i) / PRN_CONV_BF16X3_LANES;
                const float value =
                    job->x[(block * s->conv.in_spatial + y * window->in[2] + x) * PRN_CONV_BF16X3_LANES +
                           (c + i) % PRN_CONV_BF16X3_LANES];
                for (int k = 0; k < PRN_BF16X3_COLUMNS; k++)
                    sums[k] += value * conv_bf16x3_run_weight_at(s, weights, i, k);
            }
        }
    }
}

static void conv_bf16x3_run_plain(const job *job, const strip *strip, int64_t column)
{
    const prn_conv_bf16x3_plan *s = job->state;
    const int64_t width = s->conv.window.out[2];
    for (int64_t row = strip->first_row; row < strip->end_row; row++) {
        for (int64_t place = 0; place < width && !prn_cancelled(); place++)
            plain_sums(job, strip, column, row, place,
                       strip->sums + ((row - strip->first_row) * s->pitch + place) * PRN_BF16X3_COLUMNS);
    }
}

/* Sums to the output, what is added to them, and the post-operations. */
static void conv_bf16x3_run_store(const job *job, const strip *strip, int64_t column)
{
    const prn_conv_bf16x3_plan *s = job->state;
    const prn_conv *conv = &s->conv;
    const int64_t blocks = prn_conv_bf16x3_blocks(conv->out_channels), width = conv->window.out[2];
    for (int64_t b = 2 * column; b < blocks && b < 2 * column + 2; b++) {
        const int64_t plane = (strip->image * blocks + b) * conv->out_spatial;
        const float *sums = strip->sums + b % 2 * PRN_CONV_BF16X3_LANES;
        float bias[PRN_CONV_BF16X3_LANES];
        for (int i = 0; i < PRN_CONV_BF16X3_LANES; i++) {
            const int64_t k = b * PRN_CONV_BF16X3_LANES + i;
            bias[i] =
                job->bias[k] + (strip->centered && strip->center != 0.0f ? strip->center * s->weight_sums[k] : 0.0f);
        }
        for (int64_t row = strip->first_row; row < strip->end_row; row++, sums += s->pitch * PRN_BF16X3_COLUMNS) {
            const int64_t at = (plane + row * width) * PRN_CONV_BF16X3_LANES;
            prn_bf16x3_store(sums, width, bias, job->added ? job->added + at : NULL, job->low, job->high, job->y + at);
        }
        const int64_t first = (plane + strip->first_row * width) * PRN_CONV_BF16X3_LANES;
        if (job->rest_ops.count)
            prn_post_ops_apply_vec(&job->rest, job->y + first, first,
                                   (strip->end_row - strip->first_row) * width * PRN_CONV_BF16X3_LANES);
    }
}

/* About the mean of an image, of some of its elements. Sums of two parts leave out some of what each factor is; where
 * inputs are all about as large, as they are behind a MaxPool, and a bias takes most of their sum away again, that
 * would be large beside the output. Inputs around 0 keep their own digits: 0 is their center. */
static float center_of(const job *job, int64_t image)
{
    const prn_conv *conv = &job->state->conv;
    const int64_t lines = conv->in_channels / PRN_CONV_BF16X3_LANES * conv->in_spatial,
                  some = prn_least(lines, SOME_LINES);
    const float *x = job->x + image * lines * PRN_CONV_BF16X3_LANES;
    double sum = 0, squares = 0;
    for (int64_t line = 0; line < some; line++) {
        const float *at = x + line * lines / some * PRN_CONV_BF16X3_LANES;
        float of_line = 0.0f, squares_of_line = 0.0f;
        for (int i = 0; i < PRN_CONV_BF16X3_LANES; i++) of_line += at[i], squares_of_line += at[i] * at[i];
        sum += (double)of_line;
        squares += (double)squares_of_line;
    }
    const double count = (double)(some * PRN_CONV_BF16X3_LANES), mean = sum / count;
    return fabs(mean) < MOST_CENTER && mean * mean * count >= LEAST_OFFSET * squares
               ? prn_bf16_to_f32(prn_f32_to_bf16((float)mean))
               : 0.0f; /* NaN: 0 */
}

/* Number `index` of all images' strips. */
static strip strip_at(const job *job, int64_t index)
{
    const prn_conv_bf16x3_plan *s = job->state;
    strip strip = {.image = index / s->strips, .first_row = index % s->strips * s->strip_rows};
    strip.end_row = prn_least(strip.first_row + s->strip_rows, s->conv.window.out[1]);
    strip.rows = prn_conv_bf16x3_tile_rows(s, strip.end_row - strip.first_row);
    if (s->parts == 2) strip.center = center_of(job, strip.image);
    if (s->pieces)
        strip.parts = (uint16_t *)(void *)(job->shared + prn_conv_bf16x3_flag_bytes(s) +
                                           (size_t)(index * s->parts) * s->part_bytes);
    return strip;
}

static int64_t units_of(const prn_conv_bf16x3_plan *s)
{
    return s->rows.count * s->places.count * s->blocks;
}

static void split_piece(void *argument, int64_t task)
{
    const job *job = argument;
    const prn_conv_bf16x3_plan *s = job->state;
    const strip strip = strip_at(job, task / s->pieces);
    const int64_t piece = task % s->pieces, units = units_of(s);
    job->shared[task] = split_units(job, &strip, piece * units / s->pieces, (piece + 1) * units / s->pieces);
}

/* True if all that the strip reads has parts. */
static bool conv_bf16x3_run_has_parts(const job *job, int64_t index)
{
    const prn_conv_bf16x3_plan *s = job->state;
    for (int64_t piece = 0; piece < s->pieces; piece++) {
        if (!job->shared[index * s->pieces + piece]) return false;
    }
    return true;
}

static void conv_bf16x3_run_task(const job *job, int64_t task, char *bytes)
{
    const prn_conv_bf16x3_plan *s = job->state;
    const int64_t group = task % s->groups, index = task / s->groups;
    const int64_t columns = prn_ceil_div(s->conv.out_channels, PRN_BF16X3_COLUMNS);
    strip strip = strip_at(job, index);
    strip.first_column = group * s->group_columns;
    strip.end_column = prn_least(strip.first_column + s->group_columns, columns);
    strip.sums = (float *)bytes;
    strip.ready = -1;
    strip.half = 0;
    strip.panel = (uint16_t *)(bytes + s->sums_bytes);
    if (!s->pieces) strip.parts = (uint16_t *)(bytes + s->sums_bytes + s->panel_bytes);
    const bool finite = s->pieces ? conv_bf16x3_run_has_parts(job, index) : split_units(job, &strip, 0, units_of(s));
    prn_bf16x3_begin();
    for (int64_t column = strip.first_column; column < strip.end_column && !prn_cancelled(); column++) {
        strip.centered = finite && conv_bf16x3_run_multiply(s, &strip, column);
        if (!strip.centered) conv_bf16x3_run_plain(job, &strip, column);
        conv_bf16x3_run_store(job, &strip, column);
    }
    prn_bf16x3_end();
}

static void conv_bf16x3_run_slot(void *argument, prn_slot *slot)
{
    const job *job = argument;
    for (int64_t task; (task = prn_slot_next(slot)) >= 0;)
        conv_bf16x3_run_task(job, task, job->slots + slot->index * (int64_t)job->state->slot_bytes);
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

prony_status prn_conv_bf16x3_run(const prony_context *context)
{
    const prn_conv_bf16x3_plan *s = context->state;
    job job = {.state = s, .x = context->inputs[0]->data, .y = context->outputs[0]->data, .shared = context->scratch};
    job.slots = job.shared + s->shared_bytes;
    job.bias = s->bias;
    sort_post_ops(context, &job);
    if (s->pieces) prn_parallel_tasks(context->threads, s->conv.batch * s->strips * s->pieces, split_piece, &job);
    prn_parallel_slots(context->threads, s->slots, s->conv.batch * s->strips * s->groups, conv_bf16x3_run_slot, &job);
    prn_clear_spoiled_padding(context, context->outputs[0]);
    return PRONY_OK;
}
