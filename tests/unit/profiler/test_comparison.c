/* The library's functions for verdicts: comparisons with a user's metrics, thresholds, recommendations from
 * variants, and failing allocations or streams. Values of whole commands are in test_judgement.py. */
#include "failure_trace.h"
#include "sample_report.h"
#include "text_sink.h"

#include "prony_judge.h"

#include "base/memory/alloc.h"

#include <math.h>
#include <stdlib.h>

static prony_comparison *compare(const prony_report *a, const prony_report *b, const prony_compare_options *options)
{
    prony_comparison *c = NULL;
    prony_error error = {0};
    if (prony_compare(&c, a, b, options, &error) != PRONY_OK) fail_msg("%s", error.message);
    return c;
}

static const prony_compare_metric *row_of(const prony_comparison *c, const char *key)
{
    size_t count;
    const prony_compare_metric *rows = prony_comparison_metrics(c, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].first.metric->key, key) == 0) return &rows[i];
    return NULL;
}

/* All times of a report, latencies and rows, by a factor. */
static void scale_times(prony_report *r, double factor)
{
    for (uint64_t i = 0; i < r->latency.count; i++) r->samples_ns[i] = llround((double)r->samples_ns[i] * factor);
    int64_t *means[] = {&r->latency.mean_ns, &r->latency.median_ns, &r->latency.min_ns, &r->latency.max_ns,
                        &r->latency.p90_ns};
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++) *means[i] = llround((double)*means[i] * factor);
    for (size_t i = 0; i < r->layer_count; i++)
        r->layers[i].time.mean_ns = llround((double)r->layers[i].time.mean_ns * factor);
    for (size_t i = 0; i < r->operator_count; i++)
        r->operators[i].time.mean_ns = llround((double)r->operators[i].time.mean_ns * factor);
}

/* As if the runs were those of `processes` processes. */
static void cut_into(prony_report *r, size_t processes)
{
    uint64_t *runs = prn_bump_alloc(&r->pool, processes, sizeof *runs), left = r->latency.count;
    assert_non_null(runs);
    for (size_t p = 0; p < processes; left -= runs[p++]) runs[p] = left / (processes - p);
    r->process_runs = runs;
    r->process_count = processes;
}

static bool has_note(const prony_comparison *c, const char *words)
{
    size_t count;
    const char *const *notes = prony_comparison_notes(c, &count);
    for (size_t n = 0; n < count; n++)
        if (strstr(notes[n], words)) return true;
    return false;
}

static void test_equal_and_slower(void **state)
{
    (void)state;
    prony_report a, b;
    sample_report(&a, true);
    sample_report(&b, true);
    a.turns = b.turns = 7;
    prony_comparison *c = compare(&a, &b, NULL);
    size_t count;
    (void)prony_comparison_notes(c, &count);
    assert_int_equal(count, 0);
    assert_int_equal(prony_comparison_regressions(c), 0);
    assert_int_equal(row_of(c, "latency")->verdict, PRONY_VERDICT_SAME);
    assert_int_equal(row_of(c, "load_time")->basis, PRONY_BASIS_NONE);
    prony_comparison_release(c);

    scale_times(&b, 1.25);
    c = compare(&a, &b, NULL);
    const prony_compare_metric *latency = row_of(c, "latency");
    assert_int_equal(latency->verdict, PRONY_VERDICT_WORSE);
    assert_true(fabs(latency->ratio - 1.25) < 1e-6 && latency->p < 1e-6);
    assert_int_equal(row_of(c, "throughput")->verdict, PRONY_VERDICT_WORSE);
    assert_int_equal(row_of(c, "macs")->verdict, PRONY_VERDICT_SAME);
    const prony_compare_row *layers = prony_comparison_layers(c, &count);
    assert_int_equal(count, 9); /* of 11: one is folded, one a view */
    assert_string_equal(layers[0].name, "/stem/conv1/Conv");
    for (size_t i = 0; i < count; i++)
        if (layers[i].first_ns > 1000) assert_true(fabs(layers[i].ratio - 1.25) < 1e-3);
    const prony_compare_row *types = prony_comparison_types(c, &count);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) assert_int_equal(types[i].verdict, PRONY_VERDICT_WORSE);
    prony_comparison_release(c);
    prn_bump_release(&a.pool);
    prn_bump_release(&b.pool);
}

/* Differences within the deviation between processes give no verdict, unless the reports were interleaved or include
 * that deviation. */
/* Held memory is judged between processes; within one process it grows with each measurement. */
static void test_held_memory(void **state)
{
    (void)state;
    prony_report a, b;
    sample_report(&a, true);
    sample_report(&b, true);
    a.has_memory = b.has_memory = a.memory.held_known = b.memory.held_known = true;
    a.memory.held.resident_bytes = 100 << 20;
    b.memory.held.resident_bytes = 120 << 20;
    for (int here = 0; here < 4; here++) {
        SCENARIO(here);
        a.measured_here = here & 1;
        b.measured_here = here & 2;
        prony_comparison *c = compare(&a, &b, NULL);
        assert_int_equal(row_of(c, "held_memory")->verdict, here == 3 ? PRONY_VERDICT_NONE : PRONY_VERDICT_WORSE);
        assert_int_equal(prony_comparison_regressions(c), here != 3);
        prony_comparison_release(c);
    }
    a.turns = 7; /* beside another session: not known */
    prony_comparison *c = compare(&a, &b, NULL);
    assert_int_equal(prony_comparison_regressions(c), 0);
    prony_comparison_release(c);
    prn_bump_release(&a.pool);
    prn_bump_release(&b.pool);
}

static void test_processes(void **state)
{
    (void)state;
    static const struct {
        uint64_t turns[2];
        size_t processes[2];
        double factor;
        prony_verdict latency, types;
    } rows[] = {
        {{0, 0}, {1, 1}, 1.05, PRONY_VERDICT_UNSURE, PRONY_VERDICT_UNSURE},
        {{0, 0}, {1, 1}, 1.25, PRONY_VERDICT_WORSE, PRONY_VERDICT_WORSE},
        {{4, 4}, {1, 1}, 1.05, PRONY_VERDICT_WORSE, PRONY_VERDICT_WORSE},
        {{4, 5}, {1, 1}, 1.05, PRONY_VERDICT_UNSURE, PRONY_VERDICT_UNSURE},
        {{0, 0}, {8, 8}, 1.05, PRONY_VERDICT_WORSE, PRONY_VERDICT_UNSURE},
        {{0, 0}, {8, 1}, 1.05, PRONY_VERDICT_UNSURE, PRONY_VERDICT_UNSURE},
        {{0, 0}, {8, 8}, 1, PRONY_VERDICT_SAME, PRONY_VERDICT_SAME},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO(i);
        prony_report r[2];
        for (int side = 0; side < 2; side++) {
            sample_report(&r[side], true);
            r[side].disturbance = (prn_disturbance){0.01, 0, 0, 1, PRN_LOAD_QUIET};
            r[side].turns = rows[i].turns[side];
            if (rows[i].processes[side] > 1) cut_into(&r[side], rows[i].processes[side]);
        }
        scale_times(&r[1], rows[i].factor);
        prony_comparison *c = compare(&r[0], &r[1], NULL);
        if (row_of(c, "latency")->verdict != rows[i].latency) fail_msg("row %zu", i);
        size_t count;
        const prony_compare_row *types = prony_comparison_types(c, &count);
        for (size_t t = 0; t < count; t++) assert_int_equal(types[t].verdict, rows[i].types);
        assert_int_equal(has_note(c, "measure both with --processes 10"), rows[i].latency == PRONY_VERDICT_UNSURE);
        if (rows[i].latency == PRONY_VERDICT_UNSURE) assert_int_equal(prony_comparison_regressions(c), 0);
        prony_comparison_release(c);
        prn_bump_release(&r[0].pool);
        prn_bump_release(&r[1].pool);
    }
}

static void test_join(void **state)
{
    (void)state;
    prony_report into, others[2];
    prony_error error;
    sample_report(&into, true);
    for (int i = 0; i < 2; i++) sample_report(&others[i], true);
    into.process_runs = others[0].process_runs = others[1].process_runs = NULL;
    into.process_count = others[0].process_count = others[1].process_count = 0;
    scale_times(&others[0], 1.5);
    into.disturbance = others[0].disturbance = (prn_disturbance){0.02, 0, 0.01, 1, PRN_LOAD_QUIET};
    others[1].disturbance = (prn_disturbance){0.5, 0.1, 0.3, 5, PRN_LOAD_BUSY};
    into.traced_run_ns = 0;
    uint64_t runs = into.latency.count;
    int64_t last = into.samples_ns[runs - 1], user = into.cpu.user_ns;
    const prony_report *both[] = {&others[0], &others[1]};
    others[1].config.intra_op_threads++;
    assert_int_equal(prony_report_join(&into, both, 2, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "threads"));
    assert_true(into.latency.count == runs && !into.process_runs && into.cpu.user_ns == user);
    others[1].config.intra_op_threads--;
    for (uint64_t n = 1;; n++) {
        prn_alloc_fail_at(n);
        prony_status status = prony_report_join(&into, both, 2, &error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            break;
        }
        assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        assert_true(into.latency.count == runs && !into.process_runs && into.cpu.user_ns == user);
    }
    size_t processes;
    const uint64_t *process_runs = prony_report_process_runs(&into, &processes);
    assert_int_equal(processes, 3);
    for (size_t p = 0; p < 3; p++) assert_int_equal(process_runs[p], runs);
    assert_int_equal(into.latency.count, 3 * runs);
    assert_true(into.samples_ns[runs] == others[0].samples_ns[0] && into.latency.max_ns == others[0].latency.max_ns);
    assert_int_equal(into.config.runs, 3 * runs);
    assert_int_equal(into.cpu.user_ns, 3 * user);
    assert_int_equal(into.traced_run_ns, last);
    assert_int_equal(into.disturbance.involuntary_switches, 7);
    assert_int_equal(into.disturbance.verdict, PRN_LOAD_BUSY); /* for 2 of 7 parts of the time */
    assert_true(into.disturbance.others > 0.1 && into.disturbance.others < 0.5);
    assert_int_equal(prony_report_join(&into, both, 2, &error), PRONY_INVALID_ARGUMENT); /* only once */
    prn_bump_release(&into.pool);
    for (int i = 0; i < 2; i++) prn_bump_release(&others[i].pool);
}

static prony_status own_metrics(double *values, const prony_report *report, void *user, prony_error *error)
{
    (void)user;
    (void)error;
    values[0] = (double)prony_report_latency(report)->max_ns;
    values[1] = 42;
    return PRONY_OK;
}

/* The user's metrics are exact, also if they replace a metric that is judged by its runs. */
static void test_own_metrics(void **state)
{
    (void)state;
    prony_report a, b;
    sample_report(&a, true);
    sample_report(&b, true);
    scale_times(&b, 1.25);
    prony_metrics *metrics = NULL;
    const prony_metric own[] = {{"worst", "Worst", "", "", PRONY_SCALE_TIME, PRONY_SMALLER_IS_BETTER},
                                {"latency", "Constant", "", "", PRONY_SCALE_NONE, PRONY_SMALLER_IS_BETTER}};
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    assert_int_equal(prony_metrics_add(metrics, own, 2, own_metrics, NULL, NULL), PRONY_OK);
    prony_compare_options options = PRONY_COMPARE_OPTIONS_INIT;
    options.metrics = metrics;
    prony_comparison *c = compare(&a, &b, &options);
    assert_int_equal(row_of(c, "worst")->verdict, PRONY_VERDICT_WORSE);
    assert_int_equal(row_of(c, "worst")->basis, PRONY_BASIS_EXACT);
    assert_int_equal(row_of(c, "latency")->verdict, PRONY_VERDICT_SAME);
    assert_int_equal(row_of(c, "latency")->basis, PRONY_BASIS_EXACT);
    prony_comparison_release(c);
    options.noise = 0.3;
    c = compare(&a, &b, &options);
    assert_int_equal(prony_comparison_regressions(c), 0);
    prony_comparison_release(c);
    options.noise = -1;
    c = NULL;
    assert_int_equal(prony_compare(&c, &a, &b, &options, NULL), PRONY_INVALID_ARGUMENT);
    prony_metrics_release(metrics);
    prn_bump_release(&a.pool);
    prn_bump_release(&b.pool);
}

static prony_threshold threshold(const prony_metrics *metrics, const char *text)
{
    prony_threshold t;
    prony_error error = {0};
    if (prony_threshold_parse(&t, metrics, text, &error) != PRONY_OK) fail_msg("%s", error.message);
    return t;
}

/* A key is compared whole: one that begins with the name of a metric of 63 characters is another. */
static void test_long_threshold_key(void **state)
{
    (void)state;
    prony_metrics *metrics = NULL;
    prony_threshold t;
    prony_error error = {0};
    char name[64], text[96];
    memset(name, 'k', 63);
    name[63] = '\0';
    const prony_metric own = {.key = name, .name = "own", .direction = PRONY_SMALLER_IS_BETTER};
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    assert_int_equal(prony_metrics_add(metrics, &own, 1, own_metrics, NULL, &error), PRONY_OK);
    snprintf(text, sizeof text, "%s:1", name);
    assert_int_equal(prony_threshold_parse(&t, metrics, text, &error), PRONY_OK);
    snprintf(text, sizeof text, "%skk:1", name);
    assert_int_equal(prony_threshold_parse(&t, metrics, text, &error), PRONY_INVALID_ARGUMENT);
    prony_metrics_release(metrics);
}

static void test_thresholds(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_metrics *metrics = NULL;
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    const prony_threshold limits[] = {threshold(metrics, "p50:1s"), threshold(metrics, "memory: 4 MiB"),
                                      threshold(metrics, "accuracy:98%"), threshold(metrics, "p999:1s"),
                                      threshold(metrics, "throughput:1ksamples/s")};
    assert_string_equal(limits[0].metric->key, "latency");
    assert_true(limits[1].limit >= 4194304 && limits[1].limit <= 4194304);
    prony_check_row rows[5];
    assert_int_equal(prony_check(rows, &r, metrics, limits, 5, NULL), PRONY_OK);
    static const prony_outcome outcomes[] = {PRONY_OUTCOME_MET, PRONY_OUTCOME_MISSED, PRONY_OUTCOME_MET,
                                             PRONY_OUTCOME_UNKNOWN, PRONY_OUTCOME_MISSED};
    for (size_t i = 0; i < 5; i++) assert_int_equal(rows[i].outcome, outcomes[i]);
    assert_true(rows[1].margin < -0.15 && rows[1].margin > -0.16); /* 4.617 MiB of 4 */
    assert_true(isnan(rows[3].margin));
    prony_metrics_release(metrics);
    prn_bump_release(&r.pool);
}

/* Times from a quiet machine and from a busy one do not distinguish the models. */
static void test_loads(void **state)
{
    (void)state;
    prony_report a, b;
    sample_report(&a, true);
    sample_report(&b, true);
    scale_times(&b, 1.5);
    prony_compare_options options = PRONY_COMPARE_OPTIONS_INIT;
    static const struct {
        prn_disturbance first, second;
        bool ignore;
        prony_verdict verdict;
    } rows[] = {
        {{0.01, 0, 0, 1, PRN_LOAD_QUIET}, {0.5, 0, 0.4, 9, PRN_LOAD_BUSY}, false, PRONY_VERDICT_UNSURE},
        {{0.01, 0, 0, 1, PRN_LOAD_QUIET}, {0.5, 0, 0.4, 9, PRN_LOAD_BUSY}, true, PRONY_VERDICT_WORSE},
        {{0.01, 0, 0, 1, PRN_LOAD_QUIET}, {0.02, 0, 0, 9, PRN_LOAD_QUIET}, false, PRONY_VERDICT_WORSE},
        {{0.52, 0, 0.41, 1, PRN_LOAD_BUSY}, {0.5, 0, 0.4, 9, PRN_LOAD_BUSY}, false, PRONY_VERDICT_UNSURE},
        {{0.2, 0, 0.1, 1, PRN_LOAD_BUSY}, {0.5, 0, 0.4, 9, PRN_LOAD_BUSY}, false, PRONY_VERDICT_UNSURE},
        {{-1, -1, -1, 1, PRN_LOAD_UNKNOWN}, {0.5, 0, 0.4, 9, PRN_LOAD_BUSY}, false, PRONY_VERDICT_UNSURE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO(i);
        prony_comparison *c = NULL;
        size_t count;
        bool said = false;
        a.disturbance = rows[i].first;
        b.disturbance = rows[i].second;
        options.ignore_load = rows[i].ignore;
        assert_int_equal(prony_compare(&c, &a, &b, &options, NULL), PRONY_OK);
        assert_int_equal(row_of(c, "latency")->verdict, rows[i].verdict);
        assert_int_equal(row_of(c, "macs")->verdict, PRONY_VERDICT_SAME);
        const prony_compare_row *types = prony_comparison_types(c, &count);
        for (size_t t = 0; t < count; t++) assert_int_equal(types[t].verdict, rows[i].verdict);
        const char *const *notes = prony_comparison_notes(c, &count);
        for (size_t n = 0; n < count; n++) said |= strstr(notes[n], "cannot tell from times") != NULL;
        assert_int_equal(said, rows[i].verdict == PRONY_VERDICT_UNSURE);
        prony_comparison_release(c);
    }
    a.has_disturbance = false; /* a report of before */
    b.disturbance.verdict = PRN_LOAD_QUIET;
    prony_comparison *c = NULL;
    assert_int_equal(prony_compare(&c, &a, &b, NULL, NULL), PRONY_OK);
    assert_int_equal(row_of(c, "latency")->verdict, PRONY_VERDICT_WORSE);
    prony_comparison_release(c);
    prn_bump_release(&a.pool);
    prn_bump_release(&b.pool);
}

/* If other processes used the machine, a limit that the fastest run meets is not missed for certain. */
static void test_checks_on_a_busy_machine(void **state)
{
    (void)state;
    prony_report r;
    prony_metrics *metrics = NULL;
    sample_report(&r, true);
    cut_into(&r, 8);
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    static const struct {
        const char *threshold;
        bool busy;
        prony_outcome outcome;
    } rows[] = {{"latency:4.79ms", true, PRONY_OUTCOME_WITHHELD},
                {"latency:4.79ms", false, PRONY_OUTCOME_MISSED},
                {"latency:1ms", true, PRONY_OUTCOME_MISSED},
                {"latency:1s", true, PRONY_OUTCOME_MET},
                {"memory:4MiB", true, PRONY_OUTCOME_MISSED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].threshold);
        prony_threshold threshold;
        prony_check_row row;
        r.disturbance.verdict = rows[i].busy ? PRN_LOAD_BUSY : PRN_LOAD_QUIET;
        assert_int_equal(prony_threshold_parse(&threshold, metrics, rows[i].threshold, NULL), PRONY_OK);
        assert_int_equal(prony_check(&row, &r, metrics, &threshold, 1, NULL), PRONY_OK);
        if (row.outcome != rows[i].outcome)
            fail_msg("%s: outcome %d; min %lld", rows[i].threshold, (int)row.outcome, (long long)r.latency.min_ns);
    }
    prony_metrics_release(metrics);
    prn_bump_release(&r.pool);
}

static const prony_advice *advice_on(const prony_advice *rows, size_t count, const char *topic)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].topic, topic) == 0) return &rows[i];
    fail_msg("nothing on %s", topic);
    return NULL;
}

static void test_measured_advice(void **state)
{
    (void)state;
    prony_report base, batch, threads, both;
    prony_report *all[] = {&base, &batch, &threads, &both};
    for (size_t i = 0; i < 4; i++) sample_report(all[i], true);
    for (size_t i = 0; i < 4; i++) all[i]->disturbance.verdict = PRN_LOAD_QUIET;
    batch.config.batch = 8;
    scale_times(&batch, 4); /* 8 samples in 4 times the time */
    threads.config.intra_op_threads = 1;
    threads.cpu.user_ns /= 2;
    both.config.batch = 16;
    both.config.intra_op_threads = 4; /* two changes: tells nothing of either */
    scale_times(&both, 0.1);
    const prony_report *variants[] = {&batch, &threads, &both};
    prony_advice *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_recommend(&rows, &count, &base, variants, 3, NULL), PRONY_OK);
    const prony_advice *a = advice_on(rows, count, "batch");
    assert_true(a->applies && a->measured && fabs(a->gain - 1) < 1e-3);
    assert_string_equal(a->metric, "throughput");
    assert_non_null(strstr(a->action, "batch 8"));
    a = advice_on(rows, count, "threads");
    assert_true(a->applies && a->measured);
    assert_non_null(strstr(a->action, "1 thread "));
    assert_true(fabs(a->gain - 330.0 / 672) < 1e-9); /* of 660 + 12 ms */
    for (size_t i = 1; i < count; i++) assert_true(rows[i - 1].applies >= rows[i].applies);
    prony_rows_release(rows);
    base.disturbance.verdict = PRN_LOAD_BUSY;
    assert_int_equal(prony_recommend(&rows, &count, &base, variants, 3, NULL), PRONY_OK);
    a = advice_on(rows, count, "threads");
    assert_false(a->applies);
    assert_non_null(strstr(a->reason, "cannot tell: other processes took 12 % of the processors"));
    base.disturbance.verdict = PRN_LOAD_QUIET;
    prony_rows_release(rows);

    scale_times(&threads, 0.5);
    assert_int_equal(prony_recommend(&rows, &count, &base, variants, 3, NULL), PRONY_OK);
    a = advice_on(rows, count, "threads");
    assert_string_equal(a->metric, "latency");
    assert_true(fabs(a->gain - 0.5) < 1e-3);
    prony_rows_release(rows);

    scale_times(&batch, 2); /* 8 samples in 8 times the time */
    scale_times(&threads, 4);
    assert_int_equal(prony_recommend(&rows, &count, &base, variants, 3, NULL), PRONY_OK);
    assert_false(advice_on(rows, count, "batch")->applies);
    assert_false(advice_on(rows, count, "threads")->applies);
    prony_rows_release(rows);
    for (size_t i = 0; i < 4; i++) prn_bump_release(&all[i]->pool);
}

static void set_precision(prony_report *r, const char *precision, prony_accuracy_output *output, double loss,
                          uint64_t nonfinite)
{
    r->config.precision = precision;
    r->disturbance.verdict = PRN_LOAD_QUIET;
    *output = (prony_accuracy_output){
        .name = "y", .against = "of fp32", .error = {.known = true, .max_rel = loss, .nonfinite = nonfinite}};
    r->has_accuracy = true;
    r->accuracy.outputs = output;
    r->accuracy.output_count = 1;
}

static const prony_advice *advice_of(const prony_advice *rows, size_t count, const char *precision)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = rows[i].applies ? rows[i].action : rows[i].reason, *found = strstr(text, precision);
        if (strcmp(rows[i].topic, "precision") == 0 && found && (found == text || rows[i].applies)) return &rows[i];
    }
    fail_msg("nothing on precision %s", precision);
    return NULL;
}

/* Of the tried precisions, a recommended one is not beaten by another in latency, memory and error together. */
static void test_precisions_that_were_measured(void **state)
{
    (void)state;
    enum { FP32, BF16, FP16, FAST, INT8, BROKEN, COUNT };
    static const struct {
        const char *name;
        double time, loss;
        uint64_t nonfinite;
    } of[COUNT] = {{"fp32", 1, 0, 0},      {"bf16", 0.5, 1e-3, 0}, {"fp16", 0.7, 2e-3, 0},
                   {"fast", 0.7, 1e-5, 0}, {"int8", 1, 0.02, 0},   {"fp8", 0.4, 0, 3}};
    prony_report reports[COUNT];
    prony_accuracy_output outputs[COUNT];
    const prony_report *variants[COUNT - 1];
    for (size_t i = 0; i < COUNT; i++) {
        sample_report(&reports[i], true);
        set_precision(&reports[i], of[i].name, &outputs[i], of[i].loss, of[i].nonfinite);
        if (of[i].time < 1) scale_times(&reports[i], of[i].time);
        if (i > 0) variants[i - 1] = &reports[i];
    }
    reports[FP32].has_accuracy = false;
    prony_advice *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_recommend(&rows, &count, &reports[FP32], variants, COUNT - 1, NULL), PRONY_OK);
    const prony_advice *a = advice_of(rows, count, "bf16");
    assert_true(a->applies && a->measured && fabs(a->gain - 0.5) < 1e-3);
    assert_string_equal(a->metric, "latency");
    assert_non_null(strstr(a->reason, "differ by up to 0.001 of their range from those of fp32"));
    assert_true(advice_of(rows, count, "fast")->applies);
    a = advice_of(rows, count, "fp16"); /* slower than bf16, and off by more */
    assert_false(a->applies);
    assert_non_null(strstr(a->reason, "in no respect better than bf16"));
    a = advice_of(rows, count, "int8");
    assert_false(a->applies);
    assert_non_null(strstr(a->reason, "not significantly faster or smaller than fp32"));
    assert_non_null(strstr(advice_of(rows, count, "fp8")->reason, "infinite or NaN"));
    a = advice_of(rows, count, "the Pareto set");
    assert_non_null(strstr(a->reason, "of 6 precisions: fp32, bf16, fast"));
    prony_rows_release(rows);

    reports[BF16].has_accuracy = false; /* its error is unknown, so it beats nothing */
    assert_int_equal(prony_recommend(&rows, &count, &reports[FP32], variants, COUNT - 1, NULL), PRONY_OK);
    assert_true(advice_of(rows, count, "fast")->applies);
    assert_non_null(strstr(advice_of(rows, count, "bf16")->reason, "its error was not measured"));
    assert_non_null(strstr(advice_of(rows, count, "fp16")->reason, "in no respect better than fast"));
    prony_rows_release(rows);
    for (size_t i = 0; i < COUNT; i++) prn_bump_release(&reports[i].pool);
}

/* Every allocation may fail: a status, nothing lost, nothing half done. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    prony_report a, b;
    sample_report(&a, true);
    sample_report(&b, true);
    scale_times(&b, 1.25);
    b.config.batch = 2;
    const prony_report *variants[] = {&b};
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        SCENARIO(n);
        prony_comparison *c = NULL;
        prony_error error = {0};
        prn_alloc_fail_at(n);
        prony_status status = prony_compare(&c, &a, &b, NULL, &error);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK) assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        assert_true(failed || status == PRONY_OK);
        assert_int_equal(c != NULL, status == PRONY_OK); /* a metric without memory counts as unknown */
        prony_comparison_release(c);
    }
    failed = true;
    for (uint64_t n = 1; failed; n++) {
        SCENARIO(n);
        prony_advice *rows = NULL;
        size_t count;
        prn_alloc_fail_at(n);
        prony_status status = prony_recommend(&rows, &count, &a, variants, 1, NULL);
        failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (status != PRONY_OK) assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        assert_true(failed || status == PRONY_OK);
        prony_rows_release(rows);
    }
    prn_bump_release(&a.pool);
    prn_bump_release(&b.pool);
}

static void test_streams_that_fail(void **state)
{
    (void)state;
    prony_report a, b;
    sample_report(&a, true);
    sample_report(&b, true);
    scale_times(&b, 1.25);
    prony_comparison *c = compare(&a, &b, NULL);
    static const prony_format formats[] = {PRONY_FORMAT_TEXT, PRONY_FORMAT_JSON};
    for (size_t i = 0; i < 2; i++) {
        SCENARIO(i);
        sink good = {0}, bad = {.refuse_after = 1};
        assert_int_equal(prony_comparison_write(c, formats[i], NULL, sink_write, &good, NULL), PRONY_OK);
        assert_non_null(strstr(good.text, "latency"));
        assert_int_equal(prony_comparison_write(c, formats[i], NULL, sink_write, &bad, NULL), PRONY_IO_ERROR);
        prn_free(good.text);
        prn_free(bad.text);
    }
    assert_int_equal(prony_comparison_write(c, PRONY_FORMAT_CSV, NULL, sink_write, NULL, NULL), PRONY_INVALID_ARGUMENT);
    prony_comparison_release(c);
    prn_bump_release(&a.pool);
    prn_bump_release(&b.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_and_slower),
        cmocka_unit_test(test_held_memory),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_own_metrics),
        cmocka_unit_test(test_long_threshold_key),
        cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_checks_on_a_busy_machine),
        cmocka_unit_test(test_measured_advice),
        cmocka_unit_test(test_precisions_that_were_measured),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_streams_that_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
