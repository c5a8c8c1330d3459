/* How packed weights lie: panels of 32 columns, the sums of the columns' weights, and on processors that split panels
 * (code_excess.h) where each panel's list begins and its steps. Panels are those of all groups, and depth is
 * padded. */
#ifndef PRN_OPS_LOOPS_CODE_PACK_H
#define PRN_OPS_LOOPS_CODE_PACK_H

#include "base/integers.h"
#include "ops/loops/code_product.h"

static inline int64_t prn_code_padded(int64_t depth)
{
    return prn_ceil_div(depth, PRN_CODE_DEPTH) * PRN_CODE_DEPTH;
}

/* Panels of a group. */
static inline int64_t prn_code_panels(int64_t columns)
{
    return prn_ceil_div(columns, PRN_CODE_COLUMNS);
}

static inline const int32_t *prn_code_sums(const int8_t *packed, int64_t panels, int64_t depth)
{
    return (const int32_t *)(const void *)(packed + panels * PRN_CODE_COLUMNS * depth);
}

/* panels + 1 of them: the last one is where all lists end. */
static inline const uint32_t *prn_code_starts(const int8_t *packed, int64_t panels, int64_t depth)
{
    return (const uint32_t *)(prn_code_sums(packed, panels, depth) + panels * PRN_CODE_COLUMNS);
}

static inline const uint8_t *prn_code_steps(const int8_t *packed, int64_t panels, int64_t depth)
{
    return (const uint8_t *)(prn_code_starts(packed, panels, depth) + panels + 1);
}

#endif
