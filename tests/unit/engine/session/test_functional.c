/* One call per question: values, rows, and refusals. The models are the digits network, and one with a BatchNorm. */
#include "failure_trace.h"
#include "model_builder.h"

#include "base/memory/alloc.h"
#include "base/shape.h"
#include "prony_analysis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static prony_model *load(model_builder *m)
{
    size_t size;
    prony_model *model = NULL;
    prony_error error = {0};
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "test", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

/* [N, 2, 4, 4] -> Conv 3 1x1, BatchNormalization, Relu, Flatten, Gemm 48 -> 5 */
static model_builder *small_model(void)
{
    static const float zeros[256] = {0}, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "N,2,4,4");
    mb_initializer(m, "w", PRONY_FLOAT32, "3,2,1,1", ones);
    mb_initializer(m, "s", PRONY_FLOAT32, "3", ones);
    mb_initializer(m, "b", PRONY_FLOAT32, "3", zeros);
    mb_initializer(m, "mean", PRONY_FLOAT32, "3", zeros);
    mb_initializer(m, "var", PRONY_FLOAT32, "3", ones);
    mb_initializer(m, "fw", PRONY_FLOAT32, "48,5", zeros);
    mb_initializer(m, "fb", PRONY_FLOAT32, "5", zeros);
    mb_node(m, "Conv", "x w", "c", "");
    mb_node_name(m, "/stem/Conv");
    mb_node(m, "BatchNormalization", "c s b mean var", "n", "");
    mb_node_name(m, "/stem/Norm");
    mb_node(m, "Relu", "n", "r", "");
    mb_node_name(m, "/stem/Relu");
    mb_node(m, "Flatten", "r", "f", "");
    mb_node(m, "Gemm", "f fw fb", "y", "");
    mb_node_name(m, "/head/fc");
    mb_output(m, "y", PRONY_FLOAT32, "N,5");
    return m;
}

static prony_session_options batch_of(int64_t batch)
{
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.batch = batch;
    options.intra_op_threads = 1;
    return options;
}

static void test_figures(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_session_options options = batch_of(1000);
    prony_quantity f;
    prony_error error = {0};
    assert_int_equal(prony_profile_macs(&f, model, &options, &error), PRONY_OK);
    assert_int_equal(f.value, 1000 * (48 * 2 + 48 * 5));
    assert_string_equal(f.text, "336.0 kMACs");
    assert_int_equal(prony_profile_madds(&f, model, &options, &error), PRONY_OK);
    assert_int_equal(f.value, 1000 * (48 * 2 + 48 + 48 * 5));
    assert_int_equal(prony_profile_flops(&f, model, &options, &error), PRONY_OK);
    assert_int_equal(f.value, 1000 * (2 * 48 * 2 + 2 * 48 + 48 + 2 * 48 * 5 + 5));
    assert_string_equal(f.text, "821.0 kFLOPs");
    assert_int_equal(prony_profile_params(&f, model, NULL, &error), PRONY_OK);
    assert_int_equal(f.value, 6 + 6 + 240 + 5);
    assert_string_equal(f.text, "257");
    options = batch_of(2);
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    runs.runs = 5;
    runs.warmup_runs = 1;
    assert_int_equal(prony_profile_memory(&f, model, &options, &error), PRONY_OK);
    assert_true(f.value >= 4 * (257 + 6) && strstr(f.text, "KiB"));
    assert_int_equal(prony_profile_runtime(&f, model, &options, &runs, &error), PRONY_OK);
    assert_true(f.value > 0 && f.text[strlen(f.text) - 1] == 's');
    options.batch = -5;
    assert_int_not_equal(prony_profile_macs(&f, model, &options, &error), PRONY_OK);
    assert_int_equal(prony_profile_macs(NULL, model, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_profile_macs(&f, NULL, NULL, &error), PRONY_INVALID_ARGUMENT);
    prony_model_release(model);
    mb_free(m);
}

static void test_metrics(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_session_options options = batch_of(4);
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    prony_metric_value *values = NULL;
    size_t count = 0;
    prony_metrics *metrics = NULL;
    runs.runs = 5;
    assert_int_equal(prony_profile_metrics(&values, &count, model, &options, &runs, NULL, NULL), PRONY_OK);
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    assert_int_equal(count, prony_metrics_count(metrics));
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        if (strcmp(values[i].metric->key, "critical_path_share") == 0) {
            found = values[i].known; /* a chain: all of the time */
            assert_true(values[i].value > 0.999 && values[i].value < 1.001);
        }
        if (strcmp(values[i].metric->key, "buffers") == 0) assert_true(values[i].value == 6);
        if (strcmp(values[i].metric->key, "requests_per_second") == 0) assert_true(values[i].known);
    }
    assert_true(found);
    prony_rows_release(values);
    assert_int_equal(prony_profile_metrics(&values, &count, model, &options, &runs, metrics, NULL), PRONY_OK);
    assert_ptr_equal(values[3].metric, prony_metrics_at(metrics, 3));
    prony_rows_release(values);
    prony_metrics_release(metrics);
    prony_model_release(model);
    mb_free(m);
}

static void test_params(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_params_row *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_count_params(&rows, &count, model, NULL, NULL), PRONY_OK);
    mb_free(m);
    prony_model_release(model); /* the rows stand alone */
    static const struct {
        uint32_t layer;
        const char *name;
        uint64_t trainable, buffers;
    } wanted[] = {{PRONY_NO_INDEX, "__root__", 257, 6},
                  {0, "/stem/Conv", 6, 0},
                  {1, "/stem/Norm", 6, 6},
                  {4, "/head/fc", 245, 0}};
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        assert_int_equal(rows[i].layer, wanted[i].layer);
        assert_string_equal(rows[i].name, wanted[i].name);
        assert_int_equal(rows[i].trainable, wanted[i].trainable);
        assert_int_equal(rows[i].buffers, wanted[i].buffers);
        assert_int_equal(rows[i].bits, 32 * (wanted[i].trainable + wanted[i].buffers));
        assert_string_equal(rows[i].types, "float32");
        double share = (double)(wanted[i].trainable + wanted[i].buffers) / 263;
        assert_true(rows[i].share > share - 1e-9 && rows[i].share < share + 1e-9);
    }
    prony_rows_release(rows);
    prony_rows_release(NULL);
}

static void test_io(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_session_options options = batch_of(2);
    prony_io_row *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_trace_io_sizes(&rows, &count, model, &options, NULL), PRONY_OK);
    assert_int_equal(count, (2 + 1) + (5 + 1) + (1 + 1) + (1 + 1) + (3 + 1));
    assert_string_equal(rows[0].op, "Conv");
    assert_false(rows[0].output);
    assert_int_equal(rows[0].shape.dim[0], 2);
    assert_int_equal(rows[0].elements, 64);
    assert_int_equal(rows[0].bits, 64 * 32);
    assert_true(rows[2].output && rows[2].elements == 96 && rows[2].shape.dim[1] == 3);
    assert_int_equal(rows[count - 1].elements, 10);
    prony_rows_release(rows);
    prony_model_release(model);
    mb_free(m);
}

static void test_ops(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_ops_row *rows = NULL;
    size_t count = 0;
    prony_error error = {0};
    assert_int_equal(prony_estimate_ops(&rows, &count, model, NULL, "deeplite", &error), PRONY_OK);
    assert_int_equal(count, 6);
    prony_ops_row sum = {0};
    double share = 0;
    for (size_t i = 1; i < count; i++) {
        SCENARIO(i);
        sum.macs += rows[i].macs;
        sum.madds += rows[i].madds;
        sum.flops += rows[i].flops;
        sum.special += rows[i].special;
        sum.count += rows[i].count;
        share += rows[i].share;
        assert_int_equal(rows[i].layer, i - 1);
    }
    assert_string_equal(rows[0].name, "__root__");
    assert_int_equal(rows[0].macs, sum.macs);
    assert_int_equal(rows[0].madds, sum.madds);
    assert_int_equal(rows[0].flops, sum.flops);
    assert_int_equal(rows[0].special, sum.special);
    assert_true(rows[0].counted && rows[0].count == sum.count);
    assert_int_equal(rows[0].count, 48 * 2 + 2 * 48 + 48 * 5);
    assert_true(share > 0.999999 && share < 1.000001);
    prony_rows_release(rows);
    assert_int_equal(prony_estimate_ops(&rows, &count, model, NULL, NULL, &error), PRONY_OK);
    assert_false(rows[0].counted);
    prony_rows_release(rows);
    assert_int_equal(prony_estimate_ops(&rows, &count, model, NULL, "ptflops", &error), PRONY_INVALID_ARGUMENT);
    prony_model_release(model);
    mb_free(m);
}

static void test_times(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_session_options options = batch_of(1);
    prony_timing_options timing = PRONY_TIMING_OPTIONS_INIT;
    prony_timing_row *rows = NULL;
    size_t count = 0;
    prony_error error = {0};
    assert_int_equal(prony_estimate_inference_time(&rows, &count, model, &options, NULL, &error), PRONY_OK);
    assert_int_equal(count, 6);
    assert_int_equal(rows[0].sample_count, 900); /* 1000 iterations, the first 100 dropped */
    assert_null(rows[0].samples_ns);
    int64_t mean = 0;
    for (size_t i = 1; i < count; i++) mean += rows[i].mean_ns;
    assert_true(mean > 0 && mean <= rows[0].mean_ns);
    assert_true(rows[0].min_ns <= rows[0].median_ns && rows[0].median_ns <= rows[0].max_ns);
    prony_rows_release(rows);

    timing.iterations = 40;
    timing.dropped = 10;
    timing.every_sample = true;
    assert_int_equal(prony_estimate_inference_time(&rows, &count, model, &options, &timing, &error), PRONY_OK);
    assert_int_equal(rows[0].sample_count, 30);
    for (size_t s = 0; s < 30; s++) {
        SCENARIO(s);
        int64_t inside = 0;
        for (size_t i = 1; i < count; i++) inside += rows[i].samples_ns ? rows[i].samples_ns[s] : 0;
        assert_true(inside > 0 && inside <= rows[0].samples_ns[s]);
    }
    for (size_t i = 0; i < count; i++) { /* the aggregate is that of the samples */
        int64_t low = INT64_MAX;
        for (size_t s = 0; rows[i].samples_ns && s < 30; s++)
            low = rows[i].samples_ns[s] < low ? rows[i].samples_ns[s] : low;
        if (rows[i].samples_ns && !rows[i].attributed) assert_int_equal(low, rows[i].min_ns);
    }
    prony_rows_release(rows);

    prony_time_stats total;
    timing.dropped = -1; /* a tenth */
    assert_int_equal(prony_estimate_total_inference_time(&total, model, &options, &timing, &error), PRONY_OK);
    assert_int_equal(total.count, 36);
    assert_true(total.median_ns > 0);
    timing.dropped = 40;
    assert_int_equal(prony_estimate_total_inference_time(&total, model, &options, &timing, &error),
                     PRONY_INVALID_ARGUMENT);
    assert_string_equal(error.message, "40 iterations with 40 dropped leave nothing to measure");
    timing.struct_size = 0;
    assert_int_equal(prony_estimate_inference_time(&rows, &count, model, &options, &timing, &error),
                     PRONY_INVALID_ARGUMENT);
    prony_model_release(model);
    mb_free(m);
}

/* A measurement of half a second shows every usable processor as busy or idle, in consecutive intervals. */
static void test_cores(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    prony_session *session = NULL;
    prony_report *report = NULL;
    prony_session_options options = batch_of(1);
    prony_profile_options runs = PRONY_PROFILE_OPTIONS_INIT;
    runs.runs = 1;
    assert_int_equal(prony_session_create(&session, model, &options, NULL), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, NULL), PRONY_OK);
    assert_int_equal(prony_session_profile(&report, session, &runs, NULL), PRONY_OK);
    size_t cores, points;
    const int64_t *times;
    assert_null(prony_report_cores(report, &cores, &times, &points)); /* too short to tell */
    prony_report_release(report);
    for (int attempt = 0; attempt < 3; attempt++) {
        SCENARIO(attempt);
        runs.runs = 20000 << attempt * 3;
        assert_int_equal(prony_session_profile(&report, session, &runs, NULL), PRONY_OK);
        const prony_core_row *rows = prony_report_cores(report, &cores, &times, &points);
        double busiest = 0;
        for (size_t c = 0; c < cores && rows; c++) {
            assert_true(rows[c].core >= 0 && rows[c].mean >= 0 && rows[c].mean <= 1);
            busiest = rows[c].mean > busiest ? rows[c].mean : busiest;
            for (size_t p = 0; p < points; p++) assert_true(rows[c].use[p] >= 0 && rows[c].use[p] <= 1);
        }
        for (size_t p = 1; p < points; p++) assert_true(times[p] > times[p - 1]);
        prony_report_release(report);
        if (rows && points >= 2) {
            assert_true(cores > 0 && busiest > 0);
            break;
        }
        assert_int_not_equal(attempt, 2);
    }
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

static void test_no_memory(void **state)
{
    (void)state;
    model_builder *m = small_model();
    prony_model *model = load(m);
    for (uint64_t n = 1;; n++) {
        prony_params_row *params = NULL;
        size_t count = 0;
        prn_alloc_fail_at(n);
        prony_status status = prony_count_params(&params, &count, model, NULL, NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        prony_rows_release(params);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            break;
        }
        assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        assert_null(params);
    }
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures), cmocka_unit_test(test_metrics),   cmocka_unit_test(test_params),
        cmocka_unit_test(test_io),      cmocka_unit_test(test_ops),       cmocka_unit_test(test_times),
        cmocka_unit_test(test_cores),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
