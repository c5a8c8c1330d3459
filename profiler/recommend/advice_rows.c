/* Rows of advice, for measured and computed reasons. */
#include "profiler/recommend/advice.h"

#include "base/memory/row_block.h"
#include "profiler/text/number_text.h"

#include <stdarg.h>
#include <stdio.h>

static const char *format_text(prn_adviser *a, const char *format, va_list args)
{
    char text[1200];
    vsnprintf(text, sizeof text, format, args);
    const char *copy = prn_rows_text(a->rows, text);
    if (!copy) a->failed = true;
    return copy;
}

void prn_advise_nothing(prn_adviser *a, const char *topic, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    a->rows[a->count++] = (prony_advice){.topic = topic, .reason = format_text(a, format, args)};
    va_end(args);
}

/* The action; reason and gain_text are left to the caller. */
prony_advice *prn_advise(prn_adviser *a, const char *topic, const char *metric, bool measured, double gain,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    prony_advice *row = &a->rows[a->count++];
    *row = (prony_advice){.topic = topic,
                          .applies = true,
                          .action = format_text(a, format, args),
                          .reason = "",
                          .metric = metric,
                          .measured = measured,
                          .gain = gain};
    va_end(args);
    return row;
}

void prn_advise_because(prn_adviser *a, prony_advice *row, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    row->reason = format_text(a, format, args);
    va_end(args);
}

/* "at most 12.3 % of the latency" */
void prn_advise_gain(prony_advice *row, const char *before, const char *behind)
{
    prn_number_text number;
    snprintf(row->gain_text, sizeof row->gain_text, "%s%s %%%s", before, prn_number_percent(number, row->gain), behind);
}
