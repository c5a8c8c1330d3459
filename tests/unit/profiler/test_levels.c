/* Changes of level: the rate of false alarms, how soon a step is found, steps and drifts told apart, hidden levels,
 * ties. All seeds are fixed, so the counts are the same in every run. tests/by_hand/level_rates.c has the full
 * simulation. */
#include "failure_trace.h"

#include "base/memory/alloc.h"
#include "profiler/statistics/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) ||               \
    __has_feature(thread_sanitizer)
enum { HISTORIES = 20 }; /* looks for faults; the usual build tests the rates */
#else
enum { HISTORIES = 200 };
#endif
enum { RUNS = 50, MOST = 200 };

typedef enum noise_kind { NORMAL, LOGNORMAL, OUTLIERS, NOISES } noise_kind;

/* Relative noise of standard deviation `sd`; OUTLIERS: 5 % of the runs are slower by 5 to 20 % besides. */
static double draw(uint64_t *random, noise_kind kind, double sd)
{
    const double z = prn_random_normal(random);
    if (kind == LOGNORMAL) return sd * (exp(0.8 * z) - exp(0.32)) / (exp(0.32) * sqrt(exp(0.64) - 1));
    const double outlier =
        kind == OUTLIERS && prn_random_unit(random) < 0.05 ? 0.05 + 0.15 * prn_random_unit(random) : 0;
    return sd * z + outlier;
}

static size_t changes_of(const double *x, size_t count, size_t at[16])
{
    prony_error error;
    size_t found;
    assert_int_equal(prn_level_changes(at, 16, &found, x, count, &error), PRONY_OK);
    return found;
}

/* At most 5 % of quiet histories may have a change; the test's bound adds three standard errors. */
static void test_false_alarms(void **state)
{
    (void)state;
    const double bound = 0.05 * HISTORIES + 3 * sqrt(0.05 * 0.95 * HISTORIES);
    for (noise_kind kind = NORMAL; kind < NOISES; kind++) {
        uint64_t random = 1;
        int alarms = 0;
        SCENARIO(kind);
        for (int h = 0; h < HISTORIES; h++) {
            double x[RUNS];
            size_t at[16];
            for (int i = 0; i < RUNS; i++) x[i] = log(1 + draw(&random, kind, 0.015));
            alarms += changes_of(x, RUNS, at) > 0;
        }
        assert_true(alarms <= bound);
    }
}

/* A step of 5 %, `after` runs ago: the share of histories in which it is found within 3 runs of its place. */
static double found_share(noise_kind kind, double sd, size_t after)
{
    uint64_t random = 2;
    int located = 0;
    for (int h = 0; h < HISTORIES; h++) {
        double x[MOST];
        size_t at[16];
        bool near = false;
        for (size_t i = 0; i < RUNS + after; i++) x[i] = log((i >= RUNS ? 1.05 : 1) + draw(&random, kind, sd));
        for (size_t k = changes_of(x, RUNS + after, at); k > 0; k--) near |= labs((long)at[k - 1] - RUNS) <= 3;
        located += near;
    }
    return (double)located / HISTORIES;
}

static void test_a_step_is_found(void **state)
{
    (void)state;
    assert_true(found_share(NORMAL, 0.01, 3) >= 0.95);
    assert_true(found_share(LOGNORMAL, 0.015, 3) >= 0.95);
    assert_true(found_share(NORMAL, 0.02, 3) >= 0.85); /* 0.75 without the test of the newest values */
    assert_true(found_share(OUTLIERS, 0.015, 3) >= 0.9);
    assert_true(found_share(NORMAL, 0.02, 5) >= 0.9);
    assert_true(found_share(NORMAL, 0.02, 10) >= 0.95);
    assert_true(found_share(OUTLIERS, 0.015, 10) >= 0.95);
}

/* ---- pieces ---- */

typedef double level_shape(size_t run);

static double step_shape(size_t run)
{
    return run >= 40 ? 0.06 : 0;
}

static double drift_shape(size_t run)
{
    return 0.1 * (double)run / 84;
}

static double step_then_drift(size_t run)
{
    return (run >= 24 ? 0.06 : 0) + (run < 48 ? 0 : 0.12 * (double)(run - 48) / 36);
}

/* A week, a run every two hours. Counts the histories that are one step, one drift, or both. */
static void shapes_of(level_shape *shape, double sd, int *steps, int *drifts, int *both)
{
    enum { WEEK = 84 };
    uint64_t random = 3;
    *steps = *drifts = *both = 0;
    for (int h = 0; h < HISTORIES; h++) {
        double x[WEEK];
        prn_level_piece pieces[PRN_LEVEL_PIECES];
        size_t count, drifting = 0;
        prony_error error;
        for (size_t i = 0; i < WEEK; i++) x[i] = shape(i) + sd * prn_random_normal(&random);
        assert_int_equal(prn_level_pieces(pieces, &count, x, WEEK, &error), PRONY_OK);
        assert_int_equal(pieces[0].begin, 0);
        assert_int_equal(pieces[count - 1].end, WEEK);
        for (size_t k = 0; k < count; k++) {
            if (k) assert_int_equal(pieces[k].begin, pieces[k - 1].end);
            drifting += pieces[k].drift;
        }
        *steps += count == 2 && drifting == 0;
        *drifts += count == 1 && drifting == 1;
        *both += count > 1 && drifting > 0;
    }
}

static void test_steps_and_drifts_are_told_apart(void **state)
{
    (void)state;
    int steps, drifts, both;
    shapes_of(step_shape, 0.01, &steps, &drifts, &both);
    assert_true(steps >= 0.85 * HISTORIES);
    assert_int_equal(drifts, 0);
    shapes_of(drift_shape, 0.01, &steps, &drifts, &both);
    assert_true(drifts >= 0.9 * HISTORIES);
    assert_int_equal(steps, 0);
    shapes_of(step_then_drift, 0.01, &steps, &drifts, &both);
    assert_true(both >= 0.95 * HISTORIES);
}

/* A regression that was mended: the plain split sees two equal sides of one level. */
static void test_a_mended_regression(void **state)
{
    (void)state;
    uint64_t random = 4;
    int found_both = 0;
    for (int h = 0; h < 40; h++) {
        double x[90];
        size_t at[16];
        bool begin = false, end = false;
        for (size_t i = 0; i < 90; i++) x[i] = (i >= 42 && i < 48 ? 0.06 : 0) + 0.01 * prn_random_normal(&random);
        for (size_t k = changes_of(x, 90, at); k > 0; k--) {
            begin |= labs((long)at[k - 1] - 42) <= 2;
            end |= labs((long)at[k - 1] - 48) <= 2;
        }
        found_both += begin && end;
    }
    assert_true(found_both >= 36);
}

/* More changes than there is room for: the newest ones are found. */
static void test_the_newest_changes_have_room(void **state)
{
    (void)state;
    double x[120];
    size_t at[4], found;
    uint64_t random = 5;
    prony_error error;
    for (size_t i = 0; i < 120; i++) x[i] = (double)(i / 10 * 7 % 5) * 0.1 + 0.002 * prn_random_normal(&random);
    assert_int_equal(prn_level_changes(at, 4, &found, x, 120, &error), PRONY_OK);
    assert_int_equal(found, 4);
    for (size_t k = 0; k < 4; k++) assert_int_equal(at[k], 80 + 10 * k);
}

static void test_exact_values(void **state)
{
    (void)state;
    double x[30];
    size_t at[16];
    for (int i = 0; i < 30; i++) x[i] = 7;
    assert_int_equal(changes_of(x, 30, at), 0);
    for (int i = 20; i < 30; i++) x[i] = 8;
    assert_int_equal(changes_of(x, 30, at), 1);
    assert_int_equal(at[0], 20);
    assert_int_equal(changes_of(x, 5, at), 0);
    assert_int_equal(changes_of(x, 0, at), 0);
    x[3] = 9; /* one outlier is no level */
    assert_int_equal(changes_of(x, 20, at), 0);
}

/* Most neighbours of an exact metric are equal, and it may begin at 0: the noise is 0, and the step is found all the
 * same. Accuracy in logarithms (top-1 of 1, then 0.5), an output error (0, then 1), and a step of 1e-3. */
static void test_pieces_of_exact_values(void **state)
{
    (void)state;
    const double levels[][2] = {{0, log(0.5)}, {0, 1}, {1e-300, 2e-300}, {5, 5.001}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        for (size_t before = 12; before <= 40; before += 28) {
            double x[51];
            prn_level_piece pieces[PRN_LEVEL_PIECES];
            size_t count;
            prony_error error;
            SCENARIO((int)i);
            for (size_t k = 0; k < before + 11; k++) x[k] = levels[i][k >= before];
            x[before + 7] += 0.1 * (levels[i][1] - levels[i][0]); /* one value off its level */
            assert_int_equal(prn_level_pieces(pieces, &count, x, before + 11, &error), PRONY_OK);
            assert_int_equal(count, 2);
            for (size_t p = 0; p < 2; p++) {
                assert_int_equal(pieces[p].begin, p ? before : 0);
                assert_int_equal(pieces[p].end, p ? before + 11 : before);
                assert_false(pieces[p].drift);
                assert_true(fabs(pieces[p].first - levels[i][p]) < 1e-12);
                assert_true(fabs(pieces[p].last - levels[i][p]) < 1e-12);
            }
        }
}

static void test_refused_memory(void **state)
{
    (void)state;
    double x[30] = {0};
    prn_level_piece pieces[PRN_LEVEL_PIECES];
    size_t count;
    prony_error error;
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        const prony_status status = prn_level_pieces(pieces, &count, x, 30, &error);
        const bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_false_alarms),
        cmocka_unit_test(test_a_step_is_found),
        cmocka_unit_test(test_steps_and_drifts_are_told_apart),
        cmocka_unit_test(test_a_mended_regression),
        cmocka_unit_test(test_the_newest_changes_have_room),
        cmocka_unit_test(test_exact_values),
        cmocka_unit_test(test_pieces_of_exact_values),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
