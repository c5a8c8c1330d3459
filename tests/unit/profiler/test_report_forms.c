/* The formats of a report in memory: each has the report's values, refuses what it cannot express, survives a sink
 * that refuses and a heap that fails, and takes hostile names. tests/command/check_forms.py reads the formats with
 * other programs. */
#include "failure_trace.h"
#include "tests/support/sample_report.h"
#include "tests/support/text_sink.h"

#include "base/memory/alloc.h"

#include <locale.h>
#include <stdlib.h>

typedef struct form {
    prony_format format;
    const char *chart;
} form;

static const form forms[] = {
    {PRONY_FORMAT_CSV, NULL},      {PRONY_FORMAT_LATEX, NULL},    {PRONY_FORMAT_TRACE, NULL},
    {PRONY_FORMAT_FOLDED, NULL},   {PRONY_FORMAT_DOT, NULL},      {PRONY_FORMAT_HTML, NULL},
    {PRONY_FORMAT_SVG, "layers"},  {PRONY_FORMAT_SVG, "types"},   {PRONY_FORMAT_SVG, "roofline"},
    {PRONY_FORMAT_SVG, "memory"},  {PRONY_FORMAT_SVG, "latency"}, {PRONY_FORMAT_SVG, "runs"},
    {PRONY_FORMAT_SVG, "cores"},   {PRONY_FORMAT_SVG, "modules"}, {PRONY_FORMAT_SVG, "graph"},
    {PRONY_FORMAT_SVG, "accuracy"}};
#define FORMS (sizeof forms / sizeof forms[0])

/* The sample with other sources, time stamps of every operator, use of two processors, and without roofs. */
static void traced_report(prony_report *r)
{
    static const int64_t ends[] = {250000000, 500000000};
    static const double use[2][2] = {{0.5, 1}, {0, 0.125}};
    static const prony_core_row cores[] = {{0, 0.75, use[0]}, {3, 0.0625, use[1]}};
    int64_t now = 1000;
    sample_report(r, true);
    r->cores = cores;
    r->core_count = r->core_points = 2;
    r->core_times_ns = ends;
    sample_add_accuracy(r);
    r->has_roof = false;
    for (uint32_t i = 0; i < r->layer_count; i++) {
        uint32_t *sources = sample_alloc(r, 2, sizeof *sources);
        sources[0] = i ? i - 1 : PRONY_NO_INDEX;
        sources[1] = i == 6 ? 3 : PRONY_NO_INDEX;
        r->layers[i].sources = sources;
    }
    for (size_t o = 0; o < r->operator_count; o++) {
        r->operators[o].traced = true;
        r->operators[o].trace_start_ns = now;
        now += r->operators[o].time.mean_ns;
        r->operators[o].trace_end_ns = now;
        now += 500;
    }
}

static prony_status write_form(const prony_report *r, const form *f, sink *s, prony_error *error)
{
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.chart = f->chart;
    s->size = 0;
    return prony_report_write(r, f->format, &options, sink_write, s, error);
}

static void expect(const prony_report *r, prony_format format, const char *chart, sink *s, const char *const *there)
{
    prony_error error = {0};
    if (write_form(r, &(form){format, chart}, s, &error) != PRONY_OK) fail_msg("%s", error.message);
    for (; *there; there++)
        if (!strstr(s->text, *there))
            fail_msg("form %d %s does not say \"%s\"", (int)format, chart ? chart : "", *there);
}

static void test_what_is_said(void **state)
{
    (void)state;
    prony_report r;
    sink s = {0};
    traced_report(&r);
    expect(&r, PRONY_FORMAT_CSV, NULL, &s,
           (const char *const[]){
               "\r\n0,/stem/conv1/Conv,stem/conv1,Conv,False,False,float32,1x64x112x112 none,1x64x112x112,118013952",
               "\r\n7,Shape_17,__root__,Shape,True", ",True,0,conv_f32_dnnl,estimated,0.", NULL});
    expect(&r, PRONY_FORMAT_LATEX, NULL, &s,
           (const char *const[]){"\\toprule", "fc.\\allowbreak{}weight", "349~M", "conv\\_\\allowbreak{}f32", "root",
                                 NULL});
    expect(&r, PRONY_FORMAT_FOLDED, NULL, &s,
           (const char *const[]){"resnet-sample;stem;conv1;Conv ", "resnet-sample;", NULL});
    expect(&r, PRONY_FORMAT_DOT, NULL, &s,
           (const char *const[]){"n3 -> n6;", "n9 -> n10;", "dashed", "coloured by share of the time", NULL});
    expect(&r, PRONY_FORMAT_TRACE, NULL, &s,
           (const char *const[]){"\"ts\": 1,", "\"arena live bytes\"", "\"bp\": \"e\"", "worker 0: operators", NULL});
    expect(&r, PRONY_FORMAT_SVG, "roofline", &s,
           (const char *const[]){"No roofs: run `prony machine` once", "arithmetic intensity", NULL});
    expect(&r, PRONY_FORMAT_SVG, "memory", &s, (const char *const[]){"/maxpool/MaxPool (activation)", NULL});
    expect(&r, PRONY_FORMAT_SVG, "cores", &s,
           (const char *const[]){"cpu3: busy 6.2 % of the time", "<path fill-opacity=\"0.12\"",
                                 "<path fill-opacity=\"1.00\"", NULL});
    expect(&r, PRONY_FORMAT_SVG, "runs", &s, (const char *const[]){"Latency over the runs", "h0", NULL});
    expect(&r, PRONY_FORMAT_HTML, NULL, &s,
           (const char *const[]){"prony.report/1", "resnet-sample", "Content-Security-Policy", NULL});
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* A report that was read may have no modules: its layers have no place in the picture then. */
static void test_layers_without_modules(void **state)
{
    (void)state;
    prony_report r;
    sink s = {0};
    traced_report(&r);
    r.module_count = 0;
    expect(&r, PRONY_FORMAT_SVG, "modules", &s, (const char *const[]){"0 modules", "(none known)", NULL});
    assert_null(strstr(s.text, "data-layer"));
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_roofs(void **state)
{
    (void)state;
    static const prn_roof_compute compute[] = {
        {"fp32", 1, 5e10}, {"fp32", 2, 1e11}, {"fp32", 8, 4e11}, {"bf16", 2, 9e11}};
    static const prn_roof_memory memory[] = {{"DRAM", 1, 1e10}, {"DRAM", 2, 2e10}, {"L2", 1, 8e10}};
    prony_report r;
    sink s = {0};
    traced_report(&r); /* at two threads */
    assert_true(prn_report_roof_flops(&r, "fp32") <= 0);
    r.has_roof = true;
    r.roof = (prn_report_roof){compute, 4, memory, 3, "by hand", NULL, 0, false};
    assert_true(prn_report_roof_flops(&r, "fp32") > 0.99e11 && prn_report_roof_flops(&r, "fp32") < 1.01e11);
    assert_true(prn_report_roof_bandwidth(&r, "DRAM") > 1.9e10 && prn_report_roof_bandwidth(&r, "DRAM") < 2.1e10);
    assert_true(prn_report_roof_bandwidth(&r, "L2") > 7e10);
    assert_true(prn_report_roof_bandwidth(&r, "L3") <= 0);
    expect(&r, PRONY_FORMAT_SVG, "roofline", &s,
           (const char *const[]){"peak 100 GFLOP/s", "DRAM 20.0 GB/s", "L2 80.0 GB/s", NULL});
    assert_null(strstr(s.text, "No roofs: "));
    expect(&r, PRONY_FORMAT_JSON, NULL, &s,
           (const char *const[]){"\"roof\"", "\"by hand\"", "\"bytes_per_second\": 20000000000", NULL});
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_refusals(void **state)
{
    (void)state;
    prony_report r;
    prony_error error = {0};
    sink s = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    sample_report(&r, false);
    options.levels = PRONY_LEVEL_LAYER | PRONY_LEVEL_MODEL;
    assert_int_equal(prony_report_write(&r, PRONY_FORMAT_CSV, &options, sink_write, &s, &error),
                     PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "one level"));
    assert_int_equal(prony_report_write(&r, (prony_format)99, NULL, sink_write, &s, &error), PRONY_INVALID_ARGUMENT);
    static const char *const impossible[] = {"roofline", "latency", "runs", "cores", "memory", "accuracy", "pie", NULL};
    for (const char *const *chart = impossible; *chart; chart++) {
        assert_int_equal(write_form(&r, &(form){PRONY_FORMAT_SVG, *chart}, &s, &error), PRONY_INVALID_ARGUMENT);
        assert_non_null(strstr(error.message, *chart));
    }
    assert_int_equal(write_form(&r, &(form){PRONY_FORMAT_TRACE, NULL}, &s, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(s.size, 0);
    static const form possible[] = {
        {PRONY_FORMAT_CSV, NULL},    {PRONY_FORMAT_LATEX, NULL},    {PRONY_FORMAT_FOLDED, NULL},
        {PRONY_FORMAT_DOT, NULL},    {PRONY_FORMAT_HTML, NULL},     {PRONY_FORMAT_SVG, "layers"},
        {PRONY_FORMAT_SVG, "types"}, {PRONY_FORMAT_SVG, "modules"}, {PRONY_FORMAT_SVG, "graph"}};
    for (size_t f = 0; f < sizeof possible / sizeof possible[0]; f++)
        assert_int_equal(write_form(&r, &possible[f], &s, &error), PRONY_OK);
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_charts_are_named(void **state)
{
    (void)state;
    size_t named = 0, charts = 0;
    for (const char *const *name = prony_chart_names(); *name; name++, named++)
        for (size_t f = 0; f < FORMS; f++) charts += forms[f].chart && strcmp(forms[f].chart, *name) == 0;
    assert_int_equal(named, charts + 2); /* "pipeline" needs ranks, "generation" a decoder: the tests below */
}

/* A dot for each step, red at the edge where one is far slower than the others. */
static void test_a_generation(void **state)
{
    (void)state;
    static const int64_t steps[] = {1000000, 1010000, 1020000, 9000000, 1040000};
    prony_report r;
    prony_error error = {0};
    sink s = {0};
    traced_report(&r);
    assert_int_equal(write_form(&r, &(form){PRONY_FORMAT_SVG, "generation"}, &s, &error), PRONY_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "not of a decoder (--generate)"));
    r.has_generation = true;
    r.generation = (prony_generation){.batch = 1,
                                      .prompt_tokens = 16,
                                      .new_tokens = 6,
                                      .repetitions = 3,
                                      .cache = "growing",
                                      .convention = "",
                                      .step = {.count = 15, .p50_ns = 1020000, .p95_ns = 1040000},
                                      .step_growth_ns = 10000,
                                      .position_ns = steps,
                                      .position_count = 5,
                                      .bandwidth_share = -1};
    expect(&r, PRONY_FORMAT_SVG, "generation", &s,
           (const char *const[]){"Latency over the position", "median of 3 repetitions", "1.02 ms", "10.0 us a token",
                                 "fill=\"#b8322a\" d=\"M", NULL});
    expect(&r, PRONY_FORMAT_HTML, NULL, &s, (const char *const[]){"data-chart=\"generation\"", NULL});
    r.generation.position_count = 1; /* one step has no slope */
    expect(&r, PRONY_FORMAT_SVG, "generation", &s, (const char *const[]){"Latency over the position", NULL});
    assert_null(strstr(s.text, "nan"));
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* Two ranks: a lane for each in the trace, the picture, and the picture in the page. Ranks that a file made up are left
 * out. */
static void test_a_pipeline(void **state)
{
    (void)state;
    static const uint32_t first[] = {0, 1, 2}, second[] = {3, 4, 5};
    prony_report r;
    prony_error error = {0};
    sink s = {0};
    traced_report(&r);
    assert_int_equal(write_form(&r, &(form){PRONY_FORMAT_SVG, "pipeline"}, &s, &error), PRONY_INVALID_ARGUMENT);
    prony_rank_row *ranks = sample_alloc(&r, 2, sizeof *ranks);
    ranks[0] = (prony_rank_row){.node = "n01", .layers = first, .layer_count = 3};
    ranks[1] = (prony_rank_row){.rank = 1,
                                .stage = 1,
                                .node = "n02",
                                .layers = second,
                                .layer_count = 3,
                                .clock_offset_ns = 1500,
                                .clock_error_ns = 250};
    r.ranks = ranks;
    r.rank_count = 2;
    r.has_pipeline = true;
    const prony_pipeline_event events[] = {{0, 0, 0, "compute", NULL, 0, 100000},
                                           {0, 1, 0, "send", "hidden", 100000, 120000},
                                           {1, 0, 0, "receive", "hidden", 110000, 125000},
                                           {1, 1, 0, "wait", NULL, 0, 125000},
                                           {1, 1, 0, "compute", NULL, 125000, 300000}};
    assert_int_equal(prony_report_set_transfers(&r, NULL, 0, events, 5, &error), PRONY_OK);
    expect(&r, PRONY_FORMAT_SVG, "pipeline", &s,
           (const char *const[]){"rank 1, n02", "rank 1, micro-batch 0: compute", NULL});
    expect(&r, PRONY_FORMAT_HTML, NULL, &s, (const char *const[]){"data-chart=\"pipeline\"", "rank 1, n02", NULL});
    expect(&r, PRONY_FORMAT_TRACE, NULL, &s,
           (const char *const[]){"rank 1: n02, clock 1.500 us from rank 0's, within 0.250 us", "send hidden",
                                 "\"pid\": 3", NULL});
    assert_null(strstr(s.text, "worker 0: operators"));
    r.pipeline_events[0].rank = 7; /* as a damaged file may say */
    r.pipeline_events[1].peer = 9;
    expect(&r, PRONY_FORMAT_SVG, "pipeline", &s, (const char *const[]){"rank 0, n01", NULL});
    expect(&r, PRONY_FORMAT_TRACE, NULL, &s, (const char *const[]){"rank 0: n01", NULL});
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_a_sink_that_refuses(void **state)
{
    (void)state;
    prony_report r;
    traced_report(&r);
    for (size_t f = 0; f < FORMS; f++) {
        SCENARIO(f);
        prony_error error = {0};
        sink s = {.refuse_after = 1};
        assert_int_equal(write_form(&r, &forms[f], &s, &error), PRONY_IO_ERROR);
        prn_free(s.text);
    }
    prn_bump_release(&r.pool);
}

static void test_a_heap_that_fails(void **state)
{
    (void)state;
    prony_report r;
    traced_report(&r);
    static char room[1 << 20];
    for (size_t f = 0; f < FORMS; f++) {
        SCENARIO(f);
        for (uint64_t n = 1; n < 1000; n++) {
            prony_error error = {0};
            sink s = {.text = room, .capacity = sizeof room}; /* the sink itself does not allocate */
            prn_alloc_fail_at(n);
            prony_status status = forms[f].format == PRONY_FORMAT_HTML
                                      ? prn_report_write_folded(&r, &(prony_write_options)PRONY_WRITE_OPTIONS_INIT,
                                                                sink_write, &s, &error)
                                      : write_form(&r, &forms[f], &s, &error);
            bool failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            if (!failed) {
                assert_int_equal(status, PRONY_OK);
                break;
            }
            if (status != PRONY_OUT_OF_MEMORY)
                fail_msg("form %d %s: allocation %d failed, but the status is %d", (int)forms[f].format,
                         forms[f].chart ? forms[f].chart : "", (int)n, (int)status);
        }
    }
    prn_bump_release(&r.pool);
}

static void test_hostile_and_huge(void **state)
{
    (void)state;
    static char name[5000];
    prony_report r;
    sink s = {0};
    traced_report(&r);
    memset(name, 'n', sizeof name - 1);
    memcpy(name, "/\xff\xfe<&\"'\\;,\n\t{}%$#_^~\x1b]]>", 24);
    r.model.name = r.layers[2].name = r.layers[2].op = r.operators[1].name = r.operators[1].kernel = name;
    r.modules[1].path = r.layers[2].module = name;
    for (size_t f = 0; f < FORMS; f++) {
        SCENARIO(f);
        prony_error error = {0};
        if (write_form(&r, &forms[f], &s, &error) != PRONY_OK) fail_msg("%s", error.message);
        assert_null(memchr(s.text, '\x1b', s.size));
        if (forms[f].format != PRONY_FORMAT_TEXT) assert_null(memchr(s.text, '\xff', s.size));
    }
    for (size_t l = 0; l < r.layer_count; l++) { /* nothing took any time, nothing costs anything */
        r.layers[l].cost = (prony_cost){0};
        r.layers[l].share = 0;
        r.layers[l].time = (prony_time_stats){0};
    }
    for (size_t o = 0; o < r.operator_count; o++) {
        r.operators[o].cost = (prony_cost){0};
        r.operators[o].time = (prony_time_stats){0};
        r.operators[o].share = 0;
    }
    for (size_t m = 0; m < r.module_count; m++) r.modules[m].time_ns = 0;
    for (uint64_t i = 0; i < r.latency.count; i++) r.samples_ns[i] = 5;
    r.totals.cost = (prony_cost){0};
    r.memory.planned_bytes = r.memory.peak_live_bytes = 0;
    for (size_t f = 0; f < FORMS; f++) {
        SCENARIO(f);
        prony_error error = {0};
        if (write_form(&r, &forms[f], &s, &error) != PRONY_OK) fail_msg("%s", error.message);
        if (forms[f].format == PRONY_FORMAT_SVG && (strstr(s.text, "nan") || strstr(s.text, "\"inf")))
            fail_msg("%s", forms[f].chart);
    }
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* Every level of CSV with `name` wherever a model names something, at the start of a line and of a cell. */
static void csv_of_all_levels(prony_report *r, const char *name, sink *s)
{
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    r->model.name = r->layers[0].name = r->layers[0].module = r->layers[0].op = name;
    r->operators[0].name = r->operators[0].op = r->modules[1].path = r->modules[1].type = name;
    s->size = 0;
    for (unsigned level = PRONY_LEVEL_MODEL; level <= PRONY_LEVEL_MODULE; level <<= 1) {
        options.levels = level;
        assert_int_equal(prony_report_write(r, PRONY_FORMAT_CSV, &options, sink_write, s, NULL), PRONY_OK);
    }
}

static void test_names_are_no_formulas(void **state)
{
    (void)state;
    static const struct {
        const char *name, *cell, *raw;
    } cases[] = {
        {"=1+1", ",\"'=1+1\",", ",=1"},
        {"+1", ",\"'+1\",", ",+1"},
        {"-1;2", ",\"'-1;2\",", ",-1"},
        {"@SUM(A1)", ",\"'@SUM(A1)\",", ",@"},
        {"\t=1", ",\"'?=1\",", "\t"},
        {"\r=1", ",\"'?=1\",", "\r="},
        {"=\"a\"", ",\"'=\"\"a\"\"\",", "\",="},
        {"a;=1", ",\"a;=1\",", ",a;"},
        {"a\x1b[2J\x7f\xc2\x9b\xff\xc0\xaf", ",a?[2J?", "\x1b"},
        {"caf\xc3\xa9-=1", ",caf\xc3\xa9-=1,", ",?"},
    };
    prony_report r;
    sink s = {0};
    traced_report(&r);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SCENARIO_NAMED(i, cases[i].name);
        csv_of_all_levels(&r, cases[i].name, &s);
        if (!strstr(s.text, cases[i].cell)) fail_msg("'%s' is not a cell of\n%s", cases[i].cell, s.text);
        if (strstr(s.text, cases[i].raw)) fail_msg("'%s' is in\n%s", cases[i].raw, s.text);
        for (const char *c = s.text; *c; c++)
            if ((unsigned char)*c < 0x20 && *c != '\n' && !(*c == '\r' && c[1] == '\n')) fail_msg("raw byte %d", *c);
    }
    r.layers[0].cost.macs = 7; /* figures stay as they are */
    csv_of_all_levels(&r, "n", &s);
    assert_non_null(strstr(s.text, ",7,"));
    assert_null(strchr(s.text, '\''));
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* A program that uses the library may have a locale of its own; the written formats do not depend on it. */
static void test_a_decimal_comma(void **state)
{
    (void)state;
    prony_report r;
    sink plain = {0}, comma = {0};
    sample_report(&r, true);
    for (size_t i = 0; i < FORMS + 2; i++) {
        SCENARIO(i);
        form f = i < FORMS ? forms[i] : (form){i == FORMS ? PRONY_FORMAT_TEXT : PRONY_FORMAT_JSON, NULL};
        prony_status status = write_form(&r, &f, &plain, NULL);
        if (!setlocale(LC_NUMERIC, "comma")) assert_null(getenv("LOCPATH")); /* see tests/CMakeLists.txt */
        assert_int_equal(write_form(&r, &f, &comma, NULL), status);
        setlocale(LC_NUMERIC, "C");
        if (status == PRONY_OK) assert_string_equal(comma.text, plain.text);
    }
    prn_free(plain.text);
    prn_free(comma.text);
    prn_bump_release(&r.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said),      cmocka_unit_test(test_roofs),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_layers_without_modules),
        cmocka_unit_test(test_charts_are_named),  cmocka_unit_test(test_a_generation),
        cmocka_unit_test(test_a_pipeline),        cmocka_unit_test(test_names_are_no_formulas),
        cmocka_unit_test(test_a_decimal_comma),   cmocka_unit_test(test_a_sink_that_refuses),
        cmocka_unit_test(test_a_heap_that_fails), cmocka_unit_test(test_hostile_and_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
