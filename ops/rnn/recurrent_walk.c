/* A block of time steps of one group of batch items. With the usual functions a step is fused (recurrent_simd.h): its
 * two states take turns, since every unit reads all of the last one. Any other cell takes a product with R and one row
 * after the other. */
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/rnn/recurrent_native.h"

/* Multiply-adds of a fused step that are worth another thread, and that pass between two tests of cancellation. Chosen
 * without measurement: tens of microseconds. */
enum { PIECE_MACS = 1 << 19 };

static const float *recurrent_walk_values(const prony_value *value)
{
    return value ? value->data : NULL;
}

static bool has_ended(const prn_recurrent *node, int64_t b, int64_t t)
{
    return node->lengths && t >= ((const int32_t *)node->lengths->data)[b];
}

/* The start of the projections of batch item `b` at the block's step `at`, and how far apart items are. */
static const float *recurrent_walk_projected(const prn_recurrent_job *job, int d, int64_t b, int64_t at, int64_t *row)
{
    const prn_recurrent *node = &job->node;
    const int64_t at_row = node->params->layout ? job->block : 1, at_step = node->params->layout ? 1 : node->batch;
    *row = at_row * node->columns;
    return job->projection + (d * job->block * node->batch + b * at_row + at * at_step) * node->columns;
}

static float *output_row(const prn_recurrent *node, int d, int64_t b, int64_t t)
{
    return node->y ? (float *)node->y->data + t * node->y_step + d * node->y_direction + b * node->y_row : NULL;
}

/* ---- fused */

uint64_t prn_recurrent_packed_count(const prn_recurrent_job *job, int part)
{
    const int64_t hidden = job->node.hidden, columns = job->part[part + 1] - job->part[part];
    if (hidden == 0) return 0;
    /* Describing a node has checked that there is room for R's elements many times over. */
    return (uint64_t)(prn_ceil_div(hidden, job->simd->lanes) * job->simd->lanes * columns);
}

typedef struct pack_job {
    const float *r;
    float *packed;
    int64_t hidden, gates, lanes;
} pack_job;

static void recurrent_walk_pack_block(void *argument, int64_t block)
{
    const pack_job *job = argument;
    float *to = job->packed + block * job->hidden * job->gates * job->lanes;
    for (int64_t g = 0; g < job->gates; g++) {
        for (int64_t lane = 0; lane < job->lanes && !prn_cancelled(); lane++) {
            const int64_t unit = block * job->lanes + lane;
            const float *from = unit < job->hidden ? job->r + (g * job->hidden + unit) * job->hidden : NULL;
            for (int64_t k = 0; k < job->hidden; k++)
                to[(k * job->gates + g) * job->lanes + lane] = from ? from[k] : 0.0f;
        }
    }
}

void prn_recurrent_pack(const prn_recurrent_job *job, int threads, int direction, int part, float *packed)
{
    const prn_recurrent *node = &job->node;
    const float *r = recurrent_walk_values(node->r) + (direction * node->columns + job->part[part]) * node->hidden;
    pack_job work = {r, packed, node->hidden, (job->part[part + 1] - job->part[part]) / node->hidden, job->simd->lanes};
    prn_parallel_tasks(threads, prn_ceil_div(node->hidden, work.lanes), recurrent_walk_pack_block, &work);
}

typedef struct fused_job {
    void (*run)(const prn_recurrent_step *step, int64_t first, int64_t last);
    prn_recurrent_step step;
    int64_t blocks, piece, tasks; /* blocks of units, and of one task */
    bool alone;
} fused_job;

/* Several threads keep the pieces that they had. */
static void recurrent_walk_run_piece(void *argument, int64_t task)
{
    const fused_job *job = argument;
    if (job->alone && job->step.backward) task = job->tasks - 1 - task;
    const int64_t end = (task + 1) * job->piece;
    job->run(&job->step, task * job->piece, end < job->blocks ? end : job->blocks);
}

static void run_pieces(const prn_recurrent_job *job, int part, const prn_recurrent_step *step)
{
    const int64_t columns = job->part[part + 1] - job->part[part], lanes = job->simd->lanes;
    fused_job work = {.run = job->simd->step[job->step[part]],
                      .step = *step,
                      .blocks = prn_ceil_div(step->hidden, lanes),
                      .alone = job->threads <= 1};
    const int64_t macs = step->rows * columns * lanes; /* of a block */
    work.piece = macs < PIECE_MACS ? PIECE_MACS / macs : 1;
    work.tasks = prn_ceil_div(work.blocks, work.piece);
    prn_parallel_tasks(job->threads, work.tasks, recurrent_walk_run_piece, &work);
}

/* Items [b0, b1), none of which has ended, from the state at `last` to the one at `next`. Every other step goes
 * backward through the weights, and so begins with those that the last one left in the nearest cache. */
static void fused_run(const prn_recurrent_job *job, int d, int64_t b0, int64_t b1, int64_t t, int64_t at, bool odd,
                      const float *last, float *next)
{
    const prn_recurrent *node = &job->node;
    const int64_t hidden = node->hidden, row = d * node->batch + b0;
    const bool split = job->part[1] < job->part[PRN_RECURRENT_PARTS];
    prn_recurrent_step step = {.rows = b1 - b0,
                               .hidden = hidden,
                               .h = last + row * hidden,
                               .h_row = hidden,
                               .y_row = node->y_row,
                               .rs_c = job->rs_c,
                               .z = job->gates + row * hidden,
                               .z_row = hidden,
                               .in_row = hidden,
                               .out_row = hidden,
                               .backward = odd};
    step.x = recurrent_walk_projected(job, d, b0, at, &step.x_row);
    if (node->b && job->step[0] == PRN_STEP_GRU_LINEAR)
        step.rb = recurrent_walk_values(node->b) + (d * 2 + 1) * node->columns + 2 * hidden;
    if (node->cell->has_c) step.c = job->c + d * job->c_direction + b0 * job->rs_c;
    for (int part = 0; part < (split ? 2 : 1); part++) {
        const bool final = !split || part == 1;
        step.r = job->weights.r[d][part];
        step.in = part == 0 ? step.h : job->temp + row * hidden;
        step.out = (final ? next : job->temp) + row * hidden;
        step.y = final ? output_row(node, d, b0, t) : NULL;
        run_pieces(job, part, &step);
    }
}

static void fused_step(const prn_recurrent_job *job, int d, int64_t b0, int64_t b1, int64_t t, int64_t at, bool odd)
{
    const prn_recurrent *node = &job->node;
    const size_t bytes = (size_t)node->hidden * sizeof(float);
    const float *last = job->h + (odd ? job->h_other : 0);
    float *next = job->h + (odd ? 0 : job->h_other);
    for (int64_t b = b0, end; b < b1; b = end) {
        const bool ended = has_ended(node, b, t);
        end = b + 1;
        while (end < b1 && !ended && !has_ended(node, end, t)) end++;
        if (!ended) {
            fused_run(job, d, b, end, t, at, odd, last, next);
            continue;
        }
        const int64_t row = (d * node->batch + b) * node->hidden;
        memcpy(next + row, last + row, bytes);
        if (node->y) memset(output_row(node, d, b, t), 0, bytes);
    }
}

/* ---- any cell */

/* One step of a group: items [b0, b1) of direction d at time t, the block's `at`-th. */
static void plain_step(const prn_recurrent_job *job, int d, int64_t b0, int64_t b1, int64_t t, int64_t at)
{
    const prn_recurrent *node = &job->node;
    const int64_t columns = node->columns, hidden = node->hidden;
    const float *p = node->p ? recurrent_walk_values(node->p) + d * 3 * hidden : NULL;
    const float *rb = node->b ? recurrent_walk_values(node->b) + (d * 2 + 1) * columns : NULL;
    for (int part = 0; part < PRN_RECURRENT_PARTS; part++) {
        prn_gemm product = prn_recurrent_step_product(job, d, part);
        if (product.n == 0) continue;
        const int64_t state = d * job->h_direction + b0 * job->h_row, first = d * node->batch + b0;
        product.m = b1 - b0;
        product.a = part == 0 ? job->h + state : job->temp + first * hidden;
        product.c = job->gates + first * columns + job->part[part];
        prn_gemm_run(job->threads, &product, NULL, NULL);
        for (int64_t b = b0; b < b1; b++) {
            if (has_ended(node, b, t)) continue;
            const int64_t row = d * node->batch + b;
            int64_t unused;
            node->cell->row_f32[part](&(prn_recurrent_row_f32){
                .node = node,
                .direction = d,
                .x = recurrent_walk_projected(job, d, b, at, &unused),
                .rb = rb,
                .p = p,
                .gates = job->gates + row * columns,
                .h = job->h + d * job->h_direction + b * job->h_row,
                .c = job->c + d * job->c_direction + b * job->rs_c,
                .temp = job->temp + row * hidden,
            });
        }
    }
}

static void store_step(const prn_recurrent_job *job, int d, int64_t b0, int64_t b1, int64_t t)
{
    const prn_recurrent *node = &job->node;
    const size_t bytes = (size_t)node->hidden * sizeof(float);
    for (int64_t b = b0; b < b1; b++) {
        float *y = output_row(node, d, b, t);
        if (has_ended(node, b, t)) {
            memset(y, 0, bytes);
        } else {
            memcpy(y, job->h + d * job->h_direction + b * job->h_row, bytes);
        }
    }
}

int64_t prn_recurrent_block_start(const prn_recurrent_job *job, int64_t count, int direction)
{
    return job->node.reverse[direction] ? job->node.steps - job->first - count : job->first;
}

void prn_recurrent_walk(void *argument, int64_t task)
{
    const prn_recurrent_job *job = argument;
    const prn_recurrent *node = &job->node;
    const int d = (int)(task / job->groups);
    const int64_t left = node->steps - job->first, count = job->block < left ? job->block : left;
    const int64_t start = prn_recurrent_block_start(job, count, d);
    const int64_t b0 = task % job->groups * job->group, after = b0 + job->group;
    const int64_t b1 = after < node->batch ? after : node->batch;
    for (int64_t step = 0; step < count && b0 < b1 && !prn_cancelled(); step++) {
        const int64_t at = node->reverse[d] ? count - 1 - step : step;
        if (job->weights.fused) {
            fused_step(job, d, b0, b1, start + at, at, ((job->first + step) & 1) != 0);
            continue;
        }
        plain_step(job, d, b0, b1, start + at, at);
        if (node->y) store_step(job, d, b0, b1, start + at);
    }
}
