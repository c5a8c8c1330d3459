/* The choice of cuts by dynamic programming over positions: best[s][j] is the least that the worst of s stages can be,
 * which end at position j. A second pass with that bound, and some slack, has the fewest bytes at the cuts. */
#include "engine/session/shard.h"

#include <math.h>
#include <string.h>

/* Cost of the stage [from, to), infinite if it is not possible. `live`: the most live bytes at its positions. */
static double cost_of(const prn_cut_costs *c, size_t from, size_t to, uint64_t live, prony_shard_by by)
{
    const uint64_t memory = c->weight_bytes[to] - c->weight_bytes[from] + live + c->cuts[from].bytes;
    if (c->work[to] == c->work[from]) return INFINITY;
    if (by == PRONY_SHARD_BY_MEMORY) return (double)memory;
    if (c->memory_limit && memory > c->memory_limit) return INFINITY;
    const double transfer = from ? c->latency_ns + (double)c->cuts[from].bytes * c->ns_per_byte : 0;
    return fmax(c->compute_ns[to] - c->compute_ns[from], transfer);
}

/* One pass. With `bound` infinite it finds the least worst stage; else the fewest bytes with no stage above `bound`.
 * Returns the value at the end, infinite if no cut is possible. `best` and `from` hold (stages + 1) * count entries. */
static double pass(const prn_cut_costs *c, size_t stages, double bound, prony_shard_by by, double *best, size_t *from)
{
    const size_t n = c->count;
    for (size_t i = 0; i < (stages + 1) * n; i++) best[i] = INFINITY;
    best[0] = 0;
    for (size_t j = 1; j < n; j++) {
        uint64_t live = 0;
        if (!c->cuts[j].allowed) continue;
        for (size_t i = j; i-- > 0;) {
            if (c->live_bytes[i] > live) live = c->live_bytes[i];
            if (!c->cuts[i].allowed) continue;
            const double cost = cost_of(c, i, j, live, by);
            if (!(cost <= bound) || isinf(cost)) continue;
            for (size_t s = 1; s <= stages; s++) {
                const double before = best[(s - 1) * n + i];
                if (isinf(before)) continue;
                const double value = isinf(bound) ? fmax(before, cost) : before + (double)c->cuts[i].bytes;
                if (value >= best[s * n + j]) continue;
                best[s * n + j] = value;
                from[s * n + j] = i;
            }
        }
    }
    return best[stages * n + n - 1];
}

bool prn_cuts_choose(const prn_cut_costs *c, size_t stages, size_t *chosen, bool *found, uint64_t *least)
{
    double *best = prn_calloc((stages + 1) * c->count, sizeof *best);
    size_t *from = prn_calloc((stages + 1) * c->count, sizeof *from);
    if (best && from) {
        const double worst = pass(c, stages, INFINITY, c->by, best, from);
        *found = !isinf(worst);
        if (c->by == PRONY_SHARD_BY_MEMORY && c->memory_limit && worst > (double)c->memory_limit) *found = false;
        if (*found) {
            (void)pass(c, stages, worst * c->slack, c->by, best, from);
            chosen[stages] = c->count - 1;
            for (size_t s = stages; s > 0; s--) chosen[s - 1] = from[s * c->count + chosen[s]];
        } else if (least) {
            const double smallest = pass(c, stages, INFINITY, PRONY_SHARD_BY_MEMORY, best, from);
            *least = isinf(smallest) ? 0 : (uint64_t)smallest;
        }
    }
    const bool done = best && from;
    prn_free(best);
    prn_free(from);
    return done;
}
