/* Verdicts on a busy machine from simulated counters, and properties of the real counters. */
#include "failure_trace.h"
#include "base/os/disturbance.h"
#include "base/os/resident.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

/* Two processors for ten seconds. */
static prn_disturbance over_ten_seconds(double own_s, double busy_s, double stolen_s, double waited_s)
{
    prn_load_state before = {.machine = {.time_ns = 5 * SECOND, .busy_ns = 10 * SECOND, .total_ns = 40 * SECOND},
                             .own_cpu_ns = 1,
                             .waited_ns = 7},
                   after = before;
    prn_disturbance d;
    after.machine.time_ns += 10 * SECOND;
    after.machine.total_ns += 20 * SECOND;
    after.own_cpu_ns += (int64_t)(own_s * 1e9);
    after.waited_ns = waited_s < 0 ? -1 : after.waited_ns + (int64_t)(waited_s * 1e9);
    after.machine.busy_ns += (uint64_t)(busy_s * 1e9);
    after.machine.steal_ns += (uint64_t)(stolen_s * 1e9);
    after.involuntary_switches += 12;
    prn_disturbance_between(&d, &before, &after);
    assert_int_equal(d.involuntary_switches, 12);
    return d;
}

static void test_verdicts(void **state)
{
    (void)state;
    static const struct {
        double own, busy, stolen, waited;
        prn_verdict verdict;
        const char *text; /* NULL: none */
    } rows[] = {
        {20, 20, 0, 0, PRN_LOAD_QUIET, NULL},
        {10, 10.3, 0, 0.1, PRN_LOAD_QUIET, NULL},
        {10, 14, 0, 0.1, PRN_LOAD_QUIET, NULL}, /* others had idle processors to go to */
        {20, 20, 0, 30, PRN_LOAD_QUIET, NULL},  /* five threads compete for two processors */
        {10, 20, 0, 0.1, PRN_LOAD_BUSY, "other processes took 50 % of the processors: times are too high"},
        {12, 20, 0, 8, PRN_LOAD_BUSY, "other processes took 40 % of the processors: times are too high"},
        {10, 11, 0, 0.4, PRN_LOAD_BUSY, "other processes took 5 % of the processors: times are too high"},
        {10, 11, 1, 0, PRN_LOAD_BUSY, "the hypervisor gave 5 % of the processors to others: times are too high"},
        {20, 19.9, 0, 0, PRN_LOAD_QUIET, NULL}, /* ticks are coarser than the process clock */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO(i);
        char text[160] = "";
        prn_disturbance d = over_ten_seconds(rows[i].own, rows[i].busy, rows[i].stolen, rows[i].waited);
        if (d.verdict != rows[i].verdict) fail_msg("row %zu: %s", i, prn_verdict_name(d.verdict));
        assert_int_equal(prn_disturbance_text(&d, text, sizeof text), rows[i].text != NULL);
        if (rows[i].text) assert_string_equal(text, rows[i].text);
    }
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    char text[160];
    prn_load_state before = {.machine = {.time_ns = SECOND, .total_ns = SECOND}}, after = before;
    prn_disturbance d;
    after.machine.time_ns += SECOND / 100; /* too short for ticks */
    after.machine.total_ns += SECOND / 50;
    after.machine.busy_ns += SECOND / 100;
    after.waited_ns = SECOND / 400;
    prn_disturbance_between(&d, &before, &after);
    assert_true(d.others < 0 && d.steal < 0);
    assert_int_equal(d.verdict, PRN_LOAD_BUSY);
    assert_true(prn_disturbance_text(&d, text, sizeof text));
    assert_string_equal(text, "threads waited 25 % of the time for a processor: times are too high");
    after.waited_ns = SECOND / 10; /* begun before */
    prn_disturbance_between(&d, &before, &after);
    assert_true(prn_disturbance_text(&d, text, sizeof text));
    assert_string_equal(text, "threads waited longer for a processor than the runs took: times are too high");
    after.waited_ns = -1;
    prn_disturbance_between(&d, &before, &after);
    assert_int_equal(d.verdict, PRN_LOAD_UNKNOWN);
    prn_disturbance_between(&d, &after, &after); /* no time at all */
    assert_int_equal(d.verdict, PRN_LOAD_UNKNOWN);
    after.waited_ns = SECOND / 10000;
    prn_disturbance_between(&d, &before, &after);
    assert_int_equal(d.verdict, PRN_LOAD_UNKNOWN); /* absence of waiting alone does not prove a quiet machine */
    d = over_ten_seconds(20, 20, 0, -1);
    assert_int_equal(d.verdict, PRN_LOAD_QUIET);
    assert_string_equal(prn_verdict_name(PRN_LOAD_QUIET), "quiet");
    assert_string_equal(prn_verdict_name(PRN_LOAD_BUSY), "busy");
}

static void test_real_counters(void **state)
{
    (void)state;
    prn_load_state before, after;
    prn_load_state_read(&before, NULL);
    volatile uint64_t work = 0;
    for (int i = 0; i < 20000000; i++) work = work + (uint64_t)i;
    prn_load_state_read(&after, NULL);
    const prony_machine_state *first = &before.machine, *last = &after.machine;
    assert_true(last->time_ns > first->time_ns && after.own_cpu_ns > before.own_cpu_ns);
    assert_true(after.waited_ns >= before.waited_ns && last->busy_ns >= first->busy_ns);
    assert_true(first->total_ns > 0 && last->total_ns >= first->total_ns && first->total_ns >= first->busy_ns);
}

/* Reports and blocks of a study compute their shares in the same place. */
static void test_shares(void **state)
{
    (void)state;
    prony_machine_state before = {.busy_ns = SECOND, .total_ns = 2 * SECOND}, after = before;
    after.total_ns += 10 * SECOND;
    after.busy_ns += 7 * SECOND;
    after.steal_ns += SECOND;
    prn_machine_shares s = prn_machine_shares_between(&before, &after, 4 * SECOND);
    assert_true(fabs(s.own - 0.4) < 1e-9 && fabs(s.others - 0.3) < 1e-9 && fabs(s.steal - 0.1) < 1e-9);
    s = prn_machine_shares_between(&before, &after, 8 * SECOND); /* more than the ticks say */
    assert_true(s.others >= 0 && s.others <= 0);
    after.total_ns = before.total_ns + SECOND / 10;
    s = prn_machine_shares_between(&before, &after, 0);
    assert_true(s.own < 0 && s.others < 0 && s.steal < 0);
    prony_machine_state whole, times;
    prn_machine_state_read(&whole);
    prn_machine_times_read(&times, NULL);
    assert_true(times.total_ns >= whole.total_ns && times.total_ns - whole.total_ns < 1000 * (uint64_t)SECOND);
    assert_true(whole.context_switches > 0 && times.context_switches == 0 && isnan(times.temperature_c));
}

static void test_resident_memory(void **state)
{
    (void)state;
    const size_t bytes = 32 << 20;
    prn_resident before, after;
    assert_true(prn_resident_read(&before));
    char *block = malloc(bytes);
    assert_non_null(block);
    memset(block, 1, bytes);
    assert_true(prn_resident_read(&after));
    assert_true(block[bytes / 2] == 1);
    free(block);
    assert_true(before.library_bytes > 100000);
    assert_true(after.anonymous_bytes >= before.anonymous_bytes + bytes - (1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts), cmocka_unit_test(test_what_is_not_known),
                                       cmocka_unit_test(test_real_counters), cmocka_unit_test(test_shares),
                                       cmocka_unit_test(test_resident_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
