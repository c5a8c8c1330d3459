/* UTF-8, as far as writers need it. */
#include "profiler/text/utf8.h"

#include "prony_report.h"

#include <stdint.h>

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

size_t prn_utf8_skip(const char *text)
{
    const size_t bytes = prn_utf8_sequence(text);
    return bytes ? bytes : 1;
}

static uint32_t code_point(const unsigned char *s, size_t bytes)
{
    if (bytes == 2) return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    if (bytes == 3) return (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    return s[0];
}

/* Controls of terminals (C0, C1), ends of lines and paragraphs, and marks that change the text direction (Unicode's
 * Bidi_Control): the single list for all text output. */
size_t prony_text_printable(const char *text)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200e, 0x200f},
                    {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};
    const size_t bytes = prn_utf8_sequence(text);
    if (bytes == 0 || bytes > 3) return bytes;
    const uint32_t c = code_point((const unsigned char *)text, bytes);
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        if (c >= controls[i].first && c <= controls[i].last) return 0;
    return bytes;
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
