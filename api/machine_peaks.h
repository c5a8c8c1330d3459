/* A machine's peaks in memory. Owned whole by its pool; immutable once made. */
#ifndef PRN_API_MACHINE_PEAKS_H
#define PRN_API_MACHINE_PEAKS_H

#include "base/alloc.h"
#include "base/status.h"
#include "profiler/report.h"

struct prony_machine {
    prn_pool pool;
    prony_machine_info info;
    prony_peak_compute *compute;
    size_t compute_count;
    prony_peak_bandwidth *bandwidth;
    size_t bandwidth_count;
};

/* How the figures came about, in words. */
#define PRN_MACHINE_METHOD                                                                                             \
    "Compute: 12 independent chains of vector multiply-add per thread. Memory: vector loads, stores or both over a "   \
    "buffer of each thread's own; bytes read and bytes written are counted, not the lines that a store fetches "       \
    "first. "                                                                                                          \
    "Threads start a trial together, it ends with the last of them; the best trial counts."

/* An empty one, of this processor, instruction set and version. */
PRN_MUST_USE prony_status prn_machine_create(prony_machine **out, prony_error *error);

/* The peaks kept for this machine as the roof of a report made here; none if there are none, or if the file is damaged.
 * A thread count between two measured ones lies on the line between them. */
PRN_MUST_USE prony_status prn_report_fill_roof(prony_report *report, prony_error *error);

#endif
