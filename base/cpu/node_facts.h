/* Facts that tell one node of a cluster from another, beyond those of base/cpu/machine.h. Facts that cannot be read
 * stay empty or 0. */
#ifndef PRN_BASE_NODE_FACTS_H
#define PRN_BASE_NODE_FACTS_H

#include "base/cpu/topology.h"

#include <stddef.h>
#include <stdint.h>

typedef struct prn_node_facts {
    char microcode[32]; /* "0x2b000639" */
    char smt[32];       /* "on", "off", "notsupported" */
    char network[512];  /* "eth0 10000 Mbit/s, ib0 100 Gb/sec (4X EDR)" */
    uint64_t frequency_max_hz;
    uint64_t numa_memory_bytes[PRN_NUMA_MOST]; /* of each NUMA node */
    size_t numa_count;
} prn_node_facts;

void prn_node_facts_read(prn_node_facts *facts);

#endif
