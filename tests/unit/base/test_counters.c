/* Counting events of all threads. Software events stand in for the hardware's, which many machines do not show. */
#include "base/cpu/counters.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_sums_grow(void **state)
{
    (void)state;
    static const prn_counter_event software[PRN_COUNTERS] = {{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
                                                             {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
                                                             {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY}};
    prn_counters *counters;
    prony_error error = {0};
    char why[160];
    uint64_t before[PRN_COUNTERS], after[PRN_COUNTERS];
    assert_int_equal(prn_counters_open(&counters, software, why, &error), PRONY_OK);
    if (!counters) { /* a container may forbid them all */
        assert_true(*why);
        skip();
    }
    assert_string_equal(why, "");
    prn_counters_read(counters, before);
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 3000000; i++) sum = sum + i;
    prn_counters_read(counters, after);
    assert_true(after[0] > before[0]);
    assert_true(after[1] >= before[1]);
    prn_counters_close(counters);
    prn_counters_close(NULL);
}

/* An event that no kernel has. */
static void test_says_why(void **state)
{
    (void)state;
    static const prn_counter_event none[PRN_COUNTERS] = {{PERF_TYPE_HARDWARE, 9999}, {0, 0}, {0, 0}};
    prn_counters *counters;
    prony_error error = {0};
    char why[160];
    assert_int_equal(prn_counters_open(&counters, none, why, &error), PRONY_OK);
    assert_null(counters);
    assert_non_null(strstr(why, "hardware counters"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums_grow), cmocka_unit_test(test_says_why)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
