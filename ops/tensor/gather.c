/* Reading by index: Gather, GatherElements, GatherND. Indices are checked before anything is read by them.
 * Invariant: element or block i of the result depends on index i alone. */
#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/copy/indexing.h"
#include "ops/vendor/opencl/opencl_index.h"

#include <stdatomic.h>
#include <string.h>

/* Reads of the data are no more than the writes. */
static prony_status selected_cost(const prony_context *context, prony_cost *cost)
{
    const prony_value *out = prn_output(context, 0);
    size_t whole = prn_value_bytes(context->inputs[0]), part = out ? prn_value_bytes(out) : SIZE_MAX;
    if (part < whole && whole != SIZE_MAX && cost->bytes_read >= whole) cost->bytes_read -= whole - part;
    return PRONY_OK;
}

/* Block i of the result comes from offset places[i], counted in `unit` bytes. */
typedef struct block_work {
    const char *from;
    char *to;
    int64_t bytes, unit;
    prn_index_find find;
    const void *argument;
} block_work;

#define DEFINE_MOVE(type)                                                                                              \
    static void move_##type(const block_work *work, void *to_, const int64_t *places, int64_t n)                       \
    {                                                                                                                  \
        typedef type __attribute__((may_alias, aligned(1))) element; /* two floats are one element of 8 bytes */       \
        element *to = to_;                                                                                             \
        const element *from = (const element *)(const void *)work->from;                                               \
        for (int64_t i = 0; i < n; i++) to[i] = from[places[i]];                                                       \
    }
DEFINE_MOVE(uint8_t)
DEFINE_MOVE(uint16_t)
DEFINE_MOVE(uint32_t)
DEFINE_MOVE(uint64_t)

enum { LONG_BLOCK = 1 << 18 }; /* bytes from which on a block is left early once the work is cancelled */

/* Places count elements where a block is one element. */
static void move_block(const block_work *work, char *to, const int64_t *places, int64_t n)
{
    const bool elements = work->bytes == work->unit;
    if (elements && work->bytes == 1) {
        move_uint8_t(work, to, places, n);
    } else if (elements && work->bytes == 2) {
        move_uint16_t(work, to, places, n);
    } else if (elements && work->bytes == 4) {
        move_uint32_t(work, to, places, n);
    } else if (elements && work->bytes == 8) {
        move_uint64_t(work, to, places, n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            const char *from = work->from + places[i] * work->unit;
            if (work->bytes < LONG_BLOCK)
                memcpy(to + i * work->bytes, from, (size_t)work->bytes);
            else
                prn_cancellable_copy(to + i * work->bytes, from, (size_t)work->bytes);
        }
    }
}

static void copy_blocks(void *argument, int64_t begin, int64_t end)
{
    const block_work *work = argument;
    int64_t places[PRN_INDEX_BLOCK];
    for (int64_t first = begin, n; first < end; first += n) {
        n = end - first < PRN_INDEX_BLOCK ? end - first : PRN_INDEX_BLOCK;
        work->find(work->argument, first, n, places);
        move_block(work, work->to + first * work->bytes, places, n);
    }
}

static void gather_move_blocks(const prony_context *context, block_work *work, int64_t count)
{
    work->from = context->inputs[0]->data;
    work->to = context->outputs[0]->data;
    if (count == 0 || work->bytes == 0) return;
    /* An index costs about as much as 16 bytes do. */
    prn_parallel_items(context->threads, count, count * (16 + work->bytes), copy_blocks, work);
}

/* Places of blocks in the data, all in elements: block i of the result begins i / count * part + place[i % count] *
 * unit behind its beginning. */
typedef struct gather_table {
    int64_t count, block, unit, part;
} gather_table;

/* An operator's variant. */
typedef struct gather_kind {
    prony_status (*native)(const prony_context *context);
    /* True if constant indices make a copy of it, from so many bytes behind the data's beginning. */
    bool (*grid)(const prony_context *context, prn_copy *copy, int64_t *offset);
    /* Extents that successive entries of the indices stand for, which repeat; how many. */
    int64_t (*indexed)(const prony_context *context, int64_t *dim);
    /* Coordinates in the data of what stands at coordinates `at` of the output, by the specification's words. */
    void (*source)(const prony_context *context, const int64_t *at, int64_t *from);
    /* The table of a node, and `n` of its places from `first` on; the indices are in range, and need not be there for n
     * 0. */
    gather_table (*table)(const prony_context *context, int64_t first, int64_t n, int64_t *places);
} gather_kind;

typedef struct gather_state {
    bool grid;
    int64_t offset;
    prn_copy copy;
} gather_state;

static prony_status gather_prepare_native(const prony_context *context, prn_prepared *out)
{
    const gather_kind *kind = prn_variant(context);
    gather_state state = {0};
    state.grid = kind->grid(context, &state.copy, &state.offset);
    return prn_prepared_keep(context, &state, sizeof state, out);
}

static prony_status gather_run_native(const prony_context *context)
{
    const gather_kind *kind = prn_variant(context);
    const gather_state *state = context->state;
    const size_t width = prn_copy_width(context->inputs[0]->dtype);
    const char *from = (const char *)context->inputs[0]->data + state->offset;
    if (!state->grid || (uintptr_t)from % width) return kind->native(context);
    prn_copy_native(context->threads, width, &state->copy, from, context->outputs[0]->data);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
/* true: the indices come with the run. The host reads and checks them, and copies the places to the device. */
static bool gather_opencl_varies(const prony_context *context)
{
    return !(context->constant_inputs >> 1 & 1);
}

/* A table of constants is worth its bytes on the device if about all of it is read; a few rows are copied instead. */
static bool gather_opencl_profitable(const prony_context *context)
{
    return !gather_opencl_varies(context) || !(context->constant_inputs & 1) ||
           prony_shape_numel(&context->outputs[0]->shape) >= prony_shape_numel(&context->inputs[0]->shape);
}

/* Constant indices of rank 2 and more may not be there yet. */
static bool gather_opencl_supported(const prony_context *context)
{
    const gather_kind *kind = prn_variant(context);
    const prony_value *indices = context->inputs[1];
    int64_t dim[PRONY_MAX_RANK];
    if (prony_shape_numel(&indices->shape) <= 0 || prony_shape_numel(&indices->shape) > INT32_MAX) return false;
    const int64_t period = kind->indexed(context, dim);
    if (gather_opencl_varies(context)) return period > 0 && prn_opencl_indexed_supported(context);
    if (!prn_opencl_move_supported(context)) return false;
    return period > 0 && (indices->shape.rank > 1 || prn_index_is_known(context, dim, period));
}

static void gather_fill_table(const prony_context *context, int32_t *all)
{
    const gather_kind *kind = prn_variant(context);
    const int64_t count = kind->table(context, 0, 0, NULL).count;
    int64_t places[PRN_INDEX_BLOCK];
    for (int64_t first = 0, n; first < count; first += n) {
        n = count - first < PRN_INDEX_BLOCK ? count - first : PRN_INDEX_BLOCK;
        kind->table(context, first, n, places);
        for (int64_t i = 0; i < n; i++) all[first + i] = (int32_t)places[i];
    }
}

static prony_status gather_opencl_prepare_table(const prony_context *context, prn_prepared *out)
{
    const gather_table table = ((const gather_kind *)prn_variant(context))->table(context, 0, 0, NULL);
    int32_t *all = prn_calloc((size_t)table.count, sizeof *all);
    if (!all) return prn_no_memory(context->error);
    gather_fill_table(context, all);
    const prn_opencl_blocks blocks = {all, table.count, table.block, table.unit, table.part};
    const prony_status status = prn_opencl_blocks_prepare(context, out, &blocks);
    prn_free(all);
    return status;
}

/* Indices out of range leave no state: the run refuses them, as the host's kernel does. */
static prony_status gather_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const gather_kind *kind = prn_variant(context);
    int64_t dim[PRONY_MAX_RANK], offset;
    const int64_t period = kind->indexed(context, dim);
    prn_opencl_move move = {0};
    if (gather_opencl_varies(context)) {
        const gather_table table = kind->table(context, 0, 0, NULL);
        const prn_opencl_blocks blocks = {NULL, table.count, table.block, table.unit, table.part};
        return prn_opencl_blocks_prepare(context, out, &blocks);
    }
    if (!prn_index_is_known(context, dim, period)) return PRONY_OK;
    if (!kind->grid(context, &move.copy, &offset) || move.copy.rank > PRONY_MAX_RANK)
        return gather_opencl_prepare_table(context, out);
    move.from = offset / (int64_t)prn_copy_width(context->inputs[0]->dtype);
    return prn_opencl_copy_prepare(context, out, &move, 1, NULL);
}

static prony_status gather_opencl_run(const prony_context *context)
{
    const gather_kind *kind = prn_variant(context);
    int64_t dim[PRONY_MAX_RANK];
    if (context->state && !gather_opencl_varies(context)) return prn_opencl_run(context);
    const int64_t period = kind->indexed(context, dim);
    PRN_TRY(prn_index_check_range(context, dim, period));
    if (!context->state) return PRONY_OK;
    gather_fill_table(context, prn_opencl_blocks_table(context));
    return prn_opencl_blocks_run(context);
}

#define GATHER_OPENCL_ROW(stem)                                                                                        \
    {.name = stem "_opencl",                                                                                           \
     .backend = "opencl",                                                                                              \
     .types = PRN_OPENCL_COPIED,                                                                                       \
     .precisions = ~PRN_PRECISION(FP32_STRICT),                                                                        \
     .supported = gather_opencl_supported,                                                                             \
     .profitable = gather_opencl_profitable,                                                                           \
     .prepare = gather_opencl_prepare,                                                                                 \
     .run = gather_opencl_run,                                                                                         \
     .release = prn_opencl_release,                                                                                    \
     .memory_space = &prn_opencl_space,                                                                                \
     .host_inputs = 2},
#else
#define GATHER_OPENCL_ROW(stem)
#endif

/* The axes of a grid, whose steps count `unit` elements, and a block of `block` elements at each of its places. */
static void add_grid(prn_copy *copy, const prony_shape *shape, const int64_t *step, int64_t unit, int64_t block)
{
    int64_t to = prony_shape_numel(shape) * block;
    for (int axis = 0; axis < shape->rank; axis++) {
        to /= shape->dim[axis];
        prn_copy_axis(copy, shape->dim[axis], step[axis] * unit, to);
    }
    prn_copy_axis(copy, block, 1, 1);
}

/* ---- reference */

/* Entry of the indices at coordinates `at`, for an axis of extent `dim`. */
static int64_t index_at(const prony_context *context, const int64_t *at, int64_t dim)
{
    const prony_value *indices = context->inputs[1];
    int64_t place = 0;
    for (int i = 0; i < indices->shape.rank; i++) place = place * indices->shape.dim[i] + at[i];
    return prn_index_wrapped(indices, place, dim);
}

static prony_status gather_run_reference(const prony_context *context)
{
    const gather_kind *kind = prn_variant(context);
    const prony_value *data = context->inputs[0], *out = context->outputs[0];
    const size_t width = prn_copy_width(data->dtype);
    const int64_t count = prony_shape_numel(&out->shape);
    int64_t dim[PRONY_MAX_RANK], at[PRONY_MAX_RANK], from[PRONY_MAX_RANK];
    const int64_t period = kind->indexed(context, dim);
    PRN_TRY(prn_index_check_range(context, dim, period));
    for (int64_t e = 0; e < count && !prn_cancelled_at(e); e++) {
        int64_t rest = e, place = 0;
        for (int i = out->shape.rank - 1; i >= 0; i--) {
            at[i] = rest % out->shape.dim[i];
            rest /= out->shape.dim[i];
        }
        kind->source(context, at, from);
        for (int i = 0; i < data->shape.rank; i++) place = place * data->shape.dim[i] + from[i];
        memcpy((char *)out->data + (size_t)e * width, (const char *)data->data + (size_t)place * width, width);
    }
    return PRONY_OK;
}

/* ---- Gather */

typedef struct axis_params {
    int64_t axis;
} axis_params;

static const prn_param axis_attributes[] = {PRN_INT(axis_params, axis, 0), {0}};

static int gather_axis_of(const prony_context *context)
{
    const int64_t axis = ((const axis_params *)context->params)->axis;
    return (int)(axis < 0 ? axis + context->inputs[0]->shape.rank : axis);
}

static int64_t one_axis(const prony_context *context, int64_t *dim)
{
    dim[0] = context->inputs[0]->shape.dim[gather_axis_of(context)];
    return 1;
}

static prony_status gather_infer(const prony_context *context)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    int64_t axis = ((const axis_params *)context->params)->axis;
    PRN_TRY(prn_index_check_types(context));
    if (!prn_axis_normalize(&axis, data->rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis, data->rank);
    }
    prony_shape shape = {.rank = data->rank + indices->rank - 1};
    if (shape.rank > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "rank %d is too large", shape.rank);
    int at = 0;
    for (int i = 0; i < axis; i++) shape.dim[at++] = data->dim[i];
    for (int i = 0; i < indices->rank; i++) shape.dim[at++] = indices->dim[i];
    for (int i = (int)axis + 1; i < data->rank; i++) shape.dim[at++] = data->dim[i];
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

typedef struct gather_rows {
    const prony_value *indices;
    int64_t count, extent, bytes; /* indices; of the axis; of a row */
} gather_rows;

static void gather_places(const void *argument, int64_t first, int64_t n, int64_t *places)
{
    const gather_rows *rows = argument;
    int64_t at = first % rows->count, base = first / rows->count * rows->extent;
    for (int64_t i = 0; i < n; i++) {
        places[i] = base + prn_index_wrapped(rows->indices, at, rows->extent);
        if (++at == rows->count) {
            at = 0;
            base += rows->extent;
        }
    }
}

static prony_status gather_run(const prony_context *context)
{
    const prony_value *data = context->inputs[0];
    const int at = gather_axis_of(context);
    gather_rows rows = {.indices = context->inputs[1], .extent = data->shape.dim[at]};
    rows.count = prony_shape_numel(&rows.indices->shape);
    rows.bytes = prn_shape_count(&data->shape, at + 1, data->shape.rank) * (int64_t)prn_copy_width(data->dtype);
    PRN_TRY(prn_index_check_range(context, &rows.extent, 1));
    block_work work = {.bytes = rows.bytes, .unit = rows.bytes, .find = gather_places, .argument = &rows};
    gather_move_blocks(context, &work, prn_shape_count(&data->shape, 0, at) * rows.count);
    return PRONY_OK;
}

static bool gather_grid(const prony_context *context, prn_copy *copy, int64_t *offset)
{
    const prony_value *data = context->inputs[0], *indices = context->inputs[1];
    const int at = gather_axis_of(context);
    const int64_t outer = prn_shape_count(&data->shape, 0, at),
                  block = prn_shape_count(&data->shape, at + 1, data->shape.rank);
    const gather_rows rows = {
        .indices = indices, .extent = data->shape.dim[at], .count = prony_shape_numel(&indices->shape)};
    int64_t step[PRONY_MAX_RANK];
    if (outer * block == 0 || !prn_index_is_known(context, &rows.extent, 1)) return false;
    if (!prn_index_is_grid(&indices->shape, gather_places, &rows, offset, step)) return false;
    prn_copy_axis(copy, outer, rows.extent * block, rows.count * block);
    add_grid(copy, &indices->shape, step, block, block);
    *offset *= block * (int64_t)prn_copy_width(data->dtype);
    return true;
}

/* out[a..., i..., b...] = data[a..., indices[i...], b...] */
static void gather_source(const prony_context *context, const int64_t *at, int64_t *from)
{
    const prony_shape *data = &context->inputs[0]->shape;
    const int axis = gather_axis_of(context), rank = context->inputs[1]->shape.rank;
    for (int i = 0; i < axis; i++) from[i] = at[i];
    from[axis] = index_at(context, at + axis, data->dim[axis]);
    for (int i = axis + 1; i < data->rank; i++) from[i] = at[i + rank - 1];
}

static gather_table gather_table_of(const prony_context *context, int64_t first, int64_t n, int64_t *places)
{
    const prony_shape *data = &context->inputs[0]->shape;
    const int at = gather_axis_of(context);
    const int64_t block = prn_shape_count(data, at + 1, data->rank);
    const gather_rows rows = {
        .indices = context->inputs[1], .extent = data->dim[at], .count = prony_shape_numel(&context->inputs[1]->shape)};
    if (n > 0) gather_places(&rows, first, n, places);
    return (gather_table){.count = rows.count, .block = block, .unit = block, .part = rows.extent * block};
}

// clang-format off
static const prn_kernel gather_kernels[] = {
    GATHER_OPENCL_ROW("gather")
    {.name = "gather_native", .backend = "native", .prepare = gather_prepare_native, .run = gather_run_native, .release = prn_free, .unaligned = 1},
    {.name = "gather_reference", .backend = "reference", .run = gather_run_reference},
    {0}};
// clang-format on

/* ---- GatherND */

typedef struct nd_params {
    int64_t batch_dims;
} nd_params;

static const prn_param nd_attributes[] = {PRN_INT(nd_params, batch_dims, 0), {0}};

static prony_status gather_nd_infer(const prony_context *context)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    int64_t batch = ((const nd_params *)context->params)->batch_dims;
    PRN_TRY(prn_index_check_tuples(context, batch));
    int first = (int)(batch + indices->dim[indices->rank - 1]);
    prony_shape shape = {.rank = indices->rank - 1 + data->rank - first};
    if (shape.rank > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "rank %d is too large", shape.rank);
    int at = 0;
    for (int i = 0; i < indices->rank - 1; i++) shape.dim[at++] = indices->dim[i];
    for (int i = first; i < data->rank; i++) shape.dim[at++] = data->dim[i];
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static void gather_nd_places(const void *argument, int64_t first, int64_t n, int64_t *places)
{
    prn_index_tuple_places(argument, first, n, places);
}

static prony_status gather_nd_run(const prony_context *context)
{
    prn_index_tuples tuples = prn_index_tuples_make(context, (int)((const nd_params *)context->params)->batch_dims);
    PRN_TRY(prn_index_check_range(context, tuples.dim, tuples.tuple));
    block_work work = {.bytes = tuples.block, .unit = 1, .find = gather_nd_places, .argument = &tuples};
    gather_move_blocks(context, &work, tuples.count);
    return PRONY_OK;
}

static bool gather_nd_grid(const prony_context *context, prn_copy *copy, int64_t *offset)
{
    const prn_index_tuples tuples =
        prn_index_tuples_make(context, (int)((const nd_params *)context->params)->batch_dims);
    prony_shape shape = context->inputs[1]->shape;
    const int64_t width = (int64_t)prn_copy_width(context->inputs[0]->dtype);
    int64_t step[PRONY_MAX_RANK];
    if (tuples.block == 0 || !prn_index_is_known(context, tuples.dim, tuples.tuple)) return false;
    shape.rank--;
    if (!prn_index_is_grid(&shape, gather_nd_places, &tuples, offset, step)) return false;
    for (int axis = 0; axis < shape.rank; axis++) step[axis] /= width;
    add_grid(copy, &shape, step, 1, tuples.block / width);
    return true;
}

static int64_t tuple_axes(const prony_context *context, int64_t *dim)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    const int64_t batch = ((const nd_params *)context->params)->batch_dims, tuple = indices->dim[indices->rank - 1];
    for (int64_t k = 0; k < tuple; k++) dim[k] = data->dim[batch + k];
    return tuple;
}

/* out[a..., i..., b...] = data[a..., indices[a..., i..., :], b...], a: the batch */
static void gather_nd_source(const prony_context *context, const int64_t *at, int64_t *from)
{
    const prony_shape *data = &context->inputs[0]->shape;
    const int batch = (int)((const nd_params *)context->params)->batch_dims, rank = context->inputs[1]->shape.rank;
    int64_t dim[PRONY_MAX_RANK], entry[PRONY_MAX_RANK];
    const int tuple = (int)tuple_axes(context, dim);
    for (int i = 0; i < rank - 1; i++) entry[i] = at[i];
    for (int i = 0; i < batch; i++) from[i] = at[i];
    for (int k = 0; k < tuple; k++) {
        entry[rank - 1] = k;
        from[batch + k] = index_at(context, entry, dim[k]);
    }
    for (int i = batch + tuple; i < data->rank; i++) from[i] = at[rank - 1 + i - batch - tuple];
}

static gather_table gather_nd_table_of(const prony_context *context, int64_t first, int64_t n, int64_t *places)
{
    const prn_index_tuples tuples =
        prn_index_tuples_make(context, (int)((const nd_params *)context->params)->batch_dims);
    const int64_t width = (int64_t)prn_copy_width(context->inputs[0]->dtype);
    if (n > 0) prn_index_tuple_places(&tuples, first, n, places);
    for (int64_t i = 0; i < n; i++) places[i] /= width;
    return (gather_table){.count = tuples.count, .block = tuples.block / width, .unit = 1};
}

// clang-format off
static const prn_kernel gather_nd_kernels[] = {
    GATHER_OPENCL_ROW("gather_nd")
    {.name = "gather_nd_native", .backend = "native", .prepare = gather_prepare_native, .run = gather_run_native, .release = prn_free, .unaligned = 1},
    {.name = "gather_nd_reference", .backend = "reference", .run = gather_run_reference},
    {0}};
// clang-format on

/* ---- GatherElements */

static prony_status gather_elements_infer(const prony_context *context)
{
    PRN_TRY(prn_index_check_elements(context, ((const axis_params *)context->params)->axis));
    prn_set_output(context, 0, context->inputs[0]->dtype, &context->inputs[1]->shape);
    return PRONY_OK;
}

typedef struct element_source {
    prn_index_elements elements;
    atomic_bool *outside;
} element_source;

/* Indices out of bounds are noticed here, so that the indices are read once; nothing outside is touched. */
static void gather_element_places(const void *argument, int64_t first, int64_t n, int64_t *places)
{
    const element_source *source = argument;
    if (!prn_index_element_places(&source->elements, first, n, places))
        atomic_store_explicit(source->outside, true, memory_order_relaxed);
}

static prony_status gather_elements_run(const prony_context *context)
{
    atomic_bool outside = prony_shape_numel(&context->inputs[0]->shape) == 0;
    const element_source source = {prn_index_elements_make(context, ((const axis_params *)context->params)->axis),
                                   &outside};
    const int64_t width = (int64_t)prn_copy_width(context->inputs[0]->dtype);
    block_work work = {.bytes = width, .unit = width, .find = gather_element_places, .argument = &source};
    if (!outside) gather_move_blocks(context, &work, source.elements.count);
    return outside ? prn_index_check_range(context, &source.elements.extent, 1) : PRONY_OK;
}

static bool gather_elements_grid(const prony_context *context, prn_copy *copy, int64_t *offset)
{
    const prony_value *data = context->inputs[0];
    atomic_bool outside = false;
    if (prony_shape_numel(&data->shape) == 0) return false;
    const element_source source = {prn_index_elements_make(context, ((const axis_params *)context->params)->axis),
                                   &outside};
    int64_t step[PRONY_MAX_RANK];
    if (!prn_index_is_known(context, &source.elements.extent, 1)) return false;
    if (!prn_index_is_grid(&context->inputs[1]->shape, gather_element_places, &source, offset, step)) return false;
    add_grid(copy, &context->inputs[1]->shape, step, 1, 1);
    *offset *= (int64_t)prn_copy_width(data->dtype);
    return true;
}

/* out[a..., i, b...] = data[a..., indices[a..., i, b...], b...] */
static void gather_elements_source(const prony_context *context, const int64_t *at, int64_t *from)
{
    const prony_shape *data = &context->inputs[0]->shape;
    const int axis = gather_axis_of(context);
    for (int i = 0; i < data->rank; i++) from[i] = i == axis ? index_at(context, at, data->dim[axis]) : at[i];
}

static gather_table gather_elements_table_of(const prony_context *context, int64_t first, int64_t n, int64_t *places)
{
    const prn_index_elements elements = prn_index_elements_make(context, ((const axis_params *)context->params)->axis);
    if (n > 0) prn_index_element_places(&elements, first, n, places);
    return (gather_table){.count = elements.count, .block = 1, .unit = 1};
}

// clang-format off
static const prn_kernel gather_elements_kernels[] = {
    GATHER_OPENCL_ROW("gather_elements")
    {.name = "gather_elements_native", .backend = "native", .prepare = gather_prepare_native, .run = gather_run_native, .release = prn_free, .unaligned = 1},
    {.name = "gather_elements_reference", .backend = "reference", .run = gather_run_reference},
    {0}};

const prn_op prn_ops_gather[] = {
    {.name = "Gather", .since_opset = 1, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = axis_attributes, .params_bytes = sizeof(axis_params), .variant = &(const gather_kind){gather_run, gather_grid, one_axis, gather_source, gather_table_of},
     .infer = gather_infer, .cost = selected_cost, .cost_text = "0 (reads the selected rows only)",
     .kernels = gather_kernels},
    {.name = "GatherND", .since_opset = 11, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = nd_attributes, .params_bytes = sizeof(nd_params), .variant = &(const gather_kind){gather_nd_run, gather_nd_grid, tuple_axes, gather_nd_source, gather_nd_table_of},
     .infer = gather_nd_infer, .cost = selected_cost, .cost_text = "0 (reads the selected rows only)",
     .kernels = gather_nd_kernels},
    {.name = "GatherElements", .since_opset = 11, .inputs = {2, 2}, .non_weight_inputs = 2,
     .params = axis_attributes, .params_bytes = sizeof(axis_params),
     .variant = &(const gather_kind){gather_elements_run, gather_elements_grid, one_axis, gather_elements_source, gather_elements_table_of},
     .infer = gather_elements_infer, .cost = selected_cost, .cost_text = "0 (reads the selected elements only)",
     .kernels = gather_elements_kernels},
    {0}};
// clang-format on
