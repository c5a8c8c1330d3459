/* Pools of float32, and largest 8-bit codes, on an OpenCL device, an output element a work item. */
#ifndef PRN_OPS_VENDOR_OPENCL_POOL_H
#define PRN_OPS_VENDOR_OPENCL_POOL_H

#include "ops/kernels/window/window.h"
#include "ops/vendor/opencl/opencl.h"

bool prn_opencl_pool_supported(const prony_context *context, const prn_window *window);
/* The largest element of each window, or (average) their mean; `padding`: the padding counts. Output 1, if there is one, gets
 * the largest elements' numbers, counted with the last axis slowest where `column_major`. */
typedef struct prn_opencl_pool {
    bool average, padding, column_major;
} prn_opencl_pool;
prony_status prn_opencl_pool_prepare(const prony_context *context, const prn_window *window,
                                     const prn_opencl_pool *pool, prn_prepared *out);

#endif
