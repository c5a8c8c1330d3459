/* Implements opencl_gemm.h. */
#include "ops/vendor/opencl/opencl_gemm.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_launch.h"

#include <string.h>

enum { SIDE = 8, EACH = 4, BATCHES = 8 };

/* As gemm.cl has it. */
typedef struct product {
    cl_int rows, columns, depth, batch_rank;
    cl_int batch[BATCHES], a_batch[BATCHES], b_batch[BATCHES], c_batch[BATCHES];
    cl_int a_row, a_depth, b_depth, b_column, c_row, bias_row, bias_column, bias_batch;
    cl_float alpha, beta;
    cl_int in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], plane;
} product;

/* Inputs that a product reads, or -1. */
typedef struct product_inputs {
    int a, b, bias;
} product_inputs;

static prony_status launch_product(const prony_context *context, const product *p, product_inputs inputs, bool window,
                                   size_t items, prn_prepared *out)
{
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    if (window) prn_opencl_define(&defines, "#define WINDOW\n");
    if (inputs.bias >= 0) prn_opencl_define(&defines, "#define BIAS\n");
    prn_opencl_define_finish(&defines, context);
    prn_opencl_launch(&b, &prn_opencl_gemm, &defines, "multiply");
    prn_opencl_input(&b, (size_t)inputs.a, 0);
    prn_opencl_input(&b, (size_t)inputs.b, 0);
    if (inputs.bias >= 0) prn_opencl_input(&b, (size_t)inputs.bias, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, p, sizeof *p);
    prn_opencl_finish_operands(&b);
    prn_opencl_work(&b, (size_t)(p->columns + EACH - 1) / EACH, (size_t)(p->rows + EACH - 1) / EACH, items, SIDE, SIDE,
                    1);
    return prn_opencl_end(&b, out);
}

bool prn_opencl_gemm_supported(const prony_context *context)
{
    return prn_opencl_takes(context, true) && context->input_count >= 2;
}

prony_status prn_opencl_gemm_prepare(const prony_context *context, const prn_matmul_desc *d, prn_prepared *out)
{
    product p = {.rows = (cl_int)d->m,
                 .columns = (cl_int)d->n,
                 .depth = (cl_int)d->k,
                 .batch_rank = d->batch_rank,
                 .a_row = (cl_int)d->rs_a,
                 .a_depth = (cl_int)d->cs_a,
                 .b_depth = (cl_int)d->rs_b,
                 .b_column = (cl_int)d->cs_b,
                 .c_row = (cl_int)d->rs_c,
                 .bias_row = (cl_int)d->bias_row,
                 .bias_column = (cl_int)d->bias_col,
                 .bias_batch = 1,
                 .alpha = d->alpha,
                 .beta = d->beta};
    for (int i = 0; i < d->batch_rank; i++) {
        p.batch[i] = (cl_int)d->batch_dim[i];
        p.a_batch[i] = (cl_int)d->a_step[i];
        p.b_batch[i] = (cl_int)d->b_step[i];
        p.c_batch[i] = (cl_int)d->c_step[i];
    }
    const product_inputs inputs = {d->a_input, d->b_input, d->bias_input};
    return launch_product(context, &p, inputs, false, (size_t)d->items, out);
}

/* ---- convolution ---- */

bool prn_opencl_window_fits(const prn_window *window)
{
    enum { FARTHEST = 1 << 28 }; /* several such extents add up in an int */
    for (int a = 0; a < PRN_WINDOW_AXES; a++)
        if (window->in[a] > FARTHEST || window->stride[a] > FARTHEST || prn_window_reach(window, a) > FARTHEST ||
            window->dilation[a] > FARTHEST || window->pad_begin[a] > FARTHEST || window->pad_end[a] > FARTHEST)
            return false;
    return true;
}

bool prn_opencl_conv_supported(const prony_context *context,
                               prony_status (*read)(const prony_context *context, prn_conv *conv))
{
    prn_conv conv;
    return prn_opencl_takes(context, true) && read(context, &conv) == PRONY_OK && prn_opencl_window_fits(&conv.window);
}

static void copy_window(const prn_window *window, product *p)
{
    for (int a = 0; a < 3; a++) {
        p->in[a] = (cl_int)window->in[a];
        p->out[a] = (cl_int)window->out[a];
        p->kernel[a] = (cl_int)window->kernel[a];
        p->stride[a] = (cl_int)window->stride[a];
        p->dilation[a] = (cl_int)window->dilation[a];
        p->pad[a] = (cl_int)window->pad_begin[a];
    }
}

/* One product for each image and group: rows are output channels, columns output positions. */
static prony_status conv_product(const prony_context *context, const prn_conv *conv, prn_prepared *out)
{
    const int64_t depth = conv->group_in * conv->kernel_volume;
    product p = {
        .rows = (cl_int)conv->group_out,
        .columns = (cl_int)conv->out_spatial,
        .depth = (cl_int)depth,
        .batch_rank = 2,
        .batch = {(cl_int)conv->batch, (cl_int)conv->groups},
        .a_batch = {0, (cl_int)(conv->group_out * depth)},
        .b_batch = {(cl_int)(conv->in_channels * conv->in_spatial), (cl_int)(conv->group_in * conv->in_spatial)},
        .c_batch = {(cl_int)(conv->out_channels * conv->out_spatial), (cl_int)(conv->group_out * conv->out_spatial)},
        .a_row = (cl_int)depth,
        .a_depth = 1,
        .c_row = (cl_int)conv->out_spatial,
        .bias_row = 1,
        .bias_batch = (cl_int)conv->groups,
        .alpha = 1.0f,
        .beta = 1.0f,
        .plane = (cl_int)conv->in_spatial};
    copy_window(&conv->window, &p);
    return launch_product(context, &p, (product_inputs){1, 0, conv->bias ? 2 : -1}, true,
                          (size_t)(conv->batch * conv->groups), out);
}

/* An output a work item: its taps, then its group's channels. */
static prony_status conv_items(const prony_context *context, const prn_conv *conv, const char *kernel,
                               prn_prepared *out)
{
    enum { GROUP = 64 };
    const int64_t count = prony_shape_numel(&conv->y->shape);
    product p = {.plane = (cl_int)conv->in_spatial};
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    copy_window(&conv->window, &p);
    if (conv->bias) prn_opencl_define(&defines, "#define BIAS\n");
    prn_opencl_define_finish(&defines, context);
    prn_opencl_launch(&b, &prn_opencl_window, &defines, kernel);
    prn_opencl_input(&b, 0, 0);
    prn_opencl_input(&b, 1, 0);
    if (conv->bias) prn_opencl_input(&b, 2, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, p.in, sizeof p - offsetof(product, in));
    prn_opencl_int(&b, count);
    prn_opencl_int(&b, conv->in_channels);
    prn_opencl_int(&b, conv->out_channels);
    prn_opencl_int(&b, conv->groups);
    prn_opencl_finish_operands(&b);
    prn_opencl_work(&b, (size_t)count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

prony_status prn_opencl_conv_prepare(const prony_context *context, const prn_conv *conv, prn_prepared *out)
{
    return conv->group_in == 1 && conv->group_out == 1 ? conv_items(context, conv, "depthwise", out)
                                                       : conv_product(context, conv, out);
}

prony_status prn_opencl_conv_transpose_prepare(const prony_context *context, const prn_conv *conv, prn_prepared *out)
{
    return conv_items(context, conv, "transposed", out);
}
#endif
