/* Where the threads of a session run: an affinity list, in the order in which threads take its processors.
 *
 * A run pins the calling thread and its team for as long as it lasts. prn_pin_begin and prn_pin_end enclose it; an
 * inner pair with the same placement costs a comparison, so that whoever makes many runs pins once around all of them,
 * and a thread that has the mask already is not moved. After the outermost end the calling thread has the mask that it
 * came with; its workers, which nobody else sees, stay where they are until another placement, or none, is begun.
 *
 * Ownership: a placement belongs to one session and outlives the pins on it. It is used by one thread at a time. */
#ifndef PRN_BASE_THREADS_PLACEMENT_H
#define PRN_BASE_THREADS_PLACEMENT_H

#include "base/os/cpu_mask.h"
#include "base/status.h"

typedef struct prn_placement {
    uint64_t id;       /* no other placement in this process has it; never 0 */
    prn_cpu_mask mask; /* what of the list may be used */
    int *order;        /* [count], thread i takes order[i] */
    int count;
    int threads;       /* of the session; more than count: each may use the whole mask */
    int first;         /* of a session that shares its list with others: place of its own first thread */
    char *used;        /* order as text, "0,2,1,3" */
    char failure[160]; /* what of the list could not be had, or why a thread was not pinned; "": nothing */
} prn_placement;

/* "0-3,8" is PRONY_OK, whatever processors there are. */
PRN_MUST_USE prony_status prn_affinity_check(const char *list, prony_error *error);

/* A list that is none is PRONY_INVALID_ARGUMENT. Processors that do not exist or are not allowed are left out, which
 * `failure` says; if none is left, count is 0 and nothing is ever pinned. */
PRN_MUST_USE prony_status prn_placement_create(prn_placement **out, const char *list, prony_error *error);
void prn_placement_release(prn_placement *placement);

/* The mask of thread `index` of the session. */
void prn_placement_mask(const prn_placement *placement, int index, prn_cpu_mask *mask);

/* What the calling thread is pinned by; NULL: nothing. */
prn_placement *prn_placement_current(void);
void prn_placement_enter(prn_placement *placement); /* by prn_pin_begin and prn_pin_end */

typedef struct prn_pin {
    prn_placement *outer;
    prn_cpu_mask former; /* of the calling thread; valid if `pinned` */
    bool entered, pinned;
} prn_pin;

/* NULL: no placement. A thread that cannot be pinned runs where it may, which `failure` says. */
void prn_pin_begin(prn_pin *pin, prn_placement *placement);
void prn_pin_end(const prn_pin *pin);

#endif
