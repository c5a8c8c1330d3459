/* Einsum: the sum over every index that the output does not name of the product of the inputs.
 *
 * The equation becomes an index space: output axes first, then the summed ones, with one stride per operand and axis
 * (repeated letters add their strides up, an axis that an operand lacks or broadcasts has stride 0; einsum_space.c).
 * Two-operand contractions whose axes fall into rows, columns, inner and batch ones run as a batched matrix product,
 * more operands as several (einsum_pairs.c); the reference walks the whole space. A kernel's prepare reads the
 * equation; its runs have what came of it. */
#include "ops/math/einsum.h"

#include "base/memory/alloc.h"
#include "base/integers.h"
#include "base/threads/parallel.h"
#include "base/threads/cancel.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/widen.h"

#include <string.h>

enum { MAX_OPERANDS = PRN_EINSUM_OPERANDS, MAX_AXES = PRN_EINSUM_AXES };

typedef prn_einsum_space space;

static prony_status einsum_infer(const prony_context *context)
{
    for (size_t i = 0; i < context->input_count; i++) {
        if (!context->inputs[i]) return prn_einsum_refuse(context, "has a missing input");
        if (!prn_matmul_countable(&context->inputs[i]->shape))
            return prn_einsum_refuse(context, "has too large an input");
        PRN_TRY(prn_check_type(context, i, i == 0 ? PRN_MATMUL_TYPES : PRN_TYPE(context->inputs[0]->dtype)));
    }
    space s;
    PRN_TRY(prn_einsum_space_of(context, &s));
    const prony_shape y = prn_shape_make(s.output_axes, s.extent);
    prn_set_output(context, 0, s.dtype, &y);
    return PRONY_OK;
}

static prony_status einsum_cost(const prony_context *context, prony_cost *out)
{
    space s;
    PRN_TRY(prn_einsum_space_of(context, &s));
    uint64_t volume = 1, outputs = 1;
    for (int axis = 0; axis < s.axes; axis++) {
        if (!prn_mul_u64(&volume, volume, (uint64_t)s.extent[axis]))
            return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of operations does not fit 64 bits");
        if (axis < s.output_axes) outputs *= (uint64_t)s.extent[axis];
    }
    const uint64_t products = (uint64_t)s.operands - 1;
    prn_cost_fact(out, "output_elements", (int64_t)outputs);
    prn_cost_fact(out, "index_volume", (int64_t)volume);
    if (s.operands == 1) return prn_cost_elementwise(context, out, volume - (volume ? outputs : 0), 1, 0);
    if (s.axes == s.output_axes) return prn_cost_elementwise(context, out, volume, products, 0);
    uint64_t macs;
    if (!prn_mul_u64(&macs, volume, products))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "the number of MACs does not fit 64 bits");
    return prn_cost_macs(context, out, macs, prn_dtype_is_integer(s.dtype));
}

/* ---- as a matrix product */

static bool einsum_describe(const prony_context *context, prn_matmul_desc *out)
{
    space s;
    if (prn_einsum_space_of(context, &s) != PRONY_OK || s.operands != 2) return false;
    for (int axis = 0; axis < s.axes; axis++) {
        if (s.extent[axis] == 0) return false;
    }
    if (!prn_einsum_product(&s, out)) return false;
    prn_matmul_bind_data(context, out);
    return true;
}

static bool einsum_native_supported(const prony_context *context)
{
    prn_matmul_desc product;
    return einsum_describe(context, &product);
}

static prony_status einsum_native_prepare(const prony_context *context, prn_prepared *out)
{
    prn_matmul_desc product;
    if (!einsum_describe(context, &product)) return prn_einsum_refuse(context, "is not a matrix product");
    return prn_matmul_native_prepare(context, &product, out);
}

/* ---- one operand, no sum: a copy */

static bool copy_supported(const prony_context *context)
{
    space s;
    return prn_einsum_space_of(context, &s) == PRONY_OK && s.operands == 1 && s.axes == s.output_axes;
}

static prony_status prepare_copy(const prony_context *context, prn_prepared *out)
{
    space s;
    prn_copy copy = {0};
    PRN_TRY(prn_einsum_space_of(context, &s));
    for (int axis = 0; axis < s.axes; axis++)
        prn_copy_axis(&copy, s.extent[axis], s.stride[0][axis], s.output_stride[axis]);
    return prn_prepared_keep(context, &copy, sizeof copy, out);
}

static prony_status einsum_run_copy(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prn_copy_native(context->threads, prn_copy_width(in->dtype), context->state, in->data, context->outputs[0]->data);
    return PRONY_OK;
}

/* ---- reference */

enum { LEAST_OUTPUTS = 256 /* of a task */ };

typedef struct reference_job {
    const space *s;
    const prony_value *const *in;
    void *y;
    int64_t columns; /* of a row of the output */
} reference_job;

/* Sums, of type P, of `count` output elements along the output's last axis, or of one of none; `start` is where the
 * operands start. */
#define SUM(P, DTYPE, name, storage, work, load, store)                                                                \
    static void einsum_sum_##name(const reference_job *job, const int64_t *start, int64_t at, int64_t count)           \
    {                                                                                                                  \
        const space *s = job->s;                                                                                       \
        const int column = s->output_axes - 1, inner = s->axes > s->output_axes ? s->axes - 1 : -1;                    \
        const int64_t terms = inner < 0 ? 1 : s->extent[inner];                                                        \
        int64_t walked = 0;                                                                                            \
        if (inner < 0 && s->operands == 2 && column >= 0) {                                                            \
            const storage *a = (const storage *)job->in[0]->data + start[0],                                           \
                          *b = (const storage *)job->in[1]->data + start[1];                                           \
            const int64_t a_step = s->stride[0][column], b_step = s->stride[1][column];                                \
            for (int64_t j = 0; j < count && !prn_cancelled_at(j); j++)                                                \
                ((storage *)job->y)[at + j] = store((work)((P)load(a[j * a_step]) * (P)load(b[j * b_step])));          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < count; j++) {                                                                          \
            int64_t index[MAX_AXES] = {0}, offset[MAX_OPERANDS], step[MAX_OPERANDS];                                   \
            for (int i = 0; i < s->operands; i++) {                                                                    \
                offset[i] = start[i] + (column < 0 ? 0 : j * s->stride[i][column]);                                    \
                step[i] = inner < 0 ? 0 : s->stride[i][inner];                                                         \
            }                                                                                                          \
            P sum = 0;                                                                                                 \
            for (bool more = true; more; more = advance(s, index, offset)) {                                           \
                for (int64_t k = 0; k < terms; k++) {                                                                  \
                    if (prn_cancelled_at(walked++)) return;                                                            \
                    P product = (P)load(((const storage *)job->in[0]->data)[offset[0] + k * step[0]]);                 \
                    for (int i = 1; i < s->operands; i++)                                                              \
                        product *= (P)load(((const storage *)job->in[i]->data)[offset[i] + k * step[i]]);              \
                    sum += product;                                                                                    \
                }                                                                                                      \
            }                                                                                                          \
            ((storage *)job->y)[at + j] = store((work)sum);                                                            \
        }                                                                                                              \
    }

/* Next point of the summed axes but the last; false after the last. */
static bool advance(const space *s, int64_t *index, int64_t *offset)
{
    for (int axis = s->axes - 2; axis >= s->output_axes; axis--) {
        const int64_t steps = ++index[axis] < s->extent[axis] ? 1 : 1 - s->extent[axis];
        for (int i = 0; i < s->operands; i++) offset[i] += steps * s->stride[i][axis];
        if (steps == 1) return true;
        index[axis] = 0;
    }
    return false;
}

PRN_FLOAT_TYPES(SUM, double)
PRN_INTEGER_TYPES(SUM, uint64_t)

static void (*einsum_sum_of(prony_dtype dtype))(const reference_job *, const int64_t *, int64_t, int64_t)
{
    switch (dtype) {
#define SUM_CASE(P, DTYPE, name, storage, work, load, store)                                                           \
    case PRONY_##DTYPE:                                                                                                \
        return einsum_sum_##name;
        PRN_NUMBER_TYPES(SUM_CASE, )
    default:
        return NULL;
    }
}

static void einsum_reference_range(void *argument, int64_t begin, int64_t end)
{
    const reference_job *job = argument;
    const space *s = job->s;
    const int column = s->output_axes - 1;
    for (int64_t at = begin, count; at < end && !prn_cancelled(); at += count) {
        int64_t start[MAX_OPERANDS] = {0}, rest = at / job->columns;
        const int64_t first = at % job->columns;
        count = prn_least(job->columns - first, end - at);
        for (int i = 0; i < s->operands && column >= 0; i++) start[i] = first * s->stride[i][column];
        for (int axis = column - 1; axis >= 0; axis--) {
            for (int i = 0; i < s->operands; i++) start[i] += rest % s->extent[axis] * s->stride[i][axis];
            rest /= s->extent[axis];
        }
        einsum_sum_of(s->dtype)(job, start, at, count);
    }
}

static prony_status einsum_prepare_reference(const prony_context *context, prn_prepared *out)
{
    space s;
    PRN_TRY(prn_einsum_space_of(context, &s));
    return prn_prepared_keep(context, &s, sizeof s, out);
}

static prony_status einsum_run_reference(const prony_context *context)
{
    const space *s = context->state;
    const prony_value *y = context->outputs[0];
    const int64_t outputs = prony_shape_numel(&y->shape), columns = s->output_axes ? s->extent[s->output_axes - 1] : 1;
    for (int axis = s->output_axes; axis < s->axes; axis++) {
        if (s->extent[axis] > 0) continue;
        prn_cancellable_clear(y->data, prn_value_bytes(y)); /* an empty sum */
        return PRONY_OK;
    }
    reference_job job = {s, context->inputs, y->data, columns};
    prn_parallel_range(context->threads, outputs, LEAST_OUTPUTS, einsum_reference_range, &job);
    return PRONY_OK;
}

static const prn_param params[] = {
    {.name = "equation", .type = PRN_PARAM_STRING, .offset = offsetof(prn_einsum_params, equation), .required = true},
    {0}};

static const prn_kernel native = {.supported = einsum_native_supported,
                                  .prepare = einsum_native_prepare,
                                  .run = prn_matmul_native_run,
                                  .release = prn_free};
PRN_WIDENED(einsum_half, &native)

// clang-format off
static const prn_kernel kernels[] = {
    {.name = "einsum_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = einsum_native_supported,
     .prepare = einsum_native_prepare, .run = prn_matmul_native_run, .release = prn_free},
    {.name = "einsum_f32_pairs", .backend = "native", .types = PRN_TYPE_F32, .supported = prn_einsum_pairs_supported,
     .facts = prn_einsum_pairs_facts, .prepare = prn_einsum_pairs_prepare, .run = prn_einsum_pairs_run, .release = prn_free},
    PRN_WIDENED_ROW(einsum_half, "einsum_half_native"),
    {.name = "einsum_copy", .backend = "native", .types = PRN_MATMUL_TYPES, .supported = copy_supported,
     .prepare = prepare_copy, .run = einsum_run_copy, .release = prn_free},
    {.name = "einsum_ref", .backend = "reference", .types = PRN_MATMUL_TYPES, .prepare = einsum_prepare_reference,
     .run = einsum_run_reference, .release = prn_free},
    {0}};

const prn_op prn_ops_einsum[] = {
    {.name = "Einsum", .since_opset = 12, .inputs = {1, -1}, .flags = PRN_OP_INT_WEIGHTS,
     .params = params, .params_bytes = sizeof(prn_einsum_params), .infer = einsum_infer, .cost = einsum_cost,
     .cost_text = "v extents of all indices multiplied, o operands: MACs v (o - 1) where an index is summed, else "
                  "FLOPs v (o - 1); one operand: v - n additions",
     .kernels = kernels},
    {0}};
// clang-format on
