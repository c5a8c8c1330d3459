/* The shape of the measured latencies: histogram, outliers, steady state. Quartiles are nearest-rank, like all
 * quantiles of a report. Reads the report only. */
#include "profiler/statistics/statistics.h"
#include "profiler/report/report.h"
#include "base/memory/row_block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BINS 100
#define FEWEST_SHOWN_BINS 5
#define MOST_SHOWN_BINS 60
#define FAR_RANGES 8   /* interquartile ranges above the upper quartile; runs beyond have no bins of their own */
#define FEWEST_RUNS 10 /* fewest runs for a trend test; chosen without measurement */
/* Tukey's fences, and Iglewicz and Hoaglin's bound (1993) on the modified z score. */
#define INNER_FENCE 1.5
#define OUTER_FENCE 3.0
#define MODIFIED_Z 3.5
/* All pairs are compared; for more runs than this, medians of equal stretches replace them. */
#define TREND_POINTS 400

static size_t runs_of(const prony_report *r)
{
    return r->measured && r->samples_ns ? (size_t)r->latency.count : 0;
}

static int64_t *sorted_samples(const prony_report *r)
{
    size_t runs = runs_of(r);
    int64_t *sorted = prn_calloc(runs + 1, sizeof *sorted);
    if (!sorted) return NULL;
    if (runs) memcpy(sorted, r->samples_ns, runs * sizeof *sorted);
    qsort(sorted, runs, sizeof *sorted, prn_compare_i64);
    return sorted;
}

/* Nearest rank, in quarters. */
static int64_t quartile(const int64_t *sorted, size_t count, size_t quarters)
{
    return sorted[(count * quarters + 3) / 4 - 1];
}

/* ---- histogram ---- */

/* Number of bins by their width: twice the interquartile range over the cube root of the number of runs. */
static size_t advised_bins(const int64_t *sorted, size_t count)
{
    double range = (double)(sorted[count - 1] - sorted[0]);
    double width = 2 * (double)(quartile(sorted, count, 3) - quartile(sorted, count, 1)) / cbrt((double)count);
    double bins = width > 0 ? ceil(range / width) : ceil(sqrt((double)count));
    return bins < 1 ? 1 : bins > MOST_BINS ? MOST_BINS : (size_t)bins;
}

/* Equal bins over `sorted`, the last one with its end. */
static void fill_bins(prony_histogram_bin *rows, size_t count, const int64_t *sorted, size_t runs)
{
    int64_t low = sorted[0], range = sorted[runs - 1] - low;
    for (size_t b = 0; b < count; b++) {
        rows[b].from_ns = low + (int64_t)((__int128)range * (int64_t)b / (int64_t)count);
        rows[b].to_ns = low + (int64_t)((__int128)range * (int64_t)(b + 1) / (int64_t)count);
    }
    for (size_t i = 0, b = 0; i < runs; i++) {
        while (b + 1 < count && sorted[i] >= rows[b].to_ns) b++;
        rows[b].count++;
    }
}

prony_status prony_report_histogram(prony_histogram_bin **rows, size_t *count, const prony_report *report, size_t bins,
                                    prony_error *error)
{
    if (!rows || !count || !report)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_histogram: an argument is NULL");
    if (bins > 100000) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%zu bins exceed the limit of 100000", bins);
    size_t runs = runs_of(report);
    if (!runs) return prn_fail(error, PRONY_UNSUPPORTED, "the report has no latencies");
    int64_t *sorted = sorted_samples(report);
    if (!sorted) return prn_no_memory(error);
    *count = bins ? bins : advised_bins(sorted, runs);
    *rows = prn_rows_create(*count, sizeof **rows);
    if (*rows) fill_bins(*rows, *count, sorted, runs);
    prn_free(sorted);
    return *rows ? PRONY_OK : prn_no_memory(error);
}

/* Number of runs, ascending, in the range shown by equal bins. */
static size_t runs_within(const int64_t *sorted, size_t runs)
{
    int64_t limit = sorted[(runs * 99 + 99) / 100 - 1], upper = quartile(sorted, runs, 3);
    double range = (double)(upper - quartile(sorted, runs, 1));
    if (range > 0 && (double)upper + FAR_RANGES * range < (double)limit) limit = upper + (int64_t)(FAR_RANGES * range);
    while (runs > 1 && sorted[runs - 1] > limit) runs--;
    return runs;
}

static size_t shown_bins(const int64_t *sorted, size_t runs, size_t within)
{
    double range = (double)(sorted[within - 1] - sorted[0]);
    double width = 2 * (double)(quartile(sorted, runs, 3) - quartile(sorted, runs, 1)) / cbrt((double)runs);
    double bins = width > 0 ? ceil(range / width) : FEWEST_SHOWN_BINS;
    return bins < FEWEST_SHOWN_BINS ? FEWEST_SHOWN_BINS : bins > MOST_SHOWN_BINS ? MOST_SHOWN_BINS : (size_t)bins;
}

prony_status prn_report_latency_bins(prony_histogram_bin **rows, size_t *count, bool *beyond,
                                     const prony_report *report, size_t bins, prony_error *error)
{
    size_t runs = runs_of(report);
    int64_t *sorted = sorted_samples(report);
    *rows = NULL;
    if (!sorted) return prn_no_memory(error);
    size_t within = runs_within(sorted, runs), inner = bins ? bins : shown_bins(sorted, runs, within);
    *beyond = within < runs;
    *count = inner + *beyond;
    *rows = prn_rows_create(*count, sizeof **rows);
    if (*rows) {
        fill_bins(*rows, inner, sorted, within);
        if (*beyond) (*rows)[inner] = (prony_histogram_bin){sorted[within - 1], sorted[runs - 1], runs - within};
    }
    prn_free(sorted);
    return *rows ? PRONY_OK : prn_no_memory(error);
}

/* ---- outliers ---- */

static double median_deviation(const int64_t *samples, int64_t *room, size_t count, int64_t median)
{
    for (size_t i = 0; i < count; i++) room[i] = samples[i] > median ? samples[i] - median : median - samples[i];
    qsort(room, count, sizeof *room, prn_compare_i64);
    return (double)quartile(room, count, 2);
}

static bool is_outlier(prony_outlier *row, const prony_report *r, size_t run, const double fences[4], double deviation)
{
    double x = (double)r->samples_ns[run];
    *row = (prony_outlier){.run = run, .latency_ns = r->samples_ns[run]};
    row->severe = x < fences[0] || x > fences[3];
    row->modified_z = deviation > 0 ? 0.6745 * (x - (double)r->latency.median_ns) / deviation : 0;
    return x < fences[1] || x > fences[2] || fabs(row->modified_z) > MODIFIED_Z;
}

prony_status prony_report_outliers(prony_outlier **rows, size_t *count, const prony_report *report, prony_error *error)
{
    if (!rows || !count || !report)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_outliers: an argument is NULL");
    size_t runs = runs_of(report);
    if (!runs) return prn_fail(error, PRONY_UNSUPPORTED, "the report has no latencies");
    int64_t *sorted = sorted_samples(report);
    if (!sorted) return prn_no_memory(error);
    double low = (double)quartile(sorted, runs, 1), high = (double)quartile(sorted, runs, 3), range = high - low;
    const double fences[4] = {low - OUTER_FENCE * range, low - INNER_FENCE * range, high + INNER_FENCE * range,
                              high + OUTER_FENCE * range};
    double deviation = median_deviation(report->samples_ns, sorted, runs, report->latency.median_ns);
    prony_outlier row;
    *count = 0;
    for (size_t i = 0; i < runs; i++) *count += is_outlier(&row, report, i, fences, deviation);
    *rows = prn_rows_create(*count, sizeof **rows);
    for (size_t i = 0, k = 0; *rows && i < runs; i++)
        if (is_outlier(&row, report, i, fences, deviation)) (*rows)[k++] = row;
    prn_free(sorted);
    return *rows ? PRONY_OK : prn_no_memory(error);
}

/* ---- steady state ---- */

static int64_t latency_shape_median_of(const int64_t *samples, size_t count, int64_t *room)
{
    memcpy(room, samples, count * sizeof *room);
    qsort(room, count, sizeof *room, prn_compare_i64);
    return room[count / 2];
}

bool prony_report_disturbance(prony_disturbance *out, const prony_report *report)
{
    if (!out || !report || !report->has_disturbance) return false;
    const prn_disturbance *d = &report->disturbance;
    *out = (prony_disturbance){d->others, d->steal, d->waited, d->involuntary_switches, (prony_load)d->verdict, ""};
    (void)prn_disturbance_text(d, out->text, sizeof out->text);
    return true;
}

/* Of one process; `room` holds its runs. */
static prony_steady_state steady_of(const int64_t *samples, size_t runs, int64_t median_ns, int64_t *room)
{
    prony_steady_state s = {.known = true};
    int64_t points[TREND_POINTS];
    size_t count = runs < TREND_POINTS ? runs : TREND_POINTS, third = runs / 3;
    for (size_t p = 0; p < count; p++) {
        size_t begin = runs * p / count, end = runs * (p + 1) / count;
        points[p] = latency_shape_median_of(samples + begin, end - begin, room);
    }
    int64_t first = latency_shape_median_of(samples, third, room);
    int64_t last = latency_shape_median_of(samples + (runs - third), third, room);
    s.p = prn_trend_p(points, count);
    if (median_ns > 0) s.drift = (double)(last - first) / (double)median_ns;
    return s;
}

prony_status prony_report_steady_state(prony_steady_state *out, const prony_report *report, prony_error *error)
{
    if (!out || !report)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_steady_state: an argument is NULL");
    uint64_t all = runs_of(report);
    const uint64_t *process_runs = report->process_runs ? report->process_runs : &all;
    size_t processes = report->process_runs ? report->process_count : 1, begin = 0;
    *out = (prony_steady_state){.p = 1};
    if (all < FEWEST_RUNS) return PRONY_OK;
    int64_t *room = prn_calloc((size_t)all, sizeof *room);
    if (!room) return prn_no_memory(error);
    /* Of several processes takes the clearest trend, with p adjusted for their number. */
    for (size_t i = 0; i < processes; begin += (size_t)process_runs[i++]) {
        size_t runs = (size_t)process_runs[i];
        if (runs < FEWEST_RUNS) continue;
        prony_steady_state s = steady_of(report->samples_ns + begin, runs, report->latency.median_ns, room);
        s.p = fmin(1, s.p * (double)processes);
        if (!out->known || s.p < out->p) *out = s;
    }
    prn_free(room);
    if (!out->known) return PRONY_OK;
    out->steady = !(out->p < 0.05 && fabs(out->drift) > 0.01);
    out->unsure = out->steady && fabs(out->drift) > 0.02;
    return PRONY_OK;
}

size_t prony_report_layer_samples(const prony_report *report, size_t layer, int64_t *samples_ns, size_t capacity)
{
    if (!report) return 0;
    return prn_report_layer_samples(report, layer, samples_ns, samples_ns ? capacity : 0);
}
