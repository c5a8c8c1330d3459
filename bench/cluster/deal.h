/* Commands that deal work to ranks, each with the whole model: labelled data (eval), and an offline load (bench). */
#ifndef PRN_BENCH_CLUSTER_DEAL_H
#define PRN_BENCH_CLUSTER_DEAL_H

#include "bench/cluster/cluster.h"

bool deal_takes(const options *o);
int deal_run(const options *o, bool *together);

#endif
