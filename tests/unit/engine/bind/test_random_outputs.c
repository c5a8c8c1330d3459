/* prony_session_output_random: the outputs that depend on random numbers, and the positions of their elements. */
#include "tests/support/model_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect_range(const model_run *r, size_t output, double low, double high, bool whole)
{
    bool random = false;
    prony_random_range range = {0};
    assert_int_equal(prony_session_output_random(r->session, output, &random, &range, NULL), PRONY_OK);
    assert_true(random);
    assert_true(range.low == low && range.high == high && range.whole == whole);
}

static void expect_certain(const model_run *r, size_t output)
{
    bool random = true;
    prony_random_range range;
    assert_int_equal(prony_session_output_random(r->session, output, &random, &range, NULL), PRONY_OK);
    assert_false(random);
}

static void test_ranges(void **state)
{
    (void)state;
    static const float x[6] = {0.5f, 0.1f, 0.9f, 1, 0, 0.25f}, ratio = 0.5f;
    static const uint8_t yes = 1;
    static const char *const outputs[] = {"uniform", "whole", "moved", "coins", "class",  "normal",
                                          "sum",     "above", "kept",  "count", "certain"};
    model_run r = {0};
    model_builder *m = mb_begin(21);
    mb_input(m, "x", PRONY_FLOAT32, "2,3");
    mb_input(m, "yes", PRONY_BOOL, "");
    mb_initializer(m, "ratio", PRONY_FLOAT32, "", &ratio);
    mb_node(m, "RandomUniformLike", "x", "uniform", "low=-1.5 high=2.5");
    mb_node(m, "Cast", "uniform", "whole", "to=7");
    mb_node(m, "Flatten", "uniform", "moved", "");
    mb_node(m, "Bernoulli", "x", "coins", "");
    mb_node(m, "Multinomial", "x", "class", "sample_size=4");
    mb_node(m, "RandomNormal", "", "normal", "shape=[2,3]");
    mb_node(m, "Add", "uniform x", "sum", "");
    mb_node(m, "Greater", "normal x", "above", "");
    mb_node(m, "Dropout", "x ratio yes", "kept", "");
    mb_node(m, "Shape", "uniform", "count", "");
    mb_node(m, "Relu", "x", "certain", "");
    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) mb_output(m, outputs[k], PRONY_UNDEFINED, NULL);
    mr_open(&r, m);
    bool random;
    prony_random_range range;
    assert_int_equal(prony_session_output_random(r.session, 0, &random, &range, NULL), PRONY_INVALID_ARGUMENT);
    mr_set(&r, "x", PRONY_FLOAT32, "2,3", x);
    mr_set(&r, "yes", PRONY_BOOL, "", &yes);
    (void)mr_run(&r, 0);
    expect_range(&r, 0, -1.5, 2.5, false);
    expect_range(&r, 1, -1, 2, true);
    expect_range(&r, 2, -1.5, 2.5, false);
    expect_range(&r, 3, 0, 1, true);
    expect_range(&r, 4, 0, 2, true);
    expect_range(&r, 5, -INFINITY, INFINITY, false);
    expect_range(&r, 6, -INFINITY, INFINITY, false);
    expect_range(&r, 7, 0, 1, true);
    expect_range(&r, 8, -INFINITY, INFINITY, false);
    expect_certain(&r, 9);
    expect_certain(&r, 10);
    assert_int_equal(prony_session_output_random(r.session, 11, &random, &range, NULL), PRONY_OUT_OF_RANGE);
    mr_close(&r);
}

/* A branch with a random operator makes the If's results random, whatever it draws. */
static void test_subgraphs(void **state)
{
    (void)state;
    static const uint8_t no = 0;
    static const float x = 1;
    model_run r = {0};
    model_builder *m = mb_begin(21);
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "x", PRONY_FLOAT32, "");
    mb_node(m, "If", "go", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "RandomUniform", "", "drawn", "shape=[]");
    mb_output(m, "drawn", PRONY_FLOAT32, "");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Identity", "x", "same", "");
    mb_output(m, "same", PRONY_FLOAT32, "");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "");
    mr_open(&r, m);
    mr_set(&r, "go", PRONY_BOOL, "", &no);
    mr_set(&r, "x", PRONY_FLOAT32, "", &x);
    (void)mr_run(&r, 0);
    expect_range(&r, 0, -INFINITY, INFINITY, false);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_subgraphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
