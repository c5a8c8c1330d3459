#include "tests/support/nested_forms.h"

#include "base/memory/alloc.h"
#include "profiler/report/report.h"
#include "tests/support/text_sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

char *nested_write(const prony_report *report, prony_format format, const prony_write_options *options)
{
    static const prony_write_options defaults = PRONY_WRITE_OPTIONS_INIT;
    sink s = {0};
    prony_error error = {0};
    if (prony_report_write(report, format, options ? options : &defaults, sink_write, &s, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return s.text;
}

void nested_expect(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' is not in:\n%s", part, text);
}

void nested_expect_same(const char *a, const char *b)
{
    size_t at = 0;
    while (a[at] && a[at] == b[at]) at++;
    if (a[at] != b[at])
        fail_msg("'%.60s' and '%.60s' at %zu", a + (at > 30 ? at - 30 : 0), b + (at > 30 ? at - 30 : 0), at);
}

void nested_round_trip(const prony_report *report)
{
    prony_report *again = NULL;
    prony_error error = {0};
    prony_write_options with_memory = PRONY_WRITE_OPTIONS_INIT;
    with_memory.memory = true;
    char *first = nested_write(report, PRONY_FORMAT_JSON, &with_memory);
    if (prony_report_load_memory(&again, "r.json", first, strlen(first), &error) != PRONY_OK)
        fail_msg("%s", error.message);
    char *second = nested_write(again, PRONY_FORMAT_JSON, &with_memory);
    nested_expect_same(first, second);
    /* Other formats of the read report equal those of the written one. */
    for (prony_format format = PRONY_FORMAT_TEXT; format <= PRONY_FORMAT_DOT; format++) {
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        if (format == PRONY_FORMAT_TRACE && (!report->operator_count || !report->operators[0].traced)) continue;
        options.all = true;
        options.levels = format == PRONY_FORMAT_CSV ? PRONY_LEVEL_NESTED : PRONY_LEVEL_LAYER | PRONY_LEVEL_OPERATOR;
        char *a = nested_write(report, format, &options), *b = nested_write(again, format, &options);
        nested_expect_same(a, b);
        prn_free(a);
        prn_free(b);
    }
    prn_free(first);
    prn_free(second);
    prony_report_release(again);
}
