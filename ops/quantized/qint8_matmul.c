/* Products of quantized matrices whose B is constant and has signed bytes, or unsigned ones with the zero point 128:
 * bytes are multiplied. The zero points of A's rows, which only a run may know, are taken out of the sums by the sums
 * of B's columns. The state is those and B's packed panels, which the model owns. */
#include "ops/quantized/int_matmul.h"

#include "base/integers.h"
#include "base/memory/alloc.h"
#include "ops/kernels/int8/int8_gemm.h"

#include <math.h>

enum { SIGN = 128, LINE = 64 };

typedef struct byte_state {
    prn_qint8_weights weights;
    prn_qint8_packed packed;
    int32_t *sums; /* of B's columns */
    int32_t *bias; /* with `scale`, where every parameter is known beforehand: sums become codes by vectors */
    float *scale;
    prn_qint8_epilogue finish;
    size_t codes_bytes; /* of DynamicQuantizeMatMul's A, in front of the product's scratch */
} byte_state;

typedef struct byte_job {
    const prn_int_matmul *m;
    const byte_state *state;
    uint8_t flip;
} byte_job;

/* Signed codes without zero points, or unsigned ones with 128. */
static bool qint8_matmul_is_symmetric(const prn_int_matmul *m)
{
    const prony_value *zero = m->product.b_zero.value;
    const int64_t count = zero ? prony_shape_numel(&zero->shape) : 1;
    for (int64_t i = 0; i < count; i++)
        if ((zero ? prn_quant_get(zero, i) : 0.0f) != (m->product.b_type == PRONY_INT8 ? 0.0f : (float)SIGN))
            return false;
    return true;
}

bool prn_qint8_matmul_supported(const prony_context *context)
{
    prn_int_matmul m;
    if (prn_int_matmul_describe(context, &m) != PRONY_OK) return false;
    const prn_matmul_desc *shape = &m.product.shape;
    const prony_value *zero = m.product.b_zero.value;
    if (!shape->b || prn_dtype_is_float(m.product.b_type) || (zero && !zero->data)) return false;
    return shape->items == 1 && shape->cs_a == 1 && shape->m > 0 && shape->n > 0 && shape->k > 0 &&
           qint8_matmul_is_symmetric(&m);
}

static bool qint8_matmul_is_known(const prony_value *value)
{
    return !value || value->data;
}

/* From sums to codes with nothing that only a run tells, and one scale of A. */
static bool finishes(const prn_int_matmul *m)
{
    if (!m->quantized || !m->y_known || m->dynamic || m->bias) return false;
    if (m->out->dtype != PRONY_UINT8 && m->out->dtype != PRONY_INT8) return false;
    if (m->a_scale.step != 0 || m->product.a_zero.step != 0) return false;
    if (m->c && (m->rs_c != 0 || m->c_col != 1)) return false;
    return qint8_matmul_is_known(m->a_scale.value) && qint8_matmul_is_known(m->product.a_zero.value) &&
           qint8_matmul_is_known(m->b_scale.value) && qint8_matmul_is_known(m->c);
}

static prony_status qint8_matmul_prepare_epilogue(const prony_context *context, const prn_int_matmul *m,
                                                  byte_state *state)
{
    const int64_t columns = m->product.shape.n, room = prn_ceil_div(columns, LINE) * LINE;
    const bool is_signed = m->out->dtype == PRONY_INT8;
    const int32_t zero =
        (int32_t)prn_quant_lines_at(&m->product.a_zero, 0, 0) + (m->product.a_type == PRONY_INT8 ? SIGN : 0);
    state->bias = prn_calloc((size_t)room, sizeof *state->bias);
    state->scale = prn_calloc((size_t)room, sizeof *state->scale);
    if (!state->bias || !state->scale) return prn_no_memory(context->error);
    prn_qint8_bias(&state->weights, &state->packed, zero, m->c ? m->c->data : NULL, state->bias);
    prn_int_matmul_scale(m, 0, 0, 0, columns, state->scale);
    state->finish = (prn_qint8_epilogue){.bias = state->bias,
                                         .scale = state->scale,
                                         .low = fmaxf(m->low, (is_signed ? -128.0f : 0.0f) - m->y.zero),
                                         .high = fminf(m->high, (is_signed ? 127.0f : 255.0f) - m->y.zero),
                                         .zero = (int32_t)m->y.zero,
                                         .y_signed = is_signed};
    return PRONY_OK;
}

static prn_qint8_gemm bytes_product(const prn_int_matmul *m)
{
    const prn_matmul_desc *shape = &m->product.shape;
    return (prn_qint8_gemm){.rows = shape->m, .groups = 1, .columns = shape->n, .depth = shape->k, .rs_a = shape->rs_a};
}

void prn_qint8_matmul_release(void *argument)
{
    byte_state *state = argument;
    if (!state) return;
    prn_free(state->sums);
    prn_free(state->bias);
    prn_free(state->scale);
    prn_free(state);
}

static prony_status qint8_matmul_pack_weights(const prony_context *context, const prn_int_matmul *m, byte_state *state)
{
    const prn_matmul_desc *shape = &m->product.shape;
    state->weights = (prn_qint8_weights){.codes = shape->b,
                                         .is_signed = m->product.b_type == PRONY_INT8,
                                         .groups = 1,
                                         .columns = shape->n,
                                         .depth = shape->k,
                                         .column_step = shape->cs_b,
                                         .inner = shape->k,
                                         .inner_step = shape->rs_b};
    state->sums = prn_calloc((size_t)shape->n, sizeof *state->sums);
    if (!state->sums) return prn_no_memory(context->error);
    PRN_TRY(prn_qint8_pack(context, &state->weights, &state->packed));
    prn_qint8_bias(&state->weights, &state->packed, -1, NULL, state->sums);
    return finishes(m) ? qint8_matmul_prepare_epilogue(context, m, state) : PRONY_OK;
}

prony_status prn_qint8_matmul_prepare(const prony_context *context, prn_prepared *out)
{
    prn_int_matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    byte_state *state = prn_calloc(1, sizeof *state);
    if (!state) return prn_no_memory(context->error);
    const prony_status status = qint8_matmul_pack_weights(context, &m, state);
    if (status != PRONY_OK) {
        prn_qint8_matmul_release(state);
        return status;
    }
    if (m.dynamic) state->codes_bytes = (size_t)(m.product.shape.m * m.product.shape.k + LINE - 1) / LINE * LINE;
    prn_qint8_gemm product = bytes_product(&m);
    product.packed = state->packed;
    out->state = state;
    out->scratch_bytes = state->codes_bytes + prn_qint8_gemm_scratch(context->threads, &product);
    return PRONY_OK;
}

static void qint8_matmul_fetch_rows(const void *argument, int64_t group, int64_t row, int64_t rows, uint8_t *to,
                                    int64_t to_row)
{
    const byte_job *job = argument;
    const prn_matmul_desc *shape = &job->m->product.shape;
    const uint8_t *a = (const uint8_t *)shape->a + row * shape->rs_a;
    (void)group;
    prn_qint8_dot_table()->copy(to, to_row, a, shape->rs_a, rows, shape->k, job->flip);
}

/* Takes the zero points of A's rows out of the sums. */
static void store_block(const void *argument, int64_t row, int64_t rows, int64_t column, int64_t columns,
                        const int32_t *sums)
{
    const byte_job *job = argument;
    const int32_t *column_sums = job->state->sums + column;
    int32_t line[PRN_QINT8_COLUMNS];
    float scale[PRN_QINT8_COLUMNS];
    const bool one_scale = job->m->a_scale.step == 0; /* for all of A's rows */
    if (!job->m->integers && one_scale) prn_int_matmul_scale(job->m, 0, row, column, columns, scale);
    for (int64_t i = 0; i < rows; i++, sums += PRN_QINT8_COLUMNS) {
        const uint32_t zero = (uint32_t)((int32_t)prn_quant_lines_at(&job->m->product.a_zero, 0, row + i) + job->flip);
        for (int64_t j = 0; j < columns; j++) line[j] = (int32_t)((uint32_t)sums[j] - zero * (uint32_t)column_sums[j]);
        if (job->m->integers || one_scale)
            prn_int_matmul_store_scaled(job->m, 0, row + i, column, columns, line, scale);
        else
            prn_int_matmul_store(job->m, 0, row + i, column, columns, line);
    }
}

prony_status prn_qint8_matmul_run(const prony_context *context)
{
    const byte_state *state = context->state;
    prn_int_matmul m;
    PRN_TRY(prn_int_matmul_describe(context, &m));
    if (m.dynamic) prn_int_matmul_quantize_a(context, &m, false);
    const byte_job job = {&m, state, m.product.a_type == PRONY_INT8 ? SIGN : 0};
    prn_qint8_gemm product = bytes_product(&m);
    product.packed = state->packed;
    product.a = job.flip ? NULL : m.product.shape.a;
    product.fetch = qint8_matmul_fetch_rows;
    product.store = state->bias ? NULL : store_block;
    product.finish = state->finish;
    product.y = m.out->data;
    product.y_row = m.product.shape.rs_c;
    product.argument = &job;
    prn_qint8_gemm_run(context->threads, &product, (uint8_t *)context->scratch + state->codes_bytes,
                       context->scratch_bytes - state->codes_bytes);
    return PRONY_OK;
}

void prn_qint8_matmul_facts(const prony_context *context, prony_cost *out)
{
    prn_int_matmul m;
    if (prn_int_matmul_describe(context, &m) != PRONY_OK) return;
    const prn_qint8_gemm product = bytes_product(&m);
    prn_qint8_gemm_facts(&product, out);
}
