/* Cancellation: ends work early on request.
 *
 * A token is one flag that any thread may set. The working thread enters the token, and so do its pool's workers while
 * they run its tasks. Long loops ask prn_cancelled() every few milliseconds and return early. Their results are then
 * garbage: a loop needs no status, but its results must not be kept or used as an index or a size. The engine asks
 * again after every operator, and drops all results. */
#ifndef PRN_BASE_THREADS_CANCEL_H
#define PRN_BASE_THREADS_CANCEL_H

#include "base/status.h"

#include <stdatomic.h>

typedef struct prn_cancel_token {
    atomic_bool requested;
} prn_cancel_token;

static inline bool prn_cancel_requested(const prn_cancel_token *stop)
{
    return stop && atomic_load_explicit(&stop->requested, memory_order_relaxed);
}

/* The calling thread observes `stop` from now on (NULL: it cannot be cancelled). Returns the previous token, to be
 * passed to this function later. */
const prn_cancel_token *prn_cancel_token_enter(const prn_cancel_token *stop);
/* The token that the calling thread observes. */
const prn_cancel_token *prn_cancel_token_current(void);
/* true: the calling thread's work has been cancelled. */
bool prn_cancelled(void);

/* The same for loops of short steps: asked at one step in 16384. */
static inline bool prn_cancelled_at(int64_t step)
{
    return (step & 16383) == 16383 && prn_cancelled();
}

/* PRONY_CANCELLED with its message, if the work has been cancelled. */
PRN_MUST_USE prony_status prn_cancel_check(prony_error *error);

/* memcpy in pieces, which stops once the work is cancelled. */
void prn_cancellable_copy(void *to, const void *from, size_t bytes);
/* The same with zeros. */
void prn_cancellable_clear(void *to, size_t bytes);

#endif
