/* prony::QConvTranspose with constant weights and parameters, codes with the channels last.
 *
 * Output positions of one phase, i stride + phase on each axis, are an ordinary convolution of stride 1: every
 * stride-th tap joins them with the input (more rarely where dilations share a divisor with the stride), and its taps
 * count down.
 *
 *   phase    0 1 0 1 0 1       stride 2, kernel 3: phase 0 has taps 2 and 0, phase 1 has tap 1
 *
 * Phases of the same windows are one part: the columns of its product are those of all of them, so that where the
 * kernel is as long as the stride the whole is one product of the input's positions where they lie. Each sum is made a
 * code in its place. A phase that no tap meets has the bias alone. The state is the parts: packed weights, which the
 * model owns, and a bias and a scale per column. */
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/quantized/qint8_windows.h"
#include "ops/quantized/int_conv.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PHASES = 64, MOST_PARTS = 64, AXES = PRN_WINDOW_AXES, ROWS_PER_FILL = 256 };

/* Phases of one axis that have the same windows. */
typedef struct axis_part {
    int64_t phase, phases;
    int64_t positions;         /* of each phase */
    int64_t taps;              /* 0: none */
    int64_t tap, tap_step;     /* the first one, of the first phase, and down to the next; phase + 1 has tap + 1 */
    int64_t input, input_step; /* where position 0 meets it, and up to the next */
} axis_part;

typedef struct part {
    axis_part axis[AXES];
    prn_conv conv; /* the phase */
    prn_qint8_gemm product;
    int32_t *bias;
    float *scale;
} part;

typedef struct state {
    prn_int_conv conv; /* the geometry; what it points at is not there any more */
    part *parts;
    int64_t count;
} state;

/* ---- parts of an axis */

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static axis_part part_of_phase(const prn_window *w, int a, int64_t phase)
{
    const int64_t stride = w->stride[a], dilation = w->dilation[a], divisor = common_divisor(stride, dilation);
    axis_part of = {.phase = phase,
                    .phases = 1,
                    .positions = prn_ceil_div(w->out[a] - phase, stride),
                    .tap_step = stride / divisor,
                    .input_step = dilation / divisor};
    for (int64_t t = w->kernel[a] - 1; t >= 0; t--) {
        const int64_t distance = phase + w->pad_begin[a] - t * dilation;
        if (distance % stride != 0) continue;
        if (of.taps++ > 0) continue;
        of.tap = t;
        of.input = distance / stride;
    }
    return of;
}

/* True if phase `next` continues the part. */
static bool continues(const axis_part *of, const axis_part *next)
{
    return of->positions == next->positions && of->taps == next->taps &&
           (of->taps == 0 || (of->input == next->input && of->tap + of->phases == next->tap));
}

/* Returns their number. */
static int64_t parts_of_axis(const prn_window *w, int a, axis_part parts[MOST_PHASES])
{
    int64_t count = 0;
    for (int64_t phase = 0; phase < w->stride[a] && phase < w->out[a]; phase++) {
        const axis_part next = part_of_phase(w, a, phase);
        if (count && continues(&parts[count - 1], &next)) {
            parts[count - 1].phases++;
        } else {
            parts[count++] = next;
        }
    }
    return count;
}

/* ---- which problems */

bool prn_qint8_conv_transpose_supported(const prony_context *context)
{
    prn_int_conv c;
    axis_part parts[MOST_PHASES];
    int64_t count = 1;
    if (!prn_qint8_conv_ready(context, &c)) return false;
    for (int a = 0; a < AXES; a++) {
        if (c.conv.window.stride[a] > MOST_PHASES) return false;
        count *= parts_of_axis(&c.conv.window, a, parts);
    }
    return count <= MOST_PARTS && (c.conv.groups == 1 || c.conv.group_out >= PRN_QINT8_LEAST_GROUP);
}

/* ---- preparing */

static int64_t phases_of(const part *p)
{
    return p->axis[0].phases * p->axis[1].phases * p->axis[2].phases;
}

/* The phase as a convolution: of its first phase, and in the place of others. */
static prn_conv qint8_conv_transpose_conv_of(const prn_conv *conv, const axis_part axis[AXES])
{
    prn_conv of = *conv;
    for (int a = 0; a < AXES; a++) {
        of.window.out[a] = axis[a].positions;
        of.window.kernel[a] = axis[a].taps;
        of.window.stride[a] = 1;
        of.window.dilation[a] = axis[a].taps > 1 ? axis[a].input_step : 1;
        of.window.pad_begin[a] = -axis[a].input;
        of.window.pad_end[a] = 0;
    }
    of.kernel_volume = prn_window_volume(of.window.kernel);
    of.out_spatial = prn_window_volume(of.window.out);
    return of;
}

/* Offsets of the weights of a part's columns and taps: tables of the columns, then of the taps. */
static int64_t *qint8_conv_transpose_places_of(const prn_conv *conv, const part *p)
{
    const int64_t *kernel = conv->window.kernel, columns = conv->groups * p->product.columns,
                  taps = p->conv.kernel_volume;
    const int64_t steps[AXES] = {kernel[1] * kernel[2], kernel[2], 1};
    int64_t *places = prn_alloc((size_t)(columns + taps) * sizeof *places);
    for (int64_t i = 0; places && i < columns; i++) {
        const int64_t group = i / p->product.columns, column = i % p->product.columns % conv->group_out;
        int64_t phase = i % p->product.columns / conv->group_out;
        places[i] = (group * conv->group_in * conv->group_out + column) * conv->kernel_volume;
        for (int a = AXES - 1; a >= 0; a--) {
            places[i] += (p->axis[a].tap + phase % p->axis[a].phases) * steps[a];
            phase /= p->axis[a].phases;
        }
    }
    for (int64_t i = 0; places && i < taps; i++) {
        int64_t tap = i;
        places[columns + i] = 0;
        for (int a = AXES - 1; a >= 0; a--) {
            places[columns + i] -= tap % p->axis[a].taps * p->axis[a].tap_step * steps[a];
            tap /= p->axis[a].taps;
        }
    }
    return places;
}

static prony_status pack_part(const prony_context *context, const prn_int_conv *c, part *p)
{
    const prn_conv *conv = &c->conv;
    int64_t *places = qint8_conv_transpose_places_of(conv, p);
    const int64_t columns = conv->groups * p->product.columns;
    if (!places) return prn_no_memory(context->error);
    const prn_qint8_weights weights = {.codes = c->w.data,
                                       .is_signed = c->w_type == PRONY_INT8,
                                       .groups = conv->groups,
                                       .columns = p->product.columns,
                                       .depth = p->product.depth,
                                       .inner = conv->group_in,
                                       .inner_step = conv->group_out * conv->kernel_volume,
                                       .column_at = places,
                                       .outer_at = places + columns,
                                       .table_entries = (size_t)(columns + p->product.depth / conv->group_in)};
    const prony_status status = prn_qint8_pack(context, &weights, &p->product.packed);
    if (status == PRONY_OK) prn_qint8_bias(&weights, &p->product.packed, prn_qint8_conv_zero(c), p->bias, p->bias);
    prn_free(places);
    return status;
}

static prony_status prepare_part(const prony_context *context, const prn_int_conv *c, part *p)
{
    const prn_conv *conv = &c->conv;
    p->conv = qint8_conv_transpose_conv_of(conv, p->axis);
    p->product = (prn_qint8_gemm){.rows = conv->batch * p->conv.out_spatial,
                                  .groups = conv->groups,
                                  .columns = conv->group_out * phases_of(p),
                                  .depth = conv->group_in * p->conv.kernel_volume,
                                  .rs_a = conv->in_channels};
    const size_t panels = (size_t)prn_qint8_panels(conv->groups * p->product.columns);
    p->bias = prn_calloc(panels * PRN_QINT8_COLUMNS, sizeof *p->bias);
    p->scale = prn_calloc(panels * PRN_QINT8_COLUMNS, sizeof *p->scale);
    if (!p->bias || !p->scale) return prn_no_memory(context->error);
    for (int64_t i = 0; i < conv->groups * p->product.columns; i++) {
        const int64_t channel = i / p->product.columns * conv->group_out + i % p->product.columns % conv->group_out;
        p->scale[i] = prn_int_conv_factor(c, channel);
        p->bias[i] = conv->bias ? ((const int32_t *)conv->bias->data)[channel] : 0;
    }
    p->product.finish = prn_qint8_conv_finish(c, p->bias, p->scale);
    return p->product.depth > 0 ? pack_part(context, c, p) : PRONY_OK;
}

void prn_qint8_conv_transpose_release(void *argument)
{
    state *s = argument;
    for (int64_t i = 0; s && i < s->count; i++) {
        prn_free(s->parts[i].bias);
        prn_free(s->parts[i].scale);
    }
    if (s) prn_free(s->parts);
    prn_free(s);
}

static prony_status qint8_conv_transpose_fill_state(const prony_context *context, const prn_int_conv *c, state *s,
                                                    size_t *scratch)
{
    axis_part axes[AXES][MOST_PHASES];
    int64_t count[AXES];
    for (int a = 0; a < AXES; a++) count[a] = parts_of_axis(&c->conv.window, a, axes[a]);
    s->count = prn_window_volume(count);
    s->parts = prn_calloc((size_t)s->count, sizeof *s->parts);
    if (!s->parts) {
        s->count = 0;
        return prn_no_memory(context->error);
    }
    for (int64_t i = 0; i < s->count; i++) {
        part *p = &s->parts[i];
        p->axis[0] = axes[0][i / (count[1] * count[2])];
        p->axis[1] = axes[1][i / count[2] % count[1]];
        p->axis[2] = axes[2][i % count[2]];
        PRN_TRY(prepare_part(context, c, p));
        const size_t bytes = prn_qint8_gemm_scratch(context->threads, &p->product);
        if (bytes > *scratch) *scratch = bytes;
    }
    return PRONY_OK;
}

prony_status prn_qint8_conv_transpose_prepare(const prony_context *context, prn_prepared *out)
{
    prn_int_conv c;
    size_t scratch = 0;
    PRN_TRY(prn_int_conv_describe(context, &c));
    state *s = prn_calloc(1, sizeof *s);
    if (!s) return prn_no_memory(context->error);
    const prony_status status = qint8_conv_transpose_fill_state(context, &c, s, &scratch);
    if (status != PRONY_OK) {
        prn_qint8_conv_transpose_release(s);
        return status;
    }
    c.conv.x = c.conv.weights = c.conv.bias = c.conv.y = c.out = NULL;
    s->conv = c;
    out->state = s;
    out->scratch_bytes = scratch;
    return PRONY_OK;
}

/* ---- running */

typedef struct part_run {
    const prn_conv *whole;
    const part *part;
    prn_qint8_windows windows;
    uint8_t *y;
} part_run;

static void fetch(const void *argument, int64_t group, int64_t row, int64_t rows, uint8_t *to, int64_t to_row)
{
    const part_run *run = argument;
    prn_qint8_windows_fetch(&run->windows, group, row, rows, to, to_row);
}

/* The offset in the output of position `row` of the part's first phase, less the channel. */
static uint8_t *qint8_conv_transpose_place_of(const part_run *run, int64_t row, const int64_t phase[AXES])
{
    const prn_conv *conv = &run->part->conv;
    const prn_window *whole = &run->whole->window;
    const int64_t image = row / conv->out_spatial, p = row % conv->out_spatial, *out = conv->window.out;
    const int64_t z = p / (out[1] * out[2]) * whole->stride[0] + phase[0];
    const int64_t y = p / out[2] % out[1] * whole->stride[1] + phase[1], x = p % out[2] * whole->stride[2] + phase[2];
    return run->y + (((image * whole->out[0] + z) * whole->out[1] + y) * whole->out[2] + x) * conv->out_channels;
}

/* Codes of columns that lie side by side in the output: `columns` from number `column` on of all groups'. */
static void store_run(const part_run *run, int64_t row, int64_t rows, int64_t column, int64_t columns,
                      const int32_t *sums)
{
    const part *p = run->part;
    const prn_conv *conv = &p->conv;
    const int64_t in_group = column % p->product.columns, number = in_group / conv->group_out;
    const int64_t channel = column / p->product.columns * conv->group_out + in_group % conv->group_out;
    const int64_t phase[AXES] = {
        p->axis[0].phase + number / (p->axis[1].phases * p->axis[2].phases),
        p->axis[1].phase + number / p->axis[2].phases % p->axis[1].phases,
        p->axis[2].phase + number % p->axis[2].phases,
    };
    const int64_t step = run->whole->window.stride[2] * conv->out_channels, width = conv->window.out[2],
                  end = row + rows;
    for (int64_t n; row < end; row += n, sums += n * PRN_QINT8_COLUMNS) {
        n = prn_least(width - row % width, end - row);
        run->windows.dot->finish(&p->product.finish, sums, n, column, columns,
                                 qint8_conv_transpose_place_of(run, row, phase) + channel, step, NULL, 0);
    }
}

/* Phases of a row and their channels lie side by side, those of groups alone. */
static void qint8_conv_transpose_store(const void *argument, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                       const int32_t *sums)
{
    const part_run *run = argument;
    const prn_conv *conv = &run->part->conv;
    const int64_t beside = conv->groups == 1 ? run->part->axis[2].phases * conv->group_out : conv->group_out;
    _Alignas(64) int32_t moved[PRN_QINT8_ROWS * PRN_QINT8_COLUMNS];
    for (int64_t at = 0, n; at < columns; at += n) {
        n = prn_least(beside - (column + at) % beside, columns - at);
        if (at) {
            for (int64_t r = 0; r < rows; r++)
                memcpy(moved + r * PRN_QINT8_COLUMNS, sums + r * PRN_QINT8_COLUMNS + at, (size_t)n * sizeof *sums);
        }
        store_run(run, row, rows, column + at, n, at ? moved : sums);
    }
}

/* Rows that no tap meets. */
static void fill_task(void *argument, int64_t task)
{
    const part_run *run = argument;
    const prn_qint8_gemm *product = &run->part->product;
    static const int32_t none[PRN_QINT8_ROWS * PRN_QINT8_COLUMNS] = {0};
    const int64_t columns = product->groups * product->columns;
    const int64_t end = prn_least((task + 1) * ROWS_PER_FILL, product->rows);
    for (int64_t row = task * ROWS_PER_FILL; row < end && !prn_cancelled(); row += PRN_QINT8_ROWS)
        for (int64_t column = 0; column < columns; column += PRN_QINT8_COLUMNS)
            qint8_conv_transpose_store(run, row, prn_least(PRN_QINT8_ROWS, end - row), column,
                                       prn_least(PRN_QINT8_COLUMNS, columns - column), none);
}

prony_status prn_qint8_conv_transpose_run(const prony_context *context)
{
    const state *s = context->state;
    const prn_int_conv *c = &s->conv;
    const uint8_t flip = c->x_type == PRONY_INT8 ? 128 : 0;
    const uint8_t *x = context->inputs[c->at->x]->data;
    for (int64_t i = 0; i < s->count && !prn_cancelled(); i++) {
        part_run run = {.whole = &c->conv, .part = &s->parts[i], .y = context->outputs[0]->data};
        prn_qint8_gemm product = run.part->product;
        if (product.depth == 0) {
            run.windows.dot = prn_qint8_dot_table();
            prn_parallel_tasks(context->threads, prn_ceil_div(product.rows, ROWS_PER_FILL), fill_task, &run);
            continue;
        }
        run.windows = prn_qint8_windows_make(&run.part->conv, x, flip, prn_qint8_conv_zero(c));
        product.a = prn_qint8_windows_lie(&run.windows) ? x : NULL;
        product.fetch = fetch;
        product.store = qint8_conv_transpose_store;
        product.argument = &run;
        prn_qint8_gemm_run(context->threads, &product, context->scratch, context->scratch_bytes);
    }
    return PRONY_OK;
}

/* Of the part with the most taps. */
void prn_qint8_conv_transpose_facts(const prony_context *context, prony_cost *facts)
{
    const state *s = context->state;
    const part *most = s ? s->parts : NULL;
    for (int64_t i = 1; s && i < s->count; i++)
        if (s->parts[i].product.depth > most->product.depth) most = &s->parts[i];
    if (most) prn_qint8_gemm_facts(&most->product, facts);
}
