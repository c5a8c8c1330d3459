/* Generators over decoders of every naming convention: the ids of the model without a cache; batches, rewinding,
 * figures. */
#include "base/memory/alloc.h"
#include "decoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_conventions_give_the_ids_of_the_model_without_cache(void **state)
{
    (void)state;
    const prony_cache_names named = {"c_*_a", "d_*_b"};
    prony_generator_options given = PRONY_GENERATOR_OPTIONS_INIT;
    given.caches = &named;
    given.cache_count = 1;
    const decoder_style styles[] = {
        decoder_optimum,
        {.cache = TWO_TENSORS,
         .past = {"past_key_values.0.decoder.key", "past_key_values.0.decoder.value"},
         .present = {"present.0.decoder.key", "present.0.decoder.value"}},
        {.cache = TWO_TENSORS, .past = {"past_key_0", "past_value_0"}, .present = {"present_key_0", "present_value_0"}},
        {.cache = TWO_TENSORS,
         .past = {"past_key_values.0.key", "past_key_values.0.value"},
         .present = {"present_key_values.0.key", "present_key_values.0.value"}},
        decoder_packed,
        {.cache = TWO_TENSORS, .past = {"k_in", "v_in"}, .present = {"k_out", "v_out"}}, /* found by the graph */
        decoder_grouped,
        decoder_lengths,
        {.cache = TWO_TENSORS,
         .past = {"past_key_values.0.key", "past_key_values.0.value"},
         .present = {"present.0.key", "present.0.value"},
         .use_cache = true},
        {.cache = TWO_TENSORS, .past = {"c_0_a", "c_1_a"}, .present = {"d_0_b", "d_1_b"}}}; /* named by the caller */
    const size_t count = sizeof styles / sizeof *styles;
    int64_t wanted[NEW], got[NEW];
    generation_ids(&decoder_no_cache, NULL, 5, wanted);
    for (size_t k = 0; k < count; k++) {
        generation_ids(&styles[k], k + 1 == count ? &given : NULL, 5, got);
        for (size_t n = 0; n < NEW; n++)
            if (got[n] != wanted[n])
                fail_msg("style %zu: id %zu is %lld, not %lld", k, n, (long long)got[n], (long long)wanted[n]);
    }
}

/* A mask with rows hides later keys itself: floats by the least number, bools by false. Lengths, chunks and models
 * without a cache keep their ids. */
static void test_masks_with_rows(void **state)
{
    (void)state;
    const prony_dtype types[] = {PRONY_FLOAT32, PRONY_BOOL};
    const int64_t both[] = {3, 1, 4, 1, 5, 9, 3, 1, 4};
    const size_t lengths[] = {6, 3};
    for (int k = 0; k < 4; k++) {
        decoder_style style = k / 2 ? decoder_no_cache : decoder_optimum;
        int64_t wanted[NEW], got[NEW], together[2][2 * NEW];
        prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
        generation_ids(&style, NULL, 5, wanted);
        options.batch = 2;
        for (int wide = 0; wide < 2; wide++) {
            generation g;
            style.wide_mask = wide ? types[k % 2] : PRONY_UNDEFINED;
            generation_begin(&g, &style, &options);
            generation_prompt(&g, both, lengths);
            generation_next(&g, together[wide], NEW, 2);
            generation_end(&g);
        }
        assert_memory_equal(together[1], together[0], sizeof together[0]);
        options.batch = 1;
        for (options.chunk = 0; options.chunk < 4; options.chunk++) {
            generation_ids(&style, &options, 5, got);
            assert_memory_equal(got, wanted, sizeof got);
        }
    }
}

static void test_figures(void **state)
{
    (void)state;
    generation g;
    prony_generator_info info;
    int64_t ids[NEW];
    const size_t count = 5;
    generation_begin(&g, &decoder_optimum, NULL);
    generation_prompt(&g, decoder_words, &count);
    generation_next(&g, ids, NEW, 1);
    prony_generator_get_info(g.generator, &info);
    assert_int_equal(info.kind, PRONY_CACHE_GROWING);
    assert_string_equal(info.convention, "past_key_values.0.key -> present.0.key");
    assert_int_equal(info.max_length, POSITIONS); /* rows of the table of positions */
    assert_int_equal(info.vocabulary, VOCABULARY);
    assert_int_equal(info.length, 5 + NEW);
    assert_int_equal(info.computed, 5 + NEW - 1);
    assert_int_equal(info.cache_count, 2);
    assert_int_equal(info.cache_live_bytes, 2 * WIDTH * sizeof(float) * (5 + NEW - 1));
    assert_int_equal(info.cache_copied_bytes, 0); /* steps append to the cache */
    assert_int_equal(info.cache_bytes, 2 * WIDTH * sizeof(float) * POSITIONS);
    size_t scores;
    assert_non_null(prony_generator_logits(g.generator, 0, &scores));
    assert_int_equal(scores, VOCABULARY);
    assert_null(prony_generator_logits(g.generator, 1, &scores));
    generation_end(&g);
}

/* The purpose of each input, as another engine's loop would ask for it. */
static void test_inputs_are_described(void **state)
{
    (void)state;
    generation g;
    prony_generator_feed feed;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 3;
    generation_begin(&g, &decoder_grouped, &options);
    const char *const roles[] = {"ids", "mask", "positions", "cache", "cache"};
    for (size_t i = 0; i < 5; i++) {
        assert_true(prony_generator_input(g.generator, i, &feed));
        assert_string_equal(feed.role, roles[i]);
        if (i < 3) continue;
        assert_true(feed.shared && feed.output == i - 3);
        assert_true(feed.shape.rank == 4 && feed.shape.dim[0] == 3 && feed.shape.dim[2] == -1 &&
                    feed.shape.dim[3] == HEAD);
    }
    assert_false(prony_generator_input(g.generator, 5, &feed));
    assert_int_equal(prony_generator_logits_output(g.generator), 2);
    generation_end(&g);
    decoder_style with_states = decoder_optimum;
    with_states.encoder = true;
    generation_begin(&g, &with_states, NULL);
    assert_true(prony_generator_input(g.generator, 3, &feed));
    assert_null(feed.role);
    assert_true(prony_generator_input(g.generator, 4, &feed));
    assert_false(feed.shared);
    generation_end(&g);
}

/* A merged decoder: one plan for the prompt's branch, and one for all steps, which append to the cache. */
static void test_merged_decoders(void **state)
{
    (void)state;
    decoder_style merged = decoder_optimum;
    merged.merged = true;
    int64_t wanted[NEW], got[NEW];
    generation g;
    prony_generator_info info;
    const size_t five = 5;
    generation_ids(&decoder_no_cache, NULL, five, wanted);
    generation_begin(&g, &merged, NULL);
    for (int k = 0; k < 2; k++) {
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, got, NEW, 1);
        assert_memory_equal(got, wanted, sizeof got);
        prony_generator_get_info(g.generator, &info);
        assert_int_equal(info.cache_copied_bytes, 0);
        assert_int_equal(prony_generator_rewind(g.generator, 0, &g.error), PRONY_OK);
    }
    const prony_preparations made = prony_session_preparations(g.session);
    assert_int_equal(made.planned, 2);
    assert_true(made.respecialized >= 2 * (NEW - 1) - 1);
    generation_end(&g);
}

/* Rows of earlier tokens that a step copies: none where Attention or GroupQueryAttention appends to the cache. */
static void test_copied_bytes(void **state)
{
    (void)state;
    const decoder_style styles[] = {decoder_optimum, decoder_grouped, decoder_packed};
    const uint64_t wanted[] = {0, 0, 2 * WIDTH * sizeof(float) * 6};
    for (size_t k = 0; k < 3; k++) {
        generation g;
        prony_generator_info info;
        int64_t ids[3];
        const size_t count = 5;
        generation_begin(&g, &styles[k], NULL);
        generation_prompt(&g, decoder_words, &count);
        generation_next(&g, ids, 3, 1);
        prony_generator_get_info(g.generator, &info);
        assert_int_equal(info.cache_copied_bytes, wanted[k]);
        assert_int_equal(info.cache_bytes, 2 * WIDTH * sizeof(float) * POSITIONS * (wanted[k] ? 2 : 1));
        generation_end(&g);
    }
}

/* Rows that anything but attention reads as well are not appended to: every step copies them, to the same ids. */
static void test_near_misses_of_appending(void **state)
{
    (void)state;
    const char *const readers[] = {"present", "past"};
    int64_t wanted[NEW], got[NEW];
    generation_ids(&decoder_no_cache, NULL, 5, wanted);
    for (size_t k = 0; k < 2; k++) {
        decoder_style watched = decoder_optimum;
        generation g;
        prony_generator_info info;
        const size_t count = 5;
        watched.peek = readers[k];
        generation_begin(&g, &watched, NULL);
        generation_prompt(&g, decoder_words, &count);
        generation_next(&g, got, NEW, 1);
        prony_generator_get_info(g.generator, &info);
        assert_memory_equal(got, wanted, sizeof got);
        assert_int_equal(info.cache_copied_bytes, 2 * WIDTH * sizeof(float) * (5 + NEW - 2));
        generation_end(&g);
    }
}

static void test_steps_bind_and_plan_once(void **state)
{
    (void)state;
    const decoder_style styles[] = {decoder_optimum, decoder_no_cache, decoder_packed, decoder_grouped};
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
        generation g;
        int64_t ids[NEW];
        const size_t count = 5;
        generation_begin(&g, &styles[k], NULL);
        generation_prompt(&g, decoder_words, &count);
        generation_next(&g, ids, NEW, 1);
        const prony_preparations made = prony_session_preparations(g.session);
        if (made.bound > 3 || made.planned != 2 || made.respecialized != NEW - 1)
            fail_msg("style %zu: bound %llu times, planned %llu, respecialized %llu", k, (unsigned long long)made.bound,
                     (unsigned long long)made.planned, (unsigned long long)made.respecialized);
        generation_end(&g);
    }
}

/* Two sequences of different lengths give the ids that each gives alone. */
static void test_batches(void **state)
{
    (void)state;
    const decoder_style styles[] = {decoder_optimum, decoder_no_cache, decoder_packed, decoder_grouped,
                                    decoder_lengths};
    const int64_t both[] = {3, 1, 4, 1, 5, 9, 3, 1, 4};
    const size_t lengths[] = {6, 3};
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 2;
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
        int64_t alone[2][NEW], together[NEW][2];
        generation g;
        generation_ids(&styles[k], NULL, 6, alone[0]);
        generation_ids(&styles[k], NULL, 3, alone[1]);
        generation_begin(&g, &styles[k], &options);
        generation_prompt(&g, both, lengths);
        generation_next(&g, together[0], NEW, 2);
        for (size_t n = 0; n < NEW; n++)
            for (size_t b = 0; b < 2; b++)
                if (together[n][b] != alone[b][n]) fail_msg("style %zu: sequence %zu, id %zu differs", k, b, n);
        generation_end(&g);
    }
}

/* Tokens that are rewound and given again leave no trace, and prompts may follow new tokens. */
static void test_rewind(void **state)
{
    (void)state;
    const decoder_style *styles[] = {&decoder_optimum, &decoder_no_cache, &decoder_grouped};
    for (size_t k = 0; k < 3; k++) {
        generation g;
        int64_t first[NEW], again[NEW], other[4], wanted[NEW];
        const size_t five = 5, two = 2;
        generation_ids(styles[k], NULL, 7, wanted);
        generation_begin(&g, styles[k], NULL);
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, first, NEW, 1);
        assert_int_equal(prony_generator_rewind(g.generator, 7, &g.error), PRONY_OK);
        generation_next(&g, again, NEW - 2, 1);
        for (size_t n = 0; n + 2 < NEW; n++) assert_int_equal(again[n], first[n + 2]);
        assert_int_equal(prony_generator_rewind(g.generator, 5, &g.error), PRONY_OK);
        generation_prompt(&g, decoder_words + 5, &two);
        generation_next(&g, again, NEW, 1);
        assert_memory_equal(again, wanted, sizeof wanted);
        assert_int_equal(prony_generator_rewind(g.generator, 0, &g.error), PRONY_OK);
        assert_int_equal(prony_generator_next(g.generator, other, NULL, &g.error), PRONY_INVALID_ARGUMENT);
        generation_prompt(&g, decoder_words, &five);
        generation_next(&g, again, NEW, 1);
        assert_memory_equal(again, first, sizeof first);
        assert_int_equal(prony_generator_rewind(g.generator, 99, &g.error), PRONY_OUT_OF_RANGE);
        generation_end(&g);
    }
}

/* Every allocation of a generator's life fails once: an error each time, and nothing leaks or breaks. */
static void test_faults(void **state)
{
    (void)state;
    int64_t wanted[NEW];
    generation_ids(&decoder_optimum, NULL, 5, wanted);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        generation g = {0};
        int64_t ids[3];
        const size_t count = 5;
        generation_load(&g, decoder_model(&decoder_optimum), 1);
        prn_alloc_fail_at(n);
        prony_status status = prony_generator_create(&g.generator, g.session, NULL, &g.error);
        if (status == PRONY_OK) status = prony_generator_prompt(g.generator, decoder_words, &count, &g.error);
        for (size_t k = 0; k < 3 && status == PRONY_OK; k++)
            status = prony_generator_next(g.generator, &ids[k], NULL, &g.error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) assert_int_equal(status, PRONY_OK);
        if (status == PRONY_OK) assert_memory_equal(ids, wanted, sizeof ids);
        generation_end(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conventions_give_the_ids_of_the_model_without_cache),
        cmocka_unit_test(test_masks_with_rows),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_inputs_are_described),
        cmocka_unit_test(test_merged_decoders),
        cmocka_unit_test(test_copied_bytes),
        cmocka_unit_test(test_near_misses_of_appending),
        cmocka_unit_test(test_steps_bind_and_plan_once),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
