/* The bottleneck by the roofline, for the terminal: time by bound, and the roofs' times of the slowest operators. Reads
 * the report only. */
#include "profiler/exporters/report_text.h"

#include "profiler/text/number_text.h"
#include "profiler/exporters/text_cell.h"
#include "profiler/report/reasons.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 5, WHY_BYTES = 96, REASONS_SHOWN = 3, REASONS_BYTES = 512, BEST_BYTES = 128 };

enum { ROOF_NAME, ROOF_OP, ROOF_TIME, ROOF_SHARE, ROOF_BOUND, ROOF_OF_ROOF, ROOF_WHY };

static const prn_column roof_columns[] = {
    [ROOF_NAME] = {.title = "operator", .share = 5, .least = 10},
    [ROOF_OP] = {.title = "op", .extra = true},
    [ROOF_TIME] = {.title = "time", .right = true},
    [ROOF_SHARE] = {.title = "share", .right = true},
    [ROOF_BOUND] = {.title = "bound"},
    [ROOF_OF_ROOF] = {.title = "of roof", .right = true},
    [ROOF_WHY] = {.title = "the roof allows"},
};

typedef struct roof_view {
    const prony_report *report;
    const prony_impact_row *rows;
    char why[SHOWN][WHY_BYTES];
} roof_view;

static void report_text_roof_explain(const prony_report *r, uint32_t index, char why[WHY_BYTES])
{
    bool compute = false;
    const prony_operator_row *o = &r->operators[index];
    double roof = prn_operator_roof_ns(r, o, &compute);
    prn_number_text time, amount;
    if (roof <= 0) {
        snprintf(why, WHY_BYTES, "-");
        return;
    }
    prn_number_time(time, (int64_t)(roof + 0.5), 3, "");
    if (compute)
        snprintf(why, WHY_BYTES, "%s for %s FLOPs", time, prn_number_si(amount, prn_operator_flops(o), 3, ""));
    else
        snprintf(why, WHY_BYTES, "%s for %s", time, prn_number_bytes(amount, prn_operator_bytes(o), 3, ""));
}

/* One cell of the table of the slowest operators. */
static void roof_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const roof_view *v = user;
    const prony_operator_row *o = &v->report->operators[v->rows[row].index];
    double share;
    prony_bound bound = prony_report_bound(v->report, v->rows[row].index, &share);
    switch (column) {
    case ROOF_NAME:
        cell->string = o->name;
        break;
    case ROOF_OP:
        cell->string = o->op;
        break;
    case ROOF_TIME:
        prn_cell_time(cell, o->time.mean_ns);
        break;
    case ROOF_SHARE:
        prn_cell_percent(cell, o->share);
        break;
    case ROOF_BOUND:
        cell->string = prony_bound_name(bound);
        break;
    case ROOF_OF_ROOF:
        if (bound != PRONY_BOUND_UNKNOWN) snprintf(cell->own, sizeof cell->own, "%.0f %%", share * 100);
        cell->string = bound != PRONY_BOUND_UNKNOWN ? cell->own : "-";
        break;
    default:
        cell->string = v->why[row];
    }
}

/* "compute 61.0 % of the time, memory 30.2 %, overhead 8.8 %" */
static void put_shares(prn_text *text, const prony_report *r)
{
    double shares[PRONY_BOUND_OVERHEAD + 1] = {0};
    prn_number_text number;
    char line[256];
    size_t used = 0;
    for (size_t o = 0; o < r->operator_count; o++) shares[prony_report_bound(r, o, NULL)] += r->operators[o].share;
    static const prony_bound order[] = {PRONY_BOUND_COMPUTE, PRONY_BOUND_MEMORY, PRONY_BOUND_OVERHEAD,
                                        PRONY_BOUND_UNKNOWN};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (order[i] == PRONY_BOUND_UNKNOWN && shares[order[i]] <= 0) continue;
        used +=
            (size_t)snprintf(line + used, sizeof line - used, "%s%s %s %%%s", i ? ", " : "", prony_bound_name(order[i]),
                             prn_number_percent(number, shares[order[i]]), i ? "" : " of the time");
    }
    prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
}

static void put_roofs(prn_text *text, const prony_report *r)
{
    prn_number_text flops, bytes;
    char line[256];
    snprintf(line, sizeof line, "roofs at %d thread%s: %sFLOP/s, DRAM %sB/s", prn_report_threads(r),
             prn_report_threads(r) == 1 ? "" : "s", prn_number_si(flops, prn_report_roof_flops(r, "fp32"), 3, " "),
             prn_number_si(bytes, prn_report_roof_bandwidth(r, "DRAM"), 3, " "));
    prn_text_wrap(text, PRN_STYLE_DIM, 2, line);
    if (r->roof.busy)
        prn_text_wrap(text, PRN_STYLE_WARN, 2,
                      "these roofs were measured on a busy machine and are too low; run 'prony machine' again");
}

/* "/layers.0/MatMul: 12 x 100 results in tiles of 14 x 32: …; its kernel reaches 61 % at best here, in /a". Operators
 * with the same text share a line. */
static void put_reasons(prn_text *text, const prony_report *r, const prony_impact_row *rows, size_t count)
{
    char last[REASONS_BYTES] = "";
    for (size_t i = 0; i < count; i++) {
        char line[REASONS_BYTES + BEST_BYTES + 64], reasons[REASONS_BYTES], best[BEST_BYTES], name[48];
        const prony_operator_row *o = &r->operators[rows[i].index];
        bool found = prn_reasons_text(o, REASONS_SHOWN, reasons, sizeof reasons),
             has_best = prn_kernel_best_text(r, o, best, sizeof best);
        if ((!found && !has_best) || strcmp(reasons, last) == 0) continue;
        if (found) snprintf(last, sizeof last, "%s", reasons);
        prn_text_shorten(name, sizeof name, o->name, 40);
        snprintf(line, sizeof line, "%s: %s%s%s", name, reasons, found && has_best ? "; " : "", best);
        prn_text_wrap(text, PRN_STYLE_PLAIN, 2, line);
    }
}

/* A warning: peaks measured beside other load are not roofs. */
static void put_above(prn_text *text, const prony_report *r)
{
    size_t above = 0;
    for (size_t o = 0; o < r->operator_count; o++) {
        double share = 0;
        above += prony_report_bound(r, o, &share) != PRONY_BOUND_UNKNOWN && share > 1.05;
    }
    if (!above) return;
    char line[160];
    snprintf(line, sizeof line,
             "%zu operator%s above the roof, which was measured on a busier machine; run 'prony machine --no-cache' to "
             "measure it again",
             above, above == 1 ? " is" : "s are");
    prn_text_wrap(text, PRN_STYLE_WARN, 2, line);
}

/* Writes the shares by bound, the roofs, and the slowest operators with their reasons. */
prony_status prn_text_roof(prn_text *text, const prony_report *r, prony_error *error)
{
    if (!prn_report_stamped(r) || r->operator_count == 0) return PRONY_OK;
    prn_text_heading(text, "What dominates, and why", "by the roofline of this machine");
    if (!r->has_roof) {
        prn_text_wrap(text, PRN_STYLE_DIM, 2, "no roofs are known; run 'prony machine' once to measure them");
        return PRONY_OK;
    }
    prony_impact_row *rows;
    size_t count;
    PRN_TRY(prony_report_impact(&rows, &count, r, PRONY_LEVEL_OPERATOR, "time", NULL, SHOWN, error));
    roof_view view = {.report = r, .rows = rows};
    for (size_t i = 0; i < count; i++) report_text_roof_explain(r, rows[i].index, view.why[i]);
    put_shares(text, r);
    put_roofs(text, r);
    prn_table table = {.columns = roof_columns,
                       .column_count = sizeof roof_columns / sizeof roof_columns[0],
                       .names = 1U << ROOF_NAME,
                       .rows = count,
                       .cell = roof_cell,
                       .user = &view};
    prn_text_table(text, &table);
    put_reasons(text, r, rows, count);
    put_above(text, r);
    prony_rows_release(rows);
    return PRONY_OK;
}
