/* Ranges from elements. A percentile and the entropy go by histograms of sizes, |x|: what they cut off is the same on
 * both sides of zero. */
#include "quantize/calibration.h"

#include <math.h>
#include <string.h>

enum { LEVELS = 128 }; /* of sizes that 8 bits tell apart */

bool prn_observe_range(prn_observed *o, const float *x, int64_t count)
{
    float low = (float)o->low, high = (float)o->high, odd = 0;
    for (int64_t i = 0; i < count; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        odd += x[i] * 0.0f; /* stays 0 as long as all are finite */
    }
    if (odd != 0) return false;
    o->low = (double)low;
    o->high = (double)high;
    return true;
}

void prn_observe_bins(prn_observed *o, const float *x, int64_t count)
{
    o->top = fmax(-o->low, o->high);
    const double per = o->top > 0 ? PRN_OBSERVED_BINS / o->top : 0;
    for (int64_t i = 0; i < count; i++) {
        const double at = fabs((double)x[i]) * per;
        o->bins[at < PRN_OBSERVED_BINS ? (size_t)at : PRN_OBSERVED_BINS - 1]++;
    }
}

static double percentile(const prn_observed *o, double share)
{
    uint64_t total = 0, seen = 0;
    for (size_t i = 0; i < PRN_OBSERVED_BINS; i++) total += o->bins[i];
    for (size_t i = 0; i < PRN_OBSERVED_BINS; i++) {
        seen += o->bins[i];
        if ((double)seen >= share * (double)total) return o->top * (double)(i + 1) / PRN_OBSERVED_BINS;
    }
    return o->top;
}

/* The divergence of what is left of the first `kept` bins, in LEVELS levels, from what they hold and, in the last one,
 * all behind them. */
static double divergence(const uint64_t *bins, size_t kept, double total, double beyond)
{
    double sum = 0, model = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t level = 0; level < LEVELS; level++) {
            const size_t from = level * kept / LEVELS, to = (level + 1) * kept / LEVELS;
            double held = 0;
            size_t used = 0;
            for (size_t i = from; i < to; i++) {
                held += (double)bins[i];
                used += bins[i] != 0;
            }
            if (pass == 0) model += held;
            for (size_t i = from; pass == 1 && used && i < to; i++) {
                const double p = ((double)bins[i] + (i + 1 == kept ? beyond : 0)) / total;
                if (bins[i]) sum += p * log(p / (held / (double)used / model));
            }
        }
        if (pass == 0 && model <= 0) return INFINITY;
    }
    /* Elements beyond a last bin that holds none have no place in the model at all. */
    return beyond > 0 && !bins[kept - 1] ? INFINITY : sum;
}

static double least_divergence(const prn_observed *o)
{
    double total = 0, inside = 0, least = INFINITY;
    size_t best = PRN_OBSERVED_BINS;
    for (size_t i = 0; i < PRN_OBSERVED_BINS; i++) total += (double)o->bins[i];
    for (size_t i = 0; i < LEVELS; i++) inside += (double)o->bins[i];
    for (size_t kept = LEVELS; kept <= PRN_OBSERVED_BINS && total > 0; kept++) {
        const double found = divergence(o->bins, kept, total, total - inside);
        if (found < least) {
            least = found;
            best = kept;
        }
        if (kept < PRN_OBSERVED_BINS) inside += (double)o->bins[kept];
    }
    return o->top * (double)best / PRN_OBSERVED_BINS;
}

void prn_observed_range(const prn_observed *o, prony_calibration_method method, double share, double *low, double *high)
{
    double top = INFINITY;
    if (method == PRONY_CALIBRATE_PERCENTILE) top = percentile(o, share);
    if (method == PRONY_CALIBRATE_ENTROPY) top = least_divergence(o);
    *low = fmax(fmin(o->low, 0), -top);
    *high = fmin(fmax(o->high, 0), top);
}
