/* Runs one process of a study at a time in a thread of its own, so that the rank's main thread goes on answering. */
#ifndef PRN_BENCH_CLUSTER_RUNNER_H
#define PRN_BENCH_CLUSTER_RUNNER_H

#include "bench/cluster/message.h"

/* Takes a task over: number of replicas, whether they wait for runner_go once all are ready, number of words, the
 * words, and the limit in milliseconds. False: out of memory, or no thread. */
bool runner_start(message *task);
/* All replicas are ready, and wait. */
bool runner_ready(void);
void runner_go(void);
/* Returns true while a process runs, or its result waits. */
bool runner_busy(void);
/* The result, once the process has ended: `result` is then a message for TAG_RESULT. False: no result yet. */
bool runner_result(message *result);

/* Ends the process that runs, and waits for that. */
void runner_end(void);

#endif
