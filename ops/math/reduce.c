/* Reductions over any set of axes: sum, mean, extremes, products, norms, logarithms of sums.
 * Neighbouring axes of the same fate are merged, so that a tensor is a chain of kept and reduced axes. The reference
 * walks any chain element by element in double or 64-bit integers; the kernels of reduce_native.c do so in rows, in
 * float32 also for the spatial axes of NHWC and blocked tensors. Owns nothing. Invariant: each output's elements are
 * combined by one task in an order that the shapes alone decide. */
#include "ops/math/reduce.h"
#include "base/stop.h"

#include "ops/loops/broadcast.h"
#include "ops/loops/copy_nd.h"
#include "ops/loops/elementwise.h"
#include "ops/loops/number.h"

typedef struct reduce_params {
    prn_ints axes;
    int64_t keepdims, noop_with_empty_axes;
} reduce_params;

static const prn_param attributes[] = {PRN_INTS(reduce_params, axes),
                                       PRN_INT(reduce_params, keepdims, 1),
                                       PRN_INT(reduce_params, noop_with_empty_axes, 0),
                                       {0}};

/* Whether reducing a single element gives that element. */
static bool keeps_one(prn_reduce_kind kind)
{
    return kind != L1 && kind != L2 && kind != LOG_SUM && kind != SUM_SQUARE;
}

/* ---- which axes */

typedef struct axis_set {
    bool known, noop;
    bool reduced[PRONY_MAX_RANK];
} axis_set;

static prony_status axes_of(const prony_context *context, axis_set *set)
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

static prn_reduction job_of(const prony_context *context, prn_reduce_kind kind, const axis_set *set)
{
    prn_reduction job = {.kind = kind, .x = context->inputs[0], .y = context->outputs[0], .count = 1};
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
    return kind == PROD ? 1.0 : (kind == MAX ? -(double)INFINITY : (kind == MIN ? (double)INFINITY : 0.0));
}

static double step_f64(prn_reduce_kind kind, double sum, double x, double top)
{
    switch (kind) {
    case MAX:
        return x > sum || x != x ? x : sum;
    case MIN:
        return x < sum || x != x ? x : sum;
    case PROD:
        return sum * x;
    case L1:
        return sum + fabs(x);
    case L2:
    case SUM_SQUARE:
        return sum + x * x;
    case LOG_SUM_EXP:
        return sum + exp(x - top);
    case SUM:
    case MEAN:
    case LOG_SUM:
        break;
    }
    return sum + x;
}

double prn_reduce_finish(prn_reduce_kind kind, double sum, double count, double top)
{
    switch (kind) {
    case MEAN:
        return sum / count;
    case L2:
        return sqrt(sum);
    case LOG_SUM:
        return log(sum);
    case LOG_SUM_EXP:
        return top + log(sum);
    default:
        return sum;
    }
}

bool prn_reduce_is_real(prn_reduce_kind kind, prony_dtype dtype)
{
    return prn_dtype_is_float(dtype) || kind == L2 || kind == LOG_SUM || kind == LOG_SUM_EXP;
}

/* Elements as the cursor comes to them. Where the last axis is reduced they lie side by side, and a block is read at
 * once. */
typedef struct reader {
    int64_t first, count;
    union {
        double real[PRN_BLOCK];
        int64_t whole[PRN_BLOCK];
    };
} reader;

/* Whether `offset` begins a new block, whose extent is then set. */
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
    for (int64_t i = 0; i < job->count && !prn_stopped_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
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
    uint64_t sum = job->kind == PROD;
    for (int64_t i = 0; i < job->count && !prn_stopped_at(i); i++, prn_cursor_next(&cursor, &job->chain)) {
        const int64_t x = read_i64(job, &reader, cursor.offset), best = (int64_t)sum;
        const bool less = is_unsigned ? (uint64_t)x < sum : x < best;
        if (job->kind == MAX || job->kind == MIN) {
            if (i == 0 || (x != best && less == (job->kind == MIN))) sum = (uint64_t)x;
        } else if (job->kind == PROD) {
            sum *= (uint64_t)x;
        } else if (job->kind == L1) {
            sum += is_unsigned || x >= 0 ? (uint64_t)x : 0 - (uint64_t)x;
        } else if (job->kind == SUM_SQUARE) {
            sum += (uint64_t)x * (uint64_t)x;
        } else {
            sum += (uint64_t)x;
        }
    }
    if (job->kind == MEAN && job->count > 0) {
        return is_unsigned ? (int64_t)(sum / (uint64_t)job->count) : (int64_t)sum / job->count;
    }
    return (int64_t)sum;
}

static void reference_outputs(void *argument, int64_t begin, int64_t end)
{
    const prn_reduction *job = argument;
    const prony_dtype dtype = job->x->dtype;
    const bool no_extreme = dtype == PRONY_BOOL && job->count == 0 && (job->kind == MAX || job->kind == MIN);
    const bool real = prn_reduce_is_real(job->kind, dtype) || job->count == 0;
    for (int64_t output = begin; output < end; output++) {
        if (no_extreme) {
            prn_put_i64(job->y->data, dtype, output, job->kind == MIN);
        } else if (real) {
            double top = job->kind == LOG_SUM_EXP ? reduce_f64(job, MAX, output, 0.0) : 0.0;
            if (isinf(top)) top = 0.0;
            prn_put_f64(job->y->data, dtype, output, reduce_f64(job, job->kind, output, top));
        } else {
            prn_put_i64(job->y->data, dtype, output, reduce_i64(job, output));
        }
    }
}

static prony_status run_reference(const prony_context *context, prn_reduce_kind kind)
{
    axis_set set;
    PRN_TRY(axes_of(context, &set));
    const prony_value *x = context->inputs[0], *y = context->outputs[0];
    if (set.noop && keeps_one(kind)) {
        prn_copy_bytes(context->threads, x->data, y->data, prn_value_bytes(x));
        return PRONY_OK;
    }
    prn_reduction job = job_of(context, kind, &set);
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

static bool usable_native(const prony_context *context)
{
    axis_set set;
    if (axes_of(context, &set) != PRONY_OK || !set.known || set.noop) return false;
    return job_of(context, SUM, &set).count > 0;
}

/* How integers are cut off must not depend on the order of a sum of exponentials. */
static bool usable_for_floats(const prony_context *context)
{
    return prn_dtype_is_float(context->inputs[0]->dtype) && usable_native(context);
}

static void native_layouts(const prony_context *context, prn_layout *in, prn_layout *out)
{
    axis_set set;
    const prony_value *x = context->inputs[0];
    if (axes_of(context, &set) != PRONY_OK || !set.known || !pixels_only(&x->shape, &set)) return;
    const prn_layout layout = (prn_layout)x->layout;
    const int64_t block = prn_layout_block(layout);
    const bool keepdims = ((const reduce_params *)context->params)->keepdims != 0;
    if (!keepdims && block && x->shape.dim[1] % block) return;
    in[0] = layout;
    out[0] = keepdims ? layout : PRN_PLAIN;
}

static prony_status run_native(const prony_context *context, prn_reduce_kind kind)
{
    axis_set set;
    PRN_TRY(axes_of(context, &set));
    prn_reduction job = job_of(context, kind, &set);
    const prony_shape *shape = &job.x->shape;
    const int64_t block = prn_layout_block((prn_layout)job.x->layout);
    if (prony_shape_numel(shape) == 0) return PRONY_OK;
    if (job.x->layout != PRN_PLAIN) {
        job.chain.rank = 0;
        prn_chain_add(&job.chain, shape->dim[0] * (block ? (shape->dim[1] + block - 1) / block : 1), false);
        prn_chain_add(&job.chain, job.count, true);
        prn_chain_add(&job.chain, block ? block : shape->dim[1], false);
    }
    prn_reduce_native(context->threads, &job);
    if (job.y->dtype == PRONY_FLOAT32) prn_clear_padding(job.y);
    return PRONY_OK;
}

/* ---- inference and cost */

static prony_status infer(const prony_context *context)
{
    axis_set set;
    const prony_value *x = context->inputs[0];
    const bool keepdims = ((const reduce_params *)context->params)->keepdims != 0;
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER_BOOL));
    PRN_TRY(axes_of(context, &set));
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

/* Operations per input element (those that come before the sum), and per output element (after it). */
static const struct kind_cost {
    uint64_t before, after;
    uint64_t before_special, after_special;
} kind_costs[] = {
    [SUM] = {0, 0, 0, 0},         [MEAN] = {0, 1, 0, 1},       [MAX] = {0, 0, 0, 0}, [MIN] = {0, 0, 0, 0},
    [PROD] = {0, 0, 0, 0},        [L1] = {1, 0, 0, 0},         [L2] = {1, 1, 0, 1},  [LOG_SUM] = {0, 1, 0, 1},
    [LOG_SUM_EXP] = {1, 1, 1, 1}, [SUM_SQUARE] = {1, 0, 0, 0},
};

static prony_status cost_kind(const prony_context *context, prony_cost *cost, prn_reduce_kind kind)
{
    axis_set set;
    PRN_TRY(axes_of(context, &set));
    const uint64_t inputs = (uint64_t)prony_shape_numel(&context->inputs[0]->shape);
    const uint64_t outputs = prn_output_elements(context);
    prn_cost_fact(cost, "input_elements", (int64_t)inputs);
    prn_cost_fact(cost, "output_elements", (int64_t)outputs);
    if ((set.noop && keeps_one(kind)) || inputs == 0) return PRONY_OK;
    const struct kind_cost *each = &kind_costs[kind];
    PRN_TRY(prn_cost_elementwise(context, cost, inputs - outputs, 1, 0));
    PRN_TRY(prn_cost_elementwise(context, cost, inputs, each->before, each->before_special));
    return prn_cost_elementwise(context, cost, outputs, each->after, each->after_special);
}

/* ---- descriptors */

#define KIND(symbol, kind)                                                                                             \
    static prony_status cost_##symbol(const prony_context *context, prony_cost *cost)                                  \
    {                                                                                                                  \
        return cost_kind(context, cost, kind);                                                                         \
    }                                                                                                                  \
    static prony_status reference_##symbol(const prony_context *context)                                               \
    {                                                                                                                  \
        return run_reference(context, kind);                                                                           \
    }
#define REFERENCE_KERNEL(symbol)                                                                                       \
    {                                                                                                                  \
        .name = #symbol "_reference", .backend = "reference", .run = reference_##symbol                                \
    }
#define DESCRIPTOR(symbol, op_name, text)                                                                              \
    const prn_op prn_op_##symbol = {                                                                                   \
        .name = op_name,                                                                                               \
        .domain = "",                                                                                                  \
        .since_opset = 1,                                                                                              \
        .inputs.least = 1,                                                                                               \
        .inputs.most = 2,                                                                                               \
        .outputs.least = 1,                                                                                              \
        .outputs.most = 1,                                                                                              \
        .non_weight_inputs = 2,                                                                                        \
        .params = attributes,                                                                                          \
        .params_bytes = sizeof(reduce_params),                                                                         \
        .infer = infer,                                                                                                \
        .cost = cost_##symbol,                                                                                         \
        .cost_text = text,                                                                                             \
        .kernels = symbol##_kernels,                                                                                   \
    };
#define ROWS_KERNEL(symbol, suffix, when, type_set, layout_rule)                                                       \
    {                                                                                                                  \
        .name = #symbol suffix, .backend = "native", .types = type_set, .usable = when, .layouts = layout_rule,        \
        .run = native_##symbol                                                                                         \
    }
#define NATIVE(symbol, kind)                                                                                           \
    static prony_status native_##symbol(const prony_context *context)                                                  \
    {                                                                                                                  \
        return run_native(context, kind);                                                                              \
    }
#define OPERATOR(symbol, op_name, kind, when, text)                                                                    \
    KIND(symbol, kind)                                                                                                 \
    NATIVE(symbol, kind)                                                                                               \
    static const prn_kernel symbol##_kernels[] = {                                                                     \
        ROWS_KERNEL(symbol, "_f32_native", usable_native, PRN_TYPE_F32, native_layouts),                               \
        ROWS_KERNEL(symbol, "_native", when, 0, NULL),                                                                 \
        REFERENCE_KERNEL(symbol),                                                                                      \
        {0}};                                                                                                          \
    DESCRIPTOR(symbol, op_name, text)

OPERATOR(reduce_sum, "ReduceSum", SUM, usable_native, "input elements - n")
OPERATOR(reduce_mean, "ReduceMean", MEAN, usable_native, "input elements; special n")
OPERATOR(reduce_max, "ReduceMax", MAX, usable_native, "input elements - n")
OPERATOR(reduce_min, "ReduceMin", MIN, usable_native, "input elements - n")
OPERATOR(reduce_l1, "ReduceL1", L1, usable_native, "2 input elements - n")
OPERATOR(reduce_l2, "ReduceL2", L2, usable_native, "2 input elements; special n")
OPERATOR(reduce_sum_square, "ReduceSumSquare", SUM_SQUARE, usable_native, "2 input elements - n")
OPERATOR(reduce_prod, "ReduceProd", PROD, usable_native, "input elements - n")
OPERATOR(reduce_log_sum, "ReduceLogSum", LOG_SUM, usable_native, "input elements; special n")
OPERATOR(reduce_log_sum_exp, "ReduceLogSumExp", LOG_SUM_EXP, usable_for_floats,
         "2 input elements; special input elements + n")
