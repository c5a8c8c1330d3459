/* A failed assertion of cmocka names its own line, which often stands in a helper function of many tests. Every test
 * program is linked with failure_trace.c. It prints the callers of that line, and the scenarios that they are in. */
#ifndef PRN_TESTS_SUPPORT_FAILURE_TRACE_H
#define PRN_TESTS_SUPPORT_FAILURE_TRACE_H

#include <stddef.h>

/* Names the row of a table, or the trip of a loop, up to the end of the enclosing block: SCENARIO(k) prints "k = 3",
 * SCENARIO_NAMED(k, rows[k].op) prints "k = 3: Conv". Scenarios nest. */
#define SCENARIO(index) SCENARIO_NAMED(index, NULL)
#define SCENARIO_NAMED(index, name) SCENARIO_AT(__LINE__, index, name)
#define SCENARIO_AT(line, index, name) SCENARIO_ON(line, index, name)
#define SCENARIO_ON(line, index, name)                                                                                 \
    __attribute__((cleanup(scenario_end), unused)) const size_t scenario_of_##line =                                   \
        scenario_begin(#index, (long long)(index), name)

/* Returns the number of scenarios around this one. The texts must live until its end. */
size_t scenario_begin(const char *index, long long value, const char *name);
void scenario_end(const size_t *around);

#endif
