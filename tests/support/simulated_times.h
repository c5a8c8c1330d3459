/* Simulated times of a shared machine, from a fixed seed: every run resembles the one before, the level drifts, and
 * other processes come in bursts. */
#ifndef PRN_TESTS_SUPPORT_SIMULATED_TIMES_H
#define PRN_TESTS_SUPPORT_SIMULATED_TIMES_H

#include "profiler/statistics/statistics.h"

#include <math.h>

typedef struct simulated_noise {
    double white, wander, keep; /* relative deviations; share of the wander that a run keeps from the one before */
    double drift;               /* largest relative drift over the whole series; drawn for each */
    double burst; /* probability that a burst begins with a run; it lasts about 15 runs and costs up to 40 % */
} simulated_noise;

static inline void simulate_times(int64_t *samples, size_t count, double median_ns, const simulated_noise *noise,
                                  uint64_t *random)
{
    double wander = prn_random_normal(random), slope = noise->drift * (2 * prn_random_unit(random) - 1), burst = 0;
    for (size_t i = 0; i < count; i++) {
        double at = (double)i / (double)count - 0.5;
        wander = noise->keep * wander + sqrt(1 - noise->keep * noise->keep) * prn_random_normal(random);
        if (burst > 0 && prn_random_unit(random) < 1.0 / 15) burst = 0;
        if (!(burst > 0) && prn_random_unit(random) < noise->burst) burst = 0.4 * prn_random_unit(random);
        double factor = 1 + noise->white * prn_random_normal(random) + noise->wander * wander + slope * at + burst;
        samples[i] = (int64_t)(median_ns * fmax(factor, 0.2));
    }
}

#endif
