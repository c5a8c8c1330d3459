/* Assigns an offset to every buffer of a plan. Pure: buffers with lifetimes in, offsets and metrics out.
 *
 * A buffer lives from the start of step `first` to the end of step `last`, both inclusive. Two buffers overlap in time
 * iff those ranges intersect. Offsets and sizes are multiples of `alignment`.
 *
 *   bytes ^   +-------+            lower bound = max over steps of the sum of aligned live bytes
 *         |   |   B   |--+         planned     = max over buffers of offset + aligned bytes
 *         |+--+--+----+ C|         gap         = 1 - lower bound / planned
 *         ||  A  |    +--+
 *         +-----------------> step */
#ifndef PRN_ENGINE_MEMORY_MEMORY_PLAN_H
#define PRN_ENGINE_MEMORY_MEMORY_PLAN_H

#include "base/status.h"

typedef struct prn_buffer {
    uint64_t bytes; /* asked; 0 is allowed and takes nothing */
    uint32_t first, last;
    uint64_t offset; /* out */
} prn_buffer;

typedef struct prn_memory_plan_figures {
    uint64_t planned_bytes, lower_bound_bytes;
    uint32_t peak_step;            /* the step that attains the lower bound */
    uint64_t average_live_bytes;   /* over steps */
    double external_fragmentation; /* 1 - largest free block / free bytes inside planned_bytes, at its worst step */
    double internal_fragmentation; /* 1 - asked / given over all buffers */
    uint64_t visits;               /* buffers that the planner looked at: its work */
} prn_memory_plan_figures;

/* Which buffers may be live together when steps run in parallel. Lifetimes in steps do not hold then; instead every
 * pair of buffers is either ordered or not. */
typedef struct prn_buffer_order {
    /* true: `a` is dead before `b` is first written, in every order of steps. Transitive. */
    bool (*before)(const void *argument, uint32_t a, uint32_t b);
    const void *argument;
    uint32_t window; /* > 0: steps per window; a buffer that ends in an earlier window is before one that starts in a
                        later window */
} prn_buffer_order;

/* Tries several orders (size, area, lifetime, best fit) and, while a gap remains, a bounded, deterministic local
 * search. */
PRN_MUST_USE prony_status prn_memory_plan(prn_buffer *buffers, size_t count, uint32_t steps, uint64_t alignment,
                                          prn_memory_plan_figures *figures, prony_error *error);
/* As above, but buffers share bytes only if one is before the other by `order`. The lower bound is then the
 * maximum-weight antichain: the largest sum of bytes of buffers that are not ordered. For more than PRN_MOST_EXACT
 * buffers it is the bound by lifetimes in steps, which is never larger. Peak step, average and external fragmentation
 * are those of sequential steps. */
PRN_MUST_USE prony_status prn_memory_plan_by(prn_buffer *buffers, size_t count, uint32_t steps, uint64_t alignment,
                                             const prn_buffer_order *order, prn_memory_plan_figures *figures,
                                             prony_error *error);
#define PRN_MOST_EXACT 1024
/* The weight of the maximum-weight antichain: no buffer in it is before another. 0 if it is too expensive to
 * compute. */
PRN_MUST_USE prony_status prn_max_weight_antichain(const uint64_t *bytes, const uint32_t *buffer, size_t count,
                                                   const prn_buffer_order *order, uint64_t *heaviest,
                                                   prony_error *error);

#endif
