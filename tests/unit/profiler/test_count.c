/* Counting presets: values worked out by hand from each tool's formulas, the published counts, composites, and equal
 * counts of a saved and a live report. */
#include "failure_trace.h"
#include "one_node.h"
#include "profiler/report/report.h"
#include "text_sink.h"

#include <stdio.h>

enum { FVCORE, DEEPSPEED, ONNX_TOOL, MODULEPROFILER, THOP, TORCH, DEEPLITE, PRESETS };

static const char *const names[PRESETS] = {"fvcore", "deepspeed", "onnx-tool", "moduleprofiler",
                                           "thop",   "torch",     "deeplite"};

#define NOT (-1) /* not counted */

typedef struct count_row {
    const char *op;
    int64_t opset;
    const char *attributes, *inputs; /* "1,3,8,8 !4,3,3,3": dims of each input; ! is a weight, ? omitted */
    int64_t wanted[PRESETS];
} count_row;

static const count_row rows[] = {
    {"Conv", 13, "pads=[1,1,1,1]", "1,3,8,8 !4,3,3,3 !4", {6912, 14080, 7168, 13824, 6912, 13824, 6912}},
    {"Conv", 13, "group=2", "1,4,5,5 !6,2,3,3", {972, 1944, 972, 1890, 972, 1944, 972}},
    {"ConvTranspose", 13, "strides=[2,2]", "1,4,3,3 !4,2,2,2", {288, 576, 576, NOT, 1152, 576, 288}},
    {"ConvTranspose", 13, "group=2", "1,4,3,3 !4,3,2,2 !6", {432, 960, 1248, NOT, 768, 864, 432}},
    {"Gemm", 13, "", "1,8 !8,32 !32", {256, 512, 288, 512, 256, 512, 256}},
    {"Gemm", 13, "", "2,8 !8,32", {512, 1024, 512, 960, 512, 1024, 512}},
    {"MatMul", 13, "", "2,8 !8,32", {512, 1024, 512, 960, 512, 1024, 512}},
    {"MatMul", 13, "", "2,3,4 2,4,5", {120, 240, 120, NOT, NOT, 240, NOT}},
    {"BatchNormalization", 15, "", "2,3,4,4 !3 !3 !3 !3", {192, 192, 2976, 684, 384, NOT, 192}},
    {"LayerNormalization", 17, "", "2,5,8 !8 !8", {400, 400, 850, 600, 320, NOT, NOT}},
    {"LayerNormalization", 17, "", "2,5,8 !8", {400, 400, 850, 520, 320, NOT, NOT}},
    {"InstanceNormalization", 6, "", "1,3,4,4 !3 !3", {240, 240, NOT, NOT, 192, NOT, NOT}},
    {"GroupNormalization", 21, "num_groups=1", "1,3,4,4 !3 !3", {240, 240, NOT, NOT, NOT, NOT, NOT}},
    {"Conv", 13, "", "1,2,3,3 !4,2,3,3 !4", {72, 148, 76, 144, 72, 144, 72}},
    {"Clip", 6, "min=0.0 max=6.0", "2,3,4", {NOT, 24, 48, NOT, 0, NOT, NOT}},
    {"Attention", 23, "", "1,2,3,4 1,2,5,4 1,2,5,4", {NOT, NOT, NOT, NOT, NOT, 480, NOT}},
    {"Softmax", 13, "", "4,10", {NOT, 40, 1440, 156, 116, NOT, NOT}},
    {"Relu", 14, "", "2,3,4", {NOT, 24, 24, 24, 0, NOT, NOT}},
    {"LeakyRelu", 16, "", "2,3,4", {NOT, 24, 48, 96, 0, NOT, NOT}},
    {"PRelu", 16, "", "2,3,4 !4", {NOT, 24, 48, 96, 0, NOT, NOT}},
    {"Sigmoid", 13, "", "2,3,4", {NOT, NOT, 768, 72, NOT, NOT, NOT}},
    {"Tanh", 13, "", "2,3,4", {NOT, NOT, 912, 168, NOT, NOT, NOT}},
    {"Elu", 6, "", "2,3,4", {NOT, 24, 840, 72, NOT, NOT, NOT}},
    {"Selu", 6, "", "2,3,4", {NOT, NOT, NOT, 168, NOT, NOT, NOT}},
    {"Softplus", 1, "", "2,3,4", {NOT, NOT, NOT, 120, NOT, NOT, NOT}},
    {"Gelu", 20, "", "2,3,4", {NOT, 24, 816, NOT, NOT, NOT, NOT}},
    {"MaxPool", 12, "kernel_shape=[2,2] strides=[2,2]", "1,2,4,4", {NOT, 32, 32, 8, 0, NOT, NOT}},
    {"AveragePool", 11, "kernel_shape=[2,2] strides=[2,2]", "1,2,4,4", {NOT, 32, 32, 32, 8, NOT, NOT}},
    {"GlobalAveragePool", 1, "", "1,2,4,4", {32, 32, 40, 2, 34, NOT, NOT}},
    {"LSTM", 14, "hidden_size=5", "3,2,4 !1,20,4 !1,20,5 !1,40", {NOT, 2460, 6720, 3090, 1560, NOT, NOT}},
    {"LSTM", 14, "hidden_size=5", "3,2,4 !1,20,4 !1,20,5", {NOT, 2220, 6480, 2850, 1320, NOT, NOT}},
    {"GRU", 14, "hidden_size=5", "3,2,4 !1,15,4 !1,15,5 !1,30", {NOT, 1830, 4290, 2250, 1200, NOT, NOT}},
    {"GRU",
     14,
     "hidden_size=5 direction='bidirectional'",
     "3,2,4 !2,15,4 !2,15,5",
     {NOT, 3300, 4920, 4140, 2040, NOT, NOT}},
    {"RNN", 14, "hidden_size=5", "3,2,4 !1,5,4 !1,5,5 !1,10", {NOT, 570, NOT, NOT, 360, NOT, NOT}},
    {"Add", 14, "", "2,3,4 2,3,4", {NOT, 24, 24, NOT, NOT, NOT, NOT}},
    {"Mul", 14, "", "2,3,4 4", {NOT, 24, 24, NOT, NOT, NOT, NOT}},
    {"Sum", 13, "", "2,3,4 2,3,4 2,3,4", {NOT, NOT, 48, NOT, NOT, NOT, NOT}},
    {"Div", 14, "", "2,3,4 2,3,4", {NOT, NOT, 96, NOT, NOT, NOT, NOT}},
    {"Exp", 13, "", "2,3,4", {NOT, NOT, 768, NOT, NOT, NOT, NOT}},
    {"Pow", 15, "", "2,3,4 2,3,4", {NOT, NOT, 768, NOT, NOT, NOT, NOT}},
    {"Log", 13, "", "2,3,4", {NOT, NOT, 1032, NOT, NOT, NOT, NOT}},
    {"Sqrt", 13, "", "2,3,4", {NOT, NOT, 576, NOT, NOT, NOT, NOT}},
    {"Einsum", 12, "equation='ij,jk->ik'", "3,4 4,5", {60, 120, NOT, NOT, NOT, 120, NOT}},
    {"Transpose", 13, "", "3,4", {NOT, NOT, NOT, NOT, NOT, NOT, NOT}},
};

static void check_operator(const prony_report *report, const count_row *row, int p)
{
    const prony_layer_row *layer = prony_report_layers(report, NULL);
    bool counted = row->wanted[p] != NOT;
    if (layer->counted != counted || (counted && (int64_t)layer->count != row->wanted[p]))
        fail_msg("%s (%s) by %s: %s %lld, wanted %lld", row->op, row->inputs, names[p],
                 layer->counted ? "" : "not counted", (long long)layer->count, (long long)row->wanted[p]);
    assert_true(prony_report_totals(report)->counted);
    assert_int_equal(prony_report_totals(report)->count, counted ? row->wanted[p] : 0);
    size_t left_out;
    double share;
    const char *const *ops = prony_report_uncounted(report, &left_out, &share);
    bool computes = layer->cost.flops > 0;
    assert_int_equal(left_out, !counted && computes);
    if (left_out) assert_string_equal(ops[0], row->op);
    assert_true(share < 0); /* nothing was measured */
}

static void test_operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].op);
        model_builder *m = one_node(rows[i].op, rows[i].opset, rows[i].attributes, rows[i].inputs);
        prony_report *report = inspect_built(m);
        prony_error error = {0};
        for (int p = 0; p < PRESETS; p++) {
            if (prony_report_set_count(report, names[p], &error) != PRONY_OK) fail_msg("%s", error.message);
            check_operator(report, &rows[i], p);
        }
        prony_report_release(report);
        mb_free(m);
    }
}

static void test_resize(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        int64_t fvcore, thop;
    } modes[] = {{"mode='nearest'", 16, 16}, {"mode='linear'", 64, 176}, {"mode='cubic'", NOT, 16 * 259}};
    static const float scales[] = {1, 1, 2, 2};
    for (size_t i = 0; i < 3; i++) {
        SCENARIO(i);
        model_builder *m = mb_begin(13);
        mb_input(m, "x", PRONY_FLOAT32, "1,1,2,2");
        mb_initializer(m, "scales", PRONY_FLOAT32, "4", scales);
        mb_node(m, "Resize", "x ? scales", "y", modes[i].mode);
        mb_output(m, "y", PRONY_FLOAT32, NULL);
        prony_report *report = inspect_built(m);
        count_row row = {"Resize", 13, modes[i].mode, "", {modes[i].fvcore, NOT, NOT, NOT, modes[i].thop, NOT, NOT}};
        for (int p = 0; p < PRESETS; p++) {
            assert_int_equal(prony_report_set_count(report, names[p], NULL), PRONY_OK);
            const prony_layer_row *layer = prony_report_layers(report, NULL);
            assert_int_equal(layer->counted, row.wanted[p] != NOT);
            if (layer->counted) assert_int_equal(layer->count, row.wanted[p]);
        }
        prony_report_release(report);
        mb_free(m);
    }
}

/* ---- published figures ---- */

static void test_linear(void **state)
{
    (void)state;
    model_builder *m = one_node("Gemm", 13, "", "1,8 !8,32 !32");
    prony_report *report = inspect_built(m);
    assert_int_equal(prony_report_set_count(report, "moduleprofiler", NULL), PRONY_OK);
    assert_int_equal(prony_report_totals(report)->count, 512);
    assert_int_equal(prony_report_totals(report)->cost.parameters, 288);
    uint64_t bits = 0;
    size_t count;
    const prony_parameter_row *parameters = prony_report_parameters(report, &count);
    for (size_t i = 0; i < count; i++) bits += parameters[i].bytes * 8;
    assert_int_equal(bits, 9216);
    prony_report_release(report);
    mb_free(m);
}

static void expect_elements(model_builder *m, uint64_t elements, uint64_t wanted_bits)
{
    prony_report *report = inspect_built(m);
    uint64_t sum = 0, bits = 0;
    size_t count;
    const prony_parameter_row *rows = prony_report_parameters(report, &count);
    for (size_t i = 0; i < count; i++) {
        sum += rows[i].elements;
        bits += rows[i].bits;
    }
    assert_int_equal(prony_report_totals(report)->cost.parameters, elements);
    assert_int_equal(sum, elements);
    assert_int_equal(bits, wanted_bits);
    assert_int_equal(report->model.parameter_bits, wanted_bits);
    prony_report_release(report);
    mb_free(m);
}

/* Codes count as elements, the padding of the last block does not; two nodes that share weights have them once. */
static void test_packed_codes(void **state)
{
    (void)state;
    static const uint8_t codes[3 * 2 * 32];
    static const float numbers[16];
    for (int packed = 0; packed < 2; packed++) {
        SCENARIO(packed);
        model_builder *m = mb_begin(17);
        mb_opset(m, "com.microsoft", 1);
        mb_input(m, "x", PRONY_FLOAT32, "2,40");
        mb_initializer(m, "w", PRONY_UINT8, "3,2,16", codes);
        mb_initializer(m, "scales", PRONY_FLOAT32, "3,2", numbers);
        mb_initializer(m, "zeros", packed ? PRONY_UINT8 : PRONY_FLOAT32, packed ? "3,1" : "3,2",
                       packed ? (const void *)codes : numbers);
        mb_node(m, "com.microsoft::MatMulNBits", "x w scales zeros", "y", "K=40 N=3 block_size=32 bits=4");
        mb_node(m, "com.microsoft::MatMulNBits", "x w scales zeros", "z", "K=40 N=3 block_size=32 bits=4");
        mb_output(m, "y", PRONY_FLOAT32, NULL);
        mb_output(m, "z", PRONY_FLOAT32, NULL);
        expect_elements(m, 120 + 6 + 6, 120 * 4 + 6 * 32 + 6 * (packed ? 4 : 32));
    }
    model_builder *m = mb_begin(17);
    mb_opset(m, "com.microsoft", 1);
    mb_input(m, "x", PRONY_FLOAT32, "3,4");
    mb_input(m, "router", PRONY_FLOAT32, "3,2");
    mb_initializer(m, "fc1", PRONY_UINT8, "2,6,2", codes);
    mb_initializer(m, "fc1s", PRONY_FLOAT32, "2,6", numbers);
    mb_initializer(m, "fc1z", PRONY_UINT8, "2,3", codes);
    mb_initializer(m, "fc2", PRONY_UINT8, "2,4,3", codes);
    mb_initializer(m, "fc2s", PRONY_FLOAT32, "2,4", numbers);
    mb_node(m, "com.microsoft::QMoE", "x router fc1 fc1s ? fc2 fc2s ? ? ? ? fc1z", "y", "k=1");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    expect_elements(m, 48 + 12 + 12 + 48 + 8, (48 + 12 + 48) * 4 + (12 + 8) * 32);
}

typedef struct resnet {
    model_builder *m;
    int convolutions;
} resnet;

/* Conv without bias, BatchNormalization and, if asked for, Relu; the result is "NAME". */
static void conv_bn(resnet *r, const char *input, const char *output, int from, int to, int kernel, int stride,
                    bool relu)
{
    char w[16], node[64], attributes[128], dims[64], inputs[512];
    int n = r->convolutions++;
    snprintf(w, sizeof w, "w%d", n);
    snprintf(dims, sizeof dims, "%d,%d,%d,%d", to, from, kernel, kernel);
    zero_weight(r->m, w, dims);
    snprintf(inputs, sizeof inputs, "%s %s", input, w);
    snprintf(node, sizeof node, "c%d", n);
    snprintf(attributes, sizeof attributes, "strides=[%d,%d] pads=[%d,%d,%d,%d]", stride, stride, kernel / 2,
             kernel / 2, kernel / 2, kernel / 2);
    mb_node(r->m, "Conv", inputs, node, attributes);
    static const char *const parts[] = {"scale", "shift", "mean", "variance"};
    snprintf(inputs, sizeof inputs, "c%d", n);
    snprintf(dims, sizeof dims, "%d", to);
    for (int k = 0; k < 4; k++) {
        snprintf(node, sizeof node, "%s%d", parts[k], n);
        zero_weight(r->m, node, dims);
        snprintf(inputs + strlen(inputs), 80, " %s", node);
    }
    snprintf(node, sizeof node, "b%d", n);
    mb_node(r->m, "BatchNormalization", inputs, relu ? node : output, "");
    if (relu) mb_node(r->m, "Relu", node, output, "");
}

static void test_resnet18_cifar(void **state)
{
    (void)state;
    resnet r = {mb_begin(13), 0};
    char x[16] = "x0", y[32], a[16], b[16], d[16];
    mb_input(r.m, "input", PRONY_FLOAT32, "1,3,32,32");
    conv_bn(&r, "input", x, 3, 64, 3, 1, true);
    for (int block = 0, channels = 64; block < 8; block++) {
        int to = 64 << block / 2, stride = to == channels ? 1 : 2;
        snprintf(a, sizeof a, "a%d", block);
        snprintf(b, sizeof b, "s%d", block);
        snprintf(d, sizeof d, "d%d", block);
        conv_bn(&r, x, a, channels, to, 3, stride, true);
        conv_bn(&r, a, b, to, to, 3, 1, false);
        if (stride == 2) conv_bn(&r, x, d, channels, to, 1, 2, false);
        snprintf(y, sizeof y, "%s %s", b, stride == 2 ? d : x);
        snprintf(a, sizeof a, "t%d", block);
        mb_node(r.m, "Add", y, a, "");
        snprintf(x, sizeof x, "x%d", block + 1);
        mb_node(r.m, "Relu", a, x, "");
        channels = to;
    }
    mb_node(r.m, "GlobalAveragePool", x, "pooled", "");
    mb_node(r.m, "Flatten", "pooled", "flat", "");
    zero_weight(r.m, "fc.w", "512,100");
    zero_weight(r.m, "fc.b", "100");
    mb_node(r.m, "Gemm", "flat fc.w fc.b", "y", "");
    mb_output(r.m, "y", PRONY_FLOAT32, "1,100");
    prony_report *report = inspect_built(r.m);
    const prony_totals *totals = prony_report_totals(report);
    assert_int_equal(totals->cost.parameters, 11220132);
    assert_int_equal((totals->cost.macs + 50000) / 100000, 5555);
    assert_int_equal(prony_report_set_count(report, "deeplite", NULL), PRONY_OK);
    assert_int_equal((totals->count + 50000) / 100000, 5567); /* 0.5567 G */
    uint64_t bytes = 0, buffers = 0;
    size_t count;
    const prony_parameter_row *parameters = prony_report_parameters(report, &count);
    for (size_t i = 0; i < count; i++) {
        bytes += parameters[i].trainable ? parameters[i].bytes : 0;
        buffers += parameters[i].trainable ? 0 : parameters[i].elements;
    }
    assert_int_equal((bytes * 10000 + (1 << 19)) >> 20, 428014); /* 42.8014 MiB, which that tool calls MB */
    assert_int_equal(buffers, 2 * 4800);
    prony_report_release(report);
    mb_free(r.m);
}

/* ---- composites ---- */

static void scalar(model_builder *m, const char *name, float value)
{
    mb_initializer(m, name, PRONY_FLOAT32, "", &value);
}

/* [2, 5, 8] through a linear layer to [2, 5, 16], GELU and LayerNormalization, all written out in primitives. */
static model_builder *written_out(void)
{
    float w[128], ones[16], some[16];
    model_builder *m = mb_begin(13);
    for (int i = 0; i < 128; i++) w[i] = (float)i / 128;
    for (int i = 0; i < 16; i++) {
        ones[i] = 0.5f;
        some[i] = (float)i;
    }
    mb_input(m, "x", PRONY_FLOAT32, "2,5,8");
    mb_initializer(m, "w", PRONY_FLOAT32, "8,16", w);
    mb_initializer(m, "b", PRONY_FLOAT32, "16", some);
    mb_initializer(m, "gamma", PRONY_FLOAT32, "16", ones);
    mb_initializer(m, "beta", PRONY_FLOAT32, "16", some);
    scalar(m, "root2", 1.41421356f);
    scalar(m, "one", 1);
    scalar(m, "half", 0.5f);
    scalar(m, "two", 2);
    scalar(m, "epsilon", 1e-5f);
    mb_node(m, "MatMul", "x w", "xw", "");
    mb_node(m, "Add", "b xw", "h", "");
    mb_node(m, "Div", "h root2", "g1", "");
    mb_node(m, "Erf", "g1", "g2", "");
    mb_node(m, "Add", "g2 one", "g3", "");
    mb_node(m, "Mul", "h g3", "g4", "");
    mb_node(m, "Mul", "g4 half", "g", "");
    mb_node(m, "ReduceMean", "g", "n1", "axes=[-1] keepdims=1");
    mb_node(m, "Sub", "g n1", "n2", "");
    mb_node(m, "Pow", "n2 two", "n3", "");
    mb_node(m, "ReduceMean", "n3", "n4", "axes=[-1] keepdims=1");
    mb_node(m, "Add", "n4 epsilon", "n5", "");
    mb_node(m, "Sqrt", "n5", "n6", "");
    mb_node(m, "Div", "n2 n6", "n7", "");
    mb_node(m, "Mul", "n7 gamma", "n8", "");
    mb_node(m, "Add", "n8 beta", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    return m;
}

/* o = 160, M = 1280, rows = 10, d = 16. onnx-tool counts the nodes as written. */
static const int64_t written_out_wanted[PRESETS] = {
    [FVCORE] = 1280 + 5 * 160,
    [DEEPSPEED] = 2 * 1280 + 160 + 5 * 160,
    [ONNX_TOOL] = 1280 + 160 + (4 + 1 + 1 + 1) * 160 + 160 + 32 * 160 + 10 + 24 * 10 + 4 * 160 + 160 + 160,
    [MODULEPROFILER] = 2 * 1280 + 10 * (7 * 16 + 4),
    [THOP] = 1280 + 4 * 160,
    [TORCH] = 2 * 1280,
    [DEEPLITE] = 1280,
};

static prony_report *profile(model_builder *m, bool rewrites)
{
    size_t size;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    const void *bytes = mb_finish(m, &size);
    options.no_rewrites = !rewrites;
    runs.runs = 3;
    runs.warmup_runs = 0;
    prony_status status = prony_model_load_memory(&model, "test", bytes, size, NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, &error);
    if (status == PRONY_OK) status = prony_session_profile(&report, session, &runs, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    prony_session_release(session);
    prony_model_release(model);
    return report;
}

static void check_written_out(prony_report *report)
{
    prony_error error = {0};
    for (int p = 0; p < PRESETS; p++) {
        if (prony_report_set_count(report, names[p], &error) != PRONY_OK) fail_msg("%s", error.message);
        int64_t found = (int64_t)prony_report_totals(report)->count, sum = 0;
        if (found != written_out_wanted[p])
            fail_msg("%s: %lld, wanted %lld", names[p], (long long)found, (long long)written_out_wanted[p]);
        size_t layers, modules;
        const prony_layer_row *rows_of = prony_report_layers(report, &layers);
        for (size_t l = 0; l < layers; l++) sum += rows_of[l].counted ? (int64_t)rows_of[l].count : 0;
        assert_int_equal(sum, found);
        assert_int_equal(prony_report_modules(report, &modules)[0].count, found);
    }
    assert_int_equal(prony_report_set_count(report, "torch", &error), PRONY_OK);
    size_t left_out;
    const char *const *ops = prony_report_uncounted(report, &left_out, NULL);
    assert_int_equal(left_out, 2); /* the composites, not their pieces */
    assert_true((strcmp(ops[0], "Gelu") == 0) != (strcmp(ops[1], "Gelu") == 0));
}

static void test_composites(void **state)
{
    (void)state;
    model_builder *m = written_out();
    prony_report *reports[] = {inspect_built(m), profile(m, true), profile(m, false)};
    for (size_t i = 0; i < 3; i++) {
        SCENARIO(i);
        check_written_out(reports[i]);
        sink s = {0};
        prony_report *loaded = NULL;
        prony_error error = {0};
        assert_int_equal(prony_report_write(reports[i], PRONY_FORMAT_JSON, NULL, sink_write, &s, &error), PRONY_OK);
        if (prony_report_load_memory(&loaded, "saved", s.text, s.size, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        assert_int_equal(prony_report_totals(loaded)->count, written_out_wanted[TORCH]);
        check_written_out(loaded);
        double share;
        (void)prony_report_uncounted(loaded, NULL, &share);
        assert_true(i == 0 ? share < 0 : share > 0 && share < 1);
        prony_report_release(loaded);
        prony_report_release(reports[i]);
        prn_free(s.text);
    }
    mb_free(m);
}

static void test_presets(void **state)
{
    (void)state;
    assert_int_equal(prony_count_preset_count(), PRESETS);
    assert_null(prony_count_preset_at(PRESETS));
    for (size_t p = 0; p < PRESETS; p++) {
        SCENARIO(p);
        const prony_count_preset *preset = prony_count_preset_at(p);
        assert_string_equal(preset->name, names[p]);
        assert_true(*preset->pin && *preset->source && *preset->note && preset->rule_count > 0);
        for (size_t r = 0; r < preset->rule_count; r++)
            assert_true(*preset->rules[r].operators && *preset->rules[r].formula);
    }
    model_builder *m = one_node("Relu", 14, "", "2,3,4");
    prony_report *report = inspect_built(m);
    prony_error error = {0};
    assert_int_equal(prony_report_set_count(report, "onnx-tool", &error), PRONY_OK);
    assert_int_equal(prony_report_set_count(report, "ptflops", &error), PRONY_INVALID_ARGUMENT);
    assert_string_equal(error.message,
                        "unknown counting preset \"ptflops\"; known: fvcore, deepspeed, onnx-tool, moduleprofiler, "
                        "thop, torch and deeplite");
    assert_int_equal(prony_report_totals(report)->count, 24); /* as it was */
    assert_int_equal(prony_report_set_count(report, NULL, &error), PRONY_OK);
    assert_false(prony_report_totals(report)->counted);
    prony_report_release(report);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),    cmocka_unit_test(test_resize),         cmocka_unit_test(test_linear),
        cmocka_unit_test(test_packed_codes), cmocka_unit_test(test_resnet18_cifar), cmocka_unit_test(test_composites),
        cmocka_unit_test(test_presets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
