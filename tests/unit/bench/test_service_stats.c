/* The service's counts and times on a clock of the test's own. */
#include "failure_trace.h"
#include "bench/serve/service_stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static void add(service_stats *s, int status, int64_t latency_ns, int64_t now_ns)
{
    stats_request r = {
        .status = status, .latency_ns = latency_ns, .queue_ns = latency_ns / 2, .run_ns = 1000, .samples = 3};
    stats_add_request(s, &r, now_ns);
}

static void expect_near(int64_t got, double wanted)
{
    if (!(fabs((double)got - wanted) <= 0.032 * wanted)) fail_msg("%lld, not near %g", (long long)got, wanted);
}

/* Percentiles are within the width of a bucket, from microseconds to minutes. */
static void percentiles_are_near(void **state)
{
    (void)state;
    service_stats *s = stats_create();
    int64_t now_ns = 1000 * SECOND;
    for (int64_t unit = 2000; unit < 60 * SECOND; unit *= 7) {
        now_ns += 100 * SECOND; /* a window of its own */
        for (int i = 1; i <= 1000; i++) add(s, 200, unit * (1000 + i) / 1000, now_ns);
        stats_summary sum = stats_summarize(s, 10, now_ns + SECOND);
        assert_int_equal(sum.requests, 1000);
        expect_near(sum.p50, 1.5 * (double)unit);
        expect_near(sum.p90, 1.9 * (double)unit);
        expect_near(sum.p99, 1.99 * (double)unit);
        expect_near(sum.queue_p50, 0.75 * (double)unit);
        assert_int_equal(sum.max, 2 * unit);
    }
    stats_free(s);
}

static void seconds_leave_the_window(void **state)
{
    (void)state;
    service_stats *s = stats_create();
    assert_int_equal(stats_summarize(s, 10, 5 * SECOND).p99, -1);
    for (int second = 0; second < 200; second++)
        for (int i = 0; i < second % 3 + 1; i++) add(s, i ? 429 : 200, 1000000, second * SECOND + 7);
    stats_summary sum = stats_summarize(s, 9, 200 * SECOND); /* 191 to 199 */
    assert_int_equal(sum.requests, 18);
    assert_int_equal(sum.failed, 9);
    assert_true(sum.rate == 2 && sum.failed_share == 0.5 && sum.samples_rate == 3);
    assert_int_equal(stats_of_second(s, 1, 200 * SECOND).requests, 199 % 3 + 1);
    assert_int_equal(stats_of_second(s, 0, 200 * SECOND).requests, 0);
    assert_int_equal(stats_summarize(s, 10, 300 * SECOND).requests, 0);
    assert_int_equal(s->statuses[0], 200);
    assert_int_equal(s->latency.count, 200);
    stats_add_run(s, 4, 500000000, 400 * SECOND);
    stats_add_run(s, 5, 500000000, 400 * SECOND);
    sum = stats_summarize(s, 1, 401 * SECOND);
    assert_true(sum.mean_batch == 4.5 && sum.busy == 1);
    assert_int_equal(s->sizes[2], 1);
    assert_int_equal(s->sizes[3], 1);
    stats_free(s);
}

static void sample(service_stats *s, int64_t a_ns, int64_t b_ns, const char *second)
{
    const prony_sample_row rows[] = {{0, "a", "Conv", "k", a_ns}, {1, second, "Relu", "k", b_ns}};
    const prony_sample row = {.operators = rows, .operator_count = 2, .arena_bytes = 10};
    stats_add_sample(s, &row);
}

static void shares_follow_the_samples(void **state)
{
    (void)state;
    service_stats *s = stats_create();
    stats_operator top[2];
    sample(s, 300, 100, "b");
    assert_int_equal(stats_top_operators(s, top, 2), 2);
    assert_string_equal(top[0].name, "a");
    assert_true(fabs(top[0].share - 0.75) < 1e-9);
    for (int i = 0; i < 60; i++) sample(s, 100, 300, "b");
    assert_int_equal(stats_top_operators(s, top, 2), 2);
    assert_string_equal(top[0].name, "b");
    assert_true(fabs(top[0].share - 0.75) < 1e-3);
    stats_add_reload(s, true); /* another model: nothing of the old one stays */
    sample(s, 100, 100, "c");
    assert_int_equal(stats_top_operators(s, top, 2), 2);
    assert_true(top[0].share == 0.5 && top[1].share == 0.5);
    assert_int_equal(stats_top_operators(s, top, 1), 1);
    stats_free(s);
}

/* Quantiles are interpolated: a median that moves by 1 % is seen, although a bucket is 3 % wide. */
static void totals_are_fine(void **state)
{
    (void)state;
    service_stats *s = stats_create();
    for (int64_t unit = 2000; unit < 60 * SECOND; unit = unit * 7 + 13) {
        stats_totals totals = {0};
        stats_request r = {.status = 200, .totals = &totals};
        for (int i = 1; i <= 1000; i++) {
            r.latency_ns = unit + unit * i / 1000;
            stats_add_request(s, &r, SECOND);
        }
        r.status = 504;
        stats_add_request(s, &r, SECOND);
        const stats_totals t = stats_copy_totals(s, &totals);
        assert_int_equal(t.answered, 1000);
        assert_int_equal(t.least_ns, unit + unit / 1000);
        assert_int_equal(t.most_ns, 2 * unit);
        assert_true(fabs(t.sum_ns / (1.5005 * 1000 * (double)unit) - 1) < 1e-3);
        static const double parts[] = {0.01, 0.3, 0.5, 0.9, 0.999};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            assert_true(fabs(stats_totals_quantile(&t, parts[i]) / ((1 + parts[i]) * (double)unit) - 1) < 0.003);
    }
    stats_totals one = {0};
    stats_add_request(s, &(stats_request){.status = 200, .latency_ns = 777, .totals = &one}, SECOND);
    assert_true(stats_totals_quantile(&one, 0.5) == 777);
    stats_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_near),
        cmocka_unit_test(seconds_leave_the_window),
        cmocka_unit_test(shares_follow_the_samples),
        cmocka_unit_test(totals_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
