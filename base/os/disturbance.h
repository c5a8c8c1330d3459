/* Processor time that other processes took during a measurement, by the kernel's counters. */
#ifndef PRN_BASE_OS_DISTURBANCE_H
#define PRN_BASE_OS_DISTURBANCE_H

#include "base/os/machine_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counters since the system (or the process) started; only differences have a meaning. */
typedef struct prn_load_state {
    prony_machine_state machine; /* the processors' times alone */
    int64_t own_cpu_ns;          /* of all threads of this process */
    int64_t waited_ns;           /* time its threads were ready but did not run; -1: not known */
    int64_t involuntary_switches;
} prn_load_state;

typedef enum prn_verdict { PRN_LOAD_UNKNOWN, PRN_LOAD_QUIET, PRN_LOAD_BUSY } prn_verdict;

/* Over a measurement. Shares of the time of all processors in the mask; negative: not known. */
typedef struct prn_disturbance {
    double others; /* other processes, and the hypervisor */
    double steal;  /* the hypervisor alone */
    double waited; /* time this process's threads were ready but not running, over the wall time; 1: one thread waited
                         all the time */
    int64_t involuntary_switches;
    prn_verdict verdict;
} prn_disturbance;

/* `mask` NULL: the calling thread's. Costs some ten microseconds, and more with many threads; not to be called inside
 * of a measured run. */
void prn_load_state_read(prn_load_state *out, const prn_cpu_mask *mask);

/* Compares two states. Busy: the hypervisor took more than 2 %; or others took more than 2 % and threads waited for
 * more than 3 % of the wall time; or others took more than 5 % and left less than a tenth of the processors idle. If
 * the interval is too short for the kernel's ticks, only the waiting decides; without it the verdict is unknown. */
void prn_disturbance_between(prn_disturbance *out, const prn_load_state *before, const prn_load_state *after);

/* One sentence for the user about a busy machine; false, and nothing written: the machine was not busy. */
bool prn_disturbance_text(const prn_disturbance *d, char *out, size_t size);

/* "unknown", "quiet", "busy" */
const char *prn_verdict_name(prn_verdict verdict);

#endif
