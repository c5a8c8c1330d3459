/* prony::QConvTranspose, which rewriting makes: a transposed convolution of 8-bit codes less their zero points, in 32
 * bits, with an int32 bias, quantized again with a scale per output channel and kept within bounds (int_conv.h).
 *
 * The kernel for constant weights is qint8_conv_transpose.c; here are the plain C reference and the row. */
#include "base/threads/cancel.h"
#include "ops/quantized/int_conv.h"
#include "ops/vendor/opencl/opencl.h"

enum { NONE = PRN_INT_CONV_NONE };

static const prn_int_conv_roles roles = {0, 1, 2, 3, 4, 5, 6, 7, 8, NONE, NONE, NONE, NONE, NONE, true, true};

/* ---- reference */

static int32_t int_conv_transpose_code_at(const void *codes, prony_dtype type, int64_t i)
{
    return type == PRONY_UINT8 ? ((const uint8_t *)codes)[i] : ((const int8_t *)codes)[i];
}

/* The input position that tap number `tap` joins with output position `at`; -1: none. */
static int64_t input_met(const prn_window *window, const int64_t at[PRN_WINDOW_AXES], int64_t tap)
{
    int64_t position = 0, step = 1;
    for (int a = PRN_WINDOW_AXES - 1; a >= 0; a--) {
        const int64_t from = at[a] + window->pad_begin[a] - tap % window->kernel[a] * window->dilation[a];
        if (from < 0 || from % window->stride[a] != 0 || from / window->stride[a] >= window->in[a]) return -1;
        position += from / window->stride[a] * step;
        step *= window->in[a];
        tap /= window->kernel[a];
    }
    return position;
}

/* The sum for output channel `channel` of image `image` at output position `p`. */
static int32_t int_conv_transpose_reference_sum(const prn_int_conv *c, int64_t image, int64_t channel, int64_t p)
{
    const prn_conv *conv = &c->conv;
    const int64_t *out = conv->window.out;
    const int64_t at[PRN_WINDOW_AXES] = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
    const int64_t first = channel / conv->group_out * conv->group_in, column = channel % conv->group_out;
    const int32_t w_zero = (int32_t)prn_quant_lines_at(&c->w_zero, 0, channel);
    uint32_t sum = 0;
    for (int64_t tap = 0; tap < conv->kernel_volume; tap++) {
        const int64_t position = input_met(&conv->window, at, tap);
        if (position < 0) continue;
        for (int64_t i = first; i < first + conv->group_in; i++) {
            const int64_t x = (image * conv->in_channels + i) * conv->in_spatial + position;
            const int64_t w = (i * conv->group_out + column) * conv->kernel_volume + tap;
            sum += (uint32_t)((int_conv_transpose_code_at(c->x.data, c->x_type, x) - c->x_zero) *
                              (int_conv_transpose_code_at(c->w.data, c->w_type, w) - w_zero));
        }
    }
    return (int32_t)sum;
}

static prony_status int_conv_transpose_run_reference(const prony_context *context)
{
    prn_int_conv c;
    PRN_TRY(prn_int_conv_describe(context, &c));
    const prn_conv *conv = &c.conv;
    for (int64_t plane = 0; plane < conv->batch * conv->out_channels && !prn_cancelled(); plane++) {
        const int64_t image = plane / conv->out_channels, channel = plane % conv->out_channels;
        for (int64_t p = 0; p < conv->out_spatial && !prn_cancelled(); p++) {
            int32_t sum = int_conv_transpose_reference_sum(&c, image, channel, p);
            prn_int_conv_store(&c, image, channel, p, 1, &sum);
        }
    }
    return PRONY_OK;
}

/* ---- row */

/* The convolution's own come first in the struct. */
static const prn_param params[] = {PRN_WINDOW_PARAMS(prn_conv_params),
                                   PRN_INT(prn_conv_params, group, 1),
                                   PRN_INTS(prn_conv_params, output_padding),
                                   PRN_INTS(prn_conv_params, output_shape),
                                   PRN_INT(prn_int_conv_params, low, INT64_MIN),
                                   PRN_INT(prn_int_conv_params, high, INT64_MAX),
                                   {0}};

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("qconvtranspose_opencl", PRN_TYPES_8_BIT, prn_int_conv_opencl_supported, prn_int_conv_opencl_prepare, .host_inputs = 0xd2)
    // clang-format on
    {.name = "qconvtranspose_int8_native",
     .backend = "native",
     .supported = prn_qint8_conv_transpose_supported,
     .layouts = prn_qint8_conv_layouts,
     .prepare = prn_qint8_conv_transpose_prepare,
     .run = prn_qint8_conv_transpose_run,
     .release = prn_qint8_conv_transpose_release,
     .facts = prn_qint8_conv_transpose_facts,
     .own_layout = true},
    {.name = "qconvtranspose_reference", .backend = "reference", .run = int_conv_transpose_run_reference},
    {0}};

const prn_op prn_ops_int_conv_transpose[] = {
    {.name = "QConvTranspose",
     .domain = "prony",
     .since_opset = 1,
     .inputs = {8, 9},
     .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0xf6,
     .params = params,
     .params_bytes = sizeof(prn_int_conv_params),
     .check = prn_conv_check,
     .variant = &roles,
     .infer = prn_int_conv_infer,
     .cost = prn_int_conv_cost,
     .cost_text = "MACs M = input elements (Cout/g) K; FLOPs 0; int_ops 2M + 5n (requantization), + n with bias",
     .kernels = kernels},
    {0}};
