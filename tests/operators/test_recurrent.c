/* The counts of RNN, GRU and LSTM against figures worked out by hand. */
#include "tests/support/op_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static prony_cost cost_of(const char *op, const char *attributes, const char *inputs, size_t output_count)
{
    char message[512] = "";
    const op_case row = {.file = "test_recurrent", .op = op, .attributes = attributes, .inputs = inputs, .opset = 14};
    op_case_node *node = prn_calloc(1, sizeof *node);
    assert_non_null(node);
    if (!op_case_parse(node, &row, message, sizeof message)) fail_msg("%s", message);
    const prn_op *found = prn_op_find("", op, row.opset);
    assert_non_null(found);
    prony_value out[3] = {0}, *outputs[3] = {&out[0], &out[1], &out[2]};
    prony_error error = {0};
    void *params = prn_calloc(1, found->params_bytes);
    assert_non_null(params);
    assert_int_equal(prn_params_parse(found, &node->node, params, &error), PRONY_OK);
    const prony_context context = {.node = &node->node,
                                   .params = params,
                                   .user = (void *)(uintptr_t)found->variant,
                                   .input_count = node->input_count,
                                   .output_count = output_count,
                                   .inputs = node->inputs,
                                   .outputs = outputs,
                                   .threads = 1,
                                   .error = &error};
    prony_cost cost = {0};
    if (found->infer(&context) != PRONY_OK || found->cost(&context, &cost) != PRONY_OK) fail_msg("%s", error.message);
    prn_free(params);
    op_case_node_release(node);
    prn_free(node);
    return cost;
}

static void assert_cost(prony_cost cost, uint64_t macs, uint64_t others, uint64_t special, uint64_t madds)
{
    assert_int_equal(cost.macs, macs);
    assert_int_equal(cost.flops, 2 * macs + others);
    assert_int_equal(cost.special, special);
    assert_int_equal(cost.madds, macs + madds);
    assert_int_equal(cost.int_ops, 0);
}

/* T 7, B 3, I 4, H 5: 105 units of state per direction. */
static void test_lstm_cost(void **state)
{
    (void)state;
    const uint64_t units = 7 * 3 * 5, macs = 7 * 3 * 20 * (4 + 5);
    /* three sigmoids of 4, two tanh, three products, one sum */
    assert_cost(cost_of("LSTM", "", "f32[7,3,4] f32[1,20,4] f32[1,20,5]", 3), macs, 18 * units, 8 * units, 0);
    assert_cost(cost_of("LSTM", "", "f32[7,3,4] f32[1,20,4] f32[1,20,5] f32[1,40]", 1), macs, (18 + 8) * units,
                8 * units, 0);
    assert_cost(cost_of("LSTM", "direction='bidirectional' layout=1",
                        "f32[3,7,4] f32[2,20,4] f32[2,20,5] f32[2,40] ? ? ? f32[2,15]", 3),
                2 * macs, 2 * (18 + 8 + 6) * units, 2 * 8 * units, 0);
    assert_cost(cost_of("LSTM", "input_forget=1", "f32[7,3,4] f32[1,20,4] f32[1,20,5]", 3), macs, 15 * units, 6 * units,
                0);
    assert_cost(
        cost_of("LSTM", "activations=['HardSigmoid','Relu','Relu'] clip=1.0", "f32[7,3,4] f32[1,20,4] f32[1,20,5]", 3),
        macs, (3 * 6 + 3 + 1 + 4) * units, 0, 3 * units);
}

static void test_gru_and_rnn_cost(void **state)
{
    (void)state;
    const uint64_t units = 7 * 3 * 5;
    /* two sigmoids, tanh; r h, 1 - z, two products, a sum */
    assert_cost(cost_of("GRU", "", "f32[7,3,4] f32[1,15,4] f32[1,15,5] f32[1,30]", 2), 7 * 3 * 15 * 9, (14 + 6) * units,
                5 * units, 0);
    assert_cost(cost_of("GRU", "linear_before_reset=1", "f32[7,3,4] f32[1,15,4] f32[1,15,5]", 2), 7 * 3 * 15 * 9,
                15 * units, 5 * units, 0);
    assert_cost(cost_of("RNN", "", "f32[7,3,4] f32[1,5,4] f32[1,5,5] f32[1,10]", 2), 7 * 3 * 5 * 9, 3 * units, units,
                0);
    assert_cost(cost_of("RNN", "", "f32[0,3,4] f32[1,5,4] f32[1,5,5] f32[1,10]", 2), 0, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lstm_cost), cmocka_unit_test(test_gru_and_rnn_cost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
