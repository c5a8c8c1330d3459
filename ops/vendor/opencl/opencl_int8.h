/* Products of 8-bit codes on an OpenCL device, with the host's bits. */
#ifndef PRN_OPS_VENDOR_OPENCL_INT8_H
#define PRN_OPS_VENDOR_OPENCL_INT8_H

#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/vendor/opencl/opencl.h"

/* Numbers of inputs; PRN_OPENCL_INT8_NONE: the node has none. */
enum { PRN_OPENCL_INT8_NONE = -1 };
int prn_opencl_int8_input(const prony_context *context, size_t input);

/* Output 0 of A (codes less zero points of rows) and B (of columns): int32 sums, or sums times factors and a bias, or codes
 * of these. */
typedef struct prn_opencl_int8 {
    const prn_matmul_desc *shape;
    int a, b, a_zero, b_zero, added, bias; /* added: int32, to the sums; bias: float32, a column's */
    bool a_zero_lines, b_zero_lines;       /* one for each row or column, otherwise one */
    int64_t added_row, added_column;       /* strides */
    const float *factors;                  /* NULL: the sums are the result */
    int64_t factor_count;                  /* 1, or the columns */
    bool codes;                            /* the result is codes: */
    float low, high, zero;                 /* bounds before the zero point is added; infinite: none */
} prn_opencl_int8;

/* Inputs that the mask names are the device's; every other one is a constant on the host. */
bool prn_opencl_int8_supported(const prony_context *context, uint32_t inputs);
/* A convolution of codes. Inputs as above; the zero point of A is one for all or one for each output channel, that of B, the
 * windows, is one. */
typedef struct prn_opencl_int8_conv {
    const prn_conv *conv;
    int x, w, x_zero, w_zero, bias, residual; /* bias: int32 */
    bool w_zero_lines, w_signed, x_signed, transposed;
    const float *factors;      /* of each output channel; NULL: the sums are the result */
    prn_qint8_epilogue finish; /* but bias and scale */
} prn_opencl_int8_conv;

prony_status prn_opencl_int8_conv_prepare(const prony_context *context, const prn_opencl_int8_conv *problem,
                                          prn_prepared *out);
prony_status prn_opencl_int8_prepare(const prony_context *context, const prn_opencl_int8 *problem, prn_prepared *out);

#endif
