/* Lines of plain text of a bounded width, with or without ANSI styles. Errors stick, as in json_write.h. Writes ASCII,
 * and UTF-8 letters of one width on all terminals. Other characters become '?', so names from a model can neither send
 * control codes nor move columns. */
#ifndef PRN_PROFILER_TEXT_TEXT_OUT_H
#define PRN_PROFILER_TEXT_TEXT_OUT_H

#include "base/status.h"

typedef enum prn_style {
    PRN_STYLE_PLAIN,
    PRN_STYLE_BOLD,
    PRN_STYLE_DIM,
    PRN_STYLE_GOOD,
    PRN_STYLE_WARN,
    PRN_STYLE_BAD,
    PRN_STYLE_BAR,
    PRN_STYLE_TITLE
} prn_style;

typedef struct prn_text {
    prony_write_fn write;
    void *user;
    prony_error *error;
    prony_status status;
    bool color;
    int width;        /* columns; nothing is written beyond, but for whole names */
    bool whole_names; /* tables do not cut their names, however long the line becomes */
    int column;       /* of the next character, pending blanks included */
    int pending;      /* blanks that are written only if text follows on the line */
    unsigned marks;   /* of the writer: marks that its tables used, explained once at the end */
    size_t size;
    char buffer[8192];
} prn_text;

void prn_text_begin(prn_text *text, int width, bool color, prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prony_status prn_text_end(prn_text *text);

void prn_text_put(prn_text *text, prn_style style, const char *string);
void prn_text_putf(prn_text *text, prn_style style, const char *format, ...) PRN_PRINTF(3, 4);
/* Blanks up to `column`; nothing if the line is already longer. */
void prn_text_to(prn_text *text, int column);
void prn_text_line(prn_text *text);
/* Puts `string` at `indent`, broken at blanks where the line is full. */
void prn_text_wrap(prn_text *text, prn_style style, int indent, const char *string);

/* Columns that `string` takes. */
int prn_text_width(const char *string);
/* Moves on by one character and returns its columns. `*string` is not at its end. */
int prn_text_next(const char **string);
/* Copies `string` as it will be shown; if it is wider than `columns`, ".." replaces the middle. */
void prn_text_shorten(char *out, size_t size, const char *string, int columns);

/* ---- tables ---- */

typedef struct prn_column {
    const char *title;
    bool right; /* aligned */
    bool extra; /* shown only if there is room for it; the last extra column goes first */
    int share;  /* 0: as wide as its widest cell; else it may be narrowed, in proportion to this */
    int least;  /* columns that a narrowed one keeps */
} prn_column;

typedef struct prn_cell {
    const char *string; /* `own` or borrowed */
    prn_style style;
    char own[64];
} prn_cell;

#define PRN_TABLE_COLUMNS 16

typedef struct prn_table {
    const prn_column *columns;
    int column_count; /* at most PRN_TABLE_COLUMNS */
    uint32_t hidden;  /* bit c: column c is left out */
    uint32_t minor;   /* bit c: column c is left out where even the narrowest columns do not fit; the last goes first */
    uint32_t names;   /* bit c: column c has names; where it is narrowed, different names stay different */
    size_t rows;
    bool footer;                                                            /* row number `rows` is a closing line */
    void (*cell)(const void *user, size_t row, int column, prn_cell *cell); /* `cell` arrives empty and plain */
    const void *user;
} prn_table;

/* Columns without a title whose cells are all empty are left out. Names that lost a common beginning or end are
 * followed by a line that says so. */
void prn_text_table(prn_text *text, const prn_table *table);

/* Label and value pairs, top to bottom in as many columns as fit. */
typedef struct prn_pair {
    const char *label;
    char value[96];
    char mark[4]; /* behind the value, outside its alignment */
    prn_style style;
} prn_pair;
void prn_text_pairs(prn_text *text, const prn_pair *pairs, size_t count);
/* Columns of one value in prn_text_pairs, for a label of this length. */
int prn_text_pair_room(const prn_text *text, const char *label);

#endif
