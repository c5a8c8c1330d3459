/* Pow: base and exponent of different types, the result in the base's type.
 * Floats are raised in double and rounded once. An integer base with an integer exponent is multiplied out and wraps; a
 * negative exponent gives the truncated quotient, 0 for base 0. */
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/vector/element_rows.h"
#include "ops/kernels/vector/elementwise.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_map.h"

#include <string.h>

static int64_t power_i64(int64_t base, int64_t exponent)
{
    if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 ? -1 : 1) : 0);
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent > 0; exponent /= 2, square *= square) {
        if (exponent % 2) result *= square;
    }
    return (int64_t)result;
}

enum { CHUNK = 128 };

typedef struct power_job {
    const prn_broadcast *walk;
    const prony_value *base, *exponent, *out;
} power_job;

/* A chunk of one operand in a work type; a broadcast operand is repeated. */
static void load_chunk(void *to, prony_dtype work, const prony_value *from, int64_t first, int64_t step, int64_t n)
{
    prn_convert(to, work, (const char *)from->data + prony_dtype_bytes(from->dtype, first), from->dtype, step ? n : 1);
    for (int64_t i = 1; i < n && !step; i++) ((uint64_t *)to)[i] = ((uint64_t *)to)[0];
}

/* Squares and multiplies a chunk by a whole exponent that is not negative. */
static void power_chunk(int64_t *base, int64_t exponent, int64_t n)
{
    int64_t result[CHUNK];
    for (int64_t i = 0; i < n; i++) result[i] = 1;
    for (; exponent > 0; exponent /= 2) {
        if (exponent % 2) prn_element_row(PRN_ROW_MUL, PRONY_INT64, result, result, base, n, 1, 1);
        if (exponent > 1) prn_element_row(PRN_ROW_MUL, PRONY_INT64, base, base, base, n, 1, 1);
    }
    memcpy(base, result, (size_t)n * sizeof *base);
}

/* One stretch of a row: whole numbers wrap around in 64 bits, everything else is float64. A shared exponent takes the
 * faster loop. */
static void power_row(void *argument, const int64_t offset[PRN_BROADCAST_INPUTS], int64_t out, int64_t at, int64_t n)
{
    const power_job *job = argument;
    const int inner = job->walk->rank - 1;
    const int64_t base_step = job->walk->stride[0][inner], exponent_step = job->walk->stride[1][inner];
    const bool whole = !prn_dtype_is_float(job->base->dtype) && !prn_dtype_is_float(job->exponent->dtype);
    const prony_dtype work = whole ? PRONY_INT64 : PRONY_FLOAT64;
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t count = n - done < CHUNK ? n - done : CHUNK;
        union {
            uint64_t bits[CHUNK];
            int64_t i[CHUNK];
            double f[CHUNK];
        } base, exponent;
        load_chunk(base.bits, work, job->base, offset[0] + (at + done) * base_step, base_step, count);
        load_chunk(exponent.bits, work, job->exponent, offset[1] + (at + done) * exponent_step, exponent_step, count);
        const bool shared = whole && exponent_step == 0 && exponent.i[0] >= 0;
        if (shared) power_chunk(base.i, exponent.i[0], count);
        for (int64_t i = 0; i < count && !shared; i++) {
            if (whole) {
                base.i[i] = power_i64(base.i[i], exponent.i[i]);
            } else {
                base.f[i] = pow(base.f[i], exponent.f[i]);
            }
        }
        prn_convert((char *)job->out->data + prony_dtype_bytes(job->out->dtype, out + done), job->out->dtype, base.bits,
                    work, count);
    }
}

static prony_status run_power(const prony_context *context)
{
    const prony_value *out = context->outputs[0];
    prn_broadcast walk;
    prn_broadcast_begin(&walk, out);
    prn_broadcast_add(&walk, context->inputs[0]);
    prn_broadcast_add(&walk, context->inputs[1]);
    prn_broadcast_merge(&walk);
    power_job job = {&walk, context->inputs[0], context->inputs[1], out};
    prn_broadcast_parallel(&walk, context->threads, power_row, &job);
    prn_clear_padding(out);
    return PRONY_OK;
}

/* ---- float32 with one exponent: the powers that models write are maps */

static bool map_of(double exponent, prn_map_id *map)
{
    static const struct {
        double exponent;
        prn_map_id map;
    } known[] = {{1.0, PRN_MAP_COPY},
                 {2.0, PRN_MAP_SQUARE},
                 {3.0, PRN_MAP_CUBE},
                 {0.5, PRN_MAP_POW_HALF},
                 {-1.0, PRN_MAP_RECIPROCAL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].exponent != exponent) continue;
        *map = known[i].map;
        return true;
    }
    return false;
}

static bool one_exponent(const prony_context *context)
{
    const prony_value *base = context->inputs[0], *exponent = context->inputs[1];
    prn_map_id map;
    return prony_shape_numel(&exponent->shape) == 1 && exponent->shape.rank <= base->shape.rank &&
           (!exponent->data || map_of(prn_get_f64(exponent->data, exponent->dtype, 0), &map));
}

/* ---- float32 raised to float32 */

static bool both_f32(const prony_context *context)
{
    return context->inputs[1]->dtype == PRONY_FLOAT32;
}

static prony_status run_both_f32(const prony_context *context)
{
    return prn_run_binary_f32(context, PRN_BINARY_POW);
}

static prony_status run_one_exponent(const prony_context *context)
{
    const prony_value *exponent = context->inputs[1];
    prn_map_id map;
    if (!map_of(prn_get_f64(exponent->data, exponent->dtype, 0), &map))
        return both_f32(context) ? run_both_f32(context) : run_power(context);
    return prn_run_map_f32(context, map, 0.0f, 0.0f);
}

#ifdef PRN_HAVE_OPENCL
/* Of an exponent that is a map. */
static bool power_opencl_map_supported(const prony_context *context)
{
    const prony_value *exponent = context->inputs[1];
    return prn_opencl_first_supported(context) && exponent->data && one_exponent(context);
}

static prony_status power_opencl_map_prepare(const prony_context *context, prn_prepared *out)
{
    const prony_value *exponent = context->inputs[1];
    prn_map_id map;
    if (!map_of(prn_get_f64(exponent->data, exponent->dtype, 0), &map))
        return prony_fail(context, PRONY_INTERNAL, "no map has this exponent");
    return prn_opencl_map_prepare(context, out, map, 0.0f, 0.0f);
}

static prony_status power_opencl_prepare(const prony_context *context, prn_prepared *out)
{
    return prn_opencl_binary_prepare(context, out, PRN_BINARY_POW);
}
#endif

static prony_status infer_power(const prony_context *context)
{
    const prony_value *base = context->inputs[0], *exponent = context->inputs[1];
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPES_NUMBER));
    PRN_TRY(prn_check_type(context, 1, PRN_TYPES_NUMBER));
    prony_shape shape;
    if (!prn_shape_broadcast(&shape, &base->shape, &exponent->shape)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "shapes %s and %s do not broadcast",
                          prn_shape_text(&base->shape, left), prn_shape_text(&exponent->shape, right));
    }
    prn_set_output(context, 0, base->dtype, &shape);
    return PRONY_OK;
}

static prony_status cost_power(const prony_context *context, prony_cost *cost)
{
    return prn_cost_map(context, cost, 1, 1, 0);
}

// clang-format off
static const prn_kernel power_kernels[] = {
    PRN_OPENCL_ROW("pow_f32_opencl_map", PRN_TYPE_F32, power_opencl_map_supported, power_opencl_map_prepare, .host_inputs = 2)
    PRN_OPENCL_ROW("pow_f32_opencl", PRN_TYPE_F32, prn_opencl_binary_supported, power_opencl_prepare)
    {.name = "pow_f32_native", .backend = "native", .types = PRN_TYPE_F32, .supported = one_exponent,
     .layouts = prn_same_layout, .layout_invariant = true, .run = run_one_exponent, .inplace = 1},
    {.name = "pow_f32_vec", .backend = "native", .types = PRN_TYPE_F32, .supported = both_f32,
     .layouts = prn_broadcast_layouts, .layout_invariant = true, .run = run_both_f32, .inplace = 3},
    {.name = "pow_reference", .backend = "reference", .run = run_power},
    {0}};

const prn_op prn_ops_power[] = {
    {.name = "Pow", .since_opset = 7, .inputs = {2, 2}, .flags = PRN_OP_BY_VALUE, .non_weight_inputs = 2,
     .infer = infer_power, .cost = cost_power, .cost_text = "n; special n", .kernels = power_kernels},
    {0}};
// clang-format on
