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
#include "base/stop.h"
#include "ops/loops/split_product.h"
#include "ops/loops/stored_weights.h"

#include <string.h>

enum {
    ROWS = 128, /* of A, whose parts are on the stack */
    DEPTH = PRN_SPLIT_STEPS * PRN_SPLIT_DEPTH,
    COLUMNS = PRN_SPLIT_COLUMNS,
    LEAST_ROWS = 24, /* below, parts cost more than they save */
    LEAST_DEPTH = 48,
    LEAST_COLUMNS = 32
};

typedef struct block {
    const prn_gemm *gemm;
    int parts;
    int64_t i0, rows, j0, j1;
    _Alignas(64) uint16_t a[PRN_SPLIT_PARTS][PRN_SPLIT_STEPS][ROWS * PRN_SPLIT_DEPTH];
    _Alignas(64) uint16_t b[2][PRN_SPLIT_PANEL];
    _Alignas(64) float edge[PRN_SPLIT_EDGE_ROWS * COLUMNS];
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
        const int64_t first = prn_least(depth - at, 16), second = prn_least(depth - at - first, 16);
        parts = prn_split_rows(left, (int)first, second ? left + 16 : NULL, (int)second, gemm->a_row, b->rows, b->parts,
                               b->a[0][step], sizeof b->a[0] / sizeof(uint16_t)) &&
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
    return prn_gemm_split_edge(gemm, &rest, b->edge, b->i0 + whole, b->i0 + b->rows, j, width) && parts;
}

static bool multiply_rows(block *b)
{
    const int64_t k = b->gemm->k;
    prn_split_tiles tiles = {.a_part = sizeof b->a[0] / sizeof(uint16_t), .parts = b->parts};
    int half = 0;
    for (int s = 0; s < PRN_SPLIT_STEPS; s++) tiles.a[s] = b->a[0][s];
    if (!prn_split_panel(panel_at(b, 0, prn_least(k, DEPTH), b->j0), prn_least(k, DEPTH), b->parts, b->b[0])) return false;
    for (int64_t k0 = 0; k0 < k && !prn_stopped(); k0 += DEPTH) {
        const int64_t depth = prn_least(k - k0, DEPTH);
        if (!split_a(b, k0, depth)) return false;
        tiles.steps = (int)((depth + PRN_SPLIT_DEPTH - 1) / PRN_SPLIT_DEPTH);
        tiles.sums = k0 > 0 ? b->gemm->c : NULL; /* of which panel, multiply_panel says */
        for (int64_t j = b->j0; j < b->j1; j += COLUMNS, half = !half) {
            const bool last = j + COLUMNS >= b->j1;
            tiles.b = b->b[half];
            tiles.next_depths = last ? prn_least(k - k0 - DEPTH, DEPTH) : depth;
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
        b.rows = prn_least(i1 - b.i0, rows);
        parts = multiply_rows(&b);
    }
    prn_split_end();
    return parts;
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
    return multiply(gemm, i0, i1, j0, j1);
}
