/* A lane for each rank of a sharded model in the trace. */
#ifndef PRN_PROFILER_EXPORTERS_TRACE_RANKS_H
#define PRN_PROFILER_EXPORTERS_TRACE_RANKS_H

#include "profiler/json/json_write.h"
#include "profiler/report/report.h"

/* Processes 2 and on of the trace, one a rank, with a track for computing and waiting, one for operators and one for
 * messages. Nothing for a report without events of a pipeline. */
void prn_trace_put_ranks(prn_json *json, const prony_report *report, prn_bump *pool);
bool prn_trace_has_ranks(const prony_report *report);

#endif
