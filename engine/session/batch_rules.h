/* The rules of a batcher, shared by batcher.c and its simulation (profiler/measure/batch_simulate.c): sizes of runs,
 * the number of requests that a run takes, and the end of a wait for others. */
#ifndef PRN_ENGINE_SESSION_BATCH_RULES_H
#define PRN_ENGINE_SESSION_BATCH_RULES_H

#include <stddef.h>
#include <stdint.h>

enum { PRN_BATCH_SIZES = 4, PRN_BATCH_MOST_SESSIONS = 1024, PRN_BATCH_MOST = 65536, PRN_BATCH_DEFAULT_QUEUE = 65536 };

/* Fills `sizes` with 1, max and up to two powers of two between, evenly spaced by logarithm, ascending. Returns how
 * many. */
int prn_batch_sizes(int64_t sizes[PRN_BATCH_SIZES], int64_t max);

/* Requests that the next run takes of `waiting` equal ones (at least 1): the largest size that is not above. */
int64_t prn_batch_next_size(const int64_t *sizes, int count, int64_t waiting);

/* The end of the wait for others, for the oldest request. A deadline (0: none) leaves half of its time to the run. A
 * window beyond the clock's range has no end: INT64_MAX. */
int64_t prn_batch_window_end(int64_t submitted_ns, int64_t max_wait_ns, int64_t deadline_ns);

#endif
