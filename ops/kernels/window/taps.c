/* Blending of interpolation taps. Invariant: the sum is formed in double, outermost axis last, in the taps' order. */
#include "ops/kernels/window/taps.h"

#include "ops/kernels/vector/number.h"

double prn_taps_blend(const prony_value *value, const prn_taps *taps, const int64_t *stride, int axes, int64_t offset)
{
    if (axes == 0) return prn_get_f64(value->data, value->dtype, offset);
    double sum = 0.0;
    for (int k = 0; k < taps->count; k++) {
        if (taps->weight[k] == 0.0 || taps->index[k] < 0) continue;
        sum +=
            taps->weight[k] * prn_taps_blend(value, taps + 1, stride + 1, axes - 1, offset + taps->index[k] * *stride);
    }
    return sum;
}

void prn_taps_cubic(double weight[PRN_MAX_TAPS], double fraction, double a)
{
    const double s = fraction, t = 1.0 - fraction;
    weight[0] = ((a * (s + 1.0) - 5.0 * a) * (s + 1.0) + 8.0 * a) * (s + 1.0) - 4.0 * a;
    weight[1] = ((a + 2.0) * s - (a + 3.0)) * s * s + 1.0;
    weight[2] = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
    weight[3] = ((a * (t + 1.0) - 5.0 * a) * (t + 1.0) + 8.0 * a) * (t + 1.0) - 4.0 * a;
}
