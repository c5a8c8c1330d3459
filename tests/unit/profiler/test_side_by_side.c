/* Several sessions measured in turns: equal numbers of runs, each report its own session's, refusals. */
#include "failure_trace.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static prony_session *make(prony_model *model, int threads, int64_t batch, bool stamps)
{
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_error error = {0};
    options.intra_op_threads = threads;
    options.batch = batch;
    options.no_profile = !stamps;
    if (prony_session_create(&session, model, &options, &error) != PRONY_OK ||
        prony_session_generate_inputs(session, 0, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    assert_int_equal(prony_session_threads(session), threads);
    return session;
}

static prony_model *load(void)
{
    prony_model *model = NULL;
    prony_error error = {0};
    if (prony_model_load(&model, PRN_SOURCE_DIR "/models/digits.onnx", NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return model;
}

static void test_turns(void **state)
{
    (void)state;
    prony_model *model = load();
    prony_session *sessions[] = {make(model, 1, 1, true), make(model, 2, 4, false), make(model, 1, 9, true)};
    prony_report *reports[3] = {NULL};
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    prony_error error = {0};
    options.runs = 10; /* no multiple of a turn */
    options.warmup_runs = 1;
    if (prony_profile_interleaved(reports, sessions, 3, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    uint64_t flops = prony_report_totals(reports[0])->cost.flops;
    assert_true(prony_report_totals(reports[1])->cost.flops == 4 * flops);
    assert_true(prony_report_totals(reports[2])->cost.flops == 9 * flops);
    for (size_t i = 0; i < 3; i++) {
        SCENARIO(i);
        assert_int_equal(prony_report_latency(reports[i])->count, 10);
        assert_true(prony_report_latency(reports[i])->min_ns > 0);
        assert_int_equal(prony_report_time_coverage(reports[i]) >= 0, i != 1);
        prony_report_release(reports[i]);
    }
    options.runs = 0;
    options.max_seconds = 0.02;
    if (prony_profile_interleaved(reports, sessions, 3, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    uint64_t runs = prony_report_latency(reports[0])->count;
    assert_true(runs >= 1); /* as many as the time allows on a busy machine */
    for (size_t i = 0; i < 3; i++) {
        SCENARIO(i);
        assert_int_equal(prony_report_latency(reports[i])->count, runs);
        prony_report_release(reports[i]);
    }
    for (size_t i = 0; i < 3; i++) prony_session_release(sessions[i]);
    prony_model_release(model);
}

static void test_refusals(void **state)
{
    (void)state;
    prony_model *model = load();
    prony_session *one = make(model, 1, 1, true), *unset = NULL;
    prony_error error = {0};
    prony_report *reports[2] = {NULL};
    prony_session *twice[] = {one, one}, *missing[] = {one, NULL};
    assert_int_equal(prony_profile_interleaved(reports, twice, 2, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "same"));
    assert_int_equal(prony_profile_interleaved(reports, missing, 2, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_profile_interleaved(reports, twice, 0, NULL, &error), PRONY_INVALID_ARGUMENT);
    /* The second session has no inputs: the first one's report must be released. */
    assert_int_equal(prony_session_create(&unset, model, NULL, &error), PRONY_OK);
    prony_session *half[] = {one, unset};
    assert_int_not_equal(prony_profile_interleaved(reports, half, 2, NULL, &error), PRONY_OK);
    assert_null(reports[0]);
    assert_null(reports[1]);
    prony_session_release(unset);
    prony_session_release(one);
    prony_model_release(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
