/* The critical path: the longest dependency chain of operators by mean time. Linear in layers and their inputs.
 *
 * Units are operators, and layers without an operator (views), which take no time but pass dependencies on. An operator
 * without a layer, such as a reorder, belongs to the next one, which reads its output.
 *
 * An operator may have layers on both sides of a view (a quantised pool for the QuantizeLinear after a Flatten). So
 * dependencies on later operators in execution order are ignored. */
#include "profiler/report/report.h"
#include "base/memory/row_block.h"

#include <string.h>

typedef struct unit_graph {
    const prony_report *report;
    size_t units;
    uint32_t *first, *next, *target; /* edges by source unit */
    size_t edges;
    uint32_t *rank;   /* of a view: the last operator that it waits for; of an operator: itself */
    uint32_t *waits;  /* unfinished edges into a unit */
    uint32_t *before; /* on the longest chain; PRONY_NO_INDEX: none */
    int64_t *finish_ns;
    uint32_t *queue;
} unit_graph;

static uint32_t unit_of(const prony_report *r, uint32_t layer)
{
    uint32_t executed = r->layers[layer].operator_index;
    return executed < r->operator_count ? executed : (uint32_t)r->operator_count + layer;
}

static bool is_operator(const unit_graph *g, uint32_t unit)
{
    return unit < g->report->operator_count;
}

static void add_edges(unit_graph *g)
{
    const prony_report *r = g->report;
    for (uint32_t u = 0; u < g->units; u++) g->rank[u] = is_operator(g, u) ? u : 0;
    for (uint32_t l = 0; l < r->layer_count; l++) {
        uint32_t to = unit_of(r, l);
        for (size_t i = 0; r->layers[l].sources && i < r->layers[l].input_count; i++) {
            uint32_t source = r->layers[l].sources[i];
            if (source >= r->layer_count) continue;
            uint32_t from = unit_of(r, source), edge = (uint32_t)g->edges;
            if (from == to || (source < l && is_operator(g, to) && g->rank[from] >= to)) continue;
            if (!is_operator(g, to) && g->rank[to] < g->rank[from]) g->rank[to] = g->rank[from];
            g->target[edge] = to;
            g->next[edge] = g->first[from];
            g->first[from] = edge;
            g->waits[to]++;
            g->edges++;
        }
    }
}

/* The first of the operators without layers that run right before `unit`, or `unit` itself. */
static uint32_t lead_of(const prony_report *r, uint32_t unit)
{
    while (unit > 0 && r->operators[unit - 1].layer_count == 0) unit--;
    return unit;
}

static int64_t critical_path_time_of(const unit_graph *g, uint32_t unit)
{
    const prony_report *r = g->report;
    int64_t sum = 0;
    if (unit >= r->operator_count || r->operators[unit].layer_count == 0) return 0;
    for (uint32_t o = lead_of(r, unit); o <= unit; o++) sum += r->operators[o].time.mean_ns;
    return sum;
}

static size_t operators_of(const unit_graph *g, uint32_t unit)
{
    return unit < g->report->operator_count ? unit - lead_of(g->report, unit) + 1 : 0;
}

/* Finds the unit that finishes last; false: a dependency cycle, which only a forged report can have.
 */
static bool find_last(unit_graph *g, uint32_t *last)
{
    size_t head = 0, tail = 0;
    for (uint32_t u = 0; u < g->units; u++) {
        g->finish_ns[u] = critical_path_time_of(g, u);
        g->before[u] = PRONY_NO_INDEX;
        if (g->waits[u] == 0) g->queue[tail++] = u;
    }
    for (*last = g->queue[0]; head < tail; head++) {
        uint32_t from = g->queue[head];
        if (g->finish_ns[from] > g->finish_ns[*last]) *last = from;
        for (uint32_t e = g->first[from]; e != PRONY_NO_INDEX; e = g->next[e]) {
            uint32_t to = g->target[e];
            if (g->finish_ns[from] + critical_path_time_of(g, to) > g->finish_ns[to]) {
                g->finish_ns[to] = g->finish_ns[from] + critical_path_time_of(g, to);
                g->before[to] = from;
            }
            if (--g->waits[to] == 0) g->queue[tail++] = to;
        }
    }
    return tail == g->units;
}

static prony_status take_chain(uint32_t **operators, size_t *count, const unit_graph *g, uint32_t last,
                               prony_error *error)
{
    *count = 0;
    for (uint32_t u = last; u != PRONY_NO_INDEX; u = g->before[u]) *count += operators_of(g, u);
    *operators = prn_rows_create(*count, sizeof **operators);
    if (!*operators) return prn_no_memory(error);
    size_t at = *count;
    for (uint32_t u = last; u != PRONY_NO_INDEX; u = g->before[u])
        for (size_t k = operators_of(g, u); k > 0; k--) (*operators)[--at] = u - (uint32_t)(operators_of(g, u) - k);
    return PRONY_OK;
}

static bool knows_sources(const prony_report *r)
{
    for (size_t l = 0; l < r->layer_count; l++)
        if (r->layers[l].sources) return true;
    return false;
}

/* Makes the graph of units, computes finish times in topological order, and follows the chain back from the last
 * one. */
prony_status prony_report_critical_path(uint32_t **operators, size_t *count, int64_t *time_ns,
                                        const prony_report *report, prony_error *error)
{
    if (!operators || !count || !time_ns || !report)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_report_critical_path: an argument is NULL");
    if (!prn_report_stamped(report) || !report->operator_count || !knows_sources(report))
        return prn_fail(error, PRONY_UNSUPPORTED, "the report has no operator times, or its layers have no sources");
    unit_graph g = {.report = report, .units = report->operator_count + report->layer_count};
    size_t edges = 1;
    for (size_t l = 0; l < report->layer_count; l++) edges += report->layers[l].input_count;
    prn_bump pool = {0};
    g.first = prn_bump_alloc(&pool, g.units, sizeof *g.first);
    g.next = prn_bump_alloc(&pool, edges, sizeof *g.next);
    g.target = prn_bump_alloc(&pool, edges, sizeof *g.target);
    g.rank = prn_bump_alloc(&pool, g.units, sizeof *g.rank);
    g.waits = prn_bump_alloc(&pool, g.units, sizeof *g.waits);
    g.before = prn_bump_alloc(&pool, g.units, sizeof *g.before);
    g.finish_ns = prn_bump_alloc(&pool, g.units, sizeof *g.finish_ns);
    g.queue = prn_bump_alloc(&pool, g.units + 1, sizeof *g.queue);
    bool room = g.first && g.next && g.target && g.rank && g.waits && g.before && g.finish_ns && g.queue;
    prony_status status = room ? PRONY_OK : prn_no_memory(error);
    uint32_t last = 0;
    if (status == PRONY_OK) {
        memset(g.first, 0xff, g.units * sizeof *g.first);
        add_edges(&g);
        if (!find_last(&g, &last)) status = prn_fail(error, PRONY_INVALID_ARGUMENT, "the report's layers form a cycle");
    }
    if (status == PRONY_OK) status = take_chain(operators, count, &g, last, error);
    if (status == PRONY_OK) *time_ns = g.finish_ns[last];
    prn_bump_release(&pool);
    return status;
}
