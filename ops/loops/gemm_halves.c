/* Products of which B is stored as parts: A is split once, into the caller's space, and a block is nothing but tiles.
 *
 *      depth of some steps             panels of 32 columns
 *     +-------------+     +------+------+
 *     | A's parts   |  x  | now  | next |   ->  C; a panel's piece stays in the first-level cache, the next one is fetched
 *     +-------------+     +------+------+
 */
#include "base/integers.h"
#include "ops/loops/gemm_split.h"

#include "base/parallel.h"
#include "base/stop.h"
#include "ops/loops/split_product.h"
#include "ops/loops/stored_weights.h"

#include <stdatomic.h>
#include <string.h>

enum {
    COLUMNS = PRN_SPLIT_COLUMNS,
    HALVES_LEAST_ROWS = PRN_STORED_ROWS + 1,
    CONVERT_ROWS = 64 /* of a task, a multiple of a tile's */
};

static int64_t whole_tiles(int64_t rows)
{
    return (rows + PRN_SPLIT_ROWS - 1) / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS;
}

static int64_t steps_of(int64_t k)
{
    return (k + PRN_SPLIT_DEPTH - 1) / PRN_SPLIT_DEPTH;
}

/* That B is stored in; 0: not in such. */
static int stored_parts(const prn_gemm *gemm)
{
    return gemm->stored->kind == PRN_STORED_BF16 ? 1 : gemm->stored->kind == PRN_STORED_PAIRS ? 2 : 0;
}

bool prn_gemm_halves_worth(const prn_gemm *gemm)
{
    return gemm->m >= HALVES_LEAST_ROWS && gemm->stored && stored_parts(gemm) > 0 && gemm->a_col == 1 && prn_split_there();
}

/* Elements of A's form from one part to the next. */
static int64_t part_elements(const prn_gemm *gemm)
{
    return steps_of(gemm->k) * whole_tiles(gemm->m) * PRN_SPLIT_DEPTH;
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

static void convert_rows(void *argument, int64_t task)
{
    convert_job *job = argument;
    const prn_gemm *gemm = job->gemm;
    const int64_t i0 = task * CONVERT_ROWS, rows = prn_least(gemm->m - i0, CONVERT_ROWS), all = whole_tiles(gemm->m);
    const int64_t apart = part_elements(gemm);
    const int count = stored_parts(gemm);
    bool parts = true;
    for (int64_t k0 = 0; k0 < gemm->k && !prn_stopped(); k0 += PRN_SPLIT_DEPTH) {
        const float *left = gemm->a + i0 * gemm->a_row + k0;
        const int64_t first = prn_least(gemm->k - k0, 16), second = prn_least(gemm->k - k0 - first, 16);
        uint16_t *to = job->to + (k0 / PRN_SPLIT_DEPTH * all + i0) * PRN_SPLIT_DEPTH;
        parts = prn_split_rows(left, (int)first, second ? left + 16 : NULL, (int)second, gemm->a_row, rows, count, to, apart) && parts;
        for (int p = 0; p < count && whole_tiles(rows) > rows; p++)
            memset(to + p * apart + rows * PRN_SPLIT_DEPTH, 0, (size_t)(whole_tiles(rows) - rows) * PRN_SPLIT_DEPTH * sizeof *to);
    }
    if (!parts) atomic_store_explicit(&job->beyond, true, memory_order_relaxed);
}

bool prn_gemm_halves_convert(int threads, const prn_gemm *gemm, uint16_t *to)
{
    convert_job job = {.gemm = gemm, .to = to};
    atomic_init(&job.beyond, false);
    prn_parallel_tasks(threads, (gemm->m + CONVERT_ROWS - 1) / CONVERT_ROWS, convert_rows, &job);
    return !atomic_load_explicit(&job.beyond, memory_order_relaxed);
}

void prn_gemm_halves_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const int64_t steps = steps_of(gemm->k), all = whole_tiles(gemm->m), panel_bytes = prn_stored_panel_bytes(gemm->stored);
    const int64_t step_bytes = prn_stored_unit_bytes(gemm->stored->kind);
    const int parts = stored_parts(gemm), most = PRN_SPLIT_MOST_STEPS / parts;
    _Alignas(64) float edge[PRN_SPLIT_EDGE_ROWS * COLUMNS];
    prn_split_begin();
    for (int64_t s0 = 0; s0 < steps && !prn_stopped(); s0 += most) {
        prn_split_tiles tiles = {.a_part = part_elements(gemm), .parts = parts, .steps = (int)prn_least(steps - s0, most)};
        tiles.c_row = tiles.sums_row = gemm->c_row;
        for (int s = 0; s < tiles.steps; s++) tiles.a[s] = gemm->a_halves + ((s0 + s) * all + i0) * PRN_SPLIT_DEPTH;
        for (int64_t j = j0; j < j1; j += COLUMNS) {
            const char *panel = gemm->stored->panels + j / COLUMNS * panel_bytes + s0 * step_bytes;
            const bool last = j + COLUMNS >= j1, more = s0 + most < steps;
            const int64_t width = prn_least(j1 - j, COLUMNS);
            tiles.b = (const uint16_t *)(const void *)panel;
            tiles.wide = width > 16;
            tiles.rows = width == COLUMNS ? (i1 - i0) / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS : 0;
            tiles.c = gemm->c + i0 * gemm->c_row + j;
            tiles.sums = s0 > 0 ? tiles.c : NULL;
            tiles.ahead = !last ? panel + panel_bytes
                          : more ? gemm->stored->panels + j0 / COLUMNS * panel_bytes + (s0 + most) * step_bytes
                                 : NULL;
            tiles.ahead_bytes = tiles.ahead ? prn_least(last ? steps - s0 - most : steps - s0, most) * step_bytes : 0;
            if (tiles.rows > 0) prn_split_multiply(&tiles);
            prn_split_tiles rest = tiles;
            for (int s = 0; s < rest.steps; s++) rest.a[s] += tiles.rows * PRN_SPLIT_DEPTH;
            if (rest.sums) rest.sums += tiles.rows * rest.sums_row;
            if (tiles.rows > 0) rest.ahead = NULL;
            prn_gemm_split_edge(gemm, &rest, edge, i0 + tiles.rows, i1, j, width);
        }
    }
    prn_split_end();
}
