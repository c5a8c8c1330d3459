#define _GNU_SOURCE /* fopen's "e", fsync */
#include "bench/serve/text_buffer.h"
#include "bench/terminal/json_character.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ROOM = 512, FORMATTED = 256, PATH_ROOM = 4096 };

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

void buffer_json(text_buffer *b, const char *text, size_t size)
{
    buffer_text(b, "\"");
    for (size_t i = 0; i < size;) {
        char escape[JSON_ESCAPE];
        size_t length = json_character(text + i, size - i, escape);
        if (*escape)
            buffer_text(b, escape);
        else
            buffer_bytes(b, text + i, length);
        i += length;
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

bool buffer_save(const text_buffer *b, const char *path, bool durable)
{
    char temporary[PATH_ROOM];
    if (b->failed) return errno = ENOMEM, false;
    if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary)
        return errno = ENAMETOOLONG, false;
    FILE *file = fopen(temporary, "we");
    if (!file) return false;
    bool ok = fwrite(b->data ? b->data : "", 1, b->size, file) == b->size && fflush(file) == 0 &&
              (!durable || fsync(fileno(file)) == 0);
    int code = errno;
    if (fclose(file) != 0) {
        if (ok) code = errno;
        ok = false;
    }
    if (ok)
        ok = rename(temporary, path) == 0;
    else
        errno = code;
    return ok;
}

void buffer_free(text_buffer *b)
{
    free(b->data);
    *b = (text_buffer){0};
}
