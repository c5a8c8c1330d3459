/* Statistics of times in integer nanoseconds.
 *
 * Quantiles are nearest-rank: the smallest sample with at least that share of the samples at or below it. The median of
 * an even number of samples is the mean of the two in the middle. The standard deviation is that of a sample (n - 1).
 *
 * The interval of the median is a percentile bootstrap: RESAMPLES draws with replacement, from one fixed seed. Above
 * BOOTSTRAP_LARGEST samples, where drawing would cost more than it tells, it is the order-statistic interval, to which
 * the bootstrap converges. Owns nothing; a call's working memory ends with it.
 */
#include "profiler/stats.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES 2000
#define BOOTSTRAP_LARGEST 4096
#define BOOTSTRAP_SEED 0x50524f4e59U

static int compare_times(const void *left, const void *right)
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

static int64_t middle(int64_t low, int64_t high)
{
    return low + (high - low) / 2;
}

static int64_t median_of_sorted(const int64_t *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : middle(sorted[count / 2 - 1], sorted[count / 2]);
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
 * %; exact up to 64 samples, above by the normal approximation. Below 6 samples no rank does, and 1 is the best there
 * is. */
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

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

/* Median of one resample, from how often each sample was drawn: no sorting needed. */
static int64_t resampled_median(const int64_t *sorted, size_t count, uint32_t *drawn, uint64_t *random)
{
    memset(drawn, 0, count * sizeof *drawn);
    for (size_t i = 0; i < count; i++) drawn[((next_random(random) >> 32) * count) >> 32]++;
    size_t low_rank = (count - 1) / 2, high_rank = count / 2, seen = 0, i = 0;
    while (seen + drawn[i] <= low_rank) seen += drawn[i++];
    int64_t low = sorted[i];
    while (seen + drawn[i] <= high_rank) seen += drawn[i++];
    return middle(low, sorted[i]);
}

static prony_status bootstrap(const int64_t *sorted, size_t count, int64_t interval[2], prony_error *error)
{
    uint32_t *drawn = prn_calloc(count, sizeof *drawn);
    int64_t *medians = prn_calloc(RESAMPLES, sizeof *medians);
    prony_status status = drawn && medians ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) {
        uint64_t random = BOOTSTRAP_SEED;
        for (size_t r = 0; r < RESAMPLES; r++) medians[r] = resampled_median(sorted, count, drawn, &random);
        qsort(medians, RESAMPLES, sizeof *medians, compare_times);
        interval[0] = nearest_rank(medians, RESAMPLES, 25);
        interval[1] = nearest_rank(medians, RESAMPLES, 975);
    }
    prn_free(drawn);
    prn_free(medians);
    return status;
}

prony_status prn_stats_compute(prony_time_stats *out, const int64_t *samples, size_t count, bool interval,
                               prony_error *error)
{
    *out = (prony_time_stats){.count = count};
    if (count == 0) return PRONY_OK;
    int64_t *sorted = prn_realloc(NULL, count, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_times);
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
    prony_status status = PRONY_OK;
    if (interval && count <= BOOTSTRAP_LARGEST)
        status = bootstrap(sorted, count, out->median_ci95_ns, error);
    else
        prn_stats_median_interval(sorted, count, out->median_ci95_ns);
    prn_free(sorted);
    return status;
}

#define WINDOW_LARGEST 30
#define WINDOW_SMALLEST 6

static int64_t median_of(const int64_t *samples, size_t count)
{
    int64_t sorted[WINDOW_LARGEST];
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_times);
    return median_of_sorted(sorted, count);
}

/* Two windows, the older and the newer half of the last samples: still warming if the medians fell by more than 1 % and
 * the Mann-Kendall statistic over both calls the fall significant (one-sided, 5 %). */
bool prn_stats_warm(const int64_t *samples, size_t count)
{
    if (count < WINDOW_SMALLEST) return false;
    size_t n = count < WINDOW_LARGEST ? count : WINDOW_LARGEST;
    const int64_t *last = samples + (count - n);
    int rises = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) rises += (last[j] > last[i]) - (last[j] < last[i]);
    double size = (double)n, deviation = sqrt(size * (size - 1) * (2 * size + 5) / 18);
    if ((double)rises >= -1.6448536269514722 * deviation) return true;
    double older = (double)median_of(last, n / 2), newer = (double)median_of(last + n - n / 2, n / 2);
    return newer >= older * 0.99;
}

prony_status prony_time_stats_compute(prony_time_stats *out, const int64_t *samples_ns, size_t count, prony_error *error)
{
    if (!out || (!samples_ns && count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_time_stats_compute: an argument is NULL");
    return prn_stats_compute(out, samples_ns, count, true, error);
}
