/* InstanceNormalization and GroupNormalization of tensors whose channels lie in blocks. */
#ifndef PRN_OPS_NORM_NORM_BLOCKS_H
#define PRN_OPS_NORM_NORM_BLOCKS_H

#include "ops/op.h"

/* Takes blocks as they come; sums over channels that lie plain have another order, so `fp32-strict` has everything
 * plain. */
void prn_norm_blocks_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
/* Bytes of working space, where the input is in blocks. */
size_t prn_norm_blocks_scratch(const prony_context *context);
/* `groups` of an image's channels; inputs 1 and 2 are the scale and the shift, of as many channels each as their
 * lengths say. Ends with the context's post-operations. */
void prn_norm_blocks_run(const prony_context *context, int64_t groups, float epsilon);

#endif
