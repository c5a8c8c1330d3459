/* prony::QAdd, which rewriting makes: the sum of two tensors of 8-bit codes of one shape, stored as codes again.
 *
 *   y = rounded((a - a_zero) (a_scale / y_scale) + (b - b_zero) (b_scale / y_scale)) + y_zero, kept within [low, high]
 *
 * Inputs as QLinearAdd's. Elements are independent, so any layout and any cut among threads gives the same codes. */
#include "base/parallel.h"
#include "base/stop.h"
#include "ops/loops/code_dot.h"
#include "ops/loops/quantized.h"

typedef struct add_params {
    int64_t low, high; /* bounds of codes; beyond the type's own they bound nothing */
} add_params;

static const prn_param attributes[] = {PRN_INT(add_params, low, INT64_MIN), PRN_INT(add_params, high, INT64_MAX), {0}};

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

static prony_status infer(const prony_context *context)
{
    const prony_value *a = context->inputs[A], *b = prn_input(context, B), *zero = prn_input(context, Y_ZERO);
    if (!a || !b || !zero) return prony_fail(context, PRONY_INVALID_MODEL, "an operand is missing");
    PRN_TRY(prn_check_type(context, A, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_type(context, B, PRN_TYPES_8_BIT));
    PRN_TRY(prn_quant_scalar_check(context, A_SCALE, A_ZERO, PRN_TYPE(a->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, B_SCALE, B_ZERO, PRN_TYPE(b->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, Y_SCALE, Y_ZERO, PRN_TYPES_8_BIT));
    if (!prn_shape_equal(&a->shape, &b->shape)) {
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s and %s", prn_shape_text(&a->shape, left),
                          prn_shape_text(&b->shape, right));
    }
    const add_params *params = context->params;
    int32_t least, most;
    prn_set_output(context, 0, zero->dtype, &a->shape);
    return prn_quant_bounds(context, zero->dtype, params->low, params->high, &least, &most);
}

static prony_status cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t n = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    uint64_t operations;
    if (!prn_mul_u64(&operations, n, 9) || !prn_add_u64(&cost->int_ops, cost->int_ops, operations))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    return PRONY_OK;
}

/* What a offers, if b has the same. */
static void layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prony_value *a = context->inputs[A], *b = context->inputs[B];
    prn_layout layout = PRN_PLAIN;
    if (a->layout == PRN_NHWC || b->layout == PRN_NHWC) layout = PRN_NHWC;
    in[A] = in[B] = out[0] = layout;
}

typedef struct job {
    prn_code_finish finish;
    int32_t bias;
    float scale;
    bool a_signed;
    const uint8_t *a, *b;
    uint8_t *y;
} job;

static prony_status job_make(const prony_context *context, job *job)
{
    const add_params *params = context->params;
    const prn_quant_scalar a = prn_quant_scalar_get(context, A_SCALE, A_ZERO),
                           b = prn_quant_scalar_get(context, B_SCALE, B_ZERO),
                           y = prn_quant_scalar_get(context, Y_SCALE, Y_ZERO);
    const prony_dtype type = context->outputs[0]->dtype;
    int32_t least, most;
    PRN_TRY(prn_quant_bounds(context, type, params->low, params->high, &least, &most));
    *job = (struct job){.bias = -(int32_t)a.zero,
                        .scale = a.scale / y.scale,
                        .a_signed = context->inputs[A]->dtype == PRONY_INT8,
                        .a = context->inputs[A]->data,
                        .b = context->inputs[B]->data,
                        .y = context->outputs[0]->data};
    job->finish = (prn_code_finish){.bias = &job->bias,
                                    .scale = &job->scale,
                                    .low = (float)least - y.zero,
                                    .high = (float)most - y.zero,
                                    .zero = (int32_t)y.zero,
                                    .y_signed = type == PRONY_INT8,
                                    .residual_signed = context->inputs[B]->dtype == PRONY_INT8,
                                    .middle_factor = 1.0f,
                                    .residual_factor = b.scale / y.scale,
                                    .residual_zero = (int32_t)b.zero};
    return PRONY_OK;
}

static void add_range(void *argument, int64_t begin, int64_t end)
{
    const job *job = argument;
    prn_code_dot_table()->add(&job->finish, job->a_signed, job->a + begin, job->b + begin, job->y + begin, end - begin);
}

static prony_status run_native(const prony_context *context)
{
    job job;
    PRN_TRY(job_make(context, &job));
    prn_parallel_range(context->threads, prony_shape_numel(&context->outputs[0]->shape), PRN_QUANT_GRAIN, add_range,
                       &job);
    return PRONY_OK;
}

static prony_status run_reference(const prony_context *context)
{
    const prony_value *a = context->inputs[A], *b = context->inputs[B], *y = context->outputs[0];
    const prn_cast_rule rule = {.saturate = true};
    job job;
    PRN_TRY(job_make(context, &job));
    const prn_code_finish *f = &job.finish;
    for (int64_t i = 0; i < prony_shape_numel(&y->shape) && !prn_stopped_at(i); i++) {
        const float from_a = prn_dequantize_one(a->data, a->dtype, i, (float)-job.bias, 1.0f);
        const float from_b = prn_dequantize_one(b->data, b->dtype, i, (float)f->residual_zero, 1.0f);
        volatile float left = from_a * job.scale, right = from_b * f->residual_factor; /* each rounded on its own */
        const float v = left + right;
        const float kept = v > f->low ? (v < f->high ? v : f->high) : f->low; /* NaN is low */
        const int32_t code = (int32_t)rintf(kept) + f->zero;
        prn_cast(y->data, y->dtype, i, &code, PRONY_INT32, 0, 1, &rule);
    }
    return PRONY_OK;
}

static const prn_kernel kernels[] = {
    {.name = "qadd_int8_native", .backend = "native", .layouts = layouts, .run = run_native},
    {.name = "qadd_reference", .backend = "reference", .run = run_reference},
    {0}};

const prn_op prn_ops_code_add[] = {
    {.name = "QAdd", .domain = "prony", .since_opset = 1, .inputs = {8, 8}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0xf6,
     .params = attributes, .params_bytes = sizeof(add_params),
     .infer = infer, .cost = cost, .cost_text = "int_ops 9n (two differences and products, sum, quantization)",
     .kernels = kernels},
    {0}};
