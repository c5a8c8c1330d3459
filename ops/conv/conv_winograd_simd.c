/* Vector loops of the Winograd convolution (compiled once per PRN_SIMD): transforms of a channel block at a time, and
 * the products of a point in register tiles.
 *
 * One axis of 2 outputs is evaluated at the points 0, 1, -1 and infinity, one of 4 at 0, a, -a, b, -b and infinity with
 * a = 21/32, b = 3/2: of the points tried the ones that magnify rounding errors least
 * (docs/internals/accuracy_contract.md). All their powers below are exact in float32.
 *
 * Invariant: each output is summed in one order, whatever lies beside it. */
#include "ops/conv/conv_winograd_simd.h"
#include "base/cpu/fma_lane.h"
#include "base/cpu/simd.h"

#define LANES (PRN_SIMD_BYTES / 4)
#define LINE 16 /* floats of a cache line */
#define SIDE PRN_WINOGRAD_MOST_SIDE
#if LANES == 16
#define TILES_1 12
#define TILES_2 12
#define TILES_3 8
#define TILES_4 6
#elif LANES == 8
#define TILES_1 8
#define TILES_2 6
#define TILES_3 4
#define TILES_4 3
#elif defined(PRN_NEON) /* 32 registers: a vector of each input, one or two of weights */
#define TILES_1 12
#define TILES_2 8
#define TILES_3 6
#define TILES_4 5
#else
#define TILES_1 8
#define TILES_2 4
#define TILES_3 3
#define TILES_4 3
#endif

/* With a check at every element of every unrolled step, a sanitizer's build of this file would take minutes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
#define UNROLL
#else
#define UNROLL PRN_UNROLL
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#if !defined(PRN_NEON)
INLINE vec conv_winograd_simd_splat(float x)
{
    return x - (vec){0};
}
#endif

INLINE vec conv_winograd_simd_load(const float *p)
{
    return *(const vec *)p;
}

INLINE void conv_winograd_simd_store(float *p, vec x)
{
    *(vec *)p = x;
}

/* ---- points */

#define A 0.65625 /* 21/32 */
#define B 1.5
#define A2 (A * A)
#define B2 (B * B)
#define A3 (A2 * A)
#define B3 (B2 * B)

/* One axis of `outputs` + 2 inputs d to as many points. `outputs` is a constant after inlining, here and below. */
INLINE void to_points(const int outputs, const vec *d, vec *t)
{
    if (outputs == 2) {
        t[0] = d[0] - d[2];
        t[1] = d[1] + d[2];
        t[2] = d[2] - d[1];
        t[3] = d[1] - d[3];
        return;
    }
    const vec even_a = d[4] - d[2] * (float)B2, odd_a = d[3] - d[1] * (float)B2;
    const vec even_b = d[4] - d[2] * (float)A2, odd_b = d[3] - d[1] * (float)A2;
    const vec even = d[4] - d[2] * (float)(A2 + B2), odd = d[5] - d[3] * (float)(A2 + B2);
    t[0] = even + d[0] * (float)(A2 * B2);
    t[1] = even_a + odd_a * (float)A;
    t[2] = even_a - odd_a * (float)A;
    t[3] = even_b + odd_b * (float)B;
    t[4] = even_b - odd_b * (float)B;
    t[5] = odd + d[1] * (float)(A2 * B2);
}

/* One axis of points to outputs. */
INLINE void from_points(const int outputs, const vec *t, vec *y)
{
    const vec sum_a = t[1] + t[2], gap_a = t[1] - t[2];
    if (outputs == 2) {
        y[0] = t[0] + sum_a;
        y[1] = gap_a - t[3];
        return;
    }
    const vec sum_b = t[3] + t[4], gap_b = t[3] - t[4];
    const vec third = t[5] + gap_a * (float)A3;
    const vec first = gap_a * (float)A, second = sum_a * (float)A2;
    y[0] = t[0] + sum_a + sum_b;
    y[1] = first + gap_b * (float)B;
    y[2] = second + sum_b * (float)B2;
    y[3] = third + gap_b * (float)B3;
}

/* Numbers of double precision, a vector at a time: what a filter's transform has at once stays in registers. */
#define HALF (LANES / 2)
typedef double wide __attribute__((vector_size(HALF * sizeof(double)), aligned(8), may_alias));

/* The three taps along one axis to points, of a filter in either precision: those at a and -a differ in the sign of the
 * odd power alone. */
#define TAPS_TO_POINTS(name, number, type)                                                                             \
    INLINE void name(const int outputs, const type *g, type *t)                                                        \
    {                                                                                                                  \
        static const number at_2[1][2] = {{1, (number)0.5}}; /* a point and its scale */                               \
        static const number at_4[2][2] = {{(number)A, (number)(1.0 / (2.0 * A2 * (A2 - B2)))},                         \
                                          {(number)B, (number)(1.0 / (2.0 * B2 * (B2 - A2)))}};                        \
        t[0] = g[0] * (outputs == 2 ? (number)1 : (number)(1.0 / (A2 * B2)));                                          \
        UNROLL                                                                                                         \
        for (int pair = 0; pair < outputs / 2; pair++) {                                                               \
            const number *at = outputs == 2 ? at_2[pair] : at_4[pair];                                                 \
            const type even = g[0] * at[1] + g[2] * (at[0] * at[0] * at[1]), odd = g[1] * (at[0] * at[1]);             \
            t[1 + 2 * pair] = even + odd;                                                                              \
            t[2 + 2 * pair] = even - odd;                                                                              \
        }                                                                                                              \
        t[outputs + 1] = g[2];                                                                                         \
    }
TAPS_TO_POINTS(taps_to_points, double, wide)
TAPS_TO_POINTS(taps_to_points_f32, float, vec)

/* ---- transforms */

/* B^T d B of `count` tiles that follow one another in a row, one vector of channels each; point p goes to v + p
 * v_point. */
INLINE void conv_winograd_simd_forward(const prn_winograd_forward *f, const int rows, const int columns,
                                       const int64_t x_column)
{
    const float *x = f->x;
    float *v = f->v;
    const int64_t x_row = f->x_row, v_point = f->v_point;
    for (int64_t i = 0; i < f->count; i++, x += columns * x_column, v += LANES) {
        vec t[SIDE][SIDE];
        UNROLL
        for (int c = 0; c < columns + 2; c++) {
            vec d[SIDE], points[SIDE];
            UNROLL
            for (int r = 0; r < rows + 2; r++) d[r] = conv_winograd_simd_load(x + r * x_row + c * x_column);
            to_points(rows, d, points);
            UNROLL
            for (int r = 0; r < rows + 2; r++) t[r][c] = points[r];
        }
        UNROLL
        for (int r = 0; r < rows + 2; r++) {
            vec points[SIDE];
            to_points(columns, t[r], points);
            UNROLL
            for (int c = 0; c < columns + 2; c++)
                conv_winograd_simd_store(v + (r * (columns + 2) + c) * v_point, points[c]);
        }
    }
}

INLINE void conv_winograd_simd_edge(const prn_winograd_edge *e, const int rows, const int columns)
{
    vec t[SIDE][SIDE];
    UNROLL
    for (int c = 0; c < columns + 2; c++) {
        vec d[SIDE], points[SIDE];
        const bool there = c >= e->first && c < e->end;
        UNROLL
        for (int r = 0; r < rows + 2; r++)
            d[r] = there ? conv_winograd_simd_load(e->row[r] + (c - e->first) * e->x_column[r]) : (vec){0};
        to_points(rows, d, points);
        UNROLL
        for (int r = 0; r < rows + 2; r++) t[r][c] = points[r];
    }
    UNROLL
    for (int r = 0; r < rows + 2; r++) {
        vec points[SIDE];
        to_points(columns, t[r], points);
        UNROLL
        for (int c = 0; c < columns + 2; c++)
            conv_winograd_simd_store(e->v + (r * (columns + 2) + c) * e->v_point, points[c]);
    }
}

/* A^T m A of `count` tiles that follow one another in a row, with bias and addend; writes rows x columns outputs of
 * each. */
INLINE void inverse(const prn_winograd_inverse *f, const int rows, const int columns)
{
    const float *m = f->m, *added = f->added;
    float *y = f->y;
    const int64_t m_point = f->m_point, y_row = f->y_row;
    const vec bias = conv_winograd_simd_load(f->bias);
    for (int64_t i = 0; i < f->count; i++, m += LANES, y += columns * LANES) {
        vec t[SIDE][SIDE];
        UNROLL
        for (int r = 0; r < rows + 2; r++) {
            vec points[SIDE], out[SIDE];
            UNROLL
            for (int c = 0; c < columns + 2; c++)
                points[c] = conv_winograd_simd_load(m + (r * (columns + 2) + c) * m_point);
            from_points(columns, points, out);
            UNROLL
            for (int c = 0; c < columns; c++) t[c][r] = out[c];
        }
        UNROLL
        for (int c = 0; c < columns; c++) {
            vec out[SIDE];
            from_points(rows, t[c], out);
            UNROLL
            for (int r = 0; r < rows; r++) {
                vec one = out[r] + bias;
                if (added) one += conv_winograd_simd_load(added + r * y_row + c * LANES);
                conv_winograd_simd_store(y + r * y_row + c * LANES, one);
            }
        }
        if (added) added += columns * LANES;
    }
}

typedef float narrow __attribute__((vector_size(HALF * sizeof(float)), aligned(4), may_alias));

/* Of `HALF` output channels, whose taps are given row by row. */
INLINE void half_filters(const wide taps[3][3], float *u, int64_t u_point, const int rows, const int columns)
{
    wide t[SIDE][3];
    UNROLL
    for (int c = 0; c < 3; c++) {
        const wide g[3] = {taps[0][c], taps[1][c], taps[2][c]};
        wide half[SIDE];
        taps_to_points(rows, g, half);
        UNROLL
        for (int r = 0; r < rows + 2; r++) t[r][c] = half[r];
    }
    UNROLL
    for (int r = 0; r < rows + 2; r++) {
        wide points[SIDE];
        taps_to_points(columns, t[r], points);
        UNROLL
        for (int c = 0; c < columns + 2; c++)
            *(narrow *)(u + (r * (columns + 2) + c) * u_point) = __builtin_convertvector(points[c], narrow);
    }
}

INLINE void filters(const float *w, int64_t row, float *u, int64_t u_point, const int rows, const int columns)
{
    for (int half = 0; half < 2; half++, w += HALF * row, u += HALF) {
        wide taps[3][3];
        UNROLL
        for (int tap = 0; tap < 9; tap++) {
            float lanes[HALF];
            for (int lane = 0; lane < HALF; lane++) lanes[lane] = w[lane * row + tap];
            taps[tap / 3][tap % 3] = __builtin_convertvector(*(const narrow *)lanes, wide);
        }
        half_filters(taps, u, u_point, rows, columns);
    }
}

INLINE void filters_of_taps(const float *w, int64_t tap_step, float *u, int64_t u_point, int64_t count, const int rows,
                            const int columns)
{
    for (int64_t i = 0; i < count; i += LANES, w += LANES, u += LANES) {
        vec t[SIDE][3];
        UNROLL
        for (int c = 0; c < 3; c++) {
            vec g[3], points[SIDE];
            UNROLL
            for (int r = 0; r < 3; r++) g[r] = conv_winograd_simd_load(w + (3 * r + c) * tap_step);
            taps_to_points_f32(rows, g, points);
            UNROLL
            for (int r = 0; r < rows + 2; r++) t[r][c] = points[r];
        }
        UNROLL
        for (int r = 0; r < rows + 2; r++) {
            vec points[SIDE];
            taps_to_points_f32(columns, t[r], points);
            UNROLL
            for (int c = 0; c < columns + 2; c++)
                conv_winograd_simd_store(u + (r * (columns + 2) + c) * u_point, points[c]);
        }
    }
}

#define KIND(rows, columns)                                                                                            \
    static void forward_##rows##x##columns(const prn_winograd_forward *f)                                              \
    {                                                                                                                  \
        if (f->x_column == LANES)                                                                                      \
            conv_winograd_simd_forward(f, rows, columns, LANES);                                                       \
        else                                                                                                           \
            conv_winograd_simd_forward(f, rows, columns, f->x_column);                                                 \
    }                                                                                                                  \
    static void edge_##rows##x##columns(const prn_winograd_edge *e)                                                    \
    {                                                                                                                  \
        conv_winograd_simd_edge(e, rows, columns);                                                                     \
    }                                                                                                                  \
    static void inverse_##rows##x##columns(const prn_winograd_inverse *f)                                              \
    {                                                                                                                  \
        inverse(f, rows, columns);                                                                                     \
    }                                                                                                                  \
    static void filters_##rows##x##columns(const float *w, int64_t row, float *u, int64_t u_point)                     \
    {                                                                                                                  \
        filters(w, row, u, u_point, rows, columns);                                                                    \
    }                                                                                                                  \
    static void of_taps_##rows##x##columns(const float *w, int64_t tap, float *u, int64_t u_point, int64_t count)      \
    {                                                                                                                  \
        filters_of_taps(w, tap, u, u_point, count, rows, columns);                                                     \
    }
KIND(2, 2)
KIND(2, 4)
KIND(4, 4)

/* ---- products */

typedef vec sums[PRN_WINOGRAD_MOST_BLOCKS][PRN_WINOGRAD_MOST_TILES];

/* The products of one input block; at each lane one line or two of what is needed next are fetched: a burst of them
 * would be waited for. blocks and tiles are constants after inlining. */
INLINE void conv_winograd_simd_sum_block(const float *v, const float *weights, const float *next, int64_t step,
                                         const int blocks, const int tiles, sums sum)
{
#if defined(PRN_NEON)
    vec x[PRN_WINOGRAD_MOST_TILES];
    UNROLL
    for (int i = 0; i < tiles; i++) x[i] = conv_winograd_simd_load(v + i * LANES);
    UNROLL
    for (int lane = 0; lane < LANES; lane++) {
        __builtin_prefetch(next + lane * step, 0, 2);
        UNROLL
        for (int b = 0; b < blocks; b++) {
            const vec one = conv_winograd_simd_load(weights + (lane * blocks + b) * LANES);
            UNROLL
            for (int i = 0; i < tiles; i++)
                sum[b][i] = (vec)prn_fma_lane((float32x4_t)sum[b][i], (float32x4_t)one, (float32x4_t)x[i], lane);
        }
    }
#else
    UNROLL
    for (int lane = 0; lane < LANES; lane++) {
        /* Held in registers: whichever are fewer, inputs or weights. */
        vec held[PRN_WINOGRAD_MOST_BLOCKS];
        const float *w = weights + lane * blocks * LANES;
        __builtin_prefetch(next + lane * step, 0, 2);
        if (step > LINE) __builtin_prefetch(next + lane * step + step / 2, 0, 2);
        if (tiles < blocks) {
            UNROLL
            for (int i = 0; i < tiles; i++) held[i] = conv_winograd_simd_splat(v[i * LANES + lane]);
            UNROLL
            for (int b = 0; b < blocks; b++) {
                const vec one = conv_winograd_simd_load(w + b * LANES);
                UNROLL
                for (int i = 0; i < tiles; i++) sum[b][i] += held[i] * one;
            }
        } else {
            UNROLL
            for (int b = 0; b < blocks; b++) held[b] = conv_winograd_simd_load(w + b * LANES);
            UNROLL
            for (int i = 0; i < tiles; i++) {
                const vec one = conv_winograd_simd_splat(v[i * LANES + lane]);
                UNROLL
                for (int b = 0; b < blocks; b++) sum[b][i] += one * held[b];
            }
        }
    }
#endif
}

/* One point's product: channel blocks by tiles, summed over runs of input blocks. Between runs sums go through memory,
 * so that each is short. */
INLINE void product(const prn_winograd_product *p, const int blocks, const int tiles)
{
    const float *v = p->v, *weights = p->weights, *next = p->next;
    const int64_t v_block = p->v_block, m_block = p->m_block, step = p->next_step;
    float *m = p->m;
    bool add = p->add;
    for (int64_t from = 0, end; from < p->in_blocks; from = end, add = true) {
        sums sum;
        end = p->in_blocks - from < p->run ? p->in_blocks : from + p->run;
        UNROLL
        for (int b = 0; b < blocks; b++) {
            UNROLL
            for (int i = 0; i < tiles; i++) sum[b][i] = (vec){0};
        }
        for (int64_t c = from; c < end; c++) {
            conv_winograd_simd_sum_block(v, weights, next, step, blocks, tiles, sum);
            v += v_block;
            weights += LANES * blocks * LANES;
            next += LANES * step;
        }
        UNROLL
        for (int b = 0; b < blocks; b++) {
            UNROLL
            for (int i = 0; i < tiles; i++) {
                float *to = m + b * m_block + i * LANES;
                if (add) sum[b][i] += conv_winograd_simd_load(to);
                conv_winograd_simd_store(to, sum[b][i]);
            }
        }
    }
}

#define PRODUCT(blocks, tiles)                                                                                         \
    static void product_##blocks##x##tiles(const prn_winograd_product *p)                                              \
    {                                                                                                                  \
        product(p, blocks, tiles);                                                                                     \
    }
#define EACH_3(X, b) X(b, 1) X(b, 2) X(b, 3)
#define EACH_4(X, b) EACH_3(X, b) X(b, 4)
#define EACH_5(X, b) EACH_4(X, b) X(b, 5)
#define EACH_6(X, b) EACH_5(X, b) X(b, 6)
#define EACH_8(X, b) EACH_6(X, b) X(b, 7) X(b, 8)
#define EACH_12(X, b) EACH_8(X, b) X(b, 9) X(b, 10) X(b, 11) X(b, 12)
#define EACH(X, b) PRN_SIMD_JOIN(EACH_, TILES_##b)(X, b)
EACH(PRODUCT, 1)
EACH(PRODUCT, 2)
EACH(PRODUCT, 3)
EACH(PRODUCT, 4)

#define ENTRY(blocks, tiles) [tiles] = product_##blocks##x##tiles,
const prn_winograd_simd PRN_SIMD_TABLE(prn_winograd_simd_) = {
    .lanes = LANES,
    .tiles = {0, TILES_1, TILES_2, TILES_3, TILES_4},
    .forward = {forward_2x2, forward_2x4, forward_4x4},
    .edge = {edge_2x2, edge_2x4, edge_4x4},
    .inverse = {inverse_2x2, inverse_2x4, inverse_4x4},
    .product = {[1] = {EACH(ENTRY, 1)}, [2] = {EACH(ENTRY, 2)}, [3] = {EACH(ENTRY, 3)}, [4] = {EACH(ENTRY, 4)}},
    .filters = {filters_2x2, filters_2x4, filters_4x4},
    .filters_of_taps = {of_taps_2x2, of_taps_2x4, of_taps_4x4}};
