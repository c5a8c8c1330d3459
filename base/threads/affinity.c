/* Affinity lists. The kernel tells which processors are allowed: a mask that is set and read back lacks processors that
 * do not exist or that a cpuset forbids. */
#include "base/threads/affinity.h"
#include "base/memory/alloc.h"
#include "base/cpu/topology.h"

#include <stdatomic.h>
#include <stdio.h>

static _Thread_local prn_affinity *current; /* the affinity that pins the calling thread */

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

static void say_missing(prn_affinity *affinity, const prn_cpu_mask *wanted)
{
    int missing = prn_cpu_mask_missing(wanted, &affinity->mask);
    int left_out = prn_cpu_mask_count(wanted) - affinity->count;
    if (left_out == 0) return;
    if (affinity->count == 0)
        snprintf(affinity->failure, sizeof affinity->failure,
                 "none of these processors exists here or may be used: threads are not pinned");
    else if (left_out == 1)
        snprintf(affinity->failure, sizeof affinity->failure,
                 "processor %d does not exist here or may not be used; the others are used", missing);
    else
        snprintf(affinity->failure, sizeof affinity->failure,
                 "processor %d and %d more do not exist here or may not be used; the others are used", missing,
                 left_out - 1);
}

static bool order_text(prn_affinity *affinity)
{
    size_t size = (size_t)affinity->count * 6 + 1, at = 0;
    affinity->used = prn_calloc(size, 1);
    for (int i = 0; affinity->used && i < affinity->count; i++)
        at += (size_t)snprintf(affinity->used + at, size - at, "%s%d", i ? "," : "", affinity->order[i]);
    return affinity->used != NULL;
}

prony_status prn_affinity_create(prn_affinity **out, const char *list, prony_error *error)
{
    static _Atomic uint64_t last_id;
    prn_cpu_mask wanted;
    PRN_TRY(prn_affinity_check(list, error));
    prn_affinity *affinity = prn_calloc(1, sizeof *affinity);
    if (!affinity) return prn_no_memory(error);
    (void)prn_cpu_mask_parse(&wanted, list);
    affinity->id = atomic_fetch_add(&last_id, 1) + 1;
    allowed_part(&affinity->mask, &wanted);
    affinity->count = prn_cpu_mask_count(&affinity->mask);
    affinity->order = prn_calloc((size_t)affinity->count + 1, sizeof *affinity->order);
    if (!affinity->order) {
        prn_affinity_release(affinity);
        return prn_no_memory(error);
    }
    prn_topology_order(affinity->order, &affinity->mask, PRN_SYSTEM_FOLDER);
    if (!order_text(affinity)) {
        prn_affinity_release(affinity);
        return prn_no_memory(error);
    }
    say_missing(affinity, &wanted);
    *out = affinity;
    return PRONY_OK;
}

void prn_affinity_release(prn_affinity *affinity)
{
    if (!affinity) return;
    prn_free(affinity->order);
    prn_free(affinity->used);
    prn_free(affinity);
}

void prn_affinity_mask(const prn_affinity *affinity, int index, prn_cpu_mask *mask)
{
    *mask = affinity->mask;
    if (affinity->first + affinity->threads > affinity->count) return;
    *mask = (prn_cpu_mask){0};
    prn_cpu_mask_add(mask, affinity->order[(affinity->first + index) % affinity->count]);
}

prn_affinity *prn_affinity_current(void)
{
    return current;
}

void prn_affinity_enter(prn_affinity *affinity)
{
    current = affinity;
}
