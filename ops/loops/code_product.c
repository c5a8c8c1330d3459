/* Packing of weights, and the product cut into tasks.
 *
 *                  columns: panels of 32, packed once
 *              +-----+-----+-----+
 *   64 rows    |32x32|     |     |   a task fetches its rows once and walks the panels; few rows are fetched by all
 *   of codes   |     |     |     |   threads first, and the panels are shared out
 *              +-----+-----+-----+
 *
 * Invariant: tasks are cut by the problem alone; which piece of scratch a task uses changes no result. */
#include "ops/loops/code_product.h"

#include "base/integers.h"
#include "base/parallel.h"
#include "base/simd.h"
#include "base/stop.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

PRN_SIMD_PICK_DOT(prn_code_dot, prn_code_dot_, const prn_code_dot *prn_code_dot_table)

enum {
    BLOCK = 64,            /* rows of a task */
    FEW_BLOCKS = 8,        /* below which rows are fetched first and panels shared out */
    FETCH_ROWS = 16,       /* of a task that only fetches */
    DEPTH_PIECE = 1 << 14, /* between two looks at whether to go on */
    MANY_TASKS = 64,       /* beyond which a task takes several blocks */
    TASK_WORK = 1 << 22,   /* MACs that make a task worth while on tiles */
    FINISH_DEPTH = 128,    /* as many MACs as making codes of a sum takes */
    MOST_SLOTS = 64,       /* pieces of scratch */
    FEW_MACS = 1 << 18,    /* not worth another thread */
    LINE = 64
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- weights */

static int64_t padded(int64_t depth)
{
    return prn_ceil_div(depth, PRN_CODE_DEPTH) * PRN_CODE_DEPTH;
}

static int64_t panels_of(int64_t columns)
{
    return prn_ceil_div(columns, PRN_CODE_COLUMNS);
}

/* Behind the panels: the sum of every column's weights, columns of panels counted. */
static int32_t *sums_of(const prn_code_weights *w, const int8_t *packed)
{
    const int64_t bytes = w->groups * panels_of(w->columns) * PRN_CODE_COLUMNS * padded(w->depth);
    return (int32_t *)(uintptr_t)(packed + bytes);
}

/* Behind those: of every panel, whether it is narrow (code_dot.h). */
static uint8_t *narrow_of(const int8_t *packed, int64_t groups, int64_t panels, int64_t depth)
{
    return (uint8_t *)(uintptr_t)(packed + groups * panels * PRN_CODE_COLUMNS * (depth + (int64_t)sizeof(int32_t)));
}

static bool is_narrow(const int8_t *panel, int64_t depth)
{
    bool narrow = true;
    for (int64_t i = 0; i < depth * PRN_CODE_COLUMNS && narrow; i += 2) {
        const int both = panel[i] + panel[i + 1];
        narrow = both >= -128 && both <= 128;
    }
    return narrow;
}

/* One column of all groups' into its panel, which is clear; the sum of its weights. */
static int32_t pack_column(const prn_code_weights *w, int64_t column, int8_t *to)
{
    uint32_t sum = 0;
    int64_t k = 0;
    for (int64_t outer = 0; k < w->depth && !prn_stopped_at(outer); outer++) {
        int64_t at = column * w->column_step + outer * w->outer_step;
        for (int64_t i = 0; i < w->inner && k < w->depth; i++, k++, at += w->inner_step) {
            const int32_t weight =
                w->is_signed ? ((const int8_t *)w->codes)[at] : ((const uint8_t *)w->codes)[at] - 128;
            to[k / 4 * 4 * PRN_CODE_COLUMNS + k % 4] = (int8_t)weight;
            sum += (uint32_t)weight;
        }
    }
    return (int32_t)sum;
}

typedef struct pack_job {
    const prn_code_weights *weights;
    int8_t *to;
} pack_job;

static void pack_task(void *argument, int64_t task)
{
    const pack_job *job = argument;
    const prn_code_weights *w = job->weights;
    const int64_t panels = panels_of(w->columns), panel = task % panels, group = task / panels;
    int8_t *to = job->to + task * padded(w->depth) * PRN_CODE_COLUMNS;
    int32_t *sums = sums_of(w, job->to) + task * PRN_CODE_COLUMNS;
    memset(to, 0, (size_t)(padded(w->depth) * PRN_CODE_COLUMNS));
    memset(sums, 0, PRN_CODE_COLUMNS * sizeof *sums);
    for (int64_t j = 0; j < PRN_CODE_COLUMNS && !prn_stopped(); j++) {
        const int64_t column = panel * PRN_CODE_COLUMNS + j;
        if (column < w->columns) sums[j] = pack_column(w, group * w->columns + column, to + 4 * j);
    }
    narrow_of(job->to, w->groups, panels, padded(w->depth))[task] = is_narrow(to, padded(w->depth));
}

static prony_status build(const prony_context *context, void *argument, void *out)
{
    pack_job job = {argument, out};
    prn_parallel_tasks(context->threads, job.weights->groups * panels_of(job.weights->columns), pack_task, &job);
    return PRONY_OK;
}

prony_status prn_code_pack(const prony_context *context, const prn_code_weights *weights, const int8_t **packed)
{
    char tag[160];
    const void *out = NULL;
    prn_code_weights copy = *weights;
    const int64_t columns = weights->groups * panels_of(weights->columns) * PRN_CODE_COLUMNS;
    const size_t bytes = prony_dtype_bytes(PRONY_INT8, columns * (padded(weights->depth) + (int64_t)sizeof(int32_t)) +
                                                           columns / PRN_CODE_COLUMNS);
    snprintf(tag, sizeof tag, "code panels %lld of %lldx%lld by %lld,%lld/%lld,%lld %d", (long long)weights->groups,
             (long long)weights->depth, (long long)weights->columns, (long long)weights->column_step,
             (long long)weights->inner, (long long)weights->inner_step, (long long)weights->outer_step,
             weights->is_signed);
    PRN_TRY(context->host->packed(context, weights->codes, tag, bytes, build, &copy, &out));
    *packed = out;
    return PRONY_OK;
}

void prn_code_bias(const prn_code_weights *weights, const int8_t *packed, int32_t x_zero, const int32_t *given,
                   int32_t *bias)
{
    const int32_t *sums = sums_of(weights, packed);
    const int64_t columns = weights->columns, stored = panels_of(columns) * PRN_CODE_COLUMNS;
    for (int64_t c = 0; c < weights->groups * columns; c++) {
        const uint32_t sum = (uint32_t)sums[c / columns * stored + c % columns];
        bias[c] = (int32_t)((given ? (uint32_t)given[c] : 0) - (uint32_t)x_zero * sum);
    }
}

/* ---- the product */

typedef struct job {
    const prn_code_product *product;
    int64_t row, depth;     /* of fetched rows: bytes from one to the next; padded depth */
    int64_t blocks, panels; /* of a group */
    int64_t panels_per_task, chunks, blocks_per_task, parts; /* a task is a chunk of panels by a part of the blocks */
    bool shared;                                             /* all rows are fetched first */
    uint8_t *space;
    int64_t slot_bytes;
    _Atomic uint64_t free_slots; /* a bit each */
} job;

/* An odd number of lines, so that neighbours do not compete for the same places of a cache. */
static int64_t fetched_row(int64_t depth)
{
    return padded(depth) + (padded(depth) / LINE % 2 == 0 ? LINE : 0);
}

/* Tiles read rows where they lie if every row begins a line and no depth is missing. */
static bool lies_ready(const prn_code_product *p)
{
    return p->a && p->depth % PRN_CODE_DEPTH == 0 && p->a_row % LINE == 0 && (uintptr_t)p->a % LINE == 0;
}

static job job_of(const prn_code_product *p)
{
    job job = {.product = p, .row = fetched_row(p->depth), .depth = padded(p->depth)};
    job.blocks = prn_ceil_div(p->rows, BLOCK);
    job.panels = panels_of(p->columns);
    const bool few = job.blocks * p->groups < FEW_BLOCKS;
    job.shared = few && !lies_ready(p);
    const int64_t panel_work = prn_least(BLOCK, p->rows) * PRN_CODE_COLUMNS * (job.depth + FINISH_DEPTH);
    job.chunks = few ? prn_least(job.panels, prn_ceil_div(2 * FEW_BLOCKS, job.blocks * p->groups)) : 1;
    job.panels_per_task = most(prn_ceil_div(job.panels, job.chunks), prn_ceil_div(TASK_WORK, panel_work));
    job.panels_per_task = prn_least(job.panels_per_task, job.panels);
    job.chunks = prn_ceil_div(job.panels, job.panels_per_task);
    job.blocks_per_task = most(prn_ceil_div(job.blocks * p->groups, MANY_TASKS),
                               prn_ceil_div(TASK_WORK, panel_work * job.panels_per_task));
    job.blocks_per_task = prn_least(job.blocks_per_task, job.blocks);
    job.parts = prn_ceil_div(job.blocks, job.blocks_per_task);
    job.slot_bytes = BLOCK * job.row;
    return job;
}

size_t prn_code_product_scratch(int threads, const prn_code_product *product)
{
    if (product->rows <= 0 || product->columns <= 0 || product->depth <= 0) return 0;
    const job job = job_of(product);
    int64_t slots = prn_least(threads < 1 ? 1 : threads, MOST_SLOTS); /* where rows lie is not known yet */
    if (job.shared && slots < job.blocks * product->groups) slots = job.blocks * product->groups;
    return (size_t)(slots * job.slot_bytes);
}

/* Rows [row, row + rows) as tiles read them: up to a multiple of 16, depths behind the last are whatever they were. */
static void fetch_rows(const job *job, int64_t group, int64_t row, int64_t rows, uint8_t *to)
{
    job->product->fetch(job->product->argument, group, row, rows, to, job->row);
}

static void fetch_task(void *argument, int64_t task)
{
    const job *job = argument;
    const int64_t pieces = prn_ceil_div(job->product->rows, FETCH_ROWS), row = task % pieces * FETCH_ROWS;
    uint8_t *space = job->space + task / pieces * job->blocks * job->slot_bytes;
    fetch_rows(job, task / pieces, row, prn_least(FETCH_ROWS, job->product->rows - row), space + row * job->row);
}

/* Rows of one block by the panels [first, last). */
static void multiply(const job *job, int64_t group, int64_t row, int64_t rows, const uint8_t *a, int64_t a_row,
                     int64_t first, int64_t last)
{
    const prn_code_product *p = job->product;
    const prn_code_dot *dot = prn_code_dot_table();
    const int8_t *packed = p->packed + group * job->panels * PRN_CODE_COLUMNS * job->depth;
    const uint8_t *narrow = narrow_of(p->packed, p->groups, job->panels, job->depth) + group * job->panels;
    const int64_t depth = (p->depth + 3) / 4 * 4;
    _Alignas(64) int32_t sums[PRN_CODE_ROWS * PRN_CODE_COLUMNS];
    for (int64_t panel = first; panel < last && !prn_stopped(); panel++) {
        const int64_t in_group = panel * PRN_CODE_COLUMNS, column = group * p->columns + in_group;
        const int64_t columns = prn_least(PRN_CODE_COLUMNS, p->columns - in_group);
        for (int64_t r = 0; r < rows; r += PRN_CODE_ROWS) {
            const int64_t height = prn_least(PRN_CODE_ROWS, rows - r), at = (row + r) * p->y_row + column;
            const int8_t *b = packed + in_group * job->depth;
            for (int64_t k = 0; k < depth && (k == 0 || !prn_stopped()); k += DEPTH_PIECE)
                dot->block(a + r * a_row + k, a_row, height, b + k * PRN_CODE_COLUMNS, prn_least(DEPTH_PIECE, depth - k),
                           sums, k > 0, narrow[panel]);
            if (p->store) {
                p->store(p->argument, row + r, height, column, columns, sums);
            } else {
                dot->finish(&p->finish, sums, height, column, columns, p->y + at, p->y_row,
                            p->residual ? p->residual + at : NULL, p->y_row);
            }
        }
    }
}

/* There are as many slots as threads that may come. */
static int take_slot(job *job)
{
    for (;;) {
        uint64_t slots = atomic_load(&job->free_slots);
        if (slots == 0) continue;
        if (atomic_compare_exchange_weak(&job->free_slots, &slots, slots & (slots - 1))) return __builtin_ctzll(slots);
    }
}

static void product_task(void *argument, int64_t task)
{
    job *job = argument;
    const prn_code_product *p = job->product;
    const int64_t first = task % job->chunks * job->panels_per_task;
    const int64_t last = prn_least(first + job->panels_per_task, job->panels);
    const int64_t group = task / job->chunks / job->parts, part = task / job->chunks % job->parts;
    const int64_t end = prn_least((part + 1) * job->blocks_per_task * BLOCK, p->rows);
    const bool ready = lies_ready(p);
    const int slot = job->shared ? -1 : take_slot(job);
    prn_code_dot_table()->begin();
    for (int64_t row = part * job->blocks_per_task * BLOCK; row < end && !prn_stopped(); row += BLOCK) {
        const int64_t rows = prn_least(BLOCK, end - row);
        const uint8_t *a = job->space + group * job->blocks * job->slot_bytes + row * job->row;
        if (!job->shared && ready && rows % 16 == 0) {
            multiply(job, group, row, rows, p->a + row * p->a_row, p->a_row, first, last);
            continue;
        }
        if (!job->shared) {
            uint8_t *space = job->space + slot * job->slot_bytes;
            fetch_rows(job, group, row, rows, space);
            a = space;
        }
        multiply(job, group, row, rows, a, job->row, first, last);
    }
    prn_code_dot_table()->end();
    if (!job->shared) atomic_fetch_or(&job->free_slots, UINT64_C(1) << slot);
}

void prn_code_product_run(int threads, const prn_code_product *p, void *scratch, size_t scratch_bytes)
{
    if (p->rows <= 0 || p->columns <= 0 || p->groups <= 0 || p->depth <= 0) return;
    job job = job_of(p);
    const double macs = (double)p->rows * (double)p->columns * (double)p->depth * (double)p->groups;
    job.space = scratch;
    if (macs < FEW_MACS) threads = 1;
    if (job.shared) {
        prn_parallel_tasks(threads, p->groups * prn_ceil_div(p->rows, FETCH_ROWS), fetch_task, &job);
    } else {
        const int64_t slots = prn_least((int64_t)scratch_bytes / job.slot_bytes, MOST_SLOTS);
        job.free_slots = slots == MOST_SLOTS ? ~UINT64_C(0) : (UINT64_C(1) << slots) - 1;
        if (threads > slots) threads = (int)slots;
    }
    prn_parallel_tasks(threads, p->groups * job.parts * job.chunks, product_task, &job);
}

void prn_code_product_facts(const prn_code_product *p, prony_cost *facts)
{
    if (p->rows < 1 || p->columns < 1 || p->depth < 1) return;
    prn_cost_fact(facts, "byte_products", 1);
    prn_cost_fact(facts, "product_rows", p->rows);
    prn_cost_fact(facts, "product_columns", p->columns);
    prn_cost_fact(facts, "product_depth", p->depth);
    prn_cost_fact(facts, "tile_rows", PRN_CODE_ROWS);
    prn_cost_fact(facts, "tile_columns", PRN_CODE_COLUMNS);
}
