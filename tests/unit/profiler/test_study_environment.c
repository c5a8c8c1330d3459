/* The environment variables that a study keeps: all that change how fast a process runs, whole. */
#include "profiler/study/study.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_variable_is_kept_whole(void **state)
{
    (void)state;
    enum { COUNT = 100, LENGTH = 1000 };
    char name[32], value[LENGTH + 1];
    memset(value, 'v', LENGTH);
    value[LENGTH] = 0;
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "OMP_TEST_%d", i);
        assert_int_equal(setenv(name, value, 1), 0);
    }
    prony_study study = {0};
    prony_error error = {0};
    assert_int_equal(prn_study_environment_read(&study, NULL, &error), PRONY_OK);
    size_t found = 0;
    for (size_t i = 0; i < study.environment.variable_count; i++) {
        const char *equals = strchr(study.environment.variables[i], '=');
        found += strncmp(study.environment.variables[i], "OMP_TEST_", 9) == 0 && strcmp(equals + 1, value) == 0;
    }
    assert_int_equal(found, COUNT);
    prn_bump_release(&study.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_variable_is_kept_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
