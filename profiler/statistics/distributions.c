/* Distributions that tests need. Student's is the regularised incomplete beta function, by its continued fraction. */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>

double prn_normal_below(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* Continued fraction of the incomplete beta function, evaluated from the front (Lentz). */
static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double fraction = d;
    for (int i = 1; i < 10000; i++) {
        double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        double before = fraction;
        for (int half = 0; half < 2; half++) {
            double term = half ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            if (fabs(d) < tiny) d = tiny;
            if (fabs(c) < tiny) c = tiny;
            d = 1 / d;
            fraction *= c * d;
        }
        if (fabs(fraction - before) <= 1e-15 * fabs(fraction)) break;
    }
    return fraction;
}

/* I_x(a, b), the regularised incomplete beta function. */
static double beta(double x, double a, double b)
{
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double scale = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return scale * beta_fraction(x, a, b) / a;
    return 1 - scale * beta_fraction(1 - x, b, a) / b;
}

double prn_student_p(double t, double degrees)
{
    return isfinite(t) ? beta(degrees / (degrees + t * t), degrees / 2, 0.5) : 0;
}

/* By bisection; the bound grows without limit as p and the degrees fall. */
double prn_student_bound(double p, double degrees)
{
    double low = 0, high = 1;
    while (prn_student_p(high, degrees) > p && high < 1e9) high *= 2;
    for (int i = 0; i < 80; i++) {
        double middle = (low + high) / 2;
        if (prn_student_p(middle, degrees) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static int compare_pointed(const void *left, const void *right)
{
    double a = **(double *const *)left, b = **(double *const *)right;
    return (a > b) - (a < b);
}

prony_status prn_holm_adjust(double *p, size_t count, prony_error *error)
{
    double **order = prn_calloc(count + 1, sizeof *order);
    size_t known = 0;
    double floor = 0;
    if (!order) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i])) order[known++] = &p[i];
    qsort(order, known, sizeof *order, compare_pointed);
    for (size_t i = 0; i < known; i++) {
        floor = fmax(floor, fmin(1, *order[i] * (double)(known - i)));
        *order[i] = floor;
    }
    prn_free(order);
    return PRONY_OK;
}
