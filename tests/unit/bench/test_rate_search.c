/* The search for the largest rate against simulated services on a clock of their own, whose true rate is known from
 * very long phases. All seeds are fixed. */
#include "failure_trace.h"
#include "bench/load/rate_search.h"

#include "profiler/statistics/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SEARCHES 50
#define PERCENTILE 0.99
#define WHOLE 10.0 /* seconds */
#define SHORT (WHOLE / 8)

/* Poisson arrivals, one queue, so many servers; a request takes `fixed` seconds and an exponential time beside. */
typedef struct service {
    const char *name;
    double fixed, scattered, bound;
    int servers;
} service;

static const service services[] = {
    {"one server, fixed times", 0.001, 0, 0.01, 1},
    {"one server, times that scatter", 0.0005, 0.0005, 0.02, 1},
    {"four servers", 0.002, 0.001, 0.025, 4},
};
#define SERVICES (sizeof services / sizeof services[0])

static rate_count serve(const service *s, double rate, double seconds, uint64_t *random)
{
    rate_count c = {0, 0};
    double due = 0, free_at[4] = {0};
    while (due < seconds) {
        int next = 0;
        due -= log(prn_random_unit(random)) / rate;
        for (int i = 1; i < s->servers; i++)
            if (free_at[i] < free_at[next]) next = i;
        double begin = due > free_at[next] ? due : free_at[next];
        free_at[next] = begin + s->fixed - s->scattered * log(prn_random_unit(random));
        c.queries++;
        c.late += free_at[next] - due > s->bound;
    }
    return c;
}

static double capacity_of(const service *s)
{
    return s->servers / (s->fixed + s->scattered);
}

/* Halved to 0.1 % by phases of 2000 s. */
static double true_rate(const service *s)
{
    double low = 0, high = capacity_of(s);
    while (high - low > 0.001 * high) {
        double middle = (low + high) / 2;
        uint64_t random = 77;
        rate_count c = serve(s, middle, 2000, &random);
        if ((double)c.late <= (1 - PERCENTILE) * (double)c.queries)
            low = middle;
        else
            high = middle;
    }
    return low;
}

typedef struct simulated {
    const service *service;
    uint64_t random;
    double seconds;     /* of the clock that there is not */
    int phases, end_at; /* end_at: of the phases, with a failure; 0: never */
    double largest_kept, smallest_missed;
} simulated;

static int phase(void *user, double rate, bool whole, rate_count *out)
{
    simulated *s = user;
    if (++s->phases == s->end_at) return 7;
    *out = serve(s->service, rate, whole ? WHOLE : SHORT, &s->random);
    s->seconds += whole ? WHOLE : SHORT;
    if (whole && load_verdict(*out, PERCENTILE) == RATE_KEPT) s->largest_kept = fmax(s->largest_kept, rate);
    return 0;
}

static void test_known_rates(void **state)
{
    (void)state;
    for (size_t k = 0; k < SERVICES; k++) {
        SCENARIO(k);
        double truth = true_rate(&services[k]), worst = 0, seconds = 0;
        int within = 0, held = 0, precise = 0, reliable = 0;
        for (int i = 0; i < SEARCHES; i++) {
            simulated sim = {.service = &services[k], .random = (uint64_t)(100 * k) + (uint64_t)i};
            rate_search search = {1.02 * capacity_of(&services[k]), PERCENTILE, RATE_PRECISION, phase, &sim};
            rate_found found;
            assert_int_equal(rate_search_run(&search, &found), 0);
            assert_true(found.interval[0] <= found.rate && found.rate <= found.interval[1]);
            assert_true(fabs(found.kept - sim.largest_kept) < 1e-9);
            double wrong = found.rate / truth - 1;
            if (fabs(wrong) > fabs(worst)) worst = wrong;
            within += fabs(wrong) <= RATE_PRECISION;
            held += found.interval[0] <= truth && truth <= found.interval[1];
            precise += found.precise;
            reliable += found.kept > 0.85 * truth && found.kept < 1.05 * truth;
            seconds += sim.seconds / SEARCHES;
        }
        printf("%s: true rate %.1f, found within %.0f %% in %d of %d (worst %.1f %%), in the interval in %d, precise "
               "in %d, one "
               "that is kept in %d; %.0f s each\n",
               services[k].name, truth, 100 * RATE_PRECISION, within, SEARCHES, 100 * worst, held, precise, reliable,
               seconds);
        assert_true(within >= SEARCHES - 2 && held >= SEARCHES * 9 / 10 && reliable >= SEARCHES * 8 / 10);
    }
}

/* A service of which it is certain what it does. */
static int step_phase(void *user, double rate, bool whole, rate_count *out)
{
    size_t queries = whole ? 8000 : 1000;
    *out = (rate_count){queries, rate <= *(const double *)user ? 0 : queries / 2};
    return 0;
}

static void test_ends(void **state)
{
    (void)state;
    static const double limits[] = {1e9, 1000, 999, 501, 123.4, 7, 0.2};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        SCENARIO(i);
        double limit = limits[i];
        for (double precision = 0.02; precision < 0.2; precision *= 2) {
            rate_search search = {1000, PERCENTILE, precision, step_phase, &limit};
            rate_found found;
            assert_int_equal(rate_search_run(&search, &found), 0);
            if (limit >= 1000) {
                assert_true(found.rate >= 1000 && isinf(found.interval[1]) && found.kept >= 1000 && found.precise);
                continue;
            }
            if (fabs(found.rate / limit - 1) > 2 * precision) fail_msg("%g by %g: %g", limit, precision, found.rate);
            assert_true(found.kept > 0 && found.kept <= limit);
        }
    }
    double nothing = 0;
    rate_search search = {1000, PERCENTILE, 0.05, step_phase, &nothing};
    rate_found found;
    assert_int_equal(rate_search_run(&search, &found), 0);
    assert_true(found.rate <= 0 && found.kept <= 0 && !found.precise);
}

static void test_late_queries(void **state)
{
    (void)state;
    assert_int_equal(load_fewest_queries(0.99), 662);
    for (size_t n = 662; n < 20000; n = n * 3 / 2) {
        SCENARIO(n);
        int64_t allowed = load_allowed_late(n, 0.99);
        assert_true(allowed >= 1 && (double)allowed < 0.01 * (double)n);
        assert_int_equal(load_verdict((rate_count){n, (size_t)allowed}, 0.99), RATE_KEPT);
        assert_int_equal(load_verdict((rate_count){n, (size_t)allowed + 1}, 0.99), RATE_UNDECIDED);
        assert_int_equal(load_verdict((rate_count){n, n / 100 + 1}, 0.99), RATE_MISSED);
    }
    assert_int_equal(load_verdict((rate_count){300, 0}, 0.99), RATE_UNDECIDED); /* too few */
}

static void test_phases_that_fail(void **state)
{
    (void)state;
    for (int end = 1; end < 16; end++) {
        SCENARIO(end);
        simulated sim = {.service = services, .random = 3, .end_at = end};
        rate_search search = {1000, PERCENTILE, RATE_PRECISION, phase, &sim};
        rate_found found;
        assert_int_equal(rate_search_run(&search, &found), 7);
        assert_int_equal(sim.phases, end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_rates), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_late_queries), cmocka_unit_test(test_phases_that_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
