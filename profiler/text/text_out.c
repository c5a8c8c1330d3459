/* Implements text_out.h: lines, styles and shortening. Invariant: `column` never exceeds `width`, and no line ends in a
 * blank.
 */
#include "profiler/text/text_out.h"

#include "profiler/text/utf8.h"

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
    text->whole_names = false;
    text->column = text->pending = 0;
    text->marks = 0;
    text->size = 0;
}

static void text_out_flush(prn_text *text)
{
    if (text->status == PRONY_OK && text->size && text->write(text->user, text->buffer, text->size) != 0)
        text->status = prn_fail(text->error, PRONY_IO_ERROR, "the report could not be written");
    text->size = 0;
}

static void raw(prn_text *text, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text->size == sizeof text->buffer) text_out_flush(text);
        text->buffer[text->size++] = bytes[i];
    }
}

prony_status prn_text_end(prn_text *text)
{
    if (text->column) prn_text_line(text);
    text_out_flush(text);
    return text->status;
}

/* The output for the next character of a string. */
typedef struct glyph {
    const char *bytes;
    int size, columns;
} glyph;

/* Columns of letters that every terminal shows alike: Latin, Greek and Cyrillic, bars, and the wide ones of China,
 * Japan and Korea. 0: combining, written from right to left, or unknown. */
static int letter_columns(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        int columns;
    } ranges[] = {{0xc0, 0x24f, 1},    {0x370, 0x482, 1},   {0x48a, 0x52f, 1},
                  {0x2581, 0x2588, 1}, {0x3041, 0x3096, 2}, {0x309d, 0x30ff, 2},
                  {0x3400, 0x4dbf, 2}, {0x4e00, 0x9fff, 2}, {0xac00, 0xd7a3, 2}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return ranges[i].columns;
    return 0;
}

/* Moves on by one character. Characters that cannot be shown become '?'; a stray continuation byte is dropped. */
static glyph next_glyph(const char **string)
{
    const unsigned char *s = (const unsigned char *)*string;
    size_t size = prn_utf8_sequence(*string);
    glyph g = {*string, (int)size, 1};
    *string += size ? size : 1;
    if (size == 0 && (s[0] & 0xc0) == 0x80) return (glyph){"", 0, 0};
    if (size == 1 && s[0] >= 0x20 && s[0] < 0x7f) return g;
    g.columns = size == 2   ? letter_columns((s[0] & 0x1fu) << 6 | (s[1] & 0x3fu))
                : size == 3 ? letter_columns((s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu))
                            : 0;
    return g.columns ? g : (glyph){"?", 1, 1};
}

int prn_text_next(const char **string)
{
    return next_glyph(string).columns;
}

int prn_text_width(const char *string)
{
    int columns = 0;
    while (*string) columns += next_glyph(&string).columns;
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
    while (*string) {
        glyph g = next_glyph(&string);
        if (text->column + g.columns > text->width) break;
        text->column += g.columns;
        if (*g.bytes == ' ') {
            text->pending++;
            continue;
        }
        for (; text->pending && g.size; text->pending--) raw(text, " ", 1);
        if (!opened && g.size) raw(text, code, strlen(code));
        opened = opened || g.size;
        raw(text, g.bytes, (size_t)g.size);
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

/* A number and the per cent sign after it stay on one line. */
void prn_text_wrap(prn_text *text, prn_style style, int indent, const char *string)
{
    prn_text_to(text, indent);
    bool first = true;
    while (*string) {
        char word[256];
        size_t span = strcspn(string, " ");
        if (string[span] == ' ' && string[span + 1] == '%') span += 1 + strcspn(string + span + 1, " "); /* "73.6 %" */
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
    /* The end of a name distinguishes it better than its beginning, so it keeps two thirds. */
    int kept = columns > 2 ? columns - 2 : 0, head = width > columns ? kept / 3 : columns, tail = width - (kept - head);
    bool dots = width > columns;
    size_t used = 0;
    for (int at = 0; *string;) {
        glyph g = next_glyph(&string);
        bool fits = width <= columns || at + g.columns <= head || at >= tail;
        if (!fits && dots) {
            for (int dot = 0; dot < 2 && dot < columns && used + 1 < size; dot++) out[used++] = '.';
            dots = false;
        }
        at += g.columns;
        if (!fits) continue;
        if (used + (size_t)g.size >= size) break;
        memcpy(out + used, g.bytes, (size_t)g.size);
        used += (size_t)g.size;
    }
    out[used] = '\0';
}
