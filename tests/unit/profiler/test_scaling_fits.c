/* Laws of scaling against published fits, and time series against known results. */
#include "failure_trace.h"
#include "simulated_times.h"

#include "base/memory/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_near(double got, double expected, double off)
{
    if (!(fabs(got - expected) <= off)) fail_msg("%.9g, not %.9g", got, expected);
}

/* The SPEC SDM 91 benchmark (N. J. Gunther, Guerrilla Capacity Planning, 2007), with the coefficients that the R
 * package usl documents for it: gamma 89.9952382, alpha 0.0277285, beta 0.0001044, a peak at 96.5. */
static void test_usl_published(void **state)
{
    (void)state;
    const double load[] = {1, 18, 36, 72, 108, 144, 216},
                 throughput[] = {64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2};
    prn_law_fit fit;
    prn_law_fit_points(&fit, PRN_LAW_USL, load, throughput, 7);
    assert_true(fit.known);
    assert_near(fit.scale, 89.9952, 0.01);
    assert_near(fit.alpha, 0.0277285, 2e-6);
    assert_near(fit.beta, 0.0001044, 1e-7);
    assert_near(fit.peak, 96.5, 0.1);
}

/* A ray tracer on up to 64 processors, from the same sources: gamma 21.848843, alpha 0.057771, beta 0. Without
 * coherency the USL is Amdahl's law, and its limit 1 / alpha. */
static void test_usl_without_coherency(void **state)
{
    (void)state;
    const double processors[] = {1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64},
                 throughput[] = {20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310};
    prn_law_fit usl, amdahl;
    prn_law_fit_points(&usl, PRN_LAW_USL, processors, throughput, 11);
    prn_law_fit_points(&amdahl, PRN_LAW_AMDAHL, processors, throughput, 11);
    assert_near(usl.scale, 21.848843, 1e-3);
    assert_near(usl.alpha, 0.057771, 1e-5);
    assert_near(usl.beta, 0, 1e-9);
    assert_true(isinf(usl.peak));
    assert_near(amdahl.alpha, usl.alpha, 1e-6);
    assert_near(usl.limit, 1 / 0.057771, 0.01);
    assert_true(isnan(amdahl.peak));
}

static void test_exact_points(void **state)
{
    (void)state;
    const double n[] = {1, 2, 3, 4, 6, 8};
    double amdahl[6], gustafson[6], usl[6];
    for (int i = 0; i < 6; i++) {
        amdahl[i] = 50 / (0.1 + 0.9 / n[i]);
        gustafson[i] = 50 * (n[i] - 0.2 * (n[i] - 1));
        usl[i] = 50 * n[i] / (1 + 0.05 * (n[i] - 1) + 0.02 * n[i] * (n[i] - 1));
    }
    prn_law_fit fit;
    prn_law_fit_points(&fit, PRN_LAW_AMDAHL, n, amdahl, 6);
    assert_near(fit.alpha, 0.1, 1e-9);
    assert_near(fit.limit, 10, 1e-6);
    assert_near(fit.rms, 0, 1e-9);
    prn_law_fit_points(&fit, PRN_LAW_GUSTAFSON, n, gustafson, 6);
    assert_near(fit.alpha, 0.2, 1e-9);
    assert_true(isinf(fit.limit));
    prn_law_fit_points(&fit, PRN_LAW_USL, n, usl, 6);
    assert_near(fit.alpha, 0.05, 1e-7);
    assert_near(fit.beta, 0.02, 1e-8);
    assert_near(fit.peak, sqrt(0.95 / 0.02), 1e-4);
}

static void test_not_enough_points(void **state)
{
    (void)state;
    const double n[] = {1, 1, 2, 2, 4, 4}, x[] = {10, 10, 19, 19, 30, 30};
    prn_law_fit fit;
    prn_law_fit_points(&fit, PRN_LAW_AMDAHL, n, x, 4);
    assert_false(fit.known);
    prn_law_fit_points(&fit, PRN_LAW_AMDAHL, n, x, 6);
    assert_true(fit.known);
    prn_law_fit_points(&fit, PRN_LAW_USL, n, x, 6);
    assert_false(fit.known);
}

/* (1 / S - 1 / n) / (1 - 1 / n), by hand. */
static void test_karp_flatt(void **state)
{
    (void)state;
    assert_near(prn_karp_flatt(1.95, 2), 0.0256, 2e-4);
    assert_near(prn_karp_flatt(3.79, 4), 0.0185, 2e-4);
    assert_near(prn_karp_flatt(2, 2), 0, 1e-12);
    assert_near(prn_karp_flatt(1, 4), 1, 1e-12);
    assert_true(prn_karp_flatt(2.2, 2) < 0);
}

static void test_fit_intervals(void **state)
{
    (void)state;
    enum { POINTS = 6, PROCESSES = 10, STUDIES = 40 };
    const double n[POINTS] = {1, 2, 3, 4, 6, 8};
    uint64_t random = 5;
    int held = 0;
    for (int study = 0; study < STUDIES; study++) {
        SCENARIO(study);
        double values[POINTS][PROCESSES];
        prn_processes processes[POINTS];
        for (int i = 0; i < POINTS; i++) {
            for (int p = 0; p < PROCESSES; p++)
                values[i][p] = 100 / (0.08 + 0.92 / n[i]) * (1 + 0.01 * prn_random_normal(&random));
            processes[i] = (prn_processes){values[i], PROCESSES};
        }
        prn_law_fit fit;
        assert_int_equal(prn_law_fit_processes(&fit, PRN_LAW_AMDAHL, n, processes, POINTS, NULL), PRONY_OK);
        assert_true(fit.known && fit.alpha_ci95[0] <= fit.alpha && fit.alpha <= fit.alpha_ci95[1]);
        held += fit.alpha_ci95[0] <= 0.08 && 0.08 <= fit.alpha_ci95[1];
    }
    assert_in_range(held, 36, STUDIES);
}

/* An autoregression remembers (1 + keep) / (1 - keep) values. */
static void test_memory(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    int64_t *samples = calloc(COUNT, sizeof *samples);
    assert_non_null(samples);
    double memory;
    uint64_t random = 6;
    const simulated_noise white = {0.02, 0, 0, 0, 0}, kept = {0, 0.02, 0.8, 0, 0}, drifts = {0.01, 0, 0, 0.2, 0};
    simulate_times(samples, COUNT, 1e6, &white, &random);
    assert_int_equal(prn_series_memory(&memory, samples, 2000, NULL), PRONY_OK);
    assert_near(memory, 1, 0.25);
    simulate_times(samples, COUNT, 1e6, &kept, &random);
    assert_int_equal(prn_series_memory(&memory, samples, 2000, NULL), PRONY_OK);
    assert_near(memory, 9, 2.5);
    assert_int_equal(prn_series_memory(&memory, samples, COUNT, NULL), PRONY_OK); /* by stretches */
    assert_near(memory, 9, 2.5);
    random = 11;
    simulate_times(samples, 500, 1e6, &drifts, &random);
    assert_int_equal(prn_series_memory(&memory, samples, 500, NULL), PRONY_OK);
    assert_true(memory > 50);
    for (int i = 0; i < 500; i++) samples[i] = 7;
    assert_int_equal(prn_series_memory(&memory, samples, 500, NULL), PRONY_OK);
    assert_near(memory, 1, 0);
    free(samples);
}

static void test_change_points(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    const simulated_noise noise = {0.01, 0.005, 0.5, 0, 0};
    int64_t samples[COUNT];
    size_t at[8], found;
    uint64_t random = 7;
    int alarms = 0;
    for (int series = 0; series < 200; series++) {
        SCENARIO(series);
        simulate_times(samples, COUNT, 1e6, &noise, &random);
        assert_int_equal(prn_change_points(at, 8, &found, samples, COUNT, 0.02, NULL), PRONY_OK);
        alarms += found > 0;
    }
    assert_in_range(alarms, 0, 10);
    simulate_times(samples, COUNT, 1e6, &noise, &random);
    for (int i = 100; i < COUNT; i++) samples[i] += i < 220 ? 80000 : -50000;
    assert_int_equal(prn_change_points(at, 8, &found, samples, COUNT, 0.02, NULL), PRONY_OK);
    assert_int_equal(found, 2);
    assert_in_range(at[0], 98, 102);
    assert_in_range(at[1], 218, 222);
    assert_int_equal(prn_change_points(at, 8, &found, samples, 15, 0.02, NULL), PRONY_OK);
    assert_int_equal(found, 0);
    prn_alloc_fail_at(1);
    assert_int_equal(prn_change_points(at, 8, &found, samples, COUNT, 0.02, NULL), PRONY_OUT_OF_MEMORY);
    prn_alloc_fail_at(0);
}

/* SciPy's t.ppf(0.975, 9) and (0.95, 1), norm.cdf(-1.96). */
static void test_distributions(void **state)
{
    (void)state;
    assert_near(prn_student_bound(0.05, 9), 2.2621571628, 1e-8);
    assert_near(prn_student_bound(0.1, 1), 6.3137515147, 1e-7);
    assert_near(prn_normal_below(-1.96), 0.0249978951, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usl_published), cmocka_unit_test(test_usl_without_coherency),
        cmocka_unit_test(test_exact_points),  cmocka_unit_test(test_not_enough_points),
        cmocka_unit_test(test_karp_flatt),    cmocka_unit_test(test_fit_intervals),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_change_points),
        cmocka_unit_test(test_distributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
