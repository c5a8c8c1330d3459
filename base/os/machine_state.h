/* The machine's state at one moment, read from the kernel. Values that cannot be read are marked (prony_machine_state).
 * No heap use. */
#ifndef PRN_BASE_OS_MACHINE_STATE_H
#define PRN_BASE_OS_MACHINE_STATE_H

#include "base/os/cpu_mask.h"
#include "base/status.h"
#include "prony_machine.h"

/* Of the processors that the calling thread may use. */
void prn_machine_state_read(prony_machine_state *out);
/* Reads only the time and the busy time of the processors of `mask` (NULL: as above); the rest is marked as not known.
 * Some ten microseconds. */
void prn_machine_times_read(prony_machine_state *out, const prn_cpu_mask *mask);

/* Shares of the processors' time between two states; negative: not known. */
typedef struct prn_machine_shares {
    double own;    /* of the measured process or processes, which used `own_cpu_ns` */
    double others; /* other processes, and the hypervisor */
    double steal;  /* the hypervisor alone */
} prn_machine_shares;
/* The kernel counts in ticks. Fewer than 40 of them are too coarse for shares of a few per cent, so the shares are not
 * known. */
prn_machine_shares prn_machine_shares_between(const prony_machine_state *before, const prony_machine_state *after,
                                              int64_t own_cpu_ns);

#endif
