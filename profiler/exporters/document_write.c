/* A document as CSV, Markdown, HTML or, of thresholds, JUnit XML. */
#include "base/option_struct.h"
#include "base/os/file.h"
#include "profiler/documents/document.h"
#include "profiler/exporters/export_out.h"
#include "profiler/exporters/document_capacity.h"
#include "profiler/exporters/html_page.h"
#include "prony_judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MARKDOWN_ROWS = 20 };
#define INTERVAL "95 %" /* title of a column of intervals */

/* ---- CSV ---- */

static void csv_heading(prn_out *out, const char *path, const char *end)
{
    const char *at = strchr(path, '@') ? strrchr(path, '.') + 1 : path;
    for (; *at; at++) prn_out_bytes(out, *at == '.' ? "_" : at, 1);
    prn_out_text(out, end);
}

/* Numbers are exact, and an interval takes two columns. */
static void csv_cell(prn_document *d, const prn_json_value *row, const prn_document_column *column, bool interval,
                     prn_out *out)
{
    const char *key;
    double value;
    if (column->kind == PRN_CELL_TEXT || column->kind == PRN_CELL_FLAG) {
        const char *text = prn_document_cell(d, row, column);
        prn_out_csv(out, text ? text : "");
        return;
    }
    if (!interval) {
        if (prn_document_number(d, row, column->path, &value)) prn_out_double(out, value);
        return;
    }
    const prn_json_value *pair = prn_document_at(d, row, column->path, &key), *low = pair ? prn_json_first(pair) : NULL;
    for (int end = 0; end < 2; end++) {
        if (end) prn_out_text(out, ",");
        if (low && !prn_json_is_null(low) && prn_json_element_double(&d->reader, low, "interval", &value))
            prn_out_double(out, value);
        low = low ? prn_json_next(low) : NULL;
    }
}

static bool csv_is_interval(prn_document *d, const prn_document_rows *rows, const prn_document_column *column)
{
    const char *key;
    for (size_t i = 0; i < rows->count; i++) {
        const prn_json_value *value = prn_document_at(d, rows->rows[i], column->path, &key);
        if (value && prn_json_first(value)) return true;
    }
    return false;
}

/* true: a column that only documents of another kind fill: those of --generate. */
static bool csv_leaves_out(prn_document *d, const prn_document_rows *rows, const prn_document_column *column)
{
    static const char only[] = "generation.";
    return strncmp(column->path, only, sizeof only - 1) == 0 && !prn_document_has_column(d, rows, column);
}

/* One table: that of this name, or the first. `interval` is decided once over all rows, so a column that holds an
 * interval anywhere has the two columns _low and _high in every row. */
static prony_status document_csv(prn_document *d, const char *name, prn_out *out)
{
    const prn_document_table *table = NULL;
    for (int t = 0; t < PRN_DOCUMENT_TABLES && d->schema->tables[t].name && !table; t++)
        if (!name || strcmp(name, d->schema->tables[t].name) == 0) table = &d->schema->tables[t];
    if (!table)
        return prn_fail(d->reader.error, PRONY_INVALID_ARGUMENT, "'%s': a %s document has no such table", name,
                        d->schema->schema);
    prn_document_rows rows;
    bool interval[PRN_DOCUMENT_COLUMNS] = {false};
    if (!prn_document_rows_of(d, table, &rows)) return prn_no_memory(d->reader.error);
    for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++) {
        if (csv_leaves_out(d, &rows, &table->columns[c])) continue;
        interval[c] = strcmp(table->columns[c].title, INTERVAL) == 0 || csv_is_interval(d, &rows, &table->columns[c]);
        prn_out_text(out, c ? "," : "");
        csv_heading(out, table->columns[c].path, interval[c] ? "_low," : "");
        if (interval[c]) csv_heading(out, table->columns[c].path, "_high");
    }
    prn_out_text(out, "\r\n");
    for (size_t i = 0; i < rows.count; i++) {
        for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++) {
            if (csv_leaves_out(d, &rows, &table->columns[c])) continue;
            prn_out_text(out, c ? "," : "");
            csv_cell(d, rows.rows[i], &table->columns[c], interval[c], out);
        }
        prn_out_text(out, "\r\n");
    }
    return PRONY_OK;
}

/* ---- Markdown ---- */

/* Names from a model stay text: no markup, no HTML, no new cell. */
static void markdown_text(prn_out *out, const char *text)
{
    for (const char *at = text; *at;) {
        const size_t bytes = prony_text_printable(at);
        if (*at == '<')
            prn_out_text(out, "&lt;");
        else if (*at == '&')
            prn_out_text(out, "&amp;");
        else if (bytes == 1 && strchr("|\\`*_[]#~", *at))
            prn_out_format(out, "\\%c", *at);
        else if (bytes)
            prn_out_bytes(out, at, bytes);
        else if (((unsigned char)*at & 0xc0) != 0x80)
            prn_out_text(out, "?");
        at += bytes ? bytes : 1;
    }
}

static void markdown_table(prn_document *d, const prn_document_table *table, const prn_document_rows *rows,
                           prn_out *out)
{
    bool shown[PRN_DOCUMENT_COLUMNS] = {false};
    prn_out_format(out, "\n### %s\n\n", table->title);
    for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++) {
        shown[c] = *table->columns[c].title && prn_document_has_column(d, rows, &table->columns[c]);
        if (shown[c]) prn_out_format(out, "| %s ", table->columns[c].title);
    }
    prn_out_text(out, "|\n");
    for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++)
        if (shown[c]) prn_out_text(out, table->columns[c].kind == PRN_CELL_TEXT ? "|---" : "|--:");
    prn_out_text(out, "|\n");
    for (size_t i = 0; i < rows->count && i < MARKDOWN_ROWS; i++) {
        for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++) {
            if (!shown[c]) continue;
            const char *cell = prn_document_cell(d, rows->rows[i], &table->columns[c]);
            prn_out_text(out, "| ");
            markdown_text(out, cell ? cell : "");
            prn_out_text(out, " ");
        }
        prn_out_text(out, "|\n");
    }
    if (rows->count > MARKDOWN_ROWS) prn_out_format(out, "\nand %zu more rows\n", rows->count - MARKDOWN_ROWS);
}

static prony_status document_markdown(prn_document *d, prn_out *out)
{
    char lead[PRN_DOCUMENT_LEAD] = "";
    const char *key, *text, *subject = d->schema->subject ? prn_document_text(d, NULL, d->schema->subject) : NULL;
    prn_out_format(out, "## %s%s", d->schema->title, subject ? ": " : "");
    markdown_text(out, subject ? subject : "");
    prn_out_text(out, "\n\n");
    if (d->schema->lead) d->schema->lead(d, lead);
    markdown_text(out, lead);
    prn_out_text(out, "\n");
    const prn_json_value *notes = d->schema->notes ? prn_document_at(d, NULL, d->schema->notes, &key) : NULL;
    bool first = true;
    for (const prn_json_value *note = notes ? prn_json_first(notes) : NULL; note; note = prn_json_next(note)) {
        if (!prn_json_element_string(&d->reader, note, "note", &text)) break;
        prn_out_text(out, first ? "\n- " : "- ");
        markdown_text(out, text);
        prn_out_text(out, "\n");
        first = false;
    }
    for (int t = 0; t < PRN_DOCUMENT_TABLES && d->schema->tables[t].name; t++) {
        prn_document_rows rows;
        if (!prn_document_rows_of(d, &d->schema->tables[t], &rows)) return prn_no_memory(d->reader.error);
        if (rows.count) markdown_table(d, &d->schema->tables[t], &rows, out);
    }
    return PRONY_OK;
}

/* ---- HTML: a page that needs no network and runs no script, with the JSON inside ---- */

#define STYLE                                                                                                          \
    "td.n,th.n{text-align:right!important;overflow-wrap:normal;font-variant-numeric:tabular-nums}table{width:100%;"    \
    "table-layout:auto}\n"                                                                                             \
    "th,td{white-space:normal;max-width:none;overflow-wrap:anywhere}th{text-align:left;padding:.2rem .5rem}\n"         \
    ".scroller{height:auto;max-height:520px}\n"

static void html_table(prn_document *d, const prn_document_table *table, const prn_document_rows *rows, prn_out *out)
{
    bool shown[PRN_DOCUMENT_COLUMNS] = {false};
    prn_out_text(out, "<div class=\"panel wide\"><h2>");
    prn_out_xml(out, table->title);
    prn_out_text(out, "</h2><div class=\"scroller\"><table><thead><tr>");
    for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++) {
        shown[c] = *table->columns[c].title && prn_document_has_column(d, rows, &table->columns[c]);
        if (!shown[c]) continue;
        prn_out_text(out, table->columns[c].kind == PRN_CELL_TEXT ? "<th>" : "<th class=\"n\">");
        prn_out_xml(out, table->columns[c].title);
        prn_out_text(out, "</th>");
    }
    prn_out_text(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < rows->count; i++) {
        prn_out_text(out, "<tr>");
        for (int c = 0; c < PRN_DOCUMENT_COLUMNS && table->columns[c].title; c++) {
            if (!shown[c]) continue;
            const char *cell = prn_document_cell(d, rows->rows[i], &table->columns[c]);
            prn_out_text(out, table->columns[c].kind == PRN_CELL_TEXT ? "<td>" : "<td class=\"n\">");
            prn_out_xml(out, cell ? cell : "");
            prn_out_text(out, "</td>");
        }
        prn_out_text(out, "</tr>\n");
    }
    prn_out_text(out, "</tbody></table></div></div>\n");
}

static void html_notes(prn_document *d, prn_out *out)
{
    const char *key, *text;
    const prn_json_value *notes = d->schema->notes ? prn_document_at(d, NULL, d->schema->notes, &key) : NULL;
    if (!notes || !prn_json_first(notes)) return;
    prn_out_text(out, "<div class=\"panel wide\"><ul>");
    for (const prn_json_value *note = prn_json_first(notes); note; note = prn_json_next(note)) {
        if (!prn_json_element_string(&d->reader, note, "note", &text)) break;
        prn_out_text(out, "<li>");
        prn_out_xml(out, text);
        prn_out_text(out, "</li>");
    }
    prn_out_text(out, "</ul></div>\n");
}

/* One page that needs no network. The document itself is in the page, so that a script may read it again. */
static prony_status document_html(prn_document *d, const char *json, size_t size, prn_out *out)
{
    char lead[PRN_DOCUMENT_LEAD] = "";
    const char *subject = d->schema->subject ? prn_document_text(d, NULL, d->schema->subject) : NULL;
    char title[80];
    snprintf(title, sizeof title, "%s%s", d->schema->title, subject ? ": " : "");
    prn_page_begin(out, &(prn_page_head){.title = title,
                                         .name = subject ? subject : "",
                                         .heading = d->schema->title,
                                         .subtitle = subject ? subject : "",
                                         .style = STYLE});
    prn_out_text(out, "<section class=\"grid\">\n<div class=\"panel wide\"><p>");
    if (d->schema->lead) d->schema->lead(d, lead);
    prn_out_xml(out, lead);
    prn_out_text(out, "</p></div>\n");
    html_notes(d, out);
    for (int t = 0; t < PRN_DOCUMENT_TABLES && d->schema->tables[t].name; t++) {
        prn_document_rows rows;
        if (!prn_document_rows_of(d, &d->schema->tables[t], &rows)) return prn_no_memory(d->reader.error);
        if (rows.count && t == 0 && strcmp(d->schema->schema, "prony.capacity/1") == 0)
            prn_document_capacity_chart(d, &rows, out);
        if (rows.count) html_table(d, &d->schema->tables[t], &rows, out);
    }
    prn_out_text(out, "</section>\n</main>\n<script type=\"application/json\" id=\"data\">");
    for (size_t i = 0; i < size; i++) {
        if (json[i] == '<')
            prn_out_text(out, "\\u003c"); /* nothing in the data may look like the end of its element */
        else
            prn_out_bytes(out, json + i, 1);
    }
    prn_out_text(out, "</script>\n</body>\n</html>\n");
    return PRONY_OK;
}

/* ---- JUnit ---- */

static void junit_case(prn_document *d, const prn_json_value *row, const char *target, prn_out *out)
{
    const char *metric = prn_document_text(d, row, "metric"), *bound = prn_document_text(d, row, "bound"),
               *limit = prn_document_text(d, row, "limit_text"), *value = prn_document_text(d, row, "value_text"),
               *outcome = prn_document_text(d, row, "outcome");
    const char *element = !outcome || strcmp(outcome, "met") == 0 ? NULL
                          : strcmp(outcome, "missed") == 0        ? "failure"
                          : strcmp(outcome, "unknown") == 0       ? "error"
                                                                  : "skipped";
    prn_out_text(out, "  <testcase classname=\"");
    prn_out_xml(out, target);
    prn_out_text(out, "\" name=\"");
    prn_out_xml(out, metric ? metric : "?");
    prn_out_format(out, " %s ", bound ? bound : "?");
    prn_out_xml(out, limit ? limit : "?");
    if (!element) {
        prn_out_text(out, "\"/>\n");
        return;
    }
    prn_out_format(out, "\">\n    <%s message=\"", element);
    prn_out_xml(out, metric ? metric : "?");
    prn_out_text(out, " is ");
    prn_out_xml(out, strcmp(element, "error") == 0 ? "unknown" : value ? value : "unknown");
    prn_out_text(out, strcmp(element, "skipped") == 0 ? ": undecided" : "");
    prn_out_text(out, "\"/>\n  </testcase>\n");
}

/* A test case for each threshold: missed is a failure, unknown an error, undecided is skipped. */
static prony_status document_junit(prn_document *d, prn_out *out)
{
    size_t failures = 0, errors = 0, skipped = 0;
    prn_document_rows rows;
    if (strcmp(d->schema->schema, "prony.check/1") != 0)
        return prn_fail(d->reader.error, PRONY_INVALID_ARGUMENT,
                        "JUnit XML is of thresholds (prony.check/1), not of %s", d->schema->schema);
    if (!prn_document_rows_of(d, &d->schema->tables[0], &rows)) return prn_no_memory(d->reader.error);
    const char *target = prn_document_text(d, NULL, "target");
    for (size_t i = 0; i < rows.count; i++) {
        const char *outcome = prn_document_text(d, rows.rows[i], "outcome");
        if (!outcome || strcmp(outcome, "met") == 0) continue;
        if (strcmp(outcome, "missed") == 0)
            failures++;
        else if (strcmp(outcome, "unknown") == 0)
            errors++;
        else
            skipped++;
    }
    prn_out_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    prn_out_format(out,
                   " <testsuite name=\"prony check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n",
                   rows.count, failures, errors, skipped);
    for (size_t i = 0; i < rows.count; i++) junit_case(d, rows.rows[i], target ? target : "prony", out);
    prn_out_text(out, " </testsuite>\n</testsuites>\n");
    return PRONY_OK;
}

/* ---- the whole ---- */

static prony_status document_write(prn_document *d, const char *json, size_t size, prony_format format,
                                   const char *table, prn_out *out)
{
    const char *schema = NULL;
    prn_json_get_string(&d->reader, d->root, "schema", true, &schema);
    if (d->reader.status != PRONY_OK) return d->reader.status;
    d->schema = prn_document_find(schema);
    if (!d->schema)
        return prn_fail(d->reader.error, PRONY_UNSUPPORTED, "%s: a document '%s' has no tables", d->reader.file,
                        schema);
    switch (format) {
    case PRONY_FORMAT_CSV:
        return document_csv(d, table, out);
    case PRONY_FORMAT_MARKDOWN:
        return document_markdown(d, out);
    case PRONY_FORMAT_HTML:
        return document_html(d, json, size, out);
    case PRONY_FORMAT_JUNIT:
        return document_junit(d, out);
    default:
        return prn_fail(d->reader.error, PRONY_INVALID_ARGUMENT,
                        "a document is written as CSV, Markdown, HTML or JUnit XML");
    }
}

prony_status prony_document_write(const char *name, const char *json, size_t size, prony_format format,
                                  const prony_write_options *options, prony_write_fn write, void *user,
                                  prony_error *error)
{
    prony_write_options own = PRONY_WRITE_OPTIONS_INIT;
    if (!name || !json || !write)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_document_write: an argument is NULL");
    PRN_TRY(prn_options_read(&own, sizeof own, options, "write options", error));
    prn_document document = {.reader = {.file = name, .error = error}};
    prn_out out;
    document.reader.pool = &document.pool;
    PRN_TRY(prn_json_document_parse(&document.root, name, json, size, error));
    prn_out_begin(&out, write, user, error);
    prony_status status = document_write(&document, json, size, format, own.chart, &out);
    if (status == PRONY_OK) status = document.reader.status;
    prony_status written = prn_out_end(&out);
    prn_json_document_release(document.root);
    prn_bump_release(&document.pool);
    return status == PRONY_OK ? written : status;
}

prony_status prony_document_save(const char *name, const char *json, size_t size, prony_format format,
                                 const prony_write_options *options, const char *path, prony_error *error)
{
    prn_file_writer *file = NULL;
    if (!path) return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_document_save: the path is NULL");
    PRN_TRY(prn_file_create(&file, path, error));
    prony_status status = prony_document_write(name, json, size, format, options, prn_file_write, file, error);
    if (status == PRONY_OK || status == PRONY_IO_ERROR) return prn_file_commit(file, error);
    prn_file_abandon(file);
    return status;
}

const char *prony_document_table_name(const char *schema, size_t index)
{
    const prn_document_schema *found = prn_document_find(schema);
    return found && index < PRN_DOCUMENT_TABLES ? found->tables[index].name : NULL;
}
