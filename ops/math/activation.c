/* Elementwise functions of one float tensor: activations, rounding, exponentials, trigonometry.
 * One row says what the function is in double (the reference, for every float type), which vector map computes it in
 * float32, and what it costs. Kernels do not care about layout; owns nothing.
 * Invariant: padding lanes are zero again after every map, since f(0) need not be. */
#include "ops/loops/elementwise.h"

#include "base/parallel.h"
#include "ops/loops/broadcast.h"
#include "ops/loops/number.h"
#include "ops/loops/vec.h"

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

static unary_args take_nothing(const prony_context *context)
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

/* ---- functions in double */

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double clamp_unit(double x)
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

typedef void (*function_fn)(double *block, int64_t n, double a, double b);

#define FUNCTION(name, expression)                                                                                     \
    static void f_##name(double *block, int64_t n, double a, double b)                                                 \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        (void)b;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const double x = block[i];                                                                                 \
            block[i] = expression;                                                                                     \
        }                                                                                                              \
    }

FUNCTION(leaky_relu, x < 0.0 ? a * x : x)
FUNCTION(thresholded_relu, x <= a ? 0.0 : x)
FUNCTION(sigmoid, sigmoid(x))
FUNCTION(tanh, tanh(x))
FUNCTION(erf, erf(x))
FUNCTION(exp, exp(x))
FUNCTION(log, log(x))
FUNCTION(sqrt, sqrt(x))
FUNCTION(reciprocal, 1.0 / x)
FUNCTION(floor, floor(x))
FUNCTION(ceil, ceil(x))
FUNCTION(round, nearbyint(x))
FUNCTION(hard_sigmoid, clamp_unit(a *x + b))
FUNCTION(hard_swish, x *clamp_unit(x / 6.0 + 0.5))
FUNCTION(silu, x / (1.0 + exp(-a * x)))
FUNCTION(gelu_erf, 0.5 * x * (1.0 + erf(x * M_SQRT1_2)))
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

static void reference_range(void *argument, int64_t begin, int64_t end)
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

static prony_status run_reference(const prony_context *context, function_fn f, unary_args args)
{
    unary_job job = {.f = f, .args = args, .in = context->inputs[0], .out = context->outputs[0]};
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 4096, reference_range, &job);
    return PRONY_OK;
}

static void map_range(void *argument, int64_t begin, int64_t end)
{
    const unary_job *job = argument;
    job->map((float *)job->out->data + begin, (const float *)job->in->data + begin, end - begin, job->args.a,
             job->args.b);
}

prony_status prn_run_map_f32(const prony_context *context, prn_map_id map, float a, float b)
{
    unary_job job = {.map = prn_vec()->map[map], .args = {a, b}, .in = context->inputs[0], .out = context->outputs[0]};
    prn_parallel_range(context->threads, prn_layout_elements(&job.out->shape, (prn_layout)job.out->layout), 16384,
                       map_range, &job);
    prn_clear_padding(job.out);
    return PRONY_OK;
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

static prony_status run_map_half(const prony_context *context, prn_map_id map, unary_args args)
{
    unary_job job = {.map = prn_vec()->map[map], .args = args, .in = context->inputs[0], .out = context->outputs[0]};
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 8192, half_range, &job);
    return PRONY_OK;
}

/* ---- inference and cost */

/* Two of the functions are defined on integers as well; what they give is cut off. */
static prony_status infer_float(const prony_context *context)
{
    const char *name = context->node->op_type;
    const bool integers = strcmp(name, "Erf") == 0 || strcmp(name, "Shrink") == 0;
    PRN_TRY(prn_check_type(context, 0, integers ? PRN_TYPES_NUMBER : PRN_TYPES_FLOAT));
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

/* ---- descriptors */

#define FUNCTIONS(symbol, f, take, flops, special, madds)                                                              \
    static prony_status reference_##symbol(const prony_context *context)                                               \
    {                                                                                                                  \
        return run_reference(context, f_##f, take(context));                                                           \
    }                                                                                                                  \
    static prony_status cost_##symbol(const prony_context *context, prony_cost *cost)                                  \
    {                                                                                                                  \
        return prn_cost_map(context, cost, flops, special, madds);                                                     \
    }

#define NATIVE(symbol, id, take)                                                                                       \
    static prony_status native_##symbol(const prony_context *context)                                                  \
    {                                                                                                                  \
        const unary_args args = take(context);                                                                         \
        return prn_run_map_f32(context, PRN_MAP_##id, args.a, args.b);                                                 \
    }                                                                                                                  \
    static prony_status half_##symbol(const prony_context *context)                                                    \
    {                                                                                                                  \
        return run_map_half(context, PRN_MAP_##id, take(context));                                                     \
    }

#define REFERENCE_KERNEL(symbol)                                                                                       \
    {                                                                                                                  \
        .name = #symbol "_reference", .backend = "reference", .run = reference_##symbol, .inplace = 1                  \
    }
#define NATIVE_KERNEL(symbol)                                                                                          \
    {.name = #symbol "_f32_native",                                                                                    \
     .backend = "native",                                                                                              \
     .types = PRN_TYPE_F32,                                                                                            \
     .layouts = prn_same_layout,                                                                                       \
     .run = native_##symbol,                                                                                           \
     .inplace = 1},                                                                                                    \
    {                                                                                                                  \
        .name = #symbol "_half_native", .backend = "native",                                                           \
        .types = PRN_TYPE(PRONY_FLOAT16) | PRN_TYPE(PRONY_BFLOAT16), .run = half_##symbol, .inplace = 1                \
    }

#define DESCRIPTOR(symbol, op_name, op_domain, opset, attributes, text, kernel_rows, ...)                              \
    const prn_op prn_op_##symbol = {.name = op_name,                                                                   \
                                    .domain = op_domain,                                                               \
                                    .since_opset = opset,                                                              \
                                    .inputs.least = 1,                                                                   \
                                    .inputs.most = 1,                                                                   \
                                    .outputs.least = 1,                                                                  \
                                    .outputs.most = 1,                                                                  \
                                    .params = attributes,                                                              \
                                    .params_bytes = sizeof(unary_params),                                              \
                                    .infer = infer_float,                                                              \
                                    .cost = cost_##kernel_rows,                                                        \
                                    .cost_text = text,                                                                 \
                                    .kernels = kernel_rows##_kernels __VA_OPT__(, ) __VA_ARGS__};

/* A function with a vector map, and one without. */
#define MAPPED(symbol, op_name, opset, f, id, take, attributes, flops, special, madds, text)                           \
    FUNCTIONS(symbol, f, take, flops, special, madds)                                                                  \
    NATIVE(symbol, id, take)                                                                                           \
    static const prn_kernel symbol##_kernels[] = {NATIVE_KERNEL(symbol), REFERENCE_KERNEL(symbol), {0}};               \
    DESCRIPTOR(symbol, op_name, "", opset, attributes, text, symbol)
#define UNMAPPED(symbol, op_name, opset, take, attributes, flops, special, text)                                       \
    FUNCTIONS(symbol, symbol, take, flops, special, 0)                                                                 \
    static const prn_kernel symbol##_kernels[] = {REFERENCE_KERNEL(symbol), {0}};                                      \
    DESCRIPTOR(symbol, op_name, "", opset, attributes, text, symbol)

static const prn_param none[] = {{0}};
static const prn_param leaky_relu_rows[] = {FLOAT_ROW(alpha, 0.01f), {0}};
static const prn_param alpha_one_rows[] = {FLOAT_ROW(alpha, 1.0f), {0}};
static const prn_param hard_sigmoid_rows[] = {FLOAT_ROW(alpha, 0.2f), FLOAT_ROW(beta, 0.5f), {0}};
static const prn_param selu_rows[] = {
    FLOAT_ROW(alpha, 1.67326319217681884765625f), FLOAT_ROW(gamma, 1.05070102214813232421875f), {0}};
static const prn_param shrink_rows[] = {FLOAT_ROW(lambd, 0.5f), FLOAT_ROW(bias, 0.0f), {0}};

MAPPED(leaky_relu, "LeakyRelu", 1, leaky_relu, LEAKY_RELU, take_alpha_beta, leaky_relu_rows, 2, 0, 0, "2 n")
MAPPED(thresholded_relu, "ThresholdedRelu", 1, thresholded_relu, THRESHOLDED_RELU, take_alpha_beta, alpha_one_rows, 1,
       0, 0, "n")
MAPPED(sigmoid, "Sigmoid", 1, sigmoid, SIGMOID, take_nothing, none, 4, 2, 0, "4 n; special 2 n")
MAPPED(tanh, "Tanh", 1, tanh, TANH, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(erf, "Erf", 9, erf, ERF, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(exp, "Exp", 1, exp, EXP, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(log, "Log", 1, log, LOG, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(sqrt, "Sqrt", 1, sqrt, SQRT, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(reciprocal, "Reciprocal", 1, reciprocal, RECIPROCAL, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(floor, "Floor", 1, floor, FLOOR, take_nothing, none, 1, 0, 0, "n")
MAPPED(ceil, "Ceil", 1, ceil, CEIL, take_nothing, none, 1, 0, 0, "n")
MAPPED(round, "Round", 11, round, ROUND, take_nothing, none, 1, 0, 0, "n")
MAPPED(hard_sigmoid, "HardSigmoid", 1, hard_sigmoid, HARD_SIGMOID, take_alpha_beta, hard_sigmoid_rows, 4, 0, 1,
       "4 n; madds n")
MAPPED(hard_swish, "HardSwish", 14, hard_swish, HARD_SWISH, take_nothing, none, 5, 0, 1, "5 n; madds n")
MAPPED(elu, "Elu", 1, elu, ELU, take_alpha_beta, alpha_one_rows, 4, 1, 0, "4 n (compare, exp, sub, mul); special n")
MAPPED(selu, "Selu", 1, selu, SELU, take_alpha_gamma, selu_rows, 5, 1, 0, "5 n (compare, exp, sub, 2 mul); special n")
MAPPED(celu, "Celu", 12, celu, CELU, take_alpha_beta, alpha_one_rows, 7, 2, 0,
       "7 n (max, min, div, exp, sub, mul, add); special 2 n")
MAPPED(softplus, "Softplus", 1, softplus, SOFTPLUS, take_nothing, none, 3, 2, 0, "3 n (exp, add, log); special 2 n")
MAPPED(softsign, "Softsign", 1, softsign, SOFTSIGN, take_nothing, none, 3, 1, 0, "3 n (abs, add, div); special n")
MAPPED(mish, "Mish", 18, mish, MISH, take_nothing, none, 5, 3, 0, "5 n (exp, add, log, tanh, mul); special 3 n")
MAPPED(swish, "Swish", 24, silu, SILU, take_alpha_beta, alpha_one_rows, 6, 2, 0, "6 n; special 2 n")

MAPPED(shrink, "Shrink", 9, shrink, SHRINK, take_lambd_bias, shrink_rows, 3, 0, 0, "3 n (2 compares, add)")
MAPPED(sin, "Sin", 7, sin, SIN, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(cos, "Cos", 7, cos, COS, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(tan, "Tan", 7, tan, TAN, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(asin, "Asin", 7, asin, ASIN, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(acos, "Acos", 7, acos, ACOS, take_nothing, none, 1, 1, 0, "n; special n")
MAPPED(atan, "Atan", 7, atan, ATAN, take_nothing, none, 1, 1, 0, "n; special n")
UNMAPPED(sinh, "Sinh", 9, take_nothing, none, 1, 1, "n; special n")
UNMAPPED(cosh, "Cosh", 9, take_nothing, none, 1, 1, "n; special n")
UNMAPPED(asinh, "Asinh", 9, take_nothing, none, 1, 1, "n; special n")
UNMAPPED(acosh, "Acosh", 9, take_nothing, none, 1, 1, "n; special n")
UNMAPPED(atanh, "Atanh", 9, take_nothing, none, 1, 1, "n; special n")

/* ---- what rewrites put in place of primitives, whatever the model's opset */

FUNCTIONS(silu, silu, take_one, 5, 2, 0)
NATIVE(silu, SILU, take_one)
static const prn_kernel silu_kernels[] = {NATIVE_KERNEL(silu), REFERENCE_KERNEL(silu), {0}};
DESCRIPTOR(silu, "SiLU", "prony", 1, none, "5 n; special 2 n", silu)
DESCRIPTOR(prony_hard_swish, "HardSwish", "prony", 1, none, "5 n; madds n", hard_swish)

/* ---- Gelu: two definitions, told apart by an attribute */

static const prn_param gelu_rows[] = {PRN_STRING(unary_params, approximate, "none"), {0}};

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

static prony_status reference_gelu(const prony_context *context)
{
    return run_reference(context, by_tanh(context) ? f_gelu_tanh : f_gelu_erf, take_nothing(context));
}

static prony_status native_gelu(const prony_context *context)
{
    return prn_run_map_f32(context, by_tanh(context) ? PRN_MAP_GELU_TANH : PRN_MAP_GELU_ERF, 0.0f, 0.0f);
}

static prony_status half_gelu(const prony_context *context)
{
    return run_map_half(context, by_tanh(context) ? PRN_MAP_GELU_TANH : PRN_MAP_GELU_ERF, take_nothing(context));
}

static prony_status cost_gelu(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, by_tanh(context) ? 9 : 5, 1, 0);
}

static const prn_kernel gelu_kernels[] = {NATIVE_KERNEL(gelu), REFERENCE_KERNEL(gelu), {0}};
DESCRIPTOR(gelu, "Gelu", "", 20, gelu_rows, "5 n, by tanh 9 n; special n", gelu, .check = check_gelu)
DESCRIPTOR(prony_gelu, "Gelu", "prony", 1, gelu_rows, "5 n, by tanh 9 n; special n", gelu, .check = check_gelu)
