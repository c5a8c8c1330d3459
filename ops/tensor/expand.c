/* Repetition: Expand (broadcasting to a given shape) and Tile. Both are one strided copy with strides of zero.
 * Invariant: every extent of the result is a multiple of the input's. */
#include "base/memory/alloc.h"
#include "ops/kernels/copy/copy_nd.h"
#include "ops/kernels/vector/number.h"
#include "ops/vendor/opencl/opencl_map.h"

static prony_status expand_set_unknown(const prony_context *context)
{
    prony_shape shape = prn_shape_unknown();
    prn_set_output(context, 0, context->inputs[0]->dtype, &shape);
    return PRONY_OK;
}

static prony_status expand_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape wanted = {0}, shape;
    size_t count;
    bool known;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_input_ints(context, 1, wanted.dim, PRONY_MAX_RANK, &count, &known));
    if (!known) return expand_set_unknown(context);
    wanted.rank = (int32_t)count;
    char from[PRN_SHAPE_TEXT_BYTES], to[PRN_SHAPE_TEXT_BYTES];
    for (size_t i = 0; i < count; i++)
        if (wanted.dim[i] < 0)
            return prony_fail(context, PRONY_OUT_OF_RANGE, "shape[%zu] is %lld", i, (long long)wanted.dim[i]);
    if (!prn_shape_known(&wanted) || !prn_shape_broadcast(&shape, &in->shape, &wanted)) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "%s does not expand to %s", prn_shape_text(&in->shape, from),
                          prn_shape_text(&wanted, to));
    }
    if (prony_shape_numel(&shape) < 0)
        return prony_fail(context, PRONY_OUT_OF_RANGE, "an output of shape %s is too large",
                          prn_shape_text(&shape, to));
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

static prony_status expand_run_with(const prony_context *context, prn_copy_fn execute)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = context->outputs[0];
    if (prony_shape_numel(&out->shape) == 0) return PRONY_OK;
    execute(context->threads, prn_copy_width(in->dtype), context->state, in->data, out->data);
    return PRONY_OK;
}

static prony_status expand_run_native(const prony_context *context)
{
    return expand_run_with(context, prn_copy_native);
}

static prony_status expand_run_reference(const prony_context *context)
{
    return expand_run_with(context, prn_copy_reference);
}

static prn_copy expand_copy(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    int64_t from[PRONY_MAX_RANK], to[PRONY_MAX_RANK];
    prn_copy copy = {0};
    prn_shape_broadcast_strides(&in->shape, &out->shape, from);
    prn_shape_strides(&out->shape, to);
    for (int i = 0; i < out->shape.rank; i++) prn_copy_axis(&copy, out->shape.dim[i], from[i], to[i]);
    return copy;
}

static prony_status expand_prepare(const prony_context *context, prn_prepared *prepared)
{
    const prn_copy copy = expand_copy(context);
    return prn_prepared_keep(context, &copy, sizeof copy, prepared);
}

#ifdef PRN_HAVE_OPENCL
static prony_status expand_opencl_prepare(const prony_context *context, prn_prepared *prepared)
{
    const prn_opencl_move move = {.copy = expand_copy(context)};
    return prn_opencl_copy_prepare(context, prepared, &move, 1, NULL);
}
#endif

// clang-format off
static const prn_kernel expand_kernels[] = {
    PRN_OPENCL_ROW("expand_opencl", PRN_OPENCL_COPIED, prn_opencl_move_supported, expand_opencl_prepare, .host_inputs = 2)
    {.name = "expand_native", .backend = "native", .prepare = expand_prepare, .run = expand_run_native, .release = prn_free},
    {.name = "expand_reference", .backend = "reference", .prepare = expand_prepare, .run = expand_run_reference, .release = prn_free},
    {0}};
// clang-format on

/* ---- Tile */

static prony_status tile_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape shape = in->shape;
    int64_t repeats[PRONY_MAX_RANK];
    size_t count;
    bool known;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(prn_input_ints(context, 1, repeats, PRONY_MAX_RANK, &count, &known));
    if (count != (size_t)shape.rank) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "repeats has %zu entries, input 0 has rank %d", count,
                          shape.rank);
    }
    if (!known) return expand_set_unknown(context);
    for (int i = 0; i < shape.rank; i++) {
        if (repeats[i] < 0 || __builtin_mul_overflow(shape.dim[i], repeats[i], &shape.dim[i])) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "repeats[%d] is %lld", i, (long long)repeats[i]);
        }
    }
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

/* Of an output with elements. */
static prn_copy tile_copy(const prony_context *context)
{
    const prony_value *in = context->inputs[0], *out = context->outputs[0];
    int64_t from[PRONY_MAX_RANK], to[PRONY_MAX_RANK];
    prn_copy copy = {0};
    prn_shape_strides(&in->shape, from);
    prn_shape_strides(&out->shape, to);
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t dim = in->shape.dim[i];
        prn_copy_axis(&copy, out->shape.dim[i] / dim, 0, dim * to[i]);
        prn_copy_axis(&copy, dim, from[i], to[i]);
    }
    return copy;
}

static prony_status tile_prepare(const prony_context *context, prn_prepared *prepared)
{
    if (prony_shape_numel(&context->outputs[0]->shape) == 0) return PRONY_OK;
    const prn_copy copy = tile_copy(context);
    return prn_prepared_keep(context, &copy, sizeof copy, prepared);
}

#ifdef PRN_HAVE_OPENCL
static prony_status tile_opencl_prepare(const prony_context *context, prn_prepared *prepared)
{
    const prn_opencl_move move = {.copy = tile_copy(context)};
    return prn_opencl_copy_prepare(context, prepared, &move, 1, NULL);
}
#endif

// clang-format off
static const prn_kernel tile_kernels[] = {
    PRN_OPENCL_ROW("tile_opencl", PRN_OPENCL_COPIED, prn_opencl_move_supported, tile_opencl_prepare, .host_inputs = 6)
    {.name = "tile_native", .backend = "native", .prepare = tile_prepare, .run = expand_run_native, .release = prn_free},
    {.name = "tile_reference", .backend = "reference", .prepare = tile_prepare, .run = expand_run_reference, .release = prn_free},
    {0}};
// clang-format on

/* ---- Tile of opset 1: so many copies along one axis, both given as single numbers of any type */

static prony_status expand_read_number(const prony_context *context, size_t input, int64_t *out, bool *known)
{
    const prony_value *value = context->inputs[input];
    PRN_TRY(prn_check_type(context, input, PRN_TYPES_NUMBER));
    if (prony_shape_numel(&value->shape) != 1) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "input %zu has %lld elements, wanted one", input,
                          (long long)prony_shape_numel(&value->shape));
    }
    *known = *known && value->data;
    if (value->data) *out = prn_f64_to_i64(prn_get_f64(value->data, value->dtype, 0));
    return PRONY_OK;
}

static prony_status tile_1_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape shape = in->shape;
    int64_t tiles = 0, axis = 0;
    bool known = true;
    PRN_TRY(prn_check_movable(context, 0));
    PRN_TRY(expand_read_number(context, 1, &tiles, &known));
    PRN_TRY(expand_read_number(context, 2, &axis, &known));
    if (!known) return expand_set_unknown(context);
    const int64_t given = axis;
    if (!prn_axis_normalize(&axis, shape.rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)given, shape.rank);
    }
    if (tiles < 0 || __builtin_mul_overflow(shape.dim[axis], tiles, &shape.dim[axis]))
        return prony_fail(context, PRONY_OUT_OF_RANGE, "tiles is %lld", (long long)tiles);
    if (prony_shape_numel(&shape) < 0) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    prn_set_output(context, 0, in->dtype, &shape);
    return PRONY_OK;
}

// clang-format off
const prn_op prn_ops_expand[] = {
    {.name = "Expand", .since_opset = 8, .inputs = {2, 2},
     .infer = expand_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = expand_kernels},
    {.name = "Tile", .since_opset = 6, .inputs = {2, 2},
     .infer = tile_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = tile_kernels},
    {.name = "Tile", .since_opset = 1, .inputs = {3, 3}, .non_weight_inputs = 6,
     .infer = tile_1_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = tile_kernels},
    {0}};
// clang-format on
