/* The blocked direct convolution. */
#ifndef PRN_OPS_CONV_CONV_DIRECT_H
#define PRN_OPS_CONV_CONV_DIRECT_H

#include "ops/op.h"

bool prn_conv_direct_supported(const prony_context *context);
double prn_conv_direct_predict(const prony_context *context);
/* Groups of whole blocks of channels, by the same functions below. */
bool prn_conv_direct_groups_supported(const prony_context *context);
/* Weights that are known in the run alone, of groups too. */
bool prn_conv_direct_variable_supported(const prony_context *context);
void prn_conv_direct_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_direct_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_direct_facts(const prony_context *context, prony_cost *facts);
prony_status prn_conv_direct_run(const prony_context *context);
void prn_conv_direct_release(void *state);

#endif
