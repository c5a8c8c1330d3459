/* The native convolution: every float32 Conv, all operands plain. */
#ifndef PRN_OPS_CONV_CONV_NATIVE_H
#define PRN_OPS_CONV_CONV_NATIVE_H

#include "ops/kernels/window/conv_problem.h"

bool prn_conv_native_supported(const prony_context *context);
prony_status prn_conv_native_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_conv_native_run(const prony_context *context);

#endif
