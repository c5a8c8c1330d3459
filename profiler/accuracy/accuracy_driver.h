/* A run under observation, and the reference beside it. */
#ifndef PRN_PROFILER_ACCURACY_ACCURACY_DRIVER_H
#define PRN_PROFILER_ACCURACY_ACCURACY_DRIVER_H

#include "engine/session/session.h"
#include "profiler/accuracy/error_metrics.h"
#include "profiler/accuracy/reference.h"
#include "profiler/accuracy/accuracy_subgraphs.h"

typedef struct prn_accuracy_driver_row {
    bool sampled;            /* its own error is asked for */
    const char *own_missing; /* why there is no own error */
    const char *chain_missing;
    bool rounded; /* the reference of its own error is of a kernel without float64 */
    bool chain_rounded;
    prony_error_figures own, accumulated;
} prn_accuracy_driver_row;

/* A model in float64, node by node, from the session's inputs on. */
typedef struct prn_reference_executor {
    prn_program *program; /* bound, not rewritten; NULL: there is none */
    prn_reference reference;
    prn_accuracy_subgraphs slices;
    prn_f64_tensor *values; /* [values] */
    uint32_t *uses;         /* [values] reads to come */
    bool *needed;           /* [nodes] */
    uint32_t next;          /* node that is to be evaluated */
    uint32_t *inputs;       /* [inputs of the program] the session's input that it takes */
    uint32_t *match;        /* of slices */
} prn_reference_executor;

/* Of the model at the shapes of the session's inputs, beside the session's plan. Another model than the session's has
 * its values found by the names of the plan's layers. Zeroed before, freed also after a failure. */
PRN_MUST_USE prony_status prn_reference_executor_create(prn_reference_executor *c, const prony_session *session,
                                                        const prony_model *model, const prn_plan *plan,
                                                        prony_error *error);
void prn_reference_executor_free(prn_reference_executor *c);
/* Says once which values somebody will read, one read for each time that they stand there. */
void prn_reference_executor_aim(prn_reference_executor *c, const uint32_t *targets, size_t count);
/* Evaluates what is needed up to node `last`. */
PRN_MUST_USE prony_status prn_reference_executor_advance(prn_reference_executor *c, const prony_session *session,
                                                         uint32_t last, prony_error *error);
/* One of the reads is done. */
void prn_reference_executor_read(prn_reference_executor *c, uint32_t v);
/* One node on values from `first`, else from `second` (may be NULL), into `to`: what `uses` (NULL: everything) asks
 * for; nothing where an operand is missing. */
PRN_MUST_USE prony_status prn_reference_executor_evaluate(prn_reference_executor *c, const prony_session *session,
                                                          uint32_t n, const prn_f64_tensor *first,
                                                          const prn_f64_tensor *second, prn_f64_tensor *to,
                                                          const uint32_t *uses, prony_error *error);

typedef struct prn_accuracy_driver {
    prony_session *session;
    const prn_plan *plan;
    prn_reference_executor chain; /* of the session's model */
    prn_reference_executor other; /* of the model that is compared with instead, if one is */
    double tolerance;
    prn_accuracy_driver_row *rows; /* [steps] */
    prn_f64_tensor *measured;      /* [values] as the run made them, kept for slices to come */
    uint32_t *measured_uses;
    prn_f64_tensor *made; /* [values] of the slice at hand */
    int64_t spent_ns;
    prony_status status;
    prony_error *error;
} prn_accuracy_driver;

/* `samples` 0: every operator's own error. `other` NULL: accumulated errors are beside the session's own model. */
PRN_MUST_USE prony_status prn_accuracy_driver_create(prn_accuracy_driver *walk, prony_session *session,
                                                     const prony_model *other, int64_t samples, double tolerance,
                                                     prony_error *error);
/* Runs the session once, with rows filled. Callers hold `busy`. */
PRN_MUST_USE prony_status prn_accuracy_driver_run(prn_accuracy_driver *walk, prony_error *error);
/* An output of the model beside the chain's; not known: there is none. */
PRN_MUST_USE prony_status prn_accuracy_driver_output(prn_accuracy_driver *walk, size_t index, prony_error_figures *out,
                                                     prony_error *error);
void prn_accuracy_driver_free(prn_accuracy_driver *walk);

#endif
