/* Several workers against one, to the bit: random models in orders drawn from seeds, with their dead bytes filled, and
 * by real threads; and the maximum-weight antichain of steps that may run side by side. Runs under ThreadSanitizer as
 * well.
 *
 *     test_interop_random_threads --seed 7 --count 100000    more models, from seed 7 on */
#include "failure_trace.h"
#include "engine/plan/planner.h"
#include "engine/plan/step_graph.h"
#include "tests/support/seed_options.h"
#include "tests/support/graph_run.h"
#include "tests/support/plan_replay.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) ||               \
    __has_feature(thread_sanitizer)
enum { USUAL_COUNT = 200 };
#else
enum { USUAL_COUNT = 1500 };
#endif

static seed_options options = {.first = 1, .count = USUAL_COUNT};

/* ---- random models ---- */

static const graph_way ONE = {.name = "one worker", .threads = 1, .runs = 1};

static void agree(uint64_t seed, const graph_way *ways, size_t count, uint64_t *refused)
{
    random_graph *g = random_graph_make(seed, RG_ANY);
    graph_model m;
    graph_outputs one = {0};
    char text[PRONY_ERROR_MESSAGE_BYTES + 64] = "";
    bool open = graph_open(&m, g) == PRONY_OK;
    if (open) graph_run(&m, &ONE, &one);
    for (size_t w = 0; open && w < count; w++) {
        graph_outputs several = {0};
        graph_run(&m, &ways[w], &several);
        bool same = several.status == one.status;
        if (!same) snprintf(text, sizeof text, "%.400s | %.400s", one.message, several.message);
        if (same && one.status == PRONY_OK) same = graph_same(&one, &several, text, sizeof text);
        if (same && one.status != PRONY_OK && strcmp(one.message, several.message) != 0)
            same = false, snprintf(text, sizeof text, "%.400s | %.400s", one.message, several.message);
        graph_outputs_free(&several);
        if (same) continue;
        random_graph_print(g, stdout);
        fail_msg("seed %" PRIu64 ": one worker and %s differ: %s", seed, ways[w].name, text);
    }
    *refused += one.status != PRONY_OK;
    graph_outputs_free(&one);
    graph_close(&m);
    random_graph_free(g);
}

static void any_order_gives_the_same_bits(void **state)
{
    (void)state;
    uint64_t refused = 0;
    for (uint64_t seed = options.first; seed < options.first + options.count; seed++) {
        const graph_way ways[] = {
            {.name = "2 workers in drawn order", .threads = 1, .workers = 2, .runs = 3, .replay = 3 * seed},
            {.name = "4 workers in drawn order", .threads = 2, .workers = 4, .runs = 3, .replay = 3 * seed},
            {.name = "16 workers in drawn order", .threads = 1, .workers = 16, .runs = 3, .replay = 3 * seed}};
        agree(seed, ways, 3, &refused);
    }
    assert_true(refused * 10 <= options.count);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    static const graph_way ways[] = {
        {.name = "2 workers", .threads = 1, .workers = 2, .runs = 3},
        {.name = "3 workers of 2 threads", .threads = 2, .workers = 3, .runs = 3},
        {.name = "2 workers of 2 threads that do not help",
         .threads = 2,
         .workers = 2,
         .runs = 3,
         .no_work_stealing = true},
        {.name = "several workers, nothing reused", .threads = 1, .workers = 2, .runs = 2, .no_reuse = true}};
    uint64_t refused = 0;
    for (uint64_t seed = options.first; seed < options.first + options.count / 3; seed++)
        agree(seed, ways, 4, &refused);
    assert_true(refused * 10 <= options.count);
}

/* ---- the maximum-weight antichain ---- */

enum { FEW = 12 };

static bool precedes(const void *argument, uint32_t a, uint32_t b)
{
    return ((const bool *)argument)[a * FEW + b];
}

/* Against every subset. */
static void the_heaviest_set_is_found(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < 400; round++) {
        SCENARIO(round);
        bool before[FEW * FEW] = {false};
        uint64_t bytes[FEW], most = 0, found = 0;
        uint32_t number[FEW];
        prony_error error = {0};
        for (uint32_t i = 0; i < FEW; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            number[i] = i;
            bytes[i] = 64 * (1 + (random >> 40) % 50);
            for (uint32_t j = 0; j < i; j++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
                if ((int)((random >> 40) % 100) < round % 60)
                    for (uint32_t k = 0; k < FEW; k++) before[k * FEW + i] |= k == j || before[k * FEW + j];
            }
        }
        for (unsigned set = 0; set < 1u << FEW; set++) {
            uint64_t sum = 0;
            for (uint32_t i = 0; i < FEW; i++) {
                if (!(set >> i & 1)) continue;
                sum += bytes[i];
                for (uint32_t j = 0; j < FEW; j++)
                    if (set >> j & 1 && before[j * FEW + i]) sum = 0, i = FEW, j = FEW;
            }
            if (sum > most) most = sum;
        }
        const prn_buffer_order order = {precedes, before, 1};
        assert_int_equal(prn_max_weight_antichain(bytes, number, FEW, &order, &found, &error), PRONY_OK);
        assert_int_equal(found, most);
    }
}

int main(int argc, char **argv)
{
    const int status = seed_options_read(&options, argc, argv, NULL, NULL);
    if (status >= 0) return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order_gives_the_same_bits),
                                       cmocka_unit_test(threads_give_the_same_bits),
                                       cmocka_unit_test(the_heaviest_set_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
