/* Points are at least INTERVAL apart, so that 10 ms ticks resolve a few per cent. There are at most MOST_POINTS; the
 * last one then covers the rest. */
#include "profiler/measure/core_use.h"

#include <string.h>

/* Chosen without measurement: 25 ticks, or at least 5 at the end, resolve shares of a few per cent. */
#define INTERVAL_NS INT64_C(250000000)
#define SHORTEST_NS INT64_C(50000000)
#define MOST_POINTS 2000

void prn_core_recorder_begin(prn_core_recorder *r, int64_t now_ns, const prn_cpu_mask *mask)
{
    if (mask)
        r->mask = *mask;
    else if (!prn_cpu_mask_get(&r->mask))
        return;
    r->cores = prn_core_times_read(r->first, PRN_CORES_LARGEST, &r->mask);
    memcpy(r->last, r->first, r->cores * sizeof *r->last);
    r->begin_ns = r->last_ns = now_ns;
}

static double core_use_share(const prn_core_times *from, const prn_core_times *to)
{
    if (to->total <= from->total || to->busy < from->busy) return 0;
    return (double)(to->busy - from->busy) / (double)(to->total - from->total);
}

void prn_core_recorder_look(prn_core_recorder *r, int64_t now_ns, bool last)
{
    prn_core_times now[PRN_CORES_LARGEST];
    if (now_ns - r->last_ns < (last ? SHORTEST_NS : INTERVAL_NS) || r->cores == 0 || r->points == MOST_POINTS) return;
    if (prn_core_times_read(now, PRN_CORES_LARGEST, &r->mask) != r->cores) return;
    if (!PRN_GROW(r->times_ns, r->time_capacity, r->points + 1) ||
        !PRN_GROW(r->use, r->use_capacity, (r->points + 1) * r->cores))
        return;
    r->times_ns[r->points] = now_ns - r->begin_ns;
    for (size_t c = 0; c < r->cores; c++) r->use[r->points * r->cores + c] = core_use_share(&r->last[c], &now[c]);
    memcpy(r->last, now, r->cores * sizeof *r->last);
    r->last_ns = now_ns;
    r->points++;
}

prony_status prn_core_recorder_report(const prn_core_recorder *r, prony_report *report, prony_error *error)
{
    if (r->points == 0) return PRONY_OK;
    prony_core_row *rows = prn_bump_alloc(&report->pool, r->cores, sizeof *rows);
    int64_t *times = prn_bump_alloc(&report->pool, r->points, sizeof *times);
    if (!rows || !times) return prn_no_memory(error);
    memcpy(times, r->times_ns, r->points * sizeof *times);
    for (size_t c = 0; c < r->cores; c++) {
        double *use = prn_bump_alloc(&report->pool, r->points, sizeof *use);
        if (!use) return prn_no_memory(error);
        for (size_t p = 0; p < r->points; p++) use[p] = r->use[p * r->cores + c];
        rows[c] =
            (prony_core_row){.core = r->last[c].core, .mean = core_use_share(&r->first[c], &r->last[c]), .use = use};
    }
    report->cores = rows;
    report->core_count = r->cores;
    report->core_times_ns = times;
    report->core_points = r->points;
    return PRONY_OK;
}

void prn_core_recorder_free(prn_core_recorder *r)
{
    prn_free(r->times_ns);
    prn_free(r->use);
}
