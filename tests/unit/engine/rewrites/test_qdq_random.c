/* Random QDQ networks, each with rewrites against without, operator by operator (tests/support/qdq_check.h).
 *
 *     test_qdq_random                            what `make check` runs
 *     test_qdq_random --seed 7 --count 100000    more of them, from seed 7 on
 *     test_qdq_random --seed 7 --seconds 3600    for an hour
 *     test_qdq_random --print 7                  the network of seed 7 as text
 *     test_qdq_random --save 7 FILE              and as ONNX
 *
 * A network that fails is made smaller while it still fails, and printed. PRONY_MAX_ISA chooses the kernels. */
#include "tests/support/qdq_check.h"
#include "tests/support/qdq_ways.h"
#include "tests/support/random_qdq.h"
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
enum { USUAL_COUNT = 60 };
#else
enum { USUAL_COUNT = 400 };
#endif

/* That many networks from seed 1 hold every form; fewer may lack one. */
enum { ALL_FORMS_COUNT = 400, MOST_WRONG = 5 };

static seed_options options = {.first = 1, .count = USUAL_COUNT};

static bool still_wrong(const random_graph *g, void *argument)
{
    char text[1024];
    (void)argument;
    return !qdq_agrees(g, &(qdq_tally){0}, text, sizeof text);
}

/* true: it agrees. Else the network is made smaller and printed. */
static bool try_seed(uint64_t seed, qdq_tally *tally)
{
    char text[1024] = "";
    random_graph *g = random_qdq_make(seed);
    const uint64_t refused = tally->refused;
    const bool good = qdq_agrees(g, tally, text, sizeof text);
    if (tally->refused > refused && getenv("PRONY_TEST_VERBOSE")) printf("seed %" PRIu64 " %s\n", seed, text);
    if (!good) {
        printf("seed %" PRIu64 ": %s\n", seed, text);
        random_graph_reduce(g, still_wrong, NULL);
        (void)qdq_agrees(g, &(qdq_tally){0}, text, sizeof text);
        random_graph_print(g, stdout);
        printf("now: %s\n", text);
        fflush(stdout);
    }
    random_graph_free(g);
    return good;
}

static void networks(void **state)
{
    (void)state;
    qdq_tally t = {0};
    uint64_t wrong = 0;
    const double start = seed_options_now();
    for (uint64_t seed = options.first; seed_options_include(&options, seed, start); seed++) {
        wrong += !try_seed(seed, &t);
        if (wrong >= MOST_WRONG) break;
    }
    printf("%" PRIu64 " networks of %" PRIu64 " nodes from seed %" PRIu64 ", %" PRIu64 " refused, %" PRIu64
           " wrong; %" PRIu64 " codes, %" PRIu64 " of them at a tie, %" PRIu64 " vague\n",
           t.models, t.nodes, options.first, t.refused, wrong, t.codes, t.ties, t.vague);
    for (int f = 0; f < QDQ_FORMS; f++) printf("%s%s: %" PRIu64, f ? ", " : "", qdq_form_names[f], t.forms[f]);
    printf("\n");
    assert_int_equal(wrong, 0);
    assert_true(t.refused * 20 <= t.models); /* the maker should know what is valid */
    assert_true(t.ties * 100 <= t.codes);
    assert_true(t.vague * 1000 <= t.codes);
    for (int f = 0; f < QDQ_FORMS && t.models >= ALL_FORMS_COUNT; f++)
        if (!t.forms[f]) fail_msg("no network has a %s", qdq_form_names[f]);
}

/* Each network in one more way, in turns: as a branch, as a Loop's body, with batches that change. */
static void other_ways(void **state)
{
    (void)state;
    qdq_ways_tally t = {0};
    uint64_t wrong = 0, tried = 0;
    const double start = seed_options_now();
    for (uint64_t seed = options.first; seed_options_include(&options, seed, start); seed++) {
        char text[1024] = "";
        random_graph *g = random_qdq_make(seed);
        const bool good = seed % 3 == 2 ? qdq_batches_agree(g, &t, text, sizeof text)
                                        : qdq_body_agrees(g, seed % 3 == 1, &t, text, sizeof text);
        if (!good) printf("seed %" PRIu64 ", way %d: %s\n", seed, (int)(seed % 3), text);
        random_graph_free(g);
        tried++;
        wrong += !good;
        if (wrong >= MOST_WRONG) break;
    }
    printf("%" PRIu64 " networks in other ways, %" PRIu64 " wrong; %" PRIu64 " bodies, %" PRIu64
           " runs of a session with a fresh one beside, %" PRIu64 " sessions of one plan\n",
           tried, wrong, t.bodies, t.batches, t.followed);
    assert_int_equal(wrong, 0);
    assert_true(tried < 60 || (t.bodies * 2 > tried && t.batches > 0 && t.followed > 0));
}

static int print_seed(uint64_t seed)
{
    random_graph *g = random_qdq_make(seed);
    random_graph_print(g, stdout);
    random_graph_free(g);
    return 0;
}

int main(int argc, char **argv)
{
    const int status = seed_options_read(&options, argc, argv, print_seed, random_qdq_make);
    if (status >= 0) return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks), cmocka_unit_test(other_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
