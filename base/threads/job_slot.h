/* What thread_pool.c and executor.c share: slots, where one thread works and lets others in, and the latches that order the two.
 *
 * A latch is one word:
 *
 *     31        open: others may enter
 *     30 … 16   how many of them at once
 *     15 …  0   how many are inside
 *
 * The owner writes what others need, opens the latch, works, closes the latch and waits until nobody is inside. Others
 * enter by adding one while it is open, so what the owner wrote (on its stack) outlives everyone inside. A latch that
 * opens is announced by the team's `epoch`: an idle thread reads the epoch, looks everywhere once, and waits for other
 * epoch than it has read, spinning shortly before it sleeps. Sleeping is by mutex and condition.
 */
#ifndef PRN_BASE_THREADS_JOB_SLOT_H
#define PRN_BASE_THREADS_JOB_SLOT_H

#include "base/threads/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PRN_CACHE_LINE_BYTES = 64 };

/* Tasks are shared out in runs of successive ones, a run to a thread, so that what neighbours read in common is fetched
 * by one of them; whoever is through with its own run helps with the others'. */
typedef struct prn_task_run {
    _Alignas(PRN_CACHE_LINE_BYTES) _Atomic int64_t next;
    int64_t end;
} prn_task_run;

typedef struct prn_job_slot {
    _Alignas(PRN_CACHE_LINE_BYTES) _Atomic uint32_t latch;
    _Atomic bool taken;                        /* by a caller; of a team's own slots */
    _Atomic int64_t width;                     /* tasks of the job at hand; 0: none is left to claim */
    void (*enter)(void *argument, int thread); /* what those do who enter; the owner's to write while it is closed */
    void *argument;
    prn_thread_pool *team;
    prn_task_run *runs; /* of the job at hand, one for each thread; the owner's alone to replace */
    int run_count;
} prn_job_slot;

struct prn_thread_pool {
    _Atomic uint32_t epoch; /* counts latches that opened, and what else idle threads should look at */
    _Atomic int sleepers, owners_waiting;
    _Atomic bool quit;
    _Atomic int holders;    /* who may still use it: callers, sessions, executors */
    _Atomic int references; /* holders as one, and its threads: the memory's */
    _Atomic int spins;
    _Atomic int threads;
    pthread_t *handles; /* of the threads; the caller's, or the creator's, alone */
    size_t handle_capacity;
    uint64_t placed; /* id of the placement that the threads are in; 0: none */
    bool shared;
    prn_job_slot *slots; /* of callers */
    int desk_count;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
};

/* ---- latches ---- */

bool prn_job_slot_enter(prn_job_slot *slot);
void prn_job_slot_leave(prn_job_slot *slot);
void prn_job_slot_open(prn_job_slot *slot, int most);
/* Returns when nobody is inside. */
void prn_job_slot_close(prn_job_slot *slot);
static inline bool prn_job_slot_has_room(const prn_job_slot *slot)
{
    uint32_t latch = atomic_load_explicit(&slot->latch, memory_order_acquire);
    return latch >> 31 && (latch & 0xffff) < (latch >> 16 & 0x7fff);
}

/* ---- epoch ---- */

void prn_thread_pool_announce(prn_thread_pool *team);
/* Returns when the epoch are others than `seen`, or the team ends. */
void prn_thread_pool_await(prn_thread_pool *team, uint32_t seen);

/* ---- the calling thread ---- */

/* Where it works from now on, as one that runs steps (not inside of a task); its former place. */
struct prn_job_slot *prn_thread_context_slot(void);
prn_thread_context prn_thread_context_set(prn_thread_context place);
void prn_thread_context_restore(prn_thread_context former);
/* Takes part in the job of a slot that it has entered. Whether it found a task. */
bool prn_job_slot_help(prn_job_slot *slot, int thread);

#endif
