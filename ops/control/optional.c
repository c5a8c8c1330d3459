/* Optionals: a tensor or sequence that may be absent. From opset 18 on a plain value counts as an optional that is
 * there. */
#include "ops/kernels/subgraph.h"

/* ---- Optional ---- */

/* Without an input, attribute `type` says of what the optional is empty. */
static prony_status optional_infer(const prony_context *context)
{
    const prony_value *in = prn_input(context, 0);
    const prn_attr *attr = prn_attr_find(context->node->attributes, "type");
    prony_value type = {.kind = PRONY_OPTIONAL, .shape = prn_shape_unknown()};
    if (in && in->kind == PRONY_OPTIONAL) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "an optional of an optional");
    }
    if (!in && (!attr || !attr->tensor)) {
        return prony_fail(context, PRONY_INVALID_MODEL, "has neither an input nor a type");
    }
    type.dtype = in ? in->dtype : attr->tensor->dtype;
    prn_set_output_type(context, 0, &type);
    return PRONY_OK;
}

static prony_status optional_run(const prony_context *context)
{
    const prony_value *in = prn_input(context, 0);
    prony_value value = prn_type_of(context->outputs[0]);
    if (in) {
        PRN_TRY(context->host->items_take(context, &value, 1));
        PRN_TRY(context->host->value_keep(context, in, &value.items[0]));
    }
    return context->host->output_set(context, 0, &value);
}

/* ---- OptionalHasElement ---- */

static prony_status has_infer(const prony_context *context)
{
    prony_shape scalar = prn_shape_scalar();
    prn_set_output(context, 0, PRONY_BOOL, &scalar);
    return PRONY_OK;
}

static prony_status has_run(const prony_context *context)
{
    const prony_value *in = prn_input(context, 0);
    *(uint8_t *)context->outputs[0]->data = in && (in->kind != PRONY_OPTIONAL || in->count > 0);
    return PRONY_OK;
}

/* ---- OptionalGetElement ---- */

static prony_status get_infer(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    prony_value type = prn_type_of(in);
    if (in->kind == PRONY_OPTIONAL) {
        type = (prony_value){.kind = PRONY_TENSOR, .shape = prn_shape_unknown()}; /* a sequence, perhaps */
        if (in->count) type = prn_type_of(&in->items[0]);
    }
    prn_set_output_type(context, 0, &type);
    return PRONY_OK;
}

static prony_status get_run(const prony_context *context)
{
    const prony_value *in = context->inputs[0];
    if (in->kind != PRONY_OPTIONAL) return prn_output_copy(context, 0, in);
    if (in->count == 0) return prony_fail(context, PRONY_OUT_OF_RANGE, "the optional is empty");
    return prn_output_copy(context, 0, &in->items[0]);
}

/* ---- rows ---- */

static const prn_kernel optional_kernels[] = {
    {.name = "optional_reference", .backend = "reference", .run = optional_run}, {0}};
static const prn_kernel has_kernels[] = {
    {.name = "optional_has_element_reference", .backend = "reference", .run = has_run}, {0}};
static const prn_kernel get_kernels[] = {
    {.name = "optional_get_element_reference", .backend = "reference", .run = get_run}, {0}};

// clang-format off
const prn_op prn_ops_optional[] = {
    {.name = "Optional", .since_opset = 15, .inputs = {0, 1}, .flags = PRN_OP_OPEN,
     .infer = optional_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = optional_kernels},
    {.name = "OptionalHasElement", .since_opset = 15, .inputs = {0, 1}, .flags = PRN_OP_OPEN,
     .infer = has_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = has_kernels},
    {.name = "OptionalGetElement", .since_opset = 15, .inputs = {1, 1}, .flags = PRN_OP_OPEN,
     .infer = get_infer, .cost = prn_cost_none, .cost_text = "0", .kernels = get_kernels},
    {0}};
// clang-format on
