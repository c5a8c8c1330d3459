/* Documents as tables: hostile names stay text in every format, numbers in CSV are exact, wrong documents and formats
 * are refused by name, and a failed allocation or write is an error. */
#include "failure_trace.h"
#include "prony_judge.h"
#include "tests/support/text_sink.h"

#include <stdio.h>

static const char comparison[] =
    "{\"schema\": \"prony.comparison/1\", \"a\": {\"name\": \"a|b<i>.json\"}, \"b\": {\"name\": \"b\"}, \"notes\": "
    "[\"note *one*\"], \"metrics\": ["
    "{\"key\": \"macs\", \"unit\": \"\", \"a\": 1000, \"b\": 1000, \"ratio\": 1, \"ratio_ci95\": null, \"p\": null, "
    "\"verdict\": \"same\", \"decides\": false},"
    "{\"key\": \"latency\", \"unit\": \"ns\", \"a\": 1500000, \"b\": 2500000, \"ratio\": 1.6666666666666667, "
    "\"ratio_ci95\": [1.5, 1.75], \"p\": 0.001, \"verdict\": \"worse\", \"decides\": true}], \"layers\": ["
    "{\"name\": \"=cmd|x\\n</script>`\", \"op\": \"Conv\", \"a_ns\": 10, \"b_ns\": 20, \"difference_ns\": 10},"
    "{\"name\": \"second\", \"op\": \"Relu\", \"a_ns\": 10, \"b_ns\": 110, \"difference_ns\": 100}]}";

static const char check[] =
    "{\"schema\": \"prony.check/1\", \"target\": \"a<b\\\"\", \"thresholds\": ["
    "{\"metric\": \"latency\", \"bound\": \"at most\", \"limit\": 1, \"limit_text\": \"1 ns\", \"value\": 8000, "
    "\"value_text\": \"8 us\", \"margin\": -7999, \"outcome\": \"missed\"},"
    "{\"metric\": \"flops\", \"bound\": \"at most\", \"limit\": 2, \"limit_text\": \"2\", \"value\": 1, "
    "\"value_text\": "
    "\"1\", \"margin\": 0.5, \"outcome\": \"met\"},"
    "{\"metric\": \"memory\", \"bound\": \"at most\", \"limit\": 2, \"limit_text\": \"2\", \"value\": null, "
    "\"value_text\": \"\", \"margin\": null, \"outcome\": \"unknown\"},"
    "{\"metric\": \"rate\", \"bound\": \"at least\", \"limit\": 2, \"limit_text\": \"2\", \"value\": 2, "
    "\"value_text\": "
    "\"2\", \"margin\": 0, \"outcome\": \"open\"}]}";

static const char *convert(sink *s, const char *json, prony_format format, const char *table)
{
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.chart = table;
    s->size = 0;
    if (prony_document_write("test", json, strlen(json), format, &options, sink_write, s, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return s->text;
}

static void expect(const char *text, const char *wanted)
{
    if (!strstr(text, wanted)) fail_msg("'%s' is missing in\n%s", wanted, text);
}

static void test_markdown(void **state)
{
    (void)state;
    sink s = {0};
    const char *text = convert(&s, comparison, PRONY_FORMAT_MARKDOWN, NULL);
    expect(text, "## Comparison\n");
    expect(text, "Deciding metrics: 1 worse, 0 better, 0 undecided. A is a\\|b&lt;i>.json, B is b.");
    expect(text, "- note \\*one\\*\n");
    expect(text, "| latency | 1.500 ms | 2.500 ms | 1.667 | 1.500 to 1.750 | 0.001 | worse | yes |\n| macs |");
    expect(text, "| second | Relu | 10 ns | 110 ns | 100 ns |\n| =cmd\\|x?&lt;/script>\\` | Conv |");
    prn_free(s.text);
}

static void test_csv(void **state)
{
    (void)state;
    sink s = {0};
    const char *text = convert(&s, comparison, PRONY_FORMAT_CSV, NULL);
    assert_string_equal(text, "key,a,b,ratio,ratio_ci95_low,ratio_ci95_high,p,verdict,decides\r\n"
                              "latency,1500000,2500000,1.6666666666666667,1.5,1.75,0.001,worse,yes\r\n"
                              "macs,1000,1000,1,,,,same,no\r\n");
    text = convert(&s, comparison, PRONY_FORMAT_CSV, "layers");
    expect(text, "\r\n\"'=cmd|x?</script>`\",Conv,10,20,10,");
    prn_free(s.text);
}

static void test_html(void **state)
{
    (void)state;
    sink s = {0};
    const char *text = convert(&s, comparison, PRONY_FORMAT_HTML, NULL);
    expect(text, "<td>=cmd|x\n&lt;/script&gt;`</td>");
    expect(text, "\\u003c/script>`");
    const char *first = strstr(text, "</script>");
    assert_non_null(first);
    assert_null(strstr(first + 1, "</script>"));
    assert_null(strstr(text, "http://"));
    prn_free(s.text);
}

static void test_junit(void **state)
{
    (void)state;
    sink s = {0};
    const char *text = convert(&s, check, PRONY_FORMAT_JUNIT, NULL);
    expect(text, "<testsuite name=\"prony check\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\">");
    expect(text, "<testcase classname=\"a&lt;b&quot;\" name=\"latency at most 1 ns\">\n    <failure message=\"latency "
                 "is 8 us\"/>");
    expect(text, "name=\"flops at most 2\"/>\n");
    expect(text, "<error message=\"memory is unknown\"/>");
    expect(text, "<skipped message=\"rate is 2: undecided\"/>");
    text = convert(&s, check, PRONY_FORMAT_MARKDOWN, NULL);
    expect(text, "| latency | 8 us | at most | 1 ns | missed | &lt; -999 % |");
    prn_free(s.text);
}

static void refuse(const char *json, prony_format format, const char *table, prony_status status, const char *wanted)
{
    sink s = {0};
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.chart = table;
    assert_int_equal(prony_document_write("test", json, strlen(json), format, &options, sink_write, &s, &error),
                     status);
    expect(error.message, wanted);
    prn_free(s.text);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("{\"schema\": \"prony.machine/1\"}", PRONY_FORMAT_CSV, NULL, PRONY_UNSUPPORTED, "prony.machine/1");
    refuse("{}", PRONY_FORMAT_CSV, NULL, PRONY_IO_ERROR, "schema");
    refuse("{", PRONY_FORMAT_CSV, NULL, PRONY_IO_ERROR, "test");
    refuse(comparison, PRONY_FORMAT_JUNIT, NULL, PRONY_INVALID_ARGUMENT, "JUnit");
    refuse(comparison, PRONY_FORMAT_CSV, "nothing", PRONY_INVALID_ARGUMENT, "'nothing'");
    refuse(comparison, PRONY_FORMAT_DOT, NULL, PRONY_INVALID_ARGUMENT, "CSV, Markdown, HTML");
    refuse("{\"schema\": \"prony.check/1\", \"thresholds\": [{\"metric\": 5}]}", PRONY_FORMAT_CSV, NULL, PRONY_IO_ERROR,
           "metric");
    assert_string_equal(prony_document_table_name("prony.comparison/1", 1), "layers");
    assert_null(prony_document_table_name("prony.comparison/1", 99));
    assert_null(prony_document_table_name("prony.machine/1", 0));
}

static void test_failed_allocations(void **state)
{
    (void)state;
    static const prony_format formats[] = {PRONY_FORMAT_CSV, PRONY_FORMAT_MARKDOWN, PRONY_FORMAT_HTML};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        SCENARIO(f);
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            sink s = {0};
            prony_error error = {0};
            assert_true(PRN_GROW(s.text, s.capacity, 1 << 17));
            prn_alloc_fail_at(n);
            const prony_status status =
                prony_document_write("test", comparison, strlen(comparison), formats[f], NULL, sink_write, &s, &error);
            failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
            prn_free(s.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown), cmocka_unit_test(test_csv),      cmocka_unit_test(test_html),
        cmocka_unit_test(test_junit),    cmocka_unit_test(test_refusals), cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
