/* The terminal report: never wider than asked, no escape codes without colour, no trailing blanks, hostile names tamed,
 * sorting, filtering, levels and `top` as told, wrong options refused by name. */
#include "failure_trace.h"
#include "tests/support/sample_report.h"
#include "tests/support/text_sink.h"

#include "profiler/text/number_text.h"
#include "profiler/text/text_out.h"

static char *write_text(const prony_report *r, const prony_write_options *options, sink *s)
{
    prony_error error = {0};
    s->size = 0;
    if (prn_report_write_text(r, options, sink_write, s, &error) != PRONY_OK) fail_msg("%s", error.message);
    return s->text;
}

static char *write_all(const prony_report *r, sink *s)
{
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.all = true;
    return write_text(r, &options, s);
}

/* Length of the longest line, escape codes aside; fails on trailing blanks and on anything but printable ASCII and u
 * with dots. */
static size_t longest_line(const char *text, bool color)
{
    size_t longest = 0, length = 0;
    char last = 'x';
    for (const char *p = text; *p; p++) {
        if (color && *p == '\x1b') {
            p += strcspn(p, "m");
            continue;
        }
        if (*p == '\n') {
            if (last == ' ') fail_msg("a line ends in a blank");
            if (length > longest) longest = length;
            length = 0;
        } else if (strncmp(p, "\xc3\xbc", 2) == 0) {
            length++;
            p++;
        } else if (*p < 0x20 || *p > 0x7e) {
            fail_msg("byte 0x%02x in the report", (unsigned char)*p);
        } else {
            length++;
        }
        last = *p;
    }
    return longest;
}

static void test_width(void **state)
{
    (void)state;
    sink s = {0};
    static const int widths[] = {60, 72, 80, 100, 120, 200};
    for (int measured = 0; measured < 2; measured++) {
        SCENARIO(measured);
        prony_report r;
        sample_report(&r, measured);
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            SCENARIO(w);
            for (int color = 0; color < 2; color++) {
                prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
                options.width = widths[w];
                options.color = color;
                options.all = w % 2;
                options.memory = true;
                const char *text = write_text(&r, &options, &s);
                assert_true(longest_line(text, color) <= (size_t)widths[w]);
                assert_int_equal(strchr(text, '\x1b') != NULL, color);
            }
        }
        prn_bump_release(&r.pool);
    }
    prn_free(s.text);
}

static void test_default_is_80(void **state)
{
    (void)state;
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    assert_true(longest_line(write_text(&r, NULL, &s), false) <= 80);
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_large_figures_and_long_names(void **state)
{
    (void)state;
    static char name[3000];
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    memset(name, 'n', sizeof name - 1);
    memcpy(name, "\x1b[31mgr\xc3\xbc\n\t", 11);
    r.layers[2].name = r.operators[2].name = r.operators[2].kernel = r.model.name = r.layers[4].op = name;
    r.model.producer = r.system.libraries = r.evaluations[0].metric = r.stop_reason = name;
    prony_value_info port = {.name = name, .dtype = PRONY_FLOAT32, .shape = {.rank = PRONY_MAX_RANK}};
    for (int d = 0; d < PRONY_MAX_RANK; d++) {
        port.dim_names[d] = name;
        port.shape.dim[d] = INT64_MAX;
    }
    r.model.inputs = &port;
    prony_value value = {.dtype = PRONY_FLOAT32, .shape = port.shape};
    const prony_value *outputs[] = {&value};
    r.layers[1].outputs = outputs;
    r.totals.cost.macs = r.totals.cost.flops = r.model.parameters = r.model.parameter_bytes = UINT64_MAX;
    r.latency.median_ci95_ns[0] = r.latency.median_ci95_ns[1] = r.latency.max_ns = INT64_MAX;
    r.layers[1].cost.parameters = r.layers[1].cost.macs = UINT64_MAX;
    static const int widths[] = {60, 80, 120};
    for (size_t w = 0; w < 3; w++) {
        SCENARIO(w);
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.width = widths[w];
        options.memory = true;
        assert_true(longest_line(write_text(&r, &options, &s), false) <= (size_t)widths[w]);
    }
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_what_is_said(void **state)
{
    (void)state;
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    const char *text = write_all(&r, &s);
    assert_true(strncmp(text, "other processes took 12 % of the processors: times are too high\n", 64) == 0);
    static const char *const there[] = {"accuracy 98.33 %, top5_accuracy 99.72 % on 360",
                                        "resnet-sample",
                                        "opset 17",
                                        "349,288,960   349.3 M",
                                        "579.2 KiB",
                                        "70 runs, 12 warm-up runs (detected); stopped: median known to 1 %",
                                        "median                      4.805 ms",
                                        "4.797 - 4.813 ms",
                                        "ms ?",
                                        "208.1 samples/s",
                                        "146.6 GFLOP/s",
                                        "plan gap                       2.4 %",
                                        "By type",
                                        "conv_f32_dnnl",
                                        "99.2 %",
                                        "total",
                                        "~ estimated time: one operator runs several layers",
                                        "f evaluated once",
                                        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        if (!strstr(text, there[i])) fail_msg("the report does not say \"%s\":\n%s", there[i], text);
    assert_null(strstr(text, "Memory over the run"));
    assert_null(strstr(text, "bug"));
    assert_null(strstr(text, "belong to no layer"));
    r.layers[3].share = 0; /* as if the pool were a reorder, which belongs to no layer: 4.4 % */
    assert_non_null(strstr(write_all(&r, &s), "Another 4.4 % of the time is in operators that belong to no layer"));
    r.conserved = false;
    assert_non_null(strstr(write_all(&r, &s), "counts differ between layers and operators"));
    prn_bump_release(&r.pool);
    sample_report(&r, false);
    text = write_all(&r, &s);
    assert_non_null(strstr(text, "com.microsoft::FusedMatMul-1 (2 nodes)"));
    assert_non_null(strstr(text, "float32[batch=1, classes=?]"));
    static const char *const not_there[] = {"Latency", "time", "Operators", "Run\n", "Memory", "estimated time"};
    for (size_t i = 0; i < sizeof not_there / sizeof not_there[0]; i++)
        if (strstr(text, not_there[i])) fail_msg("a static report says \"%s\"", not_there[i]);
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* Stamps were off: latency without a time for any row. */
/* The sample's operators exceed its roof, as if other load had disturbed the measurement of the peaks. */
static void test_roof_exceeded(void **state)
{
    (void)state;
    static const prn_roof_compute high = {"fp32", 2, 1e15};
    static const prn_roof_memory fast = {"DRAM", 2, 1e15};
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    assert_non_null(strstr(write_all(&r, &s), "above the roof"));
    r.roof.compute = &high;
    r.roof.memory = &fast;
    const char *text = write_all(&r, &s);
    assert_non_null(strstr(text, "roofs at"));
    assert_null(strstr(text, "above the roof"));
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_latency_alone(void **state)
{
    (void)state;
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    r.time_share = -1;
    for (size_t o = 0; o < r.operator_count; o++) r.operators[o].measured = false;
    for (size_t l = 0; l < r.layer_count; l++) r.layers[l].measured = r.layers[l].time_attributed = false;
    const char *text = write_all(&r, &s);
    assert_non_null(strstr(text, "median"));
    assert_non_null(strstr(text, "conv_f32_dnnl"));
    static const char *const not_there[] = {"share ", "time ", "overhead", "cost of one event", "cum"};
    for (size_t i = 0; i < sizeof not_there / sizeof not_there[0]; i++)
        if (strstr(strstr(text, "Layers"), not_there[i]) || strstr(text, "overhead"))
            fail_msg("a report without stamps says \"%s\"", not_there[i]);
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* The first screen shows only the essentials; hidden rows are counted. */
static void test_first_screen(void **state)
{
    (void)state;
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    const char *text = write_text(&r, NULL, &s);
    static const char *const there[] = {"\nIn short\n  Conv takes ",
                                        "the most expensive of\n  11 layers, ",
                                        " % of the time is bound by compute, ",
                                        " % of a run is spent inside operators; of 2 threads, ",
                                        "\nMemory  77.47 MiB held after the runs; peak of the process 87.01 MiB\n",
                                        "pages of the model file    19.07 MiB",
                                        "median                      4.805 ms",
                                        "\nBy type ",
                                        "\nLayers "};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        if (!strstr(text, there[i])) fail_msg("the first screen does not say \"%s\":\n%s", there[i], text);
    static const char *const not_there[] = {"histogram",          "outlier",  "sha256 9f86",
                                            "cost of one event",  "\nRun\n",  "\nOperators",
                                            "standard deviation", "plan gap", "What dominates"};
    for (size_t i = 0; i < sizeof not_there / sizeof not_there[0]; i++)
        if (strstr(text, not_there[i])) fail_msg("the first screen says \"%s\"", not_there[i]);
    r.has_disturbance = r.memory.held_known = false; /* as read from a report of before */
    text = write_text(&r, NULL, &s);
    assert_null(strstr(text, "other processes"));
    assert_non_null(strstr(text, "plan gap"));
    prony_layer_row *few = r.layers;
    r.layers = prn_calloc(SAMPLE_LAYERS * 3, sizeof *r.layers);
    for (uint32_t l = 0; l < SAMPLE_LAYERS * 3; l++) r.layers[l] = few[l % SAMPLE_LAYERS];
    r.layer_count = SAMPLE_LAYERS * 3;
    assert_non_null(strstr(write_text(&r, NULL, &s), "and 13 more layers; --all shows every one"));
    assert_non_null(strstr(s.text, "of 33 layers take"));
    prn_free(r.layers);
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const titles[] = {"\nModel\n", "\nLayers ", "\nOperators "};
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    for (unsigned levels = 1; levels < 8; levels++) {
        SCENARIO(levels);
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.levels = levels;
        const char *text = write_text(&r, &options, &s);
        for (unsigned t = 0; t < 3; t++) assert_int_equal(strstr(text, titles[t]) != NULL, levels >> t & 1);
    }
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

/* The operators' names, in the order in which their table shows them, as one letter each. */
static void operator_order(const prony_report *r, prony_write_options *options, sink *s, char order[16])
{
    static const struct {
        const char *name;
        char letter;
    } letters[] = {{"/stem/conv1/Conv", 's'}, {"/maxpool/", 'm'}, {"conv1/Conv", '1'},
                   {"conv2/Conv", '2'},       {"/avgpool/", 'a'}, {"fc.weight", 'f'}};
    options->levels = PRONY_LEVEL_OPERATOR;
    options->width = 120;
    char *line = strstr(write_text(r, options, s), "operator");
    size_t count = 0;
    for (line = strtok(line, "\n"); line; line = strtok(NULL, "\n"))
        for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
            if (strstr(line, letters[i].name)) {
                order[count++] = letters[i].letter;
                break;
            }
    order[count] = '\0';
}

/* The arena's table has the order of the run, whichever key chooses its rows. */
static void test_memory_in_order_of_the_run(void **state)
{
    (void)state;
    static const char *const names[] = {"/stem/conv1/Conv", "conv1/Conv", "conv2/Conv", "fc.weight"};
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.memory = true;
    options.width = 120;
    const char *at = strstr(write_text(&r, &options, &s), "Memory over the run");
    assert_non_null(at);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        at = strstr(at, names[i]);
        if (!at) fail_msg("'%s' stands before its predecessor:\n%s", names[i], s.text);
        at += strlen(names[i]);
    }
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_sorting(void **state)
{
    (void)state;
    static const struct {
        const char *sort, *order;
    } rows[] = {{NULL, "s21mfa"},    {"index", "sm12af"}, {"time", "s21mfa"},       {"macs", "s12fma"},
                {"flops", "s21maf"}, {"name", "a12msf"},  {"parameters", "f12sma"}, {"bytes", "s21mfa"}};
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO(i);
        char order[16];
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.sort = rows[i].sort;
        operator_order(&r, &options, &s, order);
        if (strcmp(order, rows[i].order) != 0) fail_msg("sorted by %s: %s", rows[i].sort, order);
    }
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_filter_and_top(void **state)
{
    (void)state;
    static const struct {
        const char *filter, *order;
    } rows[] = {{"op=Conv", "s21"},
                {"op=*Pool", "ma"},
                {"name=/layer1/*", "21"},
                {"kernel=*dnnl", "s21m"},
                {"module=layer1/layer1.0*", "21"},
                {"op=Nothing", ""}};
    prony_report r;
    sink s = {0};
    sample_report(&r, true);
    char order[16];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO(i);
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.filter = rows[i].filter;
        operator_order(&r, &options, &s, order);
        assert_string_equal(order, rows[i].order);
    }
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.top = 2;
    options.sort = "time";
    operator_order(&r, &options, &s, order);
    assert_string_equal(order, "s2");
    assert_non_null(strstr(write_text(&r, &options, &s), "and 4 more operators; --all shows every one"));
    options = (prony_write_options)PRONY_WRITE_OPTIONS_INIT;
    options.levels = PRONY_LEVEL_LAYER;
    options.filter = "kernel=gemm*";
    assert_non_null(strstr(write_text(&r, &options, &s), "selected"));
    assert_non_null(strstr(s.text, "fc.weight"));
    assert_null(strstr(s.text, "stem"));
    prn_free(s.text);
    prn_bump_release(&r.pool);
}

static void test_wrong_options(void **state)
{
    (void)state;
    static const struct {
        const char *sort, *filter, *named;
    } rows[] = {{"speed", NULL, "\"speed\""},  {"", NULL, "\"\""},           {NULL, "Conv", "\"Conv\""},
                {NULL, "opp=Conv", "\"opp\""}, {NULL, "time=3", "\"time\""}, {NULL, "op=", "\"op=\""},
                {NULL, "=Conv", "\"\""},       {"op", NULL, "\"op\""}};
    prony_report r;
    sink s = {0};
    sample_report(&r, false);
    prony_error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO(i);
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.sort = rows[i].sort;
        options.filter = rows[i].filter;
        assert_int_equal(prn_report_write_text(&r, &options, sink_write, &s, &error), PRONY_INVALID_ARGUMENT);
        if (!strstr(error.message, rows[i].named)) fail_msg("%s is not in: %s", rows[i].named, error.message);
    }
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.levels = 32;
    assert_int_equal(prn_report_write_text(&r, &options, sink_write, &s, &error), PRONY_INVALID_ARGUMENT);
    options = (prony_write_options)PRONY_WRITE_OPTIONS_INIT;
    options.width = -1;
    assert_int_equal(prn_report_write_text(&r, &options, sink_write, &s, &error), PRONY_INVALID_ARGUMENT);
    options.width = 0;
    options.top = -5;
    assert_int_equal(prn_report_write_text(&r, &options, sink_write, &s, &error), PRONY_INVALID_ARGUMENT);
    assert_int_equal(s.size, 0);
    prn_bump_release(&r.pool);
}

static void test_failures(void **state)
{
    (void)state;
    prony_report r;
    sample_report(&r, true);
    prony_error error = {0};
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.memory = true;
    sink refusing = {.refuse_after = 1};
    assert_int_equal(prn_report_write_text(&r, &options, sink_write, &refusing, &error), PRONY_IO_ERROR);
    static char room[1 << 16];
    for (uint64_t n = 1;; n++) {
        sink s = {.text = room, .capacity = sizeof room};
        prn_alloc_fail_at(n);
        prony_status status = prn_report_write_text(&r, &options, sink_write, &s, &error);
        bool failed = prn_alloc_failed();
        prn_alloc_fail_at(0);
        assert_int_equal(status, failed ? PRONY_OUT_OF_MEMORY : PRONY_OK);
        if (!failed) {
            assert_true(n > 8);
            break;
        }
    }
    prn_bump_release(&r.pool);
}

static void test_numbers(void **state)
{
    (void)state;
    prn_number_text t;
    assert_string_equal(prn_number_si(t, 4089184256.0, 3, " "), "4.09 G");
    assert_string_equal(prn_number_si(t, 4089184256.0, 4, " "), "4.089 G");
    assert_string_equal(prn_number_si(t, 999, 3, " "), "999");
    assert_string_equal(prn_number_si(t, 999499, 3, ""), "999k");
    assert_string_equal(prn_number_si(t, 999500, 3, ""), "1.00M");
    assert_string_equal(prn_number_si(t, 0, 3, " "), "0");
    assert_string_equal(prn_number_bytes(t, 102230000, 3, " "), "97.5 MiB");
    assert_string_equal(prn_number_bytes(t, 1023, 3, " "), "1023 B");
    assert_string_equal(prn_number_bytes(t, 1024, 3, ""), "1.00KiB");
    assert_string_equal(prn_number_time(t, 999, 3, " "), "999 ns");
    assert_string_equal(prn_number_time(t, 52310000, 4, " "), "52.31 ms");
    assert_string_equal(prn_number_time(t, 999999999, 3, " "), "1.00 s");
    assert_string_equal(prn_number_percent(t, 0.1234), "12.3");
    assert_string_equal(prn_number_grouped(t, 11220132), "11,220,132");
    assert_string_equal(prn_number_grouped(t, 999), "999");
}

static void test_shortening(void **state)
{
    (void)state;
    char out[64];
    static const struct {
        const char *text;
        int columns;
        const char *shown;
    } rows[] = {{"/layer1/conv1/Conv", 18, "/layer1/conv1/Conv"},
                {"/layer1/conv1/Conv", 11, "/la..1/Conv"},
                {"abcdef", 3, "..f"},
                {"abcdef", 2, ".."},
                {"abcdef", 1, "."},
                {"abcdef", 0, ""},
                {"gr\xc3\xbc\x1b", 9, "gr\xc3\xbc?"},
                {"\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6", 5, "\xd0\xb6..\xd0\xb6\xd0\xb6"},
                {"\xe5\xb1\xa4\xe5\xb1\xa4x", 5, "\xe5\xb1\xa4\xe5\xb1\xa4x"}, /* two wide ones */
                {"\xe5\xb1\xa4\xe5\xb1\xa4xyz", 6, "..xyz"},                   /* half a wide character is dropped */
                {"a\xd7\x90\xcc\x81\xe2\x80\xae\xf0\x9f\x98\x80\xff\x80z", 9, "a?????z"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SCENARIO_NAMED(i, rows[i].text);
        prn_text_shorten(out, sizeof out, rows[i].text, rows[i].columns);
        assert_string_equal(out, rows[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_default_is_80),
        cmocka_unit_test(test_large_figures_and_long_names),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_roof_exceeded),
        cmocka_unit_test(test_latency_alone),
        cmocka_unit_test(test_first_screen),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_memory_in_order_of_the_run),
        cmocka_unit_test(test_sorting),
        cmocka_unit_test(test_filter_and_top),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_shortening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
