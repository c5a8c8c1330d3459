/* Statistics of times and of thread scaling. Pure; deterministic (everything drawn at random has a fixed seed); working
 * memory ends with each call.
 *
 * Bootstraps draw independent units. Runs of one process resemble their neighbours, so circular blocks as long as the
 * series' memory are drawn (prn_series_memory); of several processes, whole processes. Intervals are percentiles of the
 * resamples. With few independent units they are taken further out (T. C. Hesterberg, 2015), because percentiles of few
 * are too narrow. */
#ifndef PRN_PROFILER_STATISTICS_STATISTICS_H
#define PRN_PROFILER_STATISTICS_STATISTICS_H

#include "base/status.h"
#include "prony_report.h"

/* ---- times.c: a set of times ---- */

/* `samples` in order of time, untouched. */
PRN_MUST_USE prony_status prn_stats_compute(prony_time_stats *out, const int64_t *samples, size_t count, bool interval,
                                            prony_error *error);
/* Order-statistic (binomial) 95 % interval of the median; cheap enough to compute after every run. `sorted` ascending.
 */
void prn_stats_median_interval(const int64_t *sorted, size_t count, int64_t interval[2]);
double prn_median(double *values, size_t count); /* sorts them; 0 of none */
/* For qsort, ascending. */
int prn_compare_doubles(const void *left, const void *right);
int prn_compare_i64(const void *left, const void *right);

/* ---- draws.c ---- */

size_t prn_random_below(uint64_t *state, size_t bound);
/* Uniform in (0, 1); standard normal. */
double prn_random_unit(uint64_t *state);
double prn_random_normal(uint64_t *state);

/* ---- series.c: values in order of time ---- */

/* Steady state: true once the last windows of `samples` show no further downward trend. */
bool prn_stats_warm(const int64_t *samples, size_t count);
/* The number of neighbours that equal one independent value: integrated autocorrelation time of the ranks, by C. J.
 * Geyer's initial positive sequence (1992). The series equals count / memory independent values. 1 … count; drift and
 * bursts make it long. */
PRN_MUST_USE prony_status prn_series_memory(double *memory, const int64_t *samples, size_t count, prony_error *error);
/* Two-sided p of the Mann-Kendall test for a trend. Quadratic: for some hundred points. */
double prn_trend_p(const int64_t *points, size_t count);
/* Lasting changes of level, ascending: indices of the first value of each new level. Binary segmentation by the CUSUM
 * of ranks; a change counts if it is significant at 1 %, given the memory of the series, and moves the median by more
 * than `least` of it. At most `capacity`; *found is their number. */
PRN_MUST_USE prony_status prn_change_points(size_t *at, size_t capacity, size_t *found, const int64_t *samples,
                                            size_t count, double least, prony_error *error);

/* ---- levels.c: independent values in order of time ---- */

/* Share of series without a change in which prn_level_changes finds one, at most. */
#define PRN_LEVEL_FALSE_ALARMS 0.046
/* Values of the shortest piece: fewer are outliers. */
enum { PRN_LEVEL_FEWEST = 3 };
/* Lasting changes of level, ascending: indices of the first value of each new level (E-divisive). At most the
 * `capacity` newest; *found is their number. Quadratic, times 499 permutations: for some hundred values. */
PRN_MUST_USE prony_status prn_level_changes(size_t *at, size_t capacity, size_t *found, const double *values,
                                            size_t count, prony_error *error);

/* Values from `begin` up to `end`: about one level, or along a line (a drift). */
typedef struct prn_level_piece {
    size_t begin, end;
    bool drift;
    double first, last; /* of the fitted level or line, at both ends */
    double slope;       /* per value; 0: constant */
    double spread;      /* robust standard deviation around it */
} prn_level_piece;
enum { PRN_LEVEL_PIECES = 64 };
/* The pieces between the changes. Neighbours that one line fits better than levels (BIC under Laplace noise) are one
 * piece, a drift. */
PRN_MUST_USE prony_status prn_level_pieces(prn_level_piece pieces[PRN_LEVEL_PIECES], size_t *count,
                                           const double *values, size_t n, prony_error *error);

/* ---- distributions.c ---- */

/* P(|T| >= |t|) for Student's t. */
double prn_student_p(double t, double degrees);
/* The t that |T| exceeds with probability `p`. */
double prn_student_bound(double p, double degrees);
double prn_normal_below(double z);
/* Adjusts the p-values of `count` simultaneous tests (Holm). NaN stays. */
PRN_MUST_USE prony_status prn_holm_adjust(double *p, size_t count, prony_error *error);

/* ---- ranks.c ---- */

typedef struct prn_rank_test {
    double u;   /* of the first sample: pairs in which it is the larger one, ties by half */
    double p;   /* two-sided */
    bool exact; /* by counting; else the normal approximation, corrected for ties and continuity */
} prn_rank_test;

/* Mann and Whitney's test; exact if one sample has at most 8 values and all values differ. An empty sample: p = 1.
 * `first_memory` and `second_memory` (1: independent values) widen the variance of U and make the approximation
 * Student's. */
PRN_MUST_USE prony_status prn_rank_test_compute(prn_rank_test *out, const double *first, size_t first_count,
                                                double first_memory, const double *second, size_t second_count,
                                                double second_memory, prony_error *error);

/* ---- resampling.c ---- */

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

/* Share of the resamples below the interval's lower end, for `pieces` independent units and this confidence.
 */
double prn_interval_tail(double confidence, double pieces);
/* The interval's ends among `count` values, which this sorts; infinite if `count` is 0. */
void prn_interval_of(double interval[2], double *values, size_t count, double tail);

/* Times in order: of one process, or of several one after the other. */
typedef struct prn_times {
    const int64_t *samples;
    size_t count;
    const uint64_t *process_runs; /* [processes], none 0; their sum is `count`. NULL: one process */
    size_t processes;
} prn_times;
/* Fewest processes for which bootstraps draw processes instead of runs. */
#define PRN_FEWEST_PROCESSES 4

/* Intervals of the statistics of one sample (second NULL, of the values themselves) or of their ratios, second over
 * first. None empty. With 4 processes or more, whole processes are drawn. With fewer, blocks of runs are drawn as one
 * series; that omits the deviation between processes, which prn_interval_widen adds. Times of 0 give infinite ends of
 * ratios. */
PRN_MUST_USE prony_status prn_times_intervals(double intervals[PRN_STATISTIC_COUNT][2], double confidence,
                                              prn_times first, const prn_times *second, prony_error *error);

/* Relative standard deviation between medians of processes of one model, each measured for a moment. Causes are the
 * position of memory and other users of the machine. 40 processes of each of three models (a run taking 0.3 us, 25 us
 * and 5 ms) on a shared virtual machine had 2.7, 3.3 and 3.4 %, 4.2 % at most by robust estimates; sessions in one
 * process showed 1.5 % of it. */
#define PRN_PROCESS_DEVIATION 0.04
/* The deviation of the difference between two samples, or of one sample (second NULL), if a sample has fewer than 4
 * processes and their scatter is unknown; otherwise 0. */
double prn_process_deviation(prn_times first, const prn_times *second);
/* Adds an independent source of scatter to an interval around `middle`: `deviation` is relative, for this
 * confidence. */
void prn_interval_widen(double interval[2], double middle, double confidence, double deviation);

/* Values of independent processes. */
typedef struct prn_processes {
    const double *values;
    size_t count;
} prn_processes;
/* Median of the processes' values and its 95 % interval; with `base` the ratio base / of (a speed-up, of times). An
 * interval of fewer than 3 processes is infinite. */
PRN_MUST_USE prony_status prn_process_interval(double *value, double interval[2], prn_processes of,
                                               const prn_processes *base, prony_error *error);

/* Median of the groups' medians and its 95 % interval, which draws groups and then values within each group drawn (a
 * two-level bootstrap). Of fewer than `fewest_groups` groups it draws values alone. Empty groups are left out; an
 * interval of fewer than 3 values is infinite. */
PRN_MUST_USE prony_status prn_grouped_interval(double *value, double interval[2], const prn_processes *groups,
                                               size_t count, size_t fewest_groups, prony_error *error);

typedef enum prn_sameness { PRN_SAME, PRN_DIFFERENT, PRN_CANNOT_TELL } prn_sameness;

typedef struct prn_process_test {
    double ratio, interval[2]; /* second over first, of the processes' medians; 95 % */
    double interval90[2];
    double p; /* of the rank test */
    prn_sameness verdict;
} prn_process_test;

/* Tests if two sets of processes measured the same. Different: the rank test rejects equality at 5 % and the whole
 * interval of the ratio is beyond 1 +- `noise`. Same, within `equal`: two one-sided tests at 5 % find the ratio above 1
 * / (1 + `equal`) and below 1 + `equal`; that is, the whole 90 % interval lies between (D. J. Schuirmann, 1987).
 * Otherwise inconclusive. */
PRN_MUST_USE prony_status prn_process_compare(prn_process_test *out, prn_processes first, prn_processes second,
                                              double noise, double equal, prony_error *error);

/* ---- moments.c: tests on moments alone ---- */

typedef struct prn_moments {
    double mean, std, count;
} prn_moments;

/* Welch's t test, two-sided; NaN if a sample has fewer than two values. */
double prn_welch_p(prn_moments first, prn_moments second);
/* 95 % interval of the ratio of the means, by the variance of its logarithm; NaN as above, or if a mean is not
 * positive. */
void prn_welch_ratio_interval(double interval[2], prn_moments first, prn_moments second);

/* ---- scaling_fits.c: laws of scaling ---- */

/* The serial fraction that a speed-up on n > 1 threads shows (A. H. Karp and H. P. Flatt, 1990). Negative: more than n.
 */
double prn_karp_flatt(double speedup, double threads);

typedef enum prn_law {
    PRN_LAW_AMDAHL,    /* X(n) = g n / (1 + a (n - 1)) */
    PRN_LAW_GUSTAFSON, /* X(n) = g (n - a (n - 1)), work growing with n */
    PRN_LAW_USL        /* X(n) = g n / (1 + a (n - 1) + b n (n - 1)), N. J. Gunther */
} prn_law;

typedef struct prn_law_fit {
    bool known;         /* there were enough points: one more than the law has parameters */
    double scale;       /* g: throughput of one thread */
    double alpha, beta; /* contention or serial fraction; coherency (0 but for the USL) */
    double alpha_ci95[2], beta_ci95[2];
    double rms;  /* of the residuals, relative to the points */
    double peak; /* threads of the largest throughput; infinite: it only grows; NaN: a law without one */
    double peak_ci95[2];
    double limit; /* largest speed-up that the law allows; infinite: not bounded */
} prn_law_fit;

/* Fewest distinct thread counts for a fit: the law's parameters and one more. */
size_t prn_law_points(prn_law law);
double prn_law_speedup(prn_law law, const prn_law_fit *fit, double threads);
/* Least squares of relative residuals, parameters not below 0. Equal thread counts are one point. Intervals are not
 * set. */
void prn_law_fit_points(prn_law_fit *out, prn_law law, const double *threads, const double *throughput, size_t count);
/* The fit to medians, with intervals by drawing processes; throughput[i]: the processes at threads[i].
 */
PRN_MUST_USE prony_status prn_law_fit_processes(prn_law_fit *out, prn_law law, const double *threads,
                                                const prn_processes *throughput, size_t count, prony_error *error);

#endif
