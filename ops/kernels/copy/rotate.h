/* Turning pairs of elements of a row by angles, as rotary position embeddings do: pair k is (x[k], x[k + half]), or
 * interleaved (x[2 k], x[2 k + 1]). */
#ifndef PRN_OPS_KERNELS_COPY_ROTATE_H
#define PRN_OPS_KERNELS_COPY_ROTATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prn_pairs {
    int64_t pair_stride, element_stride; /* from pair to pair, and between the elements of a pair */
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
        const float first = x[k * pairs.pair_stride], second = x[k * pairs.pair_stride + pairs.element_stride];
        y[k * pairs.pair_stride] = cosine[k] * first - sine[k] * second;
        y[k * pairs.pair_stride + pairs.element_stride] = sine[k] * first + cosine[k] * second;
    }
}

static inline void prn_rotate_f64(double *y, const double *x, const double *cosine, const double *sine, int64_t count,
                                  prn_pairs pairs)
{
    for (int64_t k = 0; k < count; k++) {
        const double first = x[k * pairs.pair_stride], second = x[k * pairs.pair_stride + pairs.element_stride];
        y[k * pairs.pair_stride] = cosine[k] * first - sine[k] * second;
        y[k * pairs.pair_stride + pairs.element_stride] = sine[k] * first + cosine[k] * second;
    }
}

#endif
