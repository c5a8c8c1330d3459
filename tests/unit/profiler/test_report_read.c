/* Reports read back from JSON: no value is lost, and no damaged value is accepted. */
#include "failure_trace.h"
#include "sample_report.h"
#include "text_sink.h"

#include "prony.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

static char *write_json(const prony_report *r, bool memory)
{
    sink s = {0};
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.memory = memory;
    if (prony_report_write(r, PRONY_FORMAT_JSON, &options, sink_write, &s, &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return s.text;
}

static prony_report *read_json(const char *text)
{
    prony_report *r = NULL;
    prony_error error = {0};
    if (prony_report_load_memory(&r, "report.json", text, strlen(text), &error) != PRONY_OK)
        fail_msg("%s", error.message);
    return r;
}

static void check_round_trip(const prony_report *r, bool memory)
{
    char *first = write_json(r, memory);
    prony_report *again = read_json(first);
    char *second = write_json(again, memory);
    assert_string_equal(first, second);
    prony_report_release(again);
    prn_free(first);
    prn_free(second);
}

static void count_rows(prony_report *r)
{
    static const char *const uncounted[] = {"MaxPool", "Flatten"};
    r->config.count_preset = "fvcore";
    r->totals.counted = true;
    r->totals.count = 17;
    r->layers[2].counted = true;
    r->layers[2].count = 17;
    r->modules[1].count = 17;
    r->uncounted = uncounted;
    r->uncounted_count = 2;
    r->uncounted_time_share = 0.125;
}

static void test_round_trip(void **state)
{
    (void)state;
    prony_report r;
    for (int measured = 0; measured < 2; measured++) {
        SCENARIO(measured);
        sample_report(&r, measured);
        check_round_trip(&r, measured);
        check_round_trip(&r, false);
        count_rows(&r);
        r.system.prony_version = "9.8.7";
        r.layers[0].name = "q\"b\\s/\b\f\n\r\t\x01 gr\xc3\xbc\xc3\x9f";
        r.config.affinity = "0-3";
        r.config.batch = -1;
        r.layers[0].cost.macs = (uint64_t)1 << 53;
        prony_value sequence = {.kind = PRONY_SEQUENCE, .dtype = PRONY_BFLOAT16, .shape = {.rank = -1}};
        const prony_value *outputs[] = {&sequence};
        r.layers[0].outputs = outputs;
        check_round_trip(&r, measured);
        r.time_share = -1; /* latency alone */
        for (size_t l = 0; l < r.layer_count; l++) r.layers[l].measured = false;
        for (size_t o = 0; o < r.operator_count; o++) r.operators[o].measured = false;
        check_round_trip(&r, measured);
        prn_bump_release(&r.pool);
    }
}

static void test_contents(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    count_rows(&r);
    char *text = write_json(&r, true);
    prony_report *b = read_json(text);
    assert_int_equal(b->layer_count, r.layer_count);
    assert_int_equal(b->operator_count, r.operator_count);
    assert_int_equal(b->module_count, r.module_count);
    for (size_t m = 0; m < r.module_count; m++) {
        SCENARIO(m);
        assert_int_equal(b->modules[m].parent, r.modules[m].parent);
        assert_int_equal(b->modules[m].depth, r.modules[m].depth);
    }
    for (size_t l = 0; l < r.layer_count; l++) {
        SCENARIO(l);
        assert_string_equal(b->layers[l].name, r.layers[l].name);
        assert_int_equal(b->layers[l].operator_index, r.layers[l].operator_index);
        assert_int_equal(b->layers[l].cost.flops, r.layers[l].cost.flops);
        assert_int_equal(b->layers[l].cost.fact_count, r.layers[l].cost.fact_count);
        assert_null(b->layers[l].inputs[1]);
        assert_int_equal(b->layers[l].inputs[0]->shape.dim[1], r.layers[l].inputs[0]->shape.dim[1]);
    }
    assert_int_equal(b->latency.count, SAMPLE_RUNS);
    assert_memory_equal(b->samples_ns, r.samples_ns, SAMPLE_RUNS * sizeof *r.samples_ns);
    assert_true(b->latency.p90_valid);
    assert_false(b->latency.p95_valid);
    assert_int_equal(b->latency.median_ci95_ns[1], r.latency.median_ci95_ns[1]);
    assert_int_equal(b->operators[5].offset_bytes, UINT64_MAX);
    assert_int_equal(b->memory.event_count, 2);
    assert_true(b->memory.events[1].release);
    assert_int_equal(b->memory.timeline_count, SAMPLE_OPERATORS);
    assert_int_equal(b->core_count, 2);
    assert_int_equal(b->core_points, 2);
    assert_true(b->cores[1].core == 3 && b->cores[1].use[0] == 0.125 && b->core_times_ns[1] == 500000000);
    assert_true(b->has_roof && b->roof.memory[0].bytes_per_second == 1.25e10);
    assert_int_equal(b->parameter_count, 3);
    assert_false(b->parameters[1].trainable);
    assert_int_equal(b->composites[0].layers[1], 2);
    assert_int_equal(b->totals.count, 17);
    assert_string_equal(b->system.libraries, "onednn 2.6.3, openblas 0.3.21");
    assert_int_equal(b->system.machine.cache_count, 2);
    assert_true(b->conserved && b->warmup_detected && b->measured && b->evaluation_count == 2);
    prony_report_release(b);
    prn_free(text);
    prn_bump_release(&r.pool);
}

/* The text with the first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at) fail_msg("no %s", from);
    size_t before = (size_t)(at - text), size = strlen(text) + strlen(to) + 1;
    char *out = malloc(size);
    assert_non_null(out);
    snprintf(out, size, "%.*s%s%s", (int)before, text, to, at + strlen(from));
    return out;
}

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *message;
        prony_status status;
    } rows[] = {
        {"prony.report/1", "prony.report/2", "report.json: schema: \"prony.report/2\" is another version",
         PRONY_IO_ERROR},
        {"prony.report/1", "other", "report.json: schema: \"other\" is not the schema of a report", PRONY_IO_ERROR},
        {"\"schema\"", "\"schemo\"", "report.json: schema: is missing", PRONY_IO_ERROR},
        {"\"opset\": 17", "\"opset\": \"17\"", "model.opset: wanted an integer, found \"17\"", PRONY_IO_ERROR},
        {"\"opset\": 17", "\"opset\": 17.5", "model.opset: wanted an integer, found 17.5", PRONY_IO_ERROR},
        {"\"nodes\": 11", "\"nodes\": -1", "model.nodes: wanted an integer of 0 or more", PRONY_IO_ERROR},
        {"\"nodes\": 11", "\"nodes\": 9007199254740993", "\"nodes\": 9007199254740993 is above 2^53",
         PRONY_OUT_OF_RANGE},
        {"\"nodes\": 11", "\"nodes\": 99999999999999999999999999", "is above 2^53", PRONY_OUT_OF_RANGE},
        {"\"nodes\": 11", "\"nodes\": 1e300", "model.nodes: wanted an integer of 0 or more", PRONY_IO_ERROR},
        {"\"plan_gap\": 0", "\"plan_gap\": 1e999, \"x\": 0", "memory.plan_gap: wanted a finite number", PRONY_IO_ERROR},
        {"0.125", "0.125, 0.5", "cpu.cores[1].use: wanted 2 elements, found 3", PRONY_IO_ERROR},
        {"\"rewrites\": true", "\"rewrites\": 1", "config.rewrites: wanted true or false, found 1", PRONY_IO_ERROR},
        {"\"layers\": [", "\"layerz\": [", "layers: is missing", PRONY_IO_ERROR},
        {"\"operator\": 0", "\"operator\": 77", "layers[0].operator: 77 refers to a missing operator", PRONY_IO_ERROR},
        {"\"folded\": true", "\"folded\": null", "layers[7].folded: null", PRONY_IO_ERROR},
        {"\"index\": 4", "\"index\": 5", "layers[4].index: 5 does not match the row's position", PRONY_IO_ERROR},
        {"\"type\": \"float32\"", "\"type\": \"float33\"", "unknown element type \"float33\"", PRONY_IO_ERROR},
        {"\"kernel\": \"conv", "\"kernel\": [1], \"k\": \"conv", "operators[0].kernel: wanted a string",
         PRONY_IO_ERROR},
        {"[\"stem\"", "[\"stam\"", "modules[0].children: \"stam\"", PRONY_IO_ERROR},
        {"\"runs\": 70,\n    \"warmup_d", "\"runs\": 71,\n    \"warmup_d",
         "latency_ns.samples: wanted 71 elements, found 70", PRONY_IO_ERROR},
        {"\"name\": \"resnet-sample\",", "", "model.name: is missing", PRONY_IO_ERROR},
        {"\"config\": {", "\"config\": [{", "line 3", PRONY_IO_ERROR},
    };
    prony_report r, *out = NULL;
    sample_report(&r, true);
    char *text = write_json(&r, true);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].from);
        char *damaged = replaced(text, rows[i].from, rows[i].to);
        prony_error error = {0};
        prony_status status = prony_report_load_memory(&out, "report.json", damaged, strlen(damaged), &error);
        if (status != rows[i].status ||
            (i + 1 < sizeof rows / sizeof rows[0] && !strstr(error.message, rows[i].message)))
            fail_msg("%s -> %s: %d, %s", rows[i].from, rows[i].to, (int)status, error.message);
        assert_null(out);
        free(damaged);
    }
    prn_free(text);
    prn_bump_release(&r.pool);
}

static void test_truncation(void **state)
{
    (void)state;
    prony_report r, *out = NULL;
    sample_report(&r, true);
    char *text = write_json(&r, true);
    size_t size = strlen(text) - 1; /* the newline may be missing */
    for (size_t cut = 0; cut < size; cut += cut < 200 ? 1 : 97) {
        SCENARIO(cut);
        prony_error error = {0};
        assert_int_equal(prony_report_load_memory(&out, "cut.json", text, cut, &error), PRONY_IO_ERROR);
        assert_non_null(strstr(error.message, "cut.json: "));
    }
    assert_int_equal(prony_report_load_memory(&out, "cut.json", text, size, NULL), PRONY_OK);
    prony_report_release(out);
    static const char *const others[] = {"[]",       "null",           "{}", "\"prony.report/1\"", "{} {}",
                                         "\xff\xfe", "{\"schema\": 1}"};
    out = NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(prony_report_load_memory(&out, "x", others[i], strlen(others[i]), NULL), PRONY_IO_ERROR);
    assert_null(out);
    prn_free(text);
    prn_bump_release(&r.pool);
}

/* An accepted report supports every function on reports. */
static void use(prony_report *r)
{
    static const prony_format forms[] = {PRONY_FORMAT_TEXT,  PRONY_FORMAT_JSON,   PRONY_FORMAT_CSV, PRONY_FORMAT_LATEX,
                                         PRONY_FORMAT_TRACE, PRONY_FORMAT_FOLDED, PRONY_FORMAT_DOT};
    prony_metrics *metrics = NULL;
    for (size_t p = 0; p < prony_count_preset_count(); p++)
        (void)!prony_report_set_count(r, prony_count_preset_at(p)->name, NULL);
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        sink s = {0};
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.memory = true;
        options.levels = forms[f] == PRONY_FORMAT_TEXT ? 15 : 0;
        (void)!prony_report_write(r, forms[f], &options, sink_write, &s, NULL);
        prn_free(s.text);
    }
    for (const char *const *chart = prony_chart_names(); *chart; chart++) {
        sink s = {0};
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.chart = *chart;
        (void)!prony_report_write(r, PRONY_FORMAT_SVG, &options, sink_write, &s, NULL);
        prn_free(s.text);
    }
    sink s = {0};
    assert_int_equal(prony_metrics_create(&metrics, NULL), PRONY_OK);
    assert_int_equal(prony_metrics_print(metrics, r, true, sink_write, &s, NULL), PRONY_OK);
    prony_metrics_release(metrics);
    prn_free(s.text);
}

static void test_mutations(void **state)
{
    (void)state;
    static const char *const tokens[] = {
        "0", "-1", "9007199254740992", "4294967295", "1e15", "null", "true", "[]", "{}", "\"x\"", "2", "0.5"};
    prony_report r;
    sample_report(&r, true);
    char *text = write_json(&r, true);
    size_t size = strlen(text), believed = 0;
    char *changed = malloc(size + 64);
    assert_non_null(changed);
    uint64_t random = 1;
    for (int round = 0; round < 1500; round++) {
        SCENARIO(round);
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(random >> 33) % size;
        while (at < size && !strchr("0123456789", text[at])) at++; /* a number becomes something else */
        size_t length = strspn(text + at, "0123456789.e+-");
        int n =
            snprintf(changed, size + 64, "%.*s%s%s", (int)at, text, tokens[(random >> 20) % 12], text + at + length);
        prony_report *out = NULL;
        prony_error error = {0};
        if (prony_report_load_memory(&out, "x", changed, (size_t)n, &error) != PRONY_OK) {
            assert_non_null(strstr(error.message, "x: "));
            continue;
        }
        believed++;
        use(out);
        prony_report_release(out);
    }
    assert_true(believed > 100);
    free(changed);
    prn_free(text);
    prn_bump_release(&r.pool);
}

static void test_no_memory(void **state)
{
    (void)state;
    prony_report r, *out = NULL;
    sample_report(&r, true);
    char *text = write_json(&r, true);
    uint64_t n = 1;
    for (;; n++) {
        prn_alloc_fail_at(n);
        prony_status status = prony_report_load_memory(&out, "x", text, strlen(text), NULL);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        if (!failed) {
            assert_int_equal(status, PRONY_OK);
            break;
        }
        assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        assert_null(out);
    }
    assert_true(n > 3);
    prony_report_release(out);
    prn_free(text);
    prn_bump_release(&r.pool);
}

/* A real model's report, live and static, by way of a file. */
static void test_model(void **state)
{
    (void)state;
    prony_model *model = NULL;
    prony_session *session = NULL;
    prony_report *live = NULL, *fixed = NULL, *loaded = NULL;
    prony_error error = {0};
    prony_session_options options = PRONY_SESSION_OPTIONS_INIT;
    prony_profile_options profile = PRONY_PROFILE_OPTIONS_INIT;
    options.record_memory = true;
    profile.runs = 10;
    profile.warmup_runs = 1;
    assert_int_equal(prony_model_load(&model, PRN_SOURCE_DIR "/models/digits.onnx", NULL, &error), PRONY_OK);
    assert_int_equal(prony_inspect(&fixed, model, NULL, &error), PRONY_OK);
    assert_int_equal(prony_session_create(&session, model, &options, &error), PRONY_OK);
    assert_int_equal(prony_session_generate_inputs(session, 0, &error), PRONY_OK);
    assert_int_equal(prony_session_profile(&live, session, &profile, &error), PRONY_OK);
    check_round_trip(live, true);
    check_round_trip(fixed, false);
    static const char path[] = "test_report_read.json";
    prony_write_options write = PRONY_WRITE_OPTIONS_INIT;
    assert_int_equal(prony_report_save(live, PRONY_FORMAT_JSON, &write, path, &error), PRONY_OK);
    if (prony_report_load(&loaded, path, &error) != PRONY_OK) fail_msg("%s", error.message);
    unlink(path);
    assert_int_equal(prony_report_totals(loaded)->cost.macs, prony_report_totals(live)->cost.macs);
    size_t count = 0;
    assert_non_null(prony_report_parameters(loaded, &count));
    uint64_t elements = 0;
    for (size_t i = 0; i < count; i++)
        if (prony_report_parameters(loaded, NULL)[i].trainable)
            elements += prony_report_parameters(loaded, NULL)[i].elements;
    assert_int_equal(elements, prony_report_totals(live)->cost.parameters);
    prony_report_release(loaded);
    prony_report_release(live);
    prony_report_release(fixed);
    prony_session_release(session);
    prony_model_release(model);
    assert_int_equal(prony_report_load(&loaded, "no/such/report.json", &error), PRONY_IO_ERROR);
    assert_non_null(strstr(error.message, "no/such/report.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_contents),  cmocka_unit_test(test_damage),
        cmocka_unit_test(test_truncation), cmocka_unit_test(test_mutations), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
