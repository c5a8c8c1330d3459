/* Makes the plan of a program. */
#ifndef PRN_ENGINE_PLAN_PLANNER_H
#define PRN_ENGINE_PLAN_PLANNER_H

#include "engine/plan/plan.h"

/* `outer` is NULL except for subgraphs, whose buffers lie inside a buffer of the outer plan. */
PRN_MUST_USE prony_status prn_plan_create(prn_plan **out, prn_program *program, prn_plan *outer,
                                          const prn_plan_options *options, prony_error *error);
void prn_plan_release(prn_plan *plan);

#endif
