/* Comparison of a result with a reference, by ONNX's rule: |got - want| <= atol + rtol |want| with rtol 1e-3 and atol
 * 1e-7 (1e-2 for bfloat16, whose steps are 2^-7), NaN equals NaN; integers, bools and strings exactly. */
#ifndef PRN_BENCH_SESSION_VALUE_COMPARE_H
#define PRN_BENCH_SESSION_VALUE_COMPARE_H

#include "prony.h"

/* On a mismatch writes the reason: kind, type, shape, or how many elements differ and the worst of them. */
bool value_matches(const prony_value *got, const prony_value *want, char *difference, size_t size);

/* The largest difference of two tensors of numbers of one type and shape, as part of the largest magnitude in `want`
 * (for integers and bools, and if that is 0, the difference itself). NaN and infinity equal themselves; against other
 * values the distance is infinite. false: not such tensors. */
bool value_distance(const prony_value *got, const prony_value *want, double *distance);

/* For random outputs: kind, type and shape as wanted, every element in the range (and not NaN). */
bool value_is_drawn(const prony_value *got, const prony_value *want, const prony_random_range *range, char *difference,
                    size_t size);

#endif
