/* Products of quantized matrices on an OpenCL device: scales and the result's zero point are constants that become factors
 * of the columns here, as the host's kernels compute them. Zero points of A and B may come with the run. */
#include "ops/quantized/int_matmul.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl_int8.h"

static bool is_of_lines(const prn_quant_lines *lines)
{
    return lines->value && lines->step != 0;
}

static bool has_data(const prony_value *value)
{
    return !value || value->data;
}

/* One scale of A, and no parameters of their own for each matrix of a stack. */
static bool int_matmul_factors_known(const prn_int_matmul *m)
{
    return !is_of_lines(&m->a_scale) && m->b_scale.matrix_step == 0 && has_data(m->a_scale.value) &&
           has_data(m->b_scale.value) && (!m->quantized || m->y_known);
}

bool prn_int_matmul_opencl_supported(const prony_context *context)
{
    const prn_int_matmul_inputs at = prn_int_matmul_inputs_of(context);
    uint32_t device = 1u << at.a | 1u << at.b;
    const size_t optional[] = {at.a_zero, at.b_zero, at.bias, at.c};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (prn_input(context, optional[i])) device |= 1u << optional[i];
    prn_int_matmul m;
    if (!prn_opencl_int8_supported(context, device) || prn_int_matmul_describe(context, &m) != PRONY_OK) return false;
    return !m.dynamic && !prn_dtype_is_float(m.product.a_type) && m.product.shape.k > 0 &&
           m.product.a_zero.matrix_step == 0 && m.product.b_zero.matrix_step == 0 &&
           (!m.bias || m.bias->dtype == PRONY_FLOAT32) && (m.integers || int_matmul_factors_known(&m));
}

/* Describes the product to the device. Factors [1, or N if B has a scale per column] combine the scales of A, B and the
 * result; the device gets a copy. A product with an integer result has none. */
prony_status prn_int_matmul_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prn_int_matmul_inputs at = prn_int_matmul_inputs_of(context);
    prn_int_matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    const int64_t count = is_of_lines(&m.b_scale) ? m.product.shape.n : 1;
    float *factors = prn_calloc((size_t)count, sizeof *factors);
    if (!factors) return prn_no_memory(context->error);
    if (!m.integers) prn_int_matmul_scale(&m, 0, 0, 0, count, factors);
    const prn_opencl_int8 problem = {.shape = &m.product.shape,
                                     .a = (int)at.a,
                                     .b = (int)at.b,
                                     .a_zero = prn_opencl_int8_input(context, at.a_zero),
                                     .b_zero = prn_opencl_int8_input(context, at.b_zero),
                                     .added = prn_opencl_int8_input(context, at.c),
                                     .bias = prn_opencl_int8_input(context, at.bias),
                                     .a_zero_lines = is_of_lines(&m.product.a_zero),
                                     .b_zero_lines = is_of_lines(&m.product.b_zero),
                                     .added_row = m.rs_c,
                                     .added_column = m.c_col,
                                     .factors = m.integers ? NULL : factors,
                                     .factor_count = count,
                                     .codes = m.quantized,
                                     .low = m.low,
                                     .high = m.high,
                                     .zero = m.y.zero};
    const prony_status status = prn_opencl_int8_prepare(context, &problem, out);
    prn_free(factors);
    return status;
}
#endif
