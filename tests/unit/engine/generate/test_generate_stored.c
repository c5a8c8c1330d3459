/* Generators whose cache is float16 or int8: logits close to those of a float32 cache, the same for any number of
 * threads, in batches, and after rewinding; and models that cannot have such a cache. */
#include "base/memory/alloc.h"
#include "decoder_model.h"
#include "ops/kernels/attention/attend_cache.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Growing caches, and two that GroupQueryAttention writes. */
static const decoder_style *const styles[] = {&decoder_optimum, &decoder_grouped, &decoder_lengths};
enum { STYLES = sizeof styles / sizeof *styles };

static void begin(generation *g, const decoder_style *style, prony_cache_type type, int threads, int64_t batch,
                  int64_t chunk)
{
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    *g = (generation){0};
    options.cache_type = type;
    options.batch = batch;
    options.chunk = chunk;
    generation_load(g, decoder_model(style), threads);
    if (prony_generator_create(&g->generator, g->session, &options, &g->error) != PRONY_OK)
        fail_msg("%s", g->error.message);
}

/* Logits behind each of NEW tokens that follow five words. */
static void logits_of(const decoder_style *style, prony_cache_type type, int threads, int64_t chunk,
                      float out[NEW][VOCABULARY])
{
    generation g;
    const size_t five = 5, one = 1;
    begin(&g, style, type, threads, 1, chunk);
    generation_prompt(&g, decoder_words, &five);
    for (int64_t k = 0; k < NEW; k++) {
        size_t count;
        const int64_t id = (7 * k + 3) % VOCABULARY;
        generation_prompt(&g, &id, &one);
        const float *logits = prony_generator_logits(g.generator, 0, &count);
        assert_int_equal(count, VOCABULARY);
        memcpy(out[k], logits, sizeof out[k]);
    }
    generation_end(&g);
}

static double difference(float a[NEW][VOCABULARY], float b[NEW][VOCABULARY])
{
    double most = 0;
    for (size_t k = 0; k < NEW; k++)
        for (size_t v = 0; v < VOCABULARY; v++) most = fmax(most, fabs((double)a[k][v] - (double)b[k][v]));
    return most;
}

static void logits_are_close(const decoder_style *style)
{
    static float exact[NEW][VOCABULARY], half[NEW][VOCABULARY], codes[NEW][VOCABULARY], other[NEW][VOCABULARY];
    double size = 0;
    logits_of(style, PRONY_CACHE_FP32, 1, 0, exact);
    logits_of(style, PRONY_CACHE_FP16, 1, 0, half);
    logits_of(style, PRONY_CACHE_INT8, 1, 0, codes);
    for (size_t k = 0; k < NEW; k++)
        for (size_t v = 0; v < VOCABULARY; v++) size = fmax(size, fabs((double)exact[k][v]));
    const double by_half = difference(exact, half), by_codes = difference(exact, codes);
    assert_true(by_half > 0 && by_half < size * 0x1p-9);     /* an element keeps 11 bits */
    assert_true(by_codes > by_half && by_codes < size / 32); /* of 127 steps */
    for (int threads = 2; threads <= 4; threads++) {
        logits_of(style, PRONY_CACHE_INT8, threads, 0, other);
        assert_memory_equal(other, codes, sizeof codes);
    }
}

static void test_logits_are_close(void **state)
{
    (void)state;
    for (size_t k = 0; k < STYLES; k++) logits_are_close(styles[k]);
}

/* Chunks read stored rows where whole prompts read their own: the first prompt alone differs. */
static void test_chunks(void **state)
{
    (void)state;
    static float exact[NEW][VOCABULARY], chunked[NEW][VOCABULARY], again[NEW][VOCABULARY];
    for (size_t k = 0; k < STYLES; k++) {
        logits_of(styles[k], PRONY_CACHE_FP32, 1, 0, exact);
        for (int64_t chunk = 1; chunk <= 6; chunk++) {
            logits_of(styles[k], PRONY_CACHE_FP16, 1, chunk, chunked);
            logits_of(styles[k], PRONY_CACHE_FP16, 3, chunk, again);
            assert_true(difference(exact, chunked) < 0x1p-7);
            assert_memory_equal(again, chunked, sizeof chunked);
        }
    }
}

/* Held and live bytes, no row copied, and one plan for all steps. */
static void test_figures(void **state)
{
    (void)state;
    for (prony_cache_type type = PRONY_CACHE_FP32; type <= PRONY_CACHE_INT8; type++) {
        generation g;
        prony_generator_info info;
        int64_t ids[NEW];
        const size_t five = 5;
        begin(&g, &decoder_optimum, type, 1, 1, 0);
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, ids, NEW, 1);
        prony_generator_get_info(g.generator, &info);
        const size_t row = type == PRONY_CACHE_INT8 ? HEAD + 4 : type == PRONY_CACHE_FP16 ? 2 * HEAD : 4 * HEAD;
        assert_int_equal(info.cache_bytes, 2 * HEADS * row * POSITIONS);
        assert_int_equal(info.cache_live_bytes, 2 * HEADS * row * (5 + NEW - 1));
        assert_int_equal(info.cache_copied_bytes, 0);
        const prony_preparations made = prony_session_preparations(g.session);
        assert_int_equal(made.planned, 2);
        assert_int_equal(made.respecialized, NEW - 1);
        generation_end(&g);
    }
}

/* Sequences of a batch have the ids of each alone; rewound tokens leave no trace. */
static void batches_and_rewinding(const decoder_style *style)
{
    const int64_t both[] = {3, 1, 4, 1, 5, 9, 3, 1, 4};
    const size_t lengths[] = {6, 3};
    for (prony_cache_type type = PRONY_CACHE_FP16; type <= PRONY_CACHE_INT8; type++) {
        generation g;
        int64_t alone[2][NEW], together[NEW][2], again[NEW];
        for (size_t b = 0; b < 2; b++) {
            begin(&g, style, type, 1, 1, 0);
            generation_prompt(&g, both, &lengths[b]);
            generation_next(&g, alone[b], NEW, 1);
            assert_int_equal(prony_generator_rewind(g.generator, (int64_t)lengths[b] + 2, &g.error), PRONY_OK);
            generation_next(&g, again, NEW - 2, 1);
            assert_memory_equal(again, alone[b] + 2, (NEW - 2) * sizeof *again);
            assert_int_equal(prony_generator_rewind(g.generator, 0, &g.error), PRONY_OK);
            generation_prompt(&g, both, &lengths[b]);
            generation_next(&g, again, NEW, 1);
            assert_memory_equal(again, alone[b], sizeof again);
            generation_end(&g);
        }
        begin(&g, style, type, 1, 2, 0);
        generation_prompt(&g, both, lengths);
        generation_next(&g, together[0], NEW, 2);
        for (size_t n = 0; n < NEW; n++)
            for (size_t b = 0; b < 2; b++) assert_int_equal(together[n][b], alone[b][n]);
        generation_end(&g);
    }
}

static void test_batches_and_rewinding(void **state)
{
    (void)state;
    for (size_t k = 0; k < STYLES; k++) batches_and_rewinding(styles[k]);
}

/* A prompt behind others is computed at once where GroupQueryAttention stores its rows: bytes as told, no row
 * copied. */
static void test_shared_figures(void **state)
{
    (void)state;
    for (prony_cache_type type = PRONY_CACHE_FP16; type <= PRONY_CACHE_INT8; type++) {
        generation g;
        prony_generator_info info;
        const size_t five = 5, three = 3;
        int64_t ids[NEW], together[NEW];
        begin(&g, &decoder_lengths, type, 1, 1, 0);
        generation_prompt(&g, decoder_words, &five);
        generation_prompt(&g, decoder_words + 5, &three);
        prony_generator_get_info(g.generator, &info);
        const size_t row = type == PRONY_CACHE_INT8 ? HEAD + 4 : 2 * HEAD;
        assert_int_equal(info.kind, PRONY_CACHE_SHARED);
        assert_int_equal(info.cache_bytes, 2 * HEADS * row * (size_t)info.max_length);
        assert_int_equal(info.cache_live_bytes, 2 * HEADS * row * 8);
        assert_int_equal(info.cache_copied_bytes, 0);
        generation_next(&g, ids, NEW, 1);
        generation_end(&g);
        begin(&g, &decoder_lengths, type, 1, 1, 3);
        const size_t eight = 8;
        generation_prompt(&g, decoder_words, &eight);
        generation_next(&g, together, NEW, 1);
        assert_memory_equal(ids, together, sizeof ids);
        generation_end(&g);
    }
}

/* Refusals name the input, the node where there is one, and leave the session to a generator of float32. */
static void test_refusals(void **state)
{
    (void)state;
    decoder_style watched = decoder_optimum;
    watched.peek = "past";
    decoder_style shared = decoder_grouped;
    shared.peek = "present";
    const struct {
        const decoder_style *style;
        const char *words[3];
    } cases[] = {{&decoder_no_cache, {"no cache", "", ""}},
                 {&decoder_packed, {"past_0", "float32[batch, heads, length, size]", ""}},
                 {&shared, {"GroupQueryAttention", "past", "nothing else that reads either"}},
                 {&watched, {"Concat", "past_key_values.0.key", "MatMul, Softmax, MatMul"}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        generation g = {0};
        prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
        const size_t five = 5;
        int64_t ids[NEW], wanted[NEW];
        options.cache_type = PRONY_CACHE_INT8;
        generation_load(&g, decoder_model(cases[k].style), 1);
        prony_status status = prony_generator_create(&g.generator, g.session, &options, &g.error);
        if (status == PRONY_OK) status = prony_generator_prompt(g.generator, decoder_words, &five, &g.error);
        for (int n = 0; n < 2 && status == PRONY_OK; n++)
            status = prony_generator_next(g.generator, ids, NULL, &g.error);
        assert_int_equal(status, PRONY_UNSUPPORTED);
        for (size_t w = 0; w < 3; w++)
            if (!strstr(g.error.message, cases[k].words[w])) fail_msg("%zu: %s", k, g.error.message);
        prony_generator_release(g.generator);
        g.generator = NULL;
        assert_int_equal(prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_OK);
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, ids, NEW, 1);
        generation_ids(cases[k].style, NULL, 5, wanted);
        assert_memory_equal(ids, wanted, sizeof ids);
        generation_end(&g);
    }
}

/* Generators of different cache types take turns in one session. */
static void take_turns(const decoder_style *style)
{
    generation g;
    prony_generator *half = NULL;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    const size_t five = 5;
    int64_t a[NEW], b[NEW], wanted[2][NEW];
    options.cache_type = PRONY_CACHE_INT8;
    generation_ids(style, NULL, 5, wanted[0]);
    generation_ids(style, &options, 5, wanted[1]);
    begin(&g, style, PRONY_CACHE_FP32, 1, 1, 0);
    assert_int_equal(prony_generator_create(&half, g.session, &options, &g.error), PRONY_OK);
    generation_prompt(&g, decoder_words, &five);
    assert_int_equal(prony_generator_prompt(half, decoder_words, &five, &g.error), PRONY_OK);
    for (size_t n = 0; n < NEW; n++) {
        generation_next(&g, &a[n], 1, 1);
        assert_int_equal(prony_generator_next(half, &b[n], NULL, &g.error), PRONY_OK);
    }
    assert_memory_equal(a, wanted[0], sizeof a);
    assert_memory_equal(b, wanted[1], sizeof b);
    prony_generator_release(half);
    generation_end(&g);
}

static void test_turns(void **state)
{
    (void)state;
    for (size_t k = 0; k < STYLES; k++) take_turns(styles[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits_are_close),
                                       cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_figures),
                                       cmocka_unit_test(test_shared_figures),
                                       cmocka_unit_test(test_batches_and_rewinding),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
