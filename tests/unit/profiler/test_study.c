/* Studies of made-up processes whose scaling is known: plan, results, laws, losses, limit, the file and back, and every
 * allocation that may fail. */
#include "profiler/study/study.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Without the heap, whose calls are made to fail here. */
typedef struct page {
    char text[1 << 19];
    size_t size;
} page;

static int page_write(void *user, const char *data, size_t size)
{
    page *p = user;
    if (p->size + size >= sizeof p->text) return -1;
    memcpy(p->text + p->size, data, size);
    p->size += size;
    p->text[p->size] = '\0';
    return 0;
}

#define SERIAL 0.1 /* of the time of one thread, in an operator that one thread runs alone */
#define WHOLE_NS 1000000.0

static prony_report *manifest(void)
{
    prony_report *r = prn_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->model.name = "made up";
    r->model.sha256 = "00";
    r->config.batch = 1;
    r->config.warmup_runs = r->config.runs = -1;
    r->system.libraries = "";
    snprintf(r->system.machine.cpu_model, sizeof r->system.machine.cpu_model, "Processor");
    return r;
}

static prony_status make_plan(prony_study **out, const int64_t *threads, size_t count, int processes,
                              prony_error *error)
{
    prony_study_options o = PRONY_STUDY_OPTIONS_INIT;
    prony_report *report = manifest();
    if (!report) return PRONY_OUT_OF_MEMORY;
    o.intra_op = threads;
    o.intra_op_count = count;
    o.processes = processes;
    o.runs = 20;
    prony_status status = prn_study_plan(out, report, &o, 8, error);
    if (status != PRONY_OK) prony_report_release(report);
    return status;
}

static double round_factor = 1; /* of the machine */

/* Two operators: one that is cut into pieces and scales as they do, one that is not. */
static prony_status add_process(prony_study *s, const prony_study_task *task, uint64_t *random, prony_error *error)
{
    char text[4000];
    int n = task->intra_op_threads, used = 0;
    double factor = round_factor * (1 + 0.005 * prn_random_normal(random));
    double cut = (1 - SERIAL) * WHOLE_NS / n * factor, uncut = SERIAL * WHOLE_NS * factor;
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "{\"schema\": \"prony.study/1\", \"batch\": 1, \"warmup_runs\": 3, \"warmup_detected\": true, "
                     "\"involuntary_switches\": 0, \"samples_ns\": [");
    for (int i = 0; i < 20; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%.0f", i ? ", " : "",
                         (cut + uncut) * (1 + 0.002 * prn_random_normal(random)));
    snprintf(text + used, sizeof text - (size_t)used,
             "], \"operators\": [{\"name\": \"cut\", \"op\": \"Conv\", \"kernel\": \"k\", \"flops\": 9, \"bytes\": 9, "
             "\"on_path\": true, "
             "\"measured\": [%.0f, 64, %d, %.0f, %.0f, 0]}, {\"name\": \"whole\", \"op\": \"Relu\", \"kernel\": \"k\", "
             "\"flops\": 1, "
             "\"bytes\": 1, \"on_path\": true, \"measured\": [%.0f, 0, 0, 0, 0, 0]}]}",
             cut, n, (1 - SERIAL) * WHOLE_NS * factor, cut, uncut);
    prony_study_process p = {.sample = text, .sample_bytes = strlen(text)};
    p.before =
        (prony_machine_state){.time_ns = (int64_t)task->block * 1000, .temperature_c = NAN, .throttle_events = -1};
    p.after = p.before;
    p.after.time_ns += 900;
    return prony_study_add(s, task, &p, error);
}

static prony_status measure(prony_study *s, prony_error *error)
{
    prony_study_task task;
    uint64_t random = 3;
    while (prony_study_next(s, &task)) PRN_TRY(add_process(s, &task, &random, error));
    return prony_study_analyse(s, error);
}

static prony_study *study_of(const int64_t *threads, size_t count, int processes)
{
    prony_error error = {0};
    prony_study *s = NULL;
    prony_status status = make_plan(&s, threads, count, processes, &error);
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
        double n = results[i].intra_op_threads, expected = 1 / (SERIAL + (1 - SERIAL) / n);
        assert_int_equal(results[i].processes, 8);
        assert_true(fabs(results[i].speedup / expected - 1) < 0.02);
        assert_true(results[i].speedup_ci95[0] <= results[i].speedup &&
                    results[i].speedup <= results[i].speedup_ci95[1]);
        if (n > 1) assert_true(fabs(results[i].karp_flatt - SERIAL) < 0.02);
    }
    assert_true(results[6].again);
    assert_string_equal(s->quality.aa, "same");
    assert_int_equal(s->fit_count, 3);
    assert_true(s->fits[0].law == PRN_LAW_AMDAHL && fabs(s->fits[0].fit.alpha - SERIAL) < 0.01);
    assert_true(s->fits[0].fit.alpha_ci95[0] <= SERIAL && SERIAL <= s->fits[0].fit.alpha_ci95[1]);
    assert_true(s->fits[1].law == PRN_LAW_USL && s->fits[1].fit.known);
    assert_false(s->fits[2].fit.known); /* Gustafson's law is of growing work */
    /* On 8 processors: 0.1 + 0.9 / 8. */
    assert_int_equal(s->limit_count, 1);
    assert_true(fabs(s->limits[0].speedup - 1 / (SERIAL + (1 - SERIAL) / 8)) < 0.1);
    assert_non_null(strstr(s->limits[0].why, "one thread runs alone"));
    for (size_t i = 0; i < s->loss_count; i++) {
        const prn_study_loss *l = &s->losses[i];
        bool whole = l->operator== 1;
        assert_string_equal(l->reason, whole ? "serial kernel" : "scales");
        if (whole)
            assert_true(fabs(l->lost_ns / (SERIAL * WHOLE_NS) -
                             (1 - 1.0 / s->configurations[l->configuration].intra_op)) < 0.02);
    }
    prony_study_release(s);
}

/* What the machine does in a round meets all of its blocks: of their ratios nothing is left of it. */
static void test_rounds_share_the_machine(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2, 4};
    prony_error error = {0};
    prony_study *s = NULL;
    prony_study_task task;
    uint64_t random = 11;
    assert_int_equal(make_plan(&s, threads, 3, 10, &error), PRONY_OK);
    while (prony_study_next(s, &task)) {
        round_factor = 1 + 0.1 * sin(1.7 * task.process);
        if (add_process(s, &task, &random, &error) != PRONY_OK) fail_msg("%s", error.message);
    }
    round_factor = 1;
    assert_int_equal(prony_study_analyse(s, &error), PRONY_OK);
    size_t count;
    const prony_study_result *results = prony_study_results(s, &count);
    for (size_t i = 0; i < count; i++) {
        double n = results[i].intra_op_threads, expected = 1 / (SERIAL + (1 - SERIAL) / n);
        double time = (results[i].ci95_ns[1] - results[i].ci95_ns[0]) / 2 / results[i].median_ns;
        double speedup = (results[i].speedup_ci95[1] - results[i].speedup_ci95[0]) / 2 / results[i].speedup;
        assert_true(time > 0.04 && speedup < 0.01);
        assert_true(results[i].speedup_ci95[0] <= expected * 1.005 && expected * 0.995 <= results[i].speedup_ci95[1]);
    }
    prony_study_release(s);
}

/* Byte for byte: what is read back is all there is. */
static void test_file_and_back(void **state)
{
    (void)state;
    const int64_t threads[] = {1, 2, 4};
    prony_error error = {0};
    prony_study *s = study_of(threads, 3, 5), *back = NULL;
    static page first, second;
    assert_int_equal(prn_study_write_json(s, NULL, page_write, &first, &error), PRONY_OK);
    if (prn_study_read(&back, "study.json", first.text, first.size, &error) != PRONY_OK) fail_msg("%s", error.message);
    assert_int_equal(prony_study_analyse(back, &error), PRONY_OK);
    assert_int_equal(prn_study_write_json(back, NULL, page_write, &second, &error), PRONY_OK);
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
    assert_int_equal(make_plan(&s, threads, 2, 4, &error), PRONY_OK);
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
            assert_int_equal(add_process(s, &task, &random, &error), PRONY_OK);
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
    static page sink;
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    sink.size = 0;
    prony_status status = make_plan(&s, threads, 3, 3, error);
    if (status == PRONY_OK) status = measure(s, error);
    if (status == PRONY_OK) status = prn_study_write_json(s, NULL, page_write, &sink, error);
    if (status == PRONY_OK) status = prn_study_read(&back, "study.json", sink.text, sink.size, error);
    if (status == PRONY_OK) status = prony_study_analyse(back, error);
    if (status == PRONY_OK) status = prony_study_compare(back, s, NULL, error);
    sink.size = 0;
    if (status == PRONY_OK) status = prn_study_write_text(back, &options, page_write, &sink, error);
    if (status == PRONY_OK) status = prn_study_write_html(back, &options, page_write, &sink, error);
    prony_study_release(back);
    prony_study_release(s);
    return status;
}

/* A process's data that find no memory are a failed block, and memory for a note is only its absence: anything else
 * must say so. Nothing may leak or crash, which the sanitizers see. */
static void test_allocation_failures(void **state)
{
    (void)state;
    prony_error error;
    for (uint64_t n = 1; n < 100000; n += 1 + n / 40) {
        prn_alloc_fail_at(n);
        prony_status status = everything(&error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_true(status == PRONY_OK || status == PRONY_OUT_OF_MEMORY);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            return;
        }
    }
    fail_msg("it never came to an end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_scaling), cmocka_unit_test(test_file_and_back),
                                       cmocka_unit_test(test_rounds_share_the_machine),
                                       cmocka_unit_test(test_failures_are_kept),
                                       cmocka_unit_test(test_allocation_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
