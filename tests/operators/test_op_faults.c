/* Fault injection for every operator of the table: on one row of tests/operators/cases each, the n-th allocation fails,
 * for every n, through load, bind, plan and run. Each time the status is out of memory (or the run did without), and a
 * leak checker sees nothing left behind. Control flow, sequences and strings have such runs in their own tests. */
#include "tests/support/op_case_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static op_case_list cases;

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

/* The number of allocations that were made to fail; 0: the row does not run at all. */
static uint64_t fail_everywhere(const op_case *row, op_case_form form)
{
    op_case_node node;
    prony_error error = {0};
    char message[512] = "";
    if (!op_case_parse(&node, row, message, sizeof message)) fail_msg("%s:%d: %s", row->file, row->line, message);
    uint64_t n = 0;
    bool failed = op_case_try(&node, form, &error) == PRONY_OK;
    while (failed) {
        memset(&error, 0, sizeof error);
        prn_alloc_fail_at(++n);
        prony_status status = op_case_try(&node, form, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK && (status != PRONY_OUT_OF_MEMORY || !failed))
            fail_msg("%s:%d: %s, form %d: allocation %llu: status %d, %s", row->file, row->line, row->op, (int)form,
                     (unsigned long long)n, (int)status, error.message);
    }
    op_case_node_release(&node);
    return n;
}

/* The row in the middle of the operator's rows. */
static const op_case *row_of(const prn_op *op)
{
    char name[256];
    size_t rows = 0, seen = 0;
    snprintf(name, sizeof name, "%s%s%s", prn_op_domain(op), *prn_op_domain(op) ? "::" : "", op->name);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < cases.count; i++) {
            const op_case *row = &cases.items[i];
            if (row->refused || strcmp(row->op, name) != 0 ||
                prn_op_find(prn_op_domain(op), op->name, row->opset) != op)
                continue;
            if (pass == 0)
                rows++;
            else if (seen++ == rows / 2)
                return row;
        }
    }
    return NULL;
}

static void test_every_operator_survives(void **state)
{
    size_t operators = 0;
    (void)state;
    for (size_t k = 0; k < prn_op_count(); k++) {
        const op_case *row = row_of(prn_op_at(k));
        if (!row) continue;
        operators += fail_everywhere(row, OP_CASE_AS_WRITTEN) > 10;
        (void)fail_everywhere(row, OP_CASE_NONE_CONSTANT);
    }
    print_message("%zu of %zu operators\n", operators, prn_op_count());
    assert_true(operators > prn_op_count() * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_operator_survives)};
    return cmocka_run_group_tests(tests, load_cases, release_cases);
}
