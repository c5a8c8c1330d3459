/* Statistics of times in integer nanoseconds.
 *
 * Quantiles are nearest-rank: the smallest sample with at least that share of the samples at or below it. The median of
 * an even number of samples is the mean of the two in the middle. The standard deviation is that of a sample (n - 1).
 *
 * The interval of the median is a percentile bootstrap of blocks of samples (resampling.c). Above BOOTSTRAP_LARGEST
 * samples, where drawing would be too expensive, it is the order-statistic interval, to which the bootstrap converges,
 * widened by the samples' memory.
 */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest sample for the bootstrap; chosen without measurement. */
#define BOOTSTRAP_LARGEST 4096

static int times_compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static int64_t nearest_rank(const int64_t *sorted, size_t count, uint32_t permille)
{
    size_t whole = count / 1000 * permille, rest = count % 1000 * permille;
    size_t rank = whole + (rest + 999) / 1000;
    return sorted[rank > 0 ? rank - 1 : 0];
}

static int64_t times_middle(int64_t low, int64_t high)
{
    return low + (high - low) / 2;
}

static int64_t median_of_sorted(const int64_t *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : times_middle(sorted[count / 2 - 1], sorted[count / 2]);
}

static void moments(prony_time_stats *out, const int64_t *samples, size_t count)
{
    __int128 sum = 0;
    for (size_t i = 0; i < count; i++) sum += samples[i];
    __int128 half = (__int128)(count / 2);
    out->mean_ns = (int64_t)((sum + (sum < 0 ? -half : half)) / (__int128)count);
    double mean = (double)sum / (double)count, squares = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)samples[i] - mean;
        squares += d * d;
    }
    out->std_ns = count > 1 ? llround(sqrt(squares / (double)(count - 1))) : 0;
}

/* 1-based rank k such that [x(k), x(n + 1 - k)] covers the median with 95 %: the largest with P(Bin(n, 1/2) < k) <= 2.5
 * %; exact up to 64 samples, above by the normal approximation. Below 6 samples no rank suffices, and the result is
 * 1. */
static size_t median_interval_rank(size_t count)
{
    if (count > 64) {
        double rank = floor(((double)count - 1.959963984540054 * sqrt((double)count)) / 2);
        return rank < 1 ? 1 : (size_t)rank;
    }
    double term = ldexp(1.0, -(int)count), below = term;
    size_t rank = 0;
    while (below <= 0.025) {
        rank++;
        term *= (double)(count - rank + 1) / (double)rank;
        below += term;
    }
    return rank < 1 ? 1 : rank;
}

void prn_stats_median_interval(const int64_t *sorted, size_t count, int64_t interval[2])
{
    interval[0] = interval[1] = 0;
    if (count == 0) return;
    size_t rank = median_interval_rank(count);
    interval[0] = sorted[rank - 1];
    interval[1] = sorted[count - rank];
}

/* By bootstrap of blocks; for many samples by order statistics, widened by their memory. */
static prony_status times_median_interval(prony_time_stats *out, const int64_t *samples, const int64_t *sorted,
                                          prony_error *error)
{
    size_t count = out->count;
    if (count <= BOOTSTRAP_LARGEST) {
        double intervals[PRN_STATISTIC_COUNT][2];
        PRN_TRY(prn_times_intervals(intervals, 0.95, (prn_times){.samples = samples, .count = count}, NULL, error));
        const double *interval = intervals[PRN_STATISTIC_MEDIAN];
        out->median_ci95_ns[0] = interval[0] > (double)out->min_ns ? (int64_t)floor(interval[0]) : out->min_ns;
        out->median_ci95_ns[1] = interval[1] < (double)out->max_ns ? (int64_t)floor(interval[1]) : out->max_ns;
        return PRONY_OK;
    }
    double memory;
    PRN_TRY(prn_series_memory(&memory, samples, count, error));
    double bound = prn_student_bound(0.05, fmax(1, (double)count / memory - 1));
    double rank = floor(((double)count - bound * sqrt((double)count * memory)) / 2);
    size_t low = rank < 1 ? 1 : (size_t)rank;
    out->median_ci95_ns[0] = sorted[low - 1];
    out->median_ci95_ns[1] = sorted[count - low];
    return PRONY_OK;
}

/* A quantile is valid if there are enough runs for a 99 % bound on it. Without `interval` the median's is by order
 * statistics. */
prony_status prn_stats_compute(prony_time_stats *out, const int64_t *samples, size_t count, bool interval,
                               prony_error *error)
{
    *out = (prony_time_stats){.count = count};
    if (count == 0) return PRONY_OK;
    int64_t *sorted = prn_realloc(NULL, count, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, times_compare);
    moments(out, samples, count);
    out->min_ns = sorted[0];
    out->max_ns = sorted[count - 1];
    out->median_ns = median_of_sorted(sorted, count);
    out->p50_ns = nearest_rank(sorted, count, 500);
    out->p90_ns = nearest_rank(sorted, count, 900);
    out->p95_ns = nearest_rank(sorted, count, 950);
    out->p99_ns = nearest_rank(sorted, count, 990);
    out->p999_ns = nearest_rank(sorted, count, 999);
    out->p90_valid = count >= 64;
    out->p95_valid = count >= 130;
    out->p99_valid = count >= 662;
    out->p999_valid = count >= 6636;
    prony_status status = interval ? times_median_interval(out, samples, sorted, error) : PRONY_OK;
    if (!interval) prn_stats_median_interval(sorted, count, out->median_ci95_ns);
    prn_free(sorted);
    return status;
}

prony_status prony_time_stats_compute(prony_time_stats *out, const int64_t *samples_ns, size_t count,
                                      prony_error *error)
{
    if (!out || (!samples_ns && count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_time_stats_compute: an argument is NULL");
    return prn_stats_compute(out, samples_ns, count, true, error);
}
