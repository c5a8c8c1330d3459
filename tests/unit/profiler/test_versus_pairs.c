/* Comparison with another engine: results of pairs of processes, and the join of the other engine's profile with
 * this one's operators. */
#include "failure_trace.h"
#include "tests/support/nested_model.h"

#include "base/memory/alloc.h"
#include "prony_judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct scene {
    model_run run;
    prony_report *report;
    prony_versus *versus;
    prony_error error;
} scene;

/* Of the model with subgraphs: /begin is a Sqrt, /outer an If around everything else. */
static scene begin(void)
{
    scene s = {0};
    nested_open(&s.run, true, 2);
    s.report = nested_profile(&s.run, 3);
    if (prony_versus_create(&s.versus, s.report, "peer 1", "/lib/peer.so", &s.error) != PRONY_OK)
        fail_msg("%s", s.error.message);
    return s;
}

static void end(scene *s)
{
    prony_versus_release(s->versus);
    prony_report_release(s->report);
    mr_close(&s->run);
}

static void add_pair(scene *s, int threads, int64_t own_ns, int64_t peer_ns)
{
    const prony_versus_process own = {threads, 5, own_ns, 100, 1 << 20, PRONY_LOAD_QUIET, 0},
                               peer = {threads, 5, peer_ns, -1, -1, PRONY_LOAD_UNKNOWN, -1};
    assert_int_equal(prony_versus_add(s->versus, false, &own, &s->error), PRONY_OK);
    assert_int_equal(prony_versus_add(s->versus, true, &peer, &s->error), PRONY_OK);
}

static const prony_versus_result *results(scene *s, size_t wanted)
{
    const prony_versus_result *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_versus_results(&rows, &count, s->versus, &s->error), PRONY_OK);
    assert_int_equal(count, wanted);
    return rows;
}

static void ratios_are_taken_pair_by_pair(void **state)
{
    (void)state;
    scene s = begin();
    /* The machine is twice as slow in every other pair; the ratios are still 1.9, 2 and 2.1. */
    for (int k = 0; k < 9; k++) {
        const int64_t slow = k % 2 ? 2000 : 1000, peer = slow * (19 + k % 3) / 10;
        add_pair(&s, 2, slow, peer);
        add_pair(&s, 1, peer, slow);
    }
    const prony_versus_result *rows = results(&s, 2);
    assert_int_equal(rows[0].intra_op_threads, 2);
    assert_int_equal(rows[0].pairs, 9);
    assert_true(fabs(rows[0].ratio - 2.0) < 1e-12);
    assert_true(rows[0].ratio_ci95[0] >= 1.9 - 1e-12 && rows[0].ratio_ci95[1] <= 2.1 + 1e-12);
    assert_int_equal(rows[0].verdict, PRONY_VERDICT_BETTER);
    assert_int_equal(rows[1].intra_op_threads, 1);
    assert_int_equal(rows[1].verdict, PRONY_VERDICT_WORSE);
    assert_true(fabs(rows[1].ratio - 0.5) < 1e-12);
    assert_true(fabs(rows[0].own_start_ns - 100.0) < 1e-12 && rows[0].peer_start_ns < 0);
    assert_true(fabs(rows[0].own_peak_rss_bytes - 1048576.0) < 1e-12 && rows[0].peer_peak_rss_bytes < 0);
    end(&s);
}

static void little_difference_and_little_data(void **state)
{
    (void)state;
    scene s = begin();
    assert_null(prony_versus_operators(s.versus, NULL));
    (void)results(&s, 0);
    add_pair(&s, 1, 1000, 5000);
    add_pair(&s, 1, 1000, 5000);
    assert_int_equal(results(&s, 1)[0].verdict, PRONY_VERDICT_NONE);
    assert_true(isinf(results(&s, 1)[0].ratio_ci95[1]));
    for (int k = 0; k < 9; k++) add_pair(&s, 2, 100000, 100000 + 300 * (k % 3 - 1));
    assert_int_equal(results(&s, 2)[1].verdict, PRONY_VERDICT_SAME);
    for (int k = 0; k < 9; k++) add_pair(&s, 4, 1000, k % 2 ? 700 : 1600);
    assert_int_equal(results(&s, 3)[2].verdict, PRONY_VERDICT_UNSURE);
    /* A process whose counterpart is still missing is in no pair. */
    const prony_versus_process alone = {4, 5, 1, 1, 1, PRONY_LOAD_BUSY, 1};
    assert_int_equal(prony_versus_add(s.versus, false, &alone, &s.error), PRONY_OK);
    assert_int_equal(results(&s, 3)[2].pairs, 9);
    end(&s);
}

/* The least and the largest of n ratios hold the median with 1 - 2^(1 - n): 95 % takes six. */
static void an_interval_of_95_percent_takes_six_pairs(void **state)
{
    (void)state;
    for (int pairs = 1; pairs <= 12; pairs++) {
        SCENARIO(pairs);
        scene s = begin();
        for (int k = 0; k < pairs; k++) add_pair(&s, 1, 1000, 2000 + 100 * k);
        const prony_versus_result *row = results(&s, 1);
        const double least = 2.0, most = 2.0 + 0.1 * (pairs - 1);
        assert_true(fabs(row->ratio_least - least) < 1e-12 && fabs(row->ratio_most - most) < 1e-12);
        assert_int_equal(row->measured_pairs, pairs);
        assert_true(row->busy_pairs == 0 && !row->withheld);
        if (pairs < 6) {
            assert_true(isinf(row->ratio_ci95[0]) && isinf(row->ratio_ci95[1]));
            assert_int_equal(row->verdict, PRONY_VERDICT_NONE);
        } else {
            /* Up to eight pairs the ends are the extremes, from nine the second, from twelve the third values. */
            const double inside = pairs < 9 ? 0 : pairs < 12 ? 0.1 : 0.2;
            assert_true(fabs(row->ratio_ci95[0] - least - inside) < 1e-12);
            assert_true(fabs(row->ratio_ci95[1] - most + inside) < 1e-12);
            assert_int_equal(row->verdict, PRONY_VERDICT_BETTER);
        }
        end(&s);
    }
}

static void add_busy_pair(scene *s, bool peer_is_busy, int64_t own_ns, int64_t peer_ns)
{
    const prony_load quiet = PRONY_LOAD_QUIET, busy = PRONY_LOAD_BUSY;
    const prony_versus_process own = {1, 5, own_ns, 100, 1, peer_is_busy ? quiet : busy, 0.3},
                               peer = {1, 5, peer_ns, 100, 1, peer_is_busy ? busy : quiet, 0.4};
    assert_int_equal(prony_versus_add(s->versus, false, &own, &s->error), PRONY_OK);
    assert_int_equal(prony_versus_add(s->versus, true, &peer, &s->error), PRONY_OK);
}

static void busy_pairs_do_not_decide(void **state)
{
    (void)state;
    scene s = begin();
    for (int k = 0; k < 4; k++) add_busy_pair(&s, k % 2, 1000, 7000);
    for (int k = 0; k < 5; k++) add_pair(&s, 1, 1000, 500);
    const prony_versus_result *row = results(&s, 1);
    assert_true(row->withheld && row->verdict == PRONY_VERDICT_UNSURE);
    assert_true(row->pairs == 9 && row->measured_pairs == 9 && row->busy_pairs == 4);
    assert_true(fabs(row->others_share - 0.4) < 1e-12);
    add_pair(&s, 1, 1000, 500); /* the sixth quiet one */
    row = results(&s, 1);
    assert_true(!row->withheld && row->pairs == 6 && row->measured_pairs == 10 && row->busy_pairs == 4);
    assert_int_equal(row->verdict, PRONY_VERDICT_WORSE);
    assert_true(fabs(row->ratio - 0.5) < 1e-12 && fabs(row->peer_ns - 500.0) < 1e-12);
    prony_versus_ignore_load(s.versus);
    row = results(&s, 1);
    assert_true(!row->withheld && row->pairs == 10 && row->busy_pairs == 0);
    assert_int_equal(row->verdict, PRONY_VERDICT_UNSURE); /* ratios of 0.5 and of 7 */
    end(&s);
}

#define EVENT(name, op, us)                                                                                            \
    "{\"cat\":\"Node\",\"name\":\"" name "_kernel_time\",\"dur\":" us ",\"args\":{\"op_name\":\"" op "\"}},"
#define RUN "{\"cat\":\"Session\",\"name\":\"model_run\",\"dur\":9}"

static prony_status add_profile(scene *s, const char *text)
{
    return prony_versus_add_peer_profile(s->versus, "peer.json", text, strlen(text), &s->error);
}

static const prony_versus_operator *row_of(const scene *s, const char *name)
{
    size_t count = 0;
    const prony_versus_operator *rows = prony_versus_operators(s->versus, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    fail_msg("no row '%s'", name);
    return NULL;
}

/* ONNX Runtime writes names as they stand, quotes, backslashes and ends of lines included. */
static void names_that_are_not_escaped(void **state)
{
    (void)state;
    scene s = begin();
    static const char text[] = "[" EVENT(
        "odd\"name\\x", "Rare", "9") "{\"cat\" : \"Node\", \"dur\" :3, \"name\" :\"a, \"b\",\n_kernel_time\", \"args\" "
                                     ": {\"op_name\" : \"Add\"}}," EVENT("/outer", "If", "50") RUN "]";
    if (add_profile(&s, text) != PRONY_OK) fail_msg("%s", s.error.message);
    assert_true(fabs(row_of(&s, "Rare")->peer_ns - 9000.0) < 1e-6);
    assert_true(fabs(row_of(&s, "Add")->peer_ns - 3000.0) < 1e-6);
    assert_true(fabs(row_of(&s, "/outer")->peer_ns - 50000.0) < 1e-6);
    end(&s);
}

static void nodes_are_joined_by_name(void **state)
{
    (void)state;
    scene s = begin();
    /* In three runs: /begin under a decorated name, /outer, a node inside of it, one of its own twice a run, one in a
     * single run. */
    static const char text[] =
        "[" EVENT("/begin_output_0_nchwc", "Sqrt", "5") EVENT("/outer", "If", "50") EVENT("/loop/Add", "Add", "40")
            EVENT("Reorder_token_3", "Reorder", "2") EVENT("Reorder_token_3", "Reorder", "1") RUN
        "," EVENT("/begin_output_0_nchwc", "Sqrt", "7") EVENT("/outer", "If", "51")
            EVENT("Reorder_token_3", "Reorder", "2") EVENT("Reorder_token_3", "Reorder", "2") RUN
        "," EVENT("/begin_output_0_nchwc", "Sqrt", "90") EVENT("/outer", "If", "52")
            EVENT("Reorder_token_3", "Reorder", "2") EVENT("Reorder_token_3", "Reorder", "20")
                EVENT("once", "Rare", "9") "{\"cat\":\"Node\",\"name\":\"/outer_fence_before\",\"dur\":1000}," RUN "]";
    if (add_profile(&s, text) != PRONY_OK) fail_msg("%s", s.error.message);
    assert_true(fabs(row_of(&s, "/begin")->peer_ns - 7000.0) < 1e-6);
    assert_int_equal(row_of(&s, "/begin")->nodes, 1);
    assert_true(row_of(&s, "/begin")->own_ns > 0);
    assert_true(fabs(row_of(&s, "/outer")->peer_ns - 51000.0) < 1e-6);
    assert_true(fabs(row_of(&s, "Reorder")->peer_ns - 4000.0) < 1e-6);
    assert_true(row_of(&s, "Reorder")->own_ns < 0);
    assert_string_equal(row_of(&s, "Reorder")->kernel, "");
    assert_true(fabs(row_of(&s, "Rare")->peer_ns - 3000.0) < 1e-6);
    size_t count = 0;
    const prony_versus_operator *rows = prony_versus_operators(s.versus, &count);
    assert_int_equal(count, 4);
    assert_string_equal(rows[2].name, "Reorder"); /* no counterpart: behind, by time */
    assert_string_equal(rows[3].name, "Rare");
    end(&s);
}

static void damaged_profiles_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "ends too early"},
        {"[", "ends too early"},
        {"{}", "peer.json"},
        {"[1]", "events"},
        {"[]", "no run"},
        {"[" RUN "]", "no run"},
        {"[" EVENT("a", "A", "1") "{}]", "no run"},
        {"[{\"cat\":\"Node\",\"name\":\"a_kernel_time\"}," RUN "]", "dur"},
        {"[{\"cat\":\"Node\",\"name\":7}," RUN "]", "name"},
        {"[" EVENT("a", "A", "\"1\"") RUN "]", "dur"},
        {"[" EVENT("a", "A", "99999999999999999999") RUN "]", "2^53"},
    };
    scene s = begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SCENARIO_NAMED(i, cases[i].text);
        s.error = (prony_error){0};
        if (add_profile(&s, cases[i].text) == PRONY_OK) fail_msg("'%s' was taken", cases[i].text);
        if (!strstr(s.error.message, cases[i].word)) fail_msg("'%s': %s", cases[i].text, s.error.message);
        assert_null(prony_versus_operators(s.versus, NULL));
    }
    end(&s);
}

static int discard(void *user, const char *data, size_t size)
{
    (void)data;
    *(size_t *)user += size;
    return 0;
}

static void arguments_are_checked(void **state)
{
    (void)state;
    scene s = begin();
    prony_versus *other = NULL;
    const prony_versus_process none = {0, 1, 1, 1, 1, PRONY_LOAD_QUIET, 0}, idle = {1, 0, 1, 1, 1, PRONY_LOAD_QUIET, 0};
    prony_versus_process process;
    size_t size = 0;
    assert_int_equal(prony_versus_create(&other, NULL, "p", "l", &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_create(&other, s.report, NULL, "l", &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_add(s.versus, false, NULL, &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_add(s.versus, false, &none, &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_add(s.versus, true, &idle, &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_add_output(s.versus, NULL, true, 0, NULL, &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_add_peer_profile(s.versus, "p", NULL, 0, &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_results(NULL, NULL, s.versus, &s.error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_write(s.versus, PRONY_FORMAT_CSV, NULL, discard, &size, &s.error),
                     PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_versus_process_of(&process, s.report, 12, &s.error), PRONY_OK);
    assert_int_equal(process.runs, 3);
    assert_int_equal(process.peak_rss_bytes, 12);
    assert_true(process.start_ns > 0 && process.median_ns > 0);
    prony_versus_release(NULL);
    end(&s);
}

/* Everything once, with the n-th allocation refused. */
static void it_survives_faults(void **state)
{
    (void)state;
    scene s = begin();
    prony_versus_release(s.versus);
    s.versus = NULL;
    for (int64_t n = 1;; n++) {
        prony_versus *versus = NULL;
        prony_error error = {0};
        size_t size = 0;
        const prony_versus_process process = {1, 5, 1000, 1, 1, PRONY_LOAD_QUIET, 0};
        static const char text[] = "[" EVENT("/begin", "Sqrt", "5") EVENT("x", "X", "5") RUN "]";
        prn_alloc_fail_at((uint64_t)n);
        prony_status status = prony_versus_create(&versus, s.report, "peer", "lib", &error);
        for (int k = 0; k < 8 && status == PRONY_OK; k++) status = prony_versus_add(versus, k % 2, &process, &error);
        if (status == PRONY_OK) status = prony_versus_add_output(versus, "y", false, 1.0, "another", &error);
        if (status == PRONY_OK) status = prony_versus_add_peer_profile(versus, "p", text, sizeof text - 1, &error);
        if (status == PRONY_OK) status = prony_versus_write(versus, PRONY_FORMAT_TEXT, NULL, discard, &size, &error);
        if (status == PRONY_OK) status = prony_versus_write(versus, PRONY_FORMAT_JSON, NULL, discard, &size, &error);
        const bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        prony_versus_release(versus);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            assert_true(size > 500);
            break;
        }
        if (status == PRONY_OK) fail_msg("allocation %lld failed unseen", (long long)n);
    }
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_are_taken_pair_by_pair),
        cmocka_unit_test(little_difference_and_little_data),
        cmocka_unit_test(an_interval_of_95_percent_takes_six_pairs),
        cmocka_unit_test(busy_pairs_do_not_decide),
        cmocka_unit_test(names_that_are_not_escaped),
        cmocka_unit_test(nodes_are_joined_by_name),
        cmocka_unit_test(damaged_profiles_are_refused),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(it_survives_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
