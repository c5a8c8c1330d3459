/* A model with an If in a Loop in an If, also with a shape known at run time only, and its report. */
#ifndef PRN_TESTS_SUPPORT_NESTED_MODEL_H
#define PRN_TESTS_SUPPORT_NESTED_MODEL_H

#include "tests/support/model_run.h"
#include "prony_report.h"

/* Inputs: go (bool; false takes /outer's else_branch, of /calm/Tanh and /calm/Neg), trips (int64), x (float32 [4,8]).
 * In each of `trips` trips /outer > then_branch > /loop > body adds to x what /inner gives: in the first three its
 * then_branch (/inner/MatMul by an 8x8 weight, /inner/Relu), afterwards its else_branch (/inner/Abs); /loop/NonZero of
 * it is sized at run time. */
model_builder *nested_model(void);
/* A session of it with the inputs set. */
void nested_open(model_run *r, bool go, int64_t trips);
void nested_set(model_run *r, bool go, int64_t trips);
/* Profiles with so many counted runs; a failure ends the test. */
prony_report *nested_profile(model_run *r, int64_t runs);

/* The row of this name, which exists once. */
const prony_nested_row *nested_row(const prony_report *report, unsigned level, const char *name);
/* Sums over the rows directly inside a row (PRONY_NO_INDEX: inside the owner itself), except bytes and parameters. */
prony_cost nested_sum(const prony_report *report, unsigned level, uint32_t owner, uint32_t parent);
void nested_expect_counts(const prony_cost *a, const prony_cost *b);

#endif
