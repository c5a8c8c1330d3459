/* Finds the nodes that lead from xs to y, clones them for other values, and walks back over them from y. */
#include "engine/gradient/gradient.h"

#include "base/threads/cancel.h"
#include "engine/gradient/rules.h"

#include <stdlib.h>
#include <string.h>

/* Nodes of the sub-graph, in order of execution. */
typedef struct node_list {
    uint32_t *items;
    size_t count, capacity;
} node_list;

/* ---- the sub-graph ---- */

static uint32_t maker_of(const prn_program *p, uint32_t value)
{
    const prn_value_def *def = p->values[value];
    return def->producer != PRN_NO_NODE ? def->producer : def->folded_from;
}

typedef struct id_stack {
    uint32_t *items;
    size_t count, capacity;
} id_stack;

static bool backward_visit(prn_gradient *g, id_stack *stack, uint32_t value)
{
    if (value == PRN_NO_VALUE) return true;
    prn_gradient_mark *mark = prn_grad_mark(g, value);
    if (!mark) return false;
    if (mark->seen) return true;
    mark->seen = true;
    if (mark->leaf) return true;
    if (!PRN_GROW(stack->items, stack->capacity, stack->count + 1)) return false;
    stack->items[stack->count++] = value;
    return true;
}

static bool visit_inputs(prn_gradient *g, id_stack *stack, const prn_node_def *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!backward_visit(g, stack, node->inputs[i])) return false;
    for (uint32_t c = 0; c < node->child_count; c++)
        for (uint32_t k = 0; k < node->children[c].captured_count; k++)
            if (!backward_visit(g, stack, node->children[c].captured[k])) return false;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_once(node_list *list)
{
    if (list->count == 0) return;
    size_t kept = 1;
    qsort(list->items, list->count, sizeof *list->items, compare_ids);
    for (size_t i = 1; i < list->count; i++)
        if (list->items[i] != list->items[kept - 1]) list->items[kept++] = list->items[i];
    list->count = kept;
}

/* Collects all nodes on which y depends, up to the leaves. */
static bool backward_collect(prn_gradient *g, uint32_t y, node_list *list)
{
    id_stack stack = {0};
    bool ok = backward_visit(g, &stack, y);
    while (ok && stack.count) {
        const uint32_t maker = maker_of(g->program, stack.items[--stack.count]);
        if (maker == PRN_NO_NODE) continue;
        ok = PRN_GROW(list->items, list->capacity, list->count + 1);
        if (!ok) break;
        list->items[list->count++] = maker;
        ok = visit_inputs(g, &stack, g->program->nodes[maker]);
    }
    prn_free(stack.items);
    sort_once(list);
    g->job->looked_at += list->count;
    if (!ok && !prn_grad_failed(g)) g->status = prn_no_memory(g->error);
    return ok;
}

static bool set_leaves(prn_gradient *g, const uint32_t *ids, size_t count, bool depends)
{
    for (size_t k = 0; k < count; k++) {
        prn_gradient_mark *mark = prn_grad_mark(g, ids[k]);
        if (!mark) return false;
        mark->leaf = true;
        mark->depends |= depends;
    }
    return true;
}

/* ---- the same nodes on other values ---- */

/* A copy of the sub-graph, if xs and zs are given other values than the named tensors. */
typedef struct clone {
    uint32_t *to; /* by value; PRN_NO_VALUE: itself */
    size_t count;
} clone;

static uint32_t clone_of(const clone *c, uint32_t value)
{
    return value != PRN_NO_VALUE && value < c->count && c->to[value] != PRN_NO_VALUE ? c->to[value] : value;
}

static bool clone_touches(const clone *c, const prn_node_def *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (clone_of(c, node->inputs[i]) != node->inputs[i]) return true;
    for (uint32_t k = 0; k < node->child_count; k++)
        for (uint32_t n = 0; n < node->children[k].captured_count; n++)
            if (clone_of(c, node->children[k].captured[n]) != node->children[k].captured[n]) return true;
    return false;
}

/* Makes the same node on the cloned inputs, and maps its outputs to the clone's. */
static prony_status clone_node(prn_gradient *g, clone *c, const prn_node_def *node)
{
    g->node = node;
    if (node->child_count) {
        prn_grad_refuse(g, "xs and zs have other values than the tensors that they name, and it has a subgraph");
        return g->status;
    }
    uint32_t *inputs = prn_bump_alloc(&g->program->pool, node->input_count + 1, sizeof *inputs);
    uint32_t *outputs = prn_bump_alloc(&g->program->pool, node->output_count + 1, sizeof *outputs);
    if (!inputs || !outputs) return prn_no_memory(g->error);
    for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = clone_of(c, node->inputs[i]);
    for (uint32_t k = 0; k < node->output_count; k++) outputs[k] = node->outputs[k];
    prn_gradient_node made = {.name = node->info.name,
                              .op_type = node->info.op_type,
                              .domain = node->info.domain,
                              .opset = node->info.opset,
                              .attributes = *node->info.attributes,
                              .inputs = inputs,
                              .input_count = node->input_count,
                              .outputs = outputs,
                              .output_count = node->output_count};
    PRN_TRY(g->job->make(g->job->user, &made));
    for (uint32_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != PRN_NO_VALUE) c->to[node->outputs[k]] = outputs[k];
    return PRONY_OK;
}

/* Gives each leaf its own value, even if two are given the same one. */
static bool clone_leaves(prn_gradient *g, clone *c, const prn_gradient_values *values, uint32_t *leaves)
{
    bool changed = false;
    for (size_t k = 0; k < values->count; k++) {
        leaves[k] = values->ids[k];
        if (values->given[k] == values->ids[k]) continue;
        changed = true;
        leaves[k] = prn_grad_1(g, "Identity", values->given[k]);
        c->to[values->ids[k]] = leaves[k];
    }
    return changed;
}

/* Clones the sub-graph: fills the leaves, and y computed from them. */
static prony_status clone_subgraph(prn_gradient *g, uint32_t *xs, uint32_t *zs, uint32_t *y)
{
    prn_gradient_job *job = g->job;
    node_list list = {0};
    clone c = {.count = g->program->value_count};
    c.to = prn_calloc(c.count + 1, sizeof *c.to);
    if (!c.to) return prn_no_memory(g->error);
    for (size_t i = 0; i < c.count; i++) c.to[i] = PRN_NO_VALUE;
    bool changed = clone_leaves(g, &c, &job->xs, xs);
    changed |= clone_leaves(g, &c, &job->zs, zs);
    if (!prn_grad_failed(g) && changed && set_leaves(g, job->xs.ids, job->xs.count, false) &&
        set_leaves(g, job->zs.ids, job->zs.count, false) && backward_collect(g, job->y, &list)) {
        for (size_t n = 0; !prn_grad_failed(g) && n < list.count; n++) {
            const prn_node_def *node = g->program->nodes[list.items[n]];
            if (clone_touches(&c, node)) g->status = clone_node(g, &c, node);
        }
    }
    *y = clone_of(&c, job->y);
    prn_free(list.items);
    prn_free(c.to);
    if (changed) { /* the backward walk starts again */
        prn_free(g->marks);
        g->marks = NULL;
        g->mark_count = 0;
    }
    g->node = NULL;
    return g->status;
}

/* ---- back ---- */

static void mark_dependents(prn_gradient *g, const prn_node_def *node)
{
    const prn_gradient_rule *rule = prn_gradient_rule_find(node->info.domain, node->info.op_type);
    bool any = false;
    for (uint32_t i = 0; i < node->input_count; i++)
        any |= node->inputs[i] != PRN_NO_VALUE && node->inputs[i] < g->mark_count && g->marks[node->inputs[i]].depends;
    for (uint32_t c = 0; c < node->child_count; c++)
        for (uint32_t k = 0; k < node->children[c].captured_count; k++)
            any |= node->children[c].captured[k] < g->mark_count && g->marks[node->children[c].captured[k]].depends;
    if (!any || (rule && !rule->rule)) return;
    for (uint32_t k = 0; k < node->output_count; k++) {
        if (node->outputs[k] == PRN_NO_VALUE || !prn_grad_is_float(g, node->outputs[k])) continue;
        prn_gradient_mark *mark = prn_grad_mark(g, node->outputs[k]);
        if (!mark) return;
        if (!mark->leaf) mark->depends = true;
    }
}

static bool has_gradient(const prn_gradient *g, const prn_node_def *node)
{
    for (uint32_t k = 0; k < node->output_count; k++) {
        const uint32_t id = node->outputs[k];
        if (id != PRN_NO_VALUE && id < g->mark_count && g->marks[id].depends && !g->marks[id].leaf &&
            g->marks[id].gradient != PRN_NO_VALUE)
            return true;
    }
    return false;
}

static void step_back(prn_gradient *g, const prn_node_def *node, int depth);

/* Walks back over nodes that replace a composite. Recursion is as deep as composites nest. */
static void back_through(prn_gradient *g, size_t first, size_t end, int depth)
{
    const prn_node_def *outer = g->node;
    if (depth >= PRN_GRADIENT_LIMIT_DEPTH) {
        prn_grad_refuse(g, "its rule nests rules more than %d deep", PRN_GRADIENT_LIMIT_DEPTH);
        return;
    }
    for (size_t n = first; !prn_grad_failed(g) && n < end; n++) mark_dependents(g, g->program->nodes[n]);
    for (size_t n = end; !prn_grad_failed(g) && n-- > first;) step_back(g, g->program->nodes[n], depth);
    g->node = outer;
}

static void step_back(prn_gradient *g, const prn_node_def *node, int depth)
{
    if (!has_gradient(g, node)) return;
    g->node = node;
    const prn_gradient_rule *rule = prn_gradient_rule_find(node->info.domain, node->info.op_type);
    if (!rule) {
        prn_grad_refuse(g, "no gradient rule exists for this operator");
        return;
    }
    const size_t first = g->program->node_count;
    g->seeded = false;
    rule->rule(g);
    const bool seeded = g->seeded;
    g->seeded = false;
    if (seeded && !prn_grad_failed(g)) back_through(g, first, g->program->node_count, depth + 1);
    g->node = NULL;
}

static void walk_back(prn_gradient *g, uint32_t y, const node_list *list)
{
    for (size_t n = 0; !prn_grad_failed(g) && n < list->count; n++)
        mark_dependents(g, g->program->nodes[list->items[n]]);
    if (prn_grad_failed(g) || !g->marks[y].depends) return;
    prn_grad_add_to(g, y, prn_grad_filled(g, y, 1));
    for (size_t n = list->count; !prn_grad_failed(g) && n-- > 0;) {
        step_back(g, g->program->nodes[list->items[n]], 0);
        if (!prn_grad_failed(g) && prn_cancelled()) g->status = prn_cancel_check(g->error);
    }
}

static prony_status differentiate(prn_gradient *g, uint32_t *leaves, const bool *wanted, uint32_t *made)
{
    prn_gradient_job *job = g->job;
    uint32_t *zs = leaves + job->xs.count, y = job->y;
    node_list list = {0};
    PRN_TRY(clone_subgraph(g, leaves, zs, &y));
    if (set_leaves(g, zs, job->zs.count, false) && set_leaves(g, leaves, job->xs.count, true) &&
        backward_collect(g, y, &list))
        walk_back(g, y, &list);
    prn_free(list.items);
    for (size_t k = 0; !prn_grad_failed(g) && k < job->xs.count; k++) {
        if (!wanted[k]) continue;
        const uint32_t there = g->marks[leaves[k]].gradient;
        made[k] = there != PRN_NO_VALUE ? there : prn_grad_filled(g, leaves[k], 0);
    }
    return g->status;
}

prony_status prn_gradient_run(prn_gradient_job *job, const bool *wanted, uint32_t *made, prony_error *error)
{
    prn_gradient g = {.job = job, .program = job->program, .error = error};
    uint32_t *leaves = prn_calloc(job->xs.count + job->zs.count + 1, sizeof *leaves);
    if (!leaves) return prn_no_memory(error);
    prony_status status = differentiate(&g, leaves, wanted, made);
    prn_free(g.marks);
    prn_free(leaves);
    return status;
}
