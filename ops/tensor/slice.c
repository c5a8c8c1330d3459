/* Slice: a strided window of a tensor. One strided copy from the window's first element.
 * Invariant: after infer, every window lies inside the input. */
#include "base/memory/alloc.h"
#include "base/integers.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

typedef struct slice_params {
    prn_ints starts, ends, axes;
} slice_params;

static const prn_param slice_attributes[] = {
    PRN_INTS(slice_params, starts), PRN_INTS(slice_params, ends), PRN_INTS(slice_params, axes), {0}};

/* Per axis of the input: first index, step, and number of indices. */
typedef struct window {
    int64_t start[PRONY_MAX_RANK], step[PRONY_MAX_RANK], count[PRONY_MAX_RANK];
} window;

typedef struct bounds {
    int64_t start[PRONY_MAX_RANK], end[PRONY_MAX_RANK], axis[PRONY_MAX_RANK], step[PRONY_MAX_RANK];
    size_t count;
} bounds;

static prony_status bounds_from_attributes(const prony_context *context, bounds *b)
{
    const slice_params *params = context->params;
    b->count = params->starts.count;
    if (!params->starts.present || !params->ends.present) {
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'starts' or 'ends' is missing");
    }
    if (params->ends.count != b->count || b->count > PRONY_MAX_RANK ||
        (params->axes.present && params->axes.count != b->count)) {
        return prony_fail(context, PRONY_INVALID_MODEL, "starts, ends and axes differ in length");
    }
    for (size_t i = 0; i < b->count; i++) {
        b->start[i] = params->starts.v[i];
        b->end[i] = params->ends.v[i];
        b->axis[i] = params->axes.present ? params->axes.v[i] : (int64_t)i;
        b->step[i] = 1;
    }
    return PRONY_OK;
}

static prony_status bounds_from_inputs(const prony_context *context, bounds *b, bool *known)
{
    int64_t *lists[] = {NULL, b->start, b->end, b->axis, b->step};
    *known = true;
    for (size_t input = 1; input <= 4; input++) {
        size_t count;
        bool here;
        if (!prn_input(context, input)) continue;
        PRN_TRY(prn_input_ints(context, input, lists[input], PRONY_MAX_RANK, &count, &here));
        if (input == 1) b->count = count;
        if (count != b->count) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu has %zu entries, starts has %zu", input, count,
                              b->count);
        }
        *known = *known && here;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (!prn_input(context, 3)) b->axis[i] = (int64_t)i;
        if (!prn_input(context, 4)) b->step[i] = 1;
    }
    return PRONY_OK;
}

static int64_t slice_clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : (x > hi ? hi : x);
}

/* One axis: negative positions count from the end, then both are clamped to where the step can reach. */
static void cut_axis(window *w, int axis, int64_t dim, int64_t start, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    start = dim == 0 ? low : slice_clamp(start < 0 ? start + dim : start, 0, high);
    end = slice_clamp(end < 0 ? end + dim : end, low, high);
    int64_t span = step > 0 ? end - start : start - end;
    uint64_t stride = step > 0 ? (uint64_t)step : UINT64_C(0) - (uint64_t)step;
    w->start[axis] = start;
    w->step[axis] = step;
    w->count[axis] = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / stride) + 1;
}

/* Start, extent and step of each axis; axes that are not named stay whole. Not known while an input has no data. */
static prony_status slice_read_window(const prony_context *context, window *w, bool *known)
{
    const prony_shape *shape = &context->inputs[0]->shape;
    bounds b = {0};
    uint32_t seen = 0;
    *known = true;
    if (context->node->opset < 10) {
        PRN_TRY(bounds_from_attributes(context, &b));
    } else {
        if (!prn_input(context, 1) || !prn_input(context, 2)) {
            return prony_fail(context, PRONY_INVALID_MODEL, "input 'starts' or 'ends' is missing");
        }
        PRN_TRY(bounds_from_inputs(context, &b, known));
    }
    for (int i = 0; i < shape->rank; i++) cut_axis(w, i, shape->dim[i], 0, shape->dim[i], 1);
    for (size_t i = 0; i < b.count && *known; i++) {
        int64_t axis = b.axis[i];
        if (!prn_axis_normalize(&axis, shape->rank)) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)b.axis[i],
                              shape->rank);
        }
        if (b.step[i] == 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "steps[%zu] is 0", i);
        if (seen >> axis & 1) {
            return prony_fail(context, PRONY_INVALID_MODEL, "axis %lld is given twice", (long long)axis);
        }
        seen |= UINT32_C(1) << axis;
        cut_axis(w, (int)axis, shape->dim[axis], b.start[i], b.end[i], b.step[i]);
    }
    return PRONY_OK;
}

static prony_status slice_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape shape = {.rank = in->shape.rank};
    window w;
    bool known;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(slice_read_window(context, &w, &known));
    if (known) {
        memcpy(shape.dim, w.count, (size_t)shape.rank * sizeof *shape.dim);
    } else {
        shape = prn_shape_unknown();
    }
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

/* The window as a copy, from its first element in the input on. */
typedef struct slice_plan {
    prn_copy copy;
    int64_t first;
} slice_plan;

/* True if the window, in a blocked layout, is one of whole blocks, the last of which may be filled up. */
static bool takes_blocks(const window *w, int64_t channels, int64_t block)
{
    return w->step[1] == 1 && w->start[1] % block == 0 &&
           (w->count[1] % block == 0 || w->start[1] + w->count[1] == channels);
}

/* The window of the tensor as it lies. */
static window stored_window(const window *w, int rank, prn_layout layout)
{
    const int64_t block = prn_layout_block(layout);
    window stored = {0};
    for (int i = 0; i < rank; i++) {
        const int to = prn_lowbit_axis(rank, layout, i);
        const bool blocks = block && i == 1;
        stored.start[to] = blocks ? w->start[i] / block : w->start[i];
        stored.count[to] = blocks ? prn_ceil_div(w->count[i], block) : w->count[i];
        stored.step[to] = w->step[i];
    }
    if (!block) return stored;
    stored.count[rank] = block;
    stored.step[rank] = 1;
    return stored;
}

static prony_status slice_read(const prony_context *context, slice_plan *plan, bool *known)
{
    const prn_layout layout = (prn_layout)context->inputs[0]->layout;
    const prony_shape in = prn_lowbit_shape(&context->inputs[0]->shape, layout),
                      out = prn_lowbit_shape(&context->outputs[0]->shape, layout);
    int64_t from[PRONY_MAX_RANK], to[PRONY_MAX_RANK];
    window w;
    plan->copy.rank = 0;
    plan->first = 0;
    PRN_TRY(slice_read_window(context, &w, known));
    if (!*known || prony_shape_numel(&out) == 0) return PRONY_OK;
    if (layout != PRN_PLAIN) w = stored_window(&w, context->inputs[0]->shape.rank, layout);
    prn_shape_strides(&in, from);
    prn_shape_strides(&out, to);
    for (int i = 0; i < in.rank; i++) {
        /* The step is of no use to an axis with one index, and may be too large to multiply. */
        int64_t step = w.count[i] > 1 ? w.step[i] * from[i] : to[i];
        plan->first += w.start[i] * from[i];
        prn_copy_axis(&plan->copy, w.count[i], step, to[i]);
    }
    return PRONY_OK;
}

static void slice_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    const prony_value *value = context->inputs[0];
    const prn_layout layout = (prn_layout)value->layout;
    const int64_t block = prn_layout_block(layout);
    prony_context quiet = *context;
    quiet.error = NULL;
    window w;
    bool known;
    if (!prn_layout_joins(value->shape.rank, layout) || slice_read_window(&quiet, &w, &known) != PRONY_OK || !known)
        return;
    if (!block || takes_blocks(&w, value->shape.dim[1], block)) in[0] = out[0] = layout;
}

/* Bounds that come with the data are read in the run. */
static prony_status slice_prepare(const prony_context *context, prn_prepared *out)
{
    slice_plan plan;
    bool known;
    PRN_TRY(slice_read(context, &plan, &known));
    return known ? prn_prepared_keep(context, &plan, sizeof plan, out) : PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static prony_status slice_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    slice_plan plan;
    bool known;
    PRN_TRY(slice_read(context, &plan, &known));
    if (!known) return prony_fail(context, PRONY_INTERNAL, "the bounds of a constant window are unknown");
    const prn_opencl_move move = {.from = plan.first, .copy = plan.copy};
    return prn_opencl_copy_prepare(context, out, &move, 1, NULL);
}
#endif

static prony_status slice_run(const prony_context *context, prn_copy_fn execute)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = context->outputs[0];
    const slice_plan *plan = context->state;
    size_t width = prn_copy_width(in->dtype);
    slice_plan now;
    bool known;
    if (!plan) {
        PRN_TRY(slice_read(context, &now, &known));
        plan = &now;
    }
    if (prony_shape_numel(&out->shape) == 0) return PRONY_OK;
    execute(context->threads, width, &plan->copy, (const char *)in->data + plan->first * (int64_t)width, out->data);
    return PRONY_OK;
}

/* One block of the input: every axis of the window has the stride of the result. */
static bool slice_split_alias(const prony_context *context, size_t output, uint64_t *offset_bytes)
{
    const prony_value *in = context->inputs[0];
    slice_plan plan;
    bool known;
    (void)output;
    prony_context quiet = *context;
    quiet.error = NULL;
    *offset_bytes = 0;
    if (slice_read(&quiet, &plan, &known) != PRONY_OK || !known) return false;
    *offset_bytes = (uint64_t)plan.first * prn_copy_width(in->dtype);
    for (int i = 0; i < plan.copy.rank; i++) {
        if (plan.copy.dim[i] > 1 && plan.copy.from[i] != plan.copy.to[i]) return false;
    }
    return true;
}

static prony_status slice_native(const prony_context *context)
{
    return slice_run(context, prn_copy_native);
}

static prony_status slice_reference(const prony_context *context)
{
    return slice_run(context, prn_copy_reference);
}

/* The window's bounds do not count as data. The bytes read from the tensor equal the bytes written. */
static prony_status slice_cost(const prony_context *context, prony_cost *cost)
{
    const prony_value *in = context->inputs[0], *out = prn_output(context, 0);
    size_t whole = prn_value_bytes(in), part = out ? prn_value_bytes(out) : SIZE_MAX;
    if (part < whole && whole != SIZE_MAX && cost->bytes_read >= whole) cost->bytes_read -= whole - part;
    return PRONY_OK;
}

// clang-format off
static const prn_kernel slice_kernels[] = {
    PRN_OPENCL_ROW("slice_opencl", PRN_OPENCL_COPIED, prn_opencl_move_supported, slice_opencl_prepare, .host_inputs = 0x1e)
    {.name = "slice_native", .backend = "native", .layouts = slice_layouts, .prepare = slice_prepare, .run = slice_native, .release = prn_free,
     .split_alias = slice_split_alias},
    {.name = "slice_reference", .backend = "reference", .prepare = slice_prepare, .run = slice_reference, .release = prn_free},
    {0}};

const prn_op prn_ops_slice[] = {
    {.name = "Slice", .since_opset = 1, .inputs = {1, 5}, .non_weight_inputs = 0x1e,
     .params = slice_attributes, .params_bytes = sizeof(slice_params),
     .infer = slice_infer, .cost = slice_cost, .cost_text = "0", .kernels = slice_kernels},
    {0}};
// clang-format on
