/* The convolution for few channels and small images: plain layouts, constant weights, any groups. */
#ifndef PRN_OPS_CONV_CONV_ROW_DIRECT_H
#define PRN_OPS_CONV_CONV_ROW_DIRECT_H

#include "ops/op.h"

bool prn_conv_row_direct_supported(const prony_context *context);
double prn_conv_row_direct_predict(const prony_context *context);
prony_status prn_conv_row_direct_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_row_direct_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_row_direct_run(const prony_context *context);
void prn_conv_row_direct_release(void *state);

#endif
