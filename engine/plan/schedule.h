/* Runs of a plan by several workers: which steps are ready, who takes which, what dies when.
 *
 * A step is ready when all that lead to it have ended; whoever ends the last of them says so. The ready set has one bit
 * a step, in order of urgency, and whoever clears a bit has the step: so the most urgent goes first, and there is no
 * lock and no list. A value of the dynamic region is given back by whoever ends the last step that touches it.
 *
 * A step that fails stops the steps behind it in the plan, and no others, so that what is reported is the first failure
 * in the plan's order: the one that one worker would have met. Owned by its plan; one run at a time.
 */
#ifndef PRN_ENGINE_PLAN_SCHEDULE_H
#define PRN_ENGINE_PLAN_SCHEDULE_H

#include "engine/plan/plan.h"

typedef struct prn_schedule prn_schedule;

/* The plan has its graph and knows its values. */
PRN_MUST_USE prony_status prn_schedule_create(prn_schedule **out, prn_plan *plan, prony_error *error);
void prn_schedule_release(prn_schedule *schedule);
/* Whose threads run it from now on; without a team the caller runs all steps. */
PRN_MUST_USE prony_status prn_schedule_staff(prn_schedule *schedule, prn_thread_pool *team, prony_error *error);
/* As prn_plan_run, which calls it. */
PRN_MUST_USE prony_status prn_schedule_run(prn_schedule *schedule, prn_trace *trace, prony_error *error);

/* ---- for tests that order the steps themselves ---- */

void prn_schedule_begin(prn_schedule *schedule);
/* Takes the n-th most urgent of the ready steps, counted from 0, out of the set; UINT32_MAX: there are not so many. */
uint32_t prn_schedule_take(prn_schedule *schedule, uint32_t n);
/* The step has run. */
void prn_schedule_end(prn_schedule *schedule, uint32_t step);

#endif
