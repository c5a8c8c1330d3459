/* The report's rows summed by operator type. */
#ifndef PRN_PROFILER_REPORT_TYPE_SUMMARY_H
#define PRN_PROFILER_REPORT_TYPE_SUMMARY_H

#include "profiler/report/report.h"

typedef prony_type_row prn_type_row;

/* Sums measured operators, else layers; largest share first. The caller releases *rows by prn_free. */
PRN_MUST_USE prony_status prn_type_summary(const prony_report *report, prn_type_row **rows, size_t *count,
                                           prony_error *error);

#endif
