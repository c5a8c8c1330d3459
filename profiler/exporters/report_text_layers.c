/* The terminal's table of layers and nested rows. Reads the report only. */
#include "profiler/exporters/report_text_view.h"

#include "profiler/text/number_text.h"
#include "profiler/report/work.h"

#include <stdio.h>
#include <string.h>

enum {
    LAYER_INDEX,
    LAYER_MARK,
    LAYER_NAME,
    LAYER_OP,
    LAYER_RUNS,
    LAYER_OUTPUT,
    LAYER_PARAMETERS,
    LAYER_MACS,
    LAYER_FLOPS,
    LAYER_COUNT,
    LAYER_TIME,
    LAYER_SHARE,
    LAYER_PART,
    LAYER_BAR
};

static const prn_column layer_columns[] = {
    [LAYER_INDEX] = {.title = "#", .right = true},
    [LAYER_MARK] = {.title = ""},
    [LAYER_NAME] = {.title = "layer", .share = 5, .least = 10},
    [LAYER_OP] = {.title = "op", .share = 2, .least = 5},
    [LAYER_RUNS] = {.title = "runs", .right = true},
    [LAYER_OUTPUT] = {.title = "output", .share = 3, .least = 6},
    [LAYER_PARAMETERS] = {.title = "params", .right = true},
    [LAYER_MACS] = {.title = "MACs", .right = true},
    [LAYER_FLOPS] = {.title = "FLOPs", .right = true},
    [LAYER_COUNT] = {.title = "count", .right = true},
    [LAYER_TIME] = {.title = "time", .right = true},
    [LAYER_SHARE] = {.title = "share", .right = true},
    [LAYER_PART] = {.title = "of its operator", .extra = true},
    [LAYER_BAR] = {.title = "", .extra = true},
};

/* One cell of the line with the sum. */
static void layer_sum_cell(const prn_text_view *v, int column, prn_cell *cell)
{
    switch (column) {
    case LAYER_NAME:
        cell->string = prn_view_sum_title(v);
        break;
    case LAYER_PARAMETERS:
        prn_cell_count(cell, v->sum.parameters);
        break;
    case LAYER_MACS:
        prn_cell_count(cell, v->sum.macs);
        break;
    case LAYER_FLOPS:
        prn_cell_count(cell, v->sum.flops);
        break;
    case LAYER_COUNT:
        prn_cell_count(cell, v->counted);
        break;
    case LAYER_TIME:
        prn_cell_time(cell, v->time_ns);
        break;
    case LAYER_SHARE:
        prn_cell_percent(cell, v->share);
        break;
    default:
        break;
    }
}

static const char *layer_mark(const prony_layer_row *l)
{
    return l->folded ? "f" : l->removed ? "-" : l->time_attributed ? "~" : l->dynamic ? "d" : "";
}

static void put_layer_time(prn_cell *cell, const prony_layer_row *l, bool time)
{
    const int digits = prn_estimate_digits(l);
    if (!l->measured || l->removed)
        cell->string = "-";
    else if (l->time_attributed && time)
        prn_cell_about_time(cell, l->time.mean_ns, digits);
    else if (l->time_attributed)
        prn_cell_about_percent(cell, l->share, digits);
    else if (time)
        prn_cell_time(cell, l->time.mean_ns);
    else
        prn_cell_percent(cell, l->share);
}

static const char *nested_mark(const prony_nested_row *n)
{
    return n->cancelled ? "!" : n->folded ? "f" : n->time_attributed ? "~" : n->dynamic ? "d" : "";
}

/* The count of a row without known executions is for one execution. */
static void nested_layer_cell(const prn_text_view *v, const prn_line *line, int column, prn_cell *cell)
{
    const prony_nested_row *n = prn_view_nested(v, line);
    bool subgraph = line->kind == PRN_LINE_SUBGRAPH;
    if (subgraph || n->folded || (n->executed && !n->executions)) cell->style = PRN_STYLE_DIM;
    if (column == LAYER_NAME)
        cell->string = line->label;
    else if (column == LAYER_RUNS && !n->folded)
        prn_view_executions(n, cell);
    if (subgraph) return;
    switch (column) {
    case LAYER_MARK:
        cell->string = nested_mark(n);
        cell->style = PRN_STYLE_DIM;
        break;
    case LAYER_OP:
        cell->string = n->op;
        break;
    case LAYER_OUTPUT:
        prn_cell_shape(cell, n->output_count ? n->outputs[0] : NULL);
        break;
    case LAYER_PARAMETERS:
        prn_cell_count(cell, n->cost.parameters);
        break;
    case LAYER_MACS:
        prn_cell_count(cell, n->cost.macs);
        break;
    case LAYER_FLOPS:
        prn_cell_count(cell, n->cost.flops);
        break;
    case LAYER_TIME:
        if (n->measured && n->executions) prn_cell_time(cell, n->time.mean_ns);
        break;
    case LAYER_SHARE:
        if (n->measured && n->executions) prn_cell_percent(cell, n->share);
        break;
    case LAYER_BAR:
        if (n->measured && n->executions) prn_cell_bar(cell, n->share, v->largest_share);
        break;
    default:
        break;
    }
}

/* One cell of the table of layers; lines of subgraphs and the sum have their own functions. */
static void layer_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prn_text_view *v = user;
    if (row == v->lines.count) {
        layer_sum_cell(v, column, cell);
        return;
    }
    const prn_line *line = &v->lines.items[row];
    if (line->kind != PRN_LINE_ROW) {
        nested_layer_cell(v, line, column, cell);
        return;
    }
    const prony_layer_row *l = &v->report->layers[line->row];
    char part[PRN_PART_TEXT_BYTES];
    const char *share;
    if (l->folded || l->removed) cell->style = PRN_STYLE_DIM;
    switch (column) {
    case LAYER_INDEX:
        prn_cell_index(cell, l->index);
        break;
    case LAYER_MARK:
        cell->string = layer_mark(l);
        cell->style = PRN_STYLE_DIM;
        break;
    case LAYER_NAME:
        cell->string = l->name;
        break;
    case LAYER_OP:
        cell->string = l->op;
        break;
    case LAYER_RUNS:
        break;
    case LAYER_OUTPUT:
        prn_cell_shape(cell, l->output_count ? l->outputs[0] : NULL);
        break;
    case LAYER_PARAMETERS:
        prn_cell_count(cell, l->cost.parameters);
        break;
    case LAYER_MACS:
        prn_cell_count(cell, l->cost.macs);
        break;
    case LAYER_FLOPS:
        prn_cell_count(cell, l->cost.flops);
        break;
    case LAYER_COUNT:
        if (l->counted)
            prn_cell_count(cell, l->count);
        else
            cell->string = "-";
        break;
    case LAYER_TIME:
    case LAYER_SHARE:
        put_layer_time(cell, l, column == LAYER_TIME);
        break;
    case LAYER_PART:
        share = prn_part_text(part, l);
        if (share) snprintf(cell->own, sizeof cell->own, "%s of #%u", share, (unsigned)l->operator_index);
        cell->string = share ? cell->own : "";
        break;
    default:
        if (l->measured) prn_cell_bar(cell, l->share, v->largest_share);
    }
}

/* Collects the marks of the shown rows for the legend, and says what the sum lacks. */
static void put_layer_legend(prn_text *text, const prn_text_view *v)
{
    for (size_t i = 0; i < v->shown; i++) text->marks |= prn_mark_of(layer_mark(&v->report->layers[v->rows[i]]));
    for (size_t i = 0; i < v->lines.count; i++)
        if (v->lines.items[i].kind == PRN_LINE_NESTED)
            text->marks |= prn_mark_of(nested_mark(prn_view_nested(v, &v->lines.items[i])));
    if (!v->filtered && !v->part && prn_report_stamped(v->report) && v->share < 0.9995) {
        char note[96];
        prn_number_text rest;
        snprintf(note, sizeof note,
                 "Another %s %% of the time is in operators that belong to no layer, such as reorders.",
                 prn_number_percent(rest, 1 - v->share));
        prn_text_wrap(text, PRN_STYLE_DIM, 0, note);
    }
}

/* Sums all selected rows, also those that `top` hides, and hides columns without values. */
prony_status prn_text_layers(prn_text *text, const prn_selection *selection, size_t top, prony_error *error)
{
    const prony_report *r = selection->report;
    prn_text_view v = {.report = r, .filtered = selection->filtered, .part = selection->with_subgraphs};
    PRN_TRY(prn_select_layers(selection, &v.rows, &v.count, error));
    v.shown = prn_text_shown_rows(v.count, top);
    for (size_t i = 0; i < v.count; i++) {
        const prony_layer_row *l = &r->layers[v.rows[i]];
        prn_view_add(&v, &l->cost, l->measured, l->time.mean_ns, l->share);
        if (l->counted) v.counted += l->count;
    }
    uint32_t times = 1U << LAYER_TIME | 1U << LAYER_SHARE | 1U << LAYER_PART | 1U << LAYER_BAR,
             hidden = prn_report_stamped(r) ? 0 : times;
    if (!r->totals.counted) hidden |= 1U << LAYER_COUNT;
    prony_status status = prn_lines_make(&v.lines, selection, true, v.rows, v.shown, top != 0, error);
    if (!prn_view_executed(&v)) hidden |= 1U << LAYER_RUNS;
    prn_table table = {.columns = layer_columns,
                       .column_count = sizeof layer_columns / sizeof layer_columns[0],
                       .hidden = hidden,
                       .minor = 1U << LAYER_OUTPUT | 1U << LAYER_PARAMETERS | 1U << LAYER_MACS | 1U << LAYER_FLOPS,
                       .names = 1U << LAYER_NAME,
                       .footer = true,
                       .rows = v.lines.count,
                       .cell = layer_cell,
                       .user = &v};
    if (status == PRONY_OK) {
        prn_text_heading(text, selection->with_subgraphs ? "Inside" : "Layers",
                         selection->with_subgraphs ? "layers with subgraphs, and the nodes in them"
                                                   : "the model's own nodes");
        prn_text_table(text, &table);
        prn_text_hidden_rows(text, v.count - v.shown, "layer");
        prn_view_nested_legend(text, &v, "layers");
        put_layer_legend(text, &v);
    }
    prn_lines_free(&v.lines);
    prn_free(v.rows);
    return status;
}
