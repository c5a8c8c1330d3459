/* Random numbers that are the same everywhere: splitmix64 (G. L. Steele and others, 2014), as the library draws
 * them. */
#ifndef PRN_BENCH_RANDOM_H
#define PRN_BENCH_RANDOM_H

#include <stdint.h>

static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
