/* Walks along one axis: ArgMax, ArgMin, CumSum, CumProd. The tensor is seen as [outer, length, inner]; each line along
 * `length` is done by one task. */
#include "base/threads/cancel.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/fold.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

#include <string.h>

typedef struct line_job {
    const prony_value *x, *y;
    int64_t length, inner;
    int64_t group;                    /* neighbouring lines that are walked along together */
    bool smallest, last;              /* ArgMin; the last of equals */
    bool product, exclusive, reverse; /* CumProd instead of CumSum */
} line_job;

static int64_t line_start(const line_job *job, int64_t line)
{
    return line / job->inner * job->length * job->inner + line % job->inner;
}

static int64_t set_lines(line_job *job, int axis)
{
    const prony_shape *shape = &job->x->shape;
    job->length = shape->rank ? shape->dim[axis] : 1;
    job->inner = shape->rank ? prn_shape_count(shape, axis + 1, shape->rank) : 1;
    return (shape->rank ? prn_shape_count(shape, 0, axis) : 1) * job->inner;
}

/* Counts the lines from `line` on that are neighbours, as far as a block reaches; one where their elements are. */
static int64_t line_count(const line_job *job, int64_t line, int64_t end)
{
    if (job->inner == 1) return 1;
    int64_t n = job->inner - line % job->inner;
    if (n > end - line) n = end - line;
    return n < PRN_BLOCK ? n : PRN_BLOCK;
}

/* ---- ArgMax, ArgMin */

typedef struct arg_params {
    int64_t axis, keepdims, select_last_index;
} arg_params;

static const prn_param arg_attributes[] = {
    PRN_INT(arg_params, axis, 0), PRN_INT(arg_params, keepdims, 1), PRN_INT(arg_params, select_last_index, 0), {0}};

/* A block as doubles or 64-bit integers; unsigned 64-bit values compare as signed ones do once the top bit is turned
 * over. */
typedef union line_block {
    double real[PRN_BLOCK];
    int64_t whole[PRN_BLOCK];
} line_block;

static void load_block(const prony_value *x, line_block *block, int64_t first, int64_t n)
{
    if (prn_dtype_is_float(x->dtype)) {
        prn_load_f64(block->real, x->data, x->dtype, first, n);
        return;
    }
    prn_load_i64(block->whole, x->data, x->dtype, first, n);
    for (int64_t i = 0; i < n && x->dtype == PRONY_UINT64; i++) block->whole[i] ^= INT64_MIN;
}

/* The extreme of a line whose elements are neighbours, and then where it stands. */
static int64_t arg_of_row(const line_job *job, int64_t start)
{
    const prn_fold_table *folds = prn_fold_loops();
    const prn_fold fold = job->smallest ? PRN_FOLD_MIN : PRN_FOLD_MAX;
    const bool real = prn_dtype_is_float(job->x->dtype);
    const int64_t blocks = prn_ceil_div(job->length, PRN_BLOCK);
    line_block block;
    if (job->x->dtype == PRONY_FLOAT32) {
        const float *x = (const float *)job->x->data + start;
        const prn_vec_table *vec = prn_vec();
        return folds->find_f32(x, job->length, (job->smallest ? vec->min : vec->max)(x, job->length), job->last);
    }
    double best_real = job->smallest ? (double)INFINITY : -(double)INFINITY;
    int64_t best_whole = job->smallest ? INT64_MAX : INT64_MIN, found = -1;
    for (int64_t at = 0, n; at < job->length && !prn_cancelled(); at += n) {
        n = job->length - at < PRN_BLOCK ? job->length - at : PRN_BLOCK;
        load_block(job->x, &block, start + at, n);
        if (real) best_real = folds->row_f64[fold](best_real, block.real, n);
        if (!real) best_whole = folds->row_i64[fold](best_whole, block.whole, n);
    }
    for (int64_t k = 0; k < blocks && found < 0 && !prn_cancelled(); k++) {
        const int64_t at = (job->last ? blocks - 1 - k : k) * PRN_BLOCK, left = job->length - at;
        const int64_t n = left < PRN_BLOCK ? left : PRN_BLOCK;
        load_block(job->x, &block, start + at, n);
        found = real ? folds->find_f64(block.real, n, best_real, job->last)
                     : folds->find_i64(block.whole, n, best_whole, job->last);
        if (found >= 0) found += at;
    }
    return found;
}

/* `n` neighbouring lines, an element of each at a time. */
static void arg_of_columns(const line_job *job, int64_t start, int64_t n, int64_t *at)
{
    const prn_fold_table *folds = prn_fold_loops();
    line_block best, block;
    load_block(job->x, &best, start, n);
    memset(at, 0, (size_t)n * sizeof *at);
    for (int64_t k = 1; k < job->length && !prn_cancelled_at(k); k++) {
        load_block(job->x, &block, start + k * job->inner, n);
        if (prn_dtype_is_float(job->x->dtype))
            folds->ahead_f64(best.real, at, block.real, n, k, job->smallest, job->last);
        else
            folds->ahead_i64(best.whole, at, block.whole, n, k, job->smallest, job->last);
    }
}

static void arg_lines(void *argument, int64_t begin, int64_t end)
{
    const line_job *job = argument;
    int64_t *y = job->y->data;
    for (int64_t line = begin, n; line < end; line += n) {
        n = line_count(job, line, end);
        if (job->inner == 1)
            y[line] = arg_of_row(job, line_start(job, line));
        else
            arg_of_columns(job, line_start(job, line), n, y + line);
    }
}

typedef enum line_kind { ARG_MAX, ARG_MIN, CUM_SUM, CUM_PROD } line_kind;

static line_kind arg_reduce_kind_of(const prony_context *context)
{
    return *(const line_kind *)prn_variant(context);
}

/* The lines of a node; returns their number. */
static int64_t arg_lines_of(const prony_context *context, line_job *job)
{
    const arg_params *params = context->params;
    *job = (line_job){.x = context->inputs[0],
                      .y = context->outputs[0],
                      .smallest = arg_reduce_kind_of(context) == ARG_MIN,
                      .last = context->node->opset >= 12 && params->select_last_index};
    int64_t axis = params->axis;
    prn_axis_normalize(&axis, job->x->shape.rank);
    return set_lines(job, (int)axis);
}

static prony_status run_arg(const prony_context *context)
{
    line_job job;
    const int64_t lines = arg_lines_of(context, &job);
    prn_parallel_items(context->threads, lines, 4 * (int64_t)prn_value_bytes(job.x), arg_lines, &job);
    return PRONY_OK;
}

#ifdef PRN_HAVE_OPENCL
static prony_status arg_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    line_job job;
    (void)arg_lines_of(context, &job);
    return prn_opencl_arg_prepare(context, out, job.length, job.inner, job.smallest, job.last);
}
#endif

static prony_status infer_arg(const prony_context *context)
{
    const arg_params *params = context->params;
    const prony_shape *in = &context->inputs[0]->shape;
    int64_t axis = params->axis;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    PRN_TRY(prn_check_rank(context, 0, 1, PRONY_MAX_RANK));
    if (!prn_axis_normalize(&axis, in->rank))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)params->axis,
                          in->rank);
    if (in->dim[axis] == 0)
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "axis %lld has 0 elements", (long long)params->axis);
    prony_shape out = {.rank = 0};
    for (int d = 0; d < in->rank; d++) {
        if (d != axis || params->keepdims) out.dim[out.rank++] = d == axis ? 1 : in->dim[d];
    }
    prn_set_output(context, 0, PRONY_INT64, &out);
    return PRONY_OK;
}

static prony_status cost_arg(const prony_context *context, prony_cost *cost)
{
    const uint64_t inputs = (uint64_t)prony_shape_numel(&context->inputs[0]->shape);
    prn_cost_fact(cost, "input_elements", (int64_t)inputs);
    prn_cost_fact(cost, "output_elements", (int64_t)prn_output_elements(context));
    return prn_cost_elementwise(context, cost, inputs - prn_output_elements(context), 1, 0);
}

/* ---- CumSum, CumProd */

typedef struct cumsum_params {
    int64_t exclusive, reverse;
} cumsum_params;

static const prn_param cumsum_attributes[] = {
    PRN_INT(cumsum_params, exclusive, 0), PRN_INT(cumsum_params, reverse, 0), {0}};

/* The place along the line of element k in the direction of the sum. */
static int64_t arg_reduce_place_of(const line_job *job, int64_t k)
{
    return job->reverse ? job->length - 1 - k : k;
}

/* A line whose elements are neighbours: block by block, each from its end if the sum runs in reverse. */
#define CUMULATE_ROW(name, type, wide, field, load, store)                                                             \
    static void cumulate_row_##name(const line_job *job, int64_t start)                                                \
    {                                                                                                                  \
        line_block block;                                                                                              \
        wide sum = job->product;                                                                                       \
        for (int64_t k = 0, n; k < job->length && !prn_cancelled(); k += n) {                                          \
            n = job->length - k < PRN_BLOCK ? job->length - k : PRN_BLOCK;                                             \
            const int64_t first = start + (job->reverse ? job->length - k - n : k);                                    \
            load(block.field, job->x->data, job->x->dtype, first, n);                                                  \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const int64_t at = job->reverse ? n - 1 - i : i;                                                       \
                const wide before = sum, x = (wide)block.field[at];                                                    \
                sum = job->product ? sum * x : sum + x;                                                                \
                block.field[at] = (type)(job->exclusive ? before : sum);                                               \
            }                                                                                                          \
            store(job->y->data, job->y->dtype, first, block.field, n);                                                 \
        }                                                                                                              \
    }
CUMULATE_ROW(f64, double, double, real, prn_load_f64, prn_store_f64)
CUMULATE_ROW(i64, int64_t, uint64_t, whole, prn_load_i64, prn_store_i64)

/* Neighbouring lines together. */
#define CUMULATE_COLUMNS(name, type, field, load, store)                                                               \
    static void cumulate_columns_##name(const line_job *job, int64_t start, int64_t lines)                             \
    {                                                                                                                  \
        const prn_fold fold = job->product ? PRN_FOLD_MUL : PRN_FOLD_ADD;                                              \
        line_block block, sum;                                                                                         \
        for (int64_t i = 0; i < lines; i++) sum.field[i] = job->product;                                               \
        for (int64_t k = 0; k < job->length && !prn_cancelled_at(k); k++) {                                            \
            const int64_t first = start + arg_reduce_place_of(job, k) * job->inner;                                    \
            load(block.field, job->x->data, job->x->dtype, first, lines);                                              \
            if (job->exclusive) store(job->y->data, job->y->dtype, first, sum.field, lines);                           \
            prn_fold_loops()->columns_##name[fold](sum.field, block.field, lines);                                     \
            if (!job->exclusive) store(job->y->data, job->y->dtype, first, sum.field, lines);                          \
        }                                                                                                              \
    }
CUMULATE_COLUMNS(f64, double, real, prn_load_f64, prn_store_f64)
CUMULATE_COLUMNS(i64, int64_t, whole, prn_load_i64, prn_store_i64)

enum { LEAST_GROUP = 128, WIDEST_GROUP = 1024, TASKS_EACH = 3 };

/* Sums of float32, without going through blocks of doubles; the same bits. */
static void cumulate_columns_f32(const line_job *job, int64_t start, int64_t lines)
{
    const prn_fold_table *loops = prn_fold_loops();
    double sum[WIDEST_GROUP];
    for (int64_t i = 0; i < lines; i++) sum[i] = 0.0;
    for (int64_t k = 0; k < job->length && !prn_cancelled_at(k); k++) {
        const int64_t first = start + arg_reduce_place_of(job, k) * job->inner;
        loops->cumulate_f32(sum, (const float *)job->x->data + first, (float *)job->y->data + first, lines,
                            job->exclusive);
    }
}

static int64_t arg_reduce_groups_of(const line_job *job)
{
    return prn_ceil_div(job->inner, job->group);
}

static bool is_narrow(const line_job *job)
{
    return job->x->dtype == PRONY_FLOAT32 && !job->product;
}

/* Rows are read in pieces as long as can be with a few tasks for each thread, and of some cache lines at least. */
static int64_t arg_reduce_group_of(const line_job *job, int64_t lines, int threads)
{
    const int64_t blocks = lines / job->inner, widest = is_narrow(job) ? WIDEST_GROUP : PRN_BLOCK;
    const int64_t each = prn_ceil_div(job->inner, threads > 1 ? prn_ceil_div(TASKS_EACH * threads, blocks) : 1);
    return prn_least(each < LEAST_GROUP ? LEAST_GROUP : prn_ceil_div(each, 16) * 16, widest);
}

static void sum_groups(void *argument, int64_t begin, int64_t end)
{
    const line_job *job = argument;
    const bool real = prn_dtype_is_float(job->x->dtype);
    for (int64_t group = begin; group < end; group++) {
        const int64_t column = group % arg_reduce_groups_of(job) * job->group, left = job->inner - column;
        const int64_t start = line_start(job, group / arg_reduce_groups_of(job) * job->inner + column);
        const int64_t n = prn_least(left, job->group);
        if (job->inner == 1)
            (real ? cumulate_row_f64 : cumulate_row_i64)(job, start);
        else if (is_narrow(job))
            cumulate_columns_f32(job, start, n);
        else
            (real ? cumulate_columns_f64 : cumulate_columns_i64)(job, start, n);
    }
}

static prony_status cumsum_axis(const prony_context *context, int64_t *axis, bool *known)
{
    size_t count;
    const int rank = context->inputs[0]->shape.rank;
    PRN_TRY(prn_input_ints(context, 1, axis, 1, &count, known));
    if (!*known) return PRONY_OK;
    const int64_t given = count ? *axis : PRN_ABSENT;
    if (count == 1 && prn_axis_normalize(axis, rank)) return PRONY_OK;
    return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)given, rank);
}

static prony_status run_cumulate(const prony_context *context)
{
    const cumsum_params *params = context->params;
    line_job job = {.x = context->inputs[0],
                    .y = context->outputs[0],
                    .product = arg_reduce_kind_of(context) == CUM_PROD,
                    .exclusive = params->exclusive != 0,
                    .reverse = params->reverse != 0};
    int64_t axis;
    bool known;
    PRN_TRY(cumsum_axis(context, &axis, &known));
    const int64_t lines = set_lines(&job, (int)axis);
    if (lines == 0) return PRONY_OK;
    job.group = arg_reduce_group_of(&job, lines, context->threads);
    prn_parallel_items(context->threads, lines / job.inner * arg_reduce_groups_of(&job),
                       4 * (int64_t)prn_value_bytes(job.x), sum_groups, &job);
    return PRONY_OK;
}

static prony_status infer_cumsum(const prony_context *context)
{
    int64_t axis;
    bool known;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    PRN_TRY(cumsum_axis(context, &axis, &known));
    return prn_infer_same(context);
}

/* One addition or multiplication per element; where the axis is known, none for the first of each line. */
static prony_status cost_cumsum(const prony_context *context, prony_cost *cost)
{
    int64_t axis = 0;
    bool known;
    PRN_TRY(cumsum_axis(context, &axis, &known));
    const uint64_t n = prn_output_elements(context);
    const int64_t length = known ? context->inputs[0]->shape.dim[axis] : 0;
    prn_cost_fact(cost, "output_elements", (int64_t)n);
    return prn_cost_elementwise(context, cost, length ? n - n / (uint64_t)length : n, 1, 0);
}

// clang-format off
static const prn_kernel argmax_kernels[] = {
    PRN_OPENCL_ROW("argmax_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, arg_opencl_prepare)
    {.name = "argmax_reference", .backend = "reference", .run = run_arg}, {0}};
static const prn_kernel argmin_kernels[] = {
    PRN_OPENCL_ROW("argmin_f32_opencl", PRN_TYPE_F32, prn_opencl_rows_supported, arg_opencl_prepare)
    {.name = "argmin_reference", .backend = "reference", .run = run_arg}, {0}};
// clang-format on
static const prn_kernel cumsum_kernels[] = {
    {.name = "cumsum_reference", .backend = "reference", .run = run_cumulate, .inplace = 1}, {0}};
static const prn_kernel cumprod_kernels[] = {
    {.name = "cumprod_reference", .backend = "reference", .run = run_cumulate, .inplace = 1}, {0}};

// clang-format off
const prn_op prn_ops_arg_reduce[] = {
    {.name = "ArgMax", .since_opset = 1, .inputs = {1, 1},
     .params = arg_attributes, .params_bytes = sizeof(arg_params), .variant = &(const line_kind){ARG_MAX},
     .infer = infer_arg, .cost = cost_arg, .cost_text = "input elements - n", .kernels = argmax_kernels},
    {.name = "ArgMin", .since_opset = 1, .inputs = {1, 1},
     .params = arg_attributes, .params_bytes = sizeof(arg_params), .variant = &(const line_kind){ARG_MIN},
     .infer = infer_arg, .cost = cost_arg, .cost_text = "input elements - n", .kernels = argmin_kernels},
    {.name = "CumSum", .since_opset = 11, .inputs = {2, 2}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 2,
     .params = cumsum_attributes, .params_bytes = sizeof(cumsum_params), .variant = &(const line_kind){CUM_SUM},
     .infer = infer_cumsum, .cost = cost_cumsum, .cost_text = "n - lines", .kernels = cumsum_kernels},
    {.name = "CumProd", .since_opset = 26, .inputs = {2, 2}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 2,
     .params = cumsum_attributes, .params_bytes = sizeof(cumsum_params), .variant = &(const line_kind){CUM_PROD},
     .infer = infer_cumsum, .cost = cost_cumsum, .cost_text = "n - lines", .kernels = cumprod_kernels},
    {0}};
// clang-format on
