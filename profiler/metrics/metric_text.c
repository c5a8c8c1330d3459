/* Metric values as text and back. Independent of the locale. Pure. */
#include "profiler/metrics/metrics.h"

#include "profiler/text/number_text.h"

#include <ctype.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- to text ---- */

static void with_unit(char *text, size_t size, const char *number, const char *unit)
{
    const char *between = *unit && !isalpha((unsigned char)number[strlen(number) - 1]) ? " " : "";
    snprintf(text, size, "%s%s%s", number, between, unit);
}

static void metric_text_plain(char *text, size_t size, double value, const char *unit)
{
    prn_number_text number;
    bool whole = value == floor(value) && fabs(value) < 1e15;
    if (whole)
        prn_number_fixed(number, value, 0);
    else if (fabs(value) < 1e-3) {
        snprintf(number, PRN_NUMBER_TEXT_BYTES, "%.3g", value); /* a fixed number of decimals would hide an error of
                                                                   1e-7 */
        prn_number_plain_point(number);
    } else
        prn_number_fixed(number, value, fabs(value) >= 100 ? 1 : fabs(value) >= 1 ? 2 : 4);
    with_unit(text, size, number, unit);
}

/* Writes a value by the metric's scale; "-" if it is not finite. */
void prony_metric_format(const prony_metric *metric, double value, char *text, size_t size)
{
    prn_number_text number;
    if (!text || !size) return;
    if (!metric || !isfinite(value)) {
        snprintf(text, size, "-");
        return;
    }
    const char *unit = metric->unit ? metric->unit : "";
    switch (metric->scale) {
    case PRONY_SCALE_SI:
        with_unit(text, size, prn_number_si(number, value, 4, " "), unit);
        return;
    case PRONY_SCALE_BINARY:
        with_unit(text, size, prn_number_bytes(number, value, 4, " "), unit);
        return;
    case PRONY_SCALE_TIME:
        snprintf(text, size, "%s", prn_number_time(number, fabs(value) < 9e18 ? (int64_t)llround(value) : 0, 4, " "));
        return;
    case PRONY_SCALE_PERCENT:
        snprintf(text, size, "%s %%", prn_number_fixed(number, value * 100, 2));
        return;
    default:
        metric_text_plain(text, size, value, unit);
    }
}

prony_metric_value prn_metric_value_of(const prony_metric *metric, double value)
{
    prony_metric_value out = {.metric = metric, .known = isfinite(value), .value = isfinite(value) ? value : 0};
    prony_metric_format(metric, value, out.text, sizeof out.text);
    return out;
}

const char *prn_metric_unit(const prony_metric *metric)
{
    return metric->scale == PRONY_SCALE_TIME      ? "ns"
           : metric->scale == PRONY_SCALE_PERCENT ? "fraction"
           : metric->scale == PRONY_SCALE_BINARY  ? "B"
                                                  : metric->unit;
}

const char *prn_direction_name(prony_direction direction)
{
    return direction == PRONY_SMALLER_IS_BETTER ? "smaller" : direction == PRONY_LARGER_IS_BETTER ? "larger" : "none";
}

/* ---- from text ---- */

typedef struct prefix {
    const char *text;
    double factor;
} prefix;

static const prefix si[] = {{"", 1},    {"k", 1e3},  {"K", 1e3},  {"M", 1e6},
                            {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {NULL, 0}};
static const prefix sizes[] = {{"B", 1},        {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},
                               {"GB", 1e9},     {"TB", 1e12},    {"KiB", 0x1p10}, {"MiB", 0x1p20},
                               {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"K", 0x1p10},   {"k", 0x1p10},
                               {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40},   {NULL, 0}};
static const prefix times[] = {{"ns", 1},  {"us", 1e3},   {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3}, {"ms", 1e6},
                               {"s", 1e9}, {"min", 6e10}, {"m", 6e10},        {"h", 3.6e12},      {NULL, 0}};
static const prefix percent[] = {{"%", 0.01}, {NULL, 0}};

/* The factor of "unit", which is a prefix of `table` with `suffix` behind; 0: another unit. */
static double factor_of(const prefix *table, const char *suffix, const char *unit)
{
    for (; table->text; table++) {
        size_t length = strlen(table->text);
        if (strncmp(unit, table->text, length) == 0 && strcmp(unit + length, suffix) == 0) return table->factor;
    }
    return 0;
}

static const char *expected(const prony_metric *metric)
{
    switch (metric->scale) {
    case PRONY_SCALE_BINARY:
        return *metric->unit ? metric->unit : "B, kB, MB, GB, KiB, MiB or GiB";
    case PRONY_SCALE_TIME:
        return "ns, us, ms or s";
    case PRONY_SCALE_PERCENT:
        return "%";
    default:
        return *metric->unit ? metric->unit : "no unit";
    }
}

static double unit_factor(const prony_metric *metric, const char *unit)
{
    switch (metric->scale) {
    case PRONY_SCALE_BINARY:
        return factor_of(sizes, metric->unit, unit);
    case PRONY_SCALE_TIME:
        return factor_of(times, "", unit);
    case PRONY_SCALE_PERCENT:
        return factor_of(percent, "", unit);
    case PRONY_SCALE_SI: /* the prefix alone suffices: 1G of MACs */
        return *unit && !unit[1] && factor_of(si, "", unit) > 0 ? factor_of(si, "", unit)
                                                                : factor_of(si, metric->unit, unit);
    default:
        if (strcmp(unit, "%") == 0 && !*metric->unit) return 0.01;
        return strcmp(unit, metric->unit) == 0 ? 1 : 0;
    }
}

prony_status prony_metric_parse(const prony_metric *metric, const char *text, double *out, prony_error *error)
{
    double value;
    if (!metric || !text || !out)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_metric_parse: an argument is NULL");
    const char *unit = prn_number_read(text, &value);
    if (!unit) return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: \"%.60s\" is not a number", metric->key, text);
    while (*unit == ' ') unit++;
    double factor = unit_factor(metric, unit);
    if (factor == 0 && !*unit)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: \"%.60s\" has no unit; wanted %s", metric->key, text,
                        expected(metric));
    if (factor == 0)
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "%s: unknown unit in \"%.60s\"; wanted %s", metric->key, text,
                        expected(metric));
    *out = value * factor;
    return PRONY_OK;
}
