/* Operators whose result is their input's bytes under another shape: Reshape, Flatten, Squeeze, Unsqueeze and Identity.
 * The engine lets the result be a view; the kernel copies where it cannot. Invariant: output 0 has exactly input 0's
 * elements in input 0's order. */
#include "ops/kernels/copy/broadcast.h"
#include "ops/kernels/copy/copy_nd.h"

#include <string.h>

static prony_status reshape_run_view(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = prn_output(context, 0);
    if (out) prn_copy_bytes(context->threads, in->data, out->data, prn_layout_bytes(in));
    return PRONY_OK;
}

static const prn_kernel view_kernels[] = {
    {.name = "view_reference", .backend = "reference", .run = reshape_run_view, .inplace = 1}, {0}};

/* Axes in [-rank, rank), each once, as a bit mask. */
static prony_status axes_mask(const prony_context *context, const int64_t *axes, size_t count, int rank, uint32_t *mask)
{
    *mask = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i];
        if (!prn_axis_normalize(&axis, rank)) {
            return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axes[i], rank);
        }
        if (*mask >> axis & 1) {
            return prony_fail(context, PRONY_INVALID_MODEL, "axis %lld is given twice", (long long)axes[i]);
        }
        *mask |= UINT32_C(1) << axis;
    }
    return PRONY_OK;
}

static prony_status set_shape(const prony_context *context, const prony_shape *shape)
{
    prn_set_output(context, 0, context->inputs[0]->dtype, shape);
    return PRONY_OK;
}

static prony_status reshape_set_unknown(const prony_context *context)
{
    prony_shape shape = prn_shape_unknown();
    return set_shape(context, &shape);
}

/* ---- Reshape */

typedef struct reshape_params {
    int64_t allowzero;
    prn_ints shape;
} reshape_params;

static const prn_param reshape_attributes[] = {
    PRN_INT(reshape_params, allowzero, 0), PRN_INTS(reshape_params, shape), {0}};

/* Before opset 5 the shape is an attribute. */
static prony_status read_wanted(const prony_context *context, int64_t wanted[PRONY_MAX_RANK], size_t *count,
                                bool *known)
{
    const prn_ints *list = &((const reshape_params *)context->params)->shape;
    if (context->node->opset >= 5) {
        if (!prn_input(context, 1)) return prony_fail(context, PRONY_INVALID_MODEL, "input 'shape' is missing");
        PRN_TRY(prn_check_rank(context, 1, 1, 1));
        return prn_input_ints(context, 1, wanted, PRONY_MAX_RANK, count, known);
    }
    if (!list->present || list->count > PRONY_MAX_RANK)
        return prony_fail(context, PRONY_INVALID_MODEL, "attribute 'shape' is missing or has %zu entries", list->count);
    *count = list->count;
    *known = true;
    if (list->count > 0) memcpy(wanted, list->v, list->count * sizeof *wanted);
    return PRONY_OK;
}

/* The wanted shape with 0 (copy, unless allowzero) and one -1 (inferred) replaced; the element count may not change. */
static prony_status reshape_infer(const prony_context *context)
{
    const reshape_params *params = context->params;
    const prony_value *in = context->inputs[0];
    prony_shape shape = {0};
    int64_t wanted[PRONY_MAX_RANK];
    size_t count;
    bool known;
    PRN_TRY(prn_check_tensor(context, 0));
    PRN_TRY(read_wanted(context, wanted, &count, &known));
    if (!known) return reshape_set_unknown(context);
    int inferred = -1;
    shape.rank = (int32_t)count;
    for (int i = 0; i < shape.rank; i++) {
        shape.dim[i] = wanted[i];
        if (wanted[i] < -1 || (wanted[i] == -1 && inferred >= 0)) {
            return prony_fail(context, PRONY_INVALID_MODEL, "shape[%d] = %lld is invalid", i, (long long)wanted[i]);
        }
        if (wanted[i] == -1) {
            inferred = i;
            shape.dim[i] = 1;
        } else if (wanted[i] == 0 && !params->allowzero) {
            if (i >= in->shape.rank) {
                return prony_fail(context, PRONY_INVALID_MODEL,
                                  "shape[%d] = 0 copies an axis that the input does not have", i);
            }
            shape.dim[i] = in->shape.dim[i];
        }
    }
    int64_t have = prony_shape_numel(&in->shape), rest = prony_shape_numel(&shape);
    if (inferred >= 0 && rest > 0 && have % rest == 0) shape.dim[inferred] = have / rest;
    if (prony_shape_numel(&shape) != have || (inferred >= 0 && rest <= 0)) {
        char from[PRN_SHAPE_TEXT_BYTES], to[PRN_SHAPE_TEXT_BYTES];
        if (inferred >= 0) shape.dim[inferred] = -1;
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "cannot reshape %s to %s", prn_shape_text(&in->shape, from),
                          prn_shape_text(&shape, to));
    }
    return set_shape(context, &shape);
}

/* ---- Flatten */

typedef struct flatten_params {
    int64_t axis;
} flatten_params;

static const prn_param flatten_attributes[] = {PRN_INT(flatten_params, axis, 1), {0}};

static prony_status flatten_infer(const prony_context *context)
{
    const flatten_params *params = context->params;
    const prony_value *in = context->inputs[0];
    int64_t axis = params->axis;
    PRN_TRY(prn_check_tensor(context, 0));
    if (axis != in->shape.rank && !prn_axis_normalize(&axis, in->shape.rank)) {
        return prony_fail(context, PRONY_OUT_OF_RANGE, "axis %lld is outside of rank %d", (long long)axis,
                          in->shape.rank);
    }
    prony_shape shape = {
        2, {prn_shape_count(&in->shape, 0, (int)axis), prn_shape_count(&in->shape, (int)axis, in->shape.rank)}};
    if (!prn_shape_known(&shape)) return prony_fail(context, PRONY_LIMIT, "the output is too large");
    return set_shape(context, &shape);
}

/* ---- Squeeze, Unsqueeze */

typedef struct axes_params {
    prn_ints axes;
} axes_params;

static const prn_param axes_attributes[] = {PRN_INTS(axes_params, axes), {0}};

/* Axes from input 1 (opset 13) or the attribute. */
static prony_status reshape_read_axes(const prony_context *context, int64_t axes[PRONY_MAX_RANK], size_t *count,
                                      bool *known, bool *given)
{
    const axes_params *params = context->params;
    *given = prn_input(context, 1) != NULL;
    if (*given || !params->axes.present) return prn_input_ints(context, 1, axes, PRONY_MAX_RANK, count, known);
    *given = *known = true;
    *count = params->axes.count;
    if (*count > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "%zu axes", *count);
    memcpy(axes, params->axes.v, *count * sizeof *axes);
    return PRONY_OK;
}

static prony_status squeeze_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape shape = {0};
    int64_t axes[PRONY_MAX_RANK];
    size_t count;
    bool known, given;
    uint32_t mask;
    PRN_TRY(prn_check_tensor(context, 0));
    PRN_TRY(reshape_read_axes(context, axes, &count, &known, &given));
    if (!known) return reshape_set_unknown(context);
    PRN_TRY(axes_mask(context, axes, count, in->shape.rank, &mask));
    for (int i = 0; i < in->shape.rank; i++) {
        bool drop = given ? mask >> i & 1 : in->shape.dim[i] == 1;
        if (drop && in->shape.dim[i] != 1) {
            char text[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "axis %d of %s is not 1", i,
                              prn_shape_text(&in->shape, text));
        }
        if (!drop) shape.dim[shape.rank++] = in->shape.dim[i];
    }
    return set_shape(context, &shape);
}

static prony_status unsqueeze_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_shape shape = {0};
    int64_t axes[PRONY_MAX_RANK];
    size_t count;
    bool known, given;
    uint32_t mask;
    PRN_TRY(prn_check_tensor(context, 0));
    PRN_TRY(reshape_read_axes(context, axes, &count, &known, &given));
    if (!given) return prony_fail(context, PRONY_INVALID_MODEL, "no axes are given");
    if (!known) return reshape_set_unknown(context);
    shape.rank = in->shape.rank + (int32_t)count;
    if (shape.rank > PRONY_MAX_RANK) return prony_fail(context, PRONY_LIMIT, "rank %d is too large", shape.rank);
    PRN_TRY(axes_mask(context, axes, count, shape.rank, &mask));
    for (int i = 0, from = 0; i < shape.rank; i++) shape.dim[i] = mask >> i & 1 ? 1 : in->shape.dim[from++];
    return set_shape(context, &shape);
}

/* ---- Identity */

/* Of a sequence or optional it is the engine's business: the output holds what the input holds. */
static prony_status identity_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_value *out = prn_output(context, 0);
    if (in->kind == PRONY_TENSOR && in->dtype != PRONY_UNDEFINED) PRN_TRY(prn_check_tensor(context, 0));
    if (out) {
        out->kind = in->kind;
        out->dtype = in->dtype;
        out->shape = in->shape;
    }
    return PRONY_OK;
}

static const prn_kernel identity_kernels[] = {{.name = "identity_reference",
                                               .backend = "reference",
                                               .layouts = prn_same_layout,
                                               .run = reshape_run_view,
                                               .inplace = 1},
                                              {0}};

// clang-format off
const prn_op prn_ops_reshape[] = {
    {.name = "Reshape", .since_opset = 1, .inputs = {1, 2}, .flags = PRN_OP_VIEW,
     .params = reshape_attributes, .params_bytes = sizeof(reshape_params),
     .infer = reshape_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = view_kernels},
    {.name = "Flatten", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_VIEW,
     .params = flatten_attributes, .params_bytes = sizeof(flatten_params),
     .infer = flatten_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = view_kernels},
    {.name = "Squeeze", .since_opset = 1, .inputs = {1, 2}, .flags = PRN_OP_VIEW,
     .params = axes_attributes, .params_bytes = sizeof(axes_params),
     .infer = squeeze_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = view_kernels},
    {.name = "Unsqueeze", .since_opset = 1, .inputs = {1, 2}, .flags = PRN_OP_VIEW,
     .params = axes_attributes, .params_bytes = sizeof(axes_params),
     .infer = unsqueeze_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = view_kernels},
    {.name = "Identity", .since_opset = 1, .inputs = {1, 1}, .flags = PRN_OP_VIEW | PRN_OP_OPEN,
     .infer = identity_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = identity_kernels},
    {0}};
// clang-format on
