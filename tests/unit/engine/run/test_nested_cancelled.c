/* Reports of runs that were cancelled inside a subgraph: the values are those of the finished runs, and a mark shows
 * the position of the last one. */
#include "tests/support/nested_forms.h"
#include "tests/support/nested_model.h"

#include "profiler/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct caller_off {
    prony_session *session;
    int calls, at; /* calls itself off in this one; 0: never */
} caller_off;

static prony_status same_as_input(const prony_context *context)
{
    context->outputs[0]->dtype = context->inputs[0]->dtype;
    context->outputs[0]->shape = context->inputs[0]->shape;
    return PRONY_OK;
}

static prony_status one_flop(const prony_context *context, prony_cost *cost)
{
    (void)context;
    cost->flops = 1;
    return PRONY_OK;
}

static prony_status copy_and_call_off(const prony_context *context)
{
    caller_off *c = context->user;
    memcpy(context->outputs[0]->data, context->inputs[0]->data, 2 * sizeof(float));
    if (++c->calls == c->at) prony_session_cancel(c->session);
    return PRONY_OK;
}

static model_builder *call_off_model(void)
{
    model_builder *m = mb_begin(16);
    mb_opset(m, "test", 1);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "Loop", "n ? x", "y", "");
    mb_node_name(m, "loop");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "a", PRONY_FLOAT32, "2");
    mb_node(m, "Neg", "a", "b", "");
    mb_node_name(m, "before");
    mb_node(m, "test::Touch", "b", "c", "");
    mb_node_name(m, "touch");
    mb_output(m, "on", PRONY_BOOL, "");
    mb_output(m, "c", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "2");
    return m;
}

/* The values are those of the finished runs; the mark shows the position of the last run. */
static void a_run_that_was_called_off_says_where(void **state)
{
    (void)state;
    static const int64_t n = 10;
    static const float x[2] = {1, 2};
    caller_off c = {.at = 0};
    prony_registry *registry = NULL;
    prony_operator touch = PRONY_OPERATOR_INIT;
    prony_model_options options = PRONY_MODEL_OPTIONS_INIT;
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    model_run r = {.builder = call_off_model()};
    prony_report *report = NULL;
    size_t size;
    touch.domain = "test";
    touch.name = "Touch";
    touch.infer = same_as_input;
    touch.cost = one_flop;
    touch.run = copy_and_call_off;
    touch.user = &c;
    const void *bytes = mb_finish(r.builder, &size);
    assert_int_equal(prony_registry_create(&registry, &r.error), PRONY_OK);
    assert_int_equal(prony_registry_add(registry, &touch, &r.error), PRONY_OK);
    options.registry = registry;
    if (prony_model_load_memory(&r.model, "m", bytes, size, &options, &r.error) != PRONY_OK)
        fail_msg("%s", r.error.message);
    assert_int_equal(prony_session_create(&r.session, r.model, NULL, &r.error), PRONY_OK);
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_set(&r, "x", PRONY_FLOAT32, "2", x);
    c.session = r.session;
    c.at = 10 + 3 * 10 + 4; /* warm-up, three whole runs, the fourth trip of another one */
    profile.runs = 100;
    profile.warmup_runs = 1;
    assert_int_equal(prony_session_profile(&report, r.session, &profile, &r.error), PRONY_CANCELLED);
    nested_expect(r.error.message, "node 'loop' (Loop), body: node 'touch' (test::Touch)");
    assert_non_null(report);
    assert_int_equal(prony_report_latency(report)->count, 3);
    const prony_nested_row *row = nested_row(report, PRONY_LEVEL_OPERATOR, "touch");
    assert_true(row->cancelled);
    assert_int_equal(row->executions, 10);
    assert_int_equal(row->cost.flops, 10);
    assert_true(nested_row(report, PRONY_LEVEL_LAYER, "touch")->cancelled);
    assert_false(nested_row(report, PRONY_LEVEL_OPERATOR, "before")->cancelled);
    assert_string_equal(report->stopped_at, "loop > body > touch");
    assert_true(report->conserved);
    char *text = nested_write(report, PRONY_FORMAT_TEXT, NULL);
    nested_expect(text, "stopped in loop > body > touch");
    nested_expect(text, "! the cancelled run stopped inside it");
    prn_free(text);
    text = nested_write(report, PRONY_FORMAT_JSON, NULL);
    nested_expect(text, "\"stopped_at\": \"loop > body > touch\"");
    nested_expect(text, "\"stopped\": true");
    prn_free(text);
    nested_round_trip(report);
    prony_report_release(report);
    c.at = 0; /* the session goes on */
    report = nested_profile(&r, 2);
    assert_false(nested_row(report, PRONY_LEVEL_OPERATOR, "touch")->cancelled);
    assert_null(report->stopped_at);
    prony_report_release(report);
    mr_close(&r);
    prony_registry_release(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_was_called_off_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
