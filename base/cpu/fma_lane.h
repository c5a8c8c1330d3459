/* Multiply-add by one lane of a vector, for tiles of AArch64 (PRN_NEON): the instruction takes the lane itself, so four
 * elements that lie together are one load, and no vector of equal lanes is made. */
#ifndef PRN_BASE_CPU_FMA_LANE_H
#define PRN_BASE_CPU_FMA_LANE_H

#if defined(PRN_NEON)
#include <arm_neon.h>

/* sum + a x[lane], rounded once; `lane` is a constant after inlining. gcc's allocator leaves copies between registers
 * in long chains of the intrinsic: two in a tile of 8 x 8 made its chain a quarter longer. An instruction that names
 * its sum as input and output gets none there. */
static inline __attribute__((always_inline)) float32x4_t prn_fma_lane(float32x4_t sum, float32x4_t a, float32x4_t x,
                                                                      const int lane)
{
#if defined(__GNUC__) && !defined(__clang__)
#define PRN_FMA_LANE(n) __asm__("fmla %0.4s, %1.4s, %2.s[" #n "]" : "+w"(sum) : "w"(a), "w"(x))
    switch (lane) {
    case 0:
        PRN_FMA_LANE(0);
        break;
    case 1:
        PRN_FMA_LANE(1);
        break;
    case 2:
        PRN_FMA_LANE(2);
        break;
    default:
        PRN_FMA_LANE(3);
        break;
    }
    return sum;
#undef PRN_FMA_LANE
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
