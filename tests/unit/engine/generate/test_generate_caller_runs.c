/* The caller's runs of the session between those of a generator: they write nothing to its cache, take inputs of any
 * extents, and the next ids are those without them. */
#include "decoder_model.h"
#include "engine/session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A run of the session with `rows` past rows in tensors of exactly that size; the logits of its one token. */
static void caller_runs(generation *g, const decoder_style *style, int64_t rows, float logits[VOCABULARY])
{
    const size_t caches = style->past[1] ? 2 : 1;
    const int64_t pair = style->cache == PACKED ? 2 : 1;
    const prony_value *made;
    int64_t id = 5, place = 7, *mask = malloc((size_t)(rows + 1) * sizeof *mask);
    float *past[2];
    assert_non_null(mask);
    for (int64_t k = 0; k <= rows; k++) mask[k] = 1;
    const prony_value ids = {.dtype = PRONY_INT64, .shape = {2, {1, 1}}, .data = &id};
    const prony_value places = {.dtype = PRONY_INT64, .shape = {2, {1, 1}}, .data = &place};
    const prony_value keys = {.dtype = PRONY_INT64, .shape = {2, {1, rows + 1}}, .data = mask};
    assert_int_equal(prony_session_bind_input(g->session, "input_ids", &ids, &g->error), PRONY_OK);
    assert_int_equal(prony_session_bind_input(g->session, "position_ids", &places, &g->error), PRONY_OK);
    assert_int_equal(prony_session_bind_input(g->session, "attention_mask", &keys, &g->error), PRONY_OK);
    for (size_t c = 0; c < caches; c++) {
        const size_t count = (size_t)(pair * HEADS * rows * HEAD);
        prony_value value = {.dtype = PRONY_FLOAT32, .shape = {4, {1, HEADS, rows, HEAD}}};
        if (style->cache == PACKED) value.shape = (prony_shape){5, {2, 1, HEADS, rows, HEAD}};
        value.data = past[c] = malloc(count * sizeof(float));
        assert_non_null(past[c]);
        for (size_t k = 0; k < count; k++) past[c][k] = (float)(k % 7) / 4 - (float)c;
        assert_int_equal(prony_session_bind_input(g->session, style->past[c], &value, &g->error), PRONY_OK);
    }
    if (prony_session_run(g->session, &g->error) != PRONY_OK) fail_msg("%s", g->error.message);
    for (size_t k = 0; k < g->model->file->graph.output_count; k++) {
        if (strcmp(g->model->file->graph.outputs[k].name, "logits") != 0) continue;
        assert_int_equal(prony_session_output(g->session, k, &made, &g->error), PRONY_OK);
        memcpy(logits, made->data, VOCABULARY * sizeof *logits);
    }
    for (size_t c = 0; c < caches; c++) {
        assert_int_equal(prony_session_reset_input(g->session, style->past[c], &g->error), PRONY_OK);
        free(past[c]);
    }
    assert_int_equal(prony_session_reset_input(g->session, "attention_mask", &g->error), PRONY_OK);
    assert_int_equal(prony_session_reset_input(g->session, "input_ids", &g->error), PRONY_OK);
    assert_int_equal(prony_session_reset_input(g->session, "position_ids", &g->error), PRONY_OK);
    free(mask);
}

static void check_style(const decoder_style *style, int64_t rows, int64_t chunk)
{
    generation g;
    const size_t five = 5;
    int64_t wanted[NEW], got[NEW];
    float fresh[VOCABULARY], between[VOCABULARY];
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.chunk = chunk;
    generation_ids(style, NULL, 5, wanted);
    generation_load(&g, decoder_model(style), 1);
    caller_runs(&g, style, rows, fresh);
    if (prony_generator_create(&g.generator, g.session, &options, &g.error) != PRONY_OK)
        fail_msg("%s", g.error.message);
    caller_runs(&g, style, rows, between);
    generation_prompt(&g, decoder_words, &five);
    for (size_t n = 0; n < NEW; n++) {
        caller_runs(&g, style, rows, between);
        for (size_t k = 0; k < VOCABULARY; k++) assert_float_equal(between[k], fresh[k], 1e-5);
        generation_next(&g, got + n, 1, 1);
    }
    for (size_t n = 0; n < NEW; n++)
        if (got[n] != wanted[n])
            fail_msg("%lld rows: id %zu is %lld, not %lld", (long long)rows, n, (long long)got[n],
                     (long long)wanted[n]);
    generation_end(&g);
}

/* As many rows as steps have, and more than the generator's max_length. */
static void test_a_growing_cache(void **state)
{
    (void)state;
    for (int64_t rows = 4; rows < 13; rows++) check_style(&decoder_optimum, rows, 0);
    check_style(&decoder_optimum, POSITIONS + 9, 0);
    check_style(&decoder_optimum, 7, 2);
    check_style(&decoder_packed, 6, 0);
    check_style(&decoder_packed, POSITIONS + 9, 0);
}

static void test_a_shared_cache(void **state)
{
    (void)state;
    check_style(&decoder_grouped, POSITIONS, 0);
}

/* Two generators of one session take turns; each has dimensions of its own that grow. */
static void test_two_generators(void **state)
{
    (void)state;
    generation g;
    prony_generator *other;
    const size_t five = 5;
    int64_t wanted[NEW], got[NEW], same[NEW];
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.max_length = 5 + NEW;
    generation_ids(&decoder_optimum, NULL, 5, wanted);
    generation_begin(&g, &decoder_optimum, NULL);
    assert_int_equal(prony_generator_create(&other, g.session, &options, &g.error), PRONY_OK);
    generation_prompt(&g, decoder_words, &five);
    assert_int_equal(prony_generator_prompt(other, decoder_words, &five, &g.error), PRONY_OK);
    for (size_t n = 0; n < NEW; n++) {
        generation_next(&g, got + n, 1, 1);
        if (n < NEW / 2) assert_int_equal(prony_generator_next(other, same + n, NULL, &g.error), PRONY_OK);
        if (n == NEW / 2) prony_generator_release(other);
    }
    assert_memory_equal(got, wanted, sizeof wanted);
    assert_memory_equal(same, wanted, sizeof wanted / 2);
    generation_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_growing_cache),
        cmocka_unit_test(test_a_shared_cache),
        cmocka_unit_test(test_two_generators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
