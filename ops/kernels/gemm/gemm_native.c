/* Cuts native matrix products into tasks and finishes their tiles.
 *
 * Invariant: no sum depends on the number of threads. The cut of rows depends on shapes and the instruction set alone;
 * that of columns is made for the threads there are, as no column's sum depends on it. Each task owns its rows and
 * columns of C: it computes them, then scales, adds the bias and applies the post-operations while they are in the
 * cache. */
#include "ops/kernels/gemm/gemm_bf16x3.h"
#include "base/integers.h"

#include "base/cpu/simd.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "base/threads/thread_pool.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/kernels/gemm/lowbit_weights.h"
#include "ops/kernels/vector/vec.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* APART_...: rows that lie whole pages apart (Zen 4: vit_b_16 took 0.91, bert_base 0.90 of its time). PLAIN_LEAST:
 * one-row products (mobilenet_v3_large 0.90). SPLIT_...: products by terms. Blocks follow from the second-level
 * cache; TASKS_EACH, PACK_ROWS and PACK_PANELS have no recorded measurement. */
enum {
    TASK_MACS = 1 << 18,       /* about five microseconds: less is not worth handing to another thread */
    TASKS_EACH = 6,            /* evens out the load of threads */
    BLOCK_ROWS = 252,          /* A's block stays in the second-level cache while B's panels pass */
    SHALLOW = 192,             /* below this depth a task is mostly C: half as many rows leave it room there */
    BLOCK_COLUMNS = 256,       /* C's block stays there as well */
    PACK_ROWS = 512,           /* from here on a variable B is packed once, ahead of the tasks */
    PACK_PANELS = 8,           /* panels of one packing task */
    PIECE = 1 << 20,           /* floats of a large B that are packed before they are given up */
    SPLIT_TASK_MACS = 6000000, /* of a product by parts: the same for blocks that should be wide */
    SPLIT_LEAST_COLUMNS = 128,
    SPACE_LEAST_ROWS = 96,     /* of fewer, parts and sums stay in the cache on the stack as well */
    SET_FLOATS = 1024,         /* lines as far apart share a set of the first-level cache, */
    SET_LINES = 8,             /* which has room for so many */
    APART_FLOATS = 16,         /* a line: rows as much longer do not */
    APART_ROWS = 1024,         /* of A, copied at a time */
    APART_LEAST_COLUMNS = 256, /* for which copying A is little */
    COPY_FLOATS = 1 << 14,     /* of one task */
    PLAIN_LEAST = 1 << 23 /* floats of a B that no cache holds: in panels it would be read hardly faster, and packing it
                             is most of a start */
};

PRN_SIMD_PICK(prn_gemm_isa_table, prn_gemm_isa_, const prn_gemm_isa_table *prn_gemm_isa)

/* ---- packing ---------------------------------------------------------------------------------------------------- */

int64_t prn_gemm_packed_count(int64_t k, int64_t n)
{
    const int64_t columns = prn_gemm_isa()->panel_columns;
    return prn_ceil_div(n, columns) * columns * k;
}

typedef struct pack_job {
    const prn_gemm *gemm;
    float *packed;
    int64_t panels;
} pack_job;

static void gemm_native_pack_task(void *argument, int64_t task)
{
    const pack_job *job = argument;
    prn_gemm_isa()->pack(job->gemm, task * PACK_PANELS, prn_least((task + 1) * PACK_PANELS, job->panels), job->packed);
}

void prn_gemm_pack(int threads, const prn_gemm *gemm, float *packed)
{
    pack_job job = {gemm, packed, prn_ceil_div(gemm->n, prn_gemm_isa()->panel_columns)};
    const int64_t tasks = prn_ceil_div(job.panels, PACK_PANELS);
    if (gemm->k == 0) return; /* nothing to read, and maybe no data */
    prn_parallel_tasks(gemm->k * gemm->n < TASK_MACS ? 1 : threads, tasks, gemm_native_pack_task, &job);
}

/* A large B whose columns lie one after the other is packed piece by piece, so that it is not there beside all of its
 * packed form. */
static prony_status gemm_native_build_packed(const prony_context *context, void *argument, void *packed)
{
    const prn_gemm *gemm = argument;
    const int64_t unit = prn_gemm_isa()->panel_columns * PACK_PANELS;
    const bool piecewise = context->services->release_range && gemm->rs_b == 1 && gemm->cs_b >= gemm->k &&
                           gemm->k * gemm->n >= PRN_RELEASE_WHILE_PACKING_FLOATS;
    const int64_t columns = piecewise ? prn_ceil_div(PIECE, gemm->k * unit) * unit : gemm->n;
    for (int64_t j = 0; j < gemm->n && !prn_cancelled(); j += columns) {
        prn_gemm piece = *gemm;
        piece.b += j * gemm->cs_b;
        piece.n = prn_least(columns, gemm->n - j);
        prn_gemm_pack(context->threads, &piece, (float *)packed + j * gemm->k);
        if (piecewise)
            context->services->release_range(context, piece.b,
                                             (size_t)((piece.n - 1) * gemm->cs_b + gemm->k) * sizeof(float));
    }
    return PRONY_OK;
}

prony_status prn_gemm_pack_shared(const prony_context *context, const prn_gemm *gemm, const float **packed)
{
    prn_gemm copy = *gemm;
    const void *out = NULL;
    const prn_pack_key key = {
        .build = gemm_native_build_packed, .table = prn_gemm_isa(), .size = {gemm->k, gemm->n, gemm->rs_b, gemm->cs_b}};
    const size_t bytes = prony_dtype_bytes(PRONY_FLOAT32, prn_gemm_packed_count(gemm->k, gemm->n));
    PRN_TRY(context->services->packed(context, gemm->b, &key, bytes, &copy, &out));
    *packed = out;
    return PRONY_OK;
}

/* One row of C by a B with contiguous columns, nothing packed. */
static bool is_dots(const prn_gemm *gemm)
{
    return gemm->m == 1 && gemm->cs_a == 1 && gemm->rs_b == 1 && gemm->cs_b != 1 && !gemm->packed && !gemm->stored;
}

/* One column of C is one row of its transpose. */
static bool is_column(const prn_gemm *gemm)
{
    return gemm->n == 1 && gemm->m > 1 && gemm->rs_c == 1 && gemm->rs_b == 1 && gemm->cs_a == 1 && !gemm->packed &&
           !gemm->stored;
}

bool prn_gemm_plain_is_best(const prn_gemm *gemm)
{
    return is_column(gemm) || (is_dots(gemm) && gemm->k * gemm->n > PLAIN_LEAST);
}

/* ---- finishing a block of C ---- */

static void add_bias(const prn_gemm *gemm, float *c, int64_t i, int64_t j, int64_t count)
{
    const prn_vec_table *vec = prn_vec();
    const float *bias = gemm->bias + i * gemm->bias_row + j * gemm->bias_col;
    if (gemm->bias_col == 0) {
        vec->vs[PRN_BINARY_ADD](c, c, gemm->beta * bias[0], count);
    } else if (gemm->bias_col == 1 && gemm->beta == 1.0f) {
        vec->vv[PRN_BINARY_ADD](c, c, bias, count);
    } else {
        for (int64_t v = 0; v < count; v++) c[v] += gemm->beta * bias[v * gemm->bias_col];
    }
}

static void finish_run(const prn_gemm *gemm, float *c, int64_t count)
{
    if (!gemm->post) return;
    const float *output = gemm->post->outputs[0]->data;
    prn_post_ops_apply_vec(gemm->post, c, c - output, count);
}

/* `bias`: it is still to be added. */
static void gemm_native_finish(const prn_gemm *gemm, bool bias, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const int64_t count = j1 - j0;
    for (int64_t i = i0; i < i1; i++) {
        float *c = gemm->c + i * gemm->rs_c + j0;
        if (gemm->alpha != 1.0f) prn_vec()->map[PRN_MAP_AFFINE](c, c, count, gemm->alpha, 0.0f);
        if (gemm->bias && bias) add_bias(gemm, c, i, j0, count);
        if (gemm->rs_c != count) finish_run(gemm, c, count);
    }
    if (gemm->rs_c == count) finish_run(gemm, gemm->c + i0 * count, (i1 - i0) * count);
}

/* ---- cutting ---- */

typedef struct gemm_job {
    prn_gemm gemm;
    const prn_gemm_batch *batch;
    const prn_gemm_isa_table *isa;
    int64_t items, group;              /* products, products of one task */
    int64_t rows, columns;             /* of a task's block */
    int64_t row_blocks, column_blocks; /* of one product; both 1 if group > 1 */
    bool dots;
    /* Working space of blocks that are computed by parts; bit i: piece i is in use. A task that finds none works on
     * its stack. */
    size_t piece_bytes;
    int pieces;
    atomic_uint_least64_t taken;
} gemm_job;

enum { MOST_PIECES = 64 };

/* Products by parts split A for each task, and no sum depends on the division: one task per thread, or the same
 * number for each. */
static int64_t split_blocks(const gemm_job *job, int64_t wanted, int64_t least, int64_t panels, int threads)
{
    const int64_t widest = job->gemm.n / SPLIT_LEAST_COLUMNS > 1 ? job->gemm.n / SPLIT_LEAST_COLUMNS : 1;
    const int64_t others = job->items * job->row_blocks;
    int64_t blocks = prn_least(wanted, widest);
    if (blocks < least) blocks = least;
    while (blocks * others > 1 && blocks * others % threads && blocks * others < 4 * (int64_t)threads &&
           blocks < panels)
        blocks++;
    return blocks;
}

/* Blocks of rows and columns, in whole register tiles and panels, and items per task: each task has about TASK_MACS.
 * Sums do not depend on it. */
static void gemm_native_choose_tiling(gemm_job *job, int threads)
{
    const prn_gemm *gemm = &job->gemm;
    const int64_t m = gemm->m, n = gemm->n, tile_rows = gemm->a_halves ? 2 * PRN_BF16X3_ROWS : job->isa->tile_rows;
    const double macs = (double)m * (double)n * (double)(gemm->k > 0 ? gemm->k : 1);
    const int64_t block_rows = gemm->packed && gemm->k < SHALLOW ? BLOCK_ROWS / 2 : BLOCK_ROWS;
    job->row_blocks = m <= block_rows + block_rows / 8 ? 1 : prn_ceil_div(m, block_rows);
    job->rows = prn_ceil_div(prn_ceil_div(m, job->row_blocks), tile_rows) * tile_rows;
    job->row_blocks = prn_ceil_div(m, job->rows);
    const bool split = gemm->a_halves || prn_gemm_bf16x3_profitable(gemm);
    const double wanted = macs * (double)job->items / (split ? SPLIT_TASK_MACS : TASK_MACS);
    const int64_t most = threads < 2 ? 1 : split ? threads : TASKS_EACH * (int64_t)threads;
    const int64_t tasks = wanted < 1.0 ? 1 : wanted < (double)most ? (int64_t)wanted : most;
    const int64_t panel = gemm->stored ? PRN_LOWBIT_COLUMNS : job->isa->panel_columns, panels = prn_ceil_div(n, panel);
    int64_t blocks = prn_ceil_div(tasks, job->items * job->row_blocks);
    const int64_t least = prn_ceil_div(n, split ? 2 * BLOCK_COLUMNS : BLOCK_COLUMNS);
    if (split)
        blocks = split_blocks(job, blocks, least, panels, threads > 1 ? threads : 1);
    else if (blocks < least)
        blocks = least;
    job->columns = prn_ceil_div(panels, prn_least(blocks, panels)) * panel;
    job->column_blocks = prn_ceil_div(n, job->columns);
    job->group = 1;
    if (macs < TASK_MACS && job->row_blocks == 1 && job->column_blocks == 1) {
        job->group = prn_least(job->items, (int64_t)(TASK_MACS / macs));
    }
}

/* Beginning with the one that the calling thread takes every time, so that it finds its lines in its own cache. */
static int take_piece(gemm_job *job)
{
    uint_least64_t taken = atomic_load_explicit(&job->taken, memory_order_relaxed);
    const int own = job->pieces > 1 ? prn_thread_pool_number() % job->pieces : 0;
    for (int n = 0; n < job->pieces; n++) {
        const int i = (own + n) % job->pieces;
        const uint_least64_t bit = UINT64_C(1) << i;
        while (!(taken & bit))
            if (atomic_compare_exchange_weak_explicit(&job->taken, &taken, taken | bit, memory_order_acquire,
                                                      memory_order_relaxed))
                return i;
    }
    return -1;
}

static bool run_split(gemm_job *job, const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const int piece = take_piece(job);
    char *space = piece < 0 ? NULL : gemm->space + (size_t)piece * job->piece_bytes;
    const bool done = prn_gemm_bf16x3_block(gemm, i0, i1, j0, j1, space);
    if (piece >= 0) atomic_fetch_and_explicit(&job->taken, ~(UINT64_C(1) << piece), memory_order_release);
    return done;
}

/* If something in the block has no parts, it goes panel by panel, so that the others are what they are in any other
 * block. */
static void run_panels(gemm_job *job, const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    for (int64_t j = j0; j < j1 && !prn_cancelled(); j += PRN_BF16X3_COLUMNS) {
        const int64_t end = prn_least(j + PRN_BF16X3_COLUMNS, j1);
        const bool by_parts = run_split(job, gemm, i0, i1, j, end);
        if (!by_parts) job->isa->block(gemm, i0, i1, j, end);
        gemm_native_finish(gemm, by_parts || !prn_gemm_bias_in_tiles(gemm), i0, i1, j, end);
    }
}

/* One block of C of one item, by the first kernel that takes it; `left` says if the bias is still to be added. */
static void gemm_native_run_block(gemm_job *job, int64_t item, int64_t i0, int64_t j0)
{
    prn_gemm gemm = job->gemm;
    if (job->batch && job->batch->offsets) {
        int64_t a = 0, b = 0, c = 0;
        job->batch->offsets(job->batch->argument, item, &a, &b, &c);
        gemm.a += a;
        gemm.b += b;
        gemm.c += c;
    }
    const int64_t i1 = prn_least(i0 + job->rows, gemm.m), j1 = prn_least(j0 + job->columns, gemm.n);
    bool left = true; /* the bias, to be added */
    if (job->dots) {
        job->isa->dots(&gemm, j0, j1);
    } else if (gemm.a_halves) {
        prn_gemm_halves_block(&gemm, i0, i1, j0, j1);
    } else if (gemm.stored && gemm.m <= PRN_LOWBIT_ROWS && gemm.cs_a == 1) {
        prn_lowbit_block(&gemm, i0, i1, j0, j1);
    } else if (!prn_gemm_bf16x3_takes(&gemm, i1 - i0)) {
        job->isa->block(&gemm, i0, i1, j0, j1);
        left = !prn_gemm_bias_in_tiles(&gemm);
    } else if (!run_split(job, &gemm, i0, i1, j0, j1)) {
        run_panels(job, &gemm, i0, i1, j0, j1);
        return;
    }
    gemm_native_finish(&gemm, left, i0, i1, j0, j1);
}

static void gemm_native_run_task(void *argument, int64_t task)
{
    gemm_job *job = argument;
    const int64_t blocks = job->row_blocks * job->column_blocks;
    if (job->group == 1) {
        const int64_t block = task % blocks;
        gemm_native_run_block(job, task / blocks, block / job->column_blocks * job->rows,
                              block % job->column_blocks * job->columns);
        return;
    }
    const int64_t end = prn_least((task + 1) * job->group, job->items);
    for (int64_t item = task * job->group; item < end; item++) gemm_native_run_block(job, item, 0, 0);
}

static void transpose_column(prn_gemm *gemm)
{
    prn_gemm row = *gemm;
    row.m = 1;
    row.n = gemm->m;
    row.a = gemm->b;
    row.rs_a = 0;
    row.cs_a = 1;
    row.b = gemm->a;
    row.rs_b = 1;
    row.cs_b = gemm->rs_a;
    row.rs_c = gemm->m;
    row.bias_row = gemm->bias_col;
    row.bias_col = gemm->bias_row;
    *gemm = row;
}

/* A batch's offsets of A and B with their roles changed. */
static void swapped_offsets(const void *argument, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    const prn_gemm_batch *batch = argument;
    batch->offsets(batch->argument, item, b, a, c);
}

static void give_space(gemm_job *job)
{
    const prn_gemm *gemm = &job->gemm;
    if (!gemm->space || gemm->a_halves || !prn_gemm_bf16x3_profitable(gemm)) return;
    job->piece_bytes = prn_gemm_bf16x3_space(job->rows, job->columns);
    job->pieces = (int)prn_least((int64_t)(gemm->space_bytes / job->piece_bytes), MOST_PIECES);
}

static void gemm_native_run_items(int threads, const prn_gemm *gemm, const prn_gemm_batch *batch)
{
    gemm_job job = {.gemm = *gemm, .batch = batch, .isa = prn_gemm_isa(), .items = batch ? batch->items : 1};
    const prn_gemm_batch swapped = {.items = job.items, .offsets = swapped_offsets, .argument = batch};
    if (is_column(gemm)) {
        transpose_column(&job.gemm);
        if (batch && batch->offsets) job.batch = &swapped;
    }
    job.dots = is_dots(&job.gemm);
    gemm_native_choose_tiling(&job, threads);
    give_space(&job);
    const int64_t blocks = job.row_blocks * job.column_blocks;
    const int64_t tasks = job.group == 1 ? job.items * blocks : prn_ceil_div(job.items, job.group);
    prn_parallel_tasks(threads, tasks, gemm_native_run_task, &job);
}

/* ---- rows of A that share the sets of the caches ---- */

/* A tile reads more rows of A side by side than a set of the first-level cache has lines, and a block of them crowds a
 * few sets of the second: where rows lie whole pages apart, each line is fetched again for each element. */
static bool rows_collide(const prn_gemm *gemm)
{
    return gemm->packed && gemm->cs_a == 1 && gemm->rs_a != 0 && gemm->rs_a % SET_FLOATS == 0 &&
           prn_gemm_isa()->tile_rows > SET_LINES && gemm->m > prn_gemm_isa()->tile_rows &&
           gemm->n >= APART_LEAST_COLUMNS && !gemm->a_halves && !prn_gemm_bf16x3_profitable(gemm);
}

/* Of the pieces that A's rows are copied in: all of like heights, so that none has so few that they are summed
 * otherwise. */
static int64_t apart_rows(const prn_gemm *gemm)
{
    return prn_ceil_div(gemm->m, prn_ceil_div(gemm->m, APART_ROWS));
}

/* From one of them to the next. */
static int64_t apart_stride(const prn_gemm *gemm)
{
    const int64_t stride = gemm->k + APART_FLOATS;
    return stride % SET_FLOATS ? stride : stride + APART_FLOATS;
}

static size_t apart_bytes(const prn_gemm *gemm)
{
    return rows_collide(gemm) ? prony_dtype_bytes(PRONY_FLOAT32, apart_rows(gemm) * apart_stride(gemm)) : 0;
}

typedef struct apart_job {
    const prn_gemm *from, *to; /* whose A is the working space */
    int64_t rows;              /* of a task */
} apart_job;

static void apart_task(void *argument, int64_t task)
{
    const apart_job *job = argument;
    const int64_t end = prn_least((task + 1) * job->rows, job->to->m);
    for (int64_t i = task * job->rows; i < end; i++)
        memcpy((float *)job->from->space + i * job->to->rs_a, job->from->a + i * job->from->rs_a,
               (size_t)job->from->k * sizeof(float));
}

/* With A's rows copied to where they lie a line further apart. */
static void run_apart(int threads, const prn_gemm *gemm)
{
    prn_gemm from = *gemm;
    const int64_t rows = apart_rows(gemm);
    for (int64_t i = 0; i < gemm->m && !prn_cancelled(); i += rows) {
        prn_gemm piece = *gemm;
        from.a = gemm->a + i * gemm->rs_a;
        piece.m = prn_least(rows, gemm->m - i);
        piece.a = (const float *)gemm->space;
        piece.rs_a = apart_stride(gemm);
        piece.c = gemm->c + i * gemm->rs_c;
        if (gemm->bias) piece.bias = gemm->bias + i * gemm->bias_row;
        apart_job job = {&from, &piece, prn_ceil_div(COPY_FLOATS, gemm->k)};
        prn_parallel_tasks(threads, prn_ceil_div(piece.m, job.rows), apart_task, &job);
        gemm_native_run_items(threads, &piece, NULL);
    }
}

size_t prn_gemm_space_bytes(int threads, const prn_gemm *gemm, int64_t items)
{
    gemm_job job = {.gemm = *gemm, .isa = prn_gemm_isa(), .items = items};
    if (items <= 0 || gemm->n <= 0 || gemm->a_halves) return 0;
    if (!prn_gemm_bf16x3_profitable(gemm)) return items == 1 ? apart_bytes(gemm) : 0;
    gemm_native_choose_tiling(&job, threads);
    if (job.rows < SPACE_LEAST_ROWS) return 0;
    const int64_t tasks = job.row_blocks * job.column_blocks * items;
    return (size_t)prn_least(prn_least(tasks, threads > 1 ? threads : 1), MOST_PIECES) *
           prn_gemm_bf16x3_space(job.rows, job.columns);
}

void prn_gemm_facts(const prn_gemm *gemm, int64_t items, bool packed, prony_cost *facts)
{
    prn_gemm turned = *gemm;
    if (is_column(gemm)) transpose_column(&turned);
    if (turned.m < 1 || turned.n < 1 || turned.k < 1 || items < 1) return;
    const prn_gemm_isa_table *isa = prn_gemm_isa();
    prn_cost_fact(facts, "product_rows", turned.m);
    prn_cost_fact(facts, "product_columns", turned.n);
    prn_cost_fact(facts, "product_depth", turned.k);
    if (is_dots(&turned)) return;
    turned.packed = packed ? turned.b : turned.packed; /* of the question only whether there is one matters */
    const bool halves = prn_gemm_halves_profitable(&turned),
               split = halves || (packed && prn_gemm_bf16x3_profitable(&turned));
    prn_cost_fact(facts, "tile_rows", split ? PRN_BF16X3_ROWS : isa->tile_rows);
    prn_cost_fact(facts, "tile_columns", split ? PRN_BF16X3_COLUMNS : isa->panel_columns);
    if (split) prn_cost_fact(facts, "bf16_products", prn_bf16x3_products(gemm->parts ? gemm->parts : PRN_BF16X3_PARTS));
    if (!packed && !gemm->packed) prn_cost_fact(facts, "packs_in_run", 1);
}

size_t prn_gemm_scratch_bytes(const prn_gemm *gemm)
{
    if (prn_gemm_halves_profitable(gemm)) return prn_gemm_halves_bytes(gemm);
    if (gemm->packed || gemm->stored || gemm->m < PACK_ROWS || gemm->n <= prn_gemm_isa()->panel_columns) return 0;
    return prony_dtype_bytes(PRONY_FLOAT32, prn_gemm_packed_count(gemm->k, gemm->n));
}

/* Runs all items. With scratch, B is packed (or A converted) into it item after item, and each item runs by itself. */
void prn_gemm_run(int threads, const prn_gemm *gemm, const prn_gemm_batch *batch, void *scratch)
{
    const int64_t items = batch ? batch->items : 1;
    if (gemm->m <= 0 || gemm->n <= 0 || items <= 0) return;
    if (!scratch || prn_gemm_scratch_bytes(gemm) == 0) {
        const size_t apart = !batch && gemm->space ? apart_bytes(gemm) : 0;
        if (apart > 0 && apart <= gemm->space_bytes)
            run_apart(threads, gemm);
        else
            gemm_native_run_items(threads, gemm, batch);
        return;
    }
    for (int64_t item = 0; item < items && !prn_cancelled(); item++) {
        prn_gemm one = *gemm;
        int64_t a = 0, b = 0, c = 0;
        if (batch && batch->offsets) batch->offsets(batch->argument, item, &a, &b, &c);
        one.a += a;
        one.b += b;
        one.c += c;
        if (!one.stored) {
            prn_gemm_pack(threads, &one, scratch);
            one.packed = scratch;
        } else if (prn_gemm_halves_convert(threads, &one, scratch)) {
            one.a_halves = scratch;
        }
        gemm_native_run_items(threads, &one, NULL);
    }
}
