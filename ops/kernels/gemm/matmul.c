/* Kernels of the batched matrix product, native and reference. Invariant: an element's sum runs over k in an order that
 * shapes alone decide. */
#include "ops/kernels/gemm/matmul.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/gemm/gemm_bf16x3.h"
#include "ops/kernels/gemm/bf16x3_product.h"
#include "ops/kernels/gemm/lowbit_weights.h"
#include "ops/kernels/vector/number.h"

enum { LOOK_UP = 256, LONG_RUN = 1 << 20 }; /* steps between two looks at whether to go on */

prn_matmul_desc prn_matmul_make(prony_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    return (prn_matmul_desc){.dtype = dtype,
                             .m = m,
                             .n = n,
                             .k = k,
                             .rs_c = n,
                             .items = 1,
                             .alpha = 1.0f,
                             .beta = 1.0f,
                             .b_input = 1,
                             .bias_input = -1};
}

void prn_matmul_bind_data(const prony_context *context, prn_matmul_desc *product)
{
    product->a = context->inputs[product->a_input]->data;
    product->b = context->inputs[product->b_input]->data;
    product->bias = product->bias_input < 0 ? NULL : context->inputs[product->bias_input]->data;
    product->c = context->outputs[0]->data;
}

void prn_matmul_batch(prn_matmul_desc *product, int64_t extent, int64_t a_step, int64_t b_step, int64_t c_step)
{
    if (extent == 1) return;
    const int d = product->batch_rank++;
    product->batch_dim[d] = extent;
    product->a_step[d] = a_step;
    product->b_step[d] = b_step;
    product->c_step[d] = c_step;
    product->items *= extent;
}

void prn_matmul_fold(prn_matmul_desc *product)
{
    if (product->bias_row != 0) return;
    for (int d = product->batch_rank - 1; d >= 0; d--) {
        if (product->b_step[d] != 0 || product->a_step[d] != product->m * product->rs_a ||
            product->c_step[d] != product->m * product->rs_c) {
            break;
        }
        product->m *= product->batch_dim[d];
        product->batch_rank = d;
    }
    product->items = 1;
    for (int d = 0; d < product->batch_rank; d++) product->items *= product->batch_dim[d];
}

void prn_matmul_offsets(const prn_matmul_desc *product, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    *a = *b = *c = 0;
    for (int d = product->batch_rank - 1; d >= 0; d--) {
        const int64_t at = item % product->batch_dim[d];
        item /= product->batch_dim[d];
        *a += at * product->a_step[d];
        *b += at * product->b_step[d];
        *c += at * product->c_step[d];
    }
}

static prony_status matmul_refuse(const prony_context *context, const char *what, const prony_value *a,
                                  const prony_value *b)
{
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s: A is %s, B is %s", what, prn_value_text(a, left),
                      prn_value_text(b, right));
}

/* The dimensions in front of the matrix. */
static prony_shape leading(const prony_shape *shape)
{
    prony_shape out = *shape;
    out.rank -= 2;
    return out;
}

/* The problem that ONNX's MatMul states: ranks of 1 gain an axis that y lacks, leading dimensions broadcast. Refuses
 * products whose sizes overflow. */
prony_status prn_matmul_from_shapes(const prony_context *context, const prony_value *a, const prony_value *b,
                                    prn_matmul_desc *out, prony_shape *y)
{
    prony_shape left = a->shape, right = b->shape;
    const bool row = left.rank == 1, column = right.rank == 1;
    if (left.rank < 1 || right.rank < 1) return matmul_refuse(context, "a product of scalars", a, b);
    if (row) left = prn_shape_make(2, (const int64_t[]){1, left.dim[0]});
    if (column) right = prn_shape_make(2, (const int64_t[]){right.dim[0], 1});
    const int64_t m = left.dim[left.rank - 2], k = left.dim[left.rank - 1], n = right.dim[right.rank - 1];
    if (right.dim[right.rank - 2] != k) return matmul_refuse(context, "the inner dimensions differ", a, b);
    const prony_shape a_batch = leading(&left), b_batch = leading(&right);
    prony_shape batch;
    if (!prn_shape_broadcast(&batch, &a_batch, &b_batch))
        return matmul_refuse(context, "the leading dimensions do not broadcast", a, b);
    *y = batch;
    if (!row) y->dim[y->rank++] = m;
    if (!column) y->dim[y->rank++] = n;
    if (!prn_matmul_countable(&a->shape) || !prn_matmul_countable(&b->shape) || !prn_matmul_countable(y)) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the product %s is too large", prn_shape_text(y, text));
    }
    *out = prn_matmul_make(a->dtype, m, n, k);
    out->a = a->data;
    out->b = b->data;
    out->rs_a = k;
    out->rs_b = n;
    out->cs_a = out->cs_b = 1;
    int64_t a_step[PRONY_MAX_RANK], b_step[PRONY_MAX_RANK], c_step[PRONY_MAX_RANK];
    prn_shape_broadcast_strides(&a_batch, &batch, a_step);
    prn_shape_broadcast_strides(&b_batch, &batch, b_step);
    prn_shape_strides(&batch, c_step);
    for (int d = 0; d < batch.rank; d++)
        prn_matmul_batch(out, batch.dim[d], a_step[d] * m * k, b_step[d] * k * n, c_step[d] * m * n);
    return PRONY_OK;
}

bool prn_matmul_countable(const prony_shape *shape)
{
    uint64_t count = 1;
    for (int d = 0; d < shape->rank; d++) {
        if (!prn_mul_u64(&count, count, shape->dim[d] > 0 ? (uint64_t)shape->dim[d] : 1)) return false;
    }
    return count <= INT64_MAX;
}

bool prn_matmul_is_post_input(const prony_context *context, size_t index)
{
    const prn_post_ops *post_ops = context->post_ops;
    for (size_t i = 0; post_ops && i < post_ops->count; i++) {
        if (post_ops->op[i].kind == PRN_POST_ADD && post_ops->op[i].input == index) return true;
    }
    return false;
}

/* ---- native ---- */

static prn_gemm matmul_gemm_of(const prony_context *context, const prn_matmul_desc *product)
{
    return (prn_gemm){.m = product->m,
                      .n = product->n,
                      .k = product->k,
                      .a = product->a,
                      .rs_a = product->rs_a,
                      .cs_a = product->cs_a,
                      .b = product->b,
                      .rs_b = product->rs_b,
                      .cs_b = product->cs_b,
                      .c = product->c,
                      .rs_c = product->rs_c,
                      .alpha = product->alpha,
                      .beta = product->beta,
                      .bias = product->bias,
                      .bias_row = product->bias_row,
                      .bias_col = product->bias_col,
                      .parts = prn_bf16x3_parts(context->precision),
                      .post = context->post_ops ? context : NULL};
}

static bool matmul_same_b(const prn_matmul_desc *product)
{
    for (int d = 0; d < product->batch_rank; d++) {
        if (product->b_step[d] != 0) return false;
    }
    return true;
}

/* The state kept between runs; the first is what every kernel has. */
typedef struct product_state {
    prn_matmul_desc product;
    const float *packed; /* NULL: not packed, or stored */
    prn_lowbit stored;   /* no panels: float32 */
} product_state;

static prony_status matmul_keep(const prony_context *context, const prn_matmul_desc *product, prn_prepared *out,
                                product_state **made)
{
    const product_state state = {.product = *product};
    PRN_TRY(prn_prepared_keep(context, &state, sizeof state, out));
    *made = out->state;
    return PRONY_OK;
}

/* After a failure there is nothing to release. */
static prony_status matmul_kept(prony_status status, prn_prepared *out)
{
    if (status == PRONY_OK) return PRONY_OK;
    prn_free(out->state);
    out->state = NULL;
    return status;
}

prony_status prn_matmul_native_prepare(const prony_context *context, const prn_matmul_desc *product, prn_prepared *out)
{
    prn_gemm gemm = matmul_gemm_of(context, product);
    product_state *state;
    PRN_TRY(matmul_keep(context, product, out, &state));
    if (!product->b || !matmul_same_b(product) || product->k <= 0 || product->n <= 0 || prn_gemm_plain_is_best(&gemm)) {
        out->scratch_bytes = prn_gemm_scratch_bytes(&gemm);
        return PRONY_OK;
    }
    PRN_TRY(matmul_kept(prn_gemm_pack_shared(context, &gemm, &state->packed), out));
    gemm.packed = state->packed;
    out->scratch_bytes = prn_gemm_space_bytes(context->threads, &gemm, product->items);
    return PRONY_OK;
}

static void item_offsets(const void *argument, int64_t item, int64_t *a, int64_t *b, int64_t *c)
{
    prn_matmul_offsets(argument, item, a, b, c);
}

void prn_matmul_native_facts(const prony_context *context, prony_cost *facts)
{
    const product_state *state = context->state;
    const prn_gemm gemm = matmul_gemm_of(context, &state->product);
    prn_gemm_facts(&gemm, state->product.items, state->packed != NULL, facts);
}

prony_status prn_matmul_native_run_at(const prony_context *context, const prn_matmul_desc *product)
{
    prn_gemm gemm = matmul_gemm_of(context, product);
    gemm.packed = ((const product_state *)context->state)->packed;
    const prn_gemm_batch batch = {product->items, item_offsets, product};
    void *scratch = context->scratch_bytes > 0 ? context->scratch : NULL;
    if (gemm.packed) {
        gemm.space = scratch;
        gemm.space_bytes = context->scratch_bytes;
        scratch = NULL;
    }
    prn_gemm_run(context->threads, &gemm, product->items == 1 ? NULL : &batch, scratch);
    return PRONY_OK;
}

void prn_matmul_native_run_unpacked(const prony_context *context, const prn_matmul_desc *product)
{
    prn_gemm gemm = matmul_gemm_of(context, product);
    const prn_gemm_batch batch = {product->items, item_offsets, product};
    gemm.post = NULL;
    prn_gemm_run(context->threads, &gemm, product->items == 1 ? NULL : &batch, NULL);
}

prn_matmul_desc prn_matmul_with_data(const prony_context *context)
{
    prn_matmul_desc product = ((const product_state *)context->state)->product;
    prn_matmul_bind_data(context, &product);
    return product;
}

prony_status prn_matmul_native_run(const prony_context *context)
{
    const prn_matmul_desc product = prn_matmul_with_data(context);
    return prn_matmul_native_run_at(context, &product);
}

/* ---- weights in fewer bits ---- */

/* Depths and columns, and weights, from which on fewer bits are used; chosen without a recorded measurement. */
enum { STORED_LEAST = 16, STORED_LEAST_WEIGHTS = 4096 };

bool prn_matmul_lowbit_supported(const prony_context *context, const prn_matmul_desc *product)
{
    prn_lowbit stored;
    return product->b && matmul_same_b(product) && product->k > 0 && product->n > 0 && (context->constant_inputs & 2) &&
           prn_lowbit_for(context->precision, product->k, product->n, &stored);
}

bool prn_matmul_halves_supported(const prony_context *context, const prn_matmul_desc *product)
{
    prn_gemm gemm = matmul_gemm_of(context, product);
    prn_lowbit stored;
    if (!prn_matmul_lowbit_supported(context, product) ||
        !prn_lowbit_for(context->precision, product->k, product->n, &stored))
        return false;
    gemm.stored = &stored;
    return prn_gemm_halves_profitable(&gemm);
}

bool prn_matmul_lowbit_profitable(const prn_matmul_desc *product)
{
    return product->k >= STORED_LEAST && product->n >= STORED_LEAST && product->k * product->n >= STORED_LEAST_WEIGHTS;
}

prony_status prn_matmul_lowbit_prepare(const prony_context *context, const prn_matmul_desc *product, prn_prepared *out)
{
    prn_gemm gemm = matmul_gemm_of(context, product);
    product_state *state;
    PRN_TRY(matmul_keep(context, product, out, &state));
    prn_lowbit_for(context->precision, product->k, product->n, &state->stored);
    PRN_TRY(matmul_kept(prn_lowbit_pack_shared(context, &gemm, &state->stored), out));
    if (!state->stored.panels) PRN_TRY(matmul_kept(prn_gemm_pack_shared(context, &gemm, &state->packed), out));
    gemm.stored = state->stored.panels ? &state->stored : NULL;
    gemm.packed = state->packed;
    out->scratch_bytes = prn_gemm_scratch_bytes(&gemm);
    return PRONY_OK;
}

static prn_gemm stored_gemm(const prony_context *context, const prn_matmul_desc *product)
{
    const product_state *state = context->state;
    prn_gemm gemm = matmul_gemm_of(context, product);
    gemm.stored = state->stored.panels ? &state->stored : NULL;
    gemm.packed = state->packed;
    if (!gemm.stored) gemm.parts = PRN_BF16X3_PARTS;
    return gemm;
}

void prn_matmul_lowbit_facts(const prony_context *context, prony_cost *facts)
{
    const prn_matmul_desc *product = &((const product_state *)context->state)->product;
    const prn_gemm gemm = stored_gemm(context, product);
    prn_gemm_facts(&gemm, product->items, true, facts);
    if (!gemm.stored) {
        prn_cost_fact(facts, "stays_in_fp32", PRN_STAYS_RANGE);
        return;
    }
    prn_cost_fact(facts, "weight_bits", prn_lowbit_bits(gemm.stored->kind));
    prn_cost_fact(facts, "weight_bytes", (int64_t)prn_lowbit_bytes(gemm.stored));
    if (gemm.stored->group < gemm.stored->k) prn_cost_fact(facts, "weight_group", gemm.stored->group);
}

prony_status prn_matmul_lowbit_run(const prony_context *context)
{
    const prn_matmul_desc product = prn_matmul_with_data(context);
    const prn_gemm gemm = stored_gemm(context, &product);
    const prn_gemm_batch batch = {product.items, item_offsets, &product};
    void *scratch = context->scratch_bytes > 0 ? context->scratch : NULL;
    prn_gemm_run(context->threads, &gemm, product.items == 1 ? NULL : &batch, scratch);
    return PRONY_OK;
}

/* ---- reference ---- */

typedef struct reference_job {
    const prony_context *context;
    const prn_matmul_desc *product;
} reference_job;

/* P is the type that sums are formed in: products of integers wrap around. With alpha or beta they are scaled in
 * double, and saturate. */
#define EACH_TYPE(X) PRN_FLOAT_TYPES(X, double) PRN_INTEGER_TYPES(X, uint64_t)

/* A sum of type P as a double; unsigned sums stand for signed numbers where `work` is signed. */
#define SCALED(P, work, sum) ((P)0.5 != 0 ? (double)(sum) : (double)(work)(sum))

/* One row of one item. */
#define ROW(P, DTYPE, name, storage, work, load, store)                                                                \
    static void row_##name(const prn_matmul_desc *p, int64_t a, int64_t b, int64_t c, int64_t i)                       \
    {                                                                                                                  \
        /* Without depths there may be no elements to point at. */                                                     \
        const storage *x = p->k > 0 ? (const storage *)p->a + a + i * p->rs_a : NULL;                                  \
        const storage *y = p->k > 0 ? (const storage *)p->b + b : NULL;                                                \
        storage *to = (storage *)p->c + c + i * p->rs_c;                                                               \
        const bool scaled = p->alpha != 1.0f || p->beta != 1.0f;                                                       \
        for (int64_t j = 0; j < p->n; j++) {                                                                           \
            P sum = 0, added = 0;                                                                                      \
            if ((j % LOOK_UP == 0 || p->k > LOOK_UP) && prn_cancelled()) return;                                       \
            for (int64_t from = 0; from < p->k && (from == 0 || !prn_cancelled()); from += LONG_RUN) {                 \
                const int64_t to = p->k - from < LONG_RUN ? p->k : from + LONG_RUN;                                    \
                for (int64_t k = from; k < to; k++)                                                                    \
                    sum += (P)load(x[k * p->cs_a]) * (P)load(y[k * p->rs_b + j * p->cs_b]);                            \
            }                                                                                                          \
            if (p->bias) added = (P)load(((const storage *)p->bias)[i * p->bias_row + j * p->bias_col]);               \
            if (scaled) {                                                                                              \
                const double left = SCALED(P, work, sum), right = SCALED(P, work, added);                              \
                prn_put_f64(to, p->dtype, j, (double)p->alpha *left + (double)p->beta * right);                        \
            } else {                                                                                                   \
                to[j] = store((work)(sum + added));                                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }
EACH_TYPE(ROW)

static void matmul_reference_rows(void *argument, int64_t begin, int64_t end)
{
    const reference_job *job = argument;
    const prn_matmul_desc *p = job->product;
    for (int64_t row = begin; row < end; row++) {
        int64_t a, b, c;
        prn_matmul_offsets(p, row / p->m, &a, &b, &c);
        const int64_t i = row % p->m;
        switch (p->dtype) {
#define CASE(P, DTYPE, name, storage, work, load, store)                                                               \
    case PRONY_##DTYPE:                                                                                                \
        row_##name(p, a, b, c, i);                                                                                     \
        break;
            EACH_TYPE(CASE)
        default:
            break;
        }
        if (p->dtype == PRONY_FLOAT32)
            prn_post_ops_apply_f32(job->context, (float *)p->c + c + i * p->rs_c, c + i * p->rs_c, p->n);
    }
}

prony_status prn_matmul_reference_run_at(const prony_context *context, const prn_matmul_desc *product)
{
    reference_job job = {context, product};
    const int64_t rows = product->items * product->m;
    if (rows > 0 && product->n > 0) prn_parallel_range(context->threads, rows, 64, matmul_reference_rows, &job);
    return PRONY_OK;
}

prony_status prn_matmul_reference_prepare(const prony_context *context, const prn_matmul_desc *product,
                                          prn_prepared *out)
{
    product_state *state;
    return matmul_keep(context, product, out, &state);
}

prony_status prn_matmul_reference_run(const prony_context *context)
{
    const prn_matmul_desc product = prn_matmul_with_data(context);
    return prn_matmul_reference_run_at(context, &product);
}
