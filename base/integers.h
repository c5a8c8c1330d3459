#ifndef PRN_BASE_INTEGERS_H
#define PRN_BASE_INTEGERS_H

#include <stdint.h>

/* a / b rounded up; a >= 0, b > 0, and their sum within 64 bits. */
static inline int64_t prn_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t prn_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
