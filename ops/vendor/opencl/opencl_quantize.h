/* Quantized values on an OpenCL device, element by element, with the host's bits. */
#ifndef PRN_OPS_VENDOR_OPENCL_QUANTIZE_H
#define PRN_OPS_VENDOR_OPENCL_QUANTIZE_H

#include "ops/kernels/int8/quantized.h"
#include "ops/kernels/window/window.h"
#include "ops/vendor/opencl/opencl.h"

/* Inputs of the mask are the device's, every other one is a constant whose bytes are known. */
bool prn_opencl_quantized_supported(const prony_context *context, uint32_t inputs);

/* Output 0 = QuantizeLinear or (`back`) DequantizeLinear of input 0; inputs 1 and 2 are the device's scale and zero point.
 * Numbers and scales are float32, codes have 8 bits. */
prony_status prn_opencl_quantize_prepare(const prony_context *context, const prn_quant *quant, bool back,
                                         prn_prepared *out);
/* DynamicQuantizeLinear, with all three outputs. */
prony_status prn_opencl_quantize_dynamic_prepare(const prony_context *context, prn_prepared *out);

/* Output 0 = code of `text`, an expression in a and b: codes of inputs `left` and `right` less their zero points; p has
 * a_factor, b_factor and y_scale. */
typedef struct prn_opencl_code_pair {
    const char *text;
    size_t left, right;
    float a_zero, a_factor, b_zero, b_factor, y_scale;
    float low, high, zero; /* bounds before the zero point is added */
} prn_opencl_code_pair;
prony_status prn_opencl_code_pair_prepare(const prony_context *context, const prn_opencl_code_pair *pair,
                                          prn_prepared *out);

/* Runs of `part` codes of an input, looked up and written `whole` apart from element `to` of output 0 on. `table` is 256
 * codes, or NULL: input 1. */
typedef struct prn_opencl_look_up {
    const uint8_t *table;
    size_t input;
    int64_t part, whole, to;
} prn_opencl_look_up;
prony_status prn_opencl_look_up_prepare(const prony_context *context, const prn_opencl_look_up *runs, size_t count,
                                        prn_prepared *out);

/* Means of windows of codes, as QLinearAveragePool; `padding` counts. */
prony_status prn_opencl_code_average_prepare(const prony_context *context, const prn_window *window, bool padding,
                                             prn_quant_scalar from, prn_quant_scalar to, prn_prepared *out);

#endif
