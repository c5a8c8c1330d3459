/* Values in order of time: memory, drift, changes of level, steady state. */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SERIES_POINTS 2048 /* for correlations; more values are replaced by means of equal stretches */
#define SHORT_SERIES 4
#define WINDOWS 7         /* windows for the memory beside a change */
#define FEWEST_CHANGED 10 /* values on each side of a change */

typedef struct ranked_value {
    int64_t value;
    size_t when;
} ranked_value;

static int compare_values(const void *left, const void *right)
{
    const ranked_value *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return (a->when > b->when) - (a->when < b->when);
}

/* Ranks about their mean, in order of time; equal values share theirs. */
static bool rank_series(double *ranks, const int64_t *samples, size_t count)
{
    ranked_value *sorted = prn_calloc(count + 1, sizeof *sorted);
    if (!sorted) return false;
    for (size_t i = 0; i < count; i++) sorted[i] = (ranked_value){samples[i], i};
    qsort(sorted, count, sizeof *sorted, compare_values);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin; end < count && sorted[end].value == sorted[begin].value; end++) {
        }
        double rank = ((double)begin + (double)end - (double)count) / 2;
        for (size_t i = begin; i < end; i++) ranks[sorted[i].when] = rank;
    }
    prn_free(sorted);
    return true;
}

static double mean_square(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += values[i] * values[i];
    return count ? sum / (double)count : 0;
}

static double covariance(const double *values, size_t count, size_t lag)
{
    double sum = 0;
    for (size_t i = lag; i < count; i++) sum += values[i] * values[i - lag];
    return sum / (double)count;
}

/* 1 + 2 sum of the correlations; pairs of lags count while they are positive, each at most as much as the pair
 * before. */
static double memory_of(const double *values, size_t count)
{
    double variance = covariance(values, count, 0), sum = 0, before = INFINITY;
    if (variance <= 0) return 1;
    for (size_t lag = 0; lag + 1 < count; lag += 2) {
        double pair = covariance(values, count, lag) + covariance(values, count, lag + 1);
        if (pair <= 0) break;
        before = fmin(before, pair);
        sum += before;
    }
    return 2 * sum / variance - 1;
}

prony_status prn_series_memory(double *memory, const int64_t *samples, size_t count, prony_error *error)
{
    *memory = 1;
    if (count < 4) return PRONY_OK;
    double *ranks = prn_calloc(count, sizeof *ranks);
    if (!ranks || !rank_series(ranks, samples, count)) {
        prn_free(ranks);
        return prn_no_memory(error);
    }
    size_t points = count < SERIES_POINTS ? count : SERIES_POINTS;
    double all = mean_square(ranks, count), stretch = (double)count / (double)points;
    for (size_t p = 0; p < points && points < count; p++) {
        size_t begin = count * p / points, end = count * (p + 1) / points;
        double sum = 0;
        for (size_t i = begin; i < end; i++) sum += ranks[i];
        ranks[p] = sum / (double)(end - begin);
    }
    /* The variance of a mean of stretches is that of a stretch's mean, times its memory, over their number. */
    if (all > 0) *memory = memory_of(ranks, points) * stretch * mean_square(ranks, points) / all;
    /* A short series underestimates its memory, because its own mean follows it. */
    *memory *= 1 + SHORT_SERIES * (*memory - 1) / (double)count;
    *memory = fmin(fmax(*memory, 1), (double)count);
    prn_free(ranks);
    return PRONY_OK;
}

/* ---- trends ---- */

static int64_t rises_of(const int64_t *points, size_t count)
{
    int64_t rises = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) rises += (points[j] > points[i]) - (points[j] < points[i]);
    return rises;
}

static double rises_deviation(size_t count)
{
    double n = (double)count;
    return sqrt(n * (n - 1) * (2 * n + 5) / 18);
}

double prn_trend_p(const int64_t *points, size_t count)
{
    if (count < 3) return 1;
    int64_t rises = rises_of(points, count);
    double z = rises == 0 ? 0 : ((double)rises + (rises > 0 ? -1 : 1)) / rises_deviation(count);
    return erfc(fabs(z) / sqrt(2.0));
}

/* Runs per window of the warm-up test; chosen without measurement. */
#define WINDOW_LARGEST 30
#define WINDOW_SMALLEST 6

static double series_median_of(const int64_t *samples, size_t count)
{
    double values[WINDOW_LARGEST];
    for (size_t i = 0; i < count; i++) values[i] = (double)samples[i];
    return floor(prn_median(values, count));
}

/* Two windows, the older and the newer half of the last samples: still warming if the medians fell by more than 1 % and
 * the Mann-Kendall statistic over both calls the fall significant (one-sided, 5 %). */
bool prn_stats_warm(const int64_t *samples, size_t count)
{
    if (count < WINDOW_SMALLEST) return false;
    size_t n = count < WINDOW_LARGEST ? count : WINDOW_LARGEST;
    const int64_t *last = samples + (count - n);
    if ((double)rises_of(last, n) >= -1.6448536269514722 * rises_deviation(n)) return true;
    return series_median_of(last + n - n / 2, n / 2) >= series_median_of(last, n / 2) * 0.99;
}

/* ---- changes ---- */

typedef struct changes {
    const int64_t *samples;
    double *ranks, *room;
    double least, memory;
    size_t *at, capacity, found;
} changes;

static double level(const changes *c, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) c->room[i - begin] = (double)c->samples[i];
    return prn_median(c->room, end - begin);
}

/* The CUSUM's largest excursion, relative to its scatter without a change, follows the Kolmogorov distribution. */
static size_t strongest(const changes *c, size_t begin, size_t end, double *excursion)
{
    double mean = 0, square = 0, sum = 0, n = (double)(end - begin);
    size_t best = begin;
    for (size_t i = begin; i < end; i++) mean += c->ranks[i] / n;
    for (size_t i = begin; i < end; i++) square += (c->ranks[i] - mean) * (c->ranks[i] - mean);
    *excursion = 0;
    for (size_t i = begin; i < end; i++) {
        sum += c->ranks[i] - mean;
        if (fabs(sum) <= *excursion || i + 1 - begin < FEWEST_CHANGED || end - i - 1 < FEWEST_CHANGED) continue;
        *excursion = fabs(sum);
        best = i + 1;
    }
    *excursion = square > 0 ? *excursion / sqrt(square) : 0;
    return best;
}

static void split(changes *c, size_t begin, size_t end, int depth)
{
    double excursion;
    if (end - begin < 2 * FEWEST_CHANGED || depth == 0) return;
    size_t at = strongest(c, begin, end, &excursion);
    if (excursion < 1.628 * sqrt(c->memory) || at == begin) return; /* 1 % of Kolmogorov's distribution */
    double before = level(c, begin, at), after = level(c, at, end);
    if (fabs(after - before) <= c->least * before) return;
    split(c, begin, at, depth - 1);
    if (c->found < c->capacity) c->at[c->found++] = at;
    split(c, at, end, depth - 1);
}

/* The median of the memories within windows: over the whole series a change would look like memory. */
static prony_status memory_of_windows(changes *c, size_t count, prony_error *error)
{
    double memories[WINDOWS];
    for (size_t w = 0; w < WINDOWS; w++) {
        size_t begin = count * w / WINDOWS, end = count * (w + 1) / WINDOWS;
        PRN_TRY(prn_series_memory(&memories[w], c->samples + begin, end - begin, error));
    }
    c->memory = prn_median(memories, WINDOWS);
    return PRONY_OK;
}

prony_status prn_change_points(size_t *at, size_t capacity, size_t *found, const int64_t *samples, size_t count,
                               double least, prony_error *error)
{
    *found = 0;
    if (count < 2 * FEWEST_CHANGED) return PRONY_OK;
    changes c = {.samples = samples, .least = least, .at = at, .capacity = capacity};
    c.ranks = prn_calloc(count, sizeof *c.ranks);
    c.room = prn_calloc(count, sizeof *c.room);
    prony_status status = c.ranks && c.room && rank_series(c.ranks, samples, count) ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK) status = memory_of_windows(&c, count, error);
    if (status == PRONY_OK) split(&c, 0, count, 8);
    *found = c.found;
    prn_free(c.ranks);
    prn_free(c.room);
    return status;
}
