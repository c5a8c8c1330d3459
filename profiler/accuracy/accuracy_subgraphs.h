/* Finds the model's nodes between values of the plan under test, and the readers of values.
 *
 * The reference program is bound like the plan's, without rewrites. Binding is the same walk, so values of both have
 * the same numbers unless a rewrite made them. A *slice* of an operator is the model's nodes between its outputs and
 * the nearest values of earlier operators, model inputs or constants. */
#ifndef PRN_PROFILER_ACCURACY_ACCURACY_SUBGRAPHS_H
#define PRN_PROFILER_ACCURACY_ACCURACY_SUBGRAPHS_H

#include "engine/plan/plan.h"

typedef struct prn_accuracy_subgraphs {
    const prn_program *reference;
    const prn_plan *plan;
    const uint32_t *match; /* [steps] reference value of the first output, for another model; NULL: numbers are the
                              same */
    uint32_t *maker;       /* [values] node that makes it, folded ones too; PRN_NO_NODE: an input, or a constant of the
                          file */
    uint32_t *step_of;     /* [values] first step that makes it; PRN_NO_STEP: none */
    uint32_t *seen;        /* [nodes] number of the last walk that met it */
    uint32_t *value_seen;  /* [values] likewise */
    uint32_t walk;
    uint32_t *stack, *nodes, *leaves; /* of the last walk: its nodes, ascending, and the measured values that it
                                         reads */
    size_t node_count, leaf_count;
} prn_accuracy_subgraphs;

/* `match` NULL: both programs are of one model. */
PRN_MUST_USE prony_status prn_accuracy_subgraphs_create(prn_accuracy_subgraphs *s, const prn_program *reference,
                                                        const prn_plan *plan, const uint32_t *match,
                                                        prony_error *error);
void prn_accuracy_subgraphs_free(prn_accuracy_subgraphs *s);

/* Finds the slice of step `step`; *why is set if a node in it has no reference. */
void prn_accuracy_subgraphs_of_step(prn_accuracy_subgraphs *s, uint32_t step, const char **why);
/* Finds all nodes that `targets` need, from the model's inputs on; nodes without reference end the walk. */
void prn_accuracy_subgraphs_of_values(prn_accuracy_subgraphs *s, const uint32_t *targets, size_t count);
/* Reference value of output `k` of the plan's step; PRN_NO_VALUE: none, or of another shape. */
uint32_t prn_accuracy_subgraphs_output(const prn_accuracy_subgraphs *s, const prn_step *step, size_t k);

#endif
