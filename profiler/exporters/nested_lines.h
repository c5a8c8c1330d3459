/* The lines of a table whose rows may have subgraphs: each row, followed by a line per subgraph and the rows inside of
 * it. For the text and LaTeX tables; the sums of a table include only its own rows. */
#ifndef PRN_PROFILER_EXPORTERS_NESTED_LINES_H
#define PRN_PROFILER_EXPORTERS_NESTED_LINES_H

#include "profiler/report/report_select.h"

typedef enum prn_line_kind { PRN_LINE_ROW, PRN_LINE_SUBGRAPH, PRN_LINE_NESTED } prn_line_kind;

typedef struct prn_line {
    prn_line_kind kind;
    uint32_t row;      /* index in the level; in its nested rows: the row, or a subgraph's first row */
    const char *label; /* PRN_LINE_ROW: NULL. Otherwise indented; in the pool */
} prn_line;

typedef struct prn_lines {
    prn_bump pool;
    const prony_nested_row *nested; /* of the level */
    size_t nested_count;
    prn_line *items;
    size_t count, capacity;
    size_t hidden; /* nested rows left out because they are small */
    bool any_nested;
} prn_lines;

/* `rows`: the shown rows of the level (layers, else operators), in order. `few`: shows only nested rows with a
 * noticeable share of the whole (of the sort key if it sums up, else of the time), the largest first; otherwise all.
 * Nested rows that pass a filter while their owner does not come last, with their whole path. Release by
 * prn_lines_free, also after an error. */
PRN_MUST_USE prony_status prn_lines_make(prn_lines *lines, const prn_selection *selection, bool layer,
                                         const uint32_t *rows, size_t count, bool few, prony_error *error);
void prn_lines_free(prn_lines *lines);

#endif
