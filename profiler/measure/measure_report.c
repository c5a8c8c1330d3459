/* Makes the report of a recording. */
#include "profiler/measure/measure.h"
#include "profiler/measure/machine_peaks.h"
#include "profiler/measure/report_build.h"
#include "base/os/clock.h"
#include "base/os/resident.h"
#include "base/hash/sha256.h"
#include "profiler/report/reasons.h"
#include "profiler/statistics/statistics.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>

/* The cost of one event (stamps and write), measured now. The median of several rounds, because some may be
 * disturbed. */
static double event_cost_ns(void)
{
    enum { ROUNDS = 21, EVENTS = 1000 };
    prn_event event = {0};
    int64_t took[ROUNDS];
    volatile int64_t keep = 0;
    for (int r = 0; r < ROUNDS; r++) {
        int64_t begin = prn_now_ns();
        for (int i = 0; i < EVENTS; i++) {
            uint64_t all = 0, own = prn_heap_calls();
            (void)prn_all_heap_calls(&all);
            event.start_ns = prn_now_ns();
            event.end_ns = prn_now_ns();
            (void)prn_all_heap_calls(&all);
            event.library_heap_calls = (uint32_t)(all - own);
            keep = event.end_ns;
        }
        took[r] = prn_now_ns() - begin;
    }
    (void)keep;
    qsort(took, ROUNDS, sizeof took[0], prn_compare_i64);
    return (double)took[ROUNDS / 2] / EVENTS;
}

/* Hashes the contents of strings and items, not their addresses. */
static void hash_value(prn_sha256 *hash, const prony_value *value)
{
    size_t bytes = prn_value_bytes(value);
    for (size_t i = 0; i < value->count && value->items; i++) hash_value(hash, &value->items[i]);
    if (value->kind != PRONY_TENSOR || !value->data || bytes == SIZE_MAX) return;
    if (value->dtype != PRONY_STRING) {
        prn_sha256_add(hash, value->data, bytes);
        return;
    }
    const prony_string *strings = value->data;
    for (int64_t i = 0; i < prony_shape_numel(&value->shape); i++) {
        prn_sha256_add(hash, &strings[i].size, sizeof strings[i].size);
        prn_sha256_add(hash, strings[i].data, strings[i].size);
    }
}

static prony_status hash_outputs(prony_report *report, const prony_session *session, prony_error *error)
{
    const prn_cached_plan *current = session->current;
    prn_sha256 hash;
    char *text = prn_bump_alloc(&report->pool, 65, 1);
    if (!text) return prn_no_memory(error);
    prn_sha256_init(&hash);
    for (size_t k = 0; k < current->program->output_count; k++)
        hash_value(&hash, &current->plan->values[current->plan->outputs[k]]->value);
    prn_sha256_text(&hash, text);
    report->output_sha256 = text;
    return PRONY_OK;
}

/* Copies the recording's phases, configuration, processor use and memory into the report. */
static void fill_measured(prony_report *report, const prn_recording *r)
{
    const prn_cached_plan *current = r->cached;
    report->phases.bind_ns = current->bind_ns;
    report->phases.rewrite_ns = current->rewrite_ns;
    report->phases.plan_ns = current->plan_ns;
    report->phases.first_run_ns = current->first_run_ns;
    report->config.warmup_runs = r->warmup_runs;
    report->config.runs = (int64_t)r->runs;
    report->config.seed = r->session->seed;
    report->config.seed_known = r->session->seed_known;
    report->traced_run_ns = r->traced_run_ns;
    report->warmup_detected = r->warmup_detected;
    report->stop_reason = r->stop_reason;
    report->dropped_events = r->session->trace.dropped;
    report->disturbance = r->disturbance;
    report->has_disturbance = true;
    prn_report_cpu *cpu = &report->cpu;
    cpu->user_ns = r->usage.user_ns;
    cpu->system_ns = r->usage.system_ns;
    cpu->voluntary_switches = r->usage.voluntary_switches;
    cpu->involuntary_switches = r->usage.involuntary_switches;
    cpu->read_bytes = r->usage.read_bytes;
    cpu->written_bytes = r->usage.written_bytes;
    cpu->read_calls = r->usage.read_calls;
    cpu->write_calls = r->usage.write_calls;
    /* The kernel adds the time of threads on other processors once a tick, so time before the first reading may be
     * counted after it. */
    if (r->usage.time_ns > 0)
        cpu->utilisation = fmin(1, (double)(cpu->user_ns + cpu->system_ns) / (double)r->usage.time_ns /
                                       (r->session->threads * r->session->workers));
    prony_memory_report *memory = &report->memory;
    memory->peak_rss_bytes = r->usage.peak_rss_bytes;
    memory->heap_calls_known = true;
    memory->heap_calls_per_run = r->own_heap_calls / r->runs;
    memory->library_heap_calls_known = r->all_heap_known;
    if (r->all_heap_known && r->all_heap_calls > r->own_heap_calls)
        memory->library_heap_calls_per_run = (r->all_heap_calls - r->own_heap_calls) / r->runs;
}

static void fill_held(prony_report *report, const prn_recording *r)
{
    prn_resident resident;
    prn_arena_figures arena;
    prony_memory_held *held = &report->memory.held;
    if (!prn_resident_read(&resident)) return;
    prn_arena_read(r->cached->plan->memory.arena, &arena);
    report->memory.held_known = report->measured_here = true;
    held->file_bytes = resident.mapped_bytes;
    held->library_bytes = resident.library_bytes;
    held->packed_bytes = report->memory.packed_weight_bytes;
    held->arena_bytes = arena.planned_bytes + arena.dynamic_bytes;
    for (size_t i = 0; i < r->session->input_count + r->session->optional_count; i++)
        held->input_bytes += r->session->inputs[i].capacity;
    uint64_t named = held->packed_bytes + held->arena_bytes + held->input_bytes;
    held->other_bytes = resident.anonymous_bytes > named ? resident.anonymous_bytes - named : 0;
    held->resident_bytes = resident.mapped_bytes + resident.library_bytes + resident.anonymous_bytes;
    /* The kernel's peak may lag behind, because threads add up their counts late. */
    if (report->memory.peak_rss_bytes && report->memory.peak_rss_bytes < held->resident_bytes)
        report->memory.peak_rss_bytes = held->resident_bytes;
}

static prony_status measure_report_keep_samples(prony_report *report, const prn_recording *r, prony_error *error)
{
    int64_t *samples = prn_bump_alloc(&report->pool, r->runs, r->operators * sizeof *samples);
    if (!samples) return prn_no_memory(error);
    memcpy(samples, r->durations_ns, r->runs * r->operators * sizeof *samples);
    report->operator_samples_ns = samples;
    return PRONY_OK;
}

/* Fills the shares of the operator's threads. */
static prony_status fill_team(prony_report *report, const prn_recording *r, prony_operator_row *row, prony_error *error)
{
    const prn_trace *trace = &r->session->trace;
    const prn_thread_pool_share *shares = &trace->shares[row->index * (size_t)trace->members];
    prony_thread_share *team = prn_bump_alloc(&report->pool, (size_t)trace->members, sizeof *team);
    if (!team) return prn_no_memory(error);
    for (int m = 0; m < trace->members; m++) {
        const prn_thread_pool_share *share = &shares[m];
        if (share->tasks == 0) continue;
        team[row->thread_share_count++] = (prony_thread_share){.thread = m,
                                                               .start_ns = share->start_ns - r->last_run_ns,
                                                               .end_ns = share->end_ns - r->last_run_ns,
                                                               .busy_ns = share->busy_ns,
                                                               .tasks = share->tasks};
    }
    row->thread_shares = row->thread_share_count ? team : NULL;
    return PRONY_OK;
}

/* Several workers: operators overlap, so the time inside of them is the union of their intervals. */
static prony_status fill_workers(prony_report *report, const prn_recording *r, prony_error *error)
{
    int workers = r->session->workers;
    int64_t wall = 0, runs = (int64_t)r->runs;
    prn_worker_row *rows = prn_bump_alloc(&report->pool, (size_t)workers, sizeof *rows);
    if (!rows) return prn_no_memory(error);
    for (size_t i = 0; i < r->runs; i++) wall += r->latency_ns[i];
    for (int w = 0; w < workers; w++)
        rows[w] = (prn_worker_row){r->worker_busy_ns[w] / runs, (wall - r->worker_busy_ns[w]) / runs};
    report->cpu.workers = rows;
    report->cpu.worker_count = (size_t)workers;
    report->time_share = wall > 0 ? (double)r->covered_ns / (double)wall : 0;
    return PRONY_OK;
}

/* Number of events in the last run: operators, and all executions in subgraphs. */
static double events_per_run(const prn_recording *r)
{
    double events = (double)r->operators;
    for (size_t p = 0; p < r->nested->plan_count; p++)
        events += (double)r->nested->trips[p] * (double)r->nested->plans[p]->step_count;
    return events;
}

static void fill_nested_traces(prony_report *report, const prn_recording *r)
{
    for (size_t i = 0; i < report->nested_operator_count; i++) {
        prony_nested_row *row = &report->nested_operators[i];
        const prn_tally *tally = &r->nested->tallies[i];
        if (!row->executions) continue;
        row->traced = true;
        row->trace_start_ns = tally->start_ns - r->last_run_ns;
        row->trace_ns = tally->time_ns;
    }
}

/* With stamps: times of rows, workers and threads, and the cost of profiling. Without: the latency alone. */
static prony_status fill_times(prony_report *report, prn_recording *r, prony_error *error)
{
    if (r->durations_ns) {
        PRN_TRY(prn_report_fill_roof(report, error)); /* shares of operators depend on the measured rates */
        PRN_TRY(prn_report_fill_times(report, r->durations_ns, r->latency_ns, r->runs, error));
        if (r->nested_ns) PRN_TRY(prn_report_fill_nested_times(report, r->nested_ns, r->runs, error));
        if (r->options->keep_samples) PRN_TRY(measure_report_keep_samples(report, r, error));
        if (r->worker_busy_ns) PRN_TRY(fill_workers(report, r, error));
        report->cost = r->cost;
        report->overhead_ns_per_event = event_cost_ns();
        if (report->latency.median_ns > 0)
            report->overhead_share =
                report->overhead_ns_per_event * events_per_run(r) / (double)report->latency.median_ns;
        const prn_trace *trace = &r->session->trace;
        if (!r->session->current) return PRONY_OK; /* cancelled: the last run's events are incomplete */
        for (size_t e = 0; e < trace->count; e++) {
            const prn_event *event = &trace->events[e];
            prony_operator_row *row = &report->operators[event->step];
            row->library_heap_calls += event->library_heap_calls;
            row->traced = true;
            row->trace_start_ns = event->start_ns - r->last_run_ns;
            row->trace_end_ns = event->end_ns - r->last_run_ns;
            row->worker = event->worker;
            if (trace->shares) PRN_TRY(fill_team(report, r, row, error));
        }
        fill_nested_traces(report, r);
        for (size_t o = 0; r->team_use && o < report->operator_count; o++)
            PRN_TRY(prn_thread_use_fill(r->team_use, report, &report->operators[o], error));
        return PRONY_OK;
    }
    return prn_report_fill_latency(report, r->latency_ns, r->runs, error);
}

static prony_status fill_around(prony_report *report, prn_recording *r, prony_error *error)
{
    const prony_profile_options *options = r->options;
    prn_report_around *around = &report->around;
    prony_time_stats before, after;
    PRN_TRY(prn_stats_compute(&before, r->before_ns, r->runs, false, error));
    PRN_TRY(prn_stats_compute(&after, r->after_ns, r->runs, false, error));
    around->preprocess_ns = options->preprocess ? before.median_ns : -1;
    around->postprocess_ns = options->postprocess ? after.median_ns : -1;
    for (size_t i = 0; i < r->runs; i++) r->before_ns[i] += r->latency_ns[i] + r->after_ns[i];
    PRN_TRY(prn_stats_compute(&around->end_to_end, r->before_ns, r->runs, true, error));
    report->has_around = true;
    return PRONY_OK;
}

/* Reasons come last, because they read the rows and times that the steps before fill. *out is set only on success; the
 * report is the caller's. A cancelled run has no outputs to hash. */
prony_status prn_recording_report(prony_report **out, prn_recording *r, prony_error *error)
{
    prony_session *session = r->session;
    prony_report *report;
    PRN_TRY(prn_report_build(&report, session->model, r->cached->program, r->cached->plan, r->nested, &session->options,
                             session->threads, session->affinity, error));
    fill_measured(report, r);
    fill_held(report, r);
    prony_status status = prn_report_fill_assumed(report, session->model, &session->assumed, error);
    if (status == PRONY_OK) status = fill_times(report, r, error);
    if (status == PRONY_OK)
        status = prn_device_sums_report(r->device_sums, r->cached->plan, r->last_run_ns, report, error);
    if (report->has_device) {
        report->device.has_sensors = r->has_sensors;
        report->device.sensors = r->sensors;
    }
    if (status == PRONY_OK && r->before_ns) status = fill_around(report, r, error);
    if (status == PRONY_OK) status = prn_core_recorder_report(&r->cores, report, error);
    if (status == PRONY_OK) status = prn_report_fill_modules(report, error);
    if (status == PRONY_OK)
        status = prn_report_fill_composites(report, session->model, r->cached->inputs, session->input_count, error);
    if (status == PRONY_OK && session->current) status = hash_outputs(report, session, error); /* cancelled: none */
    if (status == PRONY_OK && r->durations_ns) status = prn_report_fill_reasons(report, error);
    if (status == PRONY_OK)
        *out = report;
    else
        prony_report_release(report);
    return status;
}
