/* Tiles of the flat convolution (compiled once per PRN_SIMD): an input vector is loaded once for all output channels of
 * the tile. Invariant: each output is one chain of multiply-adds by input channel, row and column of the window, to
 * which the bias is added; the same for any number of lanes. */
#include "ops/conv/conv_row_direct_simd.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec_math.h"

/* Vectors of a tile with so many channels: its sums, inputs and a weight fit into the registers. */
#if VEC_LANES == 16 || defined(PRN_NEON)
#define MOST_CHANNELS 8
#define VECTORS_1 8
#define VECTORS_2 8
#define VECTORS_3 7
#define VECTORS_4 6
#define VECTORS_5 5
#define VECTORS_6 4
#else
#define MOST_CHANNELS 6
#define VECTORS_1 6
#define VECTORS_2 4
#define VECTORS_3 3
#define VECTORS_4 3
#define VECTORS_5 2
#define VECTORS_6 2
#endif
#define VECTORS_7 3
#define VECTORS_8 3

/* x's lanes in the order that `lane` says. */
VEC_INLINE vf pick_lanes(vf x, const uint8_t *lane)
{
#if defined(__AVX512F__)
    return (vf)_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)lane)), (__m512)x);
#elif defined(__AVX2__) && !defined(PRN_EMULATED_AVX512)
    return (vf)_mm256_permutevar8x32_ps((__m256)x, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)lane)));
#else
    vf picked;
    for (int i = 0; i < VEC_LANES; i++) picked[i] = x[lane[i]];
    return picked;
#endif
}

/* A register tile: output channels by vectors of positions, summed over all taps, with bias and clamp. A part stores
 * the lanes that are outputs; the rest lie between rows. */
VEC_INLINE void conv_row_direct_simd_tile(const prn_row_direct_tile *t, const int channels, const int vectors)
{
    vf sum[PRN_ROW_DIRECT_MOST_CHANNELS][PRN_ROW_DIRECT_MOST_VECTORS], x[PRN_ROW_DIRECT_MOST_VECTORS];
    PRN_UNROLL
    for (int k = 0; k < channels; k++) {
        PRN_UNROLL
        for (int v = 0; v < vectors; v++) sum[k][v] = (vf){0};
    }
    const float *weights = t->weights;
    const int64_t taps = t->taps;
    for (int64_t tap = 0; tap < taps; tap++, weights += channels) {
        const float *from = t->x + t->steps[tap];
        PRN_UNROLL
        for (int v = 0; v < vectors; v++) x[v] = v_load(from + v * VEC_LANES);
        PRN_UNROLL
        for (int k = 0; k < channels; k++) {
            const vf weight = v_splat(weights[k]);
            PRN_UNROLL
            for (int v = 0; v < vectors; v++) sum[k][v] += weight * x[v];
        }
    }
    const vf low = v_splat(t->low), high = v_splat(t->high);
    PRN_UNROLL
    for (int k = 0; k < channels; k++) {
        const vf bias = v_splat(t->bias[k]);
        PRN_UNROLL
        for (int v = 0; v < vectors; v++) {
            sum[k][v] += bias;
            if (t->clamped) sum[k][v] = v_clamp(sum[k][v], low, high);
        }
    }
    PRN_UNROLL
    for (int v = 0; v < vectors; v++) {
        const prn_row_direct_part *part = &t->parts[v];
        float *y = t->y + part->at;
        if (part->count == VEC_LANES) {
            PRN_UNROLL
            for (int k = 0; k < channels; k++) v_store(y + k * t->y_plane, sum[k][v]);
        } else if (part->count > 0) {
            PRN_UNROLL
            for (int k = 0; k < channels; k++)
                v_store_part(y + k * t->y_plane, pick_lanes(sum[k][v], part->lane), part->count);
        }
    }
}

/* One row: what lies in [begin, end) of `count` elements comes from there, the rest is 0. */
VEC_INLINE void conv_row_direct_simd_fill_row(float *to, int64_t count, const float *from, int64_t begin, int64_t end,
                                              const int64_t stride, int64_t any)
{
    const int64_t step = stride ? stride : any;
    int64_t j = 0;
    for (; j < begin; j += VEC_LANES) v_store_part(to + j, (vf){0}, begin - j);
    j = begin;
    if (stride == 1) {
        for (; j + VEC_LANES <= end; j += VEC_LANES) v_store(to + j, v_load(from + j));
        if (j < end) {
            v_store_part(to + j, v_load_part(from + j, end - j, 0.0f), count - j);
            j += VEC_LANES;
        }
    } else {
        for (; j < end; j++) to[j] = from[j * step];
    }
    for (; j < count; j += VEC_LANES) v_store_part(to + j, (vf){0}, count - j);
}

static void conv_row_direct_simd_fill(float *to, const prn_row_direct_fill *f)
{
    const int64_t first = f->left < 0 ? (f->stride[1] - 1 - f->left) / f->stride[1] : 0;
    const int64_t last = f->left < f->width ? (f->width - 1 - f->left) / f->stride[1] + 1 : 0;
    const int64_t end = last < f->pitch ? last : f->pitch, begin = first < end ? first : end;
    int64_t y = f->top;
    for (int64_t r = 0; r < f->rows; r++, y += f->stride[0], to += f->pitch) {
        const bool inside = y >= 0 && y < f->height;
        const float *from = f->image + (inside ? y * f->width + f->left : 0);
        if (!inside)
            conv_row_direct_simd_fill_row(to, f->pitch, from, 0, 0, 1, 1);
        else if (f->stride[1] == 1)
            conv_row_direct_simd_fill_row(to, f->pitch, from, begin, end, 1, 1);
        else if (f->stride[1] == 2)
            conv_row_direct_simd_fill_row(to, f->pitch, from, begin, end, 2, 2);
        else
            conv_row_direct_simd_fill_row(to, f->pitch, from, begin, end, 0, f->stride[1]);
    }
}

#define TILE(channels, vectors)                                                                                        \
    static void conv_row_direct_simd_tile_##channels##x##vectors(const prn_row_direct_tile *t)                         \
    {                                                                                                                  \
        conv_row_direct_simd_tile(t, channels, vectors);                                                               \
    }
#define EACH_2(X, k) X(k, 1) X(k, 2)
#define EACH_3(X, k) EACH_2(X, k) X(k, 3)
#define EACH_4(X, k) EACH_3(X, k) X(k, 4)
#define EACH_5(X, k) EACH_4(X, k) X(k, 5)
#define EACH_6(X, k) EACH_5(X, k) X(k, 6)
#define EACH_7(X, k) EACH_6(X, k) X(k, 7)
#define EACH_8(X, k) EACH_7(X, k) X(k, 8)
#define EACH(X, k) PRN_SIMD_JOIN(EACH_, VECTORS_##k)(X, k)
EACH(TILE, 1)
EACH(TILE, 2)
EACH(TILE, 3)
EACH(TILE, 4)
EACH(TILE, 5)
EACH(TILE, 6)
#if MOST_CHANNELS == 8
EACH(TILE, 7)
EACH(TILE, 8)
#endif

#define ENTRY(channels, vectors) [vectors] = conv_row_direct_simd_tile_##channels##x##vectors,
const prn_row_direct_simd PRN_SIMD_TABLE(prn_row_direct_simd_) = {
    .lanes = VEC_LANES,
    .channels = MOST_CHANNELS,
    .vectors = {0, VECTORS_1, VECTORS_2, VECTORS_3, VECTORS_4, VECTORS_5, VECTORS_6, VECTORS_7, VECTORS_8},
    .tile =
        {
            [1] = {EACH(ENTRY, 1)},
            [2] = {EACH(ENTRY, 2)},
            [3] = {EACH(ENTRY, 3)},
            [4] = {EACH(ENTRY, 4)},
            [5] = {EACH(ENTRY, 5)},
            [6] = {EACH(ENTRY, 6)},
#if MOST_CHANNELS == 8
            [7] = {EACH(ENTRY, 7)},
            [8] = {EACH(ENTRY, 8)},
#endif
        },
    .fill = conv_row_direct_simd_fill};
