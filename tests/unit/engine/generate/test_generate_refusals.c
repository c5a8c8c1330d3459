/* Prompts, models and caches that a generator refuses, by name. */
#include "decoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void refused(const generation *g, prony_status got, prony_status wanted, const char *text)
{
    if (got != wanted || !strstr(g->error.message, text))
        fail_msg("status %d, not %d: '%s' without '%s'", (int)got, (int)wanted, g->error.message, text);
}

static void test_prompts_are_checked(void **state)
{
    (void)state;
    generation g;
    int64_t wrong[] = {3, VOCABULARY}, negative[] = {-1}, ids[POSITIONS], id;
    const size_t two = 2, one = 1, none = 0, many = POSITIONS + 1, five = 5;
    generation_begin(&g, &decoder_optimum, NULL);
    for (size_t k = 0; k < POSITIONS; k++) ids[k] = 1;
    refused(&g, prony_generator_next(g.generator, &id, NULL, &g.error), PRONY_INVALID_ARGUMENT, "no prompt");
    refused(&g, prony_generator_prompt(g.generator, wrong, &two, &g.error), PRONY_OUT_OF_RANGE,
            "decoder.onnx: input 'input_ids': id 16 (sequence 0, position 1) is not in the vocabulary: 'table' has 16 "
            "rows");
    refused(&g, prony_generator_prompt(g.generator, negative, &one, &g.error), PRONY_OUT_OF_RANGE, "id -1");
    refused(&g, prony_generator_prompt(g.generator, ids, &none, &g.error), PRONY_INVALID_ARGUMENT,
            "sequence 0 is empty");
    int64_t long_prompt[POSITIONS + 1] = {0};
    refused(&g, prony_generator_prompt(g.generator, long_prompt, &many, &g.error), PRONY_OUT_OF_RANGE,
            "33 ids behind 0 tokens exceeds max_length 32");
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, ids, POSITIONS - 5, 1);
    refused(&g, prony_generator_next(g.generator, &id, NULL, &g.error), PRONY_OUT_OF_RANGE, "end of context: all 32");
    assert_int_equal(prony_generator_rewind(g.generator, 5, &g.error), PRONY_OK);
    int64_t again[NEW];
    generation_next(&g, again, NEW, 1);
    assert_memory_equal(again, ids, sizeof again);
    generation_end(&g);
}

static void create_refused(model_builder *m, const prony_generator_options *options, prony_status status,
                           const char *text)
{
    generation g = {0};
    generation_load(&g, m, 1);
    refused(&g, prony_generator_create(&g.generator, g.session, options, &g.error), status, text);
    generation_end(&g);
}

static void test_models_are_checked(void **state)
{
    (void)state;
    model_builder *m = mb_begin(17);
    mb_input(m, "image", PRONY_FLOAT32, "N,3,8,8");
    mb_node(m, "Relu", "image", "y", "");
    mb_output(m, "y", PRONY_FLOAT32, "N,3,8,8");
    create_refused(m, NULL, PRONY_INVALID_MODEL, "not a decoder: no input of token ids");
    m = mb_begin(17);
    mb_input(m, "input_ids", PRONY_INT64, "N,S");
    mb_node(m, "Neg", "input_ids", "y", "");
    mb_output(m, "y", PRONY_INT64, "N,S");
    create_refused(m, NULL, PRONY_INVALID_MODEL, "not a decoder: no output of logits");
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.max_length = POSITIONS + 1;
    create_refused(decoder_model(&decoder_optimum), &options, PRONY_OUT_OF_RANGE,
                   "max_length 33: the model has 32 positions (places)");
    options = (prony_generator_options)PRONY_GENERATOR_OPTIONS_INIT;
    options.position_ids = "nowhere";
    create_refused(decoder_model(&decoder_optimum), &options, PRONY_INVALID_ARGUMENT, "input 'nowhere' does not exist");
    options = (prony_generator_options)PRONY_GENERATOR_OPTIONS_INIT;
    options.caches = &(prony_cache_names){"x*", "y*"};
    options.cache_count = 1;
    create_refused(decoder_model(&decoder_optimum), &options, PRONY_INVALID_ARGUMENT,
                   "no input and output match the cache 'x*=y*'");
    options = (prony_generator_options)PRONY_GENERATOR_OPTIONS_INIT;
    options.sampling.top_p = 2;
    create_refused(decoder_model(&decoder_optimum), &options, PRONY_INVALID_ARGUMENT, "top_p 2: wanted 0 to 1");
}

/* A cache that grows by two rows a token is found after the first run; the message names it. */
static void test_caches_of_a_wrong_shape(void **state)
{
    (void)state;
    generation g;
    decoder_style twice = decoder_optimum;
    const size_t count = 3;
    twice.cache = TWICE;
    twice.no_mask = true;
    generation_begin(&g, &twice, NULL);
    refused(&g, prony_generator_prompt(g.generator, decoder_words, &count, &g.error), PRONY_SHAPE_MISMATCH,
            "cache output 'present.0.key' is float32[1, 2, 6, 4]; wanted float32[1, 2, 3, 4]");
    generation_end(&g);
}

static void test_lengths_need_mask_and_positions(void **state)
{
    (void)state;
    decoder_style bare = decoder_optimum;
    bare.no_mask = bare.no_positions = true;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 2;
    generation g;
    const size_t lengths[] = {3, 2}, same[] = {3, 3};
    int64_t ids[2 * NEW];
    generation_begin(&g, &bare, &options);
    refused(&g, prony_generator_prompt(g.generator, decoder_words, lengths, &g.error), PRONY_UNSUPPORTED,
            "need inputs attention_mask and position_ids");
    generation_prompt(&g, decoder_words, same);
    generation_next(&g, ids, NEW, 2);
    generation_end(&g);
}

/* Inputs that the generator does not feed are the caller's. */
static void test_other_inputs(void **state)
{
    (void)state;
    decoder_style with_states = decoder_optimum;
    with_states.encoder = true;
    generation g;
    const size_t count = 3;
    const float states[WIDTH] = {1, 2, 3};
    const prony_value value = {.dtype = PRONY_FLOAT32, .shape = {2, {1, WIDTH}}, .data = (void *)(uintptr_t)states};
    int64_t ids[NEW];
    generation_begin(&g, &with_states, NULL);
    assert_null(prony_generator_unfed_input(g.generator, 0));
    assert_string_equal(prony_generator_unfed_input(g.generator, 3), "encoder_hidden_states");
    refused(&g, prony_generator_prompt(g.generator, decoder_words, &count, &g.error), PRONY_INVALID_ARGUMENT,
            "input 'encoder_hidden_states' is not set");
    assert_int_equal(prony_session_set_input(g.session, "encoder_hidden_states", &value, &g.error), PRONY_OK);
    generation_prompt(&g, decoder_words, &count);
    generation_next(&g, ids, NEW, 1);
    generation_end(&g);
}

static void test_session_options(void **state)
{
    (void)state;
    generation g = {0};
    generation_load(&g, decoder_model(&decoder_optimum), 1);
    prony_session_release(g.session);
    const prony_dim dim = {"past", 8};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    options.max_dims = &dim;
    options.max_dim_count = 1;
    assert_int_equal(prony_session_create(&g.session, g.model, &options, &g.error), PRONY_OK);
    refused(&g, prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_INVALID_ARGUMENT,
            "the session has max_dims");
    const int64_t zeros[9 * WIDTH] = {0}; /* the refusal leaves the session its maximum */
    const prony_value past = {
        .dtype = PRONY_FLOAT32, .shape = {4, {1, HEADS, 9, HEAD}}, .data = (void *)(uintptr_t)zeros};
    refused(&g, prony_session_bind_input(g.session, "past_key_values.0.key", &past, &g.error), PRONY_OUT_OF_RANGE,
            "dimension 'past' (axis 2) is 9, but its maximum is 8");
    generation_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompts_are_checked),
        cmocka_unit_test(test_models_are_checked),
        cmocka_unit_test(test_caches_of_a_wrong_shape),
        cmocka_unit_test(test_lengths_need_mask_and_positions),
        cmocka_unit_test(test_other_inputs),
        cmocka_unit_test(test_session_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
