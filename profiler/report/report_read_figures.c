/* The figures of a report read back: totals, times, memory, processor, trust. What a report does not have stays at the
 * value that says so. */
#include "profiler/report/report_read.h"

#include <stdio.h>
#include <string.h>

static void read_totals(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *totals = prn_json_get_object(j, root, "totals", true);
    prn_read_enter(j, "totals");
    prn_read_counts(j, totals, &r->totals.cost);
    prn_json_get_u32(j, totals, "layers", true, &r->totals.layers);
    prn_json_get_u32(j, totals, "folded_layers", true, &r->totals.folded_layers);
    prn_json_get_u32(j, totals, "operators", true, &r->totals.operators);
    prn_json_get_bool(j, totals, "conserved", true, &r->conserved);
    r->totals.counted = prn_json_get_u64(j, totals, "count", false, &r->totals.count);
    prn_read_enter(j, "");
}

static void read_phases(prn_json_reader *j, const prn_json_value *root, prn_report_phases *p)
{
    const prn_json_value *phases = prn_json_get_object(j, root, "phases_ns", false);
    *p = (prn_report_phases){-1, -1, -1, -1, -1};
    prn_read_enter(j, "phases_ns");
    prn_json_get_i64(j, phases, "load", false, &p->load_ns);
    prn_json_get_i64(j, phases, "bind", false, &p->bind_ns);
    prn_json_get_i64(j, phases, "rewrite", false, &p->rewrite_ns);
    prn_json_get_i64(j, phases, "plan", false, &p->plan_ns);
    prn_json_get_i64(j, phases, "first_run", false, &p->first_run_ns);
    prn_read_enter(j, "");
}

static void read_quantile_flags(prn_json_reader *j, const prn_json_value *latency, prony_time_stats *t)
{
    const char *const *names = NULL;
    size_t count = 0;
    t->p90_valid = t->p95_valid = t->p99_valid = t->p999_valid = true;
    prn_read_strings(j, latency, "unsupported_quantiles", &names, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], "p90") == 0) t->p90_valid = false;
        if (strcmp(names[i], "p95") == 0) t->p95_valid = false;
        if (strcmp(names[i], "p99") == 0) t->p99_valid = false;
        if (strcmp(names[i], "p999") == 0) t->p999_valid = false;
    }
}

static void read_samples(prn_json_reader *j, const prn_json_value *latency, prony_report *r)
{
    size_t count, i = 0;
    const prn_json_value *array = prn_json_get_array(j, latency, "samples", true, &count);
    int64_t *samples = prn_json_room(j, count, sizeof *samples);
    if (!samples) return;
    if (count != r->latency.count) {
        prn_json_bad(j, "samples", "%zu samples of %llu runs", count, (unsigned long long)r->latency.count);
        return;
    }
    for (const prn_json_value *e = prn_json_first(array); e; e = prn_json_next(e))
        if (!prn_json_element_i64(j, e, "samples", &samples[i++])) return;
    r->samples_ns = samples;
}

static void read_processes(prn_json_reader *j, const prn_json_value *latency, prony_report *r)
{
    size_t count = 0, i = 0;
    uint64_t left = r->latency.count;
    const prn_json_value *array = prn_json_get_array(j, latency, "process_runs", false, &count);
    uint64_t *runs = array ? prn_json_room(j, count, sizeof *runs) : NULL;
    for (const prn_json_value *e = prn_json_first(array); runs && e && j->status == PRONY_OK; e = prn_json_next(e), i++) {
        int64_t value = 0;
        if (!prn_json_element_i64(j, e, "process_runs", &value)) return;
        runs[i] = value > 0 ? (uint64_t)value : 0;
        if (runs[i] == 0 || runs[i] > left) {
            prn_json_bad(j, "process_runs", "runs of each process are expected, %llu together",
                         (unsigned long long)r->latency.count);
            return;
        }
        left -= runs[i];
    }
    if (!runs || j->status != PRONY_OK) return;
    if (left || count == 0) {
        prn_json_bad(j, "process_runs", "%llu of %llu runs belong to no process", (unsigned long long)left,
                     (unsigned long long)r->latency.count);
        return;
    }
    r->process_runs = runs;
    r->process_count = count;
}

/* Mean to runs, as latency_ns and end_to_end_ns have them. */
static void read_statistics(prn_json_reader *j, const prn_json_value *object, prony_time_stats *t)
{
    size_t count;
    prn_json_get_i64(j, object, "mean", true, &t->mean_ns);
    prn_json_get_i64(j, object, "min", true, &t->min_ns);
    prn_json_get_i64(j, object, "max", true, &t->max_ns);
    prn_json_get_i64(j, object, "std", true, &t->std_ns);
    prn_json_get_i64(j, object, "median", true, &t->median_ns);
    prn_json_get_i64(j, object, "p50", true, &t->p50_ns);
    prn_json_get_i64(j, object, "p90", true, &t->p90_ns);
    prn_json_get_i64(j, object, "p95", true, &t->p95_ns);
    prn_json_get_i64(j, object, "p99", true, &t->p99_ns);
    prn_json_get_i64(j, object, "p999", true, &t->p999_ns);
    read_quantile_flags(j, object, t);
    const prn_json_value *interval = prn_json_get_array(j, object, "median_ci95", true, &count);
    if (interval && count != 2) prn_json_bad(j, "median_ci95", "two ends are expected, and %zu found", count);
    if (interval && count == 2) {
        prn_json_element_i64(j, prn_json_first(interval), "median_ci95", &t->median_ci95_ns[0]);
        prn_json_element_i64(j, prn_json_next(prn_json_first(interval)), "median_ci95", &t->median_ci95_ns[1]);
    }
    prn_json_get_u64(j, object, "runs", true, &t->count);
}

static void read_cost(prn_json_reader *j, const prn_json_value *overhead, prn_report_cost *cost)
{
    size_t count = 0;
    const prn_json_value *paired = prn_json_get_object(j, overhead, "paired", false);
    if (!paired) return;
    prn_json_get_u64(j, paired, "pairs", true, &cost->pairs);
    prn_json_get_i64(j, paired, "on_ns", true, &cost->on_ns);
    prn_json_get_i64(j, paired, "off_ns", true, &cost->off_ns);
    prn_json_get_double(j, paired, "share", true, &cost->share);
    const prn_json_value *interval = prn_json_get_array(j, paired, "share_ci95", true, &count);
    if (interval && count != 2) prn_json_bad(j, "share_ci95", "two ends are expected, and %zu found", count);
    if (!interval || count != 2) return;
    prn_json_element_double(j, prn_json_first(interval), "share_ci95", &cost->share_ci95[0]);
    prn_json_element_double(j, prn_json_next(prn_json_first(interval)), "share_ci95", &cost->share_ci95[1]);
}

static void read_latency(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *latency = prn_json_get_object(j, root, "latency_ns", false);
    r->measured = latency != NULL;
    if (!latency) return;
    prn_read_enter(j, "latency_ns");
    read_statistics(j, latency, &r->latency);
    prn_json_get_bool(j, latency, "warmup_detected", true, &r->warmup_detected);
    prn_json_get_i64(j, latency, "traced_run", false, &r->traced_run_ns);
    prn_json_get_string(j, latency, "stop_reason", false, &r->stop_reason);
    prn_json_get_string(j, latency, "stopped_at", false, &r->stopped_at);
    read_samples(j, latency, r);
    read_processes(j, latency, r);
    prn_read_enter(j, "");
}

static void read_around(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *stats = prn_json_get_object(j, root, "end_to_end_ns", false);
    const prn_json_value *phases = prn_json_get_object(j, root, "phases_ns", false);
    r->has_around = stats != NULL;
    if (!stats) return;
    r->around.preprocess_ns = r->around.postprocess_ns = -1;
    prn_read_enter(j, "phases_ns");
    prn_json_get_i64(j, phases, "preprocess", false, &r->around.preprocess_ns);
    prn_json_get_i64(j, phases, "postprocess", false, &r->around.postprocess_ns);
    prn_read_enter(j, "end_to_end_ns");
    read_statistics(j, stats, &r->around.end_to_end);
    prn_read_enter(j, "");
}

static void read_timeline(prn_json_reader *j, const prn_json_value *memory, prony_memory_report *m)
{
    size_t count, i = 0;
    const prn_json_value *array = prn_json_get_array(j, memory, "timeline", false, &count);
    prony_memory_point *points = prn_json_room(j, count, sizeof *points);
    for (const prn_json_value *e = prn_json_first(array); points && e && j->status == PRONY_OK; e = prn_json_next(e)) {
        snprintf(j->where, sizeof j->where, "memory.timeline[%zu]", i);
        if (!prn_json_element_is_object(j, e, "")) return;
        prn_json_get_u32(j, e, "step", true, &points[i].step);
        prn_json_get_u64(j, e, "live_bytes", true, &points[i++].live_bytes);
    }
    m->timeline = points;
    m->timeline_count = i;
}

static void read_events(prn_json_reader *j, const prn_json_value *memory, prony_memory_report *m)
{
    size_t count, i = 0;
    prn_read_enter(j, "memory");
    const prn_json_value *array = prn_json_get_array(j, memory, "events", false, &count);
    prony_memory_event *events = prn_json_room(j, count, sizeof *events);
    for (const prn_json_value *e = prn_json_first(array); events && e && j->status == PRONY_OK; e = prn_json_next(e)) {
        snprintf(j->where, sizeof j->where, "memory.events[%zu]", i);
        if (!prn_json_element_is_object(j, e, "")) return;
        prony_memory_event *event = &events[i++];
        prn_json_get_bool(j, e, "release", true, &event->release);
        prn_json_get_string(j, e, "owner", true, &event->owner);
        prn_json_get_string(j, e, "tag", false, &event->tag);
        prn_json_get_u64(j, e, "asked_bytes", true, &event->asked_bytes);
        prn_json_get_u64(j, e, "given_bytes", true, &event->given_bytes);
        prn_json_get_u64(j, e, "offset_bytes", true, &event->offset_bytes);
        prn_json_get_u32(j, e, "step", true, &event->step);
    }
    m->events = events;
    m->event_count = i;
}

static void read_held(prn_json_reader *j, const prn_json_value *memory, prony_memory_report *m)
{
    prony_memory_held *held = &m->held;
    const prn_json_value *object = prn_json_get_object(j, memory, "held", false);
    if (!object) return;
    prn_read_enter(j, "memory.held");
    m->held_known = true;
    prn_json_get_u64(j, object, "resident_bytes", true, &held->resident_bytes);
    prn_json_get_u64(j, object, "file_bytes", true, &held->file_bytes);
    prn_json_get_u64(j, object, "packed_bytes", true, &held->packed_bytes);
    prn_json_get_u64(j, object, "arena_bytes", true, &held->arena_bytes);
    prn_json_get_u64(j, object, "input_bytes", true, &held->input_bytes);
    prn_json_get_u64(j, object, "library_bytes", true, &held->library_bytes);
    prn_json_get_u64(j, object, "other_bytes", true, &held->other_bytes);
    prn_read_enter(j, "memory");
}

static void read_memory(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *memory = prn_json_get_object(j, root, "memory", false);
    prony_memory_report *m = &r->memory;
    r->has_memory = memory != NULL;
    if (!memory) return;
    prn_read_enter(j, "memory");
    prn_json_get_u64(j, memory, "weight_bytes", true, &m->weight_bytes);
    prn_json_get_u64(j, memory, "packed_weight_bytes", true, &m->packed_weight_bytes);
    prn_json_get_u64(j, memory, "planned_bytes", true, &m->planned_bytes);
    prn_json_get_u64(j, memory, "lower_bound_bytes", true, &m->lower_bound_bytes);
    prn_json_get_double(j, memory, "plan_gap", true, &m->plan_gap);
    prn_json_get_u64(j, memory, "peak_live_bytes", true, &m->peak_live_bytes);
    prn_json_get_u64(j, memory, "average_live_bytes", true, &m->average_live_bytes);
    prn_json_get_u64(j, memory, "scratch_bytes", true, &m->scratch_bytes);
    prn_json_get_double(j, memory, "internal_fragmentation", true, &m->internal_fragmentation);
    prn_json_get_double(j, memory, "external_fragmentation", true, &m->external_fragmentation);
    prn_json_get_u64(j, memory, "allocations", true, &m->allocations);
    prn_json_get_u64(j, memory, "releases", true, &m->releases);
    m->heap_calls_known = prn_json_get_u64(j, memory, "heap_calls_per_run", false, &m->heap_calls_per_run);
    m->library_heap_calls_known =
        prn_json_get_u64(j, memory, "library_heap_calls_per_run", false, &m->library_heap_calls_per_run);
    prn_json_get_u64(j, memory, "peak_rss_bytes", false, &m->peak_rss_bytes);
    read_held(j, memory, m);
    read_timeline(j, memory, m);
    read_events(j, memory, m);
    prn_read_enter(j, "");
}

static const double *read_use(prn_json_reader *j, const prn_json_value *core, size_t points)
{
    size_t count, i = 0;
    const prn_json_value *array = prn_json_get_array(j, core, "use", true, &count);
    double *use = prn_json_room(j, count, sizeof *use);
    if (use && count != points) prn_json_bad(j, "use", "%zu shares in %zu intervals", count, points);
    for (const prn_json_value *e = prn_json_first(array); use && e; e = prn_json_next(e))
        if (!prn_json_element_double(j, e, "use", &use[i++])) return NULL;
    return use;
}

static void read_cores(prn_json_reader *j, const prn_json_value *cpu, prony_report *r)
{
    size_t points, count, i = 0;
    const prn_json_value *array = prn_json_get_array(j, cpu, "core_times_ns", false, &points);
    int64_t *times = prn_json_room(j, points, sizeof *times);
    for (const prn_json_value *e = prn_json_first(array); times && e; e = prn_json_next(e))
        if (!prn_json_element_i64(j, e, "core_times_ns", &times[i++])) return;
    array = prn_json_get_array(j, cpu, "cores", points > 0, &count);
    prony_core_row *rows = prn_json_room(j, count, sizeof *rows);
    for (const prn_json_value *e = prn_json_first(array); rows && e && j->status == PRONY_OK; e = prn_json_next(e)) {
        snprintf(j->where, sizeof j->where, "cpu.cores[%zu]", r->core_count);
        if (!prn_json_element_is_object(j, e, "")) return;
        prony_core_row *row = &rows[r->core_count++];
        prn_json_get_int(j, e, "core", true, &row->core);
        prn_json_get_double(j, e, "mean", true, &row->mean);
        row->use = read_use(j, e, points);
    }
    r->cores = rows;
    r->core_times_ns = times;
    r->core_points = points;
}

static void read_workers(prn_json_reader *j, const prn_json_value *cpu, prn_report_cpu *c)
{
    size_t count = 0;
    const prn_json_value *list = prn_json_get_array(j, cpu, "workers", false, &count);
    prn_worker_row *rows = list ? prn_pool_alloc(j->pool, count + 1, sizeof *rows) : NULL;
    if (list && !rows) j->status = prn_no_memory(j->error);
    for (const prn_json_value *e = prn_json_first(list); rows && e && j->status == PRONY_OK; e = prn_json_next(e)) {
        if (!prn_json_element_is_object(j, e, "workers")) return;
        prn_json_get_i64(j, e, "busy_ns", true, &rows[c->worker_count].busy_ns);
        prn_json_get_i64(j, e, "wait_ns", true, &rows[c->worker_count++].wait_ns);
    }
    c->workers = rows;
}

static void read_cpu(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    prn_report_cpu *c = &r->cpu;
    const prn_json_value *cpu = prn_json_get_object(j, root, "cpu", false);
    prn_read_enter(j, "cpu");
    if (cpu) {
        prn_json_get_double(j, cpu, "utilisation", true, &c->utilisation);
        prn_json_get_i64(j, cpu, "user_ns", true, &c->user_ns);
        prn_json_get_i64(j, cpu, "system_ns", true, &c->system_ns);
        prn_json_get_i64(j, cpu, "voluntary_switches", true, &c->voluntary_switches);
        prn_json_get_i64(j, cpu, "involuntary_switches", true, &c->involuntary_switches);
        read_workers(j, cpu, c);
        read_cores(j, cpu, r);
    }
    prn_read_enter(j, "");
    const prn_json_value *io = prn_json_get_object(j, root, "io", false);
    prn_read_enter(j, "io");
    if (io) {
        prn_json_get_u64(j, io, "read_bytes", true, &c->read_bytes);
        prn_json_get_u64(j, io, "written_bytes", true, &c->written_bytes);
        prn_json_get_u64(j, io, "read_calls", true, &c->read_calls);
        prn_json_get_u64(j, io, "write_calls", true, &c->write_calls);
    }
    prn_read_enter(j, "");
}

static void read_disturbance(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    prn_disturbance *d = &r->disturbance;
    const char *verdict = "";
    const prn_json_value *object = prn_json_get_object(j, root, "disturbance", false);
    *d = (prn_disturbance){.others = -1, .steal = -1, .waited = -1};
    if (!object) return;
    prn_read_enter(j, "disturbance");
    r->has_disturbance = true;
    prn_json_get_double(j, object, "others_share", false, &d->others);
    prn_json_get_double(j, object, "steal_share", false, &d->steal);
    prn_json_get_double(j, object, "waited_share", false, &d->waited);
    prn_json_get_i64(j, object, "involuntary_switches", true, &d->involuntary_switches);
    prn_json_get_string(j, object, "verdict", true, &verdict);
    for (int v = PRN_LOAD_UNKNOWN; v <= PRN_LOAD_BUSY; v++)
        if (verdict && strcmp(verdict, prn_verdict_name((prn_verdict)v)) == 0) d->verdict = (prn_verdict)v;
    prn_read_enter(j, "");
}

static void read_figure(prn_json_reader *j, const prn_json_value *object, prony_report *r, int64_t samples)
{
    const char *metric = "";
    double value = 0;
    prn_json_get_string(j, object, "metric", true, &metric);
    prn_json_get_double(j, object, "value", true, &value);
    if (j->status == PRONY_OK) j->status = prn_report_add_evaluation(r, metric, value, samples, j->error);
}

static void read_evaluation(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *evaluation = prn_json_get_object(j, root, "evaluation", false);
    int64_t samples = 0;
    size_t count;
    if (!evaluation) return;
    prn_read_enter(j, "evaluation");
    prn_json_get_i64(j, evaluation, "samples", true, &samples);
    read_figure(j, evaluation, r, samples);
    const prn_json_value *further = prn_json_get_array(j, evaluation, "further", false, &count);
    for (const prn_json_value *e = prn_json_first(further); e && j->status == PRONY_OK; e = prn_json_next(e))
        if (prn_json_element_is_object(j, e, "further")) read_figure(j, e, r, samples);
    prn_read_enter(j, "");
}

static void read_trust(prn_json_reader *j, const prn_json_value *root, prony_report *r)
{
    const prn_json_value *coverage = prn_json_get_object(j, root, "coverage", false);
    r->time_share = -1;
    prn_read_enter(j, "coverage");
    if (coverage) {
        prn_json_get_double(j, coverage, "time_share", false, &r->time_share);
        prn_read_strings(j, coverage, "uncounted_ops", &r->uncounted, &r->uncounted_count);
        prn_json_get_double(j, coverage, "uncounted_time_share", false, &r->uncounted_time_share);
    }
    prn_read_enter(j, "");
    const prn_json_value *overhead = prn_json_get_object(j, root, "overhead", false);
    prn_read_enter(j, "overhead");
    if (overhead) {
        prn_json_get_double(j, overhead, "ns_per_event", true, &r->overhead_ns_per_event);
        prn_json_get_double(j, overhead, "share", true, &r->overhead_share);
        prn_json_get_u64(j, overhead, "dropped_events", true, &r->dropped_events);
        read_cost(j, overhead, &r->cost);
    }
    prn_read_enter(j, "");
    const prn_json_value *counters = prn_json_get_object(j, root, "counters", false);
    prn_read_enter(j, "counters");
    if (counters) {
        r->counters_missing = "";
        prn_json_get_string(j, counters, "missing", false, &r->counters_missing);
        prn_json_get_u64(j, counters, "runs", false, &r->counter_runs);
        prn_json_get_i64(j, counters, "reading_ns", false, &r->counter_read_ns);
    }
    prn_read_enter(j, "");
    prn_read_strings(j, root, "unsupported_operators", &r->unsupported, &r->unsupported_count);
    read_evaluation(j, root, r);
    prn_json_get_string(j, root, "output_sha256", false, &r->output_sha256);
}

void prn_read_figures(prn_report_reader *reader, const prn_json_value *root)
{
    prn_json_reader *j = &reader->json;
    read_totals(j, root, reader->report);
    read_phases(j, root, &reader->report->phases);
    read_latency(j, root, reader->report);
    read_around(j, root, reader->report);
    read_memory(j, root, reader->report);
    read_cpu(j, root, reader->report);
    read_disturbance(j, root, reader->report);
    read_trust(j, root, reader->report);
}
