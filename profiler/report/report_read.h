/* A report read back from its JSON. */
#ifndef PRN_PROFILER_REPORT_REPORT_READ_H
#define PRN_PROFILER_REPORT_REPORT_READ_H

#include "profiler/json/json_read.h"
#include "profiler/report/report.h"

/* The caller releases *out by prony_report_release; its pool owns everything. `file` appears in messages. */
PRN_MUST_USE prony_status prn_report_read(prony_report **out, const char *file, const char *text, size_t size,
                                          prony_error *error);
#endif
