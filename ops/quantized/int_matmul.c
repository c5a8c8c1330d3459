/* Products of quantized matrices:
 *
 *   MatMulInteger            Y = S, int32
 *   QLinearMatMul            Y = quantized(S a_scale b_scale / y_scale)
 *   MatMulIntegerToFloat     Y = S a_scale b_scale + bias
 *   DynamicQuantizeMatMul    the same, A quantized as DynamicQuantizeLinear does
 *   QGemm                    Y = (S + C) alpha a_scale b_scale, quantized if y_zero_point is given
 *
 * where S is the integer product of int_gemm.h. An operator is a row of input numbers; one description serves all.
 * prony::QGemm, which rewriting makes, keeps the codes within bounds of its own.
 *
 * If B is constant and its codes are signed bytes, the first kernel multiplies bytes (qint8_matmul.c). Otherwise the
 * state is B's panels of 16 bits, owned by the model. */
#include "ops/quantized/int_matmul.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/vector/vec.h"
#include "ops/vendor/opencl/opencl.h"

#include <string.h>

enum { NONE = PRN_INT_MATMUL_NONE };
typedef prn_int_matmul_inputs roles;

static const roles integer_roles = {0, NONE, 2, 1, NONE, 3, NONE, NONE, NONE, NONE};
static const roles qlinear_roles = {0, 1, 2, 3, 4, 5, 6, 7, NONE, NONE};
static const roles to_float_roles = {0, 2, 4, 1, 3, 5, NONE, NONE, 6, NONE};
static const roles dynamic_roles = {0, NONE, NONE, 1, 2, 3, NONE, NONE, 4, NONE};
static const roles gemm_roles = {0, 1, 2, 3, 4, 5, 7, 8, NONE, 6};
static const roles bounded_roles = {0, 1, 2, 3, 4, 5, 7, 8, NONE, 6};

prn_int_matmul_inputs prn_int_matmul_inputs_of(const prony_context *context)
{
    return *(const roles *)prn_variant(context);
}

static bool is_gemm(const roles *at)
{
    return at == &gemm_roles || at == &bounded_roles;
}

typedef struct gemm_params {
    float alpha;
    int64_t transA, transB;
    int64_t low, high; /* bounds of the codes, of prony::QGemm */
} gemm_params;

static const prn_param gemm_attributes[] = {
    PRN_FLOAT(gemm_params, alpha, 1.0f), PRN_INT(gemm_params, transA, 0), PRN_INT(gemm_params, transB, 0), {0}};
static const prn_param bounded_attributes[] = {
    PRN_FLOAT(gemm_params, alpha, 1.0f),  PRN_INT(gemm_params, transA, 0),       PRN_INT(gemm_params, transB, 0),
    PRN_INT(gemm_params, low, INT64_MIN), PRN_INT(gemm_params, high, INT64_MAX), {0}};

typedef prn_int_matmul matmul;

/* ---- description */

/* Rank 1 as the matrix that it stands for. */
static prony_shape matrix_shape(const prony_shape *shape, bool left)
{
    if (shape->rank != 1) return *shape;
    const int64_t extent = shape->dim[0];
    return prn_shape_make(2, left ? (const int64_t[]){1, extent} : (const int64_t[]){extent, 1});
}

static prony_status describe_gemm(const prony_context *context, const roles *at, matmul *out)
{
    const gemm_params *params = context->params;
    const prony_value *a = context->inputs[at->a], *b = context->inputs[at->b];
    const bool ta = params->transA != 0, tb = params->transB != 0;
    /* A rewritten product may be a stack of matrices by one. */
    PRN_TRY(prn_check_rank(context, at->a, 2, at == &bounded_roles && !ta ? PRONY_MAX_RANK : 2));
    PRN_TRY(prn_check_rank(context, at->b, 2, 2));
    prony_value left = *a, right = *b;
    if (ta) left.shape = prn_shape_make(2, (const int64_t[]){a->shape.dim[1], a->shape.dim[0]});
    if (tb) right.shape = prn_shape_make(2, (const int64_t[]){b->shape.dim[1], b->shape.dim[0]});
    PRN_TRY(prn_int_gemm_matmul(context, &left, &right, &out->product, &out->y_shape));
    prn_matmul_desc *shape = &out->product.shape;
    if (ta) {
        shape->rs_a = 1;
        shape->cs_a = shape->m;
    }
    if (tb) {
        shape->rs_b = 1;
        shape->cs_b = shape->k;
    }
    out->alpha = params->alpha;
    return PRONY_OK;
}

static prony_status read_lines(const prony_context *context, const roles *at, matmul *out)
{
    const prn_matmul_desc *shape = &out->product.shape;
    prony_shape a = matrix_shape(&context->inputs[at->a]->shape, true);
    prony_shape b = matrix_shape(&context->inputs[at->b]->shape, false);
    if (at->c != NONE) { /* as if they were not transposed */
        a = prn_shape_make(2, (const int64_t[]){shape->m, shape->k});
        b = prn_shape_make(2, (const int64_t[]){shape->k, shape->n});
    }
    PRN_TRY(prn_quant_lines_read(context, at->a_scale, PRN_TYPES_SCALE, &a, a.rank - 2, &out->a_scale));
    PRN_TRY(prn_quant_lines_read(context, at->b_scale, PRN_TYPES_SCALE, &b, b.rank - 1, &out->b_scale));
    PRN_TRY(
        prn_quant_lines_read(context, at->a_zero, PRN_TYPE(out->product.a_type), &a, a.rank - 2, &out->product.a_zero));
    return prn_quant_lines_read(context, at->b_zero, PRN_TYPE(out->product.b_type), &b, b.rank - 1,
                                &out->product.b_zero);
}

/* Bias and C: a bias has one entry per column, and C broadcasts to the output, the same for every matrix of a stack. */
static prony_status read_added(const prony_context *context, const roles *at, matmul *out)
{
    const prn_matmul_desc *shape = &out->product.shape;
    char text[PRN_SHAPE_TEXT_BYTES];
    out->bias = prn_input(context, at->bias);
    out->c = prn_input(context, at->c);
    if (out->bias) {
        PRN_TRY(prn_check_type(context, at->bias, PRN_TYPES_SCALE));
        if (out->bias->shape.rank != 1 || out->bias->shape.dim[0] != shape->n) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "bias is %s, wanted [%lld]",
                              prn_value_text(out->bias, text), (long long)shape->n);
        }
    }
    if (out->c) {
        prony_shape both;
        int64_t stride[PRONY_MAX_RANK];
        PRN_TRY(prn_check_type(context, at->c, PRN_TYPE(PRONY_INT32)));
        const bool of_rows = out->y_shape.rank > 2 && out->c->shape.rank > 1; /* not the same for all of a stack */
        if (of_rows || !prn_shape_broadcast(&both, &out->c->shape, &out->y_shape) ||
            !prn_shape_equal(&both, &out->y_shape)) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "C is %s, which does not broadcast to [%lld, %lld]",
                              prn_value_text(out->c, text), (long long)shape->m, (long long)shape->n);
        }
        prn_shape_broadcast_strides(&out->c->shape, &out->y_shape, stride);
        out->rs_c = stride[out->y_shape.rank - 2];
        out->c_col = stride[out->y_shape.rank - 1];
    }
    return PRONY_OK;
}

/* DynamicQuantizeMatMul's A, as it will be once it is quantized. */
static void describe_dynamic(matmul *out)
{
    const prony_shape scalar = prn_shape_scalar();
    out->product.a_type = PRONY_UINT8;
    out->product.shape.a = NULL;
    out->scale_value = (prony_value){.dtype = PRONY_FLOAT32, .shape = scalar, .data = &out->scale};
    out->zero_value = (prony_value){.dtype = PRONY_UINT8, .shape = scalar, .data = &out->zero};
    out->a_scale.value = &out->scale_value;
    out->product.a_zero.value = &out->zero_value;
}

static prony_status read_result(const prony_context *context, const roles *at, matmul *out)
{
    const prony_value *y_scale = prn_input(context, at->y_scale), *y_zero = prn_input(context, at->y_zero);
    out->out = prn_output(context, 0);
    out->integers = at == &integer_roles;
    out->quantized = y_zero != NULL;
    if (!y_scale && !y_zero) return PRONY_OK;
    if (!y_zero) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu (the zero point) is missing", at->y_zero);
    PRN_TRY(prn_quant_scalar_check(context, at->y_scale, at->y_zero,
                                   PRN_TYPES_8_BIT | (at == &qlinear_roles ? PRN_TYPES_FLOAT8 : 0)));
    out->y_known = y_scale->data && y_zero->data;
    if (out->y_known) out->y = prn_quant_scalar_get(context, at->y_scale, at->y_zero);
    if (at != &bounded_roles) return PRONY_OK;
    const gemm_params *params = context->params;
    int32_t least, most;
    PRN_TRY(prn_quant_bounds(context, y_zero->dtype, params->low, params->high, &least, &most));
    out->low = (float)least - out->y.zero;
    out->high = (float)most - out->y.zero;
    return PRONY_OK;
}

static bool is_float8(const prony_value *value)
{
    return prn_dtype_is_float(value->dtype);
}

/* The problem that a quantised product states, whichever operator's roles apply; every operand is checked before
 * anything reads it. */
prony_status prn_int_matmul_describe(const prony_context *context, matmul *out)
{
    const roles *at = prn_variant(context);
    *out = (matmul){.alpha = 1.0f, .low = -INFINITY, .high = INFINITY};
    const bool dynamic = at == &dynamic_roles;
    out->dynamic = dynamic;
    const size_t needed[] = {at->a, at->b, at->a_scale, at->b_scale};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (needed[i] != NONE && !prn_input(context, needed[i]))
            return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", needed[i]);
    }
    const uint32_t codes = at == &qlinear_roles ? PRN_TYPES_8_BIT | PRN_TYPES_FLOAT8 : PRN_TYPES_8_BIT;
    PRN_TRY(prn_check_type(context, at->a, dynamic ? PRN_TYPE_F32 : codes));
    PRN_TRY(prn_check_type(context, at->b, codes));
    if (!dynamic && is_float8(context->inputs[at->a]) != is_float8(context->inputs[at->b]))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "a product of %s and %s",
                          prony_dtype_name(context->inputs[at->a]->dtype),
                          prony_dtype_name(context->inputs[at->b]->dtype));
    if (is_gemm(at)) {
        PRN_TRY(describe_gemm(context, at, out));
    } else {
        PRN_TRY(
            prn_int_gemm_matmul(context, context->inputs[at->a], context->inputs[at->b], &out->product, &out->y_shape));
    }
    PRN_TRY(read_lines(context, at, out));
    if (dynamic) describe_dynamic(out);
    PRN_TRY(read_added(context, at, out));
    PRN_TRY(read_result(context, at, out));
    if (out->a_scale.step == 0 && out->product.a_zero.step == 0) prn_matmul_fold(&out->product.shape);
    out->product.store = prn_int_matmul_store;
    out->product.argument = out;
    return PRONY_OK;
}

/* ---- results */

static void add_c(const matmul *m, int64_t row, int64_t column, int64_t n, int32_t *sums)
{
    const int32_t *c = (const int32_t *)m->c->data + row * m->rs_c + column * m->c_col;
    for (int64_t j = 0; j < n; j++) sums[j] = (int32_t)((uint32_t)sums[j] + (uint32_t)c[j * m->c_col]);
}

enum { MOST_SUMS = 64 };

void prn_int_matmul_scale(const matmul *m, int64_t item, int64_t row, int64_t column, int64_t n, float *scale)
{
    const prn_matmul_desc *shape = &m->product.shape;
    const int64_t a_matrix = prn_int_gemm_a_matrix(shape, item), b_matrix = prn_int_gemm_b_matrix(shape, item);
    const float factor = m->alpha * prn_quant_lines_at(&m->a_scale, a_matrix, row);
    for (int64_t j = 0; j < n; j++) {
        const float other = prn_quant_lines_at(&m->b_scale, b_matrix, column + j);
        scale[j] = m->quantized ? prn_quant_factor(factor, other, m->y.scale) : factor * other;
    }
}

/* Stores scaled sums from element `at` of the output on. */
static void store_values(const matmul *m, int64_t at, int64_t column, int64_t n, float *values)
{
    static const prn_cast_rule rule = {.saturate = true};
    float zero[MOST_SUMS];
    const float *bias = m->bias && m->bias->dtype == PRONY_FLOAT32 ? (const float *)m->bias->data + column : NULL;
    for (int64_t j = 0; bias && j < n; j++) values[j] += bias[j];
    for (int64_t j = 0; m->bias && !bias && j < n; j++) values[j] += prn_quant_get(m->bias, column + j);
    if (m->quantized) {
        for (int64_t j = 0; j < n; j++) zero[j] = m->y.zero;
        for (int64_t j = 0; j < n; j++) values[j] = values[j] > m->low ? values[j] : m->low; /* NaN is low */
        for (int64_t j = 0; j < n; j++) values[j] = values[j] < m->high ? values[j] : m->high;
        prn_quantize_run(m->out->data, m->out->dtype, at, values, zero, n, &rule);
    } else {
        prn_cast(m->out->data, m->out->dtype, at, values, PRONY_FLOAT32, 0, n, &rule);
    }
}

static int64_t output_index(const matmul *m, int64_t item, int64_t row, int64_t column)
{
    int64_t a, b, c;
    prn_matmul_offsets(&m->product.shape, item, &a, &b, &c);
    return c + row * m->product.shape.rs_c + column;
}

void prn_int_matmul_store_scaled(const matmul *m, int64_t item, int64_t row, int64_t column, int64_t n, int32_t *sums,
                                 const float *scale)
{
    const int64_t at = output_index(m, item, row, column);
    float values[MOST_SUMS];
    if (m->c) add_c(m, row, column, n, sums);
    if (m->integers) {
        memcpy((int32_t *)m->out->data + at, sums, (size_t)n * sizeof *sums);
        return;
    }
    prn_quant_simd_table()->scale_i32(values, sums, scale, n);
    store_values(m, at, column, n, values);
}

void prn_int_matmul_store(const void *argument, int64_t item, int64_t row, int64_t column, int64_t n, int32_t *sums)
{
    const matmul *m = argument;
    float scale[MOST_SUMS];
    if (!m->integers) prn_int_matmul_scale(m, item, row, column, n, scale);
    prn_int_matmul_store_scaled(m, item, row, column, n, sums, scale);
}

/* QLinearMatMul of 8-bit floats, whose products are summed in double; zero points are 0 by definition. */
static void multiply_floats(const matmul *m)
{
    const prn_matmul_desc *s = &m->product.shape;
    for (int64_t sum_at = 0; sum_at < s->items * s->m * s->n; sum_at++) {
        const int64_t item = sum_at / (s->m * s->n), row = sum_at / s->n % s->m, column = sum_at % s->n;
        int64_t a, b, c;
        double sum = 0.0;
        float scale;
        if (s->k > 256 ? prn_cancelled() : prn_cancelled_at(sum_at)) return;
        prn_matmul_offsets(s, item, &a, &b, &c);
        for (int64_t k = 0; k < s->k; k++) {
            sum += (double)prn_dequantize_one(s->a, m->product.a_type, a + row * s->rs_a + k * s->cs_a, 0.0f, 1.0f) *
                   (double)prn_dequantize_one(s->b, m->product.b_type, b + k * s->rs_b + column * s->cs_b, 0.0f, 1.0f);
        }
        prn_int_matmul_scale(m, item, row, column, 1, &scale);
        float value = (float)sum * scale;
        store_values(m, output_index(m, item, row, column), column, 1, &value);
    }
}

/* ---- what the operators share */

static prony_status int_matmul_infer(const prony_context *context)
{
    const roles *at = prn_variant(context);
    matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    prony_dtype type = PRONY_FLOAT32;
    if (m.integers) type = PRONY_INT32;
    if (at == &to_float_roles) type = m.a_scale.value->dtype;
    if (m.quantized) type = context->inputs[at->y_zero]->dtype;
    prn_set_output(context, 0, type, &m.y_shape);
    return PRONY_OK;
}

static prony_status int_matmul_cost(const prony_context *context, prony_cost *out)
{
    const roles *at = prn_variant(context);
    matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    const bool integer = !is_float8(context->inputs[at->b]);
    PRN_TRY(prn_int_gemm_cost(context, &m.product.shape, integer, out));
    prn_cost_fact(out, "bias", m.bias || m.c);
    const uint64_t outputs = (uint64_t)prony_shape_numel(&m.y_shape);
    if (m.c) out->int_ops += outputs;
    if (at == &dynamic_roles) {
        const uint64_t inputs = (uint64_t)prony_shape_numel(&context->inputs[at->a]->shape);
        PRN_TRY(prn_cost_elementwise(context, out, inputs, 7, 1));
    }
    if (m.integers) return PRONY_OK;
    return prn_cost_elementwise(context, out, outputs, m.quantized ? 5 : m.bias ? 2 : 1, 0);
}

static bool supported(const prony_context *context)
{
    const roles *at = prn_variant(context);
    return !is_float8(context->inputs[at->b]);
}

static prony_status int_matmul_prepare(const prony_context *context, prn_prepared *out)
{
    const roles *at = prn_variant(context);
    matmul m;
    const int16_t *panels = NULL;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    PRN_TRY(prn_int_pack_panels(context, &m.product, &panels));
    out->state = (void *)(uintptr_t)panels;
    if (at == &dynamic_roles) out->scratch_bytes = (size_t)prony_shape_numel(&context->inputs[at->a]->shape);
    return PRONY_OK;
}

void prn_int_matmul_quantize_a(const prony_context *context, matmul *m, bool reference)
{
    const prony_value *a = context->inputs[dynamic_roles.a];
    const int64_t count = prony_shape_numel(&a->shape);
    const prn_quant_scalar quant = prn_quantize_dynamic_parameters(context->threads, a->data, count);
    m->scale = quant.scale;
    m->zero = (uint8_t)quant.zero;
    m->product.shape.a = context->scratch;
    if (!reference) {
        prn_quantize_dynamic_codes(context->threads, a->data, count, quant, context->scratch);
        return;
    }
    const prn_cast_rule rule = {.saturate = true};
    for (int64_t i = 0; i < count; i++) {
        prn_quantize_one(context->scratch, PRONY_UINT8, i, ((const float *)a->data)[i] / quant.scale, quant.zero,
                         &rule);
    }
}

static void int_matmul_facts(const prony_context *context, prony_cost *out)
{
    matmul m;
    if (prn_int_matmul_describe(context, &m) == PRONY_OK)
        prn_int_gemm_facts(&m.product.shape, context->state != NULL, out);
}

static prony_status int_matmul_run(const prony_context *context)
{
    const roles *at = prn_variant(context);
    matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    if (at == &dynamic_roles) prn_int_matmul_quantize_a(context, &m, false);
    m.product.b_panels = context->state;
    prn_int_gemm_run(context->threads, &m.product);
    return PRONY_OK;
}

static prony_status int_matmul_prepare_reference(const prony_context *context, prn_prepared *out)
{
    const roles *at = prn_variant(context);
    if (at == &dynamic_roles) out->scratch_bytes = (size_t)prony_shape_numel(&context->inputs[at->a]->shape);
    return PRONY_OK;
}

static prony_status int_matmul_run_reference(const prony_context *context)
{
    const roles *at = prn_variant(context);
    matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    if (at == &dynamic_roles) prn_int_matmul_quantize_a(context, &m, true);
    if (is_float8(context->inputs[at->b])) {
        multiply_floats(&m);
    } else {
        prn_int_gemm_reference(&m.product);
    }
    return PRONY_OK;
}

/* ---- rows */

#define BYTES(op)                                                                                                      \
    {.name = op "_int8_native",                                                                                        \
     .backend = "native",                                                                                              \
     .supported = prn_qint8_matmul_supported,                                                                          \
     .prepare = prn_qint8_matmul_prepare,                                                                              \
     .run = prn_qint8_matmul_run,                                                                                      \
     .release = prn_qint8_matmul_release,                                                                              \
     .facts = prn_qint8_matmul_facts}

// clang-format off
static const prn_kernel matmul_integer_kernels[] = {
    PRN_OPENCL_ROW("matmul_integer_opencl", PRN_TYPES_8_BIT, prn_int_matmul_opencl_supported, prn_int_matmul_opencl_prepare, .host_inputs = 0)
    BYTES("matmul_integer"),
    {.name = "matmul_integer_native", .backend = "native", .supported = supported, .prepare = int_matmul_prepare, .run = int_matmul_run,
     .facts = int_matmul_facts},
    {.name = "matmul_integer_reference", .backend = "reference", .prepare = int_matmul_prepare_reference, .run = int_matmul_run_reference},
    {0}};
static const prn_kernel qlinear_matmul_kernels[] = {
    PRN_OPENCL_ROW("qlinear_matmul_opencl", PRN_TYPES_8_BIT, prn_int_matmul_opencl_supported, prn_int_matmul_opencl_prepare, .host_inputs = 0xd2)
    BYTES("qlinear_matmul"),
    {.name = "qlinear_matmul_native", .backend = "native", .supported = supported, .prepare = int_matmul_prepare, .run = int_matmul_run,
     .facts = int_matmul_facts},
    {.name = "qlinear_matmul_reference", .backend = "reference", .prepare = int_matmul_prepare_reference, .run = int_matmul_run_reference},
    {0}};
static const prn_kernel matmul_integer_to_float_kernels[] = {
    PRN_OPENCL_ROW("matmul_integer_to_float_opencl", PRN_TYPES_8_BIT, prn_int_matmul_opencl_supported, prn_int_matmul_opencl_prepare, .host_inputs = 0xc)
    BYTES("matmul_integer_to_float"),
    {.name = "matmul_integer_to_float_native", .backend = "native", .supported = supported, .prepare = int_matmul_prepare, .run = int_matmul_run,
     .facts = int_matmul_facts},
    {.name = "matmul_integer_to_float_reference", .backend = "reference", .prepare = int_matmul_prepare_reference,
     .run = int_matmul_run_reference},
    {0}};
static const prn_kernel dynamic_quantize_matmul_kernels[] = {
    BYTES("dynamic_quantize_matmul"),
    {.name = "dynamic_quantize_matmul_native", .backend = "native", .supported = supported, .prepare = int_matmul_prepare, .run = int_matmul_run,
     .facts = int_matmul_facts},
    {.name = "dynamic_quantize_matmul_reference", .backend = "reference", .prepare = int_matmul_prepare_reference,
     .run = int_matmul_run_reference},
    {0}};
static const prn_kernel qgemm_kernels[] = {
    PRN_OPENCL_ROW("qgemm_opencl", PRN_TYPES_8_BIT, prn_int_matmul_opencl_supported, prn_int_matmul_opencl_prepare, .host_inputs = 0x192)
    BYTES("qgemm"),
    {.name = "qgemm_native", .backend = "native", .supported = supported, .prepare = int_matmul_prepare, .run = int_matmul_run, .facts = int_matmul_facts},
    {.name = "qgemm_reference", .backend = "reference", .prepare = int_matmul_prepare_reference, .run = int_matmul_run_reference},
    {0}};

const prn_op prn_ops_int_matmul[] = {
    {.name = "MatMulInteger", .since_opset = 10, .inputs = {2, 4}, .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0xc,
     .variant = &integer_roles,
     .infer = int_matmul_infer, .cost = int_matmul_cost, .cost_text = "MACs M = n K; FLOPs 0; int_ops 2M",
     .kernels = matmul_integer_kernels},
    {.name = "QLinearMatMul", .since_opset = 10, .inputs = {8, 8}, .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0xf6,
     .variant = &qlinear_roles,
     .infer = int_matmul_infer, .cost = int_matmul_cost,
     .cost_text = "MACs M = n K; FLOPs 0; int_ops 2M + 5n (requantization); FLOPs instead for float8",
     .kernels = qlinear_matmul_kernels},
    {.name = "MatMulIntegerToFloat", .domain = "com.microsoft", .since_opset = 1, .inputs = {4, 7},
     .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE, .non_weight_inputs = 0x3c,
     .variant = &to_float_roles,
     .infer = int_matmul_infer, .cost = int_matmul_cost, .cost_text = "MACs M = n K; int_ops 2M; FLOPs n, + n with bias",
     .kernels = matmul_integer_to_float_kernels},
    {.name = "DynamicQuantizeMatMul", .domain = "com.microsoft", .since_opset = 1, .inputs = {3, 5},
     .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE, .non_weight_inputs = 0xc,
     .variant = &dynamic_roles,
     .infer = int_matmul_infer, .cost = int_matmul_cost, .kernels = dynamic_quantize_matmul_kernels,
     .cost_text = "MACs M = n K; int_ops 2M; FLOPs 7 per element of A + n, + n with bias; special one per element "
                  "of A"},
    {.name = "QGemm", .domain = "com.microsoft", .since_opset = 1, .inputs = {6, 9}, .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0x1b6,
     .params = gemm_attributes, .params_bytes = sizeof(gemm_params), .variant = &gemm_roles,
     .infer = int_matmul_infer, .cost = int_matmul_cost,
     .cost_text = "MACs M = n K; int_ops 2M, + n with C, + 5n if quantized; FLOPs n if not", .kernels = qgemm_kernels},
    {.name = "QGemm", .domain = "prony", .since_opset = 1, .inputs = {6, 9}, .flags = PRN_OP_INT_WEIGHTS | PRN_OP_BY_VALUE,
     .non_weight_inputs = 0x1b6,
     .params = bounded_attributes, .params_bytes = sizeof(gemm_params), .variant = &bounded_roles,
     .infer = int_matmul_infer, .cost = int_matmul_cost,
     .cost_text = "MACs M = n K; int_ops 2M, + n with C, + 5n if quantized; FLOPs n if not", .kernels = qgemm_kernels},
    {0}};
// clang-format on
