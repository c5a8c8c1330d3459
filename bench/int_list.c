/* Parsing of lists of numbers. */
#include "bench/int_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool int_list_add(int_list *list, int64_t value)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i] == value) return true;
    if (list->count == INT_LIST_MOST) return false;
    list->values[list->count++] = value;
    return true;
}

/* Digits alone: strtoll would take blanks and signs. */
static bool int_list_read_number(const char **text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)**text)) return false;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    if (errno || value < min || value > max) return false;
    *text = end;
    *out = value;
    return true;
}

bool int_list_parse(int_list *list, const char *text, int64_t min, int64_t max, const char *automatic)
{
    size_t word = automatic ? strlen(automatic) : 0;
    list->count = 0;
    for (;; text++) {
        int64_t first, last;
        if (word && strncmp(text, automatic, word) == 0) {
            text += word;
            first = last = 0;
        } else {
            if (!int_list_read_number(&text, min, max, &first)) return false;
            last = first;
            if (*text == '-' && (text++, !int_list_read_number(&text, min, max, &last))) return false;
        }
        if (last < first || last - first >= INT_LIST_MOST) return false;
        for (int64_t v = first; v <= last; v++)
            if (!int_list_add(list, v)) return false;
        if (!*text) return true;
        if (*text != ',') return false;
    }
}
