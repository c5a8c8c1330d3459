/* Makers, edges, reach and urgency of a plan's steps. */
#include "engine/plan/step_graph.h"
#include "base/threads/cancel.h"

#include "engine/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* More edges mean one worker; chosen without measurement. */
#define MOST_EDGES ((size_t)1 << 22)
#define STEP_NS 1000.0     /* fixed cost of a step; chosen without measurement */
#define DYNAMIC_NS 20000.0 /* cost of a step with shapes not known yet; chosen without measurement */

/* ---- makers ---- */

void prn_makers_free(prn_makers *makers)
{
    prn_free(makers->begin);
    prn_free(makers->count);
    prn_free(makers->steps);
    *makers = (prn_makers){0};
}

/* The value that a step makes (or no step does) of which `value` is a form or view. */
static uint32_t made_value(const prn_plan *plan, const bool *output, uint32_t value)
{
    while (!output[value] && plan->values[value]->view != PRN_NO_VALUE) value = plan->values[value]->view;
    return value;
}

static prony_status add_maker(prn_makers *makers, uint32_t step, prony_error *error)
{
    if (makers->used >= MOST_EDGES)
        return prn_fail(error, PRONY_LIMIT, "the graph has more than %zu edges", MOST_EDGES);
    if (!PRN_GROW(makers->steps, makers->capacity, makers->used + 1)) return prn_no_memory(error);
    makers->steps[makers->used++] = step;
    return PRONY_OK;
}

static int step_graph_ascending(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* A removed step passes on the makers of its inputs. */
static prony_status step_graph_hand_on(prn_makers *makers, const prn_plan *plan, const prn_step *step,
                                       const bool *output, uint32_t *begin, uint32_t *count, prony_error *error)
{
    size_t from = makers->used, kept = from;
    for (size_t i = 0; i < step->context.input_count; i++) {
        if (step->inputs[i] == PRN_NO_VALUE) continue;
        uint32_t value = made_value(plan, output, step->inputs[i]);
        for (uint32_t m = 0; m < makers->count[value]; m++)
            PRN_TRY(add_maker(makers, makers->steps[makers->begin[value] + m], error));
    }
    if (makers->used > from)
        qsort(makers->steps + from, makers->used - from, sizeof *makers->steps, step_graph_ascending);
    for (size_t i = from; i < makers->used; i++)
        if (i == from || makers->steps[i] != makers->steps[kept - 1]) makers->steps[kept++] = makers->steps[i];
    makers->used = kept;
    *begin = (uint32_t)from;
    *count = (uint32_t)(kept - from);
    return PRONY_OK;
}

/* In the plan's order, so that a removed step finds the makers of its inputs. `output` marks values that a step has as
 * output. */
static prony_status find_makers(prn_makers *makers, const prn_plan *plan, bool *output, prony_error *error)
{
    uint32_t number = 0;
    for (size_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        uint32_t begin = (uint32_t)makers->used, count = 1;
        PRN_TRY(prn_cancel_check(error));
        if (step->node)
            PRN_TRY(add_maker(makers, number++, error));
        else
            PRN_TRY(step_graph_hand_on(makers, plan, step, output, &begin, &count, error));
        for (size_t k = 0; k < step->context.output_count; k++) {
            if (step->outputs[k] == PRN_NO_VALUE) continue;
            output[step->outputs[k]] = true;
            makers->begin[step->outputs[k]] = begin;
            makers->count[step->outputs[k]] = count;
        }
    }
    /* A value without a step has the makers of the value that it views. */
    for (uint32_t v = 0; v < plan->value_count; v++) {
        uint32_t made = made_value(plan, output, v);
        makers->begin[v] = makers->begin[made];
        makers->count[v] = makers->count[made];
    }
    return PRONY_OK;
}

prony_status prn_makers_find(prn_makers *makers, const prn_plan *plan, prony_error *error)
{
    *makers = (prn_makers){.begin = prn_calloc(plan->value_count + 1, sizeof *makers->begin),
                           .count = prn_calloc(plan->value_count + 1, sizeof *makers->count)};
    bool *output = prn_calloc(plan->value_count + 1, sizeof *output);
    prony_status status =
        makers->begin && makers->count && output ? find_makers(makers, plan, output, error) : prn_no_memory(error);
    prn_free(output);
    if (status != PRONY_OK) prn_makers_free(makers);
    return status;
}

/* ---- edges ---- */

typedef struct edge {
    uint32_t from, to;
} edge;

typedef struct edge_list {
    edge *items;
    size_t count, capacity;
    uint32_t *seen; /* [steps] the last step that has an edge from here, + 1 */
} edge_list;

static prony_status add_edge(edge_list *list, uint32_t from, uint32_t to, prony_error *error)
{
    if (list->seen[from] == to + 1) return PRONY_OK;
    list->seen[from] = to + 1;
    if (list->count >= MOST_EDGES) return prn_fail(error, PRONY_LIMIT, "the graph has more than %zu edges", MOST_EDGES);
    if (!PRN_GROW(list->items, list->capacity, list->count + 1)) return prn_no_memory(error);
    list->items[list->count++] = (edge){from, to};
    return PRONY_OK;
}

static prony_status step_graph_add_reads(edge_list *list, const prn_makers *makers, uint32_t value, uint32_t step,
                                         prony_error *error)
{
    for (uint32_t m = 0; m < makers->count[value]; m++)
        PRN_TRY(add_edge(list, makers->steps[makers->begin[value] + m], step, error));
    return PRONY_OK;
}

/* Edges that keep windows apart. `followed`: steps with an edge into their own window. */
static prony_status add_border(edge_list *list, uint32_t step, const bool *followed, bool leads, prony_error *error)
{
    uint32_t first = step / PRN_WINDOW_STEPS * PRN_WINDOW_STEPS;
    if (first == 0) return PRONY_OK;
    if (step > first) return leads ? PRONY_OK : add_edge(list, first, step, error);
    for (uint32_t s = first - PRN_WINDOW_STEPS; s < first; s++)
        if (!followed[s]) PRN_TRY(add_edge(list, s, step, error));
    return PRONY_OK;
}

static prony_status find_edges(edge_list *list, const prn_plan *plan, const prn_makers *makers, bool *followed,
                               prony_error *error)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const prn_step *step = plan->steps[s];
        size_t before = list->count;
        bool leads = false; /* the step has an edge from its own window */
        PRN_TRY(prn_cancel_check(error));
        for (size_t i = 0; i < step->context.input_count; i++)
            if (step->inputs[i] != PRN_NO_VALUE) PRN_TRY(step_graph_add_reads(list, makers, step->inputs[i], s, error));
        for (uint32_t c = 0; c < step->node->child_count; c++)
            for (uint32_t k = 0; k < step->node->children[c].captured_count; k++)
                PRN_TRY(step_graph_add_reads(list, makers, prn_plan_plain(plan, step->node->children[c].captured[k]), s,
                                             error));
        for (size_t e = before; e < list->count; e++) {
            if (list->items[e].from / PRN_WINDOW_STEPS != s / PRN_WINDOW_STEPS) continue;
            followed[list->items[e].from] = leads = true;
        }
        PRN_TRY(add_border(list, s, followed, leads, error));
        if (s > PRN_WINDOW_STEPS && s % PRN_WINDOW_STEPS && !leads)
            followed[s / PRN_WINDOW_STEPS * PRN_WINDOW_STEPS] = true;
    }
    return PRONY_OK;
}

static prony_status index_edges(prn_step_graph *g, const edge_list *list, prony_error *error)
{
    g->before_count = prn_calloc(g->step_count + (size_t)1, sizeof *g->before_count);
    g->next_begin = prn_calloc(g->step_count + (size_t)2, sizeof *g->next_begin);
    g->next = prn_calloc(list->count + 1, sizeof *g->next);
    if (!g->before_count || !g->next_begin || !g->next) return prn_no_memory(error);
    for (size_t e = 0; e < list->count; e++) {
        g->before_count[list->items[e].to]++;
        g->next_begin[list->items[e].from + 2]++;
    }
    for (uint32_t s = 0; s < g->step_count; s++) g->next_begin[s + 2] += g->next_begin[s + 1];
    for (size_t e = 0; e < list->count; e++) g->next[g->next_begin[list->items[e].from + 1]++] = list->items[e].to;
    return PRONY_OK;
}

static prony_status build_edges(prn_step_graph *g, const prn_plan *plan, const prn_makers *makers, prony_error *error)
{
    edge_list list = {.seen = prn_calloc(g->step_count + (size_t)1, sizeof *list.seen)};
    bool *followed = prn_calloc(g->step_count + (size_t)1, sizeof *followed);
    prony_status status =
        list.seen && followed ? find_edges(&list, plan, makers, followed, error) : prn_no_memory(error);
    if (status == PRONY_OK) status = index_edges(g, &list, error);
    prn_free(list.items);
    prn_free(list.seen);
    prn_free(followed);
    return status;
}

/* ---- reach ---- */

static prony_status step_graph_find_reach(prn_step_graph *g, prony_error *error)
{
    g->after = prn_calloc(g->step_count + (size_t)1, PRN_WINDOW_WORDS * sizeof *g->after);
    if (!g->after) return prn_no_memory(error);
    for (uint32_t s = g->step_count; s-- > 0;) {
        uint64_t *row = g->after + s * (size_t)PRN_WINDOW_WORDS;
        PRN_TRY(prn_cancel_check(error));
        for (uint32_t e = g->next_begin[s]; e < g->next_begin[s + 1]; e++) {
            uint32_t to = g->next[e], bit = to % PRN_WINDOW_STEPS;
            if (to / PRN_WINDOW_STEPS != s / PRN_WINDOW_STEPS) continue;
            const uint64_t *more = prn_step_after(g, to);
            for (uint32_t w = 0; w < PRN_WINDOW_WORDS; w++) row[w] |= more[w];
            row[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    }
    return PRONY_OK;
}

static double step_ns(const prn_step *step, const prn_step_rates *rates)
{
    const prn_kept_cost *cost = &step->work.cost;
    double compute = ((double)cost->flops + (double)cost->int_ops) / rates->flops_per_ns;
    double memory = ((double)cost->bytes_read + (double)cost->bytes_written) / rates->bytes_per_ns;
    return (step->dynamic ? DYNAMIC_NS : STEP_NS) + (compute > memory ? compute : memory);
}

typedef struct urgency {
    double path_ns;
    uint32_t step;
} urgency;

static int more_urgent(const void *left, const void *right)
{
    const urgency *a = left, *b = right;
    if (a->path_ns != b->path_ns) return a->path_ns > b->path_ns ? -1 : 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

/* Longest paths backwards over the steps, whose edges lead to higher numbers; ranks by path, then by position. */
static prony_status find_urgency(prn_step_graph *g, const prn_plan *plan, const prn_step_rates *rates,
                                 prony_error *error)
{
    size_t n = g->step_count + (size_t)1;
    g->cost_ns = prn_calloc(n, sizeof *g->cost_ns);
    g->path_ns = prn_calloc(n, sizeof *g->path_ns);
    g->by_rank = prn_calloc(n, sizeof *g->by_rank);
    g->rank = prn_calloc(n, sizeof *g->rank);
    urgency *order = prn_calloc(n, sizeof *order);
    bool ok = g->cost_ns && g->path_ns && g->by_rank && g->rank && order;
    for (uint32_t s = g->step_count; ok && s-- > 0;) {
        double rest = 0;
        for (uint32_t e = g->next_begin[s]; e < g->next_begin[s + 1]; e++)
            if (g->path_ns[g->next[e]] > rest) rest = g->path_ns[g->next[e]];
        g->cost_ns[s] = step_ns(plan->steps[s], rates);
        g->path_ns[s] = g->cost_ns[s] + rest;
        g->total_ns += g->cost_ns[s];
        if (g->path_ns[s] > g->critical_ns) g->critical_ns = g->path_ns[s];
        order[s] = (urgency){g->path_ns[s], s};
    }
    if (ok) qsort(order, g->step_count, sizeof *order, more_urgent);
    for (uint32_t r = 0; ok && r < g->step_count; r++) {
        g->by_rank[r] = order[r].step;
        g->rank[order[r].step] = r;
    }
    prn_free(order);
    return ok ? PRONY_OK : prn_no_memory(error);
}

prony_status prn_step_graph_create(prn_step_graph **out, const prn_plan *plan, const prn_makers *makers,
                                   const prn_step_rates *rates, prony_error *error)
{
    prn_step_graph *g = prn_calloc(1, sizeof *g);
    if (!g) return prn_no_memory(error);
    g->step_count = (uint32_t)plan->step_count;
    prony_status status = build_edges(g, plan, makers, error);
    if (status == PRONY_OK) status = step_graph_find_reach(g, error);
    if (status == PRONY_OK) status = find_urgency(g, plan, rates, error);
    if (status == PRONY_OK)
        *out = g;
    else
        prn_step_graph_release(g);
    return status;
}

void prn_step_graph_release(prn_step_graph *g)
{
    if (!g) return;
    prn_free(g->before_count);
    prn_free(g->next_begin);
    prn_free(g->next);
    prn_free(g->after);
    prn_free(g->cost_ns);
    prn_free(g->path_ns);
    prn_free(g->by_rank);
    prn_free(g->rank);
    prn_free(g);
}
