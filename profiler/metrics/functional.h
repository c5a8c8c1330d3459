/* Reports behind the one-call functions, shared by functional.c (values) and functional_rows.c (rows). */
#ifndef PRN_PROFILER_METRICS_FUNCTIONAL_H
#define PRN_PROFILER_METRICS_FUNCTIONAL_H

#include "profiler/report/report.h"

/* A session with generated inputs, profiled; `stamps` false: the whole run alone. The caller releases *out. */
PRN_MUST_USE prony_status prn_functional_profile(prony_report **out, prony_model *model,
                                                 const prony_session_options *options,
                                                 const prony_profile_options *runs, bool stamps, prony_error *error);
PRN_MUST_USE prony_status prn_functional_timing(prony_profile_options *out, const prony_timing_options *timing,
                                                prony_error *error);

#endif
