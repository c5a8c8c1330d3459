/* The summary by operator type of the terminal report. Reads the report only. */
#include "profiler/report_text.h"

#include "profiler/text_cell.h"

#include <stdlib.h>
#include <string.h>

typedef struct type_row {
    const char *op;
    uint64_t count, macs, flops, parameters;
    int64_t time_ns;
    double share; /* of time; of FLOPs where nothing was measured */
    double cumulative;
} type_row;

static int compare_type_names(const void *left, const void *right)
{
    return strcmp(((const type_row *)left)->op, ((const type_row *)right)->op);
}

static int compare_type_shares(const void *left, const void *right)
{
    const type_row *a = left, *b = right;
    if (a->share > b->share || a->share < b->share) return a->share > b->share ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return strcmp(a->op, b->op);
}

static type_row type_of(const char *op, const prony_cost *c, int64_t time_ns, double share)
{
    return (type_row){.op = op ? op : "",
                      .count = 1,
                      .macs = c->macs,
                      .flops = c->flops,
                      .parameters = c->parameters,
                      .time_ns = time_ns,
                      .share = share};
}

/* One row per operator type, from the operators where they were measured, else from the layers. */
static size_t collect_types(const prony_report *r, type_row *rows)
{
    size_t count = 0, types = 0;
    double flops = (double)r->totals.cost.flops;
    if (prn_report_stamped(r))
        for (; count < r->operator_count; count++) {
            const prony_operator_row *o = &r->operators[count];
            rows[count] = type_of(o->op, &o->cost, o->time.mean_ns, o->share);
        }
    else
        for (; count < r->layer_count; count++) {
            const prony_layer_row *l = &r->layers[count];
            rows[count] = type_of(l->op, &l->cost, 0, flops > 0 ? (double)l->cost.flops / flops : 0);
        }
    qsort(rows, count, sizeof *rows, compare_type_names);
    for (size_t i = 0; i < count; i++) {
        if (!types || strcmp(rows[types - 1].op, rows[i].op) != 0) {
            rows[types++] = rows[i];
            continue;
        }
        type_row *t = &rows[types - 1];
        t->count++;
        t->macs += rows[i].macs;
        t->flops += rows[i].flops;
        t->parameters += rows[i].parameters;
        t->time_ns += rows[i].time_ns;
        t->share += rows[i].share;
    }
    qsort(rows, types, sizeof *rows, compare_type_shares);
    double sum = 0;
    for (size_t i = 0; i < types; i++) rows[i].cumulative = sum += rows[i].share;
    return types;
}

enum {
    TYPE_OP,
    TYPE_COUNT,
    TYPE_TIME,
    TYPE_SHARE,
    TYPE_CUMULATIVE,
    TYPE_MACS,
    TYPE_FLOPS,
    TYPE_PARAMETERS,
    TYPE_RATE,
    TYPE_BAR
};

static const prn_column type_columns[] = {
    [TYPE_OP] = {.title = "type", .share = 2, .least = 8}, [TYPE_COUNT] = {.title = "n", .right = true},
    [TYPE_TIME] = {.title = "time", .right = true},        [TYPE_SHARE] = {.title = "share", .right = true},
    [TYPE_CUMULATIVE] = {.title = "cum", .right = true},   [TYPE_MACS] = {.title = "MACs", .right = true},
    [TYPE_FLOPS] = {.title = "FLOPs", .right = true},      [TYPE_PARAMETERS] = {.title = "params", .right = true},
    [TYPE_RATE] = {.title = "GFLOP/s", .right = true},     [TYPE_BAR] = {.title = "", .extra = true},
};

static void type_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const type_row *rows = user, *t = &rows[row];
    switch (column) {
    case TYPE_OP:
        cell->string = t->op;
        break;
    case TYPE_COUNT:
        prn_cell_count(cell, t->count);
        break;
    case TYPE_TIME:
        prn_cell_time(cell, t->time_ns);
        break;
    case TYPE_SHARE:
        prn_cell_percent(cell, t->share);
        break;
    case TYPE_CUMULATIVE:
        prn_cell_percent(cell, t->cumulative);
        cell->style = PRN_STYLE_DIM;
        break;
    case TYPE_MACS:
        prn_cell_count(cell, t->macs);
        break;
    case TYPE_FLOPS:
        prn_cell_count(cell, t->flops);
        break;
    case TYPE_PARAMETERS:
        prn_cell_count(cell, t->parameters);
        break;
    case TYPE_RATE:
        prn_cell_gflops(cell, t->flops, t->time_ns);
        break;
    default:
        prn_cell_bar(cell, t->share, rows[0].share);
    }
}

prony_status prn_text_types(prn_text *text, const prony_report *report, size_t top, prony_error *error)
{
    size_t most = report->operator_count > report->layer_count ? report->operator_count : report->layer_count;
    if (most == 0) return PRONY_OK;
    bool stamped = prn_report_stamped(report);
    type_row *rows = prn_calloc(most, sizeof *rows);
    if (!rows) return prn_no_memory(error);
    size_t types = collect_types(report, rows), shown = prn_text_shown_rows(types, top);
    prn_table table = {.columns = type_columns,
                       .column_count = sizeof type_columns / sizeof type_columns[0],
                       .hidden = stamped ? 0 : 1U << TYPE_TIME | 1U << TYPE_RATE,
                       .rows = shown,
                       .cell = type_cell,
                       .user = rows};
    prn_text_heading(text, "By type", stamped ? "share of the time inside operators" : "share of the FLOPs");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, types - shown, "type");
    prn_free(rows);
    return PRONY_OK;
}
