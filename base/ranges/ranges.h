/* Ranges around runs and operators, for profilers of others (prony_ranges.h). */
#ifndef PRN_BASE_RANGES_RANGES_H
#define PRN_BASE_RANGES_RANGES_H

#include "base/status.h"
#include "prony_ranges.h"

#include <stdatomic.h>

extern _Atomic(const prony_range_hooks *) prn_range_hooks;

/* The hooks of now; NULL: none. A range is pushed and popped by the same ones. */
static inline const prony_range_hooks *prn_ranges(void)
{
    return atomic_load_explicit(&prn_range_hooks, memory_order_acquire);
}

#endif
