/* Shared by thread_pool.c and executor.c: job slots, where an owner works and lets other threads in, and the latches
 * that control entry.
 *
 * A latch is one word:
 *
 *     31        open: others may enter
 *     30 … 16   how many of them at once
 *     15 …  0   how many are inside
 *
 * The owner writes the job, opens the latch, works, closes the latch and waits until no thread is inside. Others enter
 * by adding one while the latch is open, so the job (on the owner's stack) outlives all threads inside. An opened latch
 * is announced by the thread pool's `epoch`: an idle thread reads the epoch, checks all slots once, and waits until the
 * epoch changes, spinning shortly before it sleeps. Sleeping is by mutex and condition. */
#ifndef PRN_BASE_THREADS_JOB_SLOT_H
#define PRN_BASE_THREADS_JOB_SLOT_H

#include "base/threads/thread_pool.h"

#include <pthread.h>
#include <sys/types.h>
#include <stdatomic.h>

enum { PRN_CACHE_LINE_BYTES = 64 };

/* Each thread gets a run of successive tasks, so data that neighbouring tasks share is fetched by one thread. A thread
 * that has finished its run takes tasks of the others' runs. */
typedef struct prn_task_run {
    _Alignas(PRN_CACHE_LINE_BYTES) _Atomic int64_t next;
    int64_t end;
} prn_task_run;

typedef struct prn_job_slot {
    _Alignas(PRN_CACHE_LINE_BYTES) _Atomic uint32_t latch;
    _Atomic bool taken;                        /* a caller uses this slot of a thread pool */
    _Atomic int64_t width;                     /* tasks of the current job; 0: none is left to claim */
    void (*enter)(void *argument, int thread); /* called by threads that enter; written by the owner while the latch is
                                                  closed */
    void *argument;
    prn_thread_pool *pool;
    prn_task_run *runs; /* of the current job, one for each thread; only the owner replaces them */
    int run_count;
} prn_job_slot;

struct prn_thread_pool {
    _Atomic uint32_t epoch; /* counts opened latches and other events for idle threads */
    _Atomic int sleepers, owners_waiting;
    _Atomic bool quit;
    _Atomic int holders;    /* users of the pool: callers, sessions, executors */
    _Atomic int references; /* references to the memory: one for all holders, and one for each thread */
    _Atomic int spins;
    _Atomic int threads;
    pthread_t *handles; /* of the threads; used by the caller or creator alone */
    size_t handle_capacity;
    pid_t process;        /* that has the threads: a forked child has none of them */
    uint64_t affinity_id; /* of the threads; 0: none */
    bool shared;
    prn_job_slot *slots; /* of callers */
    int slot_count;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
};

/* ---- latches ---- */

bool prn_job_slot_enter(prn_job_slot *slot);
void prn_job_slot_leave(prn_job_slot *slot);
void prn_job_slot_open(prn_job_slot *slot, int most);
/* Returns when no thread is inside. */
void prn_job_slot_close(prn_job_slot *slot);
static inline bool prn_job_slot_has_room(const prn_job_slot *slot)
{
    uint32_t latch = atomic_load_explicit(&slot->latch, memory_order_acquire);
    return latch >> 31 && (latch & 0xffff) < (latch >> 16 & 0x7fff);
}

/* ---- epoch ---- */

void prn_thread_pool_announce(prn_thread_pool *pool);
/* Returns when the epoch differs from `seen`, or the thread pool ends. */
void prn_thread_pool_await(prn_thread_pool *pool, uint32_t seen);

/* ---- the calling thread ---- */

/* slot: the current job slot. set: sets the thread's context, as a thread that runs steps (not inside of a task), and
 * returns the former one. */
struct prn_job_slot *prn_thread_context_slot(void);
prn_thread_context prn_thread_context_set(prn_thread_context context);
void prn_thread_context_restore(prn_thread_context former);
/* Works on the job of an entered slot. true: it found a task. */
bool prn_job_slot_help(prn_job_slot *slot, int thread);

#endif
