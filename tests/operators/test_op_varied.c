/* Every row of tests/operators/cases with other shapes and attributes: each kernel in each layout it takes, at one to
 * four threads and in place, against the operator's reference.
 *
 *     test_op_varied                          what `make check` runs
 *     test_op_varied --seed 7 --count 1000    variations 7 to 1006 of every row
 *     test_op_varied --seed 7 --seconds 3600  for an hour
 *     … --only WORD                           of the operators whose name contains WORD */
#include "tests/support/seed_options.h"
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
static seed_options options = {.first = 1, .count = 2};
static const char *only = "";

static void test_varied_rows_agree(void **state)
{
    (void)state;
    uint64_t passed = 0, refused = 0, failed = 0;
    double start = seed_options_now();
    static op_varied varied;
    char message[2048];
    for (uint64_t seed = options.first; seed_options_include(&options, seed, start); seed++) {
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
    const int status = seed_options_read(&options, argc, argv, NULL, NULL);
    if (status >= 0) return status;
    if (options.only) only = options.only;
    if (!op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) {
        print_error("%s\n", message);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_varied_rows_agree)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    op_cases_release(&cases);
    return failures;
}
