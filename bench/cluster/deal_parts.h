/* The two commands of deal.c, on a rank that has met the others. */
#ifndef PRN_BENCH_CLUSTER_DEAL_PARTS_H
#define PRN_BENCH_CLUSTER_DEAL_PARTS_H

#include "bench/cluster/deal.h"
#include "bench/cluster/shard.h"

int deal_eval_run(sharded *s);
int deal_load_run(sharded *s);

#endif
