/* The Winograd convolution: windows of 3 x 3 taps in steps of one, constant weights, blocked layouts. */
#ifndef PRN_OPS_CONV_CONV_WINOGRAD_H
#define PRN_OPS_CONV_CONV_WINOGRAD_H

#include "ops/op.h"

bool prn_conv_winograd_supported(const prony_context *context);
double prn_conv_winograd_predict(const prony_context *context);
void prn_conv_winograd_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_winograd_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_winograd_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_winograd_run(const prony_context *context);
void prn_conv_winograd_release(void *state);

#endif
