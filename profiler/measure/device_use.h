/* The device's part of measured runs: times of kernels and copies by step, over the stamped runs. */
#ifndef PRN_PROFILER_MEASURE_DEVICE_USE_H
#define PRN_PROFILER_MEASURE_DEVICE_USE_H

#include "engine/plan/plan.h"
#include "profiler/report/report.h"

typedef struct prn_device_sums prn_device_sums;
/* Sums by step of the plan; NULL: the plan has no device. */
PRN_MUST_USE prony_status prn_device_sums_create(prn_device_sums **out, const prn_plan *plan, prony_error *error);
void prn_device_sums_release(prn_device_sums *sums);
/* Adds the stamped run that the plan has just made, in `latency_ns`. */
void prn_device_sums_add(prn_device_sums *sums, const prn_plan *plan, int64_t latency_ns);
/* Fills report->device; rows come from the report's pool. `last_run_ns`: when the last run was entered. `sums` NULL or
 * without runs: times are unknown. */
PRN_MUST_USE prony_status prn_device_sums_report(const prn_device_sums *sums, const prn_plan *plan, int64_t last_run_ns,
                                                 prony_report *report, prony_error *error);

#endif
