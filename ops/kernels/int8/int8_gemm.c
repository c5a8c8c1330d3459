/* The product cut into tasks.
 *
 *                  columns: panels of 32, packed once
 *              +-----+-----+-----+
 *   64 rows    |32x32|     |     |   a task fetches its rows once and walks the panels; few rows are fetched by all
 *   of codes   |     |     |     |   threads first, and the panels are shared out
 *              +-----+-----+-----+
 *
 * Invariant: tasks are cut by the problem alone; which piece of scratch a task uses changes no result. */
#include "ops/kernels/int8/int8_gemm.h"

#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/int8/int8_outliers.h"

#include <stdatomic.h>

PRN_SIMD_PICK_DOT(prn_qint8_dot, prn_qint8_dot_, const prn_qint8_dot *prn_qint8_dot_table)

/* No measurement of single values is recorded: BLOCK and MOST_SLOTS bound scratch, TASK_WORK and FEW_MACS are several
 * microseconds of work, FINISH_DEPTH weighs requantisation against multiplication. */
enum {
    BLOCK = 64,            /* rows of a task */
    FEW_BLOCKS = 8,        /* below which rows are fetched first and panels shared out */
    FETCH_ROWS = 16,       /* of a task that only fetches */
    TURNED = 16,           /* rows that are turned over together */
    DEPTH_PIECE = 1 << 14, /* between two looks at whether to go on */
    MANY_TASKS = 64,       /* beyond which a task takes several blocks */
    TASK_WORK = 1 << 22,   /* MACs that make a task worth while on tiles */
    FINISH_DEPTH = 128,    /* as many MACs as making codes of a sum takes */
    MOST_SLOTS = 64,       /* pieces of scratch */
    FEW_MACS = 1 << 18,    /* not worth another thread */
    FEW_ROWS = 4,          /* up to which excesses are multiplied row by row */
    LINE = 64
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- the product */

typedef struct job {
    const prn_qint8_gemm *product;
    int64_t row, depth;     /* of fetched rows: bytes from one to the next; padded depth */
    int64_t blocks, panels; /* of a group */
    int64_t panels_per_task, chunks, blocks_per_task, parts; /* a task is a chunk of panels by a part of the blocks */
    bool shared;                                             /* all rows are fetched first */
    bool turns;                                              /* rows are turned over too, behind those that are
                                                                fetched */
    uint8_t *space;
    int64_t slot_bytes;
    _Atomic uint64_t free_slots; /* a bit each */
} job;

/* An odd number of lines, so that neighbours do not compete for the same places of a cache. */
static int64_t fetched_row(int64_t depth)
{
    return prn_qint8_padded(depth) + (prn_qint8_padded(depth) / LINE % 2 == 0 ? LINE : 0);
}

/* Tiles read rows where they lie if every row begins a line and no depth is missing. */
static bool int8_gemm_lies_ready(const prn_qint8_gemm *p)
{
    return p->a && p->depth % PRN_QINT8_DEPTH == 0 && p->rs_a % LINE == 0 && (uintptr_t)p->a % LINE == 0;
}

static job int8_gemm_job_of(const prn_qint8_gemm *p)
{
    job job = {.product = p, .row = fetched_row(p->depth), .depth = prn_qint8_padded(p->depth)};
    job.blocks = prn_ceil_div(p->rows, BLOCK);
    job.panels = prn_qint8_panels(p->columns);
    const bool few = job.blocks * p->groups < FEW_BLOCKS;
    job.shared = few && !int8_gemm_lies_ready(p);
    const int64_t panel_work = prn_least(BLOCK, p->rows) * PRN_QINT8_COLUMNS * (job.depth + FINISH_DEPTH);
    job.chunks = few ? prn_least(job.panels, prn_ceil_div(2 * FEW_BLOCKS, job.blocks * p->groups)) : 1;
    job.panels_per_task = most(prn_ceil_div(job.panels, job.chunks), prn_ceil_div(TASK_WORK, panel_work));
    job.panels_per_task = prn_least(job.panels_per_task, job.panels);
    job.chunks = prn_ceil_div(job.panels, job.panels_per_task);
    job.blocks_per_task = most(prn_ceil_div(job.blocks * p->groups, MANY_TASKS),
                               prn_ceil_div(TASK_WORK, panel_work * job.panels_per_task));
    job.blocks_per_task = prn_least(job.blocks_per_task, job.blocks);
    job.parts = prn_ceil_div(job.blocks, job.blocks_per_task);
    job.turns = p->packed.excess && p->rows > FEW_ROWS;
    job.slot_bytes = BLOCK * (job.row + (job.turns ? job.depth : 0));
    return job;
}

size_t prn_qint8_gemm_scratch(int threads, const prn_qint8_gemm *product)
{
    if (product->rows <= 0 || product->columns <= 0 || product->depth <= 0) return 0;
    const job job = int8_gemm_job_of(product);
    int64_t slots = prn_least(threads < 1 ? 1 : threads, MOST_SLOTS); /* where rows lie is not known yet */
    if (job.shared && slots < job.blocks * product->groups) slots = job.blocks * product->groups;
    return (size_t)(slots * job.slot_bytes);
}

/* Rows [row, row + rows) as tiles read them: up to a multiple of 16, depths behind the last are whatever they were. */
static void fetch_rows(const job *job, int64_t group, int64_t row, int64_t rows, uint8_t *to)
{
    job->product->fetch(job->product->argument, group, row, rows, to, job->row);
}

/* The place of a slot's transposed rows: 32 of them after another. */
static uint8_t *turned_in(const job *job, uint8_t *slot)
{
    return slot + BLOCK * job->row;
}

/* Rows [row, row + rows) of a block, `row` a multiple of 16. */
static void int8_gemm_transpose_rows(const job *job, const uint8_t *a, int64_t rs_a, int64_t row, int64_t rows,
                                     uint8_t *turned)
{
    for (int64_t r = row; r < row + rows; r += TURNED, a += TURNED * rs_a) {
        uint8_t *to = turned + r / PRN_QINT8_ROWS * PRN_QINT8_ROWS * job->depth + r % PRN_QINT8_ROWS;
        prn_qint8_dot_table()->turn(a, rs_a, prn_least(TURNED, row + rows - r), job->product->depth, to);
    }
}

static void fetch_task(void *argument, int64_t task)
{
    const job *job = argument;
    const int64_t pieces = prn_ceil_div(job->product->rows, FETCH_ROWS), row = task % pieces * FETCH_ROWS;
    const int64_t rows = prn_least(FETCH_ROWS, job->product->rows - row), in_block = row % BLOCK;
    uint8_t *slot = job->space + (task / pieces * job->blocks + row / BLOCK) * job->slot_bytes;
    uint8_t *to = slot + in_block * job->row;
    fetch_rows(job, task / pieces, row, rows, to);
    if (job->turns) int8_gemm_transpose_rows(job, to, job->row, in_block, rows, turned_in(job, slot));
}

/* Panels that a task multiplies, of one group. */
typedef struct panels {
    const int8_t *packed;   /* of all of the group */
    const uint32_t *starts; /* of the lists of each panel; NULL: panels are not split */
    const uint8_t *steps;   /* of each panel */
    int64_t first, last;
} panels;

static panels panels_of(const job *job, int64_t group, int64_t first, int64_t last)
{
    const prn_qint8_gemm *p = job->product;
    const int64_t all = p->groups * job->panels, begin = group * job->panels;
    panels of = {.packed = p->packed.panels + begin * PRN_QINT8_COLUMNS * job->depth, .first = first, .last = last};
    if (!prn_qint8_dot_table()->splits) return of;
    of.starts = prn_qint8_starts(p->packed.panels, all, job->depth) + begin;
    of.steps = prn_qint8_steps(p->packed.panels, all, job->depth) + begin;
    return of;
}

static bool has_excess(const panels *of)
{
    return of->starts && of->starts[of->first] != of->starts[of->last];
}

/* Sums of up to 32 rows by a panel. */
static void sum_up(const job *job, const panels *of, int64_t panel, const uint8_t *a, int64_t rs_a, int64_t rows,
                   const uint8_t *turned, int32_t *sums)
{
    const prn_qint8_dot *dot = prn_qint8_dot_table();
    const int64_t depth = (job->product->depth + 3) / 4 * 4;
    const int8_t *b = of->packed + panel * PRN_QINT8_COLUMNS * job->depth;
    const int steps = of->steps ? of->steps[panel] : 0;
    for (int64_t k = 0; k < depth && (k == 0 || !prn_cancelled()); k += DEPTH_PIECE)
        dot->block(a + k, rs_a, rows, b + k * PRN_QINT8_COLUMNS, prn_least(DEPTH_PIECE, depth - k), sums, k > 0, steps);
    if (!of->starts || !job->product->packed.excess) return;
    const prn_qint8_outliers *from = job->product->packed.excess + of->starts[panel];
    const prn_qint8_outliers *to = job->product->packed.excess + of->starts[panel + 1];
    if (from == to) return;
    if (job->turns)
        prn_qint8_dot_table()->excess(turned, from, to, sums);
    else
        prn_qint8_outliers_rows(a, rs_a, rows, from, to, sums);
}

/* Rows of one block by panels. */
static void int8_gemm_multiply(const job *job, const panels *of, int64_t group, int64_t row, int64_t rows,
                               const uint8_t *a, int64_t rs_a, const uint8_t *turned)
{
    const prn_qint8_gemm *p = job->product;
    _Alignas(64) int32_t sums[PRN_QINT8_ROWS * PRN_QINT8_COLUMNS];
    for (int64_t panel = of->first; panel < of->last && !prn_cancelled(); panel++) {
        const int64_t in_group = panel * PRN_QINT8_COLUMNS, column = group * p->columns + in_group;
        const int64_t columns = prn_least(PRN_QINT8_COLUMNS, p->columns - in_group);
        for (int64_t r = 0; r < rows; r += PRN_QINT8_ROWS) {
            const int64_t height = prn_least(PRN_QINT8_ROWS, rows - r), at = (row + r) * p->y_row + column;
            sum_up(job, of, panel, a + r * rs_a, rs_a, height, turned + r * job->depth, sums);
            if (p->store) {
                p->store(p->argument, row + r, height, column, columns, sums);
            } else {
                prn_qint8_dot_table()->finish(&p->finish, sums, height, column, columns, p->y + at, p->y_row,
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

/* A block of rows that no one has fetched yet, or that lies where it is read. */
static void int8_gemm_multiply_block(const job *job, const panels *of, int64_t group, int64_t row, int64_t rows,
                                     uint8_t *slot)
{
    const prn_qint8_gemm *p = job->product;
    const bool in_place = int8_gemm_lies_ready(p) && rows % 16 == 0;
    const uint8_t *a = in_place ? p->a + row * p->rs_a : slot;
    const int64_t rs_a = in_place ? p->rs_a : job->row;
    if (!in_place) fetch_rows(job, group, row, rows, slot);
    if (job->turns && has_excess(of)) int8_gemm_transpose_rows(job, a, rs_a, 0, rows, turned_in(job, slot));
    int8_gemm_multiply(job, of, group, row, rows, a, rs_a, turned_in(job, slot));
}

static void int8_gemm_product_task(void *argument, int64_t task)
{
    job *job = argument;
    const prn_qint8_gemm *p = job->product;
    const int64_t first = task % job->chunks * job->panels_per_task;
    const int64_t group = task / job->chunks / job->parts, part = task / job->chunks % job->parts;
    const panels of = panels_of(job, group, first, prn_least(first + job->panels_per_task, job->panels));
    const int64_t end = prn_least((part + 1) * job->blocks_per_task * BLOCK, p->rows);
    const int slot = job->shared ? -1 : take_slot(job);
    prn_qint8_dot_table()->begin();
    for (int64_t row = part * job->blocks_per_task * BLOCK; row < end && !prn_cancelled(); row += BLOCK) {
        const int64_t rows = prn_least(BLOCK, end - row);
        if (job->shared) {
            uint8_t *a = job->space + (group * job->blocks + row / BLOCK) * job->slot_bytes;
            int8_gemm_multiply(job, &of, group, row, rows, a, job->row, turned_in(job, a));
        } else {
            int8_gemm_multiply_block(job, &of, group, row, rows, job->space + slot * job->slot_bytes);
        }
    }
    prn_qint8_dot_table()->end();
    if (!job->shared) atomic_fetch_or(&job->free_slots, UINT64_C(1) << slot);
}

void prn_qint8_gemm_run(int threads, const prn_qint8_gemm *p, void *scratch, size_t scratch_bytes)
{
    if (p->rows <= 0 || p->columns <= 0 || p->groups <= 0 || p->depth <= 0) return;
    job job = int8_gemm_job_of(p);
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
    prn_parallel_tasks(threads, p->groups * job.parts * job.chunks, int8_gemm_product_task, &job);
}

void prn_qint8_gemm_facts(const prn_qint8_gemm *p, prony_cost *facts)
{
    if (p->rows < 1 || p->columns < 1 || p->depth < 1) return;
    prn_cost_fact(facts, "byte_products", 1);
    prn_cost_fact(facts, "product_rows", p->rows);
    prn_cost_fact(facts, "product_columns", p->columns);
    prn_cost_fact(facts, "product_depth", p->depth);
    prn_cost_fact(facts, "tile_rows", PRN_QINT8_ROWS);
    prn_cost_fact(facts, "tile_columns", PRN_QINT8_COLUMNS);
}
