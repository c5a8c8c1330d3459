/* Executors: several threads of a thread pool run the steps of one run. The caller publishes the executor at its slot
 * in the thread pool. A thread that enters takes a free worker slot and runs ready steps, or tasks of others' steps,
 * and leaves when it finds neither. Every worker slot has a job slot, where its step publishes tasks. Only the caller
 * waits in an executor, for work that others have begun. */
#include "base/memory/alloc.h"
#include "base/memory/budget.h"
#include "base/threads/job_slot.h"
#include "base/threads/cancel.h"

#include <string.h>

struct prn_executor {
    prn_thread_pool *pool;
    int workers, threads;
    bool help;
    prn_job_slot *slots;           /* one per worker */
    _Atomic bool *worker_taken;    /* [workers]; 0 is the caller's */
    const prn_executor_work *work; /* of the current run */
    const prn_cancel_token *stop;  /* of its caller */
    prn_budget *budget;            /* of its caller */
};

prony_status prn_executor_create(prn_executor **out, prn_thread_pool *pool, int workers, int threads, bool help,
                                 prony_error *error)
{
    prn_executor *c = prn_calloc(1, sizeof *c);
    if (!c) return prn_no_memory(error);
    size_t bytes = (size_t)workers * sizeof *c->slots;
    prn_thread_pool_retain(pool);
    *c = (prn_executor){.pool = pool, .workers = workers, .threads = threads, .help = help};
    c->slots = prn_alloc_aligned(PRN_CACHE_LINE_BYTES, bytes);
    c->worker_taken = prn_calloc((size_t)workers, sizeof *c->worker_taken);
    if (!c->slots || !c->worker_taken) {
        prn_free_aligned(c->slots);
        c->slots = NULL;
        prn_executor_release(c);
        return prn_no_memory(error);
    }
    memset(c->slots, 0, bytes);
    for (int w = 0; w < workers; w++) c->slots[w].pool = pool;
    *out = c;
    return PRONY_OK;
}

void prn_executor_release(prn_executor *c)
{
    if (!c) return;
    for (int w = 0; c->slots && w < c->workers; w++) prn_free_aligned(c->slots[w].runs);
    prn_free_aligned(c->slots);
    prn_free(c->worker_taken);
    prn_thread_pool_release(c->pool);
    prn_free(c);
}

void prn_executor_announce(prn_executor *c)
{
    prn_thread_pool_announce(c->pool);
}

static int most_threads(const prn_executor *c)
{
    int most = c->workers > PRN_MOST_THREADS / c->threads ? PRN_MOST_THREADS : c->workers * c->threads;
    return most < PRN_MOST_THREADS ? most : PRN_MOST_THREADS;
}

/* true: it ran a step. */
static bool take_steps(prn_executor *c, int worker)
{
    bool any = false;
    prn_thread_context context = {.slot = &c->slots[worker], .most = c->help ? most_threads(c) : 0};
    prn_thread_context former = prn_thread_context_set(context);
    while (c->work->take(c->work->argument, worker)) any = true;
    prn_thread_context_restore(former);
    return any;
}

static int take_worker(prn_executor *c)
{
    for (int w = 1; w < c->workers; w++) {
        bool taken = false;
        if (atomic_compare_exchange_strong(&c->worker_taken[w], &taken, true)) return w;
    }
    return -1;
}

/* The slot with the most tasks and a free entry. */
static prn_job_slot *widest_slot(prn_executor *c)
{
    prn_job_slot *widest = NULL;
    int64_t most = 0;
    for (int w = 0; w < c->workers; w++) {
        int64_t width = atomic_load_explicit(&c->slots[w].width, memory_order_relaxed);
        if (width <= most || !prn_job_slot_has_room(&c->slots[w])) continue;
        most = width;
        widest = &c->slots[w];
    }
    return widest;
}

/* true: it ran a task. */
static bool help_someone(prn_executor *c, int thread)
{
    for (prn_job_slot *slot; (slot = widest_slot(c));) {
        if (!prn_job_slot_enter(slot)) continue;
        bool any = prn_job_slot_help(slot, thread);
        prn_job_slot_leave(slot);
        if (any) return true;
    }
    return false;
}

static void join_in(void *argument, int thread)
{
    prn_executor *c = argument;
    const prn_cancel_token *stop = prn_cancel_token_enter(c->stop);
    prn_budget *budget = prn_budget_enter(c->budget);
    bool any;
    do {
        any = false;
        int worker = take_worker(c);
        if (worker > 0) {
            any = take_steps(c, worker);
            atomic_store(&c->worker_taken[worker], false);
        }
        any |= help_someone(c, thread);
    } while (any);
    prn_budget_enter(budget);
    (void)prn_cancel_token_enter(stop);
}

void prn_executor_run(prn_executor *c, const prn_executor_work *work)
{
    prn_thread_context former = prn_thread_pool_join(c->pool);
    prn_job_slot *door = prn_thread_context_slot();
    c->work = work;
    c->stop = prn_cancel_token_current();
    c->budget = prn_budget_current();
    if (door) {
        door->enter = join_in;
        door->argument = c;
        prn_job_slot_open(door, most_threads(c) - 1);
        while (!work->over(work->argument)) {
            uint32_t seen = atomic_load(&c->pool->epoch);
            bool any = take_steps(c, 0);
            any |= help_someone(c, 0);
            if (!any && !work->over(work->argument)) prn_thread_pool_await(c->pool, seen);
        }
        prn_job_slot_close(door);
    }
    take_steps(c, 0);
    prn_thread_pool_leave(former);
}
