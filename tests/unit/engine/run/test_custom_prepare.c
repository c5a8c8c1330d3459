/* Custom operators that prepare: state and scratch memory reach the runs, are made once a plan and freed with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failure_trace.h"
#include "prony_operator.h"
#include "tests/support/model_run.h"

enum { SCRATCH_BYTES = 1000 };

/* The counts of calls of test::Scale, y = x w, and how its prepare behaves. */
typedef struct scale_calls {
    int prepared, ran, released;
    size_t scratch_bytes; /* that prepare asks for */
    prony_status status;  /* that prepare returns */
} scale_calls;

static scale_calls calls;

typedef struct scale_state {
    float factor;
    int64_t elements; /* of the x that it was prepared for; -1: not known then */
} scale_state;

static prony_status scale_infer(const prony_context *context)
{
    *context->outputs[0] = (prony_value){.dtype = context->inputs[0]->dtype, .shape = context->inputs[0]->shape};
    return PRONY_OK;
}

static prony_status scale_cost(const prony_context *context, prony_cost *cost)
{
    (void)context;
    cost->flops = 1;
    return PRONY_OK;
}

static prony_status scale_prepare(const prony_context *context, prony_prepared *out)
{
    scale_calls *c = context->user;
    c->prepared++;
    if (c->status == PRONY_LIMIT) return prony_fail(context, PRONY_LIMIT, "the weight is too heavy");
    if (c->status != PRONY_OK) return c->status;
    assert_true(context->constant_inputs & 2);
    scale_state *s = malloc(sizeof *s);
    if (!s) return PRONY_OUT_OF_MEMORY;
    *s = (scale_state){*(const float *)context->inputs[1]->data, prony_shape_numel(&context->inputs[0]->shape)};
    *out = (prony_prepared){s, c->scratch_bytes};
    return PRONY_OK;
}

static prony_status scale_run(const prony_context *context)
{
    const scale_state *s = context->state;
    const int64_t count = prony_shape_numel(&context->inputs[0]->shape);
    const float *x = context->inputs[0]->data;
    float *y = context->outputs[0]->data;
    calls.ran++;
    assert_int_equal((uintptr_t)context->scratch % 64, 0);
    assert_true(context->scratch_bytes >= calls.scratch_bytes);
    memset(context->scratch, 0xff, calls.scratch_bytes); /* NaN, should another operator's bytes lie there */
    if (s->elements >= 0) assert_int_equal(s->elements, count);
    for (int64_t i = 0; i < count; i++) y[i] = s->factor * x[i];
    return PRONY_OK;
}

static void scale_release(void *state)
{
    if (state) calls.released++;
    free(state);
}

static prony_operator scale_definition(void)
{
    prony_operator scale = PRONY_OPERATOR_INIT;
    scale.domain = "test";
    scale.name = "Scale";
    scale.infer = scale_infer;
    scale.cost = scale_cost;
    scale.prepare = scale_prepare;
    scale.run = scale_run;
    scale.release = scale_release;
    scale.user = &calls;
    return scale;
}

static void open_run(model_run *r, model_builder *m)
{
    prony_operator scale = scale_definition();
    assert_int_equal(prony_registry_create(&r->registry, NULL), PRONY_OK);
    assert_int_equal(prony_registry_add(r->registry, &scale, NULL), PRONY_OK);
    mr_open(r, m);
}

static void close_run(model_run *r)
{
    prony_registry *registry = r->registry;
    mr_close(r);
    prony_registry_release(registry);
}

static const float three = 3;

/* y = Relu(Scale(x)), of a free length. */
static model_builder *scale_model(void)
{
    model_builder *m = mb_begin(16);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "n");
    mb_initializer(m, "w", PRONY_FLOAT32, "1", &three);
    mb_node(m, "test::Scale", "x w", "h", "");
    mb_node(m, "Relu", "h", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "n");
    return m;
}

static void test_prepares_once_a_plan(void **state)
{
    (void)state;
    model_run r = {0};
    calls = (scale_calls){.scratch_bytes = SCRATCH_BYTES};
    open_run(&r, scale_model());
    for (int run = 0; run < 3; run++) {
        SCENARIO(run);
        mr_set(&r, "x", PRONY_FLOAT32, "2", (float[]){1, -2});
        mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", (float[]){3, 0});
    }
    assert_int_equal(calls.prepared, 1);
    assert_int_equal(calls.ran, 3);
    mr_set(&r, "x", PRONY_FLOAT32, "3", (float[]){1, 2, 3}); /* another plan, prepared for its own shape */
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3", (float[]){3, 6, 9});
    assert_int_equal(calls.prepared, 2);
    close_run(&r);
    assert_int_equal(calls.released, calls.prepared);
}

static void test_scratch_is_planned(void **state)
{
    (void)state;
    model_run r = {0};
    calls = (scale_calls){.scratch_bytes = SCRATCH_BYTES};
    open_run(&r, scale_model());
    mr_set(&r, "x", PRONY_FLOAT32, "2", (float[]){1, 2});
    prony_report *report = mr_profile(&r);
    size_t count = 0;
    const prony_operator_row *rows = prony_report_operators(report, &count);
    assert_true(count > 0);
    assert_true(rows[0].scratch_bytes >= SCRATCH_BYTES);
    prony_report_release(report);
    close_run(&r);
    assert_int_equal(calls.released, calls.prepared);
}

static void test_prepares_in_a_run_whose_shape_depends_on_data(void **state)
{
    (void)state;
    model_run r = {0};
    model_builder *m = mb_begin(16);
    mb_opset(m, "test", 1);
    mb_input(m, "x", PRONY_FLOAT32, "4");
    mb_input(m, "keep", PRONY_BOOL, "4");
    mb_initializer(m, "w", PRONY_FLOAT32, "1", &three);
    mb_node(m, "Compress", "x keep", "kept", "axis=0");
    mb_node(m, "test::Scale", "kept w", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, NULL);
    calls = (scale_calls){.scratch_bytes = SCRATCH_BYTES};
    open_run(&r, m);
    mr_set(&r, "x", PRONY_FLOAT32, "4", (float[]){1, 2, 3, 4});
    mr_set(&r, "keep", PRONY_BOOL, "4", (uint8_t[]){1, 0, 1, 0});
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "2", (float[]){3, 9});
    mr_set(&r, "keep", PRONY_BOOL, "4", (uint8_t[]){1, 1, 1, 0});
    mr_expect(mr_run(&r, 0), PRONY_FLOAT32, "3", (float[]){3, 6, 9});
    assert_int_equal(calls.prepared, 2);
    close_run(&r);
    assert_int_equal(calls.released, 2);
}

static void test_failures_of_prepare(void **state)
{
    (void)state;
    const struct {
        scale_calls calls;
        prony_status status;
        const char *message;
    } cases[] = {
        {{.status = PRONY_LIMIT}, PRONY_LIMIT, "the weight is too heavy"},
        {{.status = PRONY_UNSUPPORTED}, PRONY_UNSUPPORTED, "prepare function failed without a message"},
        {{.status = (prony_status)77}, PRONY_INTERNAL, "prepare function returned an invalid status (77)"},
        {{.scratch_bytes = SIZE_MAX}, PRONY_LIMIT, ""},
        {{.scratch_bytes = SIZE_MAX / 2}, PRONY_LIMIT, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SCENARIO(i);
        model_run r = {0};
        calls = cases[i].calls;
        open_run(&r, scale_model());
        mr_set(&r, "x", PRONY_FLOAT32, "2", (float[]){1, 2});
        const prony_status status = prony_session_run(r.session, &r.error);
        if (status != cases[i].status && !(cases[i].status == PRONY_LIMIT && status == PRONY_OUT_OF_MEMORY))
            fail_msg("case %zu: status %d, message: %s", i, (int)status, r.error.message);
        if (!strstr(r.error.message, cases[i].message)) fail_msg("case %zu: %s", i, r.error.message);
        const int made = calls.status == PRONY_OK ? calls.prepared : 0;
        close_run(&r);
        assert_int_equal(calls.released, made);
        assert_int_equal(calls.ran, 0);
    }
}

static void test_release_needs_prepare(void **state)
{
    (void)state;
    prony_registry *registry = NULL;
    prony_error error = {0};
    prony_operator scale = scale_definition();
    scale.prepare = NULL;
    assert_int_equal(prony_registry_create(&registry, NULL), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &scale, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "release without prepare"));
    prony_registry_release(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepares_once_a_plan),
        cmocka_unit_test(test_scratch_is_planned),
        cmocka_unit_test(test_prepares_in_a_run_whose_shape_depends_on_data),
        cmocka_unit_test(test_failures_of_prepare),
        cmocka_unit_test(test_release_needs_prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
