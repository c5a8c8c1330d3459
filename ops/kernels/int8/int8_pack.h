/* Packed weights of products of codes: panels of 32 columns, the sums of the columns' weights, and on processors that
 * split panels (int8_outliers.h) where each panel's list begins and its steps. Panels are those of all groups, and
 * depth is padded. */
#ifndef PRN_OPS_KERNELS_INT8_INT8_PACK_H
#define PRN_OPS_KERNELS_INT8_INT8_PACK_H

#include "base/integers.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/op.h"

/* Weights of `groups` matrices: entry (k, column) of group g is codes[(g columns + column) column_step +
 * k / inner outer_step + k % inner inner_step]. With tables, column_at[g columns + column] and
 * outer_at[k / inner] stand for the first two terms. */
typedef struct prn_qint8_weights {
    const void *codes;
    bool is_signed;
    int64_t groups, columns, depth, column_step, inner, inner_step, outer_step;
    const int64_t *column_at, *outer_at; /* NULL: no table */
    size_t table_entries;                /* of column_at and of outer_at, which follows it; 0: no tables */
} prn_qint8_weights;

/* Packed weights, which the model owns. */
typedef struct prn_qint8_packed {
    const int8_t *panels;
    const prn_qint8_outliers *excess; /* what panels are without on processors that split them; NULL: nothing */
} prn_qint8_packed;

/* Packs them through context->services, for all sessions of the model. */
prony_status prn_qint8_pack(const prony_context *context, const prn_qint8_weights *weights, prn_qint8_packed *packed);
/* bias[column] = given - x_zero (sum of the column's weights), of all groups' columns; `given` NULL: 0. x_zero is that
 * of the unsigned codes. */
void prn_qint8_bias(const prn_qint8_weights *weights, const prn_qint8_packed *packed, int32_t x_zero,
                    const int32_t *given, int32_t *bias);

/* ---- how they lie */

static inline int64_t prn_qint8_padded(int64_t depth)
{
    return prn_ceil_div(depth, PRN_QINT8_DEPTH) * PRN_QINT8_DEPTH;
}

/* Panels of a group. */
static inline int64_t prn_qint8_panels(int64_t columns)
{
    return prn_ceil_div(columns, PRN_QINT8_COLUMNS);
}

static inline const int32_t *prn_qint8_sums(const int8_t *packed, int64_t panels, int64_t depth)
{
    return (const int32_t *)(const void *)(packed + panels * PRN_QINT8_COLUMNS * depth);
}

/* panels + 1 of them: the last one is where all lists end. */
static inline const uint32_t *prn_qint8_starts(const int8_t *packed, int64_t panels, int64_t depth)
{
    return (const uint32_t *)(prn_qint8_sums(packed, panels, depth) + panels * PRN_QINT8_COLUMNS);
}

static inline const uint8_t *prn_qint8_steps(const int8_t *packed, int64_t panels, int64_t depth)
{
    return (const uint8_t *)(prn_qint8_starts(packed, panels, depth) + panels + 1);
}

#endif
