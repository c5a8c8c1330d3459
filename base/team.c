/* One word, the gate, orders everything between caller and workers:
 *
 *     63 … 32   epoch: number of the job
 *     31        open: workers may still enter this job
 *     15 … 0    workers inside
 *
 * The caller writes the job, opens the gate under a new epoch, works, closes the gate and waits until nobody is inside.
 * A worker enters by adding one while the gate is open, so the job (on the caller's stack) outlives every worker in it.
 * Sleeping is by mutex and condition, only after a short spin. A team is freed by whoever leaves it last. */
#define _GNU_SOURCE /* CPU_COUNT */
#include "base/team.h"
#include "base/alloc.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/pause.h"
#include "base/stop.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define GATE_OPEN (UINT64_C(1) << 31)
#define GATE_INSIDE UINT64_C(0xffff)

/* Spins of about 30 to 60 ns each before sleeping. To be woken takes longer than a small operator, so where every
 * thread has a core to itself a thread waits about as long as one piece of a large operator lasts; where it has not,
 * only as long as the gap between two operators. */
enum { SPINS = 10000, CROWDED_SPINS = 1000, MOST_WORKERS = PRN_MOST_THREADS - 1, CACHE_LINE_BYTES = 64 };

/* Tasks are shared out in runs of successive ones, a run to a thread, so that what neighbours read in common is fetched
 * by one of them; whoever is through with its own run helps with the others'. */
typedef struct run {
    _Alignas(CACHE_LINE_BYTES) _Atomic int64_t next;
    int64_t end;
} run;

typedef struct job {
    void (*fn)(void *argument, int64_t task);
    void *argument;
    const prn_stop *stop; /* that the caller works for */
    run *runs;
    int threads;            /* caller included; workers of a lower index may take part */
    prn_team_share *shares; /* NULL: nobody watches */
    int share_count;
    prn_budget *budget; /* of the caller: what tasks take is booked to it */
} job;

typedef struct team {
    _Atomic uint64_t gate;
    _Atomic(job *) job;
    _Atomic int sleepers;
    _Atomic bool caller_waits, quit;
    _Atomic int references; /* caller and workers */
    int workers;
    _Atomic int spins;
    run *runs; /* of the job at hand, one for each thread; the caller's alone to replace */
    int run_count;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
} team;

typedef struct worker {
    team *team;
    int index;
} worker;

static _Thread_local team *own_team;
static _Thread_local bool inside_task;
static _Thread_local prn_team_share *watched; /* the calling thread's; its workers have none */
static _Thread_local int watched_count;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static bool exit_key_made;

static void add_share(prn_team_share *share, int64_t start_ns, int64_t tasks)
{
    int64_t now = prn_now_ns();
    if (share->tasks == 0) share->start_ns = start_ns;
    share->end_ns = now;
    share->busy_ns += now - start_ns;
    share->tasks += tasks;
}

/* Member 0 is the caller. */
static void claim_tasks(job *job, int member)
{
    prn_team_share *share = member < job->share_count ? &job->shares[member] : NULL;
    int64_t start_ns = share ? prn_now_ns() : 0, done = 0;
    for (int i = 0; i < job->threads; i++) {
        run *run = &job->runs[(member + i) % job->threads];
        for (; !prn_stop_requested(job->stop); done++) {
            int64_t task = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
            if (task >= run->end) break;
            job->fn(job->argument, task);
        }
    }
    if (share && done) add_share(share, start_ns, done);
}

static void share_out(job *job, int64_t tasks)
{
    int64_t begin = 0;
    for (int i = 0; i < job->threads; i++) {
        int64_t length = tasks / job->threads + (i < tasks % job->threads);
        atomic_store_explicit(&job->runs[i].next, begin, memory_order_relaxed);
        job->runs[i].end = begin += length;
    }
}

static void team_drop(team *t)
{
    if (atomic_fetch_sub(&t->references, 1) != 1) return;
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->idle);
    pthread_mutex_destroy(&t->lock);
    prn_free_aligned(t->runs);
    prn_free(t);
}

/* ---- workers ---- */

static bool nothing_new(team *t, uint32_t seen)
{
    return (uint32_t)(atomic_load(&t->gate) >> 32) == seen && !atomic_load(&t->quit);
}

static void await_job(team *t, uint32_t seen)
{
    for (int i = 0, spins = atomic_load(&t->spins); i < spins; i++) {
        if (!nothing_new(t, seen)) return;
        prn_pause();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleepers, 1);
    while (nothing_new(t, seen)) pthread_cond_wait(&t->work, &t->lock);
    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->lock);
}

static bool enter(team *t, uint64_t *gate)
{
    uint64_t g = *gate;
    uint32_t epoch = (uint32_t)(g >> 32);
    while ((g & GATE_OPEN) && (uint32_t)(g >> 32) == epoch)
        if (atomic_compare_exchange_weak(&t->gate, &g, g + 1)) return true;
    return false;
}

static void leave(team *t)
{
    uint64_t before = atomic_fetch_sub(&t->gate, 1);
    if ((before & GATE_INSIDE) != 1 || !atomic_load(&t->caller_waits)) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_signal(&t->idle);
    pthread_mutex_unlock(&t->lock);
}

static void *work(void *argument)
{
    worker self = *(worker *)argument;
    team *t = self.team;
    uint32_t seen = 0;
    prn_free(argument);
    inside_task = true;
    for (;;) {
        await_job(t, seen);
        if (atomic_load(&t->quit)) break;
        uint64_t gate = atomic_load(&t->gate);
        seen = (uint32_t)(gate >> 32);
        if (!enter(t, &gate)) continue;
        job *job = atomic_load(&t->job);
        if (self.index + 1 < job->threads) {
            (void)prn_stop_enter(job->stop);
            prn_budget_enter(job->budget);
            claim_tasks(job, self.index + 1);
            prn_budget_enter(NULL);
            (void)prn_stop_enter(NULL);
        }
        leave(t);
    }
    team_drop(t);
    return NULL;
}

/* ---- the caller ---- */

static void dismiss(void *argument)
{
    team *t = argument;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->quit, true);
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    team_drop(t);
}

static void make_exit_key(void)
{
    exit_key_made = pthread_key_create(&exit_key, dismiss) == 0;
}

static team *get_team(void)
{
    if (own_team) return own_team;
    pthread_once(&exit_key_once, make_exit_key);
    team *t = exit_key_made ? prn_calloc(1, sizeof *t) : NULL;
    if (!t) return NULL;
    if (pthread_mutex_init(&t->lock, NULL) != 0) {
        prn_free(t);
        return NULL;
    }
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->idle, NULL);
    atomic_init(&t->references, 1);
    if (pthread_setspecific(exit_key, t) != 0) {
        team_drop(t);
        return NULL;
    }
    return own_team = t;
}

static bool crowded(int threads)
{
#ifdef __linux__
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < threads;
#else
    return threads > 1;
#endif
}

static void hire(team *t, int workers)
{
    pthread_attr_t attributes;
    if (t->workers >= workers || pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (t->workers < workers) {
        pthread_t thread;
        worker *w = prn_alloc(sizeof *w);
        if (!w) break;
        *w = (worker){t, t->workers};
        atomic_fetch_add(&t->references, 1);
        if (pthread_create(&thread, &attributes, work, w) != 0) {
            atomic_fetch_sub(&t->references, 1);
            prn_free(w);
            break;
        }
        t->workers++;
    }
    pthread_attr_destroy(&attributes);
    atomic_store(&t->spins, crowded(t->workers + 1) ? CROWDED_SPINS : SPINS);
}

static void open_gate(team *t, job *job)
{
    uint64_t epoch = (atomic_load(&t->gate) >> 32) + 1;
    if ((uint32_t)epoch == 0) epoch = 1; /* 0 is what a new worker has seen */
    atomic_store(&t->job, job);
    atomic_store(&t->gate, epoch << 32 | GATE_OPEN);
    if (atomic_load(&t->sleepers) == 0) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
}

static bool anyone_inside(team *t)
{
    return (atomic_load(&t->gate) & GATE_INSIDE) != 0;
}

static void close_gate(team *t)
{
    atomic_fetch_and(&t->gate, ~GATE_OPEN);
    for (int i = 0, spins = atomic_load(&t->spins); i < spins; i++) {
        if (!anyone_inside(t)) return;
        prn_pause();
    }
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->caller_waits, true);
    while (anyone_inside(t)) pthread_cond_wait(&t->idle, &t->lock);
    atomic_store(&t->caller_waits, false);
    pthread_mutex_unlock(&t->lock);
}

/* Loops inside of a task are part of it. */
static void run_alone(int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument)
{
    prn_team_share *share = inside_task ? NULL : watched;
    int64_t start_ns = share ? prn_now_ns() : 0;
    if (share) watched = NULL;
    const prn_stop *stop = prn_stop_current();
    for (int64_t task = 0; task < tasks && !prn_stop_requested(stop); task++) fn(argument, task);
    if (!share) return;
    watched = share;
    if (tasks > 0) add_share(share, start_ns, tasks);
}

void prn_team_watch(prn_team_share *shares, int count)
{
    watched = count > 0 ? shares : NULL;
    watched_count = watched ? count : 0;
}

/* false: out of memory. */
static bool have_runs(team *t, int threads)
{
    if (t->run_count >= threads) return true;
    run *runs = prn_alloc_aligned(CACHE_LINE_BYTES, (size_t)threads * sizeof *runs);
    if (!runs) return false;
    prn_free_aligned(t->runs);
    t->runs = runs;
    t->run_count = threads;
    return true;
}

void prn_team_run(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument)
{
    int workers = threads - 1 > MOST_WORKERS ? MOST_WORKERS : threads - 1;
    team *t = workers > 0 && tasks > 1 && !inside_task ? get_team() : NULL;
    if (!t || !have_runs(t, workers + 1)) {
        run_alone(tasks, fn, argument);
        return;
    }
    hire(t, workers);
    job job = {.fn = fn,
               .argument = argument,
               .stop = prn_stop_current(),
               .runs = t->runs,
               .threads = workers + 1,
               .shares = watched,
               .share_count = watched ? watched_count : 0,
               .budget = prn_budget_current()};
    share_out(&job, tasks);
    inside_task = true;
    open_gate(t, &job);
    claim_tasks(&job, 0);
    close_gate(t);
    inside_task = false;
}

void prn_team_dismiss(void)
{
    team *t = own_team;
    if (!t) return;
    own_team = NULL;
    pthread_setspecific(exit_key, NULL);
    dismiss(t);
}
