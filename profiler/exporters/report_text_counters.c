/* Hardware counters per operator, most cycles first; one line if the kernel provides none. */
#include "profiler/text/number_text.h"
#include "profiler/exporters/report_text.h"
#include "profiler/exporters/text_cell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNTER_NAME, COUNTER_OP, COUNTER_CYCLES, COUNTER_INSTRUCTIONS, COUNTER_IPC, COUNTER_MISSES, COUNTER_RATE };

static const prn_column columns[] = {
    [COUNTER_NAME] = {.title = "operator", .share = 5, .least = 12},
    [COUNTER_OP] = {.title = "type", .share = 2, .least = 5},
    [COUNTER_CYCLES] = {.title = "cycles", .right = true},
    [COUNTER_INSTRUCTIONS] = {.title = "instr.", .right = true},
    [COUNTER_IPC] = {.title = "per cycle", .right = true},
    [COUNTER_MISSES] = {.title = "misses", .right = true},
    [COUNTER_RATE] = {.title = "per 1000", .right = true},
};

static int more_cycles(const void *a, const void *b)
{
    const prony_operator_row *x = *(const prony_operator_row *const *)a, *y = *(const prony_operator_row *const *)b;
    if (x->cycles != y->cycles) return x->cycles < y->cycles ? 1 : -1;
    return x->index < y->index ? -1 : 1;
}

static void put_ratio(prn_cell *cell, double value, double by)
{
    prn_number_text text;
    snprintf(cell->own, sizeof cell->own, "%s", by > 0 ? prn_number_fixed(text, value / by, 2) : "-");
    cell->string = cell->own;
}

/* One cell of the table of hardware counters. */
static void counter_cell(const void *user, size_t row, int column, prn_cell *cell)
{
    const prony_operator_row *o = ((const prony_operator_row *const *)user)[row];
    switch (column) {
    case COUNTER_NAME:
        cell->string = o->name;
        break;
    case COUNTER_OP:
        cell->string = o->op;
        break;
    case COUNTER_CYCLES:
        prn_cell_count(cell, o->cycles);
        break;
    case COUNTER_INSTRUCTIONS:
        prn_cell_count(cell, o->instructions);
        break;
    case COUNTER_IPC:
        put_ratio(cell, (double)o->instructions, (double)o->cycles);
        break;
    case COUNTER_MISSES:
        prn_cell_count(cell, o->cache_misses);
        break;
    default:
        put_ratio(cell, (double)o->cache_misses * 1000, (double)o->instructions);
    }
}

/* Writes the table, or the reason for missing counters, if they were requested. */
prony_status prn_text_counters(prn_text *text, const prony_report *report, size_t top, prony_error *error)
{
    if (!report->counters_missing) return PRONY_OK;
    if (*report->counters_missing) {
        char line[200];
        prn_text_line(text);
        snprintf(line, sizeof line, "No hardware counters: %.160s", report->counters_missing);
        prn_text_wrap(text, PRN_STYLE_WARN, 0, line);
        return PRONY_OK;
    }
    const prony_operator_row **rows = prn_calloc(report->operator_count + 1, sizeof *rows);
    if (!rows) return prn_no_memory(error);
    size_t count = 0;
    for (size_t i = 0; i < report->operator_count; i++)
        if (report->operators[i].counted) rows[count++] = &report->operators[i];
    qsort(rows, count, sizeof *rows, more_cycles);
    char note[160];
    snprintf(note, sizeof note, "mean of %" PRIu64 " further runs, in user space; each reading took %" PRId64 " ns",
             report->counter_runs, report->counter_read_ns);
    prn_text_heading(text, "Hardware counters", note);
    size_t shown = prn_text_shown_rows(count, top ? top : 20);
    prn_table table = {.columns = columns,
                       .column_count = sizeof columns / sizeof *columns,
                       .names = 1U << COUNTER_NAME,
                       .rows = shown,
                       .cell = counter_cell,
                       .user = rows};
    prn_text_table(text, &table);
    prn_text_hidden_rows(text, count - shown, "operators");
    prn_free(rows);
    return PRONY_OK;
}
