/* Busy time of each processor since the system started, of all processes, from /proc/stat. */
#ifndef PRN_BASE_OS_CORE_TIMES_H
#define PRN_BASE_OS_CORE_TIMES_H

#include "base/os/cpu_mask.h"

#include <stddef.h>
#include <stdint.h>

typedef struct prn_core_times {
    int core;
    uint64_t busy, total; /* kernel ticks, usually 10 ms */
    uint64_t stolen;      /* of busy: taken by the hypervisor for others */
} prn_core_times;

/* Processors of `mask`, ascending; at most `capacity`. No heap use. */
size_t prn_core_times_read(prn_core_times *out, size_t capacity, const prn_cpu_mask *mask);
/* Their sum, without `core`; false: none could be read. */
bool prn_core_times_sum(prn_core_times *out, const prn_cpu_mask *mask);

#endif
