/* Products of float32 on an OpenCL device: matrices, and convolutions as products of filters and windows. */
#ifndef PRN_OPS_VENDOR_OPENCL_GEMM_H
#define PRN_OPS_VENDOR_OPENCL_GEMM_H

#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/vendor/opencl/opencl.h"

bool prn_opencl_gemm_supported(const prony_context *context);
/* B, constant input 1, is on the host; the device has it as halves (or as it is, if a weight is beyond their range). */
bool prn_opencl_gemm_half_supported(const prony_context *context);
prony_status prn_opencl_gemm_half_prepare(const prony_context *context, const prn_matmul_desc *product,
                                          prn_prepared *out);
void prn_opencl_gemm_half_facts(const prony_context *context, prony_cost *facts);
prony_status prn_opencl_gemm_prepare(const prony_context *context, const prn_matmul_desc *product, prn_prepared *out);

/* true: sums of the window's extents fit an int. */
bool prn_opencl_window_fits(const prn_window *window);
/* Of the problem that `read` reads: prn_conv_read or prn_conv_transpose_read. */
bool prn_opencl_conv_supported(const prony_context *context,
                               prony_status (*read)(const prony_context *context, prn_conv *conv));
/* Conv, of a problem that was read; depthwise windows have a kernel of their own. */
prony_status prn_opencl_conv_prepare(const prony_context *context, const prn_conv *conv, prn_prepared *out);
/* ConvTranspose: each output gathers the inputs that reach it. */
prony_status prn_opencl_conv_transpose_prepare(const prony_context *context, const prn_conv *conv, prn_prepared *out);

#endif
