/* What the machine is doing at a moment, read from the kernel. What cannot be read says so (prony_machine_state). No
 * heap use. */
#ifndef PRN_BASE_OS_MACHINE_STATE_H
#define PRN_BASE_OS_MACHINE_STATE_H

#include "base/os/cpu_mask.h"
#include "base/status.h"
#include "prony_machine.h"

/* Of the processors that the calling thread may use. */
void prn_machine_state_read(prony_machine_state *out);
/* Only the time and how long the processors of `mask` (NULL: as above) were busy; the rest is as if it could not be
 * read. Some ten microseconds. */
void prn_machine_times_read(prony_machine_state *out, const prn_cpu_mask *mask);

/* What became of the processors' time between two states. Shares of it; negative: not known. */
typedef struct prn_machine_shares {
    double own;    /* of the process, or processes, that used `own_cpu_ns` meanwhile */
    double others; /* everybody else, and what the hypervisor took */
    double steal;  /* the latter alone */
} prn_machine_shares;
/* The kernel counts in ticks: less than 40 of them say nothing about shares of a few per cent, and nothing is known. */
prn_machine_shares prn_machine_shares_between(const prony_machine_state *before, const prony_machine_state *after,
                                              int64_t own_cpu_ns);

#endif
