/* For a few steps of the depth at a time: parts of some rows of A, then panel by panel of B. Parts are made while tiles
 * are computed: of a panel during the panel before, of A's next steps during all panels of these. Sums are kept beside
 * one another until the last steps, because rows of C may lie where a cache has few places for them.
 *
 *      depth of some steps                   panels of 32 columns
 *     +------+------+     +------+------+
 *     | now  | next |  x  | now  | next |   ->  sums, then C, tiles of 32 x 32, those at an edge by way of a buffer
 *     +------+------+     +------+------+ */
#include "ops/kernels/gemm/gemm_bf16x3.h"

#include "base/integers.h"
#include "base/memory/stack.h"
#include "base/threads/cancel.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/kernels/gemm/lowbit_weights.h"

#include <string.h>

/* Sizes follow from the stack and the second-level cache. LEAST_ROWS to LEAST_COLUMNS came with products by terms
 * (vit_b_16 took 0.80, bert_base 0.90 of its time on Sapphire Rapids); no measurement of single values is recorded. */
enum {
    STACK_ROWS = 128,      /* of A, with split terms on the stack, without scratch */
    FEW_ROWS = 64,         /* the same on a small stack: less than PRN_STACK_NEEDED */
    STACK_REST = 32 << 10, /* for what is called from there */
    STACK_STEPS = PRN_BF16X3_STEPS,
    SPACE_ROWS = 288,
    SPACE_STEPS = 4,
    COLUMNS = PRN_BF16X3_COLUMNS,
    STEP_PANEL = PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS, /* elements of a step of a panel */
    LEAST_ROWS = 24,                                    /* below, parts cost more than they save */
    LEAST_DEPTH = 48,
    LEAST_COLUMNS = 32
};

/* The place of parts and sums. */
typedef struct space {
    int64_t rows; /* of A, at most; whole tiles */
    int64_t steps;
    uint16_t *a[2]; /* [part][step][rows][32]; the second one NULL: A's next steps are not split on the way */
    uint16_t *b[2]; /* as prn_bf16x3_panel makes it */
    float *sums;    /* [panel][rows][32]; NULL: they are kept in C */
} space;

typedef struct block {
    const prn_gemm *gemm;
    const space *space;
    int parts;
    int64_t i0, rows, j0, j1;
    float *plain; /* of a panel that is stored in fewer bits */
    float *edge;  /* rows at an edge of C */
} block;

static int64_t gemm_bf16x3_whole_tiles(int64_t rows)
{
    return prn_ceil_div(rows, PRN_BF16X3_ROWS) * PRN_BF16X3_ROWS;
}

/* ---- working space */

static int64_t space_rows(int64_t rows)
{
    return prn_least(gemm_bf16x3_whole_tiles(rows), SPACE_ROWS);
}

static int64_t a_elements(int64_t rows)
{
    return PRN_BF16X3_PARTS * SPACE_STEPS * rows * PRN_BF16X3_DEPTH;
}

enum { SPACE_PANEL = PRN_BF16X3_PARTS * SPACE_STEPS * STEP_PANEL };

static int64_t sums_elements(int64_t rows, int64_t columns)
{
    return prn_ceil_div(columns, COLUMNS) * rows * COLUMNS;
}

size_t prn_gemm_bf16x3_space(int64_t rows, int64_t columns)
{
    const int64_t most = space_rows(rows);
    return (size_t)(2 * (a_elements(most) + SPACE_PANEL)) * sizeof(uint16_t) +
           (size_t)sums_elements(most, columns) * sizeof(float);
}

/* Of a block of so many rows, all of which lie in `bytes`. */
static space divide_space(char *bytes, int64_t rows)
{
    space s = {.rows = space_rows(rows), .steps = SPACE_STEPS};
    uint16_t *at = (uint16_t *)(void *)bytes;
    for (int i = 0; i < 2; i++, at += SPACE_PANEL) s.b[i] = at;
    for (int i = 0; i < 2; i++, at += a_elements(s.rows)) s.a[i] = at;
    s.sums = (float *)(void *)at;
    return s;
}

/* ---- steps */

/* Depths [k0, k0 + depth) of the panel of column j; in the block's buffer, until it is asked again, where they are
 * unpacked. */
static const float *panel_at(block *b, int64_t k0, int64_t depth, int64_t j)
{
    if (!b->gemm->stored) return b->gemm->packed + j * b->gemm->k + k0 * COLUMNS;
    prn_lowbit_isa()->unpack(b->gemm->stored, j, k0, depth, b->plain);
    return b->plain;
}

static int64_t a_part(const space *s)
{
    return s->steps * s->rows * PRN_BF16X3_DEPTH;
}

/* All of A's rows for depths [k0, k0 + depth), as what may be made on the way. */
static prn_bf16x3_left rows_at(const block *b, int64_t k0, int64_t depth, uint16_t *to)
{
    const int64_t steps = prn_ceil_div(depth, PRN_BF16X3_DEPTH);
    return (prn_bf16x3_left){.from = b->gemm->a + b->i0 * b->gemm->rs_a + k0,
                             .from_row = b->gemm->rs_a,
                             .depths = depth,
                             .rows = b->rows,
                             .count = steps * b->rows,
                             .to = to,
                             .to_step = b->space->rows * PRN_BF16X3_DEPTH,
                             .to_part = a_part(b->space)};
}

/* The same at once. */
static bool gemm_bf16x3_split_rows(const prn_bf16x3_left *left, int parts)
{
    bool finite = true;
    for (int64_t at = 0, step = 0; at < left->depths; at += PRN_BF16X3_DEPTH, step++) {
        const float *from = left->from + at;
        const int64_t first = prn_least(left->depths - at, 16), second = prn_least(left->depths - at - first, 16);
        finite = prn_bf16x3_rows(from, (int)first, second ? from + 16 : NULL, (int)second, left->from_row, left->rows,
                                 parts, left->to + step * left->to_step, left->to_part) &&
                 finite;
    }
    return finite;
}

bool prn_gemm_bf16x3_edge(const prn_gemm *gemm, const prn_bf16x3_tiles *tiles, float *edge, int64_t i0, int64_t i1,
                          int64_t j, int64_t width)
{
    const size_t bytes = (size_t)width * sizeof(float);
    prn_bf16x3_tiles part = *tiles;
    bool parts = true;
    part.c = edge;
    part.rs_c = COLUMNS;
    for (int64_t i = i0, rows; i < i1; i += rows, part.next = NULL, part.left = NULL, part.ahead = NULL) {
        rows = prn_least(i1 - i, PRN_BF16X3_EDGE_ROWS);
        part.rows = gemm_bf16x3_whole_tiles(rows);
        float *c = gemm->c + i * gemm->rs_c + j;
        if (tiles->sums == gemm->c + i0 * gemm->rs_c + j) { /* rows of C, which end where tiles do not */
            for (int64_t r = 0; r < rows; r++) memcpy(edge + r * COLUMNS, c + r * gemm->rs_c, bytes);
            part.sums = edge;
            part.sums_row = COLUMNS;
        }
        parts = prn_bf16x3_multiply(&part) && parts;
        for (int64_t r = 0; r < rows; r++) memcpy(c + r * gemm->rs_c, edge + r * COLUMNS, bytes);
        for (int s = 0; s < part.steps; s++) part.a[s] += rows * PRN_BF16X3_DEPTH;
        if (part.sums && part.sums != edge) part.sums += rows * part.sums_row;
    }
    return parts;
}

/* One panel's columns from column `j` on; whole tiles go to C, others through the buffer. */
static bool gemm_bf16x3_multiply_panel(block *b, prn_bf16x3_tiles *tiles, int64_t j)
{
    const prn_gemm *gemm = b->gemm;
    const int64_t width = prn_least(b->j1 - j, COLUMNS),
                  whole = width == COLUMNS ? b->rows / PRN_BF16X3_ROWS * PRN_BF16X3_ROWS : 0;
    bool parts = true;
    tiles->c = gemm->c + b->i0 * gemm->rs_c + j;
    tiles->rs_c = gemm->rs_c;
    if (whole) {
        tiles->rows = whole;
        parts = prn_bf16x3_multiply(tiles);
    }
    if (whole == b->rows) return parts;
    prn_bf16x3_tiles rest = *tiles;
    for (int s = 0; s < rest.steps; s++) rest.a[s] += whole * PRN_BF16X3_DEPTH;
    if (rest.sums) rest.sums += whole * rest.sums_row;
    if (whole) rest.next = NULL, rest.left = NULL; /* done */
    return prn_gemm_bf16x3_edge(gemm, &rest, b->edge, b->i0 + whole, b->i0 + b->rows, j, width) && parts;
}

/* Part `number` of `count` of what is to be made. */
static void take_part(prn_bf16x3_left *part, const prn_bf16x3_left *all, int64_t number, int64_t count)
{
    const int64_t begin = all->count * number / count;
    *part = *all;
    part->step = begin / all->rows;
    part->row = begin % all->rows;
    part->count = all->count * (number + 1) / count - begin;
}

/* Panels of the depths [k0, k0 + depth), of which A's parts are in a[which]. */
static bool multiply_depths(block *b, int64_t k0, int which, int *half)
{
    const int64_t k = b->gemm->k, most = b->space->steps * PRN_BF16X3_DEPTH, depth = prn_least(k - k0, most);
    const int64_t ahead = prn_least(k - k0 - depth, most), panels = (b->j1 - b->j0 + COLUMNS - 1) / COLUMNS;
    prn_bf16x3_tiles tiles = {
        .a_part = a_part(b->space), .parts = b->parts, .steps = (int)prn_ceil_div(depth, PRN_BF16X3_DEPTH)};
    prn_bf16x3_left all = {.count = 0}, some;
    if (ahead && b->space->a[1]) all = rows_at(b, k0 + depth, ahead, b->space->a[!which]);
    if (k - k0 - depth > most) all.ahead = most;
    for (int s = 0; s < tiles.steps; s++) tiles.a[s] = b->space->a[which] + s * b->space->rows * PRN_BF16X3_DEPTH;
    for (int64_t panel = 0; panel < panels; panel++, *half = !*half) {
        const int64_t j = b->j0 + panel * COLUMNS;
        const bool last = panel + 1 == panels;
        float *sums =
            b->space->sums ? b->space->sums + panel * b->space->rows * COLUMNS : b->gemm->c + b->i0 * b->gemm->rs_c + j;
        tiles.wide = b->j1 - j > 16;
        tiles.b = b->space->b[*half];
        tiles.next_b = b->space->b[!*half];
        tiles.next_depths = last ? ahead : depth;
        tiles.next = !last ? panel_at(b, k0, depth, j + COLUMNS) : ahead ? panel_at(b, k0 + depth, ahead, b->j0) : NULL;
        tiles.sums = k0 > 0 ? sums : NULL;
        tiles.sums_row = b->space->sums ? COLUMNS : b->gemm->rs_c;
        tiles.left = all.count ? &some : NULL;
        if (all.count) take_part(&some, &all, panel, panels);
        if (!b->space->sums || !ahead) {
            if (!gemm_bf16x3_multiply_panel(b, &tiles, j)) return false;
            continue;
        }
        tiles.c = sums;
        tiles.rs_c = COLUMNS;
        tiles.rows = gemm_bf16x3_whole_tiles(b->rows);
        if (!prn_bf16x3_multiply(&tiles)) return false;
    }
    return true;
}

static bool gemm_bf16x3_multiply_rows(block *b)
{
    const int64_t k = b->gemm->k, most = b->space->steps * PRN_BF16X3_DEPTH;
    int half = 0, which = 0;
    if (!prn_bf16x3_panel(panel_at(b, 0, prn_least(k, most), b->j0), prn_least(k, most), b->parts, b->space->b[0]))
        return false;
    for (int64_t k0 = 0; k0 < k && !prn_cancelled(); k0 += most) {
        if (k0 == 0 || !b->space->a[1]) {
            const prn_bf16x3_left left = rows_at(b, k0, prn_least(k - k0, most), b->space->a[which]);
            if (!gemm_bf16x3_split_rows(&left, b->parts)) return false;
        }
        if (!multiply_depths(b, k0, which, &half)) return false;
        if (b->space->a[1]) which = !which;
    }
    return true;
}

static bool gemm_bf16x3_multiply(block *b, int64_t i0, int64_t i1)
{
    const int64_t blocks = (i1 - i0 + b->space->rows - 1) / b->space->rows,
                  rows = gemm_bf16x3_whole_tiles((i1 - i0 + blocks - 1) / blocks);
    bool parts = true;
    prn_bf16x3_begin();
    for (b->i0 = i0; b->i0 < i1 && parts && !prn_cancelled(); b->i0 += rows) {
        b->rows = prn_least(i1 - b->i0, rows);
        parts = gemm_bf16x3_multiply_rows(b);
    }
    prn_bf16x3_end();
    return parts;
}

/* ---- without working space */

enum {
    A_PARTS = PRN_BF16X3_PARTS * STACK_STEPS * PRN_BF16X3_DEPTH, /* of a row of A */
    B_PARTS = PRN_BF16X3_PARTS * STACK_STEPS * STEP_PANEL
};

typedef struct few_rows {
    _Alignas(64) uint16_t b[2][B_PARTS];
    _Alignas(64) uint16_t a[A_PARTS * FEW_ROWS];
} few_rows;

typedef struct many_rows {
    _Alignas(64) uint16_t b[2][B_PARTS];
    _Alignas(64) uint16_t a[A_PARTS * STACK_ROWS];
} many_rows;

typedef struct edges {
    _Alignas(64) float edge[PRN_BF16X3_EDGE_ROWS * COLUMNS];
    _Alignas(64) float plain[SPACE_STEPS * STEP_PANEL];
} edges;
_Static_assert(sizeof(few_rows) + sizeof(edges) + (16 << 10) < PRN_STACK_NEEDED,
               "PRN_STACK_NEEDED holds them and what is called from there");

static PRN_OWN_FRAME bool multiply_few(block *b, int64_t i0, int64_t i1)
{
    few_rows own;
    const space s = {.rows = FEW_ROWS, .steps = STACK_STEPS, .a = {own.a, NULL}, .b = {own.b[0], own.b[1]}};
    b->space = &s;
    return gemm_bf16x3_multiply(b, i0, i1);
}

static PRN_OWN_FRAME bool multiply_many(block *b, int64_t i0, int64_t i1)
{
    many_rows own;
    const space s = {.rows = STACK_ROWS, .steps = STACK_STEPS, .a = {own.a, NULL}, .b = {own.b[0], own.b[1]}};
    b->space = &s;
    return gemm_bf16x3_multiply(b, i0, i1);
}

/* Sums do not depend on how many rows are at hand, so that it is the caller's stack that may say how many. */
static bool stack_has_room(void)
{
    const size_t left = prn_stack_left();
    return left != SIZE_MAX && left >= sizeof(many_rows) + STACK_REST;
}

bool prn_gemm_bf16x3_profitable(const prn_gemm *gemm)
{
    return gemm->parts != PRN_BF16X3_NEVER && gemm->m >= LEAST_ROWS && gemm->k >= LEAST_DEPTH &&
           gemm->n >= LEAST_COLUMNS && (gemm->packed || gemm->stored) && gemm->cs_a == 1 &&
           prn_bf16x3_there(gemm->parts ? gemm->parts : PRN_BF16X3_PARTS);
}

bool prn_gemm_bf16x3_takes(const prn_gemm *gemm, int64_t rows)
{
    return rows >= LEAST_ROWS && prn_gemm_bf16x3_profitable(gemm);
}

bool prn_gemm_bf16x3_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1, char *space_bytes)
{
    edges own;
    block b = {.gemm = gemm,
               .parts = gemm->parts ? gemm->parts : PRN_BF16X3_PARTS,
               .j0 = j0,
               .j1 = j1,
               .edge = own.edge,
               .plain = own.plain};
    if (!space_bytes) return (stack_has_room() ? multiply_many : multiply_few)(&b, i0, i1);
    const space s = divide_space(space_bytes, i1 - i0);
    b.space = &s;
    return gemm_bf16x3_multiply(&b, i0, i1);
}
