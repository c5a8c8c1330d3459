/* Lifetimes under several workers: the steps that use and first write the bytes of a root value, and the pairs of
 * buffers where one is dead before the other is written, in every order of steps that the edges allow.
 *
 * A list of users holds only users that no other user follows; a list of writers only writers that no other writer
 * precedes. An output that reuses its input's bytes keeps the users of the output and the writers of the input.
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
    bool *kept;                /* [values] of a root: a graph output, which lives beyond the last step */
    prn_byte_use *items;
    size_t count;
    const prn_step_graph *graph;
} prn_uses;

/* Called when the plan's `graph` is made and its roots are final except for in-place outputs. */
PRN_MUST_USE prony_status prn_uses_find(prn_uses *uses, const struct prn_plan *plan, prony_error *error);
void prn_uses_free(prn_uses *uses);
/* true: step `s` may write root `out` over root `in`. All users of `in` end before it, all users of `out` start after
 * it. */
bool prn_uses_allow(const prn_uses *uses, uint32_t in, uint32_t out, uint32_t s);
void prn_uses_merge(prn_uses *uses, uint32_t in, uint32_t out);

/* Plans the memory of the plan's buffers by that order. */
PRN_MUST_USE prony_status prn_plan_memory_by(struct prn_plan *plan, const prn_uses *uses, uint64_t alignment,
                                             prony_error *error);

#endif
