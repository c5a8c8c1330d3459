/* The depthwise convolution: a filter for each channel, constant weights, channel blocks. */
#ifndef PRN_OPS_CONV_CONV_DEPTHWISE_H
#define PRN_OPS_CONV_CONV_DEPTHWISE_H

#include "ops/op.h"

bool prn_conv_depthwise_supported(const prony_context *context);
double prn_conv_depthwise_predict(const prony_context *context);
void prn_conv_depthwise_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_depthwise_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_depthwise_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_depthwise_run(const prony_context *context);
void prn_conv_depthwise_release(void *state);

#endif
