/* Every operator of the table on the rows of tests/operators/cases. `test_op_cases WORD` runs the rows of the operators
 * whose name contains WORD. */
#include "failure_trace.h"
#include "tests/support/op_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static op_case_list cases;
static const char *only = "";

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

static void test_every_case_passes(void **state)
{
    size_t failed = 0, ran = 0;
    (void)state;
    for (size_t i = 0; i < cases.count; i++) {
        char message[2048] = "";
        if (!strstr(cases.items[i].op, only)) continue;
        ran++;
        if (op_case_run(&cases.items[i], message, sizeof message)) continue;
        failed++;
        print_error("%s:%d: %s: %s\n", cases.items[i].file, cases.items[i].line, cases.items[i].op, message);
    }
    print_message("%zu of %zu cases pass\n", ran - failed, ran);
    assert_true(ran > 0);
    assert_int_equal(failed, 0);
}

/* Subgraphs, sequences and strings need an engine around them: test_control_flow.c, test_sequences.c,
 * test_strings.c. */
static bool has_own_tests(const prn_op *op)
{
    static const char *const strings[] = {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch"};
    bool found = (op->flags & PRN_OP_OPEN) && !(op->flags & PRN_OP_VIEW);
    for (size_t k = 0; k < sizeof strings / sizeof *strings; k++) found |= strcmp(op->name, strings[k]) == 0;
    return found;
}

static void test_every_operator_has_three_cases(void **state)
{
    size_t missing = 0;
    (void)state;
    for (size_t k = 0; k < prn_op_count(); k++) {
        const prn_op *op = prn_op_at(k);
        size_t rows = 0;
        char name[256];
        snprintf(name, sizeof name, "%s%s%s", prn_op_domain(op), *prn_op_domain(op) ? "::" : "", op->name);
        for (size_t i = 0; i < cases.count; i++) {
            const op_case *row = &cases.items[i];
            rows += !row->refused && strcmp(row->op, name) == 0 &&
                    prn_op_find(prn_op_domain(op), op->name, row->opset) == op;
        }
        if (rows >= 3 || has_own_tests(op) || !strstr(op->name, only)) continue;
        missing++;
        print_error("%s (since opset %lld) has %zu cases, wanted 3\n", name, (long long)op->since_opset, rows);
    }
    assert_int_equal(missing, 0);
}

static void test_descriptors_are_whole(void **state)
{
    (void)state;
    for (size_t k = 0; k < prn_op_count(); k++) {
        SCENARIO(k);
        const prn_op *op = prn_op_at(k);
        assert_non_null(op->name);
        if (!op->infer || !op->cost || !op->cost_text || !op->kernels || !op->kernels->name) fail_msg("%s", op->name);
        if (!op->params != !op->params_bytes) fail_msg("%s: params without bytes", op->name);
        assert_true(op->since_opset >= 1);
        assert_true(op->inputs.least >= 0 && (op->inputs.most < 0 || op->inputs.most >= op->inputs.least));
        const prn_arity outputs = prn_op_outputs(op);
        assert_true(outputs.least >= 0 && (outputs.most < 0 || outputs.most >= outputs.least));
        for (size_t other = 0; other < k; other++) {
            const prn_op *before = prn_op_at(other);
            if (strcmp(before->name, op->name) == 0 && strcmp(prn_op_domain(before), prn_op_domain(op)) == 0 &&
                before->since_opset == op->since_opset) {
                fail_msg("%s is in the table twice", op->name);
            }
        }
    }
}

static void test_kernels_are_well_formed(void **state)
{
    (void)state;
    for (size_t k = 0; k < prn_op_count(); k++) {
        SCENARIO(k);
        const prn_op *op = prn_op_at(k);
        for (const prn_kernel *kernel = op->kernels; kernel->name; kernel++) {
            if (!kernel->run || !kernel->backend) fail_msg("%s: %s cannot run", op->name, kernel->name);
            bool last = !kernel[1].name;
            if (last != (strcmp(kernel->backend, "reference") == 0)) {
                fail_msg("%s: the last kernel, and only it, is the reference (%s)", op->name, kernel->name);
            }
            if ((op->flags & PRN_OP_POST_OPS) && !kernel->post_ops) {
                fail_msg("%s: %s ignores post-operations", op->name, kernel->name);
            }
            for (const prn_kernel *before = op->kernels; before != kernel; before++) {
                if (strcmp(before->name, kernel->name) == 0) fail_msg("%s: two kernels %s", op->name, kernel->name);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) only = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors_are_whole),
        cmocka_unit_test(test_kernels_are_well_formed),
        cmocka_unit_test(test_every_operator_has_three_cases),
        cmocka_unit_test(test_every_case_passes),
    };
    return cmocka_run_group_tests(tests, load_cases, release_cases);
}
