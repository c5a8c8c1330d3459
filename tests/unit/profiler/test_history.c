/* Judgement of histories: groups are not mixed, busy runs do not count, verdicts on the newest run, changes with
 * commits and layers. */
#include "failure_trace.h"
#include "tests/support/history_runs.h"
#include "tests/support/text_sink.h"

#include "profiler/history/history.h"
#include "profiler/history/history_configuration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double steady_drift(size_t run)
{
    return 0.12 * (double)run / 60;
}

/* ---- groups ---- */

static void test_groups_are_not_mixed(void **state)
{
    (void)state;
    prony_history *h = history_new();
    for (size_t i = 0; i < 40; i++) {
        prony_history_run run = history_plain_run(i);
        if (i % 4 == 1) run.fingerprint = "beef";
        if (i % 4 == 2) run.sha256 = "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        if (i % 4 == 3) run.configuration = "bench, 4 threads, batch 1, fp32";
        history_add_times(h, &run, i % 4 == 0 ? 10 : 20 + (double)(i % 4), 5);
    }
    char *text = history_written(h, PRONY_HISTORY_LIST, NULL, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "40 runs in 4 groups"));
    prn_free(text);
    prony_history_options o = history_latency_alone();
    text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_JSON);
    assert_null(strstr(text, "\"step\"")); /* mixed, the levels would make steps */
    prn_free(text);
    o.across = PRONY_ACROSS_MODEL_FILE | PRONY_ACROSS_MACHINE | PRONY_ACROSS_CONFIGURATION;
    text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "joined runs of several model files"));
    assert_non_null(strstr(text, "joined runs of several machines"));
    assert_non_null(strstr(text, "joined runs of several configurations"));
    prn_free(text);
    o.model = "ffff45"; /* the beginning of a hash */
    text = history_written(h, PRONY_HISTORY_LIST, &o, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "10 runs in 1 group"));
    prn_free(text);
    o.metrics = "latency,nonsense";
    sink s = {0};
    assert_int_equal(prony_history_write(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT, NULL, sink_write, &s, NULL),
                     PRONY_INVALID_ARGUMENT);
    prn_free(s.text);
    prony_history_release(h);
}

static const char *report_text(prn_json_reader *r, const prn_json_value *root)
{
    return prn_history_report_configuration(r, root, true);
}

static const char *study_text(prn_json_reader *r, const prn_json_value *root)
{
    size_t count;
    const prn_json_value *plan = prn_json_get_object(r, root, "plan", true);
    const prn_json_value *list = prn_json_get_array(r, plan, "configurations", true, &count);
    return prn_history_study_configuration(r, root, prn_json_first(list));
}

/* Runs of equal texts are one group, so each choice that moves a value stands in the text. */
static void test_configurations(void **state)
{
    (void)state;
    static const struct {
        const char *(*text)(prn_json_reader *r, const prn_json_value *root);
        const char *json, *wanted;
    } all[] = {
        {report_text,
         "{\"config\": {\"intra_op_threads\": 2, \"batch\": 4, \"dims\": {\"batch\": 4, \"length\": 128}}}",
         "profile, 2 threads, batch 4, fp32, length=128"},
        {report_text,
         "{\"config\": {\"intra_op_threads\": 1, \"inter_op_threads\": 3, \"precision\": \"int8\", \"affinity\": "
         "\"0,2\", "
         "\"rewrites\": false, \"reuse\": false, \"background_threads\": 2}, \"tuning\": {}}",
         "profile, 1 x 3 threads, int8, cores 0,2, no rewrites, no reuse, beside 2 busy threads, tuned"},
        {report_text, "{\"config\": {}, \"evaluation\": {\"metric\": \"mse\", \"value\": 0.5, \"samples\": 100}}",
         "profile of labelled data, mse of 100 samples, 1 thread, fp32"},
        {report_text,
         "{\"config\": {}, \"generation\": {\"new_tokens\": 32, \"prompt_tokens\": 16, \"cache\": \"shared\"}}",
         "generate 32 after 16, profile, cache shared, 1 thread, fp32"},
        {report_text,
         "{\"config\": {}, \"ranks\": [{\"node\": \"a\"}, {\"node\": \"b\"}, {\"node\": \"a\"}], \"pipeline\": "
         "{\"stages\": 3, \"micro_batches\": 8}}",
         "profile, 1 thread, fp32, 3 ranks on 2 nodes, 3 stages, 8 micro-batches"},
        {prn_history_load_configuration,
         "{\"scenario\": \"server\", \"config\": {\"sessions\": 2, \"intra_op_threads\": 1, \"max_batch\": 8, "
         "\"batch_window_ns\": 2000000, \"samples_per_request\": 3, \"requests_per_query\": 4, \"rate\": 50, "
         "\"latency_bound_ns\": 10000000, \"percentile\": 0.9, \"background_threads\": 1, \"affinity\": \"1\"}, "
         "\"ranks\": [{\"node\": \"a\"}], \"report\": {\"config\": {\"intra_op_threads\": 2, \"batch\": 3}}}",
         "load server, 2 sessions, batches to 8, window 2 ms, 3 samples a request, 4 requests a query, 50/s, bound 10 "
         "ms, p90, 1 thread, batch 3, fp32, cores 1, beside 1 busy threads, 1 rank on 1 node"},
        {prn_history_load_configuration,
         "{\"scenario\": \"single\", \"config\": {\"batch_window_ns\": 2000000, \"percentile\": 0.9}, \"report\": {}}",
         "load single, 1 session, batches to 1, 1 thread, fp32"},
        {study_text,
         "{\"manifest\": {\"config\": {\"affinity\": null}}, \"nodes\": [{}, {}], \"plan\": {\"arguments\": "
         "[\"--affinity\", \"0-3\"], \"configurations\": [{\"intra_op_threads\": 4, \"precision\": \"bf16\"}]}}",
         "scale, 4 threads, bf16, cores 0-3, 2 nodes"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        prn_bump pool = {0};
        prony_error error = {0};
        prn_json_value *root = NULL;
        prn_json_reader reader = {.pool = &pool, .file = "file.json", .error = &error};
        SCENARIO((int)i);
        assert_int_equal(prn_json_document_parse(&root, "file.json", all[i].json, strlen(all[i].json), &error),
                         PRONY_OK);
        const char *text = all[i].text(&reader, root);
        assert_int_equal(reader.status, PRONY_OK);
        assert_string_equal(text, all[i].wanted);
        prn_json_document_release(root);
        prn_bump_release(&pool);
    }
}

/* Contents alone make a run, not the commit and label that a command adds. */
static void test_digests(void **state)
{
    (void)state;
    const prony_history_value before = {"latency", 1e6, {NAN, NAN}}, after = {"latency", 1.1e6, {NAN, NAN}};
    prony_history_run run = history_plain_run(1), same = run, other = run;
    char first[65], second[65];
    run.values = same.values = &before;
    other.values = &after;
    run.value_count = same.value_count = other.value_count = 1;
    same.commit = "cafe";
    same.label = "nightly";
    prony_history_digest(&run, first);
    assert_int_equal(strlen(first), 64);
    prony_history_digest(&same, second);
    assert_string_equal(first, second);
    prony_history_digest(&other, second);
    assert_string_not_equal(first, second);
}

/* ---- verdicts ---- */

static void test_verdicts(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(30, NULL, 1);
    assert_int_equal(history_verdict_of(h, &o).checked, 1);
    assert_int_equal(history_verdict_of(h, &o).regressions, 0);
    prony_history_run next = history_plain_run(31);
    history_add_times(h, &next, 10.8, 5); /* the newest run alone */
    assert_int_equal(history_verdict_of(h, &o).regressions, 1);
    next = history_plain_run(32);
    next.load = PRONY_LOAD_BUSY;
    history_add_times(h, &next, 15, 5);
    assert_int_equal(history_verdict_of(h, &o).regressions, 0); /* busy runs never count */
    assert_int_equal(history_verdict_of(h, &o).undecided, 1);
    o.ignore_load = true;
    assert_int_equal(history_verdict_of(h, &o).regressions, 1);
    o.ignore_load = false;
    next = history_plain_run(33);
    history_add_times(h, &next, 8, 5);
    assert_int_equal(history_verdict_of(h, &o).regressions + history_verdict_of(h, &o).undecided, 0); /* better */
    o.metrics = NULL;
    next = history_plain_run(34);
    history_add_times(h, &next, 11, 5);
    assert_int_equal(history_verdict_of(h, &o).regressions, 2); /* throughput as well */
    prony_history_release(h);

    o = history_latency_alone();
    h = history_series(5, NULL, 1);
    assert_int_equal(history_verdict_of(h, &o).undecided, 1); /* too few runs */
    prony_history_release(h);
}

/* A newest run like all others is a regression by chance alone: below 3 % of the histories. */
static void test_quiet_histories_pass(void **state)
{
    (void)state;
    enum { HISTORIES = 300 };
    prony_history_options o = history_latency_alone();
    size_t regressions = 0;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        prony_history *h = history_series(40, NULL, 1000 * seed);
        regressions += history_verdict_of(h, &o).regressions;
        prony_history_release(h);
    }
    print_message("%zu of %d\n", regressions, (int)HISTORIES);
    assert_true(100 * regressions < 3 * HISTORIES);
}

/* A change becomes the level with five runs before the newest one; until then the old level is the measure. */
static void test_young_changes_stay_regressions(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    for (size_t after = 1; after <= 8; after++) {
        prony_history *h = history_series(40 + after, history_late_step, 2);
        SCENARIO((int)after);
        assert_int_equal(history_verdict_of(h, &o).regressions, after < 6);
        prony_history_release(h);
    }
}

/* Adds run `number` with one metric. */
static void add_metric(prony_history *h, size_t number, const char *metric, double value)
{
    prony_history_run run = history_plain_run(number);
    const prony_history_value one = {metric, value, {NAN, NAN}};
    run.values = &one;
    run.value_count = 1;
    assert_int_equal(prony_history_add(h, &run, NULL), PRONY_OK);
}

/* The newest run has no latency: nothing older is judged in its place, by any writer. */
static void test_an_older_run_is_not_the_newest(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(30, NULL, 1);
    prony_history_run slow = history_plain_run(31);
    history_add_times(h, &slow, 12, 5);
    assert_int_equal(history_verdict_of(h, &o).regressions, 1);
    add_metric(h, 32, "top1_accuracy", 0.9);
    assert_int_equal(history_verdict_of(h, &o).checked, 0);
    assert_int_equal(history_verdict_of(h, &o).regressions, 0);
    char *text = history_written(h, PRONY_HISTORY_CHECK, &o, PRONY_FORMAT_TEXT);
    assert_null(strstr(text, "WORSE"));
    assert_non_null(strstr(text, "has none of these metrics"));
    prn_free(text);
    text = history_written(h, PRONY_HISTORY_CHECK, &o, PRONY_FORMAT_JSON);
    assert_null(strstr(text, "\"outcome\""));
    prn_free(text);
    text = history_written(h, PRONY_HISTORY_LIST, NULL, PRONY_FORMAT_HTML);
    assert_null(strstr(text, "\"bad\""));
    assert_non_null(strstr(text, "regressed in 0 groups"));
    prn_free(text);
    prony_history_release(h);
}

/* Accuracy and memory are exact: 0.3 % less is worse, unless --noise says otherwise. Times have 1 % of noise by
 * default, and none with a noise of 0. */
static void test_noise_of_exact_metrics(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double before, after, noise;
        size_t regressions;
    } all[] = {{"top1_accuracy", 0.752, 0.75, -1, 1},   {"top1_accuracy", 0.752, 0.752, -1, 0},
               {"top1_accuracy", 0.752, 0.75, 0.01, 0}, {"session_memory", 1 << 20, (1 << 20) + 64, -1, 1},
               {"latency", 1e7, 1.005e7, -1, 0},        {"latency", 1e7, 1.005e7, 0, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        prony_history *h = history_new();
        prony_history_options o = PRONY_HISTORY_OPTIONS_INIT;
        SCENARIO((int)i);
        o.noise = all[i].noise;
        for (size_t k = 0; k < 20; k++) add_metric(h, k, all[i].metric, all[i].before);
        add_metric(h, 20, all[i].metric, all[i].after);
        assert_int_equal(history_verdict_of(h, &o).checked, 1);
        assert_int_equal(history_verdict_of(h, &o).regressions, all[i].regressions);
        prony_history_release(h);
    }
}

/* ---- changes ---- */

/* A level of 0 has no percentage: no writer shows one. */
static void test_a_step_from_zero(void **state)
{
    (void)state;
    prony_history *h = history_new();
    for (size_t i = 0; i < 24; i++) add_metric(h, i, "output_error", i < 12 ? 0 : 1);
    prony_history_options o = PRONY_HISTORY_OPTIONS_INIT;
    o.metrics = "output_error";
    char *text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "worse, step: 0 -> 1"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    prn_free(text);
    text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_JSON);
    assert_non_null(strstr(text, "\"ratio\": null"));
    prn_free(text);
    for (size_t i = 0; i < 24; i++) add_metric(h, 30 + i, "top1_accuracy", i < 12 ? 0 : 1); /* the page shows it */
    text = history_written(h, PRONY_HISTORY_LIST, NULL, PRONY_FORMAT_HTML);
    assert_non_null(strstr(text, "1 change of level"));
    assert_null(strstr(text, "nan"));
    prn_free(text);
    prony_history_release(h);
}

static void test_a_step_names_commits_and_layers(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(60, history_late_step, 3);
    char *text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "worse, step +"));
    assert_non_null(strstr(text, "at run 41"));
    assert_null(strstr(text, "drift"));
    assert_non_null(strstr(text, "conv2 (Conv)"));
    assert_null(strstr(text, "conv1 (Conv)"));
    prn_free(text);
    text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_JSON);
    assert_non_null(strstr(text, "\"commit_before\": \"0000000000000000000000000000000000abc027\""));
    assert_non_null(strstr(text, "\"commit_after\": \"0000000000000000000000000000000000abc028\""));
    prn_free(text);
    prony_history_release(h);
}

/* A change of three runs is shown, with the remark that it may vanish; one of five stands for itself. */
static void test_a_young_step(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    for (size_t after = 3; after <= 5; after++) {
        prony_history *h = history_series(40 + after, history_late_step, 3);
        SCENARIO((int)after);
        char *text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT);
        assert_non_null(strstr(text, "at run 41"));
        assert_int_equal(strstr(text, "runs since then") != NULL, after < 5);
        prn_free(text);
        prony_history_release(h);
    }
}

static void test_a_drift_is_a_drift(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(60, steady_drift, 4);
    char *text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "worse, drift +"));
    assert_null(strstr(text, "step"));
    assert_non_null(strstr(text, "days)"));
    prn_free(text);
    assert_int_equal(history_verdict_of(h, &o).regressions, 1); /* no single run shows it */
    prony_history_release(h);
}

static void test_busy_runs_make_no_change(void **state)
{
    (void)state;
    prony_history_options o = history_latency_alone();
    prony_history *h = history_series(30, NULL, 5);
    for (size_t i = 30; i < 40; i++) {
        prony_history_run run = history_plain_run(i);
        run.load = PRONY_LOAD_BUSY;
        history_add_times(h, &run, 14, 5);
    }
    char *text = history_written(h, PRONY_HISTORY_TREND, &o, PRONY_FORMAT_TEXT);
    assert_non_null(strstr(text, "10 busy, not counted"));
    assert_non_null(strstr(text, "no change of level"));
    prn_free(text);
    prony_history_release(h);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_not_mixed),
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_quiet_histories_pass),
        cmocka_unit_test(test_young_changes_stay_regressions),
        cmocka_unit_test(test_an_older_run_is_not_the_newest),
        cmocka_unit_test(test_noise_of_exact_metrics),
        cmocka_unit_test(test_a_step_from_zero),
        cmocka_unit_test(test_a_step_names_commits_and_layers),
        cmocka_unit_test(test_a_young_step),
        cmocka_unit_test(test_a_drift_is_a_drift),
        cmocka_unit_test(test_busy_runs_make_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
