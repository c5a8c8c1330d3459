/* Samples of float32 planes, compiled once per instruction set. An element of weight 0 is not looked at, so that no
 * infinity comes in by it. */
#ifndef PRN_OPS_VISION_GRID_SAMPLE_SIMD_H
#define PRN_OPS_VISION_GRID_SAMPLE_SIMD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PRN_SAMPLE_POINTS = 64, /* that are sampled together, for one channel after another */
    PRN_SAMPLE_TAPS = 16,
};

/* Points that are weighted sums of some elements of a plane, in the taps' order. */
typedef struct prn_sample_taps {
    int32_t place[PRN_SAMPLE_TAPS][PRN_SAMPLE_POINTS]; /* within the plane */
    float weight[PRN_SAMPLE_TAPS][PRN_SAMPLE_POINTS];
    int taps;      /* of each point */
    int64_t count; /* points; the entries beyond it have place and weights 0 */
    bool whole;    /* no weight of the first `count` points is 0 */
} prn_sample_taps;

/* Points among the elements of planes of at least 2 x 2. A point lies within, or on the edge of, a square of four
 * elements, of which `place` is the first. */
typedef struct prn_sample_squares {
    int32_t place[PRN_SAMPLE_POINTS];
    float upper[2 * PRN_SAMPLE_POINTS], lower[2 * PRN_SAMPLE_POINTS]; /* weights: the left and the right one of a
                                                                         point */
    int64_t count; /* the entries beyond it have place and weights 0 */
    bool whole;    /* no weight of the first `count` points is 0 */
} prn_sample_squares;

typedef struct prn_sample_plane {
    int64_t height, width; /* 2 at least; height * width fits in int32 */
    bool aligned;          /* -1 and 1 are the middles of the outermost elements, otherwise their outer edges */
    bool border;           /* points outside move to the border; otherwise everything outside is 0 */
} prn_sample_plane;

typedef struct prn_sample_simd {
    /* grid: [count][x, y]; count is PRN_SAMPLE_POINTS at most. */
    void (*find_squares)(const prn_sample_plane *plane, const float *grid, int64_t count, prn_sample_squares *out);
    /* One channel: x is [height][width], `to` takes `count` elements. */
    void (*squares)(const prn_sample_squares *points, const float *x, int64_t width, float *to);
    void (*taps)(const prn_sample_taps *points, const float *x, float *to);
} prn_sample_simd;

#endif
