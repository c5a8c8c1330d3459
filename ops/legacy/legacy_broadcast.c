/* Opsets 1 to 6 of the binary operators: the second operand broadcasts to the first only if `broadcast` says so, and
 * then meets its axes from `axis` on, or its last ones. PRelu's slopes belong to the channels. The work is that of the
 * operator's later form, with the second operand's shape extended by ones.
 * Invariant: the extended shape has the same elements in the same order. */
#include "ops/op.h"

#include <string.h>

typedef struct legacy_params {
    int64_t axis, broadcast;
} legacy_params;

static const prn_op *later_of(const char *name)
{
    return prn_op_find("", name, 7);
}

/* The node as its later form sees it; holds pointers into itself. */
typedef struct later_form {
    prony_context context;
    const prony_value *inputs[2];
    prony_value second;
} later_form;

static prony_status align(const prony_context *context, const prn_op *later, later_form *out)
{
    const legacy_params *params = context->params;
    const prony_value *first = context->inputs[0], *second = context->inputs[1];
    const bool slopes = strcmp(later->name, "PRelu") == 0;
    const int rank = first->shape.rank, own = second->shape.rank;
    int64_t axis = slopes ? (own == 1 && rank > 1 ? 1 : PRN_ABSENT) : params->axis;
    *out = (later_form){.context = *context, .inputs = {first, &out->second}, .second = *second};
    out->context.inputs = out->inputs;
    out->context.user = (void *)(uintptr_t)later->variant;
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

static prony_status infer_later(const prony_context *context, const prn_op *later)
{
    later_form form;
    PRN_TRY(align(context, later, &form));
    return later->infer(&form.context);
}

static prony_status cost_later(const prony_context *context, const prn_op *later, prony_cost *cost)
{
    later_form form;
    PRN_TRY(align(context, later, &form));
    return later->cost(&form.context, cost);
}

static prony_status run_later(const prony_context *context, const prn_op *later)
{
    later_form form;
    PRN_TRY(align(context, later, &form));
    const prn_kernel *kernel = later->kernels;
    while (kernel[1].name) kernel++;
    return kernel->run(&form.context);
}

static const prn_param params[] = {PRN_INT(legacy_params, axis, PRN_ABSENT), PRN_INT(legacy_params, broadcast, 0), {0}};

#define LEGACY(symbol, op_name, text)                                                                                  \
    static prony_status infer_##symbol(const prony_context *context)                                                   \
    {                                                                                                                  \
        return infer_later(context, later_of(op_name));                                                                 \
    }                                                                                                                  \
    static prony_status cost_##symbol(const prony_context *context, prony_cost *cost)                                  \
    {                                                                                                                  \
        return cost_later(context, later_of(op_name), cost);                                                            \
    }                                                                                                                  \
    static prony_status run_##symbol(const prony_context *context)                                                     \
    {                                                                                                                  \
        return run_later(context, later_of(op_name));                                                                   \
    }                                                                                                                  \
    static const prn_kernel symbol##_kernels[] = {                                                                     \
        {.name = #symbol "_1_reference", .backend = "reference", .run = run_##symbol}, {0}};                           \
    const prn_op prn_op_##symbol##_1 = {.name = op_name,                                                               \
                                        .domain = "",                                                                  \
                                        .since_opset = 1,                                                              \
                                        .inputs.least = 2,                                                               \
                                        .inputs.most = 2,                                                               \
                                        .outputs.least = 1,                                                              \
                                        .outputs.most = 1,                                                              \
                                        .flags = PRN_OP_OTHER_FORM,                                                    \
                                        .params = params,                                                              \
                                        .params_bytes = sizeof(legacy_params),                                         \
                                        .infer = infer_##symbol,                                                       \
                                        .cost = cost_##symbol,                                                         \
                                        .cost_text = text,                                                             \
                                        .kernels = symbol##_kernels};

LEGACY(add, "Add", "n")
LEGACY(sub, "Sub", "n")
LEGACY(mul, "Mul", "n")
LEGACY(div, "Div", "n; special n")
LEGACY(pow, "Pow", "n; special n")
LEGACY(prelu, "PRelu", "2 n")
LEGACY(equal, "Equal", "n")
LEGACY(greater, "Greater", "n")
LEGACY(less, "Less", "n")
LEGACY(and, "And", "0")
LEGACY(or, "Or", "0")
LEGACY(xor, "Xor", "0")
