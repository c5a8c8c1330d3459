/* Whether two sets of times differ. Pure; deterministic (the bootstrap has a fixed seed). Ratios are second over first. */
#ifndef PRN_PROFILER_SIGNIFICANCE_H
#define PRN_PROFILER_SIGNIFICANCE_H

#include "base/status.h"

typedef struct prn_rank_test {
    double u; /* of the first sample: pairs in which it is the larger one, ties by half */
    double p; /* two-sided */
    bool exact; /* by counting; else the normal approximation, corrected for ties and continuity */
} prn_rank_test;

/* Mann and Whitney's test; exact where one sample has at most 8 values and there are no ties. An empty sample: p = 1. */
PRN_MUST_USE prony_status prn_rank_test_compute(prn_rank_test *out, const double *first, size_t first_count,
                                                const double *second, size_t second_count, prony_error *error);

/* Of one sample of times, as prn_stats_compute defines them. */
typedef enum prn_statistic {
    PRN_STATISTIC_MEDIAN,
    PRN_STATISTIC_MEAN,
    PRN_STATISTIC_P90,
    PRN_STATISTIC_P95,
    PRN_STATISTIC_P99,
    PRN_STATISTIC_P999
} prn_statistic;
#define PRN_STATISTIC_COUNT 6

/* Percentile bootstrap, 95 %, of the ratio of each statistic. Samples in order of time, none empty: runs that follow one another
 * are drawn together (blocks of the cube root of their number), because what slows one run often slows the next. Times of 0
 * give infinite ends. */
PRN_MUST_USE prony_status prn_ratio_intervals(double intervals[PRN_STATISTIC_COUNT][2], const int64_t *first,
                                              size_t first_count, const int64_t *second, size_t second_count,
                                              prony_error *error);

/* What is left of a sample when only its moments are known. */
typedef struct prn_moments {
    double mean, std, count;
} prn_moments;

/* Welch's t test, two-sided; NaN where a sample has less than two values. */
double prn_welch_p(prn_moments first, prn_moments second);
/* 95 % interval of the ratio of the means, by the variance of its logarithm; NaN as above or where a mean is not positive. */
void prn_welch_ratio_interval(double interval[2], prn_moments first, prn_moments second);
/* P(|T| >= |t|) for Student's t. */
double prn_student_p(double t, double degrees);

/* Makes p-values of `count` questions asked at once those of the question whether any holds (Holm). NaN stays. */
PRN_MUST_USE prony_status prn_holm_adjust(double *p, size_t count, prony_error *error);

#endif
