/* Operators that move whole blocks along chosen axes: CenterCropPad, ReverseSequence, TensorScatter and Compress.
 * Invariant: what depends on data is checked before the first byte is written. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"

#include <string.h>

/* A block of any length: a long one is left early once the work is cancelled. */
static void copy_block(char *to, const char *from, size_t bytes)
{
    if (bytes < (size_t)1 << 18)
        memcpy(to, from, bytes);
    else
        prn_cancellable_copy(to, from, bytes);
}

/* ---- CenterCropPad */

typedef struct crop_params {
    prn_ints axes;
} crop_params;

/* Extents of the output; *known is false while they are not there. */
static prony_status crop_shape(const prony_context *context, prony_shape *shape, bool *known)
{
    const prn_ints *axes = &((const crop_params *)context->params)->axes;
    int64_t wanted[PRONY_MAX_RANK];
    size_t count;
    *shape = context->inputs[0]->shape;
    PRN_TRY(prn_input_ints(context, 1, wanted, PRONY_MAX_RANK, &count, known));
    if (count != (axes->present ? axes->count : (size_t)shape->rank))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "shape has %zu entries for %zu axes", count,
                          axes->present ? axes->count : (size_t)shape->rank);
    uint32_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes->present ? axes->v[i] : (int64_t)i;
        if (!prn_axis_normalize(&axis, shape->rank) || (seen >> axis & 1))
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axes[%zu] is outside of rank %d or given twice", i,
                              shape->rank);
        seen |= UINT32_C(1) << axis;
        if (!*known) continue;
        if (wanted[i] < 0)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "shape[%zu] is %lld", i, (long long)wanted[i]);
        shape->dim[axis] = wanted[i];
    }
    return PRONY_OK;
}

static prony_status crop_infer(const prony_context *context)
{
    prony_shape shape;
    bool known;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 1, 1, 1));
    PRN_TRY(crop_shape(context, &shape, &known));
    if (!known) shape = prn_shape_unknown();
    if (known && prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static prony_status run_crop_with(const prony_context *context, prn_copy_fn copy_fn)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = context->outputs[0];
    int64_t from_stride[PRONY_MAX_RANK], to_stride[PRONY_MAX_RANK], from = 0, to = 0;
    const size_t width = prn_copy_width(in->dtype);
    prn_copy copy = {0};
    bool padded = false;
    prn_shape_strides(&in->shape, from_stride);
    prn_shape_strides(&out->shape, to_stride);
    for (int i = 0; i < out->shape.rank; i++) {
        const int64_t have = in->shape.dim[i], want = out->shape.dim[i];
        if (want < have) from += (have - want) / 2 * from_stride[i];
        if (want > have) to += (want - have) / 2 * to_stride[i];
        padded = padded || want > have;
        prn_copy_axis(&copy, want < have ? want : have, from_stride[i], to_stride[i]);
    }
    if (prony_shape_numel(&out->shape) == 0) return PRONY_OK;
    if (padded) prn_cancellable_clear(out->data, prn_value_bytes(out));
    if (prony_shape_numel(&in->shape) == 0) return PRONY_OK;
    copy_fn(context->threads, width, &copy, (const char *)in->data + (size_t)from * width,
            (char *)out->data + (size_t)to * width);
    return PRONY_OK;
}

static prony_status run_crop_native(const prony_context *context)
{
    return run_crop_with(context, prn_copy_native);
}

static prony_status run_crop_reference(const prony_context *context)
{
    return run_crop_with(context, prn_copy_reference);
}

/* ---- ReverseSequence */

typedef struct reverse_params {
    int64_t batch_axis, time_axis;
} reverse_params;

typedef struct reverse_job {
    const prony_value *in, *lengths;
    char *out;
    int64_t rows, columns, block; /* [rows][columns][block bytes] */
    bool time_first;
} reverse_job;

static prony_status infer_reverse(const prony_context *context)
{
    const reverse_params *params = context->params;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_rank(context, 0, 2, PRONY_MAX_RANK));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, 1, 1, 1));
    if ((params->batch_axis != 0 && params->batch_axis != 1) || params->time_axis != 1 - params->batch_axis)
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "batch_axis %lld and time_axis %lld must be 0 and 1 in either order",
                          (long long)params->batch_axis, (long long)params->time_axis);
    const int64_t batch = context->inputs[0]->shape.dim[params->batch_axis], count = context->inputs[1]->shape.dim[0];
    if (batch != count)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%lld lengths for a batch of %lld", (long long)count,
                          (long long)batch);
    return prn_infer_same(context);
}

static void reverse_rows(void *argument, int64_t begin, int64_t end)
{
    const reverse_job *job = argument;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / job->columns, column = i % job->columns;
        const int64_t time = job->time_first ? row : column, batch = job->time_first ? column : row;
        const int64_t length = ((const int64_t *)job->lengths->data)[batch];
        const int64_t source = time < length ? length - 1 - time : time;
        const int64_t from = job->time_first ? source * job->columns + batch : batch * job->columns + source;
        copy_block(job->out + i * job->block, (const char *)job->in->data + from * job->block, (size_t)job->block);
    }
}

static prony_status run_reverse(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    reverse_job job = {.in = in,
                       .lengths = context->inputs[1],
                       .out = context->outputs[0]->data,
                       .rows = in->shape.dim[0],
                       .columns = in->shape.dim[1],
                       .time_first = ((const reverse_params *)context->params)->time_axis == 0};
    const int64_t steps = job.time_first ? job.rows : job.columns;
    for (int64_t i = 0; i < context->inputs[1]->shape.dim[0]; i++) {
        const int64_t length = ((const int64_t *)job.lengths->data)[i];
        if (length < 0 || length > steps)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "sequence_lens[%lld] is %lld, the axis has %lld steps",
                              (long long)i, (long long)length, (long long)steps);
    }
    if (prony_shape_numel(&in->shape) == 0) return PRONY_OK;
    job.block = prn_shape_count(&in->shape, 2, in->shape.rank) * (int64_t)prn_copy_width(in->dtype);
    prn_parallel_items(context->threads, job.rows * job.columns, 2 * (int64_t)prn_value_bytes(in), reverse_rows, &job);
    return PRONY_OK;
}

/* ---- TensorScatter */

enum { CACHE, UPDATE, WRITE_INDICES };

typedef struct tensor_scatter_params {
    const char *mode;
    int64_t axis;
} tensor_scatter_params;

typedef struct tensor_scatter_job {
    const prony_value *update, *indices;
    char *out;
    int64_t prefixes, per_batch; /* of the axes before `axis`; of them in one batch entry */
    int64_t extent, steps, block;
} tensor_scatter_job;

static prony_status check_tensor_scatter(const prony_context *context)
{
    const char *mode = ((const tensor_scatter_params *)context->params)->mode;
    if (strcmp(mode, "linear") == 0 || strcmp(mode, "circular") == 0) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "mode '%.40s' is not supported", mode);
}

static prony_status infer_tensor_scatter(const prony_context *context)
{
    const prony_value *cache = context->inputs[CACHE], *update = context->inputs[UPDATE];
    const prony_value *indices = prn_input(context, WRITE_INDICES);
    int64_t axis = ((const tensor_scatter_params *)context->params)->axis;
    PRN_TRY(prn_check_movable(context, CACHE));
    PRN_TRY(prn_check_rank(context, CACHE, 2, PRONY_MAX_RANK));
    PRN_TRY(prn_check_type(context, WRITE_INDICES, PRN_TYPE(PRONY_INT64)));
    if (!prn_axis_normalize(&axis, cache->shape.rank) || axis == 0)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d or the batch",
                          (long long)((const tensor_scatter_params *)context->params)->axis, cache->shape.rank);
    bool fits = update->dtype == cache->dtype && update->shape.rank == cache->shape.rank;
    for (int i = 0; fits && i < cache->shape.rank; i++) {
        fits = i == axis ? update->shape.dim[i] <= cache->shape.dim[i] : update->shape.dim[i] == cache->shape.dim[i];
    }
    if (!fits) {
        char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "an update %s does not fit into %s",
                          prn_value_text(update, right), prn_value_text(cache, left));
    }
    if (indices && (indices->shape.rank != 1 || indices->shape.dim[0] != cache->shape.dim[0]))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "there is not one write index per batch entry");
    return prn_infer_same(context);
}

static void scatter_prefixes(void *argument, int64_t begin, int64_t end)
{
    const tensor_scatter_job *job = argument;
    for (int64_t prefix = begin; prefix < end; prefix++) {
        int64_t first = job->indices ? ((const int64_t *)job->indices->data)[prefix / job->per_batch] : 0;
        first = (first % job->extent + job->extent) % job->extent;
        /* At most one wrap: no more steps than the axis has. */
        const int64_t head = job->steps < job->extent - first ? job->steps : job->extent - first;
        char *to = job->out + prefix * job->extent * job->block;
        const char *from = (const char *)job->update->data + prefix * job->steps * job->block;
        copy_block(to + first * job->block, from, (size_t)(head * job->block));
        copy_block(to, from + head * job->block, (size_t)((job->steps - head) * job->block));
    }
}

static prony_status run_tensor_scatter(const prony_context *context)
{
    const tensor_scatter_params *params = context->params;
    const prony_value *cache = context->inputs[CACHE], *update = context->inputs[UPDATE];
    const int axis = (int)(params->axis < 0 ? params->axis + cache->shape.rank : params->axis);
    tensor_scatter_job job = {.update = update,
                              .indices = prn_input(context, WRITE_INDICES),
                              .out = context->outputs[0]->data,
                              .prefixes = prn_shape_count(&cache->shape, 0, axis),
                              .per_batch = prn_shape_count(&cache->shape, 1, axis),
                              .extent = cache->shape.dim[axis],
                              .steps = update->shape.dim[axis]};
    for (int64_t b = 0; job.indices && strcmp(params->mode, "linear") == 0 && b < cache->shape.dim[0]; b++) {
        const int64_t index = ((const int64_t *)job.indices->data)[b];
        if (index < 0 || index > job.extent - job.steps)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "write index %lld of %lld steps is outside of extent %lld",
                              (long long)index, (long long)job.steps, (long long)job.extent);
    }
    prn_copy_bytes(context->threads, cache->data, job.out, prn_value_bytes(cache));
    if (prony_shape_numel(&update->shape) == 0) return PRONY_OK;
    job.block = prn_shape_count(&cache->shape, axis + 1, cache->shape.rank) * (int64_t)prn_copy_width(cache->dtype);
    prn_parallel_items(context->threads, job.prefixes, 2 * (int64_t)prn_value_bytes(update), scatter_prefixes, &job);
    return PRONY_OK;
}

/* ---- Compress */

typedef struct compress_params {
    int64_t axis;
} compress_params;

/* The input as [outer][extent][inner]; without an axis it is one list. */
static prony_status compress_axis(const prony_context *context, int *axis)
{
    int64_t given = ((const compress_params *)context->params)->axis;
    const int rank = context->inputs[0]->shape.rank;
    *axis = -1;
    if (given == PRN_ABSENT) return PRONY_OK;
    if (!prn_axis_normalize(&given, rank))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)given, rank);
    *axis = (int)given;
    return PRONY_OK;
}

static prony_status infer_compress(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *condition = context->inputs[1];
    int axis;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_BOOL)));
    PRN_TRY(prn_check_rank(context, 1, 1, 1));
    PRN_TRY(compress_axis(context, &axis));
    const int64_t extent = axis < 0 ? prony_shape_numel(&in->shape) : in->shape.dim[axis];
    const int64_t count = condition->shape.dim[0] < extent ? condition->shape.dim[0] : extent;
    prony_shape shape = prn_shape_unknown();
    if (condition->data || count == 0) {
        int64_t taken = 0;
        for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++) taken += ((const uint8_t *)condition->data)[i] != 0;
        shape = axis < 0 ? (prony_shape){.rank = 1} : in->shape;
        shape.dim[axis < 0 ? 0 : axis] = taken;
    }
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

static prony_status run_compress(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *condition = context->inputs[1];
    prony_value *out = context->outputs[0];
    int axis;
    PRN_TRY(compress_axis(context, &axis));
    if (prony_shape_numel(&out->shape) == 0) return PRONY_OK;
    const int64_t outer = axis < 0 ? 1 : prn_shape_count(&in->shape, 0, axis);
    const int64_t extent = axis < 0 ? prony_shape_numel(&in->shape) : in->shape.dim[axis];
    const int64_t inner = axis < 0 ? 1 : prn_shape_count(&in->shape, axis + 1, in->shape.rank);
    const int64_t room = out->shape.dim[axis < 0 ? 0 : axis];
    const int64_t count = condition->shape.dim[0] < extent ? condition->shape.dim[0] : extent;
    const size_t width = prn_copy_width(in->dtype);
    for (int64_t i = 0, taken = 0; i < count && taken < room && !prn_cancelled_at(i); i++) {
        if (!((const uint8_t *)condition->data)[i]) continue;
        prn_copy copy = {0};
        prn_copy_axis(&copy, outer, extent * inner, room * inner);
        prn_copy_axis(&copy, inner, 1, 1);
        prn_copy_native(1, width, &copy, (const char *)in->data + (size_t)(i * inner) * width,
                        (char *)out->data + (size_t)(taken++ * inner) * width);
    }
    return PRONY_OK;
}

static const prn_param crop_attributes[] = {PRN_INTS(crop_params, axes), {0}};
static const prn_param reverse_attributes[] = {
    PRN_INT(reverse_params, batch_axis, 1), PRN_INT(reverse_params, time_axis, 0), {0}};
static const prn_param tensor_scatter_attributes[] = {
    PRN_STRING(tensor_scatter_params, mode, "linear"), PRN_INT(tensor_scatter_params, axis, -2), {0}};
static const prn_param compress_attributes[] = {PRN_INT(compress_params, axis, PRN_ABSENT), {0}};

static const prn_kernel crop_kernels[] = {
    {.name = "center_crop_pad_native", .backend = "native", .run = run_crop_native},
    {.name = "center_crop_pad_reference", .backend = "reference", .run = run_crop_reference},
    {0}};
static const prn_kernel reverse_kernels[] = {
    {.name = "reverse_sequence_reference", .backend = "reference", .run = run_reverse}, {0}};
static const prn_kernel tensor_scatter_kernels[] = {
    {.name = "tensor_scatter_reference", .backend = "reference", .run = run_tensor_scatter, .inplace = 1}, {0}};
static const prn_kernel compress_kernels[] = {
    {.name = "compress_reference", .backend = "reference", .run = run_compress}, {0}};

// clang-format off
const prn_op prn_ops_crop[] = {
    {.name = "CenterCropPad", .since_opset = 18, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = crop_attributes, .params_bytes = sizeof(crop_params),
     .infer = crop_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = crop_kernels},
    {.name = "ReverseSequence", .since_opset = 10, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = reverse_attributes, .params_bytes = sizeof(reverse_params),
     .infer = infer_reverse, .cost = prn_cost_none, .cost_text = "0", .kernels = reverse_kernels},
    {.name = "TensorScatter", .since_opset = 24, .inputs = {2, 3}, .non_weight_inputs = 4,
     .params = tensor_scatter_attributes, .params_bytes = sizeof(tensor_scatter_params), .check = check_tensor_scatter,
     .infer = infer_tensor_scatter, .cost = prn_cost_none, .cost_text = "0", .kernels = tensor_scatter_kernels},
    {.name = "Compress", .since_opset = 9, .inputs = {2, 2}, .flags = PRN_OP_DATA_SHAPE, .non_weight_inputs = 2,
     .params = compress_attributes, .params_bytes = sizeof(compress_params),
     .infer = infer_compress, .cost = prn_cost_none, .cost_text = "0", .kernels = compress_kernels},
    {0}};
// clang-format on
