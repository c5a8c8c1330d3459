/* Products of which B is stored as parts: A is split once, into the caller's space, and a block is nothing but tiles.
 *
 *      a run of depths: chunks         panels of 32 columns
 *     +------+------+     +------+------+
 *     | A's parts   |  x  | now  | next |   ->  sums of 32 columns, C's with the last chunk of a run
 *     +------+------+     | then |      |
 *                         +------+------+
 *
 * A chunk of a panel stays in the first-level cache; the chunk after the next one is fetched meanwhile. */
#include "base/integers.h"
#include "ops/kernels/gemm/gemm_bf16x3.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/kernels/gemm/lowbit_weights.h"

#include <stdatomic.h>
#include <string.h>

/* Sizes follow from the second-level cache; no measurement of other values is recorded. */
enum {
    COLUMNS = PRN_BF16X3_COLUMNS,
    HALVES_LEAST_ROWS = PRN_LOWBIT_ROWS + 1,
    CONVERT_ROWS = 64,  /* of a task, a multiple of a tile's */
    BLOCK_ROWS = 288,   /* whose sums fit into the second-level cache at worst */
    A_BYTES = 768 << 10 /* of A's parts: they stay in the second-level cache while panels pass */
};

static int64_t gemm_half_types_whole_tiles(int64_t rows)
{
    return prn_ceil_div(rows, PRN_BF16X3_ROWS) * PRN_BF16X3_ROWS;
}

static int64_t gemm_half_types_steps_of(int64_t k)
{
    return prn_ceil_div(k, PRN_BF16X3_DEPTH);
}

/* That B is stored in; 0: not in such. */
static int stored_parts(const prn_gemm *gemm)
{
    return gemm->stored->kind == PRN_LOWBIT_BF16 ? 1 : gemm->stored->kind == PRN_LOWBIT_PAIRS ? 2 : 0;
}

bool prn_gemm_halves_profitable(const prn_gemm *gemm)
{
    return gemm->m >= HALVES_LEAST_ROWS && gemm->stored && stored_parts(gemm) > 0 && gemm->cs_a == 1 &&
           prn_bf16x3_there(stored_parts(gemm));
}

/* Elements of A's form from one part to the next. */
static int64_t part_elements(const prn_gemm *gemm)
{
    return gemm_half_types_steps_of(gemm->k) * gemm_half_types_whole_tiles(gemm->m) * PRN_BF16X3_DEPTH;
}

size_t prn_gemm_halves_bytes(const prn_gemm *gemm)
{
    return (size_t)stored_parts(gemm) * (size_t)part_elements(gemm) * sizeof(uint16_t);
}

typedef struct convert_job {
    const prn_gemm *gemm;
    uint16_t *to;
    atomic_bool beyond;
} convert_job;

static void gemm_half_types_convert_rows(void *argument, int64_t task)
{
    convert_job *job = argument;
    const prn_gemm *gemm = job->gemm;
    const int64_t i0 = task * CONVERT_ROWS, rows = prn_least(gemm->m - i0, CONVERT_ROWS),
                  all = gemm_half_types_whole_tiles(gemm->m);
    const int64_t apart = part_elements(gemm);
    const int count = stored_parts(gemm);
    bool parts = true;
    for (int64_t k0 = 0; k0 < gemm->k && !prn_cancelled(); k0 += PRN_BF16X3_DEPTH) {
        const float *left = gemm->a + i0 * gemm->rs_a + k0;
        const int64_t first = prn_least(gemm->k - k0, 16), second = prn_least(gemm->k - k0 - first, 16);
        uint16_t *to = job->to + (k0 / PRN_BF16X3_DEPTH * all + i0) * PRN_BF16X3_DEPTH;
        parts = prn_bf16x3_rows(left, (int)first, second ? left + 16 : NULL, (int)second, gemm->rs_a, rows, count, to,
                                apart) &&
                parts;
        for (int p = 0; p < count && gemm_half_types_whole_tiles(rows) > rows; p++)
            memset(to + p * apart + rows * PRN_BF16X3_DEPTH, 0,
                   (size_t)(gemm_half_types_whole_tiles(rows) - rows) * PRN_BF16X3_DEPTH * sizeof *to);
    }
    if (!parts) atomic_store_explicit(&job->beyond, true, memory_order_relaxed);
}

bool prn_gemm_halves_convert(int threads, const prn_gemm *gemm, uint16_t *to)
{
    convert_job job = {.gemm = gemm, .to = to};
    atomic_init(&job.beyond, false);
    prn_parallel_tasks(threads, prn_ceil_div(gemm->m, CONVERT_ROWS), gemm_half_types_convert_rows, &job);
    return !atomic_load_explicit(&job.beyond, memory_order_relaxed);
}

/* Rows [i0, i1) of one panel of C, for steps [s0, s1) of the depth, in chunks. */
typedef struct panel_job {
    const prn_gemm *gemm;
    int64_t i0, i1, s0, s1, chunk;
    float *sums; /* [rows, in whole tiles][32] */
} panel_job;

/* Bytes that are fetched while a chunk is multiplied: the one after the next, in this panel or in the one behind it. */
static void look_ahead(const panel_job *job, const char *panel, int64_t s, prn_bf16x3_tiles *tiles)
{
    const prn_lowbit *b = job->gemm->stored;
    const int64_t step_bytes = prn_lowbit_unit_bytes(b->kind), beyond = s + 2 * job->chunk - job->s1;
    const char *end = b->panels + prn_lowbit_bytes(b);
    tiles->ahead = beyond < 0 ? panel + (s + 2 * job->chunk) * step_bytes
                              : panel + prn_lowbit_panel_bytes(b) + (job->s0 + beyond) * step_bytes;
    tiles->ahead_bytes = tiles->ahead < end ? tiles->steps * step_bytes : 0;
}

/* Columns [j, j + width). A chunk of the panel stays in the first-level cache while all rows pass, and so do sums that
 * are not C's yet. */
static void gemm_half_types_multiply_panel(const panel_job *job, int64_t j, int64_t width)
{
    const prn_gemm *gemm = job->gemm;
    const int64_t all = gemm_half_types_whole_tiles(gemm->m), rows = job->i1 - job->i0, rs_c = gemm->rs_c;
    const int64_t whole = width == COLUMNS ? rows / PRN_BF16X3_ROWS * PRN_BF16X3_ROWS : 0; /* go from and to C as they
                                                                                            are */
    const char *panel = gemm->stored->panels + j / COLUMNS * prn_lowbit_panel_bytes(gemm->stored);
    const size_t bytes = (size_t)width * sizeof(float);
    float *c = gemm->c + job->i0 * rs_c + j, *edge = job->sums + whole * COLUMNS;
    prn_bf16x3_tiles tiles = {.a_part = part_elements(gemm), .parts = stored_parts(gemm), .wide = width > 16};
    for (int64_t r = whole; r < rows && job->s0 > 0; r++) memcpy(job->sums + r * COLUMNS, c + r * rs_c, bytes);
    for (int64_t s = job->s0; s < job->s1 && !prn_cancelled(); s += job->chunk) {
        const bool last = s + job->chunk >= job->s1, more = s > 0;
        tiles.steps = (int)prn_least(job->s1 - s, job->chunk);
        tiles.b = (const uint16_t *)(const void *)(panel + s * prn_lowbit_unit_bytes(gemm->stored->kind));
        look_ahead(job, panel, s, &tiles);
        for (int i = 0; i < tiles.steps; i++)
            tiles.a[i] = gemm->a_halves + ((s + i) * all + job->i0) * PRN_BF16X3_DEPTH;
        if (whole) {
            const bool begins = s == job->s0;
            tiles.rows = whole;
            tiles.sums = !more ? NULL : begins ? c : job->sums;
            tiles.sums_row = begins ? rs_c : COLUMNS;
            tiles.c = last ? c : job->sums;
            tiles.rs_c = last ? rs_c : COLUMNS;
            prn_bf16x3_multiply(&tiles);
            tiles.ahead_bytes = 0;
        }
        if (whole == rows) continue;
        for (int i = 0; i < tiles.steps; i++) tiles.a[i] += whole * PRN_BF16X3_DEPTH;
        tiles.rows = gemm_half_types_whole_tiles(rows - whole);
        tiles.sums = more ? edge : NULL;
        tiles.c = edge;
        tiles.rs_c = tiles.sums_row = COLUMNS;
        prn_bf16x3_multiply(&tiles);
    }
    for (int64_t r = whole; r < rows; r++) memcpy(c + r * rs_c, job->sums + r * COLUMNS, bytes);
}

void prn_gemm_halves_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    _Alignas(64) float sums[BLOCK_ROWS * COLUMNS];
    const int64_t steps = gemm_half_types_steps_of(gemm->k), parts = stored_parts(gemm),
                  most = PRN_BF16X3_SOME_STEPS / parts;
    panel_job job = {.gemm = gemm, .sums = sums};
    prn_bf16x3_begin();
    for (job.i0 = i0; job.i0 < i1; job.i0 = job.i1) {
        job.i1 = prn_least(i1, job.i0 + BLOCK_ROWS);
        const int64_t step_bytes =
            gemm_half_types_whole_tiles(job.i1 - job.i0) * PRN_BF16X3_DEPTH * (int64_t)sizeof(uint16_t) * parts;
        const int64_t runs = prn_ceil_div(steps * step_bytes, A_BYTES), run = prn_ceil_div(steps, runs);
        for (job.s0 = 0; job.s0 < steps && !prn_cancelled(); job.s0 = job.s1) {
            job.s1 = prn_least(steps, job.s0 + run);
            job.chunk = prn_ceil_div(job.s1 - job.s0, prn_ceil_div(job.s1 - job.s0, most));
            for (int64_t j = j0; j < j1 && !prn_cancelled(); j += COLUMNS)
                gemm_half_types_multiply_panel(&job, j, prn_least(j1 - j, COLUMNS));
        }
    }
    prn_bf16x3_end();
}
