/* Elementwise operators on 8-bit codes, from com.microsoft: QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu
 * and QLinearConcat. Each is dequantize, the operator on floats, quantize.
 *
 * A function of one code alone goes through a table of 256 entries, built in each run from the scales. Invariant:
 * elements are independent, so any cut among threads gives the same codes. */
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/int8/quantized.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl_quantize.h"

static const prn_cast_rule saturating = {.saturate = true};

/* A row's variant: integer operations per element, and what it does between dequantization and quantization. */
typedef struct qlinear_kind {
    uint64_t int_ops;
    prn_binary_id operation;
    prn_quant_map_fn map;
} qlinear_kind;

static prony_status qlinear_cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t n = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    uint64_t operations;
    if (!prn_mul_u64(&operations, n, ((const qlinear_kind *)prn_variant(context))->int_ops) ||
        !prn_add_u64(&cost->int_ops, cost->int_ops, operations))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    return PRONY_OK;
}

/* ---- QLinearAdd, QLinearMul: A, scale, zero point; B, scale, zero point; C's scale, zero point */

enum { A = 0, B = 3, C_SCALE = 6 };

static prony_status binary_infer(const prony_context *context)
{
    const prony_value *a = context->inputs[A], *b = prn_input(context, B);
    prony_shape shape;
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    if (!a || !b) return prony_fail(context, PRONY_INVALID_MODEL, "an operand is missing");
    PRN_TRY(prn_check_type(context, A, PRN_TYPES_8_BIT));
    PRN_TRY(prn_check_type(context, B, PRN_TYPE(a->dtype)));
    for (size_t scale = 1; scale <= 4; scale += 3) {
        PRN_TRY(prn_quant_scalar_check(context, scale, scale + 1, PRN_TYPE(a->dtype)));
    }
    PRN_TRY(prn_quant_scalar_check(context, C_SCALE, C_SCALE + 1, PRN_TYPE(a->dtype)));
    if (!prn_shape_broadcast(&shape, &a->shape, &b->shape)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s does not broadcast with %s",
                          prn_shape_text(&a->shape, left), prn_shape_text(&b->shape, right));
    }
    prn_set_output(context, 0, a->dtype, &shape);
    return PRONY_OK;
}

/* Operands of one shape may lie in any order, as long as it is the same. */
static void binary_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prony_value *a = context->inputs[A], *b = context->inputs[B];
    if (prn_shape_equal(&a->shape, &b->shape) && a->layout == PRN_NHWC && b->layout == PRN_NHWC)
        in[A] = in[B] = out[0] = PRN_NHWC;
}

typedef struct binary_job {
    prn_broadcast walk;
    const void *data[2];
    prn_quant_scalar in[2], out;
    prony_value *y;
    prn_binary_id operation;
} binary_job;

static binary_job binary_job_make(const prony_context *context)
{
    binary_job job = {.y = context->outputs[0], .operation = ((const qlinear_kind *)prn_variant(context))->operation};
    for (size_t k = 0; k < 2; k++) {
        const size_t at = k ? B : A;
        job.data[k] = context->inputs[at]->data;
        job.in[k] = prn_quant_scalar_get(context, at + 1, at + 2);
    }
    job.out = prn_quant_scalar_get(context, C_SCALE, C_SCALE + 1);
    prn_broadcast_begin(&job.walk, job.y);
    prn_broadcast_add(&job.walk, context->inputs[A]);
    prn_broadcast_add(&job.walk, context->inputs[B]);
    prn_broadcast_merge(&job.walk);
    return job;
}

/* Values of operand k for n elements of a row, from `at` on. */
static void binary_load(const binary_job *job, int k, int64_t offset, int64_t at, int64_t n, float *values)
{
    float scale[PRN_QUANT_CHUNK], zero[PRN_QUANT_CHUNK];
    const bool repeats = job->walk.stride[k][job->walk.rank - 1] == 0;
    const int64_t count = repeats ? 1 : n;
    for (int64_t i = 0; i < count; i++) {
        scale[i] = job->in[k].scale;
        zero[i] = job->in[k].zero;
    }
    prn_dequantize_run(values, job->data[k], job->y->dtype, repeats ? offset : offset + at, zero, scale, count);
    for (int64_t i = 1; repeats && i < n; i++) values[i] = values[0];
}

static void binary_row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at, int64_t n)
{
    const binary_job *job = argument;
    float left[PRN_QUANT_CHUNK], right[PRN_QUANT_CHUNK], zero[PRN_QUANT_CHUNK];
    for (int64_t i = 0; i < PRN_QUANT_CHUNK; i++) zero[i] = job->out.zero;
    for (int64_t done = 0; done < n; done += PRN_QUANT_CHUNK) {
        const int64_t count = n - done < PRN_QUANT_CHUNK ? n - done : PRN_QUANT_CHUNK;
        binary_load(job, 0, offset[0], at + done, count, left);
        binary_load(job, 1, offset[1], at + done, count, right);
        prn_vec()->vv[job->operation](left, left, right, count);
        prn_vec()->vs[PRN_BINARY_DIV](left, left, job->out.scale, count);
        prn_quantize_run(job->y->data, job->y->dtype, out + done, left, zero, count, &saturating);
    }
}

static prony_status binary_native(const prony_context *context)
{
    binary_job job = binary_job_make(context);
    prn_broadcast_parallel(&job.walk, context->threads, binary_row, &job);
    return PRONY_OK;
}

static void binary_row_reference(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at,
                                 int64_t n)
{
    const binary_job *job = argument;
    for (int64_t i = 0; i < n; i++) {
        float value[2];
        for (int k = 0; k < 2; k++) {
            const int64_t index = offset[k] + (at + i) * job->walk.stride[k][job->walk.rank - 1];
            value[k] = prn_dequantize_one(job->data[k], job->y->dtype, index, job->in[k].zero, job->in[k].scale);
        }
        const float result = job->operation == PRN_BINARY_ADD ? value[0] + value[1] : value[0] * value[1];
        prn_quantize_one(job->y->data, job->y->dtype, out + i, result / job->out.scale, job->out.zero, &saturating);
    }
}

static prony_status binary_reference(const prony_context *context)
{
    binary_job job = binary_job_make(context);
    prn_broadcast_range(&job.walk, 0, job.walk.count, binary_row_reference, &job);
    return PRONY_OK;
}

/* ---- tables */

typedef struct table_job {
    uint8_t table[256];
    const uint8_t *x;
    uint8_t *y;
    int64_t part_row, whole_row; /* runs of x, and where they start in y */
} table_job;

static void table_range(void *argument, int64_t begin, int64_t end)
{
    const table_job *job = argument;
    while (begin < end) {
        const int64_t row = begin / job->part_row, at = begin % job->part_row;
        const int64_t n = job->part_row - at < end - begin ? job->part_row - at : end - begin;
        uint8_t *y = job->y + row * job->whole_row + at;
        for (int64_t i = 0; i < n; i++) y[i] = job->table[job->x[begin + i]];
        begin += n;
    }
}

/* ---- QLinearSigmoid, QLinearLeakyRelu: X, scale, zero point; Y's scale, zero point */

typedef struct unary_params {
    float alpha;
} unary_params;

static const prn_param leaky_relu_attributes[] = {PRN_FLOAT(unary_params, alpha, 0.01f), {0}};

static prony_status unary_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_8_BIT));
    PRN_TRY(prn_quant_scalar_check(context, 1, 2, PRN_TYPE(context->inputs[0]->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, 3, 4, PRN_TYPE(context->inputs[0]->dtype)));
    return prn_infer_same(context);
}

static void sigmoid_map(const void *params, float *values, int64_t n)
{
    (void)params;
    prn_vec()->map[PRN_MAP_SIGMOID](values, values, n, 0.0f, 0.0f);
}

static void leaky_relu_map(const void *params, float *values, int64_t n)
{
    prn_vec()->map[PRN_MAP_LEAKY_RELU](values, values, n, ((const unary_params *)params)->alpha, 0.0f);
}

/* Codes one by one, wherever they lie. */
static void unary_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    if (context->inputs[0]->layout == PRN_NHWC) in[0] = out[0] = PRN_NHWC;
}

static prony_status unary_native(const prony_context *context)
{
    const prn_quant_map_fn map = ((const qlinear_kind *)prn_variant(context))->map;
    const prony_value *x = context->inputs[0];
    const int64_t count = prony_shape_numel(&x->shape);
    table_job job = {.x = x->data, .y = context->outputs[0]->data, .part_row = count, .whole_row = count};
    prn_quant_table_build(job.table, x->dtype, prn_quant_scalar_get(context, 1, 2), x->dtype,
                          prn_quant_scalar_get(context, 3, 4), map, context->params);
    prn_parallel_range(context->threads, count, PRN_QUANT_GRAIN, table_range, &job);
    return PRONY_OK;
}

static prony_status unary_reference(const prony_context *context)
{
    const prn_quant_map_fn map = ((const qlinear_kind *)prn_variant(context))->map;
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    const prn_quant_scalar from = prn_quant_scalar_get(context, 1, 2), to = prn_quant_scalar_get(context, 3, 4);
    for (int64_t i = 0; i < prony_shape_numel(&x->shape) && !prn_cancelled_at(i); i++) {
        float value = prn_dequantize_one(x->data, x->dtype, i, from.zero, from.scale);
        map(context->params, &value, 1);
        prn_quantize_one(y->data, y->dtype, i, value / to.scale, to.zero, &saturating);
    }
    return PRONY_OK;
}

/* ---- QLinearConcat: Y's scale, zero point; then tensor, scale, zero point of each part */

typedef struct concat_params {
    int64_t axis;
} concat_params;

static const prn_param concat_attributes[] = {PRN_INT_REQUIRED(concat_params, axis), {0}};

enum { FIRST = 2, EACH = 3, MOST_PARTS = 10 };
#define CONCAT_TENSORS 0x24924924u /* inputs 2, 5, 8 … below 32 */
#define FAR 1048576.0f             /* beyond it, every result is at an end of the range */

/* Inputs are scale, zero point, then triples of tensor, scale and zero point; tensors agree except on the axis. */
static prony_status qlinear_concat_infer(const prony_context *context)
{
    int64_t axis = ((const concat_params *)context->params)->axis;
    const prony_value *first = prn_input(context, FIRST), *zero = prn_input(context, 1);
    if ((context->input_count - FIRST) % EACH != 0 || !first || !zero)
        return prony_fail(context, PRONY_INVALID_MODEL, "%zu inputs, wanted 2 and then 3 per part",
                          context->input_count);
    PRN_TRY(prn_quant_scalar_check(context, 0, 1, PRN_TYPES_8_BIT));
    prony_shape shape = first->shape;
    if (!prn_axis_normalize(&axis, shape.rank))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, shape.rank);
    shape.dim[axis] = 0;
    for (size_t i = FIRST; i < context->input_count; i += EACH) {
        const prony_value *part = context->inputs[i];
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        if (!part) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
        PRN_TRY(prn_check_type(context, i, PRN_TYPE(zero->dtype)));
        PRN_TRY(prn_quant_scalar_check(context, i + 1, i + 2, PRN_TYPE(zero->dtype)));
        prony_shape other = part->shape;
        if (other.rank == shape.rank) other.dim[axis] = first->shape.dim[axis];
        if (!prn_shape_equal(&other, &first->shape)) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, which does not join %s on axis %lld", i,
                              prn_value_text(part, left), prn_value_text(first, right), (long long)axis);
        }
        if (__builtin_add_overflow(shape.dim[axis], part->shape.dim[axis], &shape.dim[axis]))
            return prony_fail(context, PRONY_LIMIT, "the output is too large");
    }
    prn_set_output(context, 0, zero->dtype, &shape);
    return PRONY_OK;
}

/* Hands each part with its place to `store`. */
static prony_status qlinear_concat_run(const prony_context *context,
                                       void (*store)(const prony_context *context, size_t input, prn_quant_scalar to,
                                                     table_job *job))
{
    const prony_value *y = context->outputs[0];
    const prn_quant_scalar to = prn_quant_scalar_get(context, 0, 1);
    int64_t axis = ((const concat_params *)context->params)->axis, begin = 0;
    if (axis < 0) axis += y->shape.rank;
    const int64_t inner = prn_shape_count(&y->shape, (int)axis + 1, y->shape.rank);
    for (size_t i = FIRST; i < context->input_count; i += EACH) {
        const prony_value *part = context->inputs[i];
        table_job job = {.x = part->data,
                         .y = (uint8_t *)y->data + begin * inner,
                         .part_row = part->shape.dim[axis] * inner,
                         .whole_row = y->shape.dim[axis] * inner};
        begin += part->shape.dim[axis];
        if (prony_shape_numel(&part->shape) > 0) store(context, i, to, &job);
    }
    return PRONY_OK;
}

static void store_part(const prony_context *context, size_t input, prn_quant_scalar to, table_job *job)
{
    const prony_value *part = context->inputs[input];
    prn_quant_table_build(job->table, part->dtype, prn_quant_scalar_get(context, input + 1, input + 2), part->dtype, to,
                          NULL, NULL);
    prn_parallel_range(context->threads, prony_shape_numel(&part->shape), PRN_QUANT_GRAIN, table_range, job);
}

static void store_part_reference(const prony_context *context, size_t input, prn_quant_scalar to, table_job *job)
{
    const prony_value *part = context->inputs[input];
    const prn_quant_scalar from = prn_quant_scalar_get(context, input + 1, input + 2);
    for (int64_t i = 0; i < prony_shape_numel(&part->shape) && !prn_cancelled_at(i); i++) {
        const float value = prn_dequantize_one(job->x, part->dtype, i, from.zero, from.scale);
        prn_quantize_one(job->y, part->dtype, i / job->part_row * job->whole_row + i % job->part_row, value / to.scale,
                         to.zero, &saturating);
    }
}

static prony_status qlinear_concat_run_native(const prony_context *context)
{
    return qlinear_concat_run(context, store_part);
}

static prony_status qlinear_concat_run_reference(const prony_context *context)
{
    return qlinear_concat_run(context, store_part_reference);
}

/* ---- OpenCL: parameters are constants of the host */

#ifdef PRN_HAVE_OPENCL
static bool binary_opencl_supported(const prony_context *context)
{
    return prn_opencl_quantized_supported(context, 1u << A | 1u << B);
}

static prony_status binary_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prn_quant_scalar a = prn_quant_scalar_get(context, A + 1, A + 2),
                           b = prn_quant_scalar_get(context, B + 1, B + 2),
                           y = prn_quant_scalar_get(context, C_SCALE, C_SCALE + 1);
    const bool adds = ((const qlinear_kind *)prn_variant(context))->operation == PRN_BINARY_ADD;
    const prn_opencl_code_pair pair = {.text = adds ? "divided(a * p.a_factor + b * p.b_factor, p.y_scale)"
                                                    : "divided((a * p.a_factor) * (b * p.b_factor), p.y_scale)",
                                       .left = A,
                                       .right = B,
                                       .a_zero = a.zero,
                                       .a_factor = a.scale,
                                       .b_zero = b.zero,
                                       .b_factor = b.scale,
                                       .y_scale = y.scale,
                                       .low = -FAR,
                                       .high = FAR,
                                       .zero = y.zero};
    return prn_opencl_code_pair_prepare(context, &pair, out);
}

static bool unary_opencl_supported(const prony_context *context)
{
    return prn_opencl_quantized_supported(context, 1);
}

static prony_status unary_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prony_value *x = context->inputs[0];
    const int64_t count = prony_shape_numel(&x->shape);
    uint8_t table[256];
    prn_quant_table_build(table, x->dtype, prn_quant_scalar_get(context, 1, 2), x->dtype,
                          prn_quant_scalar_get(context, 3, 4), ((const qlinear_kind *)prn_variant(context))->map,
                          context->params);
    const prn_opencl_look_up run = {.table = table, .part = count, .whole = count};
    return prn_opencl_look_up_prepare(context, &run, 1, out);
}

/* Ten tensors at most: a bit of the masks for each input. Tensors without elements stay on the host. */
static bool qlinear_concat_opencl_supported(const prony_context *context)
{
    return prn_opencl_quantized_supported(context, CONCAT_TENSORS);
}

static prony_status qlinear_concat_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    uint8_t tables[MOST_PARTS][256];
    prn_opencl_look_up runs[MOST_PARTS];
    const prony_value *y = context->outputs[0];
    int64_t axis = ((const concat_params *)context->params)->axis, begin = 0;
    if (axis < 0) axis += y->shape.rank;
    const int64_t inner = prn_shape_count(&y->shape, (int)axis + 1, y->shape.rank);
    size_t count = 0;
    for (size_t i = FIRST; i < context->input_count; i += EACH, count++) {
        const prony_value *part = context->inputs[i];
        prn_quant_table_build(tables[count], part->dtype, prn_quant_scalar_get(context, i + 1, i + 2), part->dtype,
                              prn_quant_scalar_get(context, 0, 1), NULL, NULL);
        runs[count] = (prn_opencl_look_up){.table = tables[count],
                                           .input = i,
                                           .part = part->shape.dim[axis] * inner,
                                           .whole = y->shape.dim[axis] * inner,
                                           .to = begin * inner};
        begin += part->shape.dim[axis];
    }
    return prn_opencl_look_up_prepare(context, runs, count, out);
}
#endif

/* ---- rows */

// clang-format off
static const prn_kernel add_kernels[] = {
    PRN_OPENCL_ROW("qlinear_add_opencl", PRN_TYPES_8_BIT, binary_opencl_supported, binary_opencl_prepare, .host_inputs = 0xf6)
    {.name = "qlinear_add_native", .backend = "native", .layouts = binary_layouts, .run = binary_native},
    {.name = "qlinear_add_reference", .backend = "reference", .run = binary_reference},
    {0}};
static const prn_kernel mul_kernels[] = {
    PRN_OPENCL_ROW("qlinear_mul_opencl", PRN_TYPES_8_BIT, binary_opencl_supported, binary_opencl_prepare, .host_inputs = 0xf6)
    {.name = "qlinear_mul_native", .backend = "native", .layouts = binary_layouts, .run = binary_native},
    {.name = "qlinear_mul_reference", .backend = "reference", .run = binary_reference},
    {0}};
static const prn_kernel sigmoid_kernels[] = {
    PRN_OPENCL_ROW("qlinear_sigmoid_opencl", PRN_TYPES_8_BIT, unary_opencl_supported, unary_opencl_prepare, .host_inputs = 0x1e)
    {.name = "qlinear_sigmoid_native", .backend = "native", .layouts = unary_layouts, .run = unary_native},
    {.name = "qlinear_sigmoid_reference", .backend = "reference", .run = unary_reference},
    {0}};
static const prn_kernel leaky_relu_kernels[] = {
    PRN_OPENCL_ROW("qlinear_leaky_relu_opencl", PRN_TYPES_8_BIT, unary_opencl_supported, unary_opencl_prepare, .host_inputs = 0x1e)
    {.name = "qlinear_leaky_relu_native", .backend = "native", .layouts = unary_layouts, .run = unary_native},
    {.name = "qlinear_leaky_relu_reference", .backend = "reference", .run = unary_reference},
    {0}};
static const prn_kernel concat_kernels[] = {
    PRN_OPENCL_ROW("qlinear_concat_opencl", PRN_TYPE_ANY, qlinear_concat_opencl_supported, qlinear_concat_opencl_prepare,
                   .host_inputs = ~CONCAT_TENSORS)
    {.name = "qlinear_concat_native", .backend = "native", .run = qlinear_concat_run_native},
    {.name = "qlinear_concat_reference", .backend = "reference", .run = qlinear_concat_run_reference},
    {0}};

const prn_op prn_ops_qlinear[] = {
    {.name = "QLinearAdd", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 8}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0xf6,
     .variant = &(const qlinear_kind){10, .operation = PRN_BINARY_ADD},
     .infer = binary_infer, .cost = qlinear_cost,
     .cost_text = "int_ops 10n (two dequantizations, one operation, quantization)", .kernels = add_kernels},
    {.name = "QLinearMul", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 8}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0xf6,
     .variant = &(const qlinear_kind){10, .operation = PRN_BINARY_MUL},
     .infer = binary_infer, .cost = qlinear_cost,
     .cost_text = "int_ops 10n (two dequantizations, one operation, quantization)", .kernels = mul_kernels},
    {.name = "QLinearSigmoid", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 5},
     .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 0x1e,
     .variant = &(const qlinear_kind){11, .map = sigmoid_map},
     .infer = unary_infer, .cost = qlinear_cost, .cost_text = "int_ops 11n (dequantization 2, sigmoid 4, quantization 5)",
     .kernels = sigmoid_kernels},
    {.name = "QLinearLeakyRelu", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 5},
     .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 0x1e,
     .params = leaky_relu_attributes, .params_bytes = sizeof(unary_params),
     .variant = &(const qlinear_kind){9, .map = leaky_relu_map},
     .infer = unary_infer, .cost = qlinear_cost, .cost_text = "int_ops 9n (dequantization 2, leaky relu 2, quantization 5)",
     .kernels = leaky_relu_kernels},
    {.name = "QLinearConcat", .domain = "com.microsoft", .since_opset = 1, .inputs = {5, -1},
     .flags = PRN_OP_INT_WEIGHTS, .non_weight_inputs = 3,
     .params = concat_attributes, .params_bytes = sizeof(concat_params),
     .variant = &(const qlinear_kind){7, .map = NULL},
     .infer = qlinear_concat_infer, .cost = qlinear_cost, .cost_text = "int_ops 7n (dequantization 2, quantization 5)",
     .kernels = concat_kernels},
    {0}};
// clang-format on
