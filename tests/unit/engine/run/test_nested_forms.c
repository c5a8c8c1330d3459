/* Rows of subgraphs in every format of a report: written, read back, damaged, with failing allocations. */
#include "failure_trace.h"
#include "tests/support/nested_forms.h"
#include "tests/support/nested_model.h"
#include "tests/support/text_sink.h"

#include "profiler/report/report.h"
#include "prony_judge.h"

#include <stdio.h>
#include <stdlib.h>

/* A report, and its source: the model's bytes belong to the builder, and the report still needs them for their hash. */
typedef struct deep {
    model_run run;
    prony_report *report;
} deep;

static prony_report *deep_open(deep *d)
{
    *d = (deep){0};
    nested_open(&d->run, true, 10);
    return d->report = nested_profile(&d->run, 3);
}

static void deep_close(deep *d)
{
    prony_report_release(d->report);
    mr_close(&d->run);
}

/* Parts in this order. */
static void expect_in_order(const char *text, const char *const *parts)
{
    const char *at = text;
    for (; *parts; parts++) {
        const char *found = strstr(at, *parts);
        if (!found) fail_msg("'%s' is not in, or before others:\n%s", *parts, text);
        at = found + strlen(*parts);
    }
}

static void expect_width(const char *text, size_t width)
{
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        if (length > width) fail_msg("%zu columns: %.*s", length, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void text_indents_them(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.all = true;
    options.levels = PRONY_LEVEL_LAYER;
    char *text = nested_write(report, PRONY_FORMAT_TEXT, &options);
    expect_in_order(text, (const char *const[]){"runs",
                                                "/outer ",
                                                "\n",
                                                "then_branch",
                                                " 1",
                                                "  /loop ",
                                                "body",
                                                "10",
                                                "/loop/Less",
                                                "/inner ",
                                                "then_branch",
                                                "3",
                                                "/inner/MatMul",
                                                "else_branch",
                                                "7",
                                                "/inner/Abs",
                                                "/loop/NonZero",
                                                "else_branch",
                                                "0",
                                                "/calm/Tanh",
                                                "total",
                                                "indented:",
                                                NULL});
    expect_width(text, 80);
    prn_free(text);
    options.levels = PRONY_LEVEL_OPERATOR;
    text = nested_write(report, PRONY_FORMAT_TEXT, &options);
    expect_in_order(text, (const char *const[]){"/outer", "then_branch", "/loop", "body", "/inner/MatMul", "matmul",
                                                "total", NULL});
    expect_width(text, 80);
    prn_free(text);
    options.levels = PRONY_LEVEL_NESTED;
    text = nested_write(report, PRONY_FORMAT_TEXT, &options);
    expect_in_order(text, (const char *const[]){"Inside", "/outer", "/inner/MatMul", "selected", NULL});
    assert_null(strstr(text, "/begin"));
    prn_free(text);
    options.levels = PRONY_LEVEL_LAYER;
    options.filter = "op=Relu";
    text = nested_write(report, PRONY_FORMAT_TEXT, &options);
    expect_in_order(text, (const char *const[]){"/inner/Relu", "selected", NULL});
    assert_null(strstr(text, "/loop/NonZero"));
    prn_free(text);
    deep_close(&d);
}

/* Times that no other work on the machine can change: a row among the layers inside, and every row around it, take the
 * larger part of the whole. */
static void take_most(prony_report *report, const char *name)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < report->nested_layer_count; i++)
        if (!strcmp(report->nested_layers[i].name, name)) found = i;
    assert_true(found < report->nested_layer_count);
    for (size_t i = found; i != PRONY_NO_INDEX; i = report->nested_layers[i].parent) report->nested_layers[i].share = 2;
}

/* The first screen shows the most expensive part of an If that dominates, and its number of executions. */
static void the_first_screen_says_what_dominates(void **state)
{
    (void)state;
    static const struct {
        const char *name, *said, *executed;
    } of[] = {{"/loop/NonZero", "(NonZero) takes", "executed 10"},
              {"/inner/Abs", "(Abs) takes", "executed 7"},
              {"/inner/MatMul", "(MatMul) takes", "executed 3"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        SCENARIO_NAMED(i, of[i].name);
        deep d;
        prony_report *report = deep_open(&d);
        take_most(report, of[i].name);
        char *text = nested_write(report, PRONY_FORMAT_TEXT, NULL);
        expect_in_order(text, (const char *const[]){"In short", "Inside /outer > then_branch > /loop > body", NULL});
        expect_in_order(text, (const char *const[]){"Inside /outer > ", of[i].name, of[i].said, of[i].executed,
                                                    "Layers", "/outer", "then_branch", "/loop", "body", NULL});
        expect_width(text, 80);
        prn_free(text);
        deep_close(&d);
    }
}

static void json_reads_back(void **state)
{
    (void)state;
    deep d;
    prony_report *inspected = NULL;
    nested_round_trip(deep_open(&d));
    deep_close(&d);
    model_run r = {0};
    nested_open(&r, true, 10);
    assert_int_equal(prony_inspect(&inspected, r.model, NULL, &r.error), PRONY_OK);
    nested_round_trip(inspected);
    prony_report_release(inspected);
    mr_close(&r);
}

/* The document with the first `from` behind `after` replaced. */
static char *changed(const char *json, const char *after, const char *from, const char *to)
{
    const char *at = strstr(json, after);
    assert_non_null(at);
    at = strstr(at, from);
    assert_non_null(at);
    size_t before = (size_t)(at - json), size = strlen(json) - strlen(from) + strlen(to) + 1;
    char *out = malloc(size);
    assert_non_null(out);
    snprintf(out, size, "%.*s%s%s", (int)before, json, to, at + strlen(from));
    return out;
}

static void damage_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *after, *from, *to, *message;
    } cases[] = {
        {"\"nested_layers\"", "\"index\": 1", "\"index\": 2", "nested_layers[1]"},
        {"\"nested_layers\"", "\"owner\": 1", "\"owner\": 2", "owner"},
        {"\"nested_layers\"", "\"parent\": null", "\"parent\": 0", "parent"},
        {"\"nested_layers\"", "\"depth\": 1", "\"depth\": 2", "depth"},
        {"\"nested_layers\"", "\"executions\": 1", "\"executions\": -1", "executions"},
        {"\"nested_layers\"", "\"name\": ", "\"nome\": ", "name"},
        {"\"nested_operators\"", "\"layers\": [", "\"layers\": [99,", "layers"},
        {"\"nested_operators\"", "\"path\": \"", "\"path\": 3, \"way\": \"", "path"},
    };
    deep d;
    prony_report *report = deep_open(&d);
    char *json = nested_write(report, PRONY_FORMAT_JSON, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SCENARIO_NAMED(i, cases[i].after);
        prony_report *out = NULL;
        prony_error error = {0};
        char *bad = changed(json, cases[i].after, cases[i].from, cases[i].to);
        assert_int_equal(prony_report_load_memory(&out, "r.json", bad, strlen(bad), &error), PRONY_IO_ERROR);
        assert_null(out);
        nested_expect(error.message, cases[i].message);
        free(bad);
    }
    prn_free(json);
    deep_close(&d);
}

/* Writes every document that loads as a report in every format. */
static void changed_digits_are_harmless(void **state)
{
    (void)state;
    deep d;
    uint64_t random = 7;
    size_t taken = 0;
    prony_write_options all = PRONY_WRITE_OPTIONS_INIT;
    prony_report *report = deep_open(&d);
    all.all = true;
    all.chart = "graph";
    char *json = nested_write(report, PRONY_FORMAT_JSON, NULL);
    const size_t begin = (size_t)(strstr(json, "\"nested_layers\"") - json),
                 end = (size_t)(strstr(json, "\"modules\"") - json);
    for (int round = 0; round < 400; round++) {
        prony_report *out = NULL;
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size_t at = begin + (size_t)(random >> 33) % (end - begin);
        while (at < end && (json[at] < '0' || json[at] > '9')) at++;
        if (at == end) continue;
        char former = json[at];
        json[at] = (char)('0' + (random >> 20) % 10);
        if (prony_report_load_memory(&out, "r.json", json, strlen(json), NULL) == PRONY_OK) {
            taken++;
            for (prony_format format = PRONY_FORMAT_TEXT; format <= PRONY_FORMAT_HTML; format++) {
                sink s = {0};
                (void)!prony_report_write(out, format, &all, sink_write, &s, NULL);
                prn_free(s.text);
            }
        }
        prony_report_release(out);
        json[at] = former;
    }
    assert_true(taken > 50);
    prn_free(json);
    deep_close(&d);
}

static void csv_has_a_level_for_them(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
    options.levels = PRONY_LEVEL_NESTED;
    char *text = nested_write(report, PRONY_FORMAT_CSV, &options);
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "\r\n")); at += 2) lines++;
    assert_int_equal(lines, 1 + report->nested_layer_count + report->nested_operator_count);
    nested_expect(text, "level,index,owner,owner_name,parent,depth,path,subgraph,name,op,kernel,backend,");
    nested_expect(text, "/outer,,1,/outer > then_branch,then_branch,/loop,Loop,loop_reference,reference,");
    prn_free(text);
    options.levels = PRONY_LEVEL_LAYER; /* the sums of a column stay the model's */
    text = nested_write(report, PRONY_FORMAT_CSV, &options);
    assert_null(strstr(text, "/loop"));
    prn_free(text);
    deep_close(&d);
}

/* Counts sum to the layers' times, as they do without subgraphs. */
static void folded_counts_sum_to_the_whole(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    char *text = nested_write(report, PRONY_FORMAT_FOLDED, NULL);
    nested_expect(text, ";outer [If];then_branch;loop [Loop];body;NonZero ");
    nested_expect(text, ";outer [If];then_branch;loop [Loop];body;inner [If];then_branch;MatMul ");
    assert_null(strstr(text, "Tanh"));
    int64_t sum = 0, whole = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const char *blank = line + strcspn(line, "\n");
        while (*blank != ' ') blank--;
        sum += strtoll(blank, NULL, 10);
    }
    for (size_t i = 0; i < report->layer_count; i++) whole += report->layers[i].time.mean_ns;
    assert_int_equal(sum, whole);
    prn_free(text);
    deep_close(&d);
}

static void graph_frames_subgraphs(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    char *text = nested_write(report, PRONY_FORMAT_DOT, NULL), edge[64];
    nested_expect(text, "label=\"/outer > then_branch x 1\"");
    nested_expect(text, "label=\"/outer > then_branch > /loop > body x 10\"");
    nested_expect(text, "label=\"/outer > else_branch x 0\"");
    snprintf(edge, sizeof edge, "m%u -> m%u;", nested_row(report, PRONY_LEVEL_LAYER, "/inner/MatMul")->index,
             nested_row(report, PRONY_LEVEL_LAYER, "/inner/Relu")->index);
    nested_expect(text, edge);
    snprintf(edge, sizeof edge, "m%u -> m%u [style=dotted];", nested_row(report, PRONY_LEVEL_LAYER, "/inner")->index,
             nested_row(report, PRONY_LEVEL_LAYER, "/inner/MatMul")->index);
    nested_expect(text, edge);
    int open = 0;
    for (const char *at = text; *at; at++) {
        open += *at == '{';
        open -= *at == '}';
        assert_true(open >= 0);
    }
    assert_int_equal(open, 0);
    prn_free(text);
    deep_close(&d);
}

static void latex_indents_them(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    char *text = nested_write(report, PRONY_FORMAT_LATEX, NULL);
    expect_in_order(text, (const char *const[]){"layers", "\\textit{then\\_", "$\\times$1", "\\textit{/", "loop}",
                                                "\\textit{body}", "$\\times$10", "operators", "\\textit{body}", NULL});
    prn_free(text);
    deep_close(&d);
}

static int64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    assert_non_null(at);
    return (int64_t)(strtod(at + strlen(key), NULL) * 1000 + 0.5);
}

/* Slices lie inside of their operator's. */
static void trace_slices_nest(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    char *text = nested_write(report, PRONY_FORMAT_TRACE, NULL);
    const prony_operator_row *outer = &report->operators[report->nested_operators[0].owner];
    size_t slices = 0;
    for (const char *at = text; (at = strstr(at, "\"cat\": \"nested\"")); at++, slices++) {
        int64_t start = number_after(at, "\"ts\": "), took = number_after(at, "\"dur\": ");
        assert_true(start >= outer->trace_start_ns && start + took <= outer->trace_end_ns);
    }
    size_t executed = 0;
    for (size_t i = 0; i < report->nested_operator_count; i++) executed += report->nested_operators[i].executions > 0;
    assert_int_equal(slices, executed);
    nested_expect(text, "\"executions\": 10");
    prn_free(text);
    deep_close(&d);
}

static void modules_below_get_their_part(void **state)
{
    (void)state;
    static const float x[2] = {0, 0};
    static const int64_t n = 4;
    model_builder *m = mb_begin(16);
    mb_input(m, "n", PRONY_INT64, "");
    mb_input(m, "x", PRONY_FLOAT32, "2");
    mb_node(m, "Loop", "n ? x", "y", "");
    mb_node_name(m, "/decode/Loop");
    mb_graph_begin(m, "body");
    mb_input(m, "i", PRONY_INT64, "");
    mb_input(m, "on", PRONY_BOOL, "");
    mb_input(m, "a", PRONY_FLOAT32, "2");
    mb_node(m, "Add", "a a", "b", "");
    mb_node_name(m, "/decode/step/Add");
    mb_node(m, "Sub", "b a", "c", "");
    mb_node_name(m, "/elsewhere/Sub");
    mb_output(m, "on", PRONY_BOOL, "");
    mb_output(m, "c", PRONY_FLOAT32, "2");
    mb_graph_end(m);
    mb_output(m, "y", PRONY_FLOAT32, "2");
    model_run r = {0};
    mr_open(&r, m);
    mr_set(&r, "n", PRONY_INT64, "", &n);
    mr_set(&r, "x", PRONY_FLOAT32, "2", x);
    prony_report *report = nested_profile(&r, 2);
    size_t count, found = 0;
    const prony_module_row *modules = prony_report_modules(report, &count);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        if (strcmp(modules[i].path, "") == 0 || strcmp(modules[i].path, "decode") == 0) {
            assert_int_equal(modules[i].flops, 16);
            assert_int_equal(modules[i].layers, 1);
            assert_int_equal(modules[i].nested_layers, 2);
            found++;
        } else if (strcmp(modules[i].path, "decode/step") == 0) {
            assert_int_equal(modules[i].flops, 8);
            assert_int_equal(modules[i].layers, 0);
            assert_int_equal(modules[i].nested_layers, 1);
            found++;
        } else {
            assert_int_equal(modules[i].flops, 0); /* its work stays where the Loop is */
        }
    }
    assert_int_equal(found, 3);
    prony_report_release(report);
    mr_close(&r);
}

static void a_comparison_pairs_them(void **state)
{
    (void)state;
    deep d, e;
    prony_report *a = deep_open(&d), *b = deep_open(&e);
    prony_comparison *comparison = NULL;
    prony_error error = {0};
    size_t count, seen = 0;
    assert_int_equal(prony_compare(&comparison, a, b, NULL, &error), PRONY_OK);
    const prony_compare_row *parts = prony_comparison_nested(comparison, &count);
    for (size_t i = 0; i < count; i++) {
        SCENARIO(i);
        if (strcmp(parts[i].name, "/outer > then_branch > /loop > body > /loop/Add") != 0) continue;
        seen++;
        assert_int_equal(parts[i].first_executions, 10);
        assert_int_equal(parts[i].second_executions, 10);
        assert_int_equal(parts[i].first_flops, 320);
    }
    assert_int_equal(seen, 1);
    sink s = {0};
    assert_int_equal(prony_comparison_write(comparison, PRONY_FORMAT_TEXT, NULL, sink_write, &s, &error), PRONY_OK);
    nested_expect(s.text, "Inside these layers");
    s.size = 0;
    assert_int_equal(prony_comparison_write(comparison, PRONY_FORMAT_JSON, NULL, sink_write, &s, &error), PRONY_OK);
    expect_in_order(s.text, (const char *const[]){"\"nested_layers\": [", "\"a_executions\": ", NULL});
    prn_free(s.text);
    prony_comparison_release(comparison);
    deep_close(&d);
    deep_close(&e);
}

static void bounds_name_the_whole_path(void **state)
{
    (void)state;
    model_run r = {.options = {.max_loop_trips = 4}};
    nested_open(&r, true, 10);
    mr_refused(&r, PRONY_LIMIT, "node '/outer' (If), then_branch: node '/loop' (Loop): did not stop after 4 trips");
    nested_set(&r, true, 4); /* and the session goes on */
    prony_report *report = nested_profile(&r, 1);
    assert_int_equal(nested_row(report, PRONY_LEVEL_LAYER, "/loop/Add")->executions, 4);
    prony_report_release(report);
    mr_close(&r);
}

/* ---- too little memory ---- */

static void forms_survive_faults(void **state)
{
    (void)state;
    deep d;
    prony_report *report = deep_open(&d);
    for (prony_format format = PRONY_FORMAT_TEXT; format <= PRONY_FORMAT_HTML; format++) {
        SCENARIO(format);
        prony_write_options options = PRONY_WRITE_OPTIONS_INIT;
        options.all = true;
        options.chart = "graph";
        for (uint64_t n = 1;; n++) {
            sink s = {0};
            prony_error error = {0};
            /* room beforehand: what is counted are the writer's own */
            assert_true(PRN_GROW(s.text, s.capacity, (size_t)4 << 20));
            prn_alloc_fail_at(n);
            prony_status status = prony_report_write(report, format, &options, sink_write, &s, &error);
            bool failed = prn_alloc_failed();
            prn_alloc_fail_at(0);
            prn_free(s.text);
            if (!failed) {
                assert_int_equal(status, PRONY_OK);
                break;
            }
            assert_int_equal(status, PRONY_OUT_OF_MEMORY);
        }
    }
    deep_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_indents_them),
        cmocka_unit_test(the_first_screen_says_what_dominates),
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(changed_digits_are_harmless),
        cmocka_unit_test(csv_has_a_level_for_them),
        cmocka_unit_test(folded_counts_sum_to_the_whole),
        cmocka_unit_test(graph_frames_subgraphs),
        cmocka_unit_test(latex_indents_them),
        cmocka_unit_test(trace_slices_nest),
        cmocka_unit_test(modules_below_get_their_part),
        cmocka_unit_test(a_comparison_pairs_them),
        cmocka_unit_test(bounds_name_the_whole_path),
        cmocka_unit_test(forms_survive_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
