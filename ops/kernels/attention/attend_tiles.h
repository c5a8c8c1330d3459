/* The attention of attend.h with both of its products on tiles of bfloat16 (bf16x3_product.h): Q, K, V and the weights
 * are rounded to bfloat16, sums and the softmax are float32. Values without such a form, and callers that weigh
 * rows themselves, take prn_attend_run's way. */
#ifndef PRN_OPS_KERNELS_ATTENTION_ATTEND_TILES_H
#define PRN_OPS_KERNELS_ATTENTION_ATTEND_TILES_H

#include "ops/kernels/attention/attend.h"

/* True if this processor has the tiles, and the problem the strides and extents for them. */
bool prn_attend_tiles_fit(const prn_attend *at);
/* True if the products are large enough for whole tiles. */
bool prn_attend_tiles_profitable(const prn_attend *at);
/* Bytes of working space for so many threads, aligned to 64; false: too many to count. */
bool prn_attend_tiles_space(int threads, const prn_attend *at, size_t *bytes);
/* Blocks depend on shapes alone, so that results do not depend on threads, which are those of the space. */
void prn_attend_tiles_run(int threads, const prn_attend *at, void *space);

#endif
