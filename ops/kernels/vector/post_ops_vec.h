/* Post-operations by the vector table: what native kernels finish a run of float32 results with. */
#ifndef PRN_OPS_KERNELS_VECTOR_POST_OPS_VEC_H
#define PRN_OPS_KERNELS_VECTOR_POST_OPS_VEC_H

#include "ops/op.h"

/* As prn_post_ops_apply_f32, a few ulp apart from it in the transcendental ones. */
void prn_post_ops_apply_vec(const prony_context *context, float *data, int64_t first, int64_t count);

#endif
