/* A team of worker threads that belongs to the thread that calls it; created on first use, gone with the thread.
 *
 * The caller works too. Tasks are claimed one by one, and the caller waits only for tasks that a worker has begun: a worker
 * that the system does not schedule, or that wakes too late, is not waited for. On a shared machine this is what keeps a
 * run from costing a scheduler slice per operator.
 */
#ifndef PRN_BASE_TEAM_H
#define PRN_BASE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

/* Runs fn(argument, task) for every task in [0, tasks) on at most `threads` threads, the caller among them. Where a worker
 * cannot be had (no memory, no thread), the others do its share. Called from inside a task it is a plain loop. */
void prn_team_run(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

/* Lets the calling thread's workers go; the next run makes new ones (which inherit the affinity mask of then). */
void prn_team_dismiss(void);

#endif
