/* The first convolution of a network: few channels of a plain image into channel blocks. */
#ifndef PRN_OPS_NN_CONV_STEM_H
#define PRN_OPS_NN_CONV_STEM_H

#include "ops/op.h"

bool prn_conv_stem_usable(const prony_context *context);
bool prn_conv_stem_worth(const prony_context *context);
void prn_conv_stem_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_stem_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_stem_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_stem_run(const prony_context *context);
void prn_conv_stem_release(void *state);

#endif
