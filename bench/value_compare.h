/* Comparison of a result with a reference, by ONNX's rule: |got - want| <= atol + rtol |want| with rtol 1e-3 and atol 1e-7
 * (1e-2 for float16 and bfloat16, whose steps are coarser), NaN equals NaN; integers, bools and strings exactly. */
#ifndef PRN_BENCH_VALUE_COMPARE_H
#define PRN_BENCH_VALUE_COMPARE_H

#include "prony.h"

/* On a mismatch writes the first reason: kind, type, shape, or how many elements differ and the worst of them. */
bool value_matches(const prony_value *got, const prony_value *want, char *difference, size_t size);

#endif
