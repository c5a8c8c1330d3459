/* The convolution for few channels and small images: plain layouts, constant weights, any groups. */
#ifndef PRN_OPS_NN_CONV_FLAT_H
#define PRN_OPS_NN_CONV_FLAT_H

#include "ops/op.h"

bool prn_conv_flat_usable(const prony_context *context);
bool prn_conv_flat_worth(const prony_context *context);
prony_status prn_conv_flat_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_flat_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_flat_run(const prony_context *context);
void prn_conv_flat_release(void *state);

#endif
