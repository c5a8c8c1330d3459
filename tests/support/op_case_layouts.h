/* Values of a case in the layouts of kernels. */
#ifndef PRN_TESTS_SUPPORT_OP_CASE_LAYOUTS_H
#define PRN_TESTS_SUPPORT_OP_CASE_LAYOUTS_H

#include "ops/op.h"

/* Copies `from` into `to` (same type and shape, data of the right size), each in its own layout; padding lanes become
 * 0. */
void op_case_convert(prony_value *to, const prony_value *from);
/* true: the lanes past the last channel are zero. */
bool op_case_padding_is_zero(const prony_value *value);
/* The first element whose bits differ between two plain values of one type and shape; -1: none. All NaNs of float32
 * count as the same. */
int64_t op_case_other_bits(const prony_value *a, const prony_value *b);

#endif
