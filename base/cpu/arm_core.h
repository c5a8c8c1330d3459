/* Names of AArch64 processors, which Linux does not give: /proc/cpuinfo has numbers of the maker and the part. */
#ifndef PRN_BASE_CPU_ARM_CORE_H
#define PRN_BASE_CPU_ARM_CORE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the cores that `cpuinfo` (a path) lists: "Neoverse-N1", or "4 x Cortex-A55 + 4 x Cortex-A76" for clusters, in
 * the order of processors. A part that is not known is named by its numbers, "0x41:0xfff". false: no line names a
 * part. */
bool prn_arm_core_read(char *out, size_t size, const char *cpuinfo);

#endif
