#include "profiler/accuracy/accuracy_subgraphs.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "profiler/accuracy/reference.h"

#include <stdlib.h>
#include <string.h>

/* true: value `v` of the plan is the same in both programs. */
static bool knows(const prn_accuracy_subgraphs *s, uint32_t v)
{
    if (v >= s->reference->value_count || v >= s->plan->program->value_count) return false;
    const char *here = s->reference->values[v]->name, *there = s->plan->program->values[v]->name;
    return strcmp(here ? here : "", there ? there : "") == 0;
}

uint32_t prn_accuracy_subgraphs_output(const prn_accuracy_subgraphs *s, const prn_step *step, size_t k)
{
    if (s->match) return k == 0 ? s->match[step->index] : PRN_NO_VALUE;
    if (step->outputs[k] == PRN_NO_VALUE) return PRN_NO_VALUE;
    const uint32_t v = s->plan->values[step->outputs[k]]->source;
    return knows(s, v) ? v : PRN_NO_VALUE;
}

/* Finds the node and the first step that make each value of the reference. Folded values count as made by their
 * node. */
prony_status prn_accuracy_subgraphs_create(prn_accuracy_subgraphs *s, const prn_program *reference,
                                           const prn_plan *plan, const uint32_t *match, prony_error *error)
{
    const size_t values = reference->value_count + 1, nodes = reference->node_count + 1;
    *s = (prn_accuracy_subgraphs){.reference = reference,
                                  .plan = plan,
                                  .match = match,
                                  .maker = prn_calloc(values, sizeof *s->maker),
                                  .step_of = prn_calloc(values, sizeof *s->step_of),
                                  .seen = prn_calloc(nodes, sizeof *s->seen),
                                  .value_seen = prn_calloc(values, sizeof *s->value_seen),
                                  .stack = prn_calloc(values, sizeof *s->stack),
                                  .nodes = prn_calloc(nodes, sizeof *s->nodes),
                                  .leaves = prn_calloc(values, sizeof *s->leaves)};
    if (!s->maker || !s->step_of || !s->seen || !s->value_seen || !s->stack || !s->nodes || !s->leaves)
        return prn_no_memory(error);
    for (uint32_t v = 0; v < reference->value_count; v++) {
        const prn_value_def *value = reference->values[v];
        s->maker[v] = value->producer != PRN_NO_NODE ? value->producer : value->folded_from;
        if (s->maker[v] != PRN_NO_NODE && value->constant && !reference->nodes[s->maker[v]]->binding.op)
            s->maker[v] = PRN_NO_NODE; /* a Constant node; its value was used directly */
        s->step_of[v] = PRN_NO_STEP;
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const prn_step *step = plan->steps[i];
        for (size_t k = 0; step->node->layer_count && k < step->context.output_count; k++) {
            const uint32_t v = prn_accuracy_subgraphs_output(s, step, k);
            if (v != PRN_NO_VALUE && s->step_of[v] == PRN_NO_STEP) s->step_of[v] = i;
        }
    }
    return PRONY_OK;
}

void prn_accuracy_subgraphs_free(prn_accuracy_subgraphs *s)
{
    prn_free(s->maker);
    prn_free(s->step_of);
    prn_free(s->seen);
    prn_free(s->value_seen);
    prn_free(s->stack);
    prn_free(s->nodes);
    prn_free(s->leaves);
}

static int accuracy_subgraphs_ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void accuracy_subgraphs_begin(prn_accuracy_subgraphs *s)
{
    s->walk++;
    s->node_count = s->leaf_count = 0;
}

/* true: a constant that the step reads directly. */
static bool is_operand(const prn_accuracy_subgraphs *s, uint32_t v, uint32_t step)
{
    if (step == PRN_NO_STEP || s->match || !s->reference->values[v]->constant) return false;
    const prn_step *tested = s->plan->steps[step];
    for (size_t i = 0; i < tested->context.input_count; i++)
        if (tested->inputs[i] != PRN_NO_VALUE && s->plan->values[tested->inputs[i]]->source == v) return true;
    return false;
}

/* Values made by steps before `step` are leaves; PRN_NO_STEP: no leaves. */
static void accuracy_subgraphs_follow(prn_accuracy_subgraphs *s, uint32_t target, uint32_t step, const char **why)
{
    size_t depth = 0;
    if (s->value_seen[target] == s->walk) return;
    s->value_seen[target] = s->walk;
    s->stack[depth++] = target;
    while (depth) {
        const uint32_t v = s->stack[--depth], m = s->maker[v];
        if (v != target && step != PRN_NO_STEP && s->step_of[v] < step) { /* PRN_NO_STEP is above every step */
            s->leaves[s->leaf_count++] = v;
            continue;
        }
        if (m == PRN_NO_NODE || s->seen[m] == s->walk || is_operand(s, v, step)) continue;
        s->seen[m] = s->walk;
        const prn_node_def *node = s->reference->nodes[m];
        s->nodes[s->node_count++] = m;
        const char *refused = prn_reference_refuses(node);
        if (refused) {
            if (why) *why = refused;
            continue;
        }
        for (uint32_t i = 0; i < prn_reference_reads(node); i++) {
            const uint32_t in = prn_reference_read_at(node, i);
            if (in == PRN_NO_VALUE || s->value_seen[in] == s->walk) continue;
            s->value_seen[in] = s->walk;
            s->stack[depth++] = in;
        }
    }
}

void prn_accuracy_subgraphs_of_step(prn_accuracy_subgraphs *s, uint32_t step, const char **why)
{
    const prn_step *tested = s->plan->steps[step];
    *why = NULL;
    accuracy_subgraphs_begin(s);
    for (size_t k = 0; k < tested->context.output_count; k++) {
        const uint32_t v = prn_accuracy_subgraphs_output(s, tested, k);
        if (v != PRN_NO_VALUE) accuracy_subgraphs_follow(s, v, step, why);
    }
    qsort(s->nodes, s->node_count, sizeof *s->nodes, accuracy_subgraphs_ascending);
}

void prn_accuracy_subgraphs_of_values(prn_accuracy_subgraphs *s, const uint32_t *targets, size_t count)
{
    accuracy_subgraphs_begin(s);
    for (size_t t = 0; t < count; t++)
        if (targets[t] != PRN_NO_VALUE) accuracy_subgraphs_follow(s, targets[t], PRN_NO_STEP, NULL);
    qsort(s->nodes, s->node_count, sizeof *s->nodes, accuracy_subgraphs_ascending);
}
