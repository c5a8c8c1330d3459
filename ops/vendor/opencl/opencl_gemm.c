/* Implements opencl_gemm.h. */
#include "ops/vendor/opencl/opencl_gemm.h"

#ifdef PRN_HAVE_OPENCL
#include "base/memory/alloc.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_launch.h"

#include <math.h>
#include <string.h>

enum { SIDE = 8, EACH = 4, BATCHES = 8 };
/* Products of so many rows read each weight once; beyond, tiles reuse weights and rows alike. */
enum { FEW = 8, FEW_ITEMS = 64, FEW_COLUMNS = 32, FEW_COLUMNS_DOWN = 4 };

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
    const struct own_weights *own; /* B is not an input's bytes; NULL: it is */
} product_inputs;

/* B as halves, or as floats, in memory of the step's own. */
typedef struct own_weights {
    const void *source, *data;
    size_t bytes;
    bool halves;
} own_weights;

static void launch_operands(opencl_builder *b, const product *p, const product_inputs *inputs)
{
    const own_weights *own = inputs->own;
    prn_opencl_input(b, (size_t)inputs->a, 0);
    if (own)
        prn_opencl_shared_table(b, own->source, own->data, own->bytes);
    else
        prn_opencl_input(b, (size_t)inputs->b, 0);
    if (inputs->bias >= 0) prn_opencl_input(b, (size_t)inputs->bias, 0);
    prn_opencl_output(b, 0, 0);
    prn_opencl_argument(b, p, sizeof *p);
    prn_opencl_finish_operands(b);
}

static void launch_define(opencl_defines *defines, const prony_context *context, const product_inputs *inputs)
{
    if (inputs->bias >= 0) prn_opencl_define(defines, "#define BIAS\n");
    if (inputs->own && inputs->own->halves) prn_opencl_define(defines, "#define HALF\n");
    prn_opencl_define_finish(defines, context);
}

/* A decoder's step multiplies one row: a tile of 32 would make 31 for nothing. */
static void launch_few(opencl_builder *b, const product *p, const product_inputs *inputs, size_t items)
{
    const bool down = p->b_depth == 1 && p->b_column != 1;
    const size_t columns = down ? FEW_COLUMNS_DOWN : FEW_COLUMNS;
    opencl_defines defines = {0};
    prn_opencl_define(&defines, "#define FEW %d\n%s",
                      p->rows == 1   ? 1
                      : p->rows <= 4 ? 4
                                     : FEW,
                      down ? "#define DOWN\n" : "");
    launch_define(&defines, b->context, inputs);
    prn_opencl_launch(b, &prn_opencl_gemm, &defines, "multiply_few");
    launch_operands(b, p, inputs);
    prn_opencl_work(b, ((size_t)p->columns + columns - 1) / columns * FEW_ITEMS, 1, items, FEW_ITEMS, 1, 1);
}

static void launch_tiles(opencl_builder *b, const product *p, const product_inputs *inputs, bool window, size_t items)
{
    opencl_defines defines = {0};
    if (window) prn_opencl_define(&defines, "#define WINDOW\n");
    launch_define(&defines, b->context, inputs);
    prn_opencl_launch(b, &prn_opencl_gemm, &defines, "multiply");
    launch_operands(b, p, inputs);
    prn_opencl_work(b, (size_t)(p->columns + EACH - 1) / EACH, (size_t)(p->rows + EACH - 1) / EACH, items, SIDE, SIDE,
                    1);
}

bool prn_opencl_gemm_supported(const prony_context *context)
{
    return prn_opencl_takes(context, true) && context->input_count >= 2;
}

static product product_of(const prn_matmul_desc *d)
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
    return p;
}

static void launch_matmul(opencl_builder *b, const prn_matmul_desc *d, const own_weights *own)
{
    const product p = product_of(d);
    const product_inputs inputs = {d->a_input, d->b_input, d->bias_input, own};
    if (d->m <= FEW)
        launch_few(b, &p, &inputs, (size_t)d->items);
    else
        launch_tiles(b, &p, &inputs, false, (size_t)d->items);
}

prony_status prn_opencl_gemm_prepare(const prony_context *context, const prn_matmul_desc *d, prn_prepared *out)
{
    opencl_builder b = prn_opencl_begin(context, 1);
    launch_matmul(&b, d, NULL);
    return prn_opencl_end(&b, out);
}

/* ---- weights as halves ---- */

bool prn_opencl_gemm_half_supported(const prony_context *context)
{
    for (size_t i = 0; i < context->input_count; i++)
        if (context->inputs[i] && context->inputs[i]->dtype != PRONY_FLOAT32) return false;
    return context->input_count >= 2 && (context->constant_inputs & 2) && prn_opencl_takes(context, true);
}

/* false: a weight is infinite, NaN or beyond the largest half. */
static bool halve(uint16_t *to, const float *from, size_t count)
{
    const float largest = 65504.0f;
    bool fits = true;
    for (size_t i = 0; i < count; i++) fits &= fabsf(from[i]) <= largest;
    if (fits) prn_convert(to, PRONY_FLOAT16, from, PRONY_FLOAT32, (int64_t)count);
    return fits;
}

prony_status prn_opencl_gemm_half_prepare(const prony_context *context, const prn_matmul_desc *d, prn_prepared *out)
{
    const prony_value *weights = context->inputs[1];
    const size_t count = (size_t)prony_shape_numel(&weights->shape);
    uint16_t *halves = prn_calloc(count, sizeof *halves);
    if (!halves) return prn_no_memory(context->error);
    const bool fits = halve(halves, weights->data, count);
    /* The plain weights may be on the device too: halves are known by the address behind theirs. */
    const own_weights own = {.source = fits ? (const char *)weights->data + 1 : weights->data,
                             .data = fits ? (const void *)halves : weights->data,
                             .bytes = count * (fits ? sizeof *halves : sizeof(float)),
                             .halves = fits};
    opencl_builder b = prn_opencl_begin(context, 1);
    own_weights *kept = prn_opencl_keep(&b, sizeof *kept);
    if (kept) *kept = own;
    launch_matmul(&b, d, &own);
    prn_free(halves);
    return prn_opencl_end(&b, out);
}

void prn_opencl_gemm_half_facts(const prony_context *context, prony_cost *facts)
{
    const own_weights *own = prn_opencl_kept(context->state);
    if (!own->halves) {
        prn_cost_fact(facts, "stays_in_fp32", PRN_STAYS_RANGE);
        return;
    }
    prn_cost_fact(facts, "weight_bits", 16);
    prn_cost_fact(facts, "weight_bytes", (int64_t)own->bytes);
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
    const product_inputs inputs = {1, 0, conv->bias ? 2 : -1, NULL};
    opencl_builder b = prn_opencl_begin(context, 1);
    launch_tiles(&b, &p, &inputs, true, (size_t)(conv->batch * conv->groups));
    return prn_opencl_end(&b, out);
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
