/* The metrics registry: the built-in metrics over a known report, the user's own, overrides, text and units. */
#include "failure_trace.h"
#include "sample_report.h"
#include "text_sink.h"

#include "prony.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static prony_metrics *create(void)
{
    prony_metrics *m = NULL;
    assert_int_equal(prony_metrics_create(&m, NULL), PRONY_OK);
    return m;
}

static prony_metric_value compute(const prony_metrics *m, const prony_report *r, const char *key)
{
    prony_metric_value v;
    prony_error error = {0};
    if (prony_metrics_compute(m, r, key, &v, &error) != PRONY_OK) fail_msg("%s", error.message);
    return v;
}

static void test_built_in(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_metrics *m = create();
    static const struct {
        const char *key, *text;
        double value;
    } rows[] = {
        {"macs", "349.3 MMACs", 349288960},
        {"flops", "704.2 MFLOPs", 704198632},
        {"special", "64 FLOPs", 64},
        {"parameters", "148.3 k", 148264},
        {"buffers", "64", 64},
        {"model_size", "579.2 KiB", 593056},
        {"file_size", "586.1 KiB", 600123},
        {"layers", "11", 11},
        {"operators", "6", 6},
        {"memory", "4.617 MiB", 593056 + 148352 + 4100000},
        {"peak_memory", "3.815 MiB", 4000000},
        {"average_memory", "1.558 MiB", 1633333},
        {"memory_per_sample", "3.910 MiB", 4100000},
        {"plan_gap", "2.44 %", 1 - 40.0 / 41},
        {"peak_resident", "87.01 MiB", 91234304},
        {"cpu_utilisation", "97.00 %", 0.97},
        {"cpu_user", "660.0 ms", 660000000},
        {"core_use", "46.88 %", 0.46875},
        {"core_use_most", "75.00 %", 0.75},
        {"context_switches", "41", 41},
        {"read_calls", "12", 12},
        {"evaluation", "0.9833", 0.9833333333333333},
        {"top5_accuracy", "99.72 %", 0.9972222222222222},
        {"load_time", "1.200 ms", 1200345},
        {"first_run_time", "9.100 ms", 9100000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].key);
        prony_metric_value v = compute(m, &r, rows[i].key);
        assert_true(v.known);
        if (fabs(v.value - rows[i].value) > 1e-9 * fabs(rows[i].value) || strcmp(v.text, rows[i].text) != 0)
            fail_msg("%s: %.17g \"%s\", wanted %.17g \"%s\"", rows[i].key, v.value, v.text, rows[i].value,
                     rows[i].text);
    }
    assert_true(compute(m, &r, "latency").value == (double)r.latency.median_ns);
    assert_true(compute(m, &r, "latency_p90").known);
    assert_false(compute(m, &r, "latency_p99").known); /* too few runs */
    assert_string_equal(compute(m, &r, "latency_p99").text, "-");
    double per_second = 1e9 / (double)r.latency.mean_ns;
    assert_true(fabs(compute(m, &r, "throughput").value - per_second) < 1e-6);
    assert_true(fabs(compute(m, &r, "images_per_second").value - per_second) < 1e-6);
    assert_true(fabs(compute(m, &r, "requests_per_second").value - per_second) < 1e-6);
    assert_false(compute(m, &r, "tokens_per_second").known);
    assert_true(fabs(compute(m, &r, "flops_per_second").value - 704198632 * per_second) < 1);
    assert_false(compute(m, &r, "count").known);
    double activations = compute(m, &r, "activation_memory").value;
    assert_true(compute(m, &r, "memory_footprint").value == activations + 593056);
    double efficiency = compute(m, &r, "efficiency").value;
    assert_true(efficiency > 0 && efficiency < 10);
    r.has_roof = false;
    assert_false(compute(m, &r, "efficiency").known);
    prony_metrics_release(m);
    prn_bump_release(&r.pool);
}

/* Errors against the reference rank before errors against another runtime; errors without values are unknown. */
static void test_errors(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_metrics *m = create();
    prony_accuracy_output outputs[] = {{"a", NULL, {.known = true, .max_rel = 2.5e-7}},
                                       {"b", NULL, {.known = true, .max_rel = 1e-7}},
                                       {"c", "other.npy", {.known = true, .max_rel = 0.5}},
                                       {"d", NULL, {.known = false, .max_rel = 9}}};
    prony_accuracy_row rows[] = {{.own = {.known = true, .max_rel = 1e-3}}, {.own = {.known = true, .max_rel = 0.02}}};
    prony_accuracy_row *all = prn_bump_alloc(&r.pool, r.operator_count, sizeof *all);
    assert_true(all && r.operator_count >= 2);
    memcpy(all, rows, sizeof rows);
    r.has_accuracy = true;
    r.operator_errors = all;
    r.accuracy.outputs = outputs;
    r.accuracy.output_count = 4;
    assert_true(compute(m, &r, "output_error").value == 2.5e-7 && compute(m, &r, "operator_error").value == 0.02);
    assert_string_equal(compute(m, &r, "output_error").text, "2.5e-07");
    outputs[1].error.nonfinite = 1;
    assert_false(compute(m, &r, "output_error").known);
    outputs[0].against = outputs[1].against = "other.npy";
    outputs[1].error.nonfinite = 0;
    assert_true(compute(m, &r, "output_error").value == 0.5);
    prony_metrics_release(m);
    prn_bump_release(&r.pool);
}

static void test_not_measured(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, false);
    prony_metrics *m = create();
    static const char *const absent[] = {
        "latency",       "throughput",      "requests_per_second", "flops_per_second", "memory",     "efficiency",
        "critical_path", "cpu_utilisation", "read_bytes",          "coverage",         "evaluation", "load_time",
        "top1_accuracy", "top5_accuracy",   "output_error",        "operator_error",   "operators",  "peak_memory"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        if (compute(m, &r, absent[i]).known) fail_msg("%s is known of a static report", absent[i]);
    assert_true(compute(m, &r, "macs").known && compute(m, &r, "activation_memory").known);
    prony_metrics_release(m);
    prn_bump_release(&r.pool);
}

/* ---- the user's own ---- */

typedef struct extent {
    double factor;
    int calls;
} extent;

static prony_status sizes(double *values, const prony_report *report, void *user, prony_error *error)
{
    extent *e = user;
    (void)error;
    e->calls++;
    assert_true(isnan(values[0]) && isnan(values[1]) && isnan(values[2]));
    values[0] = (double)prony_report_totals(report)->layers * e->factor;
    values[2] = 4089000000.0;
    return PRONY_OK;
}

static prony_status failing(double *values, const prony_report *report, void *user, prony_error *error)
{
    (void)values;
    (void)report;
    (void)user;
    snprintf(error->message, sizeof error->message, "no such file");
    return PRONY_IO_ERROR;
}

static void test_own(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_metrics *m = create();
    size_t built_in = prony_metrics_count(m);
    const prony_metric three[] = {
        {"depth", "Depth", "layers times a factor", "layers", PRONY_SCALE_NONE, PRONY_SMALLER_IS_BETTER},
        {"unknown", "Unknown", NULL, NULL, PRONY_SCALE_NONE, PRONY_NO_DIRECTION},
        {"macs", "My MACs", "by another rule", "MACs", PRONY_SCALE_SI, PRONY_SMALLER_IS_BETTER}};
    extent e = {2, 0};
    prony_error error = {0};
    size_t place = 0;
    while (strcmp(prony_metrics_at(m, place)->key, "macs") != 0) place++;
    assert_int_equal(prony_metrics_add(m, three, 3, sizes, &e, &error), PRONY_OK);
    assert_int_equal(prony_metrics_count(m), built_in + 2);
    assert_string_equal(prony_metrics_at(m, place)->name, "My MACs"); /* in the place of the built-in one */
    assert_null(prony_metrics_at(m, built_in + 2));
    assert_string_equal(compute(m, &r, "depth").text, "22 layers");
    assert_string_equal(compute(m, &r, "macs").text, "4.089 GMACs");
    assert_false(compute(m, &r, "unknown").known);
    e.calls = 0;
    prony_metric_value *values = calloc(prony_metrics_count(m), sizeof *values);
    assert_non_null(values);
    assert_int_equal(prony_metrics_compute_all(m, &r, values, &error), PRONY_OK);
    assert_int_equal(e.calls, 1); /* one call for all three */
    assert_true(values[place].value == 4089000000.0);
    assert_ptr_equal(values[built_in].metric, prony_metrics_find(m, "depth"));

    assert_int_equal(prony_metrics_add(m, &three[2], 1, sizes, &e, &error), PRONY_INVALID_ARGUMENT);
    assert_string_equal(error.message, "metric \"macs\" is defined already by the user");
    const prony_metric twice[] = {{"a", "A", "", "", 0, 0}, {"a", "A", "", "", 0, 0}};
    assert_int_equal(prony_metrics_add(m, twice, 2, sizes, &e, &error), PRONY_INVALID_ARGUMENT);
    assert_string_equal(error.message, "metric \"a\" is defined twice");
    const prony_metric odd = {"Not A Key", "A", "", "", 0, 0};
    assert_int_equal(prony_metrics_add(m, &odd, 1, sizes, &e, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_metrics_add(m, three, 0, sizes, &e, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(prony_metrics_count(m), built_in + 2);

    const prony_metric bad = {"bad", "Bad", "", "", 0, 0};
    assert_int_equal(prony_metrics_add(m, &bad, 1, failing, NULL, &error), PRONY_OK);
    prony_metric_value v;
    assert_int_equal(prony_metrics_compute(m, &r, "bad", &v, &error), PRONY_IO_ERROR);
    assert_string_equal(error.message, "metric \"bad\": no such file");
    assert_int_equal(prony_metrics_compute(m, &r, "nothing", &v, &error), PRONY_INVALID_ARGUMENT);
    assert_string_equal(error.message, "unknown metric \"nothing\"");
    free(values);
    prony_metrics_release(m);
    prn_bump_release(&r.pool);
}

static void test_print(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_metrics *m = create();
    sink s = {0}, d = {0};
    prony_error error = {0};
    assert_int_equal(prony_metrics_print(m, &r, false, sink_write, &s, &error), PRONY_OK);
    assert_non_null(strstr(s.text, "Computational complexity"));
    assert_non_null(strstr(s.text, "349.3 MMACs\n"));
    assert_null(strstr(s.text, "P99 latency")); /* not known */
    assert_null(strstr(s.text, "is better"));
    assert_int_equal(prony_metrics_print(m, &r, true, sink_write, &d, &error), PRONY_OK);
    for (size_t i = 0; i < prony_metrics_count(m); i++) {
        SCENARIO(i);
        char line[100];
        const prony_metric *metric = prony_metrics_at(m, i);
        assert_true(*metric->name && *metric->description);
        snprintf(line, sizeof line, "\n    %s: ", metric->key);
        if (!strstr(d.text, line)) fail_msg("%s is not printed", metric->key);
    }
    s.size = 0;
    s.refuse_after = 1;
    assert_int_equal(prony_metrics_print(m, &r, true, sink_write, &s, &error), PRONY_IO_ERROR);
    prn_free(s.text);
    prn_free(d.text);
    prony_metrics_release(m);
    prn_bump_release(&r.pool);
}

/* ---- units ---- */

static void test_parse(void **state)
{
    (void)state;
    prony_metrics *m = create();
    static const struct {
        const char *key, *text;
        double value;
    } rows[] = {
        {"latency", "100ms", 1e8},
        {"latency", "1.5 s", 1.5e9},
        {"latency", "250us", 250e3},
        {"latency", "2min", 1.2e11},
        {"latency", "40 \xc2\xb5s", 40e3},
        {"latency", "1e3ns", 1000},
        {"memory", "2GiB", 0x1p31},
        {"memory", "500 MB", 5e8},
        {"memory", "12B", 12},
        {"throughput", "1000samples/s", 1000},
        {"throughput", "2.5 ksamples/s", 2500},
        {"macs", "4.1GMACs", 4.1e9},
        {"memory", "1.5KiB", 1536},
        {"memory", "2MiB", 2097152},
        {"memory", "0.5 GiB", 536870912},
        {"memory", "3kB", 3000},
        {"memory", "3MB", 3e6},
        {"memory", "3 GB", 3e9},
        {"memory", "7B", 7},
        {"parameters", "11.2M", 11.2e6},
        {"plan_gap", "5%", 0.05},
        {"evaluation", "0.97", 0.97},
        {"evaluation", "97 %", 0.97},
        {"layers", "12", 12},
        {"intensity", "3FLOP/byte", 3},
        {"bytes_per_second", "10 GB/s", NAN},
        {"latency", "-1ms", -1e6},
    };
    if (!setlocale(LC_NUMERIC, "comma")) assert_null(getenv("LOCPATH")); /* see tests/CMakeLists.txt */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].key);
        double value = 0, wanted = rows[i].value;
        prony_error error = {0};
        if (isnan(wanted)) wanted = 1e10;
        if (prony_metric_parse(prony_metrics_find(m, rows[i].key), rows[i].text, &value, &error) != PRONY_OK)
            fail_msg("%s", error.message);
        if (fabs(value - wanted) > 1e-12 * fabs(wanted)) fail_msg("%s: %.17g", rows[i].text, value);
    }
    setlocale(LC_NUMERIC, "C");
    static const struct {
        const char *key, *text, *message;
    } wrong[] = {
        {"latency", "100", "latency: \"100\" has no unit; wanted ns, us, ms or s"},
        {"memory", "5", "memory: \"5\" has no unit; wanted B, kB, MB, GB, KiB, MiB or GiB"},
        {"latency", "100MB", "latency: unknown unit in \"100MB\"; wanted ns, us, ms or s"},
        {"throughput", "10images/s", "throughput: unknown unit in \"10images/s\"; wanted samples/s"},
        {"latency", "fast", "latency: \"fast\" is not a number"},
        {"latency", "", "latency: \"\" is not a number"},
        {"latency", "0x10ms", "latency: unknown unit in \"0x10ms\"; wanted ns, us, ms or s"},
        {"latency", "infs", "latency: \"infs\" is not a number"},
        {"latency", "1e999s", "latency: \"1e999s\" is not a number"},
        {"plan_gap", "0.05", "plan_gap: \"0.05\" has no unit; wanted %"},
        {"layers", "3x", "layers: unknown unit in \"3x\"; wanted no unit"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        SCENARIO_NAMED(i, wrong[i].key);
        double value = 17;
        prony_error error = {0};
        assert_int_equal(prony_metric_parse(prony_metrics_find(m, wrong[i].key), wrong[i].text, &value, &error),
                         PRONY_INVALID_ARGUMENT);
        assert_string_equal(error.message, wrong[i].message);
        assert_true(value == 17);
    }
    prony_metrics_release(m);
}

static void test_no_memory(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    const prony_metric own = {"own", "Own", "", "", 0, 0};
    extent e = {1, 0};
    for (uint64_t n = 1; n < 40; n++) {
        SCENARIO(n);
        prony_metrics *m = NULL;
        prn_alloc_fail_at(n);
        prony_status status = prony_metrics_create(&m, NULL);
        prn_alloc_fail_at(0);
        if (status == PRONY_OK) {
            prn_alloc_fail_at(n);
            status = prony_metrics_add(m, &own, 1, failing, &e, NULL);
            prn_alloc_fail_at(0);
            assert_true(status == PRONY_OK || (status == PRONY_OUT_OF_MEMORY && !prony_metrics_find(m, "own")));
        } else {
            assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        }
        prony_metrics_release(m);
    }
    prn_bump_release(&r.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in),  cmocka_unit_test(test_not_measured), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_own),       cmocka_unit_test(test_print),        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
