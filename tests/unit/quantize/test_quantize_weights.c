/* Models with weights in blocks: products against those of the dequantized weights, which nodes and weights go,
 * refusals, and every allocation failing. */
#include "failure_trace.h"
#include "base/memory/alloc.h"
#include "engine/bind/engine_model.h"
#include "model_builder.h"
#include "quantize/block_weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3, K = 72, N = 20 };

static float x[ROWS * K], weights[K * N], square[K * K], bias[N];

static void fill(float *to, size_t count, uint32_t *state)
{
    for (size_t i = 0; i < count; i++) {
        *state = *state * 1664525u + 1013904223u;
        to[i] = (float)(*state >> 8) / 8388608.0f - 1.0f;
    }
}

static int set_up(void **unused)
{
    (void)unused;
    uint32_t state = 1;
    fill(x, ROWS * K, &state);
    fill(weights, K * N, &state);
    fill(square, K * K, &state);
    fill(bias, N, &state);
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

static prony_model *quantize(prony_model *model, const prony_weights_options *options)
{
    prony_error error = {0};
    prony_model *made = NULL;
    if (prony_model_quantize_weights(&made, model, options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return made;
}

static void run(prony_model *model, prony_dtype dtype, float *out, size_t count)
{
    prony_error error = {0};
    prony_session *session = NULL;
    const prony_value *y = NULL;
    uint16_t halves[ROWS * K];
    prony_value value = {.dtype = dtype, .shape = {2, {ROWS, K}}, .data = x};
    if (dtype == PRONY_FLOAT16) {
        prn_convert(halves, dtype, x, PRONY_FLOAT32, ROWS * K);
        value.data = halves;
    }
    prony_status status = prony_session_create(&session, model, NULL, &error);
    if (status == PRONY_OK) status = prony_session_set_input(session, "x", &value, &error);
    if (status == PRONY_OK) status = prony_session_run(session, &error);
    if (status == PRONY_OK) status = prony_session_output(session, 0, &y, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_shape_numel(&y->shape), count);
    prn_convert(out, PRONY_FLOAT32, y->data, y->dtype, (int64_t)count);
    prony_session_release(session);
}

static double distance(const float *a, const float *b, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static size_t nodes_of(const prony_model *model, const char *op)
{
    size_t count = 0;
    for (size_t n = 0; n < model->file->graph.node_count; n++)
        count += strcmp(model->file->graph.nodes[n].op_type, op) == 0;
    return count;
}

static bool has_initializer(const prony_model *model, const char *name)
{
    for (size_t i = 0; i < model->file->graph.initializer_count; i++)
        if (strcmp(model->file->graph.initializers[i].name, name) == 0) return true;
    return false;
}

/* x W + bias, with the weights of column n in blocks of `block` along K as prn_block_quantize stores them. */
static void expect_product(const prn_block_format *format, float out[ROWS * N])
{
    float column[K], kept[K * N];
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < K; k++) column[k] = weights[k * N + n];
        for (int at = 0; at < K; at += (int)format->block) {
            uint8_t codes[PRN_LARGEST_WEIGHT_BLOCK], zero;
            const int count = K - at < format->block ? K - at : (int)format->block;
            float scale;
            (void)prn_block_quantize(format, column + at, NULL, count, codes, &scale, &zero);
            for (int k = 0; k < count; k++) kept[(at + k) * N + n] = (float)((int)codes[k] - (int)zero) * scale;
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int n = 0; n < N; n++) {
            double sum = (double)bias[n];
            for (int k = 0; k < K; k++) sum += (double)x[r * K + k] * (double)kept[k * N + n];
            out[r * N + n] = (float)sum;
        }
}

static model_builder *build_product(void)
{
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "rows,72");
    mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
    mb_initializer(m, "bias", PRONY_FLOAT32, "20", bias);
    mb_node(m, "MatMul", "x w", "p", "");
    mb_node_name(m, "product");
    mb_node(m, "Add", "p bias", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "rows,20");
    return m;
}

/* Every width, block, kind of zero and way to a scale. K is no multiple of any block, so that the last one is
 * padded. */
static void products_are_those_of_the_stored_weights(void **unused)
{
    (void)unused;
    model_builder *m = build_product();
    prony_model *model = load(m);
    float wanted[ROWS * N], got[ROWS * N], floats[ROWS * N];
    run(model, PRONY_FLOAT32, floats, ROWS * N);
    for (int k = 0; k < 2 * 3 * 4; k++) {
        SCENARIO(k);
        prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
        options.bits = k % 2 ? 8 : 4;
        options.zero_points = k / 2 % 2;
        options.search_scales = k / 4 % 2;
        options.block = (const int64_t[]){16, 32, 128}[k / 8];
        const prn_block_format format = {options.bits, options.block, options.zero_points, options.search_scales,
                                         PRONY_FLOAT32};
        prony_model *made = quantize(model, &options);
        const prony_quantized_row *rows;
        assert_int_equal(prony_model_quantized_layers(made, &rows), 1);
        assert_string_equal(rows[0].name, "product");
        assert_true(rows[0].quantized && rows[0].error > 0 && rows[0].error < (options.bits == 8 ? 0.01 : 0.15));
        assert_int_equal(nodes_of(made, "MatMulNBits"), 1);
        assert_false(has_initializer(made, "w"));
        assert_true(has_initializer(made, "w_zero_points") == options.zero_points);
        expect_product(&format, wanted);
        run(made, PRONY_FLOAT32, got, ROWS * N);
        assert_true(distance(got, wanted, ROWS * N) < 2e-5);
        assert_true(distance(got, floats, ROWS * N) > 0);
        prony_model_release(made);
    }
    prony_model_release(model);
    mb_free(m);
}

/* A search never stores a block worse than the largest weight does, and mostly better. */
static void searched_scales_have_less_error(void **unused)
{
    (void)unused;
    for (int zeros = 0; zeros < 2; zeros++) {
        prn_block_format format = {4, 32, zeros, false, PRONY_FLOAT32};
        int better = 0;
        for (int b = 0; b < K * N / 32; b++) {
            uint8_t codes[32], zero;
            float scale;
            format.search = false;
            const double nearest = prn_block_quantize(&format, weights + b * 32, NULL, 32, codes, &scale, &zero).plain;
            format.search = true;
            const double searched = prn_block_quantize(&format, weights + b * 32, NULL, 32, codes, &scale, &zero).plain;
            assert_true(searched <= nearest);
            better += searched < 0.95 * nearest;
        }
        assert_true(better > K * N / 32 / 2);
    }
}

/* Blocks of zeros, of one value, and of numbers near the ends of float32. */
static void blocks_of_special_numbers(void **unused)
{
    (void)unused;
    const float values[] = {0, -0.0f, 1, -1, 3e38f, -3e38f, 1e-40f, 1e-30f};
    for (int k = 0; k < 8 * 2 * 2; k++) {
        SCENARIO(k);
        const prn_block_format format = {4, 16, k / 8 % 2, k / 16, PRONY_FLOAT32};
        float block[16], scale;
        uint8_t codes[16], zero;
        for (int i = 0; i < 16; i++) block[i] = values[k % 8];
        (void)prn_block_quantize(&format, block, NULL, 16, codes, &scale, &zero);
        for (int i = 0; i < 16; i++) {
            const double stored = ((double)codes[i] - zero) * (double)scale;
            assert_true(fabs(stored - (double)block[i]) <= 1e-6 * fabs((double)block[i]) + 1e-37);
        }
    }
}

/* Scales of float16 weights are float16. */
static void half_precision(void **unused)
{
    (void)unused;
    uint16_t halves[K * N];
    float floats[ROWS * N], got[ROWS * N];
    prn_convert(halves, PRONY_FLOAT16, weights, PRONY_FLOAT32, K * N);
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT16, "rows,72");
    mb_initializer(m, "w", PRONY_FLOAT16, "72,20", halves);
    mb_node(m, "MatMul", "x w", "y", "");
    mb_output(m, "y", PRONY_FLOAT16, "rows,20");
    prony_model *model = load(m), *made = quantize(model, NULL);
    assert_int_equal(nodes_of(made, "MatMulNBits"), 1);
    run(model, PRONY_FLOAT16, floats, ROWS * N);
    run(made, PRONY_FLOAT16, got, ROWS * N);
    assert_true(distance(got, floats, ROWS * N) < 1.5);
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
}

/* x -> MatMul by a Transpose of w -> Gemm of w (transB = 1) and C -> MatMul of a Constant; Gather reads w, too, and a
 * MatMul with K = 8 stays. Transpose and Gemm transpose w, so it is one weight of both. */
static model_builder *build_mixed(void)
{
    const int64_t first = 0;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "rows,72");
    mb_initializer(m, "w", PRONY_FLOAT32, "72,72", square);
    mb_initializer(m, "bias", PRONY_FLOAT32, "1,72", weights);
    mb_initializer(m, "index", PRONY_INT64, "", &first);
    mb_initializer(m, "few", PRONY_FLOAT32, "8,4", weights);
    mb_initializer(m, "shape", PRONY_INT64, "2", (const int64_t[]){-1, 8});
    mb_node(m, "Transpose", "w", "transposed", "perm=[1,0]");
    mb_node(m, "MatMul", "x transposed", "a", "");
    mb_node(m, "Gemm", "a w bias", "b", "transB=1");
    mb_node_name(m, "gemm");
    mb_node(m, "Constant", "", "c", "");
    mb_tensor(m, "value", PRONY_FLOAT32, "72,72", square);
    mb_node(m, "MatMul", "b c", "d", "");
    mb_node(m, "Gather", "w index", "row", "");
    mb_node(m, "Add", "d row", "e", "");
    mb_node(m, "Reshape", "e shape", "f", "");
    mb_node(m, "MatMul", "f few", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "more,4");
    return m;
}

static void weights_behind_other_nodes(void **unused)
{
    (void)unused;
    enum { OUT = ROWS * K / 8 * 4 };
    model_builder *m = build_mixed();
    prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
    options.bits = 8;
    prony_model *model = load(m), *made = quantize(model, &options);
    float floats[OUT], got[OUT], largest[OUT] = {0};
    const prony_quantized_row *rows;
    assert_int_equal(prony_model_quantized_layers(made, &rows), 4);
    assert_true(rows[0].quantized && rows[1].quantized && rows[2].quantized && !rows[3].quantized);
    assert_string_equal(prony_model_float_reason(made, 3), "K is 8, wanted 16 or more");
    assert_int_equal(nodes_of(made, "MatMulNBits"), 3);
    assert_int_equal(nodes_of(made, "MatMul"), 1);
    assert_int_equal(nodes_of(made, "Transpose") + nodes_of(made, "Constant") + nodes_of(made, "Gemm"), 0);
    assert_true(has_initializer(made, "w") && has_initializer(made, "few") && has_initializer(made, "c_Q8"));
    assert_true(has_initializer(made, "w_Q8"));    /* of the Transpose */
    assert_false(has_initializer(made, "w_Q8_2")); /* Gemm turns w, too: the same weight */
    run(model, PRONY_FLOAT32, floats, OUT);
    run(made, PRONY_FLOAT32, got, OUT);
    assert_true(distance(got, floats, OUT) > 0);
    assert_true(distance(got, floats, OUT) < 0.02 * distance(floats, largest, OUT));
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
}

/* Both branches of an If read one weight of the main graph; one has a weight of its own. */
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

static void subgraphs_share_weights(void **unused)
{
    (void)unused;
    model_builder *m = build_branches();
    prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
    options.bits = 8;
    prony_model *model = load(m), *made = quantize(model, &options);
    float floats[ROWS * N], got[ROWS * N];
    assert_int_equal(prony_model_quantized_layers(made, NULL), 3);
    assert_true(has_initializer(made, "w_Q8") && !has_initializer(made, "w") && !has_initializer(made, "own_Q8"));
    for (int sign = 0; sign < 2; sign++) {
        run(model, PRONY_FLOAT32, floats, ROWS * N);
        run(made, PRONY_FLOAT32, got, ROWS * N);
        assert_true(distance(got, floats, ROWS * N) > 0 && distance(got, floats, ROWS * N) < 0.3);
        for (int i = 0; i < ROWS * K; i++) x[i] = -x[i];
    }
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
}

static void refuse(model_builder *m, const prony_weights_options *options, prony_status status, const char *words)
{
    prony_error error = {0};
    prony_model *model = load(m), *made = NULL;
    assert_int_equal(prony_model_quantize_weights(&made, model, options, &error), status);
    if (!strstr(error.message, words)) fail_msg("'%s' lacks '%s'", error.message, words);
    assert_null(made);
    prony_model_release(model);
    mb_free(m);
}

static void refusals(void **unused)
{
    (void)unused;
    prony_weights_options options = PRONY_WEIGHTS_OPTIONS_INIT;
    options.bits = 5;
    refuse(build_product(), &options, PRONY_INVALID_ARGUMENT, "bits 5: wanted 4 or 8");
    options = (prony_weights_options)PRONY_WEIGHTS_OPTIONS_INIT;
    options.block = 48;
    refuse(build_product(), &options, PRONY_INVALID_ARGUMENT, "block 48: wanted a power of two from 16 to 256");
    const float kept = weights[5 * N + 3];
    weights[5 * N + 3] = INFINITY;
    refuse(build_product(), NULL, PRONY_UNSUPPORTED,
           "net: weights 'w': output channel 3 has a number that is not finite");
    weights[5 * N + 3] = kept;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "8,8");
    mb_node(m, "MatMul", "x x", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "8,8");
    refuse(m, NULL, PRONY_UNSUPPORTED, "net: nothing to quantize");
    m = build_product();
    prony_model *model = load(m), *made = quantize(model, NULL), *again = NULL;
    prony_error error = {0};
    assert_int_equal(prony_model_quantize_weights(&again, made, NULL, &error), PRONY_UNSUPPORTED);
    assert_non_null(strstr(error.message, "the model has MatMulNBits already"));
    assert_int_equal(prony_model_quantize_weights(&again, NULL, NULL, &error), PRONY_INVALID_ARGUMENT);
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
}

static bool has_input(const prony_model *model, const char *name)
{
    const prn_graph *g = &model->file->graph;
    for (size_t i = 0; i < g->input_count + g->optional_count; i++)
        if (strcmp(g->inputs[i].name, name) == 0) return true;
    return false;
}

/* A caller may give other weights than a default value's. */
static void default_values_stay(void **unused)
{
    (void)unused;
    model_builder *m = mb_begin(17);
    mb_input(m, "x", PRONY_FLOAT32, "rows,72");
    mb_input(m, "given", PRONY_FLOAT32, "72,72");
    mb_initializer(m, "given", PRONY_FLOAT32, "72,72", square);
    mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
    mb_node(m, "MatMul", "x given", "a", "");
    mb_node(m, "MatMul", "a w", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "rows,20");
    prony_model *model = load(m), *made = quantize(model, NULL);
    assert_int_equal(model->file->graph.optional_count, 1);
    assert_int_equal(nodes_of(made, "MatMulNBits"), 1);
    assert_int_equal(nodes_of(made, "MatMul"), 1);
    assert_true(has_initializer(made, "given") && has_input(made, "given") && has_initializer(made, "w_Q4"));
    prony_model_release(made);
    prony_model_release(model);
    mb_free(m);
}

/* A Cast to whole numbers or to bfloat16 makes other weights; one to float32 or float16 does not. */
static void casts_that_change_weights(void **unused)
{
    (void)unused;
    const prony_dtype types[] = {PRONY_INT32, PRONY_BFLOAT16, PRONY_FLOAT64, PRONY_FLOAT16};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        char to[16];
        model_builder *m = mb_begin(17);
        snprintf(to, sizeof to, "to=%d", (int)types[k]);
        mb_input(m, "x", PRONY_FLOAT32, "rows,72");
        mb_initializer(m, "w", PRONY_FLOAT32, "72,20", weights);
        mb_initializer(m, "other", PRONY_FLOAT32, "72,20", weights);
        mb_node(m, "Cast", "w", "whole", to);
        mb_node(m, "Cast", "whole", "v", "to=1");
        mb_node(m, "MatMul", "x v", "a", "");
        mb_node(m, "MatMul", "x other", "b", "");
        mb_node(m, "Add", "a b", "y", "");
        mb_output(m, "y", PRONY_FLOAT32, "rows,20");
        prony_model *model = load(m), *made = quantize(model, NULL);
        const bool taken = types[k] == PRONY_FLOAT16;
        if (nodes_of(made, "MatMulNBits") != (taken ? 2 : 1) || nodes_of(made, "Cast") != (taken ? 0 : 2))
            fail_msg("a Cast to type %d", (int)types[k]);
        prony_model_release(made);
        prony_model_release(model);
        mb_free(m);
    }
}

static void every_allocation_may_fail(void **unused)
{
    (void)unused;
    model_builder *builders[] = {build_mixed(), build_branches()};
    for (int b = 0; b < 2; b++) {
        prony_model *model = load(builders[b]), *made = NULL;
        bool failed = true;
        for (uint64_t n = 1; failed; n++) {
            prony_error error = {0};
            prn_alloc_fail_at(n);
            const prony_status status = prony_model_quantize_weights(&made, model, NULL, &error);
            failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            if (status != PRONY_OK && (!failed || status != PRONY_OUT_OF_MEMORY))
                fail_msg("allocation %llu: status %d, %s", (unsigned long long)n, (int)status, error.message);
            assert_true((status == PRONY_OK) == (made != NULL));
            prony_model_release(made);
            made = NULL;
        }
        prony_model_release(model);
        mb_free(builders[b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_the_stored_weights),
        cmocka_unit_test(searched_scales_have_less_error),
        cmocka_unit_test(blocks_of_special_numbers),
        cmocka_unit_test(half_precision),
        cmocka_unit_test(weights_behind_other_nodes),
        cmocka_unit_test(subgraphs_share_weights),
        cmocka_unit_test(default_values_stay),
        cmocka_unit_test(casts_that_change_weights),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
