/* Runs a plan by several workers: the ready set, the choice of steps, and the release of values.
 *
 * A step is ready when all its predecessors have ended; the worker that ends the last one marks it. The ready set has
 * one bit a step, in order of urgency, and the worker that clears a bit takes the step. So the most urgent step goes
 * first, without a lock or a list. The worker that ends the last step that uses a dynamic value releases it.
 *
 * A failed step stops only the steps behind it in the plan. So the reported failure is the first in the plan's order,
 * as with one worker. Owned by its plan; one run at a time.
 */
#ifndef PRN_ENGINE_PLAN_SCHEDULE_H
#define PRN_ENGINE_PLAN_SCHEDULE_H

#include "engine/plan/plan.h"

typedef struct prn_schedule prn_schedule;

/* Called when the plan has its graph and values. */
PRN_MUST_USE prony_status prn_schedule_create(prn_schedule **out, prn_plan *plan, prony_error *error);
void prn_schedule_release(prn_schedule *schedule);
/* Sets the thread pool for the next runs; without one the caller runs all steps. */
PRN_MUST_USE prony_status prn_schedule_staff(prn_schedule *schedule, prn_thread_pool *pool, prony_error *error);
/* As prn_plan_run, which calls it. */
PRN_MUST_USE prony_status prn_schedule_run(prn_schedule *schedule, prn_trace *trace, prony_error *error);

/* ---- for tests that order the steps themselves ---- */

void prn_schedule_begin(prn_schedule *schedule);
/* Takes the n-th most urgent ready step, counted from 0, out of the set; UINT32_MAX: fewer steps are ready. */
uint32_t prn_schedule_take(prn_schedule *schedule, uint32_t n);
/* The step has run. */
void prn_schedule_end(prn_schedule *schedule, uint32_t step);

#endif
