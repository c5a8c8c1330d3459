/* prony_report_join: the runs of several processes in one report. The report then shows the deviation between
 * processes, which one process cannot know (statistics.h describes its use). */
#include "profiler/report/report.h"

#include <string.h>

/* Share of the measured time on a busy machine from which the whole counts as busy. Chosen without measurement. */
#define BUSY_PART 0.25

static prony_status differs(const char *what, prony_error *error)
{
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "the reports of two processes differ in %s: they belong to different measurements", what);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static prony_status step_join_check(const prony_report *a, const prony_report *b, prony_error *error)
{
    if (!b->measured || !b->samples_ns || b->latency.count == 0 || b->process_runs)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "each report to join must come from one measured process");
    if (a->model.sha256 && b->model.sha256 && strcmp(a->model.sha256, b->model.sha256) != 0)
        return differs("the model", error);
    if (a->operator_count != b->operator_count || a->layer_count != b->layer_count)
        return differs("their operators", error);
    if (a->config.intra_op_threads != b->config.intra_op_threads ||
        a->config.inter_op_threads != b->config.inter_op_threads)
        return differs("threads", error);
    if (a->config.batch != b->config.batch) return differs("the batch", error);
    return same_text(a->config.precision, b->config.precision) ? PRONY_OK : differs("precision", error);
}

static double step_join_time_of(const prony_report *r)
{
    return (double)r->latency.mean_ns * (double)r->latency.count;
}

/* Means weighted by measured time, over processes with a value. */
typedef struct mean {
    double sum, weight;
} mean;

static void add_to_mean(mean *m, double value, double weight)
{
    if (value < 0) return;
    m->sum += value * weight;
    m->weight += weight;
}

static double mean_or(mean m, double otherwise)
{
    return m.weight > 0 ? m.sum / m.weight : otherwise;
}

static void join_disturbances(prn_disturbance *out, const prony_report *const *all, size_t count)
{
    mean others = {0}, steal = {0}, waited = {0};
    double time[PRN_LOAD_BUSY + 1] = {0}, whole = 0;
    int64_t switches = 0;
    for (size_t i = 0; i < count; i++) {
        const prn_disturbance *d = &all[i]->disturbance;
        double weight = step_join_time_of(all[i]);
        add_to_mean(&others, d->others, weight);
        add_to_mean(&steal, d->steal, weight);
        add_to_mean(&waited, d->waited, weight);
        switches += d->involuntary_switches;
        time[all[i]->has_disturbance ? d->verdict : PRN_LOAD_UNKNOWN] += weight;
        whole += weight;
    }
    *out = (prn_disturbance){mean_or(others, -1), mean_or(steal, -1), mean_or(waited, -1), switches, PRN_LOAD_UNKNOWN};
    if (time[PRN_LOAD_BUSY] > BUSY_PART * whole)
        out->verdict = PRN_LOAD_BUSY;
    else if (time[PRN_LOAD_UNKNOWN] <= whole / 2)
        out->verdict = PRN_LOAD_QUIET;
}

static prn_report_cpu joined_cpu(const prony_report *const *all, size_t count)
{
    prn_report_cpu cpu = all[0]->cpu;
    mean utilisation = {0};
    add_to_mean(&utilisation, cpu.utilisation, step_join_time_of(all[0]));
    for (size_t i = 1; i < count; i++) {
        const prn_report_cpu *more = &all[i]->cpu;
        add_to_mean(&utilisation, more->utilisation, step_join_time_of(all[i]));
        cpu.user_ns += more->user_ns;
        cpu.system_ns += more->system_ns;
        cpu.voluntary_switches += more->voluntary_switches;
        cpu.involuntary_switches += more->involuntary_switches;
        cpu.read_bytes += more->read_bytes;
        cpu.written_bytes += more->written_bytes;
        cpu.read_calls += more->read_calls;
        cpu.write_calls += more->write_calls;
    }
    cpu.utilisation = mean_or(utilisation, 0);
    return cpu;
}

/* Concatenates the samples process after process; intervals of the joined report draw processes. */
static prony_status join_samples(prony_report *into, const prony_report *const *all, size_t count, prony_error *error)
{
    size_t runs = 0, at = 0;
    bool warm = true;
    for (size_t i = 0; i < count; i++) runs += (size_t)all[i]->latency.count;
    int64_t *samples = prn_bump_alloc(&into->pool, runs, sizeof *samples);
    uint64_t *process_runs = prn_bump_alloc(&into->pool, count, sizeof *process_runs);
    if (!samples || !process_runs) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        process_runs[i] = all[i]->latency.count;
        memcpy(samples + at, all[i]->samples_ns, (size_t)process_runs[i] * sizeof *samples);
        at += (size_t)process_runs[i];
        warm = warm && all[i]->warmup_detected;
    }
    const prn_times times = {samples, runs, process_runs, count};
    double intervals[PRN_STATISTIC_COUNT][2];
    prony_time_stats stats;
    PRN_TRY(prn_stats_compute(&stats, samples, runs, false, error));
    PRN_TRY(prn_times_intervals(intervals, 0.95, times, NULL, error));
    const double *median = intervals[PRN_STATISTIC_MEDIAN];
    stats.median_ci95_ns[0] = median[0] > (double)stats.min_ns ? (int64_t)median[0] : stats.min_ns;
    stats.median_ci95_ns[1] = median[1] < (double)stats.max_ns ? (int64_t)median[1] : stats.max_ns;
    /* Traces of the rows are of this process's last run, which is no longer the last sample. */
    if (into->traced_run_ns <= 0) into->traced_run_ns = into->samples_ns[into->latency.count - 1];
    into->operator_samples_ns = NULL;
    into->latency = stats;
    into->samples_ns = samples;
    into->process_runs = process_runs;
    into->process_count = count;
    into->config.runs = (int64_t)runs;
    into->warmup_detected = warm;
    return PRONY_OK;
}

prony_status prony_report_join(prony_report *into, const prony_report *const *others, size_t count, prony_error *error)
{
    if (!into || (!others && count))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_join: an argument is NULL");
    PRN_TRY(step_join_check(into, into, error));
    for (size_t i = 0; i < count; i++) {
        if (!others[i]) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_join: report %zu is NULL", i);
        PRN_TRY(step_join_check(into, others[i], error));
    }
    const prony_report **all = prn_calloc(count + 1, sizeof *all);
    if (!all) return prn_no_memory(error);
    prn_disturbance disturbance;
    all[0] = into;
    for (size_t i = 0; i < count; i++) all[i + 1] = others[i];
    join_disturbances(&disturbance, all, count + 1);
    prn_report_cpu cpu = joined_cpu(all, count + 1);
    prony_status status = join_samples(into, all, count + 1, error);
    if (status == PRONY_OK) {
        into->disturbance = disturbance;
        into->cpu = cpu;
    }
    prn_free(all);
    return status;
}

const uint64_t *prony_report_process_runs(const prony_report *report, size_t *count)
{
    if (count) *count = report ? report->process_count : 0;
    return report ? report->process_runs : NULL;
}
