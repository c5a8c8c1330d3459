/* Checks and address arithmetic of index tensors. Owns nothing.
 * Invariant: once prn_index_check_range has passed, every place lies inside input 0. */
#include "ops/indexing.h"

#include "ops/copy_nd.h"

prony_status prn_index_check_types(const prony_context *context)
{
    PRN_TRY(prn_check_movable(context, 0));
    return prn_check_type(context, 1, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64));
}

prony_status prn_index_check_range(const prony_context *context, const int64_t *dim, int64_t period)
{
    const prony_value *indices = context->inputs[1];
    int64_t count = prony_shape_numel(&indices->shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = prn_index_read(indices, i), extent = dim[i % period];
        if (index < -extent || index >= extent) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "index %lld at position %lld is outside of extent %lld",
                              (long long)index, (long long)i, (long long)extent);
        }
    }
    return PRONY_OK;
}

static prony_status no_fit(const prony_context *context)
{
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "indices of shape %s do not index %s",
                      prn_shape_text(&context->inputs[1]->shape, right),
                      prn_shape_text(&context->inputs[0]->shape, left));
}

/* ---- tuples */

prony_status prn_index_check_tuples(const prony_context *context, int64_t batch)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    PRN_TRY(prn_index_check_types(context));
    if (indices->rank < 1 || data->rank < 1 || batch < 0 || batch >= indices->rank || batch >= data->rank) {
        return no_fit(context);
    }
    int64_t tuple = indices->dim[indices->rank - 1];
    bool fits = tuple >= 1 && tuple <= data->rank - batch;
    for (int i = 0; fits && i < batch; i++) fits = data->dim[i] == indices->dim[i];
    return fits ? PRONY_OK : no_fit(context);
}

prn_index_tuples prn_index_tuples_make(const prony_context *context, int batch)
{
    const prony_value *data = context->inputs[0], *indices = context->inputs[1];
    int64_t stride[PRONY_MAX_RANK], width = (int64_t)prn_copy_width(data->dtype);
    int last = indices->shape.rank - 1;
    prn_index_tuples tuples = {.indices = indices, .tuple = indices->shape.dim[last]};
    prn_shape_strides(&data->shape, stride);
    for (int64_t k = 0; k < tuples.tuple; k++) {
        tuples.dim[k] = data->shape.dim[batch + k];
        tuples.stride[k] = stride[batch + k] * width;
    }
    tuples.count = prn_shape_count(&indices->shape, 0, last);
    tuples.block = prn_shape_count(&data->shape, batch + (int)tuples.tuple, data->shape.rank) * width;
    tuples.batch_stride = prn_shape_count(&data->shape, batch, data->shape.rank) * width;
    tuples.per_batch = prn_shape_count(&indices->shape, batch, last);
    return tuples;
}

int64_t prn_index_tuple_place(const prn_index_tuples *tuples, int64_t i)
{
    int64_t place = i / tuples->per_batch * tuples->batch_stride;
    for (int64_t k = 0; k < tuples->tuple; k++) {
        place += prn_index_wrapped(tuples->indices, i * tuples->tuple + k, tuples->dim[k]) * tuples->stride[k];
    }
    return place;
}

/* ---- elements */

prony_status prn_index_check_elements(const prony_context *context, int64_t axis)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    PRN_TRY(prn_index_check_types(context));
    int64_t at = axis;
    if (!prn_axis_normalize(&at, data->rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, data->rank);
    }
    bool fits = data->rank == indices->rank;
    for (int i = 0; fits && i < data->rank; i++) fits = i == at || indices->dim[i] <= data->dim[i];
    return fits ? PRONY_OK : no_fit(context);
}

prn_index_elements prn_index_elements_make(const prony_context *context, int64_t axis)
{
    const prony_shape *data = &context->inputs[0]->shape;
    prn_index_elements elements = {.indices = context->inputs[1], .axis = (int)(axis < 0 ? axis + data->rank : axis)};
    elements.extent = data->dim[elements.axis];
    elements.count = prony_shape_numel(&elements.indices->shape);
    prn_shape_strides(data, elements.stride);
    return elements;
}

int64_t prn_index_element_place(const prn_index_elements *elements, int64_t i)
{
    const prony_shape *shape = &elements->indices->shape;
    int64_t rest = i, place = 0;
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        int64_t at = rest % shape->dim[axis];
        rest /= shape->dim[axis];
        if (axis == elements->axis) at = prn_index_wrapped(elements->indices, i, elements->extent);
        place += at * elements->stride[axis];
    }
    return place;
}
