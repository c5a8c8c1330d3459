/* The public interface on real files: load, bind, run, outputs, profile, report, custom operators, overrides,
 * refusals. */
#include "failure_trace.h"
#include "prony_operator.h"
#include "prony_report.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LENET PRN_SOURCE_DIR "/tests/data/lenet5.onnx"
#define DIGITS PRN_SOURCE_DIR "/models/digits.onnx"
#define BRANCHES PRN_SOURCE_DIR "/tests/data/if_two_branch.onnx"

static prony_model *load(const char *path, prony_registry *registry)
{
    prony_error error = {0};
    prony_model *model = NULL;
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    options.registry = registry;
    if (prony_model_load(&model, path, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

static prony_session *open(prony_model *model, const prony_session_options *options)
{
    prony_error error = {0};
    prony_session *session = NULL;
    if (prony_session_create(&session, model, options, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (prony_session_generate_inputs(session, 0, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

static const prony_value *run(prony_session *session)
{
    prony_error error = {0};
    const prony_value *output = NULL;
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (prony_session_output(session, 0, &output, &error) != PRONY_OK) fail_msg("%s", error.message);
    return output;
}

static void outputs_do_not_depend_on_threads_or_rewrites_beyond_rounding(void **state)
{
    (void)state;
    prony_model *model = load(DIGITS, NULL);
    float first[10], bits[10];
    for (int variant = 0; variant < 5; variant++) {
        SCENARIO(variant);
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        options.intra_op_threads = variant < 4 ? variant + 1 : 1;
        options.no_rewrites = variant == 4;
        prony_session *session = open(model, &options);
        const prony_value *output = run(session);
        assert_int_equal(prony_shape_numel(&output->shape), 10);
        memcpy(bits, output->data, sizeof bits);
        if (variant == 0) memcpy(first, bits, sizeof first);
        if (variant < 4) assert_memory_equal(first, bits, sizeof first);
        for (int i = 0; i < 10; i++) assert_true(fabsf(first[i] - bits[i]) <= 1e-4f * fmaxf(1, fabsf(first[i])));
        prony_session_release(session);
    }
    prony_model_release(model);
}

static void a_new_shape_gets_a_new_plan_and_the_old_one_is_kept(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = load(LENET, NULL);
    prony_session *session = open(model, NULL);
    float one[10], again[10], *data = calloc(3 * 784, sizeof *data);
    memcpy(one, run(session)->data, sizeof one);
    prony_value three = {.dtype = PRONY_FLOAT32, .shape = {4, {3, 1, 28, 28}}, .data = data};
    for (int i = 0; i < 3 * 784; i++) data[i] = (float)(i % 17) / 17 - 0.5f;
    assert_int_equal(prony_session_set_input(session, "input", &three, &error), PRONY_OK);
    assert_int_equal(run(session)->shape.dim[0], 3);
    prony_value single = {.dtype = PRONY_FLOAT32, .shape = {4, {1, 1, 28, 28}}, .data = data};
    assert_int_equal(prony_session_set_input(session, "input", &single, &error), PRONY_OK);
    memcpy(again, run(session)->data, sizeof again);
    assert_memory_not_equal(one, again, sizeof one);
    free(data);
    prony_session_release(session);
    prony_model_release(model);
}

static void both_branches_of_an_if_run(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = load(BRANCHES, NULL);
    prony_session *session = open(model, NULL);
    const prony_value_info *port = prony_model_input(model, 0);
    prony_shape shape = port->shape;
    for (int d = 0; d < shape.rank; d++)
        if (shape.dim[d] < 0) shape.dim[d] = 1;
    size_t count = (size_t)prony_shape_numel(&shape);
    float *data = calloc(count, sizeof *data), result[2] = {0};
    for (int sign = 0; sign < 2; sign++) {
        SCENARIO(sign);
        for (size_t i = 0; i < count; i++) data[i] = sign ? -1.0f : 1.0f;
        prony_value value = {.dtype = PRONY_FLOAT32, .shape = shape, .data = data};
        assert_int_equal(prony_session_set_input(session, port->name, &value, &error), PRONY_OK);
        result[sign] = ((const float *)run(session)->data)[0];
    }
    assert_true(result[0] != result[1]);
    free(data);
    prony_session_release(session);
    prony_model_release(model);
}

static void check_conservation(const prony_report *report)
{
    size_t layers, operators;
    const prony_layer_row *layer = prony_report_layers(report, &layers);
    const prony_operator_row *op = prony_report_operators(report, &operators);
    const prony_cost *total = &prony_report_totals(report)->cost;
    prony_cost by_layer = {0}, by_operator = {0};
    for (size_t i = 0; i < layers; i++) {
        by_layer.macs += layer[i].cost.macs;
        by_layer.flops += layer[i].cost.flops;
        by_layer.madds += layer[i].cost.madds;
        by_layer.parameters += layer[i].cost.parameters;
    }
    for (size_t i = 0; i < operators; i++) {
        by_operator.macs += op[i].cost.macs;
        by_operator.flops += op[i].cost.flops;
        by_operator.madds += op[i].cost.madds;
        by_operator.parameters += op[i].cost.parameters;
    }
    assert_true(total->macs > 0 && total->parameters > 0);
    assert_int_equal(total->macs, by_layer.macs);
    assert_int_equal(total->flops, by_layer.flops);
    assert_int_equal(total->madds, by_layer.madds);
    assert_int_equal(total->parameters, by_layer.parameters);
    assert_int_equal(total->macs, by_operator.macs);
    assert_int_equal(total->flops, by_operator.flops);
    assert_int_equal(total->madds, by_operator.madds);
    assert_int_equal(total->parameters, by_operator.parameters);
}

static void reports_conserve_costs_with_and_without_rewrites(void **state)
{
    (void)state;
    const char *const files[] = {LENET, DIGITS, BRANCHES};
    for (int variant = 0; variant < 12; variant++) {
        SCENARIO(variant);
        prony_error error = {0};
        prony_report *report = NULL;
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
        options.no_rewrites = variant % 2;
        options.no_reuse = variant / 2 % 2;
        options.record_memory = true;
        profile.runs = 3;
        profile.warmup_runs = 1;
        prony_model *model = load(files[variant / 4], NULL);
        prony_session *session = open(model, &options);
        if (prony_session_profile(&report, session, &profile, &error) != PRONY_OK) fail_msg("%s", error.message);
        check_conservation(report);
        const prony_memory_report *memory = prony_report_memory(report);
        assert_true(memory->lower_bound_bytes <= memory->planned_bytes);
        if (options.no_reuse) assert_true(memory->lower_bound_bytes == memory->planned_bytes);
        assert_int_equal(memory->allocations, memory->releases);
        assert_int_equal(prony_report_latency(report)->count, 3);
        assert_true(prony_report_time_coverage(report) > 0);
        prony_report_release(report);
        prony_session_release(session);
        prony_model_release(model);
    }
}

/* A run after the first makes no heap call in Prony's own code; libraries are counted apart. */
static void a_warm_run_makes_no_heap_call_of_its_own(void **state)
{
    (void)state;
    const char *const files[] = {LENET, DIGITS};
    for (int i = 0; i < 2; i++) {
        SCENARIO(i);
        prony_error error = {0};
        prony_report *report = NULL;
        prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        options.intra_op_threads = 2;
        profile.runs = 5;
        profile.warmup_runs = 2;
        prony_model *model = load(files[i], NULL);
        prony_session *session = open(model, &options);
        assert_int_equal(prony_session_profile(&report, session, &profile, &error), PRONY_OK);
        const prony_memory_report *memory = prony_report_memory(report);
        assert_true(memory->heap_calls_known);
        assert_int_equal(memory->heap_calls_per_run, 0);
        prony_report_release(report);
        prony_session_release(session);
        prony_model_release(model);
    }
}

/* ---- custom operators ---- */

static prony_status same_shape(const prony_context *context)
{
    context->outputs[0]->dtype = context->inputs[0]->dtype;
    context->outputs[0]->shape = context->inputs[0]->shape;
    return PRONY_OK;
}

static prony_status one_each(const prony_context *context, prony_cost *cost)
{
    cost->flops = (uint64_t)prony_shape_numel(&context->outputs[0]->shape);
    return PRONY_OK;
}

static prony_status zero_run(const prony_context *context)
{
    ++*(int *)context->user;
    memset(context->outputs[0]->data, 0,
           prony_dtype_bytes(PRONY_FLOAT32, prony_shape_numel(&context->outputs[0]->shape)));
    return PRONY_OK;
}

static void a_custom_operator_runs_is_counted_and_timed(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_registry *registry = NULL;
    int calls = 0;
    assert_int_equal(prony_registry_create(&registry, &error), PRONY_OK);
    prony_operator tanh_instead = PRONY_OPERATOR_INIT;
    tanh_instead.name = "Tanh";
    tanh_instead.infer = same_shape;
    tanh_instead.cost = one_each;
    tanh_instead.run = zero_run;
    tanh_instead.user = &calls;
    assert_int_equal(prony_registry_add(registry, &tanh_instead, &error), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &tanh_instead, &error), PRONY_INVALID_ARGUMENT);
    prony_model *model = load(LENET, registry);
    prony_registry_release(registry);
    prony_session *session = open(model, NULL);
    prony_report *report = NULL;
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    profile.runs = 1;
    profile.warmup_runs = 0;
    if (prony_session_profile(&report, session, &profile, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(calls, 4);
    size_t count, found = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        if (strcmp(rows[i].kernel, "Tanh_custom") != 0) continue;
        found++;
        assert_true(rows[i].measured && rows[i].cost.flops > 0);
    }
    assert_int_equal(found, 4);
    check_conservation(report);
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
}

static prony_status seven(const prony_context *context, prony_cost *cost)
{
    (void)context;
    cost->flops = 7;
    return PRONY_OK;
}

static void overrides_replace_cost_and_shape(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_registry *registry = NULL;
    assert_int_equal(prony_registry_create(&registry, &error), PRONY_OK);
    assert_int_equal(prony_cost_override(registry, "", "Tanh", seven, NULL, &error), PRONY_OK);
    assert_int_equal(prony_cost_override(registry, "", "Tanh", seven, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_infer_override(registry, "", "Tanh", same_shape, NULL, &error), PRONY_OK);
    assert_int_equal(prony_infer_override(registry, "", "Nonsense", same_shape, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "Nonsense"));
    prony_model *model = load(LENET, registry);
    prony_registry_release(registry);
    prony_report *report = NULL;
    assert_int_equal(prony_inspect(&report, model, NULL, &error), PRONY_OK);
    size_t count;
    const prony_layer_row *rows = prony_report_layers(report, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].op, "Tanh") == 0) assert_int_equal(rows[i].cost.flops, 7);
    prony_report_release(report);
    prony_model_release(model);
}

/* ---- refusals: each names both sides ---- */

static void wrong_inputs_are_refused(void **state)
{
    (void)state;
    prony_error error = {0};
    prony_model *model = load(LENET, NULL);
    prony_session *session = NULL;
    float data[784] = {0};
    assert_int_equal(prony_session_create(&session, model, NULL, &error), PRONY_OK);
    prony_value good = {.dtype = PRONY_FLOAT32, .shape = {4, {1, 1, 28, 28}}, .data = data};
    assert_int_equal(prony_session_set_input(session, "imput", &good, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "'imput'"));
    assert_non_null(strstr(error.message, "'input'"));
    prony_value type = good, rank = good, shape = good;
    type.dtype = PRONY_INT32;
    rank.shape.rank = 3;
    shape.shape.dim[3] = 14;
    shape.shape.dim[1] = 2;
    assert_int_equal(prony_session_set_input(session, "input", &type, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "int32"));
    assert_non_null(strstr(error.message, "float32"));
    assert_int_equal(prony_session_set_input(session, "input", &rank, &error), PRONY_SHAPE_MISMATCH);
    assert_int_equal(prony_session_set_input(session, "input", &shape, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "[1, 2, 28, 14]"));
    assert_int_equal(prony_session_run(session, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "'input' is not set"));
    prony_session_release(session);
    prony_model_release(model);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    prony_model *model = load(LENET, NULL);
    const prony_dim no_dim = {"nothing", 3};
    for (int i = 0; i < 4; i++) {
        SCENARIO(i);
        prony_error error = {0};
        prony_session *session = NULL;
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        const char *named[] = {"int8", "-2 inter-op", "'nothing'", "-1"};
        if (i == 0) options.precision = "int8";
        if (i == 1) options.inter_op_threads = -2;
        if (i == 2) options.dims = &no_dim, options.dim_count = 1;
        if (i == 3) options.intra_op_threads = -1;
        assert_int_not_equal(prony_session_create(&session, model, &options, &error), PRONY_OK);
        assert_null(session);
        assert_non_null(strstr(error.message, named[i]));
    }
    prony_model_release(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(outputs_do_not_depend_on_threads_or_rewrites_beyond_rounding),
                                       cmocka_unit_test(a_new_shape_gets_a_new_plan_and_the_old_one_is_kept),
                                       cmocka_unit_test(both_branches_of_an_if_run),
                                       cmocka_unit_test(reports_conserve_costs_with_and_without_rewrites),
                                       cmocka_unit_test(a_warm_run_makes_no_heap_call_of_its_own),
                                       cmocka_unit_test(a_custom_operator_runs_is_counted_and_timed),
                                       cmocka_unit_test(overrides_replace_cost_and_shape),
                                       cmocka_unit_test(wrong_inputs_are_refused),
                                       cmocka_unit_test(options_out_of_range_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
