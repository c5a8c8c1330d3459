/* prony_batcher_simulate: a queue, sessions that serve it, and one collector at a time, as in engine/session/batcher.c,
 * whose rules it calls. Time is a number: the simulation moves from event to event. */
#include "base/memory/alloc.h"
#include "base/option_struct.h"
#include "engine/session/batch_rules.h"
#include "profiler/statistics/statistics.h"
#include "prony_serve.h"

#include <math.h>
#include <stdlib.h>

#define IDLE INT64_MAX
#define LATEST_NS (INT64_C(1) << 62) /* arrivals end before */
#define DEFAULT_REQUESTS UINT64_C(100000)
#define MOST_REQUESTS UINT64_C(100000000)
enum { WARMUP_PART = 20 }; /* the first requests, one in so many, meet an empty queue and do not count */

typedef struct simulation {
    prony_batch_load load;
    int64_t sizes[PRN_BATCH_SIZES];
    int size_count;
    int64_t *queue; /* times of arrival: a ring of max_queue entries */
    size_t head, waiting, longest;
    int64_t *ends; /* [sessions]: end of the present run, or IDLE */
    int idle;
    bool collecting; /* an idle session waits for others until window_end_ns */
    bool closed;     /* no request arrives any more: none waits for others */
    int64_t window_end_ns;
    int64_t *latencies; /* [requests] */
    uint64_t served, refused, runs;
    double busy_ns;
    uint64_t random;
} simulation;

static prony_status simulation_check(const prony_batch_load *l, prony_error *error)
{
    if (l->sessions < 1 || l->sessions > PRN_BATCH_MOST_SESSIONS || l->max_batch < 0 || l->max_batch > PRN_BATCH_MOST ||
        l->max_wait_ns < 0 || l->dispatch_ns < 0 || !(l->rate > 0) || !isfinite(l->rate) ||
        l->requests > MOST_REQUESTS || !(l->percentile >= 0 && l->percentile < 1) || l->give_up_queue < 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "batch load: %d sessions, batches of up to %lld, a rate of %g, %llu requests, percentile %g",
                        l->sessions, (long long)l->max_batch, l->rate, (unsigned long long)l->requests, l->percentile);
    return PRONY_OK;
}

static const prony_service_times *simulation_times(const prony_batch_load *l, int64_t batch)
{
    for (size_t i = 0; i < l->times_count; i++)
        if (l->times[i].batch == batch && l->times[i].count) return &l->times[i];
    return NULL;
}

static prony_status simulation_begin(simulation *s, const prony_batch_load *load, prony_error *error)
{
    s->load = *load;
    PRN_TRY(simulation_check(load, error));
    if (!s->load.requests) s->load.requests = DEFAULT_REQUESTS;
    if ((double)s->load.requests / load->rate * 1e9 > (double)LATEST_NS)
        return prn_fail(error, PRONY_INVALID_ARGUMENT,
                        "batch load: %llu requests at a rate of %g need more time than the clock can count",
                        (unsigned long long)s->load.requests, load->rate);
    if (!(s->load.percentile > 0)) s->load.percentile = 0.99;
    if (!s->load.max_queue) s->load.max_queue = PRN_BATCH_DEFAULT_QUEUE;
    s->size_count = prn_batch_sizes(s->sizes, load->max_batch);
    for (int i = 0; i < s->size_count; i++)
        if (!simulation_times(load, s->sizes[i]))
            return prn_fail(error, PRONY_INVALID_ARGUMENT, "batch load: no times of runs of %lld requests",
                            (long long)s->sizes[i]);
    s->random = s->load.seed;
    s->idle = load->sessions;
    s->queue = prn_calloc(s->load.max_queue, sizeof *s->queue);
    s->ends = prn_calloc((size_t)load->sessions, sizeof *s->ends);
    s->latencies = prn_calloc(s->load.requests, sizeof *s->latencies);
    if (!s->queue || !s->ends || !s->latencies) return prn_no_memory(error);
    for (int i = 0; i < load->sessions; i++) s->ends[i] = IDLE;
    return PRONY_OK;
}

static int64_t simulation_draw(simulation *s, int64_t batch)
{
    const prony_service_times *times = simulation_times(&s->load, batch);
    int64_t ns = times->samples_ns[prn_random_below(&s->random, times->count)];
    return ns > 0 ? ns : 1;
}

/* Begins a run of `batch` requests on an idle session. */
static void simulation_start(simulation *s, int64_t now_ns, int64_t batch)
{
    int64_t run_ns = simulation_draw(s, batch), end_ns = now_ns + run_ns;
    int session = 0;
    while (s->ends[session] != IDLE) session++;
    s->ends[session] = end_ns;
    s->idle--;
    s->runs++;
    s->busy_ns += (double)run_ns;
    for (int64_t i = 0; i < batch; i++) {
        s->latencies[s->served++] = end_ns - s->queue[s->head];
        s->head = (s->head + 1) % s->load.max_queue;
        s->waiting--;
    }
}

/* Lets idle sessions collect and start runs, as batcher_collect does. `woken`: they slept, and start later. */
static void simulation_dispatch(simulation *s, int64_t now_ns, bool woken)
{
    while (s->waiting && s->idle) {
        if (!s->collecting) {
            s->collecting = true;
            s->window_end_ns = prn_batch_window_end(s->queue[s->head], s->load.max_wait_ns, 0);
        }
        int64_t max = s->sizes[s->size_count - 1];
        if (!s->closed && s->load.max_wait_ns > 0 && (int64_t)s->waiting < max && now_ns < s->window_end_ns) return;
        s->collecting = false;
        simulation_start(s, now_ns + (woken ? s->load.dispatch_ns : 0),
                         prn_batch_next_size(s->sizes, s->size_count, (int64_t)s->waiting));
    }
}

static void simulation_arrive(simulation *s, int64_t now_ns)
{
    if (s->waiting >= s->load.max_queue) {
        s->refused++;
        return;
    }
    s->queue[(s->head + s->waiting++) % s->load.max_queue] = now_ns;
    if (s->waiting > s->longest) s->longest = s->waiting;
}

/* Events in order of time: the end of a run, an arrival, the end of a window. The last arrival closes the batcher.
 * Returns the time of the last event, or stops where more than `give_up_queue` requests wait. */
static int64_t simulation_run(simulation *s, bool *gave_up)
{
    double arrival = 0;
    int64_t now_ns = 0;
    for (uint64_t issued = 0;;) {
        int first = 0;
        for (int i = 1; i < s->load.sessions; i++)
            if (s->ends[i] < s->ends[first]) first = i;
        int64_t arrival_ns = issued < s->load.requests ? (int64_t)fmin(arrival, (double)LATEST_NS) : INT64_MAX;
        int64_t end_ns = s->ends[first];
        int64_t window_ns = s->collecting ? s->window_end_ns : INT64_MAX;
        if (arrival_ns == INT64_MAX && end_ns == IDLE && !s->waiting) return now_ns;
        if (end_ns <= arrival_ns && end_ns <= window_ns) {
            now_ns = end_ns;
            s->ends[first] = IDLE;
            s->idle++;
            simulation_dispatch(s, now_ns, false);
        } else if (arrival_ns <= window_ns) {
            now_ns = arrival_ns;
            simulation_arrive(s, now_ns);
            s->closed = ++issued == s->load.requests;
            arrival -= log(prn_random_unit(&s->random)) / s->load.rate * 1e9;
            simulation_dispatch(s, now_ns, true);
        } else {
            now_ns = window_ns;
            simulation_dispatch(s, now_ns, true);
        }
        *gave_up = s->load.give_up_queue > 0 && s->waiting > (size_t)s->load.give_up_queue;
        if (*gave_up) return now_ns;
    }
}

/* The nearest-rank percentile of ascending values. */
static int64_t simulation_quantile(const int64_t *sorted, size_t count, double part)
{
    if (!count) return 0;
    size_t rank = (size_t)ceil(part * (double)count);
    return sorted[rank ? rank - 1 : 0];
}

/* Deterministic: the arrivals follow from the load's seed, and no clock is read. The first served requests met an empty
 * queue and are left out of the quantiles, not of the counts. Latencies are sorted in place. */
prony_status prony_batcher_simulate(prony_batch_forecast *out, const prony_batch_load *load, prony_error *error)
{
    prony_batch_load own = PRONY_BATCH_LOAD_INIT;
    simulation s = {0};
    if (!out || !load) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_batcher_simulate: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, load, "batch load", error));
    prony_status status = simulation_begin(&s, &own, error);
    if (status == PRONY_OK) {
        bool gave_up = false;
        int64_t end_ns = simulation_run(&s, &gave_up);
        size_t skipped = s.served / WARMUP_PART, count = s.served - skipped;
        int64_t *counted = s.latencies + skipped;
        qsort(counted, count, sizeof *counted, prn_compare_i64);
        *out = (prony_batch_forecast){.served = s.served,
                                      .refused = s.refused,
                                      .gave_up = gave_up,
                                      .median_ns = simulation_quantile(counted, count, 0.5),
                                      .quantile_ns = simulation_quantile(counted, count, s.load.percentile),
                                      .max_ns = count ? counted[count - 1] : 0,
                                      .mean_batch = s.runs ? (double)s.served / (double)s.runs : 0,
                                      .longest_queue = s.longest};
        if (end_ns > 0) out->utilisation = s.busy_ns / ((double)end_ns * own.sessions);
    }
    prn_free(s.queue);
    prn_free(s.ends);
    prn_free(s.latencies);
    return status;
}
