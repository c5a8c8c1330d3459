/* Prompts compute the logits of their last position alone, where nothing else reads the others. */
#include "decoder_model.h"
#include "engine/session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t logits_of(const generation *g)
{
    size_t index = 0;
    while (strcmp(g->model->file->graph.outputs[index].name, "logits") != 0) index++;
    return index;
}

/* Rows of the output of logits after a prompt of 5 words and after two more, and the ids that follow. */
static void rows_of(const decoder_style *style, int64_t rows[2], float logits[VOCABULARY], int64_t ids[NEW])
{
    generation g;
    const prony_value *made;
    const size_t five = 5, two = 2;
    size_t count;
    generation_begin(&g, style, NULL);
    const size_t index = logits_of(&g);
    for (int k = 0; k < 2; k++) {
        generation_prompt(&g, decoder_words + 5 * k, k ? &two : &five);
        assert_int_equal(prony_session_output(g.session, index, &made, &g.error), PRONY_OK);
        rows[k] = made->shape.dim[1];
    }
    const float *scores = prony_generator_logits(g.generator, 0, &count);
    assert_int_equal(count, VOCABULARY);
    memcpy(logits, scores, VOCABULARY * sizeof *logits);
    generation_next(&g, ids, NEW, 1);
    generation_end(&g);
}

/* The last row of a plain run of the model without a cache. */
static void run_plain(const decoder_style *style, float logits[VOCABULARY])
{
    generation g = {0};
    int64_t ids[7], mask[7], positions[7];
    const prony_value *made;
    for (int64_t k = 0; k < 7; k++) {
        ids[k] = decoder_words[k];
        mask[k] = 1;
        positions[k] = k;
    }
    prony_value value = {.dtype = PRONY_INT64, .shape = {2, {1, 7}}};
    generation_load(&g, decoder_model(style), 1);
    const char *const names[] = {"input_ids", "attention_mask", "position_ids"};
    int64_t *const data[] = {ids, mask, positions};
    for (int k = 0; k < 3; k++) {
        value.data = data[k];
        assert_int_equal(prony_session_set_input(g.session, names[k], &value, &g.error), PRONY_OK);
    }
    assert_int_equal(prony_session_run(g.session, &g.error), PRONY_OK);
    assert_int_equal(prony_session_output(g.session, logits_of(&g), &made, &g.error), PRONY_OK);
    assert_int_equal(made->shape.dim[1], 7);
    memcpy(logits, (const float *)made->data + 6 * VOCABULARY, VOCABULARY * sizeof *logits);
    generation_end(&g);
}

static void test_only_the_last_row_is_computed(void **state)
{
    (void)state;
    const decoder_style *styles[] = {&decoder_optimum, &decoder_no_cache, &decoder_packed, &decoder_grouped};
    float wanted[VOCABULARY], got[VOCABULARY];
    int64_t ids[NEW], same[NEW];
    generation_ids(&decoder_no_cache, NULL, 7, same);
    run_plain(&decoder_no_cache, wanted);
    for (size_t k = 0; k < 4; k++) {
        int64_t rows[2];
        rows_of(styles[k], rows, got, ids);
        if (rows[0] != 1 || rows[1] != 1) fail_msg("style %zu: %d and %d rows", k, (int)rows[0], (int)rows[1]);
        for (size_t n = 0; n < VOCABULARY; n++) assert_float_equal(got[n], wanted[n], 1e-5);
        assert_memory_equal(ids, same, sizeof ids);
    }
}

/* A bias and a factor go with the product; another reader, or a mean over rows, needs all rows. */
static void test_nodes_behind_the_product(void **state)
{
    (void)state;
    const char *const tails[] = {"bias", "reader", "mean"};
    for (size_t k = 0; k < 3; k++) {
        decoder_style style = decoder_no_cache;
        int64_t rows[2], ids[NEW];
        float wanted[VOCABULARY], got[VOCABULARY];
        style.tail = tails[k];
        rows_of(&style, rows, got, ids);
        if (rows[0] != (k ? 5 : 1) || rows[1] != (k ? 7 : 1))
            fail_msg("%s: %d and %d rows", tails[k], (int)rows[0], (int)rows[1]);
        run_plain(&style, wanted);
        for (size_t n = 0; n < VOCABULARY; n++) assert_float_equal(got[n], wanted[n], 1e-5);
    }
}

/* With a shared cache, sequences of different lengths end in different rows of the first prompt. */
static void test_lengths_that_differ(void **state)
{
    (void)state;
    generation g;
    const prony_value *made;
    const size_t lengths[] = {6, 2}, same[] = {4, 4};
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.batch = 2;
    generation_begin(&g, &decoder_grouped, &options);
    generation_prompt(&g, decoder_words, lengths);
    assert_int_equal(prony_session_output(g.session, 2, &made, &g.error), PRONY_OK);
    assert_int_equal(made->shape.dim[1], 6);
    assert_int_equal(prony_generator_rewind(g.generator, 0, &g.error), PRONY_OK);
    generation_prompt(&g, decoder_words, same);
    assert_int_equal(prony_session_output(g.session, 2, &made, &g.error), PRONY_OK);
    assert_int_equal(made->shape.dim[1], 1);
    generation_end(&g);
}

/* The caller's runs between those of a generator compute all rows, also with the same shapes; a second generator finds
 * what the first one derived. */
static void test_the_session_afterwards(void **state)
{
    (void)state;
    generation g;
    int64_t first[NEW], second[NEW];
    const size_t five = 5;
    const prony_value *made;
    generation_begin(&g, &decoder_no_cache, NULL);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, first, NEW, 1);
    const char *const names[] = {"input_ids", "attention_mask", "position_ids"};
    int64_t ones[5] = {1, 1, 1, 1, 1};
    const prony_value value = {.dtype = PRONY_INT64, .shape = {2, {1, 5}}, .data = ones};
    for (int k = 0; k < 3; k++)
        assert_int_equal(prony_session_set_input(g.session, names[k], &value, &g.error), PRONY_OK);
    assert_int_equal(prony_session_run(g.session, &g.error), PRONY_OK);
    assert_int_equal(prony_session_output(g.session, 0, &made, &g.error), PRONY_OK);
    assert_int_equal(made->shape.dim[1], 5); /* while the generator is there */
    prony_generator_release(g.generator);
    g.generator = NULL;
    assert_int_equal(prony_generator_create(&g.generator, g.session, NULL, &g.error), PRONY_OK);
    generation_prompt(&g, decoder_words, &five);
    generation_next(&g, second, NEW, 1);
    assert_memory_equal(first, second, sizeof first);
    generation_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_last_row_is_computed),
        cmocka_unit_test(test_nodes_behind_the_product),
        cmocka_unit_test(test_lengths_that_differ),
        cmocka_unit_test(test_the_session_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
