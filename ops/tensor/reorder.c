/* prony::Reorder: the same tensor in another memory layout. The plan puts it where two kernels' layouts differ; it has
 * no attributes, the layouts stand in the values.
 *
 * Every layout keeps eight consecutive channels of one image (a group, starting at a multiple of eight) at a constant
 * distance from each other, and so its positions; a group is therefore copied, or transposed tile by tile.
 * Invariant: lanes behind the last channel are written as zeros. */
#include "ops/op.h"
#include "base/integers.h"

#include "base/cpu/simd.h"
#include "base/threads/parallel.h"
#include "base/shape.h"
#include "base/threads/cancel.h"
#include "ops/tensor/reorder_simd.h"

#include <string.h>

enum { GROUP = PRN_REORDER_GROUP, TASK_POSITIONS = 512, BESIDE_POSITIONS = 64, TASK_ELEMENTS = 8192 };

/* ---- shapes */

static prony_status reorder_infer(const prony_context *context)
{
    const prony_value *x = context->inputs[0];
    if (x->kind != PRONY_TENSOR || x->dtype == PRONY_STRING ||
        prony_dtype_bytes(x->dtype, 1) != prn_dtype_bits(x->dtype) / 8)
        return prony_fail(context, PRONY_UNSUPPORTED, "only tensors of whole-byte elements have layouts");
    return prn_infer_same(context);
}

static void given_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    in[0] = (prn_layout)context->inputs[0]->layout;
    out[0] = (prn_layout)context->outputs[0]->layout;
}

/* ---- addressing */

typedef struct job {
    const char *x;
    char *y;
    size_t size; /* of an element */
    prn_layout from, to;
    int64_t channels, spatial;
    int64_t first_group, groups, pieces; /* groups of an image (padding of the output included), pieces of its
                                            positions */
    /* A part is one piece of one group; a task of a single small one would not be worth a thread. */
    int64_t parts, parts_per_task;
} job;

/* The start of channel c of image n, in elements, and how far its positions and the next channel of its group are. */
typedef struct place {
    int64_t start, position, channel;
} place;

static place reorder_find(const job *job, prn_layout layout, int64_t n, int64_t c)
{
    int64_t block = prn_layout_block(layout);
    if (block) {
        int64_t blocks = prn_ceil_div(job->channels, block);
        return (place){(n * blocks + c / block) * job->spatial * block + c % block, block, 1};
    }
    if (layout == PRN_NHWC) return (place){n * job->spatial * job->channels + c, job->channels, 1};
    return (place){(n * job->channels + c) * job->spatial, 1, job->spatial};
}

/* ---- native */

PRN_SIMD_PICK(prn_reorder_simd, prn_reorder_simd_, static const prn_reorder_simd *reorder_simd_table)

/* Part of a group of four-byte elements; lanes from `count` on become zeros where the output has them: position by
 * position, since a lane of all of them meets each cache line again. */
static void reorder_move_part(const job *job, place from, place to, int64_t count, int64_t begin, int64_t end)
{
    const float *x = (const float *)job->x + from.start;
    float *y = (float *)job->y + to.start;
    const bool lanes = prn_layout_block(job->to) != 0;
    for (int64_t p = begin; p < end && lanes; p++) {
        memset(y + p * to.position, 0, GROUP * sizeof *y);
        for (int64_t c = 0; c < count; c++) y[p * to.position + c] = x[p * from.position + c * from.channel];
    }
    for (int64_t c = 0; c < count && !lanes; c++) {
        for (int64_t p = begin; p < end; p++)
            y[p * to.position + c * to.channel] = x[p * from.position + c * from.channel];
    }
}

/* As above for elements of any size, and whole groups too. */
static void move_elements(const job *job, place from, place to, int64_t count, int64_t begin, int64_t end)
{
    int64_t lanes = prn_layout_block(job->to) ? GROUP : count;
    for (int64_t c = 0; c < lanes; c++) {
        for (int64_t p = begin; p < end; p++) {
            char *y = job->y + (size_t)(to.start + p * to.position + c * to.channel) * job->size;
            if (c < count)
                memcpy(y, job->x + (size_t)(from.start + p * from.position + c * from.channel) * job->size, job->size);
            else
                memset(y, 0, job->size);
        }
    }
}

/* As above for bytes. */
static void move_bytes(const job *job, place from, place to, int64_t count, int64_t begin, int64_t end)
{
    int64_t lanes = prn_layout_block(job->to) ? GROUP : count;
    const uint8_t *x = (const uint8_t *)job->x + from.start;
    uint8_t *y = (uint8_t *)job->y + to.start;
    if (lanes == 3 && from.position == 1 && to.channel == 1 && to.position == 3) {
        reorder_simd_table()->join_3(x + begin, from.channel, y + 3 * begin, end - begin);
        return;
    }
    for (int64_t p = begin; p < end; p++) {
        for (int64_t c = 0; c < lanes; c++)
            y[p * to.position + c * to.channel] = c < count ? x[p * from.position + c * from.channel] : 0;
    }
}

/* Moves one piece of positions of one group of channels between two layouts; lanes beyond the channels are set to 0. */
static void reorder_part(const job *job, int64_t part)
{
    int64_t piece = part % job->pieces, group = job->first_group + part / job->pieces % job->groups,
            n = part / (job->pieces * job->groups);
    int64_t begin = piece * TASK_POSITIONS,
            end = begin + TASK_POSITIONS < job->spatial ? begin + TASK_POSITIONS : job->spatial;
    int64_t c = group * GROUP, count = job->channels - c < GROUP ? job->channels - c : GROUP;
    place to = reorder_find(job, job->to, n, c), from = reorder_find(job, job->from, n, c);
    if (count < 0) count = 0;
    if (job->size == 1) {
        move_bytes(job, from, to, count, begin, end);
    } else if (job->size != sizeof(float)) {
        move_elements(job, from, to, count, begin, end);
    } else if (count < GROUP) {
        reorder_move_part(job, from, to, count, begin, end);
    } else if (from.channel == to.channel && from.channel != 1) {
        for (int64_t k = 0; k < GROUP; k++)
            memcpy(job->y + (size_t)(to.start + k * to.channel + begin) * job->size,
                   job->x + (size_t)(from.start + k * from.channel + begin) * job->size,
                   (size_t)(end - begin) * job->size);
    } else {
        reorder_simd_table()->move_group((const float *)job->x + from.start + begin * from.position, from.position,
                                         from.channel, (float *)job->y + to.start + begin * to.position, to.position,
                                         to.channel, end - begin);
    }
}

static void reorder_task(void *argument, int64_t task)
{
    const job *job = argument;
    int64_t begin = task * job->parts_per_task, end = begin + job->parts_per_task;
    for (int64_t part = begin; part < end && part < job->parts && !prn_cancelled(); part++) reorder_part(job, part);
}

/* Blocks of channels that lie side by side in both layouts, of some positions: lines of a position's channels are read
 * or written once. */
static void move_positions(void *argument, int64_t task)
{
    const job *job = argument;
    const int64_t pieces = prn_ceil_div(job->spatial, BESIDE_POSITIONS), n = task / pieces,
                  begin = task % pieces * BESIDE_POSITIONS;
    const int64_t block = prn_layout_block(job->from == PRN_NHWC ? job->to : job->from);
    const place from = reorder_find(job, job->from, n, 0), to = reorder_find(job, job->to, n, 0);
    const int64_t planes = job->spatial * block; /* from a block to the next, if not adjacent */
    reorder_simd_table()->move_blocks((const float *)job->x + from.start + begin * from.position, from.position,
                                      job->from == PRN_NHWC ? block : planes,
                                      (float *)job->y + to.start + begin * to.position, to.position,
                                      job->to == PRN_NHWC ? block : planes,
                                      prn_least(BESIDE_POSITIONS, job->spatial - begin), job->channels / block, block);
}

/* Between channels last and blocks: what fills whole blocks. The groups behind are left. */
static void move_beside(job *job, int threads, int64_t count)
{
    const prn_layout other = job->from == PRN_NHWC ? job->to : job->from;
    const int64_t block = prn_layout_block(other), whole = block ? job->channels / block * (block / GROUP) : 0;
    if (job->size != sizeof(float) || whole == 0 || (job->from != PRN_NHWC && job->to != PRN_NHWC)) return;
    const bool small = count * job->channels * job->spatial < TASK_ELEMENTS;
    prn_parallel_tasks(small ? 1 : threads, count * prn_ceil_div(job->spatial, BESIDE_POSITIONS), move_positions, job);
    job->first_group = whole;
    job->groups -= whole;
    job->parts = count * job->groups * job->pieces;
}

static int64_t images(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    return shape->rank < 2 ? 1 : shape->dim[0];
}

static bool reorder_read_job(const prony_context *context, job *job)
{
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    *job = (struct job){.x = x->data, .y = y->data, .size = prony_dtype_bytes(x->dtype, 1)};
    job->from = (prn_layout)x->layout;
    job->to = (prn_layout)y->layout;
    if (prony_shape_numel(&x->shape) == 0) return false;
    if (x->shape.rank < 2) {
        job->from = job->to = PRN_PLAIN;
        job->channels = 1;
        job->spatial = prony_shape_numel(&x->shape);
    } else {
        job->channels = x->shape.dim[1];
        job->spatial = prn_shape_count(&x->shape, 2, x->shape.rank);
    }
    int64_t block = prn_layout_block(job->to);
    if (block < GROUP) block = GROUP;
    job->groups = prn_ceil_div(job->channels, block) * (block / GROUP);
    job->pieces = prn_ceil_div(job->spatial, TASK_POSITIONS);
    job->parts = images(context) * job->groups * job->pieces;
    int64_t part_elements = GROUP * (job->pieces > 1 ? TASK_POSITIONS : job->spatial);
    job->parts_per_task = (TASK_ELEMENTS - 1) / part_elements + 1;
    return true;
}

static prony_status reorder_run_native(const prony_context *context)
{
    job job;
    if (!reorder_read_job(context, &job)) return PRONY_OK;
    move_beside(&job, context->threads, images(context));
    if (job.parts == 0) return PRONY_OK;
    int64_t tasks = (job.parts - 1) / job.parts_per_task + 1;
    prn_parallel_tasks(context->threads, tasks, reorder_task, &job);
    return PRONY_OK;
}

/* ---- reference */

static prony_status reorder_run_reference(const prony_context *context)
{
    job job;
    if (!reorder_read_job(context, &job)) return PRONY_OK;
    prn_cancellable_clear(job.y, prn_layout_bytes(context->outputs[0]));
    for (int64_t i = 0; i < images(context) * job.channels && !prn_cancelled(); i++) {
        place to = reorder_find(&job, job.to, i / job.channels, i % job.channels);
        place from = reorder_find(&job, job.from, i / job.channels, i % job.channels);
        for (int64_t p = 0; p < job.spatial && !prn_cancelled_at(p); p++)
            memcpy(job.y + (size_t)(to.start + p * to.position) * job.size,
                   job.x + (size_t)(from.start + p * from.position) * job.size, job.size);
    }
    return PRONY_OK;
}

static const prn_kernel kernels[] = {
    {.name = "reorder_native", .backend = "native", .layouts = given_layouts, .run = reorder_run_native},
    {.name = "reorder_ref", .backend = "reference", .layouts = given_layouts, .run = reorder_run_reference},
    {0}};

// clang-format off
const prn_op prn_ops_reorder[] = {
    {.name = "Reorder", .domain = "prony", .since_opset = 1, .inputs = {1, 1},
     .infer = reorder_infer, .cost = prn_cost_none, .cost_text = "none: data movement", .kernels = kernels},
    {0}};
// clang-format on
