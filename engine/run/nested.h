/* The subgraphs of a plan in one list, and their steps in another, each step behind the one it is inside of; and what
 * they did in a run: how often each subgraph was begun, and what each step took and did. Made once per plan, read after
 * every run that counts. */
#ifndef PRN_ENGINE_RUN_NESTED_H
#define PRN_ENGINE_RUN_NESTED_H

#include "engine/plan/plan.h"

/* Of a step, over all its executions in the run. */
typedef struct prn_tally {
    prony_cost cost;           /* as prn_step's `executed` */
    int64_t start_ns, time_ns; /* when it last began, and all together; 0 in a run without stamps */
} prn_tally;

typedef struct prn_nested {
    prn_plan **plans; /* borrowed; plan->nested_index is its place */
    size_t plan_count, plan_capacity;
    size_t step_count;  /* of all these plans */
    uint64_t *trips;    /* [plan_count] */
    prn_tally *tallies; /* [step_count]; step->nested_index is its place */
} prn_nested;

/* `plan` is the outermost. What it has no subgraphs for is an empty list. */
PRN_MUST_USE prony_status prn_nested_create(prn_nested **out, const prn_plan *plan, prony_error *error);
void prn_nested_release(prn_nested *nested);
/* Copies what the last run did. */
void prn_nested_read(prn_nested *nested);

/* *to += what a step of the plan did, subgraphs included; parameters stay. false: overflow. */
PRN_MUST_USE bool prn_nested_cost(const prn_nested *nested, const prn_plan *plan, const prn_step *step, prony_cost *to);

#endif
