/* For a few steps of the depth at a time: parts of some rows of A, then panel by panel of B, whose parts are made while the
 * tiles of the one before are computed; sums are kept in C.
 *
 *      depth of some steps                   panels of 32 columns
 *     +-------------+     +------+------+
 *     | A's parts   |  x  | now  | next |   ->  C, tiles of 32 x 32, those at an edge by way of a buffer
 *     +-------------+     +------+------+
 */
#include "ops/loops/gemm_split.h"

#include "base/integers.h"
#include "base/stack.h"
#include "base/stop.h"
#include "ops/loops/split_product.h"
#include "ops/loops/stored_weights.h"

#include <string.h>

enum {
    ROWS = 128,    /* of A, whose parts are on the stack */
    FEW_ROWS = 64, /* the same on a small stack: less than PRN_STACK_NEEDED */
    STACK_REST = 32 << 10, /* for what is called from there */
    DEPTH = PRN_SPLIT_STEPS * PRN_SPLIT_DEPTH,
    COLUMNS = PRN_SPLIT_COLUMNS,
    LEAST_ROWS = 24, /* below, parts cost more than they save */
    LEAST_DEPTH = 48,
    LEAST_COLUMNS = 32
};

enum { A_PARTS = PRN_SPLIT_PARTS * PRN_SPLIT_STEPS * PRN_SPLIT_DEPTH /* parts of a row of A, of one span of depths */ };

typedef struct buffers {
    _Alignas(64) uint16_t b[2][PRN_SPLIT_PANEL];
    _Alignas(64) float edge[PRN_SPLIT_EDGE_ROWS * COLUMNS];
    _Alignas(64) float plain[DEPTH * COLUMNS]; /* of a panel that is stored in fewer bits */
} buffers;

typedef struct block {
    const prn_gemm *gemm;
    int parts;
    int64_t i0, rows, j0, j1;
    buffers *buffers;
    uint16_t *a;    /* [part][step][rows, `a_step` elements] */
    int64_t a_step;
} block;

/* Depths [k0, k0 + depth) of the panel of column j; in the block's buffer, until it is asked again, where they are unpacked. */
static const float *panel_at(block *b, int64_t k0, int64_t depth, int64_t j)
{
    if (!b->gemm->stored) return b->gemm->packed + j * b->gemm->k + k0 * COLUMNS;
    prn_stored_isa()->unpack(b->gemm->stored, j, k0, depth, b->buffers->plain);
    return b->buffers->plain;
}

/* Parts of A's rows for depths [k0, k0 + depth). */
static bool split_a(block *b, int64_t k0, int64_t depth)
{
    const prn_gemm *gemm = b->gemm;
    bool parts = true;
    for (int64_t at = 0, step = 0; at < depth; at += PRN_SPLIT_DEPTH, step++) {
        const float *left = gemm->a + b->i0 * gemm->a_row + k0 + at;
        const int64_t first = prn_least(depth - at, 16), second = prn_least(depth - at - first, 16);
        parts = prn_split_rows(left, (int)first, second ? left + 16 : NULL, (int)second, gemm->a_row, b->rows, b->parts,
                               b->a + step * b->a_step, PRN_SPLIT_STEPS * b->a_step) &&
                parts;
    }
    return parts;
}

bool prn_gemm_split_edge(const prn_gemm *gemm, const prn_split_tiles *tiles, float *edge, int64_t i0, int64_t i1, int64_t j, int64_t width)
{
    const size_t bytes = (size_t)width * sizeof(float);
    prn_split_tiles part = *tiles;
    bool parts = true;
    part.c = edge;
    part.c_row = part.sums_row = COLUMNS;
    if (part.sums) part.sums = edge;
    for (int64_t i = i0, rows; i < i1; i += rows, part.next = NULL, part.ahead = NULL) {
        rows = prn_least(i1 - i, PRN_SPLIT_EDGE_ROWS);
        part.rows = (rows + PRN_SPLIT_ROWS - 1) / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS;
        float *c = gemm->c + i * gemm->c_row + j;
        for (int64_t r = 0; r < rows && part.sums; r++) memcpy(edge + r * COLUMNS, c + r * gemm->c_row, bytes);
        parts = prn_split_multiply(&part) && parts;
        for (int64_t r = 0; r < rows; r++) memcpy(c + r * gemm->c_row, edge + r * COLUMNS, bytes);
        for (int s = 0; s < part.steps; s++) part.a[s] += rows * PRN_SPLIT_DEPTH;
    }
    return parts;
}

/* One panel's columns from column `j` on; whole tiles go to C, others through the buffer. */
static bool multiply_panel(block *b, prn_split_tiles *tiles, int64_t j)
{
    const prn_gemm *gemm = b->gemm;
    const int64_t width = prn_least(b->j1 - j, COLUMNS), whole = width == COLUMNS ? b->rows / PRN_SPLIT_ROWS * PRN_SPLIT_ROWS : 0;
    bool parts = true;
    tiles->wide = width > 16;
    if (whole) {
        tiles->rows = whole;
        tiles->c = gemm->c + b->i0 * gemm->c_row + j;
        tiles->c_row = tiles->sums_row = gemm->c_row;
        if (tiles->sums) tiles->sums = tiles->c;
        parts = prn_split_multiply(tiles);
    }
    if (whole == b->rows) return parts;
    prn_split_tiles rest = *tiles;
    for (int s = 0; s < rest.steps; s++) rest.a[s] += whole * PRN_SPLIT_DEPTH;
    if (whole) rest.next = NULL; /* done */
    return prn_gemm_split_edge(gemm, &rest, b->buffers->edge, b->i0 + whole, b->i0 + b->rows, j, width) && parts;
}

static bool multiply_rows(block *b)
{
    const int64_t k = b->gemm->k;
    prn_split_tiles tiles = {.a_part = PRN_SPLIT_STEPS * b->a_step, .parts = b->parts};
    uint16_t(*const panels)[PRN_SPLIT_PANEL] = b->buffers->b;
    int half = 0;
    for (int s = 0; s < PRN_SPLIT_STEPS; s++) tiles.a[s] = b->a + s * b->a_step;
    if (!prn_split_panel(panel_at(b, 0, prn_least(k, DEPTH), b->j0), prn_least(k, DEPTH), b->parts, panels[0])) return false;
    for (int64_t k0 = 0; k0 < k && !prn_stopped(); k0 += DEPTH) {
        const int64_t depth = prn_least(k - k0, DEPTH);
        if (!split_a(b, k0, depth)) return false;
        tiles.steps = (int)((depth + PRN_SPLIT_DEPTH - 1) / PRN_SPLIT_DEPTH);
        tiles.sums = k0 > 0 ? b->gemm->c : NULL; /* of which panel, multiply_panel says */
        for (int64_t j = b->j0; j < b->j1; j += COLUMNS, half = !half) {
            const bool last = j + COLUMNS >= b->j1;
            tiles.b = panels[half];
            tiles.next_depths = last ? prn_least(k - k0 - DEPTH, DEPTH) : depth;
            tiles.next = !last            ? panel_at(b, k0, depth, j + COLUMNS)
                         : k0 + DEPTH < k ? panel_at(b, k0 + DEPTH, tiles.next_depths, b->j0)
                                          : NULL;
            tiles.next_b = panels[!half];
            if (!multiply_panel(b, &tiles, j)) return false;
        }
    }
    return true;
}

static bool multiply(block *b, int64_t i0, int64_t i1, int64_t most_rows)
{
    b->parts = b->gemm->parts ? b->gemm->parts : PRN_SPLIT_PARTS;
    b->a_step = most_rows * PRN_SPLIT_DEPTH;
    const int64_t blocks = prn_ceil_div(i1 - i0, most_rows), rows = prn_ceil_div(prn_ceil_div(i1 - i0, blocks), 16) * 16;
    bool parts = true;
    prn_split_begin();
    for (b->i0 = i0; b->i0 < i1 && parts && !prn_stopped(); b->i0 += rows) {
        b->rows = prn_least(i1 - b->i0, rows);
        parts = multiply_rows(b);
    }
    prn_split_end();
    return parts;
}

typedef struct few_rows {
    buffers buffers;
    _Alignas(64) uint16_t a[A_PARTS * FEW_ROWS];
} few_rows;
_Static_assert(sizeof(few_rows) + (16 << 10) < PRN_STACK_NEEDED, "PRN_STACK_NEEDED holds it and what is called from there");

typedef struct many_rows {
    buffers buffers;
    _Alignas(64) uint16_t a[A_PARTS * ROWS];
} many_rows;

static PRN_OWN_FRAME bool multiply_few(block *b, int64_t i0, int64_t i1)
{
    few_rows own;
    b->buffers = &own.buffers;
    b->a = own.a;
    return multiply(b, i0, i1, FEW_ROWS);
}

static PRN_OWN_FRAME bool multiply_many(block *b, int64_t i0, int64_t i1)
{
    many_rows own;
    b->buffers = &own.buffers;
    b->a = own.a;
    return multiply(b, i0, i1, ROWS);
}

/* Sums do not depend on how many rows are at hand, so that it is the caller's stack that may say how many. */
static bool stack_has_room(void)
{
    const size_t left = prn_stack_left();
    return left != SIZE_MAX && left >= sizeof(many_rows) + STACK_REST;
}

bool prn_gemm_split_worth(const prn_gemm *gemm)
{
    return gemm->parts != PRN_SPLIT_NEVER && gemm->m >= LEAST_ROWS && gemm->k >= LEAST_DEPTH && gemm->n >= LEAST_COLUMNS &&
           (gemm->packed || gemm->stored) && gemm->a_col == 1 &&
           prn_split_there();
}

bool prn_gemm_split_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    if (i1 - i0 < LEAST_ROWS || j1 - j0 < LEAST_COLUMNS || !prn_gemm_split_worth(gemm)) return false;
    block b = {.gemm = gemm, .j0 = j0, .j1 = j1};
    return (stack_has_room() ? multiply_many : multiply_few)(&b, i0, i1);
}
