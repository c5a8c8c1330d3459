/* Costs of the plan's steps: the sums of the layers that each step stands for.
 *
 * Views and joins are not steps. Layers of such a node go to a step, so that costs are conserved: for example, a
 * removed multiplication by 1 may belong to a Reshape alone. Only layers with a cost move; a view's own layer stays
 * with it.
 *
 * Invariant: each layer with a cost that was not folded belongs to the node of one step, if the plan has steps. */
#include "base/memory/alloc.h"
#include "base/memory/stack.h"
#include "engine/bind/node.h"
#include "engine/plan/planner.h"

PRN_OWN_FRAME prony_status prn_plan_step_cost(prn_plan *plan, prn_step *step, prony_error *error)
{
    prony_cost cost = {0};
    for (uint32_t l = 0; l < step->node->layer_count; l++) {
        if (prn_step_learns_cost(step) && step->node->layers[l] != step->node->own_layer)
            continue; /* prn_step_beside() has them */
        const prony_cost layer = prn_layer_cost(&plan->program->layers[step->node->layers[l]]);
        if (!prn_cost_add(&cost, &layer))
            return prn_fail(error, PRONY_LIMIT, "node '%s': the cost exceeds 64 bits", step->node->info.name);
    }
    if (!step->dynamic && step->node->layer_count != 1) { /* a fused operator or a Reorder: its traffic is that across
                                                             its own border */
        prony_cost border;
        prony_context context = step->context;
        prn_node_def bare = {.binding = {.cost = prn_cost_none}};
        context.error = error;
        PRN_TRY(prn_node_cost(&bare, &context, &border));
        cost.bytes_read = border.bytes_read;
        cost.bytes_written = border.bytes_written;
    }
    prn_cost_keep(&step->work.cost, &cost);
    return PRONY_OK;
}

/* ---- layers without a step ---- */

static bool counts_something(const prn_program *program, const prn_node_def *node)
{
    for (uint32_t l = 0; l < node->layer_count; l++) {
        const prn_kept_cost *cost = &program->layers[node->layers[l]].cost;
        if (cost->macs || cost->madds || cost->flops || cost->special || cost->int_ops || cost->parameters) return true;
    }
    return false;
}

/* The node's number in the program, found by its outputs; PRN_NO_NODE: of another program, or a Reorder. */
static uint32_t step_costs_number_of(const prn_program *program, const prn_node_def *node)
{
    for (uint32_t k = 0; k < node->output_count; k++) {
        const uint32_t value = node->outputs[k];
        if (value == PRN_NO_VALUE || value >= program->value_count) continue;
        const uint32_t n = program->values[value]->producer;
        if (n != PRN_NO_NODE && program->nodes[n] == node) return n;
    }
    return PRN_NO_NODE;
}

static uint32_t producer_of(const prn_program *program, uint32_t value)
{
    return value == PRN_NO_VALUE ? PRN_NO_NODE : program->values[value]->producer;
}

/* By node, 1 + the step that stands for it: its own, else its producer's, else its reader's; 0: none. */
static void step_costs_find_steps(const prn_plan *plan, uint32_t *step)
{
    const prn_program *program = plan->program;
    for (size_t s = 0; s < plan->step_count; s++) {
        const uint32_t n = step_costs_number_of(program, plan->steps[s]->node);
        if (n != PRN_NO_NODE) step[n] = (uint32_t)s + 1;
    }
    for (size_t n = 0; n < program->node_count; n++) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t i = 0; step[n] == 0 && !node->dead && i < node->input_count; i++) {
            const uint32_t from = producer_of(program, node->inputs[i]);
            if (from != PRN_NO_NODE) step[n] = step[from];
        }
    }
    for (size_t n = program->node_count; n-- > 0;) {
        const prn_node_def *node = program->nodes[n];
        for (uint32_t i = 0; step[n] && !node->dead && i < node->input_count; i++) {
            const uint32_t from = producer_of(program, node->inputs[i]);
            if (from != PRN_NO_NODE && step[from] == 0) step[from] = step[n];
        }
    }
}

prony_status prn_plan_adopt_layers(prn_plan *plan, prony_error *error)
{
    prn_program *program = plan->program;
    if (plan->step_count == 0) return PRONY_OK;
    uint32_t *step = prn_calloc(program->node_count + 1, sizeof *step);
    if (!step) return prn_no_memory(error);
    step_costs_find_steps(plan, step);
    prony_status status = PRONY_OK;
    for (size_t n = 0; n < program->node_count && status == PRONY_OK; n++) {
        prn_node_def *node = program->nodes[n];
        if (node->dead || !counts_something(program, node)) continue;
        prn_step *heir = plan->steps[step[n] ? step[n] - 1 : 0];
        if (heir->node == node) continue;
        prn_program_mark_removed(program, node); /* they have no time */
        status = prn_program_hand_over(program, heir->node, node) ? prn_plan_step_cost(plan, heir, error)
                                                                  : prn_no_memory(error);
    }
    prn_free(step);
    return status;
}
