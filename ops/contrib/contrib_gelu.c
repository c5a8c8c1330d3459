/* com.microsoft Gelu, FastGelu, BiasGelu, QuickGelu: y = f(x + bias), the bias (where there is one) running along the
 * last axis. */
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_map.h"

typedef struct gelu_params {
    float alpha; /* QuickGelu */
} gelu_params;

/* A row's variant: y = f(x), and what an element costs. */
typedef struct gelu_kind {
    prn_map_id map;
    uint64_t flops, special;
} gelu_kind;

typedef struct gelu {
    const prony_value *x, *bias, *y;
    int64_t width; /* of the last axis */
    prn_map_id map;
    float alpha;
} gelu;

static gelu contrib_gelu_of(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    return (gelu){.x = context->inputs[0],
                  .bias = prn_input(context, 1),
                  .y = context->outputs[0],
                  .width = shape->rank ? shape->dim[shape->rank - 1] : 1,
                  .map = ((const gelu_kind *)prn_variant(context))->map,
                  .alpha = ((const gelu_params *)context->params)->alpha};
}

static prony_status contrib_gelu_infer(const prony_context *context)
{
    const prony_value *x = context->inputs[0], *bias = prn_input(context, 1);
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    if (!bias) return prn_infer_same(context);
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(x->dtype)));
    PRN_TRY(prn_check_rank(context, 0, 1, PRONY_MAX_RANK));
    PRN_TRY(prn_check_rank(context, 1, 1, 1));
    if (bias->shape.dim[0] == x->shape.dim[x->shape.rank - 1]) return prn_infer_same(context);
    char text[PRN_SHAPE_TEXT_BYTES], first[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "the bias is %s, input 0 is %s", prn_value_text(bias, text),
                      prn_value_text(x, first));
}

static double contrib_gelu_apply(const gelu *g, double x)
{
    switch (g->map) {
    case PRN_MAP_GELU_TANH:
        return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case PRN_MAP_SILU:
        return x / (1.0 + exp(-(double)g->alpha * x));
    default:
        return 0.5 * x * (1.0 + erf(x * 0.70710678118654752));
    }
}

static void contrib_gelu_reference_range(void *argument, int64_t begin, int64_t end)
{
    const gelu *g = argument;
    for (int64_t i = begin; i < end; i++) {
        double x = prn_get_f64(g->x->data, g->x->dtype, i);
        if (g->bias) x += prn_get_f64(g->bias->data, g->bias->dtype, i % g->width);
        prn_put_f64(g->y->data, g->y->dtype, i, contrib_gelu_apply(g, x));
    }
}

static void contrib_gelu_native_range(void *argument, int64_t begin, int64_t end)
{
    const gelu *g = argument;
    const prn_vec_table *vec = prn_vec();
    const float *x = (const float *)g->x->data + begin;
    float *y = (float *)g->y->data + begin;
    if (g->bias) {
        vec->vr[PRN_BINARY_ADD](y, x, g->bias->data, end - begin, g->width, begin % g->width);
        x = y;
    }
    vec->map[g->map](y, x, end - begin, g->alpha, 0.0f);
}

static prony_status contrib_gelu_run_ranges(const prony_context *context,
                                            void (*fn)(void *argument, int64_t begin, int64_t end))
{
    gelu g = contrib_gelu_of(context);
    /* The work of an element is that of some twenty moved ones. */
    prn_parallel_items(context->threads, prony_shape_numel(&g.x->shape), 20 * (int64_t)prn_value_bytes(g.x), fn, &g);
    return PRONY_OK;
}

static prony_status contrib_gelu_run_native(const prony_context *context)
{
    return contrib_gelu_run_ranges(context, contrib_gelu_native_range);
}

static prony_status contrib_gelu_run_reference(const prony_context *context)
{
    return contrib_gelu_run_ranges(context, contrib_gelu_reference_range);
}

#ifdef PRN_HAVE_OPENCL
static prony_status contrib_gelu_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const gelu g = contrib_gelu_of(context);
    return prn_opencl_biased_map_prepare(context, out, g.map, g.alpha, 0.0f);
}
#endif

static prony_status contrib_gelu_cost(const prony_context *context, prony_cost *out)
{
    const gelu_kind *kind = prn_variant(context);
    return prn_cost_map(context, out, kind->flops + (prn_input(context, 1) != NULL), kind->special, 0);
}

static const prn_param params[] = {PRN_FLOAT(gelu_params, alpha, 1.702f), {0}};

// clang-format off
static const prn_kernel gelu_kernels[] = {
    PRN_OPENCL_ROW("gelu_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, contrib_gelu_opencl_prepare)
    {.name = "gelu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = contrib_gelu_run_native, .inplace = 1},
    {.name = "gelu_reference", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = contrib_gelu_run_reference, .inplace = 1},
    {0}};
static const prn_kernel bias_gelu_kernels[] = {
    PRN_OPENCL_ROW("bias_gelu_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, contrib_gelu_opencl_prepare)
    {.name = "bias_gelu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = contrib_gelu_run_native, .inplace = 1},
    {.name = "bias_gelu_reference", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = contrib_gelu_run_reference, .inplace = 1},
    {0}};
static const prn_kernel fast_gelu_kernels[] = {
    PRN_OPENCL_ROW("fast_gelu_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, contrib_gelu_opencl_prepare)
    {.name = "fast_gelu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = contrib_gelu_run_native, .inplace = 1},
    {.name = "fast_gelu_reference", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = contrib_gelu_run_reference, .inplace = 1},
    {0}};
static const prn_kernel quick_gelu_kernels[] = {
    PRN_OPENCL_ROW("quick_gelu_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, contrib_gelu_opencl_prepare)
    {.name = "quick_gelu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = contrib_gelu_run_native, .inplace = 1},
    {.name = "quick_gelu_reference", .backend = "reference", .types = PRN_TYPES_FLOAT, .run = contrib_gelu_run_reference, .inplace = 1},
    {0}};

const prn_op prn_ops_contrib_gelu[] = {
    {.name = "Gelu", .domain = "com.microsoft", .since_opset = 1, .inputs = {1, 1},
     .params = params, .params_bytes = sizeof(gelu_params), .variant = &(const gelu_kind){PRN_MAP_GELU_ERF, 5, 1},
     .infer = contrib_gelu_infer, .cost = contrib_gelu_cost, .cost_text = "5 n; special n", .kernels = gelu_kernels},
    {.name = "BiasGelu", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 2},
     .params = params, .params_bytes = sizeof(gelu_params), .variant = &(const gelu_kind){PRN_MAP_GELU_ERF, 5, 1},
     .infer = contrib_gelu_infer, .cost = contrib_gelu_cost, .cost_text = "6 n; special n", .kernels = bias_gelu_kernels},
    {.name = "FastGelu", .domain = "com.microsoft", .since_opset = 1, .inputs = {1, 2},
     .params = params, .params_bytes = sizeof(gelu_params), .variant = &(const gelu_kind){PRN_MAP_GELU_TANH, 9, 1},
     .infer = contrib_gelu_infer, .cost = contrib_gelu_cost, .cost_text = "9 n, + n with bias; special n", .kernels = fast_gelu_kernels},
    {.name = "QuickGelu", .domain = "com.microsoft", .since_opset = 1, .inputs = {1, 1},
     .params = params, .params_bytes = sizeof(gelu_params), .variant = &(const gelu_kind){PRN_MAP_SILU, 6, 2},
     .infer = contrib_gelu_infer, .cost = contrib_gelu_cost, .cost_text = "6 n; special 2 n", .kernels = quick_gelu_kernels},
    {0}};
// clang-format on
