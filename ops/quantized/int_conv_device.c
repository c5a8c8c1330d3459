/* Convolutions of quantized values on an OpenCL device: scales and the result's zero point are constants that become factors
 * of the output channels here, as the host's kernels compute them. Zero points of input and weights may come with the run. */
#include "ops/quantized/int_conv.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/vendor/opencl/opencl_gemm.h"
#include "ops/vendor/opencl/opencl_int8.h"

static bool int_conv_has_data(const prony_context *context, size_t input)
{
    const prony_value *value = prn_input(context, input);
    return !value || value->data;
}

/* The host's part of the parameters is known. */
static bool int_conv_factors_known(const prony_context *context, const prn_int_conv_roles *at)
{
    const size_t known[] = {at->x_scale,        at->w_scale,       at->y_scale,      at->y_zero,
                            at->residual_scale, at->residual_zero, at->middle_scale, at->middle_zero};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!int_conv_has_data(context, known[i])) return false;
    return true;
}

bool prn_int_conv_opencl_supported(const prony_context *context)
{
    const prn_int_conv_roles *at = prn_variant(context);
    const size_t read[] = {at->x, at->w, at->x_zero, at->w_zero, at->bias, at->residual};
    uint32_t device = 0;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (prn_input(context, read[i])) device |= 1u << read[i];
    prn_int_conv c;
    return prn_opencl_int8_supported(context, device) && int_conv_factors_known(context, at) &&
           prn_int_conv_describe(context, &c) == PRONY_OK && prn_opencl_window_fits(&c.conv.window);
}

/* The factors of all channels, then the launch, which copies them. */
prony_status prn_int_conv_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prn_int_conv_roles *at = prn_variant(context);
    prn_int_conv c;
    PRN_TRY(prn_int_conv_describe(context, &c));
    float *factors = prn_calloc((size_t)c.conv.out_channels, sizeof *factors);
    if (!factors) return prn_no_memory(context->error);
    for (int64_t i = 0; c.quantized && i < c.conv.out_channels; i++) factors[i] = prn_int_conv_factor(&c, i);
    const prn_opencl_int8_conv problem = {.conv = &c.conv,
                                          .x = (int)at->x,
                                          .w = (int)at->w,
                                          .x_zero = prn_opencl_int8_input(context, at->x_zero),
                                          .w_zero = prn_opencl_int8_input(context, at->w_zero),
                                          .bias = prn_opencl_int8_input(context, at->bias),
                                          .residual = prn_opencl_int8_input(context, at->residual),
                                          .w_zero_lines = c.w_zero.value && c.w_zero.step != 0,
                                          .w_signed = c.w_type == PRONY_INT8,
                                          .x_signed = c.x_type == PRONY_INT8,
                                          .transposed = at->transposed,
                                          .factors = c.quantized ? factors : NULL,
                                          .finish = prn_qint8_conv_finish(&c, NULL, NULL)};
    const prony_status status = prn_opencl_int8_conv_prepare(context, &problem, out);
    prn_free(factors);
    return status;
}
#endif
