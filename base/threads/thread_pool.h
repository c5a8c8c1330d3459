/* Threads that help their callers: a team belongs to one calling thread (made on first use, gone with the thread), or
 * is shared by several callers (a pool).
 *
 * A caller works too. Each thread is given a run of successive tasks, claims them one by one, and then what is left of
 * the others'. The caller waits only for tasks that a worker has begun: a worker that the system does not schedule, or
 * that wakes too late, is not waited for. On a shared machine this is what keeps a run from costing a scheduler slice
 * per operator.
 *
 * A executor is several threads of one team in one piece of work that consists of steps (an inter-op run): each sits at a
 * slot, takes steps that are ready, and whoever has none helps with the tasks of the others' steps. */
#ifndef PRN_BASE_THREADS_THREAD_POOL_H
#define PRN_BASE_THREADS_THREAD_POOL_H

#include "base/status.h"

#include <stdint.h>

/* Runs fn(argument, task) for every task in [0, tasks) on at most `threads` threads, the caller among them; in a executor
 * that helps, on as many as it has. Where a worker cannot be had (no memory, no thread), the others do its share.
 * Called from inside a task it is a plain loop. Once the work that the caller does is called off (cancel.h), tasks that
 * nobody has begun are left out. */
void prn_thread_pool_run(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

/* The calling thread's number in its team, 0 … PRN_MOST_THREADS - 1; 0: a caller, or no thread of a team. Two threads
 * may have the same: it is a hint, of whose cache holds what. */
int prn_thread_pool_number(void);

#define PRN_MOST_THREADS 1024 /* of a team, the caller among them */

/* What a thread of the team did while it was watched; tasks 0: nothing. */
typedef struct prn_thread_pool_share {
    int64_t start_ns, end_ns; /* of its first and last task */
    int64_t busy_ns;          /* in calls of prn_thread_pool_run, from its first task to its last */
    int64_t tasks;
} prn_thread_pool_share;

/* From now on what the calling thread gives to prn_thread_pool_run adds what each thread does of it to shares[0 … count), of
 * which [0] is a caller that is no thread of the team; NULL: no longer. A thread is written by itself alone, and is
 * done when prn_thread_pool_run returns. Not watched, a run costs nothing but the test. */
void prn_thread_pool_watch(prn_thread_pool_share *shares, int count);

/* Lets the calling thread's workers go; the next run makes new ones (which inherit the affinity mask of then). */
void prn_thread_pool_shut_down(void);

/* ---- thread pools that several callers share ---- */

typedef struct prn_thread_pool prn_thread_pool;

/* `threads` of its own, beside the callers'; as many as can be had. `shared`: more than one session will use it. Its
 * last release ends the threads. Thread-safe. */
PRN_MUST_USE prony_status prn_thread_pool_create(prn_thread_pool **out, int threads, bool shared, prony_error *error);
void prn_thread_pool_retain(prn_thread_pool *team);
void prn_thread_pool_release(prn_thread_pool *team);
/* Puts the threads of a team that one caller has (NULL: the calling thread's own) where `placement` says, of which the
 * caller is thread 0; NULL: where the caller may run. A shared team stays where it is. Costs a comparison if they are
 * there. Threads that come later go where prn_placement_current says. */
typedef struct prn_placement prn_placement;
void prn_thread_pool_set_affinity(prn_thread_pool *team, prn_placement *placement);
/* Threads that it has. */
int prn_thread_pool_size(const prn_thread_pool *team);

/* Where the calling thread works until it takes another place. */
typedef struct prn_thread_context {
    struct prn_job_slot *slot; /* NULL: with its own team */
    int most;                  /* threads in one job, whatever is asked for; 0: what is asked for */
    bool alone;                /* without any help */
    bool task;                 /* inside of a task */
} prn_thread_context;

/* The calling thread's work goes to `team` from now on, until prn_thread_pool_leave gives it its former place back. */
prn_thread_context prn_thread_pool_join(prn_thread_pool *team);
void prn_thread_pool_leave(prn_thread_context former);

/* ---- executors ---- */

typedef struct prn_executor prn_executor;

/* At most `workers` of the team and its caller run steps, at most workers * threads of them do anything; without `help`
 * at most `threads` of them in one step. Keeps a reference to the team. One run at a time. */
PRN_MUST_USE prony_status prn_executor_create(prn_executor **out, prn_thread_pool *team, int workers, int threads,
                                              bool help, prony_error *error);
void prn_executor_release(prn_executor *executor);

/* What the executor runs. */
typedef struct prn_executor_work {
    /* Takes one step that is ready, as worker 0 … workers - 1 (no two at once as the same), and runs it. false: none
     * is. */
    bool (*take)(void *argument, int worker);
    /* Whether no step needs to be waited for any more. */
    bool (*over)(void *argument);
    void *argument;
} prn_executor_work;

/* The caller is worker 0. Returns when `over`, nobody is inside, and nothing can be taken. */
void prn_executor_run(prn_executor *executor, const prn_executor_work *work);
/* There is more to take, or it is over: to be called by whoever made it so. */
void prn_executor_announce(prn_executor *executor);

#endif
