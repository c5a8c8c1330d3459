/* Pins that runs hold on a placement's processors: of the calling thread, and of its thread pool. */
#include "base/threads/placement.h"
#include "base/threads/thread_pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void prn_pin_begin(prn_pin *pin, prn_placement *placement)
{
    prn_placement *current = prn_placement_current();
    pin->outer = current;
    pin->entered = pin->pinned = false; /* the mask stays unset, because it is large and every run passes here */
    if (placement && placement->count == 0) placement = NULL;
    if (current && (placement == current || !placement)) return;
    if (placement) {
        prn_cpu_mask mask;
        prn_placement_mask(placement, 0, &mask);
        bool known = prn_cpu_mask_get(&pin->former), there = known && memcmp(&mask, &pin->former, sizeof mask) == 0;
        pin->pinned = known && !there && prn_cpu_mask_set(&mask);
        if (!there && !pin->pinned)
            snprintf(placement->failure, sizeof placement->failure, "the system did not pin the calling thread: %s",
                     strerror(errno));
        pin->entered = true;
        prn_placement_enter(placement);
    }
    prn_thread_pool_set_affinity(NULL, placement);
}

void prn_pin_end(const prn_pin *pin)
{
    if (!pin->entered) return;
    prn_placement_enter(pin->outer);
    if (pin->pinned) (void)prn_cpu_mask_set(&pin->former);
    if (pin->outer) prn_thread_pool_set_affinity(NULL, pin->outer);
}
