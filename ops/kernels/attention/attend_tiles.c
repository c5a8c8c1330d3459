/* Attention on tiles of bfloat16.
 *
 *      of each head, once:        of each block of rows, by a thread that has a slot:
 *      K^T, V -> panels           Q -> parts -> scores -> softmax -> parts -> sums -> Y
 *
 * A slot holds what a block needs, so that it stays in the caches near the core. */
#include "ops/kernels/attention/attend_tiles.h"

#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/gemm/bf16x3_product.h"

#include <stdatomic.h>
#include <string.h>

/* Block and least sizes came with the kernel, by which bert_base's bf16 attention took 0.57 of its time (Sapphire
 * Rapids); no measurement of single values is recorded. */
enum {
    PARTS = 1,
    COLUMNS = PRN_BF16X3_COLUMNS,
    STEP = PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS, /* elements of a step of a panel */
    SCORE_FLOATS = 8192,                          /* of a block, where it has more rows than the fewest */
    LEAST_BLOCK_ROWS = 32,
    MOST_BLOCK_ROWS = 128,
    LEAST_ROWS = 16,
    LEAST_KEYS = 32,
    LEAST_DEPTH = 16,
    MOST_WIDTH = 1 << 16
};

typedef struct layout {
    int64_t k_steps, k_panels, v_steps, v_panels; /* of 32 depths, of 32 columns */
    int64_t k_elements, v_elements;               /* of a head's panels */
    int64_t rows, blocks;                         /* of Q in a block, whole tiles; blocks of a head */
    int64_t score_row;
    size_t pack_bytes, q_bytes, score_bytes, weight_bytes, sums_bytes, slot_bytes;
} layout;

typedef struct tiles_job {
    const prn_attend *at;
    layout layout;
    uint16_t *panels; /* of every head: K^T, then V */
    char *beyond;     /* of every head: it has no such panels */
    char *slots;
    atomic_llong next;
} tiles_job;

static int64_t attend_tiles_whole(int64_t rows)
{
    return prn_ceil_div(rows, PRN_BF16X3_ROWS) * PRN_BF16X3_ROWS;
}

static layout attend_tiles_lay_out(const prn_attend *at)
{
    layout l = {.k_steps = prn_ceil_div(at->depth, PRN_BF16X3_DEPTH),
                .k_panels = prn_ceil_div(at->keys, COLUMNS),
                .v_steps = prn_ceil_div(at->keys, PRN_BF16X3_DEPTH),
                .v_panels = prn_ceil_div(at->width, COLUMNS)};
    l.k_elements = l.k_panels * l.k_steps * STEP;
    l.v_elements = l.v_panels * l.v_steps * STEP;
    l.score_row = l.k_panels * COLUMNS;
    const int64_t fitting = SCORE_FLOATS / l.score_row / LEAST_BLOCK_ROWS * LEAST_BLOCK_ROWS;
    const int64_t most = fitting < LEAST_BLOCK_ROWS ? LEAST_BLOCK_ROWS : prn_least(fitting, MOST_BLOCK_ROWS);
    l.rows = prn_least(most, attend_tiles_whole(at->rows));
    l.blocks = l.rows > 0 ? prn_ceil_div(at->rows, l.rows) : 0;
    const int64_t k_floats = prn_gemm_packed_count(at->depth, at->keys),
                  v_floats = prn_gemm_packed_count(at->keys, at->width);
    l.pack_bytes = (size_t)(k_floats > v_floats ? k_floats : v_floats) * sizeof(float);
    l.q_bytes = (size_t)(l.k_steps * l.rows * PRN_BF16X3_DEPTH) * sizeof(uint16_t);
    l.score_bytes = (size_t)(l.rows * l.score_row) * sizeof(float);
    l.weight_bytes = (size_t)(l.v_steps * l.rows * PRN_BF16X3_DEPTH) * sizeof(uint16_t);
    l.sums_bytes = (size_t)(l.rows * COLUMNS) * sizeof(float);
    const size_t of_block = l.q_bytes + l.score_bytes + l.weight_bytes + l.sums_bytes;
    l.slot_bytes = ((of_block > l.pack_bytes ? of_block : l.pack_bytes) + 63) / 64 * 64;
    return l;
}

static int64_t key_items(const prn_attend *at)
{
    return at->batch * at->key_heads;
}

static size_t flag_bytes(const prn_attend *at)
{
    return ((size_t)key_items(at) + 63) / 64 * 64;
}

static prn_gemm right_of(const prn_attend_view *view, int64_t batch, int64_t head, bool transposed, int64_t k,
                         int64_t n)
{
    return (prn_gemm){.n = n,
                      .k = k,
                      .b = view->data + batch * view->stride[0] + head * view->stride[1],
                      .rs_b = view->stride[transposed ? 3 : 2],
                      .cs_b = view->stride[transposed ? 2 : 3]};
}

/* false: something in it has no such form. */
static bool attend_tiles_pack_panels(const prn_gemm *gemm, float *floats, uint16_t *to)
{
    const int64_t steps = prn_ceil_div(gemm->k, PRN_BF16X3_DEPTH);
    bool parts = true;
    prn_gemm_pack(1, gemm, floats);
    for (int64_t j = 0; j < gemm->n && !prn_cancelled(); j += COLUMNS, to += steps * STEP)
        parts = prn_bf16x3_panel(floats + j * gemm->k, gemm->k, PARTS, to) && parts;
    return parts;
}

static void attend_tiles_pack_head(const tiles_job *job, int64_t item, char *slot)
{
    const prn_attend *at = job->at;
    const int64_t batch = item / at->key_heads, head = item % at->key_heads;
    const prn_gemm k = right_of(&at->k, batch, head, true, at->depth, at->keys);
    const prn_gemm v = right_of(&at->v, batch, head, false, at->keys, at->width);
    uint16_t *to = job->panels + item * (job->layout.k_elements + job->layout.v_elements);
    const bool parts = attend_tiles_pack_panels(&k, (float *)(void *)slot, to);
    job->beyond[item] = !attend_tiles_pack_panels(&v, (float *)(void *)slot, to + job->layout.k_elements) || !parts;
}

/* Rows of `depth` floats as tiles read them, [step][block's rows][32]; rows that only fill a tile are zeros. */
static bool round_rows(const float *from, int64_t from_row, int64_t depth, int64_t rows, int64_t all, uint16_t *to)
{
    bool parts = true;
    for (int64_t k = 0; k < depth; k += PRN_BF16X3_DEPTH, to += all * PRN_BF16X3_DEPTH) {
        const int64_t first = prn_least(depth - k, 16), second = prn_least(depth - k - first, 16);
        parts = prn_bf16x3_rows(from + k, (int)first, second ? from + k + 16 : NULL, (int)second, from_row, rows, PARTS,
                                to, 0) &&
                parts;
        memset(to + rows * PRN_BF16X3_DEPTH, 0,
               (size_t)((attend_tiles_whole(rows) - rows) * PRN_BF16X3_DEPTH) * sizeof *to);
    }
    return parts;
}

/* C [rows][32 or 16] = A by one panel. */
static void attend_tiles_multiply_panel(const uint16_t *a, int64_t all, int64_t rows, const uint16_t *panel,
                                        int64_t steps, bool wide, float *c, int64_t rs_c)
{
    prn_bf16x3_tiles tiles = {
        .parts = PARTS, .rows = attend_tiles_whole(rows), .wide = wide, .c = c, .rs_c = rs_c, .sums_row = rs_c};
    for (int64_t s = 0; s < steps; s += tiles.steps) {
        tiles.steps = (int)prn_least(steps - s, PRN_BF16X3_SOME_STEPS);
        tiles.b = panel + s * STEP;
        tiles.sums = s > 0 ? c : NULL;
        for (int i = 0; i < tiles.steps; i++) tiles.a[i] = a + (s + i) * all * PRN_BF16X3_DEPTH;
        prn_bf16x3_multiply(&tiles);
    }
}

typedef struct block {
    int64_t batch, head, first, rows;
} block;

/* false: something has no such form, and nothing was written to Y. */
static bool attend_on_tiles(const tiles_job *job, const block *b, char *slot)
{
    const prn_attend *at = job->at;
    const layout *l = &job->layout;
    const int64_t key_item = b->batch * at->key_heads + b->head / (at->heads / at->key_heads);
    const uint16_t *k = job->panels + key_item * (l->k_elements + l->v_elements), *v = k + l->k_elements;
    const float *queries =
        at->q.data + b->batch * at->q.stride[0] + b->head * at->q.stride[1] + b->first * at->q.stride[2];
    float *scores = (float *)(void *)slot, *sums = (float *)(void *)(slot + l->score_bytes);
    uint16_t *q = (uint16_t *)(void *)(slot + l->score_bytes + l->sums_bytes);
    uint16_t *weights = (uint16_t *)(void *)(slot + l->score_bytes + l->sums_bytes + l->q_bytes);
    if (job->beyond[key_item] || !round_rows(queries, at->q.stride[2], at->depth, b->rows, l->rows, q)) return false;
    for (int64_t j = 0; j < at->keys; j += COLUMNS, k += l->k_steps * STEP)
        attend_tiles_multiply_panel(q, l->rows, b->rows, k, l->k_steps, at->keys - j > 16, scores + j, l->score_row);
    for (int64_t r = 0; r < b->rows; r++)
        prn_attend_weigh(at, scores + r * l->score_row, b->batch, b->head, b->first + r);
    if (!round_rows(scores, l->score_row, at->keys, b->rows, l->rows, weights)) return false;
    float *y = at->y + b->batch * at->y_stride[0] + b->head * at->y_stride[1] + b->first * at->y_stride[2];
    for (int64_t j = 0; j < at->width; j += COLUMNS, v += l->v_steps * STEP) {
        const size_t bytes = (size_t)prn_least(at->width - j, COLUMNS) * sizeof(float);
        attend_tiles_multiply_panel(weights, l->rows, b->rows, v, l->v_steps, at->width - j > 16, sums, COLUMNS);
        for (int64_t r = 0; r < b->rows; r++) memcpy(y + r * at->y_stride[2] + j, sums + r * COLUMNS, bytes);
    }
    return true;
}

static void attend_tiles_run_block(const tiles_job *job, int64_t task, char *slot)
{
    const prn_attend *at = job->at;
    const int64_t item = task / job->layout.blocks, first = task % job->layout.blocks * job->layout.rows;
    const block b = {item / at->heads, item % at->heads, first, prn_least(at->rows - first, job->layout.rows)};
    prn_bf16x3_begin();
    const bool done = attend_on_tiles(job, &b, slot);
    prn_bf16x3_end();
    if (!done) prn_attend_rows(at, b.batch, b.head, b.first, b.rows, (float *)(void *)slot, job->layout.score_row);
}

/* The thread of a slot takes heads, or blocks, until none is left. */
static void pack_slot(void *argument, int64_t slot)
{
    tiles_job *job = argument;
    int64_t item;
    while ((item = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < key_items(job->at) &&
           !prn_cancelled())
        attend_tiles_pack_head(job, item, job->slots + slot * (int64_t)job->layout.slot_bytes);
}

static void attend_tiles_run_slot(void *argument, int64_t slot)
{
    tiles_job *job = argument;
    const int64_t tasks = job->at->batch * job->at->heads * job->layout.blocks;
    int64_t task;
    while ((task = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < tasks && !prn_cancelled())
        attend_tiles_run_block(job, task, job->slots + slot * (int64_t)job->layout.slot_bytes);
}

bool prn_attend_tiles_fit(const prn_attend *at)
{
    return prn_bf16x3_there(PARTS) && prn_gemm_isa()->panel_columns == COLUMNS && prn_attend_fits(at) &&
           at->width <= MOST_WIDTH && at->depth <= MOST_WIDTH && at->q.stride[3] == 1 && !at->weigh;
}

bool prn_attend_tiles_profitable(const prn_attend *at)
{
    return at->rows >= LEAST_ROWS && at->keys >= LEAST_KEYS && at->depth >= LEAST_DEPTH && at->width >= LEAST_DEPTH;
}

bool prn_attend_tiles_space(int threads, const prn_attend *at, size_t *bytes)
{
    const layout l = attend_tiles_lay_out(at);
    uint64_t panels, slots;
    if (!prn_mul_u64(&panels, (uint64_t)key_items(at), (uint64_t)(l.k_elements + l.v_elements) * sizeof(uint16_t)) ||
        !prn_mul_u64(&slots, (uint64_t)(threads > 1 ? threads : 1), l.slot_bytes) || panels > INT64_MAX / 2 ||
        slots > INT64_MAX / 2 - 64)
        return false;
    *bytes = flag_bytes(at) + (size_t)panels + (size_t)slots;
    return true;
}

void prn_attend_tiles_run(int threads, const prn_attend *at, void *space)
{
    if (key_items(at) == 0 || at->rows == 0) return;
    tiles_job job = {.at = at, .layout = attend_tiles_lay_out(at), .beyond = space};
    const int slots = threads > 1 ? threads : 1;
    job.panels = (uint16_t *)(void *)((char *)space + flag_bytes(at));
    job.slots = (char *)(job.panels + key_items(at) * (job.layout.k_elements + job.layout.v_elements));
    atomic_init(&job.next, 0);
    prn_parallel_tasks(threads, slots, pack_slot, &job);
    atomic_store_explicit(&job.next, 0, memory_order_relaxed);
    prn_parallel_tasks(threads, slots, attend_tiles_run_slot, &job);
}
