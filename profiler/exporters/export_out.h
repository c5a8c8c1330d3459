/* A buffered sink for all formats except JSON and the terminal's text. Errors stick: after the first, calls do nothing
 * and prn_out_end returns it. Numbers are independent of the locale. Not thread-safe.
 */
#ifndef PRN_PROFILER_EXPORTERS_EXPORT_OUT_H
#define PRN_PROFILER_EXPORTERS_EXPORT_OUT_H

#include "base/status.h"

typedef struct prn_out {
    prony_write_fn write;
    void *user;
    prony_error *error;
    prony_status status;
    bool in_page; /* SVG is part of the HTML page, which shows headings and tips itself */
    size_t size;
    char buffer[8192];
} prn_out;

void prn_out_begin(prn_out *out, prony_write_fn write, void *user, prony_error *error);
PRN_MUST_USE prony_status prn_out_end(prn_out *out);

void prn_out_bytes(prn_out *out, const char *data, size_t size);
void prn_out_text(prn_out *out, const char *text);
/* Strings of any length and integers; no floating-point conversions, which follow the locale. */
void prn_out_format(prn_out *out, const char *format, ...) PRN_PRINTF(2, 3);
/* Shortest of 15 to 17 digits that reads back to the same double; nothing for NaN and infinity. */
void prn_out_double(prn_out *out, double value);
void prn_out_fixed(prn_out *out, double value, int decimals);
/* Names of a model, made harmless for terminals and other programs: a control character or invalid UTF-8 becomes '?';
 * `special` is written as `instead`. */
void prn_out_printable(prn_out *out, const char *text, size_t size, char special, const char *instead);
/* Text of the model as a field of CSV: a spreadsheet takes a field that begins with one of "=+-@" for a formula and
 * runs it. Semicolons part fields where the comma is decimal. */
void prn_out_csv(prn_out *out, const char *text);
/* As text or attribute value of XML and HTML: markup is escaped; characters that XML cannot hold become U+FFFD. */
void prn_out_xml(prn_out *out, const char *text);

#endif
