/* The summary by operator type of the terminal report. Reads the report only. */
#include "profiler/exporters/report_text.h"

#include "profiler/exporters/text_cell.h"
#include "profiler/report/type_summary.h"

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

/* One cell of the table of types. */
static void type_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prn_type_row *rows = user, *t = &rows[row];
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
    bool stamped = prn_report_stamped(report);
    prn_type_row *rows;
    size_t types;
    PRN_TRY(prn_type_summary(report, &rows, &types, error));
    size_t shown = prn_text_shown_rows(types, top);
    prn_table table = {.columns = type_columns,
                       .column_count = sizeof type_columns / sizeof type_columns[0],
                       .hidden = stamped ? 0 : 1U << TYPE_TIME | 1U << TYPE_RATE,
                       .rows = shown,
                       .cell = type_cell,
                       .user = rows};
    if (types == 0) {
        prn_free(rows);
        return PRONY_OK;
    }
    prn_text_heading(text, "By type",
                     stamped ? "mean time of a run; share of the time inside operators" : "share of the FLOPs");
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, types - shown, "type");
    prn_free(rows);
    return PRONY_OK;
}
