/* conv_f32_winograd: 3 x 3 convolution in steps of one by Winograd's minimal filtering, on blocked layouts; also 1 x 3
 * x 3, plane by plane.
 *
 *     phase = outputs that lie a dilation apart, and what they read: a convolution without dilation
 *     batch = a rectangle of tiles of one image, whose transformed input stays in the second-level cache
 *     group = up to four output channel blocks
 *     task  = a batch and some groups:    v = transformed tiles;    for each group: m = v w, point by point; y = from m
 *
 * The transformed filters belong to the model: [group][point][input channel][block of the group][output lane], channels
 * in whole blocks: those that only fill one have filters of zeros. Of weights that convolutions of other extents read
 * as well the model keeps the direct kernel's form alone, from which each task transforms what it needs: else a
 * detector's heads, which read pyramids of images, would keep two or three times as many filters in as many forms.
 * Scratch is one slot [v][m] for each thread; the thread of a slot takes one task after the other (prn_parallel_slots),
 * and keeps v while the batch is the same. A residual that comes first may lie in the output. Invariant: batches,
 * groups and the order of every sum depend on the problem alone, so a result's bits do not depend on who computed
 * it. */
#include "ops/conv/conv_kernels.h"

#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/broadcast.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/conv/conv_direct_plan.h"
#include "ops/conv/conv_cost_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

PRN_SIMD_PICK(prn_winograd_simd, prn_winograd_simd_, static const prn_winograd_simd *conv_winograd_simd_table)

enum {
    LINE = 16, /* floats of a cache line */
    MOST_LANES = 16,
    TAPS = PRN_WINOGRAD_TAPS * PRN_WINOGRAD_TAPS,
    CACHED_WEIGHTS = 5120 /* floats that leave room for the tiles in the first-level cache */
};

static bool adds(const prn_post_ops *post_ops)
{
    for (size_t i = 0; post_ops && i < post_ops->count; i++)
        if (post_ops->op[i].kind == PRN_POST_ADD) return true;
    return false;
}

/* A weight that convolutions of other extents read as well is kept once, as the direct kernel has it. */
static bool conv_winograd_find_tiling(const prony_context *context, const prn_conv *conv, prn_winograd_tiling *cut)
{
    const prn_services *host = context->services;
    const bool direct = host && prn_conv_direct_supported(context);
    const bool shared = direct && host->serves_other_extents && host->serves_other_extents(context, 1);
    const uint64_t weights = direct && host->weight_bytes ? host->weight_bytes(context) : 0;
    const prn_winograd_filters filters = shared    ? PRN_WINOGRAD_IN_RUN
                                         : weights ? PRN_WINOGRAD_EITHER
                                                   : PRN_WINOGRAD_KEPT;
    return prn_winograd_tiling_best(conv, conv_winograd_simd_table(), filters, (double)(weights / sizeof(float)), cut);
}

/* True if the problem is one of this kernel's; its tiling. */
static bool takes(const prony_context *context, prn_winograd_tiling *cut)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    const prn_window *window = &conv.window;
    const int64_t lanes = conv_winograd_simd_table()->lanes;
    if (conv.groups != 1 || (conv.out_channels % lanes && !prn_post_ops_keep_zero(context->post_ops))) return false;
    if (!prn_conv_plane_by_plane(&conv) || window->out[0] < 1 || conv.batch < 1 || conv.in_channels < 1 ||
        conv.out_channels < 1)
        return false;
    for (int axis = 1; axis < PRN_WINDOW_AXES; axis++) {
        if (window->kernel[axis] != PRN_WINOGRAD_TAPS || window->stride[axis] != 1) return false;
        if (window->out[axis] < 1 || window->pad_begin[axis] > 2 * window->dilation[axis]) return false;
        /* More phases than outputs would be empty tiles. */
        if (window->dilation[axis] > window->out[axis] || (window->dilation[axis] > 1 && adds(context->post_ops)))
            return false;
    }
    return conv_winograd_find_tiling(context, &conv, cut);
}

bool prn_conv_winograd_supported(const prony_context *context)
{
    prn_winograd_tiling cut;
    return takes(context, &cut);
}

double prn_conv_winograd_predict(const prony_context *context)
{
    prn_winograd_tiling cut;
    if (!takes(context, &cut)) return INFINITY;
    return cut.cycles * (cut.u_point ? 1.0 : prn_winograd_filters_gain);
}

/* ---- weights */

/* Offsets of a slot's parts, in floats. A row of tiles is put together where a later residual may lie in the
 * output, and where its outputs lie a dilation apart. */
typedef struct slot {
    int64_t m, filters, row, total;
} slot;

/* The state. The data of conv.x and conv.y is found anew in every run. */
typedef struct winograd_plan {
    const prn_winograd_simd *simd;
    prn_conv conv;
    prn_winograd_tiling cut;
    slot slot;
    const float *packed; /* transformed filters; NULL: they are transformed in each run, from */
    const float *taps;   /* the direct kernel's form of the weights */
} winograd_plan;

/* The filters of output block `block`, whose input channels lie `width` floats apart. */
static void build_block(const winograd_plan *plan, int64_t block, float *to, int64_t width)
{
    const prn_conv *conv = &plan->conv;
    const int64_t lanes = plan->simd->lanes, inputs = plan->cut.in_blocks * lanes, row = conv->in_channels * TAPS;
    const int64_t outputs = prn_least(conv->out_channels - block * lanes, lanes);
    const float *weights = (const float *)conv->weights->data + block * lanes * row;
    float filled[MOST_LANES * TAPS] = {0};
    for (int64_t c = 0; c < inputs && !prn_cancelled_at(c); c++, to += width) {
        const bool whole = c < conv->in_channels && outputs == lanes;
        for (int64_t k = 0; k < outputs && !whole; k++) {
            if (c < conv->in_channels)
                memcpy(filled + k * TAPS, weights + k * row + c * TAPS, TAPS * sizeof(float));
            else
                memset(filled + k * TAPS, 0, TAPS * sizeof(float));
        }
        plan->simd->filters[plan->cut.kind](whole ? weights + c * TAPS : filled, whole ? row : TAPS, to,
                                            inputs * width);
    }
}

static prony_status conv_winograd_build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const winograd_plan *plan = argument;
    const prn_winograd_tiling *cut = &plan->cut;
    const int64_t lanes = plan->simd->lanes, inputs = cut->in_blocks * lanes;
    for (int64_t g = 0; g < cut->groups; g++) {
        const int64_t begin = prn_winograd_first_block(cut, g), end = prn_winograd_first_block(cut, g + 1);
        const int64_t width = (end - begin) * lanes;
        float *to = (float *)packed + begin * lanes * inputs * cut->points;
        for (int64_t b = begin; b < end && !prn_cancelled(); b++, to += lanes) build_block(plan, b, to, width);
    }
    return PRONY_OK;
}

static slot make_slot(const prony_context *context, const prn_conv *conv, const prn_winograd_tiling *cut)
{
    slot slot = {.m = cut->points * cut->v_point};
    slot.filters = slot.m + cut->points * cut->m_point;
    slot.row = slot.total = slot.filters + cut->points * cut->u_point;
    for (size_t i = 1; context->post_ops && i < context->post_ops->count; i++) {
        if (context->post_ops->op[i].kind == PRN_POST_ADD)
            slot.total = slot.row + cut->rows * conv->window.out[2] * conv_winograd_simd_table()->lanes;
    }
    if (cut->phases > 1)
        slot.total = slot.row + cut->rows * cut->tile_columns * cut->columns * conv_winograd_simd_table()->lanes;
    slot.total = prn_ceil_div(slot.total, LINE) * LINE;
    return slot;
}

static int64_t packed_floats(const winograd_plan *plan)
{
    const int64_t lanes = plan->simd->lanes;
    return plan->cut.in_blocks * lanes * plan->cut.blocks * lanes * plan->cut.points;
}

/* Groups of output blocks are the same in both kernels' forms. */
_Static_assert((int)PRN_WINOGRAD_MOST_BLOCKS == (int)PRN_DIRECT_MOST_BLOCKS,
               "a group of filters is one of the direct kernel's");

static prony_status pack_taps(const prony_context *context, winograd_plan *plan)
{
    prn_prepared direct = {0};
    PRN_TRY(prn_conv_direct_prepare(context, &direct));
    const prn_direct_state *state = direct.state;
    plan->taps = state->plans[0]->packed;
    prn_conv_direct_release(direct.state);
    return PRONY_OK;
}

static prony_status conv_winograd_pack(const prony_context *context, winograd_plan *plan)
{
    if (plan->cut.u_point) return pack_taps(context, plan);
    const void *packed;
    const prn_conv *conv = &plan->conv;
    const prn_winograd_tiling *cut = &plan->cut;
    const prn_pack_key key = {
        .build = conv_winograd_build_weights,
        .size = {plan->simd->lanes, conv->out_channels, conv->in_channels, cut->rows, cut->columns, cut->kind}};
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, packed_floats(plan));
    PRN_TRY(context->services->packed(context, conv->weights->data, &key, bytes, plan, &packed));
    plan->packed = packed;
    return PRONY_OK;
}

prony_status prn_conv_winograd_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    prn_winograd_tiling cut;
    PRN_TRY(prn_conv_read(context, &conv));
    if (!conv_winograd_find_tiling(context, &conv, &cut))
        return prony_fail(context, PRONY_INTERNAL, "no tiles for %lld input channels", (long long)conv.in_channels);
    winograd_plan *plan = prn_calloc(1, sizeof *plan);
    if (!plan) return prn_no_memory(context->error);
    *plan = (winograd_plan){
        .simd = conv_winograd_simd_table(), .conv = conv, .cut = cut, .slot = make_slot(context, &conv, &cut)};
    prony_status status = conv_winograd_pack(context, plan);
    if (status != PRONY_OK) {
        prn_free(plan);
        return status;
    }
    const int64_t threads = context->threads > 1 ? context->threads : 1;
    out->state = plan;
    out->scratch_bytes = (size_t)prn_least(cut.tasks, threads) * (size_t)plan->slot.total * sizeof(float);
    return PRONY_OK;
}

/* ---- run */

typedef struct job {
    const prn_winograd_simd *simd;
    const prn_conv *conv;
    const prn_winograd_tiling *cut;
    slot slot;
    prony_context rest; /* for the post-operations that are not part of the inverse transform */
    prn_post_ops rest_ops;
    const float *packed, *packed_end, *taps, *x;
    const float *added; /* NULL: no residual that the sums are added to */
    bool apart;         /* a later residual lies in the output: rows are finished elsewhere */
    float *y, *scratch;
} job;

const float prn_winograd_zeros[MOST_LANES] = {0};

/* Outputs of a tile. */
typedef float patch[PRN_WINOGRAD_MOST_SIDE - 2][PRN_WINOGRAD_MOST_SIDE - 2][MOST_LANES];

/* A row of tiles of one channel block, whose plane of the input or output is the one given. */
typedef struct row_of_tiles {
    prn_winograd_tile_offset place;
    int64_t row, column; /* floats between its rows, and between its columns */
} row_of_tiles;

static row_of_tiles row_at(const job *job, int64_t row, int64_t width)
{
    const prn_window *window = &job->conv->window;
    const int64_t lanes = job->simd->lanes;
    return (row_of_tiles){prn_winograd_place_of(window, job->cut, row), window->dilation[1] * width * lanes,
                          window->dilation[2] * lanes};
}

/* A tile that meets padding. */
static void forward_edge(const job *job, const row_of_tiles *row, const float *phase, int64_t left, float *v)
{
    const int64_t width = job->cut->columns + 2, top = row->place.top - row->place.pad[0];
    prn_winograd_edge edge = {.first = left < 0 ? -left : 0, .v = v, .v_point = job->cut->v_point};
    edge.end = prn_least(row->place.in[1] - left, width);
    for (int64_t r = 0; r < job->cut->rows + 2; r++) {
        const bool there = top + r >= 0 && top + r < row->place.in[0] && edge.first < edge.end;
        edge.row[r] = there ? phase + (top + r) * row->row + (left + edge.first) * row->column : prn_winograd_zeros;
        edge.x_column[r] = there ? row->column : 0;
    }
    job->simd->edge[job->cut->kind](&edge);
}

/* Transforms the input of one row of tiles of a batch; runs of tiles inside the image at once, tiles at its edges one
 * by one. */
static void forward_row(const job *job, const prn_winograd_batch *batch, int64_t number, const float *plane, float *v)
{
    const prn_winograd_tiling *cut = job->cut;
    const row_of_tiles row = row_at(job, number % cut->tile_rows, job->conv->window.in[2]);
    const prn_winograd_tile_offset *place = &row.place;
    const int64_t lanes = job->simd->lanes, top = place->top - place->pad[0];
    const bool whole = top >= 0 && top + cut->rows + 2 <= place->in[0];
    const float *phase = plane + place->x_first * lanes;
    for (int64_t tile = batch->column, count; tile < batch->column_end; tile += count, v += count * lanes) {
        const int64_t left = tile * cut->columns - place->pad[1], room = place->in[1] - left - cut->columns - 2;
        count = 1;
        if (!whole || left < 0 || room < 0) {
            forward_edge(job, &row, phase, left, v);
            continue;
        }
        count = room / cut->columns + 1;
        if (count > batch->column_end - tile) count = batch->column_end - tile;
        job->simd->forward[cut->kind](&(prn_winograd_forward){.x = phase + top * row.row + left * row.column,
                                                              .x_row = row.row,
                                                              .x_column = row.column,
                                                              .v = v,
                                                              .v_point = cut->v_point,
                                                              .count = count});
    }
}

/* The start of the image of a row of tiles, or of the plane of one, in a tensor of so many blocks and positions, in
 * floats. */
static int64_t image_at(const job *job, int64_t row, int64_t blocks, int64_t spatial)
{
    const int64_t planes = job->conv->window.out[0], image = row / job->cut->tile_rows;
    return (image / planes * blocks * spatial + image % planes * (spatial / planes)) * job->simd->lanes;
}

static void conv_winograd_forward(const job *job, const prn_winograd_batch *batch, float *v)
{
    const int64_t lanes = job->simd->lanes, plane = job->conv->in_spatial * lanes;
    const float *x = job->x;
    for (int64_t c = 0; c < job->cut->in_blocks && !prn_cancelled(); c++, x += plane) {
        for (int64_t row = batch->row; row < batch->row_end; row++) {
            forward_row(job, batch, row, x + image_at(job, row, job->cut->in_blocks, job->conv->in_spatial), v);
            v += (batch->column_end - batch->column) * lanes;
        }
    }
}

/* Memory fetched into the second-level cache while products are computed: `planes` runs of `floats`. */
typedef struct ahead {
    const float *from;
    int64_t planes, floats, apart;
    int64_t at;   /* floats of the first run that were fetched */
    int64_t step; /* floats for each input channel of a call */
} ahead;

/* It is all to be fetched by `inputs` channels of calls. */
static void conv_winograd_spread(ahead *ahead, int64_t inputs)
{
    ahead->step = inputs > 0 ? prn_ceil_div(ahead->planes * ahead->floats - ahead->at, inputs) : 0;
}

/* The share of the next call, without a division: calls are short. */
static void conv_winograd_fetch_ahead(ahead *ahead, int64_t lanes, prn_winograd_product *p)
{
    p->next = ahead->from + ahead->at;
    p->next_step = ahead->planes > 0 ? ahead->step : 0;
    ahead->at += p->next_step * p->in_blocks * lanes;
    for (; ahead->planes > 0 && ahead->at >= ahead->floats; ahead->planes--) {
        ahead->at = ahead->planes > 1 ? ahead->at - ahead->floats : 0;
        ahead->from += ahead->planes > 1 ? ahead->apart : 0;
    }
}

/* Input blocks whose weights stay in the first-level cache. */
static int64_t blocks_of_pass(const job *job, int64_t blocks)
{
    const int64_t run = job->cut->run, fitting = CACHED_WEIGHTS / (job->simd->lanes * blocks * job->simd->lanes);
    return fitting > run ? fitting / run * run : run;
}

/* All tiles of a batch at one point, for a group of `blocks` output blocks. Fetches the weights that come next, or
 * `ahead`. */
static void conv_winograd_multiply(const job *job, int64_t tiles, const float *v, const float *weights, int64_t blocks,
                                   float *m, ahead *ahead)
{
    const int64_t lanes = job->simd->lanes, in_blocks = job->cut->in_blocks, per_block = lanes * blocks * lanes;
    const int64_t parts = prn_ceil_div(tiles, job->simd->tiles[blocks]), step = blocks_of_pass(job, blocks);
    const int64_t next_step = prn_ceil_div(blocks * lanes, parts);
    prn_winograd_product p = {.v_block = tiles * lanes, .m_block = tiles * lanes, .run = job->cut->run};
    for (int64_t from = 0; from < in_blocks; from += p.in_blocks) {
        p.in_blocks = prn_least(in_blocks - from, step);
        p.weights = weights + from * per_block;
        p.next = p.weights + p.in_blocks * per_block;
        p.next_step = p.next < job->packed_end ? next_step : 0;
        p.add = from > 0;
        for (int64_t part = 0; part < parts; part++) {
            const int64_t first = part * tiles / parts, count = (part + 1) * tiles / parts - first;
            p.v = v + (from * tiles + first) * lanes;
            p.m = m + first * lanes;
            if (ahead) conv_winograd_fetch_ahead(ahead, lanes, &p);
            job->simd->product[blocks][count](&p);
            if (!ahead) p.next += p.next_step * p.in_blocks * lanes;
        }
    }
}

static void conv_winograd_copy_rows(int64_t rows, int64_t floats, const float *from, int64_t from_row, float *to,
                                    int64_t to_row)
{
    for (int64_t r = 0; r < rows; r++) memcpy(to + r * to_row, from + r * from_row, (size_t)floats * sizeof(float));
}

/* A tile that crosses the output's edge, with `rows` and `columns` inside: through a copy. */
static void inverse_edge(const job *job, const prn_winograd_inverse *inverse, int64_t rows, int64_t columns)
{
    const int64_t lanes = job->simd->lanes, row = job->cut->columns * lanes;
    _Alignas(64) patch y, added;
    prn_winograd_inverse one = *inverse;
    one.y = y[0][0];
    one.y_row = row;
    one.count = 1;
    if (inverse->added) {
        memset(added, 0, sizeof added);
        conv_winograd_copy_rows(rows, columns * lanes, inverse->added, inverse->y_row, added[0][0], row);
        one.added = added[0][0];
    }
    job->simd->inverse[job->cut->kind](&one);
    conv_winograd_copy_rows(rows, columns * lanes, y[0][0], row, inverse->y, inverse->y_row);
}

/* `tiles` tiles of a row, which give `rows` by `columns` outputs. */
static void inverse_tiles(const job *job, prn_winograd_inverse inverse, int64_t tiles, int64_t rows, int64_t columns)
{
    const prn_winograd_tiling *cut = job->cut;
    const int64_t lanes = job->simd->lanes;
    inverse.count = rows < cut->rows ? 0 : columns / cut->columns;
    if (inverse.count) job->simd->inverse[cut->kind](&inverse);
    for (int64_t tile = inverse.count; tile < tiles && tile * cut->columns < columns; tile++) {
        const int64_t left = columns - tile * cut->columns;
        prn_winograd_inverse one = inverse;
        one.m += tile * lanes;
        one.y += tile * cut->columns * lanes;
        if (one.added) one.added += tile * cut->columns * lanes;
        inverse_edge(job, &one, rows, left < cut->columns ? left : cut->columns);
    }
}

/* `columns` outputs side by side to where they are `apart`. */
static void spread_columns(int64_t columns, int64_t lanes, const float *from, float *to, int64_t apart)
{
    for (int64_t c = 0; c < columns; c++) memcpy(to + c * apart, from + c * lanes, (size_t)lanes * sizeof(float));
}

/* One row of tiles of one output block, whose plane of the first image begins at element `block` of the output. */
static void inverse_row(const job *job, const prn_winograd_batch *batch, int64_t number, int64_t block, const float *m,
                        const float *bias, float *space)
{
    const prn_winograd_tiling *cut = job->cut;
    const row_of_tiles row = row_at(job, number % cut->tile_rows, job->conv->window.out[2]);
    const prn_winograd_tile_offset *place = &row.place;
    const int64_t lanes = job->simd->lanes, tiles = batch->column_end - batch->column,
                  left = batch->column * cut->columns;
    const int64_t rows = prn_least(place->out[0] - place->top, cut->rows);
    const int64_t columns = prn_least(place->out[1] - left, tiles * cut->columns);
    if (rows < 1 || columns < 1) return;
    const int64_t plane = block + image_at(job, number, cut->blocks, job->conv->out_spatial);
    const int64_t first = plane + place->y_first * lanes + place->top * row.row + left * row.column;
    const bool spread = row.column != lanes, apart = job->apart || spread;
    float *const y = job->y + first, *const to = apart ? space : y;
    const int64_t to_row = spread ? columns * lanes : row.row;
    inverse_tiles(job,
                  (prn_winograd_inverse){.m = m,
                                         .m_point = cut->m_point,
                                         .bias = bias,
                                         .added = job->added ? job->added + first : NULL,
                                         .y = to,
                                         .y_row = to_row},
                  tiles, rows, columns);
    for (int64_t r = 0; r < rows && job->rest_ops.count; r++)
        prn_post_ops_apply_vec(&job->rest, to + r * to_row, first + r * row.row, columns * lanes);
    for (int64_t r = 0; r < rows && spread; r++)
        spread_columns(columns, lanes, to + r * to_row, y + r * row.row, row.column);
    if (apart && !spread) conv_winograd_copy_rows(rows, columns * lanes, to, to_row, y, row.row);
}

static bool in_one_image(const prn_winograd_tiling *cut, const prn_winograd_batch *batch)
{
    return batch->row / cut->tile_rows == (batch->row_end - 1) / cut->tile_rows;
}

/* The input that a batch reads, as far as it lies in one piece for each block. */
static ahead input_ahead(const job *job, int64_t index)
{
    const prn_winograd_tiling *cut = job->cut;
    const prn_window *window = &job->conv->window;
    const int64_t lanes = job->simd->lanes;
    if (cut->batches_across > 1 || cut->tasks_of_batch > 1 || cut->phases > 1 || index >= cut->tasks)
        return (ahead){.from = job->x};
    const prn_winograd_batch batch = prn_winograd_batch_at(cut, index);
    if (!in_one_image(cut, &batch)) return (ahead){.from = job->x};
    const int64_t first = batch.row % cut->tile_rows, rows = batch.row_end - batch.row;
    int64_t top = first * cut->rows - window->pad_begin[1], end = (first + rows) * cut->rows - window->pad_begin[1] + 2;
    if (top < 0) top = 0;
    if (end > window->in[1]) end = window->in[1];
    const int64_t plane = job->conv->in_spatial * lanes, row = window->in[2] * lanes;
    return (ahead){.from = job->x + image_at(job, batch.row, cut->in_blocks, job->conv->in_spatial) + top * row,
                   .planes = cut->in_blocks,
                   .floats = end > top ? (end - top) * row : 0,
                   .apart = plane};
}

/* The output of some blocks of a batch. */
static ahead output_ahead(const job *job, const prn_winograd_batch *batch, int64_t begin, int64_t blocks)
{
    const prn_winograd_tiling *cut = job->cut;
    const prn_window *window = &job->conv->window;
    const int64_t lanes = job->simd->lanes, plane = job->conv->out_spatial * lanes, row = window->out[2] * lanes;
    const int64_t first = batch->row % cut->tile_rows, top = first * cut->rows;
    const int64_t end = prn_least((first + batch->row_end - batch->row) * cut->rows, window->out[1]);
    if (cut->batches_across > 1 || cut->phases > 1 || !in_one_image(cut, batch)) return (ahead){.from = job->y};
    return (ahead){.from = job->y + image_at(job, batch->row, cut->blocks, job->conv->out_spatial) + begin * plane +
                           top * row,
                   .planes = blocks,
                   .floats = (end - top) * row,
                   .apart = plane};
}

/* The work of one task. */
typedef struct task {
    prn_winograd_batch batch;
    int64_t group_end;
    bool filters; /* are to be fetched: before they were read once, and where no cache holds them, always */
    ahead input;  /* of a later task */
} task;

static void multiply_group(const job *job, task *task, int64_t group, float *space)
{
    const prn_winograd_tiling *cut = job->cut;
    const int64_t lanes = job->simd->lanes, channels = cut->in_blocks * lanes, half = cut->points / 2;
    const int64_t begin = prn_winograd_first_block(cut, group),
                  blocks = prn_winograd_first_block(cut, group + 1) - begin;
    const int64_t per_point = channels * blocks * lanes;
    const int64_t inputs = channels * prn_ceil_div(task->batch.tiles, job->simd->tiles[blocks]);
    const float *weights = job->packed + begin * lanes * channels * cut->points;
    ahead output = output_ahead(job, &task->batch, begin, blocks);
    conv_winograd_spread(&output, half * inputs);
    conv_winograd_spread(&task->input, (task->group_end - group) * (cut->points - half) * inputs);
    for (int64_t p = 0; p < cut->points && !prn_cancelled(); p++, weights += per_point) {
        conv_winograd_multiply(job, task->batch.tiles, space + p * cut->v_point, weights, blocks,
                               space + job->slot.m + p * cut->m_point,
                               task->filters ? NULL
                               : p < half    ? &output
                                             : &task->input);
    }
}

/* The same with filters that are transformed here, some input channels at a time, from the direct kernel's form of the
 * weights: [group][unit of input channels][tap][input channel][output channels of the group]. */
static void multiply_taps(const job *job, const task *task, int64_t group, float *space)
{
    const prn_winograd_tiling *cut = job->cut;
    const int64_t lanes = job->simd->lanes, units = prn_ceil_div(cut->in_blocks * lanes, PRN_DIRECT_UNIT);
    const int64_t begin = prn_winograd_first_block(cut, group),
                  blocks = prn_winograd_first_block(cut, group + 1) - begin;
    const int64_t width = blocks * lanes, per_unit = PRN_DIRECT_UNIT * TAPS * width, tiles = task->batch.tiles;
    const int64_t parts = prn_ceil_div(tiles, job->simd->tiles[blocks]);
    const float *taps = job->taps + begin * lanes * units * PRN_DIRECT_UNIT * TAPS;
    float *u = space + job->slot.filters;
    for (int64_t unit = 0, count; unit < units && !prn_cancelled(); unit += count, taps += count * per_unit) {
        count = prn_least(units - unit, PRN_WINOGRAD_FILTER_UNITS);
        const int64_t from = unit * PRN_DIRECT_UNIT / lanes,
                      in_blocks = prn_least(cut->in_blocks - from, count * PRN_DIRECT_UNIT / lanes);
        for (int64_t i = 0; i < count; i++)
            job->simd->filters_of_taps[cut->kind](taps + i * per_unit, PRN_DIRECT_UNIT * width,
                                                  u + i * PRN_DIRECT_UNIT * width, cut->u_point,
                                                  PRN_DIRECT_UNIT * width);
        ahead next = {.from = taps + count * per_unit,
                      .planes = 1,
                      .floats = prn_least(units - unit - count, PRN_WINOGRAD_FILTER_UNITS) * per_unit};
        conv_winograd_spread(&next, cut->points * parts * in_blocks * lanes);
        prn_winograd_product p = {.v_block = tiles * lanes,
                                  .m_block = tiles * lanes,
                                  .run = cut->run,
                                  .in_blocks = in_blocks,
                                  .add = from > 0};
        for (int64_t point = 0; point < cut->points; point++) {
            p.weights = u + point * cut->u_point;
            for (int64_t part = 0; part < parts; part++) {
                const int64_t first = part * tiles / parts, tile_count = (part + 1) * tiles / parts - first;
                p.v = space + point * cut->v_point + (from * tiles + first) * lanes;
                p.m = space + job->slot.m + point * cut->m_point + first * lanes;
                conv_winograd_fetch_ahead(&next, lanes, &p);
                job->simd->product[blocks][tile_count](&p);
            }
        }
    }
}

static void conv_winograd_run_group(const job *job, task *task, int64_t group, float *space)
{
    const prn_conv *conv = job->conv;
    const prn_winograd_tiling *cut = job->cut;
    const prn_winograd_batch *batch = &task->batch;
    const int64_t lanes = job->simd->lanes, end = prn_winograd_first_block(cut, group + 1);
    const float *m = space + job->slot.m;
    if (job->taps)
        multiply_taps(job, task, group, space);
    else
        multiply_group(job, task, group, space);
    for (int64_t b = prn_winograd_first_block(cut, group); b < end; b++) {
        float bias[MOST_LANES] = {0};
        const int64_t channels = prn_least(conv->out_channels - b * lanes, lanes);
        if (conv->bias) memcpy(bias, (const float *)conv->bias->data + b * lanes, (size_t)channels * sizeof(float));
        for (int64_t row = batch->row; row < batch->row_end; row++) {
            inverse_row(job, batch, row, b * conv->out_spatial * lanes, m, bias, space + job->slot.row);
            m += (batch->column_end - batch->column) * lanes;
        }
    }
}

static void conv_winograd_run_slot(void *argument, prn_slot *slot)
{
    const job *job = argument;
    const prn_winograd_tiling *cut = job->cut;
    float *space = job->scratch + slot->index * job->slot.total;
    int64_t held = -1;
    for (int64_t number; (number = prn_slot_next(slot)) >= 0;) {
        const int64_t part = number % cut->tasks_of_batch, batch = number / cut->tasks_of_batch;
        task task = {.batch = prn_winograd_batch_at(cut, batch), .filters = held < 0 || cut->far};
        task.input = input_ahead(job, number + 1);
        task.group_end = (part + 1) * cut->groups / cut->tasks_of_batch;
        if (batch != held) conv_winograd_forward(job, &task.batch, space);
        held = batch;
        for (int64_t g = part * cut->groups / cut->tasks_of_batch; g < task.group_end && !prn_cancelled(); g++)
            conv_winograd_run_group(job, &task, g, space);
    }
}

/* A residual that is added first becomes part of the inverse transform. */
static void conv_winograd_split_post_ops(const prony_context *context, job *job)
{
    const prn_post_ops *post_ops = context->post_ops;
    job->rest = *context;
    job->rest.post_ops = &job->rest_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        const bool add = post_ops->op[i].kind == PRN_POST_ADD;
        const float *data = add ? context->inputs[post_ops->op[i].input]->data : NULL;
        if (add && i == 0) {
            job->added = data;
            continue;
        }
        job->apart = job->apart || (add && data == job->y);
        job->rest_ops.op[job->rest_ops.count++] = post_ops->op[i];
    }
}

void prn_conv_winograd_facts(const prony_context *context, prony_cost *facts)
{
    prn_conv conv;
    prn_winograd_tiling cut;
    if (prn_conv_read(context, &conv) != PRONY_OK || !conv_winograd_find_tiling(context, &conv, &cut)) return;
    const int64_t widest = prn_ceil_div(cut.blocks, cut.groups);
    prn_conv_tile_facts(facts, cut.tile_rows * cut.tile_columns, conv.out_channels, conv.in_channels,
                        conv_winograd_simd_table()->tiles[widest], conv_winograd_simd_table()->lanes * widest);
    prn_cost_fact(facts, "product_flops", prn_winograd_flops(&conv, &cut));
    if (cut.u_point) prn_cost_fact(facts, "filters_in_run", 1);
}

prony_status prn_conv_winograd_run(const prony_context *context)
{
    const winograd_plan *plan = context->state;
    job job = {.simd = plan->simd,
               .conv = &plan->conv,
               .cut = &plan->cut,
               .slot = plan->slot,
               .packed = plan->packed,
               .taps = plan->taps,
               .x = context->inputs[0]->data,
               .y = context->outputs[0]->data,
               .scratch = context->scratch};
    job.packed_end = job.packed ? job.packed + packed_floats(plan) : NULL;
    conv_winograd_split_post_ops(context, &job);
    const int64_t slots = (int64_t)(context->scratch_bytes / sizeof(float)) / job.slot.total;
    prn_parallel_slots(context->threads, slots, plan->cut.tasks, conv_winograd_run_slot, &job);
    prn_clear_spoiled_padding(context, context->outputs[0]);
    return PRONY_OK;
}
