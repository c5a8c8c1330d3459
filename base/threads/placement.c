/* Affinity lists. The kernel tells which processors are allowed: a mask that is set and read back lacks processors that
 * do not exist or that a cpuset forbids. */
#include "base/threads/placement.h"
#include "base/memory/alloc.h"
#include "base/cpu/topology.h"

#include <stdatomic.h>
#include <stdio.h>

static _Thread_local prn_placement *current; /* the placement that pins the calling thread */

prony_status prn_affinity_check(const char *list, prony_error *error)
{
    prn_cpu_mask mask;
    if (prn_cpu_mask_parse(&mask, list)) return PRONY_OK;
    return prn_fail(error, PRONY_INVALID_ARGUMENT,
                    "affinity '%s' is not a core list such as 0-3,8 with numbers from 0 to %d", list, PRN_MAX_CPUS - 1);
}

/* The part of `wanted` that the kernel allows the calling thread, which keeps its own mask. */
static void allowed_part(prn_cpu_mask *out, const prn_cpu_mask *wanted)
{
    prn_cpu_mask former;
    *out = (prn_cpu_mask){0};
    if (!prn_cpu_mask_get(&former)) return;
    if (prn_cpu_mask_set(wanted) && !prn_cpu_mask_get(out)) *out = (prn_cpu_mask){0};
    (void)prn_cpu_mask_set(&former);
}

static void say_missing(prn_placement *placement, const prn_cpu_mask *wanted)
{
    int missing = prn_cpu_mask_missing(wanted, &placement->mask);
    int left_out = prn_cpu_mask_count(wanted) - placement->count;
    if (left_out == 0) return;
    if (placement->count == 0)
        snprintf(placement->failure, sizeof placement->failure,
                 "none of these processors exists here or may be used: threads are not pinned");
    else if (left_out == 1)
        snprintf(placement->failure, sizeof placement->failure,
                 "processor %d does not exist here or may not be used; the others are used", missing);
    else
        snprintf(placement->failure, sizeof placement->failure,
                 "processor %d and %d more do not exist here or may not be used; the others are used", missing,
                 left_out - 1);
}

static bool order_text(prn_placement *placement)
{
    size_t size = (size_t)placement->count * 6 + 1, at = 0;
    placement->used = prn_calloc(size, 1);
    for (int i = 0; placement->used && i < placement->count; i++)
        at += (size_t)snprintf(placement->used + at, size - at, "%s%d", i ? "," : "", placement->order[i]);
    return placement->used != NULL;
}

prony_status prn_placement_create(prn_placement **out, const char *list, prony_error *error)
{
    static _Atomic uint64_t last_id;
    prn_cpu_mask wanted;
    PRN_TRY(prn_affinity_check(list, error));
    prn_placement *placement = prn_calloc(1, sizeof *placement);
    if (!placement) return prn_no_memory(error);
    (void)prn_cpu_mask_parse(&wanted, list);
    placement->id = atomic_fetch_add(&last_id, 1) + 1;
    allowed_part(&placement->mask, &wanted);
    placement->count = prn_cpu_mask_count(&placement->mask);
    placement->order = prn_calloc((size_t)placement->count + 1, sizeof *placement->order);
    if (!placement->order) {
        prn_placement_release(placement);
        return prn_no_memory(error);
    }
    prn_topology_order(placement->order, &placement->mask, PRN_SYSTEM_FOLDER);
    if (!order_text(placement)) {
        prn_placement_release(placement);
        return prn_no_memory(error);
    }
    say_missing(placement, &wanted);
    *out = placement;
    return PRONY_OK;
}

void prn_placement_release(prn_placement *placement)
{
    if (!placement) return;
    prn_free(placement->order);
    prn_free(placement->used);
    prn_free(placement);
}

void prn_placement_mask(const prn_placement *placement, int index, prn_cpu_mask *mask)
{
    *mask = placement->mask;
    if (placement->first + placement->threads > placement->count) return;
    *mask = (prn_cpu_mask){0};
    prn_cpu_mask_add(mask, placement->order[(placement->first + index) % placement->count]);
}

prn_placement *prn_placement_current(void)
{
    return current;
}

void prn_placement_enter(prn_placement *placement)
{
    current = placement;
}
