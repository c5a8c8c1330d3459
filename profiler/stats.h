/* Statistics of a set of times. Pure; deterministic (the bootstrap has a fixed seed). */
#ifndef PRN_PROFILER_STATS_H
#define PRN_PROFILER_STATS_H

#include "base/status.h"

/* `samples` in order of time, untouched. */
PRN_MUST_USE prony_status prn_stats_compute(prony_time_stats *out, const int64_t *samples, size_t count, bool interval,
                                            prony_error *error);

/* Order-statistic (binomial) 95 % interval of the median: cheap enough to be asked after every run. `sorted` ascending. */
void prn_stats_median_interval(const int64_t *sorted, size_t count, int64_t interval[2]);

/* Steady state: true once the last windows of `samples` show no further downward trend. */
bool prn_stats_warm(const int64_t *samples, size_t count);

#endif
