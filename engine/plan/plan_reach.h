/* The values and steps of a plan that a change of extents reaches, and steps that come out like an earlier one. */
#ifndef PRN_ENGINE_PLAN_PLAN_REACH_H
#define PRN_ENGINE_PLAN_PLAN_REACH_H

#include "engine/plan/plan.h"

typedef struct prn_plan_reach {
    uint64_t reaches;  /* the program's, if `only` */
    bool listed;       /* the lists are made */
    bool only;         /* of what the program's last change reached; false: of all that extents affect */
    bool *used;        /* by value: a step, an output of the graph or a used view has it */
    uint32_t *values;  /* used plan values, ascending */
    uint32_t *views;   /* used values that lie in a constant whose elements change */
    uint32_t *steps;   /* in order */
    uint32_t *leaders; /* by place in `steps`: an earlier step of the same kernel and attributes, and of layers of the
                               same cost; PRN_NO_STEP: none. Before a step follows its leader, shapes are compared */
    uint32_t value_count, view_count, step_count;
} prn_plan_reach;

/* Makes plan->reach fit the program's last change of extents. false: out of memory. */
PRN_MUST_USE bool prn_plan_reach_update(prn_plan *plan);
void prn_plan_reach_release(prn_plan *plan);

#endif
