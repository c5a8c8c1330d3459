/* com.microsoft FusedConv, FusedGemm, FusedMatMul: a contraction with what ONNX Runtime's optimizer folded into it. The
 * first two hand the node on to Conv and Gemm, with the activation (and FusedConv's added input) as post-operations;
 * FusedMatMul is a product with other strides. Owns nothing. Invariant: the borrowed context lives as long as the call.
 */
#include "ops/loops/conv_problem.h"
#include "ops/loops/copy_nd.h"
#include "ops/loops/number.h"
#include "ops/loops/product.h"
#include "ops/loops/vec.h"

extern const prn_op prn_op_conv;

static const prn_op *gemm_op(void)
{
    return prn_op_find("", "Gemm", 13);
}

/* ---- activations */

typedef struct activation_params {
    const char *name;
    prn_floats params; /* or the three below */
    float alpha, beta, gamma;
} activation_params;

/* One row per activation: defaults of its two parameters, operations per element. What is no post-operation is a map
 * over the finished output; Gemm's optimizer alone writes those. */
static const struct activation {
    const char *name;
    prn_post_kind kind;
    float a, b;
    uint64_t flops, special, madds;
    bool mapped;
    prn_map_id map;
} activations[] = {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    {PRN_POST_##SYMBOL == PRN_POST_SILU ? "Silu" : operator, PRN_POST_##SYMBOL,                                        \
     a_, b_, flops, special, madds, false, 0},
#include "ops/activations.inc"
    {"Elu", 0, 1.0f, 0.0f, 4, 1, 0, true, PRN_MAP_ELU},
    {"Selu", 0, 1.67326319217681884765625f, 1.05070102214813232421875f, 5, 1, 0, true, PRN_MAP_SELU},
    {"Celu", 0, 1.0f, 0.0f, 7, 2, 0, true, PRN_MAP_CELU},
    {"Softplus", 0, 0.0f, 0.0f, 3, 2, 0, true, PRN_MAP_SOFTPLUS},
    {"Softsign", 0, 0.0f, 0.0f, 3, 1, 0, true, PRN_MAP_SOFTSIGN},
    {"ThresholdedRelu", 0, 1.0f, 0.0f, 1, 0, 0, true, PRN_MAP_THRESHOLDED_RELU},
};

static const struct activation *find_activation(const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (strcmp(activations[i].name, name) == 0) return &activations[i];
    }
    return NULL;
}

static prony_status check_activation(const prony_context *context, const activation_params *params, bool maps)
{
    const struct activation *found = find_activation(params->name);
    if (*params->name == '\0' || (found && (maps || !found->mapped))) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "activation '%s' is not supported", params->name);
}

/* Its parameters, as given or by default, in a and b. */
static prn_post_op activation_with(const activation_params *params, const struct activation *found)
{
    prn_post_op op = {.kind = found->kind, .a = found->a, .b = found->b};
    if (!isnan(params->alpha)) op.a = params->alpha;
    if (!isnan(params->beta)) op.b = params->beta;
    if (found->mapped && !isnan(params->gamma)) op.b = params->gamma;
    if (params->params.count > 0) op.a = params->params.v[0];
    if (params->params.count > 1) op.b = params->params.v[1];
    return op;
}

static void add_activation(const activation_params *params, prn_post_ops *out)
{
    const struct activation *found = find_activation(params->name);
    if (found && !found->mapped) out->op[out->count++] = activation_with(params, found);
}

typedef struct mapped_job {
    float *y;
    prn_map_fn map;
    prn_post_op with;
} mapped_job;

static void map_range(void *argument, int64_t begin, int64_t end)
{
    const mapped_job *job = argument;
    job->map(job->y + begin, job->y + begin, end - begin, job->with.a, job->with.b);
}

static void finish_activation(const prony_context *context, const activation_params *params)
{
    const struct activation *found = find_activation(params->name);
    const prony_value *y = context->outputs[0];
    if (!found || !found->mapped) return;
    mapped_job job = {.y = y->data, .map = prn_vec()->map[found->map], .with = activation_with(params, found)};
    prn_parallel_items(context->threads, prony_shape_numel(&y->shape), 20 * (int64_t)prn_value_bytes(y), map_range,
                       &job);
}

static prony_status cost_activation(const prony_context *context, const activation_params *params, prony_cost *cost)
{
    const struct activation *found = find_activation(params->name);
    const uint64_t n = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    if (!found) return PRONY_OK;
    cost->madds += n * found->madds;
    return prn_cost_elementwise(context, cost, n, found->flops, found->special);
}

/* ---- handing a node on */

enum { PARAMS_BYTES = 256 };

typedef struct handed {
    prony_context context;
    prn_post_ops post_ops;
    _Alignas(16) char params[PARAMS_BYTES];
} handed;

static const prn_kernel *kernel_of(const prn_op *op, const char *backend)
{
    const prn_kernel *kernel = op->kernels;
    while (kernel->name && strcmp(kernel->backend, backend) != 0) kernel++;
    return kernel->name ? kernel : NULL;
}

typedef prony_status (*hand_fn)(const prony_context *context, handed *out);

/* The functions of a kernel row that lets the other operator's kernel of that backend work. */
#define HANDED_KERNEL(symbol, op, backend_name)                                                                        \
    static bool symbol##_##backend_name##_usable(const prony_context *context)                                         \
    {                                                                                                                  \
        handed to;                                                                                                     \
        const prn_kernel *kernel = kernel_of(&op, #backend_name);                                                      \
        if (!kernel || hand_##symbol(context, &to) != PRONY_OK) return false;                                          \
        return !kernel->usable || kernel->usable(&to.context);                                                         \
    }                                                                                                                  \
    static void symbol##_##backend_name##_layouts(const prony_context *context, prn_layout *in, prn_layout *out)       \
    {                                                                                                                  \
        handed to;                                                                                                     \
        const prn_kernel *kernel = kernel_of(&op, #backend_name);                                                      \
        if (kernel->layouts && hand_##symbol(context, &to) == PRONY_OK) kernel->layouts(&to.context, in, out);         \
    }                                                                                                                  \
    static prony_status symbol##_##backend_name##_prepare(const prony_context *context, prn_prepared *out)             \
    {                                                                                                                  \
        handed to;                                                                                                     \
        const prn_kernel *kernel = kernel_of(&op, #backend_name);                                                      \
        PRN_TRY(hand_##symbol(context, &to));                                                                          \
        return kernel->prepare ? kernel->prepare(&to.context, out) : PRONY_OK;                                         \
    }                                                                                                                  \
    static prony_status symbol##_##backend_name##_run(const prony_context *context)                                    \
    {                                                                                                                  \
        handed to;                                                                                                     \
        PRN_TRY(hand_##symbol(context, &to));                                                                          \
        PRN_TRY(kernel_of(&op, #backend_name)->run(&to.context));                                                      \
        finish_activation(context, activation_of_##symbol(context));                                                   \
        return PRONY_OK;                                                                                               \
    }                                                                                                                  \
    static void symbol##_##backend_name##_release(void *state)                                                         \
    {                                                                                                                  \
        const prn_kernel *kernel = kernel_of(&op, #backend_name);                                                      \
        if (kernel->release) kernel->release(state);                                                                   \
    }
#define HANDED_ROW(symbol, kernel_name, backend_name)                                                                  \
    .name = kernel_name, .backend = #backend_name, .types = PRN_TYPE_F32, .usable = symbol##_##backend_name##_usable,  \
    .layouts = symbol##_##backend_name##_layouts, .prepare = symbol##_##backend_name##_prepare,                        \
    .run = symbol##_##backend_name##_run, .release = symbol##_##backend_name##_release

/* ---- FusedConv: activation(Conv(X, W) + B + Z) */

typedef struct fused_conv_params {
    prn_conv_params conv; /* first: what Conv's functions see */
    activation_params activation;
} fused_conv_params;

static const activation_params *activation_of_conv(const prony_context *context)
{
    return &((const fused_conv_params *)context->params)->activation;
}

static prony_status hand_conv(const prony_context *context, handed *out)
{
    const fused_conv_params *params = context->params;
    out->context = *context;
    out->post_ops.count = 0;
    if (prn_input(context, 3))
        out->post_ops.op[out->post_ops.count++] = (prn_post_op){.kind = PRN_POST_ADD, .input = 3};
    add_activation(&params->activation, &out->post_ops);
    out->context.post_ops = out->post_ops.count ? &out->post_ops : NULL;
    return PRONY_OK;
}

static prony_status check_conv(const prony_context *context)
{
    PRN_TRY(prn_conv_check(context));
    return check_activation(context, activation_of_conv(context), false);
}

static prony_status infer_conv(const prony_context *context)
{
    handed to;
    const prony_value *added = prn_input(context, 3);
    PRN_TRY(hand_conv(context, &to));
    PRN_TRY(prn_op_conv.infer(&to.context));
    if (!added) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, 3, PRN_TYPE_F32));
    if (prn_shape_equal(&added->shape, &context->outputs[0]->shape)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 3 is %s, wanted %s", prn_value_text(added, text),
                      prn_shape_text(&context->outputs[0]->shape, wanted));
}

static prony_status cost_conv(const prony_context *context, prony_cost *cost)
{
    handed to;
    PRN_TRY(hand_conv(context, &to));
    PRN_TRY(prn_op_conv.cost(&to.context, cost));
    if (prn_input(context, 3))
        PRN_TRY(prn_cost_elementwise(context, cost, (uint64_t)prony_shape_numel(&context->outputs[0]->shape), 1, 0));
    return cost_activation(context, activation_of_conv(context), cost);
}

#ifdef PRN_HAVE_DNNL
HANDED_KERNEL(conv, prn_op_conv, dnnl)
#endif
HANDED_KERNEL(conv, prn_op_conv, native)
HANDED_KERNEL(conv, prn_op_conv, reference)

/* ---- FusedGemm */

typedef struct fused_gemm_params {
    activation_params activation;
} fused_gemm_params;

static const activation_params *activation_of_gemm(const prony_context *context)
{
    return &((const fused_gemm_params *)context->params)->activation;
}

static prony_status hand_gemm(const prony_context *context, handed *out)
{
    const fused_gemm_params *params = context->params;
    out->context = *context;
    out->context.user = (void *)(uintptr_t)gemm_op()->variant;
    out->post_ops.count = 0;
    if (gemm_op()->params_bytes > PARAMS_BYTES) return prony_fail(context, PRONY_INTERNAL, "Gemm's attributes");
    PRN_TRY(prn_params_parse(gemm_op(), context->node, out->params, context->error));
    add_activation(&params->activation, &out->post_ops);
    out->context.params = out->params;
    out->context.post_ops = out->post_ops.count ? &out->post_ops : NULL;
    return PRONY_OK;
}

static prony_status check_gemm(const prony_context *context)
{
    return check_activation(context, activation_of_gemm(context), true);
}

static prony_status infer_gemm(const prony_context *context)
{
    handed to;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE_F32));
    PRN_TRY(hand_gemm(context, &to));
    return gemm_op()->infer(&to.context);
}

static prony_status cost_gemm(const prony_context *context, prony_cost *cost)
{
    handed to;
    PRN_TRY(hand_gemm(context, &to));
    PRN_TRY(gemm_op()->cost(&to.context, cost));
    return cost_activation(context, activation_of_gemm(context), cost);
}

HANDED_KERNEL(gemm, *gemm_op(), native)
HANDED_KERNEL(gemm, *gemm_op(), reference)

/* ---- FusedMatMul: alpha A B, with the last two axes of an operand exchanged (trans), or its first axis taken behind
 * the batch axes before that (transBatch) */

typedef struct fused_matmul_params {
    int64_t transA, transB, transBatchA, transBatchB;
    float alpha;
} fused_matmul_params;

typedef struct operand {
    prony_shape shape; /* as the product sees it */
    int64_t stride[PRONY_MAX_RANK];
} operand;

static void exchange(operand *o, int i, int k)
{
    const int64_t dim = o->shape.dim[i], stride = o->stride[i];
    o->shape.dim[i] = o->shape.dim[k];
    o->stride[i] = o->stride[k];
    o->shape.dim[k] = dim;
    o->stride[k] = stride;
}

static operand operand_of(const prony_value *value, bool trans, bool trans_batch, bool is_left)
{
    operand o = {.shape = value->shape};
    prn_shape_strides(&o.shape, o.stride);
    const int rank = o.shape.rank;
    if (rank == 1) {
        o.shape = prn_shape_make(2, is_left ? (const int64_t[]){1, value->shape.dim[0]}
                                            : (const int64_t[]){value->shape.dim[0], 1});
        o.stride[0] = o.stride[1] = 1;
        return o;
    }
    for (int d = 0; trans_batch && d + 2 < rank; d++) exchange(&o, d, d + 1);
    if (trans) exchange(&o, rank - 2, rank - 1);
    return o;
}

static void leading_strides(const operand *o, const prony_shape *batch, int64_t *stride)
{
    const int missing = batch->rank - (o->shape.rank - 2);
    for (int d = 0; d < batch->rank; d++)
        stride[d] = d < missing || o->shape.dim[d - missing] == 1 ? 0 : o->stride[d - missing];
}

static prony_status describe(const prony_context *context, prn_product *out, prony_shape *y)
{
    const fused_matmul_params *p = context->params;
    const prony_value *left = context->inputs[0], *right = context->inputs[1];
    const operand a = operand_of(left, p->transA != 0, p->transBatchA != 0, true);
    const operand b = operand_of(right, p->transB != 0, p->transBatchB != 0, false);
    const int ar = a.shape.rank, br = b.shape.rank;
    prony_shape a_batch = a.shape, b_batch = b.shape, batch;
    a_batch.rank -= 2;
    b_batch.rank -= 2;
    char first[PRN_SHAPE_TEXT_BYTES], second[PRN_SHAPE_TEXT_BYTES];
    if (a.shape.dim[ar - 1] != b.shape.dim[br - 2] || !prn_shape_broadcast(&batch, &a_batch, &b_batch))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "A is %s, B is %s", prn_value_text(left, first),
                          prn_value_text(right, second));
    *y = batch;
    if (left->shape.rank > 1) y->dim[y->rank++] = a.shape.dim[ar - 2];
    if (right->shape.rank > 1) y->dim[y->rank++] = b.shape.dim[br - 1];
    if (!prn_product_countable(y)) return prony_fail(context, PRONY_OUT_OF_RANGE, "the product is too large");
    *out = prn_product_make(left->dtype, a.shape.dim[ar - 2], b.shape.dim[br - 1], a.shape.dim[ar - 1]);
    out->a = left->data;
    out->b = right->data;
    out->c = context->outputs[0]->data;
    out->a_row = a.stride[ar - 2];
    out->a_col = a.stride[ar - 1];
    out->b_row = b.stride[br - 2];
    out->b_col = b.stride[br - 1];
    out->alpha = p->alpha;
    int64_t a_step[PRONY_MAX_RANK], b_step[PRONY_MAX_RANK], c_step[PRONY_MAX_RANK];
    leading_strides(&a, &batch, a_step);
    leading_strides(&b, &batch, b_step);
    prn_shape_strides(&batch, c_step);
    for (int d = 0; d < batch.rank; d++)
        prn_product_batch(out, batch.dim[d], a_step[d], b_step[d], c_step[d] * out->m * out->n);
    prn_product_fold(out);
    return PRONY_OK;
}

#define MATMUL_TYPES PRN_TYPES_FLOAT

static prony_status infer_matmul(const prony_context *context)
{
    prn_product product;
    prony_shape y;
    PRN_TRY(prn_check_type(context, 0, MATMUL_TYPES));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(context->inputs[0]->dtype)));
    for (size_t i = 0; i < 2; i++) PRN_TRY(prn_check_rank(context, i, 1, PRONY_MAX_RANK));
    PRN_TRY(describe(context, &product, &y));
    prn_set_output(context, 0, context->inputs[0]->dtype, &y);
    return PRONY_OK;
}

static prony_status cost_matmul(const prony_context *context, prony_cost *cost)
{
    prn_product p;
    prony_shape y;
    PRN_TRY(describe(context, &p, &y));
    const uint64_t n = (uint64_t)prony_shape_numel(&y);
    uint64_t macs;
    if (!prn_mul_u64(&macs, n, (uint64_t)p.k))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    prn_cost_fact(cost, "bias", 0);
    prn_cost_fact(cost, "in_features", p.k);
    prn_cost_fact(cost, "out_features", p.n);
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    PRN_TRY(prn_cost_macs(context, cost, macs, false));
    return prn_cost_elementwise(context, cost, n, p.alpha != 1.0f, 0);
}

static prony_status prepare_matmul(const prony_context *context, prn_prepared *out)
{
    prn_product product;
    prony_shape y;
    PRN_TRY(describe(context, &product, &y));
    return prn_product_native_prepare(context, &product, out);
}

static prony_status native_matmul(const prony_context *context)
{
    prn_product product;
    prony_shape y;
    PRN_TRY(describe(context, &product, &y));
    return prn_product_native_run(context, &product);
}

static prony_status reference_matmul(const prony_context *context)
{
    prn_product product;
    prony_shape y;
    PRN_TRY(describe(context, &product, &y));
    return prn_product_reference_run(context, &product);
}

/* ---- descriptors */

#define ACTIVATION_ROW(params, key, type, member, number)                                                              \
    {                                                                                                                  \
        key, type, offsetof(params, activation) + offsetof(activation_params, member), false, 0, number, ""            \
    }

/* Conv's own rows fit, its struct being the first member. */
static const prn_param conv_params[] = {
    PRN_WINDOW_PARAMS(prn_conv_params),
    PRN_INT(prn_conv_params, group, 1),
    ACTIVATION_ROW(fused_conv_params, "activation", PRN_PARAM_STRING, name, 0),
    ACTIVATION_ROW(fused_conv_params, "activation_params", PRN_PARAM_FLOATS, params, 0),
    ACTIVATION_ROW(fused_conv_params, "activation_alpha", PRN_PARAM_FLOAT, alpha, NAN),
    ACTIVATION_ROW(fused_conv_params, "activation_beta", PRN_PARAM_FLOAT, beta, NAN),
    {0}};
static const prn_param gemm_params[] = {
    ACTIVATION_ROW(fused_gemm_params, "activation", PRN_PARAM_STRING, name, 0),
    ACTIVATION_ROW(fused_gemm_params, "activation_alpha", PRN_PARAM_FLOAT, alpha, NAN),
    ACTIVATION_ROW(fused_gemm_params, "activation_beta", PRN_PARAM_FLOAT, beta, NAN),
    ACTIVATION_ROW(fused_gemm_params, "activation_gamma", PRN_PARAM_FLOAT, gamma, NAN),
    {0}};
static const prn_param matmul_params[] = {
    PRN_INT(fused_matmul_params, transA, 0),      PRN_INT(fused_matmul_params, transB, 0),
    PRN_INT(fused_matmul_params, transBatchA, 0), PRN_INT(fused_matmul_params, transBatchB, 0),
    PRN_FLOAT(fused_matmul_params, alpha, 1.0f),  {0}};

static const prn_kernel conv_kernels[] = {
#ifdef PRN_HAVE_DNNL
    /* The added input may be overwritten; operands of the sum itself may not. */
    {HANDED_ROW(conv, "fusedconv_f32_dnnl", dnnl), .inplace = 8, .own_layout = true},
#endif
    {HANDED_ROW(conv, "fusedconv_f32_native", native)},
    {HANDED_ROW(conv, "fusedconv_ref", reference)},
    {0}};
static const prn_kernel gemm_kernels[] = {
    {HANDED_ROW(gemm, "fusedgemm_f32_native", native)}, {HANDED_ROW(gemm, "fusedgemm_ref", reference)}, {0}};
static const prn_kernel matmul_kernels[] = {
    {.name = "fusedmatmul_f32_native",
     .backend = "native",
     .types = PRN_TYPE_F32,
     .prepare = prepare_matmul,
     .run = native_matmul},
    {.name = "fusedmatmul_ref", .backend = "reference", .types = MATMUL_TYPES, .run = reference_matmul},
    {0}};

#define DESCRIPTOR(symbol, op_name, most_inputs, params_type, check_fn, text)                                          \
    const prn_op prn_op_contrib_##symbol = {                                                                           \
        .name = op_name,                                                                                               \
        .domain = "com.microsoft",                                                                                     \
        .since_opset = 1,                                                                                              \
        .inputs.least = 2,                                                                                               \
        .inputs.most = most_inputs,                                                                                     \
        .outputs.least = 1,                                                                                              \
        .outputs.most = 1,                                                                                              \
        .params = symbol##_params,                                                                                     \
        .params_bytes = sizeof(params_type),                                                                           \
        .check = check_fn,                                                                                             \
        .infer = infer_##symbol,                                                                                       \
        .cost = cost_##symbol,                                                                                         \
        .cost_text = text,                                                                                             \
        .kernels = symbol##_kernels,                                                                                   \
    };

DESCRIPTOR(conv, "FusedConv", 4, fused_conv_params, check_conv,
           "Conv's, + n with Z, + the activation: Relu n, Clip and LeakyRelu 2 n, Sigmoid and HardSigmoid 4 n, Tanh n")
DESCRIPTOR(gemm, "FusedGemm", 3, fused_gemm_params, check_gemm,
           "Gemm's, + the activation as for FusedConv; ThresholdedRelu n, Softplus and Softsign 3 n, Elu 4 n, Selu 5 n, "
           "Celu 7 n")
DESCRIPTOR(matmul, "FusedMatMul", 2, fused_matmul_params, NULL,
           "MACs M = n K; FLOPs 2M, + n with an alpha other than 1")
