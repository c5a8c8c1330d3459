/* Inputs that are also initializers: the default holds until a session gets a value, and again after a reset. Values
 * computed from the default are constant only while the default holds. */
#include "failure_trace.h"
#include "model_builder.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IR_VERSION_BYTE = 1 }; /* in a model that mb_finish wrote: tag, then version */

static const void *finish(model_builder *m, int ir_version, size_t *size)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)mb_finish(m, size);
    assert_int_equal(bytes[0], 1 << 3);
    assert_int_equal(bytes[IR_VERSION_BYTE], 8);
    bytes[IR_VERSION_BYTE] = (uint8_t)ir_version;
    return bytes;
}

static prony_model *load(model_builder *m, int ir_version)
{
    prony_error error = {0};
    prony_model *model = NULL;
    size_t size;
    const void *bytes = finish(m, ir_version, &size);
    if (prony_model_load_memory(&model, "built", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

static prony_session *open(prony_model *model, const prony_session_options *options)
{
    prony_error error = {0};
    prony_session *session = NULL;
    if (prony_session_create(&session, model, options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

static void set(prony_session *session, const char *name, prony_dtype dtype, int64_t count, const void *data)
{
    prony_error error = {0};
    const prony_value value = {.dtype = dtype, .shape = {1, {count}}, .data = (void *)(uintptr_t)data};
    if (prony_session_set_input(session, name, &value, &error) != PRONY_OK) fail_msg("%s", error.message);
}

static void reset(prony_session *session, const char *name)
{
    prony_error error = {0};
    if (prony_session_reset_input(session, name, &error) != PRONY_OK) fail_msg("%s", error.message);
}

static const prony_value *run(prony_session *session)
{
    prony_error error = {0};
    const prony_value *y;
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_session_output(session, 0, &y, &error), PRONY_OK);
    return y;
}

static void expect(prony_session *session, float first, float second, float third)
{
    const float wanted[] = {first, second, third};
    const prony_value *y = run(session);
    assert_int_equal(prony_shape_numel(&y->shape), 3);
    assert_memory_equal(y->data, wanted, sizeof wanted);
}

/* y = x k (1 + j), where k and j have defaults 2 and 0, and 1 + j is folded. */
static model_builder *product(const char *rows)
{
    static const float two[] = {2}, zero[] = {0}, one[] = {1};
    model_builder *m = mb_begin(17);
    mb_input(m, "k", PRONY_FLOAT32, "1");
    mb_input(m, "x", PRONY_FLOAT32, rows);
    mb_input(m, "j", PRONY_FLOAT32, "1");
    mb_initializer(m, "one", PRONY_FLOAT32, "1", one);
    mb_initializer(m, "j", PRONY_FLOAT32, "1", zero);
    mb_initializer(m, "k", PRONY_FLOAT32, "1", two);
    mb_node(m, "Add", "one j", "s", "");
    mb_node(m, "Mul", "x k", "p", "");
    mb_node(m, "Mul", "p s", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, rows);
    return m;
}

static void values_replace_defaults_and_defaults_come_back(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3}, five[] = {5}, one[] = {1};
    for (int variant = 0; variant < 4; variant++) {
        SCENARIO(variant);
        model_builder *m = product(variant & 2 ? "N" : "3");
        prony_model *model = load(m, 8);
        prony_dim most = {"N", 8};
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        options.no_rewrites = variant & 1;
        options.max_dims = &most;
        options.max_dim_count = variant & 2 ? 1 : 0;
        assert_int_equal(prony_model_input_count(model), 1);
        assert_string_equal(prony_model_input(model, 0)->name, "x");
        assert_int_equal(prony_model_optional_input_count(model), 2);
        assert_string_equal(prony_model_optional_input(model, 0)->name, "k");
        assert_string_equal(prony_model_optional_input(model, 1)->name, "j");
        assert_null(prony_model_optional_input(model, 2));
        prony_session *session = open(model, &options);
        set(session, "x", PRONY_FLOAT32, 3, x);
        expect(session, 2, 4, 6);
        set(session, "j", PRONY_FLOAT32, 1, one); /* the second alone */
        expect(session, 4, 8, 12);
        set(session, "k", PRONY_FLOAT32, 1, five);
        expect(session, 10, 20, 30);
        reset(session, "j");
        expect(session, 5, 10, 15);
        reset(session, "k");
        expect(session, 2, 4, 6);
        assert_true(prony_session_preparations(session).bound <= 4); /* plans are kept */
        prony_session_release(session);
        prony_model_release(model);
        mb_free(m);
    }
}

/* A shape computed from a default is known while the default holds; later the model uses the shape of the value. */
static void shapes_follow_the_value_that_is_given(void **state)
{
    (void)state;
    static const int64_t three[] = {3}, pair[] = {3, 1};
    static const float x[] = {1, 2, 3};
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "3");
    mb_input(m, "s", PRONY_INT64, "R");
    mb_initializer(m, "s", PRONY_INT64, "1", three);
    mb_node(m, "Reshape", "x s", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    prony_model *model = load(m, 8);
    prony_session *session = open(model, NULL);
    set(session, "x", PRONY_FLOAT32, 3, x);
    assert_int_equal(run(session)->shape.rank, 1);
    set(session, "s", PRONY_INT64, 2, pair);
    assert_int_equal(run(session)->shape.rank, 2);
    expect(session, 1, 2, 3);
    reset(session, "s");
    assert_int_equal(run(session)->shape.rank, 1);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

static void a_given_input_is_no_parameter_and_is_in_the_report(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3}, five[] = {5};
    prony_error error = {0};
    model_builder *m = product("3");
    prony_model *model = load(m, 8);
    for (int given = 0; given < 2; given++) {
        SCENARIO(given);
        prony_session *session = open(model, NULL);
        prony_report *report = NULL;
        prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
        options.runs = 2;
        set(session, "x", PRONY_FLOAT32, 3, x);
        if (given) set(session, "k", PRONY_FLOAT32, 1, five);
        if (prony_session_profile(&report, session, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
        assert_int_equal(prony_report_totals(report)->cost.parameters, given ? 2 : 3);
        prony_report_release(report);
        prony_session_release(session);
    }
    prony_model_release(model);
    mb_free(m);
}

static void wrong_values_are_refused(void **state)
{
    (void)state;
    static const float pair[] = {1, 2};
    prony_error error = {0};
    model_builder *m = product("3");
    prony_model *model = load(m, 8);
    prony_session *session = open(model, NULL);
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {1, {2}}, .data = (void *)(uintptr_t)pair};
    assert_int_equal(prony_session_set_input(session, "k", &value, &error), PRONY_SHAPE_MISMATCH);
    assert_int_equal(prony_session_set_input(session, "one", &value, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "'x', 'k', 'j'"));
    assert_int_equal(prony_session_reset_input(session, "one", &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_session_reset_input(session, NULL, &error), PRONY_INVALID_ARGUMENT);
    prony_session_release(session);
    const prony_named_shape shape = {"k", {1, {1}}};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.shapes = &shape;
    options.shape_count = 1;
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "has a default"));
    prony_model_release(model);
    mb_free(m);
}

static void before_ir_4_initializers_are_constants(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3};
    prony_error error = {0};
    model_builder *m = product("3");
    prony_model *model = load(m, 3);
    assert_int_equal(prony_model_input_count(model), 1);
    assert_int_equal(prony_model_optional_input_count(model), 0);
    prony_session *session = open(model, NULL);
    set(session, "x", PRONY_FLOAT32, 3, x);
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {1, {1}}, .data = (void *)(uintptr_t)x};
    assert_int_equal(prony_session_set_input(session, "k", &value, &error), PRONY_INVALID_ARGUMENT);
    expect(session, 2, 4, 6);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_replace_defaults_and_defaults_come_back),
                                       cmocka_unit_test(shapes_follow_the_value_that_is_given),
                                       cmocka_unit_test(a_given_input_is_no_parameter_and_is_in_the_report),
                                       cmocka_unit_test(wrong_values_are_refused),
                                       cmocka_unit_test(before_ir_4_initializers_are_constants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
