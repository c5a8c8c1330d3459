/* Distorts a row of tests/operators/cases like a damaged or hostile model. */
#ifndef PRN_TESTS_SUPPORT_OP_DISTORT_H
#define PRN_TESTS_SUPPORT_OP_DISTORT_H

#include "tests/support/op_cases.h"

/* Distorts the parsed row in the k-th way and names it; false (row unchanged): k is past the last. */
bool op_distort(op_case_node *row, size_t k, char *what, size_t size);
/* Distorts it in one to four ways chosen by the seed, including single elements. */
void op_distort_randomly(op_case_node *row, uint64_t seed, char *what, size_t size);

#endif
