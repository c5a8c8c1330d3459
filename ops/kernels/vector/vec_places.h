/* Elements from many places, and pairs of neighbours, which one load brings. For sources that are compiled once per
 * instruction set. By single loads: on a Zen 4 the processor's own gathers take 1.4 to 2 times as long. */
#ifndef PRN_OPS_KERNELS_VECTOR_VEC_PLACES_H
#define PRN_OPS_KERNELS_VECTOR_VEC_PLACES_H

#include "ops/kernels/vector/vec_math.h"

typedef double v_doubles __attribute__((vector_size(VEC_BYTES)));

/* Elements p[at[i]] of VEC_LANES places. */
VEC_INLINE vf v_load_places(const float *p, const int32_t *at)
{
#define V_PLACES_(i) p[at[i]], p[at[i + 1]], p[at[i + 2]], p[at[i + 3]]
#if VEC_LANES == 16
    return (vf){V_PLACES_(0), V_PLACES_(4), V_PLACES_(8), V_PLACES_(12)};
#elif VEC_LANES == 8
    return (vf){V_PLACES_(0), V_PLACES_(4)};
#else
    return (vf){V_PLACES_(0)};
#endif
#undef V_PLACES_
}

VEC_INLINE double v_pair_bits(const float *p)
{
    double pair;
    memcpy(&pair, p, sizeof pair);
    return pair;
}

/* Elements p[at[i]] and p[at[i] + 1] in lanes 2 i and 2 i + 1, of VEC_LANES / 2 places. */
VEC_INLINE vf v_load_pairs(const float *p, const int32_t *at)
{
#define V_PAIR_(i) v_pair_bits(p + at[i])
#if VEC_LANES == 16
    const v_doubles pairs = {V_PAIR_(0), V_PAIR_(1), V_PAIR_(2), V_PAIR_(3),
                             V_PAIR_(4), V_PAIR_(5), V_PAIR_(6), V_PAIR_(7)};
#elif VEC_LANES == 8
    const v_doubles pairs = {V_PAIR_(0), V_PAIR_(1), V_PAIR_(2), V_PAIR_(3)};
#else
    const v_doubles pairs = {V_PAIR_(0), V_PAIR_(1)};
#endif
#undef V_PAIR_
    return (vf)pairs;
}

/* The first elements of the pairs in `a` and then in `b`. */
VEC_INLINE vf v_firsts(vf a, vf b)
{
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

/* The second ones. */
VEC_INLINE vf v_seconds(vf a, vf b)
{
#if VEC_LANES == 16
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif VEC_LANES == 8
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}

#endif
