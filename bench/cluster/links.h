/* The interconnect and the clocks, measured before a sharded run. */
#ifndef PRN_BENCH_CLUSTER_LINKS_H
#define PRN_BENCH_CLUSTER_LINKS_H

#include "bench/cluster/pipeline.h"

/* One way, between two neighbouring ranks. */
typedef struct link_figures {
    double latency_ns, bytes_per_ns;         /* of the smallest message; of the largest one */
    int64_t clock_offset_ns, clock_error_ns; /* of the clock of the higher rank to rank 0's */
} link_figures;

/* On every rank: pings between neighbours, pings with rank 0 for its clock. `own`: of the link from the rank before to
 * this one. False: a rank did not answer in time, and `p` has failed with its number. */
bool links_measure(pipeline *p, link_figures *own);

#endif
