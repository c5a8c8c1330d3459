/* Ending work early because somebody asked for it.
 *
 * A request is one flag that any thread may set. The thread that works for its owner has entered it, and so have the
 * workers of its team while they have tasks of it; whatever takes long then asks prn_stopped() every few milliseconds
 * and returns early. What was left out is garbage: a loop needs no status of its own, but what it leaves behind may not
 * be used as an index or a size, nor be kept. The engine asks again behind every operator, and gives everything up. */
#ifndef PRN_BASE_STOP_H
#define PRN_BASE_STOP_H

#include "base/status.h"

#include <stdatomic.h>

typedef struct prn_stop {
    atomic_bool requested;
} prn_stop;

static inline bool prn_stop_requested(const prn_stop *stop)
{
    return stop && atomic_load_explicit(&stop->requested, memory_order_relaxed);
}

/* From now on the calling thread works for `stop` (NULL: nobody ends it). Returns what it worked for before, to be
 * handed back to this function. */
const prn_stop *prn_stop_enter(const prn_stop *stop);
/* What the calling thread works for. */
const prn_stop *prn_stop_current(void);
/* Whether its work has been called off. */
bool prn_stopped(void);

/* The same for loops of short steps: asked at one step in 16384. */
static inline bool prn_stopped_at(int64_t step)
{
    return (step & 16383) == 16383 && prn_stopped();
}

/* PRONY_CANCELLED with the message of it, if so. */
PRN_MUST_USE prony_status prn_stop_check(prony_error *error);

/* memcpy, in pieces, the rest of which is left out once the work is called off. */
void prn_stop_copy(void *to, const void *from, size_t bytes);
/* The same with zeros. */
void prn_stop_clear(void *to, size_t bytes);

#endif
