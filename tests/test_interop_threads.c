/* Several workers against one, to the bit: random models in orders drawn from seeds, with their dead bytes filled, and by real
 * threads; what a failing branch, a pool and sharing a model come to; how many threads there ever are. Runs under
 * ThreadSanitizer as well.
 *
 *     test_interop_threads --seed 7 --count 100000    more models, from seed 7 on
 */
#include "base/team.h"
#include "engine/schedule.h"
#include "tests/graph_run.h"
#include "tests/model_run.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { USUAL_COUNT = 200 };
#else
enum { USUAL_COUNT = 1500 };
#endif

static uint64_t first_seed = 1, seed_count = USUAL_COUNT;

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
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        const graph_way ways[] = {
            {.name = "2 workers in drawn order", .threads = 1, .workers = 2, .runs = 3, .replay = 3 * seed},
            {.name = "4 workers in drawn order", .threads = 2, .workers = 4, .runs = 3, .replay = 3 * seed},
            {.name = "16 workers in drawn order", .threads = 1, .workers = 16, .runs = 3, .replay = 3 * seed}};
        agree(seed, ways, 3, &refused);
    }
    assert_true(refused * 10 <= seed_count);
}

static void threads_give_the_same_bits(void **state)
{
    (void)state;
    static const graph_way ways[] = {{.name = "2 workers", .threads = 1, .workers = 2, .runs = 3},
                                     {.name = "3 workers of 2 threads", .threads = 2, .workers = 3, .runs = 3},
                                     {.name = "2 workers of 2 threads that do not help", .threads = 2, .workers = 2, .runs = 3, .no_help = true},
                                     {.name = "several workers, nothing reused", .threads = 1, .workers = 2, .runs = 2, .no_reuse = true}};
    uint64_t refused = 0;
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) agree(seed, ways, 4, &refused);
    assert_true(refused * 10 <= seed_count);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) first_seed = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--count") == 0) seed_count = strtoull(argv[i + 1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_order_gives_the_same_bits),
                                       cmocka_unit_test(threads_give_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
