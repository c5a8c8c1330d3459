/* Normalisation of rows: LayerNormalization, InstanceNormalization, GroupNormalization.
 * All three take the mean and variance of `length` consecutive elements, `rows` times, and differ in which scale and
 * bias an element meets: number (element / run) mod period of the vectors. Invariant: a row is normalised by one task,
 * so sums have one order. */
#include "base/threads/cancel.h"
#include "ops/kernels/vector/affine.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/post_ops_vec.h"
#include "ops/kernels/vector/widen.h"
#include "ops/norm/norm_blocks.h"
#include "ops/vendor/opencl/opencl_rows.h"

#include <string.h>

typedef struct row_norm {
    const prony_context *context;
    const prony_value *x, *scale, *bias;
    prony_value *y, *mean, *inverse;
    int64_t rows, length;
    int64_t run, period;
    float epsilon;
    bool spread; /* scale or bias is not a vector of a row: it is read with broadcasting */
    prn_affine wide_scale, wide_bias;
} row_norm;

typedef struct norm_params {
    int64_t axis, stash_type, num_groups;
    float epsilon;
} norm_params;

/* An operator's inputs seen as rows. */
typedef struct norm_kind {
    row_norm (*rows_of)(const prony_context *context);
} norm_kind;

static row_norm norm_rows_of(const prony_context *context)
{
    return ((const norm_kind *)prn_variant(context))->rows_of(context);
}

/* ---- kernels */

/* One row in float64, two passes: mean, then the variance around it. Scale and bias may repeat along the row. */
static void norm_reference_row(const row_norm *norm, int64_t row)
{
    const int64_t first = row * norm->length;
    const prony_dtype dtype = norm->x->dtype;
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < norm->length && !prn_cancelled_at(i); i++)
        sum += prn_get_f64(norm->x->data, dtype, first + i);
    const double mean = sum / (double)norm->length;
    for (int64_t i = 0; i < norm->length && !prn_cancelled_at(i); i++) {
        const double deviation = prn_get_f64(norm->x->data, dtype, first + i) - mean;
        squares += deviation * deviation;
    }
    const double inverse = 1.0 / sqrt(squares / (double)norm->length + (double)norm->epsilon);
    for (int64_t i = 0; i < norm->length && !prn_cancelled_at(i); i++) {
        const int64_t at = (first + i) / norm->run % norm->period;
        double value = (prn_get_f64(norm->x->data, dtype, first + i) - mean) * inverse;
        if (norm->spread) {
            if (norm->scale) value *= prn_affine_get(&norm->wide_scale, first + i);
            if (norm->bias) value += prn_affine_get(&norm->wide_bias, first + i);
            prn_put_f64(norm->y->data, dtype, first + i, value);
            continue;
        }
        if (norm->scale) value *= prn_get_f64(norm->scale->data, norm->scale->dtype, at);
        if (norm->bias) value += prn_get_f64(norm->bias->data, norm->bias->dtype, at);
        prn_put_f64(norm->y->data, dtype, first + i, value);
    }
    if (norm->mean) prn_put_f64(norm->mean->data, norm->mean->dtype, row, mean);
    if (norm->inverse) prn_put_f64(norm->inverse->data, norm->inverse->dtype, row, inverse);
}

static void norm_reference_rows(void *argument, int64_t begin, int64_t end)
{
    const row_norm *norm = argument;
    for (int64_t row = begin; row < end; row++) {
        norm_reference_row(norm, row);
        if (norm->context->post_ops)
            prn_post_ops_apply_f32(norm->context, (float *)norm->y->data + row * norm->length, row * norm->length,
                                   norm->length);
    }
}

static const float *norm_floats(const prony_value *value)
{
    return value ? value->data : NULL;
}

/* Scale and bias are constant over runs of the row. */
static void affine_runs(const row_norm *norm, float *y, int64_t first)
{
    const float *scale = norm_floats(norm->scale), *bias = norm_floats(norm->bias);
    for (int64_t i = 0, run = 0; i < norm->length && !prn_cancelled_at(run); i += norm->run, run++) {
        const int64_t at = (first + i) / norm->run % norm->period;
        const int64_t count = norm->length - i < norm->run ? norm->length - i : norm->run;
        prn_long_map(PRN_MAP_AFFINE, y + i, y + i, count, scale ? scale[at] : 1.0f, bias ? bias[at] : 0.0f);
    }
}

static void norm_native_rows(void *argument, int64_t begin, int64_t end)
{
    const row_norm *norm = argument;
    const prn_vec_table *vec = prn_vec();
    const bool vectors = norm->run == 1 && norm->period == norm->length;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row * norm->length;
        float *y = (float *)norm->y->data + first, mean, inverse;
        const float *x = (const float *)norm->x->data + first;
        vec->layer_norm(y, x, vectors ? norm_floats(norm->scale) : NULL, vectors ? norm_floats(norm->bias) : NULL,
                        norm->length, norm->epsilon, &mean, &inverse);
        if (!vectors && (norm->scale || norm->bias)) affine_runs(norm, y, first);
        if (norm->context->post_ops) prn_post_ops_apply_vec(norm->context, y, first, norm->length);
        if (norm->mean) ((float *)norm->mean->data)[row] = mean;
        if (norm->inverse) ((float *)norm->inverse->data)[row] = inverse;
    }
}

static prony_status norm_run_rows(const prony_context *context,
                                  void (*rows)(void *argument, int64_t begin, int64_t end))
{
    row_norm norm = norm_rows_of(context);
    norm.context = context;
    if (norm.length == 0) rows = norm_reference_rows; /* mean and deviation of no elements: NaN */
    prn_parallel_items(context->threads, norm.rows, 2 * (int64_t)prn_value_bytes(norm.x), rows, &norm);
    return PRONY_OK;
}

static prony_status norm_run_reference(const prony_context *context)
{
    return norm_run_rows(context, norm_reference_rows);
}

static prony_status norm_run_native(const prony_context *context)
{
    return norm_run_rows(context, norm_native_rows);
}

static prony_status prepare_channels(const prony_context *context, prn_prepared *out)
{
    if (prn_layout_block((prn_layout)context->inputs[0]->layout)) out->scratch_bytes = prn_norm_blocks_scratch(context);
    return PRONY_OK;
}

static prony_status run_channels(const prony_context *context)
{
    if (!prn_layout_block((prn_layout)context->inputs[0]->layout)) return norm_run_native(context);
    const row_norm norm = norm_rows_of(context);
    if (norm.rows > 0) prn_norm_blocks_run(context, norm.rows / context->inputs[0]->shape.dim[0], norm.epsilon);
    return PRONY_OK;
}

/* ---- LayerNormalization */

static int64_t layer_axis(const prony_context *context)
{
    int64_t axis = ((const norm_params *)context->params)->axis;
    return prn_axis_normalize(&axis, context->inputs[0]->shape.rank) ? axis : -1;
}

static row_norm layer_norm_of(const prony_context *context)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    const int axis = (int)layer_axis(context);
    row_norm norm = {.x = context->inputs[0],
                     .scale = prn_input(context, 1),
                     .bias = prn_input(context, 2),
                     .y = prn_output(context, 0),
                     .mean = prn_output(context, 1),
                     .inverse = prn_output(context, 2),
                     .rows = prn_shape_count(shape, 0, axis),
                     .length = prn_shape_count(shape, axis, shape->rank),
                     .run = 1,
                     .epsilon = ((const norm_params *)context->params)->epsilon};
    norm.period = norm.length;
    if (prn_affine_make(context, 1, axis, &norm.wide_scale) == PRONY_OK &&
        prn_affine_make(context, 2, axis, &norm.wide_bias) == PRONY_OK)
        norm.spread = (norm.scale && !norm.wide_scale.vector) || (norm.bias && !norm.wide_bias.vector);
    return norm;
}

/* Mean and inverse deviation come in the type that stash_type names. */
static prony_dtype stash_type(const prony_context *context)
{
    return (prony_dtype)((const norm_params *)context->params)->stash_type;
}

static prony_status check_affine(const prony_context *context, size_t input, int64_t wanted)
{
    const prony_value *value = prn_input(context, input);
    PRN_TRY(prn_check_type(context, input, PRN_TYPES_FLOAT));
    if (!value || prony_shape_numel(&value->shape) == wanted) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted %lld elements", input,
                      prn_value_text(value, text), (long long)wanted);
}

static prony_status infer_layer_norm(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    const prony_value *x = context->inputs[0];
    const int64_t axis = layer_axis(context);
    if (axis < 0) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d",
                          (long long)((const norm_params *)context->params)->axis, x->shape.rank);
    }
    prn_affine scale, bias;
    PRN_TRY(prn_check_type(context, 1, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_type(context, 2, PRN_TYPES_FLOAT));
    PRN_TRY(prn_affine_make(context, 1, (int)axis, &scale));
    PRN_TRY(prn_affine_make(context, 2, (int)axis, &bias));
    const int64_t stash = ((const norm_params *)context->params)->stash_type;
    if (stash < 0 || stash >= PRONY_DTYPE_COUNT || !(PRN_TYPES_FLOAT & PRN_TYPE(stash)))
        return prony_fail(context, PRONY_INVALID_MODEL, "stash_type %lld is not a float type", (long long)stash);
    prony_shape reduced = x->shape;
    for (int d = (int)axis; d < reduced.rank; d++) reduced.dim[d] = 1;
    prn_set_output(context, 0, x->dtype, &x->shape);
    prn_set_output(context, 1, stash_type(context), &reduced);
    prn_set_output(context, 2, stash_type(context), &reduced);
    return PRONY_OK;
}

static bool supported_layer_norm(const prony_context *context)
{
    return stash_type(context) == PRONY_FLOAT32 && !layer_norm_of(context).spread;
}

/* ---- InstanceNormalization, GroupNormalization: rows within [N, C, spatial …] */

static row_norm channel_norm_of(const prony_context *context, int64_t groups)
{
    const prony_value *x = context->inputs[0];
    const int64_t channels = x->shape.dim[1], pixels = prn_shape_count(&x->shape, 2, x->shape.rank);
    const int64_t vectors = prony_shape_numel(&context->inputs[1]->shape);
    row_norm norm = {.x = x,
                     .scale = context->inputs[1],
                     .bias = context->inputs[2],
                     .y = context->outputs[0],
                     .rows = x->shape.dim[0] * groups,
                     .length = groups ? channels / groups * pixels : 0,
                     .run = vectors ? channels / vectors * pixels : 0,
                     .period = vectors,
                     .epsilon = ((const norm_params *)context->params)->epsilon};
    return norm;
}

static row_norm instance_norm_of(const prony_context *context)
{
    return channel_norm_of(context, context->inputs[0]->shape.dim[1]);
}

static row_norm group_norm_of(const prony_context *context)
{
    return channel_norm_of(context, ((const norm_params *)context->params)->num_groups);
}

static prony_status infer_instance_norm(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    PRN_TRY(check_affine(context, 1, context->inputs[0]->shape.dim[1]));
    PRN_TRY(check_affine(context, 2, context->inputs[0]->shape.dim[1]));
    return prn_infer_same(context);
}

static prony_status infer_group_norm(const prony_context *context)
{
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    const int64_t groups = ((const norm_params *)context->params)->num_groups;
    const int64_t channels = context->inputs[0]->shape.dim[1];
    if (groups < 1 || channels % groups) {
        return prony_fail(context, PRONY_INVALID_MODEL, "num_groups %lld does not divide %lld channels",
                          (long long)groups, (long long)channels);
    }
    const int64_t vectors = context->node->opset < 21 ? groups : channels;
    PRN_TRY(check_affine(context, 1, vectors));
    PRN_TRY(check_affine(context, 2, vectors));
    return prn_infer_same(context);
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static prony_status norm_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const row_norm norm = norm_rows_of(context);
    return prn_opencl_norm_prepare(context, out,
                                   &(prn_opencl_norm){.length = norm.length,
                                                      .run = norm.run,
                                                      .period = norm.period,
                                                      .epsilon = norm.epsilon,
                                                      .skip = PRN_OPENCL_NONE,
                                                      .added = PRN_OPENCL_NONE,
                                                      .scale = 1,
                                                      .bias = 2,
                                                      .mean_output = 1,
                                                      .inverse_output = 2,
                                                      .sum_output = PRN_OPENCL_NONE});
}

static bool layer_norm_opencl_supported(const prony_context *context)
{
    return supported_layer_norm(context) && prn_opencl_rows_supported(context);
}
#endif

/* ---- cost */

static prony_status norm_cost(const prony_context *context, prony_cost *cost)
{
    const row_norm norm = norm_rows_of(context);
    const uint64_t n = prn_output_elements(context), rows = n ? (uint64_t)norm.rows : 0;
    const uint64_t affine = (uint64_t)(norm.scale != NULL) + (uint64_t)(norm.bias != NULL);
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    prn_cost_fact(cost, "rows", norm.rows);
    prn_cost_fact(cost, "axis_length", norm.length);
    prn_cost_fact(cost, "affine", norm.scale != NULL);
    prn_cost_fact(cost, "bias", norm.bias != NULL);
    if (affine == 2) cost->madds += n;
    PRN_TRY(prn_cost_elementwise(context, cost, n, 5 + affine, 1));
    return prn_cost_elementwise(context, cost, rows, 2, 3);
}

/* ---- descriptors */

static const prn_param layer_norm_attributes[] = {
    PRN_INT(norm_params, axis, -1), PRN_INT(norm_params, stash_type, 1), PRN_FLOAT(norm_params, epsilon, 1e-5f), {0}};
static const prn_param instance_norm_attributes[] = {PRN_FLOAT(norm_params, epsilon, 1e-5f), {0}};
static const prn_param group_norm_attributes[] = {
    PRN_INT_REQUIRED(norm_params, num_groups), PRN_FLOAT(norm_params, epsilon, 1e-5f), {0}};

static const prn_kernel layer_norm_f32 = {
    .float_types = PRN_TYPE_F32, .supported = supported_layer_norm, .run = norm_run_native};
PRN_WIDENED(layer_norm_half, &layer_norm_f32)

// clang-format off
static const prn_kernel layer_norm_kernels[] = {
    PRN_OPENCL_ROW("layer_norm_f32_opencl", PRN_TYPE_F32, layer_norm_opencl_supported, norm_opencl_prepare)
    {.name = "layer_norm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .float_types = PRN_TYPE_F32, .supported = supported_layer_norm,
     .run = norm_run_native, .inplace = 1},
    PRN_WIDENED_PLAIN_ROW(layer_norm_half, "layer_norm_half_native"),
    {.name = "layer_norm_reference", .backend = "reference", .run = norm_run_reference, .inplace = 1},
    {0}};
// clang-format on
static const prn_kernel instance_norm_f32 = {.float_types = PRN_TYPE_F32, .run = norm_run_native};
PRN_WIDENED(instance_norm_half, &instance_norm_f32)

// clang-format off
static const prn_kernel instance_norm_kernels[] = {
    PRN_OPENCL_ROW("instance_norm_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, norm_opencl_prepare, .post_ops = true)
    {.name = "instance_norm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .float_types = PRN_TYPE_F32,
     .layouts = prn_norm_blocks_layouts, .prepare = prepare_channels, .run = run_channels, .inplace = 1, .post_ops = true},
    PRN_WIDENED_ROW(instance_norm_half, "instance_norm_half_native"),
    {.name = "instance_norm_reference", .backend = "reference", .run = norm_run_reference, .inplace = 1, .post_ops = true},
    {0}};
// clang-format on
static const prn_kernel group_norm_f32 = {.float_types = PRN_TYPE_F32, .run = norm_run_native};
PRN_WIDENED(group_norm_half, &group_norm_f32)

// clang-format off
static const prn_kernel group_norm_kernels[] = {
    PRN_OPENCL_ROW("group_norm_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, norm_opencl_prepare, .post_ops = true)
    {.name = "group_norm_f32_native", .backend = "native", .types = PRN_TYPE_F32, .float_types = PRN_TYPE_F32,
     .layouts = prn_norm_blocks_layouts, .prepare = prepare_channels, .run = run_channels, .inplace = 1, .post_ops = true},
    PRN_WIDENED_ROW(group_norm_half, "group_norm_half_native"),
    {.name = "group_norm_reference", .backend = "reference", .run = norm_run_reference, .inplace = 1, .post_ops = true},
    {0}};
// clang-format on

static const char cost_text[] = "5 n + 2 r, + n with scale, + n with bias; madds n if both; special n + 3 r";

// clang-format off
const prn_op prn_ops_norm[] = {
    /* ONNX Runtime writes it below opset 17 too */
    {.name = "LayerNormalization", .since_opset = 1, .inputs = {2, 3}, .outputs = {1, 3},
     .params = layer_norm_attributes, .params_bytes = sizeof(norm_params), .variant = &(const norm_kind){layer_norm_of},
     .infer = infer_layer_norm, .cost = norm_cost, .cost_text = cost_text, .kernels = layer_norm_kernels},
    {.name = "LayerNormalization", .domain = "prony", .since_opset = 1, .inputs = {2, 3}, .outputs = {1, 3},
     .params = layer_norm_attributes, .params_bytes = sizeof(norm_params), .variant = &(const norm_kind){layer_norm_of},
     .infer = infer_layer_norm, .cost = norm_cost, .cost_text = cost_text, .kernels = layer_norm_kernels},
    {.name = "InstanceNormalization", .since_opset = 1, .inputs = {3, 3}, .flags = PRN_OP_POST_OPS,
     .params = instance_norm_attributes, .params_bytes = sizeof(norm_params),
     .variant = &(const norm_kind){instance_norm_of},
     .infer = infer_instance_norm, .cost = norm_cost, .cost_text = cost_text, .kernels = instance_norm_kernels},
    {.name = "GroupNormalization", .since_opset = 18, .inputs = {3, 3}, .flags = PRN_OP_POST_OPS,
     .params = group_norm_attributes, .params_bytes = sizeof(norm_params), .variant = &(const norm_kind){group_norm_of},
     .infer = infer_group_norm, .cost = norm_cost, .cost_text = cost_text, .kernels = group_norm_kernels},
    {0}};
// clang-format on
