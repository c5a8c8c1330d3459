/* The native convolution: every float32 Conv, all operands plain; and the product that it consists of. */
#ifndef PRN_OPS_NN_CONV_NATIVE_H
#define PRN_OPS_NN_CONV_NATIVE_H

#include "ops/loops/conv_problem.h"

bool prn_conv_native_usable(const prony_context *context);
prony_status prn_conv_native_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_conv_native_run(const prony_context *context);

/* Weights as one matrix per group: element (row, depth) of group g is data[g group_step + row row_step + depth
 * depth_step]. `data` is NULL while it is not known. */
typedef struct prn_conv_matrix {
    const float *data;
    int64_t groups, rows, depth;
    int64_t group_step, row_step, depth_step;
} prn_conv_matrix;

/* Packs a constant matrix through the host, or asks for scratch to pack it in a run; `conv` is kept as prn_conv_keep does. */
prony_status prn_conv_matrix_prepare(const prony_context *context, const prn_conv *conv, prn_conv_matrix *matrix,
                                     prn_prepared *out);
/* The packed matrix: that of the state, or packed now into the beginning of the scratch. */
const float *prn_conv_matrix_packed(const prony_context *context, const prn_conv_matrix *matrix);

/* y = bias + packed weights * windows of x, then context->post_ops if asked for. Of `conv` everything but the values x,
 * weights and y is used; no extent may be zero. */
void prn_conv_product(const prony_context *context, const prn_conv *conv, const float *packed, const float *x, float *y,
                      bool post_ops);

#endif
