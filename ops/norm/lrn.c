/* LRN: y = x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta.
 * Invariant: the sum of each element runs over its own window, in channel order. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

typedef struct lrn_params {
    float alpha, beta, bias;
    int64_t size;
} lrn_params;

static const prn_param attributes[] = {PRN_FLOAT(lrn_params, alpha, 1e-4f),
                                       PRN_FLOAT(lrn_params, beta, 0.75f),
                                       PRN_FLOAT(lrn_params, bias, 1.0f),
                                       PRN_INT_REQUIRED(lrn_params, size),
                                       {0}};

/* Channels [first, last) that element (n, c, …) sees. */
static void window(const prony_context *context, int64_t c, int64_t *first, int64_t *last)
{
    const int64_t size = ((const lrn_params *)context->params)->size, channels = context->inputs[0]->shape.dim[1];
    const int64_t before = (size - 1) / 2, after = size - 1 - before;
    *first = c < before ? 0 : c - before;
    *last = channels - c <= after ? channels : c + after + 1;
}

enum { STRIP = 512 };

static void reference_planes(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const lrn_params *params = context->params;
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    const int64_t channels = x->shape.dim[1], pixels = prn_shape_count(&x->shape, 2, x->shape.rank);
    const double factor = (double)params->alpha / (double)params->size;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % channels, sample = plane - c;
        int64_t first, last;
        window(context, c, &first, &last);
        for (int64_t i = 0; i < pixels; i++) {
            if (last - first > STRIP ? prn_cancelled() : prn_cancelled_at(i)) return;
            double sum = 0.0;
            for (int64_t k = first; k < last; k++) {
                const double value = prn_get_f64(x->data, x->dtype, (sample + k) * pixels + i);
                sum += value * value;
            }
            const double base = (double)params->bias + factor * sum;
            prn_put_f64(y->data, y->dtype, plane * pixels + i,
                        prn_get_f64(x->data, x->dtype, plane * pixels + i) * pow(base, -(double)params->beta));
        }
    }
}

/* x (bias + alpha / size * sum of squares)^-beta, strip by strip; the squares of a channel's window are summed anew
 * for each plane. */
static void native_planes(void *argument, int64_t begin, int64_t end)
{
    const prony_context *context = argument;
    const lrn_params *params = context->params;
    const prn_vec_table *vec = prn_vec();
    const prony_shape *shape = &context->inputs[0]->shape;
    const int64_t channels = shape->dim[1], pixels = prn_shape_count(shape, 2, shape->rank);
    const float *x = context->inputs[0]->data;
    float *y = context->outputs[0]->data, sum[STRIP], square[STRIP];
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % channels, sample = plane - c;
        int64_t first, last;
        window(context, c, &first, &last);
        for (int64_t i = 0; i < pixels && !prn_cancelled(); i += STRIP) {
            const int64_t n = pixels - i < STRIP ? pixels - i : STRIP;
            vec->map[PRN_MAP_SQUARE](sum, x + (sample + first) * pixels + i, n, 0.0f, 0.0f);
            for (int64_t k = first + 1; k < last; k++) {
                vec->map[PRN_MAP_SQUARE](square, x + (sample + k) * pixels + i, n, 0.0f, 0.0f);
                vec->vv[PRN_BINARY_ADD](sum, sum, square, n);
            }
            /* base^-beta = exp(-beta log(base)) */
            vec->map[PRN_MAP_AFFINE](sum, sum, n, params->alpha / (float)params->size, params->bias);
            vec->map[PRN_MAP_LOG](sum, sum, n, 0.0f, 0.0f);
            vec->map[PRN_MAP_AFFINE](sum, sum, n, -params->beta, 0.0f);
            vec->map[PRN_MAP_EXP](sum, sum, n, 0.0f, 0.0f);
            vec->vv[PRN_BINARY_MUL](y + plane * pixels + i, x + plane * pixels + i, sum, n);
        }
    }
}

static prony_status lrn_run_planes(const prony_context *context, void (*fn)(void *argument, int64_t begin, int64_t end))
{
    const prony_value *x = context->inputs[0];
    if (prony_shape_numel(&x->shape) == 0) return PRONY_OK;
    const int64_t size = ((const lrn_params *)context->params)->size;
    const int64_t work = size < 64 ? size : 64; /* passes over the data */
    prn_parallel_items(context->threads, x->shape.dim[0] * x->shape.dim[1], work * (int64_t)prn_value_bytes(x), fn,
                       (void *)context);
    return PRONY_OK;
}

static prony_status lrn_run_reference(const prony_context *context)
{
    return lrn_run_planes(context, reference_planes);
}

static prony_status lrn_run_native(const prony_context *context)
{
    return lrn_run_planes(context, native_planes);
}

static prony_status lrn_check(const prony_context *context)
{
    const int64_t size = ((const lrn_params *)context->params)->size;
    if (size >= 1 && size <= INT32_MAX) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "size is %lld, wanted 1 or more", (long long)size);
}

static prony_status lrn_infer(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    return prn_infer_same(context);
}

static prony_status lrn_cost(const prony_context *context, prony_cost *cost)
{
    const int64_t size = ((const lrn_params *)context->params)->size;
    prn_cost_fact(cost, "size", size);
    return prn_cost_map(context, cost, 2 * (uint64_t)size + 3, 2, 0);
}

#ifdef PRN_HAVE_OPENCL
static prony_status lrn_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const lrn_params *params = context->params;
    const prony_shape *shape = &context->inputs[0]->shape;
    const prn_opencl_lrn lrn = {.channels = shape->dim[1],
                                .pixels = prn_shape_count(shape, 2, shape->rank),
                                .before = (params->size - 1) / 2,
                                .after = params->size - 1 - (params->size - 1) / 2,
                                .bias = params->bias,
                                .factor = params->alpha / (float)params->size,
                                .beta = params->beta};
    return prn_opencl_lrn_prepare(context, out, &lrn);
}
#endif

// clang-format off
static const prn_kernel kernels[] = {
    PRN_OPENCL_ROW("lrn_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, lrn_opencl_prepare)
    {.name = "lrn_f32_native", .backend = "native", .types = PRN_TYPE_F32, .run = lrn_run_native},
    {.name = "lrn_reference", .backend = "reference", .run = lrn_run_reference},
    {0}};

const prn_op prn_ops_lrn[] = {
    {.name = "LRN", .since_opset = 1, .inputs = {1, 1},
     .params = attributes, .params_bytes = sizeof(lrn_params), .check = lrn_check,
     .infer = lrn_infer, .cost = lrn_cost, .kernels = kernels,
     .cost_text = "n (2 size + 3): size squares, size - 1 sums, scale and shift, pow, div; special 2 n"},
    {0}};
// clang-format on
