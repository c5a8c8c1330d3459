/* The interconnect and the clocks, measured before a sharded run. */
#ifndef PRN_BENCH_CLUSTER_LINKS_H
#define PRN_BENCH_CLUSTER_LINKS_H

#include "bench/cluster/pipeline.h"

/* One way, between two neighbouring ranks. */
typedef struct link_figures {
    double latency_ns, bytes_per_ns;         /* of the smallest message; of the largest one */
    int64_t clock_offset_ns, clock_error_ns; /* of the clock of the higher rank to rank 0's */
} link_figures;

/* The measurements of one rank: messages to ranks before it. */
typedef struct link_table {
    prony_link_row *rows;
    size_t count, capacity;
} link_table;

/* On every rank: pings with ranks before it. `own`: of the link from the rank before to this one, and of rank 0's
 * clock. The rows are added to `table`, whose rows the caller frees. False: a rank did not answer in time, and `p` has
 * failed with its number. */
bool links_measure(pipeline *p, link_figures *own, link_table *table);
/* Latency and bandwidth of a pair by the table; *out stays as it is where the pair is not in it. predict.c */
void links_between(const link_table *table, uint32_t a, uint32_t b, link_figures *out);
/* False: out of memory. */
bool links_add(link_table *table, const prony_link_row *row);

#endif
