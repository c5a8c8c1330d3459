/* Messages and statuses of test programs: this one starts itself to fail (--fail) or skip (--skip) on purpose. */
#include "failure_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

static const char *program;

/* A frame of its own with every compiler: neither inlined nor left by a tail call. */
static __attribute__((noinline)) void helper(int value)
{
    assert_int_equal(value, 1);
    __asm__ volatile("");
}

static void fails_in_a_helper(void **state)
{
    (void)state;
    const char *const rows[] = {"first row", "second row"};
    for (int outer = 0; outer < 1; outer++) {
        SCENARIO(outer);
        for (int k = 0; k < 2; k++) {
            SCENARIO_NAMED(k, rows[k]);
            helper(k + 1);
        }
    }
}

static void fails_outside_of_scenarios(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        SCENARIO(ended);
    }
    helper(7);
}

static void skips(void **state)
{
    (void)state;
    skip();
}

static void passes(void **state)
{
    (void)state;
}

static int skip_on_purpose(bool all)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skips),
        cmocka_unit_test(all ? skips : passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static int status_of(const char *option)
{
    char command[1200];
    snprintf(command, sizeof command, "'%s' %s >/dev/null 2>&1", program, option);
    const int status = system(command); // NOLINT(concurrency-mt-unsafe)
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_program_that_skips_every_test_does_not_pass(void **state)
{
    (void)state;
    assert_int_equal(status_of("--skip"), 77);
    assert_int_equal(status_of("--skip-one"), 0);
    assert_int_equal(status_of("--fail"), 2);
}

static int fail_on_purpose(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_in_a_helper),
        cmocka_unit_test(fails_outside_of_scenarios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static void messages_name_callers_and_scenarios(void **state)
{
    (void)state;
    char command[1200], text[16384];
    snprintf(command, sizeof command, "'%s' --fail 2>&1", program);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    text[fread(text, 1, sizeof text - 1, output)] = 0;
    assert_int_not_equal(pclose(output), 0);
    char *second = strstr(text, "[ RUN      ] fails_outside_of_scenarios");
    assert_non_null(second);
    *second++ = 0;
    assert_non_null(strstr(text, "scenario outer = 0\n"));
    assert_non_null(strstr(text, "scenario k = 1: second row\n"));
    assert_null(strstr(second, "scenario "));
#ifdef __GLIBC__
    if (system("command -v addr2line >/dev/null") != 0) { // NOLINT(concurrency-mt-unsafe)
        print_message("No addr2line (Debian: binutils): callers of failing lines are not tested.\n");
        return;
    }
    assert_non_null(strstr(text, "in helper at test_cmocka_hooks.c:20\n"));
    assert_non_null(strstr(text, "in fails_in_a_helper at test_cmocka_hooks.c:32\n"));
    assert_non_null(strstr(second, "in fails_outside_of_scenarios at test_cmocka_hooks.c:43\n"));
#endif
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "--fail") == 0) return fail_on_purpose();
    if (argc > 1) return skip_on_purpose(strcmp(argv[1], "--skip") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_skips_every_test_does_not_pass),
        cmocka_unit_test(messages_name_callers_and_scenarios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
