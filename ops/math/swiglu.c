/* SwiGLU: y = a sigmoid(alpha a) b, of two tensors of one shape. */
#include "base/threads/parallel.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"

#include <math.h>

typedef struct swiglu_params {
    float alpha;
} swiglu_params;

typedef struct swiglu {
    const prony_value *a, *b, *y;
    float alpha;
} swiglu;

static prony_status swiglu_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    const prony_value *a = context->inputs[0], *b = prn_input(context, 1);
    if (!b) return prony_fail(context, PRONY_INVALID_MODEL, "input 1 is missing");
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(a->dtype)));
    if (prn_shape_equal(&a->shape, &b->shape)) return prn_infer_same(context);
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 0 is %s, input 1 is %s, wanted one shape",
                      prn_value_text(a, left), prn_value_text(b, right));
}

static prony_status swiglu_cost(const prony_context *context, prony_cost *out)
{
    return prn_cost_map(context, out, 6, 2, 0);
}

static void swiglu_reference_range(void *argument, int64_t begin, int64_t end)
{
    const swiglu *job = argument;
    const prony_dtype dtype = job->a->dtype;
    for (int64_t i = begin; i < end; i++) {
        const double a = prn_get_f64(job->a->data, dtype, i), b = prn_get_f64(job->b->data, dtype, i);
        prn_put_f64(job->y->data, dtype, i, a / (1.0 + exp(-(double)job->alpha * a)) * b);
    }
}

/* In blocks, so that the result may lie in either operand's bytes. */
static void swiglu_native_range(void *argument, int64_t begin, int64_t end)
{
    const swiglu *job = argument;
    const prony_dtype dtype = job->a->dtype;
    const prn_vec_table *vec = prn_vec();
    float gate[PRN_BLOCK], value[PRN_BLOCK];
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_BLOCK ? end - first : PRN_BLOCK;
        if (dtype == PRONY_FLOAT32) {
            vec->map[PRN_MAP_SILU](gate, (const float *)job->a->data + first, n, job->alpha, 0.0f);
            vec->vv[PRN_BINARY_MUL]((float *)job->y->data + first, gate, (const float *)job->b->data + first, n);
            continue;
        }
        prn_convert(gate, PRONY_FLOAT32, prn_block_at(job->a->data, dtype, first), dtype, n);
        prn_convert(value, PRONY_FLOAT32, prn_block_at(job->b->data, dtype, first), dtype, n);
        vec->map[PRN_MAP_SILU](gate, gate, n, job->alpha, 0.0f);
        vec->vv[PRN_BINARY_MUL](gate, gate, value, n);
        prn_convert((char *)job->y->data + prony_dtype_bytes(dtype, first), dtype, gate, PRONY_FLOAT32, n);
    }
}

static prony_status swiglu_run_ranges(const prony_context *context,
                                      void (*fn)(void *argument, int64_t begin, int64_t end))
{
    swiglu job = {context->inputs[0], context->inputs[1], context->outputs[0],
                  ((const swiglu_params *)context->params)->alpha};
    prn_parallel_range(context->threads, prony_shape_numel(&job.y->shape), 8192, fn, &job);
    return PRONY_OK;
}

static prony_status swiglu_run_native(const prony_context *context)
{
    return swiglu_run_ranges(context, swiglu_native_range);
}

static prony_status swiglu_run_reference(const prony_context *context)
{
    return swiglu_run_ranges(context, swiglu_reference_range);
}

static const prn_param params[] = {PRN_FLOAT(swiglu_params, alpha, 1.0f), {0}};

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "swiglu_native", .backend = "native", .types = PRN_TYPE_F32 | PRN_TYPES_HALF, .run = swiglu_run_native, .inplace = 3},
    {.name = "swiglu_reference", .backend = "reference", .run = swiglu_run_reference, .inplace = 3},
    {0}};

const prn_op prn_ops_swiglu[] = {
    {.name = "SwiGLU", .since_opset = 28, .inputs = {2, 2}, .params = params, .params_bytes = sizeof(swiglu_params),
     .infer = swiglu_infer, .cost = swiglu_cost, .cost_text = "6 n; special 2 n", .kernels = kernels},
    {0}};
// clang-format on
