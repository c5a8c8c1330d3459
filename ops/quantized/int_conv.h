/* Shared by the kernels of ConvInteger, QLinearConv, prony::QConv and prony::QConvTranspose: the description of the
 * problem.
 *
 * prony::QConv has QLinearConv's inputs, then a residual's codes, scale and zero point, then scale and zero point of a
 * middle, and bounds of the codes as attributes:
 *
 *   v = (sum + bias) x_scale w_scale / middle_scale, rounded, kept within [middle_low, middle_high] - middle_zero
 *   y = v middle_scale / y_scale + (residual - residual_zero) residual_scale / y_scale,
 *       rounded, kept within [low, high] - y_zero, + y_zero
 *
 * Without a middle, v is in steps of the output and neither rounded nor bounded; without a residual it is all there is.
 *
 * prony::QConvTranspose has QLinearConv's inputs, ConvTranspose's attributes and bounds of the codes. */
#ifndef PRN_OPS_QUANTIZED_INT_CONV_H
#define PRN_OPS_QUANTIZED_INT_CONV_H

#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/window/conv_problem.h"
#include "ops/kernels/int8/quantized.h"

enum { PRN_INT_CONV_NONE = 15 };

/* Which input is what; NONE: the operator has no such input. */
typedef struct prn_int_conv_roles {
    size_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
    size_t residual, residual_scale, residual_zero, middle_scale, middle_zero;
    bool bounded;    /* its parameters are prn_int_conv_params */
    bool transposed; /* weights are [in, out/g, …] */
} prn_int_conv_roles;

typedef struct prn_int_conv_params {
    prn_conv_params conv;
    int64_t low, high, middle_low, middle_high; /* bounds of codes; beyond the type's own they bound nothing */
} prn_int_conv_params;

typedef struct prn_int_conv {
    const prn_int_conv_roles *at;
    prn_conv conv;
    prn_window window;      /* the convolution's; one row where every input is met once */
    prony_value x, w, bias; /* the operands under the type that the geometry is read with */
    prony_dtype x_type, w_type;
    int32_t x_zero;
    prn_quant_lines w_zero, w_scale;
    float x_scale;
    bool quantized;
    prn_quant_scalar y, added, middle; /* of the output, the residual, the middle */
    const prony_value *residual;       /* NULL: none */
    bool rounds;                       /* there is a middle */
    int32_t low, high, middle_low, middle_high;
    const prony_value *out;
    const int16_t *rows; /* widened weights; NULL: not there */
} prn_int_conv;

prony_status prn_int_conv_describe(const prony_context *context, prn_int_conv *out);
prony_status prn_int_conv_infer(const prony_context *context);
prony_status prn_int_conv_cost(const prony_context *context, prony_cost *out);
/* Stores `n` sums of output channel `channel` of image `image`, from position `at` on. */
void prn_int_conv_store(const prn_int_conv *c, int64_t image, int64_t channel, int64_t at, int64_t n, int32_t *sums);
/* The factor of a channel's sums. */
float prn_int_conv_factor(const prn_int_conv *c, int64_t channel);

/* The kernel for constant weights and channels last, qint8_conv.c. */
bool prn_qint8_conv_supported(const prony_context *context);
void prn_qint8_conv_layouts(const prony_context *context, prn_layout *in, prn_layout *out);
prony_status prn_qint8_conv_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_qint8_conv_run(const prony_context *context);
void prn_qint8_conv_release(void *state);
void prn_qint8_conv_facts(const prony_context *context, prony_cost *facts);

#ifdef PRN_HAVE_OPENCL
/* int_conv_device.c: scales and the zero points of output, residual and middle are the host's, all other inputs the
 * device's. */
bool prn_int_conv_opencl_supported(const prony_context *context);
prony_status prn_int_conv_opencl_prepare(const prony_context *context, prn_prepared *out);
#endif

/* Shared by that kernel and the one of transposed convolutions: constant parameters, symmetric weights. */
enum { PRN_QINT8_LEAST_GROUP = 8 }; /* outputs of a group that are worth a panel of their own */
bool prn_qint8_conv_ready(const prony_context *context, prn_int_conv *out);
/* The zero point of the input as an unsigned byte. */
uint8_t prn_qint8_conv_zero(const prn_int_conv *c);
prn_qint8_epilogue prn_qint8_conv_finish(const prn_int_conv *c, const int32_t *bias, const float *scale);

/* The kernel of prony::QConvTranspose, qint8_conv_transpose.c. */
bool prn_qint8_conv_transpose_supported(const prony_context *context);
prony_status prn_qint8_conv_transpose_prepare(const prony_context *context, prn_prepared *out);
prony_status prn_qint8_conv_transpose_run(const prony_context *context);
void prn_qint8_conv_transpose_release(void *state);
void prn_qint8_conv_transpose_facts(const prony_context *context, prony_cost *facts);

#endif
