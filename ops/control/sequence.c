/* Sequences of tensors: made, taken apart, joined and split. Items are values of the dynamic region that any number of
 * sequences hold together, so that insertion copies references and no elements, and at the end not even these.
 *
 *   SplitToSequence   tensor -> [part, part, ...]       along an axis
 *   ConcatFromSequence  [part, part, ...] -> tensor     along an axis, or along a new one
 */
#include "base/threads/cancel.h"
#include "ops/control/sequence.h"

#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"

/* ---- what they share (also optional.c, sequence_map.c) ---- */

prony_status prn_check_sequence(const prony_context *context, size_t input)
{
    const prony_value *in = prn_input(context, input);
    if (!in || in->kind == PRONY_SEQUENCE || prn_type_open(in)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is %s, wanted a sequence", input,
                      in->kind == PRONY_TENSOR ? "a tensor" : "an optional");
}

static prony_status check_item(const prony_context *context, size_t input, prony_dtype dtype)
{
    const prony_value *in = prn_input(context, input);
    if (!in || prn_type_open(in)) return PRONY_OK;
    if (in->kind != PRONY_TENSOR) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is not a tensor", input);
    }
    if (dtype == PRONY_UNDEFINED || in->dtype == dtype) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu is of %s, the sequence of %s", input,
                      prony_dtype_name(in->dtype), prony_dtype_name(dtype));
}

void prn_set_sequence(const prony_context *context, size_t k, prony_dtype dtype)
{
    prony_value type = {.kind = PRONY_SEQUENCE, .dtype = dtype, .shape = prn_shape_unknown()};
    prn_set_output_type(context, k, &type);
}

static void set_open(const prony_context *context, prony_dtype dtype)
{
    prony_value type = {.kind = PRONY_TENSOR, .dtype = dtype, .shape = prn_shape_unknown()};
    prn_set_output_type(context, 0, &type);
}

/* A place in a sequence of `count`; -1 is the last, `past_end` allows the place behind it. */
static prony_status position_of(const prony_context *context, size_t input, size_t count, bool past_end, size_t *out)
{
    int64_t end = (int64_t)count + past_end, position;
    PRN_TRY(prn_scalar_int(context, input, past_end ? (int64_t)count : -1, &position));
    int64_t place = position < 0 ? position + (int64_t)count : position;
    if (place < 0 || place >= end) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "position %lld in a sequence of %zu", (long long)position,
                          count);
    }
    *out = (size_t)place;
    return PRONY_OK;
}

/* ---- SequenceEmpty, SequenceConstruct ---- */

typedef struct empty_params {
    int64_t dtype;
} empty_params;

static const prn_param empty_attributes[] = {PRN_INT(empty_params, dtype, PRONY_FLOAT32), {0}};

static prony_status empty_infer(const prony_context *context)
{
    int64_t dtype = ((const empty_params *)context->params)->dtype;
    if (dtype <= PRONY_UNDEFINED || dtype >= PRONY_DTYPE_COUNT) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "dtype is %lld", (long long)dtype);
    }
    prn_set_sequence(context, 0, (prony_dtype)dtype);
    return PRONY_OK;
}

static prony_status empty_run(const prony_context *context)
{
    prony_value value = {.kind = PRONY_SEQUENCE, .dtype = context->outputs[0]->dtype, .shape = prn_shape_unknown()};
    return context->services->output_set(context, 0, &value);
}

static prony_status construct_infer(const prony_context *context)
{
    prony_dtype dtype = PRONY_UNDEFINED;
    for (size_t i = 0; i < context->input_count; i++) {
        PRN_TRY(check_item(context, i, dtype));
        if (context->inputs[i] && dtype == PRONY_UNDEFINED) dtype = context->inputs[i]->dtype;
    }
    prn_set_sequence(context, 0, dtype);
    return PRONY_OK;
}

static prony_status construct_run(const prony_context *context)
{
    prony_value value = {.kind = PRONY_SEQUENCE, .dtype = context->outputs[0]->dtype, .shape = prn_shape_unknown()};
    PRN_TRY(context->services->items_take(context, &value, context->input_count));
    for (size_t i = 0; i < context->input_count; i++) {
        if (!context->inputs[i]) return prony_fail(context, PRONY_INVALID_MODEL, "input %zu is missing", i);
        PRN_TRY(context->services->value_keep(context, context->inputs[i], &value.items[i]));
    }
    return context->services->output_set(context, 0, &value);
}

/* ---- SequenceInsert, SequenceErase, SequenceAt, SequenceLength ---- */

static prony_status insert_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    PRN_TRY(prn_check_sequence(context, 0));
    PRN_TRY(check_item(context, 1, in->kind == PRONY_SEQUENCE ? in->dtype : PRONY_UNDEFINED));
    prn_set_sequence(context, 0, in->dtype != PRONY_UNDEFINED ? in->dtype : context->inputs[1]->dtype);
    return PRONY_OK;
}

/* The items of input 0 with `removed` of them left out at `place` and room for `added`. */
static prony_status sequence_copy_items(const prony_context *context, size_t place, size_t added, size_t removed,
                                        prony_value *out)
{
    const prony_value *in = context->inputs[0];
    *out = (prony_value){.kind = PRONY_SEQUENCE, .dtype = context->outputs[0]->dtype, .shape = prn_shape_unknown()};
    PRN_TRY(context->services->items_take(context, out, in->count + added - removed));
    for (size_t i = 0; i < in->count && !prn_cancelled_at((int64_t)i); i++) {
        if (i >= place && i < place + removed) continue;
        prony_value *to = &out->items[i < place ? i : i + added - removed];
        PRN_TRY(context->services->value_keep(context, &in->items[i], to));
    }
    return PRONY_OK;
}

static prony_status insert_run(const prony_context *context)
{
    prony_value value;
    size_t place = 0;
    PRN_TRY(position_of(context, 2, context->inputs[0]->count, true, &place));
    if (place == context->inputs[0]->count) {
        PRN_TRY(context->services->items_append(context, context->inputs[0], &value));
        value.dtype = context->outputs[0]->dtype;
    } else {
        PRN_TRY(sequence_copy_items(context, place, 1, 0, &value));
    }
    PRN_TRY(context->services->value_keep(context, context->inputs[1], &value.items[place]));
    return context->services->output_set(context, 0, &value);
}

static prony_status erase_infer(const prony_context *context)
{
    PRN_TRY(prn_check_sequence(context, 0));
    prn_set_sequence(context, 0, context->inputs[0]->dtype);
    return PRONY_OK;
}

static prony_status erase_run(const prony_context *context)
{
    prony_value value;
    size_t place = 0;
    PRN_TRY(position_of(context, 1, context->inputs[0]->count, false, &place));
    if (place + 1 == context->inputs[0]->count && context->services->items_shorten(context, context->inputs[0], &value))
        return context->services->output_set(context, 0, &value);
    PRN_TRY(sequence_copy_items(context, place, 0, 1, &value));
    return context->services->output_set(context, 0, &value);
}

static prony_status at_infer(const prony_context *context)
{
    PRN_TRY(prn_check_sequence(context, 0));
    set_open(context, context->inputs[0]->dtype);
    return PRONY_OK;
}

static prony_status at_run(const prony_context *context)
{
    size_t place = 0;
    PRN_TRY(position_of(context, 1, context->inputs[0]->count, false, &place));
    return prn_output_copy(context, 0, &context->inputs[0]->items[place]);
}

static prony_status length_infer(const prony_context *context)
{
    prony_shape scalar = prn_shape_scalar();
    PRN_TRY(prn_check_sequence(context, 0));
    prn_set_output(context, 0, PRONY_INT64, &scalar);
    return PRONY_OK;
}

static prony_status length_run(const prony_context *context)
{
    *(int64_t *)context->outputs[0]->data = (int64_t)context->inputs[0]->count;
    return PRONY_OK;
}

/* ---- SplitToSequence ---- */

typedef struct split_params {
    int64_t axis, keepdims;
} split_params;

static const prn_param split_attributes[] = {PRN_INT(split_params, axis, 0), PRN_INT(split_params, keepdims, 1), {0}};

static prony_status sequence_split_infer(const prony_context *context)
{
    PRN_TRY(check_item(context, 0, PRONY_UNDEFINED));
    prn_set_sequence(context, 0, context->inputs[0]->dtype);
    return PRONY_OK;
}

/* Extents of the parts: `size` each (the last may be less), or as listed. */
typedef struct parts {
    const prony_value *list;
    int64_t count, size, extent;
} parts;

static int64_t part_extent(const parts *p, int64_t i)
{
    if (p->list) return prn_get_i64(p->list->data, p->list->dtype, i);
    int64_t left = p->extent - i * p->size;
    return left < p->size ? left : p->size;
}

/* The slices of SplitToSequence: a list that must sum to the axis, or equal ones of which the last may be smaller. */
static prony_status sequence_make_parts(const prony_context *context, int64_t extent, parts *p)
{
    const prony_value *split = prn_input(context, 1);
    int64_t sum = 0;
    *p = (parts){.size = 1, .extent = extent};
    PRN_TRY(prn_check_type(context, 1, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64)));
    PRN_TRY(prn_check_rank(context, 1, 0, 1));
    if (split && split->shape.rank == 1) {
        p->list = split;
        p->count = split->shape.dim[0];
        for (int64_t i = 0; i < p->count; i++) {
            int64_t part = part_extent(p, i);
            if (part < 0 || __builtin_add_overflow(sum, part, &sum)) {
                return prony_fail(context, PRONY_OUT_OF_RANGE, "split[%lld] is %lld", (long long)i, (long long)part);
            }
        }
        if (sum == extent) return PRONY_OK;
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the parts sum to %lld, the axis has %lld", (long long)sum,
                          (long long)extent);
    }
    PRN_TRY(prn_scalar_int(context, 1, 1, &p->size));
    if (p->size < 1) return prony_fail(context, PRONY_OUT_OF_RANGE, "parts of %lld", (long long)p->size);
    p->count = extent / p->size + (extent % p->size != 0);
    return PRONY_OK;
}

/* Takes one item per slice from the dynamic region and copies the slice into it. */
static prony_status sequence_split_run(const prony_context *context)
{
    const split_params *params = context->params;
    const prony_value *in = context->inputs[0];
    int64_t axis = params->axis, begin = 0;
    parts p;
    PRN_TRY(prn_check_movable(context, 0));
    if (!prn_axis_normalize(&axis, in->shape.rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld for rank %d", (long long)params->axis,
                          in->shape.rank);
    }
    PRN_TRY(sequence_make_parts(context, in->shape.dim[axis], &p));
    /* With a split, keepdims is said to mean nothing; but exporters of unbind write a split of the scalar 1, and
     * runtimes drop the axis there too. */
    bool drop = !params->keepdims && !p.list && p.size == 1;
    prony_value value = {.kind = PRONY_SEQUENCE, .dtype = in->dtype, .shape = prn_shape_unknown()};
    PRN_TRY(context->services->items_take(context, &value, (size_t)p.count));
    int64_t outer = prn_shape_count(&in->shape, 0, (int)axis);
    int64_t inner = prn_shape_count(&in->shape, (int)axis + 1, in->shape.rank);
    size_t width = prn_copy_width(in->dtype);
    for (int64_t i = 0; i < p.count && !prn_cancelled_at(i); i++) {
        prony_value *item = &value.items[i];
        int64_t extent = part_extent(&p, i);
        *item = prn_type_of(in);
        item->shape.dim[axis] = extent;
        if (drop) prn_shape_remove(&item->shape, axis);
        PRN_TRY(context->services->value_take(context, item));
        prn_copy copy = {0};
        prn_copy_axis(&copy, outer, in->shape.dim[axis] * inner, extent * inner);
        prn_copy_axis(&copy, extent * inner, 1, 1);
        const char *from = (const char *)in->data + (size_t)(begin * inner) * width;
        if (prn_value_bytes(item)) prn_copy_native(context->threads, width, &copy, from, item->data);
        begin += extent;
    }
    return context->services->output_set(context, 0, &value);
}

/* ---- ConcatFromSequence ---- */

typedef struct concat_params {
    int64_t axis, new_axis;
} concat_params;

static const prn_param concat_attributes[] = {
    PRN_INT_REQUIRED(concat_params, axis), PRN_INT(concat_params, new_axis, 0), {0}};

static prony_status sequence_concat_check(const prony_context *context)
{
    int64_t new_axis = ((const concat_params *)context->params)->new_axis;
    if (new_axis == 0 || new_axis == 1) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "new_axis is %lld", (long long)new_axis);
}

/* The joined shape of a sequence's items, which agree but for the axis, or entirely with new_axis. */
static prony_status sequence_joined_shape(const prony_context *context, const prony_value *in, int64_t *axis,
                                          prony_shape *shape)
{
    const concat_params *params = context->params;
    *axis = params->axis;
    if (in->count == 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the sequence is empty");
    *shape = in->items[0].shape;
    if (!prn_axis_normalize(axis, shape->rank + (int)params->new_axis)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld for items of rank %d", (long long)params->axis,
                          shape->rank);
    }
    for (size_t i = 1; i < in->count; i++) {
        prony_shape other = in->items[i].shape;
        int64_t extent = 0;
        if (!params->new_axis && other.rank == shape->rank) {
            extent = other.dim[*axis];
            other.dim[*axis] = shape->dim[*axis];
        }
        if (!prn_shape_equal(shape, &other)) {
            char text[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "item %zu of shape %s does not fit to the first", i,
                              prn_shape_text(&in->items[i].shape, text));
        }
        if (!params->new_axis && __builtin_add_overflow(shape->dim[*axis], extent, &shape->dim[*axis])) {
            return prony_fail(context, PRONY_LIMIT, "the result is too large");
        }
    }
    if (!params->new_axis || prn_shape_insert(shape, *axis, (int64_t)in->count)) return PRONY_OK;
    return prony_fail(context, PRONY_LIMIT, "the result has too many axes");
}

static prony_status sequence_concat_infer(const prony_context *context)
{
    PRN_TRY(prn_check_sequence(context, 0));
    set_open(context, context->inputs[0]->dtype);
    return PRONY_OK;
}

/* Copies item after item to its place on the axis; shape and type are known only now. */
static prony_status sequence_concat_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = context->outputs[0];
    int64_t axis, begin = 0;
    PRN_TRY(sequence_joined_shape(context, in, &axis, &out->shape));
    out->dtype = in->items[0].dtype;
    size_t width = prn_copy_width(out->dtype);
    if (!width) return prony_fail(context, PRONY_UNSUPPORTED, "items of %s", prony_dtype_name(out->dtype));
    PRN_TRY(context->services->output_alloc(context, 0));
    int64_t outer = prn_shape_count(&out->shape, 0, (int)axis);
    int64_t inner = prn_shape_count(&out->shape, (int)axis + 1, out->shape.rank);
    for (size_t i = 0; i < in->count && !prn_cancelled_at((int64_t)i); i++) {
        const prony_value *item = &in->items[i];
        int64_t row = outer > 0 ? prony_shape_numel(&item->shape) / outer : 0;
        if (item->dtype != out->dtype)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "item %zu is of another type", i);
        prn_copy copy = {0};
        prn_copy_axis(&copy, outer, row, out->shape.dim[axis] * inner);
        prn_copy_axis(&copy, row, 1, 1);
        char *to = (char *)out->data + (size_t)begin * width;
        if (prn_value_bytes(item)) prn_copy_native(context->threads, width, &copy, item->data, to);
        begin += row;
    }
    return PRONY_OK;
}

/* ---- rows ---- */

static const prn_kernel empty_kernels[] = {
    {.name = "sequence_empty_reference", .backend = "reference", .run = empty_run}, {0}};
static const prn_kernel construct_kernels[] = {
    {.name = "sequence_construct_reference", .backend = "reference", .run = construct_run}, {0}};
static const prn_kernel insert_kernels[] = {
    {.name = "sequence_insert_reference", .backend = "reference", .run = insert_run}, {0}};
static const prn_kernel erase_kernels[] = {
    {.name = "sequence_erase_reference", .backend = "reference", .run = erase_run}, {0}};
static const prn_kernel at_kernels[] = {{.name = "sequence_at_reference", .backend = "reference", .run = at_run}, {0}};
static const prn_kernel length_kernels[] = {
    {.name = "sequence_length_reference", .backend = "reference", .run = length_run}, {0}};
static const prn_kernel split_kernels[] = {
    {.name = "sequence_split_reference", .backend = "reference", .run = sequence_split_run}, {0}};
static const prn_kernel concat_kernels[] = {
    {.name = "sequence_concat_reference", .backend = "reference", .run = sequence_concat_run}, {0}};

// clang-format off
const prn_op prn_ops_sequence[] = {
    {.name = "SequenceEmpty", .since_opset = 11, .inputs = {0, 0}, .flags = PRN_OP_OPEN,
     .params = empty_attributes, .params_bytes = sizeof(empty_params),
     .infer = empty_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = empty_kernels},
    {.name = "SequenceConstruct", .since_opset = 11, .inputs = {1, -1}, .flags = PRN_OP_OPEN,
     .infer = construct_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = construct_kernels},
    {.name = "SequenceInsert", .since_opset = 11, .inputs = {2, 3}, .flags = PRN_OP_OPEN,
     .infer = insert_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = insert_kernels},
    {.name = "SequenceErase", .since_opset = 11, .inputs = {1, 2}, .flags = PRN_OP_OPEN,
     .infer = erase_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = erase_kernels},
    {.name = "SequenceAt", .since_opset = 11, .inputs = {2, 2}, .flags = PRN_OP_OPEN,
     .infer = at_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = at_kernels},
    {.name = "SequenceLength", .since_opset = 11, .inputs = {1, 1}, .flags = PRN_OP_OPEN,
     .infer = length_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = length_kernels},
    {.name = "SplitToSequence", .since_opset = 11, .inputs = {1, 2}, .flags = PRN_OP_OPEN,
     .params = split_attributes, .params_bytes = sizeof(split_params),
     .infer = sequence_split_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = split_kernels},
    {.name = "ConcatFromSequence", .since_opset = 11, .inputs = {1, 1}, .flags = PRN_OP_OPEN,
     .params = concat_attributes, .params_bytes = sizeof(concat_params), .check = sequence_concat_check,
     .infer = sequence_concat_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = concat_kernels},
    {0}};
// clang-format on
