/* Multiply-add by one lane of a vector, for tiles of AArch64 (PRN_NEON): the instruction takes the lane itself, so four
 * elements that lie together are one load, and no vector of equal lanes is made. */
#ifndef PRN_BASE_CPU_FMA_LANE_H
#define PRN_BASE_CPU_FMA_LANE_H

#if defined(PRN_NEON)
#include <arm_neon.h>

/* sum + a x[lane], rounded once; `lane` is a constant after inlining. */
static inline __attribute__((always_inline)) float32x4_t prn_fma_lane(float32x4_t sum, float32x4_t a, float32x4_t x,
                                                                      const int lane)
{
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
}
#endif

#endif
