/* A document as one HTML page that needs no network and runs no script: its tables, and the JSON inside. */
#include "profiler/exporters/document.h"
#include "profiler/exporters/html_assets.h"

#include <string.h>

#define STYLE                                                                                                          \
    "td.n,th.n{text-align:right!important;font-variant-numeric:tabular-nums}table{width:100%;table-layout:auto}\n"     \
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

prony_status prn_document_html(prn_document *d, const char *json, size_t size, prn_out *out)
{
    char lead[PRN_DOCUMENT_LEAD] = "";
    const char *subject = d->schema->subject ? prn_document_text(d, NULL, d->schema->subject) : NULL;
    prn_out_text(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"generator\" content=\"prony " PRONY_VERSION "\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                      "'unsafe-inline'\">\n<title>");
    prn_out_xml(out, d->schema->title);
    prn_out_text(out, subject ? ": " : "");
    prn_out_xml(out, subject ? subject : "");
    prn_out_text(out, "</title>\n<style>\n");
    prn_out_bytes(out, prn_html_style, (size_t)(prn_html_style_end - prn_html_style));
    prn_out_text(out, STYLE "</style>\n</head>\n<body>\n<header class=\"top\"><div class=\"who\"><h1>");
    prn_out_xml(out, d->schema->title);
    prn_out_text(out, "</h1><p id=\"subtitle\">");
    prn_out_xml(out, subject ? subject : "");
    prn_out_text(out, "</p></div></header>\n<main>\n<section class=\"grid\">\n<div class=\"panel wide\"><p>");
    if (d->schema->lead) d->schema->lead(d, lead);
    prn_out_xml(out, lead);
    prn_out_text(out, "</p></div>\n");
    html_notes(d, out);
    for (int t = 0; t < PRN_DOCUMENT_TABLES && d->schema->tables[t].name; t++) {
        prn_document_rows rows;
        if (!prn_document_rows_of(d, &d->schema->tables[t], &rows)) return prn_no_memory(d->reader.error);
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
