/* ConvInteger, QLinearConv and prony::QConv: a convolution of 8-bit codes less their zero points, in 32 bits; padding
 * counts as the zero point. QLinearConv adds an int32 bias and quantizes the sums again, with a scale per output
 * channel. QConv, which rewriting makes, keeps the codes within bounds of its own and may add a residual (int_conv.h).
 *
 * The geometry is Conv's. qint8_conv.c has the kernel for constant weights. The native kernel here is the integer
 * product of the weights, widened once, and panels that are copied out of the input; depthwise has a loop of its own.
 * The state is the widened weights, owned by the model. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/quantized/int_conv.h"

#include "ops/kernels/int8/int_gemm.h"
#include "ops/vendor/opencl/opencl.h"

#include <string.h>

enum { NONE = PRN_INT_CONV_NONE, SEGMENT = 256 };

typedef prn_int_conv int_conv;
typedef prn_int_conv_roles roles;

static const roles integer_roles = {0,    NONE, 2,    1,    NONE, 3,    NONE,  NONE,
                                    NONE, NONE, NONE, NONE, NONE, NONE, false, false};
static const roles qlinear_roles = {0, 1, 2, 3, 4, 5, 6, 7, 8, NONE, NONE, NONE, NONE, NONE, false, false};
static const roles fused_roles = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, true, false};

/* ---- description */

static prony_status int_conv_read_geometry(const prony_context *context, const roles *at, int_conv *out)
{
    const prony_value *bias = prn_input(context, at->bias);
    const prony_value *operands[3] = {&out->x, &out->w, bias ? &out->bias : NULL};
    out->x = *context->inputs[at->x];
    out->w = *context->inputs[at->w];
    out->x_type = out->x.dtype;
    out->w_type = out->w.dtype;
    out->x.dtype = out->w.dtype = PRONY_FLOAT32;
    if (bias) {
        PRN_TRY(prn_check_type(context, at->bias, PRN_TYPE(PRONY_INT32)));
        out->bias = *bias;
        out->bias.dtype = PRONY_FLOAT32;
    }
    prony_context shadow = *context;
    shadow.inputs = operands;
    shadow.input_count = bias ? 3 : 2;
    shadow.post_ops = NULL;
    return at->transposed ? prn_conv_transpose_read(&shadow, &out->conv) : prn_conv_read(&shadow, &out->conv);
}

/* Zero points and scales of input, weights and output, checked for type and count. Values whose data is missing keep
 * their defaults. */
static prony_status read_parameters(const prony_context *context, const roles *at, int_conv *out)
{
    const prn_conv *conv = &out->conv;
    const prony_shape matrix =
        prn_shape_make(2, (const int64_t[]){conv->out_channels, conv->group_in * conv->kernel_volume});
    const prony_value *x_zero = prn_input(context, at->x_zero);
    PRN_TRY(prn_check_type(context, at->x_zero, PRN_TYPE(out->x_type)));
    if (x_zero && prony_shape_numel(&x_zero->shape) != 1)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu must be one zero point", at->x_zero);
    if (x_zero && x_zero->data) out->x_zero = (int32_t)prn_quant_get(x_zero, 0);
    PRN_TRY(prn_quant_lines_read(context, at->w_zero, PRN_TYPE(out->w_type), &matrix, 0, &out->w_zero));
    if (out->w_zero.step) out->w_zero.matrix_step = conv->group_out;
    if (!out->quantized) return PRONY_OK;
    PRN_TRY(prn_quant_scalar_check(context, at->x_scale, at->x_zero, PRN_TYPE(out->x_type)));
    PRN_TRY(prn_quant_scalar_check(context, at->y_scale, at->y_zero, PRN_TYPES_8_BIT));
    if (!prn_input(context, at->y_zero))
        return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (the zero point) is missing", at->y_zero);
    if (!prn_input(context, at->w_scale))
        return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (the scale) is missing", at->w_scale);
    PRN_TRY(prn_quant_lines_read(context, at->w_scale, PRN_TYPES_SCALE, &matrix, 0, &out->w_scale));
    const prony_value *given[] = {context->inputs[at->x_scale], context->inputs[at->y_scale],
                                  context->inputs[at->y_zero]};
    if (!given[0]->data || !given[1]->data || !given[2]->data) return PRONY_OK;
    out->x_scale = prn_quant_get(given[0], 0);
    out->y = prn_quant_scalar_get(context, at->y_scale, at->y_zero);
    return PRONY_OK;
}

/* A 1x1 kernel that meets every input once sees the image as one row. */
static void int_conv_flatten(prn_window *window)
{
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        if (window->kernel[a] != 1 || window->stride[a] != 1 || window->pad_begin[a] || window->pad_end[a]) return;
    }
    window->in[2] = window->out[2] = prn_window_volume(window->in);
    window->in[0] = window->in[1] = window->out[0] = window->out[1] = 1;
}

static prony_status read_range(const prony_context *context, int_conv *out)
{
    const prn_int_conv_params *params = context->params;
    const roles *at = prn_variant(context);
    return prn_quant_bounds(context, context->inputs[at->y_zero]->dtype, at->bounded ? params->low : INT64_MIN,
                            at->bounded ? params->high : INT64_MAX, &out->low, &out->high);
}

static prony_status read_residual(const prony_context *context, const roles *at, int_conv *out)
{
    const prony_value *residual = prn_input(context, at->residual), *middle = prn_input(context, at->middle_scale);
    out->residual = residual;
    if (!residual) return PRONY_OK;
    PRN_TRY(prn_check_type(context, at->residual, PRN_TYPES_8_BIT));
    PRN_TRY(prn_quant_scalar_check(context, at->residual_scale, at->residual_zero, PRN_TYPE(residual->dtype)));
    if (context->inputs[at->residual_scale]->data)
        out->added = prn_quant_scalar_get(context, at->residual_scale, at->residual_zero);
    out->rounds = middle != NULL;
    if (!middle) return PRONY_OK;
    PRN_TRY(prn_quant_scalar_check(context, at->middle_scale, at->middle_zero, PRN_TYPES_8_BIT));
    if (!prn_input(context, at->middle_zero))
        return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (the zero point) is missing", at->middle_zero);
    const prn_int_conv_params *params = context->params;
    PRN_TRY(prn_quant_bounds(context, context->inputs[at->middle_zero]->dtype, params->middle_low, params->middle_high,
                             &out->middle_low, &out->middle_high));
    if (middle->data) out->middle = prn_quant_scalar_get(context, at->middle_scale, at->middle_zero);
    return PRONY_OK;
}

prony_status prn_int_conv_describe(const prony_context *context, int_conv *out)
{
    const roles *at = prn_variant(context);
    *out = (int_conv){.quantized = at != &integer_roles, .out = prn_output(context, 0), .at = at};
    for (size_t i = 0; i < 2; i++) {
        const size_t input = i ? at->w : at->x;
        if (!prn_input(context, input)) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", input);
        PRN_TRY(prn_check_type(context, input, PRN_TYPES_8_BIT));
    }
    PRN_TRY(int_conv_read_geometry(context, at, out));
    PRN_TRY(read_parameters(context, at, out));
    PRN_TRY(read_residual(context, at, out));
    if (out->quantized) PRN_TRY(read_range(context, out));
    out->window = out->conv.window;
    int_conv_flatten(&out->window);
    return PRONY_OK;
}

prony_status prn_int_conv_infer(const prony_context *context)
{
    const roles *at = prn_variant(context);
    int_conv conv;
    PRN_TRY(prn_int_conv_describe(context, &conv));
    PRN_TRY(prn_conv_infer(context, &conv.conv));
    if (conv.residual && !prn_shape_equal(&conv.residual->shape, &context->outputs[0]->shape))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "the residual does not have the output's shape");
    context->outputs[0]->dtype = conv.quantized ? context->inputs[at->y_zero]->dtype : PRONY_INT32;
    return PRONY_OK;
}

prony_status prn_int_conv_cost(const prony_context *context, prony_cost *out)
{
    int_conv conv;
    prony_cost as_float = {0};
    PRN_TRY(prn_int_conv_describe(context, &conv));
    const uint64_t outputs = (uint64_t)prony_shape_numel(&conv.out->shape);
    const bool transposed = conv.at->transposed;
    PRN_TRY(prn_conv_cost(context, &conv.conv, transposed ? prony_shape_numel(&conv.x.shape) : (int64_t)outputs,
                          transposed ? conv.conv.group_out : conv.conv.group_in, &as_float));
    PRN_TRY(prn_cost_facts_check(context, &as_float));
    for (uint32_t f = 0; f < as_float.fact_count; f++)
        prn_cost_fact(out, as_float.facts[f].key, as_float.facts[f].value);
    out->macs = as_float.macs;
    out->madds = as_float.madds;
    out->int_ops = as_float.flops;
    return conv.quantized ? prn_cost_elementwise(context, out, outputs, 5, 0) : PRONY_OK;
}

/* ---- results */

/* The bounds are whole, so it does not matter that what is beyond them is rounded after it is kept. NaN is low. */
static float rounded_within(float v, int32_t low, int32_t high, float zero)
{
    const float least = (float)low - zero, most = (float)high - zero;
    return rintf(v > least ? (v < most ? v : most) : least);
}

/* The code of a value in steps of the output, or of the middle where there is a residual. */
static void store_value(const int_conv *c, float value, int64_t at)
{
    static const prn_cast_rule rule = {.saturate = true};
    if (c->residual) {
        const float code = prn_dequantize_one(c->residual->data, c->residual->dtype, at, c->added.zero, 1.0f);
        volatile float kept = value,
                       other = code * prn_quant_ratio(c->added.scale, c->y.scale); /* each rounded on its own */
        if (c->rounds) {
            kept = rounded_within(value, c->middle_low, c->middle_high, c->middle.zero);
            kept = kept * prn_quant_ratio(c->middle.scale, c->y.scale);
        }
        value = kept + other;
    }
    const int32_t code = (int32_t)(rounded_within(value, c->low, c->high, c->y.zero) + c->y.zero);
    prn_cast(c->out->data, c->out->dtype, at, &code, PRONY_INT32, 0, 1, &rule);
}

float prn_int_conv_factor(const int_conv *c, int64_t channel)
{
    return prn_quant_factor(c->x_scale, prn_quant_lines_at(&c->w_scale, 0, channel),
                            c->rounds ? c->middle.scale : c->y.scale);
}

void prn_int_conv_store(const int_conv *c, int64_t image, int64_t channel, int64_t at, int64_t n, int32_t *sums)
{
    static const prn_cast_rule rule = {.saturate = true};
    const prn_conv *conv = &c->conv;
    const int64_t first = (image * conv->out_channels + channel) * conv->out_spatial + at;
    if (!c->quantized) {
        memcpy((int32_t *)c->out->data + first, sums, (size_t)n * sizeof *sums);
        return;
    }
    const uint32_t bias = conv->bias ? (uint32_t)((const int32_t *)conv->bias->data)[channel] : 0;
    const float factor = prn_int_conv_factor(c, channel);
    float scale[SEGMENT], values[SEGMENT], zero[SEGMENT];
    for (int64_t i = 0; i < n; i++) {
        sums[i] = (int32_t)((uint32_t)sums[i] + bias);
        scale[i] = factor;
        zero[i] = c->y.zero;
    }
    prn_quant_simd_table()->scale_i32(values, sums, scale, n);
    if (c->at == &qlinear_roles) {
        prn_quantize_run(c->out->data, c->out->dtype, first, values, zero, n, &rule);
    } else {
        for (int64_t i = 0; i < n; i++) store_value(c, values[i], first + i);
    }
}

static void int_conv_store_row(const void *argument, int64_t item, int64_t row, int64_t column, int64_t n,
                               int32_t *sums)
{
    const int_conv *c = argument;
    const int64_t groups = c->conv.groups;
    prn_int_conv_store(c, item / groups, item % groups * c->conv.group_out + row, column, n, sums);
}

/* ---- native */

static void widen_codes(const int_conv *c, int64_t at, int64_t step, int64_t n, int16_t *to)
{
    const prn_quant_simd *simd = prn_quant_simd_table();
    if (c->x_type == PRONY_UINT8) {
        simd->widen_u8(to, (const uint8_t *)c->x.data + at, step, n, c->x_zero);
    } else {
        simd->widen_i8(to, (const int8_t *)c->x.data + at, step, n, c->x_zero);
    }
}

/* The elements that output positions [begin, begin + count) meet of the channel at `base` under one tap; padding is
 * 0. */
static void int_conv_gather(const int_conv *c, int64_t base, int64_t tap, int64_t begin, int64_t count, int16_t *line)
{
    const prn_window *window = &c->window;
    const int64_t *kernel = window->kernel, width = window->out[2], stride = window->stride[2];
    const int64_t kx = tap % kernel[2], shift = kx * window->dilation[2] - window->pad_begin[2];
    int64_t first, last;
    prn_window_outputs(window, kx, &first, &last);
    while (count > 0) {
        const int64_t from = begin % width, to = from + count < width ? from + count : width;
        const int64_t start =
            prn_window_row(window, begin / width, tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1]);
        int64_t lo = first > from ? first : from, hi = last < to ? last : to;
        if (start < 0 || lo >= hi) lo = hi = to;
        memset(line, 0, (size_t)(lo - from) * sizeof *line);
        if (lo < hi) widen_codes(c, base + start + lo * stride + shift, stride, hi - lo, line + (lo - from));
        memset(line + (hi - from), 0, (size_t)(to - hi) * sizeof *line);
        line += to - from;
        begin += to - from;
        count -= to - from;
    }
}

/* Fills panels with `count` depths of n output pixels, two depths interleaved; an odd last depth gets a line of
 * zeros. */
static void int_conv_fill(const void *argument, int64_t item, int64_t depth, int64_t count, int64_t column, int64_t n,
                          int16_t *panels)
{
    enum { MOST = 64 };
    const int_conv *c = argument;
    const prn_conv *conv = &c->conv;
    const prn_quant_simd *simd = prn_quant_simd_table();
    const int64_t image = item / conv->groups, group = item % conv->groups;
    const int64_t first = image * conv->in_channels + group * conv->group_in, volume = conv->kernel_volume;
    const int64_t panel_step = simd->columns * (count + count % 2);
    int16_t lines[2][MOST] = {{0}};
    for (int64_t d = 0; d < count; d += 2) {
        for (int64_t k = 0; k < 2; k++) {
            const int64_t at = depth + d + k;
            if (d + k < count) {
                int_conv_gather(c, (first + at / volume) * conv->in_spatial, at % volume, column, n, lines[k]);
            } else {
                memset(lines[k], 0, sizeof lines[k]);
            }
        }
        for (int64_t j = 0; j < n; j += simd->columns) {
            simd->interleave(panels + j / simd->columns * panel_step + d * simd->columns, lines[0] + j, lines[1] + j,
                             simd->columns);
        }
    }
}

static bool int_conv_is_depthwise(const prn_conv *conv)
{
    return conv->group_in == 1 && conv->groups > 1;
}

static int32_t int_conv_weight_at(const int_conv *c, int64_t channel, int64_t at)
{
    const int64_t index = channel * c->conv.group_in * c->conv.kernel_volume + at;
    const int32_t code =
        c->w_type == PRONY_UINT8 ? ((const uint8_t *)c->w.data)[index] : ((const int8_t *)c->w.data)[index];
    return code - (int32_t)prn_quant_lines_at(&c->w_zero, 0, channel);
}

/* One output channel of one image. */
static void int_conv_depthwise_task(void *argument, int64_t plane)
{
    const int_conv *c = argument;
    const prn_conv *conv = &c->conv;
    const int64_t image = plane / conv->out_channels, channel = plane % conv->out_channels;
    const int64_t base = (image * conv->in_channels + channel / conv->group_out) * conv->in_spatial;
    int16_t line[SEGMENT];
    int32_t sums[SEGMENT];
    for (int64_t at = 0; at < conv->out_spatial && !prn_cancelled(); at += SEGMENT) {
        const int64_t n = conv->out_spatial - at < SEGMENT ? conv->out_spatial - at : SEGMENT;
        memset(sums, 0, sizeof sums);
        for (int64_t tap = 0; tap < conv->kernel_volume; tap++) {
            int_conv_gather(c, base, tap, at, n, line);
            prn_quant_simd_table()->add_scaled(sums, line, 1, int_conv_weight_at(c, channel, tap), n);
        }
        prn_int_conv_store(c, image, channel, at, n, sums);
    }
}

static prn_int_gemm int_conv_product_of(const int_conv *c)
{
    const prn_conv *conv = &c->conv;
    const int64_t depth = conv->group_in * conv->kernel_volume;
    prn_int_gemm product = {.shape = prn_matmul_make(PRONY_INT8, conv->group_out, conv->out_spatial, depth),
                            .a_type = c->w_type,
                            .b_type = c->x_type,
                            .a_zero = c->w_zero,
                            .fill = int_conv_fill,
                            .store = int_conv_store_row,
                            .argument = c};
    product.shape.a = c->w.data;
    product.shape.rs_a = depth;
    product.shape.cs_a = 1;
    prn_matmul_batch(&product.shape, conv->batch, 0, 0, 0);
    prn_matmul_batch(&product.shape, conv->groups, conv->group_out * depth, 0, 0);
    return product;
}

static prony_status int_conv_prepare(const prony_context *context, prn_prepared *out)
{
    int_conv conv;
    const int16_t *rows = NULL;
    PRN_TRY(prn_int_conv_describe(context, &conv));
    if (int_conv_is_depthwise(&conv.conv)) return PRONY_OK;
    const prn_int_gemm product = int_conv_product_of(&conv);
    PRN_TRY(prn_int_widen_rows(context, &product, conv.conv.out_channels, &rows));
    out->state = (void *)(uintptr_t)rows;
    return PRONY_OK;
}

/* The windows are laid out in panels by every run. */
static void int_conv_facts(const prony_context *context, prony_cost *out)
{
    int_conv conv;
    if (prn_int_conv_describe(context, &conv) != PRONY_OK || int_conv_is_depthwise(&conv.conv)) return;
    const prn_int_gemm product = int_conv_product_of(&conv);
    prn_int_gemm_facts(&product.shape, false, out);
}

static prony_status int_conv_run(const prony_context *context)
{
    int_conv conv;
    PRN_TRY(prn_int_conv_describe(context, &conv));
    if (int_conv_is_depthwise(&conv.conv)) {
        prn_parallel_tasks(context->threads, conv.conv.batch * conv.conv.out_channels, int_conv_depthwise_task, &conv);
        return PRONY_OK;
    }
    prn_int_gemm product = int_conv_product_of(&conv);
    product.a_rows = context->state;
    prn_int_gemm_run(context->threads, &product);
    return PRONY_OK;
}

/* ---- reference */

/* The sum for output channel `channel` of image `image` at output position `p`. */
static int32_t int_conv_reference_sum(const int_conv *c, int64_t image, int64_t channel, int64_t p)
{
    const prn_conv *conv = &c->conv;
    const prn_window *window = &conv->window;
    const int64_t at[PRN_WINDOW_AXES] = {p / (window->out[1] * window->out[2]), p / window->out[2] % window->out[1],
                                         p % window->out[2]};
    const int64_t first = image * conv->in_channels + channel / conv->group_out * conv->group_in;
    uint32_t sum = 0;
    for (int64_t d = 0; d < conv->group_in * conv->kernel_volume; d++) {
        int64_t tap = d % conv->kernel_volume, position = 0, step = 1;
        bool inside = true;
        for (int a = PRN_WINDOW_AXES - 1; a >= 0; a--) {
            const int64_t k = tap % window->kernel[a];
            const int64_t x = at[a] * window->stride[a] - window->pad_begin[a] + k * window->dilation[a];
            inside = inside && x >= 0 && x < window->in[a];
            position += x * step;
            step *= window->in[a];
            tap /= window->kernel[a];
        }
        if (!inside) continue;
        const int64_t index = (first + d / conv->kernel_volume) * conv->in_spatial + position;
        const int32_t code =
            c->x_type == PRONY_UINT8 ? ((const uint8_t *)c->x.data)[index] : ((const int8_t *)c->x.data)[index];
        sum += (uint32_t)((code - c->x_zero) * int_conv_weight_at(c, channel, d));
    }
    return (int32_t)sum;
}

static prony_status int_conv_run_reference(const prony_context *context)
{
    int_conv c;
    PRN_TRY(prn_int_conv_describe(context, &c));
    const prn_conv *conv = &c.conv;
    for (int64_t plane = 0; plane < conv->batch * conv->out_channels; plane++) {
        const int64_t image = plane / conv->out_channels, channel = plane % conv->out_channels;
        for (int64_t p = 0; p < conv->out_spatial; p++) {
            int32_t sum = int_conv_reference_sum(&c, image, channel, p);
            prn_int_conv_store(&c, image, channel, p, 1, &sum);
        }
    }
    return PRONY_OK;
}

/* ---- rows */

static const prn_param params[] = {PRN_WINDOW_PARAMS(prn_conv_params), PRN_INT(prn_conv_params, group, 1), {0}};
/* The convolution's own come first in the struct. */
static const prn_param fused_params[] = {PRN_WINDOW_PARAMS(prn_conv_params),
                                         PRN_INT(prn_conv_params, group, 1),
                                         PRN_INT(prn_int_conv_params, low, INT64_MIN),
                                         PRN_INT(prn_int_conv_params, high, INT64_MAX),
                                         PRN_INT(prn_int_conv_params, middle_low, INT64_MIN),
                                         PRN_INT(prn_int_conv_params, middle_high, INT64_MAX),
                                         {0}};

// clang-format off
static const prn_kernel conv_integer_kernels[] = {
    PRN_OPENCL_ROW("conv_integer_opencl", PRN_TYPES_8_BIT, prn_int_conv_opencl_supported, prn_int_conv_opencl_prepare, .host_inputs = 0)
    {.name = "conv_integer_native",
     .backend = "native",
     .prepare = int_conv_prepare,
     .run = int_conv_run,
     .facts = int_conv_facts},
    {.name = "conv_integer_reference", .backend = "reference", .run = int_conv_run_reference},
    {0}};
static const prn_kernel qlinear_conv_kernels[] = {
    PRN_OPENCL_ROW("qlinear_conv_opencl", PRN_TYPES_8_BIT, prn_int_conv_opencl_supported, prn_int_conv_opencl_prepare, .host_inputs = 0xd2)
    {.name = "qlinear_conv_int8_native", .backend = "native", .supported = prn_qint8_conv_supported,
     .layouts = prn_qint8_conv_layouts, .prepare = prn_qint8_conv_prepare, .run = prn_qint8_conv_run,
     .release = prn_qint8_conv_release, .facts = prn_qint8_conv_facts, .own_layout = true},
    {.name = "qlinear_conv_native", .backend = "native", .prepare = int_conv_prepare, .run = int_conv_run, .facts = int_conv_facts},
    {.name = "qlinear_conv_reference", .backend = "reference", .run = int_conv_run_reference},
    {0}};
static const prn_kernel fused_conv_kernels[] = {
    PRN_OPENCL_ROW("qconv_opencl", PRN_TYPES_8_BIT, prn_int_conv_opencl_supported, prn_int_conv_opencl_prepare, .host_inputs = 0x3cd2)
    {.name = "qconv_int8_native", .backend = "native", .supported = prn_qint8_conv_supported, .layouts = prn_qint8_conv_layouts,
     .prepare = prn_qint8_conv_prepare, .run = prn_qint8_conv_run, .release = prn_qint8_conv_release,
     .facts = prn_qint8_conv_facts, .own_layout = true},
    {.name = "qconv_native", .backend = "native", .prepare = int_conv_prepare, .run = int_conv_run, .facts = int_conv_facts},
    {.name = "qconv_reference", .backend = "reference", .run = int_conv_run_reference},
    {0}};

const prn_op prn_ops_int_conv[] = {
    {.name = "ConvInteger", .since_opset = 10, .inputs = {2, 4}, .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 0xc,
     .params = params, .params_bytes = sizeof(prn_conv_params), .check = prn_conv_check, .variant = &integer_roles,
     .infer = prn_int_conv_infer, .cost = prn_int_conv_cost, .cost_text = "MACs M = n (Cin/g) K; FLOPs 0; int_ops 2M",
     .kernels = conv_integer_kernels},
    {.name = "QLinearConv", .since_opset = 10, .inputs = {8, 9}, .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0xf6,
     .params = params, .params_bytes = sizeof(prn_conv_params), .check = prn_conv_check, .variant = &qlinear_roles,
     .infer = prn_int_conv_infer, .cost = prn_int_conv_cost,
     .cost_text = "MACs M = n (Cin/g) K; FLOPs 0; int_ops 2M + 5n (requantization), + n with bias",
     .kernels = qlinear_conv_kernels},
    {.name = "QConv", .domain = "prony", .since_opset = 1, .inputs = {8, 14}, .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0x3ef6,
     .params = fused_params, .params_bytes = sizeof(prn_int_conv_params), .check = prn_conv_check,
     .variant = &fused_roles, .infer = prn_int_conv_infer, .cost = prn_int_conv_cost,
     .cost_text = "MACs M = n (Cin/g) K; FLOPs 0; int_ops 2M + 5n (requantization), + n with bias",
     .kernels = fused_conv_kernels},
    {0}};
// clang-format on
