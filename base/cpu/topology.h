/* Processors that share a core or a NUMA node, and the order in which threads take them. Read from a folder laid out as
 * /sys/devices/system (cpu/cpuN/topology, node/nodeN); tests use their own folder. */
#ifndef PRN_BASE_CPU_TOPOLOGY_H
#define PRN_BASE_CPU_TOPOLOGY_H

#include "base/os/cpu_mask.h"

#define PRN_SYSTEM_FOLDER "/sys/devices/system"

enum { PRN_NUMA_MOST = 1024 }; /* of Linux on any processor: NODES_SHIFT is 10 at most */

/* Distinct cores among the processors of `mask`; 0: the topology is not known. */
int prn_topology_cores(const prn_cpu_mask *mask, const char *folder);

/* Writes the processors of `mask` to order[0 … prn_cpu_mask_count(mask)): first one of each core, node after node, then
 * the second of each core, and so on; within a node faster cores first, then by number. If the topology is not known,
 * by number alone. */
void prn_topology_order(int *order, const prn_cpu_mask *mask, const char *folder);

#endif
