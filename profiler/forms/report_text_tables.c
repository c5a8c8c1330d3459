/* The tables of the terminal report: layers, operators, memory over the run. Each is a set of columns and a function
 * that makes one cell from a row of the report. Reads the report only; the order of the rows ends with the call. */
#include "profiler/forms/report_text.h"

#include "profiler/forms/number_text.h"
#include "profiler/forms/text_cell.h"
#include "profiler/report/work.h"

#include <stdio.h>
#include <string.h>

size_t prn_text_shown_rows(size_t count, size_t top)
{
    return top && top < count ? top : count;
}

void prn_text_hidden_rows(prn_text *text, size_t hidden, const char *noun)
{
    if (!hidden) return;
    prn_text_putf(text, PRN_STYLE_DIM, "and %zu more %s%s; --all shows every one", hidden, noun, hidden == 1 ? "" : "s");
    prn_text_line(text);
}

/* The rows chosen by a selection, and their sum for the closing line. */
typedef struct view {
    const prony_report *report;
    uint32_t *rows;
    size_t count, shown;
    bool filtered;
    prony_cost sum;
    uint64_t counted; /* by the preset */
    int64_t time_ns;
    double share, largest_share;
} view;

static void add_row(view *v, const prony_cost *cost, bool measured, int64_t mean_ns, double share)
{
    v->sum.macs += cost->macs;
    v->sum.flops += cost->flops;
    v->sum.parameters += cost->parameters;
    if (!measured) return;
    v->time_ns += mean_ns;
    v->share += share;
    if (share > v->largest_share) v->largest_share = share;
}

static const char *sum_title(const view *v)
{
    return v->filtered ? "selected" : "total";
}

/* ---- layers ---- */

enum {
    LAYER_INDEX,
    LAYER_MARK,
    LAYER_NAME,
    LAYER_OP,
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

static void layer_sum_cell(const view *v, int column, prn_cell *cell)
{
    switch (column) {
    case LAYER_NAME:
        cell->string = sum_title(v);
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

static void layer_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const view *v = user;
    if (row == v->shown) {
        layer_sum_cell(v, column, cell);
        return;
    }
    const prony_layer_row *l = &v->report->layers[v->rows[row]];
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

/* The marks that occur among the shown rows, explained, and what the sum lacks. */
static void put_layer_legend(prn_text *text, const view *v)
{
    bool folded = false, attributed = false, dynamic = false, removed = false;
    for (size_t i = 0; i < v->shown; i++) {
        const char *mark = layer_mark(&v->report->layers[v->rows[i]]);
        folded |= *mark == 'f';
        removed |= *mark == '-';
        attributed |= *mark == '~';
        dynamic |= *mark == 'd';
    }
    if (attributed && strcmp(prn_estimate_basis(v->report), "measured") == 0)
        prn_text_wrap(text, PRN_STYLE_DIM, 0,
                      "~ one operator runs several layers: their times are estimates, by what each kind of work takes on this "
                      "machine");
    else if (attributed)
        prn_text_wrap(text, PRN_STYLE_DIM, 0,
                      "~ one operator runs several layers: their times are estimates, by what each kind of work takes on a usual "
                      "machine ('prony machine' measures this one, once)");
    if (removed) prn_text_wrap(text, PRN_STYLE_DIM, 0, "- returns its input unchanged or lies folded in weights: removed before anything ran");
    if (folded) prn_text_wrap(text, PRN_STYLE_DIM, 0, "f evaluated once when shapes were bound: costs nothing per run");
    if (dynamic) prn_text_wrap(text, PRN_STYLE_DIM, 0, "d shape, and so the cost, known at run time only");
    if (!v->filtered && prn_report_stamped(v->report) && v->share < 0.9995) {
        char note[96];
        prn_number_text rest;
        snprintf(note, sizeof note,
                 "The other %s %% were spent in operators that belong to no layer, such as reorders.",
                 prn_number_percent(rest, 1 - v->share));
        prn_text_wrap(text, PRN_STYLE_DIM, 0, note);
    }
}

prony_status prn_text_layers(prn_text *text, const prn_selection *selection, size_t top, prony_error *error)
{
    const prony_report *r = selection->report;
    view v = {.report = r, .filtered = selection->filtered};
    PRN_TRY(prn_select_layers(selection, &v.rows, &v.count, error));
    v.shown = prn_text_shown_rows(v.count, top);
    for (size_t i = 0; i < v.count; i++) {
        const prony_layer_row *l = &r->layers[v.rows[i]];
        add_row(&v, &l->cost, l->measured, l->time.mean_ns, l->share);
        if (l->counted) v.counted += l->count;
    }
    uint32_t times = 1U << LAYER_TIME | 1U << LAYER_SHARE | 1U << LAYER_PART | 1U << LAYER_BAR, hidden = prn_report_stamped(r) ? 0 : times;
    if (!r->totals.counted) hidden |= 1U << LAYER_COUNT;
    prn_table table = {.columns = layer_columns,
                       .column_count = sizeof layer_columns / sizeof layer_columns[0],
                       .hidden = hidden,
                       .footer = true,
                       .rows = v.shown,
                       .cell = layer_cell,
                       .user = &v};
    prn_text_heading(text, "Layers", "the model's own nodes");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, v.count - v.shown, "layer");
    put_layer_legend(text, &v);
    prn_free(v.rows);
    return PRONY_OK;
}

/* ---- operators ---- */

enum {
    OPERATOR_INDEX,
    OPERATOR_NAME,
    OPERATOR_KERNEL,
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

static void operator_sum_cell(const view *v, int column, prn_cell *cell)
{
    switch (column) {
    case OPERATOR_NAME:
        cell->string = sum_title(v);
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
    view rows;
    double *cumulative; /* [shown] */
} operator_view;

/* Whether it is known what more than one thread did. */
static bool traced_threads(const prony_report *r)
{
    for (size_t o = 0; o < r->operator_count; o++)
        if (r->operators[o].parallel.threads_used > 0 && r->operators[o].threads > 1) return true;
    return false;
}

/* The part of its roof that an operator reaches. */
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

static void operator_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const operator_view *ov = user;
    const view *v = &ov->rows;
    if (row == v->shown) {
        operator_sum_cell(v, column, cell);
        return;
    }
    const prony_operator_row *o = &v->report->operators[v->rows[row]];
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

static void sum_operators(view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const prony_operator_row *o = &v->report->operators[v->rows[i]];
        add_row(v, &o->cost, o->measured, o->time.mean_ns, o->share);
    }
}

prony_status prn_text_operators(prn_text *text, const prn_selection *selection, size_t top, prony_error *error)
{
    const prony_report *r = selection->report;
    operator_view ov = {.rows = {.report = r, .filtered = selection->filtered}};
    view *v = &ov.rows;
    PRN_TRY(prn_select_operators(selection, &v->rows, &v->count, error));
    v->shown = prn_text_shown_rows(v->count, top);
    ov.cumulative = prn_calloc(v->shown + 1, sizeof *ov.cumulative);
    if (!ov.cumulative) {
        prn_free(v->rows);
        return prn_no_memory(error);
    }
    sum_operators(v);
    double sum = 0;
    for (size_t i = 0; i < v->shown; i++) ov.cumulative[i] = sum += r->operators[v->rows[i]].share;
    uint32_t times = 1U << OPERATOR_TIME | 1U << OPERATOR_SHARE | 1U << OPERATOR_CUMULATIVE | 1U << OPERATOR_RATE |
                     1U << OPERATOR_BAR;
    uint32_t hidden = prn_report_stamped(r) ? 0 : times;
    if (!prn_report_stamped(r) || !r->has_roof) hidden |= 1U << OPERATOR_BOUND | 1U << OPERATOR_ROOF;
    if (!traced_threads(r)) hidden |= 1U << OPERATOR_CORES;
    prn_table table = {.columns = operator_columns,
                       .column_count = sizeof operator_columns / sizeof operator_columns[0],
                       .hidden = hidden,
                       .footer = true,
                       .rows = v->shown,
                       .cell = operator_cell,
                       .user = &ov};
    prn_text_heading(text, "Operators", "the kernels that ran");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, v->count - v->shown, "operator");
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
    view rows;
    uint64_t *live; /* [operators] most bytes live while the operator runs */
    uint64_t peak;
} memory_view;

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

prony_status prn_text_memory_table(prn_text *text, const prn_selection *selection, size_t top, prony_error *error)
{
    const prony_report *r = selection->report;
    memory_view mv = {.rows = {.report = r}};
    PRN_TRY(prn_select_operators(selection, &mv.rows.rows, &mv.rows.count, error));
    mv.rows.shown = prn_text_shown_rows(mv.rows.count, top);
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
