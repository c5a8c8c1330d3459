/* All subgraphs of a plan in one list, and their steps in another, each after the step that contains it. Holds their
 * work in a run: how often each subgraph began, and each step's time and cost. Made once per plan, read after every run
 * that counts. */
#ifndef PRN_ENGINE_RUN_NESTED_H
#define PRN_ENGINE_RUN_NESTED_H

#include "engine/plan/plan.h"

/* Of a step, over all its executions in the run. */
typedef struct prn_tally {
    prony_cost cost;           /* as prn_step's `executed` */
    int64_t start_ns, time_ns; /* last start, and total time; 0 in a run without stamps */
} prn_tally;

typedef struct prn_nested {
    prn_plan **plans; /* borrowed; indexed by plan->nested_index */
    size_t plan_count, plan_capacity;
    size_t step_count;  /* of all these plans */
    uint64_t *trips;    /* [plan_count] */
    prn_tally *tallies; /* [step_count]; indexed by step->nested_index */
} prn_nested;

/* `plan` is the outermost. Without subgraphs the lists are empty. */
PRN_MUST_USE prony_status prn_nested_create(prn_nested **out, const prn_plan *plan, prony_error *error);
void prn_nested_release(prn_nested *nested);
/* Copies the work of the last run. */
void prn_nested_read(prn_nested *nested);

/* Adds to *to the work of a step of the plan, subgraphs included; parameters stay. false: overflow. */
PRN_MUST_USE bool prn_nested_cost(const prn_nested *nested, const prn_plan *plan, const prn_step *step, prony_cost *to);

#endif
