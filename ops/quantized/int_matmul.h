/* Shared by the kernels of the products of quantized matrices: the description of the problem, and how sums are
 * stored. */
#ifndef PRN_OPS_QUANTIZED_INT_MATMUL_H
#define PRN_OPS_QUANTIZED_INT_MATMUL_H

#include "ops/kernels/int8/int_gemm.h"

typedef struct prn_int_matmul {
    prn_int_gemm product;
    prony_shape y_shape;
    prn_quant_lines a_scale, b_scale;
    float alpha;
    bool integers;  /* the sums themselves are the result */
    bool quantized; /* with `y` */
    bool y_known;   /* `y` is that of every run */
    bool dynamic;   /* A is quantized in each run */
    prn_quant_scalar y;
    float low, high;         /* bounds of the codes less the zero point; infinite: none but the type's */
    const prony_value *bias; /* [N], float; NULL: none */
    const prony_value *c;    /* int32; NULL: none */
    int64_t rs_c, c_col;     /* its strides */
    prony_value *out;
    prony_value scale_value, zero_value; /* A's, where they are computed */
    float scale;
    uint8_t zero;
} prn_int_matmul;

prony_status prn_int_matmul_describe(const prony_context *context, prn_int_matmul *out);
/* Makes codes of DynamicQuantizeMatMul's A, at the beginning of scratch. */
void prn_int_matmul_quantize_a(const prony_context *context, prn_int_matmul *m, bool reference);
/* Stores sums of columns [column, column + n <= 64) of a row; `argument` is the problem. */
void prn_int_matmul_store(const void *argument, int64_t item, int64_t row, int64_t column, int64_t n, int32_t *sums);

/* The same with what they are multiplied by, as prn_int_matmul_scale gives it. */
void prn_int_matmul_store_scaled(const prn_int_matmul *m, int64_t item, int64_t row, int64_t column, int64_t n,
                                 int32_t *sums, const float *scale);
/* The factors of the sums of n columns of a row. */
void prn_int_matmul_scale(const prn_int_matmul *m, int64_t item, int64_t row, int64_t column, int64_t n, float *scale);

/* Which input is what; PRN_INT_MATMUL_NONE: the operator has no such input. */
enum { PRN_INT_MATMUL_NONE = 15 };
typedef struct prn_int_matmul_inputs {
    size_t a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias, c;
} prn_int_matmul_inputs;
prn_int_matmul_inputs prn_int_matmul_inputs_of(const prony_context *context);

#ifdef PRN_HAVE_OPENCL
/* int_matmul_device.c: scales and the result's zero point are the host's, all other inputs the device's. */
bool prn_int_matmul_opencl_supported(const prony_context *context);
prony_status prn_int_matmul_opencl_prepare(const prony_context *context, prn_prepared *out);
#endif

/* The kernel that multiplies bytes, qint8_matmul.c. */
bool prn_qint8_matmul_supported(const prony_context *context);
prony_status prn_qint8_matmul_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_qint8_matmul_run(const prony_context *context);
void prn_qint8_matmul_release(void *state);
void prn_qint8_matmul_facts(const prony_context *context, prony_cost *facts);

#endif
