/* Intra-op threads. Work is cut here, team.h runs it; parallel.c is the only file that knows OpenMP. */
#ifndef PRN_BASE_PARALLEL_H
#define PRN_BASE_PARALLEL_H

#include <stdint.h>

/* Calls fn(argument, task) for every task in [0, tasks), by at most `threads` threads of the calling thread's team. Which
 * thread takes which task is not defined; what a task does must depend on its number alone. One thread or one task is a
 * plain loop. fn must not fail; a status goes through `argument`. Tasks are left out once the work is called off (stop.h):
 * what only they fill may not serve as an index or a size unless prn_stopped() is asked first. */
void prn_parallel_tasks(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

/* Cuts [0, count) into pieces of a length that depends on count and grain alone (at most 64 pieces, each a multiple of
 * 64 elements but the last, none below `grain`) and runs them as tasks; a large piece is several calls of fn. */
void prn_parallel_range(int threads, int64_t count, int64_t grain, void (*fn)(void *argument, int64_t begin, int64_t end),
                        void *argument);

/* Cuts `items` pieces of work, `bytes` of traffic in all, into tasks of consecutive items. */
void prn_parallel_items(int threads, int64_t items, int64_t bytes,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* Sets the calling thread's OpenMP team size, for libraries that fork by themselves (oneDNN and OpenBLAS are kept at 1), and
 * returns the former one, to be handed back to prn_openmp_restore. */
int prn_openmp_limit(int threads);
void prn_openmp_restore(int former);

/* Creates the team and makes its members spin up, so that the first run pays nothing. */
void prn_team_warm(int threads);

#endif
