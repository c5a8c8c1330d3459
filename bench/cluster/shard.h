/* Commands with --shard: one stage of the model on each rank. shard.c (who does what), pipeline.c (tensors between
 * ranks), links.c (the interconnect), shard_report.c (one report of all). */
#ifndef PRN_BENCH_CLUSTER_SHARD_H
#define PRN_BENCH_CLUSTER_SHARD_H

#include "bench/cluster/links.h"

typedef struct sharded {
    const options *o;
    prony_model *model;   /* whole */
    prony_session *whole; /* rank 0: its inputs alone; it is never planned */
    prony_shard_plan *plan;
    pipeline pipe;
    link_figures link, slowest; /* of this rank; rank 0: of all */
    hello *hellos;              /* rank 0 */
    int64_t runs;
    prony_report *report; /* of this rank's stage; in the end, on rank 0, of all */
    int code;
    bool said; /* that a signal ended the run */
} sharded;

int shard_run(const options *o, bool *together);

/* From a rank to rank 0, and there: reports and figures of all stages become one report. */
bool shard_send_report(sharded *s);
int shard_join_reports(sharded *s);
int shard_show(sharded *s);

/* Waits for a message of this tag, from any rank. False: failure, stop, a signal, or the limit. */
bool shard_wait(sharded *s, int tag, int *rank, message *m, double seconds);

#endif
