/* Opsets 1 to 6 of the binary operators: the second operand broadcasts to the first only if `broadcast` says so, and
 * then meets its axes from `axis` on, or its last ones. PRelu's slopes belong to the channels. The work is that of the
 * operator's later form, with the second operand's shape extended by ones.
 * Invariant: the extended shape has the same elements in the same order. */
#include "base/memory/alloc.h"
#include "ops/delegate.h"

typedef struct legacy_params {
    int64_t axis, broadcast;
} legacy_params;

typedef enum legacy_kind { OPERANDS, SLOPES } legacy_kind;

/* The node as its later form sees it; holds pointers into itself. */
typedef struct later_form {
    prony_context context;
    const prony_value *inputs[2];
    prony_value second;
} later_form;

/* Appends ones to the second operand's shape, so that `axis` of the old broadcast becomes today's rule. The result
 * must have the first operand's shape. */
static prony_status legacy_broadcast_align(const prony_context *context, later_form *out)
{
    const legacy_params *params = context->params;
    const prony_value *first = context->inputs[0], *second = context->inputs[1];
    const bool slopes = *(const legacy_kind *)prn_variant(context) == SLOPES;
    const int rank = first->shape.rank, own = second->shape.rank;
    int64_t axis = slopes ? (own == 1 && rank > 1 ? 1 : PRN_ABSENT) : params->axis;
    *out = (later_form){.context = *context, .inputs = {first, &out->second}, .second = *second};
    out->context.inputs = out->inputs;
    const bool single = prony_shape_numel(&second->shape) == 1 && own <= 1;
    bool fits = own <= rank;
    if (axis != PRN_ABSENT && !single && fits) {
        fits = prn_axis_normalize(&axis, rank) && axis + own <= rank;
        for (int d = own; fits && d < rank - axis; d++) out->second.shape.dim[d] = 1;
        if (fits) out->second.shape.rank = rank - (int)axis;
    }
    prony_shape both;
    fits =
        fits && prn_shape_broadcast(&both, &first->shape, &out->second.shape) && prn_shape_equal(&both, &first->shape);
    if (!slopes && !params->broadcast) fits = fits && prn_shape_equal(&first->shape, &second->shape);
    if (fits) return PRONY_OK;
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    return prony_fail(context, PRONY_SHAPE_MISMATCH, "input 1 of shape %s does not fit %s with broadcast %lld",
                      prn_shape_text(&second->shape, right), prn_shape_text(&first->shape, left),
                      (long long)params->broadcast);
}

static prony_status open_later(const prony_context *context, later_form *form, prn_delegate *to)
{
    enum { FIRST_LATER_OPSET = 7 };
    PRN_TRY(legacy_broadcast_align(context, form));
    return prn_delegate_open(to, &form->context, "", context->node->op_type, FIRST_LATER_OPSET);
}

static prony_status legacy_broadcast_infer(const prony_context *context)
{
    later_form form;
    prn_delegate to;
    PRN_TRY(open_later(context, &form, &to));
    return to.op->infer(&form.context);
}

static prony_status legacy_broadcast_cost(const prony_context *context, prony_cost *out)
{
    later_form form;
    prn_delegate to;
    PRN_TRY(open_later(context, &form, &to));
    return to.op->cost(&form.context, out);
}

static bool legacy_broadcast_supported_native(const prony_context *context)
{
    later_form form;
    prn_delegate to;
    return open_later(context, &form, &to) == PRONY_OK &&
           prn_delegate_kernel(&to, &form.context, true, &prn_like_native);
}

static prony_status legacy_broadcast_prepare_like(const prony_context *context, const prn_kernel *like,
                                                  prn_prepared *out)
{
    later_form form;
    prn_delegate *to = prn_calloc(1, sizeof *to);
    if (!to) return prn_no_memory(context->error);
    prony_status status = open_later(context, &form, to);
    if (status == PRONY_OK) prn_delegate_kernel(to, &form.context, true, like);
    if (status == PRONY_OK) status = prn_delegate_prepare(to, &form.context);
    if (status == PRONY_OK)
        *out = (prn_prepared){to, to->prepared.scratch_bytes};
    else
        prn_free(to);
    return status;
}

static prony_status legacy_broadcast_prepare_native(const prony_context *context, prn_prepared *out)
{
    return legacy_broadcast_prepare_like(context, &prn_like_native, out);
}

static prony_status legacy_broadcast_prepare_reference(const prony_context *context, prn_prepared *out)
{
    return legacy_broadcast_prepare_like(context, &prn_like_reference, out);
}

static prony_status legacy_broadcast_run(const prony_context *context)
{
    later_form form;
    PRN_TRY(legacy_broadcast_align(context, &form));
    return prn_delegate_run(context->state, &form.context, context->scratch);
}

static void legacy_broadcast_release(void *state)
{
    if (state) prn_delegate_release(state);
    prn_free(state);
}

static const prn_param params[] = {PRN_INT(legacy_params, axis, PRN_ABSENT), PRN_INT(legacy_params, broadcast, 0), {0}};

static const legacy_kind operands = OPERANDS, slopes = SLOPES;

/* clang-format off */
#define LEGACY_KERNELS(native_name, reference_name) (const prn_kernel[]) { \
    {.name = native_name, .backend = "native", .supported = legacy_broadcast_supported_native, .prepare = legacy_broadcast_prepare_native, .run = legacy_broadcast_run, \
     .release = legacy_broadcast_release}, \
    {.name = reference_name, .backend = "reference", .prepare = legacy_broadcast_prepare_reference, .run = legacy_broadcast_run, .release = legacy_broadcast_release}, \
    {0}}

// clang-format off
const prn_op prn_ops_legacy_broadcast[] = {
    {.name = "Add", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n", .kernels = LEGACY_KERNELS("add_1_native", "add_1_reference")},
    {.name = "Sub", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n", .kernels = LEGACY_KERNELS("sub_1_native", "sub_1_reference")},
    {.name = "Mul", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n", .kernels = LEGACY_KERNELS("mul_1_native", "mul_1_reference")},
    {.name = "Div", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n; special n",
     .kernels = LEGACY_KERNELS("div_1_native", "div_1_reference")},
    {.name = "Pow", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n; special n",
     .kernels = LEGACY_KERNELS("pow_1_native", "pow_1_reference")},
    {.name = "PRelu", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &slopes,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "2 n", .kernels = LEGACY_KERNELS("prelu_1_native", "prelu_1_reference")},
    {.name = "Equal", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n", .kernels = LEGACY_KERNELS("equal_1_native", "equal_1_reference")},
    {.name = "Greater", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n", .kernels = LEGACY_KERNELS("greater_1_native", "greater_1_reference")},
    {.name = "Less", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "n", .kernels = LEGACY_KERNELS("less_1_native", "less_1_reference")},
    {.name = "And", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "0", .kernels = LEGACY_KERNELS("and_1_native", "and_1_reference")},
    {.name = "Or", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "0", .kernels = LEGACY_KERNELS("or_1_native", "or_1_reference")},
    {.name = "Xor", .since_opset = 1, .inputs = {2, 2}, .flags = PRN_OP_OTHER_FORM,
     .params = params, .params_bytes = sizeof(legacy_params), .variant = &operands,
     .infer = legacy_broadcast_infer, .cost = legacy_broadcast_cost, .cost_text = "0", .kernels = LEGACY_KERNELS("xor_1_native", "xor_1_reference")},
    {0}};
// clang-format on
/* clang-format on */
