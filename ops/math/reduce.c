/* Reductions over any set of axes: sum, mean, extremes, products, norms, logarithms of sums.
 * Neighbouring axes of the same fate are merged, so that a tensor is a chain of kept and reduced axes. The reference
 * walks any chain element by element in double or 64-bit integers; the kernels of reduce_native.c do so in rows, in
 * float32 also for the spatial axes of NHWC and blocked tensors. Invariant: each output's elements are combined by one
 * task in an order that the shapes alone decide. */
#include "ops/math/reduce.h"

#include "base/integers.h"
#include "base/memory/alloc.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/broadcast.h"
#include "base/threads/parallel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_rows.h"

typedef struct reduce_params {
    prn_ints axes;
    int64_t keepdims, noop_with_empty_axes;
} reduce_params;

static const prn_param attributes[] = {PRN_INTS(reduce_params, axes),
                                       PRN_INT(reduce_params, keepdims, 1),
                                       PRN_INT(reduce_params, noop_with_empty_axes, 0),
                                       {0}};

/* An operator's variant: operations per input element (before the sum) and per output element (after it). */
typedef struct reduce_op {
    prn_reduce_kind kind;
    uint64_t before, before_special, after, after_special;
} reduce_op;

static prn_reduce_kind reduce_kind_of(const prony_context *context)
{
    return ((const reduce_op *)prn_variant(context))->kind;
}

/* True if reducing a single element gives that element. */
static bool keeps_one(prn_reduce_kind kind)
{
    return kind != PRN_REDUCE_L1 && kind != PRN_REDUCE_L2 && kind != PRN_REDUCE_LOG_SUM &&
           kind != PRN_REDUCE_SUM_SQUARE;
}

/* ---- which axes */

typedef struct axis_set {
    bool known, noop;
    bool reduced[PRONY_MAX_RANK];
} axis_set;

/* The reduced axes, from the input or the attribute; none given means all, or none with noop_with_empty_axes. Not
 * known while the input has no data. */
static prony_status reduce_axes_of(const prony_context *context, axis_set *set)
{
    const reduce_params *params = context->params;
    const int rank = context->inputs[0]->shape.rank;
    int64_t axes[PRONY_MAX_RANK];
    size_t count = 0;
    *set = (axis_set){.known = true};
    if (prn_input(context, 1)) {
        PRN_TRY(prn_input_ints(context, 1, axes, PRONY_MAX_RANK, &count, &set->known));
        if (!set->known) return PRONY_OK;
    } else if (params->axes.count > PRONY_MAX_RANK) {
        return prony_fail(context, PRONY_INVALID_MODEL, "%zu axes for rank %d", params->axes.count, rank);
    } else {
        count = params->axes.count;
        for (size_t i = 0; i < count; i++) axes[i] = params->axes.v[i];
    }
    set->noop = count == 0 && params->noop_with_empty_axes;
    for (int d = 0; d < rank; d++) set->reduced[d] = count == 0 && !set->noop;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!prn_axis_normalize(&axis, rank)) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axes[i], rank);
        }
        set->reduced[axis] = true;
    }
    return PRONY_OK;
}

/* Axes that come with the data are read in the run. */
static prony_status reduce_prepare(const prony_context *context, prn_prepared *out)
{
    axis_set set;
    PRN_TRY(reduce_axes_of(context, &set));
    return set.known ? prn_prepared_keep(context, &set, sizeof set, out) : PRONY_OK;
}

static prony_status prepared_axes(const prony_context *context, axis_set *set)
{
    if (!context->state) return reduce_axes_of(context, set);
    *set = *(const axis_set *)context->state;
    return PRONY_OK;
}

static prn_reduction reduce_job_of(const prony_context *context, const axis_set *set)
{
    prn_reduction job = {
        .kind = reduce_kind_of(context), .x = context->inputs[0], .y = context->outputs[0], .count = 1};
    const prony_shape *shape = &job.x->shape;
    for (int d = 0; d < shape->rank; d++) {
        prn_chain_add(&job.chain, shape->dim[d], set->reduced[d]);
        if (set->reduced[d]) job.count *= shape->dim[d];
    }
    return job;
}

/* ---- reference */

static double start_of(prn_reduce_kind kind)
{
    if (kind == PRN_REDUCE_MAX) return -(double)INFINITY;
    if (kind == PRN_REDUCE_MIN) return (double)INFINITY;
    return kind == PRN_REDUCE_PROD ? 1.0 : 0.0;
}

static double step_f64(prn_reduce_kind kind, double sum, double x, double top)
{
    switch (kind) {
    case PRN_REDUCE_MAX:
        return x > sum || x != x ? x : sum;
    case PRN_REDUCE_MIN:
        return x < sum || x != x ? x : sum;
    case PRN_REDUCE_PROD:
        return sum * x;
    case PRN_REDUCE_L1:
        return sum + fabs(x);
    case PRN_REDUCE_L2:
    case PRN_REDUCE_SUM_SQUARE:
        return sum + x * x;
    case PRN_REDUCE_LOG_SUM_EXP:
        return sum + exp(x - top);
    case PRN_REDUCE_SUM:
    case PRN_REDUCE_MEAN:
    case PRN_REDUCE_LOG_SUM:
        break;
    }
    return sum + x;
}

/* Elements as the cursor comes to them. If the last axis is reduced they lie side by side, and a block is read at
 * once. */
typedef struct reader {
    int64_t first, count;
    union {
        double real[PRN_BLOCK];
        int64_t whole[PRN_BLOCK];
    };
} reader;

/* True if `offset` begins a new block, whose extent is then set. */
static bool begins_block(const prn_reduction *job, reader *reader, int64_t offset)
{
    if (offset >= reader->first && offset < reader->first + reader->count) return false;
    const prn_chain *chain = &job->chain;
    const int64_t row = chain->rank && chain->reduced[chain->rank - 1] ? chain->dim[chain->rank - 1] : 1;
    const int64_t left = row - offset % row;
    reader->first = offset;
    reader->count = left < PRN_BLOCK ? left : PRN_BLOCK;
    return true;
}

static double read_f64(const prn_reduction *job, reader *reader, int64_t offset)
{
    if (begins_block(job, reader, offset))
        prn_load_f64(reader->real, job->x->data, job->x->dtype, offset, reader->count);
    return reader->real[offset - reader->first];
}

static int64_t read_i64(const prn_reduction *job, reader *reader, int64_t offset)
{
    if (begins_block(job, reader, offset))
        prn_load_i64(reader->whole, job->x->data, job->x->dtype, offset, reader->count);
    return reader->whole[offset - reader->first];
}

static double reduce_f64(const prn_reduction *job, prn_reduce_kind kind, int64_t output, double top)
{
    reader reader;
    reader.first = reader.count = 0;
    prn_cursor cursor;
    prn_cursor_start(&cursor, &job->chain, output);
    double sum = start_of(kind);
    for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
        sum = step_f64(kind, sum, read_f64(job, &reader, cursor.offset), top);
    }
    return prn_reduce_finish(kind, sum, (double)job->count, top);
}

/* Integer sums wrap; the extremes of nothing are the type's ends. */
static int64_t reduce_i64(const prn_reduction *job, int64_t output)
{
    const prony_dtype dtype = job->x->dtype;
    const bool is_unsigned = dtype == PRONY_UINT64;
    reader reader;
    reader.first = reader.count = 0;
    prn_cursor cursor;
    prn_cursor_start(&cursor, &job->chain, output);
    uint64_t sum = job->kind == PRN_REDUCE_PROD;
    for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
        const int64_t x = read_i64(job, &reader, cursor.offset), best = (int64_t)sum;
        const bool less = is_unsigned ? (uint64_t)x < sum : x < best;
        if (job->kind == PRN_REDUCE_MAX || job->kind == PRN_REDUCE_MIN) {
            if (i == 0 || (x != best && less == (job->kind == PRN_REDUCE_MIN))) sum = (uint64_t)x;
        } else if (job->kind == PRN_REDUCE_PROD) {
            sum *= (uint64_t)x;
        } else if (job->kind == PRN_REDUCE_L1) {
            sum += is_unsigned || x >= 0 ? (uint64_t)x : 0 - (uint64_t)x;
        } else if (job->kind == PRN_REDUCE_SUM_SQUARE) {
            sum += (uint64_t)x * (uint64_t)x;
        } else {
            sum += (uint64_t)x;
        }
    }
    if (job->kind == PRN_REDUCE_MEAN && job->count > 0) {
        return is_unsigned ? (int64_t)(sum / (uint64_t)job->count) : (int64_t)sum / job->count;
    }
    return (int64_t)sum;
}

static void reference_outputs(void *argument, int64_t begin, int64_t end)
{
    const prn_reduction *job = argument;
    const prony_dtype dtype = job->x->dtype;
    const bool extreme = job->kind == PRN_REDUCE_MAX || job->kind == PRN_REDUCE_MIN;
    const bool no_extreme = dtype == PRONY_BOOL && job->count == 0 && extreme;
    const bool real = prn_reduce_is_real(job->kind, dtype) || job->count == 0;
    for (int64_t output = begin; output < end; output++) {
        if (no_extreme) {
            prn_put_i64(job->y->data, dtype, output, job->kind == PRN_REDUCE_MIN);
        } else if (real) {
            double top = job->kind == PRN_REDUCE_LOG_SUM_EXP ? reduce_f64(job, PRN_REDUCE_MAX, output, 0.0) : 0.0;
            if (isinf(top)) top = 0.0;
            prn_put_f64(job->y->data, dtype, output, reduce_f64(job, job->kind, output, top));
        } else {
            prn_put_i64(job->y->data, dtype, output, reduce_i64(job, output));
        }
    }
}

static prony_status reduce_run_reference(const prony_context *context)
{
    axis_set set;
    PRN_TRY(prepared_axes(context, &set));
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    if (set.noop && keeps_one(reduce_kind_of(context))) {
        prn_copy_bytes(context->threads, x->data, y->data, prn_value_bytes(x));
        return PRONY_OK;
    }
    prn_reduction job = reduce_job_of(context, &set);
    prn_parallel_items(context->threads, prony_shape_numel(&y->shape), 4 * (int64_t)prn_value_bytes(x),
                       reference_outputs, &job);
    return PRONY_OK;
}

/* ---- in rows */

/* All spatial axes of a tensor that is not plain. */
static bool pixels_only(const prony_shape *shape, const axis_set *set)
{
    if (shape->rank < 3 || set->reduced[0] || set->reduced[1]) return false;
    for (int d = 2; d < shape->rank; d++) {
        if (!set->reduced[d]) return false;
    }
    return true;
}

static bool reduce_supported_native(const prony_context *context)
{
    axis_set set;
    if (reduce_axes_of(context, &set) != PRONY_OK || !set.known || set.noop) return false;
    return reduce_job_of(context, &set).count > 0;
}

/* The rounding of integers must not depend on the order of a sum of exponentials. */
static bool supported_for_floats(const prony_context *context)
{
    return prn_dtype_is_float(context->inputs[0]->dtype) && reduce_supported_native(context);
}

static void native_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    axis_set set;
    const prony_value *x = context->inputs[0];
    if (reduce_axes_of(context, &set) != PRONY_OK || !set.known || !pixels_only(&x->shape, &set)) return;
    const prn_layout layout = (prn_layout)x->layout;
    const int64_t block = prn_layout_block(layout);
    const bool keepdims = ((const reduce_params *)context->params)->keepdims != 0;
    const int64_t whole = context->precision == PRONY_PRECISION_FP32_STRICT ? PRN_LAYOUT_MOST_BLOCK : block;
    if (!keepdims && block && x->shape.dim[1] % whole) return;
    in[0] = layout;
    out[0] = keepdims ? layout : PRN_PLAIN;
}

static prony_status reduce_run_native(const prony_context *context)
{
    axis_set set;
    PRN_TRY(prepared_axes(context, &set));
    prn_reduction job = reduce_job_of(context, &set);
    const prony_shape *shape = &job.x->shape;
    const int64_t block = prn_layout_block((prn_layout)job.x->layout);
    if (prony_shape_numel(shape) == 0) return PRONY_OK;
    if (job.x->layout != PRN_PLAIN) {
        job.chain.rank = 0;
        prn_chain_add(&job.chain, shape->dim[0] * (block ? prn_ceil_div(shape->dim[1], block) : 1), false);
        prn_chain_add(&job.chain, job.count, true);
        prn_chain_add(&job.chain, block ? block : shape->dim[1], false);
    }
    prn_reduce_native(context->threads, &job);
    if (job.y->dtype == PRONY_FLOAT32) prn_clear_padding(job.y);
    return PRONY_OK;
}

/* ---- OpenCL */

#ifdef PRN_HAVE_OPENCL
static prn_opencl_fold opencl_fold_of(prn_reduce_kind kind)
{
    switch (kind) {
    case PRN_REDUCE_SUM:
        break;
    case PRN_REDUCE_MEAN:
        return PRN_OPENCL_FOLD_MEAN;
    case PRN_REDUCE_MAX:
        return PRN_OPENCL_FOLD_MAX;
    case PRN_REDUCE_MIN:
        return PRN_OPENCL_FOLD_MIN;
    case PRN_REDUCE_PROD:
        return (prn_opencl_fold){"1.0f", "x", "a * b", "sum", false};
    case PRN_REDUCE_L1:
        return (prn_opencl_fold){"0.0f", "fabs(x)", NULL, "sum", false};
    case PRN_REDUCE_L2:
        return (prn_opencl_fold){"0.0f", "x * x", NULL, "sqrt(sum)", false};
    case PRN_REDUCE_LOG_SUM:
        return (prn_opencl_fold){"0.0f", "x", NULL, "log(sum)", false};
    case PRN_REDUCE_LOG_SUM_EXP:
        return (prn_opencl_fold){"0.0f", "exp(x - top)", NULL, "top + log(sum)", true};
    case PRN_REDUCE_SUM_SQUARE:
        return (prn_opencl_fold){"0.0f", "x * x", NULL, "sum", false};
    }
    return PRN_OPENCL_FOLD_SUM;
}

static bool reduce_opencl_supported(const prony_context *context)
{
    return reduce_supported_native(context) && prn_opencl_reduce_supported(context);
}

static prony_status reduce_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    axis_set set;
    PRN_TRY(reduce_axes_of(context, &set));
    const prn_opencl_fold fold = opencl_fold_of(reduce_kind_of(context));
    const prn_reduction job = reduce_job_of(context, &set);
    return prn_opencl_reduce_prepare(context, out, &fold, &job.chain);
}
#endif

/* ---- inference and cost */

static prony_status reduce_infer(const prony_context *context)
{
    axis_set set;
    const prony_value *x = context->inputs[0];
    const bool keepdims = ((const reduce_params *)context->params)->keepdims != 0;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER_BOOL));
    PRN_TRY(reduce_axes_of(context, &set));
    prony_shape shape = prn_shape_unknown();
    if (set.known) {
        shape.rank = 0;
        for (int d = 0; d < x->shape.rank; d++) {
            if (set.reduced[d] && !keepdims) continue;
            shape.dim[shape.rank++] = set.reduced[d] ? 1 : x->shape.dim[d];
        }
    }
    prn_set_output(context, 0, x->dtype, &shape);
    return PRONY_OK;
}

static prony_status reduce_cost(const prony_context *context, prony_cost *cost)
{
    const reduce_op *each = prn_variant(context);
    axis_set set;
    PRN_TRY(reduce_axes_of(context, &set));
    const uint64_t inputs = (uint64_t)prony_shape_numel(&context->inputs[0]->shape);
    const uint64_t outputs = prn_output_elements(context);
    prn_cost_fact(cost, "input_elements", (int64_t)inputs);
    prn_cost_fact(cost, "output_elements", (int64_t)outputs);
    if ((set.noop && keeps_one(each->kind)) || inputs == 0) return PRONY_OK;
    PRN_TRY(prn_cost_elementwise(context, cost, inputs - outputs, 1, 0));
    PRN_TRY(prn_cost_elementwise(context, cost, inputs, each->before, each->before_special));
    return prn_cost_elementwise(context, cost, outputs, each->after, each->after_special);
}

// clang-format off
static const prn_kernel reduce_sum_kernels[] = {
    PRN_OPENCL_ROW("reduce_sum_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_sum_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_sum_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_sum_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_mean_kernels[] = {
    PRN_OPENCL_ROW("reduce_mean_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_mean_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_mean_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_mean_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_max_kernels[] = {
    PRN_OPENCL_ROW("reduce_max_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_max_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_max_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_max_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_min_kernels[] = {
    PRN_OPENCL_ROW("reduce_min_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_min_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_min_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_min_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_l1_kernels[] = {
    PRN_OPENCL_ROW("reduce_l1_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_l1_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_l1_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_l1_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_l2_kernels[] = {
    PRN_OPENCL_ROW("reduce_l2_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_l2_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_l2_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_l2_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_sum_square_kernels[] = {
    PRN_OPENCL_ROW("reduce_sum_square_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_sum_square_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_sum_square_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_sum_square_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_prod_kernels[] = {
    PRN_OPENCL_ROW("reduce_prod_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_prod_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_prod_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_prod_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_log_sum_kernels[] = {
    PRN_OPENCL_ROW("reduce_log_sum_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_log_sum_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_log_sum_native", .backend = "native", .supported = reduce_supported_native, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_log_sum_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};
static const prn_kernel reduce_log_sum_exp_kernels[] = {
    PRN_OPENCL_ROW("reduce_log_sum_exp_f32_opencl", PRN_TYPE_F32, reduce_opencl_supported, reduce_opencl_prepare, .host_inputs = 2)
    {.name = "reduce_log_sum_exp_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = reduce_supported_native,
     .layouts = native_layouts, .prepare = reduce_prepare, .run = reduce_run_native, .release = prn_free},
    {.name = "reduce_log_sum_exp_native", .backend = "native", .supported = supported_for_floats, .prepare = reduce_prepare, .run = reduce_run_native,
     .release = prn_free},
    {.name = "reduce_log_sum_exp_reference", .backend = "reference", .prepare = reduce_prepare, .run = reduce_run_reference,
     .release = prn_free}, {0}};

const prn_op prn_ops_reduce[] = {
    {.name = "ReduceSum", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_SUM, 0, 0, 0, 0},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "input elements - n", .kernels = reduce_sum_kernels},
    {.name = "ReduceMean", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_MEAN, 0, 0, 1, 1},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "input elements; special n", .kernels = reduce_mean_kernels},
    {.name = "ReduceMax", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_MAX, 0, 0, 0, 0},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "input elements - n", .kernels = reduce_max_kernels},
    {.name = "ReduceMin", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_MIN, 0, 0, 0, 0},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "input elements - n", .kernels = reduce_min_kernels},
    {.name = "ReduceL1", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_L1, 1, 0, 0, 0},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "2 input elements - n", .kernels = reduce_l1_kernels},
    {.name = "ReduceL2", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_L2, 1, 0, 1, 1},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "2 input elements; special n", .kernels = reduce_l2_kernels},
    {.name = "ReduceSumSquare", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_SUM_SQUARE, 1, 0, 0, 0},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "2 input elements - n", .kernels = reduce_sum_square_kernels},
    {.name = "ReduceProd", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_PROD, 0, 0, 0, 0},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "input elements - n", .kernels = reduce_prod_kernels},
    {.name = "ReduceLogSum", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_LOG_SUM, 0, 0, 1, 1},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "input elements; special n", .kernels = reduce_log_sum_kernels},
    {.name = "ReduceLogSumExp", .since_opset = 1, .inputs = {1, 2}, .non_weight_inputs = 2,
     .params = attributes, .params_bytes = sizeof(reduce_params),
     .variant = &(const reduce_op){PRN_REDUCE_LOG_SUM_EXP, 1, 1, 1, 1},
     .infer = reduce_infer, .cost = reduce_cost, .cost_text = "2 input elements; special input elements + n",
     .kernels = reduce_log_sum_exp_kernels},
    {0}};
// clang-format on
