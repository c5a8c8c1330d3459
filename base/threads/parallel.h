/* Intra-op threads: splits work into tasks that thread_pool.h runs. Only parallel.c uses OpenMP. */
#ifndef PRN_BASE_THREADS_PARALLEL_H
#define PRN_BASE_THREADS_PARALLEL_H

#include <stdint.h>

/* Calls fn(argument, task) for every task in [0, tasks), by at most `threads` threads of the calling thread's thread
 * pool. The assignment of tasks to threads is not defined; a task's work must depend on its number alone. One thread or
 * one task is a plain loop. fn must not fail; a status goes through `argument`. Tasks are skipped once the work is
 * cancelled (cancel.h): their results must not serve as an index or a size unless prn_cancelled() is asked first. */
void prn_parallel_tasks(int threads, int64_t tasks, void (*fn)(void *argument, int64_t task), void *argument);

/* Cuts [0, count) into pieces of a length that depends on count and grain alone (at most 64 pieces, each a multiple of
 * 64 elements but the last, none below `grain`) and runs them as tasks; a large piece is several calls of fn. */
void prn_parallel_range(int threads, int64_t count, int64_t grain,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* Cuts `items` pieces of work, `bytes` of traffic in all, into tasks of consecutive items. */
void prn_parallel_items(int threads, int64_t items, int64_t bytes,
                        void (*fn)(void *argument, int64_t begin, int64_t end), void *argument);

/* One of several parallel slots, each with its own data, such as a scratch buffer. */
typedef struct prn_slot {
    int64_t index; /* from 0 */
    struct prn_slot_work *work;
    int64_t at; /* number of finished runs of tasks */
} prn_slot;

/* Calls fn once for every slot in [0, slots); fn takes tasks in [0, tasks) from prn_slot_next. Each slot has a run of
 * successive tasks, and then takes remaining ones of the others. So a task finds the cached data of its predecessor,
 * also in the next operator with the same split. */
void prn_parallel_slots(int threads, int64_t slots, int64_t tasks, void (*fn)(void *argument, prn_slot *slot),
                        void *argument);

/* The next task; -1: no task is left, or the work was cancelled. */
int64_t prn_slot_next(prn_slot *slot);

/* Sets the calling thread's OpenMP thread count, for libraries that fork by themselves (oneDNN and OpenBLAS are kept at
 * 1). Returns the former count for prn_openmp_restore. */
int prn_openmp_limit(int threads);
void prn_openmp_restore(int former);

/* Creates the thread pool and starts its threads, so that the first run does not. */
void prn_thread_pool_warm(int threads);

#endif
