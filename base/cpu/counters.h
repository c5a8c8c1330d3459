/* Hardware counters of this process by perf_event_open, of user space, over all its threads. One reader at a time. */
#ifndef PRN_BASE_CPU_COUNTERS_H
#define PRN_BASE_CPU_COUNTERS_H

#include "base/status.h"

#define PRN_COUNTERS 3

/* A kind of event as the kernel numbers it: perf_event_attr.type and .config. */
typedef struct prn_counter_event {
    uint32_t type;
    uint64_t config;
} prn_counter_event;

/* Cycles, instructions, cache misses. */
extern const prn_counter_event prn_hardware_events[PRN_COUNTERS];

typedef struct prn_counters prn_counters;

/* Starts counting on every existing thread. *out is NULL if the kernel does not provide the events; `why` then holds
 * the reason. */
PRN_MUST_USE prony_status prn_counters_open(prn_counters **out, const prn_counter_event events[PRN_COUNTERS],
                                            char why[160], prony_error *error);
/* Sums over the threads since the counters were opened. */
void prn_counters_read(const prn_counters *counters, uint64_t out[PRN_COUNTERS]);
void prn_counters_close(prn_counters *counters);

#endif
