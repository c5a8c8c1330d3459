/* The use of each processor during a measurement, sampled between runs. */
#ifndef PRN_PROFILER_MEASURE_CORE_USE_H
#define PRN_PROFILER_MEASURE_CORE_USE_H

#include "base/os/core_times.h"
#include "profiler/report/report.h"

#define PRN_CORES_LARGEST 256

/* Zero-initialise. */
typedef struct prn_core_recorder {
    prn_core_times first[PRN_CORES_LARGEST], last[PRN_CORES_LARGEST];
    prn_cpu_mask mask; /* processors whose use is recorded */
    size_t cores;
    int64_t begin_ns, last_ns;
    int64_t *times_ns; /* [points] */
    double *use;       /* [points x cores] */
    size_t points, time_capacity, use_capacity;
} prn_core_recorder;

/* Of the processors of `mask`; NULL: those that the calling thread may use. */
void prn_core_recorder_begin(prn_core_recorder *recorder, int64_t now_ns, const prn_cpu_mask *mask);
/* Takes a point if enough time has passed for the kernel's tick; `last`: if any has. A point is skipped if memory is
 * missing. */
void prn_core_recorder_look(prn_core_recorder *recorder, int64_t now_ns, bool last);
PRN_MUST_USE prony_status prn_core_recorder_report(const prn_core_recorder *recorder, prony_report *report,
                                                   prony_error *error);
void prn_core_recorder_free(prn_core_recorder *recorder);

#endif
