/* conv_f32_direct: convolution on blocked layouts, cut by rows of the output. oneDNN's kernels can only be cut by
 * output channels; where these are few and the image is large, that gives too few tasks or too narrow ones.
 *
 *     task = one image, some rows, all output channels, in groups of up to four blocks
 *     per group: input blocks by the piece whose weights stay in the first-level cache; row by row; tiles along a row
 *
 * The state is the packed weights, which the model owns: [group][input block][tap row][tap][input lane][block of the
 * group][output lane]. A residual that comes first is what the sums begin with, so it may lie in the output. Invariant:
 * pieces depend on the problem alone; each output is summed in one order. */
#include "ops/conv_direct.h"

#include "base/isa.h"
#include "base/parallel.h"
#include "ops/conv.h"
#include "ops/conv_direct_simd.h"
#include "ops/post_ops_vec.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_OUT_BLOCKS = 8,  /* of those problems that are better cut by rows */
    LEAST_WORK = 3000000, /* multiply-adds */
    LEAST_ROWS = 4,
    TASK_WORK = 1500000,
    MOST_TASKS = 32,       /* of an image */
    CACHED_WEIGHTS = 8192, /* floats that leave room for the rows of input and output */
};

static const prn_direct_simd *simd(void)
{
    return prn_isa_level() >= PRN_ISA_AVX512 ? &prn_direct_simd_avx512 : &prn_direct_simd_avx2;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static double image_work(const prn_conv *conv)
{
    return (double)conv->out_spatial * (double)conv->kernel_volume * (double)conv->in_channels *
           (double)conv->out_channels;
}

bool prn_conv_direct_usable(const prony_context *context)
{
    prn_conv conv;
    if (prn_isa_level() < PRN_ISA_AVX2 || prn_conv_read(context, &conv) != PRONY_OK) return false;
    if (!conv.weights->data || (conv.bias && !conv.bias->data)) return false;
    const prn_window *window = &conv.window;
    int64_t lanes = simd()->lanes;
    if (conv.groups != 1 || conv.in_channels % lanes || conv.out_channels % lanes) return false;
    if (conv.kernel_volume == 1) return false; /* narrow pieces cost oneDNN little there, short sums cost tiles much */
    if (window->kernel[0] != 1 || window->in[0] != 1 || window->out[0] != 1 || window->out[1] < LEAST_ROWS)
        return false;
    if (conv.batch < 1 || conv.in_channels < 1 || conv.out_channels < 1) return false;
    for (size_t i = 1; context->post_ops && i < context->post_ops->count; i++) {
        if (context->post_ops->op[i].kind == PRN_POST_ADD) return false;
    }
    return conv.out_channels / lanes <= MOST_OUT_BLOCKS && image_work(&conv) >= LEAST_WORK;
}

void prn_conv_direct_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_layout layout = simd()->lanes == 16 ? PRN_BLOCKED16 : PRN_BLOCKED8;
    const prn_post_ops *post_ops = context->post_ops;
    in[0] = out[0] = layout;
    if (post_ops && post_ops->count && post_ops->op[0].kind == PRN_POST_ADD) in[post_ops->op[0].input] = layout;
}

/* ---- weights */

/* Output blocks are dealt to as few groups as there can be, evenly: the first block of group `group`. */
static int64_t first_block(int64_t blocks, int64_t group)
{
    return group * blocks / divide_up(blocks, PRN_DIRECT_MOST_BLOCKS);
}

static prony_status build_weights(const prony_context *context, void *argument, void *packed)
{
    (void)context;
    const prn_conv *conv = argument;
    int64_t lanes = simd()->lanes, blocks = conv->out_channels / lanes, volume = conv->kernel_volume;
    const float *weights = conv->weights->data;
    float *to = packed;
    for (int64_t g = 0; g < divide_up(blocks, PRN_DIRECT_MOST_BLOCKS); g++) {
        int64_t begin = first_block(blocks, g) * lanes, end = first_block(blocks, g + 1) * lanes;
        for (int64_t c = 0; c < conv->in_channels; c += lanes) {
            for (int64_t t = 0; t < volume * lanes; t++) {
                for (int64_t k = begin; k < end; k++)
                    *to++ = weights[(k * conv->in_channels + c + t % lanes) * volume + t / lanes];
            }
        }
    }
    return PRONY_OK;
}

prony_status prn_conv_direct_prepare(const prony_context *context, prn_prepared *out)
{
    prn_conv conv;
    char tag[96];
    const void *packed;
    PRN_TRY(prn_conv_read(context, &conv));
    snprintf(tag, sizeof tag, "conv direct %lld lanes: %lld x %lld x %lld", (long long)simd()->lanes,
             (long long)conv.out_channels, (long long)conv.in_channels, (long long)conv.kernel_volume);
    size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, conv.out_channels * conv.in_channels * conv.kernel_volume);
    PRN_TRY(context->host->packed(context, conv.weights->data, tag, bytes, build_weights, &conv, &packed));
    out->state = (void *)(uintptr_t)packed;
    return PRONY_OK;
}

/* ---- run */

typedef struct job {
    const prn_direct_simd *simd;
    const prn_conv *conv;
    prony_context rest; /* for the post-operations that are not part of the sum */
    prn_post_ops rest_ops;
    const float *packed, *x;
    const float *added; /* NULL: no residual to begin with */
    float *y;
    int64_t in_blocks, blocks;
    int64_t rows, tasks;      /* of a task; of an image */
    int64_t inner, inner_end; /* positions of a row whose taps all fall inside the input */
} job;

/* Where an output row and what it meets are, in floats. */
typedef struct row {
    int64_t x, y;
    const float *weights;
} row;

/* Output channel blocks of one group, and the input blocks of one pass over them. */
typedef struct pass {
    int64_t image, blocks, from, count;
    int64_t y_offset;    /* of the group's first block */
    const float *packed; /* the group's weights */
    prn_direct_tile tile;
} pass;

/* Positions [at, at + count) of a row, whose taps [first, last) fall inside the input. x and weights are what the row's
 * first position meets at tap 0, padding or not. */
static void run_tile(const job *job, pass *pass, const row *row, int64_t at, int64_t count, int64_t first, int64_t last)
{
    prn_direct_tile *tile = &pass->tile;
    int64_t offset = row->y + at * job->simd->lanes;
    tile->taps = last - first;
    tile->x = job->x + (tile->taps ? row->x + at * tile->x_step + first * tile->x_tap : 0);
    tile->weights = row->weights + first * tile->w_tap;
    tile->y = job->y + offset;
    tile->added = job->added ? job->added + offset : NULL;
    job->simd->tile[pass->blocks][count](tile);
}

static void run_row(const job *job, pass *pass, int64_t index)
{
    const prn_window *window = &job->conv->window;
    prn_direct_tile *tile = &pass->tile;
    int64_t lanes = job->simd->lanes, width = window->out[2], most = job->simd->positions[pass->blocks];
    int64_t top = index * window->stride[1] - window->pad_begin[1], ky, ky_end;
    prn_window_clip(window, 1, top, &ky, &ky_end);
    tile->rows = ky_end - ky;
    top = tile->rows ? top + ky * window->dilation[1] : 0;
    row row = {.x = (pass->image * job->in_blocks + pass->from) * tile->x_block +
                    (top * window->in[2] - window->pad_begin[2]) * lanes,
               .y = pass->y_offset + index * width * lanes,
               .weights = pass->packed + pass->from * tile->w_block + ky * tile->w_row};
    for (int64_t at = 0, count; at < width; at += count) {
        int64_t first = 0, last = window->kernel[2];
        count = 1;
        if (at < job->inner || at >= job->inner_end)
            prn_window_clip(window, 2, at * window->stride[2] - window->pad_begin[2], &first, &last);
        else
            count = job->inner_end - at < most ? job->inner_end - at : most;
        run_tile(job, pass, &row, at, count, first, last);
    }
}

static void run_group(const job *job, int64_t image, int64_t group, int64_t row, int64_t end)
{
    const prn_conv *conv = job->conv;
    const prn_window *window = &conv->window;
    int64_t lanes = job->simd->lanes, block = first_block(job->blocks, group);
    float bias[PRN_DIRECT_MOST_BLOCKS * 16] = {0};
    pass pass = {.image = image, .blocks = first_block(job->blocks, group + 1) - block};
    prn_direct_tile *tile = &pass.tile;
    int64_t width = pass.blocks * lanes;
    pass.packed = job->packed + block * lanes * conv->in_channels * conv->kernel_volume;
    if (conv->bias) memcpy(bias, (const float *)conv->bias->data + block * lanes, (size_t)width * sizeof *bias);
    tile->x_step = window->stride[2] * lanes;
    tile->x_tap = window->dilation[2] * lanes;
    tile->x_row = window->dilation[1] * window->in[2] * lanes;
    tile->x_block = conv->in_spatial * lanes;
    tile->w_tap = lanes * width;
    tile->w_row = window->kernel[2] * tile->w_tap;
    tile->w_block = conv->kernel_volume * tile->w_tap;
    tile->y_block = conv->out_spatial * lanes;
    pass.y_offset = (image * job->blocks + block) * tile->y_block;
    int64_t step = CACHED_WEIGHTS / tile->w_block > 1 ? CACHED_WEIGHTS / tile->w_block : 1;
    for (pass.from = 0; pass.from < job->in_blocks; pass.from += step) {
        tile->in_blocks = job->in_blocks - pass.from < step ? job->in_blocks - pass.from : step;
        tile->start = pass.from ? NULL : bias;
        for (int64_t r = row; r < end; r++) run_row(job, &pass, r);
    }
}

static void run_task(void *argument, int64_t task)
{
    const job *job = argument;
    const prn_conv *conv = job->conv;
    int64_t lanes = job->simd->lanes, width = conv->window.out[2], image = task / job->tasks;
    int64_t row = task % job->tasks * job->rows;
    int64_t end = row + job->rows < conv->window.out[1] ? row + job->rows : conv->window.out[1];
    for (int64_t g = 0; g < divide_up(job->blocks, PRN_DIRECT_MOST_BLOCKS); g++) run_group(job, image, g, row, end);
    for (int64_t b = 0; b < job->blocks && job->rest_ops.count; b++) {
        int64_t first = ((image * job->blocks + b) * conv->out_spatial + row * width) * lanes;
        prn_post_ops_apply_vec(&job->rest, job->y + first, first, (end - row) * width * lanes);
    }
}

static void find_inner(job *job)
{
    const prn_window *window = &job->conv->window;
    int64_t room = window->in[2] + window->pad_begin[2] - prn_window_reach(window, 2);
    job->inner = divide_up(window->pad_begin[2], window->stride[2]);
    job->inner_end = room < 0 ? 0 : room / window->stride[2] + 1;
    if (job->inner_end > window->out[2]) job->inner_end = window->out[2];
}

/* A residual that is added first becomes part of the sum; what is left are maps. */
static void split_post_ops(const prony_context *context, job *job)
{
    const prn_post_ops *post_ops = context->post_ops;
    job->rest = *context;
    job->rest.post_ops = &job->rest_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD)
            job->added = context->inputs[post_ops->op[i].input]->data;
        else
            job->rest_ops.op[job->rest_ops.count++] = post_ops->op[i];
    }
}

prony_status prn_conv_direct_run(const prony_context *context)
{
    prn_conv conv;
    PRN_TRY(prn_conv_read(context, &conv));
    job job = {.simd = simd(), .conv = &conv, .packed = context->state, .x = conv.x->data};
    job.y = context->outputs[0]->data;
    job.in_blocks = conv.in_channels / job.simd->lanes;
    job.blocks = conv.out_channels / job.simd->lanes;
    double wanted = image_work(&conv) / TASK_WORK;
    int64_t pieces = wanted < MOST_TASKS ? (int64_t)wanted + 1 : MOST_TASKS;
    job.rows = divide_up(conv.window.out[1], pieces);
    job.tasks = divide_up(conv.window.out[1], job.rows);
    split_post_ops(context, &job);
    find_inner(&job);
    prn_parallel_tasks(context->threads, conv.batch * job.tasks, run_task, &job);
    return PRONY_OK;
}
