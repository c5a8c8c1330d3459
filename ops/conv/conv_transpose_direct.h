/* ConvTranspose on the tiles of the direct convolution: constant weights, blocked layouts. Run and released by
 * conv_direct.h's functions. */
#ifndef PRN_OPS_CONV_CONV_TRANSPOSE_DIRECT_H
#define PRN_OPS_CONV_CONV_TRANSPOSE_DIRECT_H

#include "ops/op.h"

bool prn_conv_transpose_direct_supported(const prony_context *context);
bool prn_conv_transpose_direct_profitable(const prony_context *context);
void prn_conv_transpose_direct_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_conv_transpose_direct_prepare(const prony_context *context, prn_prepared *out);
void prn_conv_transpose_direct_facts(const prony_context *context, prony_cost *facts);

#endif
