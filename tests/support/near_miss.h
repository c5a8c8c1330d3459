/* Near misses of the patterns that float rewrites look for. Graph N is a rewrite's pattern, unchanged or with one or
 * two changes: an attribute, a constant, an operand, a type, an operator in between, one more reader. A rewrite may
 * fire or not; the graph computes the same in both cases. */
#ifndef PRN_TESTS_SUPPORT_NEAR_MISS_H
#define PRN_TESTS_SUPPORT_NEAR_MISS_H

#include "tests/support/random_graph.h"

typedef struct near_miss_info {
    const char *rewrite;
    int changes; /* number of changes; 0: the pattern itself */
    const char *change[2];
} near_miss_info;

/* `info` may be NULL. */
random_graph *near_miss_make(uint64_t seed, near_miss_info *info);

/* NULL if each of the engine's rewrites has a pattern here, or is one of quantized values, which
 * tests/support/random_qdq.h makes; else the name of a rewrite without a pattern, or of a pattern without a rewrite. */
const char *near_miss_without_pattern(void);

#endif
