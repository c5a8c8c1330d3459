/* Affinity of a session's threads: a list of processors, in the order in which threads take them.
 *
 * A run pins the calling thread and its thread pool, between prn_pin_begin and prn_pin_end. An inner pair with the same
 * affinity costs a comparison, so callers with many runs pin once around all of them. A thread that already has the
 * mask is not moved. After the outermost end the calling thread has its former mask. Its workers, which are private,
 * stay until another affinity, or none, is begun.
 *
 * Ownership: an affinity belongs to one session and outlives the pins on it. One thread at a time uses it. */
#ifndef PRN_BASE_THREADS_AFFINITY_H
#define PRN_BASE_THREADS_AFFINITY_H

#include "base/os/cpu_mask.h"
#include "base/status.h"

typedef struct prn_affinity {
    uint64_t id;       /* unique in this process; never 0 */
    prn_cpu_mask mask; /* usable processors of the list */
    int *order;        /* [count], thread i takes order[i] */
    int count;
    int threads;       /* of the session; more than count: each may use the whole mask */
    int first;         /* of a session that shares its list with others: position of its first thread */
    char *used;        /* order as text, "0,2,1,3" */
    char failure[160]; /* unusable processors of the list, or why a thread was not pinned; "": no failure */
} prn_affinity;

/* "0-3,8" is PRONY_OK, even if the machine lacks these processors. */
PRN_MUST_USE prony_status prn_affinity_check(const char *list, prony_error *error);

/* PRONY_INVALID_ARGUMENT: the list is malformed. Processors that do not exist or are not allowed are left out and named
 * in `failure`; if none is left, count is 0 and no thread is pinned. */
PRN_MUST_USE prony_status prn_affinity_create(prn_affinity **out, const char *list, prony_error *error);
void prn_affinity_release(prn_affinity *affinity);

/* The mask of thread `index` of the session. */
void prn_affinity_mask(const prn_affinity *affinity, int index, prn_cpu_mask *mask);

/* The affinity that pins the calling thread; NULL: none. */
prn_affinity *prn_affinity_current(void);
void prn_affinity_enter(prn_affinity *affinity); /* by prn_pin_begin and prn_pin_end */

typedef struct prn_pin {
    prn_affinity *outer;
    prn_cpu_mask former; /* of the calling thread; valid if `pinned` */
    bool entered, pinned;
} prn_pin;

/* NULL: no affinity. A thread that cannot be pinned runs on any allowed processor; `failure` says so. */
void prn_pin_begin(prn_pin *pin, prn_affinity *affinity);
void prn_pin_end(const prn_pin *pin);

#endif
