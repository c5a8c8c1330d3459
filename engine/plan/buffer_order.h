/* What several workers make of lifetimes: which steps use and first write the bytes of a root value, and which buffers
 * are dead before which others are written, whatever the order of steps that the edges allow.
 *
 * A list of users need hold only those that no other user follows, and one of writers those that no other writer comes
 * before: an output that takes over its input's bytes leaves the users of the output and the writers of the input.
 */
#ifndef PRN_ENGINE_PLAN_BUFFER_ORDER_H
#define PRN_ENGINE_PLAN_BUFFER_ORDER_H

#include "engine/memory/memory_plan.h"
#include "engine/plan/step_graph.h"

struct prn_plan;

typedef struct prn_byte_use {
    uint32_t step, next; /* UINT32_MAX ends */
} prn_byte_use;

typedef struct prn_uses {
    uint32_t *users, *writers; /* [values] of a root: first of a list in `items` */
    bool *kept;                /* [values] of a root: a graph output, which no step ends */
    prn_byte_use *items;
    size_t count;
    const prn_step_graph *graph;
} prn_uses;

/* The plan's `graph` is made, its roots are settled but for outputs in place. */
PRN_MUST_USE prony_status prn_uses_find(prn_uses *uses, const struct prn_plan *plan, prony_error *error);
void prn_uses_free(prn_uses *uses);
/* Whether step `s` may write root `out` over root `in`: all that use `in` end before it, all that use `out` start
 * after. */
bool prn_uses_allow(const prn_uses *uses, uint32_t in, uint32_t out, uint32_t s);
void prn_uses_merge(prn_uses *uses, uint32_t in, uint32_t out);

/* Plans the memory of the plan's buffers by that order. */
PRN_MUST_USE prony_status prn_plan_memory_by(struct prn_plan *plan, const prn_uses *uses, uint64_t alignment,
                                             prony_error *error);

#endif
