/* Text files with one class name per line, and lists of files with their labels. */
#ifndef PRN_LOADERS_LABEL_FILE_H
#define PRN_LOADERS_LABEL_FILE_H

#include "base/memory/alloc.h"
#include "base/status.h"

typedef struct prn_text_lines {
    const char **lines; /* without white space at their ends, and empty lines at the file's end */
    size_t count;
} prn_text_lines;

/* Lines live in the pool. */
PRN_MUST_USE prony_status prn_text_lines_read(prn_text_lines *out, prn_bump *pool, const char *path,
                                              prony_error *error);

/* A line of a list; `file` NULL: the line holds a label alone. */
typedef struct prn_label_row {
    const char *file, *label;
    size_t line; /* from 1 */
} prn_label_row;

typedef struct prn_label_list {
    prn_label_row *rows;
    size_t count;
} prn_label_list;

/* .csv, or a first line with a comma: file and label in the first two columns, or in those that a first line names
 * (file, filename, path, image or name; label, class, category, target or y); fields may be quoted. In other files the
 * last word of a line is the label, and the text before it the file. Empty lines are skipped. */
PRN_MUST_USE prony_status prn_label_list_read(prn_label_list *out, prn_bump *pool, const char *path,
                                              prony_error *error);

#endif
