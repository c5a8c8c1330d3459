/* Pad in all its modes, negative paddings included. A row of the result (its last axis) takes what lies before, inside
 * and after the input's row; which row that is, every other axis maps by itself. Invariant: a mapped index is inside
 * the input, or -1 where the constant goes. */
#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/lowbit/narrow_types.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

typedef struct pad_params {
    const char *mode;
    float value;
    prn_ints pads, paddings;
} pad_params;

static const prn_param pad_attributes[] = {PRN_STRING(pad_params, mode, "constant"),
                                           PRN_FLOAT(pad_params, value, 0),
                                           PRN_INTS(pad_params, pads),
                                           PRN_INTS(pad_params, paddings),
                                           {0}};

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP, PAD_UNKNOWN } pad_mode;

static pad_mode pad_mode_of(const prony_context *context)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = ((const pad_params *)context->params)->mode;
    int count = context->node->opset >= 19 ? 4 : 3;
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], mode) == 0) return (pad_mode)i;
    }
    return PAD_UNKNOWN;
}

typedef struct pad_plan {
    pad_mode mode;
    int64_t begin[PRONY_MAX_RANK], end[PRONY_MAX_RANK];
} pad_plan;

/* The attribute, as opset 1 and those up to 10 name it. */
static const prn_ints *pad_list(const prony_context *context)
{
    const pad_params *params = context->params;
    return context->node->opset < 2 ? &params->paddings : &params->pads;
}

static prony_status pad_check(const prony_context *context)
{
    const pad_params *params = context->params;
    if (pad_mode_of(context) == PAD_UNKNOWN) {
        return prony_fail(context, PRONY_UNSUPPORTED, "mode '%s' is not supported in opset %lld", params->mode,
                          (long long)context->node->opset);
    }
    if (context->node->opset < 11 && !pad_list(context)->present) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'pads' is missing");
    }
    return PRONY_OK;
}

/* The input's axis for axis k of the pads list. */
static prony_status pad_axes(const prony_context *context, int64_t axes[PRONY_MAX_RANK], size_t *count, bool *known)
{
    int rank = context->inputs[0]->shape.rank;
    uint32_t seen = 0;
    *known = true;
    if (!prn_input(context, 3)) {
        *count = (size_t)rank;
        for (int i = 0; i < rank; i++) axes[i] = i;
        return PRONY_OK;
    }
    PRN_TRY(prn_input_ints(context, 3, axes, PRONY_MAX_RANK, count, known));
    for (size_t i = 0; i < *count && *known; i++) {
        int64_t axis = axes[i];
        if (!prn_axis_normalize(&axes[i], rank)) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, rank);
        }
        if (seen >> axes[i] & 1) {
            return prony_fail(context, PRONY_INVALID_MODEL, "axis %lld is given twice", (long long)axis);
        }
        seen |= UINT32_C(1) << axes[i];
    }
    return PRONY_OK;
}

/* Mode and pads per axis, from attributes before opset 11 and from inputs later. Not known while an input has no
 * data. */
static prony_status pad_read(const prony_context *context, pad_plan *plan, bool *known)
{
    int64_t list[2 * PRONY_MAX_RANK], axes[PRONY_MAX_RANK];
    size_t count, axis_count;
    *plan = (pad_plan){.mode = pad_mode_of(context)};
    bool axes_known;
    PRN_TRY(pad_axes(context, axes, &axis_count, &axes_known));
    if (context->node->opset < 11) {
        count = pad_list(context)->count;
        *known = true;
        if (count > 0 && count <= 2 * PRONY_MAX_RANK) memcpy(list, pad_list(context)->v, count * sizeof *list);
    } else {
        if (!prn_input(context, 1)) return prony_fail(context, PRONY_INVALID_MODEL, "input 'pads' is missing");
        PRN_TRY(prn_input_ints(context, 1, list, 2 * PRONY_MAX_RANK, &count, known));
    }
    *known = *known && axes_known;
    if (count != 2 * axis_count) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "pads has %zu entries for %zu axes", count, axis_count);
    }
    for (size_t i = 0; i < axis_count && *known; i++) {
        plan->begin[axes[i]] = list[i];
        plan->end[axes[i]] = list[axis_count + i];
    }
    return PRONY_OK;
}

/* The padded shape; negative pads crop and may not take more than there is. An empty axis can only be padded with the
 * constant. */
static prony_status pad_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *value = prn_input(context, 2);
    prony_shape shape = in->shape;
    pad_plan plan;
    bool known;
    PRN_TRY(prn_check_tensor(context, 0));
    if (value && (value->dtype != in->dtype || prony_shape_numel(&value->shape) != 1)) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "constant_value is %s, wanted one %s",
                          prn_value_text(value, text), prony_dtype_name(in->dtype));
    }
    PRN_TRY(pad_read(context, &plan, &known));
    if (!known) shape = prn_shape_unknown();
    for (int i = 0; i < shape.rank; i++) {
        int64_t extent;
        if (__builtin_add_overflow(shape.dim[i], plan.begin[i], &extent) ||
            __builtin_add_overflow(extent, plan.end[i], &extent) || extent < 0 ||
            shape.dim[i] + (plan.begin[i] < 0 ? plan.begin[i] : 0) < 0) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "pads %lld and %lld do not fit extent %lld of axis %d",
                              (long long)plan.begin[i], (long long)plan.end[i], (long long)shape.dim[i], i);
        }
        if (plan.mode != PAD_CONSTANT && shape.dim[i] == 0 && extent > 0) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "axis %d is empty and cannot be padded by '%s'", i,
                              ((const pad_params *)context->params)->mode);
        }
        shape.dim[i] = extent;
    }
    if (known && prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

/* Index into an axis of `dim` entries for position `at` relative to its first entry, or -1 for the constant. */
static int64_t pad_index(pad_mode mode, int64_t at, int64_t dim)
{
    if (at >= 0 && at < dim) return at;
    switch (mode) {
    case PAD_EDGE:
        return at < 0 ? 0 : dim - 1;
    case PAD_REFLECT: {
        int64_t period = dim > 1 ? 2 * (dim - 1) : 1;
        int64_t phase = (at % period + period) % period;
        return phase < dim ? phase : period - phase;
    }
    case PAD_WRAP:
        return (at % dim + dim) % dim;
    default:
        return -1;
    }
}

typedef struct pad_work {
    pad_plan plan;
    const prony_value *in, *out;
    int64_t strides[PRONY_MAX_RANK];
    size_t width;  /* 0: less than a byte */
    unsigned bits; /* of an element, then */
    unsigned char constant[sizeof(prony_string)];
} pad_work;

/* The distance that index `at` of an axis adds to an offset in the input; -1: a place outside that is constant. */
static int64_t pad_step(const pad_work *work, int axis, int64_t at)
{
    const int64_t index = pad_index(work->plan.mode, at - work->plan.begin[axis], work->in->shape.dim[axis]);
    return index < 0 ? -1 : index * work->strides[axis];
}

/* The offset in the input at which a plane of rows begins, number `plane` of all; -1 if it is constant. */
static int64_t pad_source_plane(const pad_work *work, int64_t plane)
{
    const prony_shape *out = &work->out->shape;
    int64_t offset = 0;
    for (int axis = out->rank - 3; axis >= 0; axis--) {
        const int64_t step = pad_step(work, axis, plane % out->dim[axis]);
        if (step < 0) return -1;
        offset += step;
        plane /= out->dim[axis];
    }
    return offset;
}

/* The walk over rows of the result: where in the input the current one's is, -1 if all of it is constant. */
typedef struct pad_walk {
    int64_t plane, row, height; /* numbers of the plane and of the row in it; rows of a plane */
    int64_t of_plane, offset;
} pad_walk;

static void pad_find_row(const pad_work *work, pad_walk *walk)
{
    const int axis = work->out->shape.rank - 2;
    walk->offset = walk->of_plane;
    if (axis < 0 || walk->offset < 0) return;
    const int64_t step = pad_step(work, axis, walk->row);
    walk->offset = step < 0 ? -1 : walk->of_plane + step;
}

static pad_walk pad_walk_from(const pad_work *work, int64_t row)
{
    const prony_shape *out = &work->out->shape;
    pad_walk walk = {.height = out->rank > 1 ? out->dim[out->rank - 2] : 1};
    walk.plane = row / walk.height;
    walk.row = row % walk.height;
    walk.of_plane = pad_source_plane(work, walk.plane);
    pad_find_row(work, &walk);
    return walk;
}

static void pad_walk_on(const pad_work *work, pad_walk *walk)
{
    if (++walk->row == walk->height) {
        walk->row = 0;
        walk->of_plane = pad_source_plane(work, ++walk->plane);
    }
    pad_find_row(work, walk);
}

#define LOOK_UP_BYTES ((size_t)1 << 20) /* between two looks at whether to go on */
#define SHORT 8

static void pad_fill(unsigned char *to, const unsigned char *element, size_t width, int64_t count)
{
    for (; width == 4 && count > 0 && count <= SHORT; count--, to += 4) memcpy(to, element, 4); /* without calls */
    if (count <= 0) return;
    memcpy(to, element, width);
    size_t done = width, total = (size_t)count * width;
    while (done < total && !(done > LOOK_UP_BYTES && prn_cancelled())) {
        size_t step = done < total - done ? done : total - done;
        if (step > LOOK_UP_BYTES) step = LOOK_UP_BYTES / width * width;
        memcpy(to + done, to, step);
        done += step;
    }
}

static void pad_outside(const pad_work *work, unsigned char *row, const unsigned char *source, int64_t begin,
                        int64_t end)
{
    int last = work->out->shape.rank - 1;
    if (work->plan.mode == PAD_CONSTANT) {
        pad_fill(row + (size_t)begin * work->width, work->constant, work->width, end - begin);
        return;
    }
    for (int64_t x = begin; x < end && !prn_cancelled_at(x); x++) {
        int64_t index = pad_index(work->plan.mode, x - work->plan.begin[last], work->in->shape.dim[last]);
        memcpy(row + (size_t)x * work->width, source + (size_t)index * work->width, work->width);
    }
}

/* Writes rows [begin, end) of the output: padding before and behind, the copied stretch between. Rows outside of the
 * input are the constant. */
static void pad_rows(void *argument, int64_t begin, int64_t end)
{
    const pad_work *work = argument;
    int last = work->out->shape.rank - 1;
    int64_t extent = work->out->shape.dim[last], shift = work->plan.begin[last];
    int64_t first = shift > 0 ? shift : 0, stop = work->in->shape.dim[last] + shift;
    if (first > extent) first = extent;
    if (stop > extent) stop = extent;
    if (stop < first) stop = first;
    pad_walk walk = pad_walk_from(work, begin);
    for (int64_t r = begin; r < end; r++, pad_walk_on(work, &walk)) {
        unsigned char *row = (unsigned char *)work->out->data + (size_t)(r * extent) * work->width;
        const int64_t offset = walk.offset;
        if (offset < 0) {
            pad_fill(row, work->constant, work->width, extent);
            continue;
        }
        const unsigned char *source = (const unsigned char *)work->in->data + (size_t)offset * work->width;
        pad_outside(work, row, source, 0, first);
        if (stop > first) {
            prn_cancellable_copy(row + (size_t)first * work->width, source + (size_t)(first - shift) * work->width,
                                 (size_t)(stop - first) * work->width);
        }
        pad_outside(work, row, source, stop, extent);
    }
}

static prony_status pad_constant(const prony_context *context, pad_work *work)
{
    float value = ((const pad_params *)context->params)->value;
    const prony_value *given = prn_input(context, 2);
    if (context->node->opset >= 11) {
        if (given && work->width > 0) memcpy(work->constant, given->data, work->width);
        if (given && work->width == 0) work->constant[0] = prn_qint8_get(given->data, work->bits, 0);
        return PRONY_OK;
    }
    double wide = (double)value;
    if (work->in->dtype == PRONY_FLOAT32) {
        memcpy(work->constant, &value, sizeof value);
    } else if (work->in->dtype == PRONY_FLOAT64) {
        memcpy(work->constant, &wide, sizeof wide);
    } else if (value != 0.0f) {
        return prony_fail(context, PRONY_UNSUPPORTED, "a value of %g for %s is not supported", wide,
                          prony_dtype_name(work->in->dtype));
    }
    return PRONY_OK;
}

/* Paddings that come with the data are read in the run. */
static prony_status pad_prepare(const prony_context *context, prn_prepared *out)
{
    pad_plan plan;
    bool known;
    PRN_TRY(pad_read(context, &plan, &known));
    return known ? prn_prepared_keep(context, &plan, sizeof plan, out) : PRONY_OK;
}

static prony_status pad_begin(const prony_context *context, pad_work *work)
{
    bool known;
    *work = (pad_work){.in = context->inputs[0], .out = context->outputs[0]};
    work->width = prn_copy_width(work->in->dtype);
    work->bits = (unsigned)prn_dtype_bits(work->in->dtype);
    if (context->state)
        work->plan = *(const pad_plan *)context->state;
    else
        PRN_TRY(pad_read(context, &work->plan, &known));
    prn_shape_strides(&work->in->shape, work->strides);
    return pad_constant(context, work);
}

#ifdef PRN_HAVE_OPENCL
static prony_status pad_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    static const prn_opencl_pad modes[] = {[PAD_CONSTANT] = PRN_OPENCL_CONSTANT,
                                           [PAD_REFLECT] = PRN_OPENCL_REFLECT,
                                           [PAD_EDGE] = PRN_OPENCL_EDGE,
                                           [PAD_WRAP] = PRN_OPENCL_WRAP};
    pad_work work;
    PRN_TRY(pad_begin(context, &work));
    return prn_opencl_pad_prepare(context, out, modes[work.plan.mode], work.plan.begin, work.constant);
}
#endif

static prony_status pad_native(const prony_context *context)
{
    pad_work work;
    PRN_TRY(pad_begin(context, &work));
    const prony_shape *shape = &work.out->shape;
    if (prony_shape_numel(shape) == 0) return PRONY_OK;
    prn_parallel_items(context->threads, prn_shape_count(shape, 0, shape->rank - 1), (int64_t)prn_value_bytes(work.out),
                       pad_rows, &work);
    return PRONY_OK;
}

static bool pad_has_rows(const prony_context *context)
{
    return context->inputs[0]->shape.rank > 0 && prn_copy_width(context->inputs[0]->dtype) > 0;
}

/* Every output element by itself: the index of its source on each axis, or the constant where one lies outside. */
static prony_status pad_reference(const prony_context *context)
{
    pad_work work;
    PRN_TRY(pad_begin(context, &work));
    const prony_shape *shape = &work.out->shape;
    int64_t count = prony_shape_numel(shape);
    for (int64_t element = 0; element < count && !prn_cancelled_at(element); element++) {
        int64_t rest = element, offset = 0;
        for (int axis = shape->rank - 1; axis >= 0 && offset >= 0; axis--) {
            int64_t at = rest % shape->dim[axis] - work.plan.begin[axis];
            int64_t index = pad_index(work.plan.mode, at, work.in->shape.dim[axis]);
            rest /= shape->dim[axis];
            offset = index < 0 ? -1 : offset + index * work.strides[axis];
        }
        if (work.width == 0) {
            prn_qint8_put(work.out->data, work.bits, element,
                          offset < 0 ? work.constant[0] : prn_qint8_get(work.in->data, work.bits, offset));
            continue;
        }
        const unsigned char *from =
            (const unsigned char *)work.in->data + (offset < 0 ? 0 : offset) * (int64_t)work.width;
        memcpy((unsigned char *)work.out->data + element * (int64_t)work.width, offset < 0 ? work.constant : from,
               work.width);
    }
    return PRONY_OK;
}

// clang-format off
static const prn_kernel pad_kernels[] = {
    PRN_OPENCL_ROW("pad_opencl", PRN_OPENCL_COPIED, prn_opencl_move_supported, pad_opencl_prepare, .host_inputs = 0xe)
    {.name = "pad_native", .backend = "native", .supported = pad_has_rows, .prepare = pad_prepare, .run = pad_native,
     .release = prn_free},
    {.name = "pad_reference", .backend = "reference", .prepare = pad_prepare, .run = pad_reference, .release = prn_free},
    {0}};

const prn_op prn_ops_pad[] = {
    {.name = "Pad", .since_opset = 1, .inputs = {1, 4}, .non_weight_inputs = 0xe,
     .params = pad_attributes, .params_bytes = sizeof(pad_params), .check = pad_check,
     .infer = pad_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = pad_kernels},
    {0}};
// clang-format on
