/* Samples of planes (compiled once per PRN_SIMD). A bilinear weight is what a hat of width 2 around its element has at
 * the point: with the square moved into the plane, that leaves weight 0 for what lies outside of it. Invariant: places
 * are those of squares within the plane, whatever the grid holds. */
#include "ops/vision/grid_sample_simd.h"
#include "base/cpu/simd.h"
#include "ops/kernels/vector/vec_places.h"

/* Along one axis. */
typedef struct axis_points {
    float first[PRN_SAMPLE_POINTS], second[PRN_SAMPLE_POINTS]; /* weights */
    int32_t index[PRN_SAMPLE_POINTS];                          /* of the first one, at most extent - 2 */
} axis_points;

/* Coordinates in double, as the reference has them, then rounded to the grid's type. grid: every other entry is one. */
static void find_axis(const prn_sample_plane *plane, const float *grid, int64_t extent, axis_points *out)
{
    const double length = (double)extent, scale = plane->aligned ? length - 1.0 : length,
                 less = plane->aligned ? 0.0 : 1.0;
    const float last = (float)(extent - 1), most = (float)(extent - 2);
    const bool border = plane->border;
    for (int i = 0; i < PRN_SAMPLE_POINTS; i++) {
        float at = (float)((((double)grid[2 * i] + 1.0) * scale - less) * 0.5);
        const float low = at > 0.0f ? at : 0.0f; /* NaN is 0 */
        if (border) at = low < last ? low : last;
        const int32_t index = (int32_t)(low < most ? low : most);
        const float past = at - (float)index, first = 1.0f - fabsf(past), second = 1.0f - fabsf(past - 1.0f);
        out->index[i] = index;
        out->first[i] = first > 0.0f ? first : 0.0f;
        out->second[i] = second > 0.0f ? second : 0.0f;
    }
}

static void find_squares(const prn_sample_plane *plane, const float *grid, int64_t count, prn_sample_squares *out)
{
    float whole[2 * PRN_SAMPLE_POINTS];
    axis_points x, y;
    if (count < PRN_SAMPLE_POINTS) {
        for (int i = 0; i < 2 * PRN_SAMPLE_POINTS; i++) whole[i] = i < 2 * count ? grid[i] : 0.0f;
        grid = whole;
    }
    find_axis(plane, grid, plane->width, &x);
    find_axis(plane, grid + 1, plane->height, &y);
    out->count = count;
    int none = 0;
    for (int i = 0; i < PRN_SAMPLE_POINTS; i++) {
        out->place[i] = y.index[i] * (int32_t)plane->width + x.index[i];
        out->upper[2 * i] = y.first[i] * x.first[i];
        out->upper[2 * i + 1] = y.first[i] * x.second[i];
        out->lower[2 * i] = y.second[i] * x.first[i];
        out->lower[2 * i + 1] = y.second[i] * x.second[i];
    }
    for (int i = 0; i < 2 * PRN_SAMPLE_POINTS; i++) none |= (out->upper[i] == 0.0f) | (out->lower[i] == 0.0f);
    out->whole = none == 0;
}

VEC_INLINE vf weighed(vf x, vf weight, const bool whole)
{
    return weight * (whole ? x : v_select(weight != 0.0f, x, v_splat(0.0f)));
}

/* VEC_LANES / 2 points: the left and the right half of each. */
VEC_INLINE vf square_halves(const prn_sample_squares *points, const float *x, int64_t width, int64_t at,
                            const bool whole)
{
    const int32_t *place = points->place + at;
    return weighed(v_load_pairs(x, place), v_load(points->upper + 2 * at), whole) +
           weighed(v_load_pairs(x + width, place), v_load(points->lower + 2 * at), whole);
}

VEC_INLINE void squares_with(const prn_sample_squares *points, const float *x, int64_t width, float *to,
                             const bool whole)
{
    for (int64_t i = 0; i < points->count; i += VEC_LANES) {
        const vf one = square_halves(points, x, width, i, whole);
        const vf other = square_halves(points, x, width, i + VEC_LANES / 2, whole);
        v_store_part(to + i, v_firsts(one, other) + v_seconds(one, other), points->count - i);
    }
}

static void grid_sample_simd_squares(const prn_sample_squares *points, const float *x, int64_t width, float *to)
{
    if (points->whole)
        squares_with(points, x, width, to, true);
    else
        squares_with(points, x, width, to, false);
}

VEC_INLINE void taps_with(const prn_sample_taps *points, const float *x, float *to, const bool whole)
{
    for (int64_t i = 0; i < points->count; i += VEC_LANES) {
        vf sum = {0};
        for (int tap = 0; tap < points->taps; tap++)
            sum += weighed(v_load_places(x, points->place[tap] + i), v_load(points->weight[tap] + i), whole);
        v_store_part(to + i, sum, points->count - i);
    }
}

static void taps(const prn_sample_taps *points, const float *x, float *to)
{
    if (points->whole)
        taps_with(points, x, to, true);
    else
        taps_with(points, x, to, false);
}

const prn_sample_simd PRN_SIMD_TABLE(prn_sample_simd_) = {find_squares, grid_sample_simd_squares, taps};
