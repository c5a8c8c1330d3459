/* Register tiles of the blocked direct convolution (compiled once per PRN_SIMD). A tile's sums stay in registers over
 * all its taps; with four blocks of three positions, AVX2's sixteen registers hold twelve sums, three inputs and one
 * vector of weights. Invariant: each output is summed in one order, whatever the lanes: unit of 16 input channels, tap,
 * channel; then what it is added to. */
#include "ops/conv/conv_direct_simd.h"
#include "base/cpu/fma_lane.h"
#include "base/cpu/simd.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define LANES (PRN_SIMD_BYTES / 4)
/* Positions of a tile with so many blocks, where all are counted from one address, and where each has an address of its
 * own, of which no more than eight have a register. */
#if LANES == 16
#define POSITIONS_1 12
#define POSITIONS_2 12
#define POSITIONS_3 8
#define POSITIONS_4 6
#elif LANES == 8
#define POSITIONS_1 8
#define POSITIONS_2 6
#define POSITIONS_3 4
#define POSITIONS_4 3
#elif defined(PRN_NEON) /* 32 registers: a vector of each input, one or two of weights */
#define POSITIONS_1 12
#define POSITIONS_2 8
#define POSITIONS_3 6
#define POSITIONS_4 5
#else
#define POSITIONS_1 8
#define POSITIONS_2 4
#define POSITIONS_3 3
#define POSITIONS_4 3
#endif
#define UNIT_BLOCKS (PRN_DIRECT_UNIT / LANES)
#define ADDRESSES(positions) ((positions) < 8 ? (positions) : 8)

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

static inline vec conv_direct_simd_splat(float x)
{
    return x - (vec){0};
}

/* The bound where x is beyond it, else x: NaN stays. */
#if LANES == 16 && defined(__AVX512F__)
#define AT_LEAST(bound, x) (vec) _mm512_max_ps((__m512)(bound), (__m512)(x))
#define AT_MOST(bound, x) (vec) _mm512_min_ps((__m512)(bound), (__m512)(x))
#elif LANES == 8 && defined(__AVX2__)
#define AT_LEAST(bound, x) (vec) _mm256_max_ps((__m256)(bound), (__m256)(x))
#define AT_MOST(bound, x) (vec) _mm256_min_ps((__m256)(bound), (__m256)(x))
#else
static inline vec conv_direct_simd_bounded(mask where, vec yes, vec no)
{
    return (vec)((where & (mask)yes) | (~where & (mask)no));
}
#define AT_LEAST(bound, x) conv_direct_simd_bounded((x) < (bound), bound, x)
#define AT_MOST(bound, x) conv_direct_simd_bounded((x) > (bound), bound, x)
#endif

/* Zeros that are read as padding. */
static const float padding[LANES];

/* Without a branch: a processor cannot predict the edges of small images. */
static inline __attribute__((always_inline)) const float *tap_input(const float *x, int32_t offset)
{
    const float *at = (const float *)((uintptr_t)x + (uintptr_t)(uint32_t)offset * sizeof(float));
#ifdef __x86_64__
    __asm__("testl %1, %1\n\tcmovs %2, %0" : "+r"(at) : "r"(offset), "r"(padding) : "cc");
    return at;
#elif defined(__aarch64__)
    __asm__("cmp %w1, #0\n\tcsel %0, %2, %0, lt" : "+r"(at) : "r"(offset), "r"(padding) : "cc");
    return at;
#else
    return offset < 0 ? padding : at;
#endif
}

static inline __attribute__((always_inline)) void tap_inputs(const float *x, const int32_t *offsets,
                                                             const int positions, const float **at)
{
    PRN_UNROLL
    for (int p = 0; p < positions; p++) at[p] = tap_input(x, offsets[p]);
}

typedef vec sums[PRN_DIRECT_MOST_BLOCKS][PRN_DIRECT_MOST_POSITIONS];

#ifdef PRN_PINNED
/* sum_tap for sums that are pinned to registers, which no function takes: the caller's blocks and positions are constants
 * after inlining. */
#define ADD_PRODUCT(i, number)                                                                                         \
    if (i / positions == b_) PRN_FMA_ANY_LANE(sum_##i, one_, x_[i % positions], c_)
#define SUM_TAP(at, weights, channels, blocks, positions, sum)                                                         \
    do {                                                                                                               \
        vec x_[PRN_DIRECT_MOST_POSITIONS];                                                                             \
        PRN_UNROLL                                                                                                     \
        for (int p_ = 0; p_ < positions; p_++) x_[p_] = *(const vec *)(at)[p_];                                        \
        PRN_UNROLL                                                                                                     \
        for (int c_ = 0; c_ < (channels); c_++) {                                                                      \
            PRN_UNROLL                                                                                                 \
            for (int b_ = 0; b_ < blocks; b_++) {                                                                      \
                const vec one_ = *(const vec *)((weights) + (c_ * blocks + b_) * LANES);                               \
                PRN_PINNED_SUMS(ADD_PRODUCT)                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#define TAKE_SUM(i, number)                                                                                            \
    if (i < blocks * positions) sum[i / positions][i % positions] = (vec)sum_##i;
#define BEGIN_SUMS PRN_PINNED_SUMS(PRN_PINNED_SUM)
#define END_SUMS PRN_PINNED_SUMS(TAKE_SUM)
#else
#define SUM_TAP sum_tap
#define BEGIN_SUMS
#define END_SUMS
#endif

/* channels, blocks and positions are constants after inlining. */
static inline __attribute__((always_inline)) void sum_tap(const float *const *at, const float *weights,
                                                          const int channels, const int blocks, const int positions,
                                                          sums sum)
{
#if defined(PRN_NEON)
    /* A block of a position's input is a vector (half of one where half of it is zeros, which are multiplied too). */
    vec x[PRN_DIRECT_MOST_POSITIONS];
    PRN_UNROLL
    for (int p = 0; p < positions; p++) x[p] = *(const vec *)at[p];
    PRN_UNROLL
    for (int c = 0; c < channels; c++) {
        PRN_UNROLL
        for (int b = 0; b < blocks; b++) {
            const vec one = *(const vec *)(weights + (c * blocks + b) * LANES);
            PRN_UNROLL
            for (int p = 0; p < positions; p++)
                sum[b][p] = (vec)prn_fma_lane((float32x4_t)sum[b][p], (float32x4_t)one, (float32x4_t)x[p], c);
        }
    }
#else
    PRN_UNROLL
    for (int c = 0; c < channels; c++) {
        /* Held in registers: whichever are fewer, inputs or weights. */
        vec held[PRN_DIRECT_MOST_BLOCKS];
        const float *w = weights + c * blocks * LANES;
        if (positions < blocks) {
            PRN_UNROLL
            for (int p = 0; p < positions; p++) held[p] = conv_direct_simd_splat(at[p][c]);
            PRN_UNROLL
            for (int b = 0; b < blocks; b++) {
                const vec one = *(const vec *)(w + b * LANES);
                PRN_UNROLL
                for (int p = 0; p < positions; p++) sum[b][p] += held[p] * one;
            }
        } else {
            PRN_UNROLL
            for (int b = 0; b < blocks; b++) held[b] = *(const vec *)(w + b * LANES);
            PRN_UNROLL
            for (int p = 0; p < positions; p++) {
                const vec one = conv_direct_simd_splat(at[p][c]);
                PRN_UNROLL
                for (int b = 0; b < blocks; b++) sum[b][p] += one * held[b];
            }
        }
    }
#endif
}

static inline __attribute__((always_inline)) void add_start(sums sum, const float *start, const int blocks,
                                                            const int positions)
{
    PRN_UNROLL
    for (int b = 0; b < blocks; b++) {
        PRN_UNROLL
        for (int p = 0; p < positions; p++) sum[b][p] += *(const vec *)(start + b * LANES);
    }
}

/* The place of position p's results. */
static inline __attribute__((always_inline)) int64_t conv_direct_simd_place(const int32_t *places, const int p)
{
    return places ? places[p] : p * LANES;
}

static inline __attribute__((always_inline)) void add_there(sums sum, const float *there, const int64_t y_block,
                                                            const int32_t *places, const int blocks,
                                                            const int positions)
{
    PRN_UNROLL
    for (int p = 0; p < positions; p++) {
        const float *at = there + conv_direct_simd_place(places, p);
        PRN_UNROLL
        for (int b = 0; b < blocks; b++) sum[b][p] += *(const vec *)(at + b * y_block);
    }
}

/* Lines that are needed soon, on the way: many at once would keep the loads behind them waiting. No pointer to them
 * lives on: the registers are the positions' addresses. */
static inline __attribute__((always_inline)) void fetch_next(const prn_direct_tile *t, int64_t step, const bool near)
{
    const float *next = t->next + step * t->next_lines * PRN_DIRECT_LINE_FLOATS;
    for (int64_t i = 0; i < t->next_lines; i++) {
        if (near)
            __builtin_prefetch(next + i * PRN_DIRECT_LINE_FLOATS, 0, 3);
        else
            __builtin_prefetch(next + i * PRN_DIRECT_LINE_FLOATS, 0, 2);
    }
}

static inline __attribute__((always_inline)) void fetch_there(const float *there, const int64_t y_block,
                                                              const int blocks, const int positions)
{
    PRN_UNROLL
    for (int b = 0; b < blocks; b++) {
        for (int p = 0; p < positions; p += PRN_DIRECT_LINE_FLOATS / LANES)
            __builtin_prefetch(there + b * y_block + p * LANES, 0, 3);
    }
}

static inline __attribute__((always_inline)) void conv_direct_simd_fetch_ahead(const float *x, const int32_t *offsets,
                                                                               const int positions)
{
    for (int p = 0; p < positions; p++) __builtin_prefetch(x + offsets[p], 0, 3);
}

static inline __attribute__((always_inline)) void sum_taps(const prn_direct_tile *t, const int blocks,
                                                           const int positions, sums sum)
{
    BEGIN_SUMS
    for (int64_t i = 0; i < t->in_blocks; i += UNIT_BLOCKS) {
        const float *x = t->x + i * t->x_block, *filters = t->weights + i * t->w_block;
        const int64_t blocks_here = t->in_blocks - i < UNIT_BLOCKS ? t->in_blocks - i : UNIT_BLOCKS;
        const float *at[PRN_DIRECT_MOST_POSITIONS];
        for (int64_t k = 0; k < t->taps; k++) {
            const float *weights = filters + (int64_t)t->numbers[k] * (PRN_DIRECT_UNIT * blocks * LANES);
            for (int64_t b = 0; b < (UNIT_BLOCKS == 1 ? 1 : blocks_here); b++) {
                if (t->next_lines) fetch_next(t, (i + b) * t->taps + k, blocks <= 2);
                if (k < t->fresh_count)
                    conv_direct_simd_fetch_ahead(x + b * t->x_block, t->ahead + t->fresh[k] * positions, positions);
                tap_inputs(x + b * t->x_block, t->offsets + k * positions, positions, at);
                SUM_TAP(at, weights + b * LANES * blocks * LANES, LANES, blocks, positions, sum);
            }
        }
    }
    END_SUMS
}

/* One tap: the next tile's input is what follows. */
static inline __attribute__((always_inline)) void conv_direct_simd_sum_row(const prn_direct_tile *t, const int blocks,
                                                                           const int positions, sums sum)
{
    const float *x = t->x, *weights = t->weights, *at[PRN_DIRECT_MOST_POSITIONS];
    const int64_t whole = t->in_blocks - t->ends_half;
    BEGIN_SUMS
    for (int64_t i = 0; i < whole; i++, x += t->x_block, weights += LANES * blocks * LANES) {
        fetch_next(t, i, false);
        PRN_UNROLL
        for (int p = 0; p < positions; p++) at[p] = x + p * LANES;
        for (int p = positions; p < 2 * positions; p += PRN_DIRECT_LINE_FLOATS / LANES)
            __builtin_prefetch(x + p * LANES, 0, 3);
        SUM_TAP(at, weights, LANES, blocks, positions, sum);
    }
    if (!t->ends_half) {
        END_SUMS
        return;
    }
    PRN_UNROLL
    for (int p = 0; p < positions; p++) at[p] = x + p * LANES;
    SUM_TAP(at, weights, LANES / 2, blocks, positions, sum);
    END_SUMS
}

/* Plain input: one address, as the positions stand at distances that are known. */
static inline __attribute__((always_inline)) void conv_direct_simd_sum_windows(const prn_direct_tile *t,
                                                                               const int stride, const int blocks,
                                                                               const int positions, sums sum)
{
    const float *weights = t->weights;
    for (int64_t k = 0; k < t->taps; k++, weights += blocks * LANES) {
        const float *x = t->x + t->steps[k];
        vec held[PRN_DIRECT_MOST_BLOCKS];
        PRN_UNROLL
        for (int b = 0; b < blocks; b++) held[b] = *(const vec *)(weights + b * LANES);
        PRN_UNROLL
        for (int p = 0; p < positions; p++) {
            const vec one = conv_direct_simd_splat(x[p * stride]);
            PRN_UNROLL
            for (int b = 0; b < blocks; b++) sum[b][p] += one * held[b];
        }
    }
}

static inline __attribute__((always_inline)) void conv_direct_simd_sum_all(const prn_direct_tile *t, const int blocks,
                                                                           const int positions, sums sum)
{
    if (t->offsets)
        sum_taps(t, blocks, positions, sum);
    else if (!t->steps)
        conv_direct_simd_sum_row(t, blocks, positions, sum);
    else if (t->stride == 1)
        conv_direct_simd_sum_windows(t, 1, blocks, positions, sum);
    else if (t->stride == 2)
        conv_direct_simd_sum_windows(t, 2, blocks, positions, sum);
    else
        conv_direct_simd_sum_windows(t, 4, blocks, positions, sum);
}

static inline __attribute__((always_inline)) void conv_direct_simd_clamp(sums sum, const float low, const float high,
                                                                         const int blocks, const int positions)
{
    const vec least = conv_direct_simd_splat(low), most = conv_direct_simd_splat(high);
    PRN_UNROLL
    for (int b = 0; b < blocks; b++) {
        PRN_UNROLL
        for (int p = 0; p < positions; p++) {
            const vec x = AT_LEAST(least, sum[b][p]);
            sum[b][p] = AT_MOST(most, x);
        }
    }
}

/* Ones, then zeros: LANES of them from LANES - used on are the mask of the first `used` lanes. */
static const int32_t ones_and_zeros[2 * LANES] = {
#if LANES == 16
    -1, -1, -1, -1, -1, -1, -1, -1,
#endif
#if LANES >= 8
    -1, -1, -1, -1,
#endif
    -1, -1, -1, -1};

static inline __attribute__((always_inline)) void clear_unused(sums sum, const int64_t used, const int blocks,
                                                               const int positions)
{
    const mask kept = *(const mask *)(ones_and_zeros + LANES - used);
    PRN_UNROLL
    for (int p = 0; p < positions; p++) sum[blocks - 1][p] = (vec)((mask)sum[blocks - 1][p] & kept);
}

/* A register tile: blocks of output channels by positions, summed over the pass's input channels and taps, then added
 * to what is there. */
static inline __attribute__((always_inline)) void conv_direct_simd_tile(const prn_direct_tile *t, const int blocks,
                                                                        const int positions)
{
    sums sum;
    const int64_t y_block = t->y_block;
    const float *there = t->start ? t->added : t->y;
    if (there && !t->places) fetch_there(there, y_block, blocks, positions);
    PRN_UNROLL
    for (int b = 0; b < blocks; b++) {
        PRN_UNROLL
        for (int p = 0; p < positions; p++) {
            sum[b][p] = (vec){0};
        }
    }
    conv_direct_simd_sum_all(t, blocks, positions, sum);
    /* The value that is there already is added last: short sums are the more exact ones. */
    if (!t->start) {
        add_there(sum, t->y, y_block, t->places, blocks, positions);
    } else {
        add_start(sum, t->start, blocks, positions);
        if (t->added) add_there(sum, t->added, y_block, t->places, blocks, positions);
    }
    if (t->clamped) conv_direct_simd_clamp(sum, t->low, t->high, blocks, positions);
    if (t->used_lanes) clear_unused(sum, t->used_lanes, blocks, positions);
    PRN_UNROLL
    for (int p = 0; p < positions; p++) {
        float *y = t->y + conv_direct_simd_place(t->places, p);
        PRN_UNROLL
        for (int b = 0; b < blocks; b++) *(vec *)(y + b * y_block) = sum[b][p];
    }
}

#define TILE(blocks, positions)                                                                                        \
    static void conv_direct_simd_tile_##blocks##x##positions(const prn_direct_tile *t)                                 \
    {                                                                                                                  \
        conv_direct_simd_tile(t, blocks, positions);                                                                   \
    }
#define EACH_3(X, b) X(b, 1) X(b, 2) X(b, 3)
#define EACH_4(X, b) EACH_3(X, b) X(b, 4)
#define EACH_5(X, b) EACH_4(X, b) X(b, 5)
#define EACH_6(X, b) EACH_5(X, b) X(b, 6)
#define EACH_8(X, b) EACH_6(X, b) X(b, 7) X(b, 8)
#define EACH_12(X, b) EACH_8(X, b) X(b, 9) X(b, 10) X(b, 11) X(b, 12)
#define EACH(X, b) PRN_SIMD_JOIN(EACH_, POSITIONS_##b)(X, b)
EACH(TILE, 1)
EACH(TILE, 2)
EACH(TILE, 3)
EACH(TILE, 4)

#define ENTRY(blocks, positions) [positions] = conv_direct_simd_tile_##blocks##x##positions,
const prn_direct_simd PRN_SIMD_TABLE(prn_direct_simd_) = {
    .lanes = LANES,
    .positions = {0, ADDRESSES(POSITIONS_1), ADDRESSES(POSITIONS_2), ADDRESSES(POSITIONS_3), ADDRESSES(POSITIONS_4)},
    .row_positions = {0, POSITIONS_1, POSITIONS_2, POSITIONS_3, POSITIONS_4},
    .tile = {[1] = {EACH(ENTRY, 1)}, [2] = {EACH(ENTRY, 2)}, [3] = {EACH(ENTRY, 3)}, [4] = {EACH(ENTRY, 4)}}};
