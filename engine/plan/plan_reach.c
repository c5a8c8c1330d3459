/* Lists what a change of extents reaches. Steps of a decoder reach the same values again and again, so the lists are
 * made once. */
#include "engine/plan/plan_reach.h"

#include "base/memory/alloc.h"
#include "engine/bind/congruent_nodes.h"

#include <string.h>

enum { REACH_FIRSTS = 32 }; /* different steps that later ones are compared with */

void prn_plan_reach_release(prn_plan *plan)
{
    prn_plan_reach *reach = plan->reach;
    if (!reach) return;
    prn_free(reach->used);
    prn_free(reach->values);
    prn_free(reach->views);
    prn_free(reach->steps);
    prn_free(reach->leaders);
    prn_free(reach);
    plan->reach = NULL;
}

static bool reach_has_value(const prn_plan *plan, uint32_t value)
{
    if (value == PRN_NO_VALUE) return false;
    const prn_value_def *def = plan->program->values[plan->values[value]->source];
    return (def->extents & PRN_DYNAMIC_DIMS_AFFECT) && (!plan->reach->only || def->reached);
}

static bool reach_has_step(const prn_plan *plan, const prn_step *step)
{
    bool found = !plan->reach->only;
    for (size_t i = 0; i < step->context.input_count && !found; i++) found = reach_has_value(plan, step->inputs[i]);
    for (size_t k = 0; k < step->context.output_count && !found; k++) found = reach_has_value(plan, step->outputs[k]);
    for (uint32_t l = 0; l < step->node->layer_count && !found; l++)
        found = plan->program->layers[step->node->layers[l]].reached;
    return found;
}

/* ---- steps that come out alike ---- */

/* true: the layers have the same cost after every change of extents of this reach. */
static bool reach_same_cost(const prn_plan *plan, uint32_t a, uint32_t b)
{
    const prn_program *program = plan->program;
    const prn_layer *x = &program->layers[a], *y = &program->layers[b];
    if (x->folded != y->folded || x->dynamic != y->dynamic || x->removed != y->removed ||
        x->cost.parameters != y->cost.parameters)
        return false;
    const uint32_t x_leader = x->leader ? x->leader : a + 1, y_leader = y->leader ? y->leader : b + 1;
    if (x_leader == y_leader) return true;
    return plan->reach->only && !x->reached && !y->reached && x->cost.macs == y->cost.macs &&
           x->cost.madds == y->cost.madds && x->cost.flops == y->cost.flops && x->cost.special == y->cost.special &&
           x->cost.int_ops == y->cost.int_ops && x->cost.bytes_read == y->cost.bytes_read &&
           x->cost.bytes_written == y->cost.bytes_written;
}

/* true: the operands agree in all but shapes. A constant is the same one in both; operands that are one value in a are
 * one in b. */
static bool reach_same_operands(const prn_plan *plan, const uint32_t *a, const uint32_t *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((a[i] == PRN_NO_VALUE) != (b[i] == PRN_NO_VALUE)) return false;
        if (a[i] == PRN_NO_VALUE) continue;
        const prn_plan_value *x = plan->values[a[i]], *y = plan->values[b[i]];
        if (x->constant != y->constant || (x->constant && a[i] != b[i]) || x->dynamic || y->dynamic ||
            x->value.kind != y->value.kind || x->value.dtype != y->value.dtype || x->value.layout != y->value.layout)
            return false;
        for (size_t j = 0; j < i; j++)
            if ((a[j] == a[i]) != (b[j] == b[i])) return false;
    }
    return true;
}

static bool reach_same_step(const prn_plan *plan, const prn_step *a, const prn_step *b)
{
    const prn_node_def *x = a->node, *y = b->node;
    if (a->kernel != b->kernel || x->binding.op != y->binding.op || x->binding.run_user != y->binding.run_user ||
        x->layer_count != y->layer_count || a->context.input_count != b->context.input_count ||
        a->context.output_count != b->context.output_count ||
        !reach_same_operands(plan, a->inputs, b->inputs, a->context.input_count) ||
        !reach_same_operands(plan, a->outputs, b->outputs, a->context.output_count) ||
        !prn_attributes_equal(x->info.attributes, y->info.attributes))
        return false;
    for (uint32_t l = 0; l < x->layer_count; l++)
        if (!reach_same_cost(plan, x->layers[l], y->layers[l])) return false;
    return true;
}

/* true: the step's kernel, state and cost follow from its attributes, operands and layers. */
static bool reach_may_follow(const prn_step *step)
{
    return step->kernel && !step->dynamic && !step->children && !step->node->post_ops && !step->tuned &&
           step->node->binding.op ==
               prn_op_find(prn_op_domain(step->node->binding.op), step->node->binding.op->name, step->node->info.opset);
}

/* The first listed step like the one at place n; few different ones are compared, so that a plan of many different
 * steps costs no square of their number. */
static uint32_t reach_leader(const prn_plan *plan, uint32_t n, uint32_t *firsts, uint32_t *first_count)
{
    const prn_plan_reach *reach = plan->reach;
    const prn_step *step = plan->steps[reach->steps[n]];
    if (!reach_may_follow(step)) return PRN_NO_STEP;
    for (uint32_t k = 0; k < *first_count; k++)
        if (reach_same_step(plan, plan->steps[firsts[k]], step)) return firsts[k];
    if (*first_count < REACH_FIRSTS) firsts[(*first_count)++] = reach->steps[n];
    return PRN_NO_STEP;
}

static void reach_use(const prn_plan *plan, uint32_t value)
{
    bool *used = plan->reach->used;
    while (value != PRN_NO_VALUE && !used[value]) {
        used[value] = true;
        reach_use(plan, plan->values[value]->alias);
        value = plan->values[value]->view;
    }
}

/* Makes the lists' memory, and marks the values that runs see: rewrites leave others, whose shapes nothing reads. */
static bool reach_create(prn_plan *plan)
{
    prn_plan_reach *made = plan->reach = prn_calloc(1, sizeof *made);
    if (!made) return false;
    made->used = prn_calloc(plan->value_count + 1, sizeof *made->used);
    made->values = prn_calloc(plan->value_count + 1, sizeof *made->values);
    made->views = prn_calloc(plan->value_count + 1, sizeof *made->views);
    made->steps = prn_calloc(plan->step_count + 1, sizeof *made->steps);
    made->leaders = prn_calloc(plan->step_count + 1, sizeof *made->leaders);
    if (!made->used || !made->values || !made->views || !made->steps || !made->leaders) {
        prn_plan_reach_release(plan);
        return false;
    }
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        for (size_t i = 0; i < step->context.input_count; i++) reach_use(plan, step->inputs[i]);
        for (size_t k = 0; k < step->context.output_count; k++) reach_use(plan, step->outputs[k]);
        for (uint32_t c = 0; c < step->node->child_count; c++)
            for (uint32_t k = 0; k < step->node->children[c].captured_count; k++)
                reach_use(plan, prn_plan_plain(plan, step->node->children[c].captured[k]));
    }
    for (size_t k = 0; k < plan->program->output_count; k++) reach_use(plan, plan->outputs[k]);
    return true;
}

bool prn_plan_reach_update(prn_plan *plan)
{
    const prn_program *program = plan->program;
    const bool only = program->reached_only && plan->moves + 1 == program->moves;
    uint32_t firsts[REACH_FIRSTS], first_count = 0;
    if (!plan->reach && !reach_create(plan)) return false;
    prn_plan_reach *reach = plan->reach;
    if (reach->listed && reach->only == only && (!only || reach->reaches == program->reaches)) return true;
    reach->listed = true;
    reach->only = only;
    reach->reaches = program->reaches;
    reach->value_count = reach->view_count = reach->step_count = 0;
    for (uint32_t v = 0; v < plan->value_count; v++) {
        if (!reach->used[v]) continue;
        if (reach_has_value(plan, v)) reach->values[reach->value_count++] = v;
        const uint32_t root = prn_plan_root(plan, v, NULL);
        if (root != v && plan->values[root]->constant && (reach_has_value(plan, v) || reach_has_value(plan, root)))
            reach->views[reach->view_count++] = v;
    }
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (!reach_has_step(plan, plan->steps[s])) continue;
        const uint32_t n = reach->step_count++;
        reach->steps[n] = s;
        reach->leaders[n] = reach_leader(plan, n, firsts, &first_count);
    }
    return true;
}
