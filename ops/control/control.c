/* If: one of two subgraphs, by a condition known at run time. A constant condition never gets here: the engine puts the
 * branch in the node's place. Everything about the subgraphs is asked of the host.
 * Invariant: an output's type and shape are stated early only where both branches agree on them. */
#include "base/memory/alloc.h"
#include "ops/kernels/subgraph.h"

#include <string.h>

/* Values for so many outputs stand on the stack, which nested branches share. */
#define FEW_OUTPUTS 1

typedef struct if_params {
    const struct prn_graph *then_branch, *else_branch;
} if_params;

static const prn_param if_attributes[] = {
    PRN_GRAPH_REQUIRED(if_params, then_branch), PRN_GRAPH_REQUIRED(if_params, else_branch), {0}};

static prony_status if_op_chosen(const prony_context *context, const struct prn_graph **out)
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
    return context->services->subgraph_infer(context, branch, NULL, 0, outputs, context->output_count);
}

/* `yes` and `no` have room for every output. */
static prony_status infer_chosen(const prony_context *context, prony_value *yes)
{
    const struct prn_graph *branch;
    PRN_TRY(if_op_chosen(context, &branch));
    PRN_TRY(infer_branch(context, branch, yes));
    for (size_t k = 0; k < context->output_count; k++) prn_set_output_type(context, k, &yes[k]);
    return PRONY_OK;
}

static prony_status infer_both(const prony_context *context, prony_value *yes, prony_value *no)
{
    const if_params *params = context->params;
    PRN_TRY(infer_branch(context, params->then_branch, yes));
    PRN_TRY(infer_branch(context, params->else_branch, no));
    for (size_t k = 0; k < context->output_count; k++) {
        prony_value *known = prn_type_open(&yes[k]) ? &no[k] : &yes[k];
        PRN_TRY(prn_type_join(context, known, known == &no[k] ? &yes[k] : &no[k], "an output"));
        prn_set_output_type(context, k, known);
    }
    return PRONY_OK;
}

static prony_status if_infer(const prony_context *context)
{
    const prony_value *condition = context->inputs[0];
    const size_t count = context->output_count;
    const size_t wanted = condition->data ? count : 2 * count;
    prony_value few[FEW_OUTPUTS];
    if (!prn_type_open(condition)) {
        PRN_TRY(prn_check_type(context, 0, PRN_TYPE(PRONY_BOOL)));
        if (prn_shape_known(&condition->shape) && prony_shape_numel(&condition->shape) != 1) {
            return prony_fail(context, PRONY_SHAPE_MISMATCH, "the condition is not a scalar");
        }
    }
    prony_value *many = wanted > FEW_OUTPUTS ? prn_calloc(wanted, sizeof *many) : few;
    if (!many) return prn_no_memory(context->error);
    prony_status status = condition->data ? infer_chosen(context, many) : infer_both(context, many, many + count);
    if (many != few) prn_free(many);
    return status;
}

/* The branch that is taken, or the one that costs more while that is open. The weights are those of both. */
static prony_status if_cost(const prony_context *context, prony_cost *cost)
{
    const if_params *params = context->params;
    prony_cost yes = {0}, no = {0};
    uint64_t parameters;
    PRN_TRY(context->services->subgraph_cost(context, params->then_branch, NULL, 0, &yes));
    PRN_TRY(context->services->subgraph_cost(context, params->else_branch, NULL, 0, &no));
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
        PRN_TRY(if_op_chosen(context, &branch));
        take = branch == params->then_branch;
    }
    *cost = take ? yes : no;
    cost->parameters = parameters;
    cost->fact_count = 0;
    if (open) prn_cost_fact(cost, "branch_maximum", 1);
    return PRONY_OK;
}

static prony_status if_prepare(const prony_context *context, prn_prepared *out)
{
    if (context->output_count > FEW_OUTPUTS) out->scratch_bytes = context->output_count * sizeof(prony_value);
    return PRONY_OK;
}

static prony_status if_run(const prony_context *context)
{
    const struct prn_graph *branch;
    prony_value few[FEW_OUTPUTS], *results = context->output_count > FEW_OUTPUTS ? context->scratch : few;
    memset(results, 0, context->output_count * sizeof *results);
    PRN_TRY(if_op_chosen(context, &branch));
    PRN_TRY(context->services->subgraph_run(context, branch, NULL, 0, results, context->output_count));
    for (size_t k = 0; k < context->output_count; k++) PRN_TRY(prn_output_copy(context, k, &results[k]));
    return PRONY_OK;
}

static const prn_kernel if_kernels[] = {
    {.name = "if_reference", .backend = "reference", .prepare = if_prepare, .run = if_run}, {0}};

// clang-format off
const prn_op prn_ops_control[] = {
    {.name = "If", .since_opset = 1, .inputs = {1, 1}, .outputs = {1, -1}, .flags = PRN_OP_OPEN,
     .params = if_attributes, .params_bytes = sizeof(if_params),
     .infer = if_infer, .cost = if_cost, .cost_text = "that of the branch taken; before the run, of the costlier one",
     .kernels = if_kernels},
    {0}};
// clang-format on
