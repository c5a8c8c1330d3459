/* Tests that the kernel and cost kept by a dynamic step follow from types and shapes alone. */
#ifndef PRN_TESTS_SUPPORT_OP_CASE_VALUES_H
#define PRN_TESTS_SUPPORT_OP_CASE_VALUES_H

#include "ops/op.h"

/* Asks every kernel if it is supported and profitable, and the operator's cost, with the given inputs and with other
 * elements in each of them. `context` has inferred outputs; its inputs point to `in`, with data; both are restored
 * afterwards. Operators with PRN_OP_BY_VALUE try the first input only. Returns the input whose elements matter, or
 * -1. */
int op_case_value_that_matters(const prn_op *op, prony_context *context, prony_value *in);

#endif
