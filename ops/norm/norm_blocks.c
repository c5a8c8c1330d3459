/* Normalisation of groups of channels that lie in blocks, [N, blocks, spatial, lanes].
 *
 *     unit = the fewest blocks that hold whole groups (one, of up to 16 channels a group that divide it; three, of 24;
 *     all, of one group)
 *
 * Each block's lanes are summed by themselves, a group's sum is that of its channels in ascending order; then the same
 * of the squares of deviations from the mean. Units are tasks; of fewer units than threads, their blocks are. Both sum
 * in the same order. */
#include "ops/norm/norm_blocks.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/norm/norm_blocks_simd.h"

#include <math.h>

PRN_SIMD_PICK(prn_norm_blocks_simd, prn_norm_blocks_simd_, static const prn_norm_blocks_simd *norm_blocks_loops)

enum {
    FINISHED = 256, /* pixels that stay in the first-level cache between normalising and post-operations */
    TASK_FLOATS = 1 << 14
};

/* Of every channel of every image, in whole blocks. */
typedef struct tables {
    double *sum, *mean;
    float *center, *inverse;
    float *scale, *shift; /* of one image */
} tables;

typedef struct job {
    const prony_context *context;
    const float *x;
    float *y;
    int64_t channels, group; /* of an image, of a group */
    int64_t lanes, blocks, pixels;
    int64_t units, unit_blocks; /* of all images; the last one of an image may have fewer blocks */
    float epsilon;
    tables tables;
} job;

void prn_norm_blocks_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prony_value *x = context->inputs[0];
    const prn_layout layout = (prn_layout)x->layout;
    const int64_t block = prn_layout_block(layout);
    if (context->precision == PRONY_PRECISION_FP32_STRICT || block == 0 || block % norm_blocks_loops()->lanes) return;
    in[0] = out[0] = layout;
    prn_post_ops_ask_layout(context->post_ops, layout, in);
}

/* Channels of an image in whole blocks. */
static int64_t whole_channels(const prony_value *x)
{
    const int64_t block = prn_layout_block((prn_layout)x->layout);
    return block ? prn_ceil_div(x->shape.dim[1], block) * block : 0;
}

size_t prn_norm_blocks_scratch(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    const size_t image = (size_t)whole_channels(x), all = (size_t)x->shape.dim[0] * image;
    return all * (2 * sizeof(double) + 2 * sizeof(float)) + 2 * image * sizeof(float);
}

static tables tables_in(void *scratch, size_t all, size_t image)
{
    tables tables = {.sum = scratch};
    tables.mean = tables.sum + all;
    tables.center = (float *)(tables.mean + all);
    tables.inverse = tables.center + all;
    tables.scale = tables.inverse + all;
    tables.shift = tables.scale + image;
    return tables;
}

/* A vector's element for each channel, 0 for the lanes beyond. */
static void norm_blocks_spread(const prony_value *vector, int64_t channels, int64_t whole, float *to)
{
    const float *from = vector->data;
    const int64_t count = prony_shape_numel(&vector->shape), each = count ? channels / count : 1;
    for (int64_t c = 0; c < whole; c++) to[c] = c < channels ? from[c / each] : 0.0f;
}

/* Blocks are counted over all images. */
static prn_norm_block block_at(const job *job, int64_t block)
{
    const int64_t at = block * job->lanes, of_image = block % job->blocks * job->lanes;
    return (prn_norm_block){.x = job->x + at * job->pixels,
                            .y = job->y + at * job->pixels,
                            .pixels = job->pixels,
                            .lanes = job->lanes,
                            .center = job->tables.center + at,
                            .inverse = job->tables.inverse + at,
                            .scale = job->tables.scale + of_image,
                            .shift = job->tables.shift + of_image};
}

static void norm_blocks_sum_block(void *argument, int64_t index)
{
    const job *job = argument;
    const prn_norm_block block = block_at(job, index);
    norm_blocks_loops()->sums(&block, job->tables.sum + index * job->lanes);
}

static void deviate_block(void *argument, int64_t index)
{
    const job *job = argument;
    const prn_norm_block block = block_at(job, index);
    norm_blocks_loops()->deviations(&block, job->tables.sum + index * job->lanes);
}

static void normalise_block(void *argument, int64_t index)
{
    const job *job = argument;
    prn_norm_block block = block_at(job, index);
    const int64_t lanes = job->lanes;
    for (int64_t p = 0; p < job->pixels && !prn_cancelled(); p += FINISHED) {
        block.pixels = prn_least(FINISHED, job->pixels - p);
        norm_blocks_loops()->normalise(&block);
        prn_post_ops_apply_vec(job->context, block.y, block.y - job->y, block.pixels * lanes);
        block.x += block.pixels * lanes;
        block.y += block.pixels * lanes;
    }
}

/* A group's sums over its channels from `first` on, counted over all images with their lanes beyond the channels. */
static double group_sum(const job *job, int64_t first)
{
    double total = 0.0;
    for (int64_t c = first; c < first + job->group; c++) total += job->tables.sum[c];
    return total;
}

/* The centers of the groups of a unit: `groups` of them from channel `first` on. */
static void find_centers(const job *job, int64_t first, int64_t groups)
{
    const double count = (double)job->group * (double)job->pixels;
    for (int64_t g = 0; g < groups; g++, first += job->group) {
        const double mean = group_sum(job, first) / count;
        for (int64_t c = first; c < first + job->group; c++) {
            job->tables.mean[c] = mean;
            job->tables.center[c] = (float)mean;
        }
    }
}

/* The factor of the difference. Squares were taken of differences from the rounded mean. */
static void find_inverses(const job *job, int64_t first, int64_t groups)
{
    const double count = (double)job->group * (double)job->pixels;
    for (int64_t g = 0; g < groups; g++, first += job->group) {
        const double off = job->tables.mean[first] - (double)job->tables.center[first];
        const double variance = group_sum(job, first) / count - off * off;
        const float inverse = (float)(1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + (double)job->epsilon));
        for (int64_t c = first; c < first + job->group; c++) job->tables.inverse[c] = inverse;
    }
}

typedef void (*block_fn)(void *argument, int64_t block);
typedef void (*each_block_fn)(job *job, block_fn fn, int64_t first, int64_t end);

/* Three passes over a unit, whose blocks are [first, end). */
static void norm_blocks_run_unit(job *job, int64_t unit, each_block_fn each)
{
    const int64_t of_image = prn_ceil_div(job->blocks, job->unit_blocks), image = unit / of_image * job->blocks;
    const int64_t first = unit % of_image * job->unit_blocks, end = prn_least(first + job->unit_blocks, job->blocks);
    const int64_t channel = first * job->lanes,
                  groups = (prn_least(end * job->lanes, job->channels) - channel) / job->group;
    each(job, norm_blocks_sum_block, image + first, image + end);
    find_centers(job, image * job->lanes + channel, groups);
    each(job, deviate_block, image + first, image + end);
    find_inverses(job, image * job->lanes + channel, groups);
    each(job, normalise_block, image + first, image + end);
}

static void one_by_one(job *job, block_fn fn, int64_t first, int64_t end)
{
    for (int64_t block = first; block < end && !prn_cancelled(); block++) fn(job, block);
}

static void unit_task(void *argument, int64_t unit)
{
    norm_blocks_run_unit(argument, unit, one_by_one);
}

typedef struct shared_blocks {
    job *job;
    block_fn fn;
    int64_t first;
} shared_blocks;

static void block_task(void *argument, int64_t index)
{
    const shared_blocks *shared = argument;
    shared->fn(shared->job, shared->first + index);
}

static void side_by_side(job *job, block_fn fn, int64_t first, int64_t end)
{
    shared_blocks shared = {job, fn, first};
    prn_parallel_tasks(job->context->threads, end - first, block_task, &shared);
}

/* Normalises a tensor in channel blocks. A unit is the fewest blocks that hold whole groups; units run in parallel, or
 * side by side if there are fewer than threads. */
void prn_norm_blocks_run(const prony_context *context, int64_t groups, float epsilon)
{
    const prony_value *x = context->inputs[0];
    job job = {.context = context,
               .x = x->data,
               .y = context->outputs[0]->data,
               .channels = x->shape.dim[1],
               .epsilon = epsilon};
    job.lanes = prn_layout_block((prn_layout)x->layout);
    job.blocks = prn_ceil_div(job.channels, job.lanes);
    job.pixels = prn_shape_count(&x->shape, 2, x->shape.rank);
    const int64_t images = x->shape.dim[0], whole = job.blocks * job.lanes;
    if (images * whole * job.pixels == 0) return;
    job.group = job.channels / groups;
    job.unit_blocks = 1;
    while (job.unit_blocks * job.lanes % job.group && job.unit_blocks < job.blocks) job.unit_blocks++;
    job.units = images * prn_ceil_div(job.blocks, job.unit_blocks);
    job.tables = tables_in(context->scratch, (size_t)(images * whole), (size_t)whole);
    norm_blocks_spread(context->inputs[1], job.channels, whole, job.tables.scale);
    norm_blocks_spread(context->inputs[2], job.channels, whole, job.tables.shift);
    for (int64_t c = 0; c < images * whole; c++)
        job.tables.center[c] = job.tables.inverse[c] = 0.0f; /* of lanes beyond the channels */
    if (job.units >= context->threads)
        prn_parallel_tasks(images * whole * job.pixels < TASK_FLOATS ? 1 : context->threads, job.units, unit_task,
                           &job);
    else
        for (int64_t unit = 0; unit < job.units && !prn_cancelled(); unit++)
            norm_blocks_run_unit(&job, unit, side_by_side);
    if (!prn_post_ops_keep_zero(context->post_ops)) prn_clear_padding(context->outputs[0]);
}
