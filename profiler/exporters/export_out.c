/* Implements export_out.h. Invariant: the bytes passed to `write` plus the buffer are the output of all calls so
 * far. */
#include "profiler/exporters/export_out.h"

#include "base/memory/alloc.h"
#include "profiler/text/number_text.h"
#include "profiler/text/utf8.h"
#include "prony_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void prn_out_begin(prn_out *out, prony_write_fn write, void *user, prony_error *error)
{
    out->write = write;
    out->user = user;
    out->error = error;
    out->status = PRONY_OK;
    out->in_page = false;
    out->size = 0;
}

static void send(prn_out *out, const char *data, size_t size)
{
    if (out->status == PRONY_OK && size && out->write(out->user, data, size) != 0)
        out->status = prn_fail(out->error, PRONY_IO_ERROR, "the report could not be written");
}

prony_status prn_out_end(prn_out *out)
{
    send(out, out->buffer, out->size);
    out->size = 0;
    return out->status;
}

void prn_out_bytes(prn_out *out, const char *data, size_t size)
{
    if (size > sizeof out->buffer - out->size) {
        send(out, out->buffer, out->size);
        out->size = 0;
    }
    if (size > sizeof out->buffer) {
        send(out, data, size);
        return;
    }
    memcpy(out->buffer + out->size, data, size);
    out->size += size;
}

void prn_out_text(prn_out *out, const char *text)
{
    prn_out_bytes(out, text, strlen(text));
}

void prn_out_format(prn_out *out, const char *format, ...)
{
    char line[512], *text = line;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(line, sizeof line, format, args);
    if (size >= (int)sizeof line) {
        text = prn_alloc((size_t)size + 1);
        if (text)
            vsnprintf(text, (size_t)size + 1, format, again);
        else if (out->status == PRONY_OK)
            out->status = prn_no_memory(out->error);
    }
    va_end(again);
    va_end(args);
    if (size > 0 && text) prn_out_bytes(out, text, (size_t)size);
    if (text != line) prn_free(text);
}

void prn_out_double(prn_out *out, double value)
{
    prn_number_text text;
    if (isfinite(value)) prn_out_text(out, prn_number_exact(text, value));
}

void prn_out_fixed(prn_out *out, double value, int decimals)
{
    prn_number_text text;
    prn_out_text(out, prn_number_fixed(text, isfinite(value) ? value : 0, decimals));
}

void prn_out_printable(prn_out *out, const char *text, size_t size, char special, const char *instead)
{
    for (const char *end = text + size; text < end;) {
        size_t bytes = prony_text_printable(text);
        if (bytes == 0)
            prn_out_text(out, "?");
        else if (*text == special)
            prn_out_text(out, instead);
        else
            prn_out_bytes(out, text, bytes);
        text += bytes ? bytes : prn_utf8_skip(text);
    }
}

void prn_out_csv(prn_out *out, const char *text)
{
    const bool formula = *text && strchr("=+-@\t\r", *text),
               quoted = formula || *text == ' ' || strpbrk(text, "\",;\r\n\t");
    if (quoted) prn_out_text(out, formula ? "\"'" : "\"");
    prn_out_printable(out, text, strlen(text), '"', "\"\"");
    if (quoted) prn_out_text(out, "\"");
}

void prn_out_xml(prn_out *out, const char *text)
{
    while (*text) {
        const char c = *text;
        const size_t bytes = c == '\t' || c == '\n' ? 1 : prony_text_printable(text);
        if (bytes == 0)
            prn_out_text(out, "\xef\xbf\xbd");
        else if (c == '&')
            prn_out_text(out, "&amp;");
        else if (c == '<')
            prn_out_text(out, "&lt;");
        else if (c == '>')
            prn_out_text(out, "&gt;");
        else if (c == '"')
            prn_out_text(out, "&quot;");
        else
            prn_out_bytes(out, text, bytes);
        text += bytes ? bytes : prn_utf8_skip(text);
    }
}
