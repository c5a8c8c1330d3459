/* Lines, styles and shortening; see the header. Invariant: `column` never exceeds `width`, and no line ends in a blank.
 */
#include "profiler/text_out.h"

#include <stdio.h>
#include <string.h>

void prn_text_begin(prn_text *text, int width, bool color, prony_write_fn write, void *user, prony_error *error)
{
    text->write = write;
    text->user = user;
    text->error = error;
    text->status = PRONY_OK;
    text->color = color;
    text->width = width;
    text->column = text->pending = 0;
    text->size = 0;
}

static void flush(prn_text *text)
{
    if (text->status == PRONY_OK && text->size && text->write(text->user, text->buffer, text->size) != 0)
        text->status = prn_fail(text->error, PRONY_IO_ERROR, "the report could not be written");
    text->size = 0;
}

static void raw(prn_text *text, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text->size == sizeof text->buffer) flush(text);
        text->buffer[text->size++] = bytes[i];
    }
}

prony_status prn_text_end(prn_text *text)
{
    if (text->column) prn_text_line(text);
    flush(text);
    return text->status;
}

/* One shown character for each byte or UTF-8 sequence; continuation bytes show nothing. */
static bool shown(char byte, char *as)
{
    unsigned char c = (unsigned char)byte;
    if ((c & 0xc0) == 0x80) return false;
    *as = c >= 0x20 && c < 0x7f ? byte : '?';
    return true;
}

int prn_text_width(const char *string)
{
    int columns = 0;
    char c;
    for (; *string; string++) columns += shown(*string, &c);
    return columns;
}

static const char *style_code(prn_style style)
{
    static const char *const codes[] = {
        [PRN_STYLE_PLAIN] = "",        [PRN_STYLE_BOLD] = "\x1b[1m",    [PRN_STYLE_DIM] = "\x1b[2m",
        [PRN_STYLE_GOOD] = "\x1b[32m", [PRN_STYLE_WARN] = "\x1b[33m",   [PRN_STYLE_BAD] = "\x1b[31m",
        [PRN_STYLE_BAR] = "\x1b[36m",  [PRN_STYLE_TITLE] = "\x1b[1;36m"};
    return codes[style];
}

void prn_text_put(prn_text *text, prn_style style, const char *string)
{
    const char *code = text->color ? style_code(style) : "";
    bool opened = false;
    char c;
    for (; *string && text->column < text->width; string++) {
        if (!shown(*string, &c)) continue;
        text->column++;
        if (c == ' ') {
            text->pending++;
            continue;
        }
        for (; text->pending; text->pending--) raw(text, " ", 1);
        if (!opened) raw(text, code, strlen(code));
        opened = true;
        raw(text, &c, 1);
    }
    if (opened && *code) raw(text, "\x1b[0m", 4);
}

void prn_text_putf(prn_text *text, prn_style style, const char *format, ...)
{
    char string[512];
    va_list args;
    va_start(args, format);
    vsnprintf(string, sizeof string, format, args);
    va_end(args);
    prn_text_put(text, style, string);
}

void prn_text_to(prn_text *text, int column)
{
    if (column > text->width) column = text->width;
    if (column <= text->column) return;
    text->pending += column - text->column;
    text->column = column;
}

void prn_text_line(prn_text *text)
{
    raw(text, "\n", 1);
    text->column = text->pending = 0;
}

void prn_text_wrap(prn_text *text, prn_style style, int indent, const char *string)
{
    prn_text_to(text, indent);
    bool first = true;
    while (*string) {
        char word[256];
        size_t span = strcspn(string, " ");
        size_t size = span < sizeof word ? span : sizeof word - 1;
        memcpy(word, string, size);
        word[size] = '\0';
        if (!first && text->column + 1 + prn_text_width(word) > text->width) {
            prn_text_line(text);
            prn_text_to(text, indent);
            first = true;
        }
        if (size) {
            if (!first) prn_text_put(text, PRN_STYLE_PLAIN, " ");
            prn_text_put(text, style, word);
            first = false;
        }
        string += span;
        string += strspn(string, " ");
    }
    prn_text_line(text);
}

void prn_text_shorten(char *out, size_t size, const char *string, int columns)
{
    int width = prn_text_width(string);
    if (columns > (int)size - 1) columns = (int)size - 1;
    /* The end of a name tells more than its beginning: it keeps two thirds. */
    int kept = columns > 2 ? columns - 2 : 0, head = width > columns ? kept / 3 : columns, tail = width - (kept - head);
    int at = 0, used = 0;
    char c;
    for (; *string; string++) {
        if (!shown(*string, &c)) continue;
        if (width <= columns || at < head || at >= tail)
            out[used++] = c;
        else if (at == head)
            for (int dot = 0; dot < 2 && dot < columns; dot++) out[used++] = '.';
        at++;
    }
    out[used] = '\0';
}
