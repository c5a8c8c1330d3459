/* Peaks of this machine. Each measurement has threads of its own that meet before every trial: a team (base/team.h)
 * lets its caller do the work of a worker that wakes late, which is right for operators and wrong here. A thread owns
 * its buffer; what the threads share is written before they start or under the barrier. */
#include "base/peak.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/isa.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

extern const prn_peak_loops prn_peak_loops_scalar, prn_peak_loops_avx2, prn_peak_loops_avx512;

/* Looks, of so many rounds for arithmetic and one for memory, from which the length of a trial follows. */
enum { MOST_THREADS = 1024, LOOKS = 3, FIRST_COMPUTE_ROUNDS = 20000 };

struct measurement;

typedef struct member {
    struct measurement *shared;
    void *buffer;
    int64_t start_ns, end_ns; /* of the trial that just ended */
    double done;              /* operations or bytes of one trial */
    pthread_t thread;
} member;

typedef struct measurement {
    const prn_peak_loops *loops;
    prn_peak_kind kind;
    int threads;
    size_t bytes;
    int64_t rounds; /* of the next trial; 0 ends the threads */
    pthread_barrier_t barrier;
    pthread_mutex_t gate; /* held until it is known whether all threads could be had */
    bool complete;
    member *members;
    _Atomic uint64_t results; /* keeps the loops alive */
} measurement;

static const prn_peak_loops *loops_here(void)
{
    prn_isa isa = prn_isa_level();
    return isa >= PRN_ISA_AVX512 ? &prn_peak_loops_avx512
           : isa >= PRN_ISA_AVX2 ? &prn_peak_loops_avx2
                                 : &prn_peak_loops_scalar;
}

/* One thread's part of a trial. */
static void work(member *m)
{
    measurement *s = m->shared;
    uint64_t result = 0;
    double flops = 0;
    m->start_ns = prn_now_ns();
    switch (s->kind) {
    case PRN_PEAK_F32:
        result = (uint64_t)s->loops->compute_f32(s->rounds, &flops);
        break;
    case PRN_PEAK_F64:
        result = (uint64_t)s->loops->compute_f64(s->rounds, &flops);
        break;
    case PRN_PEAK_READ:
        for (int64_t r = 0; r < s->rounds; r++) result ^= s->loops->read(m->buffer, s->bytes);
        break;
    case PRN_PEAK_WRITE:
        for (int64_t r = 0; r < s->rounds; r++) s->loops->write(m->buffer, s->bytes, (uint64_t)r);
        break;
    case PRN_PEAK_COPY:
        for (int64_t r = 0; r < s->rounds; r++)
            s->loops->copy(m->buffer, (char *)m->buffer + s->bytes / 2, s->bytes / 2);
        break;
    }
    m->end_ns = prn_now_ns();
    m->done = flops > 0 ? flops : (double)s->rounds * (double)s->bytes;
    atomic_fetch_add_explicit(&s->results, result, memory_order_relaxed);
}

/* Threads meet twice per trial: when its length is known, and when all are done. */
static void *follow(void *argument)
{
    member *m = argument;
    pthread_mutex_lock(&m->shared->gate);
    bool complete = m->shared->complete;
    pthread_mutex_unlock(&m->shared->gate);
    if (!complete) return NULL;
    if (m->buffer) memset(m->buffer, 1, m->shared->bytes); /* touched where it is used */
    for (;;) {
        pthread_barrier_wait(&m->shared->barrier);
        if (m->shared->rounds == 0) return NULL;
        work(m);
        pthread_barrier_wait(&m->shared->barrier);
    }
}

static int64_t trial(measurement *s, int64_t rounds)
{
    s->rounds = rounds;
    pthread_barrier_wait(&s->barrier);
    work(&s->members[0]);
    pthread_barrier_wait(&s->barrier);
    int64_t start = s->members[0].start_ns, end = s->members[0].end_ns;
    for (int t = 1; t < s->threads; t++) {
        if (s->members[t].start_ns < start) start = s->members[t].start_ns;
        if (s->members[t].end_ns > end) end = s->members[t].end_ns;
    }
    return end > start ? end - start : 1;
}

static void measure_kind(measurement *s, prn_peak *out, int trials, int64_t trial_ns)
{
    int64_t rounds = s->bytes ? 1 : FIRST_COMPUTE_ROUNDS, once = INT64_MAX;
    for (int look = 0; look < LOOKS; look++) { /* caches and clock rate settle meanwhile */
        int64_t took = trial(s, rounds);
        if (took < once) once = took;
    }
    double longer = (double)trial_ns / (double)once;
    rounds = longer > 1 ? (int64_t)((double)rounds * longer) : rounds;
    for (int i = 0; i < trials; i++) {
        int64_t took = trial(s, rounds);
        double done = 0;
        for (int t = 0; t < s->threads; t++) done += s->members[t].done;
        double per_second = done / (double)took * 1e9;
        if (per_second <= out->per_second) continue;
        out->per_second = per_second;
        out->trial_ns = took;
    }
}

static void measure(measurement *s, prn_peak *out, const prn_peak_kind *kinds, size_t count, int trials,
                    int64_t trial_ns)
{
    for (size_t k = 0; k < count; k++) {
        s->kind = kinds[k];
        out[k] = (prn_peak){.thread_bytes = s->bytes, .trials = trials};
        measure_kind(s, &out[k], trials, trial_ns);
    }
    s->rounds = 0;
    pthread_barrier_wait(&s->barrier);
}

static prony_status start(measurement *s, int *started, prony_error *error)
{
    pthread_mutex_lock(&s->gate);
    for (*started = 0; *started < s->threads - 1; ++*started) {
        member *m = &s->members[*started + 1];
        if (pthread_create(&m->thread, NULL, follow, m) != 0) break;
    }
    s->complete = *started == s->threads - 1;
    pthread_mutex_unlock(&s->gate);
    if (s->complete) return PRONY_OK;
    return prn_fail(error, PRONY_LIMIT, "the system gives %d of %d threads", *started + 1, s->threads);
}

/* Threads, buffers and the barrier are there: runs what `kinds` asks for. */
static prony_status run(measurement *s, prn_peak *out, const prn_peak_kind *kinds, size_t count, int trials,
                        int64_t trial_ns, prony_error *error)
{
    int started = 0;
    if (pthread_mutex_init(&s->gate, NULL) != 0) return prn_no_memory(error);
    if (pthread_barrier_init(&s->barrier, NULL, (unsigned)s->threads) != 0) {
        pthread_mutex_destroy(&s->gate);
        return prn_no_memory(error);
    }
    prony_status status = start(s, &started, error);
    if (status == PRONY_OK) {
        if (s->bytes) memset(s->members[0].buffer, 1, s->bytes);
        measure(s, out, kinds, count, trials, trial_ns);
    }
    for (int t = 1; t <= started; t++) pthread_join(s->members[t].thread, NULL);
    pthread_barrier_destroy(&s->barrier);
    pthread_mutex_destroy(&s->gate);
    return status;
}

prony_status prn_peak_measure(prn_peak *out, const prn_peak_kind *kinds, size_t count, int threads,
                              uint64_t thread_bytes, int trials, int64_t trial_ns, prony_error *error)
{
    uint64_t unit = 2 * PRN_PEAK_BLOCK_BYTES, bytes = thread_bytes / unit * unit;
    bool valid = threads >= 1 && threads <= MOST_THREADS && trials >= 1 && trial_ns >= 1;
    for (size_t k = 0; k < count && valid; k++) valid = (kinds[k] >= PRN_PEAK_READ) == (bytes > 0);
    if (!valid)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "peaks: %d threads over %llu bytes each", threads,
                        (unsigned long long)thread_bytes);
    measurement s = {.loops = loops_here(), .threads = threads, .bytes = (size_t)bytes};
    s.members = prn_calloc((size_t)threads, sizeof *s.members);
    prony_status status = s.members ? PRONY_OK : prn_no_memory(error);
    for (int t = 0; t < threads && status == PRONY_OK; t++) {
        s.members[t].shared = &s;
        if (bytes && !(s.members[t].buffer = prn_alloc_aligned(4096, s.bytes))) status = prn_no_memory(error);
    }
    if (status == PRONY_OK) status = run(&s, out, kinds, count, trials, trial_ns, error);
    for (int t = 0; t < threads && s.members; t++) prn_free_aligned(s.members[t].buffer);
    prn_free(s.members);
    return status;
}
