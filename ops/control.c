/* If: one of two subgraphs, by a condition known at run time. A constant condition never gets here: the engine puts the
 * branch in the node's place. Everything about the subgraphs is asked of the host.
 * Invariant: an output's type and shape are stated early only where both branches agree on them. */
#include "ops/subgraph.h"

#include <string.h>

#define MAX_OUTPUTS 64

typedef struct if_params {
    const struct prn_graph *then_branch, *else_branch;
} if_params;

static const prn_param if_attributes[] = {
    PRN_GRAPH_REQUIRED(if_params, then_branch), PRN_GRAPH_REQUIRED(if_params, else_branch), {0}};

static prony_status chosen(const prony_context *context, const struct prn_graph **out)
{
    const if_params *params = context->params;
    bool condition;
    PRN_TRY(prn_scalar_bool(context, context->inputs[0], "the condition", &condition));
    *out = condition ? params->then_branch : params->else_branch;
    return PRONY_OK;
}

static prony_status infer_branch(const prony_context *context, const struct prn_graph *branch, prony_value *outputs)
{
    memset(outputs, 0, context->output_count * sizeof *outputs);
    return context->host->subgraph_infer(context, branch, NULL, 0, outputs, context->output_count);
}

static prony_status if_infer(const prony_context *context)
{
    const if_params *params = context->params;
    const prony_value *condition = context->inputs[0];
    prony_value yes[MAX_OUTPUTS], no[MAX_OUTPUTS];
    if (!prn_type_open(condition)) {
        PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_BOOL)));
        if (prn_shape_known(&condition->shape) && prony_shape_numel(&condition->shape) != 1) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "the condition is no scalar");
        }
    }
    if (context->output_count > MAX_OUTPUTS) {
        return prony_fail(context, PRONY_LIMIT, "has %zu outputs, at most %d are supported", context->output_count,
                          MAX_OUTPUTS);
    }
    if (condition->data) {
        const struct prn_graph *branch;
        PRN_TRY(chosen(context, &branch));
        PRN_TRY(infer_branch(context, branch, yes));
        for (size_t k = 0; k < context->output_count; k++) prn_set_output_type(context, k, &yes[k]);
        return PRONY_OK;
    }
    PRN_TRY(infer_branch(context, params->then_branch, yes));
    PRN_TRY(infer_branch(context, params->else_branch, no));
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value type = prn_type_open(&yes[k]) ? no[k] : yes[k];
        PRN_TRY(prn_type_join(context, &type, prn_type_open(&yes[k]) ? &yes[k] : &no[k], "an output"));
        prn_set_output_type(context, k, &type);
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
    if (!open) {
        const struct prn_graph *branch;
        PRN_TRY(chosen(context, &branch));
        take = branch == params->then_branch;
    }
    *cost = take ? yes : no;
    cost->parameters = parameters;
    cost->fact_count = 0;
    if (open) prn_cost_fact(cost, "branch_maximum", 1);
    return PRONY_OK;
}

static prony_status if_run(const prony_context *context)
{
    const struct prn_graph *branch;
    prony_value results[MAX_OUTPUTS];
    memset(results, 0, sizeof results);
    PRN_TRY(chosen(context, &branch));
    PRN_TRY(context->host->subgraph_run(context, branch, NULL, 0, results, context->output_count));
    for (size_t k = 0; k < context->output_count; k++) PRN_TRY(prn_output_copy(context, k, &results[k]));
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
                          .flags = PRN_OP_OPEN,
                          .params = if_attributes,
                          .params_bytes = sizeof(if_params),
                          .infer = if_infer,
                          .cost = if_cost,
                          .cost_text = "that of the branch taken; before the run, of the costlier one",
                          .kernels = if_kernels};
