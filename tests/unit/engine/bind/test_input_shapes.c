/* Free dimensions, values written as text, and parts of models, as a program that links the library uses them; each
 * test again with the n-th allocation failing, for every n. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "model_builder.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct sample {
    model_builder *builder;
    prony_model *model;
} sample;

/* A convolution over an image whose size is free, and a second input with a batch of its own name. */
static void open_sample(sample *s)
{
    static const float weights[4 * 3 * 3 * 3];
    prony_error error = {0};
    size_t size;
    s->builder = mb_begin(13);
    mb_input(s->builder, "x", PRONY_FLOAT32, "N,3,height,?");
    mb_input(s->builder, "scale", PRONY_FLOAT32, "N,1,1,1");
    mb_initializer(s->builder, "w", PRONY_FLOAT32, "4,3,3,3", weights);
    mb_node(s->builder, "Conv", "x w", "c", "");
    mb_node(s->builder, "Mul", "c scale", "m", "");
    mb_node(s->builder, "Relu", "m", "y", "");
    mb_output(s->builder, "y", PRONY_FLOAT32, NULL);
    const void *data = mb_finish(s->builder, &size);
    if (prony_model_load_memory(&s->model, "sample", data, size, NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
}

static void close_sample(sample *s)
{
    prony_model_release(s->model);
    mb_free(s->builder);
}

static void test_list(void **state)
{
    (void)state;
    sample s;
    prony_error error = {0};
    prony_free_dim *rows;
    size_t count;
    open_sample(&s);
    assert_int_equal(prony_model_free_dims(&rows, &count, s.model, NULL, &error), PRONY_OK);
    assert_int_equal(count, 3); /* N stands once */
    assert_string_equal(rows[0].name, "N");
    assert_int_equal(rows[0].value, 1);
    assert_string_equal(rows[0].reason, "batch");
    assert_string_equal(rows[1].name, "height");
    assert_int_equal(rows[1].value, -1);
    assert_true(rows[1].example >= 3);
    assert_string_equal(rows[2].name, "x.3");
    assert_string_equal(rows[2].input, "x");
    assert_int_equal(rows[2].axis, 3);
    prony_rows_release(rows);

    static const prony_dim given[] = {{"x.3", 7}, {"*", 5}};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.free_dims = PRONY_FREE_ASK;
    options.dims = given;
    options.dim_count = 2;
    assert_int_equal(prony_model_free_dims(&rows, &count, s.model, &options, &error), PRONY_OK);
    assert_int_equal(rows[0].value, 5);
    assert_int_equal(rows[1].value, 5);
    assert_int_equal(rows[2].value, 7);
    assert_string_equal(rows[2].reason, "given");
    prony_rows_release(rows);
    close_sample(&s);
}

/* By default the library takes 1, or the size that the first windows need. On request it refuses with a separate
 * status. */
static void test_policies(void **state)
{
    (void)state;
    sample s;
    prony_error error = {0};
    prony_session *session;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_shape shape;
    open_sample(&s);
    assert_int_equal(prony_session_create(&session, s.model, &options, &error), PRONY_OK);
    assert_int_equal(prony_session_input_shape(session, "x", &shape, &error), PRONY_OK);
    assert_int_equal(shape.dim[0], 1);
    assert_int_equal(shape.dim[2], 3);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    prony_session_release(session);

    static const prony_dim low[] = {{"height", 1}};
    options.dims = low;
    options.dim_count = 1;
    assert_int_equal(prony_session_create(&session, s.model, &options, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_not_equal(prony_session_run(session, &error), PRONY_OK); /* 3 x 3 does not fit */
    assert_non_null(strstr(error.message, "height=1"));
    assert_non_null(strstr(error.message, "x.3=3 (assumed)"));
    prony_session_release(session);
    options.dims = NULL;
    options.dim_count = 0;

    options.free_dims = PRONY_FREE_ASK;
    assert_int_equal(prony_session_create(&session, s.model, &options, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_NEEDS_DIMENSION);
    assert_non_null(strstr(error.message, "'height'"));
    assert_non_null(strstr(error.message, "'x.3'"));
    float data[2 * 3 * 4 * 5] = {0};
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = {4, {2, 3, 4, 5}}, .data = data};
    prony_value_info port;
    assert_int_equal(prony_session_set_input(session, "x", &value, &error), PRONY_OK);
    assert_int_equal(prony_session_input(session, "scale", &port, &error), PRONY_OK);
    assert_int_equal(port.shape.dim[0], 2); /* N follows from x */
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    prony_session_release(session);

    prony_report *report;
    assert_int_equal(prony_inspect(&report, s.model, &options, &error), PRONY_NEEDS_DIMENSION);
    static const prony_dim big[] = {{"height", 8}, {"x.3", 9}};
    size_t count;
    options.dims = big;
    options.dim_count = 2;
    assert_int_equal(prony_inspect(&report, s.model, &options, &error), PRONY_OK);
    const prony_assumed_dim *assumed = prony_report_assumed_dims(report, &count);
    assert_int_equal(count, 1);
    assert_string_equal(assumed[0].name, "N");
    prony_report_release(report);
    close_sample(&s);
}

/* One split on feature 6 behind operators that keep the axes. */
static void add_tree(model_builder *m, const char *input, const char *output)
{
    mb_node(m, "ai.onnx.ml::TreeEnsembleRegressor", input, output,
            "nodes_treeids=[0,0,0] nodes_nodeids=[0,1,2] nodes_featureids=[6,0,0] nodes_values=[0.5,0.0,0.0] "
            "nodes_modes=['BRANCH_LEQ','LEAF','LEAF'] nodes_truenodeids=[1,0,0] nodes_falsenodeids=[2,0,0] "
            "target_treeids=[0,0] target_nodeids=[1,2] target_ids=[0,0] target_weights=[1.0,2.0] n_targets=1");
}

/* Checks the sizes chosen for the free dimensions of a model, and that it runs with them. */
static void expect_dims(model_builder *m, prony_free_dims policy, size_t count, const prony_free_dim *wanted)
{
    prony_error error = {0};
    prony_model *model;
    prony_session *session;
    prony_free_dim *rows;
    size_t size, found;
    const void *data = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "least", data, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.free_dims = policy;
    assert_int_equal(prony_model_free_dims(&rows, &found, model, &options, &error), PRONY_OK);
    assert_int_equal(found, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(rows[i].name, wanted[i].name);
        assert_int_equal(rows[i].value, wanted[i].value);
        assert_string_equal(rows[i].reason, wanted[i].reason);
    }
    prony_rows_release(rows);
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_OK);
    if (prony_session_generate_inputs(session, 0, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

static void test_trees_tell_their_features(void **state)
{
    (void)state;
    for (int policy = PRONY_FREE_ONE; policy <= PRONY_FREE_ASK; policy++) {
        SCENARIO(policy);
        model_builder *m = mb_begin(16);
        mb_opset(m, "ai.onnx.ml", 1);
        mb_input(m, "x", PRONY_FLOAT64, "?,?");
        mb_node(m, "Cast", "x", "c", "to=1");
        add_tree(m, "c", "y");
        mb_output(m, "y", PRONY_FLOAT32, NULL);
        const prony_free_dim wanted[] = {{.name = "x.0", .value = 1, .reason = policy ? "batch" : ""},
                                         {.name = "x.1", .value = 7, .reason = "tree features"}};
        expect_dims(m, (prony_free_dims)policy, 2, wanted);
    }
}

/* Two windows in sequence: (2 - 1) 2 + 5 = 7 steps give the 2 that the pooling needs. */
static void test_time_axes_fit_windows(void **state)
{
    (void)state;
    static const float weights[4 * 3 * 5];
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,3,time");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,3,5", weights);
    mb_node(m, "Conv", "x w", "c", "strides=[2]");
    mb_node(m, "Relu", "c", "r", "");
    mb_node(m, "MaxPool", "r", "y", "kernel_shape=[2]");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    expect_dims(m, PRONY_FREE_ONE, 1, &(prony_free_dim){.name = "time", .value = 7, .reason = "window size"});

    /* The first axis looks like a batch, but a Transpose moves it to the end and a window reads it; pads save one
     * step. */
    static const int64_t first[] = {0};
    m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "?,3");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,3,5", weights);
    mb_initializer(m, "first", PRONY_INT64, "1", first);
    mb_node(m, "Transpose", "x", "t", "perm=[1,0]");
    mb_node(m, "Unsqueeze", "t first", "u", "");
    mb_node(m, "Conv", "u w", "y", "pads=[1,0]");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    expect_dims(m, PRONY_FREE_ASK, 1, &(prony_free_dim){.name = "x.0", .value = 4, .reason = "window size"});

    m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "1,3,time");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,3,5", weights);
    mb_node(m, "Conv", "x w", "y", "auto_pad='SAME_UPPER'");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    expect_dims(m, PRONY_FREE_ONE, 1, &(prony_free_dim){.name = "time", .value = 1, .reason = ""});
}

static void test_text_as_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        prony_dtype dtype;
        prony_shape shape;
        prony_status status;
        double first;
    } rows[] = {{"1.5", PRONY_FLOAT64, {1, {3}}, PRONY_OK, 1.5},
                {"[1.5, 2]", PRONY_FLOAT64, {1, {-1}}, PRONY_OK, 1.5},
                {"[[1.5], [2]]", PRONY_FLOAT64, {2, {-1, 1}}, PRONY_OK, 1.5},
                {"[1.5, 2]", PRONY_FLOAT64, {2, {2, 1}}, PRONY_OK, 1.5},
                {"zeros", PRONY_FLOAT64, {0, {0}}, PRONY_OK, 0},
                {"[]", PRONY_FLOAT64, {1, {-1}}, PRONY_OK, 0},
                {"1", PRONY_FLOAT64, {1, {-1}}, PRONY_NEEDS_DIMENSION, 0},
                {"[1, 2]", PRONY_FLOAT64, {1, {3}}, PRONY_SHAPE_MISMATCH, 0},
                {"[1, [2]]", PRONY_FLOAT64, {1, {-1}}, PRONY_INVALID_ARGUMENT, 0},
                {"[1", PRONY_FLOAT64, {1, {-1}}, PRONY_INVALID_ARGUMENT, 0},
                {"300", PRONY_UINT8, {1, {1}}, PRONY_INVALID_ARGUMENT, 0},
                {"1", PRONY_STRING, {1, {1}}, PRONY_INVALID_ARGUMENT, 0},
                {"1", PRONY_COMPLEX64, {1, {1}}, PRONY_UNSUPPORTED, 0},
                {"\"1\"", PRONY_FLOAT64, {1, {1}}, PRONY_INVALID_ARGUMENT, 0},
                {"\"x\"", PRONY_STRING, {1, {-1}}, PRONY_NEEDS_DIMENSION, 0},
                {"[\"x\", 'y']", PRONY_STRING, {1, {3}}, PRONY_SHAPE_MISMATCH, 0},
                {"uniform:2:1", PRONY_FLOAT64, {1, {1}}, PRONY_INVALID_ARGUMENT, 0},
                {"", PRONY_FLOAT64, {1, {1}}, PRONY_INVALID_ARGUMENT, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO_NAMED(i, rows[i].text);
        prony_value *value = NULL;
        prony_error error = {0};
        prony_status got = prony_value_parse(&value, rows[i].text, rows[i].dtype, &rows[i].shape, 0, &error);
        if (got != rows[i].status) fail_msg("'%s': %s: %s", rows[i].text, prony_status_text(got), error.message);
        if (got != PRONY_OK) continue;
        if (prony_shape_numel(&value->shape)) assert_float_equal(*(double *)value->data, rows[i].first, 0);
        prony_value_release(value);
    }
    assert_true(prony_value_is_literal("16000") && prony_value_is_literal("[1]") && prony_value_is_literal("ones") &&
                prony_value_is_literal("'x'") && prony_value_is_literal("\"x\""));
    assert_false(prony_value_is_literal("cat.npy") || prony_value_is_literal("16000.npy") ||
                 prony_value_is_literal(""));
}

static void test_strings_as_value(void **state)
{
    (void)state;
    static const prony_shape shapes[] = {{2, {-1, 2}}, {1, {2}}, {1, {-1}}};
    static const struct {
        const char *text;
        size_t shape;
        int64_t count;
        const char *first, *last;
    } rows[] = {{"[[\"a\", 'b'], ['c', \"it's\"]]", 0, 4, "a", "it's"},
                {"'same'", 1, 2, "same", "same"},
                {" [ \"\\u00e9\\ud83d\\ude00\" , '\\\\\\n\\'' ] ", 2, 2, "\xc3\xa9\xf0\x9f\x98\x80", "\\\n'"},
                {"['\\u20ac\\u007f', '']", 1, 2, "\xe2\x82\xac\x7f", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCENARIO_NAMED(i, rows[i].text);
        prony_value *value = NULL;
        prony_error error = {0};
        if (prony_value_parse(&value, rows[i].text, PRONY_STRING, &shapes[rows[i].shape], 0, &error) != PRONY_OK)
            fail_msg("%s: %s", rows[i].text, error.message);
        const prony_string *elements = value->data;
        assert_int_equal(prony_shape_numel(&value->shape), rows[i].count);
        const prony_string first = elements[0], last = elements[rows[i].count - 1];
        assert_int_equal(first.size, strlen(rows[i].first));
        assert_memory_equal(first.data, rows[i].first, first.size);
        assert_int_equal(last.size, strlen(rows[i].last));
        if (last.size) assert_memory_equal(last.data, rows[i].last, last.size);
        prony_value_release(value);
    }
    static const char *const wrong[] = {
        "'x",       "[x]",      "['\\q']", "['\\u12']",    "['\\ud800']",        "['\\udc00']",
        "['x' 'y'", "['x', 1]", "['x'] y", "[['x'], 'y']", "['\\ud800\\u0041']", "['\\"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        SCENARIO_NAMED(i, wrong[i]);
        prony_value *value = NULL;
        if (prony_value_parse(&value, wrong[i], PRONY_STRING, &shapes[1], 0, NULL) != PRONY_INVALID_ARGUMENT)
            fail_msg("%s is taken", wrong[i]);
    }
}

/* ---- the n-th allocation fails ---- */

static prony_status strings_once(prony_model *model, prony_error *error)
{
    (void)model;
    static const prony_shape shape = {2, {-1, 2}};
    prony_value *value = NULL;
    prony_status status = prony_value_parse(&value, "[['a', 'bc'], ['', 'def']]", PRONY_STRING, &shape, 0, error);
    prony_value_release(value);
    return status;
}

static prony_status list_once(prony_model *model, prony_error *error)
{
    prony_free_dim *rows = NULL;
    size_t count;
    prony_status status = prony_model_free_dims(&rows, &count, model, NULL, error);
    prony_rows_release(rows);
    return status;
}

static prony_status part_once(prony_model *model, prony_error *error)
{
    static const char *const from[] = {"c"};
    static const prony_dim dims[] = {{"*", 8}};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_submodel part = PRONY_SUBMODEL_INIT;
    prony_model *cut = NULL;
    options.dims = dims;
    options.dim_count = 1;
    part.from = from;
    part.from_count = 1;
    part.options = &options;
    prony_status status = prony_model_extract(&cut, model, &part, error);
    if (status == PRONY_OK) {
        assert_int_equal(prony_model_input_count(cut), 2);
        assert_string_equal(prony_model_input(cut, 0)->name, "scale");
        assert_int_equal(prony_model_input(cut, 1)->shape.dim[2], 6);
    }
    prony_model_release(cut);
    return status;
}

static prony_status parse_once(prony_model *model, prony_error *error)
{
    (void)model;
    static const prony_shape shape = {2, {-1, 2}};
    prony_value *value = NULL;
    prony_status status = prony_value_parse(&value, "[[1, 2], [3, 4], [5, 6]]", PRONY_FLOAT16, &shape, 0, error);
    prony_value_release(value);
    return status;
}

static void test_allocations_that_fail(void **state)
{
    (void)state;
    static prony_status (*const calls[])(prony_model *, prony_error *) = {list_once, part_once, parse_once,
                                                                          strings_once};
    sample s;
    open_sample(&s);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        SCENARIO(c);
        for (uint64_t n = 1;; n++) {
            prony_error error = {0};
            prn_alloc_fail_at(n);
            prony_status status = calls[c](s.model, &error);
            bool failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            if (!failed) {
                if (status != PRONY_OK) fail_msg("%s", error.message);
                break;
            }
            if (status != PRONY_OK) assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        }
    }
    close_sample(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list),
                                       cmocka_unit_test(test_policies),
                                       cmocka_unit_test(test_trees_tell_their_features),
                                       cmocka_unit_test(test_time_axes_fit_windows),
                                       cmocka_unit_test(test_text_as_value),
                                       cmocka_unit_test(test_strings_as_value),
                                       cmocka_unit_test(test_allocations_that_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
