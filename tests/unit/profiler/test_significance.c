/* Tests and intervals of two samples, against SciPy 1.10.1 (mannwhitneyu, ttest_ind_from_stats, t.sf) and by hand. */
#include "failure_trace.h"
#include "profiler/statistics/statistics.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define CLOSE 1e-9 /* relative */

static void assert_close(double got, double expected)
{
    if (!(fabs(got - expected) <= CLOSE * fabs(expected))) fail_msg("%.17g, not %.17g", got, expected);
}

static prn_rank_test ranks(const double *a, size_t n, const double *b, size_t m)
{
    prn_rank_test t;
    prony_error error = {0};
    if (prn_rank_test_compute(&t, a, n, 1, b, m, 1, &error) != PRONY_OK) fail_msg("%s", error.message);
    return t;
}

static void test_ranks_exact(void **state)
{
    (void)state;
    const double a[] = {12, 15, 11, 18, 14}, b[] = {21, 17, 25, 19, 30, 22};
    prn_rank_test t = ranks(a, 5, b, 6);
    assert_true(t.exact);
    assert_close(t.u, 1);
    assert_close(t.p, 0.008658008658008658); /* 4 of 462 arrangements */
    t = ranks(b, 6, a, 5);
    assert_close(t.u, 29);
    assert_close(t.p, 0.008658008658008658);
    const double squares[] = {1, 4, 9, 16, 25, 36, 49, 64}, primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    t = ranks(squares, 8, primes, 12);
    assert_true(t.exact);
    assert_close(t.u, 56);
    assert_close(t.p, 0.5713582599031516);
}

static void test_ranks_normal(void **state)
{
    (void)state;
    const double a[] = {3, 5, 5, 7, 9, 9, 9, 12, 14, 20}, b[] = {5, 8, 9, 13, 15, 16, 20, 21, 25, 27, 30};
    prn_rank_test t = ranks(a, 10, b, 11);
    assert_false(t.exact);
    assert_close(t.u, 23);
    assert_close(t.p, 0.025810877935631662); /* with ties */
    double c[30], d[25];
    for (int i = 0; i < 30; i++) c[i] = i + 1;
    for (int i = 0; i < 25; i++) d[i] = (i + 1) * 1.5 + 0.25;
    t = ranks(c, 30, d, 25);
    assert_false(t.exact);
    assert_close(t.u, 290);
    assert_close(t.p, 0.1532024521436236);
}

static void test_ranks_edges(void **state)
{
    (void)state;
    const double same[] = {7, 7, 7, 7}, one[] = {1};
    assert_close(ranks(same, 4, same, 4).p, 1);
    assert_close(ranks(NULL, 0, same, 4).p, 1);
    assert_close(ranks(one, 1, same, 4).p,
                 0.13361440253771614); /* 4 ties of 5: variance 4 / 12 (6 - 60 / 20) = 1, z = 1.5 */
    prn_rank_test t;
    prony_error error = {0};
    prn_alloc_fail_at(2);
    assert_int_equal(prn_rank_test_compute(&t, same, 4, 1, same, 4, 1, &error), PRONY_OUT_OF_MEMORY);
    prn_alloc_fail_at(0);
}

static void test_welch(void **state)
{
    (void)state;
    assert_close(prn_welch_p((prn_moments){100, 10, 20}, (prn_moments){108, 14, 15}), 0.07191840698381813);
    assert_close(prn_welch_p((prn_moments){100, 1, 5}, (prn_moments){100.4, 3, 8}), 0.7360341543650997);
    assert_true(isnan(prn_welch_p((prn_moments){100, 0, 1}, (prn_moments){108, 14, 15})));
    assert_close(prn_welch_p((prn_moments){100, 0, 5}, (prn_moments){100, 0, 5}), 1);
    assert_true(prn_welch_p((prn_moments){100, 0, 5}, (prn_moments){101, 0, 5}) <= 0);
    assert_close(prn_student_p(2, 10), 0.07338803477074039);
    assert_close(prn_student_p(0.5, 3), 0.651447964848151);
    assert_close(prn_student_p(5, 1), 0.12566591637800234);
    assert_close(prn_student_p(1.96, 1e6), 0.04999606758526978);
    assert_close(prn_student_p(8, 30.5), 5.558154401836156e-09);
}

/* Two samples of 101 with a mean of 1000 and a standard deviation of 10: the ratio's logarithm has the standard error
 * 0.01 sqrt(2 / 101), and t(0.975, 200) is 1.97189622. */
static void test_welch_interval(void **state)
{
    (void)state;
    double interval[2];
    prn_welch_ratio_interval(interval, (prn_moments){1000, 10, 101}, (prn_moments){1000, 10, 101});
    double half = 1.97189622 * 0.01 * sqrt(2.0 / 101);
    assert_true(fabs(log(interval[1]) - half) < 1e-8);
    assert_true(fabs(log(interval[0]) + half) < 1e-8);
    prn_welch_ratio_interval(interval, (prn_moments){0, 10, 101}, (prn_moments){1000, 10, 101});
    assert_true(isnan(interval[0]) && isnan(interval[1]));
}

static void test_holm(void **state)
{
    (void)state;
    double p[] = {0.01, 0.04, NAN, 0.03, 0.005};
    prony_error error = {0};
    assert_int_equal(prn_holm_adjust(p, 5, &error), PRONY_OK);
    assert_close(p[4], 0.02);
    assert_close(p[0], 0.03);
    assert_close(p[3], 0.06);
    assert_close(p[1], 0.06); /* not below that of a smaller p */
    assert_true(isnan(p[2]));
}

static void intervals(double out[PRN_STATISTIC_COUNT][2], const int64_t *a, size_t n, const int64_t *b, size_t m)
{
    prony_error error = {0};
    const prn_times second = {.samples = b, .count = m};
    if (prn_times_intervals(out, 0.95, (prn_times){.samples = a, .count = n}, b ? &second : NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
}

static void test_bootstrap_of_constants(void **state)
{
    (void)state;
    const int64_t a[] = {200, 200, 200, 200}, b[] = {300, 300, 300};
    double out[PRN_STATISTIC_COUNT][2];
    intervals(out, a, 4, b, 3);
    for (int s = 0; s < PRN_STATISTIC_COUNT; s++) {
        SCENARIO(s);
        assert_close(out[s][0], 1.5);
        assert_close(out[s][1], 1.5);
    }
}

/* The mean of n independent values has a standard error of sd / sqrt(n); the log of a ratio of two adds both squared.
 * The bootstrap of the mean must agree with that to some per cent. The same values in a slow wave are not independent,
 * and the interval must say so. */
static void test_bootstrap_of_means(void **state)
{
    (void)state;
    enum { N = 400 };
    int64_t a[N], b[N], wave[N];
    uint64_t random = 1;
    for (int i = 0; i < N; i++) a[i] = wave[i] = 100000 + i * 50; /* uniform: mean 109975, sd 50 * 115.47 */
    for (int i = N - 1; i > 0; i--) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        int other = (int)((random >> 33) % (uint64_t)(i + 1));
        int64_t value = a[i];
        a[i] = a[other];
        a[other] = value;
    }
    for (int i = 0; i < N; i++) b[i] = 2 * a[i];
    double out[PRN_STATISTIC_COUNT][2], waved[PRN_STATISTIC_COUNT][2];
    intervals(out, a, N, b, N);
    intervals(waved, wave, N, b, N);
    double half = 1.959964 * 50 * 115.47 / 109975 * sqrt(2.0 / N),
           width = log(out[PRN_STATISTIC_MEAN][1] / out[PRN_STATISTIC_MEAN][0]);
    assert_true(fabs(width / (2 * half) - 1) < 0.2);
    assert_true(log(waved[PRN_STATISTIC_MEAN][1] / waved[PRN_STATISTIC_MEAN][0]) > 1.5 * width);
    assert_true(out[PRN_STATISTIC_MEAN][0] < 2 && out[PRN_STATISTIC_MEAN][1] > 2);
    assert_true(out[PRN_STATISTIC_MEDIAN][0] < 2 && out[PRN_STATISTIC_MEDIAN][1] > 2);
    intervals(waved, a, N, b, N); /* deterministic */
    assert_memory_equal(waved, out, sizeof out);
}

/* Of 3 processes the smallest and the largest value hold the median with 75 %, of 4 with 87.5 %, of 5 with 94 %: the
 * 95 % intervals of few processes must reach further. Student's bound is careful: about 97.5 % of 200 draws are
 * hits; 185 are asked. */
static void test_intervals_of_few_processes_hold_the_median(void **state)
{
    (void)state;
    enum { DRAWS = 200, MOST = 5 };
    uint64_t random = 7;
    for (size_t count = 3; count <= MOST; count++) {
        SCENARIO(count);
        int hits = 0, ratio_hits = 0, group_hits = 0;
        for (int draw = 0; draw < DRAWS; draw++) {
            double of[MOST], base[MOST], value, interval[2];
            prn_processes groups[3];
            prony_error error = {0};
            for (size_t i = 0; i < count; i++) {
                of[i] = 100 * exp(0.02 * prn_random_normal(&random));
                base[i] = 200 * exp(0.02 * prn_random_normal(&random));
            }
            const prn_processes processes = {of, count}, bases = {base, count};
            for (size_t i = 0; i < 3; i++) groups[i] = (prn_processes){of + i, 1};
            assert_int_equal(prn_process_interval(&value, interval, processes, NULL, &error), PRONY_OK);
            hits += interval[0] <= 100 && 100 <= interval[1];
            assert_int_equal(prn_process_interval(&value, interval, processes, &bases, &error), PRONY_OK);
            ratio_hits += interval[0] <= 2 && 2 <= interval[1];
            assert_int_equal(prn_grouped_interval(&value, interval, groups, 3, 3, &error), PRONY_OK);
            group_hits += interval[0] <= 100 && 100 <= interval[1];
        }
        assert_in_range(hits, 185, DRAWS);
        assert_in_range(ratio_hits, 185, DRAWS);
        assert_in_range(group_hits, 185, DRAWS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_exact),
        cmocka_unit_test(test_ranks_normal),
        cmocka_unit_test(test_ranks_edges),
        cmocka_unit_test(test_welch),
        cmocka_unit_test(test_welch_interval),
        cmocka_unit_test(test_holm),
        cmocka_unit_test(test_bootstrap_of_constants),
        cmocka_unit_test(test_bootstrap_of_means),
        cmocka_unit_test(test_intervals_of_few_processes_hold_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
