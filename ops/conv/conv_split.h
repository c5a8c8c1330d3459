/* The convolution on tiles of bfloat16, for constant weights and layouts in blocks of 16 channels. */
#ifndef PRN_OPS_NN_CONV_SPLIT_H
#define PRN_OPS_NN_CONV_SPLIT_H

#include "ops/op.h"

bool prn_conv_split_usable(const prony_context *context);
bool prn_conv_split_worth(const prony_context *context);
/* With as many parts as make float32, where that is faster than vectors of float32 are. */
bool prn_conv_split_worth_f32(const prony_context *context);
void prn_conv_split_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_split_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_split_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_split_run(const prony_context *context);
void prn_conv_split_release(void *state);

#endif
