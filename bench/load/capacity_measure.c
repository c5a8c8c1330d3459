/* Measures with the batcher itself: its queue always holds full batches, so every run has the wanted size, and copying
 * counts. Sessions run side by side, so that they disturb one another as they will. */
#include "bench/load/capacity.h"
#include "bench/load/load.h"
#include "bench/process/interrupt.h"
#include "prony_machine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Fewest runs of a cell; lone requests, which follow a pause, for the time of a dispatch. Chosen without
 * measurement. */
enum { FEWEST_RUNS = 8, LONE_REQUESTS = 60, FEWEST_LONE = 5, PAUSE_NS = 1000000 };

typedef struct measurement {
    capacity *c;
    capacity_cell *cell;
    prony_batcher *batcher;
    pthread_mutex_t lock;
    pthread_cond_t change;
    size_t in_progress, runs;
    size_t others; /* runs of other sizes since the last one of the cell's, once the queue is full */
    bool filled;
    int64_t end_ns;
    char failure[256];
} measurement;

/* A cell whose runs do not get its size would never end: it fails when its time is up. The first runs after the queue
 * was filled may be smaller: each session takes one of them or two. */
static void count_others(measurement *m, const prony_batch_result *r)
{
    const capacity_cell *cell = m->cell;
    if (r->batch == cell->batch)
        m->others = 0;
    else if (m->filled && r->index == 0)
        m->others++;
    if (m->others <= 2 * (size_t)cell->sessions + FEWEST_RUNS || cell->count >= FEWEST_RUNS || *m->failure ||
        prony_now_ns() < m->end_ns)
        return;
    snprintf(m->failure, sizeof m->failure,
             "runs took %lld requests instead of %lld: this model's requests cannot be combined; use --max-batch 1",
             (long long)r->batch, (long long)cell->batch);
}

/* A request ended: the time of its run counts once, and another request takes its place until the time is up. */
static void request_done(void *user, const prony_batch_result *r)
{
    measurement *m = user;
    capacity_cell *cell = m->cell;
    prony_error error = {0};
    pthread_mutex_lock(&m->lock);
    if (r->status == PRONY_OK && r->index == 0 && r->batch == cell->batch) {
        m->runs++;
        if (m->runs > (size_t)cell->sessions) /* the first runs of all sessions are warm-up */
            cell->samples_ns[cell->count++ % CAPACITY_SAMPLES] = r->finished_ns - r->started_ns;
    }
    if (r->status != PRONY_OK && !*m->failure) snprintf(m->failure, sizeof m->failure, "%s", r->message);
    count_others(m, r);
    bool more = !*m->failure && !interrupted() && (cell->count < FEWEST_RUNS || prony_now_ns() < m->end_ns);
    pthread_mutex_unlock(&m->lock);
    if (more && prony_batcher_submit(m->batcher, m->c->inputs, m->c->input_count, request_done, m, &error) == PRONY_OK)
        return;
    pthread_mutex_lock(&m->lock);
    if (more && !*m->failure) snprintf(m->failure, sizeof m->failure, "%.250s", error.message);
    m->in_progress--;
    pthread_cond_signal(&m->change);
    pthread_mutex_unlock(&m->lock);
}

/* Enough for full batches in all sessions and two more of each in the queue. */
static size_t requests_at_once(const capacity_cell *cell)
{
    return (size_t)(3 * cell->sessions * cell->batch);
}

static prony_status make_cell_batcher(capacity *c, const capacity_cell *cell, prony_batcher **out, prony_error *error)
{
    prony_session_options session = session_options(c->o);
    prony_batcher_options b = PRONY_BATCHER_OPTIONS_INIT;
    session.intra_op_threads = cell->threads;
    b.sessions = cell->sessions;
    b.max_batch = cell->batch;
    b.max_queue = requests_at_once(cell);
    return prony_batcher_create(out, c->model, &session, &b, error);
}

/* Keeps requests_at_once requests in flight for time_ns: the end of each submits the next. A submission that is refused
 * here gives up those behind it too. `filled` tells request_done that the queue was full once. The times are sorted in
 * a copy, since put_document writes the samples as they came. */
static int measure_cell(capacity *c, capacity_cell *cell, int64_t time_ns)
{
    prony_error error = {0};
    measurement m = {.c = c, .cell = cell, .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
    if (make_cell_batcher(c, cell, &m.batcher, &error) != PRONY_OK) return report_error(c->o, &error);
    size_t at_once = requests_at_once(cell);
    m.in_progress = at_once;
    m.end_ns = prony_now_ns() + time_ns;
    for (size_t i = 0; i < at_once; i++) {
        if (prony_batcher_submit(m.batcher, c->inputs, c->input_count, request_done, &m, &error) == PRONY_OK) continue;
        pthread_mutex_lock(&m.lock);
        snprintf(m.failure, sizeof m.failure, "%.250s", error.message);
        m.in_progress -= at_once - i;
        pthread_mutex_unlock(&m.lock);
        break;
    }
    pthread_mutex_lock(&m.lock);
    m.filled = true;
    while (m.in_progress) pthread_cond_wait(&m.change, &m.lock);
    pthread_mutex_unlock(&m.lock);
    prony_batcher_release(m.batcher);
    if (interrupted()) return fail(c->o, "%s", interrupted());
    if (*m.failure) return fail(c->o, "%s", m.failure);
    if (cell->count > CAPACITY_SAMPLES) cell->count = CAPACITY_SAMPLES;
    int64_t sorted[CAPACITY_SAMPLES];
    memcpy(sorted, cell->samples_ns, cell->count * sizeof *sorted);
    qsort(sorted, cell->count, sizeof *sorted, load_figures_compare_times);
    cell->median_ns = sorted[cell->count / 2];
    cell->p99_ns = sorted[cell->count * 99 / 100];
    return EXIT_DONE;
}

/* The time from submission to the start of a run while a session sleeps: the median of lone requests. */
typedef struct lone_request {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool done;
    int64_t wait_ns;
} lone_request;

static void lone_done(void *user, const prony_batch_result *r)
{
    lone_request *lone = user;
    pthread_mutex_lock(&lone->lock);
    lone->wait_ns = r->started_ns - r->submitted_ns;
    lone->done = true;
    pthread_cond_signal(&lone->change);
    pthread_mutex_unlock(&lone->lock);
}

/* Takes about `time_ns`, but FEWEST_LONE requests at least. */
static int measure_dispatch(capacity *c, int64_t time_ns)
{
    int64_t waits[LONE_REQUESTS];
    prony_error error = {0};
    prony_batcher *batcher = NULL;
    const capacity_cell one = {.threads = 1, .sessions = 1, .batch = 1};
    if (make_cell_batcher(c, &one, &batcher, &error) != PRONY_OK) return report_error(c->o, &error);
    int code = EXIT_DONE, count = 0;
    for (int64_t end_ns = prony_now_ns() + time_ns;
         count < LONE_REQUESTS && (count < FEWEST_LONE || prony_now_ns() < end_ns) && !interrupted();) {
        lone_request lone = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        if (prony_batcher_submit(batcher, c->inputs, c->input_count, lone_done, &lone, &error) != PRONY_OK) {
            code = report_error(c->o, &error);
            break;
        }
        pthread_mutex_lock(&lone.lock);
        while (!lone.done) pthread_cond_wait(&lone.change, &lone.lock);
        pthread_mutex_unlock(&lone.lock);
        waits[count++] = lone.wait_ns;
    }
    prony_batcher_release(batcher);
    if (code != EXIT_DONE) return code;
    if (interrupted()) return fail(c->o, "%s", interrupted());
    qsort(waits, (size_t)count, sizeof *waits, load_figures_compare_times);
    c->dispatch_ns = waits[count / 2];
    return EXIT_DONE;
}

/* 1, 2, 4, ... below `most`, and `most`; returns how many. */
static int doubling_counts(int most, int counts[16])
{
    int count = 0;
    for (int n = 1; n < most && count < 15; n *= 2) counts[count++] = n;
    counts[count++] = most;
    return count;
}

static void plan_cells(capacity *c)
{
    int threads[16], sessions[16];
    int thread_count = doubling_counts(c->machine_cores, threads);
    for (int t = 0; t < thread_count; t++) {
        int session_count = doubling_counts(c->machine_cores / threads[t], sessions);
        for (int s = 0; s < session_count; s++)
            for (int b = 0; b < c->size_count && c->cell_count < CAPACITY_CELLS; b++)
                c->cells[c->cell_count++] =
                    (capacity_cell){.threads = threads[t], .sessions = sessions[s], .batch = c->sizes[b]};
    }
}

/* Processor time of this process, and of all, so far. */
static void read_processor_times(int64_t *own_ns, prony_machine_state *state)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    prony_machine_state_read(state);
    *own_ns = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
              (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

int capacity_measure(capacity *c)
{
    prony_machine_state before, after;
    int64_t own_before, own_after;
    c->cells = calloc(CAPACITY_CELLS, sizeof *c->cells);
    if (!c->cells) return fail(c->o, "out of memory");
    plan_cells(c);
    read_processor_times(&own_before, &before);
    int64_t time_ns = (int64_t)(c->o->measuring.seconds * 1e9 / (double)(c->cell_count + 1));
    int code = measure_dispatch(c, time_ns);
    for (size_t i = 0; code == EXIT_DONE && i < c->cell_count; i++) {
        char text[80];
        snprintf(text, sizeof text, "measuring %zu of %zu: %d x %d threads, batch %lld", i + 1, c->cell_count,
                 c->cells[i].sessions, c->cells[i].threads, (long long)c->cells[i].batch);
        if (want_progress(c->o)) show_progress_text(text);
        code = measure_cell(c, &c->cells[i], time_ns);
    }
    clear_progress();
    read_processor_times(&own_after, &after);
    double wall_ns = (double)(after.time_ns - before.time_ns);
    double others_ns = (double)(after.busy_ns - before.busy_ns) - (double)(own_after - own_before);
    c->other_cpus = before.total_ns == 0 || wall_ns <= 0 ? -1 : others_ns > 0 ? others_ns / wall_ns : 0;
    return code;
}
