/* If, against engine services that know two subgraphs by heart: `then` doubles its threshold, `otherwise` returns
 * one value. */
#include "failure_trace.h"
#include "ops/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static float then_values[2] = {1.5f, 2.5f}, else_values[1] = {-1.0f};
static char graphs[2];
static int64_t then_extent;
static float buffer[4];
static size_t allocations;

#define THEN ((const struct prn_graph *)(const void *)&graphs[0])
#define OTHERWISE ((const struct prn_graph *)(const void *)&graphs[1])

static prony_status infer(const prony_context *context, const struct prn_graph *graph, const prony_value *const *inputs,
                          size_t input_count, prony_value *outputs, size_t output_count)
{
    (void)context, (void)inputs, (void)input_count;
    assert_int_equal(output_count, 1);
    outputs[0] = (prony_value){.dtype = PRONY_FLOAT32, .shape = {1, {graph == THEN ? then_extent : 1}}};
    return PRONY_OK;
}

static prony_status cost(const prony_context *context, const struct prn_graph *graph, const prony_value *const *inputs,
                         size_t input_count, prony_cost *out)
{
    (void)context, (void)inputs, (void)input_count;
    *out = (prony_cost){.flops = graph == THEN ? 7 : 90, .parameters = graph == THEN ? 5 : 6};
    return PRONY_OK;
}

static prony_status run(const prony_context *context, const struct prn_graph *graph, const prony_value *const *inputs,
                        size_t input_count, prony_value *outputs, size_t output_count)
{
    PRN_TRY(infer(context, graph, inputs, input_count, outputs, output_count));
    outputs[0].data = graph == THEN ? then_values : else_values;
    return PRONY_OK;
}

static prony_status keep(const prony_context *context, const prony_value *from, prony_value *out)
{
    (void)context;
    *out = *from;
    out->data = memcpy(buffer, from->data, prn_value_bytes(from));
    allocations++;
    return PRONY_OK;
}

static prony_status set_output(const prony_context *context, size_t index, prony_value *value)
{
    assert_int_equal(index, 0);
    *context->outputs[0] = *value;
    return PRONY_OK;
}

static const prn_services host = {
    .subgraph_infer = infer, .subgraph_cost = cost, .subgraph_run = run, .value_keep = keep, .output_set = set_output};

typedef struct fixture {
    const prn_op *op;
    const struct prn_graph *params[2];
    uint8_t truth;
    prony_node node;
    prony_value condition, out;
    const prony_value *inputs[1];
    prony_value *outputs[1];
    prony_error error;
    prony_context context;
} fixture;

static void make(fixture *f, int64_t extent)
{
    *f = (fixture){.op = prn_op_find("", "If", 16), .params = {THEN, OTHERWISE}};
    then_extent = extent;
    allocations = 0;
    memset(buffer, 0, sizeof buffer);
    f->node = (prony_node){.name = "if", .op_type = "If", .domain = "", .opset = 16};
    f->condition = (prony_value){.dtype = PRONY_BOOL, .shape = {0, {0}}};
    f->inputs[0] = &f->condition;
    f->outputs[0] = &f->out;
    f->context = (prony_context){.node = &f->node,
                                 .params = f->params,
                                 .input_count = 1,
                                 .output_count = 1,
                                 .inputs = f->inputs,
                                 .outputs = f->outputs,
                                 .threads = 1,
                                 .services = &host,
                                 .error = &f->error};
}

static void test_branches_that_agree_are_planned(void **state)
{
    fixture f;
    (void)state;
    make(&f, 1);
    assert_int_equal(f.op->infer(&f.context), PRONY_OK);
    assert_int_equal(f.out.dtype, PRONY_FLOAT32);
    assert_int_equal(f.out.shape.rank, 1);
    assert_int_equal(f.out.shape.dim[0], 1);
    f.out.data = buffer;
    f.condition.data = &f.truth;
    for (int truth = 0; truth < 2; truth++) {
        SCENARIO(truth);
        f.truth = (uint8_t)truth;
        assert_int_equal(f.op->kernels[0].run(&f.context), PRONY_OK);
        assert_true(buffer[0] == (truth ? 1.5f : -1.0f));
    }
    assert_int_equal(allocations, 0);
}

static void test_branches_that_differ_wait_for_the_condition(void **state)
{
    fixture f;
    (void)state;
    make(&f, 2);
    assert_int_equal(f.op->infer(&f.context), PRONY_OK);
    assert_int_equal(f.out.shape.rank, -1);
    f.truth = 1;
    f.condition.data = &f.truth;
    assert_int_equal(f.op->kernels[0].run(&f.context), PRONY_OK);
    assert_int_equal(allocations, 1);
    assert_int_equal(f.out.shape.dim[0], 2);
    assert_memory_equal(buffer, then_values, sizeof then_values);
    assert_int_equal(f.op->infer(&f.context), PRONY_OK);
    assert_int_equal(f.out.shape.dim[0], 2);
}

static void test_cost_is_the_costlier_branch_until_one_is_taken(void **state)
{
    fixture f;
    prony_cost sum = {.bytes_read = 1};
    (void)state;
    make(&f, 2);
    assert_int_equal(f.op->cost(&f.context, &sum), PRONY_OK);
    assert_int_equal(sum.flops, 90);
    assert_int_equal(sum.parameters, 11);
    assert_int_equal(sum.fact_count, 1);
    f.truth = 1;
    f.condition.data = &f.truth;
    sum = (prony_cost){0};
    assert_int_equal(f.op->cost(&f.context, &sum), PRONY_OK);
    assert_int_equal(sum.flops, 7);
    assert_int_equal(sum.parameters, 11);
    assert_int_equal(sum.fact_count, 0);
}

static void test_condition_must_be_one_bool(void **state)
{
    fixture f;
    (void)state;
    make(&f, 2);
    f.condition.dtype = PRONY_FLOAT32;
    assert_int_equal(f.op->infer(&f.context), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(f.error.message, "float32"));
    make(&f, 2);
    f.condition.shape = (prony_shape){1, {2}};
    assert_int_equal(f.op->infer(&f.context), PRONY_SHAPE_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches_that_agree_are_planned),
        cmocka_unit_test(test_branches_that_differ_wait_for_the_condition),
        cmocka_unit_test(test_cost_is_the_costlier_branch_until_one_is_taken),
        cmocka_unit_test(test_condition_must_be_one_bool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
