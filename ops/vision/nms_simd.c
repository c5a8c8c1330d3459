/* A vector of boxes at a time (compiled once per PRN_SIMD). Few overlap at all, and only of those is the ratio
 * computed. */
#include "ops/vision/nms_simd.h"
#include "base/cpu/simd.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/vec_math.h"

enum { LOOK_UP = 1 << 16 };

/* The length that two spans share: a negative one, or NaN, where they do not. */
VEC_INLINE vf shared_length(const float *box, const float *others, int64_t room, int field, int64_t left, vi *apart)
{
    const vf low = v_splat(box[field]), high = v_splat(box[field + 1]);
    const vf other_low = v_load_part(others + field * room, left, INFINITY);
    const vf other_high = v_load_part(others + (field + 1) * room, left, INFINITY);
    const vf from = v_select(low > other_low, low, other_low), to = v_select(high < other_high, high, other_high);
    *apart |= ~(to > from);
    return to - from;
}

VEC_INLINE bool any(vi mask)
{
    int32_t bits = 0;
    for (int i = 0; i < VEC_LANES; i++) bits |= mask[i];
    return bits != 0;
}

static bool nms_simd_overlaps(const float *box, const float *others, int64_t room, int64_t count, float least)
{
    const vf area = v_splat(box[PRN_NMS_AREA]);
    for (int64_t i = 0; i < count; i += VEC_LANES) {
        vi apart = {0};
        const int64_t left = count - i;
        vf shared = shared_length(box, others + i, room, PRN_NMS_LOW_X, left, &apart);
        shared *= shared_length(box, others + i, room, PRN_NMS_LOW_Y, left, &apart);
        if ((i & (LOOK_UP - 1)) == LOOK_UP - VEC_LANES && prn_cancelled()) return false;
        if (!any(~apart)) continue;
        const vf other_area = v_load_part(others + PRN_NMS_AREA * room + i, left, 0.0f);
        const vf all = area + other_area - shared;
        if (any(~apart & (shared > 0.0f) & (area > 0.0f) & (other_area > 0.0f) & (all > 0.0f) & (shared / all > least)))
            return true;
    }
    return false;
}

const prn_nms_simd PRN_SIMD_TABLE(prn_nms_simd_) = {nms_simd_overlaps};
