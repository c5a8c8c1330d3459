/* The host table. Subgraphs are bound when their node is first inferred, planned with the outer plan, and run inside the
 * outer step with buffers of their own in the outer arena. */
#include "engine/host.h"
#include "engine/plan.h"

#include <string.h>

static prn_child *child_of(const prony_context *context, const struct prn_graph *graph, const prn_site **site)
{
    *site = context->host_data;
    if (!*site) return NULL;
    int c = prn_node_child((*site)->node, graph);
    return c < 0 ? NULL : &(*site)->node->children[c];
}

static prony_status no_child(const prony_context *context)
{
    return prony_fail(context, PRONY_INTERNAL, "has no such subgraph at this point");
}

/* ---- packed weights ---- */

typedef struct pack_call {
    const prony_context *context;
    prony_status (*build)(const prony_context *context, void *argument, void *packed);
    void *argument;
} pack_call;

static prony_status build_packed(void *argument, void *data)
{
    pack_call *call = argument;
    return call->build(call->context, call->argument, data);
}

static prony_status host_packed(const prony_context *context, const void *source, const char *tag, size_t bytes,
                                prony_status (*build)(const prony_context *context, void *argument, void *packed),
                                void *argument, const void **out)
{
    const prn_site *site = context->host_data;
    if (!site || !site->program) return no_child(context);
    pack_call call = {context, build, argument};
    prn_shared_refs *refs = site->plan ? &site->plan->refs : &site->program->refs;
    return prn_shared_get(site->program->model->shared, refs, source, tag, bytes, build_packed, &call, out,
                          context->error);
}

/* ---- subgraphs: binding ---- */

static prony_status subgraph_infer(const prony_context *context, const struct prn_graph *graph,
                                   const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                                   size_t output_count)
{
    const prn_site *site;
    prn_child *child = child_of(context, graph, &site);
    if (!child) return no_child(context);
    if (!child->program) {
        prony_value *types = prn_calloc(input_count + 1, sizeof *types);
        if (!types) return prn_no_memory(context->error);
        for (size_t i = 0; i < input_count; i++) types[i] = *inputs[i];
        prn_bind_options options = {types, input_count, site->program->static_only};
        prony_status status = prn_program_bind(&child->program, site->program->model, graph, site->program,
                                               child->captured, &options, context->error);
        prn_free(types);
        PRN_TRY(status);
    }
    const prn_program *program = child->program;
    if (program->output_count != output_count)
        return prony_fail(context, PRONY_INVALID_MODEL, "its subgraph '%s' has %zu outputs, the node has %zu", graph->name,
                          program->output_count, output_count);
    for (size_t k = 0; k < output_count; k++) {
        outputs[k] = program->values[program->outputs[k]]->info;
        outputs[k].data = NULL;
    }
    return PRONY_OK;
}

static prony_status subgraph_cost(const prony_context *context, const struct prn_graph *graph,
                                  const prony_value *const *inputs, size_t input_count, prony_cost *cost)
{
    (void)inputs;
    (void)input_count;
    const prn_site *site;
    prn_child *child = child_of(context, graph, &site);
    if (!child || !child->program) return no_child(context);
    *cost = (prony_cost){0};
    for (size_t l = 0; l < child->program->layer_count; l++)
        if (!prn_cost_add(cost, &child->program->layers[l].cost))
            return prony_fail(context, PRONY_LIMIT, "the cost of subgraph '%s' exceeds 64 bits", graph->name);
    return PRONY_OK;
}

/* ---- subgraphs: running ---- */

static prony_status subgraph_run(const prony_context *context, const struct prn_graph *graph,
                                 const prony_value *const *inputs, size_t input_count, prony_value *outputs,
                                 size_t output_count)
{
    const prn_site *site;
    prn_child *child = child_of(context, graph, &site);
    if (!child || !site->step || !site->step->children) return no_child(context);
    prn_plan *plan = site->step->children[child - site->node->children];
    const prn_program *program = child->program;
    if (!plan || program->output_count != output_count || program->input_count != input_count + child->captured_count)
        return no_child(context);
    for (size_t i = 0; i < program->input_count; i++) {
        prn_plan_value *value = plan->values[program->inputs[i]];
        if (value->constant) continue;
        const prony_value *source = NULL;
        if (i < input_count) {
            source = inputs[i];
        } else {
            const prn_plan *outer = site->plan;
            uint32_t v = child->captured[i - input_count];
            while (v != PRN_NO_VALUE && outer->values[v]->value.layout != PRN_PLAIN) v = outer->values[v]->variant;
            if (v != PRN_NO_VALUE) source = &outer->values[v]->value;
        }
        if (!source) return no_child(context);
        value->value = *source;
    }
    plan->arena = site->plan->arena;
    prn_plan_point(plan, plan->base);
    PRN_TRY(prn_plan_run(plan, NULL, context->error));
    for (size_t k = 0; k < output_count; k++) outputs[k] = plan->values[plan->outputs[k]]->value;
    return PRONY_OK;
}

static prony_status output_alloc(const prony_context *context, size_t index)
{
    const prn_site *site = context->host_data;
    if (!site || !site->plan || !site->step || index >= context->output_count || !context->outputs[index])
        return no_child(context);
    prony_value *value = context->outputs[index];
    size_t bytes = prn_value_bytes(value);
    if (bytes == SIZE_MAX) return prony_fail(context, PRONY_LIMIT, "output %zu is too large", index);
    return prn_arena_take(site->plan->arena, bytes, site->step->outputs[index], 0, &value->data, context->error);
}

const prn_host prn_engine_host = {.packed = host_packed,
                                  .subgraph_infer = subgraph_infer,
                                  .subgraph_cost = subgraph_cost,
                                  .subgraph_run = subgraph_run,
                                  .output_alloc = output_alloc};
