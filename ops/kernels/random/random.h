/* Random numbers by counting: element i of an operator's stream is a function of the stream's key and i, so that any
 * piece of a tensor can be drawn by itself, by any thread, and every run draws the same. A node without a seed takes
 * its key from its name: two nodes differ, and a model repeats itself.
 */
#ifndef PRN_OPS_KERNELS_RANDOM_RANDOM_H
#define PRN_OPS_KERNELS_RANDOM_RANDOM_H

#include "ops/op.h"

/* A bijection that leaves no trace of order (the finaliser of SplitMix64). */
static inline uint64_t prn_random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The key of a node whose seed attribute has these bits, or of one that has none. */
static inline uint64_t prn_random_key(const prony_context *context, bool seeded, uint64_t seed)
{
    if (seeded) return prn_random_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *c = context->node->name; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return prn_random_mix(hash);
}

/* Uniform in [0, 1): a multiple of 2^-bits, 1 <= bits <= 53. */
static inline double prn_random_uniform(uint64_t key, uint64_t index, int bits)
{
    const uint64_t word = prn_random_mix(key + (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return (double)(word >> (64 - bits)) / (double)(UINT64_C(1) << bits);
}

#endif
