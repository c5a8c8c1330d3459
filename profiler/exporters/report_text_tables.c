/* The terminal's tables of operators, with nested rows, and of memory over the run. Each is a set of columns and a
 * function that makes one cell from a row of the report. Reads the report only; the order of the rows is freed at the
 * end of the call. */
#include "profiler/exporters/report_text_view.h"

#include "profiler/text/number_text.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- operators ---- */

enum {
    OPERATOR_INDEX,
    OPERATOR_NAME,
    OPERATOR_KERNEL,
    OPERATOR_RUNS,
    OPERATOR_TIME,
    OPERATOR_SHARE,
    OPERATOR_CUMULATIVE,
    OPERATOR_RATE,
    OPERATOR_FLOPS,
    OPERATOR_BOUND,
    OPERATOR_ROOF,
    OPERATOR_THREADS,
    OPERATOR_CORES,
    OPERATOR_LAYERS,
    OPERATOR_BAR
};

static const prn_column operator_columns[] = {
    [OPERATOR_INDEX] = {.title = "#", .right = true},
    [OPERATOR_NAME] = {.title = "operator", .share = 5, .least = 10},
    [OPERATOR_KERNEL] = {.title = "kernel", .share = 3, .least = 8},
    [OPERATOR_RUNS] = {.title = "runs", .right = true},
    [OPERATOR_TIME] = {.title = "time", .right = true},
    [OPERATOR_SHARE] = {.title = "share", .right = true},
    [OPERATOR_CUMULATIVE] = {.title = "cum", .right = true},
    [OPERATOR_RATE] = {.title = "GFLOP/s", .right = true},
    [OPERATOR_FLOPS] = {.title = "FLOPs", .right = true, .extra = true},
    [OPERATOR_BOUND] = {.title = "bound by", .extra = true},
    [OPERATOR_ROOF] = {.title = "roof", .right = true, .extra = true},
    [OPERATOR_THREADS] = {.title = "thr", .right = true},
    [OPERATOR_CORES] = {.title = "cores", .right = true, .extra = true},
    [OPERATOR_LAYERS] = {.title = "layers", .right = true, .extra = true},
    [OPERATOR_BAR] = {.title = "", .extra = true},
};

static void operator_sum_cell(const prn_text_view *v, int column, prn_cell *cell)
{
    switch (column) {
    case OPERATOR_NAME:
        cell->string = prn_view_sum_title(v);
        break;
    case OPERATOR_TIME:
        prn_cell_time(cell, v->time_ns);
        break;
    case OPERATOR_SHARE:
        prn_cell_percent(cell, v->share);
        break;
    case OPERATOR_RATE:
        prn_cell_gflops(cell, v->sum.flops, v->time_ns);
        break;
    case OPERATOR_FLOPS:
        prn_cell_count(cell, v->sum.flops);
        break;
    default:
        break;
    }
}

typedef struct operator_view {
    prn_text_view rows;
    double *cumulative; /* by line */
} operator_view;

/* true: threads were traced, with more than one. */
static bool traced_threads(const prony_report *r)
{
    for (size_t o = 0; o < r->operator_count; o++)
        if (r->operators[o].parallel.threads_used > 0 && r->operators[o].threads > 1) return true;
    return false;
}

/* The share of its roof that an operator reaches. */
static void put_roof(prn_cell *cell, const prony_report *r, size_t index)
{
    double share;
    if (prony_report_bound(r, index, &share) == PRONY_BOUND_UNKNOWN) {
        cell->string = "-";
        return;
    }
    prn_cell_percent(cell, share);
    cell->style = PRN_STYLE_PLAIN;
}

/* One cell of a line inside of an operator: a subgraph's name or a nested row. */
static void nested_operator_cell(const prn_text_view *v, const prn_line *line, int column, prn_cell *cell)
{
    const prony_nested_row *n = prn_view_nested(v, line);
    bool subgraph = line->kind == PRN_LINE_SUBGRAPH;
    if (subgraph || (n->executed && !n->executions)) cell->style = PRN_STYLE_DIM;
    if (column == OPERATOR_NAME)
        cell->string = line->label;
    else if (column == OPERATOR_RUNS)
        prn_view_executions(n, cell);
    if (subgraph) return;
    bool timed = n->measured && n->executions;
    switch (column) {
    case OPERATOR_INDEX:
        cell->string = n->cancelled ? "!" : "";
        break;
    case OPERATOR_KERNEL:
        cell->string = n->kernel;
        break;
    case OPERATOR_TIME:
        if (timed) prn_cell_time(cell, n->time.mean_ns);
        break;
    case OPERATOR_SHARE:
        if (timed) prn_cell_percent(cell, n->share);
        break;
    case OPERATOR_RATE:
        if (timed) prn_cell_gflops(cell, n->cost.flops, n->time.mean_ns);
        break;
    case OPERATOR_FLOPS:
        prn_cell_count(cell, n->cost.flops);
        break;
    case OPERATOR_LAYERS:
        prn_cell_count(cell, n->layer_count);
        break;
    case OPERATOR_BAR:
        if (timed) prn_cell_bar(cell, n->share, v->largest_share);
        break;
    default:
        break;
    }
}

/* One cell of the table of operators; nested lines and the sum have their own functions. */
static void report_text_tables_operator_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const operator_view *ov = user;
    const prn_text_view *v = &ov->rows;
    if (row == v->lines.count) {
        operator_sum_cell(v, column, cell);
        return;
    }
    const prn_line *line = &v->lines.items[row];
    if (line->kind != PRN_LINE_ROW) {
        nested_operator_cell(v, line, column, cell);
        return;
    }
    const prony_operator_row *o = &v->report->operators[line->row];
    prn_number_text number;
    switch (column) {
    case OPERATOR_INDEX:
        prn_cell_index(cell, o->index);
        break;
    case OPERATOR_NAME:
        cell->string = o->name;
        break;
    case OPERATOR_KERNEL:
        cell->string = o->kernel ? o->kernel : "";
        break;
    case OPERATOR_RUNS:
        break;
    case OPERATOR_TIME:
        prn_cell_time(cell, o->time.mean_ns);
        break;
    case OPERATOR_SHARE:
        prn_cell_percent(cell, o->share);
        break;
    case OPERATOR_CUMULATIVE:
        prn_cell_percent(cell, ov->cumulative[row]);
        cell->style = PRN_STYLE_DIM;
        break;
    case OPERATOR_RATE:
        prn_cell_gflops(cell, o->cost.flops, o->time.mean_ns);
        break;
    case OPERATOR_FLOPS:
        prn_cell_count(cell, o->cost.flops);
        break;
    case OPERATOR_BOUND:
        cell->string = prony_bound_name(prony_report_bound(v->report, o->index, NULL));
        break;
    case OPERATOR_ROOF:
        put_roof(cell, v->report, o->index);
        break;
    case OPERATOR_THREADS:
        prn_cell_count(cell, o->threads > 0 ? (uint64_t)o->threads : 0);
        break;
    case OPERATOR_CORES:
        snprintf(cell->own, sizeof cell->own, "%s", prn_number_fixed(number, o->parallel.achieved_cores, 2));
        cell->string = cell->own;
        break;
    case OPERATOR_LAYERS:
        prn_cell_count(cell, o->layer_count);
        break;
    default:
        prn_cell_bar(cell, o->share, v->largest_share);
    }
}

static void sum_operators(prn_text_view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const prony_operator_row *o = &v->report->operators[v->rows[i]];
        prn_view_add(v, &o->cost, o->measured, o->time.mean_ns, o->share);
    }
}

/* Sums all selected rows, accumulates shares over the shown ones, and hides columns without values. */
prony_status prn_text_operators(prn_text *text, const prn_selection *selection, size_t top, prony_error *error)
{
    const prony_report *r = selection->report;
    operator_view ov = {.rows = {.report = r, .filtered = selection->filtered, .part = selection->with_subgraphs}};
    prn_text_view *v = &ov.rows;
    PRN_TRY(prn_select_operators(selection, &v->rows, &v->count, error));
    v->shown = prn_text_shown_rows(v->count, top);
    prony_status status = prn_lines_make(&v->lines, selection, false, v->rows, v->shown, top != 0, error);
    ov.cumulative = prn_calloc(v->lines.count + 1, sizeof *ov.cumulative);
    if (!ov.cumulative && status == PRONY_OK) status = prn_no_memory(error);
    if (status != PRONY_OK) {
        prn_lines_free(&v->lines);
        prn_free(ov.cumulative);
        prn_free(v->rows);
        return status;
    }
    sum_operators(v);
    double sum = 0;
    for (size_t i = 0; i < v->lines.count; i++)
        if (v->lines.items[i].kind == PRN_LINE_ROW) ov.cumulative[i] = sum += r->operators[v->lines.items[i].row].share;
    uint32_t times = 1U << OPERATOR_TIME | 1U << OPERATOR_SHARE | 1U << OPERATOR_CUMULATIVE | 1U << OPERATOR_RATE |
                     1U << OPERATOR_BAR;
    uint32_t hidden = prn_report_stamped(r) ? 0 : times;
    if (!prn_report_stamped(r) || !r->has_roof) hidden |= 1U << OPERATOR_BOUND | 1U << OPERATOR_ROOF;
    if (!traced_threads(r)) hidden |= 1U << OPERATOR_CORES;
    if (!prn_view_executed(v)) hidden |= 1U << OPERATOR_RUNS;
    prn_table table = {.columns = operator_columns,
                       .column_count = sizeof operator_columns / sizeof operator_columns[0],
                       .hidden = hidden,
                       .minor = 1U << OPERATOR_KERNEL | 1U << OPERATOR_CUMULATIVE | 1U << OPERATOR_THREADS,
                       .names = 1U << OPERATOR_NAME,
                       .footer = true,
                       .rows = v->lines.count,
                       .cell = report_text_tables_operator_cell,
                       .user = &ov};
    prn_text_heading(text, selection->with_subgraphs ? "Inside" : "Operators",
                     selection->with_subgraphs ? "operators with subgraphs, and what ran in them"
                                               : "the kernels that ran");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, v->count - v->shown, "operator");
    prn_view_nested_legend(text, v, "operators");
    prn_lines_free(&v->lines);
    prn_free(ov.cumulative);
    prn_free(v->rows);
    return PRONY_OK;
}

/* ---- memory over the run ---- */

enum { MEMORY_INDEX, MEMORY_NAME, MEMORY_LIVE, MEMORY_BAR, MEMORY_OUTPUT, MEMORY_SCRATCH, MEMORY_OFFSET };

static const prn_column memory_columns[] = {
    [MEMORY_INDEX] = {.title = "#", .right = true},
    [MEMORY_NAME] = {.title = "operator", .share = 5, .least = 10},
    [MEMORY_LIVE] = {.title = "live", .right = true},
    [MEMORY_BAR] = {.title = ""},
    [MEMORY_OUTPUT] = {.title = "output", .right = true},
    [MEMORY_SCRATCH] = {.title = "scratch", .right = true},
    [MEMORY_OFFSET] = {.title = "offset", .right = true},
};

typedef struct memory_view {
    prn_text_view rows;
    uint64_t *live; /* [operators] most bytes live while the operator runs */
    uint64_t peak;
} memory_view;

/* One cell of the table of memory. */
static void memory_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const memory_view *mv = user;
    const prony_operator_row *o = &mv->rows.report->operators[mv->rows.rows[row]];
    uint64_t live = mv->live[mv->rows.rows[row]];
    switch (column) {
    case MEMORY_INDEX:
        prn_cell_index(cell, o->index);
        break;
    case MEMORY_NAME:
        cell->string = o->name;
        break;
    case MEMORY_LIVE:
        prn_cell_bytes(cell, live);
        if (live && live == mv->peak) cell->style = PRN_STYLE_BOLD;
        break;
    case MEMORY_BAR:
        prn_cell_bar(cell, (double)live, (double)mv->peak);
        break;
    case MEMORY_OUTPUT:
        prn_cell_bytes(cell, o->output_bytes);
        break;
    case MEMORY_SCRATCH:
        prn_cell_bytes(cell, o->scratch_bytes);
        break;
    default:
        if (o->offset_bytes == UINT64_MAX)
            cell->string = "outside";
        else if (o->offset_bytes == 0)
            cell->string = "0";
        else
            prn_cell_bytes(cell, o->offset_bytes);
    }
}

static int report_text_by_index(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Takes for each operator the largest number of live bytes while it runs. The sort key chooses the rows; the table has
 * them in the order of the run. */
prony_status prn_text_memory_table(prn_text *text, const prn_selection *selection, size_t top, prony_error *error)
{
    const prony_report *r = selection->report;
    memory_view mv = {.rows = {.report = r}};
    PRN_TRY(prn_select_operators(selection, &mv.rows.rows, &mv.rows.count, error));
    mv.rows.shown = prn_text_shown_rows(mv.rows.count, top);
    qsort(mv.rows.rows, mv.rows.shown, sizeof *mv.rows.rows, report_text_by_index);
    mv.live = prn_calloc(r->operator_count + 1, sizeof *mv.live);
    if (!mv.live) {
        prn_free(mv.rows.rows);
        return prn_no_memory(error);
    }
    for (size_t i = 0; i < r->memory.timeline_count; i++) {
        const prony_memory_point *p = &r->memory.timeline[i];
        if (p->step < r->operator_count && p->live_bytes > mv.live[p->step]) mv.live[p->step] = p->live_bytes;
        if (p->live_bytes > mv.peak) mv.peak = p->live_bytes;
    }
    prn_table table = {.columns = memory_columns,
                       .column_count = sizeof memory_columns / sizeof memory_columns[0],
                       .hidden = mv.peak ? 0 : 1U << MEMORY_LIVE | 1U << MEMORY_BAR,
                       .names = 1U << MEMORY_NAME,
                       .rows = mv.rows.shown,
                       .cell = memory_cell,
                       .user = &mv};
    prn_text_heading(text, "Memory over the run", "bytes of the arena while each operator runs");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, mv.rows.count - mv.rows.shown, "operator");
    prn_free(mv.live);
    prn_free(mv.rows.rows);
    return PRONY_OK;
}
