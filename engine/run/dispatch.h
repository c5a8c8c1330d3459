/* The steps of a plan by one worker, one after the other. */
#ifndef PRN_ENGINE_RUN_DISPATCH_H
#define PRN_ENGINE_RUN_DISPATCH_H

#include "engine/plan/plan.h"

/* prn_plan_run's part of a plan without a schedule. What a failed run leaves behind is the caller's to give back. */
PRN_MUST_USE prony_status prn_plan_run_alone(prn_plan *plan, prn_trace *trace, prony_error *error);

#endif
