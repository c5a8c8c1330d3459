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
    cl_float low, high, zero, least, most;
} codes;

bool prn_opencl_int8_supported(const prony_context *context, uint32_t inputs)
{
    const prony_value *y = context->outputs[0];
    for (size_t i = 0; i < context->input_count; i++)
        if (context->inputs[i] && !(inputs >> i & 1) && !(context->constant_inputs >> i & 1)) return false;
    return prn_opencl_takes_inputs(context, inputs) &&
           (y->dtype == PRONY_INT32 || y->dtype == PRONY_FLOAT32 || y->dtype == PRONY_INT8 || y->dtype == PRONY_UINT8);
}

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
#endif
