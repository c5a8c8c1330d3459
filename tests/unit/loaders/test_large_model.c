/* A model of 10,000 nodes: profiled, counted, analysed, written and read back with work and sizes that grow with the
 * number of nodes, not faster. Measured in counts (heap calls, bytes), not in time. */
#include "model_builder.h"
#include "text_sink.h"
#include "prony_analysis.h"

#include <stdio.h>

typedef struct sizes {
    uint64_t heap_calls;
    size_t json_bytes, layers, modules, chain;
} sizes;

/* Residual blocks of three nodes, 50 to a stage; every tenth node reads what a whole stage before it made. */
static model_builder *chain_model(int nodes)
{
    static const float w[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    char inputs[64], output[32], name[64], last[32] = "x", skip[32] = "x";
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,4");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,4", w);
    for (int n = 0; n < nodes; n++) {
        int kind = n % 3;
        snprintf(output, sizeof output, "v%d", n);
        snprintf(inputs, sizeof inputs, "%s %s", last, kind == 0 ? "w" : skip);
        mb_node(m, kind == 0 ? "MatMul" : kind == 1 ? "Sigmoid" : "Add", kind == 1 ? last : inputs, output, "");
        snprintf(name, sizeof name, "/stage%d/block%d/node%d", n / 150, n / 3, n);
        mb_node_name(m, name);
        snprintf(last, sizeof last, "%s", output);
        if (n % 10 == 0) snprintf(skip, sizeof skip, "%s", output);
    }
    mb_output(m, last, PRONY_FLOAT32, "1,4");
    return m;
}

static void check_report(prony_report *report, sizes *out, int nodes)
{
    prony_error error = {0};
    sink json = {0}, text = {0};
    prony_report *loaded = NULL;
    uint32_t *chain = NULL;
    prony_impact_row *rows = NULL;
    size_t count;
    int64_t time_ns;
    if (prony_report_set_count(report, "onnx-tool", &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_report_write(report, PRONY_FORMAT_JSON, NULL, sink_write, &json, &error), PRONY_OK);
    if (prony_report_load_memory(&loaded, "large", json.text, json.size, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    (void)prony_report_layers(loaded, &out->layers);
    (void)prony_report_modules(loaded, &out->modules);
    assert_int_equal(out->layers, nodes);
    assert_int_equal(out->modules, 1 + (nodes + 149) / 150 + (nodes + 2) / 3);
    assert_int_equal(prony_report_critical_path(&chain, &out->chain, &time_ns, loaded, &error), PRONY_OK);
    assert_int_equal(prony_report_impact(&rows, &count, loaded, PRONY_LEVEL_LAYER, "time", "op=Sigmoid", 10, &error),
                     PRONY_OK);
    assert_int_equal(count, 10);
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.levels = PRONY_LEVEL_MODEL | PRONY_LEVEL_MODULE | PRONY_LEVEL_LAYER | PRONY_LEVEL_OPERATOR;
    assert_int_equal(prony_report_write(loaded, PRONY_FORMAT_TEXT, &options, sink_write, &text, &error), PRONY_OK);
    out->json_bytes = json.size;
    prony_rows_release(rows);
    prony_rows_release(chain);
    prony_report_release(loaded);
    prn_free(json.text);
    prn_free(text.text);
}

static sizes measure(int nodes)
{
    size_t size;
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    sizes out = {0};
    model_builder *m = chain_model(nodes);
    const void *bytes = mb_finish(m, &size);
    options.intra_op_threads = 1;
    options.record_memory = true;
    runs.runs = 2;
    runs.warmup_runs = 0;
    uint64_t before = prn_heap_calls();
    prony_status status = prony_model_load_memory(&model, "large", bytes, size, NULL, &error);
    if (status == PRONY_OK) status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = prony_session_generate_inputs(session, 0, &error);
    if (status == PRONY_OK) status = prony_session_profile(&report, session, &runs, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    check_report(report, &out, nodes);
    out.heap_calls = prn_heap_calls() - before;
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
    return out;
}

static void test_growth(void **state)
{
    (void)state;
    sizes small = measure(1000), large = measure(10000);
    assert_true(large.heap_calls < 12 * small.heap_calls);
    assert_true(large.json_bytes < 12 * small.json_bytes);
    assert_true(large.json_bytes / 10000 < 4096);
    assert_true(large.chain > 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_growth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
