/* Peaks of this machine. Each measurement has its own threads, which meet before every trial. In a thread pool
 * (base/threads/thread_pool.h) the caller does the work of a late worker, which would be wrong here. The threads spin
 * while they wait, because waking takes as long as a short trial. A thread owns its buffer and its interval; shared
 * data is written before the threads start or before they meet. */
#include "base/cpu/peak.h"
#include "base/memory/alloc.h"
#include "base/os/clock.h"
#include "base/cpu/pause.h"
#include "base/cpu/simd.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Calibration trials (LOOKS) start with so many rounds for arithmetic and one for memory; the length of a trial follows
 * from them. */
enum { MOST_THREADS = 1024, LOOKS = 3, FIRST_COMPUTE_ROUNDS = 2000, MOST_LOOK_ROUNDS = 1 << 28 };
/* Spins before a thread yields its core: there may be fewer cores than threads. Chosen without measurement. */
enum { READY_SPINS = 20000 };

struct measurement;

typedef struct member {
    struct measurement *shared;
    void *buffer;
    prn_peak_interval interval; /* of the trial that just ended */
    double done;                /* operations or bytes of one trial */
    pthread_t thread;
} member;

typedef struct measurement {
    prn_peak_tools tools;
    prn_peak_kind kind;
    int threads;
    size_t bytes;
    int64_t rounds;      /* of the next trial; 0 ends the threads */
    _Atomic int arrived; /* at the next meeting */
    _Atomic unsigned meetings;
    pthread_mutex_t gate; /* held until all threads are created */
    bool complete;
    member *members;
    prn_peak_interval *intervals; /* room for as many */
    _Atomic uint64_t results;     /* keeps the loops alive */
} measurement;

PRN_SIMD_PICK(prn_peak_loops, prn_peak_loops_, static const prn_peak_loops *loops_here)
PRN_SIMD_PICK_DOT(prn_peak_tiles, prn_peak_tiles_, static const prn_peak_tiles *tiles)

bool prn_peak_has_bf16(void)
{
    return tiles()->bf16 != NULL;
}

/* Returns when all threads have come, to all of them within the time that a cache line takes. */
static void meet(measurement *s)
{
    unsigned meeting = atomic_load(&s->meetings);
    if (atomic_fetch_add(&s->arrived, 1) + 1 == s->threads) {
        atomic_store(&s->arrived, 0);
        atomic_store(&s->meetings, meeting + 1);
        return;
    }
    for (int spins = 0; atomic_load(&s->meetings) == meeting; spins += spins < READY_SPINS) {
        if (spins < READY_SPINS)
            prn_pause();
        else
            sched_yield();
    }
}

/* One thread's share of a trial. */
static void peak_work(member *m)
{
    measurement *s = m->shared;
    uint64_t result = 0;
    double flops = 0;
    m->interval.start_ns = s->tools.now_ns();
    switch (s->kind) {
    case PRN_PEAK_F32:
        result = (uint64_t)s->tools.loops->compute_f32(s->rounds, &flops);
        break;
    case PRN_PEAK_F64:
        result = (uint64_t)s->tools.loops->compute_f64(s->rounds, &flops);
        break;
    case PRN_PEAK_BF16:
        result = (uint64_t)(int64_t)tiles()->bf16(s->rounds, &flops);
        break;
    case PRN_PEAK_READ:
        for (int64_t r = 0; r < s->rounds; r++) result ^= s->tools.loops->read(m->buffer, s->bytes);
        break;
    case PRN_PEAK_WRITE:
        for (int64_t r = 0; r < s->rounds; r++) s->tools.loops->write(m->buffer, s->bytes, (uint64_t)r);
        break;
    case PRN_PEAK_COPY:
        for (int64_t r = 0; r < s->rounds; r++)
            s->tools.loops->copy(m->buffer, (char *)m->buffer + s->bytes / 2, s->bytes / 2);
        break;
    }
    m->interval.end_ns = s->tools.now_ns();
    m->done = flops > 0 ? flops : (double)s->rounds * (double)s->bytes;
    atomic_fetch_add_explicit(&s->results, result, memory_order_relaxed);
}

/* Threads meet twice per trial: when its length is known, and when all are done. */
static void *peak_follow(void *argument)
{
    member *m = argument;
    pthread_mutex_lock(&m->shared->gate);
    bool complete = m->shared->complete;
    pthread_mutex_unlock(&m->shared->gate);
    if (!complete) return NULL;
    if (m->buffer) memset(m->buffer, 1, m->shared->bytes); /* touched by the thread that uses it */
    for (;;) {
        meet(m->shared);
        if (m->shared->rounds == 0) return NULL;
        peak_work(m);
        meet(m->shared);
    }
}

static int peak_by_start(const void *a, const void *b)
{
    const prn_peak_interval *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void prn_peak_overlap(prn_peak_interval *intervals, int count, int64_t *any_ns, int64_t *all_ns)
{
    qsort(intervals, (size_t)count, sizeof *intervals, peak_by_start);
    int64_t reached = intervals[0].start_ns, first_end = INT64_MAX;
    *any_ns = 0;
    for (int t = 0; t < count; t++) {
        const prn_peak_interval *i = &intervals[t];
        const int64_t from = i->start_ns > reached ? i->start_ns : reached;
        if (i->end_ns > from) {
            *any_ns += i->end_ns - from;
            reached = i->end_ns;
        }
        if (i->end_ns < first_end) first_end = i->end_ns;
    }
    const int64_t all = first_end - intervals[count - 1].start_ns;
    *all_ns = all > 0 ? all : 0;
}

/* Runs a trial. Returns the time in which any thread worked; *all_ns: in which all did. */
static int64_t trial(measurement *s, int64_t rounds, int64_t *all_ns)
{
    int64_t any_ns;
    s->rounds = rounds;
    meet(s);
    peak_work(&s->members[0]);
    meet(s);
    for (int t = 0; t < s->threads; t++) s->intervals[t] = s->members[t].interval;
    prn_peak_overlap(s->intervals, s->threads, &any_ns, all_ns);
    return any_ns > 0 ? any_ns : 1;
}

static int64_t shortest_look(measurement *s, int64_t rounds)
{
    int64_t shortest = INT64_MAX, all_ns;
    for (int look = 0; look < LOOKS; look++) {
        int64_t took = trial(s, rounds, &all_ns);
        if (took < shortest) shortest = took;
    }
    return shortest;
}

/* The number of rounds for a trial of about `trial_ns`, from calibration trials long enough to hide meeting and clock
 * reading. Caches and clock rate settle meanwhile. */
static int64_t rounds_of(measurement *s, int64_t trial_ns)
{
    int64_t rounds = s->bytes ? 1 : FIRST_COMPUTE_ROUNDS, look_ns;
    while ((look_ns = shortest_look(s, rounds)) < trial_ns / 8 && rounds < MOST_LOOK_ROUNDS) rounds *= 4;
    double longer = (double)trial_ns / (double)look_ns;
    return longer > 1 ? (int64_t)((double)rounds * longer) : rounds;
}

static void measure_kind(measurement *s, prn_peak *out, int trials, int64_t trial_ns)
{
    int64_t all_ns, rounds = rounds_of(s, trial_ns);
    for (int i = 0; i < trials; i++) {
        int64_t took = trial(s, rounds, &all_ns);
        double done = 0;
        for (int t = 0; t < s->threads; t++) done += s->members[t].done;
        double per_second = done / (double)took * 1e9;
        if (per_second <= out->per_second) continue;
        out->per_second = per_second;
        out->together = (double)all_ns / (double)took;
        out->trial_ns = took;
    }
}

static void peak_measure(measurement *s, prn_peak *out, const prn_peak_kind *kinds, size_t count, int trials,
                         int64_t trial_ns)
{
    for (size_t k = 0; k < count; k++) {
        s->kind = kinds[k];
        out[k] = (prn_peak){.thread_bytes = s->bytes, .trials = trials};
        measure_kind(s, &out[k], trials, trial_ns);
    }
    s->rounds = 0;
    meet(s);
}

static prony_status peak_start(measurement *s, int *started, prony_error *error)
{
    pthread_mutex_lock(&s->gate);
    for (*started = 0; *started < s->threads - 1; ++*started) {
        member *m = &s->members[*started + 1];
        if (pthread_create(&m->thread, NULL, peak_follow, m) != 0) break;
    }
    s->complete = *started == s->threads - 1;
    pthread_mutex_unlock(&s->gate);
    if (s->complete) return PRONY_OK;
    return prn_fail(error, PRONY_LIMIT, "the system gave only %d of %d threads", *started + 1, s->threads);
}

/* Starts the threads and measures `kinds`, with allocated buffers. */
static prony_status peak_run(measurement *s, prn_peak *out, const prn_peak_kind *kinds, size_t count, int trials,
                             int64_t trial_ns, prony_error *error)
{
    int started = 0;
    if (pthread_mutex_init(&s->gate, NULL) != 0) return prn_no_memory(error);
    prony_status status = peak_start(s, &started, error);
    if (status == PRONY_OK) {
        if (s->bytes) memset(s->members[0].buffer, 1, s->bytes);
        peak_measure(s, out, kinds, count, trials, trial_ns);
    }
    for (int t = 1; t <= started; t++) pthread_join(s->members[t].thread, NULL);
    pthread_mutex_destroy(&s->gate);
    return status;
}

prony_status prn_peak_measure(prn_peak *out, const prn_peak_kind *kinds, size_t count, int threads,
                              uint64_t thread_bytes, int trials, int64_t trial_ns, const prn_peak_tools *tools,
                              prony_error *error)
{
    uint64_t unit = 2 * PRN_PEAK_BLOCK_BYTES, bytes = thread_bytes / unit * unit;
    bool valid = threads >= 1 && threads <= MOST_THREADS && trials >= 1 && trial_ns >= 1;
    for (size_t k = 0; k < count && valid; k++) valid = (kinds[k] >= PRN_PEAK_READ) == (bytes > 0);
    if (!valid)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "peaks: %d threads over %llu bytes each", threads,
                        (unsigned long long)thread_bytes);
    measurement s = {.tools = {loops_here(), prn_now_ns}, .threads = threads, .bytes = (size_t)bytes};
    if (tools) s.tools = *tools;
    s.members = prn_calloc((size_t)threads, sizeof *s.members);
    s.intervals = prn_calloc((size_t)threads, sizeof *s.intervals);
    prony_status status = s.members && s.intervals ? PRONY_OK : prn_no_memory(error);
    for (int t = 0; t < threads && status == PRONY_OK; t++) {
        s.members[t].shared = &s;
        if (bytes && !(s.members[t].buffer = prn_alloc_aligned(4096, s.bytes))) status = prn_no_memory(error);
    }
    if (status == PRONY_OK) status = peak_run(&s, out, kinds, count, trials, trial_ns, error);
    for (int t = 0; t < threads && s.members; t++) prn_free_aligned(s.members[t].buffer);
    prn_free(s.members);
    prn_free(s.intervals);
    return status;
}
