/* Ways to spoil a row of tests/operators/cases: what a damaged or hostile model would ask of the same operator. */
#ifndef PRN_TESTS_SUPPORT_OP_DISTORT_H
#define PRN_TESTS_SUPPORT_OP_DISTORT_H

#include "tests/support/op_cases.h"

/* Spoils the parsed row in the k-th way and says how; false (row unchanged) once k is past the last. */
bool op_distort(op_case_node *row, size_t k, char *what, size_t size);
/* Spoils it in one to four ways that the seed chooses, single elements among them. */
void op_distort_randomly(op_case_node *row, uint64_t seed, char *what, size_t size);

#endif
