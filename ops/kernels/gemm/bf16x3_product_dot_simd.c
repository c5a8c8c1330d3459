/* The functions of ops/kernels/gemm/bf16x3_product.h for one instruction set (PRN_SIMD names it); some have none.
 *
 * Here they are on tiles (AMX), in bf16x3_vectors.h on vectors (AVX512_BF16).
 *
 * Tiles 0 to 3 are sums of 16 x 16, two by two; 4 and 5 are rows of A, 6 and 7 columns of B. */
#include "ops/kernels/gemm/bf16x3_product.h"

#include "base/cpu/simd.h"

#include <stddef.h>

#if defined(PRN_TILES_BF16) && defined(__AVX512BW__)

#include "ops/kernels/gemm/bf16x3_terms.h"

#define MOST_PARTS PRN_BF16X3_PARTS

/* ---- tiles */

static void bf16x3_split_begin(void)
{
    static const struct {
        uint8_t palette, start_row, none[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&shapes);
}

static void bf16x3_split_end(void)
{
    _tile_release();
}

/* Constants after inlining: `tall`: two tiles of rows; `wide`: two of columns. */
static inline __attribute__((always_inline)) void load_a(const uint16_t *a, const bool tall)
{
    _tile_stream_loadd(4, a, 64);
    if (tall) _tile_stream_loadd(5, a + PRN_BF16X3_ROWS * PRN_BF16X3_DEPTH, 64);
}

static inline __attribute__((always_inline)) void load_b(const uint16_t *b, const bool wide)
{
    _tile_loadd(6, b, 64);
    if (wide) _tile_loadd(7, b + PRN_BF16X3_ROWS * PRN_BF16X3_DEPTH, 64);
}

static inline __attribute__((always_inline)) void bf16x3_product_add_products(const bool tall, const bool wide)
{
    _tile_dpbf16ps(0, 4, 6);
    if (wide) _tile_dpbf16ps(1, 4, 7);
    if (tall) _tile_dpbf16ps(2, 5, 6);
    if (tall && wide) _tile_dpbf16ps(3, 5, 7);
}

/* Work between products, which leave the vectors' units and the memory idle: so many halves of a pair of a
 * panel's rows, or rows of A, behind every group of them. Steps are whole; what is left of a panel or of A's depths is
 * done at the end. */
typedef struct between {
    int64_t due, rate;   /* in 65536ths */
    const float *panel;  /* the next pair's first row */
    int64_t ahead;       /* elements to what is fetched */
    int64_t pairs, pair; /* left in all, and in the step */
    uint16_t *panel_to;
    const float *row;            /* of A, the next one */
    int64_t from_row, rows, run; /* left in all, and in the step */
    uint16_t *row_to;
    int64_t to_part;
    const prn_bf16x3_left *left;
    __m512i largest;
} between;

static inline __attribute__((always_inline)) void do_pair(between *w, const int parts)
{
    for (int64_t line = 0; line < 2 * PRN_BF16X3_COLUMNS; line += 16) /* of both rows, which lie apart in what is ahead,
                                                                        too */
        _mm_prefetch((const char *)(w->panel + w->ahead + line % 32 + line / 32 * 16 * PRN_BF16X3_COLUMNS),
                     _MM_HINT_T1);
    w->largest = _mm512_max_epu32(w->largest, split_pair(w->panel, 0, PRN_BF16X3_DEPTH, parts, w->panel_to));
    w->due -= 2 << 16;
    w->pairs--;
    w->panel += PRN_BF16X3_COLUMNS;
    w->panel_to += 32;
    if (--w->pair > 0) return;
    w->pair = 16;
    w->panel += 16 * PRN_BF16X3_COLUMNS;
    w->panel_to += 2 * TILE * parts - TILE;
}

/* The rows of A from `row` of `step` on that are left in it. */
static inline __attribute__((always_inline)) void bf16x3_product_begin_rows(between *w, int64_t step, int64_t row)
{
    const prn_bf16x3_left *l = w->left;
    w->row = l->from + row * l->from_row + step * PRN_BF16X3_DEPTH;
    w->row_to = l->to + step * l->to_step + row * PRN_BF16X3_DEPTH;
    w->run = l->rows - row < w->rows ? l->rows - row : w->rows;
}

static inline __attribute__((always_inline)) void do_row(between *w, const int parts)
{
    _mm_prefetch((const char *)(w->row + w->left->ahead), _MM_HINT_T1);
    _mm_prefetch((const char *)(w->row + w->left->ahead + 16), _MM_HINT_T1);
    const __m512 first = _mm512_loadu_ps(w->row), second = _mm512_loadu_ps(w->row + 16);
    w->largest = bf16x3_terms_larger(bf16x3_terms_larger(w->largest, first), second);
    store_parts(first, second, parts, w->row_to, w->to_part);
    w->due -= 1 << 16;
    w->row += w->from_row;
    w->row_to += PRN_BF16X3_DEPTH;
    w->rows--;
    if (--w->run > 0 || w->rows <= 0) return;
    bf16x3_product_begin_rows(w, (w->row_to - 1 - w->left->to) / w->left->to_step + 1, 0);
}

static inline __attribute__((always_inline)) void do_some(between *w, const int parts)
{
    w->due += w->rate;
    while (w->due > 0) {
        if (w->pairs > 0)
            do_pair(w, parts);
        else if (w->rows > 0)
            do_row(w, parts);
        else
            w->due -= 1 << 16;
    }
}

/* If nothing comes next, memory is fetched, so many lines with each product, which leaves room for tiles that
 * are loaded. */
typedef struct fetched {
    const char *at;
    int64_t lines;
} fetched;

static inline __attribute__((always_inline)) void fetch_some(fetched *f)
{
    for (int64_t i = 0; i < f->lines; i++, f->at += 64) _mm_prefetch(f->at, _MM_HINT_T1);
}

/* Behind a product: one of the two is there. */
static inline __attribute__((always_inline)) void bf16x3_product_go_on(between *w, fetched *ahead, const int parts)
{
    if (w) do_some(w, parts);
    if (ahead) fetch_some(ahead);
}

/* In an order in which every other product finds one of its operands in its tile. */
static inline __attribute__((always_inline)) void bf16x3_product_step(const uint16_t *a, int64_t a_part,
                                                                      const uint16_t *b, between *w, fetched *ahead,
                                                                      const int parts, const bool tall, const bool wide)
{
    const int64_t b_part = 2 * PRN_BF16X3_DEPTH * PRN_BF16X3_ROWS;
    if (parts == 3) {
        load_a(a, tall), load_b(b + 2 * b_part, wide), bf16x3_product_add_products(tall, wide),
            bf16x3_product_go_on(w, ahead, 3);
        load_b(b + b_part, wide), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 3);
        load_a(a + a_part, tall), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 3);
        load_b(b, wide), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 3);
        load_a(a + 2 * a_part, tall), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 3);
        load_a(a, tall), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 3);
    } else if (parts == 2) {
        load_a(a, tall), load_b(b + b_part, wide), bf16x3_product_add_products(tall, wide),
            bf16x3_product_go_on(w, ahead, 2);
        load_b(b, wide), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 2);
        load_a(a + a_part, tall), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 2);
    } else {
        load_a(a, tall), load_b(b, wide), bf16x3_product_add_products(tall, wide), bf16x3_product_go_on(w, ahead, 1);
    }
}

static inline __attribute__((always_inline)) void load_sums(const prn_bf16x3_tiles *t, int64_t row, const bool tall,
                                                            const bool wide)
{
    if (t->sums) {
        const float *const sums = t->sums + row * t->sums_row, *const below = sums + PRN_BF16X3_ROWS * t->sums_row;
        const int64_t bytes = t->sums_row * (int64_t)sizeof(float);
        _tile_loadd(0, sums, bytes);
        if (wide) _tile_loadd(1, sums + 16, bytes);
        if (tall) _tile_loadd(2, below, bytes);
        if (tall && wide) _tile_loadd(3, below + 16, bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
}

static inline __attribute__((always_inline)) void store_sums(const prn_bf16x3_tiles *t, int64_t row, const bool tall,
                                                             const bool wide)
{
    float *const c = t->c + row * t->rs_c, *const below = c + PRN_BF16X3_ROWS * t->rs_c;
    const int64_t bytes = t->rs_c * (int64_t)sizeof(float);
    _tile_stored(0, c, bytes);
    if (wide) _tile_stored(1, c + 16, bytes);
    if (tall) _tile_stored(2, below, bytes);
    if (tall && wide) _tile_stored(3, below + 16, bytes);
}

static inline __attribute__((always_inline)) void bf16x3_product_tile(const prn_bf16x3_tiles *t, int64_t row,
                                                                      between *w, fetched *ahead, const int parts,
                                                                      const bool tall, const bool wide)
{
    const uint16_t *b = t->b;
    load_sums(t, row, tall, wide);
    for (int s = 0; s < t->steps; s++, b += 2 * TILE * parts)
        bf16x3_product_step(t->a[s] + row * PRN_BF16X3_DEPTH, t->a_part, b, w, ahead, parts, tall, wide);
    store_sums(t, row, tall, wide);
}

static inline __attribute__((always_inline)) between begin_between(const prn_bf16x3_tiles *t, const int parts)
{
    const int64_t groups =
        (t->rows + 2 * PRN_BF16X3_ROWS - 1) / (2 * PRN_BF16X3_ROWS) * t->steps * prn_bf16x3_products(parts);
    between w = {
        .panel = t->next, .pair = 16, .panel_to = t->next_b, .largest = _mm512_setzero_si512(), .left = t->left};
    w.ahead = t->steps * PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS;
    w.pairs = t->next ? t->next_depths / PRN_BF16X3_DEPTH * 16 : 0;
    if (t->left && t->left->count) {
        const int64_t whole = t->left->depths / PRN_BF16X3_DEPTH * t->left->rows,
                      begin = t->left->step * t->left->rows + t->left->row;
        w.rows = whole - begin < t->left->count ? whole - begin : t->left->count;
        w.from_row = t->left->from_row;
        w.to_part = t->left->to_part;
        if (w.rows > 0) bf16x3_product_begin_rows(&w, t->left->step, t->left->row);
    }
    w.rate = groups ? ((2 * w.pairs + (w.rows > 0 ? w.rows : 0)) << 16) / groups + 1 : 0;
    return w;
}

/* Parts that are not there by now, and the depths beyond whole steps. */
static inline __attribute__((always_inline)) bool end_between(between *w, const prn_bf16x3_tiles *t, const int parts)
{
    while (w->pairs > 0) do_pair(w, parts);
    while (w->rows > 0) do_row(w, parts);
    bool finite = all_have_parts(w->largest);
    if (t->next && t->next_depths % PRN_BF16X3_DEPTH) {
        const int64_t whole = t->next_depths / PRN_BF16X3_DEPTH * PRN_BF16X3_DEPTH;
        finite = bf16x3_split_panel(t->next + whole * PRN_BF16X3_COLUMNS, t->next_depths - whole, parts,
                                    t->next_b + whole * PRN_BF16X3_COLUMNS * parts) &&
                 finite;
    }
    if (t->left && t->left->depths % PRN_BF16X3_DEPTH) {
        const prn_bf16x3_left *l = t->left;
        const int64_t step = l->depths / PRN_BF16X3_DEPTH, begin = l->step * l->rows + l->row, end = begin + l->count;
        const int64_t row = begin > step * l->rows ? begin - step * l->rows : 0, rows = end - step * l->rows - row,
                      depths = l->depths % PRN_BF16X3_DEPTH;
        const float *from = l->from + row * l->from_row + step * PRN_BF16X3_DEPTH;
        const int first = depths < 16 ? (int)depths : 16, second = (int)depths - first;
        if (rows > 0)
            finite = bf16x3_split_rows(from, first, second ? from + 16 : NULL, second, l->from_row, rows, parts,
                                       l->to + step * l->to_step + row * PRN_BF16X3_DEPTH, l->to_part) &&
                     finite;
    }
    return finite;
}

static inline __attribute__((always_inline)) bool bf16x3_product_multiply(const prn_bf16x3_tiles *t, const int parts,
                                                                          const bool wide)
{
    between w = begin_between(t, parts);
    int64_t row = 0;
    for (; row + 2 * PRN_BF16X3_ROWS <= t->rows; row += 2 * PRN_BF16X3_ROWS)
        bf16x3_product_tile(t, row, &w, NULL, parts, true, wide);
    if (row < t->rows) bf16x3_product_tile(t, row, &w, NULL, parts, false, wide);
    return end_between(&w, t, parts);
}

/* The same where nothing comes next. Memory ahead is fetched in whole lines for each product, and so a little beyond
 * its end. */
static inline __attribute__((always_inline)) void multiply_alone(const prn_bf16x3_tiles *t, const int parts,
                                                                 const bool wide)
{
    const int64_t products =
        (t->rows + 2 * PRN_BF16X3_ROWS - 1) / (2 * PRN_BF16X3_ROWS) * t->steps * prn_bf16x3_products(parts);
    fetched ahead = {t->ahead, t->ahead && products ? (t->ahead_bytes / 64 + products - 1) / products : 0};
    int64_t row = 0;
    for (; row + 2 * PRN_BF16X3_ROWS <= t->rows; row += 2 * PRN_BF16X3_ROWS)
        bf16x3_product_tile(t, row, NULL, &ahead, parts, true, wide);
    if (row < t->rows) bf16x3_product_tile(t, row, NULL, &ahead, parts, false, wide);
}

/* Each a function of its own: what a loop needs has registers then. */
#define MULTIPLY(parts, wide, name)                                                                                    \
    static __attribute__((noinline)) bool multiply_##name(const prn_bf16x3_tiles *t)                                   \
    {                                                                                                                  \
        return bf16x3_product_multiply(t, parts, wide);                                                                \
    }                                                                                                                  \
    static __attribute__((noinline)) void alone_##name(const prn_bf16x3_tiles *t)                                      \
    {                                                                                                                  \
        multiply_alone(t, parts, wide);                                                                                \
    }

MULTIPLY(1, false, 1_narrow)
MULTIPLY(1, true, 1_wide)
MULTIPLY(2, false, 2_narrow)
MULTIPLY(2, true, 2_wide)
MULTIPLY(3, false, 3_narrow)
MULTIPLY(3, true, 3_wide)

/* Compilers do not know which memory the tiles' instructions touch. */
static inline void order_memory(void)
{
    __asm__ volatile("" ::: "memory");
}

static bool bf16x3_split_multiply(const prn_bf16x3_tiles *t)
{
    static bool (*const with_next[PRN_BF16X3_PARTS][2])(const prn_bf16x3_tiles *) = {
        {multiply_1_narrow, multiply_1_wide},
        {multiply_2_narrow, multiply_2_wide},
        {multiply_3_narrow, multiply_3_wide}};
    static void (*const alone[PRN_BF16X3_PARTS][2])(const prn_bf16x3_tiles *) = {
        {alone_1_narrow, alone_1_wide}, {alone_2_narrow, alone_2_wide}, {alone_3_narrow, alone_3_wide}};
    bool next_has_parts = true;
    order_memory();
    if (t->next || t->left)
        next_has_parts = with_next[t->parts - 1][t->wide](t);
    else
        alone[t->parts - 1][t->wide](t);
    order_memory();
    return next_has_parts;
}

#elif defined(__AVX512BF16__)

#include "ops/kernels/gemm/bf16x3_vectors.h"

#define MOST_PARTS 1 /* three products of them take longer than one of float32 */

#elif defined(PRN_EMULATED_TILES)

/* Without tiles, the same in plain C, for tests. */

#include "ops/kernels/gemm/bf16x3_left.h"

#include <string.h>

#define MOST_PARTS PRN_BF16X3_PARTS

static void bf16x3_split_begin(void)
{
}

static void bf16x3_split_end(void)
{
}

static uint32_t bf16x3_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float value_of(uint16_t part)
{
    const uint32_t bits = (uint32_t)part << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* false: x has no parts. */
static bool bf16x3_emulated_store_parts(float x, int parts, uint16_t *to, int64_t part_step)
{
    const bool has_parts = 2 * bf16x3_bits_of(x) < 2 * UINT32_C(0x7f7f8000);
    for (int p = 0; p < parts; p++, to += part_step) {
        *to = (uint16_t)((bf16x3_bits_of(x) + 0x8000) >> 16);
        x -= value_of(*to);
    }
    return has_parts;
}

static bool bf16x3_split_rows(const float *left, int left_count, const float *right, int right_count, int64_t step,
                              int64_t rows, int parts, uint16_t *to, int64_t part_step)
{
    bool finite = true;
    for (int64_t r = 0; r < rows; r++, to += PRN_BF16X3_DEPTH) {
        for (int i = 0; i < 16; i++) {
            finite =
                bf16x3_emulated_store_parts(i < left_count ? left[r * step + i] : 0.0f, parts, to + 2 * i, part_step) &&
                finite;
            finite = bf16x3_emulated_store_parts(i < right_count ? right[r * step + i] : 0.0f, parts, to + 2 * i + 1,
                                                 part_step) &&
                     finite;
        }
    }
    return finite;
}

static bool bf16x3_split_rows_around(float center, const float *left, const float *right, int64_t step, int64_t rows,
                                     uint16_t *to, int64_t part_step)
{
    bool finite = true;
    if (!right) right = left;
    for (int64_t r = 0; r < rows; r++, to += PRN_BF16X3_DEPTH) {
        for (int i = 0; i < 16; i++) {
            finite = bf16x3_emulated_store_parts(left[r * step + i] - center, 2, to + 2 * i, part_step) && finite;
            finite = bf16x3_emulated_store_parts(right[r * step + i] - center, 2, to + 2 * i + 1, part_step) && finite;
        }
    }
    return finite;
}

static bool bf16x3_split_panel(const float *panel, int64_t depths, int parts, uint16_t *to)
{
    const int64_t tile = PRN_BF16X3_DEPTH * PRN_BF16X3_ROWS;
    bool finite = true;
    for (; depths > 0;
         depths -= PRN_BF16X3_DEPTH, panel += PRN_BF16X3_DEPTH * PRN_BF16X3_COLUMNS, to += 2 * tile * parts) {
        for (int64_t d = 0; d < PRN_BF16X3_DEPTH; d++) {
            for (int64_t j = 0; j < PRN_BF16X3_COLUMNS; j++) {
                uint16_t *at = to + j / 16 * tile + d % 16 * 32 + j % 16 * 2 + d / 16;
                finite = bf16x3_emulated_store_parts(d < depths ? panel[d * PRN_BF16X3_COLUMNS + j] : 0.0f, parts, at,
                                                     2 * tile) &&
                         finite;
            }
        }
    }
    return finite;
}

/* Adds what one step of a row of A and 16 columns of B makes, even and odd depths by themselves as the instruction
 * does. The columns are a vector, of as many registers as it takes. */
typedef float columns __attribute__((vector_size(64)));
typedef uint32_t column_bits __attribute__((vector_size(64)));

static void add_step(const uint16_t *a, const uint16_t *b, float sums[16])
{
    columns even = {0}, odd = {0}, sum;
    for (int i = 0; i < 16; i++, a += 2, b += 32) {
        column_bits pairs;
        memcpy(&pairs, b, sizeof pairs);
        even += value_of(a[0]) * (columns)(pairs << 16);
        odd += value_of(a[1]) * (columns)(pairs & 0xffff0000u);
    }
    memcpy(&sum, sums, sizeof sum);
    sum += even + odd;
    memcpy(sums, &sum, sizeof sum);
}

static bool bf16x3_split_multiply(const prn_bf16x3_tiles *t)
{
    static const int order[PRN_BF16X3_PARTS][6][2] = {
        {{0, 0}}, {{0, 1}, {0, 0}, {1, 0}}, {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}}};
    static const int counts[PRN_BF16X3_PARTS] = {1, 3, 6};
    const int64_t tile = PRN_BF16X3_DEPTH * PRN_BF16X3_ROWS;
    for (int64_t r = 0; r < t->rows; r++) {
        for (int64_t j = 0; j < (t->wide ? PRN_BF16X3_COLUMNS : 16); j += 16) {
            float sums[16] = {0};
            if (t->sums) memcpy(sums, t->sums + r * t->sums_row + j, sizeof sums);
            for (int i = 0; i < t->steps * counts[t->parts - 1]; i++) {
                const int s = i / counts[t->parts - 1], *pair = order[t->parts - 1][i % counts[t->parts - 1]];
                add_step(t->a[s] + pair[0] * t->a_part + r * PRN_BF16X3_DEPTH,
                         t->b + (s * t->parts + pair[1]) * 2 * tile + j / 16 * tile, sums);
            }
            memcpy(t->c + r * t->rs_c + j, sums, sizeof sums);
        }
    }
    const bool panel = !t->next || bf16x3_split_panel(t->next, t->next_depths, t->parts, t->next_b);
    return (!t->left || split_left(t->left, t->parts)) && panel;
}

static void bf16x3_split_store(const float *c, int64_t rows, const float *bias, const float *added, float low,
                               float high, float *y)
{
    for (int64_t i = 0; i < rows * 16; i++) {
        const float sum = c[i / 16 * PRN_BF16X3_COLUMNS + i % 16] + bias[i % 16] + (added ? added[i] : 0.0f);
        const float raised = sum < low ? low : sum;
        y[i] = raised > high ? high : raised;
    }
}

#endif

const prn_bf16x3_simd PRN_SIMD_TABLE(prn_bf16x3_simd_) = {
#ifdef MOST_PARTS
    .most_parts = MOST_PARTS,
    .begin = bf16x3_split_begin,
    .end = bf16x3_split_end,
    .rows = bf16x3_split_rows,
    .rows_around = bf16x3_split_rows_around,
    .panel = bf16x3_split_panel,
    .multiply = bf16x3_split_multiply,
    .store = bf16x3_split_store,
#else
    .most_parts = 0,
#endif
};
