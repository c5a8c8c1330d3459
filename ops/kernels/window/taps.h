/* Interpolation at a point between the elements of a tensor: along each axis a few taps with their weights, which are
 * multiplied over the axes. */
#ifndef PRN_OPS_KERNELS_WINDOW_TAPS_H
#define PRN_OPS_KERNELS_WINDOW_TAPS_H

#include "ops/op.h"

enum { PRN_MAX_TAPS = 4 };

/* Positions along one axis and their weights. Index -1: outside of the tensor, where everything is zero. */
typedef struct prn_taps {
    int count;
    int64_t index[PRN_MAX_TAPS];
    double weight[PRN_MAX_TAPS];
} prn_taps;

/* Sum over all combinations of taps of `axes` axes, whose strides count elements. */
double prn_taps_blend(const prony_value *value, const prn_taps *taps, const int64_t *stride, int axes, int64_t offset);

/* Keys' cubic convolution with parameter a: weights of the four elements around a point, a fraction after the
 * second. */
void prn_taps_cubic(double weight[PRN_MAX_TAPS], double fraction, double a);

#endif
