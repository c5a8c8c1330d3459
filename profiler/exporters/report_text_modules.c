/* The module tree of the terminal report: subtotals of what lies below each inner vertex, the root on top. Reads the
 * report only. */
#include "profiler/exporters/report_text.h"

#include "profiler/exporters/text_cell.h"

#include <stdio.h>
#include <string.h>

enum {
    MODULE_PATH,
    MODULE_TYPE,
    MODULE_LAYERS,
    MODULE_PARAMETERS,
    MODULE_MACS,
    MODULE_FLOPS,
    MODULE_COUNT,
    MODULE_TIME,
    MODULE_SHARE,
    MODULE_BAR
};

static const prn_column module_columns[] = {
    [MODULE_PATH] = {.title = "module", .share = 5, .least = 12},
    [MODULE_TYPE] = {.title = "type", .share = 2, .least = 5},
    [MODULE_LAYERS] = {.title = "layers", .right = true},
    [MODULE_PARAMETERS] = {.title = "params", .right = true},
    [MODULE_MACS] = {.title = "MACs", .right = true},
    [MODULE_FLOPS] = {.title = "FLOPs", .right = true},
    [MODULE_COUNT] = {.title = "count", .right = true},
    [MODULE_TIME] = {.title = "time", .right = true},
    [MODULE_SHARE] = {.title = "share", .right = true},
    [MODULE_BAR] = {.title = "", .extra = true},
};

typedef struct module_view {
    const prony_report *report;
    uint32_t *rows; /* depth first */
    size_t count;
} module_view;

/* "__root__", then the last part of each path, two blanks per level. */
static void put_path(prn_cell *cell, const prony_module_row *m)
{
    const char *part = strrchr(m->path, '/');
    int indent = (int)(m->depth < 12 ? m->depth : 12) * 2;
    if (m->depth == 0) {
        cell->string = "__root__";
        return;
    }
    part = part ? part + 1 : m->path;
    if (strlen(part) + (size_t)indent >= sizeof cell->own) {
        cell->string = part;
        return;
    }
    snprintf(cell->own, sizeof cell->own, "%*s%s", indent, "", part);
    cell->string = cell->own;
}

/* One cell of the table of modules. */
static void module_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const module_view *v = user;
    const prony_module_row *m = &v->report->modules[v->rows[row]];
    if (m->depth == 0) cell->style = PRN_STYLE_BOLD;
    switch (column) {
    case MODULE_PATH:
        put_path(cell, m);
        break;
    case MODULE_TYPE:
        cell->string = m->type;
        break;
    case MODULE_LAYERS:
        prn_cell_count(cell, m->layers);
        break;
    case MODULE_PARAMETERS:
        prn_cell_count(cell, m->parameters);
        break;
    case MODULE_MACS:
        prn_cell_count(cell, m->macs);
        break;
    case MODULE_FLOPS:
        prn_cell_count(cell, m->flops);
        break;
    case MODULE_COUNT:
        prn_cell_count(cell, m->count);
        break;
    case MODULE_TIME:
        prn_cell_time(cell, m->time_ns);
        break;
    case MODULE_SHARE:
        prn_cell_percent(cell, m->share);
        break;
    default:
        prn_cell_bar(cell, m->share, 1);
    }
}

/* Orders modules depth first. Parents stand before their children, so one backward pass links siblings in order, and
 * one walk along the links puts every module after its parent. */
static bool order_depth_first(module_view *v, int64_t depth)
{
    const prony_report *r = v->report;
    size_t modules = r->module_count;
    uint32_t *links = prn_calloc(3 * modules + 1, sizeof *links);
    if (!links) return false;
    uint32_t *first = links, *next = links + modules, *stack = links + 2 * modules;
    for (size_t i = 0; i < modules; i++) first[i] = next[i] = PRONY_NO_INDEX;
    for (size_t i = modules; i-- > 1;) {
        uint32_t parent = r->modules[i].parent;
        if (parent >= i) continue;
        next[i] = first[parent];
        first[parent] = (uint32_t)i;
    }
    size_t top = 0;
    stack[top++] = 0;
    while (top > 0) {
        uint32_t at = stack[--top];
        v->rows[v->count++] = at;
        if (next[at] != PRONY_NO_INDEX) stack[top++] = next[at];
        if (first[at] != PRONY_NO_INDEX && (depth == 0 || (int64_t)r->modules[at].depth < depth))
            stack[top++] = first[at];
    }
    prn_free(links);
    return true;
}

prony_status prn_text_modules(prn_text *text, const prony_report *report, int64_t depth, size_t top, prony_error *error)
{
    if (report->module_count == 0) return PRONY_OK;
    module_view v = {.report = report};
    v.rows = prn_calloc(report->module_count + 1, sizeof *v.rows);
    if (!v.rows || !order_depth_first(&v, depth)) {
        prn_free(v.rows);
        return prn_no_memory(error);
    }
    size_t shown = prn_text_shown_rows(v.count, top);
    uint32_t hidden = prn_report_stamped(report) ? 0 : 1U << MODULE_TIME | 1U << MODULE_SHARE | 1U << MODULE_BAR;
    if (!report->totals.counted) hidden |= 1U << MODULE_COUNT;
    prn_table table = {.columns = module_columns,
                       .column_count = sizeof module_columns / sizeof module_columns[0],
                       .hidden = hidden,
                       .minor = 1U << MODULE_TYPE | 1U << MODULE_PARAMETERS | 1U << MODULE_MACS | 1U << MODULE_FLOPS,
                       .names = 1U << MODULE_PATH,
                       .rows = shown,
                       .cell = module_cell,
                       .user = &v};
    prn_text_heading(text, "Modules", "each includes the modules below it");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, v.count - shown, "module");
    prn_free(v.rows);
    return PRONY_OK;
}
