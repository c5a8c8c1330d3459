/* Models with large constants, which are made when they are read: models that read the same weights in many ways and
 * shapes, the number of resident bytes, and lack of memory meanwhile. */
#include "failure_trace.h"
#include "base/os/resident.h"
#include "base/shape.h"
#include "engine/bind/weight_cache.h"
#include "engine/session/session.h"
#include "tests/support/model_run.h"
#include "tests/support/weights_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { OUTPUTS = 4, BATCHES = 3 };

typedef struct results {
    float *values[OUTPUTS];
    size_t bytes[OUTPUTS];
} results;

static void results_free(results *r)
{
    for (size_t k = 0; k < OUTPUTS; k++) free(r->values[k]);
}

static results run_batch(prony_session *session, int64_t batch)
{
    prony_error error = {0};
    int64_t *ids = weights_model_ids(batch, 3);
    float *image = weights_model_image(batch, 4);
    results r = {0};
    const prony_value in[] = {{.dtype = PRONY_INT64, .shape = {.rank = 2, .dim = {batch, 4}}, .data = ids},
                              {.dtype = PRONY_FLOAT32, .shape = {.rank = 4, .dim = {batch, 16, 6, 6}}, .data = image}};
    assert_int_equal(prony_session_set_input(session, "ids", &in[0], &error), PRONY_OK);
    assert_int_equal(prony_session_set_input(session, "image", &in[1], &error), PRONY_OK);
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (size_t k = 0; k < OUTPUTS; k++) {
        const prony_value *value = NULL;
        assert_int_equal(prony_session_output(session, k, &value, &error), PRONY_OK);
        r.bytes[k] = prn_value_bytes(value);
        r.values[k] = malloc(r.bytes[k]);
        assert_non_null(r.values[k]);
        memcpy(r.values[k], value->data, r.bytes[k]);
    }
    free(ids);
    free(image);
    return r;
}

static void check_same(const results *a, const results *b)
{
    for (size_t k = 0; k < OUTPUTS; k++) {
        assert_int_equal(a->bytes[k], b->bytes[k]);
        assert_memory_equal(a->values[k], b->values[k], a->bytes[k]);
    }
}

static prony_model *load(model_builder *m)
{
    size_t size;
    prony_model *model = NULL;
    prony_error error = {0};
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "weights", bytes, size, NULL, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return model;
}

static prony_session *open_session(prony_model *model, bool no_rewrites, bool no_reuse)
{
    prony_session *session = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.no_rewrites = no_rewrites;
    options.no_reuse = no_reuse;
    if (prony_session_create(&session, model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return session;
}

/* Results with constants of any size without deferral. */
static void plain_results(size_t shift, bool no_rewrites, results out[BATCHES])
{
    const size_t former = prn_defer_bytes;
    prn_defer_bytes = SIZE_MAX;
    model_builder *m = weights_model(shift);
    prony_model *model = load(m);
    prony_session *session = open_session(model, no_rewrites, false);
    for (int64_t b = 0; b < BATCHES; b++) out[b] = run_batch(session, b + 1);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
    prn_defer_bytes = former;
}

/* Changing shapes, sessions in parallel and in sequence, weights at every alignment: always the same bits. */
static void gives_the_same_results(void **state)
{
    (void)state;
    for (size_t shift = 1; shift <= 4; shift++) {
        SCENARIO(shift);
        for (int no_rewrites = 0; no_rewrites <= 1; no_rewrites++) {
            results plain[BATCHES];
            plain_results(shift, no_rewrites, plain);
            model_builder *m = weights_model(shift);
            prony_model *model = load(m);
            prony_session *first = open_session(model, no_rewrites, false),
                          *second = open_session(model, no_rewrites, true);
            for (int64_t round = 0; round < 2 * BATCHES; round++) {
                const int64_t b = round % BATCHES;
                results a = run_batch(first, b + 1), c = run_batch(second, BATCHES - b);
                check_same(&a, &plain[b]);
                check_same(&c, &plain[BATCHES - 1 - b]);
                results_free(&a);
                results_free(&c);
            }
            prony_session_release(first);
            prony_session *third = open_session(model, no_rewrites, false);
            results a = run_batch(third, 2), c = run_batch(second, 2);
            check_same(&a, &plain[1]);
            check_same(&c, &plain[1]);
            results_free(&a);
            results_free(&c);
            prony_session_release(second);
            prony_session_release(third);
            assert_int_equal(prn_weight_cache_bytes(model->shared), 0);
            prony_model_release(model);
            mb_free(m);
            for (size_t b = 0; b < BATCHES; b++) results_free(&plain[b]);
        }
    }
}

/* One copy of each weight, packed or plain; the processor determines the padding of panels. */
static void keeps_one_copy(void **state)
{
    (void)state;
    model_builder *m = weights_model(1);
    prony_model *model = load(m);
    prony_session *session = open_session(model, false, false);
    results r = run_batch(session, 1);
    assert_in_range(prn_weight_cache_bytes(model->shared), 1, weights_model_bytes() + weights_model_bytes() / 2);
    results_free(&r);
    prony_session_release(session);
    assert_int_equal(prn_weight_cache_bytes(model->shared), 0);
    prony_model_release(model);
    mb_free(m);
}

/* Weights that the statistics scale out of range stay as they are, which shows only when they are made. */
static void keeps_what_cannot_be_scaled(void **state)
{
    (void)state;
    enum { CHANNELS = 32, WEIGHTS = CHANNELS * 16 * 9 };
    static float weights[WEIGHTS], image[16 * 16];
    float ones[CHANNELS], zeros[CHANNELS] = {0}, tiny[CHANNELS];
    for (int i = 0; i < WEIGHTS; i++) weights[i] = 1e30f;
    for (int c = 0; c < CHANNELS; c++) {
        ones[c] = 1;
        tiny[c] = 1e-30f;
    }
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "1,16,4,4");
    mb_initializer(m, "w", PRONY_FLOAT32, "32,16,3,3", weights);
    mb_initializer(m, "ones", PRONY_FLOAT32, "32", ones);
    mb_initializer(m, "zeros", PRONY_FLOAT32, "32", zeros);
    mb_initializer(m, "tiny", PRONY_FLOAT32, "32", tiny);
    mb_node(m, "Conv", "x w", "c", "pads=[1,1,1,1]");
    mb_node(m, "BatchNormalization", "c ones ones zeros tiny", "y", "epsilon=0.0");
    mb_output(m, "y", PRONY_FLOAT32, "1,32,4,4");
    prony_model *model = load(m);
    for (int round = 0; round < 2; round++) {
        SCENARIO(round);
        prony_session *session = open_session(model, false, false);
        prony_error error = {0};
        const prony_value *out = NULL;
        const prony_value x = {.dtype = PRONY_FLOAT32, .shape = {.rank = 4, .dim = {1, 16, 4, 4}}, .data = image};
        assert_int_equal(prony_session_set_input(session, "x", &x, &error), PRONY_OK);
        if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
        assert_true(prn_weight_cache_looks_first(model->shared));
        assert_int_equal(prony_session_output(session, 0, &out, &error), PRONY_OK);
        for (int i = 0; i < CHANNELS * 16; i++)
            assert_true(((const float *)out->data)[i] == 1.0f); /* 0 times anything, plus 1 */
        prony_session_release(session);
    }
    assert_int_equal(prn_weight_cache_bytes(model->shared), 0);
    prony_model_release(model);
    mb_free(m);
}

enum { MANY = 6, DEPTH = 64, WIDTH = 160 };

/* As many rows of x [6, 64] as `chosen` says, which only a run knows, times a packed matrix and a plain column. */
static model_builder *rows_model(size_t shift)
{
    static float matrix[DEPTH * WIDTH], column[DEPTH];
    const int64_t first = 0;
    const char *name = &"wwww"[3 - shift]; /* one letter more moves the bytes behind it to another address */
    char product[32];
    for (int i = 0; i < DEPTH * WIDTH; i++) matrix[i] = (float)(i * 7 % 23) - 11;
    for (int i = 0; i < DEPTH; i++) column[i] = (float)(i * 5 % 17) - 8;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "6,64");
    mb_input(m, "chosen", PRONY_FLOAT32, "6");
    mb_initializer(m, name, PRONY_FLOAT32, "64,160", matrix);
    mb_initializer(m, "column", PRONY_FLOAT32, "64,1", column);
    mb_initializer(m, "first", PRONY_INT64, "1", &first);
    snprintf(product, sizeof product, "rows %s", name);
    mb_node(m, "NonZero", "chosen", "places", "");
    mb_node(m, "Squeeze", "places first", "flat", "");
    mb_node(m, "Gather", "x flat", "rows", "axis=0");
    mb_node(m, "MatMul", product, "a", "");
    mb_node(m, "MatMul", "rows column", "b", "");
    mb_output(m, "a", PRONY_FLOAT32, "n,160");
    mb_output(m, "b", PRONY_FLOAT32, "n,1");
    return m;
}

static void check_product(const prony_value *got, const float *x, const float *chosen, int64_t columns, int64_t step,
                          int64_t modulus, int64_t less)
{
    const float *y = got->data;
    for (int64_t r = 0; r < MANY; r++) {
        if (chosen[r] == 0) continue;
        for (int64_t c = 0; c < columns; c++, y++) {
            double sum = 0;
            for (int64_t k = 0; k < DEPTH; k++)
                sum += (double)x[r * DEPTH + k] * (double)((k * columns + c) * step % modulus - less);
            assert_true(fabs((double)*y - sum) < 1e-2);
        }
    }
}

/* A product whose row count only a run knows keeps its packed weights, and no other copy. */
static void keeps_one_copy_of_what_runs_pack(void **state)
{
    (void)state;
    static const float chosen[4][MANY] = {
        {0, 1, 0, 1, 1, 1}, {0, 0, 0, 1, 0, 0}, {1, 1, 1, 1, 1, 1}, {0, 1, 0, 1, 1, 1}};
    static float x[MANY * DEPTH];
    const size_t former = prn_defer_bytes;
    prn_defer_bytes = DEPTH * sizeof(float);
    for (int i = 0; i < MANY * DEPTH; i++) x[i] = (float)(i % 19) / 8;
    for (size_t shift = 0; shift < 4; shift++) {
        SCENARIO(shift);
        model_run r = {0};
        mr_open(&r, rows_model(shift));
        for (int run = 0; run < 4; run++) {
            mr_set(&r, "x", PRONY_FLOAT32, "6,64", x);
            mr_set(&r, "chosen", PRONY_FLOAT32, "6", chosen[run]);
            check_product(mr_run(&r, 0), x, chosen[run], WIDTH, 7, 23, 11);
            check_product(mr_output(&r, 1), x, chosen[run], 1, 5, 17, 8);
            assert_in_range(prn_weight_cache_bytes(r.model->shared), 1,
                            (DEPTH * WIDTH + 2 * 16 * DEPTH) * sizeof(float) * 5 / 4);
        }
        mr_survives_faults(&r);
        mr_close(&r);
    }
    prn_defer_bytes = former;
}

enum { LONG_ROWS = 2100, LONG = 2048 };

static float long_element(int64_t i)
{
    return (float)(i * 13 % 29) / 16 - 0.8f;
}

static void check_long(const prony_value *got, const float *x, int64_t vectors, int64_t vector, int64_t element)
{
    const float *y = got->data;
    for (int64_t v = 0; v < vectors; v++) {
        for (int64_t n = 0; n < LONG_ROWS; n += 83) {
            double sum = 0;
            for (int64_t k = 0; k < LONG; k++)
                sum += (double)x[v * vector + k * element] * (double)long_element(n * LONG + k);
            assert_true(fabs((double)y[vector == 1 ? n * vectors + v : v * LONG_ROWS + n] - sum) < 1e-2);
        }
    }
}

/* Large weights whose source is released while they are packed, at every address; one of them has another reader. */
static void packs_piece_by_piece(void **state)
{
    (void)state;
    static const int64_t places[2] = {0, LONG_ROWS - 1};
    static float x[4 * LONG];
    float *weights = malloc((size_t)LONG_ROWS * LONG * sizeof *weights);
    assert_non_null(weights);
    for (int64_t i = 0; i < LONG_ROWS * LONG; i++) weights[i] = long_element(i);
    for (int i = 0; i < 4 * LONG; i++) x[i] = (float)(i % 37) / 32 - 0.5f;
    for (size_t shift = 0; shift < 4; shift++) {
        SCENARIO(shift);
        const char *first = &"wwww"[3 - shift];
        char inputs[32];
        model_run r = {0};
        model_builder *m = mb_begin(17);
        mb_input(m, "x", PRONY_FLOAT32, "4,2048");
        mb_input(m, "image", PRONY_FLOAT32, "1,2048,2,2");
        mb_initializer(m, first, PRONY_FLOAT32, "2100,2048", weights);
        mb_initializer(m, "filter", PRONY_FLOAT32, "2100,2048,1,1", weights);
        mb_initializer(m, "places", PRONY_INT64, "2", places);
        snprintf(inputs, sizeof inputs, "x %s", first);
        mb_node(m, "Gemm", inputs, "a", "transB=1");
        mb_node(m, "Conv", "image filter", "b", "");
        snprintf(inputs, sizeof inputs, "%s places", first);
        mb_node(m, "Gather", inputs, "c", "");
        mb_output(m, "a", PRONY_FLOAT32, "4,2100");
        mb_output(m, "b", PRONY_FLOAT32, "1,2100,2,2");
        mb_output(m, "c", PRONY_FLOAT32, "2,2048");
        mr_open(&r, m);
        mr_set(&r, "x", PRONY_FLOAT32, "4,2048", x);
        mr_set(&r, "image", PRONY_FLOAT32, "1,2048,2,2", x);
        check_long(mr_run(&r, 0), x, 4, LONG, 1);
        check_long(mr_output(&r, 1), x, 4, 1, 4);
        assert_memory_equal(mr_output(&r, 2)->data, weights, LONG * sizeof *weights);
        assert_memory_equal((const float *)mr_output(&r, 2)->data + LONG, weights + places[1] * LONG,
                            LONG * sizeof *weights);
        mr_close(&r);
    }
    free(weights);
}

/* Convolutions of several sizes that share a weight keep one packed layout, whatever each would choose alone. */
static void keeps_one_form_for_all_extents(void **state)
{
    (void)state;
    enum { CHANNELS = 256, WEIGHTS = CHANNELS * CHANNELS * 9 };
    float *weights = malloc(WEIGHTS * sizeof *weights);
    assert_non_null(weights);
    for (int i = 0; i < WEIGHTS; i++) weights[i] = (float)(i % 31) / 64 - 0.2f;
    model_builder *m = mb_begin(17);
    mb_initializer(m, "w", PRONY_FLOAT32, "256,256,3,3", weights);
    mb_input(m, "a", PRONY_FLOAT32, "1,256,30,40");
    mb_input(m, "b", PRONY_FLOAT32, "1,256,8,10");
    mb_input(m, "c", PRONY_FLOAT32, "1,256,2,3");
    mb_node(m, "Conv", "a w", "p", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "b w", "q", "pads=[1,1,1,1]");
    mb_node(m, "Conv", "c w", "r", "pads=[1,1,1,1]");
    mb_output(m, "p", PRONY_FLOAT32, "1,256,30,40");
    mb_output(m, "q", PRONY_FLOAT32, "1,256,8,10");
    mb_output(m, "r", PRONY_FLOAT32, "1,256,2,3");
    prony_model *model = load(m);
    prony_session *session = open_session(model, false, false);
    prony_error error = {0};
    assert_int_equal(prony_session_generate_inputs(session, 1, &error), PRONY_OK);
    if (prony_session_run(session, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_in_range(prn_weight_cache_bytes(model->shared), WEIGHTS, WEIGHTS * sizeof *weights + WEIGHTS);
    prony_session_release(session);
    prony_model_release(model);
    mb_free(m);
    free(weights);
}

static void survives_faults_in_a_model(void **state)
{
    (void)state;
    model_run r = {0};
    mr_open(&r, weights_model(1));
    int64_t *ids = weights_model_ids(1, 3);
    float *image = weights_model_image(1, 4);
    mr_set(&r, "ids", PRONY_INT64, "1,4", ids);
    mr_set(&r, "image", PRONY_FLOAT32, "1,16,6,6", image);
    mr_run(&r, 0);
    mr_survives_faults(&r);
    mr_close(&r);
    free(ids);
    free(image);
}

/* Packing releases the file's pages. */
static void gives_the_file_back(void **state)
{
    (void)state;
    enum { SIDE = 1024, LAYERS = 6 };
    static float weights[SIDE * SIDE];
    char path[64];
    snprintf(path, sizeof path, "deferred_%ld.onnx", (long)getpid());
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "8,1024");
    for (int k = 0; k < LAYERS; k++) {
        char name[16], in[40], out[16];
        for (size_t i = 0; i < SIDE * SIDE; i++) weights[i] = (float)((i * 7 + (size_t)k) % 13) / 100 - 0.06f;
        snprintf(name, sizeof name, "w%d", k);
        snprintf(in, sizeof in, k ? "y%d w%d" : "x w%d", k ? k - 1 : k, k);
        snprintf(out, sizeof out, "y%d", k);
        mb_initializer(m, name, PRONY_FLOAT32, "1024,1024", weights);
        mb_node(m, "MatMul", k ? in : "x w0", out, "");
    }
    mb_output(m, "y5", PRONY_FLOAT32, "8,1024");
    size_t size;
    const void *bytes = mb_finish(m, &size);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    mb_free(m);

    prony_model *model = NULL;
    prony_error error = {0};
    prn_resident resident;
    assert_int_equal(prony_model_load(&model, path, NULL, &error), PRONY_OK);
    prony_session *session = open_session(model, false, false);
    assert_int_equal(prony_session_generate_inputs(session, 1, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    assert_true(prn_resident_read(&resident));
    assert_in_range(resident.mapped_bytes, 0, (uint64_t)SIDE * SIDE * sizeof(float) * 2);
    prony_session_release(session);
    prony_model_release(model);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_the_same_results),
                                       cmocka_unit_test(keeps_one_copy),
                                       cmocka_unit_test(keeps_one_copy_of_what_runs_pack),
                                       cmocka_unit_test(keeps_one_form_for_all_extents),
                                       cmocka_unit_test(packs_piece_by_piece),
                                       cmocka_unit_test(keeps_what_cannot_be_scaled),
                                       cmocka_unit_test(survives_faults_in_a_model),
                                       cmocka_unit_test(gives_the_file_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
