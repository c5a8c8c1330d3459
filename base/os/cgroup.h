/* Limits of control groups on this process: CPU quota, cpuset, memory. */
#ifndef PRN_BASE_OS_CGROUP_H
#define PRN_BASE_OS_CGROUP_H

#include "base/os/cpu_mask.h"

#include <stdint.h>

/* Processors' worth of time: the smallest quota of the process's groups and all their ancestors that are visible here,
 * versions 1 and 2; 0: none. The two paths are /proc/self/cgroup and /proc/self/mountinfo, or copies (tests). */
double prn_cgroup_quota_cpus(const char *cgroup_path, const char *mountinfo_path);
/* Bytes still available: the least over the same groups of limit minus charged bytes, without file pages that can be
 * dropped at once; UINT64_MAX: no limit. */
uint64_t prn_cgroup_memory_left(const char *cgroup_path, const char *mountinfo_path);

/* Processors that all cpusets of these groups and their ancestors have in common; false: no group sets a cpuset. Sets
 * without a common processor (a partly visible tree) are ignored. */
bool prn_cgroup_cpuset(prn_cpu_mask *out, const char *cgroup_path, const char *mountinfo_path);

#endif
