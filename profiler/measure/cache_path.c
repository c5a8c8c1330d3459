#include "profiler/measure/cache_path.h"

#include <ctype.h>
#include <string.h>

void prn_cache_slug(char *out, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text && used + 2 < size; text++) {
        if (isalnum((unsigned char)*text) || *text == '.')
            out[used++] = (char)tolower((unsigned char)*text);
        else if (used && out[used - 1] != '-')
            out[used++] = '-';
    }
    while (used && out[used - 1] == '-') used--;
    out[used] = '\0';
}

void prn_cache_read_same(prn_json_reader *j, const prn_json_value *root, const char *key, const char *wanted)
{
    const char *text = NULL;
    if (prn_json_get_string(j, root, key, true, &text) && strcmp(text, wanted) != 0)
        prn_json_bad(j, key, "found \"%.100s\", wanted \"%.100s\"", text, wanted);
}
