/* QLinearConv and prony::QConv with constant weights and parameters, codes and residual with the channels last.
 *
 *   one tap, stride 1     the positions are the rows of a product, where they lie
 *   wider windows         a task copies the windows of its positions side by side, a run of taps at a time
 *   depthwise             four taps of 64 channels at a time, read where they lie
 *
 * A tap outside of the image is as many zero points. The state is what depends on the constants: packed weights, which
 * the model owns, and a bias and a scale per channel. */
#include "ops/quantized/int_conv.h"

#include "base/integers.h"
#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/quantized/qint8_windows.h"

#include <stdio.h>
#include <string.h>

enum { SIGN = 128, TAPS = 4, MOST_TAPS = 1024, TASK_BYTES = 1 << 15 };

typedef struct state {
    prn_int_conv conv;       /* the geometry; what it points at is not there any more */
    prn_qint8_gemm product;  /* without what a run brings */
    const int8_t *depthwise; /* packed weights of a depthwise convolution; NULL: another convolution */
    int64_t taps;            /* of a depthwise convolution, padded to a multiple of 4 */
    int32_t *bias;
    float *scale;
    uint8_t *padding; /* zero points, as the input has them, of all channels */
} state;

/* ---- which problems */

static bool qint8_conv_is_depthwise(const prn_conv *conv)
{
    return conv->group_in == 1 && conv->group_out == 1 && conv->groups > 1;
}

static bool qint8_conv_is_known(const prony_context *context, size_t input)
{
    const prony_value *value = prn_input(context, input);
    return !value || value->data;
}

/* Signed weights without zero points, or unsigned ones with 128. */
static bool qint8_conv_is_symmetric(const prn_int_conv *c)
{
    const int64_t count = c->w_zero.value ? prony_shape_numel(&c->w_zero.value->shape) : 1;
    for (int64_t i = 0; i < count; i++) {
        const float zero = c->w_zero.value ? prn_quant_get(c->w_zero.value, i) : 0.0f;
        if (zero != (c->w_type == PRONY_INT8 ? 0.0f : (float)SIGN)) return false;
    }
    return true;
}

bool prn_qint8_conv_ready(const prony_context *context, prn_int_conv *c)
{
    const prn_int_conv_roles *at = prn_variant(context);
    const size_t constants[] = {at->x_scale,      at->x_zero,     at->w,    at->w_scale,        at->w_zero,
                                at->y_scale,      at->y_zero,     at->bias, at->residual_scale, at->residual_zero,
                                at->middle_scale, at->middle_zero};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (!qint8_conv_is_known(context, constants[i])) return false;
    if (prn_int_conv_describe(context, c) != PRONY_OK || !qint8_conv_is_symmetric(c)) return false;
    return prony_shape_numel(&context->inputs[at->x]->shape) > 0 && prony_shape_numel(&c->w.shape) > 0;
}

bool prn_qint8_conv_supported(const prony_context *context)
{
    prn_int_conv c;
    if (!prn_qint8_conv_ready(context, &c)) return false;
    const prn_conv *conv = &c.conv;
    return qint8_conv_is_depthwise(conv) ? conv->kernel_volume <= MOST_TAPS
                                         : conv->groups == 1 || conv->group_out >= PRN_QINT8_LEAST_GROUP;
}

void prn_qint8_conv_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prn_int_conv_roles *at = prn_variant(context);
    in[at->x] = out[0] = PRN_NHWC;
    if (prn_input(context, at->residual)) in[at->residual] = PRN_NHWC;
}

/* ---- preparing */

/* Depths are taps, then channels of the group, as windows lie in the input. */
static prn_qint8_weights qint8_conv_weights_of(const prn_int_conv *c)
{
    const prn_conv *conv = &c->conv;
    return (prn_qint8_weights){.codes = c->w.data,
                               .is_signed = c->w_type == PRONY_INT8,
                               .groups = conv->groups,
                               .columns = conv->group_out,
                               .depth = conv->group_in * conv->kernel_volume,
                               .column_step = conv->group_in * conv->kernel_volume,
                               .inner = conv->group_in,
                               .inner_step = conv->kernel_volume,
                               .outer_step = 1};
}

uint8_t prn_qint8_conv_zero(const prn_int_conv *c)
{
    return (uint8_t)(c->x_zero + (c->x_type == PRONY_INT8 ? SIGN : 0));
}

static int64_t padded_taps(const prn_conv *conv)
{
    return prn_ceil_div(conv->kernel_volume, TAPS) * TAPS;
}

static int32_t qint8_conv_weight_at(const prn_int_conv *c, int64_t at)
{
    return c->w_type == PRONY_INT8 ? ((const int8_t *)c->w.data)[at] : ((const uint8_t *)c->w.data)[at] - SIGN;
}

/* Signed weights [channels][taps], in the order of the instruction set. */
static prony_status build_depthwise(const prony_context *context, void *argument, void *packed)
{
    const prn_int_conv *c = argument;
    const int64_t count = c->conv.out_channels * c->conv.kernel_volume;
    int8_t *weights = prn_alloc((size_t)count);
    if (!weights) return prn_no_memory(context->error);
    prn_qint8_dot_table()->copy((uint8_t *)weights, 0, c->w.data, 0, 1, count, c->w_type == PRONY_INT8 ? 0 : SIGN);
    prn_qint8_dot_table()->depthwise_pack(packed, weights, c->conv.out_channels, c->conv.kernel_volume,
                                          padded_taps(&c->conv));
    prn_free(weights);
    return PRONY_OK;
}

/* Packs the taps for the depthwise loop, and folds the input's zero point into the bias: bias - zero * sum of the
 * channel's weights, modulo 2^32. */
static prony_status qint8_conv_prepare_depthwise(const prony_context *context, prn_int_conv *c, state *s)
{
    const prn_conv *conv = &c->conv;
    const int64_t channels = conv->out_channels, volume = conv->kernel_volume;
    const int64_t blocks = prn_ceil_div(channels, PRN_QINT8_CHANNELS);
    const void *packed = NULL;
    s->taps = padded_taps(conv);
    const prn_pack_key key = {.build = build_depthwise,
                              .table = prn_qint8_dot_table(),
                              .dtype = c->w_type,
                              .size = {channels, volume, s->taps}};
    PRN_TRY(context->services->packed(
        context, c->w.data, &key,
        (size_t)(blocks * PRN_QINT8_CHANNELS * s->taps * prn_qint8_dot_table()->depthwise_bytes), c, &packed));
    s->depthwise = packed;
    int32_t *bias = prn_alloc((size_t)channels * 2 * sizeof *bias);
    if (!bias) return prn_no_memory(context->error);
    for (int64_t i = 0; i < channels; i++) {
        uint32_t sum = 0;
        for (int64_t t = 0; t < volume; t++) sum += (uint32_t)qint8_conv_weight_at(c, i * volume + t);
        const uint32_t given = conv->bias ? ((const uint32_t *)conv->bias->data)[i] : 0;
        bias[i] = (int32_t)(given - (uint32_t)prn_qint8_conv_zero(c) * sum);
    }
    memcpy(bias + channels, s->scale, (size_t)channels * sizeof *s->scale);
    prn_qint8_dot_table()->depthwise_order(s->bias, bias, channels);
    prn_qint8_dot_table()->depthwise_order(s->scale, bias + channels, channels);
    prn_free(bias);
    return PRONY_OK;
}

prn_qint8_epilogue prn_qint8_conv_finish(const prn_int_conv *c, const int32_t *bias, const float *scale)
{
    prn_qint8_epilogue f = {.bias = bias,
                            .scale = scale,
                            .low = (float)c->low - c->y.zero,
                            .high = (float)c->high - c->y.zero,
                            .zero = (int32_t)c->y.zero,
                            .y_signed = c->out->dtype == PRONY_INT8};
    if (!c->residual) return f;
    f.rounds = c->rounds;
    f.residual_signed = c->residual->dtype == PRONY_INT8;
    f.middle_low = (float)c->middle_low - c->middle.zero;
    f.middle_high = (float)c->middle_high - c->middle.zero;
    f.middle_factor = c->rounds ? prn_quant_ratio(c->middle.scale, c->y.scale) : 1.0f;
    f.residual_factor = prn_quant_ratio(c->added.scale, c->y.scale);
    f.residual_zero = (int32_t)c->added.zero;
    return f;
}

void prn_qint8_conv_release(void *argument)
{
    state *s = argument;
    if (!s) return;
    prn_free(s->bias);
    prn_free(s->scale);
    prn_free(s->padding);
    prn_free(s);
}

/* As seen by a run, but for the addresses. */
static prn_qint8_gemm qint8_conv_product_of(const prn_int_conv *c)
{
    const prn_conv *conv = &c->conv;
    return (prn_qint8_gemm){.rows = conv->batch * conv->out_spatial,
                            .groups = conv->groups,
                            .columns = conv->group_out,
                            .depth = conv->group_in * conv->kernel_volume,
                            .rs_a = conv->in_channels,
                            .y_row = conv->out_channels};
}

static prony_status qint8_conv_fill_state(const prony_context *context, prn_int_conv *c, state *s)
{
    const prn_conv *conv = &c->conv;
    s->product = qint8_conv_product_of(c);
    const size_t blocks = (size_t)prn_ceil_div(conv->out_channels, PRN_QINT8_CHANNELS);
    s->bias = prn_calloc(blocks * PRN_QINT8_CHANNELS, sizeof *s->bias);
    s->scale = prn_calloc(blocks * PRN_QINT8_CHANNELS, sizeof *s->scale);
    s->padding = prn_alloc((size_t)conv->in_channels);
    if (!s->bias || !s->scale || !s->padding) return prn_no_memory(context->error);
    memset(s->padding, c->x_zero, (size_t)conv->in_channels);
    for (int64_t i = 0; i < conv->out_channels; i++) s->scale[i] = prn_int_conv_factor(c, i);
    s->product.finish = prn_qint8_conv_finish(c, s->bias, s->scale);
    if (qint8_conv_is_depthwise(conv)) return qint8_conv_prepare_depthwise(context, c, s);
    const prn_qint8_weights weights = qint8_conv_weights_of(c);
    PRN_TRY(prn_qint8_pack(context, &weights, &s->product.packed));
    prn_qint8_bias(&weights, &s->product.packed, prn_qint8_conv_zero(c), conv->bias ? conv->bias->data : NULL, s->bias);
    return PRONY_OK;
}

prony_status prn_qint8_conv_prepare(const prony_context *context, prn_prepared *out)
{
    prn_int_conv c;
    PRN_TRY(prn_int_conv_describe(context, &c));
    state *s = prn_calloc(1, sizeof *s);
    if (!s) return prn_no_memory(context->error);
    const prony_status status = qint8_conv_fill_state(context, &c, s);
    if (status != PRONY_OK) {
        prn_qint8_conv_release(s);
        return status;
    }
    c.conv.x = c.conv.weights = c.conv.bias = c.conv.y = c.residual = c.out = NULL;
    s->conv = c;
    out->state = s;
    if (!s->depthwise) out->scratch_bytes = prn_qint8_gemm_scratch(context->threads, &s->product);
    return PRONY_OK;
}

/* ---- running */

typedef struct run_job {
    const prn_int_conv *c;
    const state *s;
    const uint8_t *x;
    const prn_qint8_dot *dot;
    uint8_t *y;
    const uint8_t *residual;
    uint8_t flip;                /* of the input's codes */
    int64_t rows_per_task, rows; /* of a depthwise convolution's output */
} run_job;

/* ---- depthwise */

/* The taps of output position x of a row: `rows` are the input's rows under the kernel's, NULL where they are padding.
 */
static void qint8_conv_find_taps(const run_job *job, const uint8_t *const *rows, int64_t x, const uint8_t **tap)
{
    const prn_window *window = &job->c->conv.window;
    const int64_t *kernel = window->kernel, channels = job->c->conv.in_channels;
    const int64_t start = x * window->stride[2] - window->pad_begin[2];
    for (int64_t r = 0; r < kernel[0] * kernel[1]; r++) {
        for (int64_t k = 0; k < kernel[2]; k++) {
            const int64_t at = start + k * window->dilation[2];
            const bool inside = rows[r] && at >= 0 && at < window->in[2];
            *tap++ = inside ? rows[r] + at * channels : job->s->padding;
        }
    }
}

/* One output row: stretches whose windows touch no padding in one call, the other pixels one by one. Padding reads a
 * row of zero points. */
static void depthwise_row(const run_job *job, int64_t index)
{
    const prn_conv *conv = &job->c->conv;
    const prn_window *window = &job->c->conv.window;
    const int64_t *kernel = window->kernel, out_rows = window->out[0] * window->out[1], width = window->out[2];
    const int64_t image = index / out_rows, row = index % out_rows;
    const uint8_t *x = job->x + image * conv->in_spatial * conv->in_channels, *rows[MOST_TAPS], *tap[MOST_TAPS];
    const prn_qint8_depthwise d = {.channels = conv->out_channels,
                                   .taps = job->s->taps,
                                   .used = conv->kernel_volume,
                                   .weights = job->s->depthwise,
                                   .finish = job->s->product.finish};
    for (int64_t r = 0; r < kernel[0] * kernel[1]; r++) {
        const int64_t start = prn_window_row(window, row, r / kernel[1], r % kernel[1]);
        rows[r] = start < 0 ? NULL : x + start * conv->in_channels;
    }
    int64_t first, last, next;
    prn_window_outputs(window, 0, &first, &next);
    prn_window_outputs(window, kernel[2] - 1, &next, &last);
    bool whole = true; /* no row is padding */
    for (int64_t r = 0; r < kernel[0] * kernel[1]; r++) whole = whole && rows[r];
    for (int64_t at = 0; at < width && !prn_cancelled_at(at); at = next) {
        const int64_t place = (index * width + at) * conv->out_channels;
        next = whole && at >= first && at < last ? last : at + 1;
        qint8_conv_find_taps(job, rows, at, tap);
        for (int64_t t = conv->kernel_volume; t < job->s->taps; t++) tap[t] = tap[0];
        job->dot->depthwise(&d, tap, window->stride[2] * conv->in_channels, next - at, job->flip, job->y + place,
                            job->residual ? job->residual + place : NULL);
    }
}

static void qint8_conv_depthwise_task(void *argument, int64_t task)
{
    const run_job *job = argument;
    const int64_t end = (task + 1) * job->rows_per_task;
    for (int64_t row = task * job->rows_per_task; row < end && row < job->rows && !prn_cancelled(); row++)
        depthwise_row(job, row);
}

/* Runs depthwise rows, or the int8 product whose A rows are windows of the image, fetched as they are needed. */
prony_status prn_qint8_conv_run(const prony_context *context)
{
    const state *s = context->state;
    const prn_int_conv *c = &s->conv;
    const prn_conv *conv = &c->conv;
    const prony_value *residual = prn_input(context, c->at->residual);
    run_job job = {.c = c,
                   .s = s,
                   .x = context->inputs[c->at->x]->data,
                   .dot = prn_qint8_dot_table(),
                   .y = context->outputs[0]->data,
                   .residual = residual ? residual->data : NULL,
                   .flip = c->x_type == PRONY_INT8 ? SIGN : 0};
    if (s->depthwise) {
        const int64_t row_bytes = conv->window.out[2] * conv->out_channels * conv->kernel_volume;
        job.rows = conv->batch * conv->window.out[0] * conv->window.out[1];
        job.rows_per_task = TASK_BYTES / (row_bytes + 1) + 1;
        prn_parallel_tasks(context->threads, prn_ceil_div(job.rows, job.rows_per_task), qint8_conv_depthwise_task,
                           &job);
        return PRONY_OK;
    }
    const prn_qint8_windows windows = prn_qint8_windows_make(conv, job.x, job.flip, prn_qint8_conv_zero(c));
    prn_qint8_gemm product = s->product;
    product.a = prn_qint8_windows_lie(&windows) ? job.x : NULL;
    product.fetch = prn_qint8_windows_fetch;
    product.argument = &windows;
    product.y = job.y;
    product.residual = job.residual;
    prn_qint8_gemm_run(context->threads, &product, context->scratch, context->scratch_bytes);
    return PRONY_OK;
}

void prn_qint8_conv_facts(const prony_context *context, prony_cost *facts)
{
    const state *s = context->state;
    if (!s) return;
    if (s->depthwise)
        prn_cost_fact(facts, "byte_products", 1);
    else
        prn_qint8_gemm_facts(&s->product, facts);
}
