/* A team of worker threads that belongs to the thread that calls it; created on first use, gone with the thread.
 *
 * The caller works too. Each thread is given a run of successive tasks, claims them one by one, and then what is left of
 * the others'. The caller waits only for tasks that a worker has begun: a worker that the system does not schedule, or
 * that wakes too late, is not waited for. On a shared machine this is what keeps a run from costing a scheduler slice per
 * operator.
 */
#ifndef PRN_BASE_TEAM_H
#define PRN_BASE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

/* Runs fn(argument, task) for every task in [0, tasks) on at most `threads` threads, the caller among them. Where a worker
 * cannot be had (no memory, no thread), the others do its share. Called from inside a task it is a plain loop. Once
 * the work that the caller does is called off (stop.h), tasks that nobody has begun are left out. */
void prn_team_run(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

#define PRN_MOST_THREADS 1024 /* of a team, the caller among them */

/* What a thread of the team did while it was watched; tasks 0: nothing. */
typedef struct prn_team_share {
    int64_t start_ns, end_ns; /* of its first and last task */
    int64_t busy_ns;          /* in calls of prn_team_run, from its first task to its last */
    int64_t tasks;
} prn_team_share;

/* From now on prn_team_run adds what each thread does to shares[0 … count), of which [0] is the calling thread; NULL: no
 * longer. A thread is written by itself alone, and is done when prn_team_run returns. Not watched, a run costs nothing
 * but the test. */
void prn_team_watch(prn_team_share *shares, int count);

/* Lets the calling thread's workers go; the next run makes new ones (which inherit the affinity mask of then). */
void prn_team_dismiss(void);

#endif
