/* Functions of the model: expansion of a call, attributes that refer to the call's, optional inputs, nesting,
 * recursion. */
#include "failure_trace.h"
#include "tests/support/model_run.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* own::Leak(x; slope = 0.5) = LeakyRelu; own::Twice(x; slope) = Leak(Leak(x)) with a node of its own between. */
static model_builder *leaks(void)
{
    model_builder *m = mb_begin(17);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_node(m, "own::Twice", "x", "y", "slope=0.25");
    mb_node_name(m, "call");
    mb_node(m, "own::Leak", "x", "z", "");
    mb_node_name(m, "plain");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    mb_output(m, "z", PRONY_FLOAT32, "4");
    mb_function_begin(m, "own::Leak", "a", "b", "", "slope=0.5", 17);
    mb_node(m, "LeakyRelu", "a", "b", "alpha=@float:slope");
    mb_node_name(m, "leak");
    mb_function_end(m);
    mb_function_begin(m, "own::Twice", "a", "b", "slope", "", 17);
    mb_node(m, "own::Leak", "a", "inner", "slope=@float:slope");
    mb_node_name(m, "first");
    mb_node(m, "own::Leak", "inner", "b", "slope=@float:slope");
    mb_node_name(m, "second");
    mb_function_end(m);
    return m;
}

static const float leaks_x[4] = {-16, -4, 0, 8};

static void calls_become_their_nodes(void **state)
{
    (void)state;
    static const float y[4] = {-1, -0.25f, 0, 8}, z[4] = {-8, -2, 0, 8};
    static const char *const names[] = {"call/first/leak", "call/second/leak", "plain/leak"};
    model_run r = {0};
    mr_open(&r, leaks());
    mr_set(&r, "x", PRONY_FLOAT32, "4", leaks_x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", y);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "4", z);
    prony_report *report = NULL;
    size_t count;
    assert_int_equal(prony_inspect(&report, r.model, NULL, &r.error), PRONY_OK);
    const prony_layer_row *layers = prony_report_layers(report, &count);
    assert_int_equal(count, 3);
    for (size_t l = 0; l < count; l++) {
        SCENARIO(l);
        assert_string_equal(layers[l].name, names[l]);
        assert_int_equal(layers[l].cost.flops, 8);
    }
    assert_int_equal(prony_report_totals(report)->cost.flops, 24);
    prony_report_release(report);
    mr_survives_faults(&r);
    mr_close(&r);
}

static void an_attribute_that_nobody_gives_is_the_operators_default(void **state)
{
    (void)state;
    static const float y[4] = {-0.16f, -0.04f, 0, 8};
    model_builder *m = mb_begin(17);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_node(m, "own::Leak", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4");
    mb_function_begin(m, "own::Leak", "a", "b", "slope", "", 17);
    mb_node(m, "LeakyRelu", "a", "b", "alpha=@float:slope");
    mb_function_end(m);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", leaks_x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "4", y);
    mr_close(&r);
}

/* The body's Clip has a maximum only if the call provides one. In its subgraph it reads captured values. */
static void omitted_inputs_and_subgraphs(void **state)
{
    (void)state;
    static const float x[3] = {-5, 0.5f, 7}, top = 2;
    static const uint8_t yes = 1, no = 0;
    static const float bounded[3] = {-5, 0.5f, 2}, negated[3] = {5, -0.5f, -2};
    model_builder *m = mb_begin(17);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_input(m, "top", PRONY_FLOAT32, "");
    mb_input(m, "turn", PRONY_BOOL, "");
    mb_node(m, "own::Bound", "x turn ? top", "y", "");
    mb_node(m, "own::Bound", "x turn", "z", "");
    mb_output(m, "y", PRONY_FLOAT32, "3");
    mb_output(m, "z", PRONY_FLOAT32, "3");
    mb_function_begin(m, "own::Bound", "a turn low high", "b", "", "", 17);
    mb_node(m, "Clip", "a low high", "c", "");
    mb_node(m, "If", "turn", "b", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Neg", "c", "d", "");
    mb_output(m, "d", PRONY_FLOAT32, "3");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Identity", "c", "e", "");
    mb_output(m, "e", PRONY_FLOAT32, "3");
    mb_graph_end(m);
    mb_function_end(m);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    mr_set(&r, "top", PRONY_FLOAT32, "", &top);
    mr_set(&r, "turn", PRONY_BOOL, "", &no);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3", bounded);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "3", x);
    mr_set(&r, "turn", PRONY_BOOL, "", &yes);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3", negated);
    mr_survives_faults(&r);
    mr_close(&r);
}

/* A function's imports are its own: Softmax of opset 12 flattens, that of 13 does not. */
static void the_body_uses_the_functions_opset(void **state)
{
    (void)state;
    float x[4] = {0};
    static const float y[4] = {0.25f, 0.25f, 0.25f, 0.25f}, z[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    model_builder *m = mb_begin(13);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "1,2,2");
    mb_node(m, "own::Old", "x", "y", "");
    mb_node(m, "Softmax", "x", "z", "axis=1");
    mb_output(m, "y", PRONY_FLOAT32, "1,2,2");
    mb_output(m, "z", PRONY_FLOAT32, "1,2,2");
    mb_function_begin(m, "own::Old", "a", "b", "", "", 11);
    mb_node(m, "Softmax", "a", "b", "axis=1");
    mb_function_end(m);
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,2,2", x);
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "1,2,2", y);
    mr_expect(mr_output(&r, 1), PRONY_FLOAT32, "1,2,2", z);
    mr_close(&r);
}

static void recursion_is_refused(void **state)
{
    (void)state;
    model_builder *m = mb_begin(17);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "own::A", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "2");
    mb_function_begin(m, "own::A", "a", "b", "", "", 17);
    mb_node(m, "own::B", "a", "b", "");
    mb_function_end(m);
    mb_function_begin(m, "own::B", "a", "b", "", "", 17);
    mb_node(m, "own::A", "a", "b", "");
    mb_function_end(m);
    model_run r = {0};
    static const float x[2] = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "2", x);
    mr_refused(&r, PRONY_INVALID_MODEL, "'A' calls itself");
    mr_close(&r);
}

/* Forty functions, each of which calls the next one twice: 2^40 nodes without a limit. */
static void unfolding_is_bounded(void **state)
{
    (void)state;
    static const float x[1] = {1};
    model_builder *m = mb_begin(17);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "1");
    mb_node(m, "own::F0", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "1");
    for (int k = 0; k < 40; k++) {
        char name[32], next[32];
        snprintf(name, sizeof name, "own::F%d", k);
        snprintf(next, sizeof next, k == 39 ? "Neg" : "own::F%d", k + 1);
        mb_function_begin(m, name, "a", "b", "", "", 17);
        mb_node(m, next, "a", "c", "");
        mb_node(m, next, "c", "b", "");
        mb_function_end(m);
    }
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1", x);
    mr_refused(&r, PRONY_LIMIT, "nodes");
    mr_close(&r);
}

static void what_a_function_misses_is_listed(void **state)
{
    (void)state;
    model_builder *m = mb_begin(17);
    mb_opset(m, "own", 1);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "own::A", "x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "2");
    mb_function_begin(m, "own::A", "a", "b", "", "", 17);
    mb_node(m, "own::Nowhere", "a", "b", "");
    mb_function_end(m);
    model_run r = {0};
    assert_int_equal(mr_try_open(&r, m), PRONY_UNSUPPORTED);
    assert_non_null(strstr(r.error.message, "own::Nowhere"));
    assert_null(strstr(r.error.message, "own::A"));
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_become_their_nodes),
        cmocka_unit_test(an_attribute_that_nobody_gives_is_the_operators_default),
        cmocka_unit_test(omitted_inputs_and_subgraphs),
        cmocka_unit_test(the_body_uses_the_functions_opset),
        cmocka_unit_test(recursion_is_refused),
        cmocka_unit_test(unfolding_is_bounded),
        cmocka_unit_test(what_a_function_misses_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
