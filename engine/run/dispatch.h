/* The steps of a plan by one worker, one after the other. */
#ifndef PRN_ENGINE_RUN_DISPATCH_H
#define PRN_ENGINE_RUN_DISPATCH_H

#include "engine/plan/plan.h"

/* prn_plan_run's part of a plan without a schedule. After a failed run the caller releases the live values. */
PRN_MUST_USE prony_status prn_plan_run_alone(prn_plan *plan, prn_trace *trace, prony_error *error);

#endif
