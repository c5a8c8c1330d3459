/* prony_session_profile: warms up, runs until the median is known or the time is up, and builds the report. All
 * measurements are stored in arrays reserved before the clock starts. */
#include "profiler/measure/measure.h"
#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/option_struct.h"
#include "profiler/measure/device_sensors.h"
#include "profiler/statistics/statistics.h"
#include "profiler/measure/report_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lengths and shares below were chosen without measurement. */
#define DEFAULT_SECONDS 5.0
#define MOST_SECONDS 1e9 /* 31 years: nanoseconds from now until then fit 63 bits; infinity means as long as it takes */
#define FIRST_CHECK 10   /* fewest runs before the median can count as known */
#define FIRST_RUNS 256   /* initial capacity */
#define MAX_WARMUP_RUNS 1000
#define ORDER_SEED UINT64_C(0x50524f4e59)
enum { FEWEST_WATCHED = 5, MOST_WATCHED = 50 };
#define WATCH_SHARE 0.1 /* of the time */
#define BLOCK_RUNS 4    /* counted ones, when sessions take turns */
/* Share of the time budget that detecting the steady state may take. */
#define WARMUP_SHARE 0.3
/* Bound on stored samples (latencies and operator times). A run count that needs more is refused; otherwise measuring
 * stops there. */
#define MAX_SAMPLE_BYTES (UINT64_C(512) << 20)

static bool measure_has_phases(const prn_recording *r)
{
    return r->options->preprocess || r->options->postprocess;
}

/* Number of stamped steps in subgraphs. */
static size_t nested_steps(const prn_recording *r)
{
    return r->operators ? r->nested->step_count : 0;
}

static size_t most_runs(const prn_recording *r)
{
    return (size_t)(MAX_SAMPLE_BYTES / ((r->operators + nested_steps(r) + 2) * sizeof(int64_t)));
}

/* Grows all arrays of samples together, at most to MAX_SAMPLE_BYTES. After a failure every array still has the old
 * capacity. */
static prony_status measure_grow(prn_recording *r, size_t need, prony_error *error)
{
    if (need <= r->capacity) return PRONY_OK;
    size_t capacity = r->capacity ? r->capacity * 2 : need;
    if (capacity < need) capacity = need;
    if (capacity > most_runs(r)) capacity = most_runs(r);
    if (capacity < need)
        return prn_fail(error, PRONY_LIMIT, "%zu runs of %zu operators exceed the memory for samples", need,
                        r->operators);
    int64_t *latency = prn_realloc(r->latency_ns, capacity, sizeof *latency);
    if (!latency) return prn_no_memory(error);
    r->latency_ns = latency;
    int64_t *sorted = prn_realloc(r->sorted_ns, capacity, sizeof *sorted);
    if (!sorted) return prn_no_memory(error);
    r->sorted_ns = sorted;
    if (measure_has_phases(r)) {
        int64_t *before = prn_realloc(r->before_ns, capacity, sizeof *before);
        if (!before) return prn_no_memory(error);
        r->before_ns = before;
        int64_t *after = prn_realloc(r->after_ns, capacity, sizeof *after);
        if (!after) return prn_no_memory(error);
        r->after_ns = after;
    }
    if (r->operators) {
        int64_t *durations = prn_realloc(r->durations_ns, capacity, r->operators * sizeof *durations);
        if (!durations) return prn_no_memory(error);
        r->durations_ns = durations;
    }
    if (nested_steps(r)) {
        int64_t *nested = prn_realloc(r->nested_ns, capacity, nested_steps(r) * sizeof *nested);
        if (!nested) return prn_no_memory(error);
        r->nested_ns = nested;
    }
    r->capacity = capacity;
    return PRONY_OK;
}

/* Reserves room for all requested runs, or for some if time may end them before. */
static prony_status measure_make_room(prn_recording *r, prony_error *error)
{
    const prony_profile_options *options = r->options;
    if (options->runs > 0 && (options->max_seconds <= 0 || options->runs < FIRST_RUNS))
        return measure_grow(r, (size_t)options->runs, error);
    size_t most = most_runs(r);
    return measure_grow(r, most < 1 || most > FIRST_RUNS ? FIRST_RUNS : most, error);
}

static prony_status measure_warm_up(prn_recording *r, prony_error *error)
{
    int64_t begin = prn_now_ns(), budget = (int64_t)(r->max_seconds * WARMUP_SHARE * 1e9);
    int64_t wanted = r->options->warmup_runs, latency_ns[MAX_WARMUP_RUNS];
    for (;;) {
        size_t n = (size_t)r->warmup_runs;
        if (wanted >= 0 && r->warmup_runs >= wanted) return PRONY_OK;
        if (wanted < 0 && n >= 5 && prn_stats_warm(latency_ns, n)) {
            r->warmup_detected = true;
            return PRONY_OK;
        }
        if (wanted < 0 && (n >= MAX_WARMUP_RUNS || (n >= 1 && prn_now_ns() - begin > budget))) return PRONY_OK;
        PRN_TRY(prn_recording_run(r, &latency_ns[n < MAX_WARMUP_RUNS ? n : 0], error));
        r->expected_ns = latency_ns[n < MAX_WARMUP_RUNS ? n : 0];
        r->warmup_runs++;
    }
}

/* Half the width of the median's 95 % interval over the median. */
static double median_error(prn_recording *r)
{
    int64_t interval[2];
    memcpy(r->sorted_ns, r->latency_ns, r->runs * sizeof *r->sorted_ns);
    qsort(r->sorted_ns, r->runs, sizeof *r->sorted_ns, prn_compare_i64);
    prn_stats_median_interval(r->sorted_ns, r->runs, interval);
    int64_t median = r->sorted_ns[r->runs / 2];
    return median > 0 ? (double)(interval[1] - interval[0]) / 2 / (double)median : 0;
}

static int measure_by_start(const void *left, const void *right)
{
    const prn_event *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Adds each worker's busy time, and the time in which any worked: the union of all operators' intervals. */
static void keep_coverage(prn_recording *r)
{
    const prn_trace *trace = &r->session->trace;
    int64_t end = INT64_MIN;
    memcpy(r->in_order, trace->events, trace->count * sizeof *r->in_order);
    qsort(r->in_order, trace->count, sizeof *r->in_order, measure_by_start);
    for (size_t e = 0; e < trace->count; e++) {
        const prn_event *event = &r->in_order[e];
        r->worker_busy_ns[event->worker] += event->end_ns - event->start_ns;
        if (event->end_ns <= end) continue;
        r->covered_ns += event->end_ns - (event->start_ns > end ? event->start_ns : end);
        end = event->end_ns;
    }
}

static void keep_durations(prn_recording *r)
{
    const prn_trace *trace = &r->session->trace;
    int64_t *row = r->durations_ns + r->runs * r->operators;
    memset(row, 0, r->operators * sizeof *row);
    for (size_t e = 0; e < trace->count; e++)
        row[trace->events[e].step] += trace->events[e].end_ns - trace->events[e].start_ns;
    if (r->worker_busy_ns) keep_coverage(r);
    if (!r->nested_ns) return;
    row = r->nested_ns + r->runs * r->nested->step_count;
    for (size_t i = 0; i < r->nested->step_count; i++) row[i] = r->nested->tallies[i].time_ns;
}

static void add_usage(prn_usage *sum, const prn_usage *before, const prn_usage *after)
{
    sum->time_ns += after->time_ns - before->time_ns;
    sum->user_ns += after->user_ns - before->user_ns;
    sum->system_ns += after->system_ns - before->system_ns;
    sum->voluntary_switches += after->voluntary_switches - before->voluntary_switches;
    sum->involuntary_switches += after->involuntary_switches - before->involuntary_switches;
    sum->read_bytes += after->read_bytes - before->read_bytes;
    sum->written_bytes += after->written_bytes - before->written_bytes;
    sum->read_calls += after->read_calls - before->read_calls;
    sum->write_calls += after->write_calls - before->write_calls;
    sum->peak_rss_bytes = after->peak_rss_bytes;
}

/* One measured run, with room reserved. */
static prony_status measure_run(prn_recording *r, prony_error *error)
{
    int64_t before_ns, after_ns;
    PRN_TRY(prn_recording_phase(r, r->options->preprocess, &before_ns, error));
    uint64_t own = prn_heap_calls(), all = 0, all_after = 0;
    r->all_heap_known = prn_all_heap_calls(&all);
    PRN_TRY(prn_recording_timed(r, &r->latency_ns[r->runs], error));
    (void)prn_all_heap_calls(&all_after);
    r->own_heap_calls += prn_heap_calls() - own;
    r->all_heap_calls += all_after - all;
    prn_nested_read(r->nested);
    if (r->durations_ns) keep_durations(r);
    prn_device_sums_add(r->device_sums, r->cached->plan, r->latency_ns[r->runs]);
    PRN_TRY(prn_recording_phase(r, r->options->postprocess, &after_ns, error));
    if (r->before_ns) {
        r->before_ns[r->runs] = before_ns;
        r->after_ns[r->runs] = after_ns;
    }
    r->runs++;
    return PRONY_OK;
}

/* A turn of one of several sessions: an uncounted run that refills the caches, then counted ones. */
static prony_status measure_run_block(prn_recording *r, size_t runs, prony_error *error)
{
    prn_usage before, after;
    prn_pin pin;
    int64_t uncounted;
    prn_pin_begin(&pin, r->session->affinity);
    prony_status status = prn_recording_run(r, &uncounted, error);
    prn_usage_begin(&before);
    for (size_t i = 0; i < runs && status == PRONY_OK; i++) status = measure_run(r, error);
    prn_usage_end(&after);
    add_usage(&r->usage, &before, &after);
    prn_pin_end(&pin);
    return status;
}

/* `runs` of every session, in a random order for each round, so that changes of the machine affect all of them. */
static prony_status measure_run_round(prn_recording *all, size_t count, size_t runs, uint64_t *random,
                                      prony_error *error)
{
    if (count == 1) return measure_run(all, error);
    for (size_t i = 0; i < count; i++) all[i].turn = i;
    for (size_t i = count - 1; i > 0; i--) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t other = (size_t)((*random >> 33) % (i + 1)), turn = all[i].turn;
        all[i].turn = all[other].turn;
        all[other].turn = turn;
    }
    for (size_t i = 0; i < count; i++) PRN_TRY(measure_run_block(&all[all[i].turn], runs, error));
    return PRONY_OK;
}

/* Number of counted runs in the next round. */
static size_t next_runs(const prn_recording *all, size_t count)
{
    size_t wanted = all->options->runs > 0 ? (size_t)all->options->runs - all->runs : SIZE_MAX,
           most = count == 1 ? 1 : BLOCK_RUNS;
    return wanted < most ? wanted : most;
}

typedef struct recording_clock {
    int64_t begin_ns, reported_ns;
    size_t next_check;
    double known; /* relative error of the least known median; NaN: not known yet */
    int64_t looked_ns;
} recording_clock;

/* Checks ten times a second, between runs, that mapped files have not changed. */
static prony_status look_at_files(const prn_recording *all, size_t count, recording_clock *clock, prony_error *error)
{
    int64_t now = prn_now_ns();
    if (now - clock->looked_ns < 100000000) return PRONY_OK;
    for (size_t i = 0; i < count; i++) PRN_TRY(prn_model_unchanged(all[i].session->model->file, error));
    clock->looked_ns = now;
    return PRONY_OK;
}

/* The reason to stop after this round; NULL: continue. */
static const char *reason_to_stop(prn_recording *all, size_t count, recording_clock *clock)
{
    const prony_profile_options *options = all->options;
    int64_t now = prn_now_ns();
    double seconds = (double)(now - clock->begin_ns) * 1e-9;
    const char *reason = NULL;
    if (options->runs > 0) {
        if (all->runs >= (size_t)options->runs) reason = "runs done";
    } else if (all->runs >= clock->next_check) {
        clock->known = 0;
        for (size_t i = 0; i < count; i++) {
            double known = median_error(&all[i]);
            if (known > clock->known) clock->known = known;
        }
        clock->next_check = all->runs + all->runs / 8 + 1;
        if (clock->known <= 0.01 && seconds > 0.1) reason = "median known to 1 %";
    }
    bool limited = options->runs <= 0 || options->max_seconds > 0;
    if (!reason && limited && seconds > all->max_seconds * (double)count) reason = "time is up";
    if (options->progress && now - clock->reported_ns > 100000000) {
        options->progress(options->progress_user, (int64_t)all->runs, seconds, clock->known);
        clock->reported_ns = now;
    }
    return reason;
}

/* Measures rounds of all sessions until a reason to stop. Arrays grow between rounds, never inside of one. */
static prony_status record(prn_recording *all, size_t count, prony_error *error)
{
    recording_clock clock = {all->begin_ns, prn_now_ns(), FIRST_CHECK, NAN, prn_now_ns()};
    uint64_t random = ORDER_SEED;
    const char *reason = NULL;
    prn_usage before, after;
    prn_load_state load_before, load_after;
    prony_status status = PRONY_OK;
    for (size_t i = 0; i < count; i++) PRN_TRY(measure_make_room(&all[i], error));
    const prn_cpu_mask *mask = count == 1 ? prn_session_mask(all->session) : NULL;
    if (count == 1) prn_core_recorder_begin(&all->cores, prn_now_ns(), mask);
    prn_load_state_read(&load_before, mask);
    prn_usage_begin(&before);
    while (!reason) {
        prony_error full = {0};
        size_t runs = next_runs(all, count);
        for (size_t i = 0; i < count && !reason; i++)
            if (measure_grow(&all[i], all[i].runs + runs, &full) != PRONY_OK) reason = "memory for samples is full";
        if (reason) break;
        status = measure_run_round(all, count, runs, &random, error);
        if (status == PRONY_OK) status = look_at_files(all, count, &clock, error);
        if (status != PRONY_OK) break;
        if (count == 1) prn_core_recorder_look(&all->cores, prn_now_ns(), false);
        reason = reason_to_stop(all, count, &clock);
    }
    prn_usage_end(&after);
    prn_load_state_read(&load_after, mask);
    if (count == 1) {
        prn_core_recorder_look(&all->cores, prn_now_ns(), true);
        add_usage(&all->usage, &before, &after);
    }
    for (size_t i = 0; i < count; i++) {
        prn_disturbance_between(&all[i].disturbance, &load_before, &load_after);
        all[i].stop_reason = reason;
    }
    return status;
}

/* Reserves room for the times of several workers. */
static prony_status watch_workers(prn_recording *r, prony_error *error)
{
    if (r->session->workers == 1 || !r->operators) return PRONY_OK;
    r->worker_busy_ns = prn_calloc((size_t)r->session->workers, sizeof *r->worker_busy_ns);
    r->in_order = prn_calloc(r->operators, sizeof *r->in_order);
    return r->worker_busy_ns && r->in_order ? PRONY_OK : prn_no_memory(error);
}

/* Additional runs that trace every thread's share of each operator, because so many clock readings would increase the
 * latency of small models. At least one run, at most as many as counted. */
static prony_status watch_threads(prn_recording *r, prony_error *error)
{
    prn_trace *trace = &r->session->trace;
    if (!r->options->trace_threads || !r->operators) return PRONY_OK;
    int members = r->session->team ? prn_thread_pool_size(r->session->team) + 1 : r->session->threads;
    size_t runs = r->runs / 10 < FEWEST_WATCHED ? FEWEST_WATCHED : r->runs / 10;
    if (runs > MOST_WATCHED) runs = MOST_WATCHED;
    if (runs > r->runs) runs = r->runs;
    PRN_TRY(prn_thread_use_create(&r->team_use, r->operators, members, error));
    trace->shares = r->shares = prn_calloc(r->operators * (size_t)members, sizeof *r->shares);
    if (!r->shares) return prn_no_memory(error);
    trace->share_steps = r->operators;
    trace->members = members;
    int64_t end = prn_now_ns() + (int64_t)(r->max_seconds * WATCH_SHARE * 1e9);
    for (size_t i = 0; i < runs && (i == 0 || prn_now_ns() < end); i++) {
        PRN_TRY(prn_recording_run(r, &r->traced_run_ns, error));
        prn_nested_read(r->nested);
        prn_thread_use_add(r->team_use, trace);
    }
    return PRONY_OK;
}

static void stop_watching(prn_recording *r)
{
    prn_trace *trace = &r->session->trace;
    trace->shares = NULL;
    trace->share_steps = 0;
    prn_free(r->shares);
    prn_thread_use_release(r->team_use);
}

static prony_status get_ready(prn_recording *r, size_t count, prony_error *error)
{
    int64_t phase_ns;
    PRN_TRY(prn_recording_phase(r, r->options->preprocess, &phase_ns, error)); /* inputs may be bound nowhere else */
    PRN_TRY(prony_session_prepare(r->session, error));
    r->cached = r->session->current;
    r->operators = r->session->options.no_profile ? 0 : r->cached->plan->step_count;
    PRN_TRY(prn_nested_create(&r->nested, r->cached->plan, error));
    PRN_TRY(watch_workers(r, error));
    if (r->operators) PRN_TRY(prn_device_sums_create(&r->device_sums, r->cached->plan, error));
    PRN_TRY(measure_warm_up(r, error));
    return count == 1 && r->options->measure_cost ? prn_recording_cost(r, error) : PRONY_OK;
}

/* true: cancelled after finished runs, which are reported. */
static bool is_partial(prn_recording *all, size_t count, prony_status status)
{
    if (status != PRONY_CANCELLED) return false;
    for (size_t i = 0; i < count; i++) {
        if (all[i].runs == 0) return false;
        all[i].stop_reason = "cancelled";
    }
    return true;
}

static const prn_device *measure_device(const prn_recording *r)
{
    return r->cached->plan->options.device;
}

/* Of the first device. */
static prn_sensors *begin_sensors(const prn_recording *all, size_t count, const prn_device **device)
{
    for (size_t i = 0; i < count && !*device; i++) *device = measure_device(&all[i]);
    return *device ? prn_sensors_begin(prn_device_description(*device)) : NULL;
}

static void end_sensors(prn_recording *all, size_t count, prn_sensors *sensors, const prn_device *device)
{
    prony_device_sensors read;
    if (!prn_sensors_end(sensors, &read)) return;
    for (size_t i = 0; i < count; i++) {
        if (measure_device(&all[i]) != device) continue;
        all[i].has_sensors = true;
        all[i].sensors = read;
    }
}

static prony_status measure_profile(prony_report **reports, prn_recording *all, size_t count, prony_error *error)
{
    all->begin_ns = prn_now_ns();
    for (size_t i = 0; i < count; i++) {
        prn_pin pin;
        prn_pin_begin(&pin, all[i].session->affinity);
        prony_status status = get_ready(&all[i], count, error);
        prn_pin_end(&pin);
        PRN_TRY(status);
    }
    prn_pin pin;
    const prn_device *device = NULL;
    prn_sensors *sensors = begin_sensors(all, count, &device); /* before pinning: its thread would take over the mask */
    prn_pin_begin(&pin, count == 1 ? all->session->affinity : NULL);
    prony_status status = record(all, count, error);
    end_sensors(all, count, sensors, device);
    for (size_t i = 0; i < count && status == PRONY_OK; i++) status = watch_threads(&all[i], error);
    prn_pin_end(&pin);
    if (status != PRONY_OK && !is_partial(all, count, status)) return status;
    for (size_t i = 0; i < count; i++) {
        PRN_TRY(prn_recording_report(&reports[i], &all[i], status == PRONY_OK ? error : NULL));
        reports[i]->turns = count > 1 ? (uint64_t)all->begin_ns : 0;
    }
    for (size_t i = 0; i < count && status == PRONY_OK; i++) status = prn_recording_count(reports[i], &all[i], error);
    return status;
}

/* Checks that the sessions are different and not monitored. After a cancellation with finished runs the reports are
 * kept. */
prony_status prony_profile_interleaved(prony_report **reports, prony_session *const *sessions, size_t count,
                                       const prony_profile_options *options, prony_error *error)
{
    prony_profile_options own = PRONY_PROFILE_OPTIONS_INIT;
    if (!reports || !sessions || count == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "prony_profile_interleaved: an argument is NULL, or no session is given");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "profile options", error));
    options = &own;
    if (options->runs < 0 || !(options->max_seconds >= 0))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "profile options: counts must not be negative");
    for (size_t i = 0; i < count; i++) {
        reports[i] = NULL;
        if (!sessions[i]) return prn_fail(error, PRONY_INVALID_ARGUMENT, "session %zu of %zu is NULL", i, count);
        if (sessions[i]->watcher.run)
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "a session watched by a monitor cannot be profiled");
        for (size_t k = 0; k < i; k++)
            if (sessions[k] == sessions[i])
                return prn_fail(error, PRONY_INVALID_ARGUMENT, "sessions %zu and %zu are the same session", k, i);
    }
    prn_recording *all = prn_calloc(count, sizeof *all);
    if (!all) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) {
        all[i].session = sessions[i];
        all[i].options = options;
        all[i].max_seconds = options->max_seconds > 0 ? fmin(options->max_seconds, MOST_SECONDS) : DEFAULT_SECONDS;
    }
    prony_status status = measure_profile(reports, all, count, error);
    for (size_t i = 0; i < count; i++) {
        bool whole = status == PRONY_OK || (status == PRONY_CANCELLED && reports[count - 1]);
        if (!whole) {
            prony_report_release(reports[i]);
            reports[i] = NULL;
        }
        stop_watching(&all[i]);
        prn_free(all[i].latency_ns);
        prn_free(all[i].durations_ns);
        prn_free(all[i].nested_ns);
        prn_nested_release(all[i].nested);
        prn_device_sums_release(all[i].device_sums);
        prn_free(all[i].sorted_ns);
        prn_free(all[i].worker_busy_ns);
        prn_free(all[i].in_order);
        prn_free(all[i].before_ns);
        prn_free(all[i].after_ns);
        prn_core_recorder_free(&all[i].cores);
    }
    prn_free(all);
    return status;
}

prony_status prony_session_profile(prony_report **out, prony_session *session, const prony_profile_options *options,
                                   prony_error *error)
{
    prony_report *report = NULL;
    if (!out || !session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_profile: an argument is NULL");
    prony_status status = prony_profile_interleaved(&report, &session, 1, options, error);
    if (report) *out = report;
    return status;
}
