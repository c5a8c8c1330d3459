/* Thread pools. A pool belongs to one calling thread (made on first use, ended with the thread), or is shared by
 * several callers.
 *
 * The caller works too. Each thread gets a run of successive tasks, claims them one by one, and then takes remaining
 * tasks of the others. The caller waits only for tasks that a worker has begun, not for workers that are not scheduled
 * or wake too late. So on a shared machine a run does not lose a scheduler slice per operator.
 *
 * An executor runs steps on several threads of one thread pool (an inter-op run). Each worker has a slot and takes
 * ready steps; a worker without a step takes tasks of the others' steps. */
#ifndef PRN_BASE_THREADS_THREAD_POOL_H
#define PRN_BASE_THREADS_THREAD_POOL_H

#include "base/status.h"

#include <stdint.h>

/* Runs fn(argument, task) for every task in [0, tasks) on at most `threads` threads, the caller among them; in an
 * executor with work stealing, on all its threads. If a worker cannot be created (no memory, no thread), the others do
 * its share. Inside of a task it is a plain loop. Once the caller's work is cancelled (cancel.h), tasks not yet begun
 * are skipped. */
void prn_thread_pool_run(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

/* The calling thread's number in its thread pool, 0 … PRN_MOST_THREADS - 1; 0: a caller, or a thread outside of a pool.
 * Two threads may have the same number: it is a hint for cache reuse. */
int prn_thread_pool_number(void);

#define PRN_MOST_THREADS 1024 /* of a thread pool, the caller among them */

/* Work of one thread of the pool while it was watched; tasks 0: no work. */
typedef struct prn_thread_pool_share {
    int64_t start_ns, end_ns; /* of its first and last task */
    int64_t busy_ns;          /* in calls of prn_thread_pool_run, from its first task to its last */
    int64_t tasks;
} prn_thread_pool_share;

/* From now on prn_thread_pool_run, called by this thread, adds each thread's work to shares[0 … count); [0] is a caller
 * outside of the pool. NULL: stops. Each thread writes its own entry, before prn_thread_pool_run returns. Without
 * watching, a run costs only the test. */
void prn_thread_pool_watch(prn_thread_pool_share *shares, int count);

/* Ends the calling thread's workers and waits for them; the next run makes new ones (with the affinity mask of that
 * time). */
void prn_thread_pool_shut_down(void);

/* ---- thread pools that several callers share ---- */

typedef struct prn_thread_pool prn_thread_pool;

/* Creates up to `threads` own threads, beside the callers. `shared`: several sessions will use it. Its last release
 * ends the threads. Thread-safe. */
PRN_MUST_USE prony_status prn_thread_pool_create(prn_thread_pool **out, int threads, bool shared, prony_error *error);
void prn_thread_pool_retain(prn_thread_pool *pool);
void prn_thread_pool_release(prn_thread_pool *pool);
/* Pins the threads of one caller's pool (NULL: the calling thread's own) by `affinity`, in which the caller is thread
 * 0; NULL: to the caller's mask. A shared pool is not moved. Costs a comparison if nothing changes. Later threads
 * follow prn_affinity_current. */
typedef struct prn_affinity prn_affinity;
void prn_thread_pool_set_affinity(prn_thread_pool *pool, prn_affinity *affinity);
/* Number of its threads. */
int prn_thread_pool_size(const prn_thread_pool *pool);

/* The context in which the calling thread runs parallel work. */
typedef struct prn_thread_context {
    struct prn_job_slot *slot; /* NULL: with its own thread pool */
    int most;                  /* limit of threads in one job; 0: no limit */
    bool alone;                /* no other threads take part */
    bool task;                 /* inside of a task */
} prn_thread_context;

/* The calling thread's parallel work runs on `pool` until prn_thread_pool_leave restores the former context. */
prn_thread_context prn_thread_pool_join(prn_thread_pool *pool);
void prn_thread_pool_leave(prn_thread_context former);

/* ---- executors ---- */

typedef struct prn_executor prn_executor;

/* At most `workers` threads, the caller included, run steps; at most workers * threads work at all; without `help` at
 * most `threads` in one step. Keeps a reference to the thread pool. One run at a time. */
PRN_MUST_USE prony_status prn_executor_create(prn_executor **out, prn_thread_pool *pool, int workers, int threads,
                                              bool help, prony_error *error);
void prn_executor_release(prn_executor *executor);

/* The steps that the executor runs. */
typedef struct prn_executor_work {
    /* Takes one step that is ready, as worker 0 … workers - 1 (each number in one thread at a time), and runs it.
     * false: no step is ready. */
    bool (*take)(void *argument, int worker);
    /* true: all steps are finished or will not run. */
    bool (*over)(void *argument);
    void *argument;
} prn_executor_work;

/* The caller is worker 0. Returns when `over`, no thread is inside, and no step can be taken. */
void prn_executor_run(prn_executor *executor, const prn_executor_work *work);
/* To be called by the thread that made a step ready or ended the run. */
void prn_executor_announce(prn_executor *executor);

#endif
