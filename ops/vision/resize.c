/* Resize and Upsample: shapes, cost, the reference kernel over any number of axes and the descriptors. */
#include "ops/vision/resize.h"

#include "base/memory/alloc.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/vector/widen.h"
#include "ops/vendor/opencl/opencl_index.h"

#include <string.h>

static const prn_param resize_attributes[] = {
    PRN_STRING(prn_resize_params, mode, "nearest"),
    PRN_STRING(prn_resize_params, coordinate_transformation_mode, "half_pixel"),
    PRN_STRING(prn_resize_params, nearest_mode, "round_prefer_floor"),
    PRN_STRING(prn_resize_params, keep_aspect_ratio_policy, "stretch"),
    PRN_FLOAT(prn_resize_params, cubic_coeff_a, -0.75f),
    PRN_FLOAT(prn_resize_params, extrapolation_value, 0),
    PRN_INT(prn_resize_params, exclude_outside, 0),
    PRN_INT(prn_resize_params, antialias, 0),
    PRN_INTS(prn_resize_params, axes),
    {0}};

static const prn_param upsample_attributes[] = {PRN_STRING(prn_resize_params, mode, "nearest"),
                                                PRN_FLOATS(prn_resize_params, scales),
                                                PRN_FLOAT(prn_resize_params, height_scale, 0),
                                                PRN_FLOAT(prn_resize_params, width_scale, 0),
                                                {0}};

static prony_status resize_infer(const prony_context *context)
{
    prn_resize resize;
    bool known;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_resize_read(context, &resize, &known));
    if (resize.mode != PRN_RESIZE_NEAREST) PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    prony_shape shape = {.rank = known ? resize.rank : -1};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = resize.axis[i].out;
    if (known && prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

/* An output element is a weighted sum over the product of the taps of the axes that change. */
static prony_status resize_cost(const prony_context *context, prony_cost *cost)
{
    prn_resize resize;
    bool known;
    PRN_TRY(prn_resize_read(context, &resize, &known));
    uint64_t taps = 1, each = resize.mode == PRN_RESIZE_LINEAR ? 2 : (resize.mode == PRN_RESIZE_CUBIC ? 4 : 1);
    for (int i = 0; i < resize.rank && known; i++) {
        if (!resize.axis[i].same && !prn_mul_u64(&taps, taps, each)) {
            return prony_fail(context, PRONY_LIMIT, "too many taps");
        }
    }
    int64_t count = prony_shape_numel(&context->outputs[0]->shape);
    prn_cost_fact(cost, "taps", (int64_t)taps);
    prn_cost_fact(cost, "mode", (int64_t)resize.mode);
    if (resize.mode == PRN_RESIZE_NEAREST || count <= 0) return PRONY_OK;
    return prn_cost_elementwise(context, cost, (uint64_t)count, 2 * taps - 1, 0);
}

/* ---- reference */

typedef struct resize_work {
    prn_resize resize;
    const prony_value *in;
    prony_value *out;
    int64_t stride[PRONY_MAX_RANK];
    size_t width;
} resize_work;

static void resize_element(const resize_work *work, const prn_taps *taps, int64_t element, bool outside)
{
    int64_t offset = 0;
    for (int axis = 0; axis < work->resize.rank; axis++) offset += taps[axis].index[0] * work->stride[axis];
    if (outside && prn_dtype_is_number(work->out->dtype)) {
        prn_put_f64(work->out->data, work->out->dtype, element, (double)work->resize.extrapolation);
    } else if (work->resize.mode == PRN_RESIZE_NEAREST) {
        memcpy((char *)work->out->data + (size_t)element * work->width,
               (const char *)work->in->data + (size_t)offset * work->width, work->width);
    } else {
        prn_put_f64(work->out->data, work->out->dtype, element,
                    prn_taps_blend(work->in, taps, work->stride, work->resize.rank, 0));
    }
}

static void resize_rows(void *argument, int64_t begin, int64_t end)
{
    const resize_work *work = argument;
    const prony_shape *shape = &work->out->shape;
    prn_taps taps[PRONY_MAX_RANK];
    int last = shape->rank - 1;
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row;
        bool row_outside = false;
        for (int axis = last - 1; axis >= 0; axis--) {
            taps[axis] = prn_resize_taps_at(&work->resize, axis, rest % shape->dim[axis], &row_outside);
            rest /= shape->dim[axis];
        }
        for (int64_t x = 0; x < shape->dim[last] && !prn_cancelled_at(x); x++) {
            bool outside = row_outside;
            taps[last] = prn_resize_taps_at(&work->resize, last, x, &outside);
            resize_element(work, taps, row * shape->dim[last] + x, outside);
        }
    }
}

/* Scales, sizes and a region that come with the data are read in the run. */
static prony_status resize_prepare(const prony_context *context, prn_prepared *out)
{
    prn_resize resize;
    bool known;
    int64_t doubles = 0;
    const prony_value *region = prn_input(context, 1);
    PRN_TRY(prn_resize_read(context, &resize, &known));
    if (known && resize.antialias && prony_shape_numel(&context->outputs[0]->shape) > 0)
        PRN_TRY(prn_resize_antialias_space(context, &resize, &doubles));
    out->scratch_bytes = (size_t)doubles * sizeof(double);
    if (!known || (resize.coordinate == PRN_RESIZE_TF_CROP_AND_RESIZE && region && !region->data)) return PRONY_OK;
    return prn_prepared_keep(context, &resize, sizeof resize, out);
}

/* Scales that came with the data were not there when the node was prepared. */
static prony_status run_antialias(const prony_context *context, const prn_resize *resize)
{
    int64_t doubles;
    PRN_TRY(prn_resize_antialias_space(context, resize, &doubles));
    const size_t bytes = (size_t)doubles * sizeof(double);
    double *own = context->scratch_bytes < bytes ? prn_alloc_aligned(64, bytes) : NULL;
    if (context->scratch_bytes < bytes && !own) return prn_no_memory(context->error);
    prn_resize_antialias(context, resize, own ? own : context->scratch);
    prn_free_aligned(own);
    return PRONY_OK;
}

static prony_status resize_reference(const prony_context *context)
{
    resize_work work = {.in = context->inputs[0], .out = context->outputs[0]};
    bool known;
    if (context->state)
        work.resize = *(const prn_resize *)context->state;
    else
        PRN_TRY(prn_resize_read(context, &work.resize, &known));
    const prony_shape *shape = &work.out->shape;
    int64_t count = prony_shape_numel(shape);
    work.width = prn_copy_width(work.in->dtype);
    prn_shape_strides(&work.in->shape, work.stride);
    if (count == 0) return PRONY_OK;
    if (shape->rank == 0) {
        memcpy(work.out->data, work.in->data, work.width);
        return PRONY_OK;
    }
    if (work.resize.antialias) return run_antialias(context, &work.resize);
    prn_parallel_items(context->threads, prn_shape_count(shape, 0, shape->rank - 1), count * 64, resize_rows, &work);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static const int resize_opencl_taps[] = {[PRN_RESIZE_NEAREST] = 1, [PRN_RESIZE_LINEAR] = 2, [PRN_RESIZE_CUBIC] = 4};

static bool resize_opencl_supported(const prony_context *context)
{
    prn_resize resize;
    if (!prn_opencl_first_supported(context) || !prn_resize_known(context, &resize) || resize.antialias) return false;
    int64_t axes = 0, entries = 0;
    for (int i = 0; i < resize.rank; i++) {
        if (resize.axis[i].same) continue;
        axes++;
        entries += resize.axis[i].out * resize_opencl_taps[resize.mode];
    }
    return axes > 0 && axes <= PRN_OPENCL_RESIZED && entries < INT32_MAX / 4;
}

/* Tables of the taps of every axis that changes, one behind the other. */
static prony_status resize_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    prn_resize resize;
    bool known;
    PRN_TRY(prn_resize_read(context, &resize, &known));
    prn_opencl_taps t = {.taps = resize_opencl_taps[resize.mode]};
    int64_t positions = 0;
    for (int i = 0; i < resize.rank; i++) {
        t.first[i] = resize.axis[i].same ? -1 : positions;
        if (!resize.axis[i].same) positions += resize.axis[i].out;
    }
    t.entries = positions * t.taps;
    int32_t *index = prn_calloc((size_t)t.entries + 1, sizeof *index);
    float *weight = prn_calloc((size_t)t.entries + 1, sizeof *weight);
    prony_status status = index && weight ? PRONY_OK : prn_no_memory(context->error);
    for (int i = 0; i < resize.rank && status == PRONY_OK; i++) {
        for (int64_t j = 0; t.first[i] >= 0 && j < resize.axis[i].out; j++) {
            const prn_taps taps = prn_resize_taps_at(&resize, i, j, NULL);
            for (int k = 0; k < t.taps; k++) {
                index[(t.first[i] + j) * t.taps + k] = (int32_t)taps.index[k];
                weight[(t.first[i] + j) * t.taps + k] = (float)taps.weight[k];
            }
        }
    }
    t.index = index;
    t.weight = weight;
    if (status == PRONY_OK) status = prn_opencl_taps_prepare(context, out, &t);
    prn_free(index);
    prn_free(weight);
    return status;
}
#endif

static const prn_kernel linear_f32 = {.supported = prn_resize_linear_supported,
                                      .prepare = prn_resize_rows_prepare,
                                      .run = prn_resize_linear_native,
                                      .release = prn_free};
PRN_WIDENED(linear_half, &linear_f32)

// clang-format off
static const prn_kernel resize_kernels[] = {
    PRN_OPENCL_ROW("resize_f32_opencl", PRN_TYPE_F32, resize_opencl_supported, resize_opencl_prepare, .host_inputs = 0xe)
    {.name = "resize_nearest_native", .backend = "native", .supported = prn_resize_nearest_supported,
     .layouts = prn_resize_layouts, .prepare = prn_resize_rows_prepare, .run = prn_resize_nearest_native, .release = prn_free},
    {.name = "resize_linear_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_resize_linear_supported,
     .layouts = prn_resize_linear_layouts, .prepare = prn_resize_rows_prepare, .run = prn_resize_linear_native, .release = prn_free},
    PRN_WIDENED_PLAIN_ROW(linear_half, "resize_linear_half_native"),
    {.name = "resize_linear_int8_native", .backend = "native", .types = PRN_TYPE(PRONY_INT8) | PRN_TYPE(PRONY_UINT8),
     .supported = prn_resize_linear_supported, .layouts = prn_resize_linear_layouts, .prepare = prn_resize_rows_prepare,
     .run = prn_resize_linear_bytes, .release = prn_free},
    {.name = "resize_passes_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_resize_passes_supported,
     .layouts = prn_resize_layouts, .prepare = prn_resize_passes_prepare, .run = prn_resize_passes_native,
     .release = prn_free},
    {.name = "resize_reference", .backend = "reference", .prepare = resize_prepare, .run = resize_reference,
     .release = prn_free},
    {0}};
// clang-format on

static const char cost_text[] =
    "nearest 0; linear and cubic n (2t - 1), t = 2 or 4 taps per axis that changes, multiplied; antialias as without";

// clang-format off
const prn_op prn_ops_resize[] = {
    {.name = "Resize", .since_opset = 10, .inputs = {1, 4}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 0xe,
     .params = resize_attributes, .params_bytes = sizeof(prn_resize_params), .variant = &(const prn_resize_kind){PRN_RESIZE},
     .check = prn_resize_check, .infer = resize_infer, .cost = resize_cost, .cost_text = cost_text,
     .kernels = resize_kernels},
    {.name = "Upsample", .since_opset = 1, .inputs = {1, 2}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 2,
     .params = upsample_attributes, .params_bytes = sizeof(prn_resize_params), .variant = &(const prn_resize_kind){PRN_UPSAMPLE},
     .check = prn_resize_check, .infer = resize_infer, .cost = resize_cost, .cost_text = cost_text,
     .kernels = resize_kernels},
    {0}};
// clang-format on
