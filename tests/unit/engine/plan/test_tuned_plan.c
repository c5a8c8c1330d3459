/* Plans of measured kernels beside the default ones, as wholes: the choice between them, and its storage. */
#include "failure_trace.h"
#include "engine/plan/tune.h"
#include "prony_report.h"
#include "tests/support/tuned_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float plain[TC_ELEMENTS], first_out[TC_ELEMENTS], second_out[TC_ELEMENTS];

static void run_untuned(float *out)
{
    model_run u = {0};
    u.options = (prony_session_options)PRONY_SESSION_OPTIONS_INIT;
    u.options.intra_op_threads = 1;
    mr_open(&u, tc_build());
    mr_set(&u, "x", PRONY_FLOAT32, "1,32,12,12", tc_x);
    memcpy(out, mr_run(&u, 0)->data, sizeof plain);
    mr_close(&u);
}

/* Checks the report; with `judged`, the verdict comes from runs of this process. */
static void expect(prony_report *report, bool judged, bool reverted, int64_t default_ns, int64_t tuned_ns)
{
    const prony_tuning *tuning = prony_report_tuning(report);
    assert_non_null(tuning);
    assert_string_equal(tuning->note, "");
    assert_int_equal(tuning->measured, 0);
    assert_int_equal(tc_clock.calls > 0, judged);
    assert_int_equal(tuning->reverted, reverted);
    assert_int_equal(tuning->default_run_ns, default_ns);
    assert_int_equal(tuning->tuned_run_ns, tuned_ns);
    assert_int_equal(tuning->operators, 2);
    assert_int_equal(tuning->choice_count, 2);
    if (reverted || default_ns < 0)
        assert_int_equal(tuning->changed, 0);
    else
        assert_int_equal(tuning->changed, 2);
    for (size_t i = 0; i < tuning->choice_count; i++)
        assert_int_equal(strcmp(tuning->choices[i].kernel, tuning->choices[i].default_kernel) == 0,
                         tuning->changed == 0);
    prony_report_release(report);
}

static void test_loses(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    run_untuned(plain);
    tc_measure();
    tc_clock_says(1000, 2000);
    expect(tc_profile(first_out), true, true, 1000, 2000);
    assert_memory_equal(first_out, plain, sizeof plain); /* the default kernels, the same bits */
    tc_rows = TC_AS_KEPT;
    tc_forgets = false;
    tc_clock_says(1, 1);
    expect(tc_profile(second_out), false, true, 1000, 2000);
    assert_memory_equal(second_out, plain, sizeof plain);
}

static void test_wins(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    tc_measure();
    tc_clock_says(2000, 1000);
    expect(tc_profile(first_out), true, false, 2000, 1000);
    tc_rows = TC_AS_KEPT;
    tc_forgets = false;
    tc_clock_says(1, 1);
    expect(tc_profile(second_out), false, false, 2000, 1000);
    assert_memory_equal(first_out, second_out, sizeof first_out);
}

static void test_nothing_to_judge(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    tc_measure();
    tc_rows = TC_STANDARD;
    tc_clock_says(2000, 1000);
    expect(tc_profile(first_out), false, false, -1, -1);
}

static char *cache_file(char path[4200])
{
    prony_report *report = tc_profile(first_out);
    snprintf(path, 4200, "%s", prony_report_tuning(report)->file);
    prony_report_release(report);
    return path;
}

/* Replaces `was` by as many other bytes. */
static void edit(const char *path, const char *was, const char *with)
{
    static char data[1 << 16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    data[size] = '\0';
    char *at = strstr(data, was);
    assert_non_null(at);
    assert_int_equal(strlen(was), strlen(with));
    memcpy(at, with, strlen(with));
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_older_file(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    static const char *const edits[][2] = {{"\"plans\"", "\"plane\""},
                                           {"prony.tune/2", "prony.tune/1"},
                                           {"\"taken_back\"", "\"taken_away\""},
                                           {"\"default_run_ns\": 1", "\"default_run_ns\": x"}};
    char path[4200];
    for (size_t e = 0; e < sizeof edits / sizeof *edits; e++) {
        SCENARIO(e);
        tc_rows = TC_AS_KEPT;
        tc_forgets = false;
        tc_measure();
        tc_clock_says(1000, 2000);
        cache_file(path);
        tc_forgets = false;
        edit(path, edits[e][0], edits[e][1]);
        prony_report *report = tc_profile(first_out);
        assert_true(prony_report_tuning(report)->measured > 0);
        assert_non_null(strstr(prony_report_tuning(report)->note, "measured again"));
        prony_report_release(report);
    }
}

/* A verdict about rows of which one is missing: the row is measured, and the whole plan is judged again. */
static void test_row_gone(void **state)
{
    (void)state;
    if (!tc_has_choice()) skip();
    char path[4200];
    for (int wins = 0; wins < 2; wins++) {
        SCENARIO(wins);
        tc_rows = TC_AS_KEPT;
        tc_forgets = false;
        tc_measure();
        tc_clock_says(1000, wins ? 500 : 2000);
        cache_file(path);
        tc_rows = TC_AS_KEPT;
        tc_forgets = false;
        edit(path, "\"kernel\": \"conv", "\"kernel\": \"none");
        tc_clock_says(3000, 1000);
        prony_report *report = tc_profile(first_out);
        const prony_tuning *tuning = prony_report_tuning(report);
        assert_true(tuning->measured > 0);
        assert_false(tuning->reverted);
        assert_int_equal(tuning->default_run_ns, tuning->changed ? 3000 : -1);
        assert_int_equal(tc_clock.calls > 0, tuning->changed > 0);
        prony_report_release(report);
        assert_int_equal(remove(path), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_loses, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_wins, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_to_judge, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_older_file, tc_set_up, tc_tear_down),
        cmocka_unit_test_setup_teardown(test_row_gone, tc_set_up, tc_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
