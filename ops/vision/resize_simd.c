/* Rows of linear Resize (compiled once per PRN_SIMD). Sources of neighbouring results lie in one or two vectors unless
 * the row shrinks to less than its half; then pairs of neighbours are loaded. Every result is the same operations
 * everywhere. */
#include "ops/vision/resize_simd.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec_places.h"

VEC_INLINE vf blend(vf a, vf b, vf ratio)
{
    return a + ratio * (b - a);
}

#if (defined(__AVX512F__) || defined(__AVX2__)) && !defined(PRN_EMULATED_AVX512)
#define LOOKS_UP

/* A stretch of the row in registers; `beyond` is asked for where it has more than one vector. */
typedef struct stretch {
    vf first, beyond;
} stretch;

VEC_INLINE vi places_from(const int32_t *p, int64_t from)
{
    vi at;
    memcpy(&at, p, sizeof at);
    return at - (int32_t)from;
}

VEC_INLINE vf resize_simd_look_up(const stretch *s, vi at)
{
#if defined(__AVX512F__)
    return (vf)_mm512_permutexvar_ps((__m512i)at, (__m512)s->first);
#else
    return (vf)_mm256_permutevar8x32_ps((__m256)s->first, (__m256i)at);
#endif
}

VEC_INLINE vf look_up_2(const stretch *s, vi at)
{
#if defined(__AVX512F__)
    return (vf)_mm512_permutex2var_ps((__m512)s->first, (__m512i)at, (__m512)s->beyond);
#else
    const __m256 low = _mm256_permutevar8x32_ps((__m256)s->first, (__m256i)at);
    const __m256 high = _mm256_permutevar8x32_ps((__m256)s->beyond, (__m256i)at);
    return (vf)_mm256_blendv_ps(low, high, (__m256)((vu)at << 28)); /* places from 8 on have that bit as their sign */
#endif
}

/* Entries [i, i + VEC_LANES) in *out; false: their sources lie too far apart. */
VEC_INLINE bool across_looked_up(const prn_resize_line *line, const float *row, int64_t i, vf *out)
{
    int64_t from = line->low[i] - (line->lanes - 1), end = line->high[i + VEC_LANES - 1] + line->lanes;
    if (from < 0) from = 0;
    if (end > line->width) end = line->width;
    if (end - from > 2 * VEC_LANES) return false;
    const int64_t left = line->width - from;
    const vi low = places_from(line->low + i, from), high = places_from(line->high + i, from);
    const vf ratio = v_load(line->ratio + i);
    stretch s = {.first = v_load_part(row + from, left, 0.0f)};
    if (end - from <= VEC_LANES) {
        *out = blend(resize_simd_look_up(&s, low), resize_simd_look_up(&s, high), ratio);
        return true;
    }
    s.beyond = v_load_part(row + from + VEC_LANES, left - VEC_LANES, 0.0f);
    *out = blend(look_up_2(&s, low), look_up_2(&s, high), ratio);
    return true;
}
#endif

/* Blends pairs of elements that lie anywhere in the row. */
VEC_INLINE vf blend_gathered(const prn_resize_line *line, const float *row, int64_t i)
{
    vf low, high;
    if (line->lanes == 1 && line->high[i + VEC_LANES - 1] > line->low[i + VEC_LANES - 1]) {
        const vf one = v_load_pairs(row, line->low + i), other = v_load_pairs(row, line->low + i + VEC_LANES / 2);
        low = v_firsts(one, other);
        high = v_seconds(one, other);
    } else {
        low = v_load_places(row, line->low + i);
        high = v_load_places(row, line->high + i);
    }
    return blend(low, high, v_load(line->ratio + i));
}

static void across(const prn_resize_line *line, const float *row, float *to)
{
    for (int64_t i = 0; i < line->count; i += VEC_LANES) {
        vf out;
#ifdef LOOKS_UP
        if (!across_looked_up(line, row, i, &out)) out = blend_gathered(line, row, i);
#else
        out = blend_gathered(line, row, i);
#endif
        v_store(to + i, out);
    }
}

static void across_columns(const prn_resize_line *line, const float *row, float *to)
{
    const int64_t lanes = line->lanes;
    for (int64_t x = 0; x < line->count; x++) {
        const float *a = row + line->low[x] * lanes, *b = row + line->high[x] * lanes;
        const vf ratio = v_splat(line->ratio[x]);
        for (int64_t k = 0; k < lanes; k += VEC_LANES) {
            const int64_t left = lanes - k;
            v_store(to + x * lanes + k, blend(v_load_part(a + k, left, 0.0f), v_load_part(b + k, left, 0.0f), ratio));
        }
    }
}

static void blend_rows(const float *above, const float *below, float ratio, int64_t count, float *to)
{
    const vf r = v_splat(ratio);
    for (int64_t i = 0; i < count; i += VEC_LANES)
        v_store_part(to + i, blend(v_load(above + i), v_load(below + i), r), count - i);
}

/* The four elements around a result. */
typedef struct corners {
    const float *top_low, *top_high, *bottom_low, *bottom_high;
} corners;

VEC_INLINE vf blend_corners(const corners *c, int64_t k, int64_t left, vf across, vf down)
{
    const vf above = blend(v_load_part(c->top_low + k, left, 0.0f), v_load_part(c->top_high + k, left, 0.0f), across);
    const vf below =
        blend(v_load_part(c->bottom_low + k, left, 0.0f), v_load_part(c->bottom_high + k, left, 0.0f), across);
    return blend(above, below, down);
}

static void lanes(const prn_resize_line *line, const float *top, const float *bottom, float down_ratio, float *to,
                  int64_t begin, int64_t end)
{
    const vf d = v_splat(down_ratio);
    for (int64_t x = 0; x < line->count; x++) {
        const int64_t low = line->low[x] * line->lanes, high = line->high[x] * line->lanes;
        const corners c = {top + low, top + high, bottom + low, bottom + high};
        const vf r = v_splat(line->ratio[x]);
        float *out = to + x * line->lanes;
        for (int64_t k = begin; k < end; k += VEC_LANES)
            v_store_part(out + k, blend_corners(&c, k, end - k, r, d), end - k);
    }
}

const prn_resize_simd PRN_SIMD_TABLE(prn_resize_simd_) = {across, across_columns, blend_rows, lanes};
