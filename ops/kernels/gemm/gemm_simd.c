/* Register-tiled float32 matrix product for one instruction set (compiled once per PRN_SIMD).
 *
 * A tile of ROWS x 2 vectors of C stays in registers while k runs over one block; B comes from packed panels of two
 * vectors' width (packed once for constants, else into a buffer on the stack just before use). A is read in place.
 * Invariant: the sum for an element of C is formed in an order that depends on m, n and k alone, the same for every
 * instruction set. */
#include "ops/kernels/gemm/gemm_kernel.h"
#include "base/integers.h"
#include "base/cpu/fma_lane.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/gemm/lowbit_weights.h"
#include "ops/kernels/vector/vec_math.h"

#define LANES (PRN_SIMD_BYTES / 4)
#if LANES == 16
#define TILE_ROWS 14
#elif defined(PRN_NEON)
#define TILE_ROWS 8
#else
#define TILE_ROWS 6
#endif
#define PANEL (2 * LANES)
/* A panel of this many rows of B streams from the second-level cache beside a tile of A, and C is rewritten seldom. */
#define BLOCK_K 384
/* Sums of fewer products are done before a line has come. */
#define FETCHING_K 64
/* Panels that are packed side by side, so that B is read in longer runs. */
#define PACK_GROUP 8
#define LINE 16 /* floats of a cache line */
/* Between two looks at whether to go on: rows that are packed, elements of a dot product. */
#define LOOK_UP_ROWS (1 << 14)
#define LOOK_UP (1 << 20)

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec gemm_simd_load(const float *p)
{
    return *(const vec_unaligned *)p;
}

static inline void gemm_simd_store(float *p, vec x)
{
    *(vec_unaligned *)p = x;
}

static inline vec gemm_simd_splat(float x)
{
    return x - (vec){0};
}

typedef struct tile_operands {
    int64_t k;
    const float *a;
    int64_t rs_a, cs_a;
    const float *b;
    int64_t rs_b;
    float *c;
    int64_t rs_c;
    bool add;           /* to what C holds already */
    const float *bias;  /* of the columns, added last; NULL: none */
    const float *ahead; /* what of B is brought into the second-level cache meanwhile, `ahead_step` floats at a time */
    int64_t ahead_step;
} tile_operands;

typedef void tile_fn(const tile_operands *t);

/* For each sum of a tile of rows x vecs. */
#define EACH_SUM(r, v)                                                                                                 \
    PRN_UNROLL                                                                                                         \
    for (int r = 0; r < rows; r++) PRN_UNROLL                                                                          \
    for (int v = 0; v < vecs; v++)

/* C's rows as operands of one loop. The pointer's origin is hidden; otherwise the compiler keeps the addresses of all
 * rows from one loop to the next, in registers that it does not have. */
#define C_ROWS(c, rs_c)                                                                                                \
    float *c = t->c;                                                                                                   \
    int64_t rs_c = t->rs_c;                                                                                            \
    __asm__("" : "+r"(c), "+r"(rs_c))

/* rows, vecs and chains are constants after inlining. With few rows, k is dealt to several chains of sums to hide the
 * latency of the addition. */
static inline __attribute__((always_inline)) void gemm_simd_tile(const tile_operands *t, const int rows, const int vecs,
                                                                 const int chains)
{
    const int steps = chains > 2 ? chains : 2; /* of k in a round */
    const float *a = t->a, *b = t->b, *ahead = t->ahead;
    const int64_t rs_a = t->rs_a, cs_a = t->cs_a, rs_b = t->rs_b, ahead_step = t->ahead_step;
    vec sum[4][TILE_ROWS][2];
    PRN_UNROLL
    for (int chain = 0; chain < chains; chain++) {
        EACH_SUM(r, v) sum[chain][r][v] = (vec){0};
    }
    if (t->add || t->k >= FETCHING_K) { /* C's lines come while the sums are formed, for stores to find them */
        C_ROWS(c, rs_c);
        EACH_SUM(r, v) __builtin_prefetch(c + r * rs_c + v * LANES, 1);
    }
    int64_t k = t->k;
#if defined(PRN_NEON)
    /* Four elements of a row of A are one load; chains take them in turns as below. */
    for (; cs_a == 1 && k >= 4; k -= 4) {
        vec av[TILE_ROWS];
        __builtin_prefetch(ahead, 0, 2);
        ahead += 2 * ahead_step;
        PRN_UNROLL
        for (int r = 0; r < rows; r++) av[r] = gemm_simd_load(a + r * rs_a);
        PRN_UNROLL
        for (int step = 0; step < 4; step++) {
            PRN_UNROLL
            for (int v = 0; v < vecs; v++) {
                const vec bv = gemm_simd_load(b + v * LANES);
                PRN_UNROLL
                for (int r = 0; r < rows; r++)
                    sum[step % chains][r][v] = prn_fma_lane(sum[step % chains][r][v], bv, av[r], step);
            }
            b += rs_b;
        }
        a += 4;
    }
#endif
    for (; k >= steps; k -= steps) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += ahead_step;
        PRN_UNROLL
        for (int step = 0; step < steps; step++) {
            vec bv[2];
            PRN_UNROLL
            for (int v = 0; v < vecs; v++) bv[v] = gemm_simd_load(b + v * LANES);
            PRN_UNROLL
            for (int r = 0; r < rows; r++) {
                const vec av = gemm_simd_splat(a[r * rs_a]);
                PRN_UNROLL
                for (int v = 0; v < vecs; v++) sum[step % chains][r][v] += av * bv[v];
            }
            a += cs_a;
            b += rs_b;
        }
    }
    for (; k > 0; k--) {
        EACH_SUM(r, v) sum[0][r][v] += gemm_simd_splat(a[r * rs_a]) * gemm_simd_load(b + v * LANES);
        a += cs_a;
        b += rs_b;
    }
    PRN_UNROLL
    for (int chain = 1; chain < chains; chain++) {
        EACH_SUM(r, v) sum[0][r][v] += sum[chain][r][v];
    }
    if (t->add) {
        C_ROWS(c, rs_c);
        EACH_SUM(r, v) sum[0][r][v] += gemm_simd_load(c + r * rs_c + v * LANES);
    }
    if (t->bias) EACH_SUM(r, v) sum[0][r][v] += gemm_simd_load(t->bias + v * LANES);
    C_ROWS(c, rs_c);
    EACH_SUM(r, v) gemm_simd_store(c + r * rs_c + v * LANES, sum[0][r][v]);
}

/* The number of chains follows from the rows of C alone, so that sums are the same for every width of vectors:
 * enough sums in flight for few rows, and all of them in registers. */
#define FEW_ROWS 3

#define TILE(rows, chains)                                                                                             \
    static void tile_##rows##x1_##chains(const tile_operands *t)                                                       \
    {                                                                                                                  \
        gemm_simd_tile(t, rows, 1, chains);                                                                            \
    }                                                                                                                  \
    static void tile_##rows##x2_##chains(const tile_operands *t)                                                       \
    {                                                                                                                  \
        gemm_simd_tile(t, rows, 2, chains);                                                                            \
    }
#define SINGLE(rows) TILE(rows, 1)
TILE(1, 4)
TILE(2, 2)
TILE(3, 2)
SINGLE(1)
SINGLE(2)
SINGLE(3)
SINGLE(4)
SINGLE(5)
SINGLE(6)
#if TILE_ROWS >= 8
SINGLE(7)
SINGLE(8)
#endif
#if TILE_ROWS == 14
SINGLE(9)
SINGLE(10)
SINGLE(11)
SINGLE(12)
SINGLE(13)
SINGLE(14)
#endif

static tile_fn *const few_tiles[2][FEW_ROWS + 1] = {{NULL, tile_1x1_4, tile_2x1_2, tile_3x1_2},
                                                    {NULL, tile_1x2_4, tile_2x2_2, tile_3x2_2}};
static tile_fn *const tiles[2][TILE_ROWS + 1] = {
#if TILE_ROWS == 14
    {NULL, tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1, tile_7x1_1, tile_8x1_1, tile_9x1_1,
     tile_10x1_1, tile_11x1_1, tile_12x1_1, tile_13x1_1, tile_14x1_1},
    {NULL, tile_1x2_1, tile_2x2_1, tile_3x2_1, tile_4x2_1, tile_5x2_1, tile_6x2_1, tile_7x2_1, tile_8x2_1, tile_9x2_1,
     tile_10x2_1, tile_11x2_1, tile_12x2_1, tile_13x2_1, tile_14x2_1},
#elif TILE_ROWS == 8
    {NULL, tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1, tile_7x1_1, tile_8x1_1},
    {NULL, tile_1x2_1, tile_2x2_1, tile_3x2_1, tile_4x2_1, tile_5x2_1, tile_6x2_1, tile_7x2_1, tile_8x2_1},
#else
    {NULL, tile_1x1_1, tile_2x1_1, tile_3x1_1, tile_4x1_1, tile_5x1_1, tile_6x1_1},
    {NULL, tile_1x2_1, tile_2x2_1, tile_3x2_1, tile_4x2_1, tile_5x2_1, tile_6x2_1},
#endif
};

/* Rows are dealt to tiles so: as few tiles as can be, of like heights. */
static int64_t tile_count(int64_t rows)
{
    return prn_ceil_div(rows, TILE_ROWS);
}

/* Transposes 4 x 4: row i comes from from[i], column j goes to to + j * apart. */
static inline void transpose_quad(const float *const *from, int64_t at, float *to, int64_t apart)
{
    typedef float quad __attribute__((vector_size(16)));
    typedef float quad_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
    const quad a0 = *(const quad_unaligned *)(from[0] + at), a1 = *(const quad_unaligned *)(from[1] + at);
    const quad a2 = *(const quad_unaligned *)(from[2] + at), a3 = *(const quad_unaligned *)(from[3] + at);
    const quad low01 = __builtin_shufflevector(a0, a1, 0, 4, 1, 5),
               high01 = __builtin_shufflevector(a0, a1, 2, 6, 3, 7);
    const quad low23 = __builtin_shufflevector(a2, a3, 0, 4, 1, 5),
               high23 = __builtin_shufflevector(a2, a3, 2, 6, 3, 7);
    *(quad_unaligned *)to = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    *(quad_unaligned *)(to + apart) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    *(quad_unaligned *)(to + 2 * apart) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    *(quad_unaligned *)(to + 3 * apart) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/* Rows of `count` contiguous floats to panels that lie `apart` floats from each other; zeros fill the last one. */
static void pack_rows(const float *b, int64_t rs_b, int64_t k, int64_t count, float *out, int64_t apart)
{
    for (int64_t r = 0; r < k; r++, b += rs_b, out += PANEL) {
        int64_t j = 0;
        float *to = out;
        for (; j + PANEL <= count; j += PANEL, to += apart) {
            gemm_simd_store(to, gemm_simd_load(b + j));
            gemm_simd_store(to + LANES, gemm_simd_load(b + j + LANES));
        }
        if (j == count) continue;
        for (int64_t i = 0; i < PANEL; i++) to[i] = j + i < count ? b[j + i] : 0.0f;
    }
}

/* B's columns are contiguous: transposes blocks of 4 x 4, then does what is left one by one. */
static void pack_columns(const float *b, int64_t rs_b, int64_t cs_b, int64_t k, int64_t count, float *out)
{
    int64_t j = 0;
    for (int64_t r = 0; r < k && count < PANEL; r++) {
        gemm_simd_store(out + r * PANEL, (vec){0});
        gemm_simd_store(out + r * PANEL + LANES, (vec){0});
    }
    for (; rs_b == 1 && j + 4 <= count; j += 4) {
        const float *const column[4] = {b + j * cs_b, b + (j + 1) * cs_b, b + (j + 2) * cs_b, b + (j + 3) * cs_b};
        int64_t r = 0;
        for (; r + 4 <= k; r += 4) transpose_quad(column, r, out + r * PANEL + j, PANEL);
        for (; r < k; r++) {
            for (int64_t i = 0; i < 4; i++) out[r * PANEL + j + i] = column[i][r];
        }
    }
    for (; j < count; j++) {
        for (int64_t r = 0; r < k; r++) out[r * PANEL + j] = b[r * rs_b + j * cs_b];
    }
}

/* Rows [k0, k0 + k) of the columns [j, j1), j1 - j at most PACK_GROUP panels. */
static void gemm_simd_pack_panels(const prn_gemm *gemm, int64_t j, int64_t j1, int64_t k0, int64_t k, float *out,
                                  int64_t apart)
{
    const float *b = gemm->b + k0 * gemm->rs_b + j * gemm->cs_b;
    if (gemm->cs_b == 1) {
        pack_rows(b, gemm->rs_b, k, j1 - j, out, apart);
        return;
    }
    for (; j < j1; j += PANEL, b += PANEL * gemm->cs_b, out += apart) {
        pack_columns(b, gemm->rs_b, gemm->cs_b, k, j1 - j < PANEL ? j1 - j : PANEL, out);
    }
}

static void gemm_simd_pack(const prn_gemm *gemm, int64_t first_panel, int64_t last_panel, float *packed)
{
    const int64_t apart = gemm->k * PANEL;
    for (int64_t p = first_panel; p < last_panel; p += PACK_GROUP) {
        const int64_t last = last_panel - p < PACK_GROUP ? last_panel : p + PACK_GROUP;
        const int64_t j1 = last * PANEL < gemm->n ? last * PANEL : gemm->n;
        for (int64_t k0 = 0, k; k0 < gemm->k && !prn_cancelled(); k0 += k) {
            k = gemm->k - k0 < LOOK_UP_ROWS ? gemm->k - k0 : LOOK_UP_ROWS;
            gemm_simd_pack_panels(gemm, p * PANEL, j1, k0, k, packed + p * apart + k0 * PANEL, apart);
        }
    }
}

/* The place of a block's results, and the part that is done. */
typedef struct block_at {
    int64_t i0, i1, j, width, k0;
} block_at;

static void store_edge(const prn_gemm *gemm, const block_at *at, const tile_operands *t, int64_t rows, float *c)
{
    for (int64_t r = 0; r < rows; r++, c += gemm->rs_c) {
        const float *edge = t->c + r * PANEL;
        for (int64_t v = 0; v < at->width; v += LANES) {
            vf sum = v_load(edge + v);
            if (at->k0 > 0) sum += v_load_part(c + v, at->width - v, 0.0f);
            if (t->bias) sum += v_load_part(t->bias + v, at->width - v, 0.0f);
            v_store_part(c + v, sum, at->width - v);
        }
    }
}

/* Rows [i0, i1) of `width` columns, B's rows for this block of k at t->b. `next` is what of B comes after it. */
static void panel_rows(const prn_gemm *gemm, tile_operands *t, const block_at *at, const float *next)
{
    const int vecs = at->width > LANES ? 2 : 1;
    const bool whole = at->width == vecs * LANES;
    float edge[TILE_ROWS * PANEL];
    const int64_t rows = at->i1 - at->i0, count = tile_count(rows), least = rows / count, taller = rows - least * count;
    tile_fn *const *const of_height = gemm->m <= FEW_ROWS ? few_tiles[vecs - 1] : tiles[vecs - 1];
    const float *const bias = t->bias;
    /* A round of a tile asks for one line at most. */
    const int64_t share = t->k * PANEL / count, step = 2 * PANEL / count + 1;
    float *c = gemm->c + at->i0 * gemm->rs_c + at->j;
    t->a = gemm->a + at->i0 * gemm->rs_a + at->k0 * gemm->cs_a;
    t->rs_c = whole ? gemm->rs_c : PANEL;
    t->add = whole && at->k0 > 0;
    t->ahead = next ? next : t->b;
    t->ahead_step = !next ? 0 : step < LINE ? step : LINE;
    for (int64_t index = 0; index < count; index++) {
        const int64_t height = least + (index < taller);
        t->c = whole ? c : edge;
        t->bias = whole ? bias : NULL;
        of_height[height](t);
        t->bias = bias;
        if (!whole) store_edge(gemm, at, t, height, c);
        c += height * gemm->rs_c;
        t->a += height * gemm->rs_a;
        if (next) t->ahead += share;
    }
}

/* One panel's width of C for the block of k that starts at k0. */
static void panel_block(const prn_gemm *gemm, const block_at *at, const float *next)
{
    _Alignas(64) float buffer[BLOCK_K * PANEL];
    tile_operands t = {
        .k = gemm->k - at->k0 < BLOCK_K ? gemm->k - at->k0 : BLOCK_K, .rs_a = gemm->rs_a, .cs_a = gemm->cs_a};
    t.rs_b = PANEL;
    if (prn_gemm_bias_in_tiles(gemm) && at->k0 + t.k == gemm->k) t.bias = gemm->bias + at->j;
    if (gemm->packed) {
        t.b = gemm->packed + at->j * gemm->k + at->k0 * PANEL;
    } else if (gemm->stored) {
        prn_lowbit_isa()->unpack(gemm->stored, at->j, at->k0, t.k, buffer);
        t.b = buffer;
    } else if (at->i1 - at->i0 <= TILE_ROWS && gemm->cs_b == 1 && at->width % LANES == 0) {
        t.b = gemm->b + at->k0 * gemm->rs_b + at->j; /* read once: copying it first would not pay */
        t.rs_b = gemm->rs_b;
    } else {
        gemm_simd_pack_panels(gemm, at->j, at->j + at->width, at->k0, t.k, buffer, 0);
        t.b = buffer;
    }
    panel_rows(gemm, &t, at, next);
}

/* B's panels that follow the block at `at`: the next ones of this block of k, the first ones of the next, or another
 * task's. NULL: B is not packed, or no panel follows. */
static const float *next_panel(const prn_gemm *gemm, const block_at *at, int64_t j0, int64_t j1, bool along_k)
{
    const int64_t j = at->j + PANEL, k0 = at->k0 + BLOCK_K;
    if (!gemm->packed) return NULL;
    if (along_k && k0 < gemm->k) return gemm->packed + at->j * gemm->k + k0 * PANEL;
    if (along_k && j < gemm->n) return gemm->packed + j * gemm->k;
    if (!along_k && j < j1) return gemm->packed + j * gemm->k + at->k0 * PANEL;
    if (!along_k && k0 < gemm->k) return gemm->packed + j0 * gemm->k + k0 * PANEL;
    return j1 < gemm->n ? gemm->packed + j1 * gemm->k : NULL;
}

static void gemm_simd_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const bool along_k = i1 - i0 <= TILE_ROWS; /* B is read once: in one stream along each panel */
    const int64_t outer_end = along_k ? j1 : gemm->k, outer_step = along_k ? PANEL : BLOCK_K;
    const int64_t inner_first = along_k ? 0 : j0, inner_end = along_k ? gemm->k : j1;
    int64_t outer = along_k ? j0 : 0;
    do {
        int64_t inner = inner_first;
        do {
            block_at at = {.i0 = i0, .i1 = i1, .j = along_k ? outer : inner, .k0 = along_k ? inner : outer};
            at.width = j1 - at.j < PANEL ? j1 - at.j : PANEL;
            panel_block(gemm, &at, next_panel(gemm, &at, j0, j1, along_k));
            inner += along_k ? BLOCK_K : PANEL;
        } while (inner < inner_end && !prn_cancelled());
        outer += outer_step;
    } while (outer < outer_end && !prn_cancelled());
}

/* Sums of dot products lie in as many lanes for every width of vectors. Of a B in the caches as many neighbouring
 * columns go side by side as keep the sums in registers. One that comes from memory is read in two long streams, from
 * the first column and from the middle: processors fetch these ahead by themselves, and four short ones, or with
 * fetches of ours between them, at half the rate. */
#define DOT_LANES 16
#define DOT_VECS (DOT_LANES / LANES)
#define DOT_COLUMNS 4
#define STREAMED (1 << 18) /* floats of a B that comes from beyond the second-level cache in any case */
#define DOT_STREAMS 2
#define DOT_AHEAD 128 /* floats of a column between what is read and what is fetched */

/* Adds products of the 16 elements at a and b to the lanes. */
static inline void gemm_simd_add_products(vec sums[DOT_VECS], const float *a, const float *b)
{
    PRN_UNROLL
    for (int v = 0; v < DOT_VECS; v++) sums[v] += gemm_simd_load(a + v * LANES) * gemm_simd_load(b + v * LANES);
}

/* The same of the `count` elements, less than 16, at the end of both. */
static inline void gemm_simd_add_rest(vec sums[DOT_VECS], const float *a, const float *b, int64_t count)
{
    PRN_UNROLL
    for (int v = 0; v < DOT_VECS; v++)
        if (count > v * LANES)
            sums[v] += v_load_part(a + v * LANES, count - v * LANES, 0.0f) *
                       v_load_part(b + v * LANES, count - v * LANES, 0.0f);
}

/* `count` columns from j on, `apart` from each other. `width`, the most columns, and `fetch` are constants after
 * inlining. */
static inline __attribute__((always_inline)) void dot_columns(const prn_gemm *gemm, int64_t j, int64_t count,
                                                              int64_t apart, const int width, const bool fetch)
{
    const float *a = gemm->a, *b[DOT_COLUMNS];
    const int64_t k = gemm->k, whole = k - k % DOT_LANES;
    for (int64_t i = 0; i < width; i++) b[i] = gemm->b + (j + (i < count ? i * apart : 0)) * gemm->cs_b;
    vec sums[DOT_COLUMNS][DOT_VECS] = {0};
    for (int64_t from = 0; from < whole && (from == 0 || !prn_cancelled()); from += LOOK_UP) {
        const int64_t to = whole - from < LOOK_UP ? whole : from + LOOK_UP;
        for (int64_t i = from; i < to; i += DOT_LANES) {
            PRN_UNROLL
            for (int s = 0; s < width; s++) {
                if (fetch) __builtin_prefetch(b[s] + i + DOT_AHEAD, 0, 3);
                gemm_simd_add_products(sums[s], a + i, b[s] + i);
            }
        }
    }
    for (int64_t s = 0; s < count; s++) {
        gemm_simd_add_rest(sums[s], a + whole, b[s] + whole, k - whole);
        gemm->c[j + s * apart] = v_sum_16(sums[s]);
    }
}

static void dots(const prn_gemm *gemm, int64_t j0, int64_t j1)
{
    if (gemm->k * gemm->n <= STREAMED) {
        for (int64_t j = j0; j < j1; j += DOT_COLUMNS)
            dot_columns(gemm, j, j1 - j < DOT_COLUMNS ? j1 - j : DOT_COLUMNS, 1, DOT_COLUMNS, true);
        return;
    }
    const int64_t apart = prn_ceil_div(j1 - j0, DOT_STREAMS);
    for (int64_t j = j0; j < j0 + apart && !prn_cancelled(); j++)
        dot_columns(gemm, j, j + apart < j1 ? DOT_STREAMS : 1, apart, DOT_STREAMS, false);
}

const prn_gemm_isa_table PRN_SIMD_TABLE(prn_gemm_isa_) = {PRN_SIMD_NAME,  PANEL,           TILE_ROWS,
                                                          gemm_simd_pack, gemm_simd_block, dots};
