/* Native counts of single operators against figures worked out by hand from the definitions: macs, madds, flops,
 * special, bytes and parameters, and the facts of convolutions. */
#include "failure_trace.h"
#include "one_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct native_row {
    const char *op;
    int64_t opset;
    const char *attributes, *inputs; /* see one_node.h */
    uint64_t macs, madds, flops, special, elements_read, elements_written, parameters;
} native_row;

static const native_row rows[] = {
    /* n = 256 outputs of 27 products each */
    {"Conv", 13, "pads=[1,1,1,1]", "1,3,8,8 !4,3,3,3 !4", 6912, 6912, 14080, 0, 304, 256, 112},
    {"Conv", 13, "pads=[1,1,1,1]", "1,3,8,8 !4,3,3,3", 6912, 6912, 13824, 0, 300, 256, 108},
    /* a group sees 2 of 4 channels; then 1 of 4 */
    {"Conv", 13, "group=2", "1,4,5,5 !6,2,3,3", 972, 972, 1944, 0, 208, 54, 108},
    {"Conv", 13, "group=4 pads=[1,1,1,1] strides=[2,2]", "1,4,5,5 !4,1,3,3 !4", 324, 324, 684, 0, 140, 36, 40},
    {"Conv", 13, "dilations=[2,2]", "2,1,7,7 !1,1,3,3", 162, 162, 324, 0, 107, 18, 9},
    {"ConvTranspose", 13, "strides=[2,2]", "1,4,3,3 !4,2,2,2 !2", 288, 288, 648, 0, 70, 72, 34},
    {"ConvTranspose", 13, "strides=[2,2] group=2", "1,4,3,3 !4,1,2,2", 144, 144, 288, 0, 52, 72, 16},
    {"Gemm", 13, "", "1,8 !8,32 !32", 256, 256, 544, 0, 296, 32, 288},
    {"Gemm", 13, "alpha=2.0 beta=0.5", "1,8 !8,32 !32", 256, 256, 608, 0, 296, 32, 288},
    {"Gemm", 13, "transB=1", "3,8 !2,8", 48, 48, 96, 0, 40, 6, 16},
    {"MatMul", 13, "", "2,3,4 2,4,5", 120, 120, 240, 0, 64, 30, 0},
    {"MatMul", 13, "", "2,3,4 !4,5", 120, 120, 240, 0, 44, 30, 20},
    {"Einsum", 12, "equation='ij,jk->ik'", "3,4 4,5", 60, 60, 120, 0, 32, 15, 0},
    /* running statistics are not parameters */
    {"BatchNormalization", 15, "", "2,3,4,4 !3 !3 !3 !3", 0, 96, 192, 0, 108, 96, 6},
    /* n = 80, r = 10 */
    {"LayerNormalization", 17, "", "2,5,8 !8 !8", 0, 80, 580, 110, 96, 80, 16},
    {"LayerNormalization", 17, "", "2,5,8 !8", 0, 0, 500, 110, 88, 80, 8},
    {"RMSNormalization", 23, "", "2,5,8 !8", 0, 0, 340, 100, 88, 80, 8},
    {"InstanceNormalization", 6, "", "1,3,4,4 !3 !3", 0, 48, 342, 57, 54, 48, 6},
    {"GroupNormalization", 21, "num_groups=1", "1,3,4,4 !3 !3", 0, 48, 338, 51, 54, 48, 6},
    {"Softmax", 13, "", "4,10", 0, 0, 192, 80, 40, 40, 0},
    {"Softmax", 13, "axis=0", "4,10", 0, 0, 180, 80, 40, 40, 0},
    {"Relu", 14, "", "2,3,4", 0, 0, 24, 0, 24, 24, 0},
    {"Clip", 6, "min=0.0 max=6.0", "2,3,4", 0, 0, 48, 0, 24, 24, 0},
    {"LeakyRelu", 16, "", "2,3,4", 0, 0, 48, 0, 24, 24, 0},
    {"PRelu", 16, "", "2,3,4 !4", 0, 0, 48, 0, 28, 24, 4},
    {"Sigmoid", 13, "", "2,3,4", 0, 0, 96, 48, 24, 24, 0},
    {"Tanh", 13, "", "2,3,4", 0, 0, 24, 24, 24, 24, 0},
    {"Erf", 13, "", "2,3,4", 0, 0, 24, 24, 24, 24, 0},
    {"Exp", 13, "", "2,3,4", 0, 0, 24, 24, 24, 24, 0},
    {"Log", 13, "", "2,3,4", 0, 0, 24, 24, 24, 24, 0},
    {"Sqrt", 13, "", "2,3,4", 0, 0, 24, 24, 24, 24, 0},
    {"HardSigmoid", 6, "", "2,3,4", 0, 24, 96, 0, 24, 24, 0},
    {"HardSwish", 14, "", "2,3,4", 0, 24, 120, 0, 24, 24, 0},
    {"Gelu", 20, "", "2,3,4", 0, 0, 120, 24, 24, 24, 0},
    {"Gelu", 20, "approximate='tanh'", "2,3,4", 0, 0, 216, 24, 24, 24, 0},
    {"Add", 14, "", "2,3,4 4", 0, 0, 24, 0, 28, 24, 0},
    {"Div", 14, "", "2,3,4 2,3,4", 0, 0, 24, 24, 48, 24, 0},
    {"Pow", 15, "", "2,3,4 2,3,4", 0, 0, 24, 24, 48, 24, 0},
    {"Max", 13, "", "2,3,4 2,3,4 2,3,4", 0, 0, 48, 0, 72, 24, 0},
    {"Sum", 13, "", "2,3,4 2,3,4 2,3,4", 0, 0, 48, 0, 72, 24, 0},
    {"MaxPool", 12, "kernel_shape=[2,2] strides=[2,2]", "1,2,4,4", 0, 0, 24, 0, 32, 8, 0},
    {"GlobalMaxPool", 1, "", "1,2,4,4", 0, 0, 30, 0, 32, 2, 0},
    {"AveragePool", 11, "kernel_shape=[2,2] strides=[2,2]", "1,2,4,4", 0, 0, 32, 8, 32, 8, 0},
    {"GlobalAveragePool", 1, "", "1,2,4,4", 0, 0, 32, 2, 32, 2, 0},
    {"ReduceSum", 11, "axes=[1]", "2,3,4", 0, 0, 16, 0, 24, 8, 0},
    {"ReduceMax", 11, "axes=[1]", "2,3,4", 0, 0, 16, 0, 24, 8, 0},
    {"ReduceMean", 11, "axes=[1]", "2,3,4", 0, 0, 24, 8, 24, 8, 0},
    /* T = 3, B = 2, I = 4, H = 5: M = 6 * 20 * 9; biases 6 * 40; three sigmoids, two tanh and four more per element */
    {"LSTM", 14, "hidden_size=5", "3,2,4 !1,20,4 !1,20,5 !1,40", 1080, 1080, 2940, 240, 244, 30, 220},
    {"LSTM", 14, "hidden_size=5", "3,2,4 !1,20,4 !1,20,5", 1080, 1080, 2700, 240, 204, 30, 180},
    {"Transpose", 13, "", "3,4", 0, 0, 0, 0, 12, 12, 0},
    {"Conv", 13, "", "0,3,8,8 !4,3,3,3 !4", 0, 0, 0, 0, 112, 0, 112},
};

static void compare(const native_row *row, const char *what, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        fail_msg("%s %s (%s): %s %llu, wanted %llu", row->op, row->attributes, row->inputs, what,
                 (unsigned long long)got, (unsigned long long)wanted);
}

static void test_single_operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const native_row *row = &rows[i];
        model_builder *m = one_node(row->op, row->opset, row->attributes, row->inputs);
        prony_report *report = inspect_built(m);
        const prony_cost *layer = &prony_report_layers(report, NULL)->cost, *total = &prony_report_totals(report)->cost;
        compare(row, "macs", layer->macs, row->macs);
        compare(row, "madds", layer->madds, row->madds);
        compare(row, "flops", layer->flops, row->flops);
        compare(row, "special", layer->special, row->special);
        compare(row, "int_ops", layer->int_ops, 0);
        compare(row, "bytes read", layer->bytes_read, 4 * row->elements_read);
        compare(row, "bytes written", layer->bytes_written, 4 * row->elements_written);
        compare(row, "parameters", layer->parameters, row->parameters);
        compare(row, "macs in all", total->macs, row->macs);
        compare(row, "flops in all", total->flops, row->flops);
        prony_report_release(report);
        mb_free(m);
    }
}

static void test_facts_of_a_convolution(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t value;
    } wanted[] = {{"groups", 2},           {"bias", 1},          {"kernel_volume", 6},
                  {"in_channels", 4},      {"out_channels", 6},  {"input_elements", 80},
                  {"output_elements", 72}, {"batch_spatial", 12}};
    model_builder *m = one_node("Conv", 13, "group=2 pads=[1,0,0,0]", "1,4,4,5 !6,2,2,3 !6");
    prony_report *report = inspect_built(m);
    const prony_cost *cost = &prony_report_layers(report, NULL)->cost;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        SCENARIO_NAMED(i, wanted[i].name);
        uint32_t f = 0;
        while (f < cost->fact_count && strcmp(cost->facts[f].key, wanted[i].name) != 0) f++;
        assert_true(f < cost->fact_count);
        assert_int_equal(cost->facts[f].value, wanted[i].value);
    }
    prony_report_release(report);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_operators),
        cmocka_unit_test(test_facts_of_a_convolution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
