/* The lines of a table whose rows may have subgraphs: each row, and behind it what runs inside of it, under a line per
 * subgraph. For the text and LaTeX tables; the sums of a table are those of its rows alone. */
#ifndef PRN_PROFILER_EXPORTERS_NESTED_LINES_H
#define PRN_PROFILER_EXPORTERS_NESTED_LINES_H

#include "profiler/report/report_select.h"

typedef enum prn_line_kind { PRN_LINE_ROW, PRN_LINE_SUBGRAPH, PRN_LINE_NESTED } prn_line_kind;

typedef struct prn_line {
    prn_line_kind kind;
    uint32_t row;      /* of the level; of its nested rows: the one itself, or of a subgraph the first one in it */
    const char *label; /* PRN_LINE_ROW: NULL. Otherwise indented; in the pool */
} prn_line;

typedef struct prn_lines {
    prn_bump pool;
    const prony_nested_row *nested; /* of the level */
    size_t nested_count;
    prn_line *items;
    size_t count, capacity;
    size_t hidden; /* nested rows that were left out for want of weight */
    bool any_nested;
} prn_lines;

/* `rows` are those of the level (layer: else operators) that are shown, in order. `few`: what is inside of each is
 * shown as far as it takes some of the whole (of the selection's sort key where that sums up, else of the time), the
 * largest first to get a place; otherwise all of it. A filter of the selection also shows nested rows that it names
 * while their owner does not pass: behind the others, by their whole path. Release by prn_lines_free, also after an
 * error. */
PRN_MUST_USE prony_status prn_lines_make(prn_lines *lines, const prn_selection *selection, bool layer,
                                         const uint32_t *rows, size_t count, bool few, prony_error *error);
void prn_lines_free(prn_lines *lines);

#endif
