/* Commands that deal work to ranks, each with the whole model: labelled data (eval), and an offline load (bench). */
#ifndef PRN_BENCH_CLUSTER_DEAL_H
#define PRN_BENCH_CLUSTER_DEAL_H

#include "bench/cluster/shard.h"

bool deal_takes(const options *o);
int deal_run(const options *o, bool *together);

/* On a rank that has met the others. */
int deal_eval_run(sharded *s);
int deal_load_run(sharded *s);

#endif
