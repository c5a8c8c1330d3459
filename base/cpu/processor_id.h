/* Identity of a processor, for files of measurements: virtual machines share names such as "AMD EPYC". */
#ifndef PRN_BASE_PROCESSOR_ID_H
#define PRN_BASE_PROCESSOR_ID_H

#include "base/cpu/machine.h"

enum { PRN_PROCESSOR_ID_BYTES = 96 };

/* "25-17-1-0x1000065-2c-1f0c93ab": family, model, stepping and microcode as the kernel reports them, logical processors
 * online, and a checksum of features, caches and approximate instructions. An unknown part is "x". */
void prn_processor_id(char out[PRN_PROCESSOR_ID_BYTES], const prn_machine *machine);

/* The same with a given file instead of /proc/cpuinfo, and a given checksum of approximate instructions. */
void prn_processor_id_of(char out[PRN_PROCESSOR_ID_BYTES], const char *cpuinfo, const prn_machine *machine,
                         uint32_t approximations);
/* Checksum of approximate reciprocals and reciprocal square roots, which each microarchitecture rounds in its own way;
 * no hypervisor hides them. 0: this architecture has none. */
uint32_t prn_processor_approximations(void);

#endif
