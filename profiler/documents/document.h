/* Documents of the command (JSON, a "schema" each) as tables, for every format that is made of tables. A schema's
 * tables are rows of data (document_tables.c); document_rows.c reads cells; profiler/exporters/document_write.c writes
 * them. */
#ifndef PRN_PROFILER_DOCUMENTS_DOCUMENT_H
#define PRN_PROFILER_DOCUMENTS_DOCUMENT_H

#include "profiler/json/json_read.h"

/* The text of a cell for people. CSV has the number itself. */
typedef enum prn_cell_kind {
    PRN_CELL_TEXT,
    PRN_CELL_COUNT,  /* 1.23 M */
    PRN_CELL_NUMBER, /* an integer as it is, a fraction in four digits */
    PRN_CELL_RATIO,  /* 1.234 */
    PRN_CELL_SHARE,  /* 12.3 % */
    PRN_CELL_TIME,   /* of nanoseconds */
    PRN_CELL_BYTES,
    PRN_CELL_METRIC, /* by the row's "unit" */
    PRN_CELL_FLAG    /* yes or no */
} prn_cell_kind;

/* `path` is the way to the value: members with '.' between them. "index@list.member": the member of that element of a
 * list of the document. An array of two numbers is an interval. */
typedef struct prn_document_column {
    const char *title; /* "": of CSV alone */
    const char *path;
    prn_cell_kind kind;
} prn_document_column;

enum { PRN_DOCUMENT_COLUMNS = 16, PRN_DOCUMENT_TABLES = 6, PRN_DOCUMENT_LEAD = 480 };

typedef struct prn_document_table {
    const char *name; /* of its CSV file */
    const char *title;
    const char *path;  /* of its array in the document, or of an object, which is one row */
    const char *order; /* member by which rows come: the largest number first, or true first; NULL: as they are */
    prn_document_column columns[PRN_DOCUMENT_COLUMNS]; /* up to the first without title */
} prn_document_table;

typedef struct prn_document {
    prn_json_reader reader;
    prn_bump pool;
    prn_json_value *root;
    const struct prn_document_schema *schema;
} prn_document;

typedef struct prn_document_schema {
    const char *schema, *title;
    const char *subject; /* path of what the document is about; NULL: nothing */
    const char *notes;   /* path of an array of strings; NULL: nothing */
    void (*lead)(prn_document *document, char text[PRN_DOCUMENT_LEAD]); /* the result in a sentence; NULL: none */
    prn_document_table tables[PRN_DOCUMENT_TABLES];                     /* up to the first without name */
} prn_document_schema;

/* A prony_write_fn that keeps what is written, for a document that is made from JSON. Zero-initialise; release `data`
 * by prn_free. */
typedef struct prn_document_json {
    char *data;
    size_t size, capacity;
} prn_document_json;
int prn_document_collect(void *user, const char *data, size_t size);

/* NULL: no such schema has tables. */
const prn_document_schema *prn_document_find(const char *schema);

/* ---- document_rows.c ---- */

/* Cells are kept in the document's pool. */
typedef struct prn_document_rows {
    const prn_json_value **rows;
    size_t count;
} prn_document_rows;

/* NULL: not there. `row` NULL: from the document's root. */
const prn_json_value *prn_document_at(prn_document *document, const prn_json_value *row, const char *path,
                                      const char **key);
bool prn_document_number(prn_document *document, const prn_json_value *row, const char *path, double *out);
const char *prn_document_text(prn_document *document, const prn_json_value *row, const char *path);
/* False: out of memory. */
bool prn_document_rows_of(prn_document *document, const prn_document_table *table, prn_document_rows *out);
/* As people read it; "" where the value is missing. NULL: out of memory. */
const char *prn_document_cell(prn_document *document, const prn_json_value *row, const prn_document_column *column);
/* True if any row has a value there. */
bool prn_document_has_column(prn_document *document, const prn_document_rows *rows, const prn_document_column *column);

#endif
