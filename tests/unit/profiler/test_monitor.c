/* Monitoring a session that serves: profiled runs, the contents of samples and alerts, and the cost. */
#include "failure_trace.h"
#include "engine/session/session.h"
#include "prony_serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LENET PRN_SOURCE_DIR "/tests/data/lenet5.onnx"

typedef struct seen {
    prony_session *session;
    uint64_t samples, alerts, last_run, window;
    size_t operators;
    int64_t operator_ns, latency_ns;
    uint64_t arena, resident;
    double overhead;
    prony_alert alert;
    prony_status inside; /* of a run from inside the callback */
    bool ordered;
} seen;

static void on_sample(void *user, const prony_sample *sample)
{
    seen *s = user;
    s->samples++;
    s->last_run = sample->run;
    s->window = sample->latency.count;
    s->operators = sample->operator_count;
    s->operator_ns = 0;
    s->ordered = true;
    for (size_t i = 0; i < sample->operator_count; i++) {
        const prony_sample_row *o = &sample->operators[i];
        s->operator_ns += o->time_ns;
        s->ordered = s->ordered && o->index == i && *o->name && *o->op && *o->kernel && o->time_ns > 0;
    }
    s->latency_ns = sample->latency_ns;
    s->arena = sample->arena_bytes;
    s->resident = sample->resident_bytes;
    s->overhead = sample->overhead;
    s->inside = prony_session_run(s->session, NULL);
}

static void on_alert(void *user, const prony_alert *alert)
{
    seen *s = user;
    s->alerts++;
    s->alert = *alert;
}

static void open(seen *s, prony_model **model, int64_t batch, bool no_profile)
{
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.intra_op_threads = 1;
    options.batch = batch;
    options.no_profile = no_profile;
    if (prony_model_load(model, LENET, NULL, &error) != PRONY_OK ||
        prony_session_create(&s->session, *model, &options, &error) != PRONY_OK ||
        prony_session_generate_inputs(s->session, 0, &error) != PRONY_OK)
        fail_msg("%s", error.message);
}

static void watch(seen *s, const prony_monitor_options *options)
{
    prony_error error = {0};
    if (prony_session_monitor(s->session, options, &error) != PRONY_OK) fail_msg("%s", error.message);
}

static void run(seen *s, int times)
{
    prony_error error = {0};
    for (int i = 0; i < times; i++)
        if (prony_session_run(s->session, &error) != PRONY_OK) fail_msg("%s", error.message);
}

static void one_run_in_n_is_sampled(void **state)
{
    (void)state;
    for (int bare = 0; bare < 2; bare++) {
        SCENARIO(bare);
        seen s = {0};
        prony_model *model;
        prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
        open(&s, &model, 1, bare);
        options.every = 10;
        options.sample = on_sample;
        options.user = &s;
        watch(&s, &options);
        run(&s, 9);
        assert_int_equal(s.samples, 0);
        assert_int_equal(s.session->trace.count, 0); /* plain runs leave no stamps, whatever no_profile says */
        run(&s, 1);
        assert_true(s.samples == 1 && s.last_run == 10 && s.window == 10);
        assert_int_equal(s.operators, s.session->current->plan->step_count);
        assert_true(s.ordered && s.operator_ns > 0 && s.operator_ns <= s.latency_ns);
        assert_true(s.arena > 0 && s.resident > s.arena);
        assert_true(s.overhead > 0);
        assert_int_equal(s.inside, PRONY_BUSY);
        run(&s, 25);
        assert_true(s.samples == 3 && s.last_run == 30 && s.window == 10);
        assert_int_equal(s.session->trace.count, 0);
        watch(&s, NULL);
        run(&s, 20);
        assert_int_equal(s.samples, 3);
        assert_int_equal(s.session->trace.count, bare ? 0 : s.operators);
        prony_session_release(s.session);
        prony_model_release(model);
    }
}

static void the_window_is_bounded(void **state)
{
    (void)state;
    seen s = {0};
    prony_model *model;
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    open(&s, &model, 1, true);
    options.every = 1500;
    options.sample = on_sample;
    options.user = &s;
    watch(&s, &options);
    run(&s, 1500);
    assert_true(s.samples == 1 && s.window == 1024);
    prony_session_release(s.session);
    prony_model_release(model);
}

/* Monitoring must not slow the runs between two samples: they record no time stamps. */
static void the_default_samples_seldom(void **state)
{
    (void)state;
    seen s = {0};
    prony_model *model;
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    open(&s, &model, 1, true);
    options.sample = on_sample;
    options.user = &s;
    watch(&s, &options);
    run(&s, 1000);
    assert_int_equal(s.samples, 1);
    assert_true(s.overhead > 0);
    run(&s, 1);
    assert_int_equal(s.session->trace.count, 0);
    prony_session_release(s.session);
    prony_model_release(model);
}

/* A sample without memory is left out; the run is not. */
static void out_of_memory_leaves_a_sample_out(void **state)
{
    (void)state;
    seen s = {0};
    prony_model *model;
    prony_error error = {0};
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    open(&s, &model, 1, true);
    options.every = 1;
    options.sample = on_sample;
    options.user = &s;
    assert_int_equal(prony_session_prepare(s.session, &error), PRONY_OK);
    prn_alloc_fail_at(1);
    assert_int_equal(prony_session_monitor(s.session, &options, &error), PRONY_OUT_OF_MEMORY);
    prn_alloc_fail_at(0);
    watch(&s, &options);
    uint64_t left_out = 0;
    for (uint64_t n = 1;; n++) {
        uint64_t before = s.samples;
        prn_alloc_fail_at(n);
        run(&s, 1);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) break;
        left_out += s.samples == before;
    }
    assert_true(left_out > 0);
    prony_session_release(s.session);
    prony_model_release(model);
}

static void thresholds_alert(void **state)
{
    (void)state;
    seen s = {0};
    prony_model *model;
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    open(&s, &model, 1, true);
    options.every = 4;
    options.alert = on_alert;
    options.user = &s;
    options.latency_above_ns = 1;
    watch(&s, &options);
    run(&s, 3);
    assert_int_equal(s.alerts, 3); /* every run is asked */
    assert_int_equal(s.alert.kind, PRONY_ALERT_LATENCY);
    assert_true(s.alert.run == 3 && s.alert.value > 1 && s.alert.threshold == 1);

    options.latency_above_ns = INT64_MAX;
    options.memory_above_bytes = 1;
    watch(&s, &options);
    run(&s, 7);
    assert_int_equal(s.alerts, 4); /* sampled runs alone */
    assert_int_equal(s.alert.kind, PRONY_ALERT_MEMORY);
    assert_true(s.alert.run == 4 && s.alert.value > 1 && s.alert.threshold == 1);

    options.memory_above_bytes = UINT64_MAX;
    watch(&s, &options);
    run(&s, 8);
    assert_int_equal(s.alerts, 4);
    prony_session_release(s.session);
    prony_model_release(model);
}

static void a_new_shape_brings_its_own_operators(void **state)
{
    (void)state;
    seen s = {0};
    prony_model *model;
    prony_error error = {0};
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    open(&s, &model, 0, true);
    options.every = 1;
    options.sample = on_sample;
    options.user = &s;
    watch(&s, &options);
    run(&s, 1);
    uint64_t arena = s.arena;
    static float data[16 * 784];
    prony_value more = {.dtype = PRONY_FLOAT32, .shape = {4, {16, 1, 28, 28}}, .data = data};
    assert_int_equal(prony_session_set_input(s.session, "input", &more, &error), PRONY_OK);
    run(&s, 1);
    assert_true(s.samples == 2 && s.arena > arena);
    prony_session_release(s.session);
    prony_model_release(model);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    seen s = {0};
    prony_model *model;
    prony_error error = {0};
    prony_report *report = NULL;
    prony_monitor_options options = PRONY_MONITOR_OPTIONS_INIT;
    open(&s, &model, 1, false);
    options.every = 0;
    assert_int_equal(prony_session_monitor(s.session, &options, &error), PRONY_INVALID_ARGUMENT);
    options.every = 1;
    options.latency_above_ns = 5;
    assert_int_equal(prony_session_monitor(s.session, &options, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "alert"));
    options.alert = on_alert;
    options.user = &s;
    watch(&s, &options);
    assert_int_equal(prony_session_profile(&report, s.session, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "monitor"));
    prony_session_release(s.session);
    prony_model_release(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_in_n_is_sampled),
        cmocka_unit_test(the_window_is_bounded),
        cmocka_unit_test(the_default_samples_seldom),
        cmocka_unit_test(out_of_memory_leaves_a_sample_out),
        cmocka_unit_test(thresholds_alert),
        cmocka_unit_test(a_new_shape_brings_its_own_operators),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
