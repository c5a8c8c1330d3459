/* Runs a session under observation, with the float64 reference beside it. */
#ifndef PRN_PROFILER_ACCURACY_ACCURACY_DRIVER_H
#define PRN_PROFILER_ACCURACY_ACCURACY_DRIVER_H

#include "engine/session/session.h"
#include "profiler/accuracy/error_metrics.h"
#include "profiler/accuracy/reference.h"
#include "profiler/accuracy/accuracy_subgraphs.h"

typedef struct prn_accuracy_driver_row {
    bool sampled;            /* its own error is wanted */
    const char *own_missing; /* reason for a missing own error */
    const char *chain_missing;
    bool rounded; /* the reference of its own error came from a kernel without float64 */
    bool chain_rounded;
    prony_error_metrics own, accumulated;
} prn_accuracy_driver_row;

/* A model in float64, node by node, from the session's inputs on. */
typedef struct prn_reference_executor {
    prn_program *program; /* bound, not rewritten; NULL: no reference */
    prn_reference reference;
    prn_accuracy_subgraphs slices;
    prn_f64_tensor *values; /* [values] */
    uint32_t *uses;         /* [values] remaining reads */
    bool *needed;           /* [nodes] */
    uint32_t next;          /* next node to be evaluated */
    uint32_t *inputs;       /* [inputs of the program] index of the session's input */
    uint32_t *match;        /* of slices */
} prn_reference_executor;

/* For `model` at the shapes of the session's inputs, beside the session's plan. If `model` is not the session's, its
 * values are found by the names of the plan's layers. Zeroed before; to be freed also after a failure. */
PRN_MUST_USE prony_status prn_reference_executor_create(prn_reference_executor *c, const prony_session *session,
                                                        const prony_model *model, const prn_plan *plan,
                                                        prony_error *error);
void prn_reference_executor_free(prn_reference_executor *c);
/* Declares once the values to be read, one read for each entry. */
void prn_reference_executor_aim(prn_reference_executor *c, const uint32_t *targets, size_t count);
/* Evaluates what is needed up to node `last`. */
PRN_MUST_USE prony_status prn_reference_executor_advance(prn_reference_executor *c, const prony_session *session,
                                                         uint32_t last, prony_error *error);
/* Marks one read as done. */
void prn_reference_executor_read(prn_reference_executor *c, uint32_t v);
/* Evaluates one node on values from `first`, else from `second` (may be NULL), into `to`: outputs with `uses` (NULL:
 * all). Makes nothing if an operand is missing. */
PRN_MUST_USE prony_status prn_reference_executor_evaluate(prn_reference_executor *c, const prony_session *session,
                                                          uint32_t n, const prn_f64_tensor *first,
                                                          const prn_f64_tensor *second, prn_f64_tensor *to,
                                                          const uint32_t *uses, prony_error *error);

typedef struct prn_accuracy_driver {
    prony_session *session;
    const prn_plan *plan;
    prn_reference_executor chain; /* of the session's model */
    prn_reference_executor other; /* of another model to compare with, if given */
    double tolerance;
    prn_accuracy_driver_row *rows; /* [steps] */
    prn_f64_tensor *measured;      /* [values] as the run made them, kept for later slices */
    uint32_t *measured_uses;
    prn_f64_tensor *made; /* [values] of the current slice */
    int64_t spent_ns;
    prony_status status;
    prony_error *error;
} prn_accuracy_driver;

/* `samples` 0: every operator's own error. `other` NULL: accumulated errors compare with the session's own model. */
PRN_MUST_USE prony_status prn_accuracy_driver_create(prn_accuracy_driver *walk, prony_session *session,
                                                     const prony_model *other, int64_t samples, double tolerance,
                                                     prony_error *error);
/* Runs the session once, with rows filled. Callers hold `busy`. */
PRN_MUST_USE prony_status prn_accuracy_driver_run(prn_accuracy_driver *walk, prony_error *error);
/* The errors of a model output against the reference's; not known: it has no reference. */
PRN_MUST_USE prony_status prn_accuracy_driver_output(prn_accuracy_driver *walk, size_t index, prony_error_metrics *out,
                                                     prony_error *error);
void prn_accuracy_driver_free(prn_accuracy_driver *walk);

#endif
