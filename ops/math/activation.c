/* Elementwise functions of one float tensor: activations, rounding, exponentials, trigonometry.
 * An operator's row says what the function is in double (the reference, for every float type), which vector map
 * computes it in float32, and what it costs. Kernels do not care about layout.
 * Invariant: padding lanes are zero again after every map, since f(0) need not be. */
#include "ops/kernels/vector/elementwise.h"

#include "base/threads/parallel.h"
#include "base/cpu/simd.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/vec.h"
#include "ops/kernels/vector/widen.h"
#include "ops/math/tanh_simd.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

/* ---- parameters */

typedef struct unary_params {
    float alpha, beta, gamma, lambd, bias;
    const char *approximate;
} unary_params;

#define FLOAT_ROW(field, value) PRN_FLOAT(unary_params, field, value)

/* Up to two numbers, read from the attributes, that the function takes beside x. */
typedef struct unary_args {
    float a, b;
} unary_args;

static unary_args take_none(const prony_context *context)
{
    (void)context;
    return (unary_args){0.0f, 0.0f};
}

static unary_args take_alpha_beta(const prony_context *context)
{
    const unary_params *params = context->params;
    return (unary_args){params->alpha, params->beta};
}

static unary_args take_alpha_gamma(const prony_context *context)
{
    const unary_params *params = context->params;
    return (unary_args){params->alpha, params->gamma};
}

static unary_args take_lambd_bias(const prony_context *context)
{
    const unary_params *params = context->params;
    return (unary_args){params->lambd, params->bias};
}

static unary_args take_one(const prony_context *context)
{
    (void)context;
    return (unary_args){1.0f, 0.0f};
}

typedef void (*function_fn)(double *block, int64_t n, double a, double b);

/* An operator's variant. */
typedef struct unary {
    function_fn f;
    prn_map_id map; /* where there is a vector map */
    unary_args (*take)(const prony_context *context);
    uint64_t flops, special, madds; /* per element */
} unary;

/* ---- functions in double */

static double activation_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double activation_clamp_unit(double x)
{
    return x < 0.0 ? 0.0 : (x > 1.0 ? 1.0 : x);
}

static double softplus(double x)
{
    return x != x ? x : fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

static double shrink(double x, double lambd, double bias)
{
    return x < -lambd ? x + bias : (x > lambd ? x - bias : (x != x ? x : 0.0));
}

#define FUNCTION(name, expression)                                                                                     \
    static void activation_f_##name(double *block, int64_t n, double a, double b)                                      \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        (void)b;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const double x = block[i];                                                                                 \
            block[i] = expression;                                                                                     \
        }                                                                                                              \
    }

/* Those that are post-operations too. */
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    FUNCTION(SYMBOL, in_double)
#define PRN_RECTIFIER(SYMBOL, operator, a_, b_, flops, in_float, dnnl)
#include "ops/activations.inc"

static const unary activations[] = {
#define PRN_ACTIVATION(SYMBOL, operator, attributes, a_, b_, flops, special, madds, in_double, in_float, dnnl)         \
    [PRN_POST_##SYMBOL] = {activation_f_##SYMBOL, PRN_MAP_##SYMBOL, take_##attributes, flops, special, madds},
#define PRN_RECTIFIER(SYMBOL, operator, a_, b_, flops, in_float, dnnl)
#include "ops/activations.inc"
};

FUNCTION(thresholded_relu, x <= a ? 0.0 : x)
FUNCTION(erf, erf(x))
FUNCTION(exp, exp(x))
FUNCTION(log, log(x))
FUNCTION(sqrt, sqrt(x))
FUNCTION(reciprocal, 1.0 / x)
FUNCTION(floor, floor(x))
FUNCTION(ceil, ceil(x))
FUNCTION(round, nearbyint(x))
FUNCTION(gelu_tanh, 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))))
FUNCTION(elu, x > 0.0 ? x : a * expm1(x))
FUNCTION(selu, b *(x > 0.0 ? x : a * expm1(x)))
FUNCTION(celu, x > 0.0 ? x : a * expm1(x / a))
FUNCTION(softplus, softplus(x))
FUNCTION(softsign, x / (1.0 + fabs(x)))
FUNCTION(mish, x *tanh(softplus(x)))
FUNCTION(shrink, shrink(x, a, b))
FUNCTION(sin, sin(x))
FUNCTION(cos, cos(x))
FUNCTION(tan, tan(x))
FUNCTION(asin, asin(x))
FUNCTION(acos, acos(x))
FUNCTION(atan, atan(x))
FUNCTION(sinh, sinh(x))
FUNCTION(cosh, cosh(x))
FUNCTION(asinh, asinh(x))
FUNCTION(acosh, acosh(x))
FUNCTION(atanh, atanh(x))

/* ---- kernels */

typedef struct unary_job {
    function_fn f;
    prn_map_fn map;
    unary_args args;
    const prony_value *in, *out;
} unary_job;

static void activation_reference_range(void *argument, int64_t begin, int64_t end)
{
    const unary_job *job = argument;
    const prony_dtype dtype = job->in->dtype;
    double block[PRN_BLOCK];
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        prn_load_f64(block, job->in->data, dtype, first, n);
        job->f(block, n, (double)job->args.a, (double)job->args.b);
        prn_store_f64(job->out->data, dtype, first, block, n);
    }
}

static prony_status reference_by(const prony_context *context, const unary *kind)
{
    unary_job job = {.f = kind->f, .args = kind->take(context), .in = context->inputs[0], .out = context->outputs[0]};
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 4096, activation_reference_range, &job);
    return PRONY_OK;
}

static prony_status activation_run_reference(const prony_context *context)
{
    return reference_by(context, prn_variant(context));
}

static void activation_map_range(void *argument, int64_t begin, int64_t end)
{
    const unary_job *job = argument;
    job->map((float *)job->out->data + begin, (const float *)job->in->data + begin, end - begin, job->args.a,
             job->args.b);
}

prony_status prn_run_map_f32(const prony_context *context, prn_map_id map, float a, float b)
{
    unary_job job = {.map = prn_vec()->map[map], .args = {a, b}, .in = context->inputs[0], .out = context->outputs[0]};
    prn_parallel_range(context->threads, prn_layout_elements(&job.out->shape, (prn_layout)job.out->layout), 16384,
                       activation_map_range, &job);
    prn_clear_padding(job.out);
    return PRONY_OK;
}

static prony_status native_by(const prony_context *context, const unary *kind)
{
    const unary_args args = kind->take(context);
    return prn_run_map_f32(context, kind->map, args.a, args.b);
}

static prony_status activation_run_native(const prony_context *context)
{
    return native_by(context, prn_variant(context));
}

/* The half precisions by way of float32, in blocks. */
static void half_range(void *argument, int64_t begin, int64_t end)
{
    const unary_job *job = argument;
    const prony_dtype dtype = job->in->dtype;
    float block[PRN_BLOCK];
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        prn_convert(block, PRONY_FLOAT32, prn_block_at(job->in->data, dtype, first), dtype, n);
        job->map(block, block, n, job->args.a, job->args.b);
        prn_convert((char *)job->out->data + prony_dtype_bytes(dtype, first), dtype, block, PRONY_FLOAT32, n);
    }
}

static prony_status half_by(const prony_context *context, const unary *kind)
{
    unary_job job = {.map = prn_vec()->map[kind->map], .args = kind->take(context)};
    job.in = context->inputs[0];
    job.out = context->outputs[0];
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 8192, half_range, &job);
    return PRONY_OK;
}

static prony_status activation_run_half(const prony_context *context)
{
    return half_by(context, prn_variant(context));
}

#ifdef PRN_HAVE_OPENCL
static prony_status activation_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const unary *kind = prn_variant(context);
    const unary_args args = kind->take(context);
    return prn_opencl_map_prepare(context, out, kind->map, args.a, args.b);
}
#endif

/* Functions without a vector map; their names are OpenCL's, too. */
#ifdef PRN_HAVE_OPENCL
#define OPENCL_FUNCTION(name)                                                                                          \
    static prony_status activation_opencl_##name(const prony_context *context, prn_prepared *out)                      \
    {                                                                                                                  \
        return prn_opencl_expression_prepare(context, out, #name "(x)", 0.0f, 0.0f);                                   \
    }
OPENCL_FUNCTION(sinh)
OPENCL_FUNCTION(cosh)
OPENCL_FUNCTION(asinh)
OPENCL_FUNCTION(acosh)
OPENCL_FUNCTION(atanh)
#endif

PRN_SIMD_PICK(prn_tanh_simd, prn_tanh_simd_, static const prn_tanh_simd *tanh_table)

static void activation_f_tanh_fast(double *block, int64_t n, double a, double b)
{
    (void)a;
    (void)b;
    tanh_table()->tanh_f64(block, n);
}

static prony_status run_tanh_f64(const prony_context *context)
{
    static const unary fast = {.f = activation_f_tanh_fast, .take = take_none};
    return reference_by(context, &fast);
}

/* ---- inference and cost */

static prony_status activation_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    return prn_infer_same(context);
}

/* Two of the functions are defined on integers as well; what they give is cut off. */
static prony_status infer_number(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    return prn_infer_same(context);
}

prony_status prn_cost_map(const prony_context *context, prony_cost *cost, uint64_t flops, uint64_t special,
                          uint64_t madds)
{
    const uint64_t n = prn_output_elements(context);
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    cost->madds += n * madds;
    return prn_cost_elementwise(context, cost, n, flops, special);
}

static prony_status cost_by(const prony_context *context, prony_cost *cost, const unary *kind)
{
    return prn_cost_map(context, cost, kind->flops, kind->special, kind->madds);
}

static prony_status activation_cost(const prony_context *context, prony_cost *cost)
{
    return cost_by(context, cost, prn_variant(context));
}

/* ---- Gelu: two definitions, told apart by an attribute */

static bool by_tanh(const prony_context *context)
{
    return strcmp(((const unary_params *)context->params)->approximate, "tanh") == 0;
}

static prony_status check_gelu(const prony_context *context)
{
    const char *approximate = ((const unary_params *)context->params)->approximate;
    if (by_tanh(context) || strcmp(approximate, "none") == 0) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'approximate' is '%s', wanted none or tanh",
                      approximate);
}

static const unary *activation_gelu_of(const prony_context *context)
{
    static const unary tanh_form = {activation_f_gelu_tanh, PRN_MAP_GELU_TANH, take_none, 9, 1, 0};
    return by_tanh(context) ? &tanh_form : &activations[PRN_POST_GELU_ERF];
}

static prony_status reference_gelu(const prony_context *context)
{
    return reference_by(context, activation_gelu_of(context));
}

static prony_status native_gelu(const prony_context *context)
{
    return native_by(context, activation_gelu_of(context));
}

#ifdef PRN_HAVE_OPENCL
static prony_status activation_opencl_gelu(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_map_prepare(context, out, activation_gelu_of(context)->map, 0.0f, 0.0f);
}
#endif

static prony_status half_gelu(const prony_context *context)
{
    return half_by(context, activation_gelu_of(context));
}

static prony_status cost_gelu(const prony_context *context, prony_cost *cost)
{
    return cost_by(context, cost, activation_gelu_of(context));
}

/* ---- attributes, kernels, rows */

static const prn_param leaky_relu_rows[] = {FLOAT_ROW(alpha, 0.01f), {0}};
static const prn_param alpha_one_rows[] = {FLOAT_ROW(alpha, 1.0f), {0}};
static const prn_param hard_sigmoid_rows[] = {FLOAT_ROW(alpha, 0.2f), FLOAT_ROW(beta, 0.5f), {0}};
static const prn_param selu_rows[] = {
    FLOAT_ROW(alpha, 1.67326319217681884765625f), FLOAT_ROW(gamma, 1.05070102214813232421875f), {0}};
static const prn_param shrink_rows[] = {FLOAT_ROW(lambd, 0.5f), FLOAT_ROW(bias, 0.0f), {0}};
static const prn_param gelu_rows[] = {PRN_STRING(unary_params, approximate, "none"), {0}};

/* Of a function with a vector map. */
#define MAP_KERNELS(stem)                                                                                              \
    PRN_OPENCL_ROW(stem "_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported,                                         \
                   activation_opencl_prepare){.name = stem "_f32_native",                                              \
                                              .backend = "native",                                                     \
                                              .types = PRN_TYPE_F32,                                                   \
                                              .layouts = prn_same_layout,                                              \
                                              .layout_invariant = true,                                                \
                                              .run = activation_run_native,                                            \
                                              .inplace = 1},                                                           \
        {.name = stem "_half_native",                                                                                  \
         .backend = "native",                                                                                          \
         .types = PRN_TYPES_HALF,                                                                                      \
         .run = activation_run_half,                                                                                   \
         .inplace = 1},                                                                                                \
        {.name = stem "_reference", .backend = "reference", .run = activation_run_reference, .inplace = 1}

static const prn_kernel leaky_relu_kernels[] = {MAP_KERNELS("leaky_relu"), {0}};
static const prn_kernel thresholded_relu_kernels[] = {MAP_KERNELS("thresholded_relu"), {0}};
static const prn_kernel sigmoid_kernels[] = {MAP_KERNELS("sigmoid"), {0}};
static const prn_kernel tanh_kernels[] = {{.name = "tanh_f64_native",
                                           .backend = "native",
                                           .types = PRN_TYPE(PRONY_FLOAT64),
                                           .run = run_tanh_f64,
                                           .inplace = 1},
                                          MAP_KERNELS("tanh"),
                                          {0}};
static const prn_kernel erf_kernels[] = {MAP_KERNELS("erf"), {0}};
static const prn_kernel exp_kernels[] = {MAP_KERNELS("exp"), {0}};
static const prn_kernel log_kernels[] = {MAP_KERNELS("log"), {0}};
static const prn_kernel sqrt_kernels[] = {MAP_KERNELS("sqrt"), {0}};
static const prn_kernel reciprocal_kernels[] = {MAP_KERNELS("reciprocal"), {0}};
static const prn_kernel floor_kernels[] = {MAP_KERNELS("floor"), {0}};
static const prn_kernel ceil_kernels[] = {MAP_KERNELS("ceil"), {0}};
static const prn_kernel round_kernels[] = {MAP_KERNELS("round"), {0}};
static const prn_kernel hard_sigmoid_kernels[] = {MAP_KERNELS("hard_sigmoid"), {0}};
static const prn_kernel hard_swish_kernels[] = {MAP_KERNELS("hard_swish"), {0}};
static const prn_kernel elu_kernels[] = {MAP_KERNELS("elu"), {0}};
static const prn_kernel selu_kernels[] = {MAP_KERNELS("selu"), {0}};
static const prn_kernel celu_kernels[] = {MAP_KERNELS("celu"), {0}};
static const prn_kernel softplus_kernels[] = {MAP_KERNELS("softplus"), {0}};
static const prn_kernel softsign_kernels[] = {MAP_KERNELS("softsign"), {0}};
static const prn_kernel mish_kernels[] = {MAP_KERNELS("mish"), {0}};
static const prn_kernel swish_kernels[] = {MAP_KERNELS("swish"), {0}};
static const prn_kernel shrink_kernels[] = {MAP_KERNELS("shrink"), {0}};
static const prn_kernel sin_kernels[] = {MAP_KERNELS("sin"), {0}};
static const prn_kernel cos_kernels[] = {MAP_KERNELS("cos"), {0}};
static const prn_kernel tan_kernels[] = {MAP_KERNELS("tan"), {0}};
static const prn_kernel asin_kernels[] = {MAP_KERNELS("asin"), {0}};
static const prn_kernel acos_kernels[] = {MAP_KERNELS("acos"), {0}};
static const prn_kernel atan_kernels[] = {MAP_KERNELS("atan"), {0}};
static const prn_kernel silu_kernels[] = {MAP_KERNELS("silu"), {0}};
// clang-format off
static const prn_kernel sinh_kernels[] = {
    PRN_OPENCL_ROW("sinh_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, activation_opencl_sinh)
    {.name = "sinh_reference", .backend = "reference", .run = activation_run_reference, .inplace = 1}, {0}};
static const prn_kernel cosh_kernels[] = {
    PRN_OPENCL_ROW("cosh_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, activation_opencl_cosh)
    {.name = "cosh_reference", .backend = "reference", .run = activation_run_reference, .inplace = 1}, {0}};
static const prn_kernel asinh_kernels[] = {
    PRN_OPENCL_ROW("asinh_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, activation_opencl_asinh)
    {.name = "asinh_reference", .backend = "reference", .run = activation_run_reference, .inplace = 1}, {0}};
static const prn_kernel acosh_kernels[] = {
    PRN_OPENCL_ROW("acosh_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, activation_opencl_acosh)
    {.name = "acosh_reference", .backend = "reference", .run = activation_run_reference, .inplace = 1}, {0}};
static const prn_kernel atanh_kernels[] = {
    PRN_OPENCL_ROW("atanh_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, activation_opencl_atanh)
    {.name = "atanh_reference", .backend = "reference", .run = activation_run_reference, .inplace = 1}, {0}};
static const prn_kernel gelu_kernels[] = {
    PRN_OPENCL_ROW("gelu_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, activation_opencl_gelu)
    {.name = "gelu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_same_layout, .layout_invariant = true,
     .run = native_gelu, .inplace = 1},
    {.name = "gelu_half_native", .backend = "native", .types = PRN_TYPES_HALF, .run = half_gelu, .inplace = 1},
    {.name = "gelu_reference", .backend = "reference", .run = reference_gelu, .inplace = 1}, {0}};

const prn_op prn_ops_activation[] = {
    {.name = "LeakyRelu", .since_opset = 1, .inputs = {1, 1},
     .params = leaky_relu_rows, .params_bytes = sizeof(unary_params), .variant = &activations[PRN_POST_LEAKY_RELU],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "2 n", .kernels = leaky_relu_kernels},
    {.name = "ThresholdedRelu", .since_opset = 1, .inputs = {1, 1},
     .params = alpha_one_rows, .params_bytes = sizeof(unary_params),
     .variant = &(const unary){activation_f_thresholded_relu, PRN_MAP_THRESHOLDED_RELU, take_alpha_beta, 1, 0, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n", .kernels = thresholded_relu_kernels},
    {.name = "Sigmoid", .since_opset = 1, .inputs = {1, 1}, .variant = &activations[PRN_POST_SIGMOID],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "4 n; special 2 n", .kernels = sigmoid_kernels},
    {.name = "Tanh", .since_opset = 1, .inputs = {1, 1}, .variant = &activations[PRN_POST_TANH],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = tanh_kernels},
    {.name = "Erf", .since_opset = 9, .inputs = {1, 1},
     .variant = &(const unary){activation_f_erf, PRN_MAP_ERF, take_none, 1, 1, 0},
     .infer = infer_number, .cost = activation_cost, .cost_text = "n; special n", .kernels = erf_kernels},
    {.name = "Exp", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_exp, PRN_MAP_EXP, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = exp_kernels},
    {.name = "Log", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_log, PRN_MAP_LOG, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = log_kernels},
    {.name = "Sqrt", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_sqrt, PRN_MAP_SQRT, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = sqrt_kernels},
    {.name = "Reciprocal", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_reciprocal, PRN_MAP_RECIPROCAL, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = reciprocal_kernels},
    {.name = "Floor", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_floor, PRN_MAP_FLOOR, take_none, 1, 0, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n", .kernels = floor_kernels},
    {.name = "Ceil", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_ceil, PRN_MAP_CEIL, take_none, 1, 0, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n", .kernels = ceil_kernels},
    {.name = "Round", .since_opset = 11, .inputs = {1, 1},
     .variant = &(const unary){activation_f_round, PRN_MAP_ROUND, take_none, 1, 0, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n", .kernels = round_kernels},
    {.name = "HardSigmoid", .since_opset = 1, .inputs = {1, 1},
     .params = hard_sigmoid_rows, .params_bytes = sizeof(unary_params), .variant = &activations[PRN_POST_HARD_SIGMOID],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "4 n; madds n", .kernels = hard_sigmoid_kernels},
    {.name = "HardSwish", .since_opset = 14, .inputs = {1, 1}, .variant = &activations[PRN_POST_HARD_SWISH],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "5 n; madds n", .kernels = hard_swish_kernels},
    {.name = "Elu", .since_opset = 1, .inputs = {1, 1}, .params = alpha_one_rows, .params_bytes = sizeof(unary_params),
     .variant = &(const unary){activation_f_elu, PRN_MAP_ELU, take_alpha_beta, 4, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "4 n (compare, exp, sub, mul); special n", .kernels = elu_kernels},
    {.name = "Selu", .since_opset = 1, .inputs = {1, 1}, .params = selu_rows, .params_bytes = sizeof(unary_params),
     .variant = &(const unary){activation_f_selu, PRN_MAP_SELU, take_alpha_gamma, 5, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "5 n (compare, exp, sub, 2 mul); special n", .kernels = selu_kernels},
    {.name = "Celu", .since_opset = 12, .inputs = {1, 1},
     .params = alpha_one_rows, .params_bytes = sizeof(unary_params),
     .variant = &(const unary){activation_f_celu, PRN_MAP_CELU, take_alpha_beta, 7, 2, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "7 n (max, min, div, exp, sub, mul, add); special 2 n",
     .kernels = celu_kernels},
    {.name = "Softplus", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_softplus, PRN_MAP_SOFTPLUS, take_none, 3, 2, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "3 n (exp, add, log); special 2 n", .kernels = softplus_kernels},
    {.name = "Softsign", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const unary){activation_f_softsign, PRN_MAP_SOFTSIGN, take_none, 3, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "3 n (abs, add, div); special n", .kernels = softsign_kernels},
    {.name = "Mish", .since_opset = 18, .inputs = {1, 1},
     .variant = &(const unary){activation_f_mish, PRN_MAP_MISH, take_none, 5, 3, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "5 n (exp, add, log, tanh, mul); special 3 n", .kernels = mish_kernels},
    {.name = "Swish", .since_opset = 24, .inputs = {1, 1},
     .params = alpha_one_rows, .params_bytes = sizeof(unary_params),
     .variant = &(const unary){activation_f_SILU, PRN_MAP_SILU, take_alpha_beta, 6, 2, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "6 n; special 2 n", .kernels = swish_kernels},
    {.name = "Shrink", .since_opset = 9, .inputs = {1, 1}, .params = shrink_rows, .params_bytes = sizeof(unary_params),
     .variant = &(const unary){activation_f_shrink, PRN_MAP_SHRINK, take_lambd_bias, 3, 0, 0},
     .infer = infer_number, .cost = activation_cost, .cost_text = "3 n (2 compares, add)", .kernels = shrink_kernels},
    {.name = "Sin", .since_opset = 7, .inputs = {1, 1},
     .variant = &(const unary){activation_f_sin, PRN_MAP_SIN, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = sin_kernels},
    {.name = "Cos", .since_opset = 7, .inputs = {1, 1},
     .variant = &(const unary){activation_f_cos, PRN_MAP_COS, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = cos_kernels},
    {.name = "Tan", .since_opset = 7, .inputs = {1, 1},
     .variant = &(const unary){activation_f_tan, PRN_MAP_TAN, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = tan_kernels},
    {.name = "Asin", .since_opset = 7, .inputs = {1, 1},
     .variant = &(const unary){activation_f_asin, PRN_MAP_ASIN, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = asin_kernels},
    {.name = "Acos", .since_opset = 7, .inputs = {1, 1},
     .variant = &(const unary){activation_f_acos, PRN_MAP_ACOS, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = acos_kernels},
    {.name = "Atan", .since_opset = 7, .inputs = {1, 1},
     .variant = &(const unary){activation_f_atan, PRN_MAP_ATAN, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = atan_kernels},
    {.name = "Sinh", .since_opset = 9, .inputs = {1, 1}, .variant = &(const unary){activation_f_sinh, 0, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = sinh_kernels},
    {.name = "Cosh", .since_opset = 9, .inputs = {1, 1}, .variant = &(const unary){activation_f_cosh, 0, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = cosh_kernels},
    {.name = "Asinh", .since_opset = 9, .inputs = {1, 1}, .variant = &(const unary){activation_f_asinh, 0, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = asinh_kernels},
    {.name = "Acosh", .since_opset = 9, .inputs = {1, 1}, .variant = &(const unary){activation_f_acosh, 0, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = acosh_kernels},
    {.name = "Atanh", .since_opset = 9, .inputs = {1, 1}, .variant = &(const unary){activation_f_atanh, 0, take_none, 1, 1, 0},
     .infer = activation_infer, .cost = activation_cost, .cost_text = "n; special n", .kernels = atanh_kernels},
    {.name = "Gelu", .since_opset = 20, .inputs = {1, 1},
     .params = gelu_rows, .params_bytes = sizeof(unary_params), .check = check_gelu,
     .infer = activation_infer, .cost = cost_gelu, .cost_text = "5 n, by tanh 9 n; special n", .kernels = gelu_kernels},

    /* Operators that rewrites put in place of primitives, whatever the model's opset. */
    {.name = "SiLU", .domain = "prony", .since_opset = 1, .inputs = {1, 1}, .variant = &activations[PRN_POST_SILU],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "5 n; special 2 n", .kernels = silu_kernels},
    {.name = "HardSwish", .domain = "prony", .since_opset = 1, .inputs = {1, 1},
     .variant = &activations[PRN_POST_HARD_SWISH],
     .infer = activation_infer, .cost = activation_cost, .cost_text = "5 n; madds n", .kernels = hard_swish_kernels},
    {.name = "Gelu", .domain = "prony", .since_opset = 1, .inputs = {1, 1},
     .params = gelu_rows, .params_bytes = sizeof(unary_params), .check = check_gelu,
     .infer = activation_infer, .cost = cost_gelu, .cost_text = "5 n, by tanh 9 n; special n", .kernels = gelu_kernels},
    {0}};
// clang-format on
