/* For a few steps of the depth at a time: parts of some rows of A, then panel by panel of B, whose parts are made while the
 * tiles of the one before are computed; sums are kept in C.
 *
 *      depth of some steps                   panels of 32 columns
 *     +-------------+     +------+------+
 *     | A's parts   |  x  | now  | next |   ->  C, tiles of 32 x 32, those at an edge by way of a buffer
 *     +-------------+     +------+------+
 */
#include "ops/loops/gemm_split.h"

#include "base/parallel.h"
#include "base/stop.h"
#include "ops/loops/split_product.h"
#include "ops/loops/stored_weights.h"

#include <stdatomic.h>
#include <string.h>

enum {
    ROWS = 128, /* of A, whose parts are on the stack */
    DEPTH = PRN_SPLIT_STEPS * PRN_SPLIT_DEPTH,
    COLUMNS = PRN_SPLIT_COLUMNS,
    EDGE_ROWS = 2 * PRN_SPLIT_ROWS, /* that pass through a buffer at once */
    LEAST_ROWS = 24, /* below, parts cost more than they save */
    LEAST_DEPTH = 48,
    LEAST_COLUMNS = 32
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

typedef struct block {
    const prn_gemm *gemm;
    int parts;
    int64_t i0, rows, j0, j1;
    _Alignas(64) uint16_t a[PRN_SPLIT_PARTS][PRN_SPLIT_STEPS][ROWS * PRN_SPLIT_DEPTH];
    _Alignas(64) uint16_t b[2][PRN_SPLIT_PANEL];
    _Alignas(64) float edge[EDGE_ROWS * COLUMNS];
    _Alignas(64) float plain[DEPTH * COLUMNS]; /* of a panel that is stored in fewer bits */
} block;

/* Depths [k0, k0 + depth) of the panel of column j; in the block's buffer, until it is asked again, where they are unpacked. */
static const float *panel_at(block *b, int64_t k0, int64_t depth, int64_t j)
{
    if (!b->gemm->stored) return b->gemm->packed + j * b->gemm->k + k0 * COLUMNS;
    prn_stored_isa()->unpack(b->gemm->stored, j, k0, depth, b->plain);
    return b->plain;
}

/* Parts of A's rows for depths [k0, k0 + depth). */
static bool split_a(block *b, int64_t k0, int64_t depth)
{
    const prn_gemm *gemm = b->gemm;
    bool parts = true;
    for (int64_t at = 0, step = 0; at < depth; at += PRN_SPLIT_DEPTH, step++) {
        const float *left = gemm->a + b->i0 * gemm->a_row + k0 + at;
        const int64_t first = least(depth - at, 16), second = least(depth - at - first, 16);
        parts = prn_split_rows(left, (int)first, second ? left + 16 : NULL, (int)second, gemm->a_row, b->rows, b->parts,
                               b->a[0][step], sizeof b->a[0] / sizeof(uint16_t)) &&
                parts;
    }
    return parts;
}

/* Rows [first, b->rows) of one panel's columns, through the buffer. */
static bool multiply_edge(block *b, const prn_split_tiles *tiles, int64_t j, int64_t first)
{
    const prn_gemm *gemm = b->gemm;
    const size_t bytes = (size_t)least(b->j1 - j, COLUMNS) * sizeof(float);
    bool parts = true;
    for (int64_t r0 = first, rows; r0 < b->rows; r0 += rows) {
        prn_split_tiles part = *tiles;
        rows = least(b->rows - r0, EDGE_ROWS);
        for (int s = 0; s < part.steps; s++) part.a[s] += r0 * PRN_SPLIT_DEPTH;
        part.rows = (rows + PRN_SPLIT_ROWS - 1) / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS;
        part.c = b->edge;
        part.c_row = COLUMNS;
        if (r0 > 0) part.next = NULL, part.ahead = NULL; /* done */
        float *c = gemm->c + (b->i0 + r0) * gemm->c_row + j;
        for (int64_t r = 0; r < rows && part.add; r++) memcpy(b->edge + r * COLUMNS, c + r * gemm->c_row, bytes);
        parts = prn_split_multiply(&part) && parts;
        for (int64_t r = 0; r < rows; r++) memcpy(c + r * gemm->c_row, b->edge + r * COLUMNS, bytes);
    }
    return parts;
}

/* One panel's columns from column `j` on; whole tiles go to C, others through the buffer. */
static bool multiply_panel(block *b, prn_split_tiles *tiles, int64_t j)
{
    const prn_gemm *gemm = b->gemm;
    const int64_t width = least(b->j1 - j, COLUMNS), whole = width == COLUMNS ? b->rows / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS : 0;
    bool parts = true;
    tiles->wide = width > 16;
    if (whole) {
        tiles->rows = whole;
        tiles->c = gemm->c + b->i0 * gemm->c_row + j;
        tiles->c_row = gemm->c_row;
        parts = prn_split_multiply(tiles);
    }
    return multiply_edge(b, tiles, j, whole) && parts;
}

static bool multiply_rows(block *b)
{
    const int64_t k = b->gemm->k;
    prn_split_tiles tiles = {.a_part = sizeof b->a[0] / sizeof(uint16_t), .parts = b->parts};
    int half = 0;
    for (int s = 0; s < PRN_SPLIT_STEPS; s++) tiles.a[s] = b->a[0][s];
    if (!prn_split_panel(panel_at(b, 0, least(k, DEPTH), b->j0), least(k, DEPTH), b->parts, b->b[0])) return false;
    for (int64_t k0 = 0; k0 < k && !prn_stopped(); k0 += DEPTH) {
        const int64_t depth = least(k - k0, DEPTH);
        if (!split_a(b, k0, depth)) return false;
        tiles.steps = (int)((depth + PRN_SPLIT_DEPTH - 1) / PRN_SPLIT_DEPTH);
        tiles.add = k0 > 0;
        for (int64_t j = b->j0; j < b->j1; j += COLUMNS, half = !half) {
            const bool last = j + COLUMNS >= b->j1;
            tiles.b = b->b[half];
            tiles.next_depths = last ? least(k - k0 - DEPTH, DEPTH) : depth;
            tiles.next = !last            ? panel_at(b, k0, depth, j + COLUMNS)
                         : k0 + DEPTH < k ? panel_at(b, k0 + DEPTH, tiles.next_depths, b->j0)
                                          : NULL;
            tiles.next_b = b->b[!half];
            if (!multiply_panel(b, &tiles, j)) return false;
        }
    }
    return true;
}

static bool multiply(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    block b;
    b.gemm = gemm;
    b.parts = gemm->parts ? gemm->parts : PRN_SPLIT_PARTS;
    b.j0 = j0;
    b.j1 = j1;
    const int64_t blocks = (i1 - i0 + ROWS - 1) / ROWS, rows = ((i1 - i0 + blocks - 1) / blocks + 15) / 16 * 16;
    bool parts = true;
    prn_split_begin();
    for (b.i0 = i0; b.i0 < i1 && parts && !prn_stopped(); b.i0 += rows) {
        b.rows = least(i1 - b.i0, rows);
        parts = multiply_rows(&b);
    }
    prn_split_end();
    return parts;
}

bool prn_gemm_split_worth(const prn_gemm *gemm)
{
    return gemm->m >= LEAST_ROWS && gemm->k >= LEAST_DEPTH && gemm->n >= LEAST_COLUMNS && (gemm->packed || gemm->stored) && gemm->a_col == 1 &&
           prn_split_there();
}

bool prn_gemm_split_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    if (i1 - i0 < LEAST_ROWS || j1 - j0 < LEAST_COLUMNS || !prn_gemm_split_worth(gemm)) return false;
    return multiply(gemm, i0, i1, j0, j1);
}

/* ---- both operands as parts ------------------------------------------------------------------------------------- */

enum {
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
    const int64_t i0 = task * CONVERT_ROWS, rows = least(gemm->m - i0, CONVERT_ROWS), all = whole_tiles(gemm->m);
    const int64_t apart = part_elements(gemm);
    const int count = stored_parts(gemm);
    bool parts = true;
    for (int64_t k0 = 0; k0 < gemm->k && !prn_stopped(); k0 += PRN_SPLIT_DEPTH) {
        const float *left = gemm->a + i0 * gemm->a_row + k0;
        const int64_t first = least(gemm->k - k0, 16), second = least(gemm->k - k0 - first, 16);
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

typedef struct halves_block {
    const prn_gemm *gemm;
    int64_t i0, rows, j1;
    _Alignas(64) float edge[EDGE_ROWS * COLUMNS];
} halves_block;

/* Rows from `first` on of one panel's columns, through the buffer. */
static void halves_edge(halves_block *b, const prn_split_tiles *tiles, int64_t j, int64_t first)
{
    const prn_gemm *gemm = b->gemm;
    const size_t bytes = (size_t)least(b->j1 - j, COLUMNS) * sizeof(float);
    for (int64_t r0 = first, rows; r0 < b->rows; r0 += rows) {
        prn_split_tiles part = *tiles;
        rows = least(b->rows - r0, EDGE_ROWS);
        for (int s = 0; s < part.steps; s++) part.a[s] += r0 * PRN_SPLIT_DEPTH;
        part.rows = whole_tiles(rows);
        part.c = b->edge;
        part.c_row = COLUMNS;
        if (r0 > 0) part.ahead = NULL;
        float *c = gemm->c + (b->i0 + r0) * gemm->c_row + j;
        for (int64_t r = 0; r < rows && part.add; r++) memcpy(b->edge + r * COLUMNS, c + r * gemm->c_row, bytes);
        prn_split_multiply(&part);
        for (int64_t r = 0; r < rows; r++) memcpy(c + r * gemm->c_row, b->edge + r * COLUMNS, bytes);
    }
}

void prn_gemm_halves_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const int64_t steps = steps_of(gemm->k), all = whole_tiles(gemm->m), panel_bytes = prn_stored_panel_bytes(gemm->stored);
    const int64_t step_bytes = prn_stored_unit_bytes(gemm->stored->kind);
    const int parts = stored_parts(gemm), most = PRN_SPLIT_MOST_STEPS / parts;
    halves_block b = {.gemm = gemm, .i0 = i0, .rows = i1 - i0, .j1 = j1};
    prn_split_begin();
    for (int64_t s0 = 0; s0 < steps && !prn_stopped(); s0 += most) {
        prn_split_tiles tiles = {.a_part = part_elements(gemm), .parts = parts, .steps = (int)least(steps - s0, most), .add = s0 > 0, .c_row = gemm->c_row};
        for (int s = 0; s < tiles.steps; s++) tiles.a[s] = gemm->a_halves + ((s0 + s) * all + i0) * PRN_SPLIT_DEPTH;
        for (int64_t j = j0; j < j1; j += COLUMNS) {
            const char *panel = gemm->stored->panels + j / COLUMNS * panel_bytes + s0 * step_bytes;
            const bool last = j + COLUMNS >= j1, more = s0 + most < steps;
            const int64_t width = least(j1 - j, COLUMNS);
            tiles.b = (const uint16_t *)(const void *)panel;
            tiles.wide = width > 16;
            tiles.rows = width == COLUMNS ? b.rows / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS : 0;
            tiles.c = gemm->c + i0 * gemm->c_row + j;
            tiles.ahead = !last ? panel + panel_bytes
                          : more ? gemm->stored->panels + j0 / COLUMNS * panel_bytes + (s0 + most) * step_bytes
                                 : NULL;
            tiles.ahead_bytes = tiles.ahead ? least(last ? steps - s0 - most : steps - s0, most) * step_bytes : 0;
            if (tiles.rows > 0) prn_split_multiply(&tiles);
            halves_edge(&b, &tiles, j, tiles.rows);
        }
    }
    prn_split_end();
}
