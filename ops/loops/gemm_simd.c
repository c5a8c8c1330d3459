/* Register-tiled float32 matrix product for one instruction set (compiled once per PRN_SIMD).
 *
 * A tile of ROWS x 2 vectors of C stays in registers while k runs over one block; B comes from packed panels of two
 * vectors' width (packed once for constants, else into a buffer on the stack just before use), A is read in place.
 * Invariant: the sum for an element of C is formed in an order that depends on m, n and k alone.
 */
#include "ops/loops/gemm_kernel.h"
#include "base/simd.h"
#include "base/stop.h"

#include <string.h>

#define LANES (PRN_SIMD_BYTES / 4)
#define TILE_ROWS (LANES == 16 ? 14 : 6)
#define PANEL (2 * LANES)
/* A panel of this many rows of B fits the first-level cache, and C is rewritten seldom. */
#define BLOCK_K 384
/* Panels that are packed side by side, so that B is read in longer runs. */
#define PACK_GROUP 8
#define LINE 16 /* floats of a cache line */
/* Between two looks at whether to go on: rows that are packed, elements of a dot product. */
#define LOOK_UP_ROWS (1 << 14)
#define LOOK_UP (1 << 20)
/* Fewest independent sums that keep two multiply-add pipes of four cycles' latency busy. */
#define MIN_SUMS 8

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_unaligned __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec load(const float *p)
{
    return *(const vec_unaligned *)p;
}

static inline void store(float *p, vec x)
{
    *(vec_unaligned *)p = x;
}

static inline vec splat(float x)
{
    return x - (vec){0};
}

typedef struct tile_operands {
    int64_t k;
    const float *a;
    int64_t a_row, a_col;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
    bool add;           /* to what C holds already */
    const float *ahead; /* the rows of B that come next, brought closer meanwhile; NULL: none */
} tile_operands;

typedef void tile_fn(const tile_operands *t);

/* rows, vecs and chains are constants after inlining. With few rows, k is dealt to several chains of sums to hide the
 * latency of the addition. */
static inline __attribute__((always_inline)) void tile(const tile_operands *t, const int rows, const int vecs,
                                                       const int chains)
{
    const float *a = t->a, *b = t->b;
    const int64_t a_row = t->a_row, a_col = t->a_col, b_row = t->b_row, c_row = t->c_row;
    float *const c = t->c;
    const bool add = t->add;
    vec sum[4][TILE_ROWS][2];
    PRN_UNROLL
    for (int chain = 0; chain < chains; chain++) {
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            PRN_UNROLL
            for (int v = 0; v < vecs; v++) sum[chain][r][v] = (vec){0};
        }
    }
    int64_t k = t->k;
    for (; k >= chains; k -= chains) {
        PRN_UNROLL
        for (int chain = 0; chain < chains; chain++) {
            vec bv[2];
            PRN_UNROLL
            for (int v = 0; v < vecs; v++) bv[v] = load(b + v * LANES);
            PRN_UNROLL
            for (int r = 0; r < rows; r++) {
                const vec av = splat(a[r * a_row]);
                PRN_UNROLL
                for (int v = 0; v < vecs; v++) sum[chain][r][v] += av * bv[v];
            }
            a += a_col;
            b += b_row;
        }
    }
    for (; chains > 1 && k > 0; k--) {
        PRN_UNROLL
        for (int r = 0; r < rows; r++) {
            const vec av = splat(a[r * a_row]);
            PRN_UNROLL
            for (int v = 0; v < vecs; v++) sum[0][r][v] += av * load(b + v * LANES);
        }
        a += a_col;
        b += b_row;
    }
    PRN_UNROLL
    for (int r = 0; r < rows; r++) {
        PRN_UNROLL
        for (int v = 0; v < vecs; v++) {
            vec total = sum[0][r][v];
            PRN_UNROLL
            for (int chain = 1; chain < chains; chain++) total += sum[chain][r][v];
            if (add) total += load(c + r * c_row + v * LANES);
            store(c + r * c_row + v * LANES, total);
        }
    }
}

/* Chains for a tile: enough sums in flight, and all of them in registers. */
#define CHAINS(rows, vecs) ((rows) * (vecs) >= MIN_SUMS ? 1 : (rows) * (vecs)*2 >= MIN_SUMS ? 2 : 4)
#define TILE(rows)                                                                                                     \
    static void tile_##rows##x1(const tile_operands *t)                                                                \
    {                                                                                                                  \
        tile(t, rows, 1, CHAINS(rows, 1));                                                                             \
    }                                                                                                                  \
    static void tile_##rows##x2(const tile_operands *t)                                                                \
    {                                                                                                                  \
        tile(t, rows, 2, CHAINS(rows, 2));                                                                             \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if TILE_ROWS == 14
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif

static tile_fn *const tiles[2][TILE_ROWS + 1] = {
#if TILE_ROWS == 14
    {NULL, tile_1x1, tile_2x1, tile_3x1, tile_4x1, tile_5x1, tile_6x1, tile_7x1, tile_8x1, tile_9x1, tile_10x1,
     tile_11x1, tile_12x1, tile_13x1, tile_14x1},
    {NULL, tile_1x2, tile_2x2, tile_3x2, tile_4x2, tile_5x2, tile_6x2, tile_7x2, tile_8x2, tile_9x2, tile_10x2,
     tile_11x2, tile_12x2, tile_13x2, tile_14x2},
#else
    {NULL, tile_1x1, tile_2x1, tile_3x1, tile_4x1, tile_5x1, tile_6x1},
    {NULL, tile_1x2, tile_2x2, tile_3x2, tile_4x2, tile_5x2, tile_6x2},
#endif
};

/* Rows of `count` contiguous floats to panels that lie `apart` floats from each other; zeros fill the last one. */
static void pack_rows(const float *b, int64_t b_row, int64_t k, int64_t count, float *out, int64_t apart)
{
    for (int64_t r = 0; r < k; r++, b += b_row, out += PANEL) {
        int64_t j = 0;
        float *to = out;
        for (; j + PANEL <= count; j += PANEL, to += apart) {
            store(to, load(b + j));
            store(to + LANES, load(b + j + LANES));
        }
        if (j == count) continue;
        for (int64_t i = 0; i < PANEL; i++) to[i] = j + i < count ? b[j + i] : 0.0f;
    }
}

/* Transposes 4 x 4 blocks of B, whose columns are contiguous, then does what is left one by one. */
static void pack_columns(const float *b, int64_t b_row, int64_t b_col, int64_t k, int64_t count, float *out)
{
    typedef float quad __attribute__((vector_size(16)));
    typedef float quad_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
    int64_t j = 0;
    for (; b_row == 1 && j + 4 <= count; j += 4) {
        const float *column[4];
        for (int64_t i = 0; i < 4; i++) column[i] = b + (j + i) * b_col;
        int64_t r = 0;
        for (; r + 4 <= k; r += 4) {
            const quad a0 = *(const quad_unaligned *)(column[0] + r), a1 = *(const quad_unaligned *)(column[1] + r);
            const quad a2 = *(const quad_unaligned *)(column[2] + r), a3 = *(const quad_unaligned *)(column[3] + r);
            const quad low01 = __builtin_shufflevector(a0, a1, 0, 4, 1, 5);
            const quad high01 = __builtin_shufflevector(a0, a1, 2, 6, 3, 7);
            const quad low23 = __builtin_shufflevector(a2, a3, 0, 4, 1, 5);
            const quad high23 = __builtin_shufflevector(a2, a3, 2, 6, 3, 7);
            *(quad_unaligned *)(out + r * PANEL + j) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
            *(quad_unaligned *)(out + (r + 1) * PANEL + j) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
            *(quad_unaligned *)(out + (r + 2) * PANEL + j) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
            *(quad_unaligned *)(out + (r + 3) * PANEL + j) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
        }
        for (; r < k; r++) {
            for (int64_t i = 0; i < 4; i++) out[r * PANEL + j + i] = column[i][r];
        }
    }
    for (; j < PANEL; j++) {
        for (int64_t r = 0; r < k; r++) out[r * PANEL + j] = j < count ? b[r * b_row + j * b_col] : 0.0f;
    }
}

/* Rows [k0, k0 + k) of the columns [j, j1), j1 - j at most PACK_GROUP panels. */
static void pack_panels(const prn_gemm *gemm, int64_t j, int64_t j1, int64_t k0, int64_t k, float *out, int64_t apart)
{
    const float *b = gemm->b + k0 * gemm->b_row + j * gemm->b_col;
    if (gemm->b_col == 1) {
        pack_rows(b, gemm->b_row, k, j1 - j, out, apart);
        return;
    }
    for (; j < j1; j += PANEL, b += PANEL * gemm->b_col, out += apart) {
        pack_columns(b, gemm->b_row, gemm->b_col, k, j1 - j < PANEL ? j1 - j : PANEL, out);
    }
}

static void pack(const prn_gemm *gemm, int64_t first_panel, int64_t last_panel, float *packed)
{
    const int64_t apart = gemm->k * PANEL;
    for (int64_t p = first_panel; p < last_panel; p += PACK_GROUP) {
        const int64_t last = last_panel - p < PACK_GROUP ? last_panel : p + PACK_GROUP;
        const int64_t j1 = last * PANEL < gemm->n ? last * PANEL : gemm->n;
        for (int64_t k0 = 0, k; k0 < gemm->k && !prn_stopped(); k0 += k) {
            k = gemm->k - k0 < LOOK_UP_ROWS ? gemm->k - k0 : LOOK_UP_ROWS;
            pack_panels(gemm, p * PANEL, j1, k0, k, packed + p * apart + k0 * PANEL, apart);
        }
    }
}

/* Rows [i0, i1) of `width` columns, B's rows for this block of k at t->b. */
static void panel_rows(const prn_gemm *gemm, tile_operands *t, int64_t i0, int64_t i1, int64_t j, int64_t k0,
                       int64_t width)
{
    const int vecs = width > LANES ? 2 : 1;
    const bool whole = width == vecs * LANES;
    float edge[TILE_ROWS * PANEL];
    const float *ahead = t->ahead, *const ahead_end = ahead ? ahead + t->k * PANEL : NULL;
    const int64_t tile_count = (i1 - i0 + TILE_ROWS - 1) / TILE_ROWS;
    const int64_t ahead_step = (t->k * PANEL / tile_count / LINE + 1) * LINE;
    int64_t rows;
    for (int64_t i = i0; i < i1; i += rows) {
        rows = i1 - i < TILE_ROWS ? i1 - i : TILE_ROWS;
        float *c = gemm->c + i * gemm->c_row + j;
        t->a = gemm->a + i * gemm->a_row + k0 * gemm->a_col;
        t->c = whole ? c : edge;
        t->c_row = whole ? gemm->c_row : PANEL;
        t->add = whole && k0 > 0;
        for (int64_t line = 0; ahead < ahead_end && line < ahead_step; line += LINE, ahead += LINE) {
            __builtin_prefetch(ahead);
        }
        tiles[vecs - 1][rows](t);
        if (whole) continue;
        for (int64_t r = 0; r < rows; r++, c += gemm->c_row) {
            for (int64_t v = 0; v < width; v++) c[v] = k0 > 0 ? c[v] + edge[r * PANEL + v] : edge[r * PANEL + v];
        }
    }
}

/* One panel's width of C for the block of k that starts at k0. */
static void panel_block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j, int64_t j1, int64_t k0)
{
    _Alignas(64) float buffer[BLOCK_K * PANEL];
    const int64_t width = j1 - j < PANEL ? j1 - j : PANEL;
    tile_operands t = {
        .k = gemm->k - k0 < BLOCK_K ? gemm->k - k0 : BLOCK_K, .a_row = gemm->a_row, .a_col = gemm->a_col};
    t.b_row = PANEL;
    if (gemm->packed) {
        t.b = gemm->packed + j * gemm->k + k0 * PANEL;
        t.ahead = j + PANEL < j1 ? t.b + gemm->k * PANEL : NULL;
    } else if (i1 - i0 <= TILE_ROWS && gemm->b_col == 1 && width % LANES == 0) {
        t.b = gemm->b + k0 * gemm->b_row + j; /* read once: copying it first would not pay */
        t.b_row = gemm->b_row;
    } else {
        pack_panels(gemm, j, j + width, k0, t.k, buffer, 0);
        t.b = buffer;
    }
    panel_rows(gemm, &t, i0, i1, j, k0, width);
}

static void block(const prn_gemm *gemm, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    if (i1 - i0 <= TILE_ROWS) { /* B is read once: in one stream along each panel */
        for (int64_t j = j0; j < j1; j += PANEL) {
            int64_t k0 = 0;
            do {
                panel_block(gemm, i0, i1, j, j1, k0);
                k0 += BLOCK_K;
            } while (k0 < gemm->k && !prn_stopped());
        }
        return;
    }
    int64_t k0 = 0;
    do {
        for (int64_t j = j0; j < j1; j += PANEL) panel_block(gemm, i0, i1, j, j1, k0);
        k0 += BLOCK_K;
    } while (k0 < gemm->k && !prn_stopped());
}

static float dot_tail(const float *a, const float *b, int64_t from, int64_t k, vec sums)
{
    float total = 0.0f;
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    for (int64_t i = from; i < k; i++) total += a[i] * b[i];
    return total;
}

static void dots(const prn_gemm *gemm, int64_t j0, int64_t j1)
{
    const float *a = gemm->a;
    const int64_t k = gemm->k, whole = k - k % (2 * LANES);
    for (int64_t j = j0; j < j1; j += 4) {
        const int64_t count = j1 - j < 4 ? j1 - j : 4;
        const float *b[4];
        for (int64_t i = 0; i < 4; i++) b[i] = gemm->b + (j + (i < count ? i : 0)) * gemm->b_col;
        vec even[4] = {0}, odd[4] = {0};
        for (int64_t from = 0; from < whole && (from == 0 || !prn_stopped()); from += LOOK_UP) {
            const int64_t to = whole - from < LOOK_UP ? whole : from + LOOK_UP;
            for (int64_t i = from; i < to; i += 2 * LANES) {
                const vec a0 = load(a + i), a1 = load(a + i + LANES);
                PRN_UNROLL
                for (int s = 0; s < 4; s++) {
                    even[s] += a0 * load(b[s] + i);
                    odd[s] += a1 * load(b[s] + i + LANES);
                }
            }
        }
        for (int64_t s = 0; s < count; s++) gemm->c[j + s] = dot_tail(a, b[s], whole, k, even[s] + odd[s]);
    }
}

const prn_gemm_isa_table PRN_SIMD_TABLE(prn_gemm_isa_) = {PRN_SIMD_NAME, PANEL, TILE_ROWS, pack, block, dots};
