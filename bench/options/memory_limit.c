/* The command's memory limit: the requested one, or the available memory less a margin. */
#include "bench/options/option_table.h"

#include <stdlib.h>
#include <string.h>

/* "2GiB", "1.5 GB", "4096". */
static bool parse_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"kB", 1000},
                 {"KB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", 1000000000000},
                 {"KiB", UINT64_C(1) << 10},
                 {"MiB", UINT64_C(1) << 20},
                 {"GiB", UINT64_C(1) << 30},
                 {"TiB", UINT64_C(1) << 40}};
    uint64_t whole = 0, part = 0, scale = 1;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
            return false;
    if (at == text) return false;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && scale < 1000000; at++, scale *= 10)
            part = part * 10 + (uint64_t)(*at - '0');
    at += *at == ' ';
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        if (strcmp(units[u].unit, at) != 0) continue;
        return !__builtin_mul_overflow(whole, units[u].bytes, out) &&
               !__builtin_add_overflow(*out, units[u].bytes / scale * part, out) && *out > 0;
    }
    return false;
}

int check_memory_limit(const options *o, const char *who, const char *text)
{
    uint64_t bytes;
    if (strcmp(text, "none") == 0 || parse_bytes(text, &bytes)) return 0;
    return usage(o, "%s needs a size with KiB, MiB or GiB, such as 2GiB, or none, got '%s'", who, text);
}

int parse_size(options *o, const option_row *row, char *text)
{
    uint64_t bytes;
    if (!parse_bytes(text, &bytes) || (double)bytes < row->least || (double)bytes > row->most)
        return usage(o, "--%s needs %s, got '%s'", row->name, row->wanted, text);
    *(int64_t *)(void *)((char *)o + row->field) = (int64_t)bytes;
    return 0;
}

uint64_t given_memory_limit(const options *o)
{
    uint64_t bytes = 0;
    return o->limits.memory_limit && parse_bytes(o->limits.memory_limit, &bytes) ? bytes : 0;
}

/* The default limit. The margin is for libraries, stacks and memory outside the accounting. */
static uint64_t usual_limit(void)
{
    uint64_t available = prony_memory_available(), margin = available / 16;
    if (margin < UINT64_C(64) << 20) margin = UINT64_C(64) << 20;
    return available / 2 > margin ? available - margin : available - available / 2;
}

int set_memory_limit(const options *o)
{
    const char *text = o->limits.memory_limit;
    uint64_t bytes = 0;
    if (!text) {
        text = getenv("PRONY_MEMORY_LIMIT");
        if (text && !*text) text = NULL;
        int status = text ? check_memory_limit(o, "PRONY_MEMORY_LIMIT", text) : 0;
        if (status) return status;
    }
    if (!text)
        bytes = usual_limit();
    else if (strcmp(text, "none") != 0)
        (void)parse_bytes(text, &bytes);
    prony_memory_set_limit(bytes);
    return 0;
}
