/* The recurrence in float32. Time is cut into blocks: one product projects a block of inputs for the whole batch, then
 * each direction of each group of batch items walks the block by itself (recurrent_walk.c).
 *
 *   scratch: bias | projections of a block | gates | temp | h | c | W and R packed, unless constant
 *
 * The state belongs to one plan step and is read-only. Invariant: blocks and groups depend on shapes alone. */
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/rnn/recurrent_native.h"

#include <stdio.h>
#include <string.h>

/* GROUP_ROWS: 8 sequences of 256 units take 0.88 of their time when R is read once for up to 12. CACHED_FLOATS is a
 * quarter MiB, which every second-level cache holds. HEAVY_STEP_MACS and PACKED_STEPS were chosen without measurement
 * of other values. */
enum {
    BLOCK_ROWS = 512, /* of X in one projection: enough to use W well, few enough to find the result in the cache */
    GROUP_ROWS = 12,  /* batch items that walk together while R stays in the cache … */
    GROUP_ROWS_LARGE = 48,     /* … and where it does not */
    CACHED_FLOATS = 1 << 16,   /* R of one direction, up to which it stays */
    HEAVY_STEP_MACS = 1 << 21, /* a step that is better shared by all threads */
    PARTS = PRN_RECURRENT_PARTS,
    PACKED_STEPS = 8 /* from here on packing a variable R for fused steps pays */
};

/* ---- where things lie */

PRN_SIMD_PICK(prn_recurrent_simd, prn_recurrent_simd_, static const prn_recurrent_simd *recurrent_native_simd_table)

static void recurrent_native_choose_tiling(prn_recurrent_job *job)
{
    const prn_recurrent *node = &job->node;
    job->simd = recurrent_native_simd_table();
    const int64_t rows = node->hidden * node->columns <= CACHED_FLOATS ? GROUP_ROWS : GROUP_ROWS_LARGE;
    job->groups = prn_ceil_div(node->batch, rows);
    job->group = job->groups ? prn_ceil_div(node->batch, job->groups) : 0;
    job->block = node->batch ? prn_least(node->steps, prn_ceil_div(BLOCK_ROWS, node->batch)) : 0;
    job->part[1] = node->cell->first_gates(node) * node->hidden;
    job->part[PARTS] = node->columns;
}

/* One stretch of scratch after the other, each from a multiple of a cache line on. NULL base: only counts. */
static bool recurrent_native_take(uint64_t *total, float **out, float *base, uint64_t a, uint64_t b)
{
    uint64_t elements;
    *out = base ? base + *total : NULL;
    return prn_mul_u64(&elements, a, b) && elements < INT64_MAX - 15 &&
           prn_add_u64(total, *total, (elements + 15) / 16 * 16);
}

static uint64_t packed_w_count(const prn_recurrent_job *job)
{
    return (uint64_t)prn_gemm_packed_count(job->node.input, job->node.columns);
}

static uint64_t packed_r_count(const prn_recurrent_job *job, int part)
{
    if (job->weights.fused) return prn_recurrent_packed_count(job, part);
    return (uint64_t)prn_gemm_packed_count(job->node.hidden, job->part[part + 1] - job->part[part]);
}

/* Assigns the scratch, or with `base` NULL only sums it into *total: both calls take the same pieces in the same
 * order. false: overflow. */
static bool recurrent_native_lay_out(prn_recurrent_job *job, float *base, uint64_t *total)
{
    const prn_recurrent *node = &job->node;
    const uint64_t d = (uint64_t)node->directions, columns = (uint64_t)node->columns;
    const uint64_t rows = d * (uint64_t)node->batch, hidden = (uint64_t)node->hidden;
    const bool fused = job->weights.fused, split = job->part[1] < job->part[PARTS];
    bool fits = recurrent_native_take(total, &job->bias, base, d, columns) &&
                recurrent_native_take(total, &job->projection, base, rows * (uint64_t)job->block, columns) &&
                recurrent_native_take(total, &job->gates, base, rows,
                                      !fused  ? columns
                                      : split ? hidden
                                              : 0) &&
                recurrent_native_take(total, &job->temp, base, rows, !fused || split ? hidden : 0) &&
                recurrent_native_take(total, &job->h, base,
                                      fused      ? 2 * rows
                                      : node->yh ? 0
                                                 : rows,
                                      hidden) &&
                recurrent_native_take(total, &job->c, base, node->yc || !node->cell->has_c ? 0 : rows, hidden);
    for (int i = 0; i < node->directions && fits; i++) {
        float *packed[1 + PARTS];
        fits = recurrent_native_take(total, &packed[0], base, job->weights.pack_w ? packed_w_count(job) : 0, 1);
        for (int p = 0; p < PARTS && fits; p++) {
            fits =
                recurrent_native_take(total, &packed[1 + p], base, job->weights.pack_r ? packed_r_count(job, p) : 0, 1);
            if (job->weights.pack_r) job->weights.r[i][p] = packed[1 + p];
        }
        if (job->weights.pack_w) job->weights.w[i] = packed[0];
    }
    return fits;
}

/* ---- products */

static const float *recurrent_native_values(const prony_value *value)
{
    return value ? value->data : NULL;
}

static prn_gemm projection_product(const prn_recurrent_job *job, int d)
{
    const prn_recurrent *node = &job->node;
    const float *w = recurrent_native_values(node->w);
    return (prn_gemm){.m = job->block,
                      .n = node->columns,
                      .k = node->input,
                      .rs_a = node->input,
                      .cs_a = 1,
                      .b = w ? w + d * node->columns * node->input : NULL,
                      .rs_b = 1,
                      .cs_b = node->input,
                      .packed = job->weights.w[d],
                      .rs_c = node->columns,
                      .alpha = 1.0f,
                      .beta = 1.0f,
                      .parts = node->parts};
}

prn_gemm prn_recurrent_step_product(const prn_recurrent_job *job, int direction, int part)
{
    const prn_recurrent *node = &job->node;
    const float *r = recurrent_native_values(node->r);
    return (prn_gemm){.m = job->group,
                      .n = job->part[part + 1] - job->part[part],
                      .k = node->hidden,
                      .rs_a = part == 0 ? job->h_row : node->hidden,
                      .cs_a = 1,
                      .b = r ? r + (direction * node->columns + job->part[part]) * node->hidden : NULL,
                      .rs_b = 1,
                      .cs_b = node->hidden,
                      .packed = job->weights.r[direction][part],
                      .rs_c = node->columns,
                      .alpha = 1.0f,
                      .beta = 1.0f,
                      .parts = node->parts};
}

/* ---- preparing */

/* A constant R is packed even for one row: every step reads it, and what the cache cannot hold is read in long runs. */
static bool keep_plain(const prn_gemm *gemm, const prony_value *weights)
{
    if (gemm->m == 1) return !weights->data;
    return prn_gemm_plain_is_best(gemm);
}

/* True if every step of every direction is one of those in recurrent_simd.h, which says which ones. */
static bool is_fused(const prn_recurrent *node, prn_recurrent_step_id *steps)
{
    if (node->params->clip < INFINITY || node->p) return false;
    for (int d = 0; d < node->directions; d++) {
        prn_recurrent_step_id own[PARTS] = {0};
        if (!node->cell->fused_steps(node, d, own)) return false;
        if (d > 0 && own[0] != steps[0]) return false;
        memcpy(steps, own, sizeof own);
    }
    return true;
}

typedef struct pack_argument {
    const prn_recurrent_job *job;
    int direction, part;
} pack_argument;

static prony_status recurrent_native_build_packed(const prony_context *context, void *argument, void *packed)
{
    const pack_argument *pack = argument;
    prn_recurrent_pack(pack->job, context->threads, pack->direction, pack->part, packed);
    return PRONY_OK;
}

/* A constant R, for the steps of one part and direction. */
static prony_status pack_r_shared(const prony_context *context, prn_recurrent_job *job, int d, int part)
{
    const prn_gemm product = prn_recurrent_step_product(job, d, part);
    if (!product.b || product.n == 0) return PRONY_OK;
    if (!job->weights.fused) return prn_gemm_pack_shared(context, &product, &job->weights.r[d][part]);
    pack_argument argument = {job, d, part};
    const void *out = NULL;
    const prn_pack_key key = {.build = recurrent_native_build_packed,
                              .table = job->simd,
                              .size = {job->weights.fused, d, part, product.k, product.n, product.rs_b, product.cs_b}};
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, (int64_t)packed_r_count(job, part));
    PRN_TRY(context->services->packed(context, product.b, &key, bytes, &argument, &out));
    job->weights.r[d][part] = out;
    return PRONY_OK;
}

static prony_status pack_constants(const prony_context *context, prn_recurrent_job *job)
{
    prn_recurrent_weights *weights = &job->weights;
    const bool constant_r = job->node.r->data != NULL, some = job->node.hidden > 0;
    weights->fused = some && is_fused(&job->node, job->step) && (constant_r || job->node.steps >= PACKED_STEPS);
    for (int d = 0; d < job->node.directions; d++) {
        const prn_gemm projection = projection_product(job, d);
        const bool plain_w = keep_plain(&projection, job->node.w);
        weights->pack_w = !plain_w && !job->node.w->data;
        if (!plain_w && projection.b) PRN_TRY(prn_gemm_pack_shared(context, &projection, &weights->w[d]));
        for (int p = 0; p < PARTS; p++) {
            const prn_gemm step = prn_recurrent_step_product(job, d, p);
            const bool plain_r = !weights->fused && keep_plain(&step, job->node.r);
            if (step.n == 0) continue;
            weights->pack_r = !plain_r && !constant_r;
            if (!plain_r) PRN_TRY(pack_r_shared(context, job, d, p));
        }
    }
    return PRONY_OK;
}

prony_status prn_recurrent_native_prepare(const prony_context *context, prn_prepared *out)
{
    prn_recurrent_job job = {.vec = prn_vec()};
    uint64_t total = 0;
    PRN_TRY(prn_recurrent_describe(context, &job.node));
    recurrent_native_choose_tiling(&job);
    PRN_TRY(pack_constants(context, &job));
    if (!recurrent_native_lay_out(&job, NULL, &total) || total > INT64_MAX / sizeof(float))
        return prony_fail(context, PRONY_LIMIT, "the sequence is too large");
    out->scratch_bytes = (size_t)total * sizeof(float);
    return prn_prepared_keep(context, &job, sizeof job, out);
}

bool prn_recurrent_native_supported(const prony_context *context)
{
    prn_recurrent node;
    if (prn_recurrent_describe(context, &node) != PRONY_OK) return false;
    const int functions = node.cell->functions;
    for (int i = 0; i < node.directions * functions; i++) {
        if (node.gate[i / functions][i % functions].id == PRN_GATE_THRESHOLDED_RELU) return false;
    }
    return true;
}

/* ---- running */

/* Wb + Rb, apart from the gate whose Rb goes through the reset gate. */
static void sum_biases(const prn_recurrent_job *job)
{
    const prn_recurrent *node = &job->node;
    const int64_t columns = node->columns;
    const int64_t joined = node->params->linear_before_reset ? columns - node->hidden : columns;
    for (int d = 0; d < node->directions && node->b; d++) {
        const float *b = recurrent_native_values(node->b) + d * 2 * columns;
        float *sum = job->bias + d * columns;
        job->vec->vv[PRN_BINARY_ADD](sum, b, b + columns, joined);
        memcpy(sum + joined, b + joined, (size_t)(columns - joined) * sizeof(float));
    }
}

static void recurrent_native_pack_weights(prn_recurrent_job *job, int threads)
{
    for (int d = 0; d < job->node.directions; d++) {
        prn_gemm product = projection_product(job, d);
        if (job->weights.pack_w) prn_gemm_pack(threads, &product, (float *)job->weights.w[d]);
        for (int p = 0; p < PARTS && job->weights.pack_r; p++) {
            product = prn_recurrent_step_product(job, d, p);
            float *to = (float *)job->weights.r[d][p];
            if (product.n && job->weights.fused) prn_recurrent_pack(job, threads, d, p, to);
            if (product.n && !job->weights.fused) prn_gemm_pack(threads, &product, to);
        }
    }
}

static void start_state(const prn_recurrent *node, const prony_value *from, float *state, int64_t direction,
                        int64_t row)
{
    const size_t bytes = (size_t)node->hidden * sizeof(float);
    for (int64_t d = 0; d < node->directions; d++) {
        for (int64_t b = 0; b < node->batch; b++) {
            float *to = state + d * direction + b * row;
            if (from) {
                memcpy(to, recurrent_native_values(from) + d * node->state_direction + b * node->state_row, bytes);
            } else {
                memset(to, 0, bytes);
            }
        }
    }
}

typedef struct projection_offsets {
    int64_t x_row, rs_c;
} projection_offsets;

static void offsets_by_row(const void *argument, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    const projection_offsets *offsets = argument;
    *a = item * offsets->x_row;
    *b = 0;
    *c = item * offsets->rs_c;
}

static void project(const prn_recurrent_job *job, int threads, int64_t count)
{
    const prn_recurrent *node = &job->node;
    for (int d = 0; d < node->directions; d++) {
        prn_gemm product = projection_product(job, d);
        product.a = recurrent_native_values(node->x) + prn_recurrent_block_start(job, count, d) * node->x_step;
        product.c = job->projection + d * job->block * node->batch * node->columns;
        product.m = count;
        if (node->b) {
            product.bias = job->bias + d * node->columns;
            product.bias_col = 1;
        }
        const projection_offsets rows = {node->x_row, job->block * node->columns};
        const prn_gemm_batch batch = {node->batch, offsets_by_row, &rows};
        const bool by_row = node->params->layout && node->batch > 1;
        if (!by_row) product.m *= node->batch;
        prn_gemm_run(threads, &product, by_row ? &batch : NULL, NULL);
    }
}

/* States start out where they will end, in the outputs or in scratch; those of h in fused steps are never the
 * outputs. */
static void place_states(prn_recurrent_job *job)
{
    const prn_recurrent *node = &job->node;
    job->h_row = job->rs_c = node->state_row;
    job->h_direction = job->c_direction = node->state_direction;
    if (job->weights.fused) {
        job->h_row = node->hidden;
        job->h_direction = node->batch * node->hidden;
        job->h_other = node->directions * job->h_direction;
    } else if (node->yh) {
        job->h = node->yh->data;
    }
    if (node->yc) job->c = node->yc->data;
    start_state(node, node->h0, job->h, job->h_direction, job->h_row);
    if (node->cell->has_c) start_state(node, node->c0, job->c, job->c_direction, job->rs_c);
}

static void store_last(const prn_recurrent_job *job)
{
    const prn_recurrent *node = &job->node;
    const float *last = job->h + (node->steps & 1 ? job->h_other : 0);
    for (int64_t d = 0; d < node->directions; d++) {
        for (int64_t b = 0; b < node->batch; b++)
            memcpy((float *)node->yh->data + d * node->state_direction + b * node->state_row,
                   last + d * job->h_direction + b * job->h_row, (size_t)node->hidden * sizeof(float));
    }
}

/* Blocks of steps: one product projects the inputs of the whole block, then each direction and group of rows walks its
 * steps. */
prony_status prn_recurrent_native_run(const prony_context *context)
{
    prn_recurrent_job job = *(const prn_recurrent_job *)context->state;
    uint64_t total = 0;
    job.threads = context->threads;
    prn_recurrent_operands(context, &job.node);
    PRN_TRY(prn_recurrent_check_lengths(context, &job.node));
    const prn_recurrent *node = &job.node;
    if (node->batch == 0 || node->hidden == 0) return PRONY_OK;
    if (!recurrent_native_lay_out(&job, context->scratch, &total)) return PRONY_OK;
    place_states(&job);
    recurrent_native_pack_weights(&job, context->threads);
    sum_biases(&job);
    const int64_t tasks = node->directions * job.groups;
    const bool heavy = job.group * node->hidden * node->columns >= HEAVY_STEP_MACS && tasks < context->threads;
    for (job.first = 0; job.first < node->steps && !prn_cancelled(); job.first += job.block) {
        project(&job, context->threads, prn_least(job.block, node->steps - job.first));
        if (tasks == 1 || heavy) {
            for (int64_t task = 0; task < tasks; task++) prn_recurrent_walk(&job, task);
        } else {
            prn_parallel_tasks(context->threads, tasks, prn_recurrent_walk, &job);
        }
    }
    if (job.weights.fused && node->yh) store_last(&job);
    return PRONY_OK;
}
