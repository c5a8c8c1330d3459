/* Importance of weights: the mean squares that runs of a model leave, in subgraphs too; scales that follow it; weights
 * too small for their scales; the reasons of layers that stay in float; and refusals. */
#include "base/memory/alloc.h"
#include "engine/bind/engine_model.h"
#include "failure_trace.h"
#include "model_builder.h"
#include "quantize/importance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 24, K = 72, N = 20 };

static float x[ROWS * K], weights[K * N], square[K * K];

static void fill(float *to, size_t count, uint32_t *state)
{
    for (size_t i = 0; i < count; i++) {
        *state = *state * 1664525u + 1013904223u;
        to[i] = (float)(*state >> 8) / 8388608.0f - 1.0f;
    }
}

/* Every fifth channel of the activations is large. */
static int set_up(void **unused)
{
    (void)unused;
    uint32_t state = 1;
    fill(x, ROWS * K, &state);
    fill(weights, K * N, &state);
    fill(square, K * K, &state);
    for (int i = 0; i < ROWS * K; i++) x[i] *= i % K % 5 == 0 ? 30.0f : 1.0f;
    return 0;
}

static prony_model *load(model_builder *m)
{
    prony_error error = {0};
    prony_model *model = NULL;
    size_t size;
    const void *bytes = mb_finish(m, &size);
    if (prony_model_load_memory(&model, "net", bytes, size, NULL, &error) != PRONY_OK) fail_msg("%s", error.message);
    return model;
}

static prony_status run(prony_model *model, int64_t first, int64_t rows, int threads, float *out, prony_error *error)
{
    prony_session *session = NULL;
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    const prony_value *y = NULL;
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {2, {rows, K}}, .data = x + first * K};
    options.intra_op_threads = threads;
    prony_status status = prony_session_create(&session, model, &options, error);
    if (status == PRONY_OK) status = prony_session_set_input(session, "x", &value, error);
    if (status == PRONY_OK) status = prony_session_run(session, error);
    if (status == PRONY_OK) status = prony_session_output(session, 0, &y, error);
    if (status == PRONY_OK && out) memcpy(out, y->data, (size_t)prony_shape_numel(&y->shape) * sizeof *out);
    prony_session_release(session);
    return status;
}

static void run_all(prony_model *model, float *out)
{
    prony_error error = {0};
    if (run(model, 0, ROWS, 1, out, &error) != PRONY_OK) fail_msg("%s", error.message);
}

static prony_importance *observe(prony_model *model, int threads)
{
    prony_error error = {0};
    prony_importance *importance = NULL;
    prony_status status = prony_importance_create(&importance, model, &error);
    if (status == PRONY_OK) status = run(prony_importance_model(importance), 0, 7, threads, NULL, &error);
    if (status == PRONY_OK) status = run(prony_importance_model(importance), 7, ROWS - 7, threads, NULL, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    return importance;
}

static prony_model *quantize(prony_model *model, bool search, const prony_importance *importance)
{
    prony_error error = {0};
    prony_model *made = NULL;
    prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
    options.search_scales = search;
    options.importance = importance;
    if (prony_model_quantize_weights(&made, model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return made;
}

static model_builder *build_product(void)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "rows,72");
    mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
    mb_node(m, "MatMul", "x w", "y", "");
    mb_node_name(m, "product");
    mb_output(m, "y", PRONY_FLOAT32, "rows,20");
    return m;
}

/* Both branches of an If read one weight of the main graph; one has a weight of its own, which meets sums. */
static model_builder *build_branches(void)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "rows,72");
    mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
    mb_initializer(m, "zero", PRONY_FLOAT32, "", (const float[]){0});
    mb_node(m, "ReduceSum", "x", "sum", "keepdims=0");
    mb_node(m, "Greater", "sum zero", "condition", "");
    mb_node(m, "If", "condition", "y", "");
    mb_graph_begin(m, "then_branch");
    mb_node(m, "MatMul", "x w", "t", "");
    mb_output(m, "t", PRONY_FLOAT32, "rows,20");
    mb_graph_end(m);
    mb_graph_begin(m, "else_branch");
    mb_initializer(m, "own", PRONY_FLOAT32, "72,72", square);
    mb_node(m, "MatMul", "x own", "u", "");
    mb_node(m, "MatMul", "u w", "v", "");
    mb_output(m, "v", PRONY_FLOAT32, "rows,20");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "rows,20");
    return m;
}

/* The plan of a model with the importance in it; the caller releases it. */
static prn_block_plan planned(prony_model *model, const prony_importance *importance)
{
    const prn_block_format format = {.bits = 4, .block = 32};
    prony_error error = {0};
    prn_block_plan plan;
    prony_status status = prn_block_plan_make(&plan, model, &format, &error);
    if (status == PRONY_OK) status = prn_importance_apply(importance, &plan, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    return plan;
}

/* The same bits for every number of threads, over two runs. */
static void importance_is_the_mean_square(void **unused)
{
    (void)unused;
    model_builder *m = build_product();
    prony_model *model = load(m);
    for (int threads = 1; threads <= 3; threads++) {
        prony_importance *importance = observe(model, threads);
        prn_block_plan plan = planned(model, importance);
        for (int k = 0; k < K; k++) {
            double sum = 0;
            for (int r = 0; r < ROWS; r++) sum += (double)x[r * K + k] * (double)x[r * K + k];
            assert_true(plan.weights[0].importance[k] == sum / ROWS);
        }
        prn_block_plan_release(&plan);
        prony_importance_release(importance);
    }
    prony_model_release(model);
    mb_free(m);
}

/* A weight of several products has the mean over all of them; one whose branch did not run has none. */
static void subgraphs_are_observed(void **unused)
{
    (void)unused;
    model_builder *m = build_branches();
    prony_model *model = load(m);
    float sums[ROWS], u[ROWS * K], both[ROWS * N], plain[ROWS * N];
    bool taken[2] = {false, false};
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int k = 0; k < K; k++) sum += (double)x[r * K + k];
        sums[r] = (float)sum;
        for (int n = 0; n < K; n++) {
            double product = 0;
            for (int k = 0; k < K; k++) product += (double)x[r * K + k] * (double)square[k * K + n];
            u[r * K + n] = (float)product;
        }
    }
    prony_error error = {0};
    prony_importance *importance = NULL;
    assert_int_equal(prony_importance_create(&importance, model, &error), PRONY_OK);
    for (int r = 0; r < ROWS; r++) {
        assert_int_equal(run(prony_importance_model(importance), r, 1, 1, both, &error), PRONY_OK);
        assert_int_equal(run(model, r, 1, 1, plain, &error), PRONY_OK);
        assert_memory_equal(both, plain, N * sizeof *both);
        taken[sums[r] > 0] = true;
    }
    assert_true(taken[0] && taken[1]);
    prn_block_plan plan = planned(model, importance);
    assert_int_equal(plan.weight_count, 2);
    for (size_t w = 0; w < 2; w++) {
        const bool own = strcmp(plan.entries[plan.weights[w].entry].name, "own") == 0;
        for (int k = 0; k < K; k++) {
            double sum = 0, rows = 0;
            for (int r = 0; r < ROWS; r++) {
                const bool then = sums[r] > 0;
                if (own && then) continue;
                const double met = own || then ? (double)x[r * K + k] : (double)u[r * K + k];
                sum += met * met;
                rows++;
            }
            assert_true(fabs(plan.weights[w].importance[k] - sum / rows) < 1e-4 * sum / rows);
        }
    }
    prn_block_plan_release(&plan);
    prony_importance_release(importance);
    prony_model_release(model);
    mb_free(m);
}

static double distance(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum / (double)count);
}

/* The weighted error falls, and so does that of the output; the plain error is that of the weights alone. */
static void scales_follow_the_activations(void **unused)
{
    (void)unused;
    model_builder *m = build_product();
    prony_model *model = load(m);
    prony_importance *importance = observe(model, 1);
    prony_model *nearest = quantize(model, false, NULL), *searched = quantize(model, true, NULL),
                *weighted = quantize(model, false, importance);
    const prony_quantized_row *plain, *aware;
    float exact[ROWS * N], a[ROWS * N], b[ROWS * N], c[ROWS * N];
    run_all(model, exact);
    run_all(nearest, a);
    run_all(searched, b);
    run_all(weighted, c);
    assert_true(distance(exact, c, ROWS * N) < 0.8 * distance(exact, b, ROWS * N));
    assert_true(distance(exact, c, ROWS * N) < 0.8 * distance(exact, a, ROWS * N));
    assert_int_equal(prony_model_quantized_layers(searched, &plain), 1);
    assert_int_equal(prony_model_quantized_layers(weighted, &aware), 1);
    assert_true(aware[0].error > plain[0].error);
    assert_true(isnan(prony_model_weighted_error(searched, 0)) && isnan(prony_model_weighted_error(weighted, 1)));
    assert_true(prony_model_weighted_error(weighted, 0) < aware[0].error);
    prony_model_release(nearest);
    prony_model_release(searched);
    prony_model_release(weighted);
    prony_importance_release(importance);
    prony_model_release(model);
    mb_free(m);
}

/* A block's error, weighted, is never above that of the plain search. Blocks that count nowhere are searched as
 * before. */
static void blocks_with_importance(void **unused)
{
    (void)unused;
    for (int zeros = 0; zeros < 2; zeros++) {
        const prn_block_format format = {4, 32, zeros, true, PRONY_FLOAT32};
        int better = 0;
        for (int b = 0; b < K * N / 32; b++) {
            double importance[32], none[32] = {0};
            uint8_t codes[32], same[32], zero, other;
            float scale, again;
            for (int k = 0; k < 32; k++) importance[k] = k % 4 == b % 4 ? 100 : 1;
            const float *block = weights + b * 32;
            const prn_block_errors plain = prn_block_quantize(&format, block, NULL, 32, codes, &scale, &zero);
            double before = 0;
            for (int k = 0; k < 32; k++)
                before += importance[k] * pow(((double)codes[k] - zero) * (double)scale - (double)block[k], 2);
            const prn_block_errors aware = prn_block_quantize(&format, block, importance, 32, same, &again, &other);
            assert_true(aware.weighted <= before * (1 + 1e-12) && plain.plain == plain.weighted);
            better += aware.weighted < 0.9 * before;
            (void)prn_block_quantize(&format, block, none, 32, same, &again, &other);
            assert_memory_equal(same, codes, sizeof same);
            assert_true(again == scale && other == zero);
        }
        assert_true(better > K * N / 32 / 2);
    }
}

/* Scales of weights that are nearly zero are the least numbers, not zeros. */
static void tiny_weights_do_not_vanish(void **unused)
{
    (void)unused;
    const float sizes[] = {0x1p-149f, 3 * 0x1p-149f, 1e-40f, 1e-38f, 0x1p-24f, 5 * 0x1p-24f, 1e-6f};
    for (int k = 0; k < 7 * 2 * 2; k++) {
        SCENARIO(k);
        const bool half = k % 7 >= 4;
        const prn_block_format format = {4, 16, k / 7 % 2, k / 14, half ? PRONY_FLOAT16 : PRONY_FLOAT32};
        float block[16], scale;
        uint8_t codes[16], zero;
        for (int i = 0; i < 16; i++) {
            block[i] = i % 2 ? sizes[k % 7] : -sizes[k % 7];
            if (half) block[i] = prn_f16_to_f32(prn_f32_to_f16(block[i]));
        }
        (void)prn_block_quantize(&format, block, NULL, 16, codes, &scale, &zero);
        assert_true(scale != 0.0f);
        for (int i = 0; i < 16; i++) {
            const double stored = ((double)codes[i] - zero) * (double)scale;
            assert_true(fabs(stored - (double)block[i]) <= 0.2 * fabs((double)block[i]));
        }
    }
}

/* The same through a model: all that is stored of it is there. */
static void tiny_layers_compute(void **unused)
{
    (void)unused;
    float kept[K * N];
    memcpy(kept, weights, sizeof kept);
    for (int i = 0; i < K * N; i++) weights[i] *= 1e-38f;
    model_builder *m = build_product();
    prony_model *model = load(m), *made = quantize(model, false, NULL);
    const prony_quantized_row *rows;
    float exact[ROWS * N], got[ROWS * N], none[ROWS * N] = {0};
    run_all(model, exact);
    run_all(made, got);
    assert_int_equal(prony_model_quantized_layers(made, &rows), 1);
    assert_true(rows[0].error > 0 && rows[0].error < 0.2);
    assert_true(distance(exact, got, ROWS * N) < 0.2 * distance(exact, none, ROWS * N));
    memcpy(weights, kept, sizeof kept);
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
}

static model_builder *build_refused(bool one_works)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "rows,72");
    mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
    mb_initializer(m, "deep", PRONY_FLOAT32, "1,72,20", weights);
    mb_initializer(m, "few", PRONY_FLOAT32, "12,20", weights);
    mb_node(m, "Gemm", "x w", "a", "alpha=0.5");
    mb_node_name(m, "half");
    mb_node(m, "MatMul", "x deep", "b", "");
    mb_node_name(m, "stack");
    mb_node(m, "Slice", "x first last columns", "c", "");
    mb_initializer(m, "first", PRONY_INT64, "1", (const int64_t[]){0});
    mb_initializer(m, "last", PRONY_INT64, "1", (const int64_t[]){12});
    mb_initializer(m, "columns", PRONY_INT64, "1", (const int64_t[]){1});
    mb_node(m, "MatMul", "c few", "d", "");
    mb_node_name(m, "narrow");
    mb_node(m, "Cast", "w", "whole", "to=7");
    mb_node(m, "Cast", "whole", "v", "to=1");
    mb_node(m, "MatMul", "x v", "e", "");
    mb_node_name(m, "rounded");
    mb_node(m, "Sum", "a b d e", "sum", "");
    if (one_works) {
        mb_node(m, "MatMul", "x w", "f", "");
        mb_node_name(m, "works");
        mb_node(m, "Add", "sum f", "y", "");
    } else {
        mb_node(m, "Identity", "sum", "y", "");
    }
    mb_output(m, "y", PRONY_FLOAT32, "1,rows,20");
    return m;
}

static void float_layers_have_a_reason(void **unused)
{
    (void)unused;
    static const char *const wanted[][2] = {{"half", "alpha is 0.5, wanted 1"},
                                            {"stack", "its weights have rank 3, wanted 2"},
                                            {"narrow", "K is 12, wanted 16 or more"},
                                            {"rounded", "a Cast to int64 stands behind its weights"},
                                            {"works", NULL}};
    model_builder *m = build_refused(true);
    prony_model *model = load(m), *made = quantize(model, false, NULL);
    const prony_quantized_row *rows;
    assert_int_equal(prony_model_quantized_layers(made, &rows), 5);
    for (size_t i = 0; i < 5; i++) {
        const char *reason = prony_model_float_reason(made, i);
        assert_string_equal(rows[i].name, wanted[i][0]);
        assert_int_equal(rows[i].quantized, !wanted[i][1]);
        if (wanted[i][1]) assert_string_equal(reason, wanted[i][1]);
        assert_true(isnan(rows[i].error) == (wanted[i][1] != NULL));
        assert_int_equal(reason == NULL, wanted[i][1] == NULL);
    }
    assert_null(prony_model_float_reason(made, 5));
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
    prony_error error = {0};
    m = build_refused(false);
    model = load(m);
    made = NULL;
    assert_int_equal(prony_model_quantize_weights(&made, model, NULL, &error), PRONY_UNSUPPORTED);
    for (size_t i = 0; i < 3; i++)
        if (!strstr(error.message, wanted[i][0]) || !strstr(error.message, wanted[i][1])) fail_msg("%s", error.message);
    assert_non_null(strstr(error.message, "and 1 more"));
    prony_model_release(model);
    mb_free(m);
}

/* The same of 8 bits for activations too. */
static void layers_of_8_bits_have_a_reason(void **unused)
{
    (void)unused;
    static const char *const wanted[][2] = {{"half", "alpha or beta is not 1"},
                                            {"stack", "its weights have another rank than 2, or its input has 1"},
                                            {"narrow", NULL},
                                            {"rounded", "its weights are made by other nodes"},
                                            {"works", NULL}};
    const prony_dim rows_dim = {"rows", ROWS};
    prony_session_options session = PRONY_SESSION_OPTIONS_INIT;
    prony_quantize_options options = PRONY_QUANTIZE_OPTIONS_INIT;
    prony_error error = {0};
    session.dims = &rows_dim;
    session.dim_count = 1;
    options.session = &session;
    model_builder *m = build_refused(true);
    prony_model *model = load(m), *made = NULL;
    const prony_quantized_row *rows;
    if (prony_model_quantize(&made, model, &options, &error) != PRONY_OK) fail_msg("%s", error.message);
    const size_t count = prony_model_quantized_layers(made, &rows);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        const char *reason = prony_model_float_reason(made, i);
        assert_string_equal(rows[i].name, wanted[i][0]);
        assert_int_equal(rows[i].quantized, !wanted[i][1]);
        assert_int_equal(reason == NULL, wanted[i][1] == NULL);
        if (reason) assert_string_equal(reason, wanted[i][1]);
    }
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
    m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "4,72");
    mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
    mb_node(m, "Gemm", "x w", "y", "alpha=0.5");
    mb_node_name(m, "half");
    mb_output(m, "y", PRONY_FLOAT32, "4,20");
    model = load(m);
    made = NULL;
    assert_int_equal(prony_model_quantize(&made, model, NULL, &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "node 'half' (Gemm): alpha or beta is not 1"));
    prony_model_release(model);
    mb_free(m);
}

static void refusals(void **unused)
{
    (void)unused;
    prony_error error = {0};
    model_builder *m = build_product(), *other = build_product();
    prony_model *model = load(m), *stranger = load(other), *made = NULL;
    prony_importance *importance = NULL, *again = NULL;
    prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
    assert_int_equal(prony_importance_create(NULL, model, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_importance_add(NULL, NULL, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_null(prony_importance_model(NULL));
    assert_int_equal(prony_importance_create(&importance, model, &error), PRONY_OK);
    assert_int_equal(prony_importance_create(&again, prony_importance_model(importance), &error), PRONY_UNSUPPORTED);
    options.importance = importance;
    assert_int_equal(prony_model_quantize_weights(&made, model, &options, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "the importance has no runs"));
    assert_int_equal(prony_model_quantize_weights(&made, stranger, &options, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "belongs to another model"));
    const float kept = x[3];
    x[3] = NAN;
    assert_int_equal(run(prony_importance_model(importance), 0, 2, 1, NULL, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "product"));
    assert_non_null(strstr(error.message, "input 3 of each row is NaN or infinite"));
    x[3] = kept;
    prony_importance_release(importance);
    prony_model_release(stranger);
    prony_model_release(model);
    mb_free(other);
    mb_free(m);
}

/* A session may outlive the importance, and keeps its model. */
static void sessions_outlive_it(void **unused)
{
    (void)unused;
    prony_error error = {0};
    model_builder *m = build_product();
    prony_model *model = load(m);
    prony_importance *importance = NULL;
    prony_session *session = NULL;
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {2, {ROWS, K}}, .data = x};
    assert_int_equal(prony_importance_create(&importance, model, &error), PRONY_OK);
    assert_int_equal(prony_session_create(&session, prony_importance_model(importance), NULL, &error), PRONY_OK);
    prony_importance_release(importance);
    prony_model_release(model);
    assert_int_equal(prony_session_set_input(session, "x", &value, &error), PRONY_OK);
    assert_int_equal(prony_session_run(session, &error), PRONY_OK);
    prony_session_release(session);
    mb_free(m);
}

/* A failed allocation leaves no importance and no leak. */
static void every_allocation_fails(void **unused)
{
    (void)unused;
    model_builder *m = build_branches();
    prony_model *model = load(m);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        prony_error error = {0};
        prony_importance *importance = NULL;
        prn_alloc_fail_at(n);
        const prony_status status = prony_importance_create(&importance, model, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        assert_true(failed == (importance == NULL));
        prony_importance_release(importance);
    }
    prony_model_release(model);
    mb_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(importance_is_the_mean_square),
                                       cmocka_unit_test(subgraphs_are_observed),
                                       cmocka_unit_test(scales_follow_the_activations),
                                       cmocka_unit_test(blocks_with_importance),
                                       cmocka_unit_test(tiny_weights_do_not_vanish),
                                       cmocka_unit_test(tiny_layers_compute),
                                       cmocka_unit_test(float_layers_have_a_reason),
                                       cmocka_unit_test(layers_of_8_bits_have_a_reason),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(sessions_outlive_it),
                                       cmocka_unit_test(every_allocation_fails)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
