/* The caller's own phases around each profiled run: their order, and their part of the report. */
#include "prony_analysis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LENET PRN_SOURCE_DIR "/tests/data/lenet5.onnx"
#define PAUSE_NS 2000000

typedef struct service {
    int before, after, fail_at;
    int64_t batch, grow_at;
    size_t answers; /* elements of the outputs that postprocessing saw */
    bool cost;
} service;

static void pause_ns(long ns)
{
    struct timespec rest = {0, ns};
    nanosleep(&rest, NULL);
}

static prony_status bind(void *user, prony_session *session, prony_error *error)
{
    service *s = user;
    s->before++;
    if (s->before == s->grow_at) s->batch++;
    float *pixels = calloc((size_t)s->batch * 784, sizeof *pixels);
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = {4, {s->batch, 1, 28, 28}}, .data = pixels};
    prony_status status = prony_session_set_input(session, "input", &value, error);
    free(pixels);
    pause_ns(PAUSE_NS);
    return status;
}

static prony_status read_answer(void *user, prony_session *session, prony_error *error)
{
    service *s = user;
    const prony_value *output;
    prony_status status = prony_session_output(session, 0, &output, error);
    if (status == PRONY_OK) s->answers += (size_t)prony_shape_numel(&output->shape);
    pause_ns(PAUSE_NS / 2);
    if (++s->after != s->fail_at) return status;
    strcpy(error->message, "the answer cannot be read");
    error->status = PRONY_INVALID_ARGUMENT;
    return PRONY_INVALID_ARGUMENT;
}

/* No input is bound before: the preprocessing callback binds it. */
static prony_status profile(prony_report **report, service *s, bool before, bool after, prony_error *error)
{
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_profile_options options = PRONY_PROFILE_OPTIONS_INIT;
    options.warmup_runs = 2;
    options.runs = 12;
    options.measure_cost = s->cost;
    options.preprocess = before ? bind : NULL;
    options.postprocess = after ? read_answer : NULL;
    options.phase_user = s;
    if (prony_model_load(&model, LENET, NULL, error) != PRONY_OK ||
        prony_session_create(&session, model, NULL, error) != PRONY_OK)
        fail_msg("%s", error->message);
    if (!before) assert_int_equal(prony_session_generate_inputs(session, 0, error), PRONY_OK);
    prony_status status = prony_session_profile(report, session, &options, error);
    prony_session_release(session);
    prony_model_release(model);
    return status;
}

static int collect(void *user, const char *data, size_t size)
{
    char *text = user;
    size_t used = strlen(text);
    if (used + size >= 1 << 20) return 1;
    memcpy(text + used, data, size);
    text[used + size] = '\0';
    return 0;
}

static char *json(const prony_report *report)
{
    prony_error error = {0};
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    if (prony_report_write(report, PRONY_FORMAT_JSON, NULL, collect, text, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return text;
}

static int64_t number_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void phases_stand_in_the_report(void **state)
{
    (void)state;
    service s = {.batch = 1};
    prony_error error = {0};
    prony_report *report = NULL, *back = NULL;
    if (profile(&report, &s, true, true, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(s.before, 1 + 2 + 12); /* once to bind, then around every run */
    assert_int_equal(s.after, 2 + 12);
    assert_int_equal(s.answers, 14 * 10);
    const prony_time_stats *run = prony_report_latency(report), *whole = prony_report_end_to_end(report);
    assert_non_null(whole);
    assert_int_equal(whole->count, 12);
    assert_true(whole->min_ns >= run->min_ns + PAUSE_NS + PAUSE_NS / 2);
    assert_true(whole->median_ns > run->median_ns && whole->max_ns >= whole->median_ns);
    prony_metrics *metrics = NULL;
    prony_metric_value value;
    assert_int_equal(prony_metrics_create(&metrics, &error), PRONY_OK);
    assert_int_equal(prony_metrics_compute(metrics, report, "end_to_end", &value, &error), PRONY_OK);
    assert_true(value.known && value.value == (double)whole->median_ns);
    assert_int_equal(prony_metrics_compute(metrics, report, "preprocess_time", &value, &error), PRONY_OK);
    assert_true(value.known && value.value >= PAUSE_NS);
    prony_metrics_release(metrics);
    char *text = json(report);
    assert_true(number_of(text, "\"preprocess\": ") >= PAUSE_NS);
    assert_true(number_of(text, "\"postprocess\": ") >= PAUSE_NS / 2);
    assert_non_null(strstr(text, "\"end_to_end_ns\""));
    if (prony_report_load_memory(&back, "report", text, strlen(text), &error) != PRONY_OK)
        fail_msg("%s", error.message);
    char *again = json(back);
    assert_string_equal(text, again);
    free(again);
    free(text);
    prony_report_release(back);
    prony_report_release(report);
}

static void the_cost_of_profiling_is_measured_beside(void **state)
{
    (void)state;
    service s = {.batch = 1, .cost = true};
    prony_error error = {0};
    prony_report *report = NULL;
    prony_metrics *metrics = NULL;
    prony_metric_value value;
    if (profile(&report, &s, true, true, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(s.before, 1 + 2 + 2 * 11 + 12); /* eleven pairs; the counted runs are as many as requested */
    assert_int_equal(prony_report_latency(report)->count, 12);
    char *text = json(report);
    assert_int_equal(number_of(text, "\"pairs\": "), 11);
    assert_true(number_of(text, "\"on_ns\": ") > 0 && number_of(text, "\"off_ns\": ") > 0);
    assert_int_equal(prony_metrics_create(&metrics, &error), PRONY_OK);
    assert_int_equal(prony_metrics_compute(metrics, report, "profiling_cost", &value, &error), PRONY_OK);
    assert_true(value.known);
    prony_metrics_release(metrics);
    free(text);
    prony_report_release(report);
}

static void one_phase_alone_is_enough(void **state)
{
    (void)state;
    service s = {.batch = 1};
    prony_error error = {0};
    prony_report *report = NULL;
    if (profile(&report, &s, false, true, &error) != PRONY_OK) fail_msg("%s", error.message);
    char *text = json(report);
    assert_null(strstr(text, "\"preprocess\""));
    assert_non_null(strstr(text, "\"postprocess\""));
    assert_non_null(prony_report_end_to_end(report));
    free(text);
    prony_report_release(report);
}

static void without_phases_there_is_no_end_to_end(void **state)
{
    (void)state;
    service s = {.batch = 1};
    prony_error error = {0};
    prony_report *report = NULL;
    if (profile(&report, &s, false, false, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_null(prony_report_end_to_end(report));
    char *text = json(report);
    assert_null(strstr(text, "end_to_end_ns"));
    assert_null(strstr(text, "postprocess"));
    free(text);
    prony_report_release(report);
}

static void a_failing_phase_ends_the_profile(void **state)
{
    (void)state;
    service s = {.batch = 1, .fail_at = 5};
    prony_error error = {0};
    prony_report *report = NULL;
    assert_int_equal(profile(&report, &s, true, true, &error), PRONY_INVALID_ARGUMENT);
    assert_null(report);
    assert_int_equal(s.after, 5);
    assert_string_equal(error.message, "the answer cannot be read");
}

static void another_shape_in_between_is_refused(void **state)
{
    (void)state;
    service s = {.batch = 1, .grow_at = 7};
    prony_error error = {0};
    prony_report *report = NULL;
    assert_int_equal(profile(&report, &s, true, true, &error), PRONY_SHAPE_MISMATCH);
    assert_null(report);
    assert_non_null(strstr(error.message, "preprocessing changed the input shape"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_stand_in_the_report),       cmocka_unit_test(the_cost_of_profiling_is_measured_beside),
        cmocka_unit_test(one_phase_alone_is_enough),        cmocka_unit_test(without_phases_there_is_no_end_to_end),
        cmocka_unit_test(a_failing_phase_ends_the_profile), cmocka_unit_test(another_shape_in_between_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
