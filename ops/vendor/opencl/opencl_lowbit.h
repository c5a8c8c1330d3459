/* Products by weights of 2, 4 or 8 bits on an OpenCL device, which reads the codes as the file has them. */
#ifndef PRN_OPS_VENDOR_OPENCL_LOWBIT_H
#define PRN_OPS_VENDOR_OPENCL_LOWBIT_H

#include "ops/vendor/opencl/opencl.h"

/* Output 0 [rows, columns] = input 0 [rows, depth] B + input 5. Inputs: 1 the codes, [columns][blocks][block bits / 8]
 * bytes, 2 the scales, 3 zero points (bytes of codes, or numbers), 5 a bias; both may be missing. */
typedef struct prn_opencl_nbit {
    int64_t rows, columns, depth, bits, block, blocks, zero_row; /* zero_row: bytes of a column's zero points */
} prn_opencl_nbit;
bool prn_opencl_nbit_supported(const prony_context *context, const prn_opencl_nbit *problem);
prony_status prn_opencl_nbit_prepare(const prony_context *context, const prn_opencl_nbit *problem, prn_prepared *out);

#endif
