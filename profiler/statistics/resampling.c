/* Bootstrap intervals, of one series, of two, and of processes (statistics.h describes the drawn units). Blocks of a
 * series are circular (D. N. Politis and J. P. Romano, 1992), from one fixed seed; a resample is known by how often
 * each sorted value was drawn, so nothing is sorted per draw.
 */
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of resamples; chosen without measurement. */
#define RESAMPLES_MOST 2000
#define RESAMPLES_LEAST 200
#define DRAWS 20000000 /* bound on the values drawn by all resamples; chosen without measurement */
#define PROCESS_RESAMPLES 4000
#define BOOTSTRAP_SEED 0x50524f4e59U
#define BLOCK_MEMORY 3  /* blocks are so many times as long as the series' memory; chosen without measurement */
#define FEWEST_PIECES 5 /* fewest blocks of a series, for any memory */
#define FEW_PIECES 7
#define FEWEST_PROCESSES 3

/* ---- intervals ---- */

double prn_interval_tail(double confidence, double pieces)
{
    if (pieces < 2) return 0;
    double bound = prn_student_bound(1 - confidence, pieces - 1) * sqrt(pieces / (pieces - 1));
    return prn_normal_below(-bound);
}

void prn_interval_of(double interval[2], double *values, size_t count, double tail)
{
    interval[0] = -INFINITY;
    interval[1] = INFINITY;
    if (count == 0) return;
    qsort(values, count, sizeof *values, prn_compare_doubles);
    size_t rank = (size_t)((double)count * tail);
    if (rank >= (count + 1) / 2) rank = (count - 1) / 2;
    interval[0] = values[rank];
    interval[1] = values[count - 1 - rank];
}

/* ---- series ---- */

typedef struct timed {
    int64_t value;
    size_t when;
} timed;

static int compare_timed(const void *left, const void *right)
{
    const timed *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return (a->when > b->when) - (a->when < b->when);
}

typedef struct resampled {
    timed *sorted;
    size_t *rank; /* in `sorted`, by time */
    uint32_t *drawn;
    size_t count, block;
    const uint64_t *process_runs;       /* NULL: blocks are drawn */
    size_t processes, *begins;          /* of the processes, by time */
    double pieces[PRN_STATISTIC_COUNT]; /* independent units behind each statistic */
} resampled;

/* Block length: the memory of the values, limited so that enough blocks remain. */
static size_t resampling_block_of(size_t count, double memory)
{
    double block = fmax(floor(cbrt((double)count) + 1e-9), ceil(BLOCK_MEMORY * (memory - 1)));
    double most = fmax(1, floor((double)count / FEWEST_PIECES));
    return (size_t)fmin(block, most);
}

static const uint32_t quantiles[][2] = {
    {PRN_STATISTIC_P90, 900}, {PRN_STATISTIC_P95, 950}, {PRN_STATISTIC_P99, 990}, {PRN_STATISTIC_P999, 999}};

static size_t draw_blocks(resampled *r, uint64_t *random)
{
    for (size_t done = 0; done < r->count;) {
        size_t at = prn_random_below(random, r->count), end = done + r->block < r->count ? done + r->block : r->count;
        for (; done < end; done++) {
            r->drawn[r->rank[at]]++;
            if (++at == r->count) at = 0;
        }
    }
    return r->count;
}

static size_t draw_processes(resampled *r, uint64_t *random)
{
    size_t drawn = 0;
    for (size_t p = 0; p < r->processes; p++) {
        size_t which = prn_random_below(random, r->processes), begin = r->begins[which];
        size_t end = begin + (size_t)r->process_runs[which];
        for (size_t at = begin; at < end; at++) r->drawn[r->rank[at]]++;
        drawn += end - begin;
    }
    return drawn;
}

static void resampling_draw(resampled *r, double values[PRN_STATISTIC_COUNT], uint64_t *random)
{
    memset(r->drawn, 0, r->count * sizeof *r->drawn);
    size_t count = r->process_runs ? draw_processes(r, random) : draw_blocks(r, random);
    /* Ranks from 0, ascending: both of the median, then the quantiles' nearest ranks. */
    size_t ranks[6] = {(count - 1) / 2, count / 2};
    double at[6];
    for (size_t q = 0; q < 4; q++) ranks[q + 2] = (count * quantiles[q][1] + 999) / 1000 - 1;
    double sum = 0;
    size_t seen = 0, next = 0;
    for (size_t i = 0; i < r->count; i++) {
        sum += (double)r->sorted[i].value * r->drawn[i];
        seen += r->drawn[i];
        for (; next < 6 && ranks[next] < seen; next++) at[next] = (double)r->sorted[i].value;
    }
    values[PRN_STATISTIC_MEDIAN] = (at[0] + at[1]) / 2;
    values[PRN_STATISTIC_MEAN] = sum / (double)count;
    for (size_t q = 0; q < 4; q++) values[quantiles[q][0]] = at[q + 2];
}

/* Few independent units give few different resamples, whose percentiles are too narrow. So the interval is at least
 * Student's, by the deviation of the resamples. */
static void resampling_widen(double interval[2], const double *values, size_t count, double confidence, double pieces)
{
    double mean = 0, square = 0, middle = values[count / 2];
    if (pieces < 2 || pieces >= FEW_PIECES || !isfinite(values[count - 1])) return;
    for (size_t i = 0; i < count; i++) mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++) square += (values[i] - mean) * (values[i] - mean);
    double deviation = sqrt(square / (double)count * pieces / (pieces - 1));
    if (!(middle > 0)) return;
    /* Times are positive: uses logarithms, within the range of a double. */
    double half = exp(fmin(50, deviation * prn_student_bound(1 - confidence, pieces - 1) / middle));
    interval[0] = fmin(interval[0], middle / half);
    interval[1] = fmax(interval[1], middle * half);
}

/* Times above a quantile come in clusters; those less than a block apart count as one. */
static double clusters_above(const resampled *r, size_t rank)
{
    size_t found = 0, last = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->rank[i] < rank) continue;
        found += found == 0 || i - last > r->block;
        last = i;
    }
    return (double)found;
}

static void count_pieces(resampled *r, double memory)
{
    double count = (double)r->count, pieces = fmin(count / (double)r->block, count / memory);
    if (r->process_runs) pieces = (double)r->processes;
    for (size_t s = 0; s < PRN_STATISTIC_COUNT; s++) r->pieces[s] = pieces;
    for (size_t q = 0; q < 4; q++)
        r->pieces[quantiles[q][0]] = fmin(pieces, clusters_above(r, (r->count * quantiles[q][1] + 999) / 1000 - 1));
}

static bool draws_processes(const prn_times *times)
{
    return times->process_runs && times->processes >= PRN_FEWEST_PROCESSES;
}

static prony_status sort_sample(resampled *r, const prn_times *times, prony_error *error)
{
    double memory;
    size_t count = times->count, begin = 0;
    *r = (resampled){.sorted = prn_calloc(count, sizeof *r->sorted),
                     .rank = prn_calloc(count, sizeof *r->rank),
                     .drawn = prn_calloc(count, sizeof *r->drawn),
                     .count = count};
    if (!r->sorted || !r->rank || !r->drawn) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) r->sorted[i] = (timed){times->samples[i], i};
    qsort(r->sorted, count, sizeof *r->sorted, compare_timed);
    for (size_t i = 0; i < count; i++) r->rank[r->sorted[i].when] = i;
    PRN_TRY(prn_series_memory(&memory, times->samples, count, error));
    r->block = resampling_block_of(count, memory);
    if (draws_processes(times)) {
        r->begins = prn_calloc(times->processes, sizeof *r->begins);
        if (!r->begins) return prn_no_memory(error);
        r->process_runs = times->process_runs;
        r->processes = times->processes;
        for (size_t p = 0; p < r->processes; begin += (size_t)r->process_runs[p++]) r->begins[p] = begin;
    }
    count_pieces(r, memory);
    return PRONY_OK;
}

static void free_sample(resampled *r)
{
    prn_free(r->sorted);
    prn_free(r->rank);
    prn_free(r->drawn);
    prn_free(r->begins);
}

/* values[s * resamples + r]: statistic s of resample r, or its ratio. `b` may be NULL. */
static void draw_all(double *values, size_t resamples, resampled *a, resampled *b)
{
    uint64_t random = BOOTSTRAP_SEED;
    for (size_t r = 0; r < resamples; r++) {
        double of_a[PRN_STATISTIC_COUNT], of_b[PRN_STATISTIC_COUNT];
        resampling_draw(a, of_a, &random);
        if (b) resampling_draw(b, of_b, &random);
        for (size_t s = 0; s < PRN_STATISTIC_COUNT; s++)
            values[s * resamples + r] = !b ? of_a[s] : of_a[s] > 0 ? of_b[s] / of_a[s] : INFINITY;
    }
}

prony_status prn_times_intervals(double intervals[PRN_STATISTIC_COUNT][2], double confidence, prn_times first,
                                 const prn_times *second, prony_error *error)
{
    size_t resamples = DRAWS / (first.count + (second ? second->count : 0));
    if (resamples > RESAMPLES_MOST) resamples = RESAMPLES_MOST;
    if (resamples < RESAMPLES_LEAST) resamples = RESAMPLES_LEAST;
    resampled a = {0}, b = {0};
    double *values = prn_calloc(resamples, PRN_STATISTIC_COUNT * sizeof *values);
    prony_status status = values ? sort_sample(&a, &first, error) : prn_no_memory(error);
    if (status == PRONY_OK && second) status = sort_sample(&b, second, error);
    if (status == PRONY_OK) {
        draw_all(values, resamples, &a, second ? &b : NULL);
        for (size_t s = 0; s < PRN_STATISTIC_COUNT; s++) {
            double pieces = second ? fmin(a.pieces[s], b.pieces[s]) : a.pieces[s];
            double *of = values + s * resamples;
            prn_interval_of(intervals[s], of, resamples, prn_interval_tail(confidence, pieces));
            resampling_widen(intervals[s], of, resamples, confidence, pieces);
        }
    }
    free_sample(&a);
    free_sample(&b);
    prn_free(values);
    return status;
}

/* ---- deviation that a sample does not show ---- */

static double unknown_variance(const prn_times *times)
{
    if (draws_processes(times)) return 0;
    return PRN_PROCESS_DEVIATION * PRN_PROCESS_DEVIATION / fmax(1, (double)times->processes);
}

double prn_process_deviation(prn_times first, const prn_times *second)
{
    return sqrt(unknown_variance(&first) + (second ? unknown_variance(second) : 0));
}

void prn_interval_widen(double interval[2], double middle, double confidence, double deviation)
{
    double more = deviation * prn_student_bound(1 - confidence, 1e6);
    if (!(middle > 0) || !(more > 0)) return;
    double below = interval[0] > 0 ? fmax(0, log(middle / interval[0])) : INFINITY;
    double above = isfinite(interval[1]) ? fmax(0, log(interval[1] / middle)) : INFINITY;
    interval[0] = isfinite(below) ? middle * exp(-hypot(below, more)) : interval[0];
    interval[1] = isfinite(above) ? middle * exp(hypot(above, more)) : interval[1];
}

/* ---- processes ---- */

static double resampling_draw_median(prn_processes of, double *room, uint64_t *random)
{
    for (size_t i = 0; i < of.count; i++) room[i] = of.values[prn_random_below(random, of.count)];
    return prn_median(room, of.count);
}

/* Resamples of the median, or of the ratio base / of. */
static void draw_medians(double *values, prn_processes of, const prn_processes *base, double *room)
{
    uint64_t random = BOOTSTRAP_SEED;
    for (size_t r = 0; r < PROCESS_RESAMPLES; r++) {
        values[r] = resampling_draw_median(of, room, &random);
        if (base) values[r] = resampling_draw_median(*base, room, &random) / values[r];
    }
}

/* intervals[k] of confidences[k]. */
static prony_status process_intervals(double *value, double (*intervals)[2], const double *confidences, size_t wanted,
                                      prn_processes of, const prn_processes *base, prony_error *error)
{
    size_t most = base && base->count > of.count ? base->count : of.count;
    size_t fewest = base && base->count < of.count ? base->count : of.count;
    double *room = prn_calloc(most + 1, sizeof *room), *values = prn_calloc(PROCESS_RESAMPLES, sizeof *values);
    prony_status status = room && values ? PRONY_OK : prn_no_memory(error);
    *value = 0;
    for (size_t k = 0; k < wanted; k++) {
        intervals[k][0] = -INFINITY;
        intervals[k][1] = INFINITY;
    }
    if (status == PRONY_OK && fewest > 0) {
        memcpy(room, of.values, of.count * sizeof *room);
        double under = prn_median(room, of.count), over = 1;
        if (base) memcpy(room, base->values, base->count * sizeof *room);
        if (base) over = prn_median(room, base->count);
        *value = base ? over / under : under;
    }
    if (status == PRONY_OK && fewest >= FEWEST_PROCESSES) {
        draw_medians(values, of, base, room);
        for (size_t k = 0; k < wanted; k++) {
            prn_interval_of(intervals[k], values, PROCESS_RESAMPLES, prn_interval_tail(confidences[k], (double)fewest));
            resampling_widen(intervals[k], values, PROCESS_RESAMPLES, confidences[k], (double)fewest);
        }
    }
    prn_free(room);
    prn_free(values);
    return status;
}

prony_status prn_process_interval(double *value, double interval[2], prn_processes of, const prn_processes *base,
                                  prony_error *error)
{
    static const double confidence = 0.95;
    double intervals[1][2];
    PRN_TRY(process_intervals(value, intervals, &confidence, 1, of, base, error));
    memcpy(interval, intervals[0], sizeof intervals[0]);
    return PRONY_OK;
}

/* The median of the medians of `drawn` groups; with `random` groups and values are drawn, or values alone where
 * `draws_groups` is false. */
static double median_of_groups(const prn_processes *groups, size_t count, bool draws_groups, double *room,
                               double *medians, uint64_t *random)
{
    size_t known = 0;
    for (size_t g = 0; g < count; g++) {
        const prn_processes *group = &groups[random && draws_groups ? prn_random_below(random, count) : g];
        if (random) {
            medians[known++] = resampling_draw_median(*group, room, random);
        } else {
            memcpy(room, group->values, group->count * sizeof *room);
            medians[known++] = prn_median(room, group->count);
        }
    }
    return prn_median(medians, known);
}

/* Empty groups are dropped first. With fewer than `fewest_groups` groups only the values are drawn. */
prony_status prn_grouped_interval(double *value, double interval[2], const prn_processes *groups, size_t count,
                                  size_t fewest_groups, prony_error *error)
{
    size_t known = 0, most = 0, all = 0;
    *value = 0;
    interval[0] = -INFINITY;
    interval[1] = INFINITY;
    prn_processes *used = prn_calloc(count + 1, sizeof *used);
    for (size_t g = 0; used && g < count; g++) {
        if (groups[g].count == 0) continue;
        used[known++] = groups[g];
        all += groups[g].count;
        most = groups[g].count > most ? groups[g].count : most;
    }
    double *room = prn_calloc(most + 1, sizeof *room), *medians = prn_calloc(count + 1, sizeof *medians),
           *values = prn_calloc(PROCESS_RESAMPLES, sizeof *values);
    prony_status status = used && room && medians && values ? PRONY_OK : prn_no_memory(error);
    if (status == PRONY_OK && known) *value = median_of_groups(used, known, false, room, medians, NULL);
    if (status == PRONY_OK && all >= FEWEST_PROCESSES) {
        const bool draws_groups = known >= fewest_groups;
        uint64_t random = BOOTSTRAP_SEED;
        for (size_t r = 0; r < PROCESS_RESAMPLES; r++)
            values[r] = median_of_groups(used, known, draws_groups, room, medians, &random);
        const double pieces = (double)(draws_groups ? known : all);
        prn_interval_of(interval, values, PROCESS_RESAMPLES, prn_interval_tail(0.95, pieces));
        resampling_widen(interval, values, PROCESS_RESAMPLES, 0.95, pieces);
    }
    prn_free(used);
    prn_free(room);
    prn_free(medians);
    prn_free(values);
    return status;
}

prony_status prn_process_compare(prn_process_test *out, prn_processes first, prn_processes second, double noise,
                                 double equal, prony_error *error)
{
    static const double confidences[] = {0.95, 0.9};
    double intervals[2][2];
    prn_rank_test ranks;
    *out = (prn_process_test){.p = 1, .verdict = PRN_CANNOT_TELL};
    PRN_TRY(process_intervals(&out->ratio, intervals, confidences, 2, first, &second, error));
    PRN_TRY(prn_rank_test_compute(&ranks, first.values, first.count, 1, second.values, second.count, 1, error));
    memcpy(out->interval, intervals[0], sizeof out->interval);
    memcpy(out->interval90, intervals[1], sizeof out->interval90);
    out->p = ranks.p;
    if (out->p < 0.05 && (out->interval[0] > 1 + noise || out->interval[1] < 1 - noise))
        out->verdict = PRN_DIFFERENT;
    else if (out->interval90[0] > 1 / (1 + equal) && out->interval90[1] < 1 + equal)
        out->verdict = PRN_SAME;
    return PRONY_OK;
}
