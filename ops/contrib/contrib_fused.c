/* com.microsoft FusedConv, FusedGemm, FusedMatMul: a contraction with what ONNX Runtime's optimizer folded into it. The
 * first two hand the node on to Conv and Gemm, with the activation (and FusedConv's added input) as post-operations;
 * FusedMatMul is a product with other strides. */
#include "base/memory/alloc.h"
#include "ops/delegate.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/gemm/matmul.h"
#include "ops/kernels/vector/vec.h"

#include <math.h>

/* ---- activations */

typedef struct fused_params {
    const char *activation;
    prn_floats activation_params; /* or the three below */
    float activation_alpha, activation_beta, activation_gamma;
} fused_params;

/* One row per activation: defaults of its two parameters, operations per element. An activation that is no
 * post-operation is a map over the finished output; Gemm's optimizer alone writes those. */
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
     a_,                                                                                                               \
     b_,                                                                                                               \
     flops,                                                                                                            \
     special,                                                                                                          \
     madds,                                                                                                            \
     false,                                                                                                            \
     0},
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

static prony_status check_activation(const prony_context *context, const fused_params *params, bool maps)
{
    const struct activation *found = find_activation(params->activation);
    if (*params->activation == '\0' || (found && (maps || !found->mapped))) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "activation '%s' is not supported", params->activation);
}

/* Its parameters, as given or by default, in a and b. */
static prn_post_op activation_with(const fused_params *params, const struct activation *found)
{
    prn_post_op op = {.kind = found->kind, .a = found->a, .b = found->b};
    if (!isnan(params->activation_alpha)) op.a = params->activation_alpha;
    if (!isnan(params->activation_beta)) op.b = params->activation_beta;
    if (found->mapped && !isnan(params->activation_gamma)) op.b = params->activation_gamma;
    if (params->activation_params.count > 0) op.a = params->activation_params.v[0];
    if (params->activation_params.count > 1) op.b = params->activation_params.v[1];
    return op;
}

static void add_activation(const fused_params *params, prn_post_ops *out)
{
    const struct activation *found = find_activation(params->activation);
    if (found && !found->mapped) out->op[out->count++] = activation_with(params, found);
}

typedef struct mapped_job {
    float *y;
    prn_map_fn map;
    prn_post_op with;
} mapped_job;

static void contrib_fused_map_range(void *argument, int64_t begin, int64_t end)
{
    const mapped_job *job = argument;
    job->map(job->y + begin, job->y + begin, end - begin, job->with.a, job->with.b);
}

static void finish_activation(const prony_context *context)
{
    const fused_params *params = context->params;
    const struct activation *found = find_activation(params->activation);
    const prony_value *y = context->outputs[0];
    if (!found || !found->mapped) return;
    mapped_job job = {.y = y->data, .map = prn_vec()->map[found->map], .with = activation_with(params, found)};
    prn_parallel_items(context->threads, prony_shape_numel(&y->shape), 20 * (int64_t)prn_value_bytes(y),
                       contrib_fused_map_range, &job);
}

static prony_status cost_activation(const prony_context *context, prony_cost *cost)
{
    const fused_params *params = context->params;
    const struct activation *found = find_activation(params->activation);
    const uint64_t n = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    if (!found) return PRONY_OK;
    cost->madds += n * found->madds;
    return prn_cost_elementwise(context, cost, n, found->flops, found->special);
}

/* ---- FusedConv: activation(Conv(X, W) + B + Z), and FusedGemm: activation(Gemm(A, B, C)) */

enum { ADDED = 3 }; /* FusedConv's Z */

typedef struct fused_kind {
    const char *base; /* the operator that does the work */
    uint32_t types;   /* of its first input that are taken */
    bool maps;        /* takes activations other than post-operations */
} fused_kind;

/* The state that a kernel keeps from prepare to run. */
typedef struct fused_state {
    prn_delegate to;
    prn_post_ops post_ops;
} fused_state;

/* The node as the base sees it; `inner` points into *out. */
static prony_status open_base(const prony_context *context, fused_state *out, prony_context *inner)
{
    const fused_kind *kind = prn_variant(context);
    *inner = *context;
    out->post_ops.count = 0;
    if (prn_input(context, ADDED))
        out->post_ops.op[out->post_ops.count++] = (prn_post_op){.kind = PRN_POST_ADD, .input = ADDED};
    add_activation(context->params, &out->post_ops);
    inner->post_ops = out->post_ops.count ? &out->post_ops : NULL;
    return prn_delegate_open(&out->to, inner, "", kind->base, INT64_MAX);
}

static prony_status contrib_fused_check(const prony_context *context)
{
    fused_state state;
    prony_context inner;
    PRN_TRY(open_base(context, &state, &inner));
    return check_activation(context, context->params, ((const fused_kind *)prn_variant(context))->maps);
}

static prony_status contrib_fused_infer(const prony_context *context)
{
    fused_state state;
    prony_context inner;
    const prony_value *added = prn_input(context, ADDED);
    PRN_TRY(prn_check_type(context, 0, ((const fused_kind *)prn_variant(context))->types));
    PRN_TRY(open_base(context, &state, &inner));
    PRN_TRY(state.to.op->infer(&inner));
    if (!added) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, ADDED, PRN_TYPE_F32));
    if (prn_shape_equal(&added->shape, &context->outputs[0]->shape)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 3 is %s, wanted %s", prn_value_text(added, text),
                      prn_shape_text(&context->outputs[0]->shape, wanted));
}

static prony_status contrib_fused_cost(const prony_context *context, prony_cost *out)
{
    fused_state state;
    prony_context inner;
    PRN_TRY(open_base(context, &state, &inner));
    PRN_TRY(state.to.op->cost(&inner, out));
    if (prn_input(context, ADDED))
        PRN_TRY(prn_cost_elementwise(context, out, (uint64_t)prony_shape_numel(&context->outputs[0]->shape), 1, 0));
    return cost_activation(context, out);
}

static bool supported_like(const prony_context *context, const prn_kernel *row)
{
    fused_state state;
    prony_context inner;
    return open_base(context, &state, &inner) == PRONY_OK && prn_delegate_kernel(&state.to, &inner, false, row);
}

static double predict_like(const prony_context *context, const prn_kernel *row)
{
    fused_state state;
    prony_context inner;
    if (open_base(context, &state, &inner) != PRONY_OK) return INFINITY;
    const prn_kernel *kernel = prn_op_kernel_named(state.to.op, &inner, row->name);
    return kernel && kernel->predict ? kernel->predict(&inner) : INFINITY;
}

static void layouts_like(const prony_context *context, const prn_kernel *row, prn_layout *in, prn_layout *out)
{
    fused_state state;
    prony_context inner;
    if (open_base(context, &state, &inner) != PRONY_OK || !prn_delegate_kernel(&state.to, &inner, false, row)) return;
    if (state.to.kernel->layouts) state.to.kernel->layouts(&inner, in, out);
}

static prony_status contrib_fused_prepare_like(const prony_context *context, const prn_kernel *row, prn_prepared *out)
{
    prony_context inner;
    fused_state *state = prn_calloc(1, sizeof *state);
    if (!state) return prn_no_memory(context->error);
    prony_status status = open_base(context, state, &inner);
    if (status == PRONY_OK) prn_delegate_kernel(&state->to, &inner, false, row);
    if (status == PRONY_OK) status = prn_delegate_prepare(&state->to, &inner);
    if (status == PRONY_OK)
        *out = (prn_prepared){state, state->to.prepared.scratch_bytes};
    else
        prn_free(state);
    return status;
}

static prony_status contrib_fused_run(const prony_context *context)
{
    const fused_state *state = context->state;
    prony_context inner = *context;
    inner.post_ops = state->post_ops.count ? &state->post_ops : NULL;
    PRN_TRY(prn_delegate_run(&state->to, &inner, context->scratch));
    finish_activation(context);
    return PRONY_OK;
}

static void contrib_fused_release(void *argument)
{
    fused_state *state = argument;
    if (state) prn_delegate_release(&state->to);
    prn_free(state);
}

/* A row lets those kernels of the base work that are like it; rows stand in the base's order, so that the plan takes
 * the one of the kernel that it would take there. */
#define FUSED_ROW(row, kernel, backend_name, makes_layout)                                                             \
    static const prn_kernel like_##row = {.name = kernel, .backend = backend_name, .own_layout = makes_layout};        \
    static bool contrib_fused_supported_##row(const prony_context *context)                                            \
    {                                                                                                                  \
        return supported_like(context, &like_##row);                                                                   \
    }                                                                                                                  \
    static void contrib_fused_layouts_##row(const prony_context *context, prn_layout *in, prn_layout *out)             \
    {                                                                                                                  \
        layouts_like(context, &like_##row, in, out);                                                                   \
    }                                                                                                                  \
    static prony_status contrib_fused_prepare_##row(const prony_context *context, prn_prepared *out)                   \
    {                                                                                                                  \
        return contrib_fused_prepare_like(context, &like_##row, out);                                                  \
    }
/* And of those that predict their time. */
#define PREDICTED_ROW(row, kernel, backend_name, makes_layout)                                                         \
    FUSED_ROW(row, kernel, backend_name, makes_layout)                                                                 \
    static double contrib_fused_predict_##row(const prony_context *context)                                            \
    {                                                                                                                  \
        return predict_like(context, &like_##row);                                                                     \
    }
PREDICTED_ROW(winograd, "conv_f32_winograd", "native", true)
PREDICTED_ROW(flat, "conv_f32_flat", "native", false)
PREDICTED_ROW(stem, "conv_f32_stem", "native", true)
PREDICTED_ROW(direct, "conv_f32_direct", "native", true)
PREDICTED_ROW(depthwise, "conv_f32_depthwise", "native", true)
#ifdef PRN_HAVE_DNNL
PREDICTED_ROW(dnnl, "conv_f32_dnnl", "dnnl", true)
#endif
PREDICTED_ROW(groups, "conv_f32_direct_groups", "native", true)
PREDICTED_ROW(variable, "conv_f32_direct_variable", "native", true)
FUSED_ROW(native, NULL, "native", false)
FUSED_ROW(reference, NULL, "reference", false)

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

static operand contrib_fused_operand_of(const prony_value *value, bool trans, bool trans_batch, bool is_left)
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

/* The problem that FusedMatMul states: transposes of matrices and of batches become strides, leading dimensions
 * broadcast. */
static prony_status contrib_fused_describe(const prony_context *context, prn_matmul_desc *out, prony_shape *y)
{
    const fused_matmul_params *p = context->params;
    const prony_value *left = context->inputs[0], *right = context->inputs[1];
    const operand a = contrib_fused_operand_of(left, p->transA != 0, p->transBatchA != 0, true);
    const operand b = contrib_fused_operand_of(right, p->transB != 0, p->transBatchB != 0, false);
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
    if (!prn_matmul_countable(y)) return prony_fail(context, PRONY_OUT_OF_RANGE, "the product is too large");
    *out = prn_matmul_make(left->dtype, a.shape.dim[ar - 2], b.shape.dim[br - 1], a.shape.dim[ar - 1]);
    out->rs_a = a.stride[ar - 2];
    out->cs_a = a.stride[ar - 1];
    out->rs_b = b.stride[br - 2];
    out->cs_b = b.stride[br - 1];
    out->alpha = p->alpha;
    int64_t a_step[PRONY_MAX_RANK], b_step[PRONY_MAX_RANK], c_step[PRONY_MAX_RANK];
    leading_strides(&a, &batch, a_step);
    leading_strides(&b, &batch, b_step);
    prn_shape_strides(&batch, c_step);
    for (int d = 0; d < batch.rank; d++)
        prn_matmul_batch(out, batch.dim[d], a_step[d], b_step[d], c_step[d] * out->m * out->n);
    prn_matmul_fold(out);
    return PRONY_OK;
}

#define MATMUL_TYPES PRN_TYPES_FLOAT

static prony_status infer_matmul(const prony_context *context)
{
    prn_matmul_desc product;
    prony_shape y;
    PRN_TRY(prn_check_type(context, 0, MATMUL_TYPES));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(context->inputs[0]->dtype)));
    for (size_t i = 0; i < 2; i++) PRN_TRY(prn_check_rank(context, i, 1, PRONY_MAX_RANK));
    PRN_TRY(contrib_fused_describe(context, &product, &y));
    prn_set_output(context, 0, context->inputs[0]->dtype, &y);
    return PRONY_OK;
}

static prony_status cost_matmul(const prony_context *context, prony_cost *cost)
{
    prn_matmul_desc p;
    prony_shape y;
    PRN_TRY(contrib_fused_describe(context, &p, &y));
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
    prn_matmul_desc product;
    prony_shape y;
    PRN_TRY(contrib_fused_describe(context, &product, &y));
    prn_matmul_bind_data(context, &product);
    return prn_matmul_native_prepare(context, &product, out);
}

static prony_status prepare_reference_matmul(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    prony_shape y;
    PRN_TRY(contrib_fused_describe(context, &product, &y));
    return prn_matmul_reference_prepare(context, &product, out);
}

/* ---- rows */

static const prn_param conv_params[] = {PRN_STRING(fused_params, activation, ""),
                                        PRN_FLOATS(fused_params, activation_params),
                                        PRN_FLOAT(fused_params, activation_alpha, NAN),
                                        PRN_FLOAT(fused_params, activation_beta, NAN),
                                        {0}};
static const prn_param gemm_params[] = {PRN_STRING(fused_params, activation, ""),
                                        PRN_FLOAT(fused_params, activation_alpha, NAN),
                                        PRN_FLOAT(fused_params, activation_beta, NAN),
                                        PRN_FLOAT(fused_params, activation_gamma, NAN),
                                        {0}};
static const prn_param matmul_params[] = {
    PRN_INT(fused_matmul_params, transA, 0),      PRN_INT(fused_matmul_params, transB, 0),
    PRN_INT(fused_matmul_params, transBatchA, 0), PRN_INT(fused_matmul_params, transBatchB, 0),
    PRN_FLOAT(fused_matmul_params, alpha, 1.0f),  {0}};

// clang-format off
#define FUSED_BY(row)                                                                                                  \
    .types = PRN_TYPE_F32, .supported = contrib_fused_supported_##row, .layouts = contrib_fused_layouts_##row,         \
    .prepare = contrib_fused_prepare_##row, .run = contrib_fused_run, .release = contrib_fused_release
/* On layouts of its own. The added input may be overwritten; operands of the sum itself may not. */
#define FUSED_BLOCKED(row) FUSED_BY(row), .predict = contrib_fused_predict_##row, .inplace = 1 << ADDED, .own_layout = true
static const prn_kernel conv_kernels[] = {
    {.name = "fusedconv_f32_winograd", .backend = "native", FUSED_BLOCKED(winograd)},
    {.name = "fusedconv_f32_flat", .backend = "native", FUSED_BY(flat), .predict = contrib_fused_predict_flat},
    {.name = "fusedconv_f32_stem", .backend = "native", FUSED_BLOCKED(stem)},
    {.name = "fusedconv_f32_direct", .backend = "native", FUSED_BLOCKED(direct)},
    {.name = "fusedconv_f32_depthwise", .backend = "native", FUSED_BLOCKED(depthwise)},
#ifdef PRN_HAVE_DNNL
    {.name = "fusedconv_f32_dnnl", .backend = "dnnl", .precisions = ~PRN_PRECISION(FP32_STRICT), FUSED_BLOCKED(dnnl)},
#endif
    {.name = "fusedconv_f32_direct_groups", .backend = "native", FUSED_BLOCKED(groups)},
    {.name = "fusedconv_f32_direct_variable", .backend = "native", FUSED_BLOCKED(variable)},
    {.name = "fusedconv_f32_native", .backend = "native", FUSED_BY(native)},
    {.name = "fusedconv_ref", .backend = "reference", FUSED_BY(reference)},
    {0}};
static const prn_kernel gemm_kernels[] = {
    {.name = "fusedgemm_f32_native", .backend = "native", FUSED_BY(native)},
    {.name = "fusedgemm_ref", .backend = "reference", FUSED_BY(reference)},
    {0}};
static const prn_kernel matmul_kernels[] = {
    {.name = "fusedmatmul_f32_native", .backend = "native", .types = PRN_TYPE_F32,
     .prepare = prepare_matmul, .run = prn_matmul_native_run, .release = prn_free},
    {.name = "fusedmatmul_ref", .backend = "reference", .types = MATMUL_TYPES,
     .prepare = prepare_reference_matmul, .run = prn_matmul_reference_run, .release = prn_free},
    {0}};

const prn_op prn_ops_contrib_fused[] = {
    {.name = "FusedConv", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 4},
     .params = conv_params, .params_bytes = sizeof(fused_params), .check = contrib_fused_check,
     .variant = &(const fused_kind){"Conv", PRN_TYPE_ANY, false},
     .infer = contrib_fused_infer, .cost = contrib_fused_cost, .kernels = conv_kernels,
     .cost_text = "Conv's, + n with Z, + the activation: Relu n, Clip and LeakyRelu 2 n, Sigmoid and HardSigmoid 4 n, "
                  "Tanh n"},
    {.name = "FusedGemm", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 3},
     .params = gemm_params, .params_bytes = sizeof(fused_params), .check = contrib_fused_check,
     .variant = &(const fused_kind){"Gemm", PRN_TYPE_F32, true},
     .infer = contrib_fused_infer, .cost = contrib_fused_cost, .kernels = gemm_kernels,
     .cost_text = "Gemm's, + the activation as for FusedConv; ThresholdedRelu n, Softplus and Softsign 3 n, Elu 4 n, "
                  "Selu 5 n, Celu 7 n"},
    {.name = "FusedMatMul", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 2},
     .params = matmul_params, .params_bytes = sizeof(fused_matmul_params),
     .infer = infer_matmul, .cost = cost_matmul, .kernels = matmul_kernels,
     .cost_text = "MACs M = n K; FLOPs 2M, + n with an alpha other than 1"},
    {0}};
// clang-format on
