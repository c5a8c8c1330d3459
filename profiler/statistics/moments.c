/* Tests on moments alone, for values that were not kept. */
#include "profiler/statistics/statistics.h"

#include <math.h>

/* Welch and Satterthwaite's degrees of freedom for the two variances of a mean. */
static double degrees_of(double v1, double n1, double v2, double n2)
{
    double sum = v1 + v2;
    return sum * sum / (v1 * v1 / (n1 - 1) + v2 * v2 / (n2 - 1));
}

double prn_welch_p(prn_moments a, prn_moments b)
{
    if (a.count < 2 || b.count < 2) return NAN;
    double va = a.std * a.std / a.count, vb = b.std * b.std / b.count, difference = fabs(a.mean - b.mean);
    if (va + vb <= 0) return difference > 0 ? 0 : 1;
    return prn_student_p(difference / sqrt(va + vb), degrees_of(va, a.count, vb, b.count));
}

void prn_welch_ratio_interval(double interval[2], prn_moments a, prn_moments b)
{
    interval[0] = interval[1] = NAN;
    if (a.count < 2 || b.count < 2 || !(a.mean > 0) || !(b.mean > 0)) return;
    double ea = a.std / a.mean, eb = b.std / b.mean, va = ea * ea / a.count, vb = eb * eb / b.count;
    double half = va + vb > 0 ? prn_student_bound(0.05, degrees_of(va, a.count, vb, b.count)) * sqrt(va + vb) : 0;
    interval[0] = b.mean / a.mean * exp(-half);
    interval[1] = b.mean / a.mean * exp(half);
}
