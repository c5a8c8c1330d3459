/* Statistics against values computed by hand, and guarantees of determinism and bounded work. */
#include "failure_trace.h"
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static prony_time_stats compute(const int64_t *samples, size_t count, bool interval)
{
    prony_time_stats s;
    prony_error error = {0};
    if (prn_stats_compute(&s, samples, count, interval, &error) != PRONY_OK) fail_msg("%s", error.message);
    return s;
}

static void test_by_hand(void **state)
{
    (void)state;
    const int64_t samples[] = {40, 10, 30, 20, 100};
    prony_time_stats s = compute(samples, 5, true);
    assert_int_equal(s.count, 5);
    assert_int_equal(s.mean_ns, 40);
    assert_int_equal(s.median_ns, 30);
    assert_int_equal(s.min_ns, 10);
    assert_int_equal(s.max_ns, 100);
    assert_int_equal(s.std_ns, 35); /* sqrt((0 + 900 + 100 + 400 + 3600) / 4) = 35.36 */
    assert_int_equal(s.p50_ns, 30);
    assert_int_equal(s.p90_ns, 100);
    assert_int_equal(s.p999_ns, 100);
    assert_int_equal(samples[0], 40);
}

static void test_even_count(void **state)
{
    (void)state;
    const int64_t samples[] = {4, 1, 3, 8};
    prony_time_stats s = compute(samples, 4, false);
    assert_int_equal(s.median_ns, 3); /* (3 + 4) / 2, towards the lower */
    assert_int_equal(s.p50_ns, 3);
    assert_int_equal(s.mean_ns, 4);
    assert_int_equal(s.std_ns, 3); /* sqrt(26 / 3) = 2.94 */
}

static void test_few(void **state)
{
    (void)state;
    prony_time_stats s = compute(NULL, 0, true);
    assert_int_equal(s.count, 0);
    assert_int_equal(s.mean_ns + s.max_ns + s.median_ci95_ns[1], 0);
    const int64_t one = 7;
    s = compute(&one, 1, true);
    assert_int_equal(s.median_ns, 7);
    assert_int_equal(s.std_ns, 0);
    assert_int_equal(s.median_ci95_ns[0], 7);
    assert_int_equal(s.median_ci95_ns[1], 7);
}

/* 1 .. n shuffled: the nearest-rank quantile q is ceil(q n) itself. */
static void fill_shuffled(int64_t *samples, size_t count)
{
    uint64_t random = 9;
    for (size_t i = 0; i < count; i++) samples[i] = (int64_t)i + 1;
    for (size_t i = count - 1; i > 0; i--) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        size_t j = (random >> 33) % (i + 1);
        int64_t t = samples[i];
        samples[i] = samples[j];
        samples[j] = t;
    }
}

static void test_nearest_rank(void **state)
{
    (void)state;
    static int64_t samples[10000];
    fill_shuffled(samples, 1000);
    prony_time_stats s = compute(samples, 1000, false);
    assert_int_equal(s.p50_ns, 500);
    assert_int_equal(s.p90_ns, 900);
    assert_int_equal(s.p95_ns, 950);
    assert_int_equal(s.p99_ns, 990);
    assert_int_equal(s.p999_ns, 999);
    fill_shuffled(samples, 1001);
    s = compute(samples, 1001, false);
    assert_int_equal(s.p50_ns, 501);
    assert_int_equal(s.p90_ns, 901);
    assert_int_equal(s.p999_ns, 1000);
    assert_int_equal(s.median_ns, 501);
    fill_shuffled(samples, 10000);
    s = compute(samples, 10000, false);
    assert_int_equal(s.p95_ns, 9500);
    assert_int_equal(s.p999_ns, 9990);
}

static void test_validity(void **state)
{
    (void)state;
    static int64_t samples[6636];
    static const struct {
        size_t count;
        int valid; /* how many of p90, p95, p99, p99.9 */
    } rows[] = {{63, 0}, {64, 1}, {129, 1}, {130, 2}, {661, 2}, {662, 3}, {6635, 3}, {6636, 4}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        SCENARIO(r);
        prony_time_stats s = compute(samples, rows[r].count, false);
        assert_int_equal(s.p90_valid + s.p95_valid + s.p99_valid + s.p999_valid, rows[r].valid);
        assert_true(s.p90_valid >= s.p95_valid && s.p95_valid >= s.p99_valid && s.p99_valid >= s.p999_valid);
    }
}

static void test_large_times(void **state)
{
    (void)state;
    const int64_t samples[] = {INT64_MAX, INT64_MAX - 2, INT64_MAX - 4, INT64_MAX - 6};
    prony_time_stats s = compute(samples, 4, false);
    assert_int_equal(s.mean_ns, INT64_MAX - 3);
    assert_int_equal(s.median_ns, INT64_MAX - 3);
}

/* Ranks of the binomial interval as standard tables give them. */
static void test_order_statistic_interval(void **state)
{
    (void)state;
    static const struct {
        size_t count, low;
    } rows[] = {{1, 1},  {5, 1},  {6, 1},  {8, 1},   {9, 2},   {10, 2},
                {15, 4}, {20, 6}, {25, 8}, {30, 10}, {50, 18}, {100, 40}};
    int64_t sorted[100], interval[2];
    for (size_t i = 0; i < 100; i++) sorted[i] = (int64_t)i + 1;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        SCENARIO(r);
        prn_stats_median_interval(sorted, rows[r].count, interval);
        assert_int_equal(interval[0], rows[r].low);
        assert_int_equal(interval[1], rows[r].count + 1 - rows[r].low);
    }
    prn_stats_median_interval(sorted, 0, interval);
    assert_int_equal(interval[0], 0);
}

static void test_bootstrap(void **state)
{
    (void)state;
    static int64_t samples[1000];
    fill_shuffled(samples, 1000);
    prony_time_stats a = compute(samples, 1000, true), b = compute(samples, 1000, true);
    assert_memory_equal(a.median_ci95_ns, b.median_ci95_ns, sizeof a.median_ci95_ns);
    assert_true(a.median_ci95_ns[0] < a.median_ns && a.median_ns < a.median_ci95_ns[1]);
    /* The order statistics of 1000 samples give [469, 532]; the bootstrap is close to it. */
    assert_in_range(a.median_ci95_ns[0], 460, 478);
    assert_in_range(a.median_ci95_ns[1], 523, 541);
    for (size_t i = 0; i < 1000; i++) samples[i] = 5000;
    a = compute(samples, 1000, true);
    assert_int_equal(a.median_ci95_ns[0], 5000);
    assert_int_equal(a.median_ci95_ns[1], 5000);
}

static void test_many_samples(void **state)
{
    (void)state;
    size_t count = 1000000;
    int64_t *samples = calloc(count, sizeof *samples);
    assert_non_null(samples);
    fill_shuffled(samples, count);
    prony_time_stats s = compute(samples, count, true);
    assert_in_range(s.median_ci95_ns[0], 498900, 499020); /* floor((n - 1.96 sqrt n) / 2), and little more */
    assert_int_equal(s.median_ci95_ns[0] + s.median_ci95_ns[1], 1000001);
    free(samples);
}

static void test_warm(void **state)
{
    (void)state;
    int64_t samples[60];
    for (size_t i = 0; i < 60; i++) samples[i] = 1000 - (int64_t)i * 10;
    for (size_t n = 0; n <= 60; n++) assert_false(prn_stats_warm(samples, n));
    for (size_t i = 0; i < 60; i++) samples[i] = 1000;
    assert_false(prn_stats_warm(samples, 5));
    assert_true(prn_stats_warm(samples, 6));
    /* One cold run, then noise without a trend. */
    for (size_t i = 0; i < 60; i++) samples[i] = i == 0 ? 9000 : 1000 + (int64_t)(i * 7919 % 41);
    assert_true(prn_stats_warm(samples, 12));
    /* Falls by less than 1 % in all: more warm-up would change nothing. */
    for (size_t i = 0; i < 60; i++) samples[i] = 100000 - (int64_t)i;
    assert_true(prn_stats_warm(samples, 60));
    /* Ten cold runs that settle down geometrically. */
    for (size_t i = 0; i < 60; i++) samples[i] = 1000 + (i < 10 ? 2000 >> i : 0) + (int64_t)(i * 7919 % 13);
    assert_false(prn_stats_warm(samples, 8));
    assert_true(prn_stats_warm(samples, 45));
}

static void test_allocation_failures(void **state)
{
    (void)state;
    const int64_t samples[] = {1, 2, 3};
    prony_time_stats s;
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        prony_status status = prn_stats_compute(&s, samples, 3, true, NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) {
            assert_int_equal(n, 6); /* one for the sorted copy, four for the bootstrap */
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_even_count),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_nearest_rank),
        cmocka_unit_test(test_validity),
        cmocka_unit_test(test_large_times),
        cmocka_unit_test(test_order_statistic_interval),
        cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_many_samples),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
