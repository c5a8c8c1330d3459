/* The use of an operator's threads, over the watched runs. */
#ifndef PRN_PROFILER_MEASURE_THREAD_USE_H
#define PRN_PROFILER_MEASURE_THREAD_USE_H

#include "engine/plan/trace.h"
#include "profiler/report/report.h"

/* Sums over runs, by operator and thread. */
typedef struct prn_thread_use prn_thread_use;
PRN_MUST_USE prony_status prn_thread_use_create(prn_thread_use **out, size_t operators, int members,
                                                prony_error *error);
void prn_thread_use_release(prn_thread_use *use);
/* Adds a run: `trace` holds its events and shares. */
void prn_thread_use_add(prn_thread_use *use, const prn_trace *trace);
/* Writes means into a row; arrays come from the report's pool. */
PRN_MUST_USE prony_status prn_thread_use_fill(const prn_thread_use *use, prony_report *report, prony_operator_row *row,
                                              prony_error *error);

#endif
