/* Every row of tests/operators/cases as a model, and spoiled in every way that op_distort knows: wrong types, ranks,
 * counts, attributes and data. Whatever comes of it is a result or a refusal that names node and operator, soon and
 * within the memory allowed; its report is written as well. Without arguments a fixed sample of the ways is tried.
 *
 *     test_op_distorted WORD                  all ways on the operators whose name contains WORD
 *     test_op_distorted WORD -v               the same, and tells each refusal
 *     test_op_distorted WORD FIRST COUNT      COUNT random mixtures of ways, from seed FIRST, on those operators
 *                                             (hours by hand) */
#include "tests/support/op_case_model.h"
#include "tests/support/op_distort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED_BUILD 1
enum { SANITIZED = 1, SLOW_SECONDS = 60 };
#else
#define SANITIZED_BUILD 0
enum { SANITIZED = 0, SLOW_SECONDS = 10 };
#endif

static op_case_list cases;
static const char *only = "";
static bool verbose, sample;
static uint64_t first;
static size_t mixtures; /* 0: the ways one by one */
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

/* The loader may refuse the model as a whole before it looks at a node; the message then names the file. An input of
 * the wrong size is refused by its name. */
static bool is_clear(const op_case_node *row, prony_status status, const prony_error *error)
{
    if (status == PRONY_INTERNAL || status == PRONY_OUT_OF_MEMORY || error->status != status) return false;
    if (strstr(error->message, "input 'x") &&
        (strstr(error->message, "too large") || strstr(error->message, "no known size")))
        return true;
    if (strstr(error->message, "tensor 'x") && strstr(error->message, "overflows")) return true;
    if (!strstr(error->message, row->node.op_type)) return false;
    return status == PRONY_UNSUPPORTED || strstr(error->message, OP_CASE_NODE_NAME);
}

static bool ends_well(const op_case *row, const op_case_node *node, op_case_form form, const char *what)
{
    prony_error error = {0};
    clock_t start = clock();
    prony_status status = op_case_try(node, form, &error);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    bool good = (status == PRONY_OK || is_clear(node, status, &error)) && seconds < SLOW_SECONDS;
    if (!good || (verbose && status != PRONY_OK))
        print_message("%s %s:%d: %s, %s, form %d: status %d after %.1f s: %s\n", good ? "refused" : "WRONG", row->file,
                      row->line, row->op, what, (int)form, (int)status, seconds, error.message);
    return good;
}

static void parse(op_case_node *node, const op_case *row)
{
    char message[512] = "";
    if (!op_case_parse(node, row, message, sizeof message)) fail_msg("%s:%d: %s", row->file, row->line, message);
}

static bool try_one(const op_case *row, size_t k, op_case_form form, bool *more)
{
    op_case_node node;
    char what[96] = "";
    parse(&node, row);
    *more = op_distort(&node, k, what, sizeof what);
    bool good = !*more || ends_well(row, &node, form, what);
    op_case_node_release(&node);
    return good;
}

/* Prints the combination before the attempt, so that a crash is attributable. */
static char trying[768];

static void tell_what_was_tried(void)
{
    if (write(STDERR_FILENO, trying, strlen(trying)) < 0) _exit(1);
}

static void on_abort(int signal_number)
{
    tell_what_was_tried();
    signal(signal_number, SIG_DFL);
}

#if SANITIZED_BUILD
void __sanitizer_set_death_callback(void (*callback)(void));
#else
#define __sanitizer_set_death_callback(callback) signal(SIGSEGV, on_abort)
#endif

static void test_random_mixtures_end_well(void **state)
{
    size_t tried = 0, wrong = 0, matching = 0;
    (void)state;
    for (size_t i = 0; i < cases.count; i++) matching += strstr(cases.items[i].op, only) != NULL;
    assert_true(matching > 0);
    for (uint64_t seed = first; tried < mixtures; seed++) {
        const op_case *row = &cases.items[seed * 2654435761u % cases.count];
        if (!strstr(row->op, only)) continue;
        op_case_node node;
        char what[512];
        parse(&node, row);
        op_distort_randomly(&node, seed, what, sizeof what);
        op_case_form form = (op_case_form)(seed / 7 % OP_CASE_FORMS);
        snprintf(trying, sizeof trying, "seed %llu, %s:%d: %s, form %d: %s\n", (unsigned long long)seed, row->file,
                 row->line, row->op, (int)form, what);
        wrong += !ends_well(row, &node, form, what);
        op_case_node_release(&node);
        tried++;
    }
    print_message("%zu mixtures\n", tried);
    assert_true(tried > 0);
    assert_int_equal(wrong, 0);
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
    verbose = argc == 3;
    sample = argc < 2;
    mixtures = SANITIZED ? 2000 : 20000;
    if (argc > 3) first = strtoull(argv[2], NULL, 10), mixtures = strtoull(argv[3], NULL, 10);
    if (!SANITIZED && setrlimit(RLIMIT_AS, &memory) != 0) return 1;
    signal(SIGABRT, on_abort);
    __sanitizer_set_death_callback(tell_what_was_tried);
    const struct CMUnitTest ways[] = {cmocka_unit_test(test_distorted_rows_end_well)};
    const struct CMUnitTest mixed[] = {cmocka_unit_test(test_random_mixtures_end_well)};
    int failed = argc > 3 ? 0 : cmocka_run_group_tests(ways, load_cases, release_cases);
    return failed + (sample || argc > 3 ? cmocka_run_group_tests(mixed, load_cases, release_cases) : 0);
}
