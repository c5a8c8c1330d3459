/* The ids that a generator chooses: sampling, its frequencies, threads, stop ids. */
#include "decoder_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_sampling(void **state)
{
    (void)state;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    int64_t greedy[NEW], first[NEW], again[NEW];
    generation_ids(&decoder_optimum, NULL, 5, greedy);
    options.sampling = (prony_sampling){.temperature = 2, .seed = 1};
    generation_ids(&decoder_optimum, &options, 5, first);
    generation_ids(&decoder_optimum, &options, 5, again);
    assert_memory_equal(first, again, sizeof first);
    options.sampling.seed = 2;
    generation_ids(&decoder_optimum, &options, 5, again);
    assert_memory_not_equal(first, again, sizeof first);
    const prony_sampling narrow[] = {{.temperature = 2, .top_k = 1},
                                     {.temperature = 2, .top_p = 1e-6},
                                     {.temperature = 2, .min_p = 1},
                                     {.temperature = 1e-4}};
    for (size_t k = 0; k < 4; k++) {
        options.sampling = narrow[k];
        generation_ids(&decoder_optimum, &options, 5, again);
        assert_memory_equal(again, greedy, sizeof greedy);
    }
    options.sampling = (prony_sampling){.repetition_penalty = 1e9};
    generation_ids(&decoder_optimum, &options, 1, again); /* as long as other ids are there, none comes twice */
    for (size_t n = 0; n < NEW; n++)
        for (size_t b = 0; b < n; b++) assert_int_not_equal(again[n], again[b]);
}

/* A draw falls on each id as often as its probability says. */
static void test_sampled_frequencies(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    generation g;
    const size_t count = 3;
    size_t scores;
    double sum = 0, shares[VOCABULARY] = {0};
    int64_t drawn[VOCABULARY] = {0}, id;
    generation_begin(&g, &decoder_optimum, NULL);
    generation_prompt(&g, decoder_words, &count);
    const float *logits = prony_generator_logits(g.generator, 0, &scores);
    float copy[VOCABULARY];
    memcpy(copy, logits, sizeof copy);
    for (size_t k = 0; k < scores; k++) sum += shares[k] = exp((double)copy[k] / 2);
    for (int n = 0; n < DRAWS; n++) {
        prony_sampling sampling = {.temperature = 2, .seed = (uint64_t)n * 77};
        assert_int_equal(prony_generator_set_sampling(g.generator, &sampling, &g.error), PRONY_OK);
        if (n) assert_int_equal(prony_generator_rewind(g.generator, 3, &g.error), PRONY_OK);
        generation_next(&g, &id, 1, 1);
        drawn[id]++;
    }
    for (size_t k = 0; k < scores; k++) {
        const double wanted = shares[k] / sum, got = (double)drawn[k] / DRAWS;
        if (fabs(got - wanted) > 5 * sqrt(wanted / DRAWS))
            fail_msg("id %zu: %.4f of the draws, not %.4f", k, got, wanted);
    }
    generation_end(&g);
}

static void test_ids_do_not_depend_on_threads(void **state)
{
    (void)state;
    int64_t ids[4][NEW];
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    options.sampling = (prony_sampling){.temperature = 1, .seed = 5};
    for (int threads = 1; threads <= 4; threads++) {
        generation g = {0};
        const size_t count = 8;
        generation_load(&g, decoder_model(&decoder_optimum), threads);
        assert_int_equal(prony_generator_create(&g.generator, g.session, &options, &g.error), PRONY_OK);
        generation_prompt(&g, decoder_words, &count);
        generation_next(&g, ids[threads - 1], NEW, 1);
        assert_memory_equal(ids[threads - 1], ids[0], sizeof ids[0]);
        generation_end(&g);
    }
}

static void test_stop_ids(void **state)
{
    (void)state;
    generation g;
    int64_t greedy[NEW], id = 0;
    prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
    const size_t count = 5;
    bool done = false;
    generation_ids(&decoder_optimum, NULL, count, greedy);
    options.stop_ids = &greedy[3];
    options.stop_count = 1;
    generation_begin(&g, &decoder_optimum, &options);
    generation_prompt(&g, decoder_words, &count);
    for (size_t n = 0; !done; n++) {
        assert_int_equal(prony_generator_next(g.generator, &id, &done, &g.error), PRONY_OK);
        assert_int_equal(id, greedy[n]);
        assert_true(n <= 3);
    }
    assert_int_equal(id, greedy[3]);
    assert_int_equal(prony_generator_next(g.generator, &id, &done, &g.error), PRONY_OK);
    assert_true(done && id == greedy[3]);
    generation_end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_sampled_frequencies),
        cmocka_unit_test(test_ids_do_not_depend_on_threads),
        cmocka_unit_test(test_stop_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
