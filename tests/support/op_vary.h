/* Rows like one of tests/operators/cases, with other shapes and attributes: what is equal in the row stays equal, so
 * that most of them are still the operator's. */
#ifndef PRN_TESTS_SUPPORT_OP_VARY_H
#define PRN_TESTS_SUPPORT_OP_VARY_H

#include "tests/support/op_cases.h"

enum { OP_VARY_TEXT = 4096 };

typedef struct op_varied {
    op_case row; /* points into the texts */
    char attributes[OP_VARY_TEXT], inputs[OP_VARY_TEXT];
} op_varied;

/* The variation number `seed` of a row of the list; false: it has none (it is refused, or too long). */
bool op_vary(op_varied *out, const op_case_list *list, size_t row, uint64_t seed);

#endif
