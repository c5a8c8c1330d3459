/* What other processes took of the processors while something was measured, as the kernel's counters say. */
#ifndef PRN_BASE_OS_DISTURBANCE_H
#define PRN_BASE_OS_DISTURBANCE_H

#include "base/os/machine_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counters since the system (or the process) started; only differences mean something. */
typedef struct prn_load_state {
    prony_machine_state machine; /* the processors' times alone */
    int64_t own_cpu_ns;          /* of all threads of this process */
    int64_t waited_ns;           /* that its threads stood ready to run and did not; -1: not known */
    int64_t involuntary_switches;
} prn_load_state;

typedef enum prn_verdict { PRN_LOAD_UNKNOWN, PRN_LOAD_QUIET, PRN_LOAD_BUSY } prn_verdict;

/* Over a measurement. Shares of the time of all processors in the mask; negative: not known. */
typedef struct prn_disturbance {
    double others; /* other processes, and what the hypervisor took */
    double steal;  /* the latter alone */
    double waited; /* this process's threads ready to run and not running, over the wall time: 1 is one thread,
                         always */
    int64_t involuntary_switches;
    prn_verdict verdict;
} prn_disturbance;

/* `mask` NULL: the calling thread's. Costs some ten microseconds, and more with many threads; not for inside of a
 * measured run. */
void prn_load_state_read(prn_load_state *out, const prn_cpu_mask *mask);

/* Between two states. Busy: the hypervisor took more than 2 %; or others did and threads stood in line for more than 3
 * % of the wall time; or others took more than 5 % and left less than a tenth of the processors idle. Where the time
 * between is too short for the kernel's ticks, only the waiting tells; without it the verdict is unknown. */
void prn_disturbance_between(prn_disturbance *out, const prn_load_state *before, const prn_load_state *after);

/* One sentence for people about a busy machine; false, and nothing written, where there is nothing to say. */
bool prn_disturbance_text(const prn_disturbance *d, char *out, size_t size);

/* "unknown", "quiet", "busy" */
const char *prn_verdict_name(prn_verdict verdict);

#endif
