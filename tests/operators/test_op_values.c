/* Operators against values that others computed: ONNX Runtime, or the specification's formula in numpy. Each row of
 * tests/operators/values is a model of one node, run with its inputs as the row says, all constant and none constant.
 * Outputs are written as inputs are; `?` is one that is not compared. An element may be off by `tolerance` of itself,
 * or of 1 if it is smaller.
 *
 *   VALUES("SwiGLU", 28, "", "f32[2]={1,-2} f32[2]={0.5,1}", "f32[2]={0.36552929,-0.23840584}", 1e-6) */
#include "tests/support/op_case_model.h"

#include "base/shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct known {
    op_case row;
    const char *outputs;
    double tolerance;
} known;

#define VALUES(op, opset, attributes, inputs, outputs, tolerance)                                                      \
    {{__FILE__, __LINE__, false, op, attributes, inputs, opset}, outputs, tolerance},

static const known neural[] = {
#include "tests/operators/values/neural.inc"
};
#if defined(PRN_HAVE_PNG)
static const known image[] = {
#include "tests/operators/values/image.inc"
};
#endif
static const known moe[] = {
#include "tests/operators/values/moe.inc"
};
static const known group_query[] = {
#include "tests/operators/values/group_query.inc"
};
static const known ml[] = {
#include "tests/operators/values/ml.inc"
};

static const char *only = "";
static size_t all_runs;

static void parse(op_case_node *node, const op_case *row)
{
    char message[512] = "";
    if (!op_case_parse(node, row, message, sizeof message)) fail_msg("%s:%d: %s", row->file, row->line, message);
}

static bool is_near(double got, double want, double tolerance)
{
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= tolerance * fmax(fabs(want), 1.0);
}

/* The expected outputs of one run. */
typedef struct verdict {
    const known *row;
    op_case_form form;
    const op_case_node *wanted;
    size_t seen, wrong;
} verdict;

static void complain(const verdict *v, const char *format, ...) PRN_PRINTF(2, 3);
static void complain(const verdict *v, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s:%d: %s, form %d: %s\n", v->row->row.file, v->row->row.line, v->row->row.op, (int)v->form, text);
}

static void see(void *argument, size_t output, const prony_value *got)
{
    verdict *v = argument;
    const prony_value *want = v->wanted->inputs[output];
    char left[PRN_SHAPE_TEXT_BYTES], right[PRN_SHAPE_TEXT_BYTES];
    v->seen++;
    if (!want) return;
    if (got->dtype != want->dtype || !prn_shape_equal(&got->shape, &want->shape)) {
        complain(v, "output %zu is %s, wanted %s", output, prn_value_text(got, left), prn_value_text(want, right));
        v->wrong++;
        return;
    }
    for (int64_t i = 0; i < prony_shape_numel(&got->shape); i++) {
        const double x = op_case_get(got, i), y = op_case_get(want, i);
        if (is_near(x, y, v->row->tolerance)) continue;
        complain(v, "output %zu, element %lld is %.9g, wanted %.9g", output, (long long)i, x, y);
        v->wrong++;
        return;
    }
}

static bool is_reached(const known *k, op_case_form form)
{
    op_case_node node, wanted;
    prony_error error = {0};
    const op_case outputs = {k->row.file, k->row.line, false, "Identity", "", k->outputs, 13};
    verdict v = {.row = k, .form = form, .wanted = &wanted};
    parse(&node, &k->row);
    parse(&wanted, &outputs);
    node.output_count = wanted.input_count;
    const prony_status status = op_case_show(&node, form, see, &v, &error);
    if (status != PRONY_OK) complain(&v, "%s", error.message);
    const bool good = status == PRONY_OK && v.seen == wanted.input_count && v.wrong == 0;
    op_case_node_release(&node);
    op_case_node_release(&wanted);
    return good;
}

static void check(const known *rows, size_t count)
{
    size_t wrong = 0, ran = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strstr(rows[i].row.op, only)) continue;
        for (int form = 0; form < OP_CASE_FORMS; form++, ran++) wrong += !is_reached(&rows[i], (op_case_form)form);
    }
    print_message("%zu runs, %zu wrong\n", ran, wrong);
    all_runs += ran;
    assert_int_equal(wrong, 0);
}

static void test_neural(void **state)
{
    (void)state;
    check(neural, sizeof neural / sizeof *neural);
}

static void test_group_query(void **state)
{
    (void)state;
    check(group_query, sizeof group_query / sizeof *group_query);
}

static void test_image(void **state)
{
    (void)state;
#if defined(PRN_HAVE_PNG)
    check(image, sizeof image / sizeof *image);
#else
    skip();
#endif
}

static void test_ml(void **state)
{
    (void)state;
    check(ml, sizeof ml / sizeof *ml);
}

static void test_moe(void **state)
{
    (void)state;
    check(moe, sizeof moe / sizeof *moe);
}

/* A name that no row has tests nothing. */
static void test_something_ran(void **state)
{
    (void)state;
    if (!all_runs) fail_msg("no row is of an operator '%s'", only);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_neural), cmocka_unit_test(test_group_query),
                                       cmocka_unit_test(test_moe),    cmocka_unit_test(test_ml),
                                       cmocka_unit_test(test_image),  cmocka_unit_test(test_something_ran)};
    if (argc > 1) only = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
