/* Runs models made by the builder, for tests. A failure ends the test with the library's message.
 *
 *     model_run r = {0};
 *     mr_open(&r, m);                        // takes the builder
 *     mr_set(&r, "x", PRONY_FLOAT32, "2,3", data);   // data stays the caller's; mr_survives_faults uses it again
 *     mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2,3", wanted);
 *     mr_close(&r); */
#ifndef PRN_TESTS_SUPPORT_MODEL_RUN_H
#define PRN_TESTS_SUPPORT_MODEL_RUN_H

#include "prony_report.h"
#include "tests/support/model_builder.h"

#define MR_MAX_INPUTS 8

typedef struct mr_input {
    const char *name;
    prony_value value;
} mr_input;

typedef struct model_run {
    model_builder *builder;
    prony_model *model;
    prony_session *session;
    prony_session_options options; /* set before mr_open, or left zero */
    prony_registry *registry;      /* likewise; stays the caller's */
    prony_error error;
    mr_input inputs[MR_MAX_INPUTS];
    size_t input_count;
} model_run;

prony_shape mr_shape(const char *dims);

void mr_open(model_run *r, model_builder *m);
/* As mr_open, but returns the status; the message is in r->error. */
prony_status mr_try_open(model_run *r, model_builder *m);
void mr_set(model_run *r, const char *name, prony_dtype dtype, const char *dims, const void *data);
void mr_set_value(model_run *r, const char *name, const prony_value *value);
/* Runs and returns output `index`. */
const prony_value *mr_run(model_run *r, size_t index);
/* The report of one run without warm-up; the caller releases it. */
prony_report *mr_profile(model_run *r);
/* Requires that the run fails with this status, and that the message contains `text`. */
void mr_refused(model_run *r, prony_status status, const char *text);
const prony_value *mr_output(model_run *r, size_t index);
void mr_expect(const prony_value *got, prony_dtype dtype, const char *dims, const void *wanted);
/* float32 elements, within 1e-5 of 1 and of their own size. */
void mr_expect_near(const prony_value *got, const char *dims, const double *wanted);
/* Strings, separated by `|`. */
void mr_expect_text(const prony_value *got, const char *dims, const char *wanted);
void mr_close(model_run *r);

/* Bytes of the dynamic region that are live now, or were at most in the last run. */
uint64_t mr_live_bytes(const model_run *r);
uint64_t mr_peak_bytes(const model_run *r);
/* Bytes asked of it in the last run, one after another. */
uint64_t mr_asked_bytes(const model_run *r);

/* Load, bind, plan and two runs with the inputs set so far, once for every allocation that can fail. */
void mr_survives_faults(model_run *r);

#endif
