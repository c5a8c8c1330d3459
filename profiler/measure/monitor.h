/* Watching a session that serves: plain runs cost two clock readings, one run in N is stamped and told of. Owned by the
 * session, used under its `busy`. */
#ifndef PRN_PROFILER_MEASURE_MONITOR_H
#define PRN_PROFILER_MEASURE_MONITOR_H

#include "engine/session/session.h"

/* A run of the session and what its monitor has to do about it. Callers hold `busy`. */
PRN_MUST_USE prony_status prn_monitor_run(prony_session *session, prony_error *error);
void prn_monitor_release(prn_monitor *monitor);

#endif
