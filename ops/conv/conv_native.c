/* The native convolution, plain operands: a matrix product over windows that are copied out panel by panel, and a
 * direct loop for depthwise.
 *
 *      depth = C/g K                a task: one image, one group, 64 output positions, a range of output channels
 *     +-------------+     +------+  per piece of 192 depths: copy the windows' elements into a panel (48 KiB, on the
 *     | weights     |  x  | panel|  stack), then all register tiles of `rows` channels by `columns` positions
 *     | [K/g, depth]|     |      |
 *     +-------------+     +------+
 *
 * The state is the problem and the packed weights, [group][channel block][depth][rows], owned by the model; without
 * constant weights they are packed into scratch in each run. Invariant: tasks are cut by the problem alone and each
 * output is summed in order of depth. */
#include "ops/conv/conv_kernels.h"
#include "base/integers.h"

#include "base/cpu/simd.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/conv/conv_gather.h"
#include "ops/conv/conv_simd.h"

#include <stdio.h>
#include <string.h>

enum { TILE = 64, PIECE = 192, WANTED_TASKS = 8, LOOK_UP = 1 << 18 };

PRN_SIMD_PICK(prn_conv_simd, prn_conv_simd_, static const prn_conv_simd *conv_native_simd_table)

/* ---- weights */

static int64_t depth_of(const prn_conv *conv)
{
    return conv->group_in * conv->kernel_volume;
}

static size_t packed_bytes(const prn_conv *conv)
{
    int64_t rows = prn_ceil_div(conv->group_out, conv_native_simd_table()->rows) * conv_native_simd_table()->rows;
    return prony_dtype_bytes(PRONY_FLOAT32, conv->groups * rows * depth_of(conv));
}

static void conv_native_pack(const prn_conv *conv, float *packed)
{
    const int64_t rows = conv_native_simd_table()->rows, depth = depth_of(conv);
    for (int64_t g = 0; g < conv->groups; g++) {
        const float *data = (const float *)conv->weights->data + g * conv->group_out * depth;
        for (int64_t block = 0; block < conv->group_out && !prn_cancelled(); block += rows) {
            for (int64_t d = 0; d < depth && !prn_cancelled_at(d); d++) {
                for (int64_t r = block; r < block + rows; r++)
                    *packed++ = r < conv->group_out ? data[r * depth + d] : 0.0f;
            }
        }
    }
}

static prony_status conv_native_build_packed(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    conv_native_pack(argument, packed);
    return PRONY_OK;
}

typedef struct native_state {
    prn_conv conv;      /* where prn_conv_kept looks for it */
    const void *packed; /* NULL: packed in each run */
} native_state;

static prony_status pack_shared(const prony_context *context, prn_conv *conv, const void **packed)
{
    const prn_pack_key key = {.build = conv_native_build_packed,
                              .size = {conv_native_simd_table()->rows, conv->groups, conv->group_out, depth_of(conv)}};
    return context->services->packed(context, conv->weights->data, &key, packed_bytes(conv), conv, packed);
}

/* The packed weights: those of the state, or packed now into the scratch. */
static const float *conv_native_packed_weights(const prony_context *context, const prn_conv *conv)
{
    const native_state *state = context->state;
    if (state->packed) return state->packed;
    conv_native_pack(conv, context->scratch);
    return context->scratch;
}

/* ---- windows */

typedef struct job {
    const prony_context *context; /* for post-operations */
    const prn_conv_simd *simd;
    const prn_conv *conv;
    prn_window window;
    const float *packed, *x;
    float *y;
    int64_t depth, blocks; /* blocks of `rows` output channels in a group */
    int64_t tiles, cuts;   /* pieces of the output positions, and of a group's channel blocks */
} job;

PRN_CONV_GATHER(conv_native_gather, float)

/* Fills panel[column block][depths][columns] for depths [from, from + depths). */
static void conv_native_fill_panel(const job *job, const float *x, int64_t from, int64_t depths, int64_t begin,
                                   int64_t count, float *panel)
{
    const prn_conv *conv = job->conv;
    const int64_t *kernel = job->window.kernel;
    int64_t columns = job->simd->columns;
    float line[TILE] = {0};
    for (int64_t d = 0; d < depths; d++) {
        int64_t channel = (from + d) / conv->kernel_volume, t = (from + d) % conv->kernel_volume;
        const int64_t tap[PRN_WINDOW_AXES] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
        conv_native_gather(&job->window, x + channel * conv->in_spatial, tap, begin, count, line);
        for (int64_t j = 0; j < count; j += columns)
            memcpy(panel + (j * depths + d * columns), line + j, (size_t)columns * sizeof *panel);
    }
}

/* ---- product */

/* One register tile at the edge of the output, through a buffer of the tile's full size. */
static void conv_native_edge_tile(const prn_conv_simd *simd, const float *a, const float *b, int64_t depths,
                                  const float *start, float *y, int64_t stride, int64_t rows, int64_t columns)
{
    float buffer[PRN_CONV_MAX_ROWS * PRN_CONV_MAX_COLUMNS] = {0};
    for (int64_t r = 0; r < rows && !start; r++)
        memcpy(buffer + r * simd->columns, y + r * stride, (size_t)columns * sizeof *y);
    simd->tile(a, b, depths, start, buffer, simd->columns);
    for (int64_t r = 0; r < rows; r++) memcpy(y + r * stride, buffer + r * simd->columns, (size_t)columns * sizeof *y);
}

/* All tiles of channel block `block` for one piece of the depth. */
static void conv_native_multiply_block(const job *job, int64_t group, int64_t block, int64_t from, int64_t depths,
                                       const float *panel, float *y, int64_t count)
{
    const prn_conv *conv = job->conv;
    const prn_conv_simd *simd = job->simd;
    const float *a = job->packed + ((group * job->blocks + block) * job->depth + from) * simd->rows;
    int64_t channel = group * conv->group_out + block * simd->rows;
    int64_t rows = conv->group_out - block * simd->rows;
    if (rows > simd->rows) rows = simd->rows;
    float start[PRN_CONV_MAX_ROWS] = {0};
    for (int64_t r = 0; r < rows && conv->bias; r++) start[r] = ((const float *)conv->bias->data)[channel + r];
    for (int64_t j = 0; j < count; j += simd->columns) {
        const float *b = panel + j * depths;
        if (rows == simd->rows && count - j >= simd->columns) {
            simd->tile(a, b, depths, from ? NULL : start, y + j, conv->out_spatial);
        } else {
            int64_t columns = count - j < simd->columns ? count - j : simd->columns;
            conv_native_edge_tile(simd, a, b, depths, from ? NULL : start, y + j, conv->out_spatial, rows, columns);
        }
    }
}

static void conv_native_product_task(void *argument, int64_t task)
{
    const job *job = argument;
    const prn_conv *conv = job->conv;
    int64_t cut = task % job->cuts, tile = task / job->cuts % job->tiles;
    int64_t group = task / (job->cuts * job->tiles) % conv->groups, n = task / (job->cuts * job->tiles * conv->groups);
    int64_t begin = tile * TILE, count = conv->out_spatial - begin < TILE ? conv->out_spatial - begin : TILE;
    int64_t first = cut * job->blocks / job->cuts, last = (cut + 1) * job->blocks / job->cuts;
    int64_t rows = job->simd->rows;
    const float *x = job->x + (n * conv->in_channels + group * conv->group_in) * conv->in_spatial;
    int64_t offset = (n * conv->out_channels + group * conv->group_out) * conv->out_spatial + begin;
    float *y = job->y + offset;
    float panel[PIECE * TILE] __attribute__((aligned(64)));
    for (int64_t from = 0; from < job->depth && !prn_cancelled(); from += PIECE) {
        int64_t depths = job->depth - from < PIECE ? job->depth - from : PIECE;
        conv_native_fill_panel(job, x, from, depths, begin, count, panel);
        for (int64_t block = first; block < last && !prn_cancelled(); block++)
            conv_native_multiply_block(job, group, block, from, depths, panel, y + block * rows * conv->out_spatial,
                                       count);
    }
    int64_t end = last * rows < conv->group_out ? last * rows : conv->group_out;
    for (int64_t k = first * rows; k < end; k++)
        prn_post_ops_apply_vec(job->context, y + k * conv->out_spatial, offset + k * conv->out_spatial, count);
}

/* A 1x1 kernel that meets every input once sees the image as one row. */
static void conv_native_flatten(prn_window *window)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        if (window->kernel[a] != 1 || window->stride[a] != 1 || window->pad_begin[a] || window->pad_end[a]) return;
    }
    window->in[2] = window->out[2] = prn_window_volume(window->in);
    window->in[0] = window->in[1] = window->out[0] = window->out[1] = 1;
}

static void conv_native_run_product(const prony_context *context, const prn_conv *conv)
{
    job job = {.context = context, .simd = conv_native_simd_table(), .conv = conv, .window = conv->window};
    job.packed = conv_native_packed_weights(context, conv);
    job.x = conv->x->data;
    job.y = context->outputs[0]->data;
    conv_native_flatten(&job.window);
    job.depth = depth_of(conv);
    job.blocks = prn_ceil_div(conv->group_out, job.simd->rows);
    job.tiles = prn_ceil_div(conv->out_spatial, TILE);
    int64_t tasks = conv->batch * conv->groups * job.tiles;
    job.cuts = tasks < WANTED_TASKS ? prn_ceil_div(WANTED_TASKS, tasks) : 1;
    if (job.cuts > job.blocks) job.cuts = job.blocks;
    prn_parallel_tasks(context->threads, tasks * job.cuts, conv_native_product_task, &job);
}

/* ---- depthwise */

static bool conv_native_is_depthwise(const prn_conv *conv)
{
    return conv->group_in == 1 && conv->groups > 1;
}

/* y[i] += w x[i step], of rows of any length. */
static void conv_native_add_tap(const prn_conv_simd *simd, float *y, const float *x, int64_t step, float w,
                                int64_t count)
{
    for (int64_t i = 0; i < count && (i == 0 || !prn_cancelled()); i += LOOK_UP)
        simd->add_scaled(y + i, x + i * step, step, w, count - i < LOOK_UP ? count - i : LOOK_UP);
}

/* One output channel of one image. */
static void conv_native_depthwise_task(void *argument, int64_t plane)
{
    const job *job = argument;
    const prn_conv *conv = job->conv;
    const prn_window *window = &job->window;
    int64_t n = plane / conv->out_channels, k = plane % conv->out_channels;
    const float *weights = (const float *)conv->weights->data + k * conv->kernel_volume;
    const float *x = job->x + (n * conv->in_channels + k / conv->group_out) * conv->in_spatial;
    float *y = job->y + plane * conv->out_spatial;
    float start = conv->bias ? ((const float *)conv->bias->data)[k] : 0.0f;
    for (int64_t from = 0; from < conv->out_spatial && (from == 0 || !prn_cancelled()); from += LOOK_UP) {
        const int64_t to = conv->out_spatial - from < LOOK_UP ? conv->out_spatial : from + LOOK_UP;
        for (int64_t i = from; i < to; i++) y[i] = start;
    }
    for (int64_t row = 0; row < window->out[0] * window->out[1] && !prn_cancelled(); row++) {
        for (int64_t t = 0; t < window->kernel[0] * window->kernel[1]; t++) {
            int64_t source = prn_window_row(window, row, t / window->kernel[1], t % window->kernel[1]);
            for (int64_t kx = 0; source >= 0 && kx < window->kernel[2]; kx++) {
                int64_t first, last, shift = kx * window->dilation[2] - window->pad_begin[2];
                prn_window_outputs(window, kx, &first, &last);
                conv_native_add_tap(job->simd, y + row * window->out[2] + first,
                                    x + (source + first * window->stride[2] + shift), window->stride[2],
                                    weights[t * window->kernel[2] + kx], last - first);
            }
        }
    }
    prn_post_ops_apply_vec(job->context, y, plane * conv->out_spatial, conv->out_spatial);
}

/* ---- kernel */

bool prn_conv_native_supported(const prony_context *context)
{
    prn_conv conv;
    if (prn_conv_read(context, &conv) != PRONY_OK) return false;
    return conv.batch > 0 && conv.out_channels > 0 && conv.group_in > 0;
}

prony_status prn_conv_native_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    if (conv_native_is_depthwise(&conv)) return prn_prepared_keep(context, &conv, sizeof conv, out);
    native_state state = {.conv = conv};
    const size_t bytes = packed_bytes(&conv);
    if (bytes == SIZE_MAX) return prn_no_memory(context->error);
    if (conv.weights->data)
        PRN_TRY(pack_shared(context, &state.conv, &state.packed));
    else
        out->scratch_bytes = bytes;
    return prn_prepared_keep(context, &state, sizeof state, out);
}

prony_status prn_conv_native_run(const prony_context *context)
{
    const prn_conv conv = prn_conv_kept(context);
    if (conv_native_is_depthwise(&conv)) {
        job job = {.context = context,
                   .simd = conv_native_simd_table(),
                   .conv = &conv,
                   .window = conv.window,
                   .x = conv.x->data,
                   .y = context->outputs[0]->data};
        prn_parallel_tasks(context->threads, conv.batch * conv.out_channels, conv_native_depthwise_task, &job);
        return PRONY_OK;
    }
    conv_native_run_product(context, &conv);
    return PRONY_OK;
}
