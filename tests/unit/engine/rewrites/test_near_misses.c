/* Near misses of the patterns of every float rewrite, each with rewrites against without
 * (tests/support/near_miss_check.h).
 *
 *     test_near_misses                            what `make check` runs
 *     test_near_misses --seed 7 --count 100000    more of them, from seed 7 on
 *     test_near_misses --seed 7 --seconds 3600    for an hour
 *     test_near_misses --print 7                  the graph of seed 7 as text
 *     test_near_misses --save 7 FILE              and as ONNX
 *
 * A graph that fails is made smaller while it still fails, and printed. PRONY_MAX_ISA chooses the kernels. */
#include "engine/rewrites/rewrite.h"
#include "tests/support/near_miss.h"
#include "tests/support/near_miss_check.h"
#include "tests/support/seed_options.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) ||               \
    __has_feature(thread_sanitizer)
enum { USUAL_COUNT = 400 };
#else
enum { USUAL_COUNT = 2500 };
#endif

/* That many graphs from seed 1 let every rewrite fire in its own pattern. */
enum { ALL_FIRE_COUNT = 2500, MOST_WRONG = 5 };

static seed_options options = {.first = 1, .count = USUAL_COUNT};

/* By rewrite: graphs that are its pattern, unchanged and changed, and in how many of them it fired. */
static uint64_t plain[NEAR_MISS_REWRITES], plain_fired[NEAR_MISS_REWRITES], missed[NEAR_MISS_REWRITES],
    missed_fired[NEAR_MISS_REWRITES];

static bool still_wrong(const random_graph *g, void *argument)
{
    char text[1024];
    (void)argument;
    return !near_miss_agrees(g, &(near_miss_tally){0}, text, sizeof text);
}

static void report_wrong(random_graph *g, const near_miss_info *info, char *text, size_t size)
{
    printf("seed %" PRIu64 ", %s", g->seed, info->rewrite);
    for (int i = 0; i < info->changes; i++) printf(", %s", info->change[i]);
    printf(": %s\n", text);
    near_miss_learn_shapes(g);
    random_graph_reduce(g, still_wrong, NULL);
    (void)near_miss_agrees(g, &(near_miss_tally){0}, text, size);
    printf("opset %d, ", (int)g->opset);
    random_graph_print(g, stdout);
    printf("now: %s\n", text);
    fflush(stdout);
}

static void count_fired(const near_miss_info *info, const uint64_t *before, const uint64_t *after)
{
    for (size_t k = 0; k < prn_rewrite_count(); k++) {
        if (strcmp(prn_rewrite_name(k), info->rewrite) != 0) continue;
        (info->changes ? missed : plain)[k]++;
        if (after[k] > before[k]) (info->changes ? missed_fired : plain_fired)[k]++;
    }
}

/* true: it agrees. Else the graph is made smaller and printed. */
static bool try_seed(uint64_t seed, near_miss_tally *tally)
{
    char text[1024] = "";
    near_miss_info info;
    random_graph *g = near_miss_make(seed, &info);
    const near_miss_tally before = *tally;
    const bool good = near_miss_agrees(g, tally, text, sizeof text);
    if (tally->refused > before.refused && getenv("PRONY_TEST_VERBOSE"))
        printf("seed %" PRIu64 " (%s, %d changes) %s\n", seed, info.rewrite, info.changes, text);
    count_fired(&info, before.fired, tally->fired);
    if (!good) report_wrong(g, &info, text, sizeof text);
    random_graph_free(g);
    return good;
}

static void every_rewrite_has_a_pattern(void **state)
{
    (void)state;
    const char *missing = near_miss_without_pattern();
    if (missing) fail_msg("rewrite and pattern do not meet: %s (tests/support/near_miss.c)", missing);
}

static void near_misses(void **state)
{
    (void)state;
    near_miss_tally t = {0};
    uint64_t wrong = 0, bare = 0;
    const double start = seed_options_now();
    for (uint64_t seed = options.first; seed_options_include(&options, seed, start); seed++) {
        wrong += !try_seed(seed, &t);
        if (wrong >= MOST_WRONG) break;
    }
    printf("%" PRIu64 " graphs of %" PRIu64 " nodes from seed %" PRIu64 ", %" PRIu64 " refused, %" PRIu64
           " without a float64 run, %" PRIu64 " wrong\n",
           t.models, t.nodes, options.first, t.refused, t.alone, wrong);
    for (size_t k = 0; k < prn_rewrite_count(); k++) {
        if (!plain[k]) continue;
        printf("%s fired in %" PRIu64 " of %" PRIu64 " patterns and %" PRIu64 " of %" PRIu64 " near misses\n",
               prn_rewrite_name(k), plain_fired[k], plain[k], missed_fired[k], missed[k]);
        bare += plain[k];
    }
    assert_int_equal(wrong, 0);
    assert_true(t.refused * 3 <= t.models); /* the maker should know what is valid */
    assert_true(t.alone * 20 <= t.models);
    assert_true(bare > 0 || t.models < 150);
    for (size_t k = 0; k < prn_rewrite_count() && t.models >= ALL_FIRE_COUNT; k++)
        if (plain_fired[k] * 2 < plain[k] || (missed[k] && !plain_fired[k]))
            fail_msg("%s fires in less than half of its patterns", prn_rewrite_name(k));
}

static int print_seed(uint64_t seed)
{
    near_miss_info info;
    random_graph *g = near_miss_make(seed, &info);
    printf("%s", info.rewrite);
    for (int i = 0; i < info.changes; i++) printf(", %s", info.change[i]);
    printf(", opset %d, ", (int)g->opset);
    random_graph_print(g, stdout);
    random_graph_free(g);
    return 0;
}

static random_graph *near_miss_plain(uint64_t seed)
{
    return near_miss_make(seed, NULL);
}

int main(int argc, char **argv)
{
    const int status = seed_options_read(&options, argc, argv, print_seed, near_miss_plain);
    if (status >= 0) return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rewrite_has_a_pattern), cmocka_unit_test(near_misses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
