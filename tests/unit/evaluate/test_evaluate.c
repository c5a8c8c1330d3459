/* Evaluation on labelled data in memory: accuracies worked out by hand, batches that do not divide the samples, the
 * user's own metric, refusals; and the best classes of an output. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "model_builder.h"
#include "prony_analysis.h"
#include "prony_data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 7, CLASSES = 8 };

/* Scores of seven samples, and their labels. */
static const float scores[SAMPLES][CLASSES] = {
    {9, 1, 2, 3, 4, 5, 6, 7},     /* 0: best */
    {9, 1, 2, 3, 4, 5, 6, 7},     /* 7: second */
    {9, 1, 2, 3, 4, 5, 6, 7},     /* 4: fifth */
    {9, 1, 2, 3, 4, 5, 6, 7},     /* 3: sixth */
    {5, 5, 5, 5, 5, 5, 5, 5},     /* 0: of equals the first is the best */
    {5, 5, 5, 5, 5, 5, 5, 5},     /* 5: and this one the sixth */
    {NAN, 1, NAN, 0, 0, 0, 0, 0}, /* 1: NaN comes last */
};
static const int64_t labels[SAMPLES] = {0, 7, 4, 3, 0, 5, 1};
#define TOP1 (3.0 / 7)
#define TOP5 (5.0 / 7)

typedef struct bench {
    model_builder *builder;
    prony_model *model;
    prony_session *session;
} bench;

/* `graph` adds the nodes between what it declares itself. */
static bench open_model(void (*graph)(model_builder *m), const prony_session_options *options)
{
    bench b = {.builder = mb_begin(13)};
    prony_error error = {0};
    size_t size;
    graph(b.builder);
    const void *bytes = mb_finish(b.builder, &size);
    if (prony_model_load_memory(&b.model, "test", bytes, size, NULL, &error) != PRONY_OK ||
        prony_session_create(&b.session, b.model, options, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return b;
}

static void close_model(bench *b)
{
    prony_session_release(b->session);
    prony_model_release(b->model);
    mb_free(b->builder);
}

static void pass_on(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "N,8");
    mb_node(m, "Add", "x x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,8");
}

static void three_at_once(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "3,8");
    mb_node(m, "Add", "x x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "3,8");
}

static void class_itself(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "N,8");
    mb_node(m, "ArgMax", "x", "y", "axis=1 keepdims=0");
    mb_output(m, "y", PRONY_INT64, "N");
}

static void two_inputs(model_builder *m)
{
    mb_input(m, "x", PRONY_FLOAT32, "N,8");
    mb_input(m, "shift", PRONY_FLOAT32, "8");
    mb_node(m, "Add", "x shift", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,8");
}

static void of_integers(model_builder *m)
{
    mb_input(m, "x", PRONY_INT32, "N,8");
    mb_node(m, "Cast", "x", "y", "to=1");
    mb_output(m, "y", PRONY_FLOAT32, "N,8");
}

static prony_value tensor(prony_dtype dtype, const void *data, int rank, int64_t a, int64_t b)
{
    return (prony_value){.dtype = dtype, .shape = {rank, {a, b}}, .data = (void *)(uintptr_t)data};
}

static prony_status dataset(prony_dataset **out, const bench *b, const prony_value *x, const prony_value *y,
                            prony_error *error)
{
    const char *name = "x";
    memset(error, 0, sizeof *error);
    *out = NULL;
    return prony_dataset_create(out, b->model, &name, &x, 1, y, NULL, error);
}

static prony_dataset *the_data(const bench *b)
{
    prony_error error;
    prony_dataset *data;
    prony_value x = tensor(PRONY_FLOAT32, scores, 2, SAMPLES, CLASSES), y = tensor(PRONY_INT64, labels, 1, SAMPLES, 0);
    if (dataset(&data, b, &x, &y, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_dataset_count(data), SAMPLES);
    return data;
}

static double metric_of(const prony_report *report, const char *key)
{
    prony_metrics *metrics = NULL;
    prony_metric_value value;
    prony_error error = {0};
    assert_int_equal(prony_metrics_create(&metrics, &error), PRONY_OK);
    assert_int_equal(prony_metrics_compute(metrics, report, key, &value, &error), PRONY_OK);
    prony_metrics_release(metrics);
    return value.known ? value.value : NAN;
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

static void accuracies(void **state)
{
    (void)state;
    static const int64_t batches[] = {0, 1, 2, 3, 7, 9};
    bench b = open_model(pass_on, NULL);
    prony_dataset *data = the_data(&b);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        SCENARIO(i);
        prony_evaluate_options options = PRONY_EVALUATE_OPTIONS_INIT;
        prony_error error = {0};
        prony_report *report = NULL, *back = NULL;
        size_t count;
        options.batch = batches[i];
        if (prony_evaluate(&report, b.session, data, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
        const prony_evaluation_row *rows = prony_report_evaluations(report, &count);
        assert_int_equal(count, 2);
        assert_string_equal(rows[0].metric, "top1_accuracy");
        assert_string_equal(rows[1].metric, "top5_accuracy");
        assert_true(rows[0].value == TOP1 && rows[1].value == TOP5);
        assert_true(rows[0].samples == SAMPLES && rows[1].samples == SAMPLES);
        assert_true(metric_of(report, "evaluation") == TOP1 && metric_of(report, "top1_accuracy") == TOP1);
        assert_true(metric_of(report, "top5_accuracy") == TOP5);
        int64_t batch = batches[i] ? batches[i] : 1;
        assert_int_equal(prony_report_latency(report)->count, (SAMPLES + batch - 1) / batch);
        assert_non_null(prony_report_end_to_end(report));
        /* All of it comes back from JSON. */
        char *text = calloc(1, 1 << 20);
        assert_non_null(text);
        assert_int_equal(prony_report_write(report, PRONY_FORMAT_JSON, NULL, collect, text, &error), PRONY_OK);
        if (prony_report_load_memory(&back, "report", text, strlen(text), &error) != PRONY_OK)
            fail_msg("%s", error.message);
        assert_true(metric_of(back, "evaluation") == TOP1 && metric_of(back, "top5_accuracy") == TOP5);
        free(text);
        prony_report_release(back);
        prony_report_release(report);
    }
    prony_dataset_release(data);
    close_model(&b);
}

static void a_batch_that_the_model_fixes(void **state)
{
    (void)state;
    bench b = open_model(three_at_once, NULL);
    prony_dataset *data = the_data(&b);
    prony_evaluate_options options = PRONY_EVALUATE_OPTIONS_INIT;
    prony_error error = {0};
    prony_report *report = NULL;
    options.measured_runs = 2; /* of three */
    options.warmup_runs = 0;
    if (prony_evaluate(&report, b.session, data, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_true(metric_of(report, "evaluation") == TOP1 && metric_of(report, "top5_accuracy") == TOP5);
    assert_int_equal(prony_report_latency(report)->count, 2);
    prony_report_release(report);
    options.batch = 2;
    assert_int_equal(prony_evaluate(&report, b.session, data, &options, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "takes 3 samples per run, so batch 2"));
    prony_dataset_release(data);
    close_model(&b);
}

static void a_class_for_an_output(void **state)
{
    (void)state;
    prony_session_options four = PRONY_SESSION_OPTIONS_INIT;
    four.batch = 4;
    bench b = open_model(class_itself, &four);
    static const float plain[4][CLASSES] = {{1, 2}, {2, 1}, {0, 0, 0, 9}, {0, 0, 0, 9}};
    static const uint8_t classes[] = {1, 0, 3, 2};
    prony_value x = tensor(PRONY_FLOAT32, plain, 2, 4, CLASSES), y = tensor(PRONY_UINT8, classes, 2, 4, 1);
    prony_error error = {0};
    prony_dataset *data;
    prony_report *report = NULL;
    size_t count;
    assert_int_equal(dataset(&data, &b, &x, &y, &error), PRONY_OK);
    if (prony_evaluate(&report, b.session, data, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    const prony_evaluation_row *rows = prony_report_evaluations(report, &count);
    assert_true(count == 1 && rows[0].value == 0.75);
    assert_int_equal(prony_report_latency(report)->count, 1); /* the session's batch */
    prony_report_release(report);
    prony_dataset_release(data);
    close_model(&b);
}

/* ---- the user's metric ---- */

typedef struct distance {
    double sum;
    int64_t samples;
    int calls, fail_at;
} distance;

static prony_status add_distances(void *user, const prony_value *const *outputs, size_t output_count,
                                  const prony_value *targets, int64_t samples, prony_error *error)
{
    distance *d = user;
    assert_int_equal(output_count, 1);
    assert_int_equal(outputs[0]->shape.dim[0], samples); /* the samples that fill up the last batch are not shown */
    assert_int_equal(targets->shape.dim[0], samples);
    assert_int_equal(targets->shape.dim[1], CLASSES);
    if (++d->calls == d->fail_at) {
        strcpy(error->message, "no such metric");
        return PRONY_IO_ERROR;
    }
    for (int64_t i = 0; i < samples * CLASSES; i++)
        d->sum += fabs((double)((const float *)outputs[0]->data)[i] - ((const double *)targets->data)[i]);
    d->samples += samples;
    return PRONY_OK;
}

static prony_status mean_distance(void *user, double *value, prony_error *error)
{
    const distance *d = user;
    (void)error;
    *value = d->samples ? d->sum / (double)d->samples : NAN;
    return PRONY_OK;
}

static void a_metric_of_the_users(void **state)
{
    (void)state;
    bench b = open_model(pass_on, NULL);
    float x_data[5][CLASSES];
    double targets[5][CLASSES], want = 0;
    for (int i = 0; i < 5 * CLASSES; i++) {
        x_data[i / CLASSES][i % CLASSES] = (float)i;
        targets[i / CLASSES][i % CLASSES] = 2.0 * i + (i % 3);
        want += i % 3;
    }
    prony_value x = tensor(PRONY_FLOAT32, x_data, 2, 5, CLASSES), y = tensor(PRONY_FLOAT64, targets, 2, 5, CLASSES);
    prony_error error = {0};
    prony_dataset *data;
    prony_report *report = NULL;
    distance d = {0};
    prony_evaluate_options options = PRONY_EVALUATE_OPTIONS_INIT;
    options.batch = 2;
    options.metric = "distance";
    options.score = add_distances;
    options.value = mean_distance;
    options.user = &d;
    assert_int_equal(dataset(&data, &b, &x, &y, &error), PRONY_OK);
    if (prony_evaluate(&report, b.session, data, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    size_t count;
    const prony_evaluation_row *rows = prony_report_evaluations(report, &count);
    assert_int_equal(d.calls, 3);
    assert_true(count == 1 && fabs(rows[0].value - want / 5) < 1e-9 && rows[0].samples == 5);
    assert_string_equal(rows[0].metric, "distance");
    assert_true(isnan(metric_of(report, "top1_accuracy")) && metric_of(report, "evaluation") == rows[0].value);
    prony_report_release(report);
    d = (distance){.fail_at = 2};
    assert_int_equal(prony_evaluate(&report, b.session, data, &options, &error), PRONY_IO_ERROR);
    assert_string_equal(error.message, "no such metric");
    options.value = NULL;
    assert_int_equal(prony_evaluate(&report, b.session, data, &options, &error), PRONY_INVALID_ARGUMENT);
    options.metric = NULL; /* labels that are not classes */
    assert_int_equal(prony_evaluate(&report, b.session, data, &options, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "float64[5, 8]"));
    prony_dataset_release(data);
    close_model(&b);
}

/* ---- data ---- */

static void types_are_converted(void **state)
{
    (void)state;
    double wide[SAMPLES][CLASSES];
    int64_t whole[2][CLASSES] = {{1, 2, 3}, {3, 2, 1}}, too_large[2][CLASSES] = {{0}, {INT64_C(1) << 40}};
    static const int32_t classes[] = {2, 1};
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        wide[i / CLASSES][i % CLASSES] = (double)scores[i / CLASSES][i % CLASSES];
    bench b = open_model(pass_on, NULL), c = open_model(of_integers, NULL);
    prony_value x = tensor(PRONY_FLOAT64, wide, 2, SAMPLES, CLASSES), y = tensor(PRONY_INT64, labels, 1, SAMPLES, 0),
                n = tensor(PRONY_INT64, whole, 2, 2, CLASSES), l = tensor(PRONY_INT32, classes, 1, 2, 0),
                m = tensor(PRONY_INT64, too_large, 2, 2, CLASSES);
    prony_error error = {0};
    prony_dataset *data;
    prony_report *report = NULL;
    assert_int_equal(dataset(&data, &b, &x, &y, &error), PRONY_OK);
    if (prony_evaluate(&report, b.session, data, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_true(metric_of(report, "evaluation") == TOP1);
    prony_report_release(report);
    prony_dataset_release(data);
    assert_int_equal(dataset(&data, &c, &n, &l, &error), PRONY_OK);
    if (prony_evaluate(&report, c.session, data, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_true(metric_of(report, "evaluation") == 0.5);
    prony_report_release(report);
    prony_dataset_release(data);
    assert_int_equal(dataset(&data, &c, &m, &l, &error), PRONY_OUT_OF_RANGE);
    assert_non_null(strstr(error.message, "1099511627776"));
    close_model(&b);
    close_model(&c);
}

static void an_input_that_the_data_lack(void **state)
{
    (void)state;
    bench b = open_model(two_inputs, NULL);
    prony_dataset *data = the_data(&b);
    prony_error error = {0};
    prony_report *report = NULL;
    assert_int_equal(prony_evaluate(&report, b.session, data, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "input 'shift' is not set"));
    const float shift[CLASSES] = {0};
    prony_value value = tensor(PRONY_FLOAT32, shift, 1, CLASSES, 0);
    assert_int_equal(prony_session_set_input(b.session, "shift", &value, &error), PRONY_OK);
    if (prony_evaluate(&report, b.session, data, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_true(metric_of(report, "evaluation") == TOP1);
    prony_report_release(report);
    prony_dataset_release(data);
    close_model(&b);
}

static void what_is_refused(void **state)
{
    (void)state;
    bench b = open_model(pass_on, NULL);
    static const int64_t beyond[SAMPLES] = {0, 1, 2, 8}, below[SAMPLES] = {0, -1};
    prony_value x = tensor(PRONY_FLOAT32, scores, 2, SAMPLES, CLASSES), y = tensor(PRONY_INT64, labels, 1, SAMPLES, 0),
                fewer = tensor(PRONY_INT64, labels, 1, SAMPLES - 1, 0),
                high = tensor(PRONY_INT64, beyond, 1, SAMPLES, 0), low = tensor(PRONY_INT64, below, 1, SAMPLES, 0),
                none = tensor(PRONY_INT64, labels, 1, 0, 0), bytes = tensor(PRONY_UINT8, scores, 2, SAMPLES, CLASSES),
                deep = {.dtype = PRONY_FLOAT32, .shape = {4, {1, 1, SAMPLES, CLASSES}}, .data = x.data};
    prony_error error = {0};
    prony_dataset *data;
    prony_report *report = NULL;
    const char *name = "z";
    const prony_value *values[] = {&x};
    assert_int_equal(dataset(&data, &b, &x, &fewer, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "6 samples, but others have 7"));
    assert_int_equal(dataset(&data, &b, &x, &none, &error), PRONY_SHAPE_MISMATCH);
    assert_int_equal(dataset(&data, &b, &bytes, &y, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "uint8[7, 8], but input 'x' is float32"));
    assert_int_equal(prony_dataset_create(&data, b.model, &name, values, 1, &y, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "'z'"));
    for (int k = 0; k < 2; k++) {
        SCENARIO(k);
        assert_int_equal(dataset(&data, &b, &x, k ? &low : &high, &error), PRONY_OK);
        assert_int_equal(prony_evaluate(&report, b.session, data, NULL, &error), PRONY_OUT_OF_RANGE);
        assert_non_null(
            strstr(error.message, k ? "sample 1 has label -1" : "sample 3 has label 8, but the model has 8"));
        prony_dataset_release(data);
    }
    fewer.shape.dim[0] = 1;
    assert_int_equal(dataset(&data, &b, &deep, &fewer, &error), PRONY_OK);
    assert_int_equal(prony_evaluate(&report, b.session, data, NULL, &error), PRONY_SHAPE_MISMATCH);
    assert_non_null(strstr(error.message, "samples are [1, 7, 8]"));
    prony_dataset_release(data);
    prony_evaluate_options options = PRONY_EVALUATE_OPTIONS_INIT;
    options.output = 1;
    data = the_data(&b);
    assert_int_equal(prony_evaluate(&report, b.session, data, &options, &error), PRONY_OUT_OF_RANGE);
    prony_dataset_release(data);
    assert_null(report);
    close_model(&b);
}

/* ---- the best classes ---- */

static void best_classes(void **state)
{
    (void)state;
    prony_class_row rows[16];
    prony_error error = {0};
    size_t count = 0;
    prony_value value = tensor(PRONY_FLOAT32, scores, 2, SAMPLES, CLASSES);
    assert_int_equal(prony_top_classes(rows, 3, &count, &value, 0, &error), PRONY_OK);
    assert_int_equal(count, 3);
    assert_true(rows[0].index == 0 && rows[1].index == 7 && rows[2].index == 6);
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) sum += exp((double)scores[0][c]);
    for (int k = 0; k < 3; k++) {
        SCENARIO(k);
        assert_true(rows[k].score == (double)scores[0][rows[k].index]);
        assert_true(fabs(rows[k].probability - exp(rows[k].score) / sum) < 1e-12);
    }
    assert_int_equal(prony_top_classes(rows, 16, &count, &value, 6, &error), PRONY_OK);
    assert_int_equal(count, CLASSES);
    const int64_t order[] = {1, 3, 4, 5, 6, 7, 0, 2};
    for (int k = 0; k < CLASSES; k++) assert_int_equal(rows[k].index, order[k]);
    const double parts[] = {0.25, 0.5, 0.25};
    value = tensor(PRONY_FLOAT64, parts, 1, 3, 0);
    assert_int_equal(prony_top_classes(rows, 2, &count, &value, 0, &error), PRONY_OK);
    assert_true(rows[0].index == 1 && rows[0].probability == 0.5 && rows[1].index == 0 && rows[1].probability == 0.25);
    const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7c00}; /* 1, -2, 2^-24, infinity */
    value = (prony_value){.dtype = PRONY_FLOAT16, .shape = {4, {1, 4, 1, 1}}, .data = (void *)(uintptr_t)halves};
    assert_int_equal(prony_top_classes(rows, 4, &count, &value, 0, &error), PRONY_OK);
    assert_true(rows[0].index == 3 && isinf(rows[0].score) && rows[1].score == 1 && rows[3].score == -2);
    assert_true(rows[2].score == ldexp(1, -24));
    assert_int_equal(prony_top_classes(rows, 4, &count, &value, 1, &error), PRONY_OUT_OF_RANGE);
    value.shape = (prony_shape){3, {2, 2, 1}};
    value.dtype = PRONY_BOOL;
    assert_int_equal(prony_top_classes(rows, 4, &count, &value, 0, &error), PRONY_SHAPE_MISMATCH);
}

/* ---- memory ---- */

static void memory_that_fails(void **state)
{
    (void)state;
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        SCENARIO(failed);
        prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
        options.intra_op_threads = 1;
        bench b = open_model(pass_on, &options);
        prony_error error;
        prony_dataset *data;
        prony_report *report = NULL;
        prony_value x = tensor(PRONY_FLOAT32, scores, 2, SAMPLES, CLASSES),
                    y = tensor(PRONY_INT64, labels, 1, SAMPLES, 0);
        prn_alloc_fail_at(n);
        prony_status status = dataset(&data, &b, &x, &y, &error);
        if (status == PRONY_OK) status = prony_evaluate(&report, b.session, data, NULL, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK && status != PRONY_OUT_OF_MEMORY)
            fail_msg("%llu: %s", (unsigned long long)n, error.message);
        if (!failed) assert_int_equal(status, PRONY_OK);
        assert_true((status == PRONY_OK) == (report != NULL));
        prony_report_release(report);
        prony_dataset_release(data);
        close_model(&b);
    }
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracies),
        cmocka_unit_test(a_batch_that_the_model_fixes),
        cmocka_unit_test(a_class_for_an_output),
        cmocka_unit_test(a_metric_of_the_users),
        cmocka_unit_test(types_are_converted),
        cmocka_unit_test(an_input_that_the_data_lack),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(best_classes),
        cmocka_unit_test(memory_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
