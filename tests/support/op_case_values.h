/* Whether what a dynamic step keeps from run to run (its kernel, its cost) follows from the forms of its values
 * alone. */
#ifndef PRN_TESTS_SUPPORT_OP_CASE_VALUES_H
#define PRN_TESTS_SUPPORT_OP_CASE_VALUES_H

#include "ops/op.h"

/* Asks every kernel whether it can and is worth it, and the operator's cost, with the inputs as they are and with other
 * elements in each of them. `context` has inferred outputs and `in` is what its inputs point to, with data; both are as
 * before afterwards. Of rows with PRN_OP_BY_VALUE only the first is tried. Returns the input whose elements matter, or
 * -1. */
int op_case_value_that_matters(const prn_op *op, prony_context *context, prony_value *in);

#endif
