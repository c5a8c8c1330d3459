/* Steps of a generator make no heap calls once the first ones have made their plan. */
#include "base/memory/alloc.h"
#include "decoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_steps_make_no_heap_calls(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const decoder_style *style;
    } styles[] = {{"growing", &decoder_optimum},
                  {"packed", &decoder_packed},
                  {"grouped", &decoder_grouped},
                  {"lengths", &decoder_lengths},
                  {"none", &decoder_no_cache}};
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++)
        for (int64_t batch = 1; batch <= 2; batch++) {
            generation g;
            int64_t ids[2 * NEW];
            const size_t lengths[] = {4, 4};
            prony_generator_options options = PRONY_GENERATOR_OPTIONS_INIT;
            options.batch = batch;
            options.sampling = (prony_sampling){.temperature = 1, .top_k = 5, .repetition_penalty = 1.1};
            generation_begin(&g, styles[k].style, &options);
            generation_prompt(&g, decoder_words, lengths);
            generation_next(&g, ids, 3, (size_t)batch);
            for (int n = 0; n < 8; n++) {
                const uint64_t before = prn_heap_calls();
                generation_next(&g, ids, 1, (size_t)batch);
                const uint64_t calls = prn_heap_calls() - before;
                if (calls) fail_msg("%s, batch %d, step %d: %d heap calls", styles[k].name, (int)batch, n, (int)calls);
            }
            generation_end(&g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_make_no_heap_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
