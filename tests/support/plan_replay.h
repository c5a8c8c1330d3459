/* Runs a plan for several workers by one thread, in an order drawn from a seed, so that any interleaving can be
 * repeated. A step begins (it may write its outputs from now on) and ends (last read of its inputs) at separate times,
 * with up to `workers` steps in between. Outputs are filled with NaNs when their step begins, and unused buffers after
 * their last use. So a missing edge, or bytes shared too early, shows in the outputs. */
#ifndef PRN_TESTS_SUPPORT_PLAN_REPLAY_H
#define PRN_TESTS_SUPPORT_PLAN_REPLAY_H

#include "engine/plan/schedule.h"

/* As prn_plan_run. The plan has a schedule. */
PRN_MUST_USE prony_status plan_replay(prn_plan *plan, uint64_t seed, prony_error *error);

#endif
