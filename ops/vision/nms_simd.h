/* Tests boxes for overlap with one of many, compiled once per instruction set. */
#ifndef PRN_OPS_VISION_NMS_SIMD_H
#define PRN_OPS_VISION_NMS_SIMD_H

#include <stdbool.h>
#include <stdint.h>

enum { PRN_NMS_LOW_X, PRN_NMS_HIGH_X, PRN_NMS_LOW_Y, PRN_NMS_HIGH_Y, PRN_NMS_AREA, PRN_NMS_FIELDS };

typedef struct prn_nms_simd {
    /* `others` has a stretch of `room` floats for every field, of which `count` are filled; `box` has one value
     * each. */
    bool (*overlaps)(const float *box, const float *others, int64_t room, int64_t count, float least);
} prn_nms_simd;

#endif
