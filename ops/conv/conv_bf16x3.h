/* The convolution on tiles of bfloat16, for constant weights and layouts in blocks of 16 channels. */
#ifndef PRN_OPS_CONV_CONV_BF16X3_H
#define PRN_OPS_CONV_CONV_BF16X3_H

#include "ops/op.h"

bool prn_conv_bf16x3_supported(const prony_context *context);
double prn_conv_bf16x3_predict(const prony_context *context);
void prn_conv_bf16x3_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_bf16x3_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_bf16x3_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_bf16x3_run(const prony_context *context);
void prn_conv_bf16x3_release(void *state);

#endif
