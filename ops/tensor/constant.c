/* Operators that make values out of shapes and attributes: Shape, Size, Constant, ConstantOfShape, Range, EyeLike.
 * Invariant: Shape and Size never touch their input's data, which need not be there. */
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/lowbit/narrow_types.h"

#include <math.h>
#include <string.h>

/* ---- Shape, Size */

typedef struct shape_params {
    int64_t start, end;
} shape_params;

static const prn_param shape_attributes[] = {
    PRN_INT(shape_params, start, 0), PRN_INT(shape_params, end, PRN_ABSENT), {0}};

static void shape_range(const prony_context *context, int64_t *first, int64_t *count)
{
    const shape_params *params = context->params;
    int64_t rank = context->inputs[0]->shape.rank, end = params->end == PRN_ABSENT ? rank : params->end;
    int64_t begin = params->start;
    if (begin < 0) begin = begin < -rank ? 0 : begin + rank;
    if (end < 0) end = end < -rank ? 0 : end + rank;
    *first = begin > rank ? rank : begin;
    end = end > rank ? rank : end;
    *count = end > *first ? end - *first : 0;
}

static prony_status shape_infer(const prony_context *context)
{
    int64_t first, count;
    shape_range(context, &first, &count);
    prony_shape shape = {1, {count}};
    prn_set_output(context, 0, PRONY_INT64, &shape);
    return PRONY_OK;
}

static prony_status shape_run(const prony_context *context)
{
    int64_t first, count;
    shape_range(context, &first, &count);
    memcpy(context->outputs[0]->data, &context->inputs[0]->shape.dim[first], (size_t)count * sizeof(int64_t));
    return PRONY_OK;
}

/* Nothing of the input is read but its shape. */
static prony_status shape_cost(const prony_context *context, prony_cost *cost)
{
    size_t bytes = prn_value_bytes(context->inputs[0]);
    if (bytes <= cost->bytes_read) cost->bytes_read -= bytes;
    return PRONY_OK;
}

static const prn_kernel shape_kernels[] = {{.name = "shape_reference", .backend = "reference", .run = shape_run}, {0}};

static prony_status size_infer(const prony_context *context)
{
    prony_shape shape = prn_shape_scalar();
    prn_set_output(context, 0, PRONY_INT64, &shape);
    return PRONY_OK;
}

static prony_status size_run(const prony_context *context)
{
    *(int64_t *)context->outputs[0]->data = prony_shape_numel(&context->inputs[0]->shape);
    return PRONY_OK;
}

static const prn_kernel size_kernels[] = {{.name = "size_reference", .backend = "reference", .run = size_run}, {0}};

/* ---- Constant */

typedef struct constant_params {
    const prony_value *value, *sparse_value;
    float value_float;
    int64_t value_int;
    const char *value_string;
    prn_floats value_floats;
    prn_ints value_ints;
} constant_params;

/* Strings may hold a NUL and lists of them have no parameter type, so both are taken from the attribute itself. */
static const prn_param constant_attributes[] = {PRN_TENSOR(constant_params, value),
                                                PRN_TENSOR(constant_params, sparse_value),
                                                PRN_FLOAT(constant_params, value_float, 0),
                                                PRN_INT(constant_params, value_int, 0),
                                                PRN_STRING(constant_params, value_string, NULL),
                                                PRN_FLOATS(constant_params, value_floats),
                                                PRN_INTS(constant_params, value_ints),
                                                {0}};

/* The value that the node stands for, borrowed from its attributes; type undefined if it has none. */
static prony_value constant_value(const prony_context *context)
{
    const constant_params *params = context->params;
    const prn_attr_list *list = context->node->attributes;
    prony_value value = {.shape = prn_shape_scalar()};
    if (params->value) return *params->value;
    if (params->sparse_value) return *params->sparse_value;
    for (size_t i = 0; i < list->count && value.dtype == PRONY_UNDEFINED; i++) {
        const prn_attr *attr = &list->items[i];
        const struct {
            const char *name;
            prn_attr_type type;
            prony_dtype dtype;
            const void *data;
            bool many;
        } forms[] = {
            {"value_float", PRN_ATTR_FLOAT, PRONY_FLOAT32, &params->value_float, false},
            {"value_int", PRN_ATTR_INT, PRONY_INT64, &params->value_int, false},
            {"value_string", PRN_ATTR_STRING, PRONY_STRING, &attr->s, false},
            {"value_floats", PRN_ATTR_FLOATS, PRONY_FLOAT32, params->value_floats.v, true},
            {"value_ints", PRN_ATTR_INTS, PRONY_INT64, params->value_ints.v, true},
            {"value_strings", PRN_ATTR_STRINGS, PRONY_STRING, attr->strings, true},
        };
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            if (strcmp(attr->name, forms[k].name) != 0 || attr->type != forms[k].type) continue;
            value.dtype = forms[k].dtype;
            value.data = (void *)(uintptr_t)forms[k].data;
            if (forms[k].many) value.shape = (prony_shape){1, {(int64_t)attr->count}};
        }
    }
    return value;
}

static prony_status constant_infer(const prony_context *context)
{
    prony_value value = constant_value(context);
    if (value.dtype == PRONY_UNDEFINED) return prony_fail(context, PRONY_INVALID_MODEL, "it has no value");
    prn_set_output(context, 0, value.dtype, &value.shape);
    return PRONY_OK;
}

static prony_status constant_run(const prony_context *context)
{
    prony_value value = constant_value(context);
    prn_copy_bytes(context->threads, value.data, context->outputs[0]->data, prn_value_bytes(&value));
    return PRONY_OK;
}

static const prn_kernel constant_kernels[] = {
    {.name = "constant_reference", .backend = "reference", .run = constant_run}, {0}};

/* ---- ConstantOfShape */

typedef struct fill_params {
    const prony_value *value;
} fill_params;

static const prn_param fill_attributes[] = {PRN_TENSOR(fill_params, value), {0}};

static prony_status fill_infer(const prony_context *context)
{
    const prony_value *value = ((const fill_params *)context->params)->value;
    prony_shape shape = {0};
    size_t count;
    bool known;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, 0, 1, 1));
    if (value && (prony_shape_numel(&value->shape) != 1 || !prn_dtype_is_castable(value->dtype))) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_INVALID_MODEL, "value is %s, wanted one number", prn_value_text(value, text));
    }
    PRN_TRY(prn_input_ints(context, 0, shape.dim, PRONY_MAX_RANK, &count, &known));
    shape.rank = known ? (int32_t)count : -1;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] < 0)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "input[%d] is %lld, which is not an extent", i,
                              (long long)shape.dim[i]);
    if (known && prony_shape_numel(&shape) < 0) {
        char text[PRN_SHAPE_TEXT_BYTES];
        return prony_fail(context, PRONY_OUT_OF_RANGE, "a shape of %s is too large", prn_shape_text(&shape, text));
    }
    prn_set_output(context, 0, value ? value->dtype : PRONY_FLOAT32, &shape);
    return PRONY_OK;
}

static prony_status fill_run(const prony_context *context)
{
    const prony_value *value = ((const fill_params *)context->params)->value;
    prony_value *out = context->outputs[0];
    static const float zero = 0.0f;
    prn_copy copy = {0};
    prn_copy_axis(&copy, prony_shape_numel(&out->shape), 0, 1);
    if (prn_copy_width(out->dtype) > 0) {
        prn_copy_native(context->threads, prn_copy_width(out->dtype), &copy, value ? value->data : &zero, out->data);
    } else {
        prn_cancellable_clear(out->data, prn_value_bytes(out)); /* the bits behind the last element */
        prn_copy_packed(out->dtype, &copy, value->data, out->data);
    }
    return PRONY_OK;
}

static const prn_kernel fill_kernels[] = {
    {.name = "constant_of_shape_reference", .backend = "reference", .run = fill_run}, {0}};

/* ---- Range */

#define RANGE_TYPES (PRN_TYPES_FLOAT | PRN_TYPE(PRONY_INT16) | PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64))

/* Counts the numbers from start to limit. Whole numbers are counted in unsigned 64 bits, so that no difference
 * overflows. */
static prony_status range_count(const prony_context *context, int64_t *count)
{
    prony_dtype dtype = context->inputs[0]->dtype;
    const void *start = context->inputs[0]->data, *limit = context->inputs[1]->data, *delta = context->inputs[2]->data;
    *count = 0;
    if (prn_dtype_is_float(dtype)) {
        double step = prn_get_f64(delta, dtype, 0), from = prn_get_f64(start, dtype, 0),
               to = prn_get_f64(limit, dtype, 0);
        double steps = ceil((to - from) / step);
        if (step == 0 || isnan(steps) || steps >= 0x1p62)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "delta %g does not lead from %g to %g", step, from, to);
        *count = steps > 0 ? (int64_t)steps : 0;
        return PRONY_OK;
    }
    int64_t first = prn_get_i64(start, dtype, 0), last = prn_get_i64(limit, dtype, 0),
            step = prn_get_i64(delta, dtype, 0);
    if (step == 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "delta is 0");
    if (step > 0 ? first >= last : first <= last) return PRONY_OK;
    uint64_t span = step > 0 ? (uint64_t)last - (uint64_t)first : (uint64_t)first - (uint64_t)last;
    uint64_t steps = (span - 1) / (step > 0 ? (uint64_t)step : UINT64_C(0) - (uint64_t)step) + 1;
    if (steps > INT64_MAX)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "from %lld to %lld in steps of %lld is too long",
                          (long long)first, (long long)last, (long long)step);
    *count = (int64_t)steps;
    return PRONY_OK;
}

static prony_status range_infer(const prony_context *context)
{
    prony_shape shape = prn_shape_unknown();
    bool known = true;
    PRN_TRY(prn_check_type(context, 0, RANGE_TYPES));
    for (size_t i = 0; i < 3; i++) {
        const prony_value *in = context->inputs[i];
        PRN_TRY(prn_check_type(context, i, PRN_TYPE(context->inputs[0]->dtype)));
        if (prony_shape_numel(&in->shape) != 1) {
            char text[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted a scalar", i,
                              prn_value_text(in, text));
        }
        known = known && in->data;
    }
    if (known) {
        shape.rank = 1;
        PRN_TRY(range_count(context, &shape.dim[0]));
    }
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static prony_status range_run(const prony_context *context)
{
    prony_value *out = context->outputs[0];
    prony_dtype dtype = out->dtype;
    const void *start = context->inputs[0]->data, *delta = context->inputs[2]->data;
    for (int64_t i = 0; i < out->shape.dim[0] && !prn_cancelled_at(i); i++) {
        if (dtype == PRONY_FLOAT32) {
            ((float *)out->data)[i] = *(const float *)start + (float)i * *(const float *)delta;
        } else if (dtype == PRONY_FLOAT64) {
            ((double *)out->data)[i] = *(const double *)start + (double)i * *(const double *)delta;
        } else if (prn_dtype_is_float(dtype)) {
            const float first = (float)prn_get_f64(start, dtype, 0), step = (float)prn_get_f64(delta, dtype, 0);
            prn_put_f64(out->data, dtype, i, (double)(first + (float)i * step));
        } else {
            uint64_t step = (uint64_t)prn_get_i64(delta, dtype, 0);
            prn_put_i64(out->data, dtype, i, (int64_t)((uint64_t)prn_get_i64(start, dtype, 0) + (uint64_t)i * step));
        }
    }
    return PRONY_OK;
}

static prony_status range_cost(const prony_context *context, prony_cost *cost)
{
    int64_t count = prony_shape_numel(&context->outputs[0]->shape);
    return prn_cost_elementwise(context, cost, count > 0 ? (uint64_t)count : 0, 2, 0);
}

static const prn_kernel range_kernels[] = {
    {.name = "range_reference", .backend = "reference", .types = RANGE_TYPES, .run = range_run}, {0}};

/* ---- EyeLike */

typedef struct eye_params {
    int64_t dtype, k;
} eye_params;

static const prn_param eye_attributes[] = {PRN_INT(eye_params, dtype, PRN_ABSENT), PRN_INT(eye_params, k, 0), {0}};

static prony_status eye_infer(const prony_context *context)
{
    int64_t dtype = ((const eye_params *)context->params)->dtype;
    if (dtype == PRN_ABSENT) dtype = context->inputs[0]->dtype;
    PRN_TRY(prn_check_rank(context, 0, 2, 2));
    if (dtype <= 0 || dtype >= PRONY_DTYPE_COUNT || !prn_dtype_is_number((prony_dtype)dtype)) {
        return prony_fail(context, PRONY_UNSUPPORTED, "element type %lld is not supported", (long long)dtype);
    }
    prn_set_output(context, 0, (prony_dtype)dtype, &context->inputs[0]->shape);
    return PRONY_OK;
}

static prony_status eye_run(const prony_context *context)
{
    prony_value *out = context->outputs[0];
    int64_t rows = out->shape.dim[0], columns = out->shape.dim[1], k = ((const eye_params *)context->params)->k;
    prn_cancellable_clear(out->data, prn_value_bytes(out));
    if (k <= -rows || k >= columns) return PRONY_OK;
    for (int64_t row = k < 0 ? -k : 0; row < rows && row + k < columns; row++) {
        if ((row & 255) == 255 && prn_cancelled()) break;
        prn_put_f64(out->data, out->dtype, row * columns + row + k, 1.0);
    }
    return PRONY_OK;
}

static const prn_kernel eye_kernels[] = {{.name = "eye_like_reference", .backend = "reference", .run = eye_run}, {0}};

// clang-format off
const prn_op prn_ops_constant[] = {
    {.name = "Shape", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_SHAPE_ONLY,
     .params = shape_attributes, .params_bytes = sizeof(shape_params),
     .infer = shape_infer, .cost = shape_cost, .cost_text = "0 (reads no data)", .kernels = shape_kernels},
    {.name = "Size", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_SHAPE_ONLY,
     .infer = size_infer, .cost = shape_cost, .cost_text = "0 (reads no data)", .kernels = size_kernels},
    {.name = "Constant", .since_opset = 1,
     .params = constant_attributes, .params_bytes = sizeof(constant_params),
     .infer = constant_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = constant_kernels},
    {.name = "ConstantOfShape", .since_opset = 9, .inputs = {1, 1},
     .params = fill_attributes, .params_bytes = sizeof(fill_params),
     .infer = fill_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = fill_kernels},
    {.name = "Range", .since_opset = 11, .inputs = {3, 3}, .non_weight_inputs = 7,
     .infer = range_infer, .cost = range_cost, .cost_text = "2n", .kernels = range_kernels},
    {.name = "EyeLike", .since_opset = 9, .inputs = {1, 1}, .flags = PRN_OP_SHAPE_ONLY,
     .params = eye_attributes, .params_bytes = sizeof(eye_params),
     .infer = eye_infer, .cost = shape_cost, .cost_text = "0 (reads no data)", .kernels = eye_kernels},
    {0}};
// clang-format on
