/* prony_session_monitor: watches a serving session. Plain runs cost two clock readings; one run in N is profiled and
 * reported. Plain runs write only to fields of fixed size. Rows and events of sampled runs grow with the plan; a sample
 * without memory is skipped and the run succeeds. Invariant: cost_ns covers everything that watching adds to the runs,
 * except callbacks. */
#include "base/os/clock.h"
#include "base/cpu/machine.h"
#include "base/option_struct.h"
#include "engine/session/batcher.h"
#include "engine/session/session.h"
#include "profiler/statistics/statistics.h"
#include "prony_serve.h"

#include <string.h>

enum { WINDOW = 1024, STAMP_ROUNDS = 1000 };

typedef struct monitor {
    prony_monitor_options options;
    uint64_t runs, since; /* since the sample before */
    int64_t window_ns[WINDOW];
    int64_t total_ns, cost_ns, stamp_ns; /* stamp_ns: of two clock readings */
    prn_trace trace;
    prony_sample_row *rows;
    size_t row_capacity;
} monitor;

/* Two clock readings, at least 1 ns. */
static int64_t stamp_cost_ns(void)
{
    volatile int64_t keep;
    int64_t begin = prn_now_ns();
    for (int i = 0; i < STAMP_ROUNDS; i++) {
        keep = prn_now_ns();
        keep = prn_now_ns();
    }
    (void)keep;
    return (prn_now_ns() - begin) / STAMP_ROUNDS + 1;
}

static void monitor_release(void *data)
{
    monitor *m = data;
    if (!m) return;
    prn_free(m->trace.events);
    prn_free(m->rows);
    prn_free(m);
}

static prony_status monitor_check(const prony_monitor_options *options, prony_error *error)
{
    if (options->every == 0 || options->latency_above_ns < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "monitor options: `every` must be positive, and the latency threshold not negative");
    if ((options->latency_above_ns || options->memory_above_bytes) && !options->alert)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "monitor options: a threshold is set, but no alert callback");
    return PRONY_OK;
}

static void alert(const monitor *m, prony_alert_kind kind, uint64_t value, uint64_t threshold)
{
    prony_alert told = {kind, m->runs, value, threshold};
    if (m->options.alert) m->options.alert(m->options.user, &told);
}

/* Room for an event and a row per operator. */
static bool monitor_reserve(monitor *m, const prn_plan *plan)
{
    return PRN_GROW(m->trace.events, m->trace.capacity, plan->step_count) &&
           PRN_GROW(m->rows, m->row_capacity, plan->step_count);
}

static size_t monitor_fill_rows(monitor *m, const prn_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        const prn_kernel *kernel = prn_step_kernel(step);
        m->rows[s] = (prony_sample_row){.index = s,
                                        .name = step->node->info.name,
                                        .op = step->node->info.op_type,
                                        .kernel = kernel ? kernel->name : ""};
    }
    for (size_t e = 0; e < m->trace.count; e++)
        m->rows[m->trace.events[e].step].time_ns += m->trace.events[e].end_ns - m->trace.events[e].start_ns;
    return plan->step_count;
}

static void monitor_tell(prony_session *session, monitor *m, int64_t latency_ns)
{
    int64_t begin = prn_now_ns();
    const prn_plan *plan = session->current->plan;
    prony_sample sample = {.run = m->runs, .latency_ns = latency_ns, .arena_bytes = plan->memory.figures.planned_bytes};
    size_t window = m->since < WINDOW ? (size_t)m->since : WINDOW;
    bool known = prn_stats_compute(&sample.latency, m->window_ns, window, false, NULL) == PRONY_OK;
    sample.operator_count = monitor_fill_rows(m, plan);
    sample.operators = m->rows;
    sample.resident_bytes = prn_resident_bytes();
    m->since = 0;
    m->cost_ns += prn_now_ns() - begin + (int64_t)m->trace.count * m->stamp_ns;
    sample.overhead = m->total_ns > 0 ? (double)m->cost_ns / (double)m->total_ns : 0;
    if (known && m->options.sample) m->options.sample(m->options.user, &sample);
    if (m->options.memory_above_bytes && sample.resident_bytes > m->options.memory_above_bytes)
        alert(m, PRONY_ALERT_MEMORY, sample.resident_bytes, m->options.memory_above_bytes);
}

static prony_status run_watched(prony_session *session, prony_error *error)
{
    monitor *m = session->watcher.data;
    bool sampled = (m->runs + 1) % m->options.every == 0;
    if (sampled) {
        PRN_TRY(prn_session_plan(session, error));
        sampled = monitor_reserve(m, session->current->plan);
    }
    int64_t start = prn_now_ns();
    prony_status status = prn_session_run_once(session, sampled ? &m->trace : NULL, error);
    int64_t latency_ns = prn_now_ns() - start;
    if (status != PRONY_OK) return status;
    m->runs++;
    m->window_ns[m->since++ % WINDOW] = latency_ns;
    m->total_ns += latency_ns;
    m->cost_ns += m->stamp_ns;
    if (sampled) monitor_tell(session, m, latency_ns);
    if (m->options.latency_above_ns && latency_ns > m->options.latency_above_ns)
        alert(m, PRONY_ALERT_LATENCY, (uint64_t)latency_ns, (uint64_t)m->options.latency_above_ns);
    return PRONY_OK;
}

prony_status prony_session_monitor(prony_session *session, const prony_monitor_options *options, prony_error *error)
{
    monitor *m = NULL;
    if (!session) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_session_monitor: session is NULL");
    prony_monitor_options own = PRONY_MONITOR_OPTIONS_INIT;
    PRN_TRY(prn_options_read(&own, sizeof own, options, "monitor options", error));
    if (options) {
        PRN_TRY(monitor_check(&own, error));
        m = prn_calloc(1, sizeof *m);
        if (!m) return prn_no_memory(error);
        m->options = own;
        m->stamp_ns = stamp_cost_ns();
    }
    prony_status status = prn_session_lock(session, error);
    if (status != PRONY_OK) {
        monitor_release(m);
        return status;
    }
    if (session->watcher.release) session->watcher.release(session->watcher.data);
    session->watcher = m ? (prn_watcher){run_watched, monitor_release, m} : (prn_watcher){0};
    return prn_session_unlock(session, PRONY_OK);
}

prony_status prony_batcher_monitor(prony_batcher *batcher, const prony_monitor_options *options, prony_error *error)
{
    prony_session *session;
    if (!batcher) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_batcher_monitor: batcher is NULL");
    for (int i = 0; (session = prn_batcher_session(batcher, i)); i++)
        PRN_TRY(prony_session_monitor(session, options, error));
    return PRONY_OK;
}
