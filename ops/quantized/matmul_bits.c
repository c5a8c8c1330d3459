/* MatMulNBits: Y = A B + bias, B in codes of 2, 4 or 8 bits, block by block of its depths.
 *
 *   b[k][n] = (code(n, k) - zero(n, block(k))) scale(n, block(k))     block(k) = k / block_size, or g_idx[k]
 *
 *   B            [N][blocks][block_size bits / 8] bytes, a block's first depth in the lowest bits
 *   scales       [N][blocks]
 *   zero_points  [N][blocks]: codes, each row in whole bytes, or numbers of A's type; 2^(bits - 1) without it
 *
 * Constants are packed as stored weights (ops/kernels/gemm/lowbit_weights.h), which their codes fit as they are. */
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/lowbit/nbit_weights.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"
#include "ops/vendor/opencl/opencl_lowbit.h"

enum { LEAST_BLOCK = 16, MOST_BLOCK = 1 << 20 };

typedef struct bits_params {
    int64_t K, N, bits, block_size, accuracy_level;
} bits_params;

static const prn_param param_rows[] = {
    PRN_INT_REQUIRED(bits_params, K),          PRN_INT_REQUIRED(bits_params, N),        PRN_INT(bits_params, bits, 4),
    PRN_INT_REQUIRED(bits_params, block_size), PRN_INT(bits_params, accuracy_level, 0), {0}};

/* The node's attributes and operands. Data may not be there yet. */
typedef struct bits_problem {
    int64_t rows, k, n, bits, block, blocks, blob, zero_row; /* blob: bytes of a block; zero_row: of packed zero
                                                                points */
    const prony_value *a, *b, *scales, *zero, *order, *bias;
} bits_problem;

static prony_status matmul_bits_check(const prony_context *context)
{
    const bits_params *p = context->params;
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return prony_fail(context, PRONY_UNSUPPORTED, "bits is %lld, wanted 2, 4 or 8", (long long)p->bits);
    if (p->block_size < LEAST_BLOCK || p->block_size > MOST_BLOCK || (p->block_size & (p->block_size - 1)))
        return prony_fail(context, PRONY_INVALID_MODEL, "block_size is %lld, wanted a power of two from %d to %d",
                          (long long)p->block_size, LEAST_BLOCK, MOST_BLOCK);
    if (p->K < 0 || p->N < 0 || p->K > INT32_MAX || p->N > INT32_MAX)
        return prony_fail(context, PRONY_INVALID_MODEL, "K is %lld and N %lld", (long long)p->K, (long long)p->N);
    return PRONY_OK;
}

static prony_status wants_count(const prony_context *context, size_t input, int64_t count)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    const prony_value *in = prn_input(context, input);
    if (!in || prony_shape_numel(&in->shape) == count) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %lld elements", input,
                      prn_value_text(in, text), (long long)count);
}

static void matmul_bits_take_operands(const prony_context *context, bits_problem *b)
{
    b->a = context->inputs[0];
    b->b = context->inputs[1];
    b->scales = context->inputs[2];
    b->zero = prn_input(context, 3);
    b->order = prn_input(context, 4);
    b->bias = prn_input(context, 5);
}

/* Sizes of MatMulNBits, and checks that A, codes, scales, zero points and group order have as many elements as K, N
 * and the block imply. */
static prony_status matmul_bits_describe(const prony_context *context, bits_problem *out)
{
    const bits_params *p = context->params;
    const int64_t blocks = prn_ceil_div(p->K, p->block_size), blob = p->block_size * p->bits / 8;
    *out = (bits_problem){.k = p->K,
                          .n = p->N,
                          .bits = p->bits,
                          .block = p->block_size,
                          .blocks = blocks,
                          .blob = blob,
                          .zero_row = prn_ceil_div(blocks * p->bits, 8)};
    matmul_bits_take_operands(context, out);
    const prony_shape *shape = &out->a->shape;
    if (shape->rank < 1 || shape->dim[shape->rank - 1] != p->K) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "A is %s, wanted %lld columns", prn_value_text(out->a, text),
                          (long long)p->K);
    }
    out->rows = 1;
    for (int d = 0; d + 1 < shape->rank; d++) out->rows *= shape->dim[d];
    PRN_TRY(wants_count(context, 1, p->N * blocks * blob));
    PRN_TRY(wants_count(context, 2, p->N * blocks));
    const bool packed = out->zero && out->zero->dtype == PRONY_UINT8;
    PRN_TRY(wants_count(context, 3, p->N * (packed ? out->zero_row : blocks)));
    if (out->order && prony_shape_numel(&out->order->shape) != blocks * p->block_size)
        PRN_TRY(wants_count(context, 4, p->K));
    return wants_count(context, 5, p->N);
}

static prony_status matmul_bits_infer(const prony_context *context)
{
    bits_problem b;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE_F32 | PRN_TYPES_HALF));
    const uint32_t type = PRN_TYPE(context->inputs[0]->dtype);
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_UINT8)));
    PRN_TRY(prn_check_type(context, 2, type));
    PRN_TRY(prn_check_type(context, 3, type | PRN_TYPE(PRONY_UINT8)));
    PRN_TRY(prn_check_type(context, 4, PRN_TYPE(PRONY_INT32)));
    PRN_TRY(prn_check_type(context, 5, type));
    PRN_TRY(matmul_bits_describe(context, &b));
    prony_shape y = b.a->shape;
    y.dim[y.rank - 1] = b.n;
    if (prony_shape_numel(&y) < 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the product is too large");
    prn_set_output(context, 0, b.a->dtype, &y);
    return PRONY_OK;
}

static prony_status matmul_bits_cost(const prony_context *context, prony_cost *cost)
{
    bits_problem b;
    PRN_TRY(matmul_bits_describe(context, &b));
    uint64_t outputs, macs;
    if (!prn_mul_u64(&outputs, (uint64_t)b.rows, (uint64_t)b.n) || !prn_mul_u64(&macs, outputs, (uint64_t)b.k))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    prn_cost_fact(cost, "bias", b.bias != NULL);
    prn_cost_fact(cost, "rows", b.rows);
    prn_cost_fact(cost, "in_features", b.k);
    prn_cost_fact(cost, "out_features", b.n);
    prn_cost_fact(cost, "output_elements", (int64_t)outputs);
    return prn_cost_elementwise(context, cost, outputs, b.bias != NULL, 0);
}

static prn_packed_qint8 packed_codes(const prony_context *context, size_t input)
{
    const bits_params *p = context->params;
    const uint64_t n = (uint64_t)p->N, k = (uint64_t)p->K, blocks = (uint64_t)prn_ceil_div(p->K, p->block_size);
    if (input == 1) return (prn_packed_qint8){n * k, (unsigned)p->bits};
    if (input == 3 && context->inputs[3]->dtype == PRONY_UINT8)
        return (prn_packed_qint8){n * blocks, (unsigned)p->bits};
    return (prn_packed_qint8){0};
}

/* B as it lies in the inputs. A block's bytes are whole, so that a row is one run of codes. */
static prn_nbit_weights matmul_bits_weights_of(const bits_problem *b)
{
    return (prn_nbit_weights){.k = b->k,
                              .n = b->n,
                              .bits = b->bits,
                              .block = b->block,
                              .blocks = b->blocks,
                              .codes = b->b->data,
                              .row_bytes = b->blocks * b->blob,
                              .scales = b->scales->data,
                              .scale_type = b->scales->dtype,
                              .zeros = b->zero ? b->zero->data : NULL,
                              .zero_type = b->zero ? b->zero->dtype : PRONY_UINT8,
                              .zero_bytes = b->zero_row};
}

/* Offsets of the float32 forms in the scratch, of half precision. */
typedef struct half_space {
    size_t a, bias, y, bytes;
} half_space;

/* The state that every kernel keeps. */
typedef struct bits_state {
    bits_problem problem;
    half_space space;
    prn_lowbit stored; /* not of the reference */
} bits_state;

static bits_problem kept_problem(const prony_context *context)
{
    bits_problem b = ((const bits_state *)context->state)->problem;
    matmul_bits_take_operands(context, &b);
    return b;
}

/* ---- native: constants, in the order of their depths */

static bool matmul_bits_native_supported(const prony_context *context)
{
    bits_problem b;
    if (matmul_bits_describe(context, &b) != PRONY_OK || b.order || !b.b->data || !b.scales->data ||
        (b.zero && !b.zero->data))
        return false;
    return b.rows > 0 && b.k > 0 && b.n > 0;
}

static prony_status matmul_bits_native_prepare(const prony_context *context, prn_prepared *out)
{
    bits_state state = {0};
    PRN_TRY(matmul_bits_describe(context, &state.problem));
    const prn_nbit_weights weights = matmul_bits_weights_of(&state.problem);
    PRN_TRY(prn_nbit_pack_shared(context, &weights, 1, 0, &state.stored));
    return prn_prepared_keep(context, &state, sizeof state, out);
}

static prn_gemm matmul_bits_gemm_of(const prony_context *context, const bits_problem *b)
{
    const bits_state *state = context->state;
    return (prn_gemm){.m = b->rows,
                      .n = b->n,
                      .k = b->k,
                      .a = b->a->data,
                      .rs_a = b->k,
                      .cs_a = 1,
                      .stored = &state->stored,
                      .c = context->outputs[0]->data,
                      .rs_c = b->n,
                      .alpha = 1.0f,
                      .beta = 1.0f,
                      .bias = b->bias ? b->bias->data : NULL,
                      .bias_col = 1};
}

static prony_status matmul_bits_native_run(const prony_context *context)
{
    const bits_problem b = kept_problem(context);
    const prn_gemm gemm = matmul_bits_gemm_of(context, &b);
    prn_gemm_run(context->threads, &gemm, NULL, NULL);
    return PRONY_OK;
}

static void native_facts(const prony_context *context, prony_cost *facts)
{
    const bits_problem b = kept_problem(context);
    const prn_gemm gemm = matmul_bits_gemm_of(context, &b);
    prn_gemm_facts(&gemm, 1, true, facts);
    prn_cost_fact(facts, "weight_bits", b.bits);
    prn_cost_fact(facts, "weight_group", gemm.stored->group);
}

/* ---- the same on half precision: A, the bias and Y pass through float32 in the scratch */

static bool half_space_of(const bits_problem *b, half_space *out)
{
    const uint64_t counts[] = {(uint64_t)b->rows * (uint64_t)b->k, b->bias ? (uint64_t)b->n : 0,
                               (uint64_t)b->rows * (uint64_t)b->n};
    size_t at[4] = {0};
    for (int i = 0; i < 3; i++) {
        if (counts[i] > SIZE_MAX / 16 - at[i]) return false;
        at[i + 1] = at[i] + ((size_t)counts[i] * sizeof(float) + 63) / 64 * 64;
    }
    *out = (half_space){at[0], at[1], at[2], at[3]};
    return true;
}

static bool matmul_bits_half_supported(const prony_context *context)
{
    bits_problem b;
    half_space space;
    return matmul_bits_native_supported(context) && matmul_bits_describe(context, &b) == PRONY_OK &&
           half_space_of(&b, &space);
}

static prony_status matmul_bits_half_prepare(const prony_context *context, prn_prepared *out)
{
    bits_problem b;
    half_space space;
    PRN_TRY(matmul_bits_describe(context, &b));
    if (!half_space_of(&b, &space)) return prony_fail(context, PRONY_LIMIT, "the operands do not fit in memory");
    PRN_TRY(matmul_bits_native_prepare(context, out));
    ((bits_state *)out->state)->space = space;
    out->scratch_bytes = space.bytes;
    return PRONY_OK;
}

typedef struct conversion {
    char *to;
    const char *from;
    prony_dtype to_type, from_type;
} conversion;

static void matmul_bits_convert_range(void *argument, int64_t begin, int64_t end)
{
    const conversion *job = argument;
    prn_convert(job->to + prony_dtype_bytes(job->to_type, begin), job->to_type,
                job->from + prony_dtype_bytes(job->from_type, begin), job->from_type, end - begin);
}

static void matmul_bits_convert(int threads, void *to, prony_dtype to_type, const void *from, prony_dtype from_type,
                                int64_t count)
{
    enum { GRAIN = 8192 };
    conversion job = {to, from, to_type, from_type};
    prn_parallel_range(threads, count, GRAIN, matmul_bits_convert_range, &job);
}

static prony_status matmul_bits_half_run(const prony_context *context)
{
    const bits_problem b = kept_problem(context);
    const half_space space = ((const bits_state *)context->state)->space;
    char *scratch = context->scratch;
    prn_gemm gemm = matmul_bits_gemm_of(context, &b);
    matmul_bits_convert(context->threads, scratch + space.a, PRONY_FLOAT32, b.a->data, b.a->dtype, b.rows * b.k);
    if (b.bias)
        matmul_bits_convert(context->threads, scratch + space.bias, PRONY_FLOAT32, b.bias->data, b.bias->dtype, b.n);
    gemm.a = (const float *)(const void *)(scratch + space.a);
    gemm.c = (float *)(void *)(scratch + space.y);
    if (b.bias) gemm.bias = (const float *)(const void *)(scratch + space.bias);
    prn_gemm_run(context->threads, &gemm, NULL, NULL);
    matmul_bits_convert(context->threads, context->outputs[0]->data, b.a->dtype, gemm.c, PRONY_FLOAT32, b.rows * b.n);
    return PRONY_OK;
}

/* ---- reference */

static void reference_columns(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const bits_problem b = kept_problem(context);
    const prn_nbit_weights weights = matmul_bits_weights_of(&b);
    for (int64_t at = begin; at < end; at++) {
        const int64_t row = at / b.n, n = at % b.n;
        double sum = b.bias ? prn_get_f64(b.bias->data, b.bias->dtype, n) : 0.0;
        for (int64_t k = 0; k < b.k; k++) {
            if (prn_cancelled_at(k)) return;
            const int64_t block = b.order ? ((const int32_t *)b.order->data)[k] : k / b.block;
            const double code = (double)prn_nbit_code(&weights, n, k) - prn_nbit_zero(&weights, n, block);
            sum += prn_get_f64(b.a->data, b.a->dtype, row * b.k + k) * code * prn_nbit_scale(&weights, n, block);
        }
        prn_put_f64(context->outputs[0]->data, b.a->dtype, at, sum);
        if (prn_cancelled_at(at)) return;
    }
}

static prony_status matmul_bits_reference_prepare(const prony_context *context, prn_prepared *out)
{
    bits_state state = {0};
    PRN_TRY(matmul_bits_describe(context, &state.problem));
    return prn_prepared_keep(context, &state, sizeof state, out);
}

static prony_status reference_run(const prony_context *context)
{
    const bits_problem b = kept_problem(context);
    for (int64_t k = 0; b.order && k < b.k; k++) {
        const int32_t block = ((const int32_t *)b.order->data)[k];
        if (block < 0 || block >= b.blocks)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "g_idx[%lld] is %d, of %lld blocks", (long long)k, block,
                              (long long)b.blocks);
    }
    prn_parallel_items(context->threads, b.rows * b.n, b.k * 8, reference_columns, (void *)(uintptr_t)context);
    return PRONY_OK;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static prn_opencl_nbit bits_opencl_problem(const bits_problem *b)
{
    return (prn_opencl_nbit){.rows = b->rows,
                             .columns = b->n,
                             .depth = b->k,
                             .bits = b->bits,
                             .block = b->block,
                             .blocks = b->blocks,
                             .zero_row = b->zero_row};
}

static bool bits_opencl_supported(const prony_context *context)
{
    bits_problem b;
    if (matmul_bits_describe(context, &b) != PRONY_OK || b.order) return false;
    const prn_opencl_nbit problem = bits_opencl_problem(&b);
    return prn_opencl_nbit_supported(context, &problem);
}

static prony_status bits_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    bits_problem b;
    PRN_TRY(matmul_bits_describe(context, &b));
    const prn_opencl_nbit problem = bits_opencl_problem(&b);
    return prn_opencl_nbit_prepare(context, &problem, out);
}
#endif

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("matmulnbits_f32_opencl", PRN_TYPE_F32, bits_opencl_supported, bits_opencl_prepare)
    {.name = "matmulnbits_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = matmul_bits_native_supported, .prepare = matmul_bits_native_prepare,
     .run = matmul_bits_native_run, .facts = native_facts, .release = prn_free, .packs = 2},
    {.name = "matmulnbits_half_native", .backend = "native", .types = PRN_TYPES_HALF, .supported = matmul_bits_half_supported, .prepare = matmul_bits_half_prepare,
     .run = matmul_bits_half_run, .facts = native_facts, .release = prn_free, .packs = 2},
    {.name = "matmulnbits_ref", .backend = "reference", .prepare = matmul_bits_reference_prepare, .run = reference_run, .release = prn_free},
    {0}};

const prn_op prn_ops_matmul_bits[] = {
    {.name = "MatMulNBits", .domain = "com.microsoft", .since_opset = 1, .inputs = {3, 6}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 1 << 4, .params = param_rows, .params_bytes = sizeof(bits_params), .check = matmul_bits_check, .infer = matmul_bits_infer,
     .cost = matmul_bits_cost, .cost_text = "MACs M = n K; FLOPs 2M, + n with bias", .kernels = kernels, .packed_codes = packed_codes},
    {0}};
// clang-format on
