/* Functions of one tensor that integers have too: Relu, Abs, Neg, Sign, Clip; and the tests IsNaN and IsInf.
 * Invariant: integers wrap (the absolute value and the negative of the least one are itself); NaN stays NaN. */
#include "base/parallel.h"
#include "ops/elementwise.h"
#include "ops/broadcast.h"
#include "ops/narrow_types.h"

#include <float.h>

/* ---- Relu, Abs, Neg, Sign */

typedef struct function {
    double (*real)(double x);
    int64_t (*whole)(int64_t x); /* for signed types */
    bool unsigned_sign;          /* unsigned types: x != 0; otherwise x itself */
    uint32_t types;
} function;

static double relu_real(double x)
{
    return x < 0.0 ? 0.0 : x;
}

static int64_t relu_whole(int64_t x)
{
    return x < 0 ? 0 : x;
}

static int64_t neg_whole(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}

static double neg_real(double x)
{
    return -x;
}

static int64_t abs_whole(int64_t x)
{
    return x < 0 ? neg_whole(x) : x;
}

static double sign_real(double x)
{
    return x != x ? x : (double)((x > 0.0) - (x < 0.0));
}

static int64_t sign_whole(int64_t x)
{
    return (x > 0) - (x < 0);
}

static const function relu_function = {relu_real, relu_whole, false, PRN_TYPES_FLOAT | PRN_TYPES_SIGNED};
static const function abs_function = {fabs, abs_whole, false, PRN_TYPES_NUMBER};
static const function neg_function = {neg_real, neg_whole, false, PRN_TYPES_FLOAT | PRN_TYPES_SIGNED};
static const function sign_function = {sign_real, sign_whole, true, PRN_TYPES_NUMBER};

typedef struct function_job {
    const function *function;
    const prony_value *in, *out;
} function_job;

static void function_block_real(const function_job *job, int64_t first, int64_t n)
{
    double block[PRN_BLOCK];
    prn_load_f64(block, job->in->data, job->in->dtype, first, n);
    for (int64_t i = 0; i < n; i++) block[i] = job->function->real(block[i]);
    prn_store_f64(job->out->data, job->out->dtype, first, block, n);
}

static void function_block_whole(const function_job *job, int64_t first, int64_t n)
{
    int64_t block[PRN_BLOCK];
    prn_load_i64(block, job->in->data, job->in->dtype, first, n);
    if (PRN_TYPE(job->in->dtype) & PRN_TYPES_SIGNED) {
        for (int64_t i = 0; i < n; i++) block[i] = job->function->whole(block[i]);
    } else if (job->function->unsigned_sign) {
        for (int64_t i = 0; i < n; i++) block[i] = block[i] != 0;
    }
    prn_store_i64(job->out->data, job->out->dtype, first, block, n);
}

static void function_range(void *argument, int64_t begin, int64_t end)
{
    const function_job *job = argument;
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        if (prn_dtype_is_float(job->in->dtype))
            function_block_real(job, first, n);
        else
            function_block_whole(job, first, n);
    }
}

static prony_status run_function(const prony_context *context, const function *function)
{
    function_job job = {function, context->inputs[0], context->outputs[0]};
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 4096, function_range, &job);
    return PRONY_OK;
}

static prony_status infer_types(const prony_context *context, uint32_t types)
{
    PRN_TRY(prn_check_type(context, 0, types));
    return prn_infer_same(context);
}

static prony_status cost_one(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 1, 0, 0);
}

#define OPERATOR(symbol, op_name, opset, id)                                                                           \
    static prony_status infer_##symbol(const prony_context *context)                                                   \
    {                                                                                                                  \
        return infer_types(context, symbol##_function.types);                                                          \
    }                                                                                                                  \
    static prony_status run_##symbol(const prony_context *context)                                                     \
    {                                                                                                                  \
        return run_function(context, &symbol##_function);                                                              \
    }                                                                                                                  \
    static prony_status native_##symbol(const prony_context *context)                                                  \
    {                                                                                                                  \
        return prn_run_map_f32(context, id, 0.0f, 0.0f);                                                               \
    }                                                                                                                  \
    static const prn_kernel symbol##_kernels[] = {                                                                     \
        {.name = #symbol "_f32_native",                                                                                \
         .backend = "native",                                                                                          \
         .types = PRN_TYPE_F32,                                                                                        \
         .layouts = prn_same_layout,                                                                                   \
         .run = native_##symbol,                                                                                       \
         .inplace = 1},                                                                                                \
        {.name = #symbol "_reference", .backend = "reference", .run = run_##symbol, .inplace = 1},                     \
        {0}};                                                                                                          \
    const prn_op prn_op_##symbol = {                                                                                   \
        .name = op_name,                                                                                               \
        .domain = "",                                                                                                  \
        .since_opset = opset,                                                                                          \
        .min_inputs = 1,                                                                                               \
        .max_inputs = 1,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .infer = infer_##symbol,                                                                                       \
        .cost = cost_one,                                                                                              \
        .cost_text = "n",                                                                                              \
        .kernels = symbol##_kernels,                                                                                   \
    };

OPERATOR(relu, "Relu", 1, PRN_MAP_RELU)
OPERATOR(abs, "Abs", 1, PRN_MAP_ABS)
OPERATOR(neg, "Neg", 1, PRN_MAP_NEG)
OPERATOR(sign, "Sign", 9, PRN_MAP_SIGN)

/* ---- Clip: bounds are attributes below opset 11, optional scalar inputs from then on */

typedef struct clip_params {
    float min, max;
} clip_params;

static const prn_param clip_attributes[] = {
    PRN_FLOAT(clip_params, min, -FLT_MAX), PRN_FLOAT(clip_params, max, FLT_MAX), {0}};

/* A bound as a tensor of one element of the data's type; NULL if it is absent. */
static const prony_value *bound_input(const prony_context *context, size_t which)
{
    return context->node->opset < 11 ? NULL : prn_input(context, 1 + which);
}

static bool bound_present(const prony_context *context, size_t which)
{
    float value;
    if (context->node->opset < 11) return prony_node_float(context->node, which ? "max" : "min", &value);
    return bound_input(context, which);
}

static double bound_f64(const prony_context *context, size_t which)
{
    const clip_params *params = context->params;
    const prony_value *input = bound_input(context, which);
    if (input) return prn_get_f64(input->data, input->dtype, 0);
    if (context->node->opset < 11) return (double)(which ? params->max : params->min);
    return which ? (double)INFINITY : -(double)INFINITY;
}

typedef struct clip_job {
    const prony_value *in, *out, *low, *high; /* bounds of integer data */
    double min, max;                          /* bounds of float data */
} clip_job;

static void clip_block_real(const clip_job *job, int64_t first, int64_t n)
{
    double block[PRN_BLOCK];
    prn_load_f64(block, job->in->data, job->in->dtype, first, n);
    for (int64_t i = 0; i < n; i++) {
        const double x = block[i] < job->min ? job->min : block[i];
        block[i] = x > job->max ? job->max : x;
    }
    prn_store_f64(job->out->data, job->out->dtype, first, block, n);
}

/* Unsigned 64-bit values compare as signed ones do once the top bit is turned over. */
static void clip_block_whole(const clip_job *job, int64_t first, int64_t n)
{
    const prony_dtype dtype = job->in->dtype;
    const int64_t turn = dtype == PRONY_UINT64 ? INT64_MIN : 0;
    const int64_t low = job->low ? prn_get_i64(job->low->data, dtype, 0) ^ turn : INT64_MIN;
    const int64_t high = job->high ? prn_get_i64(job->high->data, dtype, 0) ^ turn : INT64_MAX;
    int64_t block[PRN_BLOCK];
    prn_load_i64(block, job->in->data, dtype, first, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t x = block[i] ^ turn;
        x = x < low ? low : x;
        block[i] = (x > high ? high : x) ^ turn;
    }
    prn_store_i64(job->out->data, dtype, first, block, n);
}

static void clip_range(void *argument, int64_t begin, int64_t end)
{
    const clip_job *job = argument;
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        if (prn_dtype_is_float(job->in->dtype))
            clip_block_real(job, first, n);
        else
            clip_block_whole(job, first, n);
    }
}

static prony_status run_clip(const prony_context *context)
{
    clip_job job = {context->inputs[0],      context->outputs[0],   bound_input(context, 0),
                    bound_input(context, 1), bound_f64(context, 0), bound_f64(context, 1)};
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 4096, clip_range, &job);
    return PRONY_OK;
}

static prony_status native_clip(const prony_context *context)
{
    return prn_run_map_f32(context, PRN_MAP_CLIP, (float)bound_f64(context, 0), (float)bound_f64(context, 1));
}

static prony_status infer_clip(const prony_context *context)
{
    PRN_TRY(infer_types(context, PRN_TYPES_NUMBER));
    for (size_t which = 0; which < 2; which++) {
        const prony_value *bound = bound_input(context, which);
        char text[PRN_SHAPE_TEXT_BYTES];
        if (!bound || (bound->dtype == context->inputs[0]->dtype && prony_shape_numel(&bound->shape) == 1)) continue;
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "bound '%s' is %s, wanted one element of %s",
                          which ? "max" : "min", prn_value_text(bound, text),
                          prony_dtype_name(context->inputs[0]->dtype));
    }
    return PRONY_OK;
}

static prony_status cost_clip(const prony_context *context, prony_cost *cost)
{
    const uint64_t bounds = (uint64_t)bound_present(context, 0) + (uint64_t)bound_present(context, 1);
    return prn_cost_map(context, cost, bounds, 0, 0);
}

static const prn_kernel clip_kernels[] = {
    {.name = "clip_f32_native",
     .backend = "native",
     .types = PRN_TYPE_F32,
     .layouts = prn_same_layout,
     .run = native_clip,
     .inplace = 1},
    {.name = "clip_reference", .backend = "reference", .run = run_clip, .inplace = 1},
    {0}};

const prn_op prn_op_clip = {
    .name = "Clip",
    .domain = "",
    .since_opset = 1,
    .min_inputs = 1,
    .max_inputs = 3,
    .min_outputs = 1,
    .max_outputs = 1,
    .non_weight_inputs = 6,
    .params = clip_attributes,
    .params_bytes = sizeof(clip_params),
    .infer = infer_clip,
    .cost = cost_clip,
    .cost_text = "n per bound present",
    .kernels = clip_kernels,
};

/* ---- IsNaN, IsInf */

typedef struct isinf_params {
    int64_t detect_negative, detect_positive;
} isinf_params;

static const prn_param isinf_attributes[] = {
    PRN_INT(isinf_params, detect_negative, 1), PRN_INT(isinf_params, detect_positive, 1), {0}};

typedef struct test_job {
    const prony_value *in;
    uint8_t *y;
    bool nan, low, high;
} test_job;

static bool passes(const test_job *job, double x)
{
    return (job->nan && x != x) || (job->low && x == -(double)INFINITY) || (job->high && x == (double)INFINITY);
}

static void test_range(void *argument, int64_t begin, int64_t end)
{
    const test_job *job = argument;
    const prn_cast_rule any = {0};
    float piece[256];
    if (!prn_dtype_is_narrow(job->in->dtype)) {
        for (int64_t i = begin; i < end; i++) job->y[i] = passes(job, prn_get_f64(job->in->data, job->in->dtype, i));
        return;
    }
    for (int64_t first = begin; first < end; first += 256) {
        const int64_t n = end - first < 256 ? end - first : 256;
        prn_cast(piece, PRONY_FLOAT32, 0, job->in->data, job->in->dtype, first, n, &any);
        for (int64_t i = 0; i < n; i++) job->y[first + i] = passes(job, (double)piece[i]);
    }
}

static prony_status run_test(const prony_context *context, bool nan, bool low, bool high)
{
    test_job job = {context->inputs[0], context->outputs[0]->data, nan, low, high};
    prn_parallel_range(context->threads, prony_shape_numel(&job.in->shape), 4096, test_range, &job);
    return PRONY_OK;
}

static prony_status run_isnan(const prony_context *context)
{
    return run_test(context, true, false, false);
}

static prony_status run_isinf(const prony_context *context)
{
    const isinf_params *params = context->params;
    return run_test(context, false, params->detect_negative != 0, params->detect_positive != 0);
}

static prony_status infer_test(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT | PRN_TYPES_FLOAT8));
    prn_set_output(context, 0, PRONY_BOOL, &context->inputs[0]->shape);
    return PRONY_OK;
}

static const prn_kernel isnan_kernels[] = {{.name = "isnan_reference", .backend = "reference", .run = run_isnan}, {0}};
static const prn_kernel isinf_kernels[] = {{.name = "isinf_reference", .backend = "reference", .run = run_isinf}, {0}};

const prn_op prn_op_isnan = {
    .name = "IsNaN",
    .domain = "",
    .since_opset = 9,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .infer = infer_test,
    .cost = cost_one,
    .cost_text = "n",
    .kernels = isnan_kernels,
};

const prn_op prn_op_isinf = {
    .name = "IsInf",
    .domain = "",
    .since_opset = 10,
    .min_inputs = 1,
    .max_inputs = 1,
    .min_outputs = 1,
    .max_outputs = 1,
    .params = isinf_attributes,
    .params_bytes = sizeof(isinf_params),
    .infer = infer_test,
    .cost = cost_one,
    .cost_text = "n",
    .kernels = isinf_kernels,
};
