/* Pins that runs hold on an affinity's processors: of the calling thread, and of its thread pool. */
#include "base/threads/affinity.h"
#include "base/threads/thread_pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void prn_pin_begin(prn_pin *pin, prn_affinity *affinity)
{
    prn_affinity *current = prn_affinity_current();
    pin->outer = current;
    pin->entered = pin->pinned = false; /* the mask stays unset, because it is large and every run passes here */
    if (affinity && affinity->count == 0) affinity = NULL;
    if (current && (affinity == current || !affinity)) return;
    if (affinity) {
        prn_cpu_mask mask;
        prn_affinity_mask(affinity, 0, &mask);
        bool known = prn_cpu_mask_get(&pin->former), there = known && memcmp(&mask, &pin->former, sizeof mask) == 0;
        pin->pinned = known && !there && prn_cpu_mask_set(&mask);
        if (!there && !pin->pinned)
            snprintf(affinity->failure, sizeof affinity->failure, "the system did not pin the calling thread: %s",
                     strerror(errno));
        pin->entered = true;
        prn_affinity_enter(affinity);
    }
    prn_thread_pool_set_affinity(NULL, affinity);
}

void prn_pin_end(const prn_pin *pin)
{
    if (!pin->entered) return;
    prn_affinity_enter(pin->outer);
    if (pin->pinned) (void)prn_cpu_mask_set(&pin->former);
    if (pin->outer) prn_thread_pool_set_affinity(NULL, pin->outer);
}
