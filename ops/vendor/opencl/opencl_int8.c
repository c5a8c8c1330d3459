/* Implements opencl_int8.h. */
#include "ops/vendor/opencl/opencl_int8.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_launch.h"

enum { SIDE = 8, EACH = 4, BATCHES = 8 };

/* As int8.cl has it. */
typedef struct codes {
    cl_int rows, columns, depth, batch_rank;
    cl_int batch[BATCHES], a_batch[BATCHES], b_batch[BATCHES], c_batch[BATCHES];
    cl_int a_row, a_depth, b_depth, b_column, c_row;
    cl_int a_zero_step, b_zero_step, factor_step, added_row, added_column;
    cl_float low, high, zero, least, most, middle_low, middle_high, middle_factor, residual_factor;
    cl_int residual_zero;
    cl_int in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], plane, groups, group_in;
} codes;

int prn_opencl_int8_input(const prony_context *context, size_t input)
{
    return prn_input(context, input) ? (int)input : PRN_OPENCL_INT8_NONE;
}

bool prn_opencl_int8_supported(const prony_context *context, uint32_t inputs)
{
    const prony_value *y = context->outputs[0];
    for (size_t i = 0; i < context->input_count; i++)
        if (context->inputs[i] && !(inputs >> i & 1) && !(context->constant_inputs >> i & 1)) return false;
    return prn_opencl_takes_inputs(context, inputs) &&
           (y->dtype == PRONY_INT32 || y->dtype == PRONY_FLOAT32 || y->dtype == PRONY_INT8 || y->dtype == PRONY_UINT8);
}

/* The product as kernels/int8.cl reads it, member by member. Sizes and strides are of elements; `supported` has refused what
 * an int cannot hold. Results are clamped to [least, most], the range of the output's type. */
static codes opencl_int8_codes_of(const prony_context *context, const prn_opencl_int8 *problem)
{
    const prn_matmul_desc *d = problem->shape;
    const bool is_signed = context->outputs[0]->dtype == PRONY_INT8;
    codes p = {.rows = (cl_int)d->m,
               .columns = (cl_int)d->n,
               .depth = (cl_int)d->k,
               .batch_rank = d->batch_rank,
               .a_row = (cl_int)d->rs_a,
               .a_depth = (cl_int)d->cs_a,
               .b_depth = (cl_int)d->rs_b,
               .b_column = (cl_int)d->cs_b,
               .c_row = (cl_int)d->rs_c,
               .a_zero_step = problem->a_zero_lines,
               .b_zero_step = problem->b_zero_lines,
               .factor_step = problem->factor_count > 1,
               .added_row = (cl_int)problem->added_row,
               .added_column = (cl_int)problem->added_column,
               .low = problem->low,
               .high = problem->high,
               .zero = problem->zero,
               .least = is_signed ? -128.0f : 0.0f,
               .most = is_signed ? 127.0f : 255.0f};
    for (int i = 0; i < d->batch_rank; i++) {
        p.batch[i] = (cl_int)d->batch_dim[i];
        p.a_batch[i] = (cl_int)d->a_step[i];
        p.b_batch[i] = (cl_int)d->b_step[i];
        p.c_batch[i] = (cl_int)d->c_step[i];
    }
    return p;
}

static void define_codes(opencl_defines *defines, const prony_context *context, const prn_opencl_int8 *problem)
{
    const int optional[] = {problem->a_zero, problem->b_zero, problem->added, problem->bias};
    static const char *const names[] = {"A_ZERO", "B_ZERO", "ADDED", "BIAS"};
    prn_opencl_define(defines, "#define A_SIGNED %d\n#define B_SIGNED %d\n#define %s\n#define OUT %s\n",
                      context->inputs[problem->a]->dtype == PRONY_INT8,
                      context->inputs[problem->b]->dtype == PRONY_INT8,
                      !problem->factors ? "SUMS"
                      : problem->codes  ? "CODES"
                                        : "FLOATS",
                      !problem->factors                          ? "int"
                      : !problem->codes                          ? "float"
                      : context->outputs[0]->dtype == PRONY_INT8 ? "char"
                                                                 : "uchar");
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (optional[i] >= 0) prn_opencl_define(defines, "#define %s\n", names[i]);
}

static void add_optional(opencl_builder *b, int input)
{
    if (input >= 0) prn_opencl_input(b, (size_t)input, 0);
}

prony_status prn_opencl_int8_prepare(const prony_context *context, const prn_opencl_int8 *problem, prn_prepared *out)
{
    const codes p = opencl_int8_codes_of(context, problem);
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    define_codes(&defines, context, problem);
    prn_opencl_launch(&b, &prn_opencl_codes, &defines, "multiply_codes");
    prn_opencl_input(&b, (size_t)problem->a, 0);
    prn_opencl_input(&b, (size_t)problem->b, 0);
    add_optional(&b, problem->a_zero);
    add_optional(&b, problem->b_zero);
    add_optional(&b, problem->added);
    if (problem->factors)
        prn_opencl_table(&b, problem->factors, (size_t)problem->factor_count * sizeof *problem->factors);
    add_optional(&b, problem->bias);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)(p.columns + EACH - 1) / EACH, (size_t)(p.rows + EACH - 1) / EACH,
                    (size_t)problem->shape->items, SIDE, SIDE, 1);
    return prn_opencl_end(&b, out);
}

/* ---- convolution ---- */

/* Rows are a group's filters, columns output positions, items images and their groups. */
static codes opencl_int8_conv_codes_of(const prony_context *context, const prn_opencl_int8_conv *problem)
{
    const prn_conv *c = problem->conv;
    const prn_window *w = &c->window;
    const prn_qint8_epilogue *f = &problem->finish;
    const int64_t depth = c->group_in * c->kernel_volume;
    const bool is_signed = context->outputs[0]->dtype == PRONY_INT8;
    codes p = {.rows = (cl_int)c->group_out,
               .columns = (cl_int)c->out_spatial,
               .depth = (cl_int)depth,
               .batch_rank = 2,
               .batch = {(cl_int)c->batch, (cl_int)c->groups},
               .a_batch = {0, (cl_int)(c->group_out * depth)},
               .b_batch = {(cl_int)(c->in_channels * c->in_spatial), (cl_int)(c->group_in * c->in_spatial)},
               .c_batch = {(cl_int)(c->out_channels * c->out_spatial), (cl_int)(c->group_out * c->out_spatial)},
               .a_row = (cl_int)depth,
               .a_depth = 1,
               .c_row = (cl_int)c->out_spatial,
               .a_zero_step = problem->w_zero_lines,
               .factor_step = 1,
               .low = f->low,
               .high = f->high,
               .zero = (float)f->zero,
               .least = is_signed ? -128.0f : 0.0f,
               .most = is_signed ? 127.0f : 255.0f,
               .middle_low = f->middle_low,
               .middle_high = f->middle_high,
               .middle_factor = f->middle_factor,
               .residual_factor = f->residual_factor,
               .residual_zero = f->residual_zero,
               .plane = (cl_int)c->in_spatial,
               .groups = (cl_int)c->groups,
               .group_in = (cl_int)c->group_in};
    for (int a = 0; a < PRN_WINDOW_AXES; a++) {
        p.in[a] = (cl_int)w->in[a];
        p.out[a] = (cl_int)w->out[a];
        p.kernel[a] = (cl_int)w->kernel[a];
        p.stride[a] = (cl_int)w->stride[a];
        p.dilation[a] = (cl_int)w->dilation[a];
        p.pad[a] = (cl_int)w->pad_begin[a];
    }
    return p;
}

static void define_conv(opencl_defines *defines, const prony_context *context, const prn_opencl_int8_conv *problem)
{
    const bool is_signed = context->outputs[0]->dtype == PRONY_INT8;
    prn_opencl_define(defines, "#define WINDOW\n#define A_SIGNED %d\n#define B_SIGNED %d\n#define %s\n#define OUT %s\n",
                      problem->w_signed, problem->x_signed, problem->factors ? "CODES" : "SUMS",
                      !problem->factors ? "int"
                      : is_signed       ? "char"
                                        : "uchar");
    if (problem->w_zero >= 0) prn_opencl_define(defines, "#define A_ZERO\n");
    if (problem->x_zero >= 0) prn_opencl_define(defines, "#define B_ZERO\n");
    if (problem->bias >= 0) prn_opencl_define(defines, "#define ADDED\n");
    if (problem->residual < 0) return;
    prn_opencl_define(defines, "#define RESIDUAL %s\n", problem->finish.residual_signed ? "char" : "uchar");
    if (problem->finish.rounds) prn_opencl_define(defines, "#define MIDDLE\n");
}

/* Three programs: tiles of EACH filters by EACH places, or one output a work item where a group has few filters and where
 * the convolution is transposed. The order of arguments is that of kernels/int8.cl; the device keeps a copy of factors. */
prony_status prn_opencl_int8_conv_prepare(const prony_context *context, const prn_opencl_int8_conv *problem,
                                          prn_prepared *out)
{
    enum { GROUP = 64, FEW = 8 }; /* a tile is 32 filters high: with few of them, an output a work item */
    const prn_conv *c = problem->conv;
    const codes p = opencl_int8_conv_codes_of(context, problem);
    const bool few = problem->transposed || c->group_out < FEW;
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    define_conv(&defines, context, problem);
    prn_opencl_launch(&b, &prn_opencl_codes, &defines,
                      problem->transposed ? "transpose_codes"
                      : few               ? "convolve_codes"
                                          : "multiply_codes");
    prn_opencl_input(&b, (size_t)problem->w, 0);
    prn_opencl_input(&b, (size_t)problem->x, 0);
    add_optional(&b, problem->w_zero);
    add_optional(&b, problem->x_zero);
    add_optional(&b, problem->bias);
    if (problem->factors) prn_opencl_table(&b, problem->factors, (size_t)c->out_channels * sizeof *problem->factors);
    add_optional(&b, problem->residual);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    if (few) {
        const int64_t count = prony_shape_numel(&context->outputs[0]->shape);
        prn_opencl_int(&b, count);
        prn_opencl_work(&b, (size_t)count, 1, 1, GROUP, 1, 1);
    } else {
        prn_opencl_work(&b, (size_t)(p.columns + EACH - 1) / EACH, (size_t)(p.rows + EACH - 1) / EACH,
                        (size_t)(c->batch * c->groups), SIDE, SIDE, 1);
    }
    return prn_opencl_end(&b, out);
}
#endif
