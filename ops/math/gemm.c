/* Gemm and MatMul.
 *
 *   Gemm     Y = alpha op(A) op(B) + beta C, C broadcast to Y
 *   MatMul   NumPy's matmul
 *
 * MatMul's third input, bias [N], which no model has, is what rewrites attach when an Add of a vector follows; it is
 * added before post_ops. Invariant: an input that a post-operation adds is never taken for C or bias. */
#include "base/memory/alloc.h"
#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/vector/widen.h"
#include "ops/vendor/blas.h"
#include "ops/vendor/opencl/opencl_gemm.h"

/* An operator's variant: what it knows of itself from shapes. */
typedef prony_status (*describe_fn)(const prony_context *context, prn_matmul_desc *out);

/* With whatever bytes the context has. */
static prony_status gemm_describe_product(const prony_context *context, prn_matmul_desc *out)
{
    const describe_fn *own = prn_variant(context);
    PRN_TRY((*own)(context, out));
    prn_matmul_bind_data(context, out);
    return PRONY_OK;
}

static const prony_value *added_input(const prony_context *context)
{
    return prn_matmul_is_post_input(context, 2) ? NULL : prn_input(context, 2);
}

static prony_status gemm_refuse(const prony_context *context, const char *what)
{
    char a[PRN_SHAPE_TEXT_BYTES], b[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s: A is %s, B is %s", what,
                      prn_value_text(context->inputs[0], a), prn_value_text(context->inputs[1], b));
}

static prony_status set_output(const prony_context *context, prony_dtype dtype, const prony_shape *y)
{
    char text[PRN_SHAPE_TEXT_BYTES];
    if (!prn_matmul_countable(&context->inputs[0]->shape) || !prn_matmul_countable(&context->inputs[1]->shape) ||
        !prn_matmul_countable(y))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the product %s is too large", prn_shape_text(y, text));
    prn_set_output(context, 0, dtype, y);
    return PRONY_OK;
}

static prony_status gemm_check_types(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_MATMUL_TYPES));
    const uint32_t type = PRN_TYPE(context->inputs[0]->dtype);
    PRN_TRY(prn_check_type(context, 1, type));
    return added_input(context) ? prn_check_type(context, 2, type) : PRONY_OK;
}

/* ---- Gemm */

typedef struct gemm_params {
    float alpha, beta;
    int64_t transA, transB;
} gemm_params;

static const prn_param gemm_param_rows[] = {PRN_FLOAT(gemm_params, alpha, 1.0f),
                                            PRN_FLOAT(gemm_params, beta, 1.0f),
                                            PRN_INT(gemm_params, transA, 0),
                                            PRN_INT(gemm_params, transB, 0),
                                            {0}};

/* The problem that ONNX's Gemm states: transposes become strides, C must broadcast to the output in one direction. */
static prony_status gemm_describe(const prony_context *context, prn_matmul_desc *out)
{
    const gemm_params *params = context->params;
    const prony_value *a = context->inputs[0], *b = context->inputs[1], *c = added_input(context);
    const int64_t *da = a->shape.dim, *db = b->shape.dim;
    const bool ta = params->transA != 0, tb = params->transB != 0;
    *out = prn_matmul_make(a->dtype, da[ta ? 1 : 0], db[tb ? 0 : 1], da[ta ? 0 : 1]);
    if (db[tb ? 1 : 0] != out->k) return gemm_refuse(context, "the inner dimensions differ");
    out->rs_a = ta ? 1 : out->k;
    out->cs_a = ta ? out->m : 1;
    out->rs_b = tb ? 1 : out->n;
    out->cs_b = tb ? out->k : 1;
    out->alpha = params->alpha;
    if (!c) return PRONY_OK;
    const prony_shape y = prn_shape_make(2, (const int64_t[]){out->m, out->n});
    prony_shape both;
    if (!prn_shape_broadcast(&both, &c->shape, &y) || !prn_shape_equal(&both, &y)) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "C is %s, which does not broadcast to [%lld, %lld]",
                          prn_value_text(c, text), (long long)out->m, (long long)out->n);
    }
    int64_t stride[PRONY_MAX_RANK];
    prn_shape_broadcast_strides(&c->shape, &y, stride);
    out->bias_input = 2;
    out->bias_row = stride[0];
    out->bias_col = stride[1];
    out->beta = params->beta;
    return PRONY_OK;
}

static prony_status gemm_infer(const prony_context *context)
{
    PRN_TRY(gemm_check_types(context));
    PRN_TRY(prn_check_rank(context, 0, 2, 2));
    PRN_TRY(prn_check_rank(context, 1, 2, 2));
    prn_matmul_desc product;
    PRN_TRY(gemm_describe(context, &product));
    const prony_shape y = prn_shape_make(2, (const int64_t[]){product.m, product.n});
    return set_output(context, product.dtype, &y);
}

/* ---- MatMul */

static prony_status matmul_describe(const prony_context *context, prn_matmul_desc *out)
{
    const prony_value *b = context->inputs[1];
    prony_shape y;
    PRN_TRY(prn_matmul_from_shapes(context, context->inputs[0], b, out, &y));
    prn_matmul_fold(out);

    const prony_value *bias = added_input(context);
    if (!bias) return PRONY_OK;
    if (bias->shape.rank != 1 || bias->shape.dim[0] != out->n || b->shape.rank == 1) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "bias is %s, wanted [%lld]", prn_value_text(bias, text),
                          (long long)out->n);
    }
    out->bias_input = 2;
    out->bias_col = 1;
    return PRONY_OK;
}

static prony_status matmul_infer(const prony_context *context)
{
    prn_matmul_desc product;
    prony_shape y;
    PRN_TRY(gemm_check_types(context));
    PRN_TRY(prn_matmul_from_shapes(context, context->inputs[0], context->inputs[1], &product, &y));
    prn_set_output(context, 0, context->inputs[0]->dtype, &y);
    return matmul_describe(context, &product); /* for what it checks */
}

/* ---- cost */

static prony_status gemm_cost(const prony_context *context, prony_cost *cost)
{
    prn_matmul_desc p;
    PRN_TRY(gemm_describe_product(context, &p));
    const bool added = added_input(context) != NULL;
    uint64_t rows, outputs, macs;
    if (!prn_mul_u64(&rows, (uint64_t)p.items, (uint64_t)p.m) || !prn_mul_u64(&outputs, rows, (uint64_t)p.n) ||
        !prn_mul_u64(&macs, outputs, (uint64_t)p.k)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    }
    PRN_TRY(prn_cost_macs(context, cost, macs, prn_dtype_is_integer(p.dtype)));
    const uint64_t extra = (uint64_t)added + (p.alpha != 1.0f) + (added && p.beta != 1.0f);
    prn_cost_fact(cost, "bias", added);
    prn_cost_fact(cost, "rows", (int64_t)rows);
    prn_cost_fact(cost, "in_features", p.k);
    prn_cost_fact(cost, "out_features", p.n);
    prn_cost_fact(cost, "output_elements", (int64_t)outputs);
    return prn_cost_elementwise(context, cost, outputs, extra, 0);
}

/* ---- kernels */

static prony_status gemm_native_prepare(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    PRN_TRY(gemm_describe_product(context, &product));
    return prn_matmul_native_prepare(context, &product, out);
}

static prony_status gemm_reference_prepare(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    PRN_TRY(gemm_describe_product(context, &product));
    return prn_matmul_reference_prepare(context, &product, out);
}

#ifdef PRN_HAVE_OPENCL
static prony_status gemm_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    PRN_TRY(gemm_describe_product(context, &product));
    return prn_opencl_gemm_prepare(context, &product, out);
}

static bool gemm_opencl_half_supported(const prony_context *context)
{
    prn_matmul_desc product;
    return prn_opencl_gemm_half_supported(context) && gemm_describe_product(context, &product) == PRONY_OK &&
           prn_matmul_lowbit_supported(context, &product);
}

static prony_status gemm_opencl_half_prepare(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    PRN_TRY(gemm_describe_product(context, &product));
    return prn_opencl_gemm_half_prepare(context, &product, out);
}

#define GEMM_OPENCL_HALF_ROW(title)                                                                                    \
    {.name = title,                                                                                                    \
     .precisions = PRN_PRECISION(FP16),                                                                                \
     .backend = "opencl",                                                                                              \
     .types = PRN_TYPE_F32,                                                                                            \
     .supported = gemm_opencl_half_supported,                                                                          \
     .profitable = stored_profitable,                                                                                  \
     .prepare = gemm_opencl_half_prepare,                                                                              \
     .run = prn_opencl_run,                                                                                            \
     .facts = prn_opencl_gemm_half_facts,                                                                              \
     .release = prn_opencl_release,                                                                                    \
     .memory_space = &prn_opencl_space,                                                                                \
     .host_inputs = 2,                                                                                                 \
     .post_ops = true},
#else
#define GEMM_OPENCL_HALF_ROW(title)
#endif

/* Weights in fewer bits, on any processor. */
static bool stored_supported(const prony_context *context)
{
    prn_matmul_desc product;
    return gemm_describe_product(context, &product) == PRONY_OK && prn_matmul_lowbit_supported(context, &product);
}

/* The same, multiplied as parts of bfloat16. */
static bool halves_supported(const prony_context *context)
{
    prn_matmul_desc product;
    return gemm_describe_product(context, &product) == PRONY_OK && prn_matmul_halves_supported(context, &product);
}

static bool stored_profitable(const prony_context *context)
{
    prn_matmul_desc product;
    return gemm_describe_product(context, &product) == PRONY_OK && prn_matmul_lowbit_profitable(&product);
}

static prony_status stored_prepare(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    PRN_TRY(gemm_describe_product(context, &product));
    return prn_matmul_lowbit_prepare(context, &product, out);
}

#ifdef PRN_HAVE_OPENBLAS
static bool blas_supported(const prony_context *context)
{
    prn_matmul_desc product;
    return !context->post_ops && gemm_describe_product(context, &product) == PRONY_OK &&
           prn_matmul_blas_supported(&product);
}
#endif

static const prn_kernel native = {
    .prepare = gemm_native_prepare, .run = prn_matmul_native_run, .release = prn_free, .packs = 2};
PRN_WIDENED(gemm_half, &native)

#define STORED(title, precision, asked)                                                                                \
    {.name = title,                                                                                                    \
     .precisions = PRN_PRECISION(precision),                                                                           \
     .backend = "native",                                                                                              \
     .types = PRN_TYPE_F32,                                                                                            \
     .supported = asked,                                                                                               \
     .profitable = stored_profitable,                                                                                  \
     .prepare = stored_prepare,                                                                                        \
     .run = prn_matmul_lowbit_run,                                                                                     \
     .facts = prn_matmul_lowbit_facts,                                                                                 \
     .release = prn_free,                                                                                              \
     .post_ops = true,                                                                                                 \
     .packs = 2}

// clang-format off
static const prn_kernel gemm_kernels[] = {
    GEMM_OPENCL_HALF_ROW("gemm_fp16_opencl")
    PRN_OPENCL_ROW("gemm_f32_opencl", PRN_TYPE_F32, prn_opencl_gemm_supported, gemm_opencl_prepare, .post_ops = true)
    STORED("gemm_fast_amx", FAST, halves_supported),
    STORED("gemm_bf16_dot", BF16, halves_supported),
    STORED("gemm_bf16_native", BF16, stored_supported),
    STORED("gemm_fp16_native", FP16, stored_supported),
    STORED("gemm_int8_weights", INT8_WEIGHTS, stored_supported),
    STORED("gemm_int4_weights", INT4_WEIGHTS, stored_supported),
    {.name = "gemm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .prepare = gemm_native_prepare,
     .run = prn_matmul_native_run, .facts = prn_matmul_native_facts, .release = prn_free, .post_ops = true, .packs = 2},
    PRN_WIDENED_ROW(gemm_half, "gemm_half_native"),
#ifdef PRN_HAVE_OPENBLAS
    {.name = "gemm_f64_openblas", .backend = "openblas", .precisions = ~PRN_PRECISION(FP32_STRICT), .types = PRN_TYPE(PRONY_FLOAT64), .supported = blas_supported,
     .prepare = gemm_reference_prepare, .run = prn_matmul_blas_run, .release = prn_free, .post_ops = true},
#endif
    {.name = "gemm_ref", .backend = "reference", .types = PRN_MATMUL_TYPES, .prepare = gemm_reference_prepare,
     .run = prn_matmul_reference_run, .release = prn_free, .post_ops = true},
    {0}};

static const prn_kernel matmul_kernels[] = {
    GEMM_OPENCL_HALF_ROW("matmul_fp16_opencl")
    PRN_OPENCL_ROW("matmul_f32_opencl", PRN_TYPE_F32, prn_opencl_gemm_supported, gemm_opencl_prepare, .post_ops = true)
    STORED("matmul_fast_amx", FAST, halves_supported),
    STORED("matmul_bf16_dot", BF16, halves_supported),
    STORED("matmul_bf16_native", BF16, stored_supported),
    STORED("matmul_fp16_native", FP16, stored_supported),
    STORED("matmul_int8_weights", INT8_WEIGHTS, stored_supported),
    STORED("matmul_int4_weights", INT4_WEIGHTS, stored_supported),
    {.name = "matmul_f32_native", .backend = "native", .types = PRN_TYPE_F32, .prepare = gemm_native_prepare,
     .run = prn_matmul_native_run, .facts = prn_matmul_native_facts, .release = prn_free, .post_ops = true, .packs = 2},
    PRN_WIDENED_ROW(gemm_half, "matmul_half_native"),
#ifdef PRN_HAVE_OPENBLAS
    {.name = "matmul_f64_openblas", .backend = "openblas", .precisions = ~PRN_PRECISION(FP32_STRICT), .types = PRN_TYPE(PRONY_FLOAT64), .supported = blas_supported,
     .prepare = gemm_reference_prepare, .run = prn_matmul_blas_run, .release = prn_free, .post_ops = true},
#endif
    {.name = "matmul_ref", .backend = "reference", .types = PRN_MATMUL_TYPES, .prepare = gemm_reference_prepare,
     .run = prn_matmul_reference_run, .release = prn_free, .post_ops = true},
    {0}};

const prn_op prn_ops_gemm[] = {
    /* From 1 on: `broadcast`, which opset 7 dropped, only said that C does. */
    {.name = "Gemm", .since_opset = 1, .inputs = {2, 3}, .flags = PRN_OP_POST_OPS | PRN_OP_INT_WEIGHTS,
     .params = gemm_param_rows, .params_bytes = sizeof(gemm_params), .variant = &(const describe_fn){gemm_describe},
     .infer = gemm_infer, .cost = gemm_cost,
     .cost_text = "MACs M = n K; FLOPs 2M, + n with C, + n per alpha, beta other than 1", .kernels = gemm_kernels},
    {.name = "MatMul", .since_opset = 1, .inputs = {2, 3}, .flags = PRN_OP_POST_OPS | PRN_OP_INT_WEIGHTS,
     .variant = &(const describe_fn){matmul_describe},
     .infer = matmul_infer, .cost = gemm_cost, .cost_text = "MACs M = n K; FLOPs 2M", .kernels = matmul_kernels},
    {0}};
// clang-format on
