/* prony::QMap, which rewriting makes: 8-bit codes that are a function of other ones, by a table of all 256.
 *
 *   y = table[x], x read as an unsigned byte
 *
 * Elements are independent, so any layout and any cut among threads gives the same codes. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/int8/quantized.h"
#include "ops/vendor/opencl/opencl_quantize.h"

enum { X, TABLE, CODES = 256 };

static prony_status qint8_map_infer(const prony_context *context)
{
    const prony_value *x = context->inputs[X], *table = prn_input(context, TABLE);
    if (!x || !table) return prony_fail(context, PRONY_INVALID_MODEL, "an operand is missing");
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_type(context, TABLE, PRN_TYPES_8_BIT));
    if (table->shape.rank != 1 || table->shape.dim[0] != CODES) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "the table is %s, wanted 256 codes",
                          prn_value_text(table, text));
    }
    prn_set_output(context, 0, table->dtype, &x->shape);
    return PRONY_OK;
}

static prony_status qint8_map_cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t n = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    if (!prn_add_u64(&cost->int_ops, cost->int_ops, n))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    return PRONY_OK;
}

/* Codes one by one, wherever they lie. */
static void qint8_map_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    if (context->inputs[X]->layout == PRN_NHWC) in[X] = out[0] = PRN_NHWC;
}

typedef struct job {
    const uint8_t *table, *x;
    uint8_t *y;
} job;

static void qint8_map_range(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    prn_qint8_dot_table()->look_up(job->table, job->x + begin, job->y + begin, end - begin);
}

static prony_status qint8_map_run_native(const prony_context *context)
{
    job job = {context->inputs[TABLE]->data, context->inputs[X]->data, context->outputs[0]->data};
    prn_parallel_range(context->threads, prony_shape_numel(&context->outputs[0]->shape), PRN_QUANT_GRAIN,
                       qint8_map_range, &job);
    return PRONY_OK;
}

static prony_status qint8_map_run_reference(const prony_context *context)
{
    const uint8_t *table = context->inputs[TABLE]->data, *x = context->inputs[X]->data;
    uint8_t *y = context->outputs[0]->data;
    for (int64_t i = 0; i < prony_shape_numel(&context->outputs[0]->shape) && !prn_cancelled_at(i); i++)
        y[i] = table[x[i]];
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static bool qint8_map_opencl_supported(const prony_context *context)
{
    return prn_opencl_quantized_supported(context, 1u << X | 1u << TABLE);
}

static prony_status qint8_map_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const int64_t count = prony_shape_numel(&context->inputs[X]->shape);
    const prn_opencl_look_up run = {.input = X, .part = count, .whole = count};
    return prn_opencl_look_up_prepare(context, &run, 1, out);
}
#endif

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("qmap_opencl", PRN_TYPES_8_BIT, qint8_map_opencl_supported, qint8_map_opencl_prepare)
    {.name = "qmap_int8_native", .backend = "native", .layouts = qint8_map_layouts, .run = qint8_map_run_native},
    {.name = "qmap_reference", .backend = "reference", .run = qint8_map_run_reference},
    {0}};

const prn_op prn_ops_code_map[] = {
    {.name = "QMap", .domain = "prony", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0x2,
     .infer = qint8_map_infer, .cost = qint8_map_cost, .cost_text = "int_ops n (a look-up)", .kernels = kernels},
    {0}};
// clang-format on
