/* How many workers a plan gets, and why. */
#ifndef PRN_ENGINE_PLAN_WORKERS_H
#define PRN_ENGINE_PLAN_WORKERS_H

#include "engine/plan/step_graph.h"

#define PRN_MOST_WORKERS 1024

/* Settles plan->workers and the threads of every step, and makes the graph of the steps if there is more than one
 * worker. `close_ranks` takes steps that are gone out of the plan, after what they handed on is known. */
PRN_MUST_USE prony_status prn_plan_choose_workers(prn_plan *plan, void (*close_ranks)(prn_plan *plan),
                                                  prony_error *error);

/* Threads that may come to work at one step, those that help included: what kernels provide for when they are prepared,
 * before the workers are chosen. */
int prn_plan_most_threads(const prn_plan_options *options);

/* Time of a run by analytic cost, where `workers` take the most urgent of the steps that are ready, and the threads of
 * those that have none help the others. */
PRN_MUST_USE prony_status prn_workers_time(const prn_step_graph *graph, int workers, int threads, double *ns,
                                           prony_error *error);

/* Of `-y auto`: whether several workers' memory is worth what they gain, beside one worker's; says so in the plan's
 * note. */
bool prn_plan_affords_workers(prn_plan *plan, uint64_t one_bytes, uint64_t bytes);
/* Back to one worker. */
void prn_plan_drop_workers(prn_plan *plan);

#endif
