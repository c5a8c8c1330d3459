/* Models with data-dependent shapes, run repeatedly with other data: no value of an earlier run may show. */
#include "failure_trace.h"
#include "tests/support/model_builder.h"
#include "prony_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 8, COLUMNS = 64, OUTPUTS = 16, RUNS = 4 };

static prony_session *open_session(model_builder *m, prony_model **model)
{
    prony_error error = {0};
    prony_session *session = NULL;
    size_t size;
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(model, "varying", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    if (prony_session_create(&session, *model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

static const prony_value *run(prony_session *session, const char *const *names, const prony_value *values, size_t count)
{
    prony_error error = {0};
    const prony_value *out = NULL;
    for (size_t i = 0; i < count; i++) {
        if (prony_session_set_input(session, names[i], &values[i], &error) != PRONY_OK) fail_msg("%s", error.message);
    }
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    if (prony_session_output(session, 0, &out, &error) != PRONY_OK) fail_msg("%s", error.message);
    return out;
}

/* The retained rows become the right operand of a product, which kernels like to pack. */
static void test_product_of_selected_rows(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "8,64");
    mb_input(m, "keep", PRONY_BOOL, "8");
    mb_input(m, "left", PRONY_FLOAT32, "16,64");
    mb_node(m, "Compress", "x keep", "kept", "axis=0");
    mb_node(m, "Transpose", "kept", "right", "perm=[1,0]");
    mb_node(m, "MatMul", "left right", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    prony_model *model = NULL;
    prony_session *session = open_session(m, &model);
    static float x[ROWS * COLUMNS], left[OUTPUTS * COLUMNS];
    uint8_t keep[ROWS];
    static const char *const names[] = {"x", "keep", "left"};
    for (int i = 0; i < OUTPUTS * COLUMNS; i++) left[i] = (float)(i / COLUMNS);
    for (int round = 0; round < RUNS; round++) {
        SCENARIO(round);
        const int kept = round == 2 ? 3 : 7; /* the same shape twice, then another, then the first again */
        for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(round + 1 + i / COLUMNS);
        for (int i = 0; i < ROWS; i++) keep[i] = i < kept;
        const prony_value values[] = {{.dtype = PRONY_FLOAT32, .shape = {2, {ROWS, COLUMNS}}, .data = x},
                                      {.dtype = PRONY_BOOL, .shape = {1, {ROWS}}, .data = keep},
                                      {.dtype = PRONY_FLOAT32, .shape = {2, {OUTPUTS, COLUMNS}}, .data = left}};
        const prony_value *y = run(session, names, values, 3);
        assert_int_equal(y->shape.rank, 2);
        assert_int_equal(y->shape.dim[1], kept);
        for (int i = 0; i < OUTPUTS; i++) {
            for (int j = 0; j < kept; j++) {
                const float wanted = (float)(COLUMNS * i * (round + 1 + j));
                assert_true(((const float *)y->data)[i * kept + j] == wanted);
            }
        }
    }
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* A count that only the kernel finds out, as input of a further operator. */
static void test_unique_feeds_on(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_INT64, "6");
    mb_node(m, "Unique", "x", "values ? ? counts", "sorted=1");
    mb_node(m, "Mul", "values counts", "y", "");
    mb_output(m, "y", PRONY_INT64, NULL);
    prony_model *model = NULL;
    prony_session *session = open_session(m, &model);
    static const char *const names[] = {"x"};
    int64_t runs[][6] = {{5, 5, 5, 5, 5, 5}, {1, 2, 3, 4, 5, 6}, {2, 2, 9, 9, 9, 2}};
    const int64_t wanted[][6] = {{30}, {1, 2, 3, 4, 5, 6}, {6, 27}};
    const int64_t counts[] = {1, 6, 2};
    for (int round = 0; round < 3; round++) {
        SCENARIO(round);
        const prony_value value = {.dtype = PRONY_INT64, .shape = {1, {6}}, .data = runs[round]};
        const prony_value *y = run(session, names, &value, 1);
        assert_int_equal(y->shape.rank, 1);
        assert_int_equal(y->shape.dim[0], counts[round]);
        assert_memory_equal(y->data, wanted[round], (size_t)counts[round] * sizeof(int64_t));
    }
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* Nodes after a selection have shapes known at run time only. They still take the fast kernels, and the report names
 * the kernels that ran. */
static void test_fast_kernels_behind_a_selection(void **state)
{
    (void)state;
    static const int64_t halves[] = {32, 32};
    static const float two[] = {2.0f};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "8,64");
    mb_input(m, "keep", PRONY_BOOL, "8");
    mb_initializer(m, "halves", PRONY_INT64, "2", halves);
    mb_initializer(m, "two", PRONY_FLOAT32, "", two);
    mb_node(m, "Compress", "x keep", "kept", "axis=0");
    mb_node(m, "Split", "kept halves", "left right", "axis=1");
    mb_node(m, "Pow", "left two", "square", "");
    mb_node(m, "Sigmoid", "right", "gate", "");
    mb_node(m, "Mul", "square gate", "product", "");
    mb_node(m, "Concat", "product left", "wide", "axis=1");
    mb_node(m, "Unsqueeze", "wide axes", "planes", "");
    mb_initializer(m, "axes", PRONY_INT64, "2", (const int64_t[]){1, 2});
    mb_node(m, "MaxPool", "planes", "y", "kernel_shape=[1,2]");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    prony_model *model = NULL;
    prony_session *session = open_session(m, &model);
    static float x[ROWS * COLUMNS];
    uint8_t keep[ROWS] = {0, 1, 0, 1};
    static const char *const names[] = {"x", "keep"};
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = i % COLUMNS < COLUMNS / 2 ? (float)(i % 7) : 40.0f; /* a gate of 1 */
    const prony_value values[] = {{.dtype = PRONY_FLOAT32, .shape = {2, {ROWS, COLUMNS}}, .data = x},
                                  {.dtype = PRONY_BOOL, .shape = {1, {ROWS}}, .data = keep}};
    const prony_value *y = run(session, names, values, 2);
    assert_int_equal(y->shape.dim[0], 2);
    for (int i = 0; i + 1 < COLUMNS / 2; i++) {
        SCENARIO(i);
        const float a = x[COLUMNS + i], b = x[COLUMNS + i + 1];
        assert_true(((const float *)y->data)[i] == (a > b ? a * a : b * b));
    }

    prony_error error = {0};
    prony_report *report = NULL;
    prony_profile_options once = PRONY_PROFILE_OPTIONS_INIT;
    once.warmup_runs = 0;
    once.runs = 1;
    if (prony_session_profile(&report, session, &once, &error) != PRONY_OK) fail_msg("%s", error.message);
    size_t count = 0, seen = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        static const char *const fast[] = {"Split", "Pow", "Sigmoid", "Mul", "Concat", "MaxPool"};
        for (size_t k = 0; k < sizeof fast / sizeof *fast; k++) {
            SCENARIO_NAMED(k, fast[k]);
            if (strcmp(rows[i].op, fast[k]) != 0) continue;
            assert_string_equal(rows[i].backend, "native");
            seen++;
        }
        assert_true(*rows[i].kernel);
    }
    assert_int_equal(seen, 6);
    prony_report_release(report);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

/* Forms as in the run before, but a zero point that the kernel for bytes does not take, and back again. */
static void test_zero_points_change_behind_a_selection(void **state)
{
    (void)state;
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_UINT8, "8,64");
    mb_input(m, "keep", PRONY_BOOL, "8");
    mb_input(m, "weights", PRONY_INT8, "64,16");
    mb_input(m, "zero", PRONY_INT8, "");
    mb_node(m, "Compress", "x keep", "kept", "axis=0");
    mb_node(m, "MatMulInteger", "kept weights ? zero", "y", "");
    mb_output(m, "y", PRONY_INT32, NULL);
    prony_model *model = NULL;
    prony_session *session = open_session(m, &model);
    static uint8_t x[ROWS * COLUMNS];
    static int8_t weights[COLUMNS * OUTPUTS];
    static const uint8_t keep[ROWS] = {0, 1, 1, 0, 1, 0, 1, 1};
    static const char *const names[] = {"x", "keep", "weights", "zero"};
    static const int8_t zeros[] = {0, 5, 0, -3};
    memset(x, 2, sizeof x);
    memset(weights, 7, sizeof weights);
    for (size_t round = 0; round < sizeof zeros; round++) {
        SCENARIO(round);
        const prony_value values[] = {{.dtype = PRONY_UINT8, .shape = {2, {ROWS, COLUMNS}}, .data = x},
                                      {.dtype = PRONY_BOOL, .shape = {1, {ROWS}}, .data = (void *)(uintptr_t)keep},
                                      {.dtype = PRONY_INT8, .shape = {2, {COLUMNS, OUTPUTS}}, .data = weights},
                                      {.dtype = PRONY_INT8, .shape = {0}, .data = (void *)(uintptr_t)&zeros[round]}};
        const prony_value *y = run(session, names, values, 4);
        assert_int_equal(y->shape.dim[0], 5);
        for (int i = 0; i < 5 * OUTPUTS; i++)
            assert_int_equal(((const int32_t *)y->data)[i], COLUMNS * 2 * (7 - zeros[round]));
    }
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product_of_selected_rows),
        cmocka_unit_test(test_unique_feeds_on),
        cmocka_unit_test(test_fast_kernels_behind_a_selection),
        cmocka_unit_test(test_zero_points_change_behind_a_selection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
