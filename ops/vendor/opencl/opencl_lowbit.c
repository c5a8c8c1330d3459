/* Implements opencl_lowbit.h. */
#include "ops/vendor/opencl/opencl_lowbit.h"

#ifdef PRN_HAVE_OPENCL
#include "ops/vendor/opencl/opencl_launch.h"

enum { ITEMS = 64, COLUMNS = 4, FEW = 8, WORD_BITS = 32 };
enum { CODES_INPUT = 1, SCALES, ZEROS, BIAS = 5 };

/* As lowbit.cl has it. */
typedef struct lowbit {
    cl_int rows, columns, depth, words, blocks, zero_row;
} lowbit;

bool prn_opencl_nbit_supported(const prony_context *context, const prn_opencl_nbit *problem)
{
    const prony_value *zeros = prn_input(context, ZEROS);
    return prn_opencl_takes(context, false) && context->inputs[SCALES]->dtype == PRONY_FLOAT32 &&
           (!zeros || zeros->dtype == PRONY_UINT8 || zeros->dtype == PRONY_FLOAT32) && problem->rows > 0;
}

/* A work group of ITEMS computes COLUMNS columns of `few` rows. `few` is part of the program: one row, a small batch and a
 * prompt each have a program of their own, and the last rows of a prompt are masked. */
prony_status prn_opencl_nbit_prepare(const prony_context *context, const prn_opencl_nbit *problem, prn_prepared *out)
{
    const prony_value *zeros = prn_input(context, ZEROS), *bias = prn_input(context, BIAS);
    const int few = problem->rows == 1 ? 1 : problem->rows <= 4 ? 4 : FEW;
    const lowbit p = {.rows = (cl_int)problem->rows,
                      .columns = (cl_int)problem->columns,
                      .depth = (cl_int)problem->depth,
                      .words = (cl_int)(problem->blocks * problem->block * problem->bits / WORD_BITS),
                      .blocks = (cl_int)problem->blocks,
                      .zero_row = (cl_int)problem->zero_row};
    opencl_defines defines = {0};
    opencl_builder b = prn_opencl_begin(context, 1);
    prn_opencl_define(&defines, "#define BITS %d\n#define BLOCK %d\n#define FEW %d\n#define ZERO %d\n%s",
                      (int)problem->bits, (int)problem->block, few,
                      !zeros                        ? 0
                      : zeros->dtype == PRONY_UINT8 ? 1
                                                    : 2,
                      bias ? "#define BIAS\n" : "");
    prn_opencl_launch(&b, &prn_opencl_lowbit, &defines, "multiply_bits");
    for (size_t i = 0; i <= SCALES; i++) prn_opencl_input(&b, i, 0);
    if (zeros) prn_opencl_input(&b, ZEROS, 0);
    if (bias) prn_opencl_input(&b, BIAS, 0);
    prn_opencl_output(&b, 0, 0);
    prn_opencl_argument(&b, &p, sizeof p);
    prn_opencl_work(&b, (size_t)(problem->columns + COLUMNS - 1) / COLUMNS * ITEMS,
                    (size_t)(problem->rows + few - 1) / (size_t)few, 1, ITEMS, 1, 1);
    return prn_opencl_end(&b, out);
}
#endif
