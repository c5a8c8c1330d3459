/* Multiply-add by one lane of a vector, for tiles of AArch64 (PRN_NEON): the instruction takes the lane itself, so four
 * elements that lie together are one load, and no vector of equal lanes is made. */
#ifndef PRN_BASE_CPU_FMA_LANE_H
#define PRN_BASE_CPU_FMA_LANE_H

#include "base/cpu/simd.h"

#if defined(PRN_NEON)
#include <arm_neon.h>

#if defined(__GNUC__) && !defined(__clang__)
#define PRN_FMA_LANE(sum, a, x, n) __asm__("fmla %0.4s, %1.4s, %2.s[" #n "]" : "+w"(sum) : "w"(a), "w"(x))
#define PRN_FMA_VECTOR(sum, a, x) __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(sum) : "w"(a), "w"(x))
#define PRN_FMA_ANY_LANE(sum, a, x, lane)                                                                              \
    switch (lane) {                                                                                                    \
    case 0:                                                                                                            \
        PRN_FMA_LANE(sum, a, x, 0);                                                                                    \
        break;                                                                                                         \
    case 1:                                                                                                            \
        PRN_FMA_LANE(sum, a, x, 1);                                                                                    \
        break;                                                                                                         \
    case 2:                                                                                                            \
        PRN_FMA_LANE(sum, a, x, 2);                                                                                    \
        break;                                                                                                         \
    default:                                                                                                           \
        PRN_FMA_LANE(sum, a, x, 3);                                                                                    \
        break;                                                                                                         \
    }

/* Sums of a tile in registers that are theirs alone, X(sum's number, register's number): elsewhere gcc's allocator moves
 * some in long loops, and each copy makes a chain of sums longer. PRN_PINNED_SUMS(PRN_PINNED_SUM) declares sum_0 to
 * sum_19, all 0; those that nothing reads cost nothing. v0 to v11 are left for inputs and weights. Invariant: no function
 * is called while they live, as it may overwrite them; code that is not optimised or that sanitizers change has calls. */
#if defined(__OPTIMIZE__) && !defined(PRN_SANITIZED)
#define PRN_PINNED
#define PRN_PINNED_5(X) X(0, 31) X(1, 30) X(2, 29) X(3, 28) X(4, 27)
#define PRN_PINNED_10(X) PRN_PINNED_5(X) X(5, 26) X(6, 25) X(7, 24) X(8, 23) X(9, 22)
#define PRN_PINNED_15(X) PRN_PINNED_10(X) X(10, 21) X(11, 20) X(12, 19) X(13, 18) X(14, 17)
#define PRN_PINNED_SUMS(X) PRN_PINNED_15(X) X(15, 16) X(16, 15) X(17, 14) X(18, 13) X(19, 12)
#define PRN_PINNED_SUM(i, number) register float32x4_t sum_##i __asm__("v" #number) = {0};
#endif
#endif

/* sum + a x[lane], rounded once; `lane` is a constant after inlining. gcc's allocator leaves copies between registers in
 * long chains of the intrinsic: two in a tile of 8 x 8 made its chain a quarter longer. An instruction that names its
 * sum as input and output gets none there. */
static inline __attribute__((always_inline)) float32x4_t prn_fma_lane(float32x4_t sum, float32x4_t a, float32x4_t x,
                                                                      const int lane)
{
#ifdef PRN_FMA_LANE
    PRN_FMA_ANY_LANE(sum, a, x, lane)
    return sum;
#else
    switch (lane) {
    case 0:
        return vfmaq_laneq_f32(sum, a, x, 0);
    case 1:
        return vfmaq_laneq_f32(sum, a, x, 1);
    case 2:
        return vfmaq_laneq_f32(sum, a, x, 2);
    default:
        return vfmaq_laneq_f32(sum, a, x, 3);
    }
#endif
}
#endif

#endif
