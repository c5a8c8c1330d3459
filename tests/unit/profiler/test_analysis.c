/* Analyses of a report: impact, types, critical path, roofline, the shape of the latencies, the module table. */
#include "failure_trace.h"
#include "sample_report.h"
#include "text_sink.h"

#include "prony.h"

#include <math.h>
#include <stdlib.h>

static void test_impact(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_impact_row *rows = NULL;
    size_t count = 0;
    prony_error error = {0};
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_LAYER, "macs", NULL, 3, &error), PRONY_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].index, 0); /* the first convolution; then two equal ones in the model's order */
    assert_int_equal(rows[1].index, 4);
    assert_int_equal(rows[2].index, 5);
    assert_true(rows[0].value == 118013952);
    assert_true(fabs(rows[0].share - 118013952.0 / 349288960) < 1e-12);
    assert_true(fabs(rows[2].cumulative - (118013952.0 + 2 * 115605504.0) / 349288960) < 1e-12);
    prony_rows_release(rows);
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_OPERATOR, "time", NULL, 0, &error), PRONY_OK);
    assert_int_equal(count, SAMPLE_OPERATORS);
    for (size_t i = 1; i < count; i++) assert_true(rows[i].value <= rows[i - 1].value);
    assert_true(fabs(rows[count - 1].cumulative - 1) < 1e-9);
    prony_rows_release(rows);
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_LAYER, "flops", "op=Conv", 0, &error),
                     PRONY_OK);
    assert_int_equal(count, 3);
    assert_true(rows[2].cumulative < 1); /* of the whole model, not of the selection */
    prony_rows_release(rows);
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_LAYER, "flops", "module=layer1/*", 0, &error),
                     PRONY_OK);
    assert_int_equal(count, 3);
    prony_rows_release(rows);
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_LAYER, "rate", NULL, 0, &error),
                     PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_LAYER, "speed", NULL, 0, &error),
                     PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_report_impact(&rows, &count, &r, PRONY_LEVEL_MODEL, "time", NULL, 0, &error),
                     PRONY_INVALID_ARGUMENT);
    prn_bump_release(&r.pool);
}

static void test_types(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_type_row *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_report_types(&rows, &count, &r, NULL), PRONY_OK);
    assert_int_equal(count, 4);
    assert_string_equal(rows[0].op, "Conv");
    assert_int_equal(rows[0].count, 3);
    assert_true(fabs(rows[3].cumulative - 1) < 1e-9);
    prony_rows_release(rows);
    prn_bump_release(&r.pool);
}

/* Every layer of the sample reads the one before it, but for the second convolution, which reads the pool. */
static void test_critical_path(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    static const uint32_t beside[] = {3, PRONY_NO_INDEX}; /* layer1.0/conv2 no longer waits for conv1 */
    r.layers[5].sources = beside;
    uint32_t *chain = NULL;
    size_t count = 0;
    int64_t time_ns = 0;
    prony_error error = {0};
    assert_int_equal(prony_report_critical_path(&chain, &count, &time_ns, &r, &error), PRONY_OK);
    static const uint32_t wanted[] = {0, 1, 3, 4, 5}; /* the folded layer and the view pass on what they wait for */
    assert_int_equal(count, 5);
    assert_memory_equal(chain, wanted, sizeof wanted);
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += r.operators[chain[i]].time.mean_ns;
    assert_int_equal(sum, time_ns);
    prony_rows_release(chain);
    r.layers[8].operator_index = r.layers[6].operator_index; /* on both sides of layer 7 */
    const uint32_t between = r.layers[7].operator_index;
    for (int view = 0; view < 2; view++) {
        SCENARIO(view);
        r.layers[7].operator_index = view ? PRONY_NO_INDEX : between;
        assert_int_equal(prony_report_critical_path(&chain, &count, &time_ns, &r, &error), PRONY_OK);
        assert_true(count >= 4 && chain[0] == 0);
        prony_rows_release(chain);
    }
    static const uint32_t circle[] = {10, PRONY_NO_INDEX};
    r.layers[0].sources = circle;
    assert_int_equal(prony_report_critical_path(&chain, &count, &time_ns, &r, &error), PRONY_INVALID_ARGUMENT);
    for (size_t l = 0; l < r.layer_count; l++) r.layers[l].sources = NULL;
    assert_int_equal(prony_report_critical_path(&chain, &count, &time_ns, &r, &error), PRONY_UNSUPPORTED);
    prn_bump_release(&r.pool);
    sample_report(&r, false);
    assert_int_equal(prony_report_critical_path(&chain, &count, &time_ns, &r, &error), PRONY_UNSUPPORTED);
    prn_bump_release(&r.pool);
}

static void test_bound(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    double share;
    prony_operator_row *o = &r.operators[0];
    o->time.mean_ns = 10000000; /* 5e10 FLOP/s allow 240 M in 4.8 ms */
    o->cost = (prony_cost){.flops = 250000000, .bytes_read = 1000000};
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_COMPUTE);
    assert_true(fabs(share - 0.5) < 1e-9);
    o->cost =
        (prony_cost){.flops = 1000000, .bytes_read = 100000000, .bytes_written = 12500000}; /* 9 ms at 12.5 GB/s */
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_MEMORY);
    assert_true(fabs(share - 0.9) < 1e-9);
    o->cost = (prony_cost){.flops = 1000000, .bytes_read = 1000000};
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_OVERHEAD);
    assert_string_equal(prony_bound_name(PRONY_BOUND_OVERHEAD), "overhead");
    o->cost = (prony_cost){.macs = 1000000, .int_ops = 2000000, .bytes_read = 1000000};
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_UNKNOWN); /* products of integers */
    o->cost = (prony_cost){0};
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_UNKNOWN); /* nothing to do, by its layers */
    o->layer_count = 0;
    o->output_bytes = 50000000; /* a copy between layouts: in and out, 8 ms at 12.5 GB/s */
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_MEMORY);
    assert_true(fabs(share - 0.8) < 1e-9);
    r.has_roof = false;
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_UNKNOWN);
    assert_true(share < 0);
    assert_int_equal(prony_report_bound(&r, 99, NULL), PRONY_BOUND_UNKNOWN);
    prn_bump_release(&r.pool);
}

/* 30 KiB fit in the L1 of one of two threads, 60 KiB in the L1 of both; an L3 is shared. */
static void test_bound_by_cache(void **state)
{
    (void)state;
    static const prn_roof_compute compute = {"fp32", 1, 1e12};
    static const prn_roof_memory memory[] = {{"L1", 1, 1e11}, {"L3", 1, 2e10}, {"DRAM", 1, 1e10}};
    prony_report r;
    sample_report(&r, true);
    r.roof = (prn_report_roof){&compute, 1, memory, 3, NULL, NULL, 0, false};
    prony_operator_row *o = &r.operators[0];
    for (int threads = 1; threads <= 2; threads++) {
        SCENARIO(threads);
        r.config.intra_op_threads = threads;
        o->cost = (prony_cost){.bytes_read = 30000};
        assert_true(fabs(prn_operator_roof_ns(&r, o, NULL) - 300) < 1e-6);
        o->cost = (prony_cost){.bytes_read = 60000};
        assert_true(fabs(prn_operator_roof_ns(&r, o, NULL) - (threads == 1 ? 3000 : 600)) < 1e-6);
        o->cost = (prony_cost){.bytes_read = 30000000};
        assert_true(fabs(prn_operator_roof_ns(&r, o, NULL) - 1500000) < 1e-6);
        o->cost = (prony_cost){.bytes_read = 40000000};
        assert_true(fabs(prn_operator_roof_ns(&r, o, NULL) - 4000000) < 1e-6);
    }
    prn_bump_release(&r.pool);
}

/* A kernel with fewer operations than the model is compared by the model's: never above its peak. */
static void test_executed_flops(void **state)
{
    (void)state;
    static const prn_roof_compute compute = {"fp32", 1, 1e9};
    static const prn_roof_memory memory = {"DRAM", 1, 1e12};
    static const prony_fact facts[] = {{"product_rows", 7}, {"product_flops", 400}};
    prony_report r;
    sample_report(&r, true);
    r.roof = (prn_report_roof){&compute, 1, &memory, 1, NULL, NULL, 0, false};
    r.has_roof = true;
    r.config.intra_op_threads = 1;
    prony_operator_row *o = &r.operators[0];
    o->cost = (prony_cost){.macs = 500, .flops = 1010}; /* 10 of a bias */
    o->kernel_fact_count = 0;
    o->measured = true;
    o->time.mean_ns = 820;
    double share = 0, before = prn_report_executed_flops(&r);
    assert_true(prn_operator_flops(o) == 1010);
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_COMPUTE);
    assert_true(share > 1.2);
    o->kernel_facts = facts;
    o->kernel_fact_count = 2;
    assert_true(prn_operator_flops(o) == 410);
    assert_int_equal(prony_report_bound(&r, 0, &share), PRONY_BOUND_COMPUTE);
    assert_true(fabs(share - 0.5) < 1e-9);
    assert_true(before - prn_report_executed_flops(&r) == 600);
    prn_bump_release(&r.pool);
}

/* ---- latencies ---- */

static void set_samples(prony_report *r, int64_t *samples, size_t count)
{
    r->measured = true;
    assert_int_equal(prn_report_fill_latency(r, samples, count, NULL), PRONY_OK);
}

static void test_histogram(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, false);
    prony_histogram_bin *bins = NULL;
    size_t count = 0;
    assert_int_equal(prony_report_histogram(&bins, &count, &r, 4, NULL), PRONY_UNSUPPORTED);
    int64_t samples[] = {100, 109, 110, 119, 120, 139, 140, 140};
    set_samples(&r, samples, 8);
    assert_int_equal(prony_report_histogram(&bins, &count, &r, 4, NULL), PRONY_OK);
    static const uint64_t wanted[] = {2, 2, 1, 3}; /* [100,110) [110,120) [120,130) [130,140] */
    assert_int_equal(count, 4);
    for (size_t b = 0; b < 4; b++) {
        SCENARIO(b);
        assert_int_equal(bins[b].count, wanted[b]);
        assert_int_equal(bins[b].from_ns, 100 + 10 * (int64_t)b);
    }
    assert_int_equal(bins[3].to_ns, 140);
    prony_rows_release(bins);
    assert_int_equal(prony_report_histogram(&bins, &count, &r, 0, NULL), PRONY_OK);
    uint64_t sum = 0;
    for (size_t b = 0; b < count; b++) sum += bins[b].count;
    assert_int_equal(sum, 8);
    prony_rows_release(bins);
    int64_t same[] = {5, 5, 5};
    set_samples(&r, same, 3);
    assert_int_equal(prony_report_histogram(&bins, &count, &r, 3, NULL), PRONY_OK);
    assert_int_equal(bins[0].count + bins[1].count + bins[2].count, 3);
    prony_rows_release(bins);
    prn_bump_release(&r.pool);
}

/* For people: bins end at the 99th percentile, or before what lies far out; the rest is one row. */
static void test_latency_bins(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, false);
    prony_histogram_bin *bins = NULL;
    size_t count = 0;
    bool beyond = false;
    static int64_t samples[1000];
    for (int i = 0; i < 1000; i++) samples[i] = 1000 + (i * 7) % 1000; /* 1000 to 1999, one each */
    set_samples(&r, samples, 1000);
    assert_int_equal(prn_report_latency_bins(&bins, &count, &beyond, &r, 10, NULL), PRONY_OK);
    assert_true(beyond);
    assert_int_equal(count, 11);
    uint64_t sum = 0;
    for (size_t b = 0; b < 10; b++) {
        SCENARIO(b);
        assert_in_range(bins[b].count, 98, 100); /* even data, even bins */
        sum += bins[b].count;
    }
    assert_int_equal(sum, 990);
    assert_int_equal(bins[0].from_ns, 1000);
    assert_int_equal(bins[9].to_ns, 1989);
    assert_int_equal(bins[10].from_ns, 1989);
    assert_int_equal(bins[10].to_ns, 1999);
    assert_int_equal(bins[10].count, 10);
    prony_rows_release(bins);
    int64_t few[] = {100, 101, 102, 103, 104,
                     105, 106, 107, 108, 90000}; /* too few for a 99th percentile of their own */
    set_samples(&r, few, 10);
    assert_int_equal(prn_report_latency_bins(&bins, &count, &beyond, &r, 0, NULL), PRONY_OK);
    assert_true(beyond);
    assert_in_range(count, 6, 61);
    assert_int_equal(bins[count - 2].to_ns, 108);
    assert_int_equal(bins[count - 1].to_ns, 90000);
    assert_int_equal(bins[count - 1].count, 1);
    prony_rows_release(bins);
    int64_t same[] = {5, 5, 5};
    set_samples(&r, same, 3);
    assert_int_equal(prn_report_latency_bins(&bins, &count, &beyond, &r, 0, NULL), PRONY_OK);
    assert_false(beyond);
    sum = 0;
    for (size_t b = 0; b < count; b++) sum += bins[b].count;
    assert_int_equal(sum, 3);
    prony_rows_release(bins);
    prn_bump_release(&r.pool);
}

static void test_outliers(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, false);
    int64_t samples[40];
    for (int i = 0; i < 40; i++)
        samples[i] = 1000 + i % 8; /* quartiles 1001 and 1006, fences 993.5, 1013.5; 986, 1021 */
    samples[7] = 1014;
    samples[20] = 5000;
    samples[33] = 990;
    set_samples(&r, samples, 40);
    prony_outlier *rows = NULL;
    size_t count = 0;
    assert_int_equal(prony_report_outliers(&rows, &count, &r, NULL), PRONY_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].run, 7);
    assert_false(rows[0].severe);
    assert_int_equal(rows[1].run, 20);
    assert_true(rows[1].severe && rows[1].modified_z > 100);
    assert_int_equal(rows[2].latency_ns, 990);
    assert_true(rows[2].modified_z < -3);
    prony_rows_release(rows);
    for (int i = 0; i < 40; i++) samples[i] = 1000;
    set_samples(&r, samples, 40);
    assert_int_equal(prony_report_outliers(&rows, &count, &r, NULL), PRONY_OK);
    assert_int_equal(count, 0);
    prony_rows_release(rows);
    prn_bump_release(&r.pool);
}

static prony_steady_state steady(const prony_report *r)
{
    prony_steady_state s = {0};
    assert_int_equal(prony_report_steady_state(&s, r, NULL), PRONY_OK);
    return s;
}

static void test_steady_state(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, false);
    assert_false(steady(&r).known);
    static int64_t samples[3000];
    for (int i = 0; i < 3000; i++) samples[i] = 100000 + (int64_t)((uint32_t)i * 2654435761u >> 20) % 500;
    set_samples(&r, samples, 9);
    assert_false(steady(&r).known);
    set_samples(&r, samples, 3000);
    prony_steady_state s = steady(&r);
    assert_true(s.known && s.steady && fabs(s.drift) < 0.01);
    for (int i = 0; i < 3000; i++) samples[i] += 10 * i; /* 30 % over the runs */
    set_samples(&r, samples, 3000);
    s = steady(&r);
    assert_true(s.known && !s.steady && s.drift > 0.1 && s.p < 1e-6);
    set_samples(&r, samples, 60);
    s = steady(&r); /* 0.6 %: a trend, but none that matters */
    assert_true(s.known && s.steady);
    prn_bump_release(&r.pool);
}

static void test_layer_samples(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    static int64_t durations[SAMPLE_RUNS * SAMPLE_OPERATORS];
    for (size_t i = 0; i < SAMPLE_RUNS * SAMPLE_OPERATORS; i++) durations[i] = (int64_t)(1000003 * (i % 7 + 1));
    assert_int_equal(prony_report_layer_samples(&r, 0, NULL, 0), 0);
    r.operator_samples_ns = durations;
    int64_t parts[3][SAMPLE_RUNS], few[2] = {-1, -1};
    for (size_t l = 0; l < 3; l++)
        assert_int_equal(prony_report_layer_samples(&r, l, parts[l], SAMPLE_RUNS), SAMPLE_RUNS);
    for (size_t run = 0; run < SAMPLE_RUNS; run++) /* the three layers of operator 0 share its time to the nanosecond */
        assert_int_equal(parts[0][run] + parts[1][run] + parts[2][run], durations[run * SAMPLE_OPERATORS]);
    assert_int_equal(prony_report_layer_samples(&r, 0, few, 1), SAMPLE_RUNS);
    assert_int_equal(few[1], -1);
    assert_int_equal(prony_report_layer_samples(&r, 9, NULL, 0), 0); /* a view */
    assert_int_equal(prony_report_layer_samples(&r, 1000, NULL, 0), 0);
    prn_bump_release(&r.pool);
}

/* ---- the terminal ---- */

static void test_text(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    r.samples_ns[11] = 9 * r.latency.median_ns;
    r.latency.max_ns = r.samples_ns[11];
    sink s = {0};
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.levels = PRONY_LEVEL_MODEL | PRONY_LEVEL_OPERATOR;
    options.all = true;
    options.width = 120;
    if (prony_report_write(&r, PRONY_FORMAT_TEXT, &options, sink_write, &s, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    static const char *const wanted[] = {"\n  steady (drift ",
                                         "\n  1 outlier of 70 runs, 1 severe; all are counted: run 11 43.2",
                                         "\nLatency histogram\n",
                                         "\nbeyond ",
                                         "\n  critical path: 6 of 6 operators, ",
                                         ", 100.0 % of their time\n",
                                         "\n  processors busy: 0 at 75.0 %, 3 at 18.8 %\n",
                                         "bound by",
                                         "compute"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!strstr(s.text, wanted[i])) fail_msg("no \"%s\"", wanted[i]);
    s.size = 0;
    assert_int_equal(prony_report_write(&r, PRONY_FORMAT_JSON, &options, sink_write, &s, &error), PRONY_OK);
    assert_non_null(strstr(s.text, "\"steady\": true,\n"));
    assert_non_null(strstr(s.text, "\"outliers\": [11],\n"));
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* ---- the module table ---- */

static char *module_text(const prony_report *r, int64_t depth, int64_t top)
{
    sink s = {0};
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.levels = PRONY_LEVEL_MODULE;
    options.module_depth = depth;
    options.top = top;
    options.width = 100;
    if (prony_report_write(r, PRONY_FORMAT_TEXT, &options, sink_write, &s, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return s.text;
}

static void test_module_table(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    char *text = module_text(&r, 0, 0);
    const char *root = strstr(text, "__root__"), *stem = strstr(text, "\n  stem "),
               *conv = strstr(text, "\n    conv1 ");
    assert_true(root && stem && conv && root < stem && stem < conv); /* a parent, then what is below it */
    assert_non_null(strstr(text, "\n  layer1 "));
    assert_non_null(strstr(text, "\n    layer1.0 "));
    prn_free(text);
    text = module_text(&r, 1, 0);
    assert_non_null(strstr(text, "\n  stem "));
    assert_null(strstr(text, "layer1.0"));
    prn_free(text);
    text = module_text(&r, 0, 2);
    assert_non_null(strstr(text, "more modules; --all shows every one"));
    prn_free(text);
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.module_depth = -1;
    sink s = {0};
    assert_int_equal(prony_report_write(&r, PRONY_FORMAT_TEXT, &options, sink_write, &s, NULL), PRONY_INVALID_ARGUMENT);
    size_t count;
    const prony_module_row *modules = prony_report_modules(&r, &count);
    assert_int_equal(modules[0].layers, SAMPLE_LAYERS);
    for (size_t m = 0; m < count; m++) { /* subtotals: a module has its layers and its children's layers */
        uint64_t below = 0;
        uint32_t layers = 0;
        for (size_t k = 0; k < count; k++)
            if (modules[k].parent == m) {
                below += modules[k].flops;
                layers += modules[k].layers;
            }
        for (size_t l = 0; l < r.layer_count; l++)
            if (strcmp(r.layers[l].module, modules[m].path) == 0) {
                below += r.layers[l].cost.flops;
                layers++;
            }
        assert_int_equal(below, modules[m].flops);
        assert_int_equal(layers, modules[m].layers);
    }
    prn_bump_release(&r.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impact),         cmocka_unit_test(test_types),
        cmocka_unit_test(test_critical_path),  cmocka_unit_test(test_bound),
        cmocka_unit_test(test_executed_flops), cmocka_unit_test(test_bound_by_cache),
        cmocka_unit_test(test_histogram),      cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_latency_bins),   cmocka_unit_test(test_steady_state),
        cmocka_unit_test(test_layer_samples),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_module_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
