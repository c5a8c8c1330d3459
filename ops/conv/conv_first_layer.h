/* The first convolution of a network: few channels of a plain image into channel blocks. */
#ifndef PRN_OPS_CONV_CONV_FIRST_LAYER_H
#define PRN_OPS_CONV_CONV_FIRST_LAYER_H

#include "ops/op.h"

bool prn_conv_first_layer_supported(const prony_context *context);
double prn_conv_first_layer_predict(const prony_context *context);
void prn_conv_first_layer_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_first_layer_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_first_layer_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_first_layer_run(const prony_context *context);
void prn_conv_first_layer_release(void *state);

#endif
