/* Calibration and quantized models through the library: the written model, refusals, and every allocation failing. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "model_builder.h"
#include "prony_quantize.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAMPLES = 6, PIXELS = 2 * 4 * 4, CLASSES = 3 };

static float x[SAMPLES * PIXELS];
static uint32_t state = 1;

static float next(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

static void fill(float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) to[i] = next();
}

/* x [N, 2, 4, 4] -> Conv, BatchNormalization, Relu -> GlobalAveragePool -> Flatten -> Gemm. */
static model_builder *build(void)
{
    float w[4 * 2 * 3 * 3], statistics[4][4], dense[4 * CLASSES], bias[CLASSES];
    state = 1;
    fill(x, sizeof x / sizeof *x);
    fill(w, sizeof w / sizeof *w);
    fill(&statistics[0][0], 16);
    fill(dense, sizeof dense / sizeof *dense);
    fill(bias, CLASSES);
    for (int i = 0; i < 4; i++) statistics[3][i] = 0.5f + fabsf(statistics[3][i]);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "N,2,4,4");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,2,3,3", w);
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    for (int i = 0; i < 4; i++) mb_initializer(m, names[i], PRONY_FLOAT32, "4", statistics[i]);
    mb_initializer(m, "dense", PRONY_FLOAT32, "4,3", dense);
    mb_initializer(m, "bias", PRONY_FLOAT32, "3", bias);
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node_name(m, "conv");
    mb_node(m, "BatchNormalization", "c scale shift mean variance", "n", "");
    mb_node(m, "Relu", "n", "r", "");
    mb_node(m, "GlobalAveragePool", "r", "a", "");
    mb_node(m, "Flatten", "a", "f", "");
    mb_node(m, "Gemm", "f dense bias", "y", "");
    mb_node_name(m, "gemm");
    mb_output(m, "y", PRONY_FLOAT32, "N,3");
    return m;
}

typedef struct made {
    model_builder *builder;
    prony_model *model;
    prony_dataset *data;
    prony_calibration *calibration;
} made;

static prony_status open_data(made *m, const prony_shape *shape, prony_error *error)
{
    static const char *const names[] = {"x"};
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = *shape, .data = x};
    const prony_value *values[] = {&value};
    prony_dataset_options options = PRONY_DATASET_OPTIONS_INIT;
    options.unlabelled = true;
    return prony_dataset_create(&m->data, m->model, names, values, 1, NULL, &options, error);
}

static prony_status load(made *m, prony_error *error)
{
    size_t size;
    const void *bytes = mb_finish(m->builder, &size);
    prony_status status = prony_model_load_memory(&m->model, "net", bytes, size, NULL, error);
    return status == PRONY_OK ? open_data(m, &(prony_shape){4, {SAMPLES, 2, 4, 4}}, error) : status;
}

static void release(made *m)
{
    prony_calibration_release(m->calibration);
    prony_dataset_release(m->data);
    prony_model_release(m->model);
    *m = (made){.builder = m->builder};
}

static made begin_with(model_builder *builder)
{
    made m = {.builder = builder};
    prony_error error = {0};
    if (load(&m, &error) != PRONY_OK || prony_calibrate(&m.calibration, m.model, m.data, NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return m;
}

static void end(made *m)
{
    release(m);
    mb_free(m->builder);
}

static made begin(void)
{
    return begin_with(build());
}

/* x -> Conv, SiLU -> a gate (pool, Conv, Relu, Conv, HardSigmoid) by Mul -> pool -> Flatten -> Gemm. */
static model_builder *build_gated(void)
{
    model_builder *m = build(); /* fills x */
    mb_free(m);
    float w[4 * 2 * 3 * 3], gate[4 * 4], dense[4 * CLASSES];
    fill(w, sizeof w / sizeof *w);
    fill(gate, sizeof gate / sizeof *gate);
    fill(dense, sizeof dense / sizeof *dense);
    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "N,2,4,4");
    mb_initializer(m, "w", PRONY_FLOAT32, "4,2,3,3", w);
    mb_initializer(m, "gate", PRONY_FLOAT32, "4,4,1,1", gate);
    mb_initializer(m, "dense", PRONY_FLOAT32, "4,3", dense);
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node(m, "Sigmoid", "c", "g", "");
    mb_node(m, "Mul", "c g", "s", "");
    mb_node(m, "GlobalAveragePool", "s", "a", "");
    mb_node(m, "Conv", "a gate", "e", "");
    mb_node(m, "Relu", "e", "r", "");
    mb_node(m, "Conv", "r gate", "h", "");
    mb_node(m, "HardSigmoid", "h", "i", "");
    mb_node(m, "Mul", "s i", "p", "");
    mb_node(m, "GlobalAveragePool", "p", "b", "");
    mb_node(m, "Flatten", "b", "f", "");
    mb_node(m, "Gemm", "f dense", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,3");
    return m;
}

/* ---- what comes out ---- */

static void outputs_of(prony_model *model, const char *precision, float out[SAMPLES * CLASSES])
{
    prony_error error = {0};
    prony_session *session = NULL;
    const prony_value *y = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = {4, {SAMPLES, 2, 4, 4}}, .data = x};
    options.precision = precision;
    prony_status status = prony_session_create(&session, model, &options, &error);
    if (status == PRONY_OK) status = prony_session_set_input(session, "x", &value, &error);
    if (status == PRONY_OK) status = prony_session_run(session, &error);
    if (status == PRONY_OK) status = prony_session_output(session, 0, &y, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    memcpy(out, y->data, SAMPLES * CLASSES * sizeof *out);
    prony_session_release(session);
}

static double distance(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < SAMPLES * CLASSES; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static void outputs_stay_near(void **unused)
{
    (void)unused;
    made m = begin();
    float floats[SAMPLES * CLASSES], codes[SAMPLES * CLASSES];
    outputs_of(m.model, NULL, floats);
    assert_int_equal(prony_calibration_samples(m.calibration), SAMPLES);
    assert_int_equal(prony_calibration_count(m.calibration), 5); /* x, r, a, f, y */
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        SCENARIO(dynamic);
        prony_model *quantized = NULL;
        const prony_quantized_row *rows;
        prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
        options.calibration = dynamic ? NULL : m.calibration;
        assert_int_equal(prony_model_quantize(&quantized, m.model, &options, NULL), PRONY_OK);
        assert_true(prony_model_is_quantized(quantized) && !prony_model_is_quantized(m.model));
        assert_int_equal(prony_model_quantized_layers(quantized, &rows), 2);
        assert_string_equal(rows[0].name, "conv");
        assert_string_equal(rows[1].op, "Gemm");
        assert_true(rows[0].quantized == !dynamic && rows[1].quantized && isnan(rows[0].error));
        outputs_of(quantized, "int8", codes);
        assert_true(distance(floats, codes) > 0 && distance(floats, codes) < 0.05);
        prony_model_release(quantized);
    }
    assert_int_equal(prony_model_quantized_layers(m.model, NULL), 0);
    end(&m);
}

/* Every value between input and output is quantized. */
static void activations_and_gates_compute_on_codes(void **unused)
{
    (void)unused;
    enum { STORED = 11 }; /* x, c, s, a, r, h, i, p, b, f, y: neither g, inside of SiLU, nor e, in front of Relu */
    made m = begin_with(build_gated());
    float floats[SAMPLES * CLASSES], codes[SAMPLES * CLASSES];
    prony_model *quantized = NULL;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    options.calibration = m.calibration;
    assert_int_equal(prony_calibration_count(m.calibration), STORED);
    assert_int_equal(prony_model_quantize(&quantized, m.model, &options, NULL), PRONY_OK);
    outputs_of(m.model, NULL, floats);
    outputs_of(quantized, "int8", codes);
    assert_true(distance(floats, codes) > 0 && distance(floats, codes) < 0.05);
    prony_model_release(quantized);
    end(&m);
}

/* x -> ConvTranspose, BatchNormalization, Relu -> ConvTranspose -> ConvTranspose of groups -> GlobalAveragePool ->
 * Flatten. */
static model_builder *build_transposed(void)
{
    model_builder *m = build(); /* fills x */
    mb_free(m);
    float first[2 * 4 * 2 * 2], second[4 * CLASSES * 3 * 3], third[CLASSES * 4], statistics[4][4], bias[4];
    fill(first, sizeof first / sizeof *first);
    fill(second, sizeof second / sizeof *second);
    fill(third, sizeof third / sizeof *third);
    fill(&statistics[0][0], 16);
    fill(bias, 4);
    for (int i = 0; i < 4; i++) statistics[3][i] = 0.5f + fabsf(statistics[3][i]);
    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "N,2,4,4");
    mb_initializer(m, "first", PRONY_FLOAT32, "2,4,2,2", first);
    mb_initializer(m, "second", PRONY_FLOAT32, "4,3,3,3", second);
    mb_initializer(m, "third", PRONY_FLOAT32, "3,1,2,2", third);
    mb_initializer(m, "bias", PRONY_FLOAT32, "4", bias);
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    for (int i = 0; i < 4; i++) mb_initializer(m, names[i], PRONY_FLOAT32, "4", statistics[i]);
    mb_node(m, "ConvTranspose", "x first bias", "c", "strides=[2,2]");
    mb_node(m, "BatchNormalization", "c scale shift mean variance", "n", "");
    mb_node(m, "Relu", "n", "r", "");
    mb_node(m, "ConvTranspose", "r second", "d", "strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]");
    mb_node(m, "ConvTranspose", "d third", "e", "group=3 strides=[2,2]");
    mb_node(m, "GlobalAveragePool", "e", "a", "");
    mb_node(m, "Flatten", "a", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,3");
    return m;
}

/* Scales of the outputs are on axis 1 of the weights; groups stay in float. */
static void transposed_convolutions_have_scales_of_outputs(void **unused)
{
    (void)unused;
    enum { STORED = 3 }; /* x, r, d */
    made m = begin_with(build_transposed());
    float floats[SAMPLES * CLASSES], codes[SAMPLES * CLASSES];
    prony_model *quantized = NULL;
    const prony_quantized_row *rows;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    options.calibration = m.calibration;
    assert_int_equal(prony_calibration_count(m.calibration), STORED);
    assert_int_equal(prony_model_quantize(&quantized, m.model, &options, NULL), PRONY_OK);
    assert_int_equal(prony_model_quantized_layers(quantized, &rows), 3);
    for (size_t i = 0, floats_left = 0; i < 3; i++) {
        assert_string_equal(rows[i].op, "ConvTranspose");
        floats_left += !rows[i].quantized;
        assert_true(rows[i].quantized || strcmp(prony_model_float_reason(quantized, i), "it has groups") == 0);
        if (i == 2) assert_int_equal(floats_left, 1);
    }
    outputs_of(m.model, NULL, floats);
    outputs_of(quantized, "int8", codes);
    assert_true(distance(floats, codes) > 0 && distance(floats, codes) < 0.02);
    prony_model_release(quantized);
    prony_quantize_options dynamic = PRONY_QUANTIZE_OPTIONS_INIT; /* matmul only: no range */
    assert_int_equal(prony_model_quantize(&quantized, m.model, &dynamic, NULL), PRONY_UNSUPPORTED);
    end(&m);
}

/* x -> Reshape [N, 4, 8] -> MatMul, bias, Relu -> MatMul, bias, Gelu of primitives -> MatMul -> ReduceMean. */
static model_builder *build_products(void)
{
    model_builder *m = build(); /* fills x */
    mb_free(m);
    const int64_t rows[] = {0, 4, 8};
    const float root = 1.41421356f, one = 1.0f, half = 0.5f;
    float first[8 * 16], second[16 * 16], third[16 * CLASSES], bias[16];
    fill(first, sizeof first / sizeof *first);
    fill(second, sizeof second / sizeof *second);
    fill(third, sizeof third / sizeof *third);
    fill(bias, sizeof bias / sizeof *bias);
    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "N,2,4,4");
    mb_initializer(m, "rows", PRONY_INT64, "3", rows);
    mb_initializer(m, "first", PRONY_FLOAT32, "8,16", first);
    mb_initializer(m, "second", PRONY_FLOAT32, "16,16", second);
    mb_initializer(m, "third", PRONY_FLOAT32, "16,3", third);
    mb_initializer(m, "bias", PRONY_FLOAT32, "16", bias);
    mb_initializer(m, "root", PRONY_FLOAT32, "", &root);
    mb_initializer(m, "one", PRONY_FLOAT32, "", &one);
    mb_initializer(m, "half", PRONY_FLOAT32, "", &half);
    mb_node(m, "Reshape", "x rows", "v", "");
    mb_node(m, "MatMul", "v first", "a", "");
    mb_node(m, "Add", "bias a", "b", "");
    mb_node(m, "Relu", "b", "c", "");
    mb_node(m, "MatMul", "c second", "d", "");
    mb_node(m, "Add", "d bias", "e", "");
    mb_node(m, "Div", "e root", "f", "");
    mb_node(m, "Erf", "f", "g", "");
    mb_node(m, "Add", "g one", "h", "");
    mb_node(m, "Mul", "e h", "i", "");
    mb_node(m, "Mul", "i half", "j", "");
    mb_node(m, "MatMul", "j third", "k", "");
    mb_node(m, "ReduceMean", "k", "y", "axes=[1] keepdims=0");
    mb_output(m, "y", PRONY_FLOAT32, "N,3");
    return m;
}

/* A bias behind a MatMul belongs to it, both quantized and if each run finds the ranges. */
static void products_take_their_bias_along(void **unused)
{
    (void)unused;
    enum { STORED = 5 }; /* v, c, e, j, k */
    made m = begin_with(build_products());
    float floats[SAMPLES * CLASSES], codes[SAMPLES * CLASSES];
    assert_int_equal(prony_calibration_count(m.calibration), STORED);
    outputs_of(m.model, NULL, floats);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        SCENARIO(dynamic);
        prony_model *quantized = NULL;
        prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
        options.calibration = dynamic ? NULL : m.calibration;
        assert_int_equal(prony_model_quantize(&quantized, m.model, &options, NULL), PRONY_OK);
        outputs_of(quantized, "int8", codes);
        assert_true(distance(floats, codes) > 0 && distance(floats, codes) < 0.05);
        prony_model_release(quantized);
    }
    end(&m);
}

static void a_bound_is_kept(void **unused)
{
    (void)unused;
    made m = begin();
    prony_error error = {0};
    prony_model *quantized = NULL;
    const prony_quantized_row *rows;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    float floats[SAMPLES * CLASSES], codes[SAMPLES * CLASSES];
    options.calibration = m.calibration;
    options.keep_accuracy = 1e-9;
    options.data = m.data;
    assert_int_equal(prony_model_quantize(&quantized, m.model, &options, &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no layer can be quantized"));
    /* The bound that the better of the two layers meets alone. */
    double bound = 1;
    outputs_of(m.model, NULL, floats);
    for (options.keep_accuracy = 0.5; options.keep_accuracy > 1e-6; options.keep_accuracy *= 0.8) {
        if (prony_model_quantize(&quantized, m.model, &options, &error) != PRONY_OK) break;
        bound = options.keep_accuracy;
        const size_t count = prony_model_quantized_layers(quantized, &rows);
        assert_int_equal(count, 2);
        const bool whole = rows[0].quantized && rows[1].quantized;
        assert_true(rows[0].quantized || rows[1].quantized);
        if (!whole) assert_true(rows[0].quantized ? rows[1].error >= rows[0].error : rows[0].error >= rows[1].error);
        outputs_of(quantized, "int8", codes);
        double low = INFINITY, high = -INFINITY, squares = 0;
        for (int i = 0; i < SAMPLES * CLASSES; i++) {
            low = fmin(low, (double)floats[i]);
            high = fmax(high, (double)floats[i]);
            squares += ((double)floats[i] - (double)codes[i]) * ((double)floats[i] - (double)codes[i]);
        }
        assert_true(sqrt(squares / (SAMPLES * CLASSES)) <= 1.001 * bound * (high - low));
        prony_model_release(quantized);
        quantized = NULL;
    }
    assert_true(bound < 0.1);
    end(&m);
}

/* ---- what is refused ---- */

static void arguments_are_checked(void **unused)
{
    (void)unused;
    made m = begin();
    prony_model *out = NULL;
    prony_calibration *other = NULL;
    prony_calibrate_options calibrate = PRONY_CALIBRATE_OPTIONS_INIT;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    assert_int_equal(prony_calibrate(NULL, m.model, m.data, NULL, NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_calibrate(&other, NULL, m.data, NULL, NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_calibrate(&other, m.model, NULL, NULL, NULL), PRONY_INVALID_ARGUMENT);
    calibrate.percentile = 1.5;
    assert_int_equal(prony_calibrate(&other, m.model, m.data, &calibrate, NULL), PRONY_INVALID_ARGUMENT);
    calibrate.percentile = 0;
    calibrate.method = (prony_calibration_method)3;
    assert_int_equal(prony_calibrate(&other, m.model, m.data, &calibrate, NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_model_quantize(NULL, m.model, NULL, NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_model_quantize(&out, NULL, NULL, NULL), PRONY_INVALID_ARGUMENT);
    options.keep_accuracy = -1;
    assert_int_equal(prony_model_quantize(&out, m.model, &options, NULL), PRONY_INVALID_ARGUMENT);
    options.keep_accuracy = 0.1;
    assert_int_equal(prony_model_quantize(&out, m.model, &options, NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_calibration_save(NULL, "x", NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_calibration_load(NULL, "x", NULL), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_model_save(m.model, "x", false, NULL),
                     PRONY_INVALID_ARGUMENT); /* the bytes are the caller's */
    assert_int_equal(prony_model_save(NULL, "x", false, NULL), PRONY_INVALID_ARGUMENT);
    assert_string_equal(prony_calibration_method_name((prony_calibration_method)7), "");
    assert_false(prony_calibration_method_find(&calibrate.method, NULL));
    prony_calibration_release(NULL);
    assert_int_equal(prony_calibration_count(NULL) + (size_t)prony_calibration_samples(NULL), 0);
    end(&m);
}

static void labels_are_wanted_where_they_count(void **unused)
{
    (void)unused;
    made m = begin();
    prony_error error = {0};
    prony_session *session = NULL;
    prony_report *report = NULL;
    assert_int_equal(prony_session_create(&session, m.model, NULL, &error), PRONY_OK);
    assert_int_equal(prony_evaluate(&report, session, m.data, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "no labels"));
    prony_session_release(session);
    end(&m);
}

/* ---- faults ---- */

static prony_status life(made *m, const char *path, prony_error *error)
{
    prony_model *quantized = NULL;
    prony_calibration *again = NULL;
    prony_calibrate_options calibrate = PRONY_CALIBRATE_OPTIONS_INIT;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    calibrate.method = PRONY_CALIBRATE_ENTROPY;
    prony_status status = load(m, error);
    if (status == PRONY_OK) status = prony_calibrate(&m->calibration, m->model, m->data, &calibrate, error);
    if (status == PRONY_OK) status = prony_calibration_save(m->calibration, path, error);
    if (status == PRONY_OK) status = prony_calibration_load(&again, path, error);
    options.calibration = again;
    options.data = m->data;
    options.keep_accuracy = 0.02;
    if (status == PRONY_OK) status = prony_model_quantize(&quantized, m->model, &options, error);
    if (status == PRONY_OK) status = prony_model_save(quantized, path, true, error);
    prony_model_release(quantized);
    prony_calibration_release(again);
    release(m);
    return status;
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    made m = {.builder = build()};
    prony_error error = {0};
    char path[64], beside[80];
    snprintf(path, sizeof path, "quantize_faults_%d", (int)getpid());
    snprintf(beside, sizeof beside, "%s.data", path);
    if (life(&m, path, &error) != PRONY_OK) fail_msg("%s", error.message);
    uint64_t n = 1;
    for (bool failed = true; failed; n += 1 + n / 200) {
        SCENARIO(failed);
        memset(&error, 0, sizeof error);
        prn_alloc_fail_at(n);
        const prony_status status = life(&m, path, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK && (!failed || status != PRONY_OUT_OF_MEMORY))
            fail_msg("allocation %llu: status %d, %s", (unsigned long long)n, (int)status, error.message);
    }
    assert_true(n > 500);
    unlink(path);
    unlink(beside);
    mb_free(m.builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_stay_near),
        cmocka_unit_test(activations_and_gates_compute_on_codes),
        cmocka_unit_test(transposed_convolutions_have_scales_of_outputs),
        cmocka_unit_test(products_take_their_bias_along),
        cmocka_unit_test(a_bound_is_kept),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(labels_are_wanted_where_they_count),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
