/* A plan for several workers, run by one thread in an order drawn from a seed: any interleaving of what the workers
 * decide can be had again. A step begins (nobody reads its outputs yet, but it may write them from now on) and ends
 * (its inputs are read last) at times of its own, with up to `workers` steps in between. What a step is to write is
 * filled with NaNs when it begins, what nobody uses any more when it dies: a missing edge, or bytes shared too early,
 * then shows in the outputs. */
#ifndef PRN_TESTS_SUPPORT_PLAN_REPLAY_H
#define PRN_TESTS_SUPPORT_PLAN_REPLAY_H

#include "engine/plan/schedule.h"

/* As prn_plan_run. The plan has a schedule. */
PRN_MUST_USE prony_status plan_replay(prn_plan *plan, uint64_t seed, prony_error *error);

#endif
