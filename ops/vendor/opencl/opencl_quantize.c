/* Implements opencl_quantize.h. */
#include "ops/vendor/opencl/opencl_quantize.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/kernels/copy/broadcast.h"
#include "ops/vendor/opencl/opencl_launch.h"

enum { RANKS = 18, GROUP = 64, CODES = 256 };

/* As quantize.cl has them. */
typedef struct entries {
    cl_int count, inner, extent, block, blocks;
} entries;
typedef struct pairs {
    cl_int rank, count;
    cl_int extent[RANKS], a[RANKS], b[RANKS];
    cl_float a_zero, a_factor, b_zero, b_factor, y_scale, low, high, zero;
} pairs;
typedef struct windows {
    cl_int in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], end[3], count, padded, zero;
    cl_float scale, y_scale, y_zero;
} windows;

bool prn_opencl_quantized_supported(const prony_context *context, uint32_t inputs)
{
    if (context->input_count > 32) return false;
    for (size_t i = 0; i < context->input_count; i++)
        if (context->inputs[i] && !(inputs >> i & 1) &&
            !(context->constant_inputs >> i & 1 && context->inputs[i]->data))
            return false;
    return prn_opencl_takes_inputs(context, inputs);
}

static const char *code_type(const prony_value *value)
{
    return value->dtype == PRONY_INT8 ? "char" : "uchar";
}

/* ---- QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear ---- */

prony_status prn_opencl_quantize_prepare(const prony_context *context, const prn_quant *quant, bool back,
                                         prn_prepared *out)
{
    const prony_value *y = context->outputs[0];
    const entries p = {.count = (cl_int)prony_shape_numel(&y->shape),
                       .inner = (cl_int)(quant->uniform ? 1 : quant->inner),
                       .extent = (cl_int)(quant->uniform ? 0 : quant->axis),
                       .block = (cl_int)(quant->block < INT32_MAX ? quant->block : INT32_MAX),
                       .blocks = (cl_int)quant->blocks};
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define CODE %s\n", code_type(back ? context->inputs[0] : y));
    if (quant->zero) prn_opencl_define(&defines, "#define ZERO\n");
    prn_opencl_launch(&b, &prn_opencl_quantize, &defines, back ? "dequantize" : "quantize");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_input(&b, 1, 0);
    if (quant->zero) prn_opencl_input(&b, 2, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

/* Scale and zero point of `count` numbers, or of pairs of extremes that lie in output 0. */
static void launch_parameters(opencl_builder *b, const opencl_defines *defines, int64_t count, bool extremes)
{
    prn_opencl_launch(b, &prn_opencl_quantize, defines, "parameters");
    if (extremes)
        prn_opencl_output(b, 0, 0);
    else
        prn_opencl_input(b, 0, 0);
    prn_opencl_output(b, 1, 0);
    prn_opencl_output(b, 2, 0);
    prn_opencl_int(b, count);
    prn_opencl_int(b, extremes);
    prn_opencl_work(b, GROUP, 1, 1, GROUP, 1, 1);
}

prony_status prn_opencl_quantize_dynamic_prepare(const prony_context *context, prn_prepared *out)
{
    enum { GROUPS = 64, LEAST = 1 << 14 }; /* numbers that are worth several groups; their codes hold the extremes */
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    const entries p = {.count = (cl_int)count, .inner = 1};
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 3);
    prn_opencl_define(&defines, "#define CODE uchar\n#define ZERO\n");
    if (count >= LEAST) {
        prn_opencl_launch(&b, &prn_opencl_quantize, &defines, "extremes");
        prn_opencl_input(&b, 0, 0);
        prn_opencl_output(&b, 0, 0);
        prn_opencl_int(&b, count);
        prn_opencl_work(&b, GROUPS * GROUP, 1, 1, GROUP, 1, 1);
    }
    launch_parameters(&b, &defines, count >= LEAST ? GROUPS : count, count >= LEAST);
    prn_opencl_launch(&b, &prn_opencl_quantize, &defines, "quantize");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 1, 0);
    prn_opencl_output(&b, 2, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

/* ---- two tensors ---- */

/* One work item computes one element. Axes that both inputs broadcast alike are merged first, so most sums have rank 1; an
 * input that repeats along an axis has stride 0 there. */
prony_status prn_opencl_code_pair_prepare(const prony_context *context, const prn_opencl_code_pair *pair,
                                          prn_prepared *out)
{
    const prony_value *left = context->inputs[pair->left], *right = context->inputs[pair->right];
    prn_broadcast walk;
    prn_broadcast_begin(&walk, context->outputs[0]);
    prn_broadcast_add(&walk, left);
    prn_broadcast_add(&walk, right);
    prn_broadcast_merge(&walk);
    pairs p = {.rank = walk.rank,
               .count = (cl_int)walk.count,
               .a_zero = pair->a_zero,
               .a_factor = pair->a_factor,
               .b_zero = pair->b_zero,
               .b_factor = pair->b_factor,
               .y_scale = pair->y_scale,
               .low = pair->low,
               .high = pair->high,
               .zero = pair->zero};
    for (int d = 0; d < walk.rank; d++) {
        p.extent[d] = (cl_int)walk.dim[d];
        p.a[d] = (cl_int)walk.stride[0][d];
        p.b[d] = (cl_int)walk.stride[1][d];
    }
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define PAIR (%s)\n#define CODE %s\n#define X_CODE %s\n#define Y_CODE %s\n",
                      pair->text, code_type(context->outputs[0]), code_type(left), code_type(right));
    prn_opencl_launch(&b, &prn_opencl_quantize, &defines, "pair");
    prn_opencl_input(&b, pair->left, 0);
    prn_opencl_input(&b, pair->right, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}

/* ---- tables ---- */

prony_status prn_opencl_look_up_prepare(const prony_context *context, const prn_opencl_look_up *runs, size_t count,
                                        prn_prepared *out)
{
    opencl_builder b = prn_opencl_begin(context, count);
    const opencl_defines defines = {0};
    for (size_t i = 0; i < count; i++) {
        const prn_opencl_look_up *run = &runs[i];
        const int64_t elements = prony_shape_numel(&context->inputs[run->input]->shape);
        prn_opencl_launch(&b, &prn_opencl_quantize, &defines, "look_up");
        prn_opencl_input(&b, run->input, 0);
        if (run->table)
            prn_opencl_table(&b, run->table, CODES);
        else
            prn_opencl_input(&b, 1, 0);
        prn_opencl_output(&b, 0, (uint64_t)run->to);
        prn_opencl_int(&b, elements);
        prn_opencl_int(&b, run->part);
        prn_opencl_int(&b, run->whole);
        prn_opencl_work(&b, (size_t)elements, 1, 1, GROUP, 1, 1);
    }
    return prn_opencl_end(&b, out);
}

/* ---- averages ---- */

/* One work item sums one window as integers, scales the mean and rounds half to even. `padding`: padded
 * elements count in the divisor. */
prony_status prn_opencl_code_average_prepare(const prony_context *context, const prn_window *window, bool padding,
                                             prn_quant_scalar from, prn_quant_scalar to, prn_prepared *out)
{
    windows p = {.count = (cl_int)prony_shape_numel(&context->outputs[0]->shape),
                 .padded = padding,
                 .zero = (cl_int)from.zero,
                 .scale = from.scale,
                 .y_scale = to.scale,
                 .y_zero = to.zero};
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        p.in[a] = (cl_int)window->in[a];
        p.out[a] = (cl_int)window->out[a];
        p.kernel[a] = (cl_int)window->kernel[a];
        p.stride[a] = (cl_int)window->stride[a];
        p.dilation[a] = (cl_int)window->dilation[a];
        p.pad[a] = (cl_int)window->pad_begin[a];
        p.end[a] = (cl_int)window->pad_end[a];
    }
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define X_CODE %s\n#define CODE %s\n", code_type(context->inputs[0]),
                      code_type(context->outputs[0]));
    prn_opencl_launch(&b, &prn_opencl_quantize, &defines, "average");
    prn_opencl_input(&b, 0, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)p.count, 1, 1, GROUP, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
