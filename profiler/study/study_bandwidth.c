/* The number of replicas that fill the machine's memory bandwidth, by its roofs. A replica moves the bytes of the
 * operators that its threads' own caches do not hold, once a run. They come from memory as soon as the replicas' data
 * exceed the cache that all share; before that no number of replicas is bound by memory. */
#include "profiler/study/study.h"

#include <math.h>
#include <string.h>

/* Bytes of the data caches of a level on `threads` processors. */
static double study_cache_bytes(const prony_study *s, int level, int threads)
{
    const prn_machine *m = &s->manifest->system.machine;
    for (int i = 0; i < m->cache_count; i++) {
        const prn_cache_level *c = &m->caches[i];
        if (c->level != level || strcmp(c->type, "instruction") == 0) continue;
        const int sharing = level <= 2 || c->shared_by <= 0 ? 1 : c->shared_by;
        const int groups = (threads + sharing - 1) / sharing;
        return (double)c->bytes * (level <= 2 ? threads : groups);
    }
    return 0;
}

static double memory_bandwidth(const prony_study *s)
{
    prony_report view = *s->manifest;
    view.config.intra_op_threads = s->usable;
    view.config.inter_op_threads = 1;
    return prn_report_roof_bandwidth(&view, "DRAM");
}

bool prn_study_replica_bandwidth_of(const prony_study *s, size_t single, prn_study_replica_bandwidth *out)
{
    const prn_study_configuration *c = &s->configurations[single];
    const double roof = s->manifest->has_roof ? memory_bandwidth(s) : 0;
    const double time = (double)s->results[single].median_ns;
    const double own = study_cache_bytes(s, 2, prn_study_threads(c)), shared = study_cache_bytes(s, 3, s->usable);
    double moved = 0, data = 0;
    for (size_t o = 0; o < c->operator_count; o++) {
        const double bytes = (double)c->operators[o].bytes;
        data += bytes;
        if (bytes > own) moved += bytes;
    }
    if (!(roof > 0) || !(time > 0) || c->operator_count == 0) return false;
    *out = (prn_study_replica_bandwidth){
        .configuration = single, .bytes_per_second = moved / time * 1e9, .roof_bytes_per_second = roof};
    if (moved <= 0) return true;
    const double by_rate = ceil(roof / out->bytes_per_second), by_data = floor(shared / data) + 1;
    const double full = fmax(by_rate, by_data);
    out->full_at = full < 1e9 ? (int64_t)full : 0;
    return true;
}
