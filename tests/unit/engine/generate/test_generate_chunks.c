/* Prompts that are computed in chunks give the ids of whole prompts, by one plan for all whole chunks. */
#include "base/memory/alloc.h"
#include "decoder_model.h"
#include "engine/session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PROMPT = 17 };

static int64_t tokens[PROMPT * 2];

static int set_up(void **unused)
{
    (void)unused;
    for (int k = 0; k < PROMPT * 2; k++) tokens[k] = (k * k * 7 + 3 * k + 1) % VOCABULARY;
    return 0;
}

static void ids_by_chunks(const decoder_style *style, int64_t chunk, int64_t batch, int64_t *out)
{
    generation g;
    const size_t lengths[] = {PROMPT, PROMPT};
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.chunk = chunk;
    options.batch = batch;
    generation_begin(&g, style, &options);
    generation_prompt(&g, tokens, lengths);
    generation_next(&g, out, NEW, (size_t)batch);
    prony_generator_info info;
    prony_generator_get_info(g.generator, &info);
    assert_int_equal(info.length, PROMPT + NEW);
    generation_end(&g);
}

static void test_chunks_give_the_same_ids(void **state)
{
    (void)state;
    const decoder_style *styles[] = {&decoder_optimum, &decoder_no_cache, &decoder_packed, &decoder_grouped,
                                     &decoder_lengths};
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++)
        for (int64_t batch = 1; batch <= 2; batch++) {
            int64_t whole[2 * NEW], got[2 * NEW];
            ids_by_chunks(styles[k], 0, batch, whole);
            for (int64_t chunk = 1; chunk <= PROMPT + 1; chunk++) {
                ids_by_chunks(styles[k], chunk, batch, got);
                if (memcmp(got, whole, (size_t)batch * NEW * sizeof *got) != 0)
                    fail_msg("style %zu: chunks of %d give other ids", k, (int)chunk);
            }
        }
}

/* Of a first prompt the rest beside whole chunks has a plan, then all chunks share one, and so do all steps. Chunks
 * append to the cache, too. */
static void test_chunks_share_a_plan(void **state)
{
    (void)state;
    generation g;
    int64_t ids[4];
    const size_t many = PROMPT, five = 4;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    prony_generator_info info;
    options.chunk = 4;
    generation_begin(&g, &decoder_optimum, &options);
    generation_prompt(&g, tokens, &many);
    assert_int_equal(prony_session_preparations(g.session).planned, 2); /* 1 token, and 4 chunks of 4 */
    prony_generator_get_info(g.generator, &info);
    assert_int_equal(info.cache_copied_bytes, 0);
    generation_next(&g, ids, 3, 1);
    assert_int_equal(prony_session_preparations(g.session).planned, 3);
    assert_int_equal(prony_generator_rewind(g.generator, 13, &g.error), PRONY_OK);
    generation_prompt(&g, tokens + 13, &five); /* 1 token waits: a step, and a chunk */
    generation_next(&g, ids, 3, 1);
    const prony_preparations made = prony_session_preparations(g.session);
    assert_int_equal(made.planned, 3);
    prony_generator_get_info(g.generator, &info);
    assert_int_equal(info.cache_copied_bytes, 0);
    generation_end(&g);
}

/* Sequences of different lengths: pads on the left may be cut; with a shared cache the first prompt is not. */
static void test_lengths_that_differ(void **state)
{
    (void)state;
    const decoder_style *styles[] = {&decoder_optimum, &decoder_packed, &decoder_grouped, &decoder_lengths};
    const size_t lengths[] = {PROMPT, 6};
    for (size_t k = 0; k < 4; k++) {
        int64_t ids[2][2 * NEW];
        for (int cut = 0; cut < 2; cut++) {
            generation g;
            prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
            options.batch = 2;
            options.chunk = cut ? 5 : 0;
            generation_begin(&g, styles[k], &options);
            generation_prompt(&g, tokens, lengths);
            generation_next(&g, ids[cut], NEW, 2);
            generation_end(&g);
        }
        if (memcmp(ids[0], ids[1], sizeof ids[0]) != 0) fail_msg("style %zu: chunks give other ids", k);
    }
}

static void test_a_chunk_below_zero_is_refused(void **state)
{
    (void)state;
    generation g = {0};
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.chunk = -1;
    generation_load(&g, decoder_model(&decoder_optimum), 1);
    assert_int_equal(prony_generator_create(&g.generator, g.session, &options, &g.error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(g.error.message, "chunk -1: wanted 0 (all) or more"));
    generation_end(&g);
}

/* A prompt that fails in any of its chunks leaves the tokens before it, and the ids that follow them. */
static void test_a_failure_in_a_chunk(void **state)
{
    (void)state;
    const size_t five = 5, many = PROMPT - 5;
    int64_t wanted[NEW], got[NEW];
    generation g;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.chunk = 4;
    bool failed = true;
    int partly = 0;
    generation_begin(&g, &decoder_optimum, &options);
    generation_prompt(&g, tokens, &five);
    generation_next(&g, wanted, NEW, 1);
    generation_end(&g);
    for (uint64_t n = 1; failed; n++) {
        generation_begin(&g, &decoder_optimum, &options);
        generation_prompt(&g, tokens, &five);
        prn_alloc_fail_at(n);
        const prony_status status = prony_generator_prompt(g.generator, tokens + 5, &many, &g.error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK) {
            prony_generator_info info;
            prony_generator_get_info(g.generator, &info);
            assert_int_equal(info.length, 5);
            partly += info.computed != 5;
            generation_next(&g, got, NEW, 1);
            assert_memory_equal(got, wanted, sizeof got);
        }
        generation_end(&g);
    }
    assert_true(partly > 0); /* some fail behind the first chunk */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_give_the_same_ids), cmocka_unit_test(test_chunks_share_a_plan),
        cmocka_unit_test(test_lengths_that_differ),      cmocka_unit_test(test_a_chunk_below_zero_is_refused),
        cmocka_unit_test(test_a_failure_in_a_chunk),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
