/* A run under observation, and the reference beside it. */
#ifndef PRN_PROFILER_ACCURACY_WALK_H
#define PRN_PROFILER_ACCURACY_WALK_H

#include "engine/session/session.h"
#include "profiler/accuracy/figures.h"
#include "profiler/accuracy/reference.h"
#include "profiler/accuracy/slices.h"

typedef struct prn_walk_row {
    bool sampled;             /* its own error is asked for */
    const char *own_missing;  /* why there is no own error */
    const char *chain_missing;
    bool rounded;             /* the reference of its own error is of a kernel without float64 */
    bool chain_rounded;
    prony_error_figures own, accumulated;
} prn_walk_row;

typedef struct prn_walk {
    prony_session *session;
    const prn_plan *plan;
    prn_program *program; /* the reference's */
    prn_reference reference;
    prn_slices slices;
    double tolerance;
    prn_walk_row *rows;       /* [steps] */
    prn_wide *chain;          /* [values] as the reference makes them of its own */
    uint32_t *chain_uses;     /* [values] reads to come */
    bool *needed;             /* [nodes] of the chain */
    uint32_t next;            /* node of the chain that is to be evaluated */
    prn_wide *measured;       /* [values] as the run made them, kept for slices to come */
    uint32_t *measured_uses;
    prn_wide *made;           /* [values] of the slice at hand */
    uint32_t *targets;        /* [values of steps and outputs] */
    size_t target_count;
    int64_t spent_ns;
    prony_status status;
    prony_error *error;
} prn_walk;

/* `samples` 0: every operator's own error. */
PRN_MUST_USE prony_status prn_walk_create(prn_walk *walk, prony_session *session, int64_t samples, double tolerance, prony_error *error);
/* Runs the session once, with rows filled. Callers hold `busy`. */
PRN_MUST_USE prony_status prn_walk_run(prn_walk *walk, prony_error *error);
/* An output of the model beside the chain's; not known: there is none. */
PRN_MUST_USE prony_status prn_walk_output(prn_walk *walk, size_t index, prony_error_figures *out, prony_error *error);
void prn_walk_free(prn_walk *walk);

#endif
