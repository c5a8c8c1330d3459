/* The last plain accesses of each byte by each thread, to find races. */
#ifndef PRN_TESTS_WEAK_WEAK_SHADOW_H
#define PRN_TESTS_WEAK_WEAK_SHADOW_H

#include "weak_graph.h"

void weak_shadow_clear(void);
/* Notes an access; returns a thread whose access of a byte conflicts with it and did not happen before it; -1: none. */
int weak_shadow_access(uintptr_t address, size_t bytes, int thread, const weak_clock *clock, bool writes);

#endif
