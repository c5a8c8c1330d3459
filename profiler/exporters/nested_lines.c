#include "profiler/exporters/nested_lines.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_INSIDE = 6, DEEPEST = 80 };
#define LEAST_SHARE 0.01 /* least share of the whole to be shown in a short table; chosen without measurement */

/* The weight by which rows are chosen. */
static double weight(const prn_selection *s, const prony_nested_row *row)
{
    if (prn_select_sums_up(s->sort) && s->sort != PRN_KEY_TIME) return prn_select_nested_value(s, row);
    return row->measured ? row->share : (double)row->cost.flops;
}

typedef struct candidate {
    double weight;
    size_t index;
} candidate;

static int by_weight(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->weight > b->weight || a->weight < b->weight) return a->weight > b->weight ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Marks the shown rows. A parent weighs no less than its nested rows and stands before them, so it is chosen first. */
static prony_status nested_lines_choose(const prn_selection *s, const prony_nested_row *rows, size_t count,
                                        double whole, bool *chosen, prony_error *error)
{
    candidate *list = prn_calloc(count + 1, sizeof *list);
    if (!list) return prn_no_memory(error);
    for (size_t i = 0; i < count; i++) list[i] = (candidate){weight(s, &rows[i]), i};
    qsort(list, count, sizeof *list, by_weight);
    for (size_t i = 0; i < count; i++)
        chosen[list[i].index] = rows[list[i].index].cancelled ||
                                (i < MOST_INSIDE && list[i].weight > 0 && list[i].weight >= whole * LEAST_SHARE);
    prn_free(list);
    return PRONY_OK;
}

static double whole_of(const prn_selection *s, bool layer)
{
    double sum = 0;
    if (prn_report_stamped(s->report) && (!prn_select_sums_up(s->sort) || s->sort == PRN_KEY_TIME)) return 1;
    if (!prn_select_sums_up(s->sort) || s->sort == PRN_KEY_TIME) return (double)s->report->totals.cost.flops;
    size_t count = layer ? s->report->layer_count : s->report->operator_count;
    for (uint32_t i = 0; i < count; i++) sum += prn_select_value(s, layer, i);
    return sum;
}

static bool add_line(prn_lines *lines, prn_line_kind kind, uint32_t row, unsigned indent, const char *text)
{
    if (!PRN_GROW(lines->items, lines->capacity, lines->count + 1)) return false;
    const char *label = text ? prn_bump_printf(&lines->pool, "%*s%s", (int)indent, "", text) : NULL;
    lines->items[lines->count++] = (prn_line){kind, row, label};
    return !text || label;
}

/* Adds a nested row. A subgraph is named at its first shown row; deeper rows come in between. */
static bool nested_lines_add_nested(prn_lines *lines, const prony_nested_row *row, const char **paths)
{
    unsigned depth = row->depth < DEEPEST ? row->depth : DEEPEST - 1;
    lines->any_nested = true;
    for (unsigned d = depth + 1; d < DEEPEST && paths[d]; d++) paths[d] = NULL;
    if (!paths[depth] || strcmp(paths[depth], row->path) != 0) {
        paths[depth] = row->path;
        if (!add_line(lines, PRN_LINE_SUBGRAPH, row->index, 2 * depth - 1, row->subgraph)) return false;
    }
    return add_line(lines, PRN_LINE_NESTED, row->index, 2 * depth, row->name);
}

static prony_status add_inside(prn_lines *lines, const prn_selection *s, uint32_t owner, bool few, double whole,
                               prony_error *error)
{
    const char *paths[DEEPEST] = {NULL};
    size_t first, count = prn_nested_of(lines->nested, lines->nested_count, owner, &first);
    if (!count) return PRONY_OK;
    bool *chosen = prn_calloc(count, sizeof *chosen), ok = true;
    if (!chosen) return prn_no_memory(error);
    memset(chosen, true, count * sizeof *chosen);
    prony_status status = few ? nested_lines_choose(s, lines->nested + first, count, whole, chosen, error) : PRONY_OK;
    for (size_t i = 0; status == PRONY_OK && ok && i < count; i++) {
        if (chosen[i])
            ok = nested_lines_add_nested(lines, &lines->nested[first + i], paths);
        else
            lines->hidden++;
    }
    prn_free(chosen);
    return ok ? status : prn_no_memory(error);
}

/* Adds nested rows that pass the filter while their owner does not. */
static prony_status nested_lines_add_named(prn_lines *lines, const prn_selection *s, bool layer, prony_error *error)
{
    for (size_t i = 0; i < lines->nested_count; i++) {
        const prony_nested_row *row = &lines->nested[i];
        if (prn_select_passes(s, layer, row->owner) || !prn_select_nested_passes(s, layer, row)) continue;
        const char *text = prn_bump_printf(&lines->pool, "%s > %s", row->path, row->name);
        lines->any_nested = true;
        if (!text || !add_line(lines, PRN_LINE_NESTED, row->index, 2, text)) return prn_no_memory(error);
    }
    return PRONY_OK;
}

prony_status prn_lines_make(prn_lines *lines, const prn_selection *s, bool layer, const uint32_t *rows, size_t count,
                            bool few, prony_error *error)
{
    const prony_report *r = s->report;
    *lines = (prn_lines){.nested = layer ? r->nested_layers : r->nested_operators,
                         .nested_count = layer ? r->nested_layer_count : r->nested_operator_count};
    double whole = lines->nested_count ? whole_of(s, layer) : 0;
    for (size_t i = 0; i < count; i++) {
        if (!add_line(lines, PRN_LINE_ROW, rows[i], 0, NULL)) return prn_no_memory(error);
        PRN_TRY(add_inside(lines, s, rows[i], few, whole, error));
    }
    return s->filtered ? nested_lines_add_named(lines, s, layer, error) : PRONY_OK;
}

void prn_lines_free(prn_lines *lines)
{
    prn_free(lines->items);
    prn_bump_release(&lines->pool);
}
