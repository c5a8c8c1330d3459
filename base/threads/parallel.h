/* Intra-op threads. Work is cut here, thread_pool.h runs it; parallel.c is the only file that knows OpenMP. */
#ifndef PRN_BASE_THREADS_PARALLEL_H
#define PRN_BASE_THREADS_PARALLEL_H

#include <stdint.h>

/* Calls fn(argument, task) for every task in [0, tasks), by at most `threads` threads of the calling thread's team.
 * Which thread takes which task is not defined; what a task does must depend on its number alone. One thread or one
 * task is a plain loop. fn must not fail; a status goes through `argument`. Tasks are left out once the work is called
 * off (cancel.h): what only they fill may not serve as an index or a size unless prn_cancelled() is asked first. */
void prn_parallel_tasks(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

/* Cuts [0, count) into pieces of a length that depends on count and grain alone (at most 64 pieces, each a multiple of
 * 64 elements but the last, none below `grain`) and runs them as tasks; a large piece is several calls of fn. */
void prn_parallel_range(int threads, int64_t count, int64_t grain,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* Cuts `items` pieces of work, `bytes` of traffic in all, into tasks of consecutive items. */
void prn_parallel_items(int threads, int64_t items, int64_t bytes,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* One of several that work side by side, each in a place of its own, such as a working space. */
typedef struct prn_slot {
    int64_t index; /* from 0 */
    struct prn_slot_work *work;
    int64_t at; /* runs of tasks that it is through with */
} prn_slot;

/* Calls fn once for every slot in [0, slots), no two of them in the same; tasks in [0, tasks) are had from
 * prn_slot_next. Each slot has a run of successive tasks, and then takes what is left of the others', so that what one
 * task leaves in a cache is there for the next one, and in the next operator that is cut alike. */
void prn_parallel_slots(int threads, int64_t slots, int64_t tasks, void (*fn)(void *argument, prn_slot *slot),
                        void *argument);

/* The next task; -1: there is none, or the work was called off. */
int64_t prn_slot_next(prn_slot *slot);

/* Sets the calling thread's OpenMP team size, for libraries that fork by themselves (oneDNN and OpenBLAS are kept at
 * 1), and returns the former one, to be handed back to prn_openmp_restore. */
int prn_openmp_limit(int threads);
void prn_openmp_restore(int former);

/* Creates the team and makes its members spin up, so that the first run pays nothing. */
void prn_thread_pool_warm(int threads);

#endif
