/* The rate of false verdicts on simulated pairs of equal measurements, and the rate of detected slow-downs of 5 %. All
 * seeds are fixed, so the counts are the same in every run. */
#include "failure_trace.h"
#include "profiler/report/report.h"
#include "simulated_times.h"

#include "base/memory/alloc.h"
#include "prony_judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) ||               \
    __has_feature(thread_sanitizer)
/* Ten times slower there: a sanitizer build looks for faults, the usual build tests the rates. */
#define PAIRS 10
#else
#define PAIRS 200
#endif
#define RATES_COUNT (PAIRS == 200)
#define PLANTED 20
#define MOST_RUNS 400

static prony_report *report_of(const int64_t *samples, size_t runs)
{
    prony_error error = {0};
    prony_report *r = prn_calloc(1, sizeof *r);
    assert_non_null(r);
    r->time_share = -1;
    r->model.name = "m";
    r->config.batch = 1;
    if (prn_report_fill_latency(r, samples, runs, &error) != PRONY_OK) fail_msg("%s", error.message);
    return r;
}

/* Metrics that got worse and better in the second one. Releases both reports. */
static void compare_reports(prony_report *first, prony_report *second, int *worse, int *better)
{
    prony_error error = {0};
    prony_comparison *c = NULL;
    if (prony_compare(&c, first, second, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    size_t count;
    const prony_compare_metric *rows = prony_comparison_metrics(c, &count);
    *worse = *better = 0;
    for (size_t i = 0; i < count; i++) {
        *worse += rows[i].verdict == PRONY_VERDICT_WORSE;
        *better += rows[i].verdict == PRONY_VERDICT_BETTER;
    }
    prony_comparison_release(c);
    prony_report_release(first);
    prony_report_release(second);
}

/* Measured in turns: the deviation between processes does not matter. */
static void compare(const int64_t *a, const int64_t *b, size_t runs, int *worse, int *better)
{
    prony_report *first = report_of(a, runs), *second = report_of(b, runs);
    first->turns = second->turns = 1;
    compare_reports(first, second, worse, better);
}

/* true: the latency's median misses a limit. The report is released. */
static bool misses(prony_report *report, double limit_ns)
{
    prony_error error = {0};
    prony_metrics *metrics = NULL;
    prony_check_row row;
    prony_status status = prony_metrics_create(&metrics, &error);
    prony_threshold threshold = {.metric = prony_metrics_find(metrics, "latency"), .limit = limit_ns};
    if (status == PRONY_OK) status = prony_check(&row, report, metrics, &threshold, 1, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    assert_int_not_equal(row.outcome, PRONY_OUTCOME_UNKNOWN);
    prony_metrics_release(metrics);
    prony_report_release(report);
    return row.outcome == PRONY_OUTCOME_MISSED;
}

/* `found`: least number of slow-downs by 5 % to be seen in 20. If runs drift by as much over the whole measurement,
 * slow-downs cannot be detected; then the verdict must not be an alarm. */
static const struct {
    const char *name;
    size_t runs;
    simulated_noise noise;
    int found;
} kinds[] = {
    {"white", 100, {0.02, 0, 0, 0, 0}, 19},
    {"autocorrelated", 300, {0.005, 0.02, 0.9, 0, 0}, 19},
    {"wandering", 200, {0.005, 0.03, 0.95, 0, 0}, 0},
    {"drift", 300, {0.01, 0.005, 0.5, 0.04, 0}, 19},
    {"bursts", 300, {0.01, 0.005, 0.5, 0, 0.005}, 19},
    {"all of them", 400, {0.01, 0.01, 0.9, 0.03, 0.003}, 19},
    {"few runs", 60, {0.01, 0.01, 0.9, 0.05, 0.005}, 0},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static void test_compare(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        SCENARIO(k);
        uint64_t random = 1000 + k;
        int64_t a[MOST_RUNS], b[MOST_RUNS];
        int worse, better, alarms = 0, found = 0;
        for (int pair = 0; pair < PAIRS; pair++) {
            simulate_times(a, kinds[k].runs, 1e6, &kinds[k].noise, &random);
            simulate_times(b, kinds[k].runs, 1e6, &kinds[k].noise, &random);
            compare(a, b, kinds[k].runs, &worse, &better);
            alarms += worse > 0;
        }
        for (int pair = 0; pair < PLANTED; pair++) {
            simulate_times(a, kinds[k].runs, 1e6, &kinds[k].noise, &random);
            simulate_times(b, kinds[k].runs, 1.05e6, &kinds[k].noise, &random);
            compare(a, b, kinds[k].runs, &worse, &better);
            found += worse > 0;
        }
        printf("compare, %s: %d false alarms of %d, %d slow-downs of %d\n", kinds[k].name, alarms, PAIRS, found,
               PLANTED);
        if (RATES_COUNT) assert_in_range(alarms, 0, PAIRS / 20);
        if (RATES_COUNT) assert_true(found >= kinds[k].found);
    }
}

/* The limit is what another measurement of the same thing gave. A process's median is known to a few percent only, so a
 * check sees no slow-down of 5 %; it has to see one of 25 %. */
static void test_check(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        SCENARIO(k);
        uint64_t random = 2000 + k;
        int64_t a[MOST_RUNS], b[MOST_RUNS];
        int alarms = 0, found = 0;
        prony_time_stats first;
        for (int pair = 0; pair < PAIRS + PLANTED; pair++) {
            bool planted = pair >= PAIRS;
            simulate_times(a, kinds[k].runs, 1e6, &kinds[k].noise, &random);
            simulate_times(b, kinds[k].runs, planted ? 1.25e6 : 1e6, &kinds[k].noise, &random);
            assert_int_equal(prn_stats_compute(&first, a, kinds[k].runs, false, NULL), PRONY_OK);
            bool missed = misses(report_of(b, kinds[k].runs), (double)first.median_ns);
            alarms += missed && !planted;
            found += missed && planted;
        }
        printf("check, %s: %d false alarms of %d, %d slow-downs of %d\n", kinds[k].name, alarms, PAIRS, found, PLANTED);
        if (RATES_COUNT) assert_in_range(alarms, 0, PAIRS / 20);
        if (RATES_COUNT) assert_true(found >= PLANTED - 1);
    }
}

/* Reports that were stored: `scatter` is what processes deviate by. `found` as above. */
static const struct {
    const char *name;
    size_t processes, runs; /* of each */
    double scatter;
    int found;
} stored[] = {
    {"one process, quiet", 1, 200, 0.012, 0},
    {"one process, shared machine", 1, 200, 0.033, 0},
    {"three processes, shared machine", 3, 100, 0.033, 0},
    {"5 processes, quiet", 5, 60, 0.01, 15},
    {"10 processes, quiet", 10, 60, 0.015, 19},
    {"10 processes, shared machine", 10, 60, 0.033, 0},
    {"40 processes, shared machine", 40, 30, 0.033, 19},
};
#define STORED (sizeof stored / sizeof stored[0])
#define MOST_STORED 1200

static prony_report *simulate_stored(size_t k, double median_ns, uint64_t *random)
{
    const simulated_noise noise = {0.01, 0.005, 0.8, 0.01, 0.005};
    int64_t samples[MOST_STORED] = {0};
    size_t processes = stored[k].processes, runs = stored[k].runs;
    for (size_t p = 0; p < processes; p++)
        simulate_times(samples + p * runs, runs, median_ns * (1 + stored[k].scatter * prn_random_normal(random)),
                       &noise, random);
    prony_report *r = report_of(samples, processes * runs);
    uint64_t *process_runs = prn_bump_alloc(&r->pool, processes, sizeof *process_runs);
    assert_non_null(process_runs);
    for (size_t p = 0; p < processes; p++) process_runs[p] = runs;
    if (processes > 1) r->process_runs = process_runs;
    if (processes > 1) r->process_count = processes;
    return r;
}

static void test_stored_reports(void **state)
{
    (void)state;
    for (size_t k = 0; k < STORED; k++) {
        SCENARIO(k);
        uint64_t random = 5000 + k;
        int alarms = 0, found = 0, missed = 0, seen = 0;
        for (int pair = 0; pair < PAIRS + PLANTED; pair++) {
            bool planted = pair >= PAIRS;
            int worse, better;
            prony_report *first = simulate_stored(k, 1e6, &random);
            double limit = (double)first->latency.median_ns;
            compare_reports(first, simulate_stored(k, planted ? 1.05e6 : 1e6, &random), &worse, &better);
            alarms += worse > 0 && !planted;
            found += worse > 0 && planted;
            bool miss = misses(simulate_stored(k, planted ? 1.05e6 : 1e6, &random), limit);
            missed += miss && !planted;
            seen += miss && planted;
        }
        printf("stored, %s: %d and %d false alarms of %d, %d and %d slow-downs of %d (compare and check)\n",
               stored[k].name, alarms, missed, PAIRS, found, seen, PLANTED);
        if (RATES_COUNT) assert_in_range(alarms, 0, PAIRS / 20);
        if (RATES_COUNT) assert_in_range(missed, 0, PAIRS / 20);
        if (RATES_COUNT) assert_true(found >= stored[k].found && seen >= stored[k].found);
    }
}

/* Processes of a study: each has its own offset (where memory lies, what the neighbours do), some are disturbed. */
static void simulate_processes(double *medians, size_t count, double median_ns, double offset, double disturbed,
                               const simulated_noise *noise, uint64_t *random)
{
    int64_t samples[MOST_RUNS];
    for (size_t i = 0; i < count; i++) {
        double factor = 1 + offset * prn_random_normal(random);
        if (prn_random_unit(random) < disturbed) factor += 0.2 * prn_random_unit(random);
        double values[100];
        simulate_times(samples, 100, median_ns * factor, noise, random);
        for (size_t r = 0; r < 100; r++) values[r] = (double)samples[r];
        medians[i] = prn_median(values, 100);
    }
}

static void test_repeat(void **state)
{
    (void)state;
    static const struct {
        size_t processes;
        double offset, disturbed;
        int found;
    } studies[] = {{10, 0.01, 0, 19}, {10, 0.015, 0.1, 18}, {5, 0.01, 0, 0}, {8, 0.02, 0.05, 0}, {20, 0.02, 0.1, 19}};
    const simulated_noise noise = {0.01, 0.01, 0.9, 0.03, 0.005};
    for (size_t k = 0; k < sizeof studies / sizeof studies[0]; k++) {
        SCENARIO(k);
        uint64_t random = 3000 + k;
        double a[20], b[20];
        int alarms = 0, found = 0, same = 0;
        for (int pair = 0; pair < PAIRS + PLANTED; pair++) {
            bool planted = pair >= PAIRS;
            prn_process_test test;
            prn_processes first = {a, studies[k].processes}, second = {b, studies[k].processes};
            simulate_processes(a, first.count, 1e6, studies[k].offset, studies[k].disturbed, &noise, &random);
            simulate_processes(b, second.count, planted ? 1.05e6 : 1e6, studies[k].offset, studies[k].disturbed, &noise,
                               &random);
            assert_int_equal(prn_process_compare(&test, first, second, 0.01, 0.05, NULL), PRONY_OK);
            alarms += test.verdict == PRN_DIFFERENT && !planted;
            same += test.verdict == PRN_SAME && !planted;
            found += test.verdict == PRN_DIFFERENT && planted;
            if (planted) assert_true(test.verdict != PRN_SAME || test.ratio < 1.04);
        }
        printf("repeat, %zu processes: %d false alarms of %d, %d same, %d slow-downs of %d\n", studies[k].processes,
               alarms, PAIRS, same, found, PLANTED);
        if (RATES_COUNT) assert_in_range(alarms, 0, PAIRS / 20);
        if (RATES_COUNT) assert_true(found >= studies[k].found);
    }
}

/* The rate at which the 95 % interval of a median of processes contains the true one. */
static void test_coverage(void **state)
{
    (void)state;
    static const size_t counts[] = {3, 5, 10, 20};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        SCENARIO(k);
        uint64_t random = 4000 + k;
        int held = 0;
        for (int i = 0; i < 400; i++) {
            double values[20], value, interval[2];
            for (size_t p = 0; p < counts[k]; p++) values[p] = 1 + 0.02 * prn_random_normal(&random);
            assert_int_equal(prn_process_interval(&value, interval, (prn_processes){values, counts[k]}, NULL, NULL),
                             PRONY_OK);
            held += interval[0] <= 1 && 1 <= interval[1];
        }
        printf("interval of %zu processes: %.1f %% of 400 hold the true median\n", counts[k], held / 4.0);
        if (counts[k] >= 5) assert_true(held >= 370); /* 92.5 %; three processes cannot do better than 75 % */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_compare), cmocka_unit_test(test_check),
                                       cmocka_unit_test(test_stored_reports), cmocka_unit_test(test_repeat),
                                       cmocka_unit_test(test_coverage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
