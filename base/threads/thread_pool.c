/* Thread pools: threads that look for open slots, and jobs of tasks on a slot. The last user frees a thread pool. Its
 * threads are detached when it is released, or joined by prn_thread_pool_shut_down. */
#define _GNU_SOURCE /* pthread_setaffinity_np */
#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/os/clock.h"
#include "base/threads/job_slot.h"
#include "base/cpu/pause.h"
#include "base/threads/affinity.h"
#include "base/threads/cancel.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LATCH_OPEN (UINT32_C(1) << 31)
#define LATCH_MOST(latch) ((latch) >> 16 & 0x7fff)
#define LATCH_INSIDE(latch) ((latch) & 0xffff)

/* Spins of about 30 to 60 ns each before sleeping. Waking takes longer than a small operator. If every thread has its
 * own core, a thread spins about as long as one task of a large operator; otherwise only as long as the gap between two
 * operators. */
enum { SPINS = 10000, CROWDED_SPINS = 1000, MOST_WORKERS = PRN_MOST_THREADS - 1, SHARED_SLOTS = 64 };

typedef struct job {
    void (*fn)(void *argument, int64_t task);
    void *argument;
    const prn_cancel_token *stop; /* the token of the caller */
    prn_task_run *runs;
    int threads;                   /* number of runs */
    prn_thread_pool_share *shares; /* NULL: not watched */
    int share_count;
    prn_budget *budget; /* of the caller: tasks' memory is charged to it */
} job;

typedef struct worker {
    prn_thread_pool *pool;
    int number; /* from 1 */
} worker;

static _Thread_local prn_thread_context here;
static _Thread_local prn_thread_pool *own_pool;
static _Thread_local int own_number; /* in its thread pool; 0: no thread of a thread pool */
static _Thread_local bool inside_task;
static _Thread_local prn_thread_pool_share *watched; /* the calling thread's; its workers have none */
static _Thread_local int watched_count;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static bool exit_key_made;

/* ---- latches ---- */

bool prn_job_slot_enter(prn_job_slot *slot)
{
    uint32_t latch = atomic_load(&slot->latch);
    while ((latch & LATCH_OPEN) && LATCH_INSIDE(latch) < LATCH_MOST(latch))
        if (atomic_compare_exchange_weak(&slot->latch, &latch, latch + 1)) return true;
    return false;
}

void prn_job_slot_leave(prn_job_slot *slot)
{
    prn_thread_pool *t =
        slot->pool; /* the owner, and an executor's slot, may be gone afterwards; the thread pool is not */
    uint32_t before = atomic_fetch_sub(&slot->latch, 1);
    if (LATCH_INSIDE(before) != 1 || atomic_load(&t->owners_waiting) == 0) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->idle);
    pthread_mutex_unlock(&t->lock);
}

void prn_job_slot_open(prn_job_slot *slot, int most)
{
    atomic_store_explicit(&slot->latch, LATCH_OPEN | (uint32_t)most << 16, memory_order_release);
    prn_thread_pool_announce(slot->pool);
}

static bool anyone_inside(prn_job_slot *slot)
{
    return LATCH_INSIDE(atomic_load(&slot->latch)) != 0;
}

void prn_job_slot_close(prn_job_slot *slot)
{
    prn_thread_pool *t = slot->pool;
    atomic_fetch_and(&slot->latch, ~LATCH_OPEN);
    for (int i = 0, spins = atomic_load(&t->spins); i < spins; i++) {
        if (!anyone_inside(slot)) return;
        prn_pause();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->owners_waiting, 1);
    while (anyone_inside(slot)) pthread_cond_wait(&t->idle, &t->lock);
    atomic_fetch_sub(&t->owners_waiting, 1);
    pthread_mutex_unlock(&t->lock);
}

/* ---- epoch ---- */

void prn_thread_pool_announce(prn_thread_pool *t)
{
    atomic_fetch_add(&t->epoch, 1);
    if (atomic_load(&t->sleepers) == 0) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
}

static bool nothing_new(prn_thread_pool *t, uint32_t seen)
{
    return atomic_load(&t->epoch) == seen && !atomic_load(&t->quit);
}

void prn_thread_pool_await(prn_thread_pool *t, uint32_t seen)
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

/* ---- tasks ---- */

static void add_share(prn_thread_pool_share *share, int64_t start_ns, int64_t tasks)
{
    int64_t now = prn_now_ns();
    if (share->tasks == 0) share->start_ns = start_ns;
    share->end_ns = now;
    share->busy_ns += now - start_ns;
    share->tasks += tasks;
}

/* Runs tasks until none is left to claim. Returns how many. */
static int64_t claim_tasks(job *job, int thread)
{
    prn_thread_pool_share *share = thread < job->share_count ? &job->shares[thread] : NULL;
    int64_t start_ns = share ? prn_now_ns() : 0, done = 0;
    for (int i = 0; i < job->threads; i++) {
        prn_task_run *run = &job->runs[(thread + i) % job->threads];
        for (; !prn_cancel_requested(job->stop); done++) {
            int64_t task = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
            if (task >= run->end) break;
            job->fn(job->argument, task);
        }
    }
    if (share && done) add_share(share, start_ns, done);
    return done;
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

/* Helps with tasks, with the token, budget and watch of the job's caller. */
static int64_t help(job *job, int thread)
{
    const prn_cancel_token *stop = prn_cancel_token_enter(job->stop);
    prn_budget *budget = prn_budget_enter(job->budget);
    int64_t done = claim_tasks(job, thread);
    prn_budget_enter(budget);
    (void)prn_cancel_token_enter(stop);
    return done;
}

static void help_job(void *argument, int thread)
{
    (void)help(argument, thread);
}

bool prn_job_slot_help(prn_job_slot *slot, int thread)
{
    bool was_inside = inside_task;
    inside_task = true;
    bool found = help(slot->argument, thread) > 0;
    inside_task = was_inside;
    atomic_store_explicit(&slot->width, 0, memory_order_relaxed);
    return found;
}

/* Runs all tasks in the calling thread; loops inside of a task belong to it. */
static void thread_pool_run_alone(int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument)
{
    prn_thread_pool_share *share = inside_task || own_number >= watched_count ? NULL : watched;
    int64_t start_ns = share ? prn_now_ns() : 0;
    if (share) watched = NULL;
    const prn_cancel_token *stop = prn_cancel_token_current();
    for (int64_t task = 0; task < tasks && !prn_cancel_requested(stop); task++) fn(argument, task);
    if (!share) return;
    watched = share;
    if (tasks > 0) add_share(&share[own_number], start_ns, tasks);
}

void prn_thread_pool_watch(prn_thread_pool_share *shares, int count)
{
    watched = count > 0 ? shares : NULL;
    watched_count = watched ? count : 0;
}

/* ---- a thread pool's threads ---- */

static void drop_pool(prn_thread_pool *t)
{
    if (atomic_fetch_sub(&t->references, 1) != 1) return;
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->idle);
    pthread_mutex_destroy(&t->lock);
    for (int d = 0; d < t->slot_count; d++) prn_free_aligned(t->slots[d].runs);
    prn_free_aligned(t->slots);
    prn_free(t->handles);
    prn_free(t);
}

/* In an unshared thread pool a job or an executor gets the threads with the lowest numbers. */
static bool may_enter(const prn_thread_pool *t, const prn_job_slot *slot, int number)
{
    uint32_t latch = atomic_load(&slot->latch);
    return (latch & LATCH_OPEN) && (t->shared || number <= (int)LATCH_MOST(latch));
}

static void *thread_pool_work(void *argument)
{
    worker self = *(worker *)argument;
    prn_thread_pool *t = self.pool;
    prn_free(argument);
    inside_task = true;
    own_number = self.number;
    for (;;) {
        uint32_t seen = atomic_load(&t->epoch);
        if (atomic_load(&t->quit)) break;
        for (int d = 0; d < t->slot_count; d++) {
            prn_job_slot *slot = &t->slots[d];
            if (!may_enter(t, slot, self.number) || !prn_job_slot_enter(slot)) continue;
            slot->enter(slot->argument, self.number);
            prn_job_slot_leave(slot);
        }
        prn_thread_pool_await(t, seen);
    }
    drop_pool(t);
    return NULL;
}

static bool crowded(int threads)
{
    const prn_affinity *affinity = prn_affinity_current();
    prn_cpu_mask mask;
    if (affinity) return affinity->count < affinity->first + threads;
    return !prn_cpu_mask_get(&mask) || prn_cpu_mask_count(&mask) < threads;
}

static void set_spins(prn_thread_pool *t)
{
    atomic_store(&t->spins, crowded(atomic_load(&t->threads) + 1) ? CROWDED_SPINS : SPINS);
}

static void pin_worker(const prn_thread_pool *t, int worker, prn_affinity *affinity)
{
    prn_cpu_mask mask;
    if (affinity)
        prn_affinity_mask(affinity, worker + 1, &mask);
    else if (!prn_cpu_mask_get(&mask))
        return;
    int code = pthread_setaffinity_np(t->handles[worker], sizeof mask, (const cpu_set_t *)&mask);
    if (code != 0 && affinity)
        snprintf(affinity->failure, sizeof affinity->failure, "the system did not pin thread %d: %s", worker + 1,
                 strerror(code));
}

void prn_thread_pool_set_affinity(prn_thread_pool *t, prn_affinity *affinity)
{
    uint64_t id = affinity ? affinity->id : 0;
    if (!t) t = own_pool;
    if (!t || t->shared || t->affinity_id == id) return;
    for (int w = 0; w < atomic_load(&t->threads); w++) pin_worker(t, w, affinity);
    t->affinity_id = id;
    set_spins(t);
}

/* Adds workers up to `workers`, as many as can be created, and pins them by the caller's affinity. `threads` counts
 * only created ones. */
static void spawn_workers(prn_thread_pool *t, int workers)
{
    int have = atomic_load(&t->threads);
    if (have >= workers) return;
    prn_affinity *affinity = prn_affinity_current();
    uint64_t id = affinity ? affinity->id : 0;
    if (have == 0)
        t->affinity_id = id;
    else if (t->affinity_id != id)
        t->affinity_id = UINT64_MAX; /* mixed affinities: the next affinity moves all threads */
    while (have < workers) {
        worker *w = PRN_GROW(t->handles, t->handle_capacity, (size_t)have + 1) ? prn_alloc(sizeof *w) : NULL;
        if (!w) break;
        *w = (worker){t, have + 1};
        atomic_fetch_add(&t->references, 1);
        if (pthread_create(&t->handles[have], NULL, thread_pool_work, w) != 0) {
            atomic_fetch_sub(&t->references, 1);
            prn_free(w);
            break;
        }
        if (affinity) pin_worker(t, have, affinity);
        have++;
    }
    atomic_store(&t->threads, have);
    set_spins(t);
}

static prn_thread_pool *make_pool(bool shared)
{
    prn_thread_pool *t = prn_calloc(1, sizeof *t);
    if (!t) return NULL;
    t->shared = shared;
    t->process = getpid();
    t->slot_count = shared ? SHARED_SLOTS : 1;
    t->slots = prn_alloc_aligned(PRN_CACHE_LINE_BYTES, (size_t)t->slot_count * sizeof *t->slots);
    if (!t->slots || pthread_mutex_init(&t->lock, NULL) != 0) {
        prn_free_aligned(t->slots);
        prn_free(t);
        return NULL;
    }
    memset(t->slots, 0, (size_t)t->slot_count * sizeof *t->slots);
    for (int d = 0; d < t->slot_count; d++) t->slots[d].pool = t;
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->idle, NULL);
    atomic_init(&t->references, 1);
    atomic_init(&t->holders, 1);
    atomic_init(&t->spins, CROWDED_SPINS);
    return t;
}

prony_status prn_thread_pool_create(prn_thread_pool **out, int threads, bool shared, prony_error *error)
{
    prn_thread_pool *t = make_pool(shared);
    if (!t) return prn_no_memory(error);
    spawn_workers(t, threads > MOST_WORKERS ? MOST_WORKERS : threads);
    *out = t;
    return PRONY_OK;
}

void prn_thread_pool_retain(prn_thread_pool *t)
{
    atomic_fetch_add(&t->holders, 1);
}

/* Drops a holder; the last one ends the threads. `wait`: returns when they have ended, and their stacks are free. */
static void end_threads(prn_thread_pool *t, bool wait)
{
    if (!t || atomic_fetch_sub(&t->holders, 1) != 1) return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->quit, true);
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    const int threads = t->process == getpid() ? atomic_load(&t->threads) : 0;
    for (int w = 0; w < threads; w++)
        if (wait)
            pthread_join(t->handles[w], NULL);
        else
            pthread_detach(t->handles[w]);
    drop_pool(t);
}

void prn_thread_pool_release(prn_thread_pool *t)
{
    end_threads(t, false);
}

int prn_thread_pool_size(const prn_thread_pool *t)
{
    return atomic_load(&t->threads);
}

/* ---- the calling thread ---- */

prn_job_slot *prn_thread_context_slot(void)
{
    return here.slot;
}

prn_thread_context prn_thread_context_set(prn_thread_context context)
{
    prn_thread_context former = here;
    former.task = inside_task;
    here = context;
    inside_task = false;
    return former;
}

void prn_thread_context_restore(prn_thread_context former)
{
    inside_task = former.task;
    here = former;
}

int prn_thread_pool_number(void)
{
    return own_number;
}

static prn_job_slot *find_free_slot(prn_thread_pool *t)
{
    for (int d = 0; d < t->slot_count; d++) {
        bool taken = false;
        if (atomic_compare_exchange_strong(&t->slots[d].taken, &taken, true)) return &t->slots[d];
    }
    return NULL;
}

prn_thread_context prn_thread_pool_join(prn_thread_pool *t)
{
    prn_job_slot *slot = find_free_slot(t);
    prn_thread_context former = here;
    former.task = inside_task;
    here = (prn_thread_context){.slot = slot, .alone = !slot};
    return former;
}

void prn_thread_pool_leave(prn_thread_context former)
{
    if (here.slot) atomic_store(&here.slot->taken, false);
    here = former;
}

static void end_own_pool(void *argument)
{
    prn_thread_pool_release(argument);
}

static void make_exit_key(void)
{
    exit_key_made = pthread_key_create(&exit_key, end_own_pool) == 0;
}

static prn_thread_pool *get_own_pool(void)
{
    if (own_pool) return own_pool;
    pthread_once(&exit_key_once, make_exit_key);
    prn_thread_pool *t = exit_key_made ? make_pool(false) : NULL;
    if (!t) return NULL;
    if (pthread_setspecific(exit_key, t) != 0) {
        drop_pool(t);
        return NULL;
    }
    return own_pool = t;
}

void prn_thread_pool_shut_down(void)
{
    prn_thread_pool *t = own_pool;
    if (!t) return;
    own_pool = NULL;
    pthread_setspecific(exit_key, NULL);
    end_threads(t, true);
}

void prony_threads_shut_down(void)
{
    if (!inside_task && !here.slot) prn_thread_pool_shut_down();
}

/* The slot for the calling thread's job of `threads` threads; NULL: the caller works alone. */
static prn_job_slot *find_slot(int threads)
{
    if (here.alone) return NULL;
    if (here.slot) return atomic_load_explicit(&here.slot->pool->threads, memory_order_relaxed) ? here.slot : NULL;
    prn_thread_pool *t = get_own_pool();
    if (!t) return NULL;
    spawn_workers(t, threads - 1);
    return &t->slots[0];
}

/* false: out of memory. */
static bool have_runs(prn_job_slot *slot, int threads)
{
    if (slot->run_count >= threads) return true;
    prn_task_run *runs = prn_alloc_aligned(PRN_CACHE_LINE_BYTES, (size_t)threads * sizeof *runs);
    if (!runs) return false;
    prn_free_aligned(slot->runs);
    slot->runs = runs;
    slot->run_count = threads;
    return true;
}

/* Publishes a job in the caller's slot, works on it, and closes the slot. Closing waits for every thread inside, so the
 * job may lie on the stack. */
void prn_thread_pool_run(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument)
{
    if (threads < here.most) threads = here.most;
    if (threads > MOST_WORKERS + 1) threads = MOST_WORKERS + 1;
    prn_job_slot *slot = threads > 1 && tasks > 1 && !inside_task ? find_slot(threads) : NULL;
    if (!slot || !have_runs(slot, threads)) {
        thread_pool_run_alone(tasks, fn, argument);
        return;
    }
    job job = {.fn = fn,
               .argument = argument,
               .stop = prn_cancel_token_current(),
               .runs = slot->runs,
               .threads = threads,
               .shares = watched,
               .share_count = watched ? watched_count : 0,
               .budget = prn_budget_current()};
    share_out(&job, tasks);
    inside_task = true;
    slot->enter = help_job;
    slot->argument = &job;
    atomic_store_explicit(&slot->width, tasks, memory_order_relaxed);
    prn_job_slot_open(slot, threads - 1);
    claim_tasks(&job, own_number);
    atomic_store_explicit(&slot->width, 0, memory_order_relaxed);
    prn_job_slot_close(slot);
    inside_task = false;
}
