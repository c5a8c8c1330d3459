/* com.microsoft QLinearReduceMean: dequantize, mean over some axes, quantize on 8-bit codes. Codes are added up as
 * integers, exactly. */
#include "base/threads/cancel.h"
#include "ops/kernels/vector/chain.h"
#include "base/threads/parallel.h"
#include "ops/op.h"
#include "ops/kernels/int8/quantized.h"

enum { X, X_SCALE, X_ZERO, Y_SCALE, Y_ZERO };

typedef struct qmean_params {
    prn_ints axes;
    int64_t keepdims;
} qmean_params;

static const prn_param attributes[] = {PRN_INTS(qmean_params, axes), PRN_INT(qmean_params, keepdims, 1), {0}};
static const prn_cast_rule saturating = {.saturate = true};

/* Bit d: axis d is reduced; without axes all are. */
static prony_status reduced_axes(const prony_context *context, uint32_t *out)
{
    const prn_ints *axes = &((const qmean_params *)context->params)->axes;
    const int rank = context->inputs[X]->shape.rank;
    *out = axes->count ? 0 : UINT32_MAX;
    for (size_t i = 0; i < axes->count; i++) {
        int64_t axis = axes->v[i];
        if (!prn_axis_normalize(&axis, rank))
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axes->v[i],
                              rank);
        *out |= UINT32_C(1) << axis;
    }
    return PRONY_OK;
}

static prony_status qlinear_reduce_infer(const prony_context *context)
{
    uint32_t reduced;
    prony_shape shape = {0};
    PRN_TRY(prn_check_type(context, X, PRN_TYPES_8_BIT));
    const prony_value *x = context->inputs[X];
    PRN_TRY(prn_quant_scalar_check(context, X_SCALE, X_ZERO, PRN_TYPE(x->dtype)));
    PRN_TRY(prn_quant_scalar_check(context, Y_SCALE, Y_ZERO, PRN_TYPE(x->dtype)));
    PRN_TRY(reduced_axes(context, &reduced));
    for (int d = 0; d < x->shape.rank; d++) {
        const bool gone = reduced >> d & 1;
        if (gone && x->shape.dim[d] == 0)
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "the mean over axis %d of extent 0", d);
        if (gone && !((const qmean_params *)context->params)->keepdims) continue;
        shape.dim[shape.rank++] = gone ? 1 : x->shape.dim[d];
    }
    prn_set_output(context, 0, x->dtype, &shape);
    return PRONY_OK;
}

static prony_status qlinear_reduce_cost(const prony_context *context, prony_cost *cost)
{
    const uint64_t in = (uint64_t)prony_shape_numel(&context->inputs[X]->shape),
                   out = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    uint64_t ends;
    if (!prn_mul_u64(&ends, out, 8) || !prn_add_u64(&cost->int_ops, cost->int_ops, ends) ||
        !prn_add_u64(&cost->int_ops, cost->int_ops, in))
        return prony_fail(context, PRONY_LIMIT, "the operation count does not fit into 64 bits");
    return PRONY_OK;
}

typedef struct qmean_job {
    const prony_value *x;
    prony_value *y;
    prn_quant_scalar from, to;
    prn_chain chain;
    int64_t count, run; /* elements behind an output; how many of them lie side by side */
} qmean_job;

static int64_t run_sum(const qmean_job *job, int64_t offset)
{
    int64_t sum = 0;
    const int8_t *i8 = (const int8_t *)job->x->data + offset;
    const uint8_t *u8 = (const uint8_t *)job->x->data + offset;
    if (job->x->dtype == PRONY_INT8) {
        for (int64_t i = 0; i < job->run && !prn_cancelled_at(i); i++) sum += i8[i];
    } else {
        for (int64_t i = 0; i < job->run && !prn_cancelled_at(i); i++) sum += u8[i];
    }
    return sum;
}

static void mean_range(void *argument, int64_t begin, int64_t end)
{
    const qmean_job *job = argument;
    for (int64_t output = begin; output < end; output++) {
        prn_cursor cursor;
        int64_t sum = 0;
        prn_cursor_start(&cursor, &job->chain, output);
        for (int64_t i = 0; i < job->count && !prn_cancelled_at(i); i += job->run) {
            sum += run_sum(job, cursor.offset);
            if (job->run > 1) cursor.index[job->chain.rank - 1] = job->run - 1, cursor.offset += job->run - 1;
            prn_cursor_next(&cursor, &job->chain);
        }
        const double mean = ((double)sum / (double)job->count - (double)job->from.zero) * (double)job->from.scale;
        prn_quantize_one(job->y->data, job->y->dtype, output, (float)mean / job->to.scale, job->to.zero, &saturating);
    }
}

static prony_status qlinear_reduce_run(const prony_context *context)
{
    uint32_t reduced;
    PRN_TRY(reduced_axes(context, &reduced));
    qmean_job job = {.x = context->inputs[X],
                     .y = context->outputs[0],
                     .from = prn_quant_scalar_get(context, X_SCALE, X_ZERO),
                     .to = prn_quant_scalar_get(context, Y_SCALE, Y_ZERO),
                     .count = 1,
                     .run = 1};
    const prony_shape *shape = &job.x->shape;
    for (int d = 0; d < shape->rank; d++) {
        prn_chain_add(&job.chain, shape->dim[d], reduced >> d & 1);
        if (reduced >> d & 1) job.count *= shape->dim[d];
    }
    if (job.chain.rank && job.chain.reduced[job.chain.rank - 1]) job.run = job.chain.dim[job.chain.rank - 1];
    prn_parallel_items(context->threads, prony_shape_numel(&job.y->shape), 4 * prony_shape_numel(shape), mean_range,
                       &job);
    return PRONY_OK;
}

static const prn_kernel kernels[] = {
    {.name = "qlinear_reduce_mean_reference", .backend = "reference", .run = qlinear_reduce_run}, {0}};

// clang-format off
const prn_op prn_ops_qlinear_reduce[] = {
    {.name = "QLinearReduceMean", .domain = "com.microsoft", .since_opset = 1, .inputs = {2, 5}, .flags = PRN_OP_INT_WEIGHTS,
     .non_weight_inputs = 0x1e, .params = attributes, .params_bytes = sizeof(qmean_params), .infer = qlinear_reduce_infer, .cost = qlinear_reduce_cost,
     .cost_text = "int_ops: one per input element (sum), 8n (division, dequantization 2, quantization 5)", .kernels = kernels},
    {0}};
// clang-format on
