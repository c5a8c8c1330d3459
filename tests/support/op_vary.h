/* Variations of a row of tests/operators/cases with other shapes and attributes. Equal numbers stay equal, so most
 * variations are valid. */
#ifndef PRN_TESTS_SUPPORT_OP_VARY_H
#define PRN_TESTS_SUPPORT_OP_VARY_H

#include "tests/support/op_cases.h"

enum { OP_VARY_TEXT = 4096 };

typedef struct op_varied {
    op_case row; /* points into the texts */
    char attributes[OP_VARY_TEXT], inputs[OP_VARY_TEXT];
} op_varied;

/* Variation number `seed` of a row of the list; false: none (refused, or too long). */
bool op_vary(op_varied *out, const op_case_list *list, size_t row, uint64_t seed);

#endif
