/* prony_batcher_simulate against queueing theory, and against the batcher's rules. All seeds are fixed. */
#include "failure_trace.h"
#include "engine/session/batch_rules.h"
#include "prony_serve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static prony_batch_forecast simulate(const prony_batch_load *load)
{
    prony_error error = {0};
    prony_batch_forecast f = {0};
    if (prony_batcher_simulate(&f, load, &error) != PRONY_OK) fail_msg("%s", error.message);
    return f;
}

static const int64_t one_ms[] = {1000000}, two_ms[] = {2000000};

/* M/D/1: the mean wait is rho / (2 (1 - rho)) service times, and the server is busy for rho. */
static void one_server_of_fixed_times_is_busy_for_its_load(void **state)
{
    (void)state;
    const prony_service_times times = {1, one_ms, 1};
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.sessions = 1;
    load.times = &times;
    load.times_count = 1;
    load.requests = 400000;
    static const double rho[] = {0.1, 0.5, 0.8};
    for (size_t i = 0; i < sizeof rho / sizeof *rho; i++) {
        SCENARIO(i);
        load.rate = 1000 * rho[i];
        prony_batch_forecast f = simulate(&load);
        assert_int_equal(f.served, load.requests);
        assert_int_equal(f.refused, 0);
        assert_true(fabs(f.utilisation - rho[i]) < 0.01);
        assert_true(f.mean_batch == 1);
        if (rho[i] <= 0.5) assert_true(f.median_ns < 1500000);
        assert_true(f.quantile_ns >= f.median_ns && f.median_ns >= 1000000);
    }
}

/* M/M/1: sojourn times are exponential with rate mu - lambda, so every percentile is known. */
static void exponential_times_give_the_known_percentile(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    static int64_t samples[DRAWS];
    for (int i = 0; i < DRAWS; i++) samples[i] = (int64_t)(-1e6 * log((i + 0.5) / DRAWS)) + 1;
    const prony_service_times times = {1, samples, DRAWS};
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.sessions = 1;
    load.times = &times;
    load.times_count = 1;
    load.rate = 700;
    load.requests = 2000000;
    prony_batch_forecast f = simulate(&load);
    double wanted = log(100) / (1000 - 700) * 1e9;
    if (!(fabs((double)f.quantile_ns - wanted) < 0.03 * wanted))
        fail_msg("p99 %lld, theory %g", (long long)f.quantile_ns, wanted);
    wanted = log(2) / 300 * 1e9;
    assert_true(fabs((double)f.median_ns - wanted) < 0.03 * wanted);
}

/* Beyond the rate of single runs only batches keep up; beyond the rate of batches nothing does. */
static void batches_serve_what_single_runs_cannot(void **state)
{
    (void)state;
    const prony_service_times times[] = {{1, one_ms, 1}, {2, one_ms, 1}, {4, one_ms, 1}, {8, two_ms, 1}};
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.sessions = 1;
    load.max_batch = 8;
    load.times = times;
    load.times_count = 4;
    load.rate = 2000;
    load.give_up_queue = 5000;
    prony_batch_forecast f = simulate(&load);
    assert_false(f.gave_up);
    assert_true(f.mean_batch > 1.5 && f.mean_batch < 8 && f.quantile_ns < 10000000);
    load.rate = 5000;
    assert_true(simulate(&load).gave_up);
    load.sessions = 3;
    assert_false(simulate(&load).gave_up);
}

static void the_window_delays_a_lone_request_by_its_length(void **state)
{
    (void)state;
    const prony_service_times times[] = {{1, one_ms, 1}, {2, one_ms, 1}};
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.sessions = 2;
    load.max_batch = 2;
    load.max_wait_ns = 5000000;
    load.dispatch_ns = 10000;
    load.times = times;
    load.times_count = 2;
    load.rate = 1;
    load.requests = 2000;
    prony_batch_forecast f = simulate(&load);
    assert_int_equal(f.median_ns, 6010000);
    load.max_wait_ns = 0;
    assert_int_equal(simulate(&load).median_ns, 1010000);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    const prony_service_times times = {1, two_ms, 1};
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.sessions = 1;
    load.times = &times;
    load.times_count = 1;
    load.rate = 1000;
    load.max_queue = 10;
    prony_batch_forecast f = simulate(&load);
    assert_int_equal(f.longest_queue, 10);
    assert_int_equal(f.served + f.refused, 100000);
    assert_true(f.refused > 45000 && f.refused < 55000);
    assert_true(f.max_ns <= 22000000 && f.utilisation > 0.99);
}

/* A window without an end: requests run in full batches, the rest when the last one has arrived. */
static void an_endless_window_ends_with_the_arrivals(void **state)
{
    (void)state;
    const prony_service_times times[] = {{1, one_ms, 1}, {2, one_ms, 1}, {4, one_ms, 1}};
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.sessions = 2;
    load.max_batch = 4;
    load.max_wait_ns = INT64_MAX;
    load.times = times;
    load.times_count = 3;
    load.rate = 100;
    load.requests = 1003;
    prony_batch_forecast f = simulate(&load);
    assert_int_equal(f.served, 1003);
    assert_float_equal(f.mean_batch, 1003.0 / 252, 1e-9); /* 250 of four, one of two, one of one */
    assert_true(f.max_ns > 1000000 && f.max_ns < 1000000000);
    assert_true(f.utilisation > 0.005 && f.utilisation < 0.05);
}

static void loads_without_sense_are_refused(void **state)
{
    (void)state;
    const prony_service_times times = {1, two_ms, 1};
    prony_error error = {0};
    prony_batch_forecast f;
    prony_batch_load load = PRONY_BATCH_LOAD_INIT;
    load.times = &times;
    load.times_count = 1;
    load.rate = 1;
    assert_int_equal(prony_batcher_simulate(&f, &load, &error), PRONY_INVALID_ARGUMENT); /* no session */
    load.sessions = 1;
    load.rate = NAN;
    assert_int_equal(prony_batcher_simulate(&f, &load, &error), PRONY_INVALID_ARGUMENT);
    load.rate = 1;
    load.max_batch = 4;
    assert_int_equal(prony_batcher_simulate(&f, &load, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "no times of runs of 2 requests"));
    load.max_batch = 1;
    load.rate = 1e-300;
    assert_int_equal(prony_batcher_simulate(&f, &load, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "more time"));
    load.rate = 1e-9; /* four requests take as long as the clock counts, or longer */
    load.requests = 4;
    for (load.seed = 0; load.seed < 100; load.seed++) assert_int_equal(simulate(&load).served, 4);
}

static void a_deadline_halves_the_window(void **state)
{
    (void)state;
    assert_int_equal(prn_batch_window_end(1000, 500, 0), 1500);
    assert_int_equal(prn_batch_window_end(1000, 500, 1400), 1200);
    assert_int_equal(prn_batch_window_end(1000, 500, 9000), 1500);
    assert_int_equal(prn_batch_window_end(1000, INT64_MAX, 0), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server_of_fixed_times_is_busy_for_its_load),
        cmocka_unit_test(exponential_times_give_the_known_percentile),
        cmocka_unit_test(batches_serve_what_single_runs_cannot),
        cmocka_unit_test(the_window_delays_a_lone_request_by_its_length),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(an_endless_window_ends_with_the_arrivals),
        cmocka_unit_test(loads_without_sense_are_refused),
        cmocka_unit_test(a_deadline_halves_the_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
