/* prony::QAdd and prony::QMul, which rewriting makes: sums and products of two tensors of 8-bit codes, broadcast,
 * stored as codes again.
 *
 *   QAdd  y = rounded((a - a_zero) (a_scale / y_scale) + (b - b_zero) (b_scale / y_scale)) + y_zero
 *   QMul  y = rounded((a - a_zero) (b - b_zero) (a_scale b_scale / y_scale)) + y_zero
 *
 * both kept within [low, high]. Inputs as QLinearAdd's. Elements are independent, so any layout and any cut among
 * threads gives the same codes. */
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/int8/int8_dot.h"
#include "ops/kernels/int8/quantized.h"
#include "ops/vendor/opencl/opencl_quantize.h"

#include <math.h>
#include <string.h>

typedef struct binary_params {
    int64_t low, high; /* bounds of codes; beyond the type's own they bound nothing */
} binary_params;

static const prn_param attributes[] = {
    PRN_INT(binary_params, low, INT64_MIN), PRN_INT(binary_params, high, INT64_MAX), {0}};

/* A row's variant. */
typedef struct binary_kind {
    bool multiplies;
    uint64_t int_ops; /* of an element */
} binary_kind;

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO };

static prony_status qint8_binary_infer(const prony_context *context)
{
    const prony_value *a = context->inputs[A], *b = prn_input(context, B), *zero = prn_input(context, Y_ZERO);
    prony_shape shape;
    if (!a || !b || !zero) return prony_fail(context, PRONY_INVALID_MODEL, "an operand is missing");
    PRN_TRY(prn_check_type(context, A, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_type(context, B, PRN_TYPES_8_BIT));
    PRN_TRY(prn_quant_scalar_check(context, A_SCALE, A_ZERO, PRN_TYPE(a->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, B_SCALE, B_ZERO, PRN_TYPE(b->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, Y_SCALE, Y_ZERO, PRN_TYPES_8_BIT));
    if (!prn_shape_broadcast(&shape, &a->shape, &b->shape)) {
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s does not broadcast with %s",
                          prn_shape_text(&a->shape, left), prn_shape_text(&b->shape, right));
    }
    const binary_params *params = context->params;
    int32_t least, most;
    prn_set_output(context, 0, zero->dtype, &shape);
    return prn_quant_bounds(context, zero->dtype, params->low, params->high, &least, &most);
}

static prony_status qint8_binary_cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t n = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    uint64_t operations;
    if (!prn_mul_u64(&operations, n, ((const binary_kind *)prn_variant(context))->int_ops) ||
        !prn_add_u64(&cost->int_ops, cost->int_ops, operations))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    return PRONY_OK;
}

/* Codes lie plain or channels last. */
static void qint8_binary_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    prn_broadcast_layouts(context, in, out);
    if (out[0] != PRN_NHWC) in[A] = in[B] = out[0] = PRN_PLAIN;
}

typedef struct job {
    prn_broadcast walk;
    prn_qint8_epilogue finish;
    int32_t bias;
    float scale;
    bool a_signed, multiplies;
    const uint8_t *data[2];
    uint8_t *y;
} job;

/* job->finish points into *job. */
static prony_status job_make(const prony_context *context, job *job)
{
    const binary_params *params = context->params;
    const bool multiplies = ((const binary_kind *)prn_variant(context))->multiplies;
    const prn_quant_scalar a = prn_quant_scalar_get(context, A_SCALE, A_ZERO),
                           b = prn_quant_scalar_get(context, B_SCALE, B_ZERO),
                           y = prn_quant_scalar_get(context, Y_SCALE, Y_ZERO);
    const prony_value *out = context->outputs[0];
    int32_t least, most;
    PRN_TRY(prn_quant_bounds(context, out->dtype, params->low, params->high, &least, &most));
    job->bias = -(int32_t)a.zero;
    job->scale =
        multiplies ? (float)((double)a.scale * (double)b.scale / (double)y.scale) : prn_quant_ratio(a.scale, y.scale);
    job->a_signed = context->inputs[A]->dtype == PRONY_INT8;
    job->multiplies = multiplies;
    job->data[0] = context->inputs[A]->data;
    job->data[1] = context->inputs[B]->data;
    job->y = out->data;
    job->finish = (prn_qint8_epilogue){.bias = &job->bias,
                                       .scale = &job->scale,
                                       .low = (float)least - y.zero,
                                       .high = (float)most - y.zero,
                                       .zero = (int32_t)y.zero,
                                       .y_signed = out->dtype == PRONY_INT8,
                                       .residual_signed = context->inputs[B]->dtype == PRONY_INT8,
                                       .middle_factor = 1.0f,
                                       .residual_factor = prn_quant_ratio(b.scale, y.scale),
                                       .residual_zero = (int32_t)b.zero};
    prn_broadcast_begin(&job->walk, out);
    prn_broadcast_add(&job->walk, context->inputs[A]);
    prn_broadcast_add(&job->walk, context->inputs[B]);
    prn_broadcast_merge(&job->walk);
    return PRONY_OK;
}

static void row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at, int64_t n)
{
    const job *job = argument;
    const prn_qint8_dot *dot = prn_qint8_dot_table();
    uint8_t repeated[2][PRN_QUANT_CHUNK]; /* an operand that is one code for the whole row */
    const uint8_t *from[2];
    bool repeats[2];
    for (int k = 0; k < 2; k++) {
        repeats[k] = job->walk.stride[k][job->walk.rank - 1] == 0;
        from[k] = repeats[k] ? repeated[k] : job->data[k] + offset[k] + at;
        if (repeats[k]) memset(repeated[k], job->data[k][offset[k]], PRN_QUANT_CHUNK);
    }
    const int64_t piece = repeats[0] || repeats[1] ? PRN_QUANT_CHUNK : n;
    for (int64_t i = 0, count; i < n; i += count) {
        count = n - i < piece ? n - i : piece;
        const uint8_t *a = from[0] + (repeats[0] ? 0 : i), *b = from[1] + (repeats[1] ? 0 : i);
        if (job->multiplies)
            dot->multiply(&job->finish, job->a_signed, a, b, job->y + out + i, count);
        else
            dot->add(&job->finish, job->a_signed, a, b, job->y + out + i, count);
    }
}

static prony_status qint8_binary_run_native(const prony_context *context)
{
    job job;
    PRN_TRY(job_make(context, &job));
    prn_broadcast_parallel(&job.walk, context->threads, row, &job);
    return PRONY_OK;
}

/* Each operation is rounded on its own. */
static uint8_t result_of(const job *job, int32_t left, int32_t right)
{
    const prn_qint8_epilogue *f = &job->finish;
    volatile float v = (float)left * job->scale;
    if (job->multiplies) {
        v = (float)(left * right) * job->scale;
    } else {
        volatile float other = (float)right * f->residual_factor;
        v = v + other;
    }
    const float kept = v > f->low ? (v < f->high ? v : f->high) : f->low; /* NaN is low */
    return (uint8_t)((int32_t)rintf(kept) + f->zero);
}

static void row_reference(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at,
                          int64_t n)
{
    const job *job = argument;
    for (int64_t i = 0; i < n; i++) {
        uint8_t code[2];
        for (int k = 0; k < 2; k++)
            code[k] = job->data[k][offset[k] + (at + i) * job->walk.stride[k][job->walk.rank - 1]];
        const int32_t left = (job->a_signed ? (int8_t)code[0] : code[0]) + job->bias;
        const int32_t right = (job->finish.residual_signed ? (int8_t)code[1] : code[1]) - job->finish.residual_zero;
        job->y[out + i] = result_of(job, left, right);
    }
}

static prony_status qint8_binary_run_reference(const prony_context *context)
{
    job job;
    PRN_TRY(job_make(context, &job));
    prn_broadcast_range(&job.walk, 0, job.walk.count, row_reference, &job);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static bool qint8_binary_opencl_supported(const prony_context *context)
{
    return prn_opencl_quantized_supported(context, 1u << A | 1u << B);
}

static prony_status qint8_binary_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    job job;
    PRN_TRY(job_make(context, &job));
    const prn_qint8_epilogue *f = &job.finish;
    const prn_opencl_code_pair pair = {.text =
                                           job.multiplies ? "(a * b) * p.a_factor" : "a * p.a_factor + b * p.b_factor",
                                       .left = A,
                                       .right = B,
                                       .a_zero = (float)-job.bias,
                                       .a_factor = job.scale,
                                       .b_zero = (float)f->residual_zero,
                                       .b_factor = f->residual_factor,
                                       .low = f->low,
                                       .high = f->high,
                                       .zero = (float)f->zero};
    return prn_opencl_code_pair_prepare(context, &pair, out);
}
#endif

// clang-format off
static const prn_kernel add_kernels[] = {
    PRN_OPENCL_ROW("qadd_opencl", PRN_TYPES_8_BIT, qint8_binary_opencl_supported, qint8_binary_opencl_prepare, .host_inputs = 0xf6)
    {.name = "qadd_int8_native", .backend = "native", .layouts = qint8_binary_layouts, .run = qint8_binary_run_native},
    {.name = "qadd_reference", .backend = "reference", .run = qint8_binary_run_reference},
    {0}};
static const prn_kernel mul_kernels[] = {
    PRN_OPENCL_ROW("qmul_opencl", PRN_TYPES_8_BIT, qint8_binary_opencl_supported, qint8_binary_opencl_prepare, .host_inputs = 0xf6)
    {.name = "qmul_int8_native", .backend = "native", .layouts = qint8_binary_layouts, .run = qint8_binary_run_native},
    {.name = "qmul_reference", .backend = "reference", .run = qint8_binary_run_reference},
    {0}};

const prn_op prn_ops_code_binary[] = {
    {.name = "QAdd", .domain = "prony", .since_opset = 1, .inputs = {8, 8}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0xf6,
     .params = attributes, .params_bytes = sizeof(binary_params), .variant = &(const binary_kind){false, 9},
     .infer = qint8_binary_infer, .cost = qint8_binary_cost, .cost_text = "int_ops 9n (two differences and products, sum, quantization)",
     .kernels = add_kernels},
    {.name = "QMul", .domain = "prony", .since_opset = 1, .inputs = {8, 8}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0xf6,
     .params = attributes, .params_bytes = sizeof(binary_params), .variant = &(const binary_kind){true, 8},
     .infer = qint8_binary_infer, .cost = qint8_binary_cost, .cost_text = "int_ops 8n (two differences, two products, quantization)",
     .kernels = mul_kernels},
    {0}};
// clang-format on
