/* Pools of float32 on an OpenCL device, an output element a work item. */
#ifndef PRN_OPS_VENDOR_OPENCL_POOL_H
#define PRN_OPS_VENDOR_OPENCL_POOL_H

#include "ops/kernels/window/window.h"
#include "ops/vendor/opencl/opencl.h"

bool prn_opencl_pool_supported(const prony_context *context, const prn_window *window);
/* The largest element of each window, or (average) their mean; `padding`: the padding counts. */
prony_status prn_opencl_pool_prepare(const prony_context *context, const prn_window *window, bool average, bool padding,
                                     prn_prepared *out);

#endif
