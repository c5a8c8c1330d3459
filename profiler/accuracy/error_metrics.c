/* The metrics, with y measured and r the reference, over the elements in which both are finite:
 *
 *   max_abs   max |y - r|
 *   max_rel   max_abs / (max r - min r); if all r are one number, / |r|; if all are 0, 1
 *   ulp       max |y - r| / ulp(max(|y|, |r|)), ulp(x) the distance from x to the next number of y's type in the
 *             model; if r is 0 and y is not, all digits are lost (2^24 of float32), and no more
 *   snr_db    10 log10(sum r^2 / sum (y - r)^2)
 *   beyond    share of elements with |y - r| > tolerance (max r - min r)
 *
 * Sums are formed in double, one after the other, as numpy.float64 forms them up to its last digits. */
#include "profiler/accuracy/error_metrics.h"

#include "base/shape.h"
#include "ops/kernels/vector/number.h"

#include <math.h>

double prn_ulp(double x, prony_dtype type)
{
    int bits, least;
    switch (type) {
    case PRONY_FLOAT64:
        bits = 52, least = -1022;
        break;
    case PRONY_FLOAT32:
        bits = 23, least = -126;
        break;
    case PRONY_FLOAT16:
        bits = 10, least = -14;
        break;
    case PRONY_BFLOAT16:
        bits = 7, least = -126;
        break;
    default:
        return 1;
    }
    int exponent = least;
    if (x != 0 && isfinite(x)) exponent = ilogb(x);
    return ldexp(1, (exponent < least ? least : exponent) - bits);
}

typedef struct pair {
    const prn_f64_tensor *y, *r;
    double scale, zero;
} pair;

/* Reads element i; quantised values are dequantised. */
static double error_metrics_get(const pair *p, const prn_f64_tensor *wide, int64_t i)
{
    if (wide->value.dtype == PRONY_FLOAT64) return ((const double *)wide->value.data)[i];
    return (prn_get_f64(wide->value.data, wide->value.dtype, i) - p->zero) * p->scale;
}

static double error_metrics_range_of(const pair *p, int64_t n)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const double r = error_metrics_get(p, p->r, i);
        if (!isfinite(r)) continue;
        if (r < low) low = r;
        if (r > high) high = r;
    }
    if (low > high) return 0;
    return high > low ? high - low : fabs(high);
}

static bool same_nonfinite(double y, double r)
{
    return (isnan(y) && isnan(r)) || y == r;
}

/* One pass over both tensors. Equal infinities and NaNs count as no error; other non-finite elements count as beyond
 * the tolerance. */
prony_error_metrics prn_error_figures(const prn_f64_tensor *measured, const prn_f64_tensor *reference,
                                      const prn_qint8_meaning *codes, double tolerance)
{
    const int64_t n = prony_shape_numel(&measured->value.shape);
    prony_error_metrics f = {.known = true, .elements = (uint64_t)n, .snr_db = NAN};
    const bool meaning = codes && codes->known;
    const pair p = {
        .y = measured, .r = reference, .scale = meaning ? codes->scale : 1, .zero = meaning ? codes->zero : 0};
    if (!prn_dtype_is_number(measured->value.dtype) && measured->value.dtype != PRONY_BOOL)
        return (prony_error_metrics){0};
    const double range = error_metrics_range_of(&p, n);
    double signal = 0, noise = 0;
    uint64_t beyond = 0;
    for (int64_t i = 0; i < n; i++) {
        const double y = error_metrics_get(&p, measured, i), r = error_metrics_get(&p, reference, i);
        if (!isfinite(y) || !isfinite(r)) {
            if (same_nonfinite(y, r)) continue;
            beyond++;
            if (!isfinite(y)) f.nonfinite++;
            continue;
        }
        const double e = fabs(y - r);
        const double ulps =
            e == 0 ? 0 : e / (meaning ? codes->scale : prn_ulp(fmax(fabs(y), fabs(r)), measured->model));
        if (e > f.max_abs) f.max_abs = e;
        if (ulps > f.ulp) f.ulp = ulps;
        signal += r * r;
        noise += e * e;
        beyond += e > tolerance * range;
    }
    f.range = range;
    f.max_rel = f.max_abs == 0 ? 0 : range > 0 ? f.max_abs / range : 1;
    if (noise > 0 && signal > 0) f.snr_db = 10 * log10(signal / noise);
    f.over_tolerance = n ? (double)beyond / (double)n : 0;
    return f;
}

static double error_metrics_larger(double a, double b)
{
    return a > b ? a : b;
}

prony_error_metrics prn_error_worse(const prony_error_metrics *a, const prony_error_metrics *b)
{
    if (!a->known || !b->known) return a->known ? *a : *b;
    const uint64_t n = a->elements + b->elements;
    return (prony_error_metrics){
        .known = true,
        .elements = n,
        .nonfinite = a->nonfinite + b->nonfinite,
        .max_abs = error_metrics_larger(a->max_abs, b->max_abs),
        .max_rel = error_metrics_larger(a->max_rel, b->max_rel),
        .range = error_metrics_larger(a->range, b->range),
        .ulp = error_metrics_larger(a->ulp, b->ulp),
        .snr_db = isnan(a->snr_db) || b->snr_db < a->snr_db ? b->snr_db : a->snr_db,
        .over_tolerance =
            n ? (a->over_tolerance * (double)a->elements + b->over_tolerance * (double)b->elements) / (double)n : 0};
}
