/* Sums over layers, over operators and the totals of a report are equal, whatever rewriting removed and wherever:
 * behind an If or a Loop, whose cost only a run knows, and beside views and joins, which are not operators. */
#include "failure_trace.h"
#include "model_run.h"
#include "profiler/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static float x[32];

static void add(prony_cost *sum, const prony_cost *cost)
{
    sum->macs += cost->macs;
    sum->madds += cost->madds;
    sum->flops += cost->flops;
    sum->special += cost->special;
    sum->int_ops += cost->int_ops;
    sum->parameters += cost->parameters;
}

static void expect_sum(const prony_cost *sum, const prony_cost *wanted)
{
    assert_int_equal(sum->macs, wanted->macs);
    assert_int_equal(sum->madds, wanted->madds);
    assert_int_equal(sum->flops, wanted->flops);
    assert_int_equal(sum->special, wanted->special);
    assert_int_equal(sum->int_ops, wanted->int_ops);
    assert_int_equal(sum->parameters, wanted->parameters);
}

/* Profiles the model and closes it: all three sums agree, and are `flops` and `parameters`. */
static void expect(model_run *r, uint64_t flops, uint64_t parameters)
{
    prony_report *report = mr_profile(r);
    const prony_totals *totals = prony_report_totals(report);
    prony_cost layers = {0}, operators = {0};
    size_t count;
    const prony_layer_row *layer = prony_report_layers(report, &count);
    for (size_t l = 0; l < count; l++) add(&layers, &layer[l].cost);
    const prony_operator_row *operator= prony_report_operators(report, &count);
    for (size_t o = 0; o < count; o++) add(&operators, &operator[o].cost);
    expect_sum(&layers, &totals->cost);
    expect_sum(&operators, &totals->cost);
    assert_int_equal(totals->cost.flops, flops);
    assert_int_equal(totals->cost.parameters, parameters);
    prony_report_release(report);
    mr_close(r);
}

/* If of one branch with a product by an 8x8 weight, and one with Relu; behind it what `after` names. */
static model_builder *with_if(const char *after, const char *inputs)
{
    static const float w[64], one[1] = {1.0f};
    static const int64_t from[1] = {0}, to[1] = {100};
    model_builder *m = mb_begin(17);
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    mb_initializer(m, "one", PRONY_FLOAT32, "", one);
    mb_initializer(m, "from", PRONY_INT64, "1", from);
    mb_initializer(m, "to", PRONY_INT64, "1", to);
    mb_node(m, "If", "go", "a", "");
    mb_graph_begin(m, "then_branch");
    mb_initializer(m, "w", PRONY_FLOAT32, "8,8", w);
    mb_node(m, "MatMul", "x w", "p", "");
    mb_output(m, "p", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Relu", "x", "q", "");
    mb_output(m, "q", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_node(m, after, inputs, "b", "");
    mb_node(m, "Neg", "b", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4,8");
    return m;
}

static void behind_an_if(void **state)
{
    static const struct {
        const char *op, *inputs;
        uint64_t flops; /* of the node behind */
    } after[] = {{"Identity", "a", 0},
                 {"Dropout", "a", 0},
                 {"Slice", "a from to", 0},
                 {"Mul", "a one", 32},
                 {"Div", "a one", 32}};
    (void)state;
    for (size_t k = 0; k < sizeof after / sizeof *after; k++) {
        SCENARIO_NAMED(k, after[k].op);
        for (int go = 0; go < 2; go++) {
            const uint8_t truth = (uint8_t)go;
            model_run r = {0};
            mr_open(&r, with_if(after[k].op, after[k].inputs));
            mr_set(&r, "go", PRONY_BOOL, "", &truth);
            mr_set(&r, "x", PRONY_FLOAT32, "4,8", x);
            expect(&r, (go ? 2 * 4 * 8 * 8 : 32) + after[k].flops + 32, 64);
        }
    }
}

static void behind_a_loop(void **state)
{
    static const float w[64];
    static const int64_t trips = 5;
    (void)state;
    model_builder *m = mb_begin(17);
    mb_input(m, "trips", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    mb_initializer(m, "w", PRONY_FLOAT32, "8,8", w);
    mb_node(m, "Loop", "trips ? x", "a", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "carried", PRONY_FLOAT32, "4,8");
    mb_node(m, "Identity", "on", "still", "");
    mb_node(m, "MatMul", "carried w", "p", "");
    mb_node(m, "Dropout", "p", "next", "");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_node(m, "Identity", "a", "b", "");
    mb_node(m, "Neg", "b", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4,8");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "trips", PRONY_INT64, "", &trips);
    mr_set(&r, "x", PRONY_FLOAT32, "4,8", x);
    expect(&r, 5 * 2 * 4 * 8 * 8 + 32, 64);
}

/* An If in a Loop, and multiplications by 1 on both sides of it: the body's sums hold as well. */
static void inside_a_body(void **state)
{
    static const float one[1] = {1.0f};
    static const int64_t trips = 3;
    static const uint8_t go = 1;
    (void)state;
    model_builder *m = mb_begin(17);
    mb_input(m, "trips", PRONY_INT64, "");
    mb_input(m, "go", PRONY_BOOL, "");
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    mb_initializer(m, "one", PRONY_FLOAT32, "", one);
    mb_node(m, "Loop", "trips ? x", "a", "");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "carried", PRONY_FLOAT32, "4,8");
    mb_node(m, "Identity", "on", "still", "");
    mb_node(m, "If", "go", "c", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "Neg", "carried", "p", "");
    mb_output(m, "p", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_node(m, "Relu", "carried", "q", "");
    mb_output(m, "q", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_node(m, "Mul", "c one", "next", "");
    mb_output(m, "still", PRONY_BOOL, "");
    mb_output(m, "next", PRONY_FLOAT32, "4,8");
    mb_graph_end(m);
    mb_node(m, "Mul", "a one", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "4,8");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "trips", PRONY_INT64, "", &trips);
    mr_set(&r, "go", PRONY_BOOL, "", &go);
    mr_set(&r, "x", PRONY_FLOAT32, "4,8", x);
    prony_report *report = mr_profile(&r);
    assert_true(report->conserved); /* the sums of nested rows as well */
    prony_report_release(report);
    expect(&r, 3 * (32 + 32) + 32, 0);
}

static void beside_views_and_joins(void **state)
{
    static const float one[1] = {1.0f};
    static const int64_t flat[] = {32};
    (void)state;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "4,8");
    mb_initializer(m, "one", PRONY_FLOAT32, "", one);
    mb_initializer(m, "flat", PRONY_INT64, "1", flat);
    mb_node(m, "Mul", "x one", "a", "");
    mb_node(m, "Neg", "x", "n", "");
    mb_node(m, "Concat", "a n", "b", "axis=0");
    mb_node(m, "Div", "x one", "c", "");
    mb_node(m, "Reshape", "c flat", "d", "");
    mb_output(m, "b", PRONY_FLOAT32, "8,8");
    mb_output(m, "d", PRONY_FLOAT32, "32");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4,8", x);
    expect(&r, 3 * 32, 0);
}

/* Operators that change nothing and are all the arithmetic of a model: one of them runs. */
static void neutral_operators_alone(void **state)
{
    static const float one[1] = {1.0f};
    static const struct {
        const char *op, *inputs;
    } behind[] = {{"Identity", "b"}, {"Transpose", "b"}, {"Flatten", "b"}, {"Mul", "b one"}};
    (void)state;
    for (size_t k = 0; k < sizeof behind / sizeof *behind; k++) {
        SCENARIO_NAMED(k, behind[k].op);
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, "1,8");
        mb_initializer(m, "one", PRONY_FLOAT32, "", one);
        mb_node(m, "Identity", "one", "a", "");
        mb_node(m, "Mul", "x a", "b", "");
        mb_node(m, behind[k].op, behind[k].inputs, "y", "");
        mb_output(m, "y", PRONY_FLOAT32, k == 1 ? "8,1" : "1,8");
        model_run r = {0};
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "1,8", x);
        expect(&r, k == 3 ? 16 : 8, 0);
    }
    model_builder *m = mb_begin(17); /* two outputs that are the input */
    mb_input(m, "x", PRONY_FLOAT32, "1,8");
    mb_initializer(m, "one", PRONY_FLOAT32, "", one);
    mb_node(m, "Mul", "x one", "a", "");
    mb_node(m, "Div", "x one", "b", "");
    mb_output(m, "a", PRONY_FLOAT32, "1,8");
    mb_output(m, "b", PRONY_FLOAT32, "1,8");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "1,8", x);
    expect(&r, 16, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(behind_an_if), cmocka_unit_test(behind_a_loop),
                                       cmocka_unit_test(inside_a_body), cmocka_unit_test(beside_views_and_joins),
                                       cmocka_unit_test(neutral_operators_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
