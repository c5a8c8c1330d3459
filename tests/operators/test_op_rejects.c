/* Bad input, operator by operator: each row of tests/operators/rejects is a model of one node that must be refused with
 * this status and a message that names the node, the operator and the value. Each row runs with its inputs as the row
 * says, all constant (refused when bound) and none constant (refused when run, wherever that shows only then).
 *
 *   REJECT("Gather", 13, "axis=0", "f32[2,3] i64[1]={2}", OUT_OF_RANGE, "index 2") */
#include "tests/support/model_run.h"
#include "tests/support/op_case_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct reject {
    op_case row;
    prony_status status;
    const char *text;
} reject;

#define REJECT(op, opset, attributes, inputs, status, text)                                                            \
    {{__FILE__, __LINE__, true, op, attributes, inputs, opset}, PRONY_##status, text},

static const reject elementwise[] = {
#include "tests/operators/rejects/elementwise.inc"
};
static const reject indexing[] = {
#include "tests/operators/rejects/indexing.inc"
};
static const reject shapes[] = {
#include "tests/operators/rejects/shapes.inc"
};
static const reject neural[] = {
#include "tests/operators/rejects/neural.inc"
};
static const reject others[] = {
#include "tests/operators/rejects/others.inc"
};

static bool is_refused(const reject *r, op_case_form form)
{
    op_case_node node;
    prony_error error = {0};
    char message[512] = "";
    if (!op_case_parse(&node, &r->row, message, sizeof message))
        fail_msg("%s:%d: %s", r->row.file, r->row.line, message);
    prony_status status = op_case_try(&node, form, &error);
    bool good = status == r->status && error.status == status && strstr(error.message, r->text) &&
                strstr(error.message, "'" OP_CASE_NODE_NAME "'") && strstr(error.message, r->row.op);
    if (!good)
        print_error("%s:%d: %s, form %d: status %d, '%s', wanted %d and '%s'\n", r->row.file, r->row.line, r->row.op,
                    (int)form, (int)status, error.message, (int)r->status, r->text);
    op_case_node_release(&node);
    return good;
}

static void check(const reject *rows, size_t count)
{
    size_t wrong = 0;
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        for (int form = 0; form < OP_CASE_FORMS; form++) wrong += !is_refused(&rows[i], (op_case_form)form);
    assert_int_equal(wrong, 0);
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check(name, sizeof name / sizeof *name);                                                                       \
    }
TEST(elementwise)
TEST(indexing)
TEST(shapes)
TEST(neural)
TEST(others)

/* ---- what no type can hold has a defined result instead ---- */

static void expect_binary(const char *op, prony_dtype dtype, const void *a, const void *b, const void *wanted)
{
    model_run r = {0};
    model_builder *m = mb_begin(14);
    mb_input(m, "a", dtype, "4");
    mb_input(m, "b", dtype, "4");
    mb_node(m, op, "a b", "y", "");
    mb_output(m, "y", dtype, "4");
    mr_open(&r, m);
    mr_set(&r, "a", dtype, "4", a);
    mr_set(&r, "b", dtype, "4", b);
    mr_expect(mr_run(&r, 0), dtype, "4", wanted);
    mr_close(&r);
}

/* Division by zero gives 0, everything else wraps. */
static void test_integer_arithmetic_is_total(void **state)
{
    (void)state;
    static const int32_t a[] = {INT32_MIN, 7, INT32_MIN, -7}, b[] = {-1, 0, 0, 2}, div[] = {INT32_MIN, 0, 0, -3};
    static const int32_t mod[] = {0, 0, 0, 1}, product[] = {INT32_MIN, 0, 0, -14};
    static const int64_t wide[] = {INT64_MIN, 7, INT64_MIN, -7}, by[] = {-1, 0, 0, 2},
                         quotient[] = {INT64_MIN, 0, 0, -3};
    static const uint8_t small[] = {255, 7, 0, 9}, divisor[] = {0, 0, 0, 2}, part[] = {0, 0, 0, 4};
    expect_binary("Div", PRONY_INT32, a, b, div);
    expect_binary("Mod", PRONY_INT32, a, b, mod);
    expect_binary("Mul", PRONY_INT32, a, b, product);
    expect_binary("Div", PRONY_INT64, wide, by, quotient);
    expect_binary("Div", PRONY_UINT8, small, divisor, part);
}

/* NaN becomes 0; numbers out of range become the nearest end. */
static void expect_cast(int64_t to, const void *wanted)
{
    static const float x[] = {NAN, INFINITY, -1e30f, -3.9f};
    char attributes[32];
    model_run r = {0};
    model_builder *m = mb_begin(14);
    snprintf(attributes, sizeof attributes, "to=%lld", (long long)to);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_node(m, "Cast", "x", "y", attributes);
    mb_output(m, "y", (prony_dtype)to, "4");
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", x);
    mr_expect(mr_run(&r, 0), (prony_dtype)to, "4", wanted);
    mr_close(&r);
}

static void test_float_to_integer_is_total(void **state)
{
    (void)state;
    static const int32_t whole[] = {0, INT32_MAX, INT32_MIN, -3};
    static const int64_t wide[] = {0, INT64_MAX, INT64_MIN, -3};
    static const uint8_t byte[] = {0, 255, 0, 0};
    expect_cast(PRONY_INT32, whole);
    expect_cast(PRONY_INT64, wide);
    expect_cast(PRONY_UINT8, byte);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elementwise),
                                       cmocka_unit_test(test_indexing),
                                       cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_neural),
                                       cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_integer_arithmetic_is_total),
                                       cmocka_unit_test(test_float_to_integer_is_total)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
