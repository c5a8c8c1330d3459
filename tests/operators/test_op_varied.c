/* Every row of tests/operators/cases with other shapes and attributes: each kernel in each layout it takes, at one to
 * four threads and in place, against the operator's reference.
 *
 *     test_op_varied                          what `make check` runs
 *     test_op_varied --seed 7 --count 1000    variations 7 to 1006 of every row
 *     test_op_varied --seed 7 --seconds 3600  for an hour
 *     … --only WORD                           of the operators whose name contains WORD */
#include "tests/support/op_vary.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static op_case_list cases;
static uint64_t first_seed = 1, seed_count = 2;
static double seconds;
static const char *only = "";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_varied_rows_agree(void **state)
{
    (void)state;
    uint64_t passed = 0, refused = 0, failed = 0;
    double start = now();
    static op_varied varied;
    char message[2048];
    for (uint64_t seed = first_seed; seconds > 0 ? now() - start < seconds : seed - first_seed < seed_count; seed++) {
        for (size_t i = 0; i < cases.count; i++) {
            message[0] = '\0';
            if (!strstr(cases.items[i].op, only) || !op_vary(&varied, &cases, i, seed)) continue;
            op_case_outcome outcome = op_case_try_any(&varied.row, message, sizeof message);
            passed += outcome == OP_CASE_PASSED;
            refused += outcome == OP_CASE_REFUSED;
            if (outcome != OP_CASE_FAILED) continue;
            failed++;
            printf("seed %" PRIu64 ", %s:%d: CASE(\"%s\", %d, \"%s\", \"%s\"): %s\n", seed, varied.row.file,
                   varied.row.line, varied.row.op, (int)varied.row.opset, varied.attributes, varied.inputs, message);
            fflush(stdout);
        }
    }
    printf("%" PRIu64 " varied rows agree, %" PRIu64 " are refused, %" PRIu64 " differ\n", passed, refused, failed);
    assert_int_equal(failed, 0);
    assert_true(passed > 0 && (*only || passed > refused)); /* most variations should be those of the operator */
}

int main(int argc, char **argv)
{
    char message[512] = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) first_seed = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--count") == 0) seed_count = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seconds") == 0) seconds = strtod(argv[i + 1], NULL);
        if (strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    }
    if (!op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) {
        print_error("%s\n", message);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_varied_rows_agree)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    op_cases_release(&cases);
    return failures;
}
