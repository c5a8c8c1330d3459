/* Verdicts on differences, and the test for equally busy machines. */
#include "profiler/compare/comparison.h"

#include <math.h>

/* Largest difference in others' share or waiting for two equally busy machines. Chosen without measurement. */
#define LOAD_DIFFERENCE 0.1

prony_verdict prn_verdict_of(prony_direction direction, double low, double high, double noise)
{
    bool up = low > 1 + noise, down = high < 1 - noise;
    if (direction == PRONY_NO_DIRECTION) return PRONY_VERDICT_NONE;
    if (!up && !down) return PRONY_VERDICT_SAME;
    return up == (direction == PRONY_LARGER_IS_BETTER) ? PRONY_VERDICT_BETTER : PRONY_VERDICT_WORSE;
}

prony_verdict prn_verdict_on_times(prn_comparing *c, prony_direction direction, double ratio, double interval[2],
                                   double deviation)
{
    prony_verdict shown = prn_verdict_of(direction, interval[0], interval[1], c->noise);
    prn_interval_widen(interval, ratio, 1 - PRN_COMPARE_ALPHA, deviation);
    prony_verdict verdict = prn_verdict_of(direction, interval[0], interval[1], c->noise);
    if (verdict != shown) {
        c->withheld++;
        return PRONY_VERDICT_UNSURE;
    }
    bool told = verdict == PRONY_VERDICT_BETTER || verdict == PRONY_VERDICT_WORSE;
    return c->loads_differ && told ? PRONY_VERDICT_UNSURE : verdict;
}

static double known_share(double share)
{
    return share > 0 ? share : 0;
}

bool prn_loads_differ(const prony_report *a, const prony_report *b)
{
    const prn_disturbance *x = &a->disturbance, *y = &b->disturbance;
    if (!a->has_disturbance || !b->has_disturbance) return false;
    if (x->verdict != PRN_LOAD_BUSY && y->verdict != PRN_LOAD_BUSY) return false;
    return x->verdict != y->verdict || fabs(known_share(x->others) - known_share(y->others)) > LOAD_DIFFERENCE ||
           fabs(known_share(x->waited) - known_share(y->waited)) > LOAD_DIFFERENCE;
}
