/* Decisions from times of interleaved rounds, of kernels and of whole plans. The times are given. */
#include "failure_trace.h"
#include "base/status.h"
#include "engine/plan/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- which is taken */

static void test_choose(void **state)
{
    (void)state;
    enum { ROUNDS = 8 };
    int64_t times[3][ROUNDS];
    size_t rounds[3] = {ROUNDS, ROUNDS, ROUNDS};
    for (int r = 0; r < ROUNDS; r++) {
        times[0][r] = 1000 + r;
        times[1][r] = 980 + r; /* within the noise */
        times[2][r] = 1100;
    }
    assert_int_equal(prn_tune_choose(times[0], ROUNDS, rounds, 3), 0);
    for (int r = 0; r < ROUNDS; r++) times[2][r] = r < 5 ? 700 : 5000; /* wins five of eight */
    assert_int_equal(prn_tune_choose(times[0], ROUNDS, rounds, 3), 0);
    times[2][5] = 700;
    assert_int_equal(prn_tune_choose(times[0], ROUNDS, rounds, 3), 2);
    for (int r = 0; r < ROUNDS; r++) times[1][r] = 600;
    assert_int_equal(prn_tune_choose(times[0], ROUNDS, rounds, 3), 1);
    rounds[1] = ROUNDS - 1; /* was given up */
    assert_int_equal(prn_tune_choose(times[0], ROUNDS, rounds, 3), 2);
    rounds[0] = 0; /* the standard one failed */
    assert_int_equal(prn_tune_choose(times[0], ROUNDS, rounds, 3), 0);
}

/* ---- which stays */

typedef struct script {
    int64_t default_ns[30], tuned_ns[30];
    int runs, fails_at; /* fails_at 0: never */
} script;

static prony_status play(void *data, bool tuned, int64_t *time_ns, prony_error *error)
{
    script *s = data;
    const int turn = s->runs++;
    assert_int_equal(turn % 2, tuned);
    if (s->fails_at && turn + 1 == s->fails_at) return prn_fail(error, PRONY_SHAPE_MISMATCH, "it does not fit");
    *time_ns = (tuned ? s->tuned_ns : s->default_ns)[turn / 2];
    return PRONY_OK;
}

static prn_tune_verdict judge(script *s)
{
    prn_tune_verdict verdict = {.default_ns = -1, .tuned_ns = -1};
    s->runs = 0;
    assert_int_equal(prn_tune_judge(&verdict, play, s, NULL), PRONY_OK);
    return verdict;
}

static void fill_script(script *s, int64_t default_ns, int64_t tuned_ns)
{
    *s = (script){0};
    for (int i = 0; i < 30; i++) {
        s->default_ns[i] = default_ns;
        s->tuned_ns[i] = tuned_ns;
    }
}

static void test_judge(void **state)
{
    (void)state;
    script s;
    fill_script(&s, 10000, 9901); /* within one per cent */
    assert_true(judge(&s).reverted);
    assert_int_equal(s.runs, 2 * (1 + PRN_TUNE_MOST_ROUNDS));
    fill_script(&s, 10000, 9900);
    assert_false(judge(&s).reverted);
    s.default_ns[0] = 1; /* of the warm-up nothing follows */
    assert_false(judge(&s).reverted);
    for (int i = 1; i <= 6; i++) s.tuned_ns[i] = 10001; /* fifteen wins of twenty-one */
    assert_int_equal(judge(&s).tuned_ns, 9900);
    assert_true(judge(&s).reverted);
    s.tuned_ns[6] = 9900;
    assert_false(judge(&s).reverted);
    fill_script(&s, 10000, 20000);
    assert_true(judge(&s).reverted);
    assert_int_equal(judge(&s).default_ns, 10000);
    assert_int_equal(judge(&s).tuned_ns, 20000);
}

static void test_judge_long_runs(void **state)
{
    (void)state;
    script s;
    fill_script(&s, INT64_C(300000000), INT64_C(200000000));
    assert_false(judge(&s).reverted);
    assert_int_equal(s.runs, 2 * (1 + PRN_TUNE_LEAST_ROUNDS));
    fill_script(&s, INT64_C(30000000000), INT64_C(20000000000));
    assert_false(judge(&s).reverted);
    assert_int_equal(s.runs, 2 * (1 + 1));
}

static void test_judge_failing(void **state)
{
    (void)state;
    for (int at = 1; at <= 7; at++) {
        SCENARIO(at);
        prn_tune_verdict verdict = {.default_ns = -1, .tuned_ns = -1};
        prony_error error = {0};
        script s;
        fill_script(&s, 100, 50);
        s.fails_at = at;
        assert_int_equal(prn_tune_judge(&verdict, play, &s, &error), PRONY_SHAPE_MISMATCH);
        assert_string_equal(error.message, "it does not fit");
        assert_int_equal(s.runs, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_judge_long_runs),
        cmocka_unit_test(test_judge_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
