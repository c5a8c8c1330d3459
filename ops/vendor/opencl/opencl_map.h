/* Element by element on an OpenCL device: functions of one tensor, of two with broadcasting, and copies. */
#ifndef PRN_OPS_VENDOR_OPENCL_MAP_H
#define PRN_OPS_VENDOR_OPENCL_MAP_H

#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl.h"

bool prn_opencl_map_supported(const prony_context *context);
bool prn_opencl_binary_supported(const prony_context *context);
/* Of all inputs, which are alike and movable as 1, 2, 4 or 8 bytes an element. */
bool prn_opencl_copy_supported(const prony_context *context);

/* Output 0 = map(input 0; a, b). */
prony_status prn_opencl_map_prepare(const prony_context *context, prn_prepared *out, prn_map_id map, float a, float b);
/* Output 0 = input 0 op input 1 op …, broadcast. */
prony_status prn_opencl_binary_prepare(const prony_context *context, prn_prepared *out, prn_binary_id op);

/* A strided copy from an input to an output, `from` and `to` elements behind their beginnings. */
typedef struct prn_opencl_move {
    size_t input, output;
    int64_t from, to;
    prn_copy copy;
} prn_opencl_move;
/* `fill`: one element that output 0 is filled with before; NULL: moves write all of it. */
prony_status prn_opencl_copy_prepare(const prony_context *context, prn_prepared *out, const prn_opencl_move *moves,
                                     size_t count, const void *fill);

#endif
