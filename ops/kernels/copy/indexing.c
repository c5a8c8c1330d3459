/* Checks and address arithmetic of index tensors.
 * Invariant: once prn_index_check_range has passed, every place lies inside input 0. */
#include "ops/kernels/copy/indexing.h"

#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"

#include <stdatomic.h>
#include <string.h>

prony_status prn_index_check_types(const prony_context *context)
{
    PRN_TRY(prn_check_movable(context, 0));
    return prn_check_type(context, 1, PRN_TYPE(PRONY_INT32) | PRN_TYPE(PRONY_INT64));
}

typedef struct range_job {
    const prony_value *indices;
    const int64_t *dim;
    int64_t period;
    atomic_bool outside;
} range_job;

/* True if any of n entries is outside of one extent. */
#define DEFINE_ANY_OUTSIDE(type)                                                                                       \
    static bool any_outside_##type(const type *index, int64_t n, int64_t step, int64_t extent)                         \
    {                                                                                                                  \
        const type low = (type)(extent < INT32_MAX || sizeof(type) > 4 ? -extent : INT32_MIN);                         \
        const type high = (type)(extent < INT32_MAX || sizeof(type) > 4 ? extent - 1 : INT32_MAX);                     \
        type outside = 0;                                                                                              \
        for (int64_t i = 0; i < n; i++) outside |= (type)((index[i * step] < low) | (index[i * step] > high));         \
        return outside != 0;                                                                                           \
    }
DEFINE_ANY_OUTSIDE(int64_t)
DEFINE_ANY_OUTSIDE(int32_t)

static void check_periods(void *argument, int64_t begin, int64_t end)
{
    range_job *job = argument;
    const int64_t n = end - begin, first = begin * job->period;
    bool outside = false;
    for (int64_t k = 0; k < job->period; k++) {
        if (job->indices->dtype == PRONY_INT64) {
            outside |=
                any_outside_int64_t((const int64_t *)job->indices->data + first + k, n, job->period, job->dim[k]);
        } else {
            outside |=
                any_outside_int32_t((const int32_t *)job->indices->data + first + k, n, job->period, job->dim[k]);
        }
    }
    if (outside) atomic_store_explicit(&job->outside, true, memory_order_relaxed);
}

prony_status prn_index_check_range(const prony_context *context, const int64_t *dim, int64_t period)
{
    range_job job = {.indices = context->inputs[1], .dim = dim, .period = period};
    const int64_t count = prony_shape_numel(&job.indices->shape);
    prn_parallel_range(context->threads, count / period, 32768, check_periods, &job);
    if (prn_cancelled()) return prony_fail(context, PRONY_CANCELLED, "cancelled"); /* not every index was looked at */
    for (int64_t i = 0; i < count && job.outside; i++) {
        const int64_t index = prn_index_read(job.indices, i), extent = dim[i % period];
        if (index < -extent || index >= extent) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "index %lld at position %lld is outside of extent %lld",
                              (long long)index, (long long)i, (long long)extent);
        }
    }
    return PRONY_OK;
}

static prony_status indexing_no_fit(const prony_context *context)
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
        return indexing_no_fit(context);
    }
    int64_t tuple = indices->dim[indices->rank - 1];
    bool fits = tuple >= 1 && tuple <= data->rank - batch;
    for (int i = 0; fits && i < batch; i++) fits = data->dim[i] == indices->dim[i];
    return fits ? PRONY_OK : indexing_no_fit(context);
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

/* Of one batch; `tuple` is a constant after inlining where it is small. */
#define DEFINE_TUPLE_PLACES(type)                                                                                      \
    static inline __attribute__((always_inline)) void tuples_of_##type(                                                \
        const prn_index_tuples *t, int64_t first, int64_t n, const int64_t tuple, int64_t *places)                     \
    {                                                                                                                  \
        const type *index = (const type *)t->indices->data + first * tuple;                                            \
        for (int64_t i = 0; i < n; i++, index += tuple) {                                                              \
            int64_t place = 0;                                                                                         \
            for (int64_t k = 0; k < tuple; k++) {                                                                      \
                const int64_t given = index[k];                                                                        \
                place += (given + (given >> 63 & t->dim[k])) * t->stride[k];                                           \
            }                                                                                                          \
            places[i] = place;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void tuple_places_##type(const prn_index_tuples *t, int64_t first, int64_t n, int64_t *places)              \
    {                                                                                                                  \
        switch (t->tuple) {                                                                                            \
        case 1:                                                                                                        \
            tuples_of_##type(t, first, n, 1, places);                                                                  \
            break;                                                                                                     \
        case 2:                                                                                                        \
            tuples_of_##type(t, first, n, 2, places);                                                                  \
            break;                                                                                                     \
        case 3:                                                                                                        \
            tuples_of_##type(t, first, n, 3, places);                                                                  \
            break;                                                                                                     \
        case 4:                                                                                                        \
            tuples_of_##type(t, first, n, 4, places);                                                                  \
            break;                                                                                                     \
        default:                                                                                                       \
            tuples_of_##type(t, first, n, t->tuple, places);                                                           \
        }                                                                                                              \
    }
DEFINE_TUPLE_PLACES(int64_t)
DEFINE_TUPLE_PLACES(int32_t)

void prn_index_tuple_places(const prn_index_tuples *tuples, int64_t first, int64_t n, int64_t *places)
{
    if (tuples->indices->dtype == PRONY_INT64)
        tuple_places_int64_t(tuples, first, n, places);
    else
        tuple_places_int32_t(tuples, first, n, places);
    int64_t batch = first / tuples->per_batch, at = first % tuples->per_batch;
    if (batch == 0 && at + n <= tuples->per_batch) return;
    for (int64_t i = 0; i < n; i++) {
        places[i] += batch * tuples->batch_stride;
        if (++at == tuples->per_batch) {
            at = 0;
            batch++;
        }
    }
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
    return fits ? PRONY_OK : indexing_no_fit(context);
}

prn_index_elements prn_index_elements_make(const prony_context *context, int64_t axis)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    const int indexed = (int)(axis < 0 ? axis + data->rank : axis);
    prn_index_elements elements = {
        .indices = context->inputs[1], .extent = data->dim[indexed], .count = prony_shape_numel(indices)};
    int64_t stride[PRONY_MAX_RANK];
    prn_shape_strides(data, stride);
    for (int i = 0; i < data->rank; i++) {
        /* Whole lines of one axis follow each other along the axis before it. */
        const bool joins = i > 0 && i != indexed && i - 1 != indexed && indices->dim[i] == data->dim[i];
        const int at = joins ? elements.rank - 1 : elements.rank++;
        elements.dim[at] = joins ? elements.dim[at] * indices->dim[i] : indices->dim[i];
        elements.stride[at] = stride[i];
        if (i == indexed) elements.axis = at;
    }
    return elements;
}

bool prn_index_elements_same(const prn_index_elements *elements, int64_t first, int64_t n)
{
    const size_t width = elements->indices->dtype == PRONY_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    const char *index = (const char *)elements->indices->data + (size_t)first * width;
    return memcmp(index, index + width, (size_t)(n - 1) * width) == 0;
}

/* Neighbours along the last axis: `base` is the place of the first but for the indexed axis, whose step is `step`; the
 * others follow `next` apart. */
#define PLACES(first)                                                                                                  \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const int64_t given = index[i], at = given + (given >> 63 & extent);                                           \
        const bool wrong = (uint64_t)at >= (uint64_t)extent;                                                           \
        const int64_t kept = wrong ? 0 : at;                                                                           \
        outside |= wrong;                                                                                              \
        places[i] = first;                                                                                             \
    }
#define DEFINE_ROW_PLACES(type)                                                                                        \
    static bool row_places_##type(const type *index, int64_t n, int64_t extent, int64_t base, int64_t step,            \
                                  int64_t next, int64_t *places)                                                       \
    {                                                                                                                  \
        bool outside = false;                                                                                          \
        if (step == 1 && next == 0) {                                                                                  \
            PLACES(base + kept)                                                                                        \
        } else {                                                                                                       \
            PLACES(base + i * next + kept * step)                                                                      \
        }                                                                                                              \
        return !outside;                                                                                               \
    }
DEFINE_ROW_PLACES(int64_t)
DEFINE_ROW_PLACES(int32_t)

bool prn_index_element_places(const prn_index_elements *elements, int64_t first, int64_t n, int64_t *places)
{
    bool inside = true;
    const int64_t *dim = elements->dim;
    const int last = elements->rank - 1;
    const int64_t step = elements->stride[elements->axis], next = elements->axis == last ? 0 : 1;
    for (int64_t done = 0, count; done < n; done += count) {
        const int64_t column = (first + done) % dim[last];
        int64_t rest = (first + done) / dim[last], base = column * next;
        for (int axis = last - 1; axis >= 0; axis--) {
            if (axis != elements->axis) base += rest % dim[axis] * elements->stride[axis];
            rest /= dim[axis];
        }
        count = dim[last] - column < n - done ? dim[last] - column : n - done;
        if (elements->indices->dtype == PRONY_INT64) {
            inside &= row_places_int64_t((const int64_t *)elements->indices->data + first + done, count,
                                         elements->extent, base, step, next, places + done);
        } else {
            inside &= row_places_int32_t((const int32_t *)elements->indices->data + first + done, count,
                                         elements->extent, base, step, next, places + done);
        }
    }
    return inside;
}

/* ---- grids */

static void indexing_find_steps(const prony_shape *shape, prn_index_find find, const void *argument, int64_t *base,
                                int64_t *step)
{
    int64_t first = 1;
    find(argument, 0, 1, base);
    for (int axis = shape->rank - 1; axis >= 0; first *= shape->dim[axis--]) {
        step[axis] = 0;
        if (shape->dim[axis] == 1) continue;
        find(argument, first, 1, &step[axis]);
        step[axis] -= *base;
    }
}

bool prn_index_is_grid(const prony_shape *shape, prn_index_find find, const void *argument, int64_t *base,
                       int64_t *step)
{
    int64_t places[PRN_INDEX_BLOCK], at[PRONY_MAX_RANK] = {0};
    const int64_t count = prony_shape_numel(shape);
    indexing_find_steps(shape, find, argument, base, step);
    int64_t wanted = *base;
    for (int64_t first = 0, n; first < count && !prn_cancelled(); first += n) {
        n = count - first < PRN_INDEX_BLOCK ? count - first : PRN_INDEX_BLOCK;
        find(argument, first, n, places);
        for (int64_t i = 0; i < n; i++) {
            if (places[i] != wanted) return false;
            for (int axis = shape->rank - 1; axis >= 0; axis--) {
                wanted += step[axis];
                if (++at[axis] < shape->dim[axis]) break;
                wanted -= step[axis] * shape->dim[axis];
                at[axis] = 0;
            }
        }
    }
    return true;
}

bool prn_index_is_known(const prony_context *context, const int64_t *dim, int64_t period)
{
    prony_context quiet = *context;
    quiet.error = NULL;
    if (!(context->constant_inputs >> 1 & 1) || !context->inputs[1]->data ||
        prony_shape_numel(&context->inputs[1]->shape) <= 0)
        return false;
    return prn_index_check_range(&quiet, dim, period) == PRONY_OK;
}
