/* Makes the plan of a program. */
#ifndef PRN_ENGINE_PLAN_PLANNER_H
#define PRN_ENGINE_PLAN_PLANNER_H

#include "engine/plan/plan.h"

/* `outer` is NULL except for subgraphs, whose buffers lie inside a buffer of the outer plan. */
PRN_MUST_USE prony_status prn_plan_create(prn_plan **out, prn_program *program, prn_plan *outer,
                                          const prn_plan_options *options, prony_error *error);
void prn_plan_release(prn_plan *plan);

/* ---- its parts ---- */

/* Another value of the plan that is program value `source`; PRN_NO_VALUE: out of memory. */
uint32_t prn_plan_add_value(prn_plan *plan, uint32_t source);

/* Holds the deferred constants whose bytes are read (engine/plan/constants.c): by the step's preparing and its runs, apart from what
 * its kernel packs; what that might have packed and has not; by whoever takes the outputs. */
PRN_MUST_USE prony_status prn_plan_hold_inputs(prn_plan *plan, prn_step *step, prony_error *error);
PRN_MUST_USE prony_status prn_plan_hold_unpacked(prn_plan *plan, const prn_step *step, prony_error *error);
PRN_MUST_USE prony_status prn_plan_hold_outputs(prn_plan *plan, prony_error *error);

#endif
