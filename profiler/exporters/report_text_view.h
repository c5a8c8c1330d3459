/* What the terminal's tables of layers and operators share: the rows that are shown, what runs inside of them, and
 * their sum. */
#ifndef PRN_PROFILER_EXPORTERS_REPORT_TEXT_VIEW_H
#define PRN_PROFILER_EXPORTERS_REPORT_TEXT_VIEW_H

#include "profiler/exporters/nested_lines.h"
#include "profiler/exporters/report_text.h"
#include "profiler/exporters/text_cell.h"

/* The rows chosen by a selection, and their sum for the closing line. */
typedef struct prn_text_view {
    const prony_report *report;
    uint32_t *rows;
    size_t count, shown;
    prn_lines lines;     /* the shown rows, and what is inside of them */
    bool filtered, part; /* by what the rows are called; by what they are */
    prony_cost sum;
    uint64_t counted; /* by the preset */
    int64_t time_ns;
    double share, largest_share;
} prn_text_view;

/* Adds a row to the sum. */
void prn_view_add(prn_text_view *view, const prony_cost *cost, bool measured, int64_t mean_ns, double share);
/* Of the line with the sum. */
const char *prn_view_sum_title(const prn_text_view *view);
/* Never added up: they are part of the row that they are inside of. NULL: the line is a row of the level. */
const prony_nested_row *prn_view_nested(const prn_text_view *view, const prn_line *line);
/* How often it ran, where that is known. */
void prn_view_executions(const prony_nested_row *row, prn_cell *cell);
/* Whether that is known of any. */
bool prn_view_executed(const prn_text_view *view);
/* What indented rows and their marks mean, and how many are not shown; `noun` are those that they are inside of. */
void prn_view_nested_legend(prn_text *text, const prn_text_view *view, const char *noun);

#endif
