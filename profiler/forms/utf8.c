/* UTF-8, as far as writers need it. */
#include "profiler/forms/utf8.h"

#include <stdbool.h>

size_t prn_utf8_sequence(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf) return (s[1] & 0xc0) == 0x80 ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] <= 0xef) {
        unsigned char low = s[0] == 0xe0 ? 0xa0 : 0x80, high = s[0] == 0xed ? 0x9f : 0xbf;
        return s[1] >= low && s[1] <= high && (s[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        unsigned char low = s[0] == 0xf0 ? 0x90 : 0x80, high = s[0] == 0xf4 ? 0x8f : 0xbf;
        return s[1] >= low && s[1] <= high && (s[2] & 0xc0) == 0x80 && (s[3] & 0xc0) == 0x80 ? 4 : 0;
    }
    return 0;
}

size_t prn_utf8_printable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t bytes = prn_utf8_sequence(text);
    bool control = s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
    return control ? 0 : bytes;
}

size_t prn_utf8_length(const char *text)
{
    size_t count = 0;
    while (*text) {
        size_t bytes = prn_utf8_sequence(text);
        text += bytes ? bytes : 1;
        count++;
    }
    return count;
}
