/* Shared by the rewrite tests. A case is a small model and the operators that must remain, in order of execution, with
 * post-operations in brackets: "Conv[add,relu] Gemm". After any rewrite the program is well formed, has the model's
 * counts and computes the model's results. */
#ifndef PRN_TESTS_SUPPORT_REWRITE_CHECK_H
#define PRN_TESTS_SUPPORT_REWRITE_CHECK_H

#include "engine/bind/program.h"
#include "model_builder.h"

/* ---- models; random numbers continue from the seed ---- */

void rc_seed(uint32_t seed);
/* Initializers, float32 by default. */
void rc_weights_in(model_builder *m, const char *name, const char *dims, float low, float high);
void rc_weights(model_builder *m, const char *name, const char *dims); /* in [-1, 1) */
void rc_scalar(model_builder *m, const char *name, float value);
void rc_ints(model_builder *m, const char *name, const char *dims, const int64_t *values);
/* BatchNormalization of x into y with constant statistics of its own. */
void rc_conv(model_builder *m, const char *inputs, const char *output); /* with a padding of one */
void rc_batch_norm(model_builder *m, const char *x, const char *y, const char *channels);
/* Opset 17, input x [2, 4, 5, 5], Conv weights w [4, 4, 3, 3] and bias b. */
model_builder *rc_begin(void);
void rc_output(model_builder *m, const char *name);

typedef struct rc_step {
    const char *op, *inputs, *output, *attributes;
} rc_step;
/* Nodes up to a step without op. */
void rc_steps(model_builder *m, const rc_step *steps);

/* ---- the expectation ---- */

/* Takes over the model. */
void rc_expect(model_builder *m, const char *wanted);
void rc_expect_with(prony_registry *registry, model_builder *m, const char *wanted);

/* ---- pieces of rc_expect ---- */

typedef struct rc_model {
    prony_model model;
    prony_error error;
} rc_model;

void rc_load(rc_model *l, model_builder *m, prony_registry *registry);
void rc_unload(rc_model *l);
PRN_MUST_USE prony_status rc_bind(rc_model *l, prn_program **out);
void rc_describe(const prn_program *program, char *text, size_t size);
/* Every input is made before its use; producers and the pointers of contexts are right. */
void rc_check_well_formed(const prn_program *p);
void rc_check_conserved(const prn_program *before, const prn_program *after);
void rc_check_runs(prn_program *before, prn_program *after);

#endif
