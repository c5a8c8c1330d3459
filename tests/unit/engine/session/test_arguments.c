/* Every public function with NULL for everything: refused or harmless, never a crash. Also faults of custom operators:
 * invalid ranks and types, failures without a message, invalid statuses, changed outputs. */
#include "failure_trace.h"
#include "tests/support/model_run.h"
#include "prony_data.h"
#include "prony_judge.h"
#include "prony_operator.h"
#include "prony_serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENET PRN_SOURCE_DIR "/tests/data/lenet5.onnx"

/* ---- NULL ---- */

#define REFUSED(call) {#call, call}

static void null_is_refused(void **state)
{
    (void)state;
    prony_error e = {0};
    prony_value *value = NULL;
    prony_report *report = NULL;
    size_t n = 0;
    const struct {
        const char *call;
        prony_status status;
    } rows[] = {
        REFUSED(prony_value_load(NULL, NULL, &e)),
        REFUSED(prony_value_load(&value, NULL, &e)),
        REFUSED(prony_value_load_kind(NULL, "x.pb", PRONY_TENSOR, &e)),
        REFUSED(prony_value_load_array(NULL, "x.npz", NULL, &e)),
        REFUSED(prony_value_load_raw(&value, "x", PRONY_FLOAT32, NULL, &e)),
        REFUSED(prony_value_save_npy(NULL, "x.npy", &e)),
        REFUSED(prony_registry_create(NULL, &e)),
        REFUSED(prony_registry_add(NULL, NULL, &e)),
        REFUSED(prony_cost_override(NULL, "", "Relu", NULL, NULL, &e)),
        REFUSED(prony_infer_override(NULL, "", "Relu", NULL, NULL, &e)),
        REFUSED(prony_model_load(NULL, NULL, NULL, &e)),
        REFUSED(prony_model_load_memory(NULL, NULL, NULL, 0, NULL, &e)),
        REFUSED(prony_image_options_parse(NULL, NULL, &e)),
        REFUSED(prony_image_load(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_image_load_memory(NULL, NULL, NULL, 0, NULL, NULL, &e)),
        REFUSED(prony_session_create(NULL, NULL, NULL, &e)),
        REFUSED(prony_session_set_input(NULL, NULL, NULL, &e)),
        REFUSED(prony_session_generate_inputs(NULL, 0, &e)),
        REFUSED(prony_session_prepare(NULL, &e)),
        REFUSED(prony_session_run(NULL, &e)),
        REFUSED(prony_session_uncancel(NULL, &e)),
        REFUSED(prony_session_output(NULL, 0, NULL, &e)),
        REFUSED(prony_session_output_random(NULL, 0, NULL, NULL, &e)),
        REFUSED(prony_session_planned_output(NULL, 0, NULL, &e)),
        REFUSED(prony_inspect(NULL, NULL, NULL, &e)),
        REFUSED(prony_session_profile(NULL, NULL, NULL, &e)),
        REFUSED(prony_session_profile(&report, NULL, NULL, &e)),
        REFUSED(prony_profile_interleaved(NULL, NULL, 0, NULL, &e)),
        REFUSED(prony_session_monitor(NULL, NULL, &e)),
        REFUSED(prony_batcher_monitor(NULL, NULL, &e)),
        REFUSED(prony_batcher_simulate(NULL, NULL, &e)),
        REFUSED(prony_dataset_open(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_dataset_create(NULL, NULL, NULL, NULL, 0, NULL, NULL, &e)),
        REFUSED(prony_evaluate(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_top_classes(NULL, 0, NULL, NULL, 0, &e)),
        REFUSED(prony_labels_load(NULL, NULL, NULL, &e)),
        REFUSED(prony_machine_measure(NULL, NULL, &e)),
        REFUSED(prony_machine_load(NULL, &e)),
        REFUSED(prony_machine_save(NULL, &e)),
        REFUSED(prony_machine_path(NULL, 0, &e)),
        REFUSED(prony_machine_write(NULL, NULL, NULL, &e)),
        REFUSED(prony_report_load(NULL, NULL, &e)),
        REFUSED(prony_report_load_memory(NULL, NULL, NULL, 0, &e)),
        REFUSED(prony_report_set_count(NULL, "fvcore", &e)),
        REFUSED(prony_report_set_evaluation(NULL, NULL, 0, 0, &e)),
        REFUSED(prony_report_add_evaluation(NULL, NULL, 0, &e)),
        REFUSED(prony_report_write(NULL, PRONY_FORMAT_TEXT, NULL, NULL, NULL, &e)),
        REFUSED(prony_report_save(NULL, PRONY_FORMAT_TEXT, NULL, NULL, &e)),
        REFUSED(prony_report_types(NULL, NULL, NULL, &e)),
        REFUSED(prony_report_impact(NULL, NULL, NULL, 0, NULL, NULL, 0, &e)),
        REFUSED(prony_report_critical_path(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_report_histogram(NULL, NULL, NULL, 0, &e)),
        REFUSED(prony_report_outliers(NULL, NULL, NULL, &e)),
        REFUSED(prony_report_steady_state(NULL, NULL, &e)),
        REFUSED(prony_metrics_create(NULL, &e)),
        REFUSED(prony_metrics_add(NULL, NULL, 0, NULL, NULL, &e)),
        REFUSED(prony_metrics_compute(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_metrics_compute_all(NULL, NULL, NULL, &e)),
        REFUSED(prony_metrics_write(NULL, NULL, NULL, false, PRONY_FORMAT_TEXT, NULL, NULL, NULL, &e)),
        REFUSED(prony_metrics_print(NULL, NULL, false, NULL, NULL, &e)),
        REFUSED(prony_metric_parse(NULL, NULL, NULL, &e)),
        REFUSED(prony_compare(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_comparison_write(NULL, PRONY_FORMAT_TEXT, NULL, NULL, NULL, &e)),
        REFUSED(prony_threshold_parse(NULL, NULL, NULL, &e)),
        REFUSED(prony_check(NULL, NULL, NULL, NULL, 1, &e)),
        REFUSED(prony_check_write(NULL, 1, NULL, PRONY_FORMAT_TEXT, NULL, NULL, NULL, &e)),
        REFUSED(prony_recommend(NULL, NULL, NULL, NULL, 0, &e)),
        REFUSED(prony_advice_write(NULL, 1, NULL, PRONY_FORMAT_TEXT, NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_macs(NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_madds(NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_flops(NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_params(NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_memory(NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_runtime(NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_profile_metrics(NULL, NULL, NULL, NULL, NULL, NULL, &e)),
        REFUSED(prony_count_params(NULL, &n, NULL, NULL, &e)),
        REFUSED(prony_trace_io_sizes(NULL, &n, NULL, NULL, &e)),
        REFUSED(prony_estimate_ops(NULL, &n, NULL, NULL, NULL, &e)),
        REFUSED(prony_estimate_inference_time(NULL, &n, NULL, NULL, NULL, &e)),
        REFUSED(prony_estimate_total_inference_time(NULL, NULL, NULL, NULL, &e)),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status != PRONY_INVALID_ARGUMENT)
            fail_msg("%s: %s", rows[i].call, prony_status_text(rows[i].status));
}

static void null_is_harmless(void **state)
{
    (void)state;
    size_t n = 1;
    int64_t i = 0;
    float f = 0;
    double share = 0;
    prony_string s = {0};
    const int64_t *ints;
    const float *floats;
    const prony_value *value;
    assert_int_equal(prony_fail(NULL, PRONY_LIMIT, "%d", 1), PRONY_LIMIT);
    assert_false(prony_cancelled(NULL));
    prony_parallel_for(NULL, 10, 1, NULL, NULL);
    assert_int_equal(prony_shape_numel(NULL), -1);
    assert_int_equal(prony_shape_numel(&(prony_shape){.rank = 99}), -1);
    assert_int_equal(prony_dtype_bytes((prony_dtype)99, 1), SIZE_MAX);
    assert_non_null(prony_dtype_name((prony_dtype)99));
    assert_non_null(prony_status_text((prony_status)99));
    assert_non_null(prony_verdict_name((prony_verdict)99));
    assert_non_null(prony_basis_name((prony_basis)99));
    assert_non_null(prony_bound_name((prony_bound)99));
    assert_false(prony_node_int(NULL, "x", &i));
    assert_false(prony_node_float(NULL, "x", &f));
    assert_false(prony_node_string(NULL, "x", &s));
    assert_false(prony_node_ints(NULL, "x", &ints, &n));
    assert_false(prony_node_floats(NULL, "x", &floats, &n));
    assert_false(prony_node_tensor(NULL, NULL, &value));
    assert_int_equal(prony_model_input_count(NULL), 0);
    assert_int_equal(prony_model_output_count(NULL), 0);
    assert_null(prony_model_input(NULL, 0));
    assert_null(prony_model_output(NULL, 0));
    assert_int_equal(prony_session_threads(NULL), 0);
    assert_int_equal(prony_dataset_count(NULL), 0);
    assert_false(prony_image_is_file(NULL));
    prony_session_cancel(NULL);
    assert_null(prony_report_totals(NULL));
    assert_null(prony_report_memory(NULL));
    assert_null(prony_report_latency(NULL));
    assert_null(prony_report_end_to_end(NULL));
    assert_null(prony_report_layers(NULL, &n));
    assert_null(prony_report_operators(NULL, &n));
    assert_null(prony_report_modules(NULL, &n));
    assert_null(prony_report_parameters(NULL, &n));
    assert_null(prony_report_unsupported(NULL, &n));
    assert_null(prony_report_uncounted(NULL, &n, &share));
    assert_null(prony_report_evaluations(NULL, &n));
    assert_null(prony_report_cores(NULL, &n, NULL, NULL));
    assert_true(prony_report_time_coverage(NULL) < 0);
    assert_int_equal(prony_report_bound(NULL, 0, &share), PRONY_BOUND_UNKNOWN);
    assert_int_equal(prony_report_layer_samples(NULL, 0, NULL, 0), 0);
    assert_int_equal(prony_metrics_count(NULL), 0);
    assert_null(prony_metrics_at(NULL, 0));
    assert_null(prony_metrics_find(NULL, "latency"));
    assert_null(prony_machine_get_info(NULL));
    assert_null(prony_machine_compute(NULL, &n));
    assert_null(prony_machine_bandwidth(NULL, &n));
    assert_null(prony_comparison_metrics(NULL, &n));
    assert_null(prony_comparison_layers(NULL, &n));
    assert_null(prony_comparison_types(NULL, &n));
    assert_null(prony_comparison_notes(NULL, &n));
    assert_int_equal(prony_comparison_regressions(NULL), 0);
    assert_null(prony_count_preset_at(100000));
    assert_null(prony_operator_at(100000));
    prony_value_release(NULL);
    prony_registry_release(NULL);
    prony_model_release(NULL);
    prony_session_release(NULL);
    prony_report_release(NULL);
    prony_dataset_release(NULL);
    prony_machine_release(NULL);
    prony_metrics_release(NULL);
    prony_comparison_release(NULL);
    prony_rows_release(NULL);
}

/* ---- what a session is given ---- */

static void session_options_are_looked_at(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = NULL;
    prony_session *session = NULL;
    assert_int_equal(prony_model_load(&model, LENET, NULL, &error), PRONY_OK);
    const prony_dim unnamed = {NULL, 1};
    const prony_named_shape nameless = {NULL, {1, {1}}}, wild = {"input", {99, {1}}},
                            negative = {"input", {4, {-5, 1, 28, 28}}};
    const prony_named_shape *shapes[] = {&nameless, &wild, &negative, NULL};
    for (size_t i = 0; i < 6; i++) {
        SCENARIO(i);
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        if (i < 4) {
            options.shapes = shapes[i];
            options.shape_count = 1;
        } else {
            options.dims = i == 4 ? &unnamed : NULL;
            options.dim_count = 1;
        }
        assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_INVALID_ARGUMENT);
    }
    assert_int_equal(prony_session_create(&session, model, NULL, &error), PRONY_OK);
    float x = 0;
    const prony_value wrong[] = {{.dtype = PRONY_FLOAT32, .shape = {99, {1}}, .data = &x},
                                 {.dtype = (prony_dtype)77, .shape = {1, {1}}, .data = &x},
                                 {.dtype = PRONY_FLOAT32, .shape = {-7, {1}}, .data = &x},
                                 {.dtype = PRONY_FLOAT32, .shape = {1, {-9}}, .data = &x},
                                 {.kind = (prony_kind)9, .dtype = PRONY_FLOAT32, .shape = {1, {1}}, .data = &x},
                                 {.kind = PRONY_SEQUENCE, .dtype = PRONY_FLOAT32, .count = 3}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(prony_session_set_input(session, "input", &wrong[i], &error), PRONY_INVALID_ARGUMENT);
    prony_session_release(session);
    prony_model_release(model);
}

/* ---- results of a custom operator ---- */

static int misdeed;

static prony_status infer_badly(const prony_context *context)
{
    prony_value *out = context->outputs[0];
    out->dtype = PRONY_FLOAT32;
    out->shape = (prony_shape){1, {2}};
    if (misdeed == 0) out->shape.rank = 99;
    if (misdeed == 1) out->dtype = (prony_dtype)1000;
    if (misdeed == 2) out->shape.dim[0] = -77;
    if (misdeed == 3) return (prony_status)12345;
    if (misdeed == 4) return PRONY_OUT_OF_RANGE;
    return PRONY_OK;
}

static prony_status cost_badly(const prony_context *context, prony_cost *cost)
{
    (void)context;
    if (misdeed == 5) cost->fact_count = 1000;
    return misdeed == 6 ? PRONY_UNSUPPORTED : PRONY_OK;
}

static prony_status run_badly(const prony_context *context)
{
    float *y = context->outputs[0]->data;
    y[0] = y[1] = 1;
    if (misdeed == 7) context->outputs[0]->shape.rank = 99;
    if (misdeed == 8) context->outputs[0]->shape.dim[0] = 1000000;
    if (misdeed == 9) context->outputs[0]->data = NULL;
    if (misdeed == 10) return (prony_status)-3;
    if (misdeed == 11) return PRONY_LIMIT;
    if (misdeed == 12) return prony_fail(context, PRONY_LIMIT, "own words");
    return PRONY_OK;
}

static void custom_operators_are_not_trusted(void **state)
{
    (void)state;
    static const struct {
        prony_status status;
        const char *text;
    } rows[] = {{PRONY_INVALID_ARGUMENT, "rank (99)"},
                {PRONY_INVALID_ARGUMENT, "element type (1000)"},
                {PRONY_INVALID_ARGUMENT, "a dimension below -1"},
                {PRONY_INTERNAL, "infer function returned an invalid status (12345)"},
                {PRONY_OUT_OF_RANGE, "infer function failed without a message: value out of range"},
                {PRONY_INVALID_ARGUMENT, "more than 12 facts"},
                {PRONY_UNSUPPORTED, "cost function failed without a message"},
                {PRONY_INVALID_ARGUMENT, "run function changed"},
                {PRONY_INVALID_ARGUMENT, "run function changed"},
                {PRONY_INVALID_ARGUMENT, "run function changed"},
                {PRONY_INTERNAL, "run function returned an invalid status (-3)"},
                {PRONY_LIMIT, "run function failed without a message: limit exceeded"},
                {PRONY_LIMIT, "own words"},
                {PRONY_OK, ""}};
    prony_registry *registry = NULL;
    prony_operator definition = PRONY_OPERATOR_INIT;
    definition.domain = "mine";
    definition.name = "Bad";
    definition.infer = infer_badly;
    definition.cost = cost_badly;
    definition.run = run_badly;
    assert_int_equal(prony_registry_create(&registry, NULL), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &definition, NULL), PRONY_OK);
    model_builder *m = mb_begin(16);
    mb_opset(m, "mine", 1);
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "mine::Bad", "x", "h", "");
    mb_node_name(m, "it");
    mb_node(m, "Relu", "h", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    for (misdeed = 0; misdeed < (int)(sizeof rows / sizeof *rows); misdeed++) {
        SCENARIO(misdeed);
        prony_error error = {.message = "stale"};
        prony_model *model = NULL;
        prony_session *session = NULL;
        prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
        options.registry = registry;
        assert_int_equal(prony_model_load_memory(&model, "m", bytes, size, &options, NULL), PRONY_OK);
        assert_int_equal(prony_session_create(&session, model, NULL, NULL), PRONY_OK);
        assert_int_equal(prony_session_generate_inputs(session, 0, NULL), PRONY_OK);
        prony_status status = prony_session_run(session, &error);
        if (status != rows[misdeed].status) fail_msg("misdeed %d: %d, %s", misdeed, (int)status, error.message);
        if (status != PRONY_OK &&
            (!strstr(error.message, rows[misdeed].text) || !strstr(error.message, "node 'it' (mine::Bad)")))
            fail_msg("misdeed %d: %s", misdeed, error.message);
        prony_session_release(session);
        prony_model_release(model);
    }
    prony_registry_release(registry);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(null_is_harmless),
        cmocka_unit_test(session_options_are_looked_at),
        cmocka_unit_test(custom_operators_are_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
