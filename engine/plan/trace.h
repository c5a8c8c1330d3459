/* Events that the dispatcher writes during a run: one preallocated event per executed operator. Owned by the session;
 * several workers write events of their own. */
#ifndef PRN_ENGINE_PLAN_TRACE_H
#define PRN_ENGINE_PLAN_TRACE_H

#include "base/threads/thread_pool.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct prn_event {
    int64_t start_ns, end_ns;    /* two own stamps; never shared with a neighbour */
    uint32_t step;               /* operator index in the plan */
    uint16_t worker;             /* that ran it; 0: the caller */
    uint32_t library_heap_calls; /* 0 with several workers, whose calls cannot be told apart */
} prn_event;

/* Events of one run, in the order in which operators began. */
typedef struct prn_trace {
    prn_event *events;
    size_t capacity, count;
    uint64_t dropped; /* events that found no room */
    /* [share_steps][members]: each thread's share of each operator; NULL: not asked for. */
    prn_thread_pool_share *shares;
    size_t share_steps;
    int members;
    void (*watch)(void *user, uint32_t step, bool end); /* called before and after each operator, outside of its stamps;
                                                           NULL: no call */
    void *watch_user;
} prn_trace;

#endif
