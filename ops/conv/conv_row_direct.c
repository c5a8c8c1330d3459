/* conv_f32_flat: few channels, small images, plain layouts.
 *
 *   an image with its padding, of pitch P, as one row        positions p of its outputs: y P + x
 *
 *     0 0 0 0 0 0                each tap reads at one distance from every position, so a vector of successive
 *     0 a b c d 0 | ...          positions is one load for each tap, whatever the rows' length. The P - W' positions
 *     0 e f g h 0 | ...          between the ends of rows and their next beginnings are computed too, and not stored.
 *
 * With steps of s the image is dealt to s x s images of every s-th row and column, where the same holds. An image
 * without padding and steps is read where it lies; others are copied into the scratch.
 *
 *     unit = one image, a block of a group's output channels
 *     task = successive units, or a run of one's tiles; a task with all units of its inputs copies them itself, while
 *            caches hold them
 *     tile = the block's channels at a few vectors of positions, sums in registers
 *
 * Packed weights belong to the model: [group][block][input channel, row, column of the window][channel of the block].
 * Invariant: pieces depend on the problem alone; each output is summed in one order, the same on every instruction
 * set. */
#include "ops/conv/conv_kernels.h"
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/cpu/isa.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/conv/conv_cost_model.h"
#include "ops/conv/conv_direct_plan.h"
#include "ops/conv/conv_row_direct_simd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

PRN_SIMD_PICK(prn_row_direct_simd, prn_row_direct_simd_, const prn_row_direct_simd *prn_row_direct_rows)

/* They came with the kernel, by which lenet5 took 10.8 us instead of 21.5 with one thread. The limits from
 * MOST_POSITIONS to MOST_COPIED bound memory and the time between two looks at cancellation. */
enum {
    MOST_TAPS = 4096, /* of all input channels of a group */
    MOST_POSITIONS = 1 << 17,
    MOST_STRIDE = 8,
    MOST_PLANE = 1 << 24,  /* floats of a channel as it is copied, which nothing interrupts */
    MOST_COPIED = 1 << 28, /* floats */
    TASK_WORK = 400000,    /* multiply-adds */
    FILL_WORK = 1 << 15,   /* floats */
};

/* An image laid out as one row. */
typedef struct flat_image {
    int64_t pitch, rows;  /* of one of the images that it is dealt to */
    int64_t dealt, plane; /* floats of such an image, of all of one channel */
    int64_t positions;    /* up to the last output */
    bool copied;
} flat_image;

typedef struct flat_plan {
    const prn_row_direct_simd *simd;
    prn_conv conv;
    flat_image image;
    const float *packed;
    int64_t taps, blocks;            /* blocks of a group's output channels */
    int64_t vectors, tiles;          /* of an image's positions */
    int64_t units, per_task, pieces; /* units of a task, or pieces of a unit */
    bool copies;                     /* tasks copy what they read */
    prn_direct_epilogue end;
    int32_t *steps;
    prn_row_direct_part *parts;
} flat_plan;

/* true: no product of extents in conv_row_direct_lay_out overflows. */
static bool extents_fit(const prn_conv *conv)
{
    const prn_window *window = &conv->window;
    for (int a = 1; a < PRN_WINDOW_AXES; a++) {
        if (window->in[a] > MOST_POSITIONS || window->out[a] > MOST_POSITIONS ||
            window->pad_begin[a] > MOST_POSITIONS || prn_window_reach(window, a) > MOST_POSITIONS ||
            window->stride[a] > MOST_STRIDE)
            return false;
    }
    return true;
}

/* The layout in which rows follow one another so that vectors run across row ends: pitch, rows, and whether the image
 * must be copied with its padding first. */
static flat_image conv_row_direct_lay_out(const prn_conv *conv, const prn_row_direct_simd *simd)
{
    const prn_window *window = &conv->window;
    const int64_t *stride = window->stride + 1, *out = window->out + 1;
    flat_image image = {0};
    int64_t behind[2]; /* padding that windows see behind the image */
    for (int a = 0; a < 2; a++) {
        behind[a] =
            (out[a] - 1) * stride[a] + prn_window_reach(window, a + 1) - window->pad_begin[a + 1] - window->in[a + 1];
        if (behind[a] < 0) behind[a] = 0;
    }
    image.rows = out[0] + (prn_window_reach(window, 1) - 1) / stride[0];
    image.pitch = out[1] + (prn_window_reach(window, 2) - 1) / stride[1];
    image.copied = true;
    if (stride[0] == 1 && stride[1] == 1) {
        /* The padding behind a row is also the one in front of the next. */
        const int64_t padding = window->pad_begin[2] > behind[1] ? window->pad_begin[2] : behind[1];
        image.pitch = window->in[2] + padding > out[1] ? window->in[2] + padding : out[1];
        image.copied = padding || window->pad_begin[1] || behind[0];
    }
    image.positions = (out[0] - 1) * image.pitch + out[1];
    if (image.positions < 2 * PRN_ROW_DIRECT_MOST_VECTORS * simd->lanes)
        image.copied = true; /* vectors would read beyond its
                                                                                           end */
    image.dealt = image.rows * image.pitch + prn_window_reach(window, 2);
    image.plane = image.copied ? image.dealt * stride[0] * stride[1] : conv->in_spatial;
    return image;
}

bool prn_conv_row_direct_supported(const prony_context *context)
{
    prn_conv conv;
    if (!prn_isa_has(PRN_HAS_FMA) || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    if (conv.batch < 1 || conv.group_in < 1 || conv.group_out < 1 || conv.out_spatial < 1) return false;
    if (!prn_conv_in_plane(&conv) || conv.kernel_volume > MOST_TAPS / conv.group_in) return false;
    if (!extents_fit(&conv)) return false;
    const flat_image image = conv_row_direct_lay_out(&conv, prn_row_direct_rows());
    if (image.positions > MOST_POSITIONS || image.plane > INT32_MAX / conv.group_in) return false;
    if (image.copied && image.plane > MOST_PLANE) return false;
    return !image.copied || (double)image.plane * (double)conv.in_channels * (double)conv.batch < MOST_COPIED;
}

double prn_conv_row_direct_predict(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK || conv.batch < 1 || conv.group_in < 1 || conv.group_out < 1 ||
        !prn_conv_in_plane(&conv) || !extents_fit(&conv))
        return INFINITY;
    const flat_image image = conv_row_direct_lay_out(&conv, prn_row_direct_rows());
    const double copied = image.copied ? (double)image.plane * (double)conv.in_channels * (double)conv.batch : 0;
    return prn_conv_row_direct_cycles(context, &conv, image.positions, copied);
}

/* ---- prepared */

/* The first of a group's output channels in block `block`. */
static int64_t first_channel(const flat_plan *plan, int64_t block)
{
    return block * plan->conv.group_out / plan->blocks;
}

static int64_t first_vector(const flat_plan *plan, int64_t tile)
{
    return tile * plan->vectors / plan->tiles;
}

static prony_status conv_row_direct_build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const flat_plan *plan = argument;
    const float *weights = plan->conv.weights->data;
    float *to = packed;
    for (int64_t g = 0; g < plan->conv.groups; g++, weights += plan->conv.group_out * plan->taps) {
        for (int64_t block = 0; block < plan->blocks && !prn_cancelled(); block++) {
            const int64_t begin = first_channel(plan, block), end = first_channel(plan, block + 1);
            for (int64_t t = 0; t < plan->taps; t++) {
                for (int64_t k = begin; k < end; k++) *to++ = weights[k * plan->taps + t];
            }
        }
    }
    return PRONY_OK;
}

static prony_status conv_row_direct_pack(const prony_context *context, flat_plan *plan)
{
    const void *packed;
    const prn_conv *conv = &plan->conv;
    const prn_pack_key key = {.build = conv_row_direct_build_weights,
                              .size = {conv->groups, conv->group_out, plan->blocks, plan->taps}};
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, conv->out_channels * plan->taps);
    PRN_TRY(context->services->packed(context, conv->weights->data, &key, bytes, plan, &packed));
    plan->packed = packed;
    return PRONY_OK;
}

static void conv_row_direct_find_steps(flat_plan *plan)
{
    const prn_window *window = &plan->conv.window;
    const flat_image *image = &plan->image;
    int32_t *step = plan->steps;
    for (int64_t c = 0; c < plan->conv.group_in; c++) {
        for (int64_t ky = 0; ky < window->kernel[1]; ky++) {
            const int64_t y = ky * window->dilation[1], row = y % window->stride[1];
            for (int64_t kx = 0; kx < window->kernel[2]; kx++) {
                const int64_t x = kx * window->dilation[2], dealt = row * window->stride[2] + x % window->stride[2];
                *step++ = (int32_t)(c * image->plane + dealt * image->dealt + y / window->stride[1] * image->pitch +
                                    x / window->stride[2]);
            }
        }
    }
}

/* The first position of a tile. The last one ends with the last output where nothing may be read behind it, and stores
 * what the tile before it has not. */
static int64_t first_position(const flat_plan *plan, int64_t tile)
{
    const int64_t first = first_vector(plan, tile), lanes = plan->simd->lanes;
    if (plan->image.copied || tile + 1 < plan->tiles) return first * lanes;
    return plan->image.positions - (plan->vectors - first) * lanes;
}

static void find_parts(flat_plan *plan)
{
    const int64_t pitch = plan->image.pitch, width = plan->conv.window.out[2], lanes = plan->simd->lanes;
    int64_t done = 0; /* positions */
    int32_t at = 0;
    for (int64_t tile = 0; tile < plan->tiles; tile++) {
        int64_t p = first_position(plan, tile);
        for (int64_t v = first_vector(plan, tile); v < first_vector(plan, tile + 1); v++) {
            prn_row_direct_part *part = &plan->parts[v];
            part->at = at;
            for (int64_t i = 0; i < lanes; i++, p++) {
                if (p < done || p >= plan->image.positions) continue;
                done = p + 1;
                if (p % pitch < width) part->lane[part->count++] = (uint8_t)i;
            }
            at += part->count;
        }
    }
}

static void conv_row_direct_choose_tiling(flat_plan *plan)
{
    const prn_conv *conv = &plan->conv;
    const double work = (double)plan->vectors * (double)plan->simd->lanes * (double)plan->taps *
                        (double)conv->group_out / (double)plan->blocks;
    plan->units = conv->batch * conv->groups * plan->blocks;
    plan->per_task = work < TASK_WORK ? prn_least((int64_t)(TASK_WORK / (work + 1)) + 1, plan->units) : 1;
    plan->pieces = prn_least((int64_t)(work / TASK_WORK) + 1, plan->tiles);
    if (plan->pieces > 1 || plan->units == plan->blocks) return;
    plan->per_task = prn_ceil_div(plan->per_task, plan->blocks) * plan->blocks;
    plan->copies = plan->image.copied;
}

static flat_plan *conv_row_direct_make_plan(const prn_conv *conv)
{
    const prn_row_direct_simd *table = prn_row_direct_rows();
    const flat_image image = conv_row_direct_lay_out(conv, table);
    const int64_t vectors = prn_ceil_div(image.positions, table->lanes), taps = conv->group_in * conv->kernel_volume;
    flat_plan *plan =
        prn_calloc(1, sizeof *plan + (size_t)vectors * sizeof plan->parts[0] + (size_t)taps * sizeof plan->steps[0]);
    if (!plan) return NULL;
    plan->simd = table;
    plan->conv = *conv;
    plan->image = image;
    plan->taps = taps;
    plan->blocks = prn_ceil_div(conv->group_out, table->channels);
    plan->vectors = vectors;
    plan->tiles = prn_ceil_div(vectors, table->vectors[prn_ceil_div(conv->group_out, plan->blocks)]);
    plan->steps = (int32_t *)(plan + 1);
    plan->parts = (prn_row_direct_part *)(plan->steps + taps);
    conv_row_direct_find_steps(plan);
    find_parts(plan);
    conv_row_direct_choose_tiling(plan);
    return plan;
}

prony_status prn_conv_row_direct_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    flat_plan *plan = conv_row_direct_make_plan(&conv);
    if (!plan) return prn_no_memory(context->error);
    const prn_post_ops *post_ops = context->post_ops;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD)
        plan->end.rest = *post_ops; /* tiles add nothing */
    else
        plan->end = prn_direct_find_epilogue(post_ops, PRN_DIRECT_UNIT);
    prony_status status = conv_row_direct_pack(context, plan);
    if (status != PRONY_OK) {
        prn_free(plan);
        return status;
    }
    if (plan->image.copied)
        out->scratch_bytes =
            prony_dtype_bytes(PRONY_FLOAT32, conv.batch * conv.in_channels * plan->image.plane + plan->simd->lanes);
    out->state = plan;
    return PRONY_OK;
}

void prn_conv_row_direct_facts(const prony_context *context, prony_cost *facts)
{
    const flat_plan *plan = context->state;
    const int64_t channels = prn_ceil_div(plan->conv.group_out, plan->blocks);
    prn_conv_tile_facts(facts, plan->image.positions, plan->conv.group_out, plan->taps,
                        plan->simd->vectors[channels] * plan->simd->lanes, channels);
}

/* ---- run */

typedef struct job {
    const flat_plan *plan;
    const prony_context *context;
    const float *x;
    float *y, *copy;
} job;

/* One channel of one image into the scratch. */
static void fill_plane(void *argument, int64_t plane)
{
    const job *job = argument;
    const flat_image *image = &job->plan->image;
    const prn_window *window = &job->plan->conv.window;
    const int64_t height = window->in[1], width = window->in[2];
    const float *x = job->x + plane * height * width;
    const prn_row_direct_simd *simd = job->plan->simd;
    for (int64_t d = 0; d < window->stride[1] * window->stride[2] && !prn_cancelled(); d++) {
        float *to = job->copy + plane * image->plane + d * image->dealt;
        prn_row_direct_fill rows = {.image = x,
                                    .height = height,
                                    .width = width,
                                    .top = d / window->stride[2] - window->pad_begin[1],
                                    .left = d % window->stride[2] - window->pad_begin[2],
                                    .stride = {window->stride[1], window->stride[2]},
                                    .rows = image->rows,
                                    .pitch = image->pitch};
        if (image->pitch == width && rows.left == 0 && rows.stride[0] == 1 && rows.stride[1] == 1) { /* one row */
            rows.left = rows.top * width;
            rows.top = 0;
            rows.width *= height;
            rows.rows = rows.height = 1;
            rows.pitch *= image->rows;
        }
        simd->fill(to, &rows);
        simd->fill(to + image->rows * image->pitch,
                   &(prn_row_direct_fill){
                       .image = x, .stride = {1, 1}, .rows = 1, .pitch = image->dealt - image->rows * image->pitch});
    }
}

/* Some tiles of one unit. */
static void conv_row_direct_run_unit(const job *job, int64_t unit, int64_t first, int64_t end)
{
    const flat_plan *plan = job->plan;
    const prn_conv *conv = &plan->conv;
    const int64_t block = unit % plan->blocks, group = unit / plan->blocks % conv->groups;
    const int64_t from = first_channel(plan, block), channels = first_channel(plan, block + 1) - from;
    const int64_t channel = group * conv->group_out + from, n = unit / (plan->blocks * conv->groups);
    const float *x = (plan->image.copied ? job->copy : job->x) +
                     (n * conv->in_channels + group * conv->group_in) * plan->image.plane;
    static const float none[PRN_ROW_DIRECT_MOST_CHANNELS];
    prn_row_direct_tile tile = {.steps = plan->steps,
                                .taps = plan->taps,
                                .weights = plan->packed + channel * plan->taps,
                                .bias = conv->bias ? (const float *)conv->bias->data + channel : none,
                                .y = job->y + (n * conv->out_channels + channel) * conv->out_spatial,
                                .y_plane = conv->out_spatial,
                                .clamped = plan->end.clamped,
                                .low = plan->end.low,
                                .high = plan->end.high};
    for (int64_t i = first; i < end && !prn_cancelled(); i++) {
        tile.x = x + first_position(plan, i);
        tile.parts = plan->parts + first_vector(plan, i);
        plan->simd->tile[channels][first_vector(plan, i + 1) - first_vector(plan, i)](&tile);
    }
}

/* The post-operations that are left, on outputs [from, to) of the channels of some units, or of all outputs. */
static void conv_row_direct_finish(const job *job, int64_t first_unit, int64_t end_unit, int64_t from, int64_t to)
{
    const flat_plan *plan = job->plan;
    const prn_conv *conv = &plan->conv;
    const int64_t begin = first_unit / plan->blocks * conv->group_out + first_channel(plan, first_unit % plan->blocks);
    const int64_t end = end_unit / plan->blocks * conv->group_out + first_channel(plan, end_unit % plan->blocks);
    prony_context rest = *job->context;
    rest.post_ops = &plan->end.rest;
    if (to - from == conv->out_spatial) {
        prn_post_ops_apply_vec(&rest, job->y + begin * to, begin * to, (end - begin) * to);
        return;
    }
    for (int64_t at = begin * conv->out_spatial + from; begin < end && at < end * conv->out_spatial;
         at += conv->out_spatial)
        prn_post_ops_apply_vec(&rest, job->y + at, at, to - from);
}

static void conv_row_direct_run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const flat_plan *plan = job->plan;
    const int64_t piece = task % plan->pieces, unit = task / plan->pieces * plan->per_task;
    const int64_t end_unit = prn_least(unit + plan->per_task, plan->units);
    const int64_t first = piece * plan->tiles / plan->pieces, end = (piece + 1) * plan->tiles / plan->pieces;
    for (int64_t u = unit; u < end_unit && !prn_cancelled(); u++) {
        const int64_t plane = u / plan->blocks * plan->conv.group_in; /* of all images */
        for (int64_t c = 0; c < plan->conv.group_in && plan->copies && u % plan->blocks == 0; c++)
            fill_plane(argument, plane + c);
        conv_row_direct_run_unit(job, u, first, end);
    }
    if (plan->end.rest.count)
        conv_row_direct_finish(job, unit, end_unit, plan->parts[first_vector(plan, first)].at,
                               end < plan->tiles ? plan->parts[first_vector(plan, end)].at : plan->conv.out_spatial);
}

prony_status prn_conv_row_direct_run(const prony_context *context)
{
    const flat_plan *plan = context->state;
    const prn_conv *conv = &plan->conv;
    job job = {plan, context, context->inputs[0]->data, context->outputs[0]->data, context->scratch};
    if (plan->image.copied) {
        const int64_t planes = conv->batch * conv->in_channels;
        for (int64_t i = 0; i < plan->simd->lanes; i++)
            job.copy[planes * plan->image.plane + i] = 0.0f; /* the last vector reads on */
        if (!plan->copies)
            prn_parallel_tasks(planes * plan->image.plane < FILL_WORK ? 1 : context->threads, planes, fill_plane, &job);
    }
    prn_parallel_tasks(context->threads, prn_ceil_div(plan->units, plan->per_task) * plan->pieces,
                       conv_row_direct_run_task, &job);
    return PRONY_OK;
}
