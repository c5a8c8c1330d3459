/* Chooses the number of a plan's workers, with the reason. */
#ifndef PRN_ENGINE_PLAN_WORKERS_H
#define PRN_ENGINE_PLAN_WORKERS_H

#include "engine/plan/step_graph.h"

#define PRN_MOST_WORKERS 1024

/* Sets plan->parallel.workers and the threads of every step, and makes the step graph for more than one worker.
 * `close_ranks` takes removed steps out of the plan, after the makers of their values are known. */
PRN_MUST_USE prony_status prn_plan_choose_workers(prn_plan *plan, void (*close_ranks)(prn_plan *plan),
                                                  prony_error *error);

/* Most threads that may work on one step, stealing ones included. Kernels prepare for so many, because workers are
 * chosen later. */
int prn_plan_most_threads(const prn_plan_options *options);

/* Time of a run by analytic cost: `workers` take the most urgent ready steps, and idle workers' threads help the
 * others. */
PRN_MUST_USE prony_status prn_workers_time(const prn_step_graph *graph, int workers, int threads, double *ns,
                                           prony_error *error);

/* For `-y auto`: true if the gain of several workers is worth their memory, compared with one worker's. Writes the
 * plan's note. */
bool prn_plan_affords_workers(prn_plan *plan, uint64_t one_bytes, uint64_t bytes);
/* Back to one worker. */
void prn_plan_drop_workers(prn_plan *plan);

#endif
