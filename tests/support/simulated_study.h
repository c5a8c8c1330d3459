/* A study of simulated processes: one operator is divided among threads and scales with them, one is not. */
#ifndef PRN_TESTS_SUPPORT_SIMULATED_STUDY_H
#define PRN_TESTS_SUPPORT_SIMULATED_STUDY_H

#include "profiler/study/study.h"

/* A written study, without the heap, because tests make heap calls fail. */
typedef struct study_page {
    char text[1 << 19];
    size_t size;
} study_page;

int study_page_write(void *user, const char *data, size_t size); /* a prony_write_fn; `user` is a study_page */

#define SIMULATED_SERIAL 0.1 /* fraction of the one-thread time in an operator that only one thread runs */
#define SIMULATED_NS 1000000.0

/* The report that a study begins with: of the heap, NULL without memory. */
prony_report *simulated_study_manifest(void);
prony_status simulated_study_plan(prony_study **out, const int64_t *threads, size_t count, int processes,
                                  prony_error *error);
/* Adds a process of `task` on `node`, whose machine takes `factor` times as long. */
prony_status simulated_study_add(prony_study *s, size_t node, double factor, const prony_study_task *task,
                                 uint64_t *random, prony_error *error);

/* Calls `all` until no allocation fails; each call has another failing one, and behind the n-th follows the one at
 * n + n / `denser`. A process's data that find no memory are a failed block, and memory for a note is only its absence:
 * anything else must say so. Leaks and crashes are the sanitizers' to see. */
void fail_every_allocation(prony_status (*all)(prony_error *error), uint64_t denser);

#endif
