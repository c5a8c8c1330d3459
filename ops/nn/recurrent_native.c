/* The recurrence in float32. Time is cut into blocks: one product projects a block of inputs for the whole batch, then
 * each direction of each group of batch items walks the block by itself, a small product with R and one row after the
 * other.
 *
 *   scratch: bias | projections of a block | gates | temp | h | c | W and R packed, where they are no constants
 *
 * The state belongs to one plan step and is read-only. Invariant: blocks and groups depend on shapes alone. */
#include "base/alloc.h"
#include "base/ceil_div.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "ops/loops/gemm_kernel.h"
#include "ops/loops/vec.h"
#include "ops/nn/recurrent.h"

enum {
    BLOCK_ROWS = 512, /* of X in one projection: enough to use W well, few enough to find the result in the cache */
    GROUP_ROWS = 12,  /* batch items that walk together while R stays in the cache … */
    GROUP_ROWS_LARGE = 48,     /* … and where it does not */
    CACHED_FLOATS = 1 << 16,   /* R of one direction, up to which it stays */
    HEAVY_STEP_MACS = 1 << 21, /* a step that is better shared by all threads */
    PARTS = 2
};

/* Constant weights in packed form; NULL where they are read as they are, or packed in scratch by each run. */
typedef struct native_state {
    const float *w[PRN_MAX_DIRECTIONS], *r[PRN_MAX_DIRECTIONS][PARTS];
    bool pack_w, pack_r;
} native_state;

typedef struct native_job {
    prn_recurrent node;
    native_state weights;
    const prn_vec_table *vec;
    int64_t block, group, groups; /* steps of a block, batch items of a group, groups */
    int64_t part[PARTS + 1];      /* first column of each product with R, and their end */
    float *bias, *projection, *gates, *temp, *h, *c;
    int64_t state_row, state_direction; /* of h and c */
    int threads;                        /* inside of a step */
    int64_t first;
} native_job;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- where things lie */

static void cut(native_job *job)
{
    const prn_recurrent *node = &job->node;
    const int64_t rows = node->hidden * node->columns <= CACHED_FLOATS ? GROUP_ROWS : GROUP_ROWS_LARGE;
    job->groups = prn_ceil_div(node->batch, rows);
    job->group = job->groups ? prn_ceil_div(node->batch, job->groups) : 0;
    job->block = node->batch ? least(node->steps, prn_ceil_div(BLOCK_ROWS, node->batch)) : 0;
    job->part[1] = node->cell->first_gates(node) * node->hidden;
    job->part[PARTS] = node->columns;
}

/* One stretch of scratch after the other, each from a multiple of a cache line on. NULL base: only counts. */
static bool take(uint64_t *total, float **out, float *base, uint64_t a, uint64_t b)
{
    uint64_t elements;
    *out = base ? base + *total : NULL;
    return prn_mul_u64(&elements, a, b) && elements < INT64_MAX - 15 &&
           prn_add_u64(total, *total, (elements + 15) / 16 * 16);
}

static uint64_t packed_count(int64_t k, int64_t n)
{
    return (uint64_t)prn_gemm_packed_count(k, n);
}

static bool lay_out(native_job *job, float *base, uint64_t *total)
{
    const prn_recurrent *node = &job->node;
    const uint64_t d = (uint64_t)node->directions, columns = (uint64_t)node->columns;
    const uint64_t rows = d * (uint64_t)node->batch, hidden = (uint64_t)node->hidden;
    bool fits = take(total, &job->bias, base, d, columns) &&
                take(total, &job->projection, base, rows * (uint64_t)job->block, columns) &&
                take(total, &job->gates, base, rows, columns) && take(total, &job->temp, base, rows, hidden) &&
                take(total, &job->h, base, node->yh ? 0 : rows, hidden) &&
                take(total, &job->c, base, node->yc || !node->cell->has_c ? 0 : rows, hidden);
    for (int i = 0; i < node->directions && fits; i++) {
        float *packed[1 + PARTS];
        fits = take(total, &packed[0], base, job->weights.pack_w ? packed_count(node->input, node->columns) : 0, 1);
        for (int p = 0; p < PARTS && fits; p++) {
            const int64_t n = job->part[p + 1] - job->part[p];
            fits = take(total, &packed[1 + p], base, job->weights.pack_r ? packed_count(node->hidden, n) : 0, 1);
            if (job->weights.pack_r) job->weights.r[i][p] = packed[1 + p];
        }
        if (job->weights.pack_w) job->weights.w[i] = packed[0];
    }
    return fits;
}

/* ---- products */

static const float *values(const prony_value *value)
{
    return value ? value->data : NULL;
}

static prn_gemm projection_product(const native_job *job, int d)
{
    const prn_recurrent *node = &job->node;
    const float *w = values(node->w);
    return (prn_gemm){.m = job->block,
                      .n = node->columns,
                      .k = node->input,
                      .a_row = node->input,
                      .a_col = 1,
                      .b = w ? w + d * node->columns * node->input : NULL,
                      .b_row = 1,
                      .b_col = node->input,
                      .packed = job->weights.w[d],
                      .c_row = node->columns,
                      .alpha = 1.0f,
                      .beta = 1.0f};
}

static prn_gemm step_product(const native_job *job, int d, int part)
{
    const prn_recurrent *node = &job->node;
    const float *r = values(node->r);
    return (prn_gemm){.m = job->group,
                      .n = job->part[part + 1] - job->part[part],
                      .k = node->hidden,
                      .a_row = part == 0 ? job->state_row : node->hidden,
                      .a_col = 1,
                      .b = r ? r + (d * node->columns + job->part[part]) * node->hidden : NULL,
                      .b_row = 1,
                      .b_col = node->hidden,
                      .packed = job->weights.r[d][part],
                      .c_row = node->columns,
                      .alpha = 1.0f,
                      .beta = 1.0f};
}

/* ---- preparing */

/* A constant R is packed even for one row: every step reads it, and what the cache cannot hold is read in long runs. */
static bool keep_plain(const prn_gemm *gemm, const prony_value *weights)
{
    if (gemm->m == 1) return !weights->data;
    return prn_gemm_plain_is_best(gemm);
}

prony_status prn_recurrent_native_prepare(const prony_context *context, prn_prepared *out)
{
    native_job job = {0};
    uint64_t total = 0;
    PRN_TRY(prn_recurrent_describe(context, &job.node));
    cut(&job);
    for (int d = 0; d < job.node.directions; d++) {
        const prn_gemm projection = projection_product(&job, d);
        const bool plain_w = keep_plain(&projection, job.node.w);
        job.weights.pack_w = !plain_w && !job.node.w->data;
        if (!plain_w && projection.b) PRN_TRY(prn_gemm_pack_shared(context, &projection, &job.weights.w[d]));
        for (int p = 0; p < PARTS; p++) {
            const prn_gemm step = step_product(&job, d, p);
            const bool plain_r = keep_plain(&step, job.node.r);
            if (step.n == 0) continue;
            job.weights.pack_r = !plain_r && !job.node.r->data;
            if (!plain_r && step.b) PRN_TRY(prn_gemm_pack_shared(context, &step, &job.weights.r[d][p]));
        }
    }
    if (!lay_out(&job, NULL, &total) || total > INT64_MAX / sizeof(float))
        return prony_fail(context, PRONY_LIMIT, "the sequence is too large");
    native_state *state = prn_alloc(sizeof *state);
    if (!state) return prn_no_memory(context->error);
    *state = job.weights;
    *out = (prn_prepared){state, (size_t)total * sizeof(float)};
    return PRONY_OK;
}

void prn_recurrent_native_release(void *state)
{
    prn_free(state);
}

bool prn_recurrent_native_usable(const prony_context *context)
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
static void sum_biases(const native_job *job)
{
    const prn_recurrent *node = &job->node;
    const int64_t columns = node->columns;
    const int64_t joined = node->params->linear_before_reset ? columns - node->hidden : columns;
    for (int d = 0; d < node->directions && node->b; d++) {
        const float *b = values(node->b) + d * 2 * columns;
        float *sum = job->bias + d * columns;
        job->vec->vv[PRN_BINARY_ADD](sum, b, b + columns, joined);
        memcpy(sum + joined, b + joined, (size_t)(columns - joined) * sizeof(float));
    }
}

static void pack_weights(native_job *job, int threads)
{
    for (int d = 0; d < job->node.directions; d++) {
        prn_gemm product = projection_product(job, d);
        if (job->weights.pack_w) prn_gemm_pack(threads, &product, (float *)job->weights.w[d]);
        for (int p = 0; p < PARTS && job->weights.pack_r; p++) {
            product = step_product(job, d, p);
            if (product.n) prn_gemm_pack(threads, &product, (float *)job->weights.r[d][p]);
        }
    }
}

/* The states start out where they will end: in the outputs, or in scratch. */
static void start_state(const native_job *job, const prony_value *from, float *state)
{
    const prn_recurrent *node = &job->node;
    const size_t bytes = (size_t)node->hidden * sizeof(float);
    for (int64_t d = 0; d < node->directions; d++) {
        for (int64_t b = 0; b < node->batch; b++) {
            float *to = state + d * job->state_direction + b * job->state_row;
            if (from) {
                memcpy(to, values(from) + d * node->state_direction + b * node->state_row, bytes);
            } else {
                memset(to, 0, bytes);
            }
        }
    }
}

typedef struct projection_offsets {
    int64_t x_row, c_row;
} projection_offsets;

static void offsets_by_row(const void *argument, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    const projection_offsets *offsets = argument;
    *a = item * offsets->x_row;
    *b = 0;
    *c = item * offsets->c_row;
}

/* First time step of the block that begins with the walk's step `first`, for a direction. */
static int64_t block_start(const native_job *job, int64_t first, int64_t count, int d)
{
    return job->node.reverse[d] ? job->node.steps - first - count : first;
}

static void project(const native_job *job, int threads, int64_t first, int64_t count)
{
    const prn_recurrent *node = &job->node;
    for (int d = 0; d < node->directions; d++) {
        prn_gemm product = projection_product(job, d);
        product.a = values(node->x) + block_start(job, first, count, d) * node->x_step;
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

/* One step of a group: items [b0, b1) of direction d at time t, the block's `at`-th. */
static void walk_step(const native_job *job, int d, int64_t b0, int64_t b1, int64_t t, int64_t at)
{
    const prn_recurrent *node = &job->node;
    const int64_t columns = node->columns, hidden = node->hidden;
    const int64_t at_row = node->params->layout ? job->block : 1, at_step = node->params->layout ? 1 : node->batch;
    const float *p = node->p ? values(node->p) + d * 3 * hidden : NULL;
    const float *rb = node->b ? values(node->b) + (d * 2 + 1) * columns : NULL;
    for (int part = 0; part < PARTS; part++) {
        prn_gemm product = step_product(job, d, part);
        if (product.n == 0) continue;
        const int64_t state = d * job->state_direction + b0 * job->state_row, first = d * node->batch + b0;
        product.m = b1 - b0;
        product.a = part == 0 ? job->h + state : job->temp + first * hidden;
        product.c = job->gates + first * columns + job->part[part];
        prn_gemm_run(job->threads, &product, NULL, NULL);
        for (int64_t b = b0; b < b1; b++) {
            if (node->lengths && t >= ((const int32_t *)node->lengths->data)[b]) continue;
            const int64_t row = d * node->batch + b,
                          projected = d * job->block * node->batch + b * at_row + at * at_step;
            node->cell->row_f32[part](&(prn_recurrent_row_f32){
                .node = node,
                .direction = d,
                .x = job->projection + projected * columns,
                .rb = rb,
                .p = p,
                .gates = job->gates + row * columns,
                .h = job->h + d * job->state_direction + b * job->state_row,
                .c = job->c + d * job->state_direction + b * job->state_row,
                .temp = job->temp + row * hidden,
            });
        }
    }
}

static void store_step(const native_job *job, int d, int64_t b0, int64_t b1, int64_t t)
{
    const prn_recurrent *node = &job->node;
    const size_t bytes = (size_t)node->hidden * sizeof(float);
    for (int64_t b = b0; b < b1; b++) {
        float *y = (float *)node->y->data + t * node->y_step + d * node->y_direction + b * node->y_row;
        if (node->lengths && t >= ((const int32_t *)node->lengths->data)[b]) {
            memset(y, 0, bytes);
        } else {
            memcpy(y, job->h + d * job->state_direction + b * job->state_row, bytes);
        }
    }
}

/* A block of steps for one group of one direction. */
static void walk(void *argument, int64_t task)
{
    const native_job *job = argument;
    const prn_recurrent *node = &job->node;
    const int d = (int)(task / job->groups);
    const int64_t count = least(job->block, node->steps - job->first), start = block_start(job, job->first, count, d);
    const int64_t b0 = task % job->groups * job->group, b1 = least(b0 + job->group, node->batch);
    for (int64_t step = 0; step < count && b0 < b1 && !prn_stopped(); step++) {
        const int64_t at = node->reverse[d] ? count - 1 - step : step;
        walk_step(job, d, b0, b1, start + at, at);
        if (node->y) store_step(job, d, b0, b1, start + at);
    }
}

prony_status prn_recurrent_native_run(const prony_context *context)
{
    native_job job = {.weights = *(const native_state *)context->state, .vec = prn_vec(), .threads = context->threads};
    uint64_t total = 0;
    PRN_TRY(prn_recurrent_describe(context, &job.node));
    PRN_TRY(prn_recurrent_check_lengths(context, &job.node));
    const prn_recurrent *node = &job.node;
    if (node->batch == 0 || node->hidden == 0) return PRONY_OK;
    cut(&job);
    if (!lay_out(&job, context->scratch, &total)) return PRONY_OK;
    job.state_row = node->state_row;
    job.state_direction = node->state_direction;
    if (node->yh) job.h = node->yh->data;
    if (node->yc) job.c = node->yc->data;
    start_state(&job, node->h0, job.h);
    if (node->cell->has_c) start_state(&job, node->c0, job.c);
    pack_weights(&job, context->threads);
    sum_biases(&job);
    const int64_t tasks = node->directions * job.groups;
    const bool heavy = job.group * node->hidden * node->columns >= HEAVY_STEP_MACS && tasks < context->threads;
    for (job.first = 0; job.first < node->steps && !prn_stopped(); job.first += job.block) {
        project(&job, context->threads, job.first, least(job.block, node->steps - job.first));
        if (tasks == 1 || heavy) {
            for (int64_t task = 0; task < tasks; task++) walk(&job, task);
        } else {
            prn_parallel_tasks(context->threads, tasks, walk, &job);
        }
    }
    return PRONY_OK;
}
