/* Writing by index: ScatterElements (and Scatter, its old name) and ScatterND, with or without a reduction.
 * Invariant: updates that can meet are applied by one task in their order, so that repeated indices always end the same
 * way. */
#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/kernels/copy/indexing.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_index.h"

#include <string.h>

typedef struct scatter_params {
    int64_t axis;
    const char *reduction;
} scatter_params;

static const prn_param scatter_attributes[] = {
    PRN_INT(scatter_params, axis, 0), PRN_STRING(scatter_params, reduction, "none"), {0}};
static const prn_param scatter_nd_attributes[] = {PRN_STRING(scatter_params, reduction, "none"), {0}};

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX, REDUCE_UNKNOWN } reduction;

static reduction scatter_reduction_of(const prony_context *context)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = ((const scatter_params *)context->params)->reduction;
    for (int i = 0; i < REDUCE_UNKNOWN; i++) {
        if (strcmp(names[i], name) == 0) return (reduction)i;
    }
    return REDUCE_UNKNOWN;
}

static prony_status scatter_check(const prony_context *context)
{
    if (scatter_reduction_of(context) != REDUCE_UNKNOWN) return PRONY_OK;
    return prony_fail(context, PRONY_UNSUPPORTED, "reduction '%s' is not supported",
                      ((const scatter_params *)context->params)->reduction);
}

/* Data and updates are of one type, and a number where they are combined. */
static prony_status check_updates(const prony_context *context, const prony_shape *wanted)
{
    const prony_value *data = context->inputs[0], *updates = context->inputs[2];
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    if (scatter_reduction_of(context) != REDUCE_NONE) PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    if (updates->dtype == data->dtype && prn_shape_equal(&updates->shape, wanted)) return PRONY_OK;
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "updates are %s, wanted %s%s", prn_value_text(updates, left),
                      prony_dtype_name(data->dtype), prn_shape_text(wanted, right));
}

/* to[i] = to[i] combined with from[i], for `count` elements. */
static void scatter_combine(reduction how, prony_dtype dtype, void *to, const void *from, int64_t count)
{
    static const prn_row_op rows[] = {
        [REDUCE_ADD] = PRN_ROW_ADD, [REDUCE_MUL] = PRN_ROW_MUL, [REDUCE_MIN] = PRN_ROW_MIN, [REDUCE_MAX] = PRN_ROW_MAX};
    prn_element_row(rows[how], dtype, to, to, from, count, 1, 1);
}

static void scatter_copy_data(const prony_context *context)
{
    prn_copy_bytes(context->threads, context->inputs[0]->data, context->outputs[0]->data,
                   prn_value_bytes(context->inputs[0]));
}

static prony_status scatter_cost(const prony_context *context, prony_cost *cost)
{
    int64_t count = prony_shape_numel(&context->inputs[2]->shape);
    if (scatter_reduction_of(context) == REDUCE_NONE || count < 0) return PRONY_OK;
    return prn_cost_elementwise(context, cost, (uint64_t)count, 1, 0);
}

/* ---- float32 by constant indices, on an OpenCL device */

#ifdef PRN_HAVE_OPENCL
/* Indices of rank 2 and more may not be there yet. */
static bool scatter_opencl_supported(const prony_context *context)
{
    const prony_value *indices = context->inputs[1];
    return scatter_reduction_of(context) == REDUCE_NONE && indices->shape.rank > 1 &&
           prony_shape_numel(&indices->shape) > 0 && prn_opencl_scatter_supported(context);
}

/* Places of `count` blocks, in elements, by `find`. Of blocks that meet, the last one stays. */
static prony_status scatter_opencl_prepare(const prony_context *context, prn_prepared *out, prn_index_find find,
                                           const void *argument, int64_t count, int64_t block, int64_t unit)
{
    const int64_t data = prony_shape_numel(&context->inputs[0]->shape) / block;
    int64_t places[PRN_INDEX_BLOCK];
    int32_t *table = prn_calloc((size_t)count, sizeof *table), *last = prn_calloc((size_t)data, sizeof *last);
    prony_status status = table && last ? PRONY_OK : prn_no_memory(context->error);
    for (int64_t first = 0, n; first < count && status == PRONY_OK; first += n) {
        n = count - first < PRN_INDEX_BLOCK ? count - first : PRN_INDEX_BLOCK;
        find(argument, first, n, places);
        for (int64_t i = 0; i < n; i++) {
            table[first + i] = (int32_t)(places[i] / unit);
            last[table[first + i] / block] = (int32_t)(first + i);
        }
    }
    for (int64_t i = 0; i < count && status == PRONY_OK; i++)
        if (last[table[i] / block] != i) table[i] = -1;
    if (status == PRONY_OK) status = prn_opencl_scatter_prepare(context, out, table, count, block);
    prn_free(table);
    prn_free(last);
    return status;
}

#define SCATTER_OPENCL_ROW(stem)                                                                                       \
    {.name = #stem "_f32_opencl",                                                                                      \
     .backend = "opencl",                                                                                              \
     .types = PRN_TYPE_F32,                                                                                            \
     .precisions = ~PRN_PRECISION(FP32_STRICT),                                                                        \
     .supported = scatter_opencl_supported,                                                                            \
     .prepare = stem##_opencl_prepare,                                                                                 \
     .run = stem##_opencl_run,                                                                                         \
     .release = prn_opencl_release,                                                                                    \
     .memory_space = &prn_opencl_space,                                                                                \
     .host_inputs = 2},
#else
#define SCATTER_OPENCL_ROW(stem)
#endif

/* ---- ScatterElements */

static prony_status scatter_infer(const prony_context *context)
{
    PRN_TRY(prn_index_check_elements(context, ((const scatter_params *)context->params)->axis));
    PRN_TRY(check_updates(context, &context->inputs[1]->shape));
    return prn_infer_same(context);
}

typedef struct scatter_job {
    reduction how;
    const prony_value *updates;
    char *to;
    prn_index_elements elements;
    prn_index_tuples tuples;
    int64_t width;
    /* elements: updates as [outer][along][inner], `along` on the indexed axis; strips of the inner ones */
    int64_t along, inner, strips;
    bool in_line;  /* a strip lies in one line of data and updates */
    int64_t piece; /* tuples: of a block, in bytes */
} scatter_job;

/* `n` updates to successive places. */
static void apply_run(const scatter_job *job, char *to, const char *from, int64_t n)
{
    if (job->how == REDUCE_NONE)
        memcpy(to, from, (size_t)(n * job->width));
    else
        scatter_combine(job->how, job->updates->dtype, to, from, n);
}

/* Single ones without a call each: `width` is a constant after inlining. */
static inline void scatter_apply_one(const scatter_job *job, char *to, const char *from, const size_t width)
{
    if (job->how == REDUCE_NONE)
        memcpy(to, from, width);
    else if (job->how == REDUCE_ADD && job->updates->dtype == PRONY_FLOAT32)
        *(float *)to += *(const float *)from;
    else
        scatter_combine(job->how, job->updates->dtype, to, from, 1);
}

/* Entries to `places`, one after another; those of an index that was expanded along the other axes follow each other in
 * memory. */
static inline void apply_entries(const scatter_job *job, const int64_t *places, const char *from, int64_t count,
                                 const size_t width)
{
    for (int64_t i = 0, run; i < count; i += run) {
        char *to = job->to + places[i] * (int64_t)width;
        for (run = 1; i + run < count && places[i + run] == places[i] + run;) run++;
        if (run == 1)
            scatter_apply_one(job, to, from + i * (int64_t)width, width);
        else
            apply_run(job, to, from + i * (int64_t)width, run);
    }
}

/* Entries [first, first + n), one after another. */
static void scatter_entries(const scatter_job *job, int64_t first, int64_t n)
{
    int64_t places[PRN_INDEX_BLOCK];
    for (int64_t end = first + n, count; first < end && !prn_cancelled(); first += count) {
        count = end - first < PRN_INDEX_BLOCK ? end - first : PRN_INDEX_BLOCK;
        prn_index_element_places(&job->elements, first, count, places);
        const char *from = (const char *)job->updates->data + first * job->width;
        if (job->width == 4)
            apply_entries(job, places, from, count, 4);
        else
            apply_entries(job, places, from, count, (size_t)job->width);
    }
}

/* `n` neighbours across the indexed axis. If an index was expanded to them, they are one run. */
static void scatter_strip(const scatter_job *job, int64_t first, int64_t n)
{
    if (!job->in_line || !prn_index_elements_same(&job->elements, first, n)) {
        scatter_entries(job, first, n);
        return;
    }
    int64_t place;
    prn_index_element_places(&job->elements, first, 1, &place);
    apply_run(job, job->to + place * job->width, (const char *)job->updates->data + first * job->width, n);
}

/* Lines along the indexed axis do not meet: each strip of them is one task. */
static void scatter_strips(void *argument, int64_t begin, int64_t end)
{
    const scatter_job *job = argument;
    for (int64_t item = begin; item < end; item++) {
        const int64_t outer = item / job->strips, column = item % job->strips * PRN_INDEX_BLOCK;
        const int64_t left = job->inner - column, n = left < PRN_INDEX_BLOCK ? left : PRN_INDEX_BLOCK;
        const int64_t first = outer * job->along * job->inner + column;
        if (job->inner == 1) {
            scatter_entries(job, first, job->along);
        } else {
            for (int64_t k = 0; k < job->along; k++) scatter_strip(job, first + k * job->inner, n);
        }
    }
}

static prony_status scatter_run(const prony_context *context)
{
    scatter_job job = {.how = scatter_reduction_of(context),
                       .updates = context->inputs[2],
                       .to = context->outputs[0]->data,
                       .elements = prn_index_elements_make(context, ((const scatter_params *)context->params)->axis),
                       .width = (int64_t)prn_copy_width(context->inputs[2]->dtype)};
    const prn_index_elements *elements = &job.elements;
    PRN_TRY(prn_index_check_range(context, &elements->extent, 1));
    scatter_copy_data(context);
    if (elements->count == 0) return PRONY_OK;
    job.along = elements->dim[elements->axis];
    job.inner = 1;
    for (int i = elements->axis + 1; i < elements->rank; i++) job.inner *= elements->dim[i];
    job.strips = prn_ceil_div(job.inner, PRN_INDEX_BLOCK);
    job.in_line = elements->axis == elements->rank - 2;
    prn_parallel_items(context->threads, elements->count / (job.along * job.inner) * job.strips,
                       elements->count * (16 + job.width), scatter_strips, &job);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static void find_elements(const void *argument, int64_t first, int64_t n, int64_t *places)
{
    prn_index_element_places(argument, first, n, places);
}

/* Indices out of range leave no state: the run refuses them, as the host's kernel does. */
static prony_status scatter_elements_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prn_index_elements elements =
        prn_index_elements_make(context, ((const scatter_params *)context->params)->axis);
    if (!prn_index_is_known(context, &elements.extent, 1)) return PRONY_OK;
    return scatter_opencl_prepare(context, out, find_elements, &elements, elements.count, 1, 1);
}

static prony_status scatter_elements_opencl_run(const prony_context *context)
{
    if (context->state) return prn_opencl_run(context);
    const prn_index_elements elements =
        prn_index_elements_make(context, ((const scatter_params *)context->params)->axis);
    return prn_index_check_range(context, &elements.extent, 1);
}
#endif

// clang-format off
static const prn_kernel scatter_kernels[] = {
    SCATTER_OPENCL_ROW(scatter_elements)
    {.name = "scatter_elements_reference", .backend = "reference", .run = scatter_run, .inplace = 1}, {0}};
// clang-format on

/* ---- ScatterND */

static prony_status scatter_nd_infer(const prony_context *context)
{
    const prony_shape *data = &context->inputs[0]->shape, *indices = &context->inputs[1]->shape;
    PRN_TRY(prn_index_check_tuples(context, 0));
    int first = (int)indices->dim[indices->rank - 1];
    prony_shape wanted = {.rank = indices->rank - 1 + data->rank - first};
    if (wanted.rank > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "rank %d is too large", wanted.rank);
    int at = 0;
    for (int i = 0; i < indices->rank - 1; i++) wanted.dim[at++] = indices->dim[i];
    for (int i = first; i < data->rank; i++) wanted.dim[at++] = data->dim[i];
    PRN_TRY(check_updates(context, &wanted));
    return prn_infer_same(context);
}

/* Blocks [first, first + n) to their places; those that follow each other are one. */
static inline void scatter_blocks(const scatter_job *job, const int64_t *places, const char *from, int64_t n,
                                  const size_t block)
{
    for (int64_t i = 0, run; i < n; i += run) {
        char *to = job->to + places[i];
        for (run = 1; i + run < n && places[i + run] == places[i] + run * (int64_t)block;) run++;
        if (run == 1 && job->how == REDUCE_NONE)
            memcpy(to, from + i * (int64_t)block, block);
        else if (job->how == REDUCE_NONE)
            memcpy(to, from + i * (int64_t)block, (size_t)run * block);
        else
            scatter_combine(job->how, job->updates->dtype, to, from + i * (int64_t)block,
                            run * (int64_t)block / job->width);
    }
}

/* Blocks may meet, but pieces at different places of a block do not: each place is one task. */
static void scatter_pieces(void *argument, int64_t begin, int64_t end)
{
    const scatter_job *job = argument;
    int64_t places[PRN_INDEX_BLOCK];
    const int64_t at = begin * job->piece, block = job->tuples.block;
    const int64_t bytes = end * job->piece < block ? (end - begin) * job->piece : block - at;
    for (int64_t first = 0, n; first < job->tuples.count && !prn_cancelled(); first += n) {
        n = job->tuples.count - first < PRN_INDEX_BLOCK ? job->tuples.count - first : PRN_INDEX_BLOCK;
        prn_index_tuple_places(&job->tuples, first, n, places);
        if (bytes == block) {
            const char *from = (const char *)job->updates->data + first * block;
            if (block == 4)
                scatter_blocks(job, places, from, n, 4);
            else
                scatter_blocks(job, places, from, n, (size_t)block);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            char *to = job->to + places[i] + at;
            const char *from = (const char *)job->updates->data + (first + i) * block + at;
            if (job->how == REDUCE_NONE)
                memcpy(to, from, (size_t)bytes);
            else
                scatter_combine(job->how, job->updates->dtype, to, from, bytes / job->width);
        }
    }
}

static prony_status scatter_nd_run(const prony_context *context)
{
    enum { PIECE_BYTES = 1024 };
    scatter_job job = {.how = scatter_reduction_of(context),
                       .updates = context->inputs[2],
                       .to = context->outputs[0]->data,
                       .tuples = prn_index_tuples_make(context, 0),
                       .width = (int64_t)prn_copy_width(context->inputs[2]->dtype),
                       .piece = PIECE_BYTES};
    PRN_TRY(prn_index_check_range(context, job.tuples.dim, job.tuples.tuple));
    scatter_copy_data(context);
    if (job.tuples.count == 0 || job.tuples.block == 0) return PRONY_OK;
    prn_parallel_items(context->threads, prn_ceil_div(job.tuples.block, PIECE_BYTES),
                       job.tuples.count * job.tuples.block, scatter_pieces, &job);
    return PRONY_OK;
}

/* ---- ScatterND by constant indices that are a grid, as assignments to a slice are exported: a copy */

/* True if no two places of such a grid meet: each step leads beyond all that the axes behind it reach. */
static bool scatter_is_apart(const prony_shape *shape, const int64_t *step, int64_t block)
{
    int64_t reach = block;
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        if (shape->dim[axis] == 1) continue;
        if (step[axis] < reach) return false;
        reach += step[axis] * (shape->dim[axis] - 1);
    }
    return true;
}

static void find_tuples(const void *argument, int64_t first, int64_t n, int64_t *places)
{
    prn_index_tuple_places(argument, first, n, places);
}

static bool find_grid(const prony_context *context, prn_copy *copy, int64_t *offset)
{
    const prn_index_tuples tuples = prn_index_tuples_make(context, 0);
    prony_shape shape = context->inputs[1]->shape;
    int64_t step[PRONY_MAX_RANK], from = prony_shape_numel(&context->inputs[2]->shape);
    const int64_t width = (int64_t)prn_copy_width(context->inputs[2]->dtype);
    if (scatter_reduction_of(context) != REDUCE_NONE || tuples.block == 0 ||
        !prn_index_is_known(context, tuples.dim, tuples.tuple))
        return false;
    shape.rank--;
    if (!prn_index_is_grid(&shape, find_tuples, &tuples, offset, step) || !scatter_is_apart(&shape, step, tuples.block))
        return false;
    for (int axis = 0; axis < shape.rank; axis++) {
        from /= shape.dim[axis];
        prn_copy_axis(copy, shape.dim[axis], from, shape.dim[axis] == 1 ? from : step[axis] / width);
    }
    prn_copy_axis(copy, tuples.block / width, 1, 1);
    return true;
}

typedef struct nd_state {
    bool grid;
    int64_t offset; /* in bytes */
    prn_copy copy;  /* from the updates */
} nd_state;

static prony_status scatter_nd_prepare(const prony_context *context, prn_prepared *out)
{
    nd_state state = {0};
    state.grid = find_grid(context, &state.copy, &state.offset);
    return prn_prepared_keep(context, &state, sizeof state, out);
}

static prony_status scatter_nd_native(const prony_context *context)
{
    const nd_state *state = context->state;
    if (!state->grid) return scatter_nd_run(context);
    scatter_copy_data(context);
    prn_copy_native(context->threads, prn_copy_width(context->inputs[2]->dtype), &state->copy, context->inputs[2]->data,
                    (char *)context->outputs[0]->data + state->offset);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static prony_status scatter_nd_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    const prn_index_tuples tuples = prn_index_tuples_make(context, 0);
    const int64_t width = (int64_t)prn_copy_width(context->inputs[0]->dtype);
    if (!prn_index_is_known(context, tuples.dim, tuples.tuple)) return PRONY_OK;
    return scatter_opencl_prepare(context, out, find_tuples, &tuples, tuples.count, tuples.block / width, width);
}

static prony_status scatter_nd_opencl_run(const prony_context *context)
{
    if (context->state) return prn_opencl_run(context);
    const prn_index_tuples tuples = prn_index_tuples_make(context, 0);
    return prn_index_check_range(context, tuples.dim, tuples.tuple);
}
#endif

// clang-format off
static const prn_kernel scatter_nd_kernels[] = {
    SCATTER_OPENCL_ROW(scatter_nd)
    {.name = "scatter_nd_native", .backend = "native", .prepare = scatter_nd_prepare, .run = scatter_nd_native,
     .release = prn_free, .inplace = 1},
    {.name = "scatter_nd_reference", .backend = "reference", .run = scatter_nd_run, .inplace = 1},
    {0}};

const prn_op prn_ops_scatter[] = {
    {.name = "ScatterElements", .since_opset = 11, .inputs = {3, 3}, .non_weight_inputs = 2,
     .params = scatter_attributes, .params_bytes = sizeof(scatter_params), .check = scatter_check,
     .infer = scatter_infer, .cost = scatter_cost, .cost_text = "0; with a reduction, one per update",
     .kernels = scatter_kernels},
    {.name = "Scatter", .since_opset = 9, .inputs = {3, 3}, .non_weight_inputs = 2,
     .params = scatter_attributes, .params_bytes = sizeof(scatter_params), .check = scatter_check,
     .infer = scatter_infer, .cost = scatter_cost, .cost_text = "0", .kernels = scatter_kernels},
    {.name = "ScatterND", .since_opset = 11, .inputs = {3, 3}, .non_weight_inputs = 2,
     .params = scatter_nd_attributes, .params_bytes = sizeof(scatter_params), .check = scatter_check,
     .infer = scatter_nd_infer, .cost = scatter_cost, .cost_text = "0; with a reduction, one per updated element",
     .kernels = scatter_nd_kernels},
    {0}};
// clang-format on
