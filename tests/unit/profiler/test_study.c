/* Studies of simulated processes with known scaling: plan, results, laws, losses, limit, the file and back, and
 * every failing allocation. */
#include "failure_trace.h"
#include "simulated_study.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static prony_status measure(prony_study *s, prony_error *error)
{
    prony_study_task task;
    uint64_t random = 3;
    while (prony_study_next(s, &task)) PRN_TRY(simulated_study_add(s, 0, 1, &task, &random, error));
    return prony_study_analyse(s, error);
}

static prony_study *study_of(const int64_t *threads, size_t count, int processes)
{
    prony_error error = {0};
    prony_study *s = NULL;
    prony_status status = simulated_study_plan(&s, threads, count, processes, &error);
    if (status == PRONY_OK) status = measure(s, &error);
    if (status != PRONY_OK) fail_msg("%s", error.message);
    return s;
}

static void test_known_scaling(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2, 3, 4, 6, 8};
    prony_study *s = study_of(threads, 6, 8);
    size_t count;
    const prony_study_result *results = prony_study_results(s, &count);
    assert_int_equal(count, 7);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        double n = results[i].intra_op_threads, expected = 1 / (SIMULATED_SERIAL + (1 - SIMULATED_SERIAL) / n);
        assert_int_equal(results[i].processes, 8);
        assert_true(fabs(results[i].speedup / expected - 1) < 0.02);
        assert_true(results[i].speedup_ci95[0] <= results[i].speedup &&
                    results[i].speedup <= results[i].speedup_ci95[1]);
        if (n > 1) assert_true(fabs(results[i].karp_flatt - SIMULATED_SERIAL) < 0.02);
    }
    assert_true(results[6].is_duplicate);
    assert_string_equal(s->quality.aa, "same");
    assert_int_equal(s->fit_count, 3);
    assert_true(s->fits[0].law == PRN_LAW_AMDAHL && fabs(s->fits[0].fit.alpha - SIMULATED_SERIAL) < 0.01);
    assert_true(s->fits[0].fit.alpha_ci95[0] <= SIMULATED_SERIAL && SIMULATED_SERIAL <= s->fits[0].fit.alpha_ci95[1]);
    assert_true(s->fits[1].law == PRN_LAW_USL && s->fits[1].fit.known);
    assert_false(s->fits[2].fit.known); /* Gustafson's law is of growing work */
    /* On 8 processors: 0.1 + 0.9 / 8. */
    assert_int_equal(s->limit_count, 1);
    assert_true(fabs(s->limits[0].speedup - 1 / (SIMULATED_SERIAL + (1 - SIMULATED_SERIAL) / 8)) < 0.1);
    assert_non_null(strstr(s->limits[0].why, "one thread runs alone"));
    for (size_t i = 0; i < s->loss_count; i++) {
        SCENARIO(i);
        const prn_study_loss *l = &s->losses[i];
        bool whole = l->operator== 1;
        assert_string_equal(l->reason, whole ? "serial kernel" : "scales");
        if (whole)
            assert_true(fabs(l->lost_ns / (SIMULATED_SERIAL * SIMULATED_NS) -
                             (1 - 1.0 / s->configurations[l->configuration].intra_op)) < 0.02);
    }
    prony_study_release(s);
}

static void expect_in_chart(const prony_study *s, const char *chart, const char *const *texts)
{
    static study_page picture;
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.chart = chart;
    picture.size = 0;
    if (prony_study_write(s, PRONY_FORMAT_SVG, &options, study_page_write, &picture, &error) != PRONY_OK)
        fail_msg("%s: %s", chart, error.message);
    for (; *texts; texts++)
        if (!strstr(picture.text, *texts)) fail_msg("chart %s does not contain \"%s\"", chart, *texts);
}

/* No configuration of the key is left out, and operators beyond the rows are counted. */
static void test_charts_of_many_rows_grow(void **state)
{
    (void)state;
    enum { CONFIGURATIONS = 24, LOSSES = 47 };
    int64_t threads[CONFIGURATIONS];
    prn_study_loss losses[LOSSES];
    for (int i = 0; i < CONFIGURATIONS; i++) threads[i] = i + 1;
    prony_study *s = study_of(threads, CONFIGURATIONS, 3);
    for (size_t i = 0; i < LOSSES; i++) {
        losses[i] = (prn_study_loss){.configuration = 7, .operator= 1, .reason = "serial kernel"};
        losses[i].lost_ns = 1e6 * (double)(LOSSES - i);
    }
    prn_study_loss *own = s->losses;
    const size_t own_count = s->loss_count;
    s->losses = losses;
    s->loss_count = LOSSES;
    expect_in_chart(s, "operators",
                    (const char *const[]){"and 7 more operators, 28.0 ms together", "serial kernel", NULL});
    s->losses = own;
    s->loss_count = own_count;
    expect_in_chart(s, "timeline", (const char *const[]){">1 thread<", ">24 threads<", "height=\"538.00\"", NULL});
    expect_in_chart(s, "speedup", (const char *const[]){"ideal", "height=\"440.00\"", NULL});
    prony_study_release(s);
}

/* The machine's state in a round affects all of its blocks and cancels in their ratios. */
static void test_rounds_share_the_machine(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2, 4};
    prony_error error = {0};
    prony_study *s = NULL;
    prony_study_task task;
    uint64_t random = 11;
    assert_int_equal(simulated_study_plan(&s, threads, 3, 10, &error), PRONY_OK);
    while (prony_study_next(s, &task)) {
        const double factor = 1 + 0.1 * sin(1.7 * task.process);
        if (simulated_study_add(s, 0, factor, &task, &random, &error) != PRONY_OK) fail_msg("%s", error.message);
    }
    assert_int_equal(prony_study_analyse(s, &error), PRONY_OK);
    size_t count;
    const prony_study_result *results = prony_study_results(s, &count);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        double n = results[i].intra_op_threads, expected = 1 / (SIMULATED_SERIAL + (1 - SIMULATED_SERIAL) / n);
        double time = (results[i].ci95_ns[1] - results[i].ci95_ns[0]) / 2 / results[i].median_ns;
        double speedup = (results[i].speedup_ci95[1] - results[i].speedup_ci95[0]) / 2 / results[i].speedup;
        assert_true(time > 0.04 && speedup < 0.01);
        assert_true(results[i].speedup_ci95[0] <= expected * 1.005 && expected * 0.995 <= results[i].speedup_ci95[1]);
    }
    prony_study_release(s);
}

/* Byte for byte: reading the file restores everything. */
static void test_file_and_back(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2, 4};
    prony_error error = {0};
    prony_study *s = study_of(threads, 3, 5), *back = NULL;
    static study_page first, second;
    assert_int_equal(prn_study_write_json(s, NULL, study_page_write, &first, &error), PRONY_OK);
    if (prn_study_read(&back, "study.json", first.text, first.size, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_study_analyse(back, &error), PRONY_OK);
    assert_int_equal(prn_study_write_json(back, NULL, study_page_write, &second, &error), PRONY_OK);
    assert_string_equal(first.text, second.text);
    size_t different = 9;
    assert_int_equal(prony_study_compare(back, s, &different, &error), PRONY_OK);
    assert_int_equal(different, 0);
    for (size_t i = 0; i < back->difference_count; i++) assert_string_equal(back->differences[i].verdict, "same");
    prony_study_release(back);
    prony_study_release(s);
}

static void test_failures_are_kept(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2};
    prony_error error = {0};
    prony_study *s = NULL;
    assert_int_equal(simulated_study_plan(&s, threads, 2, 4, &error), PRONY_OK);
    prony_study_task task;
    uint64_t random = 5;
    while (prony_study_next(s, &task)) {
        prony_study_process killed = {.failure = "killed"}, refused = {.failure = "cannot", .refused = true},
                            damaged = {.sample = "{", .sample_bytes = 1};
        if (task.configuration == 1)
            assert_int_equal(prony_study_add(s, &task, &refused, &error), PRONY_OK);
        else if (task.configuration == 0 && task.process == 0)
            assert_int_equal(prony_study_add(s, &task, &killed, &error), PRONY_OK);
        else if (task.configuration == 0 && task.process == 1)
            assert_int_equal(prony_study_add(s, &task, &damaged, &error), PRONY_OK);
        else
            assert_int_equal(simulated_study_add(s, 0, 1, &task, &random, &error), PRONY_OK);
    }
    assert_int_equal(prony_study_analyse(s, &error), PRONY_OK);
    assert_int_equal(s->quality.failed, 3);
    assert_string_equal(s->configurations[1].refused, "cannot"); /* and was tried once */
    size_t tried = 0;
    for (size_t i = 0; i < s->block_count; i++) tried += s->blocks[i].configuration == 1;
    assert_int_equal(tried, 1);
    assert_true(s->results[0].processes >= 2);
    assert_string_equal(s->quality.verdict, "poor");
    prony_study_release(s);
}

static prony_status everything(prony_error *error)
{
    const int64_t threads[] = {1, 2, 4};
    prony_study *s = NULL, *back = NULL;
    static study_page sink;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    sink.size = 0;
    prony_status status = simulated_study_plan(&s, threads, 3, 3, error);
    if (status == PRONY_OK) status = measure(s, error);
    if (status == PRONY_OK) status = prn_study_write_json(s, NULL, study_page_write, &sink, error);
    if (status == PRONY_OK) status = prn_study_read(&back, "study.json", sink.text, sink.size, error);
    if (status == PRONY_OK) status = prony_study_analyse(back, error);
    if (status == PRONY_OK) status = prony_study_compare(back, s, NULL, error);
    sink.size = 0;
    if (status == PRONY_OK) status = prn_study_write_text(back, &options, study_page_write, &sink, error);
    if (status == PRONY_OK) status = prn_study_write_html(back, &options, study_page_write, &sink, error);
    prony_study_release(back);
    prony_study_release(s);
    return status;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    fail_every_allocation(everything, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_scaling),
                                       cmocka_unit_test(test_file_and_back),
                                       cmocka_unit_test(test_rounds_share_the_machine),
                                       cmocka_unit_test(test_charts_of_many_rows_grow),
                                       cmocka_unit_test(test_failures_are_kept),
                                       cmocka_unit_test(test_allocation_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
