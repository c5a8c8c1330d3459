/* Ending work early because somebody asked for it.
 *
 * A request is one flag that any thread may set. The thread that works for its owner has entered it, and so have the
 * workers of its team while they have tasks of it; whatever takes long then asks prn_cancelled() every few milliseconds
 * and returns early. What was left out is garbage: a loop needs no status of its own, but what it leaves behind may not
 * be used as an index or a size, nor be kept. The engine asks again behind every operator, and gives everything up. */
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

/* From now on the calling thread works for `stop` (NULL: nobody ends it). Returns what it worked for before, to be
 * handed back to this function. */
const prn_cancel_token *prn_cancel_token_enter(const prn_cancel_token *stop);
/* What the calling thread works for. */
const prn_cancel_token *prn_cancel_token_current(void);
/* Whether its work has been called off. */
bool prn_cancelled(void);

/* The same for loops of short steps: asked at one step in 16384. */
static inline bool prn_cancelled_at(int64_t step)
{
    return (step & 16383) == 16383 && prn_cancelled();
}

/* PRONY_CANCELLED with the message of it, if so. */
PRN_MUST_USE prony_status prn_cancel_check(prony_error *error);

/* memcpy, in pieces, the rest of which is left out once the work is called off. */
void prn_cancellable_copy(void *to, const void *from, size_t bytes);
/* The same with zeros. */
void prn_cancellable_clear(void *to, size_t bytes);

#endif
