/* Offsets for every buffer of a plan. Pure: buffers with lifetimes in, offsets and figures out.
 *
 * A buffer lives from the start of step `first` to the end of step `last`, both inclusive. Two buffers overlap in time iff
 * those ranges intersect. Offsets and sizes are multiples of `alignment`.
 *
 *   bytes ^   +-------+            lower bound = max over steps of the sum of aligned live bytes
 *         |   |   B   |--+         planned     = max over buffers of offset + aligned bytes
 *         |+--+--+----+ C|         gap         = 1 - lower bound / planned
 *         ||  A  |    +--+
 *         +-----------------> step
 */
#ifndef PRN_ENGINE_MEMORY_PLAN_H
#define PRN_ENGINE_MEMORY_PLAN_H

#include "base/status.h"

typedef struct prn_buffer {
    uint64_t bytes; /* asked; 0 is allowed and takes nothing */
    uint32_t first, last;
    uint64_t offset; /* out */
} prn_buffer;

typedef struct prn_memory_plan_figures {
    uint64_t planned_bytes, lower_bound_bytes;
    uint32_t peak_step;            /* where the lower bound is attained */
    uint64_t average_live_bytes;   /* over steps */
    double external_fragmentation; /* 1 - largest free block / free bytes inside planned_bytes, at its worst step */
    double internal_fragmentation; /* 1 - asked / given over all buffers */
} prn_memory_plan_figures;

/* Tries several orders (size, area, lifetime, best fit) and, while a gap remains, a bounded, deterministic local search. */
PRN_MUST_USE prony_status prn_memory_plan(prn_buffer *buffers, size_t count, uint32_t steps, uint64_t alignment,
                                          prn_memory_plan_figures *figures, prony_error *error);

#endif
