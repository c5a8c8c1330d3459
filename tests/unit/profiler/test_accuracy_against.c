/* The accuracy profile beside another model, and beside another runtime's outputs. */
#include "tests/support/accuracy_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- another model as the reference */

static prony_model *load(model_builder *m)
{
    size_t size;
    prony_model *model = NULL;
    prony_error error = {0};
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "other.onnx", bytes, size, NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return model;
}

/* In float32, with 2 where build_half has 1, and other names of values. */
static model_builder *build_other(const char *add)
{
    static const float twos[2] = {2, 2}, offset[2] = {2048, 0};
    model_builder *m = mb_begin(13);
    mb_input(m, "image", PRONY_FLOAT32, "2");
    mb_initializer(m, "twos", PRONY_FLOAT32, "2", twos);
    mb_initializer(m, "minus", PRONY_FLOAT32, "2", offset);
    mb_node(m, "Add", "image twos", "s", "");
    mb_node_name(m, add);
    mb_node(m, "Sub", "s minus", "t", "");
    mb_node_name(m, *add == 'a' ? "sub" : "else");
    mb_output(m, "t", PRONY_FLOAT32, "2");
    return m;
}

static void another_model_is_found_by_layers_names(void **state)
{
    (void)state;
    model_run r = {0};
    model_builder *like = build_other("add"), *unlike = build_other("other");
    prony_model *other = load(like), *stranger = load(unlike);
    prony_accuracy_options o = PRONY_ACCURACY_OPTIONS_INIT;
    accuracy_open_half(&r);
    o.model = other;
    prony_report *report = accuracy_profile(&r, &o);
    const prony_accuracy_row *add = accuracy_row(report, "add"), *sub = accuracy_row(report, "sub");
    accuracy_near(add->own.max_abs, 2); /* 2048, 1 beside 2050, 2 */
    accuracy_near(add->own.range, 2048);
    assert_true(sub->own.max_abs == 0);         /* on the same inputs it is the same */
    accuracy_near(sub->accumulated.max_abs, 2); /* 0, 1 beside 2, 2 */
    accuracy_near(prony_report_accuracy(report)->outputs[0].error.max_abs, 2);
    assert_non_null(strstr(prony_report_accuracy(report)->reference, "other.onnx"));
    o.model = stranger;
    assert_int_equal(prony_session_accuracy(report, r.session, &o, &r.error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(r.error.message, "no layer of the same name"));
    accuracy_near(accuracy_row(report, "add")->own.max_abs, 2);
    prony_report_release(report);
    mr_close(&r);
    prony_model_release(other);
    prony_model_release(stranger);
    mb_free(like);
    mb_free(unlike);
}

/* Codes of 0.1f beside the float value that they are to stand for. */
static void codes_are_compared_with_a_float_model(void **state)
{
    (void)state;
    static const float x[3] = {0.34f, 1.0f, -0.5f};
    const float scale = 0.1f, ones[3] = {1, 1, 1};
    const uint8_t zero = 10;
    model_run r = {0};
    model_builder *m = mb_begin(13), *f = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_initializer(m, "scale", PRONY_FLOAT32, "", &scale);
    mb_initializer(m, "zero", PRONY_UINT8, "", &zero);
    mb_node(m, "QuantizeLinear", "x scale zero", "codes", "");
    mb_node_name(m, "mul"); /* as if the product had been folded into it */
    mb_node(m, "DequantizeLinear", "codes scale zero", "y", "");
    mb_node_name(m, "dequantize");
    mb_output(m, "y", PRONY_FLOAT32, "3");
    mb_input(f, "x", PRONY_FLOAT32, "3");
    mb_initializer(f, "ones", PRONY_FLOAT32, "3", ones);
    mb_node(f, "Mul", "x ones", "y", "");
    mb_node_name(f, "mul");
    mb_output(f, "y", PRONY_FLOAT32, "3");
    prony_model *other = load(f);
    prony_accuracy_options o = PRONY_ACCURACY_OPTIONS_INIT;
    o.model = other;
    mr_open(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "3", x);
    prony_report *report = accuracy_profile(&r, &o);
    const prony_accuracy_row *codes = accuracy_row(report, "mul");
    accuracy_near(codes->own.max_abs, (double)0.34f - 3 * (double)0.1f); /* codes 13, 20, 5 */
    accuracy_near(codes->own.ulp, codes->own.max_abs / (double)0.1f);
    accuracy_near(codes->own.range, 1.5);
    assert_non_null(strstr(accuracy_row(report, "dequantize")->not_compared, "no layer of that name"));
    prony_report_release(report);
    mr_close(&r);
    prony_model_release(other);
    mb_free(f);
}

/* ---- another runtime's outputs */

static void against_is_refused(model_run *r, prony_report *report, const prony_accuracy_expected *given,
                               prony_status status, const char *text)
{
    prony_accuracy_options o = PRONY_ACCURACY_OPTIONS_INIT;
    o.against = given;
    o.against_count = 1;
    o.outputs_only = true;
    r->error = (prony_error){0};
    assert_int_equal(prony_session_accuracy(report, r->session, &o, &r->error), status);
    if (!strstr(r->error.message, text)) fail_msg("'%s' is not in '%s'", text, r->error.message);
}

static void outputs_are_compared_with_given_ones(void **state)
{
    (void)state;
    float wanted[2] = {0, 1.5f};
    int32_t whole[2] = {0, 1};
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = mr_shape("2"), .data = wanted};
    prony_accuracy_expected given = {NULL, &value, "other.npy"};
    prony_accuracy_options o = PRONY_ACCURACY_OPTIONS_INIT;
    o.against = &given;
    o.against_count = 1;
    o.outputs_only = true;
    model_run r = {0};
    accuracy_open_half(&r);
    prony_report *report = accuracy_profile(&r, &o);
    const prony_accuracy *a = prony_report_accuracy(report);
    assert_int_equal(a->output_count, 1);
    accuracy_near(a->outputs[0].error.max_abs, 0.5); /* 0, 1 beside 0, 1.5 */
    accuracy_near(a->outputs[0].error.max_rel, 1.0 / 3);
    assert_string_equal(a->outputs[0].against, "other.npy");
    assert_null(prony_report_accuracy_rows(report, PRONY_LEVEL_LAYER, NULL));
    given.output = "z";
    against_is_refused(&r, report, &given, PRONY_INVALID_ARGUMENT,
                       "'other.npy': unknown output 'z'; the model's first one is 'y'");
    given.output = "y";
    value.shape = mr_shape("1,2");
    against_is_refused(&r, report, &given, PRONY_SHAPE_MISMATCH,
                       "'other.npy' is float32[1, 2], output 'y' is float16[2]");
    value = (prony_value){.dtype = PRONY_INT32, .shape = mr_shape("2"), .data = whole};
    against_is_refused(&r, report, &given, PRONY_SHAPE_MISMATCH, "floats cannot be compared with integers");
    value = (prony_value){.dtype = PRONY_FLOAT32, .shape = mr_shape("2"), .data = wanted};
    wanted[0] = NAN;
    against_is_refused(&r, report, &given, PRONY_INVALID_ARGUMENT,
                       "'other.npy' holds NaN where output 'y' has numbers");
    accuracy_near(prony_report_accuracy(report)->outputs[0].error.max_abs, 0.5); /* the report is as it was */
    o.samples = -1;
    assert_int_equal(prony_session_accuracy(report, r.session, &o, NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_session_accuracy(NULL, r.session, NULL, NULL), PRONY_INVALID_ARGUMENT);
    prony_report_release(report);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_model_is_found_by_layers_names),
        cmocka_unit_test(codes_are_compared_with_a_float_model),
        cmocka_unit_test(outputs_are_compared_with_given_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
