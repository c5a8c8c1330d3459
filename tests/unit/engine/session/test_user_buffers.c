/* Inputs and outputs in the caller's bytes: read and written in place if possible, right in every case. */
#include "failure_trace.h"
#include "tests/support/model_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 12 };

/* y = Relu(x * 2), v = x itself (a view), w = the positions of nonzero elements (a data-dependent shape) */
static model_builder *three_outputs(void)
{
    static const float two[1] = {2};
    model_builder *m = mb_begin(13);
    mb_input(m, "x", PRONY_FLOAT32, "N,4");
    mb_initializer(m, "two", PRONY_FLOAT32, "1", two);
    mb_node(m, "Mul", "x two", "d", "");
    mb_node(m, "Relu", "d", "y", "");
    mb_node(m, "Identity", "x", "v", "");
    mb_node(m, "NonZero", "x", "w", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,4");
    mb_output(m, "v", PRONY_FLOAT32, "N,4");
    mb_output(m, "w", PRONY_INT64, "2,M");
    return m;
}

static void bind(model_run *r, const void *bytes)
{
    const prony_value x = {
        .kind = PRONY_TENSOR, .dtype = PRONY_FLOAT32, .shape = mr_shape("3,4"), .data = (void *)(uintptr_t)bytes};
    assert_int_equal(prony_session_bind_input(r->session, "x", &x, &r->error), PRONY_OK);
}

static const prony_value *output(model_run *r, size_t index)
{
    const prony_value *value = NULL;
    assert_int_equal(prony_session_output(r->session, index, &value, &r->error), PRONY_OK);
    return value;
}

static void check(model_run *r, const float *x, const float *y, const float *v, const int64_t *w)
{
    size_t places = 0;
    for (int i = 0; i < N; i++) places += x[i] != 0;
    assert_int_equal(output(r, 2)->shape.dim[1], places);
    for (int i = 0, place = 0; i < N; i++) {
        assert_true(y[i] == (x[i] > 0 ? 2 * x[i] : 0) && v[i] == x[i]);
        if (x[i] == 0) continue;
        assert_true(w[place] == i / 4 && w[places + (size_t)place] == i % 4);
        place++;
    }
}

/* An output may take the bytes of the input that it is computed from. Two outputs may not share bytes, and an output
 * that is the input itself may not either. */
static void bytes_that_are_bound_twice(void **state)
{
    (void)state;
    float x[2 * N], given[N], y[N], v[N];
    model_run r = {0};
    mr_open(&r, three_outputs());
    for (int i = 0; i < N; i++) given[i] = x[i] = (float)(i % 5 - 2);
    bind(&r, x);
    assert_int_equal(prony_session_bind_output(r.session, 0, x, sizeof given, &r.error), PRONY_OK);
    assert_int_equal(prony_session_bind_output(r.session, 1, v, sizeof v, &r.error), PRONY_OK);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    for (int i = 0; i < N; i++) assert_true(x[i] == (given[i] > 0 ? 2 * given[i] : 0) && v[i] == given[i]);
    memcpy(x, given, sizeof given); /* the same, shifted by one element */
    assert_int_equal(prony_session_bind_output(r.session, 0, x + 1, sizeof given, &r.error), PRONY_OK);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    for (int i = 0; i < N; i++) assert_true(x[i + 1] == (given[i] > 0 ? 2 * given[i] : 0) && v[i] == given[i]);

    memcpy(x, given, sizeof given);
    assert_int_equal(prony_session_bind_output(r.session, 1, NULL, 0, &r.error), PRONY_OK); /* v is x */
    mr_refused(&r, PRONY_INVALID_ARGUMENT, "output 'v' overlaps an input");
    memcpy(x, given, sizeof given);
    assert_int_equal(prony_session_bind_output(r.session, 0, y, sizeof y, &r.error), PRONY_OK);
    assert_int_equal(prony_session_bind_output(r.session, 1, y + 4, sizeof y - 4 * sizeof *y, &r.error), PRONY_OK);
    mr_refused(&r, PRONY_INVALID_ARGUMENT, "outputs 'y' and 'v' are bound to bytes that overlap");
    assert_int_equal(prony_session_bind_output(r.session, 1, v, sizeof v, &r.error), PRONY_OK);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    for (int i = 0; i < N; i++) assert_true(y[i] == (given[i] > 0 ? 2 * given[i] : 0) && v[i] == given[i]);
    mr_close(&r);
}

static void bytes_are_used_in_place(void **state)
{
    (void)state;
    float x[N + 1], y[N], v[N];
    int64_t w[2 * N];
    for (int workers = 1; workers < 3; workers++) {
        SCENARIO(workers);
        model_run r = {.options = {.inter_op_threads = workers}};
        mr_open(&r, three_outputs());
        bind(&r, x + 1); /* on no cache line, not even on 16 bytes */
        assert_int_equal(prony_session_bind_output(r.session, 0, y, sizeof y, &r.error), PRONY_OK);
        assert_int_equal(prony_session_bind_output(r.session, 1, v, sizeof v, &r.error), PRONY_OK);
        assert_int_equal(prony_session_bind_output(r.session, 2, w, sizeof w, &r.error), PRONY_OK);
        assert_ptr_equal(prony_session_input_value(r.session, 0)->data, x + 1);
        for (int run = 0; run < 5; run++) {
            for (int i = 0; i < N; i++) x[1 + i] = (float)((i * 7 + run) % 5 - 2);
            assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
            assert_ptr_equal(output(&r, 0)->data, y);
            check(&r, x + 1, y, v, w);
        }
        mr_close(&r);
    }
}

static void odd_addresses_are_copied(void **state)
{
    (void)state;
    float x[N], y[N], v[N];
    char odd_x[sizeof x + 1], odd_y[sizeof y + 1];
    int64_t w[2 * N];
    model_run r = {0};
    mr_open(&r, three_outputs());
    bind(&r, odd_x + 1);
    assert_int_equal(prony_session_bind_output(r.session, 0, odd_y + 1, sizeof y, &r.error), PRONY_OK);
    assert_int_equal(prony_session_bind_output(r.session, 1, v, sizeof v, &r.error), PRONY_OK);
    assert_int_equal(prony_session_bind_output(r.session, 2, w, sizeof w, &r.error), PRONY_OK);
    for (int run = 0; run < 3; run++) {
        SCENARIO(run);
        for (int i = 0; i < N; i++) x[i] = (float)((i * 5 + run) % 7 - 3);
        memcpy(odd_x + 1, x, sizeof x);
        assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
        memcpy(y, odd_y + 1, sizeof y);
        check(&r, x, y, v, w);
    }
    mr_close(&r);
}

/* Bound, set, bound elsewhere, released, with another shape meanwhile. Runs neither read nor write buffers that were
 * bound before. */
static void bindings_change(void **state)
{
    (void)state;
    float x[N], other[N], y[N], wider[2 * N];
    model_run r = {0};
    mr_open(&r, three_outputs());
    for (int i = 0; i < N; i++) x[i] = (float)i, other[i] = (float)(2 * i), y[i] = -1;
    bind(&r, x);
    assert_int_equal(prony_session_bind_output(r.session, 0, y, sizeof y, &r.error), PRONY_OK);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    assert_true(y[3] == 6);
    mr_set(&r, "x", PRONY_FLOAT32, "3,4", other);
    memset(other, 0, sizeof other);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    assert_true(y[3] == 12 && x[3] == 3);
    for (int i = 0; i < 2 * N; i++) wider[i] = (float)i;
    mr_set(&r, "x", PRONY_FLOAT32, "6,4", wider);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OUT_OF_RANGE);
    assert_non_null(strstr(r.error.message, "output 'y' has 96 bytes, but 48 are bound to it"));
    assert_int_equal(prony_session_bind_output(r.session, 0, NULL, 0, &r.error), PRONY_OK);
    y[3] = -5;
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    assert_true(y[3] == -5 && ((const float *)output(&r, 0)->data)[23] == 46);
    bind(&r, x);
    assert_int_equal(prony_session_run(r.session, &r.error), PRONY_OK);
    assert_true(((const float *)output(&r, 0)->data)[5] == 10 && y[3] == -5);
    assert_int_equal(prony_session_bind_output(r.session, 3, y, sizeof y, &r.error), PRONY_OUT_OF_RANGE);
    const prony_value text = {.kind = PRONY_TENSOR, .dtype = PRONY_INT32, .shape = mr_shape("3,4"), .data = x};
    assert_int_equal(prony_session_bind_input(r.session, "x", &text, &r.error), PRONY_SHAPE_MISMATCH);
    assert_int_equal(prony_session_bind_input(r.session, "z", &text, &r.error), PRONY_INVALID_ARGUMENT);
    mr_close(&r);
}

/* An output's type and shape are known before the run, unless they depend on data. */
static void planned_outputs(void **state)
{
    (void)state;
    float x[N] = {1, 0, 3};
    prony_value planned;
    model_run r = {0};
    mr_open(&r, three_outputs());
    assert_int_equal(prony_session_planned_output(r.session, 0, &planned, &r.error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(r.error.message, "no plan exists yet"));
    bind(&r, x);
    for (int run = 0; run < 2; run++) {
        SCENARIO(run);
        assert_int_equal(run ? prony_session_run(r.session, &r.error) : prony_session_prepare(r.session, &r.error),
                         PRONY_OK);
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(prony_session_planned_output(r.session, k, &planned, &r.error), PRONY_OK);
            assert_true(planned.dtype == PRONY_FLOAT32 && planned.shape.rank == 2 && !planned.data);
            assert_true(planned.shape.dim[0] == 3 && planned.shape.dim[1] == 4);
        }
        assert_int_equal(prony_session_planned_output(r.session, 2, &planned, &r.error), PRONY_OK);
        assert_true(planned.dtype == PRONY_INT64 && planned.shape.rank == -1);
    }
    assert_int_equal(prony_session_planned_output(r.session, 3, &planned, &r.error), PRONY_OUT_OF_RANGE);
    mr_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_that_are_bound_twice),
                                       cmocka_unit_test(bytes_are_used_in_place),
                                       cmocka_unit_test(odd_addresses_are_copied), cmocka_unit_test(bindings_change),
                                       cmocka_unit_test(planned_outputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
