/* Turning pairs of elements of a row by angles, as rotary position embeddings do: pair k is (x[k], x[k + half]), or interleaved
 * (x[2 k], x[2 k + 1]). */
#ifndef PRN_OPS_LOOPS_ROTATE_H
#define PRN_OPS_LOOPS_ROTATE_H

#include <stdbool.h>
#include <stdint.h>

/* y may be x. */
static inline void prn_rotate_f32(float *y, const float *x, const float *cosine, const float *sine, int64_t half, bool interleaved)
{
    const int64_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : half;
    for (int64_t k = 0; k < half; k++) {
        const float first = x[k * step], second = x[k * step + apart];
        y[k * step] = cosine[k] * first - sine[k] * second;
        y[k * step + apart] = sine[k] * first + cosine[k] * second;
    }
}

#endif
