#include "bench/serve/text_buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 512, FORMATTED = 256 };

static bool buffer_reserve(text_buffer *b, size_t more)
{
    if (b->failed) return false;
    if (more >= SIZE_MAX / 2 - b->size) return b->failed = true, false;
    if (b->size + more + 1 <= b->room) return true;
    size_t room = b->room ? b->room : FIRST_ROOM;
    while (room < b->size + more + 1) room *= 2;
    char *data = realloc(b->data, room);
    if (!data) return b->failed = true, false;
    b->data = data;
    b->room = room;
    return true;
}

void buffer_bytes(text_buffer *b, const void *data, size_t size)
{
    if (!buffer_reserve(b, size)) return;
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
    b->data[b->size] = '\0';
}

void buffer_text(text_buffer *b, const char *text)
{
    buffer_bytes(b, text, strlen(text));
}

void buffer_format(text_buffer *b, const char *format, ...)
{
    char text[FORMATTED];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < sizeof text) {
        buffer_bytes(b, text, (size_t)length);
        return;
    }
    if (length < 0 || !buffer_reserve(b, (size_t)length)) {
        b->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(b->data + b->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    b->size += (size_t)length;
}

/* Bytes of the valid UTF-8 sequence at `text`; 0: invalid. Surrogates, overlong forms and numbers above U+10FFFF are
 * invalid. */
static size_t buffer_utf8(const unsigned char *text, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (length == 1) return 1;
    if (text[0] < 0xc2 || text[0] > 0xf4 || length > size) return 0;
    uint32_t code = text[0] & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

void buffer_json(text_buffer *b, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    buffer_text(b, "\"");
    for (size_t i = 0; i < size;) {
        size_t length = buffer_utf8(at + i, size - i);
        if (!length)
            buffer_text(b, "\\ufffd");
        else if (length == 1 && (at[i] < 0x20 || at[i] == 0x7f || at[i] == '<' || at[i] == '"' || at[i] == '\\'))
            buffer_format(b, at[i] == '"' || at[i] == '\\' ? "\\%c" : "\\u%04x", at[i]);
        else
            buffer_bytes(b, at + i, length);
        i += length ? length : 1;
    }
    buffer_text(b, "\"");
}

void buffer_number(text_buffer *b, double value)
{
    if (!isfinite(value))
        buffer_text(b, "null");
    else if (value == floor(value) && fabs(value) < 1e15)
        buffer_format(b, "%.0f", value);
    else
        buffer_format(b, "%.9g", value);
}

void buffer_free(text_buffer *b)
{
    free(b->data);
    *b = (text_buffer){0};
}
