/* Builds graphs of dequantised values. */
#ifndef PRN_TESTS_SUPPORT_CODED_GRAPH_H
#define PRN_TESTS_SUPPORT_CODED_GRAPH_H

#include "model_builder.h"

/* Sets the seed of the following random values. */
void cg_seed(uint32_t seed);
void cg_zero(model_builder *m, const char *name, prony_dtype type, int value);
/* `to` is `from` through "to_q", with this scale and zero point. */
void cg_pair(model_builder *m, const char *from, const char *to, prony_dtype type, float step, int point);
/* The same by the operators of a domain: "com.microsoft::". */
void cg_pair_of(model_builder *m, const char *domain, const char *from, const char *to, prony_dtype type, float step,
                int point);
/* `name`: codes of `count` numbers, dequantized along axis 0 with `scales` scales of about `step`. */
void cg_codes(model_builder *m, const char *name, prony_dtype type, const char *dims, int count, int scales,
              float step);
/* The same along another one, "axis=1". */
void cg_codes_along(model_builder *m, const char *axis, const char *name, prony_dtype type, const char *dims, int count,
                    int scales, float step);

#endif
