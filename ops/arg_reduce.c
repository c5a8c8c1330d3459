/* Walks along one axis: ArgMax, ArgMin, CumSum, CumProd. The tensor is seen as [outer, length, inner]; each line along
 * `length` is done by one task. Owns nothing. */
#include "ops/copy_nd.h"
#include "ops/elementwise.h"
#include "ops/number.h"

#include <string.h>

typedef struct line_job {
    const prony_value *x, *y;
    int64_t length, inner;
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

/* ---- ArgMax, ArgMin */

typedef struct arg_params {
    int64_t axis, keepdims, select_last_index;
} arg_params;

static const prn_param arg_attributes[] = {
    PRN_INT(arg_params, axis, 0), PRN_INT(arg_params, keepdims, 1), PRN_INT(arg_params, select_last_index, 0), {0}};

/* The best so far of successive lines: its value, as a double or in 64 bits, and its place. */
typedef struct best_of {
    double real[PRN_BLOCK];
    int64_t whole[PRN_BLOCK], at[PRN_BLOCK];
} best_of;

/* NaN is ahead of everything. */
static bool real_ahead(const line_job *job, double a, double b)
{
    if (a != a || b != b) return a != a && (b == b || job->last);
    return a == b ? job->last : (job->smallest ? a < b : a > b);
}

static bool whole_ahead(const line_job *job, int64_t a, int64_t b)
{
    return a == b ? job->last : (job->smallest ? a < b : a > b);
}

/* Elements of place `at` along the axis, one of each line or (along) successive ones of a single line, against the
 * best. */
static void match_block(const line_job *job, best_of *best, int64_t first, int64_t n, int64_t at, bool along)
{
    const prony_dtype dtype = job->x->dtype;
    double real[PRN_BLOCK];
    int64_t whole[PRN_BLOCK];
    const bool is_real = prn_dtype_is_float(dtype);
    if (is_real) {
        prn_load_f64(real, job->x->data, dtype, first, n);
    } else {
        prn_load_i64(whole, job->x->data, dtype, first, n);
        for (int64_t i = 0; i < n && dtype == PRONY_UINT64; i++) whole[i] ^= INT64_MIN;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t line = along ? 0 : i, place = along ? at + i : at;
        if (place > 0 &&
            !(is_real ? real_ahead(job, real[i], best->real[line]) : whole_ahead(job, whole[i], best->whole[line])))
            continue;
        if (is_real)
            best->real[line] = real[i];
        else
            best->whole[line] = whole[i];
        best->at[line] = place;
    }
}

static void arg_lines(void *argument, int64_t begin, int64_t end)
{
    const line_job *job = argument;
    int64_t *y = job->y->data;
    best_of best;
    for (int64_t line = begin, n; line < end; line += n) {
        const int64_t start = line_start(job, line), left = job->inner - line % job->inner;
        if (job->inner == 1) {
            n = 1;
            for (int64_t at = 0, count; at < job->length; at += count) {
                count = job->length - at < PRN_BLOCK ? job->length - at : PRN_BLOCK;
                match_block(job, &best, start + at, count, at, true);
            }
        } else {
            n = left < end - line ? left : end - line;
            if (n > PRN_BLOCK) n = PRN_BLOCK;
            for (int64_t at = 0; at < job->length; at++) match_block(job, &best, start + at * job->inner, n, at, false);
        }
        memcpy(y + line, best.at, (size_t)n * sizeof *y);
    }
}

static prony_status run_arg(const prony_context *context, bool smallest)
{
    const arg_params *params = context->params;
    line_job job = {.x = context->inputs[0],
                    .y = context->outputs[0],
                    .smallest = smallest,
                    .last = context->node->opset >= 12 && params->select_last_index};
    int64_t axis = params->axis;
    prn_axis_normalize(&axis, job.x->shape.rank);
    const int64_t lines = set_lines(&job, (int)axis);
    prn_parallel_items(context->threads, lines, 4 * (int64_t)prn_value_bytes(job.x), arg_lines, &job);
    return PRONY_OK;
}

static prony_status run_argmax(const prony_context *context)
{
    return run_arg(context, false);
}

static prony_status run_argmin(const prony_context *context)
{
    return run_arg(context, true);
}

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

static void sum_line(const line_job *job, int64_t line)
{
    const prony_dtype dtype = job->x->dtype;
    const int64_t start = line_start(job, line);
    double real = job->product ? 1.0 : 0.0;
    uint64_t whole = job->product;
    for (int64_t k = 0; k < job->length; k++) {
        const int64_t at = start + (job->reverse ? job->length - 1 - k : k) * job->inner;
        if (prn_dtype_is_float(dtype)) {
            const double before = real;
            const double x = prn_get_f64(job->x->data, dtype, at);
            real = job->product ? real * x : real + x;
            prn_put_f64(job->y->data, dtype, at, job->exclusive ? before : real);
        } else {
            const uint64_t before = whole;
            const uint64_t x = (uint64_t)prn_get_i64(job->x->data, dtype, at);
            whole = job->product ? whole * x : whole + x;
            prn_put_i64(job->y->data, dtype, at, (int64_t)(job->exclusive ? before : whole));
        }
    }
}

static void sum_lines(void *argument, int64_t begin, int64_t end)
{
    for (int64_t line = begin; line < end; line++) sum_line(argument, line);
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

static prony_status run_lines(const prony_context *context, bool product)
{
    const cumsum_params *params = context->params;
    line_job job = {.x = context->inputs[0],
                    .y = context->outputs[0],
                    .product = product,
                    .exclusive = params->exclusive != 0,
                    .reverse = params->reverse != 0};
    int64_t axis;
    bool known;
    PRN_TRY(cumsum_axis(context, &axis, &known));
    const int64_t lines = set_lines(&job, (int)axis);
    prn_parallel_items(context->threads, lines, 4 * (int64_t)prn_value_bytes(job.x), sum_lines, &job);
    return PRONY_OK;
}

static prony_status run_cumsum(const prony_context *context)
{
    return run_lines(context, false);
}

static prony_status run_cumprod(const prony_context *context)
{
    return run_lines(context, true);
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

/* ---- descriptors */

static const prn_kernel argmax_kernels[] = {{.name = "argmax_reference", .backend = "reference", .run = run_argmax},
                                            {0}};
static const prn_kernel argmin_kernels[] = {{.name = "argmin_reference", .backend = "reference", .run = run_argmin},
                                            {0}};
static const prn_kernel cumsum_kernels[] = {
    {.name = "cumsum_reference", .backend = "reference", .run = run_cumsum, .inplace = 1}, {0}};

static const prn_kernel cumprod_kernels[] = {
    {.name = "cumprod_reference", .backend = "reference", .run = run_cumprod, .inplace = 1}, {0}};

#define ARG_DESCRIPTOR(symbol, op_name)                                                                                \
    const prn_op prn_op_##symbol = {                                                                                   \
        .name = op_name,                                                                                               \
        .domain = "",                                                                                                  \
        .since_opset = 1,                                                                                              \
        .min_inputs = 1,                                                                                               \
        .max_inputs = 1,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .params = arg_attributes,                                                                                      \
        .params_bytes = sizeof(arg_params),                                                                            \
        .infer = infer_arg,                                                                                            \
        .cost = cost_arg,                                                                                              \
        .cost_text = "input elements - n",                                                                             \
        .kernels = symbol##_kernels,                                                                                   \
    };
ARG_DESCRIPTOR(argmax, "ArgMax")
ARG_DESCRIPTOR(argmin, "ArgMin")

#define CUMULATIVE_DESCRIPTOR(symbol, op_name, opset)                                                                  \
    const prn_op prn_op_##symbol = {                                                                                   \
        .name = op_name,                                                                                               \
        .domain = "",                                                                                                  \
        .since_opset = opset,                                                                                          \
        .min_inputs = 2,                                                                                               \
        .max_inputs = 2,                                                                                               \
        .min_outputs = 1,                                                                                              \
        .max_outputs = 1,                                                                                              \
        .non_weight_inputs = 2,                                                                                        \
        .params = cumsum_attributes,                                                                                   \
        .params_bytes = sizeof(cumsum_params),                                                                         \
        .infer = infer_cumsum,                                                                                         \
        .cost = cost_cumsum,                                                                                           \
        .cost_text = "n - lines",                                                                                      \
        .kernels = symbol##_kernels,                                                                                   \
    };
CUMULATIVE_DESCRIPTOR(cumsum, "CumSum", 11)
CUMULATIVE_DESCRIPTOR(cumprod, "CumProd", 26)
