/* prony_recommend: what the figures say about what to change.
 *
 * Two kinds of reasons, and no others. Measured (advice_measured.c): a variant's report lies beside, and comparing it
 * gives a significant gain. Computed (advice_computed.c): times, counts and bytes of this report bound from above what
 * a change can give. What falls below a topic's threshold is not recommended; then a row says what was found. Rows own
 * their strings.
 */
#include "profiler/judge/advice.h"
#include "profiler/forms/number_text.h"
#include "base/row_block.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROWS_MOST 16

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

static prony_status advise_all(prn_adviser *a)
{
    PRN_TRY(prn_advise_batch(a));
    PRN_TRY(prn_advise_threads(a));
    PRN_TRY(prn_advise_fusion(a));
    PRN_TRY(prn_advise_precision(a));
    prn_advise_overhead(a);
    prn_advise_memory(a);
    return a->failed ? prn_no_memory(a->error) : PRONY_OK;
}

/* Those that apply first, otherwise in order. */
static void put_first(prony_advice *rows, size_t count)
{
    size_t placed = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].applies) continue;
        prony_advice row = rows[i];
        memmove(&rows[placed + 1], &rows[placed], (i - placed) * sizeof *rows);
        rows[placed++] = row;
    }
}

prony_status prony_recommend(prony_advice **rows, size_t *count, const prony_report *report,
                             const prony_report *const *variants, size_t variant_count, prony_error *error)
{
    if (!rows || !count || !report || (variant_count && !variants))
        return prn_fail(error, PRONY_INVALID_ARGUMENT, "prony_recommend: an argument is NULL");
    prn_adviser a = {.report = report, .variants = variants, .variant_count = variant_count, .error = error};
    a.rows = prn_rows_create(ROWS_MOST, sizeof *a.rows);
    if (!a.rows) return prn_no_memory(error);
    prony_status status = advise_all(&a);
    if (status != PRONY_OK) {
        prony_rows_release(a.rows);
        return status;
    }
    put_first(a.rows, a.count);
    *rows = a.rows;
    *count = a.count;
    return PRONY_OK;
}
