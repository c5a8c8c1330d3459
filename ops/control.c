/* If: one of two subgraphs, by a condition known at run time. A constant condition never gets here: the engine puts the
 * branch in the node's place. Everything about the subgraphs is asked of the host.
 * Invariant: an output's type and shape are stated early only where both branches agree on them. */
#include "ops/copy_nd.h"

#include <string.h>

#define MAX_OUTPUTS 64

typedef struct if_params {
    const struct prn_graph *then_branch, *else_branch;
} if_params;

static const prn_param if_attributes[] = {
    PRN_GRAPH_REQUIRED(if_params, then_branch), PRN_GRAPH_REQUIRED(if_params, else_branch), {0}};

static const struct prn_graph *chosen(const prony_context *context)
{
    const if_params *params = context->params;
    return *(const uint8_t *)context->inputs[0]->data ? params->then_branch : params->else_branch;
}

static prony_status infer_branch(const prony_context *context, const struct prn_graph *branch, prony_value *outputs)
{
    memset(outputs, 0, context->output_count * sizeof *outputs);
    PRN_TRY(context->host->subgraph_infer(context, branch, NULL, 0, outputs, context->output_count));
    for (size_t k = 0; k < context->output_count; k++) {
        if (outputs[k].kind == PRONY_TENSOR) continue;
        return prony_fail(context, PRONY_UNSUPPORTED, "output %zu is no tensor", k);
    }
    return PRONY_OK;
}

static prony_status if_infer(const prony_context *context)
{
    const if_params *params = context->params;
    prony_value yes[MAX_OUTPUTS], no[MAX_OUTPUTS];
    PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_BOOL)));
    if (prony_shape_numel(&context->inputs[0]->shape) != 1) {
        return prony_fail(context, PRONY_SHAPE_MISMATCH, "the condition is no scalar");
    }
    if (context->output_count > MAX_OUTPUTS) {
        return prony_fail(context, PRONY_LIMIT, "has %zu outputs, at most %d are supported", context->output_count,
                          MAX_OUTPUTS);
    }
    if (context->inputs[0]->data) {
        PRN_TRY(infer_branch(context, chosen(context), yes));
        for (size_t k = 0; k < context->output_count; k++) prn_set_output(context, k, yes[k].dtype, &yes[k].shape);
        return PRONY_OK;
    }
    PRN_TRY(infer_branch(context, params->then_branch, yes));
    PRN_TRY(infer_branch(context, params->else_branch, no));
    for (size_t k = 0; k < context->output_count; k++) {
        prony_dtype dtype = yes[k].dtype ? yes[k].dtype : no[k].dtype;
        if (no[k].dtype && dtype != no[k].dtype) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "output %zu is %s in one branch and %s in the other", k,
                              prony_dtype_name(dtype), prony_dtype_name(no[k].dtype));
        }
        bool agreed = prn_shape_known(&yes[k].shape) && prn_shape_equal(&yes[k].shape, &no[k].shape);
        prony_shape shape = agreed ? yes[k].shape : prn_shape_unknown();
        prn_set_output(context, k, dtype, &shape);
    }
    return PRONY_OK;
}

/* The branch that is taken, or the one that costs more while that is open. The weights are those of both. */
static prony_status if_cost(const prony_context *context, prony_cost *cost)
{
    const if_params *params = context->params;
    prony_cost yes = {0}, no = {0};
    uint64_t parameters;
    PRN_TRY(context->host->subgraph_cost(context, params->then_branch, NULL, 0, &yes));
    PRN_TRY(context->host->subgraph_cost(context, params->else_branch, NULL, 0, &no));
    if (!prn_add_u64(&parameters, yes.parameters, no.parameters) ||
        !prn_add_u64(&parameters, parameters, cost->parameters)) {
        return prony_fail(context, PRONY_LIMIT, "the parameters do not fit into 64 bits");
    }
    bool open = !context->inputs[0]->data;
    uint64_t yes_work = yes.flops + yes.int_ops, no_work = no.flops + no.int_ops;
    bool take = yes_work != no_work ? yes_work > no_work
                                    : yes.bytes_read + yes.bytes_written >= no.bytes_read + no.bytes_written;
    if (!open) take = chosen(context) == params->then_branch;
    *cost = take ? yes : no;
    cost->parameters = parameters;
    cost->fact_count = 0;
    if (open) prn_cost_fact(cost, "branch_maximum", 1);
    return PRONY_OK;
}

static prony_status if_run(const prony_context *context)
{
    prony_value results[MAX_OUTPUTS];
    memset(results, 0, sizeof results);
    PRN_TRY(context->host->subgraph_run(context, chosen(context), NULL, 0, results, context->output_count));
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *out = context->outputs[k];
        const prony_value *result = &results[k];
        if (!out) continue;
        if (!out->data && !prn_shape_known(&out->shape)) {
            out->dtype = result->dtype;
            out->shape = result->shape;
            PRN_TRY(context->host->output_alloc(context, k));
        }
        if (out->dtype != result->dtype || !prn_shape_equal(&out->shape, &result->shape)) {
            char came[PRN_SHAPE_TEXT_BYTES], wanted[PRN_SHAPE_TEXT_BYTES];
            return prony_fail(context, PRONY_INTERNAL, "output %zu is %s, planned as %s", k,
                              prn_value_text(result, came), prn_value_text(out, wanted));
        }
        prn_copy_bytes(context->threads, result->data, out->data, prn_value_bytes(out));
    }
    return PRONY_OK;
}

static const prn_kernel if_kernels[] = {
    {.name = "if_reference", .backend = "reference", .run = if_run},
    {0},
};

const prn_op prn_op_if = {.name = "If",
                          .domain = "",
                          .since_opset = 1,
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .min_outputs = 1,
                          .max_outputs = -1,
                          .params = if_attributes,
                          .params_bytes = sizeof(if_params),
                          .infer = if_infer,
                          .cost = if_cost,
                          .cost_text = "that of the branch taken; before the run, of the costlier one",
                          .kernels = if_kernels};
