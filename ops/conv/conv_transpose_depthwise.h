/* ConvTranspose of one filter for each channel: constant weights, blocked layouts. */
#ifndef PRN_OPS_CONV_CONV_TRANSPOSE_DEPTHWISE_H
#define PRN_OPS_CONV_CONV_TRANSPOSE_DEPTHWISE_H

#include "ops/op.h"

bool prn_conv_transpose_depthwise_supported(const prony_context *context);
void prn_conv_transpose_depthwise_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_transpose_depthwise_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_transpose_depthwise_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_transpose_depthwise_run(const prony_context *context);
void prn_conv_transpose_depthwise_release(void *state);

#endif
