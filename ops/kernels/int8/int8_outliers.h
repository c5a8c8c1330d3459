/* Weights for products of bytes whose instruction adds two products in 16 bits and saturates (AVX2).
 *
 * An unsigned code is at most 255, so products fit 16 bits while the positive weights that meet there sum to at most
 * 128, and the negative ones to at least -128. Packing extracts the excess of a panel's weights:
 *
 *   weight = rest + excess      sums = codes by rests (bytes, 16 bits between) + codes by excesses (a list, exact)
 *
 * Of bell-shaped weights few have an excess, so that two or four instructions' sums may meet in 16 bits before they are
 * widened: `steps`, chosen for each panel by what product and list take together. Nothing here owns memory.
 */
#ifndef PRN_OPS_KERNELS_INT8_INT8_OUTLIERS_H
#define PRN_OPS_KERNELS_INT8_INT8_OUTLIERS_H

#include "ops/kernels/int8/int8_dot.h"

/* Leaves in a panel of `depth` depths (a multiple of 64) what fits; *groups is how many prn_qint8_outliers the rest of
 * it takes. Returns the panel's steps: 1, 2 or 4. */
int prn_qint8_outliers_split(int8_t *panel, int64_t depth, uint32_t *groups);
/* The list of a panel: what `whole` has more than `rest`. Returns its groups, as counted before. */
uint32_t prn_qint8_outliers_list(const int8_t *whole, const int8_t *rest, int64_t depth, prn_qint8_outliers *to);
/* sums[r][j] += products of the list's groups [from, to), for few rows: row by row. Rows of sums are 32 apart. */
void prn_qint8_outliers_rows(const uint8_t *a, int64_t rs_a, int64_t rows, const prn_qint8_outliers *from,
                             const prn_qint8_outliers *to, int32_t *sums);

#endif
