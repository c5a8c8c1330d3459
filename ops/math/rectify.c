/* Functions of one tensor that integers have too: Relu, Abs, Neg, Sign, Clip; and the tests IsNaN and IsInf.
 * Invariant: integers wrap (the absolute value and the negative of the least one are itself); NaN stays NaN. */
#include "base/threads/parallel.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/kernels/lowbit/narrow_types.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <float.h>
#include <string.h>

/* ---- Relu, Abs, Neg, Sign */

typedef enum function { RELU, ABS, NEG, SIGN } function;

/* An operator's variant. */
typedef struct rectify_kind {
    function function;
    prn_map_id map;
    uint32_t types;
} rectify_kind;

/* The signs of floats are turned as bits of the unsigned type of their size. */
static prony_dtype rectify_bits_of(prony_dtype dtype)
{
    return dtype == PRONY_FLOAT64 ? PRONY_UINT64 : (dtype == PRONY_FLOAT32 ? PRONY_UINT32 : PRONY_UINT16);
}

typedef struct function_job {
    function function;
    const prony_value *in, *out;
} function_job;

static void sign_row(prony_dtype dtype, char *y, const char *x, int64_t n)
{
    uint64_t low, high;
    if (!prn_dtype_is_float(dtype)) {
        prn_put_i64(&low, dtype, 0, -1);
        prn_put_i64(&high, dtype, 0, 1);
        const bool is_signed = PRN_TYPE(dtype) & PRN_TYPES_SIGNED;
        if (is_signed) prn_element_row(PRN_ROW_MAX, dtype, y, x, &low, n, 1, 0);
        prn_element_row(PRN_ROW_MIN, dtype, y, is_signed ? y : x, &high, n, 1, 0);
        return;
    }
    double block[PRN_BLOCK];
    for (int64_t first = 0, count; first < n; first += count) {
        count = n - first < PRN_BLOCK ? n - first : PRN_BLOCK;
        prn_load_f64(block, x, dtype, first, count);
        for (int64_t i = 0; i < count; i++) {
            const double size = (double)((block[i] > 0.0) - (block[i] < 0.0));
            block[i] = block[i] != block[i] ? block[i] : size;
        }
        prn_store_f64(y, dtype, first, block, count);
    }
}

/* Relu, Abs, Neg or Sign of elements [begin, end), exact for every type: signs of floating-point numbers change as
 * bits. */
static void function_range(void *argument, int64_t begin, int64_t end)
{
    const function_job *job = argument;
    const prony_dtype dtype = job->in->dtype, bits = rectify_bits_of(dtype);
    const bool is_float = prn_dtype_is_float(dtype);
    const char *x = prn_block_at(job->in->data, dtype, begin);
    char *y = (char *)job->out->data + prony_dtype_bytes(dtype, begin);
    uint64_t operand = 0;
    const uint64_t top = UINT64_C(1) << (8 * prony_dtype_bytes(dtype, 1) - 1);
    switch (job->function) {
    case RELU:
        prn_element_row(PRN_ROW_MAX, dtype, y, x, &operand, end - begin, 1, 0);
        break;
    case ABS:
        prn_put_i64(&operand, is_float ? bits : dtype, 0, is_float ? (int64_t)(top - 1) : -1);
        prn_element_row(is_float ? PRN_ROW_BITWISE_AND : PRN_ROW_PRELU, is_float ? bits : dtype, y, x, &operand,
                        end - begin, 1, 0);
        break;
    case NEG:
        prn_put_i64(&operand, is_float ? bits : dtype, 0, is_float ? (int64_t)top : -1);
        prn_element_row(is_float ? PRN_ROW_BITWISE_XOR : PRN_ROW_MUL, is_float ? bits : dtype, y, x, &operand,
                        end - begin, 1, 0);
        break;
    case SIGN:
        sign_row(dtype, y, x, end - begin);
        break;
    }
}

static prony_status run_function(const prony_context *context)
{
    const rectify_kind *kind = prn_variant(context);
    function_job job = {kind->function, context->inputs[0], context->outputs[0]};
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 8192, function_range, &job);
    return PRONY_OK;
}

static prony_status native_function(const prony_context *context)
{
    const rectify_kind *kind = prn_variant(context);
    return prn_run_map_f32(context, kind->map, 0.0f, 0.0f);
}

#ifdef PRN_HAVE_OPENCL
static prony_status rectify_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const rectify_kind *kind = prn_variant(context);
    return prn_opencl_map_prepare(context, out, kind->map, 0.0f, 0.0f);
}
#endif

static prony_status infer_function(const prony_context *context)
{
    const rectify_kind *kind = prn_variant(context);
    PRN_TRY(prn_check_type(context, 0, kind->types));
    return prn_infer_same(context);
}

static prony_status cost_one(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 1, 0, 0);
}

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
    const prony_value *in, *out;
    bool has_low, has_high;
    uint64_t low, high; /* one element each, of the data's type */
} clip_job;

/* A bound that is NaN or infinite bounds nothing. */
static bool read_bound(const prony_context *context, size_t which, uint64_t *out)
{
    const prony_dtype dtype = context->inputs[0]->dtype;
    const double real = bound_f64(context, which);
    const prony_value *input = bound_input(context, which);
    if (input && !prn_dtype_is_float(dtype)) {
        prn_put_i64(out, dtype, 0, prn_get_i64(input->data, dtype, 0));
        return true;
    }
    if (!prn_dtype_is_float(dtype) || real != real || real == (which ? (double)INFINITY : -(double)INFINITY))
        return false;
    prn_put_f64(out, dtype, 0, real);
    return true;
}

static void clip_range(void *argument, int64_t begin, int64_t end)
{
    enum { PIECE = 4096 };
    const clip_job *job = argument;
    const prony_dtype dtype = job->in->dtype;
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PIECE ? end - first : PIECE;
        const char *x = prn_block_at(job->in->data, dtype, first);
        char *y = (char *)job->out->data + prony_dtype_bytes(dtype, first);
        if (job->has_low) {
            prn_element_row(PRN_ROW_MAX, dtype, y, x, &job->low, n, 1, 0);
            x = y;
        }
        if (job->has_high) {
            prn_element_row(PRN_ROW_MIN, dtype, y, x, &job->high, n, 1, 0);
            x = y;
        }
        if (x != y) prn_convert(y, dtype, x, dtype, n);
    }
}

static prony_status run_clip(const prony_context *context)
{
    clip_job job = {.in = context->inputs[0], .out = context->outputs[0]};
    job.has_low = read_bound(context, 0, &job.low);
    job.has_high = read_bound(context, 1, &job.high);
    prn_parallel_range(context->threads, prony_shape_numel(&job.out->shape), 8192, clip_range, &job);
    return PRONY_OK;
}

static prony_status native_clip(const prony_context *context)
{
    return prn_run_map_f32(context, PRN_MAP_CLIP, (float)bound_f64(context, 0), (float)bound_f64(context, 1));
}

#ifdef PRN_HAVE_OPENCL
static prony_status clip_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_map_prepare(context, out, PRN_MAP_CLIP, (float)bound_f64(context, 0),
                                  (float)bound_f64(context, 1));
}

static float code_bound(const prony_context *context, size_t which)
{
    const prony_value *input = bound_input(context, which);
    return input ? (float)prn_get_i64(input->data, input->dtype, 0) : which ? INFINITY : -INFINITY;
}

static prony_status clip_codes_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_expression_prepare(context, out, "min(max((float)x, a), b)", code_bound(context, 0),
                                         code_bound(context, 1));
}

static prony_status relu_codes_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_expression_prepare(context, out, "x > 0 ? x : (char)0", 0.0f, 0.0f);
}
#endif

static prony_status infer_clip(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    PRN_TRY(prn_infer_same(context));
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

/* NaN is what does not equal itself. */
static void test_block(const test_job *job, prony_dtype dtype, const void *x, uint8_t *y, int64_t n)
{
    const uint8_t none = 0;
    uint8_t other[PRN_BLOCK];
    uint64_t infinity;
    memset(y, 0, (size_t)n);
    if (job->nan) {
        prn_element_row(PRN_ROW_EQUAL, dtype, y, x, x, n, 1, 1);
        prn_element_row(PRN_ROW_EQUAL, PRONY_BOOL, y, y, &none, n, 1, 0);
    }
    for (int sign = -1; sign <= 1; sign += 2) {
        if (!(sign < 0 ? job->low : job->high)) continue;
        prn_put_f64(&infinity, dtype, 0, sign * (double)INFINITY);
        prn_element_row(PRN_ROW_EQUAL, dtype, other, x, &infinity, n, 1, 0);
        prn_element_row(PRN_ROW_OR, PRONY_BOOL, y, y, other, n, 1, 1);
    }
}

static void test_range(void *argument, int64_t begin, int64_t end)
{
    const test_job *job = argument;
    const prn_cast_rule any = {0};
    const prony_dtype dtype = job->in->dtype;
    float piece[PRN_BLOCK];
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        if (prn_dtype_is_narrow(dtype)) {
            prn_cast(piece, PRONY_FLOAT32, 0, job->in->data, dtype, first, n, &any);
            test_block(job, PRONY_FLOAT32, piece, job->y + first, n);
        } else {
            test_block(job, dtype, prn_block_at(job->in->data, dtype, first), job->y + first, n);
        }
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

#ifdef PRN_HAVE_OPENCL
static prony_status isnan_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_expression_prepare(context, out, "x != x", 0.0f, 0.0f);
}

static prony_status isinf_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const isinf_params *params = context->params;
    return prn_opencl_expression_prepare(context, out, "(a != 0.0f && x == -INFINITY) || (b != 0.0f && x == INFINITY)",
                                         params->detect_negative ? 1.0f : 0.0f, params->detect_positive ? 1.0f : 0.0f);
}
#endif

static prony_status infer_test(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT | PRN_TYPES_FLOAT8));
    prn_set_output(context, 0, PRONY_BOOL, &context->inputs[0]->shape);
    return PRONY_OK;
}

// clang-format off
static const prn_kernel relu_kernels[] = {
    PRN_OPENCL_ROW("relu_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, rectify_opencl_prepare)
    PRN_OPENCL_ROW("relu_int8_opencl", PRN_TYPE(PRONY_INT8), prn_opencl_map_supported, relu_codes_opencl_prepare)
    {.name = "relu_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_same_layout, .layout_invariant = true,
     .run = native_function, .inplace = 1},
    {.name = "relu_reference", .backend = "reference", .run = run_function, .inplace = 1}, {0}};
static const prn_kernel abs_kernels[] = {
    PRN_OPENCL_ROW("abs_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, rectify_opencl_prepare)
    {.name = "abs_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_same_layout, .layout_invariant = true,
     .run = native_function, .inplace = 1},
    {.name = "abs_reference", .backend = "reference", .run = run_function, .inplace = 1}, {0}};
static const prn_kernel neg_kernels[] = {
    PRN_OPENCL_ROW("neg_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, rectify_opencl_prepare)
    {.name = "neg_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_same_layout, .layout_invariant = true,
     .run = native_function, .inplace = 1},
    {.name = "neg_reference", .backend = "reference", .run = run_function, .inplace = 1}, {0}};
static const prn_kernel sign_kernels[] = {
    PRN_OPENCL_ROW("sign_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, rectify_opencl_prepare)
    {.name = "sign_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_same_layout, .layout_invariant = true,
     .run = native_function, .inplace = 1},
    {.name = "sign_reference", .backend = "reference", .run = run_function, .inplace = 1}, {0}};
static const prn_kernel clip_kernels[] = {
    PRN_OPENCL_ROW("clip_f32_opencl", PRN_TYPE_F32, prn_opencl_first_supported, clip_opencl_prepare, .host_inputs = 6)
    PRN_OPENCL_ROW("clip_int8_opencl", PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8), prn_opencl_first_supported,
                   clip_codes_opencl_prepare, .host_inputs = 6)
    {.name = "clip_f32_native", .backend = "native", .types = PRN_TYPE_F32, .layouts = prn_same_layout, .layout_invariant = true,
     .run = native_clip, .inplace = 1},
    {.name = "clip_reference", .backend = "reference", .run = run_clip, .inplace = 1}, {0}};
static const prn_kernel isnan_kernels[] = {
    PRN_OPENCL_ROW("isnan_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, isnan_opencl_prepare)
    {.name = "isnan_reference", .backend = "reference", .run = run_isnan}, {0}};
static const prn_kernel isinf_kernels[] = {
    PRN_OPENCL_ROW("isinf_f32_opencl", PRN_TYPE_F32, prn_opencl_map_supported, isinf_opencl_prepare)
    {.name = "isinf_reference", .backend = "reference", .run = run_isinf}, {0}};

const prn_op prn_ops_rectify[] = {
    {.name = "Relu", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const rectify_kind){RELU, PRN_MAP_RELU, PRN_TYPES_FLOAT | PRN_TYPES_SIGNED},
     .infer = infer_function, .cost = cost_one, .cost_text = "n", .kernels = relu_kernels},
    {.name = "Abs", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const rectify_kind){ABS, PRN_MAP_ABS, PRN_TYPES_NUMBER},
     .infer = infer_function, .cost = cost_one, .cost_text = "n", .kernels = abs_kernels},
    {.name = "Neg", .since_opset = 1, .inputs = {1, 1},
     .variant = &(const rectify_kind){NEG, PRN_MAP_NEG, PRN_TYPES_FLOAT | PRN_TYPES_SIGNED},
     .infer = infer_function, .cost = cost_one, .cost_text = "n", .kernels = neg_kernels},
    {.name = "Sign", .since_opset = 9, .inputs = {1, 1},
     .variant = &(const rectify_kind){SIGN, PRN_MAP_SIGN, PRN_TYPES_NUMBER},
     .infer = infer_function, .cost = cost_one, .cost_text = "n", .kernels = sign_kernels},
    {.name = "Clip", .since_opset = 1, .inputs = {1, 3}, .non_weight_inputs = 6,
     .params = clip_attributes, .params_bytes = sizeof(clip_params),
     .infer = infer_clip, .cost = cost_clip, .cost_text = "n per bound present", .kernels = clip_kernels},
    {.name = "IsNaN", .since_opset = 9, .inputs = {1, 1},
     .infer = infer_test, .cost = cost_one, .cost_text = "n", .kernels = isnan_kernels},
    {.name = "IsInf", .since_opset = 10, .inputs = {1, 1},
     .params = isinf_attributes, .params_bytes = sizeof(isinf_params),
     .infer = infer_test, .cost = cost_one, .cost_text = "n", .kernels = isinf_kernels},
    {0}};
// clang-format on
