#include "bench/terminal/json_character.h"

#include <stdint.h>
#include <stdio.h>

/* Bytes of the valid UTF-8 sequence at `text`; 0: invalid. Surrogates, overlong forms and numbers above U+10FFFF are
 * invalid. */
static size_t json_character_utf8(const unsigned char *text, size_t size)
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

size_t json_character(const char *text, size_t size, char escape[JSON_ESCAPE])
{
    const unsigned char c = (unsigned char)*text;
    const size_t length = json_character_utf8((const unsigned char *)text, size);
    *escape = '\0';
    if (!length)
        snprintf(escape, JSON_ESCAPE, "\\ufffd");
    else if (c == '"' || c == '\\')
        snprintf(escape, JSON_ESCAPE, "\\%c", c);
    else if (c < 0x20 || c == 0x7f || c == '<')
        snprintf(escape, JSON_ESCAPE, "\\u%04x", c);
    return length ? length : 1;
}
