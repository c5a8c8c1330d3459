/* Turning pairs of elements of a row by angles, as rotary position embeddings do: pair k is (x[k], x[k + half]), or
 * interleaved (x[2 k], x[2 k + 1]). */
#ifndef PRN_OPS_KERNELS_COPY_ROTATE_H
#define PRN_OPS_KERNELS_COPY_ROTATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prn_pairs {
    int64_t step, apart; /* of successive pairs, and of a pair's elements */
} prn_pairs;

static inline prn_pairs prn_pairs_of(int64_t half, bool interleaved)
{
    return interleaved ? (prn_pairs){2, 1} : (prn_pairs){1, half};
}

/* Pairs 0 to count - 1; y may be x. */
static inline void prn_rotate_f32(float *y, const float *x, const float *cosine, const float *sine, int64_t count,
                                  prn_pairs pairs)
{
    for (int64_t k = 0; k < count; k++) {
        const float first = x[k * pairs.step], second = x[k * pairs.step + pairs.apart];
        y[k * pairs.step] = cosine[k] * first - sine[k] * second;
        y[k * pairs.step + pairs.apart] = sine[k] * first + cosine[k] * second;
    }
}

static inline void prn_rotate_f64(double *y, const double *x, const double *cosine, const double *sine, int64_t count,
                                  prn_pairs pairs)
{
    for (int64_t k = 0; k < count; k++) {
        const double first = x[k * pairs.step], second = x[k * pairs.step + pairs.apart];
        y[k * pairs.step] = cosine[k] * first - sine[k] * second;
        y[k * pairs.step + pairs.apart] = sine[k] * first + cosine[k] * second;
    }
}

#endif
