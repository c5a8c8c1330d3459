/* Operators that put pieces back where a window took them from: Col2Im, which adds up the columns of an unfolded image,
 * and MaxUnpool, which writes maxima to the places they were found at.
 *
 * Invariant: each element of Col2Im's result is one sum, over the taps in their order. */
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"
#include "ops/kernels/window/window.h"

#include <string.h>

/* ---- Col2Im */

enum { COLUMNS, IMAGE_SHAPE, BLOCK_SHAPE };

typedef struct col2im_params {
    prn_ints dilations, pads, strides;
} col2im_params;

typedef struct col2im_job {
    const prony_value *columns;
    prony_value *image;
    int axes;
    int64_t extent[PRONY_MAX_RANK], block[PRONY_MAX_RANK], blocks[PRONY_MAX_RANK];
    int64_t dilation[PRONY_MAX_RANK], stride[PRONY_MAX_RANK], pad[PRONY_MAX_RANK];
    int64_t volume, places, pixels; /* of a block, blocks of an image, of an image */
} col2im_job;

static prony_status col2im_check_list(const prony_context *context, const char *name, const prn_ints *list,
                                      size_t wanted, int64_t least)
{
    bool fits = !list->present || list->count == wanted;
    for (size_t i = 0; i < list->count && fits; i++) fits = list->v[i] >= least && list->v[i] <= INT32_MAX;
    if (fits) return PRONY_OK;
    return prony_fail(context, PRONY_INVALID_MODEL, "%s needs %zu entries of at least %lld", name, wanted,
                      (long long)least);
}

static prony_status col2im_read_axis(const prony_context *context, col2im_job *job, int axis)
{
    const col2im_params *params = context->params;
    job->dilation[axis] = params->dilations.present ? params->dilations.v[axis] : 1;
    job->stride[axis] = params->strides.present ? params->strides.v[axis] : 1;
    job->pad[axis] = params->pads.present ? params->pads.v[axis] : 0;
    const int64_t end = params->pads.present ? params->pads.v[axis + job->axes] : 0;
    const int64_t extent = job->extent[axis], block = job->block[axis];
    if (extent >= 1 && extent <= INT32_MAX && block >= 1 && block <= INT32_MAX) {
        const int64_t room = extent + job->pad[axis] + end - job->dilation[axis] * (block - 1) - 1;
        if (room >= 0) {
            job->blocks[axis] = room / job->stride[axis] + 1;
            return PRONY_OK;
        }
    }
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "spatial axis %d: blocks of %lld do not tile %lld pixels", axis,
                      (long long)block, (long long)extent);
}

/* *known: both shapes are there. */
static prony_status read_col2im(const prony_context *context, col2im_job *job, bool *known)
{
    const col2im_params *params = context->params;
    size_t extents, blocks;
    bool image_known, block_known;
    *job = (col2im_job){.columns = context->inputs[COLUMNS], .image = context->outputs[0], .volume = 1, .places = 1};
    PRN_TRY(prn_input_ints(context, IMAGE_SHAPE, job->extent, PRONY_MAX_RANK - 2, &extents, &image_known));
    PRN_TRY(prn_input_ints(context, BLOCK_SHAPE, job->block, PRONY_MAX_RANK - 2, &blocks, &block_known));
    if (extents != blocks || extents < 1)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "image_shape has %zu entries and block_shape %zu", extents,
                          blocks);
    PRN_TRY(col2im_check_list(context, "dilations", &params->dilations, extents, 1));
    PRN_TRY(col2im_check_list(context, "strides", &params->strides, extents, 1));
    PRN_TRY(col2im_check_list(context, "pads", &params->pads, 2 * extents, 0));
    job->axes = (int)extents;
    *known = image_known && block_known;
    uint64_t volume = 1, places = 1, pixels = 1;
    for (int axis = 0; axis < job->axes && *known; axis++) {
        PRN_TRY(col2im_read_axis(context, job, axis));
        if (!prn_mul_u64(&volume, volume, (uint64_t)job->block[axis]) || volume > INT32_MAX ||
            !prn_mul_u64(&places, places, (uint64_t)job->blocks[axis]) || places > INT64_MAX ||
            !prn_mul_u64(&pixels, pixels, (uint64_t)job->extent[axis]) || pixels > INT64_MAX)
            return prony_fail(context, PRONY_LIMIT, "the image or its blocks are too large");
    }
    job->volume = (int64_t)volume;
    job->places = (int64_t)places;
    job->pixels = (int64_t)pixels;
    return PRONY_OK;
}

static prony_status infer_col2im(const prony_context *context)
{
    const prony_shape *columns = &context->inputs[COLUMNS]->shape;
    col2im_job job;
    bool known;
    PRN_TRY(prn_check_type(context, COLUMNS, PRN_TYPES_NUMBER_BOOL));
    PRN_TRY(prn_check_rank(context, COLUMNS, 3, 3));
    PRN_TRY(prn_check_type(context, IMAGE_SHAPE, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_type(context, BLOCK_SHAPE, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(read_col2im(context, &job, &known));
    prony_shape shape = prn_shape_unknown();
    if (known) {
        if (columns->dim[1] % job.volume != 0 || columns->dim[2] != job.places) {
            char text[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH,
                              "columns of shape %s do not hold %lld blocks of %lld pixels",
                              prn_shape_text(columns, text), (long long)job.places, (long long)job.volume);
        }
        shape = (prony_shape){job.axes + 2, {columns->dim[0], columns->dim[1] / job.volume}};
        for (int i = 0; i < job.axes; i++) shape.dim[2 + i] = job.extent[i];
        if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the image is too large");
    }
    prn_set_output(context, 0, context->inputs[COLUMNS]->dtype, &shape);
    return PRONY_OK;
}

/* The block in which tap `tap` is pixel `pixel`, or -1. */
static int64_t col2im_block_of(const col2im_job *job, int64_t pixel, int64_t tap)
{
    int64_t block = 0, step = 1;
    for (int axis = job->axes - 1; axis >= 0; axis--) {
        const int64_t at = pixel % job->extent[axis] + job->pad[axis] - tap % job->block[axis] * job->dilation[axis];
        if (at < 0 || at % job->stride[axis] != 0 || at / job->stride[axis] >= job->blocks[axis]) return -1;
        block += at / job->stride[axis] * step;
        step *= job->blocks[axis];
        pixel /= job->extent[axis];
        tap /= job->block[axis];
    }
    return block;
}

/* Sums, for each pixel of [begin, end), the columns' entries that cover it, tap by tap: no two tasks write one pixel.
 * Integers wrap around. */
static void col2im_add_columns(void *argument, int64_t begin, int64_t end)
{
    const col2im_job *job = argument;
    const prony_dtype dtype = job->image->dtype;
    const bool is_float = prn_dtype_is_float(dtype);
    for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i / job->pixels * job->volume, pixel = i % job->pixels;
        double sum = 0.0;
        uint64_t whole = 0;
        for (int64_t tap = 0; tap < job->volume; tap++) {
            const int64_t block = col2im_block_of(job, pixel, tap);
            if (block < 0) continue;
            const int64_t from = (plane + tap) * job->places + block;
            if (is_float) {
                sum += prn_get_f64(job->columns->data, dtype, from);
            } else {
                whole += (uint64_t)prn_get_i64(job->columns->data, dtype, from);
            }
        }
        if (is_float) {
            prn_put_f64(job->image->data, dtype, i, sum);
        } else {
            prn_put_i64(job->image->data, dtype, i, (int64_t)whole);
        }
    }
}

static prony_status run_col2im(const prony_context *context)
{
    col2im_job job;
    bool known;
    PRN_TRY(read_col2im(context, &job, &known));
    const int64_t count = prony_shape_numel(&job.image->shape);
    prn_parallel_items(context->threads, count, 16 * count * job.volume, col2im_add_columns, &job);
    return PRONY_OK;
}

/* One addition per element of the columns, padding included. */
static prony_status cost_col2im(const prony_context *context, prony_cost *cost)
{
    const int64_t count = prony_shape_numel(&context->inputs[COLUMNS]->shape);
    return prn_cost_elementwise(context, cost, count > 0 ? (uint64_t)count : 0, 1, 0);
}

/* ---- MaxUnpool */

enum { MAXIMA, INDICES, OUTPUT_SHAPE };

typedef struct unpool_params {
    prn_window_params window;
} unpool_params;

/* The shape that the indices count in, also with an output_shape: ONNX's test maxunpool_export_with_output_shape
 * demands it, whereas ONNX Runtime and PyTorch's exports count in output_shape. */
static prony_status unpooled_shape(const prony_context *context, prony_shape *shape)
{
    const prn_window_params *params = &((const unpool_params *)context->params)->window;
    PRN_TRY(prn_check_rank(context, MAXIMA, 3, 2 + PRN_WINDOW_AXES));
    *shape = context->inputs[MAXIMA]->shape;
    const size_t axes = (size_t)shape->rank - 2;
    if (params->kernel_shape.count != axes || (params->strides.present && params->strides.count != axes) ||
        (params->pads.present && params->pads.count != 2 * axes))
        return prony_fail(context, PRONY_INVALID_MODEL,
                          "kernel_shape, strides and pads have %zu, %zu and %zu entries for %zu spatial axes",
                          params->kernel_shape.count, params->strides.count, params->pads.count, axes);
    for (size_t i = 0; i < axes; i++) {
        const int64_t stride = params->strides.present ? params->strides.v[i] : 1;
        const int64_t pads = params->pads.present ? params->pads.v[i] + params->pads.v[i + axes] : 0;
        if (shape->dim[2 + i] > INT32_MAX) return prony_fail(context, PRONY_LIMIT, "the input is too large");
        shape->dim[2 + i] = (shape->dim[2 + i] - 1) * stride - pads + params->kernel_shape.v[i];
        if (shape->dim[2 + i] < 0 && prony_shape_numel(&context->inputs[MAXIMA]->shape) == 0) shape->dim[2 + i] = 0;
    }
    if (prony_shape_numel(shape) >= 0) return PRONY_OK;
    char text[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "the output would be of shape %s", prn_shape_text(shape, text));
}

static prony_status check_unpool(const prony_context *context)
{
    return prn_window_check(context, &((const unpool_params *)context->params)->window);
}

/* MaxUnpool's output: the shape that strides and pads give, or output_shape, which must hold it. Unknown while
 * output_shape is. */
static prony_status infer_unpool(const prony_context *context)
{
    char has[PRN_SHAPE_TEXT_BYTES], wants[PRN_SHAPE_TEXT_BYTES];
    prony_shape full, shape;
    int64_t wanted[PRONY_MAX_RANK];
    size_t count;
    bool known;
    PRN_TRY(prn_check_type(context, MAXIMA, PRN_TYPES_FLOAT));
    PRN_TRY(prn_check_type(context, INDICES, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(unpooled_shape(context, &full));
    if (!prn_shape_equal(&context->inputs[MAXIMA]->shape, &context->inputs[INDICES]->shape))
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "indices of shape %s for elements of shape %s",
                          prn_shape_text(&context->inputs[INDICES]->shape, has),
                          prn_shape_text(&context->inputs[MAXIMA]->shape, wants));
    PRN_TRY(prn_input_ints(context, OUTPUT_SHAPE, wanted, PRONY_MAX_RANK, &count, &known));
    shape = full;
    if (!known) shape = prn_shape_unknown();
    if (known && prn_input(context, OUTPUT_SHAPE)) {
        bool fits = count == (size_t)full.rank && wanted[0] == full.dim[0] && wanted[1] == full.dim[1];
        for (size_t i = 2; i < count && fits; i++) fits = wanted[i] >= full.dim[i];
        if (fits) shape = prn_shape_make(full.rank, wanted);
        if (!fits || prony_shape_numel(&shape) < 0) {
            char text[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "output_shape does not hold %s",
                              prn_shape_text(&full, text));
        }
    }
    prn_set_output(context, 0, context->inputs[MAXIMA]->dtype, &shape);
    return PRONY_OK;
}

/* Scatters each maximum to its index, which counts elements of the unpooled shape; a larger output_shape leaves the
 * rest 0. */
static prony_status run_unpool(const prony_context *context)
{
    const prony_value *maxima = context->inputs[MAXIMA], *indices = context->inputs[INDICES];
    prony_value *out = context->outputs[0];
    prony_shape full;
    int64_t stride[PRONY_MAX_RANK];
    PRN_TRY(unpooled_shape(context, &full));
    const size_t width = prn_copy_width(maxima->dtype);
    const int64_t count = prony_shape_numel(&maxima->shape), places = prony_shape_numel(&full);
    prn_shape_strides(&out->shape, stride);
    if (prony_shape_numel(&out->shape) > 0) prn_cancellable_clear(out->data, prn_value_bytes(out));
    for (int64_t i = 0; i < count && !prn_cancelled_at(i); i++) {
        int64_t index = ((const int64_t *)indices->data)[i], at = 0;
        if (index < 0 || index >= places) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "index %lld at position %lld is outside of %lld elements",
                              (long long)index, (long long)i, (long long)places);
        }
        for (int axis = full.rank - 1; axis >= 0; axis--) {
            at += index % full.dim[axis] * stride[axis];
            index /= full.dim[axis];
        }
        memcpy((char *)out->data + (size_t)at * width, (const char *)maxima->data + (size_t)i * width, width);
    }
    return PRONY_OK;
}

/* ---- descriptors */

static const prn_param col2im_attributes[] = {
    PRN_INTS(col2im_params, dilations), PRN_INTS(col2im_params, pads), PRN_INTS(col2im_params, strides), {0}};
static const prn_param unpool_attributes[] = {PRN_WINDOW_PARAMS(unpool_params), {0}};

static const prn_kernel col2im_kernels[] = {{.name = "col2im_reference", .backend = "reference", .run = run_col2im},
                                            {0}};
static const prn_kernel unpool_kernels[] = {{.name = "max_unpool_reference", .backend = "reference", .run = run_unpool},
                                            {0}};

// clang-format off
const prn_op prn_ops_col2im[] = {
    {.name = "Col2Im", .since_opset = 18, .inputs = {3, 3}, .non_weight_inputs = 6,
     .params = col2im_attributes, .params_bytes = sizeof(col2im_params),
     .infer = infer_col2im, .cost = cost_col2im, .cost_text = "input elements", .kernels = col2im_kernels},
    {.name = "MaxUnpool", .since_opset = 9, .inputs = {2, 3}, .non_weight_inputs = 6,
     .params = unpool_attributes, .params_bytes = sizeof(unpool_params), .check = check_unpool,
     .infer = infer_unpool, .cost = prn_cost_none, .cost_text = "0", .kernels = unpool_kernels},
    {0}};
// clang-format on
