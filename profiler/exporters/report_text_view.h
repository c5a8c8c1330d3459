/* Shared by the terminal's tables of layers and operators: the shown rows, their nested rows, and the sum. */
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
    prn_lines lines;     /* the shown rows and their nested rows */
    bool filtered, part; /* selected by name; selected by kind */
    prony_cost sum;
    uint64_t counted; /* by the preset */
    int64_t time_ns;
    double share, largest_share;
} prn_text_view;

/* Adds a row to the sum. */
void prn_view_add(prn_text_view *view, const prony_cost *cost, bool measured, int64_t mean_ns, double share);
/* Title of the line with the sum. */
const char *prn_view_sum_title(const prn_text_view *view);
/* The nested row of a line. Nested rows are never summed, because the row around them includes them. NULL: the line is
 * a row of the level. */
const prony_nested_row *prn_view_nested(const prn_text_view *view, const prn_line *line);
/* The number of executions, if known. */
void prn_view_executions(const prony_nested_row *row, prn_cell *cell);
/* true: the number of executions of any row is known. */
bool prn_view_executed(const prn_text_view *view);
/* The meaning of a row's mark (~ - f d !) as one of PRN_MARK_*; 0: no mark. */
unsigned prn_mark_of(const char *mark);
/* The meaning of indented rows, and how many are not shown; `noun` are those that contain them. */
void prn_view_nested_legend(prn_text *text, const prn_text_view *view, const char *noun);

#endif
