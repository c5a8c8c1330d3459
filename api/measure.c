/* prony_session_profile: warms up, runs until the median is known or the time is up, and builds the report. Everything that
 * is measured is stored in arrays reserved before the clock starts. */
#include "api/report_build.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/sha256.h"
#include "profiler/stats.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SECONDS 5.0
#define MIN_RUNS 10
#define MAX_WARMUP_RUNS 1000
/* Share of the time budget that detecting the steady state may take. */
#define WARMUP_SHARE 0.3
/* Stored samples (latencies and operator times) are bounded; a run count that needs more is refused or stopped at. */
#define MAX_SAMPLE_BYTES (UINT64_C(512) << 20)

typedef struct recording {
    prony_session *session;
    const prony_profile_options *options;
    int64_t *latency_ns;
    int64_t *durations_ns; /* runs x operators; NULL without stamps */
    int64_t *sorted_ns;
    size_t runs, capacity, operators;
    int64_t warmup_runs;
    bool warmup_detected;
    const char *stop_reason;
    double max_seconds;
    prn_usage before, after;
    int64_t wall_ns;
    uint64_t own_heap_calls, all_heap_calls; /* in the runs of the recording */
    bool all_heap_known;
} recording;

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static prony_status grow(recording *r, size_t need, prony_error *error)
{
    if (need <= r->capacity) return PRONY_OK;
    size_t capacity = r->capacity ? r->capacity * 2 : 256;
    if (capacity < need) capacity = need;
    if ((uint64_t)capacity * (r->operators + 2) * sizeof(int64_t) > MAX_SAMPLE_BYTES)
        return prn_fail(error, PRONY_LIMIT, "%zu runs of %zu operators exceed the memory for samples", capacity,
                        r->operators);
    int64_t *latency = prn_realloc(r->latency_ns, capacity, sizeof *latency);
    if (!latency) return prn_no_memory(error);
    r->latency_ns = latency;
    int64_t *sorted = prn_realloc(r->sorted_ns, capacity, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    r->sorted_ns = sorted;
    if (r->operators) {
        int64_t *durations = prn_realloc(r->durations_ns, capacity, r->operators * sizeof *durations);
        if (!durations) return prn_no_memory(error);
        r->durations_ns = durations;
    }
    r->capacity = capacity;
    return PRONY_OK;
}

static prony_status timed_run(prony_session *session, int64_t *latency_ns, prony_error *error)
{
    int64_t start = prn_now_ns();
    prony_status status = prony_session_run(session, error);
    *latency_ns = prn_now_ns() - start;
    return status;
}

static prony_status warm_up(recording *r, prony_error *error)
{
    int64_t begin = prn_now_ns(), budget = (int64_t)(r->max_seconds * WARMUP_SHARE * 1e9);
    int64_t wanted = r->options->warmup_runs;
    PRN_TRY(grow(r, MAX_WARMUP_RUNS, error));
    for (;;) {
        size_t n = (size_t)r->warmup_runs;
        if (wanted >= 0 && r->warmup_runs >= wanted) return PRONY_OK;
        if (wanted < 0 && n >= 5 && prn_stats_warm(r->latency_ns, n)) {
            r->warmup_detected = true;
            return PRONY_OK;
        }
        if (wanted < 0 && (n >= MAX_WARMUP_RUNS || (n >= 1 && prn_now_ns() - begin > budget))) return PRONY_OK;
        PRN_TRY(timed_run(r->session, &r->latency_ns[n < MAX_WARMUP_RUNS ? n : 0], error));
        r->warmup_runs++;
    }
}

/* Half the width of the median's 95 % interval over the median. */
static double median_error(recording *r)
{
    int64_t interval[2];
    memcpy(r->sorted_ns, r->latency_ns, r->runs * sizeof *r->sorted_ns);
    qsort(r->sorted_ns, r->runs, sizeof *r->sorted_ns, by_value);
    prn_stats_median_interval(r->sorted_ns, r->runs, interval);
    int64_t median = r->sorted_ns[r->runs / 2];
    return median > 0 ? (double)(interval[1] - interval[0]) / 2 / (double)median : 0;
}

static void keep_durations(recording *r)
{
    const prn_trace *trace = &r->session->trace;
    int64_t *row = r->durations_ns + r->runs * r->operators;
    memset(row, 0, r->operators * sizeof *row);
    for (size_t e = 0; e < trace->count; e++)
        row[trace->events[e].step] += trace->events[e].end_ns - trace->events[e].start_ns;
}

static prony_status record(recording *r, prony_error *error)
{
    int64_t begin = prn_now_ns(), reported = begin;
    size_t next_check = MIN_RUNS;
    double known = 1;
    PRN_TRY(grow(r, r->options->runs > 0 ? (size_t)r->options->runs : 256, error));
    prn_usage_read(&r->before);
    while (!r->stop_reason) {
        prony_error full = {0};
        if (grow(r, r->runs + 1, &full) != PRONY_OK) {
            r->stop_reason = "memory for samples is full";
            break;
        }
        uint64_t own = prn_heap_calls(), all = 0, all_after = 0;
        r->all_heap_known = prn_all_heap_calls(&all);
        PRN_TRY(timed_run(r->session, &r->latency_ns[r->runs], error));
        (void)prn_all_heap_calls(&all_after);
        r->own_heap_calls += prn_heap_calls() - own;
        r->all_heap_calls += all_after - all;
        if (r->durations_ns) keep_durations(r);
        r->runs++;
        int64_t now = prn_now_ns();
        double seconds = (double)(now - begin) * 1e-9;
        if (r->options->runs > 0) {
            if (r->runs >= (size_t)r->options->runs) r->stop_reason = "runs done";
        } else if (r->runs >= next_check) {
            known = median_error(r);
            next_check = r->runs + r->runs / 8 + 1;
            if (known <= 0.01 && seconds > 0.1) r->stop_reason = "median known to 1 %";
        }
        if (!r->stop_reason && r->options->runs <= 0 && seconds > r->max_seconds && r->runs >= MIN_RUNS)
            r->stop_reason = "time is up";
        if (r->options->progress && now - reported > 100000000) {
            r->options->progress(r->options->progress_user, (int64_t)r->runs, seconds, known);
            reported = now;
        }
    }
    r->wall_ns = prn_now_ns() - begin;
    prn_usage_read(&r->after);
    return PRONY_OK;
}

/* What one event costs: the stamps and the write, measured on this machine now. */
static double event_cost_ns(void)
{
    enum { ROUNDS = 20000 };
    prn_event event = {0};
    volatile int64_t keep = 0;
    int64_t begin = prn_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t all = 0, own = prn_heap_calls();
        (void)prn_all_heap_calls(&all);
        event.start_ns = prn_now_ns();
        event.end_ns = prn_now_ns();
        (void)prn_all_heap_calls(&all);
        event.library_heap_calls = (uint32_t)(all - own);
        keep = event.end_ns;
    }
    (void)keep;
    return (double)(prn_now_ns() - begin) / ROUNDS;
}

/* Strings and items by what they say, not by where they lie. */
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
    char *text = prn_pool_alloc(&report->pool, 65, 1);
    if (!text) return prn_no_memory(error);
    prn_sha256_init(&hash);
    for (size_t k = 0; k < current->program->output_count; k++)
        hash_value(&hash, &current->plan->values[current->plan->outputs[k]]->value);
    prn_sha256_text(&hash, text);
    report->output_sha256 = text;
    return PRONY_OK;
}

static void fill_measured(prony_report *report, const recording *r)
{
    const prn_cached_plan *current = r->session->current;
    report->phases.bind_ns = current->bind_ns;
    report->phases.rewrite_ns = current->rewrite_ns;
    report->phases.plan_ns = current->plan_ns;
    report->phases.first_run_ns = current->first_run_ns;
    report->config.warmup_runs = r->warmup_runs;
    report->config.runs = (int64_t)r->runs;
    report->config.seed = r->session->seed;
    report->config.seed_known = r->session->seed_known;
    report->warmup_detected = r->warmup_detected;
    report->stop_reason = r->stop_reason;
    report->dropped_events = r->session->trace.dropped;
    prn_report_cpu *cpu = &report->cpu;
    cpu->user_ns = r->after.user_ns - r->before.user_ns;
    cpu->system_ns = r->after.system_ns - r->before.system_ns;
    cpu->voluntary_switches = r->after.voluntary_switches - r->before.voluntary_switches;
    cpu->involuntary_switches = r->after.involuntary_switches - r->before.involuntary_switches;
    cpu->read_bytes = r->after.read_bytes - r->before.read_bytes;
    cpu->written_bytes = r->after.written_bytes - r->before.written_bytes;
    cpu->read_calls = r->after.read_calls - r->before.read_calls;
    cpu->write_calls = r->after.write_calls - r->before.write_calls;
    if (r->wall_ns > 0)
        cpu->utilisation = (double)(cpu->user_ns + cpu->system_ns) / (double)r->wall_ns / r->session->threads;
    prony_memory_report *memory = &report->memory;
    memory->peak_rss_bytes = r->after.peak_rss_bytes;
    memory->heap_calls_known = true;
    memory->heap_calls_per_run = r->own_heap_calls / r->runs;
    memory->library_heap_calls_known = r->all_heap_known;
    if (r->all_heap_known && r->all_heap_calls > r->own_heap_calls)
        memory->library_heap_calls_per_run = (r->all_heap_calls - r->own_heap_calls) / r->runs;
}

static prony_status fill_times(prony_report *report, recording *r, prony_error *error)
{
    if (r->durations_ns) {
        PRN_TRY(prn_report_fill_times(report, r->durations_ns, r->latency_ns, r->runs, error));
        report->overhead_ns_per_event = event_cost_ns();
        if (report->latency.median_ns > 0)
            report->overhead_share =
                report->overhead_ns_per_event * (double)r->operators / (double)report->latency.median_ns;
        const prn_trace *trace = &r->session->trace;
        for (size_t e = 0; e < trace->count; e++)
            report->operators[trace->events[e].step].library_heap_calls += trace->events[e].library_heap_calls;
        return PRONY_OK;
    }
    return prn_report_fill_latency(report, r->latency_ns, r->runs, error);
}

static prony_status profile(prony_report **out, recording *r, prony_error *error)
{
    prony_session *session = r->session;
    PRN_TRY(prony_session_prepare(session, error));
    r->operators = session->options.no_profile ? 0 : session->current->plan->step_count;
    PRN_TRY(warm_up(r, error));
    PRN_TRY(record(r, error));
    prony_report *report;
    PRN_TRY(prn_report_build(&report, session->model, session->current->program, session->current->plan,
                             &session->options, session->threads, error));
    fill_measured(report, r);
    prony_status status = fill_times(report, r, error);
    if (status == PRONY_OK) status = prn_report_fill_modules(report, error);
    if (status == PRONY_OK) status = hash_outputs(report, session, error);
    if (status == PRONY_OK)
        *out = report;
    else
        prony_report_release(report);
    return status;
}

prony_status prony_session_profile(prony_report **out, prony_session *session, const prony_profile_options *options,
                                   prony_error *error)
{
    static const prony_profile_options defaults = PRONY_PROFILE_OPTIONS_INIT;
    if (!out || !session)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_profile: an argument is NULL");
    if (!options) options = &defaults;
    if (options->struct_size < sizeof *options || options->runs < 0 || !(options->max_seconds >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "profile options: struct_size not set, or a negative count");
    recording r = {.session = session, .options = options};
    r.max_seconds = options->max_seconds > 0 ? options->max_seconds : DEFAULT_SECONDS;
    prony_status status = profile(out, &r, error);
    prn_free(r.latency_ns);
    prn_free(r.durations_ns);
    prn_free(r.sorted_ns);
    return status;
}
