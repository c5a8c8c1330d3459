/* Every row of tests/operators/cases as a model, and spoiled in every way that op_distort knows: wrong types, ranks, counts,
 * attributes and data. Whatever comes of it is a result or a refusal that names node and operator, soon and within the
 * memory allowed. Without arguments a fixed sample of the ways is tried. `test_op_distorted WORD` tries all of them on
 * the operators whose name contains WORD, `test_op_distorted WORD -v` also tells each refusal. */
#include "tests/support/op_case_model.h"
#include "tests/support/op_distort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { SANITIZED = 1, SLOW_SECONDS = 60 };
#else
enum { SANITIZED = 0, SLOW_SECONDS = 10 };
#endif

static op_case_list cases;
static const char *only = "";
static bool verbose, sample;
enum { SAMPLE_ONE_OF = SANITIZED ? 211 : 61 };

static int load_cases(void **state)
{
    char message[512] = "";
    (void)state;
    if (op_cases_load(&cases, PRN_SOURCE_DIR "/tests/operators/cases", message, sizeof message)) return 0;
    print_error("%s\n", message);
    return -1;
}

static int release_cases(void **state)
{
    (void)state;
    op_cases_release(&cases);
    return 0;
}

/* The model as a whole may be refused before any node is looked at; then its file is named. */
static bool is_clear(const op_case_node *row, prony_status status, const prony_error *error)
{
    if (status == PRONY_INTERNAL || status == PRONY_OUT_OF_MEMORY || error->status != status) return false;
    if (!strstr(error->message, row->node.op_type)) return false;
    return status == PRONY_UNSUPPORTED || strstr(error->message, OP_CASE_NODE_NAME);
}

static bool try_one(const op_case *row, size_t k, op_case_form form, bool *more)
{
    op_case_node node;
    prony_error error = {0};
    char what[96] = "", message[512] = "";
    if (!op_case_parse(&node, row, message, sizeof message)) fail_msg("%s:%d: %s", row->file, row->line, message);
    *more = op_distort(&node, k, what, sizeof what);
    bool good = true;
    if (*more) {
        clock_t start = clock();
        prony_status status = op_case_try(&node, form, &error);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        good = (status == PRONY_OK || is_clear(&node, status, &error)) && seconds < SLOW_SECONDS;
        if (!good || (verbose && status != PRONY_OK))
            print_message("%s %s:%d: %s, %s, form %d: status %d after %.1f s: %s\n", good ? "refused" : "WRONG",
                          row->file, row->line, row->op, what, (int)form, (int)status, seconds, error.message);
    }
    op_case_node_release(&node);
    return good;
}

static void test_distorted_rows_end_well(void **state)
{
    size_t tried = 0, wrong = 0;
    (void)state;
    for (size_t i = 0; i < cases.count; i++) {
        bool more = strstr(cases.items[i].op, only) != NULL;
        for (size_t k = sample ? i * 7919 % SAMPLE_ONE_OF : 0; more; k += sample ? SAMPLE_ONE_OF : 1) {
            for (int form = 0; form < OP_CASE_FORMS; form++)
                wrong += !try_one(&cases.items[i], k, (op_case_form)form, &more);
            tried += more;
        }
    }
    print_message("%zu ways, each in %d forms\n", tried, OP_CASE_FORMS);
    assert_true(tried > 0);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct rlimit memory = {(rlim_t)3 << 30, (rlim_t)3 << 30};
    if (argc > 1) only = argv[1];
    verbose = argc > 2;
    sample = argc < 2;
    if (!SANITIZED && setrlimit(RLIMIT_AS, &memory) != 0) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distorted_rows_end_well)};
    return cmocka_run_group_tests(tests, load_cases, release_cases);
}
