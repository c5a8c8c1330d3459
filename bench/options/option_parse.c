/* Numbers, durations and shapes as options write them. */
#include "bench/options/option_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10), factor = 1;
    if (errno || end == text) return false;
    if (*end && !end[1])
        factor = *end == 'k' || *end == 'K' ? 1000 : *end == 'M' ? 1000000 : *end == 'G' ? 1000000000 : 0;
    else if (*end)
        factor = 0;
    if (!factor || __builtin_mul_overflow(v, factor, &v) || v < min || v > max) return false;
    *out = v;
    return true;
}

bool parse_duration(const char *text, double *seconds)
{
    static const struct {
        const char *suffix;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"sec", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"min", 60}, {"h", 3600}};
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v > 0) || !isfinite(v)) return false;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].suffix) != 0) continue;
        *seconds = v * units[i].seconds;
        return true;
    }
    return false;
}

char *cut_name(char *text)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1]) return NULL;
    *equals = 0;
    return equals + 1;
}

void cut_name_where(named_file *pair, cut_fits_fn *fits, const void *context)
{
    char *text = (char *)(uintptr_t)pair->name, *chosen = NULL;
    if (!text) return;
    char *former = text + strlen(text);
    *former = '=';
    for (char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) {
        *at = 0;
        if (at != text && at[1] && fits(context, text, at + 1)) chosen = at;
        *at = '=';
    }
    if (!chosen) chosen = former;
    *chosen = 0;
    pair->file = chosen + 1;
}

char *cut_name_last(char *text)
{
    char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1]) return NULL;
    *equals = 0;
    return equals + 1;
}

bool parse_shape(char *text, prony_shape *out)
{
    *out = (prony_shape){0};
    if (strcmp(text, "scalar") == 0) return true;
    for (char *part = text; part;) {
        char *next = strchr(part, 'x');
        if (next) *next = 0;
        const bool taken = out->rank < PRONY_MAX_RANK && parse_int(part, 0, INT64_MAX, &out->dim[out->rank]);
        if (next) *next++ = 'x'; /* a message shows the whole text */
        if (!taken) return false;
        out->rank++;
        part = next;
    }
    return true;
}
