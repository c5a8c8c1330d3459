/* Histories in and out: documents that are read, the texts within 80 columns, the dashboard with many runs, one and
 * none, one search for each history_series, refused memory. */
#include "failure_trace.h"
#include "tests/support/history_runs.h"
#include "tests/support/text_sink.h"

#include "profiler/history/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- writers ---- */

static void lines_fit(const char *text, int columns)
{
    for (const char *line = text; *line;) {
        const size_t bytes = strcspn(line, "\n");
        int width = 0;
        for (size_t i = 0; i < bytes; i++) width += (line[i] & 0xc0) != 0x80;
        if (width > columns) fail_msg("%d columns: %.*s", width, (int)bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
    assert_null(strchr(text, '\x1b'));
}

static void test_texts_fit_80_columns(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(60, history_late_step, 6);
    for (size_t i = 60; i < 64; i++) {
        prony_history_run run = history_plain_run(i);
        run.model = "a_model_with_a_very_long_name_of_a_transformer_decoder_block_v2_opset17_simplified.onnx";
        run.label = "a label that is longer than a column of a table has room for";
        run.commit = "0123456789abcdef0123456789abcdef01234567";
        history_add_times(h, &run, 10, 5);
    }
    for (int view = PRONY_HISTORY_LIST; view <= PRONY_HISTORY_CHECK; view++) {
        SCENARIO(view);
        char *text = history_written(h, (prony_history_view)view, &o, PRONY_FORMAT_TEXT);
        lines_fit(text, 80);
        prn_free(text);
    }
    prony_history_release(h);
}

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) count++;
    return count;
}

static void test_dashboard(void **state)
{
    (void)state;
    prony_history *h = history_new();
    char *page = history_written(h, PRONY_HISTORY_LIST, NULL, PRONY_FORMAT_HTML);
    assert_non_null(strstr(page, "No runs yet"));
    assert_int_equal(occurrences(page, "<svg"), 0);
    prn_free(page);
    prony_history_run run = history_plain_run(0);
    run.model = "<script>alert(1)</script>";
    history_add_times(h, &run, 10, 5);
    page = history_written(h, PRONY_HISTORY_LIST, NULL, PRONY_FORMAT_HTML);
    assert_null(strstr(page, "<script"));
    assert_int_equal(occurrences(page, "<svg"), 2); /* latency and layers */
    assert_null(strstr(page, "nan"));
    prn_free(page);
    prony_history_release(h);

    h = history_series(60, history_late_step, 7);
    page = history_written(h, PRONY_HISTORY_LIST, NULL, PRONY_FORMAT_HTML);
    assert_non_null(strstr(page, "1 change of level"));
    assert_non_null(strstr(page, "conv2: "));
    assert_int_equal(occurrences(page, "http:"), occurrences(page, "xmlns=")); /* SVG's name: nothing is loaded */
    prn_free(page);
    sink s = {0};
    assert_int_equal(prony_history_write(h, PRONY_HISTORY_CHECK, NULL, PRONY_FORMAT_HTML, NULL, sink_write, &s, NULL),
                     PRONY_INVALID_ARGUMENT);
    prony_history_release(h);
}

/* Joined groups: each machine has its own runs, and nothing is called by the newest run's configuration alone. */
static void test_dashboard_of_joined_runs(void **state)
{
    (void)state;
    prony_history_options o = PRONY_HISTORY_OPTIONS_INIT;
    prony_history *h = history_new();
    for (size_t i = 0; i < 10; i++) {
        prony_history_run run = history_plain_run(i);
        if (i % 5 < 3) run.fingerprint = "beef"; /* six runs of ten */
        if (i == 0) run.load = PRONY_LOAD_BUSY;
        if (i % 2) run.configuration = "bench, 4 threads, batch 1, fp32";
        history_add_times(h, &run, 10, 5);
    }
    o.across = PRONY_ACROSS_MACHINE | PRONY_ACROSS_CONFIGURATION;
    char *page = history_written(h, PRONY_HISTORY_LIST, &o, PRONY_FORMAT_HTML);
    assert_non_null(strstr(page, "10 runs in 1 group of one model file. "));
    assert_non_null(strstr(page, "several configurations; several machines. 10 runs"));
    assert_non_null(strstr(page, "<td class=\"keep\">beef</td><td class=\"n\">1</td><td class=\"n\">6</td><td "
                                 "class=\"n\">1</td>"));
    assert_non_null(strstr(page, "<td class=\"keep\">f00d</td><td class=\"n\">1</td><td class=\"n\">4</td><td "
                                 "class=\"n\">0</td>"));
    prn_free(page);
    o.across = 0;
    page = history_written(h, PRONY_HISTORY_LIST, &o, PRONY_FORMAT_HTML);
    assert_non_null(strstr(page, "10 runs in 4 groups of one model file, machine, configuration. "));
    assert_null(strstr(page, "several"));
    prn_free(page);
    prony_history_release(h);
}

/* Text, JSON and verdict of a check take one search for each metric; a further run takes a new one. */
static void test_one_search_for_each_series(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(30, history_late_step, 9);
    prn_free(history_written(h, PRONY_HISTORY_CHECK, &o, PRONY_FORMAT_TEXT));
    prn_free(history_written(h, PRONY_HISTORY_CHECK, &o, PRONY_FORMAT_JSON));
    history_verdict_of(h, &o);
    prn_free(history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_JSON));
    assert_int_equal(prn_history_searched(h), 1);
    prony_history_run next = history_plain_run(31);
    history_add_times(h, &next, 10, 5);
    history_verdict_of(h, &o);
    assert_int_equal(prn_history_searched(h), 2);
    prony_error error = {0};
    prony_history_verdict verdict;
    o.last = 2001; /* quadratic */
    assert_int_equal(prony_history_check(&verdict, h, &o, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "2001"));
    prony_history_release(h);
}

static bool passes(const prony_history *h, const prony_history_options *o, const char *verdict)
{
    char *text = history_written(h, PRONY_HISTORY_CHECK, o, PRONY_FORMAT_JSON);
    const bool passed = strstr(text, "\"passed\": true") != NULL;
    if (verdict) assert_non_null(strstr(text, verdict));
    prn_free(text);
    return passed;
}

static void test_words_of_the_verdict(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(30, NULL, 1);
    assert_true(passes(h, &o, "\"verdict\": \"passed\""));
    prony_history_run next = history_plain_run(31);
    history_add_times(h, &next, 12, 5);
    assert_false(passes(h, &o, "\"verdict\": \"regressed\""));
    next = history_plain_run(32);
    next.load = PRONY_LOAD_BUSY;
    history_add_times(h, &next, 12, 5);
    assert_true(passes(h, &o, "\"verdict\": \"undecided\""));
    char *page = history_written(h, PRONY_HISTORY_LIST, &o, PRONY_FORMAT_HTML);
    assert_non_null(strstr(page, "undecided: busy machine"));
    prn_free(page);
    o.strict = true;
    assert_false(passes(h, &o, "\"verdict\": \"undecided\""));
    o.metrics = "top1_accuracy";
    assert_false(passes(h, &o, NULL)); /* nothing was checked */
    prony_history_release(h);
}

static void test_documents_that_are_no_runs(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"schema\": \"prony.check/1\"}",
        "{\"schema\": \"prony.report/1\"}",
        "{\"schema\": \"prony.matrix/1\", \"reports\": []}",
        "{\"schema\": \"prony.matrix/1\", \"reports\": [1, {}]}",
        "{\"schema\": \"prony.load/1\", \"report\": {}, \"result\": {}, \"config\": {}}",
        "{\"schema\": \"prony.study/1\", \"manifest\": {}, \"plan\": {\"configurations\": []}, \"results\": [{}]}"};
    prony_history *h = history_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        prony_error error = {0};
        SCENARIO((int)i);
        assert_int_not_equal(prony_history_add_document(h, "file.json", texts[i], strlen(texts[i]), &error), PRONY_OK);
        assert_non_null(strstr(error.message, "file.json"));
        assert_int_equal(prony_history_count(h), 0);
    }
    prony_history_release(h);
}

static void test_dates_have_zones(void **state)
{
    (void)state;
    static const struct {
        const char *date;
        int64_t seconds;
    } dates[] = {{"2026-11-28T20:30:00Z", 1795897800},      {"2026-11-28T20:30:00", 1795897800},
                 {"2026-11-28T22:30:00+02:00", 1795897800}, {"2026-11-28 15:00:00.25-0530", 1795897800},
                 {"2026-11-29T00:30:00.5+04", 1795897800},  {"1999-12-31T23:59:59+00:00", 946684799},
                 {"2026-11-28T20:30:00+99:00", 1795897800}};
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        char text[300];
        prony_history *h = history_new();
        prony_error error = {0};
        SCENARIO((int)i);
        snprintf(text, sizeof text,
                 "{\"schema\": \"prony.load/1\", \"created\": \"%s\", \"report\": {}, \"config\": {}, "
                 "\"result\": {\"latency_ns\": {\"p50\": 1000000}}}",
                 dates[i].date);
        if (prony_history_add_document(h, "load.json", text, strlen(text), &error) != PRONY_OK)
            fail_msg("%s", error.message);
        assert_int_equal(prony_history_at(h, 0)->time_s, dates[i].seconds);
        prony_history_release(h);
    }
}

/* A program's own run has model and machine from a report. */
static void test_a_run_that_a_report_describes(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_report *report = NULL;
    prony_history *h = history_new();
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/models/digits.onnx", NULL, &error), PRONY_OK);
    assert_int_equal(prony_inspect(&report, model, NULL, &error), PRONY_OK);
    const prony_history_value value = {"latency", 1e6, {NAN, NAN}};
    prony_history_run run = history_plain_run(3);
    run.values = &value;
    run.value_count = 1;
    assert_int_equal(prony_history_add_described(h, report, &run, &error), PRONY_OK);
    assert_int_equal(prony_history_count(h), 1);
    const prony_history_run *got = prony_history_at(h, 0);
    assert_string_equal(got->model, "digits.onnx");
    assert_int_equal(strlen(got->sha256), 64);
    assert_string_not_equal(got->sha256, run.sha256);
    assert_int_equal(strlen(got->fingerprint), 12);
    assert_non_null(strstr(got->machine, "processors"));
    assert_non_null(strstr(got->prony, prony_version()));
    assert_string_equal(got->configuration, run.configuration);
    assert_int_equal(got->time_s, run.time_s);
    assert_int_equal(got->load, PRONY_LOAD_QUIET);
    assert_true(got->value_count == 1 && got->values[0].value == 1e6);
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        const prony_status status = prony_history_add_described(h, report, &run, NULL);
        const bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) break;
        if (status != PRONY_OK) assert_int_equal(prony_history_count(h), 1);
    }
    assert_int_equal(prony_history_add_described(h, NULL, &run, &error), PRONY_INVALID_ARGUMENT);
    prony_history_release(h);
    prony_report_release(report);
    prony_model_release(model);
}

/* ---- memory ---- */

static void test_refused_memory(void **state)
{
    (void)state;
    prony_history *h = history_series(14, NULL, 8);
    static const struct {
        prony_history_view view;
        prony_format format;
    } all[] = {{PRONY_HISTORY_LIST, PRONY_FORMAT_TEXT},  {PRONY_HISTORY_LIST, PRONY_FORMAT_JSON},
               {PRONY_HISTORY_LIST, PRONY_FORMAT_HTML},  {PRONY_HISTORY_TREND, PRONY_FORMAT_TEXT},
               {PRONY_HISTORY_TREND, PRONY_FORMAT_JSON}, {PRONY_HISTORY_CHECK, PRONY_FORMAT_TEXT},
               {PRONY_HISTORY_CHECK, PRONY_FORMAT_JSON}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (uint64_t n = 1;; n++) {
            sink s = {0};
            assert_true(PRN_GROW(s.text, s.capacity, 1 << 20)); /* so that only the library's allocations fail */
            prn_alloc_fail_at(n);
            const prony_status status =
                prony_history_write(h, all[i].view, NULL, all[i].format, NULL, sink_write, &s, NULL);
            const bool failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            prn_free(s.text);
            if (status != PRONY_OK) assert_int_equal(status, PRONY_OUT_OF_MEMORY);
            if (!failed) break;
        }
    prony_history_release(h);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_fit_80_columns),     cmocka_unit_test(test_dashboard),
        cmocka_unit_test(test_dashboard_of_joined_runs), cmocka_unit_test(test_one_search_for_each_series),
        cmocka_unit_test(test_words_of_the_verdict),     cmocka_unit_test(test_documents_that_are_no_runs),
        cmocka_unit_test(test_dates_have_zones),         cmocka_unit_test(test_a_run_that_a_report_describes),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
